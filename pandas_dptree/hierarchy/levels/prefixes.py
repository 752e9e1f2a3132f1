"""Implicit trees of all prefixes of a number or a text, identified by arrays that are ordered as the tree."""

from __future__ import annotations

import string
from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, DomainError, is_name, naming, quote
from pandas_dptree.hierarchy.domain import MAX_LEAVES, Domain
from pandas_dptree.hierarchy.levels.base import DerivedLevels
from pandas_dptree.hierarchy.levels.read_as import Texts, WholeNumbers
from pandas_dptree.hierarchy.names import ROOT
from pandas_dptree.hierarchy.tree import IntArray, Tree
from pandas_dptree.signatures import public

__all__ = ["LETTERS_AND_DIGITS", "BitPrefixes", "CharPrefixes", "PrefixTree", "binary", "prefixes"]

LETTERS_AND_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
"""Default alphabet of texts."""

Notation = Literal["number", "ipv4"]
Keys = npt.NDArray[Any]

_WIDEST = 64
_ADDRESS_BITS = 32
_LONGEST = 1_000
_LARGEST_ALPHABET = 255
"""A character is stored in one byte, where 0 is the end of the text."""


@dataclass(frozen=True)
class PrefixTree(DerivedLevels[Domain]):
    """Base class of prefixes of numbers and of texts."""

    pitfall: ClassVar[str] = (
        'values that do not fit the prefixes, or have lost leading zeros ("501" for "00501")'
    )
    """What to check if records belong to no leaf."""

    smaller: ClassVar[str | None] = (
        "shorten the prefixes, or pass them as `by` without a list, as an implicit tree"
    )

    implicit: ClassVar[bool] = True

    n_public: ClassVar[int] = 1
    """The number of levels of the implicit tree whose nodes are all shown: the root alone."""

    column: Hashable
    lengths: tuple[int, ...]

    @property
    def level_names(self) -> tuple[str, ...]:
        """Names of the levels: ``"total"``, then the column and the length, as in ``"ip/8"``."""
        return (ROOT, *self.names)

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """Columns of the records that are read."""
        return (self.column,)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the keys, as in ``"ip/8"``."""
        return tuple(f"{self.column}/{length}" for length in self.lengths)

    @property
    def definition(self) -> tuple[Any, ...]:
        """How the keys are made, in plain Python types."""
        return ("prefixes", *astuple(self))

    @property
    def n_leaves(self) -> int:
        """Number of prefixes of the deepest level."""
        return self.n_prefixes(self.lengths[-1])

    @cached_property
    def domain(self) -> Domain:
        """The public leaves: all prefixes of the deepest level; a DomainError beyond 10**8 of them."""
        if self.n_leaves > MAX_LEAVES:
            raise DomainError(
                f"would have more than {MAX_LEAVES:,} leaves, all prefixes of {quote(self.column)}.",
                hint="shorten the prefixes, or pass them as `by` without a list, as an implicit tree.",
            )
        sizes = [self.n_prefixes(length) for length in self.lengths]
        branching = [below // above for above, below in zip([1, *sizes], sizes, strict=False)]
        labels = [pd.Index(self.labels(self.every(length), length)) for length in self.lengths]
        forms = [tuple(label.tolist()) for label in labels]
        codes = [np.arange(size) for size in sizes]
        return Domain(self.names, Tree.from_branching(branching), tuple(labels), tuple(forms), tuple(codes))

    @abstractmethod
    def n_prefixes(self, length: int) -> int:
        """Count all prefixes of a length."""

    @abstractmethod
    def every(self, length: int) -> Keys:
        """List all prefixes of a length, in order."""

    @property
    @abstractmethod
    def longest(self) -> int:
        """Length of the keys that are read, from which `shorten` starts."""

    @abstractmethod
    def shorten(self, keys: Keys, start: int, length: int) -> Keys:
        """Cut prefixes of up to `start` bits or characters to their first `length`."""

    @abstractmethod
    def reaches(self, keys: Keys, length: int) -> npt.NDArray[np.bool_]:
        """Whether each prefix is as long as a level requires."""

    @abstractmethod
    def n_children(self, level: int) -> int | None:
        """Count the children of each node of a level, empty ones included.

        None if a key may end at a node, so that its children never partition it.
        """

    @abstractmethod
    def find(self, keys: Keys, fits: npt.NDArray[np.bool_]) -> IntArray:
        """Find the leaf of each key: -1 without a key, or if it ends above the deepest level."""

    @abstractmethod
    def labels(self, keys: Keys, length: int) -> Any:
        """Format prefixes of a length as in the released table; the array supports missing values."""


@dataclass(frozen=True)
class BitPrefixes(PrefixTree):
    """All whole numbers of `width` bits, level by level by their leading bits. See `prefixes`.

    A node is the whole number of its leading bits (``UInt64``) in the notation "number", and a block of
    addresses (``"10.0.0.0/8"``) in the notation "ipv4".
    """

    width: int
    notation: Notation = "number"

    def __post_init__(self) -> None:
        """Check the arguments."""
        object.__setattr__(self, "lengths", _check_lengths("bits", self.lengths, _WIDEST))
        if not _is_whole(self.width) or not self.lengths[-1] <= self.width <= _WIDEST:
            raise ArgumentError(
                "width",
                f"must be a whole number from {self.lengths[-1]} to {_WIDEST}, not {quote(self.width)}.",
                hint="it is the number of bits; of longer numbers, use the leading 64 bits.",
            )
        if not isinstance(self.notation, str) or self.notation not in ("number", "ipv4"):
            raise ArgumentError(
                "notation", f"is unknown: {quote(self.notation)}.", hint='pass "number" or "ipv4".'
            )
        if self.notation == "ipv4" and self.width != _ADDRESS_BITS:
            raise ArgumentError(
                "notation",
                f"cannot be 'ipv4' for numbers of {self.width} bits.",
                hint="IPv4 addresses have 32: leave `width` out.",
            )
        _check_column(self.column)

    def n_prefixes(self, length: int) -> int:
        """Count all prefixes of a length."""
        return 1 << length

    def every(self, length: int) -> Keys:
        """List all prefixes of a length, in order."""
        return np.arange(1 << length, dtype=np.uint64)

    @property
    def read_as(self) -> WholeNumbers:
        """Values are read as whole numbers, or addresses."""
        return WholeNumbers(self.width, addresses=self.notation == "ipv4")

    @property
    def longest(self) -> int:
        """Number of bits of a number."""
        return self.width

    def find(self, keys: Keys, fits: npt.NDArray[np.bool_]) -> IntArray:
        """Find the leaf of each number in the domain."""
        return np.where(fits, self.shorten(keys, self.width, self.lengths[-1]).astype(np.int64), -1)

    def shorten(self, keys: Keys, start: int, length: int) -> Keys:
        """Cut prefixes of `start` bits to their first `length`."""
        return keys >> np.uint64(start - length)

    def reaches(self, keys: Keys, length: int) -> npt.NDArray[np.bool_]:
        """Whether each prefix is as long as a level requires: always."""
        return np.ones(len(keys), dtype=bool)

    def n_children(self, level: int) -> int | None:
        """Count the children of each node of a level, empty ones included."""
        return 1 << (self.lengths[level] - (self.lengths[level - 1] if level else 0))

    def labels(self, keys: Keys, length: int) -> Any:
        """Format prefixes of a length as in the released table; the array supports missing values."""
        if self.notation == "number":
            return pd.array(keys, dtype="UInt64")
        first = keys << np.uint64(_ADDRESS_BITS - length)
        octets = np.stack([first >> np.uint64(shift) & np.uint64(255) for shift in (24, 16, 8, 0)], axis=-1)
        blocks = [f"{a}.{b}.{c}.{d}/{length}" for a, b, c, d in octets.tolist()]
        return pd.Series(blocks, dtype="str").array


@dataclass(frozen=True)
class CharPrefixes(PrefixTree):
    """All texts over an alphabet, level by level by their first characters. See `prefixes`."""

    alphabet: str = LETTERS_AND_DIGITS

    def __post_init__(self) -> None:
        """Check the arguments."""
        object.__setattr__(self, "lengths", _check_lengths("chars", self.lengths, _LONGEST))
        symbols = self.alphabet
        if (
            not isinstance(symbols, str)
            or not 1 <= len(symbols) <= _LARGEST_ALPHABET
            or len(set(symbols)) < len(symbols)
            or "\0" in symbols
            or any("\ud800" <= symbol <= "\udfff" for symbol in symbols)
        ):
            raise ArgumentError(
                "alphabet",
                f"must be a string of 1 to {_LARGEST_ALPHABET} different characters, no NUL or surrogate.",
                hint='for example alphabet="0123456789".',
            )
        _check_column(self.column)

    def n_prefixes(self, length: int) -> int:
        """Count all prefixes of a length."""
        size: int = len(self.alphabet) ** length
        return size

    def every(self, length: int) -> Keys:
        """List all prefixes of a length, in order."""
        number = np.arange(self.n_prefixes(length))
        places = np.empty((len(number), length), dtype=np.uint8)
        for place in reversed(range(length)):
            number, digit = np.divmod(number, len(self.alphabet))
            places[:, place] = digit + 1
        return places.view(f"S{length}").reshape(len(places))

    @property
    def read_as(self) -> Texts:
        """Values are read as texts over the alphabet."""
        return Texts(self.encode)

    @property
    def longest(self) -> int:
        """Number of characters of a text that are read."""
        return self.lengths[-1]

    def find(self, keys: Keys, fits: npt.NDArray[np.bool_]) -> IntArray:
        """Find the leaf of each encoded text in the domain: -1 for those that end above the deepest level."""
        number = np.zeros(len(keys), dtype=np.int64)
        for place in _bytes(keys, self.lengths[-1]).T:
            number = number * len(self.alphabet) + place - 1
        return np.where(fits & self.reaches(keys, self.lengths[-1]), number, -1)

    def encode(self, texts: Sequence[str]) -> tuple[Keys, npt.NDArray[np.bool_]]:
        """Encode texts as prefixes of the deepest level, and say which consist of characters of the alphabet.

        A key has the position of each of the first characters in the alphabet, from 1; later ones are
        ignored.
        """
        longest = self.lengths[-1]
        characters = np.array(texts, dtype=f"U{longest}").view(np.uint32).reshape(len(texts), longest)
        symbols = np.frombuffer(self.alphabet.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        place = np.zeros(int(symbols.max()) + 2, dtype=np.uint8)  # the last entry is for others
        place[symbols] = np.arange(1, len(symbols) + 1)
        places = place[np.minimum(characters, len(place) - 1)]
        sizes = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
        fits = np.count_nonzero(places, axis=1) == np.minimum(sizes, longest)
        return places.view(f"S{longest}").reshape(len(texts)), fits

    def shorten(self, keys: Keys, start: int, length: int) -> Keys:
        """Cut prefixes of up to `start` characters to their first `length`."""
        return keys.astype(f"S{length}")

    def reaches(self, keys: Keys, length: int) -> npt.NDArray[np.bool_]:
        """Whether each prefix is as long as a level requires: shorter texts end above it."""
        return _bytes(keys, length)[:, -1] > 0

    def n_children(self, level: int) -> int | None:
        """Return None: a text may end at any node, so its children never partition it."""
        return None

    def labels(self, keys: Keys, length: int) -> Any:
        """Format prefixes of a length as in the released table; the array supports missing values."""
        symbols = np.array(["", *self.alphabet])
        texts = symbols[_bytes(keys, length)].view(f"U{length}").reshape(len(keys))
        return pd.Series(texts.tolist(), dtype="str").array


@public
def prefixes(
    column: Hashable,
    *,
    bits: Sequence[int] | None = None,
    chars: Sequence[int] | None = None,
    width: int | None = None,
    notation: Notation | None = None,
    alphabet: str | None = None,
) -> PrefixTree:
    """Describe levels of prefixes: of numbers by their bits, or of texts by their first characters.

    Passed as `by` without a list, or to `plan`, they are an implicit tree of any size, whose nodes
    are never listed. In a list, with or without other keys, they are levels like all others, and all nodes
    are listed.

    Parameters
    ----------
    column : hashable
        The column that holds the numbers, addresses or texts.
    bits : sequence of int, optional
        Number of leading bits that identify a node of each level, increasing, as in ``[8, 16, 24, 32]``.
    chars : sequence of int, optional
        The same for leading characters. Give exactly one of the two.
    width : int, optional
        With `bits`: number of bits of a number, 64 at most. By default 32 with ``notation="ipv4"``, else the
        last of `bits`.
    notation : {"number", "ipv4"}, optional
        Format of nodes, needed with `bits`: whole numbers, or blocks of IPv4 addresses.
    alphabet : str, optional
        With `chars`: the possible characters, by default digits and the letters A to Z and a to z.

    Raises
    ------
    ArgumentError
        If an argument is out of range, or belongs to the other kind of prefixes.

    Notes
    -----
    **Privacy**: the tree is public: these arguments alone define it. Records that do not fit it
    are dropped silently, each by its own value: numbers that are negative, too large or not whole; with
    ``notation="ipv4"``, texts that are not four decimal numbers with dots; texts with other characters among
    the first; and missing values. A text that is shorter than a level counts on the levels that it reaches.
    If nodes are listed, it has no leaf and is dropped.

    Examples
    --------
    >>> prefixes("ip", bits=[8, 16, 24, 32], notation="ipv4").level_names
    ('total', 'ip/8', 'ip/16', 'ip/24', 'ip/32')
    >>> zips = prefixes("zip", chars=[1, 3, 5], alphabet="0123456789")
    >>> zips.paths().iloc[90210].tolist()
    ['9', '902', '90210']
    """
    if (bits is None) == (chars is None):
        raise ArgumentError(
            "bits", "or `chars` must be given, not both.", hint="for example bits=[8, 16], or chars=[1, 3]."
        )
    misplaced = {"alphabet": alphabet} if chars is None else {"width": width, "notation": notation}
    for name, value in misplaced.items():
        if value is not None:
            raise ArgumentError(
                name,
                "does not apply to this kind of prefixes.",
                hint="`alphabet` goes with `chars`, `width` and `notation` go with `bits`.",
            )
    if chars is not None:
        lengths = _check_lengths("chars", chars, _LONGEST)
        return CharPrefixes(column, lengths, LETTERS_AND_DIGITS if alphabet is None else alphabet)
    assert bits is not None
    if notation is None:
        raise ArgumentError(
            "notation",
            "must be given with `bits`.",
            hint='pass notation="ipv4" for addresses, or notation="number" for whole numbers.',
        )
    lengths = _check_lengths("bits", bits, _WIDEST)
    if width is None:
        width = _ADDRESS_BITS if notation == "ipv4" else lengths[-1]
    return BitPrefixes(column, lengths, width, notation)


@public
def binary(column: Hashable, *, bits: int) -> BitPrefixes:
    """Describe the binary tree of all whole numbers of a given width, with a level for every bit.

    Parameters
    ----------
    column : hashable
        The column that holds the numbers.
    bits : int
        Number of bits, from 1 to 64.

    Raises
    ------
    ArgumentError
        If `bits` is out of range.

    Examples
    --------
    >>> binary("user_id", bits=3).level_names
    ('total', 'user_id/1', 'user_id/2', 'user_id/3')
    """
    if not _is_whole(bits) or not 1 <= bits <= _WIDEST:
        raise ArgumentError(
            "bits",
            f"must be a whole number from 1 to {_WIDEST}, not {quote(bits)}.",
            hint="it is the number of bits; of longer numbers, use the leading 64 bits.",
        )
    return BitPrefixes(column, tuple(range(1, bits + 1)), bits)


def _bytes(keys: Keys, length: int) -> npt.NDArray[np.uint8]:
    """View prefixes of up to `length` characters as one row of bytes each."""
    return np.ascontiguousarray(keys).view(np.uint8).reshape(len(keys), length)


def _check_lengths(name: str, lengths: Sequence[int], largest: int) -> tuple[int, ...]:
    """Check that lengths are increasing whole numbers."""
    listed = tuple(lengths) if isinstance(lengths, (list, tuple, range, np.ndarray)) else ()
    whole = bool(listed) and all(map(_is_whole, listed))
    if not whole or listed[0] < 1 or listed[-1] > largest or any(np.diff(listed) < 1):
        raise ArgumentError(
            name,
            f"must list increasing whole numbers from 1 to {largest}, not {quote(lengths)}.",
            hint=f"one for each level below the root, for example {name}=[1, 3, 5].",
        )
    return tuple(map(int, listed))


def _check_column(column: object) -> None:
    if not is_name(column):
        raise ArgumentError(
            "column",
            f"must name a column, not {quote(column)}.",
            hint=naming("column", "ip", column),
        )


def _is_whole(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)

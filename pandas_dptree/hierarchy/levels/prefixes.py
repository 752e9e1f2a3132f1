"""Trees that nobody needs to write down: every prefix of a number or of a text is a node.

The leaves are all numbers of so many bits, or all texts over an alphabet: a domain that is public by its
definition. Nodes are named by *prefixes*, arrays whose order is that of the tree on every level. Beside other
keys the nodes are written down after all, as a domain.
"""

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
from pandas_dptree.hierarchy.domain import MAX_LEAVES, ROOT, Domain
from pandas_dptree.hierarchy.levels.base import DerivedLevels
from pandas_dptree.hierarchy.levels.read_as import Texts, WholeNumbers
from pandas_dptree.hierarchy.tree import IntArray, Tree
from pandas_dptree.signatures import public

__all__ = ["LETTERS_AND_DIGITS", "BitPrefixes", "CharPrefixes", "PrefixTree", "binary", "prefixes"]

LETTERS_AND_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
"""The alphabet of texts, if none is given."""

Notation = Literal["number", "ipv4"]
Keys = npt.NDArray[Any]

_WIDEST = 64
_ADDRESS_BITS = 32
_LONGEST = 1_000
_LARGEST_ALPHABET = 255
"""Characters are kept in one byte each, of which 0 stands for the end of the text."""


@dataclass(frozen=True)
class PrefixTree(DerivedLevels[Domain]):
    """What prefixes of numbers and of texts have in common."""

    pitfall: ClassVar[str] = (
        'values that do not fit the prefixes, or have lost zeros in front ("501" for "00501")'
    )
    """What to look for where records lie nowhere."""

    smaller: ClassVar[str | None] = (
        "shorten the prefixes, or pass them as `by` without a list, so that nobody lists them"
    )

    implicit: ClassVar[bool] = True

    column: Hashable
    lengths: tuple[int, ...]

    @property
    def level_names(self) -> tuple[str, ...]:
        """Names of the levels: ``"total"``, then the column and the length, as in ``"ip/8"``."""
        return (ROOT, *self.names)

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """The columns of the records that are read."""
        return (self.column,)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the keys, as in ``"ip/8"``."""
        return tuple(f"{self.column}/{length}" for length in self.lengths)

    @property
    def definition(self) -> tuple[Any, ...]:
        """How the keys are made, in plain Python."""
        return ("prefixes", *astuple(self))

    @property
    def n_leaves(self) -> int:
        """How many prefixes of the deepest level there are."""
        return self.n_prefixes(self.lengths[-1])

    @cached_property
    def domain(self) -> Domain:
        """The public leaves: all prefixes of the deepest level.

        Raises
        ------
        DomainError
            If there are more than 10**8.
        """
        if self.n_leaves > MAX_LEAVES:
            raise DomainError(
                f"would have more than {MAX_LEAVES:,} leaves, all prefixes of {quote(self.column)}.",
                hint="shorten the prefixes, or pass them as `by` without a list: then nobody lists them.",
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
        """List all prefixes of a length, in their order."""

    @property
    @abstractmethod
    def longest(self) -> int:
        """The length of the keys that are read, from which `shorten` starts."""

    @abstractmethod
    def shorten(self, keys: Keys, start: int, length: int) -> Keys:
        """Cut prefixes of up to `start` bits or characters to their first `length`."""

    @abstractmethod
    def reaches(self, keys: Keys, length: int) -> npt.NDArray[np.bool_]:
        """Tell which prefixes are as long as a level asks."""

    @abstractmethod
    def n_children(self, level: int) -> int | None:
        """Count the children of each node of a level, whether or not they hold anybody.

        None if a key may end at a node, so that its children are never all there is.
        """

    @abstractmethod
    def find(self, keys: Keys, fits: npt.NDArray[np.bool_]) -> IntArray:
        """Find the leaf of each key in the domain.

        Parameters
        ----------
        keys : numpy.ndarray, shape (n,)
            Whole numbers (uint64), or encoded texts (bytes).
        fits : numpy.ndarray of bool, shape (n,)
            False where there is no key.

        Returns
        -------
        numpy.ndarray of int64, shape (n,)
            -1 where there is no key, or one that ends above the deepest level.
        """

    @abstractmethod
    def labels(self, keys: Keys, length: int) -> Any:
        """Write prefixes of a length as the released table does, in an array that can lack values."""


@dataclass(frozen=True)
class BitPrefixes(PrefixTree):
    """All whole numbers of so many bits, level by level by their leading bits.

    Parameters
    ----------
    column : hashable
        Where the records have the number.
    lengths : tuple of int
        How many leading bits name a node of each level below the root, rising.
    width : int
        How many bits a number has, from the largest of `lengths` to 64.
    notation : {"number", "ipv4"}
        How nodes are written: as the whole number that their leading bits make (``UInt64``), or as a block of
        addresses (``"10.0.0.0/8"``; needs 32 bits).

    Raises
    ------
    ArgumentError
        If an argument is out of range.

    See Also
    --------
    prefixes, binary
    """

    width: int
    notation: Notation = "number"

    def __post_init__(self) -> None:
        """Check that the levels lead from the root to the numbers."""
        object.__setattr__(self, "lengths", _rising("bits", self.lengths, _WIDEST))
        if not _is_whole(self.width) or not self.lengths[-1] <= self.width <= _WIDEST:
            raise ArgumentError(
                "width",
                f"must be a whole number from {self.lengths[-1]} to {_WIDEST}, not {quote(self.width)}.",
                hint="it is how many bits a number has; of longer ones, release the leading 64 bits.",
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
        """List all prefixes of a length, in their order."""
        return np.arange(1 << length, dtype=np.uint64)

    @property
    def read_as(self) -> WholeNumbers:
        """Values are read as whole numbers, or addresses."""
        return WholeNumbers(self.width, addresses=self.notation == "ipv4")

    @property
    def longest(self) -> int:
        """How many bits the numbers have."""
        return self.width

    def find(self, keys: Keys, fits: npt.NDArray[np.bool_]) -> IntArray:
        """Find the leaf of each number in the domain."""
        return np.where(fits, self.shorten(keys, self.width, self.lengths[-1]).astype(np.int64), -1)

    def shorten(self, keys: Keys, start: int, length: int) -> Keys:
        """Cut prefixes of `start` bits to their first `length`."""
        return keys >> np.uint64(start - length)

    def reaches(self, keys: Keys, length: int) -> npt.NDArray[np.bool_]:
        """Tell which prefixes are as long as a level asks: all of them."""
        return np.ones(len(keys), dtype=bool)

    def n_children(self, level: int) -> int | None:
        """Count the children of each node of a level, whether or not they hold anybody."""
        return 1 << (self.lengths[level] - (self.lengths[level - 1] if level else 0))

    def labels(self, keys: Keys, length: int) -> Any:
        """Write prefixes of a length as the released table does, in an array that can lack values."""
        if self.notation == "number":
            return pd.array(keys, dtype="UInt64")
        first = keys << np.uint64(_ADDRESS_BITS - length)
        octets = np.stack([first >> np.uint64(shift) & np.uint64(255) for shift in (24, 16, 8, 0)], axis=-1)
        blocks = [f"{a}.{b}.{c}.{d}/{length}" for a, b, c, d in octets.tolist()]
        return pd.Series(blocks, dtype="str").array


@dataclass(frozen=True)
class CharPrefixes(PrefixTree):
    """All texts over an alphabet, level by level by their first characters.

    Parameters
    ----------
    column : hashable
        Where the records have the text.
    lengths : tuple of int
        How many characters name a node of each level below the root, rising.
    alphabet : str
        The characters that there are, from 1 to 255. Nodes are in its order.

    Raises
    ------
    ArgumentError
        If an argument is out of range.

    See Also
    --------
    prefixes
    """

    alphabet: str = LETTERS_AND_DIGITS

    def __post_init__(self) -> None:
        """Check that the levels lead from the root to the texts."""
        object.__setattr__(self, "lengths", _rising("chars", self.lengths, _LONGEST))
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
                f"must be a text of 1 to {_LARGEST_ALPHABET} different characters, no NUL and no surrogate.",
                hint='for example alphabet="0123456789".',
            )
        _check_column(self.column)

    def n_prefixes(self, length: int) -> int:
        """Count all prefixes of a length."""
        size: int = len(self.alphabet) ** length
        return size

    def every(self, length: int) -> Keys:
        """List all prefixes of a length, in their order."""
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
        """How many characters of a text are read."""
        return self.lengths[-1]

    def find(self, keys: Keys, fits: npt.NDArray[np.bool_]) -> IntArray:
        """Find the leaf of each encoded text in the domain: -1 for those that end above the deepest level."""
        number = np.zeros(len(keys), dtype=np.int64)
        for place in _bytes(keys, self.lengths[-1]).T:
            number = number * len(self.alphabet) + place - 1
        return np.where(fits & self.reaches(keys, self.lengths[-1]), number, -1)

    def encode(self, texts: Sequence[str]) -> tuple[Keys, npt.NDArray[np.bool_]]:
        """Turn texts into prefixes of the deepest level.

        Parameters
        ----------
        texts : sequence of str

        Returns
        -------
        keys : numpy.ndarray of bytes, shape (len(texts),)
            For each of the first characters its place in the alphabet, from 1.
        fits : numpy.ndarray of bool, shape (len(texts),)
            Whether all of these are in the alphabet. What follows them is not looked at.
        """
        longest = self.lengths[-1]
        characters = np.array(texts, dtype=f"U{longest}").view(np.uint32).reshape(len(texts), longest)
        symbols = np.frombuffer(self.alphabet.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        place = np.zeros(int(symbols.max()) + 2, dtype=np.uint8)  # the last is for what lies beyond
        place[symbols] = np.arange(1, len(symbols) + 1)
        places = place[np.minimum(characters, len(place) - 1)]
        sizes = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
        fits = np.count_nonzero(places, axis=1) == np.minimum(sizes, longest)
        return places.view(f"S{longest}").reshape(len(texts)), fits

    def shorten(self, keys: Keys, start: int, length: int) -> Keys:
        """Cut prefixes of up to `start` characters to their first `length`."""
        return keys.astype(f"S{length}")

    def reaches(self, keys: Keys, length: int) -> npt.NDArray[np.bool_]:
        """Tell which prefixes are as long as a level asks: shorter texts end above it."""
        return _bytes(keys, length)[:, -1] > 0

    def n_children(self, level: int) -> int | None:
        """Tell that a text may end at any node, so that its children are never all there is."""
        return None

    def labels(self, keys: Keys, length: int) -> Any:
        """Write prefixes of a length as the released table does, in an array that can lack values."""
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

    Alone in `by`, and as the tree of `plan_implicit`, they are a tree that nobody lists, however large. In a
    list, with other keys or without, they are levels as all others, and all nodes are listed.

    Parameters
    ----------
    column : hashable
        The column that holds the numbers, addresses or texts.
    bits : sequence of int, optional
        How many leading bits name a node of each level, rising, as in ``[8, 16, 24, 32]``.
    chars : sequence of int, optional
        How many first characters do so. Give one of the two.
    width : int, optional
        With `bits`: how many bits a number has, 64 at most. By default 32 with ``notation="ipv4"``, else
        as many as the last of `bits`.
    notation : {"number", "ipv4"}, optional
        With `bits`: how nodes are written. By default as blocks of IPv4 addresses where numbers have 32
        bits, else as whole numbers.
    alphabet : str, optional
        With `chars`: the characters that there are, by default digits and the letters A to Z and a to z.

    Returns
    -------
    BitPrefixes or CharPrefixes

    Raises
    ------
    ArgumentError
        If an argument is out of range, or belongs to the other kind of prefixes.

    Notes
    -----
    **Privacy**: the tree is public: these arguments alone define it. Records that do not fit it are
    dropped silently, each by its own value: numbers that are negative, too large or not whole; with
    ``notation="ipv4"``, texts that are not four decimal numbers with dots; texts with other characters among
    the first; and whatever is missing. A text that is shorter than a level counts on the levels that it
    reaches; where nodes are listed it has no leaf, and is dropped.

    Examples
    --------
    >>> prefixes("ip", bits=[8, 16, 24, 32]).level_names
    ('total', 'ip/8', 'ip/16', 'ip/24', 'ip/32')
    >>> zips = prefixes("zip", chars=[1, 3, 5], alphabet="0123456789")
    >>> zips.level_names
    ('total', 'zip/1', 'zip/3', 'zip/5')
    >>> zips.paths().iloc[90210].tolist()
    ['9', '902', '90210']
    """
    if (bits is None) == (chars is None):
        raise ArgumentError(
            "bits", "or `chars` must be given, not both.", hint="for example bits=[8, 16], or chars=[1, 3]."
        )
    unfit = {"alphabet": alphabet} if chars is None else {"width": width, "notation": notation}
    for name, value in unfit.items():
        if value is not None:
            raise ArgumentError(
                name,
                "says nothing of prefixes of this kind.",
                hint="`alphabet` goes with `chars`, `width` and `notation` go with `bits`.",
            )
    if chars is not None:
        lengths = _rising("chars", chars, _LONGEST)
        return CharPrefixes(column, lengths, LETTERS_AND_DIGITS if alphabet is None else alphabet)
    assert bits is not None
    lengths = _rising("bits", bits, _WIDEST)
    if width is None:
        width = _ADDRESS_BITS if notation == "ipv4" else lengths[-1]
    if notation is None:
        notation = "ipv4" if _is_whole(width) and width == _ADDRESS_BITS else "number"
    return BitPrefixes(column, lengths, width, notation)


@public
def binary(column: Hashable, *, bits: int) -> BitPrefixes:
    """Describe the binary tree of all whole numbers of so many bits, with a level for every bit.

    Parameters
    ----------
    column : hashable
        The column that holds the numbers.
    bits : int
        From 1 to 64.

    Returns
    -------
    BitPrefixes

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
            hint="it is how many bits a number has; of longer ones, release the leading 64 bits.",
        )
    return BitPrefixes(column, tuple(range(1, bits + 1)), bits)


def _bytes(keys: Keys, length: int) -> npt.NDArray[np.uint8]:
    """View prefixes of up to a number of characters as one row of bytes each."""
    return np.ascontiguousarray(keys).view(np.uint8).reshape(len(keys), length)


def _rising(name: str, lengths: Sequence[int], largest: int) -> tuple[int, ...]:
    """Check that lengths lead downwards, level by level."""
    listed = tuple(lengths) if isinstance(lengths, (list, tuple, range, np.ndarray)) else ()
    whole = bool(listed) and all(map(_is_whole, listed))
    if not whole or listed[0] < 1 or listed[-1] > largest or any(np.diff(listed) < 1):
        raise ArgumentError(
            name,
            f"must list rising whole numbers from 1 to {largest}, not {quote(lengths)}.",
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

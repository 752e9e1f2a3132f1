"""Hash tables of public whole numbers and texts, in plain arrays of numpy, where equality alone decides.

The time of a search depends on the labels and the value looked up alone; each table has a hash of its own.
"""

from __future__ import annotations

import importlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

__all__ = [
    "ByteStrings",
    "DenseTable",
    "HashTable",
    "TextTable",
    "WholeTable",
    "blocks",
    "once",
    "spread_bits",
]

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""Odd, and close to 2**64 over the golden ratio: its multiples spread evenly."""

_FIRST_BYTES = np.array([256**n - 1 for n in range(9)], dtype=np.uint64)
"""What keeps the first n bytes of a word."""

_BLOCK = 2**15
"""Rows that are looked up at a time: what is computed of them stays in the cache."""

_MAKING = RLock()

T = TypeVar("T")

_KEPT_WORDS = 4
"""How many words of each label are kept as numbers; labels that are longer are rare."""


def spread_bits(numbers: Words) -> Words:
    """Spread numbers over the 64-bit numbers, one to one; the highest bits depend on all bits."""
    return (numbers ^ (numbers >> np.uint64(32))) * _FACTOR


def _salt() -> np.uint64:
    """Draw a random salt per table; no result depends on it."""
    return np.uint64(secrets.randbits(64))


def blocks(n_rows: int) -> Iterator[slice]:
    """Divide rows into blocks."""
    return (slice(start, start + _BLOCK) for start in range(0, n_rows, _BLOCK))


def once(make: Callable[[Any], T]) -> T:
    """Make a public table of an object when it is first needed, once for all threads, and keep it there."""
    name = make.__name__

    def get(self: Any) -> T:
        if name not in self.__dict__:
            with _MAKING:
                if name not in self.__dict__:
                    self.__dict__[name] = make(self)
        made: T = self.__dict__[name]
        return made

    return cast(T, property(get, doc=make.__doc__))


class HashTable:
    """Where labels with given hashes may be found: an open table, at most half full, with linear probing."""

    def __init__(self, hashes: Words) -> None:
        n = len(hashes)
        bits = max(1, (2 * n - 1).bit_length()) if n else 1
        self._shift = np.uint64(64 - bits)
        slots = (hashes >> self._shift).astype(np.int64)
        order = np.argsort(slots, kind="stable")
        place = np.arange(n)
        slots = np.maximum.accumulate(slots[order] - place) + place  # one label to a slot
        self._labels = np.full(max(1 << bits, int(slots[-1]) + 1 if n else 0) + 1, -1, dtype=np.int32)
        self._labels[slots] = order  # the last slot stays empty

    def find(self, hashes: Words, same: Callable[[Any, Any], BoolArray]) -> Places:
        """Find the label of each hash for which ``same(rows, labels)`` is true; -1 if there is none."""
        slots = (hashes >> self._shift).astype(np.int64)
        found = self._labels[slots]
        rows = np.flatnonzero((found >= 0) & ~same(slice(None), found))
        while len(rows):
            slots[rows] += 1
            found[rows] = candidates = self._labels[slots[rows]]
            rows = rows[candidates >= 0]
            rows = rows[~same(rows, found[rows])]
        return found


class DenseTable:
    """Distinct whole numbers in a narrow range, in which others are found by their offset."""

    def __init__(self, numbers: IntArray) -> None:
        self._least = np.uint64(int(numbers.min()) % 2**64) if len(numbers) else np.uint64(0)
        offsets = (numbers.view(np.uint64) - self._least).view(np.int64)
        self._places = np.full(int(offsets.max(initial=-1)) + 2, -1, dtype=np.int32)
        self._places[offsets] = np.arange(len(numbers))

    def find(self, wanted: IntArray) -> Places:
        """Return the position of each number; -1 if it is not there."""
        # Modulo 2**64 numbers below the least have large offsets; the last place is that of no number.
        offsets = np.minimum(wanted.view(np.uint64) - self._least, np.uint64(len(self._places) - 1))
        found: Places = self._places.take(offsets.view(np.int64))
        return found


class WholeTable:
    """Distinct whole numbers, in which others are found."""

    def __init__(self, numbers: Words) -> None:
        self._numbers = numbers
        self._salt = _salt()
        self._table = HashTable(spread_bits(numbers ^ self._salt))

    def find(self, wanted: npt.NDArray[Any]) -> Places:
        """Return the position of each number; -1 if it is not there."""
        wanted = wanted.view(np.uint64)
        found = np.full(len(wanted), -1, dtype=np.int32)
        for block in blocks(len(wanted) if len(self._numbers) else 0):
            found[block] = self._find(wanted[block])
        return found

    def _find(self, wanted: Words) -> Places:
        hashes = spread_bits(wanted ^ self._salt)
        return self._table.find(hashes, lambda rows, labels: self._numbers[labels] == wanted[rows])


@dataclass(frozen=True)
class ByteStrings:
    """Byte strings in one array, which ends with at least 8 more bytes."""

    data: npt.NDArray[np.uint8]
    starts: IntArray
    lengths: IntArray

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> ByteStrings:
        """Copy texts."""
        lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
        data = np.frombuffer(b"".join([*texts, bytes(8)]), dtype=np.uint8)
        return cls(data, np.cumsum(lengths) - lengths, lengths)

    @classmethod
    def of_arrow(cls, texts: Any) -> ByteStrings:
        """Copy a pyarrow.Array of the type string or large_string; its missing values become any text."""
        if not len(texts):
            return cls.of([])
        _, ends, data = texts.buffers()
        width = np.int32 if str(texts.type) == "string" else np.int64
        ends = np.frombuffer(ends, dtype=width)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
        padded = np.zeros(int(ends[-1] - ends[0]) + 8, dtype=np.uint8)
        if data is not None:
            padded[:-8] = np.frombuffer(data, dtype=np.uint8)[ends[0] : ends[-1]]
        return cls(padded, ends[:-1] - ends[0], np.diff(ends))

    def to_arrow(self) -> Any:
        """Share the bytes with a pyarrow.LargeStringArray; the texts must follow one another."""
        arrow = importlib.import_module("pyarrow")
        ends = np.append(np.int64(0), np.cumsum(self.lengths))
        buffers = [None, arrow.py_buffer(ends), arrow.py_buffer(self.data)]
        return arrow.Array.from_buffers(arrow.large_string(), len(self), buffers)

    def __len__(self) -> int:
        """Number of texts."""
        return len(self.lengths)

    @property
    def longest(self) -> int:
        """The largest number of bytes of a text."""
        return int(self.lengths.max(initial=0))

    def part(self, rows: Any) -> ByteStrings:
        """Return some of the texts."""
        return ByteStrings(self.data, self.starts[rows], self.lengths[rows])

    @property
    def anywhere(self) -> Words:
        """The 8 bytes from each byte on, as a number, shape (len(data) - 7,)."""
        return np.ndarray(len(self.data) - 7, dtype="<u8", buffer=self.data, strides=(1,))

    def word(self, number: int) -> Words:
        """Read one word of 8 bytes of each text as a number; bytes after the end of a text are 0."""
        anywhere = self.anywhere
        start, rest = self.starts + 8 * number, self.lengths - 8 * number
        if rest.min(initial=8) >= 8:
            return anywhere[start]
        word: Words = anywhere[np.minimum(start, len(self.data) - 8)]
        word &= _FIRST_BYTES[np.clip(rest, 0, 8)]
        return word

    def words(self) -> list[Words]:
        """Read each text as words, as many as the longest text has."""
        return [self.word(number) for number in range(-(-self.longest // 8))]


def _hashes(salt: np.uint64, lengths: IntArray, words: Sequence[Words]) -> Words:
    """Hash each text by its words; words after its end have no effect, whatever other texts are there."""
    result = lengths.astype(np.uint64) * _FACTOR ^ salt
    for number, word in enumerate(words):
        result = np.where(lengths > 8 * number, spread_bits(result ^ word), result)
    return spread_bits(result)


class TextTable:
    """Distinct texts, in which others are found."""

    def __init__(self, texts: ByteStrings) -> None:
        self._salt = _salt()
        self._lengths = texts.lengths.astype(np.int32)
        self._longest = texts.longest
        n_words = -(-self._longest // 8)
        self._words = [texts.word(number) for number in range(min(n_words, _KEPT_WORDS))]
        self._texts = texts if n_words > _KEPT_WORDS else None
        hashes = np.zeros(len(texts), dtype=np.uint64)
        for block in blocks(len(texts)):
            part = texts.part(block)
            hashes[block] = _hashes(self._salt, part.lengths, part.words())
        self._table = HashTable(hashes)

    def find(self, wanted: ByteStrings) -> Places:
        """Return the position of each text; -1 if it is not there."""
        found = np.full(len(wanted), -1, dtype=np.int32)
        for block in blocks(len(wanted) if len(self._lengths) else 0):
            part = wanted.part(block)
            if part.longest <= self._longest:
                found[block] = self._find(part)
            else:  # longer texts are not read
                rows = block.start + np.flatnonzero(part.lengths <= self._longest)
                found[rows] = self._find(wanted.part(rows))
        return found

    def _find(self, wanted: ByteStrings) -> Places:
        words = wanted.words()
        lengths = wanted.lengths.astype(np.int32)

        def same(rows: Any, labels: Places) -> BoolArray:
            equal: BoolArray = self._lengths[labels] == lengths[rows]
            for mine, own in zip(self._words, words, strict=False):
                equal &= mine[labels] == own[rows]
            if self._texts is not None and len(words) > _KEPT_WORDS:
                some = np.flatnonzero(equal & (lengths[rows] > 8 * _KEPT_WORDS))
                rest = self._texts.part(labels[some])
                for number in range(_KEPT_WORDS, len(words)):
                    equal[some] &= rest.word(number) == words[number][rows][some]
            return equal

        return self._table.find(_hashes(self._salt, wanted.lengths, words), same)

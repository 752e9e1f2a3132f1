"""Canonical forms of many labels, in an array instead of one Python object each."""

from __future__ import annotations

import operator
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, overload

__all__ = ["ArrayForms", "blocks"]

_BLOCK = 2**16
"""Forms that are made into Python objects at a time."""


class ArrayForms(Sequence[Hashable]):
    """Canonical forms that are all numbers, or all text, in an array; a sequence like a tuple of the forms.

    The array has whole numbers or floats of numpy, or texts in Arrow, and nothing missing. Python objects are
    made only of the forms that are asked for.
    """

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, place: int) -> Hashable: ...
    @overload
    def __getitem__(self, place: slice) -> ArrayForms: ...
    def __getitem__(self, place: int | slice) -> Hashable:
        """Return one form, or those of a slice."""
        if isinstance(place, slice):
            return ArrayForms(self.array[place])
        (form,) = self.array[range(len(self))[place] :][:1].tolist()
        return form  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[Hashable]:
        for start in range(0, len(self), _BLOCK):
            yield from self.array[start : start + _BLOCK].tolist()

    def __contains__(self, form: object) -> bool:
        """Whether a form is among these; others than numbers and text never are."""
        return not isinstance(form, tuple) and super().__contains__(form)

    def __eq__(self, other: object) -> bool:
        """Compare with any sequence of forms."""
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(map(operator.eq, self, other))

    def __repr__(self) -> str:
        return f"ArrayForms({self.array!r})"


def blocks(forms: Sequence[Hashable]) -> Iterator[list[Hashable]]:
    """Yield the forms, some at a time."""
    for start in range(0, len(forms), _BLOCK):
        yield list(forms[start : start + _BLOCK])

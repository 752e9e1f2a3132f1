"""Everything this package raises on purpose.

Each error states the fact, names the argument or columns at fault, and ends in a hint that says what
would work. The facts are attributes too, so that a program need not parse the text. No message ever
holds anything computed from records. An argument may hold records by a slip, as when ``frame["person"]``
is passed for ``"person"``; so arguments are quoted by `told` alone, which quotes what was typed by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sized
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Final

import numpy as np

__all__ = [
    "ArgumentError",
    "ColumnsError",
    "DPTreeError",
    "DomainError",
    "MissingExtraError",
    "is_name",
    "listed",
    "naming",
    "told",
]

MOST_ENTRIES: Final = 8
"""Longer lists are not typed by hand as a rule, and may be records."""

_MOST_CHARACTERS: Final = 80
_PLAIN: Final = frozenset((type(None), bool, int, float, complex, str, Decimal, Fraction, range))
"""These very types: a subclass may print what it likes."""


def told(argument: object, *, of: Sized = (), most: int = MOST_ENTRIES) -> str:
    """Quote an argument if it is plain and short, and tell only its type otherwise.

    Plain are single values, cut after 80 characters, and lists and tuples of at most `most` of them in
    all. Series, arrays, frames, expressions, mappings and sets are never printed, nor is an object with
    a ``__repr__`` of its own. An entry `of` a long list is not quoted either.

    Examples
    --------
    >>> print(told("person"), told((0, 18)), told({"Ann": 3}), told(list(range(9))))
    'person' (0, 18) an object of type dict an object of type list
    """
    if len(of) > most:
        return _kind(argument)
    if type(argument) in _PLAIN or (
        isinstance(argument, date | time | timedelta | np.generic) and not isinstance(argument, np.void)
    ):
        return _cut(argument)
    if isinstance(argument, list | tuple) and type(argument) in (list, tuple) and len(argument) <= most:
        within = most // (len(argument) + 1)
        inner = ", ".join(told(entry, most=within) for entry in argument)
        if isinstance(argument, list):
            return f"[{inner}]"
        return f"({inner},)" if len(argument) == 1 else f"({inner})"
    return _kind(argument)


def listed(names: Iterable[object]) -> str:
    """List names that are public, such as those of levels, of columns or of dimensions: the first of them.

    Examples
    --------
    >>> listed(["total", "state"]), listed(range(100))
    ("['total', 'state']", '[0, 1, 2, 3, 4, 5, 6, 7, ...]')
    """
    first = list(islice(names, MOST_ENTRIES + 1))
    more = ["..."] if len(first) > MOST_ENTRIES else []
    return f"[{', '.join([*map(told, first[:MOST_ENTRIES]), *more])}]"


def is_name(value: object) -> bool:
    """Whether a value can name a column: it is hashable and equals itself, unlike columns and expressions."""
    try:
        hash(value)
        return bool(value == value)
    except Exception:  # of several libraries
        return False


def naming(argument: str, example: str, value: object, otherwise: str | None = None) -> str:
    """Give a hint on how to name a column, if its values were passed for its name; or another hint."""
    if is_name(value):
        return otherwise or f'for example "{example}".'
    return f'name the column, as in {argument}="{example}", not frame["{example}"].'


def _kind(argument: object) -> str:
    """Tell the type of an argument."""
    if isinstance(argument, type):
        return f"the class {argument.__name__}"
    return f"an object of type {type(argument).__name__}"


def _cut(plain: object) -> str:
    """Return the repr of a plain value, shortened in the end."""
    try:
        text = repr(plain)
    except ValueError:  # a whole number of too many digits
        return _kind(plain)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."


class DPTreeError(Exception):
    """Base of every error this package raises on purpose.

    Attributes
    ----------
    fact : str
        What is wrong.
    hint : str
        What would work instead.
    """

    def __init__(self, fact: str, *, hint: str) -> None:
        super().__init__(f"{fact}\nHint: {hint}")
        self.fact = fact
        self.hint = hint


class ArgumentError(DPTreeError, ValueError):
    """An argument that cannot be used.

    Attributes
    ----------
    argument : str
        The name of the argument.
    """

    def __init__(self, argument: str, fact: str, *, hint: str) -> None:
        super().__init__(f"`{argument}` {fact}", hint=hint)
        self.argument = argument


class DomainError(ArgumentError):
    """A public domain that is not the leaves of one tree."""

    def __init__(self, fact: str, *, hint: str) -> None:
        super().__init__("domain", fact, hint=hint)


class ColumnsError(ArgumentError, KeyError):
    """Columns that are missing, repeated or of a kind that cannot be matched.

    Attributes
    ----------
    columns : tuple
        Every column at fault. The message lists them if they are few.
    """

    def __init__(self, argument: str, fact: str, *, columns: Iterable[object], hint: str) -> None:
        self.columns = tuple(columns)
        names = ", ".join(map(told, self.columns))
        if len(self.columns) > MOST_ENTRIES:  # perhaps no names at all but a column's values
            names = f"more than {MOST_ENTRIES} names, which the attribute `columns` of this error lists"
        super().__init__(argument, f"{fact}: {names}.", hint=hint)

    def __str__(self) -> str:
        """Return the message itself (a KeyError would print its repr)."""
        return str(self.args[0])


class MissingExtraError(DPTreeError, ImportError):
    """An optional package that the call needs and that is not installed.

    Attributes
    ----------
    package : str
        The package that is missing.
    extra : str
        The extra of pandas_dptree that installs it.
    """

    def __init__(self, what: str, *, package: str, extra: str, hint: str = "") -> None:
        install = f'pip install "pandas_dptree[{extra}]"'
        super().__init__(
            f"{what} needs the package {package!r}, which is not installed.",
            hint=f"{install}{'; ' + hint if hint else ''}.",
        )
        self.package = package
        self.extra = extra

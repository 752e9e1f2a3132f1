"""Everything this package raises, or warns of, on purpose.

Each error states the fact, names the argument or columns at fault, and ends in a hint that says what
would work. The facts are attributes too, so that a program need not parse the text. No message ever
holds anything computed from records. An argument may hold records by a slip, as when ``frame["person"]``
is passed for ``"person"``; so arguments are quoted by `quote` alone, which quotes what was typed by hand.
"""

from __future__ import annotations

import difflib
import os
import sys
import warnings
from collections.abc import Iterable, Sequence, Sized
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Any, Final

import numpy as np

__all__ = [
    "ArgumentError",
    "CallError",
    "ColumnsError",
    "DPTreeError",
    "DPTreeWarning",
    "DomainError",
    "MissingExtraError",
    "check_choice",
    "did_you_mean",
    "is_name",
    "kind_of_object",
    "listed",
    "naming",
    "quote",
    "warn",
]

MOST_ENTRIES: Final = 8
"""Longer lists are not typed by hand as a rule, and may be records."""

_MOST_CHARACTERS: Final = 80
_PLAIN: Final = frozenset((type(None), bool, int, float, complex, str, Decimal, Fraction, range))
"""These very types: a subclass may print what it likes."""


def quote(argument: object, *, of: Sized = (), most: int = MOST_ENTRIES) -> str:
    """Quote an argument if it is plain and short, and tell only its type otherwise.

    Plain are single values, cut after 80 characters, and lists and tuples of at most `most` of them in
    all. Series, arrays, frames, expressions, mappings and sets are never printed, nor is an object with
    a ``__repr__`` of its own. An entry `of` a long list is not quoted either.

    Examples
    --------
    >>> print(quote("person"), quote((0, 18)), quote({"Ann": 3}), quote(list(range(9))))
    'person' (0, 18) a dict a list
    """
    if len(of) > most:
        return kind_of_object(argument)
    if type(argument) in _PLAIN or (
        isinstance(argument, date | time | timedelta | np.generic) and not isinstance(argument, np.void)
    ):
        return _cut(argument)
    if isinstance(argument, list | tuple) and type(argument) in (list, tuple) and len(argument) <= most:
        within = most // (len(argument) + 1)
        inner = ", ".join(quote(entry, most=within) for entry in argument)
        if isinstance(argument, list):
            return f"[{inner}]"
        return f"({inner},)" if len(argument) == 1 else f"({inner})"
    return kind_of_object(argument)


def listed(names: Iterable[object]) -> str:
    """List names that are public, such as those of levels, of columns or of dimensions: the first of them.

    Examples
    --------
    >>> listed(["total", "state"]), listed(range(100))
    ("['total', 'state']", '[0, 1, 2, 3, 4, 5, 6, 7, ...]')
    """
    first = list(islice(names, MOST_ENTRIES + 1))
    more = ["..."] if len(first) > MOST_ENTRIES else []
    return f"[{', '.join([*map(quote, first[:MOST_ENTRIES]), *more])}]"


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


def did_you_mean(missing: Iterable[object], known: Iterable[object], *, alike: float = 0.6) -> str:
    """Suggest public names close to those that are missing, as the beginning of a hint; empty without any.

    What is missing may be a column of records that was passed for its name, so a long list is not compared at
    all. Names of columns are public: they are part of the schema. But where a file without a header was read,
    they are the first record. So of the columns of records only those are suggested that are `alike` to 1:
    they differ in case and in blanks around them alone, and tell nothing that was not asked for.

    Examples
    --------
    >>> did_you_mean(["day", "Regoin"], ["Day", "Region", "City"])
    "did you mean 'Day' for 'day' and 'Region' for 'Regoin'? "
    """
    wanted = list(islice(missing, MOST_ENTRIES + 1))
    if len(wanted) > MOST_ENTRIES:
        return ""
    candidates = {_folded(name): name for name in known}
    meant = [
        quote(candidates[match]) + (f" for {quote(name)}" if len(wanted) > 1 else "")
        for name in wanted
        for match in difflib.get_close_matches(_folded(name), candidates, n=1, cutoff=alike)
    ]
    return f"did you mean {' and '.join(meant)}? " if meant else ""


def _folded(name: object) -> str:
    """Write a name as it is compared: case and blanks around it do not matter."""
    return name.strip().casefold() if isinstance(name, str) else quote(name)


def kind_of_object(argument: object) -> str:
    """Name the type of an argument, in a phrase.

    Examples
    --------
    >>> kind_of_object(3), kind_of_object([]), kind_of_object(None), kind_of_object(int)
    ('an int', 'a list', 'None', 'the class int')
    """
    if argument is None:
        return "None"
    if isinstance(argument, type):
        return f"the class {argument.__name__}"
    name = type(argument).__name__
    return f"{'an' if name[:1].lower() in 'aeio' or name == 'ndarray' else 'a'} {name}"


def _cut(plain: object) -> str:
    """Return the repr of a plain value, shortened in the end."""
    try:
        text = repr(plain)
    except ValueError:  # a whole number of too many digits
        return kind_of_object(plain)
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
        names = ", ".join(map(quote, self.columns))
        if len(self.columns) > MOST_ENTRIES:  # perhaps no names at all but a column's values
            names = f"more than {MOST_ENTRIES} names, which the attribute `columns` of this error lists"
        super().__init__(argument, f"{fact}: {names}.", hint=hint)

    def __str__(self) -> str:
        """Return the message itself (a KeyError would print its repr)."""
        return str(self.args[0])


class CallError(ArgumentError, TypeError):
    """An argument that a function does not take, or one that it needs and did not get."""


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


class DPTreeWarning(UserWarning):
    """A release that works, and that is hardly what was wanted.

    It is given for a table in which next to nothing is, for a privacy loss that protects nobody, and for a
    released table that is taken for records; and computed from arguments and released numbers alone.

    Attributes
    ----------
    released : object
        What was released, if the warning is about that; otherwise None. So nothing is lost where a filter
        makes an error of the warning: by then the budget is spent.
    """

    released: Any = None


_PACKAGE: Final = os.path.dirname(__file__) + os.sep


def warn(fact: str, *, hint: str, released: Any = None) -> None:
    """Raise a `DPTreeWarning` that points at the line outside of this package which led here."""
    message = DPTreeWarning(f"{fact}\nHint: {hint}")
    message.released = released
    level, frame = 2, sys._getframe(1)
    while frame.f_code.co_filename.startswith(_PACKAGE) and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)


def check_choice(argument: str, value: object, choices: Sequence[str], *, or_else: str = "") -> None:
    """Refuse a value that is none of some choices, which are texts; the error names the argument."""
    if not isinstance(value, str) or value not in choices:
        made = f"make one of the class, {value.__name__}(...), or " if isinstance(value, type) else ""
        raise ArgumentError(
            argument,
            f"is unknown: {quote(value)}.",
            hint=f"{made}choose one of {', '.join(repr(choice) for choice in choices)}{or_else}.",
        )

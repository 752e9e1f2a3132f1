"""Errors and warnings of this package, and safe quoting of arguments in their messages.

Each error states the fact, names the argument or columns at fault, ends in a hint, and has the facts as
attributes. No message contains anything computed from records; an argument may be records by mistake, so it
is quoted only by `quote`, which quotes nothing but short literals.
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
    "ChargedError",
    "ColumnsError",
    "DPTreeError",
    "DPTreeWarning",
    "DomainError",
    "InsufficientBudgetError",
    "LedgerError",
    "LedgerIntegrityError",
    "MissingExtraError",
    "RefusedReleaseError",
    "RepeatedReleaseError",
    "check_choice",
    "did_you_mean",
    "is_name",
    "kind_of_object",
    "listed",
    "naming",
    "quote",
    "visible",
    "warn",
    "why_unreadable",
]

MOST_ENTRIES: Final = 8
"""Longer lists may be records, since they are rarely typed by hand."""

_MOST_CHARACTERS: Final = 80
_PLAIN: Final = frozenset((type(None), bool, int, float, complex, str, Decimal, Fraction, range))
"""Exactly these types: the repr of a subclass may be anything."""


def quote(argument: object, *, of: Sized = (), most: int = MOST_ENTRIES) -> str:
    """Quote an argument if it is plain and short; otherwise return only its type.

    Plain are single values, cut after 80 characters, and lists and tuples of at most `most` of them in total.
    Series, arrays, frames, expressions, mappings, sets, and objects with a ``__repr__`` of their own are
    never printed. Nor is an entry of a long list, passed as `of`.

    >>> print(quote("person"), quote((0, 18)), quote({"Ann": 3}), quote(list(range(9))))
    'person' (0, 18) a dict a list
    """
    if len(of) > most:
        return kind_of_object(argument)
    if type(argument) in _PLAIN or (
        isinstance(argument, date | time | timedelta | np.generic) and not isinstance(argument, np.void)
    ):
        return _short_repr(argument)
    if isinstance(argument, list | tuple) and type(argument) in (list, tuple) and len(argument) <= most:
        within = most // (len(argument) + 1)
        inner = ", ".join(quote(entry, most=within) for entry in argument)
        if isinstance(argument, list):
            return f"[{inner}]"
        return f"({inner},)" if len(argument) == 1 else f"({inner})"
    return kind_of_object(argument)


def listed(names: Iterable[object]) -> str:
    """List the first public names, such as those of levels, columns or dimensions."""
    first = list(islice(names, MOST_ENTRIES + 1))
    more = ["..."] if len(first) > MOST_ENTRIES else []
    return f"[{', '.join([*map(quote, first[:MOST_ENTRIES]), *more])}]"


def is_name(value: object) -> bool:
    """Whether a value can name a column: it is hashable and equals itself, unlike columns and expressions."""
    try:
        hash(value)
        return bool(value == value)
    except Exception:  # several libraries, each with errors of its own
        return False


def naming(argument: str, example: str, value: object, otherwise: str | None = None) -> str:
    """Return a hint on how to name a column, if its values were passed instead; or another hint."""
    if is_name(value):
        return otherwise or f'for example "{example}".'
    return f'name the column, as in {argument}="{example}", not frame["{example}"].'


def did_you_mean(missing: Iterable[object], known: Iterable[object], *, cutoff: float = 0.6) -> str:
    """Suggest public names similar to missing ones, as the beginning of a hint; empty if there are none.

    A missing name may be a whole column of records by mistake, so long lists are not compared. The names of
    columns may be the first record of a file without a header: for them `cutoff` is 1, so only names that
    differ in case and surrounding blanks are suggested, which reveals nothing beyond what was passed.
    """
    wanted = list(islice(missing, MOST_ENTRIES + 1))
    if len(wanted) > MOST_ENTRIES:
        return ""
    candidates = {_folded(name): name for name in known}
    for parts in (name.split(",") for name in wanted if isinstance(name, str) and "," in name):
        if {*map(_folded, parts)} <= {*candidates}:
            return f"did you mean {listed(candidates[_folded(part)] for part in parts)}, each by itself? "
    meant = [
        quote(candidates[match]) + (f" for {quote(name)}" if len(wanted) > 1 else "")
        for name in wanted
        for match in _similar(_folded(name), candidates, cutoff)
    ]
    return f"did you mean {' and '.join(meant)}? " if meant else ""


def _similar(name: str, candidates: Iterable[str], cutoff: float) -> list[str]:
    """Find the most similar candidate; one of which at least three letters were written comes first."""
    begun = [each for each in candidates if each.startswith(name)] if len(name.strip("-")) > 2 else []
    return (
        begun[:1]
        if begun and cutoff < 1
        else difflib.get_close_matches(name, [*candidates], n=1, cutoff=cutoff)
    )


def _folded(name: object) -> str:
    """Normalize a name for comparison: ignore case and surrounding blanks."""
    return name.strip().casefold() if isinstance(name, str) else quote(name)


def why_unreadable(path: str | os.PathLike[str], otherwise: str) -> str:
    """Say why a file cannot be read, as far as opening it shows; or else what is known."""
    try:
        with open(path, "rb") as file:
            return otherwise if file.read(1) else "it is empty"
    except FileNotFoundError:
        return "it does not exist"
    except IsADirectoryError:
        return "it is a folder"
    except PermissionError:
        return "you may not read it"
    except OSError as error:
        return error.strerror or otherwise


def kind_of_object(argument: object) -> str:
    """Return a phrase for the type of an argument, such as "an int", "None" or "the class int"."""
    if argument is None:
        return "None"
    if isinstance(argument, type):
        return f"the class {argument.__name__}"
    name = type(argument).__name__
    return f"{'an' if name[:1].lower() in 'aeio' or name == 'ndarray' else 'a'} {name}"


def _short_repr(plain: object) -> str:
    """Return the repr of a plain value, cut after 80 characters."""
    try:
        text = repr(plain)
    except ValueError:  # an integer with too many digits
        return kind_of_object(plain)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."


def visible(text: object, *, lines: bool = False) -> str:
    """Escape what a terminal would obey or reorder, as ``repr`` does; `lines` keeps line feeds.

    Others may have chosen the text, and an escape sequence, a carriage return, a line break or a change of
    direction could hide a line of a report, or forge one.
    """
    kept = "\n" if lines else ""
    return "".join(
        each if each.isprintable() or each in kept else each.encode("unicode_escape").decode()
        for each in str(text)
    )


class DPTreeError(Exception):
    """Base class of all errors that this package raises on purpose.

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
    """A public domain that does not consist of the leaves of one tree."""

    def __init__(self, fact: str, *, hint: str) -> None:
        super().__init__("domain", fact, hint=hint)


class ColumnsError(ArgumentError, KeyError):
    """Columns that are missing, repeated or of an unsuitable kind.

    Attributes
    ----------
    columns : tuple
        Every column at fault. The message lists them if they are few.
    """

    def __init__(self, argument: str, fact: str, *, columns: Iterable[object], hint: str) -> None:
        self.columns = tuple(columns)
        names = ", ".join(map(quote, self.columns))
        if len(self.columns) > MOST_ENTRIES:  # these may be values of a column
            names = f"more than {MOST_ENTRIES} names, listed in the attribute `columns` of this error"
        super().__init__(argument, f"{fact}: {names}.", hint=hint)

    def __str__(self) -> str:
        """Return the message itself (a KeyError would print its repr)."""
        return str(self.args[0])


class CallError(ArgumentError, TypeError):
    """An argument that a function does not accept, or a required one that is missing."""


class MissingExtraError(DPTreeError, ImportError):
    """An optional package that the call needs but that is not installed.

    Attributes
    ----------
    package : str
        The missing package.
    """

    def __init__(self, what: str, *, package: str, hint: str = "") -> None:
        super().__init__(
            f"{what} needs the package {package!r}, which is not installed.",
            hint=f"pip install {package}{'; ' + hint if hint else ''}.",
        )
        self.package = package


class LedgerError(DPTreeError):
    """A ledger that cannot be used, or a release that it refuses.

    When it is raised by a release, nothing was charged, unless the message says otherwise, and nothing was
    released.
    """


class RefusedReleaseError(LedgerError):
    """A release that an account refuses: nothing was charged, and no records were counted."""


class InsufficientBudgetError(RefusedReleaseError):
    """A release that would spend more than what is left of an account.

    Attributes
    ----------
    account : str
        The name of the account.
    requested : Balance
        What the release would spend.
    remaining : Balance
        What is left for it.
    """

    def __init__(self, fact: str, *, account: str, requested: Any, remaining: Any, hint: str) -> None:
        super().__init__(fact, hint=hint)
        self.account = account
        self.requested = requested
        self.remaining = remaining


class RepeatedReleaseError(RefusedReleaseError):
    """A release that was charged to the same account before: the same plan, or one for the same table.

    Attributes
    ----------
    account : str
        The name of the account.
    number : int or None
        The number of the earlier charge; None if both are in the same call.
    requested : str
        When the earlier release was requested, in UTC as in ISO 8601.
    released : bool
        Whether the earlier release is known to have an output. If not, the process may have ended before it.
    """

    def __init__(
        self, fact: str, *, account: str, number: int | None, requested: str, released: bool, hint: str
    ) -> None:
        super().__init__(fact, hint=hint)
        self.account = account
        self.number = number
        self.requested = requested
        self.released = released


class ChargedError(LedgerError):
    """A release that failed after it was charged, so that there is no table. Its cause is the failure.

    Attributes
    ----------
    charges : tuple of Charge
        What was charged.
    """

    def __init__(self, fact: str, *, charges: tuple[Any, ...], hint: str) -> None:
        super().__init__(fact, hint=hint)
        self.charges = charges


class LedgerIntegrityError(LedgerError):
    """A ledger whose entries, sums or chain of digests contradict each other.

    Attributes
    ----------
    problems : tuple of str
        Everything that was found. The message lists the first.
    """

    def __init__(self, fact: str, *, problems: Iterable[str], hint: str) -> None:
        self.problems = tuple(problems)
        first = [*self.problems[:MOST_ENTRIES], *["..."] * (len(self.problems) > MOST_ENTRIES)]
        super().__init__("\n- ".join([fact, *first]), hint=hint)


class DPTreeWarning(UserWarning):
    """A valid release that is probably not what the user wanted.

    Given for a table that is nearly empty or doubtful in other ways, for a privacy loss that protects nobody,
    and for a released table that is used as records. Computed from arguments and released numbers alone.

    Attributes
    ----------
    released : object
        The release that the warning is about, else None. So it is not lost if a filter turns the warning into
        an error: by then the budget is spent.
    """

    released: Any = None


_PACKAGE: Final = os.path.dirname(__file__) + os.sep


def warn(fact: str, *, hint: str, released: Any = None) -> None:
    """Issue a `DPTreeWarning` that points at the calling line outside of this package."""
    message = DPTreeWarning(f"{fact}\nHint: {hint}")
    message.released = released
    level, frame = 2, sys._getframe(1)
    while frame.f_code.co_filename.startswith(_PACKAGE) and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)


def check_choice(argument: str, value: object, choices: Sequence[str], *, or_else: str = "") -> None:
    """Check that a value is one of the given strings; the error names the argument."""
    if not isinstance(value, str) or value not in choices:
        instance = f"pass an instance, {value.__name__}(...), or " if isinstance(value, type) else ""
        raise ArgumentError(
            argument,
            f"is unknown: {quote(value)}.",
            hint=f"{instance}choose one of {', '.join(repr(choice) for choice in choices)}{or_else}.",
        )

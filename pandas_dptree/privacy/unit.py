"""Whom a release protects: the column that names them, and how many rows of each are kept."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from enum import Enum
from typing import Final

import numpy as np

from pandas_dptree.errors import ArgumentError, is_name, naming, quote

__all__ = ["ROWS", "EachRow", "check_rows_of_counts", "check_rows_of_records", "protected"]


MOST_ROWS: Final = 2**60
"""Rows of one unit. Twice that, as many as change when it is replaced, is no larger than any count can be."""


class EachRow(Enum):
    """The type of `ROWS`, which is its only member: copies and pickles of it are `ROWS` itself."""

    ROWS = "rows"

    def __repr__(self) -> str:
        """Print what a user writes."""
        return "dpt.ROWS"

    __str__ = __repr__


ROWS: Final = EachRow.ROWS
"""As `privacy_unit`: each row is a unit of its own. That is the default, stated explicitly."""


def protected(
    privacy_unit: Hashable | None, max_contributions: object, *, taken: Collection[Hashable] = ()
) -> tuple[Hashable | None, int]:
    """Give the column that names whom to protect, and how many rows of each are kept.

    Every kind of plan asks this when it is made, and nothing else says what `ROWS`, or None, stands for.

    Parameters
    ----------
    privacy_unit : hashable or ROWS or None
        The name of the column; `ROWS` or None where each row is a unit of its own.
    max_contributions : int or None
        How many rows of one unit are kept. None is one row, where each row is a unit of its own. For other
        units it is an error: how many rows they have is not known, so that dropping some is a choice.
    taken : collection of hashable
        The columns that are keys or that are counted, none of which can be the unit.

    Returns
    -------
    privacy_unit : hashable or None
        None where each row is a unit of its own.
    max_contributions : int
        At least 1.

    Raises
    ------
    ArgumentError
        If one of them cannot be used, or a unit is named without a bound on its rows.

    Examples
    --------
    >>> protected(None, None), protected(ROWS, None), protected("person", 3)
    ((None, 1), (None, 1), ('person', 3))
    """
    if privacy_unit is None or privacy_unit is ROWS:
        return None, 1 if max_contributions is None else _whole(max_contributions)
    if not is_name(privacy_unit) or privacy_unit in taken:
        raise ArgumentError(
            "privacy_unit",
            f"must name a column that is neither a key nor counted, not {quote(privacy_unit)}.",
            hint=naming(
                "privacy_unit",
                "person",
                privacy_unit,
                "whom a row belongs to cannot also say where it is counted; copy the column if so.",
            ),
        )
    if max_contributions is None:
        raise ArgumentError(
            "max_contributions",
            f"must be given with `privacy_unit`, here {quote(privacy_unit)}: it bounds how many rows of one "
            "unit are kept.",
            hint="for example max_contributions=3. Noise grows in proportion to it; and of a unit with more "
            "rows, those beyond are dropped at random, so that the table counts less than all rows.",
        )
    return privacy_unit, _whole(max_contributions)


def check_rows_of_records(privacy_unit: Hashable | None, max_contributions: int) -> None:
    """Refuse to keep several rows of each unit of records that do not tell whose they are.

    (Where a caller has counted already, and answers for the bound, nobody needs to be told.)

    Raises
    ------
    ArgumentError
        If there is a bound without a unit.
    """
    if privacy_unit is None and max_contributions > 1:
        raise ArgumentError(
            "max_contributions",
            "needs a `privacy_unit`: rows of a frame cannot be bounded without knowing whose they are.",
            hint='name the column, for example privacy_unit="person_id".',
        )


def check_rows_of_counts(privacy_unit: Hashable | None) -> None:
    """Refuse counts that were made already where the rows of each unit have to be bounded first.

    Raises
    ------
    ArgumentError
        If there is a unit.
    """
    if privacy_unit is not None:
        raise ArgumentError(
            "data",
            "holds counts, in which nobody can tell the rows of one privacy unit.",
            hint="plan with max_contributions alone, and answer for it; or release the records.",
        )


def _whole(max_contributions: object) -> int:
    is_whole = isinstance(max_contributions, int | np.integer) and not isinstance(max_contributions, bool)
    if not is_whole or not 1 <= max_contributions <= MOST_ROWS:  # type: ignore[operator]
        raise ArgumentError(
            "max_contributions",
            f"must be a whole number of at least 1, and at most 2**60, not {quote(max_contributions)}.",
            hint="it is how many rows of one unit are kept, for example 3.",
        )
    return int(max_contributions)  # type: ignore[call-overload, no-any-return]

"""The privacy unit: the column that identifies it, and the number of rows kept per unit."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from enum import Enum
from typing import Final

import numpy as np

from pandas_dptree.errors import ArgumentError, is_name, naming, quote

__all__ = [
    "MOST_ROWS", "ROWS", "EachRow", "check_rows_of_counts", "check_rows_of_records", "protected",
    "whole_rows",
]  # fmt: skip


MOST_ROWS: Final = 2**60
"""Largest number of rows of one unit. If it is replaced, twice as many change: still a valid count."""


class EachRow(Enum):
    """The type of `ROWS`, its only member. Copies and pickles of it are `ROWS` itself."""

    ROWS = "rows"

    def __repr__(self) -> str:
        """Return the text that a user types."""
        return "dpt.ROWS"

    __str__ = __repr__


ROWS: Final = EachRow.ROWS
"""As `privacy_unit`: each row is a unit of its own. That is the default, stated explicitly."""


def protected(
    privacy_unit: Hashable | None, max_contributions: object, *, taken: Collection[Hashable] = ()
) -> tuple[Hashable | None, int]:
    """Return the column of the privacy unit, None if it is the row, and the number of rows kept per unit.

    Every kind of plan calls this when it is made; only this function interprets `ROWS` and None. Without a
    column, None rows mean one; with one it is an error: the number of a unit's rows is unknown, so dropping
    some must be a choice. `taken` holds the columns that are keys or counted, none of which can be the unit.
    """
    if privacy_unit is None or privacy_unit is ROWS:
        return None, 1 if max_contributions is None else whole_rows("max_contributions", max_contributions)
    if not is_name(privacy_unit) or privacy_unit in taken:
        raise ArgumentError(
            "privacy_unit",
            f"must name a column that is neither a key nor counted, not {quote(privacy_unit)}.",
            hint=naming(
                "privacy_unit",
                "person",
                privacy_unit,
                "the privacy unit cannot also be a key or a counted column; copy the column if needed.",
            ),
        )
    if max_contributions is None:
        raise ArgumentError(
            "max_contributions",
            f"must be given with `privacy_unit`, here {quote(privacy_unit)}: it bounds how many rows of one "
            "unit are kept.",
            hint="for example max_contributions=3. Noise is proportional to it. Excess rows of a unit are "
            "dropped at random, so the table then counts fewer than all rows.",
        )
    return privacy_unit, whole_rows("max_contributions", max_contributions)


def check_rows_of_records(privacy_unit: Hashable | None, max_contributions: int) -> None:
    """Refuse a bound above 1 on the rows of each unit for records without a column for the unit."""
    if privacy_unit is None and max_contributions > 1:
        raise ArgumentError(
            "max_contributions",
            "needs a `privacy_unit`: rows of a frame cannot be bounded without knowing their unit.",
            hint='name the column, for example privacy_unit="person_id".',
        )


def check_rows_of_counts(privacy_unit: Hashable | None) -> None:
    """Refuse counts if the rows of each unit must be bounded first."""
    if privacy_unit is not None:
        raise ArgumentError(
            "data",
            "holds counts, in which the rows of one privacy unit cannot be identified.",
            hint="plan with max_contributions alone if the counts respect it, or release the records.",
        )


def whole_rows(argument: str, most: object) -> int:
    """Return a bound on the rows of a unit, and check that it is a whole number."""
    where = "" if argument == "max_contributions" else " in one node"
    is_whole = isinstance(most, int | np.integer) and not isinstance(most, bool)
    if not is_whole or not 1 <= most <= MOST_ROWS:  # type: ignore[operator]
        raise ArgumentError(
            argument,
            f"must be a whole number of at least 1, and at most 2**60, not {quote(most)}.",
            hint=f"it is the number of rows kept per unit{where}, for example 3.",
        )
    return int(most)  # type: ignore[call-overload, no-any-return]

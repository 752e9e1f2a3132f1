"""Columns of any type → places in a public list. Secret: nothing here may leave the package."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from pandas_dptree.errors import ColumnsError, quote
from pandas_dptree.hierarchy.columns import ALL_MISSING, ANY, kind_of
from pandas_dptree.hierarchy.levels.read_as import Labels

__all__ = ["as_text", "check_labels"]


def check_labels(columns: Mapping[Hashable, tuple[Labels, Any]], argument: str) -> None:
    """Refuse columns whose type tells that no value can equal a label.

    Parameters
    ----------
    columns : mapping
        For the name of each column, its public labels, and its pandas or narwhals data type.
    argument : str
        Where the columns stand.

    Raises
    ------
    ColumnsError
        One that lists them all.
    """
    kinds = {
        name: (ANY if dtype == ALL_MISSING else kind_of(dtype), kind_of(wanted.labels.dtype))
        for name, (wanted, dtype) in columns.items()
    }
    unlike = {name: pair for name, pair in kinds.items() if pair[0] != pair[1] and ANY not in pair}
    if unlike:
        codes = [name for name, pair in unlike.items() if {*pair} == {"numbers", "text"}]
        dates = [name for name, pair in unlike.items() if {*pair} == {"times", "text"}]
        flags = [name for name, pair in unlike.items() if {*pair} == {"numbers", "booleans"}]
        ways = ["booleans to numbers with astype(int)"] if flags else []
        ways += ["text to dates with pd.to_datetime"] if dates else []
        ways += [as_text(codes)] if len(flags) + len(dates) < len(unlike) else []
        pairs = "; ".join(
            f"{quote(name)} holds {kind}, not {public}" for name, (kind, public) in unlike.items()
        )
        raise ColumnsError(
            argument,
            f"has keys of another type than the domain ({pairs})",
            columns=unlike,
            hint=f"convert one of the two, {'; '.join(ways)}.",
        )


def as_text(numbers: Sequence[Hashable]) -> str:
    """Tell how columns become text; those of numbers may be codes that have lost what they began with."""
    if not numbers:
        return "for example with astype(str)"
    types = ", ".join(f"{quote(name)}: str" for name in numbers)
    return (
        'for example with astype(str); codes that lost zeros when they were read ("00501" as 501) need '
        f"read_csv(..., dtype={{{types}}})"
    )

"""Check that columns can match a public list of labels. Secret: nothing here may leave the package."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from pandas_dptree.errors import ColumnsError, quote
from pandas_dptree.hierarchy.columns import ALL_MISSING, ANY, NO_KEYS, kind_of
from pandas_dptree.hierarchy.levels.read_as import Labels

__all__ = ["as_text", "check_key_types", "check_labels"]


def check_key_types(types: Mapping[Hashable, Any], argument: str) -> None:
    """Refuse columns of a type whose values are never keys; `types` are pandas or narwhals data types."""
    kinds = {name: kind_of(dtype) for name, dtype in types.items()}
    odd = {name: kind for name, kind in kinds.items() if kind in NO_KEYS}
    if odd:
        raise ColumnsError(
            argument,
            f"has keys of a type that cannot be a key ({', '.join(dict.fromkeys(odd.values()))})",
            columns=odd,
            hint="convert them to text or numbers.",
        )


def _kind_of_labels(dtype: Any) -> str:
    """Name the kind of public labels: decimals among them are whole numbers, such as duckdb's HUGEINT."""
    return "numbers" if (kind := kind_of(dtype)) == "decimals" else kind


def check_labels(columns: Mapping[Hashable, tuple[Labels, Any]], argument: str) -> None:
    """Refuse columns of a type that cannot equal a label; one error lists all of them.

    `columns` maps the name of each column to its public labels and its pandas or narwhals data type;
    `argument` is the argument that has the columns.
    """
    check_key_types({name: dtype for name, (_, dtype) in columns.items()}, argument)
    kinds = {
        name: (ANY if dtype == ALL_MISSING else kind_of(dtype), _kind_of_labels(wanted.labels.dtype))
        for name, (wanted, dtype) in columns.items()
    }
    unlike = {name: pair for name, pair in kinds.items() if pair[0] != pair[1] and ANY not in pair}
    if unlike:
        codes = [name for name, pair in unlike.items() if {*pair} == {"numbers", "text"}]
        dates = [name for name, pair in unlike.items() if {*pair} == {"times", "text"}]
        flags = [name for name, pair in unlike.items() if {*pair} == {"numbers", "booleans"}]
        conversions = ["booleans to numbers with astype(int)"] if flags else []
        conversions += ["text to dates with pd.to_datetime"] if dates else []
        conversions += [as_text(codes)] if len(flags) + len(dates) < len(unlike) else []
        pairs = "; ".join(
            f"{quote(name)} holds {kind}, not {public}" for name, (kind, public) in unlike.items()
        )
        raise ColumnsError(
            argument,
            f"has keys of a different type than the domain ({pairs})",
            columns=unlike,
            hint=f"convert one of the two, {'; '.join(conversions)}.",
        )


def as_text(numbers: Sequence[Hashable]) -> str:
    """Return a hint on how to convert columns to text; numbers may be codes that lost leading zeros."""
    if not numbers:
        return "for example with astype(str)"
    types = ", ".join(f"{quote(name)}: str" for name in numbers)
    return (
        'for example with astype(str); codes that lost leading zeros when read ("00501" as 501) need '
        f"read_csv(..., dtype={{{types}}})"
    )

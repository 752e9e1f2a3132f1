"""Records of any dataframe library → what they add to each leaf. Secret: nothing here may leave the package.

Records are grouped once, by distinct keys; each combination of keys is looked up once in the public domain,
with numpy. Messages speak of the names and types of columns, never of what stands in them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import narwhals as nw
import numpy as np
import pandas as pd
import xarray as xr

from pandas_dptree.errors import ArgumentError, ColumnsError, kind_of_object, told, warn
from pandas_dptree.hierarchy.columns import arrow_column, may_hold_numbers, others_meant, to_pandas
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.levels.combine import sole
from pandas_dptree.hierarchy.levels.quadtree import Quadtree
from pandas_dptree.hierarchy.libraries import supported
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.hierarchy.values import canonical_codes, located, numbered_units
from pandas_dptree.ingest.derived import check_types, codes_of, leaves_of
from pandas_dptree.ingest.numbers import numbers
from pandas_dptree.ingest.silence import silently
from pandas_dptree.privacy.quantity import Quantity

__all__ = [
    "Contributions",
    "check_columns",
    "check_frame",
    "contributions",
    "discreetly",
    "key_frame",
    "warn_if_released",
]

Answer = TypeVar("Answer")
Table = pd.DataFrame | nw.DataFrame[Any] | nw.LazyFrame[Any]

_SECRET = ("frame", "records")
"""What records are called as an argument, in Python and in the shell."""

_UNGROUPABLE = (nw.Object, nw.Unknown, nw.Int128, nw.UInt128)
"""Types whose values not every library can group by, or only if they are hashable. Polars 1.22 puts different
whole numbers of 128 bits into one group."""


@dataclass(frozen=True, slots=True, repr=False)
class Contributions:
    """Which privacy unit has records in which leaf.

    Attributes
    ----------
    leaf : numpy.ndarray of int64, shape (n,)
        Position of the leaf in the domain.
    unit : numpy.ndarray of int64, shape (n,), or None
        Number of the privacy unit; None where each record is protected by itself.
    rows : numpy.ndarray of int64, shape (n,)
        How many records: one each where they have a unit or values.
    values : tuple of numpy.ndarray of int64, each of shape (n,)
        What the record adds to each quantity, in units. Empty where records are only counted.
    """

    leaf: IntArray
    unit: IntArray | None
    rows: IntArray
    values: tuple[IntArray, ...] = ()


def contributions(
    frame: Any, domain: Domain, *, privacy_unit: Hashable | None = None, values: Sequence[Quantity] = ()
) -> Contributions:
    """Find the leaf and the privacy unit of each record, and what it adds there.

    Records whose keys the domain does not list, records without a unit, and records that lack one of the
    values are dropped. With a unit or values, records stay apart and in their order, and units are numbered
    as they first appear: the answer does not depend on the library of the records. Without either, the
    records of a leaf are counted together.

    Parameters
    ----------
    frame : dataframe
        pandas, polars (eager or lazy) or pyarrow.
    domain : Domain
    privacy_unit : hashable, optional
        Name of the column that tells whom a record belongs to.
    values : sequence of Quantity, optional
        What is added up. A column may stand in several of them, and be a key besides.

    Returns
    -------
    Contributions

    Raises
    ------
    ArgumentError
        If `frame` is no dataframe or cannot be counted, or `privacy_unit` is to be added up as well.
    ColumnsError
        If a column is missing or repeated, or is of a type that cannot equal the domain's labels; or if
        values are of a type that holds no numbers.

    Notes
    -----
    **Privacy.** What a record adds depends on that record alone: each value is read, clipped and brought
    to the grid by itself, and whether the record stays is settled before any bound on its unit is.
    """
    summed = [quantity.column for quantity in values if quantity.column is not None]
    if privacy_unit is not None and privacy_unit in summed:
        raise ArgumentError(
            "privacy_unit",
            f"is also a column to be added up: {told(privacy_unit)}.",
            hint="name another column: what tells units apart is no amount.",
        )
    unit = [] if privacy_unit is None else [privacy_unit]
    columns = list(dict.fromkeys([*domain.sources, *unit, *summed]))
    check_columns(frame, columns)
    warn_if_released(frame)
    frame = _opened(frame, columns)
    _check_types(frame, domain)
    _check_numeric(frame, list(dict.fromkeys(summed)))
    if privacy_unit is None and not values:
        return discreetly(columns, partial(_together, frame, domain))
    return discreetly(columns, partial(_apart, frame, domain, privacy_unit, values, columns))


def _together(frame: Table, domain: Domain) -> Contributions:
    """Count the records of each combination of keys."""
    if isinstance(frame, pd.DataFrame):
        cell, leaf = _cells(frame, domain)
        rows = np.bincount(cell, minlength=len(leaf))
    else:
        cells, rows = _distinct_narwhals(frame, domain.sources)
        held = dict(zip(domain.sources, cells, strict=True))
        levels, column = sole(domain), held.__getitem__
        leaf = leaves_of(levels, column) if levels else domain.find_leaves(_located(column, domain))
    inside = (leaf >= 0) & (rows > 0)
    return Contributions(leaf[inside], None, rows[inside])


def _apart(
    frame: Table,
    domain: Domain,
    privacy_unit: Hashable | None,
    values: Sequence[Quantity],
    columns: list[Hashable],
) -> Contributions:
    """Read leaf, unit and values of each record, in the order of the records."""
    held = _held(frame, columns)
    cell, leaf_of_cell = _cells(held, domain)
    leaf = leaf_of_cell[cell]
    inside = leaf >= 0
    unit = None
    if privacy_unit is not None:
        unit = numbered_units(_column(held, privacy_unit))
        inside &= unit >= 0
    read = {
        quantity.column: numbers(_column(held, quantity.column))
        for quantity in values
        if quantity.column is not None
    }
    for number in read.values():
        inside &= ~np.isnan(number)
    one = np.broadcast_to(np.ones(1, dtype=np.int64), int(inside.sum()))
    return Contributions(
        leaf[inside],
        None if unit is None else unit[inside],
        one,
        tuple(
            one if quantity.column is None else quantity.to_units(read[quantity.column][inside])
            for quantity in values
        ),
    )


def _cells(held: pd.DataFrame | nw.DataFrame[Any], domain: Domain) -> tuple[IntArray, IntArray]:
    """Number the combinations of keys: the number of each record's, and the leaf of each combination."""
    if (levels := sole(domain)) is not None:
        return leaves_of(levels, partial(_column, held)) + 1, np.arange(-1, domain.tree.n_leaves)
    codes = _located(partial(_column, held), domain)
    cell, row = _combined(codes, [len(forms) for forms in domain.forms])
    return cell, domain.find_leaves([code[row] for code in codes])


def _located(column: Callable[[Hashable], pd.Series], domain: Domain) -> list[IntArray]:
    """Find the keys of each record among the domain's: those of its columns, and those made of them."""
    made: dict[Hashable, IntArray] = {}
    for levels in domain.derived:
        made |= codes_of(levels, leaves_of(levels, column))
    return [
        made[name] if name in made else located(column(name), forms)
        for name, forms in zip(domain.by, domain.forms, strict=True)
    ]


def _combined(codes: Sequence[IntArray], sizes: Sequence[int]) -> tuple[IntArray, IntArray]:
    """Number the combinations of codes from -2 to below their sizes: the number of each row's, and some row.

    Grouping by one whole number per row is faster than ``groupby``, most of all for categories. Where there
    are more rows than combinations could be, these are not even looked for; one that has no row is given
    any.
    """
    cell, n_cells = np.zeros(len(codes[0]), dtype=np.int64), 1
    for code, size in zip(codes, sizes, strict=True):
        if n_cells * (size + 2) > 2**62:
            cell, distinct = pd.factorize(cell)
            n_cells = len(distinct)
        cell *= size + 2
        cell += code
        cell += 2
        n_cells *= size + 2
    if n_cells > len(cell):
        cell, distinct = pd.factorize(cell)
        n_cells = len(distinct)
    some_row = np.zeros(n_cells, dtype=np.int64)
    some_row[cell] = np.arange(len(cell))
    return cell, some_row


def key_frame(frame: Any, by: Sequence[Hashable]) -> pd.DataFrame:
    """List the distinct keys of the records, or the bare columns if these are categorical.

    Only for a domain that the caller states to be public.

    Raises
    ------
    ArgumentError
        If `frame` is no dataframe or cannot be counted.
    ColumnsError
        If a column is missing or repeated.
    """
    check_columns(frame, by)
    frame = _opened(frame, by)
    if isinstance(frame, pd.DataFrame) and all(
        isinstance(frame[name].dtype, pd.CategoricalDtype) for name in by
    ):
        return frame[list(by)]
    cells, _ = discreetly(by, partial(_distinct, frame, by))
    return pd.DataFrame(dict(zip(by, cells, strict=True)))


def check_frame(frame: Any) -> None:
    """Check that the records are in a dataframe, whatever its columns.

    Raises
    ------
    ArgumentError
        If they are not.
    """
    _dataframe(frame, "frame")


def warn_if_released(data: Any) -> None:
    """Warn, before anything is spent, of data that say of themselves that they are a release.

    `attrs` are trusted for nothing else: anybody may write them, and most operations lose them.
    """
    account = getattr(data, "attrs", {}).get("dp")
    if isinstance(account, (dict, str)) and "mechanism" in account:
        warn(
            'What is to be released says in attrs["dp"] that it is a release: its numbers are noisy, and its '
            "rows are no records.",
            hint='pass the records, or delete attrs["dp"] if these are some; whatever is computed from a '
            "released table needs no release.",
        )


def check_columns(frame: Any, columns: Sequence[Hashable], *, argument: str = "frame") -> None:
    """Check that a frame, which the caller knows as `argument`, has each column exactly once.

    Raises
    ------
    ArgumentError
        If `frame` is no dataframe.
    ColumnsError
        If a column is missing or repeated.
    """
    hint = "check the spelling; the names of its columns are listed by frame.columns."
    table = _dataframe(frame, argument)
    if isinstance(table, pd.DataFrame):
        present: list[Hashable] = list(table.columns)
        if table.columns.nlevels > 1:
            hint = f"name each column by the whole of its tuple, such as {told(present[:1])}."
    else:
        try:
            present = list(table.collect_schema())
        except Exception:
            raise ArgumentError(
                argument, "cannot be read.", hint="check the path and the query that it stands for."
            ) from None
    missing = [name for name in columns if name not in present]
    if missing:
        raise ColumnsError(
            argument,
            "lacks the columns",
            columns=missing,
            hint=others_meant(missing, present, frame, alike=1 if argument in _SECRET else 0.6) or hint,
        )
    repeated = [name for name in columns if present.count(name) > 1]
    if repeated:
        raise ColumnsError(
            argument, "has several columns named", columns=repeated, hint="give each a name of its own."
        )


def discreetly(columns: Sequence[Hashable], count: Callable[[], Answer]) -> Answer:
    """Count without a word about the records, whatever other libraries warn of or quote when they fail."""
    return silently(
        count,
        ArgumentError(
            "frame",
            f"cannot be counted by its columns {told(list(columns))}.",
            hint="convert the keys to strings, whole numbers, dates or categories.",
        ),
    )


def _dataframe(frame: Any, argument: str) -> Table:
    """Open the records, which the caller knows as `argument`, if they are in a supported dataframe."""
    table = supported(frame, argument)
    if table is None:
        raise ArgumentError(
            argument,
            f"must be a dataframe, not {kind_of_object(frame)}.",
            hint="arrays have verbs of their own, such as array.dp.tree_counts(by, ...) and "
            "array.dp.release(plan)."
            if isinstance(frame, (xr.DataArray, xr.Dataset))
            else "pass a frame of pandas or polars, or a pyarrow.Table.",
        )
    return table


def _opened(frame: Any, columns: Sequence[Hashable]) -> Table:
    """Let pandas hold the columns of a table of pyarrow, which groups by fewer types than it holds."""
    table = _dataframe(frame, "frame")
    native = nw.to_native(table, pass_through=True)
    if nw.dependencies.is_pyarrow_table(native):
        return pd.DataFrame({name: arrow_column(native.column(name)) for name in columns})
    return table


def _distinct(frame: Table, columns: Sequence[Hashable]) -> tuple[list[pd.Series], IntArray]:
    """Distinct combinations of the columns' keys, and the number of records of each."""
    if isinstance(frame, pd.DataFrame):
        return _distinct_pandas([frame[name] for name in columns])
    return _distinct_narwhals(frame, columns)


def _distinct_pandas(columns: list[pd.Series]) -> tuple[list[pd.Series], IntArray]:
    """Count the rows of each combination of keys."""
    encoded = [canonical_codes(column) for column in columns]
    cell, row = _combined([codes for codes, _ in encoded], [len(keys) for _, keys in encoded])
    rows = np.bincount(cell, minlength=len(row))
    taken = row[rows > 0]
    return [column.iloc[taken].reset_index(drop=True) for column in columns], rows[rows > 0]


def _distinct_narwhals(
    frame: nw.DataFrame[Any] | nw.LazyFrame[Any], columns: Sequence[Hashable]
) -> tuple[list[pd.Series], IntArray]:
    """Group in the library that the records live in, or in pandas where that cannot group such values."""
    names = [f"key{i}" for i in range(len(columns))]
    keys = frame.select([nw.col(str(old)).alias(new) for new, old in zip(names, columns, strict=True)])
    if not _can_be_grouped(keys):
        held = keys.lazy().collect()
        return _distinct_pandas([_column(held, name) for name in names])
    cells = keys.group_by(names).agg(nw.len().alias("rows")).lazy().collect()
    return [to_pandas(cells[name]) for name in names], cells["rows"].to_numpy().astype(np.int64)


def _can_be_grouped(keys: nw.DataFrame[Any] | nw.LazyFrame[Any]) -> bool:
    return not any(dtype.is_nested() or dtype in _UNGROUPABLE for dtype in keys.collect_schema().dtypes())


def _held(frame: Table, columns: Sequence[Hashable]) -> pd.DataFrame | nw.DataFrame[Any]:
    """Bring the columns that are needed into memory, once."""
    if isinstance(frame, pd.DataFrame):
        return frame
    return frame.select([str(name) for name in columns]).lazy().collect()


def _column(held: pd.DataFrame | nw.DataFrame[Any], name: Hashable) -> pd.Series:
    return held[name] if isinstance(held, pd.DataFrame) else to_pandas(held[str(name)], keep_arrow=True)


def _types(frame: Table, columns: Sequence[Hashable]) -> list[Any]:
    if isinstance(frame, pd.DataFrame):
        return [frame[name].dtype for name in columns]
    schema = frame.collect_schema()
    return [schema[str(name)] for name in columns]


def _check_numeric(frame: Table, columns: Sequence[Hashable]) -> None:
    """Refuse columns of values whose type tells that none of them is a number."""
    types = zip(columns, _types(frame, columns), strict=True)
    unfit = [name for name, dtype in types if not may_hold_numbers(dtype)]
    if unfit:
        raise ColumnsError(
            "frame",
            "has values of a type that cannot be added up in the columns",
            columns=unfit,
            hint="convert them to numbers, for example durations with .dt.total_seconds().",
        )


def _check_types(frame: Table, domain: Domain) -> None:
    """Refuse columns whose type can never equal the domain's labels, or from which no level can be made."""
    if any(isinstance(levels, Quadtree) and levels.of_cells for levels in domain.derived):
        raise ArgumentError(
            "domain",
            "divides the cells of an array, of which records know nothing.",
            hint="give the quadtree `bounds`.",
        )
    types = dict(zip(domain.sources, _types(frame, domain.sources), strict=True))
    check_types(domain, types, argument="frame")

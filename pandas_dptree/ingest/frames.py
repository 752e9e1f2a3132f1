"""Records of any dataframe library → what they add to each leaf. Secret: nothing here may leave the package.

Records are grouped once, by distinct keys; what comes out is small and is looked up in the public domain
with numpy. Messages speak of the names and types of columns, never of what stands in them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import narwhals as nw
import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, ColumnsError
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.hierarchy.values import ANY, UNKNOWN, canonical_codes, kind_of, positions, to_pandas
from pandas_dptree.ingest.numbers import numbers
from pandas_dptree.privacy.quantity import Quantity

__all__ = ["Contributions", "check_columns", "contributions", "discreetly", "key_frame"]

Answer = TypeVar("Answer")

_UNGROUPABLE = (nw.Object, nw.Unknown)
"""Types whose values not every library can group by, or only if they are hashable."""

_ALL_MISSING = np.dtype(np.float64)
"""The type that pandas gives to a column without values, so that it is compared with labels of any kind."""


_NUMERIC_KINDS = {"numbers", "booleans", "text"}
"""Kinds of columns whose values may be numbers, as `kind_of` names them."""


@dataclass(frozen=True, slots=True, repr=False)
class Contributions:
    """Which privacy unit has how many records in which leaf.

    Attributes
    ----------
    leaf : numpy.ndarray of int64, shape (n,)
        Position of the leaf in the domain.
    unit : numpy.ndarray of int64, shape (n,), or None
        Number of the privacy unit; None where each record is protected by itself.
    rows : numpy.ndarray of int64, shape (n,)
        How many records.
    values : tuple of numpy.ndarray of int64, each of shape (n,)
        What the record adds to each quantity, in units. Empty where records are only counted; else each
        entry is one record.
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
    values are dropped. Without `values`, the records of one unit in one leaf are counted together; units
    are numbered by value, so the answer depends neither on the order of the records nor on their library.
    With `values`, records stay apart and in their order.

    Parameters
    ----------
    frame : dataframe
        pandas, polars (eager or lazy), pyarrow, or another that narwhals knows.
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
            f"is also a column to be added up: {privacy_unit!r}.",
            hint="name another column: what tells units apart is no amount.",
        )
    named = [*domain.by] if privacy_unit is None else [*domain.by, privacy_unit]
    columns = list(dict.fromkeys([*named, *summed]))
    check_columns(frame, columns)
    _check_types(frame, domain)
    if not values:
        return discreetly(columns, partial(_counted, frame, domain, named))
    _check_numeric(frame, list(dict.fromkeys(summed)))
    return discreetly(columns, partial(_valued, frame, domain, privacy_unit, values, columns))


def _counted(frame: Any, domain: Domain, columns: list[Hashable]) -> Contributions:
    """Count the records of each unit in each leaf, in the order of these."""
    cells, rows = _distinct(frame, columns)
    leaf = _leaves(cells[: len(domain.by)], domain)
    inside = leaf >= 0
    if len(cells) == len(domain.by):
        return Contributions(leaf[inside], None, rows[inside])
    unit = _units(cells[-1])
    inside &= unit >= 0
    leaf, unit, rows = leaf[inside], unit[inside], rows[inside]
    order = np.lexsort((leaf, unit))
    return Contributions(leaf[order], unit[order], rows[order])


def _valued(
    frame: Any,
    domain: Domain,
    privacy_unit: Hashable | None,
    values: Sequence[Quantity],
    columns: list[Hashable],
) -> Contributions:
    """Read leaf, unit and values of each record, in the order of the records."""
    held = _held(frame, columns)
    cell, cells = _numbered(held, domain.by)
    leaf = _leaves(cells, domain)[cell]
    inside = leaf >= 0
    unit = None
    if privacy_unit is not None:
        whose, (names,) = _numbered(held, [privacy_unit])
        unit = _units(names)[whose]
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


def _leaves(cells: Sequence[pd.Series], domain: Domain) -> IntArray:
    """Find the leaf of each combination of keys, -1 for one that the domain does not list."""
    encoded = [canonical_codes(cell) for cell in cells]
    return domain.find_leaves(
        [
            np.append(positions(keys, forms), -1)[codes]
            for (codes, keys), forms in zip(encoded, domain.forms, strict=True)
        ]
    )


def _units(names: pd.Series) -> IntArray:
    """Number privacy units by value, -1 for what is nobody's name."""
    unit, whose = canonical_codes(names, sort=True)
    known = np.array([*(key != UNKNOWN for key in whose), False])
    return np.where(known[unit], unit, -1)


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
    if isinstance(frame, pd.DataFrame) and all(
        isinstance(frame[name].dtype, pd.CategoricalDtype) for name in by
    ):
        return frame[list(by)]
    cells, _ = discreetly(by, partial(_distinct, frame, by))
    return pd.DataFrame(dict(zip(by, cells, strict=True)))


def check_columns(frame: Any, columns: Sequence[Hashable], *, argument: str = "frame") -> None:
    """Check that a frame, which the caller knows as `argument`, has each column exactly once.

    Raises
    ------
    ArgumentError
        If `frame` is no dataframe.
    ColumnsError
        If a column is missing or repeated.
    """
    if isinstance(frame, pd.DataFrame):
        present: list[Hashable] = list(frame.columns)
    else:
        try:
            present = list(_narwhals(frame).collect_schema())
        except ArgumentError:
            raise
        except Exception:
            raise ArgumentError(
                "frame", "cannot be read.", hint="check the path and the query that it stands for."
            ) from None
    missing = [name for name in columns if name not in present]
    if missing:
        raise ColumnsError(
            argument,
            "lacks the columns",
            columns=missing,
            hint="check the spelling; keys in the index become columns by reset_index().",
        )
    repeated = [name for name in columns if present.count(name) > 1]
    if repeated:
        raise ColumnsError(
            argument, "has several columns named", columns=repeated, hint="give each a name of its own."
        )


def discreetly(columns: Sequence[Hashable], count: Callable[[], Answer]) -> Answer:
    """Count without a word about the records, whatever other libraries warn of or quote when they fail."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return count()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # polars panics with one that is no Exception
        pass  # its text and its context may hold records; what is raised below has neither
    raise ArgumentError(
        "frame",
        f"cannot be counted by its columns {list(columns)!r}.",
        hint="convert the keys to strings, whole numbers, dates or categories.",
    )


def _narwhals(frame: Any) -> nw.DataFrame[Any] | nw.LazyFrame[Any]:
    try:
        known: nw.DataFrame[Any] | nw.LazyFrame[Any] = nw.from_native(frame)
    except TypeError:
        raise ArgumentError(
            "frame",
            f"must be a dataframe, not {type(frame).__name__}.",
            hint="pass a frame of pandas, polars or pyarrow.",
        ) from None
    return known


def _distinct(frame: Any, columns: Sequence[Hashable]) -> tuple[list[pd.Series], IntArray]:
    """Distinct combinations of the columns' keys, and the number of records of each."""
    if isinstance(frame, pd.DataFrame):
        return _distinct_pandas([frame[name] for name in columns])
    return _distinct_narwhals(_narwhals(frame), columns)


def _distinct_pandas(columns: list[pd.Series]) -> tuple[list[pd.Series], IntArray]:
    """Count the rows of each combination of keys."""
    cell, cells = _numbered_pandas(columns)
    return cells, np.bincount(cell, minlength=len(cells[0]))


def _numbered_pandas(columns: list[pd.Series]) -> tuple[IntArray, list[pd.Series]]:
    """Group by one whole number per row: faster than ``groupby``, most of all for categories."""
    cell, n_cells = np.zeros(len(columns[0]), dtype=np.int64), 1
    for column in columns:
        codes, keys = canonical_codes(column)
        width = len(keys) + 1
        if n_cells * width > 2**62:
            cell, distinct = pd.factorize(cell)
            n_cells = len(distinct)
        cell = cell * width + codes + 1
        n_cells *= width
    cell, distinct = pd.factorize(cell)
    some_row = np.zeros(len(distinct), dtype=np.int64)
    some_row[cell] = np.arange(len(cell))
    return cell, [column.iloc[some_row].reset_index(drop=True) for column in columns]


def _distinct_narwhals(
    frame: nw.DataFrame[Any] | nw.LazyFrame[Any], columns: Sequence[Hashable]
) -> tuple[list[pd.Series], IntArray]:
    """Group in the library that the records live in, or in pandas where that cannot group such values."""
    names = [f"key{i}" for i in range(len(columns))]
    keys = frame.select([nw.col(str(old)).alias(new) for new, old in zip(names, columns, strict=True)])
    if not _can_be_grouped(keys):
        held = keys.lazy().collect()
        return _distinct_pandas([to_pandas(held[name]) for name in names])
    cells = keys.group_by(names).agg(nw.len().alias("rows")).lazy().collect()
    return [to_pandas(cells[name]) for name in names], cells["rows"].to_numpy().astype(np.int64)


def _can_be_grouped(keys: nw.DataFrame[Any] | nw.LazyFrame[Any]) -> bool:
    return not any(dtype.is_nested() or dtype in _UNGROUPABLE for dtype in keys.collect_schema().dtypes())


def _held(frame: Any, columns: Sequence[Hashable]) -> pd.DataFrame | nw.DataFrame[Any]:
    """Bring the columns that are needed into memory, once."""
    if isinstance(frame, pd.DataFrame):
        return frame
    return _narwhals(frame).select([str(name) for name in columns]).lazy().collect()


def _column(held: pd.DataFrame | nw.DataFrame[Any], name: Hashable) -> pd.Series:
    return held[name] if isinstance(held, pd.DataFrame) else to_pandas(held[str(name)])


def _numbered(
    held: pd.DataFrame | nw.DataFrame[Any], columns: Sequence[Hashable]
) -> tuple[IntArray, list[pd.Series]]:
    """Number the combinations of the columns' keys: the number of each record's, and the keys of each."""
    if isinstance(held, pd.DataFrame):
        return _numbered_pandas([held[name] for name in columns])
    names = [str(name) for name in columns]
    keys = held.select(names)
    if not (keys.implementation.is_polars() and _can_be_grouped(keys)):  # pyarrow loses rows without a key
        return _numbered_pandas([_keys_to_pandas(keys[name]) for name in names])
    row = "row" + max(names, key=len)  # which is none of them
    first = keys.with_row_index(row).select(nw.col(row).min().over(names))[row].to_numpy().astype(np.int64)
    leads = first == np.arange(len(first))
    return (np.cumsum(leads) - 1)[first], [to_pandas(keys[name].filter(leads)) for name in names]


def _keys_to_pandas(column: nw.Series[Any]) -> pd.Series:
    """Leave text to pyarrow, which need not write out one object for each row."""
    native = column.to_native()
    if str(getattr(native, "type", "")) in ("string", "large_string"):
        return pd.Series(pd.arrays.ArrowStringArray(native))
    return to_pandas(column)


def _types(frame: Any, columns: Sequence[Hashable]) -> list[Any]:
    if isinstance(frame, pd.DataFrame):
        return [frame[name].dtype for name in columns]
    schema = _narwhals(frame).collect_schema()
    return [schema[str(name)] for name in columns]


def _check_numeric(frame: Any, columns: Sequence[Hashable]) -> None:
    """Refuse columns of values whose type tells that none of them is a number."""
    types = zip(columns, _types(frame, columns), strict=True)
    unfit = [name for name, dtype in types if not _may_hold_numbers(dtype)]
    if unfit:
        raise ColumnsError(
            "frame",
            "has values of a type that cannot be added up in the columns",
            columns=unfit,
            hint="convert them to numbers, for example durations with .dt.total_seconds().",
        )


def _may_hold_numbers(dtype: Any) -> bool:
    """Tell whether some value of a type is a number, or text that may be one."""
    if isinstance(dtype, pd.CategoricalDtype):
        return _may_hold_numbers(dtype.categories.dtype)
    if (kind := kind_of(dtype)) != ANY:
        return kind in _NUMERIC_KINDS
    if not isinstance(dtype, nw.dtypes.DType):
        if dtype.kind in "cSV":  # numpy's complex numbers, bytes and records
            return False
        if dtype == np.dtype(object):
            return True
        dtype = nw.from_native(pd.Series([], dtype=dtype), series_only=True).dtype
    return not (dtype.is_nested() or dtype in (nw.Binary, nw.Time))


def _check_types(frame: Any, domain: Domain) -> None:
    """Refuse key columns whose type can never equal the domain's labels."""
    types = _types(frame, domain.by)
    kinds = [ANY if dtype == _ALL_MISSING else kind_of(dtype) for dtype in types]
    unlike = {
        name: (kind, public)
        for name, kind, labels in zip(domain.by, kinds, domain.labels, strict=True)
        if kind != (public := kind_of(labels.dtype)) and ANY not in (kind, public)
    }
    if unlike:
        told = "; ".join(f"{name!r} holds {kind}, not {public}" for name, (kind, public) in unlike.items())
        raise ColumnsError(
            "frame",
            f"has keys of another type than the domain ({told})",
            columns=unlike,
            hint="convert one of the two, for example with astype(str).",
        )

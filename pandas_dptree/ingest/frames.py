"""Records of any dataframe library → exact counts. Secret: nothing here may leave the package.

Records are grouped once, by distinct keys; what comes out is small and is looked up in the public domain
with numpy. Messages speak of the names and types of columns, never of what stands in them.
"""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, ColumnsError
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.tree import IntArray

__all__ = ["Contributions", "check_columns", "contributions", "discreet", "key_frame"]

_UNKNOWN = object()
"""Stands for a key that cannot be a label, since it is not hashable."""


@dataclass(frozen=True, slots=True)
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
    """

    leaf: IntArray
    unit: IntArray | None
    rows: IntArray


def contributions(frame: Any, domain: Domain, *, privacy_unit: Hashable | None = None) -> Contributions:
    """Count the records of each leaf, separately for each privacy unit.

    Records whose keys the domain does not list, and records without a unit, are dropped. Units are
    numbered by value, so the answer depends neither on the order of the records nor on their library.

    Parameters
    ----------
    frame : dataframe
        pandas, polars (eager or lazy), pyarrow, or another that narwhals knows.
    domain : Domain
    privacy_unit : hashable, optional
        Name of the column that tells whom a record belongs to.

    Returns
    -------
    Contributions

    Raises
    ------
    ArgumentError
        If `frame` is no dataframe or cannot be counted.
    ColumnsError
        If a column is missing or repeated, or is of a type that cannot equal the domain's labels.
    """
    columns = [*domain.by] if privacy_unit is None else [*domain.by, privacy_unit]
    check_columns(frame, columns)
    _check_types(frame, domain)
    with discreet(columns):
        cells, rows = _distinct(frame, columns)
        leaf = domain.find_leaves(
            [_codes(cell, labels) for cell, labels in zip(cells, domain.labels, strict=False)]
        )
        inside = leaf >= 0
        if privacy_unit is None:
            return Contributions(leaf[inside], None, rows[inside])
        unit = _numbered(cells[-1])
        inside &= unit >= 0
        leaf, unit, rows = leaf[inside], unit[inside], rows[inside]
        order = np.lexsort((leaf, unit))
        return Contributions(leaf[order], unit[order], rows[order])


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
    with discreet(by):
        cells, _ = _distinct(frame, by)
    return pd.DataFrame(dict(zip(by, cells, strict=True)))


def check_columns(frame: Any, columns: Sequence[Hashable]) -> None:
    """Check that a frame has each column exactly once.

    Raises
    ------
    ArgumentError
        If `frame` is no dataframe.
    ColumnsError
        If a column is missing or repeated.
    """
    present: list[Hashable] = (
        list(frame.columns) if isinstance(frame, pd.DataFrame) else list(_narwhals(frame).columns)
    )
    missing = [name for name in columns if name not in present]
    if missing:
        raise ColumnsError(
            "frame",
            "lacks the columns",
            columns=missing,
            hint="check the spelling; keys in the index become columns by reset_index().",
        )
    repeated = [name for name in columns if present.count(name) > 1]
    if repeated:
        raise ColumnsError(
            "frame", "has several columns named", columns=repeated, hint="give each a name of its own."
        )


@contextmanager
def discreet(columns: Sequence[Hashable]) -> Iterator[None]:
    """Say nothing of the records, whatever other libraries would warn of or quote when they fail."""
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    except Exception:
        raise ArgumentError(
            "frame",
            f"cannot be counted by its columns {list(columns)!r}.",
            hint="convert the keys to strings, whole numbers, dates or categories.",
        ) from None


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
    """Distinct combinations of the columns' values, and the number of records of each."""
    if isinstance(frame, pd.DataFrame):
        return _distinct_pandas([frame[name] for name in columns])
    return _distinct_narwhals(_narwhals(frame), columns)


def _distinct_pandas(columns: list[pd.Series]) -> tuple[list[pd.Series], IntArray]:
    """Group by one whole number per row: faster than ``groupby``, most of all for categories."""
    n_rows = len(columns[0])
    cell, n_cells = np.zeros(n_rows, dtype=np.int64), 1
    for column in columns:
        if isinstance(column.dtype, pd.CategoricalDtype):
            codes, n_labels = column.cat.codes.to_numpy(), len(column.cat.categories)
        else:
            codes, labels = _factorize(column)
            n_labels = len(labels)
        if n_cells * (n_labels + 1) > 2**62:
            cell, distinct = pd.factorize(cell)
            n_cells = len(distinct)
        cell = cell * (n_labels + 1) + codes + 1
        n_cells *= n_labels + 1
    cell, distinct = pd.factorize(cell)
    some_row = np.zeros(len(distinct), dtype=np.int64)
    some_row[cell] = np.arange(n_rows)
    rows = np.bincount(cell, minlength=len(distinct))
    return [column.iloc[some_row].reset_index(drop=True) for column in columns], rows


def _distinct_narwhals(
    frame: nw.DataFrame[Any] | nw.LazyFrame[Any], columns: Sequence[Hashable]
) -> tuple[list[pd.Series], IntArray]:
    """Group in the library that the records live in."""
    names = [f"key{i}" for i in range(len(columns))]
    keys = frame.select([nw.col(str(old)).alias(new) for new, old in zip(names, columns, strict=True)])
    grouped = keys.group_by(names).agg(nw.len().alias("rows"))
    cells = grouped.collect() if isinstance(grouped, nw.LazyFrame) else grouped
    values = [pd.Series(cells[name].to_list(), dtype=object) for name in names]
    return values, cells["rows"].to_numpy().astype(np.int64)


def _check_types(frame: Any, domain: Domain) -> None:
    """Refuse key columns whose type can never equal the domain's labels."""
    if isinstance(frame, pd.DataFrame):
        kinds = [_pandas_kind(frame[name].dtype) for name in domain.by]
    else:
        schema = _narwhals(frame).collect_schema()
        kinds = [_kind(schema[str(name)]) for name in domain.by]
    unlike = {
        name: (kind, public)
        for name, kind, labels in zip(domain.by, kinds, domain.labels, strict=True)
        if kind != (public := _pandas_kind(labels.dtype)) and _ANY not in (kind, public)
    }
    if unlike:
        told = "; ".join(f"{name!r} holds {kind}, not {public}" for name, (kind, public) in unlike.items())
        raise ColumnsError(
            "frame",
            f"has keys of another type than the domain ({told})",
            columns=unlike,
            hint="convert one of the two, for example with astype(str).",
        )


_ANY = "objects"


def _kind(dtype: Any) -> str:
    """Name the kind of values a column holds; columns of one kind are compared by value."""
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return "text"
    if dtype == nw.Boolean:
        return "booleans"
    if dtype.is_numeric():
        return "numbers"
    if dtype == nw.Datetime and dtype.time_zone is not None:
        return "times with a time zone"
    if dtype in (nw.Date, nw.Datetime):
        return "times"
    if dtype == nw.Duration:
        return "durations"
    return _ANY


def _pandas_kind(dtype: Any) -> str:
    """Name the kind of values from the type alone (narwhals would look into objects)."""
    if isinstance(dtype, pd.CategoricalDtype):
        dtype = dtype.categories.dtype
    if dtype == np.dtype(object):
        return _ANY
    return _kind(nw.from_native(pd.Series([], dtype=dtype), series_only=True).dtype)


def _codes(values: pd.Series, labels: pd.Index) -> IntArray:
    """Positions of values among public labels: -1 where missing, -2 where unknown."""
    place, distinct = _factorize(values)
    known = pd.Index(labels.categories if isinstance(labels, pd.CategoricalIndex) else labels)
    wanted = pd.Index(distinct)
    if known.dtype != wanted.dtype:
        known, wanted = pd.Index(_objects(known)), pd.Index(_objects(wanted))
    codes = known.get_indexer(wanted)
    return np.append(np.where(codes < 0, -2, codes), -1)[place]


def _factorize(values: pd.Series) -> tuple[IntArray, Any]:
    """Number the distinct values, -1 where missing; what cannot be hashed counts as one value."""
    try:
        return pd.factorize(values)
    except TypeError:
        return pd.factorize(_hashable(values, _UNKNOWN))


def _objects(values: pd.Index) -> npt.NDArray[np.object_]:
    """Make values comparable across types: Python's own equality, and dates as midnights."""
    return np.fromiter(
        (
            pd.Timestamp(value) if type(value) is datetime.date else value
            for value in _hashable(values, _UNKNOWN)
        ),
        dtype=object,
        count=len(values),
    )


def _hashable(values: pd.Series | pd.Index, instead: object) -> npt.NDArray[np.object_]:
    """Replace what cannot be hashed."""
    return np.fromiter(
        (value if _is_hashable(value) else instead for value in values), dtype=object, count=len(values)
    )


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _numbered(units: pd.Series) -> IntArray:
    """Number the distinct units, by value where they can be ordered; -1 where there is none."""
    try:
        return pd.factorize(units, sort=True)[0].astype(np.int64)
    except TypeError:
        return pd.factorize(_hashable(units, None))[0].astype(np.int64)

"""Records of any dataframe library → exact counts. Secret: nothing here may leave the package.

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

__all__ = ["Contributions", "check_columns", "contributions", "discreetly", "key_frame"]

Answer = TypeVar("Answer")

_UNGROUPABLE = (nw.Object, nw.Unknown)
"""Types whose values not every library can group by, or only if they are hashable."""

_ALL_MISSING = np.dtype(np.float64)
"""The type that pandas gives to a column without values, so that it is compared with labels of any kind."""


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
    return discreetly(columns, partial(_contributions, frame, domain, columns))


def _contributions(frame: Any, domain: Domain, columns: list[Hashable]) -> Contributions:
    cells, rows = _distinct(frame, columns)
    encoded = [canonical_codes(cell) for cell in cells[: len(domain.by)]]
    leaf = domain.find_leaves(
        [
            np.append(positions(keys, forms), -1)[codes]
            for (codes, keys), forms in zip(encoded, domain.forms, strict=True)
        ]
    )
    inside = leaf >= 0
    if len(cells) == len(domain.by):
        return Contributions(leaf[inside], None, rows[inside])
    unit, whose = canonical_codes(cells[-1], sort=True)
    inside &= np.array([*(key != UNKNOWN for key in whose), False])[unit]
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
    rows = np.bincount(cell, minlength=len(distinct))
    return [column.iloc[some_row].reset_index(drop=True) for column in columns], rows


def _distinct_narwhals(
    frame: nw.DataFrame[Any] | nw.LazyFrame[Any], columns: Sequence[Hashable]
) -> tuple[list[pd.Series], IntArray]:
    """Group in the library that the records live in, or in pandas where that cannot group such values."""
    names = [f"key{i}" for i in range(len(columns))]
    keys = frame.select([nw.col(str(old)).alias(new) for new, old in zip(names, columns, strict=True)])
    types = keys.collect_schema().dtypes()
    if any(dtype.is_nested() or dtype in _UNGROUPABLE for dtype in types):
        held = keys.lazy().collect()
        return _distinct_pandas([to_pandas(held[name]) for name in names])
    cells = keys.group_by(names).agg(nw.len().alias("rows")).lazy().collect()
    return [to_pandas(cells[name]) for name in names], cells["rows"].to_numpy().astype(np.int64)


def _check_types(frame: Any, domain: Domain) -> None:
    """Refuse key columns whose type can never equal the domain's labels."""
    types: list[Any]
    if isinstance(frame, pd.DataFrame):
        types = [frame[name].dtype for name in domain.by]
    else:
        schema = _narwhals(frame).collect_schema()
        types = [schema[str(name)] for name in domain.by]
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

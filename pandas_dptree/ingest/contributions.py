"""Contributions of records of any dataframe library to each leaf. Secret: nothing here may leave the package.

Records are grouped once, by distinct keys; each combination of keys is looked up once in the public domain,
with numpy. Messages contain the names and types of columns, never their values.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, ColumnsError, quote
from pandas_dptree.hierarchy.columns import may_hold_numbers
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.hierarchy.values import numbered_units
from pandas_dptree.ingest.frames import Records, warn_if_released
from pandas_dptree.ingest.leaves import cells, check_records, leaves_of_domain
from pandas_dptree.ingest.numbers import numbers
from pandas_dptree.ingest.safe_errors import discreetly
from pandas_dptree.privacy.quantity import Quantity

__all__ = ["Contributions", "contributions", "key_frame"]


@dataclass(frozen=True, slots=True, repr=False)
class Contributions:
    """The leaf and the privacy unit of each record, and its values.

    Attributes
    ----------
    leaf : numpy.ndarray of int64, shape (n,)
        Position of the leaf in the domain.
    unit : numpy.ndarray of int64, shape (n,), or None
        Number of the privacy unit; None if each record is a unit of its own.
    rows : numpy.ndarray of int64, shape (n,)
        Number of records: 1 if they have a unit or values.
    values : tuple of numpy.ndarray of int64, each of shape (n,)
        What the record adds to each quantity, in units. Empty if records are only counted.
    """

    leaf: IntArray
    unit: IntArray | None
    rows: IntArray
    values: tuple[IntArray, ...] = ()


def contributions(
    frame: Any, domain: Domain, *, privacy_unit: Hashable | None = None, values: Sequence[Quantity] = ()
) -> Contributions:
    """Find the leaf and the privacy unit of each record, and what it adds to the leaf.

    Records outside the domain, without a unit or without one of the values are dropped. With a unit or
    values, each record is an entry, in order, and units are numbered in order of appearance, so the result
    does not depend on the library of the records. Without either, the records of a leaf are counted together.

    Parameters
    ----------
    frame : dataframe
        pandas, polars (eager or lazy) or pyarrow.
    domain : Domain
    privacy_unit : hashable, optional
        Name of the column that identifies the unit of a record.
    values : sequence of Quantity, optional
        What is added up. A column may occur in several of them, and also be a key.

    Returns
    -------
    Contributions

    Raises
    ------
    ArgumentError
        If `frame` is no dataframe or cannot be counted, or `privacy_unit` is to be added up as well.
    ColumnsError
        If a column is missing or repeated, or its type cannot match the labels of the domain, or holds no
        numbers to be added up.

    Notes
    -----
    **Privacy.** What a record adds depends on that record alone: each value is read, clipped and brought
    to the grid separately, and the decision whether to drop it is made before units are bounded.
    """
    summed = [quantity.column for quantity in values if quantity.column is not None]
    if privacy_unit is not None and privacy_unit in summed:
        raise ArgumentError(
            "privacy_unit",
            f"is also a column to be added up: {quote(privacy_unit)}.",
            hint="name another column: an identifier is not an amount.",
        )
    unit = [] if privacy_unit is None else [privacy_unit]
    columns = list(dict.fromkeys([*domain.sources, *unit, *summed]))
    records = Records(frame, columns)
    warn_if_released(frame)
    check_records(records, domain)
    _check_numeric(records.types(list(dict.fromkeys(summed))))
    if privacy_unit is None and not values:
        return discreetly(columns, partial(_count_records, records, domain))
    return discreetly(columns, partial(_read_records, records, domain, privacy_unit, values))


def _count_records(records: Records, domain: Domain) -> Contributions:
    """Count the records of each combination of keys."""
    if isinstance(records.table, pd.DataFrame):
        cell, leaf = cells(domain, records.column)
        rows = np.bincount(cell, minlength=len(leaf))
    else:
        distinct, rows = records.distinct(domain.sources)
        leaf = leaves_of_domain(domain, dict(zip(domain.sources, distinct, strict=True)).__getitem__)
    inside = (leaf >= 0) & (rows > 0)
    return Contributions(leaf[inside], None, rows[inside])


def _read_records(
    records: Records, domain: Domain, privacy_unit: Hashable | None, values: Sequence[Quantity]
) -> Contributions:
    """Read leaf, unit and values of each record, in the order of the records."""
    cell, leaf_of_cell = cells(domain, records.column)
    leaf = leaf_of_cell[cell]
    inside = leaf >= 0
    unit = None
    if privacy_unit is not None:
        unit = numbered_units(records.column(privacy_unit))
        inside &= unit >= 0
    read = {
        quantity.column: numbers(records.column(quantity.column))
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


def key_frame(frame: Any, by: Sequence[Hashable]) -> pd.DataFrame:
    """List the distinct keys of the records, or return the columns themselves if they are categorical.

    Only for a domain that the caller declares to be public.
    """
    records = Records(frame, by)
    if isinstance(records.table, pd.DataFrame) and all(
        isinstance(dtype, pd.CategoricalDtype) for dtype in records.types(by).values()
    ):
        return records.table[list(by)]
    distinct, _ = discreetly(by, partial(records.distinct, by))
    return pd.DataFrame(dict(zip(by, distinct, strict=True)))


def _check_numeric(types: Mapping[Hashable, Any]) -> None:
    """Refuse columns of a type without numbers."""
    unfit = [name for name, dtype in types.items() if not may_hold_numbers(dtype)]
    if unfit:
        raise ColumnsError(
            "frame",
            "has values of a type that cannot be added up in the columns",
            columns=unfit,
            hint="convert them to numbers, for example durations with .dt.total_seconds().",
        )

"""Find the leaves of records in a domain. Secret: nothing here may leave the package.

Each value is read separately; unreadable values belong to no leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.crossed_domain import CrossedDomain
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.levels.combine import Derived, sole
from pandas_dptree.hierarchy.levels.read_as import Labels, ReadAs
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.hierarchy.values import numbered_combinations
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.readers import check_readable, read_column

__all__ = ["cells", "check_records", "check_types", "codes_of", "key_codes", "leaves_of", "leaves_of_domain"]

Columns = Callable[[Hashable], pd.Series]
"""From the name of a column to the column of the records."""


def leaves_of(levels: Derived, column: Columns) -> IntArray:
    """Find the leaf of each record in the levels' own domain; -1 for records without a leaf."""
    read = [array for name in levels.columns for array in read_column(column(name), levels.read_as)]
    return levels.find(*read)


def codes_of(levels: Derived, leaf: IntArray) -> dict[Hashable, IntArray]:
    """Return the codes of the keys of leaves from `leaves_of`, by the names of the keys; -2 for leaf -1."""
    paths = levels.domain.path_codes(len(levels.names))
    return {name: np.append(code, -2)[leaf] for name, code in zip(levels.names, paths, strict=True)}


def leaves_of_domain(domain: Domain | CrossedDomain, column: Columns) -> IntArray:
    """Find the leaf, or leaf cell, of each record in a domain; -1 for records without one."""
    if isinstance(domain, CrossedDomain):
        return domain.find_cells([leaves_of_domain(axis, column) for axis in domain.axes.values()])
    levels = sole(domain)
    return domain.find_leaves(key_codes(domain, column)) if levels is None else leaves_of(levels, column)


def cells(domain: Domain, column: Columns) -> tuple[IntArray, IntArray]:
    """Number the combinations of keys: return that of each record, and the leaf of each combination."""
    if (levels := sole(domain)) is not None:
        return leaves_of(levels, column) + 1, np.arange(-1, domain.tree.n_leaves)
    codes = key_codes(domain, column)
    cell, row = numbered_combinations(codes, [len(forms) for forms in domain.forms])
    return cell, domain.find_leaves([code[row] for code in codes])


def key_codes(domain: Domain, column: Columns) -> list[npt.NDArray[Any]]:
    """Find the code of each key of each record, both of plain and of derived keys."""
    made: dict[Hashable, IntArray] = {}
    for levels in domain.derived:
        made |= codes_of(levels, leaves_of(levels, column))
    return [
        made[name] if name in made else labels.codes(column(name))
        for name, labels in zip(domain.by, domain.lookups, strict=True)
    ]


def check_types(domain: Domain | CrossedDomain, types: Mapping[Hashable, Any], *, argument: str) -> None:
    """Refuse columns of a type that cannot match the labels of the domain, or the derived levels."""
    wanted: list[tuple[Hashable, ReadAs]] = []
    for axis in domain.axes.values() if isinstance(domain, CrossedDomain) else [domain]:
        known = zip(axis.by, axis.labels, axis.forms, strict=True)
        wanted += [(name, levels.read_as) for levels in axis.derived for name in levels.columns]
        wanted += [(name, Labels(labels, forms)) for name, labels, forms in known if name in axis.plain]
    check_readable([(name, how, types[name]) for name, how in wanted], argument=argument)


def check_records(records: Records, domain: Domain | CrossedDomain) -> None:
    """Refuse records that cannot match the domain by column type, or if it divides the cells of an array."""
    if any(levels.cells is not None for levels in domain.derived):
        raise ArgumentError(
            "domain",
            "divides the cells of an array, which records do not have.",
            hint="give the quadtree `bounds`.",
        )
    check_types(domain, records.types(domain.sources), argument="frame")

"""Parse the counts that a caller states, in any supported form, into facts about nodes of the tree.

All of them are public: messages name the keys and quote the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, ColumnsError, kind_of_object, listed, quote
from pandas_dptree.hierarchy.columns import collected, pick_columns
from pandas_dptree.hierarchy.domain import Domain, level_names
from pandas_dptree.hierarchy.names import RESERVED_NAMES
from pandas_dptree.hierarchy.public_labels import check_keys
from pandas_dptree.hierarchy.tree import IntArray, Tree
from pandas_dptree.hierarchy.values import UNKNOWN, canonical_codes, key_form, positions

__all__ = [
    "LARGEST",
    "Facts",
    "check_levels",
    "frame_facts",
    "level_facts",
    "merge_facts",
    "node_names",
    "raise_contradiction",
]

BoolArray = npt.NDArray[np.bool_]
NameOf = Callable[[int, int], str]
"""From a node's level and position to its name in messages."""

LARGEST = 2**61
"""Largest total of a tree, so that sums of totals do not overflow 64 bits."""

BOUND = "at_least"
"""Name of the column of lower bounds."""

_FORMS = (
    'pass a mapping such as {"total": 81203} or {"state": a Series indexed by state}, or a frame with key '
    "columns and `count` or `at_least`."
)
_MOST_NAMED = 3
"""Largest number of unlisted keys that a message names."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Stated counts (or -1) and lower bounds (or 0) of some nodes of one level, which may repeat."""

    level: int
    nodes: IntArray
    counts: IntArray
    at_least: IntArray


def merge_facts(tree: Tree, facts: Sequence[Facts], name: NameOf) -> tuple[list[BoolArray], list[IntArray]]:
    """Combine facts per node, and check that no node has two counts, or a bound above its count.

    The result is, for each level, whether a node's count is given, and the count, else the largest bound.
    """
    exact, least = [], []
    for level, size in enumerate(tree.level_sizes):
        here = [fact for fact in facts if fact.level == level and len(fact.nodes)]
        if not here:
            exact.append(np.zeros(1, dtype=bool))
            least.append(np.zeros(1, dtype=np.int64))
            continue
        nodes = np.concatenate([fact.nodes for fact in here])
        counts = np.concatenate([fact.counts for fact in here])
        count, low = np.full(size, -1, dtype=np.int64), np.zeros(size, dtype=np.int64)
        np.maximum.at(count, nodes, counts)
        np.maximum.at(low, nodes, np.concatenate([fact.at_least for fact in here]))
        other = np.flatnonzero((counts >= 0) & (counts != count[nodes]))
        if len(other):
            row, node = other[0], int(nodes[other[0]])
            raise_contradiction(
                f"gives {name(level, node)} two counts, {counts[row]} and {count[node]}", len(other)
            )
        above = np.flatnonzero((count >= 0) & (low > count))
        if len(above):
            node = int(above[0])
            raise_contradiction(
                f"says that {name(level, node)} holds {count[node]}, and at least {low[node]}", len(above)
            )
        exact.append(count >= 0)
        least.append(np.where(count >= 0, count, low))
    return exact, least


def raise_contradiction(contradiction: str, number: int) -> None:
    """Raise an error for the first of `number` contradictions."""
    others = f", and {number - 1:,} more contradiction{'s' * (number > 2)}" if number > 1 else ""
    raise ArgumentError(
        "known",
        f"{contradiction}{others}.",
        hint="give counts that add up; structural zeros of the domain hold 0.",
    )


def node_names(hierarchy: Domain | Tree) -> NameOf:
    """Return a function that names nodes by their keys, or by their position in a bare tree."""

    def name(level: int, node: int) -> str:
        if level == 0:
            return "the total"
        if isinstance(hierarchy, Tree):
            return f"node {node} of {level_names(hierarchy)[level]}"
        codes = [int(code[node]) for code in hierarchy.path_codes(level)]
        path = zip(hierarchy.labels, codes, strict=False)
        return _format_path(hierarchy.by, [labels[code] for labels, code in path if code >= 0])

    return name


def _format_path(by: Sequence[Hashable], keys: Sequence[Any]) -> str:
    """Format a path as keyword arguments, numpy scalars as plain numbers."""
    plain = [key.item() if isinstance(key, np.generic) else key for key in keys]
    return ", ".join(f"{name}={quote(key)}" for name, key in zip(by, plain, strict=False))


def check_levels(hierarchy: Domain | Tree, known: Mapping[Hashable, Any]) -> None:
    """Check that `known` names levels of the hierarchy, and not, for example, keys."""
    names = level_names(hierarchy)
    unknown = [name for name in known if name not in names]
    if unknown:
        raise ArgumentError(
            "known", f"names an unknown level: {quote(unknown[0], of=known)}.",
            hint=f"the levels are {listed(names)}.",
        )  # fmt: skip


def level_facts(hierarchy: Domain | Tree, level_name: Hashable, given: Any, name: NameOf) -> list[Facts]:
    """Read the stated counts of one level, in one of the forms that `Known.read` accepts."""
    names = level_names(hierarchy)
    level = names.index(level_name)
    if isinstance(given, Mapping):
        if not given:
            return []
        given = pd.Series(given, dtype=object)
    if level == 0 and pd.api.types.is_scalar(given):
        given = [given]
    if isinstance(given, (list, tuple)):
        given = pd.Series(given, dtype=object).to_numpy()
    if isinstance(given, np.ndarray):
        size = (hierarchy if isinstance(hierarchy, Tree) else hierarchy.tree).level_sizes[level]
        if given.shape != (size,):
            raise ArgumentError(
                "known", f"must give {quote(level_name)} numbers of shape ({size},), not {given.shape}.",
                hint="give one number per node of the level, in the order of the tree, nan where unknown.",
            )  # fmt: skip
        counts = _read_counts(pd.Series(given), -1, lambda row: name(level, row))
        return [Facts(level, np.arange(size), counts, np.zeros(size, dtype=np.int64))]
    if isinstance(given, pd.Series):
        given = _indexed(given, names[1 : level + 1])
    return frame_facts(hierarchy, given, name, level)


def frame_facts(hierarchy: Domain | Tree, given: Any, name: NameOf, level: int | None = None) -> list[Facts]:
    """Read the stated counts of a frame with columns as for `Known.read`, of all levels or of one.

    On one level, a missing key is that of a short path, as in ``groupby(dropna=False)``.
    """
    domain = Domain.from_tree(hierarchy) if isinstance(hierarchy, Tree) else hierarchy
    keys, numbers = _columns(given, domain.by, level)
    n_rows = len(next(iter(numbers.values())))
    encoded = [canonical_codes(key) for key in keys]
    check_keys("known", domain.by, keys, [forms for _, forms in encoded])
    codes = [
        np.append(positions(forms, listed), -1)[code]
        for (code, forms), listed in zip(encoded, domain.forms, strict=False)
    ]
    present = np.array(codes, dtype=np.int64).reshape(len(codes), n_rows) != -1
    ends = np.count_nonzero(present, axis=0)
    depth = ends if level is None else np.full(n_rows, level)
    nodes = np.zeros(n_rows, dtype=np.int64)
    for above in range(1, len(codes) + 1):
        rows = depth == above
        nodes[rows] = domain.find_nodes([code[rows] for code in codes[:above]])
    nodes[(ends > depth) | (~present[:-1] & present[1:]).any(axis=0)] = -1
    _check_listed(nodes, domain.by, keys)

    def name_row(row: int) -> str:
        return name(int(depth[row]), int(nodes[row]))

    stated = {
        column: _read_counts(numbers[column], absent, name_row)
        if column in numbers
        else np.full(n_rows, absent, dtype=np.int64)
        for column, absent in (("count", -1), (BOUND, 0))
    }
    return [
        Facts(end, nodes[rows], stated["count"][rows], stated[BOUND][rows])
        for end in range(len(domain.by) + 1)
        if (rows := depth == end).any()
    ]


def _indexed(counts: pd.Series, by: Sequence[Hashable]) -> pd.DataFrame:
    """Turn a series of counts indexed by keys into a frame."""
    index = counts.index
    if not by:
        return pd.DataFrame({"count": counts.array})
    names = list(by) if not any(name is not None for name in index.names) else list(index.names)
    if index.nlevels != len(by) or set(names) != set(by):
        raise ArgumentError(
            "known",
            f"must give {quote(by[-1])} a series indexed by {listed(by)}, not by {quote(list(index.names))}.",
            hint=f"index it as groupby({listed(by)}).size() would.",
        )
    keys = {name: index.get_level_values(place) for place, name in enumerate(names)}
    return pd.DataFrame({**keys, "count": counts.array})


def _columns(
    given: Any, by: Sequence[Hashable], level: int | None
) -> tuple[list[pd.Series], dict[str, pd.Series]]:
    """Split a supported frame into key columns (or index levels) and number columns."""
    table: Any = collected(given, "known")
    if table is None:
        raise ArgumentError(
            "known", f"must be a table that can be read, not {kind_of_object(given)}.", hint=_FORMS
        )
    if isinstance(table, pd.DataFrame):
        indexed = [key for key in by if key in table.index.names and key not in table.columns]
        table = table.reset_index(level=indexed) if indexed else table
    names = list(table.columns)
    # If unknown columns were ignored, a misspelt key would turn counties into states.
    unknown = [name for name in names if name not in (*by, *RESERVED_NAMES, BOUND)]
    if unknown:
        raise ColumnsError(
            "known", "has columns of unknown meaning", columns=unknown,
            hint=f"the keys are {listed(by)}, and the numbers must be named `count` or `at_least`; drop or "
            "rename other columns.",
        )  # fmt: skip
    places = [place for place, key in enumerate(by) if key in names]
    needed = max([*(place + 1 for place in places), 1 if level is None else level])
    absent = [key for key in by[:needed] if key not in names]
    numbers = [name for name in ("count", BOUND) if name in names and name not in by]
    if absent or not numbers:
        raise ColumnsError(
            "known", "lacks the columns", columns=absent or ["count", BOUND],
            hint="it needs each key with all coarser ones, and `count` or `at_least`." if absent
            else "one of the two is enough.",
        )  # fmt: skip
    columns = pick_columns(table, [*by[:needed], *numbers], argument="known")
    return columns[:needed], dict(zip(numbers, columns[needed:], strict=True))


def _check_listed(nodes: IntArray, by: Sequence[Hashable], keys: Sequence[pd.Series]) -> None:
    """Raise an error if the node of a row was not found."""
    rows = np.flatnonzero(nodes < 0)
    if len(rows):
        named = "; ".join(_format_path(by, [key.iloc[row] for key in keys]) for row in rows[:_MOST_NAMED])
        others = f"; and {len(rows) - _MOST_NAMED:,} more" if len(rows) > _MOST_NAMED else ""
        raise ArgumentError(
            "known", f"has keys that the domain does not list: {named}{others}.",
            hint="spell them as the domain does, with the same types; drop rows that it does not list.",
        )  # fmt: skip


def _read_counts(column: pd.Series, absent: int, name_row: Callable[[int], str]) -> IntArray:
    """Read counts from a column of any type, `absent` where they are missing."""
    if column.dtype.kind in "iuf":
        missing = column.isna().to_numpy(dtype=bool)
        wide = {"i": np.int64, "u": np.uint64, "f": np.float64}[column.dtype.kind]
        numbers = column.mask(missing, 0).to_numpy(dtype=wide)
        odd = (numbers < 0) | (numbers > LARGEST) | (numbers != np.floor(numbers))
        read = np.where(missing, absent, np.where(odd, 0, numbers).astype(np.int64))
    else:
        codes, forms = canonical_codes(column, form_of=_count_form)
        counts = [int(form) if _is_count(form) else LARGEST + 1 for form in forms]  # type: ignore[call-overload]
        read = np.array([*counts, absent], dtype=np.int64)[codes]
        odd = read > LARGEST
    if odd.any():
        row = int(np.argmax(odd))
        [value] = column.iloc[[row]].tolist()
        raise ArgumentError(
            "known", f"says that {name_row(row)} holds {quote(value)}, which is not a count.",
            hint="counts are whole numbers from 0 to 2**61; leave out unknown counts.",
        )  # fmt: skip
    return read


def _count_form(value: Any) -> Hashable:
    """Return the canonical form of a stated count, which may be a decimal or a fraction, unlike a key."""
    if isinstance(value, Fraction) or (isinstance(value, Decimal) and value.is_finite()):
        return int(value) if 0 <= value <= LARGEST and value == int(value) else UNKNOWN
    return key_form(value)


def _is_count(form: Hashable) -> bool:
    """Whether a canonical form is a whole number from 0 to `LARGEST`."""
    return isinstance(form, (int, float)) and 0 <= form <= LARGEST and form == int(form)

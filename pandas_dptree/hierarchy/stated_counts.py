"""What a caller says of the counts, in whatever form → facts about nodes of the tree.

All of it is public: messages name the keys and quote the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, ColumnsError, kind_of_object, listed, quote
from pandas_dptree.hierarchy.columns import collected, pick_columns
from pandas_dptree.hierarchy.domain import RESERVED_NAMES, Domain, level_names
from pandas_dptree.hierarchy.tree import IntArray, Tree
from pandas_dptree.hierarchy.values import canonical_codes, positions

__all__ = [
    "LARGEST",
    "Facts",
    "check_levels",
    "frame_facts",
    "gathered",
    "level_facts",
    "node_names",
    "refuse",
]

BoolArray = npt.NDArray[np.bool_]
NameOf = Callable[[int, int], str]
"""Names a node, given by its level and its position, as the caller would."""

LARGEST = 2**61
"""The most that a tree may hold, so that sums of totals do not overflow 64 bits."""

BOUND = "at_least"
"""The column of lower bounds."""

_FORMS = (
    'pass a mapping such as {"total": 81203} or {"state": a Series indexed by state}, or a frame with key '
    "columns and `count` or `at_least`."
)
_N_NAMED = 3
"""How many unlisted keys a message names."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is said of some nodes of one level.

    Attributes
    ----------
    level : int
    nodes : numpy.ndarray of int64, shape (n,)
        Their positions, perhaps with repetitions.
    counts : numpy.ndarray of int64, shape (n,)
        What each holds, or -1 where that is not said.
    at_least : numpy.ndarray of int64, shape (n,)
        The least that each holds, or 0 where that is not said.
    """

    level: int
    nodes: IntArray
    counts: IntArray
    at_least: IntArray


def gathered(tree: Tree, facts: Sequence[Facts], name: NameOf) -> tuple[list[BoolArray], list[IntArray]]:
    """Bring facts onto their nodes.

    Returns
    -------
    exact : list of numpy.ndarray of bool, shape (level_sizes[l],) or (1,)
        Whether the node's count is given.
    least : list of numpy.ndarray of int64, shape (level_sizes[l],) or (1,)
        The count where it is given, else the largest lower bound.

    Raises
    ------
    ArgumentError
        If a node is given two counts, or a lower bound above its count.
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
            refuse(f"gives {name(level, node)} two counts, {counts[row]} and {count[node]}", len(other))
        above = np.flatnonzero((count >= 0) & (low > count))
        if len(above):
            node = int(above[0])
            refuse(f"says that {name(level, node)} holds {count[node]}, but at least {low[node]}", len(above))
        exact.append(count >= 0)
        least.append(np.where(count >= 0, count, low))
    return exact, least


def refuse(contradiction: str, number: int) -> None:
    """Raise on a contradiction, the first of a number of them."""
    others = f", and {number - 1:,} more contradiction{'s' * (number > 2)}" if number > 1 else ""
    raise ArgumentError(
        "known",
        f"{contradiction}{others}.",
        hint="give counts that add up; structural zeros of the domain hold 0.",
    )


def node_names(hierarchy: Domain | Tree) -> NameOf:
    """Name nodes by their keys, or by their place in a bare tree."""

    def name(level: int, node: int) -> str:
        if level == 0:
            return "the total"
        if isinstance(hierarchy, Tree):
            return f"node {node} of {level_names(hierarchy)[level]}"
        codes = [int(code[node]) for code in hierarchy.path_codes(level)]
        path = zip(hierarchy.labels, codes, strict=False)
        return _path(hierarchy.by, [labels[code] for labels, code in path if code >= 0])

    return name


def _path(by: Sequence[Hashable], keys: Sequence[Any]) -> str:
    """Write a path as keyword arguments are written, with numpy's numbers as plain ones."""
    plain = [key.item() if isinstance(key, np.generic) else key for key in keys]
    return ", ".join(f"{name}={quote(key)}" for name, key in zip(by, plain, strict=False))


def check_levels(hierarchy: Domain | Tree, known: Mapping[Hashable, Any]) -> None:
    """Refuse what is said of levels that there are not; counts of keys, for one, do not name levels."""
    names = level_names(hierarchy)
    strange = [name for name in known if name not in names]
    if strange:
        raise ArgumentError(
            "known", f"names a level that there is not: {quote(strange[0], of=known)}.",
            hint=f"the levels are {listed(names)}.",
        )  # fmt: skip


def level_facts(hierarchy: Domain | Tree, level_name: Hashable, given: Any, name: NameOf) -> list[Facts]:
    """Read what is said of the nodes of one level: see `Known.read` for the forms.

    Raises
    ------
    ArgumentError
        If there is no such level, or what is given does not fit it.
    """
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
        counts = _whole(pd.Series(given), -1, lambda row: name(level, row))
        return [Facts(level, np.arange(size), counts, np.zeros(size, dtype=np.int64))]
    if isinstance(given, pd.Series):
        given = _indexed(given, names[1 : level + 1])
    return frame_facts(hierarchy, given, name, level)


def frame_facts(hierarchy: Domain | Tree, given: Any, name: NameOf, level: int | None = None) -> list[Facts]:
    """Read what a frame says of nodes on all levels, or on one.

    On one level, a key that is missing is that of a short path, as ``groupby(dropna=False)`` has it.

    Raises
    ------
    ArgumentError
        If `given` is no frame, or speaks of nodes that there are not.
    ColumnsError
        If its columns are not as `Known.read` asks.
    """
    domain = Domain.from_tree(hierarchy) if isinstance(hierarchy, Tree) else hierarchy
    keys, numbers = _columns(given, domain.by, level)
    n_rows = len(next(iter(numbers.values())))
    encoded = [canonical_codes(key) for key in keys]
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

    said = {
        column: _whole(numbers[column], absent, name_row)
        if column in numbers
        else np.full(n_rows, absent, dtype=np.int64)
        for column, absent in (("count", -1), (BOUND, 0))
    }
    return [
        Facts(end, nodes[rows], said["count"][rows], said[BOUND][rows])
        for end in range(len(domain.by) + 1)
        if (rows := depth == end).any()
    ]


def _indexed(counts: pd.Series, by: Sequence[Hashable]) -> pd.DataFrame:
    """Turn a series of counts that is indexed by keys into a frame."""
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
    """Pick the keys and the numbers out of a supported frame; keys may stand in the index, too."""
    table: Any = collected(given, "known")
    if table is None:
        raise ArgumentError("known", f"cannot be {kind_of_object(given)}, or cannot be read.", hint=_FORMS)
    if isinstance(table, pd.DataFrame):
        indexed = [key for key in by if key in table.index.names and key not in table.columns]
        table = table.reset_index(level=indexed) if indexed else table
    names = list(table.columns)
    # A key that is misspelt must not turn counties into states, so no column goes unread.
    strange = [name for name in names if name not in (*by, *RESERVED_NAMES, BOUND)]
    if strange:
        raise ColumnsError(
            "known", "has columns that are neither keys nor numbers", columns=strange,
            hint=f"the keys are {listed(by)}, and its numbers must be called `count` or `at_least`; drop or "
            "rename the others.",
        )  # fmt: skip
    places = [place for place, key in enumerate(by) if key in names]
    needed = max([*(place + 1 for place in places), 1 if level is None else level])
    absent = [key for key in by[:needed] if key not in names]
    numbers = [name for name in ("count", BOUND) if name in names and name not in by]
    if absent or not numbers:
        raise ColumnsError(
            "known", "lacks the columns", columns=absent or ["count", BOUND],
            hint="it needs a key with all those above it, and `count` or `at_least`." if absent
            else "one of the two will do.",
        )  # fmt: skip
    columns = pick_columns(table, [*by[:needed], *numbers], argument="known")
    return columns[:needed], dict(zip(numbers, columns[needed:], strict=True))


def _check_listed(nodes: IntArray, by: Sequence[Hashable], keys: Sequence[pd.Series]) -> None:
    """Refuse rows whose node was not found."""
    rows = np.flatnonzero(nodes < 0)
    if len(rows):
        named = "; ".join(_path(by, [key.iloc[row] for key in keys]) for row in rows[:_N_NAMED])
        others = f"; and {len(rows) - _N_NAMED:,} more" if len(rows) > _N_NAMED else ""
        raise ArgumentError(
            "known", f"speaks of keys that the domain does not list: {named}{others}.",
            hint="write them as the domain does, with the same types; drop what it does not list.",
        )  # fmt: skip


def _whole(column: pd.Series, absent: int, name_row: Callable[[int], str]) -> IntArray:
    """Read whole numbers from 0, `absent` where they are missing, from a column of any type."""
    if column.dtype.kind in "iuf":
        missing = column.isna().to_numpy(dtype=bool)
        wide = {"i": np.int64, "u": np.uint64, "f": np.float64}[column.dtype.kind]
        numbers = column.mask(missing, 0).to_numpy(dtype=wide)
        odd = (numbers < 0) | (numbers > LARGEST) | (numbers != np.floor(numbers))
        read = np.where(missing, absent, np.where(odd, 0, numbers).astype(np.int64))
    else:
        codes, forms = canonical_codes(column)
        counts = [int(form) if _is_count(form) else LARGEST + 1 for form in forms]  # type: ignore[call-overload]
        read = np.array([*counts, absent], dtype=np.int64)[codes]
        odd = read > LARGEST
    if odd.any():
        row = int(np.argmax(odd))
        [value] = column.iloc[[row]].tolist()
        raise ArgumentError(
            "known", f"says that {name_row(row)} holds {quote(value)}, which is no count.",
            hint="counts are whole numbers from 0 to 2**61; leave out what is not known.",
        )  # fmt: skip
    return read


def _is_count(form: Hashable) -> bool:
    """Whether a canonical form is a whole number from 0."""
    return isinstance(form, (int, float, Fraction)) and 0 <= form <= LARGEST and form == int(form)

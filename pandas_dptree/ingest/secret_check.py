"""Count what becomes of the records of a release, exactly. Secret, and so is the result.

The records are read by the tally of the release itself, so a record is counted here if it is counted there.
Only records that it does not count are read once more, to find the reason.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.hierarchy.bins import Bins
from pandas_dptree.hierarchy.columns import exact
from pandas_dptree.hierarchy.crossed_domain import CrossedDomain
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.hierarchy.values import canonical_codes
from pandas_dptree.ingest.bins import BinTally
from pandas_dptree.ingest.contributions import LeafTally
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.grid import GridTally
from pandas_dptree.ingest.leaves import key_codes
from pandas_dptree.ingest.nested_bounding import Nested, nested_rows
from pandas_dptree.ingest.numbers import numbers
from pandas_dptree.ingest.prefixes import PrefixTally
from pandas_dptree.ingest.private_keys import PathTally
from pandas_dptree.ingest.reading import Bounding, bound_and_count
from pandas_dptree.ingest.safe_errors import discreetly
from pandas_dptree.ingest.scan.batches import Batch
from pandas_dptree.ingest.spill import Packet
from pandas_dptree.ingest.steps import N_BUCKETS, BoundedTally
from pandas_dptree.ingest.tallies import BoolArray, Columns, Rows, Tally
from pandas_dptree.ingest.times import times
from pandas_dptree.ingest.unit_counts import UnitTally
from pandas_dptree.ingest.units import Units, units_of
from pandas_dptree.privacy.caps import Caps
from pandas_dptree.privacy.quantity import Quantity

__all__ = [
    "ELSEWHERE", "MISSING_KEY", "MISSING_UNIT", "MISSING_VALUE", "REASONS", "STRUCTURAL_ZERO", "UNKNOWN_KEY",
    "UNREADABLE_VALUE", "Found", "bounded_values", "found_in", "nodes_per_unit", "public_keys",
    "rows_per_leaf", "rows_per_unit",
]  # fmt: skip

MISSING_KEY = "the key is missing"
UNKNOWN_KEY = "the key is not in the domain"
ELSEWHERE = "the key is in the domain, but not below its parent"
STRUCTURAL_ZERO = "the keys are a structural zero"
MISSING_VALUE = "the value is missing"
UNREADABLE_VALUE = "the value cannot be read"
MISSING_UNIT = "the privacy unit is missing, or cannot be one"

REASONS = (
    MISSING_KEY, UNKNOWN_KEY, ELSEWHERE, STRUCTURAL_ZERO, MISSING_VALUE, UNREADABLE_VALUE, MISSING_UNIT,
)  # fmt: skip
"""Why a record is dropped."""

Found: TypeAlias = "Counter[tuple[Hashable, ...]]"
"""Numbers of records, by what they have in common: ``("read",)``, ``("counted",)``, ``("level", number)``,
``("dropped", reason, column)``, ``("key", column, canonical form)``; ``("kept", max_contributions)``, and
``("kept", max_contributions, max_per_leaf)`` for other bounds in a leaf than those of the plan; and
``("below", place)``, ``("above", place)`` and ``("missing", place)``, with a place in `bounded_values`. An
entry ``("more", column)`` says that rare keys of a column were left out. ``("nodes", max_nodes, level)`` is
the number of nodes that units keep, and ``("units", max_nodes, level)`` of units that keep all of theirs."""

_MOST_KEYS = 2**16
"""So many different keys that are not in the domain are held for each column."""

_TRIED = (1, 2, 3, 5, 10, 20)
"""Usual bounds on what a unit contributes."""

_NO_UNITS = Units(-1, np.zeros((0, 0), dtype=np.uint64))
"""Stands for the units of a packet that holds what was found instead of rows."""


def found_in(records: Records, tally: Tally[Any], bounding: Bounding) -> Found:
    """Count what becomes of records that `tally` would count, after `bounding`."""
    key, unit = bounding["random_words"](2), bounding.get("privacy_unit")
    check = Check(CheckTally(tally), unit, bounding["max_contributions"], key, bounding.get("caps", ()))
    return discreetly(records.columns, partial(bound_and_count, records, check, bounding.get("temp_folder")))


def rows_per_unit(tally: Tally[Any], max_contributions: int) -> list[int]:
    """List the bounds on the rows of a unit that are tried: some usual ones, and that of the plan.

    A unit that is counted in nodes keeps a row in each of its leaves, or rows are not bounded.
    """
    tried, nested = sorted({*_TRIED, max_contributions}), tally.nested
    if nested is None:
        return tried
    return [] if nested.max_rows is None else [most for most in tried if most >= nested.max_nodes[-1]]


def nodes_per_unit(tally: Tally[Any]) -> list[int | tuple[int, ...]]:
    """List likewise the bounds on the nodes of a unit, of all levels alike, or as they are in the plan."""
    if not isinstance(tally, UnitTally):
        return []
    *above, most = tally.nested.max_nodes
    alike = all(each == min(most, n) for each, n in zip(above, tally.domain.tree.level_sizes, strict=False))
    return [*sorted({*_TRIED, most}), *([] if alike or not above else [tally.nested.max_nodes])]


def rows_per_leaf(tally: Tally[Any], caps: Caps) -> list[int | None]:
    """List likewise the bounds in a leaf, with None for no bound; empty if a tally has no leaves."""
    if isinstance(tally, (BinTally, GridTally, UnitTally)):
        return []
    return [None, *sorted({1, 2, 3, *(cap for cap in caps[-1:] if cap is not None)})]


def bounded_values(tally: Tally[Any]) -> Sequence[Quantity | Bins]:
    """List what a tally reads within bounds."""
    if isinstance(tally, LeafTally):
        return [each for each in tally.quantities if each.column is not None]
    if isinstance(tally, GridTally):
        return [tally.grid.bounds]
    return [tally.bins] if isinstance(tally, BinTally) else []


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class CheckTally(Tally[Found]):
    """Counts what becomes of records; `release` is the tally that decides it."""

    release: Tally[Any]

    @property
    def columns(self) -> Sequence[Hashable]:
        """The columns that are read."""
        return self.release.columns

    def read(self, column: Columns) -> tuple[Rows, BoolArray]:
        """Read records as the release does."""
        return self.release.read(column)

    def together(self, rows: Sequence[Rows]) -> Rows:
        """Join rows as the release does."""
        return self.release.together(rows)

    def count(self, rows: Sequence[Rows]) -> Found:
        """Count rows that are counted."""
        return Counter({("counted",): sum(map(len, rows))})

    def merged(self, parts: Iterable[Found]) -> Found:
        """Add up what was found of different records."""
        total: Found = Counter()
        for part in parts:
            total.update(part)
            total = _without_rare_keys(total)
        return total

    def dropped(self, batch: Batch, rows: Rows, inside: BoolArray) -> Found:
        """Count the records of a batch by level, and those that are not counted by the reason."""
        found: Found = Counter({("read",): len(inside)})
        out = np.flatnonzero(~inside)
        for level, n_rows in enumerate(_matched(self.release, rows, inside)):
            found["level", level] += n_rows
        if len(out):
            found.update(_reasons(self.release, _selected(batch, out), len(out)))
        return found

    def clipped(self, batch: Batch, counted: BoolArray) -> Found:
        """Count the values of counted records that lie outside their bounds."""
        found: Found = Counter()
        for place, of in enumerate(bounded_values(self.release)):
            _, below, above = _compared(batch.column(of.column), of)
            found["below", place] += int((below & counted).sum())
            found["above", place] += int((above & counted).sum())
        return found


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Check(BoundedTally[Found]):
    """Counts what becomes of records, and how many their units keep; `unit` is None if each is its own."""

    def deal(self, batch: Batch, n_buckets: int = N_BUCKETS) -> list[tuple[int, Packet]]:
        """Deal the units of the records that are counted; what is found of the others is a packet too."""
        tally: Any = self.tally
        rows, counted = tally.read(batch.column)
        found = tally.dropped(batch, rows, counted)
        units = []
        if self.unit is not None:
            units = list(units_of(batch.column(self.unit)))
            has_unit = np.zeros(len(counted), dtype=bool)
            for at, _ in units:
                has_unit[at] = True
            found["dropped", MISSING_UNIT, self.unit] += int((counted & ~has_unit).sum())
            counted = counted & has_unit
        found["counted",] += int(counted.sum())
        found.update(tally.clipped(batch, counted))
        packed = np.frombuffer(pickle.dumps(_without_rare_keys(found)), dtype=np.uint8)
        return [
            (0, Packet(_NO_UNITS, Rows(packed))),
            *self.dealt(units, replace(rows, amounts=()), counted, n_buckets),
        ]

    def count(self, packets: Iterable[Packet]) -> Found:
        """Count the rows of a bucket that units keep under each bound, and add what was found of others."""
        found: Found = Counter()
        alike: dict[tuple[int, int], list[Packet]] = {}
        for packet in packets:
            if packet.units.kind == _NO_UNITS.kind:
                found.update(pickle.loads(packet.rows.place.tobytes()))
            else:
                alike.setdefault(packet.units.sort, []).append(packet)
        for parts in alike.values():
            self._count_kept(found, parts)
        return found

    def _count_kept(self, found: Found, packets: list[Packet]) -> None:
        """Count the rows that units, all of one sort, keep under each bound."""
        tally: Any = self.tally
        units = Units(packets[0].units.kind, np.concatenate([packet.units.words for packet in packets]))
        rows = tally.together([packet.rows for packet in packets])
        if isinstance(tally.release, UnitTally):
            self._count_nodes(found, units, rows, tally.release)
            return
        unit = units.numbers(units.hashes(self.key))
        per_leaf = rows_per_leaf(tally.release, self.caps)
        own = self.caps[-1] if self.caps else None
        inner = [
            (cap, tally.release.nodes(rows, level))
            for level, cap in reversed([*enumerate(self.caps[:-1])])
            if cap is not None
        ]
        leaf = pd.factorize(rows.order)[0]
        for most_in_leaf in per_leaf or [None]:
            rows_of_unit = _rows_of_units(unit, [(most_in_leaf, leaf), *inner])
            for most in rows_per_unit(tally.release, self.max_contributions):
                kept = int(np.minimum(rows_of_unit, most).sum())
                found["kept", most, most_in_leaf] += kept
                if most_in_leaf == own:
                    found["kept", most] += kept

    def _count_nodes(self, found: Found, units: Units, rows: Rows, tally: UnitTally) -> None:
        """Count the nodes and rows that units, all of one sort, keep under each bound."""
        tree, levels = tally.domain.tree, range(tally.domain.tree.depth + 1)

        def counted(bounds: Nested) -> IntArray:
            """Count the nodes of each level that each unit keeps, and in the last line its rows."""
            kept = nested_rows(units, [rows.order], tree.nodes_above, bounds, self.key)
            first, unit = kept.first_level, np.cumsum(kept.first_level == 0) - 1
            return np.array([np.bincount(unit[first <= level]) for level in (*levels, len(levels))])

        everything = counted(Nested(tree.level_sizes))
        for bound in nodes_per_unit(tally):
            kept = counted(Nested((1, *[bound] * tree.depth) if isinstance(bound, int) else bound))
            for level in levels:
                found["nodes", bound, level] += int(kept[level].sum())
                found["units", bound, level] += int((kept[level] == everything[level]).sum())
        n_rows = counted(Nested(tally.nested.max_nodes, len(rows)))[-1]
        for most in rows_per_unit(tally, self.max_contributions):
            found["kept", most] += int(np.minimum(n_rows, most).sum())


def _rows_of_units(unit: IntArray, capped: Sequence[tuple[int | None, IntArray]]) -> IntArray:
    """Count the rows that each unit keeps in nodes with caps, the deepest level first."""
    rows, nodes = np.ones(len(unit), dtype=np.int64), [node for _, node in capped]
    for cap, _ in capped:
        pair = unit * (int(nodes[0].max(initial=0)) + 1) + nodes[0]
        _, example, group = np.unique(pair, return_index=True, return_inverse=True)
        rows = np.bincount(group, rows).astype(np.int64)
        rows = rows if cap is None else np.minimum(rows, cap)
        unit, nodes = unit[example], [node[example] for node in nodes[1:]]
    return np.bincount(unit, rows).astype(np.int64)


def _without_rare_keys(found: Found) -> Found:
    """Leave out the rarest keys of columns that have too many."""
    n_keys = Counter(entry[1] for entry in found if entry[0] == "key")
    for column, number in n_keys.items():
        if number > _MOST_KEYS:
            keys = [entry for entry in found if entry[:2] == ("key", column)]
            for entry in sorted(keys, key=found.__getitem__)[: number - _MOST_KEYS // 2]:
                del found[entry]
            found["more", column] += 1
    return found


def _selected(batch: Batch, rows: IntArray) -> Columns:
    """Select rows of a batch: each value stays what it is."""

    def column(name: Hashable) -> pd.Series:
        every = batch.column(name)
        if not isinstance(every.dtype, pd.CategoricalDtype):
            every = exact(every)
        return every.iloc[rows]

    return column


def _matched(tally: Any, rows: Rows, inside: BoolArray) -> Iterator[int]:
    """Count the records that match down to each level, the root first; not those in `_reasons`."""
    if isinstance(tally, PrefixTally):
        yield len(inside)
        tree, keys = tally.tree, rows.place[inside]
        for length in tree.lengths:
            yield int(tree.reaches(tree.shorten(keys, tree.longest, length), length).sum())
        return
    domain = public_keys(tally)
    n_inside = int(inside.sum())
    yield from [n_inside if domain else len(inside)] + [n_inside] * (len(domain.by) if domain else 0)
    if isinstance(tally, PathTally):
        for codes in rows.place[inside].T[1:]:
            yield int((codes >= 0).sum())


def public_keys(tally: Any) -> Domain | CrossedDomain | None:
    """Return the public keys of a tally, None if it has none."""
    if isinstance(tally, PrefixTally):
        return None
    domain: Domain | CrossedDomain | None = (
        tally.tree.domain if isinstance(tally, PathTally) else tally.domain
    )
    return domain


def _reasons(tally: Any, column: Columns, n_rows: int) -> Found:
    """Count records that are not counted by the first reason, and those that match by level."""
    found: Found = Counter()
    rows = np.arange(n_rows)
    if isinstance(tally, PrefixTally):
        _count_unknown(found, column, [tally.tree.column], rows)
        return found
    domain = public_keys(tally)
    if domain is not None:
        rows = np.flatnonzero(_match_axes(found, domain, column, n_rows))
    remaining = rows
    for place, of in enumerate(bounded_values(tally)):
        values = column(of.column)
        missing, _, _ = _compared(values, of)
        found["missing", place] += int(missing[rows].sum())
        ended = remaining[missing[remaining]]
        remaining = remaining[~missing[remaining]]
        absent = int((canonical_codes(values.iloc[ended])[0] < 0).sum())
        found["dropped", MISSING_VALUE, of.column] += absent
        found["dropped", UNREADABLE_VALUE, of.column] += len(ended) - absent
    return found


def _match_axes(found: Found, domain: Domain | CrossedDomain, column: Columns, n_rows: int) -> BoolArray:
    """Follow the path of each record on each axis; return which records have a leaf on all of them.

    The levels of an axis count all records that match on it; the reason is on the first axis without a leaf.
    """
    found["level", 0] += n_rows
    matching, above = np.ones(n_rows, dtype=bool), 0
    if isinstance(domain, Domain):
        return _match_keys(found, domain, column, matching, above, None)
    for axis in domain.axes.values():
        matching = _match_keys(found, axis, column, matching, above, axis.sources[-1])
        above += len(axis.by)
    return matching


def _match_keys(
    found: Found, domain: Domain, column: Columns, matching: BoolArray, above: int, of_zeros: Hashable
) -> BoolArray:
    """Follow the path of each record in a domain; return which of the `matching` ones have a leaf there.

    Of these, count why the path of others ends. `above` is the number of the level of the root, and
    structural zeros are reported for the column `of_zeros`.
    """
    codes = key_codes(domain, column)
    sources = {name: levels.columns for levels in domain.derived for name in levels.names}
    first_missing = np.full(len(matching), -1)
    rows = np.arange(len(matching))
    for level, (name, code) in enumerate(zip(domain.by, codes, strict=True)):
        nodes = domain.find_nodes([each[rows] for each in codes[: level + 1]])
        ended, rows = rows[nodes < 0], rows[nodes >= 0]
        found["level", above + level + 1] += len(rows)
        first_missing[(first_missing < 0) & (code == -1)] = level
        ended = ended[matching[ended]]
        gap = first_missing[ended]
        for missing, number in zip(*np.unique(gap[gap >= 0], return_counts=True), strict=True):
            found["dropped", MISSING_KEY, domain.by[missing]] += int(number)
        unknown = code[ended] == -2
        found["dropped", ELSEWHERE, name] += int(((gap < 0) & ~unknown).sum())
        _count_unknown(found, column, sources.get(name, (name,)), ended[(gap < 0) & unknown])
    leaves = domain.find_leaves([code[rows] for code in codes])
    zeros = rows[leaves < 0]
    found["dropped", STRUCTURAL_ZERO, of_zeros] += int(matching[zeros].sum())
    has_leaf = np.zeros(len(matching), dtype=bool)
    has_leaf[rows[leaves >= 0]] = True
    return matching & has_leaf


def _count_unknown(found: Found, column: Columns, sources: Sequence[Hashable], rows: IntArray) -> None:
    """Count records by their keys that are not in the domain, which are read from the columns `sources`."""
    for name in sources:  # in all columns but the last, only a missing value is a reason
        codes, forms = canonical_codes(column(name).iloc[rows])
        found["dropped", MISSING_KEY, name] += int((codes < 0).sum())
        rows, codes = rows[codes >= 0], codes[codes >= 0]
        if name == sources[-1]:
            found["dropped", UNKNOWN_KEY, name] += len(rows)
            for form, number in zip(forms, np.bincount(codes, minlength=len(forms)).tolist(), strict=True):
                found["key", name, form] += number


def _compared(column: pd.Series, of: Quantity | Bins) -> tuple[BoolArray, BoolArray, BoolArray]:
    """Read values as the release does: return which are missing, below the bounds, and above them."""
    if isinstance(of, Quantity):
        values = numbers(column)
        return np.isnan(values), *of.clipped(values)
    low, high = of.edges[0], of.edges[-1]
    if not of.is_time:
        values = numbers(column)
        return np.isnan(values), values < low, values > high
    first, last = (int(edge.view(np.int64)) for edge in (low, high))  # `times` clips to the bounds
    wide = [max(first - 1, 1 - 2**63), min(last + 1, 2**63 - 1)]
    read: npt.NDArray[Any] = times(column, replace(of, edges=np.array(wide).view(of.edges.dtype)))
    return np.isnat(read), read < low, read > high

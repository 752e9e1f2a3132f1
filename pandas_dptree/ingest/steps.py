"""The steps of reading records, in this process and on workers. Secret: nothing here may leave the package.

Only bytes pass between the processes of a cluster: rows of a bucket, and what was counted.
"""

from __future__ import annotations

import pickle
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.ingest.contribution_bounding import Capped, kept_rows
from pandas_dptree.ingest.nested_bounding import nested_rows
from pandas_dptree.ingest.scan.batches import Batch
from pandas_dptree.ingest.spill import Packet
from pandas_dptree.ingest.tallies import BoolArray, Rows, Tally
from pandas_dptree.ingest.units import Key, Units, units_of

__all__ = [
    "N_BUCKETS", "BoundedTally", "CountBucket", "CountPartition", "DealPartition", "Merge", "count_batch",
    "unpacked",
]  # fmt: skip

Counted = TypeVar("Counted")

N_BUCKETS = 256
"""Buckets of rows. Of 10**9 rows, each is about 100 MB; with more buckets, batches fall into small pieces."""


def count_batch(tally: Tally[Counted], batch: Batch) -> Counted:
    """Count the records of a batch, each of which is a unit of its own."""
    rows, inside = tally.read(batch.column)
    return tally.count([rows if inside.all() else rows[np.flatnonzero(inside)]])


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class BoundedTally(Generic[Counted]):
    """Counts the records that units keep: batches are dealt into buckets, and these are counted."""

    tally: Tally[Counted]
    unit: Hashable
    max_contributions: int
    key: Key
    caps: tuple[int | None, ...] = ()
    """The most rows of a unit in a node of each level, None if not bounded, as for the root; or empty."""

    def deal(self, batch: Batch, n_buckets: int = N_BUCKETS) -> list[tuple[int, Packet]]:
        """Deal the rows of a batch into buckets, by the keyed hash of their units."""
        rows, inside = self.tally.read(batch.column)
        return self.dealt(units_of(batch.column(self.unit)), rows, inside, n_buckets)

    def dealt(
        self, found: Iterable[tuple[IntArray, Units]], rows: Rows, inside: BoolArray, n_buckets: int
    ) -> list[tuple[int, Packet]]:
        """Deal the rows that are counted, whose units were `found`."""
        dealt = []
        for at, units in found:
            counted = inside[at]
            if not counted.all():
                at, units = at[counted], units[np.flatnonzero(counted)]
            bucket = units.hashes(self.key) >> np.uint64(32)
            bucket = ((bucket * np.uint64(n_buckets)) >> np.uint64(32)).astype(np.uint8)
            order = np.argsort(bucket, kind="stable")
            sizes = np.bincount(bucket, minlength=n_buckets)
            ends = np.cumsum(sizes)
            units, own = units[order], rows[at[order]]
            for number in np.flatnonzero(sizes).tolist():
                part = slice(int(ends[number] - sizes[number]), int(ends[number]))
                dealt.append((number, Packet(units[part], own[part])))
        return dealt

    def count(self, packets: Iterable[Packet]) -> Counted:
        """Count the rows of a bucket that their units keep."""
        alike: dict[tuple[int, int], list[Packet]] = {}
        for packet in packets:
            alike.setdefault(packet.units.sort, []).append(packet)
        return self.tally.count([self._kept(packets) for packets in alike.values()])

    def _kept(self, packets: list[Packet]) -> Rows:
        """Return the rows of packets that their units keep; the units are all of one sort."""
        units = Units(packets[0].units.kind, np.concatenate([packet.units.words for packet in packets]))
        rows = self.tally.together([packet.rows for packet in packets])
        order = [rows.order, *rows.amounts]
        if (nested := self.tally.nested) is not None:
            kept = nested_rows(units, order, self._nodes_of, nested, self.key)
            return Rows(rows.place[kept.rows], (*rows[kept.rows].amounts, kept.first_level))
        capped = [
            Capped(level, cap, self.tally.nodes(rows, level))
            for level, cap in reversed([*enumerate(self.caps)])
            if cap is not None
        ]
        stays = kept_rows(units, order, self.max_contributions, self.key, capped)
        return rows[np.flatnonzero(stays)]

    def _nodes_of(self, places: IntArray, level: int) -> IntArray:
        return self.tally.nodes(Rows(places), level)


# What follows is for clusters: it is pickled and sent to workers, and holds no record.


def unpacked(data: bytes) -> Any:
    """Return what `CountPartition`, `CountBucket` or `Merge` counted."""
    return pickle.loads(data)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Merge:
    """Merges what was counted of several partitions or buckets."""

    tally: Tally[Any]

    def __call__(self, parts: Iterator[bytes]) -> bytes:
        """Merge pickled parts."""
        return self.packed(map(unpacked, parts))

    def packed(self, parts: Iterable[Any]) -> bytes:
        """Merge, and pickle the result."""
        return pickle.dumps(self.tally.compact(self.tally.merged(parts)), protocol=5)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class CountPartition:
    """Counts the records of a partition, each of which is a unit of its own."""

    tally: Tally[Any]

    def __call__(self, batches: Iterator[Batch]) -> bytes:
        """Count the batches of the partition."""
        return Merge(self.tally).packed(count_batch(self.tally, batch) for batch in batches)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class DealPartition:
    """Deals the rows of a partition into buckets."""

    bound: BoundedTally[Any]

    def __call__(self, batches: Iterator[Batch]) -> Iterator[tuple[int, bytes]]:
        """Deal the batches of the partition: yield pickled rows, with the number of their bucket."""
        for batch in batches:
            for number, (units, rows) in self.bound.deal(batch):
                yield number, pickle.dumps((units, rows.compact()), protocol=5)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class CountBucket:
    """Counts the rows of a bucket that their units keep."""

    bound: BoundedTally[Any]

    def __call__(self, packets: Iterator[bytes]) -> bytes:
        """Count pickled rows of one bucket."""
        counted = self.bound.count(Packet(*pickle.loads(packet)) for packet in packets)
        return Merge(self.bound.tally).packed([counted])

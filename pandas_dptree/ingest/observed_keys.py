"""List the keys that occur in records. Only for a domain that the caller declares to be public."""

from __future__ import annotations

import pickle
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.values import canonical_codes, numbered_combinations
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.labels import check_key_types
from pandas_dptree.ingest.reading import in_threads
from pandas_dptree.ingest.safe_errors import discreetly
from pandas_dptree.ingest.scan.batches import Batch
from pandas_dptree.ingest.steps import unpacked
from pandas_dptree.ingest.workers.clusters import count_partitions, has_workers

__all__ = ["key_frame"]


def key_frame(frame: Any, by: Sequence[Hashable]) -> pd.DataFrame:
    """List the distinct combinations of keys, one row each, in the order in which they occur first."""
    records = Records(frame, by)
    if records.read_once:
        raise ArgumentError(
            "domain",
            'is "observed", but the frame can be read only once, and the keys are listed before the release.',
            hint="pass the public keys as a frame, or the records in one that can be read twice.",
        )
    check_key_types(records.types(by), "frame")
    return discreetly(by, partial(_distinct_keys, records))


def _distinct_keys(records: Records) -> pd.DataFrame:
    columns, cluster = records.columns, records.cluster
    if has_workers(cluster):
        parts = count_partitions(cluster, columns, count=_ListPartition(columns), merge=_MergeLists(columns))
        return _together(columns, map(unpacked, parts))
    return _together(columns, in_threads(partial(_keys, columns), records.batches()))


def _keys(columns: Sequence[Hashable], batch: Batch) -> pd.DataFrame:
    """List the distinct rows of a batch."""
    return _distinct(pd.DataFrame({name: batch.column(name).reset_index(drop=True) for name in columns}))


def _distinct(rows: pd.DataFrame) -> pd.DataFrame:
    """Keep the first of all rows with the same keys."""
    encoded = [canonical_codes(rows[name]) for name in rows]
    cell, _ = numbered_combinations([codes for codes, _ in encoded], [len(keys) for _, keys in encoded])
    _, first = np.unique(cell, return_index=True)
    return rows.iloc[np.sort(first)]


def _together(columns: Sequence[Hashable], parts: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """List the distinct rows of several lists. Columns of different types become objects, so 1 stays 1."""
    found = [part for part in parts if len(part)]
    joined = {}
    for name in columns:
        each = [part[name] for part in found] or [pd.Series([], dtype=object)]
        if any(column.dtype != each[0].dtype for column in each):
            each = [column.astype(object) for column in each]
        joined[name] = pd.concat(each, ignore_index=True)
    return _distinct(pd.DataFrame(joined)).reset_index(drop=True)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class _ListPartition:
    """Lists the keys of a partition, on a worker."""

    columns: Sequence[Hashable]

    def __call__(self, batches: Iterator[Batch]) -> bytes:
        """Return the pickled list."""
        return pickle.dumps(_together(self.columns, (_keys(self.columns, batch) for batch in batches)))


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class _MergeLists:
    """Merges lists of keys, on a worker."""

    columns: Sequence[Hashable]

    def __call__(self, parts: Iterator[bytes]) -> bytes:
        """Return the pickled list of all keys."""
        return pickle.dumps(_together(self.columns, map(unpacked, parts)))

"""How records and their units are read, in batches and buckets of any size."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

from pandas_dptree.ingest import reading, spill
from pandas_dptree.ingest.contributions import LeafTally
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.units import units_of
from pandas_dptree.privacy.quantity import COUNT


def leaves_read(frame, domain):
    """Give the leaf of each record, -1 for those that are not counted."""
    tally = LeafTally(domain, (COUNT,))
    batches = Records(frame, tally.columns).batches()
    read = [tally.read(batch.column) for batch in batches]
    return np.concatenate(
        [np.zeros(0, dtype=np.int64), *(np.where(inside, rows.place, -1) for rows, inside in read)]
    )


def encoded_units(column):
    """Give the unit of each row as the kind and the words that encode it; None if it has none."""
    found = [None] * len(column)
    sorts = set()
    for rows, units in units_of(column):
        assert (np.diff(rows) > 0).all() and units.sort not in sorts and len(rows) == len(units.words)
        sorts.add(units.sort)
        for row, words in zip(rows.tolist(), units.words.tolist(), strict=True):
            assert found[row] is None
            found[row] = (units.kind, *words)
    return found


@contextmanager
def divided(batch=2**20, buckets=256, few=0, in_memory=2**27):
    """Read so many rows at once, and deal them into so many buckets, in a file beyond `in_memory` bytes."""
    with pytest.MonkeyPatch.context() as patch:
        batches = Records.batches
        patch.setattr(Records, "batches", lambda records, *_: batches(records, batch))
        patch.setattr(reading, "_N_BUCKETS", buckets)
        patch.setattr(reading, "_FEW_ROWS", few)
        patch.setattr(spill, "_IN_MEMORY", in_memory)
        yield

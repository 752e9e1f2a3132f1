"""How records and their units are read, in batches and buckets of any size."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from pandas_dptree.hierarchy.values import UNKNOWN, canonical_codes, key_form
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


def values_read(frame, name, read):
    """Give what ``read(column)`` lists for each batch of a column."""
    return [each for batch in Records(frame, [name]).batches() for each in read(batch.column(name))]


def forms_of(column, form_of=key_form):
    """Give the canonical form of each value; None for those that are no key."""
    codes, keys = canonical_codes(column, form_of=form_of)
    forms = [None if code < 0 else keys[code] for code in codes.tolist()]
    return [None if form == UNKNOWN else form for form in forms]


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
        patch.setattr(reading, "N_BUCKETS", buckets)
        patch.setattr(reading, "_FEW_ROWS", few)
        patch.setattr(spill, "_IN_MEMORY", in_memory)
        yield


@dataclass(frozen=True)
class Part:
    """A batch whose types are its own."""

    frame: pd.DataFrame

    def __len__(self):
        return len(self.frame)

    def column(self, name):
        return self.frame[name]


@contextmanager
def in_parts(frames):
    """Read these frames as the batches of whatever records."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Records, "batches", lambda records, *_: map(Part, frames))
        yield

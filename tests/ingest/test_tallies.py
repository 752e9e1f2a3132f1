"""What is counted of some rows and of others adds up to what is counted of all."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pandas_dptree as dpt
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.private_keys import PrivateKeys
from pandas_dptree.ingest import tallies
from pandas_dptree.ingest.bins import BinTally
from pandas_dptree.ingest.contributions import LeafTally
from pandas_dptree.ingest.prefixes import PrefixTally
from pandas_dptree.ingest.private_keys import PathTally
from pandas_dptree.ingest.tallies import CellSums, Rows, add_up
from pandas_dptree.privacy.quantity import COUNT, Quantity
from tests.helpers_ingest import bins_of
from tests.strategies import fewer, objects

DOMAIN = Domain.from_frame(pd.DataFrame({"k": list("abcd")}), by=["k"])
WIDE = Domain.from_frame(pd.DataFrame({"k": [*"abcd", *map(str, range(400))]}), by=["k"])
X = Quantity.of("x", (-9, 9), 1)
TALLIES = {
    "leaves": LeafTally(DOMAIN, (COUNT,)),
    "sums": LeafTally(DOMAIN, (X, COUNT, X.centred(), Quantity.of("y", (0, 5), 0.5))),
    "sums of few of many": LeafTally(WIDE, (X, COUNT)),
    "leaf cells": LeafTally(
        dpt.cross(k=DOMAIN, y=dpt.cut("y", [0, 2, 3])).with_margins(["y_bin", ("k", "y_bin")]), (COUNT, X)
    ),
    "bins": BinTally(bins_of((0, 8)), DOMAIN),
    "bins of everyone": BinTally(bins_of((0, 8)), None),
    "bits": PrefixTally(dpt.prefixes("y", bits=[2, 64], notation="number")),
    "texts": PrefixTally(dpt.prefixes("k", chars=[1, 2], alphabet="abc")),
    "private keys": PathTally(PrivateKeys(columns=("p", "q"))),
    "private keys below": PathTally(PrivateKeys(columns=("p", "q"), domain=DOMAIN)),
}
KEYS = st.sampled_from(["a", "b", "ab", "d", "e", None])
PRIVATE = st.sampled_from([1, 1.0, "1", True, "é", "", None, (1, "a"), b"a", [1]])
ROWS = st.tuples(KEYS, st.sampled_from([-99, 0, 1, 2.5, None]), st.integers(0, 3), PRIVATE, PRIVATE)


def column_of(rows):
    columns = zip(*rows, strict=True) if rows else [()] * 5
    frame = {name: objects(list(column)) for name, column in zip("kxypq", columns, strict=True)}
    return frame.__getitem__


def shown(counted):
    """Give what was counted as plain values, whatever the order in which it was."""
    if isinstance(counted, CellSums):
        assert counted.cells == slice(None)
        return counted.sums.tolist()
    if hasattr(counted, "paths"):
        leaf, *codes = counted.paths.T.tolist()
        forms = [
            [None if code < 0 else known[code] for code in code_of]
            for code_of, known in zip(codes, counted.forms, strict=True)
        ]
        named = list(zip(leaf, *forms, strict=True))
        assert len({*named}) == len(named)
        return dict(zip(named, counted.rows.tolist(), strict=True))
    assert sorted({*counted.keys.tolist()}) == counted.keys.tolist()
    return dict(zip(counted.keys.tolist(), counted.rows.tolist(), strict=True))


@pytest.mark.parametrize("tally", TALLIES.values(), ids=TALLIES)
@fewer(2)
@given(data=st.data(), compact=st.booleans())
def test_parts_add_up(tally, data, compact):
    """In any division and order, from one process or several."""
    parts = data.draw(st.lists(st.lists(ROWS, max_size=6), max_size=4))
    together = [row for part in parts for row in part]

    def counted(rows, tally=tally):
        found, inside = tally.read(column_of(rows))
        assert len(found) == len(rows) == len(inside) and inside.dtype == bool
        own = tally.together([found[inside]])
        assert len(own.order) == len(own)
        halves = [own[: len(own) // 2], own[len(own) // 2 :].compact()]
        return tally.count(halves if compact else [tally.together(halves)])

    sent = pickle.loads(pickle.dumps(tally))
    each = [counted(part, sent) for part in parts[::-1]]
    if compact:
        each = [pickle.loads(pickle.dumps(tally.compact(one))) for one in each]
    whole = shown(tally.merged([counted(together)]))
    assert shown(tally.merged(each)) == whole
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tallies, "_MANY_KEYS", 0)
        assert shown(sent.merged(iter(each))) == whole
        assert shown(sent.merged([sent.merged(each[:1]), sent.merged(each[1:])])) == whole
    assert shown(tally.merged([])) == shown(tally.merged([tally.count([])]))


def test_few_cells_of_many_are_stored_sparsely():
    tally = TALLIES["sums of few of many"]
    rows = Rows(np.array([7, 399, 7]), (np.array([2**31, -(2**31), 2**31]),))
    counted = tally.count([rows[:1], rows[1:]])
    assert counted.cells.tolist() == [7, 399] and counted.sums.tolist() == [[2**32, -(2**31)], [2, 1]]
    dense = tally.merged([counted])
    assert dense.sums[:, [7, 399]].tolist() == counted.sums.tolist() and (dense.sums != 0).sum() == 4
    again = tally.compact(dense)
    assert again.cells.tolist() == [7, 399] and again.sums.tolist() == counted.sums.tolist()
    full = CellSums(slice(None), np.ones((2, tally.n_cells), dtype=np.int64))
    assert tally.compact(full) is full


def test_rows_do_not_show_the_records():
    frame = column_of([("a", 12345, 1, "12345", None)])
    for tally in TALLIES.values():
        rows, _ = tally.read(frame)
        assert "12345" not in repr(rows) + str(rows) + repr(tally) and "array" not in repr(rows)


def test_each_key_is_added_up_only_a_few_times(monkeypatch):
    monkeypatch.setattr(tallies, "_MANY_KEYS", 1)
    sizes = []

    class Part:
        def __init__(self, n):
            self.rows = np.zeros(n)

    def together(parts):
        sizes.append(sum(len(part.rows) for part in parts))
        return Part(sizes[-1])

    assert len(add_up((Part(1) for _ in range(1000)), Part(0), together).rows) == 1000
    assert sum(sizes) < 4000

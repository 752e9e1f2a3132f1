"""How many records of each group lie at each point of a grid, and how far one unit moves the counts."""

import math
import traceback
from collections import Counter
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from pandas_dptree.errors import ArgumentError, ColumnsError
from pandas_dptree.hierarchy.bins import Bins
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.grid import Grid
from pandas_dptree.ingest import tallies
from pandas_dptree.ingest.grid import GridTally, PointCounts, grid_counts, points_of_counts
from pandas_dptree.ingest.numbers import numbers
from pandas_dptree.ingest.tallies import Rows
from pandas_dptree.ingest.times import times
from tests.helpers_cases import each
from tests.helpers_ingest import STAMP, ZONED
from tests.helpers_random import fixed_words, words
from tests.strategies import ODD_VALUES, fewer, objects

pyarrow = pytest.importorskip("pyarrow")

DAY = 86_400 * 10**9
FIVE = Grid(Bins.of("x", bounds=(0, 2), bins=1), Fraction(1, 2))
DAYS = Grid(Bins.of("x", bounds=(STAMP, STAMP + pd.Timedelta(4, "D")), bins=1), Fraction(DAY))
ZONED_DAYS = Grid(Bins.of("x", bounds=(ZONED, ZONED + pd.Timedelta(4, "D")), bins=1), Fraction(DAY))
SPANS = Grid(Bins.of("x", bounds=(pd.Timedelta(0), pd.Timedelta(4, "D")), bins=1), Fraction(DAY))
GRIDS = [FIVE, DAYS, ZONED_DAYS, SPANS]
DOMAIN = Domain.from_frame(pd.DataFrame({"a": ["s", "s", "t"], "b": ["u", "v", None]}), by=["a", "b"])


def counted(frame, grid=FIVE, domain=None, *, unit=None, k=1, random_words=None):
    counts = grid_counts(
        frame, grid, domain, privacy_unit=unit, max_contributions=k, random_words=random_words or words()
    )
    return as_dict(counts)


def as_dict(counts):
    """Check the form of counts, and return the number of records at each place."""
    assert counts.places.dtype == counts.rows.dtype == np.int64
    assert (np.diff(counts.places) > 0).all() and (counts.rows > 0).all()
    return dict(zip(counts.places.tolist(), counts.rows.tolist(), strict=True))


# What is read --------------------------------------------------------------------------------------------


def test_values_are_rounded_to_the_grid_clipped_or_dropped():
    frame = pd.DataFrame({"x": [0.2, 0.3, 0.5, 7, -math.inf, math.inf, math.nan, 1.2]})
    assert counted(frame) == {0: 2, 1: 2, 2: 1, 4: 2}
    texts = pd.DataFrame({"x": ["1.9", "x", None, "nan", "inf"]}, dtype="str")
    assert counted(texts) == {4: 2}
    assert counted(frame[:0]) == {}


def test_groups_follow_each_other_and_other_records_are_dropped():
    rows = [
        ("s", "u", 0), ("s", "v", 1), ("s", "v", 1), ("t", None, 2), ("s", None, 2), ("z", "u", 1),
        (None, None, 1), ("s", "v", math.nan), ("t", None, math.nan),
    ]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["a", "b", "x"])
    found = counted(frame, FIVE, DOMAIN)
    leaves = sorted(found)
    assert [place % 5 for place in leaves] == [0, 2, 4] and [found[place] for place in leaves] == [1, 2, 1]
    assert len({place // 5 for place in leaves}) == 3
    assert max(leaves) < DOMAIN.tree.n_leaves * 5


@each("grid", GRIDS)
def test_odd_values_have_one_point_or_none_each_by_itself(grid):
    alone = []
    for value in ODD_VALUES:
        read = times(objects([value]), grid.bounds) if grid.bounds.is_time else numbers(objects([value]))
        alone += grid.find(read).tolist()
    assert len(alone) == len(ODD_VALUES) and set(alone) <= set(range(-1, 5))
    assert counted(pd.DataFrame({"x": objects(ODD_VALUES)}), grid) == Counter(filter(lambda p: p >= 0, alone))


def test_no_value_is_shown_by_warnings_of_numpy(capfd):
    wide = Grid(Bins.of("x", bounds=(0, 1e300), bins=1), Fraction(10**298))
    extremes, errors = [1.0, 5e-324, 1e308, math.inf, -math.inf, math.nan, -0.0], []
    for state in ("raise", "print", "warn", "call"):
        with np.errstate(all=state, call=lambda *error: errors.append(error)):
            for grid in (FIVE, wide):
                for held in (extremes, objects(extremes), pd.arrays.SparseArray(extremes)):
                    assert sum(counted(pd.DataFrame({"x": held}), grid).values()) == 6
    assert capfd.readouterr() == ("", "") and not errors


@each("rows", [{"x": [1]}, {"x": []}])
def test_a_column_of_another_type_is_refused_whatever_it_holds(rows):
    with pytest.raises(ColumnsError, match="a different type than the bounds"):
        counted(pd.DataFrame(rows, dtype="int64"), DAYS)
    with pytest.raises(ColumnsError, match="a different type than the bounds"):
        counted(pd.DataFrame({"x": pd.to_datetime(rows["x"])}), FIVE)


def test_the_unit_is_not_the_column():
    with pytest.raises(ArgumentError, match="privacy_unit"):
        counted(pd.DataFrame({"x": [1]}), unit="x")


def test_nothing_that_is_raised_or_shown_holds_the_records(monkeypatch):
    def fail(column):
        raise RuntimeError(f"secret: {column.tolist()}")

    monkeypatch.setattr("pandas_dptree.ingest.grid.numbers", fail)
    with pytest.raises(ArgumentError) as error:
        counted(pd.DataFrame({"x": [123.0]}))
    assert "secret" not in "".join(traceback.format_exception(error.value))


# Batches -------------------------------------------------------------------------------------------------


@given(
    places=st.lists(st.integers(0, 9), max_size=30), cuts=st.lists(st.integers(0, 30), max_size=5),
    many=st.sampled_from([0, 3, 2**20]), backwards=st.booleans(),
)  # fmt: skip
def test_batches_of_any_size_in_any_order_add_up(places, cuts, many, backwards):
    tally = GridTally(FIVE, DOMAIN)
    ends = sorted(cut for cut in cuts if cut <= len(places))
    pieces = [Rows(each) for each in np.split(np.array(places, dtype=np.int64), ends)]
    parts = [tally.count([piece]) for piece in (pieces[::-1] if backwards else pieces)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tallies, "_MANY_KEYS", many)
        merged = tally.merged(iter(parts))
    assert isinstance(merged, PointCounts)
    assert as_dict(merged) == as_dict(tally.count(pieces)) == Counter(places)


@each("size", [1, 3, 100])
def test_batches_of_an_engine_add_up(size):
    values = [0.0, 1.0, 1.1, None, 2.0, 2.0, 0.4]
    table = pyarrow.table({"x": values, "u": list("aabbccc")})
    batches = pyarrow.Table.from_batches(table.to_batches(max_chunksize=size))
    assert counted(batches) == {0: 1, 1: 1, 2: 2, 4: 2}
    assert sum(counted(batches, unit="u", k=2).values()) == 2 + 1 + 2
    assert counted(batches, unit="u", k=9) == counted(batches)


# Counts in bins -----------------------------------------------------------------------------------------


def test_counts_in_bins_are_counts_of_their_middles():
    counts = np.array([[0, 3, -2], [1, 0, 5]])
    assert as_dict(points_of_counts(counts)) == {1: 3, 3: 1, 5: 5}
    assert as_dict(points_of_counts(np.zeros((0, 3), dtype=np.int64))) == {}


@each("shape", [(1, 1), (1, 1000), (2**14, 4)])
def test_the_largest_counts_add_up_without_overflow(shape):
    """A thousand times the records of a group fit into 64 bits, and so do the records of all groups."""
    counts = np.full(shape, 2**63 - 1)
    rows = points_of_counts(counts).rows
    assert len(rows) == counts.size
    assert int(rows[0]) * shape[1] * 1000 < 2**63 and int(rows[0]) * counts.size < 2**63
    few = np.full(shape, 10**9)
    assert (points_of_counts(few).rows == 10**9).all()


# How far one unit moves the counts -----------------------------------------------------------------------

ROWS = st.tuples(
    st.sampled_from([("s", "u"), ("s", "v"), ("t", None), ("t", "u"), ("z", "u"), (None, None)]),
    st.sampled_from([0.5, 1.5, 4.0, -9, math.inf, math.nan, None, "2", "x", []]),
)


def records(rows, units):
    return pd.DataFrame({
        "a": objects([key[0] for key, _ in rows]), "b": objects([key[1] for key, _ in rows]),
        "x": objects([value for _, value in rows]), "u": objects(units),
    })  # fmt: skip


@fewer(3)
@given(
    others=st.lists(st.tuples(ROWS, st.integers(0, 2)), max_size=9), own=st.lists(ROWS, max_size=6),
    k=st.integers(1, 3), seed=st.integers(0, 2**32), grouped=st.booleans(),
)  # fmt: skip
def test_one_unit_adds_at_most_its_rows_and_moves_no_others(others, own, k, seed, grouped):
    """For every key: neighbours through the real way of the data. Replacing is removing and adding."""
    domain = DOMAIN if grouped else None
    base, units = [row for row, _ in others], [unit for _, unit in others]

    def counts(rows):
        frame = records([*base, *rows], [*units, *["me"] * len(rows)]).sample(frac=1, random_state=len(rows))
        found = counted(frame, FIVE, domain, unit="u", k=k, random_words=fixed_words(seed))
        return Counter(found)

    here, there = counts(own), counts([])
    assert not there - here
    assert (here - there).total() <= k


def test_as_many_rows_as_stated_are_kept():
    frame = records([(("s", "u"), 0.5)] * 5, ["me"] * 5)
    assert [sum(counted(frame, FIVE, DOMAIN, unit="u", k=k).values()) for k in (1, 2, 7)] == [1, 2, 5]


def test_rows_that_do_not_count_replace_no_others():
    rows = [(("z", "u"), 1)] * 40 + [(("s", "u"), "x")] * 40 + [(("s", "u"), 1)]
    assert list(counted(records(rows, ["me"] * 81), FIVE, DOMAIN, unit="u").values()) == [1]
    assert counted(records(rows[80:], [None]), FIVE, unit="u") == {}

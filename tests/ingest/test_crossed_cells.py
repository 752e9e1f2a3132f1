"""Records of crossed hierarchies are counted in their leaf cells, by every reader, and unit by unit."""

import itertools
import pickle
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pandas_dptree as dpt
from pandas_dptree.errors import ColumnsError
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.ingest.contributions import leaf_totals
from pandas_dptree.privacy.quantity import COUNT, Quantity
from pandas_dptree.verbs.domains import crossed_domain_of
from tests.helpers_crossed_records import Axis, cells_of, crossed, labelled
from tests.helpers_engine_verbs import KEYS, LISTED, PLACES
from tests.helpers_engines import ENGINES, in_pandas, in_spark, odd_records
from tests.helpers_random import fixed_words, words
from tests.helpers_reading import divided, leaves_read
from tests.strategies import fewer

X = Quantity.of("x", (-2, 5), 1)


@fewer(2)
@given(drawn=crossed(), batch=st.integers(1, 9))
def test_cells_are_those_of_a_loop_over_rows(drawn, batch):
    """Gaps, nulls, short paths, structural zeros, and axes of which no level or not all are wanted."""
    axes, domain, frame = drawn
    frame["x"] = np.arange(len(frame)) % 9 - 3.0
    cells = cells_of(frame.to_dict("records"), axes, domain.ground)
    expected, sums = Counter(cells), Counter()
    for cell, value in zip(cells, frame["x"].clip(-2, 5), strict=True):
        sums[cell] += value
    del expected[None], sums[None]
    with divided(batch=batch):
        counts, x = leaf_totals(frame, domain, [COUNT, X], max_contributions=1)
        read = leaves_read(frame, domain)
    assert labelled(counts, domain) == expected
    assert labelled(x, domain) == Counter({cell: n for cell, n in sums.items() if n})
    assert (read >= 0).tolist() == [cell is not None for cell in cells]
    assert np.bincount(read[read >= 0], minlength=domain.tree.n_leaves).tolist() == counts.tolist()


# Every engine

DAYS = dpt.calendar("day", ["year", "month"], start="2020-01-01", end="2021-06-30")
BY = {"place": KEYS, "what": ["kind", "flag"], "when": DAYS}
ODD = crossed_domain_of(None, BY, {"place": PLACES, "what": LISTED})
MONTHS = [(day.year, f"{day:%Y-%m}") for day in pd.date_range("2020-01-01", "2021-06-30", freq="MS")]
AXES = [
    Axis(KEYS, [*PLACES.itertuples(index=False, name=None)], []),
    Axis(["kind", "flag"], [*LISTED.itertuples(index=False, name=None)], []),
    Axis(["year", "month"], MONTHS, []),
]
AMOUNT = Quantity.of("amount", (0.5, 100), 0.01)
UNIT = {"privacy_unit": "unit", "max_contributions": 3, "caps": (None,) * (ODD.tree.depth) + (1,)}
BOUNDINGS = [{"max_contributions": 1}, UNIT]
USUAL = ["pandas of objects", "polars lazy", "pyarrow dataset", "duckdb"]


@pytest.fixture(scope="module")
def table():
    return odd_records(300).drop_columns("never")


def totals(frame):
    """Counts and sums, of all rows and of those that units keep."""
    return [
        [
            each.tolist()
            for each in leaf_totals(frame, ODD, [COUNT, AMOUNT], random_words=words(3), **bounding)
        ]
        for bounding in BOUNDINGS
    ]


@pytest.fixture(scope="module")
def expected(table):
    return totals(in_pandas(table))


def test_odd_records_are_counted_as_by_a_loop(table, expected):
    rows, amounts = table.to_pylist(), Counter()
    for row in rows:
        day = row["day"]
        row |= {"year": day and day.year, "month": day and f"{day:%Y-%m}"}
    for row, cell in zip(rows, cells_of(rows, AXES, ODD.ground), strict=True):
        amount = row["amount"]
        if cell is not None and amount is not None and amount == amount:
            amounts[cell, 1] += 1
            amounts[cell, 2] += round(100 * min(max(amount, 0.5), 100))
    (counts, sums), (kept, _) = expected
    assert labelled(counts, ODD) == Counter({cell: n for (cell, kind), n in amounts.items() if kind == 1})
    assert labelled(sums, ODD) == Counter({cell: n for (cell, kind), n in amounts.items() if kind == 2})
    assert 20 < sum(kept) < sum(counts)


@pytest.mark.filterwarnings("ignore:Dask support is moving:FutureWarning")
@pytest.mark.parametrize(
    "engine", [pytest.param(each, marks=[] if each in USUAL else pytest.mark.slow) for each in ENGINES]
)
def test_every_engine_counts_the_same(engine, table, expected, tmp_path):
    read_once = engine in ("pyarrow reader", "stream")
    frame = None if read_once else ENGINES[engine](table, tmp_path / "files")
    for bounding, sums in zip(BOUNDINGS, expected, strict=True):
        records = ENGINES[engine](table, None) if read_once else frame
        with divided(buckets=5, in_memory=0):
            found = leaf_totals(records, ODD, [COUNT, AMOUNT], random_words=words(3), **bounding)
        assert [each.tolist() for each in found] == sums


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
def test_spark_counts_the_same(spark, table, expected, tmp_path):
    assert totals(in_spark(spark, table, tmp_path / "files")) == expected


def test_a_domain_that_is_sent_to_a_worker_finds_the_same_cells():
    domain = ODD.with_margins(["county", ("state", "day_year")])
    cells = domain.find_cells([np.array([3, -1, 60]), np.array([0, 1, 1]), np.array([17, 2, 0])])
    data = pickle.dumps(domain)
    assert b"_cells_of_leaves" not in data
    again = pickle.loads(data)
    assert again.tree == domain.tree and again.fingerprint == domain.fingerprint == ODD.fingerprint
    assert again.find_cells([np.array([3, -1, 60]), *[np.array([0, 0, 0])] * 2]).tolist() == [
        cells[0] - 1, -1, cells[2]
    ]  # fmt: skip


def test_records_of_an_axis_that_is_cut_off_are_in_the_cell_above():
    places = pd.DataFrame({"a": ["p", "p", "p", "q"], "b": ["r", "s", "t", None]})
    domain = dpt.cross(c=dpt.Tree.from_branching([2]), a=Domain.from_frame(places, by=["a", "b"]))
    every, none = np.arange(4), np.full(4, -1)
    assert domain.find_cells([np.ones(4, dtype=int), every]).tolist() == [4, 5, 6, 7]
    above, total = domain.with_margins([("c", "a")]), domain.with_margins(["c"])
    assert above.find_cells([np.ones(4, dtype=int), every]).tolist() == [2, 2, 2, 3]
    assert total.find_cells([np.array([0, 1, 1, -1]), every]).tolist() == [0, 1, 1, -1]
    assert total.find_cells([np.array([0, 1, 1, -1]), none]).tolist() == [-1] * 4


def test_columns_of_every_axis_must_fit_its_labels():
    frame = pd.DataFrame({"a": ["p"], "b": ["r"], "c": pd.to_datetime(["2024-01-01"])})
    with pytest.raises(ColumnsError, match="'c'"):
        leaf_totals(frame, TINY, max_contributions=1)


# One unit more, less, or another


@fewer(2)
@given(drawn=crossed(), data=st.data(), k=st.integers(1, 4), seed=st.integers(0, 2**32 - 1))
def test_units_are_bounded_by_themselves(drawn, data, k, seed):
    """What all keep is the sum of what each keeps alone, in any order and division: k, and m in a cell."""
    _, domain, frame = drawn
    most = data.draw(st.sampled_from([None, 1, 2, 3]))
    n = len(frame)
    frame["u"] = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    frame["x"] = np.array(data.draw(st.lists(st.integers(-3, 9), min_size=n, max_size=n)), dtype=float)
    bounding = {
        "privacy_unit": "u", "max_contributions": k, "caps": (*[None] * domain.tree.depth, most),
        "random_words": fixed_words(seed),
    }  # fmt: skip
    batch, buckets, spilled = data.draw(st.tuples(st.integers(1, 9), st.integers(1, 256), st.booleans()))
    shuffled = frame.iloc[data.draw(st.permutations(range(n)))]
    with divided(batch=batch, buckets=buckets, in_memory=0 if spilled else 2**27):
        together = leaf_totals(shuffled, domain, [COUNT, X], **bounding)
    total = np.zeros((2, domain.tree.n_leaves), dtype=np.int64)
    unbounded = {"max_contributions": 99, "privacy_unit": "u", "random_words": words()}
    for _, own in frame.groupby("u"):
        kept = leaf_totals(own, domain, [COUNT, X], **bounding)
        every = leaf_totals(own, domain, **unbounded)[0]
        assert kept[0].sum() == min(k, np.minimum(every, most or k).sum())
        assert (kept[0] <= np.minimum(every, most or k)).all()
        total += kept
    assert np.array_equal(total, together)


TINY = dpt.cross(
    a=Domain.from_frame(pd.DataFrame({"a": ["p", "q"], "b": [None, "r"]}), by=["a", "b"]),
    c=Domain.from_frame(
        pd.DataFrame({"c": ["s", "t"], "zero": [False, True]}), by=["c"], structural_zeros="zero"
    ),
)
PLACED = [("p", None, "s"), ("q", "r", "s"), ("q", "r", "t"), ("q", None, "s"), (None, None, "s")]
"""Two rows that are counted, in different cells; a structural zero; a path that is not listed; no key."""

OTHERS = [(*PLACED[0], 1), (*PLACED[0], 1), (*PLACED[1], 1), (*PLACED[1], 2), (*PLACED[2], 2)]


def counted(own, k, most, seed):
    rows = [*((*row, 0) for row in own), *OTHERS]
    frame = pd.DataFrame(rows, columns=[*"abc", "u"], dtype=object)
    caps = (*[None] * TINY.tree.depth, most)
    bounding = {"privacy_unit": "u", "max_contributions": k, "caps": caps, "random_words": fixed_words(seed)}
    return leaf_totals(frame, TINY, **bounding)[0]


@pytest.mark.parametrize("n_rows", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_no_neighbor_moves_cells_further_than_its_bounds(n_rows):
    """Every unit of so many rows, against none and every other one: all bounds are attained."""
    units = [own for n in range(n_rows + 1) for own in itertools.combinations_with_replacement(PLACED, n)]
    for k, most in itertools.product(range(1, n_rows + 1), (None, 1)):
        in_cell = min(k, most or k)
        tables = np.array([counted(own, k, most, seed=k) for own in units])
        added = tables - tables[0]
        assert (added >= 0).all() and added.max() == in_cell
        assert added.sum(axis=1).max() == min(k, 2 * in_cell)  # there are two cells
        replaced = abs(tables[:, None] - tables)
        assert replaced.max() == in_cell and replaced.sum(axis=2).max() == 2 * in_cell


def test_rows_without_a_leaf_cell_do_not_push_out_others():
    """They are dropped before the rows of a unit are bounded, whichever axis they lack."""
    for seed in range(9):
        own = [PLACED[1], *PLACED[2:] * 3]
        assert (counted(own, 1, None, seed) - counted([], 1, None, seed)).tolist() == (
            counted(own[:1], 1, None, seed) - counted([], 1, None, seed)
        ).tolist()

"""What is counted depends on no division of the records, and a unit moves it by its own rows alone.

For every key: so adding or removing a unit moves the counts by at most as many rows as it may keep.
"""

import threading
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError
from pandas_dptree.ingest import private_keys as private_keys_module
from pandas_dptree.ingest import reading, spill, units
from pandas_dptree.ingest.contributions import leaf_totals
from pandas_dptree.ingest.reading import in_threads
from pandas_dptree.privacy.quantity import COUNT
from tests.helpers_cases import each
from tests.helpers_random import fixed_words, rng, words
from tests.helpers_reading import divided, encoded_units, in_parts
from tests.helpers_units import (
    DOMAIN,
    POOLS,
    ROWS,
    VERBS,
    X,
    added,
    frame_of,
    parts_of,
    private_keys,
    sums,
    units_in_nodes,
)  # fmt: skip
from tests.strategies import fewer, objects

polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
@pytest.mark.parametrize("pool", POOLS)
@fewer(3)
@given(rows=ROWS, k=st.integers(1, 3), n_buckets=st.integers(1, 3), data=st.data())
def test_units_add_up(verb, pool, rows, k, n_buckets, data):
    """Whatever the types of their column in each batch: each unit adds what it adds on its own."""
    values, holders = POOLS[pool]
    held = [(values[unit % len(values)], key, x) for unit, key, x in rows]
    seed = data.draw(st.integers(0, 2**32))
    bounding = {"privacy_unit": "u", "max_contributions": k, "random_words": fixed_words(seed)}

    everyone = frame_of(held)
    parts = list(parts_of(data, held, holders))
    with divided(buckets=n_buckets), in_parts(parts):
        found = added([verb(everyone, **bounding)])
    alone = [verb(everyone[everyone["u"] == unit], **bounding) for unit in values]
    assert found == added(alone)
    if verb is units_in_nodes:  # `test_unit_counts` has its bounds
        return
    for own in alone:
        n_rows = sum(n for place, n in own.items() if verb is not sums or place[0] == 0)
        levels = 3 if verb is private_keys else 1
        assert n_rows <= k * levels and (verb is not private_keys or own[(0,)] <= k)


def many(n=1500):
    """Make records of units of up to a hundred rows, some of them with equal ones."""
    random = np.random.default_rng(1)
    return pd.DataFrame({
        "u": random.geometric(0.05, n), "k": objects(random.choice(list("abcd"), n).tolist()),
        "x": random.integers(-3, 9, n).astype(float),
    })  # fmt: skip


def divisions(n):
    """List ways to divide so many rows."""
    return [
        {"batch": 1, "few": 10**6}, {"batch": 7, "buckets": 256}, {"batch": n // 4, "buckets": 1},
        {"batch": n // 15, "buckets": 3, "in_memory": 0},
        {"batch": n // 30, "buckets": 256, "in_memory": 7 * n}, {"batch": n},
    ]  # fmt: skip


@pytest.mark.parametrize("n", [200, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_the_division_makes_no_difference(verb, n, monkeypatch):
    """Neither batches, buckets, the order of the rows, the number of threads, nor a temporary file."""
    frame = many(n)
    bounding = {"privacy_unit": "u", "max_contributions": 2, "random_words": fixed_words(7)}
    expected = verb(frame, **bounding)
    without = None if verb is units_in_nodes else verb(frame)  # which needs a column of units
    assert expected != without
    for number, options in enumerate(divisions(n)):
        shuffled = frame.sample(frac=1, random_state=number)
        monkeypatch.setattr(reading, "_MOST_THREADS", 1 + number % 3)
        with divided(**options):
            assert verb(shuffled, **bounding) == expected
            if number % 2:
                assert verb(polars.from_pandas(shuffled).lazy(), **bounding) == expected
                assert without is None or verb(shuffled) == without


def test_rows_go_to_the_file_of_choice(monkeypatch, tmp_path):
    opened, original = [], spill.tempfile.TemporaryFile
    monkeypatch.setattr(
        spill.tempfile,
        "TemporaryFile",
        lambda **options: opened.append(options["dir"]) or original(**options),
    )
    bounding = {"privacy_unit": "u", "max_contributions": 2, "random_words": fixed_words(7)}
    expected = sums(many(), **bounding)
    assert not opened
    with divided(batch=500, in_memory=0):
        assert sums(many(), **bounding, temp_folder=tmp_path) == expected
    assert opened == [str(tmp_path)] and not list(tmp_path.iterdir())


@each("n_hashes", [1, 2])
def test_units_with_equal_hashes_are_not_merged(monkeypatch, n_hashes):
    """Everyone's rows are as good as those of one unit, but for the words that encode it."""
    monkeypatch.setattr(units, "split_mix", lambda state: state % np.uint64(n_hashes))
    frame = pd.DataFrame({"u": [*range(100), *range(50)], "k": "a", "x": 1})
    names = frame.assign(u=objects([f"{unit:04}" for unit in frame["u"]]))
    for made in (frame, names):
        for k, expected in ((2, 150), (1, 100)):
            bounding = {"privacy_unit": "u", "max_contributions": k, "random_words": fixed_words(0)}
            assert sums(made, **bounding)[0, 0] == expected


def test_units_of_different_kinds_are_not_merged():
    """The text is encoded by the same word as the number; the other two begin alike."""
    [(_, number)], [(_, text)] = encoded_units(pd.Series([263])), encoded_units(objects(["\7"]))
    assert number == text
    frame = pd.DataFrame({"u": objects([263, "\7", b"\7", "('bytes','07')"]), "k": "a", "x": 1})
    bounding = {"privacy_unit": "u", "max_contributions": 1, "random_words": fixed_words(0)}
    assert sums(frame, **bounding)[0, 0] == 4


@pytest.mark.parametrize("rounds", [50, pytest.param(150, marks=pytest.mark.slow)])
def test_kept_rows_are_uniform(rounds):
    """A rare leaf beside identical rows: where these are not numbered, 0.246 was found for 0.1."""
    own = [("a", 1)] * 6 + [("b", 1)] + [("c", 1), ("c", 2), ("c", 2)]
    frame = pd.DataFrame(own * 40, columns=["k", "x"]).assign(u=np.repeat(np.arange(40), 10))
    draw = words(5)
    for k in (1, 3):
        found = np.zeros((2, 3))
        for _ in range(rounds):
            shuffled = frame.sample(frac=1, random_state=_)
            found += leaf_totals(
                shuffled, DOMAIN, [COUNT, X], privacy_unit="u", max_contributions=k, random_words=draw
            )
        n = rounds * 40 * k
        counts, total = found
        assert counts.sum() == n
        if k == 1:  # else the leaves of a unit's rows depend on each other
            assert scipy.stats.chisquare(counts, n * np.array([0.6, 0.1, 0.3])).pvalue > 1e-4
        np.testing.assert_allclose(counts / n, [0.6, 0.1, 0.3], atol=4 * np.sqrt(0.25 / n))
        assert total[2] / counts[2] == pytest.approx(5 / 3, abs=4 * 0.5 / np.sqrt(counts[2]))


def test_the_same_seed_keeps_the_same_rows():
    options = {"domain": DOMAIN, "epsilon": 1.0, "privacy_unit": "u", "max_contributions": 1}

    def counts(seed, batch):
        with divided(batch=batch):
            return dpt.tree_counts(many(), ["k"], **options, rng=rng(seed))["count"].tolist()

    assert counts(0, 10**6) == counts(0, 100) == counts(0, 100) != counts(1, 10**6)


@pytest.mark.parametrize("n_hashes", [1, 3, pytest.param(2, marks=pytest.mark.slow)])
def test_paths_with_equal_hashes_are_not_equal(monkeypatch, n_hashes):
    """Which rows stay depends on the order of the records for no path, and for no other unit's."""
    monkeypatch.setattr(private_keys_module, "split_mix", lambda state: state % np.uint64(n_hashes))
    frame = many(300).assign(k=objects([[0, "0", None, 0.5, 1, ("a",)][n % 6] for n in range(300)]))
    bounding = {"privacy_unit": "u", "max_contributions": 2, "random_words": fixed_words(7)}
    expected = private_keys(frame, **bounding)
    assert expected == added(private_keys(own, **bounding) for _, own in frame.groupby("u"))
    for number, options in enumerate(divisions(300)[1:]):
        with divided(**options):
            assert private_keys(frame.sample(frac=1, random_state=number), **bounding) == expected


# Threads: what happens in them shows as little as elsewhere.


@each("unit", [None, "u"])
@each("raised", [ValueError, MemoryError, RuntimeWarning])
def test_errors_of_threads_hold_no_record(monkeypatch, unit, raised):
    def fail(column):
        warnings.warn("secret-value", stacklevel=1)
        np.array([1.0]) / 0
        if len(column) < 7:
            raise raised("secret-value")
        return np.zeros(len(column))

    monkeypatch.setattr("pandas_dptree.ingest.contributions.numbers", fail)
    before = threading.active_count()
    with divided(batch=7), pytest.raises(ArgumentError) as caught, warnings.catch_warnings(action="error"):
        leaf_totals(
            many(20), DOMAIN, [X], privacy_unit=unit, max_contributions=1, random_words=words()
        )  # fmt: skip
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert threading.active_count() == before


def test_items_come_in_order_and_few_are_held(monkeypatch):
    monkeypatch.setattr(reading, "_MOST_THREADS", 2)
    ahead = []

    def items():
        for item in range(50):
            ahead.append(item)
            yield item

    seen = []
    for result in in_threads(lambda item: -item, items()):
        seen.append(-result)
        assert len(ahead) - len(seen) <= 3
    assert seen == ahead == list(range(50))


def test_threads_end_when_nobody_asks_any_more():
    before = threading.active_count()
    results = in_threads(str, iter(range(10**6)))
    assert next(results) == "0"
    results.close()
    assert threading.active_count() == before

"""What is counted depends on no division of the records, and a unit moves it by its own rows alone.

For every key: so adding or removing a unit moves the counts by at most as many rows as it may keep.
"""

import threading
import warnings
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.private_keys import PrivateKeys
from pandas_dptree.ingest import private_keys as private_keys_module
from pandas_dptree.ingest import reading, spill, units
from pandas_dptree.ingest.bins import binned_counts
from pandas_dptree.ingest.contributions import leaf_totals
from pandas_dptree.ingest.prefixes import sorted_keys
from pandas_dptree.ingest.private_keys import nodes_of_private_keys
from pandas_dptree.ingest.reading import in_threads
from pandas_dptree.privacy.quantity import COUNT, Quantity
from tests.helpers_ingest import bins_of
from tests.helpers_private_keys import paths
from tests.helpers_random import fixed_words, rng, words
from tests.helpers_reading import divided, in_parts
from tests.strategies import objects

polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

DOMAIN = Domain.from_frame(pd.DataFrame({"k": list("abc")}), by=["k"])
X = Quantity.of("x", (-2, 5), 1)
BITS = dpt.prefixes("x", bits=[1, 3], width=8)
TREE = PrivateKeys(columns=("k", "x"))


def sums(frame, **bounding):
    """Add up by leaf."""
    found = leaf_totals(frame, DOMAIN, [COUNT, X], **bounding)
    return Counter(
        {(n, leaf): total for n, each in enumerate(found) for leaf, total in enumerate(each.tolist())}
    )


def bins(frame, **bounding):
    """Count by leaf and bin."""
    return Counter(dict(np.ndenumerate(binned_counts(frame, bins_of((0, 4)), DOMAIN, **bounding))))


def prefixes(frame, **bounding):
    """Count by prefix."""
    found = sorted_keys(frame, BITS, **bounding)
    return Counter(dict(zip(found.keys.tolist(), found.rows.tolist(), strict=True)))


def private_keys(frame, **bounding):
    """Count by path of keys."""
    nodes = nodes_of_private_keys(frame, TREE, **bounding)
    return Counter({
        path: count
        for names, counts in zip(paths(nodes), nodes.counts, strict=True)
        for path, count in zip(names, counts.tolist(), strict=True)
    })  # fmt: skip


VERBS = {"sums": sums, "bins": bins, "prefixes": prefixes, "private keys": private_keys}


def added(counts):
    """Add up what was counted of different rows; a Counter would leave out what is below 0."""
    total = Counter()
    for each in counts:
        total.update(each)
    return {place: count for place, count in total.items() if count}


class Word(str):
    """Text of another type."""

    __slots__ = ()


def arrow(kind):
    """Hold values in two chunks."""
    chunks = pyarrow.chunked_array
    return lambda values: pd.Series(
        pd.arrays.ArrowExtensionArray(chunks([values[:1], values[1:]], type=kind))
    )


def signed(values):
    return [-0.0 if value == 0 else float(value) for value in values]


SCALARS = [int, float, Decimal, np.int8, np.float32]
WHOLE = [
    lambda values: pd.Series(values, dtype="i8"),
    lambda values: pd.Series(values, dtype="u1"),
    lambda values: pd.Series(signed(values), dtype="f8"),
    lambda values: pd.Series(values, dtype="f4"),
    lambda values: pd.Series(values, dtype="Int64"),
    lambda values: pd.Series(pd.arrays.SparseArray(np.array(values, dtype=float))),
    lambda values: pd.Series(values, dtype="category"),
    lambda values: objects(list(map(Decimal, values))),
    lambda values: objects(list(map(Fraction, values))),
    lambda values: objects([SCALARS[n % 5](value) for n, value in enumerate(values)]),
    lambda values: objects([*values, ("odd",)])[: len(values)],
    arrow(pyarrow.int64()),
    arrow(pyarrow.float64()),
    arrow(pyarrow.decimal128(9, 2)),
    arrow(pyarrow.dictionary(pyarrow.int8(), pyarrow.int64())),
]  # fmt: skip
TEXTS = ["", "a", "a\0", "7", "1" * 8, "1" * 20]
TEXT = [
    objects,
    lambda values: pd.Series(objects(values), dtype="str"),
    lambda values: pd.Series(objects(values), dtype="string[python]"),
    lambda values: pd.Series(pd.Categorical.from_codes([*map(TEXTS.index, values)], objects(TEXTS))),
    lambda values: objects(list(map(np.str_, values))),
    lambda values: objects([*map(Word, values), 7])[: len(values)],
    arrow(pyarrow.string()),
    arrow(pyarrow.large_string()),
    arrow(pyarrow.dictionary(pyarrow.int8(), pyarrow.string())),
]  # fmt: skip
POOLS = {"whole": ([0, 1, 7], WHOLE), "text": (TEXTS, TEXT)}
ROWS = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from("abcd"), st.sampled_from([-9, 0, 1, 2, 9])),
    max_size=16,
)  # fmt: skip


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
@pytest.mark.parametrize("pool", POOLS)
@settings(max_examples=60, deadline=None)
@given(rows=ROWS, k=st.integers(1, 3), n_buckets=st.integers(1, 3), data=st.data())
def test_units_add_up(verb, pool, rows, k, n_buckets, data):
    """Whatever the types of their column in each batch: each unit adds what it adds on its own."""
    values, holders = POOLS[pool]
    held = [(values[unit % len(values)], key, x) for unit, key, x in rows]
    seed = data.draw(st.integers(0, 2**32))
    bounding = {"privacy_unit": "u", "max_contributions": k, "random_words": fixed_words(seed)}

    def frame_of(rows, hold=objects):
        unit, key, x = zip(*rows, strict=True) if rows else ((),) * 3
        return pd.DataFrame({"u": hold(list(unit)), "k": objects(list(key)), "x": np.array(x, dtype=float)})

    everyone = frame_of(held)
    order = data.draw(st.permutations(range(len(held))))
    parts, start = [], 0
    while start < len(held):
        stop = start + data.draw(st.integers(1, len(held) - start))
        part = [held[row] for row in order[start:stop]]
        parts.append(frame_of(part, data.draw(st.sampled_from(holders))))
        start = stop
    with divided(buckets=n_buckets), in_parts(parts):
        found = added([verb(everyone, **bounding)])
    alone = [verb(everyone[everyone["u"] == unit], **bounding) for unit in values]
    assert found == added(alone)
    for each in alone:
        n_rows = sum(n for place, n in each.items() if verb is not sums or place[0] == 0)
        levels = 3 if verb is private_keys else 1
        assert n_rows <= k * levels and (verb is not private_keys or each[(0,)] <= k)


def many(n=1500):
    """Make records of units of up to a hundred rows, some of them with equal ones."""
    random = np.random.default_rng(1)
    return pd.DataFrame({
        "u": random.geometric(0.05, n), "k": objects(random.choice(list("abcd"), n).tolist()),
        "x": random.integers(-3, 9, n).astype(float),
    })  # fmt: skip


DIVISIONS = [
    {"batch": 1, "few": 10**6}, {"batch": 7, "buckets": 256}, {"batch": 400, "buckets": 1},
    {"batch": 100, "buckets": 3, "in_memory": 0}, {"batch": 50, "buckets": 256, "in_memory": 10_000},
    {"batch": 1500},
]  # fmt: skip


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_the_division_makes_no_difference(verb, monkeypatch):
    """Neither batches, buckets, the order of the rows, the number of threads, nor a temporary file."""
    frame = many()
    bounding = {"privacy_unit": "u", "max_contributions": 2, "random_words": fixed_words(7)}
    expected, without = verb(frame, **bounding), verb(frame)
    assert expected != without
    for number, options in enumerate(DIVISIONS):
        shuffled = frame.sample(frac=1, random_state=number)
        monkeypatch.setattr(reading, "_MOST_THREADS", 1 + number % 3)
        with divided(**options):
            assert verb(shuffled, **bounding) == expected
            if number % 2:
                assert verb(polars.from_pandas(shuffled).lazy(), **bounding) == expected
                assert verb(shuffled) == without


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


@pytest.mark.parametrize("n_hashes", [1, 2])
def test_units_with_equal_hashes_are_not_merged(monkeypatch, n_hashes):
    """Everyone's rows are as good as those of one unit, but for the words that encode it."""
    monkeypatch.setattr(units, "mixed", lambda state: state % np.uint64(n_hashes))
    frame = pd.DataFrame({"u": [*range(100), *range(50)], "k": "a", "x": 1})
    names = frame.assign(u=objects([f"{unit:04}" for unit in frame["u"]]))
    for made in (frame, names):
        for k, expected in ((2, 150), (1, 100)):
            bounding = {"privacy_unit": "u", "max_contributions": k, "random_words": fixed_words(0)}
            assert sums(made, **bounding)[0, 0] == expected


def test_kept_rows_are_uniform():
    """A rare leaf beside identical rows: where these are not numbered, 0.246 was found for 0.1."""
    own = [("a", 1)] * 6 + [("b", 1)] + [("c", 1), ("c", 2), ("c", 2)]
    frame = pd.DataFrame(own * 40, columns=["k", "x"]).assign(u=np.repeat(np.arange(40), 10))
    draw, rounds = words(5), 150
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


@pytest.mark.parametrize("n_hashes", [1, 2, 3])
def test_paths_with_equal_hashes_are_not_equal(monkeypatch, n_hashes):
    """Which rows stay depends on the order of the records for no path, and for no other unit's."""
    monkeypatch.setattr(private_keys_module, "mixed", lambda state: state % np.uint64(n_hashes))
    frame = many(300).assign(k=objects([[0, "0", None, 0.5, 1, ("a",)][n % 6] for n in range(300)]))
    bounding = {"privacy_unit": "u", "max_contributions": 2, "random_words": fixed_words(7)}
    expected = private_keys(frame, **bounding)
    assert expected == added(private_keys(own, **bounding) for _, own in frame.groupby("u"))
    for number, options in enumerate(DIVISIONS[1:]):
        with divided(**options):
            assert private_keys(frame.sample(frac=1, random_state=number), **bounding) == expected


# Threads: what happens in them shows as little as elsewhere.


@pytest.mark.parametrize("unit", [None, "u"])
@pytest.mark.parametrize("raised", [ValueError, MemoryError, RuntimeWarning])
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

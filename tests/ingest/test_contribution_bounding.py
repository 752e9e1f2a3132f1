"""How far one privacy unit or one row can move counts and sums, and which of its rows stay."""

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.ingest.contribution_bounding import bound_contributions, kept_rows
from pandas_dptree.ingest.units import Units
from pandas_dptree.privacy.quantity import COUNT, Quantity
from pandas_dptree.privacy.sensitivity import count_sensitivity
from tests.helpers_cases import each
from tests.helpers_ingest import counted, listed_leaves, summed
from tests.helpers_random import fixed_words, words
from tests.helpers_units import MASK, words_slowly
from tests.strategies import domains_and_rows, fewer, frame_of, objects

polars = pytest.importorskip("polars")


@given(
    drawn=domains_and_rows(),
    k=st.integers(1, 4),
    unit=st.integers(0, 3),
    replace=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
    data=st.data(),
)
def test_one_unit_moves_no_level_by_more_than_the_sensitivity(drawn, k, unit, replace, seed, data):
    """For every key: neighbours through the real way of the data, in any order."""
    domain, rows = drawn
    rng = np.random.default_rng(seed)
    frame = rows.assign(unit=rng.integers(0, 4, len(rows)))
    own = data.draw(st.lists(st.sampled_from(listed_leaves(domain)), max_size=6))
    neighbor = frame[frame["unit"] != unit]
    if replace:
        neighbor = pd.concat([neighbor, frame_of(own, list(domain.by)).assign(unit=unit)])
    counts = [
        counted(records, domain, privacy_unit="unit", k=k, draw=fixed_words(seed))
        for records in (frame, neighbor.sample(frac=1, random_state=1))
    ]
    sensitivity = count_sensitivity(neighbors="replace" if replace else "add_remove", max_contributions=k)
    for here, there in zip(*map(domain.tree.roll_up, counts), strict=True):
        assert np.abs(here - there).sum() <= sensitivity.l1
        assert ((here - there) ** 2).sum() <= sensitivity.l2_squared


@given(
    drawn=domains_and_rows(), row=st.integers(0, 24), replace=st.booleans(), seed=st.integers(0, 2**32 - 1)
)
def test_one_row_moves_no_level_by_more_than_the_sensitivity(drawn, row, replace, seed):
    domain, rows = drawn
    if row >= len(rows):
        return
    neighbor = rows.drop(index=row)
    if replace:
        neighbor = pd.concat([neighbor, rows.sample(1, random_state=seed)])
    sensitivity = count_sensitivity(neighbors="replace" if replace else "add_remove")
    levels = [domain.tree.roll_up(counted(frame, domain)) for frame in (rows, neighbor)]
    for here, there in zip(*levels, strict=True):
        assert np.abs(here - there).sum() <= sensitivity.l1
        assert ((here - there) ** 2).sum() <= sensitivity.l2_squared


def test_rows_outside_the_domain_are_dropped_before_the_bound():
    domain = Domain.from_frame(pd.DataFrame({"k": ["in"]}), by=["k"])
    frame = pd.DataFrame({"k": ["out"] * 99 + ["in"], "unit": 1})
    assert counted(frame, domain, privacy_unit="unit").tolist() == [1]


def test_rows_without_a_unit_are_dropped():
    domain = Domain.from_frame(pd.DataFrame({"k": ["a"]}), by=["k"])
    frame = pd.DataFrame({"k": ["a"] * 4, "unit": ["x", None, np.nan, [1]]})
    assert counted(frame, domain, privacy_unit="unit", k=9).tolist() == [1]


def test_which_rows_stay_is_uniform():
    unit = np.array([0] * 5 + [1] * 2)
    draw, rounds = words(1), 6000
    kept = sum(bound_contributions(unit, draw(7), 2).astype(int) for _ in range(rounds))
    assert kept[5:].tolist() == [rounds] * 2
    np.testing.assert_allclose(kept[:5] / rounds, 0.4, atol=4 * np.sqrt(0.24 / rounds))


def test_which_rows_stay_depends_on_their_unit_alone():
    """Against the rule, unit by unit; few distinct priorities, so that many are tied."""
    rng = np.random.default_rng(2)
    for _ in range(300):
        n, k, distinct = rng.integers(0, 30), int(rng.integers(1, 5)), rng.choice([3, 2**32])
        unit = rng.integers(0, rng.integers(1, 12), n)
        priorities = rng.integers(distinct, size=n, dtype=np.uint64) << np.uint64(32)
        expected = np.zeros(n, dtype=bool)
        for one in set(unit):
            own = np.flatnonzero(unit == one)
            first_out = sorted(priorities[own].tolist())[k:][:1] or [2**64]
            expected[own] = [priority < first_out[0] for priority in priorities[own].tolist()]
            assert expected[own].sum() <= k
        assert bound_contributions(unit, priorities, k).tolist() == expected.tolist()
    assert bound_contributions(unit, priorities, 2**70).all()


def kept_slowly(kind, units, order, k, key, capped=()):
    """Choose the rows of each unit: sorted, the r-th has the r-th word of a sequence, and the least stay.

    Levels with caps come first, and take the words from r + level * 2**40 on.
    """
    kept = [False] * len(units)
    for unit in set(units):
        own = sorted((row for row in range(len(units)) if units[row] == unit), key=order.__getitem__)
        word_of = words_slowly(kind, unit, key)
        stay = dict(enumerate(own, 1))
        for level, cap, node in [*capped, (0, k, [0] * len(units))]:
            for one in set(node):
                here = [rank for rank, row in stay.items() if node[row] == one]
                word = {rank: word_of(rank + level * 2**40) >> 32 for rank in here}
                beyond = sorted([*word.values(), *[2**32] * (cap + 1)])[cap]
                stay = {rank: row for rank, row in stay.items() if rank not in word or word[rank] < beyond}
        for row in stay.values():
            kept[row] = True
    return kept


@each("key", [[0, 0], [MASK, MASK], [1, 2**63], [0x0123456789ABCDEF, 77]])
@each("n_words", [1, 3])
def test_rows_are_chosen_as_slowly(key, n_words):
    rng = np.random.default_rng(key[1] % 97)
    for _ in range(60):
        n, k, kind = rng.integers(0, 30), int(rng.integers(1, 5)), int(rng.integers(3))
        words = rng.integers(3, size=(n, n_words), dtype=np.uint64) * np.uint64(2**63 - 1)
        place, amount = rng.integers(3, size=n), rng.integers(-2, 2, size=n)
        kept = kept_rows(Units(kind, words), [place, amount], k, np.array(key, dtype=np.uint64))
        order = list(zip(place.tolist(), amount.tolist(), strict=True))
        expected = kept_slowly(kind, list(map(tuple, words.tolist())), order, k, key)
        # rows of a unit that are equal may stand for each other
        assert sorted(zip(words[kept].tolist(), place[kept], amount[kept], strict=True)) == sorted(
            (words[row].tolist(), place[row], amount[row]) for row in np.flatnonzero(expected)
        )
        # counts have no amounts, and are sorted in another way; nodes may be out of order
        levels = [(3, place), (2, place // 2), (1, place % 2)]
        capped = [(level, int(rng.integers(1, 4)), node) for level, node in levels if rng.random() < 0.5]
        kept = kept_rows(Units(kind, words), [place], k, np.array(key, dtype=np.uint64), capped)
        capped = [(level, cap, node.tolist()) for level, cap, node in capped]
        expected = kept_slowly(kind, list(map(tuple, words.tolist())), place.tolist(), k, key, capped)
        assert sorted(zip(words[kept].tolist(), place[kept], strict=True)) == sorted(
            (words[row].tolist(), place[row]) for row in np.flatnonzero(expected)
        )


def test_some_units_with_equal_hashes_among_others(monkeypatch):
    """Each unit keeps what it keeps alone."""
    hashes = Units.hashes
    monkeypatch.setattr(Units, "hashes", lambda units, key: hashes(units, key) & np.uint64(3))
    rng, key = np.random.default_rng(0), np.array([5, 6], dtype=np.uint64)
    words, place = rng.integers(40, size=(300, 1), dtype=np.uint64), rng.integers(9, size=300)
    kept = kept_rows(Units(0, words), [place], 2, key)
    for unit in np.unique(words):
        own = np.flatnonzero(words[:, 0] == unit)
        alone = kept_rows(Units(0, words[own]), [place[own]], 2, key)
        assert sorted(place[own][kept[own]]) == sorted(place[own][alone]) and kept[own].sum() <= 2


def test_units_whose_hashes_are_equal_are_bounded_separately(monkeypatch):
    monkeypatch.setattr(Units, "hashes", lambda units, key: np.full(len(units.words), 7, dtype=np.uint64))
    units = Units(1, np.array([[0, 1], [1, 1], [0, 2], [1, 1], [0, 1], [1, 1]], dtype=np.uint64))
    key, same = np.zeros(2, dtype=np.uint64), np.zeros(6, dtype=np.int64)
    assert kept_rows(units, [same], 3, key).all()
    kept = kept_rows(units, [same], 2, key)
    assert kept[[0, 2, 4]].all() and kept[[1, 3, 5]].sum() == 2
    assert kept_rows(units, [same], 1, key).sum() == 3


def test_each_row_of_a_unit_is_kept_as_often_as_every_other():
    """A rare place, identical rows, extreme amounts: where rows are not numbered, 0.246 was found for 0.1."""
    rounds = 4000
    units = Units(0, np.repeat(np.arange(rounds, dtype=np.uint64), 10)[:, None])
    place = np.tile([0] * 6 + [1, 2, 2, 3], rounds)
    amount = np.tile([5] * 3 + [0, -(2**31), 2**31, 5, 5, 5, 0], rounds)
    for k in (1, 3):
        kept = kept_rows(units, [place, amount], k, np.array([3, 9], dtype=np.uint64))
        of_each = np.bincount(np.flatnonzero(kept) % 10, minlength=10)
        assert of_each.sum() == rounds * k
        # identical rows stand for each other, so only their sums are those of a uniform choice
        groups = np.array([0, 0, 0, 1, 2, 3, 4, 5, 5, 6])
        found, share = np.bincount(groups, of_each), np.bincount(groups) / 10
        np.testing.assert_allclose(found / rounds, k * share, atol=4.5 * np.sqrt(k * 0.25 / rounds))


def test_units_are_bounded_in_the_same_way_in_every_library():
    domain = Domain.from_frame(pd.DataFrame({"k": list("abc")}), by=["k"])
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"k": rng.choice(list("abc"), 200), "unit": rng.integers(0, 30, 200)})
    frame["name"] = frame["unit"].map("person {}".format)
    libraries = (
        lambda frame: frame,
        lambda frame: frame.astype({"k": object, "name": object}),
        lambda frame: frame.astype("category"),
        polars.from_pandas,
        lambda frame: polars.from_pandas(frame).lazy(),
        lambda frame: polars.from_pandas(frame).to_arrow(),
    )
    for unit in ("unit", "name"):
        results = [counted(library(frame), domain, privacy_unit=unit, k=2).tolist() for library in libraries]
        assert all(result == results[0] for result in results) and 30 < sum(results[0]) <= 60


# Sums: what each record adds, and how far one unit can move the sums.


def test_records_that_lack_a_value_are_dropped_before_the_bound():
    domain = Domain.from_frame(pd.DataFrame({"k": ["in"]}), by=["k"])
    frame = pd.DataFrame({"k": ["in"] * 99, "x": [None] * 98 + [5], "y": ["2"] * 99, "unit": 1})
    values = [Quantity.of("y", (0, 9), 1), Quantity.of("x", (0, 9), 1), COUNT]
    assert [s.tolist() for s in summed(frame, domain, values, privacy_unit="unit")] == [[2], [5], [1]]


def test_all_sums_are_of_the_same_rows():
    rng = np.random.default_rng(0)
    domain = Domain.from_frame(pd.DataFrame({"k": list("abc")}), by=["k"])
    frame = pd.DataFrame({"k": rng.choice(list("abcd"), 300), "unit": rng.integers(0, 30, 300)})
    frame["x"] = frame["y"] = rng.choice([1, 10, 100, 1000, np.nan], 300)
    x, y = Quantity.of("x", (0, 1000), 1), Quantity.of("y", (0, 1000), 1)
    for library in (lambda frame: frame, polars.from_pandas):
        by_x, by_y, centred, count = summed(
            library(frame), domain, [x, y, x.centred(), COUNT], privacy_unit="unit", k=2
        )
        assert by_x.tolist() == by_y.tolist() == (centred + 500 * count).tolist()
        assert 0 < count.sum() < len(frame)


def test_rows_stay_with_the_same_chance_whatever_their_values():
    n_units, rounds = 100, 40
    unit = np.repeat(np.arange(n_units), 5)
    domain = Domain.from_frame(pd.DataFrame({"unit": range(n_units)}), by=["unit"])
    frame = pd.DataFrame({"unit": unit, "x": np.tile([1, 10, 100, 1000, 10_000], n_units)})
    draw, amount = words(3), [Quantity.of("x", (0, 10_000), 1)]
    sums = [summed(frame, domain, amount, privacy_unit="unit", k=2, draw=draw)[0] for _ in range(rounds)]
    pairs, times = np.unique(sums, return_counts=True)
    assert len(pairs) == 10
    n = n_units * rounds
    np.testing.assert_allclose(times / n, 0.1, atol=4 * np.sqrt(0.09 / n))


def test_sums_are_exact_and_clipped_at_both_ends():
    n = 4000
    leaf = np.array([0, 1, 2, 3] * n)
    value = np.array([2**31, -(2**31), 2**31 - 1, -(2**20) - 1] * n)
    frame, amount = pd.DataFrame({"k": leaf, "x": value}), Quantity.of("x", (-(2**31), 2**31), 1)
    domain = Domain.from_frame(pd.DataFrame({"k": range(4)}), by=["k"])
    assert summed(frame, domain, [amount])[0].tolist() == [
        n * 2**31, -n * 2**31, n * (2**31 - 1), -n * (2**20 + 1),
    ]  # fmt: skip
    largest = 2**61 // 10**6
    domain = Domain.from_frame(pd.DataFrame({"k": range(10**6)}), by=["k"])
    (sums,) = summed(frame, domain, [amount])
    assert sums[:5].tolist() == [largest, -largest, largest, -n * (2**20 + 1), 0]


SUMMED = [
    Quantity.of("x", (-3, 5), 1),
    Quantity.of("y", (0, 2), 0.5),
    Quantity.of("x", (2, 4), 1),
    Quantity.of("x", (-3, 5), 1).centred(),
    COUNT,
]
OBJECTS = st.sampled_from(
    [
        -3,
        5,
        0,
        2.4,
        99,
        -99,
        math.inf,
        -math.inf,
        math.nan,
        None,
        "4",
        "x",
        Decimal("1.5"),
        True,
        [1],
        10**400,
    ]
)
FLOATS = st.sampled_from([-3.0, 5.0, 0.0, 2.4, 99.0, -99.0, math.inf, -math.inf, math.nan, None])
HOLDERS = {
    "pandas-objects": (OBJECTS, lambda rows, x, y: rows.assign(x=objects(x), y=objects(y))),
    "pandas": (FLOATS, lambda rows, x, y: rows.assign(x=np.array(x, float), y=np.array(y, float))),
    "polars": (
        FLOATS,
        lambda rows, x, y: polars.DataFrame(
            {**rows.to_dict("list"), "x": x, "y": y},
            schema={
                **dict.fromkeys(rows, polars.String),
                "unit": polars.Int64, "x": polars.Float64, "y": polars.Float64,
            },
        ),
    ),
}  # fmt: skip


def check_moves(domain, here, there, neighbors, k):
    """Check every level of every quantity in exact integers, and give the largest moves at the leaves."""
    for quantity, before, after in zip(SUMMED, here, there, strict=True):
        most = quantity.sensitivity(neighbors=neighbors, max_contributions=k)
        for level in zip(domain.tree.roll_up(before), domain.tree.roll_up(after), strict=True):
            moves = [int(a) - int(b) for a, b in zip(*level, strict=True)]
            assert sum(map(abs, moves)) <= most.l1
            assert sum(move**2 for move in moves) <= most.l2_squared


@pytest.mark.parametrize("holder", HOLDERS)
@fewer(2)
@given(
    drawn=domains_and_rows(max_rows=15), k=st.integers(1, 3), seed=st.integers(0, 2**32 - 1), data=st.data()
)
def test_one_unit_moves_no_sum_by_more_than_the_sensitivity(holder, drawn, k, seed, data):
    """For every key: neighbours through the real way of the data."""
    values, build = HOLDERS[holder]
    domain, rows = drawn
    unit, replace = data.draw(st.integers(0, 3)), data.draw(st.booleans())
    rng = np.random.default_rng(seed)
    everyone = rows.assign(unit=rng.integers(0, 4, len(rows)))
    others = everyone[everyone["unit"] != unit]
    new = data.draw(st.lists(st.sampled_from(listed_leaves(domain)), max_size=5)) if replace else []
    newcomers = frame_of(new, list(domain.by)).assign(unit=unit)
    drawn_values = st.lists(values, min_size=len(rows) + len(new), max_size=len(rows) + len(new))
    x, y = data.draw(drawn_values), data.draw(drawn_values)
    frames = []
    for part, places in (
        (everyone, list(range(len(rows)))),
        (pd.concat([newcomers, others]), [*range(len(rows), len(rows) + len(new)), *others.index]),
    ):
        part = part.reset_index(drop=True).astype({"unit": np.int64})
        frames.append(build(part, [x[i] for i in places], [y[i] for i in places]))
    sums = [
        summed(frame, domain, SUMMED, privacy_unit="unit", k=k, draw=fixed_words(seed)) for frame in frames
    ]
    check_moves(domain, *sums, "replace" if replace else "add_remove", k)


@pytest.mark.parametrize("holder", HOLDERS)
@fewer(2)
@given(drawn=domains_and_rows(max_rows=12), data=st.data())
def test_one_row_moves_no_sum_by_more_than_the_sensitivity(holder, drawn, data):
    values, build = HOLDERS[holder]
    domain, rows = drawn
    if rows.empty:
        return
    rows = rows.assign(unit=0)
    n = len(rows)
    row, other = data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, n - 1))
    replace = data.draw(st.booleans())
    x, y = (data.draw(st.lists(values, min_size=n + 1, max_size=n + 1)) for _ in "xy")
    left = [i for i in range(n) if i != row]
    here = summed(build(rows, x[:n], y[:n]), domain, SUMMED)
    places = [*left, other] if replace else left  # at the key of another row, with values of its own
    there = summed(
        build(
            rows.iloc[places].reset_index(drop=True),
            [x[i] for i in left] + [x[n]] * replace,
            [y[i] for i in left] + [y[n]] * replace,
        ),
        domain,
        SUMMED,
    )
    check_moves(domain, here, there, "replace" if replace else "add_remove", 1)


@each("k", [1, 2, 3])
@each("bounds", [(-3, 5), (-4, 4), (0, 2), (2, 4), (-7, -1)])
def test_the_worst_records_reach_the_sensitivity(bounds, k):
    domain = Domain.from_frame(pd.DataFrame({"k": ["a", "b"]}), by=["k"])
    quantity = Quantity.of("x", bounds, 1)
    beyond = {min(bounds): -math.inf, max(bounds): math.inf}
    largest = max(bounds, key=abs)

    def leaves(key, value):
        frame = pd.DataFrame({"k": [key] * 5, "x": beyond[value], "unit": 1})
        return summed(frame, domain, [quantity], privacy_unit="unit", k=k)[0]

    added, moved = leaves("a", largest), leaves("a", largest) - leaves("b", largest)
    changed = leaves("a", max(bounds)) - leaves("a", min(bounds))
    one = quantity.sensitivity(neighbors="add_remove", max_contributions=k)
    assert (np.abs(added).sum(), (added**2).sum()) == (one.l1, one.l2_squared)
    other = quantity.sensitivity(neighbors="replace", max_contributions=k)
    assert np.abs(moved).sum() == other.l1
    assert max((moved**2).sum(), (changed**2).sum()) == other.l2_squared

"""Families within bounds: beside a solver, rounded fairly, whatever their size."""

import numpy as np
from scipy import optimize

from pandas_dptree.estimation.binary_blocks import binary_splits, fit_bounded, round_bounded, split_columns
from pandas_dptree.hierarchy.tree import Tree
from tests.helpers_cases import each
from tests.helpers_random import each_seed, words


def families(rng, n=4, largest=6):
    """Random families with feasible totals; in some, members or all of them can hold nothing."""
    counts = rng.integers(1, largest, n)
    most = rng.integers(0, 8, counts.sum()) * (rng.random(counts.sum()) < 0.8)
    full = np.add.reduceat(most, np.cumsum(counts) - counts)
    totals = np.rint(full * rng.choice([0, 0.3, 0.7, 1], n)).astype(np.int64)
    return counts, most, totals


@each_seed(12, 60)
def test_families_are_the_nearest_within_their_bounds(seed):
    rng = np.random.default_rng(seed)
    counts, most, totals = families(rng)
    z, v = rng.normal(2, 5, counts.sum()), rng.uniform(0.1, 4, counts.sum())
    fitted = fit_bounded(z, v, most, totals, counts)
    ends = np.cumsum(counts)[:-1]
    for x, at, spread, r, total in zip(
        *(np.split(a, ends) for a in (fitted, z, v, most)), totals, strict=True
    ):
        assert (x >= 0).all() and (x <= r).all()
        assert np.isclose(x.sum(), total, atol=1e-11)
        best = optimize.minimize(
            lambda y, at=at, spread=spread: ((y - at) ** 2 / spread).sum(),
            r * (total / max(r.sum(), 1)),
            jac=lambda y, at=at, spread=spread: 2 * (y - at) / spread,
            bounds=[(0, top) for top in r],
            constraints={
                "type": "eq",
                "fun": lambda y, total=total: y.sum() - total,
                "jac": lambda y: np.ones(len(y)),
            },
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 200},
        )
        np.testing.assert_allclose(x, best.x, atol=1e-5)


@each_seed(40, 400)
def test_any_totals_within_the_bounds_can_be_rounded_to(seed):
    rng = np.random.default_rng(seed)
    counts, most, totals = families(rng, n=5)
    scale = int(rng.choice([1, 1000, 2**40, 2**56]))
    most, totals = most * scale, totals * scale + rng.integers(0, 2, len(totals)) * (totals > 0)
    start = np.cumsum(counts) - counts
    totals = np.minimum(totals, np.add.reduceat(most, start))
    z = rng.normal(0, 10.0 ** rng.integers(0, 19), counts.sum())
    fitted = fit_bounded(z, 10.0 ** rng.uniform(-9, 9, counts.sum()), most, totals, counts)
    assert (fitted >= 0).all() and (fitted <= most).all()
    whole = round_bounded(fitted, most, totals, counts, words(seed))
    assert whole.dtype == np.int64 and (whole >= 0).all() and (whole <= most).all()
    assert (np.add.reduceat(whole, start) == totals).all()
    if scale < 2**30:
        assert (np.abs(whole - fitted) < 1 + 1e-6).all()


@each_seed(4, 30)
def test_blocks_are_the_nearest_tables_of_two_columns(seed):
    rng = np.random.default_rng(seed)
    (split,) = binary_splits((Tree.from_branching([2]),), [[np.ones(1), rng.uniform(0.3, 3, 2)]])
    sums, spread, z = rng.uniform(0, 9, 4), rng.uniform(0.2, 5, 4), rng.normal(2, 4, (2, 4))
    above = sums.sum() * np.array([[0.3], [0.7]])
    table = split_columns([split], z, spread, sums, above, np.array([4]))
    variances = np.multiply.outer(split.variances, spread)
    best = optimize.minimize(
        lambda y: ((y.reshape(2, 4) - z) ** 2 / variances).sum(),
        np.multiply.outer([0.3, 0.7], sums).reshape(-1),
        bounds=[(0, None)] * 8,
        constraints={
            "type": "eq",
            "fun": lambda y: np.append(y.reshape(2, 4).sum(axis=0) - sums, y[:4].sum() - above[0]),
        },
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 300},
    )
    np.testing.assert_allclose(table.reshape(-1), best.x, atol=1e-4)


def test_limits_whose_sum_is_beyond_64_bits():
    most, counts = np.full(9, 2**61), np.array([9])
    fitted = fit_bounded(np.full(9, 2.0**57), np.ones(9), most, np.array([2**61]), counts)
    np.testing.assert_allclose(fitted, 2.0**61 / 9)


def test_what_floats_cannot_decide_is_shared():
    totals, counts = np.array([7]), np.array([3])
    most = np.array([4, 4, 4])
    fitted = fit_bounded(
        np.array([2.0**60, 2.0**60, -(2.0**60)]), np.array([1.0, 3.0, 1.0]), most, totals, counts
    )
    assert np.isclose(fitted.sum(), 7) and fitted[2] == 0


@each("fractions, total", [([0.5, 0.5, 0.5, 0.5], 2), ([0.25, 0.25, 0.25, 0.25], 1)])
def test_ties_are_broken_by_chance_and_not_by_position(fractions, total):
    draw = words(3)
    n = 2000
    fitted, counts = np.tile(fractions, n), np.full(n, 4)
    whole = round_bounded(fitted, np.full(4 * n, 9), np.full(n, total), counts, draw).reshape(n, 4)
    assert (whole.sum(axis=1) == total).all()
    share = total / 4
    np.testing.assert_allclose(whole.mean(axis=0), share, atol=4.5 * np.sqrt(share * (1 - share) / n))


def test_the_largest_fractions_are_rounded_up():
    fitted = np.array([0.2, 0.9, 0.9, 2.0, 0.6, 0.4])
    whole = round_bounded(fitted, np.array([5, 5, 0, 5, 1, 1]), np.array([1, 3]), np.array([3, 3]), words())
    assert whole.tolist() == [0, 1, 0, 2, 1, 0]


def test_whole_numbers_up_to_rounding_errors_need_no_random_words():
    fitted = np.array([2.9999999999, 4.0000000001])
    whole = round_bounded(fitted, np.array([9, 9]), np.array([7]), np.array([2]), lambda n: 1 / 0)
    assert whole.tolist() == [3, 4]


def test_columns_are_split_in_two_from_level_to_level():
    axes = (Tree.from_branching([2]), Tree((np.array([2]), np.array([1, 3]))))
    spread = [[np.array([9.0]), np.array([1.0, 2.0])], [np.ones(1), np.array([3.0, 5.0]), np.ones(1)]]
    splits = binary_splits(axes, spread)
    assert splits[0].coarse.tolist() == [0, 8]
    assert [split.finer.tolist() for split in splits] == [
        [0, 4, 8],
        [0, 1, 4, 5, 8],
        [0, 1, 2, 4, 5, 6, 8],
        list(range(9)),
    ]
    assert splits[0].variances.tolist() == [1, 2]
    assert splits[1].variances.tolist() == [3, 5, 6, 10]
    assert splits[2].variances.tolist() == [1, 1, 2, 2, 2, 4]


def test_axes_without_a_split_leave_the_columns_alone():
    single = [np.ones(1)] * 2
    assert binary_splits((Tree(()), Tree.from_branching([1])), [single, single]) == []
    sums = np.array([3.0, 4.0])
    table = split_columns([], np.zeros((1, 2)), np.ones(2), sums, np.array([[7.0]]), np.array([2]))
    assert table.tolist() == [[3.0, 4.0]]


@each_seed(3, 20)
def test_a_table_without_negative_estimates_is_its_estimates(seed):
    rng = np.random.default_rng(seed)
    axes = (Tree.from_branching([3]), Tree.from_branching([2]))
    splits = binary_splits(axes, [[np.ones(1), np.array([1.0, 2.0, 7.0])], [np.ones(1), np.ones(1)]])
    z, counts = rng.uniform(1, 9, (6, 5)), np.array([2, 3])
    above = np.add.reduceat(z, [0, 2], axis=1)
    table = split_columns(splits, z, rng.uniform(0.5, 2, 5), z.sum(axis=0), above, counts)
    np.testing.assert_allclose(table, z, rtol=1e-12)

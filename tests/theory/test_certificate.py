"""Certificates of optimality: clean for the right table at any scale, and failed by a wrong one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.joint import nonnegative_joint
from pandas_dptree.estimation.least_squares import least_squares, propagate
from pandas_dptree.estimation.nonnegative import nonnegative_totals
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.theory import certify
from pandas_dptree.theory.certificate import multipliers
from tests.helpers_estimation import bounded_problem, large_problem, random_problem
from tests.strategies import trees

MILLIONS = [[100, 100, 100], pytest.param([2] * 20, marks=pytest.mark.nightly)]
FITS = {"totals": nonnegative_totals, "joint": nonnegative_joint}


@given(
    tree=trees(max_depth=6),
    seed=st.integers(0, 2**32),
    scale=st.sampled_from([1e-3, 3.0, 1e4, 1e9]),
    spread=st.sampled_from([1.0, 1e3, 1e6]),
    known_share=st.sampled_from([0.0, 0.2]),
)
def test_certificates_with_bounds_are_clean_at_any_scale(tree, seed, scale, spread, known_share):
    rng = np.random.default_rng(seed)
    values, noise, least, _ = bounded_problem(rng, tree, known_share, 0.5, scale)
    noise = [v * spread ** rng.uniform(-0.5, 0.5, v.shape) for v in noise]
    variances = propagate(tree, noise)
    for fit, solve in FITS.items():
        estimates = solve(tree, values, variances, least=least)
        certificate = certify(tree, values, variances, estimates, fit=fit, least=least)
        assert certificate.ok, certificate


@pytest.mark.parametrize("fit", FITS)
def test_certificates_cover_the_bounds_of_a_table(fit):
    rng = np.random.default_rng(2)
    tree = Tree.from_branching([4, 5, 6])
    values, noise, least, exact = bounded_problem(rng, tree, 0.0, 0.0)
    variances = propagate(tree, noise)
    least[1][0], least[2][7] = exact[1][0] + 40, exact[2][7] + 20
    free, bounded = FITS[fit](tree, values, variances), FITS[fit](tree, values, variances, least=least)
    assert bounded[1][0] == least[1][0] and bounded[2][7] == least[2][7]
    assert certify(tree, values, variances, bounded, fit=fit, least=least).ok
    assert certify(tree, values, variances, free, fit=fit, least=least).bounds > 1e-3
    assert not certify(tree, values, variances, bounded, fit=fit).ok
    for lower in (1, 2):  # a node that holds more than its bound for no reason, or less than its bound
        for change in (1e-6, -1e-6):
            leaves = bounded[-1].copy()
            leaves[np.flatnonzero(leaves[:30] > 1)[0] if lower == 1 else 42 + leaves[42:48].argmax()] += (
                change
            )
            assert not certify(tree, values, variances, tree.roll_up(leaves), fit=fit, least=least).ok


def test_multipliers_of_a_hand_made_bound():
    tree, values = Tree.from_branching([2]), [np.array([4.0]), np.array([1.0, 3.0])]
    variances = propagate(tree, [1.0, 1.0])
    least = [np.array([10.0]), np.zeros(1)]
    estimates = nonnegative_joint(tree, values, variances, least=least)
    assert [level.tolist() for level in estimates] == [[10], [4, 6]]
    dual = multipliers(tree, values, variances, estimates, fit="joint", least=least)
    # One person more costs 10 - 4 at the root and 3 at either leaf.
    assert dual.reduced_costs[0] == [9] and dual.prices[0] == [3]
    assert dual.reduced_costs[1].tolist() == [0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("branching", MILLIONS, ids=["wide", "deep"])
@pytest.mark.parametrize("fit", FITS)
def test_a_million_leaves_with_bounds_are_certified(fit, branching):
    rng = np.random.default_rng(0)
    tree = Tree.from_branching(branching)
    exact = tree.roll_up(rng.geometric(0.05, tree.n_leaves) * (rng.random(tree.n_leaves) < 0.05))
    values = [level + np.rint(rng.laplace(0, 4, level.shape)) for level in exact]
    variances = propagate(tree, [32.0] * len(values))
    least = [np.floor(level * (rng.random(level.shape) < 0.3)) for level in exact]
    estimates = FITS[fit](tree, values, variances, least=least)
    certificate = certify(tree, values, variances, estimates, fit=fit, least=least)
    assert certificate.ok, certificate


@given(
    tree=trees(max_depth=6),
    seed=st.integers(0, 2**32),
    scale=st.sampled_from([1e-3, 3.0, 1e4, 1e9]),
    spread=st.sampled_from([1.0, 1e3, 1e6]),
    known_share=st.sampled_from([0.0, 0.2]),
)
def test_certificates_are_clean_at_any_scale(tree, seed, scale, spread, known_share):
    rng = np.random.default_rng(seed)
    values, noise, _ = random_problem(rng, tree, known_share, scale)
    noise = [v * spread ** rng.uniform(-0.5, 0.5, v.shape) for v in noise]
    variances = propagate(tree, noise)
    for fit, solve in FITS.items():
        estimates = solve(tree, values, variances)
        certificate = certify(tree, values, variances, estimates, fit=fit)
        assert certificate.ok, certificate


@pytest.mark.parametrize("fit", FITS)
def test_a_wrong_table_fails_its_certificate(fit):
    rng = np.random.default_rng(2)
    tree = Tree.from_branching([4, 5, 6])
    values, noise, _ = random_problem(rng, tree, known_share=0.05)
    variances = propagate(tree, noise)
    right = FITS[fit](tree, values, variances)
    assert certify(tree, values, variances, right, fit=fit).ok
    free = np.flatnonzero((np.broadcast_to(noise[-1], tree.n_leaves) > 0) & (right[-1] > 1))
    one, other = free[0], free[-1]

    def after(change):
        leaves = right[-1].copy()
        change(leaves)
        return certify(tree, values, variances, tree.roll_up(leaves), fit=fit)

    def move(leaves):
        leaves[[one, other]] += [1e-6, -1e-6]

    def below(leaves):
        leaves[one] = -1e-6

    assert not after(move).ok and after(move).slackness > 1e-12
    assert not after(below).ok and after(below).bounds > 1e-12
    torn = [level.copy() for level in right]
    torn[1][0] += 1e-6
    assert certify(tree, values, variances, torn, fit=fit).additivity > 1e-12
    other_fit = next(name for name in FITS if name != fit)
    assert not certify(tree, values, variances, FITS[other_fit](tree, values, variances), fit=fit).ok
    assert not certify(tree, values, variances, [0 * level for level in right], fit=fit).ok
    assert not certify(tree, values, variances, least_squares(tree, values, variances), fit=fit).ok


def test_multipliers_of_a_hand_made_table():
    tree, values = Tree.from_branching([2]), [np.array([10]), np.array([-3.0, 7.0])]
    known = propagate(tree, [0.0, np.array([1.0, 2.0])])
    estimates = nonnegative_joint(tree, values, known)
    assert [level.tolist() for level in estimates] == [[10], [0, 10]]
    dual = multipliers(tree, values, known, estimates, fit="joint")
    # One more person in the family costs (10 - 7) / 2; the known total takes that off again.
    assert dual.prices[0] == [1.5] and dual.gradients[0] == [-1.5]
    assert dual.reduced_costs[-1].tolist() == [1.5, 0]


def test_certify_refuses_what_is_not_a_table_or_a_fit():
    tree, values = Tree.from_branching([2]), [np.array([3]), np.array([1, 2])]
    variances = propagate(tree, [1.0, 1.0])
    for table in ([np.ones(1)], [np.ones(1), np.ones(3)], [np.ones(1), np.array([1, np.nan])]):
        with pytest.raises(ArgumentError, match="estimates"):
            certify(tree, values, variances, table)
    with pytest.raises(ArgumentError, match="'totals' or 'joint'"):
        certify(tree, values, variances, values, fit="best")


@pytest.mark.slow
@pytest.mark.parametrize("branching", MILLIONS, ids=["wide", "deep"])
@pytest.mark.parametrize("fit", FITS)
def test_a_million_leaves_are_certified(fit, branching):
    tree, values, variances = large_problem(branching)
    estimates = FITS[fit](tree, values, variances)
    assert certify(tree, values, variances, estimates, fit=fit).ok
    leaves = estimates[-1].copy()
    leaves[np.argsort(leaves)[-2:]] += [0.001, -0.001]
    assert not certify(tree, values, variances, tree.roll_up(leaves), fit=fit).ok

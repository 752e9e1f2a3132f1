"""From noisy nodes to estimates: whole tables, signed tables, and trees side by side."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree import Tree
from pandas_dptree.estimation.estimators import CONSISTENCIES, estimate_units, estimator_for
from pandas_dptree.estimation.joint import nonnegative_joint
from pandas_dptree.estimation.least_squares import least_squares, propagate
from pandas_dptree.estimation.nonnegative import nonnegative_totals
from pandas_dptree.estimation.unit_counts import nonnegative_units
from tests.helpers_distinct import units_problem
from tests.helpers_estimation import bounded_problem, words_from
from tests.helpers_random import fixed_words
from tests.strategies import trees


@pytest.mark.parametrize("fit", ["totals", "joint"])
@pytest.mark.parametrize("consistency", ["none", "linear", "nonnegative", "integer"])
@pytest.mark.parametrize("tree", [Tree.from_branching([2, 3]), Tree.from_paths([[0, 0], [0, 1], [1, -1]])])
def test_trees_side_by_side_are_estimated_separately(tree: Tree, consistency: str, fit: str) -> None:
    rng, n = np.random.default_rng(7), 6
    each = [[rng.normal(3, 4, size).round(2) for size in tree.level_sizes] for _ in range(n)]
    each[0] = [-np.abs(values) for values in each[0]]
    if consistency in ("none", "integer"):
        each = [[values.round() for values in one] for one in each]
    variances = [3.0, 2.0, 1.0]
    forest = tree.copies(n)
    assert forest.level_sizes == tuple(n * size for size in tree.level_sizes)

    def fitted(tree, measurements):
        return estimator_for(consistency, fit).estimate(
            tree, measurements, propagate(tree, variances),
            lambda size: np.arange(size, dtype=np.uint64) << np.uint64(50),
        )  # fmt: skip

    together = fitted(forest, [np.concatenate(levels) for levels in zip(*each, strict=True)])
    for at, one in enumerate(each):
        for alone, all_of_level, size in zip(fitted(tree, one), together, tree.level_sizes, strict=True):
            part = all_of_level[at * size : (at + 1) * size]
            # Ties are broken by chance: then whole numbers differ by one at most.
            assert np.allclose(part, alone, atol=1 if consistency == "integer" else 1e-6)


FITS = {"totals": nonnegative_totals, "joint": nonnegative_joint}


@given(
    tree=trees(),
    seed=st.integers(0, 2**32),
    scale=st.sampled_from([0.5, 3.0, 1e5]),
    fit=st.sampled_from(list(FITS)),
    known_share=st.sampled_from([0.0, 0.3]),
    bounded_share=st.sampled_from([0.2, 1.0]),
)
def test_whole_tables_keep_their_bounds_and_known_values(tree, seed, scale, fit, known_share, bounded_share):
    rng = np.random.default_rng(seed)
    values, noise, least, _ = bounded_problem(rng, tree, known_share, bounded_share, scale)
    variances = propagate(tree, noise)
    tables = {
        consistency: estimator_for(consistency, fit).estimate(
            tree, values, variances, words_from(rng), least=least
        )
        for consistency in CONSISTENCIES[1:]
    }
    for level, (whole, y, v, b) in enumerate(zip(tables["integer"], values, noise, least, strict=True)):
        known = np.broadcast_to(v, len(whole)) == 0
        assert whole.dtype == np.int64
        assert (whole >= b).all()
        assert (np.abs(whole - tables["nonnegative"][level]) < 1 + 1e-9 * scale).all()
        for table in tables.values():
            assert not known.any() or (table[level][known] == y[known]).all()
        if level < tree.depth:
            assert (tree.sum_children(level, tables["integer"][level + 1]) == whole).all()


@given(
    tree=trees(),
    seed=st.integers(0, 2**32),
    scale=st.sampled_from([3.0, 1e5]),
    known_share=st.sampled_from([0.0, 0.2]),
)
def test_signed_estimates_are_least_squares_and_its_rounding(tree, seed, scale, known_share):
    rng = np.random.default_rng(seed)
    exact = tree.roll_up(np.rint(rng.laplace(0, scale, tree.n_leaves)))
    known = [rng.random(level.shape) < known_share for level in exact]
    values = [np.where(k, t, t + rng.normal(0, scale, t.shape)) for k, t in zip(known, exact, strict=True)]
    variances = propagate(tree, [np.where(k, 0, scale**2) for k in known])
    linear = least_squares(tree, values, variances)
    tables = {
        consistency: estimator_for(consistency, signed=True).estimate(
            tree, values, variances, words_from(rng)
        )
        for consistency in CONSISTENCIES
    }
    for level, k in enumerate(known):
        np.testing.assert_array_equal(tables["nonnegative"][level], linear[level])
        assert (np.abs(tables["integer"][level] - linear[level]) < 1 + 1e-9 * scale).all()
        for table in tables.values():
            assert (table[level][k] == exact[level][k]).all()
        if level < tree.depth:
            below = tree.sum_children(level, tables["integer"][level + 1])
            assert (below == tables["integer"][level]).all()


def test_distinct_units_are_estimated_as_consistently_as_the_caller_chose():
    tree, values, noise, excess, excess_noise, _ = units_problem(np.random.default_rng(8))
    noise = [np.where(np.isfinite(variance), variance, 1.0) for variance in noise]
    values = [np.zeros(n) if y is None else y for n, y in zip(tree.level_sizes, values, strict=True)]
    given = tree, values, propagate(tree, noise, excess_noise), excess
    bounds = [1] + [2] * tree.depth
    expected = {
        "none": values,
        "linear": least_squares(*given),
        "nonnegative": nonnegative_units(*given, bounds),
        "integer": nonnegative_units(*given, bounds, fixed_words(3)),
    }
    assert list(expected) == list(CONSISTENCIES)
    for consistency, levels in expected.items():
        found = estimate_units(*given, bounds, fixed_words(3), consistency=consistency)
        for ours, theirs in zip(found, levels, strict=True):
            np.testing.assert_array_equal(ours, theirs)

"""Splits of the budget of unit counts, beside generic optimisers and the figures of the design."""

import itertools

import numpy as np
import pytest
import scipy.optimize

from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.least_squares import propagate
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.planning.equal_subtrees import Orbits
from pandas_dptree.planning.objective import OBJECTIVES, cost_weights, expected_cost
from pandas_dptree.planning.patterns import pattern_costs
from pandas_dptree.planning.split import level_shares
from pandas_dptree.planning.unit_bound import unit_lower_bound
from pandas_dptree.planning.unit_split import no_excess, unit_level_variances, unit_model, unit_shares
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.unit_sensitivity import unit_sensitivity
from tests.helpers_cases import each
from tests.helpers_planning import flags_of, random_tree
from tests.helpers_random import each_seed
from tests.reference import membership

GAUSSIAN, LAPLACE = Gaussian(), Laplace()
RHO, EPSILON = PrivacyLoss(rho=0.0005), PrivacyLoss(epsilon=0.1)
DELTA = PrivacyLoss(epsilon=0.1, delta=1e-6)
CURRENCIES = [(GAUSSIAN, RHO), (GAUSSIAN, DELTA), (LAPLACE, EPSILON), (LAPLACE, RHO)]


def bounds_of(tree, k):
    return (1, *(min(k, size) for size in tree.level_sizes[1:]))


def random_bounds(rng, tree):
    most = np.sort(rng.integers(1, 5, tree.depth))
    return (1, *np.minimum(most, tree.level_sizes[1:]).tolist())


def scales_of(tree, max_nodes, noise, loss, shares, neighbors="add_remove"):
    excess = (shares[tree.depth + 1 :] > 0).tolist()
    moves = unit_sensitivity(max_nodes, neighbors=neighbors, excess=excess)
    return noise.noise_scales(loss, moves, shares)


def errors_of(tree, max_nodes, noise, loss, shares, neighbors="add_remove", known=None):
    scales = scales_of(tree, max_nodes, noise, loss, shares, neighbors)
    return unit_level_variances(tree, max_nodes, noise.variance(scales), known=known)


def cost_of(tree, max_nodes, noise, loss, shares, neighbors="add_remove", objective="levels", weights=None):
    listed = [tree.n_listed(level) for level in range(tree.depth + 1)]
    means = errors_of(tree, max_nodes, noise, loss, shares, neighbors)
    return expected_cost(np.nan_to_num(means), cost_weights(listed, objective, weights), objective)


def dense_variances(tree, max_nodes, precisions):
    """Invert the normal equations over the leaf counts and the excesses that may differ from 0."""
    below = membership(tree)
    apart = []  # of each inner node, its level and number, unless its excess is known
    for level, known in enumerate(no_excess(tree, max_nodes)):
        counts = np.broadcast_to(tree.child_counts[level], tree.level_sizes[level])
        apart += [(level, v) for v in range(len(counts)) if counts[v] > 1 and not known]
    rows, of_counts = [], []
    for level, matrix in enumerate(below):
        inside = [
            [at >= level and bool((matrix[u] * below[at][v]).any()) for at, v in apart]
            for u in range(len(matrix))
        ]
        of_counts.append(np.hstack([matrix, -np.array(inside, dtype=float).reshape(len(matrix), -1)]))
        rows += [precisions[level] ** 0.5 * row for row in of_counts[-1]]
    for place, (level, _) in enumerate(apart):
        unit = np.eye(tree.n_leaves + len(apart))[tree.n_leaves + place]
        rows.append(precisions[tree.depth + 1 + level] ** 0.5 * unit)
    normal = np.array(rows).T @ np.array(rows)
    measured = normal.any(axis=0)  # an excess that nothing depends on has no estimate, and needs none
    covariance = np.linalg.pinv(normal[np.ix_(measured, measured)], hermitian=True, rcond=1e-13)
    parts = [counts[:, measured] for counts in of_counts]
    nodes = [np.einsum("ij,jk,ik->i", part, covariance, part) for part in parts]
    shown = [tree.listed(level) for level in range(tree.depth + 1)]
    return np.array([v[s].mean() if s.any() else np.nan for v, s in zip(nodes, shown, strict=True)])


# -- expected errors ---------------------------------------------------------------------------------


@each_seed(12, 200)
def test_variances_are_those_of_dense_least_squares_and_of_estimates(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, depth=int(rng.integers(1, 4)), widest=3)
    max_nodes = random_bounds(rng, tree)
    precisions = 10 ** rng.uniform(-2, 2, 2 * tree.depth + 1)
    precisions[tree.depth + 1 :][rng.random(tree.depth) < 0.3] = 0
    dropped = (rng.random(tree.depth) < 0.5) & (
        (precisions[tree.depth + 1 :] > 0) | no_excess(tree, max_nodes)
    )
    precisions[: tree.depth][dropped] = 0
    with np.errstate(divide="ignore"):
        ours = unit_level_variances(tree, max_nodes, 1 / precisions)
        of_excess = np.where(no_excess(tree, max_nodes), 0, 1 / precisions[tree.depth + 1 :])
        final = propagate(tree, list(1 / precisions[: tree.depth + 1]), list(of_excess)).final
    np.testing.assert_allclose(ours, dense_variances(tree, max_nodes, precisions), rtol=1e-7)
    for level, mean in enumerate(ours.tolist()):
        nodes = np.broadcast_to(final[level], tree.level_sizes[level])
        assert not tree.n_listed(level) or mean == pytest.approx(nodes[tree.listed(level)].mean(), rel=1e-7)


@each_seed(8, 60)
def test_gradient_is_that_of_finite_differences(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, depth=int(rng.integers(1, 5)))
    orbits, known = Orbits.of(tree), no_excess(tree, random_bounds(rng, tree))
    weights = rng.random((tree.depth + 1, 1))
    precisions = rng.uniform(0.5, 2, (2 * tree.depth + 1, 1))
    precisions[tree.depth + 1 :][rng.random(tree.depth) < 0.4] = 0
    gradient = unit_model(orbits, known, precisions)[1](weights)[:, 0]

    def value(place, step):
        moved = precisions.copy()
        moved[place] += step
        return float((weights * unit_model(orbits, known, moved)[0]).sum())

    for place in range(len(precisions)):
        h = 1e-4  # one-sided, of second order: what is not measured has nothing to lose
        slope = (-3 * value(place, 0) + 4 * value(place, h) - value(place, 2 * h)) / (2 * h)
        assert gradient[place] == pytest.approx(slope, rel=1e-5, abs=1e-6 * abs(gradient).max())


# -- the best split ----------------------------------------------------------------------------------

FIGURES = [  # branching, k, squared error over the bound for counts alone, and with excesses
    ((20, 20), 2, 1.09, 1.05),
    ((20, 20), 8, 1.24, 1.20),
    ((6, 6, 20), 2, 1.24, 1.11),
    ((6, 6, 20), 4, 1.35, 1.24),
    ((8, 8, 8), 4, 1.31, 1.18),
    ((8, 8, 8), 8, 1.80, 1.64),
    ((4, 4, 4, 4), 2, 1.50, 1.14),
    ((3, 3, 3, 3, 3), 2, 1.72, 1.16),
    ((2,) * 8, 2, 2.36, 1.19),
]


@each("branching, k, alone, best", FIGURES)
def test_gaussian_errors_are_as_close_to_the_bound_as_those_of_the_design(branching, k, alone, best):
    tree = Tree.from_branching(list(branching))
    max_nodes, weights = bounds_of(tree, k), cost_weights(tree.level_sizes, "levels")
    unit = unit_lower_bound(tree.level_sizes, max_nodes, weights) / (2 * RHO.rho)
    for least_squares, figure in ((False, alone), (True, best)):
        shares = unit_shares(
            tree, max_nodes, noise=GAUSSIAN, loss=RHO, neighbors="add_remove", least_squares=least_squares
        )
        assert cost_of(tree, max_nodes, GAUSSIAN, RHO, shares) / unit == pytest.approx(figure, abs=0.0055)


def generic_optimum(tree, max_nodes, noise, loss, neighbors, objective, starts, given=None):
    """Minimise with SLSQP, the worst level in epigraph form."""
    n_values, orbits, known = 2 * tree.depth + 1, Orbits.of(tree), no_excess(tree, max_nodes)
    moves = unit_sensitivity(max_nodes, neighbors=neighbors, excess=[True] * tree.depth)
    costs = pattern_costs(noise, loss, moves)
    power = noise.variance_power(loss)
    weights = cost_weights([tree.n_listed(level) for level in range(tree.depth + 1)], objective, given)
    worst = objective == "worst"

    def errors(rates):  # a rate is the inverse of the scale, squared for a rho: that is what adds up
        precisions = np.maximum(rates[:n_values], 1e-12) ** power / (2 if noise is LAPLACE else 1)
        return weights * unit_model(orbits, known, precisions[:, None])[0][:, 0]

    def log_cost(rates):
        return rates[-1] if worst else np.log(errors(rates).sum())

    limits = [{"type": "ineq", "fun": lambda rates: 1 - costs @ rates[:n_values]}]
    if worst:
        limits.append({"type": "ineq", "fun": lambda rates: rates[-1] - np.log(errors(rates)[weights > 0])})
    best = np.inf
    for start in starts:
        rates = start / (costs @ start).max()
        rates = np.append(rates, np.log(errors(rates).max())) if worst else rates
        bounds = [(1e-5, None)] * n_values + [(None, None)] * worst
        found = scipy.optimize.minimize(
            log_cost,
            rates,
            constraints=limits,
            bounds=bounds,
            method="SLSQP",
            options={"ftol": 1e-13, "maxiter": 300},
        ).x[:n_values]
        total = errors(found / (costs @ found).max())
        best = min(best, total.max() if worst else total.sum())
    return best / float(noise.budget(loss)) ** power


def case(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, depth=2 if seed % 4 else 3, widest=3)
    return tree, random_bounds(rng, tree), ["add_remove", "replace"][seed % 2]


@pytest.mark.parametrize("objective", OBJECTIVES)
@each_seed(3, 40)
def test_gaussian_split_is_a_generic_optimisers(seed, objective):
    tree, max_nodes, neighbors = case(seed)
    shares = unit_shares(tree, max_nodes, noise=GAUSSIAN, loss=RHO, neighbors=neighbors, objective=objective)
    found = cost_of(tree, max_nodes, GAUSSIAN, RHO, shares, neighbors, objective)
    starts = [np.ones(2 * tree.depth + 1)]
    least = generic_optimum(tree, max_nodes, GAUSSIAN, RHO, neighbors, objective, starts)
    chains = len(set(tree.level_sizes)) <= tree.depth  # levels that say the same: the last one is measured
    assert (
        least * (1 - 1e-4)
        <= found
        <= least * (1 + (2e-3 if chains else 1e-4 if objective == "worst" else 4e-6))
    )


@each("objective", ["levels", "worst"])
def test_levels_without_weight_have_a_hundredth_of_the_least_one(objective):
    tree, max_nodes = Tree.from_branching([2, 2, 3]), (1, 1, 1, 2)
    stated, meant = np.array([5.0, 0.0, 0.0, 1.0]), np.array([5.0, 0.01, 0.01, 1.0])
    options = {"objective": objective, "level_weights": stated, "neighbors": "add_remove"}
    shares = unit_shares(tree, max_nodes, noise=GAUSSIAN, loss=RHO, **options)
    found = cost_of(tree, max_nodes, GAUSSIAN, RHO, shares, objective=objective, weights=meant)
    least = generic_optimum(tree, max_nodes, GAUSSIAN, RHO, "add_remove", objective, [np.ones(7)], meant)
    assert found == pytest.approx(least, rel=1e-5)


@pytest.mark.parametrize("objective", OBJECTIVES)
@each_seed(2, 24)
def test_no_generic_optimiser_is_much_better_than_the_laplace_split(seed, objective):
    rng = np.random.default_rng(seed)
    tree = Tree.from_branching(rng.integers(2, 6, 2 + seed % 2).tolist())
    max_nodes, neighbors = random_bounds(rng, tree), ["add_remove", "replace"][seed % 2]
    shares = unit_shares(
        tree, max_nodes, noise=LAPLACE, loss=EPSILON, neighbors=neighbors, objective=objective
    )
    found = cost_of(tree, max_nodes, LAPLACE, EPSILON, shares, neighbors, objective)
    starts = rng.random((3, 2 * tree.depth + 1)) + 0.1
    least = generic_optimum(tree, max_nodes, LAPLACE, EPSILON, neighbors, objective, starts)
    assert found <= least * 1.03  # another local minimum may be found


LEAST = [  # of 300 descents from random shares of random sets of levels
    ((2,) * 4, (1, 2, 2, 2, 2), "levels", 88.4083),
    ((2,) * 4, (1, 2, 2, 2, 2), "cells", 74.1014),
    ((3,) * 5, (1, 3, 3, 3, 3, 3), "cells", 114.7529),
    ((4, 4, 2), (1, 2, 3, 4), "levels", 135.0435),
]


@each("branching, max_nodes, objective, least", LEAST)
def test_laplace_split_is_the_best_of_many_local_minima(branching, max_nodes, objective, least):
    tree = Tree.from_branching(list(branching))
    options = {"noise": LAPLACE, "loss": EPSILON, "neighbors": "add_remove", "objective": objective}
    shares = unit_shares(tree, max_nodes, **options)
    cost = cost_of(tree, max_nodes, LAPLACE, EPSILON, shares, objective=objective)
    assert np.sqrt(cost) < least * (1 + 1e-6)


TREES = [((6, 20), (1, 4, 4), "add_remove"), ((4, 2, 5), (1, 1, 2, 6), "replace")]


@each("noise, loss", CURRENCIES)
@each("branching, max_nodes, neighbors", TREES)
def test_no_change_of_shares_is_better(noise, loss, branching, max_nodes, neighbors):
    rng, tree = np.random.default_rng(1), Tree.from_branching(list(branching))
    shares = unit_shares(tree, max_nodes, noise=noise, loss=loss, neighbors=neighbors)
    least = cost_of(tree, max_nodes, noise, loss, shares, neighbors)
    for size in (1e-3, 0.03, 0.3):
        moved = shares * np.exp(size * rng.standard_normal(len(shares)))
        assert cost_of(tree, max_nodes, noise, loss, moved, neighbors) > least * (1 - 1e-9), size


@each("noise, loss", CURRENCIES)
@each("branching, max_nodes, neighbors", TREES)
def test_no_named_split_is_better(noise, loss, branching, max_nodes, neighbors):
    tree = Tree.from_branching(list(branching))
    shares = unit_shares(tree, max_nodes, noise=noise, loss=loss, neighbors=neighbors)
    least = cost_of(tree, max_nodes, noise, loss, shares, neighbors)
    power = noise.variance_power(loss)
    alone = np.array(max_nodes, dtype=float) ** (power / (1 + power))
    for other in ("uniform", "geometric", alone / alone.sum()):
        named = unit_shares(tree, max_nodes, noise=noise, loss=loss, neighbors=neighbors, split=other)
        assert cost_of(tree, max_nodes, noise, loss, named, neighbors) >= least * (1 - 1e-9)


def test_the_same_split_comes_out_each_time():
    tree = Tree.from_branching([5, 4, 3])
    for noise, loss in CURRENCIES:
        options = {"noise": noise, "loss": loss, "neighbors": "replace"}
        shared = unit_shares(tree, (1, 3, 3, 3), **options)
        first = shared.copy()
        again = unit_shares(Tree.from_branching([5, 4, 3]), (1, 3, 3, 3), **options)
        np.testing.assert_array_equal(first, again)
        shared[0] = 2  # what a caller does to it changes no other
        np.testing.assert_array_equal(unit_shares(tree, (1, 3, 3, 3), **options), first)
        assert ((again == 0) | (again > 1e-6)).all()


@each("noise, loss", [*CURRENCIES, (LAPLACE, DELTA)])
@each("neighbors", ["add_remove", "replace"])
def test_the_whole_budget_is_spent(noise, loss, neighbors):
    tree, max_nodes = Tree.from_branching([3, 4]), (1, 2, 3)
    for split in ("optimal", "uniform"):
        shares = unit_shares(tree, max_nodes, noise=noise, loss=loss, neighbors=neighbors, split=split)
        assert shares.shape == (5,) and (shares >= 0).all() and shares.sum() == pytest.approx(1, rel=1e-12)
        scales = scales_of(tree, max_nodes, noise, loss, shares, neighbors)
        excess = (shares[3:] > 0).tolist()
        moves = unit_sensitivity(max_nodes, neighbors=neighbors, excess=excess)
        assert noise.keeps_to(loss, moves, scales)
        least = noise.budget(loss)
        assert noise.spent(loss, moves, scales) >= least * (1 - 1e-12)
        assert not noise.keeps_to(loss, moves, scales * (1 - 1e-4))


# -- excesses that cost nothing ----------------------------------------------------------------------


@each("noise, loss", CURRENCIES)
@each("neighbors", ["add_remove", "replace"])
def test_excesses_beside_a_named_split_are_free(noise, loss, neighbors):
    tree = Tree.from_branching([4, 3, 3])
    given = np.array([0.1, 0.2, 0.3, 0.4])
    for max_nodes, split in [((1, 3, 3, 3), given), ((1, 2, 2, 5), "uniform"), ((1, 1, 3, 3), "geometric")]:
        shares = unit_shares(tree, max_nodes, noise=noise, loss=loss, neighbors=neighbors, split=split)
        scales = scales_of(tree, max_nodes, noise, loss, shares, neighbors)
        assert ((shares[4:] == 0) | (shares[4:] > 1e-7)).all()
        alone = np.append(shares[:4], np.zeros(3))
        without = scales_of(tree, max_nodes, noise, loss, alone, neighbors)
        np.testing.assert_allclose(scales[:4], without[:4], rtol=1e-5 if loss is DELTA else 1e-12)
        if split is given:
            np.testing.assert_allclose(shares[:4] / shares[:4].sum(), given, rtol=1e-12)
        for level in np.flatnonzero(~no_excess(tree, max_nodes)).tolist():  # and they are as large as that
            more = shares.copy()
            more[4 + level] = max(1.001 * more[4 + level], 1e-4)
            scales = scales_of(tree, max_nodes, noise, loss, more, neighbors)
            assert (scales[:4] > without[:4] * (1 + 1e-7)).all()


@each("noise, loss", CURRENCIES)
def test_free_excesses_are_as_precise_as_counts_above_allow(noise, loss):
    tree, k = Tree.from_branching([6, 5, 4, 3]), 4
    shares = unit_shares(
        tree, bounds_of(tree, k), noise=noise, loss=loss, neighbors="add_remove", split="uniform"
    )
    power = 1 if noise.variance_power(loss) == 2 else 2
    rates = scales_of(tree, bounds_of(tree, k), noise, loss, shares) ** -float(power)
    free = np.append(0.0, np.cumsum(rates[1:4])) / (k - 1) ** (power - 1)
    np.testing.assert_allclose(rates[5:], free, rtol=1e-9, atol=1e-12 * rates.max())


def test_a_chain_of_single_children_has_no_excess_to_measure():
    tree = Tree.from_branching([3, 1, 4])
    for (noise, loss), split in itertools.product(CURRENCIES, ("uniform", "geometric", "optimal")):
        shares = unit_shares(tree, (1, 3, 3, 3), noise=noise, loss=loss, neighbors="add_remove", split=split)
        assert shares[5] == 0 and shares[6] > 0


@each("noise, loss", [(GAUSSIAN, RHO), (LAPLACE, EPSILON)])
@each("branching, max_nodes", [((3, 1), (1, 3, 3)), ((1, 3), (1, 1, 3))])
def test_levels_that_say_the_same_are_estimated_from_below(noise, loss, branching, max_nodes):
    tree = Tree.from_branching(list(branching))
    shares = unit_shares(tree, max_nodes, noise=noise, loss=loss, neighbors="replace")
    variances = noise.variance(scales_of(tree, max_nodes, noise, loss, shares, "replace"))
    of_excess = np.where(no_excess(tree, max_nodes), 0, variances[3:])
    below = propagate(tree, list(variances[:3]), list(of_excess)).subtree
    assert shares[2] > 1e-4 and all(np.isfinite(each).all() for each in below)


def test_no_excess_is_measured_with_what_rounding_leaves():
    # Under replace, two patterns charge the same if the total has a third of what counts alone cost.
    tree, split = Tree.from_branching([3, 4]), [0.3333333333333333, 0.3547009080778567, 0.31196575858881]
    for noise, loss in CURRENCIES:
        shares = unit_shares(
            tree, (1, 3, 4), noise=noise, loss=loss, neighbors="replace", split=np.array(split)
        )
        np.testing.assert_allclose(shares, [*split, 0, 0], rtol=1e-12)
        assert np.isfinite(scales_of(tree, (1, 3, 4), noise, loss, shares, "replace")[:3]).all()


def test_no_excess_is_measured_where_it_may_cost_more_than_its_patterns():
    tree, bounds = Tree.from_branching([6, 6]), (1, 4, 4)
    for split in ("uniform", "geometric", np.array([0.2, 0.3, 0.5])):
        shares = unit_shares(tree, bounds, noise=LAPLACE, loss=DELTA, neighbors="add_remove", split=split)
        assert not shares[3:].any()
    for noise, loss in CURRENCIES:
        shares = unit_shares(
            tree, bounds, noise=noise, loss=loss, neighbors="add_remove", least_squares=False
        )
        assert not shares[3:].any()


# -- special cases -----------------------------------------------------------------------------------


@each(
    "noise, loss, neighbors",
    [(*CURRENCIES[0], "replace"), (*CURRENCIES[2], "replace"), (LAPLACE, DELTA, "add_remove")],
)
def test_one_node_for_each_unit_is_the_additive_tree(noise, loss, neighbors):
    tree = Tree.from_branching([3, 1, 4])
    moves = unit_sensitivity((1,) * 4, neighbors=neighbors, excess=[False] * 3).part(np.arange(7) < 4)
    for split, objective in [*itertools.product(["optimal"], OBJECTIVES), ("geometric", "cells")]:
        options = {"noise": noise, "loss": loss, "split": split, "objective": objective}
        ours = unit_shares(tree, (1,) * 4, neighbors=neighbors, **options)
        additive = level_shares(tree, sensitivity=moves, **options)
        np.testing.assert_allclose(ours, np.append(additive, np.zeros(3)), rtol=1e-12)


@each("noise, loss", [(GAUSSIAN, RHO), (LAPLACE, EPSILON)])
def test_levels_that_add_up_need_no_measurement_of_their_own(noise, loss):
    # One node each on levels 0 to 2: the tree above level 2 is additive.
    tree, max_nodes = Tree.from_branching([2, 2, 6]), (1, 1, 1, 3)
    weights = np.array([0.0, 0.0, 0.0, 1.0])
    shares = unit_shares(
        tree, max_nodes, noise=noise, loss=loss, neighbors="add_remove", level_weights=weights
    )
    assert not shares[4:6].any() and np.isfinite(errors_of(tree, max_nodes, noise, loss, shares)).all()
    by_hand = unit_shares(
        tree, max_nodes, noise=noise, loss=loss, neighbors="add_remove", split=np.array([0, 0, 0.4, 0.6])
    )
    assert np.isfinite(errors_of(tree, max_nodes, noise, loss, by_hand)).all()


@each("noise, loss", [(GAUSSIAN, RHO), (LAPLACE, EPSILON)])
@each(
    "objective, weights", [("levels", [0.0, 0, 1, 0]), ("cells", [1.0, 0, 0, 0]), ("worst", [0.0, 1, 0, 1])]
)
def test_levels_without_weight_are_still_estimated(noise, loss, objective, weights):
    tree, max_nodes = Tree.from_branching([6, 6, 6]), (1, 4, 4, 4)
    costs, errors = cost_weights(tree.level_sizes, objective, np.array(weights)), {}
    for split in ("optimal", "uniform"):
        shares = unit_shares(
            tree, max_nodes, noise=noise, loss=loss, neighbors="add_remove", split=split,
            level_weights=np.array(weights), objective=objective,
        )  # fmt: skip
        errors[split] = errors_of(tree, max_nodes, noise, loss, shares)
        assert np.isfinite(errors[split]).all()
    best, even = (expected_cost(each, costs, objective) for each in errors.values())
    assert best < even


def test_weights_of_the_public_total_alone_leave_all_levels_estimated():
    tree, weights = Tree.from_branching([3, 4]), np.array([1.0, 0.0, 0.0])
    for noise, loss in [*CURRENCIES, (LAPLACE, DELTA)]:
        shares = unit_shares(
            tree, (1, 2, 2), noise=noise, loss=loss, neighbors="add_remove", level_weights=weights,
            known=flags_of(tree, 0),
        )  # fmt: skip
        assert shares[0] == 0 and (shares[1:3] > 0).all() and shares.sum() == pytest.approx(1)


def test_heavier_levels_get_smaller_errors():
    tree, max_nodes = Tree.from_branching([6, 6, 6]), (1, 2, 2, 2)
    even, heavy = (
        errors_of(
            tree, max_nodes, GAUSSIAN, RHO,
            unit_shares(
                tree, max_nodes, noise=GAUSSIAN, loss=RHO, neighbors="add_remove",
                level_weights=np.array([1.0, weight, 1.0, 1.0]),
            ),
        )
        for weight in (1, 50)
    )  # fmt: skip
    assert heavy[1] < even[1] / 2 and (heavy[[0, 2, 3]] > even[[0, 2, 3]]).all()


def test_a_public_total_leaves_its_share_to_the_others():
    # Clinics in districts in regions: 680, 38 and 6, of which a patient visits up to four.
    tree = Tree((np.array([6]), np.array([7, 7, 6, 6, 6, 6]), np.repeat([18, 17], [34, 4])))
    bounds, known = (1, 4, 4, 4), flags_of(tree, 0)
    loss, root_means = PrivacyLoss(epsilon=1.0), []
    for public in (None, known):
        shares = unit_shares(tree, bounds, noise=LAPLACE, loss=loss, neighbors="add_remove", known=public)
        errors = errors_of(tree, bounds, LAPLACE, loss, shares, known=public)
        root_means.append(np.sqrt(errors[1:].mean()))
        if public is not None:
            assert shares[0] == 0 and errors[0] == 0
            for split in ("uniform", "geometric"):
                named = unit_shares(
                    tree, bounds, noise=LAPLACE, loss=loss, neighbors="add_remove", known=known, split=split
                )
                assert named[0] == 0 and (named[1:4] > 0).all()
    assert root_means[1] / root_means[0] == pytest.approx(0.88, abs=0.006)


@each("noise, loss", CURRENCIES)
def test_counts_published_as_measured_get_the_closed_form(noise, loss):
    tree, max_nodes = Tree.from_branching([6, 5, 4]), (1, 2, 3, 7)
    power = noise.variance_power(loss)
    for objective, weights in (("levels", np.ones(4)), ("cells", np.array(tree.level_sizes))):
        shares = unit_shares(
            tree, max_nodes, noise=noise, loss=loss, neighbors="add_remove", objective=objective,
            least_squares=False,
        )  # fmt: skip
        closed = (weights * np.array(max_nodes, float) ** power) ** (1 / (1 + power))
        np.testing.assert_allclose(shares[:4], closed / closed.sum(), rtol=2e-3)


@each("noise, loss", CURRENCIES)
def test_the_geometric_split_is_best_for_all_cells_alike(noise, loss):
    tree, max_nodes = Tree.from_branching([6, 5, 4]), (1, 2, 3, 7)
    options = {"noise": noise, "loss": loss, "neighbors": "add_remove", "least_squares": False}
    geometric = unit_shares(tree, max_nodes, split="geometric", **options)
    best = unit_shares(tree, max_nodes, objective="cells", **options)
    np.testing.assert_allclose(geometric, best, rtol=2e-3)


@each("branching, k, better", [((3, 3, 3), 2, "excess"), ((20, 20), 6, "alone")])
def test_laplace_noise_with_a_delta_measures_counts_alone_if_that_is_better(branching, k, better):
    tree = Tree.from_branching(list(branching))
    options = {"noise": LAPLACE, "neighbors": "add_remove"}
    bounds, found = bounds_of(tree, k), {}
    shares = unit_shares(tree, bounds, loss=DELTA, **options)
    assert shares[tree.depth + 1 :].any() == (better == "excess")
    found["best"] = cost_of(tree, bounds, LAPLACE, DELTA, shares)
    found["excess"] = cost_of(
        tree, bounds, LAPLACE, EPSILON, unit_shares(tree, bounds, loss=EPSILON, **options)
    )
    for name, changes in (("alone", {"least_squares": False}), ("even", {"split": "uniform"})):
        found[name] = cost_of(
            tree, bounds, LAPLACE, DELTA, unit_shares(tree, bounds, loss=DELTA, **options, **changes)
        )
    assert found["best"] <= min(found.values()) * (1 + 1e-3)
    assert (
        found[better] < 1.002 * found["best"] and max(found["excess"], found["alone"]) > 1.005 * found["best"]
    )


def test_levels_that_nothing_determines_are_refused():
    tree, options = Tree.from_branching([3, 3]), {"noise": GAUSSIAN, "loss": RHO, "neighbors": "add_remove"}
    for split in ([0, 0.5, 0.5], [0.5, 0, 0.5]):  # excesses are free below levels with a share alone
        with pytest.raises(ArgumentError, match="no share to levels"):
            unit_shares(tree, (1, 2, 2), split=np.array(split), **options)
    with pytest.raises(ArgumentError, match="unknown"):
        unit_shares(tree, (1, 2, 2), split="best", **options)
    with pytest.raises(ArgumentError, match="unknown"):
        unit_shares(tree, (1, 2, 2), objective="best", **options)


def test_a_large_uniform_tree_is_folded():
    tree = Tree.from_branching([100, 100, 100])
    for noise, loss in CURRENCIES:
        shares = unit_shares(tree, bounds_of(tree, 4), noise=noise, loss=loss, neighbors="add_remove")
        assert (shares[:4] > 0).all()


def test_a_tree_that_is_one_node_or_one_path():
    for branching in ([], [1], [1, 1]):
        tree = Tree.from_branching(branching)
        for noise, loss in CURRENCIES:
            shares = unit_shares(
                tree, (1,) * (tree.depth + 1), noise=noise, loss=loss, neighbors="add_remove"
            )
            assert len(shares) == 2 * tree.depth + 1 and shares[tree.depth] > 0

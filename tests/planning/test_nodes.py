"""Shares by node: their cost beside generic optimisers, their privacy beside brute force."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Gaussian
from pandas_dptree.planning import node_noise, nodes
from pandas_dptree.planning.equal_subtrees import Orbits
from pandas_dptree.planning.levels import optimal_shares
from pandas_dptree.planning.node_noise import node_noise_scales
from pandas_dptree.planning.nodes import node_shares
from pandas_dptree.planning.objective import OBJECTIVES, cost_weights
from pandas_dptree.planning.variance import node_variances_and_vjp
from pandas_dptree.privacy import composition
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Sensitivity, count_sensitivity
from tests.helpers_cases import each
from tests.helpers_planning import path_sums, random_tree, unfolded
from tests.reference import dense_least_squares, listed_delta, membership
from tests.strategies import trees

ONE_ROW, RHO = Sensitivity(l1=1, l2_squared=1), PrivacyLoss(rho=0.005)


def dense_level_means(tree, shares):
    """Invert the normal equations over the leaves, and average over the listed nodes of each level."""
    with np.errstate(divide="ignore"):
        noise = [1 / part for part in unfolded(tree, shares)]
    _, variances = dense_least_squares(tree, [np.zeros(size) for size in tree.level_sizes], noise)
    shown = [tree.listed(level) for level in range(tree.depth + 1)]
    return np.array([v[s].mean() if s.any() else 0.0 for v, s in zip(variances, shown, strict=True)])


def cost_of(tree, shares, objective, weights=None):
    costs = cost_weights(Orbits.of(tree).n_listed, objective, weights) * dense_level_means(tree, shares)
    return costs.max() if objective == "worst" else costs.sum()


# -- expected errors ---------------------------------------------------------------------------------


@each("seed", range(40))
def test_variances_of_kinds_are_those_of_dense_least_squares(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, depth=int(rng.integers(1, 5)), widest=3)
    orbits = Orbits.of(tree)
    precisions = [10 ** rng.uniform(-2, 2, part.shape) for part in orbits.listed]
    for part in precisions[:-1]:
        part[rng.random(part.shape) < 0.3] = 0
    by_node = [part[kind, 0] for part, kind in zip(precisions, orbits.kinds, strict=True)]
    means, _ = node_variances_and_vjp(orbits, precisions)
    np.testing.assert_allclose(means[:, 0], dense_level_means(tree, by_node), rtol=1e-9)


@each("seed", range(20))
def test_gradient_is_that_of_finite_differences(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, depth=int(rng.integers(1, 5)))
    orbits = Orbits.of(tree)
    weights = rng.random((tree.depth + 1, 1))
    precisions = [rng.uniform(0.5, 2, part.shape) for part in orbits.listed]
    gradient = node_variances_and_vjp(orbits, precisions)[1](weights)

    def value(level, kind, step):
        moved = [part.copy() for part in precisions]
        moved[level][kind] += step
        return float((weights * node_variances_and_vjp(orbits, moved)[0]).sum())

    for level, part in enumerate(gradient):
        for kind in range(len(part)):
            slope = (value(level, kind, 1e-5) - value(level, kind, -1e-5)) / 2e-5
            assert part[kind, 0] == pytest.approx(slope, rel=1e-5, abs=1e-8)


def generic_optimum(tree, objective, weights, starts):
    """Minimise over the shares of all nodes, path by path within the budget, with a generic solver."""
    matrices = membership(tree)
    rows, sizes = np.concatenate(matrices), tree.level_sizes
    shown = np.concatenate([tree.listed(level) for level in range(tree.depth + 1)])
    level = np.repeat(np.arange(tree.depth + 1), sizes)
    counts = np.bincount(level[shown], minlength=len(sizes))
    mean = (level == np.arange(len(sizes))[:, None]) * shown / np.maximum(counts, 1)[:, None]
    costs = cost_weights(counts, objective, weights)[:, None] * mean  # of the nodes' variances

    def evaluate(shares):
        covariance = rows @ np.linalg.inv(rows.T @ (shares[:, None] * rows)) @ rows.T
        return costs @ covariance.diagonal(), -costs @ covariance**2

    n = len(rows)
    paths = {
        "type": "ineq",
        "fun": lambda x: 1 - rows.T @ x[:n],
        "jac": lambda x: np.pad(-rows.T, ((0, 0), (0, len(x) - n))),
    }
    # The leaves' shares stay so far above 0 that the equations can be solved.
    bounds = [(0.0, 1.0)] * (n - tree.n_leaves) + [(1e-4, 1.0)] * tree.n_leaves
    options = {"maxiter": 1000, "ftol": 1e-12}
    found = []
    for start in starts:
        if objective == "worst":
            ceiling = {
                "type": "ineq",
                "fun": lambda x: x[n] - evaluate(x[:n])[0],
                "jac": lambda x: np.column_stack([-evaluate(x[:n])[1], np.ones(len(sizes))]),
            }
            result = scipy.optimize.minimize(
                lambda x: x[n], np.append(start, evaluate(start)[0].max() * 1.01),
                jac=lambda x: np.eye(n + 1)[n], bounds=[*bounds, (0.0, None)],
                constraints=[paths, ceiling], method="SLSQP", options=options,
            )  # fmt: skip
        else:
            result = scipy.optimize.minimize(
                lambda x: (evaluate(x)[0].sum(), evaluate(x)[1].sum(axis=0)), start,
                jac=True, bounds=bounds, constraints=[paths], method="SLSQP", options=options,
            )  # fmt: skip
        shares = np.maximum(result.x[:n], [low for low, _ in bounds])
        values = evaluate(shares / max(1, (rows.T @ shares).max()))[0]
        found.append(values.max() if objective == "worst" else values.sum())
    return min(found)


# -- optimal shares ----------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", OBJECTIVES)
@each("seed", range(8))
def test_shares_are_a_generic_solvers(seed, objective):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, depth=int(rng.integers(1, 4)), widest=3)
    weights = None if seed < 4 else rng.uniform(0.2, 3, tree.depth + 1)
    ours = node_shares(tree, objective=objective, level_weights=weights)
    even = np.full(tree.n_nodes, 1 / (tree.depth + 1))
    odd = even * rng.uniform(0.3, 1, tree.n_nodes)
    theirs = generic_optimum(tree, objective, weights, [even, odd])
    assert cost_of(tree, ours, objective, weights) == pytest.approx(theirs, rel=1e-6)


def test_shares_know_which_of_two_like_nodes_is_shown():
    # The first city is a county too, and its continuation matters to nobody; the second is a city.
    tree = Tree.from_paths([[0, -1], [1, 0]])
    ours = node_shares(tree)
    theirs = generic_optimum(tree, "levels", None, [np.full(5, 1 / 3), np.full(5, 0.1)])
    assert cost_of(tree, ours, "levels") == pytest.approx(theirs, rel=1e-6)
    assert float(ours[1].sum() + ours[2].sum()) > 0 and ours[0].shape == (1,)
    assert len(Orbits.of(tree).listed[2]) == 2


@pytest.mark.parametrize("objective", OBJECTIVES)
@each("branching", [[], [7], [2, 3, 4], [1, 5, 1], [100] * 4, [2] * 30])
def test_uniform_trees_are_split_by_level(branching, objective):
    tree = Tree.from_branching(branching)
    shares = node_shares(tree, objective=objective)
    assert [part.shape for part in shares] == [(1,)] * (tree.depth + 1)
    by_level = optimal_shares(tree, Gaussian(), RHO, ONE_ROW, objective=objective)
    if 1 in branching:  # nodes with the same leaves may share in any way
        by_level, shares = by_level.sum(), np.concatenate(shares).sum()
    np.testing.assert_allclose(
        np.ravel(shares), by_level, rtol=1e-2 if objective == "worst" else 1e-5, atol=1e-9
    )


@each("seed", [1, 3, 4])
def test_strange_weights_do_no_harm(seed):
    check_strange_weights(seed)


@pytest.mark.slow
@each("seed", [0, 2, 5])
def test_strange_weights_of_other_trees_do_no_harm(seed):
    check_strange_weights(seed)


def check_strange_weights(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, depth=int(rng.integers(2, 6)))
    weights = 10 ** rng.uniform(-2, 2, tree.depth + 1) * (rng.random(tree.depth + 1) < 0.6)
    weights[1] = 1.0
    for objective in OBJECTIVES:
        ours = cost_of(
            tree, node_shares(tree, objective=objective, level_weights=weights), objective, weights
        )
        by_level = optimal_shares(tree, Gaussian(), RHO, ONE_ROW, objective=objective, level_weights=weights)
        assert ours <= cost_of(tree, list(by_level[:, None]), objective, weights) * (1 + 1e-6)


def test_what_has_no_weight_is_measured_a_little():
    tree = Tree((np.array([2]), np.array([1, 3])))
    shares = node_shares(tree, level_weights=np.array([1.0, 0.0, 0.0]))
    assert shares[0].item() > 1 - 1e-6 and 0 < shares[-1].min() < 1e-6
    scales = node_noise_scales(tree, PrivacyLoss(rho=0.5), ONE_ROW, shares)
    assert scales[0].item() == pytest.approx(1) and np.isfinite(scales[-1]).all()


def test_arguments_are_checked():
    tree = Tree.from_branching([2])
    with pytest.raises(ArgumentError, match="objective"):
        node_shares(tree, objective="best")
    with pytest.raises(ArgumentError, match="level_weights"):
        node_shares(tree, level_weights=np.array([-1.0, 1.0]))


# -- privacy -----------------------------------------------------------------------------------------


@settings(max_examples=settings.default.max_examples // 2)  # each takes long
@given(trees(max_leaves=30), st.sampled_from(OBJECTIVES), st.data())
def test_every_path_spends_exactly_the_budget(tree, objective, data):
    weights = np.array(
        data.draw(st.lists(st.floats(1e-3, 1e3), min_size=tree.depth + 1, max_size=tree.depth + 1))
    )
    shares = unfolded(tree, node_shares(tree, objective=objective, level_weights=weights))
    assert set(path_sums(tree, shares)) == {Fraction(1)}
    assert all((part >= 0).all() for part in shares) and (shares[-1] > 0).all()


def random_shares(rng, tree):
    """Draw whole shares such that every path spends at most the budget, and the first leaf's all of it."""
    left, shares = np.full(1, 2**52), []
    for level, size in enumerate(tree.level_sizes):
        left = tree.spread(level - 1, np.broadcast_to(left, tree.level_sizes[level - 1])) if level else left
        part = (left * rng.random(size) * (rng.random(size) < 0.8)).astype(np.int64)
        part = np.maximum(part, 1) if level == tree.depth else part
        part[0] = left[0] if level == tree.depth else part[0]
        shares.append(part / 2**52)
        left = left - part
    return shares


def bags(n_leaves, rows):
    """All ways in which up to some number of rows may fall into the leaves."""
    for size in range(rows + 1):
        for leaves in itertools.combinations_with_replacement(range(n_leaves), size):
            yield np.bincount(leaves, minlength=n_leaves)


@each("seed", range(10))
def test_no_privacy_unit_costs_more_than_the_budget(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, depth=int(rng.integers(1, 4)), widest=2)
    while tree.n_leaves > 5:
        tree = random_tree(rng, depth=int(rng.integers(1, 4)), widest=2)
    rows = np.concatenate(membership(tree)).astype(int)
    loss = PrivacyLoss(rho=float(rng.uniform(1e-3, 2)))
    for shares in (random_shares(rng, tree), node_shares(tree)):
        for k in (1, 2, 3):
            moves = {tuple(rows @ bag) for bag in bags(tree.n_leaves, k)}
            swaps = {tuple(np.subtract(a, b)) for a, b in itertools.product(moves, repeat=2)}
            for neighbors, differences in (("add_remove", moves), ("replace", swaps)):
                sensitivity = count_sensitivity(neighbors=neighbors, max_contributions=k)
                scales = unfolded(tree, node_noise_scales(tree, loss, sensitivity, shares))
                prices = [
                    1 / (2 * Fraction(scale) ** 2) if np.isfinite(scale) else Fraction()
                    for scale in np.concatenate(scales).tolist()
                ]
                worst = max(
                    sum(
                        (int(d) ** 2 * price for d, price in zip(difference, prices, strict=True)), Fraction()
                    )
                    for difference in differences
                )
                assert worst <= Fraction(loss.rho)
                if neighbors == "add_remove":  # no noise is wasted
                    assert worst >= Fraction(loss.rho) * (1 - Fraction(1, 10**14))


def test_many_scales_are_rounded_up_to_a_grid():
    """Where each node's share is another one, noise is drawn for few scales, and no path spends more."""
    rng, tree, rho = np.random.default_rng(0), Tree.from_branching([25, 40]), 0.3
    shares = random_shares(rng, tree)
    scales = unfolded(tree, node_noise_scales(tree, PrivacyLoss(rho=rho), ONE_ROW, shares))
    distinct = [len(np.unique(np.concatenate(levels))) for levels in (shares, scales)]
    assert distinct[0] > distinct[1] > node_noise._MOST_SCALES
    prices = [
        np.array([1 / (2 * Fraction(scale) ** 2) if np.isfinite(scale) else Fraction() for scale in part])
        for part in map(np.ndarray.tolist, scales)
    ]
    assert Fraction(rho) * (1 - Fraction(21, 10**4)) <= max(path_sums(tree, prices)) <= Fraction(rho)


def test_no_float_is_above_its_point_of_the_grid():
    """Also those next to a point, which logarithms and powers of two miss by their own rounding."""
    points = np.exp2(np.arange(-7000, 28_000) / node_noise._GRID)  # from 1e-3 to 1e12
    above = np.nextafter(points, np.inf)
    scales = np.concatenate([np.nextafter(points, 0), points, above, np.nextafter(above, np.inf)])
    ratios = node_noise._on_grid(scales) / scales
    assert (node_noise._on_grid(scales) >= scales).all() and ratios.max() < 1.00101


@given(st.floats(1e-12, 1e6), st.integers(1, 10**6), st.lists(st.integers(1, 2**52), min_size=1, max_size=20))
def test_scales_are_rounded_up_and_not_by_much(rho, l2_squared, units):
    tree = Tree.from_branching([len(units)])
    shares = [np.zeros(1), np.array(units) / 2**52]
    sensitivity = Sensitivity(l1=l2_squared, l2_squared=l2_squared)
    try:
        root, leaves = node_noise_scales(tree, PrivacyLoss(rho=rho), sensitivity, shares)
    except ArgumentError:
        assert l2_squared / (2 * rho * min(units) / 2**52) > 1e24 * (1 - 1e-12)
        return
    assert root.item() == np.inf
    for scale, share in zip(leaves.tolist(), shares[1].tolist(), strict=True):
        spent, allowed = Fraction(l2_squared) / (2 * Fraction(scale) ** 2), Fraction(rho) * Fraction(share)
        assert spent <= allowed
        assert scale == 1e-3 or spent >= allowed * (1 - Fraction(1, 10**14))


@each(
    "shares, fact",
    [
        ([np.array([0.5])], "every node"),
        ([np.array([0.5]), np.array([0.5, 0.5, 0.5])], "every node"),
        ([np.array([0.1]), np.array([0.5])], "multiple"),  # 0.1 is no multiple of 2**-52 as it stands
        ([np.array([-0.5]), np.array([0.5])], "multiple"),
        ([np.array([np.nan]), np.array([0.5])], "multiple"),
        ([np.array([1.5]), np.array([0.5])], "multiple"),
        ([np.array([0.5]), np.array([0.5, 0.0])], "leaf"),
        ([np.array([0.5]), np.array([0.5, 0.5 + 2**-52])], "path"),
    ],
)
def test_shares_that_might_overspend_are_refused(shares, fact):
    with pytest.raises(ArgumentError, match=fact):
        node_noise_scales(Tree.from_branching([2]), RHO, ONE_ROW, shares)


def test_tiny_budgets_and_wrong_kinds_are_refused():
    tree = Tree.from_branching([2])
    shares = node_shares(tree)
    with pytest.raises(ArgumentError, match="rho"):
        node_noise_scales(tree, PrivacyLoss(rho=1e-30), ONE_ROW, shares)
    with pytest.raises(ArgumentError, match="epsilon"):
        node_noise_scales(tree, PrivacyLoss(epsilon=1e-30, delta=1e-30), ONE_ROW, shares)
    with pytest.raises(ArgumentError, match="Gaussian"):
        node_noise_scales(tree, PrivacyLoss(epsilon=1.0), ONE_ROW, shares)


# -- speed -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_million_leaves_take_seconds():
    rng = np.random.default_rng(1)
    counts = [np.array([50])]
    for mean in (60, 60, 5.5):
        counts.append(rng.geometric(1 / mean, int(counts[-1].sum())))
    tree = Tree(tuple(counts))
    assert tree.n_leaves > 800_000
    shares = node_shares(tree)
    node_noise_scales(tree, RHO, ONE_ROW, shares)
    assert shares[-1].shape == (tree.n_leaves,)


def test_a_large_tree_may_be_left_unfinished(monkeypatch):
    tree = random_tree(np.random.default_rng(1), depth=5)
    monkeypatch.setattr(nodes, "_MOST_STEPS", 1)
    early = node_shares(tree, objective="worst")
    assert set(path_sums(tree, unfolded(tree, early))) == {Fraction(1)}


@each("seed", range(6))
@each("epsilon, delta", [(1.0, 1e-6), (0.2, 1e-8)])
def test_node_wise_noise_keeps_to_delta_whatever_a_unit_moves(seed, epsilon, delta):
    """The proven delta is above the exact one of every move, composed count by count."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, depth=2, widest=2)
    rows = np.concatenate(membership(tree)).astype(int)
    loss = PrivacyLoss(epsilon=epsilon, delta=delta)
    for neighbors, k in (("add_remove", 1), ("add_remove", 2), ("replace", 1)):
        sensitivity = count_sensitivity(neighbors=neighbors, max_contributions=k)
        scales = np.concatenate(unfolded(tree, node_noise_scales(tree, loss, sensitivity, node_shares(tree))))
        moves = {tuple(rows @ bag) for bag in bags(tree.n_leaves, k)}
        if neighbors == "replace":
            moves = {tuple(np.subtract(a, b)) for a, b in itertools.product(moves, repeat=2)}
        for move in moves:
            losses = [
                composition._gaussian_loss(float(scale), abs(int(d)))
                for d, scale in zip(move, scales, strict=True)
                if d and np.isfinite(scale)
            ]
            width = float(np.sqrt(sum(d**2 / scale**2 for d, scale in zip(move, scales, strict=True)))) or 1.0
            nothing = composition._Smoothing(0.0, 0.0, 0.0)
            assert composition._delta(epsilon, losses, width, nothing) <= delta * (1 + 1e-3)


@each("rows, epsilon", [(1, 1.0), (2, 2.0)])
@each("branching", [[8], [3, 4], [2, 2, 3]])
def test_the_path_that_spends_most_keeps_to_delta(branching, rows, epsilon):
    """Exactly, by listing the losses of its three least noises: those of the others only add to them."""
    tree = Tree.from_branching(branching)
    shares = random_shares(np.random.default_rng(2), tree)
    shares[-1][1:] = np.ceil(shares[-1][1:] * 2**46) / 2**52  # all leaves but the first spend little
    loss = PrivacyLoss(epsilon=epsilon, delta=1e-6)
    sensitivity = count_sensitivity(neighbors="add_remove", max_contributions=rows)
    scales = unfolded(tree, node_noise_scales(tree, loss, sensitivity, shares))
    spent = path_sums(tree, [scale**-2.0 for scale in scales])
    assert spent[0] == max(spent) > 1.2 * sum(spent) / len(spent)
    least = sorted(part[0].item() for part in scales)[:3]
    exact = listed_delta("gaussian", epsilon, [(scale, rows) for scale in least if scale < 50])
    assert 0.5e-6 <= exact <= 1e-6


@each("epsilon, delta", [(9.0, 1e-3), (9.0, 1e-6), (20.0, 1e-6)])
def test_small_noise_keeps_to_delta_beside_the_large_noise_of_its_level(epsilon, delta):
    """Kernels of the simulation that fit into the large noise of a level may not fit into the small one."""
    tree = Tree.from_branching([8])
    shares = random_shares(np.random.default_rng(2), tree)
    shares[-1][1:] = np.ceil(shares[-1][1:] * 2**22) / 2**52
    root, leaves = node_noise_scales(tree, PrivacyLoss(epsilon=epsilon, delta=delta), ONE_ROW, shares)
    assert leaves[0] < 1.5 and leaves[1:].min() > 1e4
    assert listed_delta("gaussian", epsilon, [(root.item(), 1), (float(leaves[0]), 1)]) <= delta


@each("epsilon, delta", [(1.0, 1e-6), (0.1, 1e-8)])
def test_node_wise_noise_is_calibrated_about_as_tightly_as_that_of_levels(epsilon, delta):
    tree = Tree((np.array([6]), np.array([1, 2, 5, 9, 4, 4]), np.array([3, 8, 1] * 8 + [2])))
    loss, one_row = PrivacyLoss(epsilon=epsilon, delta=delta), count_sensitivity(neighbors="add_remove")
    scales = unfolded(tree, node_noise_scales(tree, loss, one_row, node_shares(tree)))
    spent = max(path_sums(tree, [scale**-2.0 for scale in scales]))
    levels = Gaussian().noise_scales(loss, one_row, [1.0] * 4)
    assert float(spent) == pytest.approx((levels**-2.0).sum(), rel=0.04)


def test_noise_by_node_keeps_to_the_decimal_where_the_float_is_above_it():
    """What is spent is stated to the last digit, so any excess of a float over its decimal decides."""
    from fractions import Fraction

    from pandas_dptree.planning.node_noise import _delta, node_noise_scales, nodes_keep_to
    from pandas_dptree.privacy.sensitivity import count_sensitivity

    tree, one_row, outcomes = Tree.from_branching([2]), count_sensitivity(neighbors="add_remove"), []
    for size in range(1, 13):
        scales = tuple(np.array(level) * (10 + size) for level in ([1.0], [1.0, 1.25]))
        loss = PrivacyLoss(epsilon=0.5, delta=_delta(tree, scales, 0.5, one_row))
        outcomes.append(Fraction(loss.delta) <= loss.exact.delta)
        assert nodes_keep_to(tree, loss, one_row, scales) == outcomes[-1]
        found = node_noise_scales(tree, loss, one_row, [np.array([0.5]), np.array([0.5, 0.25])])
        assert nodes_keep_to(tree, loss, one_row, found)
    assert {*outcomes} == {True, False}

"""The search over shares of levels: it never ascends, and serves large trees."""

from dataclasses import replace

import numpy as np
from scipy.optimize import minimize

from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.planning import alternating as alternate
from pandas_dptree.planning.capacities import sensitivity_on
from pandas_dptree.planning.equal_subtrees import Orbits
from pandas_dptree.planning.levels import optimal_shares
from pandas_dptree.planning.objective import OBJECTIVES
from pandas_dptree.planning.patterns import pattern_costs, relative_costs
from pandas_dptree.planning.variance import level_variances_and_vjp
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.quantity import COUNT
from tests.helpers_cases import each
from tests.helpers_planning import EPSILON, random_tree
from tests.helpers_privacy import ONE_ROW


@each("seed", range(3))
def test_search_on_similar_sizes_serves_a_large_ragged_tree(seed):
    """Sets of levels are searched on a uniform tree; trying them all on the tree itself finds no better."""
    rng = np.random.default_rng(seed)
    counts, size = [], 1
    for wanted in (4, 9, 60, 300, 3000):
        counts.append(1 + rng.multinomial(wanted - size, rng.dirichlet(np.full(size, 0.5))))
        size = wanted
    tree = Tree(tuple(counts))
    for objective in OBJECTIVES:
        ours = optimal_shares(tree, Laplace(), EPSILON, ONE_ROW, objective=objective)
        problem = replace(
            alternate_problem(tree, objective), variance=alternate.VarianceFunction(Laplace(), 1.0, 2)
        )
        splits = alternate.promising_splits(problem, tree.depth, keep=1)
        (least,) = problem.descend(splits, steps=500)[1]
        (found,) = problem.descend(ours[:, None], steps=1)[1]
        assert np.sqrt(found / least) <= 1.002


def alternate_problem(tree, objective):
    orbits = Orbits.of(tree)
    weights = orbits.n_listed if objective == "cells" else np.ones(tree.depth + 1)
    floor = np.zeros((tree.depth + 1, 1))
    floor[-1] = 1e-6
    return alternate.Problem(
        model=lambda precisions: level_variances_and_vjp(orbits, precisions),
        variance=alternate.VarianceFunction(Gaussian(), 100.0, 1),
        weights=weights[:, None],
        worst=objective == "worst",
        floor=floor,
    )


def test_descent_never_ascends():
    rng = np.random.default_rng(0)
    problem = alternate_problem(random_tree(rng, depth=4), "cells")
    start = rng.dirichlet(np.ones(5), 20).T
    values = [problem.descend(start, steps=steps)[1] for steps in range(1, 12)]
    assert (np.diff(values, axis=0) <= 0).all()
    assert (values[-1] < values[0]).all()
    kept = problem.descend(np.array([[0.0, 0.5, 0.0, 0.0, 0.5]]).T, steps=20)[0]
    assert ((kept > 0)[:, 0] == [False, True, False, False, True]).all()


@each("seed", range(2))
def test_descent_under_several_patterns_is_a_generic_solvers(seed):
    """Shares are charged by patterns, which differ in what the levels cost: their scales differ, too."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, depth=3)
    squares = np.sort(rng.integers(1, 50, 4))[::-1].astype(float)
    patterns = np.stack([squares, 2 * squares * (np.arange(4) > 0)]) / np.maximum(
        squares, 2 * squares * (np.arange(4) > 0)
    )
    problem = replace(
        alternate_problem(tree, "worst" if seed % 2 else "levels"),
        variance=alternate.VarianceFunction(Gaussian(), 30 * np.sqrt(squares)[:, None], 1),
        patterns=patterns,
    )

    def costs(logs):
        means, _ = problem.model(1 / problem.variance(np.exp(logs)[:, None]))
        return (problem.weights * means)[:, 0]

    start = np.full((4, 1), 0.25)
    (ours,) = problem.descend(start, steps=1000)[1]
    limits = {"type": "ineq", "fun": lambda x: 1 - patterns @ np.exp(x[:4])}
    below = {"type": "ineq", "fun": lambda x: x[4] - np.log(costs(x[:4]))}
    first = np.full(4, np.log(0.2))
    options = {"ftol": 1e-13, "maxiter": 300}
    found = (
        minimize(
            lambda x: x[4], np.append(first, np.log(costs(first).max())), method="SLSQP",
            bounds=[(-20, 1)] * 4 + [(None, None)], constraints=[limits, below], options=options,
        )
        if problem.worst
        else minimize(
            lambda x: np.log(costs(x).sum()), first, method="SLSQP", bounds=[(-20, 1)] * 4,
            constraints=[limits], options=options,
        )
    )  # fmt: skip
    theirs = costs(found.x[:4] - np.log(max(1, (patterns @ np.exp(found.x[:4])).max())))
    assert ours <= (theirs.max() if problem.worst else theirs.sum()) * (1 + 1e-6)
    values = [problem.descend(start, steps=steps)[1] for steps in range(1, 8)]
    assert (np.diff(values, axis=0) <= 0).all()


@each("noise, loss", [(Laplace(), {"epsilon": 1.0}), (Gaussian(), {"rho": 0.1}), (Laplace(), {"rho": 0.1})])
@each("neighbors", ["add_remove", "replace"])
def test_variances_follow_from_the_charges_of_all_patterns(noise, loss, neighbors):
    tree, budget = Tree.from_branching([3, 4]), PrivacyLoss(**loss)
    moves = sensitivity_on(tree, COUNT, neighbors=neighbors, max_contributions=5, caps=(None, None, 2))
    costs = pattern_costs(noise, budget, moves)
    variance = alternate.VarianceFunction.calibrated(noise, budget, moves, np.array([0.7, 0.1, 0.2]))
    problem = replace(alternate_problem(tree, "levels"), patterns=relative_costs(costs))
    for shares in np.random.default_rng(0).dirichlet(np.ones(3), 5):
        expected = noise.variance(noise.noise_scales(budget, moves, shares))
        found = variance(problem.spent(shares[:, None]))[:, 0]
        np.testing.assert_allclose(found, expected, rtol=1e-9)

"""Expected errors beside dense linear algebra, and splits beside generic optimisers."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.planning import alternating as alternate
from pandas_dptree.planning.equal_subtrees import Orbits
from pandas_dptree.planning.levels import geometric_shares, optimal_shares, uniform_shares
from pandas_dptree.planning.objective import OBJECTIVES
from pandas_dptree.planning.split import level_shares
from pandas_dptree.planning.variance import level_variances, level_variances_and_vjp
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Sensitivity
from tests.reference import membership
from tests.strategies import trees

ONE_ROW = Sensitivity(l1=1, l2_squared=1)
EPSILON, RHO = PrivacyLoss(epsilon=1.0), PrivacyLoss(rho=0.005)


class ContinuousLaplace(Laplace):
    """Laplace noise on the real line, for reference values."""

    def variance(self, noise_scales):
        return 2 * np.asarray(noise_scales, dtype=float) ** 2


def random_tree(rng, depth, widest=4):
    """Draw a ragged tree, a fifth of whose inner nodes are leaves that continue as chains."""
    counts, ends = [], np.array([depth])
    for level in range(depth):
        count = np.where(ends <= level, 1, rng.integers(1, widest + 1, len(ends)))
        counts.append(count)
        ends = np.repeat(ends, count)
        ends = np.where((ends == depth) & (rng.random(len(ends)) < 0.2), level + 1, ends)
    return Tree(tuple(counts), ends)


def dense_level_variances(tree, precisions):
    """Invert the normal equations over the leaves, and average over the listed nodes of each level."""
    matrices = membership(tree)
    normal = sum(p * matrix.T @ matrix for p, matrix in zip(precisions, matrices, strict=True))
    covariance = np.linalg.inv(normal)
    nodes = [np.einsum("ij,jk,ik->i", matrix, covariance, matrix) for matrix in matrices]
    shown = [tree.listed(level) for level in range(tree.depth + 1)]
    return np.array([v[s].mean() if s.any() else np.nan for v, s in zip(nodes, shown, strict=True)])


def listed_counts(tree):
    return np.array([np.count_nonzero(tree.listed(level)) for level in range(tree.depth + 1)])


def cost(variances, sizes, objective, weights=None):
    """What the objective makes of the levels' variances."""
    weights = (sizes > 0) * (1.0 if weights is None else weights)
    costs = np.where(weights > 0, weights * np.nan_to_num(variances), 0.0)
    if objective == "worst":
        return costs.max() / weights.sum()
    by_node = sizes if objective == "cells" else 1
    return (costs * by_node).sum() / (weights * by_node).sum()


def cost_of(tree, noise, loss, shares, objective, weights=None):
    noise_variances = noise.variance(noise.noise_scales(loss, ONE_ROW, shares))
    return cost(level_variances(tree, noise_variances), listed_counts(tree), objective, weights)


# -- expected errors ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(200))
def test_level_variances_are_those_of_dense_least_squares(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, depth=int(rng.integers(1, 5)), widest=3)
    precisions = 10 ** rng.uniform(-2, 2, tree.depth + 1)
    precisions[:-1][rng.random(tree.depth) < 0.3] = 0
    with np.errstate(divide="ignore"):
        ours = level_variances(tree, 1 / precisions)
    np.testing.assert_allclose(ours, dense_level_variances(tree, precisions), rtol=1e-9)


def test_known_levels_have_no_variance_and_tell_about_the_rest():
    tree = Tree.from_branching([2, 2])
    np.testing.assert_allclose(level_variances(tree, [0.0, np.inf, 1.0]), [0, 1, 0.75], rtol=1e-12)
    np.testing.assert_array_equal(level_variances(tree, [0.0, 0.0, 0.0]), [0, 0, 0])
    nearly = dense_level_variances(tree, [1e8, 0, 1])
    np.testing.assert_allclose(level_variances(tree, [0.0, np.inf, 1.0])[1:], nearly[1:], rtol=1e-6)


@pytest.mark.parametrize("seed", range(30))
def test_gradient_is_that_of_finite_differences(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, depth=int(rng.integers(1, 5)))
    orbits, levels = Orbits.of(tree), tree.depth + 1
    weights = rng.random((levels, 1))
    precisions = rng.uniform(0.5, 2, (levels, 1))
    precisions[:-1][rng.random(tree.depth) < 0.3] = 0
    gradient = level_variances_and_vjp(orbits, precisions)[1](weights)[:, 0]

    def value(level, step):
        moved = precisions.copy()
        moved[level] += step
        return float((weights * level_variances_and_vjp(orbits, moved)[0]).sum())

    for level in range(levels):
        h = 1e-4  # one-sided, of second order: an unmeasured level has nothing to lose
        slope = (-3 * value(level, 0) + 4 * value(level, h) - value(level, 2 * h)) / (2 * h)
        assert gradient[level] == pytest.approx(slope, rel=1e-5, abs=1e-6 * abs(gradient).max())


def test_several_precisions_are_dealt_with_side_by_side():
    tree = random_tree(np.random.default_rng(1), depth=4)
    orbits = Orbits.of(tree)
    rng = np.random.default_rng(2)
    precisions, weights = rng.random((5, 7)) + 0.1, rng.random((5, 7))
    means, vjp = level_variances_and_vjp(orbits, precisions)
    gradient = vjp(weights)
    for i in range(7):
        one, one_vjp = level_variances_and_vjp(orbits, precisions[:, [i]])
        np.testing.assert_allclose(means[:, [i]], one, rtol=1e-14)
        np.testing.assert_allclose(gradient[:, [i]], one_vjp(weights[:, [i]]), rtol=1e-13)


@given(trees())
def test_orbits_count_every_node_once(tree):
    orbits = Orbits.of(tree)
    np.testing.assert_array_equal(orbits.n_listed, listed_counts(tree))
    assert orbits.depth == tree.depth
    leaves = np.ones((len(orbits.listed[-1]), 1))
    for level in reversed(range(tree.depth)):
        leaves = orbits.sum_children(level, leaves)
    assert leaves.item() == tree.n_leaves


def test_orbits_shrink_what_is_alike():
    assert Orbits.of(Tree.from_branching([100] * 4)).n_kinds == 5
    assert Orbits.of(Tree.from_branching([2] * 62)).n_listed[-1] == 2.0**62
    # Two of the three subtrees are the same multiset of shapes, in another order.
    mirrored = Tree((np.array([3]), np.array([2, 2, 2]), np.array([1, 5, 5, 1, 5, 5])))
    assert [len(level) for level in Orbits.of(mirrored).listed] == [1, 2, 3, 3]


def test_a_level_without_listed_nodes_has_no_mean_and_does_no_harm():
    tree = Tree.from_paths([[0, -1], [1, -1]])
    np.testing.assert_array_equal(np.isnan(level_variances(tree, [1.0, 1.0, 1.0])), [False, False, True])
    for objective, (noise, loss) in itertools.product(OBJECTIVES, [(Laplace(), EPSILON), (Gaussian(), RHO)]):
        shares = optimal_shares(tree, noise, loss, ONE_ROW, objective=objective)
        assert shares.sum() == pytest.approx(1) and shares[-1] > 0


# -- optimal splits ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objective", "expected"),
    [("cells", [0.061, 0.101, 0.198, 0.641]), ("levels", [0.195, 0.230, 0.252, 0.323])],
)
def test_gaussian_split_of_a_uniform_tree_is_the_closed_form(objective, expected):
    shares = optimal_shares(Tree.from_branching([2, 3, 4]), Gaussian(), RHO, ONE_ROW, objective=objective)
    np.testing.assert_allclose(shares, expected, atol=6e-4)


@pytest.mark.parametrize("branching", [[2, 3, 4], [50, 60, 30], [2] * 8, [1, 5, 1, 3]])
@pytest.mark.parametrize("objective", ["cells", "levels"])
def test_gaussian_split_of_a_uniform_tree_attains_the_singular_value_bound(branching, objective):
    tree = Tree.from_branching(branching)
    sizes = np.array(tree.level_sizes, dtype=float)
    weights = np.ones(len(sizes)) / len(sizes) if objective == "levels" else sizes / sizes.sum()
    # The workload's Gram matrix is sum_l u_l A_l' A_l. Its eigenvalues, level by level: sum of the u_k s_k
    # from l down, as often as level l has more nodes than the one above.
    leaves = sizes[-1] / sizes
    eigenvalues = np.cumsum((weights / sizes * leaves)[::-1])[::-1]
    bound = (np.diff(sizes, prepend=0) * np.sqrt(eigenvalues)).sum() ** 2 / sizes[-1] / (2 * RHO.rho)
    shares = optimal_shares(tree, Gaussian(), RHO, ONE_ROW, objective=objective)
    assert cost_of(tree, Gaussian(), RHO, shares, objective) == pytest.approx(bound, rel=1e-9)


def generic_optimum(tree, precision, objective, starts, weights=None):
    """Minimise with SLSQP on the dense formula, the worst level in epigraph form."""
    sizes, levels = listed_counts(tree), tree.depth + 1
    weights = np.where(sizes > 0, 1.0 if weights is None else weights, 0.0)
    counted = np.flatnonzero(weights)

    def log_costs(shares):
        return np.log((weights * dense_level_variances(tree, precision(shares)))[counted])

    least = np.inf
    for start in starts:
        one = {"type": "eq", "fun": lambda x: x[:levels].sum() - 1}
        bounds = [(0, 1)] * (levels - 1) + [(1e-6, 1)]
        if objective == "worst":
            below = {"type": "ineq", "fun": lambda x: x[-1] - log_costs(x[:-1])}
            start, bounds = np.append(start, log_costs(start).max()), [*bounds, (None, None)]
            found = scipy.optimize.minimize(
                lambda x: x[-1], start, method="SLSQP", bounds=bounds, constraints=[one, below],
                options={"ftol": 1e-13, "maxiter": 500},
            )  # fmt: skip
        else:
            found = scipy.optimize.minimize(
                lambda x: np.log(
                    cost(dense_level_variances(tree, precision(x)), sizes, objective, weights)
                ),
                start, method="SLSQP", bounds=bounds, constraints=[one],
                options={"ftol": 1e-13, "maxiter": 500},
            )  # fmt: skip
        shares = np.clip(found.x[:levels], 0, None)
        shares /= shares.sum()
        least = min(least, cost(dense_level_variances(tree, precision(shares)), sizes, objective, weights))
    return least


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_gaussian_split_of_a_ragged_tree_is_a_generic_solvers(seed, objective):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, depth=2 + seed % 3, widest=3)
    weights = rng.uniform(0.2, 2, tree.depth + 1) if seed % 2 else None
    shares = optimal_shares(tree, Gaussian(), RHO, ONE_ROW, objective=objective, level_weights=weights)
    ours = cost_of(tree, Gaussian(), RHO, shares, objective, weights)
    theirs = generic_optimum(
        tree, lambda s: 2 * RHO.rho * s, objective, [uniform_shares(tree), shares], weights
    )
    assert ours == pytest.approx(theirs, rel=1e-6)


@pytest.mark.slow
def test_gaussian_splits_of_two_hundred_ragged_trees_are_a_generic_solvers():
    for seed in range(200):
        tree = random_tree(np.random.default_rng([200, seed]), depth=2 + seed % 2, widest=3)
        shares = optimal_shares(tree, Gaussian(), RHO, ONE_ROW)
        ours = cost_of(tree, Gaussian(), RHO, shares, "levels")
        theirs = generic_optimum(tree, lambda s: 2 * RHO.rho * s, "levels", [uniform_shares(tree)])
        assert ours == pytest.approx(theirs, rel=1e-6)
        for simple in (uniform_shares(tree), geometric_shares(tree, 1)):
            assert ours <= cost_of(tree, Gaussian(), RHO, simple, "levels") * (1 + 1e-6)


# Root-mean-square errors for epsilon = 1 and continuous noise: of a good split, and of an even one.
REFERENCE = [
    ([5, 6, 10], "levels", 5.0421, 5.0613),
    ([5, 6, 10], "cells", 2.5128, 5.3452),
    ([16, 16], "cells", 2.2509, 4.1084),
    ([50, 60, 30], "cells", 2.1936, 5.5633),
    ([2] * 10, "levels", 6.5496, 9.7639),
    ([2] * 10, "cells", 3.1358, 11.0027),
    ([2] * 10, "worst", 8.159, 12.1169),
]


@pytest.mark.parametrize(("branching", "objective", "good", "even"), REFERENCE)
def test_laplace_split_reaches_the_reference_values(branching, objective, good, even):
    tree, noise = Tree.from_branching(branching), ContinuousLaplace()
    scale = tree.depth + 1 if objective == "worst" else 1  # `cost` divides by the sum of the weights

    def error(shares):
        return np.sqrt(scale * cost_of(tree, noise, EPSILON, shares, objective))

    assert error(uniform_shares(tree)) == pytest.approx(even, rel=2e-5)
    assert error(optimal_shares(tree, noise, EPSILON, ONE_ROW, objective=objective)) <= good * 1.0001


# The best known, found by this search: better than the reference in four of seven.
@pytest.mark.parametrize(
    ("branching", "objective", "best"),
    [
        ([5, 6, 10], "levels", 4.96472),
        ([2] * 10, "levels", 6.47432),
        ([2] * 10, "cells", 3.10485),
        ([2] * 10, "worst", 7.93350),
    ],
)
@pytest.mark.parametrize("exhaustive", [10, 3])
def test_laplace_split_is_the_best_known_by_either_search(
    branching, objective, best, exhaustive, monkeypatch
):
    monkeypatch.setattr(alternate, "_EXHAUSTIVE", exhaustive)
    tree, noise = Tree.from_branching(branching), ContinuousLaplace()
    shares = optimal_shares(tree, noise, EPSILON, ONE_ROW, objective=objective)
    scale = tree.depth + 1 if objective == "worst" else 1
    found = np.sqrt(scale * cost_of(tree, noise, EPSILON, shares, objective))
    assert best * 0.99999 <= found <= best * (1.00001 if exhaustive == 10 else 1.002)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_laplace_split_of_a_ragged_tree_is_the_best_of_all_sets_of_levels(seed, objective):
    rng = np.random.default_rng(100 + seed)
    tree = random_tree(rng, depth=2 + seed % 2, widest=4)
    starts = [
        np.array([*measured, 1]) / (sum(measured) + 1)
        for measured in itertools.product([1e-3, 1], repeat=tree.depth)
    ]
    theirs = generic_optimum(tree, lambda s: np.cosh(s) - 1, objective, starts)
    shares = optimal_shares(tree, Laplace(), EPSILON, ONE_ROW, objective=objective)
    assert cost_of(tree, Laplace(), EPSILON, shares, objective) <= theirs * 1.0001


@pytest.mark.parametrize("epsilon", [20.0, 80.0])
def test_gaussian_noise_that_is_all_but_nothing_is_split_too(epsilon):
    """Its precision rises faster than the share, as that of Laplace noise does."""
    tree, loss = Tree.from_branching([2, 3]), PrivacyLoss(epsilon=epsilon, delta=1e-6)
    shares = optimal_shares(tree, Gaussian(), loss, ONE_ROW)
    even = uniform_shares(tree)
    assert cost_of(tree, Gaussian(), loss, shares, "levels") <= cost_of(
        tree, Gaussian(), loss, even, "levels"
    )


@pytest.mark.parametrize("seed", range(3))
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


@given(
    trees(),
    st.sampled_from([(Laplace(), "epsilon"), (Laplace(), "rho"), (Gaussian(), "rho")]),
    st.sampled_from([0.01, 0.5, 3.0, 30.0]),
    st.sampled_from(OBJECTIVES),
    st.booleans(),
)
@settings(max_examples=60)
def test_optimal_is_never_worse_than_uniform_or_geometric(tree, kind, size, objective, least_squares):
    noise, name = kind
    loss = PrivacyLoss(**{name: size})
    shares = optimal_shares(tree, noise, loss, ONE_ROW, objective=objective, least_squares=least_squares)
    assert (shares >= 0).all() and shares.sum() == pytest.approx(1, abs=1e-12)
    assert shares[-1] > 0 and (least_squares or shares.all())

    def value(split):
        if least_squares:
            return cost_of(tree, noise, loss, split, objective)
        variances = noise.variance(noise.noise_scales(loss, ONE_ROW, split))
        return cost(variances, listed_counts(tree), objective)

    others = [uniform_shares(tree), geometric_shares(tree, noise.variance_power(loss))]
    assert value(shares) <= min(map(value, others)) * (1 + 1e-6)


def test_descent_never_ascends():
    rng = np.random.default_rng(0)
    problem = alternate_problem(random_tree(rng, depth=4), "cells")
    start = rng.dirichlet(np.ones(5), 20).T
    values = [problem.descend(start, steps=steps)[1] for steps in range(1, 12)]
    assert (np.diff(values, axis=0) <= 0).all()
    assert (values[-1] < values[0]).all()
    kept = problem.descend(np.array([[0.0, 0.5, 0.0, 0.0, 0.5]]).T, steps=20)[0]
    assert ((kept > 0)[:, 0] == [False, True, False, False, True]).all()


def test_without_least_squares_the_best_split_is_geometric():
    tree, loss = Tree.from_branching([3, 4, 5]), PrivacyLoss(epsilon=0.001)
    shares = optimal_shares(tree, Laplace(), loss, ONE_ROW, objective="cells", least_squares=False)
    np.testing.assert_allclose(shares, geometric_shares(tree, 2), rtol=1e-4)
    shares = optimal_shares(tree, Gaussian(), RHO, ONE_ROW, objective="cells", least_squares=False)
    np.testing.assert_allclose(shares, geometric_shares(tree, 1), rtol=1e-4)
    shares = optimal_shares(tree, Gaussian(), RHO, ONE_ROW, objective="worst", least_squares=False)
    np.testing.assert_allclose(shares, 0.25, rtol=1e-4)


@pytest.mark.parametrize(("noise", "loss"), [(Gaussian(), RHO), (Laplace(), EPSILON)])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_leaves_are_measured_though_nobody_asks_for_them(noise, loss, objective):
    tree = Tree.from_branching([10, 10])
    shares = optimal_shares(
        tree, noise, loss, ONE_ROW, objective=objective, level_weights=np.array([0.0, 1.0, 0.0])
    )
    assert 0 < shares[-1] < 0.05
    assert shares[1] > 0.7


def test_more_weight_means_less_error():
    tree = random_tree(np.random.default_rng(4), depth=3)
    errors = []
    for weight in (0.1, 1.0, 10.0):
        shares = optimal_shares(
            tree, Gaussian(), RHO, ONE_ROW, level_weights=np.array([1.0, weight, 1.0, 1.0])
        )
        noise = Gaussian().noise_scales(RHO, ONE_ROW, shares)
        errors.append(level_variances(tree, Gaussian().variance(noise))[1])
    assert errors[0] > errors[1] > errors[2]


def test_a_split_is_the_same_every_time():
    tree = random_tree(np.random.default_rng(5), depth=5)
    first, second = (optimal_shares(tree, Laplace(), EPSILON, ONE_ROW) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("least_squares", [True, False])
@pytest.mark.parametrize("split", ["uniform", "geometric", "optimal"])
def test_a_single_level_gets_everything(split, least_squares):
    shares = level_shares(
        Tree(()), noise=Laplace(), loss=EPSILON, sensitivity=ONE_ROW, split=split, least_squares=least_squares
    )
    assert shares.tolist() == [1.0]


@pytest.mark.slow
def test_large_trees_take_little_time():
    """Equal siblings are folded: neither of these would end within the time of a test otherwise."""
    rng = np.random.default_rng(0)
    counts, size = [], 1
    for wanted in (52, 3100, 40_000, 1_000_000):
        counts.append(1 + rng.multinomial(wanted - size, rng.dirichlet(np.ones(size))))
        size = wanted
    for tree in (Tree(tuple(counts)), Tree.from_branching([2] * 40)):
        for objective in OBJECTIVES:
            shares = optimal_shares(tree, Laplace(), EPSILON, ONE_ROW, objective=objective)
            best, even = (cost_of_large(tree, shares, objective) for shares in (shares, uniform_shares(tree)))
            assert best <= even * (1 + 1e-9)


def cost_of_large(tree, shares, objective):
    noise = Laplace()
    variances = noise.variance(noise.noise_scales(EPSILON, ONE_ROW, shares))
    return cost(level_variances(tree, variances), np.array(tree.level_sizes, dtype=float), objective)


# -- arguments ---------------------------------------------------------------------------------------


def budget_split(**changes):
    arguments = {"noise": Laplace(), "loss": EPSILON, "sensitivity": ONE_ROW, **changes}
    return level_shares(Tree.from_branching([2, 3]), **arguments)


def test_named_and_given_splits():
    assert budget_split(split="uniform").tolist() == [1 / 3] * 3
    np.testing.assert_allclose(
        budget_split(split="geometric"), np.cbrt([1, 2, 6]) / np.cbrt([1, 2, 6]).sum(), rtol=1e-14
    )
    np.testing.assert_allclose(budget_split(split=np.array([0.5, 0, 0.5])), [0.5, 0, 0.5], rtol=1e-15)
    thirds = np.array([0.3333333, 0.3333333, 0.3333333])
    assert budget_split(split=thirds).sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"split": "fair"}, "split"),
        ({"split": np.array([0.5, 0.5])}, "split"),
        ({"split": np.array([0.5, 0.5, 0.5])}, "split"),
        ({"split": np.array([1.5, -1.0, 0.5])}, "split"),
        ({"split": np.array([np.nan, 0.5, 0.5])}, "split"),
        ({"split": np.array([0.5, 0.5, 0.0])}, "split"),
        ({"split": np.array([0.0, 0.5, 0.5]), "least_squares": False}, "split"),
        ({"objective": "cell"}, "objective"),
        ({"level_weights": np.array([1.0, 1.0])}, "level_weights"),
        ({"level_weights": np.array([1.0, -1.0, 1.0])}, "level_weights"),
        ({"level_weights": np.array([1.0, np.inf, 1.0])}, "level_weights"),
        ({"level_weights": np.zeros(3)}, "level_weights"),
        ({"noise": Gaussian()}, "mechanism"),
    ],
)
def test_what_cannot_be_split_is_refused(changes, argument):
    with pytest.raises(ArgumentError, match="Hint: ") as error:
        budget_split(**changes)
    assert error.value.argument == argument

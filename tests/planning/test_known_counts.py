"""Plans where some counts are public: errors beside constrained least squares, shares beside SLSQP."""

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.planning.equal_subtrees import Orbits
from pandas_dptree.planning.levels import geometric_shares, optimal_shares, uniform_shares
from pandas_dptree.planning.objective import OBJECTIVES, cost_weights
from pandas_dptree.planning.split import level_shares
from pandas_dptree.planning.variance import level_variances, level_variances_and_vjp
from pandas_dptree.privacy.loss import PrivacyLoss
from tests.helpers_cases import each
from tests.helpers_planning import EPSILON, RHO, flags_of, random_tree, unfolded
from tests.helpers_privacy import ONE_ROW
from tests.reference import membership
from tests.strategies import trees


def random_flags(rng, tree, part=0.3):
    """Draw flags, some levels whole, of which not all leaves are known; nothing need follow from them."""
    flags = [rng.random(size) < part for size in tree.level_sizes]
    for level in np.flatnonzero(rng.random(tree.depth) < 0.2):
        flags[level][:] = True
    flags[-1][rng.integers(tree.n_leaves)] = False
    return flags


def small_case(seed, depth=None):
    """Draw a tree, flags, and weights."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, depth=depth or 1 + seed % 4, widest=3)
    weights = rng.uniform(0.2, 2, tree.depth + 1) if seed % 2 else None
    return rng, tree, random_flags(rng, tree, rng.choice([0.1, 0.3, 0.6])), weights


class Dense:
    """Generalised least squares over the leaves that agree with what is known."""

    def __init__(self, tree, known):
        self.tree, self.rows = tree, np.concatenate(membership(tree))
        self.known = np.concatenate(unfolded(tree, known))
        self.level = np.repeat(np.arange(tree.depth + 1), tree.level_sizes)
        shown = np.concatenate([tree.listed(level) for level in range(tree.depth + 1)])
        of_level = (self.level == np.arange(tree.depth + 1)[:, None]) & shown
        self.counts = of_level.sum(axis=1)
        self.means = of_level / np.maximum(self.counts, 1)[:, None]
        free = scipy.linalg.null_space(self.rows[self.known]) if self.known.any() else np.eye(tree.n_leaves)
        self.free = self.rows @ free  # how the nodes move with what is not settled

    def covariance(self, precisions):
        """Give the covariance of all nodes' estimates."""
        measured = np.where(self.known, 0.0, precisions)
        return self.free @ np.linalg.solve(self.free.T @ (measured[:, None] * self.free), self.free.T)

    def level_means(self, precisions):
        return self.means @ self.covariance(precisions).diagonal()

    def by_level(self, values):
        return np.asarray(values)[self.level]

    def by_node(self, values):
        return np.concatenate(unfolded(self.tree, values))


def value(dense, precisions, objective, weights):
    costs = cost_weights(dense.counts, objective, weights) * dense.level_means(precisions)
    return costs.max() if objective == "worst" else costs.sum()


def generic_optimum(dense, objective, weights, spread, limits, least, starts):
    """Minimise over x >= least with limits @ x <= 1, the nodes' precisions being spread @ x, by SLSQP."""
    costs = cost_weights(dense.counts, objective, weights)[:, None] * dense.means

    def evaluate(x):
        covariance = dense.covariance(spread @ x)
        return costs @ covariance.diagonal(), -costs @ covariance**2 @ spread

    n, found = spread.shape[1], []
    for start in starts:
        unit = evaluate(start)[0].max()

        def within(x):
            return 1 - limits @ x[:n]

        budget = {
            "type": "ineq", "fun": within,
            "jac": lambda x: np.pad(-limits, ((0, 0), (0, len(x) - n))),
        }  # fmt: skip
        options = {"maxiter": 1000, "ftol": 1e-13}
        bounds = [(low, 1.0) for low in least]
        if objective == "worst":
            ceiling = {
                "type": "ineq",
                "fun": lambda x, unit=unit: x[n] - evaluate(x[:n])[0] / unit,
                "jac": lambda x, unit=unit: np.column_stack(
                    [-evaluate(x[:n])[1] / unit, np.ones(len(costs))]
                ),
            }
            result = scipy.optimize.minimize(
                lambda x: x[n], np.append(start, 1.01), jac=lambda x: np.eye(n + 1)[n],
                bounds=[*bounds, (0.0, None)], constraints=[budget, ceiling], method="SLSQP", options=options,
            )  # fmt: skip
        else:
            result = scipy.optimize.minimize(
                lambda x, unit=unit: (evaluate(x)[0].sum() / unit, evaluate(x)[1].sum(axis=0) / unit),
                start, jac=True, bounds=bounds, constraints=[budget], method="SLSQP", options=options,
            )  # fmt: skip
        x = np.maximum(result.x[:n], least)
        found.append(value(dense, spread @ (x / max(1, (limits @ x).max())), objective, weights))
    return min(found)


def best_by_level(dense, unknown, objective, weights, starts):
    spread = (dense.level[:, None] == np.flatnonzero(unknown)).astype(float)
    least = np.append(np.zeros(spread.shape[1] - 1), 1e-3)
    starts = [start[unknown] for start in starts]
    return generic_optimum(dense, objective, weights, spread, np.ones((1, spread.shape[1])), least, starts)


def best_by_node(dense, objective, weights):
    spread = np.eye(len(dense.rows))[:, ~dense.known]
    limits = dense.rows.T @ spread
    limits = np.unique(limits[limits.any(axis=1)], axis=0)
    least = np.where(dense.level[~dense.known] == dense.tree.depth, 1e-5, 0.0)
    even = np.full(spread.shape[1], 1 / (dense.tree.depth + 1))
    odd = even * np.random.default_rng(0).uniform(0.3, 1, len(even))
    return generic_optimum(dense, objective, weights, spread, limits, least, [even, odd])


# -- expected errors ---------------------------------------------------------------------------------


@each("seed", range(120))
def test_variances_are_those_of_constrained_least_squares(seed):
    rng, tree, known, _ = small_case(seed)
    dense = Dense(tree, known)
    by_level = 10 ** rng.uniform(-2, 2, tree.depth + 1)
    by_level[:-1][rng.random(tree.depth) < 0.3] = 0
    with np.errstate(divide="ignore"):
        ours = level_variances(tree, 1 / by_level, known=known)
    theirs = np.where(dense.counts > 0, dense.level_means(dense.by_level(by_level)), np.nan)
    np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)


@each("seed", range(60))
def test_gradient_is_that_of_finite_differences(seed):
    rng, tree, known, _ = small_case(seed)
    orbits = Orbits.of(tree, known)
    weights = rng.random((tree.depth + 1, 1))
    precisions = rng.uniform(0.5, 2, weights.shape)
    gradient = level_variances_and_vjp(orbits, precisions)[1](weights)

    def cost(level, step):
        moved = precisions.copy()
        moved[level] += step
        return float((weights * level_variances_and_vjp(orbits, moved)[0]).sum())

    for level, (part, known_kinds) in enumerate(zip(gradient[:, 0], orbits.known, strict=True)):
        slope = (cost(level, 1e-5) - cost(level, -1e-5)) / 2e-5
        assert part == pytest.approx(slope, rel=1e-5, abs=1e-8)
        assert part == 0 or not known_kinds.all()


@each(
    "places",
    [
        [(0, 0)],  # the root
        [(1, 0)],  # an inner node
        [(2, 0), (2, 1), (2, 2)],  # a family
        [(1, 0), (2, 0), (2, 1)],  # all of a family but one child
        [(0, 0), (1, 0), (2, 3)],  # what settles a node and a leaf
        [(1, 0), (1, 1), (2, 4)],  # a level
    ],
)
def test_known_nodes_everywhere_in_a_small_tree(places):
    tree = Tree.from_branching([2, 3])
    known = [np.zeros(size, dtype=bool) for size in tree.level_sizes]
    for level, node in places:
        known[level][node] = True
    dense, noise = Dense(tree, known), np.array([3.0, 0.5, 2.0])
    ours = level_variances(tree, noise, known=known)
    np.testing.assert_allclose(ours, dense.level_means(dense.by_level(1 / noise)), rtol=1e-10, atol=1e-15)


@given(trees(), st.integers(0, 2**32))
def test_kinds_say_of_each_node_whether_it_is_known(tree, seed):
    known = random_flags(np.random.default_rng(seed), tree)
    orbits = Orbits.of(tree, known)
    for flags, kind, kinds_known in zip(known, orbits.kinds, orbits.known, strict=True):
        np.testing.assert_array_equal(
            np.broadcast_to(kinds_known[:, 0], int(kind.max()) + 1)[np.broadcast_to(kind, len(flags))], flags
        )
    shown = np.array([(tree.listed(level) & ~flags).sum() for level, flags in enumerate(known)], dtype=float)
    shown = np.where(orbits.n_listed > 0, shown / np.maximum(orbits.n_listed, 1), 1.0)
    np.testing.assert_allclose(orbits.part_unknown, shown, atol=1e-15)


# -- shares by level ---------------------------------------------------------------------------------


@each("seed", range(16))
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_gaussian_split_is_a_generic_solvers(seed, objective):
    compare_with_solver(seed, objective)


@pytest.mark.slow
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_gaussian_splits_of_many_trees_are_a_generic_solvers(objective):
    for seed in range(1000, 1060):
        compare_with_solver(seed, objective)


def compare_with_solver(seed, objective):
    _, tree, known, weights = small_case(seed)
    dense, unknown = Dense(tree, known), np.array([not flags.all() for flags in known])
    shares = optimal_shares(
        tree, Gaussian(), RHO, ONE_ROW, objective=objective, level_weights=weights, known=known
    )
    assert shares.sum() == pytest.approx(1, abs=1e-12) and not shares[~unknown].any()
    ours = value(dense, dense.by_level(shares), objective, weights)
    if ours > 1e-9:  # or else all that matters is settled
        starts = [uniform_shares(tree, known=known), np.maximum(shares, 1e-3)]
        theirs = best_by_level(dense, unknown, objective, weights, starts)
        assert ours == pytest.approx(theirs, rel=1e-5)


@each("branching", [[2, 3, 4], [4, 3, 2], [2] * 6, [1, 5, 1, 3], [10, 1, 1, 2], [2, 9]])
@pytest.mark.parametrize("deepest", [0, 1])
@pytest.mark.parametrize("objective", ["cells", "levels"])
def test_closed_form_where_levels_of_a_uniform_tree_are_known(branching, deepest, objective):
    tree = Tree.from_branching(branching)
    known = flags_of(tree, deepest)
    dense, unknown = Dense(tree, known), np.arange(tree.depth + 1) != deepest
    for weights in (None, np.arange(tree.depth + 1) + 0.5, 1 / (np.arange(tree.depth + 1) ** 3 + 1)):
        shares = optimal_shares(
            tree, Gaussian(), RHO, ONE_ROW, objective=objective, level_weights=weights, known=known
        )
        ours = value(dense, dense.by_level(shares), objective, weights)
        theirs = best_by_level(dense, unknown, objective, weights, [uniform_shares(tree, known=known)])
        assert ours <= theirs * (1 + 1e-9)
        assert ours >= theirs * (1 - 1e-6)


def test_closed_form_pools_levels_that_add_little():
    # Below a known total, a level of two parts is a single number: measuring the many leaves tells it.
    tree = Tree.from_branching([2, 2, 50])
    shares = optimal_shares(
        tree, Gaussian(), RHO, ONE_ROW, known=flags_of(tree, 0), level_weights=np.array([1.0, 0.1, 1.0, 1.0])
    )
    assert shares[0] == shares[1] == 0 and shares[2] > 0.1


@pytest.mark.tripwire
@given(
    trees(),
    st.sampled_from([(Laplace(), "epsilon"), (Laplace(), "rho"), (Gaussian(), "rho")]),
    st.sampled_from([0.01, 0.5, 3.0, 30.0]),
    st.sampled_from(OBJECTIVES),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_optimal_is_never_worse_than_uniform_or_geometric(tree, kind, size, objective, least_squares, seed):
    noise, name = kind
    loss, known = PrivacyLoss(**{name: size}), random_flags(np.random.default_rng(seed), tree)
    unknown = np.array([not flags.all() for flags in known])
    shares = optimal_shares(
        tree, noise, loss, ONE_ROW, objective=objective, least_squares=least_squares, known=known
    )
    assert (shares >= 0).all() and shares.sum() == pytest.approx(1, abs=1e-12)
    assert shares[-1] > 0 and not shares[~unknown].any() and (least_squares or shares[unknown].all())
    dense = Dense(tree, known)

    def cost(split):
        variances = noise.variance(noise.noise_scales(loss, ONE_ROW, split))
        if least_squares:
            means = np.nan_to_num(level_variances(tree, variances, known=known))
        else:
            means = dense.means @ np.where(dense.known, 0.0, dense.by_level(variances))
        costs = cost_weights(dense.counts, objective) * means
        return costs.max() if objective == "worst" else costs.sum()

    with np.errstate(invalid="ignore"):
        others = [
            uniform_shares(tree, known=known), geometric_shares(tree, noise.variance_power(loss), known=known)
        ]  # fmt: skip
        assert cost(shares) <= min(map(cost, others)) * (1 + 1e-6)


@each("least_squares", [True, False])
def test_a_known_level_that_no_table_shows_does_no_harm(least_squares):
    tree = Tree((np.array([2]), np.array([1]), np.array([1])), np.array([1]))
    shares = optimal_shares(
        tree, Gaussian(), RHO, ONE_ROW, known=flags_of(tree, 2), least_squares=least_squares
    )
    assert shares[2] == 0 and shares.sum() == pytest.approx(1)


def test_laplace_under_delta_and_a_known_total():
    tree, loss = random_tree(np.random.default_rng(3), depth=3), PrivacyLoss(epsilon=1.0, delta=1e-6)
    shares = optimal_shares(tree, Laplace(), loss, ONE_ROW, known=flags_of(tree, 0))
    assert shares[0] == 0 and shares.sum() == pytest.approx(1)


def test_deep_trees_with_known_levels_are_searched():
    tree = Tree.from_branching([2] * 14)
    known = flags_of(tree, 0, 3)
    shares = optimal_shares(tree, Laplace(), EPSILON, ONE_ROW, known=known)
    free = optimal_shares(tree, Laplace(), EPSILON, ONE_ROW)
    assert shares[0] == shares[3] == 0

    def cost(split):
        noise = Laplace().variance(Laplace().noise_scales(EPSILON, ONE_ROW, split))
        return level_variances(tree, noise, known=known).mean()

    assert cost(shares) < cost(free)


def test_a_known_total_frees_the_budget_it_would_have_had():
    tree = random_tree(np.random.default_rng(7), depth=3)
    for split in ("uniform", "geometric", "optimal"):
        without, given_total = (
            level_shares(tree, noise=Laplace(), loss=EPSILON, sensitivity=ONE_ROW, split=split, known=known)
            for known in (None, flags_of(tree, 0))
        )
        assert without[0] > 0 == given_total[0]
        if split != "optimal":
            np.testing.assert_allclose(given_total[1:], without[1:] / without[1:].sum(), rtol=1e-12)


@each("objective", OBJECTIVES)
@each("noise, loss", [(Gaussian(), RHO), (Laplace(), EPSILON)])
@each("branching", [[1, 1], [2, 3]])
@each("least_squares", [True, False])
def test_nothing_to_improve_is_no_reason_to_fail(objective, noise, loss, branching, least_squares):
    tree = Tree.from_branching(branching)
    weights = np.array([1.0, 0.0, 0.0])
    known = flags_of(tree, 0)
    shares = optimal_shares(
        tree, noise, loss, ONE_ROW, objective=objective, level_weights=weights,
        known=known, least_squares=least_squares,
    )  # fmt: skip
    assert shares[0] == 0 < shares[-1] and shares.sum() == pytest.approx(1)


# -- arguments ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_large_trees_with_known_nodes_take_little_time():
    rng = np.random.default_rng(0)
    counts, size = [], 1
    for wanted in (52, 3100, 40_000, 1_000_000):
        counts.append(1 + rng.multinomial(wanted - size, rng.dirichlet(np.ones(size))))
        size = wanted
    tree = Tree(tuple(counts))
    scattered = flags_of(tree)
    scattered[2] = rng.random(tree.level_sizes[2]) < 0.3
    for known in (flags_of(tree, 0), scattered):
        for noise, loss in ((Laplace(), EPSILON), (Gaussian(), RHO)):
            shares = optimal_shares(tree, noise, loss, ONE_ROW, known=known)
            even = uniform_shares(tree, known=known)
            ours, theirs = (
                level_variances(
                    tree, noise.variance(noise.noise_scales(loss, ONE_ROW, split)), known=known
                ).mean()
                for split in (shares, even)
            )
            assert ours <= theirs * (1 + 1e-9)

"""Bounds by packing: beside brute force, the lemma in print, and what mechanisms achieve."""

import itertools
import math

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree import theory
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Laplace
from pandas_dptree.theory import packing
from tests.helpers_cases import each
from tests.helpers_planning import random_tree
from tests.reference import membership
from tests.strategies import trees


def entropy(eta):
    return -eta * math.log2(eta) - (1 - eta) * math.log2(1 - eta)


# -- the walk ----------------------------------------------------------------------------------------


@each("eta", [0.01, 0.1, 0.3, 0.49])
@each("n_children", [2, 3, 10, 1000])
def test_a_step_has_the_best_odds_and_gains_from_more_children(n_children, eta):
    passing = 1 + (n_children - 2) * eta

    def lost(log_odds):
        return np.log2(n_children + np.expm1(log_odds) * passing) - (1 - eta) * log_odds / math.log(2)

    best = scipy.optimize.minimize_scalar(lost, bounds=(0, 30), method="bounded", options={"xatol": 1e-8})
    assert theory.step_loss(n_children, eta) == pytest.approx(best.fun, rel=1e-9)
    gain = np.log2([n_children, n_children + 1]) - theory.step_loss([n_children, n_children + 1], eta)
    assert 0 < gain[0] < gain[1] < (1 - 2 * eta) * math.log2((1 - eta) / eta)


def test_a_step_among_few_children():
    assert theory.step_loss(2, 0.2) == pytest.approx(entropy(0.2))
    np.testing.assert_allclose(theory.step_loss([1, 2, 3, 7], 0.5), np.log2([1, 2, 3, 7]), atol=1e-12)
    np.testing.assert_allclose(theory.step_loss([1, 2, 3, 7], 0.0), 0, atol=1e-12)


@each("n_children", [2, 3, 4])
def test_no_pattern_of_errors_makes_a_step_lose_more(n_children):
    # Over all joint distributions of which children pass, each wrong with probability eta at most.
    eta = 0.15
    patterns = np.array(list(itertools.product([0, 1], repeat=n_children)))  # the right child is the first
    passing = 1 + (n_children - 2) * eta
    odds = (1 - eta) * (n_children - passing) / (eta * passing)
    weights = np.where(patterns, odds, 1.0)
    gained = np.log2(weights[:, 0] / weights.sum(axis=1))
    wrong = np.where(np.arange(n_children) == 0, 1 - patterns, patterns).T
    worst = scipy.optimize.linprog(
        gained, A_ub=wrong, b_ub=[eta] * n_children, A_eq=np.ones((1, len(gained))), b_eq=[1]
    )
    assert worst.fun >= -theory.step_loss(n_children, eta) - 1e-9
    if n_children == 2:  # both wrong at once, and the bound is attained
        assert worst.fun == pytest.approx(-entropy(eta))


def found_share(tree, leaf, rows, threshold, eta, estimate, n_walks=3000, seed=0):
    rng = np.random.default_rng(seed)
    counts = tree.roll_up(np.where(np.arange(tree.n_leaves) == leaf, rows, 0))
    ends = [theory.decode(estimate(counts, rng), tree, threshold, eta, rng) for _ in range(n_walks)]
    share = np.mean(np.array(ends) == leaf)
    return share, 4 * math.sqrt(max(share * (1 - share), 1 / n_walks) / n_walks)


@pytest.mark.parametrize("branching", [[2] * 6, [3, 1, 4], None])
def test_the_walk_finds_the_leaf_from_accurate_estimates(branching):
    tree = (
        random_tree(np.random.default_rng(2), depth=4)
        if branching is None
        else Tree.from_branching(branching)
    )
    alpha, eta, threshold = 0.5, 0.1, 40.0
    rows, leaf = math.ceil(threshold / (1 - alpha)), tree.n_leaves // 2
    scale = alpha * threshold / math.log(1 / eta)  # just as accurate as that

    def estimate(counts, rng):
        return [count + rng.laplace(0, scale, len(count)) for count in counts]

    share, margin = found_share(tree, leaf, rows, threshold, eta, estimate)
    path = [int(np.flatnonzero(level[:, leaf])[0]) for level in membership(tree)]
    children = [
        np.broadcast_to(c, n)[i] for c, n, i in zip(tree.child_counts, tree.level_sizes, path, strict=False)
    ]
    assert share >= 2 ** -theory.step_loss(children, eta).sum() - margin


def test_the_walk_of_the_lemma_in_print():
    tree, eta, threshold = Tree.from_branching([2] * 5), 0.05, 40.0
    scale = 0.5 * threshold / math.log(1 / eta)

    def estimate(counts, rng):
        return [count + rng.laplace(0, scale, len(count)) for count in counts]

    share, margin = found_share(tree, 11, 80, threshold, 4 * eta, estimate)
    assert share >= 2 ** (-5 * entropy(4 * eta)) / 4 - margin


def test_the_walk_from_estimates_that_are_wrong_together_and_from_none():
    tree, eta = Tree.from_branching([2] * 4), 0.2

    def swapped(counts, rng):  # siblings change places with probability eta
        levels = [np.array(counts[0])]
        for count in counts[1:]:
            pairs = count.reshape(-1, 2)
            levels.append(np.where(rng.random((len(pairs), 1)) < eta, pairs[:, ::-1], pairs).ravel())
        return levels

    share, margin = found_share(tree, 6, 10, 5, eta, swapped)
    exact = (eta**2 + (1 - eta) ** 2) ** 4
    assert abs(share - exact) < margin
    assert 2 ** (-4 * entropy(eta)) < exact
    share, margin = found_share(tree, 6, 0, 5, eta, lambda counts, rng: list(counts))
    assert abs(share - 1 / 16) < margin


def subtrees(tree, level=0, node=0):
    """List (probabilities' losses per leaf) of all trees that deletion leaves below a node, at eta 0.1."""
    if level == tree.depth:
        return [[0.0]]
    counts = np.broadcast_to(tree.child_counts[level], tree.level_sizes[level])
    first = int(counts[:node].sum())
    below = [subtrees(tree, level + 1, child) for child in range(first, first + counts[node])]
    found = []
    for kept in itertools.product([False, True], repeat=len(below)):
        chosen = [each for each, keep in zip(below, kept, strict=True) if keep]
        if chosen:
            step = float(theory.step_loss(len(chosen), 0.1))
            found += [
                [step + loss for part in parts for loss in part] for parts in itertools.product(*chosen)
            ]
    return found


@each("counts", [[[3], [1, 2, 3]], [[2], [1, 2], [2, 1, 3]], [[2], [2, 2], [1, 1, 2, 1]]])
def test_the_best_embedded_tree_is_found(counts):
    tree = Tree(tuple(map(np.array, counts)))
    everything = subtrees(tree)
    found, leaves = packing._walk(tree, 0.1, 9, tree.depth)
    sums = [sum(2**-loss for loss in losses) for losses in everything]
    assert found == pytest.approx(max(sums))
    assert leaves == min(len(e) for e, s in zip(everything, sums, strict=True) if s > max(sums) - 1e-12)


@given(trees(max_depth=4, max_leaves=40), st.integers(2, 4), st.floats(0.01, 0.49))
def test_walks_among_ragged_levels_are_those_among_nodes(tree, widest, eta):
    def slow(level, node):
        if level == tree.depth:
            return 1.0
        counts = np.broadcast_to(tree.child_counts[level], tree.level_sizes[level])
        first = int(counts[:node].sum())
        below = sorted((slow(level + 1, c) for c in range(first, first + counts[node])), reverse=True)
        sums = itertools.accumulate(below[:widest])
        return max(total * 2 ** -float(theory.step_loss(j + 1, eta)) for j, total in enumerate(sums))

    assert packing._walk(tree, eta, widest, tree.depth)[0] == pytest.approx(slow(0, 0))


# -- packing -----------------------------------------------------------------------------------------


@each("delta", [0.0, 1e-12, 1e-4])
@each("n_levels, epsilon, eta", [(10, 0.1, 0.1), (41, 1.0, 0.02), (30, 0.03, 0.3)])
def test_threshold_is_where_the_last_inequality_begins_to_hold(n_levels, epsilon, eta, delta):
    tree, alpha = Tree.from_branching([2] * (n_levels - 1)), 0.25

    def holds(rows, depth):
        grown = math.exp(epsilon * rows)
        failed = delta * (grown - 1) / math.expm1(epsilon)
        return 2 ** (-depth * entropy(eta)) <= grown * 2.0**-depth + failed

    least = 0
    for depth in range(1, n_levels):  # with delta, a part of the tree may give more
        rows = next(rows for rows in itertools.count() if holds(rows, depth))
        least = max(least, rows)
    threshold = theory.packing_threshold(tree, epsilon=epsilon, delta=delta, alpha=alpha, eta=eta)
    # Parts are not tried where they can gain a hundredth of a nat at most: one row here.
    assert abs(threshold - (1 - alpha) * max(least - 1, 0)) <= ((1 - alpha) if delta else 0)


@each("delta", [0.0, 1e-14])
@each("eta", [0.001, 0.01, 0.2, 0.35])
def test_the_lemma_and_its_corollary_in_print(eta, delta):
    epsilon, alpha, choices = 0.01, 0.5, 40

    def holds(half, copies, wrong):
        grown = math.exp(copies * epsilon * 2 * half)
        failed = copies * delta * (grown - 1) / math.expm1(copies * epsilon)
        return 2 ** (-choices * entropy(4 * wrong)) / 4 <= grown * 2.0**-choices + failed

    least = 0
    for copies in range(1, 400):
        wrong = eta if copies == 1 else math.exp(-2 * copies * (0.5 - eta) ** 2)
        if wrong <= 1 / 8:
            least = max(least, next(half for half in itertools.count() if holds(half, copies, wrong)))
    tree = Tree.from_branching([2] * choices)
    published = theory.published_packing_threshold(tree, epsilon=epsilon, delta=delta, alpha=alpha, eta=eta)
    assert published == (1 - alpha) * max(least - 1, 0)
    assert (published > 0) == (least > 1)


@given(
    st.integers(1, 40),
    st.sampled_from([2, 3, 9]),
    st.floats(0.001, 2),
    st.floats(0.01, 0.45),
    st.sampled_from([0.0, 1e-15, 1e-6]),
)
def test_what_is_in_print_is_never_better(depth, children, epsilon, eta, delta):
    tree = Tree.from_branching([children] * min(depth, 19))
    given_ = {"epsilon": epsilon, "delta": delta, "alpha": 0.2, "eta": eta}
    ours, theirs = (
        theory.packing_threshold(tree, **given_),
        theory.published_packing_threshold(tree, **given_),
    )
    assert 0 <= theirs <= ours + (0.01 / epsilon + 1 if delta else 0)


@each("branching", [[2] * 10, [2] * 40, [100, 100, 100], [30, 2, 5, 40]])
@each("epsilon", [0.02, 0.3, 1.0])
def test_error_by_packing_is_the_best_of_a_grid(branching, epsilon):
    tree, k = Tree.from_branching(branching), np.array(branching)
    grid = np.linspace(0.0005, 0.4995, 2000)
    rows = np.array([(np.log2(k) - theory.step_loss(k, eta)).sum() for eta in grid]) * math.log(2) / epsilon
    best = ((np.ceil(rows) - 1) * np.sqrt(grid)).max() / 2
    error = theory.packing_error(tree, epsilon=epsilon)
    assert best <= error * (1 + 1e-6) and error == pytest.approx(best, rel=0.01)
    assert theory.packing_error(tree, epsilon=epsilon, alpha=0.5) == pytest.approx(error / 2)


def test_bounds_by_packing_are_monotone():
    deeper = [theory.packing_error(Tree.from_branching([2] * d), epsilon=0.1) for d in range(1, 60, 7)]
    wider = [theory.packing_error(Tree.from_branching([k] * 4), epsilon=0.1) for k in (1, 2, 3, 10, 1000)]
    tree = Tree.from_branching([2] * 30)
    safer = [theory.packing_error(tree, epsilon=epsilon) for epsilon in (2, 1, 0.3, 0.1, 0.01)]
    likelier = [theory.packing_error(tree, epsilon=0.1, delta=d) for d in (0.9, 1e-3, 1e-6, 1e-9, 1e-12, 0)]
    exacter = [theory.packing_error(tree, epsilon=0.1, alpha=alpha) for alpha in (0.99, 0.5, 0)]
    surer = [theory.packing_threshold(tree, epsilon=0.1, alpha=0.1, eta=e) for e in (0.499, 0.3, 0.1, 0.01)]
    for rising in (deeper, wider, safer, likelier, exacter, surer):
        assert all(b >= a for a, b in itertools.pairwise(rising)) and rising[-1] > rising[0]
    grown = np.diff([theory.packing_error(Tree.from_branching([2] * d), epsilon=0.01) for d in (20, 40, 60)])
    assert grown[0] == pytest.approx(grown[1], rel=0.01)  # in proportion to the levels


@pytest.mark.parametrize("depths", [(10, 20, 30), pytest.param((20, 40, 62), marks=pytest.mark.slow)])
def test_with_delta_a_deeper_tree_is_not_easier(depths):
    errors = [theory.packing_error(Tree.from_branching([2] * d), epsilon=1.0, delta=1e-6) for d in depths]
    assert errors[0] < errors[1] * (1 + 1e-6) and errors[1] < errors[2] * (1 + 1e-6)


@each("branching", [[2] * 6, [2] * 50, [50, 60, 30], [1000]])
@each("epsilon", [0.05, 1.0])
def test_laplace_noise_respects_the_threshold(branching, epsilon):
    tree, alpha, eta = Tree.from_branching(branching), 0.5, 0.1
    scale = (tree.depth + 1) / epsilon
    accurate = Laplace().half_width(scale, 1 - eta) / alpha
    assert accurate > theory.packing_threshold(tree, epsilon=epsilon, alpha=alpha, eta=eta)

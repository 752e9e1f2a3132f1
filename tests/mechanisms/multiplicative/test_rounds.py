"""Thresholds on few nodes of a large tree: the same distribution as on the complete tree."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import pandas_dptree as dpt
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.multiplicative import thresholds
from pandas_dptree.mechanisms.multiplicative.counts import sparse_threshold_counts, threshold_counts
from pandas_dptree.mechanisms.multiplicative.rounds import Nodes, decide_rounds
from pandas_dptree.mechanisms.multiplicative.sparse_vector import SparseVector
from pandas_dptree.mechanisms.multiplicative.thresholds import Round
from tests.helpers_cases import each
from tests.helpers_implicit import HALF, listed
from tests.helpers_multiplicative import chain_of, decide_copies, silence
from tests.helpers_privacy import LOSS
from tests.helpers_random import rng
from tests.helpers_statistics import audited_epsilon, same_distribution

# The distribution is that of the complete tree


@pytest.mark.parametrize("calibration", ["proof", "exact"])
@given(
    sizes=st.lists(
        st.one_of(st.just(0), st.integers(0, 20), st.integers(0, 2**16), st.integers(2**14, 2**24)),
        min_size=16,
        max_size=16,
    ),
    tau=st.sampled_from([1.0, 300.0, 1e4]),
)
@example(sizes=[0] * 15 + [149], tau=1.0)  # over all thresholds, and hidden by the least that an answer needs
def test_without_noise_the_complete_tree_gives_the_same(calibration, sizes, tau):
    implicit, complete = dpt.prefixes("x", bits=[1, 3, 4], notation="number"), Tree.from_branching([2, 4, 2])
    leaves = np.array(sizes)
    chain = chain_of(depth=4, calibration=calibration, tau=tau)
    levels = complete.roll_up(leaves)
    with pytest.MonkeyPatch.context() as patch:
        silence(patch)
        expected = threshold_counts(complete, levels, chain)
        decided = sparse_threshold_counts(int(leaves.sum()), listed(implicit, leaves), chain)
    assert decided[0][1] == expected[0]
    rounds = chain.rounds(int(leaves.sum()) + chain.total_noise.radius)
    for (names, found), estimates, exact in zip(decided[1:], expected[1:], levels[1:], strict=True):
        filled = np.full(len(estimates), chain.estimates[0])
        filled[names.astype(np.int64)] = found
        assert (filled == estimates).all()
        # independent of the algorithm: nodes over all bounds are reported, empty ones are not
        assert (exact[names.astype(np.int64)] > 0).all()
        highest = max(
            (max(each.threshold, each.cut(each.node_noise.radius)) for each in rounds), default=math.inf
        )
        assert set(np.flatnonzero(exact >= highest)) <= set(names.tolist())


CASES = {
    "tiny thresholds": ({"tau": 1.0, "epsilon": 8.0, "delta": 1e-2}, [9, 4, 0, 0, 0, 0, 1, 2]),
    "lone rows": ({"tau": 1.0, "delta": 0.1, "calibration": "proof"}, [1, 0, 0, 0, 0, 1, 0, 0]),
    "at a threshold": ({"tau": 900.0, "epsilon": 4.0, "delta": 1e-4}, [700, 180, 0, 3, 0, 40, 0, 950]),
}  # fmt: skip


def outcomes(case, above, n, seed):
    """Decide n copies of a binary tree of depth 3, of whose nodes some are left out."""
    options, leaves = CASES[case]
    chain = chain_of(depth=4, **options)
    tree, leaves = Tree.from_branching([2, 2, 2]), np.array(leaves)
    rounds = chain.rounds(int(leaves.sum()) + 2 * chain.total_noise.radius)[:6]
    above = min(each.out_of_reach for each in rounds) if above is None else above
    return np.hstack(decide_copies(tree, leaves, n, rounds, -1, rng(seed), above=above))


def p_value(one, other):
    kinds = np.unique(np.concatenate([one, other]), axis=0, return_inverse=True)[1].reshape(-1)
    assert kinds.max() >= 2  # otherwise there is nothing to tell apart
    return same_distribution(*np.split(kinds, 2), range(kinds.max()))


FEW = {"tiny thresholds": 20_000, "lone rows": 20_000, "at a threshold": 40_000}
"""Runs that give each of at least three outcomes."""


@pytest.mark.parametrize("case", CASES)
def test_nodes_that_are_left_out_do_not_change_the_distribution(case):
    n = FEW[case]
    assert p_value(outcomes(case, -1, n, 1), outcomes(case, None, n, 2)) > 1e-4


@pytest.mark.parametrize("case", ["tiny thresholds", "at a threshold"])
def test_leaving_out_what_can_reach_a_threshold_would(case):
    n, above = FEW[case], {"tiny thresholds": 8, "at a threshold": 900}[case]
    assert p_value(outcomes(case, -1, n, 1), outcomes(case, above, n, 2)) < 1e-6


def short(n, count, *, with_empty):
    """Trees in which records reach the second of six levels; below, the empty nodes, or none."""
    trees = np.arange(n)
    full, empty = Nodes(trees, np.full(n, count), trees), Nodes(trees, np.zeros(n, dtype=np.int64), trees)
    nothing = Nodes(*[np.zeros(0, dtype=np.int64)] * 3)
    return [full, full, *[empty if with_empty else nothing] * 4]


def test_trees_are_asked_on_levels_that_no_record_reaches(monkeypatch):
    """Texts may be short. What their empty descendants would be asked can use up a positive answer."""
    rounds = chain_of(depth=6, tau=1.0, epsilon=4.0, delta=1e-2).rounds(60)[:4]
    assert [each.out_of_reach for each in rounds] == [0] * 4

    def decided(with_empty, seed):
        found = decide_rounds(short(20_000, 45, with_empty=with_empty), rounds, rng(seed))
        return np.stack(found[:2], axis=1)

    expected = decided(True, 1)
    assert p_value(expected, decided(False, 2)) > 1e-4
    ask = SparseVector.ask
    only_listed = lambda large, counts, streams: ask(large, np.where(counts, counts, -(2**60)), streams)  # noqa: E731
    monkeypatch.setattr(SparseVector, "ask", only_listed)
    assert p_value(expected, decided(False, 2)) < 1e-6


def test_every_tree_is_asked_once_on_each_level_from_its_root_down(monkeypatch):
    asked = []

    class Recorded(SparseVector):
        def ask(self, values, streams=None):
            asked[-1].append(len(streams))
            return super().ask(values, streams)

        def __init__(self, **arguments):
            super().__init__(**arguments)
            asked.append([])

    monkeypatch.setattr(thresholds, "SparseVector", Recorded)
    frame = pd.DataFrame({"zip": np.repeat(["1", "2", "33"], [90_000, 50_000, 20_000])})
    plan = dpt.plan(dpt.prefixes("zip", chars=[1, 2, 9]), **LOSS, mechanism=HALF)
    table = plan.release(frame, rng=rng())
    assert len(table) == 5 and table["zip/9"].isna().all()
    assert all(len(round_) == 4 and round_ == sorted(round_, reverse=True) for round_ in asked)
    assert asked[0] == [1, 1, 1, 1] and max(asked)[0] >= 3  # from the deepest level up


# Privacy


@pytest.mark.parametrize("calibration", ["proof", "exact"])
@each("epsilon", [0.1, 1.0, 50.0])
@each("tau", [1.0, 40.0, 5000.0, None])
def test_an_empty_node_is_out_of_reach_of_every_threshold(calibration, epsilon, tau):
    """The condition of privacy where empty nodes are not listed."""
    given_ = {} if tau is None else {"tau": tau}
    chain = chain_of(depth=5, calibration=calibration, epsilon=epsilon, **given_)
    for total in (10, 10**4, 10**12):
        for round_ in chain.rounds(total):
            radius = round_.node_noise.radius
            assert round_.cut(radius) > radius
            assert round_.out_of_reach >= 0


@pytest.mark.parametrize("calibration", ["proof", "exact"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 50.0])
@pytest.mark.parametrize("alpha", [pytest.param(0.01, marks=pytest.mark.slow), 0.05, 0.25, 0.9])
def test_what_is_out_of_reach_should_be_answered_negatively(calibration, epsilon, alpha):
    """So where the promise is proven, questions about it instead of less are among those accounted for."""
    chain = chain_of(alpha=alpha, depth=5, calibration=calibration, epsilon=epsilon)
    assert chain.guaranteed
    for total in (10**4, 10**12):
        for round_ in chain.rounds(total):
            assert round_.out_of_reach < round_.threshold - round_.slack


def lone_row(n, seed, count):
    """Decide copies of a tree where one node has a row or none, and is listed if it has one."""
    chain = chain_of(depth=3, tau=1.0, epsilon=1.0, delta=1e-2)
    tree, leaves = Tree.from_branching([2, 2]), np.array([3, 0, count, 0])
    found = decide_copies(tree, leaves, n, chain.rounds(60)[:3], -1, rng(seed), above=0)
    return chain, np.hstack(found)


@pytest.mark.parametrize("n", [20_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_audit_of_a_lone_row(n, monkeypatch):
    """One row is as hard to see as promised. With the printed cut it can be seen."""
    chain, without = lone_row(n, 1, 0)
    assert audited_epsilon(without, lone_row(n, 2, 1)[1], chain.delta) <= chain.epsilon
    monkeypatch.setattr(Round, "cut", lambda self, radius: self.threshold - self.slack - radius)
    monkeypatch.setattr(Round, "out_of_reach", 0)
    without, with_one = (lone_row(n, seed, seed - 1)[1] for seed in (1, 2))
    assert audited_epsilon(without, with_one, chain.delta) > chain.epsilon


@pytest.mark.parametrize("n", [10_000, pytest.param(50_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("count", "larger"), [(58, 59), (0, 1), (899, 900)])
def test_audit(count, larger, n):
    tree = Tree.from_branching([2, 2])
    chain = chain_of(depth=3, tau=900.0, epsilon=4.0, delta=1e-3)
    rounds = chain.rounds(2000)[:4]
    above = min(each.out_of_reach for each in rounds)
    one, other = (
        np.hstack(decide_copies(tree, np.array([600, 0, size, 5]), n, rounds, -1, rng(size), above=above))
        for size in (count, larger)
    )
    assert audited_epsilon(one, other, chain.delta) <= chain.epsilon

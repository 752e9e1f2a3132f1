"""Decide which nodes reach which threshold: the algorithm, run on the nodes that can reach one at all.

Thresholds are taken from the largest down. At each, the sparse vector technique finds the nodes that reach
it, in every tree of a forest at once; these are decided, and the subtrees below them are the next forest
(Ghazi, Kamath, Kumar, Manurangsi and Wu, *On differentially private counting on trees*, 2023).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.arguments import noise_source
from pandas_dptree.mechanisms.multiplicative.thresholds import LARGEST_TOTAL, Round, Thresholds

__all__ = ["Lister", "Nodes", "decide_nodes"]

BoolArray = npt.NDArray[np.bool_]

UNDECIDED = -1
"""The estimate of a node that has reached no threshold."""


class Nodes(NamedTuple):
    """Some nodes of one level, family by family."""

    names: npt.NDArray[Any]
    """What identifies a node on its level, such as its position."""
    counts: IntArray
    """The exact counts, from 0 to 2**40."""
    parent: IntArray
    """For each node, the position of its parent among the nodes of the level above."""


Lister = Callable[[int], Sequence[Nodes]]
"""Lists the nodes below the root that count more than a number, and their ancestors, level by level."""


def decide_nodes(
    total: int, nodes_above: Lister, thresholds: Thresholds, rng: np.random.Generator | None
) -> tuple[list[Nodes], list[IntArray]]:
    r"""Decide the nodes of a tree, threshold by threshold from the largest down (Algorithms 2 and 4).

    The result is the listed nodes of each level, the root first, and their estimates, -1 for those that reach
    no threshold. The counts, and which nodes are listed, are secret; that a node is decided, and at which
    threshold, may be published.

    **Privacy**: (epsilon, delta)-DP with those of `thresholds`, where neighbouring data sets differ in one
    row, which moves one count of each level by one at most.

    *Proof, if all nodes were listed.* Let a row be added. The noisy total spends its own part. Given all
    answers before, the trees of a round are the same with the row and without, and the nodes that the row
    moves are in one of them: what is below an undecided node is undecided. In that tree each question is
    about the larger of a public number, `Round.out_of_reach`, and the largest count of some nodes, which
    follow from the answers before. The row moves it by one at most. So the questions, one for each level,
    spend half of the round's epsilon. In each of the at most c levels with a positive answer, the row moves
    one noisy count by one, which spends the c-th part of the other half and of delta. The parts sum to the
    whole at most, exactly.

    *Proof for nodes that are left out.* Let R be the radius of a round's `Round.node_noise`, and a node count
    at most

    .. math:: \text{out of reach} = \text{cut} - R - 1.

    It is not decided in that round, whatever its noise: its noisy count stays below the cut. (It would be as
    an ancestor of a decided node, but counts do not grow on the way down, or the `Lister` lists it.) And no
    question depends on it, as none is about less. So nothing depends on it but answers that are not
    published: those of a tree in which every node counts this little. None of its nodes is decided, and no
    other tree depends on its answers. A node that counts no more than the least `out_of_reach` of all rounds
    is therefore never decided; leaving it out changes neither the rounds of any other node nor the
    distribution of what is decided. It is the distribution of the algorithm that lists all nodes, and as
    private.

    An empty node is out of reach because cut > R (`Round.cut`). That is a condition of privacy where empty
    nodes are not listed, and it holds for every threshold. A tree of the forest that has no listed node on
    some level still has nodes there, so it is asked there, too.

    *Accuracy.* A tree is asked once on each level, d times at most, as in Algorithm 1. The additional
    questions, about `out_of_reach` where no node is left to be asked about, come after a positive answer that
    decided something. With a cutoff of 1, all answers are negative from there on. With one of 2 they are
    among the d whose failure is accounted for. Their right answer is negative, and so it is wherever a
    question is about `out_of_reach` in place of a smaller count:
    :math:`\tau - \Delta - 2R - 1 < \tau - \Delta`, and :math:`\tau - \Delta > 0`, wherever the guarantee of
    `Thresholds` is proven.
    """
    noise, source = thresholds.total_noise, noise_source(rng)
    rounds = thresholds.rounds(total + noise.radius + int(noise.sample(1, source)[0]))
    root = Nodes(np.zeros(1, dtype=np.int64), np.array([total]), np.zeros(1, dtype=np.int64))
    levels = [root, *nodes_above(min((each.out_of_reach for each in rounds), default=LARGEST_TOTAL))]
    return levels, decide_rounds(levels, rounds, rng)


def decide_rounds(
    levels: Sequence[Nodes], rounds: Sequence[Round], rng: np.random.Generator | None
) -> list[IntArray]:
    """Decide the nodes of trees whose roots are those of the first level, for given thresholds."""
    estimates = [np.full(len(nodes.counts), UNDECIDED) for nodes in levels]
    for round_ in reversed(rounds):
        undecided = [level == UNDECIDED for level in estimates]
        for level, reached in zip(estimates, _nodes_reaching(levels, undecided, round_, rng), strict=True):
            level[reached] = round_.estimate
    return estimates


def _nodes_reaching(
    levels: Sequence[Nodes],
    undecided: Sequence[BoolArray],
    round_: Round,
    rng: np.random.Generator | None,
) -> list[BoolArray]:
    """Find the nodes that reach a threshold, the lowest first, and their ancestors (Algorithm 1)."""
    trees, n_trees = _numbered_trees(levels, undecided)
    large = round_.questions(n_trees[-1], rng)
    noise, source = round_.node_noise, noise_source(rng)
    cut = round_.cut(noise.radius)
    reached: list[BoolArray] = []
    for level in reversed(range(len(levels))):
        counts, here = levels[level].counts, np.zeros(len(levels[level].counts), dtype=np.bool_)
        if reached:
            here[levels[level + 1].parent[reached[-1]]] = True
            here &= undecided[level]  # those of an earlier round may be among the parents
        asked = np.flatnonzero(undecided[level] & ~here)
        of_tree = trees[level][asked]
        # each tree that reaches down to this level is asked, even if none of its nodes is listed here
        largest = np.full(n_trees[level], round_.out_of_reach)
        np.maximum.at(largest, of_tree, counts[asked])
        positive = large.ask(largest, np.arange(n_trees[level]))
        nodes = asked[positive[of_tree]]
        noisy = counts[nodes] + noise.sample(len(nodes), source)
        here[nodes[noisy >= cut]] = True
        reached.append(here)
    return reached[::-1]


def _numbered_trees(
    levels: Sequence[Nodes], undecided: Sequence[BoolArray]
) -> tuple[list[IntArray], list[int]]:
    """Number the trees of a forest, whose roots are the undecided nodes below decided ones; -1 elsewhere.

    Also return, for each level, the number of trees that have their roots there or above, and so have nodes
    there.
    """
    numbers: list[IntArray] = []
    n_trees = [0]
    for nodes, inside in zip(levels, undecided, strict=True):
        here = numbers[-1][nodes.parent] if numbers else np.full(len(inside), -1)
        roots = np.flatnonzero(inside & (here < 0))
        here[roots] = np.arange(n_trees[-1], n_trees[-1] + len(roots))
        numbers.append(here)
        n_trees.append(n_trees[-1] + len(roots))
    return numbers, n_trees[1:]

r"""How the privacy budget is split over counts of distinct units, and over their excesses.

A unit is counted once in each of up to :math:`m_l` nodes of level l, so its counts D do not add up: those of
the children of a node exceed that of the node by E. What is measured are the counts :math:`D_0, \dots, D_L`
of the levels and the excesses :math:`E_0, \dots, E_{L-1}` of all levels but the last.

*Excesses that cost nothing.* A unit whose nodes number :math:`1 = t_0 \le \dots \le t_L` costs at most
:math:`\sum_l w_l t_l + \sum_s u_s (t_{s+1} - t_s)^p`, with p = 2 where squares are charged, and 1 for an
epsilon (`pandas_dptree.privacy.unit_sensitivity`). Without E the largest cost is that of :math:`t = m`. Other
shapes cost less, and E can be measured with the difference: if all :math:`m_l = k` below the root, who adds
to E of level s has had one node on each level above, not k, so
:math:`u_s = (w_1 + \dots + w_s) / (k - 1)^{p - 1}` leaves the largest cost as it is. That of the root is
never free, and neither is that of a level below which bounds grow.

*The best split.* The error is a convex function of the precisions, so for Gaussian noise the descent of
`alternating` finds the best shares of D and E under the costs of all shapes at once. It starts from the best
shares of D alone, which minimise :math:`\sum_l \omega_l / w_l^{p'}` subject to :math:`\sum_l m_l w_l = 1`,
and the excesses that these leave free; all others start just above 0. For Laplace noise it is the best
of many local minima.

Where no unit is in two nodes of a level, E = 0 is known above, and counts add up.

**Privacy**: a split is a function of the tree, the bounds, the noise and the privacy loss, which are public.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import AdditiveNoise
from pandas_dptree.planning.alternating import Problem, VarianceFunction, promising_splits
from pandas_dptree.planning.equal_subtrees import FloatArray, Orbits
from pandas_dptree.planning.known_counts import Flags, levels_to_measure
from pandas_dptree.planning.objective import Objective, cost_weights, expected_cost
from pandas_dptree.planning.patterns import pattern_costs, relative_costs, undominated
from pandas_dptree.planning.split import Split, level_shares
from pandas_dptree.planning.variance import level_variances_and_vjp
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Neighbors, TreeSensitivity
from pandas_dptree.privacy.unit_sensitivity import unit_sensitivity

__all__ = ["no_excess", "unit_level_variances", "unit_model", "unit_shares"]

Mask = npt.NDArray[np.bool_]

_LEAST_WEIGHT = 0.01  # of a level that has none, beside the least of all others
"""Its counts follow from no other level, and estimates keep those below within what it holds."""

_LEAST_SHARE = 1e-3  # of a level whose counts do not follow from those below
_NEGLIGIBLE = 1e-6  # smaller shares are set to 0 where others replace them
_FINALISTS = 7  # sets of measured levels that are refined on the tree itself
_MOST_KINDS = 100  # of nodes; on trees with more, sets are searched on a uniform tree of the same level sizes
_STEPS = 500  # of the last descent; a hundred are usually enough


def unit_shares(
    tree: Tree,
    max_nodes: Sequence[int],
    *,
    noise: AdditiveNoise,
    loss: PrivacyLoss,
    neighbors: Neighbors,
    split: Split | FloatArray = "optimal",
    level_weights: FloatArray | None = None,
    objective: Objective = "levels",
    least_squares: bool = True,
    known: Flags | None = None,
) -> FloatArray:
    """Return the shares, of sum 1, of the counts of all levels, and then of the excesses of all but the last.

    They are those that `AdditiveNoise.noise_scales` takes, with the sensitivity of `unit_sensitivity`. A
    `split` of the levels, by name or by shares, gets all excesses that cost nothing beside it. Without least
    squares no excess is measured; the same holds for Laplace noise under an (epsilon, delta) unless the
    excesses are worth more than what tight composition gains, which is only known of counts alone.

    >>> from pandas_dptree.mechanisms.additive import Gaussian
    >>> tree, loss = Tree.from_branching([6, 38]), PrivacyLoss(rho=0.1)
    >>> shares = unit_shares(tree, [1, 4, 4], noise=Gaussian(), loss=loss, neighbors="add_remove")
    >>> shares.round(2).tolist()
    [0.16, 0.3, 0.31, 0.0, 0.23]
    """
    levels = slice(tree.depth + 1)
    alone = unit_sensitivity(max_nodes, neighbors=neighbors, excess=[False] * tree.depth)
    measured = levels_to_measure(tree, known)
    additive = bool(no_excess(tree, max_nodes).all())
    if isinstance(split, str) and split == "optimal" and least_squares and not additive:
        sizes = [tree.n_listed(level) for level in range(tree.depth + 1)]
        weights = cost_weights(sizes, objective, level_weights)
        weights = np.where(weights > 0, weights, _LEAST_WEIGHT * weights[weights > 0].min())
        flags = None if known is None else tuple(level.tobytes() for level in known)
        worst = objective == "worst"
        weighed = tuple(weights.tolist())
        return _best(tree, tuple(max_nodes), flags, noise, loss, neighbors, weighed, worst).copy()
    if isinstance(split, str) and split == "geometric" and not additive:
        costs, nodes = noise.level_costs(loss, alone)[levels], np.asarray(tree.level_sizes, dtype=np.float64)
        shares = _shares_alone(nodes * measured, costs, noise.variance_power(loss))
    else:
        shares = level_shares(
            tree,
            noise=noise,
            loss=loss,
            sensitivity=alone.part(np.arange(2 * tree.depth + 1) <= tree.depth),
            split=split,
            level_weights=level_weights,
            objective=objective,
            least_squares=least_squares,
            known=known,
        )
    shares = np.append(shares / shares.sum(), np.zeros(tree.depth))
    if least_squares and _costs_add_up(noise, loss):
        moves = unit_sensitivity(max_nodes, neighbors=neighbors, excess=[True] * tree.depth)
        costs = relative_costs(pattern_costs(noise, loss, moves))
        shares[tree.depth + 1 :] = _free(costs, shares, ~no_excess(tree, max_nodes))
    followed = (shares[tree.depth + 1 :] > 0) | no_excess(tree, max_nodes)
    missing = np.flatnonzero(measured[:-1] & (shares[levels][:-1] == 0) & ~followed)
    if missing.size:
        raise ArgumentError(
            "split",
            f"gives no share to levels whose counts do not follow from those below: {quote(missing.tolist())}"
            ", counted from 0.",
            hint="counts of distinct units do not add up, so give each level a share.",
        )
    return np.asarray(shares / shares.sum())


def no_excess(tree: Tree, max_nodes: Sequence[int]) -> Mask:
    """Return the levels, but for the last, whose counts are known to be the sums of those of their children.

    No unit is in two nodes of the level below, or each node has one child.
    """
    sizes = np.asarray(tree.level_sizes)
    return np.asarray((np.asarray(max_nodes)[1:] == 1) | (sizes[1:] == sizes[:-1]))


def unit_level_variances(
    tree: Tree, max_nodes: Sequence[int], noise_variances: npt.ArrayLike, *, known: Flags | None = None
) -> FloatArray:
    """Return the mean variance of each level of the least-squares estimates of unit counts.

    As `pandas_dptree.planning.variance.level_variances`, with the noise variances of the counts of all
    levels, and then of the excesses of all but the last.
    """
    orbits = Orbits.of(tree, known)
    with np.errstate(divide="ignore"):
        precisions = 1 / np.asarray(noise_variances, dtype=np.float64)
    means, _ = unit_model(orbits, no_excess(tree, max_nodes), precisions[:, None])
    return np.where(orbits.n_listed > 0, means[:, 0], np.nan)


def unit_model(
    orbits: Orbits, no_excess: Mask, precisions: FloatArray
) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
    """Return the mean variance of each level, and its vector-Jacobian product by all precisions."""
    known = np.append(np.zeros(orbits.depth + 1, dtype=bool), no_excess)
    return level_variances_and_vjp(orbits, np.where(known[:, None], np.inf, precisions))


def _costs_add_up(noise: AdditiveNoise, loss: PrivacyLoss) -> bool:
    """Whether the patterns alone decide what a release costs: not for the delta of Laplace noise."""
    return noise.euclidean or loss.kind != "approximate"


def _shares_alone(weights: FloatArray, costs: FloatArray, power: int) -> FloatArray:
    """Return the best shares of counts alone, if each level has its own weight and cost."""
    shares = (weights * costs**power) ** (1 / (1 + power))
    return np.asarray(shares / shares.sum())


def _free(charges: FloatArray, shares: FloatArray, measurable: Mask) -> FloatArray:
    """Return shares of the excesses with which no pattern charges more than one already does without them.

    Patterns charge these parts of the shares. What one leaves is divided evenly between its excesses, and
    what then remains goes to those of the deepest levels.
    """
    rates = charges[:, -len(measurable) :] * measurable
    spent = charges @ shares
    left = spent.max() - spent

    def most(left: FloatArray, rates: FloatArray) -> FloatArray:
        limits = np.divide(left[:, None], rates, out=np.full(rates.shape, np.inf), where=rates > 0)
        return np.where(rates.any(axis=0), limits.min(axis=0), 0.0)

    found = most(left / np.maximum(np.count_nonzero(rates, axis=1), 1), rates)
    for level in reversed(range(len(found))):
        rest = np.maximum(left - rates @ found, 0.0)
        found[level] += most(rest, rates[:, [level]])[0]
    return np.where(found > _NEGLIGIBLE * spent.max(), found, 0.0)  # what rounding leaves is not measured


@dataclass(frozen=True, kw_only=True)
class _Search:
    """The search for the best split: `weights` are costs of variances, `measured` are levels not known."""

    tree: Tree
    max_nodes: tuple[int, ...]
    orbits: Orbits
    measured: Mask
    neighbors: Neighbors
    weights: FloatArray
    worst: bool
    noise: AdditiveNoise

    @cached_property
    def no_excess(self) -> Mask:
        """Levels, but for the last, whose counts add up."""
        return no_excess(self.tree, self.max_nodes)

    def moves(self, excess: Mask) -> TreeSensitivity:
        """Return how far units move all values if these excesses are measured."""
        return unit_sensitivity(self.max_nodes, neighbors=self.neighbors, excess=excess.tolist())

    def best(self, loss: PrivacyLoss) -> FloatArray:
        """Return the best shares of all values."""
        if _costs_add_up(self.noise, loss):
            return self._descended(loss, ~self.no_excess)
        # What tight composition gains is known of counts alone; excesses are worth more on deep trees.
        none, n_levels = np.zeros_like(self.no_excess), len(self.weights)
        costs = self.noise.level_costs(loss, self.moves(none))[:n_levels]
        named = [_shares_alone(self.weights * self.measured, costs, power) for power in (2, 3)]
        splits = [
            np.append(np.maximum(shares, _LEAST_SHARE) * self.measured, 0.0 * none)
            for shares in (np.ones(n_levels), *named)
        ]
        splits += [
            self._descended(loss, none),
            self._descended(PrivacyLoss(epsilon=loss.epsilon), ~self.no_excess),
        ]
        return min((each / each.sum() for each in splits), key=lambda shares: self._cost(loss, shares))

    def _cost(self, loss: PrivacyLoss, shares: FloatArray) -> float:
        moves = self.moves(shares[self.tree.depth + 1 :] > 0)
        variances = np.maximum(self.noise.variance(self.noise.noise_scales(loss, moves, shares)), 1e-100)
        means, _ = unit_model(self.orbits, self.no_excess, 1 / variances[:, None])
        return expected_cost(means[:, 0], self.weights, "worst" if self.worst else "levels")

    def _descended(self, loss: PrivacyLoss, excess: Mask) -> FloatArray:
        """Return the best shares if the costs of patterns add up, and these excesses may be measured."""
        depth, may_measure = self.tree.depth, np.append(self.measured, excess)
        moves = self.moves(excess)
        costs = pattern_costs(self.noise, loss, moves) * may_measure
        places = undominated(costs)
        costs, moves = costs[places], replace(moves, patterns=tuple(moves.patterns[at] for at in places))
        power = self.noise.variance_power(loss)
        start = _shares_alone(self.weights * self.measured, costs.max(axis=0)[: depth + 1], power)
        start = np.append(start, np.zeros(depth))
        charges = relative_costs(costs)
        start[depth + 1 :] = _free(charges, start, excess)
        determined = np.append(excess | self.no_excess, False)  # by those below, if excesses are measured
        must = np.where(self.measured & ~determined, _LEAST_SHARE, 0.0)
        floor = np.append(must, np.where(excess, _NEGLIGIBLE / 10, 0.0))
        problem = Problem(
            model=partial(unit_model, self.orbits, self.no_excess),
            variance=VarianceFunction.calibrated(self.noise, loss, moves, start),
            weights=self.weights[:, None],
            worst=self.worst,
            floor=floor[:, None],
            patterns=charges,
        )
        splits = start[:, None]
        if not problem.variance.is_linear:
            may_drop = self.measured & (determined | (np.arange(depth + 1) == depth))
            similar = problem
            if self.orbits.n_kinds > _MOST_KINDS:
                imagined = Orbits.from_sizes(self.tree.level_sizes, self.measured)
                similar = replace(problem, model=partial(unit_model, imagined, self.no_excess))
            found = promising_splits(
                similar, depth, keep=_FINALISTS, unknown=np.append(may_drop, np.zeros(depth, dtype=bool)),
                others=np.where(np.append(may_drop, np.zeros(depth)), 0.0, may_measure),
            )  # fmt: skip
            splits = np.hstack([splits / splits.sum(), found])
        splits = problem.normalise(splits)
        while splits.shape[1] > 1:
            splits, values = problem.descend(splits, steps=8)
            splits = splits[:, np.argsort(values, kind="stable")[: splits.shape[1] // 2]]
        while True:
            splits, _ = problem.descend(splits, steps=_STEPS)
            kept = splits[:, 0] >= _NEGLIGIBLE
            lost = self.measured[:depth] & ~(kept[:depth] | kept[depth + 1 :] | self.no_excess)
            if not lost.any():
                shares = np.where(kept, splits[:, 0], 0.0)
                return np.asarray(shares / shares.sum())
            # These are known from above alone, through nodes with one child, which numbers cannot express.
            floor = np.where(np.append(lost, np.zeros(depth + 1)), _LEAST_SHARE, floor)
            problem = replace(problem, floor=floor[:, None])
            splits = problem.normalise(splits)


@lru_cache(maxsize=16)  # all public: a monthly report has the same tree and budget, and trees may be large
def _best(
    tree: Tree,
    max_nodes: tuple[int, ...],
    flags: tuple[bytes, ...] | None,
    noise: AdditiveNoise,
    loss: PrivacyLoss,
    neighbors: Neighbors,
    weights: tuple[float, ...],
    worst: bool,
) -> FloatArray:
    """Return the best split, for costs of a unit of each level's variance and flags of known nodes."""
    known = None if flags is None else [np.frombuffer(level, dtype=bool) for level in flags]
    search = _Search(
        tree=tree,
        max_nodes=max_nodes,
        orbits=Orbits.of(tree, known),
        measured=levels_to_measure(tree, known),
        neighbors=neighbors,
        weights=np.array(weights),
        worst=worst,
        noise=noise,
    )
    return search.best(loss)

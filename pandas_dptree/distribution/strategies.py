"""All strategies for measuring the bins of groups that the arguments and one privacy loss allow."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from pandas_dptree.distribution.optimal import best_tree
from pandas_dptree.distribution.strategy import FactorizedPrefixes, Strategy, TreePrefixes
from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.mechanisms.additive import MECHANISMS, NOISES, AdditiveNoise, Mechanism, candidate_noises
from pandas_dptree.mechanisms.prefix_sums import PrefixStrategy
from pandas_dptree.mechanisms.sampling import LARGEST_SCALE
from pandas_dptree.planning.split import shares_match
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Neighbors, count_sensitivity

__all__ = ["Strategies", "StrategyName"]

StrategyName = Literal["auto", "tree", "factorization"]

_MOST_LEAVES = 10**9
"""The limit for a caller's tree: more would not fit into memory."""

_MOST_PER_BIN = 1000
"""The limit of leaves per bin for a caller's tree: those beyond the bins only cost noise and memory."""


@dataclass(frozen=True, slots=True)
class Strategies:
    """The arguments that all candidate strategies share.

    `loss` covers all levels of groups together. All `n_levels` levels of groups are measured in the same way,
    and a row is counted on each of them.
    """

    n_bins: int
    loss: PrivacyLoss
    neighbors: Neighbors
    max_contributions: int
    n_levels: int

    def best(self, mechanism: Mechanism, tree: Any, *, known_total: bool) -> Strategy:
        """Choose the candidate with the least mean variance of the cumulative counts of a group."""
        candidates = self.candidates(mechanism, tree, known_total=known_total)
        return min(candidates, key=lambda each: float(each.variances(known_total=known_total).mean()))

    def candidates(self, mechanism: Mechanism, tree: Any, *, known_total: bool) -> list[Strategy]:
        """List the strategies that the arguments of `plan_distribution` allow, each for one level of groups.

        Raises an `ArgumentError` if there are none.
        """
        if not isinstance(mechanism, str) or mechanism not in MECHANISMS:
            *others, last = (f'"{name}"' for name in MECHANISMS)
            raise ArgumentError(
                "mechanism",
                f"is unknown: {quote(mechanism)}.",
                hint=f"choose {', '.join(others)} or {last}.",
            )
        strategy = tree if isinstance(tree, str) else "tree"
        if strategy not in ("auto", "tree", "factorization"):
            raise ArgumentError(
                "tree",
                f"is unknown: {quote(tree)}.",
                hint='choose "auto", "tree" or "factorization", or give a number of children per level.',
            )
        found: list[Callable[[], Strategy]] = []
        for noise in candidate_noises(mechanism, self.loss):
            measured = partial(self._tree, noise, tree, known_total=known_total)
            factorized = strategy != "tree" and noise.euclidean
            if factorized and strategy == "auto" and not known_total and self._is_noisy(noise):
                found.append(partial(self._factorization_if_possible, measured))
                continue
            found += [measured] * (strategy != "factorization") + [self.factorization] * factorized
        if not found:
            raise ArgumentError(
                "tree",
                "needs Gaussian noise for a factorization.",
                hint='give a rho, or a delta, and leave the mechanism "auto" or make it "gaussian".',
            )
        return _feasible(found)

    def all(self, *, known_total: bool) -> list[Strategy]:
        """List the best tree for each kind of noise, and the factorizations, as far as the loss allows."""
        found = []
        for tree in ("tree", "factorization"):
            try:
                found += self.candidates("auto", tree, known_total=known_total)
            except ArgumentError:  # a factorization with too many bins, or without suitable noise
                continue
        return found

    def _tree(self, noise: AdditiveNoise, tree: Any, *, known_total: bool) -> Strategy:
        sensitivity = count_sensitivity(neighbors=self.neighbors, max_contributions=self.max_contributions)
        part = self.loss if self.n_levels == 1 else self.loss.divide([1] * self.n_levels)[0]
        if isinstance(tree, str):
            best = best_tree(
                self.n_bins, noise=noise, loss=part, sensitivity=sensitivity, total_known=known_total
            )
            branching, shares = best.branching, np.array(best.shares)
        else:
            branching, shares = _checked_branching(tree, self.n_bins), np.append(0.0, np.ones(len(tree)))
        return self.tree(noise, branching, shares)

    def tree(self, noise: AdditiveNoise, branching: Any, shares: npt.ArrayLike) -> TreePrefixes:
        """Return the strategy that measures a tree and spends these shares of the loss on its levels.

        `branching` has the children per node, from the root down; their product is at least the number of
        bins. `shares`, shape (depth + 1,), are those of the root and each level below it; the last is above
        0. Only their proportions matter. Raises an `ArgumentError` if there is no such tree, or the noise
        cannot provide this loss with such shares.
        """
        branching, parts = _checked_branching(branching, self.n_bins), np.asarray(shares, dtype=np.float64)
        if parts.shape != (len(branching) + 1,) or not parts[-1] > 0:
            raise ArgumentError(
                "shares",
                f"must be one number for each of {len(branching) + 1} levels, and above 0 for the last.",
                hint="for example shares=[0, 0.5, 0.5] for two levels below the root.",
            )
        sensitivity = count_sensitivity(neighbors=self.neighbors, max_contributions=self.max_contributions)
        scales = noise.noise_scales(self.loss, sensitivity, np.tile(parts, self.n_levels))
        return TreePrefixes(
            self.n_bins, noise, branching, tuple(scales[: len(parts)].tolist()), tuple(parts.tolist())
        )

    def _is_noisy(self, noise: AdditiveNoise) -> bool:
        """Check whether even a single count, with the whole loss, would get noise of scale 1 or more.

        Then the noise of a sum is about as large as if it were continuous, and without a known total no tree
        is better than a factorization by more than half a per cent. Smaller noise on integers almost
        vanishes, and a tree of few levels is best.
        """
        sensitivity = count_sensitivity(neighbors=self.neighbors, max_contributions=self.max_contributions)
        return bool(noise.noise_scales(self.loss, sensitivity, np.ones(self.n_levels))[0] >= 1)

    def factorization(self) -> FactorizedPrefixes:
        """Return the strategy that measures weighted sums of bins with the whole loss.

        Raises an `ArgumentError` if there are too many bins, or the loss is pure or too small.
        """
        strategy = PrefixStrategy(self.n_bins)
        scale = strategy.noise_scale(
            self.loss,
            neighbors=self.neighbors,
            max_contributions=self.max_contributions,
            n_levels=self.n_levels,
        )
        return FactorizedPrefixes(strategy, scale)

    def read(self, data: Any) -> Strategy:
        """Restore a strategy from `Strategy.to_dict`. Its noise scales may spend more than the loss."""
        if data["kind"] == "factorization":
            scale = float(data["noise_scale"])
            if not scale <= LARGEST_SCALE:
                raise ValueError("the noise scale is out of range")
            return FactorizedPrefixes(PrefixStrategy(self.n_bins, data["bits"]), scale)
        if data["kind"] != "tree":
            raise ValueError("an unknown kind of measurement")
        noise, branching = NOISES[data["noise"]], _checked_branching(data["branching"], self.n_bins)
        shares = tuple(map(float, data["shares"]))
        scales = tuple(math.inf if scale is None else float(scale) for scale in data["noise_scales"])
        if len(shares) != len(branching) + 1 or not shares_match(
            noise, self.loss, [np.array(shares)], [np.array(scales)]
        ):
            raise ValueError("the noise scales do not follow from the shares")
        return TreePrefixes(self.n_bins, noise, branching, scales, shares)

    def _factorization_if_possible(self, otherwise: Callable[[], Strategy]) -> Strategy:
        try:
            return self.factorization()
        except ArgumentError:
            return otherwise()


def _feasible(makers: Sequence[Callable[[], Strategy]]) -> list[Strategy]:
    """Build the strategies that the bins and the loss allow; raise the first refusal if there are none."""
    found, refusals = [], []
    for make in makers:
        try:
            found.append(make())
        except ArgumentError as refusal:
            refusals.append(refusal)
    if not found:
        raise refusals[0]
    return found


def _checked_branching(tree: Any, n_bins: int) -> tuple[int, ...]:
    """Check a caller's number of children per level."""
    whole = isinstance(tree, (Sequence, np.ndarray)) and all(
        isinstance(each, (int, np.integer)) and not isinstance(each, bool) and each >= 1 for each in tree
    )
    most = min(_MOST_LEAVES, _MOST_PER_BIN * n_bins)
    if not whole or not len(tree) or not n_bins <= math.prod(map(int, tree)) <= most:
        raise ArgumentError(
            "tree",
            f"must list numbers of children whose product is at least {n_bins}, the bins, and no more "
            f"than {most:,}, not {quote(tree)}.",
            hint="for example [16, 16] for 256 bins.",
        )
    return tuple(map(int, tree))

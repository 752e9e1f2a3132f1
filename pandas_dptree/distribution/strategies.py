"""All strategies for measuring the bins of groups that the arguments and one privacy loss allow."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from pandas_dptree.distribution.factorization import FactorizationStrategy
from pandas_dptree.distribution.optimal import best_tree
from pandas_dptree.distribution.strategy import Strategy
from pandas_dptree.distribution.tree_strategy import TreeStrategy
from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.mechanisms.additive import MECHANISMS, NOISES, AdditiveNoise, Mechanism, candidate_noises
from pandas_dptree.mechanisms.sampling import LARGEST_SCALE
from pandas_dptree.mechanisms.weighted_sums import WeightedSums
from pandas_dptree.planning.split import shares_match
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Neighbors, Sensitivity, count_sensitivity

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

    def best(self, mechanism: Mechanism, strategy: Any, *, known_total: bool) -> Strategy:
        """Choose the candidate with the least mean variance of the cumulative counts of a group."""
        candidates = self.candidates(mechanism, strategy, known_total=known_total)
        return min(candidates, key=lambda each: float(each.variances(known_total=known_total).mean()))

    def candidates(self, mechanism: Mechanism, strategy: Any, *, known_total: bool) -> list[Strategy]:
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
        name = strategy if isinstance(strategy, str) else "tree"
        if name not in get_args(StrategyName):
            raise ArgumentError(
                "strategy",
                f"is unknown: {quote(strategy)}.",
                hint='choose "auto", "tree" or "factorization", or give a number of children per level.',
            )
        found: list[Callable[[], Strategy]] = []
        for noise in candidate_noises(mechanism, self.loss):
            measured = partial(self._tree, noise, strategy, known_total=known_total)
            factorized = name != "tree" and noise.euclidean
            if factorized and name == "auto" and not known_total and self._is_noisy(noise):
                found.append(partial(self._factorization_if_possible, measured))
                continue
            found += [measured] * (name != "factorization") + [self.factorization] * factorized
        if not found:
            raise ArgumentError(
                "strategy",
                "needs Gaussian noise for a factorization.",
                hint='give a rho, or a delta, and leave the mechanism "auto" or make it "gaussian".',
            )
        return _feasible(found)

    def all(self, *, known_total: bool) -> list[Strategy]:
        """List the best tree for each kind of noise, and the factorizations, as far as the loss allows."""
        found = []
        for name in ("tree", "factorization"):
            try:
                found += self.candidates("auto", name, known_total=known_total)
            except ArgumentError:  # a factorization with too many bins, or without suitable noise
                continue
        return found

    @property
    def _sensitivity(self) -> Sensitivity:
        """The sensitivity of the counts of one level of a tree, of one level of groups."""
        return count_sensitivity(neighbors=self.neighbors, max_contributions=self.max_contributions)

    def _tree(self, noise: AdditiveNoise, strategy: Any, *, known_total: bool) -> TreeStrategy:
        """Return the best tree, or the given one with equal shares for all levels but the root."""
        if isinstance(strategy, str):
            part = self.loss if self.n_levels == 1 else self.loss.divide([1] * self.n_levels)[0]
            best = best_tree(
                self.n_bins, noise=noise, loss=part, sensitivity=self._sensitivity, total_known=known_total
            )
            branching, shares = best.branching, best.shares
        else:
            branching = _checked_branching(strategy, self.n_bins)
            shares = (0.0, *[1.0] * len(branching))
        scales = noise.noise_scales(self.loss, self._sensitivity, np.tile(shares, self.n_levels))
        return TreeStrategy(self.n_bins, noise, branching, tuple(scales[: len(shares)].tolist()), shares)

    def _is_noisy(self, noise: AdditiveNoise) -> bool:
        """Check whether a single count, with the whole loss, would get noise of scale 1 or more.

        Then no tree without a known total is better than a factorization by more than half a per cent; with
        less noise, a tree of few levels is best.
        """
        return bool(noise.noise_scales(self.loss, self._sensitivity, np.ones(self.n_levels))[0] >= 1)

    def factorization(self) -> FactorizationStrategy:
        """Return the strategy that measures weighted sums of bins with the whole loss.

        Raises an `ArgumentError` if there are too many bins, or the loss is pure or too small.
        """
        sums = WeightedSums(self.n_bins)
        scale = sums.noise_scale(
            self.loss,
            neighbors=self.neighbors,
            max_contributions=self.max_contributions,
            n_levels=self.n_levels,
        )
        return FactorizationStrategy(sums, scale)

    def read(self, data: Any) -> Strategy:
        """Restore a strategy from `Strategy.to_dict`. Its noise scales may spend more than the loss."""
        if data["kind"] == "factorization":
            scale = float(data["noise_scale"])
            if not scale <= LARGEST_SCALE:
                raise ValueError("the noise scale is out of range")
            return FactorizationStrategy(WeightedSums(self.n_bins, data["bits"]), scale)
        if data["kind"] != "tree":
            raise ValueError("an unknown kind of measurement")
        noise, branching = NOISES[data["noise"]], _checked_branching(data["branching"], self.n_bins)
        shares = tuple(map(float, data["shares"]))
        scales = tuple(math.inf if scale is None else float(scale) for scale in data["noise_scales"])
        if len(shares) != len(branching) + 1 or not shares_match(
            noise, self.loss, self._sensitivity, np.array(shares), np.array(scales)
        ):
            raise ValueError("the noise scales do not follow from the shares")
        return TreeStrategy(self.n_bins, noise, branching, scales, shares)

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


def _checked_branching(strategy: Any, n_bins: int) -> tuple[int, ...]:
    """Check a caller's number of children per level."""
    whole = isinstance(strategy, (Sequence, np.ndarray)) and all(
        isinstance(each, (int, np.integer)) and not isinstance(each, bool) and each >= 1 for each in strategy
    )
    most = min(_MOST_LEAVES, _MOST_PER_BIN * n_bins)
    if not whole or not len(strategy) or not n_bins <= math.prod(map(int, strategy)) <= most:
        raise ArgumentError(
            "strategy",
            f"must list numbers of children whose product is at least {n_bins}, the bins, and no more "
            f"than {most:,}, not {quote(strategy)}.",
            hint="for example [16, 16] for 256 bins.",
        )
    return tuple(map(int, strategy))

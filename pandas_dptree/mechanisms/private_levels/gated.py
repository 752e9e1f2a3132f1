"""Gaussian noise for hierarchies whose keys are not all public: nodes are shown below shown ones alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.additive import Gaussian
from pandas_dptree.mechanisms.private_levels.base import LevelNoise, NonemptyNodes, ReleasedLevel
from pandas_dptree.mechanisms.private_levels.gaussian_thresholds import (
    GaussianThreshold,
    chain_detection_probability,
    found_from,
)
from pandas_dptree.mechanisms.sampling import LARGEST_SCALE, SMALLEST_SCALE, ByteSource
from pandas_dptree.privacy.discrete_gaussian import log_upper_tail
from pandas_dptree.privacy.gated import gated_delta, gated_zcdp
from pandas_dptree.privacy.gated_calibration import gated_noise, gated_noise_zcdp
from pandas_dptree.privacy.level_losses import LevelLoss, gaussian_level
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Neighbors
from pandas_dptree.privacy.tree_sensitivity import uncounted_sensitivity
from pandas_dptree.privacy.whole_numbers import smallest

__all__ = ["GatedLevels"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedLevels(LevelNoise):
    """Gaussian noise, and a release in which a private node is shown only if its parent is."""

    name: ClassVar[str] = "gaussian_thresholds"
    in_words: ClassVar[str] = "Gaussian noise and thresholds"
    bound_name: ClassVar[str] = "error_bound"

    levels: tuple[GaussianThreshold, ...]

    @classmethod
    def calibrate(
        cls,
        loss: PrivacyLoss,
        shares: Sequence[float],
        n_public: int,
        *,
        neighbors: Neighbors,
        max_contributions: int,
        caps: Sequence[int | None] = (),
    ) -> Self:
        """Divide rho among the levels: the sum of their squared distances over 2 * noise_scale**2."""
        private = [place >= n_public for place in range(len(shares))]
        unit: Any = {"neighbors": neighbors, "max_contributions": max_contributions, "caps": caps}
        least = loss.rounded_down
        try:
            if least.rho is not None:
                noise = gated_noise_zcdp(least.rho, least.delta, shares, private, **unit)
            else:
                assert least.epsilon is not None
                noise = gated_noise(least.epsilon, least.delta, shares, private, **unit)
            scales = noise.noise_scales
        except ArithmeticError:  # floats cannot hold the scales
            scales = (math.inf,)
        argument = "epsilon" if loss.rho is None else "rho"
        if max(scales) > LARGEST_SCALE:
            raise ArgumentError(
                argument,
                f"is too small: a level would need noise of a scale above {LARGEST_SCALE:.0e}.",
                hint="allow a larger privacy loss, or give that level a larger share.",
            )
        if min(scales) < SMALLEST_SCALE:
            raise ArgumentError(
                argument,
                f"is too large: a level would have noise of a scale below {SMALLEST_SCALE:.0e}.",
                hint="allow a smaller privacy loss, or give that level a smaller share.",
            )
        return cls(n_public=n_public, levels=tuple(map(GaussianThreshold, *noise)))

    def keeps_to(
        self,
        loss: PrivacyLoss,
        shares: Sequence[float],
        *,
        neighbors: Neighbors,
        max_contributions: int,
        caps: Sequence[int | None] = (),
    ) -> bool:
        """Whether the scales follow from the shares, and the release is as private as the loss states."""
        if len(self.levels) != len(shares) or any(
            (level.threshold is None) != (place < self.n_public) for place, level in enumerate(self.levels)
        ):
            return False
        unit: Any = {"neighbors": neighbors, "max_contributions": max_contributions, "caps": caps}
        moved = uncounted_sensitivity(len(shares), **unit)
        parts = [
            level.noise_scale**2 * share / rows.l2_squared
            for level, share, rows in zip(self.levels, shares, moved, strict=True)
        ]
        if not all(math.isclose(part, parts[0], rel_tol=1e-9) for part in parts):
            return False
        least = loss.rounded_down
        if least.rho is not None:
            rho, delta = gated_zcdp(self.noise_scales, self.thresholds, **unit)
            return rho <= least.rho and delta <= least.delta
        assert least.epsilon is not None
        return self.delta(least.epsilon, **unit) <= least.delta

    def delta(
        self,
        epsilon: float,
        *,
        neighbors: Neighbors,
        max_contributions: int,
        caps: Sequence[int | None] = (),
    ) -> float:
        """Return a delta at an epsilon: see `pandas_dptree.privacy.gated.gated_delta`."""
        unit: Any = {"neighbors": neighbors, "max_contributions": max_contributions, "caps": caps}
        return gated_delta(epsilon, self.noise_scales, self.thresholds, **unit)

    def level_losses(
        self, *, neighbors: Neighbors, max_contributions: int, caps: Sequence[int | None] = ()
    ) -> list[LevelLoss]:
        """Return what the noise of each level spends, if no key of the unit alone is shown."""
        unit: Any = {"neighbors": neighbors, "max_contributions": max_contributions, "caps": caps}
        moved = uncounted_sensitivity(len(self.levels), **unit)
        return [
            gaussian_level(level.noise_scale, rows) for level, rows in zip(self.levels, moved, strict=True)
        ]

    def selection_loss(
        self, *, neighbors: Neighbors, max_contributions: int, caps: Sequence[int | None] = ()
    ) -> LevelLoss:
        """Return the probability that a key of one unit alone is shown, on any level.

        `gated_zcdp` proves that the release is delta-approximately zCDP with this delta and the rhos of the
        levels, whatever the loss for which the noise was calibrated.
        """
        unit: Any = {"neighbors": neighbors, "max_contributions": max_contributions, "caps": caps}
        _, delta = gated_zcdp(self.noise_scales, self.thresholds, **unit)
        return LevelLoss(epsilon=Fraction(0), rho=Fraction(0), delta=Fraction(delta))

    @property
    def noise_scales(self) -> list[float]:
        """The noise scale of each level."""
        return [level.noise_scale for level in self.levels]

    @property
    def variances(self) -> list[float]:
        """The variance of the noise of each level."""
        return list(map(float, Gaussian().variance(self.noise_scales)))

    @property
    def thresholds(self) -> list[int | None]:
        """The threshold of each level."""
        return [level.threshold for level in self.levels]

    def measure(
        self, nodes: NonemptyNodes, source: ByteSource, done: Callable[[], None]
    ) -> list[ReleasedLevel]:
        """Measure all levels from the root down.

        **Privacy**: this is a gated release, whose delta `pandas_dptree.privacy.gated` proves. A node below
        one that is not shown is absent whatever its noise, so its noise is not drawn.
        """
        released: list[ReleasedLevel] = []
        for level, counts in zip(self.levels, nodes.public_counts(), strict=False):
            released.append(level.shown_counts(counts, np.ones(len(counts), dtype=bool), source))
            done()
        for place in range(self.n_public, len(self.levels)):
            keys, counts = nodes.below(place, released[-1][0])
            kept, noisy = self.levels[place].shown_counts(counts, np.ones(len(counts), dtype=bool), source)
            released.append((keys[kept], noisy))
            done()
        return released

    def radii(self, released: Sequence[ReleasedLevel], confidence: float) -> list[int]:
        r"""Bound the magnitudes of all noise of each level together, with the probability `confidence`.

        *Proof.* Let :math:`\beta = (1 - \text{confidence}) / \text{levels}`. The noise of the root is at most
        its radius but for a probability of :math:`\beta`; then there are at most N records, the noisy total
        plus that radius. A private level has at most as many nodes that hold a record, and the noises of
        these are independent of that of the root. So the radius for which N nodes would exceed it with a
        probability of at most :math:`\beta` holds for all of them together but for that probability. A public
        level has as many nodes as are released.
        """
        failure = (1 - confidence) / len(self.levels) * (1 - 2**-40)
        radii = [_radius(self.levels[0].noise_scale, 1, failure)]
        n_records = max(int(released[0][1][0]) + radii[0], 1)
        for place, (level, (keys, _)) in enumerate(zip(self.levels[1:], released[1:], strict=True), start=1):
            n_nodes = len(keys) if place < self.n_public else n_records
            radii.append(_radius(level.noise_scale, n_nodes, failure))
        return radii

    def detection_probability(self, counts: IntArray) -> list[npt.NDArray[np.float64]]:
        """Return the probability if no ancestor holds more; it is larger if they do."""
        chains = [self.levels[: place + 1] for place in range(len(self.levels))]
        return [chain_detection_probability(chain, counts) for chain in chains]

    def found_from(self, failure_probability: float) -> list[int | None]:
        """Return the smallest count of a node that is shown although no ancestor holds more."""
        chains = [self.levels[self.n_public : place + 1] for place in range(self.n_public, len(self.levels))]
        return [None] * self.n_public + [found_from(chain, failure_probability) for chain in chains]

    def to_list(self) -> list[dict[str, Any]]:
        """Serialize the noise scale and the threshold of each level."""
        return [{"noise_scale": level.noise_scale, "threshold": level.threshold} for level in self.levels]

    @classmethod
    def from_list(cls, levels: Sequence[Mapping[str, Any]], n_public: int) -> Self:
        """Restore the noise scales and thresholds."""
        return cls(
            n_public=n_public,
            levels=tuple(GaussianThreshold(level["noise_scale"], level["threshold"]) for level in levels),
        )


def _radius(noise_scale: float, n_nodes: int, failure: float) -> int:
    """Find the smallest b for which discrete Gaussian noise of n nodes exceeds b with at most a probability.

    By the union bound, P(|noise| > b) <= failure / n_nodes.
    """
    most = math.log(failure) - math.log(2) - math.log(n_nodes)
    step = max(1, math.ceil(noise_scale))
    return smallest(lambda bound: log_upper_tail(noise_scale, bound) <= most, start=0, step=step)

"""Truncated Laplace noise for hierarchies whose keys are not all public, each level on its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.measure import LARGEST_COUNT
from pandas_dptree.mechanisms.private_levels.base import LevelNoise, NonemptyNodes, ReleasedLevel
from pandas_dptree.mechanisms.private_levels.sparse_counts import (
    large_counts,
    release_probability,
    released_from,
)
from pandas_dptree.mechanisms.sampling import ByteSource
from pandas_dptree.mechanisms.truncated import TruncatedLaplace
from pandas_dptree.privacy.level_losses import LevelLoss, laplace_level
from pandas_dptree.privacy.loss import PrivacyLoss, exact
from pandas_dptree.privacy.sensitivity import Neighbors, count_sensitivity
from pandas_dptree.privacy.tree_sensitivity import uncounted_sensitivity

__all__ = ["IndependentLevels"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndependentLevels(LevelNoise):
    """Truncated Laplace noise, and a release of each level that is independent of the others.

    A node is released if its noisy count is above R, the radius of the noise of its level. Its ancestors are
    shown with it. So a node that is not shown holds at most 2R records, with certainty.
    """

    name: ClassVar[str] = "truncated_laplace"
    in_words: ClassVar[str] = "truncated Laplace noise"
    bound_name: ClassVar[str] = "max_error"

    levels: tuple[TruncatedLaplace, ...]

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
        """Divide epsilon and delta among the levels; a unit moves each of them by all of its rows."""
        rows = count_sensitivity(neighbors=neighbors, max_contributions=max_contributions).l1
        parts = [part.to_dict() for part in loss.divide(shares)]
        levels = (TruncatedLaplace(part["epsilon"], part["delta"], rows) for part in parts)
        return cls(n_public=n_public, levels=tuple(levels))

    def keeps_to(
        self,
        loss: PrivacyLoss,
        shares: Sequence[float],
        *,
        neighbors: Neighbors,
        max_contributions: int,
        caps: Sequence[int | None] = (),
    ) -> bool:
        """Whether the levels' epsilons and deltas follow from the shares and add up to at most the loss."""
        rows = count_sensitivity(neighbors=neighbors, max_contributions=max_contributions).l1
        if len(self.levels) != len(shares) or any(noise.sensitivity != rows for noise in self.levels):
            return False
        if loss.epsilon is None:  # no rho bounds truncated noise
            return False
        whole = sum(shares)
        for name, most in loss.to_dict().items():
            spent = [getattr(noise, name) for noise in self.levels]
            if sum(map(exact, spent)) > exact(most):
                return False
            for part, share in zip(spent, shares, strict=True):
                if not math.isclose(part * whole, share * most, rel_tol=1e-9):
                    return False
        return True

    def level_losses(
        self, *, neighbors: Neighbors, max_contributions: int, caps: Sequence[int | None] = ()
    ) -> list[LevelLoss]:
        """Return what each level spends: truncated Laplace noise on counts, whose keys need not be public.

        On a private level `measure` releases a function of noisy counts of all nodes, listed or not.
        """
        moved = uncounted_sensitivity(
            len(self.levels), neighbors=neighbors, max_contributions=max_contributions, caps=caps
        )
        return [
            laplace_level(noise.noise_scale, rows, min(exact(noise.delta), Fraction(noise.delta_spent)))
            for noise, rows in zip(self.levels, moved, strict=True)
        ]

    @property
    def noise_scales(self) -> list[float]:
        """The noise scale of each level."""
        return [noise.noise_scale for noise in self.levels]

    @property
    def variances(self) -> list[float]:
        """The variance of the noise of each level."""
        return [noise.variance for noise in self.levels]

    @property
    def thresholds(self) -> list[int | None]:
        """The radius of each private level."""
        return [None if place < self.n_public else noise.radius for place, noise in enumerate(self.levels)]

    @property
    def largest_unseen(self) -> list[int | None]:
        """Twice the radius of each private level."""
        return [None if radius is None else 2 * radius for radius in self.thresholds]

    def measure(
        self, nodes: NonemptyNodes, source: ByteSource, done: Callable[[], None]
    ) -> list[ReleasedLevel]:
        """Measure all levels. A released node may have parents that are not released themselves.

        **Privacy**: the epsilons and deltas of the levels add up. On a public level the noise is added to all
        counts; `large_counts` has the proof for a private one. A unit of k rows moves the counts of a level
        by k in all, wherever its rows lie, or by 2k if it is replaced: that is the sensitivity of the noise.
        """
        public: list[ReleasedLevel] = []
        for noise, counts in zip(self.levels, nodes.public_counts(), strict=False):
            noisy = np.minimum(counts, LARGEST_COUNT) + noise.sample(len(counts), source)
            public.append((np.arange(len(counts)), noisy))
            done()
        private: list[ReleasedLevel] = []
        for noise, (keys, counts) in zip(reversed(self.levels[self.n_public :]), nodes.upward(), strict=True):
            kept, noisy = large_counts(noise, counts, source)
            private.append((keys[kept], noisy))
            done()
        return [*public, *reversed(private)]

    def radii(self, released: Sequence[ReleasedLevel], confidence: float) -> list[int]:
        """Return the radii of the noise, which hold with certainty."""
        return [noise.radius for noise in self.levels]

    def detection_probability(self, counts: IntArray) -> list[npt.NDArray[np.float64]]:
        """Return the probability that a node is released itself; its descendants may show it too."""
        return [
            np.ones(len(counts)) if place < self.n_public else release_probability(noise, counts)
            for place, noise in enumerate(self.levels)
        ]

    def found_from(self, failure_probability: float) -> list[int | None]:
        """Return the smallest count of a node that is released itself."""
        return [
            None if place < self.n_public else released_from(noise, failure_probability)
            for place, noise in enumerate(self.levels)
        ]

    def to_list(self) -> list[dict[str, Any]]:
        """Serialize the noise of each level."""
        return [noise.to_dict() for noise in self.levels]

    @classmethod
    def from_list(cls, levels: Sequence[Mapping[str, Any]], n_public: int) -> Self:
        """Restore the noise: the epsilon, delta and sensitivity of a level determine the rest."""
        return cls(
            n_public=n_public,
            levels=tuple(
                TruncatedLaplace(level["epsilon"], level["delta"], level["sensitivity"]) for level in levels
            ),
        )

"""Noise for hierarchies whose keys are not all public: exact counts of all levels become released ones here.

All nodes of a public level are released. Of a private level, only nodes that hold a record are looked at, and
only those with a large noisy count are released. To add a mechanism, add a class here and to `LEVEL_NOISES`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Final, Protocol, Self

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.additive import Gaussian
from pandas_dptree.mechanisms.detection_probability import released_from
from pandas_dptree.mechanisms.gaussian_thresholds import GaussianThreshold, found_from
from pandas_dptree.mechanisms.measure import LARGEST_COUNT
from pandas_dptree.mechanisms.sampling import LARGEST_SCALE, SMALLEST_SCALE, ByteSource
from pandas_dptree.mechanisms.sparse_counts import large_counts, release_probability
from pandas_dptree.mechanisms.truncated import TruncatedLaplace
from pandas_dptree.privacy.discrete_gaussian import log_upper_tail
from pandas_dptree.privacy.gated import gated_delta, gated_zcdp
from pandas_dptree.privacy.gated_calibration import gated_noise, gated_noise_zcdp
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Neighbors, count_sensitivity

__all__ = ["LEVEL_NOISES", "GatedLevels", "IndependentLevels", "Keys", "LevelNoise", "NonemptyNodes",
           "ReleasedLevel"]  # fmt: skip

Keys = npt.NDArray[Any]
"""Nodes of one level, increasing and without repetition. What identifies a node depends on the hierarchy."""

ReleasedLevel = tuple[Keys, IntArray]
"""The released nodes of a level, and their noisy counts."""


class NonemptyNodes(Protocol):
    """The nodes that hold a record, with their exact counts."""

    def public_counts(self) -> list[IntArray]:
        """Count the records of all nodes of each public level, from the root down."""

    def upward(self) -> Iterator[tuple[Keys, IntArray]]:
        """Yield the nodes that hold a record, and their counts, of each private level from the deepest."""

    def below(self, level: int, shown: Keys) -> tuple[Keys, IntArray]:
        """Return the nodes of a private level that hold a record and whose parents are in `shown`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelNoise(ABC):
    """The noise and the thresholds of all levels of a hierarchy.

    Attributes
    ----------
    n_public : int
        The number of public levels, at least 1: the root is one of them.
    """

    name: ClassVar[str]
    """The name of the mechanism, in ``attrs`` and JSON."""
    in_words: ClassVar[str]
    """The noise, in a headline."""
    bound_name: ClassVar[str]
    """The column of a table that says how far counts can be from the truth."""

    n_public: int

    @classmethod
    @abstractmethod
    def calibrate(
        cls,
        loss: PrivacyLoss,
        shares: Sequence[float],
        n_public: int,
        *,
        neighbors: Neighbors,
        max_contributions: int,
    ) -> Self:
        """Find the noise that spends a loss, divided among the levels in proportion to the shares."""

    @abstractmethod
    def keeps_to(
        self, loss: PrivacyLoss, shares: Sequence[float], *, neighbors: Neighbors, max_contributions: int
    ) -> bool:
        """Whether the noise follows from the shares and spends at most the loss."""

    @property
    @abstractmethod
    def noise_scales(self) -> list[float]:
        """The noise scale of each level, in counts."""

    @property
    @abstractmethod
    def variances(self) -> list[float]:
        """The variance of the noise of each level, in squared counts."""

    @property
    @abstractmethod
    def thresholds(self) -> list[int | None]:
        """What the noisy count of a released node exceeds, on each level; None for public ones."""

    @property
    def largest_unseen(self) -> list[int | None]:
        """The most records in a node that is not shown, with certainty; None if there is no such bound."""
        return [None] * len(self.noise_scales)

    @abstractmethod
    def measure(
        self, nodes: NonemptyNodes, source: ByteSource, done: Callable[[], None]
    ) -> list[ReleasedLevel]:
        """Measure all levels: exact counts become noisy ones.

        Parameters
        ----------
        nodes : NonemptyNodes
        source : callable
            ``source(n)`` returns n random bytes.
        done : callable
            Called after each level.

        Returns
        -------
        list of ReleasedLevel
            From the root down: all nodes of public levels, and those of private ones that are released.
        """

    @abstractmethod
    def radii(self, released: Sequence[ReleasedLevel], confidence: float) -> list[int]:
        """Bound the magnitudes of all noise of each level together, with the probability `confidence`."""

    @abstractmethod
    def detection_probability(self, counts: IntArray) -> list[npt.NDArray[np.float64]]:
        """Return for each level the probability that nodes with these counts are shown, whatever is below."""

    @abstractmethod
    def found_from(self, failure_probability: float) -> list[int | None]:
        """Return for each private level the smallest count that is shown but for at most a probability."""

    @abstractmethod
    def to_list(self) -> list[dict[str, Any]]:
        """Serialize the noise of each level as plain JSON."""

    @classmethod
    @abstractmethod
    def from_list(cls, levels: Sequence[Mapping[str, Any]], n_public: int) -> Self:
        """Restore what `to_list` serialized."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndependentLevels(LevelNoise):
    """Truncated Laplace noise, and a release of each level that is independent of the others.

    A node is released if its noisy count is above R, the radius of the noise of its level. Its ancestors are
    shown with it. So a node that is not shown holds at most 2R records, with certainty.

    Attributes
    ----------
    levels : tuple of TruncatedLaplace
        Of each level, from the root down.
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
    ) -> Self:
        """Divide epsilon and delta among the levels."""
        rows = count_sensitivity(neighbors=neighbors, max_contributions=max_contributions).l1
        parts = [part.to_dict() for part in loss.divide(shares)]
        levels = (TruncatedLaplace(part["epsilon"], part["delta"], rows) for part in parts)
        return cls(n_public=n_public, levels=tuple(levels))

    def keeps_to(
        self, loss: PrivacyLoss, shares: Sequence[float], *, neighbors: Neighbors, max_contributions: int
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
            if sum(map(Fraction, spent)) > Fraction(most):
                return False
            for part, share in zip(spent, shares, strict=True):
                if not math.isclose(part * whole, share * most, rel_tol=1e-9):
                    return False
        return True

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


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedLevels(LevelNoise):
    """Gaussian noise, and a release in which a private node is shown only if its parent is.

    Attributes
    ----------
    levels : tuple of GaussianThreshold
        Of each level, from the root down; those of public levels have no threshold.
    """

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
    ) -> Self:
        """Divide the sum of 1 / noise_scale**2 among the levels."""
        private = [place >= n_public for place in range(len(shares))]
        unit: Any = {"neighbors": neighbors, "max_contributions": max_contributions}
        try:
            if loss.rho is not None:
                noise = gated_noise_zcdp(loss.rho, loss.delta, shares, private, **unit)
            else:
                assert loss.epsilon is not None
                noise = gated_noise(loss.epsilon, loss.delta, shares, private, **unit)
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
        self, loss: PrivacyLoss, shares: Sequence[float], *, neighbors: Neighbors, max_contributions: int
    ) -> bool:
        """Whether the scales follow from the shares, and the release is as private as the loss states."""
        if len(self.levels) != len(shares) or any(
            (level.threshold is None) != (place < self.n_public) for place, level in enumerate(self.levels)
        ):
            return False
        if not all(SMALLEST_SCALE <= scale <= LARGEST_SCALE for scale in self.noise_scales):
            return False
        parts = [level.noise_scale**2 * share for level, share in zip(self.levels, shares, strict=True)]
        if not all(math.isclose(part, parts[0], rel_tol=1e-9) for part in parts):
            return False
        noise = self.noise_scales, self.thresholds
        if loss.rho is not None:
            rho, delta = gated_zcdp(*noise, neighbors=neighbors, max_contributions=max_contributions)
            return rho <= loss.rho and delta <= loss.delta
        assert loss.epsilon is not None
        spent = gated_delta(loss.epsilon, *noise, neighbors=neighbors, max_contributions=max_contributions)
        return spent <= loss.delta

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
        chain = np.cumprod([level.detection_probability(counts) for level in self.levels], axis=0)
        return list(chain)

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
    low, high = -1, max(1, math.ceil(noise_scale))
    while log_upper_tail(noise_scale, high) > most:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if log_upper_tail(noise_scale, middle) <= most else (middle, high)
    return high


LEVEL_NOISES: Final[Mapping[str, type[LevelNoise]]] = {
    "truncated_laplace": IndependentLevels,
    "gaussian": GatedLevels,
}
"""The mechanisms for hierarchies whose keys are not all public, by the name of the option."""

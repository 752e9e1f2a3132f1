"""Noisy counts of trees whose keys are not all public: nodes are shown above thresholds, gated by parents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.measure import LARGEST_COUNT
from pandas_dptree.mechanisms.sampling import (
    LARGEST_SCALE,
    SMALLEST_SCALE,
    ByteSource,
    discrete_gaussian,
)
from pandas_dptree.privacy.discrete_gaussian import upper_tail
from pandas_dptree.privacy.whole_numbers import smallest

__all__ = ["GaussianThreshold", "chain_detection_probability", "found_from"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class GaussianThreshold:
    """The noise and the threshold of one level of a gated release.

    A node of a private level is shown only if its noisy count exceeds the threshold, at most 2**61. A public
    level has none: all of its nodes are shown below a parent that is.
    """

    noise_scale: float
    threshold: int | None

    def __post_init__(self) -> None:
        """Check that the noise can be drawn, and that the threshold is a count."""
        if not SMALLEST_SCALE <= self.noise_scale <= LARGEST_SCALE:
            raise ArgumentError(
                "noise_scale",
                f"must be from {SMALLEST_SCALE:g} to {LARGEST_SCALE:g}, not {quote(self.noise_scale)}.",
                hint="for a smaller scale, pass a larger loss.",
            )
        whole = isinstance(self.threshold, int) and not isinstance(self.threshold, bool)
        if self.threshold is not None and not (whole and 0 < self.threshold <= LARGEST_COUNT):
            raise ArgumentError(
                "threshold",
                f"must be a whole number from 1 to 2**61, not {quote(self.threshold)}.",
                hint="None for a public level.",
            )

    def shown_counts(
        self, counts: IntArray, parent_shown: BoolArray, source: ByteSource
    ) -> tuple[IntArray, IntArray]:
        """Add noise to the counts of a level; return positions and noisy counts of nodes that are shown.

        `counts` are, on a private level, those of all nodes that hold a record; on a public level, those of
        all children of the nodes shown above, empty ones too.

        **Privacy**: the answers of all levels together, read as "this node: this noisy count" for the nodes
        that are kept and as "absent" for all others, are a gated release. Its delta is that of
        `pandas_dptree.privacy.gated.gated_delta` at the noise scales and thresholds of the levels. *Proof.*
        In that release, each node that holds a record or is public has noise of its own, and is shown or not
        depending on it and on its parent. A node whose parent is hidden is absent whatever its noise, which
        is independent of that of the other nodes. So the distribution is the same if its noise is not drawn.
        Nodes of a private level that hold no record are dropped here, even if they are passed. Counts above
        2**61 are lowered to that, which does not move neighbouring counts further apart.
        """
        looked_at = np.flatnonzero(parent_shown if self.threshold is None else parent_shown & (counts > 0))
        noise = discrete_gaussian(self.noise_scale, len(looked_at), source)
        noisy = np.minimum(counts[looked_at], LARGEST_COUNT) + noise
        if self.threshold is None:
            return looked_at, noisy
        above = noisy > self.threshold
        return looked_at[above], noisy[above]

    def detection_probability(self, counts: IntArray) -> FloatArray:
        r"""Return the probability that nodes with these counts exceed the threshold; 1 on a public level.

        For n records it is :math:`P(X > \tau - n)`, and 0 for none. It is public if the counts are. The node
        is then shown if its parent is.
        """
        if self.threshold is None:
            return np.ones(len(counts))
        return np.where(counts > 0, upper_tail(self.noise_scale, self.threshold - counts), 0.0)


def chain_detection_probability(levels: Sequence[GaussianThreshold], counts: IntArray) -> FloatArray:
    """Return the probability that chains of only children with these counts are shown to the last level.

    Each node of such a chain holds the same records. A node whose ancestors hold more is shown with a
    probability between this and that of its own level.
    """
    return np.asarray(np.prod([level.detection_probability(counts) for level in levels], axis=0))


def found_from(levels: Sequence[GaussianThreshold], failure_probability: float = 0.05) -> int:
    """Find the smallest count for which a chain of only children stays hidden with at most a probability.

    Pass one level for a node whose parent is certain to be shown.
    """
    if not 0 < failure_probability < 1:
        raise ArgumentError(
            "failure_probability",
            f"must be above 0 and below 1, not {quote(failure_probability)}.",
            hint="for example 0.05.",
        )
    return smallest(lambda count: _hidden(levels, count) <= failure_probability, start=1)


def _hidden(levels: Sequence[GaussianThreshold], count: int) -> float:
    """Return the probability that a chain stays hidden, in a form that is exact where it is small.

    One node has P(X <= threshold - count), which is P(X > count - threshold - 1).
    """
    each = [
        float(upper_tail(level.noise_scale, np.array([count - level.threshold - 1]))[0])
        for level in levels
        if level.threshold is not None
    ]
    return -math.expm1(math.fsum(math.log1p(-min(hidden, 1 - 2**-53)) for hidden in each))

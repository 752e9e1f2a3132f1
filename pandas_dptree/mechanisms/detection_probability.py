"""Which counts are released with truncated Laplace noise."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from pandas_dptree.mechanisms.sparse_counts import release_probability
from pandas_dptree.mechanisms.truncated import TruncatedLaplace

__all__ = ["released_from"]


def released_from(noise: TruncatedLaplace, failure_probability: float) -> int:
    """Find the smallest count w that stays unreleased with at most a given probability, below 1/2.

    It is the probability of releasing a count of 2R + 1 - w, which keeps its precision where it is small.
    """
    most = 2 * noise.radius + 1
    sizes = range(noise.radius + 1, most + 1)
    return sizes[bisect_left(sizes, -failure_probability, key=lambda size: -_probability(noise, most - size))]


def _probability(noise: TruncatedLaplace, size: int) -> float:
    return float(release_probability(noise, np.array([size]))[0])

"""Which counts truncated Laplace noise releases, and how far off they are, with a stated probability."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from pandas_dptree.mechanisms.sparse_counts import release_probability
from pandas_dptree.mechanisms.truncated import TruncatedLaplace

__all__ = ["largest_error", "released_from"]


def released_from(noise: TruncatedLaplace, failure: float) -> int:
    """Give the smallest count w that is not released with probability `failure` at most, below 1/2.

    That is the probability that a count of 2R + 1 - w is released, which keeps its digits where it is small.
    """
    most = 2 * noise.radius + 1
    sizes = range(noise.radius + 1, most + 1)
    return sizes[bisect_left(sizes, -failure, key=lambda size: -_probability(noise, most - size))]


def largest_error(noise: TruncatedLaplace, failure: float) -> int:
    """Give the smallest x with P(|noise| > x) <= failure; P(noise > x) is that of releasing R - x."""
    errors = range(noise.radius + 1)
    return bisect_left(errors, -failure, key=lambda x: -2 * _probability(noise, noise.radius - x))


def _probability(noise: TruncatedLaplace, size: int) -> float:
    return float(release_probability(noise, np.array([size]))[0])

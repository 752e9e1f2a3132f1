"""Noisy counts of a level of an implicit tree: exact counts become released ones here."""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np
import numpy.typing as npt

from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.measure import LARGEST_COUNT
from pandas_dptree.mechanisms.sampling import ByteSource
from pandas_dptree.mechanisms.truncated import TruncatedLaplace

__all__ = ["large_counts", "release_probability", "released_from"]

FloatArray = npt.NDArray[np.float64]


def large_counts(noise: TruncatedLaplace, counts: IntArray, source: ByteSource) -> tuple[IntArray, IntArray]:
    """Add noise to the counts of all nonempty nodes of a level; keep those above R, the radius.

    The result is their positions in `counts`, and their noisy counts, at least R + 1.

    **Privacy**: the answer, read as "this node: this noisy count" for the nodes that are kept and as "absent"
    for all others of the level, is as private as `noise` is on the counts of *all* nodes, even though most
    nodes are never looked at. *Proof.* Let mechanism A add the noise to the count of every node of the level,
    empty or not, and then replace by "absent" each noisy count of R or less. A is (epsilon, delta)-private,
    as the second step is a function of the noisy counts alone. An empty node's noisy count is its noise,
    which is at most R: it is always absent. The noises of different nodes are independent, so the answer of A
    has the same distribution if the noises of empty nodes are not drawn, and this is what this function does.

    So the set of nodes that appear is protected as well. A node that holds one record appears if its noise is
    exactly R, and the probability of that is part of delta. With a threshold below R, empty nodes could
    appear, and not drawing their noises would reveal which nodes are not empty.
    """
    noisy = np.minimum(counts, LARGEST_COUNT) + noise.sample(len(counts), source)
    kept = np.flatnonzero(noisy > noise.radius)
    return kept, noisy[kept]


def release_probability(noise: TruncatedLaplace, counts: IntArray) -> FloatArray:
    """Return the probability that `large_counts` keeps a node of w records, P(noise > R - w), for each count.

    To machine precision where it is small, since it is computed from the less likely tail. It is public if
    the counts are.
    """
    scale, radius = noise.noise_scale, noise.radius
    small = np.clip(np.minimum(counts, 2 * radius + 1 - counts), 0, None)
    mass = 1 + math.exp(-1 / scale) - 2 * math.exp(-(radius + 1) / scale)
    tail = np.exp((small - radius - 1) / scale) * -np.expm1(-small / scale) / mass
    return np.where(counts > radius, 1 - tail, tail)


def released_from(noise: TruncatedLaplace, failure_probability: float) -> int:
    """Find the smallest count w that stays unreleased with at most a given probability, below 1/2.

    It is the probability of releasing a count of 2R + 1 - w, which keeps its precision where it is small.
    """
    most = 2 * noise.radius + 1

    def released(size: int) -> float:
        return float(release_probability(noise, np.array([most - size]))[0])

    sizes = range(noise.radius + 1, most + 1)
    return sizes[bisect_left(sizes, -failure_probability, key=lambda size: -released(size))]

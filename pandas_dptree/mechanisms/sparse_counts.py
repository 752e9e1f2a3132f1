"""Noisy counts of a level of an implicit tree: exact counts meet the outside world here."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.measure import LARGEST_COUNT
from pandas_dptree.mechanisms.sampling import ByteSource
from pandas_dptree.mechanisms.truncated import TruncatedLaplace

__all__ = ["large_counts", "noisy_total", "release_probability"]

FloatArray = npt.NDArray[np.float64]


def noisy_total(noise: TruncatedLaplace, counts: IntArray, source: ByteSource) -> IntArray:
    """Add noise to the sum of the counts of one level: the total, which is released in any case.

    Parameters
    ----------
    noise : TruncatedLaplace
    counts : numpy.ndarray of int64, shape (n,)
        The exact counts of disjoint sets of records.
    source : callable
        Where random bytes come from.

    Returns
    -------
    numpy.ndarray of int64, shape (1,)

    Notes
    -----
    **Privacy**: as private as `noise` is on a single count.
    """
    return noise.sample(1, source) + min(int(counts.sum()), LARGEST_COUNT)


def large_counts(noise: TruncatedLaplace, counts: IntArray, source: ByteSource) -> tuple[IntArray, IntArray]:
    r"""Add noise to the counts of the nodes that hold somebody, and keep what is then more than R.

    Parameters
    ----------
    noise : TruncatedLaplace
        Of radius R.
    counts : numpy.ndarray of int64, shape (n,)
        The exact counts of all nodes of one level that hold somebody, at least 1.
    source : callable
        Where random bytes come from.

    Returns
    -------
    kept : numpy.ndarray of int64, shape (n_kept,)
        Where in `counts` they stand.
    noisy : numpy.ndarray of int64, shape (n_kept,)
        From R + 1.

    Notes
    -----
    **Privacy**: the answer, read as "this node: this noisy count" for the nodes that are kept and as "absent"
    for all others of the level, is as private as `noise` is on the counts of *all* nodes, even though most
    nodes are never looked at. *Proof.* Let mechanism A add the noise to the count of every node of the level,
    whether it holds somebody or not, and then replace by "absent" each noisy count of R or less. A is
    (epsilon, delta)-private, as the second step is a function of the noisy counts alone. An empty node's
    noisy count is its noise, which is at most R: it is always absent. The noises of different nodes are
    independent, so what A answers has the same distribution if the noises of empty nodes are not drawn, which
    is what this function does.

    So which nodes appear is protected as well. A node that holds one record appears if its noise is R
    exactly, and its probability is part of delta. With a threshold below R, empty nodes could appear, and
    not drawing their noises would tell that a node is not empty.
    """
    noisy = np.minimum(counts, LARGEST_COUNT) + noise.sample(len(counts), source)
    kept = np.flatnonzero(noisy > noise.radius)
    return kept, noisy[kept]


def release_probability(noise: TruncatedLaplace, counts: IntArray) -> FloatArray:
    """Give the probability with which `large_counts` keeps a node, P(noise > R - w).

    Parameters
    ----------
    noise : TruncatedLaplace
        Of radius R.
    counts : numpy.ndarray of int64
        Numbers of records, w, at least 0.

    Returns
    -------
    numpy.ndarray of float64, of the same shape
        To machine precision where it is small: it is computed from the end of the law that is less likely.

    Notes
    -----
    **Privacy**: public, if the counts are.
    """
    scale, radius = noise.noise_scale, noise.radius
    small = np.clip(np.minimum(counts, 2 * radius + 1 - counts), 0, None)
    mass = 1 + math.exp(-1 / scale) - 2 * math.exp(-(radius + 1) / scale)
    tail = np.exp((small - radius - 1) / scale) * -np.expm1(-small / scale) / mass
    return np.where(counts > radius, 1 - tail, tail)

"""Measurements: noise is added to the exact values of a listed tree here, and nowhere else."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.additive import AdditiveNoise, FloatArray
from pandas_dptree.mechanisms.sampling import ByteSource

__all__ = ["LARGEST_COUNT", "measure"]

LARGEST_COUNT = 2**61
"""Larger values are clipped to this; noisy values are clipped to ± this."""


def measure(
    noise: AdditiveNoise,
    levels: Sequence[IntArray],
    noise_scales: Sequence[npt.ArrayLike],
    source: ByteSource,
) -> tuple[IntArray | None, ...]:
    """Add noise to the exact values of every level, and return None for a level that is not measured.

    A noise scale is that of a level or of each of its nodes; inf where nothing is to be measured.

    **Privacy**: this is the one place where exact counts of a listed tree become noisy ones. The shape of the
    result depends on the shapes of `levels` alone. The samplers report magnitudes above 2**62 as 2**62; as
    noisy counts end at ±2**61, the result is the same as with unbounded noise.
    """
    scales = [np.atleast_1d(np.asarray(scale, dtype=np.float64)) for scale in noise_scales]
    return tuple(
        None if np.isinf(scale).all() else _measure_level(noise, exact, scale, source)
        for exact, scale in zip(levels, scales, strict=True)
    )


def _measure_level(noise: AdditiveNoise, exact: IntArray, scales: FloatArray, source: ByteSource) -> IntArray:
    """Add noise to each count, drawing the noise of each scale in one call."""
    if len(scales) == 1:
        noisy = exact + noise.sample(float(scales[0]), len(exact), source)
    else:
        noisy = np.zeros_like(exact)
        distinct, kind = np.unique(scales, return_inverse=True)
        ends = np.cumsum(np.bincount(kind))[:-1]
        for scale, nodes in zip(
            distinct.tolist(), np.split(np.argsort(kind, kind="stable"), ends), strict=True
        ):
            if math.isfinite(scale):
                noisy[nodes] = exact[nodes] + noise.sample(scale, len(nodes), source)
    return np.asarray(np.clip(noisy, -LARGEST_COUNT, LARGEST_COUNT))

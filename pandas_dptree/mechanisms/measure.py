"""Measurements: noise is added to the exact values of a listed tree here, and nowhere else."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.additive import AdditiveNoise
from pandas_dptree.mechanisms.sampling import ByteSource

__all__ = ["LARGEST_COUNT", "measure"]

LARGEST_COUNT = 2**61
"""Larger values are clipped to this; noisy values are clipped to ± this."""


def measure(
    noise: AdditiveNoise,
    levels: Sequence[IntArray],
    noise_scales: Sequence[float],
    source: ByteSource,
) -> tuple[IntArray | None, ...]:
    """Add noise to the exact values of every level, and return None for a level that is not measured.

    A noise scale is inf where nothing is to be measured.

    **Privacy**: this is the one place where exact counts of a listed tree become noisy ones. The shape of the
    result depends on the shapes of `levels` alone. The samplers report magnitudes above 2**62 as 2**62; as
    noisy counts end at ±2**61, the result is the same as with unbounded noise.
    """
    return tuple(
        _clipped(exact + noise.sample(scale, len(exact), source)) if math.isfinite(scale) else None
        for exact, scale in zip(levels, noise_scales, strict=True)
    )


def _clipped(noisy: IntArray) -> IntArray:
    return np.asarray(np.clip(noisy, -LARGEST_COUNT, LARGEST_COUNT))

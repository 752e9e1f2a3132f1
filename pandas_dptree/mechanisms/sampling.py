"""Samplers of exact integer noise from a cryptographic source of random bytes.

`pandas_dptree.mechanisms.rejection_sampling` explains the algorithm.
"""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.mechanisms.rejection_sampling import (
    LARGEST_VALUE,
    ByteSource,
    NoiseDistribution,
    draw,
    uniform_words,
)

__all__ = [
    "LARGEST_SCALE",
    "SMALLEST_SCALE",
    "ByteSource",
    "byte_source",
    "discrete_gaussian",
    "discrete_laplace",
    "random_words",
    "truncated_discrete_laplace",
]

SMALLEST_SCALE, LARGEST_SCALE = 1e-3, 1e12


def byte_source(rng: np.random.Generator | None) -> ByteSource:
    """Return the source of random bytes: the operating system's cryptographic one, or a generator.

    **Privacy.** Only ``None`` protects anybody: a Generator's noise can be predicted and subtracted; it is
    meant for tests and simulation. The operating system is asked anew every time and nothing is kept between
    calls, so a forked child never repeats its parent's noise.
    """
    return os.urandom if rng is None else rng.bytes


def random_words(source: ByteSource, size: int) -> NDArray[np.uint64]:
    """Draw uniform 64-bit words, as random as `source` is."""
    return uniform_words(source, _checked_size(size), np.dtype(np.uint64)).copy()


def discrete_laplace(noise_scale: float, size: int, source: ByteSource) -> NDArray[np.int64]:
    r"""Draw from the discrete Laplace distribution on all integers, :math:`P(x) \propto \exp(-|x| / t)`.

    The exact binary value of `noise_scale`, from 1e-3 to 1e12, is t. The variance is :math:`2q/(1-q)^2` with
    :math:`q = e^{-1/t}` (Ghosh, Roughgarden and Sundararajan, "Universally utility-maximizing privacy
    mechanisms", 2009).

    **Privacy.** Added to whole numbers of L1 sensitivity :math:`\Delta`, the noise gives
    :math:`\varepsilon = \Delta/t`, exactly, as `pandas_dptree.mechanisms.rejection_sampling` argues.

    A magnitude above 2**62 is reported as 2**62 (even at the largest scale, the probability is below
    10**-2000000). If the numbers are within ±2**61 and the noisy ones are clipped to ±2**61, the release is
    the same as with unbounded noise: clipping is post-processing, and no sum overflows.
    """
    return draw(NoiseDistribution(scale=_checked_scale(noise_scale), power=1), _checked_size(size), source)


def discrete_gaussian(noise_scale: float, size: int, source: ByteSource) -> NDArray[np.int64]:
    r"""Draw from the discrete Gaussian distribution on all integers, :math:`P(x) \propto \exp(-x^2 / 2t^2)`.

    The variance is at most :math:`t^2`, and hardly less from :math:`t = 1` on (Canonne, Kamath and Steinke,
    "The discrete Gaussian for differential privacy", 2020).

    **Privacy.** Added to whole numbers of L2 sensitivity :math:`\Delta`, the noise gives
    :math:`\rho = \Delta^2 / (2t^2)` zero-concentrated differential privacy, exactly (Theorem 4 there), as
    `pandas_dptree.mechanisms.rejection_sampling` argues. Magnitudes above 2**62 saturate as in
    `discrete_laplace`.
    """
    return draw(NoiseDistribution(scale=_checked_scale(noise_scale), power=2), _checked_size(size), source)


def truncated_discrete_laplace(
    noise_scale: float, bound: int, size: int, source: ByteSource
) -> NDArray[np.int64]:
    r"""Draw from the discrete Laplace distribution on the integers from ``-bound`` to ``bound``.

    **Privacy.** Added to whole numbers of L1 sensitivity :math:`\Delta`, the noise gives
    :math:`\varepsilon = \Delta/t` with a :math:`\delta` that is the mass within :math:`\Delta` of one end;
    for :math:`\Delta = 1` and :math:`q = e^{-1/t}`, :math:`\delta = q^R (1-q) / (1 + q - 2q^{R+1})` with
    :math:`R` the bound, at most 2**62.
    """
    if not _is_whole(bound) or not 0 <= bound <= LARGEST_VALUE:
        raise ArgumentError(
            "bound",
            f"must be a whole number from 0 to 2**62, not {quote(bound)}.",
            hint="it is the largest magnitude of the noise.",
        )
    return draw(
        NoiseDistribution(scale=_checked_scale(noise_scale), power=1, bound=int(bound)),
        _checked_size(size),
        source,
    )


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _checked_size(size: int) -> int:
    if not _is_whole(size) or size < 0:
        raise ArgumentError(
            "size", f"must be a whole number >= 0, not {quote(size)}.", hint="it is the number of draws."
        )
    return int(size)


def _checked_scale(noise_scale: float) -> float:
    is_number = _is_whole(noise_scale) or isinstance(noise_scale, float | np.floating)
    if not is_number or not SMALLEST_SCALE <= noise_scale <= LARGEST_SCALE:
        raise ArgumentError(
            "noise_scale",
            f"must be a number from {SMALLEST_SCALE:g} to {LARGEST_SCALE:g}, not {quote(noise_scale)}.",
            hint="it is in the unit of the counts; rescale them if they are much larger or smaller.",
        )
    return float(noise_scale)

"""Draws of each kind of noise, and their exact distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pandas_dptree.mechanisms import sampling
from pandas_dptree.mechanisms.sampling import discrete_gaussian, discrete_laplace, truncated_discrete_laplace
from tests.helpers_statistics import gaussian_cdf, laplace_cdf, truncated_laplace_cdf

SCALES = [1e-3, 0.1, 0.5, 1.0, 3.0, 10.0, 37.3, 150.0, 1e3, 12345.6, 1e6, 1e12]

ACCEPT = 1e-3  # seeds are fixed, so a right distribution stays accepted

KINDS = ["laplace", "gaussian", "truncated"]


def bound_for(noise_scale: float) -> int:
    return math.ceil(1.7 * noise_scale)


def draw(kind: str, noise_scale: float, size: int, source: sampling.ByteSource) -> np.ndarray:
    if kind == "truncated":
        return truncated_discrete_laplace(noise_scale, bound_for(noise_scale), size, source)
    return {"laplace": discrete_laplace, "gaussian": discrete_gaussian}[kind](noise_scale, size, source)


def cdf_of(kind: str, noise_scale: float) -> Callable[[int], Any]:
    if kind == "truncated":
        return truncated_laplace_cdf(noise_scale, bound_for(noise_scale))
    return {"laplace": laplace_cdf, "gaussian": gaussian_cdf}[kind](noise_scale)

"""Noise that is added to counts: the kinds that there are, by name."""

from __future__ import annotations

from pandas_dptree.mechanisms.additive.base import AdditiveNoise, FloatArray
from pandas_dptree.mechanisms.additive.gaussian import Gaussian
from pandas_dptree.mechanisms.additive.laplace import Laplace

__all__ = ["AdditiveNoise", "FloatArray", "Gaussian", "Laplace"]

"""Generators and sources of random bits."""

from __future__ import annotations

import numpy as np

from pandas_dptree.mechanisms import sampling
from pandas_dptree.mechanisms.sampling import byte_source


def words(seed=0):
    rng = np.random.default_rng(seed)
    return lambda n: rng.integers(2**64, size=n, dtype=np.uint64)


def fixed_words(seed=0):
    """Draw the same words at each call, as for one key."""
    return lambda n: words(seed)(n)


def seeded_bytes(*seed: int) -> sampling.ByteSource:
    return byte_source(np.random.default_rng(seed))


def rng(seed=0):
    return np.random.default_rng(seed)

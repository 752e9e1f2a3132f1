"""Noisy counts of an implicit level: lone records are as rare as delta allows."""

import math

import numpy as np
import pytest

from pandas_dptree.mechanisms.private_levels.sparse_counts import large_counts
from pandas_dptree.mechanisms.sampling import byte_source
from pandas_dptree.mechanisms.truncated import TruncatedLaplace


def test_lone_records_appear_as_often_as_delta_allows_and_empty_nodes_never():
    noise = TruncatedLaplace(1.0, 0.05)
    source = byte_source(np.random.default_rng(1))
    n = 200_000
    expected = (
        math.exp(-noise.radius / noise.noise_scale)
        / np.exp(-abs(np.arange(-noise.radius, noise.radius + 1)) / noise.noise_scale).sum()
    )
    kept, noisy = large_counts(noise, np.ones(n, dtype=np.int64), source)
    assert len(kept) / n == pytest.approx(expected, abs=5 * math.sqrt(expected / n))
    assert expected <= noise.delta and (noisy == noise.radius + 1).all()
    assert not len(large_counts(noise, np.zeros(n, dtype=np.int64), source)[0])

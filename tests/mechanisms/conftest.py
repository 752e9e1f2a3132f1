"""What tests of mechanisms share."""

import functools

import pytest

from pandas_dptree.mechanisms.multiplicative.thresholds import Round

NODE_NOISE = functools.cache(Round.node_noise.fget)


@pytest.fixture(autouse=True)
def remembered_noise(monkeypatch):
    """Compute the noise of each round once: it follows from the round alone, and is used very often."""
    monkeypatch.setattr(Round, "node_noise", property(NODE_NOISE))

"""Noise that is added to counts: every kind that there is, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from pandas_dptree.mechanisms.additive.base import AdditiveNoise, FloatArray
from pandas_dptree.mechanisms.additive.gaussian import Gaussian
from pandas_dptree.mechanisms.additive.laplace import Laplace
from pandas_dptree.privacy.loss import PrivacyLoss

__all__ = [
    "MECHANISMS",
    "NOISES",
    "AdditiveNoise",
    "FloatArray",
    "Gaussian",
    "Laplace",
    "Mechanism",
    "candidate_noises",
]

Mechanism = Literal["auto", "laplace", "gaussian"]
"""How callers choose: a kind by its name, or "auto" for whichever promises the least error."""

MECHANISMS: tuple[Mechanism, ...] = get_args(Mechanism)

NOISES: Mapping[str, AdditiveNoise] = {noise.name: noise for noise in (Laplace(), Gaussian())}
"""Every kind by its name, in the order in which they are tried: of equally good ones, the first is taken."""


def candidate_noises(mechanism: Mechanism, loss: PrivacyLoss) -> list[AdditiveNoise]:
    """List the noises that callers leave to choose from.

    Parameters
    ----------
    mechanism : {"auto", "laplace", "gaussian"}
    loss : PrivacyLoss
        The privacy loss of the whole release.

    Returns
    -------
    list of AdditiveNoise
        The one of that name, whether or not it can give privacy of that kind; with ``"auto"`` all that can.
    """
    if mechanism != "auto":
        return [NOISES[mechanism]]
    return [noise for noise in NOISES.values() if noise.can_give(loss)]

"""Additive noise: every kind, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from pandas_dptree.mechanisms.additive.base import AdditiveNoise, FloatArray, Moves
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
    "Moves",
    "candidate_noises",
]

Mechanism = Literal["auto", "laplace", "gaussian"]
"""What callers choose: a kind by its name, or "auto" for the one with the least expected error."""

MECHANISMS: tuple[Mechanism, ...] = get_args(Mechanism)

NOISES: Mapping[str, AdditiveNoise] = {noise.name: noise for noise in (Laplace(), Gaussian())}
"""Every kind by its name, in the order in which they are tried: of equally good ones, the first wins."""


def candidate_noises(mechanism: Mechanism, loss: PrivacyLoss) -> list[AdditiveNoise]:
    """List the kinds of noise that `mechanism` allows for the loss of the whole release.

    A named kind is listed even if it does not support the loss; with ``"auto"``, all kinds that do are
    listed.
    """
    if mechanism != "auto":
        return [NOISES[mechanism]]
    return [noise for noise in NOISES.values() if noise.supports(loss)]

"""Noise for hierarchies whose keys are not all public: every kind, by the name of the option."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

from pandas_dptree.mechanisms.private_levels.base import LevelNoise
from pandas_dptree.mechanisms.private_levels.gated import GatedLevels
from pandas_dptree.mechanisms.private_levels.independent import IndependentLevels

__all__ = ["LEVEL_NOISES", "PRIVATE_MECHANISMS", "LevelNoise", "PrivateMechanism"]

PrivateMechanism = Literal["auto", "truncated_laplace", "gaussian"]

PRIVATE_MECHANISMS: Final[tuple[PrivateMechanism, ...]] = get_args(PrivateMechanism)

LEVEL_NOISES: Final[Mapping[str, type[LevelNoise]]] = {
    "truncated_laplace": IndependentLevels,
    "gaussian": GatedLevels,
}

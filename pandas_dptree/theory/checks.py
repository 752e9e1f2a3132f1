"""Checks of the arguments of bounds and of trees over bins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.mechanisms.arguments import whole_number
from pandas_dptree.privacy.loss import PrivacyLoss

__all__ = ["checked_alpha", "checked_bins", "checked_branching", "checked_epsilon", "checked_eta"]


def checked_alpha(alpha: float) -> float:
    """Check that a relative error is at least 0 and below 1."""
    if not (_is_number(alpha) and 0 <= alpha < 1):
        raise ArgumentError(
            "alpha", f"must be at least 0 and below 1, not {quote(alpha)}.", hint="for example alpha=0.1."
        )
    return float(alpha)


def checked_eta(eta: float) -> float:
    """Check that a failure probability is above 0 and below 1/2."""
    if not (_is_number(eta) and 0 < eta < 0.5):
        raise ArgumentError(
            "eta", f"must be above 0 and below 1/2, not {quote(eta)}.", hint="for example eta=0.1."
        )
    return float(eta)


def checked_bins(n_bins: int) -> int:
    """Check that the number of bins is a positive integer."""
    return whole_number("n_bins", n_bins, at_least=1, hint="it is the number of bins, for example 256.")


def checked_branching(branching: Sequence[int]) -> tuple[int, ...]:
    """Check that branching factors are integers of at least 2."""
    hint = "for example branching=[16, 16]: children of each node, from the root down."
    if not isinstance(branching, list | tuple | np.ndarray):
        raise ArgumentError(
            "branching", f"must be a list of whole numbers, not {quote(branching)}.", hint=hint
        )
    return tuple(
        whole_number("branching", factor, at_least=2, hint=hint, of=branching) for factor in branching
    )


def checked_epsilon(epsilon: float) -> float:
    """Check that an epsilon is a positive number."""
    PrivacyLoss(epsilon=epsilon)
    return float(epsilon)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)

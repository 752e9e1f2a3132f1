"""Checks of arguments of the bounds."""

from __future__ import annotations

import numpy as np

from pandas_dptree.errors import ArgumentError, quote

__all__ = ["checked_alpha", "checked_eta"]


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


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)

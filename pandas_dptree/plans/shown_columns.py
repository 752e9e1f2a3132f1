"""The options for further columns of a table: `confidence=` and `keep=`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

from pandas_dptree.errors import ArgumentError, quote

__all__ = ["KEPT", "Kept", "check_confidence", "check_kept"]

Kept = Literal["measurements", "linear"]
"""Further columns of a table: the measurements, with their noise scales; the unbiased estimates."""

KEPT: tuple[Kept, ...] = get_args(Kept)


def check_confidence(confidence: float | None) -> None:
    """Check the confidence of the intervals or bounds of a table."""
    if confidence is not None and (
        isinstance(confidence, bool) or not isinstance(confidence, (int, float)) or not 0 < confidence < 1
    ):
        raise ArgumentError(
            "confidence",
            f"must be a number between 0 and 1, not {quote(confidence)}.",
            hint="for example confidence=0.95; None for a table without intervals.",
        )


def check_kept(keep: Sequence[Kept] | None) -> tuple[Kept, ...]:
    """Return the further columns of a table, each once."""
    named: Any = () if keep is None else keep
    if not isinstance(named, (list, tuple)) or not all(
        isinstance(each, str) and each in KEPT for each in named
    ):
        raise ArgumentError(
            "keep",
            f"must be a list that names further columns, not {quote(keep)}.",
            hint='keep=["measurements"] adds the noisy values from which the table is computed, and '
            'keep=["linear"] the unbiased estimates.',
        )
    return tuple(each for each in KEPT if each in named)

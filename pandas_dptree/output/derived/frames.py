"""The frames that hold derived numbers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.output.crossed_tables import CrossedTable
from pandas_dptree.output.released import Released, provenance_of

__all__ = ["check_confidence", "derived_frame", "describe", "source_of"]


def derived_frame(
    released: Released | CrossedTable, columns: Mapping[Hashable, Any], **attrs: Any
) -> pd.DataFrame:
    """Return a frame of the levels and the keys of each row, and further columns.

    Its ``attrs["dp_derived"]`` says what it is, and which release it was computed from.
    """
    frame = released.table[released.row_columns].copy()
    frame.attrs = {}
    for name, values in columns.items():
        frame[name] = values
    return describe(frame, released, **attrs)


def describe(frame: pd.DataFrame, released: Released | CrossedTable, **attrs: Any) -> pd.DataFrame:
    """Let a frame say what it is, and which release it was computed from; return it."""
    frame.attrs["dp_derived"] = {**attrs, "release": source_of(released)}
    return frame


def source_of(released: Released | CrossedTable) -> dict[str, str]:
    """Return the digests of a table and of its plan, as it states them."""
    stated = provenance_of(released.table)
    return {name: stated[name] for name in ("digest", "table_digest") if name in stated}


def check_confidence(confidence: float) -> None:
    """Check the confidence of intervals."""
    number = isinstance(confidence, (int, float)) and not isinstance(confidence, bool)
    if not number or not 0 < confidence < 1:
        raise ArgumentError(
            "confidence",
            f"must be a number between 0 and 1, not {quote(confidence)}.",
            hint="for example confidence=0.95.",
        )

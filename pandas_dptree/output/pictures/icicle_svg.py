"""The icicle as SVG, for pages: widths are shares, heights pixels, so that text keeps its size."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator

import pandas as pd

from pandas_dptree.output.html import Markup, element
from pandas_dptree.output.pictures.boxes import (
    ONE_LINE,
    TWO_LINES,
    Box,
    boxes_of,
    column_ends,
    height_for,
    name_of,
    number_of,
    strength_of,
)
from pandas_dptree.output.released import Released

__all__ = ["icicle_svg"]

_LINE = "overflow:hidden;text-overflow:ellipsis;white-space:nowrap"


def icicle_svg(
    table: pd.DataFrame,
    value: Hashable | None = None,
    *,
    title: str,
    description: str,
    identifier: str = "icicle",
    name: Callable[[Released, Box], str] = name_of,
    number: Callable[[Box], str] = number_of,
) -> Markup:
    """Draw a hierarchy from left to right, each box as high as its value, stronger if it is more certain.

    `title` and `description` are what a screen reader says; `identifier` is unique on the page. The colours
    are those of the page, ``--bar`` and the text's. Values that areas cannot show are refused.
    """
    released = Released.of(table)
    shown = released.shown(value)
    height = height_for(released)
    ends = column_ends(released)
    hatching = element(
        "pattern",
        element("path", d="M0 6L6 0", stroke="var(--bar,#4f8fb3)", stroke_opacity=0.38),
        id=f"{identifier}-few", width=6, height=6, patternUnits="userSpaceOnUse",
    )  # fmt: skip
    drawn = [
        part
        for box in boxes_of(released, shown, height)
        for part in _box(
            box, ends[box.first], ends[box.last + 1],
            name(released, box), number(box),
            f"url(#{identifier}-few)" if box.pooled else None, strength_of(shown, box),
        )
    ]  # fmt: skip
    return element(
        "svg",
        element("title", title, id=f"{identifier}-title"),
        element("desc", description, id=f"{identifier}-desc"),
        element("defs", hatching),
        drawn,
        width="100%", height=f"{height:g}", role="img", class_="tall",
        aria_labelledby=f"{identifier}-title", aria_describedby=f"{identifier}-desc",
    )  # fmt: skip


def _box(
    box: Box, left: float, right: float, name: str, number: str, hatched: str | None, strength: float
) -> Iterator[Markup]:
    """Draw a box, and its name and value if there is space."""
    place = {"x": f"{left:.2f}%", "y": f"{box.top:.1f}"}
    yield element(
        "rect",
        element("title", f"{name}: {number}"),
        **place, width=f"{right - left - 0.2:.2f}%", height=f"{max(box.height - 1, 0.5):.1f}",
        fill=hatched or "var(--bar,#4f8fb3)", fill_opacity=None if hatched else strength,
    )  # fmt: skip
    if box.height >= ONE_LINE:
        two = box.height >= TWO_LINES
        number = element("span", number, style="opacity:.85")
        lines = [
            element("div", element("bdi", name), [] if two else ["  ", number], style=_LINE),
            element("div", number, style=_LINE) if two else None,
        ]
        size = "line-height:15px" if two else f"line-height:{box.height - 1:.1f}px"
        text = element("div", lines, style=f"font-size:12px;{size};padding:{'4px' if two else 0} 6px 0")
        width = f"{right - left - 0.2:.2f}%"
        yield element("foreignObject", text, **place, width=width, height=f"{box.height:.1f}")

"""What is made of released tables: pictures and pages."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import pandas_dptree as dpt
from tests.recording.cases.register import case
from tests.recording.cases.tables import counts, means, sums
from tests.recording.data import APPROXIMATE, CONCENTRATED, PEOPLE, PURE, logins, rng

COUNTS: dict[str, Any] = {"consistency": "integer", **PURE}


def _panels(axes: Any) -> list[dict[str, Any]]:
    return [
        {
            "title": each.get_title(loc="left"),
            "dots": np.asarray(each.lines[0].get_xdata(), dtype=float),
            "whiskers": len(each.collections),
            "nodes": [label.get_text() for label in each.get_yticklabels()],
            "xlabel": each.get_xlabel(),
        }
        for each in axes
    ]


@case
def levels_drawn():
    return {
        "counts": _panels(counts(**COUNTS).dp.plot.levels(n=4)),
        "intervals": _panels(counts(confidence=0.9, **CONCENTRATED).dp.plot.levels()),
        "means": _panels(means(["age", "cost"], epsilon=4.0).dp.plot.levels("cost", n=3)),
        "prefixes": _panels(
            dpt.tree_counts(
                logins(), dpt.prefixes("ip", bits=[8, 32]), rng=rng(), **APPROXIMATE
            ).dp.plot.levels(n=2)
        ),
    }


@case
def icicles_drawn():
    tables = {"counts": counts(**COUNTS), "sums": sums("age", bounds=(0, 100), **PURE)}
    figures = {name: table.dp.plot.icicle() for name, table in tables.items()}
    return {
        name: {
            "labels": list(figure.data[0].labels),
            "parents": list(figure.data[0].parents),
            "values": np.asarray(figure.data[0].values),
            "told": [list(each) for each in figure.data[0].customdata],
            "shades": np.asarray(figure.data[0].marker.colors, dtype=float),
        }
        for name, figure in figures.items()
    }


@case
def page_of_counts():
    return counts(confidence=0.9, **CONCENTRATED, **PEOPLE).dp.to_html(
        title="Visits & <clinics>", max_rows=12
    )


@case
def page_in_a_file():
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        returned = counts(**COUNTS).dp.to_html(file, max_rows=6)
        return [returned, file.read_text(encoding="utf-8") == counts(**COUNTS).dp.to_html(max_rows=6)]


@case
def page_of_sums():
    table = sums(["age", "cost"], bounds={"age": (0, 100), "cost": (0, 500)}, **APPROXIMATE)
    return table.dp.to_html(columns="cost", max_rows=12)


@case
def page_of_means():
    return means("age", bounds=(0, 100), neighbors="replace", known={"total": 600}, **PURE).dp.to_html(
        max_rows=12
    )


@case
def page_of_prefixes():
    table = dpt.tree_counts(logins(), dpt.prefixes("ip", bits=[8, 32]), rng=rng(), **APPROXIMATE)
    return table.dp.to_html(max_rows=8)


@case
def page_of_factors():
    table = counts(mechanism=dpt.Multiplicative(alpha=0.25), **APPROXIMATE)
    return table.dp.to_html(max_rows=6)


@case
def protection_without_generator():
    """What a page says of a release that does protect, and its account; its numbers are another each time."""
    options = {
        "pure": PURE,
        "approximate": {**APPROXIMATE, **PEOPLE},
        "rho": {"neighbors": "replace", "rho": 0.1},
    }
    tables = {name: counts(rng=None, known={"total": 600}, **given) for name, given in options.items()}
    return {
        name: {
            "said": re.findall("<li>(.*)</li>", table.dp.to_html(max_rows=6)),
            "table": table.drop(columns="count"),
        }
        for name, table in tables.items()
    }


@case
def page_without_account():
    table = counts(**COUNTS)
    table.attrs.clear()
    return table[table["level"].isin(["total", "region"])].dp.to_html()

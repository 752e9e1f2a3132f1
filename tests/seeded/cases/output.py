"""What is made of released tables: pictures and pages."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import pandas_dptree as dpt
from tests.seeded.cases.register import case
from tests.seeded.cases.tables import counts, means, sums
from tests.seeded.data import APPROXIMATE, CONCENTRATED, PEOPLE, PURE, logins, rng

COUNTS: dict[str, Any] = {"consistency": "integer", **PURE}


def _panels(axes: Any) -> list[dict[str, Any]]:
    return [
        {
            "title": each.get_title(loc="left"),
            "dots and ticks": [np.asarray(marks.get_xdata(), dtype=float) for marks in each.lines[-2:]],
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
                logins(), dpt.prefixes("ip", bits=[8, 32], notation="ipv4"), rng=rng(), **APPROXIMATE
            ).dp.plot.levels(n=2)
        ),
    }


@case
def icicles_drawn():
    tables = {"counts": counts(**COUNTS), "sums": sums("age", bounds=(0, 100), **PURE)}
    drawn = {}
    for name, table in tables.items():
        axes = table.dp.plot.icicle()
        drawn[name] = {
            "boxes": np.array([each.get_bbox().bounds for each in axes.patches]),
            "texts": [each.get_text() for each in [*axes.figure.texts, *axes.texts]],
        }
    return drawn


def _cells(page: str) -> list[list[str]]:
    """The texts in the rows of a page's tables."""
    rows = re.findall(r"<tr.*?</tr>", page, flags=re.DOTALL)
    cells = [re.findall(r"<t[dh].*?>(.*?)</t[dh]>", row, flags=re.DOTALL) for row in rows]
    return [[re.sub("<.*?>", " ", cell) for cell in row] for row in cells]


@case
def page_of_counts():
    page = counts(confidence=0.9, **CONCENTRATED, **PEOPLE).dp.to_html(title="A & <b>", max_rows=12)
    return {"title": re.findall("<title>(.*)</title>", page), "cells": _cells(page)}


@case
def page_of_sums():
    table = sums(["age", "cost"], bounds={"age": (0, 100), "cost": (0, 500)}, **APPROXIMATE)
    return _cells(table.dp.to_html(columns="cost", max_rows=12))


@case
def page_of_means():
    table = means("age", bounds=(0, 100), neighbors="replace", known={"total": 600}, **PURE)
    return _cells(table.dp.to_html(max_rows=12))


@case
def page_of_prefixes():
    table = dpt.tree_counts(
        logins(), dpt.prefixes("ip", bits=[8, 32], notation="ipv4"), rng=rng(), **APPROXIMATE
    )
    return _cells(table.dp.to_html(max_rows=8))


@case
def page_of_relative_errors():
    table = counts(mechanism=dpt.Multiplicative(alpha=0.25), **APPROXIMATE)
    return _cells(table.dp.to_html(max_rows=6))

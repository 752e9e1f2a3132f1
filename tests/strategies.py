"""Hypothesis strategies: ragged trees, domains, and odd frames on them."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pandas as pd

from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.tree import Tree

LABELS = ["a", "B", "total", "All", "é", "שלום", "x/y", "", " ", "None", "nan", "0"]


@st.composite
def trees(draw: st.DrawFn, max_depth: int = 5, max_leaves: int = 60) -> Tree:
    """Draw a tree of one to `max_depth` levels, uniform or ragged, with or without short paths."""
    counts, size = [], 1
    for _ in range(draw(st.integers(1, max_depth))):
        widest = max(1, min(5, max_leaves // size))
        if draw(st.booleans()):
            level = [draw(st.integers(1, widest))] * size
        else:
            level = draw(st.lists(st.integers(1, widest), min_size=size, max_size=size))
        while sum(level) > max_leaves:
            level = [1] * size
        counts.append(np.array(level))
        size = sum(level)
    return Tree(tuple(counts))


@st.composite
def paths(draw: st.DrawFn, max_depth: int = 4, max_leaves: int = 12) -> list[tuple]:
    """Draw leaf paths of one hierarchy, some of which end early (padded with None)."""
    depth = draw(st.integers(1, max_depth))
    full = draw(
        st.lists(st.tuples(*[st.sampled_from(LABELS)] * depth), min_size=1, max_size=max_leaves, unique=True)
    )
    kept: list[tuple] = []
    for path in full:
        end = draw(st.integers(1, depth))
        path = path[:end] + (None,) * (depth - end)
        clashes = any(
            all(a == b or a is None or b is None for a, b in zip(path, other, strict=True)) for other in kept
        )
        if not clashes:
            kept.append(path)
    return kept


def frame_of(rows: list[tuple], by: list[str]) -> pd.DataFrame:
    """Make a frame of text keys, missing where None."""
    return pd.DataFrame(rows, columns=by, dtype=object)


def names(depth: int) -> list[str]:
    """Name the key columns."""
    return [f"key {level}" for level in range(depth)]


@st.composite
def domains_and_rows(draw: st.DrawFn, max_rows: int = 25) -> tuple[Domain, pd.DataFrame]:
    """Draw a domain and records: in it, outside it, with gaps and missing keys."""
    leaves = draw(paths())
    by = names(len(leaves[0]))
    domain = Domain.from_frame(frame_of(leaves, by), by=by)
    odd = st.tuples(*[st.sampled_from([*LABELS, None, "outside"])] * len(by))
    rows = draw(st.lists(st.one_of(st.sampled_from(leaves), odd), max_size=max_rows))
    return domain, frame_of(rows, by)

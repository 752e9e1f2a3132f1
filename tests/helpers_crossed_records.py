"""Crossed hierarchies with all that is odd about axes, and their leaf cells by loops over rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import hypothesis.strategies as st
import numpy as np

from pandas_dptree.hierarchy.crossed_domain import CrossedDomain
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.values import key_form
from tests.strategies import LABELS, frame_of
from tests.strategies import paths as drawn_paths


@dataclass(frozen=True)
class Axis:
    """An axis as lists: the names of its keys, its leaf paths, and which of these are structural zeros."""

    by: list[str]
    paths: list[tuple]
    zeros: list[tuple]

    def domain(self):
        frame = frame_of(self.paths, self.by).assign(zero=[path in self.zeros for path in self.paths])
        return Domain.from_frame(frame, by=self.by, structural_zeros="zero")

    def node(self, row, level):
        """The node of a level above the leaf of a row; None if the row has no leaf."""
        path = tuple(key_form(row[name]) for name in self.by)
        listed = [tuple(map(key_form, each)) for each in self.paths if each not in self.zeros]
        return path[:level] if path in listed else None


def cells_of(rows, axes, ground):
    """The leaf cell of each row, as the path on each axis down to its level; None without one."""
    found = []
    for row in rows:
        cell = tuple(axis.node(row, level) for axis, level in zip(axes, ground, strict=True))
        found.append(None if None in cell else cell)
    return found


def labelled(table, domain):
    """Numbers of leaf cells that are not 0, by their paths."""
    paths = []
    for axis, level in zip(domain.axes.values(), domain.ground, strict=True):
        codes = [axis.forms[place] for place in range(level)]
        columns = zip(codes, axis.path_codes(level), strict=True)
        keys = [[None if code < 0 else forms[code] for code in each] for forms, each in columns]
        paths.append(list(zip(*keys, strict=True)) or [()])
    shaped = np.reshape(table, domain.tree.leaf_shape)
    return Counter(
        {
            tuple(path[node] for path, node in zip(paths, cell, strict=True)): number
            for cell, number in np.ndenumerate(shaped)
            if number
        }
    )


@st.composite
def crossed(draw, max_rows=20):
    """Draw axes, the domain that crosses them with some margins, and records with odd keys."""
    axes, of_axes = [], []
    for place in range(draw(st.integers(1, 3))):
        paths = draw(drawn_paths(max_depth=3, max_leaves=5))
        by = [f"{'xyz'[place]}{level}" for level in range(len(paths[0]))]
        axes.append(Axis(by, paths, draw(st.lists(st.sampled_from(paths), max_size=1))))
        odd = st.tuples(*[st.sampled_from([*LABELS[:4], None, "outside"])] * len(by))
        of_axes.append(st.one_of(st.sampled_from(paths), st.sampled_from(paths), odd))
    depths = [range(len(axis.by) + 1) for axis in axes]
    margins = st.lists(st.tuples(*map(st.sampled_from, depths)), min_size=1, max_size=3, unique=True)
    wanted = draw(st.none() | margins)
    domain = CrossedDomain(
        {f"axis {place}": axis.domain() for place, axis in enumerate(axes)},
        None if wanted is None else dict.fromkeys(wanted, 1.0),
    )
    rows = draw(st.lists(st.tuples(*of_axes), max_size=max_rows))
    names = [name for axis in axes for name in axis.by]
    return axes, domain, frame_of([sum(row, ()) for row in rows], names)

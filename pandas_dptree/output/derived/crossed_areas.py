"""Sums of cells of a crossed table, such as women in the counties of a coast."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from pandas_dptree.errors import ArgumentError, listed, quote
from pandas_dptree.estimation.intervals import error_half_widths
from pandas_dptree.estimation.least_squares import FloatArray
from pandas_dptree.hierarchy.product_tree import Margin
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.output.derived.crossed_estimates import CrossedEstimates
from pandas_dptree.output.derived.matching import as_paths, rows_of_paths

__all__ = ["Blocks"]

Block = Sequence[Sequence[int]]
"""Nodes of each axis, of which all combinations are meant."""


class Blocks:
    """Blocks of cells of a crossed table, each all combinations of some nodes of its axes."""

    def __init__(self, estimates: CrossedEstimates) -> None:
        self.estimates, self.axes = estimates, list(estimates.released.axes.items())

    def read(self, given: Any, name: Hashable) -> list[Block]:
        """Read a mapping of axes to paths, or a list of such mappings."""
        blocks = [given] if isinstance(given, Mapping) else given
        names = [axis for axis, _ in self.axes]
        if (
            not isinstance(blocks, list | tuple)
            or not blocks
            or not all(isinstance(each, Mapping) and {*each} <= {*names} for each in blocks)
        ):
            axis, own = self.axes[0]
            key = own.keys[0] if own.keys else "..."
            raise ArgumentError(
                "areas",
                f"must map {quote(name)} to paths of each axis, or to a list of such mappings; the axes are "
                f"{listed(names)}.",
                hint=f"for example {{{quote(name)}: {{{quote(axis)}: [a {key}, another {key}]}}}}; axes that "
                "are left out are added up.",
            )
        return [self._nodes(each) for each in blocks]

    def _nodes(self, given: Mapping[str, Any]) -> Block:
        found = []
        for axis, own in self.axes:
            paths = as_paths(given[axis], "areas") if axis in given else [()]
            found.append(rows_of_paths(own, paths, "areas").tolist())
        return found

    def check_apart(self, blocks: Sequence[Block], name: Hashable) -> None:
        """Refuse cells that are repeated, or parts of others: their records would be counted twice."""
        leaves = [
            [axis.leaves_below(nodes) for axis, nodes in zip(self.estimates.axes, block, strict=True)]
            for block in blocks
        ]
        twice = any((own > 1).any() for block in leaves for own in block)
        for one, other in combinations(leaves, 2):
            twice |= all((a * b).any() for a, b in zip(one, other, strict=True))
        if twice:
            raise ArgumentError(
                "areas",
                f"has overlapping cells in {quote(name)}: one is repeated, or a part of another one.",
                hint='leave it out, or say how often each mapping counts: weights={"Coast": [1, -1]}.',
            )

    def row(
        self, blocks: Sequence[Block], factors: FloatArray, confidence: float
    ) -> tuple[float, float, float, float]:
        """Return the shown sum of blocks, its standard error, and its interval, in the column's unit."""
        estimates, product = self.estimates, self.estimates.product
        weights: dict[Margin, FloatArray] = {}
        shown = linear = np.zeros(1)
        for block, factor in zip(blocks, factors.tolist(), strict=True):
            rows = self._rows(block)
            shown, linear = (
                total + factor * values[rows].sum()
                for total, values in ((shown, estimates.shown), (linear, estimates.linear))
            )
            margins = estimates.released.margin[rows]
            for margin in map(tuple, np.unique(margins, axis=0).tolist()):
                here = rows[(margins == margin).all(axis=1)]
                size = product.level_sizes[product.level_of(margin)]
                np.add.at(weights.setdefault(margin, np.zeros(size)), estimates.cells[here], factor)
        variance, fourth, step = estimates.moments_of_sum(weights)
        half = error_half_widths(variance, fourth, step, confidence)
        unit = estimates.quantity.unit
        lower, upper = estimates.quantity.intervals(
            linear,
            half,
            shown,
            least=estimates.least if (factors >= 0).all() else -np.inf,
            whole=not (factors % 1).any(),
        )
        return float(shown[0]) * unit, float(variance[0]) ** 0.5 * unit, float(lower[0]), float(upper[0])

    def _rows(self, block: Block) -> IntArray:
        """Return the rows of all cells of a block."""
        nodes = np.stack([each.reshape(-1) for each in np.meshgrid(*block, indexing="ij")], axis=1)
        rows = self.estimates.released.rows_at(nodes)
        if (rows < 0).any():
            pairs = zip(self.axes, nodes[rows < 0][0].tolist(), strict=True)
            named = {axis: own.keys[own.depth[node] - 1] for (axis, own), node in pairs if own.depth[node]}
            raise ArgumentError(
                "areas",
                f"needs a margin that the table does not show: {quote(named)}.",
                hint="release that margin, too, or name cells of a finer one that the table shows.",
            )
        return rows

"""The linear estimates of a released crossed table, and the errors of what is computed from its cells.

As for tables of one hierarchy, variances follow from what the table states and from its rows; they are
compared with its standard errors.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.estimation.crossed import CrossedSquares, crossed_squares
from pandas_dptree.estimation.crossed_covariances import covariances_with_sum, moments_of_sum
from pandas_dptree.estimation.least_squares import LEAST_VARIANCE, FloatArray
from pandas_dptree.hierarchy.crossed_known import CrossedKnown
from pandas_dptree.hierarchy.margin_names import margin_name
from pandas_dptree.hierarchy.product_tree import Margin, ProductTree
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.additive import NOISES
from pandas_dptree.output.additive import stated_of
from pandas_dptree.output.crossed_tables import CrossedTable
from pandas_dptree.output.derived.crossed_axes import WHOLE_TABLE, AxisNodes
from pandas_dptree.output.derived.estimates import Quantity, check_whole, linear_of, quantity_of
from pandas_dptree.output.released import provenance_of

__all__ = ["CrossedEstimates"]


@dataclass(frozen=True, eq=False)
class CellNoise:
    """The noise of the margins, and what it adds to an estimate: `factor` times its own.

    `squares` is None if each number is its own measurement.
    """

    product: ProductTree
    variances: FloatArray
    fourth_cumulants: FloatArray
    known: CrossedKnown
    squares: CrossedSquares | None
    factor: float

    @cached_property
    def of_margins(self) -> Sequence[FloatArray]:
        """The variance of each cell of each margin, folded where all agree."""
        if self.squares is not None:
            return [self.factor**2 * each for each in self.squares.variances]
        pairs = zip(self.variances, self.known.exact, strict=True)
        return [self.factor**2 * np.where(exact, 0.0, variance) for variance, exact in pairs]

    def covariances(self, margin: Margin, place: int, level: int) -> FloatArray:
        """Return the covariance of each cell of a margin with the one above it, at a level of one axis."""
        if self.squares is not None:
            return self.factor**2 * self.squares.covariances(margin, place, level)
        itself = margin[place] == level
        return self.of_margins[self.product.level_of(margin)] * itself

    def covariances_with_total(self) -> Sequence[FloatArray | None]:
        """Return the covariance of each cell of each margin with the grand total."""
        total = self.product.margins[0]
        if self.squares is None:
            none = [np.zeros(1)] * (len(self.product.margins) - 1)
            return [self.of_margins[0], *none]
        found = covariances_with_sum(self.squares, {total: np.ones(1)})
        return [None if each is None else self.factor**2 * each for each in found]

    def moments_of_sum(self, weights: Mapping[Margin, FloatArray]) -> FloatArray:
        """Return the variance, the fourth cumulant and the step of the error of a weighted sum of cells."""
        if self.squares is not None:
            found = moments_of_sum(self.squares, list(self.fourth_cumulants), weights)
        else:
            levels = [(self.product.level_of(margin), own.reshape(-1)) for margin, own in weights.items()]
            own = [np.where(self.known.exact[level], 0.0, each) for level, each in levels]
            pairs = list(zip((level for level, _ in levels), own, strict=True))
            variance = sum(self.variances[level] * float((each**2).sum()) for level, each in pairs)
            fourth = sum(self.fourth_cumulants[level] * float((each**4).sum()) for level, each in pairs)
            found = variance, fourth, min(sum(float((each**4).sum()) for _, each in pairs) ** 0.25, 1.0)
        return np.array(found) * [self.factor**2, self.factor**4, abs(self.factor)]

    @property
    def most_kurtosis(self) -> float:
        """The largest excess kurtosis of a measurement, which that of no sum of them exceeds."""
        measured = np.isfinite(self.variances)
        return float((self.fourth_cumulants[measured] / self.variances[measured] ** 2).max(initial=0.0))


@dataclass(frozen=True, eq=False)
class CrossedEstimates:
    """One column of a whole crossed table, row by row in its units, with the noises that it is made of.

    `axes` has the nodes of each axis as a tree, `product` crosses these, and `cells` says which cell of its
    margin each row is.
    """

    released: CrossedTable
    column: Hashable
    quantity: Quantity
    shown: FloatArray
    linear: FloatArray
    axes: Sequence[AxisNodes]
    product: ProductTree
    cells: IntArray
    noises: Sequence[CellNoise]

    @classmethod
    def of(
        cls, table: pd.DataFrame, column: Hashable | None, *, argument: str = "released"
    ) -> CrossedEstimates:
        """Read a crossed table; refuse, with the reason, one without what derived numbers need."""
        released = CrossedTable.of(table)
        shown = released.shown(column, argument="column")
        quantity = quantity_of(table, shown.name, argument)
        if quantity.shown not in ("count", "sum"):
            raise ArgumentError(
                "column",
                f"holds means: {quote(shown.name)}. A mean is a sum divided by a count, whose errors the "
                "table does not show.",
                hint='release the sum and the count with tree_agg and keep=["linear"].',
            )
        check_whole(table, argument)
        linear = shown.numbers if quantity.is_linear else linear_of(table, shown.name, argument)
        axes = [AxisNodes.of(axis, argument) for axis in released.axes.values()]
        product = ProductTree(tuple(axis.tree for axis in axes))
        noises = [_noise(table, shown.name, product, released, quantity, 1.0, argument)]
        if quantity.middle:
            factor = float(round(quantity.middle / quantity.unit))
            noises.append(_noise(table, quantity.count, product, released, quantity, factor, argument))
        unit = quantity.unit
        found = cls(
            released, shown.name, quantity, shown.numbers / unit, linear / unit, axes, product,
            _cells(released, axes, product, argument), noises,
        )  # fmt: skip
        if shown.error is None or not np.allclose(
            np.sqrt(found.variance) * unit, shown.error, rtol=1e-6, atol=1e-12
        ):
            raise ArgumentError(
                argument,
                "has standard errors that do not follow from its noise scales and rows: it was changed, or "
                "does not show all nodes of its axes.",
                hint=WHOLE_TABLE,
            )
        return found

    @property
    def least(self) -> float:
        """The least that a cell can hold."""
        return -np.inf if self.quantity.signed else 0.0

    @cached_property
    def variance(self) -> FloatArray:
        """The variance of each row's error."""
        return sum((self._by_row(each.of_margins) for each in self.noises), np.zeros(len(self.cells)))

    @cached_property
    def steps(self) -> FloatArray:
        """A bound on the largest weight of a measurement in each row's error.

        The weight of a measurement of variance R is the covariance with its estimate, of variance at most R,
        divided by R.
        """
        least = min(float(each.variances.min()) for each in self.noises)
        most = max(abs(each.factor) for each in self.noises)
        return most * np.minimum(np.sqrt(self.variance / least), 1.0)

    @property
    def kurtoses(self) -> list[float]:
        """The least and the largest excess kurtosis that an error can have."""
        most = max(each.most_kurtosis for each in self.noises)
        return [0.0, most] if most > 1e-3 else [0.0]

    def bases(self, axis: str | None, level: int) -> IntArray:
        """Return the row of the cell above each one, at a level of an axis or the grand total; -1 without."""
        nodes = self.released.nodes.copy()
        for place, (name, own) in enumerate(zip(self.released.axes, self.axes, strict=True)):
            if axis is None or name == axis:
                nodes[:, place] = own.above(level)[nodes[:, place]]
        return self.released.rows_at(nodes)

    def covariances(self, axis: str | None, level: int) -> FloatArray:
        """Return the covariance of each row with that of `bases`."""
        total = np.zeros(len(self.cells))
        for noise in self.noises:
            if axis is None:
                total += self._by_row(noise.covariances_with_total())
                continue
            place = [*self.released.axes].index(axis)
            total += self._by_row(
                [
                    noise.covariances(margin, place, level)
                    if margin[place] >= level and margin in self._rows
                    else None
                    for margin in self.product.margins
                ]
            )
        return total

    def moments_of_sum(
        self, weights: Mapping[Margin, FloatArray]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the variance, the fourth cumulant and the step of a weighted sum of cells, an array each."""
        variance, fourth, step = np.stack([each.moments_of_sum(weights) for each in self.noises], axis=1)
        return variance.sum(keepdims=True), fourth.sum(keepdims=True), step.max(keepdims=True)

    @cached_property
    def _rows(self) -> dict[Margin, IntArray]:
        return dict(self.released.margins)

    def _by_row(self, of_margins: Sequence[FloatArray | None]) -> FloatArray:
        """Return values of the cells of each margin row by row; nan where there are none."""
        values = np.full(len(self.cells), np.nan)
        for margin, rows in self._rows.items():
            own = of_margins[self.product.level_of(margin)]
            if own is not None:
                values[rows] = own[0] if len(own) == 1 else own[self.cells[rows]]
        return values


def _cells(
    released: CrossedTable, axes: Sequence[AxisNodes], product: ProductTree, argument: str
) -> IntArray:
    """Return which cell of its margin each row is; refuse margins with fewer rows than cells."""
    cells = np.empty(len(released.nodes), dtype=np.int64)
    for margin, rows in released.margins:
        positions = [axis.position[nodes] for axis, nodes in zip(axes, released.nodes[rows].T, strict=True)]
        cells[rows] = np.ravel_multi_index(tuple(positions), product.cell_shape(margin))
        if len(rows) != product.listed(product.level_of(margin)).sum():
            raise ArgumentError(argument, "lacks rows of a margin.", hint=WHOLE_TABLE)
    return cells


def _noise(
    table: pd.DataFrame, column: Hashable, product: ProductTree, released: CrossedTable,
    quantity: Quantity, factor: float, argument: str,
) -> CellNoise:  # fmt: skip
    """Read the noise of a column from what the table states; its variances are in units of the column."""
    scales: Mapping[str, float] = stated_of(provenance_of(table), column)["noise_scale"]
    unit = quantity.unit if factor == 1.0 else 1.0
    keys = {axis: own.keys for axis, own in released.axes.items()}
    names = [margin_name(keys, margin) for margin in product.margins]
    if not {*scales} <= {*names}:
        raise ArgumentError(
            argument, "does not show all levels of its axes that were measured.", hint=WHOLE_TABLE
        )
    kind = NOISES[quantity.mechanism]
    variances, fourth = np.full(len(names), np.inf), np.zeros(len(names))
    for place, name in enumerate(names):
        if name in scales:
            variances[place] = max(float(kind.variance(scales[name] / unit)), LEAST_VARIANCE)
            fourth[place] = float(kind.fourth_cumulant(scales[name] / unit))
    known = _known(table, column, product, argument)
    combined = quantity.consistency != "none"
    squares = crossed_squares(product, variances, known) if combined else None
    return CellNoise(product, variances, fourth, known, squares, factor)


def _known(table: pd.DataFrame, column: Hashable, product: ProductTree, argument: str) -> CrossedKnown:
    """Read what was known beforehand from the plan that the table holds."""
    if not stated_of(provenance_of(table), column).get("known"):
        return CrossedKnown.nothing(product)
    try:
        plan: dict[str, Any] = json.loads(table.attrs["dp_plan"])
        own = dict(plan["plans"])[str(column)] if "plans" in plan else plan
        return CrossedKnown.from_dict(product, own["known"])
    except (LookupError, TypeError, ValueError):
        raise ArgumentError(
            argument, "holds counts that were known beforehand, and lacks its plan.", hint=WHOLE_TABLE
        ) from None

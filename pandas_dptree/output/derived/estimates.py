"""The linear estimates of a released table, and the errors of whatever is computed from them.

A table states its noise scales, and its rows are the tree. So the variances of least squares follow from the
table; they are compared with its standard errors.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.estimation.covariance import coefficients, moments
from pandas_dptree.estimation.intervals import (
    error_half_widths,
    error_steps,
    estimate_cumulants,
    intervals,
)
from pandas_dptree.estimation.joint_cumulants import joint_cumulants
from pandas_dptree.estimation.least_squares import LEAST_VARIANCE, FloatArray, Variances, propagate
from pandas_dptree.estimation.ratios import independent
from pandas_dptree.hierarchy.names import ROOT
from pandas_dptree.hierarchy.tree import IntArray, Tree
from pandas_dptree.mechanisms.additive import NOISES, AdditiveNoise
from pandas_dptree.output.additive import stated_of
from pandas_dptree.output.crossed_columns import axes_of, value_columns
from pandas_dptree.output.frames import prefix_of
from pandas_dptree.output.released import Released, provenance_of
from pandas_dptree.output.table_digest import state_digest, stated_digest, table_digest

__all__ = ["Estimates", "Quantity", "check_whole", "level_of", "linear_of", "quantity_of", "with_linear"]

_WHOLE_TABLE = "use the table as it was released or read by dpt.read_file, and select rows of the result."
_LINEAR = 'release with keep=["linear"]; for a table that a ledger keeps, use ledger.table(n, linear=True).'


@dataclass(frozen=True, slots=True)
class Quantity:
    """What a table states about one column: how it is shown, its unit, and how it was estimated.

    `scales` are those of the noise, in the unit of the column. Sums that were measured from the `middle` of
    their bounds, and shown with that middle for each record, have the noise of the `count`, too. Counts of
    distinct units have the noise of their `excess`, on each level above the last: its scale, and in how many
    nodes of the next level a unit is counted.
    """

    shown: str
    unit: float
    bounds: tuple[float, float]
    consistency: str
    fit: str
    scales: Sequence[float | None]
    mechanism: str
    middle: float
    count: str
    count_scales: Sequence[float | None]
    excess: Sequence[tuple[float | None, int]]

    @property
    def signed(self) -> bool:
        """Whether values of single records may be negative."""
        return self.bounds[0] < 0

    @property
    def is_linear(self) -> bool:
        """Whether the shown numbers are themselves the unbiased estimates."""
        return self.consistency in ("linear", "none") or (self.signed and self.consistency == "nonnegative")

    def intervals(
        self, linear: FloatArray, half: FloatArray, shown: FloatArray, *, least: float, whole: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return intervals in the column's unit, moved inwards to whole units and widened to the shown."""
        lower, upper = intervals(linear, half, least, np.inf, whole=whole, shown=shown)
        return lower * self.unit, upper * self.unit


def check_whole(table: pd.DataFrame, argument: str) -> None:
    """Refuse a table with other values than the digest that it states is of."""
    if stated_digest(table) not in (None, table_digest(table)):
        raise ArgumentError(
            argument,
            "is not the whole table as it was released: rows or columns were selected, moved or changed.",
            hint=_WHOLE_TABLE,
        )


def quantity_of(table: pd.DataFrame, column: Hashable, argument: str = "released") -> Quantity:
    """Read what a table states about a column; refuse tables that state no noise of estimates by trees."""
    provenance = provenance_of(table)
    several = dict(provenance.get("quantities", {}))
    stated = stated_of(provenance, column)
    mechanism, scales = stated.get("mechanism"), stated.get("noise_scale")
    if not stated:
        raise ArgumentError(
            argument,
            'states no noise: it has no attrs["dp"].',
            hint="many operations on frames lose attrs, and so do most files: " + _WHOLE_TABLE,
        )
    if stated.get("shown") == "mean":  # its errors are those of the table, whatever they are made of
        scales = stated.get("noise_scale", {})
    if mechanism not in NOISES or not isinstance(scales, Mapping) or "consistency" not in stated:
        why = (
            "has private keys or an implicit tree: nodes that it does not show have unknown counts"
            if "other" in table
            else "is not of additive noise on a public hierarchy: its errors have no covariances"
        )
        raise ArgumentError(
            argument, f"{why}.", hint="release counts of public keys, or read its bounds row by row."
        )
    excess, max_nodes = (stated.get(name, {}) for name in ("excess_noise_scale", "max_nodes"))
    both = isinstance(excess, Mapping) and isinstance(max_nodes, Mapping)
    if not both or {len(excess), len(max_nodes)} not in ({0}, {len(scales) - 1}):
        raise ArgumentError(
            argument, "states a noise of excesses that does not fit its levels.", hint=_WHOLE_TABLE
        )
    low, high = stated.get("bounds", (0.0, np.inf))
    return Quantity(
        shown=stated.get("shown") or stated.get("counted") or ("sum" if "column" in stated else "count"),
        unit=float(stated.get("granularity", 1.0)),
        bounds=(low, high),
        consistency=stated["consistency"],
        fit=stated.get("fit", "totals"),
        scales=list(scales.values()),
        mechanism=str(mechanism),
        middle=float(stated.get("middle", 0.0)),
        count=str(stated.get("count", "")),
        count_scales=list(several[stated["count"]]["noise_scale"].values()) if "middle" in stated else [],
        excess=list(zip(excess.values(), max_nodes.values(), strict=True)),
    )


def linear_of(table: pd.DataFrame, column: Hashable, argument: str, *, fit: str = "totals") -> FloatArray:
    """Return the unbiased estimates of a column, or refuse a table that does not show them."""
    name = _column_of_linear(column)
    if name in table:
        return table[name].to_numpy(dtype=np.float64)
    if fit == "joint":
        raise ArgumentError(
            argument,
            'has estimates by fit="joint", which moves totals: errors around them are not known, and it '
            "lacks the unbiased estimates.",
            hint=_LINEAR,
        )
    raise ArgumentError(argument, "lacks the unbiased estimates behind its numbers.", hint=_LINEAR)


def _column_of_linear(column: Hashable) -> str:
    return f"{prefix_of(None if column == 'count' else column)}linear"


@dataclass(frozen=True, eq=False)
class Noise:
    """The noise of the measurements of each node, and what it adds to an estimate: `factor` times its own.

    Errors are independent sums of such noises. `noise` has the variances, inf where nothing was measured.
    """

    tree: Tree
    noise: Sequence[FloatArray]
    fourth_cumulants: Sequence[float]
    combined: bool
    factor: float = 1.0
    excess: Sequence[tuple[float, float]] = ()
    """Of the excesses of each level, the variance and the fourth cumulant; empty where counts add up."""

    @classmethod
    def of(
        cls, tree: Tree, kind: AdditiveNoise, scales: Sequence[float | None],
        known: Sequence[npt.NDArray[np.bool_]], *, combined: bool, factor: float = 1.0,
        excess: Sequence[tuple[float, float]] = (),
    ) -> Noise:  # fmt: skip
        """Return the noise of levels with these scales, which known nodes do not have."""
        noise, fourth = [], []
        for scale, exact in zip(scales, known, strict=True):
            here = np.inf if scale is None else max(float(kind.variance(scale)), LEAST_VARIANCE)
            noise.append(np.where(exact, 0.0, here))
            fourth.append(0.0 if scale is None else float(kind.fourth_cumulant(scale)))
        return cls(tree, noise, fourth, combined, factor, excess)

    @cached_property
    def variances(self) -> Variances:
        """The variances of least squares."""
        return propagate(self.tree, self.noise, [variance for variance, _ in self.excess] or None)

    @cached_property
    def _cumulants(self) -> tuple[list[FloatArray], list[FloatArray]]:
        """The variances and the fourth cumulants of the measurements, 0 where there is none."""
        second, fourth = [], []
        for kappa, noise in zip(self.fourth_cumulants, self.noise, strict=True):
            measured = np.isfinite(noise) & (noise > 0)
            second.append(np.where(measured, noise, 0.0))
            fourth.append(np.where(measured, kappa, 0.0))
        return second, fourth

    @cached_property
    def moments(self) -> tuple[list[FloatArray], list[FloatArray], list[FloatArray]]:
        """The variance, the fourth cumulant and the step of each node's error, level by level."""
        second, fourth = self._cumulants
        steps = [(v > 0).astype(float) for v in second]
        if self.combined:
            steps = error_steps(self.tree, self.variances)
            fourth = estimate_cumulants(self.tree, self.variances, fourth, [four for _, four in self.excess])
            second = list(self.variances.final)
        factors = self.factor**2, self.factor**4, abs(self.factor)
        found = zip((second, fourth, steps), factors, strict=True)
        second, fourth, steps = ([factor * each for each in levels] for levels, factor in found)
        return second, fourth, steps

    def joint_cumulants(self, renew: Sequence[bool]) -> list[list[FloatArray]]:
        """Return the eight joint cumulants of each node with an ancestor: see there."""
        pairs = list(zip(*self._cumulants, strict=True))
        factors = [self.factor**2] * 3 + [self.factor**4] * 5
        return [
            [factor * each for factor, each in zip(factors, level, strict=True)]
            for level in joint_cumulants(self.tree, self.variances, pairs, renew)
        ]

    def moments_of_sum(self, weights: Sequence[FloatArray]) -> FloatArray:
        """Return the variance, the fourth cumulant and the step of the error of a weighted sum of nodes."""
        parts = coefficients(self.tree, self.variances, weights) if self.combined else list(weights)
        found = np.array(moments(self.variances, self._cumulants[1], parts))
        return found * [self.factor**2, self.factor**4, abs(self.factor)]


@dataclass(frozen=True, eq=False)
class Estimates:
    """One column of a whole released table, row by row in its units, with the noises that it is made of.

    `nodes` has for each level of the tree the row of each node; nodes that continue a short path have the row
    of its end.
    """

    released: Released
    column: Hashable
    quantity: Quantity
    shown: FloatArray
    linear: FloatArray
    tree: Tree
    nodes: Sequence[IntArray]
    noises: Sequence[Noise]

    @classmethod
    def of(
        cls, table: pd.DataFrame, column: Hashable | None, *, argument: str = "released",
        released: Released | None = None,
    ) -> Estimates:  # fmt: skip
        """Read a released table; refuse, with the reason, one without what derived numbers need."""
        released = Released.of(table) if released is None else released
        shown = released.shown(column, argument="column")
        quantity = quantity_of(table, shown.name, argument)
        if quantity.shown not in ("count", "sum", "units"):
            raise ArgumentError(
                "column",
                f"holds means: {quote(shown.name)}. A mean is a sum divided by a count, whose errors the "
                "table does not show.",
                hint='release the sum and the count with tree_agg and keep=["linear"].',
            )
        check_whole(table, argument)
        linear = shown.numbers
        if not quantity.is_linear or _column_of_linear(shown.name) in table:
            linear = linear_of(table, shown.name, argument, fit=quantity.fit)
        tree, nodes = _tree_of(released, len(quantity.scales), argument)
        known = np.zeros(len(table)) == shown.error
        kind, unit, combined = NOISES[quantity.mechanism], quantity.unit, quantity.consistency != "none"
        scales = [None if scale is None else scale / unit for scale in quantity.scales]
        excess = _excess_noise(kind, quantity.excess)
        noises = [
            Noise.of(tree, kind, scales, [known[rows] for rows in nodes], combined=combined, excess=excess)
        ]
        if quantity.middle:
            counts = [name for name in released.columns if str(name) == quantity.count]
            public = np.zeros(len(table)) == released.shown(counts[0]).error if counts else known
            noises.append(
                Noise.of(
                    tree, kind, quantity.count_scales, [public[rows] for rows in nodes],
                    combined=combined, factor=float(round(quantity.middle / unit)),
                )
            )  # fmt: skip
        found = cls(released, shown.name, quantity, shown.numbers / unit, linear / unit, tree, nodes, noises)
        if shown.error is None or not np.allclose(
            np.sqrt(found.moments[0]) * unit, shown.error, rtol=1e-6, atol=1e-12
        ):
            raise ArgumentError(
                argument,
                "has standard errors that do not follow from its noise scales and rows: it was changed.",
                hint=_WHOLE_TABLE,
            )
        return found

    @property
    def least(self) -> float:
        """The least that a node can hold."""
        return -np.inf if self.quantity.signed else 0.0

    @property
    def combined(self) -> bool:
        """Whether estimates combine the measurements of all levels; otherwise each is its own measurement."""
        return self.quantity.consistency != "none"

    @cached_property
    def moments(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The variance, the fourth cumulant and the step of each row's error."""
        parts = [[self._by_row(levels) for levels in each.moments] for each in self.noises]
        variance, fourth, steps = map(np.stack, zip(*parts, strict=True))
        return variance.sum(axis=0), fourth.sum(axis=0), steps.max(axis=0)

    def half_widths(self, confidence: float) -> FloatArray:
        """Return half the width of each row's interval."""
        return error_half_widths(*self.moments, confidence)

    def ancestors(self, level: int | None) -> IntArray:
        """Return each row's ancestor on a level, or its parent; -1 if there is none."""
        parent, depth = self.released.parent, self.released.depth
        if level is None:
            return parent
        above = np.where(depth == level, np.arange(len(depth)), -1)
        for below in range(level + 1, int(depth.max()) + 1):
            rows = depth == below
            above[rows] = above[parent[rows]]
        return above

    def joint_moments(self, level: int | None) -> list[FloatArray]:
        """Return the eight joint cumulants of each row with its ancestor on a level, or its parent."""
        variance, fourth, _ = self.moments
        above = self.ancestors(level)
        if self.combined:
            renew = [level is None or depth <= level for depth in range(self.tree.depth)]
            parts = [each.joint_cumulants(renew) for each in self.noises]
            joint = [
                np.sum([self._by_row([level[place] for level in levels]) for levels in parts], axis=0)
                for place in range(8)
            ]
        else:
            joint = independent((variance, variance[above]), (fourth, fourth[above]))
        itself = above == np.arange(len(above))
        return [
            np.where(itself, (variance if place < 3 else fourth), each) for place, each in enumerate(joint)
        ]

    def error_of_sum(self, rows: IntArray, weights: FloatArray, confidence: float) -> tuple[float, float]:
        """Return the standard error of a weighted sum of rows, and half the width of its interval."""
        weight = np.zeros(len(self.shown))
        np.add.at(weight, rows, weights)
        parts = [
            np.where(self.released.depth[rows] == level, weight[rows], 0.0)
            for level, rows in enumerate(self.nodes)
        ]
        variance, fourth, step = np.stack([each.moments_of_sum(parts) for each in self.noises], axis=1)
        total = variance.sum(keepdims=True)
        half = error_half_widths(total, fourth.sum(keepdims=True), step.max(keepdims=True), confidence)
        return float(total[0]) ** 0.5, float(half[0])

    def _by_row(self, levels: Sequence[Any]) -> FloatArray:
        """Return level values of the rows of the table."""
        return _by_row(self.released, self.nodes, levels)


def _excess_noise(
    kind: AdditiveNoise, excess: Sequence[tuple[float | None, int]]
) -> list[tuple[float, float]]:
    """Return the variances and fourth cumulants of excesses: those that are known to be 0 have none."""
    return [
        (0.0, 0.0) if most == 1
        else (np.inf, 0.0) if scale is None
        else (max(float(kind.variance(scale)), LEAST_VARIANCE), float(kind.fourth_cumulant(scale)))
        for scale, most in excess
    ]  # fmt: skip


def with_linear(table: Any, linear: Mapping[str, Sequence[Any]]) -> Any:
    """Add the linear estimates of a table's counts and sums, level by level, unless it shows them already."""
    if not isinstance(table, pd.DataFrame) or not linear:
        return table
    crossed = bool(axes_of(table))
    if not crossed and "level" not in table:
        return table
    released = None if crossed else Released.of(table)
    nodes: list[IntArray] = []
    added = table.copy()
    for column in value_columns(table) if released is None else released.columns:
        name = _column_of_linear(column)
        if name not in table and str(column) in linear and quantity_of(table, column).shown != "mean":
            levels = linear[str(column)]
            if released is None:
                added[name] = np.concatenate(levels)
                continue
            nodes = nodes or _tree_of(released, len(levels), "released")[1]
            added[name] = _by_row(released, nodes, levels)
    added.attrs = deepcopy(table.attrs)
    return state_digest(added)


def _by_row(released: Released, nodes: Sequence[IntArray], levels: Sequence[Any]) -> FloatArray:
    """Return level values of the rows of a table."""
    values = np.empty(len(released.depth))
    for depth, (rows, level) in enumerate(zip(nodes, levels, strict=True)):
        listed = released.depth[rows] == depth
        values[rows[listed]] = np.broadcast_to(level, len(rows))[listed]
    return values


def _tree_of(released: Released, n_levels: int, argument: str) -> tuple[Tree, list[IntArray]]:
    """Return the tree of a whole table, short paths continued, and the row of each node of each level."""
    depth, parent = released.depth, released.parent
    incomplete = ArgumentError(
        argument,
        "does not have all rows in the order of its release, or shows levels that its noise does not state.",
        hint=_WHOLE_TABLE,
    )
    if n_levels != len(released.keys) + 1 or depth[0] != 0 or (parent[1:] < 0).any():
        raise incomplete
    n_children = np.bincount(parent[1:], minlength=len(depth))
    nodes, counts = [np.zeros(1, dtype=np.int64)], []
    for level in range(1, n_levels):
        own = n_children[nodes[-1]]
        counts.append(np.maximum(own, 1))
        below = np.repeat(nodes[-1], counts[-1])
        inner, rows = np.repeat(own > 0, counts[-1]), np.flatnonzero(depth == level)
        if np.count_nonzero(inner) != len(rows) or (below[inner] != parent[rows]).any():
            raise incomplete
        below[inner] = rows
        nodes.append(below)
    return Tree(tuple(counts)), nodes


def level_of(released: Released, level: Hashable, argument: str) -> int:
    """Return the place of a level by its name."""
    names = [ROOT, *released.keys]
    if level not in names:
        raise ArgumentError(
            argument,
            f"is not a level: {quote(level)}.",
            hint=f"the levels are {', '.join(map(str, names))}.",
        )
    return names.index(level)

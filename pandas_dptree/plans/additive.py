"""The release, described before it happens."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.bounds import gap_of
from pandas_dptree.errors import ArgumentError, is_name, naming, told
from pandas_dptree.estimation.consistency import Consistency, Fit
from pandas_dptree.estimation.intervals import estimate_cumulants, half_widths
from pandas_dptree.estimation.least_squares import LEAST_VARIANCE, FloatArray, Variances, propagate
from pandas_dptree.hierarchy.domain import Domain, level_names, source_in_words
from pandas_dptree.hierarchy.known import Known
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import AdditiveNoise
from pandas_dptree.output.frames import check_names
from pandas_dptree.output.plots import plot_level_errors
from pandas_dptree.planning.nodes import node_noise_scales
from pandas_dptree.planning.objective import Objective, cost_weights, expected_cost
from pandas_dptree.planning.split import Split
from pandas_dptree.plans.compare import compare, level_alpha_rmse, variant
from pandas_dptree.plans.execute import release
from pandas_dptree.plans.serialize import read_plan, write_plan
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.quantity import COUNT, Quantity
from pandas_dptree.privacy.sensitivity import Neighbors, Sensitivity
from pandas_dptree.privacy.unit import protected

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Plan"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Plan:
    """What a release will measure, with how much noise, and how accurate it will be.

    Made by `pandas_dptree.plan`. A plan is a function of the domain and the privacy parameters alone:
    it can be printed and discussed before anything is spent.

    Attributes
    ----------
    tree : Tree
        The shape of the hierarchy.
    domain : Domain or None
        Its labels; None for a plan of numbers alone.
    loss : PrivacyLoss
        The privacy loss of one release.
    noise : AdditiveNoise
        The kind of noise.
    neighbors : {"add_remove", "replace"}
        What may differ between neighbouring data sets.
    privacy_unit : hashable or None
        The column that names whom to protect; None where each row is protected by itself.
    max_contributions : int
        How many rows of a unit are counted.
    quantity : Quantity
        What is added up: the records, or the values of a column.
    known : Known
        Which counts are public already, and how small the others can be.
    consistency : {"none", "linear", "nonnegative", "integer"}
        How the noisy nodes become estimates.
    fit : {"totals", "adaptive", "joint"}
        How negative estimates are mended.
    confidence : float or None
        How often an interval holds the true value; None for a table without intervals.
    keep_measurements : bool
        Whether the table shows the noisy values that it was made from.
    split : {"optimal", "uniform", "geometric", "nodes", "given"}
        How the budget was split.
    objective : {"levels", "cells", "worst"}
        Which error the plan is judged by.
    level_weights : numpy.ndarray, shape (n_levels,)
        How much the error of each level matters.
    node_shares : tuple of numpy.ndarray, shape (level_sizes[l],) or (1,)
        For each level, its nodes' part of the budget. On each path from the root to a leaf they sum to one.
    node_noise_scales : tuple of numpy.ndarray, shape (level_sizes[l],) or (1,)
        For each level, the noise scales of its nodes, in units of the quantity (records, or steps of the
        grid of values); inf where nothing is measured.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> plan = dpt.plan(dpt.Tree.from_branching([2, 3]), epsilon=1.0, split="uniform")
    >>> plan.noise_scales.round(3).tolist()
    [3.0, 3.0, 3.0]
    """

    tree: Tree
    domain: Domain | None
    loss: PrivacyLoss
    noise: AdditiveNoise
    neighbors: Neighbors
    privacy_unit: Hashable | None
    max_contributions: int
    quantity: Quantity
    known: Known
    consistency: Consistency
    fit: Fit
    confidence: float | None
    keep_measurements: bool
    split: Split | Literal["given"]
    objective: Objective
    level_weights: FloatArray
    node_shares: tuple[FloatArray, ...]
    node_noise_scales: tuple[FloatArray, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Check the shares, and find the noise that they allow."""
        unit, most = protected(self.privacy_unit, self.max_contributions, taken=self.level_names[1:])
        object.__setattr__(self, "privacy_unit", unit)
        object.__setattr__(self, "max_contributions", most)
        column = self.quantity.column
        if not is_name(column) or (column is None and self.quantity != COUNT):
            raise ArgumentError(
                "column",
                f"must name what is added up, not {told(column)}.",
                hint=naming("column", "income", column),
            )
        if column is not None:
            check_names(self.level_names[1:], [column], argument="column")
            if any(least.any() for least in self.known.least):
                raise ArgumentError(
                    "known", "holds counts, which say nothing of sums.", hint="know nothing but empty leaves."
                )
        cost_weights(self._n_listed, self.objective, self.level_weights)  # raises if they are none
        _check_display(self.confidence, self.keep_measurements)
        fits = len(self.node_shares) == self.tree.depth + 1 and all(
            share.shape in {(1,), (size,)} and np.isfinite(share).all() and (share >= 0).all()
            for share, size in zip(self.node_shares, self.tree.level_sizes, strict=True)
        )
        must_measure = np.arange(self.tree.depth + 1) >= (
            0 if self.consistency == "none" else self.tree.depth
        )
        if not fits or not all(
            (exact | (share > 0)).all()
            for share, exact, needed in zip(self.node_shares, self.known.exact, must_measure, strict=True)
            if needed
        ):
            raise ArgumentError(
                "split",
                "must give every node a share of at least 0, and the leaves more.",
                hint='with consistency="none", so does every node that is released, unless it is known.',
            )
        by_level = all(len(share) == 1 for share in self.node_shares)
        if not by_level and not self.noise.euclidean:
            raise ArgumentError(
                "split", "can differ from node to node with Gaussian noise alone.", hint="split by level."
            )
        if not any(share.any() for share in self.node_shares):  # all is known
            scales = tuple(np.full(1, np.inf) for _ in self.node_shares)
        elif by_level:
            levels = self.noise.noise_scales(self.loss, self.sensitivity, np.concatenate(self.node_shares))
            scales = tuple(levels[:, None])
        else:
            scales = node_noise_scales(self.tree, self.loss, self.sensitivity, self.node_shares)
        object.__setattr__(self, "node_noise_scales", scales)

    @property
    def _n_listed(self) -> list[int]:
        return [self.tree.n_listed(level) for level in range(self.tree.depth + 1)]

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one privacy unit can move the values of a level, in units of the quantity."""
        return self.quantity.sensitivity(neighbors=self.neighbors, max_contributions=self.max_contributions)

    @property
    def epsilon(self) -> float | None:
        """The epsilon of one release; None for a zero-concentrated loss."""
        return self.loss.epsilon

    @property
    def delta(self) -> float:
        """The delta of one release."""
        return self.loss.delta

    @property
    def rho(self) -> float | None:
        """The rho of one release; None unless the loss is zero-concentrated."""
        return self.loss.rho

    @property
    def level_names(self) -> tuple[Hashable, ...]:
        """Names of the levels, from the root to the leaves."""
        return level_names(self.domain or self.tree)

    @property
    def shares(self) -> FloatArray:
        """Each level's part of the budget, shape (n_levels,): the mean over its nodes."""
        return np.array([self.tree.mean_listed(level, share) for level, share in enumerate(self.node_shares)])

    @property
    def noise_scales(self) -> FloatArray:
        """Noise scale of each level, shape (n_levels,): the root mean square over its nodes.

        In counts, or in what the values of the column are in; inf where no node is measured.
        """
        return self.in_column(np.array(list(map(self._level_scale, range(self.tree.depth + 1)))))

    def _level_scale(self, level: int) -> float:
        """Noise scale of a level, in units: the root mean square over its nodes that are measured."""
        scale = self.node_noise_scales[level]
        if len(scale) == 1:
            return float(scale[0])
        measured = np.isfinite(scale)
        part = self.tree.mean_listed(level, measured.astype(np.float64))
        squares = self.tree.mean_listed(level, np.where(measured, scale, 0.0) ** 2)
        return math.sqrt(squares / part) if part else math.inf

    @cached_property
    def labelled(self) -> Domain:
        """The domain; for a plan of numbers alone, one that numbers the nodes."""
        return self.domain or Domain.from_tree(self.tree)

    @cached_property
    def _measured_variances(self) -> list[FloatArray]:
        """Variance of each node before estimation, in squared units: 0 for what is known."""
        variances = [self.noise.variance(scale) for scale in self.node_noise_scales]
        return [
            np.where(exact, 0.0, variance) if exact.any() else variance
            for exact, variance in zip(self.known.exact, variances, strict=True)
        ]

    @cached_property
    def variances(self) -> Variances:
        """How the variances of the measurements go through the two passes of least squares."""
        noise = [
            np.where(exact, 0.0, np.maximum(variance, LEAST_VARIANCE))
            for exact, variance in zip(self.known.exact, self._measured_variances, strict=True)
        ]
        return propagate(self.tree, noise)

    @cached_property
    def _unit_errors(self) -> list[FloatArray]:
        """Standard error of every node, in units."""
        least_squares = self.consistency != "none"
        return [
            np.sqrt(each) for each in (self.variances.final if least_squares else self._measured_variances)
        ]

    @cached_property
    def node_std_errors(self) -> list[FloatArray]:
        """Standard error of every node: for each level, shape (level_sizes[l],) or (1,).

        In counts, or in what the values of the column are in.
        """
        return list(map(self.in_column, self._unit_errors))

    @cached_property
    def _noise_cumulants(self) -> list[FloatArray]:
        """Fourth cumulants of the noise of the measurements, in units: 0 where nothing is measured."""
        return [
            np.where(exact | np.isinf(scale), 0.0, self.noise.fourth_cumulant(scale))
            for exact, scale in zip(self.known.exact, self.node_noise_scales, strict=True)
        ]

    @cached_property
    def error_cumulants(self) -> list[FloatArray]:
        """Fourth cumulants of the errors that `node_std_errors` speaks of, in units to the fourth power."""
        if self.consistency == "none":
            return self._noise_cumulants
        return estimate_cumulants(self.tree, self.variances, self._noise_cumulants)

    @cached_property
    def node_half_widths(self) -> list[FloatArray]:
        """Half the width of each node's interval, in units, before it is cut to what is possible.

        For each level, shape (level_sizes[l],) or (1,).
        """
        assert self.confidence is not None
        if self.consistency != "none":
            return half_widths(self.tree, self.variances, self._noise_cumulants, self.confidence)
        return [
            np.where(exact, 0.0, self.noise.half_width(np.where(exact, 1.0, scale), self.confidence))
            for exact, scale in zip(self.known.exact, self.node_noise_scales, strict=True)
        ]

    @cached_property
    def possible(self) -> tuple[Sequence[npt.NDArray[Any]], Sequence[npt.NDArray[Any]]]:
        """The least and the most that each node can hold, as is publicly known, in units."""
        if self.quantity.non_negative:
            return self.known.least, self.known.most(self.tree)
        least = [np.where(exact, 0.0, -np.inf) for exact in self.known.exact]
        return least, [-low for low in least]

    def in_column(self, units: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Give what units are worth in the column that is added up; counts stay what they are."""
        return units if self.quantity == COUNT else self.quantity.from_units(units)

    @cached_property
    def std_errors(self) -> FloatArray:
        """Expected standard error of each level: the root mean square over its nodes.

        In counts, or in what the values of the column are in.
        """
        errors = self.node_std_errors
        return np.sqrt([self.tree.mean_listed(level, error**2) for level, error in enumerate(errors)])

    @property
    def expected_error(self) -> float:
        """Root of the expected squared error that the objective speaks of, in the unit of `std_errors`."""
        weights = cost_weights(self._n_listed, self.objective, self.level_weights)
        return math.sqrt(expected_cost(self.std_errors**2, weights, self.objective))

    @property
    def gap(self) -> float | None:
        """Expected squared error, divided by the least that any additive Gaussian noise could have.

        1 for a plan that cannot be improved; None where no tight bound is known, for which
        `gap_reason` says why.
        """
        return self._gap_and_reason[0]

    @property
    def gap_reason(self) -> str:
        """What the gap is measured against, or why there is none."""
        return self._gap_and_reason[1]

    @cached_property
    def _gap_and_reason(self) -> tuple[float | None, str]:
        return gap_of(self)

    def to_frame(self) -> pd.DataFrame:
        """Lay the plan out as a frame.

        Returns
        -------
        pandas.DataFrame
            One row per level: ``level``, ``nodes``, ``share``, ``noise_scale``, ``std_error``.
        """
        return pd.DataFrame(
            {
                "level": list(self.level_names),
                "nodes": self._n_listed,
                "share": self.shares,
                "noise_scale": self.noise_scales,
                "std_error": self.std_errors,
            }
        )

    def release(
        self, data: Any, *, rng: np.random.Generator | None = None, progress: bool = False
    ) -> pd.DataFrame:
        """Spend the budget: measure the records, and return the table.

        Parameters
        ----------
        data : dataframe or numpy.ndarray
            The records, one row each; or whole numbers, the exact counts of the leaves in the order of
            the tree, shape ``(n_leaves,)``. Negative counts count as 0. Of exact counts the caller
            answers for `max_contributions`.
        rng : numpy.random.Generator, optional
            Makes the release repeatable, for tests and simulation: it is then not private. By default
            all randomness comes from the operating system's cryptographic source.
        progress : bool, default False
            Shows the steps on a bar, on standard error. Needs tqdm. See the notes.

        Returns
        -------
        pandas.DataFrame
            One row per node: ``level``, the keys, ``count`` and ``std_error``. The standard error is
            that of the unbiased linear estimate (of the noise, with ``consistency="none"``).
            ``attrs["dp"]`` tells how it was made; it is for display and proves nothing.

        Raises
        ------
        ArgumentError
            If `data` is neither, or does not fit the plan.
        ColumnsError
            If a column is missing or repeated, or is of a type that cannot equal the domain's labels.
        MissingExtraError
            If a bar is asked for, and tqdm is not installed.

        Notes
        -----
        **Privacy**: each call spends the plan's whole privacy loss anew. The answer's rows, columns and
        types follow from the plan alone. Records outside the domain are dropped, and nothing tells how many.
        The steps of the progress bar follow from the plan alone. The time that it shows may depend on the
        records, so it is for whoever runs the release, and not for publishing.
        """
        return release(self, data, rng=rng, progress=progress)

    def alpha_rmse(self, alpha: float, counts: Mapping[Hashable, float] | None = None) -> FloatArray:
        r"""Predict how far off each level will be, not counting what is within a share of the true count.

        It is :math:`\sqrt{\mathrm{E} \max(|\tilde w - w| - \alpha w,\, 0)^2}`, the alpha-RMSE, of the least
        accurate node of each level. It falls with the true count w. So for no count is it larger than for 0,
        where it is the standard error whatever alpha: that is the level's alpha-mRMSE.

        Parameters
        ----------
        alpha : float
            The relative error that counts as none, at least 0.
        counts : mapping from level names to float, optional
            A true count that nodes of the level might have, 0 where left out. It is a guess, not looked up
            in any records.

        Returns
        -------
        numpy.ndarray, shape (n_levels,)
            In counts, or in what the values of the column are in. Of the unbiased linear estimates; with
            ``consistency="none"`` of the noise. nan for a level of which a table shows no node.

        Raises
        ------
        ArgumentError
            If `alpha` or `counts` cannot be used.

        References
        ----------
        Ghazi, Kamath, Kumar, Manurangsi and Wu, *On differentially private counting on trees*, 2023,
        Definition 1.4.

        Examples
        --------
        >>> import pandas_dptree as dpt
        >>> plan = dpt.plan(dpt.Tree.from_branching([2, 3]), epsilon=1.0, split="uniform", consistency="none")
        >>> plan.alpha_rmse(0.1).round(2).tolist()
        [4.22, 4.22, 4.22]
        >>> plan.alpha_rmse(0.1, {"total": 100}).round(2).tolist()
        [0.8, 4.22, 4.22]
        """
        return level_alpha_rmse(self, alpha, counts)

    def compare(
        self, *, alpha: float | None = None, counts: Mapping[Hashable, float] | None = None
    ) -> pd.DataFrame:
        """Race the mechanisms and splits that could spend the same loss on the same domain.

        Parameters
        ----------
        alpha : float, optional
            Compares the errors beyond this share of the true count, and counts that are right up to a factor
            (`Multiplicative`, with clip) as well, if the loss has an epsilon and a delta.
        counts : mapping from level names to float, optional
            With alpha, a true count that nodes of the level might have; 0, which is the worst, where left
            out. See `alpha_rmse`.

        Returns
        -------
        pandas.DataFrame
            One row per plan, indexed by ``mechanism`` and ``split``: this plan first, the others from the
            best to the worst. One column per level with its expected standard error; ``objective``, the
            root of the expected squared error that the objective speaks of; ``gap``. With alpha, one column
            per level with the alpha-RMSE of its worst node, and ``alpha_mrmse``, the largest of them. Rows
            called ``"multiplicative"`` have the calibration for a split, and upper bounds of their errors.
        """
        return compare(self, alpha, counts)

    def to_dict(self) -> dict[str, Any]:
        """Write the plan down in plain JSON, to be approved today and released tomorrow.

        Returns
        -------
        dict
            Numbers, strings, lists and dicts alone; the labels of the domain are not in it, only a
            fingerprint of them.
        """
        return write_plan(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], domain: Domain | Tree) -> Plan:
        """Read a plan that `to_dict` wrote.

        The noise is computed anew from the loss and the shares, so a plan that was tampered with still
        spends no more than the loss that it states, on the privacy unit that it states: look at both
        before releasing. Where the keys came from is the less certain of what the plan and `domain` say: a
        plan for observed keys stays one, although the same keys are given as a list now.

        Parameters
        ----------
        data : mapping
            From `to_dict`, perhaps by way of JSON.
        domain : Domain or Tree
            The one that the plan was made for.

        Returns
        -------
        Plan

        Raises
        ------
        DomainError
            If the domain is another one.
        ArgumentError
            If `data` is no plan.
        """
        return read_plan(cls, data, domain)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the expected standard error of each level, beside that of an even split.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        return plot_level_errors(
            list(map(str, self.level_names)),
            {"this plan": self.std_errors, "even split": variant(self, self.noise, "uniform").std_errors},
            ax,
            unit="counts" if self.quantity == COUNT else str(self.quantity.column),
        )

    @property
    def headline(self) -> str:
        """The release in a sentence: noise, privacy loss, privacy unit, split and consistency."""
        loss = self.loss.in_words
        unit = "each row" if self.privacy_unit is None else f"each {self.privacy_unit}"
        column = self.quantity.column
        summed = "" if column is None else f" for sums of {column!r}"
        rows = "1 row" if self.max_contributions == 1 else f"up to {self.max_contributions} rows"
        return (
            f"Plan{summed}: {self.noise.name} noise, {loss}, protecting {unit} ({rows}, {self.neighbors}); "
            f"{self.split} split for {self.objective!r}, consistency {self.consistency!r}"
            f"{source_in_words(self.domain)}"
        )

    def __repr__(self) -> str:
        """Print the plan as a table."""
        table = self.to_frame().to_string(index=False, formatters=_FORMATS)
        return f"{self.headline}\n{table}\n{self.gap_reason}"

    def _repr_html_(self) -> str:
        """Show the plan as a table in a notebook."""
        table = self.to_frame().to_html(index=False, formatters=_FORMATS, border=0)
        return f"<p>{escape(self.headline)}</p>\n{table}\n<p>{escape(self.gap_reason)}</p>"


def _check_display(confidence: float | None, keep_measurements: bool) -> None:
    """Check what the table is to show beside the estimates."""
    if confidence is not None and (
        isinstance(confidence, bool) or not isinstance(confidence, (int, float)) or not 0 < confidence < 1
    ):
        raise ArgumentError(
            "confidence",
            f"must be a number between 0 and 1, not {told(confidence)}.",
            hint="for example confidence=0.95; None for a table without intervals.",
        )
    if not isinstance(keep_measurements, bool):
        raise ArgumentError(
            "keep_measurements",
            f"must be True or False, not {told(keep_measurements)}.",
            hint="True adds the noisy values that the table was made from.",
        )


_FORMATS: dict[str, Any] = {
    "share": "{:.3f}".format,
    "noise_scale": "{:.4g}".format,
    "std_error": "{:.4g}".format,
}

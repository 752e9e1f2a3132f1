"""Plans of additive noise on the nodes of a tree, for counts or sums of one column."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.least_squares import FloatArray
from pandas_dptree.hierarchy.areas import Area
from pandas_dptree.hierarchy.domain import Domain, source_in_words
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.ingest.contributions import LeafTally
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.reading import Bounding
from pandas_dptree.mechanisms.additive import NOISES
from pandas_dptree.output.frames import check_names
from pandas_dptree.output.pictures.plan_errors import plot_level_errors
from pandas_dptree.output.protection import Aggregate
from pandas_dptree.planning.area_shares import sums_of_squares
from pandas_dptree.plans import serialize
from pandas_dptree.plans.base import not_measured
from pandas_dptree.plans.compare import compare, compare_bounds, level_alpha_rmse, variant
from pandas_dptree.plans.execute import opened_leaves, prepared
from pandas_dptree.plans.measurement import Measurement
from pandas_dptree.plans.running import Release
from pandas_dptree.plans.shown_columns import KEPT
from pandas_dptree.privacy.quantity import COUNT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["AdditivePlan"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AdditivePlan(Measurement):
    """A release of counts, or of sums of one column, with additive noise, described before it happens.

    Made by `pandas_dptree.plan`. A plan is a function of the domain and the privacy parameters alone.

    Attributes
    ----------
    loss, neighbors, privacy_unit, max_contributions, caps
        As for `Plan`.
    tree, domain : Tree, Domain or None
        The shape of the hierarchy, and the labels of its nodes; None for a plan without labels.
    noise : AdditiveNoise
        The distribution of the noise.
    quantity : Quantity
        What is added up: the records, or the values of a column.
    known : Known
        Public counts, and public lower bounds of counts.
    consistency, fit, confidence, keep, split, objective
        As the options of `pandas_dptree.plan`; `split` is ``"given"`` for a mapping.
    level_weights : numpy.ndarray, shape (n_levels,)
        The weight of each level's error.
    budget_shares : numpy.ndarray, shape (n_levels,)
        Each level's share of the budget.
    unit_noise_scales : numpy.ndarray, shape (n_levels,)
        The noise scale of each level, in units of the quantity (records, or steps of the grid of values); inf
        where nothing is measured. Computed from the shares, unless they are given.
    in_forest : bool
        Whether rows that replace those of a unit may lie in another tree: if arrays have dimensions beside
        those of the tree, each of their indices has one.
    count : AdditivePlan or None
        For sums whose values are measured from the middle of their bounds (`quantity` is then of the
        differences): the plan that counts the records. The table shows these differences plus the middle
        times the number of records, and all errors are those of that sum.

    Notes
    -----
    `release` takes records, or the exact counts of the leaves in the order of the tree, whole numbers of
    shape ``(n_leaves,)``: negative counts are set to 0, and the caller is responsible for
    `max_contributions`.

    The table has one row per node: ``level``, the keys, ``count`` and ``std_error``, the standard error of
    the unbiased linear estimate (of the noise, with ``consistency="none"``). ``attrs["dp"]`` describes how
    the table was made; it is for display and proves nothing.

    **Privacy**: the rows, columns and types of the table follow from the plan alone. Records outside the
    domain are dropped, and their number is not reported.
    """

    kind: ClassVar[str] = "additive"
    count: AdditivePlan | None = None
    _takes_caps: ClassVar[bool] = True

    # Description

    @property
    def _measured(self) -> str:
        return "counts" if self.quantity == COUNT else f"sums of {self.quantity.column}"

    @property
    def _release_in_words(self) -> str:
        """The release in one sentence: noise, privacy loss, privacy unit, split and consistency."""
        column = self.quantity.column
        summed = "" if column is None else f" for sums of {column!r}"
        return (
            f"Plan{summed}: {self.noise.name} noise, {self.protection}; "
            f"{self.split} split for {self.objective!r}, consistency {self.consistency!r}"
            f"{source_in_words(self.domain)}"
        )

    @property
    def _aggregates(self) -> list[Aggregate]:
        if self.quantity == COUNT:
            return ["count"]
        return ["sum" if self.shown_quantity.non_negative else "signed sum"]

    @property
    def _remark(self) -> str:
        """Which levels are not measured; and how close the plan is to the best possible one, if known."""
        gap = "" if self.gap is None else self.gap_reason
        return "\n".join(filter(None, [not_measured(self._unmeasured), gap]))

    @property
    def mechanism_name(self) -> str:
        """The name of the noise in ``attrs`` and JSON."""
        return self.noise.name

    def _provenance_details(self) -> dict[str, Any]:
        scales = zip(self.level_names, self.noise_scales.tolist(), strict=True)
        known = [
            int(np.count_nonzero(np.broadcast_to(exact, shown.shape) & shown)) if exact.any() else 0
            for exact, shown in zip(
                self.known.exact, map(self._shape.listed, range(self._shape.depth + 1)), strict=True
            )
        ]
        return {
            "consistency": self.consistency,
            "fit": self.fit,
            **self._quantity_in_words,
            "known": {str(name): n for name, n in zip(self.level_names, known, strict=True) if n},
            "confidence": self.confidence,
            "noise_scale": {str(name): scale if np.isfinite(scale) else None for name, scale in scales},
        }

    # Accuracy

    def to_frame(self) -> pd.DataFrame:
        """Return one row per level: ``level``, ``nodes``, ``share``, ``noise_scale``, ``std_error``.

        With `confidence` also ``half_width``: that of the widest interval of the level, before intervals are
        cut to what is possible.
        """
        columns: dict[str, Any] = {
            "level": list(self.level_names),
            "nodes": self._n_listed,
            "share": self.budget_shares,
            "noise_scale": self.noise_scales,
            "std_error": self.std_errors,
        }
        if self.confidence is not None:
            columns["half_width"] = self.largest_half_widths(self.confidence)
        return pd.DataFrame(columns)

    # Release

    def _prepared(self, data: Any) -> Release:
        return prepared(self, data)

    def _opened(self, data: Any, bounding: Bounding) -> tuple[Records, LeafTally]:
        return opened_leaves(self, [self.quantity], data, bounding)

    def alpha_rmse(self, alpha: float, counts: Mapping[Hashable, float] | None = None) -> FloatArray:
        r"""Predict each level's root mean squared error beyond a relative error `alpha`.

        This is the alpha-RMSE, :math:`\sqrt{\mathrm{E} \max(|\tilde w - w| - \alpha w,\, 0)^2}`, of the least
        accurate node of each level. It falls with the true count w. At 0, the worst case, it is the standard
        error for any alpha: the level's alpha-mRMSE.

        Parameters
        ----------
        alpha : float
            The relative error to ignore, at least 0.
        counts : mapping from level names to float, optional
            A true count that nodes of the level might have, 0 if left out: a guess, not looked up in records.

        Returns
        -------
        numpy.ndarray, shape (n_levels,)
            In counts, or in the unit of the column: of the unbiased linear estimates, or with
            ``consistency="none"`` of the noise. nan for a level without nodes in the table.

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
        >>> plan.alpha_rmse(0.1, {"total": 100}).round(2).tolist()
        [0.8, 4.22, 4.22]
        """
        return level_alpha_rmse(self, alpha, counts)

    def area_std_error(self, area: Area) -> float:
        """Return the expected standard error of the sum of several nodes, made by `pandas_dptree.combine`.

        It is in counts, or in the unit of the column. Nodes share measurements, so it is not the root of the
        sum of their variances. An `ArgumentError` is raised if the plan's domain lacks one of the nodes.
        """
        return float(self._in_column_units(np.sqrt([self._area_variance(area)]))[0])

    def _area_variance(self, area: Area) -> float:
        """Return the variance of the sum of several nodes, in squared units."""
        of_levels = self.noise.variance(self.unit_noise_scales)
        squares = sums_of_squares(
            self.tree,
            of_levels,
            area.weights(self.domain),
            least_squares=self._estimator.combines_levels,
            known=self.known.exact,
        )
        own = float(np.where(np.isfinite(of_levels), of_levels, 0.0) @ squares)
        if self.count is None:
            return own
        return own + self.quantity.shift**2 * self.count._area_variance(area)

    def compare(
        self,
        *,
        alpha: float | None = None,
        counts: Mapping[Hashable, float] | None = None,
        max_contributions: Sequence[int] | None = None,
        max_per_leaf: Sequence[int | None] | None = None,
    ) -> pd.DataFrame:
        """Compare the mechanisms and splits that could spend the same loss, or bounds on the rows of a unit.

        Parameters
        ----------
        alpha : float, optional
            Compare the errors beyond this share of the true count instead. If the loss has an epsilon and a
            delta, counts with bounded relative error (`Multiplicative`, with clip) are compared too.
        counts : mapping from level names to float, optional
            With alpha, as for `alpha_rmse`; 0 is the worst case.
        max_contributions, max_per_leaf : sequence of int, optional
            Compare these bounds instead, for the same noise and split: all pairs of the two. None in
            `max_per_leaf` is no bound; what is left out is that of this plan. That is free, since it does not
            look at records; which rows the bounds drop is not known, and not part of the errors.

        Returns
        -------
        pandas.DataFrame
            One row per plan, indexed by ``mechanism`` and ``split``: first this plan, then the others from
            the best to the worst. Columns: each level's expected standard error; ``objective``, the root of
            the expected squared error that the objective measures; ``gap``. With alpha: the alpha-RMSE of
            each level's worst node, and ``alpha_mrmse``, the largest of them. Rows called
            ``"multiplicative"`` have the calibration in place of the split, and upper bounds of the errors.
            Of bounds: one row for each pair, indexed by ``max_contributions`` and ``max_per_leaf``, with the
            standard errors and ``objective``.
        """
        if max_contributions is not None or max_per_leaf is not None:
            if alpha is not None or counts is not None:
                raise ArgumentError(
                    "alpha",
                    "and `counts` have no meaning for a comparison of bounds.",
                    hint="leave them out.",
                )
            return compare_bounds(self, max_contributions, max_per_leaf)
        return compare(self, alpha, counts)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Plot the expected standard error of each level, beside that of an even split.

        It is drawn on `ax`, by default on the axes of a new figure, which are returned; without matplotlib,
        MissingExtraError is raised.
        """
        return plot_level_errors(
            list(map(str, self.level_names)),
            {"this plan": self.std_errors, "even split": variant(self, self.noise, "uniform").std_errors},
            ax,
            unit="counts" if self.quantity == COUNT else str(self.quantity.column),
        )

    # JSON

    def _fields(self) -> dict[str, Any]:
        return {
            "consistency": self.consistency,
            "fit": self.fit,
            "confidence": self.confidence,
            "keep_measurements": "measurements" in self.keep,
            **({"keep_linear": True} if "linear" in self.keep else {}),
            "quantity": serialize.quantity_to_json(self.quantity),
            **self._split_to_json(),
            **({"in_forest": True} if self.in_forest else {}),
        }

    @classmethod
    def _from_fields(cls, data: Mapping[str, Any], hierarchy: Domain | Tree, **common: Any) -> Self:
        plan = cls._from_part(data, hierarchy, mechanism=data["mechanism"], **common)
        if plan.quantity.shift:  # only means are measured from the middle of the bounds
            raise ValueError("the values of a sum are shifted")
        if plan.quantity.column is not None:
            check_names(plan.level_names[1:], [plan.quantity.column], argument="column")
        return plan

    @classmethod
    def _from_part(
        cls, data: Mapping[str, Any], hierarchy: Domain | Tree, *, mechanism: str, **common: Any
    ) -> Self:
        """Read what `_to_part` serialized. The table may name the quantity differently from its column."""
        tree = hierarchy if isinstance(hierarchy, Tree) else hierarchy.tree
        if data["split"] == "nodes":
            raise ArgumentError(
                "data",
                "is a plan whose noise differs from node to node, which can no longer be released.",
                hint="plan the release again, with a split by level.",
            )
        return cls(
            tree=tree,
            domain=hierarchy if isinstance(hierarchy, Domain) else None,
            noise=NOISES[mechanism],
            quantity=serialize.quantity_from_json(data["quantity"]),
            known=Known.read(hierarchy, Known.from_dict(tree, data["known"])),
            **cls._split_from_json(data),
            in_forest=data.get("in_forest", False),
            consistency=data["consistency"],
            fit=data["fit"],
            confidence=data["confidence"],
            keep=tuple(each for each in KEPT if data.get(f"keep_{each}", False)),
            **common,
        )

"""Plans of additive noise on the nodes of a tree: counts, or sums of one column."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd

from pandas_dptree.estimation.least_squares import FloatArray
from pandas_dptree.hierarchy.domain import Domain, source_in_words
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import NOISES
from pandas_dptree.output.frames import check_names
from pandas_dptree.output.plots import plot_level_errors
from pandas_dptree.planning.split import SPLITS
from pandas_dptree.plans import serialize
from pandas_dptree.plans.compare import compare, level_alpha_rmse, variant
from pandas_dptree.plans.execute import release
from pandas_dptree.plans.measurement import Measurement
from pandas_dptree.plans.options import Estimation
from pandas_dptree.privacy.quantity import COUNT, Quantity
from pandas_dptree.signatures import options_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["AdditivePlan"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AdditivePlan(Measurement):
    """A release of counts, or of sums of one column, with additive noise, described before it happens.

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
        The column that names whom to protect; None where each row is a unit of its own.
    max_contributions : int
        How many rows of a unit are counted.
    quantity : Quantity
        What is added up: the records, or the values of a column.
    known : Known
        Which counts are public already, and how small the others can be.
    consistency : {"none", "linear", "nonnegative", "integer"}
        How the noisy nodes become estimates.
    fit : {"totals", "adaptive", "joint"}
        How negative estimates are corrected.
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

    kind: ClassVar[str] = "additive"

    # What it says of itself

    @property
    def headline(self) -> str:
        """The release in a sentence: noise, privacy loss, privacy unit, split and consistency."""
        column = self.quantity.column
        summed = "" if column is None else f" for sums of {column!r}"
        return (
            f"Plan{summed}: {self.noise.name} noise, {self.protection}; "
            f"{self.split} split for {self.objective!r}, consistency {self.consistency!r}"
            f"{source_in_words(self.domain)}"
        )

    @property
    def remark(self) -> str:
        """How close the plan is to the best possible one, which is printed below its table."""
        return self.gap_reason

    @property
    def mechanism_name(self) -> str:
        """The kind of noise, as ``attrs`` and JSON name it."""
        return self.noise.name

    def _manner(self) -> dict[str, Any]:
        scales = zip(self.level_names, self.noise_scales.tolist(), strict=True)
        known = [
            int(np.count_nonzero(np.broadcast_to(exact, shown.shape) & shown)) if exact.any() else 0
            for exact, shown in zip(
                self.known.exact, map(self.tree.listed, range(self.tree.depth + 1)), strict=True
            )
        ]
        return {
            "consistency": self.consistency,
            "fit": self.fit,
            **_description(self.quantity),
            "known": {str(name): n for name, n in zip(self.level_names, known, strict=True) if n},
            "confidence": self.confidence,
            "noise_scale": {str(name): scale if np.isfinite(scale) else None for name, scale in scales},
        }

    # How good it is

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
                "nodes": self.n_listed,
                "share": self.shares,
                "noise_scale": self.noise_scales,
                "std_error": self.std_errors,
            }
        )

    # What is done with it

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
        """Compare the mechanisms and splits that could spend the same loss on the same domain.

        Parameters
        ----------
        alpha : float, optional
            Compares the errors beyond this share of the true count, and counts with bounded relative error
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

    # JSON

    def _fields(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in options_of(Estimation)},
            "quantity": {
                "column": serialize.name("column", self.quantity.column),
                "low": self.quantity.low,
                "high": self.quantity.high,
                "unit": list(self.quantity.unit.as_integer_ratio()),
                "shift": self.quantity.shift,
            },
            "known": self.known.to_dict(),
            "split": self.split,
            "objective": self.objective,
            "level_weights": self.level_weights.tolist(),
            "shares": [share.tolist() for share in self.node_shares],
        }

    @classmethod
    def _from_fields(cls, data: Mapping[str, Any], hierarchy: Domain | Tree, **common: Any) -> Self:
        plan = cls.part_from(data, hierarchy, **common)
        if plan.quantity.column is not None:
            check_names(plan.level_names[1:], [plan.quantity.column], argument="column")
        return plan

    @classmethod
    def part_from(cls, data: Mapping[str, Any], hierarchy: Domain | Tree, **common: Any) -> Self:
        """Read a plan for one of several quantities, whose table may call it otherwise than its column."""
        tree = hierarchy if isinstance(hierarchy, Tree) else hierarchy.tree
        quantity = data["quantity"]
        return cls(
            tree=tree,
            domain=hierarchy if isinstance(hierarchy, Domain) else None,
            noise=NOISES[data["mechanism"]],
            quantity=Quantity(**{**quantity, "unit": Fraction(*quantity["unit"])}),
            known=Known.read(hierarchy, Known.from_dict(tree, data["known"])),
            split=data["split"] if data["split"] in SPLITS else "given",
            objective=data["objective"],
            level_weights=np.array(data["level_weights"], dtype=np.float64),
            node_shares=tuple(np.array(share, dtype=np.float64) for share in data["shares"]),
            **{name: data[name] for name in options_of(Estimation)},
            **common,
        )


def _description(quantity: Quantity) -> dict[str, Any]:
    """Describe what is added up, if not the records."""
    if quantity == COUNT:
        return {}
    low, high = ((bound + quantity.shift) * quantity.unit for bound in (quantity.low, quantity.high))
    return {
        "column": str(quantity.column),
        "bounds": [float(low), float(high)],
        "granularity": float(quantity.unit),
    }

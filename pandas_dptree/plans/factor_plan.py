"""What plans of counts that are right up to a factor have in common, whether their trees are listed or not.

The privacy loss is stated for a unit, and the mechanism takes it for one row that is added or removed:
`group_loss` stands between the two.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree._version import __version__
from pandas_dptree.errors import ArgumentError, told
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.arguments import released_counts
from pandas_dptree.mechanisms.guarantees import Multiplicative
from pandas_dptree.mechanisms.measure import LARGEST_COUNT
from pandas_dptree.mechanisms.multiplicative import ClippedThresholds
from pandas_dptree.mechanisms.thresholds import Thresholds, group_loss
from pandas_dptree.output.emptiness import Totals
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Neighbors, count_sensitivity
from pandas_dptree.privacy.unit import protected

__all__ = ["FACTOR_STEPS", "FactorPlan"]

FACTOR_STEPS = [("reading the records", 1), ("comparing with thresholds", 1), ("laying out the table", 1)]
"""What is done to release such counts."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class FactorPlan(ABC):
    """Thresholds, and how far the counts can be off that come of them: a function of public arguments alone.

    Attributes
    ----------
    loss, mechanism, neighbors, privacy_unit, max_contributions, chain
        As in `MultiplicativePlan`.
    """

    loss: PrivacyLoss
    mechanism: Multiplicative
    neighbors: Neighbors = "add_remove"
    privacy_unit: Hashable | None
    max_contributions: int
    chain: Thresholds | ClippedThresholds = field(init=False)

    def __post_init__(self) -> None:
        """Check the arguments, and lay out the thresholds."""
        if not isinstance(self.mechanism, Multiplicative):
            raise ArgumentError(
                "mechanism",
                f"must be a Multiplicative, not {told(self.mechanism)}.",
                hint="for example dpt.Multiplicative(alpha=0.25).",
            )
        unit, most = protected(self.privacy_unit, self.max_contributions, taken=self._taken)
        object.__setattr__(self, "privacy_unit", unit)
        object.__setattr__(self, "max_contributions", most)
        rows = count_sensitivity(neighbors=self.neighbors, max_contributions=self.max_contributions).l1
        chain = self.mechanism.thresholds(group_loss(self.loss, rows), len(self.level_names))
        object.__setattr__(self, "chain", chain)

    @property
    @abstractmethod
    def _taken(self) -> Collection[Hashable]:
        """Columns that say where a row is counted, so that none of them can be the unit."""

    @property
    @abstractmethod
    def level_names(self) -> tuple[Hashable, ...]:
        """Names of the levels, from the root down."""

    @property
    def epsilon(self) -> float:
        """The epsilon of one release."""
        assert self.loss.epsilon is not None
        return self.loss.epsilon

    @property
    def delta(self) -> float:
        """The delta of one release."""
        return self.loss.delta

    @property
    def thresholds(self) -> Thresholds:
        """The chain of thresholds, without the windows that `Multiplicative.clip` adds."""
        return self.chain.thresholds if isinstance(self.chain, ClippedThresholds) else self.chain

    @property
    def threshold(self) -> float:
        """The count up to which errors are relative to this threshold, and not to the count."""
        return self.thresholds.tau

    @property
    def failure(self) -> float:
        """The probability with which any one count may be further off than what is promised."""
        return self.thresholds.eta

    @property
    def max_error(self) -> int | None:
        """How far a released count can be from the true one, with certainty; None without clip.

        That is twice the radius of the window. Without clip there is no such bound.
        """
        return 2 * self.chain.window_noise.radius if isinstance(self.chain, ClippedThresholds) else None

    @property
    def rmse_bound(self) -> float | None:
        """The bound on each count's alpha-RMSE that `ClippedThresholds` has; None without clip.

        An estimate may then be off by any amount, however rarely. Of a tree that is too large to be listed, a
        node that is not released counts as no error: the bound is on the mean over all releases, and not over
        those with the node in them. For the root, which is always there, the two are one.
        """
        return self.chain.rmse_bound if isinstance(self.chain, ClippedThresholds) else None

    def error_bound(self, counts: npt.ArrayLike) -> IntArray:
        r"""Tell how far the true counts can be from released ones.

        Where :math:`|c - w| \le \alpha \max(w, \tau)`, either :math:`w \le \tau` or
        :math:`w \le c/(1 - \alpha)`. So the distance is at most
        :math:`\alpha \max(c/(1 - \alpha), \tau)`, and it is a whole number. With clip it is never above
        `max_error`.

        Parameters
        ----------
        counts : array_like of int
            Released counts, at least 0.

        Returns
        -------
        numpy.ndarray of int64, of the same shape

        Raises
        ------
        ArgumentError
            If the counts are not of an integer type, or some are negative.
        """
        released = released_counts(counts)
        alpha = self.mechanism.alpha
        bound = alpha * np.maximum(released / (1 - alpha), self.threshold)
        # the factor is above any rounding error, so that no whole number is lost
        largest = LARGEST_COUNT if self.max_error is None else self.max_error
        return np.asarray(np.floor(np.minimum(bound * (1 + 2.0**-48), largest)), dtype=np.int64)

    def _total_of(self, table: pd.DataFrame) -> Totals:
        """Read the total out of a released table, with how far that of nobody can be from 0."""
        return {"count": (table["count"].iloc[0], int(self.error_bound(0)))}

    def to_frame(self) -> pd.DataFrame:
        """Lay out what can come out.

        Returns
        -------
        pandas.DataFrame
            One row for each value that a count can take: ``count`` and its ``error_bound``. With clip, the
            values before they are moved into their windows.
        """
        counts = self.thresholds.estimates
        return pd.DataFrame({"count": counts, "error_bound": self.error_bound(counts)})

    def _account(self, rng: np.random.Generator | None) -> dict[str, Any]:
        """Tell how the release was made, in plain JSON."""
        return {
            "mechanism": "multiplicative",
            **self.loss.to_dict(),
            "neighbors": self.neighbors,
            "privacy_unit": None if self.privacy_unit is None else str(self.privacy_unit),
            "max_contributions": self.max_contributions,
            "consistency": "none",
            "alpha": self.mechanism.alpha,
            "threshold": self.threshold,
            "failure": self.failure,
            "calibration": self.mechanism.calibration,
            "clip": self.mechanism.clip,
            "rmse_bound": self.rmse_bound,
            "rng": "operating system" if rng is None else "numpy.random.Generator: not private",
            "version": __version__,
        }

    @property
    def _promise(self) -> str:
        """What is promised of the counts, to whom: the end of a headline."""
        unit = "each row" if self.privacy_unit is None else f"each {self.privacy_unit}"
        rows = "1 row" if self.max_contributions == 1 else f"up to {self.max_contributions} rows"
        in_any_case = "" if self.max_error is None else f", and by {self.max_error:.15g} in any case"
        return (
            f"counts that are off by at most {self.mechanism.alpha:g} of the count or of "
            f"{math.ceil(self.threshold):.15g}, whichever is larger, but for a probability of "
            f"{self.failure:g} each{in_any_case}: {self.loss.in_words}, "
            f"protecting {unit} ({rows}, {self.neighbors})"
        )

    @property
    @abstractmethod
    def headline(self) -> str:
        """The release in a sentence."""

    def __repr__(self) -> str:
        """Print the plan as a table of what can come out."""
        return f"{self.headline}\n{self.to_frame().to_string(index=False, max_rows=12)}"

    def _repr_html_(self) -> str:
        """Show the plan as a table in a notebook."""
        return (
            f"<p>{escape(self.headline)}</p>\n{self.to_frame().to_html(index=False, max_rows=12, border=0)}"
        )

"""What plans of counts that are right up to a factor have in common, whether their trees are listed or not.

The privacy loss is stated for a unit, and the mechanism takes it for one row that is added or removed:
`group_loss` stands between the two.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree._version import __version__
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.guarantees import Multiplicative
from pandas_dptree.mechanisms.measure import LARGEST_COUNT
from pandas_dptree.mechanisms.multiplicative import ClippedThresholds
from pandas_dptree.mechanisms.thresholds import Thresholds, group_loss
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Neighbors, count_sensitivity

__all__ = ["FactorPlan"]


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
    privacy_unit: Hashable | None = None
    max_contributions: int = 1
    chain: Thresholds | ClippedThresholds = field(init=False)

    def __post_init__(self) -> None:
        """Lay out the thresholds."""
        rows = count_sensitivity(neighbors=self.neighbors, max_contributions=self.max_contributions).l1
        chain = self.mechanism.thresholds(group_loss(self.loss, rows), len(self.level_names))
        object.__setattr__(self, "chain", chain)

    @property
    @abstractmethod
    def level_names(self) -> tuple[Hashable, ...]:
        """Names of the levels, from the root down."""

    @property
    def thresholds(self) -> Thresholds:
        """The chain of thresholds, without the windows that `Multiplicative.clip` adds."""
        return self.chain.thresholds if isinstance(self.chain, ClippedThresholds) else self.chain

    @property
    def threshold(self) -> float:
        """The count up to which errors are relative to this threshold, and not to the count."""
        return self.thresholds.tau

    @property
    def rmse_bound(self) -> float | None:
        """The bound on each count's alpha-RMSE that `ClippedThresholds` has; None without clip.

        An estimate may then be off by any amount, however rarely.
        """
        return self.chain.rmse_bound if isinstance(self.chain, ClippedThresholds) else None

    def error_bound(self, counts: npt.ArrayLike) -> IntArray:
        r"""Tell how far the true counts can be from released ones.

        Where :math:`|c - w| \le \alpha \max(w, \tau)`, either :math:`w \le \tau` or
        :math:`w \le c/(1 - \alpha)`. So the distance is at most
        :math:`\alpha \max(c/(1 - \alpha), \tau)`, and it is a whole number. With clip it is never above twice
        the radius of the window.

        Parameters
        ----------
        counts : array_like of int
            Released counts.

        Returns
        -------
        numpy.ndarray of int64, of the same shape
        """
        alpha = self.mechanism.alpha
        bound = alpha * np.maximum(np.asarray(counts) / (1 - alpha), self.threshold)
        # the factor is above any rounding error, so that no whole number is lost
        whole = np.floor(np.minimum(bound * (1 + 2.0**-48), LARGEST_COUNT)).astype(np.int64)
        if isinstance(self.chain, ClippedThresholds):
            return np.minimum(whole, 2 * self.chain.window_noise.radius)
        return np.asarray(whole)

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
            "alpha": float(self.mechanism.alpha),
            "threshold": self.threshold,
            "failure": float(self.mechanism.failure),
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
        return (
            f"counts that are off by at most {self.mechanism.alpha:g} of the count or of "
            f"{self.threshold:.0f}, whichever is larger, each with probability "
            f"{1 - self.mechanism.failure:g}: epsilon={self.loss.epsilon:g}, delta={self.loss.delta:g}, "
            f"protecting {unit} ({rows}, {self.neighbors})"
        )

    @property
    def headline(self) -> str:
        """The release in a sentence."""
        return f"Plan of {self._promise}"

    def __repr__(self) -> str:
        """Print the plan as a table of what can come out."""
        return f"{self.headline}\n{self.to_frame().to_string(index=False, max_rows=12)}"

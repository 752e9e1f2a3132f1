"""The base class of plans for counts with bounded relative error, on listed and implicit trees."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from fractions import Fraction
from typing import Any, ClassVar, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.arguments import released_counts
from pandas_dptree.mechanisms.measure import LARGEST_COUNT
from pandas_dptree.mechanisms.multiplicative.counts import ClippedThresholds
from pandas_dptree.mechanisms.multiplicative.guarantees import Multiplicative
from pandas_dptree.mechanisms.multiplicative.thresholds import Calibration, Thresholds, group_loss
from pandas_dptree.mechanisms.truncated import TruncatedLaplace
from pandas_dptree.output.empty_tables import Totals
from pandas_dptree.plans.base import Plan
from pandas_dptree.plans.losses import LevelItem
from pandas_dptree.privacy.level_losses import LevelLoss, approximate_level, laplace_level
from pandas_dptree.privacy.loss import exact
from pandas_dptree.privacy.sensitivity import count_sensitivity

__all__ = ["STEPS", "RelativeErrorPlan"]

STEPS = [("comparing with thresholds", 1), ("laying out the table", 1)]
"""The steps of a release after the records were read, each with its size."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class RelativeErrorPlan(Plan[pd.DataFrame]):
    """Thresholds, and the errors of counts estimated with them: a function of public arguments alone.

    `mechanism` is the guarantee that was asked for. `chain` has the thresholds, for one added or removed row:
    at the loss that `group_loss` derives from that of a unit.
    """

    _max_rows: ClassVar[int | None] = 12

    mechanism: Multiplicative
    chain: Thresholds | ClippedThresholds = field(init=False)

    def __post_init__(self) -> None:
        """Check the arguments, and compute the thresholds."""
        if not isinstance(self.mechanism, Multiplicative):
            raise ArgumentError(
                "mechanism",
                f"must be a Multiplicative, not {quote(self.mechanism)}.",
                hint="for example dpt.Multiplicative(alpha=0.25).",
            )
        super().__post_init__()
        object.__setattr__(self, "chain", self._thresholds_for(self.mechanism))

    def _thresholds_for(self, mechanism: Multiplicative) -> Thresholds | ClippedThresholds:
        """Compute the thresholds of a mechanism, at the loss of one row."""
        return mechanism.thresholds(group_loss(self.loss, self._rows), len(self.level_names))

    def _loss_items(self) -> list[LevelItem]:
        """List what the noisy total, the thresholds and the windows spend, if one row is added or removed.

        The noisy total decides how many rounds divide the loss of the thresholds. In the worst case it is one
        round, so the rounds are not listed one by one. For more rows, only the whole is known to satisfy the
        stated epsilon and delta (`group_loss`).
        """
        stated = self.loss.exact
        assert stated.epsilon is not None
        if self._rows > 1:
            return [LevelItem("all levels", approximate_level(stated.epsilon, stated.delta))]
        rounds, total = self.thresholds.loss_of_rounds.exact, self.thresholds.total_noise
        assert rounds.epsilon is not None
        items = [
            LevelItem("number of thresholds", _bounded_noise(total)),
            LevelItem("thresholds", approximate_level(rounds.epsilon, rounds.delta)),
        ]
        if isinstance(self.chain, ClippedThresholds):
            window = _bounded_noise(self.chain.window_noise)
            items += [LevelItem(name, window) for name in self.level_names]
        return items

    @property
    def _rows(self) -> int:
        """The number of rows in which neighbours differ, added or removed."""
        return count_sensitivity(neighbors=self.neighbors, max_contributions=self.max_contributions).l1

    @property
    def thresholds(self) -> Thresholds:
        """The chain of thresholds, without the windows that `Multiplicative.clip` adds."""
        return self.chain.thresholds if isinstance(self.chain, ClippedThresholds) else self.chain

    @property
    def threshold(self) -> float:
        """The threshold: errors of smaller counts are relative to it instead of the count."""
        return self.thresholds.tau

    @property
    def failure_probability(self) -> float:
        """The probability with which any one count may be further off than is guaranteed."""
        return self.thresholds.eta

    @property
    def max_error(self) -> int | None:
        """Maximum error of a released count, with certainty: twice the window's radius; None without clip."""
        return _max_error(self.chain)

    @property
    def rmse_bound(self) -> float | None:
        """Bound on each count's alpha-RMSE, from `ClippedThresholds`; None without clip.

        Without clip, an estimate can be off by any amount, however rarely. In an implicit tree, a node that
        is not released counts as no error: the bound is on the mean over all releases, not only those that
        show the node. For the root, which is always shown, there is no difference.
        """
        return self.chain.rmse_bound if isinstance(self.chain, ClippedThresholds) else None

    def error_bound(self, counts: npt.ArrayLike) -> IntArray:
        r"""Compute how far true counts can be from released ones, counts of at least 0.

        Where :math:`|c - w| \le \alpha \max(w, \tau)`, either :math:`w \le \tau` or
        :math:`w \le c/(1 - \alpha)`. So the distance is a whole number of at most
        :math:`\alpha \max(c/(1 - \alpha), \tau)`. With clip it is also at most `max_error`.
        """
        released = released_counts(counts)
        alpha = self.mechanism.alpha
        bound = alpha * np.maximum(released / (1 - alpha), self.threshold)
        # the factor exceeds any rounding error, so that no whole number is lost
        largest = LARGEST_COUNT if self.max_error is None else self.max_error
        return np.asarray(np.floor(np.minimum(bound * (1 + 2.0**-48), largest)), dtype=np.int64)

    def _total_of(self, table: pd.DataFrame) -> Totals:
        """Return the total of a released table, and the error bound of an empty table's total."""
        return {"count": (table["count"].iloc[0], int(self.error_bound(0)))}

    def to_frame(self) -> pd.DataFrame:
        """Return the values that a count can take before any clip, with their `error_bound`."""
        counts = self.thresholds.estimates
        return pd.DataFrame({"count": counts, "error_bound": self.error_bound(counts)})

    @property
    def _measured(self) -> str:
        return "counts with bounded relative error"

    @property
    def mechanism_name(self) -> str:
        """The name of the mechanism in ``attrs`` and JSON."""
        return "multiplicative"

    def _provenance_details(self) -> dict[str, Any]:
        return {
            "consistency": "none",
            "alpha": self.mechanism.alpha,
            "threshold": self.threshold,
            "failure_probability": self.failure_probability,
            "calibration": self.mechanism.calibration,
            "clip": self.mechanism.clip,
            "rmse_bound": self.rmse_bound,
        }

    @property
    def _guarantee_sentence(self) -> str:
        """The accuracy and the protection of the counts in words, for a headline."""
        in_any_case = "" if self.max_error is None else f", and by {self.max_error:.15g} in any case"
        return (
            f"counts that are off by at most {self.mechanism.alpha:g} of the count or of "
            f"{math.ceil(self.threshold):.15g}, whichever is larger, but for a probability of "
            f"{self.failure_probability:g} each{in_any_case}: {self.protection}"
        )

    def compare(self) -> pd.DataFrame:
        """Compare the calibrations that could spend the same loss on the same tree.

        Returns
        -------
        pandas.DataFrame
            Indexed by ``calibration`` and ``clip``, this plan's first; only this plan if the threshold is
            given. In numbers of records: ``threshold``, ``error_bound`` of a count up to the threshold, and
            ``max_error``, which always holds (missing without clip). ``failure_probability``: the probability
            that a count is further off than its bound.
        """
        own = self.mechanism
        mechanisms = [own]
        if own.threshold is None:
            both = [(calibration, clip) for clip in (False, True) for calibration in get_args(Calibration)]
            others = [replace(own, calibration=calibration, clip=clip) for calibration, clip in both]
            mechanisms += [each for each in others if each != own]
        rows = {}
        for each in mechanisms:
            chain = self._thresholds_for(each)
            thresholds = chain.thresholds if isinstance(chain, ClippedThresholds) else chain
            rows[each.calibration, each.clip] = {
                "threshold": thresholds.tau,
                "error_bound": math.floor(own.alpha * thresholds.tau),
                "max_error": _max_error(chain),
                "failure_probability": thresholds.eta,
            }
        index = pd.MultiIndex.from_tuples(rows, names=["calibration", "clip"])
        return pd.DataFrame(list(rows.values()), index=index).astype({"max_error": "Int64"})

    # JSON

    def _fields(self) -> dict[str, Any]:
        return {"guarantee": asdict(self.mechanism), "thresholds": self.chain.to_dict()}

    @classmethod
    def _guarantee(cls, data: Mapping[str, Any]) -> Multiplicative:
        """Read the guarantee; none of its fields may be left to a default."""
        return Multiplicative(**{each.name: data["guarantee"][each.name] for each in fields(Multiplicative)})


def _bounded_noise(noise: TruncatedLaplace) -> LevelLoss:
    """Return what noise of bounded size spends if one row is added or removed."""
    one_row = count_sensitivity(neighbors="add_remove")
    return laplace_level(noise.noise_scale, one_row, min(exact(noise.delta), Fraction(noise.delta_spent)))


def _max_error(chain: Thresholds | ClippedThresholds) -> int | None:
    """Return how far a released count can be from the true one, with certainty; None without clip."""
    return 2 * chain.window_noise.radius if isinstance(chain, ClippedThresholds) else None

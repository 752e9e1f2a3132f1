r"""Releases of counts that are right up to a factor, each with a bound on its error.

The privacy loss is stated for a unit, and the mechanism takes it for one row that is added or removed:
`group_loss` stands between the two.

References
----------
Ghazi, Kamath, Kumar, Manurangsi and Wu, *On differentially private counting on trees*, 2023.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree._version import __version__
from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.domain import Domain, level_names
from pandas_dptree.hierarchy.known import Known
from pandas_dptree.hierarchy.tree import IntArray, Tree
from pandas_dptree.mechanisms.arguments import noise_source
from pandas_dptree.mechanisms.guarantees import Multiplicative
from pandas_dptree.mechanisms.measure import LARGEST_COUNT
from pandas_dptree.mechanisms.multiplicative import ClippedThresholds, clipped_counts, threshold_counts
from pandas_dptree.mechanisms.thresholds import Thresholds, group_loss
from pandas_dptree.output.frames import release_frame
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.quantity import COUNT
from pandas_dptree.privacy.sensitivity import Neighbors, count_sensitivity
from pandas_dptree.release import exact_leaves

__all__ = ["MultiplicativePlan"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class MultiplicativePlan:
    """What a release of counts that are right up to a factor will ask, and how far they can be off.

    Made by `plan` with ``mechanism=Multiplicative(...)``. It is a function of public arguments alone.

    Attributes
    ----------
    tree : Tree
        The shape of the hierarchy.
    domain : Domain or None
        The labelled hierarchy; None for numbers alone.
    loss : PrivacyLoss
        The privacy loss of one release: epsilon and delta, for one unit.
    mechanism : Multiplicative
        What is asked for.
    neighbors : {"add_remove", "replace"}
        What may differ between neighbouring data sets.
    privacy_unit : hashable or None
        The column that names whom to protect; None where each row is protected by itself.
    max_contributions : int
        How many rows of a unit are counted.
    chain : Thresholds or ClippedThresholds
        The thresholds, at the loss that `group_loss` gives for one row.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> plan = dpt.plan(dpt.Tree.from_branching([50, 60, 30]), epsilon=1.0, delta=1e-6,
    ...                 mechanism=dpt.Multiplicative(alpha=0.25))
    >>> plan.error_bound([0, 300_000]).tolist() == [int(0.25 * plan.threshold), 100_000]
    True
    """

    tree: Tree
    domain: Domain | None
    loss: PrivacyLoss
    mechanism: Multiplicative
    neighbors: Neighbors = "add_remove"
    privacy_unit: Hashable | None = None
    max_contributions: int = 1
    chain: Thresholds | ClippedThresholds = field(init=False)

    def __post_init__(self) -> None:
        """Check the arguments, and lay out the thresholds."""
        keys = self.level_names[1:] if self.privacy_unit is not None else ()
        if not isinstance(self.privacy_unit, Hashable) or self.privacy_unit in keys:
            raise ArgumentError(
                "privacy_unit",
                f"must name a column that is no key, not {self.privacy_unit!r}.",
                hint="whom a row belongs to cannot also say where it is counted; copy the column if so.",
            )
        rows = count_sensitivity(neighbors=self.neighbors, max_contributions=self.max_contributions).l1
        chain = self.mechanism.thresholds(group_loss(self.loss, rows), self.tree.depth + 1)
        object.__setattr__(self, "chain", chain)

    @property
    def level_names(self) -> tuple[Hashable, ...]:
        """Names of the levels, from the root to the leaves."""
        return level_names(self.domain or self.tree)

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

    def release(self, data: Any, *, rng: np.random.Generator | None = None) -> pd.DataFrame:
        r"""Spend the budget: compare the counts with the thresholds, and return the table.

        Parameters
        ----------
        data : dataframe or numpy.ndarray
            The records, one row each; or whole numbers, the exact counts of the leaves in the order of
            the tree, shape ``(n_leaves,)``. Negative counts count as 0. Of exact counts the caller
            answers for `max_contributions`.
        rng : numpy.random.Generator, optional
            Makes the release repeatable, for tests and simulation: it is then not private. By default
            all randomness comes from the operating system's cryptographic source.

        Returns
        -------
        pandas.DataFrame
            One row per node, from the root to the leaves: ``level`` (ordered categorical), the keys (missing
            below a node's depth), and

            - ``count``: whole and non-negative. One value stands for all small counts, 0 included, and is
              not 0 itself. **The table does not add up**: children do not sum to their parent.
            - ``error_bound``: how far the true count is from `count` at most, with probability
              ``1 - failure`` for each node: :math:`\alpha \max(c/(1 - \alpha), \tau)`. (True counts are those
              of the rows that fit the domain and were kept for their unit. The guarantee is for data sets
              of at most 2**40 such rows.)

            Nodes where nobody can be have the count and the bound 0. ``attrs["dp"]`` tells how the table was
            made; it is for display and proves nothing.

        Raises
        ------
        ArgumentError
            If `data` is neither, or does not fit the plan.
        ColumnsError
            If a column is missing or repeated, or is of a type that cannot equal the domain's labels.

        Notes
        -----
        **Privacy**: each call spends the plan's whole privacy loss anew. The answer's rows, columns and
        types follow from the plan alone. Records outside the domain are dropped, and nothing tells how many.
        The bounds are functions of the released counts.
        """
        counts = self._estimates(data, rng)
        bounds = [self.error_bound(level) for level in counts]
        if self.domain is not None and len(self.domain.impossible):
            exact = Known.read(self.domain, None).exact
            counts = [np.where(nobody, 0, level) for nobody, level in zip(exact, counts, strict=True)]
            bounds = [np.where(nobody, 0, level) for nobody, level in zip(exact, bounds, strict=True)]
        labelled = self.domain or Domain.from_tree(self.tree)
        return release_frame(labelled, {"count": counts, "error_bound": bounds}, self._account(rng))

    def _estimates(self, data: Any, rng: np.random.Generator | None) -> list[IntArray]:
        """Estimate the count of every node. Exact counts do not leave this function."""
        (leaves,) = exact_leaves(self, [COUNT], data, noise_source(rng))
        levels = self.tree.roll_up(leaves)
        if isinstance(self.chain, ClippedThresholds):
            return list(clipped_counts(self.tree, levels, self.chain, rng=rng))
        return list(threshold_counts(self.tree, levels, self.chain, rng=rng))

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
    def headline(self) -> str:
        """The release in a sentence."""
        unit = "each row" if self.privacy_unit is None else f"each {self.privacy_unit}"
        rows = "1 row" if self.max_contributions == 1 else f"up to {self.max_contributions} rows"
        return (
            f"Plan of counts that are off by at most {self.mechanism.alpha:g} of the count or of "
            f"{self.threshold:.0f}, whichever is larger, each with probability "
            f"{1 - self.mechanism.failure:g}: epsilon={self.loss.epsilon:g}, delta={self.loss.delta:g}, "
            f"protecting {unit} ({rows}, {self.neighbors})"
        )

    def __repr__(self) -> str:
        """Print the plan as a table of what can come out."""
        return f"{self.headline}\n{self.to_frame().to_string(index=False, max_rows=12)}"

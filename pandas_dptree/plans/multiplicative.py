"""Plans for counts with bounded relative error of listed trees.

References
----------
Ghazi, Kamath, Kumar, Manurangsi and Wu, *On differentially private counting on trees*, 2023.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from pandas_dptree.hierarchy.domain import Domain, source_in_words
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.tree import IntArray, Tree
from pandas_dptree.ingest.contributions import LeafTally
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.reading import Bounding
from pandas_dptree.mechanisms.multiplicative.counts import ClippedThresholds, clipped_counts, threshold_counts
from pandas_dptree.output.empty_tables import usual_causes
from pandas_dptree.output.frames import release_frame
from pandas_dptree.output.progress import Done
from pandas_dptree.plans.execute import exact_leaves, opened_leaves
from pandas_dptree.plans.relative_error import STEPS, RelativeErrorPlan
from pandas_dptree.plans.running import Finish, Origin, Outcome, Release, Resources
from pandas_dptree.plans.tree_plan import TreePlan
from pandas_dptree.privacy.quantity import COUNT

__all__ = ["MultiplicativePlan"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MultiplicativePlan(RelativeErrorPlan, TreePlan):
    r"""A release of counts with bounded relative error, described before it happens.

    Made by `plan` with ``mechanism=Multiplicative(...)``. It is a function of public arguments alone. Its
    attributes are those of `Plan` (the loss has an epsilon and a delta), and:

    Attributes
    ----------
    tree, domain : Tree, Domain or None
        The shape of the hierarchy, and the labels of its nodes; None for a plan without labels.
    mechanism : Multiplicative
        The guarantee that was asked for.
    chain : Thresholds or ClippedThresholds
        The thresholds, at the loss that `group_loss` gives for one row.

    Notes
    -----
    `release` takes records, or the exact counts of the leaves, as that of `AdditivePlan`. The table has one
    row per node, from the root to the leaves: ``level`` (ordered categorical), the keys (missing below a
    node's depth), and

    - ``count``: whole and non-negative. One value, which is not 0, stands for all small counts, 0 included.
      **The table does not add up**: children do not sum to their parent.
    - ``error_bound``: how far the true count is from `count` at most, with probability
      ``1 - failure_probability`` for each node: :math:`\alpha \max(c/(1 - \alpha), \tau)`. (True counts are
      those of the rows that fit the domain and were kept for their unit. The guarantee is for data sets of at
      most 2**40 such rows.) With clip, no error exceeds `max_error`.

    Structural zeros have the count and the bound 0.

    **Privacy**: the rows, columns and types of the table follow from the plan alone. Records outside the
    domain are dropped, and their number is not reported. The bounds are functions of the released counts.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> plan = dpt.plan(dpt.Tree.from_branching([50, 60, 30]), epsilon=1.0, delta=1e-6,
    ...                 mechanism=dpt.Multiplicative(alpha=0.25))
    >>> plan.error_bound([0, 300_000]).tolist() == [int(0.25 * plan.threshold), 100_000]
    True
    """

    kind: ClassVar[str] = "multiplicative"
    _implied: ClassVar[Mapping[str, object]] = {"consistency": "none"}
    """Values of options that such a plan has in any case: its tables never add up."""

    def _prepared(self, data: Any) -> Release:
        def read(resources: Resources) -> Finish:
            (leaves,) = exact_leaves(self, [COUNT], data, resources)
            return partial(self._finished, data, leaves)

        return Release(plan=self, read=read, steps=STEPS)

    def _opened(self, data: Any, bounding: Bounding) -> tuple[Records, LeafTally]:
        return opened_leaves(self, [COUNT], data, bounding)

    def _finished(self, data: Any, leaves: IntArray, origin: Origin, done: Done) -> Outcome:
        """Compare the counts with the thresholds. Exact counts do not leave this function."""
        levels = self._shape.roll_up(leaves)
        if isinstance(self.chain, ClippedThresholds):
            counts = list(clipped_counts(self.tree, levels, self.chain, rng=origin.rng))
        else:
            counts = list(threshold_counts(self.tree, levels, self.chain, rng=origin.rng))
        done()
        bounds = [self.error_bound(level) for level in counts]
        if self.domain is not None and len(self.domain.structural_zeros):
            exact = Known.read(self.domain, None).exact
            counts = [np.where(empty, 0, level) for empty, level in zip(exact, counts, strict=True)]
            bounds = [np.where(empty, 0, level) for empty, level in zip(exact, bounds, strict=True)]
        columns: dict[Hashable, Any] = {"count": counts, "error_bound": bounds}
        table = release_frame(self._labelled, columns, self._attrs(origin))
        domain = None if isinstance(data, np.ndarray) else self.domain
        causes = usual_causes(domain, privacy_unit=self.privacy_unit)
        return Outcome(table, self._total_of(table), causes)

    @property
    def _release_in_words(self) -> str:
        """The release in one sentence."""
        return f"Plan of {self._guarantee_sentence}{source_in_words(self.domain)}"

    @classmethod
    def _from_fields(cls, data: Mapping[str, Any], hierarchy: Domain | Tree, **common: Any) -> Self:
        return cls(
            tree=hierarchy if isinstance(hierarchy, Tree) else hierarchy.tree,
            domain=hierarchy if isinstance(hierarchy, Domain) else None,
            mechanism=cls._guarantee(data),
            **common,
        )

"""Plans for counts with bounded relative error of implicit trees.

The algorithm (its source is in `pandas_dptree.plans.multiplicative`) runs only on the few nodes that can
reach a threshold. The result is that of the complete tree, so it is as private: see the proof in
`pandas_dptree.mechanisms.multiplicative.rounds.decide_nodes`. The set of possible nodes is public: it follows
from the description of the tree.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from pandas_dptree.hierarchy.levels.prefixes import PrefixTree
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.prefixes import (
    Keys,
    PrefixTally,
    check_prefixes,
    nonempty_levels,
    open_prefixes,
    sorted_keys,
)
from pandas_dptree.ingest.reading import Bounding
from pandas_dptree.mechanisms.multiplicative.counts import (
    ClippedThresholds,
    sparse_clipped_counts,
    sparse_threshold_counts,
)
from pandas_dptree.mechanisms.multiplicative.rounds import Nodes
from pandas_dptree.mechanisms.multiplicative.thresholds import LARGEST_TOTAL
from pandas_dptree.output.empty_tables import usual_causes
from pandas_dptree.output.progress import Done
from pandas_dptree.output.sparse import node_frame
from pandas_dptree.plans.relative_error import STEPS, RelativeErrorPlan
from pandas_dptree.plans.running import Finish, Origin, Outcome, Release, Resources
from pandas_dptree.privacy.unit import check_rows_of_records

__all__ = ["ImplicitMultiplicativePlan"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ImplicitMultiplicativePlan(RelativeErrorPlan):
    """A release of large nodes of an implicit tree, with bounded relative error, described before it happens.

    Made by `plan` for prefixes with ``mechanism=Multiplicative(...)``. It is a function of the tree and the
    privacy parameters alone. Its attributes are those of `Plan` (the loss has an epsilon and a delta), and:

    Attributes
    ----------
    tree : BitPrefixes or CharPrefixes
        The tree.
    mechanism, chain
        As for `MultiplicativePlan`.

    Notes
    -----
    The released table has, level by level, one row for the root and each node that reached a threshold, and
    for its ancestors: ``level`` (ordered categorical), one column per level such as ``ip/8`` (missing below a
    node's depth), and ``count`` and ``error_bound`` as that of `MultiplicativePlan`. **The table does not add
    up.** A root that reaches no threshold has the value of small counts, with clip moved into its window.

    Empty nodes other than the root are never in the table. (True counts are those of the rows that fit the
    tree and were kept for their unit; the guarantee is for data sets of at most 2**40 such rows.) For each
    node, the probability that it is released with a bound that does not hold is at most
    `failure_probability`, and so is the probability that it is not released and holds more than
    `largest_unseen`.

    **Privacy**: the columns and types of the table follow from the plan alone; which nodes appear is covered
    by the loss. Records that do not fit the tree are dropped, and their number is not reported. The bounds
    are functions of the released counts.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import pandas_dptree as dpt
    >>> plan = dpt.plan(dpt.binary("user", bits=64), epsilon=1.0, delta=1e-6,
    ...                          mechanism=dpt.Multiplicative(alpha=0.25))
    >>> logins = pd.DataFrame({"user": np.repeat(np.array([7, 2**63], dtype=np.uint64), [50, 20_000])})
    >>> plan.release(logins)["user/64"].max() == 2**63 and plan.largest_unseen
    3532
    """

    kind: ClassVar[str] = "implicit_multiplicative"

    tree: PrefixTree

    def __post_init__(self) -> None:
        """Check the tree and the privacy unit."""
        check_prefixes(self.tree)
        super().__post_init__()
        check_rows_of_records(self.privacy_unit, self.max_contributions)

    @property
    def _columns_used(self) -> tuple[Hashable, ...]:
        return (self.tree.column,)

    @property
    def level_names(self) -> tuple[str, ...]:
        """Names of the levels, from the root down."""
        return self.tree.level_names

    @property
    def hierarchy(self) -> PrefixTree:
        """The tree."""
        return self.tree

    @property
    def domain_source(self) -> None:
        """None: the keys are not public, and the mechanism protects which nodes are shown."""
        return None

    @property
    def largest_unseen(self) -> int:
        """The largest count that an unreleased node below the root can have.

        For each node, the probability that it counts more and is not released is at most
        `failure_probability`. The guarantee is for data sets of at most 2**40 rows.
        """
        return int(self.thresholds.bounds[0])

    def _prepared(self, data: Any) -> Release:
        def read(resources: Resources) -> Finish:
            return partial(self._finished, *sorted_keys(data, self.tree, **resources.bounding(self)))

        return Release(plan=self, read=read, steps=STEPS)

    def _opened(self, data: Any, bounding: Bounding) -> tuple[Records, PrefixTally]:
        return open_prefixes(data, self.tree, bounding)

    def _finished(self, keys: Keys, rows: IntArray, origin: Origin, done: Done) -> Outcome:
        """Release the large nodes. Exact counts do not leave this function."""
        total, nodes_above = int(rows.sum()), partial(_nodes_above, keys, rows, self.tree)
        if isinstance(self.chain, ClippedThresholds):
            released = sparse_clipped_counts(total, nodes_above, self.chain, rng=origin.rng)
        else:
            released = sparse_threshold_counts(total, nodes_above, self.chain, rng=origin.rng)
        done()
        names, counts = zip(*released, strict=True)
        bounds = [self.error_bound(level) for level in counts]
        table = node_frame(self.tree, names, {"count": counts, "error_bound": bounds}, self._attrs(origin))
        causes = usual_causes(derived=[self.tree], privacy_unit=self.privacy_unit)
        return Outcome(table, self._total_of(table), causes)

    def _provenance_details(self) -> dict[str, Any]:
        return {**RelativeErrorPlan._provenance_details(self), "largest_unseen": self.largest_unseen}

    @classmethod
    def _from_fields(cls, data: Mapping[str, Any], hierarchy: PrefixTree, **common: Any) -> Self:
        return cls(tree=hierarchy, mechanism=cls._guarantee(data), **common)

    @property
    def _release_in_words(self) -> str:
        """The release in one sentence."""
        return (
            f"Plan of large nodes by prefixes of {self.tree.column!r}, and {self._guarantee_sentence}. "
            f"Nodes that are not released count {self.largest_unseen} at most, but for the same probability"
        )


def _nodes_above(keys: Keys, rows: IntArray, tree: PrefixTree, least: int) -> list[Nodes]:
    """List the nodes below the root with more than `least` records; their parents are then listed too."""
    found = []
    for prefixes, counts in nonempty_levels(keys, rows, tree):
        above = counts > least
        found.append((prefixes[above], np.minimum(counts[above], LARGEST_TOTAL)))
    found.reverse()
    levels = [Nodes(*found[0], np.zeros(len(found[0][0]), dtype=np.int64))]
    for (prefixes, counts), (start, length) in zip(found[1:], pairwise(tree.lengths), strict=True):
        parent = np.searchsorted(levels[-1].names, tree.shorten(prefixes, length, start))
        levels.append(Nodes(prefixes, counts, np.asarray(parent, dtype=np.int64)))
    return levels

"""Plans for hierarchies whose nodes nobody can list: implicit trees of prefixes, and private keys.

Only nodes that hold a record are examined, and only the large ones are released; all nodes of public levels
are. What the others hold is pooled, so all totals are kept. The modules `independent_levels` and
`gated_levels` of `pandas_dptree.mechanisms` have the two mechanisms, and why they are private. Everything
else, such as the ancestors that are shown with released nodes, is a function of what was released.

References
----------
Ghazi, Kamath, Kumar, Manurangsi and Wu, "On differentially private counting on trees", 2023: truncated noise
on trees of exponential size (Lemma 2.8). Korolova, Kenthapadi, Mishra and Ntoulas, "Releasing search queries
and clicks privately", 2009: releasing only what has a large noisy count.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self, get_args

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, listed
from pandas_dptree.estimation.sparse_tree import count_bounds, sparse_estimates
from pandas_dptree.hierarchy.domain import Domain, Source
from pandas_dptree.hierarchy.levels.prefixes import PrefixTree
from pandas_dptree.hierarchy.private_keys import PrivateKeys
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.prefixes import PrefixNodes, PrefixTally, check_prefixes, open_prefixes, sorted_keys
from pandas_dptree.ingest.private_keys import KeyNodes, PathTally, nodes_of_private_keys, open_private_keys
from pandas_dptree.ingest.reading import Bounding
from pandas_dptree.mechanisms.multiplicative.guarantees import Multiplicative
from pandas_dptree.mechanisms.multiplicative.thresholds import Calibration
from pandas_dptree.mechanisms.private_levels import LEVEL_NOISES, LevelNoise
from pandas_dptree.mechanisms.sampling import random_words
from pandas_dptree.output.doubtful_tables import Level, empty_values
from pandas_dptree.output.empty_tables import totals_of, usual_causes
from pandas_dptree.output.progress import Done
from pandas_dptree.output.sparse import sparse_frame
from pandas_dptree.planning.private_split import FOUND_WITH, best_noise
from pandas_dptree.plans import serialize
from pandas_dptree.plans.base import Plan
from pandas_dptree.plans.implicit_multiplicative import ImplicitMultiplicativePlan
from pandas_dptree.plans.losses import LevelItem
from pandas_dptree.plans.running import Finish, Origin, Outcome, Release, Resources
from pandas_dptree.plans.shown_columns import Kept, check_confidence, check_kept
from pandas_dptree.plans.shown_levels import shown_levels
from pandas_dptree.privacy.caps import Caps
from pandas_dptree.privacy.level_losses import NOTHING
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.quantity import COUNT
from pandas_dptree.privacy.unit import check_rows_of_records

__all__ = ["ImplicitPlan", "caps_in_tree", "check_delta"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ImplicitPlan(Plan[pd.DataFrame]):
    """A release of the large nodes of a hierarchy that nobody can list, described before it happens.

    Made by `plan` for prefixes, or with `private_keys`. It is a function of the hierarchy and the
    privacy parameters alone.

    Attributes
    ----------
    loss, neighbors, privacy_unit, max_contributions, caps
        As for `Plan`; the loss has a delta.
    tree : BitPrefixes, CharPrefixes or PrivateKeys
        The tree of all prefixes; or the public keys, and the columns of the private ones.
    noise : LevelNoise
        The noise and the threshold of each level.
    budget_shares : tuple of float
        Each level's part of the loss. Only their proportions matter.
    confidence : float
        The probability with which the column ``error_bound`` holds in all rows; not used with truncated
        Laplace noise, whose bounds are certain.
    keep : tuple of {"measurements"}
        What else the table shows: the noisy counts.

    Notes
    -----
    The released table has, level by level, one row for each node of a public level, and for each released
    node and its ancestors: ``level`` (ordered categorical), one column per key or per level such as ``ip/8``
    (missing below a node's depth), and

    - ``count``: whole and non-negative. A node's children and their remainder add up to it.
    - ``std_error``: that of the noise, as if the node were released in any case. Missing for an ancestor that
      was not released itself, and for remainders that depend on its noisy count.
    - ``max_error``, with truncated Laplace noise: how far the true count can be from `count`, with certainty.
      (True counts are those of the rows that fit the tree and were kept for their unit.)
    - ``error_bound``, with Gaussian noise: likewise, with the probability `confidence` for all rows of the
      table together.
    - ``other``: True for a remainder: what a node of the level above holds beside its children in the table.
      Its own key is missing. Each such node has one, unless all its children are in the table.

    With ``keep=["measurements"]`` also ``measurement``, the noisy count, and its ``noise_scale``; missing
    where nothing was released.

    **Privacy**: the columns of the table follow from the plan alone; which nodes appear is covered by delta.
    Private keys are made afresh, sorted by value, and their type depends on the released ones alone: objects
    if there are none. Records that do not fit the tree are dropped, and their number is not reported. A
    record whose private keys are missing from some level on counts on the levels above.

    **Selection.** A released count is the measurement that selected its node. Of nodes near the threshold
    those with positive noise are shown, so their counts are too large on average; see the documentation.
    """

    kind: ClassVar[str] = "implicit"
    _takes_caps: ClassVar[bool] = True
    _takes_rho_with_delta: ClassVar[bool] = True

    tree: PrefixTree | PrivateKeys
    noise: LevelNoise
    budget_shares: tuple[float, ...]
    confidence: float = 0.95
    keep: tuple[Kept, ...] = ()

    def __post_init__(self) -> None:
        """Check the arguments and the noise."""
        if not isinstance(self.tree, PrivateKeys):
            check_prefixes(self.tree)
        super().__post_init__()
        check_rows_of_records(self.privacy_unit, self.max_contributions)
        check_confidence(self.confidence)
        object.__setattr__(self, "keep", check_kept(self.keep))
        if "linear" in self.keep:
            raise ArgumentError(
                "keep",
                "names unbiased estimates, which there are none of with private keys and implicit trees: "
                "only large counts are shown.",
                hint='leave "linear" out.',
            )
        if self.confidence is None:
            raise ArgumentError(
                "confidence", "must be given, although only Gaussian noise uses it.", hint="for example 0.95."
            )
        check_delta(self.loss)
        if len(self.budget_shares) != len(self.level_names) or not all(
            math.isfinite(share) and share > 0 for share in self.budget_shares
        ):
            raise ArgumentError(
                "shares",
                "must be a finite number above 0 for each level.",
                hint=f"the levels are {listed(self.level_names)}; only proportions matter.",
            )
        if self.noise.n_public != self.n_public or not self.noise.keeps_to(
            self.loss, self.budget_shares, **self._unit
        ):
            raise ArgumentError(
                "noise",
                "does not follow from the shares, or spends more than the privacy loss.",
                hint="make it with `calibrate` of its class.",
            )

    def _loss_items(self) -> list[LevelItem]:
        levels = zip(self.level_names, self.noise.level_losses(**self._unit), strict=True)
        selection = self.noise.selection_loss(**self._unit)
        return [
            *(LevelItem(name, loss) for name, loss in levels),
            *([] if selection == NOTHING else [LevelItem("thresholds", selection)]),
        ]

    def _certified_delta(self, epsilon: float) -> float:
        return self.noise.delta(epsilon, **self._unit)

    @property
    def _unit(self) -> dict[str, Any]:
        """The arguments of `LevelNoise` that describe a privacy unit."""
        caps = caps_in_tree(self.tree, self.caps)
        return {"neighbors": self.neighbors, "max_contributions": self.max_contributions, "caps": caps}

    @property
    def n_public(self) -> int:
        """Number of levels whose nodes are all shown; the root is one of them."""
        return self.tree.n_public

    @property
    def level_names(self) -> tuple[Hashable, ...]:
        """Names of the levels, from the root down."""
        return self.tree.level_names

    @property
    def _columns_used(self) -> tuple[Hashable, ...]:
        return self.tree.level_names[1:] if isinstance(self.tree, PrivateKeys) else self.tree.columns

    @property
    def hierarchy(self) -> PrefixTree | Domain | None:
        """The tree of prefixes, or the public keys; None if all keys are private."""
        return self.tree.domain if isinstance(self.tree, PrivateKeys) else self.tree

    @property
    def domain_source(self) -> Source | None:
        """Where the public keys came from; None if no keys are public."""
        return self.hierarchy.source if isinstance(self.hierarchy, Domain) else None

    @property
    def _measured(self) -> str:
        return "counts"

    def to_frame(self) -> pd.DataFrame:
        """Return the plan as a frame.

        Returns
        -------
        pandas.DataFrame
            One row per level: ``level``; with truncated Laplace noise ``epsilon`` and ``delta``;
            ``noise_scale``, ``std_error`` (of a noisy count), ``shown_above`` (what the noisy count of a
            shown node exceeds), ``found_from`` (the smallest count that is shown with probability 0.95,
            whatever the other nodes hold), and with truncated Laplace noise ``largest_unseen`` (the most that
            a node which is not shown can hold, with certainty). Missing for public levels, whose nodes are
            all shown.
        """
        noise = self.noise
        columns: dict[str, Any] = {"level": self.level_names}
        levels = noise.to_list()
        columns |= {
            name: [level[name] for level in levels] for name in ("epsilon", "delta") if name in levels[0]
        }
        columns |= {"noise_scale": noise.noise_scales, "std_error": np.sqrt(noise.variances)}
        whole = {
            "shown_above": noise.thresholds,
            "found_from": noise.found_from(1 - FOUND_WITH),
            "largest_unseen": noise.largest_unseen,
        }
        if set(whole["largest_unseen"]) == {None}:
            del whole["largest_unseen"]
        return pd.DataFrame(columns | {name: pd.array(each, dtype="Int64") for name, each in whole.items()})

    def _prepared(self, data: Any) -> Release:
        def read(resources: Resources) -> Finish:
            return partial(self._finished, self._read(data, resources.bounding(self)))

        noise = ["adding noise"] * len(self.level_names)  # how many nodes a level has is secret
        steps = [(step, 1) for step in (*noise, "estimating", "laying out the table")]
        return Release(plan=self, read=read, steps=steps)

    def _opened(self, data: Any, bounding: Bounding) -> tuple[Records, PathTally | PrefixTally]:
        if isinstance(self.tree, PrivateKeys):
            return open_private_keys(data, self.tree, bounding)
        return open_prefixes(data, self.tree, bounding)

    def _finished(self, nodes: KeyNodes | PrefixNodes, origin: Origin, done: Done) -> Outcome:
        """Release the large nodes. Exact counts do not leave `LevelNoise.measure`."""
        released = self.noise.measure(nodes, origin.source, done)
        radii = self.noise.radii(released, self.confidence)
        levels = shown_levels(self.tree, nodes, released, self.noise.variances, radii)
        sparse = [level.nodes for level in levels]
        bounds = count_bounds(sparse)
        estimates = sparse_estimates(sparse, bounds[0], partial(random_words, origin.source))
        done()
        table = sparse_frame(
            self.level_names,
            levels,
            estimates,
            bounds,
            bound_name=self.noise.bound_name,
            noise_scales=self.noise.noise_scales if "measurements" in self.keep else None,
            attrs=self._attrs(origin),
        )
        prefixes = [] if isinstance(self.tree, PrivateKeys) else [self.tree]
        domain = self.hierarchy if isinstance(self.hierarchy, Domain) else None
        causes = usual_causes(domain, derived=prefixes, privacy_unit=self.privacy_unit)
        public = [
            Level(counts.astype(np.float64), np.array([variance]))
            for (_, counts), variance in zip(released[: self.n_public], self.noise.variances, strict=False)
        ]
        doubts = [] if domain is None else empty_values(domain, public)
        return Outcome(table, totals_of(table[:1], {"count": COUNT}), causes, doubts)

    def _read(self, data: Any, bounding: Bounding) -> KeyNodes | PrefixNodes:
        """Find the nodes that hold a record, and their exact counts."""
        if isinstance(self.tree, PrivateKeys):
            return nodes_of_private_keys(data, self.tree, **bounding)
        return PrefixNodes(*sorted_keys(data, self.tree, **bounding), self.tree)

    def compare(self, *, alpha: float = 0.25, failure_probability: float | None = None) -> pd.DataFrame:
        """Compare the mechanisms that could spend the same loss on the same hierarchy, level by level.

        Parameters
        ----------
        alpha, failure_probability : float
            Of `Multiplicative`; `failure_probability` also of what the other mechanisms do not make certain.

        Returns
        -------
        pandas.DataFrame
            Indexed by ``mechanism``, the ``calibration`` of `Multiplicative`, and ``level``, without public
            levels. Mechanisms that cannot have the loss are left out; `Multiplicative` is only for prefixes.
            This plan's mechanism has the noise of this plan, the others that of ``split="optimal"``. In
            numbers of records:

            - ``found_from``: the smallest count of a node that is shown with probability
              ``1 - failure_probability`` or more, whatever the other nodes hold (with `Multiplicative`,
              provably).
            - ``largest_unseen``: the largest count of a node that may not be shown. With truncated Laplace
              noise that is certain; with `Multiplicative` it holds for each node with probability
              ``1 - failure_probability``. Missing for Gaussian noise, where no count is certain to be shown.

        Raises
        ------
        ArgumentError
            If `alpha` or `failure_probability` is out of range, or the loss too small for `Multiplicative`.

        Examples
        --------
        >>> import pandas_dptree as dpt
        >>> plan = dpt.plan(dpt.binary("user", bits=16), epsilon=1.0, delta=1e-6)
        >>> found = plan.compare().groupby(["mechanism", "calibration"], sort=False).max()
        >>> found  # doctest: +NORMALIZE_WHITESPACE
                                       found_from  largest_unseen
        mechanism         calibration
        truncated_laplace                     264             448
        gaussian                              133            <NA>
        multiplicative    exact              3311            3310
                          proof           2458180         2458179
        """
        wishes = [
            Multiplicative(alpha=alpha, failure_probability=failure_probability, calibration=calibration)
            for calibration in sorted(get_args(Calibration))
        ]
        failure = 1 - FOUND_WITH if failure_probability is None else failure_probability
        names = pd.Index(self.level_names, name="level")

        def table(found_from: Any, largest_unseen: Any) -> pd.DataFrame:
            columns = {"found_from": found_from, "largest_unseen": largest_unseen}
            return pd.DataFrame(columns, index=names, dtype="Int64")[self.n_public :]

        tables: dict[str, dict[str, pd.DataFrame]] = {}
        for name, kind in LEVEL_NOISES.items():
            noise = self.noise if isinstance(self.noise, kind) else self._alternative(name)
            if noise is not None:
                tables[name] = {"": table(noise.found_from(failure), noise.largest_unseen)}
        for wish, other in self._multiplicative_plans(wishes):
            unseen = np.full(len(names), other.largest_unseen)
            tables.setdefault("multiplicative", {})[wish.calibration] = table(unseen + 1, unseen)
        return pd.concat(
            {name: pd.concat(each, names=["calibration"]) for name, each in tables.items()},
            names=["mechanism"],
        )

    def _alternative(self, mechanism: Any) -> LevelNoise | None:
        """Return the best noise of another mechanism, if it can have the loss."""
        try:
            noise, _ = best_noise(
                mechanism,
                "optimal",
                self.loss,
                len(self.level_names),
                self.n_public,
                **self._unit,
            )
        except ArgumentError:
            return None
        return noise

    def _multiplicative_plans(
        self, wishes: Sequence[Multiplicative]
    ) -> list[tuple[Multiplicative, ImplicitMultiplicativePlan]]:
        """Plan counts with bounded relative error of the same tree, if it is a tree of prefixes."""
        if isinstance(self.tree, PrivateKeys) or self.loss.epsilon is None:
            return []
        unit: dict[str, Any] = {
            "neighbors": self.neighbors,
            "privacy_unit": self.privacy_unit,
            "max_contributions": self.max_contributions,
        }
        return [
            (wish, ImplicitMultiplicativePlan(tree=self.tree, loss=self.loss, mechanism=wish, **unit))
            for wish in wishes
        ]

    @property
    def _release_in_words(self) -> str:
        """The release in one sentence."""
        if isinstance(self.tree, PrivateKeys):
            what = f"private keys {listed(self.tree.columns)}"
        else:
            what = f"large nodes by prefixes of {self.tree.column!r}"
        return f"Plan of {what}: {self.noise.in_words}, {self.protection}"

    @property
    def mechanism_name(self) -> str:
        """The name of the mechanism in ``attrs`` and JSON."""
        return self.noise.name

    def _provenance_details(self) -> dict[str, Any]:
        names = [str(name) for name in self.level_names]
        private = names[self.n_public :]
        details: dict[str, Any] = {"noise_scale": dict(zip(names, self.noise.noise_scales, strict=True))}
        if isinstance(self.tree, PrivateKeys):
            details["private_keys"] = [str(name) for name in self.tree.columns]
        details["shown_above"] = dict(zip(private, self.noise.thresholds[self.n_public :], strict=True))
        if self.noise.bound_name == "error_bound":
            details["confidence"] = self.confidence
        else:
            unseen = self.noise.largest_unseen[self.n_public :]
            details["largest_unseen"] = dict(zip(private, unseen, strict=True))
        return details

    def _fields(self) -> dict[str, Any]:
        private = self.tree.columns if isinstance(self.tree, PrivateKeys) else None
        return {
            "private_keys": None
            if private is None
            else [serialize.name("private_keys", each) for each in private],
            "shares": list(self.budget_shares),
            "confidence": self.confidence,
            "keep_measurements": "measurements" in self.keep,
            "noise": self.noise.to_list(),
        }

    @classmethod
    def _from_fields(
        cls, data: Mapping[str, Any], hierarchy: PrefixTree | Domain | None, **common: Any
    ) -> Self:
        private = data["private_keys"]
        tree: Any = hierarchy
        if private is not None:
            columns = tuple(serialize.name("private_keys", each) for each in private)
            tree = PrivateKeys(columns=columns, domain=tree)
        kinds = {kind.name: kind for kind in LEVEL_NOISES.values()}
        return cls(
            tree=tree,
            noise=kinds[data["mechanism"]].from_list(data["noise"], tree.n_public),
            budget_shares=tuple(float(share) for share in data["shares"]),
            confidence=data["confidence"],
            keep=("measurements",) if data["keep_measurements"] else (),
            **common,
        )


def caps_in_tree(tree: PrefixTree | PrivateKeys, caps: Caps) -> Caps:
    """Return caps of all levels above a capped one whose nodes have a known number of children below it.

    Nobody knows how many children a node has above private keys, or where texts may end at it.
    """
    if not caps or isinstance(tree, PrivateKeys):
        return caps
    within = [caps[-1]]
    for level in reversed(range(len(caps) - 1)):
        children, below = tree.n_children(level), within[-1]
        together = None if children is None or below is None else children * below
        within.append(min((each for each in (caps[level], together) if each is not None), default=None))
    return tuple(reversed(within))


def check_delta(loss: PrivacyLoss) -> None:
    """Refuse a loss without delta."""
    if not loss.delta:
        raise ArgumentError(
            "delta",
            "must be above 0, and given with an epsilon or a rho: the records decide which nodes the table "
            "has.",
            hint="for example epsilon=1.0, delta=1e-6.",
        )

"""Plans for implicit trees: all prefixes of addresses, numbers or texts.

Only non-empty nodes are examined. Each level gets a part of the budget, and truncated discrete Laplace noise
of some radius R; a node is released if its noisy count is above R. So with certainty, a node that is not
released holds at most 2R records, and one that holds more is released.

**Privacy.** The release of one level is as private as its noise (`large_counts` has the proof); the levels'
epsilons and deltas add up. A unit of k rows moves the counts of a level by k in all, wherever its rows lie,
or by 2k if it is replaced: that is the sensitivity of the noise. Everything else, such as the ancestors that
are shown with released nodes and the number of rows, is a function of what was released.

References
----------
Ghazi, Kamath, Kumar, Manurangsi and Wu, "On differentially private counting on trees", 2023: truncated noise
on trees of exponential size (Lemma 2.8). Korolova, Kenthapadi, Mishra and Ntoulas, "Releasing search queries
and clicks privately", 2009: releasing only what has a large noisy count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Self, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, listed, quote
from pandas_dptree.estimation.least_squares import LEAST_VARIANCE
from pandas_dptree.estimation.sparse_tree import SparseLevel, certain_bounds, sparse_estimates
from pandas_dptree.hierarchy.levels.prefixes import PrefixTree
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.ingest.prefixes import nonempty_levels, sorted_keys
from pandas_dptree.mechanisms.arguments import noise_source, released_counts
from pandas_dptree.mechanisms.detection_probability import largest_error, released_from
from pandas_dptree.mechanisms.guarantees import Multiplicative
from pandas_dptree.mechanisms.sampling import ByteSource, random_words
from pandas_dptree.mechanisms.sparse_counts import large_counts, noisy_total, release_probability
from pandas_dptree.mechanisms.thresholds import Calibration
from pandas_dptree.mechanisms.truncated import TruncatedLaplace
from pandas_dptree.output.empty_tables import totals_of, usual_causes, warn_if_empty
from pandas_dptree.output.progress import Done, Step, nothing, progress_bar
from pandas_dptree.output.sparse import sparse_frame
from pandas_dptree.plans.base import PrefixPlan
from pandas_dptree.plans.implicit_multiplicative import ImplicitMultiplicativePlan
from pandas_dptree.privacy.quantity import COUNT
from pandas_dptree.privacy.sensitivity import count_sensitivity
from pandas_dptree.signatures import public

__all__ = ["ImplicitPlan", "detection_probability"]

Released = list[tuple[npt.NDArray[Any], IntArray]]
"""For each level from the root down, the prefixes of the released nodes and their noisy counts."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ImplicitPlan(PrefixPlan):
    """A release of the large nodes of an implicit tree, described before it happens.

    Made by `plan_implicit`. It is a function of the tree and the privacy parameters alone.

    Attributes
    ----------
    loss, neighbors, privacy_unit, max_contributions
        As for `Plan`; the loss has an epsilon and a delta.
    tree : BitPrefixes or CharPrefixes
        The tree.
    shares : tuple of float
        Each level's part of epsilon and of delta. Only their proportions matter.
    keep_measurements : bool
        Whether the table shows the noisy counts too.
    noise : tuple of TruncatedLaplace
        The noise of each level. A node is released if its noisy count is above ``radius``. Computed from the
        shares, unless it is given.
    """

    kind: ClassVar[str] = "implicit"

    shares: tuple[float, ...]
    keep_measurements: bool = False
    noise: tuple[TruncatedLaplace, ...] = ()

    def __post_init__(self) -> None:
        """Check the arguments and the noise; if no noise is given, compute it from the shares."""
        super().__post_init__()
        rows = count_sensitivity(neighbors=self.neighbors, max_contributions=self.max_contributions).l1
        if self.loss.kind != "approximate":
            raise ArgumentError(
                "delta",
                "must be above 0, and given with an epsilon: the records decide which nodes the table has.",
                hint="for example epsilon=1.0, delta=1e-6.",
            )
        if not isinstance(self.keep_measurements, bool):
            raise ArgumentError(
                "keep_measurements", f"must be True or False, not {quote(self.keep_measurements)}.",
                hint="True adds the noisy counts from which the table is computed.",
            )  # fmt: skip
        if len(self.shares) != len(self.level_names) or not all(
            math.isfinite(share) and share > 0 for share in self.shares
        ):
            raise ArgumentError(
                "shares",
                "must be a finite number above 0 for each level.",
                hint=f"the levels are {listed(self.level_names)}; only proportions matter.",
            )
        if not self.noise:
            parts = (part.to_dict() for part in self.loss.divide(self.shares))
            noise = (TruncatedLaplace(part["epsilon"], part["delta"], rows) for part in parts)
            object.__setattr__(self, "noise", tuple(noise))
        elif not self._keeps_to_loss(rows):
            raise ArgumentError(
                "noise",
                "does not follow from the shares, or spends more than the privacy loss.",
                hint="pass noise=(), so that it is computed from the shares.",
            )

    def _keeps_to_loss(self, rows: int) -> bool:
        """Check that given noise protects `rows` rows, follows from the shares, and keeps to the loss."""
        if len(self.noise) != len(self.shares) or any(noise.sensitivity != rows for noise in self.noise):
            return False
        whole = sum(self.shares)
        for name, most in self.loss.to_dict().items():
            spent = [getattr(noise, name) for noise in self.noise]
            if sum(map(Fraction, spent)) > Fraction(most):
                return False
            for part, share in zip(spent, self.shares, strict=True):
                if not math.isclose(part * whole, share * most, rel_tol=1e-9):
                    return False
        return True

    def to_frame(self) -> pd.DataFrame:
        """Return the plan as a frame.

        Returns
        -------
        pandas.DataFrame
            One row per level: ``level``, ``epsilon``, ``delta``, ``noise_scale``, ``std_error`` (of a noisy
            count), ``released_above`` (R, which the noisy count of a released node exceeds) and
            ``largest_unseen`` (2R, the most that an unreleased node can hold). The root is always released.
        """
        radius = np.array([noise.radius for noise in self.noise])
        return pd.DataFrame(
            {
                "level": self.level_names,
                "epsilon": [noise.epsilon for noise in self.noise],
                "delta": [noise.delta for noise in self.noise],
                "noise_scale": [noise.noise_scale for noise in self.noise],
                "std_error": [math.sqrt(noise.variance) for noise in self.noise],
                "released_above": pd.Series(radius, dtype="Int64").where(np.arange(len(radius)) > 0),
                "largest_unseen": pd.Series(2 * radius, dtype="Int64").where(np.arange(len(radius)) > 0),
            }
        )

    def release(
        self, data: Any, *, rng: np.random.Generator | None = None, progress: bool = False
    ) -> pd.DataFrame:
        """Spend the budget: measure the records and return the table of the large nodes.

        Parameters
        ----------
        data : dataframe
            The records, one row each: pandas, polars (eager or lazy) or pyarrow.
        rng, progress
            As for `Plan.release`.

        Returns
        -------
        pandas.DataFrame
            Level by level, one row for each released node and its ancestors: ``level`` (ordered categorical),
            one column per level such as ``ip/8`` (missing below a node's depth), and

            - ``count``: whole and non-negative. A node's children and their remainder add up to it.
            - ``std_error``: that of the noise, as if the node were released in any case. Missing for an
              ancestor that was not released itself, and for remainders that depend on its noisy count.
            - ``max_error``: how far the true count can be from `count`, with certainty. (True counts are
              those of the rows that fit the tree and were kept for their unit.)
            - ``other``: True for a remainder: what a node of the level above holds beside its children in the
              table. Its own key is missing. Each such node has one, unless all its children are in the table.

            With `keep_measurements` also ``measurement``, the noisy count, and its ``noise_scale``; missing
            where nothing was released.

        Raises
        ------
        ArgumentError
            If `data` cannot be counted; `ColumnsError` if a column is missing or repeated, or has a type that
            cannot fit the tree.

        Notes
        -----
        **Privacy**: as for `Plan.release`. The columns and types of the table follow from the plan alone;
        which nodes appear is covered by delta. Records that do not fit the tree are dropped, and their number
        is not reported.
        """
        source = noise_source(rng)
        with progress_bar(progress, _steps(self)) as done:
            levels, keys = _with_ancestors(self, _released(self, data, source, done))
            bounds = certain_bounds(levels)
            counts, remainders = sparse_estimates(levels, bounds[0], partial(random_words, source))
            done()
            scales = [noise.noise_scale for noise in self.noise]
            table = sparse_frame(
                self.tree,
                levels,
                keys,
                (counts, remainders),
                bounds,
                noise_scales=scales if self.keep_measurements else None,
                attrs=self.attrs(rng),
            )
        causes = usual_causes(derived=[self.tree], privacy_unit=self.privacy_unit)
        warn_if_empty(table, totals_of(table[:1], {"count": COUNT}), causes)
        return table

    def compare(self, *, alpha: float = 0.25, failure_probability: float | None = None) -> pd.DataFrame:
        """Compare the mechanisms that could spend the same loss on the same tree.

        Parameters
        ----------
        alpha, failure_probability : float
            Of `Multiplicative`; `failure_probability` also of what truncated Laplace noise does not make
            certain.

        Returns
        -------
        pandas.DataFrame
            Indexed by ``mechanism`` and the ``calibration`` of `Multiplicative`. In numbers of records:

            - ``released_from``: the smallest count of a node that is released with probability
              ``1 - failure_probability`` or more (with `Multiplicative`, provably), on any level
              below the root.
            - ``largest_unseen``: the largest count of a node that may not be released. With truncated Laplace
              noise that is certain; with `Multiplicative` it holds for each node with probability
              ``1 - failure_probability``.
            - ``error_bound``: the maximum error of the noisy count, or estimate, of a node that holds
              `released_from`, with probability ``1 - failure_probability``. (With truncated Laplace noise it
              is also at most half of `largest_unseen`, with certainty.)

        Raises
        ------
        ArgumentError
            If `alpha` or `failure_probability` is out of range, or the loss too small for `Multiplicative`.

        Examples
        --------
        >>> import pandas_dptree as dpt
        >>> plan = dpt.plan_implicit(dpt.binary("user", bits=64), epsilon=1.0, delta=1e-6)
        >>> plan.compare()["largest_unseen"]
        mechanism          calibration
        truncated_laplace                    1706
        multiplicative     exact             3532
                           proof          2915085
        Name: largest_unseen, dtype: int64
        """
        factors = {
            calibration: ImplicitMultiplicativePlan(
                tree=self.tree,
                loss=self.loss,
                mechanism=Multiplicative(
                    alpha=alpha, failure_probability=failure_probability, calibration=calibration
                ),
                neighbors=self.neighbors,
                privacy_unit=self.privacy_unit,
                max_contributions=self.max_contributions,
            )
            for calibration in sorted(get_args(Calibration))
        }
        failure_probability = factors["exact"].failure_probability
        noises = self.noise[1:]
        table = {
            ("truncated_laplace", ""): (
                max(released_from(noise, failure_probability) for noise in noises),
                max(2 * noise.radius for noise in noises),
                max(largest_error(noise, failure_probability) for noise in noises),
            )
        }
        for calibration, other in factors.items():
            least = other.largest_unseen + 1
            # the factor exceeds any rounding error
            error = math.floor(alpha * max(least, other.threshold) * (1 + 2.0**-48))
            table["multiplicative", calibration] = (least, other.largest_unseen, error)
        return pd.DataFrame(
            list(table.values()),
            index=pd.MultiIndex.from_tuples(table, names=["mechanism", "calibration"]),
            columns=["released_from", "largest_unseen", "error_bound"],
        )

    @property
    def headline(self) -> str:
        """The release in one sentence."""
        return (
            f"Plan of large nodes by prefixes of {self.tree.column!r}: truncated Laplace noise, "
            f"{self.protection}"
        )

    @property
    def mechanism_name(self) -> str:
        """The name of the mechanism in ``attrs`` and JSON."""
        return "truncated_laplace"

    def _provenance_details(self) -> dict[str, Any]:
        levels = list(zip(self.level_names, self.noise, strict=True))
        return {
            "noise_scale": {name: noise.noise_scale for name, noise in levels},
            "largest_unseen": {name: 2 * noise.radius for name, noise in levels[1:]},
        }

    def _fields(self) -> dict[str, Any]:
        return {
            "shares": list(self.shares),
            "keep_measurements": self.keep_measurements,
            "noise": [noise.to_dict() for noise in self.noise],
        }

    @classmethod
    def _from_fields(cls, data: Mapping[str, Any], hierarchy: PrefixTree, **common: Any) -> Self:
        """Make the plan. Each level's epsilon and delta determine its noise, which must be that of `data`."""
        return cls(
            tree=hierarchy,
            shares=tuple(float(share) for share in data["shares"]),
            keep_measurements=data["keep_measurements"],
            noise=tuple(
                TruncatedLaplace(noise["epsilon"], noise["delta"], noise["sensitivity"])
                for noise in data["noise"]
            ),
            **common,
        )


def _steps(plan: ImplicitPlan) -> list[Step]:
    """List the steps of a release, of equal size: how many nodes a level has is secret."""
    root, *levels = plan.level_names
    noise = [f"adding noise to {level}" for level in (root, *reversed(levels))]
    return [(step, 1) for step in ("reading the records", *noise, "estimating", "laying out the table")]


def _released(plan: ImplicitPlan, frame: Any, source: ByteSource, done: Done = nothing) -> Released:
    """Measure the records. Exact counts do not leave this function."""
    keys, rows = sorted_keys(
        frame,
        plan.tree,
        privacy_unit=plan.privacy_unit,
        max_contributions=plan.max_contributions,
        random_words=partial(random_words, source),
    )
    done()
    total = noisy_total(plan.noise[0], rows, source)
    done()
    levels: Released = []
    for noise, (prefixes, counts) in zip(
        reversed(plan.noise[1:]), nonempty_levels(keys, rows, plan.tree), strict=True
    ):
        kept, noisy = large_counts(noise, counts, source)
        levels.append((prefixes[kept], noisy))
        done()
    return [(np.zeros(1, dtype=np.uint64), total), *reversed(levels)]


def _with_ancestors(
    plan: ImplicitPlan, released: Released
) -> tuple[list[SparseLevel], list[npt.NDArray[Any]]]:
    """Add the ancestors of released nodes, and find the parent of every node."""
    tree, lengths = plan.tree, plan.tree.lengths
    keys = [released[-1][0]]
    for place in reversed(range(len(lengths) - 1)):
        above = tree.shorten(keys[-1], lengths[place + 1], lengths[place])
        keys.append(np.unique(np.concatenate([released[place + 1][0], above])))
    keys = [released[0][0], *reversed(keys)]
    parents = [np.zeros(1, dtype=np.int64), np.zeros(len(keys[1]), dtype=np.int64)]
    for place in range(1, len(lengths)):
        above = tree.shorten(keys[place + 1], lengths[place], lengths[place - 1])
        parents.append(np.searchsorted(keys[place], above))
    levels = []
    for place, (noise, parent) in enumerate(zip(plan.noise, parents, strict=True)):
        n = len(parent)
        where = np.searchsorted(keys[place], released[place][0])
        noisy, measured = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=bool)
        noisy[where], measured[where] = released[place][1], True
        n_children = tree.n_children(place) if place < len(lengths) else None
        complete = np.zeros(n, dtype=bool)
        if n_children is not None and n_children <= len(keys[place + 1]):
            complete = np.bincount(parents[place + 1], minlength=n) == n_children
        variance = max(noise.variance, LEAST_VARIANCE)
        levels.append(SparseLevel(parent, noisy, measured, complete, variance, noise.radius))
    return levels, keys


@public
def detection_probability(plan: ImplicitPlan, counts: npt.ArrayLike) -> pd.DataFrame:
    r"""Compute the probability that a node with a given number of records is released.

    With radius R, noise scale b and :math:`q = e^{-1/b}`, for :math:`1 \le w \le R` records it is

    .. math:: P(\text{noise} > R - w) = \frac{q^{R - w + 1}\,(1 - q^w)}{1 + q - 2q^{R+1}}.

    For :math:`R < w \le 2R + 1` it is one minus that for :math:`2R + 1 - w` records, so 1 at the end.

    Parameters
    ----------
    plan : ImplicitPlan
    counts : array_like of int, shape (n,)
        Numbers of records, at least 0.

    Returns
    -------
    pandas.DataFrame
        Indexed by the counts, with one column per level. The root, and ancestors of released nodes, are
        always shown.

    Raises
    ------
    ArgumentError
        If the counts are not whole numbers of at least 0.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> plan = dpt.plan_implicit(dpt.binary("user", bits=64), epsilon=1.0, delta=1e-6)
    >>> detection_probability(plan, [600, 900, 1200])["user/64"].round(3).tolist()
    [0.01, 0.756, 0.998]
    """
    sizes = released_counts(counts)
    columns = [np.ones(len(sizes)), *(release_probability(noise, sizes) for noise in plan.noise[1:])]
    return pd.DataFrame(
        dict(zip(plan.level_names, columns, strict=True)), index=pd.Index(sizes, name="count")
    )

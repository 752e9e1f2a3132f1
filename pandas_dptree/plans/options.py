"""The options of all public functions: type, default and documentation of each.

A TypedDict is a group of options that belong together. A kind of plan combines the groups that it takes, as
in `AdditiveOptions`. A public function takes a combination by ``**options: Unpack[...]``, which type checkers
understand; `pandas_dptree.signatures.public` completes its signature and documentation from here.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypedDict, TypeVar, cast

import numpy as np

from pandas_dptree.distribution.strategies import StrategyName
from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.consistency import Consistency, Fit
from pandas_dptree.hierarchy.levels.combine import By
from pandas_dptree.mechanisms.additive import AdditiveNoise, Mechanism
from pandas_dptree.mechanisms.guarantees import Multiplicative
from pandas_dptree.planning.objective import Objective
from pandas_dptree.planning.private_split import PrivateSplit
from pandas_dptree.planning.split import Split
from pandas_dptree.plans.charging import Chargeable
from pandas_dptree.privacy.loss import PrivacyLoss, ungated_loss
from pandas_dptree.privacy.sensitivity import Neighbors
from pandas_dptree.signatures import Option, options_of

__all__ = [
    "AdditiveOptions",
    "AllOptions",
    "AlphaOptions",
    "AnyMechanism",
    "AnySplit",
    "ArrayOptions",
    "Bounds",
    "BudgetSplit",
    "CellDistributionOptions",
    "CellOptions",
    "Cells",
    "DistributionOptions",
    "EpsilonDelta",
    "ErrorObjective",
    "Estimation",
    "Groups",
    "ImplicitOptions",
    "JointOptions",
    "Keys",
    "KnownCounts",
    "KnownTotals",
    "Loss",
    "NamedNoise",
    "Noise",
    "PlanOptions",
    "PrefixOptions",
    "PrivateColumns",
    "Relation",
    "RelativeErrorOptions",
    "Running",
    "Strategies",
    "SumOptions",
    "TargetErrors",
    "Tolerance",
    "Unit",
    "require_supported",
    "stated_loss",
    "taken_from",
    "unsupported_options",
    "with_defaults",
]

Kind = TypeVar("Kind")

# Groups ---------------------------------------------------------------------------------------------------


class EpsilonDelta(TypedDict, total=False):
    """A privacy loss: epsilon, with or without a delta."""

    epsilon: Annotated[
        float | None,
        Option(
            None,
            "float",
            "The privacy loss of this release, under pure differential privacy if `delta` is 0, otherwise "
            "under approximate differential privacy.",
        ),
    ]
    delta: Annotated[
        float,
        Option(
            0.0,
            "float",
            "The probability, below 1, with which the guarantee of `epsilon` may fail.",
        ),
    ]


class Loss(EpsilonDelta, total=False):
    """A privacy loss of any kind."""

    rho: Annotated[
        float | None,
        Option(
            None,
            "float",
            "The loss under zero-concentrated differential privacy, instead of `epsilon` and `delta`.",
        ),
    ]


class Relation(TypedDict, total=False):
    """The neighbouring relation."""

    neighbors: Annotated[
        Neighbors,
        Option(
            "add_remove",
            '{"add_remove", "replace"}',
            'How neighbouring data sets differ. ``"add_remove"``: one privacy unit is added or removed. '
            '``"replace"``: the data of one privacy unit are replaced.',
        ),
    ]


class Unit(Relation, total=False):
    """The privacy unit of a release of records."""

    privacy_unit: Annotated[
        Hashable | None,
        Option(
            None,
            "hashable or dpt.ROWS",
            "The column that identifies whom to protect, such as a user ID. By default each row is a unit of "
            "its own; `dpt.ROWS` states this explicitly.",
        ),
    ]
    max_contributions: Annotated[
        int | None,
        Option(
            None,
            "int",
            "The maximum number of rows to keep of each unit. If a unit has more rows, this many are chosen "
            "uniformly at random, and the table does not count the others. Noise grows in proportion to this "
            "number. Required if `privacy_unit` is a column.",
        ),
    ]


class Cells(Relation, total=False):
    """The privacy unit of a release of an array."""

    max_contributions: Annotated[
        int | None,
        Option(
            None,
            "int",
            "The maximum number of records of one privacy unit in the whole array, in any of its cells; by "
            "default 1. It cannot be checked, because an array does not say which unit a record belongs to: "
            "the caller is responsible for it.",
        ),
    ]


class Noise(TypedDict, total=False):
    """Additive noise."""

    mechanism: Annotated[
        Mechanism | AdditiveNoise,
        Option(
            "auto",
            '{"auto", "laplace", "gaussian"} or AdditiveNoise',
            'The distribution of the noise. ``"auto"`` chooses the one with the smaller expected error. Only '
            "Laplace noise gives pure differential privacy.",
        ),
    ]


class AnyMechanism(TypedDict, total=False):
    """Additive noise, or counts with bounded relative error."""

    mechanism: Annotated[
        Mechanism | Literal["truncated_laplace"] | AdditiveNoise | Multiplicative,
        Option(
            "auto",
            '{"auto", "laplace", "gaussian"}, AdditiveNoise or Multiplicative',
            'The distribution of the noise. ``"auto"`` chooses the one with the smaller expected error. Only '
            "Laplace noise gives pure differential privacy. `Multiplicative` gives counts with bounded "
            "relative error instead.",
        ),
    ]


class Tolerance(TypedDict, total=False):
    """The relative error to ignore."""

    alpha: Annotated[
        float | None,
        Option(
            None,
            "float",
            "A relative error to ignore: only the part of an error that exceeds this share of the true count "
            "matters. The plan minimizes the root mean square of that part, for the worst node and the worst "
            "true count (the alpha-mRMSE, see `AdditivePlan.alpha_rmse`), so `objective` and `level_weights` "
            'cannot be given as well. ``mechanism="auto"`` then also considers `Multiplicative` with clip, '
            "which is better only on very deep trees.",
        ),
    ]


class BudgetSplit(TypedDict, total=False):
    """How the privacy budget is divided among the levels of a tree."""

    split: Annotated[
        Split | Mapping[Hashable, float],
        Option(
            "optimal",
            '{"optimal", "uniform", "geometric", "nodes"} or mapping',
            'How to divide the privacy budget among the levels, or with ``"nodes"`` (Gaussian noise only) '
            "among the nodes of each path from the root to a leaf. A mapping gives each level's share by "
            "name; shares must sum to 1, and levels left out get 0.",
        ),
    ]


class AnySplit(TypedDict, total=False):
    """How the privacy budget is divided among levels, whichever kind of plan results."""

    split: Annotated[
        Split | PrivateSplit | Mapping[Hashable, float],
        Option(
            "optimal",
            '{"optimal", "uniform", "geometric", "nodes", "doubling"} or mapping',
            'How to divide the privacy budget among the levels, or with ``"nodes"`` (Gaussian noise only) '
            "among the nodes of each path from the root to a leaf. A mapping gives each level's share by "
            "name; shares must sum to 1, and levels left out get 0. With private keys and implicit trees "
            '``"optimal"``, ``"uniform"``, ``"doubling"`` or a mapping: see `plan_implicit`.',
        ),
    ]


class ErrorObjective(TypedDict, total=False):
    """The error that a plan minimizes."""

    level_weights: Annotated[
        Mapping[Hashable, float] | None,
        Option(
            None,
            "mapping",
            "The weight of each level's error, by name; 1 for levels left out.",
        ),
    ]
    objective: Annotated[
        Objective,
        Option(
            "levels",
            '{"levels", "cells", "worst"}',
            'The error that ``split="optimal"`` minimizes. ``"levels"``: the mean variance of a level, '
            'averaged over the levels. ``"cells"``: the mean variance over all nodes. ``"worst"``: the '
            "variance of the worst level.",
        ),
    ]


class TargetErrors(TypedDict, total=False):
    """The errors to achieve."""

    target: Annotated[
        Mapping[Hashable, float] | None,
        Option(
            None,
            "mapping",
            "The standard errors to achieve, by level, in counts (`relative` computes them from a share of a "
            "stated count). The plan has the smallest epsilon that achieves them, or with Gaussian noise and "
            "no `delta` the smallest rho, and the split for it. If `epsilon` or `rho` is given too, it must "
            "be large enough.",
        ),
    ]


class Estimation(TypedDict, total=False):
    """How noisy values become a table."""

    consistency: Annotated[
        Consistency,
        Option(
            "integer",
            '{"integer", "nonnegative", "linear", "none"}',
            '``"integer"``: non-negative whole numbers that add up. ``"nonnegative"``: non-negative values '
            'that add up. ``"linear"``: unbiased estimates that add up. ``"none"``: the noisy values '
            'themselves. In a table of sums, ``"integer"`` gives multiples of the granularity, and values '
            "are kept non-negative only if the column's bounds allow no negative value.",
        ),
    ]
    fit: Annotated[
        Fit,
        Option(
            "totals",
            '{"totals", "adaptive", "joint"}',
            'How to correct negative estimates. ``"totals"``: one family at a time (the children of a node), '
            'from the root down; totals stay as accurate as in least squares. ``"adaptive"``: likewise, but '
            "small counts shrink and large counts hardly change, to the degree that the level's noisy counts "
            "suggest it; more accurate where most leaves are empty, and a few times slower. "
            '``"joint"``: one least-squares fit of all nodes, closest to the truth as a whole, but with '
            "totals that are too large where most leaves are empty.",
        ),
    ]
    confidence: Annotated[
        float | None,
        Option(
            None,
            "float",
            "The confidence level of intervals, for example 0.95. Adds the columns ``lower`` and ``upper``, "
            "the ends of an interval that holds the true value with this probability.",
        ),
    ]
    keep_measurements: Annotated[
        bool,
        Option(
            False,
            "bool",
            "Whether to add the columns ``measurement`` and ``noise_scale``: the noisy values from which the "
            "estimates are computed, and the scales of their noise.",
        ),
    ]


class KnownCounts(TypedDict, total=False):
    """The counts that are public."""

    known: Annotated[
        Any,
        Option(
            None,
            "mapping or DataFrame",
            "Counts that are already public, which the table shows exactly. A mapping gives them by level: "
            '``{"total": 81203}`` or ``{"state": populations}``, a Series indexed like '
            '``groupby(["state"]).size()``. A frame has the keys, and a column ``count``, a column '
            "``at_least`` (the least that a node can hold), or both. These counts must come from the caller; "
            "they are never compared with the records, and spend no budget.",
        ),
    ]


class Keys(TypedDict, total=False):
    """The public keys."""

    domain: Annotated[
        Any,
        Option(
            None,
            'DataFrame, MultiIndex, Domain, "observed" or "categories"',
            "The public keys, one row per leaf; for a single key column, any list of keys. "
            "`released_domain` returns those of a released table. "
            '``"observed"`` states that the keys in the records are public. ``"categories"`` states that the '
            "categories of the categorical key columns are public, in every combination. Derived levels have "
            "their own domains, which are crossed with the keys given here; if all levels are derived, leave "
            "`domain` out.",
        ),
    ]


class PrivateColumns(TypedDict, total=False):
    """The keys that nobody can list."""

    private_keys: Annotated[
        Sequence[Hashable] | None,
        Option(
            None,
            "sequence of hashable",
            "The last columns of `by` whose keys nobody can list; `domain` covers the others, and is left "
            "out if there are none. Keys that many units share are released, and the records of all others "
            "are pooled. Needs a `delta` and a stated `privacy_unit` (a column or `dpt.ROWS`).",
        ),
    ]


class Running(TypedDict, total=False):
    """How a release is carried out."""

    rng: Annotated[
        np.random.Generator | None,
        Option(
            None,
            "numpy.random.Generator",
            "Makes the release repeatable, for tests and simulations: it is then not private. By default "
            "all randomness comes from the operating system's cryptographic source.",
        ),
    ]
    progress: Annotated[
        bool,
        Option(
            False,
            "bool",
            "Whether to show a progress bar on standard error. Needs tqdm.",
        ),
    ]
    ledger: Annotated[
        Chargeable | None,
        Option(
            None,
            "Account",
            'The account to charge, as in ``Ledger.open(path)["patients"]``. The charge is on disk before '
            "any noise is drawn, and is never refunded. A release that the account cannot pay for is refused "
            "before the records are read.",
        ),
    ]
    note: Annotated[
        str | None,
        Option(
            None,
            "str",
            'What the release is for, such as ``"2026-03"``; required with `ledger`, which shows it. The '
            "same plan with the same note is released only once, so a script that runs twice spends once.",
        ),
    ]
    allow_repeat: Annotated[
        bool,
        Option(
            False,
            "bool",
            "Whether to release the same plan with the same note again, which is charged in full again.",
        ),
    ]
    temp_folder: Annotated[
        str | os.PathLike[str] | None,
        Option(
            None,
            "path",
            "The folder for rows that do not fit into memory while the contributions of units are bounded; "
            "by default that of `tempfile`. The file has no name, and vanishes with the process.",
        ),
    ]


class NamedNoise(TypedDict, total=False):
    """Additive noise, by its name."""

    mechanism: Annotated[
        Mechanism,
        Option(
            "auto",
            '{"auto", "laplace", "gaussian"}',
            'The distribution of the noise. ``"auto"`` chooses the one with the smaller expected error.',
        ),
    ]


class Strategies(TypedDict, total=False):
    """What is measured of the bins of a column."""

    tree: Annotated[
        StrategyName | Sequence[int],
        Option(
            "auto",
            '{"auto", "tree", "factorization"} or sequence of int',
            'What to measure. ``"tree"``: the counts of the nodes of the best tree over the bins. '
            "A sequence: those of a tree with this many children per node, level by level. "
            '``"factorization"`` (Gaussian noise only): weighted sums of bins, which give more accurate '
            'cumulative counts than any tree. ``"auto"``: whichever has the smallest expected error.',
        ),
    ]


class KnownTotals(TypedDict, total=False):
    """The public numbers of records, in a release of a distribution."""

    known: Annotated[
        Any,
        Option(
            None,
            "mapping",
            "Public numbers of records, by level of the groups, as for `tree_counts`; without groups "
            '``{"total": 10_000}``. They must count exactly the measured records: those that have a value, '
            "and are kept under `max_contributions`. Each number is used for its own group only, and lower "
            "bounds are not used.",
        ),
    ]


class Bounds(TypedDict, total=False):
    """The public range of the values."""

    bounds: Annotated[
        Any,
        Option(
            None,
            "pair",
            "The smallest and the largest value: numbers, timestamps or durations. Values outside are "
            "clipped. Bounds must be known without looking at the records. Leave them out if `bins` lists "
            "the edges.",
        ),
    ]


class Groups(Keys, total=False):
    """The groups, each with a distribution."""

    by: Annotated[
        By | None,
        Option(
            None,
            "sequence of hashable",
            "Key columns and derived levels, from the coarsest to the finest, as for `tree_counts`. The "
            "result has the distribution of each group of every level. The levels share the budget evenly; "
            "more groups in a level cost nothing.",
        ),
    ]


# Options of kinds of plans --------------------------------------------------------------------------------


class SumOptions(Loss, Unit, Noise, BudgetSplit, ErrorObjective, Estimation, total=False):
    """Options of a plan for sums of several columns."""


class JointOptions(SumOptions, KnownCounts, total=False):
    """Options of a plan for several quantities that may include counts."""


class AlphaOptions(Loss, Unit, Noise, BudgetSplit, KnownCounts, Estimation, total=False):
    """Options of a plan of additive noise that minimizes the error beyond a relative error `alpha`."""


class AdditiveOptions(AlphaOptions, ErrorObjective, TargetErrors, total=False):
    """Options of a plan of additive noise on a tree."""


class RelativeErrorOptions(EpsilonDelta, Unit, total=False):
    """Options of a plan of counts with bounded relative error."""


class PrefixOptions(Unit, total=False):
    """Options of a plan for a hierarchy that nobody can list, except its loss and mechanism."""

    split: Annotated[
        PrivateSplit | Mapping[Hashable, float],
        Option(
            "optimal",
            '{"optimal", "doubling", "uniform"} or mapping',
            'How to divide the loss among the levels. ``"doubling"`` gives each level twice the share of '
            "the one above: it finds the smallest nodes on the deepest level, and a large node there shows "
            'its ancestors. ``"uniform"`` finds the same sizes on all levels. ``"optimal"`` is doubling for '
            "truncated Laplace noise on up to four private levels, and otherwise the better of the two: the "
            "one that finds smaller nodes, averaged over the levels. A mapping gives the share of each level "
            "by name; shares must be above 0 and sum to 1.",
        ),
    ]
    confidence: Annotated[
        float | None,
        Option(
            None,
            "float",
            "With Gaussian noise: the probability, by default 0.95, with which the column ``error_bound`` "
            "holds in all rows together. The bounds of truncated Laplace noise are certain.",
        ),
    ]
    keep_measurements: Annotated[
        bool,
        Option(
            False,
            "bool",
            "Whether to add the columns ``measurement`` and ``noise_scale``: the noisy counts from which the "
            "table is computed, and the scales of their noise.",
        ),
    ]


class ImplicitOptions(Loss, PrefixOptions, total=False):
    """Options of a plan for a hierarchy that nobody can list, except its mechanism."""


class DistributionOptions(Loss, Unit, NamedNoise, Strategies, KnownTotals, total=False):
    """Options of a plan for the distribution of a column."""


class CellDistributionOptions(Loss, Cells, NamedNoise, Strategies, total=False):
    """Options of a plan for the distribution along a dimension of an array."""


class CellOptions(Loss, Relation, Noise, BudgetSplit, ErrorObjective, Estimation, total=False):
    """Options of a plan of additive noise for several variables of a dataset."""


class ArrayOptions(CellOptions, Cells, total=False):
    """Options of a plan of additive noise for an array."""


# Where the mechanism decides the kind of plan


class PlanOptions(
    Loss,
    Unit,
    AnyMechanism,
    Tolerance,
    AnySplit,
    ErrorObjective,
    TargetErrors,
    KnownCounts,
    Estimation,
    total=False,
):
    """Options of `plan`, whichever kind of plan results."""


class AllOptions(PlanOptions, Keys, Running, total=False):
    """Options of a table of counts, whichever kind of plan results."""


# Reading options ------------------------------------------------------------------------------------------


def with_defaults(kind: type[Kind], options: Mapping[str, Any]) -> Kind:
    """Return all options of a kind, with defaults for those that are not given."""
    return cast(Kind, {name: options.get(name, each.default) for name, each in options_of(kind).items()})


def stated_loss(given: Loss) -> PrivacyLoss:
    """Return the loss that all options of a release without gates state; raise ArgumentError for others."""
    return ungated_loss(PrivacyLoss(epsilon=given["epsilon"], delta=given["delta"], rho=given["rho"]))


def taken_from(kind: type[Kind], options: Mapping[str, Any]) -> Kind:
    """Select the options of a kind from others."""
    return cast(Kind, {name: given for name, given in options.items() if name in options_of(kind)})


def unsupported_options(
    kind: type[Any], options: Mapping[str, Any], implied: Mapping[str, object] = MappingProxyType({})
) -> list[str]:
    """List the options that are set, but not taken by a kind of plan.

    An option is not set if it has its default, or the value in `implied`: what such a plan does in any case.
    """
    defaults = options_of(AllOptions)

    def is_set(name: str, given: object) -> bool:
        no_effect = [defaults[name].default, *([implied[name]] if name in implied else [])]
        return not any(given is each or (isinstance(given, str) and given == each) for each in no_effect)

    return [name for name, given in options.items() if name not in options_of(kind) and is_set(name, given)]


def require_supported(
    kind: type[Kind],
    options: Mapping[str, Any],
    *,
    implied: Mapping[str, object] = MappingProxyType({}),
    what: str,
    hint: str,
) -> Kind:
    """Select the options of a kind of plan; raise ArgumentError if any other option is set.

    The first arguments are those of `unsupported_options`; `what` and `hint` are parts of the error.
    """
    for name in unsupported_options(kind, options, implied):
        raise ArgumentError(name, f"has no meaning for {what}.", hint=hint)
    return taken_from(kind, options)

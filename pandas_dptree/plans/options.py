"""Every option of the public functions, once: its type, its default, and its text in the documentation.

Options that go together are a group. A kind of plan declares which groups it takes, as in `AdditiveOptions`.
A public function does so by ``**options: Unpack[...]``, which type checkers understand, and
`pandas_dptree.signatures.public` spells out its signature and its documentation from here.
"""

from __future__ import annotations

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
from pandas_dptree.planning.split import Split
from pandas_dptree.privacy.sensitivity import Neighbors
from pandas_dptree.signatures import Option, options_of

__all__ = [
    "AdditiveOptions",
    "Aiming",
    "AllOptions",
    "AlphaOptions",
    "AnyMechanism",
    "ArrayOptions",
    "Bounds",
    "CellDistributionOptions",
    "CellOptions",
    "Cells",
    "DistributionOptions",
    "Estimating",
    "Groups",
    "ImplicitOptions",
    "JointOptions",
    "Judging",
    "Keys",
    "Knowing",
    "KnownTotals",
    "Loss",
    "NamedNoise",
    "Noise",
    "Pair",
    "PlanOptions",
    "PrefixOptions",
    "Relation",
    "RelativeErrorOptions",
    "Running",
    "Splitting",
    "Strategies",
    "SumOptions",
    "Tolerance",
    "Unit",
    "completed",
    "has_no_meaning",
    "refuse_others",
    "taken_from",
]

Given = TypeVar("Given")

# Groups ---------------------------------------------------------------------------------------------------


class Pair(TypedDict, total=False):
    """A privacy loss as an epsilon, perhaps with a delta."""

    epsilon: Annotated[
        float | None,
        Option(
            None,
            "float",
            "The privacy loss of this release: alone it is pure differential privacy, with `delta` "
            "approximate.",
        ),
    ]
    delta: Annotated[
        float,
        Option(
            0.0,
            "float",
            "The probability, below 1, with which the promise of `epsilon` may fail.",
        ),
    ]


class Loss(Pair, total=False):
    """A privacy loss of any kind."""

    rho: Annotated[
        float | None,
        Option(
            None,
            "float",
            "The privacy loss as zero-concentrated differential privacy, in place of `epsilon` and `delta`.",
        ),
    ]


class Relation(TypedDict, total=False):
    """What may differ between neighbouring data sets."""

    neighbors: Annotated[
        Neighbors,
        Option(
            "add_remove",
            '{"add_remove", "replace"}',
            "What may differ between neighbouring data sets: that a privacy unit is there, or what it is.",
        ),
    ]


class Unit(Relation, total=False):
    """Whom a release of records protects."""

    privacy_unit: Annotated[
        Hashable | None,
        Option(
            None,
            "hashable or dpt.ROWS",
            "The column that names whom to protect. By default each row is a unit of its own, which "
            "`dpt.ROWS` states explicitly.",
        ),
    ]
    max_contributions: Annotated[
        int | None,
        Option(
            None,
            "int",
            "How many rows of one unit are kept, chosen uniformly at random. It must be given with a "
            "column as `privacy_unit`. Noise grows in proportion to it; and of a unit with more rows, "
            "those beyond are dropped, so that the table counts less than all rows.",
        ),
    ]


class Cells(Relation, total=False):
    """Whom a release of an array protects."""

    max_contributions: Annotated[
        int | None,
        Option(
            None,
            "int",
            "How many records of one privacy unit the whole array may hold, wherever they are; by default "
            "1. An array cannot be asked whose its records are: the caller answers for it.",
        ),
    ]


class Noise(TypedDict, total=False):
    """Additive noise."""

    mechanism: Annotated[
        Mechanism | AdditiveNoise,
        Option(
            "auto",
            '{"auto", "laplace", "gaussian"} or AdditiveNoise',
            'The noise. ``"auto"``: whichever promises the smaller error; only Laplace noise gives pure '
            "differential privacy.",
        ),
    ]


class AnyMechanism(TypedDict, total=False):
    """Noise, or another kind of counts."""

    mechanism: Annotated[
        Mechanism | Literal["truncated_laplace"] | AdditiveNoise | Multiplicative,
        Option(
            "auto",
            '{"auto", "laplace", "gaussian"}, AdditiveNoise or Multiplicative',
            'The noise. ``"auto"``: whichever promises the smaller error; only Laplace noise gives pure '
            "differential privacy. Or `Multiplicative`: counts with bounded relative error.",
        ),
    ]


class Tolerance(TypedDict, total=False):
    """Which errors count as none."""

    alpha: Annotated[
        float | None,
        Option(
            None,
            "float",
            "Up to which share of a true count an error counts as none. It takes the place of `objective` "
            "and `level_weights`: what is made small is the largest error beyond it of all nodes, whatever "
            'they count (the alpha-mRMSE, see `AdditivePlan.alpha_rmse`). ``mechanism="auto"`` then takes '
            "`Multiplicative` with clip into account, which wins on very deep trees alone.",
        ),
    ]


class Splitting(TypedDict, total=False):
    """How a budget is spent on the levels of a tree."""

    split: Annotated[
        Split | Mapping[Hashable, float],
        Option(
            "optimal",
            '{"optimal", "uniform", "geometric", "nodes"} or mapping',
            'How the budget is split over the levels, or with ``"nodes"`` (Gaussian noise) over the nodes '
            "of each path; or each level's share (by name; 0 if left out), which sum to one.",
        ),
    ]


class Judging(TypedDict, total=False):
    """Which error a plan makes small."""

    level_weights: Annotated[
        Mapping[Hashable, float] | None,
        Option(
            None,
            "mapping",
            "How much the error of a level matters, by name; 1 for those left out.",
        ),
    ]
    objective: Annotated[
        Objective,
        Option(
            "levels",
            '{"levels", "cells", "worst"}',
            'What ``split="optimal"`` makes small: the mean variance of a level averaged over the levels, '
            "the mean variance over all nodes, or the variance of the worst level.",
        ),
    ]


class Aiming(TypedDict, total=False):
    """What error is wanted."""

    target: Annotated[
        Mapping[Hashable, float] | None,
        Option(
            None,
            "mapping",
            "The standard errors that are wanted, by level, in counts (`relative` makes them from a share "
            "of a stated count). Finds the smallest epsilon for them, or with Gaussian noise and no "
            "`delta` the smallest rho, and the split that needs it. If `epsilon` or `rho` is stated too, "
            "it must be enough.",
        ),
    ]


class Estimating(TypedDict, total=False):
    """How noisy values become a table."""

    consistency: Annotated[
        Consistency,
        Option(
            "integer",
            '{"integer", "nonnegative", "linear", "none"}',
            "Whole numbers that add up; non-negative and additive; unbiased and additive; raw noisy "
            "nodes. Of sums the whole numbers are multiples of the granularity, and they are kept "
            "non-negative only where no value can be negative.",
        ),
    ]
    fit: Annotated[
        Fit,
        Option(
            "totals",
            '{"totals", "adaptive", "joint"}',
            'How negative estimates are corrected. ``"totals"``: family by family from the top, which '
            'keeps the totals as good as least squares makes them. ``"adaptive"``: likewise, but large '
            "counts are left alone and small ones made smaller, as far as the noisy counts of a level "
            "speak for it; more accurate where most leaves are empty, and a few times slower. "
            '``"joint"``: in one least-squares fit of all nodes, closest to the truth as a whole, but '
            "with totals that are too large where most leaves are empty.",
        ),
    ]
    confidence: Annotated[
        float | None,
        Option(
            None,
            "float",
            "For example 0.95: adds the columns ``lower`` and ``upper``, an interval that holds the true "
            "value with this probability.",
        ),
    ]
    keep_measurements: Annotated[
        bool,
        Option(
            False,
            "bool",
            "Adds ``measurement`` and ``noise_scale``: the noisy values that the estimates were made from.",
        ),
    ]


class Knowing(TypedDict, total=False):
    """What is public of the counts."""

    known: Annotated[
        Any,
        Option(
            None,
            "mapping or DataFrame",
            'Counts that are public already, kept exactly: by level, as in ``{"total": 81203}`` or '
            '``{"state": populations}`` (indexed like ``groupby(["state"]).size()``); or a frame of keys '
            "with a column ``count``, and perhaps ``at_least`` for the least that a node can hold. They "
            "come from the caller alone, are never compared with the records, and take none of the "
            "budget.",
        ),
    ]


class Keys(TypedDict, total=False):
    """Which keys are public."""

    domain: Annotated[
        Any,
        Option(
            None,
            'DataFrame, MultiIndex, Domain, "observed" or "categories"',
            "The public keys: one row per leaf; of a single key column, any list of them. Or the statement "
            'that the keys that stand in the records are public (``"observed"``), or that the categories of '
            'the categorical key columns are, in every combination (``"categories"``). Derived levels have '
            "domains of their own, and are crossed with what is given for the other keys; if there are none, "
            "leave it out.",
        ),
    ]


class Running(TypedDict, total=False):
    """How a release is carried out."""

    rng: Annotated[
        np.random.Generator | None,
        Option(
            None,
            "numpy.random.Generator",
            "Makes the release repeatable, for tests and simulation: it is then not private. By default "
            "all randomness comes from the operating system's cryptographic source.",
        ),
    ]
    progress: Annotated[
        bool,
        Option(
            False,
            "bool",
            "Shows the steps of the work on a bar, on standard error. Needs tqdm.",
        ),
    ]


class NamedNoise(TypedDict, total=False):
    """Additive noise, by its name."""

    mechanism: Annotated[
        Mechanism,
        Option(
            "auto",
            '{"auto", "laplace", "gaussian"}',
            'The noise; ``"auto"`` takes what promises the smaller error.',
        ),
    ]


class Strategies(TypedDict, total=False):
    """What is measured of the bins of a column."""

    tree: Annotated[
        StrategyName | Sequence[int],
        Option(
            "auto",
            '{"auto", "tree", "factorization"} or sequence of int',
            "What is measured: counts of the nodes of the best tree over the bins, or of one with this many "
            "children per node, level by level; or, with Gaussian noise, weighted sums of bins that give "
            'cumulative counts better than any tree. ``"auto"`` takes what promises the smallest error.',
        ),
    ]


class KnownTotals(TypedDict, total=False):
    """What is public of the records that are counted in bins."""

    known: Annotated[
        Any,
        Option(
            None,
            "mapping",
            "Numbers of records that are public, by level of the groups, as for `tree_counts`: "
            '``{"total": 10_000}`` if there are none. They must be those of the records that are counted: '
            "with a value, and within the bound on their unit. They are used group by group, and lower "
            "bounds are not.",
        ),
    ]


class Bounds(TypedDict, total=False):
    """Which values there are."""

    bounds: Annotated[
        Any,
        Option(
            None,
            "pair",
            "The least and the greatest value: numbers, timestamps or durations. What lies outside is "
            "clipped. They must be known without looking at the records; edges of bins take their place.",
        ),
    ]


class Groups(Keys, total=False):
    """Of which groups there is a distribution each."""

    by: Annotated[
        By | None,
        Option(
            None,
            "sequence of hashable",
            "Key columns and derived levels, from the coarsest to the finest, as for `tree_counts`: the "
            "distribution of each group, on every level. The levels share the budget evenly; the groups of a "
            "level do not cost each other anything.",
        ),
    ]


# What kinds of plans take ---------------------------------------------------------------------------------


class SumOptions(Loss, Unit, Noise, Splitting, Judging, Estimating, total=False):
    """What plans for sums of several columns take."""


class JointOptions(SumOptions, Knowing, total=False):
    """What plans for several quantities take, counts among them."""


class AlphaOptions(Loss, Unit, Noise, Splitting, Knowing, Estimating, total=False):
    """What plans of additive noise take that are judged by their largest error beyond a share of a count."""


class AdditiveOptions(AlphaOptions, Judging, Aiming, total=False):
    """What a plan of additive noise on a tree takes."""


class RelativeErrorOptions(Pair, Unit, total=False):
    """What a plan of counts with bounded relative error takes."""


class PrefixOptions(Unit, total=False):
    """What a plan of truncated noise on a tree of all prefixes takes, beside its loss."""

    split: Annotated[
        Literal["optimal", "uniform"] | Mapping[Hashable, float],
        Option(
            "optimal",
            '{"optimal", "uniform"} or mapping',
            "How epsilon and delta are split over the levels. Evenly with both names: that makes the largest "
            "radius of all levels as small as it can be. Or each level's share by name, above 0, which sum "
            "to one.",
        ),
    ]
    keep_measurements: Annotated[
        bool,
        Option(False, "bool", "Whether the table shows the noisy counts that it was made from."),
    ]


class ImplicitOptions(Pair, PrefixOptions, total=False):
    """What a plan of truncated noise on a tree of all prefixes takes."""


class DistributionOptions(Loss, Unit, NamedNoise, Strategies, KnownTotals, total=False):
    """What a plan for the distribution of a column takes."""


class CellDistributionOptions(Loss, Cells, NamedNoise, Strategies, total=False):
    """What a plan for the distribution along a dimension of an array takes."""


class CellOptions(Loss, Relation, Noise, Splitting, Judging, Estimating, total=False):
    """What a plan of additive noise for several variables of a dataset takes."""


class ArrayOptions(CellOptions, Cells, total=False):
    """What a plan of additive noise for an array takes."""


# What is offered where a choice of the mechanism decides about the kind of plan


class PlanOptions(
    Loss, Unit, AnyMechanism, Tolerance, Splitting, Judging, Aiming, Knowing, Estimating, total=False
):
    """What can be said of a plan before its kind is known."""


class AllOptions(PlanOptions, Keys, Running, total=False):
    """Every option there is of a table."""


# How options are read -------------------------------------------------------------------------------------


def completed(kind: type[Given], options: Mapping[str, Any]) -> Given:
    """Give all options of a kind: those that are set, and the defaults of the others."""
    return cast(Given, {name: options.get(name, each.default) for name, each in options_of(kind).items()})


def taken_from(kind: type[Given], options: Mapping[str, Any]) -> Given:
    """Pick the options of a kind out of others."""
    return cast(Given, {name: given for name, given in options.items() if name in options_of(kind)})


def has_no_meaning(
    kind: type[Any], options: Mapping[str, Any], implied: Mapping[str, object] = MappingProxyType({})
) -> list[str]:
    """List the options that are set, and that a kind of plan does not take.

    Parameters
    ----------
    kind : TypedDict
        What the kind of plan takes.
    options : mapping
        What is given. What is left at its default is not set.
    implied : mapping, optional
        Values of other options that say what the kind of plan does anyway.
    """
    defaults = options_of(AllOptions)

    def is_set(name: str, given: object) -> bool:
        without = [defaults[name].default, *([implied[name]] if name in implied else [])]
        return not any(given is each or (isinstance(given, str) and given == each) for each in without)

    return [name for name, given in options.items() if name not in options_of(kind) and is_set(name, given)]


def refuse_others(
    kind: type[Given],
    options: Mapping[str, Any],
    *,
    implied: Mapping[str, object] = MappingProxyType({}),
    what: str,
    hint: str,
) -> Given:
    """Pick the options of a kind of plan out of others, after a check that none of these is set.

    Parameters
    ----------
    kind, options, implied
        As for `has_no_meaning`.
    what, hint : str
        For the error.

    Raises
    ------
    ArgumentError
        If an option is set that has no meaning.
    """
    for name in has_no_meaning(kind, options, implied):
        raise ArgumentError(name, f"has no meaning for {what}.", hint=hint)
    return taken_from(kind, options)

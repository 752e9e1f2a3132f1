"""The registry of all options, and which of them each kind of plan takes.

Each stands once, with its type, default, documentation and flags. A public function names those that it
takes, ``@takes(*SUMS, "domain", *RUNNING)``, which completes its signature; type checkers read the
TypedDicts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, TypedDict, TypeVar

import numpy as np

from pandas_dptree.distribution.strategies import StrategyName
from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.estimators import FITS, Consistency, Fit
from pandas_dptree.hierarchy.levels.combine import By
from pandas_dptree.mechanisms.additive import MECHANISMS, AdditiveNoise, Mechanism
from pandas_dptree.mechanisms.multiplicative.guarantees import Multiplicative
from pandas_dptree.planning.objective import Objective
from pandas_dptree.planning.private_split import PrivateSplit
from pandas_dptree.planning.split import Split
from pandas_dptree.planning.targets import Within
from pandas_dptree.plans.charging import Chargeable
from pandas_dptree.plans.shown_columns import Kept
from pandas_dptree.privacy.loss import PrivacyLoss, ungated_loss
from pandas_dptree.privacy.sensitivity import Neighbors
from pandas_dptree.signatures import Option, options_of, public

__all__ = [
    "ADDITIVE",
    "AGGREGATIONS",
    "CELLS",
    "CELL_DISTRIBUTION",
    "COUNTS",
    "CROSSED",
    "DISTRIBUTION",
    "ESTIMATION",
    "GROUPS",
    "IMPLICIT",
    "JOINT",
    "LOSS",
    "OPTIONS",
    "PLAN",
    "QUANTILES",
    "QUANTILE_GROUPS",
    "QUANTILE_SERIES",
    "RELATIVE_ERROR",
    "RUNNING",
    "SERIES",
    "SUMS",
    "UNIT",
    "UNITS",
    "UNIT_PLAN",
    "DistributionOptions",
    "NoisyOptions",
    "Options",
    "PlanOptions",
    "Running",
    "require_supported",
    "stated_loss",
    "taken_from",
    "takes",
    "unsupported_options",
    "with_defaults",
]

Function = TypeVar("Function", bound=Callable[..., Any])

# The registry ---------------------------------------------------------------------------------------------


class PlanOptions(TypedDict, total=False):
    """Options of plans."""

    epsilon: Annotated[
        float | None,
        Option(
            None,
            "float",
            "The privacy loss of this release, under pure differential privacy if `delta` is 0, otherwise "
            "under approximate differential privacy.",
            flag="--epsilon",
        ),
    ]
    delta: Annotated[
        float,
        Option(
            0.0,
            "float",
            "The probability, below 1, with which the guarantee of `epsilon` may fail.",
            flag="--delta",
        ),
    ]
    rho: Annotated[
        float | None,
        Option(
            None,
            "float",
            "The loss under zero-concentrated differential privacy, instead of `epsilon` and `delta`.",
            flag="--rho",
        ),
    ]
    neighbors: Annotated[
        Neighbors,
        Option(
            "add_remove",
            '{"add_remove", "replace"}',
            "How neighbouring data sets differ: one privacy unit is added or removed, or its data are "
            "replaced.",
            flag="--neighbors",
        ),
    ]
    privacy_unit: Annotated[
        Hashable | None,
        Option(
            None,
            "hashable or dpt.ROWS",
            "The column that identifies whom to protect, such as a user ID.",
            "By default each row is a unit of its own; `dpt.ROWS` states this explicitly.",
            flag="--privacy-unit",
            metavar="COLUMN",
        ),
    ]
    max_contributions: Annotated[
        int | Mapping[Hashable, int] | None,
        Option(
            None,
            "int",
            "The maximum number of rows to keep of each unit, chosen uniformly at random; required if "
            "`privacy_unit` is a column.",
            "The table does not count the other rows. Noise grows in proportion to this number. In an array "
            "it is the maximum number of records of one unit in all cells together, by default 1; it cannot "
            "be checked, because an array does not say which unit a record belongs to: the caller is "
            "responsible for it. For a dataset a mapping may give one number for each variable.",
            flag="--max-contributions",
            metavar="K",
        ),
    ]
    max_per_leaf: Annotated[
        int | None,
        Option(
            None,
            "int",
            "The maximum number of rows to keep of each unit in each leaf, a node of the deepest level.",
            "They are chosen uniformly at random, before `max_contributions` bounds the rows in total. With "
            "1, a leaf counts each unit at most once, and a node above counts pairs of a unit and a leaf; "
            "Gaussian noise on the leaves then grows in proportion to the root of `max_contributions` only. "
            "Needs a `privacy_unit`.",
            flag="--max-per-leaf",
            metavar="M",
        ),
    ]
    max_per_node: Annotated[
        Mapping[Hashable, int] | None,
        Option(
            None,
            "mapping",
            "The maximum number of rows to keep of each unit in each node of other levels, by name.",
            'For example ``{"region": 4}``. Rows are bounded from the leaves up, and last in total.',
            flag="--max-per-node",
            metavar="LEVEL=M",
            help="the maximum number of rows to keep of each unit in each node of a level: region=4",
        ),
    ]
    max_nodes: Annotated[
        int | Mapping[Hashable, int] | None,
        Option(
            None,
            "int or mapping",
            "The maximum number of nodes of each level in which a unit is counted, where distinct units are.",
            'A number bounds every level; ``{"region": 1, "clinic": 4}`` bounds those that it names, the '
            "deepest one among them, and any other as the next one below. Of a unit in more nodes, some are "
            "chosen at random, so that each node that is kept keeps one of its children: nobody is missing "
            "from the total. Noise grows with these bounds.",
            flag="--max-nodes",
            metavar="LEVEL=M",
            help="the maximum number of nodes of a level in which a unit is counted: clinic=4; repeat for "
            "other levels, or give a number for all: 4",
        ),
    ]
    split: Annotated[
        Split | PrivateSplit | Mapping[Hashable, float],
        Option(
            "optimal",
            '{"optimal", "uniform", "geometric"} or mapping',
            "How to divide the privacy budget among the levels.",
            "A mapping gives each level's share by name; shares must sum to 1, and levels left out get 0.",
            flag="--split",
            with_private_keys=(
                '{"optimal", "uniform", "geometric", "doubling"} or mapping',
                "A mapping gives each level's share by name; shares must sum to 1, and levels left out get "
                '0. With private keys and implicit trees only ``"uniform"`` (the smallest nodes found have '
                'the same size on all levels), ``"doubling"`` (each level gets twice the share of the one '
                "above, so that small nodes are found on the deepest level), a mapping with all shares above "
                '0, or ``"optimal"``, which finds the smallest nodes on the deepest level: truncated '
                "Laplace noise has doubling shares with twice as much for the deepest level, or even ones if "
                "more than four levels are private, and Gaussian noise the best of even, doubling and these.",
            ),
        ),
    ]
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
            "The error that the optimal split minimizes.",
            '``"levels"``: the mean variance of a level, averaged over the levels. ``"cells"``: the mean '
            'variance over all nodes. ``"worst"``: the variance of the worst level.',
        ),
    ]
    target: Annotated[
        Mapping[Hashable, float | Within] | None,
        Option(
            None,
            "mapping",
            "The standard errors to achieve, by level, with the smallest privacy loss.",
            "They are in counts (`relative` computes them from a share of a stated count). For intervals, "
            "``{level: within(50, confidence=0.95)}`` states their half width, ± 50, and "
            "``{combine(paths): 25}`` the standard error of several nodes together. The plan has the "
            "smallest epsilon that achieves them, or with Gaussian noise and no `delta` the smallest rho, "
            "and the split for it. If `epsilon` or `rho` is given too, it must be large enough.",
            flag="--target",
            metavar="LEVEL=ERROR",
            help="a standard error to achieve, or the half width of intervals: region=25, region=50@95%%",
        ),
    ]
    consistency: Annotated[
        Consistency,
        Option(
            "integer",
            '{"integer", "nonnegative", "linear", "none"}',
            "How noisy values become estimates.",
            '``"integer"``: non-negative whole numbers that add up. ``"nonnegative"``: non-negative values '
            'that add up. ``"linear"``: unbiased estimates that add up. ``"none"``: the noisy values '
            'themselves. In a table of sums, ``"integer"`` gives multiples of the granularity, and values '
            "are kept non-negative only if the column's bounds allow no negative value; sums over crossed "
            'hierarchies are linear estimates unless this is ``"none"``.',
            flag="--consistency",
        ),
    ]
    fit: Annotated[
        Fit,
        Option(
            "totals",
            "{" + ", ".join(f'"{name}"' for name in FITS) + "}",
            "How negative estimates are corrected.",
            " ".join(f'``"{name}"``: {each.description}' for name, each in FITS.items()),
        ),
    ]
    confidence: Annotated[
        float | None,
        Option(
            None,
            "float",
            "The confidence level, for example 0.95, of the intervals to add.",
            "Their ends ``lower`` and ``upper`` hold the true value of what was counted with this "
            "probability. With private keys, implicit trees and Gaussian noise: the probability, by default "
            "0.95, with which the column ``error_bound`` holds in all rows together; bounds of truncated "
            "Laplace noise are certain.",
            flag="--confidence",
            metavar="P",
        ),
    ]
    keep: Annotated[
        Sequence[Kept] | None,
        Option(
            None,
            'list of {"measurements", "linear"}',
            "What else the table shows.",
            '``"measurements"``: the columns ``measurement`` and ``noise_scale``, the noisy values from '
            "which the estimates are computed, and the scales of their noise. "
            '``"linear"``: the column ``linear``, the unbiased estimates of counts and sums, to which '
            "standard errors apply; proportions, changes and sums of rows need it. Not for private keys and "
            "implicit trees.",
            flag="--keep",
            metavar="COLUMNS",
            help='what else to show: "measurements", the noisy values and their noise scales; "linear", the '
            "unbiased estimates",
        ),
    ]
    known: Annotated[
        Any,
        Option(
            None,
            "mapping or DataFrame",
            "Counts that are already public, which the table shows exactly.",
            'A mapping gives them by level: ``{"total": 81203}`` or ``{"state": populations}``, a Series '
            'indexed like ``groupby(["state"]).size()``. A frame has the keys, and a column ``count``, a '
            "column ``at_least`` (the least that a node can hold), or both. These counts must come from the "
            "caller; they are never compared with the records, and spend no budget. For a distribution only "
            "a mapping of the numbers of its measured records: those that have a value, and are kept under "
            "`max_contributions`. Each is used for its own group only.",
            flag="--known",
            metavar="FILE",
            help="a .csv or .parquet file of public counts: the keys, and a column count, at_least, or both",
        ),
    ]
    margins: Annotated[
        Sequence[Any] | Mapping[Any, float] | None,
        Option(
            None,
            "list or mapping",
            "Which margins of crossed hierarchies to release; by default all.",
            'Each names a level of some axes, ``[{"place": "county", "sex": "sex"}, {"place": "state"}]``, '
            'or in short the levels alone, ``[("county", "sex"), "state"]``. A mapping from such names to '
            'numbers weights their errors: ``{("county", "sex"): 2, "state": 1}``. Only what these margins '
            "need is measured.",
        ),
    ]
    strategy: Annotated[
        StrategyName | Sequence[int],
        Option(
            "auto",
            '{"auto", "tree", "factorization"} or sequence of int',
            "What to measure of the bins of a distribution.",
            '``"tree"``: the counts of the nodes of the best tree over the bins. A sequence: those of a '
            'tree with this many children per node, level by level. ``"factorization"`` (Gaussian noise '
            "only): weighted sums of bins, which give more accurate cumulative counts than any tree. "
            '``"auto"``: whichever has the smallest expected error.',
        ),
    ]


_NAMES = ", ".join(f'"{name}"' for name in MECHANISMS)


class NoisyOptions(PlanOptions, total=False):
    """Options of plans, where the mechanism does not decide their kind."""

    mechanism: Annotated[
        Mechanism | Literal["truncated_laplace", "exponential"] | AdditiveNoise | Multiplicative,
        Option(
            "auto",
            f"{{{_NAMES}}} or AdditiveNoise",
            "The distribution of the noise.",
            '``"auto"`` chooses the one with the smaller expected error. Only Laplace noise gives pure '
            "differential privacy. For distributions only names; for quantiles also "
            '``"exponential"``, which draws them from a grid instead of reading them from a tree with noise.',
            flag="--mechanism",
            with_private_keys=(
                f'{{{_NAMES}, "truncated_laplace"}}, AdditiveNoise or Multiplicative',
                '``"auto"`` chooses the one with the smaller expected error. Only Laplace noise gives pure '
                "differential privacy. `Multiplicative` gives counts with bounded relative error instead. "
                'With private keys and implicit trees only ``"truncated_laplace"``, whose error bounds are '
                'certain, ``"gaussian"``, which finds smaller nodes where many levels matter alike, or '
                '``"auto"``: the one whose smallest count shown with probability 0.95 is smaller on the '
                "deepest level.",
            ),
        ),
    ]


class Running(TypedDict, total=False):
    """How a release is carried out."""

    rng: Annotated[
        np.random.Generator | None,
        Option(
            None,
            "numpy.random.Generator",
            "Makes the release repeatable, for tests and simulations: it is then not private.",
            "By default all randomness comes from the operating system's cryptographic source.",
        ),
    ]
    progress: Annotated[
        bool,
        Option(
            False,
            "bool",
            "Whether to show a progress bar on standard error.",
            "Needs tqdm.",
            flag="--progress",
        ),
    ]
    ledger: Annotated[
        Chargeable | None,
        Option(
            None,
            "Account",
            'The account to charge, as in ``Ledger.open(path)["patients"]``.',
            "The charge is on disk before any noise is drawn, and is never refunded. A release that the "
            "account cannot pay for is refused before the records are read.",
            flag="--ledger",
            metavar="FILE",
            help="the ledger to charge before any noise is drawn, from `dptree ledger create`",
        ),
    ]
    note: Annotated[
        str | None,
        Option(
            None,
            "str",
            "What the release is for, such as ``2026-03``; required with `ledger`.",
            "The same plan with the same note again returns the table that the ledger has kept: no records "
            "are read, and nothing is charged. Another plan for the same table is refused.",
            flag="--note",
            metavar="TEXT",
            help="what the release is for, such as 2026-03; required with --ledger. The same plan with the "
            "same note again returns the table that was kept",
        ),
    ]
    name: Annotated[
        str | None,
        Option(
            None,
            "str",
            "The name of the table, which tells it from other tables of the same kind with the same note.",
            flag="--name",
            metavar="TEXT",
            help="the name of the table, if one note has several of the same kind",
        ),
    ]
    allow_repeat: Annotated[
        bool,
        Option(
            False,
            "bool",
            "Whether to release the same table with the same note again, which is charged in full again.",
            flag="--allow-repeat",
        ),
    ]
    temp_folder: Annotated[
        str | os.PathLike[str] | None,
        Option(
            None,
            "path",
            "The folder for rows that do not fit into memory while the contributions of units are bounded; "
            "by default the system's for temporary files.",
            "The file has no name, and vanishes with the process.",
            flag="--temp-folder",
            metavar="FOLDER",
        ),
    ]


class Options(NoisyOptions, Running, total=False):
    """Options of releases of tables."""

    domain: Annotated[
        Any,
        Option(
            None,
            'DataFrame, MultiIndex, Domain, "observed" or "categories"',
            "The public keys, one row per leaf; for a single key column, any list of keys.",
            '``counts.dp.domain()`` has those of a released table. ``"observed"`` states that the keys in '
            'the records are public. ``"categories"`` states that the categories of the categorical key '
            "columns are public, in every combination. Derived levels have their own domains, which are "
            "crossed with the keys given here; if all levels are derived, leave `domain` out.",
        ),
    ]
    private_keys: Annotated[
        Sequence[Hashable] | None,
        Option(
            None,
            "sequence of hashable",
            "The last columns of `by` whose keys nobody can list.",
            "`domain` covers the others, and is left out if there are none. Keys that many units share are "
            "released, and the records of all others are pooled. Needs a `delta` and a stated "
            "`privacy_unit` (a column or `dpt.ROWS`).",
            flag="--private-key",
            metavar="COLUMN",
            help="a key column whose keys nobody can list: only those that many units share are released; "
            "repeat for the last columns of --by, in the same order. Needs --delta, and --privacy-unit or "
            "--each-row",
        ),
    ]


class DistributionOptions(Options, total=False):
    """Options of releases of a distribution."""

    bounds: Annotated[
        Any,
        Option(
            None,
            "pair",
            "The smallest and the largest value: numbers, timestamps or durations.",
            "Values outside are clipped. Bounds must be known without looking at the records. Leave them "
            "out if `bins` lists the edges.",
        ),
    ]
    by: Annotated[
        By | None,
        Option(
            None,
            "sequence of hashable",
            "Key columns and derived levels, from the coarsest to the finest, as for `tree_counts`.",
            "The result has the distribution of each group of every level. The levels share the budget "
            "evenly; more groups in a level cost nothing.",
        ),
    ]


OPTIONS: Final = MappingProxyType(options_of(DistributionOptions))
"""All options by name."""

# What is taken --------------------------------------------------------------------------------------------

LOSS: Final = ("epsilon", "delta", "rho")
UNIT: Final = ("neighbors", "privacy_unit", "max_contributions")
CAPS: Final = ("max_per_leaf", "max_per_node")
ERROR: Final = ("split", "level_weights", "objective")
ESTIMATION: Final = ("consistency", "fit", "confidence", "keep")
RUNNING: Final = ("rng", "progress", "ledger", "note", "name", "allow_repeat", "temp_folder")

# Kinds of plans
SUMS: Final = (*LOSS, *UNIT, *CAPS, "mechanism", *ERROR, *ESTIMATION, "margins")
JOINT: Final = (*SUMS, "known")
ADDITIVE: Final = (*JOINT, "target")
CROSSED: Final = (
    *LOSS, *UNIT, "max_per_leaf", "mechanism", *ERROR, "consistency", "keep", "margins", "known", "target",
)  # fmt: skip
RELATIVE_ERROR: Final = ("epsilon", "delta", *UNIT)
IMPLICIT: Final = (*LOSS, *UNIT, *CAPS, "split", "confidence", "keep")
DISTRIBUTION: Final = (*LOSS, *UNIT, "mechanism", "strategy", "known")
QUANTILES: Final = (*LOSS, *UNIT, "mechanism", "strategy", "known", "confidence")
PLAN: Final = ADDITIVE
AGGREGATIONS: Final = (*JOINT, "max_nodes")
UNITS: Final = (
    *LOSS, "neighbors", "privacy_unit", "max_nodes", "mechanism", *ERROR, "consistency", "confidence", "keep",
    "known",
)  # fmt: skip
UNIT_PLAN: Final = (*UNITS, "target")

# Verbs
COUNTS: Final = (*JOINT, "domain", "private_keys", *RUNNING)
GROUPS: Final = ("bounds", "by", "domain", *DISTRIBUTION, *RUNNING)
SERIES: Final = ("bounds", *LOSS, "neighbors", "mechanism", "strategy", "known", *RUNNING)
QUANTILE_GROUPS: Final = ("bounds", "by", "domain", *QUANTILES, *RUNNING)
QUANTILE_SERIES: Final = ("confidence", *SERIES)
CELLS: Final = (*LOSS, "neighbors", "max_contributions", "mechanism", *ERROR, *ESTIMATION, "margins")
CELL_DISTRIBUTION: Final = (*LOSS, "neighbors", "max_contributions", "mechanism", "strategy")


def takes(*names: str, **defaults: Any) -> Callable[[Function], Function]:
    """Make a function public whose ``**options`` are those named, some with a default of its own."""
    taken = {name: OPTIONS[name] for name in names}
    own = {name: taken[name]._replace(default=default) for name, default in defaults.items()}

    def decorate(function: Function) -> Function:
        return public(function, options=taken | own, defaults=defaults)

    return decorate


# Reading options ------------------------------------------------------------------------------------------


def with_defaults(names: Sequence[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the named options, with defaults for those that are not given."""
    return {name: options.get(name, OPTIONS[name].default) for name in names}


def taken_from(names: Sequence[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the options that are named."""
    return {name: given for name, given in options.items() if name in names}


def stated_loss(given: Mapping[str, Any]) -> PrivacyLoss:
    """Return the loss that all options of a release without gates state; raise ArgumentError for others."""
    return ungated_loss(PrivacyLoss(**taken_from(LOSS, given)))


def unsupported_options(
    names: Sequence[str], options: Mapping[str, Any], implied: Mapping[str, object] = MappingProxyType({})
) -> list[str]:
    """List the options that are set, neither to their default nor to what is `implied`, but not named."""

    def is_set(name: str, given: object) -> bool:
        no_effect = [OPTIONS[name].default, *([implied[name]] if name in implied else [])]
        return not any(given is each or (isinstance(given, str) and given == each) for each in no_effect)

    return [name for name, given in options.items() if name not in names and is_set(name, given)]


def require_supported(
    names: Sequence[str],
    options: Mapping[str, Any],
    *,
    implied: Mapping[str, object] = MappingProxyType({}),
    what: str,
    hint: str,
) -> dict[str, Any]:
    """Return the named options; raise ArgumentError, about `what`, if any other is set."""
    for name in unsupported_options(names, options, implied):
        raise ArgumentError(name, f"has no meaning for {what}.", hint=hint)
    return taken_from(names, options)

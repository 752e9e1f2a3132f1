"""The verbs, as plain typed functions."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.consistency import CONSISTENCIES, FITS, Consistency, Fit
from pandas_dptree.hierarchy.domain import Domain, check_by, level_names
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.ingest.frames import check_columns, key_frame
from pandas_dptree.mechanisms.additive import AdditiveNoise, Gaussian, Laplace
from pandas_dptree.plan import Plan
from pandas_dptree.planning.objective import OBJECTIVES, Objective
from pandas_dptree.planning.split import SPLITS, Split, split_budget
from pandas_dptree.planning.targets import LARGEST_LOSS, Target
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Neighbors, count_sensitivity

__all__ = ["domain_of", "plan", "tree_counts"]

Mechanism = Literal["auto", "laplace", "gaussian"]


def tree_counts(
    frame: Any,
    by: Sequence[Hashable],
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: Neighbors = "add_remove",
    privacy_unit: Hashable | None = None,
    max_contributions: int = 1,
    domain: Any = None,
    mechanism: Mechanism | AdditiveNoise = "auto",
    split: Split | Mapping[Hashable, float] = "optimal",
    level_weights: Mapping[Hashable, float] | None = None,
    objective: Objective = "levels",
    consistency: Consistency = "integer",
    fit: Fit = "totals",
    rng: np.random.Generator | None = None,
) -> pd.DataFrame:
    """Count the records of every node of a hierarchy, under differential privacy.

    Parameters
    ----------
    frame : dataframe
        The records, one row each: pandas, polars (eager or lazy) or pyarrow.
    by : sequence of hashable
        The key columns, from the coarsest to the finest.
    epsilon, delta, rho : float, optional
        The privacy loss of this release: `epsilon` alone is pure differential privacy, with `delta`
        approximate; `rho` is zero-concentrated.
    neighbors : {"add_remove", "replace"}
        What may differ between neighbouring data sets: that a privacy unit is there, or what it is.
    privacy_unit : hashable, optional
        The column that names whom to protect. By default each row is protected by itself.
    max_contributions : int, default 1
        How many rows of one unit are kept, chosen uniformly at random.
    domain : DataFrame, MultiIndex, Domain, "observed" or "categories"
        The public keys: one row per leaf. Or the statement that the keys that stand in the records
        are public (``"observed"``), or that the categories of the categorical key columns are, in
        every combination (``"categories"``).
    mechanism : {"auto", "laplace", "gaussian"} or AdditiveNoise
        The noise. ``"auto"``: whichever promises the smaller error; only Laplace noise gives pure
        differential privacy.
    split : {"optimal", "uniform", "geometric", "nodes"} or mapping
        How the budget is split over the levels, or with ``"nodes"`` (Gaussian noise) over the nodes of each
        path; or each level's share (by name; 0 if left out), which sum to one.
    level_weights : mapping, optional
        How much the error of a level matters, by name; 1 for those left out.
    objective : {"levels", "cells", "worst"}
        What ``split="optimal"`` makes small: the mean variance of a level averaged over the levels, the
        mean variance over all nodes, or the variance of the worst level.
    consistency : {"integer", "nonnegative", "linear", "none"}
        Whole numbers that add up; non-negative and additive; unbiased and additive; raw noisy nodes.
    fit : {"totals", "joint"}
        How negative estimates are mended: family by family from the top, which keeps the totals as good as
        least squares makes them; or in one least-squares fit of all nodes, closest to the truth as a
        whole, but with totals that are too large where most leaves are empty.
    rng : numpy.random.Generator, optional
        Makes the release repeatable, for tests and simulation: it is then not private.

    Returns
    -------
    pandas.DataFrame
        One row per node, from the root to the leaves: ``level`` (ordered categorical), the keys
        (missing below a node's depth), ``count`` and ``std_error`` (in counts; that of the unbiased
        linear estimate). ``.dp.level(name)`` selects a level.

    Raises
    ------
    ArgumentError
        If an argument cannot be used; `DomainError` and `ColumnsError` are special cases. Bad values in
        the records never raise.

    Notes
    -----
    **Privacy**: the release is differentially private for the stated loss, with respect to the neighbouring
    relation and privacy unit. The domain is public: rows, columns and types of the answer follow from it.
    Records whose keys it does not list are dropped silently; keys that are missing from some level on
    belong to the leaf of the shorter path, if the domain lists that.

    See Also
    --------
    plan : the same release, described before anything is spent.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> visits, clinics = dpt.datasets.clinic_visits(), dpt.datasets.clinics()
    >>> counts = dpt.tree_counts(visits, ["region", "district"], epsilon=1.0,
    ...                          domain=clinics[["region", "district"]].drop_duplicates())
    >>> list(counts.columns)
    ['level', 'region', 'district', 'count', 'std_error']
    """
    return plan(
        domain_of(frame, by, domain),
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        neighbors=neighbors,
        privacy_unit=privacy_unit,
        max_contributions=max_contributions,
        mechanism=mechanism,
        split=split,
        level_weights=level_weights,
        objective=objective,
        consistency=consistency,
        fit=fit,
    ).release(frame, rng=rng)


def plan(
    domain: Domain | Tree,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: Neighbors = "add_remove",
    privacy_unit: Hashable | None = None,
    max_contributions: int = 1,
    mechanism: Mechanism | AdditiveNoise = "auto",
    split: Split | Mapping[Hashable, float] = "optimal",
    level_weights: Mapping[Hashable, float] | None = None,
    objective: Objective = "levels",
    target: Mapping[Hashable, float] | None = None,
    consistency: Consistency = "integer",
    fit: Fit = "totals",
) -> Plan:
    """Describe a release before it happens. Spends nothing, and sees no records.

    Parameters
    ----------
    domain : Domain or Tree
        What is public: the labelled leaves, or for numbers alone the bare shape of the hierarchy.
    epsilon, delta, rho, neighbors, privacy_unit, max_contributions, mechanism, split, level_weights, \
objective, consistency, fit
        As for `tree_counts`. The levels of a bare tree are called ``"total"``, ``"level_1"``, ….
    target : mapping, optional
        The standard errors that are wanted, by level, in counts (`relative` makes them from a share of a
        stated count). Finds the smallest epsilon for them, or with Gaussian noise and no `delta` the
        smallest rho, and the split that needs it. If `epsilon` or `rho` is stated too, it must be enough.

    Returns
    -------
    Plan

    Raises
    ------
    ArgumentError
        If an argument cannot be used.

    Notes
    -----
    **Privacy**: a function of public arguments alone.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> tree = dpt.Tree.from_branching([50, 60, 30])
    >>> dpt.plan(tree, rho=0.5, split="uniform").noise_scales.round(3).tolist()
    [2.0, 2.0, 2.0, 2.0]
    """
    if not isinstance(domain, (Domain, Tree)):
        raise ArgumentError(
            "domain",
            f"must be a Domain or a Tree, not {type(domain).__name__}: a plan never sees records.",
            hint="make one from a frame of public keys with dpt.Domain.from_frame(places, by=[...]).",
        )
    names = level_names(domain)
    _check_choice("consistency", consistency, CONSISTENCIES)
    _check_choice("fit", fit, FITS)
    _check_choice("objective", objective, OBJECTIVES)
    tree = domain if isinstance(domain, Tree) else domain.tree
    sensitivity = count_sensitivity(neighbors=neighbors, max_contributions=max_contributions)
    least_squares = consistency != "none"
    if isinstance(split, str):
        _check_choice("split", split, SPLITS)
    shares = split if isinstance(split, str) else _by_level("split", split, names, 0.0)
    weights = _by_level("level_weights", {} if level_weights is None else level_weights, names, 1.0)
    if target is None:
        stated = PrivacyLoss(epsilon=epsilon, delta=delta, rho=rho)
        losses = [(noise, stated) for noise in _noises(mechanism, stated, split)]
    else:
        if level_weights is not None or objective != "levels" or split == "nodes":
            raise ArgumentError(
                "target",
                "says already how much each level matters, and is met level by level.",
                hint='leave out `level_weights`, `objective` and split="nodes".',
            )
        aim = Target(
            tree=tree,
            names=names,
            std_errors=_by_level("target", target, names, math.inf),
            sensitivity=sensitivity,
            split=shares,
            least_squares=least_squares,
        )
        losses = [_loss_for(aim, mechanism, epsilon, delta, rho)]
        weights, objective = aim.weights, "worst"
    plans = [
        Plan(
            tree=tree,
            domain=domain if isinstance(domain, Domain) else None,
            loss=loss,
            noise=noise,
            neighbors=neighbors,
            privacy_unit=privacy_unit,
            max_contributions=int(max_contributions),
            consistency=consistency,
            fit=fit,
            split=split if isinstance(split, str) else "given",
            objective=objective,
            level_weights=weights,
            node_shares=split_budget(
                tree,
                noise=noise,
                loss=loss,
                sensitivity=sensitivity,
                split=shares,
                level_weights=weights,
                objective=objective,
                least_squares=least_squares,
            ),
        )
        for noise, loss in losses
    ]
    return min(plans, key=lambda plan: plan.expected_error)


def domain_of(frame: Any, by: Sequence[Hashable], domain: Any) -> Domain:
    """Make the public domain of a release of records.

    Parameters
    ----------
    frame : dataframe
        The records. Their keys are looked at only for ``"observed"``, their types for ``"categories"``.
    by : sequence of hashable
        The key columns, from the coarsest to the finest.
    domain : DataFrame, MultiIndex, Domain, "observed" or "categories"
        As for `tree_counts`.

    Returns
    -------
    Domain

    Raises
    ------
    ArgumentError
        If no domain is given, or one that cannot be used.
    """
    names = check_by(by)
    if isinstance(domain, Domain):
        if domain.by != names:
            raise ArgumentError(
                "domain",
                f"has the keys {list(domain.by)!r}, not {list(names)!r}.",
                hint="name the same columns in the same order.",
            )
        return domain
    if isinstance(domain, str) and domain == "observed":
        return Domain.observed(key_frame(frame, names), by=names)
    if isinstance(domain, str) and domain == "categories":
        check_columns(frame, names)
        return Domain.from_categories(frame, by=names)
    if domain is None or isinstance(domain, str):
        raise ArgumentError(
            "domain",
            "must be given: which keys exist is itself information about the records."
            if domain is None
            else f"is unknown: {domain!r}.",
            hint='pass a frame of the public keys, one row per leaf; or "observed" to state that the keys in '
            'the records are public, or "categories" that the categories of categorical keys are.',
        )
    return Domain.from_frame(domain, by=names)


def _noises(mechanism: Mechanism | AdditiveNoise, loss: PrivacyLoss, split: object) -> list[AdditiveNoise]:
    """List the noises that a plan may choose from."""
    if isinstance(mechanism, AdditiveNoise):
        return [mechanism]
    _check_choice("mechanism", mechanism, ("auto", "laplace", "gaussian"))
    if mechanism != "auto":
        return [Laplace() if mechanism == "laplace" else Gaussian()]
    if split == "nodes":
        return [Gaussian()]
    return [noise for noise in (Laplace(), Gaussian()) if noise.can_give(loss)]


def _loss_for(
    aim: Target,
    mechanism: Mechanism | AdditiveNoise,
    epsilon: float | None,
    delta: float,
    rho: float | None,
) -> tuple[AdditiveNoise, PrivacyLoss]:
    """Find the smallest privacy loss that meets a target; a stated epsilon or rho is met, or is too small."""
    if epsilon is not None or rho is not None:
        PrivacyLoss(epsilon=epsilon, delta=delta, rho=rho)  # raises if it is none
    gaussian = mechanism == "gaussian" or isinstance(mechanism, Gaussian)
    concentrated = rho is not None or (epsilon is None and not delta and gaussian)

    def loss_of(size: float) -> PrivacyLoss:
        return PrivacyLoss(rho=size) if concentrated else PrivacyLoss(epsilon=size, delta=delta)

    noises = _noises(mechanism, loss_of(1.0), None)
    sizes = [(aim.smallest_loss(noise, loss_of), noise) for noise in noises]
    size, noise = min(sizes, key=lambda found: found[0])
    stated = epsilon if rho is None else rho
    limit = LARGEST_LOSS if stated is None else stated
    if size > limit:
        raise aim.out_of_reach(noise, loss_of, size, limit)
    return noise, loss_of(size if stated is None else stated)


def _by_level(
    argument: str, values: Mapping[Hashable, float], names: Sequence[Hashable], default: float
) -> np.ndarray:
    """Bring a mapping from level names to numbers into the order of the levels."""
    if not isinstance(values, Mapping):
        raise ArgumentError(
            argument,
            f"must be a mapping from level names to numbers, not {type(values).__name__}.",
            hint=f"the levels are {list(names)!r}.",
        )
    unknown = [name for name in values if name not in names]
    if unknown:
        raise ArgumentError(
            argument, f"names unknown levels: {unknown!r}.", hint=f"the levels are {list(names)!r}."
        )
    for value in values.values():
        if (
            isinstance(value, bool)
            or not isinstance(value, (int, float, np.number))
            or not 0 <= value < np.inf
        ):
            raise ArgumentError(
                argument, f"must hold finite numbers >= 0, not {value!r}.", hint="for example 0.25."
            )
    return np.array([values.get(name, default) for name in names], dtype=np.float64)


def _check_choice(argument: str, value: object, choices: Sequence[str]) -> None:
    if not isinstance(value, str) or value not in choices:
        raise ArgumentError(
            argument,
            f"is unknown: {value!r}.",
            hint=f"choose one of {', '.join(repr(choice) for choice in choices)}.",
        )

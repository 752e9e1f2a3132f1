"""Plans of tables: what they say, what they compare, what they write down, and what they release."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd

import pandas_dptree as dpt
from tests.seeded.cases.register import case
from tests.seeded.data import (
    APPROXIMATE,
    BY,
    CONCENTRATED,
    PEOPLE,
    PURE,
    domain,
    places,
    rng,
    visits,
)

TREE = dpt.Tree.from_branching([3, 4, 2])
RAGGED = dpt.Tree.from_paths([[0, 0], [0, 1], [0, 2], [1, 0], [2, -1]])


def shown(plan: Any) -> dict[str, Any]:
    """The numbers that a plan shows."""
    return {
        "frame": plan.to_frame(),
        "level_names": list(plan.level_names),
        "loss": [plan.epsilon, plan.delta, plan.rho],
    }


def numbers(plan: Any) -> dict[str, Any]:
    """The numbers of a plan of additive noise."""
    return {
        "shares": plan.budget_shares,
        "noise_scales": plan.noise_scales,
        "std_errors": plan.std_errors,
        "node_std_errors": list(plan.node_std_errors),
        "expected_error": plan.expected_error,
        "gap": plan.gap,
        "noise": plan.noise.name,
    }


def read_again(plan: Any, hierarchy: Any) -> Any:
    """The same plan by way of JSON."""
    return type(plan).from_dict(json.loads(json.dumps(plan.to_dict(), allow_nan=False)), hierarchy)


# What a plan says ----------------------------------------------------------------------------------------


@case
def plan_pure():
    plan = visits().dp.plan(BY, domain=places(), **PURE)
    return shown(plan) | numbers(plan)


@case
def plan_approximate():
    plan = dpt.plan(domain(), **APPROXIMATE, **PEOPLE)
    return shown(plan) | numbers(plan)


@case
def plan_concentrated_replace():
    plan = dpt.plan(domain(), neighbors="replace", objective="cells", **CONCENTRATED)
    return shown(plan) | numbers(plan)


@case
def plan_raw():
    plan = dpt.plan(domain(), consistency="none", split="geometric", **CONCENTRATED)
    return shown(plan) | numbers(plan)


@case
def plan_known_and_structural_zeros():
    plan = dpt.plan(domain(zeros=True), known={"total": 500}, confidence=0.9, **CONCENTRATED)
    return shown(plan) | numbers(plan)


@case
def plan_of_sums():
    plan = dpt.plan(domain(), column="cost", bounds=(0, 500), granularity=0.25, **CONCENTRATED)
    return shown(plan) | numbers(plan)


@case
def plan_of_uniform_trees():
    options = {"optimal": {}, "worst": {"objective": "worst"}, "weights": {"level_weights": {"level_2": 9}}}
    return {
        f"{name} {noise}": numbers(dpt.plan(TREE, mechanism=noise, **given, **APPROXIMATE))
        for name, given in options.items()
        for noise in ("laplace", "gaussian")
    }


@case
def plan_splits_of_ragged_tree():
    return {
        f"{split} {objective}": numbers(dpt.plan(RAGGED, split=split, objective=objective, **CONCENTRATED))
        for split in ("optimal", "uniform", "geometric")
        for objective in ("levels", "cells", "worst")
    }


@case
def plan_of_many_levels():
    """More levels than all choices of measured ones can be tried for."""
    plan = dpt.plan(dpt.Tree.from_branching([2] * 14), objective="cells", **PURE)
    return {"shares": plan.budget_shares, "std_errors": plan.std_errors}


@case
def plan_plots():
    figures = [
        dpt.plan(domain(), **PURE).plot(),
        dpt.plan(domain(), column="age", bounds=(0, 9), **CONCENTRATED).plot(),
    ]
    return [
        {
            "lines": [np.asarray(line.get_xdata(), dtype=float) for line in axes.lines],
            "xlabel": axes.get_xlabel(),
            "levels": [label.get_text() for label in axes.get_yticklabels()],
            "legend": [text.get_text() for text in axes.get_legend().get_texts()],
        }
        for axes in figures
    ]


# What is aimed at ----------------------------------------------------------------------------------------


@case
def plan_for_target():
    targets = {
        "one": {"target": {"district": 5.0}},
        "several": {"target": {"total": 9.0, "region": 4.0, "clinic": 20.0}, "delta": 1e-6},
        "gaussian": {"target": {"clinic": 10.0}, "mechanism": "gaussian"},
        "stated": {"target": {"clinic": 10.0}, "epsilon": 3.0},
        "sums": {"target": {"region": 300.0}, "column": "cost", "bounds": (0, 500)},
    }
    plans = {name: dpt.plan(domain(), **given) for name, given in targets.items()}
    return {
        name: {"loss": plan.loss.to_dict(), "shares": plan.budget_shares, "std_errors": plan.std_errors}
        for name, plan in plans.items()
    }


@case
def plan_for_relative_target():
    wanted = {"region": dpt.relative(0.05, of=2_000), "clinic": dpt.relative(0.1, of=100)}
    return {"target": wanted, **shown(dpt.plan(domain(), target=wanted))}


# What is compared ----------------------------------------------------------------------------------------


@case
def compared():
    return {
        "pure": dpt.plan(domain(), **PURE).compare(),
        "approximate": dpt.plan(domain(), **APPROXIMATE).compare(),
        "raw": dpt.plan(TREE, consistency="none", **CONCENTRATED).compare(),
        "sums": dpt.plan(TREE, column="x", bounds=(-1, 3), **CONCENTRATED).compare(),
    }


@case
def alpha_rmse_of_plans():
    plans = {
        "least squares": dpt.plan(domain(), **APPROXIMATE),
        "raw": dpt.plan(domain(), consistency="none", known={"total": 500}, **PURE),
        "sums": dpt.plan(domain(), column="cost", bounds=(0, 500), **CONCENTRATED),
    }
    return {
        name: [plan.alpha_rmse(0.1), plan.alpha_rmse(0.25, {"region": 200, "clinic": 20})]
        for name, plan in plans.items()
    }


# What is released by a plan ------------------------------------------------------------------------------


@case
def plan_released():
    plan = visits().dp.plan(BY, domain=places(), confidence=0.9, **APPROXIMATE, **PEOPLE)
    return {"plan": plan.release(visits(), rng=rng()), "accessor": visits().dp.release(plan, rng=rng(1))}


@case
def plan_of_numbers_released():
    leaves = np.array([5, 0, -3, 40, 2, 0, 0, 9, 100, 1, 0, 3] * 2)
    return {
        "counts": dpt.plan(TREE, max_contributions=2, **CONCENTRATED).release(leaves, rng=rng()),
        "ragged": dpt.plan(RAGGED, known={"level_1": np.array([20, np.nan, 8])}, **PURE).release(
            np.array([9, 4, 7, 1, 8]), rng=rng()
        ),
        "sums": dpt.plan(TREE, column="x", bounds=(-5, 5), **PURE).release(leaves, rng=rng()),
        "domain": dpt.plan(domain(zeros=True), **PURE).release(np.arange(len(places())), rng=rng()),
    }


@case
def plan_of_sums_released():
    plan = dpt.plan(domain(), column="cost", bounds=(0, 500), keep=["measurements"], **CONCENTRATED, **PEOPLE)
    return plan.release(visits(), rng=rng())


# What is written down ------------------------------------------------------------------------------------


def _plans() -> dict[str, Any]:
    listed = domain(zeros=True)
    return {
        "pure": dpt.plan(listed, **PURE),
        "options": dpt.plan(
            listed, neighbors="replace", known={"total": 500}, confidence=0.9, keep=["measurements"],
            fit="joint", consistency="nonnegative", level_weights={"clinic": 3}, objective="cells",
            **APPROXIMATE, **PEOPLE,
        ),
        "given": dpt.plan(listed, split={"region": 0.25, "clinic": 0.75}, consistency="linear", **PURE),
        "sums": dpt.plan(listed, column="cost", bounds=(-10, 500), granularity=0.1, **CONCENTRATED),
        "target": dpt.plan(listed, target={"region": 6.0}),
    }  # fmt: skip


@case
def written_plans():
    return {name: plan.to_dict() for name, plan in _plans().items()}


@case
def written_plans_of_trees():
    return {
        "tree": dpt.plan(TREE, **APPROXIMATE).to_dict(),
        "ragged": dpt.plan(RAGGED, known={"level_1": np.array([20, np.nan, 8])}, **PURE).to_dict(),
    }


@case
def written_plans_released():
    again = {name: read_again(plan, domain(zeros=True)) for name, plan in _plans().items()}
    return {
        name: {"same": plan.to_dict() == _plans()[name].to_dict(), "table": plan.release(visits(), rng=rng())}
        for name, plan in again.items()
    }


# Bounded relative error -----------------------------------------------------------------------------


@case
def plan_multiplicative():
    plan = dpt.plan(domain(), mechanism=dpt.Multiplicative(alpha=0.25), **APPROXIMATE, **PEOPLE)
    return _factor(plan) | {
        "frame": plan.to_frame(), "level_names": list(plan.level_names), "written": plan.to_dict(),
    }  # fmt: skip


def _factor(plan: Any) -> dict[str, Any]:
    return {
        "loss": [plan.epsilon, plan.delta],
        "threshold": plan.threshold,
        "failure": plan.failure_probability,
        "max_error": plan.max_error,
        "rmse_bound": plan.rmse_bound,
        "error_bound": plan.error_bound([0, 10, 5_000, 10**7]),
    }


@case
def plan_multiplicative_options():
    guarantees = {
        "proof": dpt.Multiplicative(alpha=0.25, calibration="proof"),
        "clip": dpt.Multiplicative(alpha=0.5, clip=True),
        "clip proof": dpt.Multiplicative(alpha=0.5, clip=True, calibration="proof", failure_probability=0.2),
        "threshold": dpt.Multiplicative(alpha=0.1, threshold=500_000, failure_probability=0.01),
    }
    return {
        name: _factor(dpt.plan(TREE, mechanism=guarantee, neighbors="replace", **APPROXIMATE))
        for name, guarantee in guarantees.items()
    }


@case
def plan_multiplicative_released():
    """Large counts, so that there is something to find."""
    leaves = np.array([0, 3_000, 90_000, 10**6, 70_000, 5, 40_000, 10**7] * 3)
    guarantees = {
        "exact": dpt.Multiplicative(alpha=0.25),
        "clip": dpt.Multiplicative(alpha=0.5, clip=True),
        "proof": dpt.Multiplicative(alpha=0.9, calibration="proof"),
    }
    plans = {
        name: dpt.plan(TREE, mechanism=guarantee, **APPROXIMATE) for name, guarantee in guarantees.items()
    }
    again = read_again(plans["clip"], TREE)
    return {name: plan.release(leaves, rng=rng(2)) for name, plan in plans.items()} | {
        "read again": again.release(leaves, rng=rng(2))
    }


# What plans are made for ---------------------------------------------------------------------------------


@case
def domains():
    listed = places()
    frames = {
        "places": domain(),
        "zeros": domain(zeros=True),
        "index": dpt.Domain.from_frame(pd.MultiIndex.from_frame(listed), by=BY),
        "observed": dpt.Domain.observed(visits(), by=BY),
        "categories": dpt.Domain.from_categories(
            visits()[["region", "product"]].astype("category"), by=["region", "product"]
        ),
        "tree": dpt.Domain.from_tree(RAGGED),
    }
    return {
        name: {
            "repr": repr(each),
            "by": each.by,
            "keys": [each.keys(level + 1) for level in range(len(each.by))],
        }
        for name, each in frames.items()
    }


@case
def what_plans_say():
    """The texts of plans of each kind."""
    squares = dpt.quadtree("y", "x", depth=2, bounds=((0, 10), (0, 10)))
    plans = {
        "counts": dpt.plan(domain(zeros=True), known={"total": 500}, **PURE),
        "sums": dpt.plan(domain(), column="cost", bounds=(0, 500), **CONCENTRATED, **PEOPLE),
        "squares": dpt.plan(dpt.derived_domain(squares), neighbors="replace", **APPROXIMATE),
        "several": dpt.plan_means(domain(), columns="age", bounds=(0, 100), **PURE),
        "relative error": dpt.plan(domain(), mechanism=dpt.Multiplicative(alpha=0.25), **APPROXIMATE),
        "distribution": dpt.plan_distribution("age", bounds=(0, 100), bins=64, **APPROXIMATE, **PEOPLE),
        "prefixes": dpt.plan(dpt.prefixes("ip", bits=[8, 32], notation="ipv4"), **APPROXIMATE),
        "private keys": dpt.plan(domain(), private_keys=["doctor"], **APPROXIMATE, **PEOPLE),
    }
    return {name: {"headline": plan.headline, "repr": repr(plan)} for name, plan in plans.items()}


@case
def alpha_compared():
    plan = dpt.plan(domain(), mechanism="laplace", **APPROXIMATE)
    return {
        "worst": plan.compare(alpha=0.1),
        "counts": plan.compare(alpha=0.25, counts={"total": 600, "region": 150}),
        "pure": dpt.plan(TREE, **PURE).compare(alpha=0.1),
    }

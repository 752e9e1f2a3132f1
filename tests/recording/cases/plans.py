"""Plans of tables: what they say, what they compare, what they write down, and what they release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pandas_dptree as dpt
from tests.recording.cases.register import case
from tests.recording.data import (
    APPROXIMATE,
    BY,
    CONCENTRATED,
    PEOPLE,
    PURE,
    domain,
    places,
    rng,
    scattered,
    visits,
)

TREE = dpt.Tree.from_branching([3, 4, 2])
RAGGED = dpt.Tree.from_paths([[0, 0], [0, 1], [0, 2], [1, 0], [2, -1]])
WRITTEN = Path(__file__).parents[1] / "plans"


def shown(plan: Any) -> dict[str, Any]:
    """What a plan of a table says of itself."""
    return {
        "headline": plan.headline,
        "repr": repr(plan),
        "html": plan._repr_html_(),
        "frame": plan.to_frame(),
        "level_names": list(plan.level_names),
        "loss": [plan.epsilon, plan.delta, plan.rho],
    }


def numbers(plan: Any) -> dict[str, Any]:
    """The numbers of a plan of additive noise."""
    return {
        "shares": plan.shares,
        "noise_scales": plan.noise_scales,
        "std_errors": plan.std_errors,
        "node_std_errors": list(plan.node_std_errors),
        "expected_error": plan.expected_error,
        "gap": plan.gap,
        "gap_reason": plan.gap_reason,
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
def plan_by_node():
    plan = dpt.plan(domain(), split="nodes", consistency="linear", **APPROXIMATE)
    return shown(plan) | numbers(plan)


@case
def plan_raw():
    plan = dpt.plan(domain(), consistency="none", split="geometric", **CONCENTRATED)
    return shown(plan) | numbers(plan)


@case
def plan_known_and_impossible():
    plan = dpt.plan(domain(impossible=True), known={"total": 500}, confidence=0.9, **CONCENTRATED)
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
def plan_of_deep_tree():
    plan = dpt.plan(dpt.Tree.from_branching([2] * 12), rho=0.5, split="nodes")
    return {"shares": plan.shares, "std_errors": plan.std_errors, "gap": plan.gap}


@case
def plan_by_node_of_a_wide_tree():
    """So many different shares that noise scales are rounded."""
    widths = 1 + scattered(24 * 24, 50, 51).reshape(24, 24)
    paths = [[i, j, k] for i in range(24) for j in range(1 + i) for k in range(widths[i, j])]
    tree = dpt.Tree.from_paths(paths)
    found = {}
    for name, loss in (("rho", CONCENTRATED), ("approximate", APPROXIMATE)):
        plan = dpt.plan(tree, split="nodes", objective="cells", **loss)
        found[name] = [plan.shares, plan.std_errors, plan.noise_scales, plan.node_std_errors[1]]
    return found


@case
def plan_splits_of_ragged_tree():
    return {
        f"{split} {objective}": numbers(dpt.plan(RAGGED, split=split, objective=objective, **CONCENTRATED))
        for split in ("optimal", "uniform", "geometric", "nodes")
        for objective in ("levels", "cells", "worst")
    }


@case
def plan_of_many_levels():
    """More levels than all choices of measured ones can be tried for."""
    plan = dpt.plan(dpt.Tree.from_branching([2] * 14), objective="cells", **PURE)
    return {"shares": plan.shares, "std_errors": plan.std_errors, "gap_reason": plan.gap_reason}


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
        "uniform": {"target": {"clinic": 10.0}, "split": "uniform", "consistency": "none"},
        "stated": {"target": {"clinic": 10.0}, "epsilon": 3.0},
        "stated rho": {"target": {"region": 10.0}, "rho": 0.5},
        "known": {"target": {"clinic": 10.0}, "known": {"total": 500}},
        "sums": {"target": {"region": 300.0}, "column": "cost", "bounds": (0, 500)},
    }
    plans = {name: dpt.plan(domain(), **given) for name, given in targets.items()}
    return {
        name: {"loss": plan.loss.to_dict(), "shares": plan.shares, "std_errors": plan.std_errors}
        for name, plan in plans.items()
    }


@case
def plan_for_relative_target():
    wanted = {"region": dpt.relative(0.05, of=2_000), "clinic": dpt.relative(0.1, of=100)}
    return {"target": wanted, **shown(dpt.plan(domain(), target=wanted))}


@case
def plan_by_alpha():
    plans = {
        "pure": dpt.plan(domain(), alpha=0.1, **PURE),
        "approximate": dpt.plan(domain(), alpha=0.5, consistency="none", **APPROXIMATE),
        "gaussian": dpt.plan(TREE, alpha=0.2, mechanism="gaussian", **CONCENTRATED),
        "known": dpt.plan(domain(), alpha=0.2, known={"total": 500}, **APPROXIMATE),
    }
    return {name: {"repr": repr(plan), **numbers(plan)} for name, plan in plans.items()}


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
def compared_by_alpha():
    plan = dpt.plan(domain(), mechanism="laplace", **APPROXIMATE)
    return {
        "worst": plan.compare(alpha=0.1),
        "counts": plan.compare(alpha=0.25, counts={"total": 600, "region": 150}),
        "pure": dpt.plan(TREE, **PURE).compare(alpha=0.1),
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
        "domain": dpt.plan(domain(impossible=True), **PURE).release(np.arange(len(places())), rng=rng()),
    }


@case
def plan_of_sums_released():
    plan = dpt.plan(
        domain(), column="cost", bounds=(0, 500), keep_measurements=True, **CONCENTRATED, **PEOPLE
    )
    return plan.release(visits(), rng=rng())


# What is written down ------------------------------------------------------------------------------------


def _plans() -> dict[str, Any]:
    listed = domain(impossible=True)
    return {
        "pure": dpt.plan(listed, **PURE),
        "options": dpt.plan(
            listed, neighbors="replace", known={"total": 500}, confidence=0.9, keep_measurements=True,
            fit="joint", consistency="nonnegative", level_weights={"clinic": 3}, objective="cells",
            **APPROXIMATE, **PEOPLE,
        ),
        "nodes": dpt.plan(listed, split="nodes", **CONCENTRATED),
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
    again = {name: read_again(plan, domain(impossible=True)) for name, plan in _plans().items()}
    return {
        name: {"same": plan.to_dict() == _plans()[name].to_dict(), "table": plan.release(visits(), rng=rng())}
        for name, plan in again.items()
    }


def write_yesterday() -> None:
    """Write the files of `plans_of_yesterday` anew, if older ones need not be read any more."""
    listed = domain()
    plans = {
        "counts": dpt.plan(
            listed, neighbors="replace", known={"total": 500}, confidence=0.9, fit="joint",
            level_weights={"clinic": 3}, **APPROXIMATE, **PEOPLE,
        ),
        "multiplicative": dpt.plan(
            listed, mechanism=dpt.Multiplicative(alpha=0.25, clip=True), **APPROXIMATE
        ),
        "nodes": dpt.plan(listed, split="nodes", **CONCENTRATED),
        "sums": dpt.plan(listed, column="cost", bounds=(-10, 500), granularity=0.1, **PURE),
    }  # fmt: skip
    for name, plan in plans.items():
        (WRITTEN / f"{name}.json").write_text(f"{json.dumps(plan.to_dict())}\n", encoding="utf-8")


@case
def plans_of_yesterday():
    """Files that an earlier version wrote can still be read."""
    written = {
        file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(WRITTEN.glob("*.json"))
    }
    kinds = {"multiplicative": dpt.MultiplicativePlan}
    plans = {name: kinds.get(name, dpt.Plan).from_dict(each, domain()) for name, each in written.items()}
    return {
        name: {"headline": plan.headline, "table": plan.release(visits(), rng=rng())}
        for name, plan in plans.items()
    }


# Counts right up to a factor -----------------------------------------------------------------------------


@case
def plan_multiplicative():
    plan = dpt.plan(domain(), mechanism=dpt.Multiplicative(alpha=0.25), **APPROXIMATE, **PEOPLE)
    return _factor(plan) | {
        "headline": plan.headline, "repr": repr(plan), "html": plan._repr_html_(), "frame": plan.to_frame(),
        "level_names": list(plan.level_names), "written": plan.to_dict(),
    }  # fmt: skip


def _factor(plan: Any) -> dict[str, Any]:
    return {
        "loss": [plan.epsilon, plan.delta],
        "threshold": plan.threshold,
        "failure": plan.failure,
        "max_error": plan.max_error,
        "rmse_bound": plan.rmse_bound,
        "error_bound": plan.error_bound([0, 10, 5_000, 10**7]),
    }


@case
def plan_multiplicative_options():
    wishes = {
        "proof": dpt.Multiplicative(alpha=0.25, calibration="proof"),
        "clip": dpt.Multiplicative(alpha=0.5, clip=True),
        "clip proof": dpt.Multiplicative(alpha=0.5, clip=True, calibration="proof", failure=0.2),
        "threshold": dpt.Multiplicative(alpha=0.1, threshold=500_000, failure=0.01),
    }
    return {
        name: _factor(dpt.plan(TREE, mechanism=wish, neighbors="replace", **APPROXIMATE))
        for name, wish in wishes.items()
    }


@case
def plan_multiplicative_released():
    """Large counts, so that there is something to settle."""
    leaves = np.array([0, 3_000, 90_000, 10**6, 70_000, 5, 40_000, 10**7] * 3)
    wishes = {
        "exact": dpt.Multiplicative(alpha=0.25),
        "clip": dpt.Multiplicative(alpha=0.5, clip=True),
        "proof": dpt.Multiplicative(alpha=0.9, calibration="proof"),
    }
    plans = {name: dpt.plan(TREE, mechanism=wish, **APPROXIMATE) for name, wish in wishes.items()}
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
        "impossible": domain(impossible=True),
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
def trees():
    values = [1.0, 2.0, 3.0, 4.0, 5.0]
    return {
        "repr": [repr(TREE), repr(RAGGED)],
        "sizes": [TREE.level_sizes, RAGGED.level_sizes],
        "uniform": [TREE.is_uniform, RAGGED.is_uniform],
        "leaves": [TREE.n_leaves, TREE.n_nodes, RAGGED.n_leaves, RAGGED.n_nodes, TREE.depth],
        "roll_up": list(RAGGED.roll_up(values)),
        "leaves_below": [RAGGED.leaves_below(level) for level in range(3)],
        "sum_children": RAGGED.sum_children(1, np.array(values)),
        "spread": RAGGED.spread(1, np.array([7, 8, 9])),
    }

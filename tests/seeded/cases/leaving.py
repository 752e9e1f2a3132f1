"""What is going to be removed: ``split="nodes"``, and ``alpha=`` of additive noise.

When it goes, delete this module and what was recorded of it.
"""

from __future__ import annotations

from typing import Any

import pandas_dptree as dpt
from tests.seeded.cases.arrays import ONE
from tests.seeded.cases.plans import RAGGED, TREE, numbers, read_again, shown
from tests.seeded.cases.register import case
from tests.seeded.cases.tables import BOUNDS, counts, sums
from tests.seeded.data import (
    APPROXIMATE,
    CONCENTRATED,
    PURE,
    domain,
    rng,
    scattered,
    visits,
    wards,
)

NODES: dict[str, Any] = {"split": "nodes"}


@case
def nodes_of_counts():
    return {
        "rho": counts(**NODES, **CONCENTRATED),
        "approximate": counts(neighbors="replace", keep=["measurements"], **NODES, **APPROXIMATE),
        "sums": sums(["age", "cost"], bounds=BOUNDS, **NODES, **APPROXIMATE),
        "array": wards().dp.tree_counts(["city", "hospital"], rng=rng(), **NODES, **ONE, **CONCENTRATED),
    }


@case
def nodes_of_plans():
    objectives = ("levels", "cells", "worst")
    found = {
        objective: numbers(dpt.plan(RAGGED, objective=objective, **NODES, **CONCENTRATED))
        for objective in objectives
    }
    plan = dpt.plan(domain(zeros=True), consistency="linear", **NODES, **APPROXIMATE)
    deep = dpt.plan(dpt.Tree.from_branching([2] * 12), rho=0.5, **NODES)
    found["deep"] = {"shares": deep.budget_shares, "std_errors": deep.std_errors, "gap": deep.gap}
    again = read_again(plan, domain(zeros=True)).release(visits(), rng=rng())
    return found | {"shown": shown(plan) | numbers(plan), "plan": plan.to_dict(), "again": again}


@case
def nodes_of_a_wide_tree():
    """So many different shares that noise scales are rounded."""
    widths = 1 + scattered(12 * 12, 50, 51).reshape(12, 12)
    paths = [[i, j, k] for i in range(12) for j in range(1 + i) for k in range(widths[i, j])]
    plan = dpt.plan(dpt.Tree.from_paths(paths), objective="cells", **NODES, **CONCENTRATED)
    return [plan.budget_shares, plan.std_errors, plan.noise_scales, plan.node_std_errors[1]]


@case
def alpha_of_plans():
    plans = {
        "pure": dpt.plan(domain(), alpha=0.1, **PURE),
        "approximate": dpt.plan(domain(), alpha=0.5, consistency="none", **APPROXIMATE),
        "gaussian": dpt.plan(TREE, alpha=0.2, mechanism="gaussian", **CONCENTRATED),
        "known": dpt.plan(domain(), alpha=0.2, known={"total": 500}, **APPROXIMATE),
    }
    return {name: numbers(plan) for name, plan in plans.items()} | {
        "counts": counts(alpha=0.1, mechanism="laplace", **APPROXIMATE)
    }


@case
def alpha_compared():
    plan = dpt.plan(domain(), mechanism="laplace", **APPROXIMATE)
    return {
        "worst": plan.compare(alpha=0.1),
        "counts": plan.compare(alpha=0.25, counts={"total": 600, "region": 150}),
        "pure": dpt.plan(TREE, **PURE).compare(alpha=0.1),
    }

"""Counts, sums and means in one table, and their plans."""

from __future__ import annotations

import json
from typing import Any

import pandas_dptree as dpt
from tests.seeded.cases.register import case
from tests.seeded.data import APPROXIMATE, BY, CONCENTRATED, PEOPLE, PURE, domain, places, rng, visits

ASKED: dict[str, Any] = {
    "visits": "count",
    "age": dpt.mean("age", bounds=(0, 100)),
    "cost": dpt.sum("cost", bounds=(0, 500), granularity=0.5),
}


@case
def aggregated():
    options: dict[str, dict[str, Any]] = {
        "pure": {"epsilon": 4.0},
        "approximate": {"confidence": 0.9, "keep": ["measurements"], **APPROXIMATE, **PEOPLE},
        "replace": {"neighbors": "replace", "consistency": "linear", **CONCENTRATED},
    }
    return {
        name: visits().dp.tree_agg(BY, ASKED, domain=places(), rng=rng(), **given)
        for name, given in options.items()
    }


@case
def aggregated_beside_known_counts():
    options = {"known": {"total": 600}, "domain": domain(zeros=True), **PURE}
    counts = visits().dp.tree_agg(BY, {"n": "count"}, rng=rng(), **options)
    two = {"young": dpt.sum("age", bounds=(0, 18)), "old": dpt.sum("age", bounds=(65, 100))}
    return {"counts": counts, "two": visits().dp.tree_agg(BY, two, domain=places(), rng=rng(), **PURE)}


@case
def plans_of_several():
    bounds = {"age": (0, 100), "cost": (0, 500)}
    plans = {
        "sums": dpt.plan_sums(domain(), columns=["age", "cost"], bounds=bounds, **PURE, **PEOPLE),
        "means": dpt.plan_means(domain(), columns="age", bounds=(0, 100), **APPROXIMATE),
        "agg": dpt.plan_agg(domain(), ASKED, **CONCENTRATED),
        "accessor": visits().dp.plan_agg(BY, ASKED, domain=places(), epsilon=4.0),
    }
    return {
        name: {
            "frame": plan.to_frame(),
            "compared": plan.compare(),
            "loss": plan.loss.to_dict(),
            "plan": plan.to_dict(),
        }
        for name, plan in plans.items()
    }


@case
def plans_of_several_read_again():
    plan = dpt.plan_agg(domain(), ASKED, confidence=0.9, **APPROXIMATE, **PEOPLE)
    again = dpt.Plan.from_dict(json.loads(json.dumps(plan.to_dict())), domain(), digest=plan.digest)
    return {
        "plan": plan.release(visits(), rng=rng()),
        "again": visits().dp.release(again, rng=rng(1)),
    }


NODES: dict[str, Any] = {"region": 1, "district": 2, "clinic": 3}


@case
def distinct_units():
    options: dict[str, dict[str, Any]] = {
        "pure": {"max_nodes": 3, **PURE},
        "concentrated": {"max_nodes": NODES, "confidence": 0.9, "keep": ["measurements"], **CONCENTRATED},
        "replace": {"max_nodes": 2, "neighbors": "replace", "consistency": "linear", **APPROXIMATE},
    }
    return {
        name: visits().dp.tree_units(BY, domain=places(), rng=rng(), privacy_unit="person", **given)
        for name, given in options.items()
    }


@case
def distinct_units_beside_rows():
    asked = {"visits": "count", "people": "units", "each": "count_per_unit", "age": ASKED["age"]}
    options: dict[str, Any] = {"privacy_unit": "person", "max_contributions": 4, "domain": places()}
    return {
        "pure": visits().dp.tree_agg(BY, asked, max_nodes=3, rng=rng(), **PURE, **options),
        "concentrated": visits().dp.tree_agg(
            BY, asked, max_nodes=NODES, rng=rng(), **CONCENTRATED, **options
        ),
    }

"""The distribution of a column: cumulative counts, histograms, ranges, quantiles."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd

import pandas_dptree as dpt
from tests.seeded.cases.register import case, default
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

EDGES = [0, 1, 5, 18, 40, 65, 100]


def tables(found: Any) -> dict[str, Any]:
    """All tables of a distribution whose bins have the edges."""
    return {
        "repr": repr(found),
        "cdf": found.cdf(confidence=0.95),
        "histogram": found.histogram(),
        "ranges": found.range_counts([(0, 18), (5, 65), (0, 100)]),
        "quantiles": found.quantiles([0, 0.25, 0.5, 0.9, 1], confidence=0.9),
        "estimates": found.estimates,
        "std_errors": found.std_errors,
    }


def measured(seed: int = 0, **options: Any) -> Any:
    return visits().dp.release_distribution("age", bins=EDGES, rng=rng(seed), **options)


@case
def cdf_by_accessor():
    return visits().dp.cdf("age", bounds=(0, 100), bins=10, confidence=0.9, rng=rng(), **PURE)


@case
def histogram_by_accessor():
    return visits().dp.histogram("cost", bounds=(0, 500), bins=8, rng=rng(), **APPROXIMATE)


@case
def range_counts_by_accessor():
    ranges = [(0, 100), (50, 500), (0, 500)]
    return visits().dp.range_counts("cost", ranges, bounds=(0, 500), bins=20, rng=rng(), **CONCENTRATED)


@case
def quantiles_by_accessor():
    return {
        "default": visits().dp.quantiles("cost", [0.25, 0.5, 0.75], bounds=(0, 500), rng=rng(), **PURE),
        "one": visits().dp.quantiles("age", 0.5, bounds=(0, 100), bins=50, confidence=0.5, rng=rng(), **PURE),
    }


@case
def drawn_quantiles():
    groups = {"by": ["region", "district"], "domain": "observed"}
    trees = {"mechanism": "exponential", "bins": 16, "strategy": [4, 4]}
    plan = visits().dp.plan_quantiles(
        "age", [0.25, 0.5], bounds=(0, 100), confidence=0.9, **groups, **trees, **PEOPLE, **APPROXIMATE
    )
    day = datetime.date(2024, 1, 1), datetime.date(2025, 3, 1)
    return {
        "plan": repr(plan),
        "json": plan.to_dict(),
        "groups": visits().dp.release(plan, rng=rng()),
        "concentrated": visits().dp.quantiles("cost", 0.5, bounds=(0.0, 500.0), rng=rng(), **CONCENTRATED),
        "replaced": visits().dp.quantiles(
            "cost",
            [0.1, 0.5, 0.6, 0.9],
            bounds=(0, 500),
            mechanism="exponential",
            neighbors="replace",
            rng=rng(),
            **PURE,
        ),
        "days": visits().dp.quantiles("date", 0.75, bounds=day, rng=rng(), **PURE),
    }


@default
def distribution_tables():
    return tables(measured(**PURE))


@case
def distribution_approximate_units():
    return tables(measured(neighbors="replace", **APPROXIMATE, **PEOPLE))


@case
def distribution_mechanisms():
    options = {
        "laplace": {"mechanism": "laplace", **APPROXIMATE},
        "gaussian": {"mechanism": "gaussian", "strategy": "tree", **APPROXIMATE},
        "factorization": {"mechanism": "gaussian", "strategy": "factorization", **CONCENTRATED},
        "listed": {"strategy": [2, 3], **PURE},
        "padded": {"strategy": [2, 2, 2], **CONCENTRATED},
        "flat": {"strategy": [6], **PURE},
    }
    return {name: tables(measured(**given)) for name, given in options.items()}


@case
def distribution_known_total():
    return {
        "pure": tables(measured(known={"total": 600}, **PURE)),
        "factorization": tables(measured(known={"total": 600}, strategy="factorization", rho=0.5)),
    }


@case
def distribution_by_groups():
    groups = {"by": BY, "domain": places()}
    found = measured(**groups, **PURE)
    return {
        "cdf": found.cdf(),
        "quantiles": found.quantiles(0.5),
        "ranges": found.range_counts([(0, 18)]),
        "repr": repr(found),
        "level": found.histogram().dp.level("region"),
    }


@case
def distribution_by_known_groups():
    groups = {"by": ["region"], "domain": places()[["region"]].drop_duplicates()}
    counts = pd.Series({"North": 300, "South": 150, "West": 0}).rename_axis("region")
    found = measured(known={"region": counts}, **groups, **CONCENTRATED)
    return {"cdf": found.cdf(confidence=0.9), "quantiles": found.quantiles([0.1, 0.5])}


@case
def distribution_observed_groups_of_units():
    groups = {"by": ["region"], "domain": "observed"}
    return visits().dp.quantiles("age", [0.5, 0.9], bins=EDGES, rng=rng(), **groups, **PEOPLE, **APPROXIMATE)


@case
def distribution_of_times():
    start, end = pd.Timestamp("2024-01-01"), pd.Timestamp("2025-03-01")
    weeks = pd.date_range("2024-01-01", "2024-12-30", freq="91D")
    return {
        "bounds": visits().dp.cdf("date", bounds=(start, end), bins=6, rng=rng(), **PURE),
        "edges": visits().dp.histogram("date", bins=weeks, rng=rng(), **PURE),
        "quantiles": visits().dp.quantiles("date", 0.5, bounds=(start, end), bins=100, rng=rng(), **PURE),
    }


@case
def distribution_of_durations():
    ends = (pd.Timedelta(0), pd.Timedelta("2h"))
    return {
        "cdf": visits().dp.cdf("wait", bounds=ends, bins=4, confidence=0.9, rng=rng(), **PURE),
        "quantiles": visits().dp.quantiles("wait", [0.5], bounds=ends, bins=60, rng=rng(), **PURE),
    }


@case
def distribution_of_series():
    ages = visits()["age"]
    bare = pd.Series(visits()["cost"].to_numpy())
    return {
        "cdf": ages.dp.cdf(bins=EDGES, rng=rng(), **PURE),
        "histogram": ages.dp.histogram(bins=EDGES, rng=rng(), **PURE),
        "ranges": ages.dp.range_counts([(0, 18)], bins=EDGES, rng=rng(), **PURE),
        "quantiles": ages.dp.quantiles(0.5, bins=EDGES, rng=rng(), **PURE),
        "unnamed": bare.dp.release_distribution(bounds=(0, 500), bins=4, rng=rng(), **PURE).cdf(),
    }


@case
def distribution_of_nobody():
    found = dpt.release_distribution(visits().iloc[:0], "age", bins=EDGES, rng=rng(), **PURE)
    return tables(found)


@case
def distribution_plans():
    plans = {
        "pure": dpt.plan_distribution("age", bounds=(0, 100), bins=100, **PURE),
        "approximate": dpt.plan_distribution("age", bounds=(0, 100), bins=64, **APPROXIMATE, **PEOPLE),
        "factorization": dpt.plan_distribution("cost", bounds=(0, 500), bins=300, rho=0.5),
        "groups": dpt.plan_distribution("age", bins=EDGES, domain=domain(), neighbors="replace", **PURE),
        "known": dpt.plan_distribution("age", bins=EDGES, known={"total": 600}, **CONCENTRATED),
    }
    return {
        name: {
            "frame": plan.to_frame(),
            "errors": plan.errors,
            "level_names": list(plan.level_names),
        }
        for name, plan in plans.items()
    }


@case
def distribution_plans_of_many_bins():
    options = {"prime": 101, "factors": 120, "few": 3, "one": 1}
    return {
        name: [
            dpt.plan_distribution(
                "x", bounds=(0, 1), bins=n, mechanism=noise, strategy="tree", **APPROXIMATE
            ).errors
            for noise in ("laplace", "gaussian")
        ]
        for name, n in options.items()
    } | {
        "large loss": dpt.plan_distribution("x", bounds=(0, 1), bins=50, rho=100.0).errors,
        "small loss": dpt.plan_distribution("x", bounds=(0, 1), bins=50, rho=1e-9).errors,
    }


@case
def distribution_plan_released():
    plan = dpt.plan_distribution("age", bins=EDGES, domain=domain(), **PURE, **PEOPLE)
    return {
        "plan": plan.release(visits(), rng=rng()).cdf(),
        "accessor": visits().dp.release(plan, rng=rng(1)).quantiles(0.5),
    }


@case
def distribution_plots():
    groups = {"by": ["region"], "domain": places()[["region"]].drop_duplicates()}
    found = measured(**groups, **PURE)
    axes = [found.plot(), found.plot("South", confidence=None), found.plot(("North",), confidence=0.5)]
    return [
        {
            "steps": np.asarray(each.lines[0].get_ydata()),
            "bands": len(each.collections),
            "labels": [each.get_xlabel(), each.get_ylabel(), each.lines[0].get_label()],
        }
        for each in axes
    ]

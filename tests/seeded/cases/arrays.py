"""The verbs on arrays and datasets, whose answers are trees of datasets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import pandas_dptree as dpt
from tests.seeded.cases.plans import numbers, shown
from tests.seeded.cases.register import case, default
from tests.seeded.data import (
    APPROXIMATE,
    CONCENTRATED,
    ONE,
    PURE,
    ages,
    meters,
    rng,
    taxis,
    wards,
)

KEYS = ["city", "hospital", "ward"]


@case
def array_counts():
    return wards().isel(month=0).dp.tree_counts(KEYS, rng=rng(), **PURE, **ONE)


@case
def array_counts_of_several_trees():
    options = {"confidence": 0.9, "keep": ["measurements"], **ONE}
    return wards().dp.tree_counts(["city", "hospital"], rng=rng(), **options, **PURE)


@case
def array_counts_of_all_dimensions():
    return wards().dp.tree_counts(["season", "month", "hospital"], rng=rng(), **APPROXIMATE, **ONE)


@case
def array_counts_options():
    options: dict[str, dict[str, Any]] = {
        "linear": {"consistency": "linear", "neighbors": "replace"},
        "joint": {"fit": "joint", "mechanism": "gaussian", **APPROXIMATE},
        "adaptive": {"fit": "adaptive", "objective": "cells"},
        "shares": {"split": {"city": 0.25, "hospital": 0.75}},
        "weights": {"level_weights": {"city": 3}, "mechanism": "laplace"},
        "two": {"max_contributions": 2},
    }
    return {
        name: wards().dp.tree_counts(["city", "hospital"], rng=rng(), **{**PURE, **ONE, **given})
        for name, given in options.items()
    }


@case
def array_known():
    array = wards().isel(month=2, drop=True)
    options = {"known": {"total": 190}, "confidence": 0.9, **ONE}
    return array.dp.tree_counts(["city", "hospital"], rng=rng(), **options, **PURE)


@case
def array_of_dask():
    return wards().chunk({"ward": 3}).dp.tree_counts(["city", "hospital"], rng=rng(), **PURE, **ONE)


@case
def array_without_indices():
    return wards().isel(month=slice(0)).dp.tree_counts(["city"], rng=rng(), **PURE, **ONE)


@case
def array_sums():
    kwh = meters()["kwh"]
    return {
        "named": kwh.dp.tree_sums(["street"], bounds=(0, 4), confidence=0.9, rng=rng(), **PURE, **ONE),
        "unnamed": kwh.rename(None).dp.tree_sums(
            ["street", "hour"],
            bounds=(-1, 4),
            granularity=0.5,
            max_contributions=4,
            rng=rng(),
            **CONCENTRATED,
        ),
    }


@case
def array_of_squares():
    return {
        "cells": taxis().dp.tree_counts(dpt.quadtree("y", "x", depth=3), rng=rng(), **PURE, **ONE),
        "uneven": taxis(6).dp.tree_counts(dpt.quadtree("y", "x", depth=2), rng=rng(), **PURE, **ONE),
        "bounds": taxis().dp.tree_counts(
            dpt.quadtree("y", "x", depth=2, bounds=((1, 7), (0, 16)), name="map"),
            rng=rng(),
            **CONCENTRATED,
            **ONE,
        ),
    }


@case
def array_of_derived_levels():
    days = pd.date_range("2024-01-30", periods=5, freq="D")
    array = xr.DataArray(
        np.arange(15).reshape(5, 3) * 7, dims=["date", "age"], coords={"date": days, "age": [5, 30, 70]}
    )
    months = dpt.calendar("date", ["month", "day"], start="2024-01-31", end="2024-02-02")
    groups = dpt.cut("age", [0, 18, 65, 100])
    wards_of = dpt.mapping(pd.DataFrame({"wing": list("xxy"), "ward": [14, 3, 8]}), by=["wing", "ward"])
    return {
        "calendar": array.dp.tree_counts(months, rng=rng(), **PURE, **ONE),
        "crossed": array.dp.tree_counts([groups, months], rng=rng(), **APPROXIMATE, **ONE),
        "mapping": wards().dp.tree_counts(["season", wards_of], rng=rng(), **PURE, **ONE),
    }


@case
def array_plans():
    plans = {
        "counts": wards().dp.plan(["city", "hospital"], **APPROXIMATE, **ONE),
        "sums": meters()["kwh"].dp.plan(["street"], bounds=(0, 4), granularity=0.25, **CONCENTRATED, **ONE),
        "squares": taxis().dp.plan(dpt.quadtree("y", "x", depth=3), target={"quad_2": 4.0}, **ONE),
    }
    return {name: shown(plan) | numbers(plan) | {"written": plan.to_dict()} for name, plan in plans.items()}


@case
def array_plans_released():
    plan = wards().dp.plan(["city", "hospital"], **PURE, **ONE)
    again = dpt.Plan.from_dict(plan.to_dict(), plan.domain)
    listed = dpt.Domain.from_frame(pd.DataFrame({"hospital": ["B", "A", "Z"]}), by=["hospital"])
    public = dpt.plan(listed, confidence=0.9, **PURE)
    return {
        "plan": wards().dp.release(plan, rng=rng()),
        "again": wards().dp.release(again, rng=rng()),
        "public keys": wards().dp.release(public, rng=rng()),
        "arrays": dpt.arrays.release(plan, wards(), rng=rng(1)),
    }


@case
def array_functions():
    return {
        "counts": dpt.arrays.tree_counts(wards(), ["hospital"], rng=rng(), **PURE, **ONE),
        "sums": dpt.arrays.tree_sums(meters()["kwh"], ["street"], bounds=(0, 4), rng=rng(), **PURE, **ONE),
        "plan": dpt.arrays.plan(wards(), ["hospital"], **PURE, **ONE).to_frame(),
        "cdf": dpt.arrays.cdf(ages(), "age", rng=rng(), **PURE, **ONE),
        "quantiles": dpt.arrays.quantiles(ages(), "age", 0.5, rng=rng(), **PURE, **ONE),
    }


# Distributions -------------------------------------------------------------------------------------------


@default
def array_cdf():
    edges = [0, 18, 40, 65, 120]
    flat = xr.DataArray(np.array([30, 200, 0, 7]), dims=["age"])
    return {
        "groups": ages().dp.cdf("age", confidence=0.9, rng=rng(), **PURE, **ONE),
        "edges": flat.dp.cdf("age", edges=edges, rng=rng(), **APPROXIMATE, **ONE),
        "gaussian": ages().dp.cdf(
            "age", mechanism="gaussian", neighbors="replace", rng=rng(), rho=0.5, **ONE
        ),
        "tree": ages().dp.cdf("age", strategy=[2, 4], max_contributions=2, rng=rng(), **PURE),
        "nobody": ages().isel(state=slice(0)).dp.cdf("age", rng=rng(), **PURE, **ONE),
    }


@case
def array_quantiles():
    return {
        "groups": ages().dp.quantiles("age", [0.1, 0.5, 0.9], rng=rng(), **PURE, **ONE),
        "one": ages().dp.quantiles(
            "age", 0.5, confidence=0.5, strategy="factorization", rng=rng(), rho=0.5, **ONE
        ),
        "dask": ages().chunk({"state": 1}).dp.quantiles("age", 0.5, rng=rng(), **PURE, **ONE),
    }


# Datasets ------------------------------------------------------------------------------------------------

MOST = {"people": 1, "calls": 4}


@case
def dataset_counts():
    return {
        "counts": meters().dp.tree_counts(
            ["street"], variables=["people", "calls"], max_contributions=MOST, rng=rng(), **PURE
        ),
        "approximate": meters().dp.tree_counts(
            ["street"], variables=["calls", "people"], confidence=0.9, keep=["measurements"], rng=rng(),
            **APPROXIMATE, **ONE,
        ),
    }  # fmt: skip


@default
def dataset_sums():
    return {
        "mixed": meters().dp.tree_sums(
            ["street"],
            bounds={"kwh": (0, 5), "calls": None},
            granularity={"kwh": 0.5},
            rng=rng(),
            **PURE,
            **ONE,
        ),
        "signed": meters().dp.tree_sums(
            ["street"],
            bounds=(-1, 8),
            variables=["people"],
            neighbors="replace",
            rng=rng(),
            **CONCENTRATED,
            **ONE,
        ),
    }


@case
def dataset_plan():
    plan = meters().dp.plan(["street"], variables=list(MOST), max_contributions=MOST, **APPROXIMATE)
    return {
        "frame": plan.to_frame(),
        "table": meters().dp.release(plan, rng=rng()),
    }

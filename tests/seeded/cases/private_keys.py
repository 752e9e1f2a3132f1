"""Keys that nobody can list."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

import pandas_dptree as dpt
from tests.seeded.cases.register import case, default
from tests.seeded.data import APPROXIMATE, BY, CONCENTRATED, PEOPLE, places, rng, scattered, visits

REGIONS = places()[BY[:1]].drop_duplicates()
FIRST: dict[str, Any] = {"domain": REGIONS, "private_keys": BY[1:]}
LOOSE: dict[str, Any] = {"epsilon": 4.0, "delta": 1e-3}
MECHANISMS = ("truncated_laplace", "gaussian")


@default
def private_keys():
    return {
        mechanism: visits(6_000).dp.tree_counts(
            BY, mechanism=mechanism, rng=rng(), **FIRST, **APPROXIMATE, **PEOPLE
        )
        for mechanism in MECHANISMS
    }


@case
def private_keys_alone():
    """No key is public."""
    options: dict[str, Any] = {"private_keys": BY, "privacy_unit": dpt.ROWS, **LOOSE}
    return {
        mechanism: visits(2_000).dp.tree_counts(BY, mechanism=mechanism, rng=rng(1), **options)
        for mechanism in MECHANISMS
    }


@case
def private_keys_options():
    options: dict[str, dict[str, Any]] = {
        "replace": {"neighbors": "replace"},
        "uniform": {"split": "uniform"},
        "doubling": {"split": "doubling"},
        "three": {"max_contributions": 3},
        "measurements": {"keep": ["measurements"]},
        "confidence": {"mechanism": "gaussian", "confidence": 0.9},
        "rho": {"epsilon": None, "rho": 1.0},
    }
    return {
        name: visits(2_000).dp.tree_counts(BY, rng=rng(2), **{**FIRST, **LOOSE, **PEOPLE, **given})
        for name, given in options.items()
    }


@case
def private_keys_of_all_types():
    n = 3_000
    place = scattered(n, 12, 71) * scattered(n, 12, 72) // 12
    days = np.datetime64("2024-02-26", "D") + place
    columns: dict[str, Any] = {
        "int": place - 3,
        "big": place + 2**53,
        "float": place / 2,
        "text": pd.Series([f"é{each} " for each in place]),
        "category": pd.Series([f"k{each}" for each in place], dtype="category"),
        "bool": place > 5,
        "day": days.astype("datetime64[ns]"),
        "zoned": pd.Series(days.astype("datetime64[ns]")).dt.tz_localize("Europe/Berlin"),
        "null": pd.Series(place, dtype="Int64").mask(place == 2),
    }
    frame = pd.DataFrame({**columns, "person": scattered(n, n, 73)})
    options: dict[str, Any] = {"privacy_unit": "person", "max_contributions": 1, **LOOSE}
    found = {name: frame.dp.tree_counts(name, private_keys=name, rng=rng(3), **options) for name in columns}
    several = ["bool", "category", "int"]
    found["several"] = dpt.tree_counts(
        pl.from_pandas(frame), several, private_keys=several, rng=rng(4), **options
    )
    return found


@case
def private_keys_of_nobody():
    return {
        mechanism: visits()
        .iloc[:0]
        .dp.tree_counts(BY, mechanism=mechanism, rng=rng(), **FIRST, **APPROXIMATE, **PEOPLE)
        for mechanism in MECHANISMS
    }


@case
def private_keys_below_derived_levels():
    groups = dpt.cut("age", [0, 18, 65, 100])
    options: dict[str, Any] = {"private_keys": ["product"], **LOOSE, **PEOPLE}
    return visits(2_000).dp.tree_counts([groups, "product"], rng=rng(5), **options)


@case
def plans_of_private_keys():
    regions = dpt.Domain.from_frame(REGIONS, by=BY[:1])
    plans = {
        mechanism: dpt.plan(regions, private_keys=BY[1:], mechanism=mechanism, **APPROXIMATE, **PEOPLE)
        for mechanism in ("auto", *MECHANISMS)
    }
    plans["rho"] = dpt.plan(regions, private_keys=BY[1:], delta=1e-6, **CONCENTRATED, **PEOPLE)
    plans["accessor"] = visits().dp.plan(BY, **FIRST, **LOOSE, **PEOPLE)
    return {
        name: {
            "frame": plan.to_frame(),
            "compared": plan.compare(),
            "detected": dpt.detection_probability(plan, [1, 20, 50, 80, 200]),
            "plan": plan.to_dict(),
        }
        for name, plan in plans.items()
    }


@case
def plans_of_private_keys_read_again():
    regions = dpt.Domain.from_frame(REGIONS, by=BY[:1])
    found = {}
    for mechanism in MECHANISMS:
        plan = dpt.plan(regions, private_keys=BY[1:], mechanism=mechanism, **LOOSE, **PEOPLE)
        again = dpt.Plan.from_dict(json.loads(json.dumps(plan.to_dict())), regions, digest=plan.digest)
        found[mechanism] = visits(2_000).dp.release(again, rng=rng(6))
    return found


@case
def keys_released_before():
    """The keys of one release are the public keys of the next."""
    first = visits(6_000).dp.tree_counts(BY, rng=rng(), **FIRST, **APPROXIMATE, **PEOPLE)
    released = first.dp.domain()
    return {
        "keys": [released.keys(level + 1) for level in range(len(released.by))],
        "sums": visits(6_000).dp.tree_sums(
            BY, columns="age", bounds=(0, 100), domain=released, rng=rng(1), **CONCENTRATED, **PEOPLE
        ),
        "medians": visits(6_000).dp.quantiles(
            "age", 0.5, bounds=(0, 100), bins=20, by=BY, domain=released, rng=rng(2), **CONCENTRATED, **PEOPLE
        ),
    }

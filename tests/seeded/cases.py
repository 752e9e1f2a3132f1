"""The cases: small functions that call the public API, and return what `described` can describe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import xarray as xr

import pandas_dptree as dpt
from tests.seeded.data import (
    APPROXIMATE,
    BY,
    CONCENTRATED,
    ONE,
    PEOPLE,
    PURE,
    ages,
    logins,
    meters,
    places,
    rng,
    visits,
)

CASES: dict[str, Callable[[], Any]] = {}
LISTED = {"domain": places()}


def case(function: Callable[[], Any]) -> Callable[[], Any]:
    """List a function among the cases."""
    CASES[function.__name__] = function
    return function


@case
def counts_gaussian_approximate():
    return visits().dp.tree_counts(BY, mechanism="gaussian", rng=rng(), **LISTED, **APPROXIMATE)


@case
def counts_units_replace():
    options = {"privacy_unit": "person", "neighbors": "replace", **LISTED, **CONCENTRATED}
    return {str(k): dpt.tree_counts(visits(), BY, max_contributions=k, rng=rng(), **options) for k in (1, 3)}


@case
def counts_multiplicative():
    wish = dpt.Multiplicative(alpha=0.25)
    return dpt.tree_counts(visits(), BY, mechanism=wish, rng=rng(), **LISTED, **APPROXIMATE)


@case
def fits_of_sparse_tables():
    listed = pd.DataFrame({"a": np.repeat(np.arange(12), 12), "b": np.tile(np.arange(12), 12)})
    frame = listed.iloc[[0] * 90 + [5] * 40 + [17] * 25 + [40, 41, 41, 100]]
    options = {"domain": listed, "consistency": "nonnegative", **PURE}
    fits = ["totals", "adaptive", "joint"]
    return {fit: dpt.tree_counts(frame, ["a", "b"], fit=fit, rng=rng(), **options)["count"] for fit in fits}


@case
def sums_of_several():
    options = {"bounds": {"cost": (0, 500), "age": (0, 100)}, "granularity": {"cost": 0.5, "age": None}}
    return dpt.tree_sums(visits(), ["age", "cost"], BY, rng=rng(), **options, **LISTED, **PURE)


@case
def means_approximate_units():
    options = {"bounds": (0, 100), "neighbors": "replace", "confidence": 0.5, **APPROXIMATE, **PEOPLE}
    return dpt.tree_means(visits(), "age", BY, rng=rng(), **options, **LISTED)


@case
def calendar_days_in_a_zone():
    frame = visits()[["date"]]
    frame["date"] = (frame["date"] + pd.Timedelta("90min")).dt.tz_localize("UTC")
    zone = {"timezone": "Europe/Berlin"}
    days = dpt.calendar("date", ["month", "day"], start="2024-03-25", end="2024-04-05", **zone)
    hours = dpt.calendar("date", ["day", "hour"], start="2024-03-31", end="2024-03-31", **zone)
    return {
        name: frame.dp.tree_counts(by, rng=rng(), **PURE)
        for name, by in {"days": days, "hours": hours}.items()
    }


@case
def quadtree_squares():
    squares = dpt.quadtree("y", "x", depth=2, bounds=((0, 10), (0, 10)))
    arrow = pa.Table.from_pandas(visits(), preserve_index=False)
    return {
        "pandas": dpt.tree_counts(visits(), squares, rng=rng(), **PURE),
        "pyarrow": dpt.tree_counts(arrow, squares, rng=rng(), **CONCENTRATED),
    }


@case
def prefixes_of_units():
    addresses = dpt.prefixes("ip", bits=[8, 16, 24, 32])
    codes = dpt.prefixes("code", chars=[1, 2, 4], alphabet="0123456789ABC")
    three = {"privacy_unit": "person", "max_contributions": 3, "neighbors": "replace"}
    asked = {
        "units": (addresses, PEOPLE),
        "replace": (addresses, {"neighbors": "replace"}),
        "three": (codes, three),
    }
    noise = {"mechanism": "truncated_laplace", "split": "uniform"}
    return {
        name: dpt.tree_counts(logins(), tree, rng=rng(), **APPROXIMATE, **noise, **options)
        for name, (tree, options) in asked.items()
    }


@case
def gaussian_thresholds():
    addresses = dpt.prefixes("ip", bits=[8, 16, 24, 32])
    return {
        "approximate": dpt.tree_counts(logins(), addresses, mechanism="gaussian", rng=rng(), **APPROXIMATE),
        "concentrated": dpt.tree_counts(logins(), addresses, delta=1e-6, rng=rng(), **CONCENTRATED, **PEOPLE),
    }


@case
def private_keys():
    options = {"privacy_unit": "person", "max_contributions": 2, **APPROXIMATE}
    first = {"domain": places()[BY[:1]].drop_duplicates(), "private_keys": BY[1:]}
    return {
        mechanism: visits(6_000).dp.tree_counts(BY, mechanism=mechanism, rng=rng(), **first, **options)
        for mechanism in ("truncated_laplace", "gaussian")
    }


@case
def distribution_tables():
    edges = [0, 1, 5, 18, 40, 65, 100]
    found = visits().dp.release_distribution("age", bins=edges, rng=rng(), **PURE)
    return {
        "repr": repr(found),
        "cdf": found.cdf(confidence=0.95),
        "histogram": found.histogram(),
        "ranges": found.range_counts([(0, 18), (5, 65), (0, 100)]),
        "quantiles": found.quantiles([0, 0.25, 0.5, 0.9, 1], confidence=0.9),
        "estimates": found.estimates,
        "std_errors": found.std_errors,
    }


@case
def array_cdf():
    edges = [0, 18, 40, 65, 120]
    flat = xr.DataArray(np.array([30, 200, 0, 7]), dims=["age"])
    return {
        "groups": ages().dp.cdf("age", confidence=0.9, rng=rng(), **PURE, **ONE),
        "edges": flat.dp.cdf("age", edges=edges, rng=rng(), **APPROXIMATE, **ONE),
        "gaussian": ages().dp.cdf(
            "age", mechanism="gaussian", neighbors="replace", rng=rng(), rho=0.5, **ONE
        ),
        "tree": ages().dp.cdf("age", tree=[2, 4], max_contributions=2, rng=rng(), **PURE),
        "nobody": ages().isel(state=slice(0)).dp.cdf("age", rng=rng(), **PURE, **ONE),
    }


@case
def dataset_sums():
    mixed = {"bounds": {"kwh": (0, 5), "calls": None}, "granularity": {"kwh": 0.5}, **PURE}
    signed = {"bounds": (-1, 8), "variables": ["people"], "neighbors": "replace", **CONCENTRATED}
    return {
        name: meters().dp.tree_sums(["street"], rng=rng(), **options, **ONE)
        for name, options in {"mixed": mixed, "signed": signed}.items()
    }

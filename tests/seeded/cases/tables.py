"""Counts, sums and means of records, by public keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl

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

BOUNDS = {"cost": (0, 500), "age": (0, 100)}
CONSISTENCIES = ["none", "linear", "nonnegative", "integer"]
FITS = ["totals", "adaptive", "joint"]


def counts(seed: int = 0, **options: Any) -> pd.DataFrame:
    return dpt.tree_counts(visits(), BY, **{"domain": places(), "rng": rng(seed), **options})


def sums(columns: Any = "cost", seed: int = 0, **options: Any) -> pd.DataFrame:
    given = {"bounds": (0, 500), "domain": places(), "rng": rng(seed), **options}
    return dpt.tree_sums(visits(), BY, columns=columns, **given)


def means(columns: Any = "cost", seed: int = 0, **options: Any) -> pd.DataFrame:
    given = {"bounds": (0, 500), "domain": places(), "rng": rng(seed), **options}
    return dpt.tree_means(visits(), BY, columns=columns, **given)


# Where the records come from -----------------------------------------------------------------------------


@case
def counts_by_accessor():
    return visits().dp.tree_counts(BY, domain=places(), rng=rng(), **PURE)


@case
def counts_pandas_types():
    kinds = {"region": "category", "district": "string", "clinic": object}
    return dpt.tree_counts(visits().astype(kinds), BY, domain=places(), rng=rng(), **PURE)


@case
def counts_of_nobody():
    return dpt.tree_counts(visits().iloc[:0], BY, domain=places(), rng=rng(), **PURE)


@case
def counts_odd_index():
    """An index that repeats, and two columns of one name."""
    frame = visits().set_index("person")
    frame = pd.concat([frame, frame[["age"]]], axis=1)
    return dpt.tree_counts(frame, BY, domain=places(), rng=rng(), **PURE)


# Where the keys come from --------------------------------------------------------------------------------


@case
def counts_observed():
    return visits().dp.tree_counts(BY, domain="observed", rng=rng(), **PURE)


@case
def counts_categories():
    frame = visits().astype(
        {"region": "category", "product": pd.CategoricalDtype(["saw", "fig", "kiwi"], True)}
    )
    return frame.dp.tree_counts(["region", "product"], domain="categories", rng=rng(), **PURE)


@case
def counts_polars_enum():
    kinds = pl.Enum(["saw", "fig", "kiwi", "nail", "glove"])
    frame = pl.from_pandas(visits()).with_columns(pl.col("product").cast(kinds))
    return dpt.tree_counts(frame, ["product"], domain="categories", rng=rng(), **PURE)


@case
def counts_multi_index():
    index = pd.MultiIndex.from_frame(places())
    return visits().dp.tree_counts(BY, domain=index, rng=rng(3), **CONCENTRATED)


@case
def counts_domain():
    return visits().dp.tree_counts(BY, domain=domain(), rng=rng(4), **APPROXIMATE)


@case
def counts_structural_zeros():
    return visits().dp.tree_counts(BY, domain=domain(zeros=True), rng=rng(5), confidence=0.9, **PURE)


@case
def counts_number_keys():
    frame = pd.DataFrame(
        {"big": [2**60, 2**60 + 1, -5, 2**60, None, 7], "half": [0.5, 1, 2.5, 0.5, 1.0, None]}
    )
    frame = frame.astype({"big": "Int64"})
    listed = pd.DataFrame({"big": [2**60, 2**60 + 1, -5, 7], "half": [0.5, 1.0, 2.5, None]})
    return frame.dp.tree_counts(["big", "half"], domain=listed, rng=rng(), **PURE)


@case
def counts_odd_keys():
    texts = ["total", "", "Žižkov 東京", "<NA>", "a\tb"]
    days = pd.to_datetime(["2024-02-29", "1999-12-31", "2024-02-29", "1600-01-01", "2024-03-01"])
    listed = pd.DataFrame({"flag": [True, True, False, False, False], "name": texts, "day": days})
    return listed.iloc[[0, 0, 1, 2, 3, 3, 4]].dp.tree_counts(
        ["flag", "name", "day"], domain=listed, rng=rng(), split="uniform", **PURE
    )


@case
def counts_column_labels():
    frame = visits().rename(columns={"region": 7, "district": ("a", "b")})
    listed = places().iloc[:, :2].drop_duplicates().set_axis([7, ("a", "b")], axis=1)
    return dpt.tree_counts(frame, [7, ("a", "b")], domain=listed, rng=rng(), **PURE)


@case
def counts_categorical_domain():
    order = pd.CategoricalDtype(["West", "South", "North", "By telephone", "Unused"], ordered=True)
    listed = places().astype({"region": order})
    return visits().dp.tree_counts(BY, domain=listed, rng=rng(), **PURE)


@case
def levels_selected():
    table = counts(confidence=0.9, **PURE)
    return {name: table.dp.level(name) for name in ("total", *BY)}


# Loss, neighbours, units, mechanisms ---------------------------------------------------------------------


@case
def counts_laplace_approximate():
    return counts(mechanism="laplace", **APPROXIMATE)


@default
def counts_gaussian_approximate():
    return counts(mechanism="gaussian", **APPROXIMATE)


@case
def counts_laplace_rho():
    return counts(mechanism=dpt.Laplace(), **CONCENTRATED)


@case
def counts_gaussian_rho():
    return counts(mechanism=dpt.Gaussian(), rho=2.0)


@case
def counts_auto_losses():
    losses = [{"epsilon": 0.1}, {"epsilon": 8.0}, {"epsilon": 0.1, "delta": 0.01}, {"rho": 0.001}]
    return {str(loss): counts(**loss) for loss in losses}


@case
def counts_replace():
    return {
        noise: counts(mechanism=noise, neighbors="replace", **APPROXIMATE)
        for noise in ("laplace", "gaussian")
    }


@case
def counts_units():
    unit = {"privacy_unit": "person", "mechanism": "laplace"}
    return {str(k): counts(max_contributions=k, **unit, **PURE) for k in (1, 2, 3)}


@default
def counts_units_replace():
    unit = {"privacy_unit": "person", "neighbors": "replace"}
    return {str(k): counts(max_contributions=k, **unit, **CONCENTRATED) for k in (1, 3)}


@case
def counts_unit_with_missing_names():
    frame = visits()
    frame["person"] = frame["person"].astype("Int64").mask(frame["person"] % 7 == 0)
    return frame.dp.tree_counts(BY, domain=places(), rng=rng(), **PURE, **PEOPLE)


@default
def counts_multiplicative():
    return counts(mechanism=dpt.Multiplicative(alpha=0.25), **APPROXIMATE)


@case
def counts_multiplicative_clip_units():
    guarantee = dpt.Multiplicative(alpha=0.5, clip=True)
    return counts(mechanism=guarantee, domain=domain(zeros=True), epsilon=8.0, delta=0.01, **PEOPLE)


# The split -----------------------------------------------------------------------------------------------


@case
def counts_splits():
    shares = {"total": 0.1, "district": 0.3, "clinic": 0.6}
    splits = {"uniform": "uniform", "geometric": "geometric", "given": shares}
    return {name: counts(split=split, **PURE) for name, split in splits.items()}


@case
def counts_objectives():
    return {
        objective: counts(objective=objective, mechanism="gaussian", **APPROXIMATE)
        for objective in ("levels", "cells", "worst")
    }


@case
def counts_level_weights():
    weights = {"total": 0, "region": 4, "clinic": 0.5}
    return {
        objective: counts(level_weights=weights, objective=objective, **PURE)
        for objective in ("cells", "worst")
    }


# Consistency and fit -------------------------------------------------------------------------------------


def _each_fit(consistency: str) -> Any:
    options = {"consistency": consistency, "confidence": 0.9, "mechanism": "gaussian", **CONCENTRATED}
    tables = {fit: counts(7, fit=fit, **options) for fit in FITS}
    values = {fit: table[["count", "lower", "upper"]] for fit, table in tables.items()}
    return {**values, "totals": tables["totals"]}


@case
def fits_none():
    return _each_fit("none")


@case
def fits_linear():
    return _each_fit("linear")


@case
def fits_nonnegative():
    return _each_fit("nonnegative")


@case
def fits_integer():
    return _each_fit("integer")


@default
def fits_of_sparse_tables():
    listed = pd.DataFrame({"a": np.repeat(np.arange(12), 12), "b": np.tile(np.arange(12), 12)})
    frame = listed.iloc[[0] * 90 + [5] * 40 + [17] * 25 + [40, 41, 41, 100]]
    options = {"domain": listed, "consistency": "nonnegative", **PURE}
    return {fit: dpt.tree_counts(frame, ["a", "b"], fit=fit, rng=rng(), **options)["count"] for fit in FITS}


# What is known, intervals, measurements ------------------------------------------------------------------


@case
def counts_known_total():
    return counts(known={"total": 550}, confidence=0.95, keep=["measurements"], **PURE)


@case
def counts_known_levels():
    regions = pd.Series({"North": 300, "South": 150, "West": 60, "By telephone": 40}).rename_axis("region")
    return {each: counts(known={"region": regions}, consistency=each, **PURE) for each in CONSISTENCIES}


@case
def counts_known_frame():
    known = pd.DataFrame(
        {
            "region": ["North", "North", "South", "West"],
            "district": ["Alder", "Alder", "Islands", None],
            "clinic": ["High Street", "Mill Street", None, None],
            "count": [70, None, 12, None],
            "at_least": [None, 5, None, 20],
        }
    )
    return {fit: counts(known=known, confidence=0.9, fit=fit, **CONCENTRATED) for fit in FITS}


@case
def counts_intervals():
    return {
        "laplace": counts(confidence=0.5, mechanism="laplace", consistency="none", **PURE),
        "gaussian": counts(confidence=0.999, neighbors="replace", consistency="linear", **CONCENTRATED),
        "integer": counts(confidence=0.95, **APPROXIMATE),
    }


@case
def counts_measurements():
    return counts(keep=["measurements"], split={"region": 0.5, "clinic": 0.5}, **PURE)


# Sums ----------------------------------------------------------------------------------------------------


@case
def sums_of_one_column():
    return visits().dp.tree_sums(BY, columns="cost", bounds=(0, 500), domain=places(), rng=rng(), **PURE)


@default
def sums_of_several():
    return sums(["age", "cost"], bounds=BOUNDS, granularity={"cost": 0.5, "age": None}, **PURE)


@case
def sums_of_several_approximate():
    return sums(["age", "cost"], bounds=BOUNDS, keep=["measurements"], **APPROXIMATE, **PEOPLE)


@case
def joint_gaussian_losses():
    """What an epsilon and a delta allow several quantities together."""
    gaussian = {"mechanism": "gaussian", **APPROXIMATE}
    return {
        "sums": sums(["age", "cost"], bounds=BOUNDS, **gaussian),
        "means": means("age", bounds=(0, 100), split="uniform", **gaussian),
    }


@case
def sums_with_signs():
    return {
        each: sums("balance", bounds=(-300, 900), consistency=each, confidence=0.9, **CONCENTRATED)
        for each in CONSISTENCIES
    }


@case
def sums_fits():
    return {fit: sums("cost", fit=fit, granularity=1, consistency="nonnegative", **PURE) for fit in FITS}


@case
def sums_replace_units():
    unit = {"privacy_unit": "person", "max_contributions": 3, "neighbors": "replace"}
    return sums("cost", bounds=(10, 200), confidence=0.9, **unit, **CONCENTRATED)


@case
def sums_structural_zeros():
    return sums("age", bounds=(0, 120), domain=domain(zeros=True), confidence=0.9, **PURE)


@case
def sums_splits():
    return {split: sums("age", bounds=(0, 100), split=split, **PURE) for split in ("uniform", "geometric")}


# Means ---------------------------------------------------------------------------------------------------


@case
def means_of_one_column():
    return visits().dp.tree_means(BY, columns="cost", bounds=(0, 500), domain=places(), rng=rng(), **PURE)


@case
def means_of_several():
    return means(["age", "cost"], bounds=BOUNDS, confidence=0.9, keep=["measurements"], epsilon=4.0)


@case
def means_concentrated():
    return means(["age", "balance"], bounds=(-1000, 1000), consistency="linear", confidence=0.9, rho=1.0)


@default
def means_approximate_units():
    return means("age", bounds=(0, 100), neighbors="replace", confidence=0.5, **APPROXIMATE, **PEOPLE)


@case
def means_known_total():
    return means("cost", known={"total": 550}, confidence=0.9, **PURE)


@case
def means_known_throughout():
    regions = places()[["region"]].drop_duplicates()
    known = pd.Series([90, 250, 160, 60], index=pd.Index(regions["region"], name="region"))
    options = {"bounds": (0, 500), "domain": regions, "known": {"region": known}, "confidence": 0.9}
    return dpt.tree_means(visits(), ["region"], columns="cost", rng=rng(), **options, **PURE)

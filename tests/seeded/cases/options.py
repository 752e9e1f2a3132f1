"""Every option of every verb, one at a time: each changes something of what the verb gives by default."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import pandas_dptree as dpt
from tests.seeded.cases.register import case
from tests.seeded.cases.shell import PUBLIC, run
from tests.seeded.data import rng, scattered

DEFAULT = "default"
BY = ["a", "b"]
LOSS: dict[str, Any] = {"rho": 0.02}
LEAVES = pd.DataFrame({"a": list("xxxxxxxxyyyz"), "b": list("0123456789AB")})
LOSSES: dict[str, dict[str, Any]] = {
    "epsilon": {"rho": None, "epsilon": 0.5},
    "delta": {"rho": None, "epsilon": 0.5, "delta": 1e-6},
    "rho": {"rho": 0.021},
    "neighbors": {"neighbors": "replace"},
    "mechanism": {"mechanism": "laplace"},
}
UNITS: dict[str, dict[str, Any]] = {
    "privacy_unit": {"privacy_unit": "unit", "max_contributions": 1},
    "max_contributions": {"privacy_unit": "unit", "max_contributions": 2},
}
SPENT: dict[str, dict[str, Any]] = {
    "split": {"split": "uniform"},
    "level_weights": {"level_weights": {"a": 9.0}},
    "objective": {"objective": "cells"},
}
SHOWN: dict[str, dict[str, Any]] = {
    "consistency": {"consistency": "nonnegative"},
    "fit": {"fit": "joint"},
    "confidence": {"confidence": 0.9},
    "keep_measurements": {"keep": ["measurements"]},
}
TABLES = LOSSES | SPENT | SHOWN
KNOWN: dict[str, dict[str, Any]] = {"known": {"known": {"total": 90}}}


def records() -> pd.DataFrame:
    """Most leaves hold nobody, so that negative estimates need to be corrected."""
    place = np.array([0, 0, 0, 1, 8, 8, 11])[scattered(90, 7, 61)]
    frame = LEAVES.iloc[place].reset_index(drop=True)
    return frame.assign(unit=np.arange(90) // 4, u=scattered(90, 100, 62) / 10, v=scattered(90, 9, 63) - 4)


def array() -> xr.DataArray:
    counts = records().groupby("b").size().reindex(LEAVES["b"], fill_value=0).to_numpy()
    names = {"a": ("b", LEAVES["a"].to_list()), "b": LEAVES["b"].to_list()}
    return xr.DataArray(counts, dims=["b"], coords=names, name="n")


def dataset() -> xr.Dataset:
    return xr.Dataset({"n": array(), "m": array() * 2})


def numbers(found: Any) -> dict[str, Any]:
    """What is not a key of a table, a tree of tables, or a plan."""
    if isinstance(found, xr.DataTree):
        groups = {name: group.to_dataset() for name, group in found.children.items()}
        return {
            f"{name} {key}": np.ravel(each).tolist()
            for name, group in groups.items()
            for key, each in group.items()
        }
    if isinstance(found, xr.Dataset):
        return {str(key): np.ravel(each).tolist() for key, each in found.variables.items()}
    if not isinstance(found, pd.DataFrame):
        return {**numbers(found.to_frame())}
    columns = {str(name): column for name, column in found.items() if column.dtype.kind in "iuf"}
    return {name: [None if pd.isna(each) else each for each in column] for name, column in columns.items()}


def each_option(
    verb: Callable[..., Any], options: Mapping[str, Mapping[str, Any]], **always: Any
) -> dict[str, dict[str, Any]]:
    """Call a verb as it is, and with each option; from the same seed where it draws at all."""
    return {name: numbers(verb(**{**always, **given})) for name, given in {DEFAULT: {}, **options}.items()}


def seeded(verb: Callable[..., Any]) -> Callable[..., Any]:
    return lambda **options: verb(rng=rng(), **options)


# Frames --------------------------------------------------------------------------------------------------


@case
def options_of_counts():
    own = KNOWN | {
        "domain": {"domain": LEAVES[:9]},
        "by": {"by": ["a"], "domain": LEAVES[["a"]].drop_duplicates()},
    }
    verb = seeded(records().dp.tree_counts)
    return each_option(verb, TABLES | UNITS | own, by=BY, domain=LEAVES, **LOSS)


@case
def options_of_sums():
    own = {
        "bounds": {"bounds": (0, 8)},
        "granularity": {"granularity": 2.0},
        "columns": {"columns": ["u", "v"]},
    }
    verb = seeded(records().dp.tree_sums)
    return each_option(verb, TABLES | UNITS | own, columns="u", by=BY, domain=LEAVES, bounds=(0, 10), **LOSS)


@case
def options_of_means():
    own = {
        "bounds": {"bounds": (0, 8)},
        "granularity": {"granularity": 2.0},
        "columns": {"columns": ["u", "v"]},
    }
    verb = seeded(records().dp.tree_means)
    always: dict[str, Any] = {"columns": "u", "by": BY, "domain": LEAVES, "bounds": (0, 10), "rho": 2.0}
    changed = {name: {**given, "rho": 2.1} if name == "rho" else given for name, given in TABLES.items()}
    changed |= {
        "epsilon": {"rho": None, "epsilon": 9.0},
        "delta": {"rho": None, "epsilon": 9.0, "delta": 1e-6},
    }
    return each_option(verb, changed | UNITS | KNOWN | own, **always)


@case
def options_of_plan():
    own: dict[str, dict[str, Any]] = {
        "target": {"rho": None, "target": {"a": 3.0}},
        "known": {"known": {"a": pd.Series({"x": 50.0}).rename_axis("a")}},
        "column": {"column": "u", "bounds": (0, 10)},
        "granularity": {"column": "u", "bounds": (0, 10), "granularity": 2.0},
        "consistency": {"consistency": "none"},
        "max_contributions": {"max_contributions": 2},
    }
    domain = dpt.Domain.from_frame(LEAVES, by=BY)
    return each_option(lambda **options: dpt.plan(domain, **options), LOSSES | SPENT | own, **LOSS)


@case
def options_of_distributions():
    verb = records().dp
    groups = {"by": {"by": ["a"], "domain": LEAVES[["a"]].drop_duplicates()}}
    own = {"bins": {"bins": 7}, "bounds": {"bounds": (0, 8)}, "tree": {"strategy": [2, 5]}, **groups, **KNOWN}
    always: dict[str, Any] = {"column": "u", "bounds": (0, 10), "bins": 10, "strategy": [5, 2], **LOSS}
    confidence = {"confidence": {"confidence": 0.5}}
    options = LOSSES | {"rho": {"rho": 0.2}} | UNITS | own
    quick = {name: given for name, given in options.items() if name not in ("epsilon", "delta")}
    ranges = {name: given for name, given in quick.items() if name not in ("bins", "bounds")}
    return {
        "release": each_option(
            lambda **each: verb.release_distribution(rng=rng(), **each).cdf(), options, **always
        ),
        "cdf": each_option(seeded(verb.cdf), quick | confidence, **always),
        "histogram": each_option(seeded(verb.histogram), quick, **always),
        "ranges": each_option(seeded(verb.range_counts), ranges, ranges=[(0, 5)], **always),
        "quantiles": each_option(seeded(verb.quantiles), quick | confidence, q=[0.3, 0.7], **always),
    }


@case
def options_of_distribution_plans():
    own = {"bins": {"bins": 7}, "tree": {"strategy": [2, 5]}, "known": {"known": {"total": 90}}}
    own |= {"domain": {"domain": dpt.Domain.from_frame(LEAVES, by=BY)}}
    always: dict[str, Any] = {"column": "u", "bounds": (0, 10), "bins": 10, "strategy": [5, 2], **LOSS}
    return each_option(dpt.plan_distribution, LOSSES | UNITS | own, **always)


@case
def options_of_series():
    values, options = records()["u"].dp, {"tree": {"strategy": [2, 5]}, "rho": {"rho": 0.2}, **KNOWN}
    always: dict[str, Any] = {"bounds": (0, 10), "bins": 10, "strategy": [5, 2], **LOSS}
    return {
        "cdf": each_option(seeded(values.cdf), options, **always),
        "histogram": each_option(seeded(values.histogram), options, **always),
        "ranges": each_option(seeded(values.range_counts), options, ranges=[(0, 5)], **always),
        "quantiles": each_option(seeded(values.quantiles), options, q=0.5, **always),
    }


@case
def options_of_prefixes():
    frame = pd.DataFrame({"k": np.repeat([1, 5, 14], [900, 70, 30])}).assign(unit=np.arange(1_000) // 3)
    tree, loss = dpt.prefixes("k", bits=[2, 4], notation="number"), {"epsilon": 1.0, "delta": 1e-4}
    options: dict[str, dict[str, Any]] = {
        "epsilon": {"epsilon": 2.0},
        "delta": {"delta": 1e-3},
        "neighbors": {"neighbors": "replace"},
        "split": {"split": {"total": 0.2, "k/2": 0.2, "k/4": 0.6}},
        "mechanism": {"mechanism": dpt.Multiplicative(alpha=0.9)},
        **UNITS,
    }
    measured = {"keep_measurements": {"keep": ["measurements"]}}
    verb = seeded(frame.dp.tree_counts)
    return {
        "counts": each_option(verb, options | measured, by=tree, **loss),
        "plan": each_option(dpt.plan, options, domain=tree, **loss),
    }


# Arrays --------------------------------------------------------------------------------------------------

MORE: dict[str, dict[str, Any]] = {"max_contributions": {"max_contributions": 2}}
SUMMED: dict[str, dict[str, Any]] = {"bounds": {"bounds": (0, 30)}, "granularity": {"granularity": 2.0}}


@case
def options_of_array_counts():
    verb = seeded(array().dp.tree_counts)
    return each_option(verb, TABLES | MORE | KNOWN, by=BY, max_contributions=1, **LOSS)


@case
def options_of_array_sums():
    verb = seeded(array().dp.tree_sums)
    return each_option(verb, TABLES | MORE | SUMMED, by=BY, bounds=(0, 40), max_contributions=1, **LOSS)


@case
def options_of_array_plans():
    own = {"target": {"rho": None, "target": {"a": 3.0}}, "consistency": {"consistency": "none"}}
    own |= {"known": {"known": {"a": pd.Series({"x": 50.0}).rename_axis("a")}}}
    own |= {"bounds": {"bounds": (0, 40)}, "granularity": {"bounds": (0, 40), "granularity": 2.0}}
    options = LOSSES | SPENT | MORE | own
    return each_option(array().dp.plan, options, by=BY, max_contributions=1, **LOSS)


@case
def options_of_array_distributions():
    values = xr.DataArray(scattered(32, 60, 64), dims=["v"])
    options = (
        LOSSES
        | {"rho": {"rho": 0.2}}
        | MORE
        | {"tree": {"strategy": [8, 4]}, "confidence": {"confidence": 0.5}}
    )
    edges = {"edges": {"edges": np.arange(33) ** 2}}
    always: dict[str, Any] = {
        "dim": "v",
        "edges": range(33),
        "strategy": [4, 8],
        "max_contributions": 1,
        **LOSS,
    }
    return {
        "cdf": each_option(seeded(values.dp.cdf), options | edges, **always),
        "quantiles": each_option(seeded(values.dp.quantiles), options | edges, q=[0.3, 0.7], **always),
    }


@case
def options_of_datasets():
    own: dict[str, dict[str, Any]] = {
        "variables": {"variables": ["m"]},
        "own contributions": {"max_contributions": {"n": 1, "m": 3}},
    }
    counts, sums = seeded(dataset().dp.tree_counts), seeded(dataset().dp.tree_sums)
    few = {name: TABLES[name] for name in ("neighbors", "mechanism", "split", "confidence")}
    plans = LOSSES | MORE | {"bounds": {"bounds": (0, 40)}}
    plans |= {"granularity": {"bounds": (0, 40), "granularity": 2.0}}
    return {
        "counts": each_option(counts, TABLES | MORE | own, by=BY, max_contributions=1, **LOSS),
        "sums": each_option(sums, few | MORE | SUMMED, by=BY, bounds=(0, 40), max_contributions=1, **LOSS),
        "plan": each_option(dataset().dp.plan, plans, by=BY, max_contributions=1, **LOSS),
    }


# The shell -----------------------------------------------------------------------------------------------


@case
def options_of_the_shell():
    """What a Parquet file says of how its table was made, and which columns it has."""
    options = {
        DEFAULT: [],
        "delta": ["--delta", "1e-6"],
        "neighbors": ["--neighbors", "replace"],
        "unit": ["--privacy-unit", "person", "--max-contributions", "1"],
        "max_contributions": ["--privacy-unit", "person", "--max-contributions", "2"],
        "split": ["--split", "uniform"],
        "consistency": ["--consistency", "linear"],
        "confidence": ["--confidence", "0.9"],
        "keep_measurements": ["--keep", "measurements"],
        "mechanism": ["--mechanism", "gaussian", "--delta", "1e-6"],
        "zeros": ["--structural-zeros", "closed"],
    }
    age = ["--epsilon", "1", "--column", "age", "--bounds", "0", "100"]
    few = {name: options[name] for name in ("max_contributions", "split", "confidence")}
    verbs = {"counts": (["--epsilon", "1"], options), "sums": (age, few), "means": (age, few)}
    found = {}
    for verb, (always, chosen) in verbs.items():
        tables = {
            name: run(verb, "visits.csv", *PUBLIC, *always, *given, "--out", "t.parquet")["t.parquet"]
            for name, given in chosen.items()
        }
        found[verb] = {
            name: {
                "columns": list(table.columns),
                "rows": len(table),
                "errors": table.filter(like="noise_scale" if verb == "means" else "std_error")
                .iloc[:2]
                .to_numpy()
                .ravel(),
                "provenance": {
                    name: stated for name, stated in table.attrs["dp"].items() if name != "table_digest"
                },  # that of random values
            }
            for name, table in tables.items()
        }
    return found

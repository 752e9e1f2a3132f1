"""Quantiles drawn on a grid: beside OpenDP's among candidates, and beside those of a tree over bins.

``python -m tests.benchmarks.bench_quantiles`` prints the tables of the documentation: mean absolute errors of
ten columns, of which eight are simulated and were fixed before anything was measured. The two others are read
from the folder that the variable PANDAS_DPTREE_DATA names; without it they are left out. Then it compares
quantiles of counties with those of a tree for each, and times. The names of ways are those of columns.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import pandas_dptree as dpt
from pandas_dptree.errors import DPTreeWarning
from tests.benchmarks.bench_release import seconds
from tests.peers import opendp_quantile

N_ROWS = 4000
QUARTILES = [0.25, 0.5, 0.75]
EPSILONS = (0.1, 0.5)
LIMITS = {
    ("median", "OpenDP, 1001"): 0.65,
    ("median", "OpenDP, 5001"): 0.9,
    ("median", "tree"): 0.4,
    ("quartiles", "OpenDP, 1001"): 0.5,
    ("quartiles", "OpenDP, 5001"): 0.7,
    ("quartiles", "tree"): 0.5,
}
"""The largest ratios of errors, by what is asked and by the other way."""

Release = Callable[[np.random.Generator], np.ndarray]
"""From a generator to the quantiles that were asked for."""


class Column(NamedTuple):
    """Values within public bounds: floats if the bounds are floats, and otherwise whole numbers."""

    values: np.ndarray
    bounds: tuple[float, float]


def simulated(seed: int = 20_261_127) -> dict[str, Column]:
    """Simulate columns of eight shapes, each from a stream of its own."""
    streams = np.random.default_rng(seed).spawn(8)
    uniform, normal, skewed, bimodal, pareto, incomes, ages, flows = streams
    low = bimodal.random(N_ROWS) < 0.4
    exact = incomes.lognormal(10.4, 0.8, N_ROWS)
    steps = incomes.choice([1, 1000, 5000], N_ROWS, p=[0.1, 0.4, 0.5])
    columns = {
        "uniform": (uniform.random(N_ROWS), (0.0, 1.0)),
        "normal": (normal.normal(480.0, 80.0, N_ROWS), (0.0, 1000.0)),
        "log-normal": (skewed.lognormal(4.0, 1.0, N_ROWS), (0.0, 1000.0)),
        "bimodal": (
            np.where(low, bimodal.normal(20, 3, N_ROWS), bimodal.normal(70, 6, N_ROWS)),
            (0.0, 100.0),
        ),
        "Pareto": (20 * pareto.pareto(1.5, N_ROWS), (0.0, 1000.0)),
        "round incomes": (np.rint(exact / steps) * steps, (0, 500_000)),
        "ages": (np.floor(95 * ages.beta(1.6, 2.2, N_ROWS)), (0, 120)),
        # All deciles in the first thousandth of the bounds, like the sizes of flows in a network.
        "flows": (flows.lognormal(7.0, 1.2, N_ROWS), (0.0, 10_000_000.0)),
    }
    return {name: _clipped(*column) for name, column in columns.items()}


def recorded() -> dict[str, Column]:
    """Read latitudes of American post offices and speeds of aeroplanes, in knots, if there are any."""
    folder = Path(os.environ.get("PANDAS_DPTREE_DATA", "."))
    columns = (
        ("latitudes", "zipcodes.csv", "latitude", (0.0, 90.0)),
        ("speeds", "birdstrikes.csv", "Speed IAS in knots", (0, 500)),
    )
    return {
        name: _clipped(pd.read_csv(folder / file, usecols=[column])[column].dropna().to_numpy(), bounds)
        for name, file, column, bounds in columns
        if (folder / file).exists()
    }


def _clipped(values: np.ndarray, bounds: tuple[float, float]) -> Column:
    return Column(
        np.clip(values, *bounds).astype(np.float64 if isinstance(bounds[0], float) else int), bounds
    )


# Errors of ten columns --------------------------------------------------------------------------------------


def _ours(column: Column, q: list[float], epsilon: float) -> Release:
    """Draw the quantiles on the grid that belongs to the bounds."""
    frame = pd.DataFrame({"value": column.values})
    plan = dpt.plan_quantiles("value", q, bounds=column.bounds, mechanism="exponential", epsilon=epsilon)
    return lambda rng: plan.release(frame, rng=rng)["value"].to_numpy()


def _tree(column: Column, q: list[float], epsilon: float) -> Release:
    """Read the quantiles from a tree over 1000 bins."""
    frame = pd.DataFrame({"value": column.values})
    plan = dpt.plan_distribution("value", bounds=column.bounds, bins=1000, epsilon=epsilon)
    return lambda rng: plan.release(frame, rng=rng).quantiles(q)["value"].to_numpy()


def _opendp(candidates: int) -> Callable[[Column, list[float], float], Release]:
    """Draw each quantile from equally spaced candidates, with an even part of epsilon."""

    def way(column: Column, q: list[float], epsilon: float) -> Release:
        bounds = float(column.bounds[0]), float(column.bounds[1])
        draws = [opendp_quantile(bounds, candidates, part, epsilon / len(q)) for part in q]
        return lambda _: np.array([draw(column.values.astype(float)) for draw in draws])

    return way


WAYS = {"ours": _ours, "OpenDP, 1001": _opendp(1001), "OpenDP, 5001": _opendp(5001), "tree": _tree}


def errors(releases: int = 200) -> pd.DataFrame:
    """Compare mean absolute errors of the median, and of the quartiles released together."""
    rows = {}
    for name, column in (simulated() | recorded()).items():
        for asked, q in {"median": [0.5], "quartiles": QUARTILES}.items():
            truth = np.quantile(column.values, q, method="inverted_cdf")
            for epsilon in EPSILONS:
                streams = np.random.default_rng(0).spawn(releases)
                rows[asked, epsilon, name] = {
                    way: float(np.mean([abs(release(rng) - truth) for rng in streams]))
                    for way, release in ((way, make(column, q, epsilon)) for way, make in WAYS.items())
                }
    index = pd.MultiIndex.from_tuples([*rows], names=["asked", "epsilon", "column"])
    return pd.DataFrame([*rows.values()], index=index)


def negligible() -> pd.Series:
    """Tell below which size errors count as equal, so that no ratio is of nearly nothing.

    It is a thousandth of the distance between the quartiles, and at least a quarter of a whole number.
    """
    found = {}
    for name, (values, _) in (simulated() | recorded()).items():
        low, high = np.quantile(values, [0.25, 0.75])
        found[name] = max((high - low) / 1000, 0.25 if values.dtype.kind == "i" else 0.0)
    return pd.Series(found).rename_axis("column")


def ratios(found: pd.DataFrame) -> pd.DataFrame:
    """Compare the errors of ours with those of others: geometric means over columns and epsilons."""
    least = negligible().reindex(found.index.get_level_values("column")).to_numpy()
    logs = pd.DataFrame({way: np.log(np.maximum(found[way], least)) for way in found})
    gains = {way: logs["ours"] - logs[way] for way in logs if way != "ours"}
    return pd.DataFrame({way: np.exp(gain.groupby("asked").mean()) for way, gain in gains.items()})


def exact_medians(releases: int = 50, n_rows: int = 10_000) -> pd.Series:
    """Count how many medians of whole numbers are exact at epsilon 1, of new records each time."""
    shapes: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
        "ages": lambda rng: np.floor(95 * rng.beta(1.6, 2.2, n_rows)).astype(int),
        "Poisson, mean 3": lambda rng: rng.poisson(3.0, n_rows),
        "Poisson, mean 20": lambda rng: rng.poisson(20.0, n_rows),
        "geometric, 0.3": lambda rng: rng.geometric(0.3, n_rows),
    }
    share = {}
    for name, draw in shapes.items():
        hits = []
        for rng in np.random.default_rng(1).spawn(releases):
            values = np.clip(draw(rng), 0, 120)
            release = _ours(Column(values, (0, 120)), [0.5], 1.0)
            hits.append(release(rng)[0] == np.quantile(values, 0.5, method="inverted_cdf"))
        share[name] = float(np.mean(hits))
    return pd.Series(share)


# Counties ---------------------------------------------------------------------------------------------------


class Counties:
    """Simulated costs in 600 counties of 29 states, and the exact quartiles of each."""

    bounds = (0.0, 400.0)

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        state = np.sort(np.append(np.arange(29), rng.integers(0, 29, 571)))
        self.size = np.maximum(1, rng.lognormal(5.5, 1.3, 600)).astype(int)
        centre = 3 + rng.normal(0, 0.2, 29)[state] + rng.normal(0, 0.15, 600)
        places = pd.DataFrame({"state": state, "county": np.arange(600)})
        self.domain = dpt.Domain.from_frame(places, by=["state", "county"])
        self.frame = places.loc[places.index.repeat(self.size)].reset_index(drop=True)
        costs = rng.lognormal(np.repeat(centre, self.size), 0.7)
        self.frame["cost"] = np.clip(costs, *self.bounds)
        costs_of = self.frame.groupby("county")["cost"]
        self.exact = np.array([np.quantile(costs, QUARTILES, method="inverted_cdf") for _, costs in costs_of])

    def tree(self, rng: np.random.Generator, q: list[float], epsilon: float) -> pd.DataFrame:
        """Release the distribution of each group in 1000 bins."""
        options: dict[str, Any] = {"bounds": self.bounds, "domain": self.domain, "epsilon": epsilon}
        plan = dpt.plan_distribution("cost", bins=1000, **options)
        return plan.release(self.frame, rng=rng).quantiles(q)

    def ours(self, rng: np.random.Generator, q: list[float], epsilon: float) -> pd.DataFrame:
        """Draw the quantiles of counties with the released curve of their state as base measure."""
        options: dict[str, Any] = {"bounds": self.bounds, "domain": self.domain, "epsilon": epsilon}
        plan = dpt.plan_quantiles("cost", q, mechanism="exponential", **options)
        return plan.release(self.frame, rng=rng)

    def errors(self, releases: int = 10, epsilon: float = 1.0) -> pd.DataFrame:
        """Compare mean absolute errors by size; the tree's are without the counties where it has no value."""
        sizes = np.array(["below 100", "100 to 500", "above 500"])[
            np.searchsorted([99, 500], self.size, side="left")
        ]
        rows = {}
        for asked, q in {"median": [0.5], "quartiles": QUARTILES}.items():
            exact = self.exact[:, np.isin(QUARTILES, q)]
            for way in ("tree", "ours"):
                off = []
                for rng in np.random.default_rng(2).spawn(releases):
                    table = getattr(self, way)(rng, q, epsilon)
                    values = table.loc[table["level"] == "county", "value"].to_numpy()
                    off.append(abs(values.reshape(exact.shape) - exact))
                mean = pd.DataFrame(np.concatenate(off, axis=1)).mean(axis=1).groupby(sizes).mean()
                rows[asked, way] = mean[["below 100", "100 to 500", "above 500"]]
        return pd.DataFrame(rows).T


# Times ------------------------------------------------------------------------------------------------------


def times(n_rows: int = 1_000_000, n_groups: int = 30_000) -> list[dict[str, object]]:
    """Time a median of a million rows, and those of many groups, beside pandas without privacy."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"group": rng.integers(0, n_groups, n_rows), "cost": rng.lognormal(4, 1, n_rows)})
    options: dict[str, Any] = {"bounds": (0.0, 1000.0), "mechanism": "exponential", "epsilon": 1.0}
    values = frame["cost"].to_numpy()
    draw = opendp_quantile((0.0, 1000.0), 1001, 0.5, 1.0)
    one = seconds(lambda: frame.dp.quantiles("cost", 0.5, **options))
    plain = seconds(lambda: np.quantile(values, 0.5, method="inverted_cdf"))
    theirs = seconds(lambda: draw(values))
    domain = dpt.Domain.from_frame(pd.DataFrame({"group": np.arange(n_groups)}), by=["group"])
    many = seconds(lambda: frame.dp.quantiles("cost", 0.5, by=["group"], domain=domain, **options), repeats=1)
    exact = seconds(lambda: frame.groupby("group")["cost"].quantile(0.5), repeats=1)
    return [
        {
            "what": f"a median of {n_rows:,} values; numpy.quantile takes {plain:.3f} s",
            "ours": f"{one:.2f} s",
            "peer": f"{theirs:.2f} s (OpenDP, 1001 candidates)",
            "ratio": one / theirs,
            "target": "<= 1 s",
            "ok": one <= 1,
        },
        {
            "what": f"medians of {n_groups:,} groups, {n_rows:,} values",
            "ours": f"{many:.2f} s",
            "peer": f"{exact:.2f} s (non-private groupby)",
            "ratio": many / exact,
            "target": "<= 5 s",
            "ok": many <= 5,
        },
    ]


def run(releases: int = 20) -> list[dict[str, object]]:
    """Compare errors with those of others, and measure times."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DPTreeWarning)  # of quantiles in the first bin
        found = ratios(errors(releases)).to_dict(orient="index")
        counties = Counties().errors(max(releases // 10, 1))["below 100"].to_dict()
    exact = float(exact_medians(releases).min())
    rows: list[dict[str, object]] = [
        {
            "what": f"{asked} of ten columns, epsilon 0.1 and 0.5",
            "ours": "",
            "peer": other,
            "ratio": found[asked][other],
            "target": f"<= {limit} of the error",
            "ok": found[asked][other] <= limit,
        }
        for (asked, other), limit in LIMITS.items()
    ]
    rows.append(
        {
            "what": "medians of 10,000 whole numbers, epsilon 1",
            "ours": f"{exact:.0%} exact",
            "peer": "",
            "ratio": exact,
            "target": ">= 0.95",
            "ok": exact >= 0.95,
        }
    )
    for asked, limit in (("median", 0.1), ("quartiles", 0.2)):
        mine, tree = counties[asked, "ours"], counties[asked, "tree"]
        rows.append(
            {
                "what": f"{asked} of counties below 100 records, epsilon 1",
                "ours": f"error {mine:.2f}",
                "peer": f"error {tree:.2f} (tree, 1000 bins)",
                "ratio": mine / tree,
                "target": f"<= {limit}",
                "ok": mine <= limit * tree,
            }
        )
    return [*rows, *times()]


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DPTreeWarning)
        _found = errors()
        print(_found.to_string(float_format="{:.4g}".format))
        print(ratios(_found).to_string(float_format="{:.2f}".format))
        print(Counties().errors().to_string(float_format="{:.3g}".format))
    print(exact_medians(100).to_string())
    print(pd.DataFrame(times()).to_string(index=False, float_format="{:.3g}".format))

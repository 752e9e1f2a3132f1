"""Quantiles drawn on a grid: beside OpenDP's among candidates, and beside those of a tree over bins.

``python -m tests.benchmarks.bench_quantiles`` prints the tables of the documentation: mean absolute errors of
ten columns, of which eight are simulated and were fixed before anything was measured. The two others are read
from the folder that the variable PANDAS_DPTREE_DATA names; without it they are left out.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

N_ROWS = 4000


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

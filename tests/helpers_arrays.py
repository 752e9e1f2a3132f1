"""Arrays and datasets of counts that several tests release."""

import numpy as np
import pandas as pd
import xarray as xr

import pandas_dptree as dpt

MONTHS = dpt.calendar("time", ["year", "month"], start="2023-12-01", end="2024-02-29")

EXACT = 1e6
"""An epsilon that leaves no noise."""


def level(tree: xr.DataTree, name: str) -> xr.Dataset:
    return tree[name].to_dataset()


def records(array: xr.DataArray) -> pd.DataFrame:
    """One row for each record of an array."""
    cells = array.to_dataframe(name="n").reset_index()
    return cells.loc[cells.index.repeat(cells["n"])]


def picture(rows: int, columns: int, **coordinates) -> xr.DataArray:
    cells = np.random.default_rng(rows).poisson(3, (rows, columns))
    return xr.DataArray(cells, dims=["y", "x"], coords=coordinates)


def visits_of_the_world() -> xr.DataArray:
    """Visits by city, day and place in the plane."""
    days = pd.to_datetime(["2024-02-29", "2023-12-31", "2024-01-01", "2024-03-01", "2024-01-31"])
    return xr.DataArray(
        np.random.default_rng(8).poisson(0.7, (4, 5, 4, 5)),
        dims=["city", "time", "y", "x"],
        coords={
            "city": ["Kent", "Oakland", "Albany", "Fresno"],
            "state": ("city", ["WA", "CA", "NY", "CA"]),
            "age": ("city", [20.0, 130.0, np.nan, 39.9]),
            "time": days,
            "y": [3.5, 2.5, 1.5, 0.5],  # as pictures have it, from the top
            "x": np.arange(5) + 0.5,
        },
    )


BY = ["state", "city"]
LEVELS = ["total", *BY]
NO_NOISE = {"epsilon": 1e6}
"""A loss that leaves no noise."""
MIXED = {"visits": None, "deaths": None, "cost": (0, 100)}
"""Counts, and the sums of one variable."""

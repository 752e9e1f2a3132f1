"""Small inputs of the cases. They are computed with whole numbers, and so are the same everywhere."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

import pandas_dptree as dpt

BY = ["region", "district", "clinic"]
PURE: dict[str, Any] = {"epsilon": 1.0}
APPROXIMATE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
CONCENTRATED: dict[str, Any] = {"rho": 0.1}
ONE: dict[str, Any] = {"max_contributions": 1}
PEOPLE: dict[str, Any] = {"privacy_unit": "person", "max_contributions": 2}
EXACT: dict[str, Any] = {"epsilon": 1e9}
"""Leaves no noise."""


def rng(seed: int = 0) -> np.random.Generator:
    """Make a seeded generator."""
    return np.random.default_rng(seed)


def scattered(n: int, below: int, salt: int) -> npt.NDArray[np.int64]:
    """Give n whole numbers from 0 to below a limit in no order (splitmix64)."""
    mixed = (np.arange(n, dtype=np.uint64) + np.uint64(1_000 * salt + 1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((mixed ^ (mixed >> np.uint64(31))) % np.uint64(below)).astype(np.int64)


@cache
def _places() -> pd.DataFrame:
    districts = {"North": ["Alder", "Birch", "Cedar"], "South": ["Dale", "Elm"], "West": ["Ford"]}
    rows: list[tuple[Any, ...]] = [
        (region, district, f"{name} Street")
        for region, names in districts.items()
        for place, district in enumerate(names)
        for name in ["High", "Mill", "Park", "Quay", "Station"][: 2 + 3 * (place == 0)]
    ]
    rows += [("South", "Islands", None), ("By telephone", None, None)]
    return pd.DataFrame(rows, columns=BY)


def places() -> pd.DataFrame:
    """List the public leaves: a ragged hierarchy with two paths that end early."""
    return _places().copy()


def domain(*, zeros: bool = False) -> dpt.Domain:
    """Make the domain of `places`; with two structural zeros, if asked for."""
    listed = places()
    listed["closed"] = np.isin(np.arange(len(listed)), [3, 9])
    return dpt.Domain.from_frame(listed, by=BY, structural_zeros="closed" if zeros else None)


@cache
def _visits(n: int) -> pd.DataFrame:
    leaves = pd.concat(
        [
            places(),
            pd.DataFrame(
                {
                    "region": ["North", "Nowhere", None, "South"],
                    "district": ["Unheard", "Of", "Alder", None],
                    "clinic": ["High Street", None, "High Street", "High Street"],
                }
            ),
        ]
    )
    spread = scattered(n, 1000, 1) * scattered(n, len(leaves), 2) // 1000
    frame = leaves.iloc[spread].reset_index(drop=True)
    frame.insert(0, "person", scattered(n, n // 3, 3))
    cost = scattered(n, 60_000, 4) / 100.0 - 20
    cost[scattered(n, 40, 5) == 0] = np.nan
    cost[7] = np.inf
    frame["cost"] = cost
    frame["balance"] = scattered(n, 2_001, 6) - 1_000
    frame["age"] = scattered(n, 100, 7)
    frame["date"] = (np.datetime64("2024-01-01", "D") + scattered(n, 420, 8)).astype("datetime64[ns]")
    frame["wait"] = (scattered(n, 7_200, 9)).astype("timedelta64[s]")
    frame["y"] = scattered(n, 1_000, 10) / 100.0
    frame["x"] = scattered(n, 1_000, 11) * scattered(n, 1_000, 12) / 100_000.0
    frame["product"] = np.array(["fig", "kiwi", "saw", "nail", "glove", None], dtype=object)[
        scattered(n, 6, 13)
    ]
    return frame


def visits(n: int = 600) -> pd.DataFrame:
    """Simulate visits: some lie outside the domain, some lack a value, and people come up to six times."""
    return _visits(n).copy()


def products() -> pd.DataFrame:
    """Tell the kind of each product; one is sold nowhere."""
    kinds = ["fruit", "fruit", "tool", "tool", "tool"]
    return pd.DataFrame({"kind": kinds, "product": ["fig", "kiwi", "saw", "nail", "drill"]})


def logins(n: int = 3_000) -> pd.DataFrame:
    """Simulate logins: a few addresses, users and codes are frequent, and most are rare."""
    rare = scattered(n, 4, 21) == 0
    ip = np.where(
        rare,
        scattered(n, 2**32, 22),
        np.array([167_772_161, 167_772_418, 3_232_235_777])[scattered(n, 3, 23)],
    )
    texts = [".".join(str(int(each) >> bits & 255) for bits in (24, 16, 8, 0)) for each in ip]
    user = np.where(rare, scattered(n, 256, 24), 7 + 64 * scattered(n, 2, 25))
    code = [
        f"{'' if each % 5 else 'A'}{each % 1000:03}" for each in np.where(rare, scattered(n, 5_000, 26), 941)
    ]
    return pd.DataFrame(
        {"ip": texts, "address": ip, "user": user, "code": code, "person": scattered(n, n // 4, 27)}
    )


def wards() -> xr.DataArray:
    """Count visits by month and ward; some counts are missing, negative or fractions."""
    counts = scattered(3 * 7, 60, 31).reshape(3, 7).astype(np.float64)
    counts[0, 1], counts[1, 2], counts[2, 3] = np.nan, -4.0, 7.6
    return xr.DataArray(
        counts,
        dims=["month", "ward"],
        coords={
            "month": [3, 1, 2],
            "season": ("month", ["spring", "winter", "winter"]),
            "ward": ("ward", [14, 3, 8, 2, 21, 5, 1], {"units": "number"}),
            "hospital": ("ward", ["A", "B", "A", "C", "B", "C", "A"]),
            "city": ("ward", ["Rome", "Oslo", "Rome", "Oslo", "Oslo", "Oslo", "Rome"]),
        },
        name="visits",
    )


def meters() -> xr.Dataset:
    """Read meters: two variables over the same homes, one with hours besides, and one without."""
    return xr.Dataset(
        {
            "kwh": (("home", "hour"), scattered(20, 500, 32).reshape(5, 4) / 100.0),
            "people": ("home", scattered(5, 8, 33)),
            "calls": (("home", "hour"), scattered(20, 30, 34).reshape(5, 4)),
        },
        coords={"street": ("home", ["Elm", "Elm", "Oak", "Oak", "Oak"]), "hour": [0, 6, 12, 18]},
    )


def taxis(n: int = 8) -> xr.DataArray:
    """Count the trips that begin in each square of a small map."""
    centres = np.arange(n) + 0.5
    return xr.DataArray(
        scattered(n * n, 50, 35).reshape(n, n) * (scattered(n * n, 3, 36).reshape(n, n) == 0),
        dims=["y", "x"],
        coords={"y": ("y", centres, {"units": "km"}), "x": ("x", centres * 2, {"units": "km"})},
        name="trips",
    )


def ages() -> xr.DataArray:
    """Count people by state and interval of age."""
    intervals = pd.IntervalIndex.from_breaks([0, 10, 18, 25, 40, 55, 65, 80, 120], closed="left")
    return xr.DataArray(
        scattered(24, 300, 37).reshape(3, 8),
        dims=["state", "age"],
        coords={"state": ["CA", "NY", "WA"], "age": intervals},
    )

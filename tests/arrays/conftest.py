"""Arrays and datasets that several tests release."""

import importlib

import numpy as np
import pandas as pd
import pytest
import xarray as xr

BY = ["state", "county", "city"]


@pytest.fixture
def cube() -> xr.DataArray:
    """Visits by month and city, neither of which is sorted."""
    cities = pd.DataFrame(
        {
            "state": ["WA", "CA", "CA", "NY", "CA", "NY", "WA"],
            "county": ["King", "Alameda", "Fresno", "Kings", "Alameda", "Kings", "King"],
            "city": ["Seattle", "Oakland", "Fresno", "Brooklyn", "Berkeley", "Albany", "Kent"],
        }
    )
    counts = np.random.default_rng(3).poisson(20, (3, 7))
    return xr.DataArray(
        counts,
        dims=["month", "city"],
        coords={
            "month": [3, 1, 2],
            "season": ("month", ["spring", "winter", "winter"]),
            "year": 2024,
            **{key: ("city", cities[key].to_numpy(object)) for key in BY},
        },
        name="visits",
    )


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list:
    """What `measure` is given: the exact values and the noise scale of each level."""
    module, calls = importlib.import_module("pandas_dptree.plans.execute"), []
    original = module.measure

    def spy(noise, levels, noise_scales, source):
        calls.extend(zip(levels, noise_scales, strict=True))
        return original(noise, levels, noise_scales, source)

    monkeypatch.setattr(module, "measure", spy)
    return calls


@pytest.fixture
def world() -> xr.DataArray:
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


@pytest.fixture
def hospitals() -> xr.Dataset:
    """Counts and values by city, some of them by month or by age as well."""
    rng = np.random.default_rng(3)
    return xr.Dataset(
        {
            "visits": (("month", "city"), rng.poisson(40, (3, 4))),
            "deaths": ("city", rng.poisson(3, 4)),
            "cost": (("city", "age"), rng.gamma(2, 20, (4, 2))),
        },
        coords={
            "city": ["Fresno", "Oakland", "Kent", "Seattle"],
            "state": ("city", ["CA", "CA", "WA", "WA"]),
            "month": [1, 2, 3],
            "season": ("month", ["winter", "winter", "spring"]),
            "year": 2024,
        },
    )

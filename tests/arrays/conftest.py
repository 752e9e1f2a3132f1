"""Arrays and datasets that several tests release."""

import importlib

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from tests.helpers_arrays import visits_of_the_world

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
    return visits_of_the_world()


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

"""Records that were released, and mistakes in releasing them."""

import numpy as np
import pandas as pd
import xarray as xr

import pandas_dptree as dpt

FACTOR = dpt.Multiplicative(alpha=0.5, threshold=2000)

EMPTY = "The released table is nearly empty"

N = 3000


def records(**changes):
    """Make records that every release below finds something in, but for what is changed."""
    row = np.arange(N)
    frame = pd.DataFrame(
        {
            "state": np.where(row % 3 == 0, "CA", "OR"),
            "zip": [f"{501 + each % 3:05}" for each in row],
            "cost": row % 100 + 50.0,
            "date": pd.Timestamp("2024-01-01") + pd.to_timedelta(row % 300, "D"),
            "lat": row % 40 + 10.0,
            "lon": row % 40 + 100.0,
            "flag": row % 2 == 0,
            "person": row,
        }
    )
    return frame.assign(**changes)


STATES = pd.DataFrame({"state": ["CA", "OR"]})
DOMAIN = dpt.Domain.from_frame(STATES, by="state")


def seeded(seed=0):
    return {"rng": np.random.default_rng(seed)}


CELLS = xr.DataArray(
    np.full((4, 6, 5), 20), dims=["city", "month", "age"], coords={"city": list("abcd")}, name="visits"
)

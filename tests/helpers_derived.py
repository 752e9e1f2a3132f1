"""A small ragged hierarchy with known counts, released many times, for numbers derived from tables."""

import numpy as np
import pandas as pd

import pandas_dptree as dpt
from tests.helpers_random import rng

KEYS = ["state", "county", "town"]

PLACES = pd.DataFrame(
    [("AZ", None, None), ("NV", None, None), ("TX", "x", None)]
    + [("CA", county, f"{county}{town}") for county in "abc" for town in range(4)]
    + [("NY", "k", "k0"), ("NY", "l", "l0"), ("NY", "l", "l1")],
    columns=KEYS,
)

SIZES = np.array([400, 0, 150, *(40 * n for n in range(1, 13)), 90, 30, 300])

RECORDS = PLACES.loc[np.repeat(np.arange(len(PLACES)), SIZES)].assign(cost=3.0).reset_index(drop=True)

DOMAIN = dpt.Domain.from_frame(PLACES, by=KEYS)

NOISES = [{"epsilon": 0.3, "split": "uniform"}, {"rho": 0.02, "split": "uniform"}]


def counts(seed=0, **options):
    """Release the counts of the records."""
    given = {"keep": ["linear"], "epsilon": 1.0, "split": "uniform", **options}
    if "rho" in options:
        del given["epsilon"]
    return RECORDS.dp.tree_counts(KEYS, domain=DOMAIN, rng=rng(seed), **given)


def truth():
    """The exact count of each row of the table."""
    shown = counts()
    parts = [RECORDS.groupby(KEYS[:depth], dropna=False).size() for depth in range(1, 4)]
    found = [len(RECORDS)]
    for row in shown.iloc[1:].itertuples():
        depth = 1 + KEYS.index(row.level)
        keys = tuple(getattr(row, key) for key in KEYS[:depth])
        found.append(int(parts[depth - 1].get(keys if depth > 1 else keys[0], 0)))
    return np.array(found)

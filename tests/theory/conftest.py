"""A released table and the truth."""

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt


@pytest.fixture
def places():
    return pd.DataFrame(
        {"state": ["CA", "CA", "NY", "WA"], "county": [1, 2, 1, None]}, columns=["state", "county"]
    ).convert_dtypes()


@pytest.fixture
def table(places):
    records = pd.DataFrame({"state": ["CA"] * 9 + ["NY"], "county": [1] * 4 + [2] * 5 + [1]})
    return dpt.tree_counts(
        records, ["state", "county"], domain=places, epsilon=1.0, rng=np.random.default_rng(0)
    )


@pytest.fixture
def truth():
    index = pd.MultiIndex.from_tuples([("NY", 1), ("CA", 2), ("CA", 1)], names=["state", "county"])
    return pd.Series([1, 5, 4], index=index)

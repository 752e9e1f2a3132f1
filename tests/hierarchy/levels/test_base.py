"""A new kind of derived levels is one class."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import pandas_dptree as dpt
from pandas_dptree.errors import ColumnsError
from pandas_dptree.hierarchy.levels.base import DerivedLevels
from pandas_dptree.hierarchy.levels.read_as import Numbers
from tests.helpers_levels import LIBRARIES


class Thousands(DerivedLevels[dpt.Domain]):
    """The smallest kind of levels: the thousands of a number, from 0 to 3."""

    pitfall = "numbers of another kind"
    columns = ("pay",)
    names = ("thousands",)
    definition = ("thousands",)
    read_as = Numbers()
    domain = dpt.Domain.from_frame(pd.DataFrame({"thousands": range(4)}), by=["thousands"])

    def find(self, pay):
        return np.where((pay >= 0) & (pay < 4000), np.nan_to_num(pay) // 1000, -1).astype(np.int64)


@pytest.mark.parametrize("build", LIBRARIES.values(), ids=LIBRARIES)
def test_a_new_kind_of_levels_is_a_class_of_its_own(build):
    records = build(pd.DataFrame({"sex": list("fmfmf"), "pay": [500.0, 999, 3000, 4000, np.nan]}))
    exact = {"epsilon": 1e4, "rng": np.random.default_rng(0)}
    alone = dpt.tree_counts(records, Thousands(), **exact)
    assert alone["count"].tolist() == [3, 2, 0, 0, 1]
    both = dpt.tree_counts(records, ["sex", Thousands()], domain=pd.DataFrame({"sex": list("fm")}), **exact)
    assert both["count"].tolist() == [3, 2, 1, 1, 0, 0, 1, 1, 0, 0, 0]
    assert Thousands().paths()["thousands"].tolist() == [0, 1, 2, 3]
    with pytest.raises(ColumnsError, match="has no numbers in the columns"):
        dpt.tree_counts(
            build(pd.DataFrame({"pay": pd.to_datetime(["2024-01-01"])})), [Thousands()], epsilon=1
        )


def test_a_new_kind_of_levels_is_made_of_arrays_as_well():
    array = xr.DataArray([1, 2, 4], coords={"pay": [500, 1000, 9000]}, dims="pay")
    tree = dpt.arrays.tree_counts(array, [Thousands()], epsilon=1e4, rng=np.random.default_rng(0))
    assert tree["thousands"]["count"].values.tolist() == [1, 2, 0, 0]

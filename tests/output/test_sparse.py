"""The released table of an implicit tree: its levels, keys and remainders."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers_implicit import NUMBERS, TREES, released


@pytest.mark.parametrize("tree", TREES)
def test_the_columns_are_the_levels_and_their_values(tree):
    table = released(tree)
    keys = list(tree.level_names[1:])
    assert list(table.columns) == ["level", *keys, "count", "std_error", "max_error", "other"]
    key_type = "UInt64" if tree is NUMBERS else str(pd.Series(dtype="str").dtype)
    assert [str(table[key].dtype) for key in keys] == [key_type] * len(keys)
    assert [str(table[name].dtype) for name in ("count", "std_error", "max_error", "other")] == [
        "int64", "float64", "int64", "bool",
    ]  # fmt: skip
    assert table["level"].cat.ordered and table["level"].is_monotonic_increasing
    measured = released(tree, keep_measurements=True)
    assert list(measured.columns) == [*table.columns, "measurement", "noise_scale"]
    assert measured["measurement"].isna().equals(measured["noise_scale"].isna())
    pd.testing.assert_frame_equal(measured[table.columns], table)


@pytest.mark.parametrize("tree", TREES)
def test_keys_lead_down_to_each_node_and_remainders_lack_the_last(tree):
    table = released(tree)
    keys = list(tree.level_names[1:])
    depth = table["level"].cat.codes.to_numpy()
    held = table[keys].notna().to_numpy()
    expected = np.arange(len(keys)) < (depth - table["other"].to_numpy())[:, None]
    assert (held == expected).all()
    assert not table.duplicated(["level", *keys]).any()
    assert table["other"].any()


@pytest.mark.parametrize("tree", TREES)
def test_the_deepest_nodes_and_all_remainders_add_up_to_the_total(tree):
    table = released(tree)
    parts = table["level"].eq(tree.level_names[-1]) | table["other"]
    assert table.loc[parts, "count"].sum() == table["count"].iloc[0]

"""The released table of an implicit tree: its levels, keys and remainders."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers_implicit import BOUNDS, NUMBERS, TREES, ZIPS, released


@pytest.mark.parametrize("mechanism", BOUNDS)
@pytest.mark.parametrize("tree", TREES)
def test_the_columns_are_the_levels_and_their_values(tree, mechanism):
    table = released(tree, mechanism=mechanism)
    keys = list(tree.level_names[1:])
    values = ["count", "std_error", BOUNDS[mechanism], "other"]
    assert list(table.columns) == ["level", *keys, *values]
    key_type = "UInt64" if tree is NUMBERS else str(pd.Series(dtype="str").dtype)
    assert [str(table[key].dtype) for key in keys] == [key_type] * len(keys)
    assert [str(table[name].dtype) for name in values] == ["int64", "float64", "int64", "bool"]
    assert table["level"].cat.ordered and table["level"].is_monotonic_increasing
    measured = released(tree, mechanism=mechanism, keep_measurements=True)
    assert list(measured.columns) == [*table.columns, "measurement", "noise_scale"]
    assert measured["measurement"].isna().equals(measured["noise_scale"].isna())
    pd.testing.assert_frame_equal(measured[table.columns], table)


@pytest.mark.parametrize("mechanism", BOUNDS)
@pytest.mark.parametrize("tree", TREES)
def test_keys_lead_down_to_each_node_and_remainders_lack_the_last(tree, mechanism):
    table = released(tree, mechanism=mechanism)
    keys = list(tree.level_names[1:])
    depth = table["level"].cat.codes.to_numpy()
    held = table[keys].notna().to_numpy()
    expected = np.arange(len(keys)) < (depth - table["other"].to_numpy())[:, None]
    assert (held == expected).all()
    assert not table.duplicated(["level", *keys]).any()
    assert table["other"].any()


@pytest.mark.parametrize("mechanism", BOUNDS)
@pytest.mark.parametrize("tree", TREES)
def test_the_deepest_nodes_and_all_remainders_add_up_to_the_total(tree, mechanism):
    table = released(tree, mechanism=mechanism)
    parts = table["level"].eq(tree.level_names[-1]) | table["other"]
    assert table.loc[parts, "count"].sum() == table["count"].iloc[0]


@pytest.mark.parametrize("mechanism", BOUNDS)
def test_variances_of_a_remainder_are_those_of_the_node_and_of_what_is_shown_of_it(mechanism):
    table = released(ZIPS, mechanism=mechanism)
    nodes, rests = table[~table["other"]], table[table["other"]]
    variances = nodes["std_error"] ** 2
    assert nodes["zip/1"].dropna().unique().tolist() == ["1", "9"] and len(rests) == 3
    families = [(nodes["level"] == "total", nodes["level"] == "zip/1", rests["level"] == "zip/1")]
    for first in ("1", "9"):
        below = nodes["zip/1"].eq(first)
        families.append(
            (
                below & (nodes["level"] == "zip/1"),
                below & (nodes["level"] == "zip/3"),
                rests["zip/1"] == first,
            )
        )
    assert [int(children.sum()) for _, children, _ in families] == [2, 1, 2]
    for node, children, rest in families:
        expected = variances[node].item() + variances[children].sum()
        np.testing.assert_allclose(rests.loc[rest, "std_error"].item() ** 2, expected)

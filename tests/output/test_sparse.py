"""The released table of an implicit tree: its levels, keys and remainders."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pandas_dptree as dpt
from tests.helpers_implicit import BOUNDS, NUMBERS, TREES, ZIPS, released
from tests.strategies import objects


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
    measured = released(tree, mechanism=mechanism, keep=["measurements"])
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


# Private keys


PLACES = [("p", "u"), ("p", "v"), ("q", None)]
DOMAIN = dpt.Domain.from_frame(pd.DataFrame(PLACES, columns=["k", "l"]), by=["k", "l"])


@st.composite
def tables(draw):
    """Draw records with a few heavy private keys, and a released table with little noise."""
    keys = st.sampled_from(["", "B", "b", None])
    heavy = draw(st.lists(st.tuples(st.sampled_from(PLACES), keys, keys, st.integers(1, 60)), max_size=8))
    rows = [(*place, a, b) for place, a, b, count in heavy for _ in range(count)]
    frame = pd.DataFrame({name: objects([row[i] for row in rows]) for i, name in enumerate("klab")})
    public = draw(st.sampled_from([["k", "l"], []]))
    table = frame.dp.tree_counts(
        [*public, "a", "b"],
        epsilon=draw(st.sampled_from([2.0, 20.0, 1e4])),
        delta=draw(st.sampled_from([0.3, 1e-4])),
        domain=DOMAIN if public else None,
        private_keys=["a", "b"],
        privacy_unit=dpt.ROWS,
        mechanism=draw(st.sampled_from([*BOUNDS])),
        confidence=1 - 1e-9,
        keep=["measurements"],
        rng=np.random.default_rng(draw(st.integers(0, 2**32))),
    )
    return frame, [*public, "a", "b"], public, table


@settings(max_examples=10)
@given(tables())
def test_tables_of_private_keys_add_up_and_are_right_within_their_bounds(drawn):
    frame, by, public, table = drawn
    provenance = table.attrs["dp"]
    [bound] = {*BOUNDS.values()} & {*table.columns}
    assert table["count"].dtype == np.int64 and (table["count"] >= 0).all()
    parts = table["level"].eq("b") | table["other"]
    assert table.loc[parts, "count"].sum() == table["count"].iloc[0]
    true = {name: Counter() for name in ["total", *by]}
    for keys in frame[by].itertuples(index=False):
        for depth, name in enumerate(true):
            if name not in ("a", "b") or None not in keys[len(public) : depth]:
                true[name][tuple(keys[:depth])] += 1
    shown: dict = {name: {} for name in true}
    for row in table.to_dict("records"):
        keys = by[: list(true).index(row["level"])]
        path = tuple(None if pd.isna(row[key]) else row[key] for key in keys)
        assert (path, row["other"]) not in shown[row["level"]]
        shown[row["level"]][path, row["other"]] = row
    above = None
    for name, rows in shown.items():
        nodes = {path: row for (path, other), row in rows.items() if not other}
        for (path, other), row in rows.items():
            exact = true[name][path]
            if other:
                exact = true[above][path[:-1]] - sum(
                    true[name][each] for each in nodes if each[:-1] == path[:-1]
                )
            elif name in ("a", "b"):
                assert exact >= 1
                assert pd.isna(row["measurement"]) or row["measurement"] > provenance["shown_above"][name]
            assert abs(exact - row["count"]) <= row[bound]
        if name in provenance.get("largest_unseen", ()):
            most = provenance["largest_unseen"][name]
            assert all(size <= most for path, size in true[name].items() if path not in nodes)
        elif name in public:
            assert nodes.keys() == {place[: by.index(name) + 1] for place in PLACES} - {("q", None)}
        above = name

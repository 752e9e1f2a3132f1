"""Released trees of datasets for crossed hierarchies: the numbers of the frame, along real dimensions."""

import numpy as np
import pytest
import xarray as xr

import pandas_dptree as dpt
from pandas_dptree.hierarchy.crossed_domain import cross
from pandas_dptree.hierarchy.levels.combine import derived_domain
from pandas_dptree.output.crossed_datatree import check_crossed_groups, crossed_tree
from tests.helpers_crossed_tables import KEYS, domain, table_of

AXES = {"axes": {axis: list(keys) for axis, keys in KEYS.items()}}


def tree_of(crossed, leaves, centres=None, **more):
    sums = crossed.tree.roll_up(leaves)
    errors = [np.array([1.5 + level]) for level in range(len(sums))]
    axes = {"axes": {axis: list(keys) for axis, keys in crossed.keys.items()}}
    described = {"kind": {"long_name": "kind of thing"}}
    values = {"count": sums, "std_error": errors, **more}
    return crossed_tree(crossed, values, xr.Dataset(), axes, described, centres or [{}] * len(axes["axes"]))


SOME = [
    {}, {"place": "state"}, {"what": "size_level"}, {"when": "year", "age": "years"},
    {"place": "county", "age": "years"}, {"place": "state", "when": "year", "what": "kind"},
    {"place": "county", "when": "month", "what": "size_level", "age": "years"},
]  # fmt: skip


def test_groups_hold_the_numbers_of_the_frame():
    crossed = domain().with_margins(SOME)
    leaves = 1 + np.arange(crossed.tree.n_leaves)
    table, tree = table_of(crossed, leaves), tree_of(crossed, leaves)
    assert len(tree.children) == len(crossed.tree.shown) == len(SOME)
    for margin in crossed.tree.shown:
        name = crossed.level_names[crossed.tree.level_of(margin)]
        group = tree[name.replace(" × ", ",")].to_dataset()
        rows = table.dp.margin(name)
        dims = [keys[level - 1] for keys, level in zip(crossed.keys.values(), margin, strict=True) if level]
        assert list(group["count"].dims) == dims and group["count"].dtype == np.int64
        assert group["count"].values.ravel().tolist() == rows["count"].tolist()
        assert group["std_error"].dims == group["count"].dims
        assert (group["std_error"].values.ravel() == rows["std_error"]).all()
        for keys, level in zip(crossed.keys.values(), margin, strict=True):
            for key in keys[:level]:
                assert group[key].dims == (keys[level - 1],) and key in group.xindexes
                along = np.unique(group["count"].values) if not dims else group[key].values
                assert set(along) == set(rows.reset_index()[key].astype(object))
        assert "kind" not in group or group["kind"].attrs == {"long_name": "kind of thing"}
    counties = tree["county,years"].to_dataset()["count"].sel(state="CA")
    assert counties["county"].values.tolist() == ["Kern", "Marin"]
    expected = table.dp.margin(place="county", age="years").loc["CA", "count"]
    assert counties.values.ravel().tolist() == expected.tolist()


def test_a_margin_or_a_level_of_a_tree(tmp_path):
    crossed = domain().with_margins([{"place": "county", "what": "kind"}, {}])
    tree = tree_of(crossed, np.arange(crossed.tree.n_leaves))
    assert list(tree.children) == ["total", "county,kind"]
    expected = tree["county,kind"].to_dataset()
    for given in (["kind", "county"], "county × kind", {"what": "kind", "place": "county"}):
        xr.testing.assert_identical(tree.dp.margin(given), expected)
    xr.testing.assert_identical(tree.dp.margin(place="county", what="kind"), expected)
    xr.testing.assert_identical(tree.dp.margin("county", "kind"), expected)
    assert tree.dp.margin()["count"].ndim == 0
    with pytest.raises(
        dpt.ArgumentError, match=r"(?s)`levels` is not in the tree: 'kind'.*it has \['total', 'county,kind"
    ):
        tree.dp.margin(what="kind")
    with pytest.raises(
        dpt.ArgumentError, match=r"(?s)has no level 'knd' of the axis 'what'.*did you mean 'kind'"
    ):
        tree.dp.margin(what="knd")
    with pytest.raises(dpt.ArgumentError, match="cannot be given with levels by keywords"):
        tree.dp.margin("kind", place="county")
    with pytest.raises(dpt.ArgumentError, match=r"(?s)crossed hierarchies.*tree\.dp\.margin\({'place'"):
        tree.dp.level("county")
    for stated in ({}, {"dp": "{"}, {"dp": 3}, {"dp": "[]"}):
        with pytest.raises(dpt.ArgumentError, match="not a released tree"):
            xr.DataTree(xr.Dataset(attrs=stated)).dp.margin()
    one = xr.DataArray([3, 4], dims="k", coords={"k": ["a", "b"]}).dp.tree_counts(["k"], epsilon=1.0)
    xr.testing.assert_identical(one.dp.level("k"), one["k"].to_dataset())
    with pytest.raises(dpt.ArgumentError, match=r"(?s)has no margins.*tree\.dp\.level"):
        one.dp.margin(k="k")
    with pytest.raises(dpt.ArgumentError, match=r"(?s)`name` is not in the tree: 'K'.*did you mean 'k'"):
        one.dp.level("K")
    assert (dir(tree.dp), dir(one.dp), dir(xr.DataTree().dp)) == (["margin"], ["level"], [])


def test_a_quadtree_has_its_own_dimensions():
    squares = derived_domain([dpt.quadtree("y", "x", bounds=((0, 4), (0, 4)), depth=2)])
    crossed = cross(where=squares, sex=dpt.Tree.from_branching([2]))
    leaves = np.arange(32)
    centres = [
        {"y": [np.array([1.0, 3]), np.arange(4) + 0.5], "x": [np.array([1.0, 3]), np.arange(4) + 0.5]},
        {},
    ]
    masked = [np.ma.array(np.arange(size), mask=np.arange(size) == 1) for size in crossed.tree.level_sizes]
    tree = tree_of(crossed, leaves, centres, measurement=masked)
    frame = table_of(crossed, leaves)
    alone, both = tree[crossed.keys["where"][1]], tree[f"{crossed.keys['where'][1]},sex"]
    assert both["count"].dims == ("y", "x", "sex") and both["y"].values.tolist() == [0.5, 1.5, 2.5, 3.5]
    assert (both["count"].sum("sex") == alone["count"]).all()
    assert sorted(both["count"].values.ravel()) == sorted(
        frame.dp.margin(where=crossed.keys["where"][1], sex="sex")["count"]
    )
    assert np.isnan(tree["sex"]["measurement"].values).tolist() == [False, True]


@pytest.mark.parametrize("suffix", ["nc", "zarr"])
def test_files_hold_the_groups(suffix, tmp_path):
    pytest.importorskip({"nc": "netCDF4", "zarr": "zarr"}[suffix])
    crossed = domain().with_margins([{"place": "county", "what": "size_level"}, {"when": "year"}])
    tree = tree_of(crossed, np.arange(crossed.tree.n_leaves))
    path = tmp_path / f"tree.{suffix}"
    _ = tree.to_netcdf(path) if suffix == "nc" else tree.to_zarr(path, zarr_format=2)
    with xr.open_datatree(path, engine="netcdf4" if suffix == "nc" else "zarr") as back:
        for name, group in tree.children.items():
            assert back[name]["count"].values.tolist() == group["count"].values.tolist()
        assert back.dp.margin(when="year")["year"].values.tolist() == [2023, 2024]


def test_names_of_levels_that_cannot_be_in_names_of_groups():
    for name, message in (("a,b", "with commas"), ("a/b", "cannot be groups"), (3, "cannot be groups")):
        crossed = cross(one=dpt.Domain.from_frame(["x"], by=[name]))
        with pytest.raises(dpt.ColumnsError, match=message):
            check_crossed_groups(crossed)

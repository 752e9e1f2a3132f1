"""Quadtrees of arrays: maps of counts on coarser grids."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import pandas_dptree as dpt
from pandas_dptree import ArgumentError
from tests.helpers_arrays import EXACT, level, picture
from tests.helpers_cases import each


def test_levels_of_a_map_are_coarser_grids() -> None:
    array = picture(8, 8, y=np.arange(8) * 10, x=np.arange(8)[::-1])
    tree = array.dp.tree_counts(dpt.quadtree("y", "x", depth=3), epsilon=EXACT)
    assert list(tree.children) == ["total", "quad_1", "quad_2", "quad_3"]
    assert level(tree, "total")["count"].item() == array.sum()
    for depth in (1, 2, 3):
        group = level(tree, f"quad_{depth}")
        step = 2 ** (3 - depth)
        assert dict(group.sizes) == {"y": 2**depth, "x": 2**depth}
        assert set(group.coords) == {"y", "x"} and set(group) == {"count", "std_error"}
        assert group["count"].equals(array.coarsen(y=step, x=step).sum())  # coordinates included
    assert level(tree, "quad_3")["count"].sel(y=70, x=0).item() == array.sel(y=70, x=0).item()


def test_levels_of_a_map_have_the_coordinates_of_coarsened_cells() -> None:
    trips = dpt.datasets.taxi_trips(n_trips=1000)
    tree = trips.dp.tree_counts(dpt.quadtree("y", "x", depth=8), epsilon=EXACT)
    for depth in range(1, 9):
        step = 2 ** (8 - depth)
        coarser = trips.coarsen(y=step, x=step).sum()
        group = level(tree, f"quad_{depth}")
        xr.testing.assert_equal(group["count"], coarser)  # to the last digit
        assert group["x"].attrs == {"units": "km"} == group["y"].attrs


def test_keys_keep_their_attributes_and_cells_do_not() -> None:
    array = picture(4, 4).assign_attrs(largest="seventeen")
    array["row"] = ("y", list("aabb"), {"long_name": "the row"})
    tree = array.dp.tree_counts(["row"], epsilon=1.0)
    assert level(tree, "row")["row"].attrs == {"long_name": "the row"}
    assert not level(tree, "row")["count"].attrs and "seventeen" not in str(tree.attrs)


@pytest.mark.parametrize(
    ("rows", "columns", "depth"),
    [
        (40, 50, 5),
        (5, 9, 2),
        (3, 2, 1),
        (33, 63, 5),
        pytest.param(200, 300, 7, marks=pytest.mark.slow),
        pytest.param(129, 255, 7, marks=pytest.mark.slow),
    ],
)
def test_uneven_maps(rows: int, columns: int, depth: int) -> None:
    array = picture(rows, columns, y=np.linspace(50, 40, rows))
    tree = array.dp.tree_counts(dpt.quadtree("y", "x", depth=depth), epsilon=EXACT)
    for at in range(1, depth + 1):
        n = 2**at
        group = level(tree, f"quad_{at}")
        row, column = np.arange(rows) * n // rows, np.arange(columns) * n // columns
        expected = np.zeros((n, n), dtype=int)
        for y, x in np.ndindex(rows, columns):
            expected[row[y], column[x]] += array.values[y, x]
        assert np.array_equal(group["count"], expected)
        assert np.ptp(np.bincount(row)) <= 1 and np.ptp(np.bincount(column)) <= 1
        middles = [array["y"].values[row == block][[0, -1]].mean() for block in range(n)]
        assert np.allclose(group["y"], middles) and "x" not in group.coords


@pytest.mark.parametrize("consistency", ["none", "linear", "nonnegative", "integer"])
def test_cells_and_bounds_give_the_same_map(consistency: str) -> None:
    """Where the parts of the cells are those of the coordinates, and in other dimensions as well."""
    array = xr.concat([picture(16, 8), picture(8, 16).transpose("x", "y").rename(y="x", x="y")], "month")
    array = array.assign_coords(y=np.arange(16) + 0.5, x=np.arange(8) + 0.5)
    options = {
        "epsilon": 1.0, "consistency": consistency, "confidence": 0.95, "keep": ["measurements"],
        "split": "uniform",
    }  # fmt: skip
    one, other = (
        array.dp.tree_counts(
            dpt.quadtree("y", "x", depth=3, bounds=bounds), **options, rng=np.random.default_rng(4)
        )
        for bounds in (None, ((0, 16), (0, 8)))
    )
    plans = [json.loads(tree.attrs.pop("dp")) for tree in (one, other)]
    digests = {plan.pop("digest") for plan in plans}  # of plans for different domains
    assert one.identical(other) and plans[0] == plans[1] and len(digests) == 2
    finest = level(one, "quad_3")
    assert finest["count"].dims == ("month", "y", "x") and finest["std_error"].dims == ("y", "x")
    if consistency in ("linear", "integer"):
        above = finest["count"].coarsen(y=2, x=2).sum()
        assert np.allclose(above, level(one, "quad_2")["count"])
        assert np.allclose(finest["count"].sum(["y", "x"]), level(one, "total")["count"])


def test_maps_with_cells_out_of_bounds(world: xr.DataArray) -> None:
    array = world.sum(["city", "time"])
    tree = array.dp.tree_counts(dpt.quadtree("y", "x", depth=1, bounds=((1, 3), (0, 4))), epsilon=EXACT)
    inside = array.sel(y=slice(3, 1), x=slice(0, 4))
    assert level(tree, "total")["count"] == inside.sum()
    group = level(tree, "quad_1")
    assert group["y"].values.tolist() == [1.5, 2.5] and group["x"].values.tolist() == [1.0, 3.0]
    expected = inside.isel(y=slice(None, None, -1)).coarsen(x=2).sum()
    assert group["count"].values.tolist() == expected.values.tolist()
    plan = array.dp.plan(dpt.quadtree("y", "x", depth=1, bounds=((1, 3), (0, 4))), epsilon=EXACT)
    with pytest.raises(ArgumentError, match="no cell with a key of the plan's domain"):
        array.assign_coords(y=array["y"] + 10).dp.release(plan)


def test_points_become_a_map() -> None:
    """Both coordinates may lie along one dimension."""
    array = xr.DataArray(
        [[1, 2, 4], [8, 16, 32]], dims=["hour", "station"],
        coords={"lat": ("station", [0.5, 1.5, 2.5]), "lon": ("station", [1.5, 0.5, 0.5])},
    )  # fmt: skip
    squares = dpt.quadtree("lat", "lon", depth=1, bounds=((0, 2), (0, 2)))
    group = level(array.dp.tree_counts(squares, epsilon=EXACT), "quad_1")
    assert group["count"].dims == ("hour", "lat", "lon")
    assert group["count"].values.tolist() == [[[0, 1], [2, 0]], [[0, 8], [16, 0]]]


def test_sums_over_a_map() -> None:
    array = picture(4, 4).astype(float).rename("kwh") / 2
    tree = array.dp.tree_sums(dpt.quadtree("y", "x", depth=1), bounds=(0, 2), granularity=0.5, epsilon=EXACT)
    expected = array.clip(0, 2).coarsen(y=2, x=2).sum()
    assert level(tree, "quad_1")["kwh"].values.tolist() == expected.values.tolist()


def test_maps_with_known_counts() -> None:
    array, squares = picture(4, 4), dpt.quadtree("y", "x", depth=2)
    quarters = pd.Series([5, 0, 7, 9], index=pd.Index(["0", "1", "2", "3"], name="quad_1"))
    tree = array.dp.tree_counts(squares, epsilon=1.0, known={"quad_1": quarters})
    assert level(tree, "quad_1")["count"].values.tolist() == [[5, 0], [7, 9]]
    assert level(tree, "total")["count"] == 21
    assert not level(tree, "quad_2")["count"].isel(y=[0, 1], x=[2, 3]).any()


@given(depth=st.integers(1, 4), data=st.data())
def test_grids_are_where_points_are_found(depth: int, data) -> None:
    squares = dpt.quadtree("y", "x", depth=depth, bounds=((0, 1), (0, 1)))
    at = data.draw(st.integers(1, depth))
    y, x = (data.draw(st.floats(0, 1, exclude_max=True)) for _ in "yx")
    node = squares.find(np.array([y]), np.array([x]))[0] >> 2 * (depth - at)
    grid = squares.grid(at, np.arange(4**at))
    assert grid[int(y * 2**at), int(x * 2**at)] == node
    assert squares.grid(at, np.arange(3 * 4**at).reshape(3, -1))[1, 0, 0] == 4**at


@each("chunks", [{"y": 3}, {"x": 4, "month": 1}, {"y": 2, "x": 5}])
@each("bounds", [None, ((1, 8), (2, 9))])
def test_maps_of_dask(chunks: dict, bounds) -> None:
    pytest.importorskip("dask")
    array = picture(9, 10, y=np.arange(9), x=np.arange(10)).expand_dims(month=[1, 2]).transpose("y", ...)
    squares = dpt.quadtree("y", "x", depth=3, bounds=bounds)
    one, other = (
        each.dp.tree_counts(squares, epsilon=1.0, rng=np.random.default_rng(2))
        for each in (array, array.chunk(chunks))
    )
    assert one.identical(other)


def test_the_largest_depth_is_named() -> None:
    for rows, columns, depth in [(200, 300, 7), (255, 1024, 7), (256, 256, 8), (2, 5, 1), (5, 2, 1)]:
        with pytest.raises(ArgumentError, match=f"at most depth={depth}") as raised:
            picture(rows, columns).dp.plan(dpt.quadtree("y", "x", depth=depth + 1), epsilon=1.0)
        assert "Hint:" in str(raised.value)
        picture(rows, columns).dp.plan(dpt.quadtree("y", "x", depth=depth), epsilon=1.0)
    with pytest.raises(ArgumentError, match="at least 2 cells"):
        picture(1, 8).dp.plan(dpt.quadtree("y", "x", depth=1), epsilon=1.0)


def test_frames_need_the_bounds_of_a_quadtree() -> None:
    frame, squares = pd.DataFrame({"y": [1.0], "x": [2.0]}), dpt.quadtree("y", "x", depth=1)
    for call in (
        lambda: frame.dp.tree_counts(squares, epsilon=1.0),
        lambda: dpt.derived_domain([squares]),
        lambda: squares.square("0"),
    ):
        with pytest.raises(ArgumentError, match=r"`bounds` of the quadtree 'quad' must be given"):
            call()
    plan = picture(4, 4).dp.plan(squares, epsilon=1.0)
    with pytest.raises(ArgumentError, match="divides the cells of an array"):
        plan.release(frame)


def test_a_plan_for_a_map() -> None:
    array = picture(9, 8)
    plan = array.dp.plan(dpt.quadtree("y", "x", depth=3), epsilon=1.0)
    assert plan.tree.level_sizes == (1, 4, 16, 64)
    again = pickle.loads(pickle.dumps(plan))
    one, other = (array.dp.release(each, rng=np.random.default_rng(3)) for each in (plan, again))
    assert one.identical(other)
    with pytest.raises(ArgumentError, match="divides 9 x 8 cells, but the array has 8 x 8"):
        array.isel(y=slice(1, None)).dp.release(plan)

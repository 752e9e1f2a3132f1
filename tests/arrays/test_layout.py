"""Released trees with the dimensions and coordinates of the array."""

import json

import numpy as np
import xarray as xr

from tests.helpers_arrays import EXACT, level

BY = ["state", "county", "city"]


def test_shapes(cube: xr.DataArray) -> None:
    tree = cube.dp.tree_counts(BY, epsilon=1.0)
    assert list(tree.children) == ["total", *BY]
    assert not tree.to_dataset().variables
    assert dict(tree["total"].sizes) == {"month": 3}
    assert dict(tree["county"].sizes) == {"month": 3, "county": 4}
    county = level(tree, "county")
    assert county["count"].dims == ("month", "county") and county["count"].dtype == np.int64
    assert county["std_error"].dims == ("county",)
    assert county["state"].values.tolist() == ["CA", "CA", "NY", "WA"]
    assert county["county"].values.tolist() == ["Alameda", "Fresno", "Kings", "King"]
    assert set(county.coords) == {"month", "season", "year", "state", "county"}
    assert county["month"].values.tolist() == [3, 1, 2]
    provenance = json.loads(tree.attrs["dp"])
    assert provenance["epsilon"] == 1.0 and provenance["mechanism"] == "laplace"


def test_what_is_not_measured_is_missing(cube: xr.DataArray) -> None:
    shares = {"city": 1.0}
    tree = cube.dp.tree_counts(BY, epsilon=1.0, split=shares, keep=["measurements"])
    assert np.isnan(level(tree, "state")["measurement"]).all()
    assert np.isnan(level(tree, "state")["noise_scale"]).all()


def test_several_dimensions_multiply(cube: xr.DataArray) -> None:
    tree = cube.dp.tree_counts(["state", "month"], epsilon=EXACT)
    group = level(tree, "month")
    assert dict(group.sizes) == {"month": 9}
    expected = cube.groupby("state").sum()
    for count, state, month in zip(
        group["count"].values, group["state"].values, group["month"].values, strict=True
    ):
        assert count == expected.sel(state=state, month=month)


def test_coordinates_of_other_dimensions_are_kept_apart(cube: xr.DataArray) -> None:
    tree = cube.dp.tree_counts(["season", "month"], epsilon=EXACT)
    assert dict(tree["season"].sizes) == {"city": 7, "season": 2}
    assert level(tree, "season")["count"].sel(season="winter").values.tolist() == (
        cube.sel(month=[1, 2]).sum("month").values.tolist()
    )
    assert "state" in level(tree, "season").coords


def test_several_other_dimensions_and_one_without_labels() -> None:
    array = xr.DataArray(np.arange(24).reshape(2, 3, 4), dims=["a", "place", "b"])
    tree = array.dp.tree_counts(["place"], epsilon=EXACT)
    group = level(tree, "place")
    assert group["count"].dims == ("a", "b", "place")
    assert group["count"].transpose("a", "place", "b").values.tolist() == array.values.tolist()
    assert set(group.coords) == {"place"}
    assert level(tree, "total")["count"].values.tolist() == array.sum("place").values.tolist()

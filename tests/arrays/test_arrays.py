"""Arrays of counts: the tables are those of frames and of xarray, one tree for each other index."""

import importlib
import inspect
import itertools
import json
import pickle
import re
import time

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import pandas_dptree as dpt
from pandas_dptree import ArgumentError, ColumnsError, DomainError, Tree, arrays
from pandas_dptree.estimation.consistency import estimate
from pandas_dptree.estimation.least_squares import propagate
from pandas_dptree.hierarchy.levels.prefixes import prefixes
from pandas_dptree.hierarchy.levels.quadtree import Quadtree
from pandas_dptree.ingest.cells import sum_cells
from pandas_dptree.privacy.quantity import COUNT

BY = ["state", "county", "city"]
EXACT = 1e6
"""An epsilon that leaves no noise."""


@pytest.fixture
def cube() -> xr.DataArray:
    """Visits by month and city, neither of which is sorted."""
    cities = pd.DataFrame(
        {
            "state": ["WA", "CA", "CA", "NY", "CA", "NY", "WA"],
            "county": ["King", "Alameda", "Fresno", "Kings", "Alameda", "Kings", "King"],
            "city": ["Seattle", "Oakland", "Fresno", "Brooklyn", "Berkeley", "Albany", "Kent"],
        }
    )
    counts = np.random.default_rng(3).poisson(20, (3, 7))
    return xr.DataArray(
        counts,
        dims=["month", "city"],
        coords={
            "month": [3, 1, 2],
            "season": ("month", ["spring", "winter", "winter"]),
            "year": 2024,
            **{key: ("city", cities[key].to_numpy(object)) for key in BY},
        },
        name="visits",
    )


def level(tree: xr.DataTree, name: str) -> xr.Dataset:
    return tree[name].to_dataset()


def keyed(group: xr.Dataset, name: str, by: list[str]) -> pd.Series:
    """The counts of one level, indexed as by ``groupby``."""
    return group["count"].drop_indexes(by[1:-1]).to_dataframe().reset_index().set_index(by)["count"]


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
    told = json.loads(tree.attrs["dp"])
    assert told["epsilon"] == 1.0 and told["mechanism"] == "laplace"


def test_selects_by_keys_above_the_level(cube: xr.DataArray) -> None:
    tree = cube.dp.tree_counts(BY, epsilon=EXACT)
    in_california = tree["city"]["count"].sel(state="CA")
    assert in_california["city"].values.tolist() == ["Berkeley", "Oakland", "Fresno"]
    assert in_california.sel(county="Alameda", month=1).values.tolist() == (
        cube.sel(city=["Berkeley", "Oakland"], month=1).values.tolist()
    )


@pytest.mark.parametrize("consistency", ["none", "linear", "nonnegative", "integer"])
def test_everything_that_is_asked_for(cube: xr.DataArray, consistency: str) -> None:
    tree = cube.dp.tree_counts(
        BY, epsilon=1.0, confidence=0.9, keep_measurements=True, split="uniform", consistency=consistency
    )
    plan = cube.dp.plan(BY, epsilon=1.0, split="uniform", consistency=consistency)
    for at, name in enumerate(["total", *BY]):
        group = level(tree, name)
        assert set(group) == {"count", "std_error", "lower", "upper", "measurement", "noise_scale"}
        assert (group["lower"] <= group["upper"]).all()
        assert np.allclose(group["noise_scale"], plan.noise_scales[at])
        assert np.isfinite(group["measurement"]).all()
        assert np.allclose(group["std_error"], plan.node_std_errors[at])


def test_what_is_not_measured_is_missing(cube: xr.DataArray) -> None:
    shares = {"city": 1.0}
    tree = cube.dp.tree_counts(BY, epsilon=1.0, split=shares, keep_measurements=True)
    assert np.isnan(level(tree, "state")["measurement"]).all()
    assert np.isnan(level(tree, "state")["noise_scale"]).all()


@pytest.mark.parametrize("name", BY)
def test_without_noise_it_is_groupby(cube: xr.DataArray, name: str) -> None:
    by = BY[: BY.index(name) + 1]
    tree = cube.dp.tree_counts(by, epsilon=EXACT)
    assert level(tree, "total")["count"].values.tolist() == cube.sum("city").values.tolist()
    cells = cube.to_dataframe(name="count").reset_index()
    expected = cells.groupby(["month", *by])["count"].sum()
    found = keyed(level(tree, name), name, ["month", *by])
    pd.testing.assert_series_equal(found.sort_index(), expected.sort_index(), check_index_type=False)


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


def records(array: xr.DataArray) -> pd.DataFrame:
    """One row for each record of an array."""
    cells = array.to_dataframe(name="n").reset_index()
    return cells.loc[cells.index.repeat(cells["n"])]


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 1.0},
        {"epsilon": 1.0, "delta": 1e-6, "confidence": 0.9, "keep_measurements": True},
        {"rho": 0.1, "split": "nodes", "consistency": "linear"},
        {"epsilon": 0.5, "fit": "adaptive", "neighbors": "replace"},
        {"epsilon": 0.5, "fit": "joint", "consistency": "nonnegative"},
        {"epsilon": 1.0, "known": {"total": 900}},
    ],
)
def test_arrays_and_frames_give_the_same_table(cube: xr.DataArray, options: dict) -> None:
    array = cube.isel(month=0, drop=True)
    tree = array.dp.tree_counts(BY, **options, rng=np.random.default_rng(5))
    frame = dpt.tree_counts(records(array), BY, domain="observed", **options, rng=np.random.default_rng(5))
    for name in ["total", *BY]:
        group, rows = level(tree, name), frame[frame["level"] == name]
        for column in set(frame.columns) - {"level", *BY}:
            told = group[column].values.ravel()
            assert np.array_equal(told, rows[column].to_numpy(dtype=float, na_value=np.nan), equal_nan=True)
    assert json.loads(tree.attrs["dp"]) == frame.attrs["dp"]


def test_each_tree_has_noise_of_its_own() -> None:
    array = xr.DataArray(np.full((4000, 2), 100), dims=["slice", "place"])
    tree = array.dp.tree_counts(["place"], epsilon=1.0, consistency="none", rng=np.random.default_rng(1))
    noise = level(tree, "place")["count"].values - 100.0
    assert abs(np.corrcoef(noise.T)[0, 1]) < 0.05
    assert abs(np.corrcoef(noise[1:, 0], noise[:-1, 0])[0, 1]) < 0.05
    assert np.isclose(noise.std(), level(tree, "place")["std_error"][0], rtol=0.05)


def test_the_noise_does_not_grow_with_the_number_of_trees(cube: xr.DataArray) -> None:
    for options in ({"epsilon": 1.0}, {"rho": 0.5}, {"epsilon": 1.0, "delta": 1e-6, "mechanism": "gaussian"}):
        one, many = cube.isel(month=0).dp.plan(BY, **options), cube.dp.plan(BY, **options)
        assert one.noise_scales.tolist() == many.noise_scales.tolist()


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list:
    """What `measure` is given: the exact values and the noise scale of each level."""
    module, calls = importlib.import_module("pandas_dptree.plans.execute"), []
    original = module.measure

    def spy(noise, levels, noise_scales, source):
        calls.extend(zip(levels, noise_scales, strict=True))
        return original(noise, levels, noise_scales, source)

    monkeypatch.setattr(module, "measure", spy)
    return calls


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("by", [["g", "place"], ["g"], ["slice", "g"]])
def test_sensitivity_against_every_neighbour(by: list[str], k: int, neighbors: str, seen: list) -> None:
    """Move up to k records in every way, over several trees as well, and see what is measured move."""
    base = np.array([[2, 0, 1], [0, 3, 2]])

    def levels(counts):
        array = xr.DataArray(counts, dims=["slice", "place"], coords={"g": ("place", [0, 1, 1])})
        seen.clear()
        array.dp.tree_counts(by, epsilon=1.0, max_contributions=k, neighbors=neighbors)
        return tuple(zip(*seen, strict=True))

    _, scales = levels(base)
    plan = xr.DataArray(base, dims=["slice", "place"], coords={"g": ("place", [0, 1, 1])}).dp.plan(
        by, epsilon=1.0, max_contributions=k, neighbors=neighbors
    )
    assert [np.asarray(scale).tolist() for scale in scales] == [s.tolist() for s in plan.node_noise_scales]
    cells = [None, *np.ndindex(base.shape)]
    moves = []
    for rows in itertools.combinations_with_replacement(cells, k):
        away = [()] if neighbors == "add_remove" else itertools.combinations_with_replacement(cells, k)
        for gone in away:
            counts = base.astype(int) + 5  # none falls below 0
            before = counts.copy()
            for cell in filter(None, rows):
                counts[cell] += 1
            for cell in filter(None, gone):
                before[cell] += 1
            moves.append((counts, before))
    l1, l2 = 0, 0
    for counts, before in moves[:: max(1, len(moves) // 60)] + moves[-1:]:
        for a, b in zip(levels(counts)[0], levels(before)[0], strict=True):
            l1, l2 = max(l1, np.abs(a - b).sum()), max(l2, ((a - b) ** 2).sum())
    assert l1 <= plan.sensitivity.l1 and l2 <= plan.sensitivity.l2_squared
    if neighbors == "add_remove":
        assert (l1, l2) == (plan.sensitivity.l1, plan.sensitivity.l2_squared)


@pytest.mark.parametrize("fit", ["totals", "joint"])
@pytest.mark.parametrize("consistency", ["none", "linear", "nonnegative", "integer"])
@pytest.mark.parametrize("tree", [Tree.from_branching([2, 3]), Tree.from_paths([[0, 0], [0, 1], [1, -1]])])
def test_trees_side_by_side_are_estimated_each_by_itself(tree: Tree, consistency: str, fit: str) -> None:
    rng, n = np.random.default_rng(7), 6
    each = [[rng.normal(3, 4, size).round(2) for size in tree.level_sizes] for _ in range(n)]
    each[0] = [-np.abs(values) for values in each[0]]
    if consistency in ("none", "integer"):
        each = [[values.round() for values in one] for one in each]
    variances = [3.0, 2.0, 1.0]
    forest = tree.copies(n)
    assert forest.level_sizes == tuple(n * size for size in tree.level_sizes)

    def fitted(tree, measurements):
        return estimate(
            tree, measurements, propagate(tree, variances), consistency, fit,
            lambda size: np.arange(size, dtype=np.uint64) << np.uint64(50),
        )  # fmt: skip

    together = fitted(forest, [np.concatenate(levels) for levels in zip(*each, strict=True)])
    for at, one in enumerate(each):
        for alone, all_of_level, size in zip(fitted(tree, one), together, tree.level_sizes, strict=True):
            part = all_of_level[at * size : (at + 1) * size]
            # Ties are broken by chance: then whole numbers differ by one at most.
            assert np.allclose(part, alone, atol=1 if consistency == "integer" else 1e-6)


def test_copies_of_a_ragged_tree() -> None:
    tree = Tree.from_paths([[0, 0], [0, 1], [1, -1]]).copies(2)
    assert [values.tolist() for values in tree.roll_up(np.arange(6))] == [
        [3, 12], [1, 2, 7, 5], [0, 1, 2, 3, 4, 5],
    ]  # fmt: skip
    assert tree.listed(2).tolist() == [True, True, False] * 2


def test_ragged_keys(cube: xr.DataArray) -> None:
    """A path may end early; where others continue it, or keys are missing above, cells are left out."""
    array = xr.DataArray(
        [1, 2, 4, 8, 16],
        dims=["cell"],
        coords={
            "state": ("cell", ["DC", "CA", "CA", None, "CA"]),
            "county": ("cell", [None, "Alameda", "Fresno", "Kings", None]),
        },
    )
    tree = array.dp.tree_counts(["state", "county"], epsilon=EXACT)
    assert level(tree, "total")["count"] == 7
    assert level(tree, "state")["count"].values.tolist() == [6, 1]
    county = level(tree, "county")
    assert county["county"].values.tolist() == ["Alameda", "Fresno"]
    assert county["count"].values.tolist() == [2, 4]
    frame = dpt.tree_counts(records(array), ["state", "county"], domain="observed", epsilon=EXACT)
    assert frame["count"].tolist() == [7, 6, 1, 2, 4]


def test_keys_of_other_types() -> None:
    days = pd.date_range("2024-01-30", periods=3)
    array = xr.DataArray(
        [[1, 2], [4, 8], [16, 32]],
        dims=["day", "age"],
        coords={
            "day": days,
            "month": ("day", days.month),
            "age": pd.CategoricalIndex(["old", "young"], categories=["young", "old"], name="age"),
        },
    )
    tree = array.dp.tree_counts(["month", "day", "age"], epsilon=EXACT)
    assert level(tree, "month")["count"].values.tolist() == [15, 48]
    assert level(tree, "day")["day"].values.tolist() == days.values.tolist()
    assert level(tree, "age")["age"].values.tolist() == ["young", "old"] * 3
    assert level(tree, "age")["count"].values.tolist() == [2, 1, 8, 4, 32, 16]


def test_levels_of_a_multiindex(cube: xr.DataArray) -> None:
    places = pd.MultiIndex.from_tuples(
        [("CA", "Fresno"), ("CA", "Kern"), ("WA", "King")], names=["state", "county"]
    )
    series = pd.Series([1, 2, 4], index=places)
    array = xr.DataArray(series.to_numpy(), coords=xr.Coordinates.from_pandas_multiindex(places, "place"))
    tree = array.dp.tree_counts(["state", "county"], epsilon=EXACT)
    assert level(tree, "county")["count"].values.tolist() == [1, 2, 4]
    with pytest.raises(ColumnsError, match="levels of a MultiIndex"):
        array.dp.tree_counts(["place"], epsilon=1.0)
    wide = array.expand_dims(month=[1, 2])
    group = level(wide.dp.tree_counts(["month"], epsilon=EXACT), "month")
    assert group["count"].dims == ("place", "month")
    assert group["state"].values.tolist() == ["CA", "CA", "WA"] and "place" not in group.coords


BAD = np.array([-3, np.nan, 2.9, np.inf, -np.inf, 4])


def test_bad_counts_are_read_by_rule_and_without_a_warning() -> None:
    array = xr.DataArray(BAD, dims=["place"])
    tree = array.dp.tree_counts(["place"], epsilon=EXACT)
    counts = level(tree, "place")["count"].values.tolist()
    assert counts == [0, 0, 3, 2**53, 0, 4]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64", "int64", "float16", "float32", "bool"])
def test_types_of_counts(dtype: str) -> None:
    array = xr.DataArray(np.array([0, 1, 1]).astype(dtype), dims=["place"])
    assert level(array.dp.tree_counts(["place"], epsilon=EXACT), "place")["count"].values.tolist() == [
        0,
        1,
        1,
    ]


@pytest.mark.parametrize(
    ("dtype", "whole"), [("float16", 2**11), ("float32", 2**24), ("float64", 2**53), ("longdouble", 2**53)]
)
def test_a_record_more_moves_a_count_in_floats_by_one_at_most(dtype: str, whole: int) -> None:
    true = np.array([*range(whole - 5, whole + 40), *range(2 * whole - 5, 2 * whole + 40)], dtype=object)
    read = sum_cells(
        xr.DataArray(true.astype(dtype), dims=["cell"]), ["cell"], np.arange(len(true)), len(true), COUNT
    )
    assert set(np.diff(read)) == {0, 1}
    assert read[:6].tolist() == true[:6].tolist()


def test_huge_counts_do_not_overflow() -> None:
    array = xr.DataArray(np.full((2, 3), 2**64 - 1, dtype=np.uint64), dims=["a", "place"])
    tree = array.dp.tree_counts(["place"], epsilon=EXACT)
    assert (level(tree, "total")["count"] > 0).all()


@pytest.mark.parametrize("dtype", ["int64", "uint64", "float64"])
@pytest.mark.parametrize("n", [1, 3, 4, 5, 1024])
def test_sums_of_the_largest_counts_never_wrap_around(dtype: str, n: int) -> None:
    for most in (2**61, 2**63 - 1024):  # both are floats
        array = xr.DataArray(np.full(n, most).astype(dtype), dims=["cell"])
        one_leaf = sum_cells(array, ["cell"], np.zeros(n, dtype=int), 1, COUNT)
        leaves = sum_cells(array, ["cell"], np.arange(n), n, COUNT)
        assert one_leaf.tolist() == [leaves.sum()]
        assert 0.999 * min(2**61, n * 2**53) <= one_leaf[0] <= 2**61


@pytest.mark.parametrize(
    "values", [np.array(["a", "b"]), np.array([1, None], dtype=object), np.array([1j, 2])]
)
def test_cells_of_a_type_that_holds_no_numbers(values: np.ndarray) -> None:
    with pytest.raises(ArgumentError, match="must hold numbers"):
        xr.DataArray(values, dims=["place"]).dp.tree_counts(["place"], epsilon=1.0)


def test_empty_arrays(cube: xr.DataArray) -> None:
    with pytest.raises(DomainError):
        cube.isel(city=[]).dp.tree_counts(BY, epsilon=1.0)
    tree = cube.isel(month=[]).dp.tree_counts(BY, epsilon=1.0, confidence=0.9)
    assert dict(tree["county"].sizes) == {"month": 0, "county": 4}
    assert level(tree, "county")["std_error"].dims == ("county",)


def test_repeated_labels_are_added_up() -> None:
    array = xr.DataArray([1, 2, 4], dims=["place"], coords={"place": ["b", "a", "b"]})
    group = level(array.dp.tree_counts(["place"], epsilon=EXACT), "place")
    assert group["count"].values.tolist() == [2, 5]


@pytest.mark.parametrize(
    ("by", "match"),
    [
        (["nowhere"], "neither dimensions nor coordinates"),
        (["year"], "one label for each index"),
        (["grid"], "one label for each index"),
        (["strange"], "type that cannot be a key"),
        (["a/b"], "name a group"),
        (["city", "city"], "twice"),
        ({"city"}, "list of column names"),
        ([], "names no column"),
        ([prefixes("city", chars=[2])], "tree of prefixes"),
        (prefixes("city", chars=[2]), "tree of prefixes"),
    ],
)
def test_keys_that_cannot_be_used(cube: xr.DataArray, by: object, match: str) -> None:
    array = cube.assign_coords(
        {
            "grid": (("month", "city"), np.zeros((3, 7))),
            "strange": ("city", [{}] * 7),
            "a/b": ("city", np.arange(7)),
        }
    )
    with pytest.raises(ArgumentError, match=match) as raised:
        array.dp.tree_counts(by, epsilon=1.0)
    assert "Hint:" in str(raised.value)


def test_names_that_clash(cube: xr.DataArray) -> None:
    for name in ("count", "std_error", "lower"):
        with pytest.raises(ColumnsError, match="named as the answer names its own"):
            cube.rename(month=name).dp.tree_counts(BY, epsilon=1.0)
    assert "level" in cube.rename(month="level").dp.tree_counts(BY, epsilon=1.0)["city"].dims
    with pytest.raises(ColumnsError, match="named as the answer names its own"):
        cube.rename("month").dp.tree_sums(["city"], bounds=(0, 1), epsilon=1.0)
    with pytest.raises(ColumnsError, match=r"`array` .* named as the answer names its own"):
        cube.rename("city").dp.plan(["city"], bounds=(0, 1), epsilon=1.0)
    assert "count" in cube.rename(season="count").dp.tree_sums(["city"], bounds=(0, 1), epsilon=1.0)["city"]


def test_names_with_slashes(cube: xr.DataArray) -> None:
    with pytest.raises(ColumnsError, match=r"`array` has names with slashes.*'by/season'"):
        cube.rename(season="by/season").dp.plan(["city"], epsilon=1.0)
    with pytest.raises(ColumnsError, match=r"`array` has names with slashes.*'km/h'"):
        cube.rename("km/h").dp.plan(["city"], bounds=(0, 1), epsilon=1.0)
    assert "city" in cube.rename("km/h").dp.tree_counts(["city"], epsilon=1.0)


def test_other_arguments_that_cannot_be_used(cube: xr.DataArray) -> None:
    with pytest.raises(ArgumentError, match=r"must be an xarray\.DataArray"):
        arrays.tree_counts(pd.DataFrame({"city": [1]}), ["city"], epsilon=1.0)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="`known` cannot be used where there are several trees"):
        cube.dp.tree_counts(BY, epsilon=1.0, known={"total": 3})
    with pytest.raises(ArgumentError, match="`granularity` has no meaning"):
        cube.dp.plan(BY, epsilon=1.0, granularity=1)
    with pytest.raises(ArgumentError, match="`bounds` must be given"):
        cube.dp.tree_sums(BY, epsilon=1.0, bounds=None)
    with pytest.raises(ArgumentError, match="`epsilon`"):
        cube.dp.tree_counts(BY)
    with pytest.raises(ArgumentError, match="must have a domain"):
        cube.dp.release(dpt.plan(Tree.from_branching([7]), epsilon=1.0))
    keys = cube["city"].to_dataframe()[BY]
    units = dpt.plan(dpt.Domain.from_frame(keys, by=BY), epsilon=1.0, privacy_unit="who", max_contributions=2)
    with pytest.raises(ArgumentError, match="`plan` must have a domain and no privacy unit"):
        cube.dp.release(units)
    planned = cube.dp.plan(BY, epsilon=1.0)
    with pytest.raises(ColumnsError, match=r"`plan` names neither dimensions nor coordinates.*'state'"):
        cube.drop_vars("state").dp.release(planned)
    known = cube.isel(month=0).dp.plan(BY, epsilon=1.0, known={"total": 3})
    with pytest.raises(ArgumentError, match="`plan` knows counts"):
        cube.dp.release(known)


def test_plans(cube: xr.DataArray) -> None:
    plan = cube.dp.plan(BY, epsilon=1.0)
    assert plan.level_names == ("total", *BY) and plan.tree.level_sizes == (1, 3, 4, 7)
    one = cube.dp.release(plan, rng=np.random.default_rng(2))
    same = cube.dp.tree_counts(BY, epsilon=1.0, rng=np.random.default_rng(2))
    assert one.identical(same)
    wanted = cube.dp.plan(BY, target={"total": 5.0})
    assert wanted.std_errors[0] <= 5.0001


def test_a_plan_for_a_larger_domain(cube: xr.DataArray) -> None:
    """Leaves without a cell are empty, cells without a leaf are left out, structural zeros stay zero."""
    places = pd.DataFrame({"state": ["CA", "CA", "TX"], "city": ["Oakland", "Fresno", "Austin"]})
    places["never"] = [False, True, False]
    domain = dpt.Domain.from_frame(places, by=["state", "city"], structural_zeros="never")
    tree = cube.dp.release(dpt.plan(domain, epsilon=EXACT))
    group = level(tree, "city")
    assert group["city"].values.tolist() == ["Fresno", "Oakland", "Austin"]
    assert group["count"].sel(city="Oakland").values.tolist() == cube.sel(city="Oakland").values.tolist()
    assert not group["count"].sel(city=["Fresno", "Austin"]).any()


def test_accessor_is_the_functions(cube: xr.DataArray) -> None:
    for verb in ("tree_counts", "tree_sums", "plan", "plan_distribution", "cdf", "quantiles"):
        function, method = getattr(arrays, verb), getattr(cube.dp, verb)
        assert list(inspect.signature(function).parameters)[1:] == list(inspect.signature(method).parameters)
    options = {"epsilon": 1.0, "bounds": (0, 40)}
    one = cube.dp.tree_sums(["state"], **options, rng=np.random.default_rng(2))
    assert one.identical(arrays.tree_sums(cube, ["state"], **options, rng=np.random.default_rng(2)))
    assert repr(cube.dp.plan(BY, rho=1.0)) == repr(arrays.plan(cube, BY, rho=1.0))


def test_sums(cube: xr.DataArray) -> None:
    values = xr.DataArray(
        [[0.5, np.nan, 7.0], [-2.0, 1.25, np.inf]], dims=["hour", "meter"],
        coords={"street": ("meter", ["Elm", "Oak", "Elm"])}, name="kwh",
    )  # fmt: skip
    tree = values.dp.tree_sums(["street"], bounds=(-1, 5), granularity=0.25, epsilon=EXACT, confidence=0.9)
    group = level(tree, "street")
    assert set(group) == {"kwh", "kwh_std_error", "kwh_lower", "kwh_upper"}
    assert group["kwh"].values.tolist() == [[5.5, 0.0], [4.0, 1.25]]
    assert group["kwh_std_error"].dims == ("street",)
    assert json.loads(tree.attrs["dp"])["bounds"] == [-1.0, 5.0]
    plan = values.dp.plan(["street"], bounds=(-1, 5), granularity=0.25, epsilon=1.0)
    assert plan.sensitivity.l1 == 20
    assert "sum" in values.rename(None).dp.tree_sums(["street"], bounds=(-1, 5), epsilon=1.0)["total"]


def test_sums_are_those_of_frames(cube: xr.DataArray) -> None:
    array = cube.isel(month=0, drop=True).rename("cost").drop_vars("year") / 3
    options = {"bounds": (0, 8), "epsilon": 1.0}
    tree = array.dp.tree_sums(BY, **options, rng=np.random.default_rng(5))
    frame = dpt.tree_sums(
        array.to_dataframe().reset_index(),
        "cost",
        BY,
        domain="observed",
        **options,
        rng=np.random.default_rng(5),
    )
    found = np.concatenate([level(tree, name)["cost"].values.ravel() for name in ["total", *BY]])
    assert found.tolist() == frame["cost"].tolist()


@pytest.mark.parametrize("chunks", [{}, {"month": 1}, {"city": 2}, {"month": 2, "city": 3}])
@pytest.mark.parametrize("by", [BY, ["state"], ["season", "state"], ["season"]])
def test_dask_gives_the_same(cube: xr.DataArray, chunks: dict, by: list[str]) -> None:
    pytest.importorskip("dask")
    cube = cube.where(cube > 15, -1.0)
    lazy, options = cube.chunk(chunks), {"epsilon": 1.0}
    one = cube.dp.tree_counts(by, **options, rng=np.random.default_rng(2))
    assert lazy.dp.tree_counts(by, **options, rng=np.random.default_rng(2)).identical(one)


def test_dask_adds_up_before_it_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("dask")
    import dask

    loaded, original = [], dask.compute

    def spy(*work):
        (parts,) = original(*work)
        loaded.append(sum(sums.size for _, sums in parts.ravel()))
        return (parts,)

    monkeypatch.setattr(dask, "compute", spy)
    lazy = xr.DataArray(np.ones((5, 1000), int), dims=["a", "b"], coords={"g": ("b", np.arange(1000) // 500)})
    lazy.chunk({"b": 250}).dp.tree_counts(["g"], epsilon=1.0)
    assert loaded == [5 * 4]


def test_an_array_that_cannot_be_loaded_says_nothing_of_its_cells() -> None:
    dask = pytest.importorskip("dask.array")

    def fail(block):
        raise ValueError(f"secret {block.sum()}")

    broken = dask.ones((4,), dtype=int).map_blocks(fail, dtype=int, meta=np.zeros(0, int))
    with pytest.raises(ArgumentError, match="cannot be loaded") as raised:
        xr.DataArray(broken, dims=["place"]).dp.tree_counts(["place"], epsilon=1.0)
    assert "secret" not in str(raised.value)
    assert raised.value.__context__ is None and raised.value.__cause__ is None


def test_names_that_dask_makes_of_the_cells_are_not_shown() -> None:
    dask = pytest.importorskip("dask.array")
    array = xr.DataArray(dask.from_array(np.array([1, 2, 3]), chunks=2), dims=["place"])
    assert re.search("-[0-9a-f]{32}$", str(array.name))  # xarray took it from dask, which hashed the cells
    for each in (array, array.cumsum("place")):
        planned = each.dp.plan(["place"], bounds=(0, 5), epsilon=1.0)
        assert planned.quantity.column == "sum"
        tree = each.dp.release(planned)
        assert list(level(tree, "place").data_vars) == ["sum", "sum_std_error"]
        assert str(array.name)[-32:] not in tree.attrs["dp"]
        with pytest.raises(ArgumentError, match="a hash of their cells") as raised:
            each.to_dataset().dp.tree_counts(["place"], epsilon=1.0)
        assert str(each.name) not in str(raised.value)


def test_dimensions_of_unknown_length_are_told() -> None:
    dask = pytest.importorskip("dask.array")
    numbers = dask.arange(12, chunks=4)
    found = numbers[numbers > 3][:, None] * np.ones(2, int)
    lazy = xr.DataArray(found, dims=["found", "kind"])
    for cells, argument in ((lazy, "array"), (xr.Dataset({"n": lazy}), "dataset")):
        for by in (["kind"], ["found"]):
            with pytest.raises(ColumnsError, match=f"`{argument}` has dimensions of unknown length: 'found'"):
                cells.dp.tree_counts(by, epsilon=1.0)
    known = lazy.copy(data=found.compute_chunk_sizes()).dp.tree_counts(["kind"], epsilon=EXACT)
    assert level(known, "kind")["count"].sizes == {"found": 8, "kind": 2}


@pytest.mark.parametrize("what", ["places", "calendar", "map"])
@pytest.mark.parametrize(
    ("engine", "needs"), [("h5netcdf", "h5py"), ("netcdf4", "netCDF4"), ("zarr", "zarr")]
)
def test_files(cube: xr.DataArray, world: xr.DataArray, tmp_path, engine: str, needs: str, what: str) -> None:
    pytest.importorskip(needs)
    array, by = {
        "places": (cube, BY),
        "calendar": (world.sum(["y", "x"]), ["state", MONTHS]),
        "map": (world.sum("city").drop_vars("time"), dpt.quadtree("y", "x", depth=2)),
    }[what]
    options = {"epsilon": 1.0, "confidence": 0.9, "keep_measurements": True, "split": "uniform"}
    tree = array.dp.tree_counts(by, **options)
    path = tmp_path / f"tree.{engine}"
    if engine == "zarr":
        tree.to_zarr(path, consolidated=False)
        read = xr.open_datatree(path, engine="zarr", consolidated=False)
    else:
        tree.to_netcdf(path, engine=engine)
        read = xr.open_datatree(path, engine=engine)
    with read:
        assert read.attrs == tree.attrs and set(read.children) == set(tree.children)
        for name in tree.children:
            one, other = level(tree, name), level(read, name).load()
            assert set(one.variables) == set(other.variables)
            for variable in one.variables:
                assert one[variable].dims == other[variable].dims
                assert one[variable].values.tolist() == other[variable].values.tolist()
        if what == "places":
            again = level(read, "city").set_xindex("state")["count"].sel(state="CA")
            assert again.values.tolist() == tree["city"]["count"].sel(state="CA").values.tolist()
        if what == "map":
            assert read["quad_2"]["count"].sel(y=0.5, x=2.5).equals(tree["quad_2"]["count"].sel(y=0.5, x=2.5))


def test_a_thousand_trees_take_moments() -> None:
    array = xr.DataArray(
        np.random.default_rng(0).poisson(5, (1000, 1000)), dims=["slice", "cell"],
        coords={"group": ("cell", np.arange(1000) // 10)},
    )  # fmt: skip
    start = time.perf_counter()
    array.dp.tree_counts(["group", "cell"], epsilon=1.0)
    assert time.perf_counter() - start < 10  # 0.4 s on a quiet machine


MONTHS = dpt.calendar("time", ["year", "month"], start="2023-12-01", end="2024-02-29")
AGES = dpt.cut("age", levels={"group": [0, 40, 120], "band": [0, 20, 40, 120]})
KINDS = dpt.mapping(
    pd.DataFrame({"coast": ["west", "east", "west"], "city": ["Kent", "Albany", "Fresno"]}),
    by=["coast", "city"],
)
SQUARES = dpt.quadtree("y", "x", depth=2, bounds=((0, 4), (1, 5)))
MADE = {
    "calendar alone": MONTHS,
    "calendar": ["state", MONTHS],
    "calendar first": [MONTHS, "state", "city"],
    "cut": ["state", AGES],
    "mapping": [KINDS],
    "mapping and calendar": [KINDS, MONTHS],
    "quadtree alone": SQUARES,
    "quadtree": ["state", SQUARES],
    "quadtree and calendar": [SQUARES, MONTHS],
}
"""Levels of the world below, some of whose cells lie in none of them."""


@pytest.fixture
def world() -> xr.DataArray:
    """Visits by city, day and place in the plane."""
    days = pd.to_datetime(["2024-02-29", "2023-12-31", "2024-01-01", "2024-03-01", "2024-01-31"])
    return xr.DataArray(
        np.random.default_rng(8).poisson(0.7, (4, 5, 4, 5)),
        dims=["city", "time", "y", "x"],
        coords={
            "city": ["Kent", "Oakland", "Albany", "Fresno"],
            "state": ("city", ["WA", "CA", "NY", "CA"]),
            "age": ("city", [20.0, 130.0, np.nan, 39.9]),
            "time": days,
            "y": [3.5, 2.5, 1.5, 0.5],  # as pictures have it, from the top
            "x": np.arange(5) + 0.5,
        },
    )


def listed(tree: xr.DataTree, squares: Quadtree | None = None) -> dict:
    """What each node of a tree shows, by level and keys, of a map by the text of its squares."""
    rows = {}
    for name in tree.children:
        group = level(tree, name)
        if name == "total" or squares is None:
            keys = [] if name == "total" else [key for key in group.coords if group[key].dims == (name,)]
            for at in range(group.sizes.get(name, 1)):
                node = group.isel({name: at}) if name != "total" else group
                path = tuple(node[key].item() for key in sorted(keys))
                rows[name, path] = {key: value.item() for key, value in node.data_vars.items()}
            continue
        depth = int(name.removeprefix("quad_"))
        for key in map("".join, itertools.product("0123", repeat=depth)):
            (y0, y1), (x0, x1) = squares.square(key)
            node = group.sel(y=(y0 + y1) / 2, x=(x0 + x1) / 2)
            path = tuple(key[: end + 1] for end in range(depth))
            rows[name, path] = {key: value.item() for key, value in node.data_vars.items()}
    return rows


def by_frame(array: xr.DataArray, by, **options) -> dict:
    places = "observed" if options.pop("plain") else None
    frame = dpt.tree_counts(records(array), by, domain=places, **options)
    values = [name for name in ("count", "std_error", "lower", "upper") if name in frame]
    keys = [name for name in frame.columns if name != "level" and name not in values]
    return {
        (row["level"], tuple(row[key] for key in sorted(keys) if pd.notna(row[key]))): {
            name: row[name] for name in values
        }
        for _, row in frame.astype(object).iterrows()
    }


def by_array(array: xr.DataArray, by, plain: bool, **options) -> dict:
    tree = arrays.tree_counts(array, by, **options)
    return listed(tree, by if by is SQUARES else None)


ROADS = {"frame": by_frame, "array": by_array}


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 1.0, "confidence": 0.9},
        {"rho": 0.1, "consistency": "nonnegative", "split": "nodes"},
        {"epsilon": 0.5, "consistency": "none", "neighbors": "replace"},
    ],
)
def test_both_roads_give_the_numbers_of_the_leaf_counts(
    world: xr.DataArray, road: str, name: str, options: dict
) -> None:
    """Each is compared with a release of the counts of the leaves, which are found record by record."""
    by = MADE[name]
    each = by if isinstance(by, list) else [by]
    plain = [key for key in each if isinstance(key, str)]
    read = {source for key in each for source in ([key] if isinstance(key, str) else key.columns)}
    array = world.sum([dim for dim in world.dims if not any(dim in world[key].dims for key in read)])
    people = records(array)
    domain = dpt.derived_domain(by, people[plain].drop_duplicates() if plain else None)
    leaves = {tuple(path): at for at, path in enumerate(domain.keys(len(domain.by)).values.tolist())}
    counts = np.zeros(len(leaves), dtype=np.int64)
    for _, person in people.iterrows():
        path = [part for key in each for part in reference_keys(key, person)]
        if None not in path and tuple(path) in leaves:
            counts[leaves[tuple(path)]] += 1
    assert 0 < counts.sum() and counts.sum() < len(people)
    released = dpt.plan(domain, **options).release(counts, rng=np.random.default_rng(11))
    found = ROADS[road](array, by, plain=bool(plain), **options, rng=np.random.default_rng(11))
    values = [column for column in released.columns if column not in ("level", *domain.by)]
    assert len(found) == len(released)
    for _, row in released.astype(object).iterrows():
        path = tuple(row[key] for key in sorted(domain.by) if pd.notna(row[key]))
        node = found[row["level"], path]
        assert [node[value] for value in values] == row[values].tolist()


def reference_keys(key, person: pd.Series) -> list:
    """The keys of one record, written out by hand; None where it has none."""
    if isinstance(key, str):
        return [person[key]]
    if key is MONTHS:
        return [person["time"].year, f"{person['time']:%Y-%m}"]
    if key is AGES:
        age = min(person["age"], 120)
        if np.isnan(age):
            return [None, None]
        band = "[0, 20)" if age < 20 else "[20, 40)" if age < 40 else "[40, 120]"
        return ["[0, 40)" if age < 40 else "[40, 120]", band]
    if key is KINDS:
        coast = {"Kent": "west", "Albany": "east", "Fresno": "west"}.get(person["city"])
        return [coast, person["city"]]
    y, x = person["y"], person["x"] - 1
    if not (0 <= y <= 4 and 0 <= x <= 4):
        return [None, None]
    coarse = str(2 * (y >= 2) + (x >= 2))
    return [coarse, coarse + str(int(2 * (y % 2 >= 1) + (x % 2 >= 1)))]


# --- maps ------------------------------------------------------------------------------------------------


def picture(rows: int, columns: int, **coordinates) -> xr.DataArray:
    cells = np.random.default_rng(rows).poisson(3, (rows, columns))
    return xr.DataArray(cells, dims=["y", "x"], coords=coordinates)


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
    array = picture(4, 4).assign_attrs(largest=17)
    array["row"] = ("y", list("aabb"), {"long_name": "the row"})
    tree = array.dp.tree_counts(["row"], epsilon=1.0)
    assert level(tree, "row")["row"].attrs == {"long_name": "the row"}
    assert not level(tree, "row")["count"].attrs and "17" not in str(tree.attrs)


@pytest.mark.parametrize(("rows", "columns", "depth"), [(200, 300, 7), (5, 9, 2), (3, 2, 1), (129, 255, 7)])
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
        "epsilon": 1.0, "consistency": consistency, "confidence": 0.95, "keep_measurements": True,
        "split": "uniform",
    }  # fmt: skip
    one, other = (
        array.dp.tree_counts(
            dpt.quadtree("y", "x", depth=3, bounds=bounds), **options, rng=np.random.default_rng(4)
        )
        for bounds in (None, ((0, 16), (0, 8)))
    )
    assert one.identical(other)
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


def test_a_map_of_no_months_at_all() -> None:
    array = picture(4, 4).expand_dims(month=[]).transpose("y", "month", "x")
    tree = array.dp.tree_counts(dpt.quadtree("y", "x", depth=2), epsilon=1.0)
    assert dict(tree["quad_2"].sizes) == {"month": 0, "y": 4, "x": 4}


@settings(max_examples=30, deadline=None)
@given(depth=st.integers(1, 4), data=st.data())
def test_grids_are_where_points_are_found(depth: int, data) -> None:
    squares = dpt.quadtree("y", "x", depth=depth, bounds=((0, 1), (0, 1)))
    at = data.draw(st.integers(1, depth))
    y, x = (data.draw(st.floats(0, 1, exclude_max=True)) for _ in "yx")
    node = squares.find(np.array([y]), np.array([x]))[0] >> 2 * (depth - at)
    grid = squares.grid(at, np.arange(4**at))
    assert grid[int(y * 2**at), int(x * 2**at)] == node
    assert squares.grid(at, np.arange(3 * 4**at).reshape(3, -1))[1, 0, 0] == 4**at


@pytest.mark.parametrize("chunks", [{"y": 3}, {"x": 4, "month": 1}, {"y": 2, "x": 5}])
@pytest.mark.parametrize("bounds", [None, ((1, 8), (2, 9))])
def test_maps_of_dask(chunks: dict, bounds) -> None:
    pytest.importorskip("dask")
    array = picture(9, 10, y=np.arange(9), x=np.arange(10)).expand_dims(month=[1, 2]).transpose("y", ...)
    squares = dpt.quadtree("y", "x", depth=3, bounds=bounds)
    one, other = (
        each.dp.tree_counts(squares, epsilon=1.0, rng=np.random.default_rng(2))
        for each in (array, array.chunk(chunks))
    )
    assert one.identical(other)


@pytest.mark.parametrize("by", [["state", MONTHS], [MONTHS], [KINDS, SQUARES], [AGES]])
def test_derived_levels_of_dask(world: xr.DataArray, by: list) -> None:
    pytest.importorskip("dask")
    one, other = (
        each.dp.tree_counts(by, epsilon=1.0, rng=np.random.default_rng(2))
        for each in (world, world.chunk(city=3, time=2, y=3, x=2))
    )
    assert one.identical(other)


@pytest.mark.parametrize(
    "by",
    [dpt.quadtree("y", "x", depth=2), SQUARES, ["state", SQUARES], ["state", MONTHS], [KINDS, MONTHS, AGES]],
)
def test_a_record_more_moves_one_count_of_each_level(world: xr.DataArray, by, seen: list) -> None:
    """Through the way that records really take: where a cell lies somewhere, every level has it once."""

    def levels(array: xr.DataArray) -> list:
        seen.clear()
        array.dp.tree_counts(by, epsilon=1.0)
        return [exact for exact, _ in seen]

    before, moved = levels(world), 0
    for cell in np.random.default_rng(1).permutation(list(np.ndindex(world.shape)))[:24]:
        after = world.copy()
        after[tuple(cell)] += 1
        moves = [new - old for new, old in zip(levels(after), before, strict=True)]
        sizes = {int(np.abs(move).sum()) for move in moves}
        assert sizes == {1} or sizes == {0}
        assert all((move >= 0).all() for move in moves)
        moved += sizes == {1}
    assert moved > 3


@pytest.mark.parametrize("by", [dpt.quadtree("y", "x", depth=2), SQUARES, ["state", MONTHS]])
def test_what_an_answer_looks_like_is_public(world: xr.DataArray, by) -> None:
    def look(array: xr.DataArray):
        tree = array.dp.tree_counts(by, epsilon=1.0, confidence=0.9, keep_measurements=True)
        return tree.attrs, [
            {
                name: (each.dims, each.dtype, str(each.values) if name in group.coords else None)
                for name, each in group.variables.items()
            }
            for group in (level(tree, name) for name in tree.children)
        ]

    odd = xr.full_like(world, np.nan, dtype=float)
    odd[0, 0] = -np.inf
    odd[1] = np.inf
    assert look(world) == look(xr.zeros_like(world)) == look(odd)


MISTAKES = [
    (dpt.quadtree("y", "x", depth=3), "`depth` must leave each square a cell: 4 x 5 cells"),
    (dpt.quadtree("city", "state", depth=1), "over a single dimension"),
    (dpt.quadtree("y", "nowhere", depth=1), "neither dimensions nor coordinates"),
    (dpt.quadtree("y", "time", depth=1, bounds=((0, 1), (0, 1))), "no numbers to be cut"),
    ([dpt.quadtree("y", "x", depth=1, name="a/b")], "name a group"),
    ([MONTHS, dpt.calendar("time", ["year"], start="2024-01-01", end="2024-12-31")], "twice"),
    (dpt.calendar("city", ["year"], start="2024-01-01", end="2024-12-31"), "levels in which no cell lies"),
    (dpt.calendar("y", ["year"], start="2024-01-01", end="2024-12-31"), "levels in which no cell lies"),
    (dpt.quadtree("y", "x", depth=1, bounds=((10, 11), (0, 4))), "levels in which no cell lies"),
    (dpt.calendar("x_place", ["year"], start="2024-01-01", end="2024-12-31"), "holds numbers, not times"),
    (
        dpt.calendar("time", ["year"], start="2024-01-01", end="2024-12-31", timezone="Europe/Berlin"),
        "holds times, not times with a time zone",
    ),
    (dpt.cut("time", [0, 1]), "no numbers to be cut"),
    (
        dpt.mapping(pd.DataFrame({"a": ["u"], "x_place": ["w"]}, dtype="string"), by=["a", "x_place"]),
        "holds numbers, not text",
    ),
    (["state", "nowhere", MONTHS], "neither dimensions nor coordinates"),
    (dpt.quadtree("y", "x", depth=1, name="other"), "named as keys that are derived"),
    (prefixes("city", chars=[1]), "tree of prefixes"),
]


@pytest.mark.parametrize(("by", "match"), MISTAKES)
def test_derived_levels_that_cannot_be_made(world: xr.DataArray, by, match: str) -> None:
    array = world.assign_coords(x_place=("x", np.arange(5)), other_1=("city", np.arange(4)))
    with pytest.raises(ArgumentError, match=match) as raised:
        array.dp.tree_counts(by, epsilon=1.0)
    assert "Hint:" in str(raised.value)


def test_times_of_other_calendars_are_told() -> None:
    pytest.importorskip("cftime")
    days = xr.date_range("2024-01-30", periods=3, use_cftime=True)
    array = xr.DataArray([1, 2, 4], dims=["time"], coords={"time": days})
    with pytest.raises(ColumnsError, match="convert_calendar"):
        array.dp.tree_counts(MONTHS, epsilon=1.0)
    plain = array.convert_calendar("standard", use_cftime=False)
    tree = plain.dp.tree_counts(MONTHS, epsilon=EXACT)
    assert level(tree, "time_month")["count"].values.tolist() == [0, 3, 4]


def test_the_largest_depth_is_told() -> None:
    for rows, columns, depth in [(200, 300, 7), (255, 1024, 7), (256, 256, 8), (2, 5, 1)]:
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
    with pytest.raises(ArgumentError, match="divides 9 x 8 cells, and the array has 8 x 8"):
        array.isel(y=slice(1, None)).dp.release(plan)


EDGES = [0, 18, 40, 65, 120]


@pytest.fixture
def ages() -> xr.DataArray:
    return xr.DataArray(
        np.random.default_rng(4).poisson(50, (2, 4, 3)), dims=["sex", "age", "state"],
        coords={"sex": ["f", "m"], "state": ["CA", "NY", "WA"], "old": ("age", [0, 0, 0, 1])},
    )  # fmt: skip


def test_cdf_without_noise(ages: xr.DataArray) -> None:
    table = ages.dp.cdf("age", edges=EDGES, epsilon=EXACT, confidence=0.9)
    expected = ages.cumsum("age").transpose("sex", "state", "age")
    assert table["count"].dims == ("sex", "state", "age")
    assert table["count"].values.tolist() == expected.values.tolist()
    assert np.allclose(table["cdf"], expected / ages.sum("age"))
    assert table["std_error"].dims == ("age",) and table["age"].values.tolist() == EDGES[1:]
    assert (table["lower"] <= table["count"]).all() and (table["count"] <= table["upper"]).all()
    assert set(table.coords) == {"sex", "state", "age"}
    assert json.loads(table.attrs["dp"])["n_bins"] == 4


def test_quantiles_without_noise() -> None:
    array = xr.DataArray([[10, 10, 0, 0], [0, 0, 0, 8]], dims=["state", "age"])
    table = array.dp.quantiles("age", [0.25, 0.5, 0.75], edges=EDGES, epsilon=EXACT)
    assert table["value"].dims == ("state", "q")
    assert table["value"].values.tolist() == [[9.0, 18.0, 29.0], [78.75, 92.5, 106.25]]
    assert table["lower"].values.tolist()[1] == [65.0] * 3
    assert array.dp.quantiles("age", 0.5, edges=EDGES, epsilon=EXACT)["q"].values.tolist() == [0.5]


@pytest.mark.parametrize("options", [{"epsilon": 1.0}, {"rho": 0.5}])
def test_distributions_are_those_of_frames(ages: xr.DataArray, options: dict) -> None:
    array = ages.isel(sex=0, state=0, drop=True)
    values = np.repeat(np.array(EDGES[:-1]) + 1.0, array.values)
    frame = pd.DataFrame({"age": values}).dp.cdf(
        "age", bins=EDGES, confidence=0.9, **options, rng=np.random.default_rng(1)
    )
    table = array.dp.cdf("age", edges=EDGES, confidence=0.9, **options, rng=np.random.default_rng(1))
    for name in frame.columns:
        assert table[name].values.tolist() == frame[name].tolist()
    told, of_frame = json.loads(table.attrs["dp"]), frame.attrs["dp"]
    assert told == of_frame


def test_the_noise_of_distributions_covers_what_a_unit_can_move(ages: xr.DataArray) -> None:
    """Records of one unit may lie in several distributions: the noise is that for as many in one."""
    for neighbors, factor in (("add_remove", 3), ("replace", 6)):
        one = ages.dp.cdf("age", edges=EDGES, epsilon=1.0, tree=[4])["std_error"]
        options = {"epsilon": 1.0, "tree": [4], "max_contributions": 3, "neighbors": neighbors}
        several = ages.dp.cdf("age", edges=EDGES, **options)["std_error"]
        assert np.allclose(several / one, factor, rtol=0.05)


def test_bins_from_intervals(ages: xr.DataArray) -> None:
    labelled = ages.assign_coords(age=pd.IntervalIndex.from_breaks(EDGES))
    options = {"epsilon": 1.0}
    one = labelled.dp.cdf("age", **options, rng=np.random.default_rng(1))
    assert one.identical(ages.dp.cdf("age", edges=EDGES, **options, rng=np.random.default_rng(1)))


@pytest.mark.parametrize("options", [{"epsilon": 1.0}, {"rho": 0.5, "max_contributions": 3}, {"epsilon": 1.0,
    "delta": 1e-6, "tree": [2, 2], "neighbors": "replace"}], ids=repr)  # fmt: skip
def test_a_plan_of_a_distribution_releases_any_number_of_arrays(ages: xr.DataArray, options: dict) -> None:
    plan = ages.dp.plan_distribution("age", edges=EDGES, **options)
    assert repr(plan) == repr(arrays.plan_distribution(ages * 0, "age", edges=EDGES, **options))
    for array in (ages, ages * 3, ages.isel(sex=0), ages.isel(sex=0, state=0), ages.isel(sex=[])):
        for verb, more in (("cdf", {"confidence": 0.9}), ("quantiles", {"q": [0.25, 0.5]})):
            by_plan = getattr(array.dp, verb)("age", plan=plan, rng=np.random.default_rng(1), **more)
            anew = getattr(array.dp, verb)(
                "age", edges=EDGES, rng=np.random.default_rng(1), **more, **options
            )
            assert by_plan.identical(anew)
    one = ages.isel(sex=1, state=2)
    table = plan.release(one.values, rng=np.random.default_rng(1)).cdf()
    same = one.dp.cdf("age", plan=plan, rng=np.random.default_rng(1))
    assert same["count"].values.tolist() == table["count"].tolist()
    assert json.loads(same.attrs["dp"]) == table.attrs["dp"]


def test_a_plan_of_a_distribution_looks_at_no_cell(ages: xr.DataArray) -> None:
    class Unread:
        shape, dtype, ndim = (2, 4), np.dtype(int), 2

        def __array__(self, *args: object, **options: object) -> np.ndarray:
            raise AssertionError("a cell was read")

        def __array_function__(self, *args: object) -> None:
            raise AssertionError("a cell was read")

        def __array_ufunc__(self, *args: object) -> None:
            raise AssertionError("a cell was read")

        def __getitem__(self, key: object) -> None:
            raise AssertionError("a cell was read")

    unread = xr.DataArray(Unread(), dims=["sex", "age"])
    plan = unread.dp.plan_distribution("age", edges=EDGES, epsilon=1.0)
    assert ages.dp.cdf("age", plan=plan)["count"].shape == (2, 3, 4)


def test_a_plan_that_knows_a_total_is_for_one_distribution(ages: xr.DataArray) -> None:
    one = ages.isel(sex=0, state=0)
    plan = dpt.plan_distribution("age", bins=EDGES, epsilon=1.0, known={"total": int(one.sum())})
    assert one.dp.cdf("age", plan=plan)["count"][-1] == one.sum()
    with pytest.raises(ArgumentError, match="`plan` knows a total"):
        ages.dp.cdf("age", plan=plan)


def test_plans_that_do_not_fit_an_array(ages: xr.DataArray) -> None:
    plan = ages.dp.plan_distribution("age", edges=EDGES, epsilon=1.0)
    labelled = ages.assign_coords(age=pd.IntervalIndex.from_breaks(EDGES))
    assert labelled.dp.cdf("age", plan=plan)["age"].values.tolist() == EDGES[1:]
    other = ages.assign_coords(age=pd.IntervalIndex.from_breaks([0, 20, 40, 60, 120]))
    times = ages.assign_coords(age=pd.interval_range(pd.Timestamp(0), periods=4))
    domain = dpt.Domain.from_frame(pd.DataFrame({"k": ["a"]}), by=["k"])
    grouped = dpt.plan_distribution("age", bins=EDGES, epsilon=1.0, domain=domain)
    unit = dpt.plan_distribution("age", bins=EDGES, epsilon=1.0, privacy_unit="who", max_contributions=1)
    for call, argument in (
        (lambda: ages.dp.cdf("age", plan=plan, epsilon=1.0), "epsilon"),
        (lambda: ages.dp.quantiles("age", 0.5, plan=plan, edges=EDGES), "edges"),
        (lambda: ages.isel(age=[0, 1]).dp.cdf("age", plan=plan), "plan"),
        (lambda: other.dp.cdf("age", plan=plan), "plan"),
        (lambda: times.dp.cdf("age", plan=plan), "plan"),
        (lambda: ages.dp.cdf("state", plan=plan), "dim"),
        (lambda: ages.dp.cdf("nowhere", plan=plan), "dim"),
        (lambda: ages.dp.cdf("age", plan=grouped), "plan"),
        (lambda: ages.dp.cdf("age", plan=unit), "plan"),
        (lambda: ages.dp.cdf("age", plan=ages.dp.plan("state", epsilon=1.0)), "plan"),
        (lambda: ages.dp.cdf("age", plan="a plan"), "plan"),
        (lambda: ages.dp.release(plan), "plan"),
    ):
        with pytest.raises(ArgumentError, match="Hint: ") as error:
            call()
        assert error.value.argument == argument
    with pytest.raises(ArgumentError, match=r"array\.dp\.cdf\(dim, plan=plan\)"):
        ages.dp.release(plan)


def test_no_distributions_at_all(ages: xr.DataArray) -> None:
    table = ages.isel(sex=[]).dp.cdf("age", edges=EDGES, epsilon=1.0)
    assert dict(table.sizes) == {"sex": 0, "state": 3, "age": 4} and table["count"].dtype == np.int64
    assert dict(ages.isel(sex=[]).dp.quantiles("age", 0.5, edges=EDGES, epsilon=1.0).sizes)["sex"] == 0


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"edges": None}, "`edges` must be given"),
        ({"edges": [0, 1]}, "make 1 bins"),
        ({"edges": [0, 2, 1, 3, 4]}, "edges that rise"),
        ({"dim": "nowhere"}, "`dim` names neither dimensions nor coordinates"),
        ({"dim": ["age"]}, "`dim` must name one dimension"),
        ({"dim": "old"}, "no dimension"),
        ({"epsilon": None}, "epsilon"),
        ({"max_contributions": 0}, "max_contributions"),
        ({"rng": 3}, "rng"),
        ({"confidence": 2}, "confidence"),
        ({"tree": "oak"}, "tree"),
    ],
)
def test_distributions_that_cannot_be_made(ages: xr.DataArray, options: dict, match: str) -> None:
    given = {"dim": "age", "edges": EDGES, "epsilon": 1.0, **options}
    with pytest.raises(ArgumentError, match=match):
        ages.dp.cdf(given.pop("dim"), **given)
    with pytest.raises(ColumnsError, match="named as the answer names its own"):
        ages.rename(sex="lower").dp.cdf("age", edges=EDGES, epsilon=1.0)
    with pytest.raises(ColumnsError, match="named as the answer names its own"):
        ages.rename(sex="q").dp.quantiles("age", 0.5, edges=EDGES, epsilon=1.0)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_fractions_are_rounded_and_one_record_moves_a_whole_count_by_one(dtype: type) -> None:
    largest = 2 ** (np.finfo(dtype).nmant + 1)
    whole = np.array([0, 1, 2, 1000, largest - 2, largest - 1, largest])
    read = sum_cells(xr.DataArray(whole.astype(dtype), dims="cell"), ["cell"], np.arange(7), 7, COUNT)
    assert read.tolist() == whole.tolist()
    cells = xr.DataArray(np.array([0.25, 0.5, 1.5, 2.9975586, 3.0019531], dtype=dtype), dims="cell")
    assert sum_cells(cells, ["cell"], np.arange(5), 5, COUNT).tolist() == [0, 1, 2, 3, 3]
    assert sum_cells(cells + dtype(1), ["cell"], np.arange(5), 5, COUNT).tolist() == [1, 2, 3, 4, 4]


def test_an_array_without_any_key_of_the_plan_is_refused(cube: xr.DataArray) -> None:
    """All counts would be 0, and coordinates are public; one cell with a key is enough."""
    array = cube.sum("month")
    plan = array.dp.plan(["state"], epsilon=EXACT)
    lower = array.assign_coords(state=("city", [state.lower() for state in array["state"].values]))
    with pytest.raises(ArgumentError, match=r"`array` has no cell with a key of the plan's domain\.\nHint: "):
        lower.dp.release(plan)
    lower["state"][0] = "WA"
    assert level(lower.dp.release(plan), "total")["count"] == array[0]
    assert level(lower[:0].dp.release(plan), "total")["count"] == 0


def test_datasets_are_told_where_to_go(cube: xr.DataArray) -> None:
    dataset = cube.to_dataset(name="visits")
    for verb in (arrays.tree_counts, arrays.plan):
        with pytest.raises(ArgumentError, match=r"not a Dataset\.\nHint: .*dataset\.dp\..*arrays\.several"):
            verb(dataset, ["state"], epsilon=1.0)
    with pytest.raises(ArgumentError, match=r"dataset\.dp\.release\(plan\)"):
        arrays.release(dataset.dp.plan(["state"], epsilon=1.0), dataset)

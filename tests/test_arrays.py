"""Arrays of counts: the tables are those of frames and of xarray, one tree for each other index."""

import importlib
import inspect
import itertools
import json
import time

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import pandas_dptree as dpt
from pandas_dptree import ArgumentError, ColumnsError, DomainError, Tree, arrays
from pandas_dptree.estimation.consistency import estimate
from pandas_dptree.estimation.least_squares import propagate
from pandas_dptree.hierarchy.levels import prefixes

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
    """What `measure` is given: exact levels and noise scales."""
    module, calls = importlib.import_module("pandas_dptree.release"), []
    original = module.measure

    def spy(noise, levels, noise_scales, source):
        calls.append((levels, noise_scales))
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
        return seen[0]

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


def test_bad_counts_are_read_by_rule(recwarn: pytest.WarningsRecorder) -> None:
    array = xr.DataArray(BAD, dims=["place"])
    tree = array.dp.tree_counts(["place"], epsilon=EXACT)
    counts = level(tree, "place")["count"].values.tolist()
    assert counts[:3] == [0, 0, 2] and counts[4:] == [0, 4] and np.isclose(counts[3], 2**61 / 6)
    assert not recwarn.list


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64", "int64", "float16", "float32", "bool"])
def test_types_of_counts(dtype: str) -> None:
    array = xr.DataArray(np.array([0, 1, 1]).astype(dtype), dims=["place"])
    assert level(array.dp.tree_counts(["place"], epsilon=EXACT), "place")["count"].values.tolist() == [
        0,
        1,
        1,
    ]


def test_huge_counts_do_not_overflow() -> None:
    array = xr.DataArray(np.full((2, 3), 2**64 - 1, dtype=np.uint64), dims=["a", "place"])
    tree = array.dp.tree_counts(["place"], epsilon=EXACT)
    assert (level(tree, "total")["count"] > 0).all()


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
        ("city", "list of column names"),
        ([], "names no column"),
        ([prefixes("city", chars=[2])], "neither dimensions nor coordinates"),
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
    domain = dpt.Domain.from_frame(places, by=["state", "city"], impossible="never")
    tree = cube.dp.release(dpt.plan(domain, epsilon=EXACT))
    group = level(tree, "city")
    assert group["city"].values.tolist() == ["Fresno", "Oakland", "Austin"]
    assert group["count"].sel(city="Oakland").values.tolist() == cube.sel(city="Oakland").values.tolist()
    assert not group["count"].sel(city=["Fresno", "Austin"]).any()


def test_accessor_is_the_functions(cube: xr.DataArray) -> None:
    for verb in ("tree_counts", "tree_sums", "plan", "cdf", "quantiles"):
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
        parts = original(*work)
        loaded.append(sum(sums.size for _, sums in parts))
        return parts

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


@pytest.mark.parametrize(
    ("engine", "needs"), [("h5netcdf", "h5py"), ("netcdf4", "netCDF4"), ("zarr", "zarr")]
)
def test_files(cube: xr.DataArray, tmp_path, engine: str, needs: str) -> None:
    pytest.importorskip(needs)
    options = {"epsilon": 1.0, "confidence": 0.9, "keep_measurements": True, "split": "uniform"}
    tree = cube.dp.tree_counts(BY, **options)
    path = tmp_path / f"tree.{engine}"
    if engine == "zarr":
        tree.to_zarr(path, consolidated=False)
        read = xr.open_datatree(path, engine="zarr", consolidated=False)
    else:
        tree.to_netcdf(path, engine=engine)
        read = xr.open_datatree(path, engine=engine)
    with read:
        assert read.attrs == tree.attrs and set(read.children) == set(tree.children)
        for name in ["total", *BY]:
            one, other = level(tree, name), level(read, name).load()
            assert set(one.variables) == set(other.variables)
            for variable in one.variables:
                assert one[variable].dims == other[variable].dims
                assert one[variable].values.tolist() == other[variable].values.tolist()
        again = level(read, "city").set_xindex("state")["count"].sel(state="CA")
        assert again.values.tolist() == tree["city"]["count"].sel(state="CA").values.tolist()


def test_a_thousand_trees_take_moments() -> None:
    array = xr.DataArray(
        np.random.default_rng(0).poisson(5, (1000, 1000)), dims=["slice", "cell"],
        coords={"group": ("cell", np.arange(1000) // 10)},
    )  # fmt: skip
    start = time.perf_counter()
    array.dp.tree_counts(["group", "cell"], epsilon=1.0)
    assert time.perf_counter() - start < 10  # 0.4 s on a quiet machine


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
        ({"dim": "nowhere"}, "neither dimensions nor coordinates"),
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

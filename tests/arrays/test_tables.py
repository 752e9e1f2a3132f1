"""Arrays of counts: the tables are those of frames and of xarray, one tree for each other index."""

import inspect
import itertools
import json
import re
import time

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import pandas_dptree as dpt
from pandas_dptree import ArgumentError, ColumnsError, DomainError, Tree, arrays
from tests.helpers_arrays import EXACT, MONTHS, level, records
from tests.helpers_cases import each
from tests.helpers_output import stated_in

BY = ["state", "county", "city"]


def keyed(group: xr.Dataset, name: str, by: list[str]) -> pd.Series:
    """The counts of one level, indexed as by ``groupby``."""
    return group["count"].drop_indexes(by[1:-1]).to_dataframe().reset_index().set_index(by)["count"]


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
        BY, epsilon=1.0, confidence=0.9, keep=["measurements"], split="uniform", consistency=consistency
    )
    plan = cube.dp.plan(BY, epsilon=1.0, split="uniform", consistency=consistency)
    for at, name in enumerate(["total", *BY]):
        group = level(tree, name)
        assert set(group) == {"count", "std_error", "lower", "upper", "measurement", "noise_scale"}
        assert (group["lower"] <= group["upper"]).all()
        assert np.allclose(group["noise_scale"], plan.noise_scales[at])
        assert np.isfinite(group["measurement"]).all() and group["measurement"].dtype == np.float64
        assert np.allclose(group["std_error"], plan.node_std_errors[at])


@pytest.mark.parametrize("name", BY)
def test_without_noise_it_is_groupby(cube: xr.DataArray, name: str) -> None:
    by = BY[: BY.index(name) + 1]
    tree = cube.dp.tree_counts(by, epsilon=EXACT)
    assert level(tree, "total")["count"].values.tolist() == cube.sum("city").values.tolist()
    cells = cube.to_dataframe(name="count").reset_index()
    expected = cells.groupby(["month", *by])["count"].sum()
    found = keyed(level(tree, name), name, ["month", *by])
    pd.testing.assert_series_equal(found.sort_index(), expected.sort_index(), check_index_type=False)


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 1.0},
        {"epsilon": 1.0, "delta": 1e-6, "confidence": 0.9, "keep": ["measurements"]},
        {"rho": 0.1, "split": "geometric", "consistency": "linear"},
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
            released = group[column].values.ravel()
            assert np.array_equal(
                released, rows[column].to_numpy(dtype=float, na_value=np.nan), equal_nan=True
            )
    assert stated_in(tree) == stated_in(frame)


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


@each("neighbors", ["add_remove", "replace"])
@each("k", [1, 2])
@pytest.mark.parametrize("by", [["g", "place"], ["g"], ["slice", "g"]])
def test_sensitivity_against_every_neighbour(by: list[str], k: int, neighbors: str, seen: list) -> None:
    """Move up to k records in every way, over several trees as well, and see what is measured move."""
    base = np.array([[7, 5, 6], [5, 8, 7]])

    def array(counts):
        return xr.DataArray(counts, dims=["slice", "place"], coords={"g": ("place", [0, 1, 1])})

    plan = array(base).dp.plan(by, epsilon=1.0, max_contributions=k, neighbors=neighbors)

    def levels(cells):
        counts = base.copy()
        for cell in filter(None, cells):
            counts[cell] += 1
        seen.clear()
        array(counts).dp.release(plan)
        exact, scales = zip(*seen, strict=True)
        assert list(scales) == plan.unit_noise_scales.tolist()
        return exact

    cells = [None, *np.ndindex(base.shape)]
    measured = {rows: levels(rows) for rows in itertools.combinations_with_replacement(cells, k)}
    gone = {rows: measured[rows] for rows in [(None,) * k]} if neighbors == "add_remove" else measured
    pairs = list(itertools.product(measured.values(), gone.values()))
    for place, stated in enumerate(plan.sensitivity.levels):
        gaps = [here[place] - there[place] for here, there in pairs]
        l1, l2 = max(np.abs(gap).sum() for gap in gaps), max((gap**2).sum() for gap in gaps)
        assert l1 <= stated.l1 and l2 <= stated.l2_squared
        if neighbors == "add_remove":
            assert (l1, l2) == (stated.l1, stated.l2_squared)


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


def test_other_arguments_that_cannot_be_used(cube: xr.DataArray) -> None:
    with pytest.raises(ArgumentError, match=r"must be an xarray\.DataArray"):
        arrays.tree_counts(pd.DataFrame({"city": [1]}), ["city"], epsilon=1.0)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="`known` cannot be used with several trees"):
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
    with pytest.raises(ColumnsError, match=r"`plan` has names that are neither dimensions nor .*'state'"):
        cube.drop_vars("state").dp.release(planned)
    known = cube.isel(month=0).dp.plan(BY, epsilon=1.0, known={"total": 3})
    with pytest.raises(ArgumentError, match="`plan` has known counts"):
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
    assert {level.l1 for level in plan.sensitivity.levels} == {20}
    assert "sum" in values.rename(None).dp.tree_sums(["street"], bounds=(-1, 5), epsilon=1.0)["total"]


def test_sums_are_those_of_frames(cube: xr.DataArray) -> None:
    array = cube.isel(month=0, drop=True).rename("cost").drop_vars("year") / 3
    options = {"bounds": (0, 8), "epsilon": 1.0}
    tree = array.dp.tree_sums(BY, **options, rng=np.random.default_rng(5))
    frame = dpt.tree_sums(
        array.to_dataframe().reset_index(),
        BY,
        columns="cost",
        domain="observed",
        **options,
        rng=np.random.default_rng(5),
    )
    found = np.concatenate([level(tree, name)["cost"].values.ravel() for name in ["total", *BY]])
    assert found.tolist() == frame["cost"].tolist()


CHUNKS = [{}, {"month": 1}, {"city": 2}, {"month": 2, "city": 3}]
KEYS = [["season"], BY, ["state"], ["season", "state"]]


@pytest.mark.parametrize(
    "cases",
    [
        pytest.param(list(zip(CHUNKS, KEYS, strict=True)), id="some"),
        pytest.param(list(itertools.product(CHUNKS, KEYS)), id="all", marks=pytest.mark.slow),
    ],
)
def test_dask_gives_the_same(cube: xr.DataArray, cases: list) -> None:
    pytest.importorskip("dask")
    cube = cube.where(cube > 15, -1.0)
    for chunks, by in cases:
        one, other = (
            made.dp.tree_counts(by, epsilon=1.0, rng=np.random.default_rng(2))
            for made in (cube, cube.chunk(chunks))
        )
        assert other.identical(one), (chunks, by)


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
    for made in (array, array.cumsum("place")):
        planned = made.dp.plan(["place"], bounds=(0, 5), epsilon=1.0)
        assert planned.quantity.column == "sum"
        tree = made.dp.release(planned)
        assert list(level(tree, "place").data_vars) == ["sum", "sum_std_error"]
        assert str(array.name)[-32:] not in tree.attrs["dp"]
        with pytest.raises(ArgumentError, match="a hash of their cells") as raised:
            made.to_dataset().dp.tree_counts(["place"], epsilon=1.0)
        assert str(made.name) not in str(raised.value)


def test_dimensions_of_unknown_length_are_named() -> None:
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


ENGINES = {"h5netcdf": "h5py", "netcdf4": "netCDF4", "zarr": "zarr"}
WHAT = ["places", "calendar", "map"]


@pytest.mark.parametrize(
    ("engine", "needs", "what"),
    [
        pytest.param(engine, needs, what, marks=[] if WHAT[place] == what else pytest.mark.slow)
        for place, (engine, needs) in enumerate(ENGINES.items())
        for what in WHAT
    ],
)
def test_files(cube: xr.DataArray, world: xr.DataArray, tmp_path, engine: str, needs: str, what: str) -> None:
    pytest.importorskip(needs)
    array, by = {
        "places": (cube, BY),
        "calendar": (world.sum(["y", "x"]), ["state", MONTHS]),
        "map": (world.sum("city").drop_vars("time"), dpt.quadtree("y", "x", depth=2)),
    }[what]
    options = {"epsilon": 1.0, "confidence": 0.9, "keep": ["measurements"], "split": "uniform"}
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


def test_datasets_get_a_hint_about_several_variables(cube: xr.DataArray) -> None:
    dataset = cube.to_dataset(name="visits")
    for verb in (arrays.tree_counts, arrays.plan):
        with pytest.raises(ArgumentError, match=r"not a Dataset\.\nHint: .*dataset\.dp\..*arrays\.several"):
            verb(dataset, ["state"], epsilon=1.0)
    with pytest.raises(ArgumentError, match=r"dataset\.dp\.release\(plan\)"):
        arrays.release(dataset.dp.plan(["state"], epsilon=1.0), dataset)

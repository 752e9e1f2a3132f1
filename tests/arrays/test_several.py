"""Datasets: several variables under one privacy loss, each released as if it were alone with its part."""

import importlib
import inspect
import itertools
import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import pandas_dptree as dpt
from pandas_dptree import ArgumentError, DomainError, arrays
from pandas_dptree.arrays import several
from pandas_dptree.mechanisms.additive import Gaussian
from pandas_dptree.output.frames import COMPANIONS
from pandas_dptree.privacy.composition import joint_gaussian_delta
from pandas_dptree.privacy.loss import PrivacyLoss
from tests.helpers_arrays import LEVELS, MIXED, NO_NOISE, level
from tests.helpers_cases import each
from tests.helpers_plans import spends_no_more

BY = ["state", "city"]


def test_shapes(hospitals: xr.Dataset) -> None:
    tree = hospitals.dp.tree_sums(BY, bounds=MIXED, epsilon=1.0)
    assert list(tree.children) == LEVELS and not tree.to_dataset().variables
    state = level(tree, "state")
    assert {name: each.dims for name, each in state.data_vars.items()} == {
        "visits": ("month", "state"), "visits_std_error": ("state",),
        "deaths": ("state",), "deaths_std_error": ("state",),
        "cost": ("age", "state"), "cost_std_error": ("state",),
    }  # fmt: skip
    assert state["visits"].dtype == state["deaths"].dtype == np.int64 and state["cost"].dtype == np.float64
    assert set(state.coords) == {"month", "season", "year", "state"}
    assert level(tree, "city")["visits"].sel(state="CA")["city"].values.tolist() == ["Fresno", "Oakland"]
    assert dict(level(tree, "total").sizes) == {"month": 3, "age": 2}


def test_without_noise_it_is_groupby(hospitals: xr.Dataset) -> None:
    bounds = {"visits": None, "deaths": None, "cost": (0, 1000)}
    tree = hospitals.dp.tree_sums(BY, bounds=bounds, granularity=0.01, epsilon=1e9)
    hundredths = hospitals.assign(cost=hospitals["cost"].round(2))
    by_state = hundredths.groupby("state").sum()
    for name, expected in {"total": hundredths.sum("city"), "state": by_state, "city": hundredths}.items():
        for variable in MIXED:
            found = level(tree, name)[variable]
            assert np.allclose(found, expected[variable].transpose(*found.dims))


LOSSES = [{"epsilon": 0.7}, {"rho": 0.13}, {"epsilon": 1.1, "delta": 1e-6}]
OPTIONS = [
    {},
    {"neighbors": "replace", "max_contributions": {"visits": 5, "deaths": 1, "cost": 2}},
    {"consistency": "none", "mechanism": "gaussian"},
    {"split": "uniform", "mechanism": Gaussian()},
    {"split": {"total": 0.2, "city": 0.8}, "max_contributions": 3, "mechanism": "laplace"},
]


def possible(stated: dict, options: dict) -> bool:
    """Tell whether the noise that is asked for can keep to a loss of this kind."""
    pure = "rho" not in stated and "delta" not in stated
    return not (pure and "gaussian" in str(options.get("mechanism")).lower())


@pytest.mark.parametrize("stated", LOSSES, ids=repr)
@each("options", OPTIONS)
@each("bounds", [None, (0, 50), MIXED])
def test_the_variables_together_keep_to_the_loss(
    hospitals: xr.Dataset, stated: dict, options: dict, bounds: object
) -> None:
    arguments = {"bounds": bounds, **stated, **options}
    if not possible(stated, options):
        with pytest.raises(ArgumentError, match="Hint: "):
            hospitals.dp.plan(BY, **arguments)
        return
    planned, loss = hospitals.dp.plan(BY, **arguments), PrivacyLoss(**stated)
    assert planned.loss == loss and list(planned.plans) == list(hospitals.data_vars)
    assert spends_no_more(list(planned.plans.values()), loss)
    most = options.get("max_contributions", 1)
    for name, plan in planned.plans.items():
        assert plan.max_contributions == (most if isinstance(most, int) else most[name])


@each("stated", LOSSES)
@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_each_variable_is_released_as_if_it_were_alone(
    hospitals: xr.Dataset, stated: dict, options: dict
) -> None:
    if not possible(stated, options):
        return
    stated_options = {"bounds": MIXED, "keep": ["measurements"], "confidence": 0.9, **stated, **options}
    rng, alone = np.random.default_rng(5), np.random.default_rng(5)
    tree, planned = (
        hospitals.dp.tree_sums(BY, **stated_options, rng=rng),
        hospitals.dp.plan(BY, **stated_options),
    )
    for name, plan in planned.plans.items():
        one = arrays.release(plan, hospitals[name], rng=alone)
        names = {} if name == "cost" else {"count": name} | {each: f"{name}_{each}" for each in COMPANIONS}
        for key in LEVELS:
            expected = level(one, key)
            expected = expected.rename({old: new for old, new in names.items() if old in expected})
            assert level(tree, key)[list(expected.data_vars)].identical(expected)
        own = json.loads(one.attrs["dp"])
        part = json.loads(tree.attrs["dp"])["quantities"][name]
        assert part.pop("shown") == ("sum" if name == "cost" else "count")
        assert part == {key: own[key] for key in part}
    assert rng.bytes(8) == alone.bytes(8)


@each("stated", LOSSES)
def test_counts_have_equal_parts(hospitals: xr.Dataset, stated: dict) -> None:
    plans = hospitals.dp.plan(BY, **stated).plans.values()
    assert len({plan.loss for plan in plans}) == 1
    parts = [next(iter(plan.loss.to_dict().items())) for plan in plans]
    kind, whole = parts[0][0], next(iter(stated.values()))
    if kind in stated:
        assert sum(Fraction(part) for _, part in parts) <= Fraction(whole)
        assert sum(part for _, part in parts) == pytest.approx(whole, rel=1e-14)


@pytest.mark.parametrize("stated", [{"epsilon": 0.7}, {"rho": 0.13}], ids=repr)
def test_the_division_has_the_least_error(hospitals: xr.Dataset, stated: dict) -> None:
    """No other division of the loss over two variables has a smaller sum of squared errors."""
    ((kind, whole),) = stated.items()
    options = {"split": "uniform", "consistency": "none"}
    planned = hospitals[["visits", "deaths"]].dp.plan(
        BY, max_contributions={"visits": 5, "deaths": 1}, **stated, **options
    )

    def cost(plans):
        return sum(plan.expected_error**2 for plan in plans)

    found = cost(planned.plans.values())
    others = [
        cost(
            arrays.plan(hospitals[name], BY, **{kind: whole * part}, max_contributions=k, **options)
            for name, k, part in (("visits", 5, share), ("deaths", 1, 1 - share))
        )
        for share in np.linspace(0.05, 0.95, 37)
    ]
    assert found <= min(others) * 1.001 and min(others) <= found * 1.01
    assert found < 0.9 * others[18]  # equal parts


def test_errors_of_sums_are_equal_relative_to_their_bounds(hospitals: xr.Dataset) -> None:
    planned = hospitals.dp.plan(BY, bounds={"visits": (0, 7), "deaths": None, "cost": (0, 4000)}, rho=0.2)
    relative = [planned.plans[name].std_errors / top for name, top in
                {"visits": 7, "deaths": 1, "cost": 4000}.items()]  # fmt: skip
    np.testing.assert_allclose(relative, np.broadcast_to(relative[0], (3, 3)), rtol=1e-6)


@each("variables", [["visits", "deaths", "cost"], ["cost", "visits", "deaths"]])
def test_each_variable_has_its_own_of_a_mapping_in_whatever_order(
    hospitals: xr.Dataset, variables: list[str]
) -> None:
    rows, bounds = {"deaths": 1, "visits": 8, "cost": 2}, {"visits": (0, 3), "cost": (0, 100), "deaths": None}
    steps = {"cost": 10, "visits": 1}
    plans = several.plan(
        hospitals,
        BY,
        variables=variables,
        bounds=bounds,
        granularity=steps,
        max_contributions=rows,
        epsilon=1.0,
    ).plans
    assert list(plans) == variables
    assert {name: each.max_contributions for name, each in plans.items()} == rows
    assert {name: max(level.l1 for level in each.sensitivity.levels) for name, each in plans.items()} == {
        "visits": 24,
        "deaths": 1,
        "cost": 20,
    }


def test_a_joint_delta_is_used_up(hospitals: xr.Dataset) -> None:
    planned = hospitals.dp.plan(BY, epsilon=1.0, delta=1e-6, mechanism="gaussian")
    pairs = [(each.unit_noise_scales, each.sensitivity) for each in planned.plans.values()]
    assert 0.999e-6 < joint_gaussian_delta(1.0, pairs) <= 1e-6


@pytest.mark.parametrize("stated", LOSSES[:2], ids=repr)
@pytest.mark.parametrize("consistency", ["none", "linear"])
def test_errors_are_what_repeated_releases_show(stated: dict, consistency: str) -> None:
    """The indices of a dimension that is kept are repeated releases."""
    n = 4000
    truth = {"visits": np.array([900, 20, 7]), "cost": np.array([55.0, 3.0, -20.0])}
    dataset = xr.Dataset(
        {name: (("trial", "place"), np.tile(values, (n, 1))) for name, values in truth.items()},
        coords={"group": ("place", ["a", "a", "b"])},
    )
    tree = dataset.dp.tree_sums(
        ["group", "place"], bounds={"visits": None, "cost": (-30, 60)}, consistency=consistency, **stated,
        max_contributions={"visits": 4, "cost": 1}, confidence=0.9, rng=np.random.default_rng(8),
    )  # fmt: skip
    for name, values in truth.items():
        for key, expected in {"total": values.sum(), "place": values}.items():
            group = level(tree, key)
            errors, predicted = group[name] - expected, group[f"{name}_std_error"]
            np.testing.assert_allclose(np.sqrt((errors**2).mean("trial")), predicted, rtol=0.07)
            assert (abs(errors.mean("trial")) < 4.5 * predicted / np.sqrt(n)).all()
            held = (group[f"{name}_lower"] <= expected) & (expected <= group[f"{name}_upper"])
            assert 0.88 < held.mean() < 0.93
    noise = level(tree, "place")
    both = [(noise[name] - noise[name].mean("trial")).values.ravel() for name in truth]
    assert abs(np.corrcoef(both)[0, 1]) < 0.04


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list:
    """What `measure` is given, variable after variable: exact levels and noise scales."""
    module, calls = importlib.import_module("pandas_dptree.plans.execute"), []
    original = module.measure

    def spy(noise, levels, noise_scales, source):
        calls.append((levels, noise_scales))
        return original(noise, levels, noise_scales, source)

    monkeypatch.setattr(module, "measure", spy)
    return calls


HOURS = [None, (1, 3.0), (2, -2.0)]
ALL_CELLS = [None, (0, 0), (0, 2), (1, 1), (1, 2)]


@pytest.mark.parametrize(
    ("cells", "changes"),
    [
        pytest.param([None, (0, 0), (1, 2)], HOURS, id="some cells"),
        pytest.param(ALL_CELLS, [*HOURS, (2, 3.0)], id="all cells", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize("by", [["g", "place"], pytest.param(["g"], marks=pytest.mark.nightly)])
def test_no_neighbour_loses_more_than_is_stated(
    by: list[str], neighbors: str, cells: list, changes: list, seen: list
) -> None:
    """A unit moves all variables at once, as far as it may: what is measured loses the stated loss."""
    options = {
        "bounds": {"visits": None, "hours": (-2, 3)}, "granularity": {"hours": 0.5}, "neighbors": neighbors,
        "max_contributions": {"visits": 2, "hours": 1}, "split": "uniform",
    }  # fmt: skip

    def dataset(visits, hours):
        return xr.Dataset(
            {"visits": (("slice", "place"), visits), "hours": ("place", hours)},
            coords={"g": ("place", [0, 1, 1])},
        )

    def measured(values, planned):
        seen.clear()
        dataset(*values).dp.release(planned)
        return list(seen)

    def after(of_visits, of_hours):
        visits, hours = np.full((2, 3), 9), np.array([1.0, np.nan, np.nan])
        for cell in filter(None, of_visits):
            visits[cell] += 1
        if of_hours is not None:
            hours[of_hours[0]] = of_hours[1]
        return visits, hours

    units = list(itertools.product(itertools.combinations_with_replacement(cells, 2), changes))
    gone = [((None, None), None)] if neighbors == "add_remove" else units
    for stated in ({"epsilon": 0.5}, {"rho": 0.5}):
        power, whole = (1, 0.5) if "epsilon" in stated else (2, 1.0)  # epsilon, and twice rho
        worst = 0.0
        planned = dataset(*after((), None)).dp.plan(by, **options, **stated)
        answers = {unit: measured(after(*unit), planned) for unit in {*units, *gone}}
        for one, other in itertools.product(units, gone):
            lost = sum(
                (np.abs(a - b) ** power).sum() / scale**power
                for (levels, scales), (others, _) in zip(answers[one], answers[other], strict=True)
                for a, b, scale in zip(levels, others, scales, strict=True)
            )
            worst = max(worst, lost)
        assert worst <= whole * (1 + 1e-12)
        # What is replaced within a total cannot be the worst for all levels at once.
        assert worst >= whole * (1 - 1e-6 if neighbors == "add_remove" else 0.9)


@pytest.mark.parametrize(("engine", "needs"), [("h5netcdf", "h5py"), ("zarr", "zarr")])
def test_files(hospitals: xr.Dataset, tmp_path, engine: str, needs: str) -> None:
    pytest.importorskip(needs)
    tree = hospitals.dp.tree_sums(BY, bounds=MIXED, epsilon=1.0, confidence=0.9)
    path = tmp_path / f"tree.{engine}"
    if engine == "zarr":
        tree.to_zarr(path, consolidated=False)
        read = xr.open_datatree(path, engine="zarr", consolidated=False)
    else:
        tree.to_netcdf(path, engine=engine)
        read = xr.open_datatree(path, engine=engine)
    with read:
        assert read.attrs == tree.attrs
        for name in LEVELS:
            one, other = level(tree, name), level(read, name).load()
            assert set(one.variables) == set(other.variables)
            for variable in one.variables:
                assert one[variable].dims == other[variable].dims
                assert one[variable].values.tolist() == other[variable].values.tolist()


def test_dask_gives_the_same(hospitals: xr.Dataset) -> None:
    pytest.importorskip("dask")
    options = {"bounds": MIXED, "epsilon": 1.0}
    one = hospitals.dp.tree_sums(BY, **options, rng=np.random.default_rng(2))
    lazy = hospitals.chunk({"city": 2, "month": 1})
    assert lazy.dp.tree_sums(BY, **options, rng=np.random.default_rng(2)).identical(one)
    assert lazy["visits"].chunks is not None


def test_the_provenance_states_the_whole_loss_and_its_parts(hospitals: xr.Dataset) -> None:
    most = {"visits": 5, "deaths": 1, "cost": 2}
    provenance = json.loads(
        hospitals.dp.tree_sums(BY, bounds=MIXED, epsilon=1.0, max_contributions=most).attrs["dp"]
    )
    assert (
        provenance["epsilon"] == 1.0
        and provenance["mechanism"] == "laplace"
        and "max_contributions" not in provenance
    )
    parts = provenance["quantities"]
    assert {name: each["max_contributions"] for name, each in parts.items()} == most
    assert parts["cost"]["bounds"] == [0, 100] and "bounds" not in parts["visits"]
    assert sum(Fraction(each["epsilon"]) for each in parts.values()) <= 1
    alike = json.loads(hospitals.dp.tree_counts(BY, epsilon=1.0, max_contributions=3).attrs["dp"])
    assert alike["max_contributions"] == 3 and "max_contributions" not in alike["quantities"]["visits"]


def test_stacked_variables_cost_no_more_than_one(hospitals: xr.Dataset) -> None:
    kinds = hospitals[["visits", "deaths"]].to_dataarray("kind")
    tree = kinds.dp.tree_counts(BY, epsilon=1.0)
    alone = hospitals["deaths"].dp.tree_counts(BY, epsilon=1.0)
    together = hospitals.dp.tree_counts(BY, epsilon=1.0, variables=["visits", "deaths"])
    for name in LEVELS:
        assert np.array_equal(level(tree, name)["std_error"], level(alone, name)["std_error"])
        assert (level(together, name)["deaths_std_error"] > 1.9 * level(alone, name)["std_error"]).all()


def test_derived_levels_and_other_keys(hospitals: xr.Dataset) -> None:
    days = pd.date_range("2024-01-30", periods=4)
    dataset = hospitals.rename(city="day").drop_vars("state").assign_coords(day=days)
    calendar = dpt.calendar("day", ["month", "day"], start="2024-01-30", end="2024-02-02")
    tree = dataset.dp.tree_counts([calendar], variables=["visits", "deaths"], **NO_NOISE)
    assert list(tree.children) == ["total", "day_month", "day_day"]
    assert level(tree, "day_month")["deaths"].values.tolist() == [
        int(dataset["deaths"][:2].sum()), int(dataset["deaths"][2:].sum()),
    ]  # fmt: skip


def test_quadtrees() -> None:
    rng = np.random.default_rng(1)
    axis = (np.arange(4) + 0.5) / 4
    city = xr.Dataset(
        {
            "pickups": (("hour", "y", "x"), rng.poisson(9, (2, 4, 4))),
            "crashes": (("y", "x"), rng.poisson(1, (4, 4))),
        },
        coords={"y": axis, "x": axis},
    )
    grid = dpt.quadtree("y", "x", bounds=((0, 1), (0, 1)), depth=2)
    tree = city.dp.tree_counts(grid, **NO_NOISE)
    assert next(iter(tree.children)) == "total" and len(tree.children) == 3
    finest, coarser = (level(tree, name) for name in [*tree.children][:0:-1])
    assert finest["pickups"].dims == ("hour", "y", "x")
    assert np.array_equal(finest["crashes"], city["crashes"])
    assert np.array_equal(coarser["pickups"], city["pickups"].coarsen(y=2, x=2).sum())


def test_dimensions_that_multiply_to_more_than_there_can_be_cells() -> None:
    dims = [f"d{i}" for i in range(20)]
    dataset = xr.Dataset({dim: (("place", f"x{dim}"), np.ones((2, 10), int)) for dim in dims})
    tree = dataset.dp.tree_counts(["place"], **NO_NOISE)
    assert all((level(tree, "total")[dim] == 2).all() for dim in dims)


def test_levels_of_a_multiindex() -> None:
    places = pd.MultiIndex.from_tuples([("CA", "Kern"), ("WA", "King")], names=["state", "county"])
    dataset = xr.Dataset(
        {"n": ("place", [3, 4]), "m": (("place", "month"), [[1, 2], [3, 4]])},
        coords=xr.Coordinates.from_pandas_multiindex(places, "place"),
    )
    group = level(dataset.dp.tree_counts(["state"], **NO_NOISE), "state")
    assert group["n"].values.tolist() == [3, 4] and group["m"].sel(state="WA").values.tolist() == [3, 4]
    group = level(dataset.dp.tree_counts(["month"], variables=["m"], **NO_NOISE), "month")
    assert group["m"].dims == ("place", "month") and group["county"].values.tolist() == ["Kern", "King"]


def test_bad_cells_are_read_by_rule() -> None:
    cells = np.array([-3, np.nan, 2.9, 4])
    dataset = xr.Dataset({"n": ("place", cells), "v": ("place", cells), "b": ("place", cells > 2)})
    tree = dataset.dp.tree_sums(
        ["place"], bounds={"n": None, "v": (-1, 3), "b": None}, granularity=0.1, **NO_NOISE
    )
    group = level(tree, "place")
    assert group["n"].values.tolist() == [0, 0, 3, 4]
    assert group["v"].values.tolist() == [-1, 0, 2.9, 3]
    assert group["b"].values.tolist() == [0, 0, 1, 1]


def test_no_other_indices_and_no_leaves(hospitals: xr.Dataset) -> None:
    tree = hospitals.isel(month=[]).dp.tree_counts(BY, variables=["visits", "deaths"], epsilon=1.0)
    assert dict(level(tree, "state").sizes) == {"month": 0, "state": 2}
    with pytest.raises(DomainError):
        hospitals.isel(city=[]).dp.tree_counts(BY, epsilon=1.0)


def test_plans(hospitals: xr.Dataset) -> None:
    planned = hospitals.dp.plan(BY, bounds=MIXED, epsilon=1.0)
    table = planned.to_frame()
    assert list(table) == ["quantity", "level", "nodes", "share", "noise_scale", "std_error"]
    assert table["quantity"].tolist() == [name for name in MIXED for _ in LEVELS]
    assert planned.headline.startswith(
        "Plan for visits (epsilon=0.333333), deaths (epsilon=0.333333), cost ("
    )
    assert repr(planned).startswith(f"{planned.headline}\n")
    assert "laplace noise, epsilon=1, protecting each row" in planned.headline
    assert "<table" in planned._repr_html_()
    one = hospitals.dp.release(planned, rng=np.random.default_rng(2))
    same = hospitals.dp.tree_sums(BY, bounds=MIXED, epsilon=1.0, rng=np.random.default_rng(2))
    assert one.identical(same)


def test_accessor_is_the_functions(hospitals: xr.Dataset) -> None:
    for verb in ("tree_counts", "tree_sums", "plan"):
        function, method = getattr(several, verb), getattr(hospitals.dp, verb)
        assert list(inspect.signature(function).parameters)[1:] == list(inspect.signature(method).parameters)


def test_sums_of_variables_share_no_count_since_each_has_records_of_its_own() -> None:
    cells = xr.Dataset({name: ("a", [1, 2, 3]) for name in ("n", "cost")}, coords={"a": ["x", "y", "z"]})
    plain = several.plan(cells, ["a"], bounds={"cost": (0, 9), "n": None}, rho=0.1)
    assert [each.quantity.shift for each in plain.plans.values()] == [0, 0]
    domain = dpt.Domain.from_frame(pd.DataFrame({"a": ["x", "y", "z"]}), by=["a"])
    shared = dpt.plan_agg(domain, {"n": "count", "cost": dpt.sum("cost", bounds=(0, 9))}, rho=0.1)
    with pytest.raises(ArgumentError, match="only possible for tables of records"):
        cells.dp.release(shared)

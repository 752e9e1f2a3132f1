"""Arrays of counts over crossed hierarchies: a margin's numbers are those of the frame and of ``groupby``."""

import itertools

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import pandas_dptree as dpt
from pandas_dptree import ArgumentError, ColumnsError
from pandas_dptree.output import crossed_frames
from tests.helpers_arrays import MONTHS, records
from tests.helpers_cases import each
from tests.helpers_output import stated_in
from tests.helpers_random import rng

BY = {"place": ["state", "city"], "when": MONTHS, "sex": "sex"}
KEYS = {"place": ["state", "city"], "when": ["time_year", "time_month"], "sex": ["sex"]}
MARGINS = [
    *itertools.product(["total", "state", "city"], ["total", "time_year", "time_month"], ["total", "sex"])
]
EXACT = {"rho": 1e8, "split": "uniform"}
PUBLIC = "ignore:.*protects nobody"


@pytest.fixture
def visits():
    """Visits by sex, time and city, in another order than that of the axes; one day is outside the months."""
    days = pd.to_datetime(["2024-02-29", "2023-12-31", "2024-01-01", "2024-03-01", "2024-01-31"])
    return xr.DataArray(
        np.random.default_rng(8).poisson(9, (2, 5, 4)),
        dims=["sex", "time", "city"],
        coords={
            "city": ["Kent", "Oakland", "Albany", "Fresno"],
            "state": ("city", ["WA", "CA", "NY", "CA"]),
            "size": ("city", ["small", "large", "small", "large"]),
            "time": days,
            "sex": ["M", "F"],
            "source": "registers",
        },
    )


@pytest.mark.filterwarnings(PUBLIC)
@each("chunks", [None, {"time": 2, "city": 3}])
def test_without_noise_margins_are_those_of_groupby(visits, chunks):
    if chunks:
        pytest.importorskip("dask")
    tree = (visits.chunk(chunks) if chunks else visits).dp.tree_counts(BY, **EXACT)
    rows = records(visits)
    rows = rows[rows["time"] < "2024-03-01"].assign(
        time_year=lambda each: each["time"].dt.year, time_month=lambda each: each["time"].dt.strftime("%Y-%m")
    )
    assert len(tree.children) == len(MARGINS)
    assert tree["total"]["count"] == len(rows) and tree["total"]["source"] == "registers"
    for levels in MARGINS[1::3]:
        group = tree.dp.margin(dict(zip(KEYS, levels, strict=True)))
        dims = [level for level in levels if level != "total"]
        by = [
            key
            for keys, level in zip(KEYS.values(), levels, strict=True)
            for key in (keys[: keys.index(level) + 1] if level in keys else [])
        ]
        found = group["count"].drop_indexes([key for key in by if key not in dims]).to_dataframe()
        expected = rows.groupby(by).size()
        found = found.reset_index().set_index(by)["count"]
        assert (found[found > 0] == expected).all() and list(group["count"].dims) == dims


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 1.0, "delta": 1e-6, "keep": ["measurements", "linear"], "consistency": "nonnegative"},
        {"rho": 0.1, "margins": [{"place": "city", "sex": "sex"}, {"when": "time_year"}]},
        pytest.param({"rho": 0.1}, marks=pytest.mark.slow),
        pytest.param(
            {"epsilon": 1.0, "consistency": "linear", "neighbors": "replace"}, marks=pytest.mark.slow
        ),
    ],
)
def test_arrays_and_frames_give_the_same_table(visits, options):
    tree = visits.dp.tree_counts(BY, **options, rng=rng(5))
    frame = dpt.tree_counts(records(visits), BY, domain="observed", **options, rng=rng(5))
    plan = visits.dp.plan(BY, **options)
    assert len(tree.children) == len(plan.tree.shown)
    for name in tree.children:
        group, rows = tree[name].to_dataset(), frame.dp.margin(name.split(","))
        assert set(group.data_vars) == set(rows)
        for column in rows:
            values = rows[column].to_numpy(dtype=float, na_value=np.nan)
            assert np.array_equal(group[column].values.ravel(), values, equal_nan=True)
    assert stated_in(tree) == stated_in(frame)


def test_sums_of_cells(visits):
    """Each cell is one record, between bounds; frames of the cells give the same sums."""
    kwh = (visits / 4).rename("kwh")
    options = {"bounds": (0, 5), "rho": 0.1, "max_contributions": 3}
    tree = kwh.dp.tree_sums(BY, **options, rng=rng(2))
    cells = kwh.to_dataframe().reset_index()
    frame = dpt.tree_sums(cells, BY, columns="kwh", domain="observed", privacy_unit=dpt.ROWS,
                          **{**options, "max_contributions": None}, rng=rng(2))  # fmt: skip
    assert set(tree["city,sex"].data_vars) == {"kwh", "kwh_std_error"}
    ratio = (
        tree["city,sex"]["kwh_std_error"].values.ravel() / frame.dp.margin(["city", "sex"])["kwh_std_error"]
    )
    assert np.allclose(ratio, np.sqrt(3) ** 2)
    exact = np.clip(kwh, 0, 5).isel(time=[0, 1, 2, 4]).sum("time").transpose("city", "sex").sortby("sex")
    error = (tree["city,sex"]["kwh"] - exact) / tree["city,sex"]["kwh_std_error"]
    assert (np.abs(error) < 6).all()


@pytest.mark.filterwarnings(PUBLIC)
def test_two_axes_along_one_dimension(visits):
    """Sizes of cities and cities: each cell has a key on both axes, and most combinations are empty."""
    tree = visits.dp.tree_counts({"size": "size", "city": "city", "rest": ["time", "sex"]}, **EXACT)
    expected = visits.sum(["sex", "time"]).to_series()
    both = tree["size,city"]["count"]
    for city, size in zip(visits["city"].values, visits["size"].values, strict=True):
        assert both.sel(city=city, size=size) == both.sel(city=city).sum() == expected[city]
    rest = tree["city,sex"]["count"]  # the axis of two dimensions, in another order than theirs
    for time, sex in itertools.product(visits["time"].values[:2], "MF"):
        found = rest.isel(sex=(rest["time"] == time) & (rest["sex"] == sex)).squeeze("sex")
        assert found.sel(city="Kent") == visits.sel(time=time, sex=sex, city="Kent")


@pytest.mark.filterwarnings(PUBLIC)
def test_a_map_crossed_with_another_axis():
    """A quadtree keeps both of its dimensions, with the centres of squares; coordinates keep attributes."""
    cells = np.random.default_rng(1).poisson(5, (3, 4, 4))
    array = xr.DataArray(cells, dims=["t", "y", "x"], coords={"y": np.arange(4) + 0.5, "t": [1, 2, 3]})
    array["y"].attrs["units"] = "km"
    tree = array.dp.tree_counts({"where": dpt.quadtree("y", "x", depth=2), "t": "t"}, **EXACT)
    finest, coarse = tree["quad_2,t"].to_dataset(), tree["quad_1,t"].to_dataset()
    assert finest["count"].dims == ("y", "x", "t")
    assert (finest["count"].transpose("t", "y", "x").values == cells).all()
    sums = finest["count"].values.reshape(2, 2, 2, 2, 3).sum(axis=(1, 3))
    assert coarse["count"].values.tolist() == sums.tolist()
    assert coarse["y"].values.tolist() == [1, 3] and coarse["y"].attrs == {"units": "km"}


@pytest.mark.filterwarnings(PUBLIC)
def test_plans_of_public_lists(visits):
    """Cells whose keys a plan lacks are left out; keys that the array lacks are empty."""
    places = pd.DataFrame({"state": ["CA", "WA", "TX"], "city": ["Fresno", "Kent", "Dallas"]})
    domain = dpt.cross(place=dpt.Domain.from_frame(places, by=["state", "city"]),
                       sex=dpt.Domain.from_frame(["F", "M", "X"], by=["sex"]))  # fmt: skip
    plan = dpt.plan(domain, **EXACT)
    array = visits.sum("time")
    tree = array.dp.release(plan)
    found = tree["city,sex"]["count"]
    assert found.sel(city="Dallas").sum() == 0 == found.sel(sex="X").sum()
    for city, sex in itertools.product(["Fresno", "Kent"], "MF"):
        assert found.sel(city=city, sex=sex) == array.sel(city=city, sex=sex)
    assert tree["total"]["count"] == array.sel(city=["Fresno", "Kent"]).sum()
    with pytest.raises(ArgumentError, match="must have a domain and no privacy unit"):
        array.dp.release(dpt.plan(domain, rho=1.0, privacy_unit="person", max_contributions=1))
    with pytest.raises(ArgumentError, match="no cell with a key"):
        array.assign_coords(sex=["m", "f"]).dp.release(plan)


def test_what_is_measured_are_the_exact_margins(visits, seen):
    plan = visits.dp.plan(BY, epsilon=1.0)
    visits.dp.release(plan)
    exact = [each for each, _ in seen]
    leaves = exact[-1].reshape(plan.tree.leaf_shape)
    inside = (
        visits.isel(time=[1, 2, 4, 0])
        .groupby(xr.DataArray(["a", "b", "b", "c"], dims="time", name="m"))
        .sum()
    )
    expected = inside.transpose("city", "m", "sex").sel(
        city=["Fresno", "Oakland", "Albany", "Kent"], sex=["F", "M"]
    )
    assert leaves.tolist() == expected.values.tolist()


@each("k", [1, 2])
def test_sensitivity_against_every_neighbour(k, seen):
    """Move up to k records in every way, also to a cell without a leaf, and see what is measured move."""
    base = np.array([[7, 5, 6], [5, 8, 7]])

    def array(counts):
        return xr.DataArray(counts, dims=["slice", "place"], coords={"g": ("place", [0, 1, None])})

    options = {"epsilon": 1.0, "max_contributions": k, "split": "uniform", "consistency": "none"}
    plans = {
        each: array(base).dp.plan({"g": "g", "slice": "slice"}, neighbors=each, **options)
        for each in ("add_remove", "replace")
    }

    def margins(cells):
        counts = base.copy()
        for cell in filter(None, cells):
            counts[cell] += 1
        seen.clear()
        array(counts).dp.release(plans["replace"])
        return [exact for exact, _ in seen]

    cells = [None, *np.ndindex(base.shape)]
    measured = {rows: margins(rows) for rows in itertools.combinations_with_replacement(cells, k)}
    none = {rows: measured[rows] for rows in [(None,) * k]}
    assert none[(None,) * k][-1].tolist() == [7, 5, 5, 8]  # by g, then slice
    for neighbors, others in (("add_remove", none), ("replace", measured)):
        for place, stated in enumerate(plans[neighbors].sensitivity.levels):
            pairs = itertools.product(measured.values(), others.values())
            gaps = [here[place] - there[place] for here, there in pairs]
            l1, l2 = max(np.abs(gap).sum() for gap in gaps), max((gap**2).sum() for gap in gaps)
            assert l1 <= stated.l1 and l2 <= stated.l2_squared
            assert neighbors == "replace" or (l1, l2) == (stated.l1, stated.l2_squared)


def test_frames_of_many_rows_are_refused_and_arrays_are_not(visits, monkeypatch):
    monkeypatch.setattr(crossed_frames, "MOST_ROWS", 50)
    with pytest.raises(ArgumentError, match=r"(?s)50 are the most.*array\.dp\.tree_counts"):
        records(visits).dp.tree_counts(BY, domain="observed", rho=1.0)
    with pytest.raises(ArgumentError, match="50 are the most"):
        records(visits).dp.tree_means(BY, columns="n", bounds=(0, 9), domain="observed", rho=1.0)
    assert len(visits.dp.tree_counts(BY, rho=1.0).children) == len(MARGINS)


@each(
    "by, options, message",
    [
        (
            {"place": "city"},
            {},
            r"has dimensions that no axis uses: \['sex', 'time'\].*array\.sum\(\['sex', 'time'\]\)",
        ),
        ({"place": "city", "rest": ["sex", "time"], "all": ["city"]}, {}, "has keys on two axes: 'city'"),
        ({"place": "town", "rest": ["sex", "time"]}, {}, "neither dimensions nor coordinates"),
        ({}, {}, "`by` has no axes"),
        ({3: "city"}, {}, "`by` has names of axes that are not texts"),
        (["city"], {"margins": [{"place": "city"}]}, "margins"),
    ],
)
def test_wrong_axes(visits, by, options, message):
    with pytest.raises(ArgumentError, match=f"(?s){message}"):
        visits.dp.plan(by, rho=1.0, **options)


def test_names_that_cannot_be_groups(visits):
    commas = visits.rename(city="city, town")
    with pytest.raises(ColumnsError, match="with commas"):
        commas.dp.plan({"place": "city, town", "rest": ["sex", "time"]}, rho=1.0)
    with pytest.raises(ColumnsError, match="names of variables of the result"):
        visits.rename(source="std_error").dp.plan(BY, rho=1.0)


def test_a_ledger_keeps_the_tree(visits, tmp_path):
    ledger = dpt.Ledger.create(tmp_path / "budget.sqlite", account="visits", rho=1.0, privacy_unit=dpt.ROWS)
    options = {"rho": 0.1, "ledger": ledger["visits"], "note": "all"}
    tree = visits.dp.tree_counts(BY, **options)
    with pytest.warns(dpt.DPTreeWarning, match="released before"):
        again = visits.dp.tree_counts(BY, **options)
    xr.testing.assert_identical(again, tree)
    with pytest.raises(dpt.LedgerError, match="note"):  # a frame of the same plan
        visits.dp.plan(BY, rho=0.1).release(records(visits), ledger=ledger["visits"], note="all")
    visits.dp.plan(BY, rho=0.1).release(records(visits), ledger=ledger["visits"], note="frame")
    with pytest.raises(dpt.LedgerError, match="note"):
        visits.dp.tree_counts(BY, **{**options, "note": "frame"})


def test_a_dataset_shares_one_loss(visits):
    """Each variable is as if it were released alone with its part."""
    data = xr.Dataset({"visits": visits, "cost": visits / 2}).sum("time")
    by = {"place": ["state", "city"], "sex": "sex"}
    options = {"bounds": {"visits": None, "cost": (0, 30)}, "split": "uniform"}
    plan = data.dp.plan(by, rho=0.5, **options)
    tree = data.dp.tree_sums(by, rho=0.5, **options, rng=rng(4))
    assert set(tree.dp.margin(place="city")) == {"visits", "visits_std_error", "cost", "cost_std_error"}
    source = rng(4)
    for name, each_plan in plan.plans.items():
        alone = data[name].dp.release(each_plan, rng=source)
        for group in alone.children:
            column = "count" if name == "visits" else name
            assert (tree[group][name] == alone[group][column]).all()
    assert {*plan.plans} == {"visits", "cost"} and plan.rho == 0.5
    with pytest.raises(ArgumentError, match=r"no axis uses: \['sex'\]"):
        data.dp.plan({"place": ["city"]}, rho=1.0)
    with pytest.raises(ColumnsError, match="lack some of the dimensions"):
        data.assign(deaths=data["visits"].sum("sex")).dp.plan(by, rho=1.0)
    with pytest.raises(ColumnsError, match="data variables, which are secret"):
        data.dp.plan({"place": "city", "cost": "cost"}, rho=1.0)

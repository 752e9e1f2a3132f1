"""Distributions along a dimension of an array whose indices are bins."""

import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import pandas_dptree as dpt
from pandas_dptree import ArgumentError, ColumnsError, arrays
from tests.helpers_arrays import EXACT
from tests.helpers_cases import each
from tests.helpers_output import stated_in

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
    table = array.dp.quantiles("age", [0.25, 0.5, 0.75], edges=EDGES, epsilon=EXACT, confidence=0.95)
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
    assert stated_in(table) == stated_in(frame)


def test_the_noise_of_distributions_covers_what_a_unit_can_move(ages: xr.DataArray) -> None:
    """Records of one unit may lie in several distributions: the noise is that for as many in one."""
    for neighbors, factor in (("add_remove", 3), ("replace", 6)):
        one = ages.dp.cdf("age", edges=EDGES, epsilon=1.0, strategy=[4])["std_error"]
        options = {"epsilon": 1.0, "strategy": [4], "max_contributions": 3, "neighbors": neighbors}
        several = ages.dp.cdf("age", edges=EDGES, **options)["std_error"]
        assert np.allclose(several / one, factor, rtol=0.05)


def test_bins_from_intervals(ages: xr.DataArray) -> None:
    labelled = ages.assign_coords(age=pd.IntervalIndex.from_breaks(EDGES))
    options = {"epsilon": 1.0}
    one = labelled.dp.cdf("age", **options, rng=np.random.default_rng(1))
    assert one.identical(ages.dp.cdf("age", edges=EDGES, **options, rng=np.random.default_rng(1)))


@each("second", [(20, 40), (15, 40)])
def test_intervals_that_are_not_side_by_side_are_no_bins(ages: xr.DataArray, second: tuple[int, int]) -> None:
    labels = pd.IntervalIndex.from_tuples([(0, 18), second, (40, 65), (65, 120)])
    for verb in (ages.assign_coords(age=labels).dp.cdf, ages.assign_coords(age=labels).dp.plan_distribution):
        with pytest.raises(ArgumentError, match=r"`edges` must be given: .* 'age' are not adjacent"):
            verb("age", epsilon=1.0)


@pytest.mark.parametrize("options", [{"epsilon": 1.0}, {"rho": 0.5, "max_contributions": 3}, {"epsilon": 1.0,
    "delta": 1e-6, "strategy": [2, 2], "neighbors": "replace"}], ids=repr)  # fmt: skip
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
    assert stated_in(same) == stated_in(table)


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
    with pytest.raises(ArgumentError, match="`plan` has a known total"):
        ages.dp.cdf("age", plan=plan)


def test_plans_that_do_not_fit_an_array(ages: xr.DataArray) -> None:
    plan = ages.dp.plan_distribution("age", edges=EDGES, epsilon=1.0)
    labelled = ages.assign_coords(age=pd.IntervalIndex.from_breaks(EDGES))
    assert labelled.dp.cdf("age", plan=plan)["age"].values.tolist() == EDGES[1:]
    other = ages.assign_coords(age=pd.IntervalIndex.from_breaks([0, 20, 40, 60, 120]))
    times = ages.assign_coords(age=pd.interval_range(pd.Timestamp(0), periods=4))
    elsewhere = ages.assign_coords(age=pd.interval_range(pd.Timestamp(0, tz="UTC"), periods=4))
    days, days_elsewhere = (each.dp.plan_distribution("age", epsilon=1.0) for each in (times, elsewhere))
    assert (times.dp.cdf("age", plan=days)["age"] == times["age"].to_index().right).all()
    domain = dpt.Domain.from_frame(pd.DataFrame({"k": ["a"]}), by=["k"])
    grouped = dpt.plan_distribution("age", bins=EDGES, epsilon=1.0, domain=domain)
    unit = dpt.plan_distribution("age", bins=EDGES, epsilon=1.0, privacy_unit="who", max_contributions=1)
    for call, argument in (
        (lambda: ages.dp.cdf("age", plan=plan, epsilon=1.0), "epsilon"),
        (lambda: ages.dp.quantiles("age", 0.5, plan=plan, edges=EDGES), "edges"),
        (lambda: ages.isel(age=[0, 1]).dp.cdf("age", plan=plan), "plan"),
        (lambda: other.dp.cdf("age", plan=plan), "plan"),
        (lambda: times.dp.cdf("age", plan=plan), "plan"),
        (lambda: times.dp.cdf("age", plan=days_elsewhere), "plan"),
        (lambda: elsewhere.dp.cdf("age", plan=days), "plan"),
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


@each(
    "options, match",
    [
        ({"edges": None}, "`edges` must be given"),
        ({"edges": [0, 1]}, "make 1 bins"),
        ({"edges": [0, 2, 1, 3, 4]}, "edges in increasing order"),
        ({"dim": "nowhere"}, "`dim` has names that are neither dimensions nor coordinates"),
        ({"dim": ["age"]}, "`dim` must name one dimension"),
        ({"dim": "old"}, "not a dimension"),
        ({"epsilon": None}, "epsilon"),
        ({"max_contributions": 0}, "max_contributions"),
        ({"rng": 3}, "rng"),
        ({"confidence": 2}, "confidence"),
        ({"strategy": "oak"}, "strategy"),
    ],
)
def test_distributions_that_cannot_be_made(ages: xr.DataArray, options: dict, match: str) -> None:
    given = {"dim": "age", "edges": EDGES, "epsilon": 1.0, **options}
    with pytest.raises(ArgumentError, match=match):
        ages.dp.cdf(given.pop("dim"), **given)
    with pytest.raises(ColumnsError, match="with names of variables of the result"):
        ages.rename(sex="lower").dp.cdf("age", edges=EDGES, epsilon=1.0)
    with pytest.raises(ColumnsError, match="with names of variables of the result"):
        ages.rename(sex="q").dp.quantiles("age", 0.5, edges=EDGES, epsilon=1.0)


def test_what_a_table_shows_is_checked_before_anything_is_charged(ages, tmp_path):
    ledger = dpt.Ledger.create(tmp_path / "ledger", account="ages", privacy_unit=dpt.ROWS, epsilon=1.0)
    frame = pd.DataFrame({"age": [20.0, 70.0]})
    common = {"epsilon": 1.0, "ledger": ledger["ages"], "note": "ages"}
    for release in (
        lambda: ages.dp.quantiles("age", 2.0, edges=EDGES, **common),
        lambda: ages.dp.quantiles("age", 0.5, edges=EDGES, confidence=2, **common),
        lambda: ages.dp.cdf("age", edges=EDGES, confidence=1.0, **common),
        lambda: frame.dp.cdf("age", bins=EDGES, confidence=1.0, **common),
        lambda: frame.dp.quantiles("age", 2.0, bins=EDGES, **common),
        lambda: frame.dp.range_counts("age", [(1, 2)], bins=EDGES, **common),
        lambda: frame.dp.quantiles("age", 0.5, bins=EDGES, confidence=2, **common),
    ):
        with pytest.raises(ArgumentError) as caught:
            release()
        assert caught.value.argument in ("q", "confidence", "ranges")
    assert float(ledger["ages"].remaining.epsilon) == 1.0

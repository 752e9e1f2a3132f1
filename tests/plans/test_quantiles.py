"""Quantiles that are drawn: what is released of records, of groups, and of hierarchies that are odd."""

import datetime
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.mechanisms.quantiles import BaseMeasure
from pandas_dptree.plans import quantiles as module
from pandas_dptree.plans.quantiles import QuantilePlan
from tests.helpers_cases import each
from tests.helpers_random import each_seed, rng
from tests.helpers_reading import divided

pytestmark = pytest.mark.filterwarnings("ignore::pandas_dptree.DPTreeWarning")

NO_NOISE = {"epsilon": 1e4}
QUARTILES = [0.25, 0.5, 0.75]
BY = ["state", "county"]
PLACES = pd.DataFrame({"state": list("aaab"), "county": list("wxyz")})
DOMAIN = dpt.Domain.from_frame(PLACES, by=BY)
FEW = {"bins": 8, "strategy": [2, 4]}
TREES = {"mechanism": "exponential", **FEW}


def frame_of(values, **columns):
    return pd.DataFrame({"v": values, **columns})


def is_quantile(value, values, q, *, off=0):
    """Whether a value is a quantile by definition, with ranks that may be off by some records."""
    fraction, values = Fraction(q).limit_denominator(1000), np.asarray(values)
    below, upto = int((values < value).sum()), int((values <= value).sum())
    return below - off <= fraction * len(values) <= upto + off


# All records together


COLUMNS = {
    "ties": [3] * 50 + [7] * 49,
    "whole numbers": np.arange(201) * 7 % 97,
    "floats": (np.arange(101) ** 2 / 137).round(3),
    "a single value": [42],
    "three values": [0, 100, 100],
    "negative numbers": -(np.arange(99) % 50),
}


@each("name", COLUMNS)
def test_with_hardly_any_noise_values_are_those_of_the_records(name):
    values = np.asarray(COLUMNS[name])
    bounds = (0.0, 100.0) if values.dtype.kind == "f" else (-100, 100)
    for q in (0.5, 0.25, 0.3, 0.9, 0.001, 1 / 3):
        options = {"mechanism": "exponential", "rng": rng(1), **NO_NOISE}
        (found,) = frame_of(values).dp.quantiles("v", q, bounds=bounds, **options)["value"]
        assert is_quantile(found, values, q), (q, found)
        if (Fraction(q).limit_denominator(1000) * len(values)).denominator > 1:
            assert found == np.quantile(values, q, method="inverted_cdf")


@each_seed(3, 60)
def test_several_quantiles_are_those_of_the_records(seed):
    """Halves of an odd number of records differ by one, so ranks may be off by one at each depth."""
    source = rng(seed)
    values = source.integers(0, source.integers(2, 400), source.integers(1, 300))
    table = frame_of(values).dp.quantiles("v", QUARTILES, bounds=(0, 400), rng=source, **NO_NOISE)
    assert table.index.tolist() == QUARTILES and table["value"].is_monotonic_increasing
    assert all(is_quantile(found, values, q, off=1) for q, found in table["value"].items())


def test_values_are_clipped_and_those_without_a_value_are_dropped():
    values = [-5.0, -math.inf, 300, 1e300, math.inf, math.nan, None]
    for bounds, q, expected in (
        ((0, 100), 0.5, 100),
        ((0, 1000), 0.5, 300),
        ((0, 1000), 0.7, 1000),
        ((0, 100), 0.3, 0),
    ):
        (found,) = frame_of(values).dp.quantiles("v", q, bounds=bounds, rng=rng(), **NO_NOISE)["value"]
        assert found == expected
    objects = frame_of(pd.Series([math.nan, None, 50, "50", "x"], dtype=object))
    assert objects.dp.quantiles("v", 0.5, bounds=(0, 100), rng=rng(), **NO_NOISE)["value"].tolist() == [50]


def test_nothing_is_counted_of_no_records():
    """All points are as likely, so no bound is."""
    found = [
        frame_of([]).dp.quantiles("v", 0.5, bounds=(0, 10**6), epsilon=1.0, rng=rng(seed))["value"].item()
        for seed in range(20)
    ]
    assert 2e5 < np.mean(found) < 8e5 and len({*found}) == 20


def test_a_series_is_a_frame_of_one_column():
    values = frame_of(np.arange(300) % 90)
    options = {"bounds": (0, 100), "epsilon": 1.0, "confidence": 0.9, **TREES}
    whole = values.dp.quantiles("v", QUARTILES, rng=rng(5), **options)
    pd.testing.assert_frame_equal(values["v"].dp.quantiles(QUARTILES, rng=rng(5), **options), whole)
    plan = values.dp.plan_quantiles("v", QUARTILES, **options)
    pd.testing.assert_frame_equal(plan.release(values, rng=rng(5)), whole)


@each("size", [3, 64, 1000])
@each("unit", [{}, {"privacy_unit": "who", "max_contributions": 2}])
def test_batches_of_records_give_the_same_table(size, unit):
    records = frame_of(np.arange(200) % 90, state=list("ab") * 100, who=np.arange(200) % 70)
    options = {"by": "state", "domain": ["a", "b"], "bounds": (0, 100), "epsilon": 1.0, **TREES, **unit}
    whole = records.dp.quantiles("v", QUARTILES, rng=rng(2), **options)
    with divided(batch=size, buckets=4):
        found = records.dp.quantiles("v", QUARTILES, rng=rng(2), **options)
    pd.testing.assert_frame_equal(found, whole)
    assert found.attrs == whole.attrs


# Times


YEAR = (datetime.date(2024, 1, 1), datetime.date(2024, 12, 31))
DAYS = pd.date_range("2024-01-01", periods=61)
TIMES = {
    "dates": (DAYS, YEAR, {}, DAYS[30]),
    "objects": ([day.date() for day in DAYS], YEAR, {}, DAYS[30]),
    "timestamps": (DAYS + pd.Timedelta("90min"), (DAYS[0], DAYS[-1]), {}, DAYS[30] + pd.Timedelta("90min")),
    "zones": (
        DAYS.tz_localize("Europe/Berlin"), (DAYS[0].tz_localize("UTC"), pd.Timestamp("2025-01-01", tz="UTC")),
        {"granularity": "1h"}, DAYS[30].tz_localize("Europe/Berlin"),
    ),
    "durations": (
        pd.to_timedelta(np.arange(61) * 7, "min"), (pd.Timedelta(0), pd.Timedelta("1D")),
        {"granularity": pd.Timedelta(1, "min")}, pd.Timedelta(210, "min"),
    ),
}  # fmt: skip


@each("name", TIMES)
def test_quantiles_of_times(name):
    values, bounds, options, expected = TIMES[name]
    records = frame_of(values)
    (found,) = records.dp.quantiles("v", 0.5, bounds=bounds, rng=rng(), **NO_NOISE, **options)["value"]
    assert found == expected and getattr(found, "tz", None) == getattr(bounds[0], "tzinfo", None)
    table = records.dp.quantiles(
        "v", 0.5, bounds=bounds, rng=rng(), confidence=0.9, **NO_NOISE, **TREES, **options
    )
    assert table.columns.tolist() == ["value", "lower", "upper"] and len({*table.dtypes}) == 1
    assert table["value"].item() == expected
    assert (table["lower"] <= table["value"]).all() and (table["value"] <= table["upper"]).all()


# Groups


def records_of_groups(seed=0, sizes=(41, 7, 0, 93)):
    source = rng(seed)
    parts = [
        frame_of(source.integers(place * 10, place * 10 + 40, size), state=state, county=county)
        for place, (size, (state, county)) in enumerate(zip(sizes, PLACES.values.tolist(), strict=True))
    ]
    return pd.concat(parts, ignore_index=True)


def of_groups(records, q=0.5, **options):
    given = {"by": BY, "domain": PLACES, "bounds": (0, 100), "rng": rng(3), **NO_NOISE, **options}
    return records.dp.quantiles("v", q, **given)


@each_seed(1, 20)
def test_with_hardly_any_noise_each_group_has_its_quantiles(seed):
    """Trees have a bin for each point, so those of the levels above are exact too."""
    records = records_of_groups(seed)
    table = of_groups(records, QUARTILES, rng=rng(seed), mechanism="exponential", bins=101, strategy=[101])
    assert table["level"].tolist() == ["total"] * 3 + ["state"] * 6 + ["county"] * 12
    for row in table.itertuples():
        own = records
        for name in ("state", "county"):
            own = own[own[name] == getattr(row, name)] if isinstance(getattr(row, name), str) else own
        if len(own):
            assert is_quantile(row.value, own["v"], row.q, off=1 if row.level == "county" else 0)
        assert 0 <= row.value <= 100


def test_a_group_is_the_same_whatever_else_there_is():
    """A single group below all records has the quantiles of the records; so has each of a flat domain."""
    records = records_of_groups(sizes=(0, 0, 0, 93))
    one = of_groups(records, by="state", domain=["b"], **TREES)
    assert is_quantile(one["value"].iloc[1], records["v"], 0.5)
    several = of_groups(records, by="county", domain=list("wxyz"), **TREES)
    assert several["value"].iloc[-1] == one["value"].iloc[-1]


def test_empty_groups_have_values_where_the_group_above_has_them():
    places = pd.DataFrame({"state": list("aabb"), "county": list("wxyz")})
    records = pd.concat(
        [frame_of(np.arange(400) % 20, state="a", county="w"),
         frame_of(80 + np.arange(400) % 20, state="b", county="y")]
    )  # fmt: skip
    domain = dpt.Domain.from_frame(places, by=BY)
    plan = dpt.plan_quantiles("v", 0.5, bounds=(0, 100), domain=domain, epsilon=4.0, **TREES)
    found = [plan.release(records, rng=rng(seed)).set_index("county")["value"] for seed in range(8)]
    assert sum(each["x"] <= 25 for each in found) >= 6
    assert sum(each["z"] >= 75 for each in found) >= 6


def test_a_leaf_above_the_last_level_has_its_own_row():
    places = pd.DataFrame({"state": ["a", "a", "b"], "county": ["x", "y", None]})
    records = pd.concat(
        [frame_of([10] * 31, state="a", county="x"), frame_of([20] * 11, state="a", county="y"),
         frame_of([77] * 21, state="b", county=None)],
        ignore_index=True,
    )  # fmt: skip
    table = of_groups(records, domain=places, confidence=0.9, **TREES)
    assert table["level"].tolist() == ["total", "state", "state", "county", "county"]
    assert table["value"].tolist()[2:] == [77, 10, 20]
    assert (table["lower"] <= table["value"]).all() and (table["value"] <= table["upper"]).all()
    only_drawn = of_groups(records, domain=places, **TREES)
    assert only_drawn["value"].tolist()[2:] == [77, 10, 20]


def test_structural_zeros_have_no_value():
    wards = PLACES.assign(none=[False, True, False, False])
    domain = dpt.Domain.from_frame(wards, by=BY, structural_zeros="none")
    for confidence in (None, 0.9):
        plan = dpt.plan_quantiles(
            "v", 0.5, bounds=(0, 100), domain=domain, confidence=confidence, **NO_NOISE, **TREES
        )
        table = plan.release(records_of_groups(), rng=rng())
        assert table["county"].tolist()[3:] == list("wxyz")
        assert table["value"].isna().tolist() == [False] * 4 + [True] + [False] * 2


def test_public_totals_are_in_the_trees_and_not_in_the_draws():
    records = records_of_groups()
    known = {"total": 10**6, "state": {"a": 10**6, "b": 0}}
    plans = [
        dpt.plan_quantiles("v", 0.5, bounds=(0, 100), domain=DOMAIN, known=each, **NO_NOISE, **TREES)
        for each in (known, None)
    ]
    assert plans[0].trees.totals[1].tolist() == [10**6, 0]
    assert plans[0].drawing == plans[1].drawing and plans[0].draws.loss == plans[1].draws.loss
    table = plans[0].release(records, rng=rng())
    assert is_quantile(table["value"].iloc[-1], records.loc[records["county"] == "z", "v"], 0.5)


@each_seed(2, 40)
def test_intervals_hold_what_they_stand_beside(seed):
    records = records_of_groups(seed)
    for options in ({}, {"by": None, "domain": None}):
        table = of_groups(records, QUARTILES, epsilon=0.3, confidence=0.8, rng=rng(seed), **TREES, **options)
        assert (
            table.loc[table["value"].isna()].filter(["level"]).isin(["total", "state"]).all(axis=None)
        )  # read, and empty
        table = table.dropna(subset="value")
        assert (table["lower"] <= table["value"]).all() and (table["value"] <= table["upper"]).all()
        points = table[["lower", "value", "upper"]].to_numpy()
        assert (points == points.round()).all() and 0 <= points.min() and points.max() <= 100


# Units


def test_rows_of_a_unit_count_up_to_their_bound():
    records = pd.concat([frame_of([100] * 1000, who=0), frame_of([5] * 101, who=range(1, 102))])
    unit = {"privacy_unit": "who", "bounds": (0, 100), "rng": rng(), **NO_NOISE}
    for most, expected in ((1, 5), (100, 5), (103, 100)):
        assert records.dp.quantiles("v", 0.5, max_contributions=most, **unit)["value"].tolist() == [expected]
    check = dpt.plan_quantiles(
        "v", 0.5, bounds=(0, 50), granularity=1, privacy_unit="who", max_contributions=3, epsilon=1.0
    ).secret_check(records)
    assert (check.read, check.counted) == (1101, 1101)
    assert check.clipped.values.tolist() == [["v", 0.0, 50.0, 0, 1000, 0]]
    assert check.kept.set_index("max_contributions")["rows"][3] == 104


def test_draws_are_those_of_the_plan(monkeypatch):
    seen = []
    draw = module.draw_quantiles
    monkeypatch.setattr(module, "draw_quantiles", lambda *args, **own: seen.append(own) or draw(*args, **own))
    for neighbors in ("add_remove", "replace"):
        unit = {"neighbors": neighbors, "privacy_unit": "who", "max_contributions": 4}
        for domain in (None, DOMAIN):
            plan = dpt.plan_quantiles(
                "v",
                [0.25, 0.5],
                bounds=(0, 100),
                domain=domain,
                epsilon=3.0,
                **unit,
                **(TREES if domain else {}),
            )
            plan.release(records_of_groups().assign(who=1), rng=rng())
            own = seen.pop()
            assert own["drawing"] == plan.drawing and own["drawing"].max_contributions == 4
            assert own["drawing"].several and own["drawing"].neighbors == neighbors
            assert own["quantiles"] == [Fraction(1, 4), Fraction(1, 2)] and own["size"] == 101
            assert own["n_groups"] == (4 if domain else 1)
            assert own["measures"] is None if domain is None else len(own["measures"]) == 2
            assert own["drawing"].epsilon == Fraction(plan.draws.epsilon)


def drawn_above(n, **options):
    """Count how often the larger of two points is drawn for a single record at the smaller one."""
    plan = dpt.plan_quantiles("v", 0.5, bounds=(0, 1), granularity=1, **options)
    source, records = rng(11), frame_of([0], who=[1])
    return sum(plan.release(records, rng=source)["value"].item() for _ in range(n))


LAWS = {
    "permute-and-flip": ({"epsilon": 1.0}, math.exp(-1) / 2),
    "exponential": ({"rho": 0.125}, 1 / (1 + math.e)),
    "replace": ({"rho": 0.125, "neighbors": "replace"}, 1 / (1 + math.exp(0.5))),
    "rows of a unit": (
        {"rho": 0.125, "privacy_unit": "who", "max_contributions": 4}, 1 / (1 + math.exp(0.25)),
    ),
}  # fmt: skip


@pytest.mark.slow
def test_points_are_drawn_as_often_as_the_loss_says():
    """The distances of both points differ by 2; weights by the factor exp(2 g)."""
    n = 1000
    for name, (options, share) in LAWS.items():
        found = drawn_above(n, **options)
        assert abs(found - n * share) < 4.5 * math.sqrt(n * share * (1 - share)), name


# The curve of the group above


def uniform(plan, estimates):
    """A base measure without any shape."""
    starts = np.array([0, plan.draws.grid.size])
    return [
        BaseMeasure(starts, np.ones((1, 1), np.int64), np.zeros(plan.domain.tree.n_leaves, np.int64))
    ] * len(plan.q)


def errors_of_counties(n_releases):
    """Mean absolute error of the medians of ten counties with 30 records each, in a state like them."""
    source = rng(7)
    names = [f"{i}" for i in range(10)]
    places = pd.DataFrame({"state": "a", "county": names})
    centres = source.normal(300, 15, 10)
    records = pd.DataFrame(
        {"v": source.normal(np.repeat(centres, 30), 40), "state": "a", "county": np.repeat(names, 30)}
    )
    truth = records.groupby("county")["v"].median().loc[names].to_numpy()
    plan = dpt.plan_quantiles(
        "v", 0.5, bounds=(0, 2000), domain=dpt.Domain.from_frame(places, by=BY), epsilon=1.0,
        mechanism="exponential", bins=64, strategy=[8, 8],
    )  # fmt: skip
    tables = [plan.release(records, rng=rng(seed))["value"].to_numpy()[-10:] for seed in range(n_releases)]
    return np.abs(np.array(tables) - truth).mean()


@pytest.mark.parametrize("n", [3, pytest.param(30, marks=pytest.mark.slow)])
def test_small_groups_are_better_with_the_curve_of_their_state(n, monkeypatch):
    helped = errors_of_counties(n)
    monkeypatch.setattr(QuantilePlan, "_measures", uniform)
    assert helped < 0.5 * errors_of_counties(n)


# What a plan says


def test_a_plan_says_what_is_drawn_and_what_is_read():
    plan = dpt.plan_quantiles(
        "v", [0.5, 0.25], bounds=(0, 100), domain=DOMAIN, confidence=0.9, epsilon=2.0, **TREES
    )
    assert repr(plan).startswith(
        "Plan of the quantiles 0.25, 0.5 of 'v' from a grid: exponential, epsilon=2, protecting each row"
    )
    assert "for intervals at a confidence of 0.9" in repr(plan)
    table = plan.to_frame()
    assert table.columns.tolist() == ["level", "groups", "measured", "share"]
    assert table.values.tolist() == [
        ["total", 1, "tree 2x4, 8 bins", 0.25],
        ["state", 2, "tree 2x4, 8 bins", 0.25],
        ["county", 4, "tree 2x4, 8 bins", 0.25],
        ["county", 4, "exponential, granularity 1", 0.25],
    ]
    pd.testing.assert_frame_equal(plan.compare(), table)
    median = dpt.plan_quantiles("v", 0.5, bounds=(0, 100), epsilon=1.0)
    assert "Plan of the quantile 0.5 of 'v' from a grid: permute_and_flip, epsilon=1," in repr(median)
    many = dpt.plan_quantiles("v", np.arange(1, 20) / 20, bounds=(0, 100), epsilon=1.0, **FEW)
    pd.testing.assert_frame_equal(many.compare(), many.trees.compare())
    assert "Plan of 19 quantiles of 'v' from trees over bins: laplace, epsilon=1," in repr(many)


@each("data", [np.arange(5), 5, None, "frame", frame_of(["a"]).rename(columns={"v": "w"})])
def test_what_is_no_frame_of_records_is_refused(data):
    for plan in (
        dpt.plan_quantiles("v", 0.5, bounds=(0, 100), epsilon=1.0),
        dpt.plan_quantiles("v", 0.5, bounds=(0, 100), epsilon=1.0, **FEW),
    ):
        with pytest.raises(dpt.ArgumentError) as caught:
            plan.release(data)
        assert caught.value.hint and caught.value.argument in ("data", "frame")


@each("value", [pd.Timestamp(0), pd.Timedelta(1)])
def test_a_column_of_another_kind_is_refused(value):
    durations = (pd.Timedelta(0), pd.Timedelta("9D"))
    for bounds in ((0, 100), YEAR if isinstance(value, pd.Timedelta) else durations):
        with pytest.raises(dpt.ArgumentError, match="of a different type than the bounds"):
            frame_of([value]).dp.quantiles("v", 0.5, bounds=bounds, epsilon=1.0)

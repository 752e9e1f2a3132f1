"""Tables of a distribution: whole, consistent, with intervals that hold the truth."""

import dataclasses
import itertools
import json
import math

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.quantiles import quantile_bins
from pandas_dptree.mechanisms.sampling import byte_source
from tests.helpers_cases import each
from tests.helpers_distribution import DOMAIN, GOOD, PLACES, plan, small
from tests.helpers_output import stated_in
from tests.helpers_random import rng

NO_NOISE = {"epsilon": 1e6}


# --- how accurate it is --------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [None, "some"])
@pytest.mark.parametrize("loss", [{"epsilon": 1.0}, {"rho": 0.2}], ids=repr)
def test_tables_show_the_errors_of_their_groups(loss, known):
    keys = pd.DataFrame({"g": [f"{i:03}" for i in range(400)]})
    domain = dpt.Domain.from_frame(keys, by=["g"])
    frame = keys.loc[keys.index.repeat(5)].assign(x=np.tile([0.5, 1.5, 1.5, 4.5, 5.5], 400))
    exact = np.array([1, 3, 3, 3, 4, 5])
    some = {"g": {f"{i:03}": 5 for i in range(0, 400, 2)}} if known else None
    released = plan(6, (0, 6), **loss, domain=domain, known=some).release(frame, rng=rng(6))
    assert (released.totals >= 0).sum() == (200 if known else 0)
    predicted = released.std_errors
    for rows in (released.totals >= 0, released.totals < 0):
        if rows[1:].any():
            seen = (released.estimates - exact)[rows & (np.arange(401) > 0)]
            np.testing.assert_allclose((seen**2).mean(axis=0), predicted[rows][-1] ** 2, rtol=0.5, atol=1e-9)
            assert (predicted[rows & (np.arange(401) > 0)] == predicted[rows][-1]).all()
    table = released.cdf()
    assert table["std_error"].tolist() == predicted.ravel().tolist()
    bins = released.histogram()["std_error"].to_numpy().reshape(401, 6)
    np.testing.assert_allclose(bins[:, 0], predicted[:, 0], rtol=1e-9)
    ranges = released.range_counts([(0, 2), (1, 6)])["std_error"].to_numpy().reshape(401, 2)
    np.testing.assert_allclose(ranges[:, 0], predicted[:, 1], rtol=1e-9)


SHAPES = {
    "empty": [],
    "one": [7.5],
    "ties": [3.5] * 40,
    "ends": [0.0] * 10 + [16.0] * 10,
    "even": list(np.arange(16) + 0.5) * 3,
    "slope": list(np.repeat(np.arange(16) + 0.5, np.arange(16))),
}
GROUPS = pd.DataFrame({"g": range(1000)})
QS = [0.0, 0.01, 0.25, 0.5, 0.9, 1.0]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "options",
    [{"epsilon": 2.0}, {"epsilon": 2.0, "known": "all"}, {"epsilon": 3.0, "strategy": [16]}, {"rho": 0.3,
    "strategy": "tree"}],
    ids=repr,
)  # fmt: skip
def test_intervals_hold_the_truth_as_often_as_promised(options, shape):
    """Each of 1000 groups is a release of its own of the same values."""
    values = SHAPES[shape]
    domain = dpt.Domain.from_frame(GROUPS, by=["g"])
    frame = GROUPS.loc[GROUPS.index.repeat(len(values))].assign(x=np.tile(values, len(GROUPS)))
    if options.get("known"):
        options = {**options, "known": {"g": dict.fromkeys(range(len(GROUPS)), len(values))}}
    released = plan(16, (0, 16), **options, domain=domain).release(frame, rng=rng(7))
    exact = np.histogram(values, 16, (0, 16))[0].cumsum()
    for confidence in (0.9, 0.95):
        table = released.cdf(confidence=confidence)
        lower, upper, count = (
            table[name].to_numpy().reshape(-1, 16)[1:] for name in ("lower", "upper", "count")
        )
        assert (lower <= count).all() and (count <= upper).all()
        assert (np.diff(lower, axis=1) >= 0).all() and (np.diff(upper, axis=1) >= 0).all()
        held = ((lower <= exact) & (exact <= upper)).all(axis=1).mean()
        assert held >= confidence - 0.015
        quantiles = released.quantiles(QS, confidence=confidence)
        low, high, value = (
            quantiles[name].to_numpy().reshape(-1, len(QS))[1:] for name in ("lower", "upper", "value")
        )
        seen = ~np.isnan(value)
        assert (low < high).all() and (low[seen] <= value[seen]).all() and (value[seen] <= high[seen]).all()
        assert (np.diff(low, axis=1) >= 0).all() and (np.diff(high, axis=1) >= 0).all()
        if values:
            wanted = np.array([np.quantile(values, q, method="inverted_cdf") for q in QS])
            place = np.minimum(wanted.astype(int), 15)
            held = ((low <= place) & (place + 1 <= high)).all(axis=1).mean()
            assert held >= confidence - 0.015


def test_intervals_of_a_factorization_hold_the_truth():
    values = SHAPES["slope"]
    exact = np.histogram(values, 16, (0, 16))[0]
    each = plan(16, (0, 16), rho=0.1, strategy="factorization").strategy
    errors = np.abs(
        each.estimates(np.tile(exact, (600, 1)), np.full(600, -1), byte_source(rng(8))) - exact.cumsum()
    )
    for confidence in (0.9, 0.95):
        held = (errors <= each.half_widths(confidence, known_total=False)).all(axis=1).mean()
        assert confidence - 0.015 <= held <= confidence + 0.05


N_BINS = 64
MANY = {
    "even": (np.arange(2000) + 0.5) / 2000,
    "gamma": rng(1).gamma(2, 0.1, 2000),
    "ties": np.repeat([0.1, 0.3, 0.300001, 0.9], [100, 900, 800, 200]),
    "two heaps": np.r_[rng(2).normal(0.2, 0.02, 1500), rng(3).normal(0.8, 0.02, 500)],
    "one bin": np.full(700, 0.5),
    "ends": np.repeat([0.0, 1.0], [250, 250]),
    "long tail": rng(4).pareto(1.5, 2000) / 100,
    "few": np.linspace(0.05, 0.95, 30),
}


def many_releases(shape, n_groups, *, known=False, **options):
    """Release the same values as those of many groups, and return their exact counts as well."""
    counts = np.histogram(np.clip(MANY[shape], 0, 1), N_BINS, (0, 1))[0]
    domain = dpt.Domain.from_frame(pd.DataFrame({"g": range(n_groups)}), by=["g"])
    if known:
        options["known"] = {"g": dict.fromkeys(range(n_groups), int(counts.sum()))}
    planned = plan(N_BINS, (0, 1), domain=domain, **options)
    return planned.release(np.tile(counts, (n_groups, 1)), rng=rng(5)), counts.cumsum()[None]


def missed(released, exact, q, confidence):
    """How often an interval of a group misses, and the mean width in bins."""
    lower, upper = (each[1:] for each in released.quantile_intervals(q, confidence))
    true = quantile_bins(exact, np.atleast_1d(np.float64(q)))
    return ((lower > true) | (upper <= true)).any(axis=1).mean(), (upper - lower).mean()


def width_from_band(released, q, confidence):
    """The mean width in bins of intervals from the band of all cumulative counts."""
    low, high = (each[1:] for each in released._band(confidence))
    parts = np.atleast_1d(q)
    first, last = (
        [np.count_nonzero(one < np.maximum(part * other[:, -1:], 1), axis=1) for part in parts]
        for one, other in ((high, low), (low, high))
    )
    return (np.minimum(np.array(last) + 1, N_BINS) - np.array(first)).mean()


LOSSES = [{"epsilon": 1.0}, {"epsilon": 0.2}, {"rho": 0.1, "strategy": "tree"}, {"rho": 0.05}]


@pytest.mark.slow
@pytest.mark.parametrize("shape", MANY)
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("options", LOSSES, ids=repr)
def test_intervals_of_single_quantiles_and_of_lists_hold_the_truth(shape, known, options):
    made = many_releases(shape, 1000, known=known, **options)
    for q in (0.1, 0.25, 0.5, 0.9, [0.1, 0.25, 0.5, 0.9], np.linspace(0, 1, 41)):
        for confidence in (0.8, 0.95):
            seen, _ = missed(*made, q, confidence)
            assert seen <= 1 - confidence + 0.015, (q, confidence)


@each("known", [False, True])
def test_intervals_are_narrower_than_those_of_the_band(known):
    """Where they are wider than a few bins."""
    made = many_releases("even", 100, known=known, epsilon=0.2)
    for q, part in ((0.5, 0.7 if known else 0.4), ([0.1, 0.25, 0.5, 0.9], 0.85 if known else 0.6)):
        seen, width = missed(*made, q, 0.95)
        assert seen <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 100)
        assert width < part * width_from_band(made[0], q, 0.95)


@pytest.mark.parametrize("n_groups", [60, pytest.param(4000, marks=pytest.mark.slow)])
@each("options", [{"epsilon": 2.0}, {"epsilon": 2.0, "strategy": [8]}, {"rho": 0.1, "strategy": "tree"}])
@each("known", [False, True])
def test_half_widths_of_a_single_level_hold_for_all_levels_together(n_groups, options, known):
    """Many groups of two groups each: all are estimated from three measurements, or more."""
    keys = pd.DataFrame({"a": np.arange(2 * n_groups) // 2, "b": np.arange(2 * n_groups) % 2})
    if known:
        options = {**options, "known": {"a": dict.fromkeys(range(n_groups), 90)}}
    planned = plan(8, (0, 8), domain=dpt.Domain.from_frame(keys, by=["a", "b"]), **options)
    counts = np.array([[3, 0, 9, 20, 8, 0, 0, 5], [0, 10, 10, 5, 5, 5, 5, 5]])
    released = planned.release(np.tile(counts, (n_groups, 1)), rng=rng(6))
    alone = np.sqrt(planned.strategy.variances(known_total=False))
    assert (released.std_errors[1:, :-1] < 0.9 * alone[:-1]).all()
    exact = np.concatenate([np.tile(counts.sum(axis=0), (n_groups, 1)), np.tile(counts, (n_groups, 1))])
    exact, slack = exact.cumsum(axis=1), 3 / math.sqrt(n_groups)
    for confidence in (0.5, 0.8, 0.95):
        lower, upper = (each[1:] for each in released._band(confidence))
        held = ((lower <= exact) & (exact <= upper)).all(axis=1)
        assert held[:n_groups].mean() >= confidence - slack * math.sqrt(confidence * (1 - confidence))
        assert held[n_groups:].mean() >= confidence - slack * math.sqrt(confidence * (1 - confidence))
        for q in (0.1, 0.5, 0.9):
            lower, upper = (each[1:, 0] for each in released.quantile_intervals(q, confidence))
            true = quantile_bins(exact, np.array([q]))[:, 0]
            held = (lower <= true) & (true < upper)
            assert held[:n_groups].mean() >= confidence - slack * math.sqrt(confidence * (1 - confidence))
            assert held[n_groups:].mean() >= confidence - slack * math.sqrt(confidence * (1 - confidence))


def test_intervals_of_quantiles_are_in_order_and_hold_the_estimate():
    released = plan(32, (0, 1), epsilon=0.5, domain=dpt.Domain.from_frame(GROUPS[:40], by=["g"])).release(
        GROUPS[:40].loc[np.repeat(np.arange(40), 9)].assign(x=np.tile(np.linspace(0, 1, 9), 40)), rng=rng(1)
    )
    q = [0.9, 0.0, 0.5, 0.1, 1.0, 0.45]
    lower, upper = released.quantile_intervals(q, 0.8)
    order = np.argsort(q)
    assert lower.shape == upper.shape == (41, 6) and lower.dtype == upper.dtype == np.int64
    assert (np.diff(lower[:, order]) >= 0).all() and (np.diff(upper[:, order]) >= 0).all()
    assert (lower >= 0).all() and (lower < upper).all() and (upper <= 32).all()
    none = released.cumulative[:, -1] == 0
    assert none.any() and (lower[none] == 0).all() and (upper[none] == 32).all()
    table = released.quantiles(q, confidence=0.8)
    low, high, value = (table[name].to_numpy().reshape(41, 6) for name in ("lower", "upper", "value"))
    assert (low * 32 <= lower).all() and (high * 32 >= upper).all()
    assert (np.isnan(value) == none[:, None]).all()
    assert ((low <= value) & (value <= high))[~none].all()


def test_intervals_contain_an_estimate_that_they_exclude():
    """A total of 1.4 is released as 1, and then the first bin has it already."""
    released = plan(3, (0, 3), epsilon=1e6).release(np.array([1, 0, 1]))
    released = dataclasses.replace(released, estimates=np.array([[0.8, 0.8, 1.4]]))
    assert [each.tolist() for each in released.quantile_intervals(1, 0.95)] == [[[2]], [[3]]]
    assert released.quantiles(1).values.tolist() == [[1, 0, 3]]


def test_an_interval_has_a_bin_even_if_the_bounds_contradict_each_other():
    """The first ten values are in the first bin for sure, and for sure not before the last one."""
    released = plan(3, (0, 3), epsilon=1e6).release(np.array([5, 0, 5]))
    released = dataclasses.replace(released, estimates=np.array([[10.0, 0.0, 10.0]]))
    assert [each.tolist() for each in released.quantile_intervals(0.5, 0.95)] == [[[2]], [[3]]]
    assert released.quantiles(0.5).values.tolist() == [[1, 0, 3]]


def test_without_a_confidence_there_are_no_intervals():
    released = plan(epsilon=1.0).release(small([(0, 1.0)] * 9), rng=rng())
    table, with_them = released.quantiles([0.5, 1], confidence=None), released.quantiles([0.5, 1])
    assert table.columns.tolist() == ["value"] and table.attrs["dp"]["confidence"] is None
    assert with_them.attrs["dp"]["confidence"] == 0.95
    pd.testing.assert_frame_equal(table, with_them[["value"]])
    for confidence in (0, 1, "0.9", True):
        with pytest.raises(ArgumentError, match=r"^`confidence` must be a number above 0 and at most 0.999"):
            released.quantile_intervals(0.5, confidence)


VALUES = st.one_of(st.floats(), st.integers(-3, 9), st.sampled_from([0, 1, 2, 3, 4, 5]))


# --- tables --------------------------------------------------------------------------------------------


@settings(max_examples=10)
@given(
    rows=st.lists(st.tuples(st.integers(-1, 2), VALUES), max_size=30), n_bins=st.integers(1, 12),
    loss=st.sampled_from([{"epsilon": 0.3}, {"epsilon": 3}, {"rho": 0.5}, {"epsilon": 1, "delta": 1e-5}]),
    known=st.sampled_from([None, {"total": 0}, {"total": 17}]), grouped=st.booleans(), seed=st.integers(0,
    99),
)  # fmt: skip
def test_tables_are_whole_and_belong_together(rows, n_bins, loss, known, grouped, seed):
    planned = plan(n_bins, (0, 6), **loss, known=known, domain=DOMAIN if grouped else None)
    released = planned.release(small(rows), rng=rng(seed))
    n_groups = 5 if grouped else 1
    table = released.cdf(confidence=0.9)
    count = table["count"].to_numpy().reshape(n_groups, n_bins)
    assert count.dtype == np.int64 and (count >= 0).all() and (np.diff(count, axis=1) >= 0).all()
    if known:
        assert count[0, -1] == known["total"]
        assert table["lower"].iloc[n_bins - 1] == table["upper"].iloc[n_bins - 1] == known["total"]
    share = table["cdf"].to_numpy().reshape(n_groups, n_bins)
    empty = count[:, -1] == 0
    assert np.isnan(share[empty]).all() and (share[~empty, -1] == 1).all()
    assert (share[~empty] == count[~empty] / count[~empty, -1:]).all()
    bins = released.histogram()["count"].to_numpy().reshape(n_groups, n_bins)
    assert (bins.cumsum(axis=1) == count).all() and (bins >= 0).all()
    edges = planned.bins.edges
    places = list(itertools.combinations(range(n_bins + 1), 2))
    ranges = released.range_counts([(edges[i], edges[j]) for i, j in places])
    sums = np.insert(count, 0, 0, axis=1)
    expected = np.stack([sums[:, j] - sums[:, i] for i, j in places], axis=1)
    assert (ranges["count"].to_numpy().reshape(n_groups, -1) == expected).all()
    quantiles = released.quantiles([0, 0.3, 1], confidence=0.9)
    value = quantiles["value"].to_numpy().reshape(n_groups, 3)
    assert (np.isnan(value).all(axis=1) == empty).all()
    assert (
        (quantiles["lower"] >= 0).all()
        and (quantiles["upper"] <= 6).all()
        and (quantiles["lower"] < quantiles["upper"]).all()
    )
    place = np.array([np.flatnonzero(row)[[0, -1]] for row in bins[~empty]], dtype=int).reshape(-1, 2)
    np.testing.assert_allclose(value[~empty, 0], edges[place[:, 0]])
    np.testing.assert_allclose(value[~empty, 2], edges[place[:, 1] + 1])
    for one in (table, ranges, quantiles, released.histogram()):
        assert json.loads(json.dumps(one.attrs["dp"])) == one.attrs["dp"]


FRAMES = [
    pd.DataFrame({"x": [], "a": [], "b": [], "u": []}).astype({"a": object, "b": object}),
    pd.DataFrame({"x": [math.nan] * 3, "a": "s", "b": "u", "u": 1.0}),
    pd.DataFrame({"x": [1e300, -math.inf, 2] * 30, "a": "s", "b": "v", "u": 2.0}),
    pd.DataFrame({"x": [1, 2, 3] * 30, "a": "nowhere", "b": None, "u": 3.0}),
]


@pytest.mark.parametrize("by", [None, ["a", "b"]])
@pytest.mark.parametrize("kind", ["numbers", "times", "zoned", "durations"])
def test_rows_columns_and_types_do_not_depend_on_the_records(kind, by):
    start, day = pd.Timestamp("2024-03-30"), pd.Timedelta(days=1)
    low = {"numbers": 0, "times": start, "zoned": start.tz_localize("Europe/Paris"), "durations": 0 * day}[
        kind
    ]
    step = 1 if kind == "numbers" else day
    looks = set()
    for frame in FRAMES:
        if kind != "numbers":
            frame = frame.assign(x=low + pd.to_timedelta(frame["x"].clip(0, 9), unit="D"))
        released = dpt.release_distribution(
            frame, "x", bounds=(low, low + 4 * step), bins=4, epsilon=1, by=by,
            domain=None if by is None else PLACES, privacy_unit="u", max_contributions=2, rng=rng(),
        )  # fmt: skip
        tables = [
            released.cdf(), released.cdf(confidence=0.9), released.histogram(), released.quantiles([0, 0.5,
            1]),
            released.range_counts([(low, low + 2 * step), (low + step, low + 4 * step)]),
        ]  # fmt: skip
        looks.add(
            tuple(
                (
                    table.shape, tuple(table.columns), tuple(map(str, table.dtypes)), str(table.index.dtype),
                    table.index.name, json.dumps(stated_in(table)), str(table.index.tolist()),
                )
                for table in tables
            )
        )  # fmt: skip
    assert len(looks) == 1
    (look,) = looks
    keys = () if by is None else ("level", "a", "b", "x")
    assert look[0][1] == (*keys, "count", "cdf", "std_error") and look[1][1][-2:] == ("lower", "upper")
    assert look[0][0][0] == (4 if by is None else 20) and look[3][0][0] == (3 if by is None else 15)
    if by is None:
        assert look[0][3].startswith("interval[") and look[0][4] == look[4][4] == "x" and look[3][4] == "q"
    else:
        assert look[3][1] == ("level", "a", "b", "q", "value", "lower", "upper")


def test_groups_stand_in_the_table_with_their_keys():
    frame = small([(0, 0.5), (0, 2.5), (1, 3.5), (2, 1.5), (-1, 1.5), (0, math.nan)])
    table = dpt.histogram(frame, "x", bounds=(0, 4), bins=4, by=["a", "b"], domain=PLACES, **NO_NOISE)
    assert table.columns.tolist() == ["level", "a", "b", "x", "count", "std_error"]
    assert table["level"].tolist() == np.repeat(["total", "a", "a", "b", "b"], 4).tolist()
    assert table["a"].fillna("-").tolist() == np.repeat(["-", "s", "t", "s", "s"], 4).tolist()
    assert table["b"].fillna("-").tolist() == np.repeat(["-", "-", "-", "u", "v"], 4).tolist()
    assert table["x"].array[:4].tolist() == pd.interval_range(0.0, 4.0, closed="left").tolist()
    assert table["count"].tolist() == [
        *[1, 1, 1, 1],
        *[1, 0, 1, 1],
        *[0, 1, 0, 0],
        *[1, 0, 1, 0],
        *[0, 0, 0, 1],
    ]


@settings(max_examples=12)
@given(
    rows=st.lists(st.tuples(st.integers(-1, 2), st.one_of(st.floats(-1, 7), st.integers(0, 6))), max_size=30),
    n_bins=st.integers(1, 9), strategy=st.sampled_from(["auto", "tree", "factorization"]),
)  # fmt: skip
def test_with_hardly_any_noise_tables_are_those_of_the_records(rows, n_bins, strategy):
    frame = small(rows)
    loss = {"rho": 1e6} if strategy == "factorization" else NO_NOISE
    released = dpt.release_distribution(
        frame, "x", bounds=(0, 6), bins=n_bins, by=["a", "b"], domain=PLACES, strategy=strategy, **loss
    )
    qs = [0, 0.1, 0.5, 1 / 3, 0.9, 1]
    groups = [[0, 1, 2], [0, 1], [2], [0], [1]]
    tables = [released.cdf(), released.histogram(), released.quantiles(qs)]
    for at, leaves in enumerate(groups):
        values = np.clip([value for leaf, value in rows if leaf in leaves], 0, 6)
        bins, edges = np.histogram(values, n_bins, (0, 6))
        cumulative, histogram, quantiles = (
            table.iloc[at * size : (at + 1) * size]
            for table, size in zip(tables, (n_bins, n_bins, 6), strict=True)
        )
        assert cumulative["count"].tolist() == bins.cumsum().tolist()
        assert histogram["count"].tolist() == bins.tolist()
        if not len(values):
            assert (
                quantiles["value"].isna().all()
                and (quantiles["lower"] == 0).all()
                and (quantiles["upper"] == 6).all()
            )
            continue
        for q, row in zip(qs, quantiles.itertuples(), strict=True):
            true = np.quantile(values, q, method="inverted_cdf")
            place = min(np.searchsorted(edges, true, side="right") - 1, n_bins - 1)
            assert edges[place] <= row.value <= edges[place + 1]
            assert row.lower == edges[place] and row.upper == edges[place + 1]


def test_quantiles_of_many_values_are_those_of_numpy():
    values = rng(9).lognormal(3, 0.5, 50_000)
    released = dpt.release_distribution(
        pd.DataFrame({"x": values}), "x", bounds=(0, 200), bins=1000, epsilon=5
    )
    qs = np.linspace(0.01, 0.99, 99)
    table = released.quantiles(qs)
    assert table.index.tolist() == qs.tolist() and table.index.name == "q"
    true = np.quantile(values, qs)
    assert np.abs(table["value"] - true).max() < 0.4
    assert ((table["lower"] <= true) & (true <= table["upper"])).all()
    assert released.quantiles(0.5)["value"].item() == table["value"].iloc[49]


def test_a_part_of_the_total_is_not_moved_by_rounding():
    """7 of 100 values are 0.07 of them, although 0.07 * 100 is a little more than 7 in floats."""
    assert 0.07 * 100 > 7
    released = plan(**NO_NOISE, known={"total": 100}).release(small([(0, 0.5)] * 7 + [(0, 3.5)] * 93))
    assert released.quantiles(0.07).values.tolist() == [[1, 0, 1]]


def test_whoever_writes_into_one_table_changes_no_other():
    released = plan(epsilon=1.0).release(small([]))
    tables = [released.cdf, released.histogram, lambda: released.quantiles(0.5)]
    for table in tables:
        table().attrs["dp"]["epsilon"] = 0.0
    assert all(table().attrs["dp"]["epsilon"] == 1.0 for table in tables)


def test_known_groups_without_records():
    known = {"b": pd.Series([0, 4], pd.MultiIndex.from_tuples([("s", "u"), ("s", "v")], names=["a", "b"]))}
    table = dpt.cdf(small([]), "x", bounds=(0, 4), bins=4, by=["a", "b"], domain=PLACES, epsilon=0.5,
    known=known,
                    confidence=0.9, rng=rng())  # fmt: skip
    nobody = table[(table["b"] == "u")]
    assert (nobody[["count", "std_error", "lower", "upper"]] == 0).all(axis=None)
    assert table[table["b"] == "v"]["count"].iloc[-1] == 4
    nobody = plan(known={"total": 0}, epsilon=1.0).release(small([]))
    quantiles = nobody.quantiles(0.5)
    assert np.isnan(quantiles["value"].item()) and quantiles[["lower", "upper"]].values.tolist() == [[0, 4]]


@each("options", [{"epsilon": 1e6}, {"epsilon": 1e300}, {"rho": 1e6, "strategy": "factorization"}])
@each("total", [0, 3, 10, 2**40])
def test_known_counts_are_never_compared_with_the_records(options, total):
    table = dpt.cdf(small([(0, 0.5)] * 3), "x", bounds=(0, 4), bins=4, known={"total": total}, confidence=0.9,
                    **options)  # fmt: skip
    assert table[["count", "lower", "upper"]].iloc[-1].tolist() == [total] * 3
    assert total != 3 or table["count"].tolist() == [3] * 4


def test_a_release_with_the_same_seed_is_the_same_and_others_differ():
    frame = small([(0, 1)] * 9)
    options = {"bounds": (0, 4), "bins": 4, "epsilon": 0.1}
    one, again, other = (dpt.cdf(frame, "x", **options, rng=rng(seed)) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(one, again)
    assert not one.equals(other)
    assert one.attrs["dp"]["rng"].endswith("not private")
    private = dpt.release_distribution(frame, "x", **options)
    assert private.provenance["rng"] == "operating system"
    assert (private.estimates != dpt.release_distribution(frame, "x", **options).estimates).any()


GROUPED = plan(4, epsilon=1, domain=DOMAIN).release(PLACES.assign(x=1.5, who=1), rng=np.random.default_rng(3))
TABLES = {
    "x": [
        GROUPED.cdf(confidence=0.9), GROUPED.histogram(), GROUPED.range_counts([(0, 2), (1, 4)]),
        GROUPED.range_counts([(0, 2)]),
    ],
    "q": [GROUPED.quantiles([0.1, 0.5]), GROUPED.quantiles(0.5)],
}  # fmt: skip


# --- levels of groups ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "table"), [(part, table) for part, each in TABLES.items() for table in each]
)
def test_a_level_of_groups(part, table, tmp_path):
    """As the table itself has it, indexed by the keys and by what it has several rows of a group for."""
    keys = list(DOMAIN.by)
    for depth, name in enumerate(["total", *keys]):
        rows = table[table["level"] == name].drop(columns=["level", *keys[depth:]])
        expected = rows.set_index([*keys[:depth], part])
        pd.testing.assert_frame_equal(table.dp.level(name), expected, check_index_type=False)
    with pytest.raises(ArgumentError, match=r"is not a level: 'x'\.\nHint: the levels are"):
        table.dp.level("x")
    message = (
        rf"of a distribution: it has rows by '{part}' .*\nHint: .*table\.to_html\(\).*Distribution\.plot"
    )
    for call in (table.dp.to_html, table.dp.plot.levels, table.dp.plot.icicle):
        with pytest.raises(ArgumentError, match=message):
            call()
    if part == "q" or table.duplicated(["level", *keys]).any():
        table.to_csv(tmp_path / "table.csv", index=False)
        level = pd.read_csv(tmp_path / "table.csv").dp.level(keys[0])
        assert list(level.index.names) == [keys[0], part] and list(level) == list(table.dp.level(keys[0]))


def test_a_distribution_of_all_records_has_no_levels():
    with pytest.raises(
        ArgumentError, match=r"For a distribution of all records, which has no levels, .*to_html"
    ):
        dpt.histogram(small([(0, 1)]), "x", **GOOD).dp.to_html()


def test_groups_are_drawn_by_their_keys_as_they_are():
    plt = pytest.importorskip("matplotlib.pyplot")
    places = pd.DataFrame({"a": ["s", "s", "t"], "b": pd.Series([1, True, 1], dtype=object)})
    frame = pd.DataFrame(
        {"a": ["s"] * 3, "b": pd.Series([1, True, True], dtype=object), "x": [1.0, 2.0, 3.0]}
    )
    released = dpt.release_distribution(
        frame, "x", bounds=(0, 4), bins=4, by=["a", "b"], domain=places, epsilon=1e6
    )
    for group, count in [(None, 3), ("s", 3), (("s", 1), 1), (("s", True), 2), (("t", 1.0), 0)]:
        ax = released.plot(group, confidence=None)
        assert ax.lines[0].get_ydata().max() == count
        plt.close(ax.figure)
    for group in ("z", ("s", "1"), ("t", True), ("s", 1, 2), (("s", 1),)):
        with pytest.raises(ArgumentError, match="not in the distribution"):
            released.plot(group)

"""Warnings of tables with next to nothing in them, and their usual causes."""

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

import pandas_dptree as dpt
from pandas_dptree import DPTreeWarning, arrays
from pandas_dptree.arrays import several
from pandas_dptree.output.distribution import Distribution
from pandas_dptree.output.empty_tables import totals_of, usual_causes, warn_if_empty
from pandas_dptree.privacy.quantity import COUNT, Quantity
from tests.helpers_cases import each
from tests.helpers_output import stated_in
from tests.helpers_warnings import CELLS, DOMAIN, EMPTY, FACTOR, STATES, N, records, seeded

MONTHS = dpt.calendar("date", ["month"], start="2024-01-01", end="2024-12-31")
MAP = dpt.quadtree("lat", "lon", depth=2, bounds=((0, 90), (90, 180)))


def by_state(frame, **options):
    return dpt.tree_counts(frame, ["state"], epsilon=1.0, domain=STATES, **seeded(), **options)


def sums(frame, by="state", domain=STATES):
    return dpt.tree_sums(frame, by, columns=["cost"], bounds=(0, 500), epsilon=1.0, domain=domain, **seeded())


RELEASES = {
    "counts": by_state,
    "raw counts": lambda frame: by_state(frame, consistency="none"),
    "sums": sums,
    "means": lambda frame: dpt.tree_means(
        frame, "state", columns="cost", bounds=(0, 500), epsilon=1.0, domain=STATES, **seeded()
    ),
    "means alone": lambda frame: dpt.tree_agg(
        frame,
        "state",
        {"cost": dpt.mean("cost", bounds=(0, 500))},
        epsilon=1.0,
        domain=STATES,
        **seeded(),
    ),
    "factors": lambda frame: by_state(frame, delta=1e-6, mechanism=FACTOR),
    "distribution": lambda frame: dpt.quantiles(
        frame, "cost", 0.5, bounds=(0, 500), epsilon=1.0, bins=1000, **seeded()
    ),
    "groups": lambda frame: dpt.histogram(
        frame, "cost", bounds=(0, 500), bins=5, by="state", domain=STATES, epsilon=1.0, **seeded()
    ),
    "months": lambda frame: dpt.tree_counts(frame, MONTHS, epsilon=1.0, **seeded()),
    "map": lambda frame: dpt.tree_counts(frame, MAP, epsilon=1.0, **seeded()),
    "codes": lambda frame: dpt.tree_counts(
        frame, "zip", epsilon=1.0, domain=["00501", "00502", "00503"], **seeded()
    ),
    "prefixes": lambda frame: dpt.tree_counts(
        frame, dpt.prefixes("zip", chars=[2, 5]), epsilon=1.0, delta=1e-6, **seeded()
    ),
    "prefixes by factors": lambda frame: dpt.tree_counts(
        frame, dpt.prefixes("zip", chars=[2, 5]), epsilon=1.0, delta=1e-6, mechanism=FACTOR, **seeded()
    ),
    "people": lambda frame: by_state(frame, privacy_unit="person", max_contributions=1),
    "plan": lambda frame: dpt.plan(dpt.Domain.from_frame(STATES, by="state"), rho=0.5).release(
        frame, **seeded()
    ),
}
OTHER_CASE = {"state": lambda frame: frame["state"].str.lower()}
BLANKS = {"state": lambda frame: frame["state"] + " "}
DOLLARS = {"cost": lambda frame: "$" + frame["cost"].astype(str)}
NO_ZEROS = {"zip": lambda frame: frame["zip"].str.lstrip("0")}
MISTAKES = [
    ("counts", OTHER_CASE, "count", "other case"),
    ("counts", BLANKS, "count", "blanks at the end"),
    ("raw counts", OTHER_CASE, "count", "other case"),
    ("sums", OTHER_CASE, "cost", "other case"),
    ("sums", DOLLARS, "cost", r"cannot be read in 'cost', such as \"\$12.30\""),
    ("means", DOLLARS, "count", r"cannot be read in 'cost', such as \"\$12.30\""),
    ("means alone", OTHER_CASE, "count", "other case"),
    ("means alone", DOLLARS, "count", r"cannot be read in 'cost', such as \"\$12.30\""),
    ("factors", OTHER_CASE, "count", "other case"),
    ("distribution", DOLLARS, "count", "cannot be read in 'cost'"),
    ("groups", OTHER_CASE, "count", "other case"),
    ("groups", DOLLARS, "count", "cannot be read in 'cost'"),
    ("months", {"date": lambda frame: frame["date"].dt.strftime("%d/%m/%Y")}, "count", "31/12/2024"),
    ("map", {"lat": lambda frame: frame["lon"], "lon": lambda frame: frame["lat"]}, "count", "swapped"),
    ("codes", NO_ZEROS, "count", '"501" for "00501"'),
    ("prefixes", {"zip": lambda frame: ["?"] * len(frame)}, "count", "do not fit the prefixes"),
    ("prefixes by factors", {"zip": lambda frame: ["?"] * len(frame)}, "count", "do not fit the prefixes"),
    ("people", {"person": np.nan}, "count", "without a unit in 'person'"),
    ("plan", OTHER_CASE, "count", "other case"),
]


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
def test_a_table_with_something_in_it_gives_no_warning(release):
    with warnings.catch_warnings(action="error"):
        release(records())


@pytest.mark.parametrize(("name", "change", "column", "cause"), MISTAKES)
def test_a_nearly_empty_table_gives_one_warning_with_its_causes(name, change, column, cause):
    with pytest.warns(
        DPTreeWarning, match=rf"{EMPTY}: the total of '{column}' is .*\nHint: .*{cause}"
    ) as caught:
        released = RELEASES[name](records(**change))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    kept = caught[0].message.released
    if isinstance(kept, Distribution):  # of which the verb returns a table
        assert stated_in(kept).items() <= stated_in(released).items()  # which states the confidence, too
    else:
        assert kept is released


def test_each_sum_gives_its_own_warning():
    frame = records(**DOLLARS).assign(fare=1.0)
    frame["cost"] = np.where(frame.index < 5, "7", frame["cost"])  # else the rows would lack a value
    bounds = {"cost": (0, 500), "fare": (0, 10)}
    with pytest.warns(DPTreeWarning) as caught:
        dpt.tree_sums(
            frame, "state", columns=["cost", "fare"], bounds=bounds, epsilon=1.0, domain=STATES, **seeded()
        )
    assert len(caught) == 1
    assert "total of 'cost'" in str(caught[0].message)
    assert "total of 'fare'" in str(caught[0].message)


@each("low, high, warned", [(0, 9, 1), (-9, 0, 1), (2, 9, 1), (-9, 9, 0), (-1, 9, 0)])
def test_sums_of_both_signs_may_be_near_0(low, high, warned):
    with warnings.catch_warnings(record=True, action="always") as caught:
        dpt.tree_sums(
            records(cost="?"),
            "state",
            columns="cost",
            bounds=(low, high),
            epsilon=1.0,
            domain=STATES,
            **seeded(),
        )
    assert sum(str(each.message).startswith(EMPTY) for each in caught) == warned


def test_negative_sums_that_are_large_are_no_mistake():
    with warnings.catch_warnings(action="error"):
        dpt.tree_sums(
            records(cost=-5.0),
            "state",
            columns="cost",
            bounds=(-9, 0),
            epsilon=1.0,
            domain=STATES,
            **seeded(),
        )


def test_groups_of_all_levels_are_not_added_up():
    few = pd.DataFrame({"a": ["s"] * 14, "b": ["u"] * 14, "x": 1.0})
    options = {"bounds": (0, 4), "bins": 4, "by": ["a", "b"], "domain": few[["a", "b"]].drop_duplicates()}
    with pytest.warns(DPTreeWarning, match=EMPTY) as caught:
        released = dpt.release_distribution(few, "x", epsilon=0.5, **options, **seeded())
    total = released.histogram().query("level == 'total'")["count"].sum()
    assert f"the total of 'count' is {total}, and up to" in str(caught[0].message)


def test_a_known_total_is_not_empty():
    with pytest.warns(DPTreeWarning, match="contradict `known`") as caught:
        by_state(records(**OTHER_CASE), known={"total": N})
    assert len(caught) == 1
    with warnings.catch_warnings(action="error"):
        dpt.histogram(
            records(**DOLLARS), "cost", bounds=(0, 9), bins=3, epsilon=1.0, known={"total": N}, **seeded()
        )


def test_counts_that_are_passed_as_numbers():
    plan = dpt.plan(DOMAIN, epsilon=1.0)
    with pytest.warns(DPTreeWarning, match="numbers that are missing or negative, which count as 0"):
        plan.release(np.array([0, -70]), **seeded())


def of_cells(array):
    """Release an array in every way."""
    dataset = xr.Dataset({"u": array, "v": array})
    edges = np.arange(array.sizes["age"] + 1)
    return {
        "one tree": lambda: arrays.tree_counts(array.sum(["month", "age"]), "city", epsilon=1.0, **seeded()),
        "trees": lambda: arrays.tree_counts(array, "city", epsilon=1.0, **seeded()),
        "unbiased trees": lambda: arrays.tree_counts(
            array, "city", epsilon=1.0, consistency="linear", **seeded()
        ),
        "sums": lambda: arrays.tree_sums(array, "city", bounds=(0, 20), epsilon=10.0, **seeded()),
        "variables": lambda: several.tree_counts(dataset, "city", epsilon=1.0, **seeded()),
        "cdf": lambda: arrays.cdf(array, "age", edges=edges, epsilon=1.0, **seeded()),
        "quantiles": lambda: arrays.quantiles(array, "age", 0.5, edges=edges, epsilon=1.0, **seeded()),
        "accessor": lambda: array.dp.tree_counts("city", epsilon=1.0, **seeded()),
    }


@pytest.mark.parametrize("name", of_cells(CELLS))
def test_arrays_give_the_same_warning(name):
    with warnings.catch_warnings(action="error"):
        of_cells(CELLS)[name]()
    with pytest.warns(DPTreeWarning, match=f"{EMPTY}.*\nHint: .*missing or negative") as caught:
        of_cells(CELLS * 0)[name]()
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_many_empty_trees_are_found_although_none_shows_a_negative_total():
    hours = xr.DataArray(np.zeros((3, 2000), int), dims=["city", "hour"])
    for seed in range(20):
        with pytest.warns(DPTreeWarning, match=EMPTY):
            arrays.tree_counts(hours, "city", epsilon=1.0, **seeded(seed))
    hours[:, :50] = 1000  # a few busy hours are something
    with warnings.catch_warnings(action="error"):
        arrays.tree_counts(hours, "city", epsilon=1.0, **seeded())


@pytest.mark.parametrize("consistency", ["integer", "linear"])
def test_many_trees_with_a_few_people_each_are_something(consistency):
    """Their total is 19 standard errors, though that of each is below one."""
    hours = xr.DataArray(np.full((3, 2000), 3), dims=["city", "hour"])
    options = {"epsilon": 0.2, "consistency": consistency, **seeded()}
    with pytest.warns(DPTreeWarning, match="is mostly noise"):
        arrays.tree_counts(hours, "city", **options)
    with pytest.warns(DPTreeWarning, match=EMPTY):
        arrays.tree_counts(hours * 0, "city", **options)


def test_a_total_far_below_0_is_an_empty_one():
    plan = dpt.plan(DOMAIN, epsilon=1.0, consistency="none")
    totals = []
    for seed in range(20):
        with warnings.catch_warnings(record=True, action="always") as caught:
            table = plan.release(records()[:0], **seeded(seed))
        totals.append((table["count"].iloc[0] / table["std_error"].iloc[0], len(caught)))
    assert min(total for total, _ in totals) < -3
    assert all(warned == (total <= 3) for total, warned in totals)


def test_an_empty_total_is_nearly_always_below_the_limit():
    plan = dpt.plan(DOMAIN, epsilon=1.0)
    warned = 0
    for seed in range(100):
        with warnings.catch_warnings(record=True, action="always") as caught:
            plan.release(records()[:0], **seeded(seed))
        warned += len(caught)
    assert warned >= 0.97 * 100  # 99 % at least, and chance


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("clip", [False, True])
def test_counts_with_bounded_relative_error_are_compared_with_their_bound(alpha, clip):
    plan = dpt.plan(DOMAIN, epsilon=1.0, delta=1e-6, mechanism=dpt.Multiplicative(alpha=alpha, clip=clip))
    with pytest.warns(DPTreeWarning, match=EMPTY):
        plan.release(np.zeros(2, int), **seeded())
    with warnings.catch_warnings(action="error"):
        plan.release(np.full(2, 10**6), **seeded())


def test_the_warning_is_a_function_of_the_table():
    """Its arguments are what was released, and what follows from the plan: there is no way for records."""
    assert [*inspect.signature(warn_if_empty).parameters] == ["released", "totals", "causes", "table"]
    assert [*inspect.signature(totals_of).parameters] == ["root", "quantities"]
    assert [*inspect.signature(usual_causes).parameters] == ["domain", "derived", "values", "privacy_unit"]


@given(
    count=st.integers(0, 40),
    std_error=st.floats(0, 20),
    rows=st.lists(st.integers(0, 10**6), max_size=3),
)
def test_tables_with_one_root_have_one_warning(count, std_error, rows):
    """Whatever stands below the root, or was counted: equal roots, equal words."""

    def quote(below):
        table = pd.DataFrame({"level": "total", "count": [count, *below], "std_error": std_error})
        with warnings.catch_warnings(record=True, action="always") as caught:
            warn_if_empty(table, totals_of(table[:1], {"count": COUNT}), "hint", "The released table")
        return [str(each.message) for each in caught]

    assert quote(rows) == quote([])
    assert bool(quote(rows)) == (0 < std_error and count <= 3 * std_error)


@settings(max_examples=8)
@given(seed=st.integers(0, 100), n=st.integers(0, 30), other=st.integers(0, 30))
def test_records_that_give_one_table_give_one_warning(seed, n, other):
    """Data sets differ in rows that are dropped, or in as many as the noise makes up for."""

    def quote(frame):
        with warnings.catch_warnings(record=True, action="always") as caught:
            table = dpt.tree_counts(
                frame, "state", epsilon=1.0, domain=STATES, rng=np.random.default_rng(seed)
            )
        return table, [str(each.message) for each in caught]

    frame = records()[:n]
    table, words = quote(frame)
    same, others = quote(pd.concat([frame, records(**OTHER_CASE)[:other]]))
    pd.testing.assert_frame_equal(table, same)
    assert words == others
    one_more, more_words = quote(records()[: n + 1])
    if one_more.equals(table):
        assert more_words == words


def test_nothing_is_lost_where_a_warning_is_an_error():
    with warnings.catch_warnings(action="error"), pytest.raises(DPTreeWarning) as caught:
        by_state(records(**OTHER_CASE))
    released = caught.value.released
    assert released["level"].tolist() == ["total", "state", "state"]
    assert released.attrs["dp"]["epsilon"] == 1.0


AGAIN = "the data are already a release"


def test_a_table_that_is_released_again_gives_a_warning_before_anything_is_spent():
    table = by_state(records())
    tree = dpt.prefixes("state", chars=[1, 2])
    for again in [
        lambda: by_state(table),
        lambda: by_state(
            table[table["level"] == "state"].assign(person=1), privacy_unit="person", max_contributions=1
        ),
        lambda: by_state(table.rename(columns={"count": "n"})),
        lambda: dpt.tree_sums(
            table.assign(cost=1), "state", columns="cost", bounds=(0, 9), epsilon=1.0, domain=STATES
        ),
        lambda: dpt.quantiles(table, "count", 0.5, bounds=(0, 9), bins=9, epsilon=1.0, **seeded()),
        lambda: dpt.tree_counts(table, tree, epsilon=1.0, delta=1e-6, **seeded()),
        lambda: dpt.plan(DOMAIN, epsilon=1.0).release(table, **seeded()),
    ]:
        with pytest.warns(DPTreeWarning) as second:
            again()
        first, *others = [str(each.message) for each in second]
        assert AGAIN in first
        assert second[0].filename == __file__
        assert all(each.startswith(EMPTY) for each in others)
        with warnings.catch_warnings(action="error"), pytest.raises(DPTreeWarning, match=AGAIN) as caught:
            again()
        assert caught.value.released is None


def test_a_released_dataset_gives_the_same_warning():
    table = arrays.cdf(CELLS, "age", edges=range(6), epsilon=1.0, **seeded())[["count"]]
    with pytest.warns(DPTreeWarning, match=AGAIN) as caught:
        several.tree_counts(table, "city", epsilon=1.0, **seeded())
    assert len(caught) == 1


def test_a_released_array_gives_the_same_warning():
    noisy = CELLS.assign_attrs(dp='{"mechanism": "laplace"}')
    for again in (
        lambda: arrays.cdf(noisy, "age", edges=range(6), epsilon=1.0, **seeded()),
        lambda: arrays.quantiles(noisy, "age", 0.5, edges=range(6), epsilon=1.0, **seeded()),
        lambda: arrays.tree_counts(noisy, ["city"], epsilon=1.0, **seeded()),
    ):
        with pytest.warns(DPTreeWarning, match=AGAIN) as caught:
            again()
        assert len(caught) == 1


@each("provenance", [{}, {"mine": 1}, 7, None, "text", ["mechanism"]])
def test_what_others_put_into_attrs_is_left_alone(provenance):
    frame = records()
    frame.attrs["dp"] = provenance
    with warnings.catch_warnings(action="error"):
        by_state(frame)


def test_attrs_are_trusted_for_nothing_else():
    frame = records()
    frame.attrs["dp"] = {"mechanism": "laplace", "epsilon": 0.0, "count": 0}
    rng = [np.random.default_rng(1) for _ in range(2)]
    with pytest.warns(DPTreeWarning, match=AGAIN):
        table = dpt.tree_counts(frame, "state", epsilon=1.0, domain=STATES, rng=rng[0])
    pd.testing.assert_frame_equal(
        table, dpt.tree_counts(records(), "state", epsilon=1.0, domain=STATES, rng=rng[1])
    )


def test_one_sided_sums_alone_have_totals():
    table = pd.DataFrame({"a": [5.0], "a_std_error": [2.0], "count": [7], "std_error": [1.0]})
    totals = totals_of(table, {"a": Quantity.of("a", (-3, 4)), "count": COUNT})
    assert {name: (int(total[0]), noise) for name, (total, noise) in totals.items()} == {"count": (7, 3.0)}

"""Warnings of what released numbers contradict, on tables that are right and on tables that are not."""

import itertools
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import pandas_dptree as dpt
from pandas_dptree.mechanisms.arguments import noise_source
from pandas_dptree.output import doubtful_tables
from pandas_dptree.output.doubtful_tables import Level, empty_values, mostly_noise, noise_reach
from pandas_dptree.plans.doubts import doubts_of
from pandas_dptree.plans.execute import measured
from tests.helpers_cases import each
from tests.helpers_unit_tables import PLACES, VISITS, people

REGIONS = range(12)
BY = ["region", "sex"]
DOMAIN = dpt.Domain.from_frame(
    pd.DataFrame(itertools.product(REGIONS, ["f", "m"]), columns=BY), by=BY
)  # 60,000 people, 2,500 in each leaf
LEAVES = np.full(24, 2500)
NO_WOMEN = LEAVES * np.tile([0, 1], 12)
LOSSES = [
    {"epsilon": 1.0},
    {"epsilon": 0.5, "neighbors": "replace"},
    {"rho": 0.1},
    {"epsilon": 1.0, "delta": 1e-6},
]


def doubts(plan, leaves, seed=0, domain=None):
    """Measure exact leaves, and return the beginnings of all warnings."""
    (values,) = measured([plan], [np.asarray(leaves)], noise_source(np.random.default_rng(seed)))
    found = doubts_of({plan.quantity.name: (plan, values)}, domain or plan.domain)
    return [each.fact for each in found]


def share(plan, leaves, words, n=60, **options):
    """How many of n releases give a warning with these words, and no other."""
    found = [doubts(plan, leaves, seed, **options) for seed in range(n)]
    assert all(words in fact for facts in found for fact in facts)
    return sum(map(bool, found)) / n


@each("loss", LOSSES)
@each("consistency", ["integer", "none"])
def test_a_value_that_is_coded_otherwise(loss, consistency):
    plan = dpt.plan(DOMAIN, consistency=consistency, **loss)
    assert share(plan, NO_WOMEN, "next to nothing for ['f'] of 'sex'") >= 0.95
    assert share(plan, LEAVES, "") == 0


def test_the_first_key_has_the_total_as_its_only_parent():
    plan = dpt.plan(DOMAIN, epsilon=1.0)
    assert doubts(plan, np.repeat([9000, 0, 9000], [8, 6, 10])) == [
        "The released table has next to nothing for [4, 5, 6] of 'region', while other values have more: "
        "truly rare, or coded otherwise in the records."
    ]


@each("loss", LOSSES)
def test_a_value_with_a_tenth_of_what_others_have_is_not_rare(loss):
    """Whatever the noise: where it hides a tenth, it hides too much of the others too."""
    for size in (0, 10, 100, 1000, 10_000):
        plan = dpt.plan(DOMAIN, **loss)
        words = [fact for seed in range(20) for fact in doubts(plan, np.tile([size // 10, size], 12), seed)]
        assert not [fact for fact in words if "next to nothing" in fact]


def test_values_under_few_parents_are_not_compared():
    cities = pd.DataFrame({"state": list("aabbbccc"), "city": list("ucucxucy")})
    plan = dpt.plan(dpt.Domain.from_frame(cities, by=["state", "city"]), epsilon=1.0)
    assert plan.domain.keys(2)["city"].tolist() == list("cucuxcuy")
    assert doubts(plan, [1000, 1000, 1000, 1000, 0, 1000, 1000, 0]) == []  # x and y are in one state each
    assert "['u'] of 'city'" in doubts(plan, [1000, 0, 1000, 0, 1000, 1000, 0, 1000])[0]


def test_where_most_values_are_empty_nothing_is_said():
    domain = dpt.Domain.from_frame(pd.DataFrame({"code": range(100)}), by=["code"])
    plan = dpt.plan(domain, epsilon=1.0)
    assert doubts(plan, np.where(np.arange(100) < 20, 20_000, 0)) == []
    (fact,) = doubts(plan, np.where(np.arange(100) < 80, 20_000, 0))
    assert "[80, 81, 82, 83, 84, 85, 86, 87, ...] of 'code'" in fact


def test_known_zeros_and_derived_keys_are_no_doubt():
    plan = dpt.plan(DOMAIN, epsilon=1.0, known={"sex": {(region, "f"): 0 for region in REGIONS}})
    assert doubts(plan, NO_WOMEN) == []
    months = dpt.derived_domain(dpt.calendar("day", ["year", "month"], start="2024-01-01", end="2025-12-31"))
    plan = dpt.plan(months, epsilon=1.0)
    assert doubts(plan, np.tile([0, *[1000] * 11], 2)) == []


@each("loss", LOSSES)
@each("stated", [50_000, 70_000])
def test_a_known_total_that_is_wrong(loss, stated):
    wrong = dpt.plan(DOMAIN, known={"total": stated}, **loss)
    assert share(wrong, LEAVES, f"says that the total holds {stated}, but") >= 0.95
    right = dpt.plan(DOMAIN, known={"total": 60_000}, **loss)
    assert share(right, LEAVES, "") == 0


def test_known_counts_of_some_nodes():
    options = {"epsilon": 1.0, "consistency": "none"}
    regions = dpt.plan(DOMAIN, known={"region": {3: 5000, 7: 4000}}, **options)
    assert "region=7 holds 4000, but" in doubts(regions, LEAVES)[0]
    leaves = dpt.plan(DOMAIN, known={"sex": {(3, "f"): 2500, (7, "m"): 900, (8, "m"): 950}}, **options)
    (fact,) = doubts(leaves, LEAVES)
    assert "region=7, sex='m' holds 900, but 2" in fact and ", as for 1 more." in fact
    zeros = dpt.plan(DOMAIN, known={"region": {3: 0}}, **options)
    assert "holds 0, but 2" in doubts(zeros, LEAVES)[0]


def test_nothing_is_said_of_known_leaves_whose_measurements_the_loss_does_not_cover():
    """A unit moves one unknown leaf, or has one row in it, but could move many known ones."""
    known = {"sex": {(region, sex): 0 for region in REGIONS for sex in "fm" if (region, sex) != (11, "m")}}
    options = {"epsilon": 1.0, "split": {"sex": 1.0}, "known": known}
    assert "holds 0, but 2" in doubts(dpt.plan(DOMAIN, **options), LEAVES)[0]
    people = {"privacy_unit": "person", "max_contributions": 24, "max_per_leaf": 1}
    for more in ({"neighbors": "replace"}, people):
        plan = dpt.plan(DOMAIN, **options, **more)
        assert plan.sensitivity.levels[-1].l1 == 1
        assert doubts(plan, LEAVES) == []


@each("loss", LOSSES)
def test_a_table_that_is_mostly_noise(loss):
    row = {"privacy_unit": "person"} | loss
    many = dpt.plan(DOMAIN, max_contributions=10_000, **row)
    assert share(many, LEAVES, "mostly noise: on no level below its total are the values of 'count'") >= 0.95
    few = dpt.plan(DOMAIN, max_contributions=3, **row)
    assert share(few, LEAVES, "") == 0


SUMS = {"column": "cost", "granularity": 1}


def test_of_distinct_units_a_smaller_bound_on_their_nodes_is_a_remedy():
    with pytest.warns(dpt.DPTreeWarning, match=r"mostly noise.*\nHint: choose a smaller max_nodes, fewer or"):
        people(epsilon=0.01, rng=np.random.default_rng(2))
    with pytest.warns(dpt.DPTreeWarning, match=r"mostly noise.*\nHint: choose a smaller max_contributions, "):
        rows = {"privacy_unit": "person", "max_contributions": 3, "rng": np.random.default_rng(2)}
        VISITS.dp.tree_counts(["region", "district"], domain=PLACES, epsilon=0.008, **rows)


def test_bounds_that_are_too_wide():
    wide = dpt.plan(DOMAIN, epsilon=1.0, bounds=(-(10**7), 10**7), **SUMS)
    assert (
        share(wide, 60 * LEAVES, "mostly noise: on no level below its total are the values of 'cost'") >= 0.95
    )
    fit = dpt.plan(DOMAIN, epsilon=1.0, bounds=(-500, 500), **SUMS)
    assert share(fit, 60 * LEAVES, "") == 0
    assert share(fit, 60 * LEAVES * np.tile([1, -1], 12), "") == 0  # regions add up to 0, leaves do not


def test_means_are_compared_with_what_adds_to_them():
    people = pd.DataFrame(DOMAIN.keys(2).to_numpy().repeat(500, axis=0), columns=BY).assign(cost=60.0)
    options = {"columns": "cost", "epsilon": 1.0, "domain": DOMAIN, "rng": np.random.default_rng(0)}
    with warnings.catch_warnings(action="error"):
        dpt.tree_means(people, BY, bounds=(0, 500), **options)
    with pytest.warns(
        dpt.DPTreeWarning, match="mostly noise.*'cost'.*\nHint: choose tighter bounds of 'cost'"
    ):
        dpt.tree_means(people, BY, bounds=(0, 10**7), **options)


@given(st.integers(1, 10**9))
def test_the_reach_of_noise_keeps_to_one_table_in_a_thousand(n):
    reach = noise_reach(n)
    r = np.sqrt(1 + 2 * reach**2)
    assert (r + 1) / 2 * np.exp(1 - r) * n <= 1.0000001e-3
    assert np.exp(-np.sqrt(2) * reach) / 2 * n <= 1e-3  # of Laplace noise


def test_of_private_keys_no_hidden_node_decides():
    """Two data sets that differ in private nodes too small to be shown: the same warning, word for word."""
    public = DOMAIN.keys(2)
    shown = public.iloc[1::2].loc[lambda x: x.index.repeat(2000)].assign(zip="big")
    options = {
        "epsilon": 1.0, "delta": 1e-9, "domain": DOMAIN, "private_keys": ["zip"], "privacy_unit": dpt.ROWS,
    }  # fmt: skip

    def said(records, seed=0):
        with warnings.catch_warnings(record=True, action="always") as caught:
            dpt.tree_counts(records, [*BY, "zip"], rng=np.random.default_rng(seed), **options)
        return [str(each.message) for each in caught]

    (alone,) = said(shown)
    assert "['f'] of 'sex'" in alone
    for n in range(1, 6):
        rows = shown.iloc[: 2000 * n : 2000]
        hidden = rows.assign(zip=[f"only {place}" for place in range(n)])
        assert said(pd.concat([shown, hidden])) == [alone]


def test_arrays_give_the_same_warnings():
    cells = xr.DataArray(
        np.tile([0, 500], (3, 12, 1)), dims=["month", *BY], coords={"sex": ["f", "m"]}, name="visits"
    )
    options = {"epsilon": 1.0, "rng": np.random.default_rng(0)}
    both = xr.Dataset({"a": cells, "b": cells + 500})
    for release in (
        lambda: cells.dp.tree_counts(BY, **options),
        lambda: cells.sum("month").dp.tree_counts(BY, **options),
        lambda: both.dp.tree_counts(BY, **options),
    ):
        with pytest.warns(dpt.DPTreeWarning, match="'f'. of 'sex'") as caught:
            release()
        assert len(caught) == 1 and caught[0].filename == __file__
    with warnings.catch_warnings(action="error"):
        (cells + 500).dp.tree_counts(BY, **options)


def test_groups_of_a_distribution_give_the_same_warning():
    people = DOMAIN.keys(2).iloc[1::2].loc[lambda x: x.index.repeat(2000)].assign(cost=60.0)
    with pytest.warns(dpt.DPTreeWarning, match="'f'. of 'sex'") as caught:
        released = dpt.release_distribution(
            people, "cost", bounds=(0, 100), bins=10, by=BY, domain=DOMAIN, epsilon=1.0,
            rng=np.random.default_rng(0),
        )  # fmt: skip
    assert caught[0].message.released is released


def test_nothing_is_lost_where_a_warning_is_an_error(tmp_path):
    people = DOMAIN.keys(2).iloc[1::2].loc[lambda x: x.index.repeat(2000)]
    path = tmp_path / "ledger.sqlite"
    ledger = dpt.Ledger.create(path, account="all", epsilon=2.0, privacy_unit=dpt.ROWS)
    with warnings.catch_warnings(action="error"), pytest.raises(dpt.DPTreeWarning) as caught:
        dpt.tree_counts(people, BY, epsilon=1.0, domain=DOMAIN, ledger=ledger["all"], note="once")
    assert caught.value.released["level"].tolist()[:2] == ["total", "region"]
    assert ledger.to_frame()["released"].tolist() == [True]


def test_functions_see_noisy_numbers_alone():
    """Their arguments are estimates and the plan: there is no way for records."""
    levels = [Level(np.array([9.0]), np.ones(1)), Level(np.array([4.0, 5.0]), np.ones(1))]
    assert mostly_noise("count", levels, "hint") == []
    small = dpt.Domain.from_frame(pd.DataFrame({"a": [1, 2]}), by=["a"])
    assert empty_values(small, levels) == []


def said(release, n=1):
    """The warnings of n releases."""
    found = []
    for seed in range(n):
        with warnings.catch_warnings(record=True, action="always") as caught:
            release(np.random.default_rng(seed))
        found.append([str(each.message) for each in caught])
    return found


def quantiles(cost, q=(0.1, 0.5, 0.9), **options):
    frame = pd.DataFrame({"cost": cost})
    return lambda rng: dpt.quantiles(frame, "cost", list(q), rng=rng, **{"epsilon": 1.0} | options)


COSTS = np.random.default_rng(0).gamma(2, 30, 5000)


def test_quantiles_at_bounds():
    assert said(quantiles(COSTS, bounds=(0, 500)), n=5) == [[]] * 5
    for bounds, words in {
        (0, 80): "lie in the last bin, at the bound: [0.9].",
        (60, 500): "lie in the first bin, at the bound: [0.1, 0.5].",
        (0, 10**7): "lie in the first bin, at the bound: [0.1, 0.5, 0.9].",
    }.items():
        for strategy in ("auto", [1000]):
            for (fact,) in said(quantiles(COSTS, bounds=bounds, strategy=strategy), n=5):
                assert f"Quantiles of 'cost' {words}" in fact
    assert said(quantiles(COSTS, bounds=(0, 80), known={"total": 5000})) != [[]]


def test_quantiles_in_wide_bins_or_at_the_ends_are_no_doubt():
    assert said(quantiles(COSTS, bounds=(0, 10**7), bins=5)) == [[]]
    assert said(quantiles(COSTS, q=(0, 1), bounds=(0, 80))) == [[]]
    slope = np.sqrt(np.random.default_rng(1).random(20_000)) * 100  # 4 % lie in the last of 50 bins
    assert said(quantiles(slope, q=(0.01, 0.99), bounds=(0, 100), bins=50), n=10) == [[]] * 10


def test_intervals_from_bound_to_bound():
    few = quantiles(COSTS[:300], q=(0.25, 0.5), bounds=(0, 500), epsilon=0.11, mechanism="laplace")
    found = [fact for (fact,) in filter(None, said(few, n=20))]  # a total of about four standard errors
    assert all("mostly noise: the intervals" in fact or "nearly empty" in fact for fact in found)
    assert 3 < sum("mostly noise" in fact for fact in found) < len(found) < 20
    frame = pd.DataFrame({"region": np.arange(5000) % 100, "cost": COSTS})
    groups = {"by": "region", "domain": range(100), "bounds": (0, 500), "epsilon": 0.5, "bins": 1000}
    ((fact,),) = said(lambda rng: dpt.quantiles(frame, "cost", 0.5, rng=rng, **groups))
    assert "nearly as wide as its bounds in most groups of every level" in fact
    groups["epsilon"] = 20.0
    assert said(lambda rng: dpt.quantiles(frame, "cost", 0.5, rng=rng, **groups)) == [[]]


def test_drawn_quantiles_at_bounds():
    half = {"q": (0.25, 0.5, 0.75), "granularity": 0.01}
    assert said(quantiles(COSTS, bounds=(0, 500), **half), n=3) == [[]] * 3
    for bounds, words in {
        (0, 40): "are equal to the upper bound: [0.5, 0.75].",
        (60, 500): "are equal to the lower bound: [0.25, 0.5].",
    }.items():
        ((fact,),) = said(quantiles(COSTS, bounds=bounds, **half))
        assert f"Quantiles of 'cost' {words}" in fact
    frame = pd.DataFrame({"region": np.arange(5000) % 10, "cost": COSTS})
    groups = {"by": "region", "domain": range(10), "mechanism": "exponential", "bins": 8, "epsilon": 5.0}
    groups |= {"bounds": (0, 20), "granularity": 0.01}
    ((fact,),) = said(lambda rng: dpt.quantiles(frame, "cost", 0.5, rng=rng, **groups))
    assert "Quantiles of 'cost' are equal to the upper bound: [0.5] in most groups." in fact


def test_draws_alone_tell_nothing_of_how_many_records_there_are():
    """With trees beside them, an empty table is found by their totals."""
    nobody = pd.DataFrame({"cost": ["$12.30"] * 50, "region": "N"})
    ask = partial(dpt.quantiles, nobody, "cost", 0.5, bounds=(0, 500), granularity=1, epsilon=1.0)
    for options in ({"confidence": 0.9, "bins": 8}, {"by": "region", "domain": ["N"], "bins": 8}):
        (facts,) = said(lambda rng, own=options: ask(rng=rng, mechanism="exponential", **own))
        assert any("nearly empty" in fact and "cannot be read in 'cost'" in fact for fact in facts)
    assert said(lambda rng: ask(rng=rng)) == [[]]


def test_a_warning_that_is_raised_has_the_drawn_table():
    with warnings.catch_warnings(action="error"), pytest.raises(dpt.DPTreeWarning) as caught:
        quantiles(COSTS, q=[0.5], bounds=(0, 20), granularity=0.01)(None)
    table = caught.value.released
    assert table["value"].tolist() == [20.0] and table.attrs["dp"]["mechanism"] == "permute_and_flip"


def test_one_step_of_noise_is_no_quantile_at_a_bound():
    """Discrete noise of hardly any variance still moves by whole steps, now and then."""
    small = doubtful_tables.Level(np.array([[1.0, 0, 0, 0, 1]]), np.full((1, 5), 1e-9))
    assert doubtful_tables.quantiles_at_bounds("cost", np.array([0.5]), small) == []
    many = doubtful_tables.Level(np.array([[100.0, 0, 0, 0, 100]]), np.full((1, 5), 1e-9))
    assert len(doubtful_tables.quantiles_at_bounds("cost", np.array([0.5]), many)) == 1

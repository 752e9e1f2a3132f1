"""Warnings of arguments that are probably not meant."""

import warnings

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.plans.doubtful_arguments import order_meant
from tests.helpers_cases import each

PLACES = pd.DataFrame(
    [(f"s{i % 3}", f"c{i % 9}", f"t{i}") for i in range(40)], columns=["state", "county", "city"]
).assign(kind=[f"k{i % 2}" for i in range(40)], year=2024, code=range(40))
RECORDS = PLACES.loc[PLACES.index.repeat(200)].reset_index(drop=True)


def domain(*by):
    return dpt.Domain.from_frame(PLACES.drop_duplicates([*by]), by=[*by])


@each(
    "by, meant",
    [
        (("city", "county", "state"), ("state", "county", "city")),
        (("state", "city", "county"), ("state", "county", "city")),
        (("county", "state"), ("state", "county")),
        (("city", "kind"), ("kind", "city")),
        (("state", "county", "city"), ()),
        (("city", "code"), ()),  # two names of the same
        (("city", "year"), ()),  # one value throughout
        (("state", "kind"), ()),
        (("state",), ()),
    ],
)
def test_the_order_of_keys(by, meant):
    assert order_meant(domain(*by)) == meant


def test_short_paths_and_derived_keys():
    short = pd.DataFrame({"a": list("abcdefghi"), "b": [*"uuuuvvvv", None]})
    assert order_meant(dpt.Domain.from_frame(short, by=["a", "b"])) == ("b", "a")
    assert order_meant(dpt.Domain.from_frame(short.iloc[1:], by=["a", "b"])) == ()  # too few to tell
    days = dpt.calendar("day", ["day"], start="2024-01-01", end="2024-01-09")
    assert order_meant(dpt.derived_domain(days)) == ()


REVERSED = ["city", "county", "state"]
RELEASES = {
    "plan": lambda **own: dpt.plan(domain(*REVERSED), **own),
    "counts": lambda **own: RECORDS.dp.tree_counts(REVERSED, domain=PLACES[REVERSED], **own),
    "observed": lambda **own: RECORDS.dp.tree_counts(REVERSED, domain="observed", **own),
    "means": lambda **own: dpt.tree_means(
        RECORDS, REVERSED, columns="year", bounds=(0, 3000), domain=PLACES[REVERSED], **own
    ),
    "quantiles": lambda **own: dpt.release_distribution(
        RECORDS, "year", bounds=(0, 3000), bins=4, by=REVERSED, domain=PLACES[REVERSED], **own
    ),
    "drawn quantiles": lambda **own: dpt.plan_quantiles(
        "year", 0.5, bounds=(0, 3000), bins=4, mechanism="exponential", domain=domain(*REVERSED), **own
    ),
    "private": lambda **own: dpt.plan(
        domain(*REVERSED), private_keys=["zip"], privacy_unit=dpt.ROWS, delta=1e-9, **own
    ),
}


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
def test_keys_in_reverse_order_give_one_warning(release):
    with pytest.warns(dpt.DPTreeWarning, match=r"did you mean by=\['state', 'county', 'city'\]\?") as caught:
        release(epsilon=5.0)
    assert len(caught) == 1 and caught[0].filename == __file__


@each("delta, warned", [(1e-4, 1), (1 / 8000, 0), (2e-4, 1), (1e-6, 0)])
def test_a_delta_above_one_in_a_known_total(delta, warned):
    own = {"epsilon": 1.0, "delta": delta, "known": {"total": 8000 if warned == 0 else 20_000}}
    means = {"columns": "year", "bounds": (0, 3000)}
    for plan in (
        lambda: dpt.plan(domain("state"), **own),
        lambda: dpt.plan_means(domain("state"), **means, **own),
        lambda: dpt.plan_distribution("year", bounds=(0, 3000), bins=9, domain=domain("state"), **own),
    ):
        with warnings.catch_warnings(record=True, action="always") as caught:
            plan()
        found = [str(each.message) for each in caught]
        assert len(found) == warned
        assert all("known total of n = 20,000" in each and "for example 5e-07" in each for each in found)


def test_without_a_known_total_or_a_delta_nothing_is_said():
    with warnings.catch_warnings(action="error"):
        dpt.plan(domain("state"), epsilon=1.0, delta=1e-4)
        dpt.plan(domain("state"), epsilon=1.0, known={"total": 10**9})
        dpt.plan(
            dpt.Tree.from_branching([3]), epsilon=1.0, delta=1e-4, known={"level_1": np.array([5, 5, np.nan])}
        )

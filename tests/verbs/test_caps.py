"""Bounds on the rows of a unit in each node, from the arguments of verbs to what a table says."""

import json

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError
from tests.helpers_cases import each

PLACES = pd.DataFrame({"region": list("aaabb"), "clinic": list("vwxyz")})
DOMAIN = dpt.Domain.from_frame(PLACES, by=["region", "clinic"])
UNIT = {"privacy_unit": "person", "max_contributions": 12}
CAPS = {"max_per_leaf": 1, "max_per_node": {"region": 2}}
EXACT = {"epsilon": 200.0, "mechanism": "laplace", "split": "uniform"}
"""So little noise that counts are hardly moved: by less than `NOISE`."""
FACTOR = {"epsilon": 1.0, "delta": 1e-6, "mechanism": dpt.Multiplicative(alpha=0.5)}


def visits():
    """Make five rows in each clinic for each of 100 people."""
    rows = pd.concat([PLACES.assign(person=person, cost=3.0) for person in range(100)] * 5)
    return rows.sample(frac=1, random_state=0)


def shown(table, column="count"):
    return dict(zip(table["clinic"].fillna(table["region"]).fillna("total"), table[column], strict=True))


NOISE = {"abs": 9}


def check_counts(table):
    """Each person is counted twice in a region, and once in a clinic."""
    found = shown(table)
    expected = {"total": 400, "a": 200, "b": 200, "y": 100, "z": 100, **dict.fromkeys("vwx", 200 / 3)}
    sampled = dict.fromkeys("vwx", 30)
    for name, count in expected.items():
        assert found[name] == pytest.approx(count, abs=sampled.get(name, NOISE["abs"]))


def test_counts_sums_and_means_count_each_unit_once_in_a_leaf():
    given = {"domain": DOMAIN, **EXACT, **UNIT, **CAPS}
    check_counts(dpt.tree_counts(visits(), ["region", "clinic"], **given))
    costs = {"columns": "cost", "bounds": (0, 10)}
    assert shown(dpt.tree_sums(visits(), ["region", "clinic"], **costs, **given), "cost")[
        "z"
    ] == pytest.approx(300, abs=30)
    assert shown(dpt.tree_means(visits(), ["region", "clinic"], **costs, **given), "cost")[
        "z"
    ] == pytest.approx(3, abs=0.5)
    asked = {"visits": "count", "cost": dpt.sum("cost", bounds=(0, 10))}
    table = dpt.tree_agg(visits(), ["region", "clinic"], asked, **given)
    check_counts(table.rename(columns={"visits": "count"}))
    assert table["cost"].tolist() == pytest.approx(3 * table["visits"], abs=60)


@each("mechanism", ["truncated_laplace", "gaussian"])
@each("domain", [None, dpt.Domain.from_frame(PLACES[["region"]].drop_duplicates(), by=["region"])])
def test_private_keys_count_each_unit_once_in_a_leaf(mechanism, domain):
    keys = ["region", "clinic"] if domain is None else ["clinic"]
    table = dpt.tree_counts(
        visits(), ["region", "clinic"], private_keys=keys, domain=domain, epsilon=200.0, delta=0.5,
        mechanism=mechanism, **UNIT, **CAPS,
    )  # fmt: skip
    check_counts(table[~table["other"]])


def test_a_level_of_prefixes_and_derived_levels_have_caps():
    days = dpt.calendar("day", ["year", "month", "day"], start="2024-01-01", end="2024-02-29")
    frame = pd.DataFrame({"day": pd.Timestamp("2024-02-01"), "person": np.repeat(range(100), 9)})
    frame.loc[::9, "day"] = pd.Timestamp("2024-02-02")
    given = {**UNIT, "epsilon": 200.0}
    by_day = dpt.tree_counts(frame, days, **given, mechanism="laplace", max_per_leaf=3)
    assert by_day["count"].nlargest(5).tolist() == pytest.approx([400, 400, 400, 300, 100], **NOISE)
    by_month = dpt.tree_counts(frame, days, **given, mechanism="laplace", max_per_node={"day_month": 2})
    assert by_month["count"].max() == pytest.approx(200, **NOISE)
    frame["zip"] = np.where(frame["day"].dt.day == 1, "1234", "1299")
    codes = dpt.prefixes("zip", chars=[2, 3])
    table = dpt.tree_counts(frame, codes, **given, delta=0.5, max_per_leaf=1)
    assert table.loc[~table["other"], "count"].tolist() == pytest.approx([200, 200, 100, 100], **NOISE)
    upper = dpt.tree_counts(frame, codes, **given, delta=0.5, max_per_node={codes.level_names[1]: 1})
    assert upper["count"].max() == pytest.approx(100, **NOISE)


def test_what_is_counted_is_said():
    plan = dpt.plan(DOMAIN, rho=0.1, **UNIT, **CAPS)
    assert plan.max_per_leaf == 1 and plan.max_per_node == {"region": 2}
    assert "(up to 12 rows, at most 1 per clinic and 2 per region, add_remove)" in plan.headline
    assert plan.headline.endswith(
        "Counts at most 12 rows of each person: real totals can be higher. Of these rows, at most 1 in each "
        "clinic and 2 in each region. So each clinic counts each person at most once, and the levels above "
        "count pairs of a person and a clinic"
    )
    table = plan.release(visits())
    provenance = table.attrs["dp"]
    assert {name: provenance[name] for name in CAPS} == CAPS
    page = dpt.page({"visits": table}, title="Visits").html
    for said in ("at most 1 in each clinic and 2 in each region", "counts each person at"):
        assert said in page
    sums = dpt.plan_sums(DOMAIN, columns=["cost"], bounds=(0, 10), rho=0.1, **UNIT, max_per_leaf=1)
    assert sums.headline.endswith("Of these rows, at most 1 in each clinic")


@each(
    "make",
    [
        lambda **caps: dpt.plan(DOMAIN, rho=0.1, **UNIT, **caps),
        lambda **caps: dpt.plan_means(DOMAIN, columns=["cost"], bounds=(0, 9), rho=0.1, **UNIT, **caps),
        lambda **caps: dpt.plan(
            DOMAIN, private_keys=["room"], epsilon=1.0, delta=1e-6, **UNIT,
            **{**caps, "max_per_node": {"clinic": 2}} if caps else {},
        ),
    ],
)  # fmt: skip
def test_plans_with_caps_are_written_and_read(make):
    without, plan = make(), make(**CAPS)
    assert not {"max_per_leaf", "max_per_node"} & {*without.to_dict(), *without.provenance()}
    assert without.digest != plan.digest
    written = json.loads(json.dumps(plan.to_dict()))
    read = dpt.Plan.from_dict(written, DOMAIN, digest=plan.digest)
    assert read.caps == plan.caps and read.headline == plan.headline
    for change in ({"max_per_leaf": 0}, {"max_per_node": {"total": 1}}):
        forged = {**written, **change}
        forged["digest"] = dpt.plans.serialize.digest_of(forged)
        with pytest.raises(ArgumentError):
            dpt.Plan.from_dict(forged, DOMAIN)


@each(
    "make",
    [
        lambda **caps: dpt.plan(DOMAIN, **FACTOR, **caps),
        lambda **caps: dpt.plan(dpt.prefixes("zip", chars=[1, 2]), **FACTOR, **caps),
        lambda **caps: dpt.cdf(visits(), "cost", bounds=(0, 10), bins=5, epsilon=1.0, **caps),
        lambda **caps: dpt.plan_distribution("cost", bounds=(0, 10), bins=5, epsilon=1.0, **caps),
        lambda **caps: dpt.plan(DOMAIN, epsilon=1.0, **{**caps, "privacy_unit": dpt.ROWS}),
    ],
)  # fmt: skip
def test_other_kinds_of_releases_refuse_caps_by_name(make):
    for name, value in CAPS.items():
        with pytest.raises(ArgumentError, match=f"`{name}`") as caught:
            make(**UNIT, **{name: value})
        assert caught.value.hint


@pytest.mark.nightly
@each("cap", [None, 1])
def test_observed_errors_of_2000_releases_are_those_of_the_table(cap):
    """Rows of a person in a clinic cost the same, and k is large enough: what is counted is not random."""
    draws = np.random.default_rng(0)
    pairs = pd.DataFrame(
        [(person, place) for person in range(1000) for place in draws.choice(5, 3, replace=False)],
        columns=["person", "place"],
    )
    pairs = pairs.join(PLACES, on="place").assign(cost=draws.integers(0, 101, size=len(pairs)))
    frame = pairs.loc[pairs.index.repeat(draws.integers(1, 4, size=len(pairs)))]
    used = frame if cap is None else pairs
    groups = [used.assign(total=0).groupby(by)["cost"] for by in ("total", "region", ["region", "clinic"])]
    bounds = (0, 100)
    asked = {"n": "count", "cost": dpt.sum("cost", bounds=bounds), "mean": dpt.mean("cost", bounds=bounds)}
    plan = dpt.plan_agg(
        DOMAIN, asked, rho=0.5, mechanism="gaussian", consistency="linear", max_per_leaf=cap,
        privacy_unit="person", max_contributions=9,
    )  # fmt: skip
    tables = [plan.release(frame, rng=np.random.default_rng(seed)) for seed in range(2000)]
    for column, of in (("n", "size"), ("cost", "sum"), ("mean", "mean")):
        truth = np.hstack([getattr(group, of)() for group in groups])
        errors = np.stack([table[column] for table in tables]) - truth
        shown = np.stack([table[f"{column}_std_error"] for table in tables])
        predicted = np.sqrt((shown**2).mean(axis=0))
        np.testing.assert_allclose(np.sqrt((errors**2).mean(axis=0)), predicted, rtol=0.06)
        assert np.sqrt((errors**2 / predicted**2).mean()) == pytest.approx(1, abs=0.03)

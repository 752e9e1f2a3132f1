"""Proportions: what is divided by what, errors, intervals, and which tables are refused."""

import json

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree import verify
from pandas_dptree.output.table_digest import how_altered
from tests.helpers_derived import DOMAIN, KEYS, NOISES, RECORDS, counts
from tests.helpers_random import rng


def test_proportions_of_the_children_of_a_node_add_up_to_one():
    table = counts()
    shares = table.dp.proportions()
    assert shares.columns.tolist() == ["level", *KEYS, "proportion", "std_error", "lower", "upper"]
    pd.testing.assert_frame_equal(shares[["level", *KEYS]], table[["level", *KEYS]])
    assert shares.loc[shares["level"] == "state", "proportion"].sum() == pytest.approx(1)
    assert shares.loc[shares["county"].notna() & shares["town"].isna()].groupby("state")[
        "proportion"
    ].sum().tolist() == pytest.approx([1, 1, 1])
    assert shares.iloc[0, -4:].isna().all()
    assert shares.attrs["dp_derived"]["what"] == "proportions"
    assert shares.attrs["dp_derived"]["release"]["table_digest"] == table.attrs["dp"]["table_digest"]


def test_the_base_may_be_any_level():
    table = counts()
    of_states = table.dp.proportions(of="state")
    assert (of_states.loc[of_states["level"] == "state", "proportion"].dropna() == 1).all()
    town = of_states[of_states["town"] == "c3"].iloc[0]
    state = table[(table["level"] == "state") & (table["state"] == "CA")].iloc[0]
    own = table[table["town"] == "c3"].iloc[0]
    assert town["proportion"] == own["count"] / state["count"]
    total = table.dp.proportions(of="total")
    assert total.loc[own.name, "proportion"] == own["count"] / table["count"].iloc[0]


@pytest.mark.parametrize("consistency", ["linear", "integer", "none"])
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("of", ["parent", "state", "total"])
def test_errors_are_those_of_the_difference_from_the_part_of_the_base(consistency, noise, of):
    """The standard error of x - t y, as that of a sum of nodes, is computed in another way."""
    table = counts(1, consistency=consistency, **noise)
    shares = table.dp.proportions(of=of)
    for path in [("CA", "b"), ("CA", "c", "c2"), ("NY", "l", "l1"), ("TX", "x")]:
        base = {"parent": path[:-1], "state": path[:1], "total": ()}[of]
        rows = [
            (table[KEYS[: len(each)]] == list(each)).all(axis=1)
            & (table["level"] == ["total", *KEYS][len(each)])
            for each in (path, base)
        ]
        child, above = (table.loc[row].iloc[0] for row in rows)
        found = shares.loc[child.name]
        t = child["count"] / above["count"]
        assert found["proportion"] == pytest.approx(t)
        difference = table.dp.combine({"x": [path, base]}, weights={"x": [1, -t]})
        error = difference["std_error"][0] / above["count"]
        assert found["std_error"] == pytest.approx(error, rel=1e-6, abs=1e-9)
        assert found["lower"] <= t <= found["upper"]
        width = (found["upper"] - found["lower"]) / (2 * found["std_error"] or 1)
        assert width < 2.6


def test_a_proportion_of_a_small_base_is_missing_and_its_interval_is_not():
    shares = counts(epsilon=0.01).dp.proportions()
    missing = shares["proportion"].isna() & (shares["level"] != "total")
    assert missing.any()
    assert shares.loc[missing, "lower"].notna().all()


def test_a_ledger_keeps_what_proportions_need(tmp_path):
    ledger = dpt.Ledger.create(tmp_path / "l.sqlite", account="a", epsilon=9.0, privacy_unit=dpt.ROWS)
    options = {"domain": DOMAIN, "epsilon": 1.0, "privacy_unit": dpt.ROWS, "ledger": ledger["a"]}
    table = RECORDS.dp.tree_counts(KEYS, **options, note="1")
    with pytest.raises(dpt.ArgumentError, match="lacks the unbiased estimates"):
        table.dp.proportions()
    number = table.attrs["dp"]["ledger"]["charge"]
    whole = ledger.table(number, linear=True)
    pd.testing.assert_frame_equal(whole.drop(columns="linear"), table)
    assert np.abs(whole["linear"] - whole["count"]).max() < 30
    assert whole.dp.proportions()["proportion"].notna().any()
    sums = RECORDS.dp.tree_sums(KEYS, columns="cost", bounds=(0, 10), **options, note="2", keep=["linear"])
    again = ledger.table(sums.attrs["dp"]["ledger"]["charge"], linear=True)
    pd.testing.assert_frame_equal(again, sums)


def test_a_page_knows_a_kept_table_with_its_linear_estimates(tmp_path):
    ledger = dpt.Ledger.create(tmp_path / "l.sqlite", account="a", epsilon=9.0, privacy_unit=dpt.ROWS)
    options = {"domain": DOMAIN, "epsilon": 1.0, "privacy_unit": dpt.ROWS, "ledger": ledger["a"]}
    table = RECORDS.dp.tree_counts(KEYS, **options, note="1")
    whole = ledger.table(table.attrs["dp"]["ledger"]["charge"], linear=True)
    assert [how_altered(each, ledger) for each in (whole, table)] == [None, None]
    assert how_altered(whole) is None
    assert how_altered(whole.assign(linear=whole["linear"] + 1), ledger) == "changed"


def test_linear_estimates_stay_in_plans_files_and_their_checks(tmp_path):
    plan = dpt.plan(DOMAIN, epsilon=1.0, keep=["linear"])
    assert plan.digest != dpt.plan(DOMAIN, epsilon=1.0).digest
    again = dpt.Plan.from_dict(plan.to_dict(), DOMAIN)
    assert (again.keep, again.digest) == (("linear",), plan.digest)
    table = plan.release(RECORDS)
    table.dp.to_file(tmp_path / "t.csv")
    (tmp_path / "p.json").write_text(json.dumps(plan.to_dict()))
    assert verify.main([str(tmp_path / "p.json"), str(tmp_path / "t.csv")]) == 0
    read = dpt.read_file(tmp_path / "t.csv")
    pd.testing.assert_frame_equal(read.dp.proportions(), table.dp.proportions())


def test_several_quantities_have_their_own_estimates():
    asked = {"n": "count", "paid": dpt.sum("cost", bounds=(0, 10)), "m": dpt.mean("cost", bounds=(0, 10))}
    table = RECORDS.dp.tree_agg(KEYS, asked, domain=DOMAIN, epsilon=3.0, keep=["linear"], rng=rng(0))
    assert {"n_linear", "paid_linear"} <= {*table} and "m_linear" not in table
    for column in ("n", "paid"):
        shares = table.dp.proportions(of="total", column=column)
        expected = table[column] / table[column].iloc[0]
        np.testing.assert_allclose(shares["proportion"], expected)
    largest = table.dp.top(3, column="m")
    assert (largest["m_lower"] >= 0).all() and (largest["m_upper"] <= 10).all()


REFUSED = {
    "no errors": (lambda: counts(keep=None), "lacks the unbiased"),
    "joint": (lambda: counts(keep=None, fit="joint"), "moves totals"),
    "rows": (lambda: counts()[3:], "selected"),
    "values": (lambda: counts().assign(count=1), "changed"),
    "attrs": (lambda: pd.DataFrame(counts().to_dict("list")), "states no noise"),
    "means": (
        lambda: RECORDS.dp.tree_means(
            KEYS, columns="cost", bounds=(0, 10), domain=DOMAIN, epsilon=1.0, rng=rng()
        ),
        "holds means",
    ),
    "signed": (
        lambda: RECORDS.dp.tree_sums(
            KEYS, columns="cost", bounds=(-1, 10), domain=DOMAIN, epsilon=1.0, rng=rng(), keep=["linear"]
        ),
        "may be negative",
    ),
    "multiplicative": (
        lambda: RECORDS.dp.tree_counts(
            KEYS, domain=DOMAIN, epsilon=1.0, delta=1e-6, mechanism=dpt.Multiplicative(alpha=0.25), rng=rng()
        ),
        "no covariances",
    ),
    "private": (
        lambda: RECORDS.dp.tree_counts(
            ["state", "county"], domain=None, private_keys=["state", "county"], epsilon=1.0, delta=1e-6,
            privacy_unit=dpt.ROWS, rng=rng(),
        ),
        "private keys",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_tables_without_what_is_needed_are_refused_by_name(case):
    make, message = REFUSED[case]
    with pytest.raises(dpt.ArgumentError, match=message):
        make().dp.proportions()
    if case == "joint":
        counts(fit="joint").dp.proportions()


def test_private_keys_have_no_linear_estimates():
    with pytest.raises(dpt.ArgumentError, match="names unbiased estimates"):
        RECORDS.dp.tree_counts(
            ["state"], domain=None, private_keys=["state"], epsilon=1.0, delta=1e-6,
            privacy_unit=dpt.ROWS, keep=["linear"],
        )  # fmt: skip


def test_a_level_of_derived_numbers():
    """It has the rows of that level, indexed by its keys, also after rows were selected."""
    table, before = counts(), counts(seed=1)
    frames = [
        table.dp.proportions(), table.dp.change_from(before), table.dp.top(3, level="county"),
        table.dp.reliability(),
    ]  # fmt: skip
    for frame in frames:
        rows = frame[frame["level"] == "county"]
        level = frame[frame["level"] != "town"].dp.level("county")
        assert level.index.tolist() == list(zip(rows["state"], rows["county"], strict=True)) != []
        values = [name for name in frame if name not in ("level", *KEYS)]
        pd.testing.assert_frame_equal(level.reset_index(drop=True), rows[values].reset_index(drop=True))
    with pytest.raises(dpt.ArgumentError, match=r"not a level: 'region'.*\n.*total.*town"):
        frames[0].dp.level("region")
    areas = table.dp.combine({"Coast": ["CA"]})
    with pytest.raises(dpt.ArgumentError, match="has areas, not levels"):
        areas.dp.level("state")
    assert areas.set_index("area").loc[["Coast"]].shape[0] == 1  # what the hint says
    for use in (lambda: dpt.page({"a": frames[0]}, title=""), lambda: frames[2].dp.to_html("p.html"),
                lambda: frames[0].dp.to_file("p.csv"), lambda: frames[3].dp.domain()):  # fmt: skip
        with pytest.raises(dpt.ArgumentError, match="has numbers derived from a released table"):
            use()

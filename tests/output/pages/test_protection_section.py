"""The head of a page: its sentence, what its tables spend together, of which account, and their names."""

from datetime import date

import pandas as pd
import pytest

import pandas_dptree as dpt
from tests.helpers_cases import each
from tests.helpers_output import text_of
from tests.helpers_random import rng


@pytest.fixture(scope="module")
def records():
    return pd.DataFrame({"a_b": ["x", "x", "y"] * 100, "who": range(300), "Flight Date": date(2025, 2, 3)})


def release(records, **options):
    return records.dp.tree_counts(["a_b"], domain="observed", **options)


def facts(tables, **options):
    tree, _ = text_of(dpt.page(tables, title="x", **options).html)
    terms, told = (["".join(each.itertext()) for each in tree.iter(tag)] for tag in ("dt", "dd"))
    return dict(zip(terms, told, strict=True))


def lede(html):
    return next(each.text for each in text_of(html)[0].iter("p") if each.get("class") == "lede")


def test_the_total_and_the_levels_are_one_sentence(records):
    table = release(records, epsilon=1.0)
    total = table.loc[0, "count"]
    named = lede(dpt.page({"home visits": table}, title="x").html)
    assert named.startswith(f"{total} home visits (±") and ") in all, by a b (2). Random" in named
    assert lede(table.dp.to_html()).startswith(f"{total} records (±")
    below = lede(dpt.page({"v": table.iloc[1:]}, title="x").html)
    assert below.startswith("By a b (2). ")


@each(
    "losses, told",
    [
        ([{"rho": 0.01}, {"rho": 0.007}, {"rho": 0.003}], "ρ = 0.02 for all tables together"),
        ([{"epsilon": 0.1}] * 3, "ε = 0.3 for all tables together"),
        ([{"epsilon": 1 / 3}] * 2, "ε = 0.666667 for all tables together"),
        ([{"epsilon": 1.0}, {"rho": 0.5}], "T0: ε = 1.0; T1: ρ = 0.5"),
        ([{"epsilon": 1.0}] * 3 + [{"rho": 0.5}], "of several kinds, which do not add up: see below"),
        ([{"rho": 0.1}, {"rho": 0.2, "neighbors": "replace"}], "T0: ρ = 0.1; T1: ρ = 0.2"),
        (
            [{"rho": 0.1}, {"rho": 0.2, "privacy_unit": "who", "max_contributions": 2}],
            "T0: ρ = 0.1; T1: ρ = 0.2",
        ),
    ],
)
def test_losses_add_up_if_they_protect_the_same_in_one_currency(records, losses, told):
    tables = {f"t{place}": release(records, **loss) for place, loss in enumerate(losses)}
    assert facts(tables)["Privacy loss"] == told


def test_what_protects_nobody_is_in_no_sum(records):
    tables = {"good": release(records, rho=0.1), "test": release(records, rho=0.1, rng=rng())}
    assert facts(tables)["Privacy loss"] == "Good: ρ = 0.1; Test: ρ = 0.1"


def test_a_release_counts_once_and_the_ledger_says_what_is_left(records, tmp_path):
    with dpt.Ledger.create(tmp_path / "b.sqlite", account="main", rho=0.4, privacy_unit=dpt.ROWS) as ledger:
        tables = {name: release(records, rho=0.1, ledger=ledger["main"], note=name) for name in ("a", "b")}
        tables["part"] = tables["a"].head(2)
        told = "ρ = 0.2 for all tables together, of the account “main”"
        assert facts(tables)["Privacy loss"] == told
        assert facts(tables, ledger=ledger)["Privacy loss"] == f"{told}, which has 0.2 of ρ = 0.4 left"
        mixed = {"a": tables["a"], "free": release(records, rho=0.1)}
        assert facts(mixed)["Privacy loss"] == "ρ = 0.2 for all tables together"


def test_the_head_tells_of_the_tables_that_are_shown(records):
    tables = {f"t{place}": release(records, rho=0.1, keep=["linear"]) for place in range(4)}
    show = [{"tables": ["t0", "t1"]}, {"table": "t2", "as": "change", "before": "t0"}]
    found = facts(tables, show=show)
    assert found["Download"] == "T0 (CSV) · T1 (CSV) · T2 (CSV)"
    assert found["Privacy loss"] == "ρ = 0.3 for all tables together"
    assert "T3" not in text_of(dpt.page(tables, title="x", show=show).html)[1]


def test_names_of_derived_levels_are_words(records):
    days = dpt.calendar("Flight Date", ["month", "day"], start="2025-01-01", end="2025-02-28")
    table = records.dp.tree_counts([days], epsilon=1.0)
    text = text_of(dpt.page({"flights": table}, title="x", downloads=False).html)[1]
    assert (
        "by Flight Date month (2) and Flight Date day (59)" in text and "Count by Flight Date month" in text
    )
    assert "Flight Date_" not in text
    labels = {"Flight Date_month": "Month"}
    assert "by Month (2)" in text_of(dpt.page({"f": table}, title="x", labels=labels).html)[1]

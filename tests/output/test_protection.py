"""The protection of released tables in words."""

import datetime
import json

import pandas as pd

import pandas_dptree as dpt
from pandas_dptree.hierarchy.bins import Bins
from pandas_dptree.hierarchy.grid import BinMiddles
from pandas_dptree.output.protection import statement, undercount
from pandas_dptree.plans.quantile_draws import Draws
from pandas_dptree.plans.quantiles import QuantilePlan
from pandas_dptree.privacy.loss import PrivacyLoss
from tests.helpers_cases import each
from tests.helpers_output import text_of
from tests.helpers_random import rng

BY = ["region", "district", "clinic"]


@each(
    "options, words",
    [
        ({"epsilon": 0.5}, "pure differential privacy with ε = 0.5"),
        ({"epsilon": 0.5}, "each single record"),
        (
            {"epsilon": 1.0},
            "falsely accusing 5 of 100, they find at most 14 of 100; a suspicion of 1 % becomes",
        ),
        ({"rho": 0.1}, "falsely accusing 5 of 100, they find at most 14 of 100."),
        ({"epsilon": 1.0, "delta": 1e-6}, "they find at most 14 of 100."),
        ({"epsilon": 0.5}, "discrete Laplace"),
        ({"epsilon": 0.5}, "(neighbours by addition or removal)"),
        ({"rho": 0.1, "neighbors": "replace"}, "(neighbours by replacement)"),
        ({"rho": 0.1}, "zero-concentrated differential privacy with ρ = 0.1"),
        ({"rho": 0.1}, "discrete Gaussian"),
        ({"epsilon": 1.0, "delta": 1e-6}, "approximate differential privacy with ε = 1.0 and δ = 1e-06"),
        ({"epsilon": 1.0, "privacy_unit": "person", "max_contributions": 3}, "in the column “person”"),
        ({"epsilon": 1.0, "privacy_unit": "person", "max_contributions": 3}, "At most 3 records"),
        (
            {"epsilon": 1.0, "privacy_unit": "person", "max_contributions": 1},
            "At most 1 record of each was counted",
        ),
        ({"epsilon": 1.0}, "Which rows the table has: not protected."),
        ({"epsilon": 1.0, "known": {"total": 4_000}}, "1 of the level total"),
        ({"epsilon": 1.0}, f"pandas_dptree {dpt.__version__}"),
    ],
)
def test_protection_in_words(visits, clinics, options, words):
    table = visits.dp.tree_counts(["region"], domain=clinics[["region"]].drop_duplicates(), **options)
    assert words in " ".join(statement(table.attrs["dp"]))
    page = table.dp.to_html()
    assert words in text_of(page)[1]
    assert "protects nobody" not in page


COST = {"bounds": (0, 500)}


@each(
    "release, words",
    [
        ("count", "Counts at most 3 rows of each person: real totals can be higher."),
        (dpt.sum("cost", **COST), "Adds up at most 3 rows of each person: real totals can be larger."),
        (dpt.sum("cost", bounds=(-1, 9)), "Adds up at most 3 rows of each person: real totals can differ."),
        (dpt.mean("cost", **COST), "Averages at most 3 rows of each person: means of all rows can differ."),
    ],
)
def test_missing_rows_are_said_above_the_table_and_in_the_headline(visits, clinics, release, words):
    regions = dpt.Domain.from_frame(clinics[["region"]].drop_duplicates(), by=["region"])
    unit = {"epsilon": 1.0, "privacy_unit": "person", "max_contributions": 3}
    plan = dpt.plan_agg(regions, {"n": release}, **unit)
    assert plan.headline.endswith(f". {words[:-1]}") and repr(plan).startswith(plan.headline)
    _, text = text_of(plan.release(visits).dp.to_html())
    assert text.index(words) < text.index("Region")


def test_several_numbers_of_one_row_and_of_rows_without_a_unit(visits, clinics):
    regions = dpt.Domain.from_frame(clinics[["region"]].drop_duplicates(), by=["region"])
    values = {"n": "count", "sum": dpt.sum("age", bounds=(0, 99)), "mean": dpt.mean("cost", **COST)}
    unit = {"epsilon": 1.0, "privacy_unit": "person", "max_contributions": 1}
    words = "Uses at most 1 row of each person: real totals can be larger and means of all rows can differ"
    plan = dpt.plan_agg(regions, values, **unit)
    assert plan.headline.endswith(words) and words in plan.release(visits).dp.to_html()
    rows = dpt.plan(regions, epsilon=1.0)
    assert "at most" not in rows.headline and "real totals" not in rows.release(visits).dp.to_html()


def test_missing_rows_are_said_on_pages_of_private_keys(visits):
    unit = {"epsilon": 1.0, "delta": 1e-6, "privacy_unit": "person", "max_contributions": 2}
    found = visits.dp.tree_counts(["region"], private_keys=["region"], **unit)
    assert "Counts at most 2 rows of each person: real totals can be higher." in found.dp.to_html()


def test_a_rho_with_a_delta_in_words(counts):
    """No table has one so far that is made here, so the provenance of another is changed."""
    stated = {name: value for name, value in counts.attrs["dp"].items() if name != "epsilon"}
    words = statement(stated | {"rho": 0.02, "delta": 1e-6, "rng": "operating system"})
    expected = "approximate zero-concentrated differential privacy with ρ = 0.02 and δ = 1e-06"
    assert words[0] == f"Protection: {expected}."
    assert statement(stated | {"rho": 0.02, "delta": 0.1})[0].endswith("δ = 0.1, which protects nobody.")


def test_a_repeatable_release_claims_no_protection(counts):
    lines = statement(counts.attrs["dp"])
    assert lines[0].startswith("Protection: none. If the noise had been secret")
    assert not any("attacker" in line for line in lines)


def test_protection_of_other_tables(visits, clinics, addresses):
    regions = {"domain": clinics[["region"]].drop_duplicates(), "epsilon": 1.0}
    sums = visits.dp.tree_sums(
        ["region"], columns=["cost", "age"], bounds={"cost": (0, 500), "age": (-1, 99.5)}, **regions
    )
    words = " ".join(statement(sums.attrs["dp"]))
    assert "Values of “cost” were clipped to between 0 and 500" in words
    assert "Values of “age” were clipped to between -1 and 99.5" in words
    alone = dpt.plan(dpt.Domain.from_frame(clinics, by=BY), column="cost", bounds=(0, 9), epsilon=1.0)
    assert "“cost” were clipped to between 0 and 9," in " ".join(
        statement(alone.release(visits, rng=rng()).attrs["dp"])
    )
    means = visits.dp.tree_means(
        ["region"], columns="cost", bounds=(0, 500), known={"total": 4_000}, **regions
    )
    words = " ".join(statement(means.attrs["dp"]))
    assert "shown without noise, of “count”: 1 of the level total." in words
    assert "protected like its values" in " ".join(statement(addresses.attrs["dp"]))
    assert "It holds for all rows at once in at least 95 % of all releases" in addresses.dp.to_html()
    factor = visits.dp.tree_counts(
        BY,
        domain=clinics,
        epsilon=1.0,
        delta=1e-6,
        mechanism=dpt.Multiplicative(alpha=0.25, failure_probability=0.1),
    )
    assert "it holds with a probability of 0.9." in factor.dp.to_html()


COSTS = {"bounds": (0, 500), "granularity": 0.5}
GROUPS = {"by": ["region"], "domain": "observed", "mechanism": "exponential"}
BAND = {"bins": 4, "confidence": 0.9, "mechanism": "exponential"}
DAYS = {"bounds": (datetime.date(2024, 1, 1), datetime.date(2025, 1, 1))}
HOURS = {"bounds": (pd.Timedelta(0), pd.Timedelta(90, "D")), "granularity": pd.Timedelta(6, "h")}
ZONED = {"bounds": pd.to_datetime(["2023-03-01", "2025-06-01"]).tz_localize("Europe/Berlin")}
DRAWN = "Drawn at random, by {}, from a public grid in steps of {}: values are the more likely, the fewer"
OTHERS = "Noise of the counts in bins, from which all other numbers are read: discrete {}."


@each(
    "options, words, absent",
    [
        ({**COSTS, "epsilon": 1.0}, [DRAWN.format("permute-and-flip", "0.5"), "between 0 and 500, and"],
         "oise:"),
        ({**COSTS, "rho": 0.1}, [DRAWN.format("the exponential mechanism", "0.5")], "oise:"),
        ({**COSTS, "epsilon": 1.0, "bins": 4, **GROUPS}, [OTHERS.format("Laplace")], "flip"),
        ({**COSTS, **BAND, "rho": 0.1}, [OTHERS.format("Gaussian"), "Drawn at random"], "flip"),
        ({**DAYS, "column": "date", "epsilon": 1.0}, ["steps of 1 d:", "2024-01-01 and 2025-01-01"], "0:"),
        ({**ZONED, "column": "zoned", "epsilon": 1.0}, ["steps of 1 min:", "2023-03-01 00:00:00+01:00 and"],
         "oise:"),
        ({**HOURS, "column": "wait", "epsilon": 1.0}, ["steps of 6 h:", "between 0 d and 90 d,"], "oise:"),
        ({"bounds": (0, 500), "bins": 20, "epsilon": 1.0}, ["counted in 20 bins", "Noise: discrete Laplace."],
         "rounded"),
        ({**HOURS, "column": "wait", "epsilon": 1.0, "privacy_unit": "person", "max_contributions": 2},
         ["At most 2 records of each were", "2 rows of each person: quantiles of all rows can differ"],
         "oise:"),
    ],
)  # fmt: skip
def test_protection_of_quantiles(visits, options, words, absent):
    records = visits.head(200)
    records = records.assign(
        zoned=records["date"].dt.tz_localize("Europe/Berlin"), wait=pd.to_timedelta(records["age"], unit="D")
    )
    given = {"column": "cost", "q": 0.5} | options
    provenance = records.dp.plan_quantiles(**given).provenance()
    said = " ".join([*statement(provenance), undercount(provenance)])
    assert all(each in said for each in words) and absent not in said
    assert json.loads(json.dumps(provenance)) == provenance


def test_protection_of_quantiles_of_counts_in_bins():
    bins, loss = Bins.of("age", bounds=(0, 80), bins=4), PrivacyLoss(epsilon=1.0)
    draws = Draws.within(BinMiddles(bins), loss, 1, permutes=True)
    common = {"neighbors": "add_remove", "privacy_unit": None, "max_contributions": 1}
    plan = QuantilePlan(q=(0.5,), domain=None, draws=draws, trees=None, loss=loss, **common)
    said = " ".join(statement(plan.provenance()))
    assert "Drawn at random, by permute-and-flip, from the middles of 4 bins: values are" in said
    assert "Values of “age” were clipped to between 0 and 80, and counted in 4 bins." in said

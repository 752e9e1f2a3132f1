"""Pages of released tables: what they show is what the table says, whatever it says."""

import re
import sys

import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.output.protection import statement
from pandas_dptree.output.released import Released
from tests.helpers_cases import each
from tests.helpers_output import HOSTILE, text_of
from tests.helpers_random import rng

BY = ["region", "district", "clinic"]


def rows_of(tree):
    return [["".join(cell.itertext()) for cell in row] for row in tree.find("body").iterfind(".//tbody/tr")]


# The page.


def test_a_page_shows_all_rows_nested(counts):
    pytest.importorskip("great_tables")
    tree, text = text_of(counts.dp.to_html())
    rows = rows_of(tree)
    released = Released.of(counts)
    assert [row[0] for row in rows] == [released.name(place) for place in released.nested]
    assert [int(row[1].replace(",", "")) for row in rows] == counts["count"].take(released.nested).tolist()
    errors = [float(row[2].removeprefix("± ")) for row in rows]
    assert errors == pytest.approx(counts["std_error"].take(released.nested).tolist(), abs=0.051)
    depths = [int(span.get("class")[-1]) for span in tree.find("body").iterfind(".//tbody/tr/th/span")]
    assert depths == released.depth[released.nested].tolist()
    assert tree.find("head/title").text == "Count, by region, district and clinic"
    assert "pure differential privacy with ε = 1.0" in text
    assert "It protects nobody" in text or "it protects nobody" in text  # it was seeded


def test_a_page_needs_no_other_files(counts):
    counts = counts.head(44)
    page = counts.dp.to_html(title="A title")
    tree, _ = text_of(page)
    assert {element.tag for element in tree.iter() if isinstance(element.tag, str)}.isdisjoint(
        {"script", "link", "img", "iframe", "object", "embed", "base"}
    )
    assert not re.search(r"https?://|@import|url\(", page)
    assert "default-src 'none'" in page
    assert page == counts.dp.to_html(title="A title")


def test_a_page_of_means_shows_what_was_chosen(means):
    tree, text = text_of(means.dp.to_html(title="Means", max_rows=50))
    rows = rows_of(tree)
    assert len(rows) == 1 + 6 + 37
    assert len(rows[0]) == 10
    title, left_out = list(tree.find("body"))[:2]
    assert (title.tag, left_out.text) == (
        "h1",
        "This page leaves out clinic (678 rows), for which the table is too long.",
    )
    assert tree.find("body").find(".//thead//th").text == "region → district"
    assert "90 % interval of what was counted" in text
    assert "the true value of what was counted in at least about 90 % of all releases" in text
    assert "they may be a single number" in text
    assert "first-order approximation" in text
    assert any(row[1] == "–" for row in rows) and "too few records to distinguish it from noise" in text
    lower, upper = means.loc[0, ["lower", "upper"]].astype(int)
    assert rows[0][9] == f"{lower:,} to {upper:,}"
    assert not any(float(row[2][2:]) == 0 for row in rows if row[2] != "± –")  # no error looks like none
    assert len(rows_of(text_of(means.dp.to_html(columns=["age", "count"]))[0])[0]) == 7
    part = means[means["region"].isna() | means["region"].eq("Corrow")].head(60)
    whole = part.dp.to_html(columns="age", max_rows=None)
    assert len(rows_of(text_of(whole)[0])) == len(part) > 50 and "leaves out" not in whole


@each("max_rows, shown", [(6, 1), (7, 7), (43, 7), (44, 44)])
def test_a_page_shows_the_levels_that_fit_to_the_last_row(counts, max_rows, shown):
    assert len(counts) == 1 + 6 + 37 + 678
    assert len(rows_of(text_of(counts.dp.to_html(max_rows=max_rows))[0])) == shown


def test_no_small_error_beside_a_large_one_looks_like_none():
    pytest.importorskip("great_tables")
    table = pd.DataFrame(
        {
            "level": ["total", "k", "k"],
            "k": [None, "a", "b"],
            "x": [7.0, 3.0, 4.0],
            "x_std_error": [2e4, 0.004, 0],
        }
    )
    rows = rows_of(text_of(table.dp.to_html())[0])
    assert [row[2] for row in rows] == ["± 20,000.000", "± 0.004", "± 0.000"]


@each("options", [{"max_rows": 0}, {"max_rows": True}, {"columns": []}, {"columns": ["count"] * 2}])
def test_a_page_wants_sensible_options(counts, options):
    with pytest.raises(dpt.ArgumentError, match=f"`{next(iter(options))}`"):
        counts.dp.to_html(**options)


def test_a_level_that_does_not_fit_at_all(counts):
    with pytest.raises(dpt.ArgumentError, match="the first level alone has 678 rows"):
        counts[counts["level"] == "clinic"].dp.to_html(max_rows=100)


def test_labels_are_text_on_a_page(hostile):
    hostile.attrs["dp"] |= {"mechanism": HOSTILE[0], "privacy_unit": HOSTILE[1], "known": {HOSTILE[0]: 1}}
    tree, text = text_of(hostile.dp.to_html(title=HOSTILE[1]))
    names = [row[0] for row in rows_of(tree)]
    assert names[0] == "total"
    assert [name for name in names if name not in ("total", "<i>a</i>", "b")] == [
        label for label in Released.of(hostile).table.query("level == 'place'")["place"]
    ]
    assert {*HOSTILE} <= {*names}
    tags = {element.tag for element in tree.find("body").iter() if isinstance(element.tag, str)}
    assert tags.isdisjoint({"script", "img", "b", "i"})
    for written in ("<b>kind</b>", HOSTILE[0], HOSTILE[1]):
        assert written in text
    assert tree.find("head/title").text == HOSTILE[1]


@each("provenance", [None, [], "yes", {"epsilon": None}, {"rho": "<b>", "known": 3, "rng": 1}])
def test_a_page_of_a_table_with_a_strange_provenance(counts, provenance):
    table = counts.head(7).copy()
    table.attrs = {} if provenance is None else {"dp": provenance}
    _, text = text_of(table.dp.to_html())
    assert "unknown" in text


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
    assert text.index(words) < text.index("total")


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
    assert "It is missing (–) where none was measured" in addresses.dp.to_html()
    factor = visits.dp.tree_counts(
        BY,
        domain=clinics,
        epsilon=1.0,
        delta=1e-6,
        mechanism=dpt.Multiplicative(alpha=0.25, failure_probability=0.1),
    )
    assert "it holds with a probability of 0.9." in factor.dp.to_html()


def test_a_table_that_lost_its_provenance_takes_that_of_its_plan(visits, clinics):
    pytest.importorskip("great_tables")
    districts = clinics[BY[:2]].drop_duplicates()
    plan = dpt.plan(dpt.Domain.from_frame(districts, by=BY[:2]), epsilon=0.5)
    counts, other = plan.release(visits), dpt.plan(plan.domain, epsilon=2.0)
    regions = dpt.Domain.from_frame(clinics[["region"]].drop_duplicates(), by=["region"])
    bare = pd.DataFrame(counts.to_dict("series"))
    assert "It is unknown how this table was made" in text_of(bare.dp.to_html())[1]
    _, text = text_of(bare.dp.to_html(plan=plan))
    assert "pure differential privacy with ε = 0.5" in text and f"SHA-256 {plan.digest}" in text
    assert "Whether the noise was secret: unknown." in text
    _, own = text_of(counts.dp.to_html(plan=plan))
    assert own == text_of(counts.dp.to_html())[1] and "Whether the noise was secret" not in own
    for table, wrong, why in (
        (counts, other, "another digest"),
        (bare, dpt.plan(regions, epsilon=0.5), "it has other levels"),
        (bare, plan.to_dict(), "must be the plan of the table"),
    ):
        with pytest.raises(dpt.ArgumentError, match=why) as caught:
            table.dp.to_html(plan=wrong)
        assert caught.value.argument == "plan" and caught.value.hint


@pytest.mark.parametrize(
    ("module", "package", "draw"),
    [
        ("matplotlib.pyplot", "matplotlib", lambda table: table.dp.plot.levels()),
        ("matplotlib.pyplot", "matplotlib", lambda table: table.dp.plot.icicle()),
        ("great_tables", "great_tables", lambda table: table.dp.to_html()),
    ],
)
def test_what_is_not_installed_is_named(counts, module, package, draw, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(dpt.MissingExtraError, match=f"pip install {package}"):
        draw(counts)


# In a browser, where there is one.


def test_a_browser_shows_the_page_and_runs_nothing(hostile, tmp_path, browse):
    hostile.dp.to_html(tmp_path / "report.html", title="Safe")
    tree, _ = browse(tmp_path / "report.html")
    assert tree.find("head/title").text == "Safe"
    assert {*HOSTILE} <= {row[0] for row in rows_of(tree)}

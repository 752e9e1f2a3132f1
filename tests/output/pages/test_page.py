"""Pages of released tables: what they show is what the table says, whatever it says."""

import re

import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.output.released import Released
from tests.helpers_cases import each
from tests.helpers_output import HOSTILE, rows_of, text_of

BY = ["region", "district", "clinic"]


# The page.


def test_a_page_shows_all_rows_by_level(counts):
    tree, text = text_of(counts.dp.to_html())
    released = Released.of(counts)
    nested = [place for place in released.nested.tolist() if released.depth[place]]
    expected = sorted(nested, key=lambda place: released.depth[place])  # stable: nested within each level
    rows = [row for row in rows_of(tree) if row[0] != "Total"]
    assert [row[0] for row in rows] == [released.name(place) for place in expected]
    assert [int(row[1].replace(",", "")) for row in rows] == counts["count"].take(expected).tolist()
    errors = [row[2] for row in rows[: 6 + 37]]  # those of all clinics are alike, and said once
    assert errors == [f"± {error:.0f}" for error in counts["std_error"].take(expected)[: 6 + 37]]
    assert "Each number ± 5." in text and f"{counts['std_error'].iloc[-1]:.0f}" == "5"
    headings = ["".join(each.itertext()) for each in tree.iter("h2")]
    assert headings == [
        "Overview",
        "Region",
        "District",
        "Clinic",
        "How this table is protected",
        "How to read the errors",
    ]
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
    assert not re.search(r"https?://|@import|url\((?!#)", page)
    policy = tree.find("head/meta[@http-equiv]").get("content")
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"
    assert page == counts.dp.to_html(title="A title")


def test_a_page_of_means_shows_what_was_chosen(means):
    tree, text = text_of(means.dp.to_html(title="Means", max_rows=50))
    rows = [row for row in rows_of(tree) if "·" not in row[0]]
    assert len(rows) == 1 + 6 + 37
    assert [len(row) for row in rows] == [8] * len(rows)  # count with its class, age and cost
    assert "This page leaves out clinic (678 rows), for which the table is too long." in text
    assert "in at least about 90 % of all releases" in text
    assert "they may be a single number" in text
    assert "first-order approximation" in text
    alone = text_of(means.dp.to_html(columns="age", max_rows=50))[1]
    assert f"Age: {int(means.loc[0, 'age'])}" in alone and "over all, by" in alone and "in all, by" in text
    assert any(row[4] == "–" for row in rows) and "too few records to distinguish it from noise" in text
    half = (means.loc[0, "upper"] - means.loc[0, "lower"]) / 2
    total = next(row for row in rows if row[0] == "Total")
    assert total[1:3] == [f"{means.loc[0, 'count']:,}", f"± {half:,.0f}"]
    assert not any(row[2] in ("± 0", "± 0.0") for row in rows)  # no error looks like none
    chosen, _ = text_of(means.dp.to_html(columns=["age", "count"], max_rows=50))
    assert {len(row) for row in rows_of(chosen)} == {5}  # a class has only the first column, if it is a count
    part = means[means["region"].isna() | means["region"].eq("Corrow")].head(60)
    whole = part.dp.to_html(columns="age", max_rows=None)
    assert len(rows_of(text_of(whole)[0])) == len(part) > 50 and "leaves out" not in whole


@each("max_rows, shown", [(6, 1), (7, 7), (43, 7), (44, 44)])
def test_a_page_shows_the_levels_that_fit_to_the_last_row(counts, max_rows, shown):
    assert len(counts) == 1 + 6 + 37 + 678
    assert len(rows_of(text_of(counts.dp.to_html(max_rows=max_rows))[0])) == shown


def test_no_small_error_beside_a_large_one_looks_like_none():
    table = pd.DataFrame(
        {
            "level": ["total", "k", "k"],
            "k": [None, "a", "b"],
            "x": [7.0, 3.0, 4.0],
            "x_std_error": [2e4, 0.004, 0],
        }
    )
    rows = rows_of(text_of(table.dp.to_html())[0])
    assert [row[2] for row in rows] == ["± 0.0040", "± 0.0000", "± 20,000.0000"]
    table["x_std_error"] = [2e4, 0.004, 3e3]
    rows = rows_of(text_of(table.dp.to_html())[0])
    assert [row[2] for row in rows] == ["± 0.004", "± 3,000", "± 20,000"]


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
    names = {row[0] for row in rows_of(tree)}
    assert "Total" in names and {*HOSTILE} - {""} | {"(empty)"} <= names
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


def test_a_table_that_lost_its_provenance_takes_that_of_its_plan(visits, clinics):
    districts = clinics[BY[:2]].drop_duplicates()
    plan = dpt.plan(dpt.Domain.from_frame(districts, by=BY[:2]), epsilon=0.5)
    counts, other = plan.release(visits), dpt.plan(plan.domain, epsilon=2.0)
    regions = dpt.Domain.from_frame(clinics[["region"]].drop_duplicates(), by=["region"])
    bare = pd.DataFrame(counts.to_dict("series"))
    assert "It is unknown how this table was made" in text_of(bare.dp.to_html())[1]
    _, text = text_of(bare.dp.to_html(plan=plan))
    assert "pure differential privacy with ε = 0.5" in text and plan.digest in text
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


# In a browser, where there is one.


def test_a_browser_shows_the_page_and_runs_nothing(hostile, tmp_path, browse):
    hostile.dp.to_html(tmp_path / "report.html", title="Safe")
    tree, _ = browse(tmp_path / "report.html")
    assert tree.find("head/title").text == "Safe"
    assert {*HOSTILE} - {""} <= {row[0] for row in rows_of(tree)}

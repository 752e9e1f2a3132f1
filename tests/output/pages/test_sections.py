"""The kinds of sections of pages, for tables of distinct units, whose numbers do not add up."""

import re

import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError
from pandas_dptree.output.pages.sections import SECTIONS, default_kinds
from tests.helpers_cases import each
from tests.helpers_output import text_of
from tests.helpers_unit_tables import BY, PLACES, VISITS, people, visitors

WORK = {"levels": {}, "heatmap": {}, "top": {"n": 3}, "change": {"before": "then"}}
REFUSED = {
    "icicle": {},
    "proportions": {},
    "combine": {"areas": {"west": [("Aldmark",), ("Corrow",)]}},
}
OF_OTHER_TABLES = {"cross", "private_keys", "distribution", "quantiles"}
SUMS, DISTINCT = "the error of a sum is not the sum", "Numbers of distinct person do not add up: whoever"


def words_of(html):
    return text_of(html)[1]


def page_of(table, **options):
    return words_of(dpt.page({"people": table}, title="Who came", **options).html)


def test_every_kind_of_section_works_or_is_refused():
    assert {*WORK, *REFUSED, *OF_OTHER_TABLES} == {*SECTIONS}


@each("kind", WORK)
def test_sections_of_each_number_by_itself_work(kind):
    tables = {"people": people(keep=["linear"]), "then": people(keep=["linear"])}
    show = [{"table": "people", "as": kind, **WORK[kind]}]
    assert "Counts distinct person" in words_of(dpt.page(tables, title="Who came", show=show).html)


@each("kind", REFUSED)
def test_sections_that_add_numbers_up_are_refused(kind):
    show = [{"table": "people", "as": kind, **REFUSED[kind]}]
    with pytest.raises(ArgumentError, match=r"do not add up.*\nHint: "):
        page_of(people(keep=["linear"]), show=show)


def test_a_heat_map_ends_with_the_numbers_of_the_nodes_above():
    table = people()
    regions = table.loc[table["level"] == "region", "count"]
    html = dpt.page({"p": table}, title="Who came", show=[{"table": "p", "as": "heatmap"}]).html
    margins = re.findall(r'<td class="m">([\d,]+)', html)
    assert [int(each.replace(",", "")) for each in margins] == regions.tolist()


def test_no_areas_are_drawn_unless_numbers_add_up():
    assert default_kinds(people()) == ["levels"]
    assert default_kinds(people(max_nodes=1)) == ["levels"]  # its numbers do add up, and are said not to
    rows = VISITS.dp.tree_counts(BY, domain=PLACES, epsilon=1.0)
    assert default_kinds(rows) == default_kinds(visitors()) == ["icicle", "levels"]
    assert default_kinds(visitors({"visitors": "units", "visits": "count"})) == ["levels"]


def test_the_head_says_what_the_total_counts():
    page = words_of(people(confidence=0.9).dp.to_html())
    assert re.search(r"Distinct person: [\d,]+ \(± \d+\) in all, by region", page)
    assert re.search(r"[\d,]+ people \(± \d+\) in all", page_of(people(confidence=0.9)))
    labelled = words_of(people().dp.to_html(labels={"count": "Patients"}))
    assert re.search(r"[\d,]+ patients \(± [\d.]+\) in all", labelled, flags=re.I)
    both = visitors({"visitors": "units", "visits": "count"}).dp.to_html()
    assert re.search(r"Visitors: [\d,]+ \(± [\d.]+\) in all", words_of(both))
    assert "records (" not in page and "records (" in words_of(
        VISITS.dp.tree_counts(BY, domain=PLACES, epsilon=1.0).dp.to_html()
    )


def test_readers_are_told_which_numbers_do_not_add_up():
    alone, beside = words_of(people().dp.to_html()), words_of(visitors().dp.to_html())
    rows = words_of(VISITS.dp.tree_counts(BY, domain=PLACES, epsilon=1.0).dp.to_html())
    assert [SUMS in page for page in (alone, beside, rows)] == [False, True, True]
    assert [page.count(DISTINCT) for page in (alone, beside, rows)] == [1, 1, 0]
    chosen = words_of(visitors().dp.to_html(columns="visitors"))
    assert SUMS not in chosen and chosen.count(DISTINCT) == 1
    twice = dpt.page({"now": people(), "then": people()}, title="Who came").html
    assert words_of(twice).count(DISTINCT) == 1

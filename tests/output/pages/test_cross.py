"""Cross tables on pages: which cells are shown, with which totals, and what is refused."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError
from tests.helpers_cases import each

PLACES = pd.DataFrame({"state": ["CA", "CA", "WA"], "county": ["Kern", "Marin", "Kern"]})
AXES = {"place": ["state", "county"], "sex": "sex", "age": dpt.cut("age", levels={"band": [0, 18, 65, 120]})}
DOMAIN = dpt.cross(
    place=dpt.Domain.from_frame(PLACES, by=["state", "county"]),
    sex=dpt.Domain.from_frame(["F", "M"], by=["sex"]),
    age=dpt.derived_domain(AXES["age"]),
)
LEAVES = 100 + np.arange(18).reshape(3, 2, 3)


def table_of(**options):
    plan = dpt.plan(DOMAIN, **{"rho": 1e6, **options})
    places = LEAVES if plan.tree.leaf_shape[0] == 3 else np.add.reduceat(LEAVES, [0, 2])
    leaves = places if plan.tree.leaf_shape[2] == 3 else places.sum(axis=2, keepdims=True)
    return plan.release(leaves, rng=np.random.default_rng(0))


class Cells(HTMLParser):
    """The texts of the cells of each line of a table, without errors."""

    def __init__(self):
        super().__init__()
        self.lines, self.skips = [], 0

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.lines.append([])
        elif tag in ("td", "th"):
            self.lines[-1].append("")
        self.skips += tag == "small"

    def handle_endtag(self, tag):
        self.skips -= tag == "small"

    def handle_data(self, data):
        if self.lines and self.lines[-1] and not self.skips:
            self.lines[-1][-1] += re.sub("[\u2066-\u2069]", "", data)


def sections(table, **entry):
    html = dpt.page({"people": table}, title="People", show=[{"table": "people", **entry}]).html
    return re.findall(r"<table>.*?</table>|<table class=\"h\">.*?</table>", html, re.S), html


def lines_of(table, **entry):
    (html, *_), _ = sections(table, **entry)
    cells = Cells()
    cells.feed(html[html.index("<thead>") :])
    return cells.lines


def test_a_margin_of_two_axes_has_both_totals():
    lines = lines_of(table_of(), margin={"place": "state", "sex": "sex"})
    expected = LEAVES.sum(axis=2)
    states = np.array([expected[:2].sum(axis=0), expected[2]])
    assert lines[0] == ["", "F", "M", "All"]
    assert lines[1] == ["CA", *map(str, states[0]), f"{states[0].sum():,}"]
    assert lines[2] == ["WA", *map(str, states[1]), str(states[1].sum())]
    assert lines[3] == [
        "All",
        *(f"{each:,}" if each > 999 else str(each) for each in states.sum(axis=0)),
        f"{states.sum():,}",
    ]


def test_the_last_axis_that_is_named_makes_the_columns():
    lines = lines_of(table_of(), margin={"sex": "sex", "place": "state"})
    assert lines[0] == ["", "CA", "WA", "All"]
    assert [line[0] for line in lines[1:]] == ["F", "M", "All"]


def test_further_axes_nest_in_the_lines():
    lines = lines_of(table_of(), margin={"place": "county", "sex": "sex", "age": "age_band"})
    assert [line[0] for line in lines[1:7]] == ["CA · Kern", "F", "M", "CA · Marin", "F", "M"]
    assert lines[2][1:4] == list(map(str, LEAVES[0, 0]))
    assert len(lines) == 1 + 3 * 3 + 1


def test_a_single_axis_has_a_line_for_each_node():
    lines = lines_of(table_of(), margin={"place": "state"})
    assert lines[0] == ["", "Count"]
    assert [line[0] for line in lines[1:]] == ["CA", "WA", "All"]


def test_totals_that_the_table_lacks_are_left_out():
    lines = lines_of(table_of(margins=[("state", "sex")]), margin={"place": "state", "sex": "sex"})
    assert lines[0] == ["", "F", "M"]
    assert [line[0] for line in lines[1:]] == ["CA", "WA"]


def test_without_a_margin_the_largest_that_fits_is_shown():
    lines = lines_of(table_of())
    assert lines[0][1:] == ["[0, 18)", "[18, 65)", "[65, 120]", "All"]
    assert [line[0] for line in lines[1:]] == ["CA · Kern", "CA · Marin", "WA · Kern", "All"]


def test_a_heat_map_shades_the_cells_alone_by_their_size():
    tables, html = sections(table_of(), margin={"place": "state", "sex": "sex"}, **{"as": "heatmap"})
    shades = [float(each) for each in re.findall(r"--h:([0-9.]+)", tables[0])]
    assert len(shades) == 4
    assert max(shades) == 1.0
    assert "square root" in html
    plain, _ = sections(table_of(), margin={"place": "state", "sex": "sex"})
    assert "--h:" not in plain[0]


def test_numbers_of_a_class_in_blank_are_not_shown():
    show = [{"table": "people", "margin": {"place": "county", "sex": "sex"}}]
    table = table_of(rho=1e-4, consistency="linear")
    html = dpt.page({"people": table}, title="People", show=show, blank=["F"]).html
    assert re.search(r'<td class="F">F<small>', html)


@each(
    "entry, fact",
    [
        ({"margin": {"place": "town"}}, "town"),
        ({"margin": {"place": "total"}}, "is not in the table"),
        ({"margin": {"town": "county"}}, "town"),
        ({"margin": {"place": "county"}, "as": "levels"}, "margin"),
        ({"column": "cost"}, "cost"),
    ],
)
def test_what_cannot_be_shown_is_refused(entry, fact):
    with pytest.raises(ArgumentError, match=fact) as caught:
        sections(table_of(), **entry)
    assert "Hint: " in str(caught.value)


def test_margins_are_not_shown_of_one_hierarchy():
    table = dpt.plan(dpt.Tree.from_branching([2, 3]), rho=1.0).release(np.full(6, 10))
    for kind in ("cross", "heatmap"):
        with pytest.raises(ArgumentError, match="no table of crossed"):
            sections(table, margin={"place": "state"}, **{"as": kind})


def test_a_margin_that_is_too_wide_says_what_to_do():
    wide = dpt.cross(first=dpt.Tree.from_branching([50]), second=dpt.Tree.from_branching([60]))
    table = dpt.plan(wide, rho=1.0).release(np.full((50, 60), 10))
    with pytest.raises(ArgumentError, match="50 lines and 60 columns"):
        sections(table, margin={"first": "first", "second": "second"})


def test_the_page_of_one_table_shows_a_margin_of_each_column():
    plan = dpt.plan(DOMAIN, rho=1e6)
    table = plan.release(LEAVES, rng=np.random.default_rng(0))
    html = table.dp.to_html(margin={"place": "county", "sex": "sex"})
    assert "<caption>Count by county, with a column for each sex</caption>" in html
    (title,) = re.findall("<title>(.*?)</title>", html)
    assert re.sub("[\u2066-\u2069]", "", title).startswith("Count, by state, county, sex and ")
    assert "<caption>Count by county, with a column for each " in table.dp.to_html()
    lost = table.copy()
    lost.attrs = {}
    assert "differential privacy" in lost.dp.to_html(plan=plan)
    with pytest.raises(ArgumentError, match="another digest"):
        table.dp.to_html(plan=dpt.plan(DOMAIN, rho=1e5))
    nested = dpt.plan(DOMAIN.axes["place"], rho=1e6)
    with pytest.raises(ArgumentError, match="it has other levels"):
        table.dp.to_html(plan=nested)
    with pytest.raises(ArgumentError, match="`margin` has no level"):
        table.dp.to_html(margin="town")
    with pytest.raises(ArgumentError, match=r"(?s)`margin` needs.*Hint: "):
        nested.release(LEAVES.sum(axis=(1, 2))).dp.to_html(margin="state")


@each(
    "entry",
    [
        {"as": "top", "n": 2, "level": {"place": "county", "sex": "sex"}},
        {"as": "top", "n": 2, "level": ["county", "sex"]},
        {"as": "combine", "areas": {"women of Kern": {"place": [["CA", "Kern"]], "sex": ["F"]}}},
    ],
)
def test_the_largest_cells_and_sums_of_cells_are_lists(entry):
    table = table_of(keep=["linear"])
    (html, *_), _ = sections(table, **entry)
    largest = table.dp.margin(place="county", sex="sex")["count"]
    number = largest.max() if entry["as"] == "top" else largest["CA", "Kern", "F"]
    assert str(number) in html


def test_what_needs_a_hierarchy_is_refused_on_pages():
    for kind in ("levels", "icicle", "proportions"):
        with pytest.raises(ArgumentError, match=r"(?s)crossed hierarchies.*Hint: "):
            sections(table_of(keep=["linear"]), **{"as": kind})

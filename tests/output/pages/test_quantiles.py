"""Sections for quantiles: with and without groups, intervals and times."""

import base64
import datetime
import re

import html5lib
import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError
from tests.helpers_cases import each
from tests.helpers_random import rng

N = 200
RECORDS = pd.DataFrame(
    {
        "region": np.repeat(["north", "south"], N // 2),
        "cost": np.arange(N) % 90 + 0.5,
        "day": pd.Timestamp("2025-01-01") + pd.to_timedelta(np.arange(N) % 90, unit="D"),
        "wait": pd.to_timedelta(np.arange(N) % 90, unit="min"),
    }
)
RECORDS["when"] = RECORDS["day"].dt.tz_localize("Europe/Berlin") + pd.Timedelta(90, "min")
BOUNDS = {
    "cost": {"bounds": (0, 100), "granularity": 0.5},
    "day": {"bounds": (datetime.date(2025, 1, 1), datetime.date(2025, 12, 31))},
    "wait": {"bounds": (pd.Timedelta(0), pd.Timedelta(2, "h")), "granularity": pd.Timedelta(1, "min")},
    "when": {
        "bounds": list(pd.to_datetime(["2025-01-01", "2025-04-30"]).tz_localize("Europe/Berlin")),
        "granularity": pd.Timedelta(30, "min"),
    },
}
GROUPS = {"by": ["region"], "domain": "observed", "bins": 4}
INTERVALS = {"confidence": 0.8, "bins": 4, "mechanism": "exponential"}


def release(column="cost", q=(0.25, 0.5), **options):
    if {"bins"} & options.keys():
        options.setdefault("mechanism", "exponential")
    return RECORDS.dp.quantiles(
        column, list(q), **{"rng": rng(), "epsilon": 9.0, **BOUNDS[column], **options}
    )


def section_of(table, name="costs", **options):
    """The heading, the words and the cells of the first section, without heads."""
    page = dpt.page({name: table}, title="Costs", **options)
    tree = html5lib.parse(page.html, namespaceHTMLElements=False)
    section = next(tree.iter("section"))
    rows = [["".join(cell.itertext()) for cell in row] for row in section.iterfind(".//tbody/tr")]
    heads = [["".join(cell.itertext()) for cell in row] for row in section.iterfind(".//thead/tr")]
    words = re.sub(r"\s+", " ", " ".join(section.itertext()))
    return section.findtext("h2"), words, heads[-1], rows, page.html


def ends_in(interval):
    return [float(end) for end in interval.split(" to ")]


def test_all_records_have_a_row_for_each_quantile():
    table = release()
    heading, words, heads, rows, html = section_of(table)
    assert (heading, heads) == ("Costs", ["Of all records", "Cost"])
    lower, median = (f"{value:.1f}" for value in table["value"])
    assert rows == [["25 % below", lower], ["Median", median]]
    assert "How far these numbers may be from the true ones is not stated." in words
    assert "interval" not in words and "±" not in html.split("Protection")[0]
    assert "Mistakes in the records are not part of what an interval holds" in html


def test_all_records_with_intervals():
    table = release(**INTERVALS)
    _, words, heads, rows, _ = section_of(table)
    assert heads == ["Of all records", "Cost", "80 % interval"]
    found = np.array([ends_in(row[2]) for row in rows])
    assert found == pytest.approx(table[["lower", "upper"]].to_numpy(), abs=0.06)
    assert "hold at once. They are read from noisy counts in bins" in words


def test_a_table_that_was_read_from_a_file_is_shown_alike(tmp_path):
    table = release()
    assert section_of(table)[:4] == section_of(table.reset_index())[:4]
    dpt.to_file(table, tmp_path / "costs.csv")
    assert section_of(table)[4] == section_of(dpt.read_file(tmp_path / "costs.csv"))[4]


def test_groups_have_a_row_each_and_no_interval_unless_they_have_one():
    table = release(**GROUPS)
    heading, words, heads, rows, html = section_of(table)
    assert (heading, heads) == ("Cost by region", ["Region", "25 % below", "Median"])
    expected = table["value"].to_numpy().reshape(-1, 2)[[1, 2, 0]]
    assert rows == [
        [name, *(f"{value:.1f}" for value in row)]
        for name, row in zip(["north", "south", "Total"], expected, strict=True)
    ]
    assert "is not stated" in words and "interval" not in words and "80 %" not in html
    table = release(**{**GROUPS, **INTERVALS})
    *_, heads, rows, _ = section_of(table)
    assert heads == ["Region", "25 % below", "80 % interval", "Median", "80 % interval"]
    assert ends_in(rows[0][2]) == pytest.approx(table[["lower", "upper"]].to_numpy()[2], abs=0.06)


@each("column, options, told", [
    ("day", {}, "2025-0[12]-[0-9]{2}"), ("day", {**GROUPS, **INTERVALS}, "2025-0[12]-[0-9]{2}"),
    ("when", GROUPS, r"2025-0[12]-\d\d \d\d:[03]0:00\+01:00"),
])  # fmt: skip
def test_moments_are_printed_as_they_are(column, options, told):
    table = release(column, **options)
    *_, rows, _ = section_of(table)
    assert re.fullmatch(told, rows[0][1]), rows
    shown = {cell for row in rows for cell in row}
    assert {str(value.date()) if column == "day" else str(value) for value in table["value"]} <= shown


@each("options, place", [({}, 2), (GROUPS, 0)])
def test_durations_are_printed_in_hours(options, place):
    heading, _, heads, rows, _ = section_of(release("wait", **options))
    assert "Wait (hours)" in ([heading, *heads][place])
    assert 0.1 < float(rows[0][1]) < 1


def test_missing_values_are_dashes():
    for column in ("cost", "day"):
        table = release(column, **GROUPS)
        table.loc[table["region"] == "south", "value"] = None
        *_, rows, _ = section_of(table)
        assert rows[1][1:] == ["–", "–"] and "–" not in rows[0]


def test_replaced_units_and_trees_are_said():
    drawn = release(neighbors="replace", rng=None)
    assert "The numbers were drawn at random on purpose" in section_of(drawn)[4]
    assert "which records any one of those protected has" in section_of(drawn)[4]
    read = RECORDS.dp.quantiles("cost", [0.1], bounds=(0, 100), bins=20, epsilon=9.0)
    assert "Random noise was added" in section_of(read)[4]


def test_the_table_within_the_page_has_its_quantiles():
    html = section_of(release())[4]
    content = re.search(r"base64,([A-Za-z0-9+/=]+)", html)[1]
    assert base64.b64decode(content).decode().startswith("q,value\n0.25,")


def test_half_of_the_rows_of_a_group_are_refused():
    table = release(**GROUPS)
    with pytest.raises(ArgumentError, match="has groups without some of their quantiles"):
        dpt.page({"costs": table.iloc[:-1]}, title="Costs")

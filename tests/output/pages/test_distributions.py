"""Sections for distributions, and for the quantiles of their groups."""

import html5lib
import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError
from tests.helpers_random import rng


def parsed(page):
    return html5lib.parse(page.html, namespaceHTMLElements=False)


def rows_of(tree, caption):
    """The cells of the table with a caption."""
    found = [each for each in tree.iter("table") if each.findtext("caption") == caption]
    assert len(found) == 1, [each.findtext("caption") for each in tree.iter("table")]
    return [["".join(cell.itertext()) for cell in row] for row in found[0].iterfind("tbody/tr")]


def release(values, **options):
    return pd.DataFrame({"x": values}).dp.release_distribution("x", epsilon=1.0, rng=rng(), **options)


def headings(tree):
    return ["".join(each.itertext()) for each in tree.iter("h2")][:-2]  # the last two explain


@pytest.fixture(scope="module")
def by_region(visits, clinics):
    regions = clinics[["region"]].drop_duplicates()
    return visits.dp.release_distribution(
        "age", by="region", domain=regions, bins=[0, 18, 30.5, 65, 100], epsilon=1.0, rng=rng()
    )


def test_quantiles_and_ranges_are_those_of_the_distribution():
    released = release(np.arange(2_000) % 80, bins=[0, 20, 40, 60, 80])
    tree = parsed(dpt.page({"x": released}, title="Ages"))
    found = released.quantiles([0.1, 0.25, 0.5, 0.75, 0.9])
    expected = [
        [f"{value:.0f}", f"{lower:.0f} to {upper:.0f}"] for value, lower, upper in found.to_numpy().tolist()
    ]
    rows = rows_of(tree, "X: shares below")
    assert [row[1:] for row in rows] == expected
    assert [row[0] for row in rows] == ["10 % below", "25 % below", "Median", "75 % below", "90 % below"]
    counts = rows_of(tree, "X: counts of ranges")
    ranges = released.range_counts([(0, 20), (20, 40), (40, 60), (60, 80)])
    assert [int(row[1].replace(",", "")) for row in counts] == ranges["count"].tolist()
    assert [row[0] for row in counts][:2] == ["0 to below 20", "20 to below 40"]


def test_the_picture_ends_at_the_total_and_its_band_holds_the_line():
    released = release(np.arange(300) % 80, bounds=(0, 80), bins=40)
    drawn = parsed(dpt.page({"x": released}, title="Ages")).find(".//{*}svg/{*}svg")
    band, line = (each.get("d") for each in drawn.iterfind("{*}path"))
    points = np.array([pair.split(",") for pair in line[1:].split()], dtype=float)
    assert points[0].tolist() == [0, 232] and points[-1, 0] == 1000
    assert (np.diff(points[:, 1]) <= 0).all()
    high, low = (
        np.array([pair.split(",") for pair in part.split()], dtype=float) for part in band[1:-2].split(" L")
    )
    low = low[::-1]
    assert (high[:, 1] <= points[:, 1]).all() and (low[:, 1] >= points[:, 1]).all()
    assert np.ptp(high[-1, 1] - low[-1, 1]) == 0 and high[-1, 1] == 8  # the top of the picture


@pytest.mark.parametrize(
    ("values", "bounds", "expected"),
    [
        (
            pd.to_timedelta(np.arange(500) % 90, unit="min"),
            (pd.Timedelta(0), pd.Timedelta(minutes=90)),
            "01:30:00",
        ),
        (
            pd.Timestamp("2025-01-01") + pd.to_timedelta(np.arange(500) % 300, unit="D"),
            (pd.Timestamp("2025-01-01"), pd.Timestamp("2025-11-01")),
            "2025-11-01",
        ),
    ],
)
def test_times_are_printed_as_times(values, bounds, expected):
    page = dpt.page({"x": release(values, bounds=bounds, bins=304)}, title="When")
    texts = [each.text for each in parsed(page).iterfind(".//{*}text")]
    assert expected in texts


def test_quantiles_of_groups_are_in_the_rows_of_their_nodes(by_region):
    tree = parsed(dpt.page({"age": by_region}, title="Ages", labels={"region": "Region"}))
    assert headings(tree) == ["Age", "Age by Region"]
    rows = rows_of(tree, "25 % below, median and 75 % below by Region")
    found = by_region.quantiles(0.5)
    expected = {
        "Total" if level == "total" else region: [f"{value:.1f}", f"{lower:.1f} to {upper:.1f}"]
        for level, region, _, value, lower, upper in found.itertuples(index=False)
    }
    assert {row[0]: row[3:5] for row in rows} == expected


def test_a_table_of_quantiles_is_shown_like_its_distribution(by_region):
    found = by_region.quantiles([0.25, 0.5, 0.75])
    page = dpt.page({"age": found}, title="Ages")
    tree = parsed(page)
    assert headings(tree) == ["Age by region"]
    assert len(rows_of(tree, "25 % below, median and 75 % below by region")) == found["region"].nunique() + 1
    assert "95 % interval" in page.html


@pytest.mark.parametrize(
    ("item", "told"),
    [
        ({"table": "counts", "as": "distribution"}, "wants a distribution"),
        ({"table": "counts", "as": "quantiles"}, "wants a table of the quantiles of a column"),
        ({"table": "age", "as": "levels"}, "wants a table of levels"),
        ({"table": "age", "as": "distribution", "ranges": [(0, 3)]}, "ranges"),
        ({"table": "age", "quantiles": [2]}, "must be numbers from 0 to 1"),
    ],
)
def test_what_does_not_fit_is_refused(item, told, by_region, counts):
    with pytest.raises(ArgumentError, match=told):
        dpt.page({"age": by_region, "counts": counts}, title="Ages", show=[item])


def test_a_distribution_has_a_page_of_its_own(by_region, tmp_path):
    page = by_region.to_html(title="Ages", ranges=[(0, 65)], quantiles=[0.5])
    tree = html5lib.parse(page, namespaceHTMLElements=False)
    assert tree.findtext(".//h1") == "Ages" and headings(tree) == ["Age", "Age by region"]
    assert len(rows_of(tree, "Age: counts of ranges")) == len(rows_of(tree, "Age: shares below")) == 1
    assert by_region.to_html(tmp_path / "ages.html", title="Ages", ranges=[(0, 65)], quantiles=[0.5]) is None
    assert (tmp_path / "ages.html").read_text("utf-8") == page
    with pytest.raises(ArgumentError, match="`title` must be text"):
        by_region.to_html(title=3)

"""Sections for the largest rows and for sums of rows: the numbers that the library derives."""

import pytest

import pandas_dptree as dpt
from tests.helpers_output import rows_of, text_of

BY = ["region", "district"]


@pytest.fixture(scope="module")
def table(visits, clinics):
    options = {"domain": clinics[BY].drop_duplicates(), "epsilon": 1.0, "keep": ["linear"]}
    return visits.dp.tree_counts(BY, **options)


def test_the_largest_are_ranked_with_their_intervals(table):
    show = [{"table": "t", "as": "top", "n": 3, "level": "district"}]
    tree, text = text_of(dpt.page({"t": table}, title="x", show=show).html)
    expected = table.dp.top(3, level="district")
    assert [row[0] for row in rows_of(tree)] == [
        f"{rank}. {district}, {region}"
        for rank, district, region in zip(*(expected[name] for name in ("rank", *BY[::-1])), strict=True)
    ]
    assert [row[1] for row in rows_of(tree)] == [f"{count:,}" for count in expected["count"]]
    assert "for each of the 37 that competed" in text and "hold at once with 95 %" in text


def test_areas_are_sums_of_rows(table):
    areas = {"Coast": [["Aldmark"], ["Brenvale", "Bramby"]], "All": [[]]}
    show = [{"table": "t", "as": "combine", "areas": areas}]
    tree, _ = text_of(dpt.page({"t": table}, title="x", show=show).html)
    paths = {name: [tuple(path) for path in each] for name, each in areas.items()}
    expected = table.dp.combine(paths)
    assert [row[:2] for row in rows_of(tree)] == [
        [name, f"{count:,}"] for name, count in zip(expected["area"], expected["count"], strict=True)
    ]


def test_areas_want_names(table):
    with pytest.raises(dpt.ArgumentError, match="without naming the areas"):
        dpt.page({"t": table}, title="x", show=[{"table": "t", "as": "combine"}])

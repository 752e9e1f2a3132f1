"""Two levels as a grid, and the heat maps that show it."""

import html5lib
import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError
from pandas_dptree.output.pictures.grid import grid_of
from pandas_dptree.output.released import Released

KEYS = pd.DataFrame([("b", "x"), ("b", "y"), ("a", "y"), ("a", "z"), ("c", "x")], columns=["day", "hour"])


@pytest.fixture(scope="module")
def counts():
    records = KEYS.loc[KEYS.index.repeat([50, 5, 20, 0, 9])]
    return dpt.tree_counts(records, ["day", "hour"], epsilon=2.0, domain=KEYS, rng=np.random.default_rng(2))


def test_each_node_has_its_cell_and_others_have_none(counts):
    released = Released.of(counts)
    grid = grid_of(released, argument="plot")
    found = {
        (released.name(line), column): counts["count"].iloc[cell]
        for line, cells in zip(grid.lines, grid.cells, strict=True)
        for column, cell in zip(grid.columns, cells, strict=True)
        if cell >= 0
    }
    assert found == counts.dp.level("hour")["count"].to_dict()


def test_columns_of_times_are_in_order():
    hours = [f"2025-01-{day:02d}" for day in (3, 1, 2)]
    keys = pd.MultiIndex.from_product([["a", "b"], hours], names=["k", "t"]).to_frame(index=False)
    table = dpt.tree_counts(keys, ["k", "t"], epsilon=1.0, domain=keys)
    assert grid_of(Released.of(table), argument="plot").columns == sorted(hours)


def test_a_page_shows_the_grid_with_its_errors_and_margins(counts):
    page = dpt.page({"t": counts}, title="T", show=[{"table": "t", "as": "heatmap"}])
    tree = html5lib.parse(page.html, namespaceHTMLElements=False)
    (table,) = [each for each in tree.iter("table") if each.get("class") == "h"]
    lines = {}
    for row in table.find("tbody"):
        name, *cells = ["".join(each.itertext()).split("±")[0] for each in row]
        lines[name] = [int(cell.split()[0].split("0 to")[0] or 0) if cell else None for cell in cells]
    heads = ["".join(each.itertext()) for each in table.find("thead/tr")][1:-1]
    by_hour = counts.dp.level("hour")["count"]
    for day, count in counts.dp.level("day")["count"].items():
        *cells, margin = lines[day]
        assert cells == [by_hour.get((day, hour)) for hour in heads]
        assert margin == count


def test_pictures_have_a_number_in_each_cell(counts):
    pytest.importorskip("matplotlib")
    import matplotlib.pyplot as plt

    axes = counts.dp.plot.heatmap()
    texts = sorted(int(text.get_text().replace(",", "")) for text in axes.texts)
    assert texts == sorted(counts.dp.level("hour")["count"])
    plt.close("all")


def test_tables_that_are_no_grid_are_refused(counts):
    one = dpt.tree_counts(KEYS, ["day"], epsilon=1.0, domain=["a", "b", "c"])
    names = [f"k{number}" for number in range(101)]
    many = pd.MultiIndex.from_product([names, names[:60]], names=["a", "b"]).to_frame(index=False)
    large = dpt.tree_counts(many, ["a", "b"], epsilon=1.0, domain=many)
    for table in (one, large, counts[counts["level"] != "day"]):
        with pytest.raises(ArgumentError, match="heat map"):
            dpt.page({"t": table}, title="T", show=[{"table": "t", "as": "heatmap"}])

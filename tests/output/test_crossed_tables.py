"""Released tables of crossed hierarchies, read back as cells of a product of trees."""

import itertools

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.output.crossed_tables import CrossedTable
from tests.helpers_cases import each
from tests.helpers_crossed_tables import KEYS, domain, whole


def path_of(row, axis):
    """The keys of a row of a table down to its level on an axis."""
    keys = list(KEYS[axis])
    depth = ["total", *keys].index(row[f"{axis}_level"])
    return tuple(row[key] for key in keys[:depth])


@pytest.mark.parametrize("which", ["whole", "shuffled", "filtered", "csv"])
def test_rows_know_their_cells(which, tmp_path):
    table = whole()
    if which == "shuffled":
        table = table.sample(frac=1, random_state=0)
    elif which == "filtered":
        table = table.loc[(table["what_level"] != "kind") & (table["place_level"] != "total")][::3]
    elif which == "csv":
        table.to_csv(tmp_path / "table.csv", index=False)
        table = pd.read_csv(tmp_path / "table.csv")
    read = CrossedTable.of(table)
    rows = table.to_dict("records")
    paths = [tuple(path_of(row, axis) for axis in KEYS) for row in rows]
    assert read.margin.tolist() == [[*map(len, path)] for path in paths]
    row_of = {path: place for place, path in enumerate(paths)}
    for place, axis in enumerate(KEYS):
        above = [(*path[:place], path[place][:-1], *path[place + 1 :]) for path in paths]
        expected = [row_of.get(up, -1) if path != up else -1 for path, up in zip(paths, above, strict=True)]
        assert read.parent(axis).tolist() == expected
        own = read.axes[axis]
        names = [own.name(node) for node in read.nodes[:, place].tolist()]
        assert which == "csv" or names == [str(("total", *path[place])[-1]) for path in paths]
    assert read.rows_at(read.nodes).tolist() == list(range(len(table)))
    assert (read.rows_at(np.full((2, len(KEYS)), -1)) == -1).all()
    found = [margin for margin, _ in read.margins]
    assert found == sorted({tuple(map(len, path)) for path in paths})
    assert sorted(itertools.chain.from_iterable(rows.tolist() for _, rows in read.margins)) == list(
        range(len(table))
    )
    for margin, rows in read.margins:
        assert (read.margin[rows] == margin).all()
    shown = read.shown()
    assert shown.name == "count" and shown.whole and shown.error_name == "standard error"
    assert (
        shown.numbers.tolist() == table["count"].tolist()
        and shown.error.tolist() == table["std_error"].tolist()
    )


def test_parents_hold_their_children():
    table = whole()
    read = CrossedTable.of(table)
    for place, axis in enumerate(KEYS):
        parent = read.parent(axis)
        below = parent >= 0
        sums = np.bincount(parent[below], table["count"][below], minlength=len(table))
        has = np.flatnonzero(np.bincount(parent[below], minlength=len(table)))
        assert len(has) and (sums[has] == table["count"].iloc[has]).all()
        assert (below == (read.margin[:, place] > 0)).all()
        assert len(read.axes[axis].table) == sum(
            domain().tree.axes[place].n_listed(level) for level in range(read.margin[:, place].max() + 1)
        )


def damaged():
    table = whole()
    odd = table["place_level"].where(table.index != 5)
    derived = whole()
    derived.attrs["dp_derived"] = "proportions"
    yield pd.concat([table, table.head(1)]), "several rows for one cell"
    yield (
        table.assign(place_level=odd),
        "rows without a known level in the column 'place_level'",
    )
    yield table.drop(columns="kind"), "lacks keys: 'kind'"
    yield table.head(0), "has no rows"
    yield derived, "derived from a released table"
    yield table.drop(columns=["count", "std_error"]), "is not a released table of crossed hierarchies"
    yield pd.DataFrame({"level": ["total"], "count": [1]}), "is not a released table of crossed hierarchies"
    yield table[[*table, "count"]], "several columns of one name"


@each("number", range(8))
def test_tables_that_cannot_be_read(number):
    table, message = [*damaged()][number]
    with pytest.raises(dpt.ArgumentError, match=message):
        CrossedTable.of(table)

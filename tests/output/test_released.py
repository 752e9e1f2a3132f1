"""Released tables read back as trees."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.output.pictures.boxes import STRENGTHS, boxes_of, strength_of
from pandas_dptree.output.released import Released
from tests.helpers_cases import each
from tests.helpers_output import paths
from tests.helpers_random import rng


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("which", ["counts", "addresses", "hostile"])
def test_rows_know_their_parents_and_names(which, shuffled, request):
    table = request.getfixturevalue(which)
    table = table.sample(frac=1, random_state=0) if shuffled else table
    released = Released.of(table)
    named = paths(table, released.keys)
    row_of = {path: row for row, path in enumerate(named)}
    assert released.parent.tolist() == [row_of[path[:-1]] if path else -1 for path in named]
    assert [released.name(row) for row in range(len(table))] == [(("total", *path))[-1] for path in named]
    assert [released.path(row) for row in range(len(table))] == [
        ", ".join(path[::-1]) if path else "total" for path in named
    ]
    nested = [named[row] for row in released.nested]
    assert sorted(released.nested) == list(range(len(table)))
    for above, path in pairwise(nested):  # each follows its parent, or what is below a sibling
        assert above[: len(path) - 1] == path[:-1]


def test_a_table_is_read_back_from_a_file(counts, tmp_path):
    counts.to_csv(tmp_path / "counts.csv", index=False)
    read = pd.read_csv(tmp_path / "counts.csv")
    assert Released.of(read).parent.tolist() == Released.of(counts).parent.tolist()
    assert "It is unknown how this table was made" in read.dp.to_html()
    read.dp.plot.levels(n=2)


def test_whole_keys_are_whole_again_after_a_file(tmp_path):
    records = pd.DataFrame({"year": [2024, 2025] * 5, "half": [0.5, 1.5] * 5})
    table = records.dp.tree_counts(["year", "half"], domain="observed", epsilon=1.0, rng=rng())
    table.to_csv(tmp_path / "table.csv", index=False)
    read = Released.of(pd.read_csv(tmp_path / "table.csv"))
    assert read.table["year"].dtype == float
    paths = [read.path(row) for row in range(len(table))]
    assert paths == ["total", "2024", "2025", "0.5, 2024", "1.5, 2025"]


def named(keys):
    """Release a table of some paths; call the rows of its last level."""
    records = pd.DataFrame(keys, columns=["state", "year", "month"])
    table = records.dp.tree_counts(list(records), domain="observed", epsilon=1.0, rng=rng())
    return [Released.of(table).path(row) for row in np.flatnonzero(table["level"] == "month")]


def test_names_leave_out_what_the_next_key_contains():
    keys = [("Texas", 1992, "1992-06"), ("Texas", 1993, "1993-01"), ("Utah", 1992, "1992-06")]
    assert named(keys) == ["1992-06, Texas", "1993-01, Texas", "1992-06, Utah"]
    assert named([*keys, ("Utah", 1993, "June")])[-1] == "June, 1993, Utah"  # one that tells nothing
    assert named([("Utah", 1, "12"), ("Utah", 12, "123")]) == [
        "12, 1, Utah",
        "123, 12, Utah",
    ]  # not of one length
    assert named([("Utah", "a", "a")]) == ["a, a, Utah"]  # called alike


def test_a_table_comes_back_from_parquet_with_its_provenance(counts, tmp_path):
    pytest.importorskip("pyarrow")
    counts = counts.head(44)
    counts.to_parquet(tmp_path / "counts.parquet")
    assert pd.read_parquet(tmp_path / "counts.parquet").dp.to_html() == counts.dp.to_html()


def test_levels_without_rows_may_be_forgotten(counts):
    below = counts.head(44).iloc[1:]
    forgotten = below.assign(level=below["level"].cat.remove_unused_categories())
    assert Released.of(forgotten).parent.tolist() == Released.of(below).parent.tolist()
    assert forgotten.dp.to_html() == below.dp.to_html()


def test_numbers_written_as_text_are_refused(counts):
    written = counts.assign(std_error=counts["std_error"].map("{:.1f} visits".format))
    for draw in (written.dp.plot.levels, written.dp.plot.icicle, written.dp.to_html):
        with pytest.raises(dpt.ArgumentError, match=r"not numbers, in the column 'std_error'.*\nHint: "):
            draw()


@each("error", [np.inf, np.nan, 0.0])
def test_errors_of_all_sizes(counts, error):
    table = counts.head(44).assign(std_error=error)
    table.dp.plot.levels(n=2)
    table.dp.to_html()
    released = Released.of(table)
    shown = released.shown()
    (first, *_) = boxes_of(released, shown, 620)
    assert strength_of(shown, first) == STRENGTHS[-1 if error else 0][1]


def test_a_branch_keeps_its_order(counts):
    branch = counts[counts["region"].eq("Corrow") & counts["level"].isin(["district", "clinic"])]
    released = Released.of(branch)
    assert (released.parent[released.depth == 2] == -1).all()
    assert (released.parent[released.depth == 3] >= 0).all()
    branch.dp.plot.icicle()


@each(
    "spoil, fact",
    [
        (lambda table: table.drop(columns="level"), "is not a released table"),
        (lambda table: table.drop(columns="count"), "is not a released table"),
        (lambda table: table.drop(columns="district"), "lacks keys"),
        (lambda table: table.head(0), "has no rows"),
        (lambda table: table.assign(level="elsewhere"), "rows without a known level"),
        (lambda table: pd.concat([table, table]), "several rows for one node"),
    ],
)
def test_what_is_no_released_table_is_refused(counts, spoil, fact):
    table = spoil(counts)
    for draw in (table.dp.plot.levels, table.dp.plot.icicle, table.dp.to_html):
        with pytest.raises(dpt.ArgumentError, match=fact):
            draw()

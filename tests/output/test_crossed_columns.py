"""Tables of crossed hierarchies are recognised by their columns, and no others are."""

import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.output.crossed_columns import axes_of
from tests.helpers_crossed_tables import KEYS, whole

AXES = {axis: list(keys) for axis, keys in KEYS.items()}


def as_text(table):
    """A table without categories, as from a CSV file."""
    return pd.DataFrame(table.to_dict("list"))


def test_axes_of_whole_and_filtered_tables():
    table = whole()
    for kept in (table, table.head(1), table.loc[table["what_level"] == "size_level"], table[::7]):
        assert axes_of(kept) == axes_of(kept[reversed(list(kept))]) == AXES
    assert axes_of(as_text(table)) == AXES
    finest = as_text(table.loc[(table["what_level"] == "size_level") & (table["place_level"] == "county")])
    assert axes_of(finest) == AXES  # the coarser keys are no levels of any row, but have values
    coarse = as_text(table.loc[(table["when_level"] == "total") & (table["place_level"] == "state")])
    assert axes_of(coarse) == {**AXES, "place": ["state", "county", "year", "month"], "when": []}


def test_keys_that_look_like_levels():
    """The values of a key named like a level column may be names of columns, or the word "total"."""
    table = whole()
    table = table.loc[table["what_level"] == "size_level"].assign(size_level="total")
    assert axes_of(as_text(table)) == AXES
    table["size_level"] = pd.Categorical(table["size_level"], ["total", "kind"])
    assert axes_of(table) == AXES


def test_other_tables_have_no_axes():
    table = whole()
    records = pd.DataFrame({"sea_level": ["high", "low"], "count": 1})
    for other in (
        records, records.astype("category"), records.assign(sea_level="total").drop(columns="count"),
        table.assign(level="total"), table[[*table, "count"]], pd.DataFrame({("a_level", 1): [1], 3: [2]}),
        as_text(table).drop(columns=["count", "std_error"]),
        as_text(table).assign(place_level="x")[["place_level"]],
    ):  # fmt: skip
        assert axes_of(other) == {}
    k = pd.DataFrame({"sea_level": ["total"]})
    counts = k.dp.tree_counts(
        "sea_level", domain=pd.Series(["total"], dtype="category", name="sea_level"), epsilon=1.0
    )
    assert axes_of(counts) == {} and len(counts.dp.level("sea_level")) == 1


def test_numbers_derived_from_crossed_tables_have_margins_too():
    table = whole()
    table.attrs["dp_derived"] = "proportions"
    assert len(table.dp.margin(place="state")) == 3
    with pytest.raises(dpt.ArgumentError, match=r"(?s)crossed hierarchies.*\.dp\.margin"):
        table.dp.level("state")

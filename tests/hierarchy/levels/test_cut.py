"""Levels made of a number: intervals as in pandas, however they are given."""

from itertools import pairwise

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

import pandas_dptree as dpt
from pandas_dptree.ingest.leaves import leaves_of
from tests.helpers_cases import each
from tests.helpers_levels import rng


@given(
    values=st.lists(st.floats() | st.sampled_from([0.0, 18.0, 65.0, 120.0, 0.1 + 0.2]), max_size=20),
    edges=st.sampled_from([[0, 18, 65, 120], [-1.5, 0, 0.3], np.array([1, 2]), range(5)]),
)
def test_intervals_are_those_of_pandas(values, edges):
    column = pd.Series(values, dtype=float)
    low, high = edges[0], edges[len(edges) - 1]
    clipped = column.clip(low, np.nextafter(high, low)).dropna()
    expected = pd.cut(clipped, list(edges), right=False, labels=False).astype(int).tolist()
    levels = dpt.cut("x", edges)
    found = leaves_of(levels, {"x": column}.__getitem__)
    assert found[column.notna()].tolist() == expected
    assert (found[column.isna()] == -1).all()


def test_intervals_are_written_and_ordered():
    counts = dpt.tree_counts(
        pd.DataFrame({"age": [3, 7, "12", 200, -1, None, "old"]}),
        dpt.cut("age", levels={"group": [0, 10, 20], "band": 5}), epsilon=1e6, rng=rng(),
    )  # fmt: skip
    bands = counts.dp.level("age_band")["count"]
    assert bands.index.tolist() == [
        ("[0, 10)", "[0, 5)"), ("[0, 10)", "[5, 10)"), ("[10, 20]", "[10, 15)"), ("[10, 20]", "[15, 20]")
    ]  # fmt: skip
    assert bands.tolist() == [2, 1, 1, 1]
    assert counts["age_band"].cat.ordered
    assert counts["age_band"].cat.categories.tolist() == ["[0, 5)", "[5, 10)", "[10, 15)", "[15, 20]"]


def test_widths_meet_listed_ends_despite_rounding():
    levels = dpt.cut("x", levels={"coarse": [0, 0.3, 0.7, 1], "fine": 0.1, "finest": 0.05})
    assert dpt.derived_domain(levels).tree.level_sizes == (1, 3, 10, 20)
    assert levels.paths()["x_fine"].unique()[2:4].tolist() == ["[0.2, 0.3)", "[0.3, 0.4)"]
    value = pd.Series([0.3, np.nextafter(0.3, 0)])
    [above, below] = leaves_of(levels, {"x": value}.__getitem__)
    assert levels.paths().iloc[[above, below], 0].tolist() == ["[0.3, 0.7)", "[0, 0.3)"]
    close = dpt.cut("x", [1, 1 + 2**-52, 2])
    assert close.paths()["x_bin"].tolist() == ["[1.0, 1.0000000000000002)", "[1.0000000000000002, 2.0]"]


@given(
    low=st.integers(-500, 500),
    steps=st.integers(1, 60),
    hundredths=st.sampled_from([1, 2, 5, 10, 25, 30, 70]),
)
def test_ends_made_with_a_width_are_the_numbers_that_are_written(low, steps, hundredths):
    """So that 0.3 lies in [0.3, 0.4), though three times 0.1 is more than 0.3."""
    width, ends = hundredths / 100, (low * hundredths / 100, (low + steps) * hundredths / 100)
    levels = dpt.cut("x", width=width, bounds=ends)
    [edges] = levels.edges
    assert edges.tolist() == [(low + step) * hundredths / 100 for step in range(steps + 1)]
    texts = [text[1:-1].split(", ") for text in levels.paths()["x_bin"]]
    assert [(float(start), float(end)) for start, end in texts] == list(pairwise(edges.tolist()))


@each("ends", [(0, 1e-310), (1e300, 1.5e300), (2**53, 2**53 + 6), (0, 1e-5 / 3)])
def test_ends_of_any_size_rise(ends):
    levels = dpt.cut("x", width=(ends[1] - ends[0]) / 3, bounds=ends)
    assert np.allclose(levels.edges[0], np.linspace(*ends, 4), rtol=1e-9, atol=0)
    assert len(set(levels.paths()["x_bin"])) == 3


def test_bounds_that_no_digits_can_hold_stay_what_they_are():
    [edges] = dpt.cut("x", width=1 / 12, bounds=(-1 / 3, 2 / 3)).edges
    assert edges[[0, -1]].tolist() == [-1 / 3, 2 / 3]
    assert edges[4] == 0.0


def test_a_width_between_bounds():
    assert len(dpt.cut("age", width=5, bounds=(0, 120)).paths()) == 24
    assert dpt.cut("age", width=60, bounds=(0, 120)).names == ("age_bin",)

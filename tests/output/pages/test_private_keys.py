"""Sections for tables that show large nodes only."""

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from tests.helpers_output import text_of
from tests.helpers_random import rng


@pytest.fixture(scope="module")
def words():
    records = pd.DataFrame({"word": np.repeat(["often", "also", "once"], [900, 500, 1])})
    options = {"private_keys": ["word"], "privacy_unit": dpt.ROWS, "epsilon": 1.0, "delta": 1e-6}
    return {
        mechanism: records.dp.tree_counts("word", mechanism=mechanism, **options, rng=rng())
        for mechanism in ("truncated_laplace", "gaussian")
    }


def test_bounds_and_remainders_are_shown_and_explained(words):
    table = words["truncated_laplace"]
    tree, text = text_of(dpt.page({"words": table}, title="Words").html)
    rows = [["".join(cell.itertext()) for cell in row] for row in tree.iterfind(".//table/tbody/tr")][:4]
    expected = {
        ("Total" if level == "total" else "(other)" if other else word): [f"{count:,}", f"± {bound}"]
        for level, word, count, bound, other in table[
            ["level", "word", "count", "max_error", "other"]
        ].itertuples(index=False)
    }
    assert {row[0]: row[1:3] for row in rows} == expected and len(expected) == 4
    assert [row[0] for row in rows][2:] == ["(other)", "Total"]  # below the keys
    stated = table.attrs["dp"]
    assert f"above {stated['shown_above']['word']}, and certainly if" in text
    assert f"the true count is above {stated['largest_unseen']['word']}" in text
    assert "What is not shown here is not zero" in text
    assert "the true count is certainly that close" in text


def test_bounds_of_gaussian_noise_hold_with_a_probability(words):
    _, text = text_of(dpt.page({"words": words["gaussian"]}, title="Words").html)
    assert "It holds for all rows at once in at least 95 % of all releases" in text
    assert "certainly" not in text

"""The table of all bounds."""

import itertools

import numpy as np
import pytest

from pandas_dptree import theory
from pandas_dptree.hierarchy.tree import Tree
from tests.helpers_planning import random_tree


@pytest.mark.parametrize(
    "branching", [[2] * 20, pytest.param([2] * 62, marks=pytest.mark.slow), [50, 60, 30], []]
)
def test_table_holds_bounds_in_order(branching):
    found = theory.error_bounds(Tree.from_branching(branching), epsilon=0.5, delta=1e-7, alpha=0.3)
    assert found.index.names == ["error", "privacy"]
    assert found.index.tolist() == list(
        itertools.product(["additive", "multiplicative"], ["pure", "approximate"])
    )
    assert found.columns.tolist() == ["lower", "lower_source", "upper", "upper_source"]
    assert (found.lower > 0).all() and (found.lower < found.upper).all()
    for column in ("lower", "upper"):
        by_privacy = found[column].unstack("privacy")
        assert (by_privacy.approximate <= by_privacy.pure * (1 + 1e-9)).all()
        assert (found[column].loc["multiplicative"] <= found[column].loc["additive"]).all()


def test_table_of_a_ragged_tree():
    tree = random_tree(np.random.default_rng(3), depth=4)
    found = theory.error_bounds(tree, epsilon=1.0, delta=1e-6, alpha=0.5)
    assert (found.lower < found.upper).all()

"""Wrong arguments of every bound are named."""

import math

import numpy as np
import pytest

from pandas_dptree import theory
from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import Tree
from tests.helpers_cases import each


@each(
    "argument, call",
    [
        ("epsilon", lambda tree: theory.packing_error(tree, epsilon=0)),
        ("delta", lambda tree: theory.packing_error(tree, epsilon=1, delta=1)),
        ("alpha", lambda tree: theory.packing_error(tree, epsilon=1, alpha=1)),
        ("alpha", lambda tree: theory.single_count_error(epsilon=1, alpha=-0.1)),
        ("alpha", lambda tree: theory.packing_threshold(tree, epsilon=1, alpha="0.1", eta=0.1)),
        ("eta", lambda tree: theory.packing_threshold(tree, epsilon=1, alpha=0.1, eta=0.5)),
        ("eta", lambda tree: theory.published_packing_threshold(tree, epsilon=1, alpha=0.1, eta=0)),
        ("eta", lambda tree: theory.decode([], tree, 1.0, 0.6, np.random.default_rng(0))),
        ("epsilon", lambda tree: theory.noise_floor(epsilon=-1)),
        ("delta", lambda tree: theory.error_bounds(tree, epsilon=1, delta=0, alpha=0.1)),
        ("alpha", lambda tree: theory.error_bounds(tree, epsilon=1, delta=1e-6, alpha=0)),
        ("alpha", lambda tree: theory.error_bounds(tree, epsilon=1, delta=1e-6, alpha=math.nan)),
        ("tree", lambda tree: theory.worst_node_shares(tree)),
        ("cumulative_sums", lambda tree: theory.from_thresholds(tree, [1, 2])),
    ],
)
def test_wrong_arguments_are_named(argument, call):
    tree = Tree((np.array([2]), np.array([1, 2])))
    with pytest.raises(ArgumentError, match="Hint: ") as raised:
        call(tree)
    assert raised.value.argument == argument

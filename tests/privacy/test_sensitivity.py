"""Sensitivities beside brute force."""

import itertools

import numpy as np
import pytest

from pandas_dptree.errors import ArgumentError
from pandas_dptree.privacy.sensitivity import Sensitivity, count_sensitivity, sum_sensitivity
from tests.helpers_cases import each


@each("rows", [1, 2, 3])
def test_sensitivity_is_the_largest_move_of_all(rows):
    nodes = 3
    units = [unit for unit in itertools.product(range(rows + 1), repeat=nodes) if sum(unit) <= rows]
    nobody = (0,) * nodes
    pairs = {
        "add_remove": [(unit, nobody) for unit in units],
        "replace": list(itertools.product(units, units)),
    }
    for neighbors, moves in pairs.items():
        differences = [np.subtract(a, b) for a, b in moves]
        assert count_sensitivity(neighbors=neighbors, max_contributions=rows) == Sensitivity(
            l1=max(int(abs(d).sum()) for d in differences),
            l2_squared=max(int((d**2).sum()) for d in differences),
            linf=max(int(abs(d).max()) for d in differences),
        )


@each("rows", [0, -1, 1.5, 2.0, True, "2", None])
def test_contributions_are_whole_and_at_least_one(rows):
    with pytest.raises(ArgumentError, match="max_contributions"):
        count_sensitivity(neighbors="replace", max_contributions=rows)


def test_unknown_neighbors_are_refused():
    with pytest.raises(ArgumentError, match="'swap'"):
        count_sensitivity(neighbors="swap")


@each(
    "arguments",
    [{"l1": 0, "l2_squared": 1}, {"l1": 1, "l2_squared": 0.5}, {"l1": 1, "l2_squared": 1, "linf": 0}],
)
def test_a_sensitivity_is_whole_and_positive(arguments):
    with pytest.raises(ArgumentError, match="whole number"):
        Sensitivity(**arguments)


@each("l1, l2_squared, most", [(3, 9, 3), (2, 2, 1), (6, 18, 4), (2, 100, 2)])
def test_no_node_moves_further_than_both_norms_allow(l1, l2_squared, most):
    assert Sensitivity(l1=l1, l2_squared=l2_squared).linf == most


@each("rows", [1, 2])
@each("low, high", [(0, 2), (-1, 2), (-2, 2), (1, 2), (-3, -2), (-1, 0), (2, 2)])
def test_sensitivity_of_sums_is_the_largest_move_of_all(low, high, rows):
    """All ways to lay out up to k rows of all values over three nodes or none; worst cases reach it."""
    row = [np.zeros(3, dtype=int), *(v * e for v in range(low, high + 1) for e in np.eye(3, dtype=int))]
    units = {tuple(sum(some)) for some in itertools.product(row, repeat=rows)}
    pairs = {
        "add_remove": [(unit, (0, 0, 0)) for unit in units],
        "replace": list(itertools.product(units, units)),
    }
    for neighbors, moves in pairs.items():
        differences = np.array([np.subtract(a, b) for a, b in moves])
        assert sum_sensitivity(low, high, neighbors=neighbors, max_contributions=rows) == Sensitivity(
            l1=int(abs(differences).sum(axis=1).max()),
            l2_squared=int((differences**2).sum(axis=1).max()),
            linf=int(abs(differences).max()),
        )


@each("low, high", [(-1, 2), (0, 2), (-2, -1), (1, 2), (-2, 2)])
def test_clipping_the_leaves_moves_no_level_further(low, high):
    """All data of two leaves and their total, two rows a unit, clipped at every bound that matters."""
    row = [np.zeros(2, dtype=int), *(v * e for v in range(low, high + 1) for e in np.eye(2, dtype=int))]
    units = np.array(list({tuple(a + b) for a, b in itertools.product(row, repeat=2)}))
    others = np.array(list(itertools.product(range(-5, 6), repeat=2)))
    for bound, neighbors in itertools.product(range(1, 6), ("add_remove", "replace")):
        most = sum_sensitivity(low, high, neighbors=neighbors, max_contributions=2)
        clipped = np.clip(others[:, None] + units, -bound, bound)
        other = np.clip(others, -bound, bound)[:, None]
        gaps = clipped - other if neighbors == "add_remove" else clipped[:, :, None] - clipped[:, None]
        for level in (gaps, gaps.sum(axis=-1, keepdims=True)):
            assert abs(level).sum(axis=-1).max() <= most.l1
            assert (level**2).sum(axis=-1).max() <= most.l2_squared
            assert abs(level).max() <= most.linf


@each("low, high", [(0, 0), (2, 1), (0, 1.5), ("0", "1")])
def test_what_a_row_adds_is_whole_and_something(low, high):
    with pytest.raises(ArgumentError, match="not both 0"):
        sum_sensitivity(low, high, neighbors="replace")

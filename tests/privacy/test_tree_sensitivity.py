"""Sensitivities of all levels together, beside all units of small trees."""

import itertools
import math

import numpy as np
import pytest

from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.planning.capacities import capacities, sensitivity_on
from pandas_dptree.privacy.quantity import Quantity
from pandas_dptree.privacy.sensitivity import Sensitivity, TreeSensitivity
from pandas_dptree.privacy.tree_sensitivity import LevelCapacities
from tests.helpers_cases import each

TREES = {
    "two levels": Tree.from_branching([3]),
    "pairs": Tree.from_branching([2, 2]),
    "a chain": Tree.from_branching([1, 3]),
    "ragged": Tree.from_paths([[0, 0], [0, 1], [0, 2], [1, 3]]),
}
CAPS = [(), (None, None, 1), (None, 2, None), (None, 2, 1), (None, None, 2)]


def units_of(tree, rows, caps, low, high):
    """The sums of all levels for each unit: all ways to put values into leaves that respect the caps."""
    one_row = [(leaf, value) for leaf in range(tree.n_leaves) for value in range(low, high + 1)]
    found = set()
    for n in range(rows + 1):
        for chosen in itertools.combinations_with_replacement(one_row, n):
            held, sums = np.zeros((2, tree.n_leaves), dtype=int)
            for leaf, value in chosen:
                held[leaf] += 1
                sums[leaf] += value
            levels = tree.roll_up(held)
            if all(cap is None or level.max() <= cap for level, cap in zip(levels, caps or [None] * 9)):  # noqa: B905
                found.add(tuple(map(tuple, (level.tolist() for level in tree.roll_up(sums)))))
    return [[np.array(level) for level in unit] for unit in found]


def largest_costs(units, neighbors, weights, power, measured):
    total = 0.0
    for weight, own, level in zip(weights, measured, zip(*units, strict=True), strict=True):
        sums = np.stack(level)[:, own]
        others = sums if neighbors == "replace" else 0 * sums[:1]
        total = total + weight * (np.abs(sums[:, None] - others) ** power).sum(axis=-1)
    return total.max()


def claimed(moves, weights, power):
    norm = (lambda level: level.l1) if power == 1 else (lambda level: level.l2_squared)
    return max(
        sum(w * norm(level) for w, level in zip(weights, pattern, strict=True)) for pattern in moves.patterns
    )


@each("neighbors", ["add_remove", "replace"])
@each("name", list(TREES))
@each("low, high, rows", [(1, 1, 3), (0, 2, 2), (-1, 2, 2), (-2, -1, 2)])
def test_no_unit_costs_more_than_the_patterns(name, neighbors, low, high, rows):
    tree, rng = TREES[name], np.random.default_rng(5)
    quantity = Quantity(column=None if low == high else "x", low=low, high=high)
    for caps in CAPS if tree.depth == 2 else [some[:1] + some[2:] for some in CAPS]:
        units = units_of(tree, rows, caps, low, high)
        known = [rng.random(size) < 0.3 for size in tree.level_sizes] if rng.random() < 0.3 else None
        measured = (
            [np.ones(size, bool) for size in tree.level_sizes] if known is None else [~k for k in known]
        )
        moves = sensitivity_on(
            tree, quantity, neighbors=neighbors, max_contributions=rows, caps=caps, known=known
        )
        for place, level in enumerate(moves.levels):
            alone = np.eye(len(moves.levels))[place]
            assert largest_costs(units, neighbors, alone, 1, measured) <= level.l1
            most = largest_costs(units, neighbors, alone, 2, measured)
            assert most <= level.l2_squared
            if neighbors == "add_remove" and known is None:  # then each level by itself is attained
                assert most == level.l2_squared
        for _ in range(3):
            weights = rng.exponential(size=len(moves.levels))
            for power in (1, 2):
                most = largest_costs(units, neighbors, weights, power, measured)
                assert most <= claimed(moves, weights, power) * (1 + 1e-12)


def test_a_unit_that_leaves_and_one_that_moves_are_both_covered():
    moves = sensitivity_on(TREES["pairs"], Quantity(), neighbors="replace", max_contributions=3)
    root, region, leaf = zip(*moves.patterns, strict=True)
    assert [level.l1 for level in root] == [3, 2, 1, 0]
    assert [level.l2_squared for level in region] == [level.l2_squared for level in leaf] == [9, 10, 13, 18]
    assert not moves.between and moves.levels[0] == Sensitivity(l1=3, l2_squared=9)


def test_the_single_node_is_that_of_all_kept_rows_known_nodes_counted():
    """Region A is public: the rows of B and its leaves pass the root, which is still if they only move."""
    tree = Tree.from_branching([2, 2])
    known = [np.array([False]), np.array([True, False]), np.array([True, True, False, False])]
    moves = sensitivity_on(tree, Quantity(), neighbors="replace", max_contributions=1, known=known)
    # The row leaves B for A, or moves within B: 1 on B and on its leaf, or 2 on leaves. Never 2 on B.
    assert claimed(moves, [0, 1, 1], 2) == 3
    assert claimed(moves, [1, 0, 0], 2) == 1


@each(
    "low, high, caps, rows, most",
    [(-10, 10, (None, None), 1, 800), (-10, 10, (None, 2), 3, 2000), (-4, 10, (None, 2), 3, 1152)],
)
def test_sums_of_both_signs_are_charged_what_they_can_move(low, high, caps, rows, most):
    """Counterexamples to rules that charge such sums by the patterns of counts, or by one node or one row."""
    tree = Tree.from_branching([4])
    moves = sensitivity_on(
        tree, Quantity(column="x", low=low, high=high), neighbors="replace", max_contributions=rows, caps=caps
    )
    assert len(moves.patterns) == 1
    ends = units_of_ends(tree, rows, caps, low, high)
    weights = [1, 1] if rows == 1 else [0, 1]
    assert most <= largest_costs(ends, "replace", weights, 2, [slice(None)] * 2) <= claimed(moves, weights, 2)


def units_of_ends(tree, rows, caps, low, high):
    """Units whose rows all have an extreme value."""
    units = []
    for chosen in itertools.product(*[range(-1, tree.n_leaves)] * rows, *[(low, high)] * rows):
        leaves, values = chosen[:rows], chosen[rows:]
        kept = [(leaf, value) for leaf, value in zip(leaves, values, strict=True) if leaf >= 0]
        held = np.bincount([leaf for leaf, _ in kept], minlength=tree.n_leaves)
        if caps[-1] is None or held.max() <= caps[-1]:
            sums = np.zeros(tree.n_leaves, dtype=int)
            for leaf, value in kept:
                sums[leaf] += value
            units.append([np.array([sums.sum()]), sums])
    return list({tuple(unit[1].tolist()): unit for unit in units}.values())


@each("rows", [33, 100, 2**40])
@each("caps", [(), (None, None, 1), (None, 7, 2)])
def test_many_rows_are_covered_by_few_patterns(rows, caps):
    tree = Tree.from_branching([50, 60])
    moves = sensitivity_on(tree, Quantity(), neighbors="replace", max_contributions=rows, caps=caps)
    assert len(moves.patterns) <= 34
    kept = moves.patterns[0][0].l1
    assert kept == min(rows, *([3000 * caps[-1], 50 * (caps[1] or 10**9)] if caps else [rows]))
    weights = np.array([0.3, 0.2, 0.5])
    most = capacities(tree, rows, caps)
    levels = [LevelCapacities(((int(own[0]), size),), size == 1) for own, size in zip(most, tree.level_sizes)]  # noqa: B905
    for b in np.unique(np.linspace(0, kept, 60).astype(int)).tolist():
        squares = [
            (kept - b) ** 2 if level.single else sum(n * c**2 for c, n in level.fill(kept) + level.fill(b))
            for level in levels
        ]
        assert weights @ squares <= claimed(moves, weights, 2) * (1 + 1e-12)
    covered = moves.covered(8)
    assert len(covered.patterns) <= 8 and not covered.between


def test_fills_are_the_largest_first():
    level = LevelCapacities(((4, 1), (2, 3), (1, 5)), single=False)
    assert level.fill(3) == [(3, 1)]
    assert level.fill(9) == [(4, 1), (2, 2), (1, 1)]
    assert level.fill(30) == [(4, 1), (2, 3), (1, 5)] and level.fill(0) == []


def test_capacities_are_those_of_the_children_together():
    tree = TREES["ragged"]
    assert [level.tolist() for level in capacities(tree, 9, (None, None, 2))] == [[8], [6, 2], [2, 2, 2, 2]]
    assert [level.tolist() for level in capacities(tree, 9, (None, 3, 2))] == [[5], [3, 2], [2, 2, 2, 2]]
    assert [level.tolist() for level in capacities(tree, 5)] == [[5], [5], [5]]


def test_parts_keep_the_patterns():
    moves = sensitivity_on(TREES["pairs"], Quantity(), neighbors="replace", max_contributions=1)
    part = moves.part(np.array([True, False, True]))
    assert part == TreeSensitivity(tuple((a, c) for a, _, c in moves.patterns))
    with pytest.raises(AssertionError):
        part.on(3)
    assert math.isclose(claimed(part, [1, 1], 2), 2)

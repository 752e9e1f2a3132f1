"""The enumeration of units on which tests of people with several rows rely: answers known by hand."""

from __future__ import annotations

import math

import pytest

from tests.helpers_people import World, delta

FLAT = ((-1,), (0, 0, 0, 0))


def test_a_unit_fills_leaves_up_to_their_cap_and_up_to_its_rows() -> None:
    world = World(FLAT, k=3, caps=(None, 2))
    assert sorted(map(sum, world.placements())) == [0, *[1] * 4, *[2] * 10, *[3] * 16]
    assert world.level_maxima() == [[(3, 9, 3), (3, 5, 2)]]


def test_replaced_units_move_the_root_or_twice_as_many_leaves() -> None:
    world = World(FLAT, k=3, caps=(None, 2), replace=True)
    assert world.level_maxima() == [[(3, 9, 3), (6, 5 + 5, 2)]]
    assert world.largest_squares([[1.0, 1.0]]) == 9 + 5
    assert world.largest_squares([[1.0, 2.0]]) == 2 * (5 + 5)
    assert world.largest_absolute([[1.0, 1.0]]) == 6


def test_sums_take_every_value_that_rows_allow() -> None:
    one = World(((-1,),), k=2, bounds=((-1, 2),))
    assert sorted(one.moves[0][0].ravel().tolist()) == [0, 1, 2, 3, 4]
    both = World(((-1,),), k=1, bounds=((1, 1), (-1, 1)), replace=True)
    assert sorted(zip(*(each[0].ravel().tolist() for each in both.moves), strict=True)) == [
        *[(0, 0), (0, 1), (0, 2)],
        *[(1, 0), (1, 1)],
    ]


def test_known_nodes_do_not_count() -> None:
    world = World(FLAT, k=1, known=frozenset({(0, 0, 0)}))
    assert world.level_maxima() == [[(0, 0, 0), (1, 1, 1)]]


@pytest.mark.parametrize("epsilon", [0.0, 0.5])
def test_delta_of_one_node_is_that_of_its_likeliest_answers(epsilon: float) -> None:
    q = math.exp(-1 / 2)
    at_most_0 = 1 / (1 + q)  # of Laplace noise of scale 2
    expected = at_most_0 - math.exp(epsilon) * (1 - at_most_0)
    assert delta(epsilon, [[(1,)]], [[2.0]], 1) == pytest.approx(expected, rel=1e-12)
    masses = {x: math.exp(-(x**2) / 8) for x in range(-60, 61)}
    total = sum(masses.values())
    expected = sum(max(mass - math.exp(epsilon) * masses.get(x - 1, 0.0), 0.0) for x, mass in masses.items())
    assert delta(epsilon, [[(1,)]], [[2.0]], 2) == pytest.approx(expected / total, rel=1e-9)


def test_losses_of_levels_and_of_quantities_add_up() -> None:
    apart = delta(0.7, [[(1, 2), (3,)], [(1,), ()]], [[2.0, 1.5], [3.0, 1.0]], 1)
    among = delta(0.7, [[(1,), (2,), (3,), (1,)]], [[2.0, 2.0, 1.5, 3.0]], 1)
    assert apart == pytest.approx(among, rel=1e-12)

"""Levels made of two coordinates: every point lies in its squares, and all squares are listed."""

import math

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

import pandas_dptree as dpt
from pandas_dptree.hierarchy.domain import fingerprint
from tests.helpers_levels import leaf_keys

COORDINATES = st.floats(-1, 5) | st.sampled_from([0.0, 1.0, 2.0, 3.0, 4.0, math.nan, math.inf])


@given(
    points=st.lists(st.tuples(COORDINATES, COORDINATES), max_size=20),
    depth=st.integers(1, 4),
)
def test_every_point_lies_in_its_squares(points, depth):
    frame = pd.DataFrame(points, columns=["y", "x"], dtype=float)
    levels = dpt.quadtree("y", "x", depth=depth, bounds=((0, 4), (1, 3)))
    found = leaf_keys(frame, levels)
    inside = frame[frame["y"].between(0, 4) & frame["x"].between(1, 3)]
    assert len(found) == len(inside)
    for (y, x), keys in zip(inside.values.tolist(), found.values.tolist(), strict=True):
        for level, key in enumerate(keys, 1):
            assert len(key) == level and keys[-1].startswith(key)
            (y0, y1), (x0, x1) = levels.square(key)
            assert y0 <= y < y1 or y == y1 == 4
            assert x0 <= x < x1 or x == x1 == 3


def test_all_squares_are_listed():
    levels = dpt.quadtree("y", "x", depth=3, bounds=((0, 8), (0, 8)), name="place")
    assert levels.names == ("place_1", "place_2", "place_3")
    squares = {levels.square(key) for key in levels.paths()["place_3"]}
    assert squares == {((y, y + 1), (x, x + 1)) for y in range(8) for x in range(8)}
    assert levels.square("1") == ((0, 4), (4, 8))


def test_squares_of_cells_are_not_those_of_coordinates():
    """A plan for the one is none for the other, although their parts lie at the same numbers."""
    squares = dpt.quadtree("y", "x", depth=2)
    cells = squares.over_cells(8, 8)
    coordinates = dpt.quadtree("y", "x", depth=2, bounds=((0, 8), (0, 8)))
    assert cells.square("03") == coordinates.square("03") == ((2, 4), (2, 4))
    same, other, larger = map(
        fingerprint,
        map(dpt.derived_domain, (squares.over_cells(8, 8), coordinates, squares.over_cells(8, 9))),
    )
    assert fingerprint(dpt.derived_domain(cells)) == same
    assert len({same, other, larger}) == 3

"""Paths packed into numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.hierarchy import paths as paths_module
from pandas_dptree.hierarchy.paths import Paths

rows = st.integers(1, 4).flatmap(
    lambda depth: st.lists(st.lists(st.integers(-1, 5), min_size=depth, max_size=depth), min_size=1)
)


@pytest.mark.parametrize("largest", [2**62, 400, 1], ids=["one number", "some ranks", "ranks at each level"])
@given(given=rows)
def test_levels_are_those_of_sorted_rows(largest, given):
    codes = np.array(given)
    paths = Paths()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths_module, "_LARGEST", largest)
        for column in codes.T:
            paths.append(column, 6)
    assert paths.sort() is None
    ordered = np.array(sorted(given))
    for place, level in enumerate(paths.levels()):
        prefixes = ordered[:, : place + 1].tolist()
        begins = [i == 0 or prefixes[i] != prefixes[i - 1] for i in range(len(prefixes))]
        assert level.begins.tolist() == begins
        assert level.missing.tolist() == (ordered[:, place] < 0).tolist()
        assert level.codes.tolist() == ordered[begins, place].tolist()


@given(given=rows, data=st.data())
def test_flags_are_sorted_with_their_paths(given, data):
    flags = data.draw(st.lists(st.booleans(), min_size=len(given), max_size=len(given)))
    paths = Paths()
    for column in np.array(given).T:
        paths.append(column, 6)
    expected = sorted(zip(given, flags, strict=True))
    assert paths.sort(np.array(flags)).tolist() == [flag for _, flag in expected]


def test_columns_are_not_changed():
    first, second = np.array([1, 0]), np.array([0, 1])
    paths = Paths()
    paths.append(first, 2)
    paths.append(second, 2)
    paths.sort()
    assert first.tolist() == [1, 0] and second.tolist() == [0, 1]


def test_more_levels_than_fit_into_a_number():
    codes = np.random.default_rng(1).integers(-1, 10**6, size=(50, 12))
    paths = Paths()
    for column in codes.T:
        paths.append(column, 10**6)
    paths.sort()
    ordered = codes[np.lexsort(codes.T[::-1])]
    *_, leaves = paths.levels()
    assert leaves.begins.all() and leaves.codes.tolist() == ordered[:, -1].tolist()

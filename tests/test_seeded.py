"""Everything that was recorded comes out again: a dozen cases by default, all in the slow tests."""

import copy

import pandas as pd
import pytest

from tests.seeded.cases import BY_DEFAULT, CASES, module_of
from tests.seeded.described import differences
from tests.seeded.record import changes, left_over

pytestmark = pytest.mark.skipif(
    int(pd.__version__.split(".")[0]) < 3, reason="types and texts were recorded with pandas 3"
)


def check(names):
    """Replay cases, and report every difference."""
    changed = [f"{name}: {line}" for name in names for line in changes(name)]
    assert not changed, "\n".join(changed)


@pytest.mark.parametrize("name", sorted(BY_DEFAULT))
def test_as_recorded(name):
    check([name])


@pytest.mark.slow
@pytest.mark.parametrize("module", sorted({module_of(name) for name in CASES}))
def test_all_as_recorded(module):
    check([name for name in CASES if module_of(name) == module and name not in BY_DEFAULT])


TABLE = {"columns": [{"name": "count", "dtype": "int64", "values": [1, 2]}], "provenance": {"epsilon": 1.0}}


def _changed(change):
    found = copy.deepcopy(TABLE)
    change(found)
    return differences(TABLE, found)


@pytest.mark.parametrize(
    "change",
    [
        lambda found: None,
        lambda found: found["provenance"].update(epsilon=1 + 1e-12),
        lambda found: found["provenance"].update(domain_source="given"),
    ],
)
def test_what_is_no_difference(change):
    assert not _changed(change)


@pytest.mark.parametrize(
    ("change", "provenance"),
    [
        (lambda found: found["columns"][0]["values"].reverse(), "columns[count].values[0] is 2, it was 1"),
        (
            lambda found: found["columns"][0]["values"].append(3),
            "columns[count].values has 3 entries, it had 2",
        ),
        (
            lambda found: found["columns"][0].update(values=[1.0, 2.0]),
            "columns[count].values[0] is 1.0, it was 1",
        ),
        (lambda found: found["columns"][0].update(name="n"), 'columns[count].name is "n", it was "count"'),
        (lambda found: found.update(index=0), "index is new: 0"),
        (
            lambda found: found["provenance"].update(epsilon=1 + 1e-9),
            "provenance.epsilon is 1.000000001, it was 1.0",
        ),
        (lambda found: found["provenance"].clear(), "provenance.epsilon is gone, it was 1.0"),
    ],
)
def test_differences_are_described(change, provenance):
    assert _changed(change)[0] == provenance


def test_nothing_is_left_over():
    assert left_over() == []

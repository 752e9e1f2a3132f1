"""Which caps the options of a plan state, how JSON holds them, and what is refused."""

import pytest

from pandas_dptree.errors import ArgumentError
from pandas_dptree.privacy.caps import caps_from_json, caps_to_json, check_caps, stated_caps, with_leaf_cap
from tests.helpers_cases import each

NAMES = ("total", "state", 3, "city")


@each(
    ("per_leaf", "per_node", "caps", "written"),
    [
        (None, None, (), {}),
        (None, {}, (), {}),
        (1, None, (None, None, None, 1), {"max_per_leaf": 1}),
        (None, {"city": 1}, (None, None, None, 1), {"max_per_leaf": 1}),
        (2, {3: 4}, (None, None, 4, 2), {"max_per_leaf": 2, "max_per_node": {"3": 4}}),
        (None, {3: 1, "state": 9}, (None, 9, 1, None), {"max_per_node": {"state": 9, "3": 1}}),
    ],
)
def test_caps_are_stated_and_written(per_leaf, per_node, caps, written):
    assert stated_caps(per_leaf, per_node, NAMES, "person") == caps
    assert caps_to_json(caps, NAMES) == written
    assert caps_from_json(written, [*map(str, NAMES)]) == caps
    assert check_caps(caps, len(NAMES), "person") == caps


@each(
    ("per_leaf", "per_node", "unit", "argument", "said"),
    [
        (0, None, "person", "max_per_leaf", "whole number of at least 1"),
        (True, None, "person", "max_per_leaf", "whole number"),
        (1.0, None, "person", "max_per_leaf", "whole number"),
        (None, {"state": 0}, "person", "max_per_node", "whole number"),
        (None, [("state", 1)], "person", "max_per_node", "by level"),
        (
            None,
            {"county": 1},
            "person",
            "max_per_node",
            "unknown levels: \\['county'\\]",
        ),
        (None, {"total": 2}, "person", "max_per_node", "max_contributions=2"),
        (1, {"city": 1}, "person", "max_per_node", "`max_per_leaf` does too"),
        (1, None, None, "max_per_leaf", "needs a `privacy_unit`"),
        (None, {"state": 1}, None, "max_per_node", "needs a `privacy_unit`"),
    ],
)
def test_what_cannot_be_a_cap_is_refused_by_name(per_leaf, per_node, unit, argument, said):
    with pytest.raises(ArgumentError, match=said) as caught:
        stated_caps(per_leaf, per_node, NAMES, unit)
    assert caught.value.argument == argument


def test_levels_that_read_alike_have_no_caps_by_name():
    """JSON writes names as text: a plan that is read would bound both levels, or neither as stated."""
    names = ("total", 1, "1", "city")
    with pytest.raises(ArgumentError, match=r"as text: \['1'\]") as caught:
        stated_caps(None, {1: 2}, names, "person")
    assert caught.value.argument == "max_per_node"
    assert stated_caps(2, None, names, "person") == (None, None, None, 2)


@each("caps", [(None,), (1, None, None, None), (None,) * 4, (None, 0, None, 1), (None, None, None, "1")])
def test_caps_have_an_entry_for_each_level_and_none_for_the_root(caps):
    with pytest.raises(ArgumentError):
        check_caps(caps, 4, "person")


def test_the_cap_of_leaves_can_be_changed():
    assert with_leaf_cap((), 3, 1) == (None, None, 1)
    assert with_leaf_cap((None, 2, 1), 3, None) == (None, 2, None)
    assert with_leaf_cap((None, None, 1), 3, None) == ()

"""The public keys of crossed hierarchies, and the margins that callers name."""

import dataclasses
import math
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError, DomainError
from pandas_dptree.hierarchy.crossed_domain import CrossedDomain, cross
from pandas_dptree.hierarchy.domain import Domain, fingerprint, level_names, source_of
from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.plans.serialize import fingerprint_of, level_sizes
from tests.helpers_cases import each
from tests.helpers_crossed_records import crossed
from tests.strategies import fewer

COUNTIES = pd.DataFrame({"state": ["CA", "CA", "DC", "WA"], "county": ["Kern", "Napa", None, "King"]})
PLACES = Domain.from_frame(COUNTIES, by=["state", "county"])
SEXES = Domain.from_frame(["F", "M"], by=["sex"])
DAYS = dpt.calendar("date", ["year", "month"], start="2024-11-01", end="2025-01-31")
DOMAIN = cross({"place": PLACES, "when": DAYS, "sex": SEXES})


def test_a_domain_has_what_its_axes_have():
    assert [*DOMAIN.axes] == ["place", "when", "sex"] and DOMAIN.axes["place"] is PLACES
    assert DOMAIN.by == ("state", "county", "date_year", "date_month", "sex")
    assert DOMAIN.sources == ("state", "county", "date", "sex")
    assert DOMAIN.plain == ("state", "county", "sex") and [*DOMAIN.derived] == [DAYS]
    assert DOMAIN.keys == {"place": ("state", "county"), "when": DAYS.names, "sex": ("sex",)}
    assert DOMAIN.ground == (2, 2, 1) and DOMAIN.tree.leaf_shape == (4, 3, 2)
    assert DOMAIN.tree == ProductTree(tuple(axis.tree for axis in DOMAIN.axes.values()))
    assert cross(place=PLACES, when=DAYS, sex=SEXES).fingerprint == DOMAIN.fingerprint
    assert cross({"place": PLACES}, when=DAYS, sex=SEXES).fingerprint == DOMAIN.fingerprint
    assert repr(cross(sex=SEXES)) == "CrossedDomain(sex=('sex',), leaf_cells=2)"


def test_trees_have_numbered_keys_that_are_named_like_the_axis():
    domain = cross(place=Tree.from_branching([2, 3]), sex=Tree.from_branching([2]))
    assert domain.by == ("place_1", "place_2", "sex")
    assert domain.axes["place"].keys(2).values.tolist() == [*map(list, product((0, 1), (0, 1, 2)))]
    assert domain.sources == domain.by


@fewer(2)
@given(drawn=crossed(max_rows=0))
def test_the_tree_is_the_cross_of_the_levels_that_are_wanted(drawn):
    axes, domain, _ = drawn
    depths = [len(axis.by) for axis in axes]
    wanted = [*product(*(range(depth + 1) for depth in depths))] if domain.wanted is None else domain.wanted
    ground = tuple(max(margin[place] for margin in wanted) for place in range(len(axes)))
    assert domain.ground == ground and domain.tree.shown == tuple(sorted(wanted))
    sizes = [axis.tree.level_sizes[level] for axis, level in zip(domain.axes.values(), ground, strict=True)]
    assert domain.tree.leaf_shape == tuple(sizes)
    assert domain.weights.tolist() == [float(margin in wanted) for margin in domain.tree.margins]
    again = domain.with_margins([*domain.tree.shown] and [domain.level_names[0]])
    assert again.tree.n_leaves == 1 and again.fingerprint == domain.fingerprint
    for axis, of_domain, level, zeros in zip(axes, domain.axes.values(), ground, domain.zeros, strict=True):
        possible = {path[:level] for path in axis.paths if path not in axis.zeros}
        nodes = of_domain.path_codes(level) or [np.zeros(1, dtype=int)]
        assert zeros.sum() == len(nodes[0]) - len(possible)


def test_margins_that_are_wanted():
    some = DOMAIN.with_margins([{"place": "state", "sex": "sex"}, ("county",), "total"])
    assert some.tree.shown == ((0, 0, 0), (1, 0, 1), (2, 0, 0)) and some.ground == (2, 0, 1)
    assert some.level_names == ("total", "sex", "state", "state × sex", "county", "county × sex")
    assert some.weights.tolist() == [1, 0, 0, 1, 1, 0]
    weighted = some.with_margins({"total": 0, ("sex", "date_year"): np.float32(2.5), "state": 1})
    assert weighted.weights.tolist() == [0, 0, 0, 2.5, 1, 0, 0, 0]
    assert weighted.tree.shown == ((0, 0, 0), (0, 1, 1), (1, 0, 0))
    everything = some.with_margins(None)
    assert everything.tree == DOMAIN.tree and everything.weights.tolist() == [1] * 18
    assert everything.level_names == DOMAIN.level_names
    assert [DOMAIN.tree.margins[12], DOMAIN.level_names[12]] == [(2, 0, 0), "county"]
    assert {each.fingerprint for each in (some, weighted, everything)} == {DOMAIN.fingerprint}


def test_margins_have_names():
    for given_margin in (
        {"place": "county", "sex": "sex"}, {"sex": "sex", "place": "county", "when": "total"},
        ("sex", "county"), ["county", "sex"], "county × sex", "sex×county", ("total", "county", "sex"),
    ):  # fmt: skip
        assert DOMAIN.margin_of(given_margin) == (2, 0, 1)
    assert DOMAIN.margin_of("total") == DOMAIN.margin_of({}) == DOMAIN.margin_of(()) == (0, 0, 0)
    assert [*map(DOMAIN.margin_of, DOMAIN.level_names)] == [*DOMAIN.tree.margins]


def test_names_need_not_be_text():
    domain = cross(a=Domain.from_frame(pd.DataFrame({1: [0], ("t", 2): [0]}), by=[1, ("t", 2)]), b=SEXES)
    assert domain.level_names[-1] == "('t', 2) × sex"
    for margin, names in {
        (1, 0): [1, "1", (1,), {"a": 1}],
        (2, 1): ["('t', 2) × sex", (("t", 2), "sex")],
    }.items():
        assert [*map(domain.margin_of, names)] == [margin] * len(names)
    assert domain.margin_of(("t", 2)) == (2, 0)


BAD_MARGINS = {
    "unknown axis": ({"plcae": "county"}, "has unknown axes: 'plcae'.\nHint: did you mean 'place'"),
    "unknown level": ({"place": "conty"}, "no level 'conty' of the axis 'place'.\nHint: did you mean"),
    "of another axis": ({"sex": "county"}, r"its levels are \['total', 'sex'\]"),
    "unknown name": ("conty", "no level 'conty'.\nHint: did you mean 'county'?"),
    "in a name": ("county × sxe", "no level 'sxe'.\nHint: did you mean 'sex'?"),
    "twice": (("county", "sex", "state"), "two levels of the axis 'place': 'county' and 'state'.\nHint: "),
    "no name": ([["county"]], r"no level \['county'\].\nHint: .* as in {'place': "),
    "a frame": (COUNTIES, "no level a DataFrame.\nHint: "),
    "None": (None, "no level None.\nHint: "),
    "None for an axis": ({"sex": None}, "no level None of the axis 'sex'.\nHint: "),
}  # fmt: skip


@each("given_margin, message", [pytest.param(*case, id=name) for name, case in BAD_MARGINS.items()])
def test_unknown_margins_have_hints(given_margin, message):
    with pytest.raises(ArgumentError, match=message) as caught:
        DOMAIN.margin_of(given_margin, "target")
    assert caught.value.argument == "target"


BAD_LISTS = {
    "one margin": ({"place": "county"}, "not a finite number .*: 'county'.\nHint: .*single margin"),
    "a name": ("county", "must be a list of margins, .* not 'county'.\nHint: for example margins="),
    "a set": ({"county"}, "must be a list of margins, .* not a set.\nHint: "),
    "none": ([], "names no margin.\nHint: leave it out"),
    "no weights": ({}, "names no margin.\nHint: "),
    "twice": (["county × sex", {"sex": "sex", "place": "county"}], "margin 'county × sex' twice.\nHint: "),
    "total twice": (["total", {}], "margin 'total' twice.\nHint: "),
    "all zero": ({"county": 0, "total": 0.0}, "no weight above 0.\nHint: "),
    "unknown": (["conty"], "no level 'conty'.\nHint: did you mean"),
    **{repr(bad): ({"county": bad}, "not a finite number of at least 0: .*\nHint: ")
       for bad in (-1, math.inf, math.nan, True, "1", None, 1j, np.datetime64(1, "D"))},
}  # fmt: skip


@each("margins, message", [pytest.param(*case, id=name) for name, case in BAD_LISTS.items()])
def test_bad_lists_of_margins_have_hints(margins, message):
    with pytest.raises(ArgumentError, match=message) as caught:
        DOMAIN.with_margins(margins)
    assert caught.value.argument == "margins"


AGES = dpt.cut("age", [0, 18, 65])
NO_AXES = {
    "none": (lambda: cross(), "has no axes.\nHint: "),
    "empty": (lambda: cross({}), "has no axes.\nHint: "),
    "no mapping": (lambda: cross([PLACES]), "must map the names of axes .* not be a list.\nHint: "),
    "a domain": (lambda: cross(SEXES), "must map the names of axes .* not be a Domain.\nHint: "),
    "a number": (lambda: cross({1: SEXES}), "names of axes that are not texts: 1.\nHint: "),
    "no text": (lambda: cross({" ": SEXES}), "names of axes that are not texts: ' '.\nHint: "),
    "twice": (lambda: cross({"sex": SEXES}, sex=SEXES), "names axes twice: 'sex'.\nHint: "),
    "a frame": (lambda: cross(place=COUNTIES), "for the axis 'place', not a DataFrame.\nHint: make domains"),
    "a forest": (lambda: cross(a=Tree.from_branching([2]).copies(2)), "not a Tree.\nHint: a tree needs one"),
    "no levels": (lambda: cross(a=Tree.from_branching([])), "not a Tree.\nHint: a tree needs one"),
    "keys on two": (lambda: cross(a=SEXES, b=SEXES), "keys on two axes: 'sex'.\nHint: "),
    "alike": (
        lambda: cross(a=Domain.from_frame([1], by=["1"]), b=Domain.from_frame([1], by=[1])),
        "names are not clear in the names of margins: '1', 1.\nHint: ",
    ),
    "cross": (lambda: cross(a=Domain.from_frame([1], by=["b × c"])), "not clear .*: 'b × c'.\nHint: "),
    "a key": (lambda: cross(a=Domain.from_frame([1], by=["a_level"])), "whose column .*: 'a_level'.\nHint: "),
    "of another": (
        lambda: cross(a=SEXES, b=Domain.from_frame([1], by=["a_level"])), "column .*: 'a_level'.\nHint: "
    ),
    "reserved": (lambda: cross(count=Tree.from_branching([2])), "the released table uses .*: 'count'"),
    "one column": (
        lambda: cross(a=dpt.calendar("date", ["weekday"], start="2024-01-01", end="2024-12-31"), b=DAYS),
        "axes that read the same columns: 'date'.\nHint: most of their combinations cannot occur",
    ),
    "also plain": (lambda: cross(a=Domain.from_frame([1], by=["age"]), b=AGES), "columns: 'age'.\nHint: "),
}  # fmt: skip


@each("make, message", [pytest.param(*case, id=name) for name, case in NO_AXES.items()])
def test_what_cannot_be_crossed_has_a_hint(make, message):
    with pytest.raises(ArgumentError, match=message) as caught:
        make()
    assert caught.value.argument == "domain"


def test_too_many_leaf_cells_are_refused_when_the_margins_are_known():
    wide, long = Tree.from_branching([10, 1000]), Tree.from_branching([5000])
    domain = cross(a=wide, b=long, c=Tree.from_branching([2]))
    for build in (lambda: domain.tree, lambda: domain.with_margins(None)):
        with pytest.raises(DomainError) as caught:
            build()
        combinations = "all combinations of 10,000 and 5,000 and 2 keys"
        assert f"100,000,000 leaf cells, more than 50,000,000: {combinations}" in str(caught.value)
        assert caught.value.hint == "pass `margins` without the level 'c' of the axis 'c'."
    assert domain.with_margins([("a_2", "b")]).tree.n_leaves == 5 * 10**7
    assert domain.with_margins([("a_1", "b", "c")]).tree.leaf_shape == (10, 5000, 2)
    deep = cross(a=wide, b=Tree.from_branching([6000]))
    with pytest.raises(DomainError, match=r"Hint: pass `margins` without the level 'a_2' of the axis 'a'"):
        deep.with_margins(["a_2 × b", "a_1"])
    small = cross({f"axis{n}": Tree.from_branching([n]) for n in (1000, 1001, 1002, 1003)})
    with pytest.raises(DomainError, match=r"1,006,011,006,000 .*\nHint: cross fewer axes") as caught:
        small.with_margins(None)
    assert "margins" not in caught.value.hint
    with pytest.raises(DomainError, match=r"8,192 margins, more than 4,096.\nHint: cross fewer axes"):
        cross({f"axis{n}": Tree.from_branching([2]) for n in range(13)}).with_margins(None)
    assert len(cross({f"axis{n}": Tree.from_branching([2]) for n in range(12)}).tree.margins) == 4096


def test_the_source_is_the_least_certain_one():
    observed = Domain.observed(pd.DataFrame({"sex": ["F", "M"]}), by=["sex"])
    domain = cross(place=PLACES, sex=observed)
    assert domain.source == source_of(domain) == "observed" and DOMAIN.source == "given"
    assert dataclasses.replace(DOMAIN, source="categories").source == "categories"
    assert dataclasses.replace(domain, source="categories").source == "observed"
    assert domain.with_margins(["sex"]).source == "observed"
    assert dataclasses.replace(DOMAIN, source="categories").with_margins(["sex"]).source == "categories"


def test_fingerprints_tell_axes_apart():
    others = [
        cross(where=PLACES, when=DAYS, sex=SEXES),
        cross(when=DAYS, place=PLACES, sex=SEXES),
        cross(place=PLACES, when=DAYS),
        cross(place=PLACES, when=DAYS, sex=Domain.from_frame(["F", "X"], by=["sex"])),
    ]
    prints = [each.fingerprint for each in (DOMAIN, *others)]
    assert len({*prints}) == len(prints) and {len(each) for each in prints} == {64}
    same = cross(place=PLACES, when=DAYS, sex=Domain.observed(pd.DataFrame({"sex": ["M", "F"]}), by=["sex"]))
    assert same.fingerprint == fingerprint(DOMAIN) == fingerprint_of(DOMAIN) == prints[0]
    assert level_names(DOMAIN) == DOMAIN.level_names


def test_sizes_in_json_are_those_of_the_shown_margins():
    some = DOMAIN.with_margins(["county × sex", "state"])
    assert level_sizes(some) == [0, 0, 3, 0, 0, 6]
    assert level_sizes(DOMAIN)[-1] == 3 * 3 * 2


def test_bare_products_have_no_other_names():
    assert isinstance(cross(a=AGES), CrossedDomain) and cross(a=AGES).level_names == ("total", "age_bin")

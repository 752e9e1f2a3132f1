"""The domain of crossed hierarchies, from a mapping as `by` and from what a caller says of their keys."""

import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.verbs.domains import crossed_domain_of, hierarchy_of
from tests.helpers_cases import each
from tests.helpers_crossed_tables import domain, whole

PLACES = pd.DataFrame({"state": ["CA", "CA", "WA"], "county": ["Kern", "Napa", "King"]})
DAYS = dpt.calendar("date", ["year", "month"], start="2024-11-01", end="2025-01-31")
AGES = dpt.cut("age", [0, 18, 65])
BY = {"place": ["state", "county"], "when": DAYS, "sex": "sex"}
SEXES = Domain.from_frame(["F", "M"], by=["sex"])
DOMAIN = dpt.cross(place=Domain.from_frame(PLACES, by=["state", "county"]), when=DAYS, sex=SEXES)
RECORDS = pd.DataFrame(
    {
        "state": ["CA", "WA", "WA", None], "county": ["Kern", "King", None, "Kern"], "age": [3, 70, 4, 5],
        "date": pd.to_datetime(["2024-12-24"] * 4),
        "sex": pd.Categorical(["F", None, "F", "F"], ["F", "M", "X"]),
    }
)  # fmt: skip


class Unread:
    """Records that nobody may look at."""


def domain_of(by, domain=None, frame=None):
    found, private = hierarchy_of(frame or Unread(), by, domain, None)
    assert private is None
    return found


@each(
    "place, sex",
    [
        (PLACES, ["F", "M"]),
        (pd.MultiIndex.from_frame(PLACES), pd.Index(["M", "F"])),
        (DOMAIN.axes["place"], pd.DataFrame({"sex": ["F", "M"]})),
        (PLACES[::-1], pd.Series(["F", "M"])),
    ],
)
def test_keys_are_given_for_each_axis(place, sex):
    made = domain_of(BY, {"place": place, "sex": sex})
    assert [*made.axes] == [*BY] and made.by == DOMAIN.by and made.source == "given"
    assert made.fingerprint == DOMAIN.fingerprint
    assert domain_of(BY, {"sex": sex, "when": None, "place": place}).fingerprint == DOMAIN.fingerprint


def test_axes_are_keys_lists_and_derived_levels():
    by = {"a": "sex", "b": ["state", DAYS], "c": [AGES, "county"]}
    made = domain_of(by, {"a": ["F"], "b": ["CA", "WA"], "c": ["Kern", "Napa"]})
    assert made.by == ("sex", "state", "date_year", "date_month", "age_bin", "county")
    assert made.tree.leaf_shape == (1, 2 * 3, 2 * 2)
    assert made.sources == ("sex", "state", "date", "county", "age")
    assert domain_of({"when": DAYS, "age": [AGES]}).by == ("date_year", "date_month", "age_bin")


def test_the_keys_of_axes_may_be_observed():
    """Each axis by itself: which combinations of them occur does not matter."""
    by = {"place": ["state", "county"], "sex": "sex", "age": AGES}
    found = crossed_domain_of(RECORDS, by, "observed")
    assert found.source == "observed" and found.axes["age"].source == "given"
    assert found.axes["place"].keys(2).values.tolist() == [["CA", "Kern"], ["WA", "King"]]
    assert found.axes["sex"].keys(1)["sex"].tolist() == ["F"]
    some = crossed_domain_of(RECORDS, by, {"place": "observed", "sex": ["F", "M"]})
    assert [axis.source for axis in some.axes.values()] == ["observed", "given", "given"]
    assert some.source == "observed" and some.tree.leaf_shape == (2, 2, 2)


def test_the_categories_of_axes_may_be_public():
    found = crossed_domain_of(RECORDS, {"sex": "sex", "age": AGES}, "categories")
    assert found.source == "categories" and found.axes["sex"].keys(1)["sex"].tolist() == ["F", "M", "X"]
    mixed = crossed_domain_of(RECORDS, {"sex": "sex", "at": "state"}, {"sex": "categories", "at": "observed"})
    assert mixed.source == "observed" and mixed.tree.leaf_shape == (3, 2)


def test_a_crossed_domain_is_taken_as_it_is():
    assert domain_of(BY, DOMAIN) is DOMAIN
    some = DOMAIN.with_margins(["county"])
    assert domain_of(BY, some) is some


BOTH = {"place": PLACES, "sex": ["F", "M"]}
REFUSED = {
    "nothing": (BY, None, r"`domain` must be given for the axes \['place', 'sex'\]: which keys exist is .*"
                r"\nHint: .* pass domain={'place': ..., 'sex': ...}. If everybody may know"),
    "one only": (BY, {"place": PLACES}, r"must be given for the axes \['sex'\]: which keys exist"),
    "None for one": (BY, {"place": PLACES, "sex": None}, r"must be given for the axes \['sex'\]"),
    "one frame": (BY, PLACES,
        r"must map the axes \['place', 'sex'\] to their public keys, not be a DataFrame"),
    "a domain": (BY, SEXES, "must map the axes .*, not be a Domain.\nHint: for example domain={"),
    "a word": (BY, "observd", "is unknown: 'observd'.\nHint: .*\"observed\""),
    "a word of one": (BY, {"place": PLACES, "sex": "F"}, "is unknown: 'F'.\nHint: .*\"categories\""),
    "unknown axes": (BY, {**BOTH, "plcae": 1},
        "axes that `by` does not have: 'plcae'.\nHint: did you mean 'place'?"),
    "a derived axis": (BY, {**BOTH, "when": PLACES},
        "Axis 'when': `domain` cannot be given if all levels are derived"),
    "all derived": ({"when": DAYS}, "observed",
        "cannot be given if all levels are derived.*\nHint: leave it out"),
    "of two axes": (BY, dpt.cross(place=DOMAIN.axes["place"]),
        r"has the axes \['place'\], not \['place', 'when', "),
    "another order": ({"sex": "sex", "when": DAYS}, dpt.cross(when=DAYS, sex=SEXES), "in the same order"),
    "other keys": ({"place": "county"}, dpt.cross(place=SEXES), r"Axis 'place': .*keys \['sex'\], not"),
    "other levels": (
        {"a": dpt.cut("age", [0, 18, 66])}, dpt.cross(a=AGES), "Axis 'a': .* different derived levels"
    ),
    "no levels": (
        {"a": ["sex", AGES]}, dpt.cross(a=SEXES), "without the derived levels of `by`.\nHint: cross the"
    ),
    "no leaves": (BY, {"place": PLACES[:0], "sex": ["F"]}, "Axis 'place': `domain` has no leaves"),
    "a gap": (
        BY, {"place": PLACES, "sex": ["F", None]}, "Axis 'sex': .* path without its first key.\nHint"
    ),
    "lacking": (BY, {"place": PLACES[["state"]], "sex": ["F"]}, "Axis 'place': .*'county'"),
    "no axes": ({}, None, "`by` has no axes.\nHint: name each axis"),
    "no name": ({1: "sex"}, "observed", "`by` has names of axes that are not texts: 1.\nHint: "),
    "no keys": ({"a": []}, "observed", "Axis 'a': `by` names no column"),
    "a mapping": ({"a": {"b": "sex"}}, "observed",
        "Axis 'a': `by` must be a list of column names, .* not a dict"),
    "reserved": ({"a": "count"}, "observed",
        "Axis 'a': `by` has names that the released table uses itself: 'count'"),
    "on two": ({"a": ["sex"], "b": "sex"}, "observed",
        "`by` has keys on two axes: 'sex'.\nHint: each key belongs"),
    "two calendars": (
        {"a": DAYS, "b": dpt.calendar("date", ["weekday"], start="2024-11-01", end="2025-01-31")}, None,
        "`by` has axes that read the same columns: 'date'.\nHint: most of their combinations cannot occur",
    ),
    "read twice": ({"a": AGES, "b": "age"}, "observed",
        "`by` has axes that read the same columns: 'age'.\nHint: "),
    "a clash": ({"a": "b_level", "b": "sex"}, "observed",
        "column in the released table .*: 'b_level'.\nHint: rename"),
    "all prefixes": ({"ip": dpt.prefixes("ip", bits=[8, 16], notation="ipv4")}, None,
                     "Axis 'ip': `by` is an implicit tree .*\nHint: put it into a list"),
}  # fmt: skip


@each("by, domain, message", [pytest.param(*case, id=name) for name, case in REFUSED.items()])
def test_what_cannot_be_crossed_is_refused_before_records_are_read(by, domain, message):
    with pytest.raises(ArgumentError, match=f"(?s){message}") as caught:
        domain_of(by, domain)
    assert "private_keys" not in str(caught.value)


def test_private_keys_cannot_be_crossed():
    with pytest.raises(ArgumentError, match=r"`private_keys` cannot be given with crossed .*\nHint: nest"):
        hierarchy_of(Unread(), BY, BOTH, ["county"])


def test_prefixes_in_a_list_can():
    made = domain_of({"ip": [dpt.prefixes("ip", bits=[1, 2], notation="ipv4")], "sex": "sex"}, {"sex": ["F"]})
    assert made.tree.leaf_shape == (4, 1)


def test_records_read_once_cannot_be_observed():
    pyarrow = pytest.importorskip("pyarrow")
    reader = pyarrow.table({"a": [1], "b": [2]}).to_reader()
    with pytest.raises(ArgumentError, match=r"Axis 'a': .* read only once"):
        crossed_domain_of(reader, {"a": "a", "b": "b"}, "observed")


def test_a_released_table_has_a_crossed_domain():
    """That of its release, whole or shuffled; of filtered rows, the axes and keys that they show."""
    table = whole()
    for rows in (table, table.sample(frac=1, random_state=1)):
        assert rows.dp.domain().fingerprint == domain().fingerprint
        assert rows.dp.domain().source == "released"
    counties = table[table["place_level"] == "county"].dp.domain().axes["place"]
    assert counties.keys(2).values.tolist() == [["CA", "Kern"], ["CA", "Marin"], ["WA", "Kern"]]
    some = table.loc[(table["when_level"] == "total") & (table["what_level"] != "size_level")].dp.domain()
    assert some.keys == {"place": ("state", "county"), "what": ("kind",), "age": ("years",)}
    with pytest.raises(ArgumentError, match="lacks the errors"):
        table.drop(columns="std_error").dp.domain()
    with pytest.raises(dpt.DomainError, match="shows no key"):
        table.head(1).dp.domain()

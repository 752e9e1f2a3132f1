"""The fixed words of pages: all of them are in one table."""

import re
from string import Formatter

import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.output.pages.texts import LANGUAGES
from tests.helpers_output import text_of
from tests.helpers_random import rng

PLACES = pd.DataFrame({"1": [10, 10, 20, 30, 30], "2": [1, 2, 3, 4, 5]})
PEOPLE = pd.DataFrame({"1": [10, 30] * 40, "2": [1, 4] * 40, "3": range(80), "4": [5.0, 6.0] * 40})
UNIT = {"privacy_unit": "3", "max_contributions": 2}


def places(text):
    return sorted(name for _, name, _, _ in Formatter().parse(text) if name is not None)


def made_up(text):
    """Replace each letter outside of places by one of no known language."""
    return re.sub(r"\{[^}]*\}|[A-Za-z]", lambda found: found[0] if "{" in found[0] else "ж", text)


@pytest.fixture
def language(monkeypatch):
    words = {key: made_up(text) for key, text in LANGUAGES["en"].items()}
    monkeypatch.setitem(LANGUAGES, "tlh", words)
    return "tlh"


def test_every_language_has_the_same_texts_with_the_same_places():
    for words in LANGUAGES.values():
        assert words.keys() == LANGUAGES["en"].keys()
        for key, text in words.items():
            assert places(text) == places(LANGUAGES["en"][key]), key


def tables():
    domain = dpt.Domain.from_frame(PLACES, by=["1", "2"])
    secret = {"domain": domain, "by": ["1", "2"]}
    of = {**UNIT, "columns": "4", "bounds": (0.0, 9.0)}
    yield PEOPLE.dp.tree_counts(**secret, epsilon=1.0, confidence=0.9, known={"total": 80}, **UNIT)
    yield PEOPLE.dp.tree_means(**secret, rho=0.1, neighbors="replace", **of)
    yield PEOPLE.dp.tree_sums(**secret, epsilon=1.0, delta=1e-6, **of).iloc[1:]
    yield PEOPLE.dp.tree_counts(**secret, epsilon=99.0, privacy_unit=dpt.ROWS, rng=rng())
    drawn = {"bounds": (0, 900), "epsilon": 1.0, "mechanism": "exponential", **UNIT}
    yield PEOPLE.dp.quantiles("4", [0.5], **drawn)
    yield PEOPLE.dp.quantiles("4", [0.25, 0.5], **secret, **drawn, bins=3, confidence=0.9)
    yield PEOPLE.dp.quantiles("4", 1.0, bounds=(0, 9), bins=3, rho=0.1)
    yield PEOPLE.dp.tree_counts(["1"], private_keys=["1"], epsilon=1.0, delta=1e-6, **UNIT)


def test_a_language_changes_every_fixed_word_of_a_page(language):
    """What is left is data, names of the package, and the letters of reliability."""
    named = {str(number): table for number, table in enumerate(tables())}
    bare = pd.DataFrame(named["0"].to_dict("series"))
    linear = {"by": ["1", "2"], "domain": PLACES, "epsilon": 1.0, "keep": ["linear"], **UNIT}
    named |= {str(number): PEOPLE.dp.tree_counts(**linear) for number in (7, 8)}
    show = [{"table": name} for name in named] + [
        {"table": "7", "as": "proportions", "of": "total"},
        {"table": "7", "as": "change", "before": "8"},
        {"table": "7", "as": "top", "level": "1"},
        {"table": "7", "as": "combine", "areas": {"9": [[10]]}},
    ]
    page = dpt.page({**named, "6": bare}, title="1", language=language, show=show)
    tree, _ = text_of(page.html)
    body = tree.find("body")
    shown = " ".join(
        [
            *body.itertext(),
            *(each.get(name) or "" for each in body.iter() for name in ("aria-label", "title", "alt")),
        ]
    )
    known = r"[0-9a-f]{64}|\de-\d|pandas_dptree|dptree verify plan.json table.csv"
    assert {*re.findall("[A-Za-z]+", re.sub(known, "", shown))} == {*"ABCDEF"}
    assert tree.get("lang") == "tlh"
    assert len(re.findall("ж+", shown)) > 300


def test_signs_of_numbers_follow_the_language(monkeypatch):
    signs = {"sign.thousands": ".", "sign.decimal": ",", "numbers.interval": "{lower} bis {upper}"}
    monkeypatch.setitem(LANGUAGES, "de", {**LANGUAGES["en"], **signs})
    table = pd.DataFrame(
        {
            "level": ["total"],
            "x": [-12_345.5],
            "x_std_error": [0.25],
            "x_lower": [-12_346.0],
            "x_upper": [-12_344.0],
        }
    )
    _, text = text_of(dpt.page({"a": table}, title="b", language="de").html)
    assert "−12.345,5" in text and "−12.346,0 bis −12.344,0" in text


def test_a_language_that_is_missing_is_named():
    with pytest.raises(dpt.ArgumentError, match=r"`language`.*'xx'") as caught:
        dpt.page({"a": PLACES}, title="b", language="xx")
    assert "'en'" in caught.value.hint

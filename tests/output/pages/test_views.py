"""Classes of reliability on pages: as chosen, and blank where their numbers are not to be shown."""

import base64
import re

import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.output.derived.reliability import CLASSES
from pandas_dptree.output.pictures.boxes import STRENGTHS
from tests.helpers_output import rows_of, text_of

NUMBERS = {"a": (900, 20), "b": (81, 20), "c": (37, 20), "d": (0, 20)}
"""Of the classes A, D, F and F."""


def table():
    values, errors = zip((1018, 20), *NUMBERS.values(), strict=True)
    frame = pd.DataFrame({"level": ["total", *["place"] * 4], "place": [None, *NUMBERS], "count": values})
    frame["std_error"] = errors
    frame["lower"] = [max(0, value - 39) for value in values]
    frame["upper"] = [value + 39 for value in values]
    return frame


def shown(**options):
    """The number, the error and the class of each place, the classes of rows, and the text of the page."""
    page = dpt.page({"t": table()}, title="T", **options).html
    tree, text = text_of(page)
    rows = {row[0]: row[1:] for row in rows_of(tree) if row[0] in NUMBERS}
    styles = re.findall(r'<tr(?: class="(\w+)")?><th scope="row">[abcd]</th>', page)
    return rows, styles, text


def test_classes_are_those_that_were_chosen():
    for classes, letters, styles in [
        ("statcan", ["A", "D", "F", "F"], ["", "", "F", "F"]),
        ("abs", ["", "", "**", "**"], ["", "", "F", "F"]),
        ({"good": 0.1, "fair": 0.3, "poor": 9.0}, ["good", "fair", "poor", "poor"], ["", "E", "F", "F"]),
    ]:
        rows, styled, text = shown(reliability=classes)
        assert [row[2] for row in rows.values()] == letters, classes
        assert styled == styles, classes
        assert "Classes of reliability" in text
        assert ("Statistics Canada" in text) == (classes == "statcan")
    rows, styled, text = shown(reliability="none")
    assert {len(row) for row in rows.values()} == {2} and not any(styled)
    assert "Classes of reliability" not in text


def test_blank_classes_print_their_letter_and_their_interval():
    rows, _, text = shown(blank=["F"])
    assert rows["b"] == ["81", "± 39", "D"]
    assert rows["c"] == ["F", "0 to 76", "F"] and rows["d"] == ["F", "0 to 39", "F"]
    assert "Numbers of class F are not shown" in text
    assert "37" not in text.replace("0.37", "")
    page = dpt.page({"t": table()}, title="T", blank=["F"]).html
    file = base64.b64decode(re.search(r"base64,([^\"]+)", page)[1]).decode()
    assert ",37,20," in file  # files keep numbers


def test_classes_that_cannot_be_used():
    for options, named in [
        ({"reliability": "statkan"}, "reliability"),
        ({"reliability": {"A": 0.3, "B": 0.2, "C": 0.5}}, "reliability"),
        ({"blank": ["G"]}, "blank"),
        ({"blank": "F"}, "blank"),
        ({"blank": ["F"], "reliability": "none"}, "blank"),
    ]:
        with pytest.raises(dpt.ArgumentError, match=f"`{named}`"):
            dpt.page({"t": table()}, title="T", **options)


def test_icicles_have_the_limits_of_the_classes():
    assert [most for most, _ in STRENGTHS] == [*CLASSES["statcan"].values()]

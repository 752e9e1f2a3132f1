"""Errors and warnings: what is quoted, which names are suggested, and which line is pointed at."""

import datetime
import inspect
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import pandas_dptree as dpt
from pandas_dptree import ColumnsError, DPTreeWarning
from pandas_dptree.errors import did_you_mean, kind_of_object, listed, quote, warn
from tests.helpers_messages import SECRET, N, Printing, Unprintable, shows_secret
from tests.helpers_warnings import EMPTY


@pytest.mark.parametrize(
    ("missing", "known", "hint"),
    [
        (["day"], ["Day", "Daytime"], "did you mean 'Day'? "),
        (["Day "], ["Day"], "did you mean 'Day'? "),
        (["--eps"], ["--keep", "--epsilon"], "did you mean '--epsilon'? "),
        (["day, Hour"], ["Day", "hour"], "did you mean ['Day', 'hour'], each by itself? "),
        (["day,week"], ["Day", "hour"], ""),
        (["cuonty"], ["county", "country"], "did you mean 'county'? "),
        (["a", "Xx"], ["A", "xx"], "did you mean 'A' for 'a' and 'xx' for 'Xx'? "),
        (["a", "nothing like it"], ["A"], "did you mean 'A' for 'a'? "),
        (["2020"], [2020], "did you mean 2020? "),
        ([2020], ["2020"], "did you mean '2020'? "),
        (["weekday"], ["cost"], ""),
        ([["a"]], ["a"], ""),
        ([f"day {i}" for i in range(9)], ["day 1"], ""),  # a column of records, perhaps
        ([], ["a"], ""),
    ],
    ids=range(14),
)
def test_close_names_are_suggested(missing, known, hint):
    assert did_you_mean(missing, known) == hint


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (3, "an int"),
        ("a", "a str"),
        (None, "None"),
        ([], "a list"),
        (np.zeros(1), "an ndarray"),
        (pd.Series([1]), "a Series"),
        (pd.Index([1]), "an Index"),
        (np.uint8(1), "a uint8"),
        (xr.DataArray(1), "a DataArray"),
        (object(), "an object"),
        (dpt.Tree, "the class Tree"),
    ],
    ids=range(11),
)
def test_types_are_named_in_english(value, words):
    assert kind_of_object(value) == words


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        (None, "None"),
        (True, "True"),
        ("person", "'person'"),
        (0.5, "0.5"),
        (np.float64(0.5), "np.float64(0.5)"),
        (Fraction(1, 3), "Fraction(1, 3)"),
        (datetime.date(2024, 1, 2), "datetime.date(2024, 1, 2)"),
        (pd.Timestamp("2024-01-02"), "Timestamp('2024-01-02 00:00:00')"),
        ((18, 65), "(18, 65)"),
        (("a",), "('a',)"),
        ([], "[]"),
        (((0, 1), (2, 3)), "((0, 1), (2, 3))"),
        (["a", pd.Series(["Ann"])], "['a', a Series]"),
        (list(range(8)), "[0, 1, 2, 3, 4, 5, 6, 7]"),
        (list(range(9)), "a list"),
        ({"Ann": 3}, "a dict"),
        ({"Ann"}, "a set"),
        (np.array(["Ann"]), "an ndarray"),
        (Printing(), "a Printing"),
        (Unprintable(), "a Unprintable"),
        (dpt.Laplace, "the class Laplace"),
        (10**5000, "an int"),
        ("x" * 200, "'" + "x" * 79 + "..."),
    ],
    ids=range(23),
)
def test_arguments_are_quoted_if_they_are_plain_and_short(argument, text):
    assert quote(argument) == text


def test_a_list_that_contains_itself_is_quoted():
    endless = []
    endless.append(endless)
    assert len(quote(endless)) < 100


def test_an_entry_is_quoted_only_if_its_list_is_short():
    assert quote("Ann", of=["Ann", 3]) == "'Ann'"
    assert quote("Ann", of=["Ann"] * 9) == "a str"


def test_many_names_are_cut_short():
    assert listed("ab") == "['a', 'b']"
    assert listed(range(100)).endswith("7, ...]")


def test_columns_are_listed_if_they_are_few_and_are_an_attribute_always():
    few = ColumnsError("by", "names no columns", columns=["a", "b"], hint="check.")
    many = ColumnsError("by", "names no columns", columns=[f"{SECRET} {i}" for i in range(N)], hint="check.")
    assert "'a', 'b'." in str(few)
    assert not shows_secret(str(many)) and "`columns`" in str(many) and len(many.columns) == N


def test_the_first_line_outside_of_the_package_is_pointed_at():
    with pytest.warns(DPTreeWarning) as caught:
        warn("This is so.", hint="do something.", released=3)
    assert str(caught[0].message) == "This is so.\nHint: do something."
    assert caught[0].message.released == 3
    line = inspect.getsourcelines(test_the_first_line_outside_of_the_package_is_pointed_at)[1] + 2
    assert (caught[0].filename, caught[0].lineno) == (__file__, line)


def test_a_script_is_shown_its_own_line(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\nimport pandas as pd\nimport pandas_dptree\n"
        "frame, rng = pd.DataFrame({'state': ['ca'] * 9}), np.random.default_rng(0)\n"
        "frame.dp.tree_counts('state', epsilon=1.0, domain=['CA'], rng=rng)\n"
    )
    printed = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(Path(dpt.__file__).parents[1])},
    ).stderr  # fmt: skip
    assert printed.startswith(f"{script}:5: DPTreeWarning: {EMPTY}: the total of 'count' is ")


def test_what_a_terminal_would_obey_is_escaped_and_nothing_else():
    from pandas_dptree import verify  # which shares no code with the package
    from pandas_dptree.errors import visible

    characters = [
        chr(each)
        for each in [*range(0x3100), *range(0x6F00, 0x6F30), *range(0xD7F0, 0xE010), *range(0xFE00, 0xFFFF)]
    ]
    text = "".join(characters)
    assert visible(text) == verify.visible(text) == "".join(map(visible, characters))
    assert visible(text).isprintable() and visible(text).encode()
    kept = "".join(each for each in characters if each.isprintable())
    assert visible(kept) == kept and {*"aé漢א ☃\\'"} <= {*kept}
    assert not {*"\x1b\x07\x9b\r\b\x00\x7f\u200e\u202a\u202e\u2066\u2069\u061c\u2028\ud800\ufeff"} & {*kept}
    assert visible("a\nb\rc") == r"a\nb\rc" and visible("a\nb\rc", lines=True) == "a\nb\\rc"

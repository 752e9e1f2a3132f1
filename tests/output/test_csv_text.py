"""CSV in which an empty text is not a missing value."""

import csv
import importlib.util
import io

import hypothesis.strategies as st
import pandas as pd
import pytest
from hypothesis import given

from pandas_dptree.output.csv_text import join_columns, split_columns, split_in_arrow
from tests.helpers_cases import each

ODD = st.sampled_from(
    ["", ",", '"', '""', "\n", "\r", "\r\n", ' "', 'a","b', '\n"",', "é", "😀", "\x00", " "]
)
CELLS = st.one_of(st.none(), ODD, st.text(max_size=4), st.lists(ODD, max_size=4).map("".join)).filter(
    lambda cell: cell is None or cell.isascii() or not any("\ud800" <= each <= "\udfff" for each in cell)
)


@st.composite
def tables(draw):
    n_columns, n_rows = draw(st.integers(1, 4)), draw(st.integers(0, 5))
    rows = st.lists(CELLS, min_size=n_rows, max_size=n_rows)
    return [draw(CELLS) or "" for _ in range(n_columns)], [draw(rows) for _ in range(n_columns)]


@given(table=tables())
def test_any_text_is_read_back(table):
    names, columns = table
    text = join_columns(names, columns)
    expected = list(zip(names, columns, strict=True))
    assert list(split_columns(text, len(names))) == expected
    if importlib.util.find_spec("pyarrow") is not None:
        split = split_in_arrow(text.encode(), len(names))
        assert [(name, cells.to_pylist()) for name, cells in split] == expected


@given(table=tables())
def test_other_readers_read_the_same_but_for_missing_values(table):
    names, columns = table
    rows = list(csv.reader(io.StringIO(join_columns(names, columns), newline="")))
    expected = [list(names), *([cell or "" for cell in row] for row in zip(*columns, strict=True))]
    assert [row or [""] for row in rows] == expected


def test_lines_are_those_of_pandas():
    frame = pd.DataFrame({"a": ["x", 'q"q', "c,c", "l\nl", None], "b": ["1", "2", "3", None, "5"]})
    cells = [[None if pd.isna(cell) else cell for cell in frame[name]] for name in frame]
    assert join_columns(list(frame), cells) == frame.to_csv(index=False, lineterminator="\n")


@each("text", ["", "a,b", "a,b\n1\n", "a,b\n1,2,3\n", "a\nb\nc,d\n", 'a,b\n"1,2\n', "a,b\n1,2"])
def test_other_shapes_are_refused(text):
    with pytest.raises(ValueError):
        list(split_columns(text, 2))
    if importlib.util.find_spec("pyarrow") is not None and text.endswith("\n"):
        with pytest.raises(ValueError):
            list(split_in_arrow(text.encode(), 2))

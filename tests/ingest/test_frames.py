"""Frames that are opened and read: odd ones, bad ones and lazy ones."""

import pandas as pd
import pytest

from pandas_dptree.errors import ArgumentError, ColumnsError
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.ingest.contributions import leaf_totals
from pandas_dptree.privacy.quantity import COUNT, Quantity
from tests.helpers_cases import each
from tests.helpers_ingest import counted, summed

polars = pytest.importorskip("polars")


def test_odd_frames():
    domain = Domain.from_frame(pd.DataFrame({"k": ["a"]}), by=["k"])
    frame = pd.DataFrame([["a", 1, 2], ["a", 3, 4]], columns=["k", "twice", "twice"], index=[7, 7])
    assert counted(frame, domain).tolist() == [2]
    numbered = pd.DataFrame({0: ["a", "a"], 1: ["x", "y"]})
    assert counted(numbered, Domain.from_frame(numbered[:1], by=[0])).tolist() == [2]
    rows_and_keys = polars.DataFrame({"rows": ["a"], "key0": ["b"]})
    assert counted(
        rows_and_keys, Domain.from_frame(rows_and_keys.to_pandas(), by=["rows", "key0"])
    ).tolist() == [1]


@each(
    "frame, error, message",
    [
        (pd.DataFrame({"b": [1]}), ColumnsError, "lacks the columns: 'a'"),
        (polars.DataFrame({"b": [1]}), ColumnsError, "lacks the columns: 'a'"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ColumnsError, "several columns named: 'a'"),
        ([1, 2, 3], ArgumentError, "must be a dataframe, not a list"),
        (None, ArgumentError, "must be a dataframe, not None"),
    ],
)
def test_bad_frames(frame, error, message):
    domain = Domain.from_frame(pd.DataFrame({"a": [1]}), by=["a"])
    with pytest.raises(error, match=message):
        leaf_totals(frame, domain)


def test_odd_units_warn_of_nothing():
    domain = Domain.from_frame(pd.DataFrame({"k": ["a"]}), by=["k"])
    frame = pd.DataFrame({"k": ["a"] * 4, "unit": [(1, 2), "b", (0,), 7]})
    assert counted(frame, domain, privacy_unit="unit").tolist() == [4]


def test_a_lazy_frame_is_collected_once_and_only_where_needed():
    calls = []

    def received(column):
        calls.append(len(column))
        return column

    def never(column):
        raise AssertionError

    frame = polars.LazyFrame({"k": ["a", "b"], "u": [1, 1], "x": [1, 2]}).with_columns(
        polars.col("k").map_batches(received, return_dtype=polars.String),
        y=polars.col("k").map_batches(never, return_dtype=polars.String),
    )
    domain = Domain.from_frame(pd.DataFrame({"k": ["a", "b"]}), by=["k"])
    values = [Quantity.of("x", (0, 5), 1), COUNT]
    assert [s.tolist() for s in summed(frame, domain, values, privacy_unit="u", k=2)] == [[1, 2], [1, 1]]
    assert calls == [2]

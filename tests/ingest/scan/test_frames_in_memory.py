"""Frames of pandas and polars."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from pandas_dptree.errors import ColumnsError
from pandas_dptree.hierarchy.columns import kind_of
from pandas_dptree.ingest.frames import Records
from tests.helpers_ingest import ARROW, types_in

polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")


def read(frame, name, **options):
    return [each.column(name).tolist() for each in Records(frame, [name]).batches(**options)]


def test_columns_of_pandas_are_sliced_as_they_are():
    objects = pd.Series([1, "a", None, 1.5], dtype=object)
    kinds = pd.Categorical(["x", "y", "x", None])
    frame = pd.DataFrame({0: objects, "c": kinds, ("a", "b"): [1, 2, 3, 4]})
    frame.index = [7, 7, 8, 8]
    records = Records(frame, [0, "c", ("a", "b"), 0])
    assert records.columns == [0, "c", ("a", "b")]
    assert (records.n_rows, records.in_memory, records.read_once, records.cluster) == (4, True, False, None)
    first, second = records.batches(rows=3)
    assert len(first) == len(second) == 2
    assert first.column(0).tolist() == [1, "a"] and second.column(0).tolist() == [None, 1.5]
    assert first.column(0).dtype == second.column(0).dtype == np.dtype(object)
    assert second.column("c").cat.categories.tolist() == ["x", "y"]
    assert second.column(("a", "b")).tolist() == [3, 4]
    assert np.shares_memory(frame[("a", "b")].to_numpy(), first.column(("a", "b")).to_numpy())
    assert records.types([0, "c"]) == {0: np.dtype(object), "c": frame["c"].dtype}


def test_other_columns_may_have_one_name():
    frame = pd.DataFrame([[1, 2, 3]], columns=["a", "twice", "twice"])
    assert read(frame, "a") == [[1]]
    with pytest.raises(ColumnsError, match="several columns named: 'twice'"):
        Records(frame, ["a", "twice"])
    nested = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")]))
    assert read(nested, ("a", "y")) == [[2]]
    with pytest.raises(ColumnsError, match="whole tuple"):
        Records(nested, ["a"])


@pytest.mark.parametrize("dtype", [object, "Int64", "float64", "datetime64[ns]", "category"])
def test_a_frame_without_rows_has_no_batches(dtype):
    assert read(pd.DataFrame({"a": pd.Series([], dtype=dtype)}), "a") == []


LAZY = {
    "eager": lambda frame: frame,
    "lazy": lambda frame: frame.lazy(),
    "lazy of chunks": lambda frame: polars.concat([frame.lazy(), frame.lazy()[:0]], rechunk=False),
}


@pytest.mark.parametrize("lazy", LAZY)
def test_frames_of_polars_are_cut(lazy):
    frame = LAZY[lazy](polars.DataFrame({"a": range(10), "b": "x"}))
    found = read(frame, "a", rows=4)
    assert [each for part in found for each in part] == list(range(10))
    assert max(map(len, found)) <= 4
    assert Records(frame, ["a"]).n_rows == (10 if lazy == "eager" else None)
    assert read(LAZY[lazy](polars.DataFrame({"a": []})), "a") == []


@pytest.mark.parametrize("kind", types_in("polars"), ids=str)
def test_batches_of_a_lazy_frame_have_the_types_of_the_frame(kind):
    frame = polars.from_arrow(pyarrow.table({"a": pyarrow.array(ARROW[kind] * 3, type=kind)}))
    [expected] = Records(frame, ["a"]).batches()
    for rows in (100, 2):
        parts = [each.column("a") for each in Records(frame.lazy(), ["a"]).batches(rows)]
        assert {part.dtype for part in parts} == {expected.column("a").dtype}
        pd.testing.assert_series_equal(pd.concat(parts, ignore_index=True), expected.column("a"))
    assert kind_of(Records(frame.lazy(), ["a"]).types(["a"])["a"]) == kind_of(
        Records(frame, ["a"]).types(["a"])["a"]
    )


@pytest.mark.parametrize(
    "column",
    [
        polars.Series([1, "a", None], dtype=polars.Object),
        polars.Series([2**100, None, -1], dtype=polars.Int128),
        polars.Series(["x", None, "y"], dtype=polars.Categorical),
        polars.Series(["x", None, "y"], dtype=polars.Enum(["y", "x"])),
        polars.Series([Decimal("0.10"), None, Decimal(3)], dtype=polars.Decimal(10, 2)),
        polars.Series([b"a", None, b""]),
        polars.Series([None, None, None], dtype=polars.Null),
    ],
    ids=lambda column: str(column.dtype),
)
def test_odd_types_of_polars(column):
    frame = column.alias("a").to_frame()
    [expected] = read(frame, "a")
    assert read(frame.lazy(), "a") == [expected]
    assert read(frame.lazy().with_columns(polars.lit(1).alias("b")), "a", rows=2) in (
        [expected[:1], expected[1:]],
        [expected[:2], expected[2:]],
    )


def test_nested_columns_of_polars():
    frame = polars.DataFrame({"a": [[1], None], "b": [{"x": 1}, None], "o": [None, None]})
    for name in ("a", "b"):
        [[nested, missing]] = read(frame.lazy(), name)
        assert type(nested) is object and missing is None


@pytest.mark.parametrize("streams", [True, False])
def test_a_query_is_run_once_and_when_it_is_needed(streams, monkeypatch):
    if not streams:  # as before polars 1.34
        monkeypatch.delattr(polars.LazyFrame, "collect_batches", raising=False)
    calls = []

    def received(column):
        calls.append(len(column))
        return column

    def never(column):
        raise AssertionError

    frame = polars.LazyFrame({"k": ["a", "b"], "x": [1, 2]}).with_columns(
        polars.col("k").map_batches(received, return_dtype=polars.String),
        y=polars.col("k").map_batches(never, return_dtype=polars.String),
    )
    records = Records(frame, ["k", "x"])
    records.types(["k"])
    batches = records.batches()
    assert calls == []
    assert [each.column("k").tolist() for each in batches] == [["a", "b"]]
    assert sum(calls) == 2


def test_a_source_of_polars_is_scanned_once_and_without_other_columns():
    plugins = pytest.importorskip("polars.io.plugins")
    scans = []

    def scan(with_columns, predicate, n_rows, batch_size):
        scans.append(sorted(with_columns))
        for start in range(0, 100, 10):
            part = polars.DataFrame({"a": range(start, start + 10), "b": 0, "c": [[1]] * 10})
            yield part.select(with_columns)

    schema = {"a": polars.Int64, "b": polars.Int64, "c": polars.List(polars.Int64)}
    frame = plugins.register_io_source(scan, schema=schema)
    found = read(frame, "a", rows=30)
    assert sorted(each for part in found for each in part) == list(range(100))
    assert scans == [["a"]]


def test_reading_can_stop_early():
    frame = polars.LazyFrame({"a": range(10**6)})
    batches = Records(frame, ["a"]).batches(rows=1000)
    assert len(next(batches)) <= 1000
    batches.close()

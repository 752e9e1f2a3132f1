"""Every engine hands over the same values, whatever its batches are."""

import importlib
import traceback
from collections import Counter

import narwhals as nw
import pandas as pd
import pytest

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.columns import kind_of
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.values import canonical_codes
from pandas_dptree.ingest.contributions import leaf_totals
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.safe_errors import silence
from tests import helpers_clusters
from tests.helpers_engines import COLUMNS, ENGINES, Exported, files, in_pandas, in_spark, odd_records

pyarrow, polars = pytest.importorskip("pyarrow"), pytest.importorskip("polars")

WRAPPED = ["polars", "polars lazy", "pyarrow", "duckdb", "dask"]


@pytest.fixture(scope="module")
def table():
    return odd_records()


def rows_of(records, rows):
    """Count the rows of all batches, as canonical forms; no batch may be empty, or longer than `rows`."""
    counted = Counter()
    with silence():  # as all that reads records: engines may warn of anything
        for batch in records.batches(rows):
            assert 0 < len(batch) <= rows
            columns = []
            for name in records.columns:
                codes, keys = canonical_codes(batch.column(name))
                columns.append([None if code < 0 else keys[code] for code in codes.tolist()])
                assert len(codes) == len(batch)
            counted.update(zip(*columns, strict=True))
    return counted


@pytest.fixture(scope="module")
def expected(table):
    return rows_of(Records(in_pandas(table), COLUMNS), len(table))


@pytest.mark.parametrize("rows", [pytest.param(2**20, marks=pytest.mark.slow), 1000])
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_hands_over_the_same_values(engine, rows, table, expected, tmp_path):
    frame = ENGINES[engine](table, tmp_path / "files")
    assert rows_of(Records(frame, COLUMNS), rows) == expected


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
def test_spark_hands_over_the_same_values(spark, table, expected, tmp_path):
    assert helpers_clusters.rows_of(in_spark(spark, table, tmp_path / "files"), COLUMNS) == expected


@pytest.mark.filterwarnings("ignore:Dask support is moving:FutureWarning")
@pytest.mark.parametrize("engine", WRAPPED)
def test_frames_of_narwhals_are_what_they_hold(engine, table, expected, tmp_path):
    frame = nw.from_native(ENGINES[engine](table, tmp_path / "files"))
    assert rows_of(Records(frame, COLUMNS), 5000) == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_types_are_of_the_same_kind(engine, table, tmp_path):
    """A type may leave open what the values are, since an object may be anything."""
    records = Records(ENGINES[engine](table, tmp_path / "files"), COLUMNS)
    known = {name: kind_of(dtype) for name, dtype in Records(table, COLUMNS).types(COLUMNS).items()}
    kinds = {name: kind_of(dtype) for name, dtype in records.types(COLUMNS).items()}
    assert {name: kind for name, kind in kinds.items() if kind not in (known[name], "objects")} == {}
    if "objects" not in engine and "pandas" not in engine and "dask" not in engine:
        assert kinds == known


@pytest.mark.nightly
@pytest.mark.parametrize("engine", ENGINES)
def test_many_rows(engine, tmp_path):
    table = odd_records(600_000)
    names = ["state", "county", "city", "unit", "number"]
    frame = ENGINES[engine](table, tmp_path / "files")
    assert rows_of(Records(frame, names), 2**17) == rows_of(Records(table, names), 2**20)


PLANTED = "planted-value-4711"


def _raise(*_):
    raise ValueError(PLANTED)


def _broken_reader(folder):
    table = pyarrow.table({"key": [PLANTED]})

    def batches():
        yield table.to_batches()[0]
        _raise()

    return pyarrow.RecordBatchReader.from_batches(table.schema, batches())


def _broken_dataset(folder):
    dataset = importlib.import_module("pyarrow.dataset")
    table = pyarrow.table({"key": [PLANTED]})
    return dataset.dataset(files(table, folder)).filter(dataset.field("key").cast(pyarrow.int64()) > 0)


def _broken_dask(folder):
    dataframe = pytest.importorskip("dask.dataframe")
    frame = dataframe.from_pandas(pd.DataFrame({"key": [PLANTED, 1]}, dtype=object), npartitions=1)
    return frame[frame["key"] > 0]


BROKEN = {
    "polars": lambda _: polars.LazyFrame({"key": [PLANTED]}).select(polars.col("key").cast(polars.Int64)),
    "polars with a function": lambda _: polars.LazyFrame({"key": [PLANTED]}).select(
        polars.col("key").map_batches(_raise, return_dtype=polars.Int64)
    ),
    "reader": _broken_reader,
    "dataset": _broken_dataset,
    "duckdb": lambda _: pytest.importorskip("duckdb").sql(f"select cast('{PLANTED}' as bigint) as key"),
    "duckdb of a broken reader": lambda folder: pytest.importorskip("duckdb").from_arrow(
        _broken_reader(folder)
    ),
    "stream": lambda folder: Exported(_broken_reader(folder)),
    "dask": _broken_dask,
}


@pytest.mark.parametrize("engine", BROKEN)
def test_no_error_of_an_engine_is_repeated(engine, tmp_path, caplog, capfd, recwarn):
    frame = BROKEN[engine](tmp_path / "files")
    text = kind_of(Records(frame, ["key"]).types(["key"])["key"]) == "text"
    domain = Domain.from_frame(pd.DataFrame({"key": ["a" if text else 1]}), by=["key"])
    with pytest.raises(ArgumentError, match="cannot be counted by its columns") as caught:
        leaf_totals(frame, domain)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    said = "".join(traceback.format_exception(caught.value)) + caplog.text + "".join(capfd.readouterr())
    assert PLANTED not in said + str([each.message for each in recwarn])

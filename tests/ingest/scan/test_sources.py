"""Every engine hands over the same values, whatever its batches are."""

from collections import Counter

import narwhals as nw
import pytest

from pandas_dptree.hierarchy.columns import kind_of
from pandas_dptree.hierarchy.values import canonical_codes
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.safe_errors import silence
from tests.helpers_engines import COLUMNS, ENGINES, in_pandas, in_spark, odd_records

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


@pytest.mark.parametrize("rows", [2**20, 1000])
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_hands_over_the_same_values(engine, rows, table, expected, tmp_path):
    frame = ENGINES[engine](table, tmp_path / "files")
    assert rows_of(Records(frame, COLUMNS), rows) == expected


def test_spark_hands_over_the_same_values(spark, table, expected, tmp_path):
    frame = in_spark(spark, table, tmp_path / "files")
    assert rows_of(Records(frame, COLUMNS), 1000) == expected


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


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_many_rows(engine, tmp_path):
    table = odd_records(600_000)
    names = ["state", "county", "city", "unit", "number"]
    frame = ENGINES[engine](table, tmp_path / "files")
    assert rows_of(Records(frame, names), 2**17) == rows_of(Records(table, names), 2**20)

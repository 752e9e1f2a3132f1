"""The same odd records in every engine."""

import datetime
import importlib
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

KEYS = ["state", "county", "city"]
COLUMNS = [*KEYS, "unit", "amount", "ip", "number", "day", "at", "kind", "flag", "a.b"]

_STATES = ["State 01", "state 01", "State 01 ", None, "Nowhere", "E\u0301", "\u00c9"]
"""Keys that almost are keys: other cases, a trailing space, another normal form."""

_MIDNIGHT = datetime.datetime(2020, 1, 1)


def odd_records(n=3000):
    """Make a pyarrow.Table of regular records, and as many whose values almost are those of others.

    The column "never" is nested. It must not be read.
    """
    random = np.random.default_rng(0)
    city = (60 * random.random(n) ** 3).astype(int)
    regular = {
        "state": [f"State {each // 20:02}" for each in city],
        "county": [f"County {each // 5:04}" for each in city],
        "city": [f"City {each:05}" for each in city],
        "unit": random.integers(0, n // 3, n).tolist(),
        "amount": np.round(np.exp(6 * random.random(n)), 2).tolist(),
    }
    odd = range(n)
    almost = {
        "state": [_STATES[i % 8] if i % 8 < 7 else f"junk {i}" for i in odd],
        "county": [None if i % 8 in (4, 5, 6) else "County 0000" for i in odd],
        "city": [None if i % 8 in (4, 5, 6) else "City 00000" + "\0" * (i % 16 == 0) for i in odd],
        "unit": [None if i % 5 == 0 else i % 1000 for i in odd],
        "amount": [[0.0, -0.0, float("nan"), None, float("inf"), -1e300, 2.5, 0.1][i % 8] for i in odd],
    }
    rows = range(2 * n)
    columns = {name: regular[name] + almost[name] for name in regular}
    columns |= {
        "ip": [(i * 2654435761) % 2**32 for i in rows],
        "number": [None if i % 9 == 0 else 2**53 + i % 4 for i in rows],
        "day": [None if i % 11 == 0 else (_MIDNIGHT + datetime.timedelta(i % 700)).date() for i in rows],
        "at": [None if i % 7 == 0 else _MIDNIGHT + datetime.timedelta(hours=i % 9999) for i in rows],
        "kind": ["a", "b", None, "A"] * (n // 2),
        "flag": [True, False, None] * (2 * n // 3) + [True] * (2 * n % 3),
        "a.b": [i % 3 for i in rows],
        "never": [[{"x": i}] for i in rows],
    }
    types = {
        "ip": pyarrow.uint32(), "number": pyarrow.int64(), "unit": pyarrow.int64(),
        "day": pyarrow.date32(), "at": pyarrow.timestamp("us", "UTC"),
        "kind": pyarrow.dictionary(pyarrow.int8(), pyarrow.string()), "flag": pyarrow.bool_(),
    }  # fmt: skip
    shuffled = pyarrow.table(
        {name: pyarrow.array(values, type=types.get(name)) for name, values in columns.items()}
    ).take(random.permutation(2 * n))
    ends = [0, 1, 2 * n // 3, 2 * n // 3, 2 * n - 5, 2 * n]
    return pyarrow.concat_tables(shuffled.slice(start, stop - start) for start, stop in pairwise(ends))


def in_pandas(table):
    """Convert a table to pandas' own types, without changing a value."""
    plain = {
        **{kind: pd.Int64Dtype() for kind in [pyarrow.int64()]},
        pyarrow.uint32(): pd.UInt32Dtype(),
        pyarrow.bool_(): pd.BooleanDtype(),
    }
    return table.to_pandas(types_mapper=plain.get)


def files(table, folder, n_files=3):
    """Write a table to some files of Parquet, and return their folder."""
    folder.mkdir(exist_ok=True)
    rows = -(-len(table) // n_files)
    for place in range(n_files):
        part = table.slice(place * rows, rows)
        parquet.write_table(part, folder / f"{place}.parquet", row_group_size=max(rows // 2, 1))
    return folder


def _polars(table):
    return importlib.import_module("polars").from_arrow(table)


def _duckdb():
    """Connect to duckdb. Before version 2.0, a connection that nobody holds is closed."""
    _connections.append(pytest.importorskip("duckdb").connect())
    return _connections[-1]


_connections = []


def _dask():
    return pytest.importorskip("dask.dataframe")


class Exported:
    """What another library exports."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


ENGINES = {
    "pandas": lambda table, folder: in_pandas(table),
    "pandas of objects": lambda table, folder: in_pandas(table).astype(object),
    "pandas in Arrow": lambda table, folder: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda table, folder: _polars(table),
    "polars lazy": lambda table, folder: _polars(table).lazy(),
    "polars scan": lambda table, folder: importlib.import_module("polars").scan_parquet(files(table, folder)),
    "pyarrow": lambda table, folder: table,
    "pyarrow batch": lambda table, folder: table.combine_chunks().to_batches()[0],
    "pyarrow reader": lambda table, folder: table.to_reader(max_chunksize=7),
    "pyarrow dataset": lambda table, folder: importlib.import_module("pyarrow.dataset").dataset(
        files(table, folder)
    ),
    "stream": lambda table, folder: Exported(table),
    "duckdb": lambda table, folder: _duckdb().from_arrow(table),
    "duckdb scan": lambda table, folder: _duckdb().from_parquet(f"{files(table, folder)}/*.parquet"),
    "dask": lambda table, folder: _dask().from_pandas(in_pandas(table), npartitions=3),
    "dask of objects": lambda table, folder: _dask().from_pandas(
        in_pandas(table.select([name for name in table.column_names if name != "never"])).astype(object),
        npartitions=3,
    ),
    "dask scan": lambda table, folder: _dask().read_parquet(files(table, folder)),
}
"""Make a frame of each engine from a pyarrow.Table; some write files into an empty folder. All but Spark."""


def in_spark(session, table, folder):
    """Make a frame of Spark from a table."""
    return session.read.parquet(str(files(table, folder)))

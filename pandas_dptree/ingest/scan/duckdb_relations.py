"""Batches of relations of duckdb. Secret: nothing here may leave."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import closing
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd

from pandas_dptree.hierarchy.dataframe_libraries import is_instance
from pandas_dptree.ingest.scan.base import Source, needed
from pandas_dptree.ingest.scan.batches import Batch, arrow_batches
from pandas_dptree.ingest.scan.duckdb_readers import check_readers

__all__ = ["DuckdbRelation"]

READER_ROWS = 2**17
"""How many rows duckdb hands over at a time."""

_TYPES = {
    "boolean": "bool",
    **{f"{sign}{name}": f"{sign}int{bits}" for sign in ("", "u") for name, bits in
       (("tinyint", 8), ("smallint", 16), ("integer", 32), ("bigint", 64))},
    "float": "float32",
    "double": "float64",
    "varchar": "string",
    "enum": "string",
    "blob": "binary",
    "date": "date32",
    "time": "time64[us]",
    "timestamp": "timestamp[us]",
    "timestamp_s": "timestamp[s]",
    "timestamp_ms": "timestamp[ms]",
    "timestamp_ns": "timestamp[ns]",
}  # fmt: skip
"""The Arrow type, as pyarrow.type_for_alias names it, for each type of duckdb; text for an enum."""


class DuckdbRelation(Source):
    """A relation of duckdb. It is a query, which duckdb runs again at every call."""

    @staticmethod
    def holds(frame: Any) -> bool:
        """Whether it is one."""
        modules = ("duckdb.duckdb", "duckdb", "_duckdb", "duckdb._relation")
        return is_instance(frame, *(f"{module}.DuckDBPyRelation" for module in modules))

    def names(self) -> list[Hashable]:
        """List the names of the columns, and check how the relation reads them."""
        check_readers(self.frame, self.argument)
        return list(self.frame.columns)

    def types(self, columns: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Return types of the same kinds as those of the columns, without asking duckdb for any row."""
        kinds = dict(zip(self.frame.columns, self.frame.types, strict=True))
        return {name: _arrow_type(kinds[name].id) for name in columns}

    def batches(self, columns: Sequence[Hashable], rows: int) -> Iterator[Batch]:
        """Run the query for these columns. Names of duckdb may differ in case alone, so they are numbered."""
        needed("pyarrow", of="relations of duckdb")
        names = list(self.frame.columns)
        listed = ", ".join(f'#{names.index(name) + 1} AS "c{place}"' for place, name in enumerate(columns))
        query = self.frame.project(listed)
        # Older versions lack the first name, and newer ones may drop the second.
        read = getattr(query, "to_arrow_reader", None) or query.fetch_arrow_reader
        with closing(read(min(rows, READER_ROWS))) as reader:  # open, it would block the connection
            named = (batch.rename_columns([str(name) for name in columns]) for batch in reader)
            yield from arrow_batches(named, rows)


def _arrow_type(name: str) -> Any:
    """Return a type of the same kind of values as a type of duckdb; objects for other kinds."""
    pyarrow = needed("pyarrow", of="relations of duckdb")
    if name in _TYPES:
        return pd.ArrowDtype(pyarrow.type_for_alias(_TYPES[name]))
    if name in ("hugeint", "uhugeint"):  # more than 64 bits
        return nw.Int128()
    if name == "decimal":
        return pd.ArrowDtype(pyarrow.decimal128(38))
    if name == "timestamp with time zone":
        return pd.ArrowDtype(pyarrow.timestamp("us", "UTC"))
    if name in ("list", "array", "struct", "map", "union"):
        return pd.ArrowDtype(pyarrow.list_(pyarrow.null()))
    return np.dtype(object)

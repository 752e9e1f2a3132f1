"""Reading of a table in a file of duckdb. Secret: nothing here may leave."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final

import pandas as pd

from pandas_dptree.errors import ArgumentError, MissingExtraError, listed, quote
from pandas_dptree.ingest.frames import check_columns

__all__ = ["open_table"]

_ROWS: Final = 2**17
"""How many rows duckdb hands over at a time."""

_TABLES: Final = """
select schema_name, table_name from duckdb_tables() where not internal and database_name = current_database()
union all
select schema_name, view_name from duckdb_views() where not internal and database_name = current_database()
order by all
"""


def open_table(
    path: Path, table: str | None, columns: Sequence[str]
) -> tuple[Any, Callable[[], Iterator[Any]]]:
    """Find columns of a table or view of a database: their schema, and a function that reads them.

    The database is open, for reading alone, while this function runs, and while that one does.
    """
    for package in ("pyarrow", "duckdb"):
        try:
            importlib.import_module(package)
        except ImportError:
            raise MissingExtraError("Reading DuckDB", package=package) from None
    with path.open("rb") as stream:
        is_database = stream.read(12)[8:] == b"DUCK"
    if not is_database:  # duckdb would read it as whatever it looks like
        raise ArgumentError(
            "records", f"is no database of duckdb: {str(path)!r}.", hint="write it with duckdb."
        )
    with closing(_connected(path)) as connection:
        source = _found(connection.sql(_TABLES).fetchall(), table)
        names = connection.sql(f"select * from {source} limit 0").columns
        check_columns(pd.DataFrame(columns=names), columns, argument="records", public=True)
        query = f"select {', '.join(map(_quoted, columns))} from {source}"
        schema = connection.sql(f"{query} limit 0").arrow().schema
    return schema, partial(_read, path, query)


def _read(path: Path, query: str) -> Iterator[Any]:
    """Run a query, and yield the batches of its result."""
    with closing(_connected(path)) as connection:
        relation = connection.sql(query)
        # Older versions lack the first name, and newer ones may drop the second.
        read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
        with closing(read(_ROWS)) as reader:
            yield from reader


def _connected(path: Path) -> Any:
    """Open a database for reading. duckdb must not fetch anything from the network for that."""
    duckdb = importlib.import_module("duckdb")
    try:
        return duckdb.connect(
            str(path.resolve()), read_only=True, config={"autoinstall_known_extensions": "false"}
        )
    except duckdb.IOException as error:
        is_locked = "lock" in str(error).lower()
    if is_locked:
        raise ArgumentError(
            "records",
            f"cannot be read from {str(path)!r}: another process has locked the database.",
            hint="end the process that writes to it, or read a copy of the file.",
        )
    raise ArgumentError(
        "records",
        f"cannot be read from {str(path)!r}.",
        hint="check that this version of duckdb can open it.",
    )


def _found(known: Sequence[tuple[str, str]], table: str | None) -> str:
    """Return a table as SQL writes it, by its name, or its schema and name."""
    spelled = {pair: f"{pair[0]}.{pair[1]}" for pair in known}
    shown = listed(name if schema == "main" else spelled[schema, name] for schema, name in known)
    if table is None:
        raise ArgumentError(
            "table", "must be given for a database.", hint=f"the database has the tables {shown}."
        )
    in_sql = {pair: ".".join(map(_quoted, pair)) for pair in known}
    found = [pair for pair in known if table in (pair[1], spelled[pair], in_sql[pair])]
    if len(found) > 1:
        raise ArgumentError(
            "table",
            f"means several tables: {quote(table)}.",
            hint=f"name one of {listed(in_sql[pair] for pair in found)}.",
        )
    if not found:
        raise ArgumentError(
            "table", f"is not in the database: {quote(table)}.", hint=f"it has the tables {shown}."
        )
    return in_sql[found[0]]


def _quoted(name: str) -> str:
    """Quote a name for SQL."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'

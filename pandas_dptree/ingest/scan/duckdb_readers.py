"""Check that a relation of duckdb takes no types from values. Only plans and schemas are read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from pandas_dptree.errors import quote
from pandas_dptree.ingest.safe_errors import ReadingError

__all__ = ["check_readers"]

_PARQUET = frozenset({"parquet_scan", "read_parquet"})

_ACCEPTED = _PARQUET | frozenset(
    "seq_scan arrow_scan python_arrow_scan range generate_series unnest "
    "chunk_get cte_scan delim_get dummy_scan empty_result".split()
)
"""Readers of duckdb in a plan, by their names in lower case: of tables, Arrow, Parquet, lists, constants."""

_NAME = "pandas_dptree_checks_this_relation"

_MACROS = "SELECT 1 FROM duckdb_functions() WHERE function_type LIKE '%macro' AND NOT internal"

_OF_A_FILE = "name, type, type_length, num_children, converted_type, scale, precision, logical_type"
"""What parquet_schema says of a column, but for whether it has missing values, and its number."""


def check_readers(relation: Any, argument: str) -> None:
    """Refuse a relation that reads by anything but readers that are known to take no types from values.

    **Privacy.** duckdb guesses the types of text files, of JSON, and of objects of pandas from some values,
    and converts files of Parquet to the types of the first one, which fails for some values. What is refused
    follows from the plan before it is optimized, and from schemas: statistics of values change neither.
    """
    try:
        _ask(relation, "SELECT 1")
    except Exception as error:
        if type(error).__name__ != "ConnectionException":
            raise
        closed = True
    else:
        closed = False
    if closed:
        raise ReadingError(
            argument,
            "is a relation of duckdb whose connection is closed.",
            hint="keep the connection in a variable until the release is made.",
        )
    try:
        _check(relation, argument)
    finally:
        _ask(relation, f"DROP VIEW IF EXISTS {_NAME}")


def _check(relation: Any, argument: str) -> None:
    """Check what `check_readers` checks."""
    scans = _scans(relation)
    for reader, _ in scans:
        if reader not in _ACCEPTED:
            raise ReadingError(
                argument,
                f"is a relation of duckdb that reads by {quote(reader)}, in which one record may decide how "
                "others are read.",
                hint="pass a frame of pandas itself, or query pyarrow.Table.from_pandas(frame); convert "
                "files to Parquet, with types that you state.",
            )
    files = [of_one for reader, of_one in scans if reader in _PARQUET]
    found: list[str | None] = []
    if None in files and not _ask(relation, _MACROS):  # which could hide files that no query names
        with suppress(Exception):  # what cannot be listed is refused
            found = list(_named_files(relation, relation.sql_query()))
    for each in found if len(found) >= len(files) else files:
        if each is None:
            raise ReadingError(
                argument,
                "is a relation of duckdb over files of Parquet that cannot be listed.",
                hint="name them in the query itself, as in duckdb.read_parquet(files), on a connection "
                "without macros.",
            )
        _check_files(relation, each, argument)


def _ask(relation: Any, query: str) -> list[Any]:
    """Run a query, in which `_NAME` is a view of the relation, on the connection of the relation."""
    answer = relation.query(_NAME, query)
    return [] if answer is None else list(answer.fetchall())


def _scans(relation: Any) -> list[tuple[str, str | None]]:
    """List the readers in the plan of a relation, and the files of each, if known, as `_listed` does."""
    every = f"SELECT * FROM {_NAME}"
    [[answer]] = _ask(relation, f"SELECT json_serialize_plan({_text(every)})") or [['{"error": true}']]
    if not (plan := json.loads(answer))["error"]:  # before version 2.0
        gets = [each for each in _walk(plan) if each.get("type") == "LOGICAL_GET"]
        return [(each["name"], _listed(each.get("function_data", {}).get("files"))) for each in gets]
    [[before]] = _ask(relation, "SELECT current_setting('explain_output')")
    _ask(relation, "SET explain_output = 'all'")
    try:
        rows = _ask(relation, f"EXPLAIN (FORMAT json) {every}")
    finally:
        _ask(relation, f"SET explain_output = {_text(before)}")
    if not rows:  # before version 2.0, a plan with such a reader has no other form than text
        known = ("pandas_scan", "read_csv", "read_csv_auto")
        text = relation.explain().lower()
        return [(next((name for name in known if name in text), "another reader"), None)]
    nodes = [each for each in _walk(json.loads(rows[0][1])) if "children" in each]
    return [
        (each["name"].lower(), None)
        for each in nodes
        if not each["children"] or "Filters" in each["extra_info"]
    ]


def _named_files(relation: Any, query: str) -> Iterator[str]:
    """List the files of Parquet that a query names, or the views in it, each as SQL of what is read."""
    [[answer]] = _ask(relation, f"SELECT json_serialize_sql({_text(query)})")
    if json.loads(answer)["error"] and " AS " in query:  # of a view: what creates it, then its query
        yield from _named_files(relation, query.partition(" AS ")[2])
        return
    [[template]] = _ask(relation, "SELECT json_serialize_sql('SELECT * FROM parquet_schema(0)')")
    views = _ask(relation, "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal")
    for each in _walk(json.loads(answer)):
        if each.get("type") == "TABLE_FUNCTION" and each["function"]["function_name"].lower() in _PARQUET:
            schema = json.loads(template)
            [node] = [node for node in _walk(schema) if node.get("type") == "TABLE_FUNCTION"]
            node["function"]["arguments"][0] = each["function"]["arguments"][0]
            yield f"json_execute_serialized_sql({_text(json.dumps(schema))})"
        if each.get("type") == "BASE_TABLE":
            name = each["table_name"]
            for created in [sql for view, sql in views if view == name]:
                yield from _named_files(relation, created)
            if name.lower().endswith(".parquet"):
                yield f"parquet_schema({_text(name)})"


def _check_files(relation: Any, listed: str, argument: str) -> None:
    """Check that no column has different types in different files."""
    columns: dict[str, dict[str, set[Any]]] = {}
    for file, name, *kind in _ask(relation, f"SELECT file_name, {_OF_A_FILE} FROM {listed}"):
        columns.setdefault(name, {}).setdefault(file, set()).add(tuple(map(str, kind)))
    for name, kinds in list(columns.items())[1:]:  # the first one is the root
        if any(kind != next(iter(kinds.values())) for kind in kinds.values()):
            raise ReadingError(
                argument,
                f"is a relation of duckdb over files in which {quote(name)} is of different types.",
                hint="write the column with one type in all files.",
            )


def _listed(files: list[str] | None) -> str | None:
    """Write a list of files as the call that reads their schemas."""
    return None if files is None else f"parquet_schema([{', '.join(map(_text, files))}])"


def _text(value: str) -> str:
    """Write a text as SQL does."""
    return "'" + value.replace("'", "''") + "'"


def _walk(value: Any) -> Iterator[dict[str, Any]]:
    """Yield all dictionaries in what was read from JSON."""
    if isinstance(value, dict):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _walk(each)

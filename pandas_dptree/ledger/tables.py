"""The released tables that a ledger keeps: in its file, or beside it if they are large.

What is kept follows from the released table alone: it has no time but that of the request, since running
times depend on records. The order of entries shows which of several releases at the same time ended first.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from pandas_dptree.errors import LedgerError
from pandas_dptree.ledger.kept_tables import from_bytes, to_bytes
from pandas_dptree.ledger.store import FORMAT, KEPT_SCHEMA, append, format_of, sync_folder
from pandas_dptree.output.atomic_files import write_whole
from pandas_dptree.output.table_digest import stated_digest, table_digest
from pandas_dptree.plans.charging import Charge, Output

__all__ = [
    "TABLE_KEYS",
    "Stored",
    "has_table",
    "keep_tables",
    "keeps_tables",
    "kept_output",
    "packed",
    "problems_of_table",
    "write_beside",
]

MOST_INSIDE: Final = 64 * 2**20
"""Bytes: larger tables are kept in a file of their own."""

TABLE_KEYS: Final = frozenset("kind charge table stored bytes".split())
"""What an entry of kind "table" holds: the digests of the values and of the bytes, and their number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The output of a charge as bytes, with its digests."""

    charge: int
    table: str
    stored: str
    data: bytes

    @property
    def is_inside(self) -> bool:
        """Whether the bytes are kept in the file of the ledger."""
        return len(self.data) <= MOST_INSIDE

    @property
    def content(self) -> dict[str, Any]:
        """The entry of the ledger."""
        return {
            "kind": "table",
            "charge": self.charge,
            "table": self.table,
            "stored": self.stored,
            "bytes": len(self.data),
        }


def packed(outputs: Mapping[Charge, Output]) -> list[Stored]:
    """Convert outputs to bytes."""
    result = []
    for charge, output in outputs.items():
        data = to_bytes({"table": output.table, "plan": output.plan}, output.linear)
        stored = hashlib.sha256(data).hexdigest()
        table = stated_digest(output.table) or table_digest(output.table)
        result.append(Stored(charge=charge.number, table=table, stored=stored, data=data))
    return result


def keeps_tables(connection: sqlite3.Connection) -> bool:
    """Whether a ledger keeps tables, which was decided when it was made."""
    query = "SELECT json_extract(content, '$.keep_tables') FROM entry WHERE number = 1"
    [decided] = connection.execute(query).fetchone()
    return decided is None or bool(decided)  # None: a ledger of format 1


def keep_tables(connection: sqlite3.Connection, tables: Sequence[Stored]) -> None:
    """Append the entries of tables, within a transaction. Files beside the ledger are written before it."""
    if format_of(connection) < FORMAT:
        for statement in KEPT_SCHEMA:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version={FORMAT}")
    for each in tables:
        head = append(connection, each.content)
        data = each.data if each.is_inside else None
        connection.execute("INSERT INTO kept VALUES (?, ?, ?)", (each.charge, head.number, data))


def write_beside(ledger: Path, table: Stored, requested: str) -> None:
    """Write a table to a file beside the ledger, named by its digest, and make sure that it is on disk."""
    path = _beside(ledger, table.stored)

    def fill(whole: Path) -> None:
        with open(whole, "wb") as file:
            file.write(table.data)
            file.flush()
            os.fsync(file.fileno())

    try:
        path.parent.mkdir(exist_ok=True)
        write_whole(path, fill)
        seconds = datetime.fromisoformat(requested).timestamp()
        for each in (path, path.parent):
            os.utime(each, (seconds, seconds))
    except OSError as error:
        raise LedgerError(
            f"The folder {path.parent.name!r} beside the ledger cannot be written: {error.strerror}.",
            hint="tables of more than 64 MB are kept there: free some space, or change its permissions.",
        ) from None
    sync_folder(path.parent)
    sync_folder(ledger.parent)


def kept_output(connection: sqlite3.Connection, ledger: Path, charge: int) -> Output | None:
    """Return what was kept of a charge; None if there is nothing."""
    if format_of(connection) < FORMAT:
        return None
    query = "SELECT content, data FROM kept JOIN entry ON number = entry WHERE charge = ?"
    found = connection.execute(query, (charge,)).fetchone()
    if found is None:
        return None
    content, data = json.loads(found[0]), found[1]
    if problem := _problem_of(ledger, content, data):
        raise LedgerError(
            f"The table of charge {charge} cannot be read: {problem}.",
            hint="restore it from a backup, with the folder beside the ledger; ledger.verify() checks both. "
            "To release it once more, at the full cost, pass allow_repeat=True.",
        )
    whole, linear = from_bytes(_beside(ledger, content["stored"]).read_bytes() if data is None else data)
    return Output(**whole, linear=linear)


def has_table(connection: sqlite3.Connection, charge: int) -> bool:
    """Whether the table of a charge was kept."""
    found = "SELECT EXISTS (SELECT 1 FROM kept WHERE charge = ?)"
    return format_of(connection) >= FORMAT and bool(connection.execute(found, (charge,)).fetchone()[0])


def problems_of_table(
    connection: sqlite3.Connection, ledger: Path, entries: Mapping[int, tuple[int, Mapping[str, Any]]]
) -> Iterator[str]:
    """Compare all kept tables with their entries, which are given by charge, each with its number."""
    if format_of(connection) < FORMAT:
        return
    found = set()
    for charge, entry in connection.execute("SELECT charge, entry FROM kept ORDER BY charge"):
        found.add(charge)
        number, content = entries.get(charge, (None, {}))
        if number != entry:
            yield f"the table of charge {charge} is not that of an entry"
            continue
        [data] = connection.execute("SELECT data FROM kept WHERE charge = ?", (charge,)).fetchone()
        if problem := _problem_of(ledger, content, data):
            yield f"the table of charge {charge}: {problem}"
    for charge in sorted(entries.keys() - found):
        yield f"the table of charge {charge} is missing"


def _problem_of(ledger: Path, content: Mapping[str, Any], data: bytes | None) -> str:
    """Say what is wrong with the bytes of a table; nothing if they are those of its entry."""
    if data is not None:
        digest = hashlib.sha256(data)
    else:
        path = _beside(ledger, content["stored"])
        try:
            with open(path, "rb") as file:
                digest = hashlib.file_digest(file, "sha256")
        except OSError as error:
            return f"its file {path.name!r} in {path.parent.name!r} cannot be read ({error.strerror})"
    return "" if digest.hexdigest() == content["stored"] else "its bytes are not those that were kept"


def _beside(ledger: Path, digest: str) -> Path:
    return ledger.parent / f"{ledger.name}-tables" / digest

"""The file of a ledger: an SQLite database of chained entries, safe among threads, processes and crashes."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, NamedTuple

from pandas_dptree.errors import LedgerError
from pandas_dptree.ledger.amounts import Amount
from pandas_dptree.ledger.entries import canonical, digest_after
from pandas_dptree.output.atomic_files import write_whole

__all__ = [
    "FORMAT",
    "KEPT_SCHEMA",
    "SCHEMA",
    "WHOLE",
    "Head",
    "Store",
    "add_to_spent",
    "append",
    "format_of",
    "head_of",
    "spent_of",
    "sync_folder",
]

TIMEOUT: Final = 60.0
"""How many seconds to wait for another process that writes."""

APPLICATION_ID: Final = 0x64707472
"""In the header of the file, "dptr": it identifies ledgers among SQLite databases."""

FORMAT: Final = 2
"""The format of the file, which its header states. Format 1 has no tables: it becomes 2 with its first."""

WHOLE: Final = ""
"""In the table `spent`, the part that stands for charges on the whole account."""

_BESIDE: Final = ("-wal", "-journal", "-shm")
"""How the names of SQLite's files beside a database end."""

SCHEMA: Final = """
CREATE TABLE entry (number INTEGER PRIMARY KEY, content TEXT NOT NULL, digest TEXT NOT NULL);
CREATE TABLE spent (
    account TEXT NOT NULL, part TEXT NOT NULL, loss TEXT NOT NULL, delta TEXT NOT NULL,
    charges INTEGER NOT NULL, PRIMARY KEY (account, part)
) WITHOUT ROWID;
CREATE TABLE released (charge INTEGER PRIMARY KEY REFERENCES entry (number));
CREATE UNIQUE INDEX account_by_name ON entry (json_extract(content, '$.name'))
    WHERE json_extract(content, '$.kind') = 'account';
CREATE INDEX charge_by_request ON entry (
    json_extract(content, '$.note'), json_extract(content, '$.account'),
    json_extract(content, '$.part'), json_extract(content, '$.plan')
) WHERE json_extract(content, '$.kind') = 'charge';
CREATE TRIGGER entry_follows BEFORE INSERT ON entry
    WHEN NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM entry)
    BEGIN SELECT RAISE(ABORT, 'entries are only appended'); END;
CREATE TRIGGER entry_unchanged BEFORE UPDATE ON entry
    BEGIN SELECT RAISE(ABORT, 'entries never change'); END;
CREATE TRIGGER entry_kept BEFORE DELETE ON entry
    BEGIN SELECT RAISE(ABORT, 'entries are never removed'); END;
CREATE TRIGGER released_unchanged BEFORE UPDATE ON released
    BEGIN SELECT RAISE(ABORT, 'marks never change'); END;
CREATE TRIGGER released_kept BEFORE DELETE ON released
    BEGIN SELECT RAISE(ABORT, 'marks are never removed'); END;
"""
"""`entry` is the truth. `spent` caches its sums. `released` marks the charges whose output is known to exist;
a mark has no time, since running times depend on records."""

KEPT_SCHEMA: Final = (
    """CREATE TABLE kept (
    charge INTEGER PRIMARY KEY REFERENCES entry (number), entry INTEGER NOT NULL REFERENCES entry (number),
    data BLOB
)""",
    """CREATE TRIGGER kept_unchanged BEFORE UPDATE ON kept
    BEGIN SELECT RAISE(ABORT, 'tables never change'); END""",
    """CREATE TRIGGER kept_kept BEFORE DELETE ON kept
    BEGIN SELECT RAISE(ABORT, 'tables are never removed'); END""",
    """CREATE INDEX charge_by_table ON entry (
    json_extract(content, '$.note'), json_extract(content, '$.account'), json_extract(content, '$.part'),
    json_extract(content, '$.name'), json_extract(content, '$.what')
) WHERE json_extract(content, '$.kind') = 'charge'""",
)
"""What format 2 adds: `kept` has the released table of each charge, which `entry` describes; NULL if it is in
a file beside the ledger."""

_SETTINGS: Final = ("synchronous=FULL", "fullfsync=ON", "foreign_keys=ON", "recursive_triggers=ON")
"""FULL: a commit returns when it is on disk; on macOS that needs fullfsync, as a plain fsync leaves data in
the drive's cache. Recursive triggers also refuse INSERT OR REPLACE."""


class Head(NamedTuple):
    """The last entry of a ledger: its number, and its digest, which stands for all entries."""

    number: int
    digest: str


class Store:
    """A connection to the file of a ledger, opened when it is first used, and again after `close` or a fork.

    SQLite keeps its locks per process, and a forked child that inherits an open connection believes that it
    holds locks of its parent. So all connections of a process are closed before it forks.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.realpath(path))
        self.lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        self._files: tuple[object, ...] = ()
        self._read_only = False
        _STORES.add(self)

    @classmethod
    def create(cls, path: str | os.PathLike[str], contents: Iterable[Mapping[str, Any]]) -> Store:
        """Make a file with these entries, completely or not at all, and return a store for it."""
        store = cls(path)
        leftover = [end for end in _BESIDE if Path(f"{store.path}{end}").exists()]
        if store.path.exists():
            raise LedgerError(
                f"{_named(store.path)} exists already.",
                hint="open it with dpt.Ledger.open(path), or choose another name.",
            )
        if leftover:
            raise LedgerError(
                f"{_named(store.path)} cannot be created: files of an earlier database are left beside it, "
                f"which end in {' and '.join(leftover)}.",
                hint="restore the ledger that they belong to, or choose another name.",
            )

        def fill(whole: Path) -> None:
            with contextlib.closing(sqlite3.connect(whole, isolation_level=None)) as connection:
                [mode] = connection.execute("PRAGMA journal_mode=WAL").fetchone()
                if mode != "wal":
                    raise LedgerError(
                        f"{_named(store.path)} is on a file system without shared memory, such as one of a "
                        "network.",
                        hint="keep the ledger on a local disk.",
                    )
                for setting in _SETTINGS:
                    connection.execute(f"PRAGMA {setting}")
                connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version={FORMAT}")
                connection.executescript(f"BEGIN;\n{SCHEMA}\nCOMMIT;")
                connection.execute("BEGIN IMMEDIATE")
                for statement in KEPT_SCHEMA:
                    connection.execute(statement)
                for content in contents:
                    append(connection, content)
                connection.execute("COMMIT")

        try:
            with _explained(store.path):
                write_whole(store.path, fill, replace=False)
                sync_folder(store.path.parent)
        except FileExistsError:
            raise LedgerError(
                f"{_named(store.path)} exists already.", hint="open it with dpt.Ledger.open(path)."
            ) from None
        except OSError as error:
            raise LedgerError(
                f"{_named(store.path)} cannot be created: {error.strerror}.",
                hint="name a file in a folder that exists, and that you may write to.",
            ) from None
        return store

    def is_file(self, path: str | os.PathLike[str]) -> bool:
        """Whether a path is that of the ledger, or of one of SQLite's files beside it."""
        return os.path.realpath(path) in {f"{self.path}{end}" for end in ("", *_BESIDE)}

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Read within one transaction, so that everything read is from the same moment."""
        with self.lock, _explained(self.path), _transaction(self._opened(), "BEGIN") as connection:
            self._check_identity(_identities(self.path)[:1])
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Write within one transaction: all or nothing, on disk at the end. Others that write must wait."""
        with self.lock, _explained(self.path):
            connection = self._opened()
            if self._read_only:
                raise LedgerError(f"{_named(self.path)} cannot be written.", hint=_MAY_WRITE)
            with _transaction(connection, "BEGIN IMMEDIATE"):
                self._check_identity(_identities(self.path))
                _check_names(self.path)
                yield connection

    def _check_identity(self, found: tuple[object, ...]) -> None:
        """Check that the file, and for writing its log, are still those that were opened."""
        if self._files[: len(found)] != found:
            raise LedgerError(
                f"{_named(self.path)} was moved, removed or replaced after it was opened.",
                hint="open it again. If a backup was restored, charges made since are missing.",
            )

    def close(self) -> None:
        """Close the file. It is opened again when needed."""
        with self.lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
                self._connection = None

    def pause(self) -> bool:
        """Before a fork: wait for transactions of other threads, then close. Return whether it was open."""
        self.lock.acquire()
        if self._connection is None or self._connection.in_transaction:
            return False
        self.close()
        return True

    def _opened(self) -> sqlite3.Connection:
        """Return the connection of this process, without a transaction."""
        if self._connection is not None and self._process != os.getpid():
            raise LedgerError(
                f"{_named(self.path)} was open when this process was forked in a way that Python does not "
                "see, so its locks do not work here.",
                hint="close the ledger before the fork: ledger.close().",
            )
        if self._connection is not None and (self._read_only or self._connection.in_transaction):
            # A file that is read without locks may have changed; or an interrupt came between Python's steps
            # into or out of a transaction.
            self.close()
        if self._connection is None:
            self._connection, self._read_only = _connect(self.path)
            self._process, self._files = os.getpid(), _identities(self.path)
        return self._connection

    def __reduce__(self) -> tuple[type[Store], tuple[str]]:
        """Pickle the path; the copy opens the file itself."""
        return Store, (str(self.path),)

    def __del__(self) -> None:
        """Close the file, unless the connection belongs to another process."""
        if getattr(self, "_connection", None) is not None:
            self.close()


def head_of(connection: sqlite3.Connection) -> Head:
    """Return the last entry; number 0 and an empty digest if there is none."""
    last = connection.execute("SELECT number, digest FROM entry ORDER BY number DESC LIMIT 1").fetchone()
    return Head(0, "") if last is None else Head(*last)


def append(connection: sqlite3.Connection, content: Mapping[str, Any]) -> Head:
    """Append an entry within a transaction, and return the new head."""
    last, text = head_of(connection), canonical(content)
    head = Head(last.number + 1, digest_after(last.digest, text))
    connection.execute("INSERT INTO entry VALUES (?, ?, ?)", (head.number, text, head.digest))
    return head


def format_of(connection: sqlite3.Connection) -> int:
    """Return the format of the file, as its header states it."""
    [version] = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def spent_of(connection: sqlite3.Connection, account: str) -> dict[str, tuple[Amount, int]]:
    """Return what is spent of each part of an account, `WHOLE` among them, and in how many charges."""
    rows = connection.execute("SELECT part, loss, delta, charges FROM spent WHERE account = ?", (account,))
    return {part: (Amount(Fraction(loss), Fraction(delta)), n) for part, loss, delta, n in rows}


def add_to_spent(connection: sqlite3.Connection, account: str, part: str, total: Amount) -> None:
    """Store the new sum of an account or part after one more charge."""
    connection.execute(
        "INSERT INTO spent VALUES (?, ?, ?, ?, 1) ON CONFLICT (account, part) "
        "DO UPDATE SET loss = excluded.loss, delta = excluded.delta, charges = charges + 1",
        (account, part, str(total.loss), str(total.delta)),
    )


_STORES: weakref.WeakSet[Store] = weakref.WeakSet()
_PAUSED: list[Store] = []
_FORKING = threading.Lock()
"""Held during a fork: threads that fork at the same time would wait for each other's stores forever."""


def _before_fork() -> None:
    _FORKING.acquire()
    for store in list(_STORES):
        store.pause()
        _PAUSED.append(store)


def _after_fork() -> None:
    while _PAUSED:
        _PAUSED.pop().lock.release()
    _FORKING.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[sqlite3.Connection]:
    try:
        connection.execute(begin)  # an interrupt may follow the wait for a lock
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):  # the first error says what is wrong
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        raise


def _connect(path: Path) -> tuple[sqlite3.Connection, bool]:
    """Open an existing ledger; return whether it can only be read.

    Without a write-ahead log, it is read as it is by whoever may not write to the folder (SQLite's shared
    memory goes there) or the file (SQLite's files beside it would belong to them, and keep out those who
    may).
    """
    _check_file(path)
    if not os.access(path, os.W_OK) and not os.path.exists(f"{path}-wal"):
        return _connected(path, "mode=ro&immutable=1"), True
    try:
        connection = _connected(path, "mode=rw")
        [mode] = connection.execute("PRAGMA journal_mode=WAL").fetchone()
    except sqlite3.OperationalError as error:
        if _name_of(error).startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY")) and not os.path.exists(
            f"{path}-wal"
        ):
            return _connected(path, "mode=ro&immutable=1"), True
        raise
    return connection, mode != "wal" or not os.access(path, os.W_OK)


def _connected(path: Path, mode: str) -> sqlite3.Connection:
    """Connect to an existing ledger. The settings read its schema, and so its write-ahead log."""
    connection = sqlite3.connect(
        f"{path.as_uri()}?{mode}", uri=True, timeout=TIMEOUT, isolation_level=None, check_same_thread=False
    )
    try:
        _check_header(connection, path)
        for setting in _SETTINGS:
            connection.execute(f"PRAGMA {setting}")
    except (sqlite3.Error, LedgerError):
        connection.close()
        raise
    return connection


def _check_file(path: Path) -> None:
    """Check that a file is a ledger, without writing to it or its neighbours.

    SQLite itself must read the header: closing another descriptor of the file would release the locks of this
    process. A file that it calls malformed may be whole with its write-ahead log; then `_connect` decides.
    """
    try:
        is_file = path.is_file()
    except PermissionError:
        raise LedgerError(
            f"{_named(path)} cannot be opened: you may not look into its folder.", hint=_MAY_READ
        ) from None
    if not is_file:
        raise LedgerError(
            f"{_named(path)} {'is a folder' if path.is_dir() else 'does not exist'}.",
            hint="create it with dpt.Ledger.create(path, account=..., ...), or correct the path.",
        )
    _check_names(path)
    try:
        _connected(path, "mode=ro&immutable=1").close()
    except sqlite3.DatabaseError as error:
        if not _name_of(error).startswith("SQLITE_CORRUPT"):
            raise


def _check_header(connection: sqlite3.Connection, path: Path) -> None:
    """Check that the header of a file is that of a ledger."""
    [identity] = connection.execute("PRAGMA application_id").fetchone()
    version = format_of(connection)
    if identity != APPLICATION_ID:
        raise LedgerError(f"{_named(path)} is not a ledger.", hint=_CORRECT)
    if version > FORMAT:
        raise LedgerError(
            f"{_named(path)} was made by a later version of pandas_dptree: it has format {version}.",
            hint="update pandas_dptree.",
        )


def _check_names(path: Path) -> None:
    """Check that a file has no second name (a symbolic link is none, as it was followed).

    SQLite finds the write-ahead log by the name of the file. Processes that open one file by two names have
    two logs: neither sees the charges of the other, and both could spend the whole cap.
    """
    with contextlib.suppress(OSError):  # a file that is missing is reported elsewhere
        if os.stat(path).st_nlink > 1:
            raise LedgerError(
                f"{_named(path)} has a second name, a hard link, by which others would not see its charges.",
                hint=f"find the other name, as by: find / -samefile {path.name}. Remove it, or copy the "
                "closed ledger to a new file.",
            )


def _identities(path: Path) -> tuple[object, ...]:
    """Identify the file and its write-ahead log, by the numbers that the file system has for them."""
    return tuple(_identity(each) for each in (str(path), f"{path}-wal"))


def _identity(path: str) -> object:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def sync_folder(folder: Path) -> None:
    """Make sure that a new file's name is on disk, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


_CORRECT: Final = "pass the path of a file that dpt.Ledger.create has made."
_MAY_READ: Final = "check that you may read it. To be written, its folder must be writable too."
_MAY_WRITE: Final = (
    "you need permission to write to the file and its folder, since SQLite keeps a log beside it, and to the "
    "files of this log, whose names end in -wal and -shm: another user may have left them."
)
_ERRORS: Final = {
    "SQLITE_BUSY": (
        f"is locked: another process has been writing for more than {TIMEOUT:.0f} seconds.",
        "try again, or find the process that keeps it open.",
    ),
    "SQLITE_LOCKED": ("is locked by another connection.", "try again."),
    "SQLITE_FULL": ("cannot be written: the disk is full.", "free some space, and try again."),
    "SQLITE_IOERR": (
        "cannot be read or written: the disk may be full, or fail.",
        "free some space or check the disk, and try again; ledger.to_frame() lists what was charged.",
    ),
    "SQLITE_READONLY": ("cannot be written.", _MAY_WRITE),
    "SQLITE_PERM": ("cannot be opened.", "ask for permission to read and write the file and its folder."),
    "SQLITE_CANTOPEN": (
        "cannot be opened.",
        _MAY_READ,
    ),
    "SQLITE_NOTADB": ("is not a ledger: it is not an SQLite database.", _CORRECT),
    "SQLITE_CORRUPT": (
        "is damaged.",
        "try again. If it remains so, keep a copy of all its files, and restore the last backup. Charges "
        "made since then are missing there, so compare it with the last head digest that was noted.",
    ),
    "SQLITE_CONSTRAINT": (
        "refuses the change: entries are only appended.",
        "verify the ledger with ledger.verify().",
    ),
}
"""What the codes of SQLite mean, by how they begin: the fact, and a hint."""


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn errors of SQLite into a LedgerError. By then the transaction is undone."""
    try:
        yield
    except sqlite3.Error as error:
        fact, hint = next(
            (text for code, text in _ERRORS.items() if _name_of(error).startswith(code)),
            (f"cannot be used: {_name_of(error) or type(error).__name__}.", "verify it: ledger.verify()."),
        )
        raise LedgerError(f"{_named(path)} {fact}", hint=hint) from error


def _name_of(error: sqlite3.Error) -> str:
    """Return the name of SQLite's code for an error, such as SQLITE_BUSY."""
    return getattr(error, "sqlite_errorname", "")


def _named(path: Path) -> str:
    return f"The ledger {path.name!r}"

"""The file of a ledger under threads, forks, locks, missing permissions and full disks."""

import gc
import multiprocessing
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import LedgerError
from pandas_dptree.ledger import store as stores
from pandas_dptree.ledger.store import Store, append, head_of
from tests.helpers_ledger import StandIn, charge, create

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

SMALL = StandIn("1/1000")


def test_settings(ledger):
    with ledger._store.reading() as connection:
        found = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in (
                "journal_mode",
                "synchronous",
                "fullfsync",
                "foreign_keys",
                "busy_timeout",
                "application_id",
            )
        }
    assert found == {
        "journal_mode": "wal", "synchronous": 2, "fullfsync": 1, "foreign_keys": 1, "busy_timeout": 60_000,
        "application_id": int.from_bytes(b"dptr", "big"),
    }  # fmt: skip


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entry SET content = '{}' WHERE number = 3",
        "DELETE FROM entry WHERE number = 3",
        "DELETE FROM entry",
        "INSERT OR REPLACE INTO entry SELECT number, '{}', digest FROM entry WHERE number = 3",
        "INSERT INTO entry VALUES (7, '{}', 'x')",
        "INSERT INTO entry VALUES (NULL, '{}', 'x')",
        "UPDATE released SET charge = 2",
        "DELETE FROM released",
        "INSERT INTO released VALUES (9)",
    ],
)
def test_what_is_stored_never_changes(ledger, patients, statement):
    patients.mark_released([charge(patients)])
    with pytest.raises(LedgerError, match="refuses the change"):
        with ledger._store.writing() as connection:
            connection.execute(statement)
    assert ledger.head.number == 3


def test_a_failed_transaction_leaves_nothing(ledger):
    head = ledger.head
    with pytest.raises(ZeroDivisionError):
        with ledger._store.writing() as connection:
            append(connection, {"kind": "x"})
            raise ZeroDivisionError
    assert ledger.head == head


def test_charges_look_things_up_by_indexes(ledger, patients):
    """So that a charge takes no longer in a long ledger."""
    seen = []
    with ledger._store.reading() as connection:
        connection.set_trace_callback(seen.append)
    charge(patients)
    with ledger._store.reading() as connection:
        connection.set_trace_callback(None)
        queries = [each for each in seen if each.startswith("SELECT")]
        plans = [
            row[3]
            for query in queries
            for row in connection.execute(f"EXPLAIN QUERY PLAN {query}").fetchall()
        ]
    assert len(queries) >= 4
    assert {plan.split()[0] for plan in plans} <= {"SEARCH", "SCALAR", "CORRELATED", "SCAN"}
    # the last entry is found by scanning backwards from the end, one step
    assert {plan for plan in plans if plan.startswith("SCAN")} <= {"SCAN entry", "SCAN CONSTANT ROW"}
    assert sum("charge_by_request" in plan for plan in plans) == 1
    assert sum("charge_by_table" in plan for plan in plans) == 1
    assert sum("account_by_name" in plan for plan in plans) == 1


def test_threads(ledger, patients):
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda i: charge(patients, SMALL, note=str(i)).number, range(80)))
    assert sorted(numbers) == list(range(3, 83))
    assert patients.spent.rho == 0.08


def test_two_connections_of_one_process(ledger, patients):
    other = dpt.Ledger.open(ledger.path)["patients"]
    for i in range(10):
        charge(patients, SMALL, note=f"a{i}")
        charge(other, SMALL, note=f"b{i}")
    other._store.close()
    charge(patients, SMALL, note="last")
    assert patients.n_charges == 21


def charge_in_child(account, note, results):
    results.put((note, charge(account, SMALL, note=note).number))


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_children(ledger, patients, method):
    charge(patients, SMALL, note="before")
    context = multiprocessing.get_context(method)
    results = context.Queue()
    children = [
        context.Process(target=charge_in_child, args=(patients, f"child {i}", results)) for i in range(3)
    ]
    for child in children:
        child.start()
    charge(patients, SMALL, note="parent")
    numbers = dict(results.get(timeout=60) for _ in children)
    for child in children:
        child.join()
    assert sorted(numbers) == ["child 0", "child 1", "child 2"]
    assert patients.n_charges == 5


def test_a_child_that_outlives_its_parents_connection(ledger, patients, tmp_path):
    """The locks of a child must be its own: else the parent's last close removes the log under the child."""
    charge(patients, SMALL, note="before")
    ready, go = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            charge(patients, SMALL, note="child 1")
            os.write(ready[1], b"x")
            os.read(go[0], 1)
            charge(patients, SMALL, note="child 2")
        finally:
            os._exit(0)
    os.read(ready[0], 1)
    charge(patients, SMALL, note="parent")
    ledger.close()  # if the child had no locks, this would be the last connection
    gc.collect()
    assert Path(f"{ledger.path}-wal").exists()
    os.write(go[1], b"x")
    os.waitpid(child, 0)
    assert patients.n_charges == 4
    for end in (*ready, *go):
        os.close(end)


def test_a_fork_closes_connections_first(ledger, patients):
    charge(patients)
    assert ledger._store._connection is not None
    child = os.fork()
    if child == 0:
        os._exit(0 if ledger._store._connection is None else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert ledger._store._connection is None
    with ThreadPoolExecutor(1) as pool:  # the lock is free again
        assert pool.submit(lambda: ledger.head.number).result(timeout=60) == 3


def test_a_fork_unseen_by_python_is_refused(ledger, patients, monkeypatch):
    charge(patients)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(LedgerError, match="forked in a way that Python does not see"):
        charge(patients, note="other")
    ledger.close()
    monkeypatch.undo()
    assert patients.n_charges == 1


def test_a_locked_file(ledger, patients, monkeypatch):
    monkeypatch.setattr(stores, "TIMEOUT", 0.05)
    ledger.close()
    with sqlite3.connect(ledger.path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match=r"is locked: .*\nHint: try again"):
            charge(patients)
        assert patients.n_charges == 0  # reading goes on
        other.execute("ROLLBACK")
    other.close()
    assert charge(patients).number == 3


@pytest.mark.parametrize("change", ["removed", "moved", "restored"])
def test_a_file_that_is_replaced_while_open(ledger, patients, tmp_path, change):
    ledger.close()
    shutil.copy(ledger.path, tmp_path / "backup")
    charge(patients)
    if change == "removed":
        os.unlink(ledger.path)
    elif change == "moved":
        os.rename(ledger.path, tmp_path / "moved")
    else:
        os.replace(tmp_path / "backup", ledger.path)
    with pytest.raises(LedgerError, match="was moved, removed or replaced after it was opened"):
        charge(patients, note="next")


def test_a_log_that_is_removed_while_open(ledger, patients):
    charge(patients)
    os.unlink(f"{ledger.path}-wal")
    with pytest.raises(LedgerError, match="was moved, removed or replaced"):
        charge(patients, note="next")


def test_a_file_whose_log_is_being_copied_into_it(ledger, patients, tmp_path):
    """The first page counts pages that are not in the file yet; the log has all of them."""
    for number in range(100):
        charge(patients, StandIn("1/1000", name=str(number)))
    before, log = Path(ledger.path).read_bytes(), Path(f"{ledger.path}-wal").read_bytes()
    head = ledger.head
    ledger.close()
    after = Path(ledger.path).read_bytes()
    assert len(after) > len(before)
    copied = tmp_path / "copied.sqlite"
    copied.write_bytes(after[:4096] + before[4096:])
    Path(f"{copied}-wal").write_bytes(log)
    with dpt.Ledger.open(copied) as opened:
        assert opened.verify() == head


def test_a_damaged_file(ledger, patients):
    for i in range(50):
        charge(patients, SMALL, note=str(i))
    ledger.close()
    with open(ledger.path, "r+b") as file:
        file.seek(4096)
        file.write(os.urandom(20_000))
    with pytest.raises(LedgerError, match=r"is damaged.\nHint: try again. If it remains so, keep a copy"):
        charge(patients, note="next")


def test_a_log_that_was_merged_in_part(ledger, patients, tmp_path):
    """A merge begins with the first page, which states a size that the file has only at the end."""
    for i in range(50):
        charge(patients, SMALL, note=str(i))
    half, merged = tmp_path / "half.sqlite", tmp_path / "merged.sqlite"
    for copy in (half, merged):
        for end in ("", "-wal"):
            shutil.copy(f"{ledger.path}{end}", f"{copy}{end}")
    with dpt.Ledger.open(merged):
        pass
    with open(half, "r+b") as file:
        file.write(merged.read_bytes()[:4096])
    assert half.stat().st_size < merged.stat().st_size
    with dpt.Ledger.open(half) as opened:
        assert opened.verify() == ledger.head
        charge(opened["patients"], note="next")
        assert opened["patients"].n_charges == 51


@contextmanager
def started(code, as_nobody=False):
    """Run code in a forked process, and give the pipes to it; an error is printed as Python prints it."""
    pipes = [os.pipe() for _ in range(3)]
    (to_read, to), (out, to_print), (err, to_complain) = pipes
    child = os.fork()
    if child == 0:
        try:
            sys.stdin, sys.stdout, sys.stderr = map(os.fdopen, (to_read, to_print, to_complain), "rww")
            if as_nobody:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            exec(code, {"dpt": dpt, "Path": Path, "StandIn": StandIn, "charge": charge, "create": create})
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
    for end in (to_read, to_print, to_complain):
        os.close(end)
    try:
        with os.fdopen(to, "w") as stdin, os.fdopen(out) as stdout, os.fdopen(err) as stderr:
            yield SimpleNamespace(stdin=stdin, stdout=stdout, stderr=stderr)
    finally:
        os.waitpid(child, 0)


def printed(code, as_nobody=False):
    """Run such code, and return what it printed."""
    with started(code, as_nobody) as process:
        return SimpleNamespace(stdout=process.stdout.read(), stderr=process.stderr.read())


needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user"
)


@pytest.fixture
def open_folder():
    """Make a folder that other users can reach."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        os.chmod(name, 0o755)
        yield Path(name)


TRY = """
ledger = dpt.Ledger.open({path!r})
print("read", ledger["patients"].n_charges, list(ledger))
try:
    charge(ledger["patients"], note="by nobody")
except dpt.LedgerError as error:
    print(error)
print("read", ledger["patients"].n_charges)
"""


@needs_root
@pytest.mark.parametrize("mode", [0o755, 0o777])
def test_a_file_that_can_only_be_read(open_folder, mode):
    with create(open_folder) as ledger:
        charge(ledger["patients"])
    os.chmod(ledger.path, 0o644)
    os.chmod(open_folder, mode)
    found = printed(TRY.format(path=ledger.path), as_nobody=True)
    assert found.stdout.startswith(
        "read 1 ['patients']\nThe ledger 'budget.sqlite' cannot be written.\nHint:"
    ), found.stdout + found.stderr
    assert found.stdout.endswith("read 1\n")


@needs_root
def test_a_folder_that_can_only_be_read(open_folder):
    with create(open_folder) as ledger:
        charge(ledger["patients"])
    os.chmod(ledger.path, 0o666)
    found = printed(TRY.format(path=ledger.path), as_nobody=True)
    assert "cannot be written" in found.stdout and found.stdout.endswith("read 1\n"), (
        found.stdout + found.stderr
    )
    assert [path.name for path in open_folder.iterdir()] == ["budget.sqlite"]


@needs_root
def test_a_file_that_cannot_be_read(open_folder):
    with create(open_folder) as ledger:
        charge(ledger["patients"])
    os.chmod(ledger.path, 0o600)
    found = printed(TRY.format(path=ledger.path), as_nobody=True)
    assert "LedgerError: The ledger 'budget.sqlite' cannot be opened" in found.stderr
    found = printed(f"create(Path({str(open_folder)!r}), 'new.sqlite')", as_nobody=True)
    assert "LedgerError: The ledger 'new.sqlite' cannot be created: Permission denied" in found.stderr


@needs_root
def test_a_folder_that_cannot_be_entered(open_folder):
    with create(open_folder) as ledger:
        pass
    os.chmod(open_folder, 0o700)
    found = printed(TRY.format(path=ledger.path), as_nobody=True)
    assert "LedgerError: The ledger 'budget.sqlite' cannot be opened: you may not look into" in found.stderr


@needs_root
def test_a_log_that_another_user_left(open_folder):
    """SQLite does not remove the log of a reader who may not write to the file. The hint names it."""
    with create(open_folder) as ledger:
        charge(ledger["patients"])
    os.chmod(open_folder, 0o777)
    for end in ("-wal", "-shm"):
        Path(f"{ledger.path}{end}").touch(0o444)
    os.chmod(ledger.path, 0o666)
    found = printed(TRY.format(path=ledger.path), as_nobody=True)
    assert "cannot be written" in found.stdout and "-wal and -shm: another user" in found.stdout, (
        found.stdout + found.stderr
    )


@needs_root
def test_a_full_disk(tmp_path):
    """On a disk of one megabyte that fills up: nothing is charged that is not reported, and it goes on."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip("no small disk can be made here")
    try:
        account = create(disk, rho=10.0)["patients"]
        charge(account, SMALL, note="first")
        done = 1
        (disk / "ballast").write_bytes(b"x" * (shutil.disk_usage(disk).free - 100_000))
        with pytest.raises(LedgerError, match=r"the disk is full|the disk may be full"):
            for i in range(1000):
                charge(account, SMALL, note=str(i))
                done += 1
        assert 1 < done < 200
        (disk / "ballast").unlink()
        assert account.n_charges == done
        charge(account, SMALL, note="after")
        assert account.n_charges == done + 1
        account._store.close()
        (disk / "ballast").write_bytes(b"x" * (shutil.disk_usage(disk).free - 4096))
        with pytest.raises(LedgerError):
            create(disk, "another.sqlite")
        assert not (disk / "another.sqlite").exists()
    finally:
        account._store.close()
        subprocess.run(["umount", disk], check=True)


def test_a_file_that_cannot_grow(tmp_path):
    """The same without root: the process may not write files beyond a size."""
    code = f"""
import resource
account = create(Path({str(tmp_path)!r}), rho=10.0)["patients"]
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
done = 0
try:
    for i in range(1000):
        charge(account, StandIn("1/1000"), note=str(i))
        done += 1
except dpt.LedgerError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert 0 < done < 1000 and account.n_charges == done, (done, account.n_charges)
charge(account, StandIn("1/1000"), note="after")
"""
    found = printed(code)
    assert found.stderr == ""
    assert "the disk" in found.stdout
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY


def test_pauses_wait_for_transactions_of_other_threads(ledger):
    store: Store = ledger._store
    entered, leave = threading.Event(), threading.Event()

    def write():
        with store.writing() as connection:
            entered.set()
            leave.wait(60)
            append(connection, {"kind": "x"})

    with ThreadPoolExecutor(2) as pool:
        writing = pool.submit(write)
        entered.wait(60)
        pausing = pool.submit(lambda: (store.pause(), store.lock.release()))
        assert not pausing.done()
        leave.set()
        writing.result(60)
        assert pausing.result(60)[0]
    with store.reading() as connection:
        assert head_of(connection).number == 3


class Interrupted:
    """A connection on which an interrupt arrives while it waits for the lock of a transaction."""

    def __init__(self, connection):
        self.connection = connection

    def __getattr__(self, name):
        return getattr(self.connection, name)

    def execute(self, statement):
        self.connection.execute(statement)
        if statement.startswith("BEGIN"):
            raise KeyboardInterrupt


@pytest.mark.parametrize("access", ["reading", "writing"])
def test_an_interrupt_leaves_no_lock(ledger, patients, access):
    charge(patients)
    store: Store = ledger._store
    original = store._connection
    store._connection = Interrupted(original)
    with pytest.raises(KeyboardInterrupt), getattr(store, access)():
        pass
    assert not original.in_transaction
    store._connection = original
    assert charge(patients, note="next").number == 4


def test_a_transaction_that_was_never_entered_is_undone_by_the_next(ledger, patients):
    """An interrupt may come after the transaction began and before its block, and a traceback keep it."""
    unentered = ledger._store.writing()
    append(unentered.__enter__(), {"kind": "x"})
    assert charge(patients).number == 3
    del unentered
    gc.collect()
    assert charge(patients, note="next").number == 4
    ledger.verify()


def test_threads_that_fork_at_the_same_time(ledger, monkeypatch):
    store: Store = ledger._store
    lock = store.lock

    class Yielding:
        """A lock after whose release other threads go on first."""

        acquire = lock.acquire

        def release(self):
            lock.release()
            time.sleep(0.2)

    monkeypatch.setattr(store, "lock", Yielding())
    monkeypatch.setattr(store, "close", lambda: None)

    def fork():
        stores._before_fork()
        stores._after_fork()

    threads = [threading.Thread(target=fork, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert not any(thread.is_alive() for thread in threads) and not stores._PAUSED


def test_a_file_with_two_names_is_refused(ledger, patients, tmp_path):
    """Each name has a write-ahead log of its own, so two processes could spend the whole cap each."""
    charge(patients)
    other = tmp_path / "other.sqlite"
    os.link(ledger.path, other)
    with pytest.raises(LedgerError, match=r"'budget\.sqlite' has a second name, a hard link"):
        charge(patients, note="next")
    with pytest.raises(LedgerError, match=r"'other\.sqlite' has a second name"):
        dpt.Ledger.open(other)
    other.unlink()
    assert charge(patients, note="next").number == 4


def test_a_file_into_which_its_log_is_being_moved(ledger, patients, tmp_path):
    """The header may be there before the pages that it counts. That is no damage: the log has it too."""
    for n in range(40):
        charge(patients, SMALL, note=str(n))
    copy = tmp_path / "copy.sqlite"
    shutil.copy(f"{ledger.path}-wal", f"{copy}-wal")
    header = bytearray(Path(ledger.path).read_bytes())
    header[28:32] = (1000).to_bytes(4, "big")  # the number of pages
    copy.write_bytes(header)
    with (
        pytest.raises(sqlite3.DatabaseError, match="malformed"),
        closing(sqlite3.connect(f"{copy.as_uri()}?mode=ro&immutable=1", uri=True)) as connection,
    ):
        connection.execute("SELECT * FROM entry")
    assert dpt.Ledger.open(copy).verify() == ledger.head


@needs_root
def test_a_reader_without_locks_sees_later_charges(open_folder):
    with create(open_folder) as ledger:
        charge(ledger["patients"])
    os.chmod(ledger.path, 0o644)
    code = """
ledger = dpt.Ledger.open({path!r})
print(ledger["patients"].n_charges, flush=True)
input()
print(ledger["patients"].n_charges, ledger.verify().number)
"""
    with started(code.format(path=ledger.path), as_nobody=True) as reader:
        assert reader.stdout.readline() == "1\n"
        charge(ledger["patients"], note="next")
        ledger.close()
        reader.stdin.write("\n")
        reader.stdin.flush()
        assert reader.stdout.read() == "2 4\n", reader.stderr.read()


def test_whoever_may_not_write_leaves_no_files_beside_the_ledger(ledger, patients, monkeypatch):
    """They would belong to this user, and keep out those who may write."""
    charge(patients, SMALL)
    ledger.close()
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with dpt.Ledger.open(ledger.path) as opened:
        assert opened.verify().number == 3
        assert not Path(f"{ledger.path}-wal").exists() and not Path(f"{ledger.path}-shm").exists()
        with pytest.raises(LedgerError, match="cannot be written"):
            charge(opened["patients"], SMALL, note="another")


def test_reading_notices_that_the_file_was_replaced(ledger, patients, tmp_path):
    ledger.close()
    backup = shutil.copy(ledger.path, tmp_path / "backup.sqlite")
    charge(patients, SMALL)
    os.replace(backup, ledger.path)
    for read in (ledger.verify, ledger.to_frame, lambda: ledger.head, lambda: patients.remaining):
        with pytest.raises(LedgerError, match="was moved, removed or replaced after it was opened"):
            read()


def test_the_name_of_a_new_ledger_is_on_disk(tmp_path, monkeypatch):
    """Its folder is synced after the file has its name, and the file before: else a crash might lose it."""
    synced, fsync = [], os.fsync

    def noted(descriptor):
        found = os.fstat(descriptor)
        synced.append((found.st_dev, found.st_ino, (tmp_path / "folder" / "new.sqlite").exists()))
        fsync(descriptor)

    (tmp_path / "folder").mkdir()
    (tmp_path / "link.sqlite").symlink_to(tmp_path / "folder" / "new.sqlite")
    monkeypatch.setattr(os, "fsync", noted)
    with create(tmp_path, "link.sqlite") as made:  # the folder of the file, not that of the link
        folder = os.stat(tmp_path / "folder")
        assert synced == [(folder.st_dev, folder.st_ino, True)]
        with made._store.reading() as connection:
            assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2
    assert not [each for each in os.listdir(tmp_path / "folder") if each != "new.sqlite"]

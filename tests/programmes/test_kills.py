"""Runs that are killed at every statement of SQL and every file operation: what the next one finds."""

import os
import shutil
import signal
import sqlite3
import sys

import pytest

from pandas_dptree.cli.statuses import Status, status_of
from pandas_dptree.errors import ChargedError, DPTreeError
from tests.helpers_ledger import forked
from tests.helpers_programmes import Visits, is_empty

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.utime", "shutil.rmtree")
"""Audit events of operations that change files; files that are opened for writing are others."""


def kill_at(step):
    """Kill this process when it begins its n-th statement of SQL, or operation that changes files."""
    seen = 0

    def count(*_):
        nonlocal seen
        seen += 1
        if seen == step:
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(event, arguments):
        writes = (
            event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        )
        if writes or event in CHANGES:
            count()

    def connect(*arguments, real=sqlite3.connect, **options):
        connection = real(*arguments, **options)
        connection.set_trace_callback(count)
        return connection

    sqlite3.connect = connect
    sys.addaudithook(hook)


def killed(visits, step, **programme):
    """Run in a child that is killed at a step; whether it was."""

    def run():
        kill_at(step)
        visits.run(visits.programme(**programme))

    status = forked(run)
    assert status in (0, signal.SIGKILL)
    return status != 0


def trial(folder, step, *, ledger):
    """Kill a run at a step, and run again: what it finds, and whether it was killed."""
    folder.mkdir()
    visits = Visits(folder)
    if ledger:
        visits.ledger()
    programme = visits.programme(ledger=ledger)
    was_killed = killed(visits, step, ledger=ledger)
    charges = visits.n_charges if ledger else 0
    published = folder / "published/2025-03"
    before = visits.files() if published.exists() else {}
    try:
        ran = visits.run(programme)
    except DPTreeError as error:
        assert isinstance(error, ChargedError) and status_of(error) == Status.CHARGED
        assert "'visits': charge 3" in error.fact and "'costs': charge 4" in error.fact
        assert charges == visits.n_charges == 2 and not before and is_empty(published)
        state = "lost"
    else:
        kept = [name for name in ("visits", "costs") if name not in ran.released]
        assert visits.n_charges == 2 if ledger else True
        files = visits.files()
        assert set(files) == {f"{name}.csv{end}" for name in ("visits", "costs") for end in ("", ".json")}
        assert before.items() <= files.items(), "a file was not whole, or belonged to another release"
        assert not list(published.glob(".dptree-*")) + list(published.glob(".released/.dptree-*"))
        assert len(kept) == charges if ledger else True  # all that was charged was kept
        state = f"{len(kept)} kept, {len(before)} files"
        assert visits.run(programme).released == () and visits.files() == files
    shutil.rmtree(folder)
    return state, was_killed


def in_order(found, expected):
    """Whether states follow one another in the order of the steps, each of them seen."""
    places = [expected.index(each) for each in found]
    return places == sorted(places) and set(found) == set(expected)


@pytest.mark.parametrize("ledger", [True, False])
@pytest.mark.slow
def test_a_kill_at_every_step(tmp_path, ledger):
    found, step, was_killed = [], 1, True
    while was_killed:
        state, was_killed = trial(tmp_path / str(step), step, ledger=ledger)
        found.append(state)
        step += 1
    written = [f"2 kept, {n} files" for n in range(5)]
    expected = ["0 kept, 0 files", "lost" if ledger else "1 kept, 0 files", *written]
    print(len(found), {state: found.count(state) for state in expected})
    assert in_order(found, expected)


@pytest.mark.parametrize(("ledger", "steps"), [(True, (40, 80, 100)), (False, (4, 11, 25))])
def test_a_kill_at_some_steps(tmp_path, ledger, steps):
    """In the middle of each state that the slow test passes through."""
    found = [trial(tmp_path / str(step), step, ledger=ledger)[0] for step in (*steps, 10_000)]
    charged = "lost" if ledger else "1 kept, 0 files"
    assert found == ["0 kept, 0 files", charged, "2 kept, 0 files", "2 kept, 4 files"]

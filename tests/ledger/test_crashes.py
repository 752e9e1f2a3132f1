"""Processes that are killed at any moment: nothing is overspent, and no release is without a charge."""

import multiprocessing
import os
import random
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import InsufficientBudgetError
from pandas_dptree.output.atomic_files import write_whole
from tests.helpers_ledger import StandIn, charge, create, forked, killed_at

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

PLANS = {"one": StandIn("1/10", name="one"), "two": StandIn("2/10", name="two")}


def listed(ledger, query):
    with ledger._store.reading() as connection:
        return connection.execute(query).fetchall()


def test_a_kill_at_every_statement(tmp_path):
    """Two charges and two marks: after a kill, both charges are there or none, and the file is valid."""
    before = create(tmp_path)
    charge(before["patients"], note="before")
    before.close()
    found = []
    for statement in range(1, 100):
        folder = tmp_path / str(statement)
        folder.mkdir()
        shutil.copy(before.path, folder / "budget.sqlite")
        ledger = dpt.Ledger.open(folder / "budget.sqlite")
        patients = ledger["patients"]

        def run(patients=patients, statement=statement):
            with patients._store.reading() as connection:
                killed_at(statement + 1, connection)  # the first is the COMMIT of this block
            patients.mark_released(charge(patients, **PLANS).values())

        status = forked(run)
        assert status in (0, signal.SIGKILL)
        ledger.verify(before.head.digest)
        found.append((patients.n_charges, len(listed(ledger, "SELECT * FROM released"))))
        assert charge(patients, StandIn(name="later")).number == 3 + patients.n_charges - 1
        ledger.verify()
        ledger.close()
        if status == 0:
            break
    assert sorted(found) == found and set(found) == {(1, 0), (3, 0), (3, 2)}
    assert len(found) > 10


def test_a_kill_inside_a_commit(tmp_path):
    """A log that ends at any byte: all charges of the last commit are there, or none."""
    ledger = create(tmp_path)
    charge(ledger["patients"], note="before")
    charge(ledger["patients"], **PLANS)
    charge(ledger["patients"], StandIn(name="third"))
    log = Path(f"{ledger.path}-wal").read_bytes()
    found = []
    for end in [*range(0, len(log), 1009), len(log)]:
        folder = tmp_path / str(end)
        folder.mkdir()
        shutil.copy(ledger.path, folder / "budget.sqlite")
        (folder / "budget.sqlite-wal").write_bytes(log[:end])
        copy = dpt.Ledger.open(folder / "budget.sqlite")
        copy.verify()
        found.append(copy["patients"].n_charges)
        copy.close()
        shutil.rmtree(folder)
    assert sorted(found) == found and set(found) == {0, 1, 3, 4}


# Many processes that release and publish, and are killed at random


def work(path, folder, life, n_releases, done):
    """Release until `n_releases` are done in all lives of this worker, and publish each to a file."""
    account = dpt.Ledger.open(path)["patients"]
    plan = dpt.plan(dpt.Tree.from_branching([2]), epsilon=0.001)
    while done.value < n_releases:
        done.value += 1
        try:
            table = plan.release(np.array([3, 4]), ledger=account, note=f"{life}: {done.value}")
        except InsufficientBudgetError:
            os._exit(3)
        charged = table.attrs["dp"]["ledger"]
        write_whole(folder / str(charged["charge"]), lambda whole, d=charged["digest"]: whole.write_text(d))


def run_and_kill(tmp_path, n_workers, n_releases, cap, seed=0):
    """Run workers until all their releases are done; kill one after every few releases. Return the kills."""
    rng = random.Random(seed)
    ledger = create(tmp_path, epsilon=cap, privacy_unit=dpt.ROWS)
    folder = tmp_path / "published"
    folder.mkdir()
    context = multiprocessing.get_context("fork")
    done = [context.Value("i", 0, lock=False) for _ in range(n_workers)]
    lives = [0] * n_workers

    def start(worker):
        lives[worker] += 1
        life = f"worker {worker}, life {lives[worker]}"
        process = context.Process(target=work, args=(ledger.path, folder, life, n_releases, done[worker]))
        process.start()
        return process

    workers = {worker: start(worker) for worker in range(n_workers)}
    n_kills, refused = 0, 0
    while workers:
        begun = sum(each.value for each in done) + rng.randint(1, 4)
        while sum(each.value for each in done) < begun and any(each.is_alive() for each in workers.values()):
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.01))
        worker = rng.choice(list(workers))
        process = workers[worker]
        process.kill()
        process.join()
        if process.exitcode == -signal.SIGKILL:
            n_kills += 1
            workers[worker] = start(worker)
        else:
            assert process.exitcode in (0, 3)
            refused += process.exitcode == 3
            del workers[worker]
    return ledger, folder, n_kills, refused


def check_after_kills(ledger, folder, n_kills, cap):
    """Nothing is overspent, each release has its charge, and each charge without one was lost to a kill."""
    head = ledger.verify()
    account = ledger["patients"]
    charges = {
        number: digest
        for number, digest in listed(
            ledger, "SELECT number, digest FROM entry WHERE json_extract(content, '$.kind') = 'charge'"
        )
    }
    marked = {number for (number,) in listed(ledger, "SELECT charge FROM released")}
    published = {int(path.name): path.read_text() for path in folder.iterdir() if path.name.isdigit()}
    assert account.spent.amount.loss <= account._terms.exact_cap.loss
    assert account.spent.amount.loss == len(charges) * account._terms.exact_cap.loss / round(cap * 1000)
    assert published.items() <= charges.items()
    kept = {number for (number,) in listed(ledger, "SELECT charge FROM kept")}
    assert published.keys() <= marked == kept
    lost = charges.keys() - published.keys()
    assert len(lost) <= n_kills
    for number in sorted(published)[:: max(1, len(published) // 20)]:
        assert ledger.verify(published[number]) == head
    return len(charges), len(published), len(marked), len(lost)


@pytest.mark.parametrize(
    ("n_releases", "cap"),
    [
        pytest.param(32, 0.2, marks=pytest.mark.tripwire, id="few"),
        pytest.param(30, 1.0, marks=pytest.mark.slow, id="room for all"),
        pytest.param(60, 0.4, marks=pytest.mark.slow, id="cap reached"),
        pytest.param(1000, 7.5, marks=pytest.mark.nightly, id="many"),
    ],
)
def test_processes_that_are_killed(tmp_path, n_releases, cap):
    ledger, folder, n_kills, refused = run_and_kill(tmp_path, 8, n_releases, cap)
    n_charges, n_published, n_marked, n_lost = check_after_kills(ledger, folder, n_kills, cap)
    print(f"{n_charges=} {n_published=} {n_marked=} {n_lost=} {n_kills=} {refused=}")
    assert n_kills >= n_releases // 10
    if refused:
        assert n_charges == round(cap * 1000)
    else:
        assert 8 * n_releases - n_kills <= n_charges <= 8 * n_releases

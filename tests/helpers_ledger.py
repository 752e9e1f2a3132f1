"""Ledgers of tests, and stand-ins for plans."""

import json
import os
import shutil
import signal
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import LedgerError, LedgerIntegrityError
from pandas_dptree.ledger.entries import canonical

TRIGGERS = (
    "entry_follows", "entry_unchanged", "entry_kept", "released_unchanged", "released_kept", "kept_unchanged",
    "kept_kept",
)  # fmt: skip
"""The triggers that refuse changes of a ledger."""
NOW = datetime(2026, 3, 1, 12, 30, 15, tzinfo=UTC)


@dataclass(frozen=True)
class StandIn:
    """What an account sees of a plan."""

    loss: Fraction | str = "1/10"
    delta: Fraction | str = "0"
    in_both: bool = True
    currency: str = "rho"
    name: str = "plan"
    privacy_unit: object = "person"
    neighbors: str = "add_remove"
    digest: str | None = field(default=None)
    subject: str | None = None

    def __post_init__(self):
        if self.subject is None:
            what = "state" if self.name == "plan" else self.name
            object.__setattr__(self, "subject", f"counts by {what}")
        if self.digest is None:
            object.__setattr__(self, "digest", f"digest of {self.name} {self.loss} {self.delta}")

    @property
    def losses(self):
        stated = (Fraction(self.loss), Fraction(self.delta))
        return SimpleNamespace(
            in_epsilon=stated if self.in_both or self.currency == "epsilon" else None,
            in_rho=stated if self.in_both or self.currency == "rho" else None,
        )


def create(folder, name="budget.sqlite", **options):
    """Make a ledger with the account "patients"."""
    options = {"account": "patients", "privacy_unit": "person", **options}
    if not {"epsilon", "rho"} & options.keys():
        options["rho"] = 1.0
    return dpt.Ledger.create(folder / name, **options)


def charge(account, plan=None, note="note", *, allow_repeat=False, requested=NOW, **plans):
    """Charge a plan without a name, or plans by their names."""
    releases = plans or {None: StandIn() if plan is None else plan}
    charged = account.charge(releases, note, allow_repeat=allow_repeat, requested=requested)
    return charged if plans else charged[None]


def forked(run):
    """Run a function in a forked child, and return how the child ended."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            run()
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]


def killed_at(statement, connection):
    """Kill this process when the connection begins its n-th statement from now."""
    seen = []

    def trace(text):
        seen.append(text)
        if len(seen) == statement:
            os.kill(os.getpid(), signal.SIGKILL)

    connection.set_trace_callback(trace)


def copied(ledger, tmp_path):
    """Copy the ledger into a folder of its own."""
    return shutil.copy(ledger.path, Path(tempfile.mkdtemp(dir=tmp_path)) / "copy.sqlite")


def edited(ledger, tmp_path, *statements):
    """Copy the ledger, remove its triggers, edit it, put the triggers back, and open it."""
    path = copied(ledger, tmp_path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        texts = [
            connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (name,)).fetchone()[0]
            for name in TRIGGERS
        ]
        for name in TRIGGERS:
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            statement(connection) if callable(statement) else connection.execute(statement)
        for text in texts:
            connection.execute(text)
    return dpt.Ledger.open(path)


def change(number, **fields):
    """Change fields of an entry, in canonical form."""

    def apply(connection):
        [text] = connection.execute("SELECT content FROM entry WHERE number = ?", (number,)).fetchone()
        content = {**json.loads(text), **fields}
        connection.execute("UPDATE entry SET content = ? WHERE number = ?", (canonical(content), number))

    return apply


def problems(ledger, head=None):
    with pytest.raises(LedgerIntegrityError) as error:
        ledger.verify(head)
    assert isinstance(error.value, LedgerError)
    assert str(error.value).startswith(
        "The ledger 'copy.sqlite' was changed or damaged after it was written:\n- "
    )
    return "\n".join(error.value.problems)

"""The account that a command charges."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pandas_dptree.errors import ArgumentError, listed, visible
from pandas_dptree.ledger.accounts import Account
from pandas_dptree.ledger.book import Ledger
from pandas_dptree.plans.charging import Charge, Chargeable, Chargeables, Kept, Output
from pandas_dptree.plans.options import Running

__all__ = ["SHELL_PHRASES", "print_charge", "running_options", "was_charged"]


@dataclass(slots=True)
class _Command(Chargeable):
    """The account of a command, and what the command has charged to it.

    `refusal` is why nothing new may be released: the file of the table exists. What was kept is returned.
    """

    account: Account
    refusal: ArgumentError | None
    charges: Mapping[Hashable, Charge] = field(default_factory=dict)

    def kept(self, plans: Chargeables, note: str) -> Mapping[Hashable, Kept]:
        return self.account.kept(plans, note)

    def check(self, plans: Chargeables, note: str, *, allow_repeat: bool) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.account.check(plans, note, allow_repeat=allow_repeat)

    def charge(self, plans: Chargeables, note: str, **options: Any) -> Mapping[Hashable, Charge]:
        self.charges = self.account.charge(plans, note, **options)
        return self.charges

    def keep(self, outputs: Mapping[Charge, Output]) -> None:
        self.account.keep(outputs)


SHELL_PHRASES = {
    "open it with dpt.Ledger.open(path)": "use it, or add an account with `dptree ledger add`",
    "create it with dpt.Ledger.create(path, account=..., ...)": "create it with `dptree ledger create`",
    "that dpt.Ledger.create has made": "that `dptree ledger create` has made",
    "account.divide(n) gives n parts of what is left that fit": "`dptree ledger show` tells what is left",
    "ledger.table(": "`dptree ledger table FILE ENTRY` (here ",
    "ledger.add_account(...)": "`dptree ledger add`",
    "ledger.head.digest": "what `dptree ledger show` prints",
    "ledger.to_frame()": "`dptree ledger show`",
    "ledger.verify()": "`dptree ledger verify`",
    "that of tempfile.gettempdir()": "the system's",
    "the names of its columns are listed by frame.columns": "a CSV file names its columns in the first line",
    "drop the duplicates, for example with places.drop_duplicates(by)": "leave them out of the file, "
    "or name all key columns by --by",
    "are counted by tree_counts": "are counted by `dptree counts`",
}
"""What messages say in Python, and what they say in the shell."""


def running_options(arguments: argparse.Namespace, refusal: ArgumentError | None = None) -> Running:
    """Return how a command releases: its bar, its temporary files, and the account it charges, if any.

    With `refusal`, only a table that a ledger has kept is returned.
    """
    running: Running = {"progress": arguments.progress, "temp_folder": arguments.temp_folder}
    if arguments.ledger is None:
        names = ("account", "part", "note", "name", "allow_repeat")
        given = {name: getattr(arguments, name) for name in names}
        for name, value in given.items():
            if value is not None and value is not False:
                raise ArgumentError(name, "has no meaning without --ledger.", hint="add --ledger FILE.")
        if refusal is not None:
            raise refusal
        return running
    if arguments.note is None:
        raise ArgumentError(
            "note",
            "must be given with --ledger: it says what the release is for.",
            hint="for example --note 2026-03. The same plan with the same note is charged only once.",
        )
    account = _account(arguments.ledger, arguments.account)
    account = account if arguments.part is None else account.part(arguments.part)
    return {
        **running,
        "ledger": _Command(account, refusal),
        "note": arguments.note,
        "name": arguments.name,
        "allow_repeat": arguments.allow_repeat,
    }


def was_charged(running: Running) -> bool:
    """Whether a command has spent budget: it has not if its account returned what was kept."""
    command = running.get("ledger")
    return not isinstance(command, _Command) or bool(command.charges)


def print_charge(running: Running) -> None:
    """Print what is left of the account, if there is one, and whether it was charged."""
    command = running.get("ledger")
    if isinstance(command, _Command):
        done = "Charged" if was_charged(running) else "Nothing was charged"
        print(visible(f"{done}. {command.account}"), file=sys.stderr)


def _account(path: Path, name: str | None) -> Account:
    """Open an account of a ledger."""
    ledger = Ledger.open(path)
    if name is None:
        raise ArgumentError(
            "account", "must be given with --ledger.", hint=f"the ledger has {listed(ledger)}."
        )
    return ledger[name]

"""The account that a command charges."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pandas_dptree.errors import ArgumentError, listed, visible
from pandas_dptree.ledger.accounts import Account
from pandas_dptree.ledger.book import Ledger
from pandas_dptree.plans.options import Running

__all__ = ["SHELL_PHRASES", "print_charge", "running_options"]

SHELL_PHRASES = {
    "open it with dpt.Ledger.open(path)": "use it, or add an account with `dptree ledger add`",
    "create it with dpt.Ledger.create(path, account=..., ...)": "create it with `dptree ledger create`",
    "that dpt.Ledger.create has made": "that `dptree ledger create` has made",
    "allow_repeat=True": "--allow-repeat",
    "account.divide(n) gives n parts of what is left that fit": "`dptree ledger show` tells what is left",
    "ledger.add_account(...)": "`dptree ledger add`",
    "ledger.head.digest": "what `dptree ledger show` prints",
    "ledger.to_frame()": "`dptree ledger show`",
    "ledger.verify()": "`dptree ledger verify`",
    "that of tempfile.gettempdir()": "the system's",
}
"""What messages say in Python, and what they say in the shell."""


def running_options(arguments: argparse.Namespace) -> Running:
    """Return how a command releases: its bar, its temporary files, and the account it charges, if any."""
    running: Running = {"progress": arguments.progress, "temp_folder": arguments.temp_folder}
    if arguments.ledger is None:
        names = ("account", "part", "note", "name", "allow_repeat")
        given = {name: getattr(arguments, name) for name in names}
        for name, value in given.items():
            if value is not None and value is not False:
                raise ArgumentError(name, "has no meaning without --ledger.", hint="add --ledger FILE.")
        return running
    if arguments.note is None:
        raise ArgumentError(
            "note",
            "must be given with --ledger: it says what the release is for.",
            hint="for example --note 2026-03. The same plan with the same note is released only once.",
        )
    account = _account(arguments.ledger, arguments.account)
    return {
        **running,
        "ledger": account if arguments.part is None else account.part(arguments.part),
        "note": arguments.note,
        "name": arguments.name,
        "allow_repeat": arguments.allow_repeat,
    }


def print_charge(running: Running) -> None:
    """Print what is left of the account, if one was charged."""
    account = running.get("ledger")
    if isinstance(account, Account):
        print(visible(f"Charged. {account}"), file=sys.stderr)


def _account(path: Path, name: str | None) -> Account:
    """Open an account of a ledger."""
    ledger = Ledger.open(path)
    if name is None:
        raise ArgumentError(
            "account", "must be given with --ledger.", hint=f"the ledger has {listed(ledger)}."
        )
    return ledger[name]

"""The account that a command charges."""

from __future__ import annotations

import argparse
from pathlib import Path

from pandas_dptree.errors import ArgumentError, listed
from pandas_dptree.ledger.accounts import Account
from pandas_dptree.ledger.book import Ledger
from pandas_dptree.plans.options import Running

__all__ = ["running_options"]


def running_options(arguments: argparse.Namespace) -> Running:
    """Return how a command releases: its progress bar, and the account that it charges, if any."""
    running: Running = {"progress": arguments.progress}
    if arguments.ledger is None:
        given = {name: getattr(arguments, name) for name in ("account", "part", "note", "allow_repeat")}
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
        "allow_repeat": arguments.allow_repeat,
    }


def _account(path: Path, name: str | None) -> Account:
    """Open an account of a ledger."""
    ledger = Ledger.open(path)
    if name is None:
        raise ArgumentError(
            "account", "must be given with --ledger.", hint=f"the ledger has {listed(ledger)}."
        )
    return ledger[name]

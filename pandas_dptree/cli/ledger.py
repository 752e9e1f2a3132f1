"""The command ``dptree ledger``: to create, show and verify ledgers."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import pandas as pd

from pandas_dptree.cli.files import check_out, write_table
from pandas_dptree.errors import ArgumentError, LedgerIntegrityError, visible
from pandas_dptree.ledger.book import Ledger
from pandas_dptree.privacy.unit import ROWS

__all__ = ["add_to"]


def add_to(commands: Any) -> None:
    """Add the command and its own commands to those of ``dptree``."""
    file = argparse.ArgumentParser(add_help=False)
    file.add_argument("ledger", metavar="FILE", help="the ledger")
    terms = argparse.ArgumentParser(add_help=False)
    terms.add_argument("--account", required=True, metavar="NAME", help="the population that it protects")
    terms.add_argument("--epsilon", type=float, help="the cap: the sum of the epsilons of all releases")
    terms.add_argument("--delta", type=float, default=0.0, help="the cap of the sum of their deltas")
    terms.add_argument("--rho", type=float, help="the cap: the sum of their rhos, instead of --epsilon")
    terms.add_argument(
        "--neighbors", choices=["add_remove", "replace"], default="add_remove",
        help="how neighbouring data sets differ: one unit is added or removed, or its data are replaced",
    )  # fmt: skip
    unit = terms.add_mutually_exclusive_group(required=True)
    unit.add_argument("--privacy-unit", metavar="COLUMN", help="the column that identifies whom to protect")
    unit.add_argument(
        "--each-row",
        dest="privacy_unit",
        action="store_const",
        const=ROWS,
        help="each row is a unit of its own",
    )
    terms.add_argument(
        "--part", dest="parts", action="append", metavar="NAME",
        help="a part, which shares no unit with another: releases of different parts do not add up; repeat "
        "for all",
    )  # fmt: skip
    terms.add_argument(
        "--fixed-records", action="store_true", default=None,
        help="state that no record depends on an earlier release; needed for parts of an account with --rho "
        "or --delta",
    )  # fmt: skip

    summary = "create, show and verify ledgers, which limit what all releases together may spend"
    parser = commands.add_parser(
        "ledger", help=summary, description=f"{summary[0].upper()}{summary[1:]}.", allow_abbrev=False
    )
    own = parser.add_subparsers(required=True, metavar="command")

    def command(name: str, summary: str, run: Any, *parents: argparse.ArgumentParser) -> Any:
        sub = own.add_parser(
            name, parents=[file, *parents], help=summary, description=f"{summary[0].upper()}{summary[1:]}.",
            allow_abbrev=False,
        )  # fmt: skip
        sub.set_defaults(run=run)
        return sub

    create = command("create", "make a ledger with one account", _create, terms)
    create.add_argument(
        "--no-tables", dest="keep_tables", action="store_false",
        help="keep charges alone, and not the released tables; then a repeated release is refused",
    )  # fmt: skip
    command("add", "add an account to a ledger", _add, terms)
    show = command("show", "print accounts and charges", _show)
    show.add_argument("--json", action="store_true", help="print everything as JSON, with exact fractions")
    show.add_argument("--html", metavar="PAGE", help="write a page to print instead, which replaces the file")
    table = command("table", "write a table that was released, as the ledger kept it", _table)
    table.add_argument("charge", metavar="ENTRY", type=int, help="the entry of its charge, as in `show`")
    table.add_argument("--out", metavar="TABLE", help="the file to write; by default CSV to standard output")
    verify = command("verify", "check that a ledger was not changed; the exit status is 1 if it was", _verify)
    verify.add_argument(
        "--head", metavar="HEX",
        help="a digest of the ledger that was noted earlier, 64 digits; without it, removed last entries "
        "cannot be found",
    )  # fmt: skip


def _terms(arguments: argparse.Namespace) -> dict[str, Any]:
    names = ("account", "privacy_unit", "epsilon", "delta", "rho", "neighbors", "parts", "fixed_records")
    return {name: getattr(arguments, name) for name in names}


def _create(arguments: argparse.Namespace) -> None:
    with Ledger.create(arguments.ledger, **_terms(arguments), keep_tables=arguments.keep_tables) as ledger:
        print(visible(ledger[arguments.account]))
        _print_head(ledger)


def _add(arguments: argparse.Namespace) -> None:
    with Ledger.open(arguments.ledger) as ledger:
        print(visible(ledger.add_account(**_terms(arguments))))
        _print_head(ledger)


def _show(arguments: argparse.Namespace) -> None:
    with Ledger.open(arguments.ledger) as ledger:
        if arguments.html is not None:
            ledger.to_html(arguments.html)
            return
        if arguments.json:
            print(visible(ledger.to_json(), lines=True))
            return
        for name in ledger:
            account = ledger[name]
            print(visible(account))
            for part in account.parts or ():
                print(visible(f"  part {part!r}: {account.part(part).remaining}"))
        columns = ["number", "time", "account", "part", "note", "name", "what", "epsilon", "rho", "delta"]
        charges = ledger.to_frame()[[*columns, "released"]].dropna(axis=1, how="all")
        if len(charges):
            charges["time"] = charges["time"].dt.strftime("%Y-%m-%d %H:%M:%S")
            charges = charges.rename(columns={"number": "entry", "time": "requested (UTC)"})
            table = charges.to_string(index=False, na_rep="", float_format="{:g}".format)
            print("", visible(table, lines=True), sep="\n")
        print()
        _print_head(ledger)


def _table(arguments: argparse.Namespace) -> None:
    out = None if arguments.out is None else Path(arguments.out)
    check_out(out, ".csv", ".parquet", force=False)
    with Ledger.open(arguments.ledger) as ledger:
        released = ledger.table(arguments.charge)
    if not isinstance(released, pd.DataFrame):
        raise ArgumentError(
            "charge",
            f"{arguments.charge} released a {type(released).__name__}, which is no table of rows.",
            hint="read it in Python: dpt.Ledger.open(path).table(charge).",
        )
    write_table(released, out, force=False)


def _verify(arguments: argparse.Namespace) -> int:
    with Ledger.open(arguments.ledger) as ledger:
        try:
            head = ledger.verify(arguments.head)
        except LedgerIntegrityError as error:
            print(f"dptree: {visible(error, lines=True)}", file=sys.stderr)
            return 1
    print(f"The ledger is as it was written: {head.number:,} entries. Head: {head.digest}")
    return 0


def _print_head(ledger: Ledger) -> None:
    print(visible(f"Head: {ledger.head.digest} (entry {ledger.head.number:,}; note it elsewhere)"))

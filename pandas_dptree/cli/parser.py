"""The options of ``dptree`` and of its commands."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NoReturn, get_args, get_origin

from pandas_dptree._version import __version__
from pandas_dptree.cli import demo, ledger, programmes
from pandas_dptree.cli.statuses import EXPLANATION, Status
from pandas_dptree.errors import visible
from pandas_dptree.plans.options import COUNTS, JOINT, OPTIONS, PLAN, RUNNING, SUMS, UNITS
from pandas_dptree.privacy.unit import ROWS
from pandas_dptree.signatures import Option

__all__ = ["IN_PROGRAMMES", "Run", "flag_of", "parser_of"]

IN_PROGRAMMES: Final = {
    "--share": "split = { region = 0.25, district = 0.75 }",
    "--level-weight": "level_weights = { district = 50 }",
    "--objective": 'objective = "cells"',
    "--cross": 'by = { place = "place", sex = "sex" }',
    "--margins": 'margins = [{ place = "county", sex = "sex" }]',
    "--fit": 'fit = "joint"',
    "--granularity": "granularity = 0.5 for a column",
    "--threshold": "mechanism = { alpha = 0.25, threshold = 5000 }",
    "--failure-probability": "mechanism = { alpha = 0.25, failure_probability = 0.01 }",
    "--calibration": 'mechanism = { alpha = 0.25, calibration = "proof" }',
    "--clip": "mechanism = { alpha = 0.25, clip = true }",
}
"""Options that no command has, and what states them in a table of a programme."""

Run = Callable[[argparse.Namespace], int | None]
"""Runs a command. Returns the exit status if it is not 0."""

_FORCE = "replace the file of --out if it exists"
_WITH_PRIVATE_KEYS = {
    "mechanism": "truncated_laplace or gaussian with --private-key; multiplicative gives counts with bounded "
    "relative error, by --alpha",
    "split": "optimal, uniform or doubling with --private-key",
}
_NOT_IF_ALL_ARE_PRIVATE = "left out if all keys are private"


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are safe to print, as arguments may be names of files that others have chosen."""

    def error(self, message: str) -> NoReturn:
        """Print an error without the usage, which would fill the screen, and exit."""
        self.exit(
            Status.ARGUMENTS,
            f"{self.prog}: {visible(message, lines=True)}\n(`{self.prog} --help` explains.)\n",
        )


def flag_of(name: str) -> str:
    """Return the shell's name of an argument."""
    flag = OPTIONS[name].flag if name in OPTIONS else None
    return flag or f"--{name.replace('_', '-')}"


def _flags(*names: str) -> _Parser:
    """Return a parser of options, to be a parent of those of commands."""
    parser = _Parser(add_help=False)
    for name in names:
        option = OPTIONS[name]
        if option.flag is None:
            continue
        group: Any = parser.add_mutually_exclusive_group() if name == "privacy_unit" else parser
        group.add_argument(option.flag, dest=name, default=option.default, **_reading(name, option, names))
        if name == "privacy_unit":
            group.add_argument(
                "--each-row", dest=name, action="store_const", const=ROWS,
                help="each row is a unit of its own (the default without --private-key, stated explicitly)",
            )  # fmt: skip
    return parser


def _reading(name: str, option: Option, names: Sequence[str]) -> dict[str, Any]:
    """Return how the parser reads an option, by its type."""
    text = option.help or option.summary.removeprefix("Whether to ").removesuffix(".")
    text = re.sub(r"(?<!`)`(\w+)`", lambda found: flag_of(found[1]), text).replace("``", "")
    text = text[0].lower() + text[1:]
    kinds = get_args(option.annotation) or (option.annotation,)
    private = "private_keys" in names
    if private and name in _WITH_PRIVATE_KEYS:
        text = f"{text} ({_WITH_PRIVATE_KEYS[name]})"
    literals = [kind for kind in (option.annotation, *kinds) if get_origin(kind) is Literal]
    if bool in kinds:
        return {"action": "store_true", "help": text}
    if literals:
        values, _ = option.stated(private=private)
        texts = dict.fromkeys(each for kind in literals for each in get_args(kind))
        choices = [each for each in texts if f'"{each}"' in values]
        more = ["multiplicative"] if name == "mechanism" and private else []
        return {"choices": [*choices, *more], "help": text}
    reading: dict[str, Any] = {"metavar": option.metavar, "help": text}
    by_level = (option.metavar or "").startswith("LEVEL=")
    if (int in kinds or float in kinds) and not by_level:
        return {"type": int if int in kinds else float, **reading}
    if by_level or {Mapping, Sequence} & {get_origin(kind) for kind in kinds}:
        repeated = "" if option.help else "; repeat for others"
        return {"action": "append", "metavar": option.metavar, "help": f"{text}{repeated}"}
    return {"type": Path if option.metavar in ("FILE", "FOLDER") else str, **reading}


def parser_of(runs: Mapping[str, Run]) -> argparse.ArgumentParser:
    """Return the parser of ``dptree``; each of its commands sets ``run`` to the function of this name."""
    records = _Parser(add_help=False)
    records.add_argument(
        "records", nargs="+", metavar="RECORDS",
        help="the records, one row each: .csv, .csv.gz or .parquet files, folders of them or quoted patterns "
        "such as \"visits/*.parquet\"; or a .duckdb database with --table",
    )  # fmt: skip
    records.add_argument(
        "--table", metavar="NAME", help="the table of a .duckdb database, such as visits or clinic.visits"
    )
    keys = _Parser(add_help=False)
    keys.add_argument(
        "--by",
        action="append",
        required=True,
        metavar="COLUMN",
        help="a key column; repeat from coarse to fine",
    )
    keys.add_argument(
        "--structural-zeros",
        metavar="COLUMN",
        help="a column of the domain that is true for structural zeros, otherwise false",
    )
    values = _Parser(add_help=False)
    values.add_argument(
        "--column", action="append", metavar="COLUMN", help="a column to add up; repeat for several"
    )
    values.add_argument(
        "--bounds", action="append", nargs=2, type=float, metavar=("LOW", "HIGH"),
        help="the smallest and the largest value of a row, without exponent (-1000, not -1e3); once for all "
        "columns, or once for each",
    )  # fmt: skip
    factor = _Parser(add_help=False)
    factor.add_argument(
        "--alpha", type=float,
        help="the relative error of --mechanism multiplicative, below 1",
    )  # fmt: skip
    table = _Parser(add_help=False)
    table.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="a .csv, .parquet or .xlsx file; by default CSV on standard output",
    )
    table.add_argument("--force", action="store_true", help=_FORCE)
    table.add_argument("--account", metavar="NAME", help="the account of the ledger; required with --ledger")
    table.add_argument("--part", metavar="NAME", help="the part of the account that the records belong to")

    parser = _Parser(
        prog="dptree",
        description="Differentially private hierarchical tables. Keys in a CSV file are text; an empty field "
        "is a missing key.",
        epilog=EXPLANATION,
        allow_abbrev=False,
    )
    levels: dict[str, Any] = {"choices": ["debug", "info", "warning", "error"], "metavar": "LEVEL"}
    parser.add_argument(
        "--log-level", **levels,
        help="log the steps to standard error: debug, info, warning or error; their times may tell how long "
        "reading took",
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"dptree {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")

    def command(name: str, summary: str, *parents: _Parser) -> Any:
        sub = commands.add_parser(
            name, parents=parents, help=summary, description=f"{summary[0].upper()}{summary[1:]}.",
            epilog=EXPLANATION, allow_abbrev=False,
        )  # fmt: skip
        sub.add_argument("--log-level", default=argparse.SUPPRESS, help="log the steps", **levels)
        sub.set_defaults(run=runs[name])
        return sub

    counts = command(
        "counts", "count the records of every node of a hierarchy",
        records, keys, _flags(*COUNTS), factor, table,
    )  # fmt: skip
    units = command(
        "units", "count the distinct units of every node, such as people: those of --privacy-unit",
        records, keys, _flags(*UNITS, *RUNNING), table,
    )  # fmt: skip
    sums = command(
        "sums", "add up columns over the records of every node",
        records, keys, values, _flags(*SUMS, *RUNNING), table,
    )  # fmt: skip
    means = command(
        "means", "average columns over the records of every node",
        records, keys, values, _flags(*JOINT, *RUNNING), table,
    )  # fmt: skip
    for verb in (counts, units, sums, means):
        verb.add_argument(
            "--domain",
            required=verb is not counts,
            help='a .csv or .parquet file of the public keys, one row per leaf; or "observed", to state that '
            f"the keys in the records are public{f'; {_NOT_IF_ALL_ARE_PRIVATE}' * (verb is counts)}",
        )

    plan = command(
        "plan", "plan a release without spending anything",
        keys, values, _flags(*PLAN, "private_keys", "max_nodes"), factor,
    )  # fmt: skip
    plan.add_argument(
        "--units", action="store_true",
        help="plan to count the distinct units of --privacy-unit, as `dptree units` does; needs --max-nodes",
    )  # fmt: skip
    plan.add_argument(
        "--domain", type=Path, metavar="FILE",
        help=f"a .csv or .parquet file of the public keys; {_NOT_IF_ALL_ARE_PRIVATE}",
    )  # fmt: skip
    plan.add_argument("--out", type=Path, metavar="FILE", help="a .json file for `dptree release`")
    plan.add_argument("--force", action="store_true", help=_FORCE)

    release = command(
        "release", "release records according to a stored plan", records, _flags(*RUNNING), table
    )
    secret = command(
        "secret-check", "show whoever may see the records what a plan would count of them, exactly: SECRET",
        records, _flags("temp_folder"),
    )  # fmt: skip
    for planned in (release, secret):
        planned.add_argument(
            "--plan", type=Path, required=True, help="a .json file, from `dptree plan --out`"
        )
        planned.add_argument(
            "--domain", type=Path, metavar="FILE",
            help=f"the same public keys as for the plan; {_NOT_IF_ALL_ARE_PRIVATE}",
        )  # fmt: skip
        planned.add_argument("--structural-zeros", metavar="COLUMN", help="the same as for the plan")
        planned.add_argument(
            "--digest", metavar="HEX",
            help="the digest of the approved plan, 64 digits; other plans are refused",
        )  # fmt: skip
    secret.add_argument(
        "--out", type=Path, metavar="FILE",
        help="a .txt file that only you may read; by default nothing is written, and all is printed",
    )  # fmt: skip
    secret.add_argument("--force", action="store_true", help=_FORCE)

    programmes.add_options(command("run", "release the tables of a programme, and write its report"))

    check = command("verify", "check a released table against its plan, without the records")
    check.add_argument("plan", help="plan.json, or counts.csv.json, which holds the plan")
    check.add_argument("table", help="counts.csv; counts.csv.json is read too if it is beside it")
    check.add_argument("--digest", metavar="HEX", help="the noted digest of the approved plan, 64 digits")
    check.add_argument(
        "--ledger-digest", metavar="HEX",
        help="the digest of the table, or of its charge, that whoever saw the ledger noted",
    )  # fmt: skip

    ledger.add_to(commands)
    demo.add_options(command("demo", "release counts of a simulated example population; needs no file"))
    return parser

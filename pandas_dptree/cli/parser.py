"""The options of ``dptree`` and of its commands."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn, get_args

from pandas_dptree._version import __version__
from pandas_dptree.cli import ledger
from pandas_dptree.errors import visible
from pandas_dptree.estimation.consistency import CONSISTENCIES, FITS
from pandas_dptree.mechanisms.additive import MECHANISMS
from pandas_dptree.mechanisms.thresholds import Calibration
from pandas_dptree.planning.objective import OBJECTIVES
from pandas_dptree.planning.private_split import PRIVATE_MECHANISMS, PRIVATE_SPLITS
from pandas_dptree.planning.split import SPLITS
from pandas_dptree.privacy.unit import ROWS

__all__ = ["Run", "parser_of"]

Run = Callable[[argparse.Namespace], int | None]
"""Runs a command. Returns the exit status if it is not 0."""

_SPLIT = "how to divide the budget among the levels"
_FORCE = "replace the file of --out if it exists"
_NOT_IF_ALL_ARE_PRIVATE = "left out if all keys are private"


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are safe to print, as arguments may be names of files that others have chosen."""

    def error(self, message: str) -> NoReturn:
        """Print an error, and exit."""
        super().error(visible(message, lines=True))


def parser_of(runs: Mapping[str, Run]) -> argparse.ArgumentParser:
    """Return the parser of ``dptree``; each of its commands sets ``run`` to the function of this name."""
    keys = _Parser(add_help=False)
    keys.add_argument(
        "--by",
        action="append",
        required=True,
        metavar="COLUMN",
        help="a key column; repeat from coarse to fine",
    )
    private = _Parser(add_help=False)
    private.add_argument(
        "--private-key", action="append", metavar="COLUMN",
        help="a key column whose keys nobody can list: only those that many units share are released; repeat "
        "for the last columns of --by, in the same order. Needs --delta, and --privacy-unit or --each-row",
    )  # fmt: skip
    options = _Parser(add_help=False)
    options.add_argument("--epsilon", type=float, help="privacy loss: pure, or approximate with --delta")
    options.add_argument(
        "--delta", type=float, default=0.0, help="the delta of approximate differential privacy"
    )
    options.add_argument("--rho", type=float, help="privacy loss: zero-concentrated, instead of --epsilon")
    options.add_argument(
        "--neighbors", choices=["add_remove", "replace"], default="add_remove",
        help="how neighbouring data sets differ: one unit is added or removed, or its data are replaced",
    )  # fmt: skip
    unit = options.add_mutually_exclusive_group()
    unit.add_argument("--privacy-unit", metavar="COLUMN", help="the column that identifies whom to protect")
    unit.add_argument(
        "--each-row", dest="privacy_unit", action="store_const", const=ROWS,
        help="each row is a unit of its own (the default without --private-key, stated explicitly)",
    )  # fmt: skip
    options.add_argument(
        "--max-contributions", type=int, metavar="K",
        help="the maximum number of rows to keep of each unit, at random; the others are not counted. Noise "
        "grows with it. Required with --privacy-unit",
    )  # fmt: skip
    options.add_argument(
        "--share",
        action="append",
        metavar="LEVEL=SHARE",
        help="a level's share of the budget; repeat for other levels; shares must sum to 1",
    )
    options.add_argument(
        "--objective", choices=OBJECTIVES, default="levels", help="the error that --split optimal minimizes"
    )
    options.add_argument(
        "--level-weight",
        action="append",
        metavar="LEVEL=WEIGHT",
        help="the weight of a level's error; repeat for other levels",
    )
    options.add_argument(
        "--consistency", choices=CONSISTENCIES, default="integer", help="how noisy values become estimates"
    )
    options.add_argument("--fit", choices=FITS, default="totals", help="how negative estimates are corrected")
    options.add_argument(
        "--confidence",
        type=float,
        metavar="P",
        help="add intervals that hold the true value with this probability",
    )
    options.add_argument(
        "--keep-measurements", action="store_true", help="add the noisy values and their noise scales"
    )
    options.add_argument(
        "--structural-zeros",
        metavar="COLUMN",
        help="a column of the domain that is true for structural zeros, otherwise false",
    )
    noise = _Parser(add_help=False)
    noise.add_argument("--mechanism", choices=MECHANISMS, default="auto", help="the noise")
    noise.add_argument("--split", choices=SPLITS, default="optimal", help=_SPLIT)
    noise_or_factor = _Parser(add_help=False)
    noise_or_factor.add_argument(
        "--mechanism", choices=[*dict.fromkeys([*MECHANISMS, *PRIVATE_MECHANISMS]), "multiplicative"],
        default="auto",
        help="the noise (truncated_laplace or gaussian with --private-key); or counts with bounded relative "
        "error, which take the next five options",
    )  # fmt: skip
    noise_or_factor.add_argument(
        "--alpha", type=float,
        help="the relative error, below 1; with other mechanisms, minimize the errors beyond it",
    )  # fmt: skip
    noise_or_factor.add_argument(
        "--threshold", type=float, metavar="T",
        help="the error of counts below this is relative to it; by default the smallest possible",
    )  # fmt: skip
    noise_or_factor.add_argument(
        "--failure-probability", type=float, metavar="P",
        help="the probability of a larger error; by default 0.05, or with --clip levels**-2",
    )  # fmt: skip
    noise_or_factor.add_argument(
        "--calibration", choices=get_args(Calibration), help='kind of thresholds; by default "exact"'
    )
    noise_or_factor.add_argument("--clip", action="store_true", help="bound the mean squared error too")
    noise_or_factor.add_argument(
        "--split", choices=list(dict.fromkeys([*SPLITS, *PRIVATE_SPLITS])), default="optimal",
        help=f"{_SPLIT} (optimal, uniform or doubling with --private-key)",
    )  # fmt: skip
    known = _Parser(add_help=False)
    known.add_argument(
        "--known",
        type=Path,
        metavar="FILE",
        help="a .csv or .parquet file of public counts: the keys, and a column count, at_least, or both",
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
    values.add_argument("--granularity", type=float, help="round values to multiples of this")
    records = _Parser(add_help=False)
    records.add_argument(
        "records", nargs="+", metavar="RECORDS",
        help="the records, one row each: .csv, .csv.gz or .parquet files, folders of them or quoted patterns "
        "such as \"visits/*.parquet\"; or a .duckdb database with --table",
    )  # fmt: skip
    records.add_argument(
        "--table", metavar="NAME", help="the table of a .duckdb database, such as visits or clinic.visits"
    )
    table = _Parser(add_help=False)
    table.add_argument(
        "--out", type=Path, metavar="FILE", help="a .csv or .parquet file; by default CSV on standard output"
    )
    table.add_argument("--force", action="store_true", help=_FORCE)
    table.add_argument("--progress", action="store_true", help="show a progress bar on standard error")
    table.add_argument(
        "--temp-folder", type=Path, metavar="FOLDER",
        help="where rows are kept that do not fit into memory, in a file without a name that vanishes with "
        "the process; by default the folder for temporary files of the system",
    )  # fmt: skip
    table.add_argument(
        "--ledger", type=Path, metavar="FILE",
        help="the ledger to charge before any noise is drawn, from `dptree ledger create`",
    )  # fmt: skip
    table.add_argument("--account", metavar="NAME", help="the account of the ledger; required with --ledger")
    table.add_argument("--part", metavar="NAME", help="the part of the account that the records belong to")
    table.add_argument(
        "--note", metavar="TEXT",
        help="what the release is for, such as 2026-03; required with --ledger. The same plan with the same "
        "note is released only once",
    )  # fmt: skip
    table.add_argument(
        "--allow-repeat", action="store_true",
        help="release the same plan with the same note again, which is charged in full again",
    )  # fmt: skip

    parser = _Parser(
        prog="dptree",
        description="Differentially private hierarchical tables. Keys in a CSV file are text; an empty field "
        "is a missing key.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"dptree {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")

    def command(name: str, summary: str, *parents: _Parser) -> Any:
        sub = commands.add_parser(
            name, parents=parents, help=summary, description=f"{summary[0].upper()}{summary[1:]}.",
            allow_abbrev=False,
        )  # fmt: skip
        sub.set_defaults(run=runs[name])
        return sub

    counts = command(
        "counts", "count the records of every node of a hierarchy",
        records, keys, private, options, noise_or_factor, known, table,
    )  # fmt: skip
    sums = command(
        "sums", "add up columns over the records of every node",
        records, keys, values, options, noise, table,
    )  # fmt: skip
    means = command(
        "means", "average columns over the records of every node",
        records, keys, values, options, noise, known, table,
    )  # fmt: skip
    for verb in (counts, sums, means):
        verb.add_argument(
            "--domain",
            required=verb is not counts,
            help='a .csv or .parquet file of the public keys, one row per leaf; or "observed", to state that '
            f"the keys in the records are public{f'; {_NOT_IF_ALL_ARE_PRIVATE}' * (verb is counts)}",
        )

    plan = command(
        "plan", "plan a release without spending anything",
        keys, private, values, options, noise_or_factor, known,
    )  # fmt: skip
    plan.add_argument(
        "--domain", type=Path, metavar="FILE",
        help=f"a .csv or .parquet file of the public keys; {_NOT_IF_ALL_ARE_PRIVATE}",
    )  # fmt: skip
    plan.add_argument(
        "--target",
        action="append",
        metavar="LEVEL=ERROR",
        help="find the smallest privacy loss that gives a level this standard error; repeat for others",
    )
    plan.add_argument("--out", type=Path, metavar="FILE", help="a .json file for `dptree release`")
    plan.add_argument("--force", action="store_true", help=_FORCE)

    release = command("release", "release records according to a stored plan", records, table)
    release.add_argument("--plan", type=Path, required=True, help="a .json file, from `dptree plan --out`")
    release.add_argument(
        "--domain", type=Path, metavar="FILE",
        help=f"the same public keys as for the plan; {_NOT_IF_ALL_ARE_PRIVATE}",
    )  # fmt: skip
    release.add_argument("--structural-zeros", metavar="COLUMN", help="the same as for the plan")
    release.add_argument(
        "--digest", metavar="HEX", help="the digest of the approved plan, 64 digits; other plans are refused"
    )

    check = command("verify", "check a released table against its plan, without the records")
    check.add_argument("plan", help="plan.json, or counts.csv.json, which holds the plan")
    check.add_argument("table", help="counts.csv; counts.csv.json is read too if it is beside it")
    check.add_argument("--digest", metavar="HEX", help="the noted digest of the approved plan, 64 digits")

    ledger.add_to(commands)
    command("demo", "release counts of a simulated example population; needs no file")
    return parser

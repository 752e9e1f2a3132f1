"""``dptree``: the verbs for shell scripts."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from pandas_dptree import api, datasets
from pandas_dptree._version import __version__
from pandas_dptree.errors import ArgumentError, DPTreeError, MissingExtraError
from pandas_dptree.estimation.consistency import CONSISTENCIES
from pandas_dptree.ingest.frames import check_columns
from pandas_dptree.planning.split import OBJECTIVES

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the shell command.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; those of the process by default.

    Returns
    -------
    int
        0, or 2 after an error, which is told on standard error in one piece.
    """
    arguments = _parser().parse_args(argv)
    try:
        arguments.run(arguments)
    except DPTreeError as error:
        print(f"dptree: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dptree", description="Differentially private hierarchical tables.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"dptree {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")

    counts = commands.add_parser(
        "counts",
        help="count the records of every node of a hierarchy",
        description="Count the records of every node of a hierarchy, under differential privacy. "
        "From a CSV file, keys are read as text, and an empty field is a missing key.",
        allow_abbrev=False,
    )
    counts.set_defaults(run=_counts)
    counts.add_argument("records", type=Path, help="the records, one row each: a .csv or .parquet file")
    counts.add_argument(
        "--by", action="append", required=True, metavar="COLUMN", help="a key; repeat, from coarse to fine"
    )
    counts.add_argument(
        "--domain",
        required=True,
        help='a .csv or .parquet file of the public keys, one row per leaf; or "observed", to state that the '
        "keys in the records are public",
    )
    counts.add_argument("--epsilon", type=float, help="privacy loss: pure, or approximate with --delta")
    counts.add_argument("--delta", type=float, default=0.0)
    counts.add_argument("--rho", type=float, help="privacy loss: zero-concentrated")
    counts.add_argument("--neighbors", choices=["add_remove", "replace"], default="add_remove")
    counts.add_argument("--privacy-unit", metavar="COLUMN", help="whom to protect; by default each row")
    counts.add_argument("--max-contributions", type=int, default=1, metavar="K", help="rows kept per unit")
    counts.add_argument("--mechanism", choices=["auto", "laplace", "gaussian"], default="auto")
    counts.add_argument("--split", choices=["optimal", "uniform", "geometric"], default="optimal")
    counts.add_argument("--objective", choices=OBJECTIVES, default="levels")
    counts.add_argument("--consistency", choices=CONSISTENCIES, default="integer")
    counts.add_argument(
        "--out", type=Path, metavar="FILE", help="a .csv or .parquet file; by default CSV on standard output"
    )

    demo = commands.add_parser("demo", help="release a simulated example population; needs no file")
    demo.set_defaults(run=_demo)
    return parser


def _counts(arguments: argparse.Namespace) -> None:
    _check_out(arguments.out)
    units = [] if arguments.privacy_unit is None else [arguments.privacy_unit]
    frame = _read(arguments.records, [*arguments.by, *units], "records")
    domain = arguments.domain
    if domain != "observed":
        domain = _read(Path(domain), arguments.by, "domain")
    released = api.tree_counts(
        frame,
        arguments.by,
        domain=domain,
        epsilon=arguments.epsilon,
        delta=arguments.delta,
        rho=arguments.rho,
        neighbors=arguments.neighbors,
        privacy_unit=arguments.privacy_unit,
        max_contributions=arguments.max_contributions,
        mechanism=arguments.mechanism,
        split=arguments.split,
        objective=arguments.objective,
        consistency=arguments.consistency,
    )
    _write(released, arguments.out)


def _demo(arguments: argparse.Namespace) -> None:
    by = ["region", "district", "clinic"]
    visits = datasets.clinic_visits()
    plan = visits.dp.plan(
        by, epsilon=1.0, domain=datasets.clinics(), privacy_unit="person", max_contributions=2
    )
    print("A simulated example population: visits to clinics. No person in it exists.\n")
    print(plan, end="\n\n")
    released = plan.release(visits)
    print(released.to_string(index=False, max_rows=24, na_rep="", formatters={"std_error": "{:.1f}".format}))


def _read(path: Path, columns: list[str], argument: str) -> pd.DataFrame:
    """Read the columns that are needed; keys from a CSV file as text."""
    try:
        if _suffix(path, argument) == ".parquet":
            frame = pd.read_parquet(path)
            check_columns(frame, columns)
            return frame[columns]
        check_columns(pd.read_csv(path, nrows=0), columns)
        return pd.read_csv(
            path, usecols=columns, dtype=str, keep_default_na=False, na_values=[""], engine="c"
        )[columns]
    except ImportError:
        raise MissingExtraError("Reading Parquet", package="pyarrow", extra="engines") from None
    except (OSError, ValueError) as error:
        if isinstance(error, DPTreeError):
            raise
        # What the reader says may quote the file.
        raise ArgumentError(
            argument,
            f"cannot be read from {str(path)!r}.",
            hint="check that the file is there and well-formed.",
        ) from None


def _suffix(path: Path, argument: str) -> str:
    suffix = ".csv" if path.name.endswith(".csv.gz") else path.suffix
    if suffix not in {".csv", ".parquet"}:
        raise ArgumentError(
            argument, f"is a file of unknown type: {str(path)!r}.", hint="use .csv, .csv.gz or .parquet."
        )
    return suffix


def _check_out(path: Path | None) -> None:
    """Find out before the budget is spent whether the table can be written."""
    if path is None:
        return
    if not path.resolve().parent.is_dir():
        raise ArgumentError(
            "out", f"is in a folder that does not exist: {str(path)!r}.", hint="make it first."
        )
    if _suffix(path, "out") == ".parquet":
        try:
            importlib.import_module("pyarrow")
        except ImportError:
            raise MissingExtraError(
                "Writing Parquet", package="pyarrow", extra="engines", hint="or write a .csv file"
            ) from None


def _write(released: pd.DataFrame, path: Path | None) -> None:
    """Write the whole table or nothing."""
    if path is None:
        released.to_csv(sys.stdout, index=False)
        return
    folder = path.resolve().parent
    with tempfile.TemporaryDirectory(dir=folder, prefix=".dptree-") as scratch:
        written = Path(scratch) / path.name
        if _suffix(path, "out") == ".parquet":
            released.to_parquet(written, index=False)
        else:
            released.to_csv(written, index=False)
        os.replace(written, path)

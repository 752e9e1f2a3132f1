"""``dptree``: the verbs for shell scripts."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from pandas_dptree import api, datasets
from pandas_dptree._version import __version__
from pandas_dptree.errors import ArgumentError, DPTreeError, MissingExtraError
from pandas_dptree.estimation.consistency import CONSISTENCIES, FITS
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.ingest.frames import check_columns
from pandas_dptree.plan import Plan
from pandas_dptree.planning.objective import OBJECTIVES
from pandas_dptree.planning.split import SPLITS

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
        sys.stdout.flush()
    except DPTreeError as error:
        print(f"dptree: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever was reading, as in `dptree demo | head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _parser() -> argparse.ArgumentParser:
    keys = argparse.ArgumentParser(add_help=False)
    keys.add_argument(
        "--by", action="append", required=True, metavar="COLUMN", help="a key; repeat, from coarse to fine"
    )
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument("--epsilon", type=float, help="privacy loss: pure, or approximate with --delta")
    options.add_argument("--delta", type=float, default=0.0)
    options.add_argument("--rho", type=float, help="privacy loss: zero-concentrated")
    options.add_argument("--neighbors", choices=["add_remove", "replace"], default="add_remove")
    options.add_argument("--privacy-unit", metavar="COLUMN", help="whom to protect; by default each row")
    options.add_argument("--max-contributions", type=int, default=1, metavar="K", help="rows kept per unit")
    options.add_argument("--mechanism", choices=["auto", "laplace", "gaussian"], default="auto")
    options.add_argument("--split", choices=SPLITS, default="optimal")
    options.add_argument(
        "--share",
        action="append",
        metavar="LEVEL=SHARE",
        help="a level's part of the budget; repeat, up to 1",
    )
    options.add_argument("--objective", choices=OBJECTIVES, default="levels")
    options.add_argument(
        "--level-weight", action="append", metavar="LEVEL=WEIGHT", help="how much a level matters; repeat"
    )
    options.add_argument("--consistency", choices=CONSISTENCIES, default="integer")
    options.add_argument("--fit", choices=FITS, default="totals")
    records = argparse.ArgumentParser(add_help=False)
    records.add_argument("records", type=Path, help="the records, one row each: a .csv or .parquet file")
    table = argparse.ArgumentParser(add_help=False)
    table.add_argument(
        "--out", type=Path, metavar="FILE", help="a .csv or .parquet file; by default CSV on standard output"
    )

    parser = argparse.ArgumentParser(
        prog="dptree",
        description="Differentially private hierarchical tables. From a CSV file, keys are read as text, and "
        "an empty field is a missing key.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"dptree {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")

    def command(
        name: str, run: Callable[[argparse.Namespace], None], summary: str, *parents: argparse.ArgumentParser
    ) -> Any:
        sub = commands.add_parser(
            name, parents=parents, help=summary, description=f"{summary[0].upper()}{summary[1:]}.",
            allow_abbrev=False,
        )  # fmt: skip
        sub.set_defaults(run=run)
        return sub

    counts = command(
        "counts", _counts, "count the records of every node of a hierarchy", records, keys, options, table
    )
    counts.add_argument(
        "--domain",
        required=True,
        help='a .csv or .parquet file of the public keys, one row per leaf; or "observed", to state that the '
        "keys in the records are public",
    )

    plan = command("plan", _plan, "describe a release before anything is spent", keys, options)
    plan.add_argument("--domain", type=Path, required=True, help="a .csv or .parquet file of the public keys")
    plan.add_argument(
        "--target",
        action="append",
        metavar="LEVEL=ERROR",
        help="find the smallest privacy loss for which a level has this standard error; repeat",
    )
    plan.add_argument("--out", type=Path, metavar="FILE", help="a .json file, for `dptree release`")

    release = command("release", _release, "release records by a plan that was written down", records, table)
    release.add_argument("--plan", type=Path, required=True, help="a .json file, from `dptree plan --out`")
    release.add_argument("--domain", type=Path, required=True, help="the same public keys as for the plan")

    command("demo", _demo, "release a simulated example population; needs no file")
    return parser


def _counts(arguments: argparse.Namespace) -> None:
    _check_out(arguments.out, ".csv", ".parquet")
    units = [] if arguments.privacy_unit is None else [arguments.privacy_unit]
    frame = _read(arguments.records, [*arguments.by, *units], "records")
    domain = arguments.domain
    if domain != "observed":
        domain = _read(Path(domain), arguments.by, "domain")
    released = api.tree_counts(frame, arguments.by, domain=domain, **_options(arguments))
    _write_table(released, arguments.out)


def _plan(arguments: argparse.Namespace) -> None:
    _check_out(arguments.out, ".json")
    domain = Domain.from_frame(_read(arguments.domain, arguments.by, "domain"), by=arguments.by)
    plan = api.plan(domain, target=_by_level("target", arguments.target), **_options(arguments))
    if arguments.out is not None:
        _write(arguments.out, lambda path: path.write_text(json.dumps(plan.to_dict()), encoding="utf-8"))
    print(plan)


def _release(arguments: argparse.Namespace) -> None:
    _check_out(arguments.out, ".csv", ".parquet")
    try:
        written = json.loads(arguments.plan.read_text(encoding="utf-8"))
        by = list(written["levels"][1:])
    except (OSError, ValueError, LookupError, TypeError):
        raise ArgumentError(
            "plan",
            f"cannot be read from {str(arguments.plan)!r}.",
            hint="write it with `dptree plan --out`.",
        ) from None
    plan = Plan.from_dict(written, Domain.from_frame(_read(arguments.domain, by, "domain"), by=by))
    print(plan.headline, file=sys.stderr)
    units = [] if plan.privacy_unit is None else [plan.privacy_unit]
    _write_table(plan.release(_read(arguments.records, [*by, *units], "records")), arguments.out)


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    names = (
        "epsilon", "delta", "rho", "neighbors", "privacy_unit", "max_contributions", "mechanism", "objective",
        "consistency", "fit",
    )  # fmt: skip
    options = {name: getattr(arguments, name) for name in names}
    options["split"] = _by_level("share", arguments.share) or arguments.split
    options["level_weights"] = _by_level("level_weight", arguments.level_weight)
    return options


def _by_level(argument: str, given: list[str] | None) -> dict[Hashable, float] | None:
    """Read LEVEL=NUMBER, as often as it was given."""
    if given is None:
        return None
    try:
        pairs = [(level, float(number)) for level, _, number in (each.rpartition("=") for each in given)]
    except ValueError:
        raise ArgumentError(
            argument, f"must be LEVEL=NUMBER, not {given!r}.", hint="for example county=25."
        ) from None
    if len(dict(pairs)) < len(pairs):
        raise ArgumentError(argument, f"names a level twice: {given!r}.", hint="name each level once.")
    return dict(pairs)


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


def _read(path: Path, columns: list[Any], argument: str) -> Any:
    """Read the columns that are needed; keys from a CSV file as text."""
    try:
        if _suffix(path, argument, ".csv", ".csv.gz", ".parquet") == ".csv":
            with warnings.catch_warnings(action="ignore"):
                frame = _read_csv(path, columns, argument)
        elif argument == "records":
            frame = _read_arrow(path, columns)
        else:
            frame = pd.read_parquet(path)
        check_columns(frame, columns, argument=argument)
        return frame[columns] if isinstance(frame, pd.DataFrame) else frame.select(columns)
    except ImportError:
        raise MissingExtraError("Reading Parquet", package="pyarrow", extra="engines") from None
    except DPTreeError:
        raise
    except Exception:  # what a reader says may quote the file
        pass
    raise ArgumentError(
        argument, f"cannot be read from {str(path)!r}.", hint="check that the file is there and well-formed."
    )


def _read_csv(path: Path, columns: list[Any], argument: str) -> pd.DataFrame:
    """Read each line by itself: what is too much in it is ignored, what it lacks is missing."""
    header = pd.read_csv(
        path, header=None, nrows=1, dtype=str, keep_default_na=False, skip_blank_lines=False
    ).iloc[0]
    frame = pd.read_csv(
        path, header=None, skiprows=1, names=range(len(header)), index_col=False, dtype=str,
        keep_default_na=False, na_values=[""], on_bad_lines="skip",
        encoding_errors="strict" if argument == "domain" else "replace",  # one record may not fail them all
        usecols=[place for place, name in enumerate(header) if name in columns],
    )  # fmt: skip
    frame.columns = pd.Index([name for name in header if name in columns])
    return frame


def _read_arrow(path: Path, columns: list[Any]) -> Any:
    """Read records without a change: in pandas, one missing number would round all others to floats."""
    table = importlib.import_module("pyarrow.parquet").read_table(path)
    for place, field in enumerate(table.schema):
        if field.name in columns and str(field.type).startswith("dictionary"):
            values = table.column(place).cast(field.type.value_type)
            table = table.set_column(place, field.name, values)
    return table


def _suffix(path: Path, argument: str, *known: str) -> str:
    suffix = ".csv" if path.name.lower().endswith(".csv.gz") else path.suffix.lower()
    if suffix not in known:
        raise ArgumentError(
            argument, f"is a file of unknown type: {str(path)!r}.", hint=f"use {' or '.join(known)}."
        )
    return suffix


def _check_out(path: Path | None, *known: str) -> None:
    """Find out before the budget is spent whether the file can be written."""
    if path is None:
        return
    if not path.resolve().parent.is_dir():
        raise ArgumentError(
            "out", f"is in a folder that does not exist: {str(path)!r}.", hint="make it first."
        )
    suffix = _suffix(path, "out", *known)
    try:
        if path.is_dir():
            raise IsADirectoryError
        tempfile.TemporaryDirectory(dir=path.resolve().parent, prefix=".dptree-").cleanup()
    except OSError:
        raise _unwritable(path) from None
    if suffix == ".parquet":
        try:
            importlib.import_module("pyarrow")
        except ImportError:
            raise MissingExtraError(
                "Writing Parquet", package="pyarrow", extra="engines", hint="or write a .csv file"
            ) from None


def _write_table(released: pd.DataFrame, path: Path | None) -> None:
    if path is None:
        released.to_csv(sys.stdout, index=False)
    elif path.suffix.lower() == ".parquet":
        _write(path, partial(released.to_parquet, index=False))
    else:
        _write(path, partial(released.to_csv, index=False))


def _write(path: Path, write: Callable[[Path], object]) -> None:
    """Write the whole file or nothing."""
    try:
        with tempfile.TemporaryDirectory(dir=path.resolve().parent, prefix=".dptree-") as scratch:
            write(Path(scratch) / path.name)
            os.replace(Path(scratch) / path.name, path)
    except OSError:
        raise _unwritable(path) from None


def _unwritable(path: Path) -> ArgumentError:
    return ArgumentError(
        "out", f"cannot be written: {str(path)!r}.", hint="name a file in a folder of yours."
    )

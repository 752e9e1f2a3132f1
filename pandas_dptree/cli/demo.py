"""``dptree demo``: a release of simulated records, or files of them to try the other commands on."""

from __future__ import annotations

import argparse
import os
from functools import partial
from pathlib import Path

from pandas_dptree import datasets
from pandas_dptree.errors import ArgumentError
from pandas_dptree.output.atomic_files import write_together

__all__ = ["add_options", "run"]


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument(
        "--files", action="store_true",
        help="write the simulated records to visits.csv and their public keys to places.csv, to try other "
        "commands on",
    )  # fmt: skip
    command.add_argument(
        "--out", type=Path, metavar="FOLDER", help="the folder of these files; by default the current one"
    )
    command.add_argument("--force", action="store_true", help="replace these files if they exist")


def run(arguments: argparse.Namespace) -> None:
    """Print a plan and a release of the simulated visits, or write the visits to files."""
    if arguments.files:
        _write_files(arguments.out or Path(), force=arguments.force)
        return
    for name in ("out", "force"):
        if getattr(arguments, name):
            raise ArgumentError(name, "has no meaning without --files.", hint="add --files.")
    by = ["region", "district", "clinic"]
    visits = datasets.clinic_visits()
    plan = visits.dp.plan(
        by, epsilon=1.0, domain=datasets.clinics(), privacy_unit="person", max_contributions=2
    )
    print("A simulated example population: visits to clinics. No person in it exists.\n")
    print(plan, end="\n\n")
    released = plan.release(visits)
    print(released.to_string(index=False, max_rows=24, na_rep="", formatters={"std_error": "{:.1f}".format}))


def _write_files(folder: Path, *, force: bool) -> None:
    """Write visits.csv and places.csv: both or neither, and without `force` only if neither exists."""
    frames = {"places.csv": datasets.clinics(), "visits.csv": datasets.clinic_visits()}
    files = {folder / name: partial(frame.to_csv, index=False) for name, frame in frames.items()}
    try:
        for path in files:
            if os.path.lexists(path) and not force:
                raise FileExistsError(None, None, str(path))
        write_together(files, replace=force)
    except FileExistsError as error:
        raise ArgumentError(
            "out",
            f"is a folder that already holds {Path(error.filename).name}: {str(folder)!r}.",
            hint="name another folder, or add --force to replace the files.",
        ) from None
    except OSError:
        raise ArgumentError(
            "out", f"cannot be written to: {str(folder)!r}.", hint="name a folder that exists."
        ) from None
    print("visits.csv: simulated visits to clinics. places.csv: the public list of all clinics.")

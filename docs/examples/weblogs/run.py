"""Simulate the logs of three web sites, and publish the report of a week; names of pages are private.

``python run.py [FOLDER]`` makes everything in the folder, by default in ``weblogs`` below the current one.
"""

import shutil
import sys
from pathlib import Path

import pandas_dptree as dpt
from pandas_dptree import datasets


def prepare(folder: Path) -> None:
    """Write what a publisher has: the logs, and a budget for half a year."""
    folder.mkdir(parents=True, exist_ok=True)
    datasets.web_visits(n_visitors=60_000).to_parquet(folder / "logs.parquet", index=False)
    if not (folder / "budget.sqlite").exists():
        dpt.Ledger.create(
            folder / "budget.sqlite", account="visitors", epsilon=26.0, delta=2.6e-6, privacy_unit="visitor"
        ).close()
    shutil.copy(Path(__file__).with_name("report.toml"), folder)


def main(folder: Path) -> None:
    """Prepare the folder, and run the programme: like ``dptree run report.toml --for 2025-W14``."""
    prepare(folder)
    programme = dpt.Programme.from_file(folder / "report.toml")
    print(programme.describe("2025-W14"))
    print(programme.run("2025-W14"))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "weblogs"))

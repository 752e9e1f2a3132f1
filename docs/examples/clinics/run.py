"""Simulate visits to clinics, and publish the reports of two months, by a budget of one year.

``python run.py [FOLDER]`` makes everything in the folder, by default in ``clinics`` below the current one.
If it runs again, the tables are those that the ledger keeps, and nothing is charged.
"""

import shutil
import sys
from pathlib import Path

import pandas_dptree as dpt
from pandas_dptree import datasets

MONTHS = ["2025-01", "2025-02"]


def prepare(folder: Path) -> None:
    """Write what a publisher has: records by month, the public list of clinics, and a budget."""
    (folder / "visits").mkdir(parents=True, exist_ok=True)
    visits = datasets.clinic_visits(n_people=200_000)
    for month in MONTHS:
        records = visits[visits["date"].dt.strftime("%Y-%m") == month]
        records.to_parquet(folder / "visits" / f"{month}.parquet", index=False)
    datasets.clinics().to_csv(folder / "clinics.csv", index=False)
    if not (folder / "budget.sqlite").exists():
        dpt.Ledger.create(
            folder / "budget.sqlite", account="patients", rho=0.24, privacy_unit="person"
        ).close()
    shutil.copy(Path(__file__).with_name("report.toml"), folder)


def main(folder: Path) -> None:
    """Prepare the folder, and run the programme: like ``dptree run report.toml --for 2025-01..2025-02``."""
    prepare(folder)
    programme = dpt.Programme.from_file(folder / "report.toml")
    print(programme.describe(MONTHS[0]))
    for month in MONTHS:
        print(programme.run(month))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "clinics"))

"""Simulate the persons of three states, and publish their number by place, age and sex, with all totals.

``python run.py [FOLDER]`` makes everything in the folder, by default in ``census`` below the current one.
"""

import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd

import pandas_dptree as dpt

STATES = {"A": "Aldmark", "B": "Brenvale", "C": "Corrow"}


def places() -> pd.DataFrame:
    """List the tracts, some of which are parks where nobody can live."""
    rows = [
        (state, f"{state}{county}", f"{state}{county}-{tract}")
        for size, state in enumerate(STATES, start=1)
        for county in range(1, 3 + 2 * size)
        for tract in range(1, 4 + (county * size) % 5)
    ]
    table = pd.DataFrame(rows, columns=["state", "county", "tract"])
    return table.assign(uninhabited=table.index % 17 == 16)


def persons(tracts: pd.DataFrame, n: int = 60_000, seed: int = 0) -> pd.DataFrame:
    """Simulate persons, whose ages depend on where they live. All of them are fictitious."""
    rng = np.random.default_rng(seed)
    weights = rng.gamma(0.8, size=len(tracts)) * ~tracts["uninhabited"]
    where = rng.choice(len(tracts), size=n, p=weights / weights.sum())
    older = rng.random(n) < 0.35 + 0.4 * (where % 3 == 0)
    age = np.where(older, rng.normal(62, 14, n), rng.gamma(2.4, 12, n)).clip(0, 110).astype(int)
    sex = np.where(rng.random(n) < np.where(age > 70, 0.58, 0.5), "F", "M")
    homes = tracts.iloc[where][["state", "county", "tract"]].reset_index(drop=True)
    return homes.assign(person=np.arange(n), age=age, sex=sex)


def prepare(folder: Path) -> None:
    """Write what a publisher has: the records, the public places, and the number of persons in each state."""
    folder.mkdir(parents=True, exist_ok=True)
    tracts = places()
    people = persons(tracts)
    people.to_parquet(folder / "persons.parquet", index=False)
    tracts.to_parquet(folder / "places.parquet", index=False)
    pd.Series(STATES, name="name").rename_axis("state").to_csv(folder / "state_names.csv")
    people.groupby("state").size().rename("count").to_csv(folder / "state_totals.csv")  # enacted as public
    shutil.copy(Path(__file__).with_name("report.toml"), folder)


def main(folder: Path) -> None:
    """Prepare the folder, and run the programme: like ``dptree run report.toml``."""
    prepare(folder)
    programme = dpt.Programme.from_file(folder / "report.toml")
    print(programme.describe())
    print(programme.run())


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "census"))

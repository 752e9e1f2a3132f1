"""Tables written to files, and read again."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd

import pandas_dptree as dpt
from tests.seeded.cases.register import case
from tests.seeded.cases.tables import counts, means, sums
from tests.seeded.data import APPROXIMATE, BY, CONCENTRATED, PEOPLE, PURE, logins, places, rng, visits


def there_and_back(table: pd.DataFrame) -> dict[str, Any]:
    """The files of a table, and what is read from them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table.dp.to_file(folder / "t.csv")
        table.dp.to_file(folder / "t.parquet")
        description = json.loads((folder / "t.csv.json").read_text(encoding="utf-8"))
        parquet = dpt.read_file(folder / "t.parquet")
        again = dpt.read_file(folder / "t.csv")
        return {
            "csv": (folder / "t.csv").read_text(encoding="utf-8"),
            "types": description["columns"],
            "described": sorted(description),
            "read": again,
            "equal": [again.equals(table), parquet.equals(table), again.attrs == table.attrs],
        }


@case
def files_of_counts():
    return there_and_back(counts(confidence=0.9, **PURE, **PEOPLE))


@case
def files_of_sums_and_means():
    return {
        "sums": there_and_back(sums(**CONCENTRATED)),
        "means": there_and_back(means("age", bounds=(0, 100), **APPROXIMATE)),
    }


@case
def files_of_keys_of_all_types():
    listed = pd.DataFrame(
        {
            "flag": [True, False, False],
            "text": ["00501", "=1+1", 'a\n"b", c'],
            "day": pd.to_datetime(["2024-02-29", "1999-12-31", "2024-03-01"]),
            "zoned": pd.to_datetime(["2024-02-29", "1999-12-31", "2024-03-01"]).tz_localize("Europe/Berlin"),
            "span": pd.to_timedelta(["1h", "2s", "-3D"]),
            "number": pd.array([2**53 + 1, -5, 0], dtype="Int64"),
            "half": [0.1, 2.5, -0.5],
            "kind": pd.Categorical(["b", "a", "b"], categories=["b", "a", "c"], ordered=True),
        }
    )
    frame = listed.iloc[[0, 0, 0, 1, 2, 2]]
    table = frame.dp.tree_counts(list(listed), domain=listed, split="uniform", rng=rng(), **PURE)
    return there_and_back(table)


@case
def files_of_prefixes_and_private_keys():
    prefixes = dpt.tree_counts(
        logins(), dpt.prefixes("ip", bits=[8, 32], notation="ipv4"), rng=rng(), **APPROXIMATE
    )
    keys = visits(2_000).dp.tree_counts(BY, private_keys=BY, rng=rng(), epsilon=4.0, delta=1e-3, **PEOPLE)
    return {"prefixes": there_and_back(prefixes), "private keys": there_and_back(keys)}


@case
def files_of_distributions():
    groups = {"by": ["region"], "domain": places()[["region"]].drop_duplicates()}
    found = visits().dp.release_distribution("age", bins=[0, 18, 40, 100], rng=rng(), **groups, **PURE)
    return {"cdf": there_and_back(found.cdf()), "histogram": there_and_back(found.histogram())}

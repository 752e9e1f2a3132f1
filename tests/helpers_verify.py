"""Runs of the verifier: on releases of a small hierarchy, and on plans that were edited."""

import contextlib
import copy
import csv
import hashlib
import io
import json

import numpy as np
import pandas as pd

from pandas_dptree import verify

BY = ["region", "district", "site"]
PLACES = pd.DataFrame(
    [
        ("a", "b", "c"), ("a", "b", "d"), ("a", "e", "c"), ("f", None, None), ("g", "h", None),
        ("g", "i", "j"), ("g", "i", "k"), ("g", "i", "l"),
    ],
    columns=BY,
)  # fmt: skip


def signed(stored):
    """The plan with the digest that belongs to it, as a forger would compute it too."""
    rest = {key: value for key, value in stored.items() if key not in ("digest", "version")}
    packed = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return {**stored, "digest": hashlib.sha256(packed.encode()).hexdigest()}


def checked(folder, stored, rows, *options):
    """Run the verifier on a plan (an object, or JSON text) and the rows of a table."""
    (folder / "plan.json").write_text(stored if isinstance(stored, str) else json.dumps(stored))
    with (folder / "counts.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = verify.main([str(folder / "plan.json"), str(folder / "counts.csv"), *options])
    return code, printed.getvalue()


def rows_of(table):
    return list(csv.reader(io.StringIO(table.to_csv(index=False))))


def records(n=400, seed=0):
    draws = np.random.default_rng(seed)
    values = {"cost": draws.normal(20, 30, n), "age": draws.random(n), "person": draws.integers(0, 150, n)}
    return PLACES.sample(n, replace=True, random_state=seed).reset_index(drop=True).assign(**values)


def released(plan, seed=0, data=None):
    given = records(seed=seed) if data is None else data
    table = plan.release(given, rng=np.random.default_rng(seed))
    return json.loads(json.dumps(plan.to_dict())), rows_of(table)


def edited(stored, *path, value):
    """A copy of the plan in which one entry is another; `value` may be a function of the old one."""
    forged = copy.deepcopy(stored)
    place = forged
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value(place[path[-1]]) if callable(value) else value
    return signed(forged)

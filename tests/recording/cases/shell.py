"""The shell command. It takes no seed, so tables have no noise to speak of, or lack what is noisy."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pandas as pd

from pandas_dptree.cli.commands import main
from tests.recording.cases.register import case
from tests.recording.data import places, visits

KEYS = ["--by", "region", "--by", "district", "--by", "clinic"]
PUBLIC = [*KEYS, "--domain", "places.csv"]
EXACT = ["--epsilon", "1000000000"]
COST = ["--column", "cost", "--bounds", "0", "500"]
PEOPLE = ["--privacy-unit", "person", "--max-contributions", "9"]


def run(*arguments: str, plan: Any = None) -> dict[str, Any]:
    """Run the command in a folder with files of records and keys, and read what it wrote."""
    out, err = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as name, chdir(name):
        folder = Path(name)
        visits().to_csv("visits.csv", index=False)
        visits().to_csv("visits.csv.gz", index=False)
        visits().to_parquet("visits.parquet")
        listed = places().assign(closed=[place in (3, 9) for place in range(len(places()))])
        listed.to_csv("places.csv", index=False)
        listed.to_parquet("places.parquet")
        known = pd.DataFrame({"region": ["North", "West"], "count": [425, None], "at_least": [None, 20]})
        known.assign(district=None, clinic=None).to_csv("known.csv", index=False)
        if plan is not None:
            Path("plan.json").write_text(json.dumps(plan), encoding="utf-8")
        before = {*folder.iterdir()}
        with redirect_stdout(out), redirect_stderr(err):
            try:
                code = main(arguments)
            except SystemExit as stopped:
                code = stopped.code
        written = {file.name: _read(file) for file in sorted({*folder.iterdir()} - before)}
    said = [line for line in err.getvalue().splitlines() if line.startswith("Plan")]
    return {"code": code, "out": _table(out.getvalue()), "said": said, **written}


def _read(file: Path) -> Any:
    if file.suffix == ".parquet":
        return pd.read_parquet(file)
    text = file.read_text(encoding="utf-8")
    return json.loads(text) if file.suffix == ".json" else _table(text)


def _table(text: str) -> Any:
    """Read what is a table, so that its numbers are compared as numbers."""
    if not text.startswith("level,"):
        return text
    return pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=[""])


def without_values(answer: Mapping[str, Any], *columns: str) -> dict[str, Any]:
    """Leave the columns that are noisy out of what was printed."""
    table = answer["out"]
    return {**answer, "out": table.drop(columns=list(columns)), "columns": list(table.columns)}


@case
def shell_counts():
    return {
        "csv": run("counts", "visits.csv", *PUBLIC, *EXACT),
        "gz": run("counts", "visits.csv.gz", *PUBLIC, *EXACT, *PEOPLE, "--neighbors", "replace"),
        "out": run("counts", "visits.parquet", *PUBLIC, *EXACT, "--out", "out.csv"),
        "parquet": run(
            "counts", "visits.parquet", *KEYS, "--domain", "places.parquet", *EXACT, "--out", "out.parquet"
        ),
    }


@case
def shell_counts_options():
    return {
        "observed": run(
            "counts", "visits.csv", *KEYS, "--domain", "observed", *EXACT, "--consistency", "linear"
        ),
        "impossible": run(
            "counts", "visits.csv", *PUBLIC, *EXACT, "--impossible", "closed", "--fit", "joint"
        ),
        "known": run("counts", "visits.csv", *PUBLIC, *EXACT, "--known", "known.csv", "--confidence", "0.9"),
        "measurements": run(
            "counts", "visits.csv", *PUBLIC, *EXACT, "--keep-measurements", "--split", "uniform"
        ),
    }


@case
def shell_counts_with_noise():
    options = ["--mechanism", "gaussian", "--objective", "cells", "--level-weight", "region=3"]
    factors = ["--mechanism", "multiplicative", "--alpha", "0.25", "--epsilon", "1", "--delta", "1e-6"]
    return {
        "gaussian": without_values(run("counts", "visits.csv", *PUBLIC, "--rho", "0.1", *options), "count"),
        "alpha": without_values(
            run("counts", "visits.csv", *PUBLIC, "--rho", "1", "--alpha", "0.1"), "count"
        ),
        "factors": without_values(run("counts", "visits.csv", *PUBLIC, *factors), "count", "error_bound"),
    }


@case
def shell_sums():
    age = ["--column", "age", "--bounds", "0", "100"]
    return {
        "one": run("sums", "visits.csv", *PUBLIC, *EXACT, *COST),
        "two": run("sums", "visits.csv", *PUBLIC, *EXACT, *COST, *age, *PEOPLE),
        "noise": without_values(run("sums", "visits.csv", *PUBLIC, "--rho", "0.1", *age), "age"),
    }


@case
def shell_means():
    values = ["--column", "age", "--bounds", "0", "100"]
    return {
        "one": run("means", "visits.csv", *PUBLIC, *EXACT, *values, "--confidence", "0.9"),
        "two": run(
            "means", "visits.csv", *PUBLIC, *EXACT, *values, "--column", "cost", "--out", "out.parquet"
        ),
    }


@case
def shell_plan():
    weights = ["--share", "region=0.25", "--share", "clinic=0.75"]
    factors = [
        "--epsilon",
        "1",
        "--delta",
        "1e-6",
        "--mechanism",
        "multiplicative",
        "--alpha",
        "0.25",
        "--clip",
    ]
    cost = ["--rho", "0.1", "--column", "cost", "--bounds", "-20", "500"]
    return {
        "counts": run("plan", *PUBLIC, "--epsilon", "1", *PEOPLE, "--out", "plan.json"),
        "target": run("plan", *PUBLIC, "--target", "district=5", "--target", "total=9", "--out", "plan.json"),
        "shares": run(
            "plan", *PUBLIC, "--rho", "0.1", *weights, "--neighbors", "replace", "--out", "plan.json"
        ),
        "factors": run("plan", *PUBLIC, *factors, "--out", "plan.json"),
        "sums": run(
            "plan", *PUBLIC, *cost, "--granularity", "0.5", "--impossible", "closed", "--out", "plan.json"
        ),
        "known": run("plan", *PUBLIC, "--epsilon", "1", "--known", "known.csv"),
    }


@case
def shell_release():
    made = {
        "counts": run("plan", *PUBLIC, *EXACT, *PEOPLE, "--confidence", "0.9", "--out", "plan.json"),
        "sums": run("plan", *PUBLIC, *EXACT, *COST, "--out", "plan.json"),
    }
    options = ["--plan", "plan.json", "--domain", "places.csv"]
    return {
        name: run("release", "visits.csv", *options, plan=each["plan.json"]) for name, each in made.items()
    } | {
        "parquet": run(
            "release", "visits.parquet", *options, "--out", "o.parquet", plan=made["sums"]["plan.json"]
        )
    }


@case
def shell_demo():
    """The plan, and of the table its first line and how many there are."""
    plan, table = run("demo")["out"].split("\n\n")[1:3]
    lines = table.splitlines()
    return {"plan": plan, "header": lines[0].split(), "n_lines": len(lines)}


@case
def shell_errors():
    """Whatever is wrong, nothing is printed and nothing written."""
    wrong = {
        "no loss": ["counts", "visits.csv", *PUBLIC],
        "no file": ["counts", "nothing.csv", *PUBLIC, *EXACT],
        "type": ["counts", "visits.csv", *PUBLIC, *EXACT, "--out", "out.xlsx"],
        "column": [
            "counts",
            "visits.csv",
            *PUBLIC,
            *EXACT,
            "--privacy-unit",
            "who",
            "--max-contributions",
            "1",
        ],
        "bounds": ["sums", "visits.csv", *PUBLIC, *EXACT, "--column", "age"],
        "plan": ["release", "visits.csv", "--plan", "places.csv", "--domain", "places.csv"],
        "usage": ["counts", "visits.csv", "--epsilom", "1"],
        "threshold": ["plan", *PUBLIC, "--epsilon", "1", "--threshold", "5"],
        "impossible": [
            "counts",
            "visits.csv",
            *KEYS,
            "--domain",
            "observed",
            *EXACT,
            "--impossible",
            "closed",
        ],
        "known": ["counts", "visits.csv", *PUBLIC, *EXACT, "--known", "places.csv"],
        "columns": ["plan", *PUBLIC, *EXACT, *COST, "--column", "age"],
        "level twice": ["plan", *PUBLIC, *EXACT, "--share", "region=1", "--share", "region=0"],
        "no number": ["plan", *PUBLIC, *EXACT, "--level-weight", "region"],
        "alpha": ["plan", *PUBLIC, "--epsilon", "1", "--mechanism", "multiplicative"],
    }
    answers = {name: run(*arguments) for name, arguments in wrong.items()}
    return {name: {**answer, "said": len(answer["said"])} for name, answer in answers.items()}

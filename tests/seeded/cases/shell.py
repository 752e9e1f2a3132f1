"""The shell command. It takes no seed, so tables have no noise to speak of, or lack what is noisy."""

from __future__ import annotations

import io
import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

import pandas_dptree as dpt
from pandas_dptree.cli.commands import main
from tests.seeded.cases.register import case
from tests.seeded.data import places, visits

KEYS = ["--by", "region", "--by", "district", "--by", "clinic"]
PUBLIC = [*KEYS, "--domain", "places.csv"]
EXACT = ["--epsilon", "1000000000"]
COST = ["--column", "cost", "--bounds", "0", "500"]
PEOPLE = ["--privacy-unit", "person", "--max-contributions", "9"]


def call(*arguments: str) -> dict[str, Any]:
    """Run the command in the present folder."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main(arguments)
        except SystemExit as stopped:
            code = stopped.code
    plans = [line for line in err.getvalue().splitlines() if line.startswith("Plan")]
    return {"code": code, "out": _table(out.getvalue()), "plans": plans}


@cache
def _inputs() -> dict[str, bytes]:
    """The files of records and keys."""
    listed = places().assign(closed=[place in (3, 9) for place in range(len(places()))])
    known = pd.DataFrame({"region": ["North", "West"], "count": [425, None], "at_least": [None, 20]})
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        visits().to_csv("visits.csv", index=False)
        visits().to_csv("visits.csv.gz", index=False)
        visits().to_parquet("visits.parquet")
        listed.to_csv("places.csv", index=False)
        listed.to_parquet("places.parquet")
        known.assign(district=None, clinic=None).to_csv("known.csv", index=False)
        return {file.name: file.read_bytes() for file in Path().iterdir()}


@contextmanager
def folder_with_inputs() -> Iterator[None]:
    """Make a folder with files of records and keys the present one."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for name, content in _inputs().items():
            Path(name).write_bytes(content)
        yield


def run(*arguments: str, plan: Any = None) -> dict[str, Any]:
    """Run the command in a folder with files of records and keys, and read what it wrote."""
    with folder_with_inputs():
        if plan is not None:
            Path("plan.json").write_text(json.dumps(plan), encoding="utf-8")
        before = {*Path().iterdir()}
        answer = call(*arguments)
        return answer | {file.name: _read(file) for file in sorted({*Path().iterdir()} - before)}


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
        "zeros": run("counts", "visits.csv", *PUBLIC, *EXACT, "--structural-zeros", "closed"),
        "known": run("counts", "visits.csv", *PUBLIC, *EXACT, "--known", "known.csv", "--confidence", "0.9"),
        "measurements": run(
            "counts", "visits.csv", *PUBLIC, *EXACT, "--keep", "measurements", "--split", "uniform"
        ),
    }


@case
def shell_counts_with_noise():
    options = ["--mechanism", "gaussian"]
    factors = ["--mechanism", "multiplicative", "--alpha", "0.25", "--epsilon", "1", "--delta", "1e-6"]
    return {
        "gaussian": without_values(run("counts", "visits.csv", *PUBLIC, "--rho", "0.1", *options), "count"),
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
    factors = [
        "--epsilon",
        "1",
        "--delta",
        "1e-6",
        "--mechanism",
        "multiplicative",
        "--alpha",
        "0.25",
    ]
    cost = ["--rho", "0.1", "--column", "cost", "--bounds", "-20", "500"]
    return {
        "counts": run("plan", *PUBLIC, "--epsilon", "1", *PEOPLE, "--out", "plan.json"),
        "target": run("plan", *PUBLIC, "--target", "district=5", "--target", "total=9", "--out", "plan.json"),
        "replace": run("plan", *PUBLIC, "--rho", "0.1", "--neighbors", "replace", "--out", "plan.json"),
        "factors": run("plan", *PUBLIC, *factors, "--out", "plan.json"),
        "sums": run(
            "plan",
            *PUBLIC,
            *cost,
            "--structural-zeros",
            "closed",
            "--out",
            "plan.json",
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


def _checks(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The status and the name of each check, without digests and numbers."""
    lines = [re.split(": |; ", line)[0] for line in answer["out"].splitlines()]
    return {"code": answer["code"], "checks": [line for line in lines if line[:4] in ("PASS", "FAIL")]}


@case
def shell_verify():
    plan = ["plan", *PUBLIC, "--confidence", "0.9", "--rho", "1e9", "--out", "plan.json"]
    release = ["release", "visits.csv", "--plan", "plan.json", "--domain", "places.csv"]
    with folder_with_inputs():
        codes = [call(*plan)["code"], call(*release, "--out", "counts.csv")["code"]]
        right = call("verify", "plan.json", "counts.csv")
        Path("counts.csv").write_text(Path("counts.csv").read_text().replace("North", "South", 1))
        wrong = call("verify", "plan.json", "counts.csv")
        return {"codes": codes, "right": _checks(right), "wrong": _checks(wrong)}


@case
def shell_ledger():
    create = ["ledger", "create", "budget.sqlite", "--account", "visits", "--rho", "2", "--delta", "1e-5"]
    add = ["ledger", "add", "budget.sqlite", "--account", "rows", "--epsilon", "1", "--each-row"]
    charge = ["--ledger", "budget.sqlite", "--account", "visits", "--privacy-unit", "person"]
    count = ["counts", "visits.csv", *PUBLIC, "--rho", "0.5", *charge, "--max-contributions", "2"]
    with folder_with_inputs():
        answers = [call(*create, "--privacy-unit", "person"), call(*add)]
        answers += [call(*count, "--note", note, "--out", f"{note}.csv") for note in "abcde"]
        with dpt.Ledger.open("budget.sqlite") as book:
            left = {name: book[name].remaining.to_dict() for name in book}
        answers.append(call("ledger", "verify", "budget.sqlite"))
        return {"codes": [each["code"] for each in answers], "left": left}

"""Counting ten million records, and estimating one and ten million leaves."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import pandas as pd

import pandas_dptree as dpt

BY = ["state", "county", "city"]


def seconds(call: Callable[[], object], repeats: int = 3) -> float:
    """Best time of several."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def people(n_rows: int, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Simulate people in 30,000 cities of very unequal sizes, with text keys, and list the cities."""
    rng = np.random.default_rng(seed)
    county = np.sort(rng.integers(0, 3_200, 30_000))
    places = pd.DataFrame(
        {
            "state": [f"State {c % 52:02d}" for c in county],
            "county": [f"County {c:04d}" for c in county],
            "city": [f"City {i:05d}" for i in range(len(county))],
        }
    )
    weight = rng.pareto(1.1, len(places)) + 0.05
    rows = rng.choice(len(places), n_rows, p=weight / weight.sum())
    return places.iloc[rows].reset_index(drop=True), places


def records(n_rows: int = 10_000_000) -> list[dict[str, object]]:
    """Time the whole release beside the roll-up that a user would write without privacy."""
    frame, places = people(n_rows)
    domain = dpt.Domain.from_frame(places, by=BY)
    table = []
    kinds = {"str": str(frame["state"].dtype), "object": "object", "category": "category"}
    for kind, dtype in kinds.items():
        typed = frame.astype({name: dtype for name in BY})
        roll_up = seconds(lambda f=typed: [f.groupby(BY[:k], observed=True).size() for k in (1, 2, 3)], 2)
        ours = seconds(lambda f=typed: f.dp.tree_counts(BY, epsilon=1.0, domain=domain), 2)
        table.append(
            {
                "what": f"tree_counts, {n_rows:,} rows, {kind} keys",
                "ours": f"{ours:.2f} s",
                "peer": f"{roll_up:.2f} s (non-private groupby)",
                "ratio": ours / roll_up,
                "target": "<= 0.6",
                "ok": ours <= 0.6 * roll_up,
            }
        )
    return table


def _release(branching: list[int], consistency: str) -> None:
    tree = dpt.Tree.from_branching(branching)
    rng = np.random.default_rng(0)
    leaves = rng.poisson(3.0, tree.n_leaves) * (rng.random(tree.n_leaves) < 0.3)
    plan = dpt.plan(tree, epsilon=1.0, consistency=consistency)
    elapsed = seconds(lambda: plan.release(leaves))
    print(elapsed, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)


def leaves() -> list[dict[str, object]]:
    """Time releases from exact leaf counts, each in a process of its own to see its memory."""
    table = []
    for consistency, branching, target in (
        ("linear", [100, 100, 100], 1.0),
        ("linear", [100, 100, 1000], 12.0),
        ("integer", [100, 100, 100], 1.5),
        ("integer", [100, 100, 1000], 18.0),
    ):
        code = f"from tests.benchmarks.bench_release import _release; _release({branching}, {consistency!r})"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        elapsed, gigabytes = map(float, done.stdout.split())
        table.append(
            {
                "what": f"{np.prod(branching):,} leaves, {consistency}, {gigabytes:.1f} GiB at most",
                "ours": f"{elapsed:.2f} s",
                "peer": "",
                "ratio": elapsed / target,
                "target": f"<= {target} s, 8 GiB",
                "ok": elapsed <= target and gigabytes <= 8,
            }
        )
    return table


def import_time() -> list[dict[str, object]]:
    """Time the import on top of pandas and xarray, each in fresh processes."""

    def fresh(code: str) -> float:
        return seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True), 7)

    base = fresh("import pandas, xarray")
    ours = fresh("import pandas, xarray, pandas_dptree") - base
    return [
        {
            "what": "import pandas_dptree, after pandas and xarray",
            "ours": f"{ours:.2f} s",
            "peer": f"{base:.2f} s (pandas and xarray)",
            "ratio": ours,
            "target": "<= 0.25 s",
            "ok": ours <= 0.25,
        }
    ]


def run() -> list[dict[str, object]]:
    """Measure everything in this module."""
    return [*import_time(), *leaves(), *records()]

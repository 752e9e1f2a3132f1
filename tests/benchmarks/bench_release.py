"""Counting ten million records, estimating one and ten million leaves, and how the time grows."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

import pandas_dptree as dpt
from pandas_dptree.estimation.estimators import Consistency, Fit

BY = ["state", "county", "city"]
MILLION, TEN_MILLION = [100, 100, 100], [100, 100, 1000]
# Trees of one depth, each ten times the one before, and how often each is timed.
GROWTH = (([10, 10, 100], 20), ([10, 100, 100], 10), (MILLION, 5), (TEN_MILLION, 2))


def seconds(call: Callable[[], object], repeats: int = 3) -> float:
    """Best time of several."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def people(n_rows: int, n_places: int = 90_000, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Simulate people in cities of very unequal sizes, with text keys, and list the cities."""
    rng = np.random.default_rng(seed)
    county = np.sort(rng.integers(0, 3_200, n_places))
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
    kinds = (
        ("str", str(frame["state"].dtype), 0.35),
        ("object", "object", 0.6),
        ("category", "category", 0.6),
    )
    for kind, dtype, most in kinds:
        typed = frame.astype({name: dtype for name in BY})
        roll_up = seconds(lambda f=typed: [f.groupby(BY[:k], observed=True).size() for k in (1, 2, 3)], 2)
        ours = seconds(lambda f=typed: f.dp.tree_counts(BY, epsilon=1.0, domain=domain), 2)
        table.append(
            {
                "what": f"tree_counts, {n_rows:,} rows, {kind} keys",
                "ours": f"{ours:.2f} s",
                "peer": f"{roll_up:.2f} s (non-private groupby)",
                "ratio": ours / roll_up,
                "target": f"<= {most}",
                "ok": ours <= most * roll_up,
            }
        )
    return [*table, *units(frame, domain)]


def units(frame: pd.DataFrame, domain: dpt.Domain) -> list[dict[str, object]]:
    """Time the release with three million people to protect, each with a few of the records."""
    roll_up = seconds(lambda: [frame.groupby(BY[:k], observed=True).size() for k in (1, 2, 3)], 2)
    person = np.random.default_rng(1).integers(0, 3 * len(frame) // 10, len(frame))
    options = {"epsilon": 1.0, "domain": domain, "privacy_unit": "person", "max_contributions": 1}
    table = []
    for kind, target in (("int64", 1.2), ("str", 1.7)):
        records = frame.assign(person=pd.Series(person).astype(kind))
        ours = seconds(lambda records=records: records.dp.tree_counts(BY, **options), 2)
        table.append(
            {
                "what": f"tree_counts, {len(frame):,} rows, privacy unit of {kind}",
                "ours": f"{ours:.2f} s",
                "peer": f"{roll_up:.2f} s (non-private groupby)",
                "ratio": ours / roll_up,
                "target": f"<= {target}",
                "ok": ours <= target * roll_up,
            }
        )
    return table


def _release_seconds(branching: list[int], consistency: Consistency, fit: Fit, repeats: int = 3) -> float:
    """Time releases from exact leaf counts to the frame, in a tree of which seven leaves in ten are empty."""
    tree = dpt.Tree.from_branching(branching)
    rng = np.random.default_rng(0)
    leaves = rng.poisson(3.0, tree.n_leaves) * (rng.random(tree.n_leaves) < 0.3)
    plan = dpt.plan(tree, epsilon=1.0, consistency=consistency, fit=fit)
    return seconds(lambda: plan.release(leaves), repeats)


def _release(branching: list[int], consistency: Consistency, fit: Fit) -> None:
    print(_release_seconds(branching, consistency, fit))
    print(peak_gigabytes())


def _growth() -> None:
    for branching, repeats in GROWTH:
        print(_release_seconds(branching, "integer", "totals", repeats))


def peak_gigabytes() -> float:
    """Give the most memory that this program has had: Linux tells it apart from that of its parent."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.search(r"VmHWM:\s*(\d+)", status.read_text())[1]) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def _in_a_process(call: str) -> list[float]:
    """Read the numbers that a function of this module prints in a process of its own."""
    code = f"from tests.benchmarks import bench_release; bench_release.{call}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [float(number) for number in done.stdout.split()]


def leaves() -> list[dict[str, object]]:
    """Time releases from exact leaf counts, each in a process of its own to see its memory."""
    table = []
    for consistency, fit, branching, target in (
        ("linear", "totals", MILLION, 1.0),
        ("linear", "totals", TEN_MILLION, 12.0),
        ("integer", "totals", MILLION, 1.5),
        ("integer", "totals", TEN_MILLION, 18.0),
        ("integer", "joint", MILLION, 4.0),
        ("integer", "joint", TEN_MILLION, 18.0),
    ):
        elapsed, gigabytes = _in_a_process(f"_release({branching}, {consistency!r}, {fit!r})")
        by = f"{consistency}, {fit}" if consistency == "integer" else consistency
        table.append(
            {
                "what": f"{np.prod(branching):,} leaves, {by}, {gigabytes:.1f} GiB at most",
                "ours": f"{elapsed:.2f} s",
                "peer": "",
                "ratio": elapsed / target,
                "target": f"<= {target} s, 8 GiB",
                "ok": elapsed <= target and gigabytes <= 8,
            }
        )
    return table


def growth() -> list[dict[str, object]]:
    """Fit the exponent with which the time grows with the leaves, from ten thousand to ten million."""
    times = _in_a_process("_growth()")
    sizes = [np.prod(branching) for branching, _ in GROWTH]
    exponent = np.polyfit(np.log(sizes), np.log(times), 1)[0]
    return [
        {
            "what": f"growth of time with the leaves, {sizes[0]:,} to {sizes[-1]:,}, integer",
            "ours": ", ".join(f"{time:.2g}" for time in times) + " s",
            "peer": "",
            "ratio": exponent,
            "target": "exponent <= 1.15",
            "ok": exponent <= 1.15,
        }
    ]


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
    return [*import_time(), *leaves(), *growth(), *records()]

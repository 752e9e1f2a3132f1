"""Five ratios of CPU time, compared with those recorded beside this file.

    python -m tests.benchmarks.ratios            # exit status 1 if a ratio is 1.5 times the recorded one
    python -m tests.benchmarks.ratios --record   # measures anew, and writes ratios.json

Each is the CPU time of a release over that of a fixed piece of work with pandas or numpy. The two take turns,
and the ratio is the median over the pairs, so it depends little on the machine and on what else runs there.
This takes about a minute of CPU time.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time

import numpy as np
import pandas as pd

import pandas_dptree as dpt
from tests.benchmarks.bench_release import BY, MILLION, people

RECORDED = Path(__file__).with_name("ratios.json")
SLACK = 1.5
"""How many times the recorded ratio is too much: noise of other load stays well below."""

Pair = tuple[Callable[[], object], Callable[[], object]]


def roll_up(frame: pd.DataFrame) -> list[pd.Series]:
    """Count each level as a user would without privacy."""
    return [frame.groupby(BY[:k], observed=True).size() for k in (1, 2, 3)]


def text_keys() -> Pair:
    """Counts of four million rows with text keys, beside the roll-up."""
    frame, places = people(4_000_000)
    domain = dpt.Domain.from_frame(places, by=BY)
    return lambda: frame.dp.tree_counts(BY, epsilon=1.0, domain=domain), lambda: roll_up(frame)


def units() -> Pair:
    """The same with two million rows of 600,000 people, of whom one row each is counted."""
    frame, places = people(2_000_000)
    domain = dpt.Domain.from_frame(places, by=BY)
    frame["person"] = np.random.default_rng(1).integers(0, 600_000, len(frame))
    options = {"epsilon": 1.0, "domain": domain, "privacy_unit": "person", "max_contributions": 1}
    return lambda: frame.dp.tree_counts(BY, **options), lambda: roll_up(frame)


def small_tables() -> Pair:
    """A thousand rows and 300 leaves, thirty times, beside as many roll-ups."""
    frame, places = people(1_000, 300)
    domain = dpt.Domain.from_frame(places, by=BY)
    return (
        lambda: [frame.dp.tree_counts(BY, epsilon=1.0, domain=domain) for _ in range(30)],
        lambda: [roll_up(frame) for _ in range(30)],
    )


def million_leaves() -> Pair:
    """From a million leaf counts to consistent integers in a frame, beside a sort of four million floats."""
    tree = dpt.Tree.from_branching(MILLION)
    random = np.random.default_rng(0)
    leaves = random.poisson(3.0, tree.n_leaves) * (random.random(tree.n_leaves) < 0.3)
    plan = dpt.plan(tree, epsilon=1.0)
    floats = random.random(4_000_000)
    return lambda: plan.release(leaves), lambda: np.sort(floats)


def imports() -> Pair:
    """The import, in a process where pandas and xarray are imported, beside the import of these two."""
    compiled = tempfile.mkdtemp(prefix="compiled-")
    atexit.register(shutil.rmtree, compiled, ignore_errors=True)
    variables = {**os.environ, "PYTHONPYCACHEPREFIX": compiled}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)

    def fresh(names: str) -> None:
        subprocess.run([sys.executable, "-c", f"import {names}"], check=True, env=variables)

    return lambda: fresh("pandas, xarray, pandas_dptree"), lambda: fresh("pandas, xarray")


MEASURES = {make.__name__: make for make in (text_keys, units, small_tables, million_leaves, imports)}
"""The measures, each of which prepares its data and returns both calls."""


def cpu_seconds(call: Callable[[], object]) -> float:
    """CPU time of a call in all threads of this process, and in the processes that it starts."""

    def spent() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return process_time() + children.ru_utime + children.ru_stime

    start = spent()
    call()
    return spent() - start


def ratio(name: str, pairs: int) -> tuple[float, float, float]:
    """The median ratio of a measure, and the median CPU seconds of both sides."""
    ours, peer = MEASURES[name]()
    ours(), peer()  # caches are warm
    seconds = [(cpu_seconds(ours), cpu_seconds(peer)) for _ in range(pairs)]
    if name == "imports":
        seconds = [(whole - other, other) for whole, other in seconds]
    first, second = zip(*seconds, strict=True)
    middle = statistics.median(one / other for one, other in seconds)
    return middle, statistics.median(first), statistics.median(second)


def main(argv: list[str] | None = None) -> int:
    """Measure, print, and compare or record."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.ratios", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="some of the measures; all by default")
    parser.add_argument("--record", action="store_true", help="write the ratios, and compare nothing")
    parser.add_argument("--pairs", type=int, default=7, help="how often both sides are measured")
    arguments = parser.parse_args(argv)
    names = arguments.names or list(MEASURES)
    if unknown := sorted(set(names) - set(MEASURES)):
        parser.error(f"no such measures: {', '.join(unknown)}")
    recorded = json.loads(RECORDED.read_text("utf-8")) if RECORDED.exists() else {"ratios": {}}
    found, worse = {}, []
    for name in names:
        middle, ours, peer = ratio(name, arguments.pairs)
        before = recorded["ratios"].get(name, float("nan"))
        found[name] = float(f"{middle:.3g}")
        worse += [name] if not arguments.record and middle > SLACK * before else []
        print(
            f"{name:<15} {middle:6.3f} ({ours:.3f} s / {peer:.3f} s), recorded {before:.3f}"
            f"{', WORSE' if name in worse else ''}",
            flush=True,
        )
    if arguments.record:
        machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        machine += f"pandas {pd.__version__}, numpy {np.__version__}"
        content = {"machine": machine, "ratios": recorded["ratios"] | found}
        RECORDED.write_text(f"{json.dumps(content, indent=1)}\n", encoding="utf-8")
    return int(bool(worse))


if __name__ == "__main__":
    sys.exit(main())

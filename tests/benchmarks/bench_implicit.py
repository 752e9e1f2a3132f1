"""Trees too large to be listed: a million addresses, and a million numbers of 64 bits."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pandas as pd

from pandas_dptree.hierarchy.levels import PrefixTree, binary, prefixes
from pandas_dptree.implicit import plan_implicit
from tests.benchmarks.bench_release import peak_gigabytes, seconds

N_ROWS = 1_000_000


def addresses(as_text: bool) -> tuple[pd.DataFrame, PrefixTree]:
    """Simulate addresses, a few blocks of which hold most rows."""
    rng = np.random.default_rng(0)
    a, b, c = (rng.zipf(1.3, N_ROWS) % 256 for _ in range(3))
    d = rng.integers(0, 256, N_ROWS)
    if not as_text:
        return pd.DataFrame({"ip": a << 24 | b << 16 | c << 8 | d}), prefixes("ip", bits=[8, 16, 24, 32])
    octets = zip(*(octet.tolist() for octet in (a, b, c, d)), strict=True)
    texts = [f"{a}.{b}.{c}.{d}" for a, b, c, d in octets]
    return pd.DataFrame({"ip": pd.Series(texts, dtype="str")}), prefixes("ip", bits=[8, 16, 24, 32])


def numbers() -> tuple[pd.DataFrame, PrefixTree]:
    """Simulate identifiers of 64 bits: half of them occur once, the others belong to some of 2,000."""
    rng = np.random.default_rng(0)
    once = rng.integers(2**64, size=N_ROWS // 2, dtype=np.uint64)
    often = rng.integers(2**64, size=2_000, dtype=np.uint64)[rng.zipf(1.3, N_ROWS // 2) % 2_000]
    return pd.DataFrame({"user": np.concatenate([once, often])}), binary("user", bits=64)


CASES: dict[str, Callable[[], tuple[pd.DataFrame, PrefixTree]]] = {
    "whole addresses, 4 levels": lambda: addresses(as_text=False),
    "addresses as text, 4 levels": lambda: addresses(as_text=True),
    "numbers, 64 levels": numbers,
}
TARGETS = {"whole addresses, 4 levels": 0.5, "addresses as text, 4 levels": 4.0, "numbers, 64 levels": 3.0}


def _release(name: str) -> None:
    frame, tree = CASES[name]()
    plan = plan_implicit(tree, epsilon=1.0, delta=1e-6)
    print(seconds(lambda: plan.release(frame)))
    print(peak_gigabytes())
    print(plan.noise[-1].radius)


def run() -> list[dict[str, object]]:
    """Measure everything in this module, each case in a process of its own to see its memory."""
    table = []
    for name, target in TARGETS.items():
        code = f"from tests.benchmarks import bench_implicit; bench_implicit._release({name!r})"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        elapsed, gigabytes, radius = map(float, done.stdout.split())
        table.append(
            {
                "what": f"prefixes, {N_ROWS:,} {name}, R = {radius:.0f}, {gigabytes:.2f} GiB at most",
                "ours": f"{elapsed:.2f} s",
                "peer": "",
                "ratio": elapsed / target,
                "target": f"<= {target} s, 1 GiB",
                "ok": elapsed <= target and gigabytes <= 1,
            }
        )
    return table

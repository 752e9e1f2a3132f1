"""Implicit trees: a million addresses, and a million numbers of 64 bits."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pandas as pd

import pandas_dptree as dpt
from pandas_dptree.hierarchy.levels.prefixes import PrefixTree, binary, prefixes
from pandas_dptree.mechanisms.multiplicative.guarantees import Multiplicative
from tests.benchmarks.bench_release import peak_gigabytes, seconds

N_ROWS = 1_000_000


def addresses(as_text: bool) -> tuple[pd.DataFrame, PrefixTree]:
    """Simulate addresses, a few blocks of which hold most rows."""
    rng = np.random.default_rng(0)
    a, b, c = (rng.zipf(1.3, N_ROWS) % 256 for _ in range(3))
    d = rng.integers(0, 256, N_ROWS)
    if not as_text:
        return pd.DataFrame({"ip": a << 24 | b << 16 | c << 8 | d}), prefixes(
            "ip", bits=[8, 16, 24, 32], notation="ipv4"
        )
    octets = zip(*(octet.tolist() for octet in (a, b, c, d)), strict=True)
    texts = [f"{a}.{b}.{c}.{d}" for a, b, c, d in octets]
    return pd.DataFrame({"ip": pd.Series(texts, dtype="str")}), prefixes(
        "ip", bits=[8, 16, 24, 32], notation="ipv4"
    )


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
TARGETS = {
    ("whole addresses, 4 levels", False): 0.5,
    ("addresses as text, 4 levels", False): 4.0,
    ("numbers, 64 levels", False): 3.0,
    ("whole addresses, 4 levels", True): 1.0,
    ("numbers, 64 levels", True): 5.0,
}
"""Seconds, by the case and whether counts have bounded relative error."""


def _release(name: str, up_to_a_factor: bool) -> None:
    frame, tree = CASES[name]()
    if up_to_a_factor:
        factors = dpt.plan(tree, epsilon=1.0, delta=1e-6, mechanism=Multiplicative(alpha=0.25))
        release, unseen = factors.release, factors.largest_unseen
    else:
        plan = dpt.plan(tree, epsilon=1.0, delta=1e-6, mechanism="truncated_laplace", split="uniform")
        release, unseen = plan.release, plan.noise.largest_unseen[-1]
    print(seconds(lambda: release(frame)))
    print(peak_gigabytes())
    print(unseen)


def run() -> list[dict[str, object]]:
    """Measure everything in this module, each case in a process of its own to see its memory."""
    table = []
    for (name, up_to_a_factor), target in TARGETS.items():
        call = f"_release({name!r}, {up_to_a_factor})"
        code = f"from tests.benchmarks import bench_implicit; bench_implicit.{call}"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        elapsed, gigabytes, unseen = map(float, done.stdout.split())
        kind = "right up to 0.25" if up_to_a_factor else "truncated Laplace"
        table.append(
            {
                "what": f"prefixes, {N_ROWS:,} {name}, {kind}, largest unseen {unseen:.0f}, "
                f"{gigabytes:.2f} GiB at most",
                "ours": f"{elapsed:.2f} s",
                "peer": "",
                "ratio": elapsed / target,
                "target": f"<= {target} s, 1 GiB",
                "ok": elapsed <= target and gigabytes <= 1,
            }
        )
    return table

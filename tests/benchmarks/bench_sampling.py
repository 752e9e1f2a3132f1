"""Exact draws per second, ours and OpenDP's, measured in turns in one process.

Run with ``python -m tests.benchmarks.bench_sampling``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import opendp.prelude as dp

from pandas_dptree.mechanisms.sampling import byte_source, discrete_gaussian, discrete_laplace

SCALES = (3.0, 10.0, 1e3, 1e6)
SMALL = 100  # draws: a small level of a tree
ROUNDS = 5


def run() -> list[dict[str, Any]]:
    """Measure: a row per law and scale, and one per law for the cost of a small call."""
    dp.enable_features("contrib")
    source = byte_source(None)
    space = dp.vector_domain(dp.atom_domain(T=int))
    laws = {
        "discrete Laplace": (discrete_laplace, dp.m.make_laplace, dp.l1_distance(T=int)),
        "discrete Gaussian": (discrete_gaussian, dp.m.make_gaussian, dp.l2_distance(T=int)),
    }
    n, n_peer = 1_000_000, 10_000
    rows = []
    for law, (sampler, make, metric) in laws.items():
        for scale in SCALES:
            measure = make(space, metric, scale=scale)
            ours, peer = in_turns(partial(sampler, scale, n, source), partial(measure, [0] * n_peer))
            ratio = (n / ours) / (n_peer / peer)
            rows.append(
                {
                    "what": f"{law}, scale {scale:g}",
                    "ours": f"{n / ours / 1e6:.1f} M/s",
                    "peer": f"{n_peer / peer / 1e6:.2f} M/s (OpenDP)",
                    "ratio": ratio,
                    "target": ">= 40",
                    "ok": ratio >= 40,
                }
            )
        measure = make(space, metric, scale=10.0)
        ours, peer = in_turns(partial(sampler, 10.0, SMALL, source), partial(measure, [0] * SMALL))
        rows.append(
            {
                "what": f"{law}, a call of {SMALL}",
                "ours": f"{ours * 1e6:.0f} µs",
                "peer": f"{peer * 1e6:.0f} µs (OpenDP)",
                "ratio": ours / peer,
                "target": "<= 1 ms",
                "ok": ours <= 1e-3,
            }
        )
    return rows


def in_turns(*calls: Callable[[], object]) -> list[float]:
    """Seconds that each call takes, the best of some rounds in which they take turns."""
    best = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for i, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def main() -> None:
    """Print the rows as a table."""
    layout = "{:30}{:>12}{:>22}{:>10}{:>10}  {}"
    print(layout.format("what", "ours", "peer", "ratio", "target", "ok"))
    for row in run():
        ratio, ok = f"{row['ratio']:.3g}", "yes" if row["ok"] else "NO"
        print(layout.format(row["what"], row["ours"], row["peer"], ratio, row["target"], ok))


if __name__ == "__main__":
    main()

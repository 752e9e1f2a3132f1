"""Exact draws per second, ours and OpenDP's, measured in turns in one process.

Run with ``python -m tests.benchmarks.bench_sampling``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import opendp.prelude as dp

from pandas_dptree.mechanisms.sampling import byte_source, discrete_gaussian, discrete_laplace

SCALES = (3.0, 10.0, 1e3, 1e6)
SMALL = 100  # draws: a small level of a tree
SMALL_PER_SECOND = 1000  # a small call costs less than a millisecond
TARGET = 40.0  # times OpenDP's draws per second
ROUNDS = 5


def run() -> list[dict[str, Any]]:
    """Measure; a row per law and scale, and one per law for the small call, in calls per second."""
    dp.enable_features("contrib")
    source = byte_source(None)
    space = dp.vector_domain(dp.atom_domain(T=int))
    laws = {
        "laplace": (discrete_laplace, dp.m.make_laplace, dp.l1_distance(T=int)),
        "gaussian": (discrete_gaussian, dp.m.make_gaussian, dp.l2_distance(T=int)),
    }
    rows = []
    for law, (sampler, make, metric) in laws.items():
        for scale in SCALES:
            measure, n_ours, n_theirs = make(space, metric, scale=scale), 1_000_000, 10_000
            zeros = [0] * n_theirs
            ours, theirs = _in_turns(lambda: sampler(scale, n_ours, source), lambda: measure(zeros))  # noqa: B023
            rows.append(_row(f"{law}, scale {scale:g}", n_ours / ours, n_theirs / theirs, TARGET))
        ours, theirs = _in_turns(lambda: sampler(10.0, SMALL, source), lambda: measure([0] * SMALL))  # noqa: B023
        rows.append(_row(f"{law}, calls of {SMALL}", 1 / ours, 1 / theirs, None))
    return rows


def _in_turns(*calls: Callable[[], Any]) -> list[float]:
    """Seconds of each call, the best of some rounds in which they take turns."""
    best = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for i, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def _row(what: str, ours: float, peer: float, target: float | None) -> dict[str, Any]:
    ratio = ours / peer
    return {
        "what": what,
        "ours per second": ours,
        "peer per second": peer,
        "ratio": ratio,
        "target": f"{target:g}x" if target else f"{SMALL_PER_SECOND}/s",
        "ok": ratio >= target if target else ours >= SMALL_PER_SECOND,
    }


def main() -> None:
    """Print the rows as a table."""
    print(f"{'draws':26}{'ours/s':>14}{'OpenDP/s':>14}{'ratio':>8}{'target':>9}  ok")
    for row in run():
        print(
            f"{row['what']:26}{row['ours per second']:14,.0f}{row['peer per second']:14,.0f}"
            f"{row['ratio']:8.0f}{row['target']:>9}  {'yes' if row['ok'] else 'NO'}"
        )


if __name__ == "__main__":
    main()

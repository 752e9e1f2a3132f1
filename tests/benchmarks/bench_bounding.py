"""Bounding the rows of three million people, with and without a cap on their rows in a leaf."""

from __future__ import annotations

import statistics

import numpy as np

import pandas_dptree as dpt
from pandas_dptree.ingest.contributions import leaf_totals
from tests.benchmarks.bench_release import BY, people
from tests.benchmarks.ratios import cpu_seconds


def run(n_rows: int = 10_000_000, pairs: int = 5) -> list[dict[str, object]]:
    """Compare the CPU time of reading and counting records, both in turns."""
    frame, places = people(n_rows)
    domain = dpt.Domain.from_frame(places, by=BY)
    random = np.random.default_rng(1)
    frame["person"] = random.integers(0, 3 * n_rows // 10, n_rows)
    table = []
    for k in (1, 3, 12):

        def count(*caps: int | None, k: int = k) -> float:
            return cpu_seconds(
                lambda: leaf_totals(
                    frame, domain, privacy_unit="person", max_contributions=k, caps=caps,
                    random_words=lambda n: random.integers(2**64, size=n, dtype=np.uint64),
                )
            )  # fmt: skip

        with_cap, without = zip(*[(count(None, None, None, 1), count()) for _ in range(pairs)], strict=True)
        ratio = statistics.median(one / other for one, other in zip(with_cap, without, strict=True))
        table.append(
            {
                "what": f"bounding {n_rows:,} rows to {k} of a person, one in a leaf",
                "ours": f"{statistics.median(with_cap):.2f} s of CPU time",
                "peer": f"{statistics.median(without):.2f} s (without a cap on leaves)",
                "ratio": ratio,
                "target": "<= 1.3",
                "ok": ratio <= 1.3,
            }
        )
    return table

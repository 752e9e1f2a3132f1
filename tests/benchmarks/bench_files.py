"""Files that keep the meaning of a million rows, beside those of pandas that do not."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

import pandas_dptree as dpt
from tests.benchmarks.bench_release import seconds


def table(n_rows: int = 1_000_000) -> pd.DataFrame:
    """Make a released table of cities, with text keys."""
    rng, city = np.random.default_rng(0), np.arange(n_rows)
    levels = ["total", "state", "county", "city"]
    released = pd.DataFrame(
        {
            "level": pd.Categorical.from_codes(np.full(n_rows, 3), categories=levels, ordered=True),
            "state": [f"State {i:02d}" for i in city * 50 // n_rows],
            "county": [f"County {i:04d}" for i in city * 3_000 // n_rows],
            "city": [f"City {i:06d}" for i in city],
            "count": rng.integers(0, 1_000, n_rows),
            "std_error": rng.random(n_rows),
        }
    )
    released.attrs["dp"] = {"epsilon": 1.0}
    return released


def run() -> list[dict[str, object]]:
    """Time writing and reading of CSV and Parquet."""
    released = table()
    with tempfile.TemporaryDirectory() as folder:
        csv, parquet, plain = (Path(folder) / name for name in ("a.csv", "a.parquet", "plain"))
        calls: dict[str, tuple[Callable[[], object], Callable[[], object], float]] = {
            "to_file, CSV": (
                lambda: dpt.to_file(released, csv), lambda: released.to_csv(plain, index=False), 1.5
            ),
            "read_file, CSV": (lambda: dpt.read_file(csv), lambda: pd.read_csv(csv), 4.0),
            "to_file, Parquet": (
                lambda: dpt.to_file(released, parquet), lambda: released.to_parquet(plain), np.inf
            ),
            "read_file, Parquet": (lambda: dpt.read_file(parquet), lambda: pd.read_parquet(parquet), np.inf),
        }  # fmt: skip
        times = {what: (seconds(ours), seconds(peer), most) for what, (ours, peer, most) in calls.items()}
    return [
        {
            "what": f"{what}, {len(released):,} rows, text keys",
            "ours": f"{ours:.2f} s",
            "peer": f"{peer:.2f} s (pandas, without the meaning)",
            "ratio": ours / peer,
            "target": f"<= {most}" if most < np.inf else "none",
            "ok": ours <= most * peer,
        }
        for what, (ours, peer, most) in times.items()
    ]

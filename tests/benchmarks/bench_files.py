"""Files that keep the meaning of a million rows, beside those of pandas that do not."""

from __future__ import annotations

import tempfile
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
    released, rows = table(), []
    with tempfile.TemporaryDirectory() as folder:
        for suffix, most in ((".csv", (1.5, 3.0)), (".parquet", (None, None))):
            plain, ours = (Path(folder) / f"{name}{suffix}" for name in ("plain", "ours"))
            to_plain, read_plain = (
                (released.to_csv, pd.read_csv) if suffix == ".csv" else (released.to_parquet, pd.read_parquet)
            )
            times = {
                "to_file": (lambda: dpt.to_file(released, ours), lambda: to_plain(plain, index=False)),
                "read_file": (lambda: dpt.read_file(ours), lambda: read_plain(plain)),
            }
            for (what, calls), limit in zip(times.items(), most, strict=True):
                own, peer = map(seconds, calls)
                rows.append(
                    {
                        "what": f"{what}, {suffix}, {len(released):,} rows, text keys",
                        "ours": f"{own:.2f} s",
                        "peer": f"{peer:.2f} s (pandas, without types)",
                        "ratio": own / peer,
                        "target": "none" if limit is None else f"<= {limit}",
                        "ok": limit is None or own <= limit * peer,
                    }
                )
    return rows

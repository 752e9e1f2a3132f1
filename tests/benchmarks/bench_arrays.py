"""Releasing maps of millions of squares, as arrays and as records."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pandas as pd
import xarray as xr

import pandas_dptree as dpt
from tests.benchmarks.bench_release import peak_gigabytes


def _cells(n: int) -> np.ndarray:
    """Simulate very unequal counts, many of them 0."""
    rng = np.random.default_rng(0)
    return rng.poisson(rng.gamma(0.3, 3.0, (n, n)))


def _map(n: int, depth: int, mechanism: str) -> None:
    """Plan and release a quadtree over the cells of an array, to whole numbers that add up."""
    array = xr.DataArray(_cells(n), dims=["y", "x"])
    start = time.perf_counter()
    array.dp.tree_counts(dpt.quadtree("y", "x", depth=depth), epsilon=1.0, delta=1e-6, mechanism=mechanism)
    print(time.perf_counter() - start)
    print(peak_gigabytes())


def _records(n: int, depth: int) -> None:
    """Release the same quadtree from records, with the domain made anew and every key written out."""
    y, x = np.nonzero(_cells(n))
    frame = pd.DataFrame({"y": y + 0.5, "x": x + 0.5})
    start = time.perf_counter()
    frame.dp.tree_counts(dpt.quadtree("y", "x", depth=depth, bounds=((0, n), (0, n))), epsilon=1.0)
    print(time.perf_counter() - start)
    print(peak_gigabytes())


def _row(what: str, call: str, target: float) -> dict[str, object]:
    """Time a function of this module in a process of its own, to see its memory."""
    code = f"from tests.benchmarks import bench_arrays; bench_arrays.{call}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    elapsed, gigabytes = map(float, done.stdout.split())
    return {
        "what": f"{what}, {gigabytes:.1f} GiB at most",
        "ours": f"{elapsed:.2f} s",
        "peer": "",
        "ratio": elapsed / target,
        "target": f"<= {target} s, 6 GiB",
        "ok": elapsed <= target and gigabytes <= 6,
    }


def run() -> list[dict[str, object]]:
    """Measure everything in this module."""
    return [
        _row(
            f"map of {n:,} x {n:,} cells, {mechanism}, integer", f"_map({n}, {depth}, {mechanism!r})", target
        )
        for n, depth, target in ((256, 8, 2.0), (2048, 11, 20.0))
        for mechanism in ("laplace", "gaussian")
    ] + [_row("quadtree of 4,194,304 leaves from records, integer", "_records(2048, 11)", 20.0)]

"""Records in Parquet, counted through each engine, beside the engine's own group-by of the leaves.

    python -m tests.benchmarks.bench_engines [millions of rows] [engine ...]
    python -m tests.benchmarks.bench_engines --measure ENGINE FILE [runs]

Each engine runs in a process of its own, whose peak memory is measured too, and that of its workers. There
are three units for ten rows. All engines read the same file with two threads; dask has two local workers,
Spark two threads of tasks in one Java process.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd

from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.ingest.contributions import leaf_totals

BY = ["state", "county", "city"]
N_CITIES = 30_000
ENGINES = ("pandas", "polars", "duckdb", "dataset", "dask", "spark")
MOST = {"polars": (1.5, 6), "duckdb": (3, 6)}
"""Claims: time over that of the engine's own group-by, without and with units."""


def write_records(folder: Path, millions: int) -> Path:
    """Write records of skewed cities in Parquet, with duckdb, which does it in little memory."""
    import duckdb

    path = folder / f"records{millions}.parquet"
    if path.exists():
        return path
    n = millions * 1_000_000
    with duckdb.connect() as connection:
        connection.execute(
            f"SET memory_limit = '2GB'; SET temp_directory = '{folder}';"
            "SET preserve_insertion_order = false; SELECT setseed(0.42)"
        )
        connection.execute(
            f"""COPY (
                WITH r AS (
                    SELECT floor({N_CITIES} * pow(random(), 3))::INT AS c,
                        floor(random() * {n * 3 // 10})::BIGINT AS unit, random() AS u FROM range({n}))
                SELECT printf('State %02d', c // 600) AS state, printf('County %04d', c // 10) AS county,
                    printf('City %05d', c) AS city, unit, round(exp(6 * u), 2) AS amount FROM r
            ) TO '{path}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 500000)"""
        )
    return path


def cities() -> pd.DataFrame:
    """List the public keys."""
    number = np.arange(N_CITIES)
    names = {"State {:02d}": 600, "County {:04d}": 10, "City {:05d}": 1}
    columns = [[text.format(each) for each in number // size] for text, size in names.items()]
    return pd.DataFrame(dict(zip(BY, columns, strict=True)))


@contextmanager
def opened(engine: str, path: Path) -> Iterator[tuple[Any, Callable[[], object] | None]]:
    """Open the records; yield them, and the engine's own group-by."""
    if engine == "pandas":
        frame = pd.read_parquet(path, columns=[*BY, "unit"])
        yield frame, lambda: frame.groupby(BY).size()
    elif engine == "polars":
        import polars

        lazy = polars.scan_parquet(path)
        yield lazy, lambda: lazy.group_by(BY).len().collect(engine="streaming")
    elif engine == "duckdb":
        import duckdb

        with duckdb.connect() as connection:
            connection.execute("SET memory_limit = '500MB'; SET threads = 2")
            relation = connection.from_parquet(str(path))
            keys = ", ".join(BY)
            yield relation, lambda: relation.aggregate(f"{keys}, count(*)", keys).fetchall()
    elif engine == "dataset":
        import pyarrow.dataset

        yield pyarrow.dataset.dataset(path), None
    elif engine == "dask":
        import dask.dataframe
        from distributed import Client, LocalCluster

        with (
            LocalCluster(
                n_workers=2, threads_per_worker=1, memory_limit="2GB", dashboard_address=None
            ) as cluster,
            Client(cluster),
        ):
            frame = dask.dataframe.read_parquet(path, split_row_groups=True, dtype_backend="pyarrow")
            yield frame, lambda: frame.groupby(BY).size().compute()
    else:
        from pyspark.sql import SparkSession

        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master("local[2,4]").config("spark.driver.memory", "2g")
        for name, value in {"ui.enabled": "false", "driver.host": "127.0.0.1"}.items():
            builder = builder.config(f"spark.{name}", value)
        session = builder.getOrCreate()
        table = session.read.parquet(str(path))
        try:
            yield table, lambda: table.groupBy(*BY).count().collect()
        finally:
            session.stop()


class Workers:
    """The peak memory of processes that this one started, and those started. Linux alone tells."""

    def __init__(self) -> None:
        self.peaks: dict[str, int] = {}
        self._stopped = threading.Event()
        self._watching = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._watching.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._watching.join()

    def _watch(self) -> None:
        while not self._stopped.wait(0.5):
            of = {}
            for process in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):  # it has ended
                    lines = (process / "status").read_text().splitlines()
                    of[process.name] = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
            started = {str(os.getpid())}
            while more := {name for name, each in of.items() if each["PPid"] in started} - started:
                started |= more
            for each in map(of.get, started - {str(os.getpid())}):
                peak = int(each.get("VmHWM", "0 kB").split()[0]) * 1024
                self.peaks[each["Name"]] = max(peak, self.peaks.get(each["Name"], 0))


def measure(engine: str, path: Path, runs: int = 2) -> dict[str, Any]:
    """Time counts without and with units, and the engine's own group-by; in turn. Measure peak memory.

    The peak of this process is that of our calls; the group-by of the engine comes after.
    """
    domain = Domain.from_frame(cities(), by=BY)
    options = {"privacy_unit": "unit", "max_contributions": 2, "random_words": words}
    with Workers() as workers, opened(engine, path) as (frame, own):
        calls = {
            "counts": lambda: leaf_totals(frame, domain),
            "units": lambda: leaf_totals(frame, domain, **options),
        }
        if own is not None:
            calls["own"] = own
        seconds: dict[str, float] = {}
        peak = 0
        for _ in range(runs):
            for name, call in calls.items():
                start = time.perf_counter()
                call()
                seconds[name] = min(seconds.get(name, np.inf), time.perf_counter() - start)
                print(name, f"{time.perf_counter() - start:.1f} s", file=sys.stderr, flush=True)
                if name != "own" and "own" not in seconds:
                    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {**seconds, "peak": peak, "workers": workers.peaks}


def words(n: int) -> np.ndarray:
    """Draw a key."""
    return np.random.default_rng(0).integers(2**64, size=n, dtype=np.uint64)


def rows(millions: int, engines: tuple[str, ...], folder: Path) -> Iterator[dict[str, object]]:
    """Measure each engine in a process of its own."""
    path = write_records(folder, millions)
    for engine in engines:
        command = [sys.executable, "-m", "tests.benchmarks.bench_engines", "--measure", engine, str(path)]
        found = json.loads(
            subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1]
        )
        memory = {"": found["peak"], **found["workers"]}
        peaks = ", ".join(f"{name} {peak / 1e9:.2f} GB".strip() for name, peak in memory.items())
        for kind, most in zip(("counts", "units"), MOST.get(engine, (None, None)), strict=True):
            ratio = found[kind] / found["own"] if "own" in found else np.nan
            yield {
                "what": f"{engine}: {kind}, {millions} M rows, peak {peaks}",
                "ours": f"{found[kind]:.1f} s",
                "peer": f"{found['own']:.1f} s (its own group-by)" if "own" in found else "",
                "ratio": ratio,
                "target": "none" if most is None else f"<= {most}",
                "ok": most is None or ratio <= most,
            }


def run() -> list[dict[str, object]]:
    """Measure the engines of one process with 10 million rows."""
    with tempfile.TemporaryDirectory() as folder:
        return list(rows(10, ENGINES[:4], Path(folder)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(sys.argv[2], Path(sys.argv[3]), *map(int, sys.argv[4:]))))
    else:
        kept = Path(tempfile.gettempdir()) / "dptree-benchmark"
        kept.mkdir(exist_ok=True)
        for row in rows(int((sys.argv[1:] or ["10"])[0]), tuple(sys.argv[2:]) or ENGINES, kept):
            print(*row.values(), sep="\t", flush=True)

"""Memory of a domain of many labels, and of a release from it.

    python -m tests.benchmarks.bench_labels [millions of leaves]

Each kind of label is measured in a process of its own, by what Linux tells of its memory.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

import pandas_dptree as dpt

BY = ["state", "county", "city"]
KINDS = ("whole", "text")
MOST_DOMAIN = {10: 1.2, 30: 3.5}
"""Claims: gigabytes that a domain takes at most, beyond the table it is made of, by millions of leaves."""
MOST_RELEASE = {10: 1.5}
"""Claims: gigabytes that the release takes beyond the domain, the released table included."""


def places(millions: int, kind: str) -> pd.DataFrame:
    """List cities, all of which have labels of their own."""
    numbers = np.arange(millions * 1_000_000)
    columns = dict(zip(BY, (numbers // 100_000, numbers // 1_000, numbers), strict=True))
    if kind == "whole":
        return pd.DataFrame(columns)
    import pyarrow as pa
    import pyarrow.compute as pc

    def texts(name: str, each: np.ndarray) -> pd.Series:
        start, between = (pa.scalar(text, pa.large_string()) for text in (f"{name} ", ""))
        joined = pc.binary_join_element_wise(start, pa.array(each).cast("large_string"), between)
        return pd.Series(pd.array(joined, dtype="str"))

    return pd.DataFrame({name: texts(name, each) for name, each in columns.items()})


def gigabytes(entry: str) -> float:
    """Read the present (VmRSS) or the largest (VmHWM) memory of this process."""
    found = re.search(rf"{entry}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024 / 1e9


def peak_of(call: object) -> tuple[object, float, float]:
    """Call, and return the result, the gigabytes that it took at most, and the seconds."""
    Path("/proc/self/clear_refs").write_text("5")  # forgets the largest so far
    before, start = gigabytes("VmRSS"), time.perf_counter()
    result = call()  # type: ignore[operator]
    return result, gigabytes("VmHWM") - before, time.perf_counter() - start


def measure(millions: int, kind: str) -> dict[str, float]:
    """Make a domain, and release counts of a million records."""
    table = places(millions, kind)
    records = table.head(1_000_000).copy()
    domain, of_domain, seconds = peak_of(lambda: dpt.Domain.from_frame(table, by=BY))
    released, of_release, more = peak_of(lambda: dpt.tree_counts(records, BY, domain=domain, epsilon=1.0))
    return {"domain": of_domain, "release": of_release, "table": _size(released), "seconds": seconds + more}


def _size(table: object) -> float:
    assert isinstance(table, pd.DataFrame)
    return float(table.memory_usage(deep=True).sum()) / 1e9


def run(millions: int = 10) -> list[dict[str, object]]:
    """Measure each kind of label in a process of its own."""
    rows = []
    for kind in KINDS:
        command = [sys.executable, "-m", "tests.benchmarks.bench_labels", "--measure", str(millions), kind]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout.splitlines()[-1])
        for what, claims in (("domain", MOST_DOMAIN), ("release", MOST_RELEASE)):
            most = claims.get(millions, np.inf)
            rows.append(
                {
                    "what": f"{what} of {millions} M {kind} leaves, {found['seconds']:.0f} s in all, "
                    f"released table {found['table']:.2f} GB",
                    "ours": f"{found[what]:.2f} GB",
                    "peer": "",
                    "ratio": found[what] / most,
                    "target": f"<= {most} GB",
                    "ok": found[what] <= most,
                }
            )
    return rows


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(int(sys.argv[2]), sys.argv[3])))
    else:
        print(pd.DataFrame(run(*map(int, sys.argv[1:]))).to_string(index=False, float_format="{:.3g}".format))

"""Print every claim of speed with what was measured, and fail if one does not hold."""

import os
import platform
import sys

import pandas as pd

from tests.benchmarks import (
    bench_arrays,
    bench_bounding,
    bench_crossed,
    bench_distribution,
    bench_engines,
    bench_files,
    bench_implicit,
    bench_labels,
    bench_ledger,
    bench_people,
    bench_planning,
    bench_private_keys,
    bench_quantiles,
    bench_release,
    bench_sampling,
    bench_unit_counts,
    bench_units,
)


def main() -> int:
    """Measure everything."""
    benches = (
        bench_sampling,
        bench_planning,
        bench_release,
        bench_bounding,
        bench_people,
        bench_unit_counts,
        bench_units,
        bench_implicit,
        bench_private_keys,
        bench_distribution,
        bench_quantiles,
        bench_files,
        bench_arrays,
        bench_crossed,
        bench_ledger,
        bench_labels,
        bench_engines,
    )
    table = pd.DataFrame([row for bench in benches for row in bench.run()])
    python, cores = platform.python_version(), os.cpu_count()
    print(f"{platform.machine()}, {cores} cores, Python {python}, pandas {pd.__version__}\n")
    print(table.to_string(index=False, float_format="{:.3g}".format))
    return int(not table["ok"].all())


if __name__ == "__main__":
    sys.exit(main())

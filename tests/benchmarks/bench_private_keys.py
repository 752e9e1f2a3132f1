"""Private keys: time and memory beside public ones, and what is found beside OpenDP's stable keys.

``python -m tests.benchmarks.bench_private_keys`` prints the tables of the documentation: ten million records
of a million keys, and 40 releases of each comparison, in about a quarter of an hour. The records of bird
strikes are in the folder that the variable PANDAS_DPTREE_DATA names; without it they are left out.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import pandas_dptree as dpt
from tests.benchmarks.bench_release import peak_gigabytes, seconds
from tests.peers import StableKeys, opendp_stable_keys

BY = ["region", "city", "product"]
LOSS = {"epsilon": 1.0, "delta": 1e-6}
N_ROWS, N_KEYS = 1_000_000, 100_000
KINDS = ("private keys", "private keys, privacy unit", "public keys", "groupby")

# Time and memory ------------------------------------------------------------------------------------------


def sales(n_rows: int, n_keys: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Simulate sales of products of very unequal sizes, each in one city, with text keys; list the keys."""
    rng = np.random.default_rng(0)
    city = np.sort(rng.integers(0, n_keys // 50, n_keys)).tolist()
    keys = pd.DataFrame(
        {
            "region": [f"Region {c % 60:02d}" for c in city],
            "city": [f"City {c:05d}" for c in city],
            "product": [f"Product {i:07d}" for i in range(n_keys)],
        }
    )
    weight = rng.pareto(1.1, n_keys) + 0.05
    rows = rng.choice(n_keys, n_rows, p=weight / weight.sum())
    return keys.iloc[rows].reset_index(drop=True), keys


def _calls(n_rows: int, n_keys: int) -> dict[str, Callable[[], object]]:
    """Make the releases to compare, and the roll-up that a user would write without privacy."""
    frame, keys = sales(n_rows, n_keys)
    domain = dpt.Domain.from_frame(keys, by=BY)
    units = frame.assign(person=np.random.default_rng(1).integers(0, 3 * n_rows // 10, n_rows))
    person = {"privacy_unit": "person", "max_contributions": 3}
    return {
        "private keys": lambda: dpt.tree_counts(frame, BY, private_keys=BY, privacy_unit=dpt.ROWS, **LOSS),
        "private keys, privacy unit": lambda: dpt.tree_counts(units, BY, private_keys=BY, **person, **LOSS),
        "public keys": lambda: dpt.tree_counts(frame, BY, domain=domain, **LOSS),
        "groupby": lambda: [frame.groupby(BY[:k], observed=True).size() for k in (1, 2, 3)],
    }


def _times(n_rows: int, n_keys: int) -> None:
    for call in _calls(n_rows, n_keys).values():
        print(seconds(call))


def _memory(n_rows: int, n_keys: int, kind: str) -> None:
    call = _calls(n_rows, n_keys)[kind]
    Path("/proc/self/clear_refs").write_text("5")  # the peak is now what the process has
    before = peak_gigabytes()
    call()
    print(peak_gigabytes() - before)


def _in_a_process(call: str) -> list[float]:
    """Read the numbers that a function of this module prints in a process of its own."""
    code = f"from tests.benchmarks import bench_private_keys as bench; bench.{call}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [float(number) for number in done.stdout.split()]


def speed(n_rows: int = N_ROWS, n_keys: int = N_KEYS) -> list[dict[str, object]]:
    """Time a release of private keys beside one of the same keys in a list, and beside pandas."""
    times = dict(zip(KINDS, _in_a_process(f"_times({n_rows}, {n_keys})"), strict=True))
    memory = {kind: np.nan for kind in KINDS}
    if Path("/proc/self/clear_refs").exists():
        memory = {kind: _in_a_process(f"_memory({n_rows}, {n_keys}, {kind!r})")[0] for kind in KINDS}
    # Hashing of the texts takes most of the time of all of them.
    targets = {"private keys": 1.5, "private keys, privacy unit": 2.5}
    return [
        {
            "what": f"{kind}, {n_rows:,} rows, {n_keys:,} keys, {memory[kind]:.2f} GiB more than the records",
            "ours": f"{times[kind]:.2f} s",
            "peer": f"{times['groupby']:.2f} s (non-private groupby, {memory['groupby']:.2f} GiB more), "
            f"{times['public keys']:.2f} s (public keys, {memory['public keys']:.2f} GiB more)",
            "ratio": times[kind] / times["groupby"],
            "target": f"<= {target}",
            "ok": times[kind] <= target * times["groupby"],
        }
        for kind, target in targets.items()
    ]


# Beside OpenDP --------------------------------------------------------------------------------------------


def purchases(n_rows: int = 1_000_000) -> pd.DataFrame:
    """Simulate purchases: regions, cities and products of Zipf's frequencies, 500,000 keys at most."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"region": 0, "city": 0, "product": 0}, index=range(n_rows))
    for name, size in zip(BY, (10, 100, 500), strict=True):
        weight = 1 / np.arange(1, size + 1)
        frame[name] = rng.choice(size, n_rows, p=weight / weight.sum())
    return frame


def bird_strikes() -> pd.DataFrame | None:
    """Read states and species of bird strikes, if there are any."""
    path = Path(os.environ.get("PANDAS_DPTREE_DATA", ".")) / "birdstrikes.csv"
    columns = {"Origin State": "state", "Wildlife Species": "species"}
    if not path.exists():
        return None
    return pd.read_csv(path, usecols=[*columns]).rename(columns=columns)[[*columns.values()]]


class Truth:
    """The exact counts of a table: of the total, of the first keys, and of whole paths."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.by = list(frame.columns)
        counts = frame.groupby(self.by).size()
        self.leaves = counts.to_numpy()
        self.first_of_leaf, self.first_keys = pd.factorize(counts.index.get_level_values(0))
        self.first = np.bincount(self.first_of_leaf, self.leaves).astype(np.int64)
        self.paths = counts.index

    def errors(
        self, total: float, first: np.ndarray, places: np.ndarray, values: np.ndarray
    ) -> dict[str, float]:
        """Measure a table that shows the leaves at `places`; `first` and `total` are its estimates above."""
        estimates = np.zeros(len(self.leaves))
        estimates[places] = values
        off = abs(estimates - self.leaves)
        return {
            "keys shown": len(places),
            "records in them": 100 * self.leaves[places].sum() / self.leaves.sum(),
            "error of shown": off[places].mean(),
            "error of first keys": abs(first - self.first).mean(),
            "error of total": abs(total - self.leaves.sum()),
        }

    def of_ours(self, table: pd.DataFrame) -> dict[str, float]:
        """Measure a released table."""
        rows = table[~table["other"]]
        leaves = rows[rows["level"] == self.by[-1]].set_index(self.by)["count"]
        first = rows[rows["level"] == self.by[0]].set_index(self.by[0])["count"]
        first = first.reindex(self.first_keys, fill_value=0).to_numpy()
        places = self.paths.get_indexer(leaves.index)
        return self.errors(rows["count"].iloc[0], first, places, leaves.to_numpy())

    def of_flat_keys(self, stable: StableKeys) -> dict[str, float]:
        """Measure a release of whole paths alone: the estimates above are sums of what is shown."""
        places, values = stable.release(self.leaves)
        first = np.bincount(self.first_of_leaf[places], values, len(self.first))
        return self.errors(values.sum(), first, places, values)

    def of_each_level(self, stable: StableKeys, rng: np.random.Generator) -> dict[str, float]:
        """Measure releases of each level separately, with one part of the loss for each, and of the total."""
        q = np.exp(-1 / stable.noise_scale)
        total = self.leaves.sum() + rng.geometric(1 - q) - rng.geometric(1 - q)
        first = np.zeros(len(self.first))
        places, values = stable.release(self.first)
        first[places] = values
        return self.errors(total, first, *stable.release(self.leaves))


def found_from(kind: str, stable: StableKeys) -> int:
    """Compute the smallest count that is shown with probability 0.95."""
    k = np.arange(-10_000, 10_001)
    exponent = -abs(k) / stable.noise_scale if kind == "laplace" else -((k / stable.noise_scale) ** 2) / 2
    masses = np.exp(exponent)
    least_noise = k[np.cumsum(masses[::-1])[::-1] >= 0.95 * masses.sum()].max()
    return int(stable.shown_from - least_noise)


def beside_opendp(frame: pd.DataFrame, repeats: int) -> pd.DataFrame:
    """Release the same records many times, in turns with OpenDP's stable keys and with this package.

    Both protect one row, added or removed, at epsilon 1 and delta 1e-6. Ours releases the total and the keys
    of each level, with its own shares, or with nine tenths of the loss for the paths. Theirs releases whole
    paths as flat keys, with all of the loss; or the total and each level separately, with an even part of
    epsilon for each, and of delta for each level of keys.

    Returns
    -------
    pandas.DataFrame
        A row per method: the smallest count of a path found with probability 0.95; and means over the
        releases of the paths shown, of the records in them, in per cent, and of the mean absolute errors of
        the shown paths, of all first keys and of the total. What is not shown is estimated as 0.
    """
    truth, by = Truth(frame), list(frame.columns)
    laplace, gaussian = (opendp_stable_keys(kind, 1.0, 1e-6) for kind in ("laplace", "gaussian"))
    each = opendp_stable_keys("laplace", 1 / (len(by) + 1), 1e-6 / len(by))
    upper = 2.0 ** np.arange(len(by))
    mostly = dict(zip(["total", *by], [*(upper / upper.sum() / 10).tolist(), 0.9], strict=True))
    own: dict[str, Any] = {
        name: dpt.plan(None, private_keys=by, privacy_unit=dpt.ROWS, **options, **LOSS)
        for name, options in {
            "ours, truncated Laplace": {"mechanism": "truncated_laplace"},
            "ours, 90 % for paths": {"mechanism": "truncated_laplace", "split": mostly},
            "ours, Gaussian": {"mechanism": "gaussian"},
        }.items()
    }
    rng = np.random.default_rng(0)
    measure: dict[str, Callable[[], dict[str, float]]] = {
        name: lambda plan=plan: truth.of_ours(plan.release(frame)) for name, plan in own.items()
    }
    measure |= {
        "OpenDP, flat, Laplace": lambda: truth.of_flat_keys(laplace),
        "OpenDP, flat, Gaussian": lambda: truth.of_flat_keys(gaussian),
        "OpenDP, each level, Laplace": lambda: truth.of_each_level(each, rng),
    }
    found = {name: plan.noise.found_from(0.05)[-1] for name, plan in own.items()} | {
        "OpenDP, flat, Laplace": found_from("laplace", laplace),
        "OpenDP, flat, Gaussian": found_from("gaussian", gaussian),
        "OpenDP, each level, Laplace": found_from("laplace", each),
    }
    rows = [{"method": name, **call()} for _ in range(repeats) for name, call in measure.items()]
    table = pd.DataFrame(rows).groupby("method", sort=False).mean()
    table.insert(0, "found from", pd.Series(found))
    return table


def peers(repeats: int = 10) -> list[dict[str, object]]:
    """Hold the share of records in shown keys against OpenDP's, where both release every level."""
    frame = bird_strikes()
    if frame is None:
        return []
    table = beside_opendp(frame, repeats)["records in them"]
    ours, theirs, flat = (
        table[name]
        for name in ("ours, truncated Laplace", "OpenDP, each level, Laplace", "OpenDP, flat, Laplace")
    )
    return [
        {
            "what": "records in shown keys, state and species, with the total and the states",
            "ours": f"{ours:.1f} %",
            "peer": f"{theirs:.1f} % (OpenDP, each level; {flat:.1f} % without total and states)",
            "ratio": theirs / ours,
            "target": "<= 0.95",
            "ok": theirs <= 0.95 * ours,
        }
    ]


def run() -> list[dict[str, object]]:
    """Measure everything in this module, on a tenth of the records of the documentation."""
    return [*speed(), *peers()]


def main() -> None:
    """Print the tables of the documentation."""
    print(pd.DataFrame(speed(10_000_000, 1_000_000)).T.to_string())
    for frame in (bird_strikes(), purchases()):
        if frame is not None:
            print(f"\n{len(frame):,} records, {len(frame.drop_duplicates()):,} keys")
            print(beside_opendp(frame, 40).to_string(float_format="{:.1f}".format))


if __name__ == "__main__":
    main()

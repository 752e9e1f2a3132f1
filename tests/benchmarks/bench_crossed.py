"""Cross tables: all margins together, beside one hierarchy that nests the axes, and beside separate tables.

``python -m tests.benchmarks.bench_crossed`` prints the tables of the documentation: root mean squared errors
of margins over repeated releases of simulated, sparse counts by county, month, age and sex; and the time and
memory of large tables, beside one hierarchy with as many nodes.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import pandas_dptree as dpt
from pandas_dptree.hierarchy.tree import Tree
from tests.benchmarks.bench_release import peak_gigabytes
from tests.peers import opendp_gaussian_counts, opendp_gaussian_scale

RHO = 0.1
UNIFORM = {"month": [12], "age": [6, 3], "sex": [2]}
"""Branching of the axes besides that of places."""
SHOWN = [(0, 0, 0, 0), (1, 0, 0, 0), (2, 0, 0, 0), (0, 1, 1, 0), (2, 1, 0, 0), (2, 0, 2, 1), (2, 1, 2, 1)]
"""The margins whose errors are printed, of places, months, ages and sexes."""
NAMES = ["total", "state", "county", "month × band", "county × month", "county × year × sex", "all four"]

Release = Callable[[int], list[np.ndarray]]
"""From a seed to the counts of all margins, each flat."""


class World:
    """Simulated counts, of which most finest cells are empty, and every margin of them."""

    def __init__(self, n_states: int = 20, n_people: int = 100_000) -> None:
        random = np.random.default_rng(0)
        counties = random.integers(2, 30, n_states)
        self.place = Tree((np.array([n_states]), counties))
        self.axes = {"place": self.place} | {
            name: Tree.from_branching(branching) for name, branching in UNIFORM.items()
        }
        self.tree = dpt.cross(self.axes).tree
        sizes = [random.lognormal(sigma=2.0, size=self.place.n_leaves)]
        sizes += [
            random.gamma(3.0, size=tree.n_leaves) for name, tree in self.axes.items() if name != "place"
        ]
        weights = reduce(np.multiply.outer, sizes).reshape(-1)
        leaves = random.multinomial(n_people, weights / weights.sum())
        self.leaves = leaves.reshape(self.tree.leaf_shape)
        self.exact = self.margins(self.leaves)

    def margins(self, leaves: np.ndarray) -> list[np.ndarray]:
        """Add up the finest cells to every margin."""
        tables = self.tree.sum_margins(leaves, self.tree.margins)
        return [tables[margin].reshape(-1) for margin in self.tree.margins]

    def errors(self, release: Release, releases: int) -> list[float]:
        """Return root mean squared errors of the margins that are printed, and that of all margins."""
        squares = np.zeros(len(self.exact))
        for seed in range(releases):
            pairs = zip(release(seed), self.exact, strict=True)
            squares += [np.mean((counts - exact) ** 2) for counts, exact in pairs]
        found = np.sqrt(squares / releases)
        return [*found[[*map(self.tree.level_of, SHOWN)]], float(np.sqrt(np.mean(squares / releases)))]

    def crossed(self, consistency: Any) -> Release:
        """Release all margins together."""
        plan = dpt.plan(dpt.cross(self.axes), rho=RHO, consistency=consistency)
        ends = np.cumsum(self.tree.level_sizes)[:-1]

        def release(seed: int) -> list[np.ndarray]:
            table = plan.release(self.leaves, rng=np.random.default_rng(seed))
            return np.split(table["count"].to_numpy(), ends)

        return release

    def nested(self, consistency: Any) -> Release:
        """Release one hierarchy, places above months above ages above sexes, and add up its leaves."""
        below = [np.array([factor]) for branching in UNIFORM.values() for factor in branching]
        plan = dpt.plan(Tree((*self.place.child_counts, *below)), rho=RHO, consistency=consistency)

        def release(seed: int) -> list[np.ndarray]:
            table = plan.release(self.leaves.reshape(-1), rng=np.random.default_rng(seed))
            leaves = table["count"].to_numpy()[-self.leaves.size :]
            return self.margins(leaves.reshape(self.leaves.shape))

        return release

    def separate(self) -> Release:
        """Release each margin by itself with OpenDP's noise, each with an equal part of the loss."""
        scale = opendp_gaussian_scale(RHO / len(self.exact))(1.0)
        return lambda _: [opendp_gaussian_counts(scale, exact) for exact in self.exact]


def table(releases: int = 40) -> pd.DataFrame:
    """Compare root mean squared errors by margin; of all margins with equal weights in the last column."""
    world = World()
    rows = {
        "OpenDP, each margin": world.errors(world.separate(), max(releases // 5, 1)),
        **{
            f"{name}, {consistency}": world.errors(way(consistency), releases)
            for name, way in (("one hierarchy", world.nested), ("crossed", world.crossed))
            for consistency in ("linear", "integer")
        },
    }
    return pd.DataFrame.from_dict(rows, orient="index", columns=[*NAMES, "mean"])


# Time and memory --------------------------------------------------------------------------------------------


def large(groups: int, consistency: str = "integer") -> None:
    """Cross 3,000 counties of 20 states with 12 months, 18 ages and 2 sexes, and perhaps more groups."""
    dims = {"county": 3000, "month": 12, "age": 18, "sex": 2} | ({"group": groups} if groups > 1 else {})
    states = ("county", np.repeat(np.arange(20), 150)), ("age", np.repeat(np.arange(6), 3))
    array = xr.DataArray(
        _sparse([*dims.values()]),
        dims=[*dims],
        coords={name: np.arange(size) for name, size in dims.items()}
        | dict(zip(("state", "band"), states, strict=True)),
    )
    by = {"place": ["state", "county"], "month": "month", "age": ["band", "age"], "sex": "sex"}
    by |= {"group": "group"} if groups > 1 else {}
    _timed(partial(array.dp.tree_counts, by, rho=RHO, consistency=consistency))


def single(nodes: int, consistency: str = "integer") -> None:
    """Release one hierarchy of about as many nodes: states, counties and cells of them."""
    array = xr.DataArray(
        _sparse([3000, nodes // 3000]),
        dims=["county", "cell"],
        coords={"county": np.arange(3000), "cell": np.arange(nodes // 3000)}
        | {"state": ("county", np.repeat(np.arange(20), 150))},
    )
    _timed(partial(array.dp.tree_counts, ["state", "county", "cell"], rho=RHO, consistency=consistency))


def _sparse(shape: list[int]) -> np.ndarray:
    random = np.random.default_rng(0)
    return random.poisson(random.gamma(0.05, 4.0, shape))


def _timed(release: Callable[[], object]) -> None:
    started = time.perf_counter()
    release()
    print(time.perf_counter() - started, peak_gigabytes())


def _in_a_process(call: str) -> tuple[float, float]:
    """Run a function of this module in a process of its own; return its seconds, and its memory in GiB."""
    code = f"from tests.benchmarks import bench_crossed; bench_crossed.{call}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    elapsed, gigabytes = map(float, done.stdout.split())
    return elapsed, gigabytes


def sizes() -> list[dict[str, object]]:
    """Measure large tables, beside one hierarchy with as many nodes."""
    rows: list[dict[str, object]] = []
    for groups, leaves, margins, most in ((1, "1.3 M", 36, 1.0), (8, "10.4 M", 72, 4.0)):
        nodes = 3021 * 13 * 25 * 3 * (groups + 1 if groups > 1 else 1)
        elapsed, gigabytes = _in_a_process(f"large({groups})")
        other, _ = _in_a_process(f"single({nodes})")
        rows.append(
            {
                "what": f"{leaves} leaf cells, {margins} margins, integer; {gigabytes:.2f} GiB at most",
                "ours": f"{elapsed:.1f} s",
                "peer": f"{other:.1f} s (one hierarchy of {nodes / 1e6:.1f} M nodes)",
                "ratio": elapsed / other,
                "target": f"<= 3, {most} GiB",
                "ok": elapsed <= 3 * other and gigabytes <= most,
            }
        )
    return rows


def run(releases: int = 2) -> list[dict[str, object]]:
    """Compare errors with those of one hierarchy and of separate tables, and measure large tables."""
    found = table(releases)
    mine = found.loc["crossed, integer"]
    rows: list[dict[str, object]] = []
    for other, margin, limit in (
        ("one hierarchy, integer", "month × band", 0.5),
        ("OpenDP, each margin", "county × month", 0.6),
    ):
        theirs = found.loc[other, margin]
        rows.append(
            {
                "what": f"cells of {margin}, rho = {RHO}",
                "ours": f"RMSE {mine[margin]:.1f}",
                "peer": f"{other}: RMSE {theirs:.1f}",
                "ratio": mine[margin] / theirs,
                "target": f"<= {limit}",
                "ok": mine[margin] <= limit * theirs,
            }
        )
    return [*rows, *sizes()]


if __name__ == "__main__":
    print(table().round(1).to_string())
    print(pd.DataFrame(sizes()).to_string(index=False))

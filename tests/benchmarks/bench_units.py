"""Distinct people in every node: beside counts of each level by others, and beside one clinic a person.

``python -m tests.benchmarks.bench_units`` prints the table of the documentation: root mean squared errors by
level against *all* people, so that what a bound leaves out is an error like any other. Then it compares the
time of `tree_units` with that of `tree_counts`. PipelineDP is asked where it is installed
(``pip install pipeline-dp``).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

import pandas_dptree as dpt
from tests.benchmarks import bench_release
from tests.benchmarks.ratios import cpu_seconds
from tests.peers import (
    opendp_gaussian_counts,
    opendp_gaussian_scale,
    opendp_laplace_counts,
    opendp_laplace_scale,
    pipeline_dp_people,
)

BY = ["region", "district", "clinic"]
LEVELS = ["total", *BY]
K = 4
OURS: dict[str, dict[str, Any]] = {
    **{f"ours, max_nodes={k}": {"max_nodes": k} for k in (1, 2, K, 8)},
    "ours, for the total": {
        "max_nodes": K,
        "level_weights": {"total": 8, "region": 1, "district": 1, "clinic": 1},
    },
}
LOSSES: dict[str, dict[str, float]] = {"epsilon = 1": {"epsilon": 1.0}, "rho = 0.1": {"rho": 0.1}}

Release = Callable[[int], list[np.ndarray]]
"""From a seed to the counts of all levels."""


def labels(frame: pd.DataFrame, level: int) -> pd.Series:
    """Name the nodes of a level in which rows are; missing below the level where a path ends."""
    if level == 0:
        return pd.Series("total", index=frame.index)
    return frame[BY[0]].astype(object).str.cat(frame[BY[1:level]].astype(object), sep="/")


class World:
    """The simulated visits, and the number of different people in each node."""

    def __init__(self, people: int = 20_000) -> None:
        self.visits, self.clinics = dpt.datasets.clinic_visits(people), dpt.datasets.clinics()
        rows = [self.visits[["person"]].assign(node=labels(self.visits, level)) for level in range(4)]
        self.pairs = [each.dropna().drop_duplicates() for each in rows]
        self.public = [labels(self.clinics, level).dropna().unique().tolist() for level in range(4)]
        self.exact = [self.counted(level, pairs) for level, pairs in enumerate(self.pairs)]

    def counted(self, level: int, pairs: pd.DataFrame) -> np.ndarray:
        """Count pairs of a person and a node by node."""
        return pairs["node"].value_counts().reindex(self.public[level], fill_value=0).to_numpy()

    def errors(self, release: Release, releases: int) -> list[float]:
        """Return root mean squared errors by level."""
        squares = np.zeros(len(LEVELS))
        for seed in range(releases):
            pairs = zip(release(seed), self.exact, strict=True)
            squares += [np.mean((counts - exact) ** 2) for counts, exact in pairs]
        return np.sqrt(squares / releases).tolist()

    def ours(self, **options: Any) -> Release:
        """Release all levels together."""
        plan = self.visits.dp.plan_units(BY, domain=self.clinics, privacy_unit="person", **options)

        def release(seed: int) -> list[np.ndarray]:
            table = plan.release(self.visits, rng=np.random.default_rng(seed))
            found = []
            for level, name in enumerate(LEVELS):
                rows = table[table["level"] == name]
                counts = pd.Series(rows["count"].to_numpy(), index=labels(rows, level))
                found.append(counts[self.public[level]].to_numpy())
            return found

        return release

    def by_opendp(self, loss: dict[str, float]) -> Release:
        """Count each level for itself, in `K` nodes of a person, each with a quarter of the loss."""
        if "rho" in loss:
            scale = opendp_gaussian_scale(loss["rho"] / 4)
            noisy, scales = opendp_gaussian_counts, [scale(1.0), *[scale(K**0.5)] * 3]
        else:
            scale = opendp_laplace_scale(loss["epsilon"] / 4)
            noisy, scales = opendp_laplace_counts, [scale(1.0), *[scale(float(K))] * 3]

        def release(seed: int) -> list[np.ndarray]:
            kept = [pairs.sample(frac=1, random_state=seed).groupby("person").head(K) for pairs in self.pairs]
            counts = [self.counted(level, pairs) for level, pairs in enumerate(kept)]
            return [noisy(*each) for each in zip(scales, counts, strict=True)]

        return release

    def by_pipeline_dp(self, epsilon: float) -> Release:
        """Count each level for itself as well, by PipelineDP's own bound."""

        def release(_: int) -> list[np.ndarray]:
            return [
                pipeline_dp_people(pairs["person"], pairs["node"], public, K if level else 1, epsilon / 4)
                for level, (pairs, public) in enumerate(zip(self.pairs, self.public, strict=True))
            ]

        return release


def table(releases: int = 100) -> pd.DataFrame:
    """Compare root mean squared errors by level."""
    world = World()
    rows: dict[tuple[str, str], list[float]] = {}
    for stated, loss in LOSSES.items():
        rows[stated, "OpenDP, each level"] = world.errors(world.by_opendp(loss), releases)
        if "epsilon" in loss and find_spec("pipeline_dp"):
            theirs = world.by_pipeline_dp(loss["epsilon"])
            rows[stated, "PipelineDP, each level"] = world.errors(theirs, max(releases // 10, 1))
        for name, options in OURS.items():
            rows[stated, name] = world.errors(world.ours(**loss, **options), releases)
    return pd.DataFrame.from_dict(rows, orient="index", columns=LEVELS)


def seconds(n_rows: int = 2_000_000, pairs: int = 5) -> tuple[float, float, float]:
    """Return the median ratio of CPU times, and those of `tree_units` and of `tree_counts`, in turns."""
    frame, places = bench_release.people(n_rows)
    frame["person"] = np.random.default_rng(1).integers(0, 3 * n_rows // 10, n_rows)
    options: dict[str, Any] = {
        "epsilon": 1.0,
        "privacy_unit": "person",
        "domain": dpt.Domain.from_frame(places, by=bench_release.BY),
    }

    def units() -> None:
        frame.dp.tree_units(bench_release.BY, max_nodes=K, **options)

    def counts() -> None:
        frame.dp.tree_counts(bench_release.BY, max_contributions=K, **options)

    units(), counts()  # plans are made
    times = [(cpu_seconds(units), cpu_seconds(counts)) for _ in range(pairs)]
    ours, theirs = map(statistics.median, zip(*times, strict=True))
    return statistics.median(one / other for one, other in times), ours, theirs


def run(releases: int = 20) -> list[dict[str, object]]:
    """Compare errors with those of others for four clinics of a person, and the time with that of rows."""
    found = table(releases)
    ours = f"ours, max_nodes={K}"
    rows: list[dict[str, object]] = []
    for (stated, name), level, limit in (
        (("epsilon = 1", "OpenDP, each level"), "clinic", 0.7),
        (("rho = 0.1", "OpenDP, each level"), "clinic", 0.8),
        (("epsilon = 1", "ours, max_nodes=1"), "region", 0.1),
        (("rho = 0.1", "ours, max_nodes=1"), "district", 0.1),
    ):
        mine, other = found.loc[[(stated, ours), (stated, name)], level]
        rows.append(
            {
                "what": f"people in a {level}, {stated}",
                "ours": f"RMSE {mine:.1f}",
                "peer": f"{name}: RMSE {other:.1f}",
                "ratio": mine / other,
                "target": f"<= {limit}",
                "ok": mine <= limit * other,
            }
        )
    ratio, mine, other = seconds()
    return [
        *rows,
        {
            "what": "tree_units, 2 M rows of 600,000 people",
            "ours": f"{mine:.2f} s of CPU time",
            "peer": f"{other:.2f} s (tree_counts)",
            "ratio": ratio,
            "target": "<= 2.5",
            "ok": ratio <= 2.5,
        },
    ]


if __name__ == "__main__":
    print(table().round(1).to_string())
    print(pd.DataFrame(run()).to_string(index=False))

"""Noise where a person has several rows, beside what other libraries' bounds of rows need.

``python -m tests.benchmarks.bench_people`` prints the table of the documentation: standard errors of our
plans, and of the noise for which the others certify the same loss. Then it prints the errors of 500 releases
beside them. PipelineDP is asked where it is installed (``pip install pipeline-dp``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import pandas_dptree as dpt
from tests.peers import opendp_gaussian_counts, opendp_gaussian_scale, pipeline_dp_noise

K = 12
TREES = {"1, 10, 100": [10, 10], "1, 50, 3000": [50, 60]}
RHO: dict[str, float] = {"rho": 0.1}
DELTA: dict[str, float] = {"epsilon": 1.0, "delta": 1e-6}
BY = ["region", "clinic"]
OURS: dict[str, Any] = {
    "ours": {},
    "ours, for clinics": {"level_weights": {"total": 1, "region": 1, "clinic": 12}},
}


def ours(branching: list[int], loss: dict[str, float], **options: Any) -> dpt.AdditivePlan:
    """Plan a table of all levels, with one row of a person in a clinic."""
    regions, clinics = branching
    paths = [(r, c) for r in range(regions) for c in range(clinics)]
    domain = dpt.Domain.from_frame(pd.DataFrame(paths, columns=BY), by=BY)
    unit = {"privacy_unit": "person", "max_contributions": K, "max_per_leaf": 1}
    return dpt.plan(domain, **loss, **unit, mechanism="gaussian", **options)


def alone(branching: list[int], noise: Callable[[float], float]) -> np.ndarray:
    """Spend everything on the clinics, and add them up."""
    regions, clinics = branching
    return noise(np.sqrt(K)) * np.sqrt([regions * clinics, clinics, 1])


def each_level(noise: Callable[[float], float]) -> np.ndarray:
    """Spend a third on each level: Gaussian noise on three levels needs a root of three more."""
    return np.sqrt(3) * np.array([noise(K), noise(K), noise(np.sqrt(K))])


def table() -> pd.DataFrame:
    """Compare standard errors by level."""
    rows = {}
    peers = {"OpenDP": (RHO, opendp_gaussian_scale), "PipelineDP": (DELTA, pipeline_dp_noise)}
    for tree, branching in TREES.items():
        for peer, (loss, of_loss) in peers.items():
            try:
                noise = of_loss(**loss)
            except ImportError:
                continue
            rows |= {
                (tree, peer, "theirs, clinics alone"): alone(branching, noise),
                (tree, peer, "theirs, each level"): each_level(noise),
            }
            for name, options in OURS.items():
                rows[tree, peer, name] = ours(branching, loss, **options).std_errors
    return pd.DataFrame.from_dict(rows, orient="index", columns=["total", "region", "clinic"])


def visits(people: int, regions: int, clinics: int) -> pd.DataFrame:
    """Simulate people who go up to four times to each of at most `K` clinics: all pairs are counted."""
    rng = np.random.default_rng(1)
    chosen = rng.random((people, regions * clinics)).argsort(axis=1)[:, :K]
    person, place = np.nonzero(np.arange(K) < rng.integers(1, K + 1, size=(people, 1)))
    clinic = chosen[person, place]
    frame = pd.DataFrame({"person": person, "region": clinic // clinics, "clinic": clinic % clinics})
    return frame.loc[frame.index.repeat(rng.integers(1, 5, size=len(frame)))]


def observed(tree: str = "1, 10, 100", releases: int = 500) -> pd.DataFrame:
    """Compare root mean squared errors of releases with what was predicted, by level."""
    branching = TREES[tree]
    frame = visits(6000, *branching)
    cells = np.zeros(branching)
    np.add.at(cells, tuple(frame.drop_duplicates()[BY].to_numpy().T), 1)
    levels = [cells.sum(), cells.sum(axis=1), cells.ravel()]
    ends = np.cumsum([np.size(level) for level in levels])[:-1]
    rows = {}
    for name, options in OURS.items():
        plan = ours(branching, RHO, **options)
        drawn = [plan.release(frame, rng=np.random.default_rng(seed))["count"] for seed in range(releases)]
        errors = np.split(np.array(drawn) - np.hstack(levels), ends, axis=1)
        rows[name, "predicted"] = plan.std_errors
        rows[name, "observed"] = [np.sqrt(np.mean(level**2)) for level in errors]
    noise = opendp_gaussian_scale(**RHO)
    scale = noise(np.sqrt(K))
    moved = np.stack([opendp_gaussian_counts(scale, cells.ravel()) - cells.ravel() for _ in range(releases)])
    moved = moved.reshape(releases, *branching)
    sums = [moved.sum(axis=(1, 2)), moved.sum(axis=2), moved]
    rows["OpenDP, clinics alone", "predicted"] = alone(branching, noise)
    rows["OpenDP, clinics alone", "observed"] = [np.sqrt(np.mean(level**2)) for level in sums]
    return pd.DataFrame.from_dict(rows, orient="index", columns=["total", "region", "clinic"])


def run() -> list[dict[str, Any]]:
    """Compare the clinics and the total with a release of clinics alone, by OpenDP."""
    found = table().to_dict("index")
    rows = []
    for tree, plan in (("1, 10, 100", "ours"), ("1, 50, 3000", "ours, for clinics")):
        mine, theirs = (found[tree, "OpenDP", name] for name in (plan, "theirs, clinics alone"))
        for level, limit in (("clinic", 1.6), ("total", 0.5)):
            ratio = mine[level] / theirs[level]
            rows.append(
                {
                    "what": f"standard error of a {level}, {tree}, {K} rows, one in a clinic",
                    "ours": f"{mine[level]:.1f}",
                    "peer": f"OpenDP, clinics alone: {theirs[level]:.1f}",
                    "ratio": ratio,
                    "target": f"<= {limit}",
                    "ok": ratio <= limit,
                }
            )
    return rows


if __name__ == "__main__":
    print(table().round(1).to_string())
    print(pd.DataFrame(run()).to_string(index=False))
    print(observed().round(1).to_string())

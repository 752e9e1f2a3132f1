"""Noise where a person has several rows, beside what other libraries' bounds of rows need.

``python -m tests.benchmarks.bench_people`` prints the table of the documentation. Nothing is drawn: standard
errors are those of our plans, and of the noise for which the others certify the same loss. PipelineDP is
asked where it is installed (``pip install pipeline-dp``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import pandas_dptree as dpt
from tests.peers import opendp_gaussian_scale, pipeline_dp_noise

K = 12
TREES = {"1, 10, 100": [10, 10], "1, 50, 3000": [50, 60]}
RHO: dict[str, float] = {"rho": 0.1}
DELTA: dict[str, float] = {"epsilon": 1.0, "delta": 1e-6}
FOR_CLINICS = {"total": 1, "region": 1, "clinic": 12}


def ours(branching: list[int], loss: dict[str, float], **options: Any) -> np.ndarray:
    """Plan a table of all levels, with one row of a person in a clinic."""
    regions, clinics = branching
    paths = [(r, c) for r in range(regions) for c in range(clinics)]
    domain = dpt.Domain.from_frame(pd.DataFrame(paths, columns=["region", "clinic"]), by=["region", "clinic"])
    unit = {"privacy_unit": "person", "max_contributions": K, "max_per_leaf": 1}
    return np.array(dpt.plan(domain, **loss, **unit, mechanism="gaussian", **options).std_errors)


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
                (tree, peer, "ours"): ours(branching, loss),
                (tree, peer, "ours, for clinics"): ours(branching, loss, level_weights=FOR_CLINICS),
            }
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

"""The distribution of ten million values, a million counts made to rise, and quantiles of many groups."""

from __future__ import annotations

import numpy as np
import pandas as pd

import pandas_dptree as dpt
from pandas_dptree.estimation.monotone import Norm, consistent_cdf
from tests.benchmarks.bench_release import seconds

BOUNDS = (0.0, 1000.0)


def cdf(n_rows: int = 10_000_000, n_bins: int = 65_536) -> list[dict[str, object]]:
    """Time the whole release, plan included, beyond what counting the values in bins takes by itself."""
    values = np.random.default_rng(0).lognormal(4.0, 1.0, n_rows)
    frame = pd.DataFrame({"value": values})
    table = []
    losses: tuple[tuple[dict[str, float], float], ...] = (({"epsilon": 1.0}, 0.5), ({"rho": 0.1}, 4.0))
    for given, target in losses:
        options = {"bounds": BOUNDS, "bins": n_bins, **given}
        counting = seconds(lambda: np.histogram(values, bins=n_bins, range=BOUNDS))
        ours = seconds(lambda options=options: frame.dp.cdf("value", **options))
        loss = ", ".join(f"{name}={value:g}" for name, value in given.items())
        table.append(
            {
                "what": f"cdf, {n_rows:,} values, {n_bins:,} bins, {loss}",
                "ours": f"{ours:.2f} s",
                "peer": f"{counting:.2f} s (numpy.histogram)",
                "ratio": ours / counting,
                "target": f"<= {target} s beyond it",
                "ok": ours - counting <= target,
            }
        )
    return table


def rising(n_bins: int = 1_000_000) -> list[dict[str, object]]:
    """Time the closest whole, rising numbers to noisy whole ones."""
    rng = np.random.default_rng(0)
    truth = np.cumsum(rng.poisson(rng.gamma(0.2, 10.0, n_bins)))
    noisy = truth + np.rint(rng.laplace(0, 100, n_bins)).astype(np.int64)
    norms: tuple[Norm, ...] = ("squared", "absolute")
    table = []
    for norm in norms:
        took = seconds(lambda norm=norm: consistent_cdf(noisy, int(truth[-1]), norm))
        table.append(
            {
                "what": f"consistent_cdf, {n_bins:,} whole numbers, {norm}",
                "ours": f"{took:.2f} s",
                "peer": "",
                "ratio": took,
                "target": "<= 1 s",
                "ok": took <= 1,
            }
        )
    return table


def groups(n_groups: int = 3_000, n_rows: int = 1_000_000) -> list[dict[str, object]]:
    """Time quantiles of every group, with their intervals, beside those of pandas without privacy."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"county": rng.integers(0, n_groups, n_rows), "cost": rng.lognormal(4.0, 1.0, n_rows)}
    )
    domain = dpt.Domain.from_frame(pd.DataFrame({"county": np.arange(n_groups)}), by=["county"])
    parts = [0.25, 0.5, 0.75]
    exact = seconds(lambda: frame.groupby("county")["cost"].quantile(parts))
    options = {"bounds": BOUNDS, "bins": 1000, "by": ["county"], "domain": domain, "epsilon": 1.0}
    ours = seconds(lambda: frame.dp.quantiles("cost", parts, confidence=0.95, **options))
    return [
        {
            "what": f"quantiles of {n_groups:,} groups, {n_rows:,} values, 1000 bins",
            "ours": f"{ours:.2f} s",
            "peer": f"{exact:.2f} s (non-private groupby)",
            "ratio": ours / exact,
            "target": "<= 5 s",
            "ok": ours <= 5,
        }
    ]


def run() -> list[dict[str, object]]:
    """Measure everything in this module."""
    return [*cdf(), *rising(), *groups()]


if __name__ == "__main__":
    print(pd.DataFrame(run()).to_string(index=False, float_format="{:.3g}".format))

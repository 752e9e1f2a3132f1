"""Quantiles of three columns, by this package and by diffprivlib: whichever of the two is installed.

Run with ``python -m tests.peers_quantiles``. Diffprivlib 0.6.6 needs ``scikit-learn<1.7``, and therefore an
environment of its own.
"""

from __future__ import annotations

import importlib.util

import numpy as np

N_ROWS, BOUNDS, PARTS = 10_000, (0.0, 1000.0), np.array([0.1, 0.5, 0.9])


def columns() -> dict[str, np.ndarray]:
    """Simulate values within the bounds: spread evenly, skewed, and of a few round amounts."""
    rng = np.random.default_rng(0)
    amounts = np.array([0, 10, 20, 50, 100, 200, 500, 1000])
    return {
        "uniform": rng.uniform(*BOUNDS, N_ROWS),
        "log-normal": np.clip(rng.lognormal(4.0, 1.0, N_ROWS), *BOUNDS),
        "tied": rng.choice(amounts, N_ROWS, p=[0.3, 0.1, 0.15, 0.2, 0.13, 0.07, 0.04, 0.01]).astype(float),
    }


def rank_errors(values: np.ndarray, estimates: np.ndarray) -> np.ndarray:
    """Tell how many values lie between each estimate and its quantile; 0 for any place among equal ones."""
    values = np.sort(values)
    wanted = PARTS * len(values)
    low, high = (np.searchsorted(values, estimates, side=side) for side in ("left", "right"))
    return np.where(np.isnan(estimates), np.nan, np.maximum(np.maximum(low - wanted, wanted - high), 0))


def ours(values: np.ndarray, epsilon: float, n_bins: int, repeats: int) -> np.ndarray:
    """Release the distribution again and again, and read all quantiles from each."""
    import pandas as pd

    import pandas_dptree as dpt

    plan = dpt.plan_distribution("value", bounds=BOUNDS, bins=n_bins, epsilon=epsilon)
    frame = pd.DataFrame({"value": values})
    rngs = np.random.default_rng(1).spawn(repeats)
    return np.array([plan.release(frame, rng=rng).quantiles(PARTS)["value"].to_numpy() for rng in rngs])


def diffprivlib(values: np.ndarray, epsilon: float, repeats: int) -> np.ndarray:
    """Draw each quantile by the exponential mechanism, with this epsilon for each; nan if it fails."""
    from diffprivlib import tools

    rng = np.random.RandomState(1)

    def draw(part: float) -> float:
        try:
            return float(tools.quantile(values, part, epsilon=epsilon, bounds=BOUNDS, random_state=rng))
        except RuntimeError:  # all weights underflow
            return np.nan

    return np.array([[draw(part) for part in PARTS.tolist()] for _ in range(repeats)])


def main(repeats: int = 200) -> None:
    """Print the root mean squared errors, in ranks and in values."""
    for name, values in columns().items():
        truth = np.quantile(values, PARTS, method="inverted_cdf")
        for epsilon in (0.1, 1.0):
            released = {}
            if importlib.util.find_spec("pandas"):
                for n_bins in (256, 1024):
                    released[f"ours, {n_bins} bins"] = ours(values, epsilon, n_bins, repeats)
            if importlib.util.find_spec("diffprivlib"):
                released["diffprivlib, three"] = diffprivlib(values, epsilon / len(PARTS), repeats)
                released["diffprivlib, one"] = diffprivlib(values, epsilon, repeats)
            for way, estimates in released.items():
                ranks = np.sqrt((rank_errors(values, estimates) ** 2).mean(axis=0)).round(1)
                off = np.sqrt(((estimates - truth) ** 2).mean(axis=0)).round(2)
                print(
                    f"{name:10} epsilon={epsilon:<3g} {way:18} ranks {ranks.tolist()} values {off.tolist()}"
                )


if __name__ == "__main__":
    main()

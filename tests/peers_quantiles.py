"""Quantiles of columns: drawn from a grid or read from a tree, and by diffprivlib if it is installed.

Run with ``python -m tests.peers_quantiles``. Diffprivlib 0.6.6 needs ``scikit-learn<1.7``, and therefore an
environment of its own. Where this package is not installed, only diffprivlib is measured.
"""

from __future__ import annotations

import importlib.util

import numpy as np

N_ROWS, N_QUANTILES, N_EPSILON = 10_000, (1, 3, 9, 19), (100, 1000, 10_000)


def columns() -> dict[str, tuple[np.ndarray, tuple[float, float]]]:
    """Simulate values and their bounds: spread evenly, skewed, and incomes that people rounded."""
    even, skewed, incomes = np.random.default_rng(0).spawn(3)
    steps = incomes.choice([1, 1000, 5000], N_ROWS, p=[0.1, 0.4, 0.5])
    rounded = np.rint(incomes.lognormal(10.4, 0.8, N_ROWS) / steps) * steps
    return {
        "uniform": (even.uniform(0, 1000, N_ROWS), (0.0, 1000.0)),
        "log-normal": (np.clip(skewed.lognormal(4.0, 1.0, N_ROWS), 0, 1000), (0.0, 1000.0)),
        "incomes": (np.clip(rounded, 0, 500_000), (0, 500_000)),
    }


def even_quantiles(n_quantiles: int) -> list[float]:
    """Divide the values into parts of equal size: 0.25, 0.5 and 0.75 for three quantiles."""
    return [(k + 1) / (n_quantiles + 1) for k in range(n_quantiles)]


def ours(
    values: np.ndarray, bounds: tuple[float, float], q: list[float], epsilon: float, mechanism: str, n: int
) -> np.ndarray:
    """Release the quantiles n times, drawn (``"exponential"``) or from a tree of 1000 bins."""
    import pandas as pd

    import pandas_dptree as dpt

    plan = dpt.plan_quantiles("value", q, bounds=bounds, mechanism=mechanism, epsilon=epsilon)
    frame, rngs = pd.DataFrame({"value": values}), np.random.default_rng(1).spawn(n)
    return np.array([plan.release(frame, rng=rng)["value"].to_numpy() for rng in rngs])


def diffprivlib(
    values: np.ndarray, bounds: tuple[float, float], q: list[float], epsilon: float, n: int
) -> np.ndarray:
    """Draw quantiles n times by the exponential mechanism, epsilon divided evenly; nan if it fails."""
    from diffprivlib import tools

    rng = np.random.RandomState(1)

    def draw(part: float) -> float:
        try:
            share = epsilon / len(q)
            return float(tools.quantile(values, part, epsilon=share, bounds=bounds, random_state=rng))
        except RuntimeError:  # all weights underflow
            return np.nan

    return np.array([[draw(part) for part in q] for _ in range(n)])


def main(repeats: int = 200) -> None:
    """Print mean absolute errors over all quantiles, and that of draws divided by that of the tree."""
    for name, (values, bounds) in columns().items():
        for n_epsilon in N_EPSILON:
            epsilon = n_epsilon / N_ROWS
            for n_quantiles in N_QUANTILES:
                q = even_quantiles(n_quantiles)
                truth, found = np.quantile(values, q, method="inverted_cdf"), {}
                if importlib.util.find_spec("pandas"):
                    found["drawn"] = ours(values, bounds, q, epsilon, "exponential", repeats)
                    found["tree"] = ours(values, bounds, q, epsilon, "laplace", repeats)
                if importlib.util.find_spec("diffprivlib"):
                    found["diffprivlib"] = diffprivlib(values, bounds, q, epsilon, repeats)
                off = {way: float(np.abs(each - truth).mean()) for way, each in found.items()}
                ratio = f", drawn / tree {off['drawn'] / off['tree']:.2f}" if "tree" in off else ""
                errors = ", ".join(f"{way} {error:.4g}" for way, error in off.items())
                print(f"{name}, n epsilon {n_epsilon}, {n_quantiles} quantiles: {errors}{ratio}", flush=True)


if __name__ == "__main__":
    main()

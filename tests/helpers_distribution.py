"""Records, plans and linear algebra that tests of distributions share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

import pandas_dptree as dpt
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.sampling import byte_source
from pandas_dptree.mechanisms.weighted_sums import WeightedSums, measure_weighted_sums

GOOD = {"bounds": (0, 4), "bins": 4, "epsilon": 1.0}

branchings = st.lists(st.integers(1, 4), min_size=1, max_size=3)


def draw_noise(rng: np.random.Generator, tree: Tree, scales: list[float], runs: int) -> list[np.ndarray]:
    """Draw Laplace noise for every node, many times: arrays of shape (runs, level size)."""
    return [
        rng.laplace(0, 1, (runs, size)) * scale for size, scale in zip(tree.level_sizes, scales, strict=True)
    ]


def coefficients(function: Callable[[list[np.ndarray]], np.ndarray], tree: Tree) -> list[np.ndarray]:
    """Read the matrix of a linear function of the level values off its values at unit vectors."""
    matrices = []
    for level, size in enumerate(tree.level_sizes):
        columns = []
        for node in range(size):
            values = [np.zeros(n) for n in tree.level_sizes]
            values[level][node] = 1.0
            columns.append(function(values))
        matrices.append(np.stack(columns, axis=1))
    return matrices


def variance_of(matrices: list[np.ndarray], noise: list[float]) -> np.ndarray:
    return sum((matrix**2).sum(axis=1) * v for matrix, v in zip(matrices, noise, strict=True))


NO_NOISE = 1e-3  # a scale at which all draws are 0


def matrix(strategy: WeightedSums) -> list[list[int]]:
    """Q, from its definition, in Python integers."""
    k, h = strategy.n_bins, strategy.coefficients.tolist()

    def at(n: int) -> int:
        return h[n] if n < k else 0 if n == k else -h[2 * k - n]

    return [
        [(at(abs(i - j)) + at(i + j + 1)) * strategy.weights.tolist()[j] for j in range(k)] for i in range(k)
    ]


def exactly(strategy: WeightedSums, counts: Any) -> list[int]:
    source = byte_source(np.random.default_rng(0))
    return measure_weighted_sums(strategy, np.asarray(counts), NO_NOISE, source).tolist()


PLACES = pd.DataFrame({"a": ["s", "s", "t"], "b": ["u", "v", None]})
DOMAIN = dpt.Domain.from_frame(PLACES, by=["a", "b"])
VERBS = {
    "cdf": dpt.cdf,
    "histogram": dpt.histogram,
    "quantiles": lambda frame, column, **options: dpt.quantiles(frame, column, [0.25, 0.5], **options),
    "range_counts": lambda frame, column, **options: dpt.range_counts(frame, column, [(0, 4)], **options),
}


def plan(bins=4, bounds=(0, 4), **options):
    return dpt.plan_distribution("x", bounds=bounds, bins=bins, **options)


def small(rows):
    """Make records of pairs: a leaf of the domain, or -1 for none, and a value."""
    keys = pd.DataFrame([*PLACES.itertuples(index=False), ("z", "z")], columns=["a", "b"], dtype=object)
    frame = keys.iloc[[leaf if leaf >= 0 else 3 for leaf, _ in rows]].reset_index(drop=True)
    return frame.assign(x=pd.Series([value for _, value in rows], dtype="float64"))

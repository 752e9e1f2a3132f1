"""Estimating the distinct units in a million leaves, beside estimating as many counts that add up."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

import numpy as np

from pandas_dptree.estimation.least_squares import propagate
from pandas_dptree.estimation.nonnegative import nonnegative_totals
from pandas_dptree.estimation.rounding import round_to_whole
from pandas_dptree.estimation.unit_counts import nonnegative_units
from pandas_dptree.hierarchy.tree import Tree

TREES = {"100 x 100 x 100": [100] * 3, "2^20": [2] * 20}
MOST = 1.5


def seconds(calls: list[Callable[[], object]], rounds: int = 4) -> list[float]:
    """Best CPU times of several calls that take turns."""
    times = np.full((rounds, len(calls)), np.inf)
    for turn in range(rounds):
        for place, call in enumerate(calls):
            start = process_time()
            call()
            times[turn, place] = process_time() - start
    return times.min(axis=0).tolist()


def compared(tree: Tree, occupied: float, measured: bool) -> tuple[float, float]:
    """CPU seconds of whole counts of units in at most four nodes, and of whole counts that add up."""
    rng = np.random.default_rng(0)
    counts = [rng.geometric(0.05, tree.n_leaves) * (rng.random(tree.n_leaves) < occupied)]
    for level in reversed(range(tree.depth)):  # about a fifth of the units are in a second child
        largest, total = (f(level, counts[0]) for f in (tree.max_children, tree.sum_children))
        counts.insert(0, np.maximum(largest, np.ceil(0.8 * total).astype(np.int64)))

    def noisy(levels: list[np.ndarray]) -> list[np.ndarray]:
        return [level + np.rint(rng.laplace(0, 4, level.shape)) for level in levels]

    def words(n: int) -> np.ndarray:
        return rng.integers(2**64, size=n, dtype=np.uint64)

    noise = [32.0] * (tree.depth + 1)
    records, additive = noisy(list(tree.roll_up(counts[-1]))), propagate(tree, noise)
    units = noisy(counts)
    excess = noisy(
        [tree.sum_children(level, counts[level + 1]) - counts[level] for level in range(tree.depth)]
    )
    variances = propagate(tree, noise, [32.0 if measured else np.inf] * tree.depth)
    bounds = [1] + [4] * tree.depth
    ours, theirs = seconds(
        [
            lambda: nonnegative_units(tree, units, variances, excess if measured else None, bounds, words),
            lambda: round_to_whole(tree, nonnegative_totals(tree, records, additive)[-1], words),
        ]
    )
    return ours, theirs


def run() -> list[dict[str, object]]:
    """Measure everything."""
    table = []
    for name, branching in TREES.items():
        for occupied in (0.05, 1.0):
            for measured in (True, False):
                ours, theirs = compared(Tree.from_branching(branching), occupied, measured)
                what = f"{name}, {occupied:.0%} occupied, {'with' if measured else 'without'} excess"
                table.append(
                    {
                        "what": f"whole counts of units, {what}",
                        "ours": f"{ours:.3f} s",
                        "peer": f"{theirs:.3f} s (counts that add up)",
                        "ratio": ours / theirs,
                        "target": f"<= {MOST:g}",
                        "ok": ours <= MOST * theirs,
                    }
                )
    return table


if __name__ == "__main__":
    for row in run():
        print(*row.values(), sep=" | ")

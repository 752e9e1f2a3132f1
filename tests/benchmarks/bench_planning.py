"""How long planning takes, and what it is worth beside OpenDP's b-ary tree.

Run with ``python -m tests.benchmarks.bench_planning``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import opendp.prelude as dp
import pandas as pd

import pandas_dptree as dpt
from tests.benchmarks.bench_release import BY, people, seconds

LOSSES: tuple[dict[str, float], ...] = ({"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}, {"rho": 0.1})
TREES = {"16 × 16 × 16": (16, 3), "2 × … × 2, ten times": (2, 10)}  # branching factor, depth


def ragged_tree(level_sizes: tuple[int, ...], seed: int = 0) -> dpt.Tree:
    """Draw a tree with families of very unequal sizes, in which one inner node of twenty is a leaf."""
    rng = np.random.default_rng(seed)
    depth = len(level_sizes)
    counts, ends = [], np.array([depth])
    for level, size in enumerate(level_sizes):
        goes_on = ends == depth
        spare = size - len(ends)  # every node has one child at least
        attraction = rng.dirichlet(np.full(np.count_nonzero(goes_on), 0.5))
        count = np.ones(len(ends), dtype=np.int64)
        count[goes_on] += rng.multinomial(spare, attraction)
        counts.append(count)
        ends = np.repeat(ends, count)
        if level + 1 < depth:
            ends = np.where((ends == depth) & (rng.random(len(ends)) < 0.05), level + 1, ends)
    return dpt.Tree(tuple(counts), ends)


def planning_times() -> list[dict[str, Any]]:
    """Time plans with the optimal split: each the best of several."""
    cities = dpt.Domain.from_frame(people(10)[1], by=BY)
    million = ragged_tree((50, 3_000, 60_000, 1_000_000))
    hierarchies = (
        (f"state, county, {cities.tree.n_leaves:,} cities", cities, 1.0, 5),
        (f"ragged tree, {million.n_leaves:,} leaves", million, 5.0, 3),
        ("uniform tree, 100 × 100 × 100 × 100 leaves", dpt.Tree.from_branching([100] * 4), 0.05, 10),
    )
    table = []
    for what, hierarchy, limit, repeats in hierarchies:
        for loss in LOSSES:
            took = seconds(lambda h=hierarchy, loss=loss: dpt.plan(h, **loss), repeats)
            given = ", ".join(f"{name}={value:g}" for name, value in loss.items())
            table.append(
                {
                    "what": f"plan, {what}, {given}",
                    "ours": f"{took * 1e3:.0f} ms",
                    "peer": "",
                    "ratio": took / limit,
                    "target": f"<= {limit * 1e3:g} ms",
                    "ok": took <= limit,
                }
            )
    return table


def beside_opendp(branching: int = 16, depth: int = 3, repeats: int = 200) -> pd.DataFrame:
    """Release one uniform tree many times, in turns with OpenDP's b-ary tree and with this package.

    Both protect one row, added or removed, at epsilon = 1, by exact discrete Laplace noise on every level,
    the root among them (this package leaves levels out where that is better). Both then give unbiased
    estimates that add up, without rounding or clipping. OpenDP's noise has the smallest scale for which
    OpenDP itself certifies epsilon = 1; its consistency step returns the leaves, of which the levels above
    are sums.

    Parameters
    ----------
    branching, depth : int
        How many children each node has, and how many levels lie below the root.
    repeats : int
        How many releases of each.

    Returns
    -------
    pandas.DataFrame
        A row per level, by its number of nodes. Root-mean-square errors in counts: ``OpenDP``; ``even``,
        ours with the same even split; ``levels``, ``cells`` and ``worst``, ours with the best split for
        that objective. And what they should be: ``expected of OpenDP``, from its response to single counts,
        and ``expected of even`` and so on, from the plans.
    """
    dp.enable_features("contrib")
    tree = dpt.Tree.from_branching([branching] * depth)
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    b_ary = dp.t.make_b_ary_tree(*space, leaf_count=tree.n_leaves, branching_factor=branching)
    theirs = dp.binary_search_chain(
        lambda scale: b_ary >> dp.m.then_laplace(scale=scale), d_in=1, d_out=1.0, bounds=(0.1, 1000.0)
    )
    consistent = dp.t.make_consistent_b_ary_tree(branching_factor=branching)

    def add_up(leaves: list[float]) -> list[np.ndarray]:
        return [np.reshape(leaves, (size, -1)).sum(axis=1) for size in tree.level_sizes]

    plans = {"even": dpt.plan(tree, epsilon=1.0, split="uniform", consistency="linear")}
    for objective in ("levels", "cells", "worst"):
        plans[objective] = dpt.plan(tree, epsilon=1.0, objective=objective, consistency="linear")
    rng = np.random.default_rng(0)
    leaf_counts = rng.poisson(rng.gamma(0.3, 100.0, tree.n_leaves))  # their errors do not depend on them
    truth, ends = tree.roll_up(leaf_counts), np.cumsum(tree.level_sizes)[:-1]
    squares = {name: np.zeros(depth + 1) for name in ("OpenDP", *plans)}
    for _ in range(repeats):
        estimates = {"OpenDP": add_up(consistent(theirs(leaf_counts.tolist())))}
        for name, plan in plans.items():
            estimates[name] = np.split(plan.release(leaf_counts)["count"].to_numpy(), ends)
        for name, levels in estimates.items():
            squares[name] += [np.mean((x - y) ** 2) for x, y in zip(levels, truth, strict=True)]
    table = pd.DataFrame({name: np.sqrt(total / repeats) for name, total in squares.items()})

    # The consistency step is linear and treats siblings alike, so a count in one node of each level tells
    # how much of each level's noise ends up where.
    variance = np.zeros(depth + 1)
    for first, size in zip([0, *ends], tree.level_sizes, strict=True):
        count = np.zeros(sum(tree.level_sizes), dtype=int)
        count[first] = 10**6
        response = [level / 1e6 for level in add_up(consistent(count.tolist()))]
        variance += [size * np.mean(level**2) for level in response]
    noise = dpt.Laplace().variance(plans["even"].noise_scales[:1])  # the scale is theirs too: depth + 1
    table["expected of OpenDP"] = np.sqrt(variance * noise)
    for name, plan in plans.items():
        table[f"expected of {name}"] = plan.std_errors
    return table.set_axis(pd.Index(tree.level_sizes, name="nodes"))


def overall(errors: pd.Series, objective: str) -> float:
    """Sum the errors of the levels up as an objective does."""
    if objective == "worst":
        return float(errors.max())
    weights = errors.index.to_numpy() if objective == "cells" else None
    return float(np.sqrt(np.average(errors**2, weights=weights)))


def accuracy(repeats: int = 200) -> list[dict[str, Any]]:
    """Hold the errors of the best split against OpenDP's: over levels, over nodes, in the worst level.

    The ratio is that of the expected errors, which are known exactly; the measured ones stand beside them.
    """
    table = []
    for what, (branching, depth) in TREES.items():
        errors = beside_opendp(branching, depth, repeats)
        for objective in ("levels", "cells", "worst"):
            (ours, expected), (theirs, expected_theirs) = (
                [overall(errors[column], objective) for column in (name, f"expected of {name}")]
                for name in (objective, "OpenDP")
            )
            table.append(
                {
                    "what": f"RMSE, {what}, {objective}",
                    "ours": f"{expected:.2f} (measured {ours:.2f})",
                    "peer": f"{expected_theirs:.2f} (measured {theirs:.2f}; OpenDP b-ary tree)",
                    "ratio": expected / expected_theirs,
                    "target": "< 1",
                    # The root is one number a release: its error varies by 6 % where 200 are made.
                    "ok": expected < expected_theirs and abs(ours / expected - 1) < 0.3,
                }
            )
    return table


def run() -> list[dict[str, Any]]:
    """Measure everything in this module."""
    return [*planning_times(), *accuracy()]


def main() -> None:
    """Print the rows as a table, and the errors level by level."""
    print(pd.DataFrame(run()).to_string(index=False, float_format="{:.4g}".format))
    for what, (branching, depth) in TREES.items():
        print(f"\nRoot-mean-square errors by level, {what}, epsilon = 1, 1000 releases\n")
        print(beside_opendp(branching, depth, repeats=1000).T.to_string(float_format="{:.2f}".format))


if __name__ == "__main__":
    main()

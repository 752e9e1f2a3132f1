"""Functions of numbers: metrics, bounds, trees over bins, and mechanisms for releases of one's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import pandas_dptree as dpt
from tests.seeded.cases.register import case
from tests.seeded.cases.tables import counts
from tests.seeded.data import APPROXIMATE, EXACT, PURE, rng, scattered, visits

TREE = dpt.Tree.from_branching([3, 4, 2])
RAGGED = dpt.Tree.from_paths([[0, 0], [0, 1], [0, 2], [1, 0], [2, 0]])
LARGE = dpt.Tree.from_branching([50, 60, 30])
FALL: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
NOISES = {"laplace": dpt.Laplace(), "gaussian": dpt.Gaussian()}
SCALES = [0.01, 0.5, 1.0, 3.25, 1e6, np.inf]


@case
def datasets():
    trips = dpt.datasets.taxi_trips(n_trips=2_000, n_cells=16, seed=3)
    return {
        "visits": dpt.datasets.clinic_visits(n_people=25, seed=1),
        "clinics": dpt.datasets.clinics().iloc[::40],
        "trips": trips.to_dataset(),
    }


@case
def metrics_of_tables():
    truth = counts(**EXACT)
    released = [counts(seed, **PURE) for seed in range(4)]
    return {
        "alpha_rmse": dpt.theory.alpha_rmse(released, truth, 0.1),
        "one": dpt.theory.alpha_rmse(released[0], truth),
        "max": dpt.theory.max_alpha_rmse(released, truth, 0.1),
        "relative": dpt.theory.smoothed_relative_error(released, truth, 10.0),
        "accuracy": dpt.theory.accuracy(released, truth, 0.2, thresholds=5.0),
        "is_accurate": dpt.theory.is_accurate(released, truth, 0.2, 0.3, thresholds=100.0),
        "l2": dpt.theory.l2_error(released, truth),
        "linf": dpt.theory.linf_error(released, truth),
    }


@case
def metrics_of_other_tables():
    """The truth as ``groupby`` tells it, or without keys; and thresholds by level."""
    frame = visits().dropna(subset=["region"])
    regions = pd.DataFrame({"region": ["North", "South", "West", "By telephone", "Nowhere"]})
    table = dpt.tree_counts(frame, ["region"], domain=regions, rng=rng(), **PURE)
    sizes = frame.groupby("region").size()
    read = table.astype({"level": str})
    return {
        "series": dpt.theory.alpha_rmse(table, sizes, 0.1),
        "frame": dpt.theory.alpha_rmse(table, sizes.rename("count").reset_index(), 0.1),
        "numbers": dpt.theory.l2_error(table, np.append(sizes.sum(), sizes.reindex(table["region"][1:]))),
        "read again": dpt.theory.linf_error(read, table),
        "thresholds": dpt.theory.accuracy(table, sizes, 0.01, thresholds={"total": 300.0, "region": 20.0}),
        "column": dpt.theory.linf_error(table, table, column="std_error"),
    }


@case
def metrics_of_numbers():
    estimates, truth = np.array([[9.0, 22.0, -1.0], [12.0, 18.0, 0.5]]), [10, 20, 0]
    return {
        "alpha_rmse": dpt.theory.alpha_rmse(estimates, truth, 0.1),
        "relative": dpt.theory.smoothed_relative_error(estimates, truth, 2.0),
        "accuracy": dpt.theory.accuracy(estimates, truth, 0.05, thresholds=[1, 2, 30]),
        "errors": [dpt.theory.l2_error(estimates, truth), dpt.theory.linf_error(estimates, truth)],
    }


@case
def metrics_predicted():
    truths = [0, 1, 10, 333, 2_000]
    found: dict[str, Any] = {
        f"{name} {continuous}": dpt.theory.predicted_alpha_rmse(
            noise, [0.5, 1, 7, 40, 40], truths, 0.05, continuous=continuous
        )
        for name, noise in NOISES.items()
        for continuous in (False, True)
    }
    found["estimate"] = dpt.theory.estimate_alpha_rmse([1.0, 9.0, 400.0], [0.5, 0.0, 1e4], [0, 5, 90], 0.1)
    found["accuracy"] = dpt.theory.accuracy_from_rmse([3.0, 5.0], 0.1, 0.3, [100, 20])
    found["relative"] = dpt.theory.relative_error_from_rmse([3.0, 5.0], 0.1, 10.0)
    return found


@case
def bounds_of_errors():
    b = dpt.theory
    return {
        "table": b.error_bounds(LARGE, alpha=0.25, **FALL),
        "gaussian": [b.gaussian_lower_bound(TREE, objective=each) for each in ("levels", "cells")],
        "weights": b.gaussian_lower_bound(TREE, level_weights=np.array([1.0, 0.0, 2.0, 1.0])),
        "packing": [
            b.packing_error(LARGE, alpha=0.1, **FALL),
            b.packing_threshold(LARGE, alpha=0.5, eta=0.05, **FALL),
            b.published_packing_threshold(LARGE, alpha=0.5, eta=0.05, **FALL),
        ],
        "step_loss": b.step_loss([1, 2, 100], 0.1),
        "factorization": [b.factorization_error(TREE, **FALL), *b.factorization_norm(TREE), b.witness(TREE)],
        "shares": b.worst_node_shares(TREE),
        "single": [b.single_count_error(epsilon=1.0), b.single_count_error(alpha=0.5, **FALL)],
        "floor": [b.noise_floor(epsilon=0.5), b.noise_floor(**FALL)],
        "from_thresholds": list(b.from_thresholds(TREE, np.cumsum(np.arange(24)))),
        "decode": b.decode(list(TREE.roll_up(np.arange(24) == 17)), TREE, 1, 1e-12, rng()),
    }


@case
def bounds_of_ragged_trees():
    """Of 200 leaves in no order, which are not alike."""
    tree, b = dpt.Tree.from_paths(np.unique(scattered(400, 9, 44).reshape(-1, 2), axis=0)), dpt.theory
    return {
        "norm": list(b.factorization_norm(tree)),
        "packing": b.packing_error(tree, **FALL),
        "gaussian": [b.gaussian_lower_bound(tree, objective=each) for each in ("levels", "cells", "worst")],
        "from_thresholds": list(b.from_thresholds(tree, np.arange(tree.n_leaves))),
    }


@case
def trees_over_bins():
    d, plans = dpt.theory, {}
    for name, noise in NOISES.items():
        plan = dpt.plan(TREE, mechanism=noise, **APPROXIMATE)
        best = d.best_tree(100, noise=noise, loss=plan.loss, sensitivity=plan.sensitivity.levels[0])
        plans[name] = [best.branching, best.shares, best.error]
    found = d.optimal_tree(100, height=3, budgets="optimal")
    return plans | {
        "optimal_tree": [found.branching, found.budgets, found.error],
        "even": d.optimal_tree(60, padding=False).branching,
        "lower_bound": [d.cumulative_lower_bound(100), d.cumulative_lower_bound(64, 2.0, total_known=True)],
        "budgets": d.optimal_budgets([4, 5, 5], 1.0),
        "branching": d.optimal_branching([0.2, 0.3, 0.5], 1_000),
        "real": d.optimal_real_tree(1_000, 4),
        "factor": d.best_branching_factor(),
        "errors": [
            d.threshold_error(100, 2.0),
            d.histogram_error(100, 2.0, total_variance=1.0),
            d.tree_error([4, 5, 5], [1.0, 2.0, 3.0]),
            d.refined_error([4, 5, 5], [1.0, 2.0, 3.0]),
        ],
    }


@case
def estimates_over_bins():
    d = dpt.theory
    exact = TREE.roll_up(scattered(24, 30, 41))
    noisy = [level + scattered(len(level), 5, 42 + place) - 2 for place, level in enumerate(exact)]
    variances = [1.0, 2.0, 2.0, 4.0]
    starts, stops = np.array([0, 3]), np.array([5, 24])
    return {
        "left_cover": [d.left_cover(TREE, noisy), d.left_cover_variances(TREE, variances)],
        "average": [d.average_covers(TREE, noisy, variances), d.average_covers_variances(TREE, variances)],
        "least_squares": d.least_squares_sums(TREE, noisy, variances),
        "variances": [
            d.cumulative_variances(TREE, variances),
            d.range_variances(TREE, variances, starts, stops),
        ],
        "by node": [
            d.cumulative_variances(RAGGED, [1.0, np.array([1.0, 2.0, np.inf]), 3.0]),
            d.range_variances(RAGGED, [np.inf, np.array([1.0, 2.0, 3.0]), 3.0], np.array([0]), np.array([4])),
        ],
        "cover": [list(each) for each in d.cover(TREE, 3, 17)],
        "intervals": [
            [each.value, each.variance] for each in d.interval_estimates(TREE, noisy, variances, 2, 11)
        ],
        "maximum": d.expected_maximum_bound(TREE, [1.0, 2.0, 2.0, 2.0]),
        "consistent": d.consistent_cdf(np.array([-1.0, 3.4, 3.1, 8.0, 7.5]), 8),
    }


@case
def ties():
    """Halves: of a total, within families, between the steps of a grid, and in cells."""
    chains = [
        dpt.plan(dpt.Tree.from_branching(each), split="uniform", **PURE) for each in ([1], [1, 1, 1], [4])
    ]
    frame = pd.DataFrame({"k": list("abcdef"), "x": [0.25, 0.75, 1.25, -0.25, -0.75, 2.5]})
    public: dict[str, Any] = {"domain": frame[["k"]], "rng": rng(), **EXACT}
    cells = xr.DataArray([0.5, 1.5, 2.5, 3.5, -0.5], dims=["cell"], coords={"cell": list("abcde")})
    return {
        "trees": [
            [
                plan.release(np.full(plan.tree.n_leaves, 30), rng=rng(seed))["count"].tolist()
                for seed in range(8)
            ]
            for plan in chains
        ],
        "sums": dpt.tree_sums(frame, ["k"], columns="x", bounds=(-3, 3), granularity=0.5, **public)[
            "x"
        ].tolist(),
        "means": dpt.tree_means(frame, ["k"], columns="x", bounds=(-3, 2.75), granularity=0.5, **public)[
            "x"
        ].tolist(),
        "bounds": dpt.plan(
            dpt.Tree.from_branching([2]), column="x", bounds=(-0.25, 2.75), granularity=0.5, **PURE
        ).to_dict()["quantity"],
        "cells": cells.dp.tree_counts(["cell"], max_contributions=1, rng=rng(), **EXACT),
    }


@case
def certificates():
    leaves = scattered(24, 9, 43)
    found = {}
    for fit in ("totals", "joint"):
        plan = dpt.plan(TREE, consistency="nonnegative", fit=fit, keep=["measurements"], rho=0.5)
        table = plan.release(leaves, rng=rng())
        names = list(plan.level_names)
        rows = [table[table["level"] == name] for name in names]
        measurements = [each["measurement"].to_numpy(dtype=float) for each in rows]
        estimates = [each["count"].to_numpy(dtype=float) for each in rows]
        certificate = dpt.theory.certify(TREE, measurements, plan._variances, estimates, fit=fit)
        found[fit] = certificate.ok
    return found


@case
def additive_noises():
    return {
        name: {
            "repr": repr(noise),
            "name": noise.name,
            "variance": noise.variance(SCALES),
            "fourth": noise.fourth_cumulant(SCALES),
            "half_width": noise.half_width(SCALES[:-1], 0.95),
            "equal": noise == type(noise)(),
        }
        for name, noise in NOISES.items()
    }


@case
def truncated_laplace():
    noises = [dpt.TruncatedLaplace(1.0, 1e-6), dpt.TruncatedLaplace(0.1, 1e-9, 3)]
    return [
        {
            "repr": repr(noise),
            "numbers": [noise.noise_scale, noise.radius, noise.delta_spent, noise.variance],
            "fourth": noise.fourth_cumulant,
            "released": noise.release([0, 5, 100, 10**9] * 5, rng=rng()),
            "interval": noise.interval([0, 40]),
        }
        for noise in noises
    ]


@case
def sparse_vector():
    vector = dpt.SparseVector(threshold=50, cutoff=2, epsilon=2.0, sensitivity=2, n_streams=3, rng=rng())
    answers = [vector.ask([10, 90, 45 + 5 * step]) for step in range(6)]
    return {
        "answers": answers,
        "some": vector.ask([500, 10], [0, 2]),
        "numbers": [vector.threshold_scale, vector.query_scale, vector.error_bound(10, 0.05)],
        "exact": vector.error_bound(10, 0.05, exact=True),
        "n_positive": vector.n_positive,
        "exhausted": vector.exhausted,
    }

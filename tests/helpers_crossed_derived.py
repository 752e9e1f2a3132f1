"""Released crossed tables of a small world, and the covariances of all their rows by dense linear algebra."""

import numpy as np
import pandas as pd

import pandas_dptree as dpt
from tests.helpers_crossed import dense_crossed, margin_matrices

PLACES = pd.DataFrame(
    {"state": ["CA", "CA", "DC", "NY"], "county": ["Kern", "Marin", None, "Kings"]}, dtype=object
)
SEXES = pd.DataFrame({"sex": ["F", "M", "X"], "none": [False, False, True]})
LEAVES = np.array([[500, 400, 0], [300, 30, 0], [20, 10, 0], [90, 60, 0]])
OPTIONS = [
    {},
    {"mechanism": "laplace"},
    {"neighbors": "replace", "consistency": "nonnegative"},
    {"margins": [{"place": "county"}, {"place": "state", "sex": "sex"}, {"sex": "sex"}, {}]},
    {"known": {"state": pd.Series([1230, 30, 150], index=pd.Index(["CA", "DC", "NY"], name="state"))}},
    {"consistency": "none"},
]


PLANS = {}


def plan_of(options):
    """The plan of these options, which is made once."""
    if (name := str(options)) in PLANS:
        return PLANS[name]
    domain = dpt.cross(
        place=dpt.Domain.from_frame(PLACES, by=["state", "county"]),
        sex=dpt.Domain.from_frame(SEXES, by=["sex"], structural_zeros="none"),
    )
    keep = None if options.get("consistency") == "none" else ["linear"]
    return PLANS.setdefault(name, dpt.plan(domain, **{"rho": 0.5, "keep": keep, **options}))


def release(plan, seed=0):
    leaves = LEAVES if plan.tree.leaf_shape == LEAVES.shape else LEAVES.sum(axis=1)
    return plan.release(leaves, rng=np.random.default_rng(seed))


def covariance_of_rows(plan):
    """The covariance matrix of the errors of all rows of a table."""
    shown = [plan.tree.level_of(margin) for margin in plan.tree.shown]
    listed = np.concatenate([plan.tree.listed(level) for level in shown])
    if plan.consistency == "none":
        variances = [np.broadcast_to(plan._error_variances[k], plan.tree.level_sizes[k]) for k in shown]
        return np.diag(np.concatenate(variances)[listed])
    sums = margin_matrices(plan.tree)
    nothing = [np.zeros(size) for size in plan.tree.level_sizes]
    whole = dense_crossed(plan.tree, plan._noise_variances, nothing, plan.known)[-1]
    rows = np.vstack([sums[level] for level in shown])[listed]
    return rows @ whole[1] @ rows.T

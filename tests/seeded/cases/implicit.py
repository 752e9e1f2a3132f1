"""Trees that are too large to be listed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import pandas_dptree as dpt
from tests.seeded.cases.register import case, default
from tests.seeded.data import APPROXIMATE, CONCENTRATED, PEOPLE, logins, rng

IPS = dpt.prefixes("ip", bits=[8, 16, 24, 32], notation="ipv4")
ADDRESSES = dpt.prefixes("address", bits=[4, 20, 32], width=32, notation="number")
USERS = dpt.binary("user", bits=8)
CODES = dpt.prefixes("code", chars=[1, 2, 4], alphabet="0123456789ABC")
TREES = {"ips": IPS, "addresses": ADDRESSES, "users": USERS, "codes": CODES}


def large(tree: Any, seed: int = 0, **options: Any) -> pd.DataFrame:
    return dpt.tree_counts(logins(), tree, **{"rng": rng(seed), **APPROXIMATE, **options})


@case
def prefixes_of_addresses():
    return logins().dp.tree_counts(IPS, rng=rng(), **APPROXIMATE)


@case
def prefixes_of_numbers():
    return dpt.tree_counts(pl.from_pandas(logins()), ADDRESSES, rng=rng(), **APPROXIMATE)


@case
def prefixes_of_texts():
    frame = pa.Table.from_pandas(logins(), preserve_index=False)
    return dpt.tree_counts(frame, CODES, rng=rng(), keep=["measurements"], epsilon=4.0, delta=1e-4)


@case
def binary_tree():
    return large(USERS, keep=["measurements"], epsilon=8.0, delta=1e-3)


@default
def prefixes_of_units():
    noise = {"mechanism": "truncated_laplace", "split": "uniform"}
    return {
        "units": large(IPS, **noise, **PEOPLE),
        "replace": large(IPS, neighbors="replace", **noise),
        "three": large(CODES, privacy_unit="person", max_contributions=3, neighbors="replace", **noise),
    }


@case
def prefixes_splits():
    shares = {"total": 0.1, "ip/8": 0.2, "ip/16": 0.2, "ip/24": 0.2, "ip/32": 0.3}
    return {"given": large(IPS, split=shares, keep=["measurements"]), "uniform": large(IPS, split="uniform")}


@case
def prefixes_of_nobody():
    return dpt.tree_counts(logins().iloc[:0], IPS, rng=rng(), **APPROXIMATE)


@case
def prefixes_multiplicative():
    frame = pd.DataFrame({"user": np.repeat(np.array([7, 71, 200]), [40_000, 9_000, 50])})
    guarantees = {
        "exact": dpt.Multiplicative(alpha=0.25),
        "clip": dpt.Multiplicative(alpha=0.5, clip=True),
        "threshold": dpt.Multiplicative(alpha=0.5, threshold=8_000, failure_probability=0.01),
    }
    return {
        name: dpt.tree_counts(frame, USERS, mechanism=guarantee, rng=rng(), **APPROXIMATE)
        for name, guarantee in guarantees.items()
    }


@case
def prefixes_multiplicative_units():
    guarantee = dpt.Multiplicative(alpha=0.9)
    return large(CODES, mechanism=guarantee, epsilon=8.0, delta=0.01, **PEOPLE)


@case
def plan_of_prefixes():
    return {
        name: {
            "frame": plan.to_frame(),
            "level_names": list(plan.level_names),
        }
        for name, tree in TREES.items()
        for plan in [dpt.plan(tree, neighbors="replace", **APPROXIMATE, **PEOPLE)]
    }


@case
def plan_of_prefixes_multiplicative():
    guarantee = dpt.Multiplicative(alpha=0.25, calibration="proof")
    plan = dpt.plan(IPS, mechanism=guarantee, **APPROXIMATE)
    return {
        "frame": plan.to_frame(),
        "largest_unseen": plan.largest_unseen,
        "threshold": plan.threshold,
        "error_bound": plan.error_bound([0, 10**6]),
    }


@case
def plan_of_prefixes_compared():
    plan = dpt.plan(USERS, **APPROXIMATE)
    return {"default": plan.compare(), "failure": plan.compare(alpha=0.5, failure_probability=1e-3)}


@case
def plan_of_prefixes_released():
    plan = dpt.plan(IPS, keep=["measurements"], **APPROXIMATE)
    factors = dpt.plan(CODES, mechanism=dpt.Multiplicative(alpha=0.9), epsilon=8.0, delta=0.1)
    return {
        "plan": plan.release(logins(), rng=rng(3)),
        "accessor": logins().dp.release(plan, rng=rng(4)),
        "factors": factors.release(logins(), rng=rng(5)),
    }


@case
def detection_of_prefixes():
    plans = {
        mechanism: dpt.plan(IPS, mechanism=mechanism, split="uniform", **APPROXIMATE)
        for mechanism in ("truncated_laplace", "gaussian")
    }
    return {
        name: dpt.detection_probability(plan, [0, 1, 60, 66, 67, 100, 132, 133])
        for name, plan in plans.items()
    }


@default
def gaussian_thresholds():
    return {
        "approximate": large(IPS, mechanism="gaussian"),
        "concentrated": dpt.tree_counts(logins(), IPS, delta=1e-6, rng=rng(), **CONCENTRATED, **PEOPLE),
    }

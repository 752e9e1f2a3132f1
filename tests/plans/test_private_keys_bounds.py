"""Whether counts of tables with private keys are as far from the truth as the tables say."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pandas_dptree as dpt
from pandas_dptree.mechanisms.private_levels.gated import GatedLevels
from pandas_dptree.mechanisms.private_levels.independent import IndependentLevels

KEYS = ["s", "p", "q"]
SIZES = {"a": [20, 25, 30, 35, 40, 45, 50, 60, 80, 100] * 3, "b": [1] * 300 + [200], "c": []}
"""The records of each p in three places: many near the thresholds, many of one record, none."""
DOMAIN = dpt.Domain.from_frame(pd.DataFrame({"s": list(SIZES)}), by=["s"])


def records():
    """Half of each p is in one q; a tenth has no q; some have no p or no place."""
    rows = [
        (s, f"p{place}", None if row % 10 == 9 else f"q{row % 2}")
        for s, sizes in SIZES.items()
        for place, size in enumerate(sizes)
        for row in range(size)
    ]
    return pd.DataFrame([*rows, *[("c", None, "q0")] * 7, *[("d", "p0", "q0")] * 9], columns=KEYS)


def true_counts(frame):
    counts = {(): int(frame["s"].isin(list(SIZES)).sum())} | {(s,): 0 for s in SIZES}
    for depth in (1, 2, 3):
        grouped = frame[frame["s"].isin(list(SIZES))].groupby(KEYS[:depth]).size()
        counts |= {path if isinstance(path, tuple) else (path,): n for path, n in grouped.items()}
    return counts


def farther_than_stated(table, counts, bound):
    """Give, for each row, how much farther the count is from the truth than its bound."""
    depths = [["total", *KEYS].index(level) for level in table["level"]]
    paths = [tuple(row[key] for key in KEYS[:depth])
             for row, depth in zip(table.to_dict("records"), depths, strict=True)]  # fmt: skip
    shown = {path for path, other in zip(paths, table["other"], strict=True) if not other}
    found = dict.fromkeys(counts, 0)
    for path in shown - {()}:
        found[path[:-1]] += counts[path]
    truth = [
        counts[path[:-1]] - found[path[:-1]] if other else counts[path]
        for path, other in zip(paths, table["other"], strict=True)
    ]
    assert (table[bound] >= 0).all() and (table["count"] >= 0).all()
    return np.abs(table["count"] - truth) - table[bound]


@pytest.mark.parametrize(
    ("split", "times"),
    [("uniform", 12), ("doubling", 12), pytest.param("uniform", 100, marks=pytest.mark.slow)],
)
def test_the_largest_error_is_never_exceeded(split, times):
    frame = records()
    plan = dpt.plan(
        DOMAIN, private_keys=["p", "q"], epsilon=2.0, delta=1e-3, privacy_unit=dpt.ROWS, split=split,
        mechanism="truncated_laplace",
    )  # fmt: skip
    assert isinstance(plan.noise, IndependentLevels)
    counts = true_counts(frame)
    tight = 0
    for seed in range(times):
        table = plan.release(frame, rng=np.random.default_rng(seed))
        excess = farther_than_stated(table, counts, "max_error")
        assert (excess <= 0).all()
        tight += (excess > -5).sum()
    assert tight > times / 2  # the bound is not vacuous


@pytest.mark.parametrize(
    ("confidence", "times"),
    [(0.5, 25), (0.95, 25), *(pytest.param(each, 150, marks=pytest.mark.nightly) for each in (0.5, 0.95))],
)
def test_all_bounds_of_a_table_hold_together_with_the_stated_probability(confidence, times):
    frame = records()
    plan = dpt.plan(
        DOMAIN, private_keys=["p", "q"], epsilon=2.0, delta=1e-3, privacy_unit=dpt.ROWS,
        mechanism="gaussian", confidence=confidence,
    )  # fmt: skip
    assert isinstance(plan.noise, GatedLevels)
    counts = true_counts(frame)
    tables = (plan.release(frame, rng=np.random.default_rng(seed)) for seed in range(times))
    held = sum((farther_than_stated(table, counts, "error_bound") <= 0).all() for table in tables)
    assert held >= stats.binom.ppf(1e-6, times, confidence)


def test_the_radii_hold_for_all_noise_of_a_level_together():
    """Exactly, for as many nodes as the noisy total allows, by the distribution of the discrete Gaussian."""
    plan = dpt.plan(
        None, private_keys=["p", "q"], epsilon=1.0, delta=1e-6, privacy_unit=dpt.ROWS, mechanism="gaussian"
    )
    for total in (-50, 0, 30, 10**4, 10**9, 2**61):
        released = [(np.arange(1), np.array([total]))] * 3
        radii = plan.noise.radii(released, 0.9)
        n_nodes = [1, *[max(total + radii[0], 1)] * 2]
        for scale, radius, nodes in zip(plan.noise.noise_scales, radii, n_nodes, strict=True):
            values = np.arange(-40 * math.ceil(scale), 40 * math.ceil(scale) + 1)
            masses = np.exp(-((values / scale) ** 2) / 2)
            tail, wider = (masses[abs(values) > r].sum() / masses.sum() for r in (radius, radius - 1))
            assert nodes * tail <= 0.1 / 3 * (1 + 1e-9) < nodes * wider * (1 + 1e-6)


def test_a_wrong_bound_is_noticed():
    frame = records()
    plan = dpt.plan(
        DOMAIN, private_keys=["p", "q"], epsilon=2.0, delta=1e-3, privacy_unit=dpt.ROWS,
        mechanism="truncated_laplace",
    )  # fmt: skip
    table = plan.release(frame, rng=np.random.default_rng(0))
    wrong = table.assign(max_error=table["max_error"] // 8)
    assert (farther_than_stated(wrong, true_counts(frame), "max_error") > 0).any()

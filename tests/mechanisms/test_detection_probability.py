"""With which probability truncated noise releases a count, and how far off it is then."""

from __future__ import annotations

import math

import numpy as np
import pytest

import pandas_dptree as dpt
from pandas_dptree.plans.implicit import detection_probability
from tests.helpers_implicit import ADDRESSES
from tests.helpers_privacy import LOSS

# Which mechanism finds what


def test_compare_inverts_the_distribution_of_truncated_noise_and_orders_the_plans():
    split = {"total": 0.2, "ip/8": 0.5, "ip/16": 0.2, "ip/32": 0.1}
    plan = dpt.plan_implicit(ADDRESSES, **LOSS, split=split)
    table = plan.compare(alpha=0.5, failure_probability=0.1)
    assert table.index.tolist() == [
        ("truncated_laplace", ""), ("multiplicative", "exact"), ("multiplicative", "proof"),
    ]  # fmt: skip
    assert (table.dtypes == np.int64).all()
    least, unseen, error = table.iloc[0]
    probability = detection_probability(plan, [least - 1, least, unseen, unseen + 1]).min(axis="columns")
    assert probability.iloc[0] < 0.9 <= probability.iloc[1]
    assert probability.iloc[2] < 1 == probability.iloc[3]
    noise = plan.noise[-1]
    support = np.arange(-noise.radius, noise.radius + 1)
    mass = np.exp(-abs(support) / noise.noise_scale)
    mass /= mass.sum()
    assert mass[abs(support) > error].sum() <= 0.1 < mass[abs(support) > error - 1].sum()
    for calibration in ("exact", "proof"):
        wish = dpt.Multiplicative(alpha=0.5, failure_probability=0.1, calibration=calibration)
        other = dpt.plan_implicit(ADDRESSES, **LOSS, mechanism=wish)
        row = table.loc["multiplicative", calibration]
        assert row["largest_unseen"] == other.largest_unseen == row["released_from"] - 1
        allowed = 0.5 * max(row["released_from"], other.threshold)
        assert row["error_bound"] == math.floor(allowed * (1 + 1e-14))


# Arguments


def test_detection_probabilities_near_1_keep_their_digits() -> None:
    """Next to 1 the complement is computed, so that no digits are lost."""
    mpmath = pytest.importorskip("mpmath")
    plan = dpt.plan_implicit(dpt.binary("k", bits=1), epsilon=0.006, delta=2e-30)
    noise = plan.noise[1]
    found = plan.compare(failure_probability=1e-15).loc[("truncated_laplace", ""), "released_from"]
    with mpmath.workdps(60):
        q = mpmath.exp(-1 / mpmath.mpf(noise.noise_scale))

        def missed(size: int) -> mpmath.mpf:
            other = 2 * noise.radius + 1 - size
            return q ** (noise.radius - other + 1) * (1 - q**other) / (1 + q - 2 * q ** (noise.radius + 1))

        assert missed(int(found)) <= 1e-15 * (1 + 1e-9)
        assert missed(int(found) - 1) > 1e-15 * (1 - 1e-9)


def test_comparisons_and_detection_probabilities_refuse_what_is_no_number() -> None:
    plan = dpt.plan_implicit(dpt.binary("k", bits=3), epsilon=1.0, delta=1e-6)
    assert plan.compare(failure_probability=None).equals(plan.compare(failure_probability=0.05))
    for counts in ([29.9], [-5], [float("nan")], ["a"]):
        with pytest.raises(dpt.ArgumentError, match="`counts`"):
            dpt.detection_probability(plan, counts)

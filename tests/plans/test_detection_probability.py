"""With which probability truncated noise releases a count."""

from __future__ import annotations

import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.plans.detection import detection_probability
from tests.helpers_implicit import ADDRESSES
from tests.helpers_privacy import LOSS

# Which mechanism finds what


@pytest.mark.parametrize("mechanism", ["truncated_laplace", "gaussian"])
def test_compare_inverts_the_detection_probability_of_each_level(mechanism):
    split = {"total": 0.2, "ip/8": 0.5, "ip/16": 0.2, "ip/32": 0.1}
    plan = dpt.plan(ADDRESSES, **LOSS, split=split, mechanism=mechanism)
    table = plan.compare(alpha=0.5, failure_probability=0.1)
    levels = list(plan.level_names[1:])
    kinds = [
        ("truncated_laplace", ""),
        ("gaussian", ""),
        ("multiplicative", "exact"),
        ("multiplicative", "proof"),
    ]
    assert table.index.tolist() == [(*kind, level) for kind in kinds for level in levels]
    assert (table.dtypes == "Int64").all()
    own = table.loc[mechanism, ""]
    for level, (least, unseen) in own.iterrows():
        probability = detection_probability(plan, [least - 1, least])[level]
        assert probability.iloc[0] < 0.9 <= probability.iloc[1]
        if mechanism == "gaussian":
            assert unseen is pd.NA
        else:
            assert detection_probability(plan, [unseen, unseen + 1])[level].tolist() == [pytest.approx(1), 1]
            assert detection_probability(plan, [unseen])[level].item() < 1
    for name in {"truncated_laplace", "gaussian"} - {mechanism}:
        other = dpt.plan(ADDRESSES, **LOSS, mechanism=name).compare(failure_probability=0.1)
        pd.testing.assert_frame_equal(table.loc[name], other.loc[name])
    for calibration in ("exact", "proof"):
        wish = dpt.Multiplicative(alpha=0.5, failure_probability=0.1, calibration=calibration)
        other = dpt.plan(ADDRESSES, **LOSS, mechanism=wish)
        rows = table.loc["multiplicative", calibration]
        assert (rows["largest_unseen"] == other.largest_unseen).all()
        assert (rows["found_from"] == other.largest_unseen + 1).all()


# Arguments


def test_detection_probabilities_near_1_keep_their_digits() -> None:
    """Next to 1 the complement is computed, so that no digits are lost."""
    mpmath = pytest.importorskip("mpmath")
    plan = dpt.plan(
        dpt.binary("k", bits=1), epsilon=0.006, delta=2e-30, mechanism="truncated_laplace", split="uniform"
    )
    noise = plan.noise.levels[1]
    found = plan.compare(failure_probability=1e-15).loc[("truncated_laplace", "", "k/1"), "found_from"]
    with mpmath.workdps(60):
        q = mpmath.exp(-1 / mpmath.mpf(noise.noise_scale))

        def missed(size: int) -> mpmath.mpf:
            other = 2 * noise.radius + 1 - size
            return q ** (noise.radius - other + 1) * (1 - q**other) / (1 + q - 2 * q ** (noise.radius + 1))

        assert missed(int(found)) <= 1e-15 * (1 + 1e-9)
        assert missed(int(found) - 1) > 1e-15 * (1 - 1e-9)


def test_comparisons_and_detection_probabilities_refuse_what_is_no_number() -> None:
    plan = dpt.plan(dpt.binary("k", bits=3), epsilon=1.0, delta=1e-6)
    assert plan.compare(failure_probability=None).equals(plan.compare(failure_probability=0.05))
    for counts in ([29.9], [-5], [float("nan")], ["a"]):
        with pytest.raises(dpt.ArgumentError, match="`counts`"):
            dpt.detection_probability(plan, counts)

"""Numbers in the unit of their column: sums of equal values are counts, times that value."""

import numpy as np
import pandas as pd

from tests.helpers_cases import each
from tests.helpers_derived import counts
from tests.helpers_random import rng


def release(seed, loss, unit=2.5):
    """Counts, and sums of a value of one unit, with the same noise."""
    records = pd.DataFrame({"k": ["a"] * 12 + ["b"] * 20, "v": unit})
    given = {"domain": ["a", "b"], "keep": ["linear"], "split": "uniform", **loss}
    return records.dp.tree_counts("k", rng=rng(seed), **given), records.dp.tree_sums(
        "k", columns="v", bounds=(0, unit), granularity=unit, rng=rng(seed), **given
    )


def numbers_of(frame):
    return frame.select_dtypes("number").drop(columns="rank", errors="ignore")


@each("loss", [{"epsilon": 1.0}, {"epsilon": 3.0}, {"rho": 3.0}])
def test_sums_of_equal_values_are_counts_in_another_unit(loss):
    (units, sums), (units_before, sums_before) = (release(seed, loss) for seed in (3, 4))
    weighted = {"areas": {"x": ["a", ()]}, "weights": {"x": [2, 1]}}
    for mine, theirs in (
        (units.dp.proportions(), sums.dp.proportions()),
        (units.dp.change_from(units_before), sums.dp.change_from(sums_before)),
        (units.dp.top(2), sums.dp.top(2)),
        (units.dp.combine(**weighted), sums.dp.combine(**weighted)),
    ):
        mine, theirs = numbers_of(mine), numbers_of(theirs)
        scales = [1 if name.startswith("percent") or "proportion" in mine else 2.5 for name in mine]
        np.testing.assert_allclose(theirs, mine * scales, rtol=1e-9, atol=1e-9)


def test_sums_of_both_signs_may_fall_below_zero():
    records = pd.DataFrame({"k": ["a"] * 30 + ["b"] * 40, "v": [-1.0] * 30 + [1.0] * 40})
    given = {"domain": ["a", "b"], "keep": ["linear"], "columns": "v", "bounds": (-1, 1), "epsilon": 2.0}
    now = records.dp.tree_sums("k", rng=rng(1), **given)
    before = records.assign(v=1.0).dp.tree_sums("k", rng=rng(2), **given)
    for frame in (now.dp.combine({"x": ["a"]}), now.dp.top(2)[1:]):
        assert frame["v_lower"].iloc[0] < frame["v"].iloc[0] < frame["v_upper"].iloc[0] < 0
    assert now.dp.change_from(before)["percent_lower"][1] < -150  # from 30 to -30


def test_intervals_contain_the_shown_number_whatever_their_confidence():
    """Integer estimates are far from the linear ones against intervals of 1 %."""
    now, before = (counts(seed, epsilon=0.1) for seed in (1, 2))
    places = {"x": ["NV", ("CA", "a", "a0")], "y": [("CA", "b")], "z": [("NY", "k"), "NV", "AZ"]}
    changes = now.dp.change_from(before, confidence=0.01)
    percent = changes[changes["percent"].notna()]
    for frame, shown, low, high in (
        (now.dp.combine(places, confidence=0.01), "count", "lower", "upper"),
        (now.dp.top(15, confidence=0.01), "count", "lower", "upper"),
        (now.dp.proportions(confidence=0.01).dropna(subset="proportion"), "proportion", "lower", "upper"),
        (changes, "change", "lower", "upper"),
        (percent, "percent", "percent_lower", "percent_upper"),
    ):
        assert (frame[low] <= frame[shown]).all() and (frame[shown] <= frame[high]).all()
    assert not now["count"].eq(now["linear"].round()).all()

"""Confidence intervals for means: which ratios they hold."""

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from pandas_dptree.estimation.ratios import independent, ratio_intervals
from tests.helpers_cases import each


@given(
    total=st.floats(-1e6, 1e6), count=st.floats(-50, 1000), count_variance=st.floats(0, 1e3),
    sum_variance=st.floats(1e-3, 1e9), bounds=st.sampled_from([(-500, 500), (-3, 2), (0, 1000)]),
)  # fmt: skip
def test_an_interval_holds_just_the_ratios_that_are_not_refuted(
    total, count, count_variance, sum_variance, bounds
):
    """Checked one by one: noise alone is normal, so the sum less t times the count is within 1.96 errors."""
    lower, upper = (
        float(end[0])
        for end in ratio_intervals(
            np.array([total]), np.array([count]),
            joint_cumulants=independent(
                (np.array([sum_variance]), np.array([count_variance])), (np.zeros(1), np.zeros(1))
            ), bounds=bounds, confidence=0.95,
        )
    )  # fmt: skip
    assert bounds[0] <= lower <= upper <= bounds[1]
    ratios = np.linspace(*bounds, 2001)
    distance = np.abs(total - ratios * count) / np.sqrt(sum_variance + ratios**2 * count_variance)
    assert ((distance > 1.96 - 1e-3) | ((ratios >= lower) & (ratios <= upper))).all()
    if count > 2 * math.sqrt(count_variance) + 1e-3:
        assert ((distance < 1.96 + 1e-3) | (ratios <= lower) | (ratios >= upper)).all()


@each("count", [-1000.0, -10.0, 0.0, 1.9])
def test_a_count_that_is_negative_or_like_its_noise_leaves_the_bounds(count):
    once = {"joint_cumulants": independent((np.ones(1), np.ones(1)), (np.zeros(1), np.zeros(1)))}
    for total in (-80.0, 0.0, 80.0):
        lower, upper = ratio_intervals(
            np.array([total]), np.array([count]), bounds=(-1, 2), confidence=0.95, **once
        )
        assert (lower.tolist(), upper.tolist()) == ([-1], [2])


def test_the_shape_of_the_noise_of_counts_is_that_of_the_interval():
    """Of a known sum, the ends are those of the count: Laplace noise of scale b is below b ln 20 at 95 %."""
    b, total, count = 10.0, 80.0, 100.0
    ends = ratio_intervals(
        np.array([total]), np.array([count]), bounds=(-5, 5), confidence=0.95,
        joint_cumulants=independent(
            (np.zeros(1), np.array([2 * b**2])), (np.zeros(1), np.array([12 * b**4]))
        ),
    )  # fmt: skip
    reach = b * math.log(20)
    np.testing.assert_allclose(np.ravel(ends), [total / (count + reach), total / (count - reach)], rtol=1e-3)


@each("covariance", [-40.0, 20.0, 45.0])
def test_ends_are_where_the_difference_is_as_large_as_its_dependent_error(covariance):
    total, count, variances = 30.0, 40.0, (50.0, 60.0)
    joint = [np.array([each]) for each in (variances[0], covariance, variances[1], 0, 0, 0, 0, 0)]
    ends = ratio_intervals(
        np.array([total]), np.array([count]), joint_cumulants=joint, bounds=(-9, 9), confidence=0.95
    )
    for t in np.ravel(ends):
        error = math.sqrt(variances[0] - 2 * t * covariance + t**2 * variances[1])
        assert abs(total - t * count) == pytest.approx(1.96 * error, rel=1e-3)
    assert ends[0] < total / count < ends[1]


def test_a_step_of_the_count_is_as_many_steps_of_the_sum_as_the_ratio():
    once = {"joint_cumulants": independent((np.full(1, 0.2), np.full(1, 0.2)), (np.zeros(1), np.zeros(1)))}
    of_count, of_sum, none = (
        np.ravel(
            ratio_intervals(
                np.array([80.0]), np.array([40.0]), bounds=(0, 9), confidence=0.95,
                steps=(np.array([first]), np.array([second])), **once,
            )
        )
        for first, second in ((0.0, 1.0), (2.0, 0.0), (0.0, 0.0))
    )  # fmt: skip
    np.testing.assert_allclose(of_count, of_sum)
    assert of_count[0] < none[0] < none[1] < of_count[1]

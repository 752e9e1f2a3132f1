"""Tails of the discrete Gaussian against 50-digit sums."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from pandas_dptree.privacy.discrete_gaussian import log_upper_tail, upper_tail
from tests.helpers_cases import each


def exact_tail(scale, bound):
    with mpmath.workdps(50):
        scale = mpmath.mpf(scale)
        reach = math.ceil(11 * scale) + abs(bound)
        terms = [mpmath.exp(-((x / scale) ** 2) / 2) for x in range(reach + 1)]
        tail = mpmath.fsum(terms[abs(bound + 1) if bound < 0 else bound + 1 :])
        whole = 2 * mpmath.fsum(terms) - 1
        # for a bound below 0, P(X > t) = 1 - P(X >= -t)
        return 1 - mpmath.fsum(terms[-bound:]) / whole if bound < 0 else tail / whole


@each("scale", [0.05, 0.4, 1.0, 7.3, 63.9, 64.0, 150.0])
def test_tails_are_rounded_up_and_close(scale):
    for bound in sorted({0, 1, 5, math.ceil(scale / 2), math.ceil(3 * scale), math.ceil(8 * scale)}):
        with mpmath.workdps(50):
            exact = mpmath.log(exact_tail(scale, bound)) if exact_tail(scale, bound) > 0 else -mpmath.inf
            found = log_upper_tail(scale, bound)
            close = 1e-9 if scale < 64 else 1e-3 if bound >= scale else 0.02
            assert exact <= found
            if exact > -1000:
                assert found <= exact + close


def test_tails_far_out_are_bounded():
    assert log_upper_tail(1.0, 60) == pytest.approx(-(61**2) / 2 - math.log(math.sqrt(2 * math.pi)), abs=1e-8)
    assert -800 < log_upper_tail(100.0, 3999) < -799
    assert log_upper_tail(1e12, 0) == pytest.approx(math.log(0.5))


@each("scale", [0.4, 7.3, 63.9, 64.0, 150.0])
def test_tails_for_detection(scale):
    bounds = np.unique(np.round(np.array([-8, -3, -1, -0.1, 0, 0.3, 1, 2.5, 5, 8]) * scale)).astype(np.int64)
    exact = [float(exact_tail(scale, int(bound))) for bound in bounds]
    assert upper_tail(scale, bounds) == pytest.approx(exact, abs=1e-8)

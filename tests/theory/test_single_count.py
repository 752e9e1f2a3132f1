"""Bounds for one count: beside linear programmes, and below what noise achieves."""

import math

import numpy as np
import pytest

from pandas_dptree import theory
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.privacy.loss import PrivacyLoss
from tests.helpers_cases import each
from tests.helpers_planning import even_errors


def symbols(epsilon, delta, rows):
    """The two distributions of which any private pair for data that far apart is a function."""
    together = min(delta * math.expm1(rows * epsilon) / math.expm1(epsilon), 1.0)
    likely = math.exp(rows * epsilon) / (1 + math.exp(rows * epsilon))
    some = np.array([together, (1 - together) * likely, (1 - together) * (1 - likely), 0])
    return some, some[::-1]


@each("epsilon, delta", [(1.0, 0.0), (0.2, 0.0), (0.2, 1e-3), (0.05, 0.01), (3.0, 1e-6)])
def test_bounds_for_one_count_are_those_of_four_symbols(epsilon, delta):
    squares, variances = [], []
    for rows in range(1, int(10 / epsilon) + 2):
        p, q = symbols(epsilon, delta, rows)
        both = p + q > 0
        p, q = p[both], q[both]
        # No answer f has a smaller mean of E_p f² and E_q (rows - f)²; the best answers are means.
        answers = rows * q / (p + q)
        squares.append((p @ answers**2 + q @ (rows - answers) ** 2) / 2)
        # The least second moment about the middle, given means rows apart: a projection.
        answers = (q - p) / (p + q)
        answers *= rows / ((q - p) @ answers)
        variances.append((p + q) @ answers**2 / 2 - (rows / 2) ** 2)
    count = theory.single_count_error(epsilon=epsilon, delta=delta, alpha=0.25)
    floor = theory.noise_floor(epsilon=epsilon, delta=delta)
    assert count == pytest.approx(0.75 * math.sqrt(max(squares)), rel=1e-5)
    assert floor == pytest.approx(math.sqrt(max(variances)), rel=1e-5)


def test_without_delta_the_floor_is_that_of_hammersley_chapman_and_robbins():
    for epsilon in (1e-4, 0.1, 1.0, 5.0):
        assert theory.noise_floor(epsilon=epsilon) == pytest.approx(0.5 / math.sinh(epsilon / 2), rel=1e-9)


@each("epsilon", [1e-3, 0.1, 1.0, 4.0])
@each("delta", [1e-9, 1e-3])
def test_noise_on_one_count_respects_the_floors(epsilon, delta):
    one = Tree.from_branching([])
    laplace = even_errors(one, PrivacyLoss(epsilon=epsilon), Laplace())[0]
    gaussian = even_errors(one, PrivacyLoss(epsilon=epsilon, delta=delta), Gaussian())[0]
    assert theory.single_count_error(epsilon=epsilon) < theory.noise_floor(epsilon=epsilon) <= laplace
    assert theory.noise_floor(epsilon=epsilon, delta=delta) <= gaussian
    assert theory.single_count_error(epsilon=epsilon, delta=delta) <= gaussian

"""Mixtures of patterns, and which patterns can be left out."""

import numpy as np

from pandas_dptree.planning.patterns import Mixture, undominated
from tests.helpers_cases import each


@each("seed", range(20))
def test_no_precisions_are_charged_less_without_dominated_patterns(seed):
    rng = np.random.default_rng(seed)
    patterns = rng.integers(0, 5, (8, 4)).astype(float)
    kept = patterns[undominated(patterns)]
    precisions = rng.exponential(size=(4, 300)) * (rng.random((4, 300)) < 0.7)
    np.testing.assert_allclose((kept @ precisions).max(axis=0), (patterns @ precisions).max(axis=0))


@each("rows", [1, 2, 5, 40])
def test_of_replaced_rows_the_first_and_the_last_pattern_stay(rows):
    b = np.arange(rows + 1.0)
    patterns = np.stack([(rows - b) ** 2, rows**2 + b**2, rows + b], axis=1)
    assert undominated(patterns).tolist() == [rows, 0]


def test_a_pattern_between_two_others_stays_if_no_mixture_reaches_it():
    patterns = np.array([[4.0, 0.0], [0.0, 4.0], [1.9, 2.0], [2.1, 2.0]])
    assert sorted(undominated(patterns).tolist()) == [0, 1, 3]


@each("seed", range(10))
def test_a_mixture_is_balanced_where_its_patterns_charge_the_same(seed):
    rng = np.random.default_rng(seed)
    patterns, errors = rng.exponential(size=(3, 5)), rng.exponential(size=(5, 4))
    mixture = Mixture(patterns, 4)

    def shares_at(prices):
        return np.sqrt(errors / prices)

    for _ in range(20):
        charges = patterns @ mixture.balanced_shares(shares_at)
    most = charges.max(axis=0)
    assert (charges >= most * (1 - 1e-6))[mixture.parts > 1e-6].all()
    np.testing.assert_allclose(mixture.parts.sum(axis=0), 1)

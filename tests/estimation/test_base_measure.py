"""Base measures: where a quantile of a small group is expected, from the curve of the group above."""

import math
from fractions import Fraction

import numpy as np
import pytest

from pandas_dptree.estimation.base_measure import densities
from pandas_dptree.mechanisms.quantiles import BaseMeasure
from tests.helpers_cases import each
from tests.helpers_random import each_seed, rng

HALF = Fraction(1, 2)


def expected_masses(counts, sizes, quantile):
    """Integrate the density of ranks over each cell numerically, step by step in plain Python."""
    n, n_points = sum(counts), sum(sizes)
    steps, masses, rank = 1000, [], 0.0
    for count, size in zip(counts, sizes, strict=True):
        width = 0.98 * (count / n if n else size / n_points) + 0.02 * size / n_points
        middles = [rank + (step + 0.5) / steps * width for step in range(steps)]
        laplace = [math.exp(-abs(middle - quantile) / 0.1) / 0.2 for middle in middles]
        masses.append(sum(0.9 * each + 0.1 for each in laplace) * width / steps)
        rank += width
    return masses


@each("counts", [[5, 1, 0, 14], [0, 0, 0, 9], [1, 0, 0, 0], [0, 0, 0, 0]])
@each("quantile", [HALF, Fraction(1, 10), Fraction(999, 1000)])
def test_masses_are_those_of_the_stated_density(counts, quantile):
    sizes = [3, 50, 1, 46]
    starts = np.insert(np.cumsum(sizes), 0, 0)
    (found,) = densities(np.cumsum([counts], axis=1), starts, quantile)
    assert found.dtype == np.int64 and (found >= 1).all()
    for density, size, mass in zip(found, sizes, expected_masses(counts, sizes, quantile), strict=True):
        assert density == pytest.approx(1 + 2**16 * mass * 100 / size, abs=1.01 + 1e-4 * density)


def test_an_empty_curve_is_uniform():
    starts = np.arange(11) * 10
    empty, even = densities(np.array([[0] * 10, range(1, 11)]), starts, HALF)
    assert empty.tolist() == even.tolist() == even[::-1].tolist()
    assert even.argmax() in (4, 5) and even[0] > 2**16 / 20


@each_seed(2, 50)
def test_the_mass_lies_where_the_parent_has_the_quantile(seed):
    """Half of it is near the rank, and every point keeps at least a thousandth of the average."""
    source, starts = rng(seed), np.arange(101) * 7
    cumulative = np.cumsum(source.multinomial(1000, source.dirichlet(np.full(100, 0.3)), size=3), axis=1)
    for quantile in (Fraction(1, 4), HALF, Fraction(9, 10)):
        found = densities(cumulative, starts, quantile)
        shares = found / found.sum(axis=1, keepdims=True)
        near = np.abs(cumulative / 1000 - float(quantile)) <= 0.2
        near[:, 1:] |= near[:, :-1]  # the cell in which the curve enters
        assert ((shares * near).sum(axis=1) > 0.5).all()
        assert shares.min() > 1e-3 / 100
        assert (found >= 1).all()


@each("counts", [[0, 2**40, 0], [2**40, 0, 0], [0, 0, 0]])
def test_the_largest_grids_do_not_overflow(counts):
    starts = np.array([0, 1, 2, 2**31])
    cumulative = np.tile(np.cumsum(counts), (2, 1))
    measure = BaseMeasure(starts, densities(cumulative, starts, HALF), np.zeros(1, dtype=np.int64))
    assert 0 < measure.heaviest < 2**49
    exact = max(sum(int(each) * int(size) for each, size in zip(row, np.diff(starts), strict=True))
                for row in measure.densities)  # fmt: skip
    assert measure.heaviest == exact


def test_a_single_cell_has_all_but_the_tails():
    for size in (1, 5):
        (found,) = densities(np.array([[7]]), np.array([0, size]), HALF)
        assert found.tolist() == [1 + math.floor(2**16 * (0.9 * (1 - math.exp(-5)) + 0.1))]

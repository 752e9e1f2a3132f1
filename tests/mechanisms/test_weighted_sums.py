"""Cumulative sums measured through a factorization: exact products, sensitivity and privacy."""

from __future__ import annotations

import itertools
import math
from decimal import Inexact, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.distribution.factorization import cumulative_estimates
from pandas_dptree.errors import ArgumentError
from pandas_dptree.mechanisms import weighted_sums
from pandas_dptree.mechanisms.sampling import byte_source
from pandas_dptree.mechanisms.weighted_sums import LARGEST_BIN, WeightedSums, measure_weighted_sums
from pandas_dptree.privacy.composition import gaussian_delta
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Neighbors, Sensitivity
from tests.helpers_cases import each
from tests.helpers_distribution import exactly, matrix
from tests.helpers_statistics import audited_epsilon

RELATIONS: list[Neighbors] = ["add_remove", "replace"]
sizes = st.integers(1, 24)
bits = st.integers(8, 16)


def columns(strategy: WeightedSums) -> list[tuple[int, ...]]:
    return list(zip(*matrix(strategy), strict=True))


def square(vector: Any) -> int:
    return sum(int(v) ** 2 for v in vector)


# What is measured ---------------------------------------------------------------------------------------


@given(sizes, bits, st.data())
def test_the_product_is_exact(n_bins: int, n_bits: int, data: st.DataObject) -> None:
    strategy = WeightedSums(n_bins, n_bits)
    counts = data.draw(
        st.lists(
            st.one_of(st.integers(-5, 5), st.integers(-(2**62), 2**62)), min_size=n_bins, max_size=n_bins
        )
    )
    clipped = [min(max(count, 0), LARGEST_BIN) for count in counts]
    expected = [sum(q * c for q, c in zip(row, clipped, strict=True)) for row in matrix(strategy)]
    assert exactly(strategy, np.array(counts, dtype=np.int64)) == [min(y, 2**61) for y in expected]


def test_the_product_is_exact_for_many_bins() -> None:
    strategy = WeightedSums(5_000)
    counts = np.random.default_rng(1).integers(0, 2**22, 5_000)
    weighted = [c * d for c, d in zip(counts.tolist(), strategy.weights.tolist(), strict=True)]
    measured = exactly(strategy, counts)
    h = weighted_sums.antiperiodic(strategy.coefficients).tolist()
    for i in (0, 1, 2_499, 4_998, 4_999):
        assert measured[i] == sum((h[abs(i - j)] + h[i + j + 1]) * w for j, w in enumerate(weighted))


def test_the_largest_counts_fit() -> None:
    """All bins at their largest: more digits of the product than anything else needs."""
    strategy = WeightedSums(3_000, 16)
    h, x = strategy.coefficients, np.full(3_000, LARGEST_BIN << 16)
    middle = int(weighted_sums._transform(h, x, LARGEST_BIN << 16)[0])
    assert middle == (2 * int(h.sum()) - int(h[0])) * (LARGEST_BIN << 16)


def test_the_product_ignores_the_callers_settings() -> None:
    strategy, counts = WeightedSums(40), np.arange(40)
    expected = exactly(strategy, counts)
    with localcontext() as context:
        context.prec = 2
        context.traps[Inexact] = True
        assert exactly(strategy, counts) == expected


@given(sizes, bits)
def test_the_matrix_has_no_negative_entry(n_bins: int, n_bits: int) -> None:
    strategy = WeightedSums(n_bins, n_bits)
    assert (np.diff(strategy.coefficients) <= 0).all()
    assert min(min(row) for row in matrix(strategy)) >= 0
    assert strategy.weights.min() >= 1


@each("kind", [np.uint8, np.int32, np.uint64])
def test_counts_of_any_whole_type(kind: type) -> None:
    counts = [5, 0, 255, 1, 7]
    assert exactly(WeightedSums(5), np.array(counts, dtype=kind)) == exactly(WeightedSums(5), counts)


# Sensitivity --------------------------------------------------------------------------------------------


@each("n_bins", [1, 2, 3, 5, 8])
@each("rows", [1, 2, 3])
def test_sensitivity_of_adding_is_the_largest_of_all_sums_of_columns(n_bins: int, rows: int) -> None:
    strategy = WeightedSums(n_bins, 9)
    moves = [
        [sum(entries) for entries in zip(*chosen, strict=True)]
        for chosen in itertools.combinations_with_replacement(columns(strategy), rows)
    ]
    sensitivity = strategy.sensitivity(neighbors="add_remove", max_contributions=rows)
    assert sensitivity.l2_squared == max(map(square, moves))
    assert sensitivity.l2_squared == strategy.l2_squared(neighbors="add_remove", max_contributions=rows)
    assert sensitivity.l1 == max(map(sum, moves))


@each("n_bins", [1, 2, 3, 6])
@each("rows", [1, 2])
def test_sensitivity_of_replacing_covers_all_pairs(n_bins: int, rows: int) -> None:
    strategy = WeightedSums(n_bins, 9)
    units = list(itertools.combinations_with_replacement([(0,) * n_bins, *columns(strategy)], rows))
    moves = [
        [
            sum(ours) - sum(theirs)
            for ours, theirs in zip(zip(*a, strict=True), zip(*b, strict=True), strict=True)
        ]
        for a, b in itertools.product(units, repeat=2)
    ]
    sensitivity = strategy.sensitivity(neighbors="replace", max_contributions=rows)
    assert sensitivity.l2_squared >= max(map(square, moves))
    assert sensitivity.l1 >= max(sum(map(abs, move)) for move in moves)


def test_sensitivity_of_replacing_is_nearly_reached() -> None:
    strategy = WeightedSums(64)
    q = columns(strategy)
    reached = square(a - b for a, b in zip(q[0], q[-1], strict=True))
    assert 0.99 < reached / strategy.l2_squared(neighbors="replace") <= 1


@given(st.integers(1, 6), st.sampled_from(RELATIONS), st.data())
def test_neighbours_move_what_is_measured_by_no_more(
    n_bins: int, neighbors: Neighbors, data: st.DataObject
) -> None:
    strategy = WeightedSums(n_bins, 8)
    near_an_end = st.sampled_from([0, 1, LARGEST_BIN - 1, LARGEST_BIN, 2**44, 2**45])
    rest = data.draw(st.lists(near_an_end, min_size=n_bins, max_size=n_bins))
    unit = st.lists(st.integers(-1, n_bins - 1), min_size=2, max_size=2)  # -1 is outside of all bins
    one, other = data.draw(unit), data.draw(unit) if neighbors == "replace" else []

    def measured(rows: list[int]) -> list[int]:
        inside = [row for row in rows if row >= 0]
        return exactly(strategy, np.array(rest) + np.bincount(inside, minlength=n_bins))

    move = [a - b for a, b in zip(measured(one), measured(other), strict=True)]
    sensitivity = strategy.sensitivity(neighbors=neighbors, max_contributions=2)
    assert square(move) <= sensitivity.l2_squared
    assert sum(map(abs, move)) <= sensitivity.l1


# Privacy ------------------------------------------------------------------------------------------------


@given(st.integers(1, 200), st.sampled_from(RELATIONS), st.integers(1, 5), st.floats(1e-4, 1e3))
def test_noise_stays_within_rho(n_bins: int, neighbors: Neighbors, rows: int, rho: float) -> None:
    strategy = WeightedSums(n_bins, 10)
    scale = Fraction(strategy.noise_scale(PrivacyLoss(rho=rho), neighbors=neighbors, max_contributions=rows))
    spent = strategy.l2_squared(neighbors=neighbors, max_contributions=rows) / (2 * scale**2)
    assert Fraction(rho) * (1 - Fraction(1, 10**9)) < spent <= Fraction(rho)


@each("noise_scale", [2.0, 5.0])
@each("move", [(2, 1), (3, 1), (4, 3), (5, 0)])
def test_delta_covers_vectors_of_whole_numbers(move: tuple[int, int], noise_scale: float) -> None:
    """The exact delta of two counts that move at once, term by term, is below what noise is set by."""
    reach = np.arange(-round(14 * noise_scale), round(14 * noise_scale) + 1)
    mass = np.exp(-(reach**2) / (2 * noise_scale**2))
    mass = np.multiply.outer(mass, mass) / mass.sum() ** 2
    x, y = np.meshgrid(reach, reach, indexing="ij")
    loss = (square(move) + 2 * (move[0] * x + move[1] * y)) / (2 * noise_scale**2)
    norms = Sensitivity(l1=sum(move) + 7, l2_squared=square(move))
    for epsilon in (0.1, 1.0, 3.0):
        exact = (mass * np.maximum(-np.expm1(np.minimum(epsilon - loss, 0)), 0)).sum()
        assert exact * (1 - 1e-9) <= gaussian_delta(epsilon, [noise_scale], norms)


@pytest.mark.parametrize(("n", "epsilon"), [(2_000, 2.0), pytest.param(4_000, 1.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("neighbors", RELATIONS)
def test_audit(neighbors: Neighbors, n: int, epsilon: float) -> None:
    strategy, loss = WeightedSums(4), PrivacyLoss(epsilon=epsilon, delta=0.1)
    scale = strategy.noise_scale(loss, neighbors=neighbors)
    one, other = [9, 0, 2, 4], [9 if neighbors == "add_remove" else 8, 0, 2, 5]
    direction = np.subtract(exactly(strategy, other), exactly(strategy, one))

    def outcomes(counts: list[int], noise_scale: float, seed: int) -> np.ndarray:
        """How far each release lies in the direction in which the two differ: all that tells them apart."""
        source = byte_source(np.random.default_rng(seed))
        releases = [measure_weighted_sums(strategy, np.array(counts), noise_scale, source) for _ in range(n)]
        along = (np.array(releases) - exactly(strategy, one)) @ direction / np.linalg.norm(direction)
        return np.round(2 * along / scale)

    found = audited_epsilon(outcomes(one, scale, 1), outcomes(other, scale, 2), delta=0.1)
    assert 0.5 * epsilon < found <= epsilon
    too_little = audited_epsilon(outcomes(one, scale / 2, 3), outcomes(other, scale / 2, 4), delta=0.1)
    assert too_little > epsilon


# Arguments ----------------------------------------------------------------------------------------------


@each("bad", [0, -1, 2**20 + 1, 2.0, "3", None, True])
def test_the_number_of_bins_is_checked(bad: Any) -> None:
    with pytest.raises(ArgumentError, match="`n_bins` must be a whole number from 1"):
        WeightedSums(bad)


@each("bad", [7, 17, 12.0, None])
def test_bits_are_checked(bad: Any) -> None:
    with pytest.raises(ArgumentError, match="`bits` must be a whole number from 8"):
        WeightedSums(4, bad)


def test_counts_and_measured_values_are_checked() -> None:
    strategy, source = WeightedSums(4), byte_source(np.random.default_rng(0))
    with pytest.raises(ArgumentError, match="must be whole numbers"):
        measure_weighted_sums(strategy, np.ones(4), 1.0, source)
    for bad in (np.ones(3, dtype=int), np.ones((4, 1), dtype=int)):
        with pytest.raises(ArgumentError, match="`counts` must be one number for each of the 4 bins"):
            measure_weighted_sums(strategy, bad, 1.0, source)
    for bad in ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0, math.nan]):
        with pytest.raises(
            ArgumentError, match="`measured` must be one finite number for each of the 4 bins"
        ):
            cumulative_estimates(strategy, bad)


def test_gaussian_noise_gives_no_pure_privacy() -> None:
    with pytest.raises(ArgumentError, match="never gives pure"):
        WeightedSums(4).noise_scale(PrivacyLoss(epsilon=1.0), neighbors="add_remove")


def test_a_strategy_is_a_value() -> None:
    assert WeightedSums(np.int64(8)) == WeightedSums(8)  # type: ignore[arg-type]
    assert hash(WeightedSums(8)) == hash(WeightedSums(8, 12))
    with pytest.raises(ValueError, match="read-only"):
        WeightedSums(8).coefficients[0] = 1

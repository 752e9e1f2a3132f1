"""Quantiles of counts in bins, and the bins that cannot be excluded."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from pandas_dptree.estimation.quantiles import possible_bins, quantile_bins, quantile_positions
from tests.helpers_cases import each

SHARES = st.one_of(
    st.sampled_from([0.0, 0.1, 0.25, 1 / 3, 0.5, 0.9, 1.0]), st.floats(0, 1, allow_subnormal=False)
)
COUNTS = st.lists(st.integers(0, 3), min_size=1, max_size=6).filter(any)
ERRORS = st.lists(st.sampled_from([-9.0, -1.5, -0.5, -0.01, 0.0, 0.01, 0.5, 1.0, 2.0, 9.0]), min_size=6)


def true_bin(counts, share):
    """By the definition, in fractions."""
    sums = np.cumsum(counts).tolist()
    exact = Fraction(share).limit_denominator(1000)
    exact = exact if float(exact) == share else Fraction(share)
    wanted = max(math.ceil(exact * sums[-1]), 1)
    return next(place for place, count in enumerate(sums) if count >= wanted)


@given(COUNTS, SHARES)
def test_without_noise_a_quantile_has_one_bin(counts, share):
    sums = np.cumsum(counts)[None]
    k = true_bin(counts, share)
    assert quantile_bins(sums, np.array([share])).item() == k
    assert k <= quantile_positions(sums, np.array([share])).item() <= k + 1
    first, last = possible_bins(
        sums.astype(float), sums[:, -1].astype(float), share, (np.zeros(len(counts)),) * 2
    )
    assert first.item() <= k <= last.item()
    if float(Fraction(share).limit_denominator(1000)) == share:
        assert first.item() == k == last.item()


NEVER = np.inf


@given(COUNTS, SHARES, ERRORS, ERRORS, st.booleans())
@example([0, 2, 0, 2], 0.5, [0.0] * 6, [0.0] * 6, False)
@example([1, 1], 0.0, [0.01, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0] * 6, False)
def test_a_miss_needs_a_rejection_at_the_true_bin(counts, share, errors, widths, public):
    """Whatever the errors and the half widths, and wherever the estimates fall."""
    n = len(counts)
    error, half = np.array(errors[:n]), np.abs(widths[:n])
    if public:
        error[-1] = 0
    sums = np.cumsum(counts)
    estimates = (sums + error)[None]
    (first,), (last,) = possible_bins(estimates, estimates[:, -1], share, (half, np.full(n, NEVER)))
    assert 0 <= first < n and 0 <= last < n
    k = true_bin(counts, share)
    difference = error - share * error[-1]
    if first > k:
        assert difference[k] < -half[k]
    if last < k:
        assert difference[k - 1] > half[k - 1]
    (first,), (last,) = possible_bins(estimates, estimates[:, -1], share, (np.full(n, NEVER), half))
    assert 0 <= first < n and 0 <= last < n
    if not first <= k <= last:
        assert (np.abs(difference) > half).any()


@each("share", [0.25, 0.5, 1.0])
@each("at_once", [False, True])
def test_ends_are_where_the_tests_reject(share, at_once):
    sums, half, never = np.array([[4.0, 8.0, 12.0, 16.0]]), np.full(4, 4.0), np.full(4, NEVER)

    def ends(half):
        halves = (never, half) if at_once else (half, never)
        return tuple(each.item() for each in possible_bins(sums, sums[:, -1], share, halves))

    k = round(share * 4) - 1
    assert ends(half) == (max(k - 1, 0), min(k + 1, 3))
    assert ends(half - 0.001) == (k, min(k + 1, 3))
    step = 1 / Fraction(share).denominator
    assert ends(np.full(4, step)) == (k, min(k + 1, 3)) and ends(np.full(4, step - 0.001)) == (k, k)


def test_one_chance_far_away_does_not_widen_what_holds_at_once():
    """A bin that is not excluded by itself, behind one that is certainly reached."""
    sums = np.array([[0.0, 40.0, 40.0, 18.0, 40.0, 40.0]])
    of_one, of_all, never = np.full(6, 5.0), np.full(6, 9.0), np.full(6, NEVER)
    found = [possible_bins(sums, sums[:, -1], 0.5, halves) for halves in ((of_one, never), (of_one, of_all))]
    assert [(first.item(), last.item()) for first, last in found] == [(1, 4), (1, 1)]
    mirrored = 40 - sums[:, ::-1]
    found = [
        possible_bins(mirrored, np.array([40.0]), 0.5, each) for each in ((of_one, never), (of_one, of_all))
    ]
    assert [(first.item(), last.item()) for first, last in found] == [(2, 5), (5, 5)]


def test_groups_without_values_have_no_quantile():
    counts = np.array([[0, 0, 0], [0, 2, 2]])
    assert quantile_bins(counts, np.array([0.0, 1.0])).tolist() == [[3, 3], [1, 1]]
    positions = quantile_positions(counts, np.array([0.0, 0.5, 1.0]))
    assert np.isnan(positions[0]).all() and positions[1].tolist() == [1, 1.5, 2]


def test_nothing_is_excluded_if_the_noise_is_large():
    first, last = possible_bins(np.array([[-3.0, 5.0, 1.0]]), np.array([1.0]), 0.5, (np.full(3, 99.0),) * 2)
    assert (first.item(), last.item()) == (0, 2)


@each("halves", [(0.5, NEVER), (NEVER, 0.5), (0.5, 0.5)])
def test_estimates_below_nothing_leave_the_last_bin(halves):
    widths = tuple(np.full(3, half) for half in halves)
    first, last = possible_bins(np.array([[-3.0, -4.0, -5.0]]), np.array([-5.0]), 0.0, widths)
    assert (first.item(), last.item()) == (2, 2)


@given(
    COUNTS, st.sampled_from([0.0, 0.1, 0.25, 1 / 3, 0.5, 1.0]), st.lists(st.floats(-0.04, 0.04), min_size=6)
)
def test_noise_far_below_one_does_not_matter(counts, share, errors):
    """Even if it exceeds the half widths, as it does at ties one time in twenty."""
    estimates = (np.cumsum(counts) + np.array(errors[: len(counts)]) / 2)[None]
    first, last = possible_bins(estimates, estimates[:, -1], share, (np.zeros(len(counts)),) * 2)
    assert first.item() == true_bin(counts, share) == last.item()

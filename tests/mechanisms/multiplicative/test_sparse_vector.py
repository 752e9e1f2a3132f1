"""The sparse vector technique: exact distribution and loss, audits, accuracy, and what is refused."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import binom, chi2

from pandas_dptree.errors import ArgumentError
from pandas_dptree.mechanisms.multiplicative.sparse_vector import SparseVector
from tests.helpers_cases import each
from tests.helpers_statistics import audited_epsilon

RUNS = 100_000
FEW_RUNS = [20_000, pytest.param(RUNS, marks=pytest.mark.slow)]


def at_least(noise_scale, x):
    """P(noise >= x) of the discrete Laplace distribution."""
    q = math.exp(-1 / noise_scale)
    x = np.asarray(x)
    return np.where(x >= 1, q ** np.maximum(x, 0.0), 1 + q - q ** (1.0 - np.minimum(x, 1))) / (1 + q)


def probability(answers, counts, large, *, renew=True):
    """The exact probability of some answers, summed over the noise of the threshold round by round."""
    reach = math.ceil(40 * large.threshold_scale)
    noise = np.arange(-reach, reach + 1)
    drawn = np.exp(-abs(noise) / large.threshold_scale)
    drawn /= drawn.sum()
    whole, in_round, n_positive = 1.0, drawn, 0
    for answer, count in zip(answers, counts, strict=True):
        if n_positive == large.cutoff:
            whole *= not answer
            continue
        positive = at_least(large.query_scale, large.threshold + noise - count)
        in_round = in_round * (positive if answer else 1 - positive)
        if answer:
            n_positive += 1
            if renew:
                whole, in_round = whole * in_round.sum(), drawn
    return whole * in_round.sum()


def algorithm_3(counts, *, threshold, cutoff, threshold_scale, query_scale, rng, runs=RUNS):
    """The algorithm as printed, whatever its parameters, for many runs: shape (runs, n_queries)."""

    def noise(scale):
        return np.subtract(*rng.geometric(-math.expm1(-1 / scale), (2, runs))) if scale else 0

    noisy_threshold, positives, answers = threshold + noise(threshold_scale), np.zeros(runs), []
    for count in counts:
        answers.append((positives < cutoff) & (count + noise(query_scale) >= noisy_threshold))
        positives += answers[-1]
        noisy_threshold = np.where(answers[-1], threshold + noise(threshold_scale), noisy_threshold)
    return np.stack(answers, axis=1)


def ask_all(counts, *, seed, runs=RUNS, **arguments):
    """Ask about the same counts in many streams: shape (runs, n_queries)."""
    large = SparseVector(n_streams=runs, rng=np.random.default_rng(seed), **arguments)
    return np.stack([large.ask(np.full(runs, count)) for count in counts], axis=1)


def coded(answers):
    """One number for each row of answers."""
    return answers @ (1 << np.arange(answers.shape[1]))


# The distribution --------------------------------------------------------------------------------------

CASES = [
    (dict(threshold=3, cutoff=2, epsilon=4.0), [2, 4, 5, 1, 3]),
    (dict(threshold=-10, cutoff=1, epsilon=0.5), [-40, -15, -5, 0]),
    (dict(threshold=1000, cutoff=3, epsilon=0.1, sensitivity=2), [700, 1200, 900, 1500, 1000]),
]


def fit_to_distribution(answers, expected):
    observed = np.bincount(coded(answers), minlength=len(expected))
    likely = expected * len(answers) >= 5
    pooled = [np.append(each[likely], each[~likely].sum()) for each in (observed, expected * len(answers))]
    pooled = [each[pooled[1] > 0.5] for each in pooled]
    return chi2.sf(((pooled[0] - pooled[1]) ** 2 / pooled[1]).sum(), len(pooled[0]) - 1)


def exact_distribution(counts, large, **options):
    patterns = [code[::-1] for code in product([0, 1], repeat=len(counts))]
    return np.array([probability(pattern, counts, large, **options) for pattern in patterns])


@pytest.mark.parametrize(("arguments", "counts"), CASES)
def test_answers_follow_the_distribution(arguments, counts):
    answers = ask_all(counts, seed=1, **arguments)
    large = SparseVector(**arguments)
    exact = exact_distribution(counts, large)
    assert exact.sum() == pytest.approx(1, rel=1e-9)
    assert fit_to_distribution(answers, exact) > 1e-3
    # The two scales, each of them wrong by a little, and a threshold whose noise is drawn only once.
    for threshold_factor, query_factor in [(0.8, 1), (1.25, 1), (1, 0.9), (1, 1.1)]:
        wrong = SparseVector(**arguments)
        wrong.threshold_scale *= threshold_factor
        wrong.query_scale *= query_factor
        assert fit_to_distribution(answers, exact_distribution(counts, wrong)) < 1e-3
    if large.cutoff > 1:
        assert fit_to_distribution(answers, exact_distribution(counts, large, renew=False)) < 1e-9


@pytest.mark.parametrize(("arguments", "counts"), CASES)
def test_the_algorithm_as_printed_follows_the_same_distribution(arguments, counts):
    large = SparseVector(**arguments)
    answers = algorithm_3(
        counts,
        threshold=large.threshold,
        cutoff=large.cutoff,
        threshold_scale=large.threshold_scale,
        query_scale=large.query_scale,
        rng=np.random.default_rng(2),
    )
    assert fit_to_distribution(answers, exact_distribution(counts, large)) > 1e-3


def test_scales_are_those_of_the_algorithm():
    large = SparseVector(threshold=0, cutoff=3, epsilon=0.7, sensitivity=5)
    assert large.threshold_scale == pytest.approx(2 * 3 * 5 / 0.7, rel=1e-15)
    assert large.query_scale == pytest.approx(4 * 3 * 5 / 0.7, rel=1e-15)


# Privacy ------------------------------------------------------------------------------------------------


@given(
    st.integers(1, 3),
    st.sampled_from([0.3, 1.0, 4.0]),
    st.integers(1, 2),
    st.lists(st.tuples(st.integers(-12, 12), st.integers(-2, 2), st.booleans()), min_size=1, max_size=8),
)
@example(1, 4.0, 1, [(-9, 1, False)] * 7 + [(0, -1, True)])
def test_no_answers_are_more_than_e_to_the_epsilon_times_as_likely(cutoff, epsilon, sensitivity, rows):
    counts, moves, answers = zip(*rows, strict=True)
    others = np.add(counts, np.clip(moves, -sensitivity, sensitivity))
    large = SparseVector(threshold=0, cutoff=cutoff, epsilon=epsilon, sensitivity=sensitivity)
    one, other = (probability(answers, each, large) for each in (counts, others))
    factor = math.exp(epsilon) * (1 + 1e-9)
    assert one <= factor * other
    assert other <= factor * one
    # Without renewal, the threshold's part is paid once.
    once = math.exp(epsilon / 2 + epsilon / (2 * cutoff)) * (1 + 1e-9)
    one, other = (probability(answers, each, large, renew=False) for each in (counts, others))
    assert one <= once * other
    assert other <= once * one


def test_the_claimed_epsilon_is_nearly_reached():
    large = SparseVector(threshold=0, cutoff=1, epsilon=1.0)
    answers = [False] * 10 + [True]
    one = probability(answers, [0] * 10 + [1], large)
    other = probability(answers, [1] * 10 + [0], large)
    assert 0.99 < math.log(one / other) <= 1


# Many counts that are one less and one that is one more, and the other way round, are the worst there is.
HARD = {"threshold": 3, "cutoff": 1, "epsilon": 1.0}
NEIGHBOURS = [0] * 10 + [1], [1] * 10 + [0]


@pytest.mark.slow
def test_the_audit_finds_no_more_than_epsilon_and_catches_half_the_noise():
    as_claimed, half = (
        audited_epsilon(*(coded(ask_all(x, seed=seed, **arguments)) for seed, x in enumerate(NEIGHBOURS)))
        for arguments in (HARD, {**HARD, "epsilon": 2.0})
    )
    assert 0.5 < as_claimed <= 1.0 < half


@pytest.mark.slow
def test_the_audit_catches_counts_without_noise():
    rng = np.random.default_rng(3)
    wrong = {"threshold": 3, "cutoff": 1, "threshold_scale": 2.0, "query_scale": 0.0, "rng": rng}
    assert audited_epsilon(*(coded(algorithm_3(x, **wrong)) for x in ([0, 1], [1, 0]))) > 3


@pytest.mark.nightly
def test_the_audit_catches_a_fractional_cutoff():
    # The noise pays for 1.01 positive answers; "t < c" lets two through.
    cutoff, rng = 1.01, np.random.default_rng(4)
    printed = {
        "threshold": 3,
        "cutoff": cutoff,
        "threshold_scale": 2 * cutoff,
        "query_scale": 4 * cutoff,
        "rng": rng,
        "runs": 4 * RUNS,
    }
    twice = [([0] * 6 + [1]) * 2, ([1] * 6 + [0]) * 2]
    assert audited_epsilon(*(coded(algorithm_3(x, **printed)) for x in twice)) > 1
    paid = {"threshold": 3, "cutoff": 2, "epsilon": 1.0, "runs": 4 * RUNS}
    assert audited_epsilon(*(coded(ask_all(x, seed=5 + i, **paid)) for i, x in enumerate(twice))) <= 1


@pytest.mark.parametrize("n", FEW_RUNS)
def test_streams_are_apart(n):
    # What one stream is asked changes nothing in the distribution of another.
    answers = []
    for count in (-1000, 1000):
        large = SparseVector(
            threshold=0, cutoff=1, epsilon=1.0, n_streams=2 * n, rng=np.random.default_rng(6)
        )
        counts = np.tile([count, 0], n)
        answers.append(np.stack([large.ask(counts)[1::2] for _ in range(3)], axis=1))
        exact = exact_distribution([0, 0, 0], large)
        assert fit_to_distribution(answers[-1], exact) > 1e-3
    assert (answers[0] != answers[1]).any()


# The cutoff ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", FEW_RUNS)
@pytest.mark.parametrize("cutoff", [1, 3])
def test_never_more_positive_answers_than_the_cutoff(cutoff, n):
    large = SparseVector(threshold=0, cutoff=cutoff, epsilon=0.01, n_streams=n, rng=np.random.default_rng(7))
    positives = np.zeros(n, dtype=int)
    for turn in range(4 * cutoff + 4):
        # Whatever helps: far above, or at the threshold, by what was answered so far.
        counts = np.where(positives % 2 == turn % 2, 2**61, 0)
        answers = large.ask(counts)
        assert not answers[positives == cutoff].any()
        positives += answers
        np.testing.assert_array_equal(large.n_positive, positives)
        np.testing.assert_array_equal(large.exhausted, positives == cutoff)
    assert (positives == cutoff).all()


def test_counts_far_from_the_threshold_are_answered_rightly():
    large = SparseVector(threshold=10**9, cutoff=2, epsilon=0.1, n_streams=3)
    assert large.ask([0, 2**63 - 1, 10**9 + 10**6]).tolist() == [False, True, True]
    assert large.ask([-(2**63), 0, 2**61], streams=[0, 1, 2]).tolist() == [False, False, True]
    assert large.ask([2**62, 2**62], streams=[2, 1]).tolist() == [False, True]
    assert large.n_positive.tolist() == [0, 2, 2]
    lowest = SparseVector(threshold=-(2**61), cutoff=1, epsilon=1e-11)
    assert lowest.ask(2**61)


def test_questions_may_follow_from_answers():
    # Binary search for the largest count that is reached, one stream a count.
    truth = np.array([17, 480, 999, 3])
    low, high = np.zeros(4, dtype=int), np.full(4, 1024)
    large = SparseVector(threshold=0, cutoff=10, epsilon=1e4, n_streams=4)
    for _ in range(10):
        middle = (low + high) // 2
        reached = large.ask(truth - middle)
        low, high = np.where(reached, middle, low), np.where(reached, high, middle)
    np.testing.assert_array_equal(low, truth)


def test_streams_may_be_asked_in_any_order_and_some_of_them():
    large = SparseVector(threshold=500, cutoff=1, epsilon=10.0, n_streams=5)
    answers = large.ask(np.array([1000, 0, 1000], dtype=np.uint16), streams=np.array([4, 0, 2]))
    assert answers.tolist() == [True, False, True]
    assert large.exhausted.tolist() == [False, False, True, False, True]
    nobody = large.ask(np.zeros(0, dtype=int), streams=np.zeros(0, dtype=int))
    assert nobody.shape == (0,)
    assert nobody.dtype == bool


def test_one_stream_takes_plain_numbers():
    large = SparseVector(threshold=500, cutoff=1, epsilon=10.0)
    assert large.ask(0).shape == ()
    assert not large.ask(0)
    assert large.ask(1000)
    assert not large.ask(1000)
    assert large.ask([1000]).tolist() == [False]


def test_what_it_shows_cannot_be_changed():
    large = SparseVector(threshold=0, cutoff=1, epsilon=1.0)
    large.n_positive[:] = -5
    assert large.n_positive.tolist() == [0]


def test_a_generator_makes_it_repeatable_and_nothing_else_does():
    counts = np.zeros(200, dtype=int)
    arguments = {"threshold": 0, "cutoff": 1, "epsilon": 1.0, "n_streams": 200}
    same, again = (
        SparseVector(**arguments, rng=np.random.default_rng(1)).ask(counts).tolist() for _ in range(2)
    )
    assert same == again
    one, other = (SparseVector(**arguments).ask(counts).tolist() for _ in range(2))
    assert one != other


# Accuracy -----------------------------------------------------------------------------------------------


def test_the_bound_is_that_of_the_lemma():
    large = SparseVector(threshold=0, cutoff=3, epsilon=0.5, sensitivity=2)
    assert large.error_bound(50, 0.01) == pytest.approx(8 * 3 * 2 / 0.5 * math.log(2 * 50 / 0.01))


@given(st.integers(1, 5), st.floats(0.05, 30), st.integers(1, 60), st.floats(1e-6, 0.999))
def test_the_exact_bound_is_the_smallest_by_all_splits(cutoff, epsilon, n_queries, failure):
    large = SparseVector(threshold=0, cutoff=cutoff, epsilon=epsilon)
    found = large.error_bound(n_queries, failure, exact=True)
    of_threshold, of_queries = (
        times * at_least(scale, np.arange(1, int(found) + 2))
        for times, scale in (
            (2 * min(cutoff, n_queries), large.threshold_scale),
            (n_queries, large.query_scale),
        )
    )

    def failures(bound):
        return min(of_threshold[a] + of_queries[bound - a] for a in range(bound + 1))

    assert failures(int(found)) <= failure * (1 + 1e-9)
    if found > 0:
        assert failures(int(found) - 1) > failure * (1 - 1e-9)
    assert found <= large.error_bound(n_queries, failure)


def test_the_exact_bound_at_the_ends():
    assert SparseVector(threshold=0, cutoff=1, epsilon=1e6).error_bound(100, 1e-6, exact=True) == 0
    wide = SparseVector(threshold=0, cutoff=1, epsilon=4.1e-12)
    assert 0.3 < wide.error_bound(10, 1e-3, exact=True) / wide.error_bound(10, 1e-3) < 1


@pytest.mark.parametrize("failure", [0.3, 0.02])
@pytest.mark.parametrize("offset", ["below", "above", "mixed"])
def test_wrong_answers_are_as_rare_as_promised(offset, failure):
    cutoff, n_queries = 2, 8
    large = SparseVector(
        threshold=100, cutoff=cutoff, epsilon=1.0, n_streams=RUNS, rng=np.random.default_rng(8)
    )
    bound = int(large.error_bound(n_queries, failure, exact=True))
    wrong = np.zeros(RUNS, dtype=bool)
    for turn in range(n_queries):
        high = offset == "above" or (offset == "mixed" and turn % 2 == 1)
        counts = np.full(RUNS, 100 + bound if high else 100 - bound - 1)
        counted = ~large.exhausted
        wrong |= counted & (large.ask(counts) != high)
    assert binom.sf(wrong.sum() - 1, RUNS, failure) > 1e-3  # not significantly above `failure`
    assert wrong.mean() > failure / 100  # the union bound is loose, but not empty


# Bad arguments ------------------------------------------------------------------------------------------

GOOD = {"threshold": 5, "cutoff": 1, "epsilon": 1.0}


@each(
    "name, value",
    [
        ("threshold", 1.5), ("threshold", math.inf), ("threshold", 2**62), ("threshold", None),
        ("cutoff", 0), ("cutoff", 1.5), ("cutoff", 2.0), ("cutoff", True), ("cutoff", -1),
        ("epsilon", 0), ("epsilon", -1.0), ("epsilon", math.nan), ("epsilon", math.inf), ("epsilon", "1"),
        ("epsilon", None), ("epsilon", 3e-12), ("sensitivity", 0), ("sensitivity", 0.5),
        ("n_streams", -1), ("n_streams", 2.0), ("rng", 1),
    ],
)  # fmt: skip
def test_arguments_out_of_range_are_refused(name, value):
    with pytest.raises(ArgumentError, match="Hint") as error:
        SparseVector(**{**GOOD, name: value})
    assert error.value.argument == name


@each(
    "values, streams, name",
    [
        ([1.0, 2.0, 3.0], None, "values"), ([True] * 3, None, "values"), ([1, 2], None, "values"),
        (1, None, "values"), ([[1, 2, 3]], None, "values"), ([1], [0, 1], "values"),
        ([1, 2], [0, 0], "streams"), ([1], [3], "streams"), ([1], [-1], "streams"),
        ([1], [0.0], "streams"), ([1, 2, 3], [True, False, True], "streams"), ([1], 0, "streams"),
    ],
)  # fmt: skip
def test_invalid_questions_are_refused_and_cost_nothing(values, streams, name):
    large = SparseVector(**GOOD, n_streams=3)
    with pytest.raises(ArgumentError, match="Hint") as error:
        large.ask(values, streams)
    assert error.value.argument == name
    assert large.n_positive.tolist() == [0, 0, 0]


@each(
    "arguments, name",
    [((n_queries, 0.1), "n_queries") for n_queries in (0, 1.5)]
    + [((1, failure), "failure_probability") for failure in (0.0, 1.0, math.nan, "0.1")],
)
def test_bounds_of_nothing_are_refused(arguments, name):
    with pytest.raises(ArgumentError, match="Hint") as error:
        SparseVector(**GOOD).error_bound(*arguments)
    assert error.value.argument == name

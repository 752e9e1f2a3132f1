"""Error measures of repeated releases: the definitions spelt out, and the bounds between them."""

import math

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from pandas_dptree import ArgumentError, Laplace, theory


def distributions():
    """Draw estimates with probabilities, and a truth."""
    numbers = st.floats(-1e4, 1e4, allow_subnormal=False)
    values = st.lists(st.tuples(numbers, st.integers(1, 9)), min_size=1, max_size=8)
    return st.tuples(values, st.floats(0, 1e4, allow_subnormal=False))


def repeated(distribution):
    """Repeat each estimate as often as its weight says: the mean over these is the expectation."""
    values, truth = distribution
    return np.repeat([value for value, _ in values], [weight for _, weight in values])[:, None], [truth]


# What is measured


@given(distributions(), st.floats(0, 2), st.floats(0.01, 100), st.floats(0, 100))
def test_measures_are_their_definitions(distribution, alpha, kappa, tau):
    estimates, truth = repeated(distribution)
    [z] = truth
    errors = [abs(float(estimate) - z) for [estimate] in estimates]
    rmse = math.sqrt(sum(max(error - alpha * z, 0) ** 2 for error in errors) / len(errors))
    assert theory.alpha_rmse(estimates, truth, alpha) == pytest.approx([rmse])
    assert theory.max_alpha_rmse(estimates, truth, alpha) == pytest.approx(rmse)
    relative = sum(errors) / len(errors) / max(z, kappa)
    assert theory.smoothed_relative_error(estimates, truth, kappa) == pytest.approx([relative])
    share = sum(error <= alpha * max(z, tau) * (1 + 1e-12) for error in errors) / len(errors)
    assert theory.accuracy(estimates, truth, alpha, thresholds=tau) == pytest.approx([share])
    assert theory.is_accurate(estimates, truth, alpha, eta=1 - share, thresholds=tau)
    if share < 1:
        assert not theory.is_accurate(estimates, truth, alpha, eta=(1 - share) * 0.99, thresholds=tau)


@given(distributions(), st.floats(0, 2), st.floats(0.01, 100))
def test_alpha_rmse_bounds_the_relative_error(distribution, alpha, kappa):
    estimates, truth = repeated(distribution)
    rmse = theory.alpha_rmse(estimates, truth, alpha)
    bound = theory.relative_error_from_rmse(rmse, alpha, kappa)
    relative = theory.smoothed_relative_error(estimates, truth, kappa)
    assert relative <= bound * (1 + 1e-9) + 1e-12
    assert bound <= math.sqrt(2) * (rmse / kappa + alpha) + 1e-12  # as Lemma B.1 has it


@given(distributions(), st.floats(0, 1), st.floats(0.01, 1), st.floats(0.01, 1e4))
def test_alpha_rmse_bounds_the_chance_of_missing_a_tolerance(distribution, alpha, more, tau):
    estimates, truth = repeated(distribution)
    rmse = theory.alpha_rmse(estimates, truth, alpha)
    missed = theory.accuracy_from_rmse(rmse, alpha, alpha + more, tau)
    assert 1 - theory.accuracy(estimates, truth, alpha + more, thresholds=tau) <= missed + 1e-9


def test_bounds_are_attained():
    sure = np.array([[8.0], [12.0]])  # an error of 2 on 10, always
    rmse = theory.alpha_rmse(sure, [10], 0.1)
    assert theory.relative_error_from_rmse(rmse, 0.1, 10.0) == pytest.approx(
        theory.smoothed_relative_error(sure, [10], 10.0)
    )
    rare = np.array([[0.0]] * 99 + [[10.0]])  # Chebyshev's own example
    rmse = theory.alpha_rmse(rare, [0], 0.0)
    assert theory.accuracy_from_rmse(rmse, 0.0, 0.1, 100.0) == pytest.approx([0.01])


def test_norms_and_shapes():
    released = np.random.default_rng(0).normal(size=(5, 2, 3))
    truth = np.arange(6).reshape(2, 3)
    errors = [np.abs(each - truth) for each in released]
    assert theory.l2_error(released, truth) == pytest.approx(math.sqrt(np.mean(np.square(errors))))
    assert theory.linf_error(released, truth) == pytest.approx(np.mean([each.max() for each in errors]))
    assert theory.alpha_rmse(released, truth).shape == (2, 3)
    assert theory.alpha_rmse(released[0], truth, 0.0) == pytest.approx(errors[0])
    assert theory.linf_error(np.array([3.0, 5.0]), np.array([3.0, 3.0])) == 2.0
    assert theory.alpha_rmse(np.array([3.0, 5.0]), 3, 0.0) == pytest.approx(math.sqrt(2))


def test_a_bound_that_is_met_exactly_is_met_in_floats():
    assert 0.29 * 100 < 29
    assert theory.accuracy(np.array([129]), [100], 0.29).tolist() == [1.0]
    assert theory.is_accurate(np.array([[129]] * 7 + [[130]] * 3), [100], 0.29, eta=0.3)


# Tables


def test_what_does_not_fit_is_refused(table, truth):
    array = np.ones((2, 3))
    refused = [
        ("released", lambda: theory.l2_error(array, np.ones(2))),
        ("released", lambda: theory.l2_error(np.ones((0, 3)), np.ones(3))),
        ("released", lambda: theory.l2_error(np.array([np.nan]), [1.0])),
        ("released", lambda: theory.l2_error([], truth)),
        ("released", lambda: theory.l2_error(table.iloc[:0], truth)),
        ("released", lambda: theory.l2_error(pd.concat([table, table]), truth)),
        ("released", lambda: theory.l2_error([table, table.iloc[1:]], truth)),
        ("released", lambda: theory.l2_error(table.assign(county=1), truth)),
        ("released", lambda: theory.l2_error(table.drop(columns="level"), truth)),
        ("released", lambda: theory.l2_error(table.drop(columns="state"), truth)),
        ("truth", lambda: theory.l2_error(table, np.ones(3))),
        ("truth", lambda: theory.l2_error(table, 7)),
        ("truth", lambda: theory.l2_error(table, truth.droplevel("state"))),
        ("truth", lambda: theory.l2_error(table, truth.rename("n").reset_index())),
        ("truth", lambda: theory.l2_error(table, truth.astype(float).replace(5.0, np.nan))),
        ("truth", lambda: theory.l2_error(table, pd.concat([table, table]))),
        ("truth", lambda: theory.l2_error(array, ["a", "b", "c"])),
        ("alpha", lambda: theory.alpha_rmse(array, np.ones(3), -0.1)),
        ("alpha", lambda: theory.accuracy(array, np.ones(3), math.nan)),
        ("alpha", lambda: theory.predicted_alpha_rmse(Laplace(), 1.0, 1.0, math.inf)),
        ("alpha", lambda: theory.estimate_alpha_rmse(1.0, 0.0, 1.0, "much")),
        ("kappa", lambda: theory.smoothed_relative_error(array, np.ones(3), 0)),
        ("kappa", lambda: theory.relative_error_from_rmse(1.0, 0.1, 0)),
        ("eta", lambda: theory.is_accurate(array, np.ones(3), eta=1.5)),
        ("eta", lambda: theory.is_accurate(array, np.ones(3), eta=-1)),
        ("thresholds", lambda: theory.accuracy(array, np.ones(3), thresholds=-1)),
        ("thresholds", lambda: theory.accuracy(array, np.ones(3), thresholds=[1, 2])),
        ("thresholds", lambda: theory.accuracy(table, truth, thresholds={"total": 3})),
        ("thresholds", lambda: theory.accuracy(array, np.ones(3), thresholds={"total": 3})),
        ("thresholds", lambda: theory.accuracy_from_rmse(1.0, 0.1, 0.2, 0.0)),
        ("wider_alpha", lambda: theory.accuracy_from_rmse(1.0, 0.1, 0.1, 1.0)),
        ("noise", lambda: theory.predicted_alpha_rmse("laplace", 1.0, 1.0, 0.1)),
    ]
    for argument, call in refused:
        with pytest.raises(ArgumentError, match="Hint: ") as caught:
            call()
        assert caught.value.argument == argument

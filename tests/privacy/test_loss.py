"""Privacy losses, and conversions on the safe side."""

import json
import math
import re
from fractions import Fraction

import hypothesis.strategies as st
import mpmath
import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant
from hypothesis import given

from pandas_dptree.errors import ArgumentError
from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.privacy.conversions import zcdp_delta, zcdp_epsilon, zcdp_rho
from pandas_dptree.privacy.loss import PrivacyLoss, exact, float_below, ungated_loss
from tests.helpers_cases import each

RHOS = [1e-8, 1e-6, 1e-4, 1e-2, 0.1, 0.5, 1.0, 10.0, 100.0, 1000.0]
DELTAS = [1e-15, 1e-10, 1e-6, 1e-3, 0.1, 0.5]


def exact_delta(rho, epsilon):
    """Proposition 12 of Canonne, Kamath and Steinke (2020), minimised with fifty digits."""
    with mpmath.workdps(50):
        rho, epsilon = mpmath.mpf(rho), mpmath.mpf(epsilon)
        low, high = mpmath.mpf(-3000), mpmath.mpf(400)
        for _ in range(64):
            middle = (low + high) / 2
            a = mpmath.exp(middle)
            rising = (2 * a + 1) * rho - epsilon - mpmath.log1p(1 / a) > 0
            low, high = (low, middle) if rising else (middle, high)
        alpha = 1 + mpmath.exp(high)
        bound = mpmath.exp((alpha - 1) * (alpha * rho - epsilon)) / (alpha - 1)
        return bound * (1 - 1 / alpha) ** alpha


@each(
    "arguments, argument",
    [
        ({}, "epsilon"),
        ({"epsilon": 1.0, "rho": 1.0}, "rho"),
        *[({"epsilon": bad}, "epsilon") for bad in (0, -1.0, math.nan, math.inf, True, "1", 1j)],
        *[({"rho": bad}, "rho") for bad in (0, -1.0, math.nan, math.inf, False, [1.0])],
        *[({"epsilon": 1.0, "delta": bad}, "delta") for bad in (-1e-9, 1.0, 2, math.nan, True, None)],
        *[({"rho": 1.0, "delta": bad}, "delta") for bad in (-1e-9, 1.0, math.nan, True, None)],
        ({"delta": 1e-6}, "epsilon"),
    ],
)
def test_a_loss_is_one_statement_or_an_error(arguments, argument):
    with pytest.raises(ArgumentError, match="Hint: ") as error:
        PrivacyLoss(**arguments)
    assert error.value.argument == argument


@each(
    "arguments, kind",
    [
        ({"epsilon": 1}, "pure"),
        ({"epsilon": np.float64(1), "delta": 0}, "pure"),
        ({"epsilon": 1.0, "delta": 1e-9}, "approximate"),
        ({"rho": np.int64(2)}, "zcdp"),
        ({"rho": 0.02, "delta": 0}, "zcdp"),
        ({"rho": 0.02, "delta": np.float64(1e-6)}, "approximate_zcdp"),
    ],
)
def test_a_loss_knows_its_kind_and_is_json(arguments, kind):
    loss = PrivacyLoss(**arguments)
    assert loss.kind == kind
    assert PrivacyLoss(**json.loads(json.dumps(loss.to_dict()))) == loss


def test_a_rho_states_its_delta_only_if_it_has_one():
    both, alone = PrivacyLoss(rho=0.02, delta=1e-6), PrivacyLoss(rho=0.02)
    assert (both.epsilon, both.rho, both.delta) == (None, 0.02, 1e-6)
    assert (both.to_dict(), alone.to_dict()) == ({"rho": 0.02, "delta": 1e-6}, {"rho": 0.02})
    assert (both.in_words, alone.in_words) == ("rho=0.02, delta=1e-06", "rho=0.02")


@each(
    "rho, delta, said",
    [
        (10.0, 1e-3, ""),
        (11.0, 0.0, "`rho` is 11, which protects nobody: at a delta of 1e-6 that is an epsilon of"),
        (11.0, 0.01, "`rho` is 11, .*: at a delta of 1e-6 in addition to its own that is an epsilon of"),
        (0.1, 0.01, "`delta` is 0.01, which protects nobody: it permits publishing each record unchanged"),
    ],
)
def test_why_a_rho_protects_nobody(rho, delta, said):
    loss = PrivacyLoss(rho=rho, delta=delta)
    assert re.match(said, loss.objection) and bool(said) == bool(loss.objection)
    assert loss.in_words.endswith(" (protects nobody)") == bool(said)


@given(rho=st.floats(10.0, 1e6, exclude_min=True))
def test_the_epsilon_that_a_rho_is_said_to_imply_is_rounded_up(rho):
    stated = float(PrivacyLoss(rho=rho, delta=1e-6).objection.removesuffix(".").split()[-1])
    assert zcdp_epsilon(rho, 1e-6) <= stated <= 1.011 * zcdp_epsilon(rho, 1e-6)


def test_what_has_no_gates_has_no_rho_with_a_delta():
    for loss in (PrivacyLoss(epsilon=1.0), PrivacyLoss(epsilon=1.0, delta=1e-6), PrivacyLoss(rho=0.1)):
        assert ungated_loss(loss) is loss
    with pytest.raises(ArgumentError, match="`delta` cannot be given together with `rho`") as caught:
        ungated_loss(PrivacyLoss(rho=0.1, delta=1e-6))
    assert caught.value.argument == "delta" and caught.value.hint


@pytest.mark.parametrize("delta", DELTAS)
@each("rho", RHOS)
def test_conversions_are_safe_and_tight(rho, delta):
    epsilon = zcdp_epsilon(rho, delta)
    if epsilon == 0:
        assert exact_delta(rho, 0) <= delta
        return
    assert exact_delta(rho, epsilon) <= delta < exact_delta(rho, epsilon * (1 - 1e-9))
    assert exact_delta(rho, epsilon) <= zcdp_delta(rho, epsilon) <= exact_delta(rho, epsilon) * (1 + 1e-9)
    largest = zcdp_rho(epsilon, delta)
    assert exact_delta(largest, epsilon) <= delta < exact_delta(largest * (1 + 1e-9), epsilon)


@each("epsilon", [1e-9, 1e-3, 0.1, 1.0, 8.0, 100.0, 1e4])
@each("delta", [1e-300, 1e-15, 1e-6, 0.5, 0.999])
def test_rho_is_safe_and_tight_for_every_epsilon_and_delta(epsilon, delta):
    rho = zcdp_rho(epsilon, delta)
    assert rho > 0
    assert exact_delta(rho, epsilon) <= delta < exact_delta(rho * (1 + 1e-9), epsilon)


def test_delta_ends_at_one_and_never_at_zero():
    assert zcdp_delta(1e3, 1e-3) == 1.0
    assert 0 < zcdp_delta(1e-3, 1e3) < 1e-300


def test_epsilon_agrees_with_dp_accounting():
    orders = 1 + np.geomspace(0.5, 500, 20_000)
    theirs, _ = rdp_privacy_accountant.compute_epsilon(orders, 0.1 * orders, 1e-6)
    assert theirs * (1 - 1e-6) < zcdp_epsilon(0.1, 1e-6) <= theirs * (1 + 1e-12)


@each(
    "convert, arguments, argument",
    [
        (zcdp_epsilon, (0.0, 1e-6), "rho"),
        (zcdp_epsilon, (1.0, 0.0), "delta"),
        (zcdp_epsilon, (1.0, 1.0), "delta"),
        (zcdp_delta, (math.nan, 1.0), "rho"),
        (zcdp_delta, (1.0, -1.0), "epsilon"),
        (zcdp_rho, (math.inf, 1e-6), "epsilon"),
        (zcdp_rho, (1.0, True), "delta"),
    ],
)
def test_conversions_refuse_what_is_no_loss(convert, arguments, argument):
    with pytest.raises(ArgumentError, match="Hint: ") as error:
        convert(*arguments)
    assert error.value.argument == argument


# --- typed numbers ---------------------------------------------------------------------------------------


@given(number=st.floats(5e-324, 1e300))
def test_a_typed_number_is_the_smaller_of_float_and_decimal(number):
    assert exact(number) in (Fraction(number), Fraction(repr(number)))
    assert exact(number) <= min(Fraction(number), Fraction(repr(number)))
    assert float(exact(number)) == number  # so it is shown as it was typed


@each(
    "number, value",
    [
        (0.1, Fraction(1, 10)), (0.3, Fraction(0.3)), (1e-9, Fraction(1, 10**9)), (1e-6, Fraction(1e-6)),
        (1, 1), (np.float64(0.1), Fraction(1, 10)), (0.25, Fraction(1, 4)), (0.0, 0),
    ],
)  # fmt: skip
def test_typed_numbers(number, value):
    assert exact(number) == value


@given(st.floats(5e-324, 1e300), st.floats(0, 0.999))
def test_losses_are_rounded_down_to_floats(size, delta):
    for loss in (PrivacyLoss(epsilon=size, delta=delta), PrivacyLoss(rho=size, delta=delta)):
        least = loss.rounded_down
        assert least.kind == loss.kind
        for name in loss.to_dict():
            low, most = getattr(least, name), getattr(loss.exact, name)
            assert Fraction(low) <= most
            assert low == float_below(most) > math.nextafter(getattr(loss, name), -1.0) * (1 - 1e-9) - 1e-300
    assert PrivacyLoss(rho=1.0).exact.epsilon is None is PrivacyLoss(epsilon=1.0).exact.rho


def test_a_whole_part_is_the_loss():
    loss = PrivacyLoss(epsilon=0.1, delta=1e-9)
    assert loss.part(Fraction(1)) == loss == loss.divide([7])[0]


# --- parts of a loss -------------------------------------------------------------------------------------


@given(
    shares=st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=40),
    epsilon=st.floats(1e-6, 1e6),
    delta=st.sampled_from([0.0, 1e-12, 1e-6, 0.3]),
)
def test_parts_of_a_loss_add_up_to_no_more_than_it(shares, epsilon, delta):
    for loss in (PrivacyLoss(epsilon=epsilon, delta=delta), PrivacyLoss(rho=epsilon, delta=delta)):
        parts = loss.divide(shares)
        assert {part.kind for part in parts} == {loss.kind}
        for name, whole in loss.to_dict().items():
            values = [getattr(part, name) for part in parts]
            assert sum(map(exact, values)) <= exact(whole)
            wanted = whole * np.array(shares) / math.fsum(shares)
            np.testing.assert_allclose(values, wanted, rtol=1e-12)


@each("shares", [3, np.int64(3), [2.0, 2.0, 2.0], np.ones(3), [Fraction(1, 3)] * 3])
def test_equal_parts_of_a_loss(shares):
    assert PrivacyLoss(rho=0.75).divide(shares) == [PrivacyLoss(rho=0.25)] * 3


@each(
    "shares",
    [0, -1, True, 2.5, "12", [], [1, 0], [1, -1], [1, float("nan")], ["a"], None, {1: 2}, np.ones((2, 2))],
)
def test_other_shares_of_a_loss_are_refused(shares):
    with pytest.raises(ArgumentError, match="`shares`"):
        PrivacyLoss(rho=0.75).divide(shares)


@given(epsilon=st.floats(1e-3, 50.0), delta=st.floats(1e-15, 0.5))
def test_the_budget_that_is_accepted_from_files_still_implies_the_loss(epsilon, delta):
    """It is more than is computed here, as another library may compute it, and less than the exact value."""
    loss = PrivacyLoss(epsilon=epsilon, delta=delta)
    accepted = Gaussian().accepted_budget(loss)
    least = loss.rounded_down
    assert accepted > Fraction(math.nextafter(zcdp_rho(least.epsilon, least.delta), math.inf))
    with mpmath.workdps(50):
        assert exact_delta(mpmath.mpf(accepted.numerator) / accepted.denominator, epsilon) <= delta
    for rho in (0.1, 0.3):
        assert Gaussian().accepted_budget(PrivacyLoss(rho=rho)) == exact(rho)
    assert Laplace().accepted_budget(loss) == exact(epsilon)


@each(
    "loss, delta, epsilon",
    [
        (PrivacyLoss(epsilon=0.7), 0.0, 0.7),
        (PrivacyLoss(epsilon=0.7), 1e-9, 0.7),
        (PrivacyLoss(epsilon=0.7, delta=1e-6), 1e-6, 0.7),
        (PrivacyLoss(rho=0.1), 1e-6, zcdp_epsilon(0.1, 1e-6)),
    ],
)
def test_the_epsilon_at_a_delta(loss, delta, epsilon):
    assert loss.epsilon_at(delta) == epsilon


def test_the_delta_of_a_rho_is_part_of_the_delta_at_which_epsilon_is_asked_for():
    loss = PrivacyLoss(rho=0.02, delta=1e-7)
    rest = (1e-6 - 1e-7) / (1 - 1e-7)
    assert loss.epsilon_at(1e-6) == pytest.approx(zcdp_epsilon(0.02, rest), rel=1e-12)
    assert loss.epsilon_at(1e-6) > PrivacyLoss(rho=0.02).epsilon_at(1e-6)
    # What it promises, and the probability of failure together, are at most what was asked for.
    assert 1e-7 + (1 - 1e-7) * zcdp_delta(0.02, loss.epsilon_at(1e-6)) <= 1e-6 * (1 + 1e-9)


@each(
    "loss, delta",
    [
        (PrivacyLoss(epsilon=0.7, delta=1e-6), 1e-7),
        (PrivacyLoss(rho=0.1), 0.0),
        (PrivacyLoss(rho=0.1, delta=1e-6), 1e-6),
        (PrivacyLoss(rho=0.1), 1.0),
        (PrivacyLoss(epsilon=1.0), 1.0),
        (PrivacyLoss(epsilon=1.0), float("nan")),
        (PrivacyLoss(epsilon=1.0), -1e-6),
        (PrivacyLoss(epsilon=1.0), "1e-6"),
    ],
)
def test_no_epsilon_is_proven_for_that_delta(loss, delta):
    with pytest.raises(ArgumentError, match="`delta` must be") as caught:
        loss.epsilon_at(delta)
    assert caught.value.argument == "delta" and caught.value.hint

"""Chains of thresholds: what they spend, and which arguments they take."""

from __future__ import annotations

import math
from fractions import Fraction

import hypothesis.strategies as st
import mpmath
import numpy as np
import pytest
from hypothesis import given

from pandas_dptree.errors import ArgumentError
from pandas_dptree.mechanisms.multiplicative.thresholds import LARGEST_TOTAL, Thresholds, group_loss
from pandas_dptree.privacy.loss import PrivacyLoss
from tests.helpers_cases import each
from tests.helpers_multiplicative import TOTALS, chains, proof_numbers, spent

# --- what is spent ---


@pytest.mark.tripwire
@pytest.mark.parametrize("calibration", ["proof", "exact"])
@given(data=st.data(), total=TOTALS)
def test_never_spends_more_than_the_whole(calibration: str, data: st.DataObject, total: int) -> None:
    chain = data.draw(chains(calibration, tau=True))
    epsilon, delta = spent(chain, total)
    assert epsilon <= Fraction(chain.epsilon)
    assert delta <= Fraction(chain.delta)
    if chain.rounds(total):  # nor leaves any of it unused
        assert epsilon > Fraction(chain.epsilon) * Fraction(1 - 1e-9) or chain.epsilon > 10


@each("alpha", [0.05, 0.25, 0.5])
def test_printed_exponents_overspend(alpha: float) -> None:
    """The paper has the exponent i - 1 with r above 1, and the normaliser of a series that diverges."""
    _, r = proof_numbers(alpha)
    chain = Thresholds(alpha=alpha, eta=0.05, epsilon=1.0, delta=1e-6, depth=8, calibration="proof")
    n_rounds = len(chain.rounds(LARGEST_TOTAL))
    normaliser = (1 - r) ** -2
    printed = sum(0.5 / normaliser * i * r ** (i - 1) for i in range(1, n_rounds + 1))
    assert printed > 100
    epsilons = np.array([round_.loss.epsilon for round_ in chain.rounds(LARGEST_TOTAL)])
    weights = np.arange(1, n_rounds + 1) * r ** -np.arange(n_rounds)
    least = 2.0**-13 * weights.mean()
    assert 0.5 * weights[0] / weights.sum() * (1 - 2**-13) < epsilons[0] <= 0.5 * weights[0] / weights.sum()
    np.testing.assert_allclose(epsilons / epsilons[0], np.maximum(weights, least), rtol=1e-9)


@each("alpha", [0.05, 0.25, 0.5])
def test_printed_cutoff_overspends(alpha: float) -> None:
    """With a cutoff of 1 + alpha, two positive answers come through; each pays the (1 + alpha)-th part."""
    chain = Thresholds(alpha=alpha, eta=0.05, epsilon=1.0, delta=1e-6, depth=8, calibration="proof")
    beta, _ = proof_numbers(alpha)
    i = 5
    printed = chain.bounds[i] / ((1 - beta) * chain.thresholds[i - 1])
    let_through = sum(t < printed for t in range(10))
    assert let_through / printed > 1.3
    for round_ in chain.rounds(10**9):
        assert round_.cutoff == let_through == 2


@given(rows=st.integers(1, 50), epsilon=st.floats(1e-3, 50), delta=st.floats(1e-12, 0.5))
def test_group_loss_keeps_the_loss_of_the_group(rows: int, epsilon: float, delta: float) -> None:
    each = group_loss(PrivacyLoss(epsilon=epsilon, delta=delta), rows)
    with mpmath.workdps(60):
        assert rows * each.exact.epsilon <= PrivacyLoss(epsilon=epsilon).exact.epsilon
        small = mpmath.mpf(each.exact.epsilon.numerator) / each.exact.epsilon.denominator
        of_group = mpmath.mpf(each.delta) * mpmath.expm1(rows * small) / mpmath.expm1(small)
        assert of_group <= mpmath.mpf(delta) * (1 + mpmath.mpf(10) ** -50)  # the digits that are kept
        assert of_group > mpmath.mpf(delta) * (1 - mpmath.mpf(10) ** -9)


# --- arguments ---


@pytest.mark.parametrize("calibration", ["proof", "exact"])
@given(data=st.data())
def test_any_tau_gives_a_chain_up_to_the_largest_total(calibration: str, data: st.DataObject) -> None:
    chain = data.draw(chains(calibration, tau=True))
    assert (np.diff(chain.bounds) >= 0).all()
    assert len(chain.bounds) == len(chain.estimates) == len(chain.thresholds) + 1
    assert chain.bounds[-1] >= LARGEST_TOTAL - 1
    assert (chain.thresholds >= 1).all()
    assert chain.guaranteed == (chain.tau >= chain.smallest_tau)


@each(
    "argument, value",
    [
        ("alpha", 0.0), ("alpha", 1.0), ("alpha", "0.1"), ("eta", 0.0), ("eta", 0.5), ("depth", 0),
        ("depth", 2.0), ("tau", 0), ("tau", math.inf), ("tau", True), ("calibration", "printed"),
        ("calibration", np.array(["exact"])), ("tau", 10**400), ("delta", 0.0), ("delta", 5e-324),
        ("delta", 1e-320), ("epsilon", 1e-12), ("epsilon", 1e-300), ("epsilon", 5e-324), ("epsilon", 5e307),
    ],
)  # fmt: skip
def test_bad_arguments(argument: str, value: object) -> None:
    arguments = {"alpha": 0.25, "eta": 0.05, "epsilon": 1.0, "delta": 1e-6, "depth": 3, "tau": 50.0}
    with pytest.raises(ArgumentError) as caught:
        Thresholds(**{**arguments, argument: value})
    assert caught.value.argument == argument


@each("number", [np.float32, np.float16, np.longdouble])
def test_numbers_of_any_precision_are_taken_for_floats(number: type) -> None:
    given_ = {"alpha": number(0.25), "eta": number(0.125), "epsilon": number(0.5), "delta": number(0.0078125)}
    chain = Thresholds(**given_, depth=np.int8(3), tau=number(2.0**15))
    for name in ("alpha", "eta", "epsilon", "delta", "tau", "smallest_tau"):
        assert type(getattr(chain, name)) is float
    plain = Thresholds(alpha=0.25, eta=0.125, epsilon=0.5, delta=0.0078125, depth=3, tau=2.0**15)
    assert (chain.bounds == plain.bounds).all() and (chain.thresholds == plain.thresholds).all()
    assert [*chain.rounds(10**9)] == [*plain.rounds(10**9)]
    with pytest.raises(ArgumentError, match="alpha"):
        Thresholds(**{**given_, "alpha": np.longdouble(1) - np.finfo(np.longdouble).eps}, depth=3)


@pytest.mark.parametrize("alpha", [0.05, 1 - 2**-53, pytest.param(0.001, marks=pytest.mark.nightly)])
@given(
    calibration=st.sampled_from(["proof", "exact"]),
    epsilon=st.floats(0, exclude_min=True, allow_infinity=False)
    | st.integers(-330, 308).map(lambda power: float(f"1e{power}")),
    delta=st.floats(0, 1, exclude_min=True, exclude_max=True)
    | st.integers(-323, -1).map(lambda power: float(f"1e{power}")),
    tau=st.none() | st.sampled_from([1.0, 1e15, 1e300]),
)
def test_what_can_be_laid_out_can_be_released(
    alpha: float, calibration: str, epsilon: float, delta: float, tau: float | None
) -> None:
    """Noise that no scale is large enough for, and numbers out of range, are refused at once."""
    if not epsilon:
        return
    try:
        chain = Thresholds(
            alpha=alpha, eta=0.05, epsilon=epsilon, delta=delta, depth=4, tau=tau, calibration=calibration
        )
    except ArgumentError as error:
        assert error.argument in ("epsilon", "delta")
    else:
        assert chain.total_noise.radius > 0
        for total in (int(chain.bounds[0]) + 1, LARGEST_TOTAL):
            for round_ in chain.rounds(total)[:: max(1, len(chain.thresholds) // 3)]:
                assert round_.questions(1).query_scale > 0 and round_.node_noise.radius > 0


@given(rows=st.integers(2, 2**61), epsilon=st.floats(1e-3, 1e4), delta=st.floats(0, 1, exclude_max=True))
def test_group_loss_refuses_what_is_too_small_to_be_rounded_down(
    rows: int, epsilon: float, delta: float
) -> None:
    try:
        each = group_loss(PrivacyLoss(epsilon=epsilon, delta=delta), rows)
    except ArgumentError as error:
        assert error.argument == "delta"
        return
    assert each.delta > 1e-290
    with mpmath.workdps(400):
        small = mpmath.mpf(each.epsilon)
        of_group = mpmath.mpf(each.delta) * mpmath.expm1(rows * small) / mpmath.expm1(small)
        assert of_group <= mpmath.mpf(delta) * (1 + mpmath.mpf(10) ** -50)  # the digits that are kept


def test_group_loss_arguments() -> None:
    with pytest.raises(ArgumentError, match="delta"):
        group_loss(PrivacyLoss(epsilon=1.0), 2)
    with pytest.raises(ArgumentError, match="rows"):
        group_loss(PrivacyLoss(epsilon=1.0, delta=1e-6), 0)

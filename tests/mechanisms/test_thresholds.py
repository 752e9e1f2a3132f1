"""Chains of thresholds: what they spend, and why their promise holds."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import hypothesis.strategies as st
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings

from pandas_dptree.errors import ArgumentError
from pandas_dptree.mechanisms.thresholds import LARGEST_TOTAL, Thresholds, group_loss
from pandas_dptree.privacy.loss import PrivacyLoss

ALPHAS = st.floats(0.03, 0.95)
EPSILONS = st.floats(0.01, 20)
DELTAS = st.floats(1e-12, 0.1)
ETAS = st.floats(1e-6, 0.49)
DEPTHS = st.integers(1, 70)
TOTALS = st.one_of(st.integers(-(2**61), 2**62), st.sampled_from([0, 1, LARGEST_TOTAL, 2**61]))


@st.composite
def chains(draw: st.DrawFn, calibration: str, *, tau: bool = False) -> Thresholds:
    return Thresholds(
        alpha=draw(ALPHAS),
        eta=draw(ETAS),
        epsilon=draw(EPSILONS),
        delta=draw(DELTAS),
        depth=draw(DEPTHS),
        tau=draw(st.one_of(st.none(), st.floats(1, 1e300))) if tau else None,
        calibration=calibration,
    )


def proof_numbers(alpha: float) -> tuple[float, float]:
    beta = alpha / (6 + 5 * alpha)
    return beta, (1 + alpha) * (1 - beta) / (1 + beta)


# --- what is spent ---


def spent(chain: Thresholds, total: int) -> tuple[Fraction, Fraction]:
    """Add up what the noises that are really drawn reveal."""
    epsilon = 1 / Fraction(chain.total_noise.noise_scale)
    delta = Fraction(chain.total_noise.delta_spent)
    for round_ in chain.rounds(total):
        questions, nodes = round_.questions(1), round_.node_noise
        each = 1 / Fraction(questions.threshold_scale) + 2 / Fraction(questions.query_scale)
        epsilon += round_.cutoff * (each + 1 / Fraction(nodes.noise_scale))
        delta += round_.cutoff * Fraction(nodes.delta_spent)
    return epsilon, delta


@pytest.mark.parametrize("calibration", ["proof", "exact"])
@settings(max_examples=25)
@given(data=st.data(), total=TOTALS)
def test_never_spends_more_than_the_whole(calibration: str, data: st.DataObject, total: int) -> None:
    chain = data.draw(chains(calibration, tau=True))
    epsilon, delta = spent(chain, total)
    assert epsilon <= Fraction(chain.epsilon)
    assert delta <= Fraction(chain.delta)
    if chain.rounds(total):  # nor leaves any of it unused
        assert epsilon > Fraction(chain.epsilon) * Fraction(1 - 1e-9) or chain.epsilon > 10


@pytest.mark.parametrize("alpha", [0.05, 0.25, 0.5])
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


@pytest.mark.parametrize("alpha", [0.05, 0.25, 0.5])
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
        small = mpmath.mpf(each.epsilon)
        assert rows * small <= mpmath.mpf(epsilon)
        of_group = mpmath.mpf(each.delta) * mpmath.expm1(rows * small) / mpmath.expm1(small)
        assert of_group <= mpmath.mpf(delta) * (1 + mpmath.mpf(10) ** -50)  # the digits that are kept
        assert of_group > mpmath.mpf(delta) * (1 - mpmath.mpf(10) ** -9)


# --- why the promise holds: proof ---


@settings(max_examples=25)
@given(chain=chains("proof"), total=st.integers(0, LARGEST_TOTAL))
def test_conditions_of_the_paper(chain: Thresholds, total: int) -> None:
    """Conditions (2) to (6) of Lemma 4.6, at every threshold, and what its proof needs of whole noise."""
    alpha, (beta, r) = chain.alpha, proof_numbers(chain.alpha)
    i = np.arange(1, len(chain.thresholds) + 1)
    bounds = alpha * chain.tau * r ** np.arange(len(i) + 1.0)
    tau = alpha * chain.tau / (1 + beta) * r ** (i - 1.0)
    assert (np.floor(bounds) == chain.bounds).all()
    assert ((tau <= chain.thresholds) & (chain.thresholds <= tau * (1 + 1e-12) + 1 + 1e-6)).all()
    assert (bounds[:-1] >= (1 + beta) * tau * (1 - 1e-12)).all()  # (4)
    assert (bounds[1:] >= (1 - beta) * tau).all()  # (5)
    assert (bounds[1:] <= (1 + alpha) * (1 - beta) * tau * (1 + 1e-12)).all()  # (5)
    assert chain.bounds[0] <= alpha * chain.tau  # (6)
    assert (chain.estimates == chain.bounds).all()
    for k, round_ in enumerate(chain.rounds(total)):
        eta = math.log(2 * chain.depth / chain.eta) + (k + 1) * math.log(2)
        epsilon, delta = round_.loss.epsilon, round_.loss.delta
        logs = max(48 * eta, 6 * float(np.logaddexp(0, math.log(math.expm1(epsilon / 2)) - math.log(delta))))
        assert tau[k] >= math.sqrt(2 * bounds[k + 1] / (beta * epsilon) * logs)  # (2)
        assert round_.slack >= 32 / epsilon * eta
        if k in (0, total % len(chain.rounds(total))):
            assert round_.slack + 2 * round_.node_noise.radius <= beta * tau[k]


@pytest.mark.parametrize("alpha", [0.05, 0.25, 0.5])
def test_printed_thresholds_fail_condition_4(alpha: float) -> None:
    """Algorithm 4 prints the exponent i in tau_i."""
    beta, r = proof_numbers(alpha)
    chain = Thresholds(alpha=alpha, eta=0.05, epsilon=1.0, delta=1e-6, depth=8, calibration="proof")
    ours = chain.thresholds.astype(float)
    assert (chain.bounds[:-1] >= (1 + beta) * ours * (1 - 1e-4)).all()
    assert (chain.bounds[:-1] < (1 + beta) * ours * r * (1 - 1e-4)).all()


@pytest.mark.parametrize("alpha", [0.05, 0.25, 0.5])
@pytest.mark.parametrize("delta", [1e-6, 1e-40])
def test_printed_constant_is_too_small(alpha: float, delta: float) -> None:
    d, eta, epsilon = 8, 0.05, 1.0
    chain = Thresholds(alpha=alpha, eta=eta, epsilon=epsilon, delta=delta, depth=d, calibration="proof")
    logs = max(8 * math.log(4 * d / eta), math.log1p(2 * math.expm1(epsilon / 4) / delta))
    assert 324 * (1 + alpha) ** 2 / (alpha**4 * epsilon) * logs < chain.smallest_tau
    corrected = 72 * (3 + 2 * alpha) ** 3 / (6 + 5 * alpha)  # in place of 324
    assert corrected * (1 + alpha) ** 2 / (alpha**4 * epsilon) * logs == pytest.approx(
        chain.smallest_tau, rel=0.12
    )


# --- why the promise holds: exact ---


def wrong_answers(epsilon: float, beyond: np.ndarray) -> np.ndarray:
    """P(X > beyond) for the difference X of a question's noise and a threshold's, by plain summation."""
    reach = np.arange(-math.ceil(400 / epsilon), math.ceil(400 / epsilon) + 1)
    threshold = np.exp(-np.abs(reach) * epsilon / 4)
    a = math.exp(-epsilon / 8)
    above = beyond[:, None] - reach[None, :] + 1  # P(question's noise >= above)
    tail = np.where(
        above > 0, a ** np.maximum(above, 0) / (1 + a), 1 - a ** np.maximum(1 - above, 0) / (1 + a)
    )
    return (tail * threshold).sum(axis=1) / threshold.sum()


@settings(max_examples=60)
@given(
    chain=chains("exact"),
    above=st.integers(0, 12) | st.integers(0, 10**6),
    total=st.integers(0, LARGEST_TOTAL),
)
def test_conditions_of_the_exact_chain(chain: Thresholds, above: int, total: int) -> None:
    chain = replace(chain, tau=chain.smallest_tau + above / chain.alpha)  # one v_0 after the other
    assert chain.guaranteed
    check_exact_chain(chain, total)


@pytest.mark.parametrize("tau", [17_924, 17_926, 17_928])
def test_rounding_never_leaves_too_little_room(tau: float) -> None:
    """One more than a v_0 that fits may not fit: the intervals are rounded."""
    chain = Thresholds(alpha=1 / 3, eta=0.001, epsilon=0.2, delta=1e-6, depth=4, tau=tau)
    assert chain.guaranteed
    check_exact_chain(chain, LARGEST_TOTAL)


def check_exact_chain(chain: Thresholds, total: int) -> None:
    alpha, v, m = Fraction(chain.alpha), chain.estimates, chain.bounds
    assert v[0] <= alpha * Fraction(chain.tau)
    assert m[0] - v[0] <= alpha * max(Fraction(chain.tau), int(m[0]))
    # the saving (4): there is room for the distances on both sides of each threshold
    distances = chain._method.above[: len(chain.thresholds)]
    assert (m[:-1] >= chain.thresholds + distances - 1).all()
    rounds = chain.rounds(total)
    checked = {0, len(rounds) // 2, len(rounds) - 1, *range(0, len(rounds), 7)} if rounds else set()
    failing = 0.0
    for k in sorted(checked):
        round_, i = rounds[k], k + 1
        radius = round_.node_noise.radius
        lowest = round_.cut(radius) - radius
        assert lowest == round_.threshold - round_.slack - 2 * radius >= 1
        # every whole number from L_i to M_i is near enough to v_i
        assert v[i] - lowest <= alpha * lowest
        assert m[i] - v[i] <= alpha * int(m[i])
        # one positive answer is enough
        assert round_.cutoff == 1
        assert m[i] < 2 * (round_.threshold - round_.slack)
        # and the answers are right
        above = m[i - 1] + 1 - round_.threshold
        assert above >= 0
        if round_.loss.epsilon > 0.01:
            positive, negative = wrong_answers(round_.loss.epsilon, np.array([round_.slack, above]))
            eta = chain.eta / (i * (i + 1))
            failing = max(chain.depth * positive, (chain.depth - 1) * positive + negative)
            assert failing <= eta


def test_exact_chain_wastes_nothing() -> None:
    """A failure probability is used up to rounding, and the next smaller chain would not do."""
    chain = Thresholds(alpha=0.25, eta=0.05, epsilon=1.0, delta=1e-6, depth=8)
    first = chain.rounds(LARGEST_TOTAL)[0]
    above = chain.bounds[0] + 1 - first.threshold
    positive, negative = wrong_answers(first.loss.epsilon, np.array([first.slack, above]))
    assert 0.9 * 0.025 < 7 * positive + negative <= 0.025
    smaller = Thresholds(alpha=0.25, eta=0.05, epsilon=1.0, delta=1e-6, depth=8, tau=chain.tau - 1 / 0.25)
    assert chain.guaranteed and not smaller.guaranteed


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.25, 0.5])
@pytest.mark.parametrize("depth", [3, 8, 16, 64])
def test_exact_chain_is_far_below_the_proof(alpha: float, depth: int) -> None:
    exact, proof = (
        Thresholds(alpha=alpha, eta=0.05, epsilon=1.0, delta=1e-6, depth=depth, calibration=calibration)
        for calibration in ("exact", "proof")
    )
    assert proof.smallest_tau > 500 * exact.smallest_tau


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


@pytest.mark.parametrize(
    ("argument", "value"),
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


@pytest.mark.parametrize("number", [np.float32, np.float16, np.longdouble])
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


@pytest.mark.parametrize("calibration", ["proof", "exact"])
@settings(max_examples=100)
@given(
    alpha=st.sampled_from([0.001, 0.03, 0.5, 1 - 2**-53]),
    epsilon=st.floats(0, exclude_min=True, allow_infinity=False)
    | st.integers(-330, 308).map(lambda power: float(f"1e{power}")),
    delta=st.floats(0, 1, exclude_min=True, exclude_max=True)
    | st.integers(-323, -1).map(lambda power: float(f"1e{power}")),
    tau=st.none() | st.sampled_from([1.0, 1e15, 1e300]),
)
def test_what_can_be_laid_out_can_be_released(
    calibration: str, alpha: float, epsilon: float, delta: float, tau: float | None
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

"""Chains of thresholds: why their promise holds, by the proof and exactly."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from pandas_dptree.mechanisms.multiplicative.thresholds import LARGEST_TOTAL, Thresholds
from tests.helpers_cases import each
from tests.helpers_multiplicative import chains, proof_numbers

# --- why the promise holds: proof ---


@pytest.mark.tripwire
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


@each("alpha", [0.05, 0.25, 0.5])
def test_printed_thresholds_fail_condition_4(alpha: float) -> None:
    """Algorithm 4 prints the exponent i in tau_i."""
    beta, r = proof_numbers(alpha)
    chain = Thresholds(alpha=alpha, eta=0.05, epsilon=1.0, delta=1e-6, depth=8, calibration="proof")
    ours = chain.thresholds.astype(float)
    assert (chain.bounds[:-1] >= (1 + beta) * ours * (1 - 1e-4)).all()
    assert (chain.bounds[:-1] < (1 + beta) * ours * r * (1 - 1e-4)).all()


@each("alpha", [0.05, 0.25, 0.5])
@each("delta", [1e-6, 1e-40])
def test_printed_constant_is_too_small(alpha: float, delta: float) -> None:
    d, eta, epsilon = 8, 0.05, 1.0
    chain = Thresholds(alpha=alpha, eta=eta, epsilon=epsilon, delta=delta, depth=d, calibration="proof")
    logs = max(8 * math.log(4 * d / eta), math.log1p(2 * math.expm1(epsilon / 4) / delta))
    assert 324 * (1 + alpha) ** 2 / (alpha**4 * epsilon) * logs < chain.smallest_tau
    corrected = 72 * (3 + 2 * alpha) ** 3 / (6 + 5 * alpha)  # in place of 324
    assert corrected * (1 + alpha) ** 2 / (alpha**4 * epsilon) * logs == pytest.approx(
        chain.smallest_tau, rel=0.12
    )


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


# --- why the promise holds: exact ---


@given(
    chain=chains("exact"),
    above=st.integers(0, 12) | st.integers(0, 10**6),
    total=st.integers(0, LARGEST_TOTAL),
)
def test_conditions_of_the_exact_chain(chain: Thresholds, above: int, total: int) -> None:
    chain = replace(chain, tau=chain.smallest_tau + above / chain.alpha)  # one v_0 after the other
    assert chain.guaranteed
    check_exact_chain(chain, total)


@each("tau", [17_924, 17_926, 17_928])
def test_rounding_keeps_the_conditions(tau: float) -> None:
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


@each("alpha", [0.05, 0.1, 0.25, 0.5])
@each("depth", [3, 8, 16, 64])
def test_exact_chain_is_far_below_the_proof(alpha: float, depth: int) -> None:
    exact, proof = (
        Thresholds(alpha=alpha, eta=0.05, epsilon=1.0, delta=1e-6, depth=depth, calibration=calibration)
        for calibration in ("exact", "proof")
    )
    assert proof.smallest_tau > 500 * exact.smallest_tau

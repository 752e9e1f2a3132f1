"""Rejection sampling: weights within their margins, tails, and comparisons that are decided exactly."""

from __future__ import annotations

import math
from decimal import DefaultContext, Inexact, getcontext, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandas_dptree.mechanisms import rejection_sampling, sampling
from pandas_dptree.mechanisms.sampling import discrete_gaussian, discrete_laplace, truncated_discrete_laplace
from tests.helpers_cases import each
from tests.helpers_random import seeded_bytes
from tests.helpers_sampling import ACCEPT, KINDS, SCALES, cdf_of, draw
from tests.helpers_statistics import PRECISION, edges, fit, laplace_cdf, truncated_laplace_cdf

# Their distributions -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("noise_scale", [0.1, 1.0, 3.3, 20.0, 1e3, 1e12])
@pytest.mark.parametrize("kind", KINDS)
def test_draws_follow_their_distribution_when_comparisons_are_exact(
    kind: str, noise_scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided = 0
    is_below = rejection_sampling.NoiseDistribution.is_below

    def counting(*args: Any) -> bool:
        nonlocal decided
        decided += 1
        return is_below(*args)

    monkeypatch.setattr(rejection_sampling, "_SLOT_BITS", 8)
    monkeypatch.setattr(rejection_sampling, "_FRACTION_BITS", 1)
    monkeypatch.setattr(rejection_sampling.NoiseDistribution, "is_below", counting)
    size = 50_000
    draws = draw(kind, noise_scale, size, seeded_bytes(9, KINDS.index(kind)))
    assert decided > size / 200
    assert fit(draws, cdf_of(kind, noise_scale), edges(noise_scale)) > ACCEPT


@pytest.mark.slow
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("slot_bits", [8, pytest.param(16, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    ("kind", "noise_scale"),
    [("laplace", 0.3), ("laplace", 5.0), ("laplace", 1e12), ("gaussian", 2.1), ("gaussian", 5.9e11)],
)
def test_tails_follow_their_distribution(kind: str, noise_scale: float, slot_bits: int, left: bool) -> None:
    power = {"laplace": 1, "gaussian": 2}[kind]
    sampler = rejection_sampling._sampler(
        rejection_sampling.NoiseDistribution(scale=noise_scale, power=power), slot_bits
    )
    start, n, source = sampler.tail_start, 12_000, seeded_bytes(10, slot_bits, left)
    drawn = [sampler._draw_tail(left, source) for _ in range(n)]
    beyond = np.array([~x if left else x for x, kept in drawn if kept])
    assert beyond.min() >= start

    whole, shift = cdf_of(kind, noise_scale), int(left)  # the image of x is -1 - x: one further out
    below = whole(start + shift - 1)

    def cdf(k: int) -> Any:
        return (whole(k + shift) - below) / (1 - below)

    total_weight = 1 / (whole(0) - whole(-1))
    share = float(sampler.height * total_weight * (1 - below) / sampler.block_size)
    assert abs(len(beyond) - n * share) < 4 * math.sqrt(n * share)
    ends = sorted({start + round(noise_scale * c) for c in np.arange(0.0, 5.0, 0.1)})
    assert fit(beyond, cdf, ends) > ACCEPT


@pytest.mark.parametrize("noise_scale", [0.57, 4.6, 6.3e11])  # tails that begin early
def test_both_tails_are_met(noise_scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejection_sampling, "_SLOT_BITS", 8)
    start = rejection_sampling._sampler(
        rejection_sampling.NoiseDistribution(scale=noise_scale, power=1), 8
    ).tail_start
    draws = discrete_laplace(noise_scale, 200_000, seeded_bytes(24))
    cdf = laplace_cdf(noise_scale)
    for met, share in (
        ((draws >= start).sum(), 1 - cdf(start - 1)),
        ((draws < -start).sum(), cdf(-start - 1)),
    ):
        expected = len(draws) * float(share)
        assert expected > 20
        assert abs(met - expected) < 4 * math.sqrt(expected)


@pytest.mark.parametrize("slot_bits", [8, 16])
def test_truncated_within_the_tail(slot_bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejection_sampling, "_SLOT_BITS", slot_bits)
    start = rejection_sampling._sampler(
        rejection_sampling.NoiseDistribution(scale=5.0, power=1), slot_bits
    ).tail_start
    bound = start + 2
    kind = rejection_sampling.NoiseDistribution(scale=5.0, power=1, bound=bound)
    assert rejection_sampling._sampler(kind, slot_bits).tail_start <= bound
    draws = truncated_discrete_laplace(5.0, bound, 300_000, seeded_bytes(16))
    assert abs(draws).max() <= bound
    assert fit(draws, truncated_laplace_cdf(5.0, bound), [*edges(5.0), bound]) > ACCEPT


# Rejection sampling ---------------------------------------------------------------------------------------


@settings(derandomize=True)
@given(
    exponent=st.floats(-3, 12),
    power=st.sampled_from([1, 2]),
    bounded=st.one_of(st.none(), st.floats(0, 30)),
    slot_bits=st.sampled_from([8, 8, 8, 16]),
)
def test_slots_cover_the_weights_and_sure_slots_are_below_them(
    exponent: float, power: int, bounded: float | None, slot_bits: int
) -> None:
    scale = min(max(10.0**exponent, 1e-3), 1e12)
    bound = math.inf if bounded is None else int(bounded * scale)
    sampler = rejection_sampling._sampler.__wrapped__(
        rejection_sampling.NoiseDistribution(scale=scale, power=power, bound=bound), slot_bits
    )
    n_slots, n_accepted, size = 2**slot_bits, sampler.n_accepted, sampler.block_size

    def height_of(x: int) -> Any:
        inside = abs(x) <= bound
        return inside * sampler.height * PRECISION.exp(-((abs(x) / PRECISION.mpf(scale)) ** power) / power)

    assert len(sampler.first) == n_slots
    assert size & (size - 1) == 0
    assert sampler.tail_size & (sampler.tail_size - 1) == 0
    assert sampler.tail_size % size == 0
    owned_by_nobody = sampler.position > sampler.height
    n_owned = n_accepted + int((~owned_by_nobody).sum())
    assert owned_by_nobody[-2:].all()
    owners, sure = np.unique(sampler.first[:n_accepted], return_counts=True)
    sure_of = dict(zip(owners.tolist(), sure.tolist(), strict=True))
    blocks = np.unique(sampler.first[:n_owned])
    assert np.array_equal(blocks, np.arange(-sampler.tail_start, sampler.tail_start, size))
    unsure_owner = sampler.first[n_accepted:n_owned]
    unsure_position = sampler.position[: n_owned - n_accepted]
    some = np.unique(np.linspace(0, len(blocks) - 1, 40).astype(int))
    for first in blocks[some].tolist():
        positions = unsure_position[unsure_owner == first].tolist()
        n_sure_here = sure_of.get(first, 0)
        assert positions == list(range(n_sure_here, n_sure_here + len(positions)))
        for x in {first, first + size - 1, min(max(0, first), first + size - 1)}:
            assert n_sure_here <= height_of(x) <= n_sure_here + len(positions)


@each("noise_scale", [*SCALES, 0.99, 1.01, 2.0, 1.99, 2.01, 512.0, 511.9, 512.1, 2.0**39])
@each("power", [1, 2])
@each("slot_bits", [8, 16])
def test_the_slot_of_a_tail_covers_its_blocks(slot_bits: int, power: int, noise_scale: float) -> None:
    sampler = rejection_sampling._sampler(
        rejection_sampling.NoiseDistribution(scale=noise_scale, power=power), slot_bits
    )
    for block in (0, 1, 2, 3, 10, 30, 60):
        x = PRECISION.mpf(sampler.tail_start + block * sampler.tail_size)
        needed = sampler.height * sampler.tail_size // sampler.block_size
        needed *= PRECISION.exp(-((x / noise_scale) ** power) / power)
        assert needed <= PRECISION.mpf(2) ** -(block + 1)


@each("noise_scale", SCALES)
@each("power", [1, 2])
def test_few_draws_need_a_comparison(power: int, noise_scale: float) -> None:
    sampler = rejection_sampling._sampler(
        rejection_sampling.NoiseDistribution(scale=noise_scale, power=power), 16
    )
    assert sampler.n_accepted > 0.94 * 2**16


def test_computed_weights_are_well_within_the_margin() -> None:
    for scale, power in ((0.37, 1), (10.0, 2), (1e12, 1), (1e12, 2)):
        x = np.unique((np.linspace(0, 20, 500) * scale).astype(np.int64))
        exact = [PRECISION.exp(-((int(k) / PRECISION.mpf(scale)) ** power) / power) for k in x]
        computed = rejection_sampling.NoiseDistribution(scale=scale, power=power).weights(x)
        worst = max(abs(float(a - b)) for a, b in zip(exact, computed.tolist(), strict=True))
        assert 2**16 * worst < rejection_sampling._MARGIN / 1000


class Scripted:
    """A source that plays given bits, then zeros, and counts how many it was asked for."""

    def __init__(self, digits: int, n_bits: int) -> None:
        self.digits, self.n_bits, self.given = digits, n_bits, 0

    def __call__(self, n: int) -> bytes:
        self.given += 8 * n
        if self.given > self.n_bits:
            return bytes(n)
        return int((self.digits >> (self.n_bits - self.given)) % 256**n).to_bytes(n)


@each("scale, power, x", [(3.0, 1, 7), (0.5, 2, 1), (1e12, 1, 10**12), (37.3, 2, -90), (0.37, 1, -2)])
def test_settling_reads_just_enough_bits_and_is_right(scale: float, power: int, x: int) -> None:
    kind, height = rejection_sampling.NoiseDistribution(scale=scale, power=power), 1000
    target = height * PRECISION.exp(-((abs(x) / PRECISION.mpf(scale)) ** power) / power)
    whole = int(target)
    for words in (1, 3, 4):
        digits = int(PRECISION.floor(PRECISION.ldexp(target - whole, 32 * words)))
        for side, answer in ((-1, True), (1, False)):
            source = Scripted(digits + side, 32 * words)
            assert kind.is_below(whole, 0, height, x, source) is answer
            assert source.given == 32 * words  # U agrees with the target up to its last digit but one
    silent = Scripted(0, 0)
    assert kind.is_below(whole - 1, 0, height, x, silent)
    assert not kind.is_below(whole + 1, 0, height, x, silent)
    assert silent.given == 0


def test_settling_ignores_the_callers_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DefaultContext.traps, Inexact, True)
    kind = rejection_sampling.NoiseDistribution(scale=3.0, power=1)
    with localcontext() as context, np.errstate(all="raise"):
        context.prec = 2
        context.traps[Inexact] = True
        assert kind.is_below(0, 0, 1000, 3, seeded_bytes(18))
        assert discrete_gaussian(1e-3, 1000, seeded_bytes(18)).tolist() == [0] * 1000
        assert getcontext().prec == 2


def flips(heads: int) -> sampling.ByteSource:
    """Come up heads so many times, then tails; all other bits are zero."""
    coins = iter([1] * heads + [0])
    return lambda n: bytes([next(coins)]) if n == 1 else bytes(n)


@pytest.mark.parametrize(("left", "end"), [(False, 2**62), (True, -(2**62))])
def test_tails_go_on_for_ever_and_saturate(left: bool, end: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = rejection_sampling._sampler(rejection_sampling.NoiseDistribution(scale=1e12, power=1), 16)
    monkeypatch.setattr(rejection_sampling.NoiseDistribution, "is_below", lambda *args: True)
    for block in (0, 3):
        magnitude = sampler.tail_start + block * sampler.tail_size
        assert sampler._draw_tail(left, flips(block)) == (~magnitude if left else magnitude, True)
    assert sampler._draw_tail(left, flips(2**62 // sampler.tail_size)) == (end, True)

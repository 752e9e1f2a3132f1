from __future__ import annotations

import math
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from decimal import DefaultContext, Inexact, getcontext, localcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandas_dptree.errors import ArgumentError
from pandas_dptree.mechanisms import rejection_sampling, sampling
from pandas_dptree.mechanisms.sampling import (
    byte_source,
    discrete_gaussian,
    discrete_laplace,
    random_words,
    truncated_discrete_laplace,
)
from tests.helpers_statistics import (
    PRECISION,
    edges,
    fit,
    gaussian_cdf,
    laplace_cdf,
    same_law,
    truncated_laplace_cdf,
)

SCALES = [1e-3, 0.1, 0.5, 1.0, 3.0, 10.0, 37.3, 150.0, 1e3, 12345.6, 1e6, 1e12]
LAWS = ["laplace", "gaussian", "truncated"]
ACCEPT = 1e-3  # seeds are fixed, so a right law stays accepted
REJECT = 1e-9


def seeded(*seed: int) -> sampling.ByteSource:
    return byte_source(np.random.default_rng(seed))


def bound_for(noise_scale: float) -> int:
    return math.ceil(1.7 * noise_scale)


def draw(law: str, noise_scale: float, size: int, source: sampling.ByteSource) -> np.ndarray:
    if law == "truncated":
        return truncated_discrete_laplace(noise_scale, bound_for(noise_scale), size, source)
    return {"laplace": discrete_laplace, "gaussian": discrete_gaussian}[law](noise_scale, size, source)


def cdf_of(law: str, noise_scale: float) -> Callable[[int], Any]:
    if law == "truncated":
        return truncated_laplace_cdf(noise_scale, bound_for(noise_scale))
    return {"laplace": laplace_cdf, "gaussian": gaussian_cdf}[law](noise_scale)


# The helpers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise_scale", [0.3, 2.0, 20.0])
@pytest.mark.parametrize("power", [1, 2])
def test_cdfs_are_the_sums_of_the_weights(power: int, noise_scale: float) -> None:
    reach = round(40 * noise_scale) + 40
    weights = np.exp(-(np.abs(np.arange(-reach, reach + 1) / noise_scale) ** power) / power)
    cdf = {1: laplace_cdf, 2: gaussian_cdf}[power](noise_scale)
    for k in range(-5, 6):
        assert float(cdf(k)) == pytest.approx(weights[: k + reach + 1].sum() / weights.sum(), rel=1e-12)
    if power == 1:
        inside = weights[reach - 3 : reach + 4]
        cut = truncated_laplace_cdf(noise_scale, 3)
        assert [float(cut(k)) for k in range(-4, 5)] == pytest.approx(
            [0, *np.cumsum(inside) / inside.sum(), 1], abs=1e-12
        )


def test_gaussian_cdf_of_large_scales_continues_the_sum() -> None:
    summed, expanded = gaussian_cdf(200.0), gaussian_cdf(math.nextafter(200.0, 201.0))
    for k in (-900, -250, -1, 0, 130, 700):
        assert abs(summed(k) - expanded(k)) < 1e-11


@pytest.mark.parametrize("noise_scale", [0.7, 10.0, 1e6])
@pytest.mark.parametrize("law", LAWS)
def test_fit_accepts_the_right_scale_and_rejects_its_neighbours(law: str, noise_scale: float) -> None:
    draws = draw(law, noise_scale, 100_000, seeded(1))
    assert fit(draws, cdf_of(law, noise_scale), edges(noise_scale)) > ACCEPT
    for wrong in (0.9, 1.1):
        if law == "truncated":
            cdf = truncated_laplace_cdf(wrong * noise_scale, bound_for(noise_scale))
        else:
            cdf = cdf_of(law, wrong * noise_scale)
        assert fit(draws, cdf, edges(noise_scale)) < REJECT


@pytest.mark.parametrize("wrong", [0.9, 1.1])
def test_same_law_accepts_the_right_scale_and_rejects_its_neighbours(wrong: float) -> None:
    one = discrete_laplace(10.0, 100_000, seeded(2))
    assert same_law(one, discrete_laplace(10.0, 30_000, seeded(3)), edges(10.0)) > ACCEPT
    assert same_law(one, discrete_laplace(10.0 * wrong, 30_000, seeded(3)), edges(10.0)) < REJECT


def test_fit_rejects_a_doubled_zero_a_shift_and_the_impossible() -> None:
    draws = discrete_laplace(10.0, 100_000, seeded(4))
    cdf = laplace_cdf(10.0)
    q = math.exp(-1 / 10)
    geometric = np.random.default_rng(4).geometric(1 - q, 100_000) - 1
    doubled = geometric * np.random.default_rng(5).choice([-1, 1], 100_000)
    assert fit(doubled, cdf, edges(10.0)) < REJECT
    assert fit(draws + 1, cdf, edges(10.0)) < REJECT
    one_outlier = np.append(draws, 2000)
    assert fit(one_outlier, cdf, [*edges(10.0), 1500]) == 0.0


def test_p_values_are_uniform() -> None:
    source, cdf = seeded(6), laplace_cdf(3.0)
    p = np.array([fit(discrete_laplace(3.0, 5_000, source), cdf, edges(3.0)) for _ in range(200)])
    assert 0.42 < p.mean() < 0.58  # four standard deviations
    assert 0.02 < (p < 0.1).mean() < 0.19


# The laws -----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("noise_scale", SCALES)
@pytest.mark.parametrize("law", LAWS)
def test_law(law: str, noise_scale: float) -> None:
    draws = draw(law, noise_scale, 1_000_000, seeded(7, SCALES.index(noise_scale)))
    assert draws.dtype == np.int64
    assert fit(draws, cdf_of(law, noise_scale), edges(noise_scale)) > ACCEPT


@pytest.mark.parametrize("noise_scale", [1.0, 300.0])
@pytest.mark.parametrize("law", LAWS)
def test_every_integer_of_a_block_is_as_likely_as_it_should_be(law: str, noise_scale: float) -> None:
    draws = draw(law, noise_scale, 500_000, seeded(8))
    middle = range(-30, 30)
    assert fit(draws, cdf_of(law, noise_scale), list(middle)) > ACCEPT


@pytest.mark.slow
@pytest.mark.parametrize("noise_scale", [0.1, 1.0, 3.3, 20.0, 1e3, 1e12])
@pytest.mark.parametrize("law", LAWS)
def test_law_when_comparisons_are_settled_exactly(
    law: str, noise_scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled = 0
    is_below = rejection_sampling.Law.is_below

    def counting(*args: Any) -> bool:
        nonlocal settled
        settled += 1
        return is_below(*args)

    monkeypatch.setattr(rejection_sampling, "_SLOT_BITS", 8)
    monkeypatch.setattr(rejection_sampling, "_FRACTION_BITS", 1)
    monkeypatch.setattr(rejection_sampling.Law, "is_below", counting)
    size = 50_000
    draws = draw(law, noise_scale, size, seeded(9, LAWS.index(law)))
    assert settled > size / 200
    assert fit(draws, cdf_of(law, noise_scale), edges(noise_scale)) > ACCEPT


@pytest.mark.slow
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("slot_bits", [8, 16])
@pytest.mark.parametrize(
    ("law", "noise_scale"),
    [("laplace", 0.3), ("laplace", 5.0), ("laplace", 1e12), ("gaussian", 2.1), ("gaussian", 5.9e11)],
)
def test_law_of_the_tails(law: str, noise_scale: float, slot_bits: int, left: bool) -> None:
    power = {"laplace": 1, "gaussian": 2}[law]
    stairs = rejection_sampling._staircase(rejection_sampling.Law(scale=noise_scale, power=power), slot_bits)
    start, n, source = stairs.tail_start, 12_000, seeded(10, slot_bits, left)
    drawn = [stairs._draw_tail(left, source) for _ in range(n)]
    beyond = np.array([~x if left else x for x, kept in drawn if kept])
    assert beyond.min() >= start

    whole, shift = cdf_of(law, noise_scale), int(left)  # the image of x is -1 - x: one further out
    below = whole(start + shift - 1)

    def cdf(k: int) -> Any:
        return (whole(k + shift) - below) / (1 - below)

    total_weight = 1 / (whole(0) - whole(-1))
    share = float(stairs.height * total_weight * (1 - below) / stairs.block_size)
    assert abs(len(beyond) - n * share) < 4 * math.sqrt(n * share)
    ends = sorted({start + round(noise_scale * c) for c in np.arange(0.0, 5.0, 0.1)})
    assert fit(beyond, cdf, ends) > ACCEPT


@pytest.mark.parametrize("noise_scale", [0.57, 4.6, 6.3e11])  # tails that begin early
def test_both_tails_are_met(noise_scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejection_sampling, "_SLOT_BITS", 8)
    start = rejection_sampling._staircase(rejection_sampling.Law(scale=noise_scale, power=1), 8).tail_start
    draws = discrete_laplace(noise_scale, 500_000, seeded(24))
    cdf = laplace_cdf(noise_scale)
    for met, share in (
        ((draws >= start).sum(), 1 - cdf(start - 1)),
        ((draws < -start).sum(), cdf(-start - 1)),
    ):
        expected = len(draws) * float(share)
        assert expected > 20
        assert abs(met - expected) < 4 * math.sqrt(expected)


def test_moments_at_the_largest_scale() -> None:
    n = 400_000
    laplace = discrete_laplace(1e12, n, seeded(11)) / 1e12
    gaussian = discrete_gaussian(1e12, n, seeded(12)) / 1e12
    for draws, variance, kurtosis in ((laplace, 2, 6), (gaussian, 1, 3)):
        assert abs(draws.mean()) < 4 * math.sqrt(variance / n)
        assert abs(draws.var() / variance - 1) < 4 * math.sqrt((kurtosis - 1) / n)
    assert len(np.unique(np.abs(laplace))) > n - 10  # the low digits are noise too


@pytest.mark.parametrize("noise_scale", [0.5, 10.0, 1e4])
def test_truncated_keeps_within_its_bound(noise_scale: float) -> None:
    assert not truncated_discrete_laplace(noise_scale, 0, 10_000, seeded(13)).any()
    for bound in (1, 2, 100, 64 * 1024):
        draws = truncated_discrete_laplace(noise_scale, bound, 50_000, seeded(14, bound))
        assert abs(draws).max() <= bound
        ends = sorted({*(k for k in edges(noise_scale) if abs(k) <= bound), -bound - 1, bound})
        assert fit(draws, truncated_laplace_cdf(noise_scale, bound), ends) > ACCEPT


@pytest.mark.parametrize("bound", [10**6, 2**62])
def test_truncated_with_a_distant_bound_is_discrete_laplace(bound: int) -> None:
    draws = truncated_discrete_laplace(10.0, bound, 200_000, seeded(15))
    assert np.array_equal(draws, discrete_laplace(10.0, 200_000, seeded(15)))


@pytest.mark.parametrize("slot_bits", [8, 16])
def test_truncated_within_the_tail(slot_bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejection_sampling, "_SLOT_BITS", slot_bits)
    start = rejection_sampling._staircase(rejection_sampling.Law(scale=5.0, power=1), slot_bits).tail_start
    bound = start + 2
    law = rejection_sampling.Law(scale=5.0, power=1, bound=bound)
    assert rejection_sampling._staircase(law, slot_bits).tail_start <= bound
    draws = truncated_discrete_laplace(5.0, bound, 300_000, seeded(16))
    assert abs(draws).max() <= bound
    assert fit(draws, truncated_laplace_cdf(5.0, bound), [*edges(5.0), bound]) > ACCEPT


@pytest.mark.slow
@pytest.mark.parametrize("noise_scale", [0.4, 3.0, 10.0, 1e3])
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_same_law_as_opendp(law: str, noise_scale: float) -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int))
    if law == "laplace":
        measure = dp.m.make_laplace(space, dp.l1_distance(T=int), scale=noise_scale)
    else:
        measure = dp.m.make_gaussian(space, dp.l2_distance(T=int), scale=noise_scale)
    theirs = np.array(measure([0] * 50_000))
    # OpenDP's draws cannot be seeded, so these tests fail once in a million runs.
    assert same_law(draw(law, noise_scale, 500_000, seeded(17)), theirs, edges(noise_scale)) > 1e-6


# Rejection sampling ---------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None, derandomize=True)
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
    stairs = rejection_sampling._staircase.__wrapped__(
        rejection_sampling.Law(scale=scale, power=power, bound=bound), slot_bits
    )
    n_slots, n_sure, size = 2**slot_bits, stairs.n_sure, stairs.block_size

    def height_of(x: int) -> Any:
        inside = abs(x) <= bound
        return inside * stairs.height * PRECISION.exp(-((abs(x) / PRECISION.mpf(scale)) ** power) / power)

    assert len(stairs.first) == n_slots
    assert size & (size - 1) == 0
    assert stairs.tail_size & (stairs.tail_size - 1) == 0
    assert stairs.tail_size % size == 0
    owned_by_nobody = stairs.position > stairs.height
    n_owned = n_sure + int((~owned_by_nobody).sum())
    assert owned_by_nobody[-2:].all()
    owners, sure = np.unique(stairs.first[:n_sure], return_counts=True)
    sure_of = dict(zip(owners.tolist(), sure.tolist(), strict=True))
    blocks = np.unique(stairs.first[:n_owned])
    assert np.array_equal(blocks, np.arange(-stairs.tail_start, stairs.tail_start, size))
    unsure_owner = stairs.first[n_sure:n_owned]
    unsure_position = stairs.position[: n_owned - n_sure]
    some = np.unique(np.linspace(0, len(blocks) - 1, 40).astype(int))
    for first in blocks[some].tolist():
        positions = unsure_position[unsure_owner == first].tolist()
        n_sure_here = sure_of.get(first, 0)
        assert positions == list(range(n_sure_here, n_sure_here + len(positions)))
        for x in {first, first + size - 1, min(max(0, first), first + size - 1)}:
            assert n_sure_here <= height_of(x) <= n_sure_here + len(positions)


@pytest.mark.parametrize("noise_scale", [*SCALES, 0.99, 1.01, 2.0, 1.99, 2.01, 512.0, 511.9, 512.1, 2.0**39])
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("slot_bits", [8, 16])
def test_the_slot_of_a_tail_covers_its_blocks(slot_bits: int, power: int, noise_scale: float) -> None:
    stairs = rejection_sampling._staircase(rejection_sampling.Law(scale=noise_scale, power=power), slot_bits)
    for block in (0, 1, 2, 3, 10, 30, 60):
        x = PRECISION.mpf(stairs.tail_start + block * stairs.tail_size)
        needed = stairs.height * stairs.tail_size // stairs.block_size
        needed *= PRECISION.exp(-((x / noise_scale) ** power) / power)
        assert needed <= PRECISION.mpf(2) ** -(block + 1)


@pytest.mark.parametrize("noise_scale", SCALES)
@pytest.mark.parametrize("power", [1, 2])
def test_few_draws_need_a_comparison(power: int, noise_scale: float) -> None:
    stairs = rejection_sampling._staircase(rejection_sampling.Law(scale=noise_scale, power=power), 16)
    assert stairs.n_sure > 0.94 * 2**16


def test_computed_weights_are_well_within_the_margin() -> None:
    for scale, power in ((0.37, 1), (10.0, 2), (1e12, 1), (1e12, 2)):
        x = np.unique((np.linspace(0, 20, 500) * scale).astype(np.int64))
        exact = [PRECISION.exp(-((int(k) / PRECISION.mpf(scale)) ** power) / power) for k in x]
        computed = rejection_sampling.Law(scale=scale, power=power).weights(x)
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


@pytest.mark.parametrize(
    ("scale", "power", "x"), [(3.0, 1, 7), (0.5, 2, 1), (1e12, 1, 10**12), (37.3, 2, -90), (0.37, 1, -2)]
)
def test_settling_reads_just_enough_bits_and_is_right(scale: float, power: int, x: int) -> None:
    law, height = rejection_sampling.Law(scale=scale, power=power), 1000
    target = height * PRECISION.exp(-((abs(x) / PRECISION.mpf(scale)) ** power) / power)
    whole = int(target)
    for words in (1, 3, 4):
        digits = int(PRECISION.floor(PRECISION.ldexp(target - whole, 32 * words)))
        for side, answer in ((-1, True), (1, False)):
            source = Scripted(digits + side, 32 * words)
            assert law.is_below(whole, 0, height, x, source) is answer
            assert source.given == 32 * words  # U agrees with the target up to its last digit but one
    silent = Scripted(0, 0)
    assert law.is_below(whole - 1, 0, height, x, silent)
    assert not law.is_below(whole + 1, 0, height, x, silent)
    assert silent.given == 0


def test_settling_ignores_the_callers_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DefaultContext.traps, Inexact, True)
    law = rejection_sampling.Law(scale=3.0, power=1)
    with localcontext() as context, np.errstate(all="raise"):
        context.prec = 2
        context.traps[Inexact] = True
        assert law.is_below(0, 0, 1000, 3, seeded(18))
        assert discrete_gaussian(1e-3, 1000, seeded(18)).tolist() == [0] * 1000
        assert getcontext().prec == 2


def flips(heads: int) -> sampling.ByteSource:
    """Come up heads so many times, then tails; all other bits are zero."""
    coins = iter([1] * heads + [0])
    return lambda n: bytes([next(coins)]) if n == 1 else bytes(n)


@pytest.mark.parametrize(("left", "end"), [(False, 2**62), (True, -(2**62))])
def test_tails_go_on_for_ever_and_saturate(left: bool, end: int, monkeypatch: pytest.MonkeyPatch) -> None:
    stairs = rejection_sampling._staircase(rejection_sampling.Law(scale=1e12, power=1), 16)
    monkeypatch.setattr(rejection_sampling.Law, "is_below", lambda *args: True)
    for block in (0, 3):
        magnitude = stairs.tail_start + block * stairs.tail_size
        assert stairs._draw_tail(left, flips(block)) == (~magnitude if left else magnitude, True)
    assert stairs._draw_tail(left, flips(2**62 // stairs.tail_size)) == (end, True)


# Where the bits come from -------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
def test_a_generator_repeats_and_the_operating_system_does_not(law: str) -> None:
    once, again = (draw(law, 100.0, 200, seeded(19)) for _ in range(2))
    assert np.array_equal(once, again)
    once, again = (draw(law, 100.0, 200, byte_source(None)) for _ in range(2))
    assert not np.array_equal(once, again)


def test_successive_draws_from_one_generator_differ() -> None:
    source = seeded(20)
    assert not np.array_equal(discrete_laplace(100.0, 200, source), discrete_laplace(100.0, 200, source))


def test_a_forked_child_never_repeats_its_parents_noise() -> None:
    # In a fresh interpreter: forking one that runs threads (pytest-xdist does) is deprecated.
    script = """
import os
from pandas_dptree.mechanisms.sampling import byte_source, discrete_gaussian, discrete_laplace
source = byte_source(None)
def noise():
    return str(discrete_laplace(1e6, 50, source).tolist() + discrete_gaussian(1e6, 50, source).tolist())
noise()                                # whatever state there is exists before the fork
read, write = os.pipe()
for child in range(2):
    if os.fork() == 0:
        os.write(write, (noise() + "\\n").encode())
        os._exit(0)
    os.wait()
os.write(write, (noise() + "\\n").encode())
os.close(write)
print(os.fdopen(read).read(), end="")
"""
    here = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(here)},
    )
    drawn = [set(line.strip("[]").split(", ")) for line in done.stdout.splitlines()]
    assert [len(line) > 95 for line in drawn] == [True] * 3
    assert all(len(one & other) < 5 for one in drawn for other in drawn if one is not other)


def test_random_words_are_uniform() -> None:
    words = random_words(seeded(21), 100_000)
    assert words.dtype == np.uint64
    assert words.flags.writeable
    for shift in (0, 8, 56):
        counts = np.bincount((words >> np.uint64(shift)).astype(np.uint8), minlength=256)
        assert abs(((counts - 390.625) ** 2 / 390.625).sum() - 255) < 4 * math.sqrt(2 * 255)
    assert not np.array_equal(random_words(byte_source(None), 4), random_words(byte_source(None), 4))


# Arguments ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("bad", [0, -1.0, 9.9e-4, 1.1e12, math.inf, math.nan, "3", None, True, 1j])
def test_noise_scale_is_checked(law: str, bad: Any) -> None:
    sampler = {
        "laplace": discrete_laplace,
        "gaussian": discrete_gaussian,
        "truncated": lambda scale, size, source: truncated_discrete_laplace(scale, 5, size, source),
    }[law]
    with pytest.raises(ArgumentError, match=r"`noise_scale` must be a number from 0\.001 to 1e\+12") as error:
        sampler(bad, 3, seeded(0))
    assert error.value.argument == "noise_scale"
    assert error.value.hint


@pytest.mark.parametrize("bad", [-1, 1.0, None, True, "1"])
def test_size_is_checked(bad: Any) -> None:
    for call in (
        lambda: discrete_laplace(1.0, bad, seeded(0)),
        lambda: discrete_gaussian(1.0, bad, seeded(0)),
        lambda: truncated_discrete_laplace(1.0, 1, bad, seeded(0)),
        lambda: random_words(seeded(0), bad),
    ):
        with pytest.raises(ArgumentError, match="`size` must be a whole number"):
            call()


@pytest.mark.parametrize("bad", [-1, 2**62 + 1, 1.0, None, True])
def test_bound_is_checked(bad: Any) -> None:
    with pytest.raises(ArgumentError, match="`bound` must be a whole number from 0 to"):
        truncated_discrete_laplace(1.0, bad, 1, seeded(0))


@pytest.mark.parametrize("noise_scale", [10, np.int32(10), np.float64(10), np.float32(10)])
def test_a_scale_may_be_any_number(noise_scale: Any) -> None:
    expected = discrete_laplace(10.0, 50, seeded(22))
    assert np.array_equal(discrete_laplace(noise_scale, np.int64(50), seeded(22)), expected)


@pytest.mark.parametrize("law", LAWS)
def test_no_draws(law: str) -> None:
    draws = draw(law, 1.0, 0, seeded(0))
    assert draws.shape == (0,)
    assert draws.dtype == np.int64
    assert random_words(seeded(0), 0).shape == (0,)


def test_many_draws_need_little_memory() -> None:
    rejection_sampling._staircase.cache_clear()
    tracemalloc.start()
    draws = discrete_laplace(1e12, 3_000_000, seeded(23))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak - draws.nbytes < 16e6

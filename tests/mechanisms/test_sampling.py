"""Draws of discrete noise: their distributions, their source of bits, and arguments that are refused."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pandas_dptree.errors import ArgumentError
from pandas_dptree.mechanisms import rejection_sampling
from pandas_dptree.mechanisms.sampling import (
    byte_source,
    discrete_gaussian,
    discrete_laplace,
    random_words,
    truncated_discrete_laplace,
)
from tests.helpers_cases import each
from tests.helpers_random import seeded_bytes
from tests.helpers_sampling import ACCEPT, KINDS, SCALES, cdf_of, draw
from tests.helpers_statistics import edges, fit, same_distribution, truncated_laplace_cdf

# Their distributions -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("noise_scale", SCALES)
@pytest.mark.parametrize("kind", KINDS)
def test_draws_follow_their_distribution(kind: str, noise_scale: float) -> None:
    draws = draw(kind, noise_scale, 1_000_000, seeded_bytes(7, SCALES.index(noise_scale)))
    assert draws.dtype == np.int64
    assert fit(draws, cdf_of(kind, noise_scale), edges(noise_scale)) > ACCEPT


@pytest.mark.parametrize("noise_scale", [1.0, 300.0])
@pytest.mark.parametrize("kind", KINDS)
def test_every_integer_of_a_block_is_as_likely_as_it_should_be(kind: str, noise_scale: float) -> None:
    draws = draw(kind, noise_scale, 500_000, seeded_bytes(8))
    middle = range(-30, 30)
    assert fit(draws, cdf_of(kind, noise_scale), list(middle)) > ACCEPT


def test_moments_at_the_largest_scale() -> None:
    n = 400_000
    laplace = discrete_laplace(1e12, n, seeded_bytes(11)) / 1e12
    gaussian = discrete_gaussian(1e12, n, seeded_bytes(12)) / 1e12
    for draws, variance, kurtosis in ((laplace, 2, 6), (gaussian, 1, 3)):
        assert abs(draws.mean()) < 4 * math.sqrt(variance / n)
        assert abs(draws.var() / variance - 1) < 4 * math.sqrt((kurtosis - 1) / n)
    assert len(np.unique(np.abs(laplace))) > n - 10  # the low digits are noise too


@pytest.mark.parametrize("noise_scale", [0.5, 10.0, 1e4])
def test_truncated_keeps_within_its_bound(noise_scale: float) -> None:
    assert not truncated_discrete_laplace(noise_scale, 0, 10_000, seeded_bytes(13)).any()
    for bound in (1, 2, 100, 64 * 1024):
        draws = truncated_discrete_laplace(noise_scale, bound, 50_000, seeded_bytes(14, bound))
        assert abs(draws).max() <= bound
        ends = sorted({*(k for k in edges(noise_scale) if abs(k) <= bound), -bound - 1, bound})
        assert fit(draws, truncated_laplace_cdf(noise_scale, bound), ends) > ACCEPT


@pytest.mark.parametrize("bound", [10**6, 2**62])
def test_truncated_with_a_distant_bound_is_discrete_laplace(bound: int) -> None:
    draws = truncated_discrete_laplace(10.0, bound, 200_000, seeded_bytes(15))
    assert np.array_equal(draws, discrete_laplace(10.0, 200_000, seeded_bytes(15)))


@pytest.mark.slow
@pytest.mark.parametrize("noise_scale", [0.4, 3.0, 10.0, 1e3])
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_same_distribution_as_opendp(kind: str, noise_scale: float) -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int))
    if kind == "laplace":
        measure = dp.m.make_laplace(space, dp.l1_distance(T=int), scale=noise_scale)
    else:
        measure = dp.m.make_gaussian(space, dp.l2_distance(T=int), scale=noise_scale)
    theirs = np.array(measure([0] * 50_000))
    # OpenDP's draws cannot be seeded, so these tests fail once in a million runs.
    assert (
        same_distribution(draw(kind, noise_scale, 500_000, seeded_bytes(17)), theirs, edges(noise_scale))
        > 1e-6
    )


# Where the bits come from -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_generator_repeats_and_the_operating_system_does_not(kind: str) -> None:
    once, again = (draw(kind, 100.0, 200, seeded_bytes(19)) for _ in range(2))
    assert np.array_equal(once, again)
    once, again = (draw(kind, 100.0, 200, byte_source(None)) for _ in range(2))
    assert not np.array_equal(once, again)


def test_successive_draws_from_one_generator_differ() -> None:
    source = seeded_bytes(20)
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
    words = random_words(seeded_bytes(21), 100_000)
    assert words.dtype == np.uint64
    assert words.flags.writeable
    for shift in (0, 8, 56):
        counts = np.bincount((words >> np.uint64(shift)).astype(np.uint8), minlength=256)
        assert abs(((counts - 390.625) ** 2 / 390.625).sum() - 255) < 4 * math.sqrt(2 * 255)
    assert not np.array_equal(random_words(byte_source(None), 4), random_words(byte_source(None), 4))


# Arguments ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@each("bad", [0, -1.0, 9.9e-4, 1.1e12, math.inf, math.nan, "3", None, True, 1j])
def test_noise_scale_is_checked(kind: str, bad: Any) -> None:
    sampler = {
        "laplace": discrete_laplace,
        "gaussian": discrete_gaussian,
        "truncated": lambda scale, size, source: truncated_discrete_laplace(scale, 5, size, source),
    }[kind]
    with pytest.raises(ArgumentError, match=r"`noise_scale` must be a number from 0\.001 to 1e\+12") as error:
        sampler(bad, 3, seeded_bytes(0))
    assert error.value.argument == "noise_scale"
    assert error.value.hint


@each("bad", [-1, 1.0, None, True, "1"])
def test_size_is_checked(bad: Any) -> None:
    for call in (
        lambda: discrete_laplace(1.0, bad, seeded_bytes(0)),
        lambda: discrete_gaussian(1.0, bad, seeded_bytes(0)),
        lambda: truncated_discrete_laplace(1.0, 1, bad, seeded_bytes(0)),
        lambda: random_words(seeded_bytes(0), bad),
    ):
        with pytest.raises(ArgumentError, match="`size` must be a whole number"):
            call()


@each("bad", [-1, 2**62 + 1, 1.0, None, True])
def test_bound_is_checked(bad: Any) -> None:
    with pytest.raises(ArgumentError, match="`bound` must be a whole number from 0 to"):
        truncated_discrete_laplace(1.0, bad, 1, seeded_bytes(0))


@each("noise_scale", [10, np.int32(10), np.float64(10), np.float32(10)])
def test_a_scale_may_be_any_number(noise_scale: Any) -> None:
    expected = discrete_laplace(10.0, 50, seeded_bytes(22))
    assert np.array_equal(discrete_laplace(noise_scale, np.int64(50), seeded_bytes(22)), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_no_draws(kind: str) -> None:
    draws = draw(kind, 1.0, 0, seeded_bytes(0))
    assert draws.shape == (0,)
    assert draws.dtype == np.int64
    assert random_words(seeded_bytes(0), 0).shape == (0,)


def test_many_draws_need_little_memory() -> None:
    rejection_sampling._sampler.cache_clear()
    tracemalloc.start()
    draws = discrete_laplace(1e12, 3_000_000, seeded_bytes(23))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak - draws.nbytes < 16e6

"""Generators and sources of random bits."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pandas_dptree.mechanisms import sampling
from pandas_dptree.mechanisms.sampling import byte_source
from tests.helpers_cases import each


def words(seed=0):
    rng = np.random.default_rng(seed)
    return lambda n: rng.integers(2**64, size=n, dtype=np.uint64)


def fixed_words(seed=0):
    """Draw the same words at each call, as for one key."""
    return lambda n: words(seed)(n)


def seeded_bytes(*seed: int) -> sampling.ByteSource:
    return byte_source(np.random.default_rng(seed))


def rng(seed=0):
    return np.random.default_rng(seed)


def each_seed(few: int, many: int) -> Callable[[Callable[..., None]], Any]:
    """Run a test with few seeds by default, and with the rest of many among the slow tests, in two items."""

    def decorate(test: Callable[..., None]) -> Any:
        looped = {"few": each("seed", range(few))(test), "many": each("seed", range(few, many))(test)}

        @functools.wraps(test)
        def one_of_both(seeds: str, **others: Any) -> None:
            looped[seeds](**others)

        parameters = inspect.signature(looped["few"]).parameters.values()
        chosen = inspect.Parameter("seeds", inspect.Parameter.KEYWORD_ONLY)
        one_of_both.__signature__ = inspect.Signature([*parameters, chosen])  # type: ignore[attr-defined]
        both = ["few", pytest.param("many", marks=pytest.mark.slow)]
        return pytest.mark.parametrize("seeds", both)(one_of_both)

    return decorate

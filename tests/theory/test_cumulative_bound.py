"""The lower bound on the error of cumulative sums: the singular value bound, in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pandas_dptree.errors import ArgumentError
from pandas_dptree.theory import cumulative_lower_bound
from tests.helpers_cases import each


@each("n_bins", [1, 2, 7, 256])
def test_lower_bound_is_the_singular_value_bound(n_bins):
    sums = np.tri(n_bins)
    bound = np.linalg.svd(sums, compute_uv=False).sum() / n_bins
    assert cumulative_lower_bound(n_bins) == pytest.approx(bound)
    assert cumulative_lower_bound(n_bins, 4.0) == pytest.approx(2 * bound)
    centred = sums - sums.mean(axis=1, keepdims=True)
    known = np.linalg.svd(centred, compute_uv=False).sum() / math.sqrt(n_bins * max(n_bins - 1, 1))
    assert cumulative_lower_bound(n_bins, total_known=True) == pytest.approx(known, abs=1e-12)


def test_a_bad_number_of_bins_is_named():
    with pytest.raises(ArgumentError, match="`n_bins` must be a whole number"):
        cumulative_lower_bound(0)

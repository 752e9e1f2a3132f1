"""The search for the best plan of a distribution."""

import pytest

from pandas_dptree.distribution.tree_strategy import TreeStrategy
from pandas_dptree.errors import ArgumentError
from tests.helpers_distribution import plan


@pytest.mark.parametrize(
    ("options", "most"),
    [
        ({"bins": 256, "epsilon": 1}, 8.42),
        ({"bins": 1024, "epsilon": 1}, 10.92),
        ({"bins": 256, "rho": 0.5}, 2.68),
        ({"bins": 256, "epsilon": 1, "known": {"total": 100}}, 6.26),
    ],
    ids=repr,
)
def test_errors_are_as_small_as_promised(options, most):
    assert plan(**options).errors <= most


def test_many_bins_and_few():
    assert plan(2**20 + 1, rho=1, strategy=[1024, 1025]).errors > 0
    assert isinstance(plan(1, epsilon=1, rho=None).strategy, TreeStrategy)
    assert plan(1, epsilon=1, known={"total": 3}).errors == 0
    for tiny in ({"epsilon": 1e-9, "delta": 1e-6}, {"rho": 1e-16}):  # too little for a factorization
        assert isinstance(plan(5, **tiny).strategy, TreeStrategy)
    with pytest.raises(ArgumentError, match="n_bins"):
        plan(2**20 + 1, rho=1, strategy="factorization")

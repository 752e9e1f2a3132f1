"""Privacy losses, conversions on the safe side, and sensitivities beside brute force."""

import itertools
import json
import math

import mpmath
import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant

from pandas_dptree.errors import ArgumentError
from pandas_dptree.privacy.loss import PrivacyLoss, zcdp_delta, zcdp_epsilon, zcdp_rho
from pandas_dptree.privacy.sensitivity import Sensitivity, count_sensitivity, sum_sensitivity

RHOS = [1e-8, 1e-6, 1e-4, 1e-2, 0.1, 0.5, 1.0, 10.0, 100.0, 1000.0]
DELTAS = [1e-15, 1e-10, 1e-6, 1e-3, 0.1, 0.5]


def exact_delta(rho, epsilon):
    """Proposition 12 of Canonne, Kamath and Steinke (2020), minimised with fifty digits."""
    with mpmath.workdps(50):
        rho, epsilon = mpmath.mpf(rho), mpmath.mpf(epsilon)
        low, high = mpmath.mpf(-3000), mpmath.mpf(400)
        for _ in range(120):
            middle = (low + high) / 2
            a = mpmath.exp(middle)
            rising = (2 * a + 1) * rho - epsilon - mpmath.log1p(1 / a) > 0
            low, high = (low, middle) if rising else (middle, high)
        alpha = 1 + mpmath.exp(high)
        bound = mpmath.exp((alpha - 1) * (alpha * rho - epsilon)) / (alpha - 1)
        return bound * (1 - 1 / alpha) ** alpha


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({}, "epsilon"),
        ({"epsilon": 1.0, "rho": 1.0}, "rho"),
        *[({"epsilon": bad}, "epsilon") for bad in (0, -1.0, math.nan, math.inf, True, "1", 1j)],
        *[({"rho": bad}, "rho") for bad in (0, -1.0, math.nan, math.inf, False, [1.0])],
        *[({"epsilon": 1.0, "delta": bad}, "delta") for bad in (-1e-9, 1.0, 2, math.nan, True, None)],
        ({"rho": 1.0, "delta": 1e-6}, "delta"),
        ({"delta": 1e-6}, "epsilon"),
    ],
)
def test_a_loss_is_one_statement_or_an_error(arguments, argument):
    with pytest.raises(ArgumentError, match="Hint: ") as error:
        PrivacyLoss(**arguments)
    assert error.value.argument == argument


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"epsilon": 1}, "pure"),
        ({"epsilon": np.float64(1), "delta": 0}, "pure"),
        ({"epsilon": 1.0, "delta": 1e-9}, "approximate"),
        ({"rho": np.int64(2)}, "zcdp"),
    ],
)
def test_a_loss_knows_its_kind_and_is_json(arguments, kind):
    loss = PrivacyLoss(**arguments)
    assert loss.kind == kind
    assert PrivacyLoss(**json.loads(json.dumps(loss.to_dict()))) == loss


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("rho", RHOS)
def test_conversions_are_safe_and_tight(rho, delta):
    epsilon = zcdp_epsilon(rho, delta)
    if epsilon == 0:
        assert exact_delta(rho, 0) <= delta
        return
    assert exact_delta(rho, epsilon) <= delta < exact_delta(rho, epsilon * (1 - 1e-9))
    assert exact_delta(rho, epsilon) <= zcdp_delta(rho, epsilon) <= exact_delta(rho, epsilon) * (1 + 1e-9)
    largest = zcdp_rho(epsilon, delta)
    assert exact_delta(largest, epsilon) <= delta < exact_delta(largest * (1 + 1e-9), epsilon)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.1, 1.0, 8.0, 100.0, 1e4])
@pytest.mark.parametrize("delta", [1e-300, 1e-15, 1e-6, 0.5, 0.999])
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


@pytest.mark.parametrize(
    ("convert", "arguments", "argument"),
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


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_sensitivity_is_the_largest_move_of_all(rows):
    nodes = 3
    units = [unit for unit in itertools.product(range(rows + 1), repeat=nodes) if sum(unit) <= rows]
    nobody = (0,) * nodes
    pairs = {
        "add_remove": [(unit, nobody) for unit in units],
        "replace": list(itertools.product(units, units)),
    }
    for neighbors, moves in pairs.items():
        differences = [np.subtract(a, b) for a, b in moves]
        assert count_sensitivity(neighbors=neighbors, max_contributions=rows) == Sensitivity(
            l1=max(int(abs(d).sum()) for d in differences),
            l2_squared=max(int((d**2).sum()) for d in differences),
        )


@pytest.mark.parametrize("rows", [0, -1, 1.5, 2.0, True, "2", None])
def test_contributions_are_whole_and_at_least_one(rows):
    with pytest.raises(ArgumentError, match="max_contributions"):
        count_sensitivity(neighbors="replace", max_contributions=rows)


def test_unknown_neighbors_are_refused():
    with pytest.raises(ArgumentError, match="'swap'"):
        count_sensitivity(neighbors="swap")


@pytest.mark.parametrize("arguments", [{"l1": 0, "l2_squared": 1}, {"l1": 1, "l2_squared": 0.5}])
def test_a_sensitivity_is_whole_and_positive(arguments):
    with pytest.raises(ArgumentError, match="whole number"):
        Sensitivity(**arguments)


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize(("low", "high"), [(0, 2), (-1, 2), (-2, 2), (1, 2), (-3, -2), (-1, 0), (2, 2)])
def test_sensitivity_of_sums_is_the_largest_move_of_all(low, high, rows):
    """All ways to lay out up to k rows of all values over three nodes or none; worst cases reach it."""
    row = [np.zeros(3, dtype=int), *(v * e for v in range(low, high + 1) for e in np.eye(3, dtype=int))]
    units = {tuple(sum(some)) for some in itertools.product(row, repeat=rows)}
    pairs = {
        "add_remove": [(unit, (0, 0, 0)) for unit in units],
        "replace": list(itertools.product(units, units)),
    }
    for neighbors, moves in pairs.items():
        differences = np.array([np.subtract(a, b) for a, b in moves])
        assert sum_sensitivity(low, high, neighbors=neighbors, max_contributions=rows) == Sensitivity(
            l1=int(abs(differences).sum(axis=1).max()),
            l2_squared=int((differences**2).sum(axis=1).max()),
        )


@pytest.mark.parametrize(("low", "high"), [(-1, 2), (0, 2), (-2, -1), (1, 2), (-2, 2)])
def test_clipping_the_leaves_moves_no_level_further(low, high):
    """All data of two leaves and their total, two rows a unit, clipped at every bound that matters."""
    row = [np.zeros(2, dtype=int), *(v * e for v in range(low, high + 1) for e in np.eye(2, dtype=int))]
    units = np.array(list({tuple(a + b) for a, b in itertools.product(row, repeat=2)}))
    others = np.array(list(itertools.product(range(-5, 6), repeat=2)))
    for bound, neighbors in itertools.product(range(1, 6), ("add_remove", "replace")):
        most = sum_sensitivity(low, high, neighbors=neighbors, max_contributions=2)
        clipped = np.clip(others[:, None] + units, -bound, bound)
        other = np.clip(others, -bound, bound)[:, None]
        gaps = clipped - other if neighbors == "add_remove" else clipped[:, :, None] - clipped[:, None]
        for level in (gaps, gaps.sum(axis=-1, keepdims=True)):
            assert abs(level).sum(axis=-1).max() <= most.l1
            assert (level**2).sum(axis=-1).max() <= most.l2_squared


@pytest.mark.parametrize(("low", "high"), [(0, 0), (2, 1), (0, 1.5), ("0", "1")])
def test_what_a_row_adds_is_whole_and_something(low, high):
    with pytest.raises(ArgumentError, match="not both 0"):
        sum_sensitivity(low, high, neighbors="replace")

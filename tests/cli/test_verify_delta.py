"""The delta that the verifier computes: against sums over all outcomes, and against the package's bounds."""

import math
import random
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest

from pandas_dptree import verify
from pandas_dptree.privacy.composition import gaussian_delta, joint_gaussian_delta, laplace_delta
from pandas_dptree.privacy.conversions import zcdp_delta
from pandas_dptree.privacy.sensitivity import sum_sensitivity
from tests.helpers_cases import each

FINE = 0.0175


@pytest.fixture(autouse=True)
def _sixty_digits():
    with localcontext(prec=60):
        yield


def quantity(neighbors="add_remove", k=1, low=1, high=1):
    """Counts or sums; and the package's sensitivity of the same."""
    sensitivity = sum_sensitivity(low, high, neighbors=neighbors, max_contributions=k)
    moved = k if neighbors == "add_remove" else 2 * k
    norms = verify.Move(sensitivity.l1, sensitivity.l2_squared, sensitivity.linf)
    return with_scales(verify.Quantity("c", {}, "values", moved, [[norms]]), [1.0]), sensitivity


def with_scales(own, scales):
    """The quantity on as many levels, which all move alike, with this noise."""
    patterns = [pattern[:1] * len(scales) for pattern in own.patterns]
    return own._replace(part={"noise_scales": [[scale] for scale in scales]}, patterns=patterns)


def delta_of(own, laplace, epsilon, scales):
    return verify.quantity_delta(with_scales(own, scales), laplace, epsilon, 1.0, FINE, Decimal(0))


def outcomes(noise, scale, moves):
    """The outcomes of a level whose nodes move, by their log ratio in its steps: probabilities P and Q."""
    scale = mpmath.mpf(scale)
    power = 1 if noise == "laplace" else 2
    reach = math.ceil((40 if noise == "laplace" else 10) * scale)
    mass = {x: mpmath.exp(-((abs(x) / scale) ** power) / power) for x in range(-reach - 9, reach + 10)}
    total = sum(mass.values())
    found = {0: (mpmath.mpf(1), mpmath.mpf(1))}
    for move in moves:
        one = {}
        for x in range(-reach, reach + move + 1):
            add(one, abs(x - move) ** power - abs(x) ** power, mass[x] / total, mass[x - move] / total)
        old, found = found, {}
        for (key, (p, q)), (other, (r, s)) in product(old.items(), one.items()):
            add(found, key + other, p * r, q * s)
    return list(found.values())


def add(found, key, p, q):
    before = found.get(key, (0, 0))
    found[key] = (before[0] + p, before[1] + q)


def enumerated_delta(noise, epsilon, scales, moves):
    """Sum (P - e**epsilon Q)+ over all outcomes of all nodes that move, to 50 digits, in both orders.

    `moves` holds, for each level, the moves of its nodes.
    """
    with mpmath.workdps(50):
        levels = [outcomes(noise, scale, moved) for scale, moved in zip(scales, moves, strict=True)]
        factor, sums = mpmath.exp(mpmath.mpf(epsilon)), [mpmath.mpf(0), mpmath.mpf(0)]
        for (p, q), (r, s) in product(*levels):
            sums[0] += max(p * r - factor * q * s, 0)
            sums[1] += max(q * s - factor * p * r, 0)
        return max(sums)


MOVES = [("add_remove", 1, [1]), ("add_remove", 3, [3]), ("replace", 1, [1, 1]), ("replace", 2, [2, 2])]
SCALES = [[1.0, 2.5], [3.0, 1.5]]


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize(("moves", "scales"), [(moves, SCALES[i % 2]) for i, moves in enumerate(MOVES)])
def test_delta_against_all_outcomes(noise, moves, scales):
    is_that_of_all_outcomes(noise, *moves, scales)


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize(("moves", "scales"), [(moves, SCALES[i % 2 - 1]) for i, moves in enumerate(MOVES)])
def test_delta_against_all_outcomes_of_other_scales(noise, moves, scales):
    is_that_of_all_outcomes(noise, *moves, scales)


def is_that_of_all_outcomes(noise, neighbors, k, worst, scales):
    """Two levels; the worst move is reached, and no other has a larger delta."""
    whole = len(worst) * sum(k / scale for scale in scales)
    epsilon = whole * (0.6 if noise == "laplace" else 0.8)
    own, _ = quantity(neighbors, k)
    with mpmath.workdps(50):
        bound = mpmath.mpf(str(delta_of(own, noise == "laplace", epsilon, scales)))
        exact = enumerated_delta(noise, epsilon, scales, [worst] * 2)
        assert exact > 0
        assert exact * (1 - mpmath.mpf("1e-15")) <= bound <= exact * (1 + mpmath.mpf("1e-4"))
        for other in ([worst, worst[:1]], [worst[:1], worst], [[1], worst]):
            assert enumerated_delta(noise, epsilon, scales, other) <= bound


def test_the_grid_is_an_upper_bound_and_close():
    """Too many sums to list: the grid is compared with sums of floats over all of them."""
    own, _ = quantity()
    scales = [1.3, 1.9, 2.7]
    losses = [verify.gaussian_loss(scale, 1) for scale in scales]
    assert math.prod(map(len, losses)) > 8192
    epsilon = 2.5
    values, masses = np.zeros(1), np.ones(1)
    for loss in losses:
        values = np.add.outer(values, [float(value) for value, _ in loss]).ravel()
        masses = np.multiply.outer(masses, [float(mass) for _, mass in loss]).ravel()
    exact = masses @ np.maximum(-np.expm1(epsilon - values), 0)
    assert 1 - 1e-12 < float(delta_of(own, False, epsilon, scales)) / exact < 1 + 1e-3


def compared(seed):
    """Random noise on several levels: the verifier's delta, and the package's."""
    choose = random.Random(seed)
    low, high = choose.choice([(1, 1), (1, 1), (0, 3), (-2, 3), (-500, 500)])
    own, sensitivity = quantity(choose.choice(["add_remove", "replace"]), choose.randint(1, 4), low, high)
    n, epsilon = choose.choice([1, 2, 3, 4]), choose.choice([0.05, 0.3, 1.0, 3.0])
    laplace = choose.random() < 0.4
    base = (
        sensitivity.l1 * n * 0.9
        if laplace
        else math.sqrt(sensitivity.l2_squared * n) * choose.choice([1, 3, 5])
    )
    scales = [base / epsilon * choose.uniform(0.7, 1.4) for _ in range(n)]
    if laplace:
        return delta_of(own, True, epsilon, scales), laplace_delta(epsilon, scales, sensitivity)
    rho = sum(Fraction(sensitivity.l2_squared) / (2 * Fraction(scale) ** 2) for scale in scales)
    simple = verify.concentrated_delta(rho, epsilon)
    found = min(simple, delta_of(own, False, epsilon, scales))
    return found, gaussian_delta(epsilon, scales, sensitivity)


@each("seed", range(30))
def test_delta_is_not_above_the_package(seed):
    is_not_above(seed)


@pytest.mark.slow
@each("seed", range(30, 200))
def test_delta_is_not_above_the_package_in_more_cases(seed):
    is_not_above(seed)


def is_not_above(seed):
    """The package calibrates to its own bound, so a larger one would refuse honest plans."""
    found, expected = compared(seed)
    assert float(found) <= expected * (1 + 1e-6) + 1e-30


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_delta_of_several_quantities(epsilon):
    (counts, one), (sums, other) = quantity(), quantity("add_remove", 2, -20, 50)
    scales = [[6 / epsilon, 9 / epsilon], [700 / epsilon]]
    quantities = [with_scales(each, own) for each, own in zip((counts, sums), scales, strict=True)]
    found = float(verify.joint_delta(quantities, epsilon, 1.0))
    expected = joint_gaussian_delta(epsilon, [(scales[0], one), (scales[1], other)])
    assert 0.9 * expected < found <= expected * (1 + 1e-6)


@each(("rho", "epsilon"), [(0.01, 0.5), (0.1, 2.0), (1.0, 3.0), (1e-9, 1e-3)])
def test_delta_of_concentrated_privacy(rho, epsilon):
    found = float(verify.concentrated_delta(Fraction(rho), epsilon))
    assert found == pytest.approx(zcdp_delta(rho, epsilon), rel=1e-12)


@each("z", [-20, -3.5, -0.1, 0, 0.3, 3.99, 4, 4.01, 9, 30])
def test_the_normal_tail(z):
    with mpmath.workdps(60):
        exact = mpmath.erfc(mpmath.mpf(z) / mpmath.sqrt(2)) / 2
        assert abs(mpmath.mpf(str(verify.tail(Decimal(z)))) / exact - 1) < 1e-40


def test_convolution_is_exact():
    choose = random.Random(1)
    one = 10**verify.DIGITS
    a, b = ([choose.randrange(one // 50) for _ in range(n)] for n in (40, 17))
    expected = [
        -(-sum(a[i] * b[j - i] for i in range(len(a)) if 0 <= j - i < len(b)) // one)
        for j in range(len(a) + len(b) - 1)
    ]
    assert verify.convolve(a, b) == expected


def test_constants():
    with mpmath.workdps(70):
        assert verify.PI == Decimal(mpmath.nstr(mpmath.pi, 60, strip_zeros=False))

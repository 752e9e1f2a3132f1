"""Noise spends no more than the number that was typed, neither the float nor its decimal: 20,000 of them.

What noise spends is added up here in exact fractions, from the scales alone. The deltas of composed noise are
upper bounds, at the largest float that is not above the typed epsilon.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

import pandas_dptree as dpt
from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.mechanisms.multiplicative.counts import ClippedThresholds
from pandas_dptree.mechanisms.multiplicative.thresholds import group_loss
from pandas_dptree.mechanisms.private_levels.gated import GatedLevels
from pandas_dptree.mechanisms.private_levels.independent import IndependentLevels
from pandas_dptree.privacy import loss as loss_module
from pandas_dptree.privacy.composition import gaussian_delta, joint_gaussian_delta, laplace_delta
from pandas_dptree.privacy.conversions import zcdp_delta
from pandas_dptree.privacy.gated import gated_delta, gated_zcdp
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Sensitivity, count_sensitivity, sum_sensitivity
from pandas_dptree.verbs.aggregations import mean
from tests.helpers_cases import each
from tests.helpers_plans import quantiles_spend_no_more

TREE = dpt.Tree.from_branching([2, 3])
DOMAIN = dpt.Domain.from_frame(
    dpt.datasets.clinics()[["region", "district"]].drop_duplicates(), by=["region", "district"]
)


def typed(rng, least=-3, most=0):
    """A number of one to six digits as somebody types it, and its exact value by the rule of the package."""
    digits = int(rng.integers(1, 10 ** rng.integers(1, 7)))
    exponent = int(rng.integers(least, most + 1)) - len(str(digits)) + 1
    number = Fraction(digits) * Fraction(10) ** exponent
    text = f"{digits}e{exponent}" if rng.random() < 0.3 else format(float(number), ".6g")
    assert Fraction(text) == number
    return float(text), min(Fraction(float(text)), number)


def below(number):
    near = float(number)
    return near if Fraction(near) <= number else math.nextafter(near, 0.0)


def moved(rng):
    """The neighbouring relation, the rows of a unit, and a sensitivity."""
    neighbors, rows = ("add_remove", "replace")[rng.integers(2)], int(rng.integers(1, 5))
    low, high = sorted(rng.integers(-5, 50, 2).tolist())
    counted = rng.random() < 0.5 or low == high == 0
    bounds = (1, 1) if counted else (low, high)
    return neighbors, rows, sum_sensitivity(*bounds, neighbors=neighbors, max_contributions=rows)


def shares_of(rng):
    return rng.random(rng.integers(1, 6)) + 1e-3


def one(moves):
    """The sensitivity of all levels, which are alike under add/remove."""
    (level,) = set(moves.on(1).levels if isinstance(moves, Sensitivity) else moves.levels)
    return level


def epsilons(l1, scales):
    return sum((l1 / Fraction(scale) for scale in np.ravel(scales).tolist() if scale < math.inf), Fraction())


def rhos(l2_squared, scales):
    finite = [scale for scale in np.ravel(scales).tolist() if scale < math.inf]
    return sum((Fraction(l2_squared, 2) / Fraction(scale) ** 2 for scale in finite), Fraction())


# Each function makes noise for typed numbers, and yields pairs: what is spent, and what was typed.


def laplace(rng):
    (epsilon, most), (_, _, sensitivity) = typed(rng), moved(rng)
    scales = Laplace().noise_scales(PrivacyLoss(epsilon=epsilon), sensitivity, shares_of(rng))
    yield epsilons(sensitivity.l1, scales), most


def rho_of_either(rng):
    (rho, most), (_, _, sensitivity) = typed(rng), moved(rng)
    noise = (Laplace(), Gaussian())[rng.integers(2)]
    scales = noise.noise_scales(PrivacyLoss(rho=rho), sensitivity, shares_of(rng))
    yield rhos(sensitivity.l2_squared, scales), most


def divided(rng):
    (epsilon, most), (delta, most_delta) = typed(rng), typed(rng, -12, -4)
    parts = PrivacyLoss(epsilon=epsilon, delta=delta).divide(shares_of(rng).tolist())
    one_row = count_sensitivity(neighbors="add_remove")
    scales = [Laplace().noise_scales(PrivacyLoss(epsilon=part.epsilon), one_row, [1.0]) for part in parts]
    yield epsilons(1, scales), most
    yield sum(min(Fraction(part.delta), Fraction(repr(part.delta))) for part in parts), most_delta


def composed(rng):
    (epsilon, most), (delta, most_delta), (_, _, sensitivity) = typed(rng, -1), typed(rng, -9, -5), moved(rng)
    loss, shares = PrivacyLoss(epsilon=epsilon, delta=delta), shares_of(rng)
    for noise, delta_of, spent_by in ((Laplace(), laplace_delta, None), (Gaussian(), gaussian_delta, rhos)):
        scales = noise.noise_scales(loss, sensitivity, shares)
        if spent_by is None and epsilons(sensitivity.l1, scales) <= most:
            continue  # the sum of the epsilons is enough
        yield Fraction(delta_of(below(most), scales, sensitivity)), most_delta


def truncated(rng):
    (epsilon, most), (delta, most_delta) = typed(rng), typed(rng, -12, -4)
    noise = dpt.TruncatedLaplace(epsilon, delta, int(rng.integers(1, 4)))
    yield Fraction(noise.sensitivity) / Fraction(noise.noise_scale), most
    yield Fraction(math.nextafter(noise.delta_spent, 0.0)), most_delta  # it is rounded up


def sparse_vector(rng):
    (epsilon, most), c, k = typed(rng), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    noise = dpt.SparseVector(threshold=10, cutoff=c, epsilon=epsilon, sensitivity=k, n_streams=0)
    yield (
        c * (Fraction(k) / Fraction(noise.threshold_scale) + Fraction(2 * k) / Fraction(noise.query_scale)),
        most,
    )


def independent_levels(rng):
    (epsilon, most), (delta, most_delta), (neighbors, rows, _) = typed(rng), typed(rng, -12, -4), moved(rng)
    loss, shares = PrivacyLoss(epsilon=epsilon, delta=delta), tuple(shares_of(rng).tolist())
    unit = {"neighbors": neighbors, "max_contributions": rows}
    noise = IndependentLevels.calibrate(loss, shares, 1, **unit)
    assert noise.keeps_to(loss, shares, **unit)
    levels = noise.levels
    yield sum(Fraction(each.sensitivity) / Fraction(each.noise_scale) for each in levels), most
    yield sum(min(Fraction(each.delta), Fraction(repr(each.delta))) for each in levels), most_delta


def gated_rho(rng):
    (rho, most), (delta, most_delta), (neighbors, rows, _) = (
        typed(rng, -3, -1),
        typed(rng, -9, -5),
        moved(rng),
    )
    unit = {"neighbors": neighbors, "max_contributions": rows}
    noise = GatedLevels.calibrate(PrivacyLoss(rho=rho, delta=delta), (1.0, 2.0, 2.0), 1, **unit)
    sensitivity = count_sensitivity(**unit)
    yield rhos(sensitivity.l2_squared, noise.noise_scales), most
    yield Fraction(gated_zcdp(noise.noise_scales, noise.thresholds, **unit)[1]), most_delta


def gated(rng):
    (epsilon, most), (delta, most_delta) = typed(rng, -1), typed(rng, -7, -5)
    unit = {"neighbors": ("add_remove", "replace")[rng.integers(2)], "max_contributions": 1}
    noise = GatedLevels.calibrate(PrivacyLoss(epsilon=epsilon, delta=delta), (1.0, 2.0, 2.0), 1, **unit)
    yield Fraction(gated_delta(below(most), noise.noise_scales, noise.thresholds, **unit)), most_delta


def relative_error(rng):
    (epsilon, most), (delta, most_delta), rows = typed(rng, -1), typed(rng, -9, -5), int(rng.integers(1, 4))
    row = group_loss(PrivacyLoss(epsilon=epsilon, delta=delta), rows)
    chain = ClippedThresholds(alpha=0.3, epsilon=row.epsilon, delta=row.delta, depth=3)
    rounds = chain.thresholds.rounds(2**40)
    assert rounds
    pure = sum(
        each.cutoff / Fraction(each.questions(0).threshold_scale)
        + 2 * each.cutoff / Fraction(each.questions(0).query_scale)
        + each.cutoff / Fraction(each.node_noise.noise_scale)
        for each in rounds
    )
    bounded = [chain.thresholds.total_noise, *[chain.window_noise] * 3]
    pure += sum(1 / Fraction(each.noise_scale) for each in bounded)
    yield rows * pure, most
    deltas = [(each.delta, 1) for each in bounded] + [(each.node_noise.delta, each.cutoff) for each in rounds]
    failed = sum(times * min(Fraction(number), Fraction(repr(number))) for number, times in deltas)
    growth = Fraction(math.expm1(float(rows * pure)) / math.expm1(float(pure)) * (1 - 1e-13))
    yield failed * growth, most_delta


def plans(rng):
    (size, most), (delta, most_delta) = typed(rng, -1), typed(rng, -9, -5)
    own = [{"epsilon": size}, {"rho": size}, {"epsilon": size, "delta": delta}][rng.integers(3)]
    plan = dpt.plan(TREE, **own)
    scales = plan.unit_noise_scales
    yield from _kept(plan.noise, [(scales, plan.sensitivity)], own, most, most_delta)


def joint_plans(rng):
    (size, most), (delta, most_delta) = typed(rng, -1), typed(rng, -9, -5)
    own = [{"epsilon": size}, {"rho": size}, {"epsilon": size, "delta": delta}][rng.integers(3)]
    plan = dpt.plan_agg(
        DOMAIN,
        {"n": "count", "cost": mean("cost", bounds=(0, 7)), "age": dpt.sum("age", bounds=(0, 90))},
        **own,
    )
    parts = [(each.unit_noise_scales, each.sensitivity) for each in plan.plans.values()]
    noise = next(iter(plan.plans.values())).noise
    if "delta" in own and noise.name == "laplace":  # each quantity keeps to its own part
        losses = [each.loss for each in plan.plans.values()]
        assert all(
            each.noise.keeps_to(each.loss, *pair[::-1])
            for each, pair in zip(plan.plans.values(), parts, strict=True)
        )
        yield sum(each.exact.epsilon for each in losses), most
        yield sum(each.exact.delta for each in losses), most_delta
        return
    yield from _kept(noise, parts, own, most, most_delta)


def distribution_plans(rng):
    (size, most), (delta, most_delta) = typed(rng, -1), typed(rng, -9, -5)
    own = [{"epsilon": size}, {"rho": size}, {"epsilon": size, "delta": delta}][rng.integers(3)]
    domain = None if rng.random() < 0.5 else DOMAIN
    plan = dpt.plan_distribution("age", bounds=(0, 80), bins=8, domain=domain, **own)
    scales = np.tile(plan.strategy.noise_scales, len(plan.totals))
    sensitivity = plan.strategy.sensitivity(neighbors=plan.neighbors, max_contributions=1)
    yield from _kept(plan.strategy.noise, [(scales, sensitivity)], own, most, most_delta)


def quantile_plans(rng):
    (size, most), (delta, most_delta) = typed(rng, -1), typed(rng, -9, -5)
    own = [{"epsilon": size}, {"rho": size}, {"epsilon": size, "delta": delta}][rng.integers(3)]
    n, domain = int(rng.integers(1, 4)), None if rng.random() < 0.5 else DOMAIN
    confidence = None if rng.random() < 0.7 else 0.9
    q = (np.arange(n) + 1) / (n + 1)
    options = {
        "domain": domain,
        "confidence": confidence,
        **({"bins": 8, "strategy": [2, 4]} if domain or confidence else {}),
    }
    plan = dpt.plan_quantiles("age", q, bounds=(0, 200), mechanism="exponential", **options, **own)
    depths, parts = n.bit_length(), [plan.draws.loss] + ([plan.trees.loss] if plan.trees else [])
    assert quantiles_spend_no_more(plan)
    for name, whole in (("epsilon", most), ("rho", most), ("delta", most_delta)):
        if name in own:
            yield sum(Fraction(getattr(each.exact, name)) for each in parts), whole
    if "delta" not in own:
        each = Fraction(plan.draws.epsilon)
        yield depths * (each**2 / 8 if "rho" in own else each), most


def _kept(noise, parts, own, most, most_delta):
    """Compare the noise of several quantities with a loss of any kind."""
    if "rho" in own:
        yield sum(rhos(one(moves).l2_squared, scales) for scales, moves in parts), most
        return
    if noise.name == "laplace":
        spent = sum(epsilons(one(moves).l1, scales) for scales, moves in parts)
        if "delta" not in own or spent <= most:
            yield spent, most
            return
        ((scales, sensitivity),) = parts
        yield Fraction(laplace_delta(below(most), scales, sensitivity)), most_delta
        return
    if len(parts) == 1:
        yield Fraction(gaussian_delta(below(most), *parts[0])), most_delta
        return
    rho = sum(rhos(sensitivity.l2_squared, scales) for scales, sensitivity in parts)
    implied = zcdp_delta(float(rho) * (1 + 1e-15), below(most))
    yield Fraction(min(implied, joint_gaussian_delta(below(most), parts))), most_delta


CASES = {
    laplace: 10_000, rho_of_either: 5_000, divided: 2_000, sparse_vector: 2_000,
    truncated: 400, independent_levels: 100, gated_rho: 300, gated: 16, relative_error: 50,
    composed: 300, plans: 200, joint_plans: 60, distribution_plans: 40, quantile_plans: 40,
}  # fmt: skip


def overspent(kind, number, seed=0):
    """How many of these cases spend more than was typed."""
    rng = np.random.default_rng(seed)
    return sum(any(spent > most for spent, most in kind(rng)) for _ in range(number))


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("kind", CASES, ids=lambda kind: kind.__name__)
def test_no_noise_spends_more_than_was_typed(kind, seed):
    """A tenth of the numbers by default, and the others at night."""
    assert sum(CASES.values()) >= 20_000
    few = -(-CASES[kind] // 10)
    assert overspent(kind, CASES[kind] - few if seed else few, seed) == 0


@each(
    "kind, number",
    [(laplace, 1000), (rho_of_either, 1000), (sparse_vector, 300), (truncated, 100), (divided, 300)],
)
def test_budgets_of_floats_would_spend_more(monkeypatch, kind, number):
    """So the test above can fail."""
    monkeypatch.setattr(loss_module, "exact", Fraction)
    assert overspent(kind, number) > 0.02 * number


@each("own", [{"epsilon": 0.07}, {"epsilon": 0.14}, {"rho": 0.14}])
def test_stored_plans_that_spend_more_than_the_decimal_are_refused(monkeypatch, own):
    """Earlier versions calibrated noise to the float, which for these numbers is above the decimal."""
    with monkeypatch.context() as earlier:
        earlier.setattr(loss_module, "exact", Fraction)
        stored = dpt.plan(TREE, split="uniform", **own).to_dict()
        assert dpt.Plan.from_dict(stored, TREE).to_dict() == stored
    with pytest.raises(dpt.ArgumentError, match="a stated decimal such as") as error:
        dpt.Plan.from_dict(stored, TREE)
    assert error.value.argument == "data" and "spend more than the privacy loss" in error.value.fact
    now = dpt.plan(TREE, split="uniform", **own)
    assert dpt.Plan.from_dict(now.to_dict(), TREE).digest == now.digest != stored["digest"]

"""Noise of all levels where keys are not public: it keeps to its loss, and bounds hold as often as stated."""

import json
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from pandas_dptree.mechanisms.private_levels import LEVEL_NOISES
from pandas_dptree.mechanisms.private_levels.gated import GatedLevels
from pandas_dptree.mechanisms.private_levels.gaussian_thresholds import GaussianThreshold
from pandas_dptree.mechanisms.private_levels.independent import IndependentLevels
from pandas_dptree.mechanisms.truncated import TruncatedLaplace
from pandas_dptree.output.progress import nothing
from pandas_dptree.privacy.discrete_gaussian import upper_tail
from pandas_dptree.privacy.gated import gated_delta, gated_zcdp
from pandas_dptree.privacy.loss import PrivacyLoss
from tests.helpers_random import seeded_bytes

APPROXIMATE, CONCENTRATED = PrivacyLoss(epsilon=1.0, delta=1e-6), PrivacyLoss(rho=0.1, delta=1e-6)
ONE_ROW = {"neighbors": "add_remove", "max_contributions": 1}
CAPPED = {"neighbors": "add_remove", "max_contributions": 4, "caps": (None, None, 2, 1)}
UNITS = [ONE_ROW, {"neighbors": "replace", "max_contributions": 2}, CAPPED]
SHARES = (1.0, 2.0, 1.0, 4.0)
CASES = [
    (IndependentLevels, APPROXIMATE), (GatedLevels, APPROXIMATE), (GatedLevels, CONCENTRATED),
]  # fmt: skip


@dataclass
class Chains:
    """Two public levels, and chains of two private nodes below as many public ones, all of one count each."""

    counts: np.ndarray

    def public_counts(self):
        return [self.counts.sum(keepdims=True), self.counts]

    def upward(self):
        for _ in range(2):
            yield np.arange(len(self.counts)), self.counts

    def below(self, level, shown):
        return shown, self.counts[shown]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(("kind", "loss"), CASES)
def test_calibrated_noise_keeps_to_its_loss_and_follows_from_the_shares(kind, loss, unit):
    noise = kind.calibrate(loss, SHARES, 2, **unit)
    assert noise.keeps_to(loss, SHARES, **unit)
    assert noise.keeps_to(loss, [7 * share for share in SHARES], **unit)
    assert [threshold is None for threshold in noise.thresholds] == [True, True, False, False]
    assert len(noise.noise_scales) == len(noise.variances) == len(noise.largest_unseen) == 4
    assert not noise.keeps_to(loss, SHARES[:3], **unit)
    assert not noise.keeps_to(loss, (1.0, 2.0, 1.0, 4.001), **unit)
    assert not noise.keeps_to(loss, SHARES, **{**unit, "max_contributions": 5})
    smaller = {"epsilon": 0.999} if loss.rho is None else {"rho": 0.0999}
    assert not noise.keeps_to(PrivacyLoss(**loss.to_dict() | smaller), SHARES, **unit)
    assert not noise.keeps_to(PrivacyLoss(**loss.to_dict() | {"delta": 0.3e-6}), SHARES, **unit)


@pytest.mark.parametrize("loss", [APPROXIMATE, CONCENTRATED], ids=["epsilon", "rho"])
def test_gaussian_noise_with_caps_is_less_and_private_with_them_alone(loss):
    without = {**CAPPED, "caps": ()}
    noise, plain = (GatedLevels.calibrate(loss, SHARES, 2, **unit) for unit in (CAPPED, without))
    scales = np.array(plain.noise_scales) / noise.noise_scales
    assert scales == pytest.approx(scales[0] * np.sqrt([1, 1, 2, 4]))
    assert noise.thresholds[2] < plain.thresholds[2] and noise.thresholds[3] < plain.thresholds[3] / 1.8
    assert not noise.keeps_to(loss, SHARES, **without)
    for caps in ((None, None, 2, 2), (None, None, 3, 1)):
        assert not noise.keeps_to(loss, SHARES, **{**CAPPED, "caps": caps})
    losses = noise.level_losses(**CAPPED)
    assert [float(each.rho) for each in losses] == pytest.approx(
        [losses[0].rho * part for part in (1, 2, 1, 4)]
    )
    if loss.rho:
        spent, delta = gated_zcdp(noise.noise_scales, noise.thresholds, **CAPPED)
        assert float(sum(each.rho for each in losses)) == pytest.approx(spent)
        assert float(noise.selection_loss(**CAPPED).delta) == delta <= loss.delta
    assert noise.delta(0.5, **CAPPED) < noise.delta(0.5, **without)


def test_truncated_noise_is_for_all_rows_whatever_the_caps():
    noise, plain = (
        IndependentLevels.calibrate(APPROXIMATE, SHARES, 2, **unit)
        for unit in (CAPPED, {**CAPPED, "caps": ()})
    )
    assert noise == plain
    with_caps, without = noise.level_losses(**CAPPED), plain.level_losses(**{**CAPPED, "caps": ()})
    assert [each.epsilon for each in with_caps] == [each.epsilon for each in without]
    assert with_caps[3].rho < without[3].rho and with_caps[0] == without[0]


def test_truncated_noise_of_more_epsilon_or_delta_is_refused():
    noise = IndependentLevels.calibrate(APPROXIMATE, SHARES, 2, **ONE_ROW)
    for epsilon, delta in ((1.001, 1.0), (1.0, 1.001)):
        levels = tuple(TruncatedLaplace(epsilon * each.epsilon, delta * each.delta) for each in noise.levels)
        assert not replace(noise, levels=levels).keeps_to(APPROXIMATE, SHARES, **ONE_ROW)
    assert not noise.keeps_to(CONCENTRATED, SHARES, **ONE_ROW)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("loss", [APPROXIMATE, CONCENTRATED], ids=["epsilon", "rho"])
def test_gaussian_noise_of_a_smaller_scale_or_threshold_is_refused(loss, unit):
    noise = GatedLevels.calibrate(loss, SHARES, 2, **unit)
    spent = (noise.noise_scales, noise.thresholds)
    if loss.rho is None:
        assert 0.5 * loss.delta < gated_delta(loss.epsilon, *spent, **unit) <= loss.delta
    else:
        rho, delta = gated_zcdp(*spent, **unit)
        assert 0.999 * loss.rho < rho <= loss.rho and delta <= loss.delta

    def changed(scale=1.0, threshold=0):
        levels = (
            GaussianThreshold(scale * each.noise_scale, each.threshold and each.threshold + threshold)
            for each in noise.levels
        )
        return GatedLevels(n_public=2, levels=tuple(levels))

    assert changed().keeps_to(loss, SHARES, **unit) and changed(1.001, 1).keeps_to(loss, SHARES, **unit)
    assert changed(threshold=1).keeps_to(loss, SHARES, **unit)
    for other in (changed(scale=0.98), changed(threshold=-math.ceil(noise.noise_scales[2] / 20))):
        assert not other.keeps_to(loss, SHARES, **unit)
    for level in range(4):  # of one level alone, against the shares
        levels = list(noise.levels)
        levels[level] = GaussianThreshold(1.01 * levels[level].noise_scale, levels[level].threshold)
        assert not replace(noise, levels=tuple(levels)).keeps_to(loss, SHARES, **unit)


def test_a_public_level_has_no_threshold_and_a_private_one_has():
    noise = GatedLevels.calibrate(APPROXIMATE, SHARES, 2, **ONE_ROW)
    for n_public in (1, 3):
        assert not replace(noise, n_public=n_public).keeps_to(APPROXIMATE, SHARES, **ONE_ROW)


@pytest.mark.parametrize(("kind", "loss"), CASES)
def test_noise_goes_through_json(kind, loss):
    noise = kind.calibrate(loss, SHARES, 2, **ONE_ROW)
    back = kind.from_list(json.loads(json.dumps(noise.to_list(), allow_nan=False)), 2)
    assert back == noise and back.to_list() == noise.to_list()


def test_mechanisms_have_names():
    assert [*LEVEL_NOISES] == ["truncated_laplace", "gaussian"]
    assert len({noise.name for noise in LEVEL_NOISES.values()}) == len(LEVEL_NOISES)


# What is released


@pytest.mark.parametrize("kind", LEVEL_NOISES.values())
def test_nodes_are_released_as_often_as_predicted(kind):
    noise = kind.calibrate(APPROXIMATE, SHARES, 2, **ONE_ROW)
    copies, most = 4_000, noise.found_from(0.05)
    sizes = np.array([1, most[2] // 2, most[3] - 2, most[3], most[2]])
    nodes, steps = Chains(np.repeat(sizes, copies)), []
    released = noise.measure(nodes, seeded_bytes(1), lambda: steps.append(None))
    assert len(steps) == len(released) == 4
    for (keys, noisy), exact in zip(released[:2], nodes.public_counts(), strict=True):
        assert keys.tolist() == list(range(len(exact))) and len(noisy) == len(exact)
    for place, expected in enumerate(noise.detection_probability(sizes)):
        keys, noisy = released[place]
        if place < 2:
            assert (expected == 1).all()
            continue
        assert (np.diff(keys) > 0).all() and (noisy > noise.thresholds[place]).all()
        found = np.bincount(keys // copies, minlength=len(sizes)) / copies
        assert found == pytest.approx(expected, abs=5 * math.sqrt(0.25 / copies))
    if kind is GatedLevels:
        assert set(released[3][0]) <= set(released[2][0])


@pytest.mark.parametrize("kind", LEVEL_NOISES.values())
@pytest.mark.parametrize("failure_probability", [0.5 - 1e-9, 0.05, 1e-12])
def test_what_is_found_inverts_the_detection_probability(kind, failure_probability):
    noise = kind.calibrate(APPROXIMATE, SHARES, 2, **ONE_ROW)
    found = noise.found_from(failure_probability)
    assert found[:2] == [None, None]
    for place in (2, 3):
        least = np.array([found[place] - 1, found[place]])
        below, at = noise.detection_probability(least)[place]
        assert below < 1 - failure_probability <= at + 1e-15


def test_a_node_that_truncated_noise_may_hide_holds_2r_records_at_most():
    noise = IndependentLevels.calibrate(APPROXIMATE, SHARES, 2, **ONE_ROW)
    assert noise.largest_unseen == [None, None, *(2 * each.radius for each in noise.levels[2:])]
    for place in (2, 3):
        most = noise.largest_unseen[place]
        hidden, shown = noise.detection_probability(np.array([most, most + 1]))[place]
        assert hidden < 1 == shown


# Bounds on the noise


def test_the_radii_of_truncated_noise_are_certain():
    noise = IndependentLevels.calibrate(APPROXIMATE, SHARES, 2, **ONE_ROW)
    assert noise.radii([], 0.5) == [each.radius for each in noise.levels]


@pytest.mark.parametrize("runs", [500, pytest.param(1500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("confidence", [0.3, 0.8, 0.95])
def test_the_radii_of_gaussian_noise_hold_together_as_often_as_stated(confidence, runs):
    """With one record in each node, so that the bound on the number of nodes is as tight as it can be."""
    levels = (GaussianThreshold(2.0, None), GaussianThreshold(3.0, None), GaussianThreshold(4.0, 1))
    noise = GatedLevels(n_public=2, levels=levels)
    nodes, within = Chains(np.ones(40, dtype=np.int64)), 0
    source = seeded_bytes(3)
    for _ in range(runs):
        released = noise.measure(nodes, source, nothing)
        radii = noise.radii(released, confidence)
        # noise of hidden nodes is at most 0 here: it is bounded by that of as many shown ones
        within += all(
            abs(noisy - exact[keys]).max(initial=0) <= radius
            for (keys, noisy), exact, radius in zip(
                released, [*nodes.public_counts(), nodes.counts], radii, strict=True
            )
        )
    assert within / runs >= confidence - 4 * math.sqrt(confidence * (1 - confidence) / runs)
    assert within < runs  # they are no larger than they must be by orders of magnitude


def test_each_radius_is_the_smallest_that_the_union_bound_allows():
    levels = tuple(GaussianThreshold(scale, None) for scale in (0.3, 5.0, 80.0))
    sizes = (1, 7, 900)
    released = [(np.arange(n), np.full(n, 50)) for n in sizes]
    radii = GatedLevels(n_public=3, levels=levels).radii(released, 0.9)
    for level, n, radius in zip(levels, sizes, radii, strict=True):
        enough, too_few = 2 * n * upper_tail(level.noise_scale, np.array([radius, radius - 1]))
        assert enough <= 0.1 / 3 < too_few


def test_gated_noise_keeps_to_the_decimal_where_the_float_is_above_it():
    """What is spent is stated to the last digit, so the least that a float exceeds its decimal by decides."""
    from fractions import Fraction

    shares, outcomes = (1.0, 1.0), []
    for threshold in range(30, 60, 3):
        noise = GatedLevels(
            n_public=1, levels=(GaussianThreshold(8.0, None), GaussianThreshold(8.0, threshold))
        )
        spent = (noise.noise_scales, noise.thresholds)
        for unit in UNITS[:2]:
            rho, delta = gated_zcdp(*spent, **unit)
            for loss in (
                PrivacyLoss(rho=rho, delta=delta),
                PrivacyLoss(rho=2 * rho, delta=delta),
                PrivacyLoss(rho=rho, delta=2 * delta),
            ):
                fits = Fraction(rho) <= loss.exact.rho and Fraction(delta) <= loss.exact.delta
                assert noise.keeps_to(loss, shares, **unit) == fits
                outcomes.append(fits)
                calibrated = GatedLevels.calibrate(loss, shares, 1, **unit)
                own = gated_zcdp(calibrated.noise_scales, calibrated.thresholds, **unit)
                assert Fraction(own[0]) <= loss.exact.rho and Fraction(own[1]) <= loss.exact.delta
                assert calibrated.keeps_to(loss, shares, **unit)
            loss = PrivacyLoss(epsilon=1.0, delta=gated_delta(1.0, *spent, **unit))
            fits = Fraction(loss.delta) <= loss.exact.delta
            assert noise.keeps_to(loss, shares, **unit) == fits
            outcomes.append(fits)
    assert 10 < sum(outcomes) < len(outcomes) - 10


def test_levels_and_thresholds_spend_what_the_proof_says():
    """Under both relations, and for several rows of a unit: an account in rho is charged the sum of these."""
    from fractions import Fraction

    noise = GatedLevels(
        n_public=1,
        levels=(GaussianThreshold(3.0, None), GaussianThreshold(2.5, 30), GaussianThreshold(4.0, 40)),
    )
    for rows in (1, 2, 5):
        alone = sum(Fraction(rows**2) / (2 * Fraction(scale) ** 2) for scale in noise.noise_scales)
        for neighbors, times in (("add_remove", 1), ("replace", 2)):  # k rows leave a node, k enter another
            unit = {"neighbors": neighbors, "max_contributions": rows}
            levels = noise.level_losses(**unit)
            rho, delta = gated_zcdp(noise.noise_scales, noise.thresholds, **unit)
            assert sum(each.rho for each in levels) == times * alone
            assert times * alone <= rho <= times * alone * (1 + Fraction(1, 10**12))
            assert not any(each.delta for each in levels)
            selection = noise.selection_loss(**unit)
            assert (selection.epsilon, selection.rho, selection.delta) == (0, 0, delta)


def test_epsilons_of_levels_add_up_to_the_decimal_where_the_float_is_above_it():
    """Two epsilons whose floats are charged as they are, and add up to a float that its decimal is below."""
    from fractions import Fraction

    def charged(number):
        return min(Fraction(number), Fraction(repr(number)))

    refused = 0
    for typed in (size / 1000 for size in range(100, 130)):
        for digits in range(1, 12):
            first = typed / 2 + digits * math.ulp(typed / 2)
            parts = (first, typed - first)  # exactly
            spent = sum(map(charged, parts))
            if spent == Fraction(typed) > charged(typed):
                levels = tuple(TruncatedLaplace(part, 1e-9) for part in parts)
                noise = IndependentLevels(n_public=1, levels=levels)
                loss = PrivacyLoss(epsilon=typed, delta=2e-9)
                assert not noise.keeps_to(loss, (1.0, 1.0), **ONE_ROW)
                more = PrivacyLoss(epsilon=typed * (1 + 1e-12), delta=2e-9)
                assert noise.keeps_to(more, (1.0, 1.0), **ONE_ROW)
                refused += 1
    assert refused > 3

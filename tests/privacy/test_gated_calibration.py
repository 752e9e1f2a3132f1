"""Noise and thresholds that keep to a loss, and hardly less noise would."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pandas_dptree.errors import ArgumentError
from pandas_dptree.mechanisms.private_levels.gaussian_thresholds import GaussianThreshold, found_from
from pandas_dptree.privacy.gated import gated_delta, gated_zcdp
from pandas_dptree.privacy.gated_calibration import gated_noise, gated_noise_zcdp, gated_thresholds
from pandas_dptree.privacy.tree_sensitivity import uncounted_sensitivity
from tests.helpers_cases import each

UNITS = [("add_remove", 1), ("add_remove", 3), ("replace", 1), ("replace", 2)]


@pytest.mark.parametrize(("neighbors", "rows"), UNITS)
@each(
    "epsilon, delta, shares, private",
    [
        (1.0, 1e-6, [1, 1, 1], [False, True, True]),
        (0.1, 1e-9, [1, 2, 4], [False, True, True]),
        (3.0, 1e-4, [0, 1, 1], [False, True, False]),
        (0.5, 0.05, [1, 1], [False, True]),
        (8.0, 1e-5, [1, 1, 1, 1], [False, False, True, True]),
    ],
)
def test_the_loss_is_kept_and_used(neighbors, rows, epsilon, delta, shares, private):
    unit = {"neighbors": neighbors, "max_contributions": rows}
    noise = gated_noise(epsilon, delta, shares, private, **unit)
    assert gated_delta(epsilon, *noise, **unit) <= delta
    assert [t is not None for t in noise.thresholds] == private
    precisions = np.array(noise.noise_scales) ** -2
    assert precisions / precisions.sum() == pytest.approx(np.array(shares) / sum(shares))
    least_noise = [0.98 * scale for scale in noise.noise_scales]
    assert gated_delta(epsilon, least_noise, noise.thresholds, **unit) > delta
    lower = [None if t is None else t - math.ceil(noise.noise_scales[-1] / 50) for t in noise.thresholds]
    assert gated_delta(epsilon, noise.noise_scales, lower, **unit) > delta


@pytest.mark.parametrize(
    ("levels", "own", "chain"),
    [
        (1, 40, 40),
        (2, 49, 51),
        (3, 56, 60),
        (4, 63, 68),
        (16, 116, 133),
        pytest.param(64, 233, 273, marks=pytest.mark.nightly),
    ],
)
def test_smallest_count_found_below_a_measured_total(levels, own, chain):
    """Continuous noise and thresholds, and the best deepest level: 39, 48, 55, 62, 115 and 229 at its own."""
    noise = gated_noise(1.0, 1e-6, [1] * (levels + 1), [False] + [True] * levels, neighbors="add_remove")
    private = [GaussianThreshold(scale, t) for scale, t in list(zip(*noise, strict=True))[1:]]
    assert abs(found_from(private[-1:]) - own) <= 1 and abs(found_from(private) - chain) <= 1


def test_shares_may_be_of_any_size():
    one, other = (
        gated_noise(1.0, 1e-6, [size, 3 * size], [False, True], neighbors="add_remove") for size in (1, 0.01)
    )
    assert one.thresholds == other.thresholds
    assert one.noise_scales == pytest.approx(other.noise_scales)


def test_many_levels_and_rows():
    for neighbors in ("add_remove", "replace"):
        unit = {"neighbors": neighbors, "max_contributions": 1000}
        noise = gated_noise(1.0, 1e-6, [1] * 5, [False] + [True] * 4, **unit)
        assert gated_delta(1.0, *noise, **unit) <= 1e-6
        one = gated_noise(1.0, 1e-6, [1] * 5, [False] + [True] * 4, neighbors=neighbors)
        assert noise.noise_scales[0] == pytest.approx(1000 * one.noise_scales[0], rel=0.02)


@each("neighbors, rows", UNITS)
def test_concentrated_loss_is_kept_and_used(neighbors, rows):
    unit = {"neighbors": neighbors, "max_contributions": rows}
    for shares in ([1, 1, 1], [0, 1, 3]):
        noise = gated_noise_zcdp(0.02, 1e-6, shares, [False, True, True], **unit)
        rho, delta = gated_zcdp(*noise, **unit)
        assert 0.02 * (1 - 1e-9) < rho <= 0.02 and delta <= 1e-6
        lower = [None if t is None else t - 1 for t in noise.thresholds]
        assert gated_zcdp(noise.noise_scales, lower, **unit)[1] > 1e-6


@each(
    "neighbors, rows, caps",
    [
        ("add_remove", 3, (None, None, 1)),
        ("add_remove", 5, (None, None, 3)),
        ("add_remove", 12, (None, 5, 1)),
        ("replace", 2, (None, None, 1)),
        ("replace", 12, (None, None, 1)),
    ],
)
def test_caps_are_kept_and_used(neighbors, rows, caps):
    unit = {"neighbors": neighbors, "max_contributions": rows, "caps": caps}
    private = [False, True, True]
    noise = gated_noise(1.0, 1e-6, [1, 1, 2], private, **unit)
    assert gated_delta(1.0, *noise, **unit) <= 1e-6
    least_noise = [0.98 * scale for scale in noise.noise_scales]
    assert gated_delta(1.0, least_noise, noise.thresholds, **unit) > 1e-6
    lower = [None if t is None else t - math.ceil(noise.noise_scales[-1] / 20) for t in noise.thresholds]
    assert gated_delta(1.0, noise.noise_scales, lower, **unit) > 1e-6
    rho, delta = gated_zcdp(*gated_noise_zcdp(0.02, 1e-6, [1, 1, 2], private, **unit), **unit)
    assert 0.02 * (1 - 1e-9) < rho <= 0.02 and delta <= 1e-6
    moved = uncounted_sensitivity(3, **unit)
    parts = [level.l2_squared / scale**2 for level, scale in zip(moved, noise.noise_scales, strict=True)]
    assert parts == pytest.approx([parts[0], parts[0], 2 * parts[0]])


@each(
    "rows, cap, scale, threshold",
    [
        (12, 12, 50.7, 266),
        (12, 3, 25.36, 134),
        (12, 1, 14.65, 78),
        (52, 52, 219.7, 1209),
        (52, 1, 30.47, 169),
    ],
)
def test_what_a_cap_saves_on_one_level(rows, cap, scale, threshold):
    """Half of delta for new keys, continuous noise: 282, 184, 82, 1649 and 230."""
    noise = gated_noise(1.0, 1e-6, [1], [True], neighbors="add_remove", max_contributions=rows, caps=[cap])
    assert noise.noise_scales == pytest.approx((scale,), rel=1e-3) and noise.thresholds == (threshold,)


def test_no_cap_is_a_cap_of_all_rows():
    unit = {"neighbors": "add_remove", "max_contributions": 3}
    plain = gated_noise(1.0, 1e-6, [1, 1, 1], [False, True, True], **unit)
    assert gated_noise(1.0, 1e-6, [1, 1, 1], [False, True, True], **unit, caps=(None, 3, 99)) == plain


@each("rows, caps", [(17, [None] * 5 + [12]), (17, [None, 12, 12, 12, 12, 12])])
def test_caps_that_do_not_divide_the_rows_of_a_unit(rows, caps):
    """The ways in which rows can lie are too many to be tried, and linear bounds exceed their squares."""
    unit = {"neighbors": "add_remove", "max_contributions": rows, "caps": caps}
    noise = gated_noise(1.0, 1e-6, [1] * 6, [False] + [True] * 5, **unit)
    assert gated_delta(1.0, *noise, **unit) <= 1e-6
    plain = gated_noise(
        1.0, 1e-6, [1] * 6, [False] + [True] * 5, neighbors="add_remove", max_contributions=rows
    )
    assert noise.thresholds[-1] < plain.thresholds[-1]


def test_no_threshold_helps_too_little_noise():
    assert gated_thresholds(1.0, 1e-6, [3.0, 3.0], [False, True], neighbors="add_remove") is None
    assert gated_thresholds(1.0, 1e-6, [9.0, 9.0], [False, True], neighbors="replace") is not None


@each(
    "argument, shares, private",
    [
        ("shares", [1, 0], [False, True]),
        ("shares", [1, -1], [True, False]),
        ("shares", [1], [False, True]),
        ("shares", [1, math.nan], [True, False]),
        ("private", [1, 1], [False, False]),
    ],
)
def test_arguments_out_of_range_are_refused(argument, shares, private):
    for calibrate in (gated_noise, gated_noise_zcdp):
        with pytest.raises(ArgumentError, match=f"`{argument}`") as error:
            calibrate(1.0, 1e-6, shares, private, neighbors="add_remove")
        assert error.value.hint

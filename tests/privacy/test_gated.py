"""Delta of gated releases: never below that of all their outputs, and met by the worst worlds."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from contextlib import suppress

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.errors import ArgumentError
from pandas_dptree.privacy import gated
from pandas_dptree.privacy.composition import GaussianProfile, gaussian_delta
from pandas_dptree.privacy.gated import (
    exposure,
    gated_delta,
    gated_zcdp,
    largest_exposure,
    old_nodes,
    worse_order,
)
from pandas_dptree.privacy.sensitivity import count_sensitivity
from pandas_dptree.privacy.tree_sensitivity import uncounted_levels
from tests.helpers_cases import each
from tests.helpers_gated import (
    Node,
    Release,
    TooManyError,
    all_worlds,
    joint_masses,
    largest_delta,
    true_deltas,
    world,
)

MANY = 60
"""So many records are certain to be shown."""


def up(bound):
    """What the rounding errors of the enumeration may make of a delta that is equal to a bound."""
    return bound * (1 + 1e-11) + 1e-15


def claimed(release, rows, neighbors, epsilon, caps=()):
    return gated_delta(
        epsilon, release.scales, release.thresholds, neighbors=neighbors, max_contributions=rows, caps=caps
    )


# --- all outputs of all small worlds -------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 2, 3])
@each(
    "epsilon, scales, thresholds",
    [
        (1.0, (1.2, 1.0), (None, 5)),
        (1.0, (1.2, 1.0, 1.1), (None, 5, 6)),  # chains of new nodes, two new children of an old one
        (3.0, (1.2, 1.0, 1.1), (None, 5, 6)),
        (1.0, (1.2, 1.0, 1.1), (None, None, 5)),  # empty public nodes that come to hold somebody
        (1.0, (1.2, 1.0, 1.1), (None, 5, None)),  # children that every node has, below private nodes
        (1.0, (math.inf, 1.3, 1.1), (None, 6, 6)),
        (0.5, (2.0, 1.7, 1.6), (None, 9, 9)),
        (0.1, (2.0, 1.7), (None, 9)),  # epsilon + log(q) is negative
    ],
)
def test_add_remove_is_bounded_and_the_bound_is_met(epsilon, scales, thresholds, rows):
    release = Release(scales, thresholds)
    bound = claimed(release, rows, "add_remove", epsilon)
    worst = largest_delta(release, rows, "add_remove", (0, MANY), epsilon)
    assert bound * (1 - 1e-4) <= worst <= up(bound)  # the grid of losses costs up to 1e-4


@each(
    "epsilon, scales, thresholds, most_rows",
    [
        (1.0, (math.inf, 1.3), (None, 6), 3),
        (0.7, (math.inf, 2.0), (None, 9), 3),
        (0.1, (math.inf, 2.0), (None, 9), 3),
        (3.0, (math.inf, 0.9, 0.8), (None, 4, 5), 2),
        (3.0, (math.inf, 0.9, 0.8), (None, None, 5), 2),
        (3.0, (math.inf, 0.9, 0.8), (None, 5, None), 2),
    ],
)
def test_replace_is_bounded_and_the_bound_is_met_below_a_root_that_is_not_measured(
    epsilon, scales, thresholds, most_rows
):
    release = Release(scales, thresholds)
    for rows in range(1, most_rows + 1):
        bound = claimed(release, rows, "replace", epsilon)
        worst = largest_delta(release, rows, "replace", (0, MANY), epsilon)
        assert bound * (1 - 1e-4) <= worst <= up(bound)


@each(
    "neighbors, scales, thresholds, rows, caps, children",
    [
        ("add_remove", (1.2, 1.0), (None, 5), 2, (None, 1), 2),
        ("add_remove", (1.2, 1.0), (None, 1), 3, (None, 1), 3),  # the threshold may be below k
        ("add_remove", (1.2, 0.9), (None, 5), 3, (None, 2), 3),
        ("add_remove", (1.2, 1.0), (None, 5), 4, (None, 2), 3),
        ("add_remove", (1.2, 1.0, 1.1), (None, 5, 4), 2, (None, None, 1), 2),
        ("add_remove", (1.2, 1.0, 1.1), (None, None, 4), 2, (None, None, 1), 2),
        ("add_remove", (math.inf, 1.0, 1.1), (None, 2, 3), 2, (None, 1, None), 2),
        ("replace", (math.inf, 0.9), (None, 4), 2, (None, 1), 4),
    ],
)
def test_caps_are_bounded_and_the_bound_is_met(neighbors, scales, thresholds, rows, caps, children):
    release = Release(scales, thresholds)
    for epsilon in (0.4, 1.5):
        bound = claimed(release, rows, neighbors, epsilon, caps)
        worst = largest_delta(release, rows, neighbors, (0, MANY), epsilon, caps, children)
        assert bound * (1 - 2e-4) <= worst <= up(bound)  # the grid of losses costs the rest


@each(
    "neighbors, scales, thresholds, rows, caps, children",
    [
        ("add_remove", (1.5, 1.7), (None, 4), 5, (None, 3), 2),
        ("add_remove", (1.5, 1.7), (None, 4), 4, (None, 3), 3),
        ("add_remove", (1.2, 1.0, 1.1), (None, 5, 4), 3, (None, 2, 1), 2),
        ("add_remove", (1.2, 1.0, 1.1), (None, 3, 3), 3, (None, None, 2), 2),
        ("replace", (1.0, 0.9), (None, 3), 2, (None, 1), 3),
        ("replace", (math.inf, 1.1, 1.2), (None, 3, 2), 2, (None, None, 1), 2),
        ("replace", (math.inf, 0.9), (None, 3), 3, (None, 2), 3),
    ],
)
def test_other_caps_are_bounded(neighbors, scales, thresholds, rows, caps, children):
    """Not met: more than two rows in each of several nodes are simulated, and families are small."""
    release = Release(scales, thresholds)
    for epsilon in (0.4, 1.5):
        bound = claimed(release, rows, neighbors, epsilon, caps)
        worst = largest_delta(release, rows, neighbors, (0, MANY), epsilon, caps, children)
        assert 0.2 * bound < worst <= up(bound)


@pytest.mark.parametrize("thresholds", [(None, 3, 4), (None, None, 4), (None, 4, None)])
@each("rows", [1, 2])
def test_replace_below_a_measured_root_is_bounded(thresholds, rows):
    """Not met: rows that stay in the domain do not move the root."""
    release = Release((1.1, 0.9, 0.8), thresholds)
    for epsilon in (0.3, 1.5):
        bound = claimed(release, rows, "replace", epsilon)
        assert largest_delta(release, rows, "replace", (0, MANY), epsilon) <= up(bound)


@pytest.mark.tripwire
@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
def test_counts_about_the_thresholds_are_bounded(neighbors):
    check_counts_about_the_thresholds(neighbors, (None, 3, 4))


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@each("thresholds", [(None, 2, 2), (None, None, 4), (None, 4, None)])
def test_counts_about_other_thresholds_are_bounded(neighbors, thresholds):
    check_counts_about_the_thresholds(neighbors, thresholds)


def check_counts_about_the_thresholds(neighbors, thresholds):
    release, most = Release((1.1, 0.9, 0.8), thresholds), 0.0
    for rows in (1, 2):
        bound = claimed(release, rows, neighbors, 1.0)
        most = max(most, largest_delta(release, rows, neighbors, (0, 1, 4), 1.0) / bound)
    assert 0.2 < most <= up(1)


def test_units_with_fewer_rows_are_bounded():
    release = Release((1.2, 1.0, 1.1), (None, 5, 6))
    bound = claimed(release, 3, "replace", 1.0)
    base = dict.fromkeys(itertools.product((0, 1), repeat=2), MANY)
    for without, rows in [((), ((0, 0),) * 3), (((0, 0),), ((0, 1),) * 3), (((0, 0),) * 2, ((1, 0), (0, 0)))]:
        for filled in (base, {**base, (1, 0): 0, (1, 1): 0}, {}):
            assert max(true_deltas(world(filled, without, rows), release, 1.0)) <= up(bound)


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
def test_random_worlds_of_four_levels_are_bounded(neighbors):
    check_random_worlds(neighbors, 12)


@pytest.mark.slow
@each("neighbors", ["add_remove", "replace"])
def test_many_random_worlds_of_four_levels_are_bounded(neighbors):
    check_random_worlds(neighbors, 80)


def check_random_worlds(neighbors, number):
    """Some rows end above the leaves, some units have fewer rows, private and public levels alternate."""
    rng = np.random.default_rng(8)
    leaves = list(itertools.product((0, 1), repeat=3))
    listed = 0
    for _ in range(number):
        private = rng.random(3) < 0.6
        rows, epsilon = int(rng.integers(1, 4)), float(rng.choice([0.1, 0.7, 2.0]))
        thresholds = tuple(int(rng.integers(rows, 5)) if each else None for each in private)
        release = Release((0.8, *rng.choice([0.6, 0.9, 1.2], 3).tolist()), (None, *thresholds))
        base = dict(zip(leaves, rng.choice([0, 0, 1, 3, MANY], len(leaves)).tolist(), strict=True))
        sides = [
            [leaves[rng.integers(8)][: rng.integers(1, 4)] for _ in range(rng.integers(rows + 1))]
            for _ in range(2)
        ]
        without, unit = sides if neighbors == "replace" else ([], sides[1])
        with suppress(TooManyError):
            deltas = true_deltas(world(base, without, unit), release, epsilon)
            listed += 1
            assert max(deltas) <= up(claimed(release, rows, neighbors, epsilon))
            held = [
                Counter(leaf[:level] for leaf in each if len(leaf) >= level)
                for each in sides
                for level in range(4)
            ]
            caps = [max([1, *held[level].values(), *held[level + 4].values()]) for level in range(4)]
            assert max(deltas) <= up(claimed(release, rows, neighbors, epsilon, caps))
    assert listed > number / 2


ROOT = Node(None, 0, (MANY, MANY))
GROWS = Node(None, 0, (MANY, MANY + 2))
NEW, GONE = Node(0, 1, (0, 1)), Node(0, 1, (1, 0))


@each("nodes", [[GROWS, NEW, NEW], [GROWS, Node(0, 1, (0, 2))]])
def test_new_nodes_to_50_digits(nodes):
    scale = 4.0 if nodes[-1] == NEW else 2.0  # two new nodes are worse than one of two rows, or better
    release = Release((4.0, scale), (None, 8))
    for epsilon in (0.001, 0.4, 1.0):
        with mpmath.workdps(50):
            exact = max(true_deltas(nodes, release, epsilon, mpmath.mpf))
            bound = worse_order(epsilon, GaussianProfile([(4.0, 2)]), exposure(scale, 8, 2, 2))
            assert exact <= bound <= exact * (1 + mpmath.mpf(10) ** -9)
            assert exact <= mpmath.mpf(claimed(release, 2, "add_remove", epsilon))


@each("nodes", [[ROOT, NEW, GONE], [ROOT, NEW, Node(0, 1, (MANY, MANY - 1))]])
def test_a_replaced_row_to_50_digits(nodes):
    release = Release((math.inf, 1.5), (None, 3))
    for epsilon in (0.001, 0.4, 2.0):
        with mpmath.workdps(50):
            exact = max(true_deltas(nodes, release, epsilon, mpmath.mpf))
            assert exact <= mpmath.mpf(claimed(release, 1, "replace", epsilon))


# --- the enumeration finds defects ---------------------------------------------------------------------


@each(
    "neighbors, scales, epsilon",
    [
        ("add_remove", (4.0, 4.0), 3.0),
        ("add_remove", (7.0, 6.0, 4.0), 3.0),
        ("replace", (math.inf, 4.0), 3.0),
    ],
)
def test_a_threshold_one_too_low_is_found(neighbors, scales, epsilon):
    high, low = (Release(scales, (*[None] * (len(scales) - 1), threshold)) for threshold in (12, 11))
    bound = claimed(high, 1, neighbors, epsilon)
    assert largest_delta(high, 1, neighbors, (0, MANY), epsilon) <= up(bound)
    assert largest_delta(low, 1, neighbors, (0, MANY), epsilon) > 1.5 * bound


@each("neighbors", ["add_remove", "replace"])
def test_a_missing_gate_is_found(neighbors):
    release = Release((math.inf, 3.0, 3.0), (None, 6, 6), gated=False)
    chain = [Node(None, 0, (0, 1)), Node(0, 1, (0, 1)), Node(1, 2, (0, 1))]
    if neighbors == "replace":  # from a node of somebody else, to a chain of its own
        chain[0] = Node(None, 0, (1, 1))
    bound = claimed(release, 1, "add_remove", 1.0)
    assert max(true_deltas(chain, release, 1.0)) > 1.5 * bound
    assert max(true_deltas(chain, Release(release.scales, release.thresholds), 1.0)) <= up(bound)


def test_public_nodes_without_noise_where_they_are_empty_are_found():
    scales, thresholds = (5.0, 1.5, 1.3), (None, None, 6)
    release = Release(scales, thresholds, noise_on_empty=False)
    bound = claimed(release, 1, "add_remove", 2.0)
    assert largest_delta(release, 1, "add_remove", (0, MANY), 2.0) > 0.99 > 3 * bound


def slow_bound(release, rows, epsilon, defect=""):
    """The bound under add/remove, with sums over all losses, or what a wrong proof would take for it."""
    worst = 0.0
    private = [level for level, threshold in enumerate(release.thresholds) if threshold is not None]
    for leaving in itertools.product(range(rows + 1), repeat=len(private)):
        if sum(leaving) > rows:
            continue
        hidden, left, moves = 1.0, rows, []
        for level, (scale, threshold) in enumerate(zip(release.scales, release.thresholds, strict=True)):
            if threshold is not None:
                n = leaving[private.index(level)]
                left -= n
                tail = {"ignores the rows": threshold, "tie is hidden": threshold - n + 1}.get(
                    defect, threshold - n
                )
                x = np.arange(-70, 71)
                mass = np.exp(-((x / scale) ** 2) / 2)
                one, each = (mass[x <= t].sum() / mass.sum() for t in (tail, tail + n - 1))
                hidden *= min(one, each**n) if n else 1.0
            shift = {"k - 1": max(left - 1, 0), "square root": math.sqrt(left)}.get(defect, left)
            if not (defect == "no public nodes" and threshold is None and sum(leaving)):
                moves.append((scale, shift))
        loss, mass = np.zeros(1), np.ones(1)
        for scale, shift in moves:
            x = np.arange(-70, 71)
            terms = np.exp(-((x / scale) ** 2) / 2)
            loss = np.add.outer(loss, shift * (shift + 2 * x) / (2 * scale**2)).ravel()
            mass = np.multiply.outer(mass, terms / terms.sum()).ravel()

        def delta(e, loss=loss, mass=mass):
            return float(mass @ np.maximum(1 - np.exp(e - loss), 0))

        worst = max(
            worst, 1 - hidden + hidden * delta(epsilon - math.log(hidden)), delta(epsilon + math.log(hidden))
        )
    return worst  # fmt: skip


@pytest.mark.parametrize(
    ("defect", "scales", "thresholds", "rows", "epsilon"),
    [
        ("ignores the rows", (4.0, 4.0), (None, 12), 1, 3.0),
        ("ignores the rows", (8.0, 4.0), (None, 12), 2, 3.0),
        ("tie is hidden", (7.0, 6.0, 4.0), (None, None, 12), 1, 3.0),
        ("k - 1", (1.5, 1.4), (None, 7), 2, 0.5),
        ("k - 1", (1.5, 1.4), (None, 7), 3, 0.5),
        ("square root", (1.5, 1.4), (None, 7), 2, 0.5),
        ("square root", (1.5, 1.4), (None, 7), 3, 1.0),
        ("no public nodes", (2.0, 6.0), (None, 10), 1, 0.5),
        ("no public nodes", (2.0, 6.0), (None, 10), 1, 1.0),
        ("no public nodes", (6.0, 2.0, 6.0), (None, None, 10), 2, 1.0),
    ],
)
def test_wrong_proofs_are_found(defect, scales, thresholds, rows, epsilon):
    release = Release(scales, thresholds)
    worst = largest_delta(release, rows, "add_remove", (0, MANY), epsilon)
    right = slow_bound(release, rows, epsilon)
    assert worst <= up(right) and right == pytest.approx(worst, rel=1e-4)
    assert right <= up(claimed(release, rows, "add_remove", epsilon))
    assert worst > 1.02 * slow_bound(release, rows, epsilon, defect)


# --- the worst unit ------------------------------------------------------------------------------------


@each("scale", [0.4, 1.0, 2.5, 6.0, 90.0])
def test_one_node_or_lone_rows_are_the_most_exposed_of_all_partitions(scale):
    for threshold, rows in [(6, 6), (12, 4), (20, 6)]:
        bound = exposure(scale, threshold, rows, rows)
        with mpmath.workdps(50):
            exposed = {d: -mpmath.log1p(-exact_tail(scale, threshold - d)) for d in range(1, rows + 1)}
            most = max(sum(exposed[d] for d in part) for part in partitions(rows))
            assert most <= bound <= most * (1 + mpmath.mpf(0.05 if scale > 64 else 1e-9))
    assert exposure(scale, 5, 0, 1) == 0.0


@each("scale", [0.4, 1.0, 2.5, 6.0])
def test_full_nodes_or_lone_rows_are_the_most_exposed_of_all_partitions_with_a_cap(scale):
    for threshold, rows in [(4, 7), (12, 9)]:
        for cap in (1, 2, 3, 4):
            [level] = uncounted_levels(1, rows, [cap])
            with mpmath.workdps(30):
                exposed = {d: -mpmath.log1p(-exact_tail(scale, threshold - d)) for d in range(1, cap + 1)}
                for n in range(1, rows + 1):
                    most = max(sum(exposed[d] for d in part) for part in partitions(n, cap))
                    bound = exposure(scale, threshold, n, cap)
                    assert most <= bound <= most * (1 + mpmath.mpf(1e-9))
                    assert most * rows <= largest_exposure(scale, threshold, rows, level) * n


def test_all_ways_in_which_rows_can_lie_are_tried():
    scales, thresholds = np.array([2.0, 3.0, 2.5, 4.0]), (None, 9, None, 12)
    units = {
        unit.staying: unit.exposure for unit in gated._units(scales, thresholds, uncounted_levels(4, 3), 3)
    }
    assert set(units) == {
        (3, 3 - upper, 3 - upper, 3 - upper - lower) for upper in range(4) for lower in range(4 - upper)
    }
    for (_, above, _, below), exposed in units.items():
        parts = exposure(3.0, 9, 3 - above, 3), exposure(4.0, 12, above - below, 3)
        assert exposed == pytest.approx(sum(parts), rel=1e-12) and exposed >= sum(parts)


@functools.cache
def exact_terms(scale):
    reach = math.ceil(16 * scale) + 23
    terms = [mpmath.exp(-((mpmath.mpf(x) / mpmath.mpf(scale)) ** 2) / 2) for x in range(reach + 1)]
    return {x: terms[abs(x)] for x in range(-reach, reach + 1)}


def exact_tail(scale, bound):
    terms = exact_terms(scale)
    return mpmath.fsum(term for x, term in terms.items() if x > bound) / mpmath.fsum(terms.values())


def partitions(n, most=None):
    if not n:
        yield ()
    for first in range(min(n, most or n), 0, -1):
        yield from ((first, *rest) for rest in partitions(n - first, first))


@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@each(
    "scales, thresholds, rows, caps",
    [
        ((40.0, 35.0), (None, 190), 3, ()),
        ((50.0, 60.0, 40.0), (None, 260, 200), 5, ()),
        ((30.0,) * 4, (None, None, 160, 160), 4, ()),
        ((60.0, 50.0, 45.0, 70.0), (None, 150, None, 170), 9, ()),
        ((40.0, 20.0), (None, 75), 6, (None, 2)),
        ((50.0, 60.0, 20.0), (None, 260, 50), 6, (None, None, 1)),
        ((30.0,) * 4, (None, None, 130, 120), 6, (None, 3, 3, 2)),
        ((40.0, 45.0, 40.0), (None, 190, 100), 5, (None, 5, 4)),  # 4 does not divide 5
        ((50.0, 45.0), (None, 100), 9, (None, 7)),
    ],
)
def test_many_units_are_bounded_together(scales, thresholds, rows, caps, neighbors, monkeypatch):
    release = Release(scales, thresholds)
    for epsilon in (0.2, 1.0):
        each = claimed(release, rows, neighbors, epsilon, caps)
        with monkeypatch.context() as patch:
            patch.setattr(gated, "_MANY_UNITS", {"add_remove": 1, "replace": 1})
            together = claimed(release, rows, neighbors, epsilon, caps)
        assert each <= together
        if all(rows % cap == 0 for cap in caps if cap):
            assert together <= 1.05 * each


@given(st.data())
def test_means_lie_below_the_cover(data):
    coordinates = st.floats(0, 10)
    points = np.array(data.draw(st.lists(st.tuples(coordinates, coordinates), min_size=1, max_size=7)))
    cover = gated._cover(points)
    weights = (
        np.array(data.draw(st.lists(st.floats(0, 1), min_size=len(points), max_size=len(points)))) + 1e-9
    )
    mean = weights / weights.sum() @ points
    assert (cover >= mean * (1 - 1e-12)).all(axis=1).any()


def test_without_new_nodes_it_is_the_delta_of_the_noise():
    for rows, neighbors in [(1, "add_remove"), (3, "add_remove"), (1, "replace"), (2, "replace")]:
        one_unit = {"neighbors": neighbors, "max_contributions": rows}
        bound = gated_delta(1.0, [9.0, math.inf, 20.0], [None, None, None], **one_unit)
        plain = gaussian_delta(1.0, [9.0, math.inf, 20.0], count_sensitivity(**one_unit))
        assert bound == pytest.approx(plain, rel=1e-3)
        hidden = gated_delta(1.0, [9.0, 20.0], [None, 10**4], **one_unit)
        assert hidden == pytest.approx(plain, rel=1e-3)


@each("rows, capacity", [(2, 1), (4, 2), (5, 3), (6, 3), (7, 4)])
def test_moves_of_old_nodes_are_bounded_however_rows_lie(rows, capacity):
    levels = uncounted_levels(1, rows, [capacity])
    for scale in (0.8, 1.0, 1.6, 5.0, 20.0):
        profile = old_nodes([scale], levels, [[rows]])
        far = rows / scale**2
        for epsilon in (-0.1, 0.3 * far, far):
            worst = max(
                GaussianProfile([(scale, held) for held in part]).delta(epsilon)
                for part in partitions(rows, capacity)
            )
            assert worst * (1 - 1e-3) <= profile.delta(epsilon) * (1 - 3e-4 * (capacity <= 2))


def test_simulated_noise_is_paid_for_each_count_that_a_level_moves(monkeypatch):
    """Nothing is gained by counts of which no more than the squares is known."""
    monkeypatch.setattr(gated, "_EXACT_BELOW", 0.0)
    [level] = uncounted_levels(1, 9, [3])
    for scale in (2.0, 4.0):
        epsilon = 30 / scale**2
        alone = GaussianProfile([], [(scale, 27, 1)]).delta(epsilon)
        bound = old_nodes([scale], [level], [[9]]).delta(epsilon)
        assert GaussianProfile([], [(scale, 27, 4)]).delta(epsilon) == bound > alone * (1 + 1e-5)
        released = claimed(Release((scale,), (None,)), 9, "add_remove", epsilon, (3,))
        assert released >= bound * (1 - 1e-9)
        both = old_nodes([scale], [level], [[9], [9]]).delta(epsilon)
        assert both == GaussianProfile([], [(scale, 27, 4)] * 2).delta(epsilon)


# --- concentrated privacy ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("neighbors", "rows", "caps"),
    [
        ("add_remove", 1, ()), ("add_remove", 2, ()), ("replace", 1, ()),
        ("add_remove", 2, (None, None, 1)),
    ],
)  # fmt: skip
def test_given_hidden_new_nodes_every_release_is_concentrated(neighbors, rows, caps):
    release = Release((math.inf if neighbors == "replace" or caps else 1.6, 1.3, 1.2), (None, 3, 4))
    rho, delta = gated_zcdp(
        release.scales, release.thresholds, neighbors=neighbors, max_contributions=rows, caps=caps
    )
    largest, most = 0.0, 0.0
    for nodes in all_worlds(release, rows, neighbors, (0, MANY), caps):
        new = [node.level > 0 and 0 in node.counts for node in nodes]
        kept = []
        with suppress(TooManyError):
            kept = [
                masses
                for seen, masses in joint_masses(nodes, release)
                if not any(shown and fresh for shown, fresh in zip(seen, new, strict=True))
            ]
        if not kept:
            continue
        p, q = (np.concatenate([masses[side] for masses in kept]) for side in (0, 1))
        largest = max(largest, 1 - p.sum(), 1 - q.sum())
        both = (p > 0) & (q > 0)  # beyond, one of the tails is left out
        p, q = p[both] / p.sum(), q[both] / q.sum()
        for order in (1.5, 4.0):
            for one, other in ((p, q), (q, p)):
                divergence = math.log(np.sum(one**order * other ** (1 - order))) / (order - 1)
                most = max(most, divergence / order)
    assert delta * (1 - 1e-9) <= largest <= up(delta)
    assert 0.99 * rho <= most <= up(rho)


# --- arguments -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "changed"),
    [
        ("epsilon", {"epsilon": 0.0}),
        ("noise_scales", {"noise_scales": [3.0, -1.0]}),
        ("noise_scales", {"noise_scales": []}),
        ("noise_scales", {"noise_scales": [3.0, math.inf]}),
        ("thresholds", {"thresholds": [None]}),
        ("thresholds", {"thresholds": [None, 1]}),
        ("thresholds", {"thresholds": [None, 7.5]}),
        ("neighbors", {"neighbors": "swap"}),
        ("max_contributions", {"max_contributions": 0}),
        ("caps", {"caps": [None]}),
        ("thresholds", {"thresholds": [None, 1], "caps": [None, 2], "max_contributions": 3}),
    ],
)
def test_arguments_out_of_range_are_refused(argument, changed):
    right = {"epsilon": 1.0, "noise_scales": [3.0, 3.0], "thresholds": [None, 9]}
    right |= {"neighbors": "replace", "max_contributions": 2}
    with pytest.raises(ArgumentError, match=f"`{argument}`") as error:
        gated_delta(**{**right, **changed})
    assert error.value.hint


def test_both_orders_of_neighbours_are_needed():
    """A new node is mostly worse for the data set that has it, but not below noise of a small scale.

    With continuous Gaussian noise on the old nodes, it always is. Both orders are 1 - A, where A(a, b) is the
    mass of the minimum of aP and bQ, with the same product of a and b. Under such noise A falls with their
    ratio. But losses of discrete noise take few values, and between two of them A rises.
    """
    for scales, thresholds, epsilon in [
        ((0.4, 1.0), (None, 1), 2.0),
        ((0.5, 1.0), (None, 1), 1.0),
        ((0.6, 2.0), (None, 5), 0.5),
    ]:
        release = Release(scales, thresholds)
        bound, new = claimed(release, 1, "add_remove", epsilon), exposure(scales[1], thresholds[1], 1, 1)
        worst = largest_delta(release, 1, "add_remove", (0, MANY), epsilon)
        assert worst <= up(bound) and bound <= worst * (1 + 1e-6)
        profile = GaussianProfile([(scales[0], 1)])
        has_it = -math.expm1(-new) + math.exp(-new) * profile.delta(epsilon + new)
        lacks_it = profile.delta(epsilon - new)
        assert has_it < worst * (1 - 1e-5) and lacks_it == pytest.approx(worst, rel=1e-6)
        assert worse_order(epsilon, profile, new) == pytest.approx(worst, rel=1e-6)
    release = Release((4.0, 4.0), (None, 12))  # as a rule, the order that has it is the worse one
    bound, profile, new = (
        claimed(release, 1, "add_remove", 1.0),
        GaussianProfile([(4.0, 1)]),
        exposure(4.0, 12, 1, 1),
    )
    has_it = -math.expm1(-new) + math.exp(-new) * profile.delta(1.0 + new)
    assert bound == pytest.approx(has_it, rel=1e-6) and profile.delta(1.0 - new) < 0.999 * has_it
    assert largest_delta(release, 1, "add_remove", (0, MANY), 1.0) <= up(bound)
    assert worse_order(1.0, profile, new) == pytest.approx(has_it, rel=1e-6)


def test_simulated_noise_is_paid_for_each_count_that_a_replaced_unit_moves(monkeypatch):
    """Two counts of each level move under replace. At scales near 1, the factor of each is large."""
    from pandas_dptree.privacy.simulated_gaussian import SimulatedGaussian

    monkeypatch.setattr(gated, "_EXACT_BELOW", 0.0)
    far = 60  # thresholds at which no node of a single unit is shown
    for scales in [(1.0, 1.1), (0.9, 1.3, 1.0), (2.0, 1.5)]:
        release = Release(scales, (None, *[far] * (len(scales) - 1)))
        for rows, epsilon in [(1, 3.0), (1, 8.0), (2, 20.0)]:
            for neighbors, moved in (("add_remove", 1), ("replace", 2)):
                counts = np.array([scale for scale in scales for _ in range(moved)])
                simulated = SimulatedGaussian(counts, np.full(len(counts), float(rows)))
                distance = np.array([rows**2 * simulated.inverse_variances.sum()])
                [expected] = simulated.delta(np.array([epsilon]), distance)
                bound = claimed(release, rows, neighbors, epsilon)
                assert 0 < expected <= up(bound) and bound <= expected * (1 + 1e-6)
                exact = GaussianProfile([(scale, rows) for scale in counts]).delta(epsilon)
                assert exact < bound < 1
                if neighbors == "replace":  # the factor of one count a level is noticed
                    one = SimulatedGaussian(np.array(scales), np.full(len(scales), float(rows)))
                    [less] = one.delta(
                        np.array([epsilon]), np.array([2 * rows**2 * one.inverse_variances.sum()])
                    )
                    assert less < 0.9 * bound

"""Private keys from the frame to the released counts: all outputs of small worlds, for all noise."""

import functools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.hierarchy.private_keys import PrivateKeys
from pandas_dptree.mechanisms.private_levels.gated import GatedLevels
from pandas_dptree.mechanisms.private_levels.gaussian_thresholds import GaussianThreshold
from pandas_dptree.mechanisms.private_levels.independent import IndependentLevels
from pandas_dptree.mechanisms.truncated import TruncatedLaplace
from pandas_dptree.privacy.gated import gated_delta
from tests.helpers_cases import each
from tests.helpers_private_keys import divergence, released_counts, tables_of_counts

ONE, TWO = PrivateKeys(columns=("p",)), PrivateKeys(columns=("p", "q"))
PLACES = dpt.Domain.from_frame(pd.DataFrame({"s": ["a", "b"]}), by=["s"])
RAGGED = dpt.Domain.from_frame(pd.DataFrame({"s": ["a", "b"], "t": ["x", None]}), by=["s", "t"])
PUBLIC = PrivateKeys(columns=("p",), domain=PLACES)
UNEVEN = PrivateKeys(columns=("p",), domain=RAGGED)

EPSILONS = (3.0, 8.0, 12.0)

SMALL = {  # what a unit of one row adds to which records
    "one level": (ONE, [("x",), ("x",), ("y",), ("y",)], [[("x",)], [("w",)], [(None,)]]),
    "two levels": (
        TWO,
        [("x", "y"), ("x", "y"), ("v", None)],
        [[("x", "y")], [("x", "z")], [("w", "z")], [("w", None)], [("v", "y")], [(None, "y")]],
    ),
    "public": (PUBLIC, [("a", "x"), ("a", "x")], [[("b", "x")], [("a", "x")], [("a", "w")], [("c", "x")]]),
    "all empty": (PUBLIC, [], [[("b", "x")], [("b", None)]]),
}  # fmt: skip
LARGER = {  # what a unit of up to k rows adds
    2: {
        "one level": (ONE, [("x",), ("x",)], ["xx", "xw", "ww", "wv", "w"]),
        "two levels": (
            TWO, [("x", "y"), ("x", "y")],
            [[("w", "z")] * 2, [("w", "z"), ("w", "y")], [("x", "y"), ("w", "z")], [("x", "z")] * 2],
        ),
        "public": (PUBLIC, [], [[("a", "x"), ("b", "x")], [("b", "x")] * 2]),
    },
    3: {"one level": (ONE, [("x",)], ["www", "xxx", "wwx", "wwv"])},
}  # fmt: skip
REPLACED = {
    "one level": (ONE, [("x",), ("y",)] * 5, ["x", "y", "w", "v"]),
    "two levels": (TWO, [("x", "y")] * 5, [[("x", "y")], [("x", "z")], [("w", "z")], [("v", "y")]]),
    "public": (PUBLIC, [("a", "x")] * 5, [[("a", "x")], [("a", "w")], [("b", "x")]]),
}


def gated(tree, scale, threshold):
    """Make Gaussian noise and thresholds; the least noise is at the bottom."""
    n = len(tree.level_names)
    return GatedLevels(
        n_public=tree.n_public,
        levels=tuple(
            GaussianThreshold(scale * (1 if place else 1.01), None if place < tree.n_public else threshold)
            for place in range(n)
        ),
    )


def independent(tree, sensitivity):
    """Make truncated Laplace noise of the smallest radii."""
    noise = TruncatedLaplace(1.5, 0.3 if sensitivity < 3 else 0.42, sensitivity)
    assert noise.radius == sensitivity
    return IndependentLevels(n_public=tree.n_public, levels=(noise,) * len(tree.level_names))


def with_unit(rows, unit):
    """Add the rows of a unit to rows that are units of their own."""
    return [*((*row, place) for place, row in enumerate(rows)), *((*row, "unit") for row in unit)]


def delta_of(levels, epsilon, neighbors, k):
    """Give the epsilon and delta that a release promises."""
    if isinstance(levels, IndependentLevels):
        spent = [(noise.epsilon, noise.delta_spent) for noise in levels.levels]
        return tuple(map(math.fsum, zip(*spent, strict=True)))
    noise = levels.noise_scales, levels.thresholds
    return epsilon, gated_delta(epsilon, *noise, neighbors=neighbors, max_contributions=k)


@functools.lru_cache(maxsize=64)
def law_of(tree, levels, rows, k):
    """Give the distribution of what is released, which several tests compare."""
    return released_counts(tree, levels, rows, k)


def laws_of(levels, worlds, k, neighbors="add_remove"):
    """Give the distributions of all worlds of one tree; under add/remove, without the unit first."""
    tree, base, units = worlds
    without = [()] if neighbors == "add_remove" else []
    return [law_of(tree, levels, tuple(with_unit(base, unit)), k) for unit in (*without, *units)]


def excess(levels, worlds, k, *, neighbors="add_remove", promised=None, epsilons=EPSILONS):
    """Give, over worlds of one tree, the largest ratio of the true delta to the one that is promised.

    `promised`, by default `levels`, is the noise that the promise is made for.
    """
    laws = laws_of(levels, worlds, k, neighbors)
    ratios = []
    for epsilon in epsilons:
        spent, delta = delta_of(promised or levels, epsilon, neighbors, k)
        pairs = [(laws[0], law) for law in laws[1:]]
        if neighbors == "replace":
            pairs = [(one, other) for place, one in enumerate(laws) for other in laws[:place]]
        ratios += [divergence(one, other, spent) / delta for one, other in pairs]
        assert all(math.fsum(law.values()) == pytest.approx(1) for law in laws)
    return max(ratios)


def worlds_of(k, neighbors):
    return REPLACED if neighbors == "replace" else SMALL if k == 1 else LARGER[k]


SLOW = {  # kinds of many outcomes: by default, two levels stand for them
    ("gaussian", "add_remove", 3, "one level"),
    ("gaussian", "add_remove", 1, "public"),
    ("gaussian", "replace", 1, "two levels"),
    ("gaussian", "replace", 1, "public"),
    ("truncated_laplace", "add_remove", 2, "two levels"),
}
NIGHTLY = {("gaussian", "add_remove", 2, "two levels"), ("gaussian", "add_remove", 2, "public")}
TRIPWIRE = {("gaussian", "add_remove", 1, "two levels")}


def marks_of(case):
    tiers = {"slow": SLOW, "nightly": NIGHTLY, "tripwire": TRIPWIRE}
    return [getattr(pytest.mark, tier) for tier, cases in tiers.items() if case in cases]


CASES = [
    pytest.param(*case, marks=marks_of(case))
    for mechanism in ("gaussian", "truncated_laplace")
    for neighbors, k in (("add_remove", 1), ("add_remove", 2), ("add_remove", 3), ("replace", 1))
    for name in worlds_of(k, neighbors)
    for case in [(mechanism, neighbors, k, name)]
]


def noise_of(mechanism, tree, neighbors, k):
    """Make noise that keeps a promise: few values, and thresholds that a lone unit may exceed."""
    if mechanism == "gaussian":
        return (
            gated(tree, 0.5, 2) if neighbors == "replace" else gated(tree, (0.35, 0.6, 0.9)[k - 1], 2 * k - 1)
        )
    return independent(tree, 2 * k if neighbors == "replace" else k)


@pytest.mark.parametrize(("mechanism", "neighbors", "k", "name"), CASES)
def test_no_neighbors_differ_by_more_than_is_promised(mechanism, neighbors, k, name):
    worlds = worlds_of(k, neighbors)[name]
    levels = noise_of(mechanism, worlds[0], neighbors, k)
    ratio = excess(levels, worlds, k, neighbors=neighbors)
    assert ratio <= 1 + 1e-6
    assert ratio > 0.25  # epsilons and deltas that add up are too large; and replacing rows keeps the total


@each("mechanism", ["gaussian", "truncated_laplace"])
def test_public_keys_of_uneven_depth_are_covered(mechanism):
    units = [[("b", None, "x")], [("a", "x", "x")], [("b", "x", "x")]]
    levels = gated(UNEVEN, 0.25, 1) if mechanism == "gaussian" else independent(UNEVEN, 1)
    assert 0.5 < excess(levels, (UNEVEN, [("a", "x", "x")], units), 1) <= 1 + 1e-6


# Defects that the audit finds


class Ungated(GatedLevels):
    """A node is shown whether its parent is or not."""

    __slots__ = ()

    def measure(self, nodes, source, done):
        released = super().measure(nodes, source, done)[: self.n_public]
        for level, counts in list(zip(self.levels, nodes.counts, strict=True))[self.n_public :]:
            released.append(level.shown_counts(counts, np.ones(len(counts), dtype=bool), source))
        return released


def without_empty(kind):
    """Give a mechanism that leaves empty public nodes out."""

    class NoEmptyNodes(kind):
        __slots__ = ()

        def measure(self, nodes, source, done):
            released = super().measure(nodes, source, done)
            for place, counts in enumerate(nodes.public_counts()):
                keys, noisy = released[place]
                released[place] = keys[counts > 0], noisy[counts > 0]
            return released

    return NoEmptyNodes


class LowThreshold(IndependentLevels):
    """Truncated noise with thresholds that are too low by one."""

    __slots__ = ()

    def measure(self, nodes, source, done):
        released = super().measure(nodes, source, done)[: self.n_public]
        for place in range(self.n_public, len(self.levels)):
            noise, counts = self.levels[place], nodes.counts[place]
            noisy = counts + noise.sample(len(counts), source)
            kept = np.flatnonzero(noisy > noise.radius - 1)
            released.append((kept, noisy[kept]))
        return released


def changed(levels, kind=None, **changes):
    """Give levels of another class, or with other noise scales or thresholds."""
    kind, names = kind or type(levels), list(changes)
    own = tuple(
        replace(level, **{name: changes[name](getattr(level, name)) for name in names})
        if names and getattr(level, names[0]) is not None
        else level
        for level in levels.levels
    )
    return kind(n_public=levels.n_public, levels=own)


def test_too_low_a_threshold_is_found():
    """As from P(X < tau - k) or from P(X <= tau - k + 1), in place of P(X <= tau - k)."""
    for k in (1, 2):
        check_too_low_a_threshold(k, worlds_of(k, "add_remove")["one level"])
    worlds = SMALL["one level"]
    right = noise_of("truncated_laplace", worlds[0], "add_remove", 1)
    assert excess(changed(right, LowThreshold), worlds, 1, promised=right) > 1.5


@pytest.mark.slow
def test_too_low_a_threshold_for_three_rows_is_found():
    check_too_low_a_threshold(3, LARGER[3]["one level"])


def check_too_low_a_threshold(k, worlds):
    right = gated(worlds[0], (0.5, 0.6, 0.9)[k - 1], max(k, 2))
    low = changed(right, threshold=lambda threshold: threshold - 1)
    assert excess(low, worlds, k, promised=right) > 1.5


def test_a_missing_gate_is_found():
    worlds = TWO, [], [[("w", "z")]]
    right = gated(TWO, 0.35, 1)
    assert excess(right, worlds, 1, epsilons=[25.0]) <= 1 + 1e-3
    assert excess(changed(right, Ungated), worlds, 1, promised=right, epsilons=[25.0]) > 1.5


@each("mechanism", ["gaussian", "truncated_laplace"])
def test_empty_public_nodes_that_are_left_out_are_found(mechanism):
    worlds = SMALL["public"]
    right = noise_of(mechanism, worlds[0], "add_remove", 1)
    assert excess(changed(right, without_empty(type(right))), worlds, 1, promised=right) > 1.4


@pytest.mark.parametrize("k", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_too_few_rows_of_a_unit_are_found(k):
    worlds = LARGER[k]["one level"]
    right = noise_of("gaussian", worlds[0], "add_remove", k)
    assert excess(right, worlds, k) <= 1 + 1e-6
    laws = laws_of(right, worlds, k)
    largest = max(divergence(laws[0], law, 8.0) for law in laws[1:])
    assert largest > 1.5 * delta_of(right, 8.0, "add_remove", k - 1)[1]
    root = changed(right, noise_scale=lambda scale: scale / math.sqrt(k))
    assert excess(root, worlds, k, promised=right) > 1.3
    small = noise_of("truncated_laplace", worlds[0], "add_remove", k - 1)
    enough = noise_of("truncated_laplace", worlds[0], "add_remove", k)
    assert excess(small, worlds, k, promised=enough) > 1.25


# From the released counts to the table


@pytest.mark.parametrize("mechanism", ["gaussian", "truncated_laplace"])
def test_the_table_is_a_function_of_what_was_released(mechanism):
    """The same one for all neighbours, although their nodes have other numbers."""
    assert tables_are_functions(mechanism, ONE, [("x",)], [[("x",)], [("w",)], [(None,)]]) > 10


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["gaussian", "truncated_laplace"])
@pytest.mark.parametrize(
    "name",
    ["one level", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("two levels", "public"))],
)
def test_the_table_of_more_records_is_a_function_of_what_was_released(mechanism, name):
    assert tables_are_functions(mechanism, *SMALL[name]) > 20


def tables_are_functions(mechanism, tree, base, units):
    levels = gated(tree, 0.2, 1) if mechanism == "gaussian" else independent(tree, 1)
    tables = {}
    for unit in ((), *units[:3]):
        for seen, made in tables_of_counts(tree, levels, with_unit(base, unit), 1).items():
            tables.setdefault(seen, set()).update(made)
    assert {len(made) for made in tables.values()} == {1}
    return len(tables)

"""Quantiles on a grid: how far rows move distances, what is drawn how often, and what neighbours learn."""

import math
from fractions import Fraction
from itertools import product
from unittest.mock import patch

import numpy as np
import pytest

from pandas_dptree.mechanisms import quantiles
from pandas_dptree.mechanisms.quantiles import BaseMeasure, Drawing, draw_quantiles, n_depths, row_moves
from tests.helpers_cases import each
from tests.helpers_exact_laws import exact_law, first_to_strike, log_ratios, renyi
from tests.helpers_random import each_seed, rng, seeded_bytes

F = Fraction
BOTH = ["add_remove", "replace"]

# Distances -----------------------------------------------------------------------------------------------


def distances(counts, fraction, low=0, high=None):
    """Return the distance of each point from `low` to `high`, straight from the definition."""
    a, b = fraction.as_integer_ratio()
    high = len(counts) - 1 if high is None else high
    n = sum(counts)
    return [
        max(b * sum(counts[:point]) - a * n, a * n - b * sum(counts[: point + 1]))
        for point in range(low, high + 1)
    ]


def public_total(counts, fraction):
    """A distance that takes the total, here 2, as known: wrong, since rows that are dropped move it."""
    a, b = fraction.as_integer_ratio()
    below, upto = np.cumsum([0, *counts])[:-1], np.cumsum(counts)
    return np.maximum(b * below - 2 * a, 2 * a - b * upto).tolist()


def forgotten_ties(counts, fraction):
    """A distance from the number below alone: as private, but far from 0 at a value of many records."""
    a, b = fraction.as_integer_ratio()
    return [abs(b * sum(counts[:point]) - a * sum(counts)) for point in range(len(counts))]


def worlds(n_points, n_rows):
    """List all counts of at most so many rows."""
    return [each for each in product(range(n_rows + 1), repeat=n_points) if sum(each) <= n_rows]


def neighbors_of(counts, neighbors, k):
    """List what k rows that are added, or k rows that are replaced (or enter the domain), make of counts.

    Fewer rows than k are among them.
    """
    found = {counts}
    for _ in range(k):
        for one in list(found):
            added = [tuple(c + (i == j) for i, c in enumerate(one)) for j in range(len(one))]
            found.update(added)
            if neighbors == "replace":
                for more in [*added, one]:
                    found.update(
                        tuple(c - (i == j) for i, c in enumerate(more)) for j in range(len(one)) if one[j]
                    )
    return found - {counts}


def widest(distance, fraction, neighbors, k, n_points=3, n_rows=3):
    """Return how far k rows move distances at most, and half of the range of the moves."""
    moved = [
        [new - old for new, old in zip(distance(after, fraction), distance(before, fraction), strict=True)]
        for before in worlds(n_points, n_rows)
        for after in neighbors_of(before, neighbors, k)
    ]
    return max(abs(each) for moves in moved for each in moves), max(max(m) - min(m) for m in moved) / 2


FRACTIONS = [F(1, 2), F(1, 3), F(3, 4)]


@each("neighbors", BOTH)
@each("fraction", FRACTIONS)
def test_one_row_moves_distances_no_farther_than_stated_and_as_far(fraction, neighbors):
    stated = row_moves(fraction, neighbors, several=False)
    assert widest(distances, fraction, neighbors, 1) == (stated, stated)


@pytest.mark.slow
@each("k, fractions", [(1, [F(9, 10)]), (2, FRACTIONS), (3, FRACTIONS)])
@each("neighbors", BOTH)
def test_several_rows_move_distances_no_farther_than_stated_and_as_far(neighbors, k, fractions):
    for fraction in fractions:
        stated = k * row_moves(fraction, neighbors, several=False)
        n_rows = k + 3 if k > 1 else fraction.denominator
        assert widest(distances, fraction, neighbors, k, n_rows=n_rows) == (stated, stated)


@each("fraction", FRACTIONS)
def test_a_replaced_row_moves_two_groups_together_as_far_as_stated(fraction):
    (alone, half) = widest(distances, fraction, "add_remove", 1)
    assert alone == half
    assert 2 * alone == row_moves(fraction, "replace", several=True)
    assert alone == row_moves(fraction, "add_remove", several=True)


def test_the_search_finds_distances_that_move_too_far():
    one = row_moves(F(1, 2), "add_remove", several=False)
    assert widest(public_total, F(1, 2), "add_remove", 1)[0] == 2 * one
    assert widest(forgotten_ties, F(1, 2), "add_remove", 1)[0] == one


@each("n_quantiles, depths", [(1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4), (99, 7)])
def test_half_of_the_quantiles_are_drawn_at_the_last_depth(n_quantiles, depths):
    assert n_depths(n_quantiles) == depths == math.ceil(math.log2(n_quantiles + 1))


# Draws of one quantile -----------------------------------------------------------------------------------


def world(random):
    """Return records of several groups, a part of each, a fraction, and a base measure or none."""
    n_groups, size = int(random.integers(1, 4)), int(random.integers(1, 9))
    counts = random.integers(0, 4, size=(n_groups, size)) * (random.random((n_groups, size)) < 0.6)
    counts[random.random(n_groups) < 0.2] = 0
    bounds = np.sort(random.integers(0, size, size=(n_groups, 2)), axis=1)
    if random.random() < 0.3:
        bounds[:] = 0, size - 1
    b = int(random.integers(2, 7))
    measure = None
    if random.random() < 0.5:
        cuts = random.choice(np.arange(1, size + 1), size=int(random.integers(0, size)), replace=False)
        starts = np.unique([0, *cuts, size])
        densities = random.integers(1, 5, size=(2, len(starts) - 1))
        measure = BaseMeasure(starts, densities, random.integers(0, 2, size=n_groups))
    return counts, bounds, F(int(random.integers(1, b)), b), measure


def drawn_weights(counts, bounds, fraction, measure, weights):
    """Return how heavy each point of each part is to `_draw`: the sum of what chooses it."""
    n_groups, size = counts.shape
    places = np.flatnonzero(counts)
    values = quantiles._Values(places, np.insert(np.cumsum(counts.flat[places]), 0, 0), size)
    low, high = (np.arange(n_groups) * size + bounds.T).astype(np.int64)
    start, stop = np.searchsorted(places, low), np.searchsorted(places, high, side="right")
    parts = quantiles._Parts(np.arange(n_groups), start, stop, low, high)
    found = np.zeros(counts.shape, dtype=object)
    number, last, heaviest = 0, 0, []

    def take(entries, source):
        nonlocal last
        each_one = [(e, i) for e, mass in enumerate(entries.masses) for i in range(mass)]
        assert entries.totals[-1] == sum(entries.weights[e] for e, _ in each_one)
        entry, within = each_one[min(number, len(each_one) - 1)]
        heaviest.append(entries.weights[entry] if number < len(each_one) else 0)
        last = max(last, len(each_one))
        return entry, within

    drawing = Drawing(
        epsilon=F(1), neighbors="add_remove", max_contributions=1, several=False, permutes=False
    )
    masses = quantiles._masses(measure)
    with patch.object(quantiles, "choose", take), patch.object(quantiles, "weight_table", lambda _: weights):
        while number == 0 or number < last:
            heaviest.clear()
            drawn = quantiles._draw(values, parts, fraction, drawing, masses, None)
            for group, (place, weight) in enumerate(zip(drawn.tolist(), heaviest, strict=True)):
                assert low[group] <= place <= high[group]
                found[group, place - group * size] += weight
            number += 1
    return found.tolist()


@each_seed(60, 2000)
def test_each_point_of_a_part_is_as_heavy_as_its_distance_says(seed):
    """Ends of parts, lumps of far points, empty groups, single points and base measures included."""
    counts, bounds, fraction, measure = world(rng(seed))
    weights = tuple(range(1000, 1000 - 1 - seed % 12, -1))  # up to a dozen distances
    expected = np.zeros(counts.shape, dtype=int)
    for group, (low, high) in enumerate(bounds.tolist()):
        inside = np.where((np.arange(counts.shape[1]) >= low) & (np.arange(counts.shape[1]) <= high), 1, 0)
        apart = np.array(distances((counts[group] * inside).tolist(), fraction, low, high))
        apart = np.minimum(apart - apart.min(), len(weights) - 1)
        mass = 1
        if measure is not None:
            cell = np.searchsorted(measure.starts, np.arange(low, high + 1), side="right") - 1
            mass = measure.densities[measure.curve[group], cell]
        expected[group, low : high + 1] = np.array(weights)[apart] * mass
    assert drawn_weights(counts, bounds, fraction, measure, weights) == expected.tolist()


@each("finer", [1, 4])
def test_each_mass_belongs_to_one_place(finer):
    measure = BaseMeasure(np.array([0, 2, 3, 7]), np.array([[5, 1, 2], [1, 9, 1]]), np.array([1, 0]))
    masses = quantiles._masses(measure, finer)
    places = np.arange(7 * finer + 1)
    for group, row in enumerate(measure.curve):
        upto = masses.upto(np.full(len(places), group), places).tolist()
        densities = np.repeat(measure.densities[row], np.diff(measure.starts) * finer)
        assert np.diff(upto, prepend=0).tolist() == [0, *densities]
        found = [masses.find(group, mass) for mass in range(upto[-1])]
        assert found == np.repeat(places[:-1], densities).tolist()
        assert upto[-1] <= measure.heaviest * finer


# The exact distribution of all quantiles -----------------------------------------------------------------

EPSILON = F(1)


def law_of(counts, q, drawing, measures=None, n_places=2):
    """Return the exact distribution of `draw_quantiles`, over draws and random places.

    Draws are those of `Entries`, whose laws tests of the module `exponential` have proven.
    """
    counts = np.atleast_2d(counts)
    places, (n_groups, size) = np.flatnonzero(counts), counts.shape

    def run(pick):
        def take(entries, source):
            if not drawing.permutes:
                chosen = pick([w * mass for w, mass in zip(entries.weights, entries.masses, strict=True)])
                return chosen, pick([1] * entries.masses[chosen])
            clocks = [(e, i) for e, mass in enumerate(entries.masses) for i in range(mass)]
            law = first_to_strike([entries.weights[e] for e, _ in clocks])
            scale = math.lcm(*(each.denominator for each in law))
            return clocks[pick([int(each * scale) for each in law])]

        def uniform_words(source, size, dtype):
            return np.array([pick([1] * n_places) for _ in range(size)], dtype=dtype)

        with (
            patch.object(quantiles, "choose", take),
            patch.object(quantiles, "permute_and_flip", take),
            patch.object(quantiles, "uniform_words", uniform_words),
            patch.object(quantiles, "_MOST_PLACES", n_places),
        ):
            drawn = draw_quantiles(
                places, counts.flat[places], n_groups=n_groups, size=size, quantiles=q, drawing=drawing,
                measures=measures, source=None,
            )  # fmt: skip
        return tuple(drawn.ravel().tolist())

    return exact_law(run)


def drawing_of(neighbors="add_remove", k=1, *, several=False, permutes=False):
    return Drawing(
        epsilon=EPSILON, neighbors=neighbors, max_contributions=k, several=several, permutes=permutes
    )


def spent(pairs, q, drawing, measures=None, n_places=2):
    """Return the largest log-ratio, and the largest Renyi divergence over its order, of pairs of counts."""
    laws = {}

    def law(counts):
        key = str(counts)
        if key not in laws:
            laws[key] = law_of(counts, q, drawing, measures, n_places)
        return laws[key]

    pure, concentrated = 0.0, 0.0
    for before, after in pairs:
        for one, other in ((law(before), law(after)), (law(after), law(before))):
            assert sum(one.values()) == 1
            pure = max(pure, *map(abs, log_ratios(one, other)))
            concentrated = max(concentrated, *(renyi(one, other, order) / order for order in (1.001, 3, 20)))
    return pure, concentrated


def keeps_to(pairs, q, drawing, measures=None, n_places=2):
    """Whether no pair of counts tells more than the drawing states."""
    pure, concentrated = spent(pairs, q, drawing, measures, n_places)
    depths = n_depths(len(q))
    within = pure <= depths * EPSILON + 1e-9
    return within and (drawing.permutes or concentrated <= depths * EPSILON**2 / 8 + 1e-9)


def pairs_of(n_points, n_rows, neighbors, k=1):
    return [
        (before, after) for before in worlds(n_points, n_rows) for after in neighbors_of(before, neighbors, k)
    ]


MEDIAN, THIRDS, QUARTILES = [F(1, 2)], [F(1, 3), F(2, 3)], [F(1, 4), F(1, 2), F(3, 4)]


@each("permutes", [False, True])
@each("neighbors", BOTH)
@each("q", [MEDIAN, [F(4, 5)]])
def test_one_quantile_is_as_private_as_stated(q, neighbors, permutes):
    drawing = drawing_of(neighbors, permutes=permutes)
    assert keeps_to(pairs_of(3, 1 if permutes else 2, neighbors), q, drawing)


@each("permutes", [False, True])
def test_two_quantiles_are_as_private_as_stated(permutes):
    pairs = [((0, 0), (0, 1)), ((0, 1), (1, 1)), ((0, 1), (0, 2)), ((1, 0), (1, 1))]
    assert keeps_to(pairs, THIRDS, drawing_of(several=True, permutes=permutes))


@pytest.mark.slow
@each("permutes", [False, True])
@each("neighbors, k", [("add_remove", 1), ("replace", 1), ("add_remove", 2)])
@each(
    "q, n_points, n_rows, n_places",
    [(MEDIAN, 3, 4, 1), (THIRDS, 2, 3, 2), (QUARTILES, 2, 2, 2), (QUARTILES, 3, 2, 1)],
)
def test_quantiles_are_as_private_as_stated(q, n_points, n_rows, n_places, neighbors, k, permutes):
    drawing = drawing_of(neighbors, k, several=len(q) > 1, permutes=permutes)
    assert keeps_to(pairs_of(n_points, n_rows, neighbors, k), q, drawing, n_places=n_places)


def test_base_measures_change_no_loss():
    measure = BaseMeasure(np.array([0, 1, 3]), np.array([[7, 1]]), np.array([0]))
    assert keeps_to(pairs_of(3, 2, "add_remove"), MEDIAN, drawing_of(), [measure])


@pytest.mark.slow
def test_base_measures_of_several_quantiles_change_no_loss():
    one, other = (
        BaseMeasure(np.array([0, 1, 2]), np.array([[a, b]]), np.array([0])) for a, b in ((7, 1), (1, 3))
    )
    assert keeps_to(pairs_of(2, 2, "add_remove"), THIRDS, drawing_of(several=True), [one, other])
    drawing = drawing_of("replace", several=True)
    assert keeps_to([((0, 1), (1, 0)), ((0, 2), (1, 1))], QUARTILES, drawing, [one, one, other])


def moved_rows(k):
    """Pairs of counts of two groups of three points: k rows leave one, and k enter the other."""
    for left, joined in product([(0, 3, 1), (2, 1, 0), (3, 0, 0), (0, 0, 0)], repeat=2):
        for more in neighbors_of(left, "add_remove", k):
            for entered in neighbors_of(joined, "add_remove", k):
                yield (more, joined), (left, entered)


Q = [F(3, 4)]


@each("permutes", [False, True])
def test_a_row_that_moves_from_group_to_group_is_as_private_as_stated(permutes):
    drawing = drawing_of("replace", several=True, permutes=permutes)
    assert keeps_to([*moved_rows(1)][:: 29 if permutes else 11], Q, drawing)


@pytest.mark.slow
@each("permutes", [False, True])
def test_units_in_two_groups_are_as_private_as_stated(permutes):
    assert keeps_to([*moved_rows(2)], Q, drawing_of("replace", 2, several=True, permutes=permutes))
    added = [((a, b), (c, d)) for (c, b), (a, d) in moved_rows(1)]  # one row more in both
    assert keeps_to(added, Q, drawing_of(k=2, several=True, permutes=permutes))


def one_place_for_all(places, rows, finer, source):
    """Divide points by the number of all records: a fault, since one record then moves all others."""
    return places * finer + rows.sum() % finer, rows


def moves(**changed):
    """Let `row_moves` take other arguments than it is given."""
    return patch.object(quantiles, "row_moves", lambda q, neighbors, **given: row_moves(
        q, **{"neighbors": neighbors, **given, **changed}
    ))  # fmt: skip


def exponent(factor):
    """Let the exponent of a draw be that of one row of one group, times a factor."""
    return patch.object(
        Drawing, "exponent", lambda self, q: factor * EPSILON / row_moves(q, "add_remove", several=False)
    )


FAULTS = {
    "half the range": (
        lambda: exponent(1),
        ((0, 0, 1), (0, 1, 1)), MEDIAN, drawing_of(),
    ),
    "replaced rows counted once": (
        lambda: moves(neighbors="add_remove"),
        ((0, 0, 3), (0, 1, 2)), MEDIAN, drawing_of("replace"),
    ),
    "groups counted as one": (
        lambda: moves(several=False),
        (((0, 3, 2), (0, 3, 1)), ((0, 3, 1), (0, 3, 2))), Q, drawing_of("replace", several=True),
    ),
    "rows of a unit counted as one": (
        lambda: exponent(F(1, 2)),
        (((0, 3, 1), (0, 3, 1)), ((0, 3, 2), (0, 3, 2))), Q, drawing_of(k=2, several=True),
    ),
    "places that depend on others": (
        lambda: patch.object(quantiles, "_divided", one_place_for_all),
        ((0, 4), (0, 5)), THIRDS, drawing_of(several=True),
    ),
}  # fmt: skip


@each("fault", FAULTS)
def test_faults_are_found(fault):
    plant, pair, q, drawing = FAULTS[fault]
    assert keeps_to([pair], q, drawing)
    with plant():
        assert not keeps_to([pair], q, drawing)


# Many groups, large grids --------------------------------------------------------------------------------


def test_quantiles_of_all_groups_are_near_the_true_ones():
    random, n_groups, size = rng(1), 5, 10_001
    values = [np.sort(random.integers(0, size, size=400)) for _ in range(n_groups)]
    values[2] = np.zeros(0, dtype=np.int64)
    places, rows = np.unique(
        np.concatenate([group * size + each for group, each in enumerate(values)]), return_counts=True
    )
    for permutes in (False, True):
        drawing = Drawing(
            epsilon=F(50), neighbors="replace", max_contributions=1, several=True, permutes=permutes
        )
        drawn = draw_quantiles(
            places, rows, n_groups=n_groups, size=size, quantiles=QUARTILES, drawing=drawing, measures=None,
            source=seeded_bytes(2, permutes),
        )  # fmt: skip
        assert drawn.shape == (n_groups, 3)
        assert (np.diff(drawn, axis=1) >= 0).all()
        for group in (0, 1, 3, 4):
            for q, found in zip(QUARTILES, drawn[group].tolist(), strict=True):
                assert abs(np.searchsorted(values[group], found) - 400 * q) < 6


def test_the_largest_grids_do_not_overflow():
    """So many groups of so many points that places barely fit into 62 bits, and points are hardly divided."""
    size, n_groups = 2**31, 2**12
    places = np.sort(np.arange(n_groups) * size + (size - 1) * (np.arange(n_groups) % 2))
    rows = np.full(n_groups, 300)
    drawing = Drawing(epsilon=F(9), neighbors="add_remove", max_contributions=1, several=True, permutes=False)
    drawn = draw_quantiles(
        places[-2:], rows[-2:], n_groups=n_groups, size=size, quantiles=THIRDS, drawing=drawing,
        measures=None, source=seeded_bytes(3),
    )  # fmt: skip
    assert (drawn >= 0).all() and (drawn < size).all()
    assert drawn[-2:].tolist() == [[0, 0], [size - 1, size - 1]]


def test_permute_and_flip_has_no_base_measure():
    measure = BaseMeasure(np.array([0, 3]), np.array([[1]]), np.array([0]))
    with pytest.raises(ValueError, match="no base measure"):
        law_of((1, 1, 0), MEDIAN, drawing_of(permutes=True), [measure])

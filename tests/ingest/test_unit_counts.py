"""Counts of distinct units, and nested bounding: through the real way of the data, and for every key.

What a unit keeps respects the bounds of all levels, and is the same whatever the other units, the order of
the records and their division. So a unit that is added, removed or replaced moves no level further.
"""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.ingest import nested_bounding
from pandas_dptree.ingest.nested_bounding import Nested, nested_rows
from pandas_dptree.ingest.unit_counts import unit_counts
from pandas_dptree.ingest.units import Units, split_mix
from pandas_dptree.privacy.quantity import COUNT, Quantity
from tests.helpers_cases import each
from tests.helpers_random import each_seed, fixed_words, words
from tests.helpers_reading import divided
from tests.helpers_units import words_slowly
from tests.strategies import domains_and_rows, fewer

X = Quantity.of("x", (-2, 5), 1)


def bounded(frame, domain, max_nodes, k=9, quantities=(), seed=0):
    return unit_counts(
        frame, domain, max_nodes, quantities, privacy_unit="u", max_contributions=k,
        random_words=fixed_words(seed),
    )  # fmt: skip


def touched(frame, domain):
    """Count the nodes of each level in which a unit has rows."""
    counts = bounded(frame, domain, [1, *domain.tree.level_sizes[1:]])
    return [int((level > 0).sum()) for level in counts.nodes]


@st.composite
def bounds_of(draw, domain):
    """Draw bounds that do not decrease from level to level."""
    depth = domain.tree.depth
    return (1, *sorted(draw(st.lists(st.integers(1, 4), min_size=depth, max_size=depth))))


@fewer(2)
@given(data=st.data(), k=st.integers(4, 6), seed=st.integers(0, 2**32 - 1))
def test_units_are_counted_one_by_one_and_keep_to_the_bounds_of_all_levels(data, k, seed):
    """Over ragged trees with short paths; with rows and values, or with units alone."""
    domain, frame = data.draw(domains_and_rows())
    frame["u"] = data.draw(st.lists(st.integers(0, 3), min_size=len(frame), max_size=len(frame)))
    frame["x"] = np.arange(len(frame)) % 7 - 1.0
    max_nodes, quantities = data.draw(bounds_of(domain)), data.draw(st.sampled_from([(), (COUNT, X)]))
    options = {"k": k, "quantities": quantities, "seed": seed}
    batch, buckets, spilled = data.draw(st.tuples(st.integers(1, 9), st.integers(1, 256), st.booleans()))
    shuffled = frame.iloc[data.draw(st.permutations(range(len(frame))))]
    with divided(batch=batch, buckets=buckets, in_memory=0 if spilled else 2**27):
        together = bounded(shuffled, domain, max_nodes, **options)

    alone = [bounded(own, domain, max_nodes, **options) for _, own in frame.groupby("u")]
    for place, name in enumerate(("nodes", "sums")):
        for level, total in enumerate(together[place]):
            np.testing.assert_array_equal(total, sum(getattr(one, name)[level] for one in alone))
    for one, (_, own) in zip(alone, frame.groupby("u"), strict=True):
        before = touched(own, domain)
        kept = [int(level.sum()) for level in one.nodes]
        assert all(set(level.tolist()) <= {0, 1} for level in one.nodes)
        assert kept[0] == before[0]  # nobody is lost at the root
        for level, (above, below) in enumerate(pairwise(one.nodes)):
            assert kept[level + 1] <= max_nodes[level + 1]
            np.testing.assert_array_equal(domain.tree.sum_children(level, below) > 0, above > 0)
        if quantities:
            inside = int(bounded(own, domain, max_nodes, k=99, quantities=(COUNT,), seed=seed).sums[0].sum())
            assert one.sums[0].sum() == min(k, inside)
            np.testing.assert_array_equal(one.sums[0] > 0, one.nodes[-1] > 0)


@given(data=st.data(), k=st.integers(1, 4), seed=st.integers(0, 2**32 - 1))
def test_with_one_bound_every_level_keeps_as_many_nodes_as_it_can(data, k, seed):
    domain, frame = data.draw(domains_and_rows())
    kept = bounded(frame.assign(u=1), domain, (1, *[k] * domain.tree.depth), seed=seed).nodes
    before = touched(frame.assign(u=1), domain)
    assert [int(level.sum()) for level in kept] == [min(k, n) for n in before]


@fewer(2)
@given(data=st.data(), k=st.integers(4, 5), replace=st.booleans(), seed=st.integers(0, 2**32 - 1))
def test_one_unit_moves_levels_excesses_and_rows_like_a_shape(data, k, replace, seed):
    """With t nodes a level: counts by t ones, excesses by what t grows by, rows by all but one in a node."""
    domain, frame = data.draw(domains_and_rows())
    tree, max_nodes = domain.tree, data.draw(bounds_of(domain))
    n_own = data.draw(st.integers(0, len(frame)))
    frame["u"] = np.where(np.arange(len(frame)) < n_own, 9, np.arange(len(frame)) % 3)
    neighbor = frame[frame["u"] != 9]
    if replace:
        new = frame.sample(frac=1, random_state=seed % 99)[: data.draw(st.integers(0, 9))].assign(u=9)
        neighbor = pd.concat([neighbor, new])
    here, there, own, other = (
        bounded(each, domain, max_nodes, k, (COUNT,), seed)
        for each in (frame, neighbor, frame[frame["u"] == 9], neighbor[neighbor["u"] == 9])
    )
    shapes = [[int(level.sum()) for level in each.nodes] for each in (own, other)]
    rows = [int(each.sums[0].sum()) for each in (own, other)]
    for one, t, r in zip((own, other), shapes, rows, strict=True):
        assert t == sorted(t) and all(a <= b for a, b in zip(t, max_nodes, strict=True)) and r <= k
        for level, of_rows in enumerate(tree.roll_up(one.sums[0])):
            assert (of_rows**2).sum() <= max(r - t[level] + 1, 0) ** 2 + max(t[level] - 1, 0)
    for level, (a, b) in enumerate(zip(here.nodes, there.nodes, strict=True)):
        assert np.abs(a - b).max() <= 1
        assert np.abs(a - b).sum() <= shapes[0][level] + shapes[1][level]
        if level < tree.depth:
            excess = [
                tree.sum_children(level, each.nodes[level + 1]) - each.nodes[level] for each in (here, there)
            ]
            grown = [t[level + 1] - t[level] for t in shapes]
            moved = np.abs(excess[0] - excess[1])
            assert moved.sum() <= sum(grown) and (moved**2).sum() <= sum(each**2 for each in grown)
    assert abs(int(here.nodes[0][0]) - int(there.nodes[0][0])) <= (min(rows) == 0)


def nested_slowly(paths, word, max_nodes):
    """Choose nodes of a unit on each level, as paths from the root, from the paths of its leaves or rows."""
    kept = [{()}, {(0,)}]
    for level, most in enumerate(max_nodes[1:], 1):
        found = sorted({path[: level + 1] for path in paths if path[:level] in kept[-1]})
        found.sort(key=lambda path: word(path[-1] + 1 + level * 2**40))  # equal ones remain as they are
        firsts = [next(path for path in found if path[:-1] == parent) for parent in kept[-1]]
        others = [path for path in found if path not in firsts]
        kept.append({*firsts, *others[: most - len(firsts)]})
    return kept[1:]


TREES = [
    Tree.from_branching([3, 2, 3]),
    Tree.from_paths([[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, -1, -1], [2, 0, 0], [2, 0, 1], [2, 1, 0]]),
    Tree.from_paths([[0, 0, 0], [1, 0, 0], [1, 0, 1], [1, 0, 2]]),
    Tree.from_branching([6]),
]  # fmt: skip


@each_seed(2, 40)
@each("more_rows", [None, 0, 2])  # than leaves; or rows are not counted
@each("mask", [2**64 - 1, 3 << 62])  # the latter makes many words equal
@each("tree", TREES)
def test_nodes_are_chosen_as_slowly(tree, mask, more_rows, seed):
    rng, depth = np.random.default_rng(seed), tree.depth
    levels = [tree.nodes_above(np.arange(tree.n_leaves), level).tolist() for level in range(depth + 1)]
    key, kind = rng.integers(2**64, size=2, dtype=np.uint64), int(rng.integers(3))
    n, n_words = int(rng.integers(20, 60)), int(rng.integers(1, 3))
    unit = rng.integers(4, size=(n, n_words), dtype=np.uint64) * np.uint64(2**62 - 1)
    leaf, value = rng.integers(tree.n_leaves, size=n), rng.integers(-1, 2, size=n)
    max_nodes = (1, *sorted(rng.integers(1, 6, size=depth).tolist()))
    counted = more_rows is not None
    max_rows = max_nodes[-1] + more_rows if counted else None
    order = [leaf, value] if counted else [leaf]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nested_bounding, "split_mix", lambda words: split_mix(words) & np.uint64(mask))
        kept = nested_rows(Units(kind, unit), order, tree.nodes_above, Nested(max_nodes, max_rows), key)

    n_units = 0
    for one in {*map(tuple, unit.tolist())}:
        own = np.flatnonzero((unit == np.array(one, dtype=np.uint64)).all(axis=1))
        word_of = words_slowly(kind, one, [*map(int, key)])
        rows = sorted((leaf[row], value[row] if counted else 0) for row in own.tolist())
        paths = [(*(nodes[row[0]] for nodes in levels), rank) for rank, row in enumerate(rows)]
        bounds = [*max_nodes, *[max_rows] * counted]
        expected = nested_slowly(paths, lambda place, of=word_of: (of(place) & mask) >> 33, bounds)
        mine = np.isin(kept.rows, own)
        found, first = kept.rows[mine], kept.first_level[mine]
        for level in range(depth + 1):
            nodes = tree.nodes_above(leaf[found[first <= level]], level).tolist()
            assert sorted(nodes) == sorted(path[-1] for path in expected[level])
        if counted:
            assert sorted(zip(leaf[found], value[found], strict=True)) == sorted(
                rows[path[-1]] for path in expected[-1]
            )
        assert counted or (first <= depth).all()  # one row in each leaf
        n_units += (first == 0).sum()
    assert n_units == len({*map(tuple, unit.tolist())})


PLACES = pd.DataFrame({"r": [0, 0, 0, 1, 1, 2], "c": [0, 1, 2, 3, 4, None]})
DOMAIN = Domain.from_frame(PLACES, by=["r", "c"])


@pytest.mark.parametrize("rounds", [2000, pytest.param(40_000, marks=pytest.mark.slow)])
def test_siblings_stay_with_the_same_chance_however_many_rows_they_have(rounds):
    """Of three regions two stay, each with a clinic; of the three clinics in the first, each as often."""
    own = pd.DataFrame({"r": [0] * 6 + [1] * 2 + [2], "c": [0, 0, 0, 0, 1, 2, 3, 4, None]})
    frame = pd.concat([own] * rounds).assign(u=np.repeat(np.arange(rounds), len(own)))
    total, regions, clinics = unit_counts(
        frame, DOMAIN, (1, 2, 2), privacy_unit="u", max_contributions=2, random_words=words(1)
    ).nodes
    assert total == [rounds]
    near = 4.5 * np.sqrt(2 / 9 / rounds)
    np.testing.assert_allclose(regions / rounds, 2 / 3, atol=near)
    np.testing.assert_allclose(clinics / rounds, np.array([2, 2, 2, 3, 3, 6]) / 9, atol=near)


def test_rows_stay_with_the_same_chance():
    """Two leaves keep a row each, and one of the other four follows, of any leaf and any value."""
    rounds = 3000
    own = pd.DataFrame({"r": [0, 0, 0, 0, 0, 1], "c": [0, 0, 0, 0, 0, 3], "x": [0, 1, 2, 3, 4, 5.0]})
    frame = pd.concat([own] * rounds).assign(u=np.repeat(np.arange(rounds), len(own)))
    counts = unit_counts(
        frame, DOMAIN, (1, 2, 2), (COUNT, X), privacy_unit="u", max_contributions=3, random_words=words(2)
    )
    assert counts.sums[0].tolist() == [2 * rounds, 0, 0, rounds, 0, 0]
    assert counts.sums[1][0] / counts.sums[0][0] == pytest.approx(2, abs=4.5 * 1.5 / np.sqrt(2 * rounds))


def test_equal_words_never_keep_more_nodes(monkeypatch):
    """The first nodes stay then: that is a function of the unit's own rows, too."""
    monkeypatch.setattr(nested_bounding, "split_mix", lambda words: words * np.uint64(0))
    counts = bounded(pd.concat([PLACES.assign(u=u) for u in range(99)]), DOMAIN, (1, 2, 3))
    assert [level.tolist() for level in counts.nodes] == [[99], [99, 99, 0], [99, 99, 0, 99, 0, 0]]


def test_no_records():
    counts = bounded(PLACES.assign(u=1)[:0], DOMAIN, (1, 2, 2), quantities=(COUNT,))
    assert [level.tolist() for level in counts.nodes] == [[0], [0] * 3, [0] * 6]
    assert counts.sums[0].tolist() == [0] * 6


def test_what_cannot_be_bounded_is_refused():
    frame = PLACES.assign(u=1, x=1)
    options = {"privacy_unit": "u", "max_contributions": 2, "random_words": words(1)}
    refused = {
        "privacy_unit": {"privacy_unit": None},
        "max_contributions": {"max_contributions": 1},
        "max_per_leaf": {"caps": (None, None, 1)},
    }
    for argument, changes in refused.items():
        with pytest.raises(ArgumentError) as error:
            unit_counts(frame, DOMAIN, (1, 2, 2), [COUNT], **{**options, **changes})
        assert error.value.argument == argument
    without_caps = {**options, "caps": (), "max_contributions": 1}
    assert unit_counts(frame, DOMAIN, (1, 2, 2), **without_caps).nodes[-1].sum() == 2  # no rows are counted
    with pytest.raises(ArgumentError, match="also a column to be added up"):
        unit_counts(frame, DOMAIN, (1, 2, 2), [Quantity.of("u", (0, 1), 1)], **options)


def test_sums_are_clipped_like_those_of_leaves(monkeypatch):
    monkeypatch.setattr("pandas_dptree.ingest.unit_counts.clip_leaves", lambda sums: np.clip(sums, -3, 3))
    frame = PLACES.iloc[[0] * 9 + [4] * 9].assign(u=1, x=[5] * 9 + [-2] * 9)
    counts = bounded(frame, DOMAIN, (1, 2, 2), 18, (X, COUNT))
    assert [each.tolist() for each in counts.sums] == [[3, 0, 0, 0, -3, 0], [3, 0, 0, 0, 3, 0]]
    assert [level.tolist() for level in counts.nodes] == [[1], [1, 1, 0], [1, 0, 0, 0, 1, 0]]

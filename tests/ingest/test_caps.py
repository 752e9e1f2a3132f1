"""Caps on the rows of a unit in each node: through the real way of the data, and for every key.

What a unit keeps respects all caps, and is the same whatever the other units, the order of the records and
their division. So a unit that is added, removed or replaced moves no node by more than the caps.
"""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pandas_dptree as dpt
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.private_keys import PrivateKeys
from pandas_dptree.ingest.contributions import leaf_totals
from pandas_dptree.ingest.prefixes import nonempty_levels, sorted_keys
from pandas_dptree.ingest.private_keys import nodes_of_private_keys
from pandas_dptree.planning.capacities import sensitivity_on
from pandas_dptree.privacy.quantity import COUNT, Quantity
from tests.helpers_private_keys import paths
from tests.helpers_random import fixed_words, words
from tests.helpers_reading import divided
from tests.strategies import domains_and_rows, fewer

X = Quantity.of("x", (-2, 5), 1)
CAP = st.sampled_from([None, 1, 2, 3])
TEXTS = dpt.prefixes("key", chars=[1, 2, 4], alphabet="ab")
PUBLIC = Domain.from_frame(pd.DataFrame({"a": ["p", "p", "q"], "b": ["1", "2", None]}), by=["a", "b"])
PRIVATE = PrivateKeys(columns=("c", "d"), domain=PUBLIC)


def listed_nodes(domain):
    """Give a function that counts the nodes of each level, and adds up values."""

    def found(frame, **bounding):
        count, x = leaf_totals(frame, domain, [COUNT, X], **bounding)
        return [Counter(dict(enumerate(level.tolist()))) for level in (*domain.tree.roll_up(count), x)]

    return found


def prefixes(frame, **bounding):
    keys, rows = sorted_keys(frame, TEXTS, **bounding)
    levels = [(np.zeros(1), rows.sum(keepdims=True)), *reversed([*nonempty_levels(keys, rows, TEXTS)])]
    return [Counter(dict(zip(*map(np.ndarray.tolist, level), strict=True))) for level in levels]


def private_keys(frame, **bounding):
    nodes = nodes_of_private_keys(frame, PRIVATE, **bounding)
    counts = [each.tolist() for each in nodes.counts]
    return [Counter(dict(zip(*level, strict=True))) for level in zip(paths(nodes), counts, strict=True)]


@st.composite
def listed(draw):
    """Draw a ragged tree with short paths, and records."""
    domain, frame = draw(domains_and_rows())
    x = draw(st.lists(st.integers(-3, 9), min_size=len(frame), max_size=len(frame)))
    return listed_nodes(domain), domain.tree.depth, frame.assign(x=np.array(x, dtype=float))


TEXT = st.lists(st.text("abc", max_size=5), max_size=25)
KEYS = st.tuples(*map(st.sampled_from, [["p", "q"], ["1", "2", None], ["x", "y", 3, None], ["u", "v", None]]))
HIERARCHIES = {
    "listed": listed(),
    "prefixes": TEXT.map(lambda keys: (prefixes, 3, pd.DataFrame({"key": keys}, dtype=object))),
    "private keys": st.lists(KEYS, max_size=25).map(
        lambda rows: (private_keys, 4, pd.DataFrame(rows, columns=list("abcd"), dtype=object))
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", HIERARCHIES)
@fewer(2)
@given(data=st.data(), k=st.integers(1, 4), seed=st.integers(0, 2**32 - 1))
def test_units_add_up_and_keep_to_all_caps(kind, data, k, seed):
    found, depth, frame = data.draw(HIERARCHIES[kind])
    frame["u"] = data.draw(st.lists(st.integers(0, 3), min_size=len(frame), max_size=len(frame)))
    caps = [None, *data.draw(st.lists(CAP, min_size=depth, max_size=depth))]
    bounding = {
        "privacy_unit": "u", "max_contributions": k, "caps": tuple(caps), "random_words": fixed_words(seed),
    }  # fmt: skip
    batch, buckets, spilled = data.draw(st.tuples(st.integers(1, 9), st.integers(1, 256), st.booleans()))
    shuffled = frame.iloc[data.draw(st.permutations(range(len(frame))))]
    with divided(batch=batch, buckets=buckets, in_memory=0 if spilled else 2**27):
        together = found(shuffled, **bounding)

    alone = [found(own, **bounding) for _, own in frame.groupby("u")]
    for level, nodes in enumerate(together):
        assert without_zeros(nodes) == added(unit[level] for unit in alone)
    for unit in alone:
        for nodes, cap in zip(unit[: depth + 1], caps, strict=True):
            assert max(nodes.values(), default=0) <= min(k, cap or k)


def without_zeros(counts):
    return {name: count for name, count in counts.items() if count}


def added(counts):
    """Add up counts and sums, which may be below 0."""
    total = Counter()
    for each in counts:
        total.update(each)
    return without_zeros(total)


PLACES = pd.DataFrame({"r": [0, 0, 0, 1, 1, 2], "c": [0, 1, 2, 3, 4, None]})
DOMAIN = Domain.from_frame(PLACES, by=["r", "c"])


@pytest.mark.parametrize(
    ("k", "caps", "kept"),
    [
        (99, (None, None, 2), [12, [6, 4, 2], [2] * 6]),
        (99, (None, 3, 2), [8, [3, 3, 2], None]),
        (99, (None, 3, None), [9, [3, 3, 3], None]),
        (7, (None, 3, 2), [7, None, None]),
        (4, (None, 1, None), [3, [1, 1, 1], None]),
    ],
)
def test_as_many_rows_stay_as_the_caps_allow(k, caps, kept):
    """A short path has the caps of all levels."""
    frame = pd.concat([PLACES] * 9).assign(u="one")
    leaves, *_ = leaf_totals(
        frame, DOMAIN, privacy_unit="u", max_contributions=k, caps=caps, random_words=words(k)
    )
    for found, expected in zip(DOMAIN.tree.roll_up(leaves), kept, strict=True):
        assert expected is None or found.tolist() == np.atleast_1d(expected).tolist()


@pytest.mark.parametrize("rounds", [2000, pytest.param(40_000, marks=pytest.mark.slow)])
def test_leaves_stay_with_the_same_chance_however_many_rows_they_have(rounds):
    """Two of three leaves, with 4, 1 and 1 rows of each unit; and so do the values in a leaf."""
    own = pd.DataFrame({"r": [0, 0, 0, 0, 1, 2], "c": [0, 0, 0, 0, 3, None], "x": [5, -2, -2, 5, 0, 0]})
    frame = pd.concat([own] * rounds).assign(u=np.repeat(np.arange(rounds), len(own)))
    count, x = leaf_totals(
        frame, DOMAIN, [COUNT, X], privacy_unit="u", max_contributions=2, caps=(None, None, 1),
        random_words=words(1),
    )  # fmt: skip
    share = count[[0, 3, 5]] / rounds
    np.testing.assert_allclose(share, 2 / 3, atol=4.5 * np.sqrt(2 / 9 / rounds))
    assert x[0] / count[0] == pytest.approx(1.5, abs=4.5 * 3.5 / np.sqrt(count[0]))


def moves(tree, here, there):
    """Give what two data sets differ by on each level: 1-norm, squared 2-norm and maximum."""
    levels = zip(tree.roll_up(here), tree.roll_up(there), strict=True)
    return [(abs(a - b).sum(), ((a - b) ** 2).sum(), abs(a - b).max()) for a, b in levels]


def keeps_to(found, pattern):
    limits = [(each.l1, each.l2_squared, each.linf) for each in pattern]
    return all(
        move <= limit for level in zip(found, limits, strict=True) for move, limit in zip(*level, strict=True)
    )


@given(data=st.data(), k=st.integers(1, 4), replace=st.booleans(), seed=st.integers(0, 2**32 - 1))
def test_one_unit_moves_levels_by_no_more_than_their_sensitivity(data, k, replace, seed):
    """Counts, and sums of one sign and of both: on all levels at once, a pattern bounds the moves."""
    domain, frame = data.draw(domains_and_rows())
    n_own = data.draw(st.integers(0, len(frame)))
    is_other = np.arange(len(frame)) % 3
    frame["u"] = np.where(np.arange(len(frame)) < n_own, 9, is_other)
    frame["x"] = np.array(
        data.draw(st.lists(st.integers(-3, 9), min_size=len(frame), max_size=len(frame))), float
    )
    neighbor = frame[frame["u"] != 9]
    if replace:
        new = frame.sample(frac=1, random_state=seed % 99)[: data.draw(st.integers(0, 9))].assign(u=9)
        neighbor = pd.concat([neighbor, new.assign(x=-new["x"])])
    depth = domain.tree.depth
    caps = (None, *data.draw(st.lists(CAP, min_size=depth, max_size=depth)))
    quantities = [COUNT, X, Quantity.of("x", (0, 5), 1)]
    sums = [
        leaf_totals(
            each, domain, quantities, privacy_unit="u", max_contributions=k, caps=caps,
            random_words=fixed_words(seed),
        )
        for each in (frame, neighbor)
    ]  # fmt: skip
    for quantity, here, there in zip(quantities, *sums, strict=True):
        most = sensitivity_on(
            domain.tree,
            quantity,
            neighbors="replace" if replace else "add_remove",
            max_contributions=k,
            caps=caps,
        )
        found = moves(domain.tree, here, there)
        assert any(keeps_to(found, pattern) for pattern in most.covered(99).patterns)


UNIFORM = pd.DataFrame({"a": np.repeat([0, 1], 4), "b": np.repeat(range(4), 2), "c": range(8)})
UNIFORM_DOMAIN = Domain.from_frame(UNIFORM, by=["a", "b", "c"])


@pytest.mark.parametrize(("k", "m"), [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2), (12, 3)])
def test_a_unit_with_rows_everywhere_to_the_left_moves_all_levels_as_far_as_possible(k, m):
    tree = UNIFORM_DOMAIN.tree
    frame = UNIFORM.iloc[np.arange(k) // m].assign(u=1)
    caps = (None, None, None, m)
    (count,) = leaf_totals(
        frame, UNIFORM_DOMAIN, privacy_unit="u", max_contributions=k, caps=caps, random_words=words(0)
    )
    most = sensitivity_on(tree, COUNT, neighbors="add_remove", max_contributions=k, caps=caps)
    assert moves(tree, count, 0 * count) == [(each.l1, each.l2_squared, each.linf) for each in most.levels]

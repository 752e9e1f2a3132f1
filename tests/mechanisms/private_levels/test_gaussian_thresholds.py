"""Nodes are shown above thresholds, below shown parents, as often as the enumeration of all outputs says."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from pandas_dptree.errors import ArgumentError
from pandas_dptree.mechanisms.private_levels.gaussian_thresholds import (
    GaussianThreshold,
    chain_detection_probability,
    found_from,
)
from pandas_dptree.mechanisms.sampling import byte_source
from pandas_dptree.privacy.discrete_gaussian import upper_tail
from tests.helpers_cases import each
from tests.helpers_gated import Node, Release, joint_masses


def shown_tree(levels, nodes, copies, source):
    """Draw copies of a small tree level by level: whether each node is shown, and its noisy count."""
    shown = np.zeros((copies, len(nodes)), dtype=bool)
    noisy = np.zeros((copies, len(nodes)), dtype=np.int64)
    for depth, level in enumerate(levels):
        places = [i for i, node in enumerate(nodes) if node.level == depth]
        counts = np.tile([nodes[i].counts[0] for i in places], copies)
        parents = [nodes[i].parent for i in places]
        above = np.ones(len(counts), dtype=bool) if parents == [None] else shown[:, parents].ravel()
        kept, values = level.shown_counts(counts, above, source)
        row, column = np.divmod(kept, len(places))
        shown[row, np.array(places)[column]] = True
        noisy[row, np.array(places)[column]] = values
    return shown, noisy


NODES = [
    Node(None, 0, (9, 9)),
    Node(0, 1, (5, 5)),
    Node(0, 1, (4, 4)),
    Node(0, 1, (0, 0)),
    Node(1, 2, (5, 5)),
    Node(2, 2, (0, 0)),
    Node(2, 2, (4, 4)),
]


@pytest.mark.parametrize("thresholds", [(None, 4, 5), (None, None, 4), (None, 4, None)])
def test_trees_are_shown_as_often_as_listed(thresholds):
    copies, scales = 100_000, (1.5, 1.5, 1.5)
    levels = [GaussianThreshold(*level) for level in zip(scales, thresholds, strict=True)]
    shown, _ = shown_tree(levels, NODES, copies, byte_source(np.random.default_rng(3)))
    found = Counter(map(tuple, shown.tolist()))
    expected = {seen: p.sum() for seen, (p, _) in joint_masses(NODES, Release(scales, thresholds))}
    assert sum(expected.values()) == pytest.approx(1)
    for seen, probability in expected.items():
        assert found.pop(seen, 0) / copies == pytest.approx(
            probability, abs=5 * math.sqrt(probability / copies) + 1e-9
        )
    assert not found


def test_noisy_counts_exceed_the_threshold_and_empty_private_nodes_are_never_shown():
    source = byte_source(np.random.default_rng(4))
    counts, above = np.repeat([0, 3, 8], 20_000), np.ones(60_000, dtype=bool)
    kept, noisy = GaussianThreshold(3.0, 5).shown_counts(counts, above, source)
    assert noisy.min() == 6 and counts[kept].min() == 3
    assert noisy[counts[kept] == 8].max() > 8
    kept, noisy = GaussianThreshold(3.0, None).shown_counts(counts, above, source)
    assert kept.tolist() == list(range(60_000)) and noisy.min() < 0
    assert noisy.reshape(3, -1).mean(axis=1) == pytest.approx([0, 3, 8], abs=0.15)


def test_no_node_is_shown_below_a_hidden_parent():
    source = byte_source(np.random.default_rng(5))
    above = np.arange(1000) % 2 == 0
    for threshold in (None, 10):
        kept, noisy = GaussianThreshold(2.0, threshold).shown_counts(np.full(1000, 500), above, source)
        assert kept.tolist() == np.flatnonzero(above).tolist() and len(noisy) == 500
        kept, _ = GaussianThreshold(2.0, threshold).shown_counts(
            np.full(9, 500), np.zeros(9, dtype=bool), source
        )
        assert not len(kept)


def test_huge_counts_are_shown():
    source = byte_source(np.random.default_rng(6))
    kept, noisy = GaussianThreshold(2.0, 10).shown_counts(
        np.array([2**62, 2**63 - 1]), np.ones(2, bool), source
    )
    assert len(kept) == 2 and (noisy > 2**60).all()


def test_detection_probabilities_are_frequencies():
    source = byte_source(np.random.default_rng(7))
    levels = [GaussianThreshold(4.0, 20), GaussianThreshold(100.0, 15), GaussianThreshold(5.0, 18)]
    counts = np.array([0, 5, 18, 21, 26, 40])
    for level in levels:
        copies = np.repeat(counts, 20_000)
        kept, _ = level.shown_counts(copies, np.ones(len(copies), dtype=bool), source)
        found = np.bincount(kept // 20_000, minlength=len(counts)) / 20_000
        assert level.detection_probability(counts) == pytest.approx(found, abs=0.02)
    together = np.prod([level.detection_probability(counts) for level in levels], axis=0)
    assert chain_detection_probability(levels, counts).tolist() == together.tolist()
    assert GaussianThreshold(4.0, None).detection_probability(counts).tolist() == [1.0] * 6


@each("failure_probability", [0.95, 0.5, 0.05, 1e-9])
def test_smallest_count_found(failure_probability):
    levels = [GaussianThreshold(4.0, None), GaussianThreshold(4.0, 20), GaussianThreshold(90.0, 400)]
    for chosen in (levels[:2], levels):
        least = found_from(chosen, failure_probability)
        below, at = chain_detection_probability(chosen, np.array([least - 1, least]))
        assert below < 1 - failure_probability <= at


@each("scale", [0.5, 25.0, 63.9, 1e4])
def test_small_probabilities_of_staying_hidden_keep_their_digits(scale):
    """They are tails, which are computed as such: one minus a number next to 1 would have no digits left."""
    levels = [GaussianThreshold(scale, 7)] * 3
    least = found_from(levels, 1e-15)
    at, below = 3 * upper_tail(scale, np.array([least - 8, least - 9]))
    assert at <= 1e-15 * (1 + 1e-6) and below > 1e-15 * (1 - 1e-6)


@each("scale", [9e-4, 2e12, math.inf, math.nan, 0.0])
def test_noise_that_cannot_be_drawn_is_refused(scale):
    with pytest.raises(ArgumentError, match="`noise_scale` must be from"):
        GaussianThreshold(scale, 20)


@each("threshold", [0, -3, 2**61 + 1, 5.0, True, "5"])
def test_thresholds_are_counts(threshold):
    with pytest.raises(ArgumentError, match="`threshold` must be a whole number"):
        GaussianThreshold(4.0, threshold)


def test_a_probability_out_of_range_is_refused():
    for probability in (0.0, 1.0, math.nan):
        with pytest.raises(ArgumentError, match="`failure_probability`"):
            found_from([GaussianThreshold(4.0, 20)], probability)

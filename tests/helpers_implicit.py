"""Implicit trees and what is in them."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

import pandas_dptree as dpt
from pandas_dptree.ingest.prefixes import nonempty_levels, sorted_keys
from pandas_dptree.plans.implicit_multiplicative import _nodes_above
from tests.helpers_privacy import LOSS
from tests.helpers_random import rng, words

HALF = dpt.Multiplicative(alpha=0.5)


def exact(frame, tree, **options):
    """Give {label: count} of each level below the root, as the ingest finds it."""
    keys, rows = sorted_keys(frame, tree, random_words=words(), **options)
    levels = list(nonempty_levels(keys, rows, tree))[::-1]
    return [
        dict(zip(tree.labels(prefix, length).tolist(), counts.tolist(), strict=True))
        for length, (prefix, counts) in zip(tree.lengths, levels, strict=True)
    ]


ADDRESSES = dpt.prefixes("ip", bits=[8, 16, 32], notation="ipv4")
NUMBERS = dpt.prefixes("n", bits=[16, 64], notation="number")
ZIPS = dpt.prefixes("zip", chars=[1, 3], alphabet="0123456789")
TREES = [ADDRESSES, NUMBERS, ZIPS]
BOUNDS = {"truncated_laplace": "max_error", "gaussian": "error_bound"}
"""Each mechanism, and the column of its tables that says how far counts can be from the truth."""
LARGE = 2**63 + 3  # no float holds it


def listed(tree, leaves):
    """Give a function that lists the nodes of an implicit tree of numbers, given a count for each leaf."""
    keys = np.flatnonzero(leaves).astype(np.uint64)
    return partial(_nodes_above, keys, leaves[keys.astype(np.int64)], tree)


def records_of_sizes(sizes):
    """Make records of five nodes of each tree, with so many rows in each."""
    values = {
        "ip": ["10.0.0.1", "10.0.0.2", "10.7.0.1", "10.8.0.1", "77.0.0.1"],
        "n": np.array([LARGE, LARGE + 1, 5, 2**20, 2**40], dtype=np.uint64),
        "zip": ["902", "903", "1002", "9", "3"],
    }
    frame = pd.DataFrame(values).loc[np.repeat(np.arange(5), sizes)].reset_index(drop=True)
    return frame.assign(person=np.arange(len(frame)))


def records():
    """Few nodes hold hundreds of rows, and are released for certain; two rows are the only ones of theirs."""
    return records_of_sizes([400, 300, 250, 1, 1])


def released(tree, **options):
    return records().dp.tree_counts(tree, **LOSS, rng=rng(), **options)

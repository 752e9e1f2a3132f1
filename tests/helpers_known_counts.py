"""Statements about counts, at random and in frames."""

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from tests.strategies import trees

PLACES = pd.DataFrame(
    {
        "state": ["WA", "CA", "CA", "CA", "WY"],
        "county": ["King", "Alameda", "Alameda", "Kern", None],
        "city": ["Seattle", "Oakland", "Fremont", "Taft", None],
    }
)


def quote(known):
    """For each level, what is known of each node: a count, or the least it can be in a tuple."""
    return [
        [count if exact else (count,) for exact, count in zip(*level, strict=True)]
        for level in zip(
            (exact.tolist() for exact in known.exact), (least.tolist() for least in known.least), strict=True
        )
    ]


@st.composite
def statements(draw, largest=3, max_leaves=5):
    """Draw a tree, and counts and lower bounds for some of its nodes, true or not."""
    tree = draw(trees(max_depth=3, max_leaves=max_leaves))
    exact, least = [], []
    for size in tree.level_sizes:
        kinds = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
        numbers = draw(st.lists(st.integers(0, largest), min_size=size, max_size=size))
        exact.append(np.array(kinds) == 1)
        least.append(np.where(np.isin(kinds, [1, 2]), numbers, 0))
    return tree, exact, least


@st.composite
def true_statements(draw, largest=2, max_leaves=4):
    """Draw a tree, a table on it, and what somebody knows of the table."""
    tree, exact, doubts = draw(statements(largest, max_leaves))
    leaves = draw(st.lists(st.integers(0, largest), min_size=tree.n_leaves, max_size=tree.n_leaves))
    table = tree.roll_up(np.array(leaves))
    least = [
        np.where(fixed, counts, np.minimum(doubt, counts))
        for fixed, doubt, counts in zip(exact, doubts, table, strict=True)
    ]
    return tree, exact, least, table


def frame(**columns):
    return pd.DataFrame(columns)

"""Verbs that bound what units contribute, and units in columns of any type, in any division into parts."""

from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st

import pandas_dptree as dpt
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.private_keys import PrivateKeys
from pandas_dptree.ingest.bins import binned_counts
from pandas_dptree.ingest.contributions import leaf_totals
from pandas_dptree.ingest.prefixes import sorted_keys
from pandas_dptree.ingest.private_keys import nodes_of_private_keys
from pandas_dptree.ingest.unit_counts import unit_counts
from pandas_dptree.privacy.quantity import COUNT, Quantity
from tests.helpers_ingest import bins_of
from tests.helpers_private_keys import paths
from tests.strategies import objects

pyarrow = pytest.importorskip("pyarrow")

DOMAIN = Domain.from_frame(pd.DataFrame({"k": list("abc")}), by=["k"])
X = Quantity.of("x", (-2, 5), 1)
BITS = dpt.prefixes("x", bits=[1, 3], width=8, notation="number")
TREE = PrivateKeys(columns=("k", "x"))


def sums(frame, **bounding):
    """Add up by leaf."""
    found = leaf_totals(frame, DOMAIN, [COUNT, X], **bounding)
    return Counter(
        {(n, leaf): total for n, each in enumerate(found) for leaf, total in enumerate(each.tolist())}
    )


def bins(frame, **bounding):
    """Count by leaf and bin."""
    return Counter(dict(np.ndenumerate(binned_counts(frame, bins_of((0, 4)), DOMAIN, **bounding))))


def prefixes(frame, **bounding):
    """Count by prefix."""
    found = sorted_keys(frame, BITS, **bounding)
    return Counter(dict(zip(found.keys.tolist(), found.rows.tolist(), strict=True)))


def private_keys(frame, **bounding):
    """Count by path of keys."""
    nodes = nodes_of_private_keys(frame, TREE, **bounding)
    return Counter({
        path: count
        for names, counts in zip(paths(nodes), nodes.counts, strict=True)
        for path, count in zip(names, counts.tolist(), strict=True)
    })  # fmt: skip


def units_in_nodes(frame, **bounding):
    """Count the units in nodes, and add up by leaf."""
    found = unit_counts(frame, DOMAIN, (1, min(2, bounding["max_contributions"])), [COUNT, X], **bounding)
    cells = np.concatenate([*found.nodes, *found.sums])
    return Counter(dict(enumerate(cells.tolist())))


VERBS = {
    "sums": sums, "bins": bins, "prefixes": prefixes, "private keys": private_keys,
    "units in nodes": units_in_nodes,
}  # fmt: skip


def added(counts):
    """Add up what was counted of different rows; a Counter would leave out what is below 0."""
    total = Counter()
    for each in counts:
        total.update(each)
    return {place: count for place, count in total.items() if count}


MASK = 2**64 - 1


def mixed_slowly(word):
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & MASK
    return word ^ (word >> 31)


def words_slowly(kind, words, key):
    """Give a function from a place in the sequence of a unit to its word."""
    masks = [mixed_slowly(key[0] + 4 * place + kind + 1 & MASK) for place in range(len(words))]
    parts = [mixed_slowly(word ^ mask) for word, mask in zip(words, masks, strict=True)]
    start = mixed_slowly(sum(parts, key[1]) & MASK)
    return lambda place: mixed_slowly(start + place * 0x9E3779B97F4A7C15 & MASK)


class Word(str):
    """Text of another type."""

    __slots__ = ()


def arrow(kind):
    """Hold values in two chunks."""
    chunks = pyarrow.chunked_array
    return lambda values: pd.Series(
        pd.arrays.ArrowExtensionArray(chunks([values[:1], values[1:]], type=kind))
    )


def signed(values):
    return [-0.0 if value == 0 else float(value) for value in values]


SCALARS = [int, float, Decimal, np.int8, np.float32]
WHOLE = [
    lambda values: pd.Series(values, dtype="i8"),
    lambda values: pd.Series(values, dtype="u1"),
    lambda values: pd.Series(signed(values), dtype="f8"),
    lambda values: pd.Series(values, dtype="f4"),
    lambda values: pd.Series(values, dtype="Int64"),
    lambda values: pd.Series(pd.arrays.SparseArray(np.array(values, dtype=float))),
    lambda values: pd.Series(values, dtype="category"),
    lambda values: objects(list(map(Decimal, values))),
    lambda values: objects(list(map(Fraction, values))),
    lambda values: objects([SCALARS[n % 5](value) for n, value in enumerate(values)]),
    lambda values: objects([*values, ("odd",)])[: len(values)],
    arrow(pyarrow.int64()),
    arrow(pyarrow.float64()),
    arrow(pyarrow.decimal128(9, 2)),
    arrow(pyarrow.dictionary(pyarrow.int8(), pyarrow.int64())),
]  # fmt: skip
TEXTS = ["", "a", "a\0", "7", "1" * 8, "1" * 20]
TEXT = [
    objects,
    lambda values: pd.Series(objects(values), dtype="str"),
    lambda values: pd.Series(objects(values), dtype="string[python]"),
    lambda values: pd.Series(pd.Categorical.from_codes([*map(TEXTS.index, values)], objects(TEXTS))),
    lambda values: objects(list(map(np.str_, values))),
    lambda values: objects([*map(Word, values), 7])[: len(values)],
    arrow(pyarrow.string()),
    arrow(pyarrow.large_string()),
    arrow(pyarrow.dictionary(pyarrow.int8(), pyarrow.string())),
]  # fmt: skip
POOLS = {"whole": ([0, 1, 7], WHOLE), "text": (TEXTS, TEXT)}
ROWS = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from("abcd"), st.sampled_from([-9, 0, 1, 2, 9])),
    max_size=16,
)  # fmt: skip


def frame_of(rows, hold=objects):
    """Make a frame of rows (unit, key, number)."""
    unit, key, x = zip(*rows, strict=True) if rows else ((),) * 3
    return pd.DataFrame({"u": hold(list(unit)), "k": objects(list(key)), "x": np.array(x, dtype=float)})


def parts_of(data, rows, holders):
    """Shuffle rows and divide them into frames, each with its own type of unit."""
    order = data.draw(st.permutations(range(len(rows))))
    start = 0
    while start < len(rows):
        stop = start + data.draw(st.integers(1, len(rows) - start))
        part = [rows[row] for row in order[start:stop]]
        yield frame_of(part, data.draw(st.sampled_from(holders)))
        start = stop

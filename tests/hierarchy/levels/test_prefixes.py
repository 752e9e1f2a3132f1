"""Prefixes as listed levels: the same groups, order and types as in the implicit tree."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
from hypothesis import example, given
from hypothesis import strategies as st

import pandas_dptree as dpt
from pandas_dptree.ingest.contributions import leaf_totals
from pandas_dptree.ingest.prefixes import nonempty_levels, sorted_keys
from tests.helpers_levels import rng
from tests.strategies import Hostile, objects

BASES = dpt.prefixes("x", chars=[1, 3], alphabet="TCGA")
BITS = dpt.prefixes("x", bits=[2, 3, 6], width=8, notation="number")
BLOCKS = dpt.prefixes("x", bits=[4, 8], notation="number")
ADDRESSES = dpt.prefixes("x", bits=[3, 8], notation="ipv4")
VALUES = {
    BASES: st.text("TCGA", max_size=5) | st.sampled_from(["", "TCX", "TCGX", "tcg", None, 5, "TCG\ud800"]),
    BITS: st.integers(-2, 300)
    | st.sampled_from([7.0, 7.5, "7", None, math.nan, math.inf, True])
    | st.builds(Hostile),
    BLOCKS: st.sampled_from([0, 255, 256, np.int8(5), Fraction(10, 2), 2**70, np.uint64(2**64 - 1)]),
    ADDRESSES: st.sampled_from(["0.0.0.0", "10.1.2.3", "255.0.0.1", "10.0.0", "a", 2**31, 2**32, None]),
}
COLUMNS = st.sampled_from(list(VALUES)).flatmap(
    lambda tree: st.tuples(st.just(tree), st.lists(VALUES[tree], max_size=30))
)


@given(column=COLUMNS)
@example(column=(BITS, [1.0, 2.0, 255.0]))
def test_prefixes_hold_the_same_records_as_in_the_implicit_tree(column):
    """But for texts that are too short to have a leaf."""
    tree, values = column
    frame = pd.DataFrame({"x": objects(values)})
    domain = dpt.derived_domain([tree])
    listed = domain.tree.roll_up(leaf_totals(frame, domain)[0])
    if tree is BASES:
        long = frame["x"].map(lambda value: isinstance(value, str) and len(value) >= 3).astype(bool)
        frame = frame[long]
    keys, rows = sorted_keys(frame, tree)
    for level, (prefixes, counts) in zip((3, 2, 1), nonempty_levels(keys, rows, tree), strict=False):
        level -= 3 - len(tree.lengths)
        name, length = tree.level_names[level], tree.lengths[level - 1]
        held = dict(zip(tree.labels(prefixes, length), counts.tolist(), strict=True))
        labels = domain.keys(level)[name]
        assert labels.is_unique
        assert {label: n for label, n in zip(labels, listed[level].tolist(), strict=True) if n} == held


def test_prefixes_are_listed_in_their_order():
    paths = BASES.paths()
    assert paths.columns.tolist() == ["x/1", "x/3"] and len(paths) == 64
    assert paths.iloc[[0, 1, 16]].values.tolist() == [["T", "TTT"], ["T", "TTC"], ["C", "CTT"]]
    assert BITS.paths().iloc[[0, 9, 63]].values.tolist() == [[0, 0, 0], [0, 1, 9], [3, 7, 63]]
    assert ADDRESSES.paths().iloc[33].tolist() == ["32.0.0.0/3", "33.0.0.0/8"]
    assert dpt.derived_domain([BASES, BLOCKS.__class__("y", (1,), 4)]).tree.level_sizes == (1, 4, 64, 128)


def test_types_of_prefixes_are_those_of_the_implicit_tree():
    frame = pd.DataFrame({"x": [200] * 500 + [3] * 500})
    listed = frame.dp.tree_counts([BLOCKS], epsilon=1e6, rng=rng())
    sparse = frame.dp.tree_counts(BLOCKS, epsilon=1.0, delta=1e-6, rng=rng())
    assert (listed.dtypes[["x/4", "x/8"]] == sparse.dtypes[["x/4", "x/8"]]).all()
    assert len(listed) == 1 + 16 + 256
    level = listed.dp.level("x/8")["count"]
    assert level[level > 0].to_dict() == {(0, 3): 500, (12, 200): 500}


def test_prefixes_that_are_made_differently():
    described = [
        each.definition
        for each in (BITS, BASES, BLOCKS, ADDRESSES,
                     dpt.prefixes("x", bits=[2, 3, 6], width=9, notation="number"),
                     dpt.prefixes("x", chars=[1, 3], alphabet="ACGT"))
    ]  # fmt: skip
    assert len(set(described)) == len(described)
    assert described[0] == ("prefixes", "x", (2, 3, 6), 8, "number")

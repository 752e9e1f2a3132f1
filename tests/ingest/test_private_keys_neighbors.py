"""How far one privacy unit moves the counts of private keys, by brute force over random frames."""

import datetime
import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.private_keys import PrivateKeys
from pandas_dptree.ingest.private_keys import nodes_of_private_keys
from pandas_dptree.privacy.sensitivity import count_sensitivity
from tests.helpers_private_keys import paths
from tests.strategies import objects

polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

FLAT = Domain.from_frame(pd.DataFrame({"s": ["a", "b"]}), by=["s"])
RAGGED = Domain.from_frame(pd.DataFrame({"s": ["a", "a", "b"], "t": ["x", "y", None]}), by=["s", "t"])
TREES = [
    PrivateKeys(columns=("p",)),
    PrivateKeys(columns=("p", "q")),
    PrivateKeys(columns=("p", "q"), domain=FLAT),
    PrivateKeys(columns=("p", "q"), domain=RAGGED),
]
LEAVES = {FLAT: {("a",), ("b",)}, RAGGED: {("a", "x"), ("a", "y"), ("b", None)}}
TEXTS = st.sampled_from(["u", "v", "u\0", "", None])
ODD = st.sampled_from(
    ["u", 1, 1.0, True, -0.0, 0, None, float("nan"), ("u", 1), b"u", datetime.date(2024, 1, 1), [1], object()]
)
ROWS = {
    keys: st.tuples(st.sampled_from(["a", "b", "c", None]), st.sampled_from(["x", "y", None]), keys, keys)
    for keys in (TEXTS, ODD)
}


def counts(frame, tree, k, priority, convert=lambda frame: frame):
    """Count the records of each node by its path; `priority` is that of each row."""
    columns = [*tree.public_names, *tree.columns]
    paths_of_rows = frame[list(tree.public_names)].itertuples(index=False, name=None)
    inside = frame["unit"].notna().to_numpy()
    if tree.domain is not None:
        inside = inside & np.array([path in LEAVES[tree.domain] for path in paths_of_rows], dtype=bool)

    def words(n):
        assert n == inside.sum()
        return priority[inside]

    nodes = nodes_of_private_keys(
        convert(frame[[*columns, "unit"]]), tree, privacy_unit="unit", max_contributions=k, random_words=words
    )
    return [
        dict(zip(names, level.tolist(), strict=True))
        for names, level in zip(paths(nodes), nodes.counts, strict=True)
    ]


def frame_of(rows, units):
    frame = pd.DataFrame({name: objects([row[place] for row in rows]) for place, name in enumerate("stpq")})
    frame["unit"] = objects(units)
    return frame


def check(tree, frames, priorities, k, neighbors, convert=lambda frame: frame):
    here, there = (
        counts(frame, tree, k, priority, convert) for frame, priority in zip(frames, priorities, strict=True)
    )
    most = count_sensitivity(neighbors=neighbors, max_contributions=k)
    for one, other in zip(here, there, strict=True):
        moved = [one.get(path, 0) - other.get(path, 0) for path in {*one, *other}]
        assert sum(map(abs, moved)) <= most.l1 and sum(each**2 for each in moved) <= most.l2_squared
    for level in (here, there):
        for above, below in itertools.pairwise(level):
            assert sum(above.values()) >= sum(below.values())
    n_public = tree.n_public
    assert [set(level) for level in here[:n_public]] == [set(level) for level in there[:n_public]]
    assert all(count > 0 for level in (*here[n_public:], *there[n_public:]) for count in level.values())


@settings(max_examples=300, deadline=None)
@given(
    tree=st.sampled_from(TREES), odd=st.booleans(), k=st.integers(1, 3), replace=st.booleans(), data=st.data()
)
def test_one_unit_moves_no_level_by_more_than_the_sensitivity(tree, odd, k, replace, data):
    """The priorities of all other rows are carried over; a unit that is missing is nobody's."""
    rows = ROWS[ODD if odd else TEXTS]
    others, own, new = (data.draw(st.lists(rows, max_size=size)) for size in (12, 6, 6))
    units = data.draw(
        st.lists(st.sampled_from([1, 2, "3", None]), min_size=len(others), max_size=len(others))
    )
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    fixed = rng.integers(2**64, size=len(others), dtype=np.uint64)
    frames, priorities = [], []
    for added in (own, new if replace else []):
        order = rng.permutation(len(others) + len(added))
        frame = frame_of([*others, *added], [*units, *["unit"] * len(added)]).iloc[order]
        frames.append(frame.reset_index(drop=True))
        drawn = rng.integers(2**64, size=len(added), dtype=np.uint64)
        priorities.append(np.concatenate([fixed, drawn])[order])
    check(tree, frames, priorities, k, "replace" if replace else "add_remove")


@pytest.mark.parametrize("library", ["polars", "pyarrow", "category"])
@settings(max_examples=40, deadline=None)
@given(rows=st.lists(ROWS[TEXTS], max_size=12), own=st.lists(ROWS[TEXTS], max_size=4), k=st.integers(1, 3))
def test_other_libraries_do_not_move_them_further(library, rows, own, k):
    convert = {
        "polars": lambda frame: polars.DataFrame(
            frame.to_dict("list"), schema=dict.fromkeys(frame, polars.String)
        ),
        "pyarrow": lambda frame: pyarrow.table(
            {name: pyarrow.array(list(frame[name]), pyarrow.large_string()) for name in frame}
        ),
        "category": lambda frame: frame.astype({"p": "category", "q": "category"}),
    }[library]
    if library == "category":
        rows = [(*row[:2], *(key and key.replace("\0", "0") for key in row[2:])) for row in rows]
        own = [(*row[:2], *(key and key.replace("\0", "0") for key in row[2:])) for row in own]
    rng = np.random.default_rng(0)
    priority = rng.integers(2**64, size=len(rows) + len(own), dtype=np.uint64)
    units = [f"u{place % 4}" for place in range(len(rows))]
    frames = [frame_of([*rows, *own], [*units, *["unit"] * len(own)]), frame_of(rows, units)]
    for tree in (TREES[1], TREES[2]):
        check(tree, frames, [priority, priority[: len(rows)]], k, "add_remove", convert)

"""How far one privacy unit moves the counts of private keys, by brute force over random frames."""

import datetime
import itertools

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.private_keys import PrivateKeys
from pandas_dptree.ingest.private_keys import nodes_of_private_keys
from pandas_dptree.privacy.sensitivity import count_sensitivity
from tests.helpers_private_keys import paths
from tests.helpers_random import fixed_words
from tests.helpers_reading import divided
from tests.strategies import fewer, objects

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
TEXTS = st.sampled_from(["u", "v", "u\0", "", None])
ODD = st.sampled_from(
    ["u", 1, 1.0, True, -0.0, 0, None, float("nan"), ("u", 1), b"u", datetime.date(2024, 1, 1), [1], object()]
)
ROWS = {
    keys: st.tuples(st.sampled_from(["a", "b", "c", None]), st.sampled_from(["x", "y", None]), keys, keys)
    for keys in (TEXTS, ODD)
}


def counts(frame, tree, k, seed, convert=lambda frame: frame):
    """Count the records of each node by its path."""
    nodes = nodes_of_private_keys(
        convert(frame[[*tree.public_names, *tree.columns, "unit"]]), tree,
        privacy_unit="unit", max_contributions=k, random_words=fixed_words(seed),
    )  # fmt: skip
    return [
        dict(zip(names, level.tolist(), strict=True))
        for names, level in zip(paths(nodes), nodes.counts, strict=True)
    ]


def frame_of(rows, units):
    frame = pd.DataFrame({name: objects([row[place] for row in rows]) for place, name in enumerate("stpq")})
    frame["unit"] = objects(units)
    return frame


def check(tree, frames, seed, k, neighbors, convert=lambda frame: frame):
    here, there = (counts(frame, tree, k, seed, convert) for frame in frames)
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


@given(
    tree=st.sampled_from(TREES), odd=st.booleans(), k=st.integers(1, 3), replace=st.booleans(), data=st.data()
)
def test_one_unit_moves_no_level_by_more_than_the_sensitivity(tree, odd, k, replace, data):
    """For every key, in any order and in batches of any size; a unit that is missing is nobody's."""
    rows = ROWS[ODD if odd else TEXTS]
    others, own, new = (data.draw(st.lists(rows, max_size=size)) for size in (12, 6, 6))
    units = data.draw(
        st.lists(st.sampled_from([1, 2, "3", None]), min_size=len(others), max_size=len(others))
    )
    seed, frames = data.draw(st.integers(0, 2**32)), []
    for added in (own, new if replace else []):
        frame = frame_of([*others, *added], [*units, *["unit"] * len(added)])
        frames.append(frame.sample(frac=1, random_state=len(frames)).reset_index(drop=True))
    with divided(batch=data.draw(st.integers(1, 20)), buckets=data.draw(st.integers(1, 3))):
        check(tree, frames, seed, k, "replace" if replace else "add_remove")


@pytest.mark.parametrize("library", ["polars", "pyarrow", "category"])
@fewer(3)
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
    units = [f"u{place % 4}" for place in range(len(rows))]
    frames = [frame_of([*rows, *own], [*units, *["unit"] * len(own)]), frame_of(rows, units)]
    for tree in (TREES[1], TREES[2]):
        check(tree, frames, 0, k, "add_remove", convert)

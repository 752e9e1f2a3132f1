"""Records with private keys: counted as slowly, in every library, with the stated sensitivity."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.errors import ArgumentError, ColumnsError
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.private_keys import PrivateKeys
from pandas_dptree.ingest.private_keys import nodes_of_private_keys
from tests.helpers_cases import each
from tests.helpers_random import words
from tests.strategies import objects

polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")
PLACES = [("p", "u"), ("p", "v"), ("q", None)]
DOMAIN = Domain.from_frame(pd.DataFrame(PLACES, columns=["k", "l"]), by=["k", "l"])
TREES = {
    "alone": PrivateKeys(columns=("a", "b")),
    "below": PrivateKeys(columns=("a", "b"), domain=DOMAIN),
}
ROWS = st.lists(
    st.tuples(st.sampled_from([*PLACES, ("x", "u")]), *[st.sampled_from(["é", "", "B", "b", None])] * 2),
    max_size=25,
)


def frame_of(rows):
    columns = {"k": [place[0] for place, _, _ in rows], "l": [place[1] for place, _, _ in rows]}
    columns |= {"a": [a for _, a, _ in rows], "b": [b for _, _, b in rows]}
    return pd.DataFrame({name: objects(values) for name, values in columns.items()})


def found(nodes):
    """Give {path of private keys: records} of each private level, below the numbers of public leaves."""
    paths = [(number,) for number in range(len(nodes.public_counts()[-1]))]
    levels = []
    for place in range(nodes.n_public, len(nodes.counts)):
        numbers = np.arange(len(nodes.counts[place]))
        labels, _ = nodes.labels(place, numbers)
        above = nodes.parents_of(place, numbers)
        paths = [(*paths[parent], label) for parent, label in zip(above, labels, strict=True)]
        levels.append(dict(zip(paths, nodes.counts[place].tolist(), strict=True)))
        assert len(levels[-1]) == len(paths)
    return levels


def slowly(rows, tree):
    levels = [{}, {}]
    for place, *keys in rows:
        leaf = 0 if tree.domain is None else PLACES.index(place) if place in PLACES else None
        for depth in range(2):
            if leaf is not None and None not in keys[: depth + 1]:
                path = (leaf, *keys[: depth + 1])
                levels[depth][path] = levels[depth].get(path, 0) + 1
    return levels


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
@given(rows=ROWS)
def test_records_are_counted_as_slowly_down_to_their_first_missing_key(tree, rows):
    nodes = nodes_of_private_keys(frame_of(rows), tree)
    assert found(nodes) == slowly(rows, tree)
    inside = [place for place, _, _ in rows if tree.domain is None or place in PLACES]
    assert nodes.public_counts()[0].tolist() == [len(inside)]
    if tree.domain is not None:
        assert nodes.public_counts()[-1].tolist() == [inside.count(place) for place in PLACES]
        assert nodes.public_counts()[1].tolist() == [
            sum(place[0] == key for place in inside) for key in ("p", "q")
        ]
    for (numbers, counts), own in zip(nodes.upward(), nodes.counts[::-1], strict=False):
        assert numbers.tolist() == list(range(len(own))) and (counts == own).all() and (own >= 1).all()


@given(rows=ROWS, data=st.data())
def test_nodes_below_shown_ones_are_those_with_such_parents(rows, data):
    nodes = nodes_of_private_keys(frame_of(rows), TREES["below"])
    for place in range(nodes.n_public, len(nodes.counts)):
        n_above = len(nodes.counts[place - 1])
        shown = np.flatnonzero(data.draw(st.lists(st.booleans(), min_size=n_above, max_size=n_above)))
        numbers, counts = nodes.below(place, shown)
        assert numbers.tolist() == np.flatnonzero(np.isin(nodes.parents[place], shown)).tolist()
        assert (counts == nodes.counts[place][numbers]).all()


@given(rows=ROWS)
def test_every_library_gives_the_same_counts(rows):
    frame, tree = frame_of(rows), TREES["below"]
    schema = pyarrow.schema([(name, pyarrow.string()) for name in frame])
    table = pyarrow.Table.from_pandas(frame, schema=schema, preserve_index=False)
    for other in (table, polars.from_arrow(table), polars.from_arrow(table).lazy()):
        assert found(nodes_of_private_keys(other, tree)) == slowly(rows, tree)


@given(rows=ROWS, max_contributions=st.integers(1, 3), seed=st.integers(0, 99))
def test_a_unit_keeps_so_many_records(rows, max_contributions, seed):
    frame = frame_of(rows).assign(person=np.arange(len(rows)) % 4)
    tree = TREES["below"]
    nodes = nodes_of_private_keys(
        frame, tree, privacy_unit="person", max_contributions=max_contributions, random_words=words(seed)
    )
    inside = frame.loc[[place in PLACES for place, _, _ in rows], "person"].value_counts()
    assert nodes.public_counts()[0].item() == inside.clip(upper=max_contributions).sum()
    everything = slowly(rows, tree)
    for level, most in zip(found(nodes), everything, strict=True):
        assert all(count <= most[path] for path, count in level.items())


def test_keys_are_equal_by_value_and_labels_are_sorted():
    frame = pd.DataFrame({"a": objects([2, 1, 1.0, True, "1", 10]), "b": objects([None] * 6)})
    nodes = nodes_of_private_keys(frame, PrivateKeys(columns=("a", "b")))
    assert sorted(nodes.counts[1].tolist()) == [1, 1, 1, 1, 2] and len(nodes.counts[2]) == 0
    numbers = pd.DataFrame({"a": [2, 1, 1, 10], "b": ["x"] * 4})
    nodes = nodes_of_private_keys(numbers, PrivateKeys(columns=("a", "b")))
    labels, rank = nodes.labels(1, np.arange(3))
    assert labels.take(np.argsort(rank)).tolist() == [1, 2, 10]


def test_labels_hold_no_other_key():
    frame = pd.DataFrame({"a": ["hidden", "shown"] * 3, "b": ["x"] * 6})
    nodes = nodes_of_private_keys(frame, PrivateKeys(columns=("a", "b")))
    labels = {str(nodes.labels(1, np.array([number]))[0][0]): number for number in range(2)}
    stored = pickle.dumps(nodes.labels(1, np.array([labels["shown"]])))
    assert b"shown" in stored and b"hidden" not in stored


def test_no_records_have_no_nodes():
    frame = pd.DataFrame({"a": objects([]), "b": objects([])})
    nodes = nodes_of_private_keys(frame, TREES["alone"])
    assert [level.tolist() for level in nodes.counts] == [[0], [], []]


@each("frame, error", [(pd.DataFrame({"a": ["x"]}), ColumnsError), (["a"], ArgumentError)])
def test_frames_that_cannot_be_counted_are_refused(frame, error):
    with pytest.raises(error):
        nodes_of_private_keys(frame, TREES["alone"])

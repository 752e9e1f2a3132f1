"""Records of implicit trees: counted as slowly, in every library, with the stated sensitivity."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.hierarchy.levels.prefixes import binary, prefixes
from pandas_dptree.ingest.prefixes import nonempty_levels, sorted_keys
from tests.helpers_cases import each
from tests.helpers_implicit import exact
from tests.helpers_random import fixed_words
from tests.strategies import objects

polars = pytest.importorskip("polars")
ADDRESSES = prefixes("ip", bits=[8, 16, 24, 32], notation="ipv4")
ZIPS = prefixes("zip", chars=[1, 3, 5], alphabet="0123456789")


# What is read


@given(st.lists(st.integers(0, 2**32 - 1), max_size=20), st.booleans())
def test_addresses_are_counted_as_slowly(values, as_text):
    texts = [".".join(str(value >> shift & 255) for shift in (24, 16, 8, 0)) for value in values]
    column = pd.Series(texts, dtype="str") if as_text else pd.Series(values, dtype=np.int64)
    for length, found in zip(ADDRESSES.lengths, exact(pd.DataFrame({"ip": column}), ADDRESSES), strict=True):
        expected: dict = {}
        for value in values:
            first = value >> (32 - length) << (32 - length)
            octets = ".".join(str(first >> shift & 255) for shift in (24, 16, 8, 0))
            expected[f"{octets}/{length}"] = expected.get(f"{octets}/{length}", 0) + 1
        assert found == expected


@given(st.lists(st.text("0129x é\0", max_size=7), max_size=20))
def test_texts_are_counted_as_slowly_and_short_ones_as_far_as_they_reach(texts):
    fitting = [text for text in texts if set(text[:5]) <= set("0123456789")]
    found = exact(pd.DataFrame({"zip": objects(texts)}), ZIPS)
    for length, level in zip(ZIPS.lengths, found, strict=True):
        reaching = [text[:length] for text in fitting if len(text) >= length]
        assert level == {text: reaching.count(text) for text in sorted(set(reaching))}
        assert list(level) == sorted(level)


@given(st.lists(st.integers(0, 2**64 - 1), max_size=20), st.sampled_from([3, 31, 63, 64]))
def test_numbers_are_counted_as_slowly(values, bits):
    values = [value >> (64 - bits) for value in values]
    for length, level in enumerate(
        exact(pd.DataFrame({"u": pd.Series(values, dtype=np.uint64)}), binary("u", bits=bits)), start=1
    ):
        cut = [value >> (bits - length) for value in values]
        assert level == {value: cut.count(value) for value in set(cut)}


@each("dtype", [object, "string[python]", "str"])
def test_a_text_with_a_nul_is_read_separately(dtype):
    """One row in front took all others with it: texts were C strings in pandas up to 3.0.0."""
    texts = ["12\0", "12", "12", "1.2.3.4\0", "1.2.3.4", "1.2.3.4", "1\0002", "12345\0", "12345", ""]
    for order in (texts, texts[::-1]):
        column = objects(order).astype(dtype)
        for values in (column, polars.Series(order)):
            make = pd.DataFrame if isinstance(values, pd.Series) else polars.DataFrame
            assert exact(make({"zip": values}), ZIPS) == [{"1": 4}, {"123": 2}, {"12345": 2}]
            assert exact(make({"ip": values}), ADDRESSES)[-1] == {"1.2.3.4/32": 2}


@each("make", [polars.from_pandas, lambda f: polars.from_pandas(f).lazy(),
                                  lambda f: polars.from_pandas(f).to_arrow()])  # fmt: skip
def test_records_of_every_library_give_the_same_counts(make):
    frame = pd.DataFrame(
        {
            "ip": ["1.2.3.4", "1.2.3.5", None, "x", "9.9.9.9"],
            "zip": ["12345", "1", "", "1x", "12399"],
            "u": [1, 2**63 - 1, 7, 0, 1],
            "person": ["a", "b", "a", None, "b"],
        }
    )
    for tree in (ADDRESSES, ZIPS, binary("u", bits=63)):
        assert exact(make(frame), tree) == exact(frame, tree)
        options = {"privacy_unit": "person", "max_contributions": 1}
        assert exact(make(frame), tree, **options) == exact(frame, tree, **options)


def test_records_are_dropped_first_and_bounded_then():
    frame = pd.DataFrame({"zip": ["x"] * 9 + ["1"] * 3 + ["2"], "who": ["a"] * 12 + [None]})
    for k in (1, 2, 5):
        assert exact(frame, ZIPS, privacy_unit="who", max_contributions=k)[0] == {"1": min(k, 3)}


# Privacy


@given(
    st.lists(st.tuples(st.integers(-1, 16), st.integers(0, 3)), max_size=25),
    st.lists(st.integers(-1, 16), max_size=6),
    st.integers(1, 3),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_one_unit_moves_no_level_by_more_than_the_sensitivity(rows, own, k, replace, seed):
    """For every key: neighbours through the real way of the data, in any order."""
    tree = binary("x", bits=4)
    frame = pd.DataFrame({"x": [x for x, _ in rows], "who": [who for _, who in rows]}, dtype=np.int64)
    neighbor = frame[frame["who"] != 0]
    if replace:
        neighbor = pd.concat([neighbor, pd.DataFrame({"x": pd.Series(own, dtype=np.int64), "who": 0})])
    levels = []
    for records in (frame, neighbor.sample(frac=1, random_state=1)):
        keys, counts = sorted_keys(
            records, tree, privacy_unit="who", max_contributions=k, random_words=fixed_words(seed)
        )
        found = nonempty_levels(keys, counts, tree)
        levels.append([dict(zip(*map(np.ndarray.tolist, level), strict=True)) for level in found])
    for here, there in zip(*levels, strict=True):
        moved = sum(abs(here.get(key, 0) - there.get(key, 0)) for key in here.keys() | there.keys())
        assert moved <= (2 * k if replace else k)

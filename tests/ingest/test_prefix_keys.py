"""Columns of any type are read as keys of prefixes, each value separately."""

import math

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.hierarchy.levels.prefixes import binary, prefixes
from pandas_dptree.ingest.prefix_keys import addresses
from pandas_dptree.ingest.readers import read_column
from tests.helpers_implicit import exact
from tests.strategies import objects, zoo

ADDRESSES = prefixes("ip", bits=[8, 16, 24, 32], notation="ipv4")
ZIPS = prefixes("zip", chars=[1, 3, 5], alphabet="0123456789")


def test_invalid_addresses_are_no_keys():
    wrong = [
        "", ".", "1.2.3", "1.2.3.4.5", "1.2.3.4.", ".1.2.3.4", "1..2.3", "256.1.1.1", "1.2.3.04", "00.1.1.1",
        "1.2.3.4\0", "1.2.3.4 ", "+1.2.3.4", "1.2.3.1234", "1.2.3.4.5.6.7.8.9", "١.2.3.4", "1.2.3.4/8",
        "255.255.255.2555", "1,2,3,4",
    ]  # fmt: skip
    right = ["0.0.0.0", "255.255.255.255", "10.20.30.40", "1.0.200.9"]
    numbers, fits = addresses([*wrong, *right])
    assert fits.tolist() == [False] * len(wrong) + [True] * len(right)
    assert numbers[fits].tolist() == [0, 2**32 - 1, 0x0A141E28, 0x0100C809]


@given(st.lists(zoo(), max_size=8), st.sampled_from([ADDRESSES, ZIPS, binary("u", bits=64)]))
def test_each_object_is_read_separately_and_none_raises(values, tree):
    together = read_column(objects(values), tree.read_as)
    for place, value in enumerate(values):
        keys, fits = read_column(objects([value]), tree.read_as)
        assert fits[0] == together[1][place]
        assert not fits[0] or keys[0] == together[0][place]


def test_numbers_of_every_type_give_the_same_keys():
    tree, values = prefixes("x", bits=[2, 4], notation="number"), [0, 5, 15, 5]
    expected = exact(pd.DataFrame({"x": values}), tree)
    for dtype in (
        "int8",
        "uint64",
        "float32",
        "float64",
        "Int16",
        "UInt8",
        "Float64",
        "int64[pyarrow]",
        object,
    ):
        assert exact(pd.DataFrame({"x": pd.Series(values).astype(dtype)}), tree) == expected, dtype
    odd = [*values, -1, 16, 2.5, math.nan, math.inf, -0.5, 1e300]
    assert exact(pd.DataFrame({"x": odd}), tree) == expected
    missing = pd.DataFrame({"x": pd.array([*values, None, -1, 16], dtype="Int64")})
    assert exact(missing, tree) == expected
    assert exact(missing.astype("category"), tree) == expected
    assert exact(pd.DataFrame({"x": [2**64 - 2048.0, 2.0**64]}), binary("x", bits=64))[-1] == {
        2**64 - 2048: 1
    }

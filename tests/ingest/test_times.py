"""Columns of any type are read as times."""

import numpy as np
import pandas as pd
import pytest

from pandas_dptree.hierarchy.bins import Bins
from pandas_dptree.ingest.times import times
from tests.helpers_cases import each
from tests.helpers_ingest import bins_of


@each("unit", ["s", "ms", "us", "ns"])
@each("kind", ["datetime64", "timedelta64"])
def test_times_of_any_unit_are_clipped_exactly(unit, kind):
    factor = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[unit]
    make = pd.Timestamp if kind == "datetime64" else pd.Timedelta
    for low, high in [(make.min.value, make.max.value), (-7, 8), (10**9 + 1, 10**9 + 9), (-(10**18), 10**18)]:
        bins = bins_of((make(low), make(high)), 5)
        near = [low // factor + d for d in (-2, -1, 0, 1, 2)] + [
            high // factor + d for d in (-2, -1, 0, 1, 2)
        ]
        values = [v for v in [*near, 0, 2**62, -(2**62), 2**63 - 1, -(2**63) + 1] if abs(v) < 2**63]
        column = pd.Series(np.array(values, dtype=np.int64).view(f"{kind}[{unit}]"))
        edges = bins.edges.view(np.int64).tolist()
        expected = [sum(v * factor >= edge for edge in edges[1:-1]) for v in values]
        assert bins.find(times(column, bins)).tolist() == expected
        assert (times(column, bins).dtype == bins.edges.dtype) and len(times(column[:0], bins)) == 0


@each("bounds", ["2020-01-01", pd.Timedelta(0)])
def test_a_text_is_no_time_whatever_its_bytes(bounds):
    pyarrow = pytest.importorskip("pyarrow")
    low = pd.Timestamp(bounds) if isinstance(bounds, str) else bounds
    raw = pyarrow.array([b"2020-01-01", b"\xff"])
    column = pd.Series(pd.arrays.ArrowStringArray(pyarrow.chunked_array([raw.view("string")])))
    assert np.isnat(times(column, Bins.of("x", bounds=(low, low + pd.Timedelta(9, "D")), bins=3))).all()

"""Columns from which levels are derived."""

import datetime
import math

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from tests.helpers_reading import leaves_read
from tests.strategies import Hostile

polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")
LIBRARIES = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: polars.from_pandas(frame),
    "polars-lazy": lambda frame: polars.from_pandas(frame).lazy(),
    "pyarrow": lambda frame: pyarrow.Table.from_pandas(frame),
}


def rng():
    return np.random.default_rng(0)


def leaf_keys(frame, by, places=None):
    """The keys of the leaf of each record that has one, in the order of the records."""
    domain = dpt.derived_domain(by, places)
    leaf = leaves_read(frame, domain)
    return domain.keys(len(domain.by)).iloc[leaf[leaf >= 0]].reset_index(drop=True)


UTC = datetime.UTC
ODD_TIMES = [
    ("2000-02-29", "2000-02-29", None),
    ("2000-02-29T23:59:59.999999", "2000-02-29", None),
    ("2000-02-29T23:30+00:00", None, "2000-03-01"),
    (datetime.date(2000, 12, 31), "2000-12-31", None),
    (datetime.datetime(2000, 1, 1, 12), "2000-01-01", None),
    (datetime.datetime(2000, 1, 1, 12, tzinfo=UTC), None, "2000-01-01"),
    (pd.Timestamp("2000-05-05", tz="Asia/Tokyo"), None, "2000-05-04"),
    (np.datetime64("2000-06-01T05", "h"), "2000-06-01", None),
    (np.datetime64("2000-06", "M"), "2000-06-01", None),
    *((value, None, None) for value in ("1999-12-31", "2001-01-01", "2000-02-30", "3/5/00", "", "NaT")),
    *((value, None, None) for value in (None, pd.NaT, pd.NA, math.nan, 2000, True, ("2000-01-01",), b"2000")),
    *((value, None, None) for value in (datetime.timedelta(1), datetime.time(1), Hostile(), object())),
    *((value, None, None) for value in (datetime.date.min, datetime.datetime.max, np.datetime64(2**60, "D"))),
]
PRODUCTS = pd.DataFrame(
    {
        "kind": ["fruit", "tool", "fruit", "tool"],
        "shelf": [2, 1, 1, 1],
        "product": ["pear", "saw", "kiwi", "axe"],
    }
)

"""A crossed table of keys of many types, with the numbers that it should have."""

import functools

import numpy as np
import pandas as pd

import pandas_dptree as dpt
from pandas_dptree.hierarchy.crossed_domain import cross
from pandas_dptree.output.crossed_frames import crossed_frame

MONTHS = pd.Series(pd.period_range("2023-12", periods=3, freq="M"))
KEYS = {
    "place": pd.DataFrame({"state": ["CA", "CA", "DC", "WA"], "county": ["Marin", "Kern", None, "Kern"]}),
    "when": pd.DataFrame({"year": MONTHS.dt.year.astype("int64"), "month": MONTHS}),
    "what": pd.DataFrame({"kind": pd.Categorical(["b", "a"], ["b", "a"]), "size_level": [3, 20]}),
    "age": pd.DataFrame({"years": pd.interval_range(0.0, 36.0, 2)}),
}
"""Text and a short path; periods; categories, and a key whose name ends like that of a level; intervals."""


@functools.cache
def domain():
    return cross({axis: dpt.Domain.from_frame(keys, by=list(keys)) for axis, keys in KEYS.items()})


def leaf_cells():
    """The keys of all leaf cells, in order."""
    ordered = [keys.sort_values(list(keys)) for keys in KEYS.values()]
    return functools.reduce(lambda left, right: left.merge(right, how="cross"), ordered)


def table_of(crossed, leaves, **more):
    """A table of counts of the leaf cells, and of further columns by margin."""
    sums = crossed.tree.roll_up(leaves)
    errors = [np.array([1.5 + level]) for level in range(len(sums))]
    axes = {name: list(axis.by) for name, axis in crossed.axes.items()}
    attrs = {"dp": {"mechanism": "gaussian", "axes": axes}}
    return crossed_frame(crossed, {"count": sums, "std_error": errors, **more}, attrs)


@functools.cache
def _whole():
    return table_of(domain(), 1 + np.arange(domain().tree.n_leaves))


def whole():
    """A table in which the n-th leaf cell holds n records."""
    return _whole().copy()

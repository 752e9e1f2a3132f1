"""Round trips of tables through files."""

import math

import numpy as np
import pandas as pd

import pandas_dptree as dpt

SUFFIXES = [".csv", ".parquet"]


def stated(table, plan=None):
    """Let a frame made by hand pass for a released table."""
    table.attrs = {"dp": {"epsilon": 1.5, "known": {"total": [1, None, True]}, "what": "é\ud800"}}
    if plan is not None:
        table.attrs["dp_plan"] = plan
    return table


def column(values, **options):
    """Make a table of one column beside its row numbers."""
    return stated(pd.DataFrame({"key": pd.Series(values, **options), "count": range(len(values))}))


def there_and_back(table, path):
    """Write a table, read it, and check that it is the same, each value by its type and its bits."""
    dpt.to_file(table, path)
    back = dpt.read_file(path)
    assert_same(back, table)
    return back


def assert_same(back, table):
    pd.testing.assert_frame_equal(back, table, check_exact=True)
    assert back.attrs == {name: table.attrs[name] for name in ("dp", "dp_plan") if name in table.attrs}
    assert back.dtypes.tolist() == table.dtypes.tolist()
    for place, kind in enumerate(table.dtypes):
        one, other = (list(frame.iloc[:, place]) for frame in (back, table))
        if kind.kind == "O" and not isinstance(kind, pd.CategoricalDtype):
            assert [(type(a), repr(a)) for a in one] == [(type(a), repr(a)) for a in other]
        elif isinstance(kind, np.dtype) and kind.kind == "f":
            assert [math.copysign(1, a) for a in one if a == 0] == [
                math.copysign(1, a) for a in other if a == 0
            ]

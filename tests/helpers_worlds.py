"""Awkward hierarchies, each as records in a frame and as counts in an array."""

import datetime
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import pandas_dptree as dpt

EXACT = 1e6
"""An epsilon that leaves no noise."""
Path = tuple[Hashable, ...]


def objects(values: Sequence[Any]) -> pd.Series:
    """Values as they are, tuples too."""
    column = np.empty(len(values), dtype=object)
    for row, value in enumerate(values):
        column[row] = value
    return pd.Series(column, dtype=object)


def leaves(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame(columns)


BERLIN_CLOCKS = ["2024-03-31 00:30", "2024-03-31 01:30", "2024-10-27 00:30", "2024-10-27 01:30"]
"""Before and after an hour that is skipped; and 02:30 on the clocks twice. In UTC."""
NONE_LIKE = ["None", "nan", "NaN", "<NA>", "NULL", "NaT", "NA", "", " ", "null", "-1"]
DEAR_WORLDS: dict[str, pd.DataFrame] = {
    "one long chain": leaves(**{f"k{i}": ["only"] for i in range(10)}),
    "ten levels": leaves(**{f"k{i}": [f"{leaf >> 9 - i}" for leaf in range(700, 712)] for i in range(10)}),
    "ten levels, ever shorter": leaves(
        **{f"k{i}": objects(["on" if leaf >= i else None if leaf < i - 1 else "end" for leaf in range(10)])
           for i in range(10)}
    ),
    "very long": leaves(a=["x" * 100_000, "x" * 99_999 + "y", ""], b=["y" * 50_000] * 3),
}  # fmt: skip
"""Those whose smaller likeness is among the others."""

WORLDS: dict[str, pd.DataFrame] = {
    "one level": leaves(a=["y", "x", "z"]),
    "single leaf": leaves(a=["x"], b=["y"]),
    "one chain": leaves(**{f"k{i}": ["only"] for i in range(5)}),
    "five levels": leaves(**{f"k{i}": [f"{leaf >> 4 - i}" for leaf in range(20, 28)] for i in range(5)}),
    "five levels, ever shorter": leaves(
        **{f"k{i}": objects(["on" if leaf >= i else None if leaf < i - 1 else "end" for leaf in range(5)])
           for i in range(5)}
    ),
    "ragged": leaves(
        a=["DC", "CA", "CA", "NY", "NY", "CA"],
        b=[None, "x", "y", "x", "x", "z"],
        c=[None, None, "p", "q", "p", None],
    ),
    "one name everywhere": leaves(a=["x", "x", "y"], b=["x", "y", "x"], c=["x", "x", "x"]),
    "slashes": leaves(a=["a/b", "a", "a/b", "/", ""], b=["c", "b/c", "d", "/", "a//b"]),
    "total": leaves(a=["total", "count", "level"], b=["total", "All", "std_error"]),
    "like None": leaves(a=NONE_LIKE, b=NONE_LIKE[::-1]),
    "numbers and text": leaves(a=objects([1, "1", 2, "two", "1.0", 2]), b=objects(["1", 1, "b", 2, 1, "2"])),
    "truths and numbers": leaves(a=objects([True, 1, "True", 0, False, "1"])),
    "whole floats": leaves(a=[1.0, 2.0, 2.0, 2.0**53], b=[1.0, -0.0, 0.5, 1e300]),
    "floats without end": leaves(a=[np.inf, -np.inf, 0.0, 5e-324]),
    "large numbers": leaves(a=objects([10**30, 10**30 + 1, -(10**30), 2**53 + 1, 2**53])),
    "unsigned numbers": leaves(a=np.array([2**64 - 1, 2**63, 0], dtype=np.uint64)),
    "truths": leaves(a=[True, False, False], b=[True, True, False]),
    "nullable": leaves(
        a=pd.array([2, 1, 1], "Int64"), b=pd.array([None, True, False], "boolean"),
        c=pd.array([None, "x", None], "string"),
    ),
    "missing numbers": leaves(a=[1, 2, 2], b=[np.nan, 1.0, 2.0]),
    "accents": leaves(a=["é", "e\u0301", "Å", "\u212b", "A\u030a", "É"], b=list("xxyyzz")),
    "right to left": leaves(
        a=["עברית", "العربية", "עברית", "\u202bx\u202c"], b=["תל אביב", "مكة", "חיפה", "x"]
    ),
    "pictures": leaves(
        a=["👩‍👩‍👧", "👩", "🇩🇪", "🇩", "\U0001fae9"], b=["👍🏽", "👍", "x", "\u200b", "\ufeffx"]
    ),
    "control characters": leaves(a=["a", "a\0", "a\0b", "\0", "a\n", "a\r\n", '"a"', "a,b", "\x1b[31m"]),
    "lone surrogates": leaves(
        a=objects(["\ud800", "\\ud800", "x", "\udfff"]), b=objects(["\ud800", 1, 2, "x"])
    ),
    "long": leaves(a=["x" * 1000, "x" * 999 + "y", ""], b=["y" * 500] * 3),
    "unused categories": leaves(
        a=pd.Categorical(["b", "a", "b"], ["c", "b", "a"]), b=pd.Categorical([3, 1, 7], [9, 7, 3, 1])
    ),
    "ordered categories": leaves(
        a=pd.Categorical(["high", "low", "mid"], ["low", "mid", "high", "top"], ordered=True), b=[1, 2, 3]
    ),
    "categories that end": leaves(a=pd.Categorical(["x", "y", "y"]), b=pd.Categorical([None, "q", "p"])),
    "zoned times": leaves(
        a=pd.to_datetime(BERLIN_CLOCKS, utc=True).tz_convert("Europe/Berlin"), b=["x", "x", "y", "y"]
    ),
    "leap days": leaves(
        year=[2023, 2024, 2024, 2024],
        day=pd.to_datetime(["2023-02-28", "2024-02-28", "2024-02-29", "2024-03-01"]),
    ),
    "dates": leaves(
        a=objects([datetime.date(2024, 2, 29), datetime.date(2023, 3, 1), datetime.date(1, 1, 1)])
    ),
    "times that end": leaves(a=["x", "y", "y"], b=pd.to_datetime([None, "2024-02-29", "2024-02-28"])),
    "durations": leaves(a=pd.to_timedelta(["1h", "60s", "1D", "-1ns"])),
    "intervals": leaves(i=pd.IntervalIndex.from_breaks([0, 10, 20, 30]), s=["m", "f", "m"]),
    "intervals of time": leaves(i=pd.IntervalIndex.from_breaks(pd.date_range("2024-02-28", periods=4))),
    "wide intervals": leaves(i=pd.IntervalIndex.from_breaks([2**53, 2**53 + 1, 2**53 + 2])),
    "open and closed": leaves(i=objects([pd.Interval(0, 1), pd.Interval(0, 1, "left"), pd.Interval(1, 2)])),
    "periods": leaves(
        y=pd.PeriodIndex(["2023", "2024", "2024"], freq="Y"),
        m=pd.PeriodIndex(["2023-02", "2024-02", "2024-03"], freq="M"),
    ),
}  # fmt: skip


def records_of(keys: pd.DataFrame, counts: Iterable[int]) -> pd.DataFrame:
    """One row for each record, in no order, with an index that says nothing."""
    rows = np.repeat(np.arange(len(keys)), list(counts))
    records = keys.iloc[np.random.default_rng(0).permutation(rows)]
    return records.set_axis([0] * len(records), axis=0)


def array_of(keys: pd.DataFrame, counts: Iterable[Any]) -> xr.DataArray:
    """One cell for each leaf; xarray would take the zone from a column of times, but not from an index."""
    coordinates = {
        name: ("cell", column.to_numpy() if column.dtype == object else pd.Index(column))
        for name, column in keys.items()
    }
    return xr.DataArray(np.asarray(counts), dims=["cell"], coords=coordinates)


Levels = dict[Hashable, list[tuple[Path, float]]]
"""For each level, in order, the path of each node and its count."""


def by_frame(keys: pd.DataFrame, counts: Iterable[int], **options: Any) -> Levels:
    by = list(keys)
    table = dpt.tree_counts(records_of(keys, counts), by, domain=keys, **options)
    levels: Levels = {}
    for depth, name in enumerate(["total", *by]):
        rows = table[table["level"] == name]
        paths = zip(*(labels(rows[key]) for key in by[:depth]), strict=True) if depth else [()]
        levels[name] = list(zip(paths, rows["count"].tolist(), strict=True))
    return levels


def by_array(keys: pd.DataFrame, counts: Iterable[int], **options: Any) -> Levels:
    by = list(keys)
    tree = array_of(keys, counts).dp.tree_counts(by, **options)
    levels: Levels = {}
    for depth, name in enumerate(["total", *by]):
        group = tree[name].to_dataset()
        paths = zip(*(labels(group[key].to_index()) for key in by[:depth]), strict=True) if depth else [()]
        levels[name] = list(zip(paths, group["count"].values.ravel().tolist(), strict=True))
    return levels


def labels(column: Any) -> list[Hashable]:
    """Labels as Python has them, none where they are missing; true and 1 differ."""
    plain = [
        None if value is None or value is pd.NA or value != value else value
        for value in column.astype(object)
    ]
    return [("truth", value) if isinstance(value, (bool, np.bool_)) else value for value in plain]

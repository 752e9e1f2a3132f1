"""Values of all types in records: which key, number, time or unit each one is. There is no noise."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import pandas_dptree as dpt
from tests.seeded.cases.register import case
from tests.seeded.data import EXACT, products, rng

UTC = datetime.UTC


def counted(values: Any, listed: Any) -> list[int]:
    """Count a column of records by a public list of keys."""
    frame = pd.DataFrame({"k": values}) if isinstance(values, pd.Series | list) else values
    places = pd.DataFrame({"k": listed})
    return dpt.tree_counts(frame, ["k"], domain=places, rng=rng(), **EXACT)["count"].tolist()


def objects(*values: Any) -> pd.Series:
    """Put values into a column as they are."""
    column = pd.Series([None] * len(values), dtype=object)
    for place, value in enumerate(values):
        column[place] = value
    return column


def in_arrow(*columns: Any, **named: Any) -> pa.Table:
    return pa.table({"k": columns[0]} if columns else named)


@case
def keys_of_several_types():
    day, span = datetime.date(2024, 2, 29), datetime.timedelta(hours=3)
    listed = objects(1, 2.5, "1", True, day, span, 10**30)
    seen = objects(
        1.0, np.int8(1), "1", np.str_("1"), np.True_, pd.Timestamp(day), np.datetime64("2024-02-29"),
        np.timedelta64(180, "m"), pd.Timedelta("3h"), 10**30, None, np.nan, pd.NaT, pd.NA, [1], object(), 1j,
        datetime.datetime(2024, 2, 29, tzinfo=UTC),
    )  # fmt: skip
    domain = dpt.Domain.from_frame(pd.DataFrame({"k": listed}), by=["k"])
    table = dpt.tree_counts(pd.DataFrame({"k": seen}), ["k"], domain=domain, rng=rng(), **EXACT)
    return {"labels": [repr(each) for each in domain.keys(1)["k"]], "counts": table["count"].tolist()}


@case
def keys_that_are_numbers():
    numbers = [1, 2, 2, 7]
    kinds = [
        "int8",
        "uint64",
        "float16",
        "float32",
        "float64",
        "Int64",
        "Float32",
        "int64[pyarrow]",
        "category",
    ]
    kinds += ["double[pyarrow]", "object"]
    arrow = {
        "dictionary": pa.array([1, 2, 2, None], pa.int32()).dictionary_encode(),
        "uint8": pa.array([1, 2, 2, None], pa.uint8()),
    }
    polars = {"Int128": pl.Int128, "UInt16": pl.UInt16, "Float32": pl.Float32}
    return (
        {kind: counted(pd.Series(numbers).astype(kind), [1, 2, 3]) for kind in kinds}
        | {kind: counted(in_arrow(values), [1, 2, 3]) for kind, values in arrow.items()}
        | {
            f"polars {kind}": counted(pl.DataFrame({"k": pl.Series([1, 2, 2, None]).cast(each)}), [1, 2, 3])
            for kind, each in polars.items()
        }
    )


@case
def keys_that_are_texts():
    texts = ["a", "b", "b", "Žižkov", None]
    listed = ["a", "b", "Žižkov"]
    kinds = ["object", "string[python]", "string[pyarrow]", "category", "str"]
    surrogates = objects("a", "\ud800", "\\ud800", "b")
    arrow = {
        "large": pa.array(texts, pa.large_string()),
        "view": pa.array(texts, pa.string_view()),
        "dictionary": pa.array(texts).dictionary_encode(),
        "runs": pa.RunEndEncodedArray.from_arrays(
            pa.array([1, 3, 5], pa.int32()), pa.array(["a", "b", None])
        ),
    }
    polars = {"String": pl.String, "Categorical": pl.Categorical, "Enum": pl.Enum(["Žižkov", "b", "a"])}
    return (
        {kind: counted(pd.Series(texts, dtype=object).astype(kind), listed) for kind in kinds}
        | {kind: counted(in_arrow(values), listed) for kind, values in arrow.items()}
        | {
            kind: counted(pl.DataFrame({"k": pl.Series(texts).cast(each)}), listed)
            for kind, each in polars.items()
        }
        | {"surrogates": counted(surrogates, objects("a", "\ud800", "\\ud800"))}
    )


@case
def keys_that_are_times():
    days = pd.Series(pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-02", None]))
    listed = pd.to_datetime(["2024-01-01", "2024-01-02"])
    zoned = days.dt.tz_localize("Europe/Berlin")
    plain = [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2), datetime.datetime(2024, 1, 2), None]
    arrow = {
        "date32": pa.array(plain, pa.date32()),
        "date64": pa.array(plain, pa.date64()),
        "timestamp": pa.array([None if pd.isna(day) else day for day in days], pa.timestamp("us")),
    }
    return (
        {unit: counted(days.astype(f"M8[{unit}]"), listed) for unit in ("s", "ms", "us", "ns")}
        | {kind: counted(in_arrow(values), listed) for kind, values in arrow.items()}
        | {
            "objects": counted(objects(*plain), listed),
            "zoned": counted(zoned, zoned[:2].dt.tz_convert("UTC")),
            "zoned objects": counted(objects(*zoned), zoned[:2]),
            "polars": counted(pl.DataFrame({"k": pl.Series(plain[:2]).cast(pl.Date)}), listed),
            "durations": counted(
                pd.to_timedelta(pd.Series([1, 2, 2]), unit="h"), objects(pd.Timedelta("2h"))
            ),
            "booleans": counted(pd.Series([True, None, False, True], dtype="boolean"), [True, False]),
        }
    )


def _number_columns() -> dict[str, pd.Series]:
    values = [1, 20, 3.5, -5]
    return {
        "float": pd.Series(values),
        "text": pd.Series(["1", " 20 ", "3.5", "-5", "x", None, "1_0", "inf"]),
        "category": pd.Series(["1", "20", "1", None], dtype="category"),
        "objects": objects(1, Decimal(20), Fraction(7, 2), True, "8", 10**400, -(10**400), 1j, None, b"3"),
        "boolean": pd.Series([True, None, False], dtype="boolean"),
        "arrow": pd.Series(pd.array([Decimal("1.5"), None], dtype=pd.ArrowDtype(pa.decimal128(9, 1)))),
        "half": pd.Series(np.array([0.5, np.nan, 9], dtype=np.float16)),
    }


@case
def numbers_of_all_types():
    def counts_of(column: pd.Series) -> dict[str, Any]:
        frame = pd.DataFrame({"x": column, "k": "a"})
        public: dict[str, Any] = {"domain": pd.DataFrame({"k": ["a"]}), "rng": rng(), **EXACT}
        return {
            "sum": dpt.tree_sums(frame, ["k"], columns="x", bounds=(-10, 10), granularity=0.5, **public)[
                "x"
            ].tolist(),
            "mean": dpt.tree_means(frame, ["k"], columns="x", bounds=(-10, 10), granularity=0.5, **public)[
                "x"
            ].tolist(),
            "histogram": dpt.histogram(frame, "x", bins=[-10, 0, 2, 10], rng=rng(), **EXACT)[
                "count"
            ].tolist(),
            "cut": dpt.tree_counts(frame, dpt.cut("x", [-10, 0, 2, 10]), rng=rng(), **EXACT)[
                "count"
            ].tolist(),
        }

    return {kind: counts_of(column) for kind, column in _number_columns().items()}


def _histogram(column: Any, bins: Sequence[Any]) -> list[int]:
    frame = column if isinstance(column, pl.DataFrame | pa.Table) else pd.DataFrame({"k": column})
    return dpt.histogram(frame, "k", bins=bins, rng=rng(), **EXACT)["count"].tolist()


@case
def times_of_all_types():
    edges = pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-04"])
    zoned = edges.tz_localize("Europe/Berlin")
    texts = ["1700-01-01", "2024-01-01", "2024-01-03", "2024-01-02", "2200-01-01"]
    times = pd.Series(pd.to_datetime(texts)).astype("M8[s]")
    spans = [pd.Timedelta(0), pd.Timedelta("1h"), pd.Timedelta("1D")]
    mixed = objects(
        datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 3), np.datetime64("2024-01-02"), pd.NaT,
        "2024-01-01", pd.Timestamp("2024-01-03", tz="UTC"), datetime.datetime.max, None, 5,
    )  # fmt: skip
    durations = objects(
        datetime.timedelta(hours=3), np.timedelta64(5, "m"), pd.Timedelta("2D"), None, "1h", 7
    )
    return {
        "seconds": _histogram(times, edges),
        "microseconds": _histogram(times.astype("M8[us]"), edges),
        "zoned": _histogram(times.dt.tz_localize("UTC"), zoned),
        "objects": _histogram(mixed, edges),
        "zoned objects": _histogram(mixed, zoned),
        "polars": _histogram(pl.DataFrame({"k": pl.from_pandas(times)}), edges),
        "dates": _histogram(pl.DataFrame({"k": pl.from_pandas(times).cast(pl.Date)}), edges),
        "durations": _histogram(durations, spans),
        "timedelta": _histogram(pd.Series(pd.to_timedelta(["3h", "5min", None, "-1D"])), spans),
    }


@case
def calendars_of_all_types():
    days = dpt.calendar("k", ["month", "day"], start="2024-01-01", end="2024-01-03")
    zoned = dpt.calendar("k", ["day"], start="2024-01-01", end="2024-01-02", timezone="America/New_York")

    def counts_of(column: Any, by: Any = days) -> list[int]:
        frame = column if isinstance(column, pl.DataFrame | pa.Table) else pd.DataFrame({"k": column})
        return dpt.tree_counts(frame, by, rng=rng(), **EXACT)["count"].tolist()

    starts = ["2024-01-01 23:30", "2024-01-02 00:00", None, "2023-12-31 00:00", "2024-01-04 00:00"]
    times = pd.Series(pd.to_datetime(starts))
    texts = ["2024-01-01", "2024-01-02T10:00", "20240103", "2024-01-01T00:00+00:00", "x", None, "2024-01-03 "]
    mixed = objects(*texts, datetime.date(2024, 1, 2), np.datetime64("2024-01-03"), pd.NaT, 5, times[0])
    return {
        "times": counts_of(times),
        "seconds": counts_of(times.astype("M8[s]")),
        "texts": counts_of(pd.Series(texts)),
        "objects": counts_of(mixed),
        "category": counts_of(pd.Series(texts, dtype="category")),
        "zoned": counts_of(times.dt.tz_localize("UTC"), zoned),
        "zoned texts": counts_of(objects("2024-01-01T23:00-05:00", "2024-01-02", "2024-01-02T03:00Z"), zoned),
        "polars": counts_of(pl.DataFrame({"k": pl.from_pandas(times)})),
        "arrow": counts_of(in_arrow(pa.array([datetime.date(2024, 1, 2), None], pa.date32()))),
    }


@case
def units_of_all_types():
    def counts_of(units: Any) -> list[int]:
        frame = pd.DataFrame({"k": ["a", "a", "b", "b", "b", "a"], "unit": units})
        options: dict[str, Any] = {"privacy_unit": "unit", "max_contributions": 1, "rng": rng(), **EXACT}
        return dpt.tree_counts(frame, ["k"], domain=pd.DataFrame({"k": ["a", "b"]}), **options)[
            "count"
        ].tolist()

    whose = [uuid.UUID(int=each) for each in (1, 1, 2, 2, 3, 1)]
    return {
        "numbers": counts_of([1, 1, 2, 2, 3, 1]),
        "texts": counts_of(pd.Series(["x", "x", "y", "y", "z", "x"])),
        "objects": counts_of(objects(*whose)),
        "category": counts_of(pd.Series(["x", "x", "y", "y", None, "x"], dtype="category")),
        "mixed": counts_of(objects(1, 1.0, "1", "1", None, Decimal(1))),
        "unhashable": counts_of(objects([1], [1], {}, {}, object(), None)),
        "strings": counts_of(pd.Series(["x", "x", "y", "y", "z", "x"], dtype="string[python]")),
    }


@case
def prefixes_of_all_types():
    def counts_of(column: Any, tree: Any) -> list[int]:
        frame = pd.DataFrame({"k": column})
        return dpt.tree_counts(frame, [tree], rng=rng(), **EXACT)["count"].tolist()

    bits, ips = (
        dpt.prefixes("k", bits=[1, 2], width=4, notation="number"),
        dpt.prefixes("k", bits=[1, 2], notation="ipv4"),
    )
    chars = dpt.prefixes("k", chars=[1, 2], alphabet="ab1")
    return {
        "numbers": counts_of([0, 7, 8, 15, 16, -1], bits),
        "floats": counts_of([0.0, 7.5, 8.0, np.nan, np.inf], bits),
        "objects": counts_of(objects(3, 9, "5", None, 15.0, True), bits),
        "unsigned": counts_of(pd.Series([3, 15], dtype="UInt8"), bits),
        "addresses": counts_of(objects("10.0.0.1", "200.1.1.1", "256.0.0.1", "1.2.3", 5, None), ips),
        "texts": counts_of(objects("ab", "a", "b1x", "zz", None, 11, "1b"), chars),
        "category": counts_of(pd.Series(["ab", "b1"], dtype="category"), chars),
        "mapping": dpt.tree_counts(
            pd.DataFrame({"product": pd.Series(["fig", "saw", "oak", None], dtype="category")}),
            dpt.mapping(products(), by=["kind", "product"]),
            rng=rng(),
            **EXACT,
        )["count"].tolist(),
    }

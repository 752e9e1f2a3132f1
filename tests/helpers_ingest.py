"""Records of many libraries and types, and how they are counted and added up."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from pandas_dptree.hierarchy.bins import Bins
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.values import canonical_codes
from pandas_dptree.ingest.contributions import leaf_totals
from pandas_dptree.ingest.frames import Records
from pandas_dptree.privacy.quantity import COUNT
from tests.helpers_random import words


def bins_of(bounds=None, bins=4):
    return Bins.of("x", bounds=bounds, bins=bins)


PARIS = "Europe/Paris"
STAMP, ZONED = pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-01", tz=PARIS)
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")


def counted(frame, domain, **options):
    return summed(frame, domain, [COUNT], **options)[0]


def listed_leaves(domain):
    codes = domain.path_codes(domain.tree.depth)
    return [
        tuple(None if code < 0 else label[code] for label, code in zip(domain.labels, leaf, strict=True))
        for leaf in zip(*codes, strict=True)
    ]


PUBLIC = {
    "text": ["1", "a", "a\0", "", "None", "nan", "2024-02-29", "é"],
    "int": [0, 1, 2**53, 2**53 + 1],
    "float": [0.0, 1.0, 0.1, np.inf, 2.0**53],
    "bool": [True, False],
    "time": [pd.Timestamp("2024-02-29"), pd.Timestamp(1)],
    "zoned": list(pd.to_datetime(["2024-02-29", "1970-01-01"], utc=True)),
    "duration": list(pd.to_timedelta([1, 86_400 * 10**9], unit="ns")),
    "interval": [pd.Interval(0, 1), pd.Interval(1, 2)],
    "period": [pd.Period("2024-02", "M")],
    "objects": [
        1, "1", True, 0.5, pd.Interval(0, 1), pd.Timestamp(1), "a", pd.Timedelta(1),
        pd.Period("2024-02", "M"), "\ud800",
    ],
}  # fmt: skip
DAY = 86_400_000
ARROW = {
    pyarrow.string(): ["a", "a\0", "", None, "é", "None"],
    pyarrow.int64(): [1, 2**53, 2**53 + 1, None, -(2**63)],
    pyarrow.uint64(): [1, 2**64 - 1, None],
    pyarrow.float64(): [0.5, -0.0, 0.0, float("nan"), None, float("inf"), 2.0**53],
    pyarrow.float32(): [0.5, 0.1, float("nan"), None],
    pyarrow.bool_(): [True, False, None],
    pyarrow.date32(): [1, 2**31 - 1, -(2**31), None],
    pyarrow.date64(): [DAY, 2**55 // DAY * DAY, None],
    pyarrow.timestamp("s"): [1, 2**61, -(2**61), None],
    pyarrow.timestamp("ns"): [1, 2, 2**62 + 1, None],
    pyarrow.timestamp("us", "Asia/Tokyo"): [1, 2**62, None],
    pyarrow.duration("ms"): [1, 2**61, None],
    pyarrow.time64("us"): [1, DAY * 1000 - 1, None],
    pyarrow.decimal128(9, 2): [Decimal("0.50"), Decimal("1"), None],
    pyarrow.binary(): [b"a", b"", None],
    pyarrow.dictionary(pyarrow.int32(), pyarrow.string()): ["a", "b", None],
}
PANDAS = {
    pyarrow.string(): "string", pyarrow.int64(): "Int64", pyarrow.uint64(): "UInt64",
    pyarrow.bool_(): "boolean",
    pyarrow.float64(): "float64", pyarrow.float32(): "float32",
    pyarrow.dictionary(pyarrow.int32(), pyarrow.string()): "category",
}  # fmt: skip


def pandas_of(array):
    """Bring an array of Arrow into a type of pandas' own."""
    if array.type in PANDAS:
        return pd.Series(array.to_pylist(), dtype=PANDAS[array.type])
    whole = array.cast(pyarrow.int64()).fill_null(np.iinfo(np.int64).min).to_numpy()
    series = pd.Series(
        whole.view(f"{'m' if pyarrow.types.is_duration(array.type) else 'M'}8[{array.type.unit}]")
    )
    zone = getattr(array.type, "tz", None)
    return series if zone is None else series.dt.tz_localize("UTC").dt.tz_convert(zone)


def in_categories(array):
    """Bring an array of Arrow into categories; pandas up to 3.0.0 would merge texts at a NUL."""
    text = array.type == pyarrow.string()
    return array.dictionary_encode().to_pandas() if text else pandas_of(array).astype("category")


LIBRARIES = {
    "pyarrow": lambda table: table,
    "pandas-arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas": lambda table: pd.DataFrame({name: pandas_of(table[name]) for name in table.column_names}),
    "pandas-category": lambda table: LIBRARIES["pandas"](table).assign(k=in_categories(table["k"])),
    "polars": polars.from_arrow,
    "polars-lazy": lambda table: polars.from_arrow(table).lazy(),
}


def types_in(library):
    """List the types whose values all have a place in a library."""
    if library.startswith("polars"):  # has no seconds: it would multiply them, and overflow
        return [kind for kind in ARROW if kind not in (pyarrow.date64(), pyarrow.timestamp("s"))]
    if library in ("pandas", "pandas-category"):
        return [kind for kind in ARROW if kind in PANDAS or str(kind).startswith(("timestamp", "duration"))]
    return list(ARROW)


def typed_domain(kind, values):
    array = pd.array(pyarrow.array(values, type=kind), dtype=pd.ArrowDtype(kind))
    return Domain.from_frame(pd.DataFrame({"k": array}), by=["k"])


def summed(frame, domain, values, *, privacy_unit=None, k=1, draw=None):
    return leaf_totals(
        frame, domain, values, privacy_unit=privacy_unit, max_contributions=k, random_words=draw or words()
    )


def encoded(values, kind):
    """Make a column of Arrow of two chunks, each with a dictionary or with runs of its own."""
    chunks = []
    for part in (values[:1], values[1:]):
        if pyarrow.types.is_dictionary(kind):
            held = pyarrow.array(part, type=kind.value_type)
            place = pyarrow.array(range(len(part)), type=kind.index_type)
            chunks.append(pyarrow.DictionaryArray.from_arrays(place, held))
        elif pyarrow.types.is_run_end_encoded(kind):
            held = pyarrow.array(part, type=kind.value_type)
            ends = pyarrow.array(range(1, len(part) + 1), type=kind.run_end_type)
            chunks.append(pyarrow.RunEndEncodedArray.from_arrays(ends, held))
        else:
            chunks.append(pyarrow.array(part, type=kind))
    return pyarrow.chunked_array(chunks if values else [], type=kind)


def lengths(frame, columns=("key",), **options):
    """List the lengths of the batches."""
    return [len(each) for each in Records(frame, columns).batches(**options)]


def forms(frame, **options):
    """List the canonical forms of the keys, batch by batch."""
    found = []
    for each in Records(frame, ["key"]).batches(**options):
        codes, keys = canonical_codes(each.column("key"))
        found += [None if code < 0 else keys[code] for code in codes.tolist()]
    return found

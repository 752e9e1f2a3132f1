"""Dataframes of Spark, read on this machine."""

import pandas as pd
import pytest

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.columns import kind_of
from pandas_dptree.hierarchy.values import UNKNOWN
from pandas_dptree.ingest.frames import Records, warn_if_released
from pandas_dptree.ingest.scan import spark_frames
from tests.helpers_cases import each
from tests.helpers_clusters import keys_of, rows_of

pyarrow = pytest.importorskip("pyarrow")
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")


VALUES = {
    "true": ("booleans", ("boolean", True)),
    "cast(9007199254740993 as bigint)": ("numbers", 2**53 + 1),
    "cast(0.5 as double)": ("numbers", 0.5),
    "cast(7 as decimal(38, 2))": ("decimals", UNKNOWN),
    "'a '": ("text", "a "),
    "collate('A', 'UTF8_LCASE')": ("text", "A"),
    "cast('a' as varchar(3))": ("text", "a"),
    "cast('a' as binary)": ("bytes", UNKNOWN),
    "date'2024-01-01'": ("times", ("time", 1704067200 * 10**9)),
    "timestamp_ntz'2024-01-01 00:00:00'": ("times", ("time", 1704067200 * 10**9)),
    "timestamp'2024-01-01 00:00:00Z'": ("times with a time zone", ("zoned time", 1704067200 * 10**9)),
    "interval 1 day": ("durations", ("duration", 86400 * 10**9)),
    "array(1)": ("objects", UNKNOWN),
}


def test_values_and_types(spark):
    names = [f"c{place}" for place in range(len(VALUES))]
    listed = ", ".join(
        f"if(id = 1, null, {value}) as {name}" for value, name in zip(VALUES, names, strict=True)
    )
    frame = spark.sql(f"select {listed} from range(2)")
    kinds = [kind_of(dtype) for dtype in Records(frame, names).types(names).values()]
    assert kinds == [kind for kind, _ in VALUES.values()]
    values = tuple(value for _, value in VALUES.values())
    assert rows_of(frame, names) == {values: 1, (None,) * len(values): 1}


def test_names_may_be_anything(spark):
    names = ["a.b", "A.b", "x y", "back`tick", "c0"]
    frame = spark.range(3).selectExpr(*(f"id + {place} as c{place}" for place in range(5))).toDF(*names)
    assert rows_of(frame, ["A.b", "c0"]) == {(1, 4): 1, (2, 5): 1, (3, 6): 1}
    records = Records(frame, ["back`tick", "a.b", "A.b"])
    assert records.cluster.columns == ["back`tick", "a.b", "A.b"]
    for place, name in ((3, "back`tick"), (0, "a.b"), (1, "A.b")):
        assert keys_of(records.cluster, name) == {("int", number + place): 1 for number in range(3)}
    assert records.n_rows is None and not records.in_memory and not records.read_once


@each("value", ["interval 1 month", "array(interval 1 month)", "make_interval(0, 1)"])
def test_types_that_workers_cannot_read_are_refused(spark, value):
    """Whether there are rows or not: an error that needs a row would tell that there is one."""
    frame = spark.sql(f"select 'a' as k, {value} as `the span`")
    for records in (frame, frame.limit(0)):
        with pytest.raises(ArgumentError, match="does not pass on, in the columns: 'the span'"):
            Records(records, ["k", "the span"])
        Records(records, ["k"])


@each("kind", ["datetime", "int96"])
def test_settings_by_which_one_date_stops_the_release_are_refused(spark, kind):
    """Before Spark 4 they are the default: it fails for dates before 1582."""
    name = f"spark.sql.parquet.{kind}RebaseModeInRead"
    before = spark.conf.get(name)
    try:
        spark.conf.set(name, "EXCEPTION")
        with pytest.raises(ArgumentError, match=f"{name}.*CORRECTED"):
            Records(spark.range(1), ["id"])
        spark.conf.set(name, "LEGACY")
        Records(spark.range(1), ["id"])
    finally:
        spark.conf.set(name, before)


def test_a_column_may_be_named_attrs(spark):
    warn_if_released(spark.sql("select 1 as attrs"))


def test_partitions_may_be_empty(spark):
    assert rows_of(spark.range(0), ["id"]) == {}
    assert rows_of(spark.range(3).repartition(5), ["id"]) == {(0,): 1, (1,): 1, (2,): 1}
    assert rows_of(spark.range(10, numPartitions=5).where("id >= 8"), ["id"]) == {(8,): 1, (9,): 1}


def test_the_zone_of_a_session_need_not_be_known():
    times = pyarrow.array([1, None], pyarrow.timestamp("us", "GMT+8"))
    table = spark_frames.in_utc(pyarrow.table({"a": times, "b": [1, 2]}))
    assert table.column("a").to_pylist() == [pd.Timestamp(1, unit="us", tz="UTC"), None]
    assert table.column("b").to_pylist() == [1, 2]

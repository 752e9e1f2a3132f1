"""Records of Spark are counted by its workers, with the values that they have."""

import datetime
import sys
from collections import Counter
from decimal import Decimal
from types import SimpleNamespace

import pandas as pd
import pytest

from pandas_dptree.errors import ArgumentError
from pandas_dptree.ingest.workers import on_spark
from pandas_dptree.ingest.workers.clusters import count_partitions, has_workers
from tests.helpers_cases import each
from tests.helpers_clusters import (
    PLANTED,
    CountForms,
    CountNumbers,
    DealRows,
    Fail,
    LocalSpark,
    LoseWorker,
    TaskContext,
    added,
    cloudpickle,
    first_rows,
    keys_of,
    rows,
    total,
    units_of,
)

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")


@each("length", [0, 1, 4, 5, 9])
@each("size", [1, 4, 100])
def test_packets_are_cut_and_joined(length, size):
    packets = [(2, b"abcdefghi"[:length]), (2, b"x"), (3, b"")]
    pieces = [
        on_spark.Piece(bucket, 0, 0, piece)
        for bucket, packet in packets
        for piece in on_spark._cut(packet, size)
    ]
    assert list(on_spark._packets(pieces)) == packets
    assert max(len(each.piece) for each in pieces) <= size + 1


def test_batches_are_joined(monkeypatch):
    monkeypatch.setattr(on_spark, "BATCH_ROWS", 5)
    batches = [pyarrow.RecordBatch.from_pydict({"c0": [n, n]}) for n in range(5)]
    joined = list(on_spark._joined(iter(batches), ("a.b",)))
    assert [len(each) for each in joined] == [6, 4]
    assert joined[1].column("a.b").tolist() == [3, 3, 4, 4]
    assert not list(on_spark._joined(iter([]), ("a",)))


@pytest.fixture
def local(monkeypatch):
    """Make a frame of what is used of Spark, in this process."""
    monkeypatch.setitem(sys.modules, "pyspark", SimpleNamespace(TaskContext=TaskContext))
    monkeypatch.setitem(sys.modules, "pyspark.cloudpickle", cloudpickle)

    def make(frame, n_parts=1, size=50, **conf):
        table = pyarrow.Table.from_pandas(frame, preserve_index=False)
        batches = table.to_batches(size) or [pyarrow.RecordBatch.from_pylist([], schema=table.schema)]
        return LocalSpark([batches[place::n_parts] for place in range(n_parts)], conf)

    return make


@pytest.mark.parametrize("n_parts", [1, 3, 30])
@pytest.mark.parametrize("limit", ["1", "7", "10000"])
def test_partitions_of_any_number_give_the_same(local, n_parts, limit):
    frame, expected = rows()
    settings = {"spark.sql.execution.arrow.maxRecordsPerBatch": limit, "spark.sql.shuffle.partitions": "4"}
    records = local(frame, n_parts, **settings)
    assert units_of(records, deal=DealRows("unit", "key", padding=3000)) == expected
    assert keys_of(records, "key") == {("str", key): n for key, n in frame["key"].value_counts().items()}
    nothing = local(frame.iloc[:0], n_parts)
    assert units_of(nothing) == keys_of(nothing, "key") == {}


@pytest.mark.parametrize("kind", [ValueError, MemoryError])
@pytest.mark.parametrize("place", ["deal", "work", "merge"])
def test_functions_that_fail_are_reported_without_values(local, place, kind):
    with pytest.raises(ArgumentError, match="more memory" if kind is MemoryError else "cannot be") as caught:
        units_of(local(rows(20)[0], 3), **{place: Fail(kind)})
    assert PLANTED not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None


def test_sessions_without_a_limit_are_refused(local):
    settings = {"spark.sql.execution.arrow.maxRecordsPerBatch": "0"}
    with pytest.raises(ArgumentError, match="without a limit"):
        units_of(local(rows(20)[0], 3, **settings))


def test_workers_need_the_same_version_of_this_package(local, monkeypatch):
    monkeypatch.setattr(sys.modules["pandas_dptree.ingest.workers.replies"], "__version__", "0.0")
    with pytest.raises(ArgumentError, match=r"not 0\.0"):
        units_of(local(rows(20)[0], 3))


@pytest.fixture
def frame_of(spark, tmp_path):
    """Make a Spark frame of an Arrow table, by way of a Parquet file."""

    def make(table):
        parquet.write_table(table, tmp_path / "table.parquet")
        return spark.read.parquet(str(tmp_path / "table.parquet"))

    return make


@pytest.fixture
def records(frame_of):
    """Rows of units in a Spark frame, shuffled."""
    return frame_of(pyarrow.Table.from_pandas(rows()[0])).repartition(6)


@pytest.mark.slow
def test_units_and_keys_are_those_of_one_frame(records):
    frame, expected = rows()
    assert has_workers(records)
    assert units_of(records) == expected
    assert units_of(records.limit(0)) == {}
    assert keys_of(records, "key") == {("str", key): n for key, n in frame["key"].value_counts().items()}


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["7", "100000"])
def test_batches_of_any_size_give_the_same(spark, records, limit):
    """Packets are cut, so that they fit into Arrow batches of so many rows."""
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    spark.conf.set(name, limit)
    try:
        assert units_of(records, deal=DealRows("unit", "key", padding=3000)) == rows()[1]
    finally:
        spark.conf.unset(name)


@pytest.mark.slow
def test_values_are_those_of_the_file(frame_of):
    """Text with any case, blanks and characters, whole numbers beside missing ones, decimals, and dates."""
    values = {
        "a.b `c`": ["A", "a", "a ", "é", "e\u0301", "", "\0", None],
        "number": [2**53 + 1, 2**53, None, -1, 0, 1, 2, 3],
        "decimal": [*map(Decimal, ["1.10", "-0.01", "0.00", "7.00", "9.99", "123.45", "0.50"]), None],
        "day": [datetime.date(1600 + 100 * year, 1, 1) for year in range(7)] + [None],
        "blob": [b"\xff", b"", None, *[b"a"] * 5],
        "flag": [True, False, None, True, True, True, True, True],
    }
    frame = frame_of(pyarrow.table(values))
    for name, given in values.items():
        expected = Counter("missing" if each is None else str(each) for each in given)
        assert keys_of(frame, name, count=CountNumbers(name)) == expected, name


@pytest.mark.slow
@pytest.mark.parametrize("zone", ["UTC", "Europe/Paris", None])
def test_times_do_not_depend_on_the_session(frame_of, zone):
    """Its time zone is that of Los Angeles. A time with a zone arrives in UTC, one without as it is."""
    times = ["2024-03-10 02:30:00", "2024-11-03 01:30:00", "1900-01-01 00:00:00.000001", None]
    column = pd.Series(pd.to_datetime(times, format="ISO8601")).astype("datetime64[us]")
    column = column if zone is None else column.dt.tz_localize("UTC").dt.tz_convert(zone)
    frame = frame_of(pyarrow.Table.from_pandas(pd.DataFrame({"time": column})))
    expected = column if zone is None else column.dt.tz_convert("UTC")
    found = keys_of(frame, "time", count=CountNumbers("time"))
    assert found == {**dict.fromkeys(map(str, expected.dropna()), 1), "missing": 1}


@pytest.mark.slow
def test_collations_do_not_decide_which_texts_are_equal(spark):
    if spark.version < "4":
        pytest.skip("this Spark has no collations")
    frame = spark.sql("SELECT collate(k, 'UTF8_LCASE') AS k FROM VALUES ('a'), ('A'), ('A ') AS t(k)")
    assert keys_of(frame, "k") == {("str", "a"): 1, ("str", "A"): 1, ("str", "A "): 1}


ODD_VALUES = {
    "bigint": ("1, 7, 9007199254740993", "null, -9223372036854775808, 9223372036854775807"),
    "float": ("1, 0.5", "null, double('NaN'), -0D, 1e-45, -double('inf')"),
    "double": ("1, 0.5, 9007199254740992", "null, double('NaN'), -0D, 5e-324, double('inf')"),
    "decimal(38, 2)": ("1, 1.5, 9007199254740993", "null, 0.01, 1e35, -1e35"),
    "decimal(38, 38)": ("0.5, 0.1", "null, 1e-38"),
    "boolean": ("true, false", "null"),
    "string": (
        "'1', '01', 'a', 'A', 'a '",
        "null, '', 'a\\0', 'x', repeat('x', 10000), 'e\\u0301', '\u00e9', cast(x'ff' as string), "
        "cast(x'61eda080' as string), '=HYPERLINK(1)'",
    ),
    "binary": ("x'61', x''", "null, x'ff', x'6100'"),
    "date": ("date'2024-02-29'", "null, date'0001-01-01', date_from_unix_date(2147483647)"),
    "timestamp": (
        "timestamp'2024-11-03 08:30:00Z', timestamp'2024-11-03 09:30:00Z'",
        "null, timestamp_micros(9223372036854775807), timestamp_micros(-9223372036854775808), "
        "timestamp'1500-01-01 00:00:00Z', timestamp'9999-12-31 23:59:59.999999Z'",
    ),
    "timestamp_ntz": (
        "timestamp_ntz'2024-03-10 02:30:00'",
        "null, timestamp_ntz'0001-01-01 00:00:00', timestamp_ntz'290000-01-01 00:00:00'",
    ),
    "interval day to second": ("interval '1' day", "null, make_dt_interval(106751990)"),
    "array<int>": ("array(1)", "null, array(), array(null)"),
    "map<string, int>": ("map('a', 1)", "null, map()"),
    "struct<a: int>": ("named_struct('a', 1)", "null, named_struct('a', null)"),
}
"""For each type some values, and odd values."""

SETTINGS = [
    {},
    {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "3",
        "spark.sql.session.timeZone": "+05:45",
    },
]


@pytest.mark.slow
@each("settings", SETTINGS)
def test_odd_values_change_no_other(spark, settings):
    n_rows, n_odd = 30, 10

    def forms(stop):
        listed = [
            f"CAST(IF(id < {n_rows}, array({plain})[id % size(array({plain}))], "
            f"array({odd})[id % size(array({odd}))]) AS {kind}) AS c{place}"
            for place, (kind, (plain, odd)) in enumerate(ODD_VALUES.items())
        ]
        frame = spark.range(0, stop, numPartitions=2).selectExpr(*listed)
        return Counter(
            total(count_partitions(frame, frame.columns, count=CountForms(tuple(frame.columns)), merge=added))
        )

    before = {name: spark.conf.get(name) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        without, together = forms(n_rows), forms(n_rows + n_odd)
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
    assert without <= together
    differences = Counter((form[0], form[1]) for form in (together - without).elements())
    assert len(differences) >= 2 * len(ODD_VALUES) and max(differences.values()) == n_odd


@pytest.mark.slow
@pytest.mark.parametrize("place", ["deal", "work", "merge"])
def test_a_lost_worker_changes_nothing(records, tmp_path, place):
    """It is killed within a task, which Spark tries again."""
    function = {"deal": DealRows("unit", "key"), "work": first_rows, "merge": added}[place]
    lose = LoseWorker(function, str(tmp_path / "lost"))
    assert units_of(records, **{place: lose}) == rows()[1]
    assert (tmp_path / "lost").exists()


@pytest.mark.slow
def test_no_error_or_log_has_a_value(spark, records, capfd):
    from pyspark.sql.functions import when

    records = records.withColumn("key", when(records.unit == 3, PLANTED).otherwise(records.key))
    for place in ("deal", "work", "merge"):
        with pytest.raises(ArgumentError, match="cannot be counted") as caught:
            units_of(records, **{place: Fail()})
        assert caught.value.__cause__ is None and caught.value.__context__ is None
        assert PLANTED not in str(caught.value)
    assert units_of(records)["units"] == rows()[1]["units"]
    log = spark.log_path.read_text("utf-8", errors="replace")
    assert PLANTED not in log + "".join(capfd.readouterr())


@pytest.mark.slow
def test_an_error_of_spark_has_no_value(records):
    """Spark itself logs it."""
    broken = records.selectExpr("unit", "raise_error('logged by Spark') AS key")
    with pytest.raises(ArgumentError, match="since pyspark failed") as caught:
        units_of(broken)
    assert "logged" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None

"""Clusters count what this process counts, whatever is lost, done twice, shuffled, or of another type."""

import importlib
import os
import secrets
import sys
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

import pandas_dptree as dpt
from pandas_dptree.ingest import reading
from pandas_dptree.ingest.scan import dask_frames
from pandas_dptree.ingest.workers import clusters
from tests.helpers_clusters import (
    AddByte,
    LocalSpark,
    LoseShuffled,
    LoseWorker,
    TaskContext,
    cloudpickle,
    first_time,
)
from tests.helpers_random import fixed_words, rng
from tests.helpers_units import POOLS, ROWS, VERBS, added, frame_of, parts_of, sums
from tests.strategies import objects

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")


def in_dask(parts):
    """Make a frame of dask whose partitions are these, each with its own types."""
    dask = pytest.importorskip("dask", reason="no dask: pip install dask distributed")
    dataframe = pytest.importorskip("dask.dataframe")
    with dask.config.set({"dataframe.convert-string": False}):
        return dataframe.from_delayed(
            [dask.delayed(part) for part in parts], meta=parts[0].iloc[:0], verify_meta=False
        )


def in_local_spark(parts):
    batches = [pyarrow.RecordBatch.from_pandas(part, preserve_index=False) for part in parts]
    return LocalSpark([[batch] for batch in batches], {"spark.sql.shuffle.partitions": "3"})


def arrow(kind, convert=list):
    return lambda values: pd.Series(pyarrow.array(convert(values), kind), dtype=pd.ArrowDtype(kind))


IN_ARROW = {
    "whole": [
        arrow(pyarrow.int64()), arrow(pyarrow.int8()), arrow(pyarrow.decimal128(38, 2)),
        arrow(pyarrow.float64(), lambda values: [-0.0 if value == 0 else float(value) for value in values]),
    ],
    "text": [arrow(pyarrow.string()), arrow(pyarrow.dictionary(pyarrow.int8(), pyarrow.string()))],
}  # fmt: skip


@contextmanager
def counted_by_workers(frame):
    """Have the code of workers count this frame, in this process, in place of any other; yield replies."""

    replies = []

    def counted(count):
        def call(_, columns, **options):
            for reply in count(frame, columns, **options):
                replies.append(reply)
                yield reply

        return call

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "pyspark", SimpleNamespace(TaskContext=TaskContext))
        patch.setitem(sys.modules, "pyspark.cloudpickle", cloudpickle)
        patch.setattr(reading, "has_workers", lambda _: True)
        patch.setattr(reading, "count_partitions", counted(clusters.count_partitions))
        patch.setattr(reading, "count_buckets", counted(clusters.count_buckets))
        yield replies


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("engine", ["dask", "spark"])
@settings(max_examples=5, deadline=None)
@given(rows=ROWS, k=st.integers(1, 3), data=st.data())
def test_units_add_up(engine, verb, pool, rows, k, data):
    """Whatever their types in each partition, and however rows are shuffled: each adds at most k rows."""
    values, holders = POOLS[pool]
    rows = [(values[unit % len(values)], key, x) for unit, key, x in rows]
    bounding = {"privacy_unit": "u", "max_contributions": k, "random_words": fixed_words(0)}
    everyone = frame_of(rows)
    parts = list(parts_of(data, rows, holders if engine == "dask" else IN_ARROW[pool])) or [everyone]
    with counted_by_workers(in_dask(parts) if engine == "dask" else in_local_spark(parts)):
        found = added([verb(everyone, **bounding)])
    alone = [verb(everyone[everyone["u"] == unit], **bounding) for unit in values]
    assert found == added(alone)
    if verb is sums:
        assert all(sum(n for (q, _), n in each.items() if q == 0) <= k for each in alone)


@pytest.mark.parametrize("engine", [in_dask, in_local_spark])
@pytest.mark.parametrize("unit", [None, "u"])
def test_the_driver_gets_numbers_of_leaves(engine, unit):
    """And no unit, nor any key that is not public."""
    rows = [(f"planted-{unit}", key, 1.0) for unit in range(50) for key in ["a", "b", "planted"]]
    bounding = {"privacy_unit": unit, "max_contributions": 2, "random_words": fixed_words(0)}
    parts = [frame_of(rows[:40]), frame_of(rows[40:])]
    with counted_by_workers(engine(parts)) as replies:
        assert sums(frame_of(rows), **bounding)[0, 0] == 50
    assert replies and len(replies) <= 8
    assert all(b"planted" not in reply and len(reply) < 2000 for reply in replies)


N_PARTS = 8


def records():
    """Make records of units of up to a hundred rows."""
    random = rng(1)
    unit = random.geometric(0.05, 3000)
    return pd.DataFrame({
        "u": unit, "k": objects(random.choice(list("abcd"), len(unit)).tolist()),
        "x": random.integers(-3, 9, len(unit)).astype(float),
    })  # fmt: skip


def mixed_parts():
    """Divide the records into partitions of units that are of another type in each."""
    frame, holders = records(), POOLS["whole"][1]
    chosen = [*holders[:1], *holders[2:4], *holders[7:10]]
    parts = [frame.iloc[place::N_PARTS].reset_index(drop=True) for place in range(N_PARTS)]
    return [
        part.assign(u=chosen[place % len(chosen)](part["u"].tolist())) for place, part in enumerate(parts)
    ]


def release(frame):
    """Release a table; the same noise for each frame."""
    keys = pd.DataFrame({"k": list("abc")})
    return dpt.tree_counts(
        frame, ["k"], epsilon=1.0, domain=keys, privacy_unit="u", max_contributions=2, rng=rng(0)
    )


def check(frame, place, function):
    """Check what is counted while a function is called in place of one of the workers, for each verb."""
    assert_frame_equal(release(frame), release(records()))
    bounding = {"privacy_unit": "u", "max_contributions": 2, "random_words": fixed_words(3)}
    for name, verb in VERBS.items():
        with replaced(place, partial(function, verb=name)):
            found = verb(frame, **bounding)
        assert found == verb(records(), **bounding), name


@contextmanager
def replaced(place, function):
    """Replace the function that workers call in some place."""
    made = getattr(reading, place)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, place, lambda bound: function(made(bound)))
        yield


PLACES = ["DealPartition", "CountBucket", "Merge"]


@pytest.fixture
def of_functions(monkeypatch):
    """Accept frames of dask whose partitions were made by functions."""
    monkeypatch.setattr(dask_frames, "exact_frame", lambda frame, columns, argument: frame[list(columns)])


@pytest.mark.slow
def test_a_worker_of_dask_is_killed(of_functions, cluster, tmp_path):
    """While it reads records, whose units are of another type in each partition."""
    marker = str(tmp_path / "killed")

    def kill_once(part):
        if first_time(marker):
            os._exit(1)
        return part

    frame = in_dask(mixed_parts())
    frame = frame.map_partitions(kill_once, meta=frame._meta, enforce_metadata=False)
    assert_frame_equal(release(frame), release(records()))
    assert not first_time(marker)


@pytest.mark.nightly
@pytest.mark.parametrize("place", PLACES)
def test_workers_of_dask_are_killed(of_functions, cluster, tmp_path, place):
    """While they deal, count and merge."""
    check(in_dask(mixed_parts()), place, lambda each, verb: LoseWorker(each, str(tmp_path / verb)))
    assert not any(first_time(str(tmp_path / verb)) for verb in VERBS)


@pytest.fixture
def in_spark(spark, tmp_path):
    """A frame of Spark of the records, in several partitions."""
    parquet.write_table(pyarrow.Table.from_pandas(records()), tmp_path / "records.parquet")
    return spark.read.parquet(str(tmp_path / "records.parquet")).repartition(N_PARTS)


def test_tasks_of_spark_fail(in_spark, tmp_path):
    """One of them, twice: it reads some of its rows, fails, and is tried again."""
    task_context = pytest.importorskip("pyspark").TaskContext

    def fail_twice(batches):
        task = task_context.get()
        for batch in batches:
            yield batch.slice(0, len(batch) // 2)
            if task.partitionId() == 1 and task.attemptNumber() < 2:
                raise RuntimeError("failed")
            yield batch.slice(len(batch) // 2)

    failing = in_spark.coalesce(2).mapInArrow(fail_twice, in_spark.schema)
    assert_frame_equal(release(failing), release(records()))


@pytest.mark.nightly
@pytest.mark.parametrize("place", PLACES)
def test_workers_of_spark_are_killed(in_spark, tmp_path, place):
    check(in_spark, place, lambda each, verb: LoseWorker(each, str(tmp_path / verb)))
    assert not any(first_time(str(tmp_path / verb)) for verb in VERBS)


@pytest.mark.slow
def test_stages_of_spark_are_run_again(in_spark, spark, tmp_path):
    """What was dealt is lost once some of it was counted, so that Spark deals again."""
    shuffled = spark.log_path.parent
    dealt = tmp_path / "dealt"
    deal_again = replaced("DealPartition", lambda each: AddByte(each, str(dealt)))
    lose = replaced("CountBucket", lambda each: LoseShuffled(each, str(shuffled), str(tmp_path / "lost")))
    with deal_again, lose:
        assert_frame_equal(release(in_spark), release(records()))
    assert len(dealt.read_bytes()) > N_PARTS


@pytest.mark.slow
def test_rows_that_move_at_random_count_once(spark, tmp_path):
    """Spark notices that they are in other partitions when it deals again, and counts all of them again."""
    if spark.version < "4.3":
        pytest.skip("this Spark does not compare what it shuffles with what it had shuffled before")
    udf = importlib.import_module("pyspark.sql.functions").udf(lambda _: secrets.randbelow(100), "int")
    frame = spark.range(2000).selectExpr("'a' AS k", "1D AS x", "id")
    moving = frame.withColumn("place", udf.asNondeterministic()("id")).repartition(N_PARTS, "place")
    lost = tmp_path / "lost"
    with replaced("Merge", lambda each: LoseShuffled(each, str(spark.log_path.parent), str(lost))):
        assert sums(moving)[0, 0] == 2000
    assert lost.exists()

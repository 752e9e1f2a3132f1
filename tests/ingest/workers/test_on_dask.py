"""Records of dask are counted where dask computes, with the values that they have."""

import datetime

import numpy as np
import pandas as pd
import pytest

from pandas_dptree.errors import ArgumentError
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.workers import on_dask
from pandas_dptree.ingest.workers.clusters import count_partitions, has_workers
from tests.helpers_clusters import (
    N_BUCKETS,
    PLANTED,
    CountKeys,
    CountNumbers,
    DealRows,
    Fail,
    LoseWorker,
    added,
    first_rows,
    keys_of,
    rows,
    units_of,
)

dask = pytest.importorskip("dask", reason="no dask: pip install dask distributed")
dataframe = pytest.importorskip("dask.dataframe", reason="no dask: pip install dask distributed")
parquet = pytest.importorskip("pyarrow.parquet")

ODD = 2**53 + 1


@pytest.fixture(params=["synchronous", "threads"])
def scheduler(request):
    with dask.config.set(scheduler=request.param):
        yield request.param


def parts_of(*parts):
    """A dask frame of these partitions as they are."""
    with dask.config.set({"dataframe.convert-string": False}):
        return dataframe.from_delayed(
            [dask.delayed(part) for part in parts], meta=parts[0].iloc[:0], verify_meta=False
        )


@pytest.mark.parametrize("n_parts", [1, 20])
def test_units_and_keys_are_those_of_one_frame(scheduler, n_parts):
    frame, expected = rows()
    distributed = dataframe.from_pandas(frame.sample(frac=1, random_state=0), npartitions=n_parts, sort=False)
    assert not has_workers(distributed)
    assert units_of(distributed) == expected
    assert keys_of(distributed, "key") == {("str", key): n for key, n in frame["key"].value_counts().items()}


def test_many_partitions_take_few_tasks(scheduler, monkeypatch):
    """Packets of several partitions are joined, and buckets are worked on in groups."""
    monkeypatch.setattr(on_dask, "MOST_BUNDLES", 4)
    monkeypatch.setattr(on_dask, "MOST_PIECES", 12)
    frame, expected = rows()
    assert units_of(dataframe.from_pandas(frame, npartitions=30)) == expected


def test_partitions_keep_their_types(scheduler):
    """Each partition is read by its own type, whatever type dask expects, and objects stay what they are."""
    day = datetime.date(2024, 5, 17)
    frame = parts_of(
        pd.DataFrame({"key": np.array([ODD, 2], dtype=np.int64)}),
        pd.DataFrame({"key": [2.5, -0.0]}),
        pd.DataFrame({"key": pd.Series([day, ODD, "x"], dtype=object)}),
        pd.DataFrame({"key": []}),
    )
    assert keys_of(frame, "key") == {
        ("int", ODD): 2, ("int", 2): 1, ("float", 2.5): 1, ("float", 0.0): 1,
        ("date", day): 1, ("str", "x"): 1,
    }  # fmt: skip


def test_a_frame_without_records_is_counted(scheduler):
    empty = parts_of(pd.DataFrame({"unit": [], "key": []}), pd.DataFrame({"unit": [], "key": []}))
    assert keys_of(empty, "key") == {}
    assert units_of(empty) == {}


def test_large_partitions_are_read_in_batches(scheduler, monkeypatch):
    monkeypatch.setattr(on_dask, "MOST_ROWS", 100)
    frame, expected = rows()
    assert units_of(dataframe.from_pandas(frame, npartitions=2)) == expected


@pytest.fixture(params=[None, "arrow"])
def with_missing(request, tmp_path):
    """Whole numbers in two Parquet files, one of which lacks one."""
    pyarrow = pytest.importorskip("pyarrow")
    for name, numbers in {"a": [ODD, 7, None], "b": [ODD, 7, 8]}.items():
        table = pyarrow.table({"key": pyarrow.array(numbers, pyarrow.int64()), "other": [0, 1, 2]})
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    return lambda **options: dataframe.read_parquet(tmp_path, filesystem=request.param, **options)


def test_a_missing_number_does_not_round_others(with_missing):
    """dask would read the numbers of its partition as floats, where 2**53 + 1 is 2**53."""
    expected = {str(ODD): 2, "7": 2, "8": 1, "missing": 1}
    for frame in (with_missing(), with_missing(dtype_backend="pyarrow")):
        for chosen, numbers in ((frame, expected), (frame[frame["other"] < 2], {str(ODD): 2, "7": 2})):
            cluster = Records(chosen, ["key"]).cluster
            assert keys_of(cluster, "key", count=CountNumbers("key")) == numbers


@pytest.mark.parametrize(
    "fail", [{"deal": Fail()}, {"work": Fail()}, {"merge": Fail()}, {"deal": DealRows("unit", "nothing")}]
)
def test_no_error_has_a_value(scheduler, fail, caplog, capfd, recwarn):
    frame, _ = rows(20)
    with pytest.raises(ArgumentError) as caught:
        units_of(dataframe.from_pandas(frame.replace("k00", PLANTED), npartitions=20), **fail)
    assert "cannot be counted" in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert PLANTED not in caplog.text + "".join(capfd.readouterr()) + str([each.message for each in recwarn])


def test_an_error_of_dask_has_no_value(scheduler, caplog, capfd):
    frame, _ = rows(20)
    mixed = frame.assign(other=[PLANTED, *range(len(frame) - 1)])
    broken = dataframe.from_pandas(mixed, npartitions=3)
    with pytest.raises(ArgumentError, match="since dask failed") as caught:
        units_of(broken[broken["other"] > 0])
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert PLANTED not in str(caught.value) + caplog.text + "".join(capfd.readouterr())


def test_memory_errors_say_so(scheduler):
    frame, _ = rows(20)
    with pytest.raises(ArgumentError, match="more memory"):
        keys_of(dataframe.from_pandas(frame, npartitions=2), "key", count=Fail(MemoryError))


def test_buckets_are_checked(scheduler):
    frame, _ = rows(20)
    with pytest.raises(ArgumentError):
        units_of(dataframe.from_pandas(frame, npartitions=2), deal=lambda batches: iter([(N_BUCKETS, b"")]))


@pytest.mark.slow
def test_a_cluster_counts_the_same(cluster):
    frame, expected = rows()
    frame = frame.convert_dtypes(dtype_backend="pyarrow")
    distributed = dataframe.from_pandas(frame, npartitions=9)
    assert has_workers(distributed)
    assert units_of(distributed) == expected
    with dask.config.set(scheduler="threads"):
        assert not has_workers(distributed)


@pytest.mark.slow
def test_large_functions_are_sent_once(cluster, monkeypatch):
    monkeypatch.setattr(on_dask, "LARGE", 10)
    frame, expected = rows()
    assert units_of(dataframe.from_pandas(frame, npartitions=9)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("place", ["deal", "work", "merge"])
def test_a_lost_worker_changes_nothing(cluster, tmp_path, place):
    """It is killed within a task, with what it has already counted; another one counts that again."""
    frame, expected = rows()
    function = {"deal": DealRows("unit", "key"), "work": first_rows, "merge": added}[place]
    lose = LoseWorker(function, str(tmp_path / "lost"))
    assert units_of(dataframe.from_pandas(frame, npartitions=30), **{place: lose}) == expected
    assert (tmp_path / "lost").exists()


@pytest.mark.slow
def test_nothing_remains_on_a_cluster(cluster):
    frame, _ = rows()
    tallies = count_partitions(
        dataframe.from_pandas(frame, npartitions=9), ["key"], count=CountKeys("key"), merge=added
    )
    next(tallies)
    tallies.close()
    cluster.run(lambda: None)
    assert not cluster.futures


@pytest.mark.slow
def test_logs_of_a_cluster_have_no_value(cluster, capfd):
    """Neither those that our functions raise, nor those in what they hold."""
    frame, _ = rows(20)
    for fail in ({"deal": Fail()}, {"work": Fail()}, {"merge": Fail()}):
        with pytest.raises(ArgumentError):
            units_of(dataframe.from_pandas(frame.replace("k00", PLANTED), npartitions=20), **fail)
    logs = str(cluster.get_worker_logs()) + str(cluster.get_scheduler_logs())
    assert PLANTED not in logs + "".join(capfd.readouterr())


@pytest.mark.slow
@pytest.mark.parametrize(("version", "text"), [(None, "cannot import"), ("99.0", "with pandas_dptree 99.0")])
def test_a_cluster_needs_this_package(cluster, version, text):
    def change():
        import importlib
        import sys

        if version is None:
            sys.modules["pandas_dptree._version"] = None
        else:
            importlib.import_module("pandas_dptree._version").__version__ = version

    def restore():
        import sys

        for name in [name for name in sys.modules if name.startswith("pandas_dptree")]:
            del sys.modules[name]

    frame, _ = rows(20)
    cluster.run(change)
    try:
        with pytest.raises(ArgumentError, match=text):
            units_of(dataframe.from_pandas(frame, npartitions=3))
    finally:
        cluster.run(restore)


def test_each_row_of_a_partition_is_in_one_batch(monkeypatch):
    """The last batch is full, or of one row: each row is counted once, and dealt once."""
    import pickle
    from collections import Counter

    def work(packets):  # `first_rows` counts a row once, however often it was dealt
        return pickle.dumps(Counter(pickle.loads(packet) for packet in packets))

    for most, n_rows in [(7, 28), (7, 29), (1, 4)]:
        monkeypatch.setattr(on_dask, "MOST_ROWS", most)
        frame = pd.DataFrame({"unit": range(n_rows), "key": [f"k{row}" for row in range(n_rows)]})
        with dask.config.set(scheduler="synchronous"):
            distributed = dataframe.from_pandas(frame, npartitions=1)
            assert keys_of(distributed, "key") == {("str", key): 1 for key in frame["key"]}
            assert units_of(distributed, work=work) == {(row, f"k{row}"): 1 for row in range(n_rows)}
    for name in ("MOST_BUNDLES", "FAN_IN"):  # nor is a partition in two bundles, or a tally in two sums
        monkeypatch.setattr(on_dask, name, 2)
    with dask.config.set(scheduler="synchronous"):
        distributed = dataframe.from_pandas(frame, npartitions=n_rows)
        assert keys_of(distributed, "key") == {("str", key): 1 for key in frame["key"]}
        assert units_of(distributed, work=work) == {(row, f"k{row}"): 1 for row in range(n_rows)}

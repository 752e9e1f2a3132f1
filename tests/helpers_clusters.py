"""Functions that workers of dask and Spark run in tests, and the schedulers and sessions that run them.

A tally is a pickled Counter. Only the first row of a unit is counted, which shows if the rows of one unit are
worked on in two places.
"""

import importlib
import os
import pickle
import signal
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from pandas_dptree.hierarchy.values import canonical_codes
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.numbers import numbers
from pandas_dptree.ingest.units import units_of as units_of_column
from pandas_dptree.ingest.workers.clusters import count_buckets, count_partitions

cloudpickle = pytest.importorskip("cloudpickle")

N_BUCKETS = 13
PLANTED = "planted-value-4711"


@dataclass(frozen=True)
class CountKeys:
    """Count the values of a column, by type and value."""

    column: str

    def __call__(self, batches):
        counts = Counter()
        for batch in batches:
            counts.update((type(each).__name__, each) for each in batch.column(self.column).tolist())
        return pickle.dumps(counts)


@dataclass(frozen=True)
class CountNumbers:
    """Count the values of a column as text, and missing ones: equal numbers may be of several types."""

    column: str

    def __call__(self, batches):
        counts = Counter()
        for batch in batches:
            column = batch.column(self.column)
            counts.update(map(str, column[column.notna()].tolist()))
            counts["missing"] += int(column.isna().sum())
        return pickle.dumps(counts)


@dataclass(frozen=True)
class CountForms:
    """Count the values of columns as keys, as units and as numbers."""

    columns: tuple

    def __call__(self, batches):
        counts = Counter()
        for batch in batches:
            for name in self.columns:
                codes, keys = canonical_codes(batch.column(name))
                counts.update((name, "key", None if code < 0 else keys[code]) for code in codes.tolist())
                for _, units in units_of_column(batch.column(name)):
                    counts.update((name, "unit", units.kind, each.tobytes()) for each in units.words)
                counts.update((name, "number", repr(each)) for each in numbers(batch.column(name)).tolist())
        return pickle.dumps(counts)


@dataclass(frozen=True)
class CountRows:
    """Count the rows of columns, as canonical forms."""

    columns: tuple

    def __call__(self, batches):
        counts = Counter()
        for batch in batches:
            forms = []
            for name in self.columns:
                codes, keys = canonical_codes(batch.column(name))
                forms.append([None if code < 0 else keys[code] for code in codes.tolist()])
            counts.update(zip(*forms, strict=True))
        return pickle.dumps(counts)


@dataclass(frozen=True)
class DealRows:
    """Make a packet of each row, for the bucket of its unit, a whole number."""

    unit: str
    key: str
    padding: int = 0

    def __call__(self, batches):
        for batch in batches:
            units, keys = batch.column(self.unit).tolist(), batch.column(self.key).tolist()
            for unit, key in zip(units, keys, strict=True):
                yield int(unit) * 7 % N_BUCKETS, pickle.dumps((int(unit), key)) + bytes(self.padding)


def first_rows(packets):
    """Count the first key of each unit, and the units."""
    least = {}
    for packet in packets:
        unit, key = pickle.loads(packet)
        least[unit] = min(key, least.get(unit, key))
    return pickle.dumps(Counter([*least.values(), *["units"] * len(least)]))


def added(tallies):
    return pickle.dumps(sum(map(pickle.loads, tallies), Counter()))


@dataclass(frozen=True)
class LoseWorker:
    """End the process of the worker when it is called for the first time, then call a function."""

    function: object
    marker: str

    def __call__(self, given):
        if first_time(self.marker):
            os.kill(os.getpid(), signal.SIGKILL)
        return self.function(given)


@dataclass(frozen=True)
class LoseShuffled:
    """Remove all that Spark has shuffled when it is called for the first time, then call a function."""

    function: object
    folder: str
    marker: str

    def __call__(self, given):
        if first_time(self.marker):
            for path in Path(self.folder).glob("blockmgr-*/*/shuffle_*"):
                path.unlink(missing_ok=True)
        return self.function(given)


@dataclass(frozen=True)
class AddByte:
    """Add a byte to a file at each call, then call a function."""

    function: object
    path: str

    def __call__(self, given):
        with open(self.path, "ab", buffering=0) as file:
            file.write(b"x")
        return self.function(given)


@dataclass(frozen=True)
class Fail:
    """Raise an error that quotes a value, and warn of it."""

    kind: type[BaseException] = ValueError

    def __call__(self, given):
        import warnings

        list(given)
        warnings.warn(PLANTED, stacklevel=1)
        raise self.kind(PLANTED)


def first_time(marker):
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def total(tallies):
    return dict(pickle.loads(added(tallies)))


def keys_of(frame, column, *, count=None, merge=added):
    return total(count_partitions(frame, [column], count=count or CountKeys(column), merge=merge))


def rows_of(frame, columns):
    """Count the rows of records that workers read."""
    cluster, columns = Records(frame, columns).cluster, tuple(columns)
    return total(count_partitions(cluster, columns, count=CountRows(columns), merge=added))


def units_of(frame, *, deal=None, work=first_rows, merge=added):
    deal = deal or DealRows("unit", "key")
    return total(
        count_buckets(frame, ["unit", "key"], deal=deal, work=work, merge=merge, n_buckets=N_BUCKETS)
    )


def rows(units=500):
    """Rows of some units, three for each, and what `units_of` gives for them."""
    import pandas as pd

    key = [f"k{(unit * 31 + row * 17) % 23:02}" for row in range(3) for unit in range(units)]
    frame = pd.DataFrame({"unit": [*range(units)] * 3, "key": key, "other": 1.5})
    least = frame.groupby("unit")["key"].min()
    return frame, {**least.value_counts().to_dict(), "units": units}


ROOT = str(Path(__file__).resolve().parents[1])


class LocalSpark:
    """What `on_spark` uses of a Spark frame, in this process: partitions are lists of Arrow batches."""

    def __init__(self, partitions, conf=None):
        self.partitions, self.conf = partitions, conf or {}
        self.sparkSession = self

    @property
    def columns(self):
        return next((batch.schema.names for part in self.partitions for batch in part), [])

    def toDF(self, *names):  # noqa: N802
        renamed = [[batch.rename_columns(list(names)) for batch in part] for part in self.partitions]
        return LocalSpark(renamed, self.conf)

    def select(self, *names):
        chosen = [[batch.select(names) for batch in part] for part in self.partitions]
        return LocalSpark(chosen, self.conf)

    def mapInArrow(self, function, schema):  # noqa: N802
        function, mapped = pickle.loads(cloudpickle.dumps(function)), []
        for TaskContext.partition, part in enumerate(self.partitions):
            mapped.append(list(function(iter(part))))
        return LocalSpark(mapped, self.conf)

    def repartition(self, number, by):
        rows = [row for part in self.partitions for batch in part for row in batch.to_pylist()]
        return self._of_rows([[row for row in rows if row[by] % number == each] for each in range(number)])

    def sortWithinPartitions(self, *by):  # noqa: N802
        rows = [[row for batch in part for row in batch.to_pylist()] for part in self.partitions]
        return self._of_rows([sorted(part, key=lambda row: [row[name] for name in by]) for part in rows])

    def _of_rows(self, parts):
        pyarrow = importlib.import_module("pyarrow")
        return LocalSpark(
            [[pyarrow.RecordBatch.from_pylist(part)] if part else [] for part in parts], self.conf
        )

    def toLocalIterator(self):  # noqa: N802
        rows = (row for part in self.partitions for batch in part for row in batch.to_pylist())
        return (tuple(row.values()) for row in rows)


LocalSpark.__module__ = "pyspark.sql.connect.dataframe"


class TaskContext:
    """What `on_spark` uses of pyspark.TaskContext, for `LocalSpark`."""

    partition = 0

    @staticmethod
    def get():
        return TaskContext

    @staticmethod
    def partitionId():  # noqa: N802
        return TaskContext.partition

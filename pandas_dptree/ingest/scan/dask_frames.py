"""Batches of dataframes of dask. Secret: nothing here may leave."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from queue import Full, Queue
from threading import Event, Thread
from typing import Any, NamedTuple

import pandas as pd

from pandas_dptree.errors import ArgumentError, ColumnsError, quote
from pandas_dptree.hierarchy.dataframe_libraries import is_instance
from pandas_dptree.ingest.scan.arrow_datasets import check_parts
from pandas_dptree.ingest.scan.base import Source, class_name
from pandas_dptree.ingest.scan.batches import Batch, PandasBatch, slices

__all__ = ["DaskFrame", "client_of", "exact_frame"]

MOST_THREADS = 4
"""How many partitions are read at a time on this machine."""

_DASK = "dask.dataframe.dask_expr."

_ACCEPTED = frozenset(
    f"{_DASK}{module}.{name}"
    for module, names in {
        # Readers of records of which no other record decides the types.
        "io.io": "FromPandas FromPandasDivisions",
        "io.parquet": "ReadParquetFSSpec ReadParquetPyarrowFS",
        # Selections of columns, or of each row by its own values alone.
        "_expr": "Projection Filter RenameFrame ColumnsSetter DropnaFrame "
        "EQ NE LT LE GT GE And Or Invert IsNa NotNull Between",
    }.items()
    for name in names.split()
)
"""Expressions of dask that are accepted."""

_ENGINE = "dask.dataframe.io.parquet.arrow.ArrowDatasetEngine"
"""The class by which dask reads Parquet; another one may be passed."""


class DaskFrame(Source):
    """A dataframe of dask."""

    def __init__(self, frame: Any, argument: str) -> None:
        super().__init__(frame, argument)
        self._exact: dict[tuple[Hashable, ...], Any] = {}

    @staticmethod
    def holds(frame: Any) -> bool:
        """Whether it is one."""
        return is_instance(frame, "dask.dataframe.dask_expr._collection.DataFrame")

    def names(self) -> list[Hashable]:
        """List the names of the columns."""
        return list(self.frame.columns)

    def types(self, columns: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Return the types that dask expects; those of the partitions may differ."""
        meta = self.cluster(columns)._meta
        return {name: meta[name].dtype for name in columns}

    def cluster(self, columns: Sequence[Hashable]) -> Any:
        """Return a frame of these columns as they were before dask converted them."""
        if (chosen := tuple(columns)) not in self._exact:
            self._exact[chosen] = exact_frame(self.frame, columns, self.argument)
        return self._exact[chosen]

    def batches(self, columns: Sequence[Hashable], rows: int) -> Iterator[Batch]:
        """Read one partition after the other in this process; workers read what a cluster computes."""
        for part in _here(self.cluster(columns).to_delayed()):
            for start, stop in slices(len(part), rows):
                yield PandasBatch(part, start, stop)


def exact_frame(frame: Any, columns: Sequence[Hashable], argument: str = "frame") -> Any:
    """Select columns of a dataframe of dask such that dask converts none of their values, or refuse it.

    **Privacy.** dask converts values partition by partition, and each by what else the partition holds. Whole
    numbers of a Parquet file become floats in a partition where one is missing, and 2**53 + 1 becomes 2**53.
    Objects become text, 5 becomes ``"5"``, in a partition of objects, while 5 stays 5 in a partition of whole
    numbers. Readers of text, JSON, ORC and SQL, and other functions, take types from the values of a
    partition, and dask joins partitions of different types by converting them. In each of these, one record
    would change the keys of others. So only steps are accepted whose values follow from one record each: two
    readers, made such that they convert nothing, and selections. Which records are in a partition depends on
    other records, so whole partitions cannot be selected; and how records are divided anew does not matter.
    """
    if not isinstance(frame._meta, pd.DataFrame):
        raise ArgumentError(
            argument,
            "is a dataframe of dask whose partitions are not of pandas.",
            hint='convert it with frame.to_backend("pandas").',
        )
    simple = _rebuilt(frame[list(columns)].expr, _filtered_here).simplify()
    expression = _rebuilt(simple, _converting_nothing)
    steps = list(expression.walk())
    if refused := [each for each in steps if not _is_accepted(each)]:
        named = [name for each in refused if (name := _function(each))]
        kind = type(refused[0])
        step = "Partitions" if class_name(kind) in _ACCEPTED else kind.__name__
        raise ArgumentError(
            argument,
            f"is made by the function {quote(named[-1])}, which dask calls for each partition; in these, one "
            "record may decide how others are read."
            if named
            else f"is made by the step {quote(step)} of dask, in which one record may affect others.",
            hint="pass it as it was before persist()."
            if step == "FromGraph"
            else "write it to Parquet first, with types that you state, and pass "
            "dask.dataframe.read_parquet(path), of which you may select rows and columns.",
        )
    for each in steps:
        if "path" in each._parameters:
            _check_files(each, argument)
    return type(frame)(expression)[list(columns)]


def client_of() -> Any | None:
    """Return the client of the cluster that dask would compute on; None for schedulers of this process."""
    scheduler = importlib.import_module("dask.base").get_scheduler()
    owner = getattr(scheduler, "__self__", None)
    return owner if hasattr(owner, "scatter") else None


def _rebuilt(expression: Any, change: Callable[[Any, str], Any]) -> Any:
    """Change all steps of an expression, each after what it is made of; `change` also gets its name."""
    if not hasattr(type(expression), "_parameters"):
        return expression
    operands = [_rebuilt(each, change) for each in expression.operands]
    if any(new is not old for new, old in zip(operands, expression.operands, strict=True)):
        expression = type(expression)(*operands)
    return change(expression, class_name(type(expression)).removeprefix(_DASK))


def _filtered_here(step: Any, name: str) -> Any:
    """Compare what is filtered once more, with True, so that dask does not leave the filter to Arrow.

    Arrow converts whole numbers to the type of what they are compared with, and fails for large ones.
    """
    return type(step)(step.frame, step.predicate == True) if name == "_expr.Filter" else step  # noqa: E712


def _converting_nothing(step: Any, name: str) -> Any:
    """Make readers that convert nothing, and leave the records divided as they are read."""
    if name == "_repartition.Repartition":
        return step.frame
    changed: dict[str, Any] = {"pyarrow_strings_enabled": False}
    if name in ("io.parquet.ReadParquetFSSpec", "io.parquet.ReadParquetPyarrowFS"):
        kwargs = {**(step.operand("kwargs") or {}), "dtype_backend": "pyarrow", "arrow_to_pandas": {}}
        changed |= {"kwargs": kwargs, "arrow_to_pandas": None, "categories": None}
        changed |= {"_dataset_info_cache": None}  # it holds the types that were found before
    known = {key: value for key, value in changed.items() if key in step._parameters}
    return step.substitute_parameters(known) if known else step


def _is_accepted(expression: Any) -> bool:
    """Whether an expression is on the list, and is no reader of selected partitions."""
    selects = "_partitions" in expression._parameters and expression.operand("_partitions") is not None
    return class_name(type(expression)) in _ACCEPTED and not selects


def _function(expression: Any) -> str:
    """Name the function that makes the partitions of an expression, if it is a function that does."""
    if type(expression).__name__ == "DelayedsExpr":
        return str(importlib.import_module("dask.utils").key_split(expression.operands[0].key))
    if "func" not in expression._parameters:
        return ""
    function = expression.operand("func")
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def _check_files(reader: Any, argument: str) -> None:
    """Refuse another engine, files of different types, and keys that are names of directories."""
    if "engine" in reader._parameters and class_name(reader.engine) != _ENGINE:
        raise ArgumentError(
            argument, "is read by an engine that is not dask's own.", hint='read it with engine="pyarrow".'
        )
    info = reader._dataset_info
    fragments = info["ds"].get_fragments() if "ds" in info else info["fragments"]
    parts = [getattr(each, "fragment", each) for each in fragments]
    columns = reader.columns if reader.operand("filters") is None else info["schema"].names
    check_parts(info["schema"], parts, columns, argument)
    held = {name for part in parts for name in part.physical_schema.names}
    if outside := [name for name in reader.columns if name not in held]:
        raise ColumnsError(
            argument,
            "has columns that only the names of directories hold, from which dask guesses types",
            columns=outside,
            hint="pass pyarrow.dataset.dataset(path, partitioning=...), with types that you state.",
        )


def _here(partitions: Sequence[Any]) -> Iterator[pd.DataFrame]:
    """Compute partitions by threads of this process, and yield each once it is there.

    All are computed by one call, so that what several of them need is computed once. A thread waits until its
    partition is taken, so that few of them are in memory.
    """
    dask = importlib.import_module("dask")
    ready: Queue[Any] = Queue(maxsize=1)
    stopped = Event()

    def offer(part: Any) -> None:
        while not stopped.is_set():
            with suppress(Full):
                return ready.put(part, timeout=0.1)
        raise _StoppedError

    def compute() -> None:
        end: BaseException | None = None
        try:
            tasks = [dask.delayed(offer)(part) for part in partitions]
            threads = min(MOST_THREADS, os.cpu_count() or 1)
            dask.compute(*tasks, scheduler="threads", num_workers=threads)
        except BaseException as error:
            end = error
        with suppress(_StoppedError):
            offer(_End(end))

    worker = Thread(target=compute, daemon=True)
    worker.start()
    try:
        while not isinstance(part := ready.get(), _End):
            yield part
        if part.error is not None:
            raise part.error
    finally:
        stopped.set()
        worker.join()


class _End(NamedTuple):
    """What comes after the last partition: nothing, or the error that stopped dask."""

    error: BaseException | None


class _StoppedError(Exception):
    """Nobody takes partitions any more, so that dask need not compute the others."""

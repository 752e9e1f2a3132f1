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

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, ColumnsError
from pandas_dptree.hierarchy.dataframe_libraries import is_instance
from pandas_dptree.ingest.scan.arrow_datasets import check_types
from pandas_dptree.ingest.scan.batches import Batch, PandasBatch, slices
from pandas_dptree.ingest.scan.source import Source

__all__ = ["DaskFrame", "client_of", "exact_frame"]

MOST_THREADS = 4
"""How many partitions are read at a time on this machine."""

_WIDE = (np.dtype(np.int64), np.dtype(np.uint64))
"""Types of whole numbers that floats cannot all represent."""

_MADE = frozenset({"FromMap", "FromDelayed", "MapPartitions"})
"""Expressions whose partitions are made by functions, by their class."""

_APART = frozenset({"Blockwise", "Partitions", "FromGraph", "_DelayedExpr", "DelayedsExpr"})
"""Other expressions that join no partitions, by a class of theirs."""

_SELECTIONS = frozenset(
    "Projection Filter Partitions Repartition RepartitionToFewer RepartitionToMore RepartitionDivisions "
    "RepartitionSize RenameFrame ColumnsSetter DropnaFrame ResetIndex Sample BlockwiseHead BlockwiseTail "
    "Query EQ NE LT LE GT GE And Or Invert IsNa NotNull Isin Between _DelayedExpr DelayedsExpr".split()
)
"""Expressions of dask, by their class, that only select and move records and columns, or compare values."""


class DaskFrame(Source):
    """A dataframe of dask."""

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
        return exact_frame(self.frame, columns, self.argument)

    def batches(self, columns: Sequence[Hashable], rows: int) -> Iterator[Batch]:
        """Read one partition after the other."""
        partitions = self.cluster(columns).to_delayed()
        client = client_of()
        for part in _here(partitions) if client is None else _by_client(partitions, client):
            for start, stop in slices(len(part), rows):
                yield PandasBatch(part, start, stop)


def exact_frame(frame: Any, columns: Sequence[Hashable], argument: str = "frame") -> Any:
    """Select columns of a dataframe of dask such that dask converts none of their values.

    Raises
    ------
    ArgumentError
        If the partitions are not of pandas, are read from text files, or from files of different types, or
        are joined though their types may differ.
    ColumnsError
        If dask converts values, and more was done to the frame than to select some of it.

    Notes
    -----
    **Privacy.** dask converts values partition by partition, and each by what else the partition holds. Whole
    numbers of a Parquet file become floats in a partition where one is missing, and 2**53 + 1 becomes 2**53.
    Objects become text, 5 becomes ``"5"``, in a partition of objects, while 5 stays 5 in a partition of whole
    numbers. Then one record would change the keys of others. So it would in files of CSV: one word among
    numbers makes all numbers of the partition text, or stops dask, and one quotation mark joins lines. A
    partition of floats, made so by a missing value, makes floats of all partitions that it is joined to. And
    files of Parquet are converted to the types of one of them, which fails for some values.
    """
    if not isinstance(frame._meta, pd.DataFrame):
        raise ArgumentError(
            argument,
            "is a dataframe of dask whose partitions are not of pandas.",
            hint='convert it with frame.to_backend("pandas").',
        )
    chosen = frame[list(columns)]
    steps = list((expression := chosen.expr.simplify()).walk())
    if any(map(_reads_lines, steps)):
        raise ArgumentError(
            argument,
            "is read by dask from text files, in which it guesses types from values.",
            hint="convert the files to Parquet; or release from them by the command dptree, which reads each "
            "line by itself.",
        )
    for each in steps:
        if type(each).__name__ == "ReadParquetPyarrowFS":
            check_types(each._dataset_info["schema"], each.fragments_unsorted, each.columns, argument)
    altered = {name: None for each in steps for name in _altered(each)}
    selected = all(type(each).__name__ in _SELECTIONS or _kind(each) in _UNALTERED for each in steps)
    if not altered or selected:
        if any(map(_is_made, steps)) and not all(map(_keeps_partitions, steps)):
            raise ArgumentError(
                argument,
                "joins partitions made by functions, and dask converts values where their types differ.",
                hint="pass it as it was before its partitions were joined or sorted; or write it to Parquet.",
            )
        return type(frame)(_unaltered(expression))[list(columns)] if altered else chosen
    raise ColumnsError(
        argument,
        "was made by dask from values that it may have converted, in the columns",
        columns=[name for name in altered if name in columns] or columns,
        hint="pass it as it was before persist()."
        if any(_kind(each) == "FromGraph" for each in steps)
        else "make it anew: Parquet is read as it is by read_parquet(path, dtype_backend='pyarrow'), and "
        "all else after dask.config.set({'dataframe.convert-string': False}).",
    )


def client_of() -> Any | None:
    """Return the client of the cluster that dask would compute on; None for schedulers of this process."""
    scheduler = importlib.import_module("dask.base").get_scheduler()
    owner = getattr(scheduler, "__self__", None)
    return owner if hasattr(owner, "scatter") else None


def _kind(expression: Any) -> str:
    """Name the class of an expression that converts values, or reads them; other names mean nothing."""
    names = [kind.__name__ for kind in type(expression).__mro__]
    return next((name for name in names if name in (*_UNALTERED, "FromGraph")), "")


def _is_made(expression: Any) -> bool:
    """Whether a function made partitions, which may be of any types."""
    return not _MADE.isdisjoint(_names(expression))


def _keeps_partitions(expression: Any) -> bool:
    """Whether what an expression makes of a partition depends on that partition alone."""
    return not (_MADE | _APART).isdisjoint(_names(expression))


def _names(expression: Any) -> set[str]:
    """Name the classes of an expression."""
    return {kind.__name__ for kind in type(expression).__mro__}


def _reads_lines(expression: Any) -> bool:
    """Whether an expression reads partitions by the functions of dask for text with a record in each line."""
    if _kind(expression) != "FromMap":
        return False
    function = expression.operand("func")
    while isinstance(function, partial):
        function = function.func
    modules = [getattr(each, "__module__", None) for each in (function, type(function))]
    return "dask.dataframe.io.csv" in modules


def _altered(expression: Any) -> list[Hashable]:
    """List the columns of an expression whose values dask converts when it is computed."""
    match _kind(expression):
        case "ArrowStringConversion":
            return list(expression.columns)
        case "FromPandas" if expression.pyarrow_strings_enabled:
            held = expression.operand("frame")._data
            index = [held.index.name] if held.index.dtype == np.dtype(object) else []
            return [*index, *(name for name in expression.columns if held[name].dtype == np.dtype(object))]
        case "ReadParquet" if not (expression.operand("kwargs") or {}).get("dtype_backend"):
            return [name for name, dtype in expression._meta.dtypes.items() if dtype in _WIDE]
        case "FromGraph":  # persisted: nobody knows what was computed
            text = pd.StringDtype("pyarrow")
            return [
                name for name, dtype in expression._meta.dtypes.items() if dtype in _WIDE or dtype == text
            ]
    return []


def _without_text(expression: Any) -> Any:
    return expression.substitute_parameters({"pyarrow_strings_enabled": False})


def _with_arrow_types(expression: Any) -> Any:
    kwargs = {**(expression.operand("kwargs") or {}), "dtype_backend": "pyarrow"}
    # Without the cache, which holds the types that were found before.
    return expression.substitute_parameters({"kwargs": kwargs, "_dataset_info_cache": None})


_UNALTERED: dict[str, Callable[[Any], Any]] = {
    "ArrowStringConversion": lambda expression: _unaltered(expression.frame),
    "FromPandas": _without_text,
    "ReadParquet": _with_arrow_types,
    "FromMap": lambda expression: expression,
    "FromDelayed": lambda expression: expression,
    "FromArray": lambda expression: expression,
}
"""How to make each expression that reads or converts values such that it alters none."""


def _unaltered(expression: Any) -> Any:
    """Make an expression of selections without what alters values."""
    if not hasattr(expression, "operands"):
        return expression
    if kind := _kind(expression):
        return _UNALTERED[kind](expression)
    return type(expression)(*map(_unaltered, expression.operands))


def _by_client(partitions: Sequence[Any], client: Any) -> Iterator[pd.DataFrame]:
    """Compute partitions on a cluster, and fetch each once it is there."""
    futures = client.compute(list(partitions))
    try:
        for future in importlib.import_module("distributed").as_completed(list(futures)):
            yield future.result()
            future.release()
    finally:
        client.cancel(futures)


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

"""The reader of each kind of column. Secret: nothing here may leave the package.

`hierarchy.levels.read_as` describes the kinds. To add one, add a class there, and an entry here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import pandas as pd

from pandas_dptree.hierarchy.levels.read_as import Labels, Numbers, ReadAs, Texts, Times, WholeNumbers
from pandas_dptree.hierarchy.values import located
from pandas_dptree.ingest.labels import check_labels
from pandas_dptree.ingest.numbers import check_numbers, numbers
from pandas_dptree.ingest.prefix_keys import check_texts, check_whole_numbers, read_texts, read_whole_numbers
from pandas_dptree.ingest.times import check_times, seconds

__all__ = ["READERS", "Reader", "check_readable", "read_column"]

Arrays = tuple[npt.NDArray[Any], ...]


@dataclass(frozen=True)
class Reader:
    """Functions that read the columns of one kind.

    ``read(column, wanted)`` reads each value separately, as the arrays that `wanted` describes.
    ``check(columns, argument)`` refuses columns by their types: it receives no values.
    """

    read: Callable[[pd.Series, Any], Arrays]
    check: Callable[[Mapping[Hashable, tuple[Any, Any]], str], None]


READERS: Mapping[type[ReadAs], Reader] = {
    Times: Reader(lambda column, wanted: (seconds(column, wanted),), check_times),
    Numbers: Reader(lambda column, _: (numbers(column),), check_numbers),
    WholeNumbers: Reader(read_whole_numbers, check_whole_numbers),
    Texts: Reader(read_texts, check_texts),
    Labels: Reader(lambda column, wanted: (located(column, wanted.forms),), check_labels),
}


def read_column(column: pd.Series, wanted: ReadAs) -> Arrays:
    """Read the values of a column, each separately, as the arrays that `wanted` describes."""
    return READERS[type(wanted)].read(column, wanted)


def check_readable(columns: Sequence[tuple[Hashable, ReadAs, Any]], *, argument: str) -> None:
    """Refuse columns of a type without readable values.

    `columns` lists, for each column, its name, how it is read, and its pandas or narwhals data type;
    `argument` is the argument that has the columns.
    """
    for kind, reader in READERS.items():
        own = {name: (wanted, dtype) for name, wanted, dtype in columns if type(wanted) is kind}
        if own:
            reader.check(own, argument)

"""Dataframes of Spark, which its workers read. Secret: nothing here may leave."""

from __future__ import annotations

import importlib
from collections.abc import Hashable, Sequence
from typing import Any

import pandas as pd

from pandas_dptree.errors import ColumnsError
from pandas_dptree.hierarchy.dataframe_libraries import is_instance
from pandas_dptree.ingest.safe_errors import ReadingError
from pandas_dptree.ingest.scan.base import Source, needed

__all__ = ["SparkFrame", "in_utc", "numbered"]


class SparkFrame(Source):
    """A dataframe of Spark, classic or by Spark Connect."""

    @staticmethod
    def holds(frame: Any) -> bool:
        """Whether it is one."""
        modules = ("pyspark.sql.dataframe", "pyspark.sql.classic.dataframe", "pyspark.sql.connect.dataframe")
        return is_instance(frame, *(f"{module}.DataFrame" for module in modules))

    def names(self) -> list[Hashable]:
        """List the names of the columns."""
        return list(self.frame.columns)

    def types(self, columns: Sequence[Hashable]) -> dict[Hashable, Any]:
        """Return the Arrow types of the columns."""
        kinds = {field.name: field.dataType for field in self.frame.schema.fields}
        return {name: _arrow_type(kinds[str(name)]) for name in columns}

    def cluster(self, columns: Sequence[Hashable]) -> Any:
        """Select the columns. Refuse what fails for some records only, such as types that cannot be read."""
        _check_settings(self.frame.sparkSession, self.argument)
        chosen = numbered(self.frame, columns)
        kinds = [field.dataType for field in chosen.schema.fields]
        unread = [name for name, kind in zip(columns, kinds, strict=True) if _arrow_type(kind) is None]
        if unread:
            raise ColumnsError(
                self.argument,
                "has types that Spark does not pass on, in the columns",
                columns=unread,
                hint="convert them before the release, for example by cast(... AS string).",
            )
        return chosen.toDF(*(str(name) for name in columns))


def numbered(frame: Any, columns: Sequence[Hashable]) -> Any:
    """Select columns by position, as c0, c1, ...: names may have dots, or differ in case alone."""
    needed("pyarrow", of="dataframes of Spark")
    names = list(frame.columns)
    every = frame.toDF(*(f"c{place}" for place in range(len(names))))
    chosen = every.select(*(f"c{names.index(name)}" for name in columns))
    return chosen.toDF(*(f"c{place}" for place in range(len(columns))))


def _check_settings(session: Any, argument: str) -> None:
    """Refuse settings, the default before Spark 4, by which a date before 1582 stops the release."""
    modes = [f"spark.sql.parquet.{kind}RebaseModeInRead" for kind in ("datetime", "int96")]
    if failing := [name for name in modes if session.conf.get(name) == "EXCEPTION"]:
        raise ReadingError(
            argument,
            "is of a Spark session that fails for old dates in Parquet files.",
            hint=" and ".join(f'spark.conf.set("{name}", "CORRECTED")' for name in failing)
            + " let it read them.",
        )


def in_utc(table: Any) -> Any:
    """Replace the zone of times by UTC: Spark names that of the session, which pandas may not know."""
    for place, field in enumerate(table.schema):
        if getattr(field.type, "tz", None) is not None:
            kind = importlib.import_module("pyarrow").timestamp(field.type.unit, "UTC")
            table = table.set_column(place, field.with_type(kind), table.column(place).cast(kind))
    return table


def _arrow_type(kind: Any) -> Any:
    """Return the Arrow type of a type of Spark; None if there is none."""
    if kind.typeName() == "timestamp":  # with a zone, which Spark may ask for
        return pd.ArrowDtype(importlib.import_module("pyarrow").timestamp("us", "UTC"))
    try:
        return pd.ArrowDtype(importlib.import_module("pyspark.sql.pandas.types").to_arrow_type(kind))
    except Exception:
        return None

"""The same records in every engine: whatever holds them, the table is one and the same."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
from pyarrow import dataset, parquet

import pandas_dptree as dpt
from tests.seeded.cases.register import case
from tests.seeded.data import APPROXIMATE, BY, CONCENTRATED, PEOPLE, PURE, places, rng, visits

FIRST = {"domain": places()[BY[:1]].drop_duplicates(), "private_keys": BY[1:]}
MONTHS = dpt.calendar("date", ["quarter", "month"], start="2024-01-01", end="2024-09-30")
VERBS: dict[str, Callable[[Any], Any]] = {
    "counts": lambda frame: dpt.tree_counts(frame, BY, domain=places(), rng=rng(), **PURE),
    "units": lambda frame: dpt.tree_counts(
        frame, BY, domain=places(), neighbors="replace", rng=rng(1), **CONCENTRATED, **PEOPLE
    ),
    "months": lambda frame: dpt.tree_counts(frame, MONTHS, rng=rng(2), **PURE, **PEOPLE),
    "sums": lambda frame: dpt.tree_sums(
        frame, BY, columns=["cost", "age"], bounds={"cost": (0, 500), "age": (0, 100)}, domain=places(),
        rng=rng(3), **APPROXIMATE, **PEOPLE,
    ),
    "means": lambda frame: dpt.tree_means(
        frame, BY, columns="balance", bounds=(-300, 900), domain=places(), rng=rng(4),
        **CONCENTRATED, **PEOPLE,
    ),
    "histogram": lambda frame: dpt.histogram(
        frame, "cost", bounds=(0, 500), bins=8, by=["region"], domain=FIRST["domain"], rng=rng(5), **PURE,
        **PEOPLE,
    ),
    "dates": lambda frame: dpt.quantiles(
        frame, "date", 0.5, bounds=(pd.Timestamp("2024-01-01"), pd.Timestamp("2025-03-01")), bins=60,
        rng=rng(6), **PURE,
    ),
    "prefixes": lambda frame: dpt.tree_counts(
        frame, dpt.prefixes("age", bits=[3, 7], width=7, notation="number"), rng=rng(7), **APPROXIMATE,
        **PEOPLE,
    ),
    "private keys": lambda frame: dpt.tree_counts(
        frame, BY, rng=rng(8), epsilon=4.0, delta=1e-3, **FIRST, **PEOPLE
    ),
}  # fmt: skip


def arrow() -> pa.Table:
    """The visits in several chunks of unequal sizes."""
    table = pa.Table.from_pandas(visits(), preserve_index=False)
    return pa.concat_tables([table.slice(0, 1), table.slice(1, 300), table.slice(301)])


FEW = ("units", "months", "sums", "private keys")
"""The verbs whose results are recorded for files: reading is the same for all."""


def results(frame: Callable[[], Any], *few: str) -> dict[str, Any]:
    return {name: verb(frame()) for name, verb in VERBS.items() if not few or name in few}


def results_of_files(opened: Callable[[Path], Any]) -> dict[str, Any]:
    """The results of records in three files."""
    with tempfile.TemporaryDirectory() as folder:
        for place in range(3):
            parquet.write_table(arrow().slice(200 * place, 200), f"{folder}/{place}.parquet")
        return results(lambda: opened(Path(folder)), *FEW)


@case
def engine_pandas():
    return results(visits)


@case
def engine_pandas_in_arrow():
    return results(lambda: arrow().to_pandas(types_mapper=pd.ArrowDtype))


@case
def engine_pandas_of_categories():
    return results(lambda: visits().astype(dict.fromkeys(BY, "category")))


@case
def engine_polars():
    return results(lambda: pl.from_pandas(visits()))


@case
def engine_polars_lazy():
    return results(lambda: pl.from_pandas(visits()).lazy())


@case
def engine_polars_scan():
    return results_of_files(lambda folder: pl.scan_parquet(folder))


@case
def engine_pyarrow():
    return results(arrow)


@case
def engine_pyarrow_reader():
    return results(lambda: arrow().to_reader(max_chunksize=77))


@case
def engine_pyarrow_dataset():
    return results_of_files(lambda folder: dataset.dataset(folder))


@case
def engine_duckdb():
    import duckdb

    with duckdb.connect() as connection:
        return results(lambda: connection.from_arrow(arrow()))


@case
def engine_duckdb_scan():
    import duckdb

    with duckdb.connect() as connection:
        return results_of_files(lambda folder: connection.from_parquet(f"{folder}/*.parquet"))


@case
def engine_dask():
    import dask.dataframe as dd

    return results(lambda: dd.from_pandas(visits(), npartitions=3))


@case
def engine_dask_scan():
    import dask.dataframe as dd

    return results_of_files(lambda folder: dd.read_parquet(folder))

"""Whatever engine holds the records, no message repeats a value; and a read that fails costs nothing."""

import importlib
import logging
import os
import traceback
import warnings
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path

import narwhals as nw
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError
from tests.helpers_cases import each
from tests.helpers_engine_verbs import UNITS, VERBS, assert_same, seeded, tables
from tests.helpers_engines import ENGINES, Exported, files, odd_records
from tests.helpers_ledger import create
from tests.helpers_messages import Unprintable
from tests.helpers_reading import divided

pyarrow, polars = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
csv = pytest.importorskip("pyarrow.csv")

PLANTED = "planted-7f3a"
"""In a record that cannot be read, and in others."""

NUMBER = 918273645
"""In records that can be read."""

WHOLE = ["key", "unit"]
N = 400
PLACES = pd.DataFrame({"place": ["a", "a", "b"], "key": [1, 2, 1]})
DOMAIN = dpt.Domain.from_frame(PLACES, by=["place", "key"])
UNIT = {"privacy_unit": "unit", "max_contributions": 2}
PLAN = dpt.plan_agg(DOMAIN, {"n": "count", "mean": dpt.mean("amount", bounds=(0, 10))}, epsilon=100.0, **UNIT)


def as_text(column=None):
    """Records as text; in the last one, this column cannot be read as a number."""
    row = range(N)
    texts = {
        "place": [PLANTED if i % 50 == 0 else "ab"[i % 2] for i in row],
        "key": [str(NUMBER if i % 40 == 0 else i % 3) for i in row],
        "unit": [str(NUMBER if i % 45 == 0 else i // 3) for i in row],
        "amount": [f"{NUMBER}.25" if i % 35 == 0 else f"{i % 9}.5" for i in row],
    }
    if column is not None:
        texts[column][-1] = PLANTED
    return pyarrow.table(texts)


SCHEMA = pyarrow.schema(
    {"place": pyarrow.string(), "key": pyarrow.int64(), "unit": pyarrow.int64(), "amount": pyarrow.float64()}
)


def as_numbers(texts):
    """Read text as numbers; what cannot be read is quoted by the error."""
    columns = {name: texts.column(name).to_pylist() for name in texts.column_names}
    for name in columns:
        if name != "place":
            columns[name] = [(int if name in WHOLE else float)(each) for each in columns[name]]
    return pyarrow.table(columns, SCHEMA)


def _csv(texts, folder):
    folder.mkdir(exist_ok=True)
    csv.write_csv(texts, folder / "a.csv")
    return folder / "a.csv"


def _polars(texts):
    return polars.from_arrow(texts).lazy()


def _cast_by_polars(texts, folder):
    return _polars(texts).with_columns(
        polars.col(WHOLE).cast(polars.Int64), polars.col("amount").cast(polars.Float64)
    )


def _computed_by_polars(texts, folder):
    def read(function):
        return lambda column: polars.Series([function(each) for each in column])

    return _polars(texts).with_columns(
        polars.col(WHOLE).map_batches(read(int), return_dtype=polars.Int64),
        polars.col("amount").map_batches(read(float), return_dtype=polars.Float64),
    )


def _file_of_polars(texts, folder):
    kinds = {name: polars.Int64 if name in WHOLE else polars.Float64 for name in SCHEMA.names[1:]}
    return polars.scan_csv(_csv(texts, folder), schema={"place": polars.String, **kinds})


def _reader(texts, folder):
    batches = (batch for part in texts.to_batches(20) for batch in as_numbers(_table(part)).to_batches())
    return pyarrow.RecordBatchReader.from_batches(SCHEMA, batches)


def _table(batch):
    return pyarrow.Table.from_batches([batch])


def _dataset(texts, folder):
    """A dataset whose filter reads the text."""
    dataset, compute = (importlib.import_module(f"pyarrow.{name}") for name in ("dataset", "compute"))
    columns = {name: compute.replace_substring(texts.column(name), PLANTED, "0") for name in SCHEMA.names[1:]}
    table = as_numbers(pyarrow.table({"place": texts.column("place"), **columns}))
    for name in columns:
        table = table.append_column(f"text of {name}", texts.column(name))
    every = [dataset.field(f"text of {name}").cast(pyarrow.float64()) >= 0 for name in columns]
    return dataset.dataset(files(table, folder)).filter(every[0] & every[1] & every[2])


def _dataset_of_text(texts, folder):
    dataset = importlib.import_module("pyarrow.dataset")
    options = csv.ConvertOptions(column_types=SCHEMA)
    return dataset.dataset(
        _csv(texts, folder), schema=SCHEMA, format=dataset.CsvFileFormat(convert_options=options)
    )


def _dataset_of_other_types(texts, folder):
    return importlib.import_module("pyarrow.dataset").dataset(files(texts, folder), schema=SCHEMA)


def _connection():
    return pytest.importorskip("duckdb").connect()


_CAST = "place, key::bigint as key, unit::bigint as unit, amount::double as amount"


def _cast_by_duckdb(texts, folder):
    return _connection().from_arrow(texts).project(_CAST)


def _computed_by_duckdb(texts, folder):
    connection = _connection()
    connection.create_function("whole", lambda text: int(text), ["VARCHAR"], "BIGINT")
    connection.create_function("number", lambda text: float(text), ["VARCHAR"], "DOUBLE")
    called = "place, whole(key) as key, whole(unit) as unit, number(amount) as amount"
    return connection.from_arrow(texts).project(called)


def _dask():
    return pytest.importorskip("dask.dataframe")


def _filtered_by_dask(texts, folder):
    """Objects that are compared with numbers, which fails for text."""
    columns = texts.to_pydict()
    for name in SCHEMA.names[1:]:
        columns[name] = [each if each == PLANTED else float(each) for each in columns[name]]
    frame = _dask().from_pandas(pd.DataFrame(columns, dtype=object), npartitions=5)
    return frame[(frame["key"] >= 0) & (frame["unit"] >= 0) & (frame["amount"] >= 0)]


def _file_of_dask(texts, folder):
    kinds = {"place": "string[pyarrow]", "key": "int64", "unit": "int64", "amount": "float64"}
    return _dask().read_csv(_csv(texts, folder), dtype=kinds)


READ_BY = {
    "polars cast": _cast_by_polars,
    "polars function": _computed_by_polars,
    "polars file": _file_of_polars,
    "narwhals of polars": lambda texts, folder: nw.from_native(_cast_by_polars(texts, folder)),
    "pyarrow reader": _reader,
    "stream": lambda texts, folder: Exported(_reader(texts, folder)),
    "pyarrow dataset": _dataset,
    "duckdb cast": _cast_by_duckdb,
    "duckdb function": _computed_by_duckdb,
    "duckdb of a reader": lambda texts, folder: _connection().from_arrow(_reader(texts, folder)),
    "narwhals of duckdb": lambda texts, folder: nw.from_native(_cast_by_duckdb(texts, folder)),
    "dask filter": _filtered_by_dask,
}
"""Read text as numbers by each engine, which fails for other text, mostly with an error that quotes it."""


@contextmanager
def listening(caplog, capfd=None):
    """Collect all that is said, by whatever means; without `capfd`, leave out what engines print and log."""
    said = []
    caplog.set_level(logging.DEBUG)
    if capfd is not None:
        capfd.readouterr()
    with warnings.catch_warnings(record=True, action="always") as warned:
        yield said
    said += [str(each.message) for each in warned]
    logged = [each for each in caplog.records if capfd is not None or each.name.startswith("pandas_dptree")]
    said += [f"{record.getMessage()} {record.__dict__}" for record in logged]
    if capfd is not None:
        said += capfd.readouterr()


def text_of(error):
    """All that an error says, with its notes and what it was raised from."""
    parts = []
    while error is not None:
        notes = getattr(error, "__notes__", [])
        parts += [*traceback.format_exception(error), str(error), repr(error), repr(vars(error)), *notes]
        assert error.__cause__ is None
        error = error.__context__
    return "".join(parts)


def is_repeated(*said):
    text = " ".join(map(str, said))
    return PLANTED in text or str(NUMBER) in text


def open_files(folder):
    """List the open files of this process in a folder, also those that have no name."""
    opened = Path("/proc/self/fd")
    if not opened.exists():
        return []
    links = []
    for descriptor in opened.iterdir():
        try:
            links.append(os.readlink(descriptor))
        except OSError:
            continue
    return [link for link in links if link.startswith(str(folder))]


@pytest.fixture
def account(tmp_path):
    with create(tmp_path, epsilon=10_000.0, delta=0.1, privacy_unit="unit") as ledger:
        yield ledger["patients"]


@cache
def of_good_records():
    return PLAN.release(as_numbers(as_text()), **seeded())


@pytest.mark.parametrize("engine", READ_BY)
def test_a_read_that_fails_says_and_costs_nothing(engine, account, tmp_path, caplog, capfd):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    options = {"ledger": account, "note": "2026", "temp_folder": temporary}

    def fails(column):
        with divided(batch=50, in_memory=0), listening(caplog, capfd) as said:
            frame = READ_BY[engine](as_text(column), tmp_path / f"files of {column}")
            with pytest.raises(ArgumentError) as caught:
                PLAN.release(frame, **options)
        assert not is_repeated(text_of(caught.value), *said)
        assert not account.n_charges
        assert not open_files(temporary) and not list(temporary.iterdir())

    each("column", ["key", "unit", "amount"])(fails)()
    with divided(batch=50, in_memory=0):
        good = READ_BY[engine](as_text(), tmp_path / "files")
        table = PLAN.release(good, **options)
    assert account.n_charges == 1
    assert not open_files(temporary) and not list(temporary.iterdir())
    again = READ_BY[engine](as_text(), tmp_path / "files")
    assert_same(PLAN.release(again, **seeded()), of_good_records())
    assert list(table) == list(of_good_records())


def fails_and_costs_nothing(read, account, caplog, folder):
    """Release what a cluster cannot read, and then what it can; its own logs are another matter."""
    for column in ["key", "unit", "amount"]:
        for options in [{}, {"domain": "observed"}]:
            if options and column != "key":
                continue
            with listening(caplog) as said, pytest.raises(ArgumentError) as caught:
                frame = read(as_text(column), folder)
                if options:
                    charged = {"ledger": account, "note": "2026"}
                    dpt.tree_counts(frame, ["place", "key"], epsilon=1.0, **options, **UNIT, **charged)
                else:
                    PLAN.release(frame, ledger=account, note="2026")
            assert not is_repeated(text_of(caught.value), *said)
            assert not account.n_charges
    PLAN.release(read(as_text(), folder), ledger=account, note="2026")
    assert account.n_charges == 1
    assert_same(PLAN.release(read(as_text(), folder), **seeded()), of_good_records())


@pytest.mark.slow
def test_a_cluster_of_dask_says_and_costs_nothing(cluster, account, tmp_path, caplog):
    fails_and_costs_nothing(_filtered_by_dask, account, caplog, tmp_path / "files")


def _cast_by_spark(spark, texts, folder):
    spark.conf.set("spark.sql.ansi.enabled", "true")
    frame = spark.read.csv(str(_csv(texts, folder)), header=True)
    return frame.selectExpr(
        "place", "cast(key as bigint) key", "cast(unit as bigint) unit", "cast(amount as double) amount"
    )


def _computed_by_spark(spark, texts, folder):
    frame = spark.read.csv(str(_csv(texts, folder)), header=True)
    udf = importlib.import_module("pyspark.sql.functions").udf
    whole, number = udf(lambda text: int(text), "bigint"), udf(lambda text: float(text), "double")
    return frame.select(
        "place", *(whole(name).alias(name) for name in WHOLE), number("amount").alias("amount")
    )


def _file_of_spark(spark, texts, folder):
    schema = "place string, key bigint, unit bigint, amount double"
    return spark.read.csv(str(_csv(texts, folder)), header=True, schema=schema, mode="FAILFAST")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
@pytest.mark.parametrize("read", [_cast_by_spark, _computed_by_spark, _file_of_spark])
def test_spark_says_and_costs_nothing(read, spark, account, tmp_path, caplog):
    fails_and_costs_nothing(partial(read, spark), account, caplog, tmp_path / "files")


@pytest.mark.parametrize(
    "engine", [engine for engine in READ_BY if engine not in ("pyarrow reader", "stream")]
)
def test_keys_that_cannot_be_listed_are_not_repeated(engine, account, tmp_path, caplog, capfd):
    with listening(caplog, capfd) as said:
        frame = READ_BY[engine](as_text("key"), tmp_path / "files")
        with pytest.raises(ArgumentError) as caught:
            dpt.tree_counts(
                frame, ["place", "key"], domain="observed", epsilon=1.0, **UNIT, ledger=account, note="2026"
            )
    assert not is_repeated(text_of(caught.value), *said)
    assert not account.n_charges


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_costs_nothing_if_a_read_fails(verb, account, records, caplog, capfd):
    def batches():
        yield from records.to_batches(500)[:4]
        raise ValueError(PLANTED)

    unit = UNITS["some of each unit"]
    reader = pyarrow.RecordBatchReader.from_batches(records.schema, batches())
    with listening(caplog, capfd) as said, pytest.raises(ArgumentError) as caught:
        VERBS[verb](reader, **unit, ledger=account, note="2026")
    assert not is_repeated(text_of(caught.value), *said)
    assert not account.n_charges
    VERBS[verb](records, **unit, ledger=account, note="2026")
    assert account.n_charges == 1


class Broken:
    """A stream that cannot be opened."""

    def __init__(self, kind):
        self.kind = kind

    def __arrow_c_stream__(self, requested_schema=None):
        raise self.kind(PLANTED)


class PanicError(BaseException):
    """Like that of polars, which is no Exception."""


UNOPENED = {
    "stream": lambda folder: Broken(ValueError),
    "panic": lambda folder: Broken(PanicError),
    "pyarrow dataset of text": lambda folder: _dataset_of_text(as_text("key"), folder / "files"),
    "pyarrow dataset of other types": lambda folder: _dataset_of_other_types(
        as_text("key"), folder / "files"
    ),
    "dask file": lambda folder: _file_of_dask(as_text("key"), folder / "files"),
    "polars file": lambda folder: polars.scan_csv(folder / PLANTED),
    "polars column": lambda folder: polars.LazyFrame({"a": [1]}).select(polars.col(PLANTED)),
    "polars of another type": lambda folder: polars.LazyFrame({"a": ["1"]}).with_columns(
        polars.col("a").str.to_integer() + polars.lit(PLANTED).str.to_date()
    ),
}


@pytest.mark.parametrize("engine", UNOPENED)
def test_no_error_of_a_schema_is_repeated(engine, account, tmp_path, caplog, capfd):
    with listening(caplog, capfd) as said, pytest.raises(ArgumentError) as caught:
        PLAN.release(UNOPENED[engine](tmp_path), ledger=account, note="2026")
    assert not is_repeated(text_of(caught.value), *said)
    assert not account.n_charges


@pytest.fixture(scope="module")
def records():
    return odd_records().drop_columns("never")


class Quoting:
    """An object that cannot be compared, hashed or printed without an error that quotes it."""

    def _fail(self, *_):
        raise ValueError(PLANTED)

    __eq__ = __hash__ = __lt__ = __repr__ = __str__ = __bool__ = __float__ = __int__ = __index__ = _fail
    __len__ = __iter__ = __array__ = __format__ = __reduce_ex__ = _fail


def planted(n=300):
    """Records that can be read, with values that nothing may repeat."""
    row = range(n)
    return pyarrow.table(
        {
            "place": [PLANTED if i % 100 == 0 else "ab"[i % 2] for i in row],
            "unit": [f"{PLANTED} {i}" if i % 9 == 0 else f"{i // 3}" for i in row],
            "amount": [float(NUMBER) if i % 7 == 0 else i % 10.0 for i in row],
            "number": [NUMBER if i % 90 == 0 else i % 3 for i in row],
            "text": [PLANTED if i % 2 else str(NUMBER) for i in row],
        }
    )


LETTERS = dpt.Domain.from_frame(pd.DataFrame({"place": ["a", "b"]}), by=["place"])
LOSS = {"epsilon": 1.0, "mechanism": "laplace", **UNIT}
PRIVATE = {"epsilon": 1.0, "delta": 1e-9, "mechanism": "truncated_laplace", **UNIT}
LARGE = {"bounds": (0, 10), "bins": 4, "strategy": [4]}
ON_PLANTED = {
    name: plan.release
    for name, plan in {
        "counts": dpt.plan(LETTERS, **LOSS),
        "counts of numbers": dpt.plan(
            dpt.Domain.from_frame(pd.DataFrame({"place": [1]}), by=["place"]), **LOSS
        ),
        "several": dpt.plan_agg(LETTERS, {"mean": dpt.mean("amount", bounds=(0, 10))}, **LOSS),
        "sums of text": dpt.plan_sums(LETTERS, columns="text", bounds=(0, 10), **LOSS),
        "days": dpt.plan(
            dpt.derived_domain(dpt.calendar("text", ["year"], start="2024-01-01", end="2025-01-01")), **LOSS
        ),
        "distribution": dpt.plan_distribution("amount", **LARGE, **LOSS),
        "distribution of text": dpt.plan_distribution("text", **LARGE, **LOSS),
        "prefixes": dpt.plan(dpt.prefixes("place", chars=[1, 2], alphabet="abcdef"), **PRIVATE),
        "prefixes of bits": dpt.plan(dpt.binary("text", bits=4), **PRIVATE),
        "private keys": dpt.plan(None, private_keys=["place"], **PRIVATE),
        "a column that is missing": dpt.plan(
            dpt.Domain.from_frame(pd.DataFrame({"places": ["a"]}), by=["places"]), **LOSS
        ),
    }.items()
}
ON_PLANTED["categories"] = lambda frame: dpt.tree_counts(frame, ["place"], domain="categories", **LOSS)
"""Calls that release, and calls that are refused."""


def answers(calls, frames):
    """List what is said to calls, with all that is released."""
    for call, frame in zip(calls, frames, strict=True):
        try:
            for table in tables(ON_PLANTED[call](frame)):
                yield from (table.to_csv(), repr(table.attrs))
        except dpt.DPTreeError as error:
            yield text_of(error)


@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_is_said_of_records_that_can_be_read(engine, tmp_path, caplog, capfd):
    """Each engine with every third call, in turn."""
    nothing_is_said(engine, [*ON_PLANTED][[*ENGINES].index(engine) % 3 :: 3], tmp_path, caplog, capfd)


@pytest.mark.nightly
@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_is_said_by_any_call(engine, tmp_path, caplog, capfd):
    nothing_is_said(engine, [*ON_PLANTED], tmp_path, caplog, capfd)


def nothing_is_said(engine, calls, folder, caplog, capfd):
    with listening(caplog, capfd) as said:
        given = [ENGINES[engine](planted(), folder / "files") for _ in calls]
        said += answers(calls, given)
    assert len(said) > len(calls) and not is_repeated(*said)


def test_objects_that_quote_themselves_are_dropped(caplog, capfd):
    objects = [Quoting(), Unprintable(), "a", 1, None, "b", 2.5] * 20
    frame = pd.DataFrame({name: pd.Series(objects, dtype=object) for name in planted().column_names})
    with listening(caplog, capfd) as said:
        said += answers(ON_PLANTED, [frame] * len(ON_PLANTED))
    assert not is_repeated(*said)

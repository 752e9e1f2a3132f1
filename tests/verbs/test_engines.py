"""Every verb releases the same table, whatever engine holds the records."""

import importlib
from functools import cache

import narwhals as nw
import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError
from pandas_dptree.mechanisms import arguments
from tests.helpers_engine_verbs import (
    EXACT,
    KEYS,
    PLANS,
    UNITS,
    VERBS,
    assert_same,
    seeded,
    tables,
)
from tests.helpers_engines import ENGINES, Exported, in_pandas, odd_records
from tests.helpers_ledger import create
from tests.helpers_reading import divided, forms_of

pyarrow, polars = pytest.importorskip("pyarrow"), pytest.importorskip("polars")

ALL = {
    **ENGINES,
    "stream read once": lambda table, folder: Exported(table.to_reader(max_chunksize=1000)),
    "narwhals of polars": lambda table, folder: nw.from_native(ENGINES["polars lazy"](table, folder)),
    "narwhals of duckdb": lambda table, folder: nw.from_native(ENGINES["duckdb"](table, folder)),
}
READ_ONCE = ["pyarrow reader", "stream", "stream read once"]


class Frames:
    """The same records in each engine; what is read once is made anew."""

    def __init__(self, table, folder):
        self.table, self.folder, self.made = table, folder, {}

    def __call__(self, engine):
        if engine in READ_ONCE or engine not in self.made:
            self.made[engine] = ALL[engine](self.table, self.folder / engine)
        return self.made[engine]


@pytest.fixture(scope="module")
def frames(tmp_path_factory):
    table = odd_records().drop_columns("never")
    return Frames(table, tmp_path_factory.mktemp("engines"))


@pytest.fixture(scope="module")
def expected(frames):
    """What a verb releases of a frame of pandas; each table is made once."""
    return cache(lambda verb, unit: VERBS[verb](frames("pandas"), **UNITS[unit], **seeded()))


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("engine", ALL)
def test_every_verb_on_every_engine(engine, verb, frames, expected):
    unit = "some of each unit"
    with divided(batch=5000, buckets=16):
        assert_same(VERBS[verb](frames(engine), **UNITS[unit], **seeded()), expected(verb, unit))


@pytest.fixture(scope="module")
def plans(frames):
    """Plans, and what they release of a frame of pandas."""

    @cache
    def planned(kind, unit):
        plan = PLANS[kind](**UNITS[unit])
        return plan, plan.release(frames("pandas"), **seeded())

    return planned


@pytest.mark.parametrize("unit", ["rows", "all of each unit"])
@pytest.mark.parametrize("engine", ALL)
def test_every_plan_on_every_engine(engine, unit, frames, plans):
    for kind in PLANS:
        plan, expected = plans(kind, unit)
        with divided(batch=5000, buckets=16):
            assert_same(plan.release(frames(engine), **seeded()), expected)


# With a ledger


@pytest.fixture
def account(tmp_path, monkeypatch):
    """An account of units; its noise is that of a generator, so that tables can be compared."""
    generator = np.random.default_rng(0)
    monkeypatch.setattr(arguments, "byte_source", lambda rng: (rng or generator).bytes)
    with create(tmp_path, epsilon=10_000.0, delta=0.1, privacy_unit="unit") as ledger:
        yield ledger["patients"]


def assert_same_but_for_charge(answer, expected):
    for table, other in zip(tables(answer), tables(expected), strict=True):
        pd.testing.assert_frame_equal(table, other)
        stated = {**table.attrs["dp"]}
        assert stated.pop("ledger")["account"] == "patients"
        del stated["rng"]
        assert stated == {name: each for name, each in other.attrs["dp"].items() if name != "rng"}


@pytest.mark.parametrize("engine", ALL)
def test_every_engine_is_charged_once(engine, account, frames, expected):
    unit = "some of each unit"
    table = VERBS["tree_agg"](frames(engine), **UNITS[unit], ledger=account, note="2026")
    assert_same_but_for_charge(table, expected("tree_agg", unit))
    assert account.n_charges == 1


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_charged_once(verb, account, frames, expected):
    unit = "some of each unit"
    answer = VERBS[verb](frames("polars lazy"), **UNITS[unit], ledger=account, note="2026")
    assert_same_but_for_charge(answer, expected(verb, unit))
    assert account.n_charges == 1


# Keys from the records


OBSERVED = [KEYS, ["flag", "a.b", "number"], ["day"]]


def assert_same_keys(table, expected):
    """Check that two tables are the same but for the types of their keys, which are those of the records."""
    assert list(table) == list(expected)
    for name in table:
        if name in ("level", "count", "std_error"):
            pd.testing.assert_series_equal(table[name], expected[name])
        else:
            assert forms_of(table[name]) == forms_of(expected[name])


@pytest.mark.parametrize("by", OBSERVED, ids=str)
def test_keys_that_occur_are_the_same(by, frames):
    options = {**EXACT, "domain": "observed", **UNITS["some of each unit"]}
    expected = dpt.tree_counts(frames("pandas"), by, **options, **seeded())
    for engine in [engine for engine in ALL if engine not in READ_ONCE]:
        with divided(batch=5000, buckets=16):
            assert_same_keys(dpt.tree_counts(frames(engine), by, **options, **seeded()), expected)


@pytest.mark.parametrize("exported", [lambda reader: reader, Exported])
def test_the_keys_of_what_is_read_once_are_not_looked_for(exported, account, frames):
    taken = []

    def batches():
        for batch in frames.table.to_batches(1000):
            taken.append(batch)
            yield batch

    reader = pyarrow.RecordBatchReader.from_batches(frames.table.schema, batches())
    charged = {**UNITS["some of each unit"], "ledger": account, "note": "2026"}
    with pytest.raises(ArgumentError, match="can be read only once"):
        dpt.tree_counts(exported(reader), KEYS, domain="observed", **EXACT, **charged)
    assert not taken and not account.n_charges


# Batches of any size


def _chunks(table, rows):
    """Divide a table into batches of so many rows, some of them empty."""
    parts = [part for each in table.combine_chunks().to_batches(rows) for part in (each.slice(0, 0), each)]
    return [*parts, parts[0]]


DIVIDED = {
    "reader of empty batches": lambda table, rows, folder: pyarrow.RecordBatchReader.from_batches(
        table.schema, _chunks(table, rows)
    ),
    "table": lambda table, rows, folder: pyarrow.Table.from_batches(_chunks(table, rows)),
    "stream": lambda table, rows, folder: Exported(pyarrow.Table.from_batches(_chunks(table, rows))),
    "polars": lambda table, rows, folder: polars.concat(
        map(polars.from_arrow, _chunks(table, rows)), rechunk=False
    ),
    "polars lazy": lambda table, rows, folder: polars.concat(
        [polars.from_arrow(each).lazy() for each in _chunks(table, rows)]
    ),
    "dataset": lambda table, rows, folder: importlib.import_module("pyarrow.dataset").dataset(
        pyarrow.Table.from_batches(_chunks(table, rows))
    ),
    "duckdb": lambda table, rows, folder: (
        pytest.importorskip("duckdb").connect().from_arrow(pyarrow.Table.from_batches(_chunks(table, rows)))
    ),
    "dask": lambda table, rows, folder: _dask_parts(list(map(in_pandas, _chunks(table, rows)))),
}


def _dask_parts(parts):
    dask, dataframe = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    return dataframe.from_delayed(list(map(dask.delayed(pass_on), parts)), meta=parts[0], verify_meta=False)


def pass_on(part):
    return part


@pytest.mark.parametrize("rows", [1, 7, 10**6])
@pytest.mark.parametrize("engine", DIVIDED)
def test_batches_of_any_size_give_the_same(engine, rows, frames, tmp_path):
    table = frames.table.slice(0, 300 if rows > 1 else 60)
    kinds = ["several at once", "private keys"]
    for plan in (PLANS[kind](**UNITS["some of each unit"]) for kind in kinds):
        frame = DIVIDED[engine](table, rows, tmp_path)
        assert_same(plan.release(frame, **seeded()), plan.release(in_pandas(table), **seeded()))


@pytest.mark.parametrize("engine", ALL)
def test_without_records(engine, frames, tmp_path):
    nothing = frames.table.slice(0, 0)
    if engine == "pyarrow batch":
        frame = pyarrow.RecordBatch.from_pylist([], nothing.schema)
    else:
        frame = ALL[engine](nothing, tmp_path / "files")
    for verb in ["tree_agg", "release_distribution", "private keys", "prefixes of numbers"]:
        for unit in ["rows", "some of each unit"]:
            if engine in READ_ONCE:
                frame = ALL[engine](nothing, tmp_path / "files")
            expected = VERBS[verb](in_pandas(nothing), **UNITS[unit], **seeded())
            assert_same(VERBS[verb](frame, **UNITS[unit], **seeded()), expected)


WITHOUT_BATCHES = {
    "table": lambda schema: pyarrow.Table.from_batches([], schema),
    "reader": lambda schema: pyarrow.RecordBatchReader.from_batches(schema, []),
    "stream": lambda schema: Exported(pyarrow.Table.from_batches([], schema)),
    "dataset": lambda schema: importlib.import_module("pyarrow.dataset").dataset([], schema=schema),
}


@pytest.mark.parametrize("kind", WITHOUT_BATCHES)
def test_without_batches(kind, frames):
    schema = frames.table.schema
    for unit in ["rows", "some of each unit"]:
        expected = VERBS["tree_agg"](in_pandas(frames.table.slice(0, 0)), **UNITS[unit], **seeded())
        assert_same(VERBS["tree_agg"](WITHOUT_BATCHES[kind](schema), **UNITS[unit], **seeded()), expected)
    with pytest.raises(ArgumentError, match="no leaves" if kind in ("table", "dataset") else "only once"):
        dpt.tree_counts(WITHOUT_BATCHES[kind](schema), KEYS, domain="observed", **EXACT)

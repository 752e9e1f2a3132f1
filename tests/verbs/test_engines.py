"""Every verb releases the same table, whatever engine holds the records."""

import importlib
from functools import cache
from itertools import product

import narwhals as nw
import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError
from pandas_dptree.mechanisms import arguments
from tests.helpers_cases import each
from tests.helpers_engine_verbs import (
    EXACT,
    KEYS,
    KINDS,
    PLANS,
    UNITS,
    VERBS,
    assert_same,
    in_pairs,
    planned,
    seeded,
    tables,
)
from tests.helpers_engines import ENGINES, Exported, in_pandas, in_spark, odd_records
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
    table = odd_records(1000).drop_columns("never")
    return Frames(table, tmp_path_factory.mktemp("engines"))


@pytest.fixture(scope="module")
def expected(frames):
    """What a verb releases of a frame of pandas; each table is made once."""
    return cache(lambda verb, unit: VERBS[verb](frames("pandas"), **UNITS[unit], **seeded()))


PAIRS = in_pairs(ALL)


def test_all_pairs_are_tried():
    assert sorted(verb for verbs in KINDS.values() for verb in verbs) == sorted(VERBS)
    kind_of = {verb: kind for kind, verbs in KINDS.items() for verb in verbs}
    calls = [(engine, verb, unit) for engine, called in PAIRS.items() for verb, unit in called]
    assert {(engine, kind_of[verb]) for engine, verb, _ in calls} == {*product(ALL, KINDS)}
    assert {(engine, unit) for engine, _, unit in calls} == {*product(ALL, UNITS)}
    assert {(verb, unit) for _, verb, unit in calls} == {*product(VERBS, UNITS)}


@pytest.mark.tripwire
@pytest.mark.parametrize("engine", ALL)
def test_each_engine_with_verbs_of_each_kind(engine, frames, expected):
    def releases_the_same(verb, unit):
        with divided(batch=1500, buckets=16):
            assert_same(VERBS[verb](frames(engine), **UNITS[unit], **seeded()), expected(verb, unit))

    each("verb, unit", PAIRS[engine])(releases_the_same)()


@pytest.mark.nightly
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("engine", ALL)
def test_every_verb_on_every_engine(engine, verb, frames, expected):
    for unit in UNITS:
        with divided(batch=1500, buckets=16):
            assert_same(VERBS[verb](frames(engine), **UNITS[unit], **seeded()), expected(verb, unit))


@pytest.fixture(scope="module")
def released(frames):
    """What a plan releases of a frame of pandas; each table is made once."""
    return cache(lambda kind, unit: planned(kind, unit).release(frames("pandas"), **seeded()))


@pytest.mark.nightly
@pytest.mark.parametrize("unit", ["rows", "all of each unit"])
@pytest.mark.parametrize("engine", ALL)
def test_every_plan_on_every_engine(engine, unit, frames, released):
    for kind in PLANS if unit == "rows" else ["several at once", "units", "private keys"]:
        with divided(batch=1500, buckets=16):
            table = planned(kind, unit).release(frames(engine), **seeded())
        assert_same(table, released(kind, unit))


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
def test_every_engine_is_charged_once(engine, account, frames, released):
    kind, unit = "counts", "some of each unit"
    expected = released(kind, unit)
    table = planned(kind, unit).release(frames(engine), ledger=account, note="2026")
    assert_same_but_for_charge(table, expected)
    assert account.n_charges == 1


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_charged_once(verb, account, frames, expected):
    unit = "some of each unit"
    answer = VERBS[verb](frames("polars"), **UNITS[unit], ledger=account, note="2026")
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


READ_AGAIN = [engine for engine in ALL if engine not in READ_ONCE]


@pytest.mark.parametrize("turn", range(len(OBSERVED)))
def test_keys_that_occur_are_the_same(turn, frames):
    """Each engine with one kind of keys."""
    keys_are_the_same(frames, OBSERVED[turn], READ_AGAIN[turn :: len(OBSERVED)])


@pytest.mark.nightly
@pytest.mark.parametrize("by", OBSERVED, ids=str)
def test_all_keys_that_occur_are_the_same(by, frames):
    keys_are_the_same(frames, by, READ_AGAIN)


def keys_are_the_same(frames, by, engines):
    options = {**EXACT, "domain": "observed", **UNITS["some of each unit"]}
    expected = dpt.tree_counts(frames("pandas"), by, **options, **seeded())
    for engine in engines:
        with divided(batch=1500, buckets=16):
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


@pytest.mark.parametrize("engine", ["pyarrow dataset", "stream", "duckdb", "dask"])
def test_categories_are_those_of_a_frame(engine, frames):
    with pytest.raises(ArgumentError, match="which only frames of pandas and polars and pyarrow tables have"):
        dpt.tree_counts(frames(engine), ["kind"], domain="categories", **EXACT)


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
    "dask": lambda table, rows, folder: pytest.importorskip("dask.dataframe").from_pandas(
        in_pandas(table), chunksize=rows
    ),
}


@pytest.fixture(scope="module")
def released_of_few(frames):
    """Make a table of some records, and release it from a frame of pandas by a plan for units."""

    @cache
    def release(kind, rows):
        table = frames.table.slice(0, rows)
        return table, planned(kind, "some of each unit").release(in_pandas(table), **seeded())

    return release


@pytest.mark.parametrize("rows", [1, 7, 10**6])
@pytest.mark.parametrize("engine", DIVIDED)
def test_batches_of_any_size_give_the_same(engine, rows, released_of_few, tmp_path):
    for kind in ["several at once", "private keys"] if rows == 7 else ["several at once"]:
        table, expected = released_of_few(kind, 200 if rows > 1 else 30)
        frame = DIVIDED[engine](table, rows, tmp_path)
        with divided(buckets=16):
            assert_same(planned(kind, "some of each unit").release(frame, **seeded()), expected)


@pytest.mark.parametrize("engine", ALL)
def test_without_records(engine, released_of_few, tmp_path):
    """Each engine with one kind of plan that counts listed keys, and one that finds keys."""
    turn = list(ALL).index(engine) % 2
    for kind in [["several at once", "distribution"][turn], ["private keys", "prefixes"][turn]]:
        nothing, expected = released_of_few(kind, 0)
        if engine == "pyarrow batch":
            frame = pyarrow.RecordBatch.from_pylist([], nothing.schema)
        else:
            frame = ALL[engine](nothing, tmp_path / kind)
        assert_same(planned(kind, "some of each unit").release(frame, **seeded()), expected)


WITHOUT_BATCHES = {
    "table": lambda schema: pyarrow.Table.from_batches([], schema),
    "reader": lambda schema: pyarrow.RecordBatchReader.from_batches(schema, []),
    "stream": lambda schema: Exported(pyarrow.Table.from_batches([], schema)),
    "dataset": lambda schema: importlib.import_module("pyarrow.dataset").dataset([], schema=schema),
}


@pytest.mark.parametrize("kind", WITHOUT_BATCHES)
def test_without_batches(kind, released_of_few):
    nothing, expected = released_of_few("several at once", 0)
    for unit in ["rows", "some of each unit"]:
        table = planned("several at once", unit).release(WITHOUT_BATCHES[kind](nothing.schema), **seeded())
        assert len(table) == len(expected)
    assert_same(table, expected)
    with pytest.raises(ArgumentError, match="no leaves" if kind in ("table", "dataset") else "only once"):
        dpt.tree_counts(WITHOUT_BATCHES[kind](nothing.schema), KEYS, domain="observed", **EXACT)


# On clusters, and with many records


ONE_OF_EACH_KIND = [
    pytest.param(verb, marks=[] if verb == verbs[0] else [pytest.mark.nightly])
    for verbs in KINDS.values()
    for verb in verbs
]
"""All verbs; by day, one of each kind."""


@pytest.fixture(scope="module")
def in_cluster(cluster, frames):
    """The records in dask, read by the workers of a cluster."""
    return frames("dask scan")


@pytest.mark.slow
@pytest.mark.parametrize("verb", ONE_OF_EACH_KIND)
def test_every_verb_on_a_cluster_of_dask(verb, in_cluster, expected):
    unit = "some of each unit"
    assert_same(VERBS[verb](in_cluster, **UNITS[unit], **seeded()), expected(verb, unit))


@pytest.fixture(scope="module")
def in_spark_session(spark, frames):
    return in_spark(spark, frames.table, frames.folder / "spark")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
@pytest.mark.parametrize("verb", ONE_OF_EACH_KIND)
def test_every_verb_in_spark(verb, in_spark_session, expected):
    unit = "some of each unit"
    assert_same(VERBS[verb](in_spark_session, **UNITS[unit], **seeded()), expected(verb, unit))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
def test_plans_keys_and_charges_on_clusters(in_cluster, in_spark_session, spark, account, frames, released):
    for engine, frame in {"dask": in_cluster, "Spark": in_spark_session}.items():
        for kind in PLANS:
            assert_same(planned(kind, "rows").release(frame, **seeded()), released(kind, "rows"))
        unit = UNITS["some of each unit"]
        for by in OBSERVED:
            options = {**EXACT, "domain": "observed", **unit}
            expected = dpt.tree_counts(frames("pandas"), by, **options, **seeded())
            assert_same_keys(dpt.tree_counts(frame, by, **options, **seeded()), expected)
        plan = planned("counts", "some of each unit")
        plan.release(frame, ledger=account, note=engine)
    assert account.n_charges == 2
    nothing = spark.createDataFrame(spark.sparkContext.emptyRDD(), in_spark_session.schema)
    assert nothing.rdd.getNumPartitions() == 0
    for empty in (nothing, in_spark_session.limit(0)):
        table = planned("several at once", "some of each unit").release(empty, **seeded())
        expected = planned("several at once", "some of each unit").release(
            in_pandas(frames.table.slice(0, 0)), **seeded()
        )
        assert_same(table, expected)


MANY = 600_000
MANY_VERBS = ["tree_agg", "release_distribution", "calendar of times", "private keys"]
UNITS_OF_MANY = {**UNITS, "all of each unit": {"privacy_unit": "unit", "max_contributions": 1000}}


@pytest.mark.nightly
def test_more_records_on_every_engine(tmp_path):
    """Each engine with one verb, in turn."""
    frames = Frames(odd_records(MANY // 20).drop_columns("never"), tmp_path)
    unit = UNITS_OF_MANY["some of each unit"]
    expected = {verb: VERBS[verb](frames("pandas"), **unit, **seeded()) for verb in MANY_VERBS}

    def releases_the_same(turn, engine):
        verb = MANY_VERBS[turn % len(MANY_VERBS)]
        assert_same(VERBS[verb](frames(engine), **unit, **seeded()), expected[verb])

    each("turn, engine", enumerate(ALL))(releases_the_same)()


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """1.2 million records: half of them regular, and half almost like others."""
    return Frames(odd_records(MANY).drop_columns("never"), tmp_path_factory.mktemp("many"))


@pytest.fixture(scope="module")
def expected_of_many(many):
    return cache(lambda verb, unit: VERBS[verb](many.made["pandas"], **UNITS_OF_MANY[unit], **seeded()))


@pytest.mark.nightly
def test_no_unit_has_more_records(many):
    """So "all of each unit" bounds nothing."""
    rows = many.table.column("unit").drop_null().value_counts().field("counts")
    assert max(rows.to_pylist()) <= 1000


@pytest.mark.nightly
@pytest.mark.parametrize("verb", MANY_VERBS)
@pytest.mark.parametrize("engine", ALL)
def test_many_records_on_every_engine(engine, verb, many, expected_of_many):
    many("pandas")
    for unit in UNITS_OF_MANY:
        table = VERBS[verb](many(engine), **UNITS_OF_MANY[unit], **seeded())
        assert_same(table, expected_of_many(verb, unit))
    if verb == MANY_VERBS[-1] and engine != "pandas":
        del many.made[engine]


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
@pytest.mark.parametrize("verb", MANY_VERBS)
def test_many_records_in_spark(verb, spark, many, expected_of_many):
    many("pandas")
    frame = in_spark(spark, many.table, many.folder / "spark")
    for unit in UNITS_OF_MANY:
        table = VERBS[verb](frame, **UNITS_OF_MANY[unit], **seeded())
        assert_same(table, expected_of_many(verb, unit))


@pytest.mark.nightly
@pytest.mark.parametrize("verb", MANY_VERBS)
def test_many_records_on_a_cluster_of_dask(verb, cluster, many, expected_of_many):
    many("pandas")
    for unit in UNITS_OF_MANY:
        table = VERBS[verb](many("dask scan"), **UNITS_OF_MANY[unit], **seeded())
        assert_same(table, expected_of_many(verb, unit))

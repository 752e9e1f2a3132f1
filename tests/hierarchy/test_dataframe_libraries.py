"""Which dataframes are read; all others are refused by name, before anything is read of them."""

import datetime

import narwhals as nw
import narwhals.stable.v1 as nw_v1
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError, kind_of_object
from pandas_dptree.ingest.contributions import leaf_totals
from pandas_dptree.theory import l2_error

KEYS = pd.DataFrame({"state": ["A", "A", "B"], "county": ["x", "y", "x"]})
RECORDS = pd.DataFrame(
    {
        "state": ["A"] * 5 + ["B"] * 2,
        "county": ["x"] * 3 + ["y"] * 2 + ["x", "z"],
        "cost": [1.0] * 7,
        "day": [datetime.date(2024, 1, 1)] * 7,
        "person": list("aabbccd"),
    }
)
BY = ["state", "county"]


def dataframe_of(module, sign="columns"):
    """Stand in for a dataframe of a library, which must not be asked for anything."""

    def refuse(self, name):
        if name == "__class__":  # by isinstance
            return object.__getattribute__(self, name)
        raise AssertionError(f"{name} was read")

    kind = type("DataFrame", (), {"__module__": module, "__getattribute__": refuse, sign: property(refuse)})
    return kind()


@pytest.fixture
def relation():
    return dataframe_of("duckdb._relation")


MODULES = {
    "cudf.core.dataframe": "cudf",
    "dask.dataframe.dask_expr._collection": "dask",
    "dask.dataframe.core": "dask",
    "duckdb.duckdb": "duckdb",
    "_duckdb": "duckdb",
    "ibis.expr.types.relations": "ibis",
    "modin.pandas.dataframe": "modin",
    "pyspark.sql.dataframe": "pyspark",
    "pyspark.sql.classic.dataframe": "pyspark",
    "pyspark.sql.connect.dataframe": "pyspark",
    "pyspark.pandas.frame": "pyspark",
    "sqlframe.duckdb.dataframe": "sqlframe",
    "snowflake.snowpark.dataframe": "snowflake",
}


RECORDS_TOO = (
    "dask.dataframe.dask_expr._collection", "pyspark.sql.dataframe", "pyspark.sql.classic.dataframe",
    "pyspark.sql.connect.dataframe",
)  # fmt: skip
"""Modules whose dataframes may hold records, but no public table."""


RECORDS_TOO = (
    "dask.dataframe.dask_expr._collection", "pyspark.sql.dataframe", "pyspark.sql.classic.dataframe",
    "pyspark.sql.connect.dataframe",
)  # fmt: skip
"""Modules whose dataframes may hold records, but no public table."""


@pytest.mark.parametrize("module", MODULES)
def test_dataframes_of_other_libraries_are_refused_by_name(module):
    argument = "domain" if module in RECORDS_TOO else "frame"
    tables = {"frame": RECORDS, "domain": KEYS} | {argument: dataframe_of(module)}
    with pytest.raises(ArgumentError) as caught:
        dpt.tree_counts(tables["frame"], BY, domain=tables["domain"], epsilon=1.0)
    assert caught.value.argument == argument
    assert caught.value.fact == f"`{argument}` is a dataframe of {MODULES[module]}, which is not supported."
    assert "an Arrow table of the needed columns" in caught.value.hint
    assert caught.value.__context__ is None


def test_what_can_be_exported_is_not_read_for_that():
    """But records may come as a stream of Arrow."""
    with pytest.raises(ArgumentError, match="`frame` is a dataframe of somebody, which is not supported"):
        leaf_totals(dataframe_of("somebody.frames", "__dataframe__"), DOMAIN)
    with pytest.raises(ArgumentError, match="`domain` is a dataframe of somebody, which is not supported"):
        dpt.Domain.from_frame(dataframe_of("somebody.frames", "__arrow_c_stream__"), by=BY)


def test_a_subclass_is_of_the_library_it_was_derived_from(relation):
    class Mine(type(relation)):
        pass

    with pytest.raises(ArgumentError, match="is a dataframe of duckdb"):
        dpt.tree_counts(Mine(), BY, domain=KEYS, epsilon=1.0)


COUNTS = dpt.plan(dpt.Domain.from_frame(KEYS, by=BY), epsilon=1.0)
ZIPS = dpt.prefixes("zip", chars=[1, 2])
TIMES = dpt.calendar("day", ["month"], start="2024-01-01", end="2024-12-31")
WITH_RECORDS = {
    "tree_counts": lambda frame: dpt.tree_counts(frame, BY, domain=KEYS, epsilon=1.0),
    "observed": lambda frame: dpt.tree_counts(frame, BY, domain="observed", epsilon=1.0),
    "categories": lambda frame: dpt.tree_counts(frame, BY, domain="categories", epsilon=1.0),
    "derived": lambda frame: dpt.tree_counts(frame, [TIMES], epsilon=1.0),
    "units": lambda frame: dpt.tree_counts(
        frame, BY, domain=KEYS, epsilon=1.0, privacy_unit="person", max_contributions=2
    ),
    "prefixes": lambda frame: dpt.tree_counts(frame, ZIPS, epsilon=1.0, delta=1e-6),
    "multiplicative": lambda frame: dpt.tree_counts(
        frame, BY, domain=KEYS, epsilon=1.0, delta=1e-6, mechanism=dpt.Multiplicative(alpha=0.5)
    ),
    "tree_sums": lambda frame: dpt.tree_sums(
        frame, BY, columns="cost", domain=KEYS, bounds=(0, 9), epsilon=1.0
    ),
    "tree_means": lambda frame: dpt.tree_means(
        frame, BY, columns="cost", domain=KEYS, bounds=(0, 9), epsilon=1.0
    ),
    "quantiles": lambda frame: dpt.quantiles(frame, "cost", [0.5], bounds=(0, 9), bins=9, epsilon=1.0),
    "cdf": lambda frame: dpt.cdf(
        frame,
        "cost",
        bounds=(0, 9),
        bins=9,
        epsilon=1.0,
        by=["state"],
        domain=KEYS[["state"]].drop_duplicates(),
    ),
    "histogram": lambda frame: dpt.histogram(frame, "cost", bounds=(0, 9), bins=9, epsilon=1.0),
    "range_counts": lambda frame: dpt.range_counts(
        frame, "cost", [(0, 3)], bounds=(0, 9), bins=9, epsilon=1.0
    ),
    "release": COUNTS.release,
    "release of sums": dpt.plan(
        dpt.Domain.from_frame(KEYS, by=BY), column="cost", bounds=(0, 9), epsilon=1.0
    ).release,
    "release of prefixes": dpt.plan(ZIPS, epsilon=1.0, delta=1e-6).release,
    "release of a distribution": dpt.plan_distribution("cost", bounds=(0, 9), bins=9, epsilon=1.0).release,
}


@pytest.mark.parametrize("verb", WITH_RECORDS)
def test_no_verb_reads_them(verb, relation):
    with pytest.raises(ArgumentError, match="`frame` is a dataframe of duckdb, which is not supported"):
        WITH_RECORDS[verb](relation)


@pytest.mark.parametrize("verb", [dpt.arrays.tree_counts, dpt.arrays.several.tree_counts])
def test_the_verbs_of_arrays_read_no_dataframe(verb, relation):
    with pytest.raises(ArgumentError, match="must be an xarray"):
        verb(relation, ["state"], epsilon=1.0)


DOMAIN = dpt.Domain.from_frame(KEYS, by=BY)
WITH_PUBLIC_TABLES = [
    ("domain", lambda table: dpt.tree_counts(RECORDS, BY, domain=table, epsilon=1.0)),
    ("domain", lambda table: dpt.tree_counts(RECORDS, [*BY, TIMES], domain=table, epsilon=1.0)),
    ("domain", lambda table: dpt.Domain.from_frame(table, by=BY)),
    ("domain", lambda table: dpt.Domain.from_categories(table, by=BY)),
    ("known", lambda table: dpt.plan(DOMAIN, epsilon=1.0, known=table)),
    ("known", lambda table: dpt.plan(DOMAIN, epsilon=1.0, known={"state": table})),
    ("table", lambda table: dpt.mapping(table, BY)),
    ("truth", lambda table: l2_error(COUNTS.release(RECORDS), table)),
]


@pytest.mark.parametrize(("argument", "use"), WITH_PUBLIC_TABLES)
def test_public_tables_of_other_libraries_are_refused_by_name(argument, use, relation):
    with pytest.raises(ArgumentError) as caught:
        use(relation)
    assert caught.value.fact == f"`{argument}` is a dataframe of duckdb, which is not supported."
    assert 'relation.select("state", "county").to_arrow_table()' in caught.value.hint


def test_what_is_no_dataframe_is_called_by_its_type():
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    table = pyarrow.Table.from_pandas(KEYS)
    for other in (
        KEYS["state"], KEYS.index, polars.Series([1]), nw.from_native(KEYS["state"], series_only=True),
        table.column(0), [KEYS], {"state": ["A"]}, None, "records",
        object(), xr.DataArray([1]), np.ones(3), pd.DataFrame,
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match=f"`frame` must be a dataframe, not {kind_of_object(other)}"):
            leaf_totals(other, DOMAIN)


WRAPPED = {
    "pandas": lambda frame: frame,
    "narwhals": nw.from_native,
    "narwhals.stable.v1": nw_v1.from_native,
    "narwhals lazy": lambda frame: nw.from_native(frame).lazy(),
}
LIBRARIES = {
    "pandas": lambda frame: frame,
    "polars": lambda frame: pytest.importorskip("polars").from_pandas(frame),
    "polars lazy": lambda frame: pytest.importorskip("polars").from_pandas(frame).lazy(),
    "pyarrow": lambda frame: pytest.importorskip("pyarrow").Table.from_pandas(frame),
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("wrap", WRAPPED)
def test_frames_of_narwhals_are_what_they_hold(library, wrap):
    def held(frame):
        return WRAPPED[wrap](LIBRARIES[library](frame))

    def release(make, **options):
        seed = np.random.default_rng(0)
        return dpt.tree_counts(
            make(RECORDS), BY, domain=make(KEYS), epsilon=1.0, rng=seed, known=make(known), **options
        )

    known = pd.DataFrame({"state": ["A"], "count": [5]})
    units = {"privacy_unit": "person", "max_contributions": 2}
    for options in ({}, units):
        pd.testing.assert_frame_equal(release(held, **options), release(lambda frame: frame, **options))
    table = dpt.mapping(held(KEYS.iloc[1:]), BY)
    assert table.definition == dpt.mapping(KEYS.iloc[1:], BY).definition


# The libraries themselves, where they are installed. They, and narwhals about them, may warn of anything.

THEMSELVES = pytest.mark.filterwarnings("ignore")


def refused(frame, library, *, records=True):
    """Check that a dataframe is refused as a public table, perhaps as records too, and return the hint."""
    wrapped = nw.from_native(frame)
    as_records = [lambda: leaf_totals(frame, DOMAIN), lambda: leaf_totals(wrapped, DOMAIN)]
    for use in (
        *(as_records if records else []),
        lambda: dpt.Domain.from_frame(frame, by=BY),
        lambda: dpt.plan(DOMAIN, epsilon=1.0, known=frame),
    ):
        with pytest.raises(
            ArgumentError, match=f"is a dataframe of {library}, which is not supported"
        ) as caught:
            use()
    return caught.value.hint


def counted(frame):
    return leaf_totals(frame, DOMAIN)[0].tolist()


@THEMSELVES
def test_a_collation_of_duckdb_merges_no_keys():
    """In duckdb, one row "a" was a group of its own name, and a thousand rows "A" were in it."""
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    with duckdb.connect() as connection:
        connection.execute(
            "create table records (state varchar collate nocase, county varchar collate nocase)"
        )
        connection.execute("insert into records values ('a', 'x')")
        connection.execute("insert into records select 'A', 'x' from range(1000)")
        relation = connection.table("records")
        hint = refused(relation, "duckdb", records=False)
        assert 'relation.select("state", "county").to_arrow_table()' in hint
        assert counted(relation) == counted(relation.select("state", "county").to_arrow_table())
        assert counted(relation) == [1000, 0, 0]


@THEMSELVES
def test_public_tables_of_dask_are_refused():
    dask = pytest.importorskip("dask.dataframe")
    frame = dask.from_pandas(RECORDS, npartitions=2)
    assert 'pyarrow.parquet.read_table(path, columns=["state", "county"])' in refused(
        frame, "dask", records=False
    )
    assert counted(frame) == [3, 2, 1]


@THEMSELVES
def test_tables_of_ibis_are_refused():
    ibis = pytest.importorskip("ibis")
    pytest.importorskip("duckdb")
    table = ibis.memtable(RECORDS[BY])
    assert 'table.select("state", "county").to_pyarrow()' in refused(table, "ibis")
    assert counted(table.select("state", "county").to_pyarrow()) == [3, 2, 1]


@THEMSELVES
def test_frames_of_sqlframe_are_refused():
    sessions = pytest.importorskip("sqlframe.duckdb")
    frame = sessions.DuckDBSession().createDataFrame(RECORDS[BY])
    assert 'frame.select("state", "county").toArrow()' in refused(frame, "sqlframe")
    assert counted(frame.select("state", "county").toArrow()) == [3, 2, 1]


@THEMSELVES
def test_frames_of_modin_are_refused(monkeypatch):
    monkeypatch.setenv("MODIN_ENGINE", "python")
    modin, pyarrow = pytest.importorskip("modin.pandas"), pytest.importorskip("pyarrow")
    frame = modin.DataFrame(RECORDS[BY])
    hint = refused(frame, "modin")
    assert 'pyarrow.Table.from_pandas(frame[["state", "county"]].modin.to_pandas())' in hint
    table = pyarrow.Table.from_pandas(frame[["state", "county"]].modin.to_pandas())
    assert counted(table) == [3, 2, 1]

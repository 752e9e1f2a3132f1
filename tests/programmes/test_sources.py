"""Sources: each engine reads the same records, and of a period those within it."""

import numpy as np
import pandas as pd
import pytest

from pandas_dptree.errors import ArgumentError, DPTreeError
from pandas_dptree.ingest.frames import Records
from pandas_dptree.programmes.sources import opened
from tests.helpers_cases import each
from tests.helpers_programmes import during, records

pytest.importorskip("pyarrow")
ENGINES = [
    None, "pyarrow", "polars", "duckdb", "dask",
    pytest.param("spark", marks=pytest.mark.slow),
]  # fmt: skip
TYPES = {
    "in Berlin": (lambda time: time, "Europe/Berlin"),
    "in UTC": (lambda time: time.dt.tz_convert("UTC"), "Europe/Berlin"),
    "without a zone": (lambda time: time.dt.tz_localize(None), None),
    "days": (lambda time: time.dt.date, None),
}


def people(visits, **source):
    programme = visits.programme(**{"columns": ("person", "time"), **source})
    with opened([programme.sources["visits"]]) as found:
        if source.get("engine") == "spark":  # which workers read
            return sorted(row[0] for row in found["visits"].select("person").collect())
        batches = Records(found["visits"], ["person"]).batches()
        texts = [str(name) for batch in batches for name in batch.column("person")]
    return sorted(texts)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", TYPES)
def test_a_period_of_records(visits, engine, kind):
    """From noon of the second to midnight before the fifth of March in Berlin."""
    if engine is not None:
        pytest.importorskip({"spark": "pyspark"}.get(engine, engine))
    convert, timezone = TYPES[kind]
    whole = records()
    whole["time"] = convert(whole["time"])
    whole.to_parquet(visits.folder / "2025-03.parquet")
    period = during("2025-03-02", "2025-03-05", timezone=timezone)
    assert people(visits, engine=engine, during=period) == [f"p{each}" for each in range(2, 8)]
    assert len(people(visits, engine=engine)) == 40


def test_a_period_of_text(visits):
    """Each text is read by itself; what is no time is in no period."""
    whole = records().astype({"time": str})
    whole.loc[3, "time"] = "nonsense"
    whole.loc[4, "time"] = None
    path = visits.folder / "records.csv"
    whole.to_csv(path, index=False)
    period = during("2025-03-02", "2025-03-05")
    assert people(visits, files=(str(path),), during=period) == ["p2", "p5", "p6", "p7"]


def test_a_period_of_a_database(visits):
    duckdb = pytest.importorskip("duckdb")
    path = visits.folder / "visits.duckdb"
    frame = records().assign(time=lambda table: table["time"].dt.tz_localize(None))  # noqa: F841
    with duckdb.connect(str(path)) as connection:
        connection.execute("create table visits as select * from frame")
    for engine in (None, "duckdb"):
        found = people(
            visits, files=(str(path),), table="visits", engine=engine,
            during=during("2025-03-02", "2025-03-05", timezone=None),
        )  # fmt: skip
        assert found == [f"p{each}" for each in range(2, 8)]


@each(("timezone", "column"), [(None, "time"), ("Europe/Berlin", "person"), ("Europe/Berlin", "absent")])
def test_a_column_without_such_times(visits, timezone, column):
    whole = records().assign(person=np.arange(40))
    whole.to_parquet(visits.folder / "2025-03.parquet")
    columns = tuple(dict.fromkeys(["person", column]))
    with pytest.raises(ArgumentError) as error:
        people(visits, during=during("2025-03-02", "2025-03-05", column, timezone), columns=columns)
    assert error.value.argument == "sources.visits.files"


def test_engines_read_parquet_alone(visits):
    """Their readers of text guess types from values."""
    path = visits.folder / "records.csv"
    records().to_csv(path, index=False)
    with pytest.raises(ArgumentError) as error:
        people(visits, files=(str(path),), engine="polars")
    assert error.value.argument == "sources.visits.engine"


def test_damaged_files_are_named_without_their_content(visits):
    content = (visits.folder / "2025-03.parquet").read_bytes()
    (visits.folder / "2025-03.parquet").write_bytes(content[:100] + b"\0" * 3000 + content[3100:])
    with pytest.raises(DPTreeError) as error:
        visits.run(visits.programme())
    assert "p1" not in str(error.value) and visits.n_charges == 0


def test_one_month_runs_from_a_file_of_several(visits):
    """A run over a period counts the records of that period."""
    visits.ledger(rho=1000.0)
    pd.concat([records("2025-02", 20), records(), records("2025-04", 7)]).to_parquet(
        visits.folder / "2025-03.parquet"
    )
    programme = visits.programme(
        rho=500.0, during=during("2025-03-01", "2025-04-01"),
        columns=("region", "clinic", "cost", "person", "time"),
    )  # fmt: skip
    assert visits.run(programme).tables["visits"]["count"].iloc[0] == 40


@pytest.mark.parametrize("engine", [None, "pyarrow", "polars", "duckdb", "dask"])
@pytest.mark.parametrize("zoned", [True, False])
def test_times_and_the_period_agree_on_having_a_zone(visits, engine, zoned):
    if engine is not None:
        pytest.importorskip(engine)
    whole = records()
    if not zoned:
        whole["time"] = whole["time"].dt.tz_localize(None)
    whole.to_parquet(visits.folder / "2025-03.parquet")
    period = during("2025-03-02", "2025-03-05", timezone=None if zoned else "Europe/Berlin")
    with pytest.raises(ArgumentError, match="zone"):
        people(visits, engine=engine, during=period)


@pytest.mark.parametrize("engine", [None, "pyarrow", "polars", "duckdb", "dask"])
def test_a_midnight_that_does_not_exist(visits, engine):
    """In Beirut the thirtieth of March 2025 began at one o'clock."""
    if engine is not None:
        pytest.importorskip(engine)
    times = pd.to_datetime(
        ["2025-03-29T21:59", "2025-03-29T22:00", "2025-03-30T20:59", "2025-03-30T21:00"], utc=True
    )
    whole = pd.DataFrame({"person": list("abcd"), "time": times.tz_convert("Asia/Beirut")})
    whole.to_parquet(visits.folder / "2025-03.parquet")
    period = during("2025-03-30", "2025-03-31", timezone="Asia/Beirut")
    assert people(visits, engine=engine, during=period) == ["b", "c"]

"""Released tables survive files."""

import csv
import datetime
import hashlib
import json
import os
import warnings
from contextlib import suppress

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings

import pandas_dptree as dpt
from tests.helpers_cases import each
from tests.helpers_files import SUFFIXES, assert_same, column, stated, there_and_back
from tests.helpers_random import rng
from tests.strategies import ODD_VALUES, domains_and_rows, objects

files = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)


@pytest.fixture(params=SUFFIXES)
def path(request, tmp_path):
    if request.param == ".parquet":
        pytest.importorskip("pyarrow")
    return tmp_path / f"counts{request.param}"


@pytest.fixture
def pair(counts, tmp_path):
    """A table in a CSV file, its description, and how to change the latter."""
    path, beside = tmp_path / "counts.csv", tmp_path / "counts.csv.json"
    counts.dp.to_file(path)

    def change(edit):
        data = json.loads(beside.read_text())
        edit(data)
        beside.write_text(json.dumps(data))

    return path, beside, change


def refused(path, fact):
    with pytest.raises(dpt.ArgumentError) as error:
        dpt.read_file(path)
    assert error.value.argument == "path" and fact in error.value.fact and error.value.hint.endswith(".")


# Tables that this package releases.


def test_tables_of_every_verb(counts, means, addresses, visits, path):
    for table in (counts, means, addresses):
        assert there_and_back(table, path) is not table
        there_and_back(table.dp.level(table["level"].cat.categories[1]), path)
    there_and_back(counts.dp.level("total"), path)
    loss = {"epsilon": 1.0, "rng": rng()}
    there_and_back(
        visits.dp.tree_sums(["region"], columns="cost", bounds=(0, 500), domain="observed", **loss), path
    )
    factors = dpt.Multiplicative(alpha=0.25)
    table = visits.dp.tree_counts(["region"], domain="observed", delta=1e-6, mechanism=factors, **loss)
    there_and_back(table, path)


@pytest.mark.parametrize("by", [None, ["region"]])
def test_tables_of_distributions(visits, path, by):
    groups = {} if by is None else {"by": by, "domain": "observed"}
    records = visits.assign(
        when=visits["date"].dt.tz_localize("Europe/Berlin"), wait=pd.to_timedelta(visits["age"], unit="h")
    )
    edges = {
        "cost": [0, 100, 500.5],
        "date": pd.to_datetime(["2024-01-01 00:00", "2024-03-01 00:00", "2025-01-01 12:00"]),
        "when": pd.to_datetime(["2024-01-01", "2024-03-31", "2025-01-01"]).tz_localize("Europe/Berlin"),
        "wait": pd.to_timedelta(["0h", "20h", "100h"]),
    }
    for name, bins in edges.items():
        released = records.dp.release_distribution(name, bins=bins, epsilon=1.0, rng=rng(), **groups)
        there_and_back(released.cdf(confidence=0.9), path)
        there_and_back(released.histogram(), path)
        there_and_back(released.quantiles([0.1, 0.5]), path)
        there_and_back(released.range_counts([tuple(bins[:2]), tuple(bins[1:])]), path)
        if by is not None:
            there_and_back(released.cdf().dp.level("region"), path)


@pytest.mark.parametrize("by", [None, ["region"]])
def test_tables_of_drawn_quantiles(visits, path, by):
    groups = {} if by is None else {"by": by, "domain": "observed"}
    records = visits.assign(
        when=visits["date"].dt.tz_localize("Europe/Berlin"), wait=pd.to_timedelta(visits["age"], unit="h")
    )
    columns = {
        "cost": (0, 500.5),
        "date": (datetime.date(2023, 12, 1), datetime.date(2026, 2, 1)),
        "when": pd.to_datetime(["2023-12-01", "2026-03-30"]).tz_localize("Europe/Berlin"),
        "wait": pd.to_timedelta(["0h", "120h"]),
    }
    for name, bounds in columns.items():
        for own in ({"bins": 4, "confidence": 0.9}, *([{}] if by is None else [])):
            options = {"bounds": bounds, "epsilon": 5.0, "mechanism": "exponential", "rng": rng(), **groups}
            table = records.dp.quantiles(name, [0.25, 0.5], **options, **own)
            there_and_back(table, path)
            if by is not None:
                there_and_back(table.dp.level("region"), path)


def test_derived_levels(visits, path):
    levels = [
        dpt.calendar("date", units=["year", "month", "day"], start="2024-01-01", end="2024-02-15"),
        dpt.cut("age", bins=[0, 9, 18, 65, 100]),
    ]
    for level in levels:
        there_and_back(visits.dp.tree_counts([level], epsilon=1.0, rng=rng()), path)


@settings(files, max_examples=6)
@given(example=domains_and_rows())
def test_releases_of_odd_texts(tmp_path_factory, example):
    domain, rows = example
    table = dpt.tree_counts(rows, list(domain.by), domain=domain, epsilon=1.0, rng=rng())
    for suffix in SUFFIXES:
        there_and_back(table, tmp_path_factory.mktemp("files") / f"counts{suffix}")


@files
@given(places=st.lists(st.integers(0, len(ODD_VALUES) - 1), min_size=1, max_size=4))
def test_releases_of_any_keys_are_kept_or_refused(tmp_path_factory, places):
    keys = objects([ODD_VALUES[place] for place in places]).to_frame("key")
    with suppress(dpt.ArgumentError, OverflowError):  # no keys, or keys that cannot be kept
        domain = dpt.Domain.from_frame(keys, by=["key"])
        table = dpt.tree_counts(keys, ["key"], domain=domain, epsilon=1.0, rng=rng())
        for suffix in SUFFIXES:
            there_and_back(table, tmp_path_factory.mktemp("files") / f"counts{suffix}")


@pytest.mark.parametrize("regions", [["00", "94"], pytest.param(None, marks=pytest.mark.slow)])
def test_real_zip_codes_keep_their_zeros(real_data, path, regions):
    by = ["state", "county", "zip_code"]
    places = pd.read_csv(real_data / "zipcodes.csv", dtype=str, keep_default_na=False)[by].drop_duplicates()
    if regions is not None:
        places = places[places["zip_code"].str[:2].isin(regions)]
    table = dpt.tree_counts(places, by, domain=places, epsilon=1.0, rng=rng())
    back = there_and_back(table, path)
    assert back["zip_code"].str.startswith("00").any()


def test_keys_keep_their_types(path):
    keys = pd.DataFrame(
        {
            "zip": ["00501", "94601", "", None],
            "number": pd.array([2**63 + 1, None, 0, None], dtype="UInt64"),
            "kind": pd.Categorical(["b", None, "a", None], categories=["b", "never", "a"], ordered=True),
        }
    )
    domain = dpt.Domain.from_frame(keys.iloc[:3], by=["zip", "number", "kind"])
    table = keys.dp.tree_counts(["zip", "number", "kind"], domain=domain, epsilon=1.0, rng=rng())
    back = there_and_back(table, path)
    assert back.dp.level("number").equals(table.dp.level("number"))
    assert "" in back["zip"].tolist() and back["zip"].isna().any()


# What is kept.


def test_what_is_kept_of_a_table(counts, path):
    table = counts[counts["level"] == "district"].rename_axis(columns="names")
    table.attrs["mine"] = "secret"
    dpt.to_file(table, path)
    kept = counts[counts["level"] == "district"].reset_index(drop=True)
    assert_same(dpt.read_file(path), kept)
    assert b"secret" not in path.read_bytes()
    reordered = counts.iloc[::-1]
    dpt.to_file(reordered, path)
    assert_same(dpt.read_file(path), reordered.reset_index(drop=True))
    there_and_back(counts.iloc[:0], path)


def test_a_plan_is_kept(counts, path):
    table = counts.copy()
    table.attrs["dp_plan"] = json.dumps(
        {"format": "a plan", "shares": [0.1, 1e-7], "name": "é\ud800", "none": None}
    )
    there_and_back(table, path)
    if path.suffix == ".csv":
        data = json.loads(path.with_name("counts.csv.json").read_text())
        assert data["plan"]["shares"] == [0.1, 1e-7] and data["format"] == "pandas_dptree table, version 1"
        assert data["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert [each["name"] for each in data["columns"]] == list(table)


@each("names", [["level", 1, ("a", 2), "1", "x,\ny", "", None], ["a\x00", "a\ud800"], [3, 1], [0.5]])
def test_names_of_columns(path, names):
    columns = pd.Index(names, tupleize_cols=False, dtype=None if "a\ud800" not in names else object)
    there_and_back(stated(pd.DataFrame([range(len(names))], columns=columns)), path)


@each(
    "values",
    [
        objects(["a\x00", "a", "\ud800", np.nan]),
        objects([1, "1", None]),
        pd.Series([0.1, -0.0, np.inf, np.nan]),
        pd.Series(pd.date_range("2024-10-27", periods=4, freq="h", tz="UTC", unit="s")),
        pd.Series(pd.arrays.IntervalArray.from_breaks(pd.date_range("2024", periods=3, tz="UTC", unit="us"))),
        pd.Series(pd.period_range("2024-01", periods=2, freq="W")),
        pd.Series(["a", None, ""], dtype="string"),
        pd.Series(pd.Categorical([1, None], categories=[1, 2])), pd.Series([True, None], dtype="boolean"),
    ],
)  # fmt: skip
def test_types_in_both_formats(path, values):
    there_and_back(column(values), path)
    there_and_back(stated(values.to_frame("alone")), path)


def test_other_programs_read_the_values(counts, tmp_path):
    counts.dp.to_file(tmp_path / "counts.csv")
    assert (tmp_path / "counts.csv").read_text("utf-8") == counts.to_csv(index=False, lineterminator="\n")
    with (tmp_path / "counts.csv").open(newline="") as lines:
        assert next(csv.reader(lines)) == list(counts)
    pytest.importorskip("pyarrow")
    counts.dp.to_file(tmp_path / "counts.parquet")
    read = pd.read_parquet(tmp_path / "counts.parquet")
    assert read.attrs["dp"] == counts.attrs["dp"]
    assert read.dtypes.equals(counts.dtypes) and read["count"].equals(counts["count"])


# Tables that cannot be written.


@each(
    "table, fact",
    [
        (pd.Series([1]), "must be a released table, not a Series"),
        (pd.DataFrame({"a": [1]}), 'lacks attrs["dp"]'),
        (stated(pd.DataFrame()), "has no columns"),
        (stated(pd.DataFrame([[1, 2]], columns=["a", "a"])), "several of one name"),
        (stated(pd.DataFrame({"a": [1]}).rename_axis("a")), "several of one name"),
        (stated(pd.DataFrame({("a", "b"): [1]})), "columns of several levels"),
        (stated(pd.DataFrame({"a": [1]}, index=["x"])), "index without a name"),
        (
            stated(pd.DataFrame({"a": [1j]})),
            "cannot keep exactly: 'a' (a type that cannot be written as text)",
        ),
        (stated(pd.DataFrame({pd.NaT: [1]})), "cannot keep exactly: NaT"),
    ],
)
def test_tables_that_are_refused(path, table, fact):
    with pytest.raises(dpt.ArgumentError) as error:
        dpt.to_file(table, path)
    assert error.value.argument == "released" and fact in error.value.fact
    assert not list(path.parent.iterdir())


@each("attrs", [{"dp": {1: 2}}, {"dp": {"a": (1,)}}, {"dp": {"a": np.nan}}, {"dp": {"a": {1}}}])
@each("plan", [None, "[]", "{", 5, '{"a": NaN}'])
def test_attrs_that_are_no_json_are_refused(path, attrs, plan):
    table = column(["a"])
    if plan is None:
        table.attrs = attrs
    else:
        table.attrs["dp_plan"] = plan
    with pytest.raises(dpt.ArgumentError, match="not plain JSON"):
        dpt.to_file(table, path)


@each("path, fact", [("a.ods", "unknown type: 'a.ods'"), ("a.csv.gz", "unknown type"), (5, "not an int")])
def test_paths_that_are_refused(counts, path, fact):
    for call in (dpt.read_file, lambda path: dpt.to_file(counts, path)):
        with pytest.raises(dpt.ArgumentError, match=fact):
            call(path)


def test_parquet_needs_pyarrow(counts, path, monkeypatch):
    def missing(name):
        raise ImportError

    monkeypatch.setattr("importlib.import_module", missing)
    if path.suffix == ".parquet":
        with pytest.raises(dpt.MissingExtraError, match="Writing Parquet"):
            counts.dp.to_file(path)
        with pytest.raises(dpt.MissingExtraError, match="Reading Parquet"):
            dpt.read_file(path)
    else:
        there_and_back(counts, path)
        there_and_back(column(["00501", "", None, "a\x00", "é"]), path)


def test_times_beyond_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    table = column(np.array([2**62], dtype="M8[s]"))
    there_and_back(table, tmp_path / "years.csv")
    with pytest.raises(dpt.ArgumentError, match="Parquet cannot hold"):
        dpt.to_file(table, tmp_path / "years.parquet")
    assert len(list(tmp_path.iterdir())) == 2


# Files that are there.


def test_files_are_replaced_unless_told_otherwise(counts, path):
    first = counts.head(3)
    first.dp.to_file(path)
    with pytest.raises(dpt.ArgumentError, match="already exists") as error:
        counts.dp.to_file(path, replace=False)
    assert error.value.argument == "path"
    assert_same(dpt.read_file(path), first)
    there_and_back(counts, path)


@pytest.mark.parametrize("name", ["counts.csv", "counts.csv.json"])
def test_neither_of_two_files_is_replaced(counts, tmp_path, name):
    (tmp_path / name).write_text("other")
    with pytest.raises(dpt.ArgumentError, match=f"already exists: .*{name}'"):
        counts.dp.to_file(tmp_path / "counts.csv", replace=False)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [(name, "other")]


@pytest.mark.parametrize("fails", [1, 2])
@pytest.mark.parametrize("there", [True, False])
def test_both_files_are_written_or_none(counts, tmp_path, monkeypatch, fails, there):
    path = tmp_path / "counts.csv"
    if there:
        counts.head(3).dp.to_file(path)
    replace, calls = os.replace, []

    def sometimes(*arguments):
        calls.append(arguments)
        if len(calls) == fails:
            raise OSError
        replace(*arguments)

    with monkeypatch.context() as failing:
        failing.setattr(os, "replace", sometimes)
        with pytest.raises(dpt.ArgumentError, match="cannot be written"):
            counts.dp.to_file(path)
    assert len(list(tmp_path.iterdir())) == 2 * there
    if there and fails == 1:
        assert_same(dpt.read_file(path), counts.head(3))
    elif there:  # the description is the new one
        refused(path, "was changed")


def test_links_are_followed(counts, tmp_path):
    (tmp_path / "folder").mkdir()
    link = tmp_path / "link.csv"
    link.symlink_to(tmp_path / "folder" / "counts.csv")
    there_and_back(counts, link)
    assert link.is_symlink() and (tmp_path / "link.csv.json").exists()


def test_folders_that_do_not_exist(counts, path):
    with pytest.raises(dpt.ArgumentError, match="cannot be written"):
        counts.dp.to_file(path.parent / "nowhere" / path.name)
    refused(path, "cannot be read")


# Files that are wrong.


def test_a_csv_file_without_its_description(pair):
    path, beside, _ = pair
    beside.unlink()
    refused(path, "lacks its description")


@each(
    "change",
    [lambda b: b.replace(b"\n", b"\r\n"), lambda b: b"\xef\xbb\xbf" + b, lambda b: b[:-1], lambda b: b""],
)
def test_a_csv_file_that_was_saved_by_another_program(pair, change):
    path, _, _ = pair
    before = path.read_bytes()
    path.write_bytes(change(before))
    refused(path, "was changed after it was written")
    path.write_bytes(before)


@each("text", ["", "[]", "{}", "{", '{"format": "pandas_dptree table, version 2"}', "[" * 10**5])
def test_descriptions_of_another_format(pair, text):
    path, beside, _ = pair
    beside.write_text(text)
    refused(path, "has no description of the format 'pandas_dptree table, version 1'")


@each(
    "edit",
    [
        lambda data: data.pop("columns"),
        lambda data: data.pop("sha256"),
        lambda data: data.pop("attrs"),
        lambda data: data.pop("plan"),
        lambda data: data.update(attrs=[]),
        lambda data: data.update(plan="text"),
        lambda data: data.update(columns={}),
        lambda data: data["columns"].pop(),
        lambda data: data["columns"].reverse(),
        lambda data: data["columns"][1].update(name="other"),
        lambda data: data["columns"][1].update(type="int64"),
        lambda data: data["columns"][-1].update(type="int64"),
        lambda data: data["columns"][0]["type"].update(labels=["total"]),
        lambda data: data["columns"][0].update(type={"category": "datetime64[ns]"}),
        lambda data: data["columns"][0].pop("type"),
    ],
)
def test_descriptions_that_do_not_fit(pair, edit):
    path, beside, change = pair
    before = beside.read_text()
    change(edit)
    refused(path, "does not match its description")
    beside.write_text(before)


def test_parquet_files_that_are_wrong(counts, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "counts.parquet"
    counts.to_parquet(path)
    refused(path, "is not a file of a released table")
    counts.dp.to_file(path)
    table = parquet.read_table(path)
    for old, new in [
        ('"int64"', '"float64"'),
        ('"int64"', '"str"'),
        ('"count"', '"other"'),
        ("version 1", "version 0"),
    ]:
        described = table.schema.metadata[b"pandas_dptree"].replace(old.encode(), new.encode())
        parquet.write_table(table.replace_schema_metadata({b"pandas_dptree": described}), path)
        with pytest.raises(dpt.ArgumentError, match="description"):
            dpt.read_file(path)
    path.write_bytes(b"PAR1")
    refused(path, "does not match")


@each("text", ["x" * 10**6, '",\n' * 10**5])
def test_long_lines(path, text):
    there_and_back(column(["a", text, "b"]), path)
    there_and_back(column([text]), path)


def test_no_warnings(counts, path):
    with warnings.catch_warnings(action="error"):
        there_and_back(counts, path)


def test_the_table_is_moved_last(counts, tmp_path, monkeypatch):
    """At no time is there a new table without its own description, whatever move fails or is the last one."""
    path, beside = tmp_path / "counts.csv", tmp_path / "counts.csv.json"
    older, newer = counts.head(3), counts.head(5)
    moves = {name: getattr(os, name) for name in ("replace", "link")}
    seen = []

    def moved(name, source, target):
        seen.append((os.path.basename(target), path.read_bytes() if path.exists() else None))
        if len(seen) == fails:
            raise OSError(5, "cannot be moved")
        moves[name](source, target)

    def touched(*_, **__):
        raise OSError(5, "cannot be made")

    for there, replace, fails in [
        (False, True, 1), (False, True, 2), (False, True, None), (False, False, 1), (False, False, 2),
        (False, False, None), (True, True, 1), (True, True, 2), (True, True, None),
    ]:  # fmt: skip
        if there:
            older.dp.to_file(path)
        before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
        with monkeypatch.context() as failing:
            for name in moves:
                failing.setattr(os, name, lambda *given, name=name: moved(name, *given))
            failing.setattr(type(path), "touch", touched)  # for file systems without links
            if fails is None:
                newer.dp.to_file(path, replace=replace)
            else:
                with pytest.raises(dpt.ArgumentError, match="cannot be written"):
                    newer.dp.to_file(path, replace=replace)
        assert [name for name, _ in seen] == [beside.name, path.name][:fails]
        assert all(table == before.get(path.name) for _, table in seen)
        after = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
        if fails is None:
            assert_same(dpt.read_file(path), newer)
        elif fails == 1 or not there:
            assert after == before
        else:  # the old description is lost, and the old table does not pass for the new one
            assert after[path.name] == before[path.name] and after.keys() == before.keys()
            refused(path, "was changed")
        for file in tmp_path.iterdir():
            file.unlink()
        seen.clear()

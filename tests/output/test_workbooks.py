"""Workbooks, read back with openpyxl."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings

import pandas_dptree as dpt
from pandas_dptree.output import sheets
from tests.helpers_cases import each
from tests.helpers_files import stated
from tests.helpers_random import rng
from tests.strategies import domains_and_rows

openpyxl = pytest.importorskip("openpyxl")


def book_of(released, path, **options):
    """Write a workbook, and read it."""
    dpt.to_file(released, path, **options)
    return openpyxl.load_workbook(path)


def columns_of(sheet):
    """The cells of each column below its head."""
    return {column[0].value: list(column[1:]) for column in sheet.iter_cols()}


def values_of(sheet, head):
    return [cell.value for cell in columns_of(sheet)[head]]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "visits.xlsx"


def test_counts_are_nested_and_folded(counts, path):
    book = book_of(counts, path)
    assert book.sheetnames == ["Read me", "visits"]
    sheet = book["visits"]
    assert sheet.freeze_panes == "A2" and sheet.print_title_rows == "$1:$1"
    assert not sheet.sheet_properties.outlinePr.summaryBelow and sheet.sheet_format.outlineLevelRow == 3
    keys = ["region", "district", "clinic"]
    nested = counts.assign(depth=counts["level"].cat.codes)
    rows = list(zip(*(values_of(sheet, name) for name in ["level", *keys, "count"]), strict=True))
    wanted = nested[["level", *keys, "count"]].astype(object)
    assert sorted(map(str, rows)) == sorted(
        str(tuple(None if pd.isna(v) else v for v in row)) for row in wanted.itertuples(index=False)
    )
    for above, row in itertools.pairwise(rows):  # each row is below its parent or after a sibling's
        depth = 3 - row[1:4].count(None)
        assert above[1:depth] == row[1:depth]
    for number, row in enumerate(rows, start=2):
        group, depth = sheet.row_dimensions[number], 3 - row[1:4].count(None)
        assert (group.outlineLevel, group.hidden) == (depth, depth > 2)
    below = {row[2] for row in rows if row[3] is not None}
    for number, row in enumerate(rows, start=2):
        assert sheet.row_dimensions[number].collapsed == (row[0] == "district" and row[2] in below)


@pytest.fixture(scope="module")
def small(visits):
    """A table of counts, and one of means."""
    loss = {"domain": "observed", "epsilon": 1.0, "rng": rng(), "confidence": 0.9}
    bounds = {"cost": (0, 500), "age": (0, 100)}
    means = visits.dp.tree_means(["region"], columns=["cost", "age"], bounds=bounds, **loss)
    return visits.dp.tree_counts(["region"], **loss), means


def test_numbers_are_kept_and_formatted(small, path):
    counts, means = small
    book = book_of({"visits": counts, "care": means}, path)
    cells = columns_of(book["care"])
    heads = ["cost", "cost ± standard error", "cost lower 90 %", "cost upper 90 %", "cost class", "age"]
    assert list(cells)[2:8] == heads
    found = sorted(cell.value for cell in cells["cost"] if cell.value is not None)
    assert found == pytest.approx(sorted(means["cost"].dropna()), rel=1e-15)
    assert {cell.number_format for cell in columns_of(book["visits"])["count"]} == {"#,##0"}
    assert {cell.number_format for cell in cells["age"] if cell.value is not None} == {"#,##0.0"}
    assert all(cell.data_type == "n" for cell in cells["count"])
    for name, head, table, column in (
        ("visits", "class", counts, "count"),
        ("care", "age class", means, "age"),
    ):
        classes = table.dp.reliability()[column]
        assert values_of(book[name], head) == classes.astype(object).where(classes.notna(), None).tolist()


def test_the_first_sheet_says_what_protects_the_tables(small, path):
    counts, means = small
    book = book_of({"visits": counts, "care": means}, path)
    text = "\n".join(str(cell.value) for (cell,) in book["Read me"].iter_rows())
    for table in (counts, means):
        assert table.attrs["dp"]["digest"] in text and table.attrs["dp"]["table_digest"] in text
    for words in (
        "ε = 1.0",
        "on the sheet “care”",
        "protects nobody",
        "± standard error:",
        "90 %",
        "class: ",
    ):
        assert words in text
    assert "not the whole released table" not in text
    text = "\n".join(
        str(cell.value) for (cell,) in book_of(counts.assign(count=1), path)["Read me"].iter_rows()
    )
    assert "not the whole released table" in text


def test_proportions_are_shown_where_they_are_known(visits, path):
    table = visits.dp.tree_counts(["region"], domain="observed", epsilon=1.0, keep=["linear"], rng=rng())
    book = book_of(table, path)
    cells = columns_of(book["visits"])["proportion of the level above"]
    assert cells[0].value is None and cells[1].number_format == "0.0 %"
    assert sum(cell.value for cell in cells[1:]) == pytest.approx(1)
    shares = table.dp.proportions()
    assert values_of(book["visits"], "proportion of the level above, ±")[1:] == pytest.approx(
        shares["std_error"].tolist()[1:]
    )
    text = "\n".join(str(cell.value) for (cell,) in book["Read me"].iter_rows())
    assert "the quotient of the numbers shown" in text and "not the whole" not in text


def test_a_sheet_per_level(counts, path):
    book = book_of(counts, path, layout="levels")
    assert book.sheetnames[1:] == [f"visits {name}" for name in counts["level"].cat.categories]
    sheet = book["visits district"]
    assert list(columns_of(sheet)) == ["region", "district", "count", "± standard error", "class"]
    assert values_of(sheet, "count") == counts.dp.level("district")["count"].tolist()
    assert all(sheet.row_dimensions[row].outlineLevel == 0 for row in range(1, 9))


def test_distributions_and_quantiles(visits, path):
    groups = {"by": ["region"], "domain": "observed"}
    released = visits.dp.release_distribution("cost", bins=[0, 100, 500], epsilon=1.0, rng=rng(), **groups)
    dates = pd.to_datetime(["2024-01-01 00:00", "2024-03-01 12:00", "2025-01-01 00:00"])
    when = visits.dp.release_distribution("date", bins=dates, epsilon=1.0, rng=rng())
    tables = {
        "cdf": released.cdf(confidence=0.9),
        "median": released.quantiles(0.5),
        "when": when.histogram(),
        "day": when.quantiles([0.5]),
    }
    book = book_of(tables, path)
    assert list(columns_of(book["cdf"]))[2:] == [
        "cost from", "cost below", "count", "± standard error", "lower", "upper", "cdf"
    ]  # fmt: skip
    assert values_of(book["cdf"], "cost from")[:4] == [0, 100, 0, 100]
    assert columns_of(book["cdf"])["cdf"][0].number_format == "0.0 %"
    assert values_of(book["median"], "value") == pytest.approx(tables["median"]["value"].tolist())
    assert values_of(book["when"], "date below") == dates[1:].to_pydatetime().tolist()
    assert columns_of(book["day"])["value"][0].is_date


def test_drawn_quantiles(visits, path):
    own = {"bounds": (0, 500), "epsilon": 5.0, "rng": rng()}
    trees = {"mechanism": "exponential", "bins": 4, "confidence": 0.9, "by": ["region"], "domain": "observed"}
    tables = {
        "median": visits.dp.quantiles("cost", 0.5, **own),
        "quartiles": visits.dp.quantiles("cost", [0.25, 0.5], **own, **trees),
    }
    book = book_of(tables, path)
    assert list(columns_of(book["median"])) == ["q", "value"]
    assert values_of(book["median"], "value") == tables["median"]["value"].tolist()
    assert list(columns_of(book["quartiles"]))[-4:] == ["q", "value", "lower 90 %", "upper 90 %"]
    assert values_of(book["quartiles"], "lower 90 %") == tables["quartiles"]["lower"].tolist()
    told = " ".join(str(row[0].value) for row in book.worksheets[0].iter_rows())
    assert "Drawn at random, by permute-and-flip, from a public grid in steps of 1: values" in told
    assert "Noise of the counts in bins, from which all other numbers are read: discrete Laplace." in told


def test_private_keys_have_a_row_for_others(visits, clinics, path):
    table = visits.dp.tree_counts(
        ["region", "district"], domain=clinics[["region"]].drop_duplicates(), private_keys=["district"],
        epsilon=1.0, delta=1e-6, privacy_unit=dpt.ROWS, rng=rng(),
    )  # fmt: skip
    sheet = book_of(table, path)["visits"]
    others = (table["level"] == "district") & table["district"].isna()
    assert values_of(sheet, "district").count("(other)") == others.sum() > 0


def test_texts_stay_texts(path):
    odd = [
        "=1+1",
        "+1",
        "-1",
        "@a",
        "#N/A",
        "00501",
        "a\x00b",
        "\ud800",
        " x ",
        "_x0041_",
        "é\n",
        "y" * 40_000,
    ]
    keys = pd.DataFrame({"key": pd.Series(odd, dtype=object)})
    table = stated(keys.assign(count=range(len(odd))))
    cells = columns_of(book_of(table, path)["visits"])["key"]
    assert all(cell.data_type == "s" for cell in cells)
    shown = [cell.value for cell in cells]
    assert shown[:9] == [*odd[:6], "a\ufffdb", "\ufffd", " x "]
    assert shown[9] in ("_x0041_", "_x005F_x0041_")  # as openpyxl reads the escape
    assert shown[10] == "é\n" and len(shown[11]) == 32_767 and shown[11].endswith("…")
    assert [cell.quotePrefix for cell in cells[:6]] == [True] * 4 + [False] * 2


@each(
    "values, shown",
    [
        ([2**60, 7], [str(2**60), 7]),
        ([np.inf, np.nan, 0.5], ["inf", None, 0.5]),
        (pd.array([1, None], dtype="Int64"), [1, None]),
        ([True, False], [True, False]),
        (pd.to_datetime(["1800-01-01", None]), ["1800-01-01 00:00:00", None]),
        (pd.to_datetime(["2024-01-01"]).tz_localize("UTC"), ["2024-01-01 00:00:00+00:00"]),
        (pd.to_timedelta(["1h"]), ["0 days 01:00:00"]),
        (pd.period_range("2024-01", periods=1, freq="M"), ["2024-01"]),
    ],
)
def test_values_of_any_type(path, values, shown):
    table = stated(pd.DataFrame({"key": values, "count": range(len(values))}))
    assert values_of(book_of(table, path)["visits"], "key") == shown


def test_names_of_sheets():
    names = ["Read me", "read ME", "a/b[c]:*?\\", "'x'", "", "History", "n" * 40, "n" * 50, "𝒳" * 20, "\x00"]
    titles = sheets.titles_of(names)
    assert titles[:6] == ["Read me", "read ME (2)", "a_b_c_____", "x", "Table", "History_"]
    assert titles[6:8] == ["n" * 31, "n" * 27 + " (2)"] and titles[8] == "𝒳" * 15
    assert len({title.casefold() for title in titles}) == len(names)


def test_what_is_refused(counts, path, monkeypatch):
    with pytest.raises(dpt.ArgumentError, match="does not keep a table exactly"):
        dpt.read_file(path)
    for layout, suffix in (("wide", ".xlsx"), ("levels", ".csv")):
        with pytest.raises(dpt.ArgumentError, match="`layout` is"):
            dpt.to_file(counts, path.with_suffix(suffix), layout=layout)
    for tables in ({}, {1: counts}, {"a": counts, "b": 5}):
        with pytest.raises(dpt.ArgumentError, match="`released`"):
            dpt.to_file(tables, path)
    with pytest.raises(dpt.ArgumentError, match="`released` must be a released table, not a dict"):
        dpt.to_file({"a": counts}, path.with_suffix(".csv"))
    monkeypatch.setattr(sheets, "_MOST_ROWS", len(counts) - 1)
    with pytest.raises(dpt.ArgumentError, match="rows for one sheet of a workbook"):
        dpt.to_file(counts, path)
    assert not list(path.parent.iterdir())
    dpt.to_file(counts, path, layout="levels")
    with pytest.raises(dpt.ArgumentError, match="already exists"):
        dpt.to_file(counts, path, layout="levels", replace=False)
    monkeypatch.setattr(sheets, "_MOST_COLUMNS", 3)
    with pytest.raises(dpt.ArgumentError, match="columns for a workbook"):
        dpt.to_file(counts, path, layout="levels")


def test_openpyxl_is_needed(counts, path, monkeypatch):
    def missing(name):
        raise ImportError

    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(dpt.MissingExtraError, match="Writing workbooks needs the package 'openpyxl'"):
        counts.dp.to_file(path)


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(example=domains_and_rows())
def test_workbooks_of_odd_texts(tmp_path_factory, example):
    domain, rows = example
    table = dpt.tree_counts(rows, list(domain.by), domain=domain, epsilon=1.0, rng=rng())
    path = tmp_path_factory.mktemp("books") / "visits.xlsx"
    for layout in sheets.LAYOUTS:
        book = book_of(table, path, layout=layout)
        assert sum(sheet.max_row - 1 for sheet in book.worksheets[1:]) == len(table)


def test_hostile_labels_stay_in_their_cells(hostile, path):
    text = [cell.value for cell in columns_of(book_of(hostile, path)["visits"])["place"]]
    assert len(text) == len(hostile) and {type(each) for each in text} <= {str, type(None)}

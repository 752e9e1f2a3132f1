"""Several tables on one page: labels, tables side by side, what `show` refuses, and long tables."""

from base64 import b64decode
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from tests.helpers_cases import each
from tests.helpers_output import HOSTILE, rows_of, text_of
from tests.helpers_random import rng

BY = ["region", "district", "clinic"]


def frame(keys, values=None, **columns):
    """A table by hand: one level of keys below the total, or deeper ones by tuples."""
    paths = [key if isinstance(key, tuple) else (key,) for key in keys]
    depth = max(map(len, paths))
    names = [f"k{place}" for place in range(depth)]
    data = {"level": ["total", *(names[len(path) - 1] for path in paths)]}
    for place, name in enumerate(names):
        keys_of = [None, *(path[place] if place < len(path) else None for path in paths)]
        data[name] = pd.Series(keys_of, dtype=object)
    numbers = list(range(len(paths) + 1)) if values is None else values
    return pd.DataFrame({**data, "count": numbers, "std_error": 2.0, **columns})


def headings(tree):
    return ["".join(each.itertext()) for each in tree.iter("h2")]


def test_two_tables_side_by_side_are_matched_by_their_keys(counts, means):
    shuffled = means.sample(frac=1.0, random_state=0).reset_index(drop=True)
    page = dpt.page({"visits": counts, "care": shuffled}, title="x", show=[{"tables": ["visits", "care"]}])
    tree, _ = text_of(page.html)
    rows = {row[0]: row for row in rows_of(tree)[:7]}
    expected = means[means["level"] == "region"].set_index("region")
    assert {*expected.index} | {"Total"} == {*rows}
    assert [len(row) for row in rows.values()] == [1 + 3 + 2 + 2] * 7  # what means are taken of is said once
    for region, cost in expected["cost"].dropna().items():
        assert float(rows[region][4].replace(",", "")) == pytest.approx(cost, abs=0.51)
    spans = [each.text for each in tree.iter("th") if each.get("scope") == "colgroup"]
    assert spans[:2] == ["Visits", "Care"]


def test_labels_name_levels_columns_tables_and_keys(counts):
    labels = {
        "region": ("Area", {"Aldmark": "Old mark"}),
        "count": "Visits",
        "district": {"Aldercombe": "<b>"},
        "v": "Table of visits",
        "total": "All",
    }
    tree, text = text_of(dpt.page({"v": counts.head(44)}, title="x", labels=labels).html)
    assert headings(tree)[:3] == ["Table of visits at a glance", "Area", "District"]
    names = [row[0] for row in rows_of(tree)]
    assert "Old mark" in names and "<b>" in names and "All" in names
    assert "Aldmark" not in text and "Aldercombe" not in text
    assert "Visits by Area" in text and "Table of visits (CSV)" in text


def test_a_group_of_one_is_one_row_and_a_path_that_ends_is_named():
    table = frame(["a", "b", "c", ("a", "x"), ("b", "y"), ("b", "z")])
    tree, text = text_of(dpt.page({"t": table}, title="x").html)
    assert [row[0] for row in rows_of(tree)] == ["a", "b", "c", "Total", "a · x", "y", "z"]
    assert "Without rows here: c." in text


def test_the_largest_come_first_if_asked_for():
    table = frame([("a", "x"), ("b", "y"), ("b", "z"), "a", "b"], [9, 1, 3, 5, 1, 8])
    show = [{"table": "t", "order": "value"}]
    tree, _ = text_of(dpt.page({"t": table}, title="x", show=show).html)
    assert [row[0] for row in rows_of(tree)] == ["b", "a", "Total", "z", "y", "a · x"]


def test_whiskers_are_the_intervals_on_the_scale_of_the_section():
    table = frame(["a", "b"], [30, 10, 20], lower=[29, 0, 15], upper=[31, 14, 40])
    page = dpt.page({"t": table}, title="x").html
    tree, _ = text_of(page)
    bars = [each.get("style") for each in tree.iter("td") if each.get("style")]
    assert bars == ["--v:0.25;--l:0;--u:0.35", "--v:0.5;--l:0.375;--u:1"]
    rows = rows_of(tree)
    assert [row[1:4] for row in rows] == [
        ["10", "0 to 14", "D"],
        ["20", "15 to 40", "B" if 2 / 20 < 0.1 else "C"],
        ["30", "± 1", "B"],
    ]


@each(
    "show, words",
    [
        ([{"table": "w"}], "entry without a table"),
        ([{"as": "levels"}], "entry without a table"),
        (["t"], "entry without a table"),
        ([], "must be a list of mappings"),
        ([{"table": "t", "as": "levles"}], "no kind of section: 'levles'"),
        ([{"table": "t", "ordre": "value"}], "unknown entry .* 'ordre'"),
        ([{"tables": ["t", "u"]}], "different levels side by side"),
    ],
)
def test_what_show_does_not_take(show, words):
    tables = {"t": frame(["a"]), "u": frame(["a"]).rename(columns={"k0": "other"}).replace("k0", "other")}
    with pytest.raises(dpt.ArgumentError, match=f"(?s)`show`.*{words}") as caught:
        dpt.page(tables, title="x", show=show)
    assert caught.value.hint


@each(
    "options",
    [{"title": None}, {"notes": 3}, {"labels": {"a": 3}}, {"labels": ["a"]}],
)
def test_what_a_page_does_not_take(options):
    with pytest.raises(dpt.ArgumentError, match=f"`{next(iter(options))}`"):
        dpt.page({"t": frame(["a"])}, **{"title": "x", **options})


def test_any_text_breaks_nothing():
    texts = [*HOSTILE, "w" * 10_000, "\u202eleft", "\ud800", "\x00\x1b[31m", "\u2029", "</th></table>"]
    table = frame([text for text in texts if text]).rename(columns={"k0": texts[0]})
    table["level"] = table["level"].replace("k0", texts[0])
    labels = {texts[0]: texts[1]}
    page = dpt.page({texts[1]: table}, title=texts[-1], notes=texts[:3], publisher=texts[2], labels=labels)
    tree, text = text_of(page.html)
    names = [row[0] for row in rows_of(tree)]
    assert (
        len(names) == len(table) and "(empty)" in names and "w" * 10_000 in names and "</th></table>" in names
    )
    assert {each.tag for each in tree.iter() if isinstance(each.tag, str)}.isdisjoint({"script", "img", "b"})
    assert tree.find(".//h1").text == texts[-1] and headings(tree)[0] == texts[1]
    style = "".join(tree.find("head/style").itertext())
    assert style.count("{") == style.count("}") and "</th>" not in style
    assert not any(ord(each) < 32 and each not in "\n\t" for each in text)


def test_warnings_and_losses_name_their_tables(visits, clinics):
    domain = clinics[["region"]].drop_duplicates()
    good = visits.dp.tree_counts(["region"], domain=domain, epsilon=1.0)
    test = visits.dp.tree_counts(["region"], domain=domain, epsilon=0.5, rng=rng())
    cut = good.head(4)
    _, text = text_of(dpt.page({"good": good, "test": test, "cut": cut}, title="x").html)
    assert "Test: This table is a test." in text and "Good: This" not in text
    assert "Cut: This is not the whole released table" in text
    assert "Test: ε = 0.5" in text and "Good: ε = 1.0" in text
    assert "nobody can tell" not in text  # one of them protects nobody
    alone = dpt.page({"good": good}, title="x", date="2025-12-01", publisher="Office").html
    assert "nobody can tell" in alone and "Office · 2025-12-01" in alone


def test_a_page_in_a_notebook_and_in_a_file(tmp_path):
    page = dpt.page({"t": frame(["a"])}, title="x")
    page.write(tmp_path / "page.html")
    assert Path(tmp_path / "page.html").read_text("utf-8") == page.html
    frame_, _ = text_of(page._repr_html_())
    assert frame_.find(".//iframe").get("srcdoc") == page.html
    assert str(len(page.html)) in repr(page).replace(",", "")


def test_the_table_is_on_the_page_as_a_file(counts):
    tree, _ = text_of(dpt.page({"a/b": counts}, title="x").html)
    link = next(each for each in tree.iter("a") if each.get("download"))
    assert link.get("download") == "a_b.csv"
    kind, content = link.get("href").split(";base64,")
    assert kind == "data:text/csv;charset=utf-8"
    read = pd.read_csv(BytesIO(b64decode(content)))
    assert read["count"].tolist() == counts["count"].tolist()
    assert "download=" not in dpt.page({"a": counts}, title="x", downloads=False).html


def long_table(n):
    leaf = np.arange(n)
    keys = [(f"{key // 5000}", f"{key // 100}", f"{key}") for key in leaf]
    above = sorted({key[:depth] for key in keys for depth in (1, 2)})
    return frame([*above, *keys])


def test_a_long_table_stops_at_a_level_and_says_so():
    table = long_table(6_000)
    page = dpt.page({"t": table}, title="x", downloads=False).html
    assert "This page leaves out k2 (6,000 rows), for which the table is too long." in page
    assert len(page) < 60_000


@pytest.mark.slow
def test_a_table_of_100_000_rows_is_a_page_in_three_seconds_and_five_megabytes(counts):
    from time import process_time

    table = long_table(100_000)
    table.attrs = counts.attrs
    start = process_time()
    page = dpt.page({"t": table}, title="x").html
    assert process_time() - start < 3 and len(page.encode()) < 5e6

"""The section that compares two releases: the numbers that the library derives, row by row."""

import re

import pytest

import pandas_dptree as dpt
from tests.helpers_output import rows_of, text_of

BY = ["region", "district"]


@pytest.fixture(scope="module")
def releases(visits, clinics):
    options = {"domain": clinics[BY].drop_duplicates(), "epsilon": 1.0, "confidence": 0.9, "keep": ["linear"]}
    return {
        "now": visits.dp.tree_counts(BY, **options),
        "then": visits.iloc[::2].dp.tree_counts(BY, **options),
    }


def number(text):
    return float(text.replace("−", "-").replace(",", "").replace("+", "").replace("± ", "").replace(" %", ""))


def test_changes_are_shown_row_by_row(releases):
    show = [{"table": "now", "as": "change", "before": "then"}]
    tree, text = text_of(dpt.page(releases, title="x", show=show).html)
    expected = releases["now"].dp.change_from(releases["then"], confidence=0.9)
    stated = expected.attrs["dp_derived"]
    rows = {row[0]: row for row in rows_of(tree)}
    assert len(rows_of(tree)) == len(expected) == 44
    for _, row in expected[expected["level"] == "region"].iterrows():
        shown = rows[row["region"]]
        assert number(shown[3]) == row["change"]
        assert shown[3][0] == ("+" if row["change"] > 0 else "−" if row["change"] < 0 else "0")
        assert number(shown[2]) - number(shown[1]) == row["change"]
        assert (shown[8] == "yes") == row["beyond_noise"]
        if row["percent"] == row["percent"]:
            assert number(shown[5]) == pytest.approx(row["percent"], abs=0.51)
    assert f"{stated['beyond_noise']} of the 44 changes" in text
    assert f"(Holm): {stated['beyond_noise_holm']}." in text
    for cell in tree.iter("td"):
        if cell.get("class") == "d":
            value, lower, upper = (float(each.split(":")[1]) for each in cell.get("style").split(";"))
            assert 0 <= lower <= value <= upper <= 1


@pytest.mark.parametrize("before", [None, "other", 3])
def test_a_change_wants_a_table_before(releases, before):
    show = [{"table": "now", "as": "change", "before": before}]
    with pytest.raises(dpt.ArgumentError, match=r"(?s)`show`.*one table with one before"):
        dpt.page(releases, title="x", show=show)


@pytest.mark.parametrize(("by", "bold"), [(["region"], 1), (BY, 7)])
def test_heads_are_as_chosen_and_only_what_is_above_others_is_bold(visits, clinics, by, bold):
    options = {"domain": clinics[by].drop_duplicates(), "epsilon": 1.0, "keep": ["linear"]}
    tables = {name: visits.dp.tree_counts(by, **options) for name in ("now", "then")}
    show = [{"table": "now", "as": "change", "before": "then", "now": "March"}]
    page = dpt.page(tables, title="T", show=show).html
    assert 'class="n">then</th><th scope="col" class="n">March</th>' in page.lower().replace("march", "March")
    section = page[page.index("March</th>") :]
    rows = re.findall(r'<tr class="(\w+)', section[: section.index("</table>")])
    assert rows.count("t") == bold

"""Pictures and pages of released tables: what they show is what the table says, whatever it says."""

import os
import re
import shutil
import subprocess
import sys
from html import unescape
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.output.released import Released
from pandas_dptree.output.report import statement

matplotlib = pytest.importorskip("matplotlib")
plt = pytest.importorskip("matplotlib.pyplot")
matplotlib.use("agg")
BY = ["region", "district", "clinic"]
HOSTILE = [
    "<script>document.title = 'taken'</script>",
    "</script><img src=x onerror=\"document.title='taken'\">",
    "&amp; 100 % {0} {x} %{label} $\\frac{1}{2}$",
    "مرحبا‏",
    "Žižkov 東京 🏥",
    "None",
    "nan",
    "<NA>",
    "",
    "two\nlines",
    "\"quoted\" 'twice'",
]


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def visits():
    return dpt.datasets.clinic_visits(2_000)


@pytest.fixture(scope="module")
def clinics():
    return dpt.datasets.clinics()


@pytest.fixture(scope="module")
def counts(visits, clinics):
    return visits.dp.tree_counts(BY, domain=clinics, epsilon=1.0, rng=rng())


@pytest.fixture(scope="module")
def means(visits, clinics):
    bounds = {"cost": (0, 500), "age": (0, 100)}
    return visits.dp.tree_means(
        ["cost", "age"], BY, domain=clinics, bounds=bounds, epsilon=1.0, confidence=0.9, rng=rng()
    )


@pytest.fixture(scope="module")
def addresses():
    records = pd.DataFrame({"ip": ["10.0.0.1"] * 500 + ["10.0.1.2"] * 300 + ["1.2.3.4"]})
    return records.dp.tree_counts(dpt.prefixes("ip", bits=[8, 16, 32]), epsilon=1.0, delta=1e-6, rng=rng())


@pytest.fixture
def hostile():
    places = pd.DataFrame({"place": np.repeat(HOSTILE, 2), "<b>kind</b>": ["<i>a</i>", "b"] * len(HOSTILE)})
    return places.dp.tree_counts(list(places), domain=places.drop_duplicates(), epsilon=100.0, rng=rng())


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


# The tree of the rows, against paths spelled out.


def paths(table, keys):
    rows = table[keys].astype(object).itertuples(index=False, name=None)
    depths = [["total", *keys].index(level) for level in table["level"]]
    return [
        tuple("(other)" if pd.isna(key) else str(key) for key in row[:depth])
        for row, depth in zip(rows, depths, strict=True)
    ]


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("which", ["counts", "addresses", "hostile"])
def test_rows_know_their_parents_and_names(which, shuffled, request):
    table = request.getfixturevalue(which)
    table = table.sample(frac=1, random_state=0) if shuffled else table
    released = Released.of(table)
    named = paths(table, released.keys)
    row_of = {path: row for row, path in enumerate(named)}
    assert released.parent.tolist() == [row_of[path[:-1]] if path else -1 for path in named]
    assert [released.name(row) for row in range(len(table))] == [(("total", *path))[-1] for path in named]
    assert [released.path(row) for row in range(len(table))] == [
        ", ".join(path[::-1]) if path else "total" for path in named
    ]
    nested = [named[row] for row in released.nested]
    assert sorted(released.nested) == list(range(len(table)))
    for above, path in pairwise(nested):  # each follows its parent, or what is below a sibling
        assert above[: len(path) - 1] == path[:-1]


def test_a_table_is_read_back_from_a_file(counts, tmp_path):
    counts.to_csv(tmp_path / "counts.csv", index=False)
    read = pd.read_csv(tmp_path / "counts.csv")
    assert Released.of(read).parent.tolist() == Released.of(counts).parent.tolist()
    assert "unknown: the table does not tell" in read.dp.to_html()
    read.dp.plot.levels(n=2)


def test_whole_keys_are_whole_again_after_a_file(tmp_path):
    records = pd.DataFrame({"year": [2024, 2025] * 5, "half": [0.5, 1.5] * 5})
    table = records.dp.tree_counts(["year", "half"], domain="observed", epsilon=1.0, rng=rng())
    table.to_csv(tmp_path / "table.csv", index=False)
    read = Released.of(pd.read_csv(tmp_path / "table.csv"))
    assert read.table["year"].dtype == float
    paths = [read.path(row) for row in range(len(table))]
    assert paths == ["total", "2024", "2025", "0.5, 2024", "1.5, 2025"]


def named(keys):
    """Release a table of some paths; call the rows of its last level."""
    records = pd.DataFrame(keys, columns=["state", "year", "month"])
    table = records.dp.tree_counts(list(records), domain="observed", epsilon=1.0, rng=rng())
    return [Released.of(table).path(row) for row in np.flatnonzero(table["level"] == "month")]


def test_names_leave_out_what_the_next_key_tells():
    keys = [("Texas", 1992, "1992-06"), ("Texas", 1993, "1993-01"), ("Utah", 1992, "1992-06")]
    assert named(keys) == ["1992-06, Texas", "1993-01, Texas", "1992-06, Utah"]
    assert named([*keys, ("Utah", 1993, "June")])[-1] == "June, 1993, Utah"  # one that tells nothing
    assert named([("Utah", 1, "12"), ("Utah", 12, "123")]) == [
        "12, 1, Utah",
        "123, 12, Utah",
    ]  # not of one length
    assert named([("Utah", "a", "a")]) == ["a, a, Utah"]  # called alike


def test_a_table_comes_back_from_parquet_with_its_provenance(counts, tmp_path):
    pytest.importorskip("pyarrow")
    counts.to_parquet(tmp_path / "counts.parquet")
    assert pd.read_parquet(tmp_path / "counts.parquet").dp.to_html() == counts.dp.to_html()


def test_levels_without_rows_may_be_forgotten(counts):
    below = counts[counts["level"] != "total"]
    forgotten = below.assign(level=below["level"].cat.remove_unused_categories())
    assert Released.of(forgotten).parent.tolist() == Released.of(below).parent.tolist()
    assert forgotten.dp.to_html() == below.dp.to_html()


def test_numbers_written_as_text_are_refused(counts):
    written = counts.assign(std_error=counts["std_error"].map("{:.1f} visits".format))
    for draw in (written.dp.plot.levels, written.dp.plot.icicle, written.dp.to_html):
        with pytest.raises(dpt.ArgumentError, match=r"no number, in the column 'std_error'.*\nHint: "):
            draw()


@pytest.mark.parametrize("error", [np.inf, np.nan, 0.0])
def test_errors_of_all_sizes(counts, error):
    table = counts.assign(std_error=error)
    table.dp.plot.levels(n=2)
    table.dp.to_html()
    pytest.importorskip("plotly")
    assert table.dp.plot.icicle().data[0].marker.colors[0] == (0 if error else -3)


def test_a_branch_keeps_its_order(counts):
    branch = counts[counts["region"].eq("Corrow") & counts["level"].isin(["district", "clinic"])]
    released = Released.of(branch)
    assert (released.parent[released.depth == 2] == -1).all()
    assert (released.parent[released.depth == 3] >= 0).all()
    branch.dp.plot.icicle()


@pytest.mark.parametrize(
    ("spoil", "fact"),
    [
        (lambda table: table.drop(columns="level"), "is not a table that was released"),
        (lambda table: table.drop(columns="count"), "is not a table that was released"),
        (lambda table: table.drop(columns="district"), "lacks keys"),
        (lambda table: table.head(0), "has no rows"),
        (lambda table: table.assign(level="elsewhere"), "rows of no level"),
        (lambda table: pd.concat([table, table]), "several rows for one node"),
    ],
)
def test_what_is_no_released_table_is_refused(counts, spoil, fact):
    table = spoil(counts)
    for draw in (table.dp.plot.levels, table.dp.plot.icicle, table.dp.to_html):
        with pytest.raises(dpt.ArgumentError, match=fact):
            draw()


# Dots and whiskers.


def test_levels_shows_the_largest_nodes_with_their_errors(counts):
    axes = counts.dp.plot.levels(n=4)
    assert len(axes) == 4
    for panel, level in zip(axes, ["total", *BY], strict=True):
        rows = counts[counts["level"] == level]
        largest = rows.sort_values("count", ascending=False, kind="stable").head(4)
        dots, _, (bars,) = panel.containers[0]
        assert dots.get_xdata().tolist() == largest["count"].tolist()
        ends = np.array([segment[:, 0] for segment in bars.get_segments()])
        assert np.allclose(ends.mean(axis=1), largest["count"])
        assert np.allclose(np.ptp(ends, axis=1), 2 * largest["std_error"])
        labels = [label.get_text() for label in panel.get_yticklabels()]
        assert labels == [", ".join(path[::-1]) or "total" for path in paths(largest, BY)]
        assert level in panel.get_title(loc="left")
    assert f"{counts.loc[0, 'std_error']:.3g}" in axes[0].get_title(loc="left")
    assert "the 4 largest of 37" in axes[2].get_title(loc="left")
    assert axes[-1].get_xlabel() == "count ± standard error"


def test_levels_shows_intervals_and_leaves_out_what_is_missing(means):
    axes = means.dp.plot.levels(n=30)
    rows = means[means["level"] == "district"].dropna(subset="cost")
    rows = rows.sort_values("count", ascending=False, kind="stable").head(
        30
    )  # not those with the largest mean
    dots, _, (bars,) = axes[2].containers[0]
    assert dots.get_xdata().tolist() == rows["cost"].tolist()
    assert np.allclose([segment[:, 0] for segment in bars.get_segments()], rows[["cost_lower", "cost_upper"]])
    assert axes[-1].get_xlabel() == "cost with its 90 % interval"
    assert means.dp.plot.levels("age")[-1].get_xlabel().startswith("age")


def test_levels_of_other_tables(addresses, visits, clinics):
    labels = [label.get_text() for label in addresses.dp.plot.levels()[1].get_yticklabels()]
    assert labels == ["10.0.0.0/8", "(other)"]
    multiplicative = visits.dp.tree_counts(
        BY, domain=clinics, epsilon=1.0, delta=1e-6, mechanism=dpt.Multiplicative(alpha=0.25), rng=rng()
    )
    assert multiplicative.dp.plot.levels(n=2)[-1].get_xlabel() == "count ± error bound"


def test_labels_are_no_markup_in_a_picture(hostile):
    axes = hostile[~hostile["place"].isin(["مرحبا‏", "Žižkov 東京 🏥"])].dp.plot.levels(n=20)
    axes[0].figure.canvas.draw()  # no mathematics, and no error
    labels = [label.get_text() for label in axes[1].get_yticklabels()]
    assert "&amp; 100 % {0} {x} %{label} $\\frac{1}{2}$" in labels
    assert "two lines" in labels


@pytest.mark.parametrize("n", [0, -1, 2.5, True, "many"])
def test_levels_wants_a_number(counts, n):
    with pytest.raises(dpt.ArgumentError, match="`n`"):
        counts.dp.plot.levels(n=n)


def test_a_column_that_is_not_there(counts):
    for draw in (counts.dp.plot.levels, counts.dp.plot.icicle):
        with pytest.raises(dpt.ArgumentError, match=r"\['count'\]"):
            draw("cost")
    for columns in ("cost", ("count",), [["count"]]):
        with pytest.raises(dpt.ArgumentError, match=r"`columns`.*\n.*\['count'\]"):
            counts.dp.to_html(columns=columns)
    assert "icicle" in repr(counts.dp.plot)


# The icicle.


def test_icicle_shows_all_nodes(counts):
    go = pytest.importorskip("plotly.graph_objects")
    figure = counts.dp.plot.icicle()
    assert isinstance(figure, go.Figure)
    (icicle,) = figure.data
    assert list(icicle.values) == counts["count"].tolist()
    assert len({*icicle.ids}) == len(counts)
    named = paths(counts, BY)
    path_of = dict(zip(icicle.ids, named, strict=True))
    assert [path_of.get(parent) for parent in icicle.parents] == [p[:-1] if p else None for p in named]
    place = named.index(("Aldmark",))
    count, error = counts.loc[place, "count"], counts.loc[place, "std_error"]
    assert icicle.customdata[place][1] == f"count {count:,} ± {error:.3g} ({100 * error / count:.3g} %)"
    assert icicle.marker.colors[place] == pytest.approx(np.log10(error / count))
    empty = counts["count"].eq(0).to_numpy()
    assert (np.asarray(icicle.marker.colors)[empty] == 0).all()  # 100 % or more


def luminance(colors):
    """The relative luminance of the Web Content Accessibility Guidelines, of colours from 0 to 255."""
    part = np.asarray(colors) / 255
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def test_names_can_be_read_on_every_shade(counts):
    pytest.importorskip("plotly")
    (icicle,) = counts.dp.plot.icicle().data
    stops, colors = zip(*icicle.marker.colorscale, strict=True)
    colors = [[int(color[at : at + 2], 16) for at in (1, 3, 5)] for color in colors]
    at = (np.asarray(icicle.marker.colors) + 3) / 3
    shade = luminance(np.stack([np.interp(at, stops, band) for band in np.transpose(colors)], axis=1))
    text = np.asarray(icicle.textfont.color) == "#fff"
    assert 0 < text.sum() < len(text)
    lighter, darker = np.maximum(shade, text), np.minimum(shade, text)
    assert ((lighter + 0.05) / (darker + 0.05)).min() > 4.5


def test_icicle_draws_what_adds_up(visits, clinics, means, addresses):
    pytest.importorskip("plotly")
    sums = visits.dp.tree_sums("cost", BY, bounds=(0, 500), domain=clinics, epsilon=1.0, rng=rng())
    sums.dp.plot.icicle()
    means.dp.plot.icicle("count")
    addresses.dp.plot.icicle()
    nonnegative = visits.dp.tree_counts(BY, domain=clinics, epsilon=1.0, consistency="nonnegative", rng=rng())
    nonnegative.dp.plot.icicle()
    known = visits.dp.tree_counts(["region"], domain=clinics[["region"]].drop_duplicates(), epsilon=1.0,
                                  known={"total": 3_900}, rng=rng())  # fmt: skip
    assert known.dp.plot.icicle().data[0].marker.colors[0] == -3


def test_icicle_refuses_what_areas_cannot_show(visits, clinics, counts, means):
    def released(consistency):
        return visits.dp.tree_counts(BY, domain=clinics, epsilon=1.0, consistency=consistency, rng=rng())

    for table, fact in [
        (released("linear"), "negative values"),
        (released("none").query("count >= 0"), "does not add up"),
        (counts[counts["count"].gt(40)], "does not add up"),
        (counts.assign(count=counts["count"] + (counts["level"] == "clinic")), "does not add up"),
        (means, "missing values"),
    ]:
        with pytest.raises(dpt.ArgumentError, match=fact):
            table.dp.plot.icicle()
    with pytest.raises(dpt.ArgumentError, match=r'`value` has missing.*\nHint: value="count"'):
        means.dp.plot.icicle()
    with pytest.raises(dpt.ArgumentError, match=r"`max_nodes`.*\nHint: .*!= 'clinic'"):
        counts.dp.plot.icicle(max_nodes=100)
    for most in (0, True, "many"):
        with pytest.raises(dpt.ArgumentError, match="`max_nodes` must be a whole number"):
            counts.dp.plot.icicle(max_nodes=most)


# The page.


def text_of(page):
    """Parse a page as a browser does; give its elements and its text."""
    html5lib = pytest.importorskip("html5lib")
    tree = html5lib.HTMLParser(namespaceHTMLElements=False).parse(page)
    return tree, "".join(tree.itertext())


def rows_of(tree):
    return [["".join(cell.itertext()) for cell in row] for row in tree.find("body").iterfind(".//tbody/tr")]


def test_a_page_shows_all_rows_nested(counts):
    pytest.importorskip("great_tables")
    tree, text = text_of(counts.dp.to_html())
    rows = rows_of(tree)
    released = Released.of(counts)
    assert [row[0] for row in rows] == [released.name(place) for place in released.nested]
    assert [int(row[1].replace(",", "")) for row in rows] == counts["count"].take(released.nested).tolist()
    errors = [float(row[2].removeprefix("± ")) for row in rows]
    assert errors == pytest.approx(counts["std_error"].take(released.nested).tolist(), abs=0.051)
    depths = [int(span.get("class")[-1]) for span in tree.find("body").iterfind(".//tbody/tr/th/span")]
    assert depths == released.depth[released.nested].tolist()
    assert tree.find("head/title").text == "Count, by region, district and clinic"
    assert "pure differential privacy with ε = 1.0" in text
    assert "It protects nobody" in text or "it protects nobody" in text  # it was seeded


def test_a_page_stands_by_itself(counts):
    page = counts.dp.to_html(title="A title")
    tree, _ = text_of(page)
    assert {element.tag for element in tree.iter() if isinstance(element.tag, str)}.isdisjoint(
        {"script", "link", "img", "iframe", "object", "embed", "base"}
    )
    assert not re.search(r"https?://|@import|url\(", page)
    assert "default-src 'none'" in page
    assert page == counts.dp.to_html(title="A title")


def test_a_page_of_means_shows_what_was_chosen(means):
    tree, text = text_of(means.dp.to_html(title="Means", max_rows=50))
    rows = rows_of(tree)
    assert len(rows) == 1 + 6 + 37
    assert len(rows[0]) == 10
    title, left_out = list(tree.find("body"))[:2]
    assert (title.tag, left_out.text) == (
        "h1",
        "This page leaves out clinic (678 rows), for which the table is too long.",
    )
    assert tree.find("body").find(".//thead//th").text == "region → district"
    assert "leaves out" not in means.dp.to_html(max_rows=None)
    assert "in at least about 90 % of all releases" in text
    assert "they may be a single number" in text
    assert "right to first order" in text
    assert any(row[1] == "–" for row in rows)
    lower, upper = means.loc[0, ["lower", "upper"]].astype(int)
    assert rows[0][9] == f"{lower:,} to {upper:,}"
    assert not any(float(row[2][2:]) == 0 for row in rows if row[2] != "± –")  # no error looks like none
    assert len(rows_of(text_of(means.dp.to_html(columns=["age", "count"]))[0])[0]) == 7
    assert len(rows_of(text_of(means.dp.to_html(columns="age", max_rows=None))[0])) == len(means)


@pytest.mark.parametrize(
    "options", [{"max_rows": 0}, {"max_rows": True}, {"columns": []}, {"columns": ["count"] * 2}]
)
def test_a_page_wants_sensible_options(counts, options):
    with pytest.raises(dpt.ArgumentError, match=f"`{next(iter(options))}`"):
        counts.dp.to_html(**options)


def test_a_level_that_does_not_fit_at_all(counts):
    with pytest.raises(dpt.ArgumentError, match="the first level alone has 678 rows"):
        counts[counts["level"] == "clinic"].dp.to_html(max_rows=100)


def test_labels_are_text_on_a_page(hostile):
    hostile.attrs["dp"] |= {"mechanism": HOSTILE[0], "privacy_unit": HOSTILE[1], "known": {HOSTILE[0]: 1}}
    tree, text = text_of(hostile.dp.to_html(title=HOSTILE[1]))
    names = [row[0] for row in rows_of(tree)]
    assert names[0] == "total"
    assert [name for name in names if name not in ("total", "<i>a</i>", "b")] == [
        label for label in Released.of(hostile).table.query("level == 'place'")["place"]
    ]
    assert {*HOSTILE} <= {*names}
    tags = {element.tag for element in tree.find("body").iter() if isinstance(element.tag, str)}
    assert tags.isdisjoint({"script", "img", "b", "i"})
    for written in ("<b>kind</b>", HOSTILE[0], HOSTILE[1]):
        assert written in text
    assert tree.find("head/title").text == HOSTILE[1]


@pytest.mark.parametrize(
    "provenance", [None, [], "yes", {"epsilon": None}, {"rho": "<b>", "known": 3, "rng": 1}]
)
def test_a_page_of_a_table_with_a_strange_provenance(counts, provenance):
    table = counts.head(7).copy()
    table.attrs = {} if provenance is None else {"dp": provenance}
    _, text = text_of(table.dp.to_html())
    assert "unknown" in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epsilon": 0.5}, "pure differential privacy with ε = 0.5"),
        ({"epsilon": 0.5}, "each single record"),
        ({"epsilon": 0.5}, "discrete Laplace"),
        ({"epsilon": 0.5}, "(neighbours by addition or removal)"),
        ({"rho": 0.1, "neighbors": "replace"}, "(neighbours by replacement)"),
        ({"rho": 0.1}, "zero-concentrated differential privacy with ρ = 0.1"),
        ({"rho": 0.1}, "discrete Gaussian"),
        ({"epsilon": 1.0, "delta": 1e-6}, "approximate differential privacy with ε = 1.0 and δ = 1e-06"),
        ({"epsilon": 1.0, "privacy_unit": "person", "max_contributions": 3}, "in the column “person”"),
        ({"epsilon": 1.0, "privacy_unit": "person", "max_contributions": 3}, "At most 3 records"),
        (
            {"epsilon": 1.0, "privacy_unit": "person", "max_contributions": 1},
            "At most 1 record of each was counted",
        ),
        ({"epsilon": 1.0}, "Which rows the table has: not protected."),
        ({"epsilon": 1.0, "known": {"total": 4_000}}, "1 of the level total"),
        ({"epsilon": 1.0}, f"pandas_dptree {dpt.__version__}"),
    ],
)
def test_protection_in_words(visits, clinics, options, words):
    table = visits.dp.tree_counts(["region"], domain=clinics[["region"]].drop_duplicates(), **options)
    assert words in " ".join(statement(table.attrs["dp"]))
    page = table.dp.to_html()
    assert words in text_of(page)[1]
    assert "protects nobody" not in page


def test_a_repeatable_release_claims_no_protection(counts):
    assert statement(counts.attrs["dp"])[0].startswith("Protection: none. Had the noise been secret")


def test_protection_of_other_tables(visits, clinics, addresses):
    regions = {"domain": clinics[["region"]].drop_duplicates(), "epsilon": 1.0}
    sums = visits.dp.tree_sums(
        ["cost", "age"], ["region"], bounds={"cost": (0, 500), "age": (-1, 99.5)}, **regions
    )
    words = " ".join(statement(sums.attrs["dp"]))
    assert "Values of “cost” were clipped to between 0 and 500" in words
    assert "Values of “age” were clipped to between -1 and 99.5" in words
    alone = dpt.plan(dpt.Domain.from_frame(clinics, by=BY), column="cost", bounds=(0, 9), epsilon=1.0)
    assert "“cost” were clipped to between 0 and 9," in " ".join(
        statement(alone.release(visits, rng=rng()).attrs["dp"])
    )
    means = visits.dp.tree_means("cost", ["region"], bounds=(0, 500), known={"total": 4_000}, **regions)
    words = " ".join(statement(means.attrs["dp"]))
    assert "shown without noise, of “count”: 1 of the level total." in words
    assert "protected like its values" in " ".join(statement(addresses.attrs["dp"]))
    assert "It is missing (–) where none was measured" in addresses.dp.to_html()
    factor = visits.dp.tree_counts(
        BY, domain=clinics, epsilon=1.0, delta=1e-6, mechanism=dpt.Multiplicative(alpha=0.25, failure=0.1)
    )
    assert "it holds with a probability of 0.9." in factor.dp.to_html()


def test_a_file_is_written_whole_or_not_at_all(counts, tmp_path, monkeypatch):
    table = counts.head(7)
    assert table.dp.to_html(tmp_path / "report.html") is None
    written = (tmp_path / "report.html").read_bytes()
    assert written.decode() == table.dp.to_html()
    assert os.stat(tmp_path / "report.html").st_mode & 0o200
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("no space")))
    with pytest.raises(dpt.ArgumentError, match="cannot be written"):
        counts.head(3).dp.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_bytes() == written
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(dpt.ArgumentError, match="cannot be written"):
        table.dp.to_html(tmp_path / "nowhere" / "report.html")
    with pytest.raises(dpt.ArgumentError, match=r"`path` cannot be written: 5\.\nHint: "):
        table.dp.to_html(5)


def test_what_a_link_leads_to_is_replaced(counts, tmp_path):
    target = tmp_path / "folder" / "target.html"
    target.parent.mkdir()
    (tmp_path / "report.html").symlink_to(target)
    counts.dp.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").is_symlink() and target.read_text().startswith("<!")


def test_what_is_no_unicode_is_replaced(counts, tmp_path):
    counts.head(7).dp.to_html(tmp_path / "report.html", title="a\ud800b")
    assert "<h1>a?b</h1>" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("module", "package", "draw"),
    [
        ("matplotlib.pyplot", "matplotlib", lambda table: table.dp.plot.levels()),
        ("plotly", "plotly", lambda table: table.dp.plot.icicle()),
        ("great_tables", "great_tables", lambda table: table.dp.to_html()),
    ],
)
def test_what_is_not_installed_is_named(counts, module, package, draw, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(dpt.MissingExtraError, match=rf"'{package}'.*\n.*pandas_dptree\[report\]"):
        draw(counts)


# In a browser, where there is one.

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def browse(tmp_path):
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium")

    def dom(path):
        options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
        command = [browser, *options, "--virtual-time-budget=2000", "--dump-dom", path.as_uri()]
        done = subprocess.run(command, capture_output=True, timeout=60, check=True)
        return text_of(done.stdout.decode())

    return dom


def test_a_browser_shows_the_page_and_runs_nothing(hostile, tmp_path, browse):
    hostile.dp.to_html(tmp_path / "report.html", title="Safe")
    tree, _ = browse(tmp_path / "report.html")
    assert tree.find("head/title").text == "Safe"
    assert {*HOSTILE} <= {row[0] for row in rows_of(tree)}


def test_a_browser_shows_the_icicle_and_its_labels(hostile, tmp_path, browse):
    pytest.importorskip("plotly")
    hostile.dp.plot.icicle().write_html(tmp_path / "icicle.html", include_plotlyjs="directory")
    tree, _ = browse(tmp_path / "icicle.html")
    title = tree.find("head/title")
    assert title is None or title.text != "taken"
    shown = {
        unescape(text.get("data-unformatted", "").split("<br>")[0])
        for text in tree.find("body").iter(f"{SVG}text")
    }
    assert {HOSTILE[0], "None", "nan", "Žižkov 東京 🏥"} <= shown


POINT = """
window.addEventListener("error", event => document.body.dataset.error = event.message);
console.error = (...words) => document.body.dataset.error = words.join(" ");
setTimeout(() => {
    for (const slice of document.querySelectorAll("g.slice"))
        if (slice.textContent.startsWith("Aldmark"))
            slice.dispatchEvent(new MouseEvent("mouseover", {bubbles: true, clientX: 99, clientY: 199}));
}, 500);
"""


def test_pointing_at_a_node_tells_its_error(counts, tmp_path, browse):
    pytest.importorskip("plotly")
    figure = counts.dp.plot.icicle()
    figure.write_html(tmp_path / "icicle.html", include_plotlyjs="directory", post_script=POINT)
    tree, _ = browse(tmp_path / "icicle.html")
    body = tree.find("body")
    assert body.get("data-error") is None
    (hover,) = [group for group in body.iter(f"{SVG}g") if group.get("class") == "hoverlayer"]
    count, error = counts.loc[counts["region"].eq("Aldmark").idxmax(), ["count", "std_error"]]
    assert "Aldmark" in "".join(hover.itertext())
    assert f"count {count:,.0f} ± {error:.3g}" in "".join(hover.itertext())

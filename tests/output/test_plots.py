"""Pictures of released tables, plans and distributions."""

import sys
from html import unescape

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from tests.helpers_cases import each
from tests.helpers_output import HOSTILE, paths
from tests.helpers_random import rng

BY = ["region", "district", "clinic"]


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
    assert axes[-1].get_xlabel().startswith("count ± standard error\n(noise helps to be among the largest")
    assert "\n" not in counts.dp.plot.levels(n=1_000)[-1].get_xlabel()


def test_levels_shows_intervals_and_leaves_out_what_is_missing(means):
    axes = means.dp.plot.levels(n=30)
    rows = means[means["level"] == "district"].dropna(subset="cost")
    rows = rows.sort_values("count", ascending=False, kind="stable").head(
        30
    )  # not those with the largest mean
    dots, _, (bars,) = axes[2].containers[0]
    assert dots.get_xdata().tolist() == rows["cost"].tolist()
    assert np.allclose([segment[:, 0] for segment in bars.get_segments()], rows[["cost_lower", "cost_upper"]])
    caption = means.dp.plot.levels(n=5)[-1].get_xlabel().split("\n")
    assert caption[0] == "cost with its 90 % interval of what was counted"
    assert "not at once" in caption[1] and "do not begin at 0" in caption[2]
    assert means.dp.plot.levels("age")[-1].get_xlabel().startswith("age")


def test_levels_of_other_tables(addresses, visits, clinics):
    labels = [label.get_text() for label in addresses.dp.plot.levels()[1].get_yticklabels()]
    assert labels == ["10.0.0.0/8", "(other)"]
    multiplicative = visits.dp.tree_counts(
        BY, domain=clinics, epsilon=1.0, delta=1e-6, mechanism=dpt.Multiplicative(alpha=0.25), rng=rng()
    )
    assert multiplicative.dp.plot.levels(n=2)[-1].get_xlabel().startswith("count ± error bound")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_axes_of_counts_and_sums_begin_at_zero(visits, clinics):
    regions = {"by": ["region"], "domain": clinics[["region"]].drop_duplicates(), "rng": rng()}
    counts = visits.dp.tree_counts(epsilon=1.0, **regions)
    assert [panel.get_xlim()[0] for panel in counts.dp.plot.levels()] == [0, 0]
    noisy = visits.dp.tree_counts(epsilon=0.001, consistency="linear", **regions)
    for panel, level in zip(noisy.dp.plot.levels(), ["total", "region"], strict=True):
        least = noisy.loc[noisy["level"] == level, "count"].min()
        assert panel.get_xlim()[0] < least < 0 if least < 0 else panel.get_xlim()[0] == 0
    for bounds, signed in [((0, 500), False), ((-500, 0), True)]:
        costs = visits.assign(cost=visits["cost"] * (-1 if signed else 1))
        sums = costs.dp.tree_sums(columns="cost", bounds=bounds, epsilon=1.0, **regions)
        for panel in sums.dp.plot.levels():
            low, high = panel.get_xlim()
            assert (low < 0 < high) if signed else (low == 0)


def test_labels_are_no_markup_in_a_picture(hostile):
    axes = hostile[~hostile["place"].isin(["مرحبا‏", "Žižkov 東京 🏥"])].dp.plot.levels(n=20)
    axes[0].figure.canvas.draw()  # no mathematics, and no error
    labels = [label.get_text() for label in axes[1].get_yticklabels()]
    assert "&amp; 100 % {0} {x} %{label} $\\frac{1}{2}$" in labels
    assert "two lines" in labels


@each("n", [0, -1, 2.5, True, "many"])
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
    sums = visits.dp.tree_sums(BY, columns="cost", bounds=(0, 500), domain=clinics, epsilon=1.0, rng=rng())
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


SVG = "{http://www.w3.org/2000/svg}"


# In a browser, where there is one.


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


def test_pointing_at_a_node_shows_its_error(counts, tmp_path, browse):
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


def distribution_of_visits(column, **options):
    visits = dpt.datasets.clinic_visits()
    visits = visits.assign(wait=pd.to_timedelta(visits["cost"], unit="m"))
    return visits.dp.release_distribution(column, epsilon=1.0, rng=np.random.default_rng(0), **options)


# Distributions.


def test_a_distribution_is_a_picture():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    places = dpt.datasets.clinics()[["region", "district"]].drop_duplicates()
    costs = distribution_of_visits("cost", bounds=(0, 500), bins=20, by=["region", "district"], domain=places)
    table = costs.cdf(confidence=0.9)
    axes = costs.plot(confidence=0.9)
    costs.plot("Corrow", ax=axes, confidence=None)
    costs.plot(("Corrow", "Elverby"), ax=axes)
    groups = (table["level"] == "total", table["level"] == "region", table["district"] == "Elverby")
    rows = [table[groups[0]], table[groups[1] & (table["region"] == "Corrow")], table[groups[2]]]
    assert axes.get_ylim()[0] == 0
    for line, row in zip(axes.get_lines(), rows, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), np.arange(0, 501, 25))
        np.testing.assert_array_equal(line.get_ydata(), [0, *row["count"]])
        assert line.get_drawstyle() == "steps-post"  # what lies below an edge holds from there on
    assert [line.get_label() for line in axes.get_lines()] == ["total", "Corrow", "Corrow, Elverby"]
    band, _ = axes.collections
    corners = {tuple(corner) for corner in band.get_paths()[0].vertices.tolist()}
    for end in ("lower", "upper"):
        assert corners >= {(25 * n, count) for n, count in enumerate(rows[0][end], start=1)}
    for group in ("Elverby", ("Corrow", "Elverby", "x"), 3):
        with pytest.raises(dpt.ArgumentError, match="`group` is not in the distribution"):
            costs.plot(group)
    matplotlib.pyplot.close("all")


def test_pictures_of_times_and_durations():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    days = (pd.Timestamp("2024-01-01"), pd.Timestamp("2026-01-01"))
    axes = distribution_of_visits("date", bounds=days, bins=8).plot()
    axes.figure.canvas.draw()
    assert "2025" in [label.get_text() for label in axes.get_xticklabels()]
    axes = distribution_of_visits("wait", bounds=(pd.Timedelta(0), pd.Timedelta(hours=8)), bins=8).plot()
    assert axes.get_xlabel() == "wait (seconds)" and axes.get_lines()[0].get_xdata()[-1] == 8 * 3600
    matplotlib.pyplot.close("all")


def test_plotting_a_distribution_without_matplotlib_names_it(monkeypatch):
    costs = distribution_of_visits("cost", bounds=(0, 500), bins=20)
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)
    with pytest.raises(dpt.MissingExtraError, match="pip install matplotlib"):
        costs.plot()


@pytest.mark.parametrize(
    ("module", "package", "draw"),
    [
        ("matplotlib.pyplot", "matplotlib", lambda table: table.dp.plot.levels()),
        ("plotly", "plotly", lambda table: table.dp.plot.icicle()),
    ],
)
def test_what_is_not_installed_is_named(counts, module, package, draw, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(dpt.MissingExtraError, match=f"pip install {package}"):
        draw(counts)

"""Dots with whiskers, a panel a level."""

import numpy as np
import pytest

import pandas_dptree as dpt
from tests.helpers_cases import each
from tests.helpers_output import paths
from tests.helpers_random import rng

BY = ["region", "district", "clinic"]


def test_levels_shows_the_largest_nodes_with_their_errors(counts):
    axes = counts.dp.plot.levels(n=4)
    for panel, level in zip(axes, BY, strict=True):
        rows = counts[counts["level"] == level]
        largest = rows.sort_values("count", ascending=False, kind="stable").head(4)
        dots, ticks = panel.get_lines()[-2:]
        assert sorted([*dots.get_xdata(), *ticks.get_xdata()]) == sorted(largest["count"])
        assert len(ticks.get_xdata()) == (len(largest) if level == "region" else 0)
        bars = panel.containers[bool(len(ticks.get_xdata()))][2][0]
        ends = np.array([segment[:, 0] for segment in bars.get_segments()])
        assert np.allclose(ends.mean(axis=1), largest["count"])
        assert np.allclose(np.ptp(ends, axis=1), 2 * largest["std_error"])
        labels = [label.get_text() for label in panel.get_yticklabels()]
        assert labels == [", ".join(path[::-1]) or "total" for path in paths(largest, BY)]
        assert level in panel.get_title(loc="left")
    assert f"{counts.loc[0, 'std_error']:.3g}" in axes[0].figure.texts[0].get_text()
    assert "the 4 largest of 37" in axes[1].get_title(loc="left")
    assert axes[-1].get_xlabel().startswith("count ± standard error\n(noise helps to be among the largest")
    assert "\n" not in counts.dp.plot.levels(n=1_000)[-1].get_xlabel()


def test_levels_shows_intervals_and_leaves_out_what_is_missing(means):
    axes = means.dp.plot.levels(n=30)
    rows = means[means["level"] == "district"].dropna(subset="cost")
    rows = rows.sort_values("count", ascending=False, kind="stable").head(
        30
    )  # not those with the largest mean
    dots, (bars,) = axes[1].get_lines()[-2], axes[1].containers[0][2]
    assert dots.get_xdata().tolist() == rows["cost"].tolist()
    assert np.allclose([segment[:, 0] for segment in bars.get_segments()], rows[["cost_lower", "cost_upper"]])
    caption = means.dp.plot.levels(n=5)[-1].get_xlabel().split("\n")
    assert caption[0] == "cost with its 90 % interval of what was counted"
    assert "not at once" in caption[1] and "do not begin at 0" in caption[2]
    assert means.dp.plot.levels("age")[-1].get_xlabel().startswith("age")


def test_levels_of_other_tables(addresses, visits, clinics):
    labels = [label.get_text() for label in addresses.dp.plot.levels()[0].get_yticklabels()]
    assert labels == ["10.0.0.0/8", "(other)"]
    multiplicative = visits.dp.tree_counts(
        BY, domain=clinics, epsilon=1.0, delta=1e-6, mechanism=dpt.Multiplicative(alpha=0.25), rng=rng()
    )
    assert multiplicative.dp.plot.levels(n=2)[-1].get_xlabel().startswith("count ± error bound")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_axes_of_counts_and_sums_begin_at_zero(visits, clinics):
    regions = {"by": ["region"], "domain": clinics[["region"]].drop_duplicates(), "rng": rng()}
    counts = visits.dp.tree_counts(epsilon=1.0, **regions)
    assert [panel.get_xlim()[0] for panel in counts.dp.plot.levels()] == [0]
    noisy = visits.dp.tree_counts(epsilon=0.001, consistency="linear", **regions)
    for panel, level in zip(noisy.dp.plot.levels(), ["region"], strict=True):
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
    labels = [label.get_text() for label in axes[0].get_yticklabels()]
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


def test_long_titles_are_whole_and_within_the_figure(means):
    long = "district of a clinic with a very long official name " * 4
    renamed = means.rename(columns={"district": long})
    renamed["level"] = renamed["level"].cat.rename_categories({"district": long})
    panels = renamed.dp.plot.levels("cost", n=3)
    figure = panels[0].figure
    figure.canvas.draw()
    texts = [*figure.texts, *[panel.get_title(loc="left") for panel in panels]]
    whole = " ".join(getattr(text, "get_text", lambda text=text: text)() for text in texts)
    assert " ".join(whole.split()).count(long.strip()) == 2  # in the head and above its panel
    assert f"{means.loc[0, 'cost']:,.5g} for all" in " ".join(whole.split())
    extents = [
        figure.texts[0].get_window_extent(),
        *[panel._left_title.get_window_extent() for panel in panels],
    ]
    assert all(0 <= each.x0 and each.x1 <= figure.bbox.width for each in extents)

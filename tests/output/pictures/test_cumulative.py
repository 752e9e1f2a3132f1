"""Pictures of distributions."""

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from tests.helpers_random import rng


def distribution_of_visits(column, **options):
    visits = dpt.datasets.clinic_visits()
    visits = visits.assign(wait=pd.to_timedelta(visits["cost"], unit="m"))
    return visits.dp.release_distribution(column, epsilon=1.0, rng=np.random.default_rng(0), **options)


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


@pytest.mark.parametrize(("rho", "said"), [(1e6, True), (1e-4, False)])
def test_a_band_that_cannot_be_seen_is_said(rho, said):
    pytest.importorskip("matplotlib")
    frame = pd.DataFrame({"x": np.arange(1_000) % 10})
    released = frame.dp.release_distribution("x", bounds=(0, 10), bins=10, rho=rho, rng=rng())
    band = released.cdf(confidence=0.95)
    axes = released.plot()
    title = axes.get_title(loc="left")
    assert (title != "") == said
    if said:
        assert f"band of total is at most {(band['upper'] - band['lower']).max()} wide" in title
        released.plot(ax=axes)
        assert axes.get_title(loc="left").count("\n") == 1

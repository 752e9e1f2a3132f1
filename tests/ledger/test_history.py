"""What was charged, as a frame, as JSON and as a plot."""

import hashlib
import json
from datetime import timedelta

import matplotlib
import numpy as np
import pandas as pd
import pytest

from tests.helpers_ledger import NOW, StandIn, charge, create

matplotlib.use("agg")


@pytest.fixture
def year(tmp_path):
    """A year of an account in rho, and two charges of one in epsilon with parts; the last has no output."""
    ledger = create(tmp_path, rho=1.0, delta=1e-6)
    parts = ledger.add_account("clinics", epsilon=2.0, privacy_unit="clinic", parts=["a", "b"])
    for month in range(5):
        later = NOW + timedelta(days=30 * month)
        charged = charge(ledger["patients"], StandIn("1/5", "1/10000000"), note=str(month), requested=later)
        ledger["patients"].mark_released([charged])
    named = {"costs": StandIn("1/2", privacy_unit="clinic")}
    ledger["patients"].mark_released(charge(parts.part("a"), **named).values())
    charge(parts, StandIn("1/4", privacy_unit="clinic"), note="last")
    return ledger


def test_frame(year):
    frame = year.to_frame()
    assert list(frame["number"]) == list(range(4, 11))
    assert list(frame["account"]) == ["patients"] * 5 + ["clinics"] * 2
    assert list(frame["part"].fillna("-")) == ["-"] * 5 + ["a", "-"]
    np.testing.assert_array_equal(frame["rho"], [0.2] * 5 + [np.nan] * 2)
    np.testing.assert_array_equal(frame["epsilon"], [np.nan] * 5 + [0.5, 0.25])
    assert list(frame["left"]) == [0.8, 0.6, 0.4, 0.2, 0.0, 1.5, 1.25]
    assert list(frame["delta_left"]) == [9e-07, 8e-07, 7e-07, 6e-07, 5e-07, 0.0, 0.0]
    assert list(frame["released"]) == [True] * 6 + [False]
    assert list(frame["name"].fillna("-")) == ["-"] * 5 + ["costs", "-"]
    assert frame["time"].iloc[1] == pd.Timestamp("2026-03-31T12:30:15", tz="UTC")
    assert set(frame["what"]) == {"counts by state"}
    assert frame["digest"].iloc[-1] == year.head.digest
    assert frame["user"].notna().all()


def test_an_empty_frame_has_the_same_types(tmp_path, year):
    empty = create(tmp_path, "empty.sqlite").to_frame()
    assert empty.empty
    pd.testing.assert_series_equal(empty.dtypes, year.to_frame().dtypes)


def test_the_frame_survives_parquet(year, tmp_path):
    frame = year.to_frame()
    frame.to_parquet(tmp_path / "charges.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "charges.parquet"), frame)


def test_the_chain_can_be_checked_from_json(year):
    """By whoever reads the documentation, in five lines."""
    whole = json.loads(year.to_json())
    assert whole["format"] == "pandas_dptree ledger, version 2"
    digest = ""
    for number, entry in enumerate(whole["entries"], start=1):
        content = json.dumps(entry["content"], sort_keys=True, separators=(",", ":"))
        digest = hashlib.sha256(f"{digest}\n{content}".encode()).hexdigest()
        assert (entry["number"], entry["digest"]) == (number, digest)
    assert digest == year.head.digest
    assert whole["released"] == list(range(4, 10))
    assert whole["spent"] == [
        {"account": "clinics", "part": None, "loss": "1/4", "delta": "0", "charges": 1},
        {"account": "clinics", "part": "a", "loss": "1/2", "delta": "0", "charges": 1},
        {"account": "patients", "part": None, "loss": "1", "delta": "1/2000000", "charges": 5},
    ]
    assert whole["entries"][3]["content"]["loss"] == "1/5"


def test_plot(year):
    axes = year.plot()
    labels = [line.get_label() for line in axes.get_lines()]
    assert labels == ["patients: rho of 1", "patients: delta of 1e-06", "clinics: epsilon of 2", "cap"]
    loss, delta, clinics, _ = (line.get_ydata() for line in axes.get_lines())
    np.testing.assert_allclose(loss, [0, 20, 40, 60, 80, 100])
    np.testing.assert_allclose(delta, [0, 10, 20, 30, 40, 50])
    np.testing.assert_allclose(clinics, [0, 25, 37.5])
    axes.figure.canvas.draw()
    assert year.plot(ax=axes) is axes
    matplotlib.pyplot.close("all")


def test_a_plot_of_nothing(tmp_path):
    axes = create(tmp_path).plot()
    assert [line.get_label() for line in axes.get_lines()] == ["cap"]
    axes.figure.canvas.draw()
    matplotlib.pyplot.close("all")

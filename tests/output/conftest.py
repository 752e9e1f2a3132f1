"""Released tables to show."""

import importlib.util
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from tests.helpers_output import HOSTILE, text_of
from tests.helpers_random import rng

BY = ["region", "district", "clinic"]


@pytest.fixture(scope="module")
def counts(visits, clinics):
    return visits.dp.tree_counts(BY, domain=clinics, epsilon=1.0, rng=rng())


@pytest.fixture(scope="module")
def means(visits, clinics):
    bounds = {"cost": (0, 500), "age": (0, 100)}
    return visits.dp.tree_means(
        BY, columns=["cost", "age"], domain=clinics, bounds=bounds, epsilon=1.0, confidence=0.9, rng=rng()
    )


@pytest.fixture(scope="module")
def addresses():
    records = pd.DataFrame({"ip": ["10.0.0.1"] * 500 + ["10.0.1.2"] * 300 + ["1.2.3.4"]})
    prefixes = dpt.prefixes("ip", bits=[8, 16, 32], notation="ipv4")
    return records.dp.tree_counts(prefixes, epsilon=1.0, delta=1e-6, mechanism="gaussian", rng=rng())


@pytest.fixture
def hostile():
    places = pd.DataFrame({"place": np.repeat(HOSTILE, 2), "<b>kind</b>": ["<i>a</i>", "b"] * len(HOSTILE)})
    return places.dp.tree_counts(list(places), domain=places.drop_duplicates(), epsilon=100.0, rng=rng())


@pytest.fixture(autouse=True)
def close_figures():
    """Draw into memory, and leave no figure open."""
    if importlib.util.find_spec("matplotlib") is None:
        yield
        return
    from matplotlib import pyplot as plt

    plt.switch_backend("agg")
    yield
    plt.close("all")


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

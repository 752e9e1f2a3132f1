"""What several tests share."""

import os
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import settings

import pandas_dptree as dpt

# What lands is decided by the same examples every time; elsewhere each run tries new ones.
settings.register_profile("plain", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("plain")


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Find the folder of real records, or skip."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("PANDAS_DPTREE_DATA", default))
    if not (folder / "zipcodes.csv").is_file():
        pytest.skip(f"no real records: set PANDAS_DPTREE_DATA to their folder (looked in {folder.name!r})")
    return folder


@pytest.fixture(scope="module")
def visits() -> pd.DataFrame:
    """Simulate some visits to clinics; a test may not change them."""
    return dpt.datasets.clinic_visits(2_000)


@pytest.fixture(scope="module")
def clinics() -> pd.DataFrame:
    """List all clinics, of which visits are."""
    return dpt.datasets.clinics()

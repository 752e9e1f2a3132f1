"""Files that the command reads."""

import shutil

import pandas as pd
import pytest

import pandas_dptree as dpt


@pytest.fixture(scope="session")
def originals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("originals")
    visits = dpt.datasets.clinic_visits(500)
    places = dpt.datasets.clinics()[["region", "district"]].drop_duplicates()
    visits.to_csv(folder / "visits.csv", index=False)
    visits.to_parquet(folder / "visits.parquet")
    places.to_csv(folder / "places.csv", index=False)
    return folder


@pytest.fixture
def files(originals, tmp_path):
    shutil.copytree(originals, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.fixture
def public(files):
    """Public facts beside the files: a known total and region, and districts where nobody can be."""
    places = pd.read_csv(files / "places.csv")
    region = places["region"].iloc[0]
    known = pd.DataFrame({"region": [None, region], "count": [500, 100], "at_least": [None, None]})
    known.to_csv(files / "known.csv", index=False)
    known.convert_dtypes().to_parquet(files / "known.parquet")
    places["closed"] = places.index == 0
    places.to_parquet(files / "flagged.parquet")
    places.assign(closed=places["closed"].map({True: "TRUE", False: "false"})).to_csv(
        files / "flagged.csv", index=False
    )
    return region

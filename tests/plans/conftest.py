"""What several plans are for."""

import pytest

import pandas_dptree as dpt

BY = ["region", "district", "clinic"]


@pytest.fixture(scope="module")
def domain():
    return dpt.Domain.from_frame(dpt.datasets.clinics(), by=BY)

"""A programme for a month of visits, as it is when it was checked."""

import pytest

from tests.helpers_programmes import Visits


@pytest.fixture
def visits(tmp_path):
    """A programme whose account has room for three runs."""
    return Visits(tmp_path)

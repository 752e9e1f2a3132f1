"""All notebooks but the first are slow tests."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    """Mark what takes long, so that it is left out by default."""
    for item in items:
        if item.path.parent == HERE and not item.path.name.startswith("00"):
            item.add_marker(pytest.mark.slow)

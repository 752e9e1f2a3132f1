"""Notebooks are slow tests: each starts a kernel of its own."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    """Mark what takes long, so that it is left out by default."""
    for item in items:
        if item.path.parent == HERE:
            item.add_marker(pytest.mark.slow)

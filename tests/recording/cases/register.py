"""Every case by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

CASES: dict[str, Callable[[], Any]] = {}


def case(function: Callable[[], Any]) -> Callable[[], Any]:
    """List a function among the cases."""
    assert function.__name__ not in CASES, f"there are two cases named {function.__name__}"
    CASES[function.__name__] = function
    return function

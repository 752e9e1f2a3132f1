"""Every case by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Case = Callable[[], Any]
CASES: dict[str, Case] = {}
BY_DEFAULT: set[str] = set()
"""The few that the default tests replay; the slow ones replay all."""


def case(function: Case) -> Case:
    """List a function among the cases."""
    assert function.__name__ not in CASES, f"there are two cases named {function.__name__}"
    CASES[function.__name__] = function
    return function


def default(function: Case) -> Case:
    """List a function among the cases, and among those that the default tests replay."""
    BY_DEFAULT.add(function.__name__)
    return case(function)


def module_of(name: str) -> str:
    """The module of a case, without its package: its results are stored under the same name."""
    return CASES[name].__module__.rpartition(".")[2]

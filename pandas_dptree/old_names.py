"""Names that changed before 0.1: each raises an error that gives the new one."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, Final, TypeVar

__all__ = ["OLD_ARGUMENTS", "OLD_NAMES", "new_argument", "no_attribute", "with_old_names"]

Class = TypeVar("Class", bound=type)

OLD_NAMES: Final = {
    "dpt.bounds": "dpt.theory; its `table` is `dpt.theory.error_bounds`",
    "dpt.metrics": "dpt.theory",
    "dpt.plan_implicit": "dpt.plan(prefixes, ...) or dpt.plan(domain, private_keys=[...], ...)",
    "dpt.released_domain": "counts.dp.domain()",
    "plan.shares": "plan.budget_shares",
}
"""New names by old ones, which begin with ``dpt.`` in the package, or as stated to `with_old_names`."""

OLD_ARGUMENTS: Final = {
    "alpha": 'objective="worst"',
    "keep_measurements": 'keep=["measurements"]',
    "tree": "strategy=",
}
"""New arguments by the names of old ones, for functions that take the new one but not the old."""


def no_attribute(owner: str, name: str, error: str) -> AttributeError:
    """Return an error that gives the new name if `owner` had an attribute, otherwise one with this text."""
    old = f"{owner}.{name}"
    if old not in OLD_NAMES:
        return AttributeError(error)
    return AttributeError(f"`{old}` no longer exists.\nHint: use {OLD_NAMES[old]}.")


def with_old_names(owner: str) -> Callable[[Class], Class]:
    """Make instances of a class, called `owner` in `OLD_NAMES`, raise errors that give the new names."""

    def missing(self: Any, name: str) -> Any:
        error = no_attribute(owner, name, f"{type(self).__name__!r} object has no attribute {name!r}")
        error.name, error.obj = name, self  # for Python's suggestions
        raise error

    def completed(kind: Class) -> Class:
        kind.__getattr__ = missing  # type: ignore[attr-defined]  # type checkers still see unknown names
        return kind

    return completed


def new_argument(old: str, taken: Container[str]) -> str | None:
    """Return the new form of an old argument, if a function takes it."""
    new = OLD_ARGUMENTS.get(old)
    return new if new is not None and new.partition("=")[0] in taken else None

"""Methods of accessors, made from the functions that they call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from pandas_dptree.signatures import public

__all__ = ["method"]

P = ParamSpec("P")
Answer = TypeVar("Answer")


def method(function: Callable[Concatenate[Any, P], Answer]) -> Callable[Concatenate[Any, P], Answer]:
    """Return a method that calls a public function with the data of its accessor, ``self._data``, first."""

    @wraps(function)
    def call(self: Any, *args: P.args, **kwargs: P.kwargs) -> Answer:
        return function(self._data, *args, **kwargs)

    _, *parameters = inspect.signature(function).parameters.values()
    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    call.__signature__ = inspect.Signature([first, *parameters])  # type: ignore[attr-defined]
    return cast("Callable[Concatenate[Any, P], Answer]", public(call))

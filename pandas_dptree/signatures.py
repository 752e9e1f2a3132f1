"""Signatures of functions that hand their options on, shown where help and completion look."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

__all__ = ["with_options_of"]

Function = TypeVar("Function", bound=Callable[..., Any])


def with_options_of(
    verb: Callable[..., Any], *, without: Sequence[str] = ()
) -> Callable[[Function], Function]:
    """Show the keyword parameters of the function that another one calls.

    Parameters
    ----------
    verb : callable
        The function whose keyword parameters are options of the other one.
    without : sequence of str, optional
        Those that it does not take.

    Returns
    -------
    callable
        A decorator.
    """

    def declare(function: Function) -> Function:
        own = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
        named = {*(p.name for p in own), *without}
        options = [p for p in inspect.signature(verb).parameters.values() if p.kind is p.KEYWORD_ONLY]
        parameters = [*own, *(p for p in options if p.name not in named)]
        function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return function

    return declare

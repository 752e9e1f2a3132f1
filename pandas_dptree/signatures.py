"""How public functions are called: signatures for help and completion, hints where a call does not fit."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

from pandas_dptree.errors import CallError, did_you_mean

__all__ = ["public", "with_options_of"]

Function = TypeVar("Function", bound=Callable[..., Any])

_EXAMPLES = {
    "bins": "bins=100",
    "bounds": "bounds=(0, 500), known without looking at the records",
    "by": 'by=["state", "county", "city"]',
    "column": 'column="age"',
    "columns": 'columns="cost"',
    "delta": "delta=1e-6",
    "depth": "depth=8",
    "end": 'end="2025-12-31"',
    "epsilon": "epsilon=1.0",
    "q": "q=[0.25, 0.5, 0.75]",
    "ranges": "ranges=[(0, 18), (18, 65)]",
    "start": 'start="2024-01-01"',
    "units": 'units=["year", "month"]',
}
"""What arguments without a default may look like."""


def public(function: Function) -> Function:
    """Let a call that does not fit the signature of a function fail with a hint.

    Its signature stays as it is, for help, completion and type checkers alike.
    """
    signature = inspect.signature(function)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            signature.bind(*args, **kwargs)
        except TypeError:
            raise _misfit(function.__name__, signature, len(args), kwargs) from None
        return function(*args, **kwargs)

    return cast(Function, call)


def with_options_of(
    verb: Callable[..., Any], *, without: Sequence[str] = ()
) -> Callable[[Function], Function]:
    """Give a public function the keyword parameters of the function that it calls.

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
        return public(function)

    return declare


def _misfit(
    name: str, signature: inspect.Signature, n_positional: int, kwargs: Mapping[str, Any]
) -> CallError:
    """Explain why arguments do not fit a signature: they are unknown, too many, given twice, or missing."""
    parameters = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
    n_positional -= len(signature.parameters) - len(parameters)
    names = [p.name for p in parameters]
    in_order = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    unknown = [given for given in kwargs if given not in names]
    if unknown:
        hint = did_you_mean(unknown, names).rstrip() or f"it takes {', '.join(names)}."
        return CallError(unknown[0], f"is no argument of {name}.", hint=hint)
    if n_positional > len(in_order):
        lists = '; several columns are one list, as in ["state", "city"]' if "by" in in_order else ""
        return CallError(
            in_order[-1],
            f"is the last argument that {name} takes by position.",
            hint=f"name the others, as in {names[len(in_order)]}=...{lists}.",
        )
    twice = [given for given in in_order[:n_positional] if given in kwargs]
    if twice:
        return CallError(
            twice[0],
            f"is given to {name} twice, by position and by name.",
            hint="leave one out; frame.dp and array.dp pass the frame or the array themselves.",
        )
    needed = [p.name for p in parameters if p.default is p.empty and p.name not in kwargs]
    missing = [each for each in needed if each not in in_order[:n_positional]]
    others = "".join(f"and `{each}` " for each in missing[1:])
    examples = [_EXAMPLES[each] for each in missing if each in _EXAMPLES]
    hint = f"for example {', '.join(examples)}." if examples else f"it takes {', '.join(names)}."
    return CallError(missing[0], f"{others}must be given to {name}.", hint=hint)

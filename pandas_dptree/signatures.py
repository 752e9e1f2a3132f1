"""Complete signatures of public functions, for help and completion, and hints for calls that do not match."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Hashable, Mapping
from functools import cache, wraps
from textwrap import fill
from typing import Any, NamedTuple, TypeVar, cast, get_args, get_type_hints

from pandas_dptree.errors import CallError, did_you_mean
from pandas_dptree.old_names import new_argument

__all__ = ["Option", "options_of", "public", "with_texts_of"]

Function = TypeVar("Function", bound=Callable[..., Any])

_EXAMPLES = {
    "account": 'account="patients"',
    "aggregations": 'aggregations={"visits": "count"}',
    "bins": "bins=100",
    "bounds": "bounds=(0, 500), known without looking at the records",
    "by": 'by=["state", "county", "city"]',
    "column": 'column="age"',
    "columns": 'columns="cost"',
    "delta": "delta=1e-6",
    "depth": "depth=8",
    "end": 'end="2025-12-31"',
    "epsilon": "epsilon=1.0",
    "path": 'path="budget.sqlite"',
    "privacy_unit": 'privacy_unit="person", or privacy_unit=dpt.ROWS',
    "q": "q=[0.25, 0.5, 0.75]",
    "ranges": "ranges=[(0, 18), (18, 65)]",
    "start": 'start="2024-01-01"',
    "units": 'units=["year", "month"]',
}
"""Examples of arguments without a default."""


class Option(NamedTuple):
    """Default and documentation of an option, as the annotation of a key of a TypedDict.

    Attributes
    ----------
    default : object
    values : str
        The possible values, for the documentation.
    text : str
        The description.
    """

    default: Any
    values: str
    text: str


def options_of(kind: type[Any]) -> dict[str, Option]:
    """Return the options of a TypedDict by name.

    Examples
    --------
    >>> from pandas_dptree.plans.options import Running
    >>> options_of(Running)["progress"].default
    False
    """
    return _options_of(cast(Hashable, kind))


@cache
def _options_of(kind: Any) -> dict[str, Option]:
    hints = get_type_hints(kind, include_extras=True)
    return {
        name: next(each for each in get_args(hint) if isinstance(each, Option))
        for name, hint in hints.items()
    }


def public(function: Function) -> Function:
    """Complete the signature and docstring of a public function, and add hints to the errors of bad calls.

    Options given by ``**options: Unpack[...]`` are listed one by one in the signature, and in the docstring
    in place of the line ``**options``. Type checkers see the same.
    """
    signature, document = inspect.signature(function), function.__doc__
    options_type = _unpacked(function)
    if options_type is not None:
        signature = _with_options(signature, options_type)
        document = _documented(document, options_type)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            signature.bind(*args, **kwargs)
        except TypeError:
            raise _misfit(function.__name__, signature, len(args), kwargs) from None
        return function(*args, **kwargs)

    call.__signature__, call.__doc__ = signature, document  # type: ignore[attr-defined]
    return cast(Function, call)


def with_texts_of(kind: type[Any]) -> Callable[[Function], Function]:
    """Document the options of a function whose signature is written out in full."""

    def document(function: Function) -> Function:
        function.__doc__ = _documented(function.__doc__, kind)
        return function

    return document


def _unpacked(function: Callable[..., Any]) -> type[Any] | None:
    """Return the TypedDict whose keys a function takes as options, or None."""
    last = next(iter([*inspect.signature(function).parameters.values()][-1:]), None)
    if last is None or last.kind is not last.VAR_KEYWORD:
        return None
    (kind,) = get_args(get_type_hints(function, include_extras=True)[last.name])
    return cast(type[Any], kind)


def _with_options(signature: inspect.Signature, kind: type[Any]) -> inspect.Signature:
    """Replace ``**options`` in a signature by the options."""
    *own, _ = signature.parameters.values()
    types = get_type_hints(kind)
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=types[name])
        for name, each in options_of(kind).items()
    ]
    return signature.replace(parameters=[*own, *options])


def _documented(document: str | None, kind: type[Any]) -> str | None:
    """Replace the line ``**options`` in a docstring by the descriptions of the options."""
    if document is None:  # with python -OO
        return None

    def entries(line: re.Match[str]) -> str:
        shift = line[1]
        lines = []
        for name, each in options_of(kind).items():
            default = "optional" if each.default is None else f"default {each.default!r}"
            indent = f"{shift}    "
            lines += [f"{shift}{name} : {each.values}, {default}"]
            lines += [
                fill(each.text, 108, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
            ]
        return "\n".join(lines)

    return re.sub(r"^( *)\*\*options$", entries, document, count=1, flags=re.MULTILINE)


def _misfit(
    name: str, signature: inspect.Signature, n_positional: int, kwargs: Mapping[str, Any]
) -> CallError:
    """Return an error for arguments that do not match: unknown, too many, given twice, or missing."""
    parameters = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
    n_positional -= len(signature.parameters) - len(parameters)
    names = [p.name for p in parameters]
    in_order = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    unknown = [given for given in kwargs if given not in names]
    if unknown:
        if (new := new_argument(unknown[0], names)) is not None:
            return CallError(unknown[0], f"is no longer an argument of {name}.", hint=f"use {new}.")
        hint = did_you_mean(unknown, names).rstrip() or f"it takes {', '.join(names)}."
        if "aggregations" in names and "aggregations" not in {*kwargs, *in_order[:n_positional]}:
            hint = f"name what the table shows in one mapping: {_EXAMPLES['aggregations']}."
        elif unknown[0] == "private_keys" and "domain" in names:
            hint = (
                "only records can be counted by private keys: release their counts first, with "
                "counts = tree_counts(..., private_keys=[...]), and then pass domain=counts.dp.domain()."
            )
        return CallError(unknown[0], f"is not an argument of {name}.", hint=hint)
    if n_positional > len(in_order):
        lists = '; several columns are one list, as in ["state", "city"]' if "by" in in_order else ""
        named = _EXAMPLES.get(names[len(in_order)], f"{names[len(in_order)]}=...")
        return CallError(
            in_order[-1],
            f"is the last argument that {name} takes by position.",
            hint=f"name the others, as in {named}{lists}.",
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
    if missing == ["domain"] and "private_keys" in kwargs:
        hint = "pass None if all keys are private, or else the Domain of the other keys."
    return CallError(missing[0], f"{others}must be given to {name}.", hint=hint)

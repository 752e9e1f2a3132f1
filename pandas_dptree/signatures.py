"""Complete signatures of public functions, for help and completion, and hints for calls that do not match."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import wraps
from textwrap import fill
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, cast, get_args, get_type_hints

from pandas_dptree.errors import CallError, DPTreeError, did_you_mean
from pandas_dptree.old_names import new_argument

__all__ = ["Option", "options_of", "public"]

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
    """An option: its default and documentation, and how the shell takes it.

    `summary` is the first sentence of the documentation, `details` the others. `with_private_keys` has other
    values and details for functions that take private keys. The shell has `flag`, `metavar` and `help` (the
    summary).
    """

    default: Any
    values: str
    summary: str
    details: str = ""
    flag: str | None = None
    metavar: str | None = None
    help: str | None = None
    annotation: Any = Any
    with_private_keys: tuple[str, str] | None = None

    def stated(self, *, private: bool) -> tuple[str, str]:
        """Return the values and the details, for functions that take private keys or for others."""
        own = (self.values, self.details)
        return self.with_private_keys or own if private else own


def options_of(kind: type[Any]) -> dict[str, Option]:
    """Return the options of a TypedDict by name, each the annotation of a key."""
    hints = {name: get_args(hint) for name, hint in get_type_hints(kind, include_extras=True).items()}
    return {name: option._replace(annotation=annotation) for name, (annotation, option) in hints.items()}


_NO_OPTIONS: Mapping[str, Option] = MappingProxyType({})


def public(
    function: Function,
    options: Mapping[str, Option] = _NO_OPTIONS,
    defaults: Mapping[str, Any] = MappingProxyType({}),
) -> Function:
    """Complete the signature and docstring of a public function, and add hints to the errors of bad calls.

    The signature lists the options in place of ``**options``, and so does the docstring, except for those
    that it describes itself. `defaults` are passed to the function if the caller gives no other value.
    """
    signature = inspect.signature(function)
    if options:
        signature = _with_options(signature, options)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            signature.bind(*args, **kwargs)
        except TypeError:
            raise _misfit(function.__name__, signature, len(args), kwargs) from None
        try:
            return function(*args, **{**defaults, **kwargs})
        except DPTreeError as error:
            # the line of the caller matters, not those in between
            raise error.with_traceback(None) from error.__cause__

    call.__signature__ = signature  # type: ignore[attr-defined]
    call.__doc__ = _documented(function.__doc__, options, private="private_keys" in signature.parameters)
    return cast(Function, call)


def _with_options(signature: inspect.Signature, options: Mapping[str, Option]) -> inspect.Signature:
    """Replace ``**options`` in a signature by the options."""
    *own, _ = signature.parameters.values()
    stated = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=each.annotation
        )
        for name, each in options.items()
        if name not in signature.parameters
    ]
    return signature.replace(parameters=[*own, *stated])


def _documented(document: str | None, options: Mapping[str, Option], *, private: bool) -> str | None:
    """Replace the line ``**options`` in a docstring by descriptions of the options that it leaves out."""
    if document is None:  # with python -OO
        return None
    described = {
        name
        for names in re.findall(r"^ *(\w+(?:, \w+)*)(?: : .*)?$", document, flags=re.MULTILINE)
        for name in names.split(", ")
    }

    def entries(line: re.Match[str]) -> str:
        indent = f"{line[1]}    "
        lines = []
        for name, each in options.items():
            if name not in described:
                default = "optional" if each.default is None else f"default {each.default!r}"
                values, details = each.stated(private=private)
                text = f"{each.summary} {details}".rstrip()
                lines += [f"{line[1]}{name} : {values}, {default}"]
                lines += [
                    fill(text, 108, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
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
        elif unknown[0] == "max_nodes":
            hint = (
                'it bounds the nodes in which a distinct unit is counted, by tree_units or as "units" in '
                "tree_agg; rows are bounded by max_contributions."
            )
        elif unknown[0] in ("max_contributions", "max_per_leaf", "max_per_node") and "max_nodes" in names:
            hint = "a unit counts once in each node, whatever its rows; max_nodes bounds its nodes."
        elif unknown[0] in ("max_per_leaf", "max_per_node"):
            hint = (
                "only tables of records by keys can bound the rows of a unit in each node; elsewhere "
                "max_contributions bounds them in total."
            )
        return CallError(unknown[0], f"is not an argument of {name}.", hint=hint)
    if n_positional > len(in_order):
        lists = '; several columns are one list, as in ["state", "city"]' if "by" in in_order else ""
        following = [name for name in (names[len(in_order)], "bounds") if name in _EXAMPLES and name in names]
        named = _EXAMPLES[following[0]] if following else f"{names[len(in_order)]}=..."
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

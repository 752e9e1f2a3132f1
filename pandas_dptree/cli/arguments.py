"""What the arguments of a command mean to the verbs: the columns to add up, and the options of a plan."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.ingest.files.public_tables import read_known
from pandas_dptree.mechanisms.additive import MECHANISMS
from pandas_dptree.mechanisms.multiplicative.guarantees import Multiplicative
from pandas_dptree.mechanisms.private_levels import PRIVATE_MECHANISMS
from pandas_dptree.planning.private_split import PRIVATE_SPLITS
from pandas_dptree.planning.split import SPLITS
from pandas_dptree.planning.targets import Within, within
from pandas_dptree.plans.options import OPTIONS, RUNNING

__all__ = ["options_of", "values_of"]


def values_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the columns to add up, with their bounds."""
    columns, bounds = arguments.column or [], arguments.bounds or []
    if not columns or len(bounds) not in (1, len(columns)):
        raise ArgumentError(
            "bounds" if columns else "column",
            "must be given once, or once for each column." if columns else "must be given.",
            hint="for example --column cost --bounds 0 500.",
        )
    pairs = [tuple(each) for each in bounds] * (len(columns) if len(bounds) == 1 else 1)
    return {"columns": columns, "bounds": dict(zip(columns, pairs, strict=True))}


def options_of(arguments: argparse.Namespace, names: Sequence[str]) -> dict[str, Any]:
    """Return the named options of a plan, read from the arguments."""
    _check_private_choices(arguments)
    given = vars(arguments)
    options = {name: given[name] for name in names if OPTIONS[name].flag and name not in RUNNING}
    options |= _mechanism(arguments)
    if "target" in options:
        options["target"] = _by_level("target", options["target"], _target, "county=25 or county=50@95%")
    if "max_per_node" in options:
        options["max_per_node"] = _by_level("max_per_node", options["max_per_node"], int, "county=4")
    if "max_nodes" in options:
        options["max_nodes"] = _max_nodes(options["max_nodes"])
    if "known" in options:
        known = arguments.known
        options["known"] = None if known is None else read_known(known, arguments.by)
    return options


def _check_private_choices(arguments: argparse.Namespace) -> None:
    """Check that no mechanism or split for private keys is chosen without them."""
    if getattr(arguments, "private_keys", None) is not None:
        return
    for name, value, only in (
        ("mechanism", arguments.mechanism, set(PRIVATE_MECHANISMS) - set(MECHANISMS)),
        ("split", arguments.split, set(PRIVATE_SPLITS) - set(SPLITS)),
    ):
        if value in only:
            raise ArgumentError(
                name,
                f"is for private keys, and there are none: {value}.",
                hint="name the columns whose keys nobody can list by --private-key, or choose another.",
            )


def _mechanism(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the noise, or `Multiplicative`."""
    alpha = getattr(arguments, "alpha", None)
    if arguments.mechanism == "multiplicative":
        if alpha is None:
            raise ArgumentError(
                "alpha", "must be given with --mechanism multiplicative.", hint="for example --alpha 0.25."
            )
        return {"mechanism": Multiplicative(alpha=alpha)}
    if alpha is not None:
        raise ArgumentError(
            "alpha",
            f"has no meaning with --mechanism {arguments.mechanism}.",
            hint="add --mechanism multiplicative.",
        )
    return {"mechanism": arguments.mechanism}


def _by_level(
    argument: str, given: list[str] | None, number_of: Callable[[str], Any], example: str
) -> dict[Hashable, Any] | None:
    """Parse repeated LEVEL=NUMBER arguments."""
    if given is None:
        return None
    try:
        pairs = [(level, number_of(number)) for level, _, number in (each.rpartition("=") for each in given)]
    except ValueError:
        raise ArgumentError(
            argument, f"must be LEVEL=NUMBER, not {quote(given)}.", hint=f"for example {example}."
        ) from None
    if len(dict(pairs)) < len(pairs):
        raise ArgumentError(argument, f"names a level twice: {quote(given)}.", hint="give each level once.")
    return dict(pairs)


def _max_nodes(given: list[str] | None) -> int | dict[Hashable, Any] | None:
    """Parse one number for all levels, or repeated LEVEL=NUMBER arguments."""
    if given is not None and len(given) == 1 and given[0].isdecimal():
        return int(given[0])
    if given is not None and not all("=" in each for each in given):
        raise ArgumentError(
            "max_nodes",
            f"must be one whole number, or LEVEL=NUMBER for each level, not {quote(given)}.",
            hint="for example max_nodes=4, or max_nodes=['region=1', 'clinic=4'].",
        )
    return _by_level("max_nodes", given, int, "region=1")


def _target(text: str) -> float | Within:
    """Parse a standard error, or a half width and its confidence: 50@95% or 50@0.95."""
    number, at, confidence = text.partition("@")
    if not at:
        return float(number)
    share = float(confidence.removesuffix("%")) / (100 if confidence.endswith("%") else 1)
    try:
        return within(float(number), confidence=share)
    except ArgumentError as error:
        raise ValueError(error.fact) from None

"""Names of margins, and the levels that callers mean by them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from pandas_dptree.errors import ArgumentError, ColumnsError, did_you_mean, is_name, listed, quote
from pandas_dptree.hierarchy.names import ROOT
from pandas_dptree.hierarchy.product_tree import Margin

__all__ = [
    "CROSS",
    "LEVEL_SUFFIX",
    "Keys",
    "example",
    "level_column",
    "margin_name",
    "margin_named",
    "margin_of_call",
    "margin_weights",
]  # fmt: skip

CROSS: Final = "×"
"""Stands between the names of levels in the name of a margin, so it can be in none of them."""

LEVEL_SUFFIX: Final = "_level"
"""Ends the name of the column of an axis in a released table, which says down to which key each row goes."""

Keys = Mapping[str, Sequence[Hashable]]
"""The keys of each axis, from the coarsest to the finest."""


def level_column(axis: str) -> str:
    """Return the name of the column with the levels of an axis."""
    return f"{axis}{LEVEL_SUFFIX}"


def margin_name(axes: Keys, margin: Margin) -> str:
    """Return the name of a margin: those of its levels, or "total".

    >>> margin_name({"place": ["state", "county"], "sex": ["sex"]}, (2, 1))
    'county × sex'
    """
    levels = zip(axes.values(), margin, strict=True)
    return f" {CROSS} ".join(str(keys[level - 1]) for keys, level in levels if level) or ROOT


def margin_named(axes: Keys, given: Any, argument: str) -> Margin:
    """Return the level of each axis in a margin, or raise an ArgumentError that names `argument`.

    `given` maps axes to levels, or is the name of a level or of a margin, or lists names of levels of
    different axes. Axes that are left out have the level "total".

    >>> margin_named({"place": ["state", "county"], "sex": ["sex"]}, "county × sex", "margin")
    (2, 1)
    """
    if isinstance(given, Mapping):
        return _margin_of_axes(axes, given, argument)
    places = {name: (axis, name) for axis, keys in axes.items() for name in keys}
    places = {str(name): place for name, place in places.items()} | places
    names: Sequence[Any] = [given]
    if not (is_name(given) and given in places):
        if isinstance(given, str):
            names = [each.strip() for each in given.split(CROSS)]
        elif isinstance(given, (list, tuple)):
            names = given
    levels: dict[str, Hashable] = {}
    for name in names:
        if is_name(name) and name == ROOT:
            continue
        if not is_name(name) or name not in places:
            known = [ROOT, *(key for keys in axes.values() for key in keys)]
            raise ArgumentError(
                argument,
                f"has no level {quote(name, of=names)}.",
                hint=f"{did_you_mean([name], known)}name a level of each axis, as in {example(axes)}; the "
                f"levels are {listed(known)}.",
            )
        axis, level = places[name]
        if axis in levels:
            raise ArgumentError(
                argument,
                f"has two levels of the axis {quote(axis)}: {quote(levels[axis])} and {quote(level)}.",
                hint="a margin has one level of each axis; the finer one implies the coarser.",
            )
        levels[axis] = level
    return _margin_of_axes(axes, levels, argument)


def margin_of_call(axes: Keys, levels: Sequence[Any], of_axes: Mapping[str, Hashable]) -> Margin:
    """Return the margin that a method ``margin(*levels, **of_axes)`` is asked for."""
    if levels and of_axes:
        raise ArgumentError(
            "levels",
            "cannot be given with levels by keywords.",
            hint=f"name all in one way, for example .dp.margin({example(axes)}).",
        )
    return margin_named(axes, levels[0] if len(levels) == 1 else levels or of_axes, "levels")


def example(axes: Keys) -> str:
    """Return an example of a margin, in the words of these axes."""
    named = [f"{quote(axis)}: {quote(keys[-1])}" for axis, keys in axes.items() if keys]
    return "{" + ", ".join(named[:2]) + "}"


def _margin_of_axes(axes: Keys, levels: Mapping[Any, Any], argument: str) -> Margin:
    """Return the margin of the level of each axis."""
    unknown = [axis for axis in levels if axis not in axes]
    if unknown:
        raise ColumnsError(
            argument,
            "has unknown axes",
            columns=unknown,
            hint=f"{did_you_mean(unknown, axes)}the axes are {listed(axes)}.",
        )
    margin = []
    for axis, keys in axes.items():
        level, known = levels.get(axis, ROOT), [ROOT, *keys]
        if not is_name(level) or level not in known:
            raise ArgumentError(
                argument,
                f"has no level {quote(level)} of the axis {quote(axis)}.",
                hint=f"{did_you_mean([level], known)}its levels are {listed(known)}.",
            )
        margin.append(known.index(level))
    return tuple(margin)


def margin_weights(axes: Keys, margins: Any) -> dict[Margin, float]:
    """Return margins and their weights, 1 if none are given: see `CrossedDomain.with_margins`."""
    if not isinstance(margins, (list, tuple, Mapping)):
        raise ArgumentError(
            "margins",
            f"must be a list of margins, or a mapping from them to weights, not {quote(margins)}.",
            hint=f"for example margins=[{example(axes)}].",
        )
    if not margins:
        raise ArgumentError("margins", "names no margin.", hint="leave it out to show all margins.")
    weights: dict[Margin, float] = {}
    for given in margins:
        weight = margins[given] if isinstance(margins, Mapping) else 1.0
        if not _is_weight(weight):
            finest = margin_name(axes, tuple(map(len, axes.values())))
            raise ArgumentError(
                "margins",
                f"has a weight that is not a finite number of at least 0: {quote(weight)}.",
                hint=f"for a single margin pass a list, as in margins=[{example(axes)}]; a mapping gives "
                f'each margin a weight, by its name, as in margins={{"{finest}": 2, "{ROOT}": 1}}.',
            )
        margin = margin_named(axes, given, "margins")
        if margin in weights:
            raise ArgumentError(
                "margins",
                f"has the margin {quote(margin_name(axes, margin))} twice.",
                hint=f"name each margin once; axes that are left out have the level {quote(ROOT)}.",
            )
        weights[margin] = float(weight)
    if not any(weights.values()):
        raise ArgumentError("margins", "has no weight above 0.", hint="give a margin a positive weight.")
    return weights


def _is_weight(weight: Any) -> bool:
    """Whether a value is a finite number of at least 0."""
    number = isinstance(weight, (int, float, np.integer, np.floating)) and not isinstance(weight, bool)
    return number and 0 <= weight < math.inf

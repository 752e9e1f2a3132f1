"""The bound on distinct units: the most nodes of each level in which one unit is counted."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from pandas_dptree.errors import ArgumentError, did_you_mean, listed, quote
from pandas_dptree.privacy.unit import MOST_ROWS

__all__ = ["MaxNodes", "check_max_nodes", "max_nodes_in_words", "stated_max_nodes"]

MaxNodes = tuple[int, ...]
"""The bound of each level, the root first: 1 for the root, never smaller below, at most the level's nodes."""

_HINT = 'for example max_nodes=4, or max_nodes={"region": 1, "clinic": 4}.'


def stated_max_nodes(max_nodes: object, names: Sequence[Hashable], sizes: Sequence[int]) -> MaxNodes:
    """Return the bounds that an option states, for levels of these `names` and numbers of nodes.

    A number bounds every level. A mapping bounds the levels that it names, among them the deepest; the others
    have the bound of the next level below that it names, since whoever is in few nodes is in few above them.
    """
    if max_nodes is None:
        raise ArgumentError(
            "max_nodes",
            "must be given: it bounds the number of nodes of a level in which one unit is counted.",
            hint=f"{_HINT} Noise grows with it; further nodes of a unit are left out at random.",
        )
    of = dict(max_nodes) if isinstance(max_nodes, Mapping) else dict.fromkeys(names[1:], max_nodes)
    if unknown := [level for level in of if level not in names]:
        raise ArgumentError(
            "max_nodes",
            f"names unknown levels: {quote(unknown)}.",
            hint=f"{did_you_mean(unknown, names)}the levels are {listed(names[1:])}.",
        )
    if of.get(names[0], 1) != 1:
        raise ArgumentError(
            "max_nodes",
            f"bounds the nodes of {quote(names[0])}, which has one.",
            hint="leave it out: everybody is counted once in the total.",
        )
    if len(names) > 1 and names[-1] not in of:
        raise ArgumentError(
            "max_nodes",
            f"must bound the deepest level, {quote(names[-1])}.",
            hint=_HINT,
        )
    bounds: list[int] = []
    for name in reversed(names[1:]):
        bounds.append(bounds[-1] if bounds and of.get(name) is None else _whole(of[name]))
    bounds = [1, *reversed(bounds)]
    for (name, above), (deeper, below) in itertools.pairwise(zip(names, bounds, strict=True)):
        if above > below:
            raise ArgumentError(
                "max_nodes",
                f"allows a unit more nodes of {quote(name)}, {above}, than of {quote(deeper)}, {below}.",
                hint="a unit that is in several nodes is in at least as many below them: raise the latter.",
            )
    return tuple(map(min, bounds, sizes))


def check_max_nodes(max_nodes: MaxNodes, sizes: Sequence[int]) -> MaxNodes:
    """Check bounds of levels with so many nodes, as `stated_max_nodes` returns them."""
    fits = (
        isinstance(max_nodes, tuple)
        and len(max_nodes) == len(sizes)
        and all(type(each) is int and 1 <= each <= n for each, n in zip(max_nodes, sizes, strict=True))
        and all(above <= below for above, below in itertools.pairwise(max_nodes))
    )
    if not fits:
        raise ArgumentError(
            "max_nodes",
            "must have a bound for each level: 1 for the root, and below it never less than above, nor more "
            "than the level has nodes.",
            hint=_HINT,
        )
    return max_nodes


def max_nodes_in_words(max_nodes: MaxNodes, names: Sequence[Hashable]) -> str:
    """Say in how many nodes a unit is counted."""
    below = dict(zip(names[1:], max_nodes[1:], strict=True))
    return f"in up to {', '.join(f'{most} of {name}' for name, most in below.items())}" if below else "once"


def _whole(most: object) -> int:
    is_whole = isinstance(most, int | np.integer) and not isinstance(most, bool)
    if not is_whole or not 1 <= most <= MOST_ROWS:  # type: ignore[operator]
        raise ArgumentError(
            "max_nodes",
            f"must be a whole number of at least 1 for each level, and at most 2**60, not {quote(most)}.",
            hint=_HINT,
        )
    return int(most)  # type: ignore[call-overload, no-any-return]

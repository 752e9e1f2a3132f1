"""Caps: the most rows of one unit that are kept in each node of a level, beside those kept in total."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from pandas_dptree.errors import ArgumentError, did_you_mean, kind_of_object, listed, quote
from pandas_dptree.privacy.unit import whole_rows

__all__ = ["Caps", "caps_from_json", "caps_to_json", "check_caps", "stated_caps", "with_leaf_cap"]

Caps = tuple[int | None, ...]
"""The cap of each level, None where there is none, as on the level of the root; empty if no level has one."""


def stated_caps(
    max_per_leaf: object, max_per_node: object, names: Sequence[Hashable], privacy_unit: Hashable | None
) -> Caps:
    """Return the caps that the options of a plan state, for the levels `names`, the root first."""
    root, leaf = names[0], names[-1]
    if max_per_node is not None and not isinstance(max_per_node, Mapping):
        raise ArgumentError(
            "max_per_node",
            f"must give whole numbers by level, not be {kind_of_object(max_per_node)}.",
            hint='for example max_per_node={"region": 4}.',
        )
    of: dict[Hashable, object] = dict(max_per_node or {})
    if unknown := [level for level in of if level not in names]:
        raise ArgumentError(
            "max_per_node",
            f"names unknown levels: {quote(unknown)}.",
            hint=f"{did_you_mean(unknown, names)}the levels are {listed(names[1:])}.",
        )
    alike = [name for name, n in Counter(map(str, names)).items() if n > 1]
    if of and alike:
        raise ArgumentError(
            "max_per_node",
            f"is stored by names of levels, of which several are the same as text: {listed(alike)}.",
            hint="rename all but one of these columns.",
        )
    if root in of:
        raise ArgumentError(
            "max_per_node",
            f"bounds the rows of a unit in {quote(root)}, which are all that are kept of it.",
            hint=f"pass max_contributions={quote(of[root])} instead.",
        )
    if leaf in of and max_per_leaf is not None:
        raise ArgumentError(
            "max_per_node",
            f"bounds the deepest level, {quote(leaf)}, which `max_per_leaf` does too.",
            hint="leave one of the two out.",
        )
    caps = [None if of.get(level) is None else whole_rows("max_per_node", of[level]) for level in names]
    if max_per_leaf is not None:
        caps[-1] = whole_rows("max_per_leaf", max_per_leaf)
    return check_caps(_or_none(caps), len(names), privacy_unit)


def check_caps(caps: Caps, n_levels: int, privacy_unit: Hashable | None) -> Caps:
    """Check caps of so many levels, and that there is a column by which units can be told apart."""
    if not caps:
        return ()
    if len(caps) != n_levels or caps[0] is not None or not any(caps):
        raise ArgumentError(
            "caps",
            "must have an entry for each level, that of the root None.",
            hint="state them by max_per_leaf and max_per_node.",
        )
    argument = "max_per_leaf" if caps[-1] is not None else "max_per_node"
    caps = tuple(None if cap is None else whole_rows(argument, cap) for cap in caps)
    if privacy_unit is None:
        raise ArgumentError(
            argument,
            "needs a `privacy_unit`: rows, and counts of rows, do not say whose they are without one.",
            hint='name the column, for example privacy_unit="person_id", and state max_contributions.',
        )
    return caps


def with_leaf_cap(caps: Caps, n_levels: int, max_per_leaf: int | None) -> Caps:
    """Return caps with another one of the deepest level."""
    above = caps[:-1] or (None,) * (n_levels - 1)
    return _or_none((*above, max_per_leaf))


def caps_to_json(caps: Caps, names: Sequence[Hashable]) -> dict[str, Any]:
    """Return caps as plain JSON: the entries ``max_per_leaf`` and ``max_per_node`` that are stated."""
    inner = {str(name): cap for name, cap in zip(names, caps[:-1], strict=False) if cap is not None}
    leaf = caps[-1] if caps else None
    return {
        **({} if leaf is None else {"max_per_leaf": leaf}),
        **({"max_per_node": inner} if inner else {}),
    }


def caps_from_json(data: Mapping[str, Any], names: Sequence[str]) -> Caps:
    """Return the caps that `caps_to_json` wrote, which `check_caps` has not checked yet."""
    of: Any = data.get("max_per_node", {})
    caps = (*(of.get(name) for name in names[:-1]), data.get("max_per_leaf"))
    return _or_none(caps)


def _or_none(caps: Sequence[int | None]) -> Caps:
    """Return caps of all levels, or none if no level has one."""
    return tuple(caps) if any(cap is not None for cap in caps) else ()

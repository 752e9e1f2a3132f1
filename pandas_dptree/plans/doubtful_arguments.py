"""Warnings of arguments that are probably not meant, when a release is planned: functions of these alone."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import permutations

import numpy as np

from pandas_dptree.errors import listed, warn
from pandas_dptree.hierarchy.crossed_known import CrossedKnown
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.privacy.loss import PrivacyLoss, warn_if_useless

__all__ = ["known_total", "order_meant", "warn_of_arguments"]

_FEWEST = 8
"""So many nodes with one child each are no coincidence, if every second one shares it."""


def warn_of_arguments(loss: PrivacyLoss, hierarchy: object, total: int | None = None) -> None:
    """Warn of a loss that protects nobody, also of so many records, and of keys in the wrong order."""
    warn_if_useless(loss)
    if total and loss.delta * total > 1 and not loss.objection:
        warn(
            f"`delta` is {loss.delta:g}, more than 1 / n for the known total of n = {total:,}: such a loss "
            "permits publishing a record unchanged in each release.",
            hint=f"choose a delta far below 1 / n, for example {0.01 / total:.0e}.",
        )
    if isinstance(hierarchy, Domain) and (meant := order_meant(hierarchy)):
        warn(
            f"`by` is {listed(hierarchy.by)}, but the finer of these keys follow from the coarser ones, "
            "which thus have one child each: such levels add noise and no information.",
            hint=f"did you mean by={listed(meant)}? Keys go from coarse to fine.",
        )


def known_total(known: Known | CrossedKnown) -> int | None:
    """Return the total if it is public."""
    return int(known.least[0][0]) if known.exact[0].all() else None


def order_meant(domain: Domain) -> tuple[Hashable, ...]:
    """Return the keys from coarse to fine; empty if they are so already, or it is unknown.

    They are not if all nodes of some level have one child, and several have the same: its key follows from
    those above, but not the other way round, so it is coarser.
    """
    if domain.derived or not any(_is_coarser(domain, place) for place in range(1, len(domain.by))):
        return ()
    leaves = domain.path_codes(domain.tree.depth)

    def follows(finer: int, coarser: int) -> bool:
        """Whether each key has one of a second key beside it, and those have several of it."""
        paths = np.unique(np.stack([leaves[finer], leaves[coarser]]), axis=1)
        return bool(paths.shape[1] == len(np.unique(paths[0])) > len(np.unique(paths[1])))

    below = {pair for pair in permutations(range(len(leaves)), 2) if follows(*pair)}
    order: list[int] = []
    while len(order) < len(leaves):
        rest = [key for key in range(len(leaves)) if key not in order]
        order.append(next(key for key in rest if not any((key, other) in below for other in rest)))
    return tuple(domain.by[key] for key in order) if order != sorted(order) else ()


def _is_coarser(domain: Domain, place: int) -> bool:
    """Whether each node above the nodes of a key has one of them, and several have the same."""
    if domain.tree.child_counts[place].max() > 1:
        return False
    shown = domain.codes[place][domain.codes[place] >= 0]
    return bool(_FEWEST <= len(shown) >= 2 * len(np.unique(shown)) > 2)

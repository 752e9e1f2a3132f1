"""What is left to measure where some counts are already public.

**Privacy**: which counts are known is public; their values are not used.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import Tree

__all__ = ["Flags", "levels_to_measure"]

Flags = Sequence[npt.NDArray[np.bool_]]
"""For each level, which of its nodes are meant: shape (level_sizes[l],), or (1,) where all agree."""


def levels_to_measure(tree: Tree, known: Flags | None = None) -> npt.NDArray[np.bool_]:
    """Return which levels have a node whose count is not known; those of the leaves must be."""
    if known is None:
        return np.ones(tree.depth + 1, dtype=bool)
    unknown = np.array([not flags.all() for flags in known])
    if not unknown[-1]:
        raise ArgumentError(
            "known",
            "covers all leaves, so there is nothing to measure.",
            hint="leave out the counts that are not public.",
        )
    return unknown

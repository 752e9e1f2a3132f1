"""What plans and estimates need to know of what is measured: sizes, sums over leaves, and what is listed."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["IntArray", "Shape", "Values"]

IntArray = npt.NDArray[np.int64]
Values = npt.NDArray[Any]
"""One entry per node of a level, or one for all (it is *folded*)."""


class Shape(ABC):
    """Levels of nodes, each of which holds leaves of the last level; a `Tree` is one."""

    @property
    @abstractmethod
    def level_sizes(self) -> tuple[int, ...]:
        """Number of nodes of each level, those of no table included."""

    @abstractmethod
    def roll_up(self, leaf_values: npt.ArrayLike) -> tuple[Values, ...]:
        """Sum leaf values, shape (n_leaves,), into the nodes of every level."""

    @abstractmethod
    def listed(self, level: int) -> npt.NDArray[np.bool_]:
        """Whether each node of a level is shown in a table."""

    @property
    def depth(self) -> int:
        """The last level, that of the leaves; the first is 0."""
        return len(self.level_sizes) - 1

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return self.level_sizes[-1]

    @property
    def n_nodes(self) -> int:
        """Number of nodes on all levels, those of no table included."""
        return sum(self.level_sizes)

    def n_listed(self, level: int) -> int:
        """Count the nodes of a level that a table shows."""
        return int(np.count_nonzero(self.listed(level)))

    def mean_listed(self, level: int, values: Values) -> float:
        """Average level values over the nodes shown in a table; nan if there are none."""
        shown = self._shown(level, values)
        return float(shown.mean()) if len(shown) else math.nan

    def max_listed(self, level: int, values: Values) -> float:
        """Return the largest level value over the nodes shown in a table; nan if there are none."""
        shown = self._shown(level, values)
        return float(shown.max()) if len(shown) else math.nan

    def _shown(self, level: int, values: Values) -> Values:
        """Return the values of the nodes shown in a table; folded values stay folded if there are any."""
        if len(values) == 1:
            return values if self.n_listed(level) else values[:0]
        return values[self.listed(level)]

"""How far one privacy unit can move the counts of a level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pandas_dptree.errors import ArgumentError

__all__ = ["Neighbors", "Sensitivity", "count_sensitivity"]

Neighbors = Literal["add_remove", "replace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """The largest distance between the values of one level in neighbouring data sets, exactly.

    Parameters
    ----------
    l1 : int
        Largest sum of absolute differences over the nodes of the level.
    l2_squared : int
        Largest sum of squared differences.

    Raises
    ------
    ArgumentError
        If one of them is not a positive whole number.
    """

    l1: int
    l2_squared: int

    def __post_init__(self) -> None:
        """Check that both are positive whole numbers."""
        object.__setattr__(self, "l1", _whole("l1", self.l1))
        object.__setattr__(self, "l2_squared", _whole("l2_squared", self.l2_squared))


def count_sensitivity(*, neighbors: Neighbors, max_contributions: int = 1) -> Sensitivity:
    r"""Give the sensitivity of the counts of one level.

    Parameters
    ----------
    neighbors : {"add_remove", "replace"}
        Neighbouring data sets differ in that one privacy unit is there or not ("add_remove"), or in
        that its rows are other rows ("replace").
    max_contributions : int, default 1
        The most rows k of one unit that are counted.

    Returns
    -------
    Sensitivity
        In counts; the same for every level, whatever the tree.

    Raises
    ------
    ArgumentError
        If `neighbors` is unknown or `max_contributions` is not a whole number of at least 1.

    Notes
    -----
    **Privacy**: public; it depends on no record.

    A row adds one to exactly one node of each level, so the rows of a unit add a vector
    :math:`a \ge 0` of whole numbers with :math:`\sum_i a_i \le k`.

    *add/remove*: the counts move by a. :math:`\lVert a\rVert_1 \le k` and
    :math:`\lVert a\rVert_2 \le \lVert a\rVert_1 \le k`; both are reached when all rows fall into one node.

    *replace*: the counts move by a − b with two such vectors. By the triangle inequality
    :math:`\lVert a - b\rVert_1 \le 2k`, and since :math:`a_i b_i \ge 0`,
    :math:`\lVert a - b\rVert_2^2 \le \lVert a\rVert_2^2 + \lVert b\rVert_2^2 \le 2k^2`; both are reached
    when all k rows move from one node to another.

    Examples
    --------
    >>> count_sensitivity(neighbors="replace", max_contributions=3)
    Sensitivity(l1=6, l2_squared=18)
    """
    rows = _whole("max_contributions", max_contributions)
    if neighbors == "add_remove":
        return Sensitivity(l1=rows, l2_squared=rows**2)
    if neighbors == "replace":
        return Sensitivity(l1=2 * rows, l2_squared=2 * rows**2)
    raise ArgumentError("neighbors", f"is unknown: {neighbors!r}.", hint='pass "add_remove" or "replace".')


def _whole(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ArgumentError(
            name, f"must be a whole number of at least 1, not {value!r}.", hint=f"for example {name}=1."
        )
    return int(value)

r"""Tables of uniform axes as sums of independent parts, one for each margin.

On axes whose nodes have equally many children on each level, let :math:`M_\ell` sum leaf cells into the cells
of the margin :math:`\ell`, of :math:`s_\ell` leaf cells each. The projections
:math:`P_\ell = M_\ell^\top M_\ell / s_\ell` on tables that are even in each of these cells are nested along
each axis, and :math:`E_k = \bigotimes_d (P_{k_d} - P_{k_d - 1})` project on the *residual class* k, of
:math:`m_k = \prod_d (n_{k_d} - n_{k_d - 1})` dimensions: what the margin k says beyond coarser ones. Since
:math:`M_\ell^\top M_\ell = s_\ell \sum_{k \le \ell} E_k`, a measurement of :math:`M_\ell x` of precision p is
one of each :math:`E_k x`, :math:`k \le \ell`, of the precision :math:`p s_\ell` in every direction. The
classes can be estimated one by one.

A part :math:`E_k x` is stored by its sums over the cells of k; time and memory are those of the margins.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pandas_dptree.estimation.least_squares import FloatArray
from pandas_dptree.hierarchy.product_tree import Margin, ProductTree, sum_along
from pandas_dptree.hierarchy.tree import Tree

__all__ = ["Tables", "add_coarser", "split_coarser"]

Tables = dict[Margin, FloatArray]


def split_coarser(product: ProductTree, places: Iterable[int], tables: Tables) -> None:
    """Turn weighted tables into sums of the parts that they have of each class, along some uniform axes.

    From the finest level up, each table is added to that of the level above, and gives its mean there away.
    """
    for place in places:
        axis = product.axes[place]
        for level in reversed(range(axis.depth)):
            for margin in [each for each in tables if each[place] == level + 1]:
                table = tables[margin]
                sums = sum_along(axis, level, table, place)
                _add_evenly(axis, level, table, -sums, place)
                above = _with(margin, place, level)
                if above in tables:
                    tables[above] += sums
                else:
                    tables[above] = sums


def add_coarser(product: ProductTree, places: Iterable[int], tables: Tables) -> None:
    """Turn parts in each class into the tables of all margins, along some uniform axes."""
    for place in places:
        axis = product.axes[place]
        for level in range(axis.depth):
            for margin in [each for each in tables if each[place] == level + 1]:
                _add_evenly(axis, level, tables[margin], tables[_with(margin, place, level)], place)


def _with(margin: Margin, place: int, level: int) -> Margin:
    return (*margin[:place], level, *margin[place + 1 :])


def _add_evenly(axis: Tree, level: int, table: FloatArray, of_parents: FloatArray, place: int) -> None:
    """Divide a value of each node of a level among its children, in place."""
    n_children = int(axis.child_counts[level][0])
    shape = (*table.shape[:place], axis.level_sizes[level], n_children, *table.shape[place + 1 :])
    families = table.reshape(shape)
    families += np.expand_dims(of_parents / n_children, place + 1)

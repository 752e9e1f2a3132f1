r"""The best split of a uniform tree for noise whose precision is proportional to the share.

As all nodes of a level are equal, the leaf counts decompose into orthogonal detail spaces, one for each level
k: the information of level k beyond the level above. Space k has :math:`d_k = 1/s_k - 1/s_{k-1}` dimensions
for each leaf of the tree, with :math:`s_l` leaves below a node of level l and :math:`1/s_{-1} = 0`. Level l
is informative about the spaces :math:`k \le l`, so the precision in space k is
:math:`\mu_k = \sum_{l \ge k} s_l p_l`, and with weights :math:`w_l` of the levels' mean variances the task is

.. math:: \min \sum_k \frac{d_k \lambda_k}{\mu_k}, \qquad \lambda_k = \sum_{l \ge k} w_l s_l^2, \qquad
          \sum_l p_l = \sum_l \frac{\mu_l - \mu_{l+1}}{s_l} = \sum_k d_k \mu_k = 1.

It is solved by :math:`\mu_k \propto \sqrt{\lambda_k}`, since the :math:`\lambda_k` never rise with k. This
attains the singular-value lower bound of the matrix mechanism (Li and Miklau, "Optimal error of query sets
under the differentially-private matrix mechanism", 2013).

Where level m is known, so are the spaces :math:`k \le m`, and the levels down to m are not measured. The
price of :math:`\mu_{m+1}` is then :math:`1/s_{m+1}` in place of :math:`d_{m+1}`. If shares could be negative,
the answer would be :math:`\mu_{m+1}^2 \propto d_{m+1} s_{m+1} \lambda_{m+1}`, the others as before. Where
that is below :math:`\lambda_{m+2}`, neighbours are pooled as in isotonic regression. So the first
:math:`\mu_k^2` is the largest mean that the errors of the spaces m + 1 … j have for their price, and no other
exceeds it:

.. math:: \mu_k^2 \propto \min(\lambda_k, \gamma), \qquad
          \gamma = \max_{j > m} s_j \sum_{k=m+1}^{j} d_k \lambda_k.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pandas_dptree.planning.equal_subtrees import FloatArray

__all__ = ["uniform_tree_shares"]


def uniform_tree_shares(
    level_sizes: Sequence[float] | FloatArray,
    weights: FloatArray,
    unknown: npt.NDArray[np.bool_],
) -> FloatArray:
    """Return the best shares on a uniform tree, at least 0 and not yet normalized to sum 1.

    Level sizes never fall, but need not divide one another; `weights` is the cost of a unit of each level's
    mean variance. Levels that are not `unknown` are not measured. All are 0 where no error with a weight
    remains.
    """
    sizes = np.asarray(level_sizes, dtype=np.float64)
    leaves = sizes[-1] / sizes
    squares = np.cumsum((weights * leaves**2)[::-1])[::-1]
    if not unknown.all():
        below = np.arange(len(sizes)) > np.flatnonzero(~unknown).max()
        pooled = leaves * np.cumsum(np.diff(1 / leaves, prepend=0.0) * np.where(below, squares, 0.0))
        squares = np.where(below, np.minimum(squares, pooled[below].max()), 0.0)
    else:
        below = unknown
    roots = np.sqrt(squares)
    return np.where(below, (roots - np.append(roots[1:], 0.0)) / leaves, 0.0)

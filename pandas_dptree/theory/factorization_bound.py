r"""A lower bound on additive errors under differential privacy: the factorization norm of a tree.

Let W be the 0/1 matrix of which leaves (columns) are below which nodes (rows). Its factorization norm is

.. math:: \gamma_2(W) = \min_{R A = W} \max_{\text{rows } r} \|r\|_2 \max_{\text{columns } a} \|a\|_2
          = \max_{\|u\|_2 = \|v\|_2 = 1} \bigl\| W \circ v u^\top \bigr\|_*,

the last being the nuclear norm (Mathias, "The Hadamard operator norm of a circulant and applications",
1993; Lee, Shraibman and Špalek, "A direct product theorem for discrepancy", 2008). Measure A with Gaussian
noise, where a row in leaf j moves the measurements by the norm of column j, and multiply by R: the variance
of the worst node is :math:`\gamma_2(W)^2` times that of a single count with the whole budget.

**Relation to `gaussian_lower_bound`.** The squared singular values of :math:`W \circ v u^\top` are the
eigenvalues of :math:`D^{1/2} \bigl(\sum_i v_i^2 1_i 1_i^\top\bigr) D^{1/2}` with
:math:`D = \mathrm{diag}(u^2)`: with :math:`y = u^2` this is the matrix of `gaussian_lower_bound`, and
:math:`v_i^2` is the weight of node i. There, with the objective ``"worst"``, all nodes of a level have equal
weights, since the error of a level is a mean. So its root is :math:`\gamma_2` for the worst mean of a level.
That is at most :math:`\gamma_2` for the worst node, with equality if all nodes of each level are equivalent:
the nuclear norm is concave in :math:`(u^2, v^2)`, so weights may be averaged over all symmetries of the tree.

**Uniform trees.** With :math:`n_k` nodes on level k, :math:`n_{-1} = 0` and the weight
:math:`v^2 = a_k / n_k` for each of them, there are :math:`n_k - n_{k-1}` singular values with the square
:math:`s_k = \sum_{l \ge k} a_l / n_l^2` each. The weights have the sum
:math:`\sum_k s_k (n_k^2 - n_{k-1}^2) = 1`, so by the Cauchy-Schwarz inequality

.. math:: \gamma_2(W)^2 = \max \Bigl(\sum_k (n_k - n_{k-1}) \sqrt{s_k}\Bigr)^2
          = \sum_k \frac{n_k - n_{k-1}}{n_k + n_{k-1}} = 1 + \sum_{k=1}^{\text{depth}} \frac{b_k - 1}{b_k + 1}

with :math:`b_k = n_k / n_{k-1}` children of each node, at :math:`\sqrt{s_k} \propto 1 / (n_k + n_{k-1})`,
which falls with k as required. A complete binary tree of d levels has :math:`\gamma_2^2 = (d + 2) / 3`; no
tree of d levels reaches :math:`\sqrt d`.

**Any mechanism.** If estimates of all nodes have an error of at most R for all counts, there are others that
are unbiased and have the same error distribution for all counts, up to any small amount: add many random rows
first, and subtract them (Bhaskara, Dadush, Krishnaswamy and Talwar, "Unconditional differentially private
mechanisms for linear queries", 2012). For every direction :math:`\theta`, m additional rows in leaf j then
shift the mean by :math:`m\,\theta^\top w_j` and leave the covariance :math:`\Sigma` unchanged. For a single
number, `noise_floor` gives :math:`\theta^\top \Sigma \theta \ge C^2 (\theta^\top w_j)^2`, or
:math:`w_j^\top \Sigma^{-1} w_j \le 1 / C^2` for all columns: with the factors :math:`\Sigma^{1/2}` and
:math:`\Sigma^{-1/2} W`, :math:`\gamma_2(W) \le R / C`. This is the argument of Edmonds, Nikolov and Ullman,
"The power of factorization mechanisms in local and central differential privacy", 2020, with a constant.

**Privacy**: everything here is a function of the tree and of parameters, which are public.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.least_squares import propagate
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Gaussian
from pandas_dptree.planning.gaussian_bound import gaussian_lower_bound
from pandas_dptree.planning.levels import optimal_shares
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Sensitivity
from pandas_dptree.theory.single_count import noise_floor

__all__ = ["factorization_error", "factorization_norm", "witness", "worst_node_shares"]

FloatArray = npt.NDArray[np.float64]

_MOST_KINDS = 20_000  # takes at most a second


def factorization_norm(tree: Tree) -> tuple[float, float]:
    """Compute lower and upper bounds on the factorization norm of a tree.

    Parameters
    ----------
    tree : Tree

    Returns
    -------
    lower, upper : float
        Equal for uniform trees, up to rounding. For other trees, the lower bound gives all nodes of a level
        equal weights; if that takes too long, it is that of the uniform tree with the fewest children of each
        level, which is a part of this tree. The upper bound is that of least squares after the best split by
        level.

    Examples
    --------
    >>> [round(float(bound), 6) for bound in factorization_norm(Tree.from_branching([2] * 9))]
    [2.0, 2.0]
    >>> [round(bound, 3) for bound in factorization_norm(Tree((np.array([2]), np.array([2, 9]))))]
    [1.396, 1.484]
    """
    if tree.is_uniform:
        return _uniform_norm(tree), _norm_of(tree, worst_node_shares(tree))
    square = gaussian_lower_bound(tree, objective="worst", max_kinds=_MOST_KINDS)
    lower = _uniform_norm(tree) if square is None else max(math.sqrt(square), _uniform_norm(tree))
    loss, one_row = PrivacyLoss(rho=0.0005), Sensitivity(l1=1, l2_squared=1)
    return lower, _norm_of(tree, optimal_shares(tree, Gaussian(), loss, one_row, objective="worst"))


def worst_node_shares(tree: Tree) -> FloatArray:
    r"""Compute the split of a rho that is best for the worst node of a uniform tree.

    In the notation of the module, the precision of the k-th space is proportional to :math:`\sqrt{s_k}`, so
    level l gets :math:`n_l \bigl(1/(n_l + n_{l-1}) - 1/(n_{l+1} + n_l)\bigr) / \gamma_2^2`, without the last
    term for the leaves.

    Parameters
    ----------
    tree : Tree
        Uniform.

    Returns
    -------
    numpy.ndarray, shape (n_levels,)
        Shares with sum 1. After least squares the estimates of all nodes have the same variance,
        :math:`\gamma_2^2` times that of a count with the whole budget. No additive Gaussian noise has a
        smaller variance for the worst node.

    Examples
    --------
    >>> worst_node_shares(Tree.from_branching([2, 2])).round(3).tolist()
    [0.4, 0.2, 0.4]
    """
    if not tree.is_uniform:
        raise ArgumentError(
            "tree",
            "is not uniform: nodes of one level have different numbers of children.",
            hint='use a plan with objective="worst".',
        )
    sizes = np.array(tree.level_sizes, dtype=np.float64)
    roots = 1 / (sizes + np.append(0.0, sizes[:-1]))
    shares = sizes * (roots - np.append(roots[1:], 0.0))
    return np.asarray(shares / shares.sum())


def witness(tree: Tree) -> float:
    """Bound the factorization norm of a uniform tree from below, with the weights of Theorem 5.2's proof.

    These are :math:`u_j^2 = 1 / n` for the n leaves, and :math:`v_i^2 = 1 / d n_l` for the nodes of level l
    of d (Ghazi, Kamath, Kumar, Manurangsi and Wu, "On differentially private counting on trees", 2022,
    Appendix A.7): all levels have equal weights.

    Parameters
    ----------
    tree : Tree
        If it is not uniform, it is replaced by the uniform tree with the fewest children of each level.

    Examples
    --------
    >>> round(witness(Tree.from_branching([2] * 9)), 4)
    1.9762
    """
    sizes = _least_sizes(tree)
    squares = np.cumsum((1 / (len(sizes) * sizes**2))[::-1])[::-1]
    return float((np.diff(sizes, prepend=0.0) * np.sqrt(squares)).sum())


def factorization_error(tree: Tree, *, epsilon: float, delta: float = 0.0) -> float:
    r"""Bound the worst-case error of any private mechanism on a tree from below, by factorization.

    Parameters
    ----------
    tree : Tree
    epsilon, delta : float
        The privacy of one row.

    Returns
    -------
    float
        In counts: no mechanism has a smaller mRMSE, the largest root mean squared error over all counts and
        nodes. It is :math:`C\,\gamma_2`, from `noise_floor` and `factorization_norm`: Theorem 5.2 of Ghazi et
        al. (2022) with its constant. There is no such bound if a relative error is allowed.

    Examples
    --------
    >>> round(factorization_error(Tree.from_branching([2] * 9), epsilon=1.0, delta=1e-6), 4)
    1.919
    """
    return factorization_norm(tree)[0] * noise_floor(epsilon=epsilon, delta=delta)


def _least_sizes(tree: Tree) -> FloatArray:
    """Return the level sizes of the largest uniform tree that is certainly a part of this one."""
    fewest = [float(counts.min()) for counts in tree.child_counts]
    return np.cumprod(np.array([1.0, *fewest]))


def _uniform_norm(tree: Tree) -> float:
    sizes = _least_sizes(tree)
    above = np.append(0.0, sizes[:-1])
    return float(np.sqrt(((sizes - above) / (sizes + above)).sum()))


def _norm_of(tree: Tree, shares: FloatArray) -> float:
    """Compute the largest standard error of a node after least squares, with the shares as precisions."""
    with np.errstate(divide="ignore"):
        final = propagate(tree, list(1 / shares)).final
    return math.sqrt(max(float(level.max()) for level in final))

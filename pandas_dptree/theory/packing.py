r"""Lower bounds on errors under differential privacy by packing, for any mechanism.

Put m rows below one leaf i and none elsewhere. Anyone who sees accurate estimates of the nodes can walk from
the root towards that leaf, so the estimates distinguish the leaves; but privacy limits how well they may
distinguish m rows from none. Estimates are called accurate here if each single one has an error of at most
:math:`\alpha \max(w, \tau)`, for a count w, with a probability of at least :math:`1 - \eta`; no two of them
need be accurate at once (Ghazi, Kamath, Kumar, Manurangsi and Wu, "On differentially private counting on
trees", 2022, Problem 3.1, Lemma 5.3).

**The walk.** At a node with k children, those with an estimate of at least :math:`\tau` pass. With
:math:`m = \lceil \tau / (1 - \alpha) \rceil` the right child passes with a probability of at least
:math:`1 - \eta`, and each other one with at most :math:`\eta`. A child that passes is chosen with r times
the odds of one that does not. Let q be the probability that the right child passes. On average
:math:`q + (k - 1)\eta` pass at most, so by Jensen's inequality, -log being convex, the logarithm of the
probability of the right step is on average at least

.. math:: q \log r - \log\bigl(k + (r - 1)(q + (k - 1)\eta)\bigr),

which rises with q. At :math:`q = 1 - \eta`, with :math:`a = 1 + (k - 2)\eta`, the best odds are
:math:`r = (1 - \eta)(k - a) / \eta a`, and the right step loses

.. math:: \ell_k(\eta) = H(\eta) + (1 - \eta) \log_2 a + \eta \log_2 (k - a) \text{ bits},

with the binary entropy H; :math:`\ell_1 = 0`, :math:`\ell_2 = H(\eta)` and :math:`\ell_k(\frac12) = \log_2
k`. By Jensen's inequality once more, over the whole walk, leaf i is found with a probability of at least
:math:`2^{-\sum \ell}`, summed over the nodes above it. (The lemma in the paper has :math:`\frac14 2^{-(d-1)
H(4\eta)}` for a complete binary tree of d levels, so it needs :math:`\eta \le 1/8`, and for larger
:math:`\eta` the median of several releases, Corollary 5.4. The better constant comes from bounding the two
kinds of wrong steps together.)

**Privacy.** Let :math:`F = \sum_i 2^{-\sum \ell}` over the L leaves in which the walk may end. Without any
rows, the probabilities of these ends add up to 1, and group privacy (Fact 2.2) gives, with
:math:`c = \delta / (e^\epsilon - 1)`,

.. math:: F \le e^{\epsilon m} + L c\,(e^{\epsilon m} - 1), \qquad
          m \ge \frac 1 \epsilon \ln \frac{F + L c}{1 + L c}.

(The paper compares with m rows at another leaf, at twice the distance. If neighbouring data sets differ in
replaced rows, that other leaf is m rows away, too, and the bound is the same.)

**Which tree.** The walk may ignore children: any tree that is obtained by deleting subtrees has its own bound
(Remark 5.5, which keeps two children of each node). A node with k children of the same shape contributes
:math:`\log_2 k - \ell_k(\eta)` bits, which rises with k, but only towards
:math:`(1 - 2\eta) \log_2 \frac{1 - \eta}{\eta}`: a single level of any width can be counted with an error
that does not depend on the width. F is largest if each node keeps its best j children, for the best j, from
the leaves up. With :math:`\delta > 0` more leaves also have more chances to fail, and narrower trees may give
a larger bound.

Everything here is a function of the tree and of parameters, which are public.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.arguments import number_between, real_numbers
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.theory.checks import checked_alpha, checked_eta

__all__ = [
    "decode",
    "packing_error",
    "packing_threshold",
    "published_packing_threshold",
    "step_loss",
]

FloatArray = npt.NDArray[np.float64]

_SAFETY = 1e-7  # bounds are lowered by this relative amount: more than the error of floats and root finding


def step_loss(n_children: npt.ArrayLike, eta: float) -> FloatArray:
    r"""Compute how many bits a step of the walk loses, :math:`\ell_k(\eta)`.

    Parameters
    ----------
    n_children : array_like of int
        At least 1.
    eta : float
        The probability with which a single estimate may be wrong, from 0 to 1/2.

    Returns
    -------
    numpy.ndarray
        Of the same shape, from 0 (the step is certain) to ``log2(n_children)`` (it is uniformly random).

    Examples
    --------
    >>> step_loss([1, 2, 100], 0.1).round(3).tolist()
    [0.0, 0.469, 4.207]
    """
    from scipy.special import entr, xlogy  # costs a tenth of a second to import

    children = real_numbers("n_children", n_children, hint="for example [2, 100].")
    eta = number_between("eta", eta, 0, 1, example=0.1)
    passing = 1 + (children - 2) * eta
    nats = entr(eta) + entr(1 - eta) + xlogy(1 - eta, passing) + xlogy(eta, children - passing)
    return np.maximum(nats / math.log(2), 0.0)


def decode(
    estimates: list[npt.NDArray[Any]], tree: Tree, threshold: float, eta: float, rng: np.random.Generator
) -> int:
    r"""Walk at random from the root to the leaf that noisy counts indicate.

    Parameters
    ----------
    estimates : list of numpy.ndarray, shape (level_sizes[l],)
        For each level, the estimates of its nodes.
    tree : Tree
    threshold : float
        A child passes if its estimate is at least this.
    eta : float
        The probability with which a single estimate may be wrong: above 0 and below 1/2. With
        :math:`4\eta` in place of it, this is the walk of Lemma 5.3 on a binary tree.
    rng : numpy.random.Generator

    Returns
    -------
    int
        The leaf.

    Examples
    --------
    >>> tree = Tree.from_branching([2, 3])
    >>> counts = list(tree.roll_up([0, 0, 0, 0, 9, 0]))
    >>> decode(counts, tree, threshold=5, eta=1e-9, rng=np.random.default_rng(0))
    4
    """
    eta = checked_eta(eta)
    node = 0
    for level in range(tree.depth):
        counts = tree.child_counts[level]
        if len(counts) == 1:
            children, first = int(counts[0]), node * int(counts[0])
        else:
            children, first = int(counts[node]), int(counts[:node].sum())
        passes = estimates[level + 1][first : first + children] >= threshold
        passing = 1 + (children - 2) * eta
        odds = np.where(passes, (1 - eta) * (children - passing) / (eta * passing), 1.0)
        node = first + int(rng.choice(children, p=odds / odds.sum()))
    return node


def packing_threshold(tree: Tree, *, epsilon: float, delta: float = 0.0, alpha: float, eta: float) -> float:
    r"""Compute a threshold that accurate estimates of a tree must exceed.

    Parameters
    ----------
    tree : Tree
    epsilon, delta : float
        The privacy of one row.
    alpha : float
        The allowed relative error: at least 0 and below 1.
    eta : float
        The probability with which a single estimate may have a larger error: above 0 and below 1/2.

    Returns
    -------
    float
        In counts. For every mechanism with estimates of counts w that have an error of at most
        :math:`\alpha \max(w, \tau_u)`, each with a probability of at least :math:`1 - \eta`, the largest
        :math:`\tau_u` is above this, or 0. It is 0 where nothing is known.

    Examples
    --------
    The published lemma gives less:

    >>> tree, options = Tree.from_branching([2] * 40), {"epsilon": 0.1, "alpha": 0.5, "eta": 0.05}
    >>> packing_threshold(tree, **options), published_packing_threshold(tree, **options)
    (98.5, 15.5)
    """
    loss, alpha = PrivacyLoss(epsilon=epsilon, delta=delta), checked_alpha(alpha)
    rows = _least_rows(tree, loss, checked_eta(eta)) * (1 - _SAFETY)
    return (1 - alpha) * max(math.ceil(rows) - 1, 0)


def packing_error(tree: Tree, *, epsilon: float, delta: float = 0.0, alpha: float = 0.0) -> float:
    r"""Bound the worst-case error of any private mechanism on a tree from below, by packing.

    Parameters
    ----------
    tree, epsilon, delta, alpha
        As in `packing_threshold`, with the same errors.

    Returns
    -------
    float
        In counts: no mechanism has a smaller :math:`\alpha`-mRMSE, the largest over all counts w and nodes of
        :math:`\sqrt{E \max(|\tilde w - w| - \alpha w, 0)^2}`. It is of the order of
        :math:`(1 - \alpha)\,d / \epsilon` on trees of d levels, with :math:`\delta = 0`.

    Notes
    -----
    This makes Theorem 5.1 explicit. The paper converts an error to an accuracy, for another
    :math:`\alpha'`, by Lemma 3.2, which costs a factor of :math:`(1 - \alpha) / 2`. Here the walk checks
    directly whether an estimate is at least :math:`(1 - \alpha) m / 2`. By Chebyshev's inequality the
    estimate of m rows is below, and that of none is not, with probabilities of at most :math:`\eta = 4 R^2 /
    (1 - \alpha)^2 m^2` for an error R. So for every :math:`\eta` and every integer m that packing forbids,
    :math:`R \ge (1 - \alpha)\,m \sqrt\eta / 2`. The largest of these bounds is returned.

    Examples
    --------
    >>> tree = Tree.from_branching([2] * 40)
    >>> [round(packing_error(tree, epsilon=0.1, alpha=alpha), 2) for alpha in (0, 0.5, 0.9)]
    [23.46, 11.73, 2.35]
    """
    loss, alpha = PrivacyLoss(epsilon=epsilon, delta=delta), checked_alpha(alpha)
    return (1 - alpha) / 2 * _best_of_rows(tree, loss) * (1 - _SAFETY)


def published_packing_threshold(
    tree: Tree, *, epsilon: float, delta: float = 0.0, alpha: float, eta: float
) -> float:
    r"""Compute the threshold of `packing_threshold` by the published proof: Lemma 5.3 and Corollary 5.4.

    Parameters
    ----------
    tree, epsilon, delta, alpha, eta
        As in `packing_threshold`, with the same errors.

    Returns
    -------
    float
        In counts; never above `packing_threshold` without delta.

    Notes
    -----
    With d - 1 choices of one of two on the longest path, :math:`D = 2 \lceil \tau / (1 - \alpha) \rceil` and
    :math:`\eta \le 1/8`, the last inequality of the proof of Lemma 5.3 is

    .. math:: \tfrac14 2^{-(d-1) H(4\eta)} \le \frac{e^{\epsilon D}}{\text{leaves}}
              + \delta\,\frac{e^{\epsilon D} - 1}{e^\epsilon - 1}.

    Depth counts nodes there: a complete tree has :math:`2^{d-1}` leaves, where the proof says
    :math:`2^d`. Any :math:`\eta < 1/2` becomes :math:`e^{-2s(1/2-\eta)^2}` by the median of s releases,
    with :math:`s \epsilon` and :math:`s \delta`; the best s replaces the best :math:`\kappa`. The
    binary tree is the one with the most leaves that keeps two children of a node.
    """
    loss, alpha = PrivacyLoss(epsilon=epsilon, delta=delta), checked_alpha(alpha)
    eta = checked_eta(eta)
    _, leaves = _walk(tree, 0.0, 2, tree.depth)
    choices = sum(int(counts.max() > 1) for counts in tree.child_counts)
    enough = math.log(8) / (2 * (0.5 - eta) ** 2)  # the median is then wrong with a probability of 1/8
    copies = np.unique(np.rint(np.geomspace(1, 100 * enough + 1, 2000)))
    wrong = np.where(copies == 1, eta, np.exp(-2 * copies * (0.5 - eta) ** 2))
    copies, wrong = copies[wrong <= 1 / 8], wrong[wrong <= 1 / 8]
    step_losses = np.array([2 + choices * step_loss(2, 4 * each) for each in wrong])
    assert loss.epsilon is not None
    epsilons = copies * loss.epsilon
    risk = copies * loss.delta * np.exp(-epsilons) / -np.expm1(-epsilons)
    distance = np.log((2.0**-step_losses + risk) / (1 / leaves + risk)) / epsilons
    rows = float(np.max(distance, initial=0.0)) / 2 * (1 - _SAFETY)
    return (1 - alpha) * max(math.ceil(rows) - 1, 0)


def _least_rows(tree: Tree, loss: PrivacyLoss, eta: float) -> float:
    """Compute the least number of rows with which the walk can succeed as often as it does."""
    assert loss.epsilon is not None
    epsilon = loss.epsilon
    risk = loss.delta * math.exp(-epsilon) / -math.expm1(-epsilon)
    most = max((int(counts.max()) for counts in tree.child_counts), default=1)
    shapes = [(most, tree.depth)]
    if tree.n_leaves * risk > 0.01:  # otherwise no smaller tree can gain more than 0.01 nats
        widths = [*(2**k for k in range(1, (most - 1).bit_length())), most]
        shapes = [(widest, depth) for widest in widths for depth in range(1, tree.depth + 1)]
    nats = 0.0
    for widest, depth in shapes:
        found, leaves = _walk(tree, eta, widest, depth)
        nats = max(nats, math.log((found + leaves * risk) / (1 + leaves * risk)))
    return nats / epsilon


def _best_of_rows(tree: Tree, loss: PrivacyLoss) -> float:
    """Maximise m times the square root of eta, over integers m that packing forbids at that eta."""
    from scipy.optimize import brentq, minimize_scalar  # costs a third of a second to import

    def rows_at(eta: float) -> float:
        return _least_rows(tree, loss, eta)

    # For real m the product rises and then falls; the best integers are next to its maximum.
    found = minimize_scalar(
        lambda root: -root * rows_at(root**2), bounds=(0, math.sqrt(0.5)), method="bounded"
    )
    rows = math.floor(rows_at(found.x**2))
    best = 0.0
    for whole in (rows, rows + 1):
        if 0 < whole < rows_at(0.0):
            best = max(
                best, whole * math.sqrt(brentq(lambda eta, m=whole: rows_at(eta) - m, 0.0, 0.5, xtol=1e-18))
            )
    return best


def _walk(tree: Tree, eta: float, widest: int, depth: int) -> tuple[float, float]:
    """Sum the probabilities of finding each leaf, and count the leaves, among the best children.

    A node may keep up to `widest` children, and the walk ends at the level `depth`.
    """
    found, leaves = np.ones(1), np.ones(1)
    for level in reversed(range(depth)):
        counts = tree.child_counts[level]
        if len(counts) == len(found) == 1:
            kept = min(int(counts[0]), widest)
            found, leaves = found * kept * 2 ** -step_loss(kept, eta), leaves * kept
            continue
        counts = np.broadcast_to(counts, tree.level_sizes[level])
        first, parent = np.cumsum(counts) - counts, np.repeat(np.arange(len(counts)), counts)
        found, leaves = (np.broadcast_to(each, len(parent)) for each in (found, leaves))
        order = np.lexsort((-found, parent))
        rank = np.arange(len(parent)) - first[parent]
        sums = _sum_within(found[order], first, parent) * 2 ** -step_loss(rank + 1, eta)
        sums[rank >= widest] = 0.0
        below = _sum_within(leaves[order], first, parent)
        found = np.maximum.reduceat(sums, first)
        leaves = np.minimum.reduceat(np.where(sums == found[parent], below, np.inf), first)
    return float(found[0]), float(leaves[0])


def _sum_within(
    values: FloatArray, first: npt.NDArray[np.int64], parent: npt.NDArray[np.int64]
) -> FloatArray:
    """Sum each family's values cumulatively."""
    sums = np.cumsum(values)
    return np.asarray(sums - (sums - values)[first][parent])

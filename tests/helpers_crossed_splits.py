"""Small crossed hierarchies, their errors by dense linear algebra, and the best splits by generic methods."""

from functools import reduce

import numpy as np

from pandas_dptree.hierarchy.product_tree import ProductTree
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Gaussian
from pandas_dptree.planning.capacities import crossed_sensitivity_on
from pandas_dptree.planning.crossed_budget import Budget
from pandas_dptree.planning.objective import cost_weights
from pandas_dptree.planning.patterns import pattern_costs
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.quantity import COUNT
from pandas_dptree.privacy.sensitivity import Sensitivity, TreeSensitivity
from tests.helpers_planning import random_tree
from tests.reference import membership

SMALL = PrivacyLoss(rho=1e-4)
RAGGED = Tree((np.array([2]), np.array([1, 2])), np.array([1, 2, 2]))
"""A tree of three leaves, one of which is a short path."""
WIDER = Tree((np.array([2]), np.array([1, 3])))
DEEPER = Tree((np.array([2]), np.array([1, 2]), np.array([1, 3, 1])))


def uniform_product(*branchings, shown=None):
    return ProductTree(tuple(Tree.from_branching(list(each)) for each in branchings), shown)


def ragged_product(rng, *depths, widest=3):
    return ProductTree(tuple(random_tree(rng, depth, widest) for depth in depths))


def moves_of(product, neighbors="add_remove", rows=1):
    return crossed_sensitivity_on(product, COUNT, neighbors=neighbors, max_contributions=rows)


def budget_of(product, noise=None, loss=SMALL, **moves):
    return Budget(noise or Gaussian(), loss, moves_of(product, **moves))


def costs_of(product, objective, weights=None):
    listed = [product.n_listed(level) for level in range(len(product.margins))]
    return cost_weights(listed, objective, weights)


def margin_matrices(product):
    """The sums of leaf cells that the cells of each margin are."""
    of_axes = [membership(axis) for axis in product.axes]
    return [
        reduce(np.kron, [own[level] for own, level in zip(of_axes, margin, strict=True)])
        for margin in product.margins
    ]


def dense_variances(product, noise_variances):
    """The mean variance of the listed cells of each margin, 0 where there are none, inf if not estimable."""
    matrices = margin_matrices(product)
    measured = np.isfinite(noise_variances)
    scale = noise_variances[measured].min()
    normal = sum(
        scale / v * matrix.T @ matrix
        for v, matrix in zip(noise_variances, matrices, strict=True)
        if v < np.inf
    )
    values, vectors = np.linalg.eigh(normal)
    kept = values > 1e-10 * values.max()
    covariance = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    lost = vectors[:, ~kept]
    means = []
    for level, matrix in enumerate(matrices):
        flags = product.listed(level)
        own = np.einsum("ij,jk,ik->i", matrix, covariance, matrix) * scale
        own[np.abs(matrix @ lost).max(axis=1, initial=0.0) > 1e-7] = np.inf
        means.append(own[flags].mean() if flags.any() else 0.0)
    return np.array(means)


def dense_optimum(product, weights, moves):
    """The least cost of any precisions of the margins with Gaussian noise and a rho of 1/2."""
    from scipy.optimize import minimize

    matrices = margin_matrices(product)
    costs = 2 * pattern_costs(Gaussian(), SMALL, moves)
    unit = np.array([each / max(product.n_listed(level), 1) for level, each in enumerate(weights)])
    workload = sum(
        (matrix * (each * product.listed(level))[:, None]).T @ matrix
        for level, (matrix, each) in enumerate(zip(matrices, unit, strict=True))
    )

    def cost(logs):
        precisions = np.exp(logs)
        normal = sum(p * matrix.T @ matrix for p, matrix in zip(precisions, matrices, strict=True))
        inverse = np.linalg.inv(normal)
        slope = inverse @ workload @ inverse
        return np.trace(workload @ inverse), -precisions * np.array(
            [np.einsum("ij,jk,ik->", matrix, slope, matrix) for matrix in matrices]
        )

    start = np.full(len(matrices), 1 / costs.sum(axis=1).max())
    found = minimize(
        cost,
        np.log(start),
        jac=True,
        bounds=[(np.log(1e-9), 10.0)] * len(start),
        constraints={
            "type": "ineq",
            "fun": lambda logs: 1 - costs @ np.exp(logs),
            "jac": lambda logs: -costs * np.exp(logs),
        },
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    return found.fun


def inverse(precisions):
    """The variances of these precisions, inf where one is 0."""
    return np.divide(1.0, precisions, out=np.full(len(precisions), np.inf), where=precisions > 0)


def capped_moves(product, rows, most):
    """Patterns of rows of which a leaf cell holds few: they spread over the leaves of one axis."""
    least = rows // most * most**2 + (rows % most) ** 2
    patterns = [
        tuple(
            Sensitivity(l1=rows, l2_squared=rows**2 if margin[place] < axis.depth else least)
            for margin in product.margins
        )
        for place, axis in enumerate(product.axes)
    ]
    return TreeSensitivity(tuple(patterns))

"""Differentially private hierarchical tables for pandas and xarray.

Importing this package registers the accessor ``.dp``.
"""

from pandas_dptree import accessors as _accessors  # noqa: F401  # registers .dp
from pandas_dptree import datasets
from pandas_dptree._version import __version__
from pandas_dptree.api import plan, tree_counts, tree_means, tree_sums
from pandas_dptree.errors import ArgumentError, ColumnsError, DomainError, DPTreeError, MissingExtraError
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.plan import Plan
from pandas_dptree.planning.targets import relative

__all__ = [
    "ArgumentError",
    "ColumnsError",
    "DPTreeError",
    "Domain",
    "DomainError",
    "Gaussian",
    "Laplace",
    "MissingExtraError",
    "Plan",
    "Tree",
    "__version__",
    "datasets",
    "plan",
    "relative",
    "tree_counts",
    "tree_means",
    "tree_sums",
]

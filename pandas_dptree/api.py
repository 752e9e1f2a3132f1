"""The public names of the package, which ``import pandas_dptree`` offers and imports on first use."""

from pandas_dptree import arrays, datasets, theory
from pandas_dptree._version import __version__
from pandas_dptree.errors import (
    ArgumentError,
    CallError,
    ColumnsError,
    DomainError,
    DPTreeError,
    DPTreeWarning,
    InsufficientBudgetError,
    LedgerError,
    LedgerIntegrityError,
    MissingExtraError,
    RepeatedReleaseError,
)
from pandas_dptree.hierarchy.areas import combine
from pandas_dptree.hierarchy.crossed_domain import cross
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.levels.calendar import calendar
from pandas_dptree.hierarchy.levels.combine import derived_domain
from pandas_dptree.hierarchy.levels.cut import cut
from pandas_dptree.hierarchy.levels.mapping import mapping
from pandas_dptree.hierarchy.levels.prefixes import binary, prefixes
from pandas_dptree.hierarchy.levels.quadtree import quadtree
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.ledger.accounts import Account
from pandas_dptree.ledger.book import Ledger
from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.mechanisms.multiplicative.guarantees import Multiplicative
from pandas_dptree.mechanisms.multiplicative.sparse_vector import SparseVector
from pandas_dptree.mechanisms.truncated import TruncatedLaplace
from pandas_dptree.output.distribution import Distribution
from pandas_dptree.output.files import read_file, to_file
from pandas_dptree.output.pages.page import Page, page
from pandas_dptree.planning.targets import relative, within
from pandas_dptree.plans.additive import AdditivePlan
from pandas_dptree.plans.base import Plan
from pandas_dptree.plans.crossed import CrossedPlan
from pandas_dptree.plans.detection import detection_probability
from pandas_dptree.plans.distribution import DistributionPlan
from pandas_dptree.plans.implicit import ImplicitPlan
from pandas_dptree.plans.implicit_multiplicative import ImplicitMultiplicativePlan
from pandas_dptree.plans.joint import JointPlan
from pandas_dptree.plans.losses import Losses
from pandas_dptree.plans.multiplicative import MultiplicativePlan
from pandas_dptree.plans.quantiles import QuantilePlan
from pandas_dptree.plans.risk import Risk
from pandas_dptree.plans.secret_check import SecretCheck
from pandas_dptree.plans.units import UnitPlan
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.unit import ROWS
from pandas_dptree.programmes.document import Programme
from pandas_dptree.programmes.problems import ProgrammeError
from pandas_dptree.verbs.aggregations import Aggregation, mean, sum
from pandas_dptree.verbs.distributions import cdf, histogram, quantiles, range_counts, release_distribution
from pandas_dptree.verbs.plans import (
    plan,
    plan_agg,
    plan_distribution,
    plan_means,
    plan_quantiles,
    plan_sums,
    plan_units,
)
from pandas_dptree.verbs.tables import tree_agg, tree_counts, tree_means, tree_sums, tree_units

__all__ = [
    "ROWS",
    "Account",
    "AdditivePlan",
    "Aggregation",
    "ArgumentError",
    "CallError",
    "ColumnsError",
    "CrossedPlan",
    "DPTreeError",
    "DPTreeWarning",
    "Distribution",
    "DistributionPlan",
    "Domain",
    "DomainError",
    "Gaussian",
    "ImplicitMultiplicativePlan",
    "ImplicitPlan",
    "InsufficientBudgetError",
    "JointPlan",
    "Laplace",
    "Ledger",
    "LedgerError",
    "LedgerIntegrityError",
    "Losses",
    "MissingExtraError",
    "Multiplicative",
    "MultiplicativePlan",
    "Page",
    "Plan",
    "PrivacyLoss",
    "Programme",
    "ProgrammeError",
    "QuantilePlan",
    "RepeatedReleaseError",
    "Risk",
    "SecretCheck",
    "SparseVector",
    "Tree",
    "TruncatedLaplace",
    "UnitPlan",
    "__version__",
    "arrays",
    "binary",
    "calendar",
    "cdf",
    "combine",
    "cross",
    "cut",
    "datasets",
    "derived_domain",
    "detection_probability",
    "histogram",
    "mapping",
    "mean",
    "page",
    "plan",
    "plan_agg",
    "plan_distribution",
    "plan_means",
    "plan_quantiles",
    "plan_sums",
    "plan_units",
    "prefixes",
    "quadtree",
    "quantiles",
    "range_counts",
    "read_file",
    "relative",
    "release_distribution",
    "sum",
    "theory",
    "to_file",
    "tree_agg",
    "tree_counts",
    "tree_means",
    "tree_sums",
    "tree_units",
    "within",
]

"""The base class of plans for the nodes of a listed tree."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.domain import Domain, Source, level_names, source_of
from pandas_dptree.hierarchy.shape import Shape
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.plans.base import Plan

__all__ = ["TreePlan"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TreePlan(Plan[pd.DataFrame]):
    """A plan for the nodes of a listed `tree`, with labels if it has a `domain`."""

    tree: Tree
    domain: Domain | None

    def __post_init__(self) -> None:
        """Check that the labels fit the tree, and the privacy unit."""
        tree = self.tree if self.domain is None else self.domain.tree
        if tree != self.tree:
            raise ArgumentError(
                "domain", "differs in shape from the plan's tree.", hint="pass tree=domain.tree."
            )
        super().__post_init__()

    @property
    def level_names(self) -> tuple[Hashable, ...]:
        """Names of the levels, from the root to the leaves."""
        return level_names(self.hierarchy)

    @property
    def _key_columns(self) -> tuple[Hashable, ...]:
        """The columns of the table that say which node a row is, other than the level."""
        return self.level_names[1:]

    @property
    def hierarchy(self) -> Domain | Tree:
        """The domain, or without labels the tree."""
        return self.domain or self.tree

    @property
    def domain_source(self) -> Source:
        """Where the public keys came from."""
        return source_of(self.domain)

    @property
    def _shape(self) -> Shape:
        """What is measured, as far as the accuracy and the table depend on it."""
        return self.tree

    @cached_property
    def _labelled(self) -> Domain:
        """The domain; without labels, one that numbers the nodes."""
        return self.domain or Domain.from_tree(self.tree)

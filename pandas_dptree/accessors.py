"""``.dp`` on pandas DataFrames: stateless, one line a method."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import pandas as pd

from pandas_dptree import api
from pandas_dptree.hierarchy.levels import PrefixTree
from pandas_dptree.multiplicative_plan import MultiplicativePlan
from pandas_dptree.output.frames import select_level
from pandas_dptree.plan import Plan

__all__ = ["DataFrameAccessor"]

Method = TypeVar("Method", bound=Callable[..., Any])


def _with_options_of(verb: Callable[..., Any]) -> Callable[[Method], Method]:
    """Show the keyword parameters of the function that a method calls, where help and completion look."""

    def declare(method: Method) -> Method:
        own = [p for p in inspect.signature(method).parameters.values() if p.kind is not p.VAR_KEYWORD]
        options = [p for p in inspect.signature(verb).parameters.values() if p.kind is p.KEYWORD_ONLY]
        method.__signature__ = inspect.Signature([*own, *options])  # type: ignore[attr-defined]
        return method

    return declare


@pd.api.extensions.register_dataframe_accessor("dp")
class DataFrameAccessor:
    """Differentially private verbs on the records of a frame, and views of a released table."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    @_with_options_of(api.tree_counts)
    def tree_counts(self, by: Sequence[Hashable] | PrefixTree, **options: Any) -> pd.DataFrame:
        """Count the records of every node of a hierarchy: see `pandas_dptree.tree_counts`."""
        return api.tree_counts(self._frame, by, **options)

    @_with_options_of(api.tree_sums)
    def tree_sums(
        self, columns: Hashable | list[Hashable], by: Sequence[Hashable], **options: Any
    ) -> pd.DataFrame:
        """Add up columns over the records of every node: see `pandas_dptree.tree_sums`."""
        return api.tree_sums(self._frame, columns, by, **options)

    @_with_options_of(api.tree_means)
    def tree_means(
        self, columns: Hashable | list[Hashable], by: Sequence[Hashable], **options: Any
    ) -> pd.DataFrame:
        """Average columns over the records of every node: see `pandas_dptree.tree_means`."""
        return api.tree_means(self._frame, columns, by, **options)

    @_with_options_of(api.plan)
    def plan(
        self, by: Sequence[Hashable], *, domain: Any = None, **options: Any
    ) -> Plan | MultiplicativePlan:
        """Describe a release of these records before it happens: see `pandas_dptree.plan`.

        Spends nothing. The records are looked at only if `domain` is ``"observed"``.
        """
        planned: Plan | MultiplicativePlan = api.plan(api.domain_of(self._frame, by, domain), **options)
        return planned

    def level(self, name: Hashable) -> pd.DataFrame:
        """Select one level of a released table, indexed as ``groupby`` would index it.

        Parameters
        ----------
        name : hashable
            ``"total"`` or the name of a key.

        Returns
        -------
        pandas.DataFrame
            The values and their errors, indexed by the keys from the coarsest down to `name`.

        Raises
        ------
        ArgumentError
            If the frame is no released table, or has no such level.
        """
        return select_level(self._frame, name)

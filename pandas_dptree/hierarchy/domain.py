"""Names and labels on a tree: the public list of everything a table may show.

The domain is public. It comes from the caller, is sorted as ``DataFrame.groupby`` would sort it, and is
the same whatever the records say; records are looked up in it, never the other way round.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pandas_dptree.errors import ArgumentError, ColumnsError, DomainError
from pandas_dptree.hierarchy.tree import IntArray, Tree

__all__ = ["MAX_LEAVES", "RESERVED_NAMES", "ROOT", "Domain", "check_by", "level_names"]

ROOT = "total"
"""Name of the level above the first key."""

RESERVED_NAMES = ("level", "count", "std_error", ROOT)
"""Names that a release uses itself, so that no key may bear them."""

MAX_LEAVES = 10**8
"""Largest product of categories that ``Domain.from_categories`` will write down."""


def check_by(by: Sequence[Hashable]) -> tuple[Hashable, ...]:
    """Check the names of the keys, from the coarsest to the finest.

    Raises
    ------
    ArgumentError
        If `by` is a string or empty.
    ColumnsError
        If a name is repeated or is one that a release uses itself.
    """
    if isinstance(by, (str, bytes)) or not isinstance(by, Sequence):
        raise ArgumentError(
            "by",
            f"must be a list of column names, from coarse to fine, not {by!r}.",
            hint=f"for a single level write by=[{by!r}].",
        )
    names = tuple(by)
    if not names:
        raise ArgumentError("by", "names no column.", hint='for example by=["state", "county", "city"].')
    repeated = [name for i, name in enumerate(names) if name in names[:i]]
    if repeated:
        raise ColumnsError("by", "names columns twice", columns=repeated, hint="name each column once.")
    reserved = [name for name in names if name in RESERVED_NAMES]
    if reserved:
        raise ColumnsError(
            "by",
            "names columns as the released table names its own",
            columns=reserved,
            hint="rename the columns in the records and in the domain.",
        )
    return names


def level_names(hierarchy: Domain | Tree) -> tuple[Hashable, ...]:
    """Names of the levels, from the root to the leaves; those of a bare tree are ``level_1``, …."""
    if isinstance(hierarchy, Tree):
        return (ROOT, *(f"level_{level}" for level in range(1, hierarchy.depth + 1)))
    return (ROOT, *hierarchy.by)


@dataclass(frozen=True, eq=False, repr=False)
class Domain:
    """The public leaves of a hierarchy: a `Tree`, and the labels of its nodes.

    Make one with `from_frame`, `from_categories` or `observed`.

    Attributes
    ----------
    by : tuple of hashable
        Names of the keys, from the coarsest to the finest.
    tree : Tree
        The shape.
    labels : tuple of pandas.Index
        For each key, its distinct labels in sorted order.
    codes : tuple of numpy.ndarray of int64
        For each key, the code of every node of its level, shape ``(tree.level_sizes[l],)``: the
        position of its label, or -1 for a node that only continues a short path.

    Examples
    --------
    >>> places = pd.DataFrame({"state": ["WA", "CA", "CA"], "city": ["Seattle", "Oakland", "Fresno"]})
    >>> domain = Domain.from_frame(places, by=["state", "city"])
    >>> domain
    Domain(by=('state', 'city'), level_sizes=(1, 2, 3))
    >>> domain.keys(2).values.tolist()
    [['CA', 'Fresno'], ['CA', 'Oakland'], ['WA', 'Seattle']]
    """

    by: tuple[Hashable, ...]
    tree: Tree
    labels: tuple[pd.Index, ...]
    codes: tuple[IntArray, ...]

    @classmethod
    def from_frame(cls, places: pd.DataFrame | pd.MultiIndex | pd.Index, *, by: Sequence[Hashable]) -> Domain:
        """Read the domain from a public table with one row per leaf.

        Parameters
        ----------
        places : pandas.DataFrame, pandas.MultiIndex or pandas.Index
            Holds the columns (or index levels) `by`; others are ignored. A path that ends early has
            missing keys from some level on. Frames of other libraries are converted by their own
            ``to_pandas`` method.
        by : sequence of hashable
            Names of the keys, from the coarsest to the finest.

        Returns
        -------
        Domain

        Raises
        ------
        ColumnsError
            If a column is missing from `places` or stands in it twice.
        DomainError
            If there is no leaf, a leaf is listed twice or is also an inner node, a path has a gap,
            or a label is not hashable.
        """
        names = check_by(by)
        return cls._from_columns(names, _columns(places, names))

    @classmethod
    def observed(cls, keys: pd.DataFrame, *, by: Sequence[Hashable]) -> Domain:
        """Take the keys that stand in the records, which the caller states to be public knowledge.

        Rows with a gap, and rows whose path another one continues, add nothing.

        Parameters
        ----------
        keys : pandas.DataFrame
            Holds the columns `by`.
        by : sequence of hashable
            Names of the keys, from the coarsest to the finest.

        Returns
        -------
        Domain

        Raises
        ------
        DomainError
            If no row has a key.
        """
        names = check_by(by)
        columns = _columns(keys, names)
        encoded = [_encode(column, name) for name, column in zip(names, columns, strict=True)]
        codes = np.unique(np.column_stack([code for code, _ in encoded]), axis=0)
        missing = codes < 0
        codes = codes[~missing[:, 0] & ~(missing[:, :-1] & ~missing[:, 1:]).any(axis=1)]
        # Sorted, a shorter path stands right before the first one that continues it.
        continued = ((codes[:-1] == codes[1:]) | (codes[:-1] < 0)).all(axis=1)
        codes = np.delete(codes, np.flatnonzero(continued), axis=0)
        return cls._from_codes(names, codes, [label for _, label in encoded])

    @classmethod
    def from_categories(cls, keys: pd.DataFrame, *, by: Sequence[Hashable]) -> Domain:
        """Take every combination of the categories of categorical columns.

        The caller states that the categories are public; a column that was made categorical from the
        records has the records' values as its categories.

        Parameters
        ----------
        keys : pandas.DataFrame
            Holds the columns `by`, all categorical.
        by : sequence of hashable
            Names of the keys, from the coarsest to the finest.

        Returns
        -------
        Domain

        Raises
        ------
        ColumnsError
            If a column is missing or not categorical.
        DomainError
            If there are no categories, or more than 10**8 combinations.
        """
        names = check_by(by)
        columns = _columns(keys, names)
        plain = [
            name
            for name, column in zip(names, columns, strict=True)
            if not isinstance(column.dtype, pd.CategoricalDtype)
        ]
        if plain:
            raise ColumnsError(
                "domain",
                'is "categories", but these keys are not categorical',
                columns=plain,
                hint="convert them with a public list of categories, or pass the public keys as a frame.",
            )
        labels = [pd.CategoricalIndex(column.cat.categories, dtype=column.dtype) for column in columns]
        sizes = [len(label) for label in labels]
        if not all(sizes):
            raise DomainError("has no leaves.", hint="give every categorical key at least one category.")
        if math.prod(sizes) > MAX_LEAVES:
            raise DomainError(
                f"would have {math.prod(sizes):,} leaves, the product of {sizes} categories.",
                hint=f"list the leaves that exist in a frame; at most {MAX_LEAVES:,} can be made this way.",
            )
        tree = Tree.from_branching(sizes)
        codes = [np.tile(np.arange(size), tree.level_sizes[level]) for level, size in enumerate(sizes)]
        return cls(names, tree, tuple(labels), tuple(codes))

    @classmethod
    def from_tree(cls, tree: Tree) -> Domain:
        """Number the nodes of a bare tree: each is labelled by its place among its siblings, from 0.

        Parameters
        ----------
        tree : Tree

        Returns
        -------
        Domain
            Its keys are called ``level_1``, ``level_2``, ….
        """
        codes = []
        for level, counts in enumerate(tree.child_counts):
            counts = np.broadcast_to(counts, tree.level_sizes[level])
            place = np.arange(tree.level_sizes[level + 1]) - np.repeat(np.cumsum(counts) - counts, counts)
            codes.append(np.where(tree.listed(level + 1), place, -1))
        labels = tuple(pd.RangeIndex(int(counts.max())) for counts in tree.child_counts)
        return cls(level_names(tree)[1:], tree, labels, tuple(codes))

    @classmethod
    def _from_columns(cls, by: tuple[Hashable, ...], columns: list[pd.Series]) -> Domain:
        encoded = [_encode(column, name) for name, column in zip(by, columns, strict=True)]
        codes = np.column_stack([code for code, _ in encoded])
        return cls._from_codes(by, codes[np.lexsort(codes.T[::-1])], [label for _, label in encoded])

    @classmethod
    def _from_codes(cls, by: tuple[Hashable, ...], codes: IntArray, labels: list[pd.Index]) -> Domain:
        """Make the domain from sorted rows of codes, -1 where a path has ended."""
        tree = Tree.from_paths(codes)
        levels = []
        for level in range(1, tree.depth + 1):
            leaves = np.broadcast_to(tree.leaves_below(level), tree.level_sizes[level])
            levels.append(codes[np.cumsum(leaves) - leaves, level - 1])
        return cls(by, tree, tuple(labels), tuple(levels))

    def keys(self, level: int) -> pd.DataFrame:
        """List the keys of the nodes that a table shows on one level.

        Parameters
        ----------
        level : int
            From 1 for the coarsest key to ``len(by)`` for the leaves.

        Returns
        -------
        pandas.DataFrame
            One column per key down to that level, in the order of the tree.
        """
        return pd.DataFrame(
            {
                name: label.take(code[self.tree.listed(level)])
                for name, label, code in zip(self.by, self.labels, self.path_codes(level), strict=False)
            }
        )

    def path_codes(self, level: int) -> list[IntArray]:
        """For each key down to a level, its code at every node of that level (chain nodes included)."""
        paths: list[IntArray] = []
        for above in range(level):
            size = self.tree.level_sizes[above + 1]
            paths = [np.broadcast_to(self.tree.spread(above, code), size) for code in paths]
            paths.append(self.codes[above])
        return paths

    def find_leaves(self, codes: Sequence[IntArray]) -> IntArray:
        """Find the leaf to which each path of codes belongs.

        A path whose codes are -1 from some level on belongs to the leaf of that shorter path, if the
        domain lists it.

        Parameters
        ----------
        codes : sequence of numpy.ndarray of int64, each of shape (n,)
            For each key, the positions of the rows' labels in `labels`, -1 where the key is missing,
            and -2 where the label is unknown.

        Returns
        -------
        numpy.ndarray of int64, shape (n,)
            Position of the leaf, or -1 for a path that the domain does not list.
        """
        nodes = np.zeros(len(codes[0]), dtype=np.int64)
        for level, (label, own, code) in enumerate(zip(self.labels, self.codes, codes, strict=True)):
            # (parent, code) as one number; it rises along the level, since siblings are sorted.
            width = len(label) + 1
            size = self.tree.level_sizes[level + 1]
            parents = self.tree.spread(level, np.arange(self.tree.level_sizes[level]))
            known = np.broadcast_to(parents, size) * width + own + 1
            wanted = nodes * width + code + 1
            place = np.minimum(np.searchsorted(known, wanted), size - 1)
            nodes = np.where((nodes >= 0) & (code >= -1) & (known[place] == wanted), place, -1)
        return nodes

    def __repr__(self) -> str:
        """Describe the domain in a line."""
        return f"Domain(by={self.by}, level_sizes={self.tree.level_sizes})"


def _columns(places: Any, by: tuple[Hashable, ...]) -> list[pd.Series]:
    """Pick the key columns out of whatever the caller lists the keys in."""
    if isinstance(places, pd.Index):
        places = places.to_frame(index=False)
    elif not isinstance(places, pd.DataFrame):
        if not hasattr(places, "to_pandas"):
            raise DomainError(
                f"cannot be a {type(places).__name__}.",
                hint='pass a frame or a MultiIndex of the public keys, "observed" or "categories".',
            )
        places = places.to_pandas()
    absent = [name for name in by if name not in places.columns]
    if absent:
        raise ColumnsError(
            "domain", "lacks the columns", columns=absent, hint="it needs every column named in `by`."
        )
    twice = [name for name in by if (places.columns == name).sum() > 1]
    if twice:
        raise ColumnsError(
            "domain", "has several columns named", columns=twice, hint="give each column a name of its own."
        )
    return [places[name] for name in by]


def _encode(column: pd.Series, name: Hashable) -> tuple[IntArray, pd.Index]:
    """Codes of a column's values and its distinct labels, in the order of ``groupby``."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        categories = pd.CategoricalIndex(column.cat.categories, dtype=column.dtype)
        return column.cat.codes.to_numpy().astype(np.int64), categories
    try:
        codes, labels = pd.factorize(column)
    except TypeError:
        raise DomainError(
            f"has labels in column {name!r} that are not hashable.",
            hint="turn them into strings, numbers, dates or tuples.",
        ) from None
    try:
        with warnings.catch_warnings(action="error"):
            codes, labels = pd.factorize(column, sort=True)
    except (TypeError, ValueError, Warning):
        pass  # labels that have no common order stay in the order of their appearance
    return codes.astype(np.int64), pd.Index(labels)

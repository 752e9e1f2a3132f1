"""Names and labels on a tree: the public list of all keys that a table may show.

It comes from the caller, sorted as by ``DataFrame.groupby``; records are looked up in it, never the other way
round.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import repeat
from typing import Any, Final, Literal, Protocol, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import (
    ArgumentError,
    ColumnsError,
    DomainError,
    is_name,
    kind_of_object,
    listed,
    quote,
)
from pandas_dptree.hierarchy.children import Children
from pandas_dptree.hierarchy.columns import pick_categories, pick_columns
from pandas_dptree.hierarchy.forms import blocks
from pandas_dptree.hierarchy.hash_tables import once
from pandas_dptree.hierarchy.levels.base import DerivedLevels
from pandas_dptree.hierarchy.lookup import Lookup
from pandas_dptree.hierarchy.names import ROOT, check_by
from pandas_dptree.hierarchy.paths import Paths
from pandas_dptree.hierarchy.public_labels import check_keys, drop_unused, labels_of_keys, read_flags
from pandas_dptree.hierarchy.sorted_keys import sorted_keys
from pandas_dptree.hierarchy.tree import IntArray, Tree
from pandas_dptree.hierarchy.values import UNKNOWN, canonical_codes, normal_form
from pandas_dptree.signatures import public

__all__ = [
    "MAX_LEAVES", "SOURCES", "Domain", "Labelled", "Source", "fingerprint", "level_names", "source_in_words",
    "source_of",
]  # fmt: skip

BoolArray = npt.NDArray[np.bool_]

Source = Literal["given", "released", "categories", "observed"]
"""Where keys came from: the caller's list, a released table, the categories of the columns, or the data."""

SOURCES: Final[tuple[Source, ...]] = get_args(Source)
"""From certainly public to public only by declaration."""

MAX_LEAVES = 10**8
"""Largest number of leaves that are listed as combinations of keys."""


class Labelled(Protocol):
    """A hierarchy with labels: a `Domain`, or several that are crossed."""

    @property
    def level_names(self) -> tuple[Hashable, ...]:
        """Names of the levels, the first of which has one node."""

    @property
    def source(self) -> Source:
        """Where the keys came from."""

    @property
    def fingerprint(self) -> str:
        """The digest of the labels and the shape."""


def level_names(hierarchy: Labelled | Tree) -> tuple[Hashable, ...]:
    """Names of the levels, from the root to the leaves; ``level_1``, … for a bare tree."""
    if isinstance(hierarchy, Tree):
        return (ROOT, *(f"level_{level}" for level in range(1, hierarchy.depth + 1)))
    return hierarchy.level_names


def source_of(hierarchy: Labelled | Tree | None) -> Source:
    """Return where the keys of a hierarchy came from; "given" for a bare tree or no hierarchy."""
    return "given" if hierarchy is None or isinstance(hierarchy, Tree) else hierarchy.source


def source_in_words(hierarchy: Labelled | Tree | None) -> str:
    """Describe where the keys came from, as the end of a headline; empty if they were given."""
    return {
        "given": "",
        "released": "; the keys are those of a released table",
        "categories": "; the categories of the keys are declared public",
        "observed": "; the keys that occur in the data are declared public",
    }[source_of(hierarchy)]


def fingerprint(hierarchy: Labelled | Tree) -> str:
    """Return a SHA-256 digest of the names, labels and shape of a hierarchy, the same on every machine.

    It has 64 hexadecimal digits. The source of the keys does not enter: the same list is the same hierarchy.
    """
    return _fingerprint(hierarchy) if isinstance(hierarchy, Tree) else hierarchy.fingerprint


def _fingerprint(hierarchy: Domain | Tree) -> str:
    digest = hashlib.sha256()  # ASCII only: which other characters Python escapes depends on its version
    tree = hierarchy if isinstance(hierarchy, Tree) else hierarchy.tree
    for array in (*tree.child_counts, tree.leaf_levels):
        digest.update(repr(array.shape).encode() + array.astype("<i8").tobytes())
    if isinstance(hierarchy, Domain):
        names = tuple(name.item() if isinstance(name, np.generic) else name for name in hierarchy.by)
        digest.update(ascii(names).encode())  # NumPy 1 and 2 show its scalars differently
        for forms, codes in zip(hierarchy.forms, hierarchy.codes, strict=True):
            digest.update(b"[")  # the list of all forms, some at a time
            for place, block in enumerate(blocks(forms)):
                digest.update(b", " * bool(place) + ascii(list(_all_normalized(block)))[1:-1].encode())
            digest.update(b"]")
            digest.update(codes.astype("<i8", copy=False).data)
        if len(hierarchy.structural_zeros):
            digest.update(b"structural zeros" + hierarchy.structural_zeros.astype("<i8").tobytes())
        for levels in hierarchy.derived:
            digest.update(b"derived" + ascii(levels.definition).encode())
    return digest.hexdigest()


def _all_normalized(forms: Sequence[Hashable]) -> Iterable[Hashable]:
    """Normalize many forms, of which text is its own normal form."""
    types = set(map(type, forms))
    if types == {int}:
        return zip(forms, repeat(1), strict=False)
    return forms if types == {str} else map(normal_form, forms)


@dataclass(frozen=True, eq=False, repr=False)
class Domain:
    """The public leaves of a hierarchy: a `Tree`, and the labels of its nodes.

    Make one with `from_frame`, `from_categories` or `observed`; with `derived_domain`, if keys are derived
    from columns of the records; or with ``counts.dp.domain()``, from the keys of a released table.

    Attributes
    ----------
    by : tuple of hashable
        Names of the keys, from the coarsest to the finest.
    tree : Tree
        The shape.
    labels : sequence of pandas.Index
        For each key, its distinct labels in sorted order.
    forms : sequence of sequence of hashable
        Their canonical forms, by which keys are compared; in an array if they are numbers or text.
    codes : tuple of numpy.ndarray of int64
        For each key, the code of every node of its level, shape ``(tree.level_sizes[l],)``: the
        position of its label, or -1 for a node that only continues a short path.
    structural_zeros : numpy.ndarray of int64
        Positions, increasing, of the leaves that are empty by definition.
    derived : tuple
        The derived levels, whose keys are no columns of the records, such as the month of a date.
    source : {"given", "released", "categories", "observed"}
        Where the keys of columns came from: a list of the caller, a released table, the categories of the
        columns, or the data themselves. Derived levels follow from their own definition, and count as given.
        Releases record it in ``attrs["dp"]["domain_source"]``.

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
    labels: Sequence[pd.Index]
    forms: Sequence[Sequence[Hashable]]
    codes: tuple[IntArray, ...]
    structural_zeros: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    derived: tuple[DerivedLevels[Domain], ...] = ()
    source: Source = "given"

    @property
    def level_names(self) -> tuple[Hashable, ...]:
        """Names of the levels, from the root to the leaves."""
        return (ROOT, *self.by)

    @cached_property
    def fingerprint(self) -> str:
        """The function `fingerprint` of it, made once: every plan and release states it."""
        return _fingerprint(self)

    @classmethod
    @public
    def from_frame(
        cls,
        places: pd.DataFrame | pd.MultiIndex | pd.Index,
        *,
        by: Sequence[Hashable],
        structural_zeros: Hashable | None = None,
    ) -> Domain:
        """Read the domain from a public table with one row per leaf.

        Parameters
        ----------
        places : dataframe of any supported engine, pandas.MultiIndex or pandas.Index
            Has the columns (or index levels) `by`; others are ignored. A path that ends early has missing
            keys from some level on. For a single key also any list, range, array or Series.
        by : sequence of hashable
            Names of the keys, from the coarsest to the finest.
        structural_zeros : hashable, optional
            Name of a column of booleans: true for the leaves that are empty by definition, such as male
            patients of a maternity ward. Their counts are known to be 0, and records with their keys are
            dropped like those outside the domain.

        Raises
        ------
        ArgumentError
            If `structural_zeros` cannot name a column.
        ColumnsError
            If a column is missing, repeated, or has labels that cannot be keys, such as decimals or bytes; or
            if the column `structural_zeros` holds values other than true and false.
        DomainError
            If there is no leaf, a leaf is listed twice or is also an inner node, or a path has a gap.

        Notes
        -----
        **Privacy**: the list of leaves and the structural zeros are public. Whether a record is dropped
        depends on that record alone, so the sensitivity is the same as without structural zeros.

        Examples
        --------
        >>> wards = pd.DataFrame({"ward": ["eye", "labour", "labour"], "sex": ["m", "f", "m"]})
        >>> wards["cannot_be"] = [False, False, True]
        >>> domain = Domain.from_frame(wards, by=["ward", "sex"], structural_zeros="cannot_be")
        >>> domain.keys(2).iloc[domain.structural_zeros].values.tolist()
        [['labour', 'm']]
        """
        names = check_by(by)
        if structural_zeros is None:
            return cls._from_columns(names, [drop_unused(column) for column in pick_columns(places, names)])
        if not is_name(structural_zeros):
            raise ArgumentError(
                "structural_zeros",
                f"must name a column, not be {kind_of_object(structural_zeros)}.",
                hint='put the flags into a column of the domain, and pass structural_zeros="its name".',
            )
        *keys, flags = pick_columns(places, (*names, structural_zeros))
        return cls._from_columns(names, list(map(drop_unused, keys)), read_flags(structural_zeros, flags))

    @classmethod
    @public
    def observed(cls, keys: pd.DataFrame, *, by: Sequence[Hashable]) -> Domain:
        """Take the keys that occur in the records, which the caller declares to be public.

        Rows with a gap, and rows whose path another one continues, are ignored.

        Parameters
        ----------
        keys : pandas.DataFrame
            Has the columns `by`.
        by : sequence of hashable
            Names of the keys, from the coarsest to the finest.

        Raises
        ------
        DomainError
            If no row has a key.
        """
        names = check_by(by)
        columns = [drop_unused(column) for column in pick_columns(keys, names)]
        encoded = [canonical_codes(column) for column in columns]
        codes = np.column_stack([code for code, _ in encoded])
        invalid = [
            code == forms.index(UNKNOWN) if UNKNOWN in forms else np.zeros(len(code), dtype=bool)
            for code, forms in encoded
        ]
        missing = codes < 0
        gap = missing[:, 0] | (missing[:, :-1] & ~missing[:, 1:]).any(axis=1)
        rows = np.flatnonzero(~gap & ~np.any(invalid, axis=0))
        paths, first = np.unique(codes[rows], axis=0, return_index=True)
        # After sorting, a shorter path immediately precedes the first one that continues it.
        continued = ((paths[:-1] == paths[1:]) | (paths[:-1] < 0)).all(axis=1)
        leaves = np.delete(rows[first], np.flatnonzero(continued))
        found = cls._from_columns(names, [drop_unused(column.iloc[leaves]) for column in columns])
        return replace(found, source="observed")

    @classmethod
    @public
    def from_categories(cls, keys: pd.DataFrame, *, by: Sequence[Hashable]) -> Domain:
        """Take every combination of the categories of categorical columns.

        The caller declares the categories to be public. A column that was made categorical from the records
        has the values of the records as its categories.

        Parameters
        ----------
        keys : dataframe
            Has the columns `by`, all categorical, or of the type Enum of the library.
        by : sequence of hashable
            Names of the keys, from the coarsest to the finest.

        Raises
        ------
        ColumnsError
            If a column is missing or not categorical, or if its categories are not distinct keys.
        DomainError
            If there are no categories, or more than 10**8 combinations.
        """
        names = check_by(by)
        columns = pick_categories(keys, names)
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
                hint="convert them with a public list of categories, to pandas.Categorical or polars.Enum; "
                "or pass the public keys as a frame.",
            )
        labels = [pd.CategoricalIndex(column.cat.categories, dtype=column.dtype) for column in columns]
        distinct = [pd.Series(label.categories) for label in labels]
        forms = [canonical_codes(column)[1] for column in distinct]
        check_keys("domain", names, distinct, forms)
        sizes = [len(label) for label in labels]
        ambiguous = [name for name, size, form in zip(names, sizes, forms, strict=True) if len(form) < size]
        if ambiguous:
            raise ColumnsError(
                "domain", "has categories that are the same key in the columns", columns=ambiguous,
                hint="list each key once.",
            )  # fmt: skip
        if not all(sizes):
            raise DomainError("has no leaves.", hint="give every categorical key at least one category.")
        if math.prod(sizes) > MAX_LEAVES:
            raise DomainError(
                f"would have {math.prod(sizes):,} leaves, the product of {listed(sizes)} categories.",
                hint=f"pass a frame of the leaves that exist; at most {MAX_LEAVES:,} can be made this way.",
            )
        tree = Tree.from_branching(sizes)
        codes = [np.tile(np.arange(size), tree.level_sizes[level]) for level, size in enumerate(sizes)]
        public = cls(names, tree, tuple(labels), tuple(map(tuple, forms)), tuple(codes))
        return replace(public, source="categories")

    @classmethod
    def from_tree(cls, tree: Tree) -> Domain:
        """Label each node of a bare tree by its position among its siblings, from 0.

        The keys are named ``level_1``, ``level_2``, ….
        """
        codes = []
        for level, counts in enumerate(tree.child_counts):
            counts = np.broadcast_to(counts, tree.level_sizes[level])
            place = np.arange(tree.level_sizes[level + 1]) - np.repeat(np.cumsum(counts) - counts, counts)
            codes.append(np.where(tree.listed(level + 1), place, -1))
        labels = tuple(pd.RangeIndex(int(counts.max())) for counts in tree.child_counts)
        return cls(level_names(tree)[1:], tree, labels, tuple(map(tuple, labels)), tuple(codes))

    @classmethod
    def _from_columns(
        cls, by: tuple[Hashable, ...], columns: list[pd.Series], structural_zeros: BoolArray | None = None
    ) -> Domain:
        """Make the domain from key columns, one row per leaf."""
        labels, forms, paths = [], [], Paths()
        for column in columns:
            codes, known = sorted_keys(column)
            paths.append(codes, len(known))
            labels.append(labels_of_keys(column, codes, known))
            forms.append(known)
        check_keys("domain", by, columns, forms)
        return cls._from_paths(by, labels, forms, paths, structural_zeros)

    @classmethod
    def from_codes(
        cls,
        by: tuple[Hashable, ...],
        labels: Sequence[pd.Index],
        forms: Sequence[Sequence[Hashable]],
        leaves: Sequence[IntArray],
        structural_zeros: BoolArray | None = None,
        derived: tuple[DerivedLevels[Domain], ...] = (),
    ) -> Domain:
        """Make the domain from the codes of its leaves, in any order; a DomainError if they form no tree.

        For each key, `leaves` has the position of each leaf's label, -1 after the end of a path.
        """
        paths = Paths()
        for codes, label in zip(leaves, labels, strict=True):
            paths.append(codes, len(label))
        return cls._from_paths(by, labels, forms, paths, structural_zeros, derived)

    @classmethod
    def _from_paths(
        cls,
        by: tuple[Hashable, ...],
        labels: Sequence[pd.Index],
        forms: Sequence[Sequence[Hashable]],
        paths: Paths,
        structural_zeros: BoolArray | None,
        derived: tuple[DerivedLevels[Domain], ...] = (),
    ) -> Domain:
        flags = paths.sort(structural_zeros)
        zeros = np.zeros(0, dtype=np.int64) if flags is None else np.flatnonzero(flags)
        levels = list(paths.levels())
        tree = Tree.from_levels(levels)
        codes = tuple(level.codes for level in levels)
        return cls(by, tree, tuple(labels), tuple(forms), codes, zeros, derived)

    @property
    def plain(self) -> tuple[Hashable, ...]:
        """Names of the keys that are columns of the records."""
        made = {name for levels in self.derived for name in levels.names}
        return tuple(name for name in self.by if name not in made)

    @property
    def sources(self) -> tuple[Hashable, ...]:
        """Names of the columns of the records from which the keys are read."""
        read = (column for levels in self.derived for column in levels.columns)
        return tuple(dict.fromkeys([*self.plain, *read]))

    def keys(self, level: int) -> pd.DataFrame:
        """List the keys of the nodes of one level that a table shows.

        Parameters
        ----------
        level : int
            From 1 for the coarsest key to ``len(by)`` for the leaves.

        Returns
        -------
        pandas.DataFrame
            One column per key down to that level, in the order of the tree.

        Raises
        ------
        ArgumentError
            If there is no such level.
        """
        if level not in range(1, len(self.by) + 1):
            raise ArgumentError(
                "level",
                f"must be a whole number from 1 to {len(self.by)}, not {quote(level)}.",
                hint=f"{len(self.by)} is for the leaves, 1 for the coarsest key.",
            )
        return pd.DataFrame(
            {
                name: label.take(code[self.tree.listed(level)])
                for name, label, code in zip(self.by, self.labels, self.path_codes(level), strict=False)
            }
        )

    def path_codes(self, level: int) -> list[IntArray]:
        """For each key down to a level, return its code at every node of the level (chain nodes included)."""
        paths: list[IntArray] = []
        for above, codes in enumerate(self.codes[:level]):
            paths = [np.broadcast_to(self.tree.spread(above, code), len(codes)) for code in paths]
            paths.append(codes)
        return paths

    def truncated(self, level: int) -> Domain:
        """Make the domain of the levels down to one, from 1, without derived levels or structural zeros.

        It has the nodes of this domain in the same order, for whatever was counted in this one.
        """
        tree, codes = self.tree.truncated(level), self.codes[:level]
        return Domain(
            self.by[:level], tree, self.labels[:level], self.forms[:level], codes, source=self.source
        )

    def find_leaves(self, codes: Sequence[npt.NDArray[Any]]) -> IntArray:
        """Find the leaf of each path of codes: -1 if the domain does not list it, or it is a structural zero.

        For each key, codes are positions in `labels`: -1 for a missing key, -2 for an unknown label. A path
        that ends early belongs to the leaf of that shorter path, if the domain lists one.
        """
        nodes = self.find_nodes(codes)
        return nodes if self._kept_leaves is None else self._kept_leaves[nodes]

    def find_nodes(self, codes: Sequence[npt.NDArray[Any]]) -> IntArray:
        """Find the node at the end of each path of codes; -1 if the domain does not list the path.

        The codes are as for `find_leaves`, for one or more of the coarsest keys. Nodes are on level
        ``len(codes)``.
        """
        nodes: npt.NDArray[Any] = np.zeros(len(codes[0]), dtype=np.int32)
        for level, code in zip(self._children, codes, strict=False):
            nodes = level.find(nodes, code)
        return nodes.astype(np.int64)

    @once
    def lookups(self) -> tuple[Lookup, ...]:
        """For each key, its labels, in which the keys of records are found."""
        return tuple(map(Lookup, self.forms))

    @once
    def _children(self) -> tuple[Children, ...]:
        """The table of the nodes of each level below the root."""
        tables = []
        for level, (label, code) in enumerate(zip(self.labels, self.codes, strict=True)):
            parents = self.tree.spread(level, np.arange(self.tree.level_sizes[level]))
            tables.append(
                Children(self.tree.level_sizes[level], len(label), np.broadcast_to(parents, len(code)), code)
            )
        return tuple(tables)

    @once
    def _kept_leaves(self) -> IntArray | None:
        """Each leaf, or -1 for a structural zero, and at the end that of the leaf -1; None without zeros."""
        if not len(self.structural_zeros):
            return None
        leaves = np.append(np.arange(self.tree.n_leaves), -1)
        leaves[self.structural_zeros] = -1
        return leaves

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is quickly made again."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __repr__(self) -> str:
        """Describe the domain in a line."""
        return f"Domain(by={self.by}, level_sizes={self.tree.level_sizes})"

"""Crossed hierarchies: several domains, the axes, whose keys are combined in every margin.

It comes from the caller, as a `Domain` does, and records are looked up in it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ColumnsError, DomainError, kind_of_object, quote
from pandas_dptree.hierarchy.axes import axis_of, check_axes
from pandas_dptree.hierarchy.domain import SOURCES, Domain, Source
from pandas_dptree.hierarchy.hash_tables import once
from pandas_dptree.hierarchy.levels.combine import Derived
from pandas_dptree.hierarchy.margin_names import Keys, margin_name, margin_named, margin_weights
from pandas_dptree.hierarchy.product_tree import Margin, ProductTree
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.signatures import public

__all__ = ["MAX_LEAF_CELLS", "CrossedDomain", "cross"]

BoolArray = npt.NDArray[np.bool_]

MAX_LEAF_CELLS = 5 * 10**7
"""Largest number of leaf cells."""

_MAX_MARGINS = 4096
"""Largest number of margins; with more, all of their cells together are far more than the leaf cells."""


@dataclass(frozen=True, eq=False, repr=False)
class CrossedDomain:
    """The public keys of crossed hierarchies: a domain for each axis, and the margins that are wanted.

    Make one with `cross`. A *margin* takes one level of each axis, and has a *cell* for each combination of
    their nodes. The margin of all finest levels has the *leaf cells*.

    Attributes
    ----------
    axes : dict of str to Domain
        The hierarchies that are crossed, by the names of the axes.
    wanted : dict of tuple of int to float, optional
        The margins that a table shows (the level of each axis), and how much a cell of each matters. None if
        all margins are wanted.
    source : {"given", "released", "categories", "observed"}
        Where the keys came from: of the axis whose keys are the least certain to be public.

    Examples
    --------
    >>> import pandas as pd
    >>> import pandas_dptree as dpt
    >>> places = pd.DataFrame({"state": ["CA", "CA", "WA"], "county": ["Kern", "Napa", "King"]})
    >>> domain = dpt.cross(
    ...     place=dpt.Domain.from_frame(places, by=["state", "county"]),
    ...     sex=dpt.Domain.from_frame(["F", "M"], by=["sex"]),
    ... )
    >>> domain
    CrossedDomain(place=('state', 'county'), sex=('sex',), leaf_cells=6)
    >>> domain.level_names
    ('total', 'sex', 'state', 'state × sex', 'county', 'county × sex')
    >>> domain.margin_of({"place": "state"}), domain.margin_of("county × sex")
    ((1, 0), (2, 1))
    """

    axes: Mapping[str, Domain]
    wanted: Mapping[Margin, float] | None = None
    source: Source = "given"

    def __post_init__(self) -> None:
        """Check the names of axes and keys, and that no column is read for two axes."""
        axes = dict(self.axes)
        object.__setattr__(self, "axes", axes)
        check_axes(self.keys, {name: axis.sources for name, axis in axes.items()})
        certain = [self.source, *(axis.source for axis in axes.values())]
        object.__setattr__(self, "source", max(certain, key=SOURCES.index))

    @property
    def by(self) -> tuple[Hashable, ...]:
        """Names of all keys, axis by axis, from the coarsest to the finest."""
        return tuple(name for axis in self.axes.values() for name in axis.by)

    @property
    def keys(self) -> Keys:
        """The keys of each axis."""
        return {name: axis.by for name, axis in self.axes.items()}

    @property
    def plain(self) -> tuple[Hashable, ...]:
        """Names of the keys that are columns of the records."""
        return tuple(name for axis in self.axes.values() for name in axis.plain)

    @property
    def sources(self) -> tuple[Hashable, ...]:
        """Names of the columns of the records from which the keys are read."""
        return tuple(name for axis in self.axes.values() for name in axis.sources)

    @property
    def derived(self) -> tuple[Derived, ...]:
        """The derived levels of all axes."""
        return tuple(levels for axis in self.axes.values() for levels in axis.derived)

    @cached_property
    def ground(self) -> Margin:
        """The finest level of each axis that a wanted margin has: its cells are the leaf cells."""
        if self.wanted is None:
            return tuple(axis.tree.depth for axis in self.axes.values())
        return tuple(map(max, zip(*self.wanted, strict=True)))

    @cached_property
    def tree(self) -> ProductTree:
        """The shape down to the `ground`; a DomainError if it is too large."""
        self._check_size()
        trees = (
            axis.tree.truncated(level) for axis, level in zip(self.axes.values(), self.ground, strict=True)
        )
        product = ProductTree(tuple(trees))
        return product if self.wanted is None else replace(product, shown=tuple(sorted(self.wanted)))

    @cached_property
    def level_names(self) -> tuple[str, ...]:
        """Names of all margins down to the `ground`, in the order of `tree.margins`."""
        return tuple(margin_name(self.keys, margin) for margin in self.tree.margins)

    @property
    def weights(self) -> npt.NDArray[np.float64]:
        """How much a cell of each of `tree.margins` matters: 0 for those that are not shown."""
        shown = dict.fromkeys(self.tree.margins, 1.0) if self.wanted is None else self.wanted
        return np.array([shown.get(margin, 0.0) for margin in self.tree.margins])

    @property
    def zeros(self) -> tuple[BoolArray, ...]:
        """For each axis, which of its nodes on the `ground` hold structural zeros alone."""
        flags = []
        for axis, level in zip(self.axes.values(), self.ground, strict=True):
            possible = np.ones(axis.tree.n_leaves, dtype=np.int64)
            possible[axis.structural_zeros] = 0
            flags.append(axis.tree.roll_up(possible)[level] == 0)
        return tuple(flags)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 digest of the axes, in 64 hexadecimal digits; which margins are wanted does not enter."""
        axes = [(name, axis.fingerprint) for name, axis in self.axes.items()]
        return hashlib.sha256(ascii(axes).encode()).hexdigest()

    def margin_of(self, given: Any, argument: str = "margin") -> Margin:
        """Return the level of each axis in a margin, as the caller names it.

        Parameters
        ----------
        given : mapping, hashable, or sequence of hashable
            The level of each axis, such as ``{"place": "county"}``; the name of a level or of a margin
            (``"county"``, ``"county × sex"``); or names of levels of different axes. Axes that are left out
            have the level ``"total"``.
        argument : str
            The argument that errors name.

        Raises
        ------
        ArgumentError
            If there is no such axis or level, or an axis has two levels.
        """
        return margin_named(self.keys, given, argument)

    def with_margins(self, margins: Any) -> CrossedDomain:
        """Return the same axes with only some margins to be shown.

        Parameters
        ----------
        margins : sequence, mapping or None
            The margins, as in `margin_of`; a mapping from names or tuples of names also says how much a cell
            of each matters. None for all.

        Raises
        ------
        ArgumentError
            If a margin is unknown or occurs twice, there is none, or a weight is not a number of at least 0.
        DomainError
            If there would be too many leaf cells: the combinations of all levels that occur.

        Examples
        --------
        >>> import pandas_dptree as dpt
        >>> domain = dpt.cross(place=dpt.Tree.from_branching([2, 3]), sex=dpt.Tree.from_branching([2]))
        >>> some = domain.with_margins([{"place": "place_1"}, ("place_1", "sex")])
        >>> some.tree.shown, some.tree.leaf_shape
        (((1, 0), (1, 1)), (2, 2))
        """
        chosen = replace(self, wanted=None if margins is None else margin_weights(self.keys, margins))
        chosen._check_size()
        return chosen

    def _check_size(self) -> None:
        """Refuse too many leaf cells or margins."""
        n_margins = math.prod(level + 1 for level in self.ground)
        if n_margins > _MAX_MARGINS:
            raise DomainError(
                f"would have {n_margins:,} margins, more than {_MAX_MARGINS:,}.",
                hint="cross fewer axes, or give them fewer levels.",
            )
        sizes = self._sizes(self.ground)
        if math.prod(sizes) > MAX_LEAF_CELLS:
            raise DomainError(
                f"would have {math.prod(sizes):,} leaf cells, more than {MAX_LEAF_CELLS:,}: all "
                f"combinations of {' and '.join(f'{size:,}' for size in sizes)} keys.",
                hint=self._coarser()
                or "cross fewer axes, or give them coarser keys; others can have a table of their own.",
            )

    def _coarser(self) -> str:
        """Hint at the level that is best left out, if leaving out one level is enough; else empty."""
        best, hint = 0, ""
        for place, (name, axis) in enumerate(self.axes.items()):
            ground = [*self.ground]
            ground[place] = max(0, ground[place] - 1)
            n_cells = math.prod(self._sizes(ground))
            if best < n_cells <= MAX_LEAF_CELLS:
                best, finest = n_cells, axis.by[ground[place]]
                hint = f"pass `margins` without the level {quote(finest)} of the axis {quote(name)}."
        return hint

    def _sizes(self, margin: Sequence[int]) -> list[int]:
        """Return the number of nodes of each axis in a margin."""
        levels = zip(self.axes.values(), margin, strict=True)
        return [axis.tree.level_sizes[level] for axis, level in levels]

    def find_cells(self, leaves: Sequence[IntArray]) -> IntArray:
        """Find the leaf cell of each record from its leaf on each axis; -1 if it has none on one of them.

        Leaves on different axes are broadcast against each other.
        """
        of_axes = zip(self._cells_of_leaves, leaves, strict=True)
        return np.maximum(reduce(np.add, (of_leaf[leaf] for of_leaf, leaf in of_axes)), -1)

    @once
    def _cells_of_leaves(self) -> tuple[IntArray, ...]:
        """What each leaf of an axis adds to the number of its cell; the leaf -1 makes it negative."""
        tables, stride = [], self.tree.n_leaves
        for axis, level in zip(self.axes.values(), self.ground, strict=True):
            stride //= axis.tree.level_sizes[level]
            nodes = axis.tree.nodes_above(np.arange(axis.tree.n_leaves), level)
            tables.append(np.append(nodes * stride, -self.tree.n_leaves))
        return tuple(tables)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is quickly made again."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __repr__(self) -> str:
        """Describe the axes in a line."""
        axes = ", ".join(f"{name}={axis.by}" for name, axis in self.axes.items())
        return f"CrossedDomain({axes}, leaf_cells={math.prod(self._sizes(self.ground))})"


@public
def cross(axes: Mapping[str, Any] | None = None, /, **named: Any) -> CrossedDomain:
    """Cross hierarchies: combine the nodes of each with those of all others.

    Parameters
    ----------
    axes : mapping of str to Domain, Tree or derived levels, optional
        The public keys of each axis, by its name. The keys of a tree are numbered: they are called like the
        axis, or with several levels ``"place_1"``, ``"place_2"``, ….
    **named
        The same, by keywords.

    Returns
    -------
    CrossedDomain
        What `plan` takes to plan a table of all margins.

    Raises
    ------
    DomainError
        If there is no axis, or one is neither a domain nor a tree.
    ColumnsError
        If two axes have the same key or read the same column, or the name of an axis cannot be used.

    Notes
    -----
    **Privacy**: the keys of all axes are public, and so is every combination of them.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> ages = dpt.cut("age", [0, 18, 65, 120])
    >>> dpt.cross(place=dpt.Tree.from_branching([50, 60]), age=ages)
    CrossedDomain(place=('place_1', 'place_2'), age=('age_bin',), leaf_cells=9000)
    """
    if axes is not None and not isinstance(axes, Mapping):
        raise DomainError(
            f"must map the names of axes to public keys, not be {kind_of_object(axes)}.",
            hint="for example dpt.cross(place=places, sex=sexes), with domains such as places = "
            'dpt.Domain.from_frame(frame, by=["state", "county"]).',
        )
    twice = [name for name in named if axes is not None and name in axes]
    if twice:
        raise ColumnsError(
            "domain", "names axes twice", columns=twice, hint="give each axis in the mapping or by keyword."
        )
    every = {**(axes or {}), **named}
    return CrossedDomain({name: axis_of(name, given) for name, given in every.items()})

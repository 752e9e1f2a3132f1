"""Areas that are no node of a hierarchy: several of its nodes together, such as a coast of some districts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, listed, quote
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.values import canonical_codes, positions
from pandas_dptree.signatures import public

__all__ = ["Area", "combine"]


@dataclass(frozen=True, slots=True)
class Area:
    """Nodes that are added up. Made by `combine`; each path has the keys of a node from the coarsest on."""

    paths: tuple[tuple[Any, ...], ...]

    def weights(self, domain: object) -> list[npt.NDArray[np.float64]]:
        """Return 1 for each node of the area, otherwise 0: an array per level, of shape (level_sizes[l],).

        A domain that lacks a node is refused.
        """
        if not isinstance(domain, Domain):
            raise ArgumentError(
                "target",
                "names an area by keys, which a bare tree does not have.",
                hint="plan for a domain: dpt.Domain.from_frame(...).",
            )
        weights = [np.zeros(size) for size in domain.tree.level_sizes]
        for path in self.paths:
            node = _node_of(domain, path)
            if node < 0:
                raise ArgumentError(
                    "target",
                    f"has an area with the path {quote(path)}, which the domain does not list.",
                    hint=f"a path has the keys of {listed(domain.by)}, from the coarsest on.",
                )
            weights[len(path)][node] = 1.0
        return weights


@public
def combine(paths: Iterable[Any]) -> Area:
    """Combine nodes into an area, to state how accurate their sum must be.

    Parameters
    ----------
    paths : iterable of lists or tuples
        Each has the keys of a node from the coarsest on: ``["Estholm", "Outer Islands"]`` is a district. A
        node of the first level may be its key alone.

    Returns
    -------
    Area
        A key of the mapping `target`, beside names of levels.

    Raises
    ------
    ArgumentError
        If there is no path, or one of them is part of another.

    Examples
    --------
    The sum of two regions must have a standard error of 25 at most:

    >>> import pandas as pd, pandas_dptree as dpt
    >>> keys = pd.DataFrame({"region": ["N", "E", "S"]})
    >>> domain = dpt.Domain.from_frame(keys, by=["region"])
    >>> coast = dpt.combine(["N", "E"])
    >>> plan = dpt.plan(domain, target={coast: 25})
    >>> round(plan.area_std_error(coast), 1)
    25.0
    """
    if isinstance(paths, (str, bytes)) or not isinstance(paths, Iterable):
        raise ArgumentError("paths", f"must be a list of paths, not {quote(paths)}.", hint=_HINT)
    tuples = tuple(tuple(path) if isinstance(path, (list, tuple)) else (path,) for path in paths)
    if not tuples or not all(tuples):
        raise ArgumentError("paths", "must hold at least one path, each with at least one key.", hint=_HINT)
    if any(
        not isinstance(key, (str, int, float, np.generic, pd.Timestamp)) for path in tuples for key in path
    ):
        raise ArgumentError("paths", "must hold keys: text, numbers or times.", hint=_HINT)
    for place, path in enumerate(tuples):
        for other in (*tuples[:place], *tuples[place + 1 :]):
            if other[: len(path)] == path:
                raise ArgumentError(
                    "paths",
                    f"holds {quote(path)}, of which {quote(other)} is a part.",
                    hint="name each node once.",
                )
    return Area(tuples)


_HINT = 'for example combine([["Brenvale"], ["Estholm", "Outer Islands"]]).'


def _node_of(domain: Domain, path: tuple[Any, ...]) -> int:
    """Find the node of a path on the level of its length, -1 if it is not listed."""
    if len(path) > len(domain.by):
        return -1
    codes = []
    for key, listed_forms in zip(path, domain.forms, strict=False):
        code, forms = canonical_codes(pd.Series([key], dtype=object))
        codes.append(np.append(positions(forms, listed_forms), -1)[code])
    return int(domain.find_nodes(codes)[0])

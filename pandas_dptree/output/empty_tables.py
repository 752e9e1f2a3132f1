"""Warnings about released tables that are nearly empty.

Keys in another case than those of the domain, or text instead of numbers, give a table that looks like any
other but holds only noise. No message may depend on the records, but one may depend on the released total.

**Privacy.** The warning is a function of the noisy estimates and of the plan, so it is post-processing, and
the stated loss covers it. The holder of the table can compute the same, with two exceptions: for quantiles
and for means without their counts, it also shows the noisy number of values, which was measured for them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import quote, warn
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.levels.combine import Derived
from pandas_dptree.privacy.quantity import Quantity

__all__ = ["FEWEST", "TABLE", "Totals", "may_be_noise", "totals_of", "usual_causes", "warn_if_empty"]

Totals = Mapping[Hashable, tuple[npt.ArrayLike, float]]
"""By name, a quantity's total, or those of parallel trees, and how large the noise of one may be."""

FEWEST = 3.0
"""Standard errors: the noise of one total exceeds this many in fewer than one release in a hundred."""

_KEYS_MISSED = (
    'keys that differ from those of the domain (other case, blanks at the end, "501" for "00501", True for 1)'
)


TABLE = "The released table"
"""How warnings begin; the name of the table follows, if several are released."""


def warn_if_empty(released: Any, totals: Totals, causes: str, table: str) -> bool:
    r"""Warn if a released table holds so little that it may be noise alone; return whether it does.

    `released` is the table, which the warning also holds and names as `table`; `causes` is from
    `usual_causes`. A total without noise is public beforehand, and is ignored.
    """
    empty = []
    for name, (shown, noise) in totals.items():
        total, most = float(np.sum(shown)), may_be_noise(shown, noise)
        if total <= most:
            empty.append(f"the total of {quote(name)} is {total:.6g}, and up to {most:.3g} may be noise")
    if empty:
        warn(f"{table} is nearly empty: {'; '.join(empty)}.", hint=causes, released=released)
    return bool(empty)


def may_be_noise(shown: npt.ArrayLike, noise: float) -> float:
    r"""Return how large the sum of totals may be if they are noise alone: -inf for public ones.

    The totals of n parallel trees are added up, and their noise is :math:`\sqrt n` times that of one. If the
    table shows 0 for a negative total, that of an empty tree has a mean of 0.4 standard errors and a standard
    deviation of 0.58. So if no total is negative, the sum is compared with that, too.
    """
    n = np.size(shown)
    most = noise * np.sqrt(n)
    if np.min(shown, initial=0) >= 0:
        most = max(most, noise / FEWEST * (0.4 * n + FEWEST * 0.58 * np.sqrt(n)))
    return float(most) if n and most > 0 else -np.inf


def totals_of(root: Any, quantities: Mapping[Hashable, Quantity]) -> Totals:
    """Read the totals that a table shows, each with three of its standard errors.

    `root` is the row, dataset or columns of the level ``"total"``, `quantities` what is added up, by name.
    Sums of values of both signs may be near 0, and are left out; of values that are never positive, the
    magnitude is read.
    """
    totals: dict[Hashable, tuple[npt.ArrayLike, float]] = {}
    for name, quantity in quantities.items():
        own = f"{name}_std_error"
        error = np.asarray(root[own if own in root else "std_error"])
        if quantity.low >= 0 or quantity.high <= 0:
            sign = 1 if quantity.low >= 0 else -1
            totals[name] = sign * np.asarray(root[name]), FEWEST * float(error.max(initial=0.0))
    return totals


def usual_causes(
    domain: Domain | None = None,
    *,
    derived: Iterable[Derived] = (),
    values: Iterable[Hashable] = (),
    privacy_unit: Hashable | None = None,
) -> str:
    """Describe what usually makes a table nearly empty, depending on what a release reads.

    That are the keys of a `domain`, `derived` levels that are made of columns, and `values`, the columns
    whose values are read; without any of these, numbers alone.
    """
    causes = [_KEYS_MISSED] if domain is not None and domain.plain else []
    causes += [levels.pitfall for levels in (*derived, *(() if domain is None else domain.derived))]
    columns = " or ".join(map(quote, values))
    if columns:
        causes.append(f'values that cannot be read in {columns}, such as "$12.30", or bounds far beyond them')
    if privacy_unit is not None:
        causes.append(f"rows without a unit in {quote(privacy_unit)}")
    causes = causes or ["numbers that are missing or negative, which count as 0"]
    return f"if it should hold more, look for {'; '.join(causes)}."

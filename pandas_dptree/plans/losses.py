"""What one release by a plan spends, level by level, in both currencies in which budgets add up."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from html import escape
from typing import NamedTuple

import pandas as pd

from pandas_dptree.privacy.level_losses import NOTHING, LevelLoss, float_above, together
from pandas_dptree.privacy.loss import PrivacyLoss

__all__ = ["LevelItem", "Losses"]


class LevelItem(NamedTuple):
    """What one level spends, or another part of a release such as its thresholds."""

    level: Hashable
    """The name of the level, or of the part."""
    loss: LevelLoss
    quantity: Hashable = None
    """What is measured, in plans of several quantities."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Losses:
    r"""What the noise of one release spends: of each level, and in total, in two currencies.

    Budgets of many releases are added up either as (epsilon, delta), differential privacy, or as (rho,
    delta), delta-approximate zero-concentrated differential privacy. A plan states its loss in one of them.
    In the other, the losses of its levels are added up, at most. That is less than what the stated total
    implies: ten levels with an epsilon of 0.1 each have a rho of about :math:`10 \cdot 0.1^2/2 = 0.05`, but
    an epsilon of 1 alone has one of about 0.46.

    Made by `Plan.losses`.

    Attributes
    ----------
    stated : PrivacyLoss
        The loss that the plan states.
    items : tuple of LevelItem
        What each level spends at most. `pandas_dptree.privacy.level_losses` has the proofs.
    together : LevelLoss or None
        What all of them spend together at most, if that is less than their sum: a unit that moves one level
        as far as possible may not be able to do the same to another.

    Notes
    -----
    **Privacy**: public; a function of the plan alone. Either total bounds what one release reveals, and
    either may be added up over many releases.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> plan = dpt.plan(dpt.Tree.from_branching([3, 4]), epsilon=1.0, split="uniform")
    >>> plan.losses
    Losses of one release: epsilon=1, or rho=0.16514
           level  epsilon       rho
           total 0.333333 0.0550468
         level_1 0.333333 0.0550468
         level_2 0.333333 0.0550468
    all together        1   0.16514
    >>> plan.losses.in_epsilon
    (Fraction(1, 1), Fraction(0, 1))
    """

    stated: PrivacyLoss
    items: tuple[LevelItem, ...]
    together: LevelLoss | None = None

    @cached_property
    def in_epsilon(self) -> tuple[Fraction, Fraction] | None:
        """Epsilon and delta of one release; None if it has no epsilon.

        Exactly what the plan states (`PrivacyLoss.exact`), if that is an epsilon. Otherwise that of all
        levels together, rounded up to a float; with Gaussian noise there is none. Both are 0 if nothing is
        measured.
        """
        exact, epsilon = self.stated.exact, self._total.epsilon
        if not self._spends:
            return Fraction(0), Fraction(0)
        if exact.epsilon is not None:
            return exact.epsilon, exact.delta
        return None if epsilon is None else (_rounded(epsilon), _rounded(self._total.delta))

    @cached_property
    def in_rho(self) -> tuple[Fraction, Fraction]:
        """Rho and delta of one release.

        Exactly what the plan states (`PrivacyLoss.exact`), if that is a rho. Otherwise that of all levels
        together, rounded up to a float. Both are 0 if nothing is measured.
        """
        exact = self.stated.exact
        if not self._spends:
            return Fraction(0), Fraction(0)
        if exact.rho is not None:
            return exact.rho, exact.delta
        return _rounded(self._total.rho), _rounded(self._total.delta)

    @property
    def _spends(self) -> bool:
        return any(item.loss != NOTHING for item in self.items)

    @property
    def _total(self) -> LevelLoss:
        return self.together or together(item.loss for item in self.items)

    def to_frame(self) -> pd.DataFrame:
        """Return the losses as a frame, for display: floats, rounded to the nearest.

        Returns
        -------
        pandas.DataFrame
            One row per level, and at the end the row ``"all together"``, with `in_epsilon` and `in_rho`. With
            a delta, an epsilon may be smaller than the sum of those of the levels. Columns: ``quantity``,
            only in plans of several; ``level``; ``epsilon`` and its ``delta``; ``rho`` and its ``rho_delta``.
            Missing where there is no epsilon.
        """
        rows = [
            (item.quantity, item.level, item.loss.epsilon, item.loss.delta, item.loss.rho, item.loss.delta)
            for item in self.items
        ]
        rows.append(("", "all together", *(self.in_epsilon or (None, None)), *self.in_rho))
        names = ["quantity", "level", "epsilon", "delta", "rho", "rho_delta"]
        columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        if not any(item.quantity is not None for item in self.items):
            del columns["quantity"]
        labels = {name: pd.Series(columns[name], dtype=object) for name in columns if name not in names[2:]}
        numbers = {name: pd.Series(columns[name], dtype=object).astype("float64") for name in names[2:]}
        return pd.DataFrame({**labels, **numbers})

    def __repr__(self) -> str:
        """Format the losses as text."""
        table = self._shown.to_string(index=False, na_rep="-", float_format="{:.6g}".format)
        return f"{self._headline}\n{table}"

    def _repr_html_(self) -> str:
        """Format the losses for a notebook."""
        table = self._shown.to_html(index=False, border=0, na_rep="-", float_format="{:.6g}".format)
        return f"<p>{escape(self._headline)}</p>\n{table}"

    @property
    def _shown(self) -> pd.DataFrame:
        """The table without deltas that are all 0."""
        table = self.to_frame()
        return table.drop(columns=[name for name in ("delta", "rho_delta") if not table[name].any()])

    @property
    def _headline(self) -> str:
        totals = {"epsilon": self.in_epsilon, "rho": self.in_rho}
        in_words = [
            f"{name}={float(size):.6g}" + (f" with delta={float(delta):.6g}" if delta else "")
            for name, (size, delta) in ((name, total) for name, total in totals.items() if total is not None)
        ]
        return f"Losses of one release: {', or '.join(in_words)}"


def _rounded(number: Fraction) -> Fraction:
    """Round up to a float, so that fractions stay short."""
    return Fraction(float_above(number))

"""What an attacker gains by one release of a plan, as a table and in words."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import pandas as pd

from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.risk import suspicion_after
from pandas_dptree.privacy.sensitivity import Neighbors

__all__ = ["Risk"]


@dataclass(frozen=True, kw_only=True, repr=False)
class Risk:
    """What an attacker gains by one release of a plan, at most. Made by `Plan.risk`.

    Attributes
    ----------
    sentence : str
        The risk in words.
    loss : PrivacyLoss
        The privacy loss of the plan.
    neighbors : {"add_remove", "replace"}
        What the attacker guesses: whether a privacy unit is in the data at all, or which of two versions of
        its rows is.
    falsely_accused, found : tuple of float
        Shares of the innocent that an attacker accuses, and the largest shares of the others that they find.

    Notes
    -----
    **Privacy**: public; a function of the plan alone. It holds for one release, whatever else the attacker
    knows. Other releases about the same people add to it.
    """

    loss: PrivacyLoss
    neighbors: Neighbors
    falsely_accused: tuple[float, ...]
    found: tuple[float, ...]
    sentence: str

    def to_frame(self) -> pd.DataFrame:
        """Return the risk as a frame.

        Returns
        -------
        pandas.DataFrame
            One row per share: ``falsely_accused`` and ``found_at_most``; under pure epsilon also
            ``suspicion`` and ``becomes_at_most``, what a suspicion of the same size can become.
        """
        table = pd.DataFrame({"falsely_accused": self.falsely_accused, "found_at_most": self.found})
        if self.loss.kind == "pure" and self.loss.epsilon is not None:
            table["suspicion"] = self.falsely_accused
            table["becomes_at_most"] = [
                suspicion_after(each, self.loss.epsilon) for each in self.falsely_accused
            ]
        return table

    def __repr__(self) -> str:
        """Format the risk as text."""
        return f"{self.sentence}\n{self.to_frame().to_string(index=False, float_format='{:.4g}'.format)}"

    def _repr_html_(self) -> str:
        """Format the risk for a notebook."""
        table = self.to_frame().to_html(index=False, border=0, float_format="{:.4g}".format)
        return f"<p>{escape(self.sentence)}</p>\n{table}"

"""How a release is run: the records are read, the loss is charged, and then noise is drawn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from pandas_dptree.plans.base import Plan

__all__ = ["Charge", "Chargeable"]


@dataclass(frozen=True)
class Charge:
    """An entry of a ledger that pays for a release."""

    account: str
    part: str | None
    number: int
    digest: str
    note: str


class Chargeable(ABC):
    """What the argument `ledger` accepts."""

    @abstractmethod
    def check(self, releases: Mapping[Hashable, Plan], note: str, *, allow_repeat: bool) -> None:
        """Raise what `charge` would raise now; take nothing."""

    @abstractmethod
    def charge(
        self, releases: Mapping[Hashable, Plan], note: str, *, allow_repeat: bool, requested: datetime
    ) -> dict[Hashable, Charge]:
        """Charge all releases or none; the charges are on disk when this returns."""

    @abstractmethod
    def mark_released(self, charges: Iterable[Charge]) -> None:
        """Record that the outputs of these charges exist."""

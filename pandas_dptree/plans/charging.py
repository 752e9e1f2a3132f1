"""What a release is charged to: the interface between plans and the accounts of a ledger."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import numpy.typing as npt

from pandas_dptree.plans.losses import Losses
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Neighbors

__all__ = ["Charge", "Chargeable", "Chargeables", "Costed", "Kept", "Output"]


class Costed(Protocol):
    """What an account needs to know of a plan."""

    @property
    def subject(self) -> str:
        """What is released, and by which keys, in a few words."""

    @property
    def digest(self) -> str | None:
        """SHA-256 of everything that a release depends on; None if JSON cannot hold the plan."""

    @property
    def loss(self) -> PrivacyLoss:
        """The privacy loss of one release, as stated."""

    @property
    def losses(self) -> Losses:
        """What one release spends, in each currency."""

    @property
    def neighbors(self) -> Neighbors:
        """How neighbouring data sets differ."""

    @property
    def privacy_unit(self) -> Hashable | None:
        """The column that identifies whom to protect; None if each row is a unit of its own."""

    def to_dict(self) -> dict[str, Any]:
        """Serialize the plan as plain JSON."""


Chargeables = Mapping[Hashable, Costed]
"""The plans of releases that are charged together, by the names of their tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """A charge that is on disk.

    Whoever keeps the released table can prove by its digest, that of the ledger up to this entry, that the
    ledger was changed later: see `Ledger.verify`.
    """

    account: str
    part: str | None
    number: int
    digest: str
    note: str

    def to_dict(self) -> dict[str, Any]:
        """Return what a released table states of its charge: not the note, which may be internal."""
        part = {} if self.part is None else {"part": self.part}
        return {"account": self.account, **part, "charge": self.number, "digest": self.digest}


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What a charge was for: the released table, the linear estimates behind it, and the plan as JSON text.

    `linear` has an array per level for each quantity, in the order of the nodes, unless the table shows them.
    """

    table: Any
    linear: Mapping[str, Sequence[npt.NDArray[Any]]]
    plan: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A released table that was kept, and the charge that it was released for."""

    table: Any
    account: str
    number: int
    requested: str


class Chargeable(ABC):
    """What the option ``ledger=`` takes: `pandas_dptree.Account` is one."""

    @abstractmethod
    def kept(self, plans: Chargeables, note: str) -> Mapping[Hashable, Kept]:
        """Return the tables that were kept of releases by the same plans, with the same note and names."""

    @abstractmethod
    def check(self, plans: Chargeables, note: str, *, allow_repeat: bool) -> None:
        """Raise what `charge` would raise now, and charge nothing."""

    @abstractmethod
    def charge(
        self, plans: Chargeables, note: str, *, allow_repeat: bool, requested: datetime
    ) -> Mapping[Hashable, Charge]:
        """Charge releases by all plans, or none. The charges are on disk when this returns.

        `requested` is when the release began, before any record was read.
        """

    @abstractmethod
    def keep(self, outputs: Mapping[Charge, Output]) -> None:
        """Keep the tables of these charges. They are on disk when this returns."""

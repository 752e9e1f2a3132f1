"""Ledgers of tests, and stand-ins for plans."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from types import SimpleNamespace

import pandas_dptree as dpt

NOW = datetime(2026, 3, 1, 12, 30, 15, tzinfo=UTC)


@dataclass(frozen=True)
class StandIn:
    """What an account sees of a plan."""

    loss: Fraction | str = "1/10"
    delta: Fraction | str = "0"
    in_both: bool = True
    currency: str = "rho"
    name: str = "plan"
    privacy_unit: object = "person"
    neighbors: str = "add_remove"
    digest: str | None = field(default=None)
    subject: str | None = None

    def __post_init__(self):
        if self.subject is None:
            what = "state" if self.name == "plan" else self.name
            object.__setattr__(self, "subject", f"counts by {what}")
        if self.digest is None:
            object.__setattr__(self, "digest", f"digest of {self.name} {self.loss} {self.delta}")

    @property
    def losses(self):
        stated = (Fraction(self.loss), Fraction(self.delta))
        return SimpleNamespace(
            in_epsilon=stated if self.in_both or self.currency == "epsilon" else None,
            in_rho=stated if self.in_both or self.currency == "rho" else None,
        )


def create(folder, name="budget.sqlite", **options):
    """Make a ledger with the account "patients"."""
    options = {"account": "patients", "privacy_unit": "person", **options}
    if not {"epsilon", "rho"} & options.keys():
        options["rho"] = 1.0
    return dpt.Ledger.create(folder / name, **options)


def charge(account, plan=None, note="note", *, allow_repeat=False, requested=NOW, **plans):
    """Charge a plan without a name, or plans by their names."""
    releases = plans or {None: StandIn() if plan is None else plan}
    charged = account.charge(releases, note, allow_repeat=allow_repeat, requested=requested)
    return charged if plans else charged[None]

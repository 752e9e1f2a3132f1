"""How releases are carried out: read the records, charge the ledger, add the noise.

The order is the same for all kinds of plans, for frames and arrays, and for several releases together:

1. The public arguments are checked, and the account is asked whether it would refuse.
2. The records of all releases are read. What was read is secret, and stays in memory.
3. The charges are committed to disk: those of all releases, or none.
4. Only now is noise drawn, and the tables are made.

An error in the first two steps therefore costs nothing. A crash after the third loses budget, never privacy.
The account never sees records, and the time that it stores is that of the first step: how long reading takes
depends on the records. (So does the time of a script's next release, which is requested when this is done.)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from pandas_dptree.errors import ArgumentError, DPTreeError, kind_of_object, quote, warn
from pandas_dptree.ingest.reading import Bounding
from pandas_dptree.mechanisms.arguments import noise_source
from pandas_dptree.mechanisms.sampling import ByteSource, random_words
from pandas_dptree.output.empty_tables import Totals, warn_if_empty
from pandas_dptree.output.progress import Done, Step, progress_bar
from pandas_dptree.plans.charging import Charge, Chargeable, Costed
from pandas_dptree.plans.options import RUNNING, with_defaults

__all__ = ["Finish", "Origin", "Outcome", "Release", "Resources", "carry_out", "checked_folder"]

Name = TypeVar("Name", bound=Hashable)


class Bounded(Protocol):
    """A plan that bounds the contributions of privacy units."""

    @property
    def privacy_unit(self) -> Hashable | None:
        """The column that identifies the unit of a record."""

    @property
    def max_contributions(self) -> int:
        """The number of records that a unit may keep."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What reading records takes: a source of randomness, and a folder for temporary files."""

    source: ByteSource
    temp_folder: str | os.PathLike[str] | None = None

    def bounding(self, plan: Bounded) -> Bounding:
        """Return how the records of a plan are bounded."""
        return Bounding(
            privacy_unit=plan.privacy_unit,
            max_contributions=plan.max_contributions,
            random_words=partial(random_words, self.source),
            temp_folder=self.temp_folder,
        )


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the noise of a release comes from, and what the release was charged to."""

    rng: np.random.Generator | None = None
    charge: Charge | None = None

    @property
    def source(self) -> ByteSource:
        """The source of random bytes."""
        return noise_source(self.rng)

    def to_dict(self) -> dict[str, Any]:
        """Return the origin as in ``attrs["dp"]``."""
        rng = "operating system" if self.rng is None else "numpy.random.Generator: not private"
        return {"rng": rng, **({} if self.charge is None else {"ledger": self.charge.to_dict()})}


class Outcome(NamedTuple):
    """A released table, its released totals, and the likely causes if it is nearly empty."""

    table: Any
    totals: Totals
    causes: str


Finish = Callable[[Origin, Done], Outcome]
"""Adds the noise to what was read, and makes the table. Calls `Done` between its steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A plan together with its data, whose public arguments have been checked.

    `read` reads the records and adds no noise: what it returns holds exact values. `effort` is the work of
    reading, relative to the `steps` of the function that `read` returns.
    """

    plan: Costed
    read: Callable[[Resources], Finish]
    effort: int = 1
    steps: Sequence[Step]


def carry_out(releases: Mapping[Name, Release], options: Mapping[str, Any]) -> dict[Name, Any]:
    """Carry out releases, charged together if the options name an account; return the tables by name."""
    running = with_defaults(RUNNING, options)
    rng, account = running["rng"], _account(running)
    origin = Origin(rng)
    resources = Resources(origin.source, checked_folder(running["temp_folder"]))
    requested = datetime.now(UTC)
    plans: dict[Hashable, Costed] = {name: each.plan for name, each in releases.items()}
    charging: dict[str, Any] = {"note": running["note"], "allow_repeat": running["allow_repeat"]}
    if account is not None:
        account.check(plans, **charging)
    steps = [("reading the records", each.effort) for each in releases.values()]
    steps += [step for each in releases.values() for step in each.steps]
    outcomes: dict[Name, Outcome] = {}
    with progress_bar(running["progress"], steps) as done:
        unfinished: list[tuple[Name, Finish]] = []
        for name, each in releases.items():
            unfinished.append((name, each.read(resources)))
            done()
        charges = {} if account is None else account.charge(plans, **charging, requested=requested)
        while unfinished:
            name, finish = unfinished.pop(0)  # so that exact values are freed one by one
            outcomes[name] = finish(Origin(rng, charges.get(name)), done)
            if unfinished:
                done()
    tables = {name: outcome.table for name, outcome in outcomes.items()}
    released = next(iter(tables.values())) if len(tables) == 1 else tables
    if account is not None:
        _mark_released(account, charges, released)
    for outcome in outcomes.values():
        warn_if_empty(released, outcome.totals, outcome.causes)
    return tables


def _mark_released(account: Chargeable, charges: Mapping[Hashable, Charge], released: Any) -> None:
    """Mark charges as released. If that fails, the tables must not be lost, so there is only a warning."""
    try:
        account.mark_released(charges.values())
    except DPTreeError as error:
        warn(
            f"{error.fact} So the ledger will list {len(charges)} charges as without output, though they "
            "have one.",
            hint=error.hint,
            released=released,
        )


def checked_folder(folder: Any) -> str | None:
    """Check that temporary files can be written to a folder."""
    if folder is None:
        return None
    path = os.fspath(folder) if isinstance(folder, os.PathLike) else folder
    if isinstance(path, str) and os.path.isdir(path) and os.access(path, os.W_OK):
        return path
    raise ArgumentError(
        "temp_folder",
        f"must be a folder that can be written to, not {quote(path)}.",
        hint="make the folder first, or leave it out to use that of tempfile.gettempdir().",
    )


def _account(running: Mapping[str, Any]) -> Chargeable | None:
    """Check the options that belong to a ledger, and return the account."""
    account, note, allow_repeat = running["ledger"], running["note"], running["allow_repeat"]
    if not isinstance(allow_repeat, bool):
        raise ArgumentError(
            "allow_repeat",
            f"must be True or False, not {quote(allow_repeat)}.",
            hint="True charges the same plan with the same note again.",
        )
    if account is None:
        for name, is_given in {"note": note is not None, "allow_repeat": allow_repeat}.items():
            if is_given:
                raise ArgumentError(
                    name,
                    "has no meaning without `ledger`.",
                    hint='charge an account, as in ledger=dpt.Ledger.open("budget.sqlite")["patients"].',
                )
        return None
    if not isinstance(account, Chargeable):
        raise ArgumentError(
            "ledger",
            f"must be an account of a ledger, not {kind_of_object(account)}.",
            hint='name the account, as in ledger=dpt.Ledger.open("budget.sqlite")["patients"].',
        )
    if running["rng"] is not None:
        raise ArgumentError(
            "rng",
            "cannot be given together with `ledger`: noise that can be repeated protects nobody.",
            hint="leave `rng` out for a release, or `ledger` for a test.",
        )
    if note is None:
        raise ArgumentError(
            "note",
            "must be given together with `ledger`: it says what the release is for.",
            hint='for example note="2026-03". The same plan with the same note is released only once.',
        )
    return account

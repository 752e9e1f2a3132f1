"""How releases are carried out: read the records, charge the ledger, add the noise.

The order is the same for all kinds of plans, for frames and arrays, and for several releases together:

1. The public arguments are checked, and the account is asked whether it would refuse.
2. The records of all releases are read. What was read is secret, and stays in memory.
3. The charges are committed to disk: those of all releases, or none.
4. Only now is noise drawn, and the tables are made.
5. The account keeps the tables, before they are returned.

An error in the first two steps therefore costs nothing. A crash after the third loses budget, never privacy.
A release that was kept is returned in the first step: nothing is read, charged or drawn again.
The account never sees records, and the time that it stores is that of the first step: how long reading takes
depends on the records. (So does the time of a script's next release, which is requested when this is done.)
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn, Protocol, TypeVar

import numpy as np
import xarray as xr

from pandas_dptree.errors import (
    ArgumentError,
    ChargedError,
    DPTreeError,
    RepeatedReleaseError,
    kind_of_object,
    quote,
    warn,
)
from pandas_dptree.ingest.reading import Bounding
from pandas_dptree.mechanisms.arguments import noise_source
from pandas_dptree.mechanisms.sampling import ByteSource, random_words
from pandas_dptree.output.doubtful_tables import Doubt
from pandas_dptree.output.empty_tables import TABLE, Totals, warn_if_empty
from pandas_dptree.output.progress import Done, Step, progress_bar
from pandas_dptree.output.table_digest import state_digest
from pandas_dptree.plans.charging import Charge, Chargeable, Costed, Kept, Output
from pandas_dptree.plans.options import RUNNING, with_defaults
from pandas_dptree.privacy.caps import Caps

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

    @property
    def caps(self) -> Caps:
        """The number of records that it may keep in a node of each level."""


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
            caps=plan.caps,
            random_words=partial(random_words, self.source),
            temp_folder=self.temp_folder,
        )


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the noise of a release comes from, what it was charged to, and whether its estimates are kept."""

    rng: np.random.Generator | None = None
    charge: Charge | None = None
    keeps_linear: bool = False

    @property
    def source(self) -> ByteSource:
        """The source of random bytes."""
        return noise_source(self.rng)

    def to_dict(self) -> dict[str, Any]:
        """Return the origin as in ``attrs["dp"]``."""
        rng = "operating system" if self.rng is None else "numpy.random.Generator: not private"
        return {"rng": rng, **({} if self.charge is None else {"ledger": self.charge.to_dict()})}


class Outcome(NamedTuple):
    """A released table, its released totals, the likely causes if it is nearly empty, and other doubts.

    `linear` has the linear estimates of quantities of which the table shows others, if a ledger keeps them.
    """

    table: Any
    totals: Totals
    causes: str
    doubts: Sequence[Doubt] = ()
    linear: Mapping[str, Sequence[Any]] = MappingProxyType({})


Finish = Callable[[Origin, Done], Outcome]
"""Adds the noise to what was read, and makes the table. Calls `Done` between its steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A plan together with its data, whose public arguments have been checked.

    `read` reads the records and adds no noise: what it returns holds exact values. `effort` is the work of
    reading, relative to the `steps` of what it returns; `returns` tells whether a kept table has the right
    form.
    """

    plan: Costed
    read: Callable[[Resources], Finish]
    effort: int = 1
    steps: Sequence[Step]
    returns: Callable[[Any], bool] = lambda table: not isinstance(table, xr.DataTree)


def carry_out(
    releases: Mapping[Name, Release],
    options: Mapping[str, Any],
    linear: dict[Name, Mapping[str, Sequence[Any]]] | None = None,
) -> dict[Name, Any]:
    """Carry out releases, charged together if the options name an account; return the tables by name.

    The option `name` is the name of the only release, which has none otherwise. `linear` is filled with what
    an account would keep beside each new table: `Outcome.linear`.
    """
    running = with_defaults(RUNNING, options)
    rng, account = running["rng"], _account(running)
    origin = Origin(rng)
    resources = Resources(origin.source, checked_folder(running["temp_folder"]))
    requested = datetime.now(UTC)
    kept: Mapping[Name, Kept] = {}
    charging: dict[str, Any] = {"note": running["note"], "allow_repeat": running["allow_repeat"]}
    names: dict[Name, Hashable] = {name: running["name"] if name is None else name for name in releases}
    if account is not None and not running["allow_repeat"]:
        kept = _kept(account, releases, names, running["note"])
    releases = {name: each for name, each in releases.items() if name not in kept}
    plans = {names[name]: each.plan for name, each in releases.items()}
    if account is not None and plans:
        account.check(plans, **charging)
    texts = (
        {} if account is None else {name: json.dumps(each.plan.to_dict()) for name, each in releases.items()}
    )
    steps = [("reading the records", each.effort) for each in releases.values()]
    steps += [step for each in releases.values() for step in each.steps]
    outcomes: dict[Name, Outcome] = {}
    charges: Mapping[Hashable, Charge] = {}
    with progress_bar(running["progress"], steps) as done:
        unfinished: list[tuple[Name, Finish]] = []
        for name, each in releases.items():
            unfinished.append((name, each.read(resources)))
            done()
        if account is not None and plans:
            charges = account.charge(plans, **charging, requested=requested)
        try:
            while unfinished:
                name, finish = unfinished.pop(0)  # so that exact values are freed one by one
                charge = charges.get(names[name])
                outcomes[name] = finish(Origin(rng, charge, linear is not None or charge is not None), done)
                with suppress(Exception):  # without its digest, a table is still a table
                    state_digest(outcomes[name].table)
                if unfinished:
                    done()
        except Exception as error:
            if account is None:
                raise
            if outcomes:
                finished = {name: each.table for name, each in outcomes.items()}
                _keep(account, _outputs(outcomes, charges, names, texts), finished)
            _say_charged([charges[names[name]] for name in releases if name not in outcomes], error)
    if linear is not None:
        linear.update({name: each.linear for name, each in outcomes.items()})
    tables = {name: kept[name].table if name in kept else outcomes[name].table for name in names}
    released = next(iter(tables.values())) if len(tables) == 1 else tables
    if account is not None and charges:
        _keep(account, _outputs(outcomes, charges, names, texts), released)
    _warn_of_kept(kept, released)
    for name, outcome in outcomes.items():
        named = TABLE if name is None else f"{TABLE} {quote(name)}"
        if not warn_if_empty(released, outcome.totals, outcome.causes, named):
            for doubt in outcome.doubts:
                warn(doubt.fact.replace(TABLE, named, 1), hint=doubt.hint, released=released)
    return tables


def _kept(
    account: Chargeable, releases: Mapping[Name, Release], names: Mapping[Name, Hashable], note: str
) -> dict[Name, Kept]:
    """Return the releases that the account has kept, by name; they must be what the caller asks for."""
    found = account.kept({names[name]: each.plan for name, each in releases.items()}, note)
    kept = {name: found[names[name]] for name in releases if names[name] in found}
    for name, each in kept.items():
        if not releases[name].returns(each.table):
            raise RepeatedReleaseError(
                f"This plan was released with the note {quote(note)} before, as a "
                f"{type(each.table).__name__} of another form or other dimensions: charge {each.number}, "
                f"requested at {each.requested}. Nothing was charged now.",
                account=each.account,
                number=each.number,
                requested=each.requested,
                released=True,
                hint=f"ledger.table({each.number}) returns it. For this release, pass a name of its own, as "
                "name=..., another note, or allow_repeat=True.",
            )
    return kept


def _warn_of_kept(kept: Mapping[Name, Kept], released: Any) -> None:
    """Say which tables are not new."""
    for name, each in kept.items():
        what = "This table" if name is None else f"The table {quote(name)}"
        warn(
            f"{what} was released before, as requested at {each.requested} (charge {each.number}), and is "
            "returned as it was kept. No records were read, and nothing was charged.",
            hint=f"ledger.table({each.number}) returns it without this warning. For corrected records, pass "
            "another note; or allow_repeat=True, which is charged in full.",
            released=released,
        )


def _outputs(
    outcomes: Mapping[Name, Outcome],
    charges: Mapping[Hashable, Charge],
    names: Mapping[Name, Hashable],
    texts: Mapping[Name, str],
) -> dict[Charge, Output]:
    """Return what each charge was for."""
    return {
        charges[names[name]]: Output(table=each.table, linear=each.linear, plan=texts[name])
        for name, each in outcomes.items()
    }


def _say_charged(charges: Sequence[Charge], error: Exception) -> NoReturn:
    """Raise an error that says what was charged for nothing."""
    raise ChargedError(
        f"The release failed after it was charged ({_in_words(charges)}), with a "
        f"{type(error).__name__}. There is no table.",
        charges=tuple(charges),
        hint="the budget is spent. Find the cause first; then allow_repeat=True or another note releases "
        "again, charged in full.",
    ) from error


def _keep(account: Chargeable, outputs: Mapping[Charge, Output], released: Any) -> None:
    """Keep the tables of charges. If that fails, they must not be lost, so there is only a warning."""
    try:
        account.keep(outputs)
    except Exception as error:
        fact = f"The table cannot be kept, because of a {type(error).__name__}."
        hint = "find the cause before the next release."
        if isinstance(error, DPTreeError):
            fact, hint = error.fact, error.hint
        warn(
            f"{fact} The release was charged ({_in_words([*outputs])}), but its table could not be kept: the "
            "ledger lists it as without output, and cannot return it again. So save it now.",
            hint=hint,
            released=released,
        )


def _in_words(charges: Sequence[Charge]) -> str:
    """List charges: account, part, number and note."""
    return "; ".join(
        f"account {quote(each.account)}{'' if each.part is None else f', part {quote(each.part)}'}, charge "
        f"{each.number}, note {quote(each.note)}"
        for each in charges[:8]
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
    name = running["name"]
    if not isinstance(allow_repeat, bool):
        raise ArgumentError(
            "allow_repeat",
            f"must be True or False, not {quote(allow_repeat)}.",
            hint="True charges the same plan with the same note again.",
        )
    if account is None:
        given = {"note": note is not None, "name": name is not None, "allow_repeat": allow_repeat}
        for argument, is_given in given.items():
            if is_given:
                raise ArgumentError(
                    argument,
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
    if name is not None and not isinstance(name, str):
        raise ArgumentError(
            "name", f"must be text, not {quote(name)}.", hint='name the table, for example name="visits".'
        )
    return account

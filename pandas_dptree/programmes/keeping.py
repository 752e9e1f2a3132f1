"""Where a run finds and keeps released tables: in a ledger, or in a folder if there is none."""

from __future__ import annotations

import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote as in_url

import pandas as pd

from pandas_dptree.errors import DPTreeError, quote
from pandas_dptree.ledger.accounts import Account
from pandas_dptree.ledger.book import Ledger
from pandas_dptree.ledger.kept_tables import from_bytes, to_bytes
from pandas_dptree.ledger.releases import prepared_releases
from pandas_dptree.ledger.store import sync_folder
from pandas_dptree.output.atomic_files import write_whole
from pandas_dptree.output.derived.estimates import with_linear
from pandas_dptree.plans.base import Plan
from pandas_dptree.plans.charging import Charge, Chargeable, Chargeables, Kept, Output
from pandas_dptree.plans.options import Running
from pandas_dptree.plans.running import carry_out
from pandas_dptree.programmes.programme import Budget, Checked

__all__ = ["Earlier", "Shelf", "is_saved", "locked", "shelf_of", "taken"]

Plans = Mapping[str, Plan[Any]]


class Earlier(NamedTuple):
    """An earlier release of a table for the same period: its plan, whether it was saved, and its charge."""

    digest: str
    saved: bool
    charge: int | None = None
    requested: str | None = None


class Shelf(ABC):
    """Where the released tables of a period are kept, by their names.

    A release is identified by its ledger, account, part, note and name, and the digest of its plan, not by
    its source: records that were moved or converted are not released again. So programmes that charge an
    account with the same note, name and plan share a release, whatever their records are; `origin` names it.
    """

    ledger: Ledger | None

    @abstractmethod
    def kept(self, plans: Plans) -> dict[str, Any]:
        """Return the tables that were released by these plans."""

    @abstractmethod
    def earlier(self, name: str) -> list[Earlier]:
        """Return all releases of a table, by any plan."""

    @abstractmethod
    def release(self, plans: Plans, data: Mapping[str, Any], options: Running) -> dict[str, Any]:
        """Release tables, charged together, and keep them."""

    @abstractmethod
    def with_estimates(self, name: str, plan: Plan[Any], table: Any) -> Any:
        """Return a table with its unbiased estimates, of which shares and changes are computed."""

    @abstractmethod
    def before(self, name: str) -> Any | None:
        """Return the table of the period before; None if there is none."""

    @abstractmethod
    def origin(self, name: str, plan: Plan[Any]) -> str:
        """Say when a table was kept, and by which charge of whom."""

    @abstractmethod
    def balance(self) -> str:
        """Say what is left; nothing if nobody adds it up."""


@contextmanager
def shelf_of(checked: Checked, allow_repeat: frozenset[str]) -> Iterator[Shelf]:
    """Open the ledger of a programme; without one, its tables are kept in the folder of its outputs."""
    budget = checked.budget
    if budget.ledger is None:
        yield _InFolder(checked.outputs.folder, checked.outputs.before)
        return
    with Ledger.open(budget.ledger) as ledger:
        account = ledger[str(budget.account)]
        account = account if budget.part is None else account.part(budget.part)
        yield _InLedger(ledger, account, budget, allow_repeat)


@dataclass(slots=True)
class _InLedger(Shelf):
    """Tables that a ledger keeps."""

    ledger: Ledger
    account: Account
    budget: Budget
    allow_repeat: frozenset[str]

    def kept(self, plans: Plans) -> dict[str, Any]:
        found = self.account.kept({**plans}, str(self.budget.note))  # type: ignore[dict-item]
        return {name: found[name].table for name in plans if name in found}

    def earlier(self, name: str) -> list[Earlier]:
        charges = self._charges(name, self.budget.note)
        rows = zip(*(charges[each] for each in ("plan", "released", "number", "time")), strict=True)
        return [
            Earlier(plan, bool(released), int(number), f"{time:%Y-%m-%d %H:%M:%S}")
            for plan, released, number, time in rows
        ]

    def release(self, plans: Plans, data: Mapping[str, Any], options: Running) -> dict[str, Any]:
        charging: Running = {**options, "ledger": _Repeating(self.account, self.allow_repeat)}
        charging["note"] = str(self.budget.note)
        return dict(carry_out(prepared_releases(plans, data), charging))  # type: ignore[arg-type]

    def with_estimates(self, name: str, plan: Plan[Any], table: Any) -> Any:
        charges = self._charges(name, self.budget.note)
        return self._last(charges[charges["plan"] == plan.digest], otherwise=table)

    def before(self, name: str) -> Any | None:
        return self._last(self._charges(name, self.budget.note_before), otherwise=None)

    def origin(self, name: str, plan: Plan[Any]) -> str:
        charges = self._charges(name, self.budget.note)
        last = charges[(charges["plan"] == plan.digest) & charges["table"].notna()].iloc[-1]
        return f"{last['time']:%Y-%m-%d %H:%M:%S} UTC by {quote(last['user'])}, charge {last['number']}"

    def _last(self, charges: pd.DataFrame, otherwise: Any) -> Any:
        """Return the last table that was kept for one of these charges."""
        kept = charges["number"][charges["table"].notna()]
        return otherwise if kept.empty else self.ledger.table(int(kept.iloc[-1]), linear=True)

    def balance(self) -> str:
        return repr(self.account)

    def _charges(self, name: str, note: str | None) -> pd.DataFrame:
        """Return all charges of a table with a note, the oldest first."""
        charges = self.ledger.to_frame()
        part = charges["part"].isna() if self.budget.part is None else charges["part"] == self.budget.part
        own = (charges["account"] == self.account.name) & part & (charges["name"] == name)
        return charges[own & (charges["note"] == note)]


@dataclass(frozen=True, slots=True)
class _Repeating(Chargeable):
    """An account to which some tables may be charged once more, by another plan."""

    account: Account
    names: frozenset[str]

    def kept(self, plans: Chargeables, note: str) -> Mapping[Any, Kept]:
        return self.account.kept(plans, note)

    def check(self, plans: Chargeables, note: str, *, allow_repeat: bool) -> None:
        self.account.check(plans, note, allow_repeat=allow_repeat or self.names)

    def charge(
        self, plans: Chargeables, note: str, *, allow_repeat: bool, requested: datetime
    ) -> Mapping[Any, Charge]:
        again = allow_repeat or self.names
        return self.account.charge(plans, note, allow_repeat=again, requested=requested)

    def keep(self, outputs: Mapping[Charge, Output]) -> None:
        self.account.keep(outputs)


@dataclass(slots=True)
class _InFolder(Shelf):
    """Tables in the folder ``.released`` of the outputs: in the bytes that a ledger would keep."""

    outputs: Path
    previous: Path | None
    ledger: None = None

    def kept(self, plans: Plans) -> dict[str, Any]:
        paths = {name: self._path(name, str(plan.digest)) for name, plan in plans.items()}
        return {name: _read(path) for name, path in paths.items() if path.exists()}

    def earlier(self, name: str) -> list[Earlier]:
        return [Earlier(path.stem.rpartition("-")[2], saved=True) for path in _of_table(self.outputs, name)]

    def release(self, plans: Plans, data: Mapping[str, Any], options: Running) -> dict[str, Any]:
        linear: dict[Any, Any] = {}
        tables = carry_out(prepared_releases(plans, data), options, linear)
        released = {name: tables[name] for name in plans}
        for name, table in released.items():
            path = self._path(name, str(plans[name].digest))
            content = to_bytes({"table": table}, linear[name])
            path.parent.mkdir(exist_ok=True)
            write_whole(path, partial(_write_synced, content))
            sync_folder(path.parent)
        sync_folder(self.outputs)
        return released

    def with_estimates(self, name: str, plan: Plan[Any], table: Any) -> Any:
        return _read(self._path(name, str(plan.digest)), linear=True)

    def before(self, name: str) -> Any | None:
        found = [] if self.previous is None else _of_table(self.previous, name)
        return _read(found[-1], linear=True) if found else None

    def origin(self, name: str, plan: Plan[Any]) -> str:
        kept = self._path(name, str(plan.digest)).stat().st_mtime
        return f"{datetime.fromtimestamp(kept, UTC):%Y-%m-%d %H:%M:%S} UTC"

    def balance(self) -> str:
        return ""

    def _path(self, name: str, digest: str) -> Path:
        return _released(self.outputs) / f"{in_url(name, safe='')}-{digest}.table"


def _released(outputs: Path) -> Path:
    return outputs / ".released"


def is_saved(outputs: Path, name: str) -> bool:
    """Whether a folder of outputs holds a released table of this name, of whatever plan."""
    return bool(_of_table(outputs, name))


def _of_table(outputs: Path, name: str) -> list[Path]:
    """List the files of a table, the newest last."""
    found = _released(outputs).glob("*.table")
    own = [path for path in found if path.stem.rpartition("-")[0] == in_url(name, safe="")]
    return sorted(own, key=lambda path: path.stat().st_mtime_ns)


def _read(path: Path, *, linear: bool = False) -> Any:
    whole, estimates = from_bytes(path.read_bytes())
    return with_linear(whole["table"], estimates) if linear else whole["table"]


def _write_synced(content: bytes, path: Path) -> None:
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def taken(shelf: Shelf, plans: Plans) -> list[str]:
    """Say of tables which release is taken, those of one charge or moment together."""
    names: dict[str, list[str]] = {}
    for name, plan in plans.items():
        names.setdefault(shelf.origin(name, plan), []).append(name)
    return [f"{', '.join(own)} as kept on {origin}." for origin, own in names.items()]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make a folder, and hold it for one run: a lock of SQLite, which ends with the process."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / ".lock"
    if file.is_symlink() or (file.exists() and file.stat().st_nlink > 1):  # to a ledger, perhaps
        raise DPTreeError(
            f"The file .lock in {quote(str(folder))} is a link, and would lock another file.",
            hint="remove the link.",
        )
    with closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as lock:
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            is_held = error.sqlite_errorname.startswith("SQLITE_BUSY")
            raise DPTreeError(
                f"Another run is writing to {quote(str(folder))}."
                if is_held
                else f"The folder {quote(str(folder))} cannot be written to.",
                hint="wait until it has ended." if is_held else "check its permissions, or name another one.",
            ) from None
        yield

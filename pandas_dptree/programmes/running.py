"""How a programme is run for one period: read, charge, draw, keep, write.

Each step may be the last before a crash, and the next run goes on from what is on disk:

1. The ledger, or the folder ``.released`` of the outputs, is asked which tables were released. These are
   taken as they were kept: no record is read for them, and nothing is charged.
2. The records of the others are read; nothing is on disk yet.
3. All of them are charged in one transaction. A run that ends between this and the next step has lost its
   budget: the next one says so, and charges nothing.
4. The noise of all is drawn, and the tables are kept.
5. Files and page are made of the kept tables.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from pandas_dptree.errors import (
    ArgumentError,
    ChargedError,
    DPTreeError,
    RefusedReleaseError,
    did_you_mean,
    listed,
    quote,
)
from pandas_dptree.plans.options import Running
from pandas_dptree.programmes.keeping import Earlier, Plans, Shelf, locked, shelf_of, taken
from pandas_dptree.programmes.outputs import clear_unfinished, write_outputs
from pandas_dptree.programmes.programme import Checked, Period
from pandas_dptree.programmes.sources import opened

__all__ = ["Ran", "run_period"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a run has done.

    Attributes
    ----------
    tables : mapping of str to released table
        All tables of the programme, by name.
    released : tuple of str
        The names of those that are new; the others were kept before.
    files : tuple of str
        The names of the files that were written, in the folder of the outputs.
    text : str
        What was done, in words.
    """

    tables: Mapping[str, Any]
    released: tuple[str, ...]
    files: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        """Return what was done, in words."""
        return self.text


def run_period(
    checked: Checked,
    *,
    allow_repeat: Collection[str] = (),
    progress: bool = False,
    temp_folder: str | None = None,
    say: Callable[[str], object] = print,
) -> Ran:
    """Run a checked programme for its period.

    A table in `allow_repeat` may be released once more by another plan, or after a charge without a table.

    Raises
    ------
    RefusedReleaseError
        If a table was released for this period by another plan. Nothing was charged or written.
    ChargedError
        If a table was charged, now or earlier, and not kept. The files of those that were kept are written.
    LedgerError
        If the account refuses. Nothing was charged.
    DPTreeError
        If another run has the folder, or a file cannot be written.
    """
    again = _checked_names(allow_repeat, checked)
    plans: Plans = {name: table.plan for name, table in checked.tables.items()}
    folder = checked.outputs.folder
    try:
        with locked(folder), shelf_of(checked, again) as shelf:
            clear_unfinished(folder)
            tables = shelf.kept(plans)
            new = {name: plan for name, plan in plans.items() if name not in tables}
            earlier = {name: shelf.earlier(name) for name in new if name not in again}
            lost = _lost(new, earlier)
            _refuse_edited([name for name, found in earlier.items() if found and name not in lost])
            if not lost and new:
                if shelf.ledger is None:
                    say(_nobody_adds_up(checked))
                if checked.period is not None and checked.period.end > date.today():
                    say(_not_over(checked.period))
                tables |= _released(checked, new, shelf, {"progress": progress, "temp_folder": temp_folder})
            tables = {name: tables[name] for name in plans if name in tables}
            files = write_outputs(checked, tables, shelf, say) if tables else []
            if lost:
                raise _charged_before(lost)
            text = _in_words(checked, new, files, shelf)
    except OSError as error:
        raise DPTreeError(
            f"The folder {quote(str(folder))} cannot be read or written: {error.strerror}. What was kept "
            "stays kept.",
            hint="correct that, and run again: tables that were kept cost nothing.",
        ) from None
    return Ran(tables=tables, released=tuple(new), files=tuple(files), text=text)


def _checked_names(allow_repeat: Collection[str], checked: Checked) -> frozenset[str]:
    for name in allow_repeat:
        if name not in checked.tables:
            raise ArgumentError(
                "allow_repeat",
                f"names no table of the programme: {quote(name)}.",
                hint=f"{did_you_mean([name], checked.tables)}its tables are {listed(checked.tables)}.",
            )
    return frozenset(allow_repeat)


def _lost(new: Plans, earlier: Mapping[str, list[Earlier]]) -> dict[str, Earlier]:
    """Return the tables that were charged and not saved: by this plan, or by others alone."""
    found = {}
    for name, releases in earlier.items():
        unsaved = [each for each in releases if not each.saved]
        same = [each for each in unsaved if each.digest == new[name].digest]
        if same or (unsaved and len(unsaved) == len(releases)):
            found[name] = (same or unsaved)[-1]
    return found


def _released(checked: Checked, plans: Plans, shelf: Shelf, options: Running) -> dict[str, Any]:
    """Read the records of plans, and release their tables together."""
    names = {name: checked.tables[name].source for name in plans}
    with opened([checked.sources[name] for name in dict.fromkeys(names.values())]) as records:
        return shelf.release(plans, {name: records[source] for name, source in names.items()}, options)


def _refuse_edited(names: list[str]) -> None:
    """Refuse tables that were released by another plan."""
    if names:
        raise RefusedReleaseError(
            f"The plan of {', '.join(names)} is not that of the earlier release for this period: it would "
            "be a new release about the same people. Nothing was charged or written now.",
            hint="undo the edit of the programme; or release it once more, charged in full: "
            f"{_repeating(names)}.",
        )


def _repeating(names: Iterable[str]) -> str:
    """Return what allows that tables are released again, in Python and in the shell."""
    return (
        f"allow_repeat={[*names]!r}, or in the shell {' '.join(f'--allow-repeat {name}' for name in names)}"
    )


def _charged_before(lost: Mapping[str, Earlier]) -> ChargedError:
    charges = "; ".join(
        f"{quote(name)}: charge {each.charge}, requested at {each.requested}" for name, each in lost.items()
    )
    return ChargedError(
        f"Charged earlier, and no output was saved ({charges}). Nothing is refunded, and nothing was charged "
        "now. The process may still be running, or it ended before the tables were kept.",
        charges=tuple(each.charge for each in lost.values()),
        hint=f"if it has ended, release them once more, charged in full: {_repeating(lost)}.",
    )


def _nobody_adds_up(checked: Checked) -> str:
    return (
        "No ledger: nobody adds up what these people lose by all releases together. What was released is "
        f"known by {_place(checked)}/.released alone; without that folder, it is released again."
    )


def _not_over(period: Period) -> str:
    return (
        f"The {period.unit} {period.text} is not over: its table is kept as it is now, and records that come "
        "later are never added."
    )


def _in_words(checked: Checked, new: Plans, files: list[str], shelf: Shelf) -> str:
    """Say what was done."""
    if new:
        done = f"released {', '.join(new)}."
    else:
        done = "all tables were released before; no records were read, and nothing was charged."
    kept = {name: table.plan for name, table in checked.tables.items() if name not in new}
    period = checked.period
    done = done.capitalize() if period is None else f"{period.unit.capitalize()} {period.text}: {done}"
    told = [f"Taken: {each}" for each in taken(shelf, kept)]
    return "\n".join(
        filter(None, [done, *told, shelf.balance(), f"Wrote {_place(checked)}/: {_grouped(files)}"])
    )


def _place(checked: Checked) -> str:
    """Return the folder of the outputs, as seen from that of the programme if it is within it."""
    folder = checked.outputs.folder
    within = folder.is_relative_to(checked.folder)
    return (folder.relative_to(checked.folder) if within else folder).as_posix()


def _grouped(files: list[str]) -> str:
    """List files, those of one table together: ``visits.{csv,parquet}``."""
    endings: dict[str, list[str]] = {}
    for name in files:
        stem, _, ending = name.partition(".")
        endings.setdefault(stem, []).append(ending)
    return "  ".join(
        f"{stem}.{each[0]}" if len(each) == 1 else f"{stem}.{{{','.join(each)}}}"
        for stem, each in endings.items()
    )

"""Programmes: reports from one file."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path
from typing import Any, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pandas_dptree.errors import ArgumentError, did_you_mean, quote, why_unreadable
from pandas_dptree.programmes.checking import checked
from pandas_dptree.programmes.describing import described
from pandas_dptree.programmes.lines import Path as Keys
from pandas_dptree.programmes.lines import lines_of
from pandas_dptree.programmes.periods import UNITS, last_complete, period_of, periods_of
from pandas_dptree.programmes.problems import Problem, Problems, ProgrammeError
from pandas_dptree.programmes.programme import Checked, Period
from pandas_dptree.programmes.released import Released
from pandas_dptree.programmes.running import Ran, run_period
from pandas_dptree.signatures import public

__all__ = ["Programme"]


class Programme:
    """A report from one file: sources, hierarchies, a budget, tables, outputs and a page.

    `Programme.from_file` reads one, and `Programme.from_dict` makes the same of a mapping. Nothing
    else is read until `check`.

    Attributes
    ----------
    path : Path or None
        The file; None if it was made from a mapping.
    each : {"day", "week", "month", "quarter", "year"} or None
        The periods of which each is a run of its own.

    Notes
    -----
    **Privacy**: a programme is public, and so is everything that `check`, `describe`, `periods` and `due`
    tell. They read public files, the ledger, and the names and types of the columns of records.

    Examples
    --------
    >>> import tempfile, pandas_dptree as dpt
    >>> folder = tempfile.TemporaryDirectory()
    >>> dpt.datasets.clinic_visits(500).to_csv(f"{folder.name}/visits.csv", index=False)
    >>> programme = dpt.Programme.from_dict({
    ...     "format": "dptree 1",
    ...     "sources": {"visits": {"files": "visits.csv", "privacy_unit": "person", "max_contributions": 2}},
    ...     "hierarchies": {"place": {"by": ["region"], "domain": list(dpt.datasets.REGIONS)}},
    ...     "budget": {"rho": 0.1},
    ...     "tables": {"visits": {"verb": "counts", "by": "place"}},
    ...     "outputs": {"folder": "published"},
    ... }, folder=folder.name)
    >>> programme.check().tables["visits"].plan.rho
    0.1
    >>> folder.cleanup()
    """

    def __init__(
        self, document: Mapping[str, Any], *, folder: Path, path: Path | None, lines: Mapping[Keys, int]
    ) -> None:
        self.path = path
        self.each: str | None = None
        self._document, self._folder, self._lines = dict(document), folder, lines
        given = self._document.get("each")
        if given is not None:
            if not isinstance(given, str) or given not in UNITS:
                meant = did_you_mean([given], UNITS)
                self._fail(
                    ("each",), f"{quote(given)} is no period.", f"{meant}choose one of {', '.join(UNITS)}."
                )
            self.each = given

    @classmethod
    @public
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """Read a programme from a TOML file. Its paths are relative to the folder of the file.

        Parameters
        ----------
        path : path

        Raises
        ------
        ProgrammeError
            If the file cannot be read, or is no TOML.
        """
        file = Path(path)
        try:
            text = file.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError:
            raise _unreadable(file, "it is not UTF-8", None) from None
        except OSError:
            raise _unreadable(file, why_unreadable(file, "it cannot be opened"), None) from None
        try:
            document = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
            place = re.search(
                r"^(.*?) \(at (?:line (\d+), column \d+|end of document)\)$", str(error), re.DOTALL
            )
            fact = "it is no TOML" if place is None else place[1]
            line = text.count("\n") + 1 if place is None or place[2] is None else int(place[2])
            raise _unreadable(file, fact, line) from None
        return cls(document, folder=file.resolve().parent, path=file, lines=lines_of(text))

    @classmethod
    @public
    def from_dict(cls, document: Mapping[str, Any], *, folder: str | os.PathLike[str] = ".") -> Self:
        """Make a programme from a mapping with the keys of a file.

        Parameters
        ----------
        document : mapping
        folder : path, default "."
            What its paths are relative to.

        Raises
        ------
        ArgumentError
            If `document` is no mapping.
        """
        if not isinstance(document, Mapping):
            raise ArgumentError(
                "document", f"must be a mapping, not {quote(document)}.", hint="read a file by from_file."
            )
        return cls(document, folder=Path(folder).resolve(), path=None, lines={})

    @public
    def check(self, period: str | Period | None = None) -> Checked:
        """Check everything, and plan every table, for one period. Nothing is charged or written.

        Parameters
        ----------
        period : str, optional
            Such as ``"2025-03"``. Must be given exactly if the programme has ``each``.

        Raises
        ------
        ProgrammeError
            With everything that is wrong.
        ArgumentError
            If `period` is none of the programme's.
        """
        problems = Problems(self._lines, f"{self._folder}{os.sep}")
        if self.each is None and period is not None:
            problems.add((), "lacks each, and a period is asked for.", 'add each = "month" above the tables.')
            period = None
        return checked(self._document, problems, self.path, self._folder, self._period(period))

    @public
    def describe(self, period: str | Period | None = None) -> str:
        """Return what a run would do, in words; what ``dptree run --dry-run`` prints.

        Parameters
        ----------
        period : str, optional
            As for `check`, which raises the same errors.
        """
        return described(self.check(period))

    @public
    def run(
        self,
        period: str | Period | None = None,
        *,
        allow_repeat: Collection[str] = (),
        progress: bool = False,
    ) -> Ran:
        """Release the tables for one period, and write the outputs and the page.

        What was released for this period before is taken as it was kept, and charged nothing.

        Parameters
        ----------
        period : str, optional
            As for `check`, which raises the same errors.
        allow_repeat : collection of str, optional
            Names of tables that may be released again by another plan, which is charged in full again.
        progress : bool, default False
            Whether to show a progress bar on standard error. Needs tqdm.

        Returns
        -------
        Ran
            What was done: ``tables``, the names of those newly ``released``, the ``files``, and it in words
            as ``text``.

        Raises
        ------
        LedgerError
            If the account refuses, or a table was charged and not kept.

        Notes
        -----
        **Privacy**: records are read, the account is charged for all tables in one transaction, and only
        then noise is drawn. Without a ledger nobody keeps the sum of what several runs spend.
        """
        return run_period(self.check(period), allow_repeat=allow_repeat, progress=progress)

    @public
    def periods(self, text: str) -> list[Period]:
        """Return the periods that a text means: ``"2025-03"`` or ``"2025-01..2025-03"``, the first first.

        Parameters
        ----------
        text : str

        Raises
        ------
        ArgumentError
            If it is no period of this programme.
        """
        return periods_of(self._unit(), text)

    @public
    def due(self, today: date | None = None) -> list[Period]:
        """Return the periods that are over and not yet released, the oldest first.

        They begin with the key ``first`` of the programme, or without it with the first period whose note the
        ledger has. A period is released if the ledger has the tables of this programme with its note,
        whatever their plans; without a ledger, if its folder has them in ``.released``.

        Parameters
        ----------
        today : date, optional
            By default the date in the time zone of the programme; of several zones, the earliest.

        Raises
        ------
        ArgumentError
            If the programme has no periods, or where they begin is not known.
        """
        unit = self._unit()
        released = Released(self._document, self._folder)
        stated = self._document.get("first")
        first = period_of(unit, stated) if isinstance(stated, str) else released.first(unit)
        if first is None:
            raise ArgumentError(
                "first", "must be given: no period is released yet.",
                hint=f'add first = "{last_complete(unit, date.today()).text}" above the first table.',
            )  # fmt: skip
        last = last_complete(unit, self._today() if today is None else today)
        found = periods_of(unit, f"{first.text}..{last.text}") if first.start <= last.start else []
        return [period for period in found if not released.has(period)]

    def _today(self) -> date:
        """Return the earliest date in the time zones of the programme, by default that of the machine."""
        dates = []
        for name in _values_of(self._document, "timezone"):
            with suppress(ZoneInfoNotFoundError, ValueError, OSError):  # which a check reports
                dates.append(datetime.now(ZoneInfo(name)).date())
        return min(dates, default=date.today())

    def _unit(self) -> str:
        """Return the unit of periods; raise ArgumentError if there is none."""
        if self.each is None:
            raise ArgumentError(
                "period",
                "has no meaning: the programme has no periods.",
                hint='add each = "month", or leave it out.',
            )
        return self.each

    def _period(self, period: str | Period | None) -> Period | None:
        """Return the period of a run."""
        if period is not None:
            return period_of(self._unit(), period.text if isinstance(period, Period) else period)
        if self.each is None:
            return None
        example = last_complete(self.each, date.today()).text
        raise ArgumentError(
            "period",
            f"must be given: the programme is run for each {self.each}.",
            hint=f'for example "{example}".',
        )

    def _fail(self, keys: Keys, fact: str, hint: str) -> None:
        """Raise what makes everything else meaningless."""
        problem = Problem(keys, self._lines.get(keys), fact, hint)
        raise ProgrammeError("The programme" if self.path is None else self.path.name, [problem])


def _values_of(part: Any, key: str) -> Iterator[str]:
    """Return the texts of a key, wherever it stands in a document."""
    if isinstance(part, Mapping):
        for name, value in part.items():
            if name == key and isinstance(value, str):
                yield value
            yield from _values_of(value, key)


def _unreadable(file: Path, why: str, line: int | None) -> ProgrammeError:
    hint = "correct the path, or the file."
    if line is not None:
        hint = "a bracket, brace or quotation mark may be missing here or above; texts need quotation marks."
    return ProgrammeError(file.name, [Problem((), line, f"cannot be read: {why}.", hint)])

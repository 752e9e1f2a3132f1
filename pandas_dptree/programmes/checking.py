"""Checking of a whole programme: every error at once, and a plan for every table."""

from __future__ import annotations

import importlib.util
import os
import re
import zoneinfo
from collections.abc import Mapping, Sequence
from datetime import datetime, time
from pathlib import Path
from typing import Any, Final

from pandas_dptree.errors import did_you_mean, listed, quote
from pandas_dptree.ingest.files.records import open_records
from pandas_dptree.ledger.releases import prepared_releases
from pandas_dptree.privacy.unit import ROWS
from pandas_dptree.programmes.budgets import budget_of
from pandas_dptree.programmes.hierarchies import levels_of
from pandas_dptree.programmes.overwriting import overwritten
from pandas_dptree.programmes.pages import page_of
from pandas_dptree.programmes.periods import period_of
from pandas_dptree.programmes.placeholders import NO_PLACEHOLDER, Placeholder
from pandas_dptree.programmes.problems import NONE, Problem, Problems, ProgrammeError, Section
from pandas_dptree.programmes.programme import (
    Budget,
    Checked,
    During,
    Outputs,
    Period,
    Source,
    Table,
)
from pandas_dptree.programmes.rehearsing import rehearse
from pandas_dptree.programmes.released import Released
from pandas_dptree.programmes.tables import Sketch, check_shares, loss_of, planned, sketch_of, spent_by, typed

__all__ = ["checked"]

FORMAT: Final = "dptree 1"

_ENGINES: Final = ("polars", "duckdb", "pyarrow", "dask", "spark")
_PACKAGES: Final = {"parquet": "pyarrow", "xlsx": "openpyxl", "zarr": "zarr"}
_KINDS: Final = ("parquet", "csv", "xlsx", "html", "zarr")


def checked(
    document: Mapping[str, Any], problems: Problems, path: Path | None, folder: Path, period: Period | None
) -> Checked:
    """Check a document for one period, and plan its tables; raise ProgrammeError with all that is wrong."""
    placeholder = Placeholder(period)
    whole = Section(problems, (), dict(document))
    _check_head(whole, placeholder)
    budget, account = budget_of(whole, placeholder, folder)
    levels = {
        name: levels_of(name, section, folder, placeholder) for name, section in whole.sections("hierarchies")
    }
    sources = dict(whole.sections("sources"))
    for name, section in sources.items():
        _check_name(section, name)
        _check_source(section, placeholder)
    if not sources:
        whole.add("sources", NONE, 'add [sources.visits] with files = "visits.parquet".')
    _check_units(sources)
    sections = dict(whole.sections("tables"))
    sketches = {
        name: sketch_of(name, section, list(sources), levels, folder) for name, section in sections.items()
    }
    for name, section in sections.items():
        _check_name(section, name)
    if not sections:
        whole.add("tables", NONE, 'add [tables.visits] with verb = "counts".')
    of = "the programme" if budget is None else budget.loss.in_words
    check_shares(problems, list(sections.values()), of)
    outputs = _outputs(whole, placeholder, folder)
    notes: list[Problem] = []
    page = page_of(whole, sections, placeholder)
    whole.finish()
    if "each" in whole.meant:
        problems.found[:] = [each for each in problems.found if NO_PLACEHOLDER not in each.fact]
    usable = [each for each in sketches.values() if each is not None]
    tables = {} if budget is None else _tables(usable, sections, sources, budget, problems, notes)
    found = {name: _source(name, each, usable, folder, placeholder) for name, each in sources.items()}
    if outputs is not None:
        _check_outputs(whole, document, outputs, sections, found, placeholder, folder, path)
    if budget is None or not Released(document, folder).has(period):  # else nothing will be read
        for name, section in sources.items():
            _check_columns(section, found[name], [each for each in tables.values() if each.source == name])
    if not problems.found:
        assert budget is not None and outputs is not None
        hierarchies = {each.name: each.hierarchy for each in usable if each.hierarchy is not None}
        programme = Checked(
            path=path, folder=folder, period=period, budget=budget, sources=found, hierarchies=hierarchies,
            tables=tables, outputs=outputs, page=page, account=account, notes=tuple(notes),
        )  # fmt: skip
        rehearse(programme, problems)
    if problems.found:
        in_order = sorted(problems.found, key=lambda each: each.line or 0)
        raise ProgrammeError("The programme" if path is None else path.name, in_order)
    return programme


def _check_name(section: Section, name: str) -> None:
    """Check a name of a source or table, which becomes that of a file."""
    if not re.fullmatch(r"\w[\w-]*", name):
        section.add(None, "has a name with other characters than letters, digits, - and _.", "rename it.")


def _check_head(whole: Section, placeholder: Placeholder) -> None:
    """Check what stands above the first table; `Programme` has read ``each`` and ``first``."""
    stated = whole.need("format", "a text", f'write format = "{FORMAT}" in the first line.')
    if stated not in (None, FORMAT):
        whole.add("format", f"is unknown: {quote(stated)}.", f'this version reads "{FORMAT}".')
    whole.rest(["each"])
    first = whole.take("first", "a text")
    if first is not None and placeholder.period is not None:
        with whole.problems.catching(("first",), {}):
            period_of(placeholder.period.unit, first)
    placeholder.check(whole, "title", whole.take("title", "a text"))


# Tables ---------------------------------------------------------------------------------------------------


def _tables(
    sketches: Sequence[Sketch], sections: Mapping[str, Section], sources: Mapping[str, Section],
    budget: Budget, problems: Problems, notes: list[Problem],
) -> dict[str, Table]:  # fmt: skip
    """Plan all tables whose keys are right, and check that targets fit into the budget."""
    even = not any("share" in each.entries or "target" in each.entries for each in sections.values())
    found = {}
    for sketch in sketches:
        loss = loss_of(sketch, budget.loss, len(sections), even=even)
        source = sources[sketch.source]
        if any(problem.path[:2] == source.path for problem in problems.found):
            continue  # whom to protect may not be known
        unit = _unit(source)
        table = planned(sketch, loss, budget.loss, unit, notes)
        if table is not None:
            found[sketch.name] = table
    targets = [
        sketch.name for sketch in sketches if sketch.share is None and not even and sketch.name in found
    ]
    spent = [spent_by(table, budget.loss) for table in found.values()]
    if targets and len(found) == len(sections):
        limit = {name: typed(number) for name, number in budget.loss.to_dict().items()}
        cap = limit["epsilon" if budget.loss.rho is None else "rho"]
        total = sum(loss for loss, _ in spent)
        if total > cap or sum(delta for _, delta in spent) > limit.get("delta", 0):
            whole = budget.loss.in_words
            fact = f"the tables together need {float(total):.3g}, more than the budget of {whole}."
            hint = "allow larger errors, lower the shares of other tables, or raise the budget."
            problems.add(("tables", targets[-1], "target"), fact, hint)
    return found


# Sources --------------------------------------------------------------------------------------------------


def _unit(section: Section) -> dict[str, Any]:
    """Return whom a source protects, as plans take it."""
    unit = ROWS if section.entries.get("each_row") else section.entries.get("privacy_unit")
    most = section.entries.get("max_contributions")
    given = {"privacy_unit": unit, "max_contributions": most, "neighbors": section.entries.get("neighbors")}
    return {key: value for key, value in given.items() if value is not None}


def _check_source(section: Section, placeholder: Placeholder) -> None:
    """Check the keys of a source, which `_source` and `_unit` read."""
    files = section.take("files", "a text or a list of texts")
    if files in ("", []):
        section.add("files", "is empty.", 'for example files = "visits/*.parquet".')
    database = section.take("database", "a text")
    table = section.take("table", "a text")
    for text in [files] if isinstance(files, str) else files or []:
        placeholder.check(section, "files", text)
    if ("files" in section.entries) == ("database" in section.entries):
        fact = "must have files or database, one of them."
        section.add(None, fact, 'for example files = "visits/*.parquet".')
    if database is not None and "table" not in section.entries:
        section.add(None, "lacks table, the one of the database.", 'for example table = "visits".')
    if table is not None and "database" not in section.entries:
        section.add("table", "has no meaning without database.", "leave it out.")
    section.choose("engine", _ENGINES)
    section.take("privacy_unit", "a text")
    if bool(section.take("each_row", "true or false", False)) == ("privacy_unit" in section.entries):
        hint = 'for example privacy_unit = "person"; or each_row = true, if each row is a unit of its own.'
        section.add(None, "lacks privacy_unit, the column that identifies whom to protect.", hint)
    most = section.take("max_contributions", "a whole number")
    if "privacy_unit" in section.entries and "max_contributions" not in section.entries:
        fact = "lacks max_contributions, how many rows of one unit are kept."
        section.add(None, fact, "for example max_contributions = 2.")
    if most is not None and most < 1:
        section.add("max_contributions", f"is {most}, not at least 1.", "for example max_contributions = 2.")
    section.choose("neighbors", ("add_remove", "replace"))
    zone = section.take("timezone", "a text")
    if zone is not None and _zone(zone) is None:
        section.add("timezone", f"is unknown: {quote(zone)}.", 'for example timezone = "Europe/Berlin".')
    during = section.take("during", "a table", {})
    if "during" in section.entries and (len(during) != 1 or placeholder.period_in(*during.values()) is None):
        fact = f"must have one column, whose value is {placeholder.example}."
        hint = f"for example {{ date = {placeholder.example} }}."
        section.add(
            "during", fact, hint if placeholder.period else 'add each = "month" above the first table.'
        )
    types = section.take("types", "a table", {})
    for column, kind in types.items():
        if not isinstance(kind, str):
            section.add("types", f"of {column} must be a text.", 'for example { date = "date32" }.')
    is_right = not any(problem.path[:2] == section.path for problem in section.problems.found)
    if (
        is_right
        and placeholder.period is not None
        and not during
        and not any(map(placeholder.fill_before, _texts(files)))
    ):
        fact = "reads the same records in every period."
        section.add(None, fact, f"put {placeholder.example} into files, or add during.")
    section.finish()


def _check_units(sources: Mapping[str, Section]) -> None:
    """Note sources that protect others than the first does: their losses do not add up to one."""
    for each in list(sources.values())[1:]:
        first = next(iter(sources.values()))
        if any(each.entries.get(key) != first.entries.get(key) for key in ("privacy_unit", "neighbors")):
            fact = f"protects others than the source {first.path[-1]}, and one budget is of one kind of unit."
            each.add(None, fact, "write a programme for each, with an account of its own.")


def _texts(given: Any) -> list[str]:
    return [given] if isinstance(given, str) else given or []


def _zone(name: str) -> zoneinfo.ZoneInfo | None:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _source(
    name: str, section: Section, sketches: Sequence[Sketch], folder: Path, placeholder: Placeholder
) -> Source:
    """Return a source, with the columns that tables read of it."""
    values = section.entries
    used = [column for each in sketches if each.source == name for column in each.columns]
    unit = values.get("privacy_unit")
    during = _during(section, sketches, placeholder)
    own = [each for each in (unit, during.column if during else None) if isinstance(each, str)]
    given = values.get("files") or values.get("database")
    return Source(
        name=name,
        files=tuple(
            os.fspath(folder / placeholder.fill(each)) for each in _texts(given) if isinstance(each, str)
        ),
        table=values.get("table"),
        engine=values.get("engine"),
        during=during,
        types=values.get("types"),
        privacy_unit=unit,
        max_contributions=values.get("max_contributions"),
        neighbors=values.get("neighbors", "add_remove"),
        columns=tuple(dict.fromkeys([*used, *own])),
    )


def _during(section: Section, sketches: Sequence[Sketch], placeholder: Placeholder) -> During | None:
    """Return which rows are read, in the zone of the source, or else in that of a calendar of its column."""
    given = section.entries.get("during")
    if not isinstance(given, dict) or len(given) != 1 or placeholder.period is None:
        return None
    [column] = given
    zone = section.entries.get("timezone") or next(
        (
            str(levels.timezone)
            for each in sketches
            for levels in getattr(each.hierarchy and each.hierarchy.domain, "derived", ())
            if getattr(levels, "column", None) == column and getattr(levels, "timezone", None) is not None
        ),
        None,
    )
    known = _zone(zone) if isinstance(zone, str) else None
    ends = (
        datetime.combine(day, time(), known) for day in (placeholder.period.start, placeholder.period.end)
    )
    start, end = ends
    return During(column=column, start=start, end=end, timezone=None if known is None else zone)


def _check_columns(section: Section, source: Source, tables: Sequence[Table]) -> None:
    """Compare the columns that tables need with those of the files, or with the types that are stated."""
    if any(problem.path[:2] == section.path for problem in section.problems.found):
        return
    if source.types is not None:
        missing = [column for column in source.columns if column not in source.types]
        if missing:
            hint = did_you_mean(missing, source.types) + "state the types of all columns that are read."
            section.add("types", f"lacks {listed(missing)}.", hint)
        kinds: Mapping[str, str] = source.types
    else:
        records = None
        keys = {"records": "database" if source.table else "files", "table": "table"}
        with section.problems.catching(section.path, keys):
            records = open_records(source.files, list(source.columns), source.table)
        if records is None or not hasattr(records, "__arrow_c_schema__"):
            return
        kinds = {field.name: str(field.type) for field in importlib.import_module("pyarrow").schema(records)}
        for table in tables:
            with section.problems.catching(("tables", table.name), {}):
                prepared_releases({table.name: table.plan}, records)
    during = source.during
    if (
        during is not None
        and during.timezone is None
        and kinds.get(during.column, "").startswith("timestamp")
    ):
        fact = f"{during.column} has times, and no time zone says when a day begins."
        section.add("during", fact, 'for example timezone = "Europe/Berlin" below it.')


# Outputs --------------------------------------------------------------------------------------------------


def _outputs(whole: Section, placeholder: Placeholder, folder: Path) -> Outputs | None:
    """Read what is written, and where."""
    section = Section(whole.problems, ("outputs",), whole.take("outputs", "a table", {}))
    where = section.need("folder", "a text", f"for example folder = {_folder_example(placeholder)}.")
    write = section.take("write", "a list of texts", ["parquet", "html"])
    placeholder.check(section, "folder", where)
    for kind in write:
        if kind not in _KINDS:
            hint = f"{did_you_mean([kind], _KINDS)}choose some of {', '.join(_KINDS)}."
            section.add("write", f"{quote(kind)} is unknown.", hint)
        elif (package := _PACKAGES.get(kind)) and importlib.util.find_spec(package) is None:
            section.add(
                "write", f"{kind} needs {package}, which is not installed.", f"pip install {package}."
            )
    section.finish()
    if where is None:
        return None
    before = placeholder.fill_before(where)
    if before is None and placeholder.period is not None:
        fact = "is the same in every period, so that one would overwrite another."
        section.add("folder", fact, f"for example folder = {_folder_example(placeholder)}.")
    found = None if before is None else folder / before
    return Outputs(folder=folder / placeholder.fill(where), write=tuple(dict.fromkeys(write)), before=found)


def _check_outputs(
    whole: Section, document: Mapping[str, Any], outputs: Outputs, tables: Mapping[str, Section],
    sources: Mapping[str, Source], placeholder: Placeholder, folder: Path, path: Path | None,
) -> None:  # fmt: skip
    """Note outputs that would replace what the programme reads, or one another."""
    fact = overwritten(
        document, outputs, names=tables, sources=sources.values(), placeholder=placeholder, folder=folder,
        path=path,
    )  # fmt: skip
    if fact is not None:
        hint = f"write to a folder of its own: folder = {_folder_example(placeholder)}."
        whole.problems.add(("outputs", "folder"), f"would {fact}", hint)
    names: dict[str, str] = {}
    for name, section in tables.items():
        if (other := names.setdefault(name.casefold(), name)) != name:
            fact = (
                f"has the name of {quote(other)} but for capitals, and some systems take their files for one."
            )
            section.add(None, fact, "rename one of them.")


def _folder_example(placeholder: Placeholder) -> str:
    return '"published"' if placeholder.period is None else f'"published/{{{placeholder.period.unit}}}"'

"""What a checked programme holds: plain facts, from which it is run."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any

from pandas_dptree.hierarchy.crossed_domain import CrossedDomain
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.levels.combine import By
from pandas_dptree.hierarchy.levels.prefixes import PrefixTree
from pandas_dptree.ledger.accounts import Account
from pandas_dptree.plans.base import Plan
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.programmes.problems import Problem

__all__ = ["Budget", "Checked", "During", "Hierarchy", "Outputs", "PageOptions", "Period", "Source", "Table"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A day, week, month, quarter or year: the half-open interval from `start` to `end`.

    Attributes
    ----------
    unit : {"day", "week", "month", "quarter", "year"}
    text : str
        As a programme writes it: ``2025-03-31``, ``2025-W14``, ``2025-03``, ``2025-Q1``, ``2025``.
    start, end : date
        The first day, and the first day after the last.
    """

    unit: str
    text: str
    start: date
    end: date


@dataclass(frozen=True, slots=True, kw_only=True)
class During:
    """Which rows of a source are read: those with ``start <= column < end``.

    Attributes
    ----------
    column : str
    start, end : datetime
        Midnights: with a zone if `timezone` is stated, else without one, for columns of dates.
    timezone : str or None
        The zone in which the periods begin. A column of times needs one.
    """

    column: str
    start: datetime
    end: datetime
    timezone: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Secret records, of which nothing but column names and types has been read.

    Attributes
    ----------
    name : str
    files : tuple of str
        Paths, patterns and folders, with the placeholder replaced, below the programme's folder.
    table : str or None
        The table of a .duckdb database.
    engine : {"polars", "duckdb", "pyarrow", "dask", "spark"} or None
        The library that reads them; None: by the kind of file.
    during : During or None
    types : mapping of str to str, or None
        The types of all columns that are read, as stated. Then a check opens no file.
    privacy_unit : str or None
        None: each row is a unit of its own.
    max_contributions : int or None
    neighbors : {"add_remove", "replace"}
    columns : tuple of str
        All columns that the tables read: keys, values, the privacy unit, and the column of `during`.
    """

    name: str
    files: tuple[str, ...]
    table: str | None
    engine: str | None
    during: During | None
    types: Mapping[str, str] | None
    privacy_unit: str | None
    max_contributions: int | None
    neighbors: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """Public levels, from the coarsest to the finest.

    Attributes
    ----------
    name : str
    by : list, prefixes, or mapping
        Names of columns and derived levels, as the verbs take them; those of each axis of crossed ones.
    domain : Domain, CrossedDomain, PrefixTree or None
        The public leaves of the levels above `private_keys`; None if all keys are private.
    private_keys : tuple of str
    labels : mapping of str to mapping
        For a level, the text that is shown for each of its keys. Keys that are left out are shown themselves.
    aliases : mapping of str to str
        What a programme may write for levels of crossed hierarchies, such as ``year`` for ``age_year``.
    """

    name: str
    by: By | PrefixTree | Mapping[str, Any]
    domain: Domain | CrossedDomain | PrefixTree | None
    private_keys: tuple[str, ...]
    labels: Mapping[str, Mapping[Hashable, str]]
    aliases: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What a run may spend, and who keeps the sum.

    Attributes
    ----------
    loss : PrivacyLoss
        Of all tables of one run together. Plans of tables with a `target` may spend less.
    ledger : Path or None
    account, part, note : str or None
        `account` and `note` are stated whenever `ledger` is; the placeholder is replaced in `note`.
    note_before : str or None
        The note of the period before, for ``as = "change"``.
    """

    loss: PrivacyLoss
    ledger: Path | None
    account: str | None
    part: str | None
    note: str | None
    note_before: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table to release: ``table.plan.release(records, …)``.

    Attributes
    ----------
    name : str
        Its name in the programme, the ledger, the names of files, and on the page.
    verb : {"counts", "units", "sums", "means", "agg", "distribution", "quantiles"}
    source : str
        The name of its source.
    hierarchy : tuple of str
        The names of its hierarchies, nested; empty for a distribution, or quantiles, without groups.
    plan : Plan
        With the loss, unit and domain filled in.
    line : int or None
        Where the programme states it.
    """

    name: str
    verb: str
    source: str
    hierarchy: tuple[str, ...]
    plan: Plan[Any]
    line: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """What is written.

    Attributes
    ----------
    folder : Path
        With the placeholder replaced; absolute.
    write : tuple of str
        Some of ``"parquet"``, ``"csv"``, ``"xlsx"``, ``"html"``, ``"zarr"``.
    before : Path or None
        The folder of the period before, for ``as = "change"``; None if there is none.
    """

    folder: Path
    write: tuple[str, ...]
    before: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOptions:
    """What is shown on the page, as `dpt.page` takes it.

    Attributes
    ----------
    title : str
        With the placeholder replaced.
    show : tuple of mappings, or None
        Each like ``{"table": "visits", "as": "icicle"}`` or ``{"tables": ["visits", "care"]}``;
        None: all tables.
    combine : mapping of str to list of paths
        Areas, by name, which are shown of the tables of counts that have them.
    reliability : str or mapping
        ``"statcan"``, ``"abs"``, ``"none"``, or the relative error below which each class is.
    blank : tuple of str
        Classes whose numbers are not shown.
    labels : mapping of str to str
        Shown names of levels and columns.
    publisher, notes, language : str or None
    interactive : bool
    """

    title: str
    show: tuple[Mapping[str, Any], ...] | None
    combine: Mapping[str, Any]
    reliability: str | Mapping[str, float]
    blank: tuple[str, ...]
    labels: Mapping[str, str]
    publisher: str | None
    notes: str | None
    language: str
    interactive: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A programme for one period, in which nothing is wrong.

    Attributes
    ----------
    path : Path or None
        The file; None if it was made from a mapping.
    folder : Path
        The folder that its paths are relative to.
    period : Period or None
        None if the programme has no ``each``.
    budget : Budget
    sources, tables : mapping of str
        By their names, in the order of the programme.
    hierarchies : mapping of str to Hierarchy
        That of each table, by the name of the table; none for a distribution, or quantiles, without groups.
    outputs : Outputs
    page : PageOptions
    account : Account or None
        That of the budget's ledger, or its part.
    notes : tuple of Problem
        What is worth knowing, such as a budget that protects nobody.
    """

    path: Path | None
    folder: Path
    period: Period | None
    budget: Budget
    sources: Mapping[str, Source]
    hierarchies: Mapping[str, Hierarchy]
    tables: Mapping[str, Table]
    outputs: Outputs
    page: PageOptions
    account: Account | None
    notes: tuple[Problem, ...]

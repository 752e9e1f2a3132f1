"""A released table as a page reads it: its columns with the intervals, letters and bars of each row."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, listed, quote
from pandas_dptree.hierarchy.names import ROOT
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.output.derived.reliability import CLASSES, grades
from pandas_dptree.output.html import Markup, element
from pandas_dptree.output.pages.labels import Labels
from pandas_dptree.output.pages.numbers import FloatArray, Format, decimals, exact_decimals
from pandas_dptree.output.pages.texts import Texts
from pandas_dptree.output.protection import aggregates_of
from pandas_dptree.output.released import Quantities, Released, Shown, share_of

__all__ = ["Column", "View", "columns_of", "shows_large_nodes_only"]


def shows_large_nodes_only(table: object) -> bool:
    """Whether a released table has remainders: rows for all that it does not show."""
    return isinstance(table, pd.DataFrame) and {"level", "count", "other"} <= {*table}


@dataclass(frozen=True, eq=False)
class Column:
    """One quantity of a table.

    `lower` and `upper` are the interval that ± describes: that of the table if it has one, or else one
    standard error or error bound to both sides; nan where there is none. `lengths` says whether it is drawn
    as bars from zero, `classes` are those of reliability with their limits, none if it is not graded, and
    numbers of a class in `blank` print its letter. `shows_ends` is whether all of its errors are printed as
    intervals, like those of quantiles. `unit` follows each number, and `missing` is the text that explains a
    number that is missing.
    """

    heading: str
    error_heading: str
    error_kind: str
    shown: Shown
    lower: FloatArray
    upper: FloatArray
    lengths: bool
    classes: Mapping[str, float]
    shows_ends: bool
    format: Format
    blank: Collection[str] = ()
    unit: str = ""
    missing: str = "levels.missing"

    def digits(self, rows: IntArray) -> int:
        """Return the decimals for some rows: two digits of their median margin, or those of its ends."""
        if self.shows_ends:
            return exact_decimals([self.lower, self.upper])
        return decimals((self.upper - self.lower)[rows] / 2, whole=self.shown.whole)

    def most(self, rows: IntArray) -> float | None:
        """Return the end of the scale of bars for some rows; None if they are not drawn."""
        ends = np.fmax(self.shown.numbers, self.upper)[rows]
        ends = ends[np.isfinite(ends)]
        return float(ends.max()) if self.lengths and len(ends) and ends.max() > 0 else None

    def value(self, row: int, digits: int) -> str:
        """Format the number of a row; of a blank class, its letter."""
        if self.is_blank(row):
            return self.letter(row)
        number = float(self.shown.numbers[row])
        return self.format.number(number, digits) + (self.unit if number == number else "")

    def error(self, row: int, digits: int) -> str:
        """Format the error of a row: ± a margin, or the ends of the interval."""
        value, lower, upper = (float(each[row]) for each in (self.shown.numbers, self.lower, self.upper))
        if self.shows_ends or (self.is_blank(row) and lower == lower):
            return self.format.interval(lower, upper, digits)
        return self.format.error(value, lower, upper, digits)

    def letter(self, row: int) -> str:
        """Return the class of reliability of a row; empty if it has none."""
        return self._letters[row] or "" if self.graded else ""

    def is_blank(self, row: int) -> bool:
        """Whether the number of a row is not shown, because of its class."""
        return bool(self.blank) and self.letter(row) in self.blank

    def style(self, row: int) -> str | None:
        """Return the name of the style of uncertain rows: E and F for the last two classes."""
        names = [*self.classes][::-1]
        letter = self.letter(row)
        return "F" if letter in names[:1] else "E" if letter in names[1:2] and len(names) > 2 else None

    @property
    def graded(self) -> bool:
        """Whether its numbers have classes of reliability."""
        return bool(self.classes) and self.shown.error is not None

    @cached_property
    def _letters(self) -> npt.NDArray[np.object_]:
        """The class of each row; None where the number or its error is missing."""
        missing = np.full_like(self.shown.numbers, np.nan)
        errors = missing if self.shown.error is None else self.shown.error
        letters = grades(self.shown.numbers, errors, self.classes)
        letters[np.isnan(errors)] = None
        return letters

    def bar(self, row: int, most: float) -> str:
        """Return the custom properties of a row's bar and whisker, as shares of a scale."""
        ends = (0 if self.is_blank(row) else self.shown.numbers[row], self.lower[row], self.upper[row])
        value, lower, upper = (min(max(float(end) / most, 0.0), 1.0) for end in np.nan_to_num(ends))
        return f"--v:{value:.4g};--l:{lower:.4g};--u:{upper:.4g}"

    @property
    def width(self) -> int:
        """How many cells a row has."""
        return 2 + self.graded

    def cells(
        self, row: int | None, digits: int, most: float | None = None, *, with_error: bool = True
    ) -> Iterator[Markup]:
        """Make the cells of a row: number, error and letter; empty without a row."""
        if row is None:
            yield from (element("td") for _ in range(self.width))
            return
        style = None if most is None else self.bar(row, most)
        yield element("td", self.value(row, digits), class_="n" if style is None else "n v", style=style)
        if with_error:
            yield element("td", self.error(row, digits), class_="e")
        if self.graded:
            yield element("td", self.letter(row), class_="r")

    def heads(self, texts: Texts, *, with_error: bool = True) -> Iterator[Markup]:
        """Make the heads of these cells."""
        yield element("th", self.heading, scope="col", class_="n")
        if with_error:
            yield element("th", self.error_heading, scope="col", class_="e")
        if self.graded:
            yield element("th", texts["head.class"], scope="col", class_="r")


@dataclass(frozen=True, eq=False)
class View:
    """A released table on a page."""

    name: str
    released: Released
    provenance: Mapping[str, Any]
    columns: Sequence[Column]
    labels: Labels

    @classmethod
    def of(
        cls,
        name: str,
        table: pd.DataFrame,
        provenance: Mapping[str, Any],
        labels: Labels,
        texts: Texts,
        columns: Hashable | list[Hashable] | None = None,
        classes: Mapping[str, float] = CLASSES["statcan"],
        blank: Collection[str] = (),
    ) -> View:
        """Read a table, and those of its `columns` that a page shows, by default all."""
        released = Released.of(_bounded(table))
        made = columns_of(released, provenance, labels, texts, columns, classes, blank)
        return cls(name, released, provenance, made, labels)

    @property
    def means(self) -> set[Hashable]:
        """The names of the columns that hold means."""
        kinds = aggregates_of(self.provenance) if self.provenance else {}
        shown = (column.shown.name for column in self.columns)
        return {name for name in shown if kinds.get(str(name)) == "mean"}

    @property
    def root(self) -> int | None:
        """The row of the total, None if there is none."""
        rows = np.flatnonzero(self.released.depth == 0)
        return int(rows[0]) if len(rows) else None

    @property
    def levels(self) -> list[tuple[Hashable, IntArray]]:
        """The levels below the total that have rows, each with these."""
        names = [ROOT, *self.released.keys]
        depth = self.released.depth
        return [(names[each], np.flatnonzero(depth == each)) for each in np.unique(depth) if each]

    @cached_property
    def row_of(self) -> dict[tuple[str, ...], int]:
        """The row of each path of keys."""
        return {self.released.keys_of(row): row for row in range(len(self.released.table))}

    def label(self, row: int) -> str:
        """Return the name of a row as the page shows it."""
        depth = int(self.released.depth[row])
        level = self.released.keys[depth - 1] if depth else ROOT
        return self.labels.key(level, self.released.name(row)) if depth else self.labels.name(ROOT)


def columns_of(
    released: Quantities,
    provenance: Mapping[str, Any],
    labels: Labels,
    texts: Texts,
    columns: Hashable | list[Hashable] | None = None,
    classes: Mapping[str, float] = CLASSES["statcan"],
    blank: Collection[str] = (),
) -> list[Column]:
    """Read those of the `columns` of a table that a page shows, by default all."""
    chosen = columns if isinstance(columns, list) else released.columns if columns is None else [columns]
    values = [released.shown(column, argument="columns", of=chosen) for column in chosen]
    if not chosen or len({*chosen}) < len(chosen):
        raise ArgumentError(
            "columns",
            f"must name columns, each once, not {quote(columns)}.",
            hint=f"choose from {listed(released.columns)}.",
        )
    if columns is None:  # what a mean was taken of comes last in a table, and first on a page
        values.sort(key=lambda value: value.name != "count")
    kinds: dict[str, Any] = {**aggregates_of(provenance)} if provenance else {}
    kinds.setdefault("count", "count")
    format_ = Format(texts)
    share = share_of(provenance)
    made = []
    for place, value in enumerate(values):
        kind, adds_up = _kind_of_error(value), kinds.get(str(value.name)) in ("count", "sum", "units")
        column = Column(
            labels.name(value.name),
            texts.fill(f"head.error.{kind}", share=share).strip(),
            texts.fill(f"fact.errors.{kind}", share=share).strip(),
            value,
            *_ends(value),
            lengths=adds_up,
            classes=classes if not place and adds_up and value.error_name == "standard error" else {},
            blank=blank,
            shows_ends=kind == "ends",
            format=format_,
        )
        made.append(column)
    return made


def _kind_of_error(value: Shown) -> str:
    """Return by which name the texts have the errors of a column."""
    if value.interval is not None:
        without_margin = value.error is not None and bool(np.isnan(value.error).all())
        return "ends" if without_margin else "interval"
    return {"standard error": "std_error", "error bound": "bound"}.get(value.error_name, "none")


def _bounded(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table that shows large nodes only with bounds as its errors, which its remainders have too."""
    bounds = next((name for name in ("max_error", "error_bound") if name in table), None)
    if not shows_large_nodes_only(table) or bounds is None:
        return table
    return table.drop(columns="std_error", errors="ignore").rename(columns={bounds: "error_bound"})


def _ends(value: Shown) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the interval that ± describes.

    One that was cut to a point would read as certainty. It is shown up, or from a number above 0 down, by as
    many errors as half of the longest interval: what holds more often than stated is no less true.
    """
    if value.interval is not None and value.error is not None:
        lower, upper = value.interval
        in_errors = (upper - lower)[value.error > 0] / 2 / value.error[value.error > 0]
        most = np.fmax.reduce(in_errors, initial=0)
        further = np.where((lower == upper) & (value.error > 0), most * value.error, 0)
        return lower - further * (lower > 0), upper + further * (lower <= 0)
    if value.interval is not None:
        return value.interval
    if value.error is None:
        return np.full_like(value.numbers, np.nan), np.full_like(value.numbers, np.nan)
    return value.numbers - value.error, value.numbers + value.error

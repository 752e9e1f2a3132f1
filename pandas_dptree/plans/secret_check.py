"""What becomes of the records of a release, in exact numbers for whoever may see the records."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from pandas_dptree.errors import CallError, listed, visible
from pandas_dptree.hierarchy.bins import Bins
from pandas_dptree.hierarchy.crossed_domain import CrossedDomain
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.names import ROOT
from pandas_dptree.hierarchy.rebuilt_labels import rebuilt_labels
from pandas_dptree.hierarchy.values import UNKNOWN, sort_key
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.reading import Bounding
from pandas_dptree.ingest.safe_errors import discreetly
from pandas_dptree.ingest.secret_check import (
    REASONS,
    Found,
    bounded_values,
    found_in,
    nodes_per_unit,
    public_keys,
    rows_per_leaf,
    rows_per_unit,
)
from pandas_dptree.ingest.tallies import Tally
from pandas_dptree.privacy.quantity import Quantity

__all__ = ["SecretCheck", "checked"]

SECRET = "SECRET: publish nothing of this, and do not choose epsilon by it"
"""The first line of every text."""

_MOST_KEYS = 10
"""How many of the commonest keys that are not in the domain are listed for each column."""

_WIDEST = 60
"""Characters of a key in a text."""

_NUMBER = re.compile(r"(0*)([0-9]+)(\.0+)?")
"""A whole number as text: its leading zeros, its digits, and a decimal point."""

_COUNTS = {"rows", "below", "above", "missing", "max_contributions", "nodes", "units"}
"""Names of columns of whole numbers."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SecretCheck:
    """Exact numbers of what becomes of records when a plan is released. They are secret.

    Made by `Plan.secret_check`. It can be neither pickled nor copied, so that no cache keeps it.

    Attributes
    ----------
    read : int
        Number of rows.
    counted : int
        Number of rows that the plan counts, before it bounds the rows of each privacy unit.
    dropped : pandas.DataFrame
        The other rows, by the first ``reason`` why they are dropped, with the ``column`` and the number of
        ``rows``. Keys are looked at first, from the coarsest to the finest and axis by axis, then values,
        then the privacy unit. The column is None for structural zeros; of crossed hierarchies, it is the
        finest of their axis.
    keys : pandas.DataFrame
        For each ``column``, the commonest values that are not among its keys in the domain: the ``value``,
        the number of ``rows`` dropped for it, a key of the column in the domain that is ``near`` it (None if
        there is none), and how the two ``differ``: in case, surrounding blanks, leading zeros, a decimal
        point, or type.
    levels : pandas.DataFrame
        For each ``level``, the number of ``rows`` whose keys match a node of it, whether or not they are
        counted. Of crossed hierarchies, the levels of one axis after those of another: only the keys of the
        axis need match.
    kept : pandas.DataFrame
        For each ``max_contributions``, the number of ``rows`` that units keep of the counted ones. Empty if
        each row is a unit of its own.
    kept_per_leaf : pandas.DataFrame
        The same for each ``max_contributions`` and each ``max_per_leaf``, missing where there is no such
        bound. Bounds on nodes of other levels are those of the plan. Empty for distributions too, and where
        distinct units are counted.
    kept_nodes : pandas.DataFrame
        Where distinct units are counted, for each ``level`` below the root and each ``max_nodes``, the number
        of ``nodes`` that units keep: the counts of the level, added up; and of ``units`` that keep all of
        theirs. A bound is one number for all levels; if the plan has several, they are tried too, together.
    clipped : pandas.DataFrame
        For each ``column`` that is added up or binned, with its ``lower`` and ``upper`` bound: how many
        values of counted rows are ``below`` and ``above`` them, and how many are ``missing``, or cannot be
        read, in rows whose keys match. The latter are dropped.
    incomplete : tuple
        Columns with so many different such keys that not all could be held: the ``rows`` of `keys` may be too
        few for these columns.
    """

    read: int
    counted: int
    dropped: pd.DataFrame
    keys: pd.DataFrame
    levels: pd.DataFrame
    kept: pd.DataFrame
    kept_per_leaf: pd.DataFrame
    kept_nodes: pd.DataFrame
    clipped: pd.DataFrame
    incomplete: tuple[Hashable, ...] = ()

    def to_text(self) -> str:
        """Format all numbers as text, whose first line says that it is secret."""
        return "\n".join([SECRET, *(visible(each, lines=True) for each in self._parts("to_string"))])

    __repr__ = to_text

    def _repr_html_(self) -> str:
        """Format all numbers for a notebook."""
        return f"<p><strong>{SECRET}</strong></p>\n" + "\n".join(
            part if part.startswith("<table") else f"<p>{escape(visible(part))}</p>"
            for part in self._parts("to_html")
        )

    def _parts(self, form: str) -> Iterator[str]:
        """Yield the sentences and the formatted tables."""
        bounded = "rows" if len(self.kept) else "nodes" if len(self.kept_nodes) else None
        unbounded = "" if bounded is None else f", before the {bounded} of each unit are bounded"
        yield f"Rows read: {self.read:,}. Counted: {self.counted:,}{unbounded}."
        shown = self.keys.assign(**{name: self.keys[name].map(_shown) for name in ("value", "near")})
        by_leaf = self.kept_per_leaf[self.kept_per_leaf["max_per_leaf"].notna()]
        tables = {
            "Dropped rows, by the first reason:": self.dropped,
            "Commonest keys that are not in the domain:": shown,
            "Rows whose keys match, by level:": self.levels,
            "Rows that are kept, by the bound on the rows of each unit:": self.kept,
            "Rows that are kept, by the bounds on the rows of each unit in total and in a leaf:": by_leaf,
            "Nodes that units keep, and units that keep all of theirs, by the bound:": self.kept_nodes,
            "Values outside their bounds, which are clipped; rows without a value are dropped:": self.clipped,
        }
        formats: dict[str, Any] = dict.fromkeys(_COUNTS, "{:,}".format)
        formats["column"] = lambda column: "-" if column is None else str(column)
        for title, table in tables.items():
            if len(table):
                yield title
                yield getattr(table, form)(index=False, formatters=formats)
        if self.incomplete:
            columns = listed(self.incomplete)
            yield f"There are more such keys than can be held, so their rows may be too few: {columns}."

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied."""
        raise CallError(
            "SecretCheck",
            "cannot be pickled or copied: it is secret, and caches keep what is pickled.",
            hint="call `plan.secret_check` again where it is needed.",
        )


def checked(
    records: Records, tally: Tally[Any], bounding: Bounding, levels: Sequence[Hashable]
) -> SecretCheck:
    """Check the records that `tally` would count."""
    keys = public_keys(tally)
    if isinstance(keys, CrossedDomain):
        levels = (ROOT, *keys.by)
    found = found_in(records, tally, bounding)
    return discreetly(records.columns, partial(_described, found, tally, bounding, levels))


def _described(
    found: Found, tally: Tally[Any], bounding: Bounding, levels: Sequence[Hashable]
) -> SecretCheck:
    """Arrange what was found; which batch was read first does not matter."""
    columns = [*tally.columns, bounding.get("privacy_unit")]  # the latter is None if each row is a unit
    dropped = [
        (reason, column, found["dropped", reason, column])
        for reason in REASONS
        for column in dict.fromkeys([*columns, None])
        if found["dropped", reason, column]
    ]
    by_row = bounding.get("privacy_unit") is None
    bounds = [] if by_row else rows_per_unit(tally, bounding["max_contributions"])
    in_leaf = rows_per_leaf(tally, bounding.get("caps", ()))
    kept_per_leaf = [(most, cap, found["kept", most, cap]) for most in bounds for cap in in_leaf]
    kept_nodes = [
        (name, most, found["nodes", most, level], found["units", most, level])
        for level, name in [*enumerate(levels)][1:]
        for most in nodes_per_unit(tally)
    ]
    clipped = [
        (of.column, *_ends(of), *(found[side, place] for side in ("below", "above", "missing")))
        for place, of in enumerate(bounded_values(tally))
    ]
    return SecretCheck(
        read=found["read",],
        counted=found["counted",],
        dropped=_frame(dropped, "reason", "column", "rows"),
        keys=_frame(_common_keys(found, tally), "column", "value", "rows", "near", "differ"),
        levels=_frame([(name, found["level", level]) for level, name in enumerate(levels)], "level", "rows"),
        kept=_frame([(most, found["kept", most]) for most in bounds], "max_contributions", "rows"),
        kept_per_leaf=_frame(kept_per_leaf, "max_contributions", "max_per_leaf", "rows").astype(
            {"max_per_leaf": "Int64"}
        ),
        kept_nodes=_frame(kept_nodes, "level", "max_nodes", "nodes", "units"),
        clipped=_frame(clipped, "column", "lower", "upper", "below", "above", "missing"),
        incomplete=tuple(column for column in tally.columns if found["more", column]),
    )


def _ends(of: Quantity | Bins) -> tuple[Any, Any]:
    """Return the bounds of values."""
    if isinstance(of, Bins):
        return tuple(of.values_at([0, of.n_bins]))
    return tuple(of.from_units([of.low + of.shift, of.high + of.shift]))


def _frame(rows: Sequence[tuple[Any, ...]], *names: str) -> pd.DataFrame:
    """Make a frame of rows, in which all but numbers of rows are objects, unchanged."""
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return pd.DataFrame(
        {
            name: pd.Series(list(column), dtype=np.int64 if name in _COUNTS else object)
            for name, column in zip(names, columns, strict=True)
        }
    )


def _common_keys(found: Found, tally: Tally[Any]) -> list[tuple[Any, ...]]:
    """List the commonest keys that are not in the domain, column by column, with a near one that is."""
    keys: dict[Hashable, list[tuple[int, Hashable]]] = {column: [] for column in tally.columns}
    for (kind, *entry), number in found.items():
        if kind == "key":
            keys[entry[0]].append((number, entry[1]))
    rows = []
    for column, counted in keys.items():
        common = sorted(counted, key=lambda each: (-each[0], sort_key(each[1])))[:_MOST_KEYS]
        near = _near_keys([form for _, form in common], public_keys(tally), column)
        for (number, form), other in zip(common, near, strict=True):
            differ = "" if other is None else ", ".join(_differences(form, other))
            rows.append((column, _label(form), number, None if other is None else _label(other), differ))
    return rows


def _near_keys(
    wanted: Sequence[Hashable], domain: Domain | CrossedDomain | None, column: Hashable
) -> list[Hashable]:
    """Find a key of the same column of the domain near each form, None if there is none."""
    folded = list(map(_folded, wanted))
    similar: dict[str | None, list[Hashable]] = {each: [] for each in folded if each is not None}
    axes = domain.axes.values() if isinstance(domain, CrossedDomain) else [domain]
    for axis in axes:
        if axis is not None and column in axis.plain:
            for form in axis.forms[axis.by.index(column)]:
                if (each := _folded(form)) in similar:
                    similar[each].append(form)
    return [
        min(similar.get(each, ()), key=lambda other: len(_differences(form, other)), default=None)
        for form, each in zip(wanted, folded, strict=True)
    ]


def _text(form: Hashable) -> str | None:
    """Write the form of a text, a number or a boolean; None for others."""
    if isinstance(form, float) and form.is_integer():
        form = int(form)
    if isinstance(form, tuple):
        return str(form[1]) if form[0] == "boolean" else None
    return form if isinstance(form, str) else repr(form)


def _folded(form: Hashable) -> str | None:
    """Return the same text for all forms that are near each other."""
    text = _text(form)
    if text is None:
        return None
    text = text.strip().casefold()
    number = _NUMBER.fullmatch(text)
    return number[2] if number else text


def _differences(form: Hashable, other: Hashable) -> list[str]:
    """Say how two near forms differ."""
    texts = [str(_text(each)) for each in (form, other)]
    inner = [each.strip() for each in texts]
    blanks = [each.partition(text)[::2] if text else each for each, text in zip(texts, inner, strict=True)]
    numbers = [_NUMBER.fullmatch(each) for each in inner]
    zeros, points = zip(*(each.group(1, 3) if each else ("", "") for each in numbers), strict=True)
    differ = {
        "type": isinstance(form, str) != isinstance(other, str),
        "blanks": blanks[0] != blanks[1],
        "case": inner[0] != inner[1] and not all(numbers),
        "leading zeros": zeros[0] != zeros[1],
        "decimal point": points[0] != points[1],
    }
    return [name for name, differs in differ.items() if differs]


def _label(form: Hashable) -> Any:
    """Return the value that a form stands for."""
    return "(of a type that cannot be a key)" if form == UNKNOWN else rebuilt_labels([form])[0][0]


def _shown(value: object) -> str:
    """Write a key for people."""
    if value is None:
        return "-"
    text = visible(repr(value) if isinstance(value, str) else str(value))
    return text if len(text) <= _WIDEST else f"{text[:_WIDEST]}..."

"""HTML reports of released tables, with a description of their privacy protection."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from html import escape
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from pandas_dptree.errors import ArgumentError, MissingExtraError, listed, quote
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.arguments import whole_number
from pandas_dptree.output.html_page import check_title, html_page
from pandas_dptree.output.protection import UNKNOWN_SOURCE, joined, objections, statement, undercount
from pandas_dptree.output.released import Released, Shown, provenance_of, share_of
from pandas_dptree.output.table_digest import Keeper, alteration

__all__ = ["report_page"]


def report_page(
    table: pd.DataFrame,
    *,
    title: str | None,
    columns: Hashable | list[Hashable] | None,
    max_rows: int | None,
    plan: Described | None = None,
    ledger: Keeper | None = None,
) -> str:
    """Make a page: see `DataFrame.dp.to_html`."""
    check_title(title)
    released = Released.of(table)
    chosen = columns if isinstance(columns, list) else released.columns if columns is None else [columns]
    values = [released.shown(column, argument="columns", of=chosen) for column in chosen]
    if not chosen or len({*chosen}) < len(chosen):
        raise ArgumentError(
            "columns",
            f"must name columns, each once, not {quote(columns)}.",
            hint=f"choose from {listed(released.columns)}.",
        )
    rows, left_out = _rows_within(released, max_rows)
    provenance = provenance_of(table) if plan is None else _provenance_by(plan, released)
    named = joined([str(value.name) for value in values])
    heading = f"{named[:1].upper()}{named[1:]}" + (
        f", by {joined(list(map(str, released.keys)))}" if title is None and released.keys else ""
    )
    heading = heading if title is None else title
    body = [
        f'<p class="notes">{escape(_describe_left_out(left_out))}</p>' if left_out else "",
        *(f'<p class="warning">{escape(line)}</p>' for line in objections(provenance)),
        f'<p class="warning">This is {escape(altered)}.</p>'
        if (altered := alteration(table, ledger))
        else "",
        f"<p>{escape(missing)}</p>" if (missing := undercount(provenance)) else "",
        _table(released, values, rows, provenance),
        '<div class="notes">',
        *(f"<p>{escape(note)}</p>" for note in _notes(released, values, provenance)),
        "</div>\n<h2>What protects this table</h2>\n<ul>",
        *(f"<li>{escape(line)}</li>" for line in statement(provenance)),
        "</ul>",
    ]
    return html_page(
        heading,
        "\n".join(filter(None, body)),
        style=_STYLE,
        origin="It repeats what the table says of itself, which proves nothing.",
    )


class Described(Protocol):
    """A plan, which describes how a table was made."""

    @property
    def level_names(self) -> tuple[Hashable, ...]: ...

    @property
    def digest(self) -> str | None: ...

    def provenance(self) -> dict[str, Any]: ...


def _provenance_by(plan: Described, released: Released) -> dict[str, Any]:
    """Return the provenance that a table states; if it states none, return that of a plan.

    A plan does not say whether the noise came from a secret source.
    """
    if not hasattr(plan, "level_names"):
        raise ArgumentError(
            "plan",
            f"must be the plan of the table, not {quote(plan)}.",
            hint="read a stored plan with dpt.Plan.from_dict(data, domain).",
        )
    stated = provenance_of(released.table)
    fits = list(map(str, plan.level_names[1:])) == list(map(str, released.keys))
    if not fits or (stated and stated.get("digest") != plan.digest):
        raise ArgumentError(
            "plan",
            "is not the plan of this table: "
            + ("the table states another digest." if fits else "it has other levels."),
            hint="pass the plan by which the table was released, or leave it out.",
        )
    return stated or {**plan.provenance(), "rng": UNKNOWN_SOURCE}


def _describe_left_out(levels: Sequence[tuple[str, int]]) -> str:
    """Describe which levels a page does not show."""
    named = joined([f"{name} ({size:,} rows)" for name, size in levels])
    return f"This page leaves out {named}, for which the table is too long."


def _notes(released: Released, values: Sequence[Shown], provenance: Mapping[str, Any]) -> list[str]:
    """Explain the columns."""
    means = [value for value in values if value.name != "count" and "count" in released.columns]
    notes = [
        _explain_errors(kind, provenance)
        for kind in dict.fromkeys(value.error_name for value in values if value.error is not None)
    ]
    if means:
        notes.append("The error of a mean is a first-order approximation, for nodes with many records.")
    if any(value.interval is not None for value in values):
        notes.append(
            "An interval holds the true value of what was counted in at least about "
            f"{share_of(provenance) or 'a stated share'} of all releases. This applies to each interval "
            "separately. Intervals are cut to what is possible, so they may be a single number; they still "
            "hold as often as stated."
        )
    if any(np.isnan(value.numbers).any() for value in means):
        notes.append("Where a mean is missing (–), there are too few records to distinguish it from noise.")
    return notes


def _explain_errors(kind: str, provenance: Mapping[str, Any]) -> str:
    """Explain the numbers after ±."""
    if kind == "standard error" and "shown_above" in provenance:
        return "± is one standard error of the noise. It is missing (–) where none was measured."
    if kind == "standard error":
        return (
            "± is one standard error: that of the unbiased estimate, before "
            "anything made it whole or non-negative."
        )
    failure = provenance.get("failure_probability")
    held = f"with a probability of {1 - failure:.4g}" if isinstance(failure, float) else "nearly always"
    return f"± is a bound on the error. For a single row it holds {held}."


def _rows_within(released: Released, max_rows: int | None) -> tuple[IntArray, list[tuple[str, int]]]:
    """Select the rows of the first levels, up to `max_rows`, and list the other levels."""
    if max_rows is not None:
        max_rows = whole_number("max_rows", max_rows, at_least=1, hint="None shows all rows.")
    levels = released.levels
    sizes = np.cumsum([len(rows) for _, rows in levels])
    kept = len(levels) if max_rows is None else int(np.searchsorted(sizes, max_rows, side="right"))
    if not kept:
        raise ArgumentError(
            "max_rows",
            f"is {max_rows}, but the first level alone has {sizes[0]:,} rows.",
            hint="allow more rows; None shows all.",
        )
    order = released.nested
    deepest = int(released.depth[levels[kept - 1][1][0]])
    return order[released.depth[order] <= deepest], [(name, len(rows)) for name, rows in levels[kept:]]


def _table(released: Released, values: Sequence[Shown], rows: IntArray, provenance: Mapping[str, Any]) -> str:
    """Make the HTML table. All text from the released table is escaped here, and nowhere else."""
    try:
        import great_tables
    except ImportError:
        raise MissingExtraError("A page", package="great_tables") from None
    markup = great_tables.html
    cells: dict[str, list[str]] = {
        "name": [
            f'<span class="depth{depth}"><bdi>{escape(released.name(row))}</bdi></span>'
            for row, depth in zip(rows.tolist(), np.minimum(released.depth[rows], 9).tolist(), strict=True)
        ]
    }
    labels: dict[str, Any] = {}
    for place, value in enumerate(values):
        digits = _digits(value)
        cells[f"value{place}"] = _numbers(value.numbers[rows], digits[0])
        labels[f"value{place}"] = markup(escape(str(value.name)))
        if value.error is not None:
            cells[f"error{place}"] = [f"± {text}" for text in _numbers(value.error[rows], digits[1])]
            labels[f"error{place}"] = markup(escape(value.error_name))
        if value.interval is not None:
            ends = [_numbers(end[rows], digits[0]) for end in value.interval]
            cells[f"interval{place}"] = [f"{lower} to {upper}" for lower, upper in zip(*ends, strict=True)]
            labels[f"interval{place}"] = markup(
                f"{share_of(provenance)} interval of what was counted".strip()
            )
    numbers = [name for name in cells if name != "name"]
    shown = released.keys[: int(released.depth[rows].max())]
    page = (
        great_tables.GT(pd.DataFrame(cells), rowname_col="name")  # its cells are headers, too
        .with_id("released")
        .tab_stubhead(markup(escape(" → ".join(map(str, shown)) or "total")))
        .fmt(str, columns="name")  # the only cells with markup, already escaped
        .cols_label(cases=labels)
        .cols_align("right", columns=numbers)
        .tab_options(table_margin_left="0", data_row_padding="3px", table_font_size="15px")
    )
    return str(page.as_raw_html())


def _digits(value: Shown) -> tuple[int, int]:
    """Choose the decimals of the values and of their errors, so that no error is shown as 0."""
    errors = np.zeros(0) if value.error is None else value.error
    errors = errors[np.isfinite(errors) & (errors > 0)]
    digits = -int(np.floor(np.log10(errors.min()))) if len(errors) else 2
    return (0, max(digits + 1, 0)) if value.whole else (max(digits, 0),) * 2


def _numbers(numbers: npt.NDArray[np.float64], digits: int) -> list[str]:
    """Format numbers, with a dash for missing ones."""
    return ["–" if np.isnan(number) else f"{number + 0.0:,.{digits}f}" for number in numbers.tolist()]


_STYLE = "\n".join(
    [
        "#released td.gt_right { font-variant-numeric: tabular-nums; white-space: nowrap; }",
        ".depth0 { font-weight: bold; }",
        *(f".depth{depth} {{ padding-inline-start: {1.4 * (depth - 1):.1f}em; }}" for depth in range(1, 10)),
    ]
)

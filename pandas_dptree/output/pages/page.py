"""Pages of released tables: `page` and `Page`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from os import PathLike
from typing import Any, Protocol, TypedDict

import pandas as pd

from pandas_dptree.errors import ArgumentError, did_you_mean, quote
from pandas_dptree.output.crossed_tables import CrossedTable, read_table
from pandas_dptree.output.derived.reliability import CLASSES, limits_of
from pandas_dptree.output.html import element
from pandas_dptree.output.html_page import check_title, write_page
from pandas_dptree.output.pages.labels import Labels
from pandas_dptree.output.pages.sections import default_kinds
from pandas_dptree.output.pages.setting import Setting
from pandas_dptree.output.pages.texts import texts_of
from pandas_dptree.output.pages.views import columns_of
from pandas_dptree.output.pages.whole import Head, whole_page
from pandas_dptree.output.protection import UNKNOWN_SOURCE
from pandas_dptree.output.released import Released, provenance_of
from pandas_dptree.output.table_digest import Keeper
from pandas_dptree.signatures import public

__all__ = ["Described", "Page", "PageOptions", "page", "page_classes", "page_of_one"]


class Page:
    """A self-contained page of HTML, made by `pandas_dptree.page`; a notebook shows it."""

    def __init__(self, html: str) -> None:
        self.html = html

    def write(self, path: str | PathLike[str]) -> None:
        """Write the page to a file, in whole or not at all; an existing one is replaced."""
        write_page(self.html, path)

    def __repr__(self) -> str:
        return f"<Page of {len(self.html):,} characters: .write(path) or .html>"

    def _repr_html_(self) -> str:
        """Show the page in a frame of its own, so that its style reaches nothing else."""
        style = "width:100%;height:44rem;border:1px solid #8888"
        return element("iframe", srcdoc=self.html, style=style, sandbox="allow-downloads allow-scripts")


@public
def page(
    tables: Mapping[str, Any],
    *,
    title: str,
    show: Sequence[Mapping[str, Any]] | None = None,
    date: object = None,
    publisher: str | None = None,
    notes: str | Sequence[str] | None = None,
    labels: Mapping[Any, Any] | None = None,
    language: str = "en",
    interactive: bool = False,
    reliability: str | Mapping[str, float] = "statcan",
    blank: Sequence[str] = (),
    downloads: bool = True,
    ledger: Keeper | None = None,
) -> Page:
    """Make one self-contained page of released tables, for readers who know no statistics.

    Each level is a section; numbers have their margins, and what protects them is said in words. The page
    needs no other files, no network and no scripts.

    **Privacy.** The page is made of the released tables alone, so it costs nothing. It repeats what their
    ``attrs["dp"]`` state about the protection, which proves nothing.

    Parameters
    ----------
    tables : mapping of str to released table
        What the page shows, by name.
    title : str
        The heading of the page.
    show : list of mappings, optional
        The sections in their order, each ``{"table": name, "as": kind}``, or ``{"tables": [name, name]}`` for
        tables of the same levels side by side. Without ``"as"``, a table is shown as what it is. Further
        entries are options of the kind: ``"levels"`` takes ``columns``, ``max_rows`` (finest levels beyond
        it are left out, and the page says so; default 5,000) and ``order`` (``"table"``, or ``"value"`` for
        the largest first). ``"proportions"`` takes ``of``, ``"change"`` the name of the table ``before``,
        ``"top"`` takes ``n`` and ``level``, and ``"combine"`` the ``areas``, as the methods of these names
        do. By default all tables, one after the other.
    date : date or str, optional
        The date of publication, as it is to be printed.
    publisher : str, optional
        Who publishes the page.
    notes : str or list of str, optional
        Paragraphs below the heading.
    labels : mapping, optional
        Names to print instead of those of levels, columns, tables and keys: a text for a name, a mapping for
        the keys of a level, or a pair of both. Other names are printed with spaces for underscores.
    language : str, default "en"
        The language of the fixed words.
    interactive : bool, default False
        Whether rows can be searched, sorted and folded by a script. Nothing is on the page only with it.
    reliability : {"statcan", "abs", "none"} or mapping, default "statcan"
        Classes of reliability beside counts and sums: as for ``table.dp.reliability``, or ``"none"``.
    blank : list of str, optional
        Classes of which the page prints the letter and the interval instead of the number, for example
        ``["F"]``. This protects nobody. Shares, changes and downloads keep their numbers.
    downloads : bool, default True
        Whether the page holds small tables as CSV files, too.
    ledger : Ledger, optional
        The ledger to which the releases were charged. If a table is not the one that it keeps, the page says
        whether rows were selected or values changed. It says what is left of the account, too.

    Returns
    -------
    Page
        It has the HTML as ``.html``, and is written to a file by ``.write(path)``.

    Raises
    ------
    ArgumentError
        If a table is no released table, or one of `show`, `labels`, `reliability`, `blank` and `ledger` is
        wrong for them.

    Examples
    --------
    >>> import pandas as pd, pandas_dptree as dpt
    >>> records = pd.DataFrame({"state": ["CA", "CA", "NY"], "city": ["Oakland", "Fresno", "Utica"]})
    >>> counts = records.dp.tree_counts(["state", "city"], epsilon=1.0, domain="observed")
    >>> dpt.page({"people": counts}, title="Where they live").write("people.html")  # doctest: +SKIP
    """
    if not isinstance(tables, Mapping) or not tables or not all(isinstance(name, str) for name in tables):
        raise ArgumentError(
            "tables",
            f"must be a mapping of names to released tables, not {quote(tables)}.",
            hint='for example {"visits": counts}.',
        )
    if not isinstance(title, str):
        raise ArgumentError("title", f"must be text, not {quote(title)}.", hint='for example title="Visits".')
    if show is not None and (not isinstance(show, list | tuple) or not show):
        raise ArgumentError(
            "show", f"must be a list of mappings, not {quote(show)}.", hint='[{"table": "visits"}].'
        )
    texts = texts_of(language)
    provenances = {name: provenance_of(each) for name, each in tables.items()}
    classes, hidden = page_classes(reliability, blank)
    setting = Setting(tables, provenances, texts, Labels(labels, texts), classes, hidden)
    items = [{"table": name} for name in tables] if show is None else show
    head = Head(title, date, publisher, notes, downloads)
    return Page(whole_page(setting, items, head, ledger, interactive=interactive))


def page_classes(
    reliability: str | Mapping[str, float], blank: Sequence[str]
) -> tuple[Mapping[str, float], tuple[str, ...]]:
    """Return the classes of a page with their limits, and those whose numbers it does not show."""
    known = [*CLASSES, "none"]
    if isinstance(reliability, str) and reliability not in known:
        hint = f"{did_you_mean([reliability], known)}choose one of {', '.join(known)}, or a mapping."
        raise ArgumentError("reliability", f"is unknown: {quote(reliability)}.", hint=hint)
    classes = {} if reliability == "none" else limits_of(reliability, "reliability")
    if isinstance(blank, str) or not all(
        isinstance(name, str) and name and name in classes for name in blank
    ):
        named = ", ".join(filter(None, classes)) or 'none with reliability="none"'
        raise ArgumentError(
            "blank", f"must be a list of classes, not {quote(blank)}.", hint=f"the classes are {named}."
        )
    return classes, tuple(blank)


class PageOptions(TypedDict, total=False):
    """What `page` and `DataFrame.dp.to_html` take alike."""

    date: object
    publisher: str | None
    notes: str | Sequence[str] | None
    labels: Mapping[Any, Any] | None
    language: str
    interactive: bool
    reliability: str | Mapping[str, float]
    blank: Sequence[str]


class Described(Protocol):
    """A plan, which describes how a table was made."""

    @property
    def level_names(self) -> tuple[Hashable, ...]:
        """The names of the levels, from the root down."""
        ...

    @property
    def digest(self) -> str | None:
        """Its SHA-256."""
        ...

    def provenance(self) -> dict[str, Any]:
        """Return how its tables are made."""
        ...


def page_of_one(
    table: pd.DataFrame,
    *,
    title: str | None,
    columns: Hashable | list[Hashable] | None,
    max_rows: int | None,
    margin: Any = None,
    plan: Described | None = None,
    ledger: Keeper | None = None,
    date: object = None,
    publisher: str | None = None,
    notes: str | Sequence[str] | None = None,
    labels: Mapping[Any, Any] | None = None,
    language: str = "en",
    interactive: bool = False,
    reliability: str | Mapping[str, float] = "statcan",
    blank: Sequence[str] = (),
) -> Page:
    """Make the page of one table; see `DataFrame.dp.to_html`."""
    check_title(title)
    texts = texts_of(language)
    shown = Labels(labels, texts)
    released = read_table(table)
    provenance = provenance_of(table) if plan is None else _provenance_by(plan, released)
    setting = Setting({"": table}, {"": provenance}, texts, shown, *page_classes(reliability, blank))
    chosen = columns_of(released, provenance, shown, texts, columns, setting.classes, setting.blank)
    if title is None:
        named = texts.joined([column.heading for column in chosen])
        levels = texts.joined([shown.inline(key) for key in released.keys])
        title = texts.fill("page.title", columns=named, levels=levels) if released.keys else named
    head = Head(title, date, publisher, notes, True)
    *pictures, kind = default_kinds(table)
    items: list[dict[str, Any]] = [{"table": "", "as": picture} for picture in pictures if columns is None]
    if isinstance(released, CrossedTable):
        names = [column.shown.name for column in chosen]
        items = [{"table": "", "as": kind, "margin": margin, "column": name} for name in names]
    elif margin is not None:
        raise ArgumentError(
            "margin", "needs a table of crossed hierarchies.", hint="leave it out: all levels are shown."
        )
    else:
        items += [{"table": "", "as": kind, "columns": columns, "max_rows": max_rows}]
    return Page(whole_page(setting, items, head, ledger, interactive=interactive))


def _provenance_by(plan: Described, released: Released | CrossedTable) -> dict[str, Any]:
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
    if isinstance(released, CrossedTable):
        fits = {*released.margin_names} <= {*map(str, plan.level_names)}
    else:
        fits = list(map(str, plan.level_names[1:])) == list(map(str, released.keys))
    if not fits or (stated and stated.get("digest") != plan.digest):
        raise ArgumentError(
            "plan",
            "is not the plan of this table: "
            + ("the table states another digest." if fits else "it has other levels."),
            hint="pass the plan by which the table was released, or leave it out.",
        )
    return stated or {**plan.provenance(), "rng": UNKNOWN_SOURCE}

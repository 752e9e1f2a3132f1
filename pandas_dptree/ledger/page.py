"""The page of a ledger, for whoever oversees the releases."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from pandas_dptree.errors import visible
from pandas_dptree.ledger.amounts import Amount, Balance
from pandas_dptree.ledger.entries import Terms
from pandas_dptree.ledger.history import Charged, charges_of, terms_of_all
from pandas_dptree.ledger.store import head_of, spent_of
from pandas_dptree.ledger.transactions import left_of
from pandas_dptree.output.html import Child, Markup, element
from pandas_dptree.output.html_page import check_title
from pandas_dptree.output.pages.setting import Section, scrolled
from pandas_dptree.output.pages.texts import ENGLISH
from pandas_dptree.output.pages.whole import document, listed_sections
from pandas_dptree.output.protection import hidden_in_words, joined, loss_in_words

__all__ = ["ledger_page"]


def ledger_page(connection: sqlite3.Connection, *, title: str | None, name: str) -> str:
    """Make a page; see `Ledger.to_html`."""
    check_title(title)
    accounts = terms_of_all(connection)
    charges: dict[str, list[Charged]] = {account: [] for account in accounts}
    for each in charges_of(connection):
        charges[each.terms.name].append(each)
    sections = [_section(connection, terms, charges[account]) for account, terms in accounts.items()]
    body, contents = listed_sections([*sections, _checking(connection, name)], ENGLISH)
    shown = title or ENGLISH["ledger.title"]
    top = element(
        "header",
        element("p", ENGLISH["ledger.kicker"], " ", _quoted(name), class_="kicker"),
        element("h1", shown),
    )
    return document(shown, [top, contents, body], ENGLISH, origin=ENGLISH["ledger.origin"])


def _section(connection: sqlite3.Connection, terms: Terms, charges: Sequence[Charged]) -> Section:
    """Describe one account: the protection, what is left, and its releases."""
    spent = {part: amount for part, (amount, _) in spent_of(connection, terms.name).items()}
    left = left_of(terms.exact_cap, spent, None)
    body = element(
        "div",
        element("p", ENGLISH["ledger.useless"], class_="warning") if terms.cap.objection else None,
        element("div", class_="meter", style=_bar(terms, terms.exact_cap - left), aria_hidden="true"),
        element("ul", [element("li", visible(line)) for line in _facts(terms, left, charges)]),
        _parts(connection, terms),
        _releases(terms, charges),
    )
    name = _quoted(terms.name)
    return Section(_filled("ledger.account", name), body, entry=name, size=f"{len(charges):,}")


def _bar(terms: Terms, amount: Amount) -> str:
    """Return the custom property of a bar: the share of the cap."""
    return f"--v:{min(float(amount.loss / terms.exact_cap.loss), 1.0):.4g}"


def _facts(terms: Terms, left: Amount, charges: Sequence[Charged]) -> list[str]:
    lost = [each.number for each in charges if not each.released]
    spent_of_it = Balance(amount=terms.exact_cap - left, cap=terms.cap, state="spent")
    left_of_it = Balance(amount=left, cap=terms.cap, state="left")
    facts = [
        _protected(terms),
        hidden_in_words({"neighbors": terms.neighbors}),
        "Protection by all releases together, though each may have been chosen after earlier ones were "
        f"seen: {loss_in_words(terms.cap.to_dict())}. Releases that were not charged here add to it.",
        f"Spent{' in the part that has spent most' if terms.parts else ''}: {spent_of_it.in_words}, by "
        f"{len(charges):,} charges.",
        f"Left{' for all parts' if terms.parts else ''}: {left_of_it.in_words}.",
    ]
    if lost:
        numbers = joined([f"{number:,}" for number in lost[:20]])
        facts.append(
            f"Charged, but no output is known: entries {numbers}{' and others' * (len(lost) > 20)}. The "
            "process may still be running, or it ended before its table was kept. They count as spent."
        )
    if terms.parts:
        facts.append(
            "Parts: each of those who are protected must be in one part only, for which the publisher is "
            "responsible. So losses in different parts do not add up."
        )
    if terms.fixed_records:
        facts.append("Assumed by the publisher: no record depends on an earlier release.")
    return facts


def _protected(terms: Terms) -> str:
    if terms.privacy_unit is None:
        return "Who is protected: each single record. Anyone with several records is protected less."
    return (
        f"Who is protected: everyone named in the column “{terms.privacy_unit}”, with all of their records "
        "that a release counts."
    )


def _parts(connection: sqlite3.Connection, terms: Terms) -> Markup | None:
    """List what is spent and left of each part, beside what is spent of the whole."""
    found = spent_of(connection, terms.name)
    spent = {part: amount for part, (amount, _) in found.items()}
    rows = []
    for part in terms.parts or ():
        amount, n = found.get(part, (Amount(), 0))
        left = left_of(terms.exact_cap, spent, part)
        rows.append(
            [
                _quoted(part),
                element("span", class_="meter", style=_bar(terms, terms.exact_cap - left)),
                f"{n:,}",
                Balance(amount=amount, cap=terms.cap, state="spent").in_words,
                Balance(amount=left, cap=terms.cap, state="left").in_words,
            ]
        )
    return _table("ledger.parts", ["part", "used", "charges", "spent", "left"], rows) if rows else None


def _releases(terms: Terms, charges: Sequence[Charged]) -> Markup:
    """List the releases of an account, and fold their digests away."""
    if not charges:
        return element("p", ENGLISH["ledger.nothing"])
    symbol = "epsilon" if terms.currency == "epsilon" else "rho"
    heads = ["entry", "time", "note", *["part"] * bool(terms.parts), "released", symbol, "delta", "by"]
    digests = [[f"{each.number:,}", *map(_mono, _digests(each))] for each in charges]
    folded = element(
        "details",
        element("summary", ENGLISH["ledger.digests"]),
        _table("ledger.digests.caption", ["entry", "plan", "table", "ledger"], digests),
    )
    rows = [_release(terms, each) for each in charges]
    return Markup(_table("ledger.releases", heads, rows) + folded)


def _release(terms: Terms, charged: Charged) -> list[Child]:
    """Describe one charge in cells."""
    content = charged.content
    spent = Balance(amount=charged.amount, cap=terms.cap, state="spent")
    again = "" if content["repeats"] is None else ENGLISH.fill("ledger.again", entry=content["repeats"])
    name = None if content["name"] is None else ["“", _quoted(content["name"]), "”: "]
    unknown = [element("br"), element("strong", ENGLISH["ledger.unknown"])]
    return [
        f"{charged.number:,}",
        visible(content["time"].replace("T", " ").removesuffix("Z")),
        element("span", _quoted(content["note"]), visible(again), class_="wraps"),
        *([_quoted(content["part"] or ENGLISH["ledger.all"])] if terms.parts else []),
        element(
            "span", name, _quoted(content["what"]), None if charged.released else unknown, class_="wraps"
        ),
        [
            element("span", class_="meter", style=_bar(terms, charged.amount)),
            f"{spent.to_dict()[terms.currency]:.6g}",
        ],
        f"{spent.delta:.6g}",
        _quoted(content["user"]),
    ]


def _digests(charged: Charged) -> tuple[str, str, str]:
    """Return the digests of the plan, of the table if it was kept, and of the entry."""
    return charged.content["plan"], charged.table or "", charged.digest


def _quoted(text: str) -> Markup:
    """Set a text apart; whoever changed the file may have written anything, also what nobody sees."""
    return element("bdi", visible(text))


def _filled(key: str, inner: Markup, **values: str) -> Markup:
    """Return a text with an element in the place of ``{}``."""
    before, after = ENGLISH.fill(key, **values).split("{}")
    return element("span", before, inner, after)


def _mono(digest: str) -> Markup:
    return element("span", visible(digest), class_="mono")


def _table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[Child]]) -> Markup:
    """Make a table, of which the first column names the rows."""
    head = element("tr", [element("th", ENGLISH[f"ledger.head.{each}"], scope="col") for each in heads])
    body = [
        element("tr", element("th", first, scope="row"), [element("td", cell) for cell in cells])
        for first, *cells in rows
    ]
    made = element(
        "table",
        element("caption", ENGLISH[caption]),
        element("thead", head),
        element("tbody", body),
        class_="key" if caption == "ledger.digests.caption" else "key lines",
    )
    return scrolled(made, ENGLISH[caption], ENGLISH)


def _checking(connection: sqlite3.Connection, name: str) -> Section:
    """Say how the page and the ledger can be compared."""
    head = head_of(connection)
    command = element("code", f"dptree ledger verify {visible(name)} --head …", class_="mono")
    body = element(
        "div",
        element("p", _filled("ledger.check.head", _quoted(name), n=f"{head.number:,}")),
        element("p", _mono(head.digest)),
        element("p", _filled("ledger.check.how", command)),
    )
    return Section(ENGLISH["ledger.check"], body, entry=ENGLISH["ledger.check.entry"])

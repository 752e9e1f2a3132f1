"""The page of a ledger, for whoever oversees the releases."""

from __future__ import annotations

import html
import sqlite3
from collections.abc import Sequence

from pandas_dptree.errors import visible
from pandas_dptree.ledger.amounts import Amount, Balance
from pandas_dptree.ledger.entries import Terms
from pandas_dptree.ledger.history import Charged, charges_of, terms_of_all
from pandas_dptree.ledger.store import head_of, spent_of
from pandas_dptree.ledger.transactions import left_of
from pandas_dptree.output.html_page import check_title, html_page
from pandas_dptree.output.protection import hidden_in_words, joined, loss_in_words

__all__ = ["ledger_page"]


def ledger_page(connection: sqlite3.Connection, *, title: str | None, name: str) -> str:
    """Make a page; see `Ledger.to_html`."""
    check_title(title)
    charges: dict[str, list[Charged]] = {account: [] for account in terms_of_all(connection)}
    for each in charges_of(connection):
        charges[each.terms.name].append(each)
    sections = [
        _section(connection, terms, charges[account]) for account, terms in terms_of_all(connection).items()
    ]
    head = head_of(connection)
    checking = _CHECKING.format(name=_escape(name), n_entries=f"{head.number:,}", head=_escape(head.digest))
    return html_page(
        title or "Privacy budgets, and what was spent",
        "\n".join([*sections, checking]),
        style=_STYLE,
        origin="It repeats what the ledger says, which proves nothing by itself.",
    )


def _section(connection: sqlite3.Connection, terms: Terms, charges: Sequence[Charged]) -> str:
    """Describe one account: the protection, what is left, and its releases."""
    facts = "\n".join(f"<li>{_escape(line)}</li>" for line in _facts(connection, terms, charges))
    objection = terms.cap.objection
    warning = '<p class="warning">The cap of this account is so large that it protects nobody.</p>\n'
    return "\n".join(
        [
            f"<h2>Account <bdi>“{_escape(terms.name)}”</bdi></h2>",
            f"{warning if objection else ''}<ul>\n{facts}\n</ul>",
            *_parts(connection, terms),
            _releases(terms, charges),
        ]
    )


def _facts(connection: sqlite3.Connection, terms: Terms, charges: Sequence[Charged]) -> list[str]:
    spent = {part: amount for part, (amount, _) in spent_of(connection, terms.name).items()}
    left = left_of(terms.exact_cap, spent, None)
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


def _parts(connection: sqlite3.Connection, terms: Terms) -> list[str]:
    """List what is spent and left of each part, beside what is spent of the whole."""
    found = spent_of(connection, terms.name)
    spent = {part: amount for part, (amount, _) in found.items()}
    rows = []
    for part in terms.parts or ():
        amount, n = found.get(part, (Amount(), 0))
        left = left_of(terms.exact_cap, spent, part)
        rows.append(
            [
                f"<bdi>{_escape(part)}</bdi>",
                _escape(f"{n:,}"),
                _escape(Balance(amount=amount, cap=terms.cap, state="spent").in_words),
                _escape(Balance(amount=left, cap=terms.cap, state="left").in_words),
            ]
        )
    return [_table(["part", "charges", "spent on this part alone", "left"], rows)] if rows else []


def _releases(terms: Terms, charges: Sequence[Charged]) -> str:
    """List the releases of an account."""
    if not charges:
        return "<p>Nothing was charged so far.</p>"
    symbol = "ε" if terms.currency == "epsilon" else "ρ"
    heads = [
        "entry",
        "requested (UTC)",
        "note",
        *(["part"] if terms.parts else []),
        "released",
        symbol,
        "δ",
        "by",
    ]
    rows = []
    for each in charges:
        content = each.content
        name = "" if content["name"] is None else f"“<bdi>{_escape(content['name'])}</bdi>”: "
        spent = Balance(amount=each.amount, cap=terms.cap, state="spent")
        again = "" if content["repeats"] is None else f" (again, after entry {content['repeats']})"
        table = "" if each.table is None else f"table {_escape(each.table)}<br>"
        output = "" if each.released else "<br><strong>no output is known</strong>"
        rows.append(
            [
                f"{each.number:,}",
                _escape(content["time"].replace("T", " ").removesuffix("Z")),
                f'<span class="note"><bdi>{_escape(content["note"])}</bdi>{_escape(again)}</span>',
                *([f"<bdi>{_escape(content['part'] or 'all')}</bdi>"] if terms.parts else []),
                f"{name}<bdi>{_escape(content['what'])}</bdi>{output}<br>"
                f'<span class="digest">plan {_escape(content["plan"])}<br>{table}'
                f"ledger {_escape(each.digest)}</span>",
                _escape(f"{spent.to_dict()[terms.currency]:.6g}"),
                _escape(f"{spent.delta:.6g}"),
                f"<bdi>{_escape(content['user'])}</bdi>",
            ]
        )
    return _table(heads, rows)


def _escape(text: str) -> str:
    """Escape HTML, and what is no printable character: whoever changed the file may have written anything."""
    return html.escape(visible(text))


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Make a table of cells that are escaped already."""
    head = "".join(f'<th scope="col">{_escape(each)}</th>' for each in heads)
    body = "\n".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


_STYLE = "\n".join(
    [
        "table { border-collapse: collapse; font-size: 15px; margin: 1em 0; }",
        "th, td { border-bottom: 1px solid #ccc; padding: 4px 10px; text-align: left; vertical-align: top; }",
        "td { font-variant-numeric: tabular-nums; }",
        ".note { display: block; max-width: 20em; overflow-wrap: anywhere; }",
        ".digest { font-family: monospace; font-size: 11px; color: #555; overflow-wrap: anywhere; }",
    ]
)

_CHECKING = """<h2>How this can be checked</h2>
<p>The ledger <bdi>{name}</bdi> has {n_entries} entries. The digest of the last one stands for all:</p>
<p class="digest">{head}</p>
<p>Keep it where those who run the ledger cannot write. With it,
<code>dptree ledger verify {name} --head …</code>
finds whether an entry that this page lists was changed or removed later.</p>"""

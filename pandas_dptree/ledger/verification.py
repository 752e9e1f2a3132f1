"""Whether a ledger says what it said when it was written: its chain, its sums, its caps."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from pandas_dptree.errors import ArgumentError, LedgerIntegrityError, quote, visible
from pandas_dptree.ledger.amounts import Amount, Balance
from pandas_dptree.ledger.entries import CHARGE_KEYS, Terms, canonical, checked_note, digest_after
from pandas_dptree.ledger.store import FORMAT, KEPT_SCHEMA, SCHEMA, WHOLE, Head, format_of
from pandas_dptree.ledger.tables import TABLE_KEYS, problems_of_table
from pandas_dptree.ledger.transactions import left_of

__all__ = ["verified"]

_LEDGER_KEYS: Final = frozenset("kind format version identity user time".split())
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_ANY_TIME: Final = datetime(2000, 1, 1, tzinfo=UTC)
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


def verified(connection: sqlite3.Connection, head: str | Head | None, *, path: Path) -> Head:
    """Check a ledger within one transaction, and return its head; see `Ledger.verify`."""
    noted = None if head is None else _checked_head(head)
    replay = _Replay(path=path, noted=noted)
    problems: list[str] = []
    for check in (_physical, replay.entries, replay.caches, replay.tables, _schema):
        try:
            problems += check(connection)
        except sqlite3.DatabaseError as error:
            problems.append(f"SQLite cannot read it: {error}")
    if noted is not None and not replay.found:
        problems.append(
            f"no entry has the digest {noted[:16]}...: entries were removed from the end, or all digests "
            "were computed anew, or this is another ledger"
        )
    if problems:
        raise LedgerIntegrityError(
            f"The ledger {path.name!r} was changed or damaged after it was written:",
            problems=map(visible, problems),  # a name in the file may hold anything
            hint="keep a copy, stop releasing, and compare it with a backup; the attribute `problems` of "
            "this error lists everything. Whatever was released is spent, whether or not it is still listed.",
        )
    return replay.head


def _checked_head(head: object) -> str:
    digest = head.digest if isinstance(head, Head) else head
    text = digest.strip().lower() if isinstance(digest, str) else ""
    if not _DIGEST.fullmatch(text):
        raise ArgumentError(
            "head",
            f"must be a digest of 64 hexadecimal digits, not {quote(head)}.",
            hint="pass one that was noted earlier: ledger.head.digest, or that on a published page.",
        )
    return text


def _physical(connection: sqlite3.Connection) -> Iterator[str]:
    """Let SQLite check its pages, indexes and references."""
    rows = [text for (text,) in connection.execute("PRAGMA integrity_check")]
    yield from (f"SQLite: {text}" for text in rows if text != "ok")
    for table, number, *_ in connection.execute("PRAGMA foreign_key_check"):
        yield f"the table {table} refers to an entry that does not exist: {number}"


def _schema(connection: sqlite3.Connection) -> Iterator[str]:
    """Compare tables, indexes and triggers with those of a new ledger, and the format in the header."""
    version = format_of(connection)
    if not 1 <= version <= FORMAT:
        yield f"the header of the file states the format {version}"
    query = "SELECT type, name, sql FROM sqlite_master"
    with closing(sqlite3.connect(":memory:")) as fresh:
        fresh.executescript(SCHEMA)
        for statement in KEPT_SCHEMA if version > 1 else ():
            fresh.execute(statement)
        expected = set(fresh.execute(query))
    found = set(connection.execute(query))
    for kind, name, _ in sorted(expected - found, key=str):
        yield f"the {kind} {name} is missing or was changed"
    for kind, name in sorted({row[:2] for row in found} - {row[:2] for row in expected}):
        yield f"the {kind} {name} does not belong to a ledger"


@dataclass(slots=True)
class _Replay:
    """A ledger, written once more from its entries."""

    path: Path
    noted: str | None
    found: bool = False
    head: Head = field(default_factory=lambda: Head(0, ""))
    terms: dict[str, Terms] = field(default_factory=dict)
    spent: dict[str, dict[str, Amount]] = field(default_factory=dict)
    n_charges: dict[tuple[str, str], int] = field(default_factory=dict)
    requests: dict[tuple[Any, ...], int] = field(default_factory=dict)
    charges: set[int] = field(default_factory=set)
    kept: dict[int, tuple[int, Mapping[str, Any]]] = field(default_factory=dict)

    def entries(self, connection: sqlite3.Connection) -> Iterator[str]:
        """Check the entries one by one: numbers, digests, contents, caps."""
        rows = connection.execute("SELECT number, content, digest FROM entry ORDER BY number")
        for number, text, digest in rows:
            expected = self.head.number + 1
            if number == expected + 1:
                yield f"entry {expected} is missing"
            elif number != expected:
                yield f"entries {expected} to {number - 1} are missing"
            if digest != digest_after(self.head.digest, str(text)):
                yield (
                    f"entry {number} does not have the digest that follows from its content and from the "
                    "entry before it: one of them was changed, moved or removed"
                )
            self.head = Head(number, str(digest))
            self.found |= digest == self.noted
            yield from (f"entry {number} {problem}" for problem in self._content(number, text))
        if self.head.number == 0:
            yield "there are no entries"

    def _content(self, number: int, text: Any) -> Iterator[str]:
        try:
            content = json.loads(text)
            kind = content["kind"]
            if canonical(content) != text:
                raise ValueError
            check = {
                "ledger": self._ledger,
                "account": self._account,
                "charge": self._charge,
                "table": self._table,
            }[kind]
            problems = list(check(number, content))
        except (ArgumentError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            yield "is not one that a ledger writes"
        else:
            yield from problems
            if (kind == "ledger") != (number == 1):
                yield "does not state the format" if number == 1 else "states the format again"

    def _ledger(self, number: int, content: Mapping[str, Any]) -> Iterator[str]:
        first = content["format"] == 1 and content.keys() == _LEDGER_KEYS
        second = content["format"] == 2 and content.keys() == _LEDGER_KEYS | {"keep_tables"}
        _require(
            (first or second) and isinstance(content.get("keep_tables", True), bool) and _is_time(content)
        )
        yield from ()

    def _account(self, number: int, content: Mapping[str, Any]) -> Iterator[str]:
        terms = Terms.of(content)
        made_again = {**terms.to_content(_ANY_TIME), "user": content["user"], "time": content["time"]}
        _require(made_again == content and _is_time(content) and terms.neighbors in ("add_remove", "replace"))
        if terms.name in self.terms:
            yield f"opens the account {quote(terms.name)} again"
        is_proven = terms.cap.kind == "pure" or terms.fixed_records
        if terms.parts and (terms.neighbors == "replace" or not is_proven):
            yield "opens an account with parts that are not proven to be parallel"
        self.terms.setdefault(terms.name, terms)
        self.spent.setdefault(terms.name, {})

    def _charge(self, number: int, content: Mapping[str, Any]) -> Iterator[str]:
        account, part = content["account"], content["part"]
        amount = Amount(Fraction(content["loss"]), Fraction(content["delta"]))
        _require(content.keys() == CHARGE_KEYS and _is_time(content))
        _require((str(amount.loss), str(amount.delta)) == (content["loss"], content["delta"]))
        _require(checked_note(content["note"]) == content["note"] and isinstance(content["plan"], str))
        self.charges.add(number)
        if account not in self.terms:
            yield f"charges the account {quote(account)}, which does not exist by then"
            return
        terms, spent = self.terms[account], self.spent[account]
        if part is not None and part not in (terms.parts or ()):
            yield f"charges the part {quote(part)}, which the account {quote(account)} does not have"
            return
        if min(amount.loss, amount.delta) < 0:
            yield "charges less than nothing"
        left = left_of(terms.exact_cap, spent, part)
        if not amount.fits(left):
            remaining = Balance(amount=Amount.largest([left]), cap=terms.cap, state="left")
            yield f"charges more than is left of the account {quote(account)}: {remaining} before it"
        request = (account, part, content["plan"], content["note"])
        if content["repeats"] != self.requests.get(request):
            before = self.requests.get(request)
            yield f"does not say that it repeats entry {before}" if before else "repeats no earlier entry"
        self.requests[request] = number
        where = WHOLE if part is None else part
        spent[where] = spent.get(where, Amount()) + amount
        self.n_charges[account, where] = self.n_charges.get((account, where), 0) + 1

    def _table(self, number: int, content: Mapping[str, Any]) -> Iterator[str]:
        digests = content["table"], content["stored"]
        _require(content.keys() == TABLE_KEYS and all(_DIGEST.fullmatch(each) for each in digests))
        charge = content["charge"]
        if charge not in self.charges or charge in self.kept:
            yield f"is a table of entry {charge}, which is not a charge without one"
        self.kept[charge] = number, content

    def tables(self, connection: sqlite3.Connection) -> Iterator[str]:
        """Compare the tables that were kept with their entries."""
        yield from problems_of_table(connection, self.path, self.kept)

    def caches(self, connection: sqlite3.Connection) -> Iterator[str]:
        """Compare the cached sums with those of the entries, and the marks with the charges."""
        expected = {
            (account, part): (amount, self.n_charges[account, part])
            for account, parts in self.spent.items()
            for part, amount in parts.items()
        }
        found: dict[tuple[str, str], tuple[Amount | None, int]] = {}
        for account, part, loss, delta, n in connection.execute("SELECT * FROM spent"):
            try:
                found[account, part] = Amount(Fraction(loss), Fraction(delta)), n
            except (TypeError, ValueError, ZeroDivisionError):
                found[account, part] = None, n
        for account, part in sorted(
            key for key in found.keys() | expected.keys() if found.get(key) != expected.get(key)
        ):
            where = f", part {quote(part)}," if part else ""
            yield f"the sum of the account {quote(account)}{where} is not that of its charges"
        for (charge,) in connection.execute("SELECT charge FROM released ORDER BY charge"):
            if charge not in self.charges:
                yield f"entry {charge} is marked as released, but is not a charge"


def _require(condition: bool) -> None:
    """Reject a content that no ledger writes."""
    if not condition:
        raise ValueError


def _is_time(content: Mapping[str, Any]) -> bool:
    return isinstance(content["user"], str) and bool(_TIME.fullmatch(content["time"]))

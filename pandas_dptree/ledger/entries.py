"""What the entries of a ledger say, and how they are chained.

Each entry is a JSON object as canonical text. Its digest is the SHA-256 of the digest before it and of the
text, so it stands for all entries up to it.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import unicodedata
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from fractions import Fraction
from functools import cache
from typing import Any, Final

from pandas_dptree.errors import ArgumentError, check_choice, did_you_mean, is_name, listed, naming, quote
from pandas_dptree.ledger.amounts import Amount, Currency, cap_of, currency_of, exact_cap
from pandas_dptree.plans import serialize
from pandas_dptree.privacy.loss import PrivacyLoss, warn_if_useless
from pandas_dptree.privacy.sensitivity import Neighbors
from pandas_dptree.privacy.unit import ROWS

__all__ = [
    "CHARGE_KEYS",
    "Terms",
    "canonical",
    "checked_name",
    "checked_note",
    "digest_after",
    "in_normal_form",
    "readable",
    "text_of_time",
    "user_name",
]

MOST_CHARACTERS: Final = 200
"""The longest note, and the longest name of an account or a part."""
MOST_PARTS: Final = 10_000
"""A charge on a whole account looks at each part, so this bounds its time."""

CHARGE_KEYS: Final = frozenset("kind account part loss delta plan name what note repeats user time".split())
"""What an entry of kind "charge" holds."""


def canonical(content: Mapping[str, Any]) -> str:
    """Return JSON as its one canonical text: sorted keys, no spaces, ASCII."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest_after(previous: str, text: str) -> str:
    """Return the digest of an entry: SHA-256 of the previous digest, a line feed and the entry's text.

    Before the first entry, the digest is empty.
    """
    return hashlib.sha256(f"{previous}\n{text}".encode("utf-8", "surrogatepass")).hexdigest()


def text_of_time(time: datetime) -> str:
    """Return a time in UTC, in seconds, as in ISO 8601."""
    utc = time.astimezone(timezone.utc)  # noqa: UP017
    return f"{utc.replace(tzinfo=None).isoformat(timespec='seconds')}Z"


@cache
def user_name() -> str:
    """Return the name of the user who runs this process, or "unknown"."""
    try:
        return readable(getpass.getuser()) or "unknown"
    except (ImportError, KeyError, OSError):  # neither a variable nor an entry of the system names it
        return "unknown"


def readable(text: str, most: int = MOST_CHARACTERS) -> str:
    """Return a text without what cannot be printed, and not too long."""
    kept = "".join(character for character in text if character.isprintable()).strip()
    return kept if len(kept) <= most else f"{kept[: most - 3]}..."


def checked_note(note: object) -> str:
    """Check a note, and return it in its normal form."""
    return _printable("note", note, 'say what the release is for, in one line: for example note="2026-03".')


def checked_name(name: object) -> str | None:
    """Check the name of a table, and return the form in which it is stored, the same for no other name."""
    text = name if name is None or isinstance(name, str) else str(name)
    hint = 'name the table in one line: for example name="visits".'
    return None if text is None else _printable("name", text, hint)


def in_normal_form(text: object) -> object:
    """Return the form in which a text is stored: composed characters, no surrounding blanks.

    So a name is found by the text that it was made with. What is not text is returned as it is.
    """
    return unicodedata.normalize("NFC", text).strip() if isinstance(text, str) else text


def _printable(argument: str, text: object, hint: str) -> str:
    normal = in_normal_form(text)
    if not isinstance(normal, str):
        raise ArgumentError(argument, f"must be text, not {quote(text)}.", hint=hint)
    if not normal:
        raise ArgumentError(argument, "must not be empty.", hint=hint)
    if len(normal) > MOST_CHARACTERS:
        raise ArgumentError(
            argument, f"has more than {MOST_CHARACTERS} characters: {len(normal):,}.", hint=hint
        )
    if not normal.isprintable():
        raise ArgumentError(argument, "holds characters that cannot be printed, or a line break.", hint=hint)
    return normal


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What an account is for: its cap and what it assumes. They never change."""

    name: str
    cap: PrivacyLoss
    exact_cap: Amount
    privacy_unit: Hashable | None
    neighbors: Neighbors
    parts: tuple[str, ...] | None
    fixed_records: bool

    @classmethod
    def checked(
        cls,
        name: object,
        *,
        epsilon: float | None,
        delta: float,
        rho: float | None,
        privacy_unit: object,
        neighbors: object,
        parts: object,
        fixed_records: object,
    ) -> Terms:
        """Check the arguments of a new account; for them, see `Ledger.create`."""
        name = _printable("account", name, 'name the population that it protects: account="patients".')
        cap = PrivacyLoss(epsilon=epsilon, delta=delta, rho=rho)
        check_choice("neighbors", neighbors, ("add_remove", "replace"))
        found = cls(
            name=name,
            cap=cap,
            exact_cap=exact_cap(cap),
            privacy_unit=_checked_unit(privacy_unit),
            neighbors=neighbors,  # type: ignore[arg-type]
            parts=None if parts is None else _checked_parts(parts),
            fixed_records=_checked_assumption(fixed_records, parts, cap),
        )
        if parts is not None and neighbors != "add_remove":
            raise ArgumentError(
                "parts",
                'cannot be given with neighbors="replace": a replaced unit may move from one part to '
                "another, and so change two.",
                hint='leave `parts` out, or use neighbors="add_remove".',
            )
        warn_if_useless(cap)
        return found

    @property
    def currency(self) -> Currency:
        """What the account adds up, besides delta."""
        return currency_of(self.cap)

    @property
    def protects(self) -> str:
        """Whom the account protects, in words."""
        return "each row" if self.privacy_unit is None else f"each {quote(self.privacy_unit)}"

    def check_part(self, part: object) -> str:
        """Return the name of a part, or raise an ArgumentError."""
        if self.parts is None:
            raise ArgumentError(
                "part",
                f"cannot be chosen: the account {quote(self.name)} was opened without parts.",
                hint='parts are declared when an account is opened, as in parts=["2026-01", "2026-02"].',
            )
        normal = in_normal_form(part)
        if normal not in self.parts:
            raise ArgumentError(
                "part",
                f"is unknown to the account {quote(self.name)}: {quote(part)}.",
                hint=f"{did_you_mean([part], self.parts)}its parts are {listed(self.parts)}.",
            )
        return str(normal)

    def to_content(self, time: datetime) -> dict[str, Any]:
        """Return the content of the entry that opens the account."""
        return {
            "kind": "account",
            "name": self.name,
            "currency": self.currency,
            "loss": str(self.exact_cap.loss),
            "delta": str(self.exact_cap.delta),
            "privacy_unit": self.privacy_unit,
            "neighbors": self.neighbors,
            "parts": None if self.parts is None else list(self.parts),
            "fixed_records": self.fixed_records,
            "user": user_name(),
            "time": text_of_time(time),
        }

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Terms:
        """Return the terms that an entry states."""
        exact = Amount(Fraction(content["loss"]), Fraction(content["delta"]))
        return cls(
            name=content["name"],
            cap=cap_of(content["currency"], exact),
            exact_cap=exact,
            privacy_unit=content["privacy_unit"],
            neighbors=content["neighbors"],
            parts=None if content["parts"] is None else tuple(content["parts"]),
            fixed_records=content["fixed_records"],
        )


def _checked_unit(privacy_unit: object) -> Hashable | None:
    """Return the column that names whom to protect; None stands for each row, and must be meant."""
    if privacy_unit is ROWS:
        return None
    if privacy_unit is None:
        raise ArgumentError(
            "privacy_unit",
            "must say whom the account protects.",
            hint='name the column, for example privacy_unit="person"; or pass dpt.ROWS if each row is a unit '
            "of its own.",
        )
    if not is_name(privacy_unit):
        raise ArgumentError(
            "privacy_unit",
            f"must be the name of a column, or dpt.ROWS, not {quote(privacy_unit)}.",
            hint=naming("privacy_unit", "person", privacy_unit),
        )
    return serialize.name("privacy_unit", privacy_unit)


def _checked_parts(parts: Any) -> tuple[str, ...]:
    hint = 'list the names of disjoint groups of units: parts=["2026-01", "2026-02"].'
    if isinstance(parts, str) or not isinstance(parts, Iterable):
        raise ArgumentError("parts", f"must be a list of names, not {quote(parts)}.", hint=hint)
    names = [_printable("parts", part, hint) for part in parts]
    if not names or len(names) > MOST_PARTS:
        raise ArgumentError(
            "parts", f"must have between 1 and {MOST_PARTS:,} names, not {len(names):,}.", hint=hint
        )
    if len(set(names)) < len(names):
        raise ArgumentError("parts", "names a part twice.", hint="name each part once.")
    return tuple(names)


def _checked_assumption(fixed_records: object, parts: object, cap: PrivacyLoss) -> bool:
    """Check what is assumed of parts. Without it, only pure epsilons add up over parts in parallel."""
    if fixed_records is not None and not isinstance(fixed_records, bool):
        raise ArgumentError(
            "fixed_records",
            f"must be True, False or None, not {quote(fixed_records)}.",
            hint="True states that records do not react to earlier releases.",
        )
    if parts is None and fixed_records:
        raise ArgumentError(
            "fixed_records", "is given without `parts`.", hint="it is an assumption for parts: leave it out."
        )
    if parts is not None and cap.kind != "pure" and not fixed_records:
        raise ArgumentError(
            "fixed_records",
            "must be True for an account with `parts` that is not purely in epsilon: if records may react to "
            "earlier releases, parts in parallel are proven for pure differential privacy only.",
            hint="pass fixed_records=True if no record depends on an earlier release of this account; "
            "otherwise leave `parts` out, or give the account an epsilon without delta.",
        )
    return bool(fixed_records)

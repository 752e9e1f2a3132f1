"""The budget of a programme, and the account that is charged."""

from __future__ import annotations

from pathlib import Path

from pandas_dptree.errors import quote
from pandas_dptree.ledger.accounts import Account
from pandas_dptree.ledger.amounts import exact_cap
from pandas_dptree.ledger.book import Ledger
from pandas_dptree.privacy.loss import PrivacyLoss, float_within
from pandas_dptree.programmes.placeholders import Placeholder
from pandas_dptree.programmes.problems import Section
from pandas_dptree.programmes.programme import Budget

__all__ = ["budget_of"]


def budget_of(whole: Section, placeholder: Placeholder, folder: Path) -> tuple[Budget | None, Account | None]:
    """Read the budget, and open the account."""
    section = Section(whole.problems, ("budget",), whole.take("budget", "a table", {}))
    before = len(section.problems.found)
    ledger, name, part, note = (section.take(key, "a text") for key in ("ledger", "account", "part", "note"))
    placeholder.check(section, "note", note)
    account = None
    if ledger is None:
        for key in ("account", "part", "note"):
            if key in section.entries:
                section.add(key, "has no meaning without ledger.", 'add ledger = "budget.sqlite".')
    else:
        for key, example in (("account", '"patients"'), ("note", placeholder.example)):
            if key not in section.entries:
                section.add(None, f"lacks {key}, which a ledger needs.", f"for example {key} = {example}.")
        if note is not None and placeholder.period is not None and placeholder.fill_before(note) is None:
            fact = "is the same in every period, so that the ledger refuses the second one."
            section.add("note", fact, f"for example note = {placeholder.example}.")
        account = _account(section, folder / ledger, name, part)
    loss = _loss(section, account)
    section.finish()
    if loss is None or len(section.problems.found) > before:
        return None, account
    budget = Budget(
        loss=loss,
        ledger=None if ledger is None else folder / ledger,
        account=name,
        part=part,
        note=None if note is None else placeholder.fill(note),
        note_before=None if note is None else placeholder.fill_before(note),
    )
    return budget, account


def _account(section: Section, path: Path, name: str | None, part: str | None) -> Account | None:
    """Open an account of a ledger."""
    account: Account | None = None
    ledger: Ledger | None = None
    with section.problems.catching((*section.path, "ledger")):
        ledger = Ledger.open(path)
    if ledger is not None and not ledger.keeps_tables:
        fact = "keeps no tables, and what a programme publishes is made of those that its ledger keeps."
        section.add("ledger", fact, "name a ledger that was made without keep_tables=False or --no-tables.")
    if ledger is not None and name is not None:
        with section.problems.catching(section.path, {"account": "account", "part": "part"}):
            account = ledger[name] if part is None else ledger[name].part(part)
    return account


def _loss(section: Section, account: Account | None) -> PrivacyLoss | None:
    """Return the whole loss: as numbers, or as a part of the cap of an account."""
    stated = {key: section.take(key, "a number or a text") for key in ("epsilon", "delta", "rho")}
    given = {key: value for key, value in stated.items() if value is not None}
    if "epsilon" not in section.entries and "rho" not in section.entries:
        section.add(
            None, "lacks epsilon or rho.", "for example rho = 0.02, or epsilon = 1.0 and delta = 1e-6."
        )
        return None
    for key, value in given.items():
        if isinstance(value, str):
            share = _part_of_cap(section, key, value, account)
            if share is None:
                return None
            given[key] = share
    loss: PrivacyLoss | None = None
    with section.problems.catching(section.path, {key: key for key in given}):
        loss = PrivacyLoss(**given)
    return loss


def _part_of_cap(section: Section, key: str, text: str, account: Account | None) -> float | None:
    """Read ``"cap/12"``: the part of the account's cap, rounded down."""
    word, _, number = text.partition("/")
    if (
        word.strip() != "cap"
        or not number.strip().isascii()
        or not number.strip().isdigit()
        or not int(number)
    ):
        fact = f"must be a number, or a part of the account's cap, not {quote(text)}."
        section.add(key, fact, f'for example {key} = 0.02, or {key} = "cap/12".')
    elif "ledger" not in section.entries:
        section.add(key, "is a part of the cap of an account, and there is none.", "name ledger and account.")
    elif account is not None:
        cap, whole = account.cap.to_dict(), exact_cap(account.cap)
        if key in cap:
            return float_within((whole.delta if key == "delta" else whole.loss) / int(number))
        section.add(key, f"is not what the account adds up, whose cap is {account.cap.in_words}.",
                    f'for example {next(iter(cap))} = "{text}".')  # fmt: skip
    return None

r"""What an account takes for a release, and when it refuses.

Notes
-----
**Why sums within the cap suffice, though each plan may depend on what was released before.** Fix two
neighbouring data sets. Say that a release is *good* for :math:`(\epsilon, \delta)` if the distributions of
its output on the two, :math:`M` and :math:`M'`, satisfy :math:`M \ge (1 - \delta) P` and :math:`M' \ge (1 -
\delta) P'` for two distributions with :math:`e^{-\epsilon} P' \le P \le e^\epsilon P'`. Outputs are
discrete, so all this may be read output by output. A release that is good for :math:`(\epsilon, \delta)` is
:math:`(\epsilon, \delta)`-DP, since :math:`M(S) \le (1 - \delta) P(S) + \delta \le e^\epsilon M'(S) +
\delta`. Conversely, every :math:`(\epsilon, \delta)`-DP release is good: its pair of outputs is what some
function makes of a pair that fails with probability :math:`\delta`, and is otherwise a randomized response
with :math:`\epsilon` (Kairouz, Oh and Viswanath, "The composition theorem for differential privacy", 2015).

Claim: if each release is good for an :math:`(\epsilon_i, \delta_i)` that is a function of the outputs
before it, and :math:`\sum_i \epsilon_i \le \epsilon`, :math:`\sum_i \delta_i \le \delta` whatever the
outputs are, then all outputs together are good for :math:`(\epsilon, \delta)`. By induction on the number
of releases. The first has a fixed :math:`(\epsilon_1, \delta_1)` and distributions :math:`P_1, P_1'`. After
each of its outputs y, the others keep to :math:`(\epsilon - \epsilon_1, \delta - \delta_1)`, so together
they are good for it, by some :math:`R_y, R_y'`. Then :math:`P_1(y) R_y` and :math:`P_1'(y) R_y'` differ by
a factor of at most :math:`e^{\epsilon_1} e^{\epsilon - \epsilon_1}`, and the outputs have at least
:math:`(1 - \delta_1)(1 - (\delta - \delta_1)) \ge 1 - \delta` times these probabilities.

The same holds for :math:`\delta`-approximate :math:`\rho`-zCDP (Bun and Steinke, "Concentrated differential
privacy", 2016, Definition 8.1) if "differ by a factor of at most" is replaced by :math:`D_\alpha(P \| P')
\le \alpha\rho` and :math:`D_\alpha(P' \| P) \le \alpha\rho` for all :math:`\alpha > 1`: for the joint
distributions,

.. math:: e^{(\alpha - 1) D_\alpha} = \sum_y P_1(y)^\alpha P_1'(y)^{1 - \alpha}
          e^{(\alpha - 1) D_\alpha(R_y \| R_y')}
          \le e^{(\alpha - 1)\alpha\rho_1} e^{(\alpha - 1)\alpha(\rho - \rho_1)}.

Nothing in this requires that the data sets stay the same. They may change from release to release, even in
reaction to earlier outputs, as long as they remain neighbours by the same unit.

These are known results: Rogers, Roth, Ullman and Vadhan, "Privacy odometers and filters: pay-as-you-go
composition", 2016, for :math:`(\epsilon, \delta)`; Feldman and Zrnic, "Individual privacy accounting via a
Rényi filter", 2021, for :math:`\rho`; Whitehouse, Ramdas, Rogers and Wu, "Fully-adaptive composition in
differential privacy", 2023, for both with deltas.

**Parts.** If each unit is in one part only, and its records do not react to releases, then only releases of
the whole and of its part depend on the unit, and the claim applies to these. If records may react, parallel
composition remains true for pure differential privacy, and fails in general for approximate (Henzinger,
Safavi and Vadhan, "Concurrent composition for differentially private continual mechanisms", 2024); accounts
in rho are treated like the latter.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from functools import lru_cache

from pandas_dptree.errors import (
    InsufficientBudgetError,
    LedgerError,
    RefusedReleaseError,
    RepeatedReleaseError,
    quote,
)
from pandas_dptree.ledger.amounts import Amount, Balance
from pandas_dptree.ledger.entries import Terms, readable, text_of_time, user_name
from pandas_dptree.ledger.store import WHOLE, Head, add_to_spent, append, spent_of
from pandas_dptree.ledger.tables import has_table
from pandas_dptree.plans.charging import Costed

__all__ = [
    "Prepared",
    "Request",
    "charges_of_table",
    "commit",
    "left_of",
    "prepared",
    "terms_of",
    "time_of",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A release that asks to be charged to an account, or to a part of it; `name` is from `checked_name`."""

    account: str
    part: str | None
    name: str | None
    plan: Costed


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A request that fits: what it takes, the new sum of its account or part, and what it repeats, if any."""

    request: Request
    amount: Amount
    total: Amount
    repeats: int | None


def terms_of(connection: sqlite3.Connection, account: str) -> Terms | None:
    """Read the terms of an account; None if there is none of this name."""
    found = connection.execute(
        "SELECT content FROM entry WHERE json_extract(content, '$.kind') = 'account' "
        "AND json_extract(content, '$.name') = ?",
        (account,),
    ).fetchone()
    return None if found is None else _parsed(found[0])


@lru_cache(maxsize=256)
def _parsed(content: str) -> Terms:
    return Terms.of(json.loads(content))


def left_of(cap: Amount, spent: Mapping[str, Amount], part: str | None) -> Amount:
    """Return what may still be charged to a part, or to the whole account if it is None.

    For every part, the charges on the whole and those on the part must stay within the cap. So what is left
    for the whole is limited by the part that has spent most, separately for the loss and for delta.
    """
    whole = spent.get(WHOLE, Amount())
    if part is not None:
        return cap - whole - spent.get(part, Amount())
    parts = [each for name, each in spent.items() if name != WHOLE]
    return cap - whole - Amount.largest(parts) if parts else cap - whole


def prepared(
    connection: sqlite3.Connection,
    requests: Sequence[Request],
    note: str,
    *,
    allow_repeat: bool | Collection[str],
) -> list[Prepared]:
    """Find out what the requests take, in order and each after the others; or raise a LedgerError.

    `allow_repeat` holds for all of them, or for those of its names. The result remains true within the
    transaction.
    """
    terms: dict[str, Terms] = {}
    spent: dict[str, dict[str, Amount]] = {}
    result = []
    for request in requests:
        account = request.account
        if account not in terms:
            found = terms_of(connection, account)
            if found is None:
                raise LedgerError(
                    f"The ledger has no account {quote(account)} any more.",
                    hint="open the ledger again: its file was replaced.",
                )
            terms[account] = found
            spent[account] = {part: amount for part, (amount, _) in spent_of(connection, account).items()}
        if request.part is not None:
            terms[account].check_part(request.part)  # these terms may not be those that it was chosen from
        digest = _checked_digest(request.plan, terms[account])
        amount = _amount(request.plan, terms[account])
        may_repeat = allow_repeat if isinstance(allow_repeat, bool) else request.name in allow_repeat
        if not may_repeat:
            _check_new(connection, request, requests, digest, note)
        left = left_of(terms[account].exact_cap, spent[account], request.part)
        if not amount.fits(left):
            raise _insufficient(amount, left, request, requests, terms[account])
        part = request.part or WHOLE
        spent[account][part] = spent[account].get(part, Amount()) + amount
        repeats = _last_of_plan(connection, request, digest, note)
        result.append(Prepared(request=request, amount=amount, total=spent[account][part], repeats=repeats))
    return result


def commit(
    connection: sqlite3.Connection, charges: Sequence[Prepared], note: str, *, requested: datetime
) -> list[Head]:
    """Append the entries of the charges, and update the sums, within a transaction."""
    user, time = user_name(), text_of_time(requested)
    heads: list[Head] = []
    first: dict[tuple[str, str | None, str | None], int] = {}
    for charge in charges:
        request = charge.request
        key = (request.account, request.part, request.plan.digest)
        content = {
            "kind": "charge",
            "account": request.account,
            "part": request.part,
            "loss": str(charge.amount.loss),
            "delta": str(charge.amount.delta),
            "plan": request.plan.digest,
            "name": request.name,
            "what": readable(request.plan.subject),
            "note": note,
            "repeats": first.get(key, charge.repeats),
            "user": user,
            "time": time,
        }
        heads.append(append(connection, content))
        first[key] = heads[-1].number
        add_to_spent(connection, request.account, request.part or WHOLE, charge.total)
    return heads


def _checked_digest(plan: Costed, terms: Terms) -> str:
    """Check that a plan is for the account's unit and neighbours, and return the digest of the plan."""
    if plan.privacy_unit != terms.privacy_unit:
        unit = "each row" if plan.privacy_unit is None else f"each {quote(plan.privacy_unit)}"
        example = (
            "leave privacy_unit out"
            if terms.privacy_unit is None
            else f"plan with privacy_unit={quote(terms.privacy_unit)} and max_contributions"
        )
        raise RefusedReleaseError(
            f"The account {quote(terms.name)} protects {terms.protects}, and the plan {unit}.",
            hint=f"{example}, or charge an account for {unit}: ledger.add_account(...).",
        )
    if plan.neighbors != terms.neighbors:
        raise RefusedReleaseError(
            f"The account {quote(terms.name)} is for neighbors={quote(terms.neighbors)}, and the plan for "
            f"{quote(plan.neighbors)}.",
            hint=f"plan with neighbors={quote(terms.neighbors)}, or charge another account.",
        )
    if plan.digest is None:
        raise RefusedReleaseError(
            "The plan has no digest, by which a ledger recognizes a release that is repeated: JSON cannot "
            "hold one of its names.",
            hint="use texts or whole numbers as names of columns and levels.",
        )
    return str(plan.digest)


def _amount(plan: Costed, terms: Terms) -> Amount:
    """Return what a release by the plan takes from an account, in the currency of the account."""
    stated = plan.losses.in_epsilon if terms.currency == "epsilon" else plan.losses.in_rho
    if stated is None:
        other = "rho" if terms.currency == "epsilon" else "epsilon"
        raise RefusedReleaseError(
            f"The account {quote(terms.name)} adds up {terms.currency}, and the plan states its loss only in "
            f"{other}.",
            hint=f"plan with {terms.currency}=..., or charge an account in {other}.",
        )
    if not all(isinstance(number, int | Fraction) and number >= 0 for number in stated):
        raise LedgerError(
            f"The plan states a loss that cannot be charged: {quote(stated)}.",
            hint="losses are exact and not negative: pairs of fractions.Fraction, as plan.losses has.",
        )
    return Amount(*map(Fraction, stated))


_SAME_NOTE = (
    "json_extract(content, '$.kind') = 'charge' AND json_extract(content, '$.note') = ? "
    "AND json_extract(content, '$.account') = ? AND json_extract(content, '$.part') IS ?"
)


def time_of(connection: sqlite3.Connection, charge: int) -> str:
    """Return when the release of a charge was requested."""
    query = "SELECT json_extract(content, '$.time') FROM entry WHERE number = ?"
    return str(connection.execute(query, (charge,)).fetchone()[0])


def _last_of_plan(connection: sqlite3.Connection, request: Request, digest: str, note: str) -> int | None:
    """Return the number of the last charge of the same plan and note, by whatever name."""
    [found] = connection.execute(
        f"SELECT max(number) FROM entry WHERE {_SAME_NOTE} AND json_extract(content, '$.plan') = ?",
        (note, request.account, request.part, digest),
    ).fetchone()
    return None if found is None else int(found)


def charges_of_table(
    connection: sqlite3.Connection, request: Request, note: str
) -> list[tuple[int, str, str, bool]]:
    """Find the charges of the table that a request asks for, by its account, part, note, name and subject.

    For each, the last one first: its number, time and plan, and whether it has an output.
    """
    return connection.execute(
        "SELECT number, json_extract(content, '$.time'), json_extract(content, '$.plan'), "
        f"EXISTS (SELECT 1 FROM released WHERE charge = number) FROM entry WHERE {_SAME_NOTE} "
        "AND json_extract(content, '$.name') IS ? AND json_extract(content, '$.what') = ? "
        "ORDER BY number DESC",
        (note, request.account, request.part, request.name, readable(request.plan.subject)),
    ).fetchall()


def _check_new(
    connection: sqlite3.Connection, request: Request, requests: Sequence[Request], digest: str, note: str
) -> None:
    """Refuse a request for a table that was charged with this note before, by this plan or by another.

    Another plan may be meant. But it is also what a script asks for that is run again and plans from what is
    left, or with another epsilon.
    """
    before = charges_of_table(connection, request, note)
    if not before:
        return
    number, time, _, released = next((each for each in before if each[2] == digest), before[0])
    same = any(each[2] == digest for each in before)
    name = "" if request.name is None else f", named {quote(request.name)},"
    plan = "This plan" if len(requests) == 1 else f"The plan {quote(request.name)}"
    first = (
        f"{plan} was charged to the account {_named(request)} with the note {quote(note)} before"
        if same
        else f"The account {_named(request)} was charged for {request.plan.subject}{name} with the note "
        f"{quote(note)} before, by another plan"
    )
    if not released:
        output = "but no table was kept: the process may still be running, or it ended too early"
        hint = "wait until it has ended, and ask again. If it ended without a table, its budget is spent"
    else:
        output = "and was released"
        hint = "use the table that was released then"
        if has_table(connection, number):
            hint += f": ledger.table({number}) returns it"
    raise RepeatedReleaseError(
        f"{first}: charge {number}, requested at {time}, {output}. Nothing was charged now.",
        account=request.account,
        number=number,
        requested=time,
        released=released,
        hint=f"{hint}. "
        + ("" if same else "Plans made from account.cap are the same in each run. ")
        + "If this is another table, name it: name=... A new release of the same table, charged in full, "
        "needs another note or allow_repeat=True.",
    )


def _insufficient(
    amount: Amount, left: Amount, request: Request, requests: Sequence[Request], terms: Terms
) -> InsufficientBudgetError:
    requested = Balance(amount=amount, cap=terms.cap, state="requested")
    remaining = Balance(amount=left, cap=terms.cap, state="left")
    if amount.delta and not terms.cap.delta:
        fact = f"The account {_named(request)} has no delta, and {_which(request, requests)} needs one"
        hint = "plan without delta, or charge an account with delta."
    else:
        fact = f"The account {_named(request)} has {remaining}, and {_which(request, requests)} needs more"
        hint = (
            "plan with a smaller loss: account.divide(n) gives n parts of what is left that fit."
            if remaining
            else "the budget is spent. Further releases need an account of their own, and add to what these "
            "people have lost."
        )
    return InsufficientBudgetError(
        f"{fact}: {requested}. Nothing was charged.",
        account=terms.name,
        requested=requested,
        remaining=remaining,
        hint=hint,
    )


def _named(request: Request) -> str:
    part = "" if request.part is None else f" in the part {quote(request.part)}"
    return f"{quote(request.account)}{part}"


def _which(request: Request, requests: Sequence[Request]) -> str:
    """Say which of several releases is meant."""
    if len(requests) == 1:
        return "the release"
    before = [each for each in requests[: requests.index(request)] if each.account == request.account]
    return f"the release {quote(request.name)}" + (
        f", after {len(before)} other{'s' if len(before) > 1 else ''} in the same call," if before else ""
    )

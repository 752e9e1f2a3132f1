"""What was charged, as a frame, as JSON and as a plot."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pandas_dptree.ledger.amounts import Amount, Balance
from pandas_dptree.ledger.entries import Terms
from pandas_dptree.ledger.store import FORMAT, WHOLE
from pandas_dptree.ledger.transactions import left_of
from pandas_dptree.output.pictures.figures import axes_of_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Charged", "charges_as_frame", "charges_of", "entries_as_json", "plot_spending", "terms_of_all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Charged:
    """A charge, and what was left of its account or part after it."""

    number: int
    digest: str
    content: Mapping[str, Any]
    terms: Terms
    amount: Amount
    left: Balance
    left_of_whole: Amount
    released: bool
    table: str | None


def terms_of_all(connection: sqlite3.Connection) -> dict[str, Terms]:
    """Return the terms of all accounts by their names, in the order in which they were added."""
    rows = connection.execute(
        "SELECT content FROM entry WHERE json_extract(content, '$.kind') = 'account' ORDER BY number"
    )
    found = [Terms.of(json.loads(text)) for (text,) in rows]
    return {terms.name: terms for terms in found}


def charges_of(connection: sqlite3.Connection) -> Iterator[Charged]:
    """Iterate over all charges, adding up what they leave."""
    accounts = terms_of_all(connection)
    spent: dict[str, dict[str, Amount]] = {name: {} for name in accounts}
    tables = dict(
        connection.execute(
            "SELECT json_extract(content, '$.charge'), json_extract(content, '$.table') FROM entry "
            "WHERE json_extract(content, '$.kind') = 'table'"
        )
    )
    rows = connection.execute(
        "SELECT number, digest, content, charge IS NOT NULL FROM entry LEFT JOIN released ON charge = number "
        "WHERE json_extract(content, '$.kind') = 'charge' ORDER BY number"
    )
    for number, digest, text, released in rows:
        content = json.loads(text)
        terms, part = accounts[content["account"]], content["part"]
        amount = Amount(Fraction(content["loss"]), Fraction(content["delta"]))
        of_account, where = spent[terms.name], WHOLE if part is None else part
        of_account[where] = of_account.get(where, Amount()) + amount
        left = Balance(amount=left_of(terms.exact_cap, of_account, part), cap=terms.cap, state="left")
        yield Charged(
            number=number, digest=digest, content=content, terms=terms, amount=amount, left=left,
            left_of_whole=left_of(terms.exact_cap, of_account, None), released=bool(released),
            table=tables.get(number),
        )  # fmt: skip


_TEXTS = ("account", "part", "note", "name", "what", "table", "plan", "user")


def charges_as_frame(connection: sqlite3.Connection) -> pd.DataFrame:
    """Return one row per charge; see `Ledger.to_frame`."""
    rows = [
        {
            "number": each.number,
            "time": each.content["time"],
            **{name: each.content[name] for name in ("account", "part", "note", "name", "what")},
            "epsilon": _number(each, "epsilon"),
            "rho": _number(each, "rho"),
            "delta": float(each.amount.delta),
            "left": each.left.to_dict()[each.terms.currency],
            "delta_left": each.left.delta,
            "released": each.released,
            "table": each.table,
            "plan": each.content["plan"],
            "user": each.content["user"],
            "digest": each.digest,
        }
        for each in charges_of(connection)
    ]
    columns = [
        "number", "time", "account", "part", "note", "name", "what", "epsilon", "rho", "delta", "left",
        "delta_left", "released", "table", "plan", "user", "digest",
    ]  # fmt: skip
    frame = pd.DataFrame(rows, columns=columns)
    types: dict[str, Any] = dict.fromkeys((*_TEXTS, "digest"), "string")
    types |= {"number": np.int64, "released": np.bool_}
    types |= dict.fromkeys(("epsilon", "rho", "delta", "left", "delta_left"), np.float64)
    frame["time"] = pd.to_datetime(frame["time"], utc=True).astype("datetime64[ms, UTC]")
    return frame.astype(types)


def _number(charged: Charged, currency: str) -> float:
    return float(charged.amount.loss) if charged.terms.currency == currency else math.nan


def entries_as_json(connection: sqlite3.Connection) -> str:
    """Return everything that a ledger holds; see `Ledger.to_json`."""
    entries = [
        {"number": number, "digest": digest, "content": json.loads(text)}
        for number, text, digest in connection.execute("SELECT * FROM entry ORDER BY number")
    ]
    sums = connection.execute("SELECT account, part, loss, delta, charges FROM spent ORDER BY account, part")
    names = ("account", "part", "loss", "delta", "charges")
    spent = [{**dict(zip(names, row, strict=True)), "part": row[1] or None} for row in sums]
    released = [number for (number,) in connection.execute("SELECT charge FROM released ORDER BY charge")]
    whole = {
        "format": f"pandas_dptree ledger, version {FORMAT}",
        "entries": entries,
        "spent": spent,
        "released": released,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False)


def plot_spending(connection: sqlite3.Connection, ax: Axes | None) -> Axes:
    """Draw how much of each cap was spent over time; see `Ledger.plot`."""
    accounts = terms_of_all(connection)
    times: dict[str, list[np.datetime64]] = {name: [] for name in accounts}
    shares: dict[str, list[tuple[float, float]]] = {name: [] for name in accounts}
    for each in charges_of(connection):
        cap, left = each.terms.exact_cap, each.left_of_whole
        times[each.terms.name].append(np.datetime64(each.content["time"].removesuffix("Z")))
        delta = 1 - left.delta / cap.delta if cap.delta else Fraction()
        shares[each.terms.name].append((100 * float(1 - left.loss / cap.loss), 100 * float(delta)))
    axes = axes_of_size((7, 3.7)) if ax is None else ax
    for name, terms in accounts.items():
        if not times[name]:
            continue
        when = np.array([times[name][0], *times[name]])
        loss, delta = np.array([(0.0, 0.0), *shares[name]]).T
        label = f"{name}: {terms.currency} of {getattr(terms.cap, terms.currency):g}"
        [line] = axes.step(when, loss, where="post", marker="o", ms=3, label=label)
        if delta.any():
            label = f"{name}: delta of {terms.cap.delta:g}"
            axes.step(when, delta, where="post", ls=":", color=line.get_color(), label=label)
    axes.axhline(100, color="black", lw=1, ls="--", label="cap")
    axes.set_ylim(0, 108)
    axes.set_ylabel("spent (% of the cap)")
    axes.set_xlabel("when releases were requested (UTC)")
    axes.grid(axis="y", alpha=0.3)
    if any(times.values()):
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        locator = AutoDateLocator()  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(0, -0.18))
    return axes

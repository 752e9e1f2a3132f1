"""What releases charge to the accounts of a ledger, and what is left.

A release that is charged takes no generator, so that its table is another at each run, and is not recorded.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pandas_dptree as dpt
from tests.seeded.cases.register import case
from tests.seeded.data import APPROXIMATE, BY, ONE, PEOPLE, domain, places, visits, wards

PERSON: dict[str, Any] = {"privacy_unit": "person"}
FIXED: dict[str, Any] = {"parts": ["2024", "2025"], "fixed_records": True}


@contextmanager
def ledger(**options: Any) -> Iterator[dpt.Ledger]:
    """Make a ledger with one account, in a folder that goes."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/budget.sqlite"
        with dpt.Ledger.create(path, account="visits", **options) as made:
            yield made


def state(book: dpt.Ledger, *parts: str) -> dict[str, Any]:
    """All charges and balances, without what is another at each run."""
    frame, account = book.to_frame(), book["visits"]
    accounts = {"account": account, **{part: account.part(part) for part in parts}}
    return {
        "charges": frame.drop(
            columns=[each for each in ("time", "user", "digest", "table", "plan") if each in frame]
        ),
        "columns": list(frame),
        "balances": {
            name: [each.spent.to_dict(), each.remaining.to_dict(), each.n_charges]
            for name, each in accounts.items()
        },
    }


@case
def charged_verbs():
    with ledger(rho=5.0, delta=1e-5, **PERSON) as book:
        frame, charge, keys = visits().dp, {"ledger": book["visits"], **PEOPLE}, {"domain": places()}
        frame.tree_counts(BY, rho=0.1, note="counts", **keys, **charge)
        frame.tree_sums(BY, columns="cost", bounds=(0, 500), rho=0.2, note="sums", **keys, **charge)
        frame.tree_means(BY, columns="age", bounds=(0, 100), epsilon=0.5, note="means", **keys, **charge)
        frame.histogram("cost", bounds=(0, 500), bins=8, rho=0.1, note="histogram", **charge)
        frame.tree_counts(BY, private_keys=BY, rho=1.0, delta=1e-6, note="keys", **charge)
        return state(book)


@case
def charged_plans():
    plan = dpt.plan(domain(), epsilon=0.25, **PEOPLE)
    sums = dpt.plan(domain(), column="cost", bounds=(0, 500), epsilon=0.5, delta=1e-6, **PEOPLE)
    with ledger(epsilon=2.0, delta=1e-5, **PERSON) as book:
        account = book["visits"]
        visits().dp.release(plan, ledger=account, note="one")
        account.release({"n": plan, "cost": sums}, visits(), note="two")
        return state(book) | {"divided": [each.to_dict() for each in account.divide([3, 1])]}


@case
def charged_parts():
    plan = dpt.plan(domain(), rho=0.1, **PEOPLE)
    with ledger(rho=0.5, **FIXED, **PERSON) as book:
        for part, n in {"2024": 600, "2025": 700, "2024 again": 600}.items():
            visits(n).dp.release(plan, ledger=book["visits"].part(part[:4]), note=part)
        return state(book, *FIXED["parts"])


@case
def charged_arrays():
    with ledger(rho=1.0, privacy_unit=dpt.ROWS) as book:
        wards().dp.tree_counts(["city", "hospital"], rho=0.1, ledger=book["visits"], note="wards", **ONE)
        return state(book)


@case
def charged_in_both_currencies():
    plan = dpt.plan(domain(), **APPROXIMATE, **PEOPLE)
    losses = {"epsilon": {"epsilon": 3.0, "delta": 1e-4}, "rho": {"rho": 1.0, "delta": 1e-4}}
    found: dict[str, Any] = {}
    for name, loss in losses.items():
        with ledger(**loss, **PERSON) as book:
            visits().dp.release(plan, ledger=book["visits"], note="both")
            found[name] = state(book)
    return found | {"losses": repr(plan.losses)}

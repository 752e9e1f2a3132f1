"""Charges to a ledger, beside bare commits of SQLite; and a ledger of 100,000 charges."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

import pandas_dptree as dpt

N_CHARGES, N_BATCH = 100_000, 1_000
PLAN = dpt.plan(dpt.Tree.from_branching([2]), epsilon=1e-6)
NOW = datetime.now(UTC)


def charging(account: dpt.Account) -> Callable[[], None]:
    """Charge an account, once per call."""
    numbers = iter(range(10**9))

    def charge() -> None:
        account.charge({None: PLAN}, f"number {next(numbers)}", allow_repeat=False, requested=NOW)

    return charge


def bare_commits(folder: Path) -> Callable[[], None]:
    """Insert as much text as a charge has, and commit, once per call."""
    connection = sqlite3.connect(folder / "bare.sqlite", isolation_level=None)
    for setting in ("journal_mode=WAL", "synchronous=FULL"):
        connection.execute(f"PRAGMA {setting}")
    connection.execute("CREATE TABLE entry (number INTEGER PRIMARY KEY, content TEXT)")
    text = "x" * 450

    def commit() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO entry (content) VALUES (?)", (text,))
        connection.execute("COMMIT")

    return commit


def seconds(call: Callable[[], None], n: int) -> float:
    """Time n calls, per call."""
    start = time.perf_counter()
    for _ in range(n):
        call()
    return (time.perf_counter() - start) / n


def keeping(folder: Path) -> tuple[float, float]:
    """Time releases with a ledger that keeps their tables, of 10 kB, and with one that does not."""
    plan, counts = dpt.plan(dpt.Tree.from_branching([20, 15]), epsilon=1e-3), np.full(300, 1_000)
    calls = []
    for keeps in (True, False):
        ledger = dpt.Ledger.create(
            folder / f"{keeps}.sqlite", account="a", epsilon=9.0, privacy_unit=dpt.ROWS, keep_tables=keeps
        )
        numbers = iter(range(10**9))
        calls.append(lambda a=ledger["a"], n=numbers: plan.release(counts, ledger=a, note=f"{next(n)}"))
    for call in calls:
        seconds(call, 20)
    kept, bare = np.median([[seconds(call, 1) for call in calls] for _ in range(300)], axis=0)
    return float(kept), float(bare)


def run() -> list[dict[str, object]]:
    """Time charges, and opening, charging and verifying a long ledger."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        short = dpt.Ledger.create(folder / "short.sqlite", account="a", epsilon=1.0, privacy_unit=dpt.ROWS)
        ours, bare = charging(short["a"]), bare_commits(folder)
        # one call each in turn, as the speed of a disk changes from second to second
        per_second = 1 / np.mean([(seconds(ours, 1), seconds(bare, 1)) for _ in range(1_500)], axis=0)
        kept, not_kept = keeping(folder)
        long = folder / "long.sqlite"
        with dpt.Ledger.create(long, account="a", epsilon=1.0, privacy_unit=dpt.ROWS) as ledger:
            for batch in range(N_CHARGES // N_BATCH):
                plans = dict.fromkeys(range(N_BATCH), PLAN)
                ledger["a"].charge(plans, str(batch), allow_repeat=True, requested=NOW)
        start = time.perf_counter()
        ledger = dpt.Ledger.open(long)
        assert ledger["a"].n_charges == N_CHARGES and ledger["a"].remaining
        opening = time.perf_counter() - start
        late = charging(ledger["a"])
        seconds(late, 400)  # until the write-ahead log has its size
        in_long, in_short = np.mean([(seconds(late, 1), seconds(ours, 1)) for _ in range(300)], axis=0)
        start = time.perf_counter()
        ledger.verify()
        verifying = time.perf_counter() - start
    return [
        {
            "what": "charges a second",
            "ours": f"{per_second[0]:,.0f}",
            "peer": f"{per_second[1]:,.0f} (bare commits of SQLite, same settings)",
            "ratio": per_second[0] / per_second[1],
            "target": ">= 0.5",
            "ok": per_second[0] >= 0.5 * per_second[1],
        },
        {
            "what": "a release of 10 kB that is kept",
            "ours": f"{1e3 * kept:.2f} ms",
            "peer": f"{1e3 * not_kept:.2f} ms (the same, not kept)",
            "ratio": kept / not_kept,
            "target": "<= 1.5",
            "ok": kept <= 1.5 * not_kept,
        },
        {
            "what": f"open a ledger of {N_CHARGES:,} charges, and see what is left",
            "ours": f"{opening:.3f} s",
            "peer": "",
            "ratio": np.nan,
            "target": "< 1 s",
            "ok": opening < 1,
        },
        {
            "what": f"a charge to a ledger of {N_CHARGES:,} charges",
            "ours": f"{1e3 * in_long:.2f} ms",
            "peer": f"{1e3 * in_short:.2f} ms (a short ledger)",
            "ratio": in_long / in_short,
            "target": "none",
            "ok": True,
        },
        {
            "what": f"verify a ledger of {N_CHARGES:,} charges",
            "ours": f"{verifying:.1f} s",
            "peer": "",
            "ratio": np.nan,
            "target": "none",
            "ok": True,
        },
    ]

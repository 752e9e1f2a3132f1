"""Write all files anew: ``python -m tests.stored_files.write``.

Do this only if older files need not be read any more, and say so in the changelog. The ledger has other times
and digests each time, and the other files those of the version that writes them.
"""

from __future__ import annotations

import getpass
import json
from datetime import UTC, datetime
from pathlib import Path

import pandas_dptree as dpt
from tests.seeded.described import described
from tests.stored_files.contents import PAGES, TABLES, domain, plans, released, shape, visits

STORED = Path(__file__).parent


def write_ledger(path: Path, made: dict[str, dpt.Plan]) -> dict[str, object]:
    """Write a ledger with accounts in each currency, and return what it held."""
    person = {"privacy_unit": "person"}
    with dpt.Ledger.create(path, account="patients", rho=5.0, delta=1e-3, **person) as ledger:
        pure = ledger.add_account("surveys", epsilon=9.0, parts=["2024", "2025"], **person)
        both = ledger.add_account("studies", epsilon=9.0, delta=1e-2, **person)
        rows = ledger.add_account("meters", rho=0.5, privacy_unit=dpt.ROWS, neighbors="replace")
        patients, frame = ledger["patients"], visits()
        for name in ("counts", "sums", "several", "distribution"):
            frame.dp.release(made[name], ledger=patients, note=f"{name} of visits")
        frame.dp.release(made["counts"], ledger=pure.part("2024"), note="Zählung 2024")
        frame.dp.release(made["counts"], ledger=pure.part("2025"), note="Zählung 2025")
        both.release({"n": made["counts"], "age": made["groups"]}, frame, note="together")
        for name in ("private_keys", "private_keys_alone", "relative_error"):
            frame.dp.release(made[name], ledger=both, note=name)
        replaced = dpt.plan(domain(), rho=0.1, neighbors="replace")
        frame.dp.release(replaced, ledger=rows, note="rows")
        charged = {None: made["counts"]}  # as if the process had ended before the table was made
        both.charge(charged, "lost", allow_repeat=False, requested=datetime.now(UTC))
        charges = ledger.to_frame()
        ledger.to_html(STORED / "pages" / "ledger.html", title="Budgets")
        return {
            "head": list(ledger.verify()),
            "accounts": {
                name: [described(ledger[name].spent.to_dict()), ledger[name].n_charges] for name in ledger
            },
            "charges": described(charges[["account", "part", "note", "name", "what", "released", "digest"]]),
        }


def main() -> None:
    for folder in ("plans", "tables", "pages"):
        (STORED / folder).mkdir(exist_ok=True)
    made = plans()
    recorded: dict[str, dict[str, object]] = {"digests": {}, "shapes": {}, "tables": {}}
    for name, plan in made.items():
        text = json.dumps(plan.to_dict(), allow_nan=False)
        (STORED / "plans" / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")
        recorded["digests"][name] = plan.digest
        recorded["shapes"][name] = shape(released(name, plan))
    for name in TABLES:
        plan = "distribution" if name == "cdf" else name
        table = released(plan, made[plan])
        table.dp.to_file(STORED / "tables" / f"{name}.csv")
        table.dp.to_file(STORED / "tables" / f"{name}.parquet")
        recorded["tables"][name] = described(table)
        if name in PAGES:
            table.dp.to_html(STORED / "pages" / f"{name}.html", title=f"Table {name}", max_rows=20)
    ledger = STORED / "ledger.sqlite"
    ledger.unlink(missing_ok=True)
    getpass.getuser = lambda: "steward"
    recorded["ledger"] = write_ledger(ledger, made)
    (STORED / "recorded.json").write_text(laid_out(recorded), encoding="utf-8")


def laid_out(recorded: dict[str, dict[str, object]]) -> str:
    """Write JSON with a line for each file."""
    parts = {
        what: ",\n".join(f"  {json.dumps(name)}: {json.dumps(each)}" for name, each in files.items())
        for what, files in recorded.items()
    }
    return (
        "{\n" + ",\n".join(f" {json.dumps(what)}: {{\n{part}\n }}" for what, part in parts.items()) + "\n}\n"
    )


if __name__ == "__main__":
    main()

"""Programmes that were checked, made by hand, and their records."""

import os
from datetime import date, datetime
from functools import cache
from zoneinfo import ZoneInfo

import pandas as pd

import pandas_dptree as dpt
from pandas_dptree.programmes.programme import (
    Budget,
    Checked,
    During,
    Outputs,
    PageOptions,
    Period,
    Source,
    Table,
)
from pandas_dptree.programmes.running import run_period


@cache
def domain():
    return dpt.Domain.from_frame(
        pd.DataFrame({"region": ["N", "N", "S"], "clinic": ["a", "b", "c"]}), by=["region", "clinic"]
    )


@cache
def counts(rho):
    return dpt.plan(domain(), rho=rho, privacy_unit="person", max_contributions=2)


@cache
def costs(bins, rho=0.01):
    return dpt.plan_distribution(
        "cost", bounds=(0, 10), bins=bins, rho=rho, privacy_unit="person", max_contributions=2
    )


def records(month="2025-03", n=40):
    """Visits, as many in each region and clinic, at different times of a month."""
    days = pd.date_range(f"{month}-01", periods=n, freq="12h", tz="Europe/Berlin")
    clinics = ["abc"[each % 3] for each in range(n)]
    regions = ["S" if each == "c" else "N" for each in clinics]
    return pd.DataFrame(
        {
            "person": [f"p{each}" for each in range(n)], "region": regions, "clinic": clinics,
            "cost": [each % 10 for each in range(n)], "time": days,
        }
    )  # fmt: skip


def during(start, end, column="time", timezone="Europe/Berlin"):
    zone = None if timezone is None else ZoneInfo(timezone)
    ends = (datetime.fromisoformat(each).replace(tzinfo=zone) for each in (start, end))
    return During(column=column, **dict(zip(("start", "end"), ends, strict=True)), timezone=timezone)


class Visits:
    """A folder with records, a ledger, and the programmes that are made of them."""

    def __init__(self, folder):
        self.folder = folder
        records().to_parquet(folder / "2025-03.parquet")
        self.said = []

    def ledger(self, rho=0.06, **options):
        path = self.folder / "budget.sqlite"
        if not path.exists():
            dpt.Ledger.create(path, account="patients", rho=rho, privacy_unit="person", **options).close()
        return path

    @property
    def n_charges(self):
        with dpt.Ledger.open(self.folder / "budget.sqlite") as ledger:
            ledger.verify()
            return ledger["patients"].n_charges

    def programme(
        self, month="2025-03", *, ledger=True, bins=4, rho=0.01, write=("csv",), title="Visits", show=None,
        before=None, **of_source,
    ):  # fmt: skip
        source = {
            "files": (str(self.folder / f"{month}.parquet"),), "table": None, "engine": None, "during": None,
            "columns": ("region", "clinic", "cost", "person"), **of_source,
        }  # fmt: skip
        one = {"source": "visits", "line": None, "hierarchy": ()}
        return Checked(
            path=None, folder=self.folder,
            period=Period(unit="month", text=month, start=date(2025, 3, 1), end=date(2025, 4, 1)),
            budget=Budget(
                loss=counts(rho).loss, part=None, ledger=self.ledger() if ledger else None,
                account="patients" if ledger else None, note=month if ledger else None, note_before=before,
            ),
            sources={
                "visits": Source(
                    name="visits", types=None, privacy_unit="person", max_contributions=2,
                    neighbors="add_remove", **source,
                )
            },
            hierarchies={},
            tables={
                "visits": Table(name="visits", verb="counts", plan=counts(rho), **one),
                "costs": Table(name="costs", verb="distribution", plan=costs(bins), **one),
            },
            outputs=Outputs(
                folder=self.folder / "published" / month, write=write,
                before=None if before is None else self.folder / "published" / before,
            ),
            page=PageOptions(
                title=title, show=show, combine={}, reliability="statcan", blank=(), labels={},
                publisher=None, notes=None, language="en", interactive=False,
            ),
            account=None,
            notes=(),
        )  # fmt: skip

    def run(self, programme=None, **options):
        programme = self.programme() if programme is None else programme
        ran = run_period(programme, say=self.said.append, **options)
        self.said.append(str(ran))
        return ran

    def files(self, month="2025-03"):
        """The bytes of all published files, by name."""
        folder = self.folder / "published" / month
        return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


def is_empty(folder):
    """Whether a folder holds nothing but a lock."""
    return not folder.exists() or os.listdir(folder) == [".lock"]

"""Levels that are made of columns: times, intervals, public tables, squares and listed prefixes."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa

import pandas_dptree as dpt
from tests.seeded.cases.register import case, default
from tests.seeded.data import (
    APPROXIMATE,
    CONCENTRATED,
    PEOPLE,
    PURE,
    logins,
    places,
    products,
    rng,
    visits,
)

MONTHS = dpt.calendar("date", ["year", "quarter", "month"], start="2024-01-01", end="2024-09-30")
GROUPS = dpt.cut("age", levels={"group": [0, 18, 65, 100], "band": [0, 10, 18, 40, 65, 80, 100]})
KINDS = dpt.mapping(products(), by=["kind", "product"])
SQUARES = dpt.quadtree("y", "x", depth=2, bounds=((0, 10), (0, 10)))
REGIONS = places()[["region"]].drop_duplicates()


def counts(by: Any, **options: Any) -> pd.DataFrame:
    return visits().dp.tree_counts(by, rng=rng(), **options)


@case
def calendar_months():
    return counts(MONTHS, **PURE)


@case
def calendar_weeks():
    weeks = dpt.calendar("date", ["iso_year", "iso_week"], start="2024-12-16", end="2025-01-20")
    return counts(weeks, confidence=0.9, **PURE)


@default
def calendar_days_in_a_zone():
    frame = visits()[["date"]]
    frame["date"] = (frame["date"] + pd.Timedelta("90min")).dt.tz_localize("UTC")
    days = dpt.calendar(
        "date", ["month", "day"], start="2024-03-25", end="2024-04-05", timezone="Europe/Berlin"
    )
    hours = dpt.calendar(
        "date", ["day", "hour"], start="2024-03-31", end="2024-03-31", timezone="Europe/Berlin"
    )
    return {
        name: frame.dp.tree_counts(by, rng=rng(), **PURE)
        for name, by in {"days": days, "hours": hours}.items()
    }


@case
def calendar_of_texts():
    frame = pd.DataFrame({"when": ["03/25/2024", "03/26/2024", "26.3.2024", None, "03/26/2024"]})
    days = dpt.calendar("when", ["month", "day"], start="2024-03-24", end="2024-03-27", format="%m/%d/%Y")
    return frame.dp.tree_counts(days, rng=rng(), **PURE)


@case
def cut_groups():
    return {
        "levels": counts(GROUPS, **APPROXIMATE),
        "bins": counts(dpt.cut("cost", [-20, 0, 50.5, 500]), **CONCENTRATED),
        "width": counts(dpt.cut("age", width=25, bounds=(0, 100)), **PURE),
    }


@case
def mapping_kinds():
    return {
        "pandas": counts(KINDS, **PURE),
        "polars": dpt.tree_counts(pl.from_pandas(visits()), KINDS, rng=rng(), **PURE, **PEOPLE),
    }


@default
def quadtree_squares():
    arrow = pa.Table.from_pandas(visits(), preserve_index=False)
    return {
        "pandas": counts(SQUARES, **PURE),
        "pyarrow": dpt.tree_counts(arrow, SQUARES, rng=rng(), **CONCENTRATED),
    }


@case
def listed_prefixes():
    options = {"rng": rng(), **PURE}
    return {
        "bits": logins().dp.tree_counts([dpt.prefixes("address", bits=[2, 4], notation="ipv4")], **options),
        "numbers": logins().dp.tree_counts(
            [dpt.prefixes("address", bits=[1, 3], width=32, notation="number")], **options
        ),
        "chars": logins().dp.tree_counts([dpt.prefixes("code", chars=[1, 2], alphabet="049A")], **options),
        "binary": logins().dp.tree_counts([dpt.binary("user", bits=3)], **options),
    }


@case
def levels_together():
    by = ["region", MONTHS, GROUPS]
    months = dpt.calendar("date", ["month"], start="2024-01-01", end="2024-02-29")
    return {
        "region": counts([months, "region"], domain=REGIONS, **PURE),
        "three": counts(
            ["region", months, dpt.cut("age", [0, 50, 100])], domain=REGIONS, **APPROXIMATE, **PEOPLE
        ),
        "observed": counts(["region", months], domain="observed", split="uniform", **PURE),
        "plan": dpt.plan(dpt.derived_domain(by, REGIONS), **PURE).to_frame(),
    }


@case
def sums_of_derived_levels():
    return visits().dp.tree_sums(
        [KINDS, dpt.cut("age", [0, 50, 100])], columns=["cost", "balance"],
        bounds={"cost": (0, 500), "balance": (-100, 100)}, confidence=0.9, rng=rng(), **CONCENTRATED,
    )  # fmt: skip


@case
def means_of_derived_levels():
    months = dpt.calendar("date", ["quarter"], start="2024-01-01", end="2024-12-31")
    return visits().dp.tree_means(months, columns="cost", bounds=(0, 500), rng=rng(), **PURE)


@case
def distribution_of_derived_levels():
    by = ["region", dpt.calendar("date", ["quarter"], start="2024-01-01", end="2024-12-31")]
    return visits().dp.quantiles(
        "age", 0.5, bounds=(0, 100), bins=20, by=by, domain=REGIONS, rng=rng(), **PURE
    )


@case
def plan_of_derived_levels():
    listed = dpt.derived_domain(["region", SQUARES], REGIONS)
    plan = dpt.plan(listed, known={"total": 600}, **APPROXIMATE)
    again = dpt.Plan.from_dict(plan.to_dict(), listed)
    return {
        "written": plan.to_dict(),
        "table": again.release(visits(), rng=rng()).dp.level("quad_1"),
        "accessor": visits().dp.plan(["region", SQUARES], domain=REGIONS, **PURE).to_frame(),
    }


@case
def what_derived_levels_are():
    levels = {"calendar": MONTHS, "cut": GROUPS, "mapping": KINDS, "quadtree": SQUARES}
    return {
        name: {"names": list(each.names), "columns": list(each.columns), "paths": each.paths()}
        for name, each in levels.items()
    } | {"square": SQUARES.square("31")}

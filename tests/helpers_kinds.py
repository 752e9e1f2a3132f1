"""A plan of every kind, and records that each of them can release."""

import datetime

import pandas_dptree as dpt
from tests.helpers_privacy import LOSS

BY = ["region", "district"]
RECORDS = dpt.datasets.clinic_visits(2_000).assign(ip="10.0.0.7")
DOMAIN = dpt.Domain.from_frame(dpt.datasets.clinics()[BY].drop_duplicates(), by=BY)
REGIONS = dpt.Domain.from_frame(dpt.datasets.clinics()[["region"]].drop_duplicates(), by=["region"])
PREFIXES = dpt.prefixes("ip", bits=[8, 16], notation="ipv4")
AGES = dpt.derived_domain(dpt.cut("age", levels={"band": [0, 40, 120]}))
CROSSED = dpt.cross(place=DOMAIN, age=AGES)
YEARS = (datetime.date(2024, 1, 1), datetime.date(2026, 1, 1))
FACTOR = dpt.Multiplicative(alpha=0.25)
KINDS = {
    type(plan).__name__: plan
    for plan in (
        dpt.plan(DOMAIN, **LOSS),
        dpt.plan_agg(DOMAIN, {"n": "count", "cost": dpt.mean("cost", bounds=(0, 500))}, **LOSS),
        dpt.plan(CROSSED, **LOSS),
        dpt.plan(DOMAIN, **LOSS, mechanism=FACTOR),
        dpt.plan_distribution("cost", bounds=(0, 500), bins=16, domain=DOMAIN, **LOSS),
        dpt.plan_quantiles(
            "cost", 0.5, bounds=(0, 500), bins=4, mechanism="exponential", domain=DOMAIN, **LOSS
        ),
        dpt.plan(PREFIXES, **LOSS),
        dpt.plan(PREFIXES, **LOSS, mechanism=FACTOR),
        dpt.plan_units(DOMAIN, privacy_unit="person", max_nodes={"region": 1, "district": 3}, **LOSS),
    )
}
BESIDE = {"privacy_unit": "person", "max_contributions": 3, "max_nodes": {"region": 1, "district": 3}}
PLANS = {
    **KINDS,
    "a median": dpt.plan_quantiles("cost", 0.5, bounds=(0, 500), **LOSS),
    "units beside rows": dpt.plan_agg(DOMAIN, {"n": "count", "people": "units"}, **BESIDE, **LOSS),
    "truncated Laplace": dpt.plan(PREFIXES, **LOSS, mechanism="truncated_laplace"),
    "Gaussian": dpt.plan(PREFIXES, **LOSS, mechanism="gaussian"),
    "quantiles of dates": dpt.plan_quantiles(
        "date", [0.25, 0.5], bounds=YEARS, bins=4, mechanism="exponential", confidence=0.9, **LOSS
    ),
    "private keys": dpt.plan(REGIONS, private_keys=["district"], privacy_unit=dpt.ROWS, **LOSS),
    "private keys alone": dpt.plan(
        None, private_keys=BY, privacy_unit=dpt.ROWS, **LOSS, mechanism="gaussian"
    ),
}

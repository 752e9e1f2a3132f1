"""What was stored: plans, the hierarchies that they are for, and the tables that some of them made."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd

import pandas_dptree as dpt
from tests.seeded.data import BY, domain, logins, meters, places, rng, visits, wards

PERSON: dict[str, Any] = {"privacy_unit": "person", "max_contributions": 2}
APPROXIMATE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
SUMMED: dict[str, Any] = {
    "visits": "count",
    "age": dpt.mean("age", bounds=(0, 100)),
    "cost": dpt.sum("cost", bounds=(0, 500), granularity=0.5),
}
TABLES = ["counts", "counts_by_kind", "several", "prefixes", "private_keys", "cdf"]
"""Tables that were stored, by their names; each but the last was made by the plan of its name."""

PAGES = ["counts", "several", "private_keys"]
"""Tables of which a page was stored."""

VERIFIED = ["counts", "counts_by_kind", "several"]
"""Tables that the verifier can check."""


def kinds() -> pd.DataFrame:
    """List keys of several types, in an order of their own."""
    return pd.DataFrame(
        {
            "kind": pd.Categorical(["tool", "fruit", "fruit"], categories=["tool", "fruit"], ordered=True),
            "code": ["00501", "=1+1", 'a "b", é'],
            "day": pd.to_datetime(["2024-02-29", "1999-12-31", "2024-03-01"]),
            "zoned": pd.to_datetime(["2024-02-29", "1999-12-31", "2024-03-01"]).tz_localize("Europe/Berlin"),
            "span": pd.to_timedelta(["1h", "2s", "-3D"]),
            "number": pd.array([2**53 + 1, -5, 7], dtype="Int64"),
            "half": [0.1, 2.5, -0.5],
            "flag": [True, False, True],
        }
    )


@cache
def hierarchies() -> dict[str, Any]:
    """Make the hierarchy of each plan that has one of its own; the others are for `places`."""
    regions = dpt.Domain.from_frame(places()[BY[:1]].drop_duplicates(), by=BY[:1])
    prefixes = dpt.prefixes("ip", bits=[8, 16, 24, 32], notation="ipv4")
    return {
        "structural_zeros": domain(zeros=True),
        "counts_by_kind": dpt.Domain.from_frame(kinds(), by=list(kinds())),
        "tree": dpt.Tree.from_branching([3, 4, 2]),
        "months": dpt.derived_domain(
            dpt.calendar("date", ["year", "month"], start="2024-01-01", end="2024-06-30")
        ),
        "array": wards().dp.plan(["city", "hospital"], epsilon=1.0, max_contributions=1).domain,
        "dataset": meters().dp.plan(
            ["street"], variables=["people", "calls"], epsilon=1.0, max_contributions=1
        ).hierarchy,
        "distribution": None,
        "factorization": None,
        "prefixes": prefixes,
        "prefixes_gaussian": prefixes,
        "prefixes_relative_error": prefixes,
        "private_keys": regions,
        "private_keys_alone": None,
    }  # fmt: skip


def plans() -> dict[str, Any]:
    """Make a plan of every kind."""
    of, listed = hierarchies(), domain()
    bounded = dpt.Multiplicative(alpha=0.25)
    return {
        "counts": dpt.plan(listed, epsilon=1.0, confidence=0.9, **PERSON),
        "counts_by_kind": dpt.plan(of["counts_by_kind"], rho=0.5, split="uniform"),
        "structural_zeros": dpt.plan(
            of["structural_zeros"], known={"total": 500}, neighbors="replace", level_weights={"clinic": 3},
            objective="cells", fit="joint", consistency="nonnegative", **APPROXIMATE, **PERSON,
        ),
        "given_split": dpt.plan(
            listed, split={"region": 0.25, "clinic": 0.75}, consistency="linear", rho=0.1
        ),
        "target": dpt.plan(listed, target={"region": 6.0}),
        "sums": dpt.plan(listed, column="cost", bounds=(-10, 500), granularity=0.5, rho=0.1, **PERSON),
        "several": dpt.plan_agg(listed, SUMMED, **APPROXIMATE, **PERSON),
        "tree": dpt.plan(of["tree"], mechanism="gaussian", **APPROXIMATE),
        "months": dpt.plan(of["months"], epsilon=1.0, privacy_unit=dpt.ROWS),
        "array": wards().dp.plan(["city", "hospital"], epsilon=1.0, max_contributions=1),
        "dataset": meters().dp.plan(
            ["street"], variables=["people", "calls"], epsilon=1.0,
            max_contributions={"people": 1, "calls": 4},
        ),
        "relative_error": dpt.plan(listed, mechanism=bounded, **APPROXIMATE, **PERSON),
        "distribution": dpt.plan_distribution("age", bounds=(0, 100), bins=20, epsilon=1.0, **PERSON),
        "factorization": dpt.plan_distribution(
            "cost", bounds=(0, 500), bins=100, known={"total": 600}, rho=0.5
        ),
        "groups": dpt.plan_distribution("age", bins=[0, 18, 40, 100], domain=listed, **APPROXIMATE, **PERSON),
        "prefixes": dpt.plan(of["prefixes"], mechanism="truncated_laplace", **APPROXIMATE),
        "prefixes_gaussian": dpt.plan(of["prefixes"], mechanism="gaussian", rho=0.1, delta=1e-6),
        "prefixes_relative_error": dpt.plan(
            of["prefixes"], mechanism=bounded, **APPROXIMATE, **PERSON
        ),
        "private_keys": dpt.plan(of["private_keys"], private_keys=BY[1:], epsilon=4.0, delta=1e-3, **PERSON),
        "private_keys_alone": dpt.plan(None, private_keys=BY, mechanism="gaussian", **APPROXIMATE, **PERSON),
    }  # fmt: skip


def records(name: str) -> Any:
    """Return the records or arrays that the plan of a name releases."""
    if name.startswith("prefixes"):
        return logins()
    if name == "counts_by_kind":
        return kinds().iloc[[0, 0, 0, 1, 2, 2]]
    if name == "tree":
        return np.array([5, 0, 3, 40, 2, 0, 0, 9, 100, 1, 0, 3] * 2)
    return {"array": wards(), "dataset": meters()}.get(name, visits())


def released(name: str, plan: dpt.Plan) -> Any:
    """Release by a plan, from a seed. The table of a distribution are its cumulative counts."""
    data = records(name)
    made = data.dp.release(plan, rng=rng()) if hasattr(data, "dp") else plan.release(data, rng=rng())
    return made.cdf(confidence=0.9) if isinstance(made, dpt.Distribution) else made


def shape(made: Any) -> Any:
    """Columns, types and rows of a table, or the sizes of the groups of a tree of datasets.

    Of a table whose rows depend on the noise, these are its columns.
    """
    if not isinstance(made, pd.DataFrame):
        groups = made.children.items()
        return {
            name: {str(k): [*map(list, v.sizes.items())] for k, v in each.items()} for name, each in groups
        }
    if "other" in made:
        return list(made)
    return {"columns": {str(name): str(kind) for name, kind in made.dtypes.items()}, "rows": len(made)}

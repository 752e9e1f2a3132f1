"""Wrong arguments. Of the errors the class and the argument are compared; the texts are there to be read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import pandas_dptree as dpt
from tests.recording.cases.register import case
from tests.recording.cases.tables import counts, means, sums
from tests.recording.data import APPROXIMATE, PURE, domain, meters, places, products, rng, visits, wards
from tests.recording.described import NOT_COMPARED

TREE = dpt.Tree.from_branching([2, 3])
SQUARES = dpt.quadtree("y", "x", depth=2, bounds=((0, 10), (0, 10)))
FACTORS = dpt.Multiplicative(alpha=0.25)
IPS = dpt.prefixes("ip", bits=[8, 16])

WRONG: dict[str, Callable[[], Any]] = {
    "no loss": lambda: counts(),
    "two losses": lambda: counts(epsilon=1.0, rho=0.1),
    "negative epsilon": lambda: counts(epsilon=-1.0),
    "no domain": lambda: counts(domain=None, **PURE),
    "no such key": lambda: dpt.tree_counts(visits(), ["town"], domain="observed", **PURE),
    "domain by a word": lambda: counts(domain="all", **PURE),
    "domain of other squares": lambda: dpt.tree_counts(
        visits(),
        SQUARES,
        domain=dpt.derived_domain(dpt.quadtree("y", "x", depth=2, bounds=((0, 1), (0, 1)))),
        **PURE,
    ),
    "granularity of counts": lambda: dpt.plan(domain(), granularity=1.0, **PURE),
    "contributions without a unit": lambda: counts(max_contributions=2, **PURE),
    "contributions": lambda: counts(privacy_unit="person", max_contributions=0, **PURE),
    "neighbors": lambda: counts(neighbors="change", **PURE),
    "delta": lambda: counts(epsilon=1.0, delta=1.5),
    "delta with rho": lambda: counts(rho=1.0, delta=1e-6),
    "key types": lambda: counts(domain=places().assign(region=range(len(places()))), **PURE),
    "domain without a key": lambda: counts(domain=places()[["region"]], **PURE),
    "unit without a column": lambda: counts(privacy_unit="who", max_contributions=1, **PURE),
    "categories of texts": lambda: counts(domain="categories", **PURE),
    "leaf twice": lambda: counts(domain=pd.concat([places(), places()]), **PURE),
    "mechanism": lambda: counts(mechanism="cauchy", **PURE),
    "gaussian for pure": lambda: counts(mechanism="gaussian", **PURE),
    "split": lambda: counts(split={"region": 0.5}, **PURE),
    "split of no level": lambda: counts(split={"town": 1.0}, **PURE),
    "nodes with laplace": lambda: counts(split="nodes", mechanism="laplace", **APPROXIMATE),
    "consistency": lambda: counts(consistency="whole", **PURE),
    "fit": lambda: counts(fit="best", **PURE),
    "objective": lambda: counts(objective="mean", **PURE),
    "confidence": lambda: counts(confidence=95, **PURE),
    "keep_measurements": lambda: counts(keep_measurements="yes", **PURE),
    "progress": lambda: counts(progress="yes", **PURE),
    "rng": lambda: counts(rng=5, **PURE),
    "known that cannot be": lambda: counts(known={"total": 5, "region": {"North": 9}}, **PURE),
    "known leaves": lambda: dpt.plan(TREE, known={"level_2": np.arange(6)}, **PURE),
    "known of sums": lambda: dpt.plan(domain(), column="age", bounds=(0, 9), known={"total": 5}, **PURE),
    "unit that is a key": lambda: counts(privacy_unit="region", max_contributions=1, **PURE),
    "bounds": lambda: sums(bounds=(5, 5), **PURE),
    "no bounds": lambda: means(bounds=None, **PURE),
    "columns twice": lambda: sums(["age", "age"], **PURE),
    "bounds of others": lambda: sums(["age"], bounds={"cost": (0, 1)}, **PURE),
    "target with weights": lambda: dpt.plan(TREE, target={"total": 5.0}, level_weights={"total": 2}),
    "target out of reach": lambda: dpt.plan(TREE, target={"total": 0.5}, epsilon=0.1),
    "frame for a plan": lambda: dpt.plan(places(), **PURE),
    "alpha twice": lambda: counts(alpha=0.1, mechanism=FACTORS, **APPROXIMATE),
    "alpha with objective": lambda: counts(alpha=0.1, objective="cells", **PURE),
    "factors with rho": lambda: counts(mechanism=FACTORS, rho=0.1),
    "factors with split": lambda: counts(mechanism=FACTORS, split="uniform", **APPROXIMATE),
    "factors of sums": lambda: dpt.plan(
        domain(), mechanism=FACTORS, column="age", bounds=(0, 9), **APPROXIMATE
    ),
    "factors without delta": lambda: counts(mechanism=FACTORS, **PURE),
    "prefixes with domain": lambda: dpt.tree_counts(visits(), IPS, domain=places(), **APPROXIMATE),
    "prefixes with fit": lambda: dpt.tree_counts(visits(), IPS, fit="joint", **APPROXIMATE),
    "prefixes without delta": lambda: dpt.tree_counts(visits(), IPS, **PURE),
    "prefixes with laplace": lambda: dpt.tree_counts(visits(), IPS, mechanism="laplace", **APPROXIMATE),
    "prefixes with factors and split": lambda: dpt.plan_implicit(
        IPS, mechanism=FACTORS, split="uniform", **APPROXIMATE
    ),
    "prefixes split": lambda: dpt.plan_implicit(IPS, split={"total": 1.0}, **APPROXIMATE),
    "data of a tree": lambda: dpt.plan(TREE, **PURE).release(visits()),
    "shape of data": lambda: dpt.plan(TREE, **PURE).release(np.arange(5)),
    "another domain": lambda: dpt.Plan.from_dict(dpt.plan(domain(), **PURE).to_dict(), TREE),
    "another kind of plan": lambda: dpt.MultiplicativePlan.from_dict(dpt.plan(TREE, **PURE).to_dict(), TREE),
    "half a plan": lambda: dpt.Plan.from_dict({**dpt.plan(TREE, **PURE).to_dict(), "shares": []}, TREE),
    "plan of an odd name": lambda: dpt.plan(
        domain(), privacy_unit=("a", "b"), max_contributions=1, **PURE
    ).to_dict(),
    "no plan": lambda: dpt.Plan.from_dict({"format": "x"}, TREE),
    "no plan to release": lambda: visits().dp.release("plan"),
    "level of a table": lambda: counts(rng=rng(), **PURE).dp.level("town"),
    "icicle of raw counts": lambda: counts(rng=rng(), consistency="none", **PURE).dp.plot.icicle(),
    "columns of a page": lambda: counts(rng=rng(), **PURE).dp.to_html(columns=["age"]),
    "page of a frame": lambda: visits().dp.to_html(),
    "bins": lambda: dpt.cdf(visits(), "age", bounds=(0, 100), bins=0, **PURE),
    "q": lambda: dpt.quantiles(visits(), "age", 50, bounds=(0, 100), **PURE),
    "ranges": lambda: dpt.range_counts(visits(), "age", [(0, 7)], bounds=(0, 100), bins=10, **PURE),
    "domain without groups": lambda: dpt.cdf(visits(), "age", bounds=(0, 9), bins=3, domain=places(), **PURE),
    "units of time": lambda: dpt.calendar("date", ["month", "year"], start="2024-01-01", end="2024-12-31"),
    "mapping": lambda: dpt.mapping(products(), by=["kind"]),
    "quadtree without bounds": lambda: dpt.tree_counts(visits(), dpt.quadtree("y", "x", depth=2), **PURE),
    "array keys": lambda: wards().dp.tree_counts(["town"], max_contributions=1, **PURE),
    "array known": lambda: wards().dp.tree_counts(["city"], known={"total": 5}, max_contributions=1, **PURE),
    "array granularity": lambda: wards().dp.plan(["city"], granularity=1.0, max_contributions=1, **PURE),
    "array sums": lambda: wards().dp.tree_sums(["city"], bounds=None, max_contributions=1, **PURE),
    "array confidence": lambda: wards().dp.cdf("ward", edges=[1, 2], max_contributions=1, **PURE),
    "array plan": lambda: wards().dp.release(dpt.plan(TREE, **PURE)),
    "array edges": lambda: wards().dp.cdf("ward", max_contributions=1, **PURE),
    "dataset sums": lambda: meters().dp.tree_sums(["street"], bounds=None, max_contributions=1, **PURE),
    "dataset keys": lambda: meters().dp.tree_counts(["people"], max_contributions=1, **PURE),
    "dataset plan": lambda: meters().dp.release(dpt.plan(TREE, **PURE)),
    "dataset variables": lambda: meters().dp.tree_counts(
        ["street"], variables=["x"], max_contributions=1, **PURE
    ),
}


def _error_of(call: Callable[[], Any]) -> dict[str, Any]:
    try:
        call()
    except dpt.DPTreeError as error:
        argument = getattr(error, "argument", None)
        return {"error": type(error).__name__, "argument": argument, NOT_COMPARED: str(error)}
    return {"error": None}


@case
def wrong_arguments():
    return {name: _error_of(call) for name, call in WRONG.items()}

"""What is going to be removed: keys of unusual types.

When it goes, delete this module and what was recorded of it.
"""

from __future__ import annotations

import datetime
import uuid
from decimal import Decimal
from fractions import Fraction

import pandas as pd
import polars as pl
import pyarrow as pa

import pandas_dptree as dpt
from tests.seeded.cases.plans import TREE
from tests.seeded.cases.records import counted, in_arrow, objects
from tests.seeded.cases.register import case
from tests.seeded.data import (
    APPROXIMATE,
    EXACT,
    PURE,
    domain,
    rng,
)


@case
def alpha_compared():
    plan = dpt.plan(domain(), mechanism="laplace", **APPROXIMATE)
    return {
        "worst": plan.compare(alpha=0.1),
        "counts": plan.compare(alpha=0.25, counts={"total": 600, "region": 150}),
        "pure": dpt.plan(TREE, **PURE).compare(alpha=0.1),
    }


@case
def keys_that_are_objects():
    whose = uuid.UUID(int=5)
    day, span = datetime.date(2024, 2, 29), datetime.timedelta(hours=3)
    listed = objects(
        1, 2.5, "1", True, day, span, (1, "a"), b"x", whose, datetime.time(12), pd.Period("2024-01"),
        pd.Interval(0, 1), Fraction(1, 3), 10**30,
    )  # fmt: skip
    seen = objects(
        Decimal("1"), Fraction(5, 2), (1.0, "a"), b"x", whose, datetime.time(12), pd.Period("2024-01", "M"),
        pd.Interval(0, 1), Fraction(2, 6), Decimal(10**30), Decimal("nan"), Decimal("1e999999"),
        (1, ((object(),),)), 1, "1", span,
    )  # fmt: skip
    keys = dpt.Domain.from_frame(pd.DataFrame({"k": listed}), by=["k"])
    table = dpt.tree_counts(pd.DataFrame({"k": seen}), ["k"], domain=keys, rng=rng(), **EXACT)
    return {"labels": [repr(each) for each in keys.keys(1)["k"]], "counts": table["count"].tolist()}


@case
def keys_that_are_decimals():
    values = [Decimal("1.00"), Decimal(2), Decimal(2), None]
    polars = pl.DataFrame({"k": pl.Series([1, 2, 2, None]).cast(pl.Decimal(9, 2))})
    return {
        "arrow": counted(in_arrow(pa.array(values, pa.decimal128(9, 2))), [1, 2, 3]),
        "polars": counted(polars, [1, 2, 3]),
        "listed": counted(objects(*values), [Decimal(1), Decimal("2.0")]),
    }

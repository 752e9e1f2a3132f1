"""Every verb that reads records, as it is called with a frame of any engine that holds `odd_records`."""

from collections import Counter
from functools import cache, partial

import numpy as np
import pandas as pd

import pandas_dptree as dpt

KEYS = ["state", "county", "city"]

UNITS = {
    "rows": {"privacy_unit": dpt.ROWS},
    "some of each unit": {"privacy_unit": "unit", "max_contributions": 2},
    "all of each unit": {"privacy_unit": "unit", "max_contributions": 20},
}
"""Whom to protect. No unit of the odd records has more than 12 rows, if these are few."""

_CITIES = range(60)
_REGULAR = [(f"State {each // 20:02}", f"County {each // 5:04}", f"City {each:05}") for each in _CITIES]
_ALMOST = [
    ("State 01", "County 0000", "City 00000"),
    ("state 01", "County 0000", "City 00000\0"),
    *((state, None, None) for state in ("Nowhere", "\u00c9", "E\u0301")),
]
PLACES = pd.DataFrame([*_REGULAR, *_ALMOST], columns=KEYS)
"""Public keys, some of which differ by case, by a NUL, or by the normal form alone."""

STATES = PLACES[["state"]].drop_duplicates()
LISTED = pd.DataFrame({"kind": ["a", "A", "a", "b"], "flag": [True, False, False, None]})
NUMBERS = pd.DataFrame({"number": [2**53 + each for each in range(4)]})
TABLE = pd.DataFrame({"letter": ["a", "a", "b"], "kind": ["a", "A", "b"]})

EPSILON = {"epsilon": 200.0, "mechanism": "laplace"}
"""So little noise that no count can be another without a trace in the table."""

EXACT = {**EPSILON, "split": "uniform"}

APPROXIMATE = {"epsilon": 200.0, "delta": 1e-3}
FACTOR = {**APPROXIMATE, "mechanism": dpt.Multiplicative(alpha=0.5, failure_probability=0.4)}
BOUNDS = {"bounds": (0, 500)}
AMOUNT = {"columns": "amount", **BOUNDS}
BINS = {**BOUNDS, "bins": 8, "strategy": [4, 2], "by": ["state"], "domain": STATES, **EPSILON}
DAYS = dpt.calendar("day", ["year", "quarter", "month"], start="2020-01-01", end="2021-06-30")
HOURS = dpt.calendar(
    "at", ["iso_week", "weekday", "hour"], start="2019-12-31", end="2020-03-01", timezone="America/New_York"
)
GROUPS = dpt.cut("amount", levels={"group": [0, 100, 500], "band": [0, 0.1, 2.5, 10, 100, 250, 500]})
LETTERS = dpt.mapping(TABLE, by=["letter", "kind"])
SQUARES = dpt.quadtree("ip", "amount", depth=3, bounds=((0, 2**32), (0, 500)))
ADDRESSES = dpt.prefixes("ip", bits=[2, 4, 6], notation="ipv4")
CITIES = dpt.prefixes("city", chars=[6, 8, 10], alphabet="City 0123456789")
AGGREGATIONS = {
    "rows": "count",
    "amount": dpt.sum("amount", bounds=(0, 500)),
    "mean": dpt.mean("amount", bounds=(-10, 500)),
    "number": dpt.mean("number", bounds=(0, 2**54)),
}


def _of(verb, *arguments, **options):
    return lambda frame, **more: verb(frame, *arguments, **options, **more)


def _capped(verb, *arguments, **options):
    """Bound the rows of a unit in each node too, if the unit is a column."""
    *own, _ = arguments[0] if isinstance(arguments[0], list) else [arguments[0]]
    caps = {"max_per_leaf": 1, **({"max_per_node": {own[-1]: 2}} if own else {})}
    return lambda frame, **more: verb(
        frame, *arguments, **options, **({} if more["privacy_unit"] is dpt.ROWS else caps), **more
    )


def _units(verb, *arguments, **options):
    """Count distinct units, also instead of rows that are units of their own."""
    most = ("max_nodes", "max_contributions") if verb is dpt.tree_agg else ("max_nodes",)
    return lambda frame, max_contributions=1, **more: verb(
        frame,
        *arguments,
        **options,
        **more | {"privacy_unit": "unit"} | dict.fromkeys(most, max_contributions),
    )


VERBS = {
    "tree_counts": _of(dpt.tree_counts, KEYS, domain=PLACES, **EXACT),
    "tree_counts of other types": _of(dpt.tree_counts, ["kind", "flag"], domain=LISTED, **EXACT),
    "tree_counts of large numbers": _of(dpt.tree_counts, ["number"], domain=NUMBERS, **EXACT),
    "tree_counts of a name with a dot": _of(dpt.tree_counts, ["a.b"], domain=range(4), **EXACT),
    "tree_counts with bounded relative error": _of(dpt.tree_counts, KEYS, domain=PLACES, **FACTOR),
    "tree_sums": _of(dpt.tree_sums, KEYS, columns=["amount", "number"], domain=PLACES, **EXACT,
                     bounds={"amount": (0, 500), "number": (0, 2**54)}),
    "tree_means": _of(dpt.tree_means, KEYS, domain=PLACES, **EXACT, **AMOUNT),
    "tree_agg": _of(dpt.tree_agg, KEYS, AGGREGATIONS, domain=PLACES, **EXACT),
    "release_distribution": _of(dpt.release_distribution, "amount", **BINS),
    "release_distribution of times": _of(
        dpt.release_distribution, "at", bins=4, strategy=[4], **EPSILON,
        bounds=(pd.Timestamp("2020-01-01", tz="UTC"), pd.Timestamp("2020-12-31", tz="UTC")),
    ),
    "cdf": _of(dpt.cdf, "amount", **BINS),
    "histogram": _of(dpt.histogram, "number", bins=[2**53, 2**53 + 2, 2**53 + 4], **EPSILON),
    "quantiles": _of(dpt.quantiles, "amount", [0.1, 0.5, 0.9], **BINS),
    "quantiles from a grid": _of(
        dpt.quantiles, "amount", [0.25, 0.5], granularity=0.5, mechanism="exponential", bins=8,
        strategy=[4, 2], by=["state"], domain=STATES, epsilon=200.0, **BOUNDS,
    ),
    "median of times": _of(
        dpt.quantiles, "at", 0.5, granularity="1h", epsilon=200.0,
        bounds=(pd.Timestamp("2020-01-01", tz="UTC"), pd.Timestamp("2020-12-31", tz="UTC")),
    ),
    "range_counts": _of(dpt.range_counts, "amount", [(0, 125), (62.5, 500)], **BINS),
    "calendar of dates": _of(dpt.tree_counts, DAYS, **EXACT),
    "calendar of times": _of(dpt.tree_counts, HOURS, **EXACT),
    "cut below keys": _of(dpt.tree_counts, ["state", GROUPS], domain=STATES, **EXACT),
    "mapping": _of(dpt.tree_means, LETTERS, **EXACT, **AMOUNT),
    "quadtree": _of(dpt.tree_counts, SQUARES, **EXACT),
    "listed prefixes": _of(dpt.tree_sums, ["state", ADDRESSES], domain=STATES, **EXACT, **AMOUNT),
    "prefixes of numbers": _of(dpt.tree_counts, ADDRESSES, **APPROXIMATE, mechanism="gaussian"),
    "prefixes of text": _of(dpt.tree_counts, CITIES, **APPROXIMATE, mechanism="truncated_laplace"),
    "prefixes with bounded relative error": _of(dpt.tree_counts, ADDRESSES, **FACTOR),
    "private keys": _of(
        dpt.tree_counts, KEYS, domain=STATES, private_keys=["county", "city"], **APPROXIMATE,
        mechanism="truncated_laplace",
    ),
    "private keys alone": _of(
        dpt.tree_counts, ["kind", "number"], private_keys=["kind", "number"], **APPROXIMATE,
        mechanism="gaussian",
    ),
    "tree_units": _units(dpt.tree_units, KEYS, domain=PLACES, **EXACT),
    "units by a calendar": _units(dpt.tree_units, ["kind", DAYS], domain=["a", "A", "b"], **EXACT),
    "tree_agg of units": _units(
        dpt.tree_agg, KEYS, {"units": "units", "mean": AGGREGATIONS["mean"]}, domain=PLACES, **EXACT
    ),
    "counts with caps": _capped(dpt.tree_counts, KEYS, domain=PLACES, **EXACT),
    "sums with caps": _capped(dpt.tree_sums, ["state", ADDRESSES], domain=STATES, **EXACT, **AMOUNT),
    "prefixes with caps": _capped(dpt.tree_counts, CITIES, **APPROXIMATE, mechanism="truncated_laplace"),
    "private keys with caps": _capped(
        dpt.tree_counts, KEYS, domain=STATES, private_keys=["county", "city"], **APPROXIMATE,
        mechanism="truncated_laplace",
    ),
}  # fmt: skip


KINDS = {
    "counts": [
        "tree_counts", "tree_counts of other types", "tree_counts of large numbers",
        "tree_counts of a name with a dot", "tree_counts with bounded relative error",
    ],
    "values": ["tree_sums", "tree_means", "tree_agg"],
    "distributions": [
        "release_distribution", "release_distribution of times", "cdf", "histogram", "quantiles",
        "range_counts",
    ],
    "drawn quantiles": ["quantiles from a grid", "median of times"],
    "derived levels": [
        "calendar of dates", "calendar of times", "cut below keys", "mapping", "quadtree", "listed prefixes",
    ],
    "prefixes": ["prefixes of numbers", "prefixes of text", "prefixes with bounded relative error"],
    "private keys": ["private keys", "private keys alone"],
    "units": ["tree_units", "units by a calendar", "tree_agg of units"],
    "caps": ["counts with caps", "sums with caps", "prefixes with caps", "private keys with caps"],
}  # fmt: skip
"""The verbs by how they read records."""


def in_pairs(engines):
    """List calls of each engine, as verbs and units, so that all pairs occur.

    These are pairs of an engine and a kind of verb, of an engine and a unit, and of a verb and a unit. From
    engine to engine the verbs of a kind take turns; the unit is one that makes the most new pairs.
    """
    met, calls = Counter(), {engine: [] for engine in engines}
    for turn, engine in enumerate(engines):
        for verbs in KINDS.values():
            verb = verbs[turn % len(verbs)]
            old = {unit: (met[verb, unit] > 0) + (met[engine, unit] > 0) for unit in UNITS}
            unit = min(UNITS, key=lambda unit: (old[unit], met[verb, unit]))
            met.update([(engine, unit), (verb, unit)])
            calls[engine].append((verb, unit))
    return calls


def tables(answer):
    """List the tables that are made of an answer."""
    if isinstance(answer, dpt.Distribution):
        return [answer.cdf(), answer.histogram(), answer.quantiles([0.1, 0.5, 0.9])]
    return [answer]


def assert_same(answer, expected):
    """Check that two answers are the same in all that can be seen."""
    for table, other in zip(tables(answer), tables(expected), strict=True):
        pd.testing.assert_frame_equal(table, other)
        assert table.attrs == other.attrs


def seeded():
    return {"rng": np.random.default_rng(0)}


DOMAIN = dpt.Domain.from_frame(PLACES, by=KEYS)
DOMAIN_OF_STATES = dpt.Domain.from_frame(STATES, by=["state"])
PLANS = {
    "units": lambda privacy_unit, max_contributions=1: dpt.plan_units(
        DOMAIN, privacy_unit="unit", max_nodes=max_contributions, **EXACT
    ),
    "counts": partial(dpt.plan, DOMAIN, **EXACT),
    "several at once": partial(dpt.plan_agg, DOMAIN, AGGREGATIONS, **EXACT),
    "bounded relative error": partial(dpt.plan, DOMAIN, **FACTOR),
    "distribution": partial(
        dpt.plan_distribution, "amount", **BOUNDS, bins=8, strategy=[4, 2], domain=DOMAIN_OF_STATES, **EPSILON
    ),
    "quantiles": partial(
        dpt.plan_quantiles, "amount", 0.5, **BOUNDS, bins=8, mechanism="exponential", domain=DOMAIN_OF_STATES,
        epsilon=200.0,
    ),
    "prefixes": partial(dpt.plan, ADDRESSES, **APPROXIMATE, mechanism="gaussian"),
    "private keys": partial(
        dpt.plan, DOMAIN_OF_STATES, private_keys=["county", "city"], **APPROXIMATE,
        mechanism="truncated_laplace",
    ),
}  # fmt: skip


@cache
def planned(kind, unit):
    """Make a plan of a kind for a unit of `UNITS`."""
    return PLANS[kind](**UNITS[unit])

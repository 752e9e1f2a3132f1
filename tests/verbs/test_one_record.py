"""One record more, end to end through the public verbs: it adds what it may, and moves nothing else.

All noise is taken to be zero, so that tables show the exact values. Frames then grow record by record, each a
neighbour of the one before, with values as odd as columns of their type can hold.
"""

import datetime as dt
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pandas_dptree as dpt
from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.plans import execute, running
from pandas_dptree.plans.joint_search import plan_means, plan_sums
from pandas_dptree.privacy.quantity import Quantity
from pandas_dptree.verbs.aggregations import Aggregation
from tests.helpers_cases import each
from tests.helpers_output import attrs_of


class Hostile:
    """Whatever is asked of it fails."""

    def _fail(self, *_: object) -> Any:
        raise RuntimeError("secret")

    __eq__ = __hash__ = __float__ = __str__ = __repr__ = __lt__ = __bool__ = _fail  # type: ignore[assignment]


class Shouting(str):
    """A text that equals everything."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = str.__hash__


NOTHING = [None, math.nan, pd.NA, pd.NaT, Decimal("NaN"), Decimal("sNaN"), np.datetime64("NaT", "D"), ""]
NUMBERS = [
    0, 1, 5, 10, 2**53 + 1, 2**63, 2**64, 10**400, -(10**400), -1, True, np.True_, 0.1, 2.5, 5.0, -0.0, 1e308,
    math.inf, -math.inf, math.nextafter(5, 0), np.float32(5), np.float16(2.5), np.int8(-5),
    np.uint64(2**64 - 1),
    np.longdouble("1e4000"), Decimal("5"), Decimal("1E+99999"), Decimal("Infinity"), Fraction(5),
    Fraction(1, 3),
    Fraction(10**500, 3), 3 + 0j, np.timedelta64(5, "D"), Hostile(),
]  # fmt: skip
TEXTS = [
    " 5 ", "1_000", "１２", "0x10", "1e400", "-inf", "nan", "5", "5\0", "5\0x", "\ud800", "a", "a\0", "A",
    "b", "é",
    "e\u0301", "10.0.0.1", "10.0.0.01", "10.0.0.256", "192.168.0.1\n", "1" * 5000, "\U0001f600",
    Shouting("a"),
    np.str_("b"), "10.0.0.1\0", "ab", "ba", "abc", b"a", ("a",), ["a"], {"a": 1}, "²", "٣",
]  # fmt: skip
OFFSET = dt.timezone(dt.timedelta(hours=23, minutes=59))
TIMES = [
    "2020-01-01", "2020-02-30", "0000-01-01", "9999-12-31T23:59:59", "2020-06-01T12:00:00+02:00", "20200101",
    "2020-W01-1", "2020-01-01T24:00:00", "-2020-01-01", "2020-03-29T02:30:00+01:00",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59", "01/02/2020", "31/12/2020", "2020-01-01Z",
    "２０２０-01-01", "2020-10-25 02:30",
    dt.date(1, 1, 1), dt.date(2020, 5, 5), dt.datetime(9999, 12, 31, 23, 59), dt.datetime(1, 1, 1,
    tzinfo=OFFSET),
    dt.datetime(9999, 12, 31, 23, tzinfo=dt.timezone(-dt.timedelta(hours=23))), dt.datetime(2020, 1, 1),
    dt.datetime(2020, 6, 1, 12, tzinfo=dt.UTC), pd.Timestamp("2020-06-01"), pd.Timestamp("2020-06-01",
    tz="Asia/Tokyo"),
    pd.Timestamp.max, pd.Timestamp.min, np.datetime64("2020"), np.datetime64("20200", "Y"),
    np.datetime64(2**62, "s"),
    np.datetime64("2020-01-01", "h"), pd.Period("2020-01"), dt.time(1), dt.timedelta(1), pd.Timedelta.max,
    dt.timedelta.max, dt.timedelta.min, dt.timedelta(hours=1), np.timedelta64(2, "h"), np.timedelta64(2**60,
    "W"),
    np.timedelta64("NaT", "D"), "01/02/2020 +2359", 1577836800, "2020-06-01T00:00:00.999999999",
]  # fmt: skip
OBJECTS = [*NOTHING, *NUMBERS, *TEXTS, *TIMES]
GROUPS = ["a", "b", "a", "b", None, "A", "a\0", "c", math.nan, b"a", 1, "\ud800", ("a",)]

BIG, SMALL = 2**63 - 1, -(2**63) + 1
OF_NUMBERS: dict[pa.DataType, list[Any]] = {
    pa.int64(): [0, 1, 5, 10, -1, 2**53 + 1, BIG, SMALL, None],
    pa.uint64(): [0, 1, 5, 10, 2**53 + 1, 2**63, 2**64 - 1, None],
    pa.int8(): [0, 1, 5, 10, -128, 127, None],
    pa.float64(): [0.0, -0.0, 2.5, 5.0, 10.0, 1e308, math.inf, -math.inf, math.nan, 2.0**63, None],
    pa.float32(): [0.0, 2.5, 5.0, 10.0, math.inf, math.nan, None],
    pa.float16(): [np.float16(each) for each in (0, 2.5, 5, 10, math.inf, math.nan)] + [None],
}
OF_TEXT: dict[pa.DataType, list[Any]] = {
    kind: [None, *(text for text in TEXTS + TIMES if type(text) is str and "\ud800" not in text)]
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()))
}
OF_AMOUNTS = {
    **OF_NUMBERS, **OF_TEXT, pa.bool_(): [True, False, None],
    pa.decimal128(38, 3): [Decimal("5"), Decimal("2.5"), Decimal(10) ** 34, Decimal("-0.001"), None],
}  # fmt: skip
_TICKS = [0, 1577836800, 1590969600, 1577836799, 1577836800 * 10**3, 1577836800 * 10**9, BIG, SMALL, None]
OF_TIMES: dict[pa.DataType, list[Any]] = {pa.timestamp(unit): _TICKS for unit in ("s", "ms", "us", "ns")}
OF_ZONED: dict[pa.DataType, list[Any]] = {
    pa.timestamp(unit, "Asia/Tokyo"): _TICKS for unit in ("s", "us", "ns")
}
OF_SPANS: dict[pa.DataType, list[Any]] = {
    pa.duration(unit): [0, 1, 3600, 86400, 3600 * 10**9, BIG, SMALL, None] for unit in ("s", "ms", "us", "ns")
}
OF_DATES: dict[pa.DataType, list[Any]] = {pa.date32(): [0, 18262, 18300, 2**31 - 1, -(2**31), None]}


@dataclass(frozen=True)
class Case:
    """A verb, what it may be given, and how far one record may move what it shows."""

    plan: Any
    columns: dict[str, tuple[list[Any], dict[pa.DataType, list[Any]]]]
    shows: dict[str, float]
    """By the columns of the table, the most that one record adds to any leaf."""


OF_GROUPS: dict[pa.DataType, list[Any]] = {pa.string(): ["a", "b", None, "A", "a\0", "c"]}
UNITS = [
    None, math.nan, [1], Hostile(), "a", "a\0", "a\0x", "A", 1, "1", 2.5, Decimal("2.51"), 2**53, 2**53 + 1,
    2**64, True,
    ("a",), b"a", dt.date(2020, 1, 1), pd.Timestamp("2020-01-01", tz="UTC"), "\ud800", "\udc80",
    "'\\ud800'", Fraction(1, 3),
    1 / 3, pd.Period("2020-01"), -1, "1.0", math.inf, -math.inf, pd.Interval(0, 1), dt.timedelta(1), "é",
    "e\u0301",
]  # fmt: skip
OF_UNITS: dict[pa.DataType, list[Any]] = {
    pa.string(): ["a", "a\0", "a\0x", "A", "", "é", "e\u0301", "b", "1", "1.0", " a", "a ", "c", "d", "e",
    "f", "g", "h", "i", None],
    pa.int64(): [0, 1, -1, 2**53, 2**53 + 1, BIG, SMALL, *range(2, 14), None],
    pa.float64(): [0.0, 1.0, -1.0, 1 / 3, 2.0**53, 2.0**53 + 2, math.inf, -math.inf, *map(float, range(3,
    14)), None],
    pa.decimal128(38, 3): [Decimal(n) / 8 for n in range(19)] + [None],
}  # fmt: skip


def cases() -> dict[str, Case]:
    """Make each plan once."""
    none: dict[str, Any] = {"epsilon": 1.0, "consistency": "none", "split": "uniform"}
    table = pd.DataFrame({"g": ["a", "a", "b"], "v": ["b", "é", "5"]})
    groups = dpt.Domain.from_frame(pd.DataFrame({"g": ["a", "b"]}), by=["g"])

    def counts(*by: Any) -> dpt.Plan:
        return dpt.plan(dpt.derived_domain(list(by)), **none)

    def distribution(bounds: Any, domain: dpt.Domain | None = None) -> dpt.DistributionPlan:
        return dpt.plan_distribution("v", bounds=bounds, bins=4, domain=domain, strategy=[4], epsilon=1.0)

    options: dict[str, Any] = {
        **none, "delta": 0.0, "rho": None, "neighbors": "add_remove", "max_contributions": None,
        "mechanism": "laplace", "level_weights": None, "objective": "levels", "fit": "totals",
        "confidence": None, "keep": ["measurements"],
    }  # fmt: skip
    quantities = [Quantity.of("v", (-2, 10), 0.5), Quantity.of("w", (0, 5), 1)]
    year = {"start": "2020-01-01", "end": "2020-12-31"}
    plain, zoned = (
        tuple(pd.Timestamp(day, tz=tz) for day in ("2020-01-01", "2021-01-01")) for tz in (None, "UTC")
    )
    text, dates = (OBJECTS, OF_TEXT), (OBJECTS, OF_TIMES | OF_DATES | OF_TEXT)
    amount, group = (OBJECTS, OF_AMOUNTS), (GROUPS, OF_GROUPS)
    one = {"count": 1.0}
    drawn: dict[str, Any] = {
        "bounds": (0, 10), "domain": groups, "mechanism": "exponential", "bins": 4, "strategy": [4],
        "epsilon": 1.0,
    }  # fmt: skip
    found = {
        "cut": Case(counts(dpt.cut("v", levels={"wide": [0, 5, 10], "fine": 2.5})), {"v": amount}, one),
        "mapping": Case(counts(dpt.mapping(table, ["g", "v"])), {"v": text}, one),
        "calendar": Case(counts(dpt.calendar("v", ["month", "day"], **year)), {"v": dates}, one),
        "calendar, format": Case(
            counts(dpt.calendar("v", "month", format="%d/%m/%Y", **year)), {"v": dates}, one
        ),
        "calendar, zone": Case(
            counts(dpt.calendar("v", ["month", "day"], timezone="Europe/Berlin", **year)),
            {"v": (OBJECTS, OF_ZONED | OF_TEXT)}, one,
        ),
        "quadtree": Case(
            counts(dpt.quadtree("v", "w", depth=2, bounds=((0, 10), (-5, 5)))),
            {"v": amount, "w": amount}, one
        ),
        "bits": Case(
            counts(dpt.prefixes("v", bits=[1, 3], notation="number")), {"v": (OBJECTS, OF_NUMBERS)}, one
        ),
        "addresses": Case(counts(dpt.prefixes("v", bits=[4, 8], notation="ipv4")), {"v": text}, one),
        "chars": Case(counts(dpt.prefixes("v", chars=[1, 2], alphabet="ab5")), {"v": text}, one),
        "sums": Case(
            plan_sums(groups, quantities, **options),
            {"g": group, "v": amount, "w": amount}, {"v_measurement": 10.0, "w_measurement": 5.0},
        ),
        "means": Case(
            plan_means(groups, quantities, **options),
            {"g": group, "v": amount, "w": amount}, {"v_measurement": 6.0, "w_measurement": 3.0},
        ),
        "aggregations": Case(
            dpt.plan_agg(
                groups,
                {
                    "n": "count",
                    "m": Aggregation("mean", quantities[0]),
                    "s": Aggregation("sum", quantities[1]),
                },
                **options,
            ),
            {"g": group, "v": amount, "w": amount},
            {"n_measurement": 1.0, "m_measurement": 6.0, "s_measurement": 5.0},
        ),
        "distribution": Case(distribution((0, 10), groups), {"g": group, "v": amount}, one),
        "distribution of times": Case(
            distribution(plain, groups), {"g": group, "v": (OBJECTS, OF_TIMES | OF_DATES)}, one
        ),
        "distribution of zoned times": Case(distribution(zoned), {"v": (OBJECTS, OF_ZONED)}, one),
        "quantiles": Case(
            dpt.plan_quantiles("v", [0.25, 0.5], granularity=0.5, **drawn), {"g": group, "v": amount}, {}
        ),
        "distribution of durations": Case(
            distribution((pd.Timedelta(0), pd.Timedelta("1D"))), {"v": (OBJECTS, OF_SPANS)}, one
        ),
    }  # fmt: skip
    for most in (1, 2, 3):
        unit: dict[str, Any] = {"privacy_unit": "u", "max_contributions": most}
        bounded = plan_sums(groups, quantities[:1], **options | unit)
        found[f"units of {most}"] = Case(
            bounded, {"g": group, "v": amount, "u": (UNITS, OF_UNITS)}, {"v_measurement": 10.0 * most}
        )
        binned = dpt.plan_distribution(
            "v", bounds=(0, 10), bins=4, domain=groups, strategy=[4], epsilon=1.0, **unit
        )
        found[f"units of {most}, distribution"] = Case(
            binned, {"g": group, "v": amount, "u": (UNITS, OF_UNITS)}, {"count": float(most)}
        )
        found[f"units of {most}, quantiles"] = Case(
            dpt.plan_quantiles("v", 0.5, granularity=1, **drawn, **unit),
            {"g": group, "v": amount, "u": (UNITS, OF_UNITS)},
            {},
        )
        # a mapping has leaves of which a unit may be in several, below one node or below two
        nested = dpt.derived_domain([dpt.mapping(table, ["g", "v"])])
        counted: dict[str, Any] = {**none, "keep": ["measurements"], "privacy_unit": "u", "max_nodes": most}
        found[f"units in {most} nodes"] = Case(
            dpt.plan_units(nested, **counted),
            {"v": text, "u": (UNITS, OF_UNITS)},
            {"measurement": float(most)},
        )
        beside = dpt.plan_agg(nested, {"n": "count", "people": "units"}, **counted, max_contributions=3)
        found[f"units in {most} nodes, and their rows"] = Case(
            beside,
            {"v": text, "u": (UNITS, OF_UNITS)},
            {"n_measurement": 3.0, "people_measurement": float(most)},
        )
    return found


CASES = cases()
READERS = ["objects", "arrow", "pandas with arrow", "polars"]


def frames(case: Case, reader: str, rng: np.random.Generator, size: int) -> list[Any]:
    """Make frames, each of which is the one before and the record, or the unit, that follows."""
    blocks = np.ones(size, dtype=int) if "u" not in case.columns else rng.integers(1, 5, size)
    n = int(blocks.sum())
    columns: dict[str, Any] = {}
    for name, (objects, typed) in case.columns.items():
        kind = None if reader == "objects" else list(typed)[rng.integers(len(typed))]
        pool: Any = objects if kind is None else typed[kind]
        picked = rng.integers(len(pool), size=n)
        if name == "u":  # each unit comes once, with all its records
            picked = np.repeat(rng.permutation(np.resize(rng.permutation(len(pool)), size)), blocks)
        if kind is None:
            columns[name] = np.empty(n, dtype=object)
            columns[name][:] = pd.Series([pool[each] for each in picked], dtype=object).to_numpy()
        else:
            columns[name] = pool_of(kind, pool).take(pa.array(picked))
    stops = np.cumsum(blocks).tolist()
    if reader == "objects":
        whole = pd.DataFrame(columns, dtype=object)
        whole.index = pd.Index(np.zeros(n, dtype=int), name="v")
        return [whole.iloc[:stop] for stop in stops]
    table = pa.table(columns)
    if reader == "polars":
        held = pl.DataFrame({name: pl.Series(name, column) for name, column in columns.items()})
        return [held[:stop] if rng.integers(2) else held[:stop].lazy() for stop in stops]
    parts = [table.slice(0, stop) for stop in stops]
    if reader == "arrow":
        return parts
    return [
        pd.DataFrame({name: pd.arrays.ArrowExtensionArray(part[name]) for name in part.column_names})
        for part in parts
    ]


def pool_of(kind: pa.DataType, values: list[Any]) -> pa.Array:
    """Hold the values of a pool in Arrow; times are given as ticks."""
    if pa.types.is_temporal(kind):
        return pa.array(values, pa.int32() if pa.types.is_date(kind) else pa.int64()).view(kind)
    return pa.array(values, kind)


Told = tuple[str, ...]


def outcome(case: Case, frame: Any) -> tuple[Told, pd.DataFrame | None]:
    """Release, and give all that may not depend on the records, and what may."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            table = case.plan.release(frame)
            table = table.histogram() if isinstance(table, dpt.Distribution) else table
        except Exception as error:
            return (repr(error), repr(error.__cause__), repr(error.__context__)), None
    others = [str(each.message) for each in said if "may be noise" not in str(each.message)]
    shape = table.drop(columns=[name for name in table if table[name].dtype.kind in "iuf"])
    index = table.index.to_frame().astype(str).to_csv()
    return (shape.to_csv(), index, str(table.dtypes.to_dict()), str(attrs_of(table)), *others), table


def leaves(case: Case, table: pd.DataFrame, name: str) -> np.ndarray:
    if "level" in table:
        table = table[table["level"] == table["level"].cat.categories[-1]]
    elif "level" in table.index.names:
        table = table[table.index.get_level_values("level") == "g"]
    return table[name].to_numpy(dtype=np.float64)


def neighbours(
    case: Case, reader: str, rng: np.random.Generator, size: int
) -> Iterator[tuple[Told, Told, bool]]:
    """Release a growing frame; tell what was said of neighbours, and whether numbers moved too far."""
    held: tuple[Told, pd.DataFrame | None] | None = None
    for frame in frames(case, reader, rng, size):
        now = outcome(case, frame)
        if held is not None:
            far = False
            if held[1] is not None and now[1] is not None:
                for name, most in case.shows.items():
                    moved = np.abs(leaves(case, now[1], name) - leaves(case, held[1], name)).sum()
                    far |= not moved <= most + 1e-6
            yield held[0], now[0], far
        held = now


@pytest.fixture(autouse=True)
def _exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take all noise away, and draw the same key in each release."""
    make_exact(monkeypatch.setattr)


def make_exact(setattr: Callable[..., None]) -> None:
    words = np.random.default_rng(5).integers(2**64, size=10_000, dtype=np.uint64)
    for kind in (Laplace, Gaussian):
        setattr(kind, "sample", lambda self, scale, size, source: np.zeros(size, dtype=np.int64))
    for module in (execute, running):
        setattr(module, "random_words", lambda source, size: words[:size])


@pytest.mark.parametrize("name", CASES)
def test_one_record_moves_nothing_but_its_own_leaf(name: str) -> None:
    """Of objects, and of the typed readers in turn."""
    typed = READERS[1:]
    readers = ["objects", typed[list(CASES).index(name) % len(typed)]]
    each("reader", readers)(partial(moves_nothing_else, name, size=6))()


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", CASES)
def test_one_record_of_any_reader_moves_nothing_but_its_own_leaf(name: str, reader: str) -> None:
    moves_nothing_else(name, reader)


def moves_nothing_else(name: str, reader: str, size: int = 9) -> None:
    """Neither what is said nor any other number depends on it."""
    rng = np.random.default_rng(13)
    for before, after, far in neighbours(CASES[name], reader, rng, size):
        assert before == after
        assert not far


@pytest.mark.parametrize("reader", ["arrow", "pandas with arrow"])
def test_a_missing_half_float_does_not_fail_the_call(reader: str) -> None:
    """As it did with pandas 2.2, which cannot fill the gap: one record decided whether there was a table."""
    table = pa.table({"v": pa.array([np.float16(1), None], pa.float16())})
    frame = table if reader == "arrow" else table.to_pandas(types_mapper=pd.ArrowDtype)
    assert leaves(CASES["bits"], CASES["bits"].plan.release(frame), "count").tolist() == [
        0,
        1,
        0,
        0,
        0,
        0,
        0,
        0,
    ]

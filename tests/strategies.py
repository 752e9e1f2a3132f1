"""Hypothesis strategies: ragged trees, domains, and odd frames on them."""

from __future__ import annotations

import datetime
import enum
import uuid
import zoneinfo
from decimal import Decimal
from fractions import Fraction
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
from hypothesis import settings

from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.tree import Tree


def fewer(share: int, **options: Any) -> settings:
    """Try one of so many examples of the profile: for dear ones, and for tests of many parameters."""
    return settings(max_examples=max(3, settings.default.max_examples // share), **options)


LABELS = ["a", "B", "total", "All", "é", "שלום", "x/y", "", " ", "None", "nan", "0"]


@st.composite
def trees(draw: st.DrawFn, max_depth: int = 5, max_leaves: int = 60) -> Tree:
    """Draw a tree of one to `max_depth` levels, uniform or ragged, with or without short paths."""
    counts, size = [], 1
    for _ in range(draw(st.integers(1, max_depth))):
        widest = max(1, min(5, max_leaves // size))
        if draw(st.booleans()):
            level = [draw(st.integers(1, widest))] * size
        else:
            level = draw(st.lists(st.integers(1, widest), min_size=size, max_size=size))
        while sum(level) > max_leaves:
            level = [1] * size
        counts.append(np.array(level))
        size = sum(level)
    return Tree(tuple(counts))


@st.composite
def paths(draw: st.DrawFn, max_depth: int = 4, max_leaves: int = 12) -> list[tuple]:
    """Draw leaf paths of one hierarchy, some of which end early (padded with None)."""
    depth = draw(st.integers(1, max_depth))
    full = draw(
        st.lists(st.tuples(*[st.sampled_from(LABELS)] * depth), min_size=1, max_size=max_leaves, unique=True)
    )
    kept: list[tuple] = []
    for path in full:
        end = draw(st.integers(1, depth))
        path = path[:end] + (None,) * (depth - end)
        clashes = any(
            all(a == b or a is None or b is None for a, b in zip(path, other, strict=True)) for other in kept
        )
        if not clashes:
            kept.append(path)
    return kept


def frame_of(rows: list[tuple], by: list[str]) -> pd.DataFrame:
    """Make a frame of text keys, missing where None."""
    return pd.DataFrame(rows, columns=by, dtype=object)


def names(depth: int) -> list[str]:
    """Name the key columns."""
    return [f"key {level}" for level in range(depth)]


@st.composite
def domains_and_rows(draw: st.DrawFn, max_rows: int = 25) -> tuple[Domain, pd.DataFrame]:
    """Draw a domain and records: in it, outside it, with gaps and missing keys."""
    leaves = draw(paths())
    by = names(len(leaves[0]))
    domain = Domain.from_frame(frame_of(leaves, by), by=by)
    odd = st.tuples(*[st.sampled_from([*LABELS, None, "outside"])] * len(by))
    rows = draw(st.lists(st.one_of(st.sampled_from(leaves), odd), max_size=max_rows))
    return domain, frame_of(rows, by)


class Hostile:
    """Raises whatever is asked of it."""

    def _refuse(self, *_: object) -> Any:
        raise RuntimeError("secret-value")

    __eq__ = __hash__ = __lt__ = __bool__ = __len__ = __iter__ = __float__ = __int__ = __str__ = _refuse

    def __repr__(self) -> str:
        """Let hypothesis speak of it."""
        return "Hostile()"


class Flatterer(str):
    """Text that says it is equal to everything."""

    __slots__ = ()

    def __eq__(self, _: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash("a")


class HostileText(Hostile, str):
    """Text that cannot even be hashed."""

    __slots__ = ()


class Shade(enum.Enum):
    DARK = "a"


class Number(enum.IntEnum):
    ONE = 1


class Word(enum.StrEnum):
    A = "a"


TOKYO = zoneinfo.ZoneInfo("Asia/Tokyo")
NEW_YORK = datetime.timezone(datetime.timedelta(hours=-5))
DEEP: tuple = ()
for _ in range(500):
    DEEP = (DEEP,)

ODD_VALUES: list[Any] = [
    # absent
    None, np.nan, np.float32("nan"), Decimal("NaN"), Decimal("sNaN"), pd.NaT, pd.NA,
    np.datetime64("NaT", "D"), np.timedelta64("NaT", "D"),
    # one, and what is sometimes equal to it
    1, 1.0, True, np.True_, np.int8(1), np.uint64(1), np.float32(1), np.longdouble(1), Decimal(1),
    Fraction(1),
    1 + 0j, "1", np.str_("1"), b"1", Number.ONE, np.array([1]).view("m8")[0], np.timedelta64(1, "ns"),
    pd.Timedelta(1), np.datetime64(1, "ns"), pd.Timestamp(1), (1,), (True,), (1.0, None), (1, 1), (1, None),
    (1, (None, "a")),
    # other numbers
    0, -0.0, False, 0.1, np.float32(0.1), Decimal("0.1"), Fraction(1, 10), np.inf, -np.inf,
    Decimal("Infinity"),
    2**53, 2**53 + 1, float(2**53), np.int64(2**53 + 1), 2**64, 10**400, 10**5000, Decimal("1E+5000"),
    Decimal("1E+999999999999999999"), Decimal("0E+999999999999999999"), Fraction(10**400, 3),
    # text
    "", " ", "a", "None", "nan", "NaT", "é", "e\u0301", "שלום", "\ud800", "\x00", "a\x00", "unknown", Word.A,
    np.str_("a"),
    Flatterer("b"), HostileText("a"), Shade.DARK, np.bytes_(b"1"),
    # times
    datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29), pd.Timestamp("2024-02-29"), "2024-02-29",
    np.datetime64("2024-02-29"), np.datetime64("2024-02-29", "s"), np.datetime64("2024-02-26", "W"),
    np.datetime64("2024-02"), np.datetime64(2**62, "Y"), np.datetime64(2**62, "s"), np.datetime64(5, "as"),
    datetime.datetime(2024, 2, 29, tzinfo=datetime.UTC), pd.Timestamp("2024-02-29 09:00", tz="Asia/Tokyo"),
    datetime.datetime(2024, 2, 29, 9, tzinfo=TOKYO), datetime.datetime.max, datetime.datetime.min,
    datetime.datetime.max.replace(tzinfo=NEW_YORK), datetime.datetime.min.replace(tzinfo=TOKYO),
    pd.Timestamp.max, pd.Timestamp.min, datetime.date.max,
    datetime.timedelta.max, datetime.timedelta.min, datetime.timedelta(days=1), pd.Timedelta(days=1),
    pd.Timedelta.max, np.timedelta64(1, "D"), np.timedelta64(1, "Y"), np.timedelta64(2**62, "W"),
    datetime.time(9), datetime.time(9, tzinfo=datetime.UTC), pd.Period("2024-02", "M"),
    pd.Period("2024-02-01", "D"),
    # the rest
    pd.Interval(0, 1), pd.Interval(0.0, 1.0), pd.Interval(0, 1, closed="both"), pd.Interval(0, 2), 0.5,
    pd.Interval(pd.Timestamp(0), pd.Timestamp(1)), uuid.UUID(int=1), (), ("tuple", 1), ("unknown",), ((),),
    DEEP,
    ([],), (Hostile(),), [], [1], {}, {"a": 1}, {1}, frozenset({1}), bytearray(b"1"), np.array([1]), slice(1),
    object(), Hostile(), int, np.void(b"1"), pd.Series([1]),
]  # fmt: skip
"""Values that equal one another in some library or other, that raise, or that are nobody's key."""


def zoo() -> st.SearchStrategy[Any]:
    """Draw any value that may stand in a column of objects."""
    plain = st.one_of(
        st.text(max_size=3), st.integers(), st.floats(), st.booleans(), st.decimals(), st.fractions(),
        st.dates(), st.datetimes(), st.datetimes(timezones=st.just(TOKYO)), st.timedeltas(), st.times(),
        st.uuids(), st.binary(max_size=2), st.complex_numbers(),
    )  # fmt: skip
    # by their place, for hypothesis hashes what it samples from
    odd = st.integers(0, len(ODD_VALUES) - 1).map(ODD_VALUES.__getitem__)
    return st.one_of(odd, odd, plain, st.lists(st.one_of(odd, plain), max_size=3).map(tuple))


def objects(values: list[Any]) -> pd.Series:
    """Make a column of objects just as they are."""
    array = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        array[place] = value
    return pd.Series(array, dtype=object)

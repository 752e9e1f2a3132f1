"""Awkward keys: names, texts, numbers and times that other software takes for one another."""

import datetime
import hashlib
import zoneinfo
from collections import Counter
from collections.abc import Hashable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import pandas_dptree as dpt
from pandas_dptree import ColumnsError
from pandas_dptree.hierarchy.domain import fingerprint
from tests.helpers_cases import each
from tests.helpers_worlds import EXACT, WORLDS, array_of, by_array, by_frame, leaves, objects, records_of


def test_the_digest_does_not_depend_on_what_python_can_print() -> None:
    """Which characters it prints as they are depends on its version; the digest is made of their numbers."""
    keys = leaves(a=["é"])
    digest = hashlib.sha256()
    tree = dpt.Domain.from_frame(keys, by=["a"]).tree
    for array in (*tree.child_counts, tree.leaf_levels):
        digest.update(repr(array.shape).encode() + array.astype("<i8").tobytes())
    digest.update(b"('a',)" + rb"['\xe9']" + np.zeros(1, dtype="<i8").tobytes())
    assert fingerprint(dpt.Domain.from_frame(keys, by=["a"])) == digest.hexdigest()


@each("by", [[("p", "q")], [7], [("p", "q"), 7], [True]])
def test_names_that_are_no_text(by: list[Hashable]) -> None:
    """A frame may have them; of an array each level is a group, and these are named by text."""
    keys = pd.DataFrame({name: [1, 2] for name in by})
    table = dpt.tree_counts(records_of(keys, [1, 2]), by, domain=keys, epsilon=EXACT)
    assert table.dp.level(by[-1])["count"].tolist() == [1, 2]
    assert table.dp.level(by[-1]).index.names == by
    with pytest.raises(ColumnsError, match="cannot be groups of the result"):
        array_of(keys, [1, 2]).dp.tree_counts(by, epsilon=1.0)
    with pytest.raises(ColumnsError, match="cannot be groups of the result"):
        dpt.arrays.release(dpt.plan(dpt.Domain.from_frame(keys, by=by), epsilon=1.0), array_of(keys, [1, 2]))


def test_columns_of_a_multiindex() -> None:
    columns = pd.MultiIndex.from_tuples([("place", "state"), ("place", "city"), ("cost", "")])
    visits = pd.DataFrame([["CA", "Fresno", 1.0], ["CA", "Kern", 2.0], ["WA", "Kent", 4.0]], columns=columns)
    by = [("place", "state"), ("place", "city")]
    counts = dpt.tree_counts(visits, by, domain=visits[by], epsilon=EXACT)
    assert counts["count"].tolist() == [3, 2, 1, 1, 1, 1] and counts.columns[1:3].tolist() == by
    sums = dpt.tree_sums(
        visits, by[:1], columns=("cost", ""), bounds=(0, 8), domain="observed", epsilon=EXACT
    )
    assert sums[("cost", "")].round(3).tolist() == [7, 3, 4]
    with pytest.raises(ColumnsError, match=r"its whole tuple, such as \[\('place', 'state'\)\]"):
        dpt.tree_counts(visits, ["place"], domain="observed", epsilon=1.0)


@each(
    "index",
    [[7, 7, 7], [None, None, "a"],
     pd.MultiIndex.from_tuples([("a", 1), ("a", 1), ("b", 2)], names=["a", "v"]),
     pd.DatetimeIndex(["2024", "2024", None]), pd.Categorical(["x", "x", None])],
)  # fmt: skip
def test_an_index_says_nothing(index: Any) -> None:
    """Not even one with the names of the columns."""
    visits = pd.DataFrame({"a": ["x", "x", "y"], "v": [1.0, 2.0, 4.0]}, index=index)
    options: dict[str, Any] = {"domain": pd.DataFrame({"a": ["y", "x"]}, index=[3, 3]), "epsilon": EXACT}
    assert dpt.tree_counts(visits, ["a"], **options)["count"].tolist() == [3, 2, 1]
    one_each = dpt.tree_counts(visits, ["a"], privacy_unit="v", max_contributions=1, **options)
    assert one_each["count"].tolist() == [3, 2, 1]
    assert dpt.tree_sums(visits, ["a"], columns="v", bounds=(0, 8), **options)["v"].round(3).tolist() == [
        7,
        3,
        4,
    ]
    cdf = dpt.cdf(visits, "v", bins=[0, 2, 8], by=["a"], **options)
    assert cdf["count"].tolist() == [1, 3, 1, 2, 0, 1]


def test_composed_and_combining_characters_are_different_keys() -> None:
    """Labels are compared as they are written: who wants them alike normalises both sides beforehand."""
    keys = leaves(a=["é", "e\u0301"])
    for route in (by_frame, by_array):
        assert sorted(count for _, count in route(keys, [1, 2], epsilon=EXACT)["a"]) == [1, 2]
    records = leaves(a=["e\u0301"] * 3)
    assert not dpt.tree_counts(records, ["a"], domain=keys.iloc[:1], epsilon=EXACT)["count"].any()
    normal = records.assign(a=records["a"].str.normalize("NFC"))
    assert dpt.tree_counts(normal, ["a"], domain=keys.iloc[:1], epsilon=EXACT)["count"].tolist() == [3, 3]


def test_numbers_are_one_key_however_they_are_written_and_truths_another() -> None:
    keys = leaves(a=objects([1, 2, True]))
    records = leaves(
        a=objects(
            [1, 1.0, np.int8(1), np.float32(1), Decimal(1), Fraction(1), (1,), True, np.True_, "1", 2.0]
        )
    )
    counts = dpt.tree_counts(records, ["a"], domain=keys, epsilon=EXACT).dp.level("a")["count"]
    assert list(zip(map(repr, counts.index), counts, strict=True)) == [("1", 4), ("2", 1), ("True", 2)]
    cells = xr.DataArray(
        np.ones(len(records), dtype=int), dims=["cell"], coords={"a": ("cell", records["a"].to_numpy())}
    )
    group = dpt.arrays.release(dpt.plan(dpt.Domain.from_frame(keys, by=["a"]), epsilon=EXACT), cells)["a"]
    assert group["count"].values.tolist() == [4, 1, 2]


def clocks(zone: str, unit: str) -> tuple[pd.DatetimeIndex, Counter[str], Any]:
    """Instants every 20 minutes around a change of the clocks, and what Python's clocks say of each."""
    first, last = datetime.date(2024, 10, 26), datetime.date(2024, 10, 28)
    if unit.startswith("spring"):
        first, last = datetime.date(2024, 3, 30), datetime.date(2024, 4, 1)
    instants = pd.date_range(
        first - datetime.timedelta(days=1), last + datetime.timedelta(days=2), freq="20min", tz="UTC"
    )
    local = [time.to_pydatetime().astimezone(zoneinfo.ZoneInfo(zone)) for time in instants]
    seen = Counter(f"{time:%Y-%m-%d %H}:00" for time in local if first <= time.date() <= last)
    levels = dpt.calendar("time", ["year", "month", "day", "hour"], start=first, end=last, timezone=zone)
    return instants, seen, levels


@each("change", ["spring", "autumn"])
@each("zone", ["Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "UTC"])
def test_hours_that_clocks_skip_and_show_twice(zone: str, change: str) -> None:
    instants, seen, levels = clocks(zone, change)
    visits = pd.DataFrame({"time": instants.repeat(2)})
    table = dpt.tree_counts(visits, levels, epsilon=EXACT).dp.level("time_hour")["count"].droplevel([0, 1, 2])
    assert table[table > 0].to_dict() == {hour: 2 * count for hour, count in seen.items()}
    array = xr.DataArray(np.full(len(instants), 2), dims=["time"], coords={"time": instants})
    group = array.dp.tree_counts(levels, epsilon=EXACT)["time_hour"]
    assert dict(zip(group["time_hour"].values, group["count"].values, strict=True)) == table.to_dict()
    if (zone, change) == ("Europe/Berlin", "spring"):
        assert "2024-03-31 02:00" not in table.index and table["2024-03-31 03:00"] == 6
    if (zone, change) == ("Europe/Berlin", "autumn"):
        assert table["2024-10-27 02:00"] == 12


@each("year", [1900, 2000, 2023, 2024])
def test_leap_days(year: int) -> None:
    leap = year in (2000, 2024)
    days = pd.date_range(f"{year}-02-27", f"{year}-03-02", name="day")
    levels = dpt.calendar("day", ["year", "month", "day"], start=days[0].date(), end=days[-1].date())
    table = dpt.tree_counts(pd.DataFrame({"day": days}), levels, epsilon=EXACT)
    assert table.dp.level("day_month")["count"].tolist() == [3 if leap else 2, 2]
    assert (f"{year}-02-29" in table["day_day"].tolist()) == leap
    array = xr.DataArray(np.ones(len(days), dtype=int), dims=["day"], coords={"day": days})
    group = array.dp.tree_counts(levels, epsilon=EXACT)["day_day"]
    assert group["count"].values.tolist() == table.dp.level("day_day")["count"].tolist() == [1] * len(days)


def test_a_table_of_keys_that_python_takes_for_one_another_is_shown(tmp_path: Any) -> None:
    keys = WORLDS["truths and numbers"]
    table = dpt.tree_counts(keys, ["a"], domain=keys, epsilon=1.0)
    table.dp.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size

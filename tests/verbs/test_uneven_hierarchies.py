"""Awkward hierarchies, each as records in a frame and as counts in an array: the same world by both roads.

The truth is added up in plain Python, path by path. With hardly any noise a release must equal it; with
noise, what it looks like must follow from the public keys alone.
"""

import datetime
import hashlib
import io
import itertools
import json
import pickle
import zoneinfo
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import pandas_dptree as dpt
from pandas_dptree import ColumnsError
from pandas_dptree.hierarchy.domain import fingerprint

EXACT = 1e6
"""An epsilon that leaves no noise."""

Path = tuple[Hashable, ...]


def objects(values: Sequence[Any]) -> pd.Series:
    """Values as they are, tuples too."""
    column = np.empty(len(values), dtype=object)
    for row, value in enumerate(values):
        column[row] = value
    return pd.Series(column, dtype=object)


def leaves(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame(columns)


BERLIN_CLOCKS = ["2024-03-31 00:30", "2024-03-31 01:30", "2024-10-27 00:30", "2024-10-27 01:30"]
"""Before and after an hour that is skipped; and 02:30 on the clocks twice. In UTC."""

NONE_LIKE = ["None", "nan", "NaN", "<NA>", "NULL", "NaT", "NA", "", " ", "null", "-1"]

WORLDS: dict[str, pd.DataFrame] = {
    "one level": leaves(a=["y", "x", "z"]),
    "single leaf": leaves(a=["x"], b=["y"]),
    "one chain": leaves(**{f"k{i}": ["only"] for i in range(10)}),
    "ten levels": leaves(**{f"k{i}": [f"{leaf >> 9 - i}" for leaf in range(700, 712)] for i in range(10)}),
    "ten levels, ever shorter": leaves(
        **{f"k{i}": objects(["on" if leaf >= i else None if leaf < i - 1 else "end" for leaf in range(10)])
           for i in range(10)}
    ),
    "ragged": leaves(
        a=["DC", "CA", "CA", "NY", "NY", "CA"],
        b=[None, "x", "y", "x", "x", "z"],
        c=[None, None, "p", "q", "p", None],
    ),
    "one name everywhere": leaves(a=["x", "x", "y"], b=["x", "y", "x"], c=["x", "x", "x"]),
    "slashes": leaves(a=["a/b", "a", "a/b", "/", ""], b=["c", "b/c", "d", "/", "a//b"]),
    "total": leaves(a=["total", "count", "level"], b=["total", "All", "std_error"]),
    "tuples": leaves(
        a=objects([(1, "x"), (1, "y"), (2, "x"), (1, "x")]), b=objects([(1,), (1,), (2,), (2,)])
    ),
    "uneven tuples": leaves(
        a=objects([(1, "x"), ("x", 1), (), (None, "x"), ((1,), 2)]), b=objects([(), "()", (1,), 1, ((),)])
    ),
    "like None": leaves(a=NONE_LIKE, b=NONE_LIKE[::-1]),
    "numbers and text": leaves(a=objects([1, "1", 2, "two", "1.0", 2]), b=objects(["1", 1, "b", 2, 1, "2"])),
    "truths and numbers": leaves(a=objects([True, 1, "True", 0, False, "1"])),
    "whole floats": leaves(a=[1.0, 2.0, 2.0, 2.0**53], b=[1.0, -0.0, 0.5, 1e300]),
    "floats without end": leaves(a=[np.inf, -np.inf, 0.0, 5e-324]),
    "large numbers": leaves(a=objects([10**30, 10**30 + 1, -(10**30), 2**53 + 1, 2**53])),
    "unsigned numbers": leaves(a=np.array([2**64 - 1, 2**63, 0], dtype=np.uint64)),
    "truths": leaves(a=[True, False, False], b=[True, True, False]),
    "nullable": leaves(
        a=pd.array([2, 1, 1], "Int64"), b=pd.array([None, True, False], "boolean"),
        c=pd.array([None, "x", None], "string"),
    ),
    "missing numbers": leaves(a=[1, 2, 2], b=[np.nan, 1.0, 2.0]),
    "accents": leaves(a=["é", "e\u0301", "Å", "\u212b", "A\u030a", "É"], b=list("xxyyzz")),
    "right to left": leaves(
        a=["עברית", "العربية", "עברית", "\u202bx\u202c"], b=["תל אביב", "مكة", "חיפה", "x"]
    ),
    "pictures": leaves(
        a=["👩‍👩‍👧", "👩", "🇩🇪", "🇩", "\U0001fae9"], b=["👍🏽", "👍", "x", "\u200b", "\ufeffx"]
    ),
    "control characters": leaves(a=["a", "a\0", "a\0b", "\0", "a\n", "a\r\n", '"a"', "a,b", "\x1b[31m"]),
    "lone surrogates": leaves(
        a=objects(["\ud800", "\\ud800", "x", "\udfff"]), b=objects(["\ud800", 1, 2, "x"])
    ),
    "long": leaves(a=["x" * 100_000, "x" * 99_999 + "y", ""], b=["y" * 50_000] * 3),
    "bytes and text": leaves(a=objects([b"x", b"y", "x"])),
    "unused categories": leaves(
        a=pd.Categorical(["b", "a", "b"], ["c", "b", "a"]), b=pd.Categorical([3, 1, 7], [9, 7, 3, 1])
    ),
    "ordered categories": leaves(
        a=pd.Categorical(["high", "low", "mid"], ["low", "mid", "high", "top"], ordered=True), b=[1, 2, 3]
    ),
    "categories that end": leaves(a=pd.Categorical(["x", "y", "y"]), b=pd.Categorical([None, "q", "p"])),
    "zoned times": leaves(
        a=pd.to_datetime(BERLIN_CLOCKS, utc=True).tz_convert("Europe/Berlin"), b=["x", "x", "y", "y"]
    ),
    "leap days": leaves(
        year=[2023, 2024, 2024, 2024],
        day=pd.to_datetime(["2023-02-28", "2024-02-28", "2024-02-29", "2024-03-01"]),
    ),
    "dates": leaves(
        a=objects([datetime.date(2024, 2, 29), datetime.date(2023, 3, 1), datetime.date(1, 1, 1)])
    ),
    "times that end": leaves(a=["x", "y", "y"], b=pd.to_datetime([None, "2024-02-29", "2024-02-28"])),
    "durations": leaves(a=pd.to_timedelta(["1h", "60s", "1D", "-1ns"])),
    "decimals": leaves(a=objects([Decimal("0.1"), Decimal("0.10000000000000000001"), Decimal("1e10"), 7])),
    "fractions": leaves(a=objects([Fraction(1, 3), Fraction(2, 3), 0.5])),
    "intervals": leaves(i=pd.IntervalIndex.from_breaks([0, 10, 20, 30]), s=["m", "f", "m"]),
    "intervals of time": leaves(i=pd.IntervalIndex.from_breaks(pd.date_range("2024-02-28", periods=4))),
    "wide intervals": leaves(i=pd.IntervalIndex.from_breaks([2**53, 2**53 + 1, 2**53 + 2])),
    "open and closed": leaves(i=objects([pd.Interval(0, 1), pd.Interval(0, 1, "left"), pd.Interval(1, 2)])),
    "periods": leaves(
        y=pd.PeriodIndex(["2023", "2024", "2024"], freq="Y"),
        m=pd.PeriodIndex(["2023-02", "2024-02", "2024-03"], freq="M"),
    ),
}  # fmt: skip

NO_GROUPBY = {
    "truths and numbers": "pandas takes True for 1, and here they are two keys",
    "uneven tuples": "pandas cannot sort them, and warns",
    "lone surrogates": "pandas cannot hold them as text",
    "bytes and text": "they have no order, and here text comes first",
}
"""Worlds in which ``groupby`` is no reference."""

NO_COORDINATE = {"lone surrogates"}
"""Worlds that xarray refuses, with an error of its own."""

NO_ARROW = {
    "tuples", "uneven tuples", "numbers and text", "truths and numbers", "large numbers", "lone surrogates",
    "fractions", "open and closed", "bytes and text", "wide intervals",
}  # fmt: skip
"""Worlds of objects that Arrow cannot hold in one column, or takes for one another."""

OTHER_KEYS = {"intervals", "intervals of time", "wide intervals", "periods"}
"""Worlds that other libraries can hold as records or numbers alone, which are no such keys."""

OTHER_INDEX = {
    "nullable": "whole numbers come back as int64",
    "unused categories": "categories that no leaf has are forgotten",
    "ordered categories": "likewise",
    "intervals": "the ends are floats, so that an interval can be missing",
    "wide intervals": "the ends are no floats, so that the intervals are objects",
}
"""Worlds in which the index of a level equals that of ``groupby`` in all but its type."""


@pytest.fixture(params=WORLDS)
def world(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=[name for name in WORLDS if name not in NO_COORDINATE])
def array_world(request: pytest.FixtureRequest) -> str:
    return request.param


def numbers_of(keys: pd.DataFrame) -> np.ndarray:
    """Counts no two sets of which have the same sum."""
    return 2 ** np.arange(len(keys))


def records_of(keys: pd.DataFrame, counts: Iterable[int]) -> pd.DataFrame:
    """One row for each record, in no order, with an index that says nothing."""
    rows = np.repeat(np.arange(len(keys)), list(counts))
    records = keys.iloc[np.random.default_rng(0).permutation(rows)]
    return records.set_axis([0] * len(records), axis=0)


def array_of(keys: pd.DataFrame, counts: Iterable[Any]) -> xr.DataArray:
    """One cell for each leaf; xarray would take the zone from a column of times, but not from an index."""
    coordinates = {
        name: ("cell", column.to_numpy() if column.dtype == object else pd.Index(column))
        for name, column in keys.items()
    }
    return xr.DataArray(np.asarray(counts), dims=["cell"], coords=coordinates)


LIBRARIES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "polars": lambda frame: pytest.importorskip("polars").from_pandas(frame.reset_index(drop=True)),
    "polars-lazy": lambda frame: LIBRARIES["polars"](frame).lazy(),
    "pyarrow": lambda frame: pytest.importorskip("pyarrow").Table.from_pandas(frame, preserve_index=False),
}

Levels = dict[Hashable, list[tuple[Path, float]]]
"""For each level, in order, the path of each node and its count."""


def by_frame(keys: pd.DataFrame, counts: Iterable[int], **options: Any) -> Levels:
    by = list(keys)
    table = dpt.tree_counts(records_of(keys, counts), by, domain=keys, **options)
    levels: Levels = {}
    for depth, name in enumerate(["total", *by]):
        rows = table[table["level"] == name]
        paths = zip(*(labels(rows[key]) for key in by[:depth]), strict=True) if depth else [()]
        levels[name] = list(zip(paths, rows["count"].tolist(), strict=True))
    return levels


def by_array(keys: pd.DataFrame, counts: Iterable[int], **options: Any) -> Levels:
    by = list(keys)
    tree = array_of(keys, counts).dp.tree_counts(by, **options)
    levels: Levels = {}
    for depth, name in enumerate(["total", *by]):
        group = tree[name].to_dataset()
        paths = zip(*(labels(group[key].to_index()) for key in by[:depth]), strict=True) if depth else [()]
        levels[name] = list(zip(paths, group["count"].values.ravel().tolist(), strict=True))
    return levels


@pytest.fixture(
    params=[
        (world, road)
        for world in WORLDS
        for road in (by_frame, by_array)
        if road is by_frame or world not in NO_COORDINATE
    ],
    ids=lambda param: f"{param[0]}-{param[1].__name__}",
)
def world_and_road(request: pytest.FixtureRequest) -> tuple[str, Callable[..., Levels]]:
    """The same world by both roads."""
    return request.param


def labels(column: Any) -> list[Hashable]:
    """Labels as Python has them, none where they are missing; true is told from 1."""
    plain = [
        None if value is None or value is pd.NA or value != value else value
        for value in column.astype(object)
    ]
    return [("truth", value) if isinstance(value, (bool, np.bool_)) else value for value in plain]


def truth(keys: pd.DataFrame, counts: Iterable[int]) -> dict[Hashable, Counter[Path]]:
    """Add each leaf's count to every part of its path that begins at the root."""
    names = ["total", *keys]
    sums: dict[Hashable, Counter[Path]] = {name: Counter() for name in names}
    for path, count in zip(zip(*(labels(keys[key]) for key in keys), strict=True), counts, strict=True):
        ends = path.index(None) if None in path else len(path)
        for depth in range(ends + 1):
            sums[names[depth]][path[:depth]] += int(count)
    return sums


def test_with_hardly_any_noise_it_is_the_truth(world_and_road: tuple[str, Callable[..., Levels]]) -> None:
    world, road = world_and_road
    keys = WORLDS[world]
    levels = road(keys, numbers_of(keys), epsilon=EXACT, rng=np.random.default_rng(0))
    expected = truth(keys, numbers_of(keys))
    assert {name: dict(nodes) for name, nodes in levels.items()} == expected
    assert all(len(nodes) == len(expected[name]) for name, nodes in levels.items())  # no label twice


def test_noisy_levels_add_up(world_and_road: tuple[str, Callable[..., Levels]]) -> None:
    world, road = world_and_road
    keys = WORLDS[world]
    levels = road(keys, numbers_of(keys), epsilon=0.5, rng=np.random.default_rng(1))
    for above, below in itertools.pairwise(levels.values()):
        sums: Counter[Path] = Counter()
        for path, count in below:
            sums[path[:-1]] += count
        assert sums.items() <= dict(above).items()
    assert all(count >= 0 for nodes in levels.values() for _, count in nodes)


def test_both_roads_give_the_same_numbers(array_world: str) -> None:
    keys, options = WORLDS[array_world], {"epsilon": 0.5, "confidence": 0.9, "consistency": "linear"}
    by = list(keys)
    records, array = records_of(keys, numbers_of(keys)), array_of(keys, numbers_of(keys))
    table = dpt.tree_counts(records, by, domain=keys, **options, rng=np.random.default_rng(2))
    tree = array.dp.tree_counts(by, **options, rng=np.random.default_rng(2))
    for name in ["total", *by]:
        for column in ("count", "std_error", "lower", "upper"):
            assert (
                table.loc[table["level"] == name, column].tolist()
                == tree[name][column].values.ravel().tolist()
            )
    assert json.loads(tree.attrs["dp"]) == {**table.attrs["dp"], "domain_source": "observed"}


def test_a_level_is_indexed_as_groupby_indexes_it(world: str) -> None:
    keys = WORLDS[world]
    by, records = list(keys), records_of(keys, numbers_of(keys))
    table = dpt.tree_counts(records, by, domain=keys, epsilon=EXACT)
    for depth, name in enumerate(by, start=1):
        released = table.dp.level(name)["count"]
        assert released.index.names == by[:depth]
        if world in NO_GROUPBY:
            assert len(released) == (table["level"] == name).sum()
            continue
        exact = records.groupby(by[:depth], observed=True).size()
        assert released.index.tolist() == exact.index.tolist()
        assert released.tolist() == exact.tolist()
        if world not in OTHER_INDEX:
            pd.testing.assert_index_equal(released.index, exact.index, exact="equiv")


ODD = [
    None, "nowhere", 10**40, -1, 0.5, np.nan, True, (1, (2,)), b"z", pd.NaT, [1], {}, "\ud800", 1j,
    Decimal("sNaN"), 1,
]  # fmt: skip


def outside(keys: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Records that nobody should be able to tell from others by the look of the answer."""
    rows = records_of(keys, numbers_of(keys))
    return {
        "nobody": rows.iloc[:0],
        "nobody of any type": pd.DataFrame(columns=list(keys)),
        "one": rows.iloc[:1],
        "without keys": rows.iloc[:3].astype(object).map(lambda _: None),
        "all missing": pd.DataFrame({name: [np.nan] * 2 for name in keys}),
        "odd": pd.DataFrame({name: objects(ODD) for name in keys}),
    }


def test_what_a_table_looks_like_follows_from_the_keys(world: str) -> None:
    keys = WORLDS[world]
    domain = dpt.Domain.from_frame(keys, by=list(keys))
    plan, exact = dpt.plan(domain, epsilon=1.0), dpt.plan(domain, epsilon=EXACT)
    shown = plan.release(records_of(keys, numbers_of(keys)))
    for name, records in outside(keys).items():
        table = plan.release(records)
        pd.testing.assert_frame_equal(table.drop(columns="count"), shown.drop(columns="count"))
        assert table["count"].dtype == shown["count"].dtype and table.attrs == shown.attrs
        if name not in ("one", "odd"):
            assert not exact.release(records)["count"].any()


def test_odd_records_have_no_part_in_the_counts_of_others(world: str) -> None:
    keys = WORLDS[world]
    by, counts = list(keys), numbers_of(keys)
    columns = [(objects(ODD), records_of(keys, counts)[name].astype(object)) for name in by]
    odd, both = (
        pd.DataFrame(
            {name: pd.concat(parts[:n], ignore_index=True) for name, parts in zip(by, columns, strict=True)}
        )
        for n in (1, 2)
    )
    options = {"domain": keys, "epsilon": EXACT}
    alone = dpt.tree_counts(records_of(keys, counts), by, **options)["count"]
    added = dpt.tree_counts(both, by, **options)["count"] - alone
    assert added.tolist() == dpt.tree_counts(odd, by, **options)["count"].tolist()


def test_what_a_tree_looks_like_follows_from_the_keys(array_world: str) -> None:
    keys = WORLDS[array_world]
    n = len(keys)
    array = array_of(keys, numbers_of(keys))
    plan = array.dp.plan(list(keys), epsilon=1.0)
    shown = array.dp.release(plan)
    for cells in (np.zeros(n, int), np.full(n, -5), np.full(n, np.nan), np.full(n, np.inf), np.full(n, 0.5)):
        tree = array_of(keys, cells).dp.release(plan)
        for name in ["total", *keys]:
            group, other = tree[name].to_dataset(), shown[name].to_dataset()
            xr.testing.assert_identical(group.drop_vars("count"), other.drop_vars("count"))
            assert (
                group["count"].dtype == other["count"].dtype and group["count"].shape == other["count"].shape
            )
        assert tree.attrs == shown.attrs


@cache
def digests() -> list[str]:
    return [fingerprint(dpt.Domain.from_frame(keys, by=list(keys))) for keys in WORLDS.values()]


def test_a_plan_of_the_world_can_be_written_down(world: str) -> None:
    keys = WORLDS[world]
    by = list(keys)
    domain = dpt.Domain.from_frame(keys, by=by)
    plan = dpt.plan(domain, epsilon=1.0)
    written = json.loads(json.dumps(plan.to_dict()))
    shuffled = dpt.Domain.from_frame(keys.sample(frac=1, random_state=3), by=by)
    assert fingerprint(shuffled) == fingerprint(domain)
    read = dpt.Plan.from_dict(written, shuffled)
    records = records_of(keys, numbers_of(keys))
    tables = [each.release(records, rng=np.random.default_rng(4)) for each in (plan, read)]
    pd.testing.assert_frame_equal(*tables)
    assert tables[0].attrs == tables[1].attrs
    assert repr(plan) and plan._repr_html_()
    assert digests().count(fingerprint(domain)) == 1


def test_a_plan_serves_both_roads(array_world: str) -> None:
    keys = WORLDS[array_world]
    plan = dpt.plan(dpt.Domain.from_frame(keys, by=list(keys)), epsilon=1.0)
    counts = numbers_of(keys)
    table = plan.release(records_of(keys, counts), rng=np.random.default_rng(5))
    tree = dpt.arrays.release(plan, array_of(keys, counts), rng=np.random.default_rng(5))
    for name in ["total", *keys]:
        assert (
            table.loc[table["level"] == name, "count"].tolist() == tree[name]["count"].values.ravel().tolist()
        )


def test_a_table_survives_pickle(world: str) -> None:
    keys = WORLDS[world]
    table = dpt.tree_counts(keys, list(keys), domain=keys, epsilon=1.0)
    again = pickle.loads(pickle.dumps(table))
    pd.testing.assert_frame_equal(again, table)
    assert again.attrs == table.attrs


@pytest.mark.parametrize("world", [name for name in WORLDS if name not in NO_ARROW])
def test_a_table_survives_parquet(world: str) -> None:
    """Where Arrow can hold the keys; of categories it keeps those of text."""
    keys = WORLDS[world]
    table = dpt.tree_counts(keys, list(keys), domain=keys, epsilon=1.0)
    written = io.BytesIO()
    table.to_parquet(written)
    again = pd.read_parquet(written)
    for column in table:
        assert labels(again[column]) == labels(table[column])
        if world != "unused categories":
            assert again[column].dtype == table[column].dtype
    assert again.attrs == table.attrs
    for name in ["total", *keys]:
        assert again.dp.level(name)["count"].tolist() == table.dp.level(name)["count"].tolist()


@pytest.mark.parametrize(
    "world",
    [
        "one level",
        "ten levels",
        "slashes",
        "total",
        "accents",
        "right to left",
        "pictures",
        "long",
        "like None",
    ],
)
def test_a_table_of_text_survives_csv(world: str) -> None:
    """With the reader told that text like NA is text; keys below a level are then empty."""
    keys = WORLDS[world]
    table = dpt.tree_counts(keys, list(keys), domain=keys, epsilon=1.0)
    again = pd.read_csv(
        io.StringIO(table.to_csv(index=False)), keep_default_na=False, dtype=dict.fromkeys(keys, str)
    )
    pd.testing.assert_frame_equal(
        again,
        table.assign(**{name: table[name].fillna("") for name in keys}),
        check_dtype=False,
        check_categorical=False,
    )
    for name in ["total", *keys]:
        pd.testing.assert_frame_equal(again.dp.level(name), table.dp.level(name))


@pytest.mark.parametrize("world", [name for name in WORLDS if name not in NO_ARROW | OTHER_KEYS])
@pytest.mark.parametrize("library", ["polars", "polars-lazy", "pyarrow"])
def test_other_libraries_count_alike(world: str, library: str) -> None:
    keys = WORLDS[world]
    convert = LIBRARIES[library]
    by, counts = list(keys), numbers_of(keys)
    records = records_of(keys, counts)
    options = {"epsilon": 0.5, "domain": keys}
    table = dpt.tree_counts(records, by, **options, rng=np.random.default_rng(6))
    pd.testing.assert_frame_equal(
        dpt.tree_counts(convert(records), by, **options, rng=np.random.default_rng(6)), table
    )
    domain = dpt.Domain.from_frame(convert(keys), by=by)
    if not any(isinstance(dtype, pd.CategoricalDtype) for dtype in keys.dtypes):  # which become text
        assert fingerprint(domain) == fingerprint(dpt.Domain.from_frame(keys, by=by))
    exact = dpt.tree_counts(convert(records), by, domain=domain, epsilon=EXACT)
    assert sorted(exact["count"]) == sorted(dpt.tree_counts(records, by, domain=keys, epsilon=EXACT)["count"])


def test_the_digest_does_not_depend_on_what_python_can_print() -> None:
    """Which characters it prints as they are depends on its version; the digest is made of their numbers."""
    keys = leaves(a=["é"])
    digest = hashlib.sha256()
    tree = dpt.Domain.from_frame(keys, by=["a"]).tree
    for array in (*tree.child_counts, tree.leaf_levels):
        digest.update(repr(array.shape).encode() + array.astype("<i8").tobytes())
    digest.update(b"('a',)" + rb"['\xe9']" + np.zeros(1, dtype="<i8").tobytes())
    assert fingerprint(dpt.Domain.from_frame(keys, by=["a"])) == digest.hexdigest()


def test_what_xarray_cannot_hold() -> None:
    for world in NO_COORDINATE:
        with pytest.raises((TypeError, UnicodeEncodeError)):
            array_of(WORLDS[world], numbers_of(WORLDS[world]))
    # A column of times gives up its zone, and an index keeps it; one is not taken for the other.
    keys = WORLDS["zoned times"]
    instants = xr.DataArray(numbers_of(keys), dims=["cell"], coords={"a": ("cell", keys["a"])})
    assert instants.dp.tree_counts(["a"], epsilon=EXACT)["a"]["count"].values.tolist() == [1, 2, 4, 8]
    plan = dpt.plan(dpt.Domain.from_frame(keys, by=["a"]), epsilon=1.0)
    with pytest.raises(ColumnsError, match="times, not times with a time zone"):
        dpt.arrays.release(plan, instants)


@pytest.mark.parametrize("by", [[("p", "q")], [7], [("p", "q"), 7], [True]])
def test_names_that_are_no_text(by: list[Hashable]) -> None:
    """A frame may have them; of an array each level is a group, and these are named by text."""
    keys = pd.DataFrame({name: [1, 2] for name in by})
    table = dpt.tree_counts(records_of(keys, [1, 2]), by, domain=keys, epsilon=EXACT)
    assert table.dp.level(by[-1])["count"].tolist() == [1, 2]
    assert table.dp.level(by[-1]).index.names == by
    with pytest.raises(ColumnsError, match="cannot name a group of the answer"):
        array_of(keys, [1, 2]).dp.tree_counts(by, epsilon=1.0)
    with pytest.raises(ColumnsError, match="cannot name a group of the answer"):
        dpt.arrays.release(dpt.plan(dpt.Domain.from_frame(keys, by=by), epsilon=1.0), array_of(keys, [1, 2]))


def test_columns_of_a_multiindex() -> None:
    columns = pd.MultiIndex.from_tuples([("place", "state"), ("place", "city"), ("cost", "")])
    visits = pd.DataFrame([["CA", "Fresno", 1.0], ["CA", "Kern", 2.0], ["WA", "Kent", 4.0]], columns=columns)
    by = [("place", "state"), ("place", "city")]
    counts = dpt.tree_counts(visits, by, domain=visits[by], epsilon=EXACT)
    assert counts["count"].tolist() == [3, 2, 1, 1, 1, 1] and counts.columns[1:3].tolist() == by
    sums = dpt.tree_sums(visits, ("cost", ""), by[:1], bounds=(0, 8), domain="observed", epsilon=EXACT)
    assert sums[("cost", "")].round(3).tolist() == [7, 3, 4]
    with pytest.raises(ColumnsError, match=r"the whole of its tuple, such as \[\('place', 'state'\)\]"):
        dpt.tree_counts(visits, ["place"], domain="observed", epsilon=1.0)


@pytest.mark.parametrize(
    "index",
    [[7, 7, 7], [None, None, "a"],
     pd.MultiIndex.from_tuples([("a", 1), ("a", 1), ("b", 2)], names=["a", "v"]),
     pd.DatetimeIndex(["2024", "2024", None]), pd.Categorical(["x", "x", None])],
    ids=["repeated", "missing", "named like the columns", "of times", "of categories"],
)  # fmt: skip
def test_an_index_says_nothing(index: Any) -> None:
    """Not even one with the names of the columns."""
    visits = pd.DataFrame({"a": ["x", "x", "y"], "v": [1.0, 2.0, 4.0]}, index=index)
    options: dict[str, Any] = {"domain": pd.DataFrame({"a": ["y", "x"]}, index=[3, 3]), "epsilon": EXACT}
    assert dpt.tree_counts(visits, ["a"], **options)["count"].tolist() == [3, 2, 1]
    one_each = dpt.tree_counts(visits, ["a"], privacy_unit="v", max_contributions=1, **options)
    assert one_each["count"].tolist() == [3, 2, 1]
    assert dpt.tree_sums(visits, "v", ["a"], bounds=(0, 8), **options)["v"].round(3).tolist() == [7, 3, 4]
    cdf = dpt.cdf(visits, "v", bins=[0, 2, 8], by=["a"], **options)
    assert cdf["count"].tolist() == [1, 3, 1, 2, 0, 1]


def test_composed_and_combining_characters_are_different_keys() -> None:
    """Labels are compared as they are written: who wants them alike normalises both sides beforehand."""
    keys = leaves(a=["é", "e\u0301"])
    for road in (by_frame, by_array):
        assert sorted(count for _, count in road(keys, [1, 2], epsilon=EXACT)["a"]) == [1, 2]
    records = leaves(a=["e\u0301"] * 3)
    assert not dpt.tree_counts(records, ["a"], domain=keys.iloc[:1], epsilon=EXACT)["count"].any()
    normal = records.assign(a=records["a"].str.normalize("NFC"))
    assert dpt.tree_counts(normal, ["a"], domain=keys.iloc[:1], epsilon=EXACT)["count"].tolist() == [3, 3]


def test_numbers_are_one_key_however_they_are_written_and_truths_another() -> None:
    keys = leaves(a=objects([1, 2, True]))
    records = leaves(
        a=objects([1, 1.0, Decimal("1.0"), Fraction(1), np.int8(1), True, np.True_, "1", "True", 2.0])
    )
    counts = dpt.tree_counts(records, ["a"], domain=keys, epsilon=EXACT).dp.level("a")["count"]
    assert list(zip(map(repr, counts.index), counts, strict=True)) == [("1", 5), ("2", 1), ("True", 2)]
    cells = xr.DataArray(
        np.ones(len(records), dtype=int), dims=["cell"], coords={"a": ("cell", records["a"].to_numpy())}
    )
    group = dpt.arrays.release(dpt.plan(dpt.Domain.from_frame(keys, by=["a"]), epsilon=EXACT), cells)["a"]
    assert group["count"].values.tolist() == [5, 1, 2]


@pytest.fixture(scope="module")
def cities() -> tuple[pd.DataFrame, np.ndarray]:
    """One state with 100,000 cities, among them one with most of the people."""
    rng = np.random.default_rng(9)
    keys = leaves(state="CA", city=rng.permutation([f"city {i}" for i in range(100_000)]))
    counts = rng.poisson(2.0, len(keys))
    counts[7] = 300_000
    return keys, counts


@pytest.mark.parametrize("road", [by_frame, by_array])
def test_one_state_with_many_cities(
    cities: tuple[pd.DataFrame, np.ndarray], road: Callable[..., Levels]
) -> None:
    keys, counts = cities
    levels = road(keys, counts, epsilon=EXACT, rng=np.random.default_rng(0))
    assert levels["total"][0][1] == levels["state"][0][1] == counts.sum()
    assert dict(levels["city"]) == dict(
        zip(zip(keys["state"], keys["city"], strict=True), counts, strict=True)
    )
    assert [path for path, _ in levels["city"]] == sorted(path for path, _ in levels["city"])
    noisy = road(keys, counts, epsilon=1.0, rng=np.random.default_rng(0))
    assert sum(count for _, count in noisy["city"]) == noisy["total"][0][1]


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


@pytest.mark.parametrize("change", ["spring", "autumn"])
@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "UTC"])
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


@pytest.mark.parametrize("year", [1900, 2000, 2023, 2024])
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


@pytest.mark.parametrize(
    "world",
    ["ragged", "slashes", "like None", "zoned times", "intervals", "truths and numbers", "lone surrogates"],
)
def test_sums_and_distributions_by_group(world: str) -> None:
    keys = WORLDS[world]
    by, counts = list(keys), numbers_of(keys)
    places = np.random.default_rng(3).permutation(np.repeat(np.arange(len(keys)), counts))
    values = np.random.default_rng(4).integers(0, 10, len(places))
    records = keys.iloc[places].assign(cost=values)
    options = {"domain": keys, "epsilon": EXACT, "rng": np.random.default_rng(0)}
    sums = dpt.tree_sums(records, "cost", by, bounds=(0, 16), **options)
    cdf = dpt.cdf(records, "cost", bins=[0, 3, 7, 10], by=by, **options)
    of_all, below = truth(keys, np.bincount(places, weights=values)), {}
    for end in (3, 7, 10):
        below[end] = truth(keys, np.bincount(places[values < end], minlength=len(keys)))
    for depth, name in enumerate(["total", *by]):
        for table, ends in ((sums, [0]), (cdf, [3, 7, 10])):
            rows = table[table["level"] == name]
            paths = (
                list(zip(*(labels(rows[key]) for key in by[:depth]), strict=True))
                if depth
                else [()] * len(rows)
            )
            told = rows["cost" if table is sums else "count"].round(2).tolist()
            exact = [of_all if table is sums else below[end] for end in ends]
            expected = [exact[i % len(ends)][name][path] for i, path in enumerate(paths)]
            assert told == expected
            assert len(rows) == len(of_all[name]) * len(ends)


def test_a_table_of_keys_that_python_takes_for_one_another_is_shown(tmp_path: Any) -> None:
    keys = WORLDS["truths and numbers"]
    table = dpt.tree_counts(keys, ["a"], domain=keys, epsilon=1.0)
    pytest.importorskip("great_tables")
    table.dp.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size


def test_categories_that_no_leaf_has_are_leaves_if_the_caller_says_so() -> None:
    keys = WORLDS["unused categories"]
    records = records_of(keys, numbers_of(keys))
    table = dpt.tree_counts(records, ["a", "b"], domain="categories", epsilon=EXACT)
    exact = records.groupby(["a", "b"], observed=False).size()
    pd.testing.assert_series_equal(table.dp.level("b")["count"], exact, check_names=False)
    # Of an array the cells are the leaves, whatever else the type of a coordinate lists.
    tree = array_of(keys, numbers_of(keys)).dp.tree_counts(["a", "b"], epsilon=EXACT)
    assert dict(tree["b"].sizes) == {"b": 3} and tree["a"]["a"].values.tolist() == ["b", "a"]


def test_observed_keys_are_those_of_the_world(world: str) -> None:
    keys = WORLDS[world]
    by, counts = list(keys), numbers_of(keys)
    observed = dpt.tree_counts(records_of(keys, counts), by, domain="observed", epsilon=EXACT)
    listed = dpt.tree_counts(records_of(keys, counts), by, domain=keys, epsilon=EXACT)
    assert observed["count"].tolist() == listed["count"].tolist()
    assert [labels(observed[key]) for key in by] == [labels(listed[key]) for key in by]


@pytest.mark.parametrize(
    "world",
    ["one level", "ragged", "slashes", "total", "like None", "accents", "right to left", "pictures", "long",
     "whole floats", "truths", "leap days", "durations", "unused categories", "nullable"],
)  # fmt: skip
def test_a_tree_survives_a_file(world: str, tmp_path: Any) -> None:
    """Where a file can hold the keys; all of them come back as they were."""
    pytest.importorskip("h5netcdf")
    keys = WORLDS[world]
    tree = array_of(keys, numbers_of(keys)).dp.tree_counts(list(keys), epsilon=EXACT)
    tree.to_netcdf(tmp_path / "tree.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "tree.nc", engine="h5netcdf") as again:
        for name in ["total", *keys]:
            assert again[name]["count"].values.tolist() == tree[name]["count"].values.tolist()
            for key in keys:
                if key in tree[name].coords:
                    assert labels(again[name][key].to_index()) == labels(tree[name][key].to_index())
        assert again.attrs == tree.attrs

"""The bytes of released tables restore them, and no other bytes do."""

import datetime
import hashlib
import json
import subprocess
import sys
import zlib
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from decimal import Decimal

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given

import pandas_dptree as dpt
from pandas_dptree.errors import LedgerError
from pandas_dptree.ledger.kept_tables import from_bytes, to_bytes
from tests.helpers_arrays import NO_NOISE, visits_of_the_world
from tests.helpers_cases import each
from tests.helpers_files import column
from tests.helpers_kinds import PLANS, RECORDS
from tests.helpers_random import rng
from tests.strategies import ODD_VALUES, domains_and_rows, fewer, objects


def assert_same(one, other):
    """Compare two objects part by part: types, bits, names, attributes."""
    assert type(one) is type(other)
    if isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, other, check_exact=True, check_freq=True)
        for name in ("columns", "index"):
            assert_same(getattr(one, name), getattr(other, name))
        for place in range(one.shape[1]):
            assert_same(one.iloc[:, place].array, other.iloc[:, place].array)
        assert_same(one.attrs, other.attrs)
    elif isinstance(one, pd.MultiIndex):
        assert one.names == other.names and one.equals(other) and one.dtypes.tolist() == other.dtypes.tolist()
    elif isinstance(one, pd.Index):
        pd.testing.assert_index_equal(one, other, exact=True, check_exact=True)
        assert getattr(one, "freq", None) == getattr(other, "freq", None)
    elif isinstance(one, pd.api.extensions.ExtensionArray):
        pd.testing.assert_extension_array_equal(one, other, check_exact=True)
        if isinstance(one, pd.Categorical):
            assert one.ordered == other.ordered
            assert_same(one.categories, other.categories)
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype and one.shape == other.shape and other.flags.writeable
        if one.dtype == object:
            assert [(type(a), repr(a)) for a in one.flat] == [(type(a), repr(a)) for a in other.flat]
        else:
            assert one.tobytes() == other.tobytes()
    elif isinstance(one, xr.DataTree):
        xr.testing.assert_identical(one, other)
        for mine, theirs in zip(one.subtree, other.subtree, strict=True):
            assert_same(mine.to_dataset(inherit=False), theirs.to_dataset(inherit=False))
    elif isinstance(one, xr.Dataset | xr.DataArray):
        xr.testing.assert_identical(one, other)
        assert list(one.coords) == list(other.coords) and one.xindexes.keys() == other.xindexes.keys()
        for name in one.xindexes:
            assert_same(one.indexes[name], other.indexes[name])
        for name, variable in one.coords.items():
            assert variable.dtype == other.coords[name].dtype
    elif is_dataclass(one):
        for field in fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name))
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for name in one:
            assert_same(one[name], other[name])
    else:
        assert repr(one) == repr(other)


def there_and_back(released):
    data = to_bytes(released)
    back, extra = from_bytes(data)
    assert extra == {}
    assert_same(released, back)
    assert to_bytes(back) == data == to_bytes(released)
    return back


# Releases.


@pytest.mark.parametrize("name", list(PLANS))
def test_every_kind_of_release(name):
    released = PLANS[name].release(RECORDS)
    back = there_and_back(released)
    if isinstance(released, dpt.Distribution):
        assert_same(released.cdf(confidence=0.9), back.cdf(confidence=0.9))
        assert_same(released.quantiles([0.1, 0.9]), back.quantiles([0.1, 0.9]))
        assert repr(back) == repr(released)


def test_several_releases_and_what_is_kept_beside_them():
    released = {"a": PLANS["AdditivePlan"].release(RECORDS), 2: PLANS["DistributionPlan"].release(RECORDS)}
    there_and_back(released)
    extra = {"linear": [np.array([1.5, -0.0, np.nan]), np.zeros(0)], "é": [np.arange(6).reshape(2, 3)]}
    back, kept = from_bytes(to_bytes(released["a"], extra))
    assert_same(released["a"], back)
    assert_same(extra, {name: list(arrays) for name, arrays in kept.items()})
    for name in extra:
        for one, other in zip(extra[name], kept[name], strict=True):
            assert_same(one, other)


@each("by, loss", [(["region"], {"epsilon": 1.0}), (None, {"rho": 0.5}), (None, {"epsilon": 1.0})])
@each(
    "name, bins",
    [
        ("cost", [0, 100, 500.5]),
        ("date", pd.to_datetime(["2024-01-01", "2024-03-01", "2025-01-01"])),
        ("when", pd.to_datetime(["2024-01-01", "2024-03-31", "2025-01-01"]).tz_localize("Europe/Berlin")),
        ("wait", pd.to_timedelta(["0h", "20h", "100h"])),
    ],
)
def test_distributions(by, loss, name, bins):
    records = RECORDS.assign(
        when=RECORDS["date"].dt.tz_localize("Europe/Berlin"), wait=pd.to_timedelta(RECORDS["age"], unit="h")
    )
    groups = {} if by is None else {"by": by, "domain": "observed"}
    released = records.dp.release_distribution(name, bins=bins, rng=rng(), **loss, **groups)
    back = there_and_back(released)
    assert_same(released.histogram(), back.histogram())


def test_distributions_of_groups_without_names():
    plan = dpt.plan_distribution("cost", bounds=(0, 4), bins=4, epsilon=1.0)
    several = replace(plan, totals=(np.array([5, -1, 0]),))
    there_and_back(several.release(np.ones((3, 4), dtype=np.int64)))


def test_distributions_that_were_kept_before_levels_agreed():
    """Their last field is missing, and has its default; no other may be."""
    released = PLANS["DistributionPlan"].release(RECORDS)
    for left_out, readable in ((1, True), (2, False)):
        start, digest_and_rest = to_bytes(released).split(b"\n", 1)
        body = digest_and_rest[32:]
        whole = zlib.decompress(body[1:]) if body[:1] == b"z" else body[1:]
        end = 8 + int.from_bytes(whole[:8], "little")
        content, lengths = json.loads(whole[8:end])
        del content["tuple"][0]["Distribution"][-left_out:]
        text = json.dumps([content, lengths]).encode()
        old = b"-" + len(text).to_bytes(8, "little") + text + whole[end:]
        old = start + b"\n" + hashlib.sha256(old).digest() + old
        if not readable:
            with pytest.raises(LedgerError, match="changed or damaged"):
                from_bytes(old)
            continue
        back, _ = from_bytes(old)
        assert back.variances_left is None
        assert_same(released.quantiles(0.5), back.quantiles(0.5))
        assert (back.std_errors >= released.std_errors).all()


def test_trees_of_datasets():
    world = visits_of_the_world()
    months = dpt.calendar("time", ["year", "month"], start="2023-12-01", end="2024-02-29")
    for by in (["state", "city"], [dpt.quadtree("y", "x", bounds=((0, 4), (0, 8)), depth=2)], [months]):
        there_and_back(world.dp.tree_counts(by, keep=["measurements"], **NO_NOISE))


def test_objects_of_xarray():
    index = pd.MultiIndex.from_tuples([("a", 1), ("a", 2)], names=["letter", "digit"])
    table = xr.Dataset(
        {"n": ("place", [1.0, np.nan], {"unit": "km"}), "flat": 3},
        coords={
            "place": ("place", ["é", "b"]),
            "far": ("place", np.array(["x\x00", None], dtype=object)),
            "day": pd.date_range("2024", periods=3, freq="D"),
            "bin": pd.interval_range(0, 2),
            **xr.Coordinates.from_pandas_multiindex(index, "pair"),
        },
        attrs={"dp": '{"a": 1}'},
    ).set_xindex("far")
    there_and_back(table)
    there_and_back(table["n"])
    there_and_back(table["n"].rename(None))


@fewer(4)
@given(example=domains_and_rows())
def test_releases_of_odd_texts(example):
    domain, rows = example
    there_and_back(dpt.tree_counts(rows, list(domain.by), domain=domain, epsilon=1.0, rng=rng()))


@given(places=st.lists(st.integers(0, len(ODD_VALUES) - 1), min_size=1, max_size=4))
def test_releases_of_any_keys_are_kept_or_refused(places):
    keys = objects([ODD_VALUES[place] for place in places]).to_frame("key")
    with suppress(dpt.ArgumentError, dpt.LedgerError, OverflowError):  # no keys, or none that can be kept
        domain = dpt.Domain.from_frame(keys, by=["key"])
        there_and_back(dpt.tree_counts(keys, ["key"], domain=domain, epsilon=1.0, rng=rng()))


@each(
    "values",
    [
        objects(["a\x00", "\ud800", "\udc00", "\ud800\udc00", "😀", np.nan, ""]),
        objects([1, 1.0, True, "1", None, pd.NA, np.nan, pd.NaT, -0.0, 0.0, 2**100, np.float32(0.1)]),
        objects([(1, ("a",)), np.inf, np.datetime64("2024-02"), np.str_("a")]),
        objects([datetime.date(2024, 2, 29), pd.Timestamp(0), pd.Timedelta(1), pd.Interval(0, 1)]),
        pd.Series([0.1, -0.0, np.inf, np.nan]),
        pd.Series(pd.date_range("2024-10-27", periods=4, freq="h", tz="Europe/Berlin", unit="s")),
        pd.Series(pd.to_timedelta([1, None], unit="us")),
        pd.Series(np.array([2**62], dtype="M8[s]")),
        pd.Series(pd.arrays.IntervalArray.from_breaks(pd.date_range("2024", periods=3, tz="UTC", unit="us"))),
        pd.Series(pd.arrays.IntervalArray.from_tuples([(0.0, 1.5), np.nan], closed="both")),
        pd.Series(pd.interval_range(0, 2, closed="left")),
        pd.Series(pd.period_range("2024-01", periods=2, freq="W")),
        pd.Series(["a", None, ""], dtype="string[python]"),
        pd.Series(["a", None, ""]),
        pd.Series(pd.Categorical([1, None], categories=[2, 1])),
        pd.Series(pd.Categorical(["b", None], categories=["b", "never"], ordered=True)),
        pd.Series([True, None], dtype="boolean"),
        pd.Series([2**63 + 1, None], dtype="UInt64"),
        pd.Series([0.5, None], dtype="Float32"),
        pd.Series([1, 2], dtype="int8"),
        pd.Series([], dtype="float32"),
    ],
)
def test_types_of_columns(values):
    there_and_back(column(values))
    there_and_back(values.to_frame("alone").rename_axis(columns="names"))
    there_and_back(pd.DataFrame({"n": np.arange(len(values))}, index=pd.Index(values, name=("a", 1))))


def test_indexes_of_rows():
    table = pd.DataFrame({("a", 1): [1, 2], "b\ud800": ["x", "y"]})
    there_and_back(table.set_axis([5, 7]))
    there_and_back(table.set_axis(pd.MultiIndex.from_arrays([["a", "b"], [1, None]], names=["k", None])))
    there_and_back(table.set_axis(pd.date_range("2024", periods=2, freq="MS", name="month")))
    there_and_back(table.iloc[:0])
    there_and_back(pd.DataFrame())


def test_types_of_arrow():
    arrow = pytest.importorskip("pyarrow")
    there_and_back(column(pd.Series([1, None], dtype=pd.ArrowDtype(arrow.int8()))))
    there_and_back(column(["a", None], dtype="string[pyarrow]"))
    for keys in (pd.Series(["a", "b"]), pd.Series(pd.date_range("2024", periods=2, tz="UTC"))):
        records = keys.convert_dtypes(dtype_backend="pyarrow").to_frame("key")
        table = records.dp.tree_counts(["key"], domain="observed", epsilon=1.0, rng=rng())
        assert isinstance(table["key"].dtype, pd.ArrowDtype)
        there_and_back(table)


def test_what_a_mask_hides_is_not_kept():
    hidden = pd.arrays.IntegerArray(np.array([1, 4242]), np.array([False, True]))
    shown = pd.arrays.IntegerArray(np.array([1, 0]), np.array([False, True]))
    assert to_bytes(pd.DataFrame({"n": hidden})) == to_bytes(pd.DataFrame({"n": shown}))


def test_numbers_are_compressed_if_that_pays():
    noise = np.random.default_rng(0).bytes(8_000)
    assert len(to_bytes(pd.DataFrame({"n": np.frombuffer(noise)}))) > 8_000
    assert len(to_bytes(pd.DataFrame({"n": np.full(1_000, 0.1)}))) < 1_000


@each("odd", [object(), pd.Series([1]), {1}, np.zeros(1, "V8"), datetime.time(9), Decimal(1), print])
def test_what_cannot_be_kept(odd):
    with pytest.raises(dpt.LedgerError, match="cannot be kept"):
        to_bytes({"a": odd})


# Bytes.


def small():
    return pd.DataFrame({"level": pd.Categorical(["total", "a"]), "key": [None, "é"], "count": [5, 3]})


def test_no_flipped_bit_and_no_cut_gives_another_table():
    data = to_bytes(small())
    assert_same(from_bytes(data)[0], small())
    for place in range(len(data)):
        for bit in (1, 128):
            with pytest.raises(dpt.LedgerError):
                from_bytes(data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :])
        with pytest.raises(dpt.LedgerError):
            from_bytes(data[:place])
    with pytest.raises(dpt.LedgerError, match="changed or damaged"):
        from_bytes(data + b"\x00")


def test_newer_formats_are_named():
    data = to_bytes(small())
    with pytest.raises(dpt.LedgerError, match="has the format 27, which this version") as error:
        from_bytes(data.replace(b"version 1", b"version 27", 1))
    assert "newer version" in error.value.hint
    with pytest.raises(dpt.LedgerError, match="does not begin as one"):
        from_bytes(b"SQLite format 3\x00")


def test_made_up_bytes_run_nothing():
    import hashlib
    import json

    def made(content, blocks=()):
        text = json.dumps([content, list(map(len, blocks))]).encode()
        rest = b"-" + len(text).to_bytes(8, "little") + text + b"".join(blocks)
        return b"pandas_dptree kept table, version 1\n" + hashlib.sha256(rest).digest() + rest

    assert from_bytes(made({"tuple": [7, {"dict": []}]})) == (7, {})
    for content in (
        {"print": ["x"]}, {"object": []}, {"tuple": [7]}, {"numbers": ["O", [1], 0]}, {"DataFrame": [1]},
        {"Distribution": []}, {"a": 1, "b": 2}, {"missing": ["x"]}, [{}], {"numbers": ["<i8", [9], 0]},
    ):  # fmt: skip
        with pytest.raises(dpt.LedgerError, match="changed or damaged"):
            from_bytes(made(content, [b"\x00" * 8]))


def test_reading_needs_no_pyarrow():
    data = to_bytes(pd.DataFrame({"key": ["a", None], "kind": pd.Categorical(["x", "y"])}))
    program = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from pandas_dptree.ledger.kept_tables import from_bytes\n"
        f"print(from_bytes({data!r})[0]['key'].tolist()[0])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "a\n"

"""`Plan.secret_check` against brute force, row by row, and where nothing of it may appear."""

import copy
import pickle
import traceback
from collections import Counter
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError, CallError
from pandas_dptree.hierarchy.values import UNKNOWN, key_form
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.secret_check import found_in
from pandas_dptree.ingest.unit_counts import open_units, unit_counts
from pandas_dptree.ingest.units import unit_form
from pandas_dptree.plans.execute import exact_leaves
from pandas_dptree.plans.running import Origin, Resources
from pandas_dptree.plans.secret_check import SECRET
from pandas_dptree.privacy.quantity import COUNT
from tests.helpers_cases import each
from tests.helpers_engine_verbs import KEYS, PLACES
from tests.helpers_engines import ENGINES, in_spark, odd_records
from tests.helpers_kinds import PLANS, RECORDS
from tests.helpers_random import fixed_words
from tests.strategies import Hostile, objects

polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")

DOMAIN = dpt.Domain.from_frame(PLACES, by=KEYS)
BOUNDS = {"amount": (0.5, 100.0)}
UNITS = {"privacy_unit": "unit", "max_contributions": 4}
MEANS = dpt.plan_means(DOMAIN, columns="amount", bounds=BOUNDS, epsilon=1.0, **UNITS)
TRIED = [1, 2, 3, 4, 5, 10, 20]


def brute(rows, paths, by, *, unit=None, amounts=(), k=4):
    """What becomes of rows, dicts by column, one after the other."""
    paths = {tuple(map(key_form, path)) for path in paths}
    labels = [{path[level] for path in paths} - {None} for level in range(len(by))]
    found, of_unit = Counter(), Counter()
    for row in rows:
        found["read"] += 1
        path = tuple(key_form(row[name]) for name in by)
        depth = max(d for d in range(len(by) + 1) if any(path[:d] == listed[:d] for listed in paths))
        found.update(("level", level) for level in range(depth + 1))
        if depth < len(by):
            gone = [by[level] for level, form in enumerate(path[: depth + 1]) if form is None]
            if gone:
                found["the key is missing", gone[0]] += 1
            elif path[depth] == UNKNOWN or path[depth] not in labels[depth]:
                found["the key is not in the domain", by[depth]] += 1
                found["key", by[depth], path[depth]] += 1
            else:
                found["the key is in the domain, but not below its parent", by[depth]] += 1
            continue
        lost = [name for name, _, _ in amounts if as_number(row[name]) is None]
        found.update(("missing", name) for name in lost)
        if lost:
            absent = key_form(row[lost[0]]) is None
            found["the value is missing" if absent else "the value cannot be read", lost[0]] += 1
            continue
        if unit is not None and (who := unit_form(row[unit])) in (None, UNKNOWN):
            found["the privacy unit is missing, or cannot be one", unit] += 1
            continue
        found["counted"] += 1
        of_unit[who if unit is not None else None] += 1
        for name, low, high in amounts:
            found["below", name] += as_number(row[name]) < low
            found["above", name] += as_number(row[name]) > high
    for most in {*TRIED, k} if unit is not None else ():
        found["kept", most] = sum(min(most, n) for n in of_unit.values())
    return +found


def as_number(value):
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return None if number != number else number


def numbers_of(check, levels):
    """What a check says, in the words of `brute`."""
    found = Counter({"read": check.read, "counted": check.counted})
    for reason, column, rows in check.dropped.itertuples(index=False):
        found[reason, column] += rows
    for level, rows in check.levels.itertuples(index=False):
        found["level", levels.index(level)] += rows
    for most, rows in check.kept.itertuples(index=False):
        found["kept", most] += rows
    for column, _, _, *sides in check.clipped.itertuples(index=False):
        found.update(
            {(side, column): n for side, n in zip(("below", "above", "missing"), sides, strict=True)}
        )
    return +found


def commonest(found, column):
    rows = sorted(((n, form) for (*_, form), n in keys_of(found, column)), key=lambda each: -each[0])
    return [n for n, _ in rows[:10]]


def keys_of(found, column):
    return [(key, n) for key, n in found.items() if key[:2] == ("key", column)]


@pytest.fixture(scope="module")
def table():
    return odd_records(400)


@pytest.fixture(scope="module")
def expected(table):
    rows = table.select([*KEYS, "unit", "amount"]).to_pylist()
    return brute(rows, PLACES.itertuples(index=False), KEYS, unit="unit", amounts=[("amount", 0.5, 100.0)])


def without_keys(found):
    return Counter({key: n for key, n in found.items() if key[0] != "key"})


@pytest.mark.filterwarnings("ignore:Dask support is moving:FutureWarning")
@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_gives_the_numbers_of_brute_force(engine, table, expected, tmp_path):
    check = MEANS.secret_check(ENGINES[engine](table, tmp_path / "files"))
    assert numbers_of(check, MEANS.level_names) == without_keys(expected)
    assert check.counted + check.dropped["rows"].sum() == check.read
    for column in check.keys["column"].unique():
        assert check.keys.loc[check.keys["column"] == column, "rows"].tolist() == commonest(expected, column)
    for column, value, rows, *_ in check.keys.itertuples(index=False):
        assert expected["key", column, key_form(value)] == rows


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
def test_spark_gives_the_same_numbers(spark, table, expected, tmp_path):
    check = MEANS.secret_check(in_spark(spark, table, tmp_path / "files"))
    assert numbers_of(check, MEANS.level_names) == without_keys(expected)


POOL = ["a", "A", "a ", "b", "1", "01", 1, 1.0, 2, True, None, np.nan, Decimal(1), "1.0", b"a", "c"]
AMOUNTS = [0.0, 0.5, 0.49999999, 100, "7", "x", "nan", None, np.inf, -np.inf, True, Decimal("200"), [1]]


@each("seed", range(8))
def test_odd_frames_of_objects_give_the_numbers_of_brute_force(seed):
    random = np.random.default_rng(seed)
    listed = [("a", "a"), ("a", "b"), ("b", "a"), ("c", None), ("1", 1), (1, "1")]
    domain = dpt.Domain.from_frame(pd.DataFrame(listed, columns=["x", "y"], dtype=object), by=["x", "y"])

    def column(pool, n=300):
        values = np.empty(n, dtype=object)
        values[:] = [pool[place] for place in random.integers(0, len(pool), n)]
        return pd.Series(values, dtype=object)

    units = [*range(12), 3.0, Decimal(4), "u", ("t", 1), None, np.nan, [1]]
    frame = pd.DataFrame({"x": column(POOL), "y": column(POOL), "v": column(AMOUNTS), "w": column(AMOUNTS)})
    frame["u"] = column(units)
    frame.index = random.permutation(len(frame))
    sums = dpt.plan_sums(
        domain, columns=["v", "w"], bounds={"v": (0.5, 100), "w": (0.5, 100)}, granularity=0.01, epsilon=1.0,
        privacy_unit="u", max_contributions=7,
    )  # fmt: skip
    rows = frame.to_dict("records")
    # the nearest multiple of 0.01 decides, and 0.49999999 is 0.5
    amounts = [("v", 0.4999, 100), ("w", 0.4999, 100)]
    found = brute(rows, listed, ["x", "y"], unit="u", amounts=amounts, k=7)
    check = sums.secret_check(frame)
    del found["kept", 4]
    assert numbers_of(check, sums.level_names) == without_keys(found)
    for name, value, n, *_ in check.keys.itertuples(index=False):
        form = UNKNOWN if value == "(of a type that cannot be a key)" else key_form(value)
        assert found["key", name, form] == n


def leaves(plan, quantities, frame):
    return exact_leaves(plan, quantities, frame, Resources(Origin().source))


BY_ROW = dpt.plan(DOMAIN, epsilon=1.0)
BOUNDED = dpt.plan(DOMAIN, epsilon=1.0, **UNITS)
ALL_ROWS = dpt.plan(DOMAIN, epsilon=1.0, privacy_unit="unit", max_contributions=1000)


@pytest.mark.filterwarnings("ignore:Dask support is moving:FutureWarning")
@pytest.mark.parametrize(
    "engine", ["pandas", "pandas of objects", "polars lazy", "pyarrow", "duckdb", "dask"]
)
def test_counted_and_kept_are_the_sums_of_the_exact_leaves(engine, table, tmp_path):
    frame = ENGINES[engine](table, tmp_path / "files")
    check = BY_ROW.secret_check(frame)
    assert check.counted == leaves(BY_ROW, [COUNT], frame)[0].sum()
    assert len(check.kept) == 0
    kept = BOUNDED.secret_check(frame).kept.set_index("max_contributions")["rows"]
    assert kept[4] == leaves(BOUNDED, [COUNT], frame)[0].sum()
    assert ALL_ROWS.secret_check(frame).counted == leaves(ALL_ROWS, [COUNT], frame)[0].sum()


@pytest.mark.parametrize("inner", [{}, {DOMAIN.by[0]: 3}])
def test_what_bounds_in_a_leaf_would_keep_is_what_releases_keep(inner, table):
    """Every pair of bounds is that of a plan of its own; bounds on other levels are those of the plan."""
    unit = {**UNITS, "max_per_node": inner, "max_per_leaf": 2}
    check = dpt.plan(DOMAIN, epsilon=1.0, **unit).secret_check(table)
    assert set(check.kept_per_leaf["max_per_leaf"].fillna(0)) == {0, 1, 2, 3}
    for most, cap, rows in check.kept_per_leaf.itertuples(index=False):
        bounds = {"max_contributions": most, "max_per_leaf": None if cap is pd.NA else cap}
        plan = dpt.plan(DOMAIN, epsilon=1.0, **{**unit, **bounds})
        assert rows == leaves(plan, [COUNT], table)[0].sum()
    own = check.kept_per_leaf[check.kept_per_leaf["max_per_leaf"] == 2]
    assert own["rows"].tolist() == check.kept["rows"].tolist()
    assert "in total and in a leaf" in check.to_text()


def nodes_of_units(rows):
    """The nodes of each level in which each unit has counted rows."""
    nodes = {}
    for row in rows:
        path, who = tuple(key_form(row[name]) for name in KEYS), unit_form(row["unit"])
        if path in CITIES and who not in (None, UNKNOWN):
            for level in range(len(KEYS) + 1):
                nodes.setdefault(who, [set() for _ in range(len(KEYS) + 1)])[level].add(path[:level])
    return list(nodes.values())


CITIES = {tuple(map(key_form, path)) for path in PLACES.itertuples(index=False)}


@pytest.mark.parametrize("max_nodes", [1, 4, {"state": 1, "city": 4}])
def test_nodes_of_distinct_units_are_those_of_brute_force(max_nodes, table):
    units = nodes_of_units(table.to_pylist())
    plan = dpt.plan_units(DOMAIN, epsilon=1.0, privacy_unit="unit", max_nodes=max_nodes)
    check = plan.secret_check(table)
    assert check.kept.empty and check.kept_per_leaf.empty
    assert "before the nodes of each unit are bounded" in check.to_text()
    tried = {(level, most): kept for level, most, *kept in check.kept_nodes.itertuples(index=False)}
    bounds = [1, 2, 3, *[4] * (max_nodes != 1), 5, 10, 20, *[(1, 1, 4, 4)] * isinstance(max_nodes, dict)]
    assert list(tried) == [(name, most) for name in KEYS for most in bounds]
    for level, name in enumerate(KEYS, 1):
        for most in (1, 2, 3, 5, 10, 20):
            kept = [min(most, len(nodes[level])) for nodes in units]
            assert tried[name, most] == [sum(kept), sum(len(nodes[level]) <= most for nodes in units)]


@each("max_nodes", [(1, 1, 4, 4), (1, 2, 2, 2)])
def test_what_distinct_units_would_keep_is_what_releases_keep(max_nodes, table):
    """Of other bounds than one for all levels, that depends on which nodes are chosen above."""
    bounding = {"privacy_unit": "unit", "max_contributions": 6, "random_words": fixed_words(5)}
    found = found_in(*open_units(table, DOMAIN, max_nodes, [COUNT], bounding), bounding)
    counts = unit_counts(table, DOMAIN, max_nodes, **bounding)
    name = max_nodes if max_nodes[1] == 1 else 2
    assert [found["nodes", name, level] for level in range(4)] == [level.sum() for level in counts.nodes]
    units = nodes_of_units(table.to_pylist())
    cut = sum(any(len(nodes[level]) > max_nodes[level] for level in range(4)) for nodes in units)
    assert found["units", name, 0] - found["units", name, 3] == cut > 0
    tried = [most for kind, *most in found if kind == "kept"]
    assert sorted(tried) == [[most] for most in (2, 3, 5, 6, 10, 20) if most >= max_nodes[-1]]
    for most in (5, 6, 20):
        sums = unit_counts(table, DOMAIN, max_nodes, [COUNT], **bounding | {"max_contributions": most}).sums
        assert found["kept", most] == sums[0].sum()
    plan = dpt.plan_agg(
        DOMAIN,
        {"units": "units", "rows": "count"},
        epsilon=1.0,
        max_nodes=4,
        max_contributions=6,
        privacy_unit="unit",
    )
    check = plan.secret_check(table)
    assert list(check.kept["max_contributions"]) == [5, 6, 10, 20] and check.kept_per_leaf.empty


NEAR = {
    "501": ("00501", "leading zeros"),
    " 10001 ": ("10001", "blanks"),
    "10001.0": ("10001", "decimal point"),
    "NEW YORK": ("New York", "case"),
    "new york\t": ("New York", "blanks, case"),
    501: ("00501", "type, leading zeros"),
    "7": (7, "type"),
    "true": (True, "type, case"),
    "Boston": (None, ""),
    "County": (None, ""),
}
"""Keys of records, the key of the domain that is near, and how the two differ."""


def test_near_keys_are_those_of_the_same_column():
    places = pd.DataFrame(
        {"zip": ["00501", "10001", "New York", 7, True], "county": ["Boston", *["county"] * 4]}
    )
    domain = dpt.Domain.from_frame(places, by=["zip", "county"])
    frame = pd.DataFrame(
        {"zip": [key for n, key in enumerate(NEAR, 1) for _ in range(n)], "county": "county"}
    )
    keys = dpt.plan(domain, epsilon=1.0).secret_check(frame).keys
    assert keys["rows"].tolist() == list(range(len(NEAR), 0, -1))
    found = {row.value: (row.near, row.differ) for row in keys.itertuples()}
    assert found == NEAR
    assert all(isinstance(found[key][0], str) == isinstance(near, str) for key, (near, _) in NEAR.items())


def test_of_several_near_keys_the_nearest_is_shown():
    domain = dpt.Domain.from_frame(pd.DataFrame({"x": ["a", "A", "01", "1"]}), by=["x"])
    keys = dpt.plan(domain, epsilon=1.0).secret_check(pd.DataFrame({"x": ["A ", "a ", "01 ", "1 "]})).keys
    assert dict(zip(keys["value"], keys["near"], strict=True)) == {
        "A ": "A",
        "a ": "a",
        "01 ": "01",
        "1 ": "1",
    }


def test_the_ten_commonest_keys_are_listed():
    frame = pd.DataFrame(
        {"state": [f"s{n:02}" for n in range(30) for _ in range(n)], "county": None, "city": None}
    )
    keys = BY_ROW.secret_check(frame).keys
    assert keys["value"].tolist() == [f"s{n:02}" for n in range(29, 19, -1)]
    assert keys["rows"].tolist() == list(range(29, 19, -1))


def test_structural_zeros_derived_levels_and_short_paths():
    wards = pd.DataFrame({"ward": ["eye", "labour", "labour", "out"], "sex": ["m", "f", "m", None]})
    wards["never"] = [False, False, True, False]
    domain = dpt.Domain.from_frame(wards, by=["ward", "sex"], structural_zeros="never")
    rows = [
        ("eye", "m"),
        ("labour", "m"),
        ("eye", "f"),
        ("out", "m"),
        ("out", None),
        (None, "m"),
        ("Out", None),
    ]
    check = dpt.plan(domain, epsilon=1.0).secret_check(pd.DataFrame(rows, columns=["ward", "sex"]))
    assert (check.read, check.counted) == (7, 2)
    assert [tuple(row) for row in check.dropped.itertuples(index=False)] == [
        ("the key is missing", "ward", 1),
        ("the key is not in the domain", "ward", 1),
        ("the key is in the domain, but not below its parent", "sex", 2),
        ("the keys are a structural zero", None, 1),
    ]
    means = dpt.plan_means(domain, columns="age", bounds=(0, 99), epsilon=1.0)
    check = means.secret_check(pd.DataFrame({"ward": ["labour"], "sex": ["m"], "age": [None]}))
    assert check.dropped["rows"].tolist() == [1]
    assert check.clipped["missing"].tolist() == [0]
    nowhere = pd.DataFrame({"state": ["Nowhere"], "county": [None], "city": ["City 00000"]})
    check = BY_ROW.secret_check(nowhere)
    assert check.dropped.values.tolist() == [["the key is missing", "county", 1]]
    days = dpt.calendar("day", ["year", "month"], start="2020-01-01", end="2020-12-31")
    plan = dpt.plan(dpt.derived_domain(days), epsilon=1.0)
    check = plan.secret_check(pd.DataFrame({"day": ["2020-02-29", "2021-01-01", "29.2.2020", None]}))
    assert check.dropped.values.tolist() == [
        ["the key is missing", "day", 1],
        ["the key is not in the domain", "day", 2],
    ]
    assert check.levels["rows"].tolist() == [4, 1, 1]
    assert set(check.keys["value"]) == {"2021-01-01", "29.2.2020"}


def test_private_keys_and_prefixes():
    regions = dpt.Domain.from_frame(pd.DataFrame({"region": ["n", "s"]}), by=["region"])
    loss = {"epsilon": 1.0, "delta": 1e-6, "privacy_unit": "who", "max_contributions": 3}
    frame = pd.DataFrame(
        {
            "region": ["n", "n", "s", "N", None, "s"],
            "shop": ["a", None, b"?", "a", "a", "b"],
            "ip": ["10.0.0.1", "10.0.0.256", "x", None, "10.0.0.2", "10.0.0.1"],
            "who": [1, 1, 2, 2, 3, None],
        },
        dtype=object,
    )
    check = dpt.plan(regions, private_keys=["shop"], **loss).secret_check(frame)
    assert check.dropped.values.tolist() == [
        ["the key is missing", "region", 1],
        ["the key is not in the domain", "region", 1],
        ["the privacy unit is missing, or cannot be one", "who", 1],
    ]
    assert (check.counted, check.levels["rows"].tolist()) == (3, [6, 4, 2])
    assert check.kept["rows"].tolist() == [2, 3, 3, 3, 3, 3]
    check = dpt.plan(None, private_keys=["region", "shop"], **loss).secret_check(frame)
    assert (check.counted, check.levels["rows"].tolist()) == (5, [6, 5, 3])
    prefixes = dpt.prefixes("ip", bits=[8, 31, 32], notation="ipv4")
    check = dpt.plan(prefixes, **loss).secret_check(frame)
    assert check.dropped.values.tolist() == [
        ["the key is missing", "ip", 1],
        ["the key is not in the domain", "ip", 2],
        ["the privacy unit is missing, or cannot be one", "who", 1],
    ]
    assert (check.counted, check.levels["rows"].tolist()) == (2, [6, 3, 3, 3])


def test_values_outside_the_bounds_of_a_distribution():
    plan = dpt.plan_distribution("x", bounds=(0, 10), bins=5, epsilon=1.0)
    frame = pd.DataFrame({"x": [-1e-300, 0, 10, 10.000001, np.inf, None, "x"]}, dtype=object)
    check = plan.secret_check(frame)
    assert check.clipped.values.tolist() == [["x", 0.0, 10.0, 1, 2, 2]]
    assert (check.read, check.counted) == (7, 5)
    assert check.dropped.values.tolist() == [
        ["the value is missing", "x", 1],
        ["the value cannot be read", "x", 1],
    ]
    days = ["1600-01-01", "2019-12-31T23:59:59", "2020-01-01", "2021-01-01", "2021-01-02", "NaT"]
    days = pd.Series(np.array(days, dtype="M8[s]"))
    plan = dpt.plan_distribution(
        "x", bounds=(pd.Timestamp("2020-01-01"), pd.Timestamp("2021-01-01")), bins=4, epsilon=1.0
    )
    for frame in (pd.DataFrame({"x": days}), pd.DataFrame({"x": days.astype(object)})):
        assert plan.secret_check(frame).clipped[["below", "above", "missing"]].values.tolist() == [[2, 1, 1]]


@each("name", PLANS)
def test_each_kind_of_plan_counts_all_that_fits(name):
    records = RECORDS.dropna()
    check = PLANS[name].secret_check(records)
    assert check.read == check.counted == len(records) > 3000
    assert check.levels["rows"].eq(len(records)).all()
    assert len(check.dropped) == len(check.keys) == 0


def test_no_records_and_no_units():
    frame = pd.DataFrame({name: pd.Series([], dtype=object) for name in [*KEYS, "unit", "amount"]})
    check = MEANS.secret_check(frame)
    assert (check.read, check.counted, check.kept["rows"].sum(), check.clipped["below"].sum()) == (0, 0, 0, 0)
    assert check.levels["rows"].tolist() == [0, 0, 0, 0]


def test_batches_and_buckets_do_not_matter(table, expected, monkeypatch, tmp_path):
    """With a temporary file of rows, which is gone afterwards."""
    monkeypatch.setattr("pandas_dptree.ingest.spill._IN_MEMORY", 0)
    monkeypatch.setattr("pandas_dptree.ingest.reading._FEW_ROWS", 0)
    monkeypatch.setattr(Records, "batches", lambda self: self._source.batches(self.columns, 50))
    (tmp_path / "rows").mkdir()
    check = MEANS.secret_check(table.to_reader(max_chunksize=7), temp_folder=tmp_path / "rows")
    assert numbers_of(check, MEANS.level_names) == without_keys(expected)
    assert list((tmp_path / "rows").iterdir()) == []
    reverse = table.take(np.arange(len(table))[::-1]).to_reader(max_chunksize=7)
    assert MEANS.secret_check(reverse).to_text() == check.to_text()


def test_only_so_many_keys_are_held(monkeypatch):
    monkeypatch.setattr("pandas_dptree.ingest.secret_check._MOST_KEYS", 20)
    frame = pd.DataFrame(
        {"state": ["often"] * 50 + [f"s{n}" for n in range(100)], "county": None, "city": None}
    )
    check = BY_ROW.secret_check(frame)
    assert check.incomplete == ("state",)
    assert check.keys.iloc[0, :3].tolist() == ["state", "often", 50]
    assert check.dropped.values.tolist() == [["the key is not in the domain", "state", 150]]
    assert "may be too few: ['state']" in check.to_text()
    assert BY_ROW.secret_check(frame.head(60)).incomplete == ()


def test_it_says_that_it_is_secret_and_is_neither_pickled_nor_copied(table):
    check = MEANS.secret_check(table)
    assert check.to_text() == repr(check) == str(check)
    assert check.to_text().splitlines()[0] == SECRET
    assert check._repr_html_().startswith(f"<p><strong>{SECRET}</strong></p>")
    assert SECRET == "SECRET: publish nothing of this, and do not choose epsilon by it"
    for keep in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(CallError, match="cannot be pickled or copied"):
            keep(check)


def test_a_text_from_records_is_escaped():
    states = pd.Series(["<b>x</b>", "\x1b[2J\nSECRET", "\ud800"], dtype=object)
    frame = pd.DataFrame({"state": states, "county": None, "city": None})
    check = BY_ROW.secret_check(frame)
    assert check.to_text().replace("\n", "").isprintable()
    assert "<b>" not in check._repr_html_()
    assert len(check.keys) == 3


def test_what_a_release_refuses_is_refused_in_the_same_words(table):
    for plan, records in [
        (MEANS, table.drop_columns(["unit"])),
        (MEANS, 3),
        (MEANS, RECORDS),
        (MEANS, xr.DataArray([1, 2], dims="state")),
        (dpt.plan(dpt.Tree.from_branching([2]), epsilon=1.0), RECORDS),
        (dpt.plan_distribution("at", bounds=(0, 1), bins=2, epsilon=1.0), table),
    ]:
        with pytest.raises(ArgumentError) as of_release:
            plan.release(records)
        with pytest.raises(ArgumentError) as of_check:
            plan.secret_check(records)
        assert str(of_check.value) == str(of_release.value)
    with pytest.raises(ArgumentError, match="holds counts, not records"):
        BY_ROW.secret_check(np.zeros(DOMAIN.tree.n_leaves, dtype=int))
    with pytest.raises(ArgumentError, match="temp_folder"):
        MEANS.secret_check(table, temp_folder="no such folder")


PLANTED = "planted value 4711"


def planted_frames():
    """Records with a planted text in every column, in engines that fail midway and in those that do not."""
    columns = {name: [PLANTED, "State 01", None] for name in KEYS}
    frame = pd.DataFrame({**columns, "unit": [PLANTED, "u", PLANTED], "amount": [PLANTED, "1", "2"]})
    yield frame, False
    table = pyarrow.Table.from_pandas(frame)

    def batches():
        yield table.to_batches()[0]
        raise ValueError(PLANTED)

    yield pyarrow.RecordBatchReader.from_batches(table.schema, batches()), True
    yield polars.from_pandas(frame).lazy().select(polars.all().map_batches(failing)), True
    yield frame.assign(county=objects([Hostile(), PLANTED, None])), False


def failing(_):
    raise ValueError(PLANTED)


def test_planted_values_appear_in_the_check_alone(caplog, capfd, recwarn, tmp_path):
    plan = dpt.plan_means(DOMAIN, columns="amount", bounds=BOUNDS, epsilon=1.0, **UNITS)
    before = repr(plan), plan.to_dict(), set(vars(plan))
    (tmp_path / "rows").mkdir()
    caplog.set_level(0)
    shown = 0
    for frame, fails in planted_frames():
        try:
            check = plan.secret_check(frame, temp_folder=tmp_path / "rows")
            shown += PLANTED in check.to_text()
            assert not fails
        except dpt.DPTreeError as error:
            printed = "".join(traceback.format_exception(error))
            assert fails and PLANTED not in printed
            assert error.__cause__ is None and error.__context__ is None
    assert shown == 2  # of the frames that can be read
    assert before == (repr(plan), plan.to_dict(), set(vars(plan)))
    printed = capfd.readouterr()
    said = [caplog.text, printed.out, printed.err, *(str(each.message) for each in recwarn)]
    assert not any(PLANTED in each for each in said)
    assert list((tmp_path / "rows").iterdir()) == []


# Last, since the cluster stays until the end of the module.


@pytest.mark.slow
def test_a_cluster_of_dask_gives_the_same_numbers(cluster, table, expected, tmp_path):
    check = MEANS.secret_check(ENGINES["dask"](table, tmp_path / "files"))
    assert numbers_of(check, MEANS.level_names) == without_keys(expected)

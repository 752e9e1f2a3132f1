"""`Plan.secret_check` against brute force, row by row, and where nothing of it may appear."""

from collections import Counter
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.hierarchy.values import UNKNOWN, key_form
from pandas_dptree.ingest.units import unit_form
from pandas_dptree.plans.execute import exact_leaves
from pandas_dptree.plans.running import Origin, Resources
from pandas_dptree.privacy.quantity import COUNT
from tests.helpers_cases import each
from tests.helpers_engine_verbs import KEYS, PLACES
from tests.helpers_engines import ENGINES, odd_records

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
    from tests.helpers_engines import in_spark

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


@pytest.mark.filterwarnings("ignore:Dask support is moving:FutureWarning")
@each("engine", ["pandas", "pandas of objects", "polars lazy", "pyarrow", "duckdb", "dask"])
def test_counted_and_kept_are_the_sums_of_the_exact_leaves(engine, table, tmp_path):
    def frame():
        return ENGINES[engine](table, tmp_path / f"files {engine}")

    by_row = dpt.plan(DOMAIN, epsilon=1.0)
    check = by_row.secret_check(frame())
    assert check.counted == leaves(by_row, [COUNT], frame())[0].sum()
    assert len(check.kept) == 0
    bounded = dpt.plan(DOMAIN, epsilon=1.0, **UNITS)
    kept = bounded.secret_check(frame()).kept.set_index("max_contributions")["rows"]
    assert kept[4] == leaves(bounded, [COUNT], frame())[0].sum()
    all_rows = dpt.plan(DOMAIN, epsilon=1.0, privacy_unit="unit", max_contributions=1000)
    assert all_rows.secret_check(frame()).counted == leaves(all_rows, [COUNT], frame())[0].sum()


# Last, since the cluster stays until the end of the module.


def test_a_cluster_of_dask_gives_the_same_numbers(cluster, table, expected, tmp_path):
    check = MEANS.secret_check(ENGINES["dask"](table, tmp_path / "files"))
    assert numbers_of(check, MEANS.level_names) == without_keys(expected)

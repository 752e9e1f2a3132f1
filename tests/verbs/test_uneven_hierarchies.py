"""Awkward hierarchies, each as records in a frame and as counts in an array: both give the same tables.

The truth is added up in plain Python, path by path. With hardly any noise a release must equal it; with
noise, what it looks like must follow from the public keys alone.
"""

import io
import itertools
import json
import pickle
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import pandas_dptree as dpt
from pandas_dptree import ColumnsError
from pandas_dptree.hierarchy.domain import fingerprint
from tests.helpers_cases import each
from tests.helpers_output import attrs_of, stated_in
from tests.helpers_worlds import (
    DEAR_WORLDS,
    EXACT,
    WORLDS,
    Levels,
    Path,
    array_of,
    by_array,
    by_frame,
    labels,
    leaves,
    objects,
    records_of,
)

NO_GROUPBY = {
    "truths and numbers": "pandas takes True for 1, and here they are two keys",
    "lone surrogates": "pandas cannot hold them as text",
}
"""Worlds in which ``groupby`` is no reference."""
NO_COORDINATE = {"lone surrogates"}
"""Worlds that xarray refuses, with an error of its own."""
NO_ARROW = {
    "numbers and text", "truths and numbers", "large numbers", "lone surrogates", "open and closed",
    "wide intervals",
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


ALL_WORLDS = WORLDS | DEAR_WORLDS
SIMPLE: dict[str, Any] = {"split": "uniform"}
"""Where the split is not what is tested, as the best one takes most of the time."""
N_PARTS = 4


def of_each_world(worlds: Iterable[str]) -> Callable[[Callable[[str], None]], Callable[[Any], None]]:
    """Run a test on worlds, as an item for every fourth of them and a slow one for those that are dear.

    Each item reports all worlds that fail.
    """
    names = list(worlds)
    cheap = [name for name in names if name in WORLDS]
    parts = {f"part {place}": cheap[place::N_PARTS] for place in range(min(N_PARTS, len(cheap)))}
    dear = [name for name in names if name in DEAR_WORLDS]
    if dear:
        parts["dear"] = dear

    def decorate(test: Callable[[str], None]) -> Callable[[Any], None]:
        def part_of(part: str) -> None:
            each("world", parts[part])(test)()

        part_of.__name__, part_of.__doc__ = test.__name__, test.__doc__
        marks = {"dear": [pytest.mark.slow]}
        params = [pytest.param(part, marks=marks.get(part, ())) for part in parts]
        return pytest.mark.parametrize("part", params)(part_of)

    return decorate


WITH_ARRAYS = [name for name in ALL_WORLDS if name not in NO_COORDINATE]


def numbers_of(keys: pd.DataFrame) -> np.ndarray:
    """Counts no two sets of which have the same sum."""
    return 2 ** np.arange(len(keys))


LIBRARIES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "polars": lambda frame: pytest.importorskip("polars").from_pandas(frame.reset_index(drop=True)),
    "polars-lazy": lambda frame: LIBRARIES["polars"](frame).lazy(),
    "pyarrow": lambda frame: pytest.importorskip("pyarrow").Table.from_pandas(frame, preserve_index=False),
}


@cache
def exact(world: str) -> pd.DataFrame:
    """Release the counts of a world with hardly any noise; a test may not change the table."""
    keys = ALL_WORLDS[world]
    records = records_of(keys, numbers_of(keys))
    return dpt.tree_counts(records, list(keys), domain=keys, epsilon=EXACT, **SIMPLE)


@cache
def noisy(world: str) -> pd.DataFrame:
    """Release one record for each leaf, with noise; a test may not change the table."""
    keys = ALL_WORLDS[world]
    return dpt.tree_counts(keys, list(keys), domain=keys, epsilon=1.0, **SIMPLE)


def truth(keys: pd.DataFrame, counts: Iterable[int]) -> dict[Hashable, Counter[Path]]:
    """Add each leaf's count to every part of its path that begins at the root."""
    names = ["total", *keys]
    sums: dict[Hashable, Counter[Path]] = {name: Counter() for name in names}
    for path, count in zip(zip(*(labels(keys[key]) for key in keys), strict=True), counts, strict=True):
        ends = path.index(None) if None in path else len(path)
        for depth in range(ends + 1):
            sums[names[depth]][path[:depth]] += int(count)
    return sums


@of_each_world(ALL_WORLDS)
def test_with_hardly_any_noise_it_is_the_truth(world: str) -> None:
    keys = ALL_WORLDS[world]
    expected = truth(keys, numbers_of(keys))
    for route in (by_frame, by_array) if world in WITH_ARRAYS else (by_frame,):
        levels = route(keys, numbers_of(keys), epsilon=EXACT, **SIMPLE, rng=np.random.default_rng(0))
        assert {name: dict(nodes) for name, nodes in levels.items()} == expected
        assert all(len(nodes) == len(expected[name]) for name, nodes in levels.items())  # no label twice


@of_each_world(ALL_WORLDS)
def test_noisy_levels_add_up(world: str) -> None:
    """Those of an array as well, as they have the same numbers."""
    keys = ALL_WORLDS[world]
    levels = by_frame(keys, numbers_of(keys), epsilon=0.5, **SIMPLE, rng=np.random.default_rng(1))
    for above, below in itertools.pairwise(levels.values()):
        sums: Counter[Path] = Counter()
        for path, count in below:
            sums[path[:-1]] += count
        assert sums.items() <= dict(above).items()
    assert all(count >= 0 for nodes in levels.values() for _, count in nodes)


@of_each_world(WITH_ARRAYS)
def test_frames_and_arrays_give_the_same_numbers(world: str) -> None:
    keys = ALL_WORLDS[world]
    options = {"epsilon": 0.5, "confidence": 0.9, "consistency": "linear", **SIMPLE}
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
    differing = {"domain_source": "observed", "digest": array.dp.plan(by, **options).digest}
    assert stated_in(tree) == {**stated_in(table), **differing}


@of_each_world(ALL_WORLDS)
def test_a_level_is_indexed_as_groupby_indexes_it(world: str) -> None:
    keys = ALL_WORLDS[world]
    by, records = list(keys), records_of(keys, numbers_of(keys))
    table = exact(world)
    for depth, name in enumerate(by, start=1):
        released = table.dp.level(name)["count"]
        assert released.index.names == by[:depth]
        if world in NO_GROUPBY:
            assert len(released) == (table["level"] == name).sum()
            continue
        sizes = records.groupby(by[:depth], observed=True).size()
        assert released.index.tolist() == sizes.index.tolist()
        assert released.tolist() == sizes.tolist()
        if world not in OTHER_INDEX:
            pd.testing.assert_index_equal(released.index, sizes.index, exact="equiv")


@of_each_world(ALL_WORLDS)
def test_units_are_counted_once_in_each_node(world: str) -> None:
    """Every second unit has two rows, so that some are in two nodes; one bound or another leaves none out."""
    keys = ALL_WORLDS[world]
    names = ["total", *keys]
    rows = pd.concat([keys, keys.iloc[::-2]], ignore_index=True)
    rows["who?"] = [*range(len(keys)), *range(0, len(rows) - len(keys))]
    people: dict[Hashable, dict[Path, set[int]]] = {name: {} for name in names}
    for who, path in zip(rows["who?"], zip(*(labels(rows[key]) for key in keys), strict=True), strict=True):
        ends = path.index(None) if None in path else len(path)
        for depth in range(ends + 1):
            people[names[depth]].setdefault(path[:depth], set()).add(who)
    options = {"privacy_unit": "who?", "max_nodes": 2, "epsilon": EXACT, **SIMPLE}
    table = dpt.tree_units(rows, list(keys), domain=keys, **options)
    for depth, name in enumerate(names):
        level = table[table["level"] == name]
        paths = zip(*(labels(level[key]) for key in names[1 : depth + 1]), strict=True) if depth else [()]
        found = dict(zip(paths, level["count"].tolist(), strict=True))
        assert found == {path: len(whom) for path, whom in people[name].items()}


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


@of_each_world(ALL_WORLDS)
def test_what_a_table_looks_like_follows_from_the_keys(world: str) -> None:
    keys = ALL_WORLDS[world]
    domain = dpt.Domain.from_frame(keys, by=list(keys))
    plan = dpt.plan(domain, epsilon=EXACT, **SIMPLE)
    shown = plan.release(records_of(keys, numbers_of(keys)))
    for name, records in outside(keys).items():
        table = plan.release(records)
        pd.testing.assert_frame_equal(table.drop(columns="count"), shown.drop(columns="count"))
        assert table["count"].dtype == shown["count"].dtype and attrs_of(table) == attrs_of(shown)
        if name not in ("one", "odd"):
            assert not table["count"].any()


@of_each_world(ALL_WORLDS)
def test_odd_records_have_no_part_in_the_counts_of_others(world: str) -> None:
    keys = ALL_WORLDS[world]
    by, counts = list(keys), numbers_of(keys)
    columns = [(objects(ODD), records_of(keys, counts)[name].astype(object)) for name in by]
    odd, both = (
        pd.DataFrame(
            {name: pd.concat(parts[:n], ignore_index=True) for name, parts in zip(by, columns, strict=True)}
        )
        for n in (1, 2)
    )
    options = {"domain": keys, "epsilon": EXACT, **SIMPLE}
    added = dpt.tree_counts(both, by, **options)["count"] - exact(world)["count"]
    assert added.tolist() == dpt.tree_counts(odd, by, **options)["count"].tolist()


@of_each_world(WITH_ARRAYS)
def test_what_a_tree_looks_like_follows_from_the_keys(world: str) -> None:
    keys = ALL_WORLDS[world]
    n = len(keys)
    array = array_of(keys, numbers_of(keys))
    plan = array.dp.plan(list(keys), epsilon=1.0, **SIMPLE)
    shown = array.dp.release(plan)
    for cells in (np.resize([0, -5], n), np.full(n, np.nan), np.resize([0.5, np.inf, np.nan], n)):
        tree = array_of(keys, cells).dp.release(plan)
        for name in ["total", *keys]:
            group, other = tree[name].to_dataset(), shown[name].to_dataset()
            xr.testing.assert_identical(group.drop_vars("count"), other.drop_vars("count"))
            assert (
                group["count"].dtype == other["count"].dtype and group["count"].shape == other["count"].shape
            )
        assert attrs_of(tree) == attrs_of(shown)


@cache
def digests() -> list[str]:
    return [fingerprint(dpt.Domain.from_frame(keys, by=list(keys))) for keys in ALL_WORLDS.values()]


@of_each_world(ALL_WORLDS)
def test_a_plan_of_the_hierarchy_can_be_serialized(world: str) -> None:
    keys = ALL_WORLDS[world]
    by = list(keys)
    domain = dpt.Domain.from_frame(keys, by=by)
    plan = dpt.plan(domain, epsilon=1.0, **SIMPLE)
    written = json.loads(json.dumps(plan.to_dict()))
    shuffled = dpt.Domain.from_frame(keys.sample(frac=1, random_state=3), by=by)
    assert fingerprint(shuffled) == fingerprint(domain)
    read = dpt.Plan.from_dict(written, shuffled)
    records = records_of(keys, numbers_of(keys))
    tables = [each.release(records, rng=np.random.default_rng(4)) for each in (plan, read)]
    pd.testing.assert_frame_equal(*tables)
    assert attrs_of(tables[0]) == attrs_of(tables[1])
    assert repr(plan) and plan._repr_html_()
    assert digests().count(fingerprint(domain)) == 1


@of_each_world(WITH_ARRAYS)
def test_a_plan_serves_frames_and_arrays(world: str) -> None:
    keys = ALL_WORLDS[world]
    plan = dpt.plan(dpt.Domain.from_frame(keys, by=list(keys)), epsilon=1.0, **SIMPLE)
    counts = numbers_of(keys)
    table = plan.release(records_of(keys, counts), rng=np.random.default_rng(5))
    tree = dpt.arrays.release(plan, array_of(keys, counts), rng=np.random.default_rng(5))
    for name in ["total", *keys]:
        assert (
            table.loc[table["level"] == name, "count"].tolist() == tree[name]["count"].values.ravel().tolist()
        )


@of_each_world(ALL_WORLDS)
def test_a_table_survives_pickle(world: str) -> None:
    table = noisy(world)
    again = pickle.loads(pickle.dumps(table))
    pd.testing.assert_frame_equal(again, table)
    assert again.attrs == table.attrs


@of_each_world(name for name in ALL_WORLDS if name not in NO_ARROW)
def test_a_table_survives_parquet(world: str) -> None:
    """Where Arrow can hold the keys; of categories it keeps those of text."""
    keys = ALL_WORLDS[world]
    table = noisy(world)
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


@of_each_world(
    ["one level", "five levels", "slashes", "total", "accents", "right to left", "pictures", "long",
     "like None", "ten levels", "very long"]
)  # fmt: skip
def test_a_table_of_text_survives_csv(world: str) -> None:
    """Text like NA stays text if the reader is asked to; keys below a level are then empty."""
    keys = ALL_WORLDS[world]
    table = noisy(world)
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


IN_ARROW = [name for name in ALL_WORLDS if name not in NO_ARROW | OTHER_KEYS]


@of_each_world(IN_ARROW)
def test_another_library_gives_the_same_counts(world: str) -> None:
    """Each of them in turn."""
    gives_the_same_counts(world, [*LIBRARIES][IN_ARROW.index(world) // N_PARTS % len(LIBRARIES)])


@pytest.mark.nightly
@pytest.mark.parametrize("library", LIBRARIES)
def test_other_libraries_give_the_same_counts(library: str) -> None:
    each("world", IN_ARROW)(lambda world: gives_the_same_counts(world, library))()


def gives_the_same_counts(world: str, library: str) -> None:
    keys = ALL_WORLDS[world]
    convert = LIBRARIES[library]
    by, counts = list(keys), numbers_of(keys)
    records = records_of(keys, counts)
    options = {"epsilon": 0.5, "domain": keys, **SIMPLE}
    table = dpt.tree_counts(records, by, **options, rng=np.random.default_rng(6))
    pd.testing.assert_frame_equal(
        dpt.tree_counts(convert(records), by, **options, rng=np.random.default_rng(6)), table
    )
    domain = dpt.Domain.from_frame(convert(keys), by=by)
    if not any(isinstance(dtype, pd.CategoricalDtype) for dtype in keys.dtypes):  # which become text
        assert fingerprint(domain) == fingerprint(dpt.Domain.from_frame(keys, by=by))
    table = dpt.tree_counts(convert(records), by, domain=domain, epsilon=EXACT, **SIMPLE)
    assert sorted(table["count"]) == sorted(exact(world)["count"])


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


@pytest.fixture(scope="module")
def cities() -> tuple[pd.DataFrame, np.ndarray]:
    """One state with many cities, among them one with most of the people."""
    return many_cities(10_000)


def many_cities(n: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(9)
    keys = leaves(state="CA", city=rng.permutation([f"city {i}" for i in range(n)]))
    counts = rng.poisson(2.0, len(keys))
    counts[7] = 3 * n
    return keys, counts


@pytest.mark.parametrize("route", [by_frame, by_array])
def test_one_state_with_many_cities(
    cities: tuple[pd.DataFrame, np.ndarray], route: Callable[..., Levels]
) -> None:
    counts_many_cities(*cities, route)


@pytest.mark.slow
@pytest.mark.parametrize("route", [by_frame, by_array])
def test_one_state_with_a_hundred_thousand_cities(route: Callable[..., Levels]) -> None:
    counts_many_cities(*many_cities(100_000), route)


def counts_many_cities(keys: pd.DataFrame, counts: np.ndarray, route: Callable[..., Levels]) -> None:
    levels = route(keys, counts, epsilon=EXACT, rng=np.random.default_rng(0))
    assert levels["total"][0][1] == levels["state"][0][1] == counts.sum()
    assert dict(levels["city"]) == dict(
        zip(zip(keys["state"], keys["city"], strict=True), counts, strict=True)
    )
    assert [path for path, _ in levels["city"]] == sorted(path for path, _ in levels["city"])
    noisy = route(keys, counts, epsilon=1.0, rng=np.random.default_rng(0))
    assert sum(count for _, count in noisy["city"]) == noisy["total"][0][1]


@each(
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
    sums = dpt.tree_sums(records, by, columns="cost", bounds=(0, 16), **options)
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
            released = rows["cost" if table is sums else "count"].round(2).tolist()
            exact = [of_all if table is sums else below[end] for end in ends]
            expected = [exact[i % len(ends)][name][path] for i, path in enumerate(paths)]
            assert released == expected
            assert len(rows) == len(of_all[name]) * len(ends)


def test_categories_that_no_leaf_has_are_leaves_if_the_caller_says_so() -> None:
    keys = WORLDS["unused categories"]
    records = records_of(keys, numbers_of(keys))
    table = dpt.tree_counts(records, ["a", "b"], domain="categories", epsilon=EXACT)
    exact = records.groupby(["a", "b"], observed=False).size()
    pd.testing.assert_series_equal(table.dp.level("b")["count"], exact, check_names=False)
    # Of an array the cells are the leaves, whatever else the type of a coordinate lists.
    tree = array_of(keys, numbers_of(keys)).dp.tree_counts(["a", "b"], epsilon=EXACT)
    assert dict(tree["b"].sizes) == {"b": 3} and tree["a"]["a"].values.tolist() == ["b", "a"]


@of_each_world(ALL_WORLDS)
def test_observed_keys_are_those_of_the_world(world: str) -> None:
    keys = ALL_WORLDS[world]
    by, counts = list(keys), numbers_of(keys)
    observed = dpt.tree_counts(records_of(keys, counts), by, domain="observed", epsilon=EXACT, **SIMPLE)
    listed = exact(world)
    assert observed["count"].tolist() == listed["count"].tolist()
    assert [labels(observed[key]) for key in by] == [labels(listed[key]) for key in by]


@each("world", ["ragged", "like None", "whole floats", "durations", "unused categories", "nullable"])
def test_a_tree_survives_a_file(world: str, tmp_path: Any) -> None:
    """Where a file can hold the keys; all of them come back as they were."""
    survives_a_file(world, tmp_path)


@pytest.mark.slow
@each("world", ["one level", "slashes", "total", "accents", "right to left", "pictures", "very long",
                "truths", "leap days"])  # fmt: skip
def test_more_trees_survive_a_file(world: str, tmp_path: Any) -> None:
    survives_a_file(world, tmp_path)


def survives_a_file(world: str, folder: Any) -> None:
    pytest.importorskip("h5netcdf")
    keys = ALL_WORLDS[world]
    tree = array_of(keys, numbers_of(keys)).dp.tree_counts(list(keys), epsilon=EXACT, **SIMPLE)
    tree.to_netcdf(folder / "tree.nc", engine="h5netcdf")
    with xr.open_datatree(folder / "tree.nc", engine="h5netcdf") as again:
        for name in ["total", *keys]:
            assert again[name]["count"].values.tolist() == tree[name]["count"].values.tolist()
            for key in keys:
                if key in tree[name].coords:
                    assert labels(again[name][key].to_index()) == labels(tree[name][key].to_index())
        assert again.attrs == tree.attrs

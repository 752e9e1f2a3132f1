"""Dimensions and coordinates of an array: which can be keys, and levels derived from them."""

import itertools
from functools import cache

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import pandas_dptree as dpt
from pandas_dptree import ArgumentError, ColumnsError, arrays
from pandas_dptree.hierarchy.levels.prefixes import prefixes
from pandas_dptree.hierarchy.levels.quadtree import Quadtree
from tests.helpers_arrays import EXACT, MONTHS, level, picture, records, visits_of_the_world
from tests.helpers_cases import each
from tests.helpers_output import stated_in

BY = ["state", "county", "city"]


def test_keys_of_other_types() -> None:
    days = pd.date_range("2024-01-30", periods=3)
    array = xr.DataArray(
        [[1, 2], [4, 8], [16, 32]],
        dims=["day", "age"],
        coords={
            "day": days,
            "month": ("day", days.month),
            "age": pd.CategoricalIndex(["old", "young"], categories=["young", "old"], name="age"),
        },
    )
    tree = array.dp.tree_counts(["month", "day", "age"], epsilon=EXACT)
    assert level(tree, "month")["count"].values.tolist() == [15, 48]
    assert level(tree, "day")["day"].values.tolist() == days.values.tolist()
    assert level(tree, "age")["age"].values.tolist() == ["young", "old"] * 3
    assert level(tree, "age")["count"].values.tolist() == [2, 1, 8, 4, 32, 16]


def test_levels_of_a_multiindex(cube: xr.DataArray) -> None:
    places = pd.MultiIndex.from_tuples(
        [("CA", "Fresno"), ("CA", "Kern"), ("WA", "King")], names=["state", "county"]
    )
    series = pd.Series([1, 2, 4], index=places)
    array = xr.DataArray(series.to_numpy(), coords=xr.Coordinates.from_pandas_multiindex(places, "place"))
    tree = array.dp.tree_counts(["state", "county"], epsilon=EXACT)
    assert level(tree, "county")["count"].values.tolist() == [1, 2, 4]
    with pytest.raises(ColumnsError, match="levels of a MultiIndex"):
        array.dp.tree_counts(["place"], epsilon=1.0)
    wide = array.expand_dims(month=[1, 2])
    group = level(wide.dp.tree_counts(["month"], epsilon=EXACT), "month")
    assert group["count"].dims == ("place", "month")
    assert group["state"].values.tolist() == ["CA", "CA", "WA"] and "place" not in group.coords


@each(
    "by, match",
    [
        (["nowhere"], "neither dimensions nor coordinates"),
        (["year"], "not one-dimensional"),
        (["grid"], "not one-dimensional"),
        (["strange"], "type that cannot be a key"),
        (["a/b"], "cannot be groups"),
        (["city", "city"], "twice"),
        ({"city"}, "list of column names"),
        ([], "names no column"),
        ([prefixes("city", chars=[2])], "tree of prefixes"),
        (prefixes("city", chars=[2]), "tree of prefixes"),
    ],
)
def test_keys_that_cannot_be_used(cube: xr.DataArray, by: object, match: str) -> None:
    array = cube.assign_coords(
        {
            "grid": (("month", "city"), np.zeros((3, 7))),
            "strange": ("city", [{}] * 7),
            "a/b": ("city", np.arange(7)),
        }
    )
    with pytest.raises(ArgumentError, match=match) as raised:
        array.dp.tree_counts(by, epsilon=1.0)
    assert "Hint:" in str(raised.value)


def test_names_that_clash(cube: xr.DataArray) -> None:
    for name in ("count", "std_error", "lower"):
        with pytest.raises(ColumnsError, match="with names of variables of the result"):
            cube.rename(month=name).dp.tree_counts(BY, epsilon=1.0)
    assert "level" in cube.rename(month="level").dp.tree_counts(BY, epsilon=1.0)["city"].dims
    with pytest.raises(ColumnsError, match="with names of variables of the result"):
        cube.rename("month").dp.tree_sums(["city"], bounds=(0, 1), epsilon=1.0)
    with pytest.raises(ColumnsError, match=r"`array` .* with names of variables of the result"):
        cube.rename("city").dp.plan(["city"], bounds=(0, 1), epsilon=1.0)
    assert "count" in cube.rename(season="count").dp.tree_sums(["city"], bounds=(0, 1), epsilon=1.0)["city"]


def test_names_with_slashes(cube: xr.DataArray) -> None:
    with pytest.raises(ColumnsError, match=r"`array` has names with slashes.*'by/season'"):
        cube.rename(season="by/season").dp.plan(["city"], epsilon=1.0)
    with pytest.raises(ColumnsError, match=r"`array` has names with slashes.*'km/h'"):
        cube.rename("km/h").dp.plan(["city"], bounds=(0, 1), epsilon=1.0)
    assert "city" in cube.rename("km/h").dp.tree_counts(["city"], epsilon=1.0)


AGES = dpt.cut("age", levels={"group": [0, 40, 120], "band": [0, 20, 40, 120]})
KINDS = dpt.mapping(
    pd.DataFrame({"coast": ["west", "east", "west"], "city": ["Kent", "Albany", "Fresno"]}),
    by=["coast", "city"],
)
SQUARES = dpt.quadtree("y", "x", depth=2, bounds=((0, 4), (1, 5)))
MADE = {
    "calendar alone": MONTHS,
    "calendar": ["state", MONTHS],
    "calendar first": [MONTHS, "state", "city"],
    "cut": ["state", AGES],
    "mapping": [KINDS],
    "mapping and calendar": [KINDS, MONTHS],
    "quadtree alone": SQUARES,
    "quadtree": ["state", SQUARES],
    "quadtree and calendar": [SQUARES, MONTHS],
}
"""Levels of the world below, some of whose cells lie in none of them."""


def listed(tree: xr.DataTree, squares: Quadtree | None = None) -> dict:
    """What each node of a tree shows, by level and keys, of a map by the text of its squares."""
    rows = {}
    for name in tree.children:
        group = level(tree, name)
        if name == "total" or squares is None:
            keys = [] if name == "total" else [key for key in group.coords if group[key].dims == (name,)]
            for at in range(group.sizes.get(name, 1)):
                node = group.isel({name: at}) if name != "total" else group
                path = tuple(node[key].item() for key in sorted(keys))
                rows[name, path] = {key: value.item() for key, value in node.data_vars.items()}
            continue
        depth = int(name.removeprefix("quad_"))
        for key in map("".join, itertools.product("0123", repeat=depth)):
            (y0, y1), (x0, x1) = squares.square(key)
            node = group.sel(y=(y0 + y1) / 2, x=(x0 + x1) / 2)
            path = tuple(key[: end + 1] for end in range(depth))
            rows[name, path] = {key: value.item() for key, value in node.data_vars.items()}
    return rows


def by_frame(array: xr.DataArray, by, **options) -> dict:
    places = "observed" if options.pop("plain") else None
    frame = dpt.tree_counts(records(array), by, domain=places, **options)
    values = [name for name in ("count", "std_error", "lower", "upper") if name in frame]
    keys = [name for name in frame.columns if name != "level" and name not in values]
    return {
        (row["level"], tuple(row[key] for key in sorted(keys) if pd.notna(row[key]))): {
            name: row[name] for name in values
        }
        for _, row in frame.astype(object).iterrows()
    }


def by_array(array: xr.DataArray, by, plain: bool, **options) -> dict:
    tree = arrays.tree_counts(array, by, **options)
    return listed(tree, by if by is SQUARES else None)


ROUTES = {"frame": by_frame, "array": by_array}


@cache
def leaf_counts(name: str) -> tuple[xr.DataArray, dpt.Domain, np.ndarray]:
    """The part of the world that levels are made of, their domain, and its records counted one by one."""
    each = MADE[name] if isinstance(MADE[name], list) else [MADE[name]]
    plain = [key for key in each if isinstance(key, str)]
    read = {source for key in each for source in ([key] if isinstance(key, str) else key.columns)}
    world = visits_of_the_world()
    array = world.sum([dim for dim in world.dims if not any(dim in world[key].dims for key in read)])
    people = records(array)
    domain = dpt.derived_domain(MADE[name], people[plain].drop_duplicates() if plain else None)
    leaves = {tuple(path): at for at, path in enumerate(domain.keys(len(domain.by)).values.tolist())}
    counts = np.zeros(len(leaves), dtype=np.int64)
    for _, person in people.iterrows():
        path = [part for key in each for part in reference_keys(key, person)]
        if None not in path and tuple(path) in leaves:
            counts[leaves[tuple(path)]] += 1
    assert 0 < counts.sum() and counts.sum() < len(people)
    return array, domain, counts


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("name", MADE)
@each(
    "options",
    [
        {"epsilon": 1.0, "confidence": 0.9},
        {"rho": 0.1, "consistency": "nonnegative", "split": "geometric"},
        {"epsilon": 0.5, "consistency": "none", "neighbors": "replace"},
    ],
)
def test_frames_and_arrays_give_the_numbers_of_the_leaf_counts(route: str, name: str, options: dict) -> None:
    """Each is compared with a release of the counts of the leaves, which are found record by record."""
    by = MADE[name]
    plain = isinstance(by, list) and any(isinstance(key, str) for key in by)
    array, domain, counts = leaf_counts(name)
    released = dpt.plan(domain, **options).release(counts, rng=np.random.default_rng(11))
    found = ROUTES[route](array, by, plain=plain, **options, rng=np.random.default_rng(11))
    values = [column for column in released.columns if column not in ("level", *domain.by)]
    assert len(found) == len(released)
    for _, row in released.astype(object).iterrows():
        path = tuple(row[key] for key in sorted(domain.by) if pd.notna(row[key]))
        node = found[row["level"], path]
        assert [node[value] for value in values] == row[values].tolist()


def reference_keys(key, person: pd.Series) -> list:
    """The keys of one record, written out by hand; None where it has none."""
    if isinstance(key, str):
        return [person[key]]
    if key is MONTHS:
        return [person["time"].year, f"{person['time']:%Y-%m}"]
    if key is AGES:
        age = min(person["age"], 120)
        if np.isnan(age):
            return [None, None]
        band = "[0, 20)" if age < 20 else "[20, 40)" if age < 40 else "[40, 120]"
        return ["[0, 40)" if age < 40 else "[40, 120]", band]
    if key is KINDS:
        coast = {"Kent": "west", "Albany": "east", "Fresno": "west"}.get(person["city"])
        return [coast, person["city"]]
    y, x = person["y"], person["x"] - 1
    if not (0 <= y <= 4 and 0 <= x <= 4):
        return [None, None]
    coarse = str(2 * (y >= 2) + (x >= 2))
    return [coarse, coarse + str(int(2 * (y % 2 >= 1) + (x % 2 >= 1)))]


def test_a_map_of_no_months_at_all() -> None:
    array = picture(4, 4).expand_dims(month=[]).transpose("y", "month", "x")
    tree = array.dp.tree_counts(dpt.quadtree("y", "x", depth=2), epsilon=1.0)
    assert dict(tree["quad_2"].sizes) == {"month": 0, "y": 4, "x": 4}


@pytest.mark.parametrize("by", [["state", MONTHS], [MONTHS], [KINDS, SQUARES], [AGES]])
def test_derived_levels_of_dask(world: xr.DataArray, by: list) -> None:
    pytest.importorskip("dask")
    one, other = (
        each.dp.tree_counts(by, epsilon=1.0, rng=np.random.default_rng(2))
        for each in (world, world.chunk(city=3, time=2, y=3, x=2))
    )
    assert one.identical(other)


@pytest.mark.parametrize(
    "by",
    [
        dpt.quadtree("y", "x", depth=2),
        ["state", SQUARES],
        ["state", MONTHS],
        [KINDS, MONTHS, AGES],
        pytest.param(SQUARES, marks=pytest.mark.slow),
    ],
)
def test_a_record_more_moves_one_count_of_each_level(world: xr.DataArray, by, seen: list) -> None:
    """Through the way that records really take: where a cell lies somewhere, every level has it once."""

    plan = world.dp.plan(by, epsilon=1.0)

    def levels(array: xr.DataArray) -> list:
        seen.clear()
        array.dp.release(plan)
        return [exact for exact, _ in seen]

    before, moved = levels(world), 0
    for cell in np.random.default_rng(1).permutation(list(np.ndindex(world.shape)))[:14]:
        after = world.copy()
        after[tuple(cell)] += 1
        moves = [new - old for new, old in zip(levels(after), before, strict=True)]
        sizes = {int(np.abs(move).sum()) for move in moves}
        assert sizes == {1} or sizes == {0}
        assert all((move >= 0).all() for move in moves)
        moved += sizes == {1}
    assert moved > 3


@pytest.mark.parametrize("by", [dpt.quadtree("y", "x", depth=2), SQUARES, ["state", MONTHS]])
def test_what_an_answer_looks_like_is_public(world: xr.DataArray, by) -> None:
    def look(array: xr.DataArray):
        tree = array.dp.tree_counts(by, epsilon=1.0, confidence=0.9, keep=["measurements"])
        return stated_in(tree), [
            {
                name: (each.dims, each.dtype, str(each.values) if name in group.coords else None)
                for name, each in group.variables.items()
            }
            for group in (level(tree, name) for name in tree.children)
        ]

    odd = xr.full_like(world, np.nan, dtype=float)
    odd[0, 0] = -np.inf
    odd[1] = np.inf
    assert look(world) == look(xr.zeros_like(world)) == look(odd)


MISTAKES = [
    (dpt.quadtree("y", "x", depth=3), "`depth` must leave a cell in each square: 4 x 5 cells"),
    (dpt.quadtree("city", "state", depth=1), "over a single dimension"),
    (dpt.quadtree("y", "nowhere", depth=1), "neither dimensions nor coordinates"),
    (dpt.quadtree("y", "time", depth=1, bounds=((0, 1), (0, 1))), "no numbers in the columns"),
    ([dpt.quadtree("y", "x", depth=1, name="a/b")], "cannot be groups"),
    ([MONTHS, dpt.calendar("time", ["year"], start="2024-01-01", end="2024-12-31")], "twice"),
    (dpt.calendar("city", ["year"], start="2024-01-01", end="2024-12-31"), "levels without a single cell"),
    (dpt.calendar("y", ["year"], start="2024-01-01", end="2024-12-31"), "levels without a single cell"),
    (dpt.quadtree("y", "x", depth=1, bounds=((10, 11), (0, 4))), "levels without a single cell"),
    (dpt.calendar("x_place", ["year"], start="2024-01-01", end="2024-12-31"), "holds numbers, not times"),
    (
        dpt.calendar("time", ["year"], start="2024-01-01", end="2024-12-31", timezone="Europe/Berlin"),
        "holds times, not times with a time zone",
    ),
    (dpt.cut("time", [0, 1]), "no numbers in the columns"),
    (
        dpt.mapping(pd.DataFrame({"a": ["u"], "x_place": ["w"]}, dtype="string"), by=["a", "x_place"]),
        "holds numbers, not text",
    ),
    (["state", "nowhere", MONTHS], "neither dimensions nor coordinates"),
    (dpt.quadtree("y", "x", depth=1, name="other"), "with the names of derived keys"),
    (prefixes("city", chars=[1]), "tree of prefixes"),
]


@each("by, match", MISTAKES)
def test_derived_levels_that_cannot_be_made(world: xr.DataArray, by, match: str) -> None:
    array = world.assign_coords(x_place=("x", np.arange(5)), other_1=("city", np.arange(4)))
    with pytest.raises(ArgumentError, match=match) as raised:
        array.dp.tree_counts(by, epsilon=1.0)
    assert "Hint:" in str(raised.value)


def test_times_of_other_calendars_are_named() -> None:
    pytest.importorskip("cftime")
    days = xr.date_range("2024-01-30", periods=3, use_cftime=True)
    array = xr.DataArray([1, 2, 4], dims=["time"], coords={"time": days})
    with pytest.raises(ColumnsError, match="convert_calendar"):
        array.dp.tree_counts(MONTHS, epsilon=1.0)
    plain = array.convert_calendar("standard", use_cftime=False)
    tree = plain.dp.tree_counts(MONTHS, epsilon=EXACT)
    assert level(tree, "time_month")["count"].values.tolist() == [0, 3, 4]

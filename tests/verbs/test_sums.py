"""Sums of columns, through the public functions: what is added up, and how accurate it is."""

import json
import math
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError
from pandas_dptree.privacy.loss import exact
from tests.helpers_cases import each
from tests.helpers_output import stated_in
from tests.helpers_plans import LOSSES
from tests.helpers_random import rng

BY = ["region", "district", "clinic"]
NO_NOISE = {"epsilon": 1e12}
PLACES = pd.DataFrame({"a": ["x", "x", "y", "z"], "b": [1, 2, 1, 3]})


def small(values, **more):
    """Make records in three of the four places."""
    keys = PLACES.iloc[np.arange(len(values)) % 3].reset_index(drop=True)
    return keys.assign(v=values, **more)


# --- what is added up ----------------------------------------------------------------------------------


def test_with_hardly_any_noise_sums_are_those_of_the_clipped_values(visits, clinics):
    sums = dpt.tree_sums(visits, BY, columns=["cost", "age"], bounds={"cost": (0, 100), "age": (18, 65)},
                         granularity={"cost": 0.01, "age": 1}, domain=clinics, **NO_NOISE)  # fmt: skip
    kept = visits.dropna(subset=["cost"]).assign(
        cost=lambda f: (f["cost"].clip(0, 100) * 100).round(), age=lambda f: f["age"].clip(18, 65)
    )
    assert list(sums.columns) == ["level", *BY, "cost", "cost_std_error", "age", "age_std_error"]
    for depth in (1, 2, 3):
        exact = kept.dropna(subset=BY[:depth]).groupby(BY[:depth])[["cost", "age"]].sum()
        shown = sums.dp.level(BY[depth - 1])
        shown.index = shown.index.set_names(BY[:depth])
        assert (shown["cost"].reindex(exact.index) == exact["cost"] / 100).all()
        assert (shown["age"].reindex(exact.index) == exact["age"]).all()
        assert (shown.drop(exact.index)[["cost", "age"]] == 0).all(axis=None)
    assert sums.dp.level("total")["cost"].item() == kept["cost"].sum() / 100


AMOUNTS = st.one_of(
    st.none(), st.sampled_from([np.nan, np.inf, -np.inf, 1e300, -1e300]), st.integers(-300, 300)
)


@given(
    rows=st.lists(st.tuples(st.sampled_from([*range(4), None]), AMOUNTS, AMOUNTS), max_size=12),
    bounds=st.sampled_from([(0, 100), (-50, 20), (-9, -3), (7, 8)]),
    granularity=st.sampled_from([1, 0.25, 0.01, 3]),
    library=st.sampled_from(["pandas", "polars", "lazy", "pyarrow"]),
)
def test_sums_against_exact_fractions(rows, bounds, granularity, library):
    place = [-1 if row[0] is None else row[0] for row in rows]
    frame = pd.DataFrame({
        "a": ["elsewhere" if p < 0 else PLACES["a"][p] for p in place],
        "b": [0 if p < 0 else PLACES["b"][p] for p in place],
        "v": pd.Series([row[1] for row in rows], dtype="Float64"),
        "w": pd.Series([row[2] for row in rows], dtype="float64"),
    }).astype({"a": str, "b": int})  # fmt: skip
    if library == "pyarrow":
        frame = pytest.importorskip("pyarrow").Table.from_pandas(frame, preserve_index=False)
    elif library != "pandas":
        polars = pytest.importorskip("polars")
        frame = polars.from_pandas(frame)
        frame = frame.lazy() if library == "lazy" else frame
    try:
        sums = dpt.tree_sums(frame, ["a", "b"], columns=["v", "w"], bounds=bounds, granularity=granularity,
                             domain=PLACES, **NO_NOISE)  # fmt: skip
    except ArgumentError as error:  # (7, 8) are one value on a grid of 3
        assert error.argument == "granularity" and (bounds, granularity) in [((7, 8), 3)]
        return
    unit = Fraction(str(granularity))
    low, high = (round(bound / unit) for bound in bounds)

    def gridded(value):
        return min(max(round(Fraction(min(max(value, -1e9), 1e9)) / unit), low), high) * unit

    kept = [row for row in rows if row[0] is not None and not any(pd.isna(v) for v in row[1:])]
    for column, name in ((1, "v"), (2, "w")):
        leaves = [sum(gridded(row[column]) for row in kept if row[0] == leaf) for leaf in range(4)]
        expected = [sum(leaves), leaves[0] + leaves[1], leaves[2], leaves[3], *leaves]
        assert sums[name].tolist() == [float(value) for value in expected]


@each(
    ("values", "expected"),
    [
        (["1", " 2.5 ", "three", "1e3", None, "nan"], 1 + 2.5 + 100),
        (pd.array([True, False, None, True, True, False], dtype="boolean"), 3),
        (pd.array([1, 2, None, 120, -7, 0], dtype="Int8"), 103),
        (pd.array([1, 2, None, 300, -7, 0], dtype="Int64"), 103),
        (pd.Categorical([1, 2, 2, 1, None, 500]), 106),
        ([np.inf, -np.inf, np.nan, 1, 2, 3], 106),
        (pd.array([1, 2, None, 3, 4, 5], dtype="UInt8"), 15),
        ([np.nan] * 6, 0),
        ([None] * 6, 0),
        ([], 0),
    ],
)
def test_whatever_the_type_of_the_column_each_value_is_read_separately(values, expected):
    sums = dpt.tree_sums(small(values), ["a", "b"], columns="v", bounds=(0, 100), domain=PLACES, **NO_NOISE)
    assert len(sums) == 8 and sums["v"][0] == expected
    assert sums["v"][0] == sums.dp.level("a")["v"].sum() == sums.dp.level("b")["v"].sum()


def test_a_unit_adds_no_more_rows_than_it_may():
    frame = small(np.ones(30), who=[1] * 12 + [2] * 2 + [3] * 15 + [None])
    for most, expected in ((1, 3), (5, 12), (20, 29)):
        sums = dpt.tree_sums(frame, ["a", "b"], columns="v", bounds=(0, 1), granularity=1, domain=PLACES,
                             privacy_unit="who", max_contributions=most, **NO_NOISE)  # fmt: skip
        assert sums["v"][0] == expected


@each("bounds", [(0, 10), (-10, 10)])
@each("fit", ["totals", "joint"])
def test_structural_zeros_are_zero(bounds, fit):
    places = PLACES.assign(never=[False, True, False, False])
    domain = dpt.Domain.from_frame(places, by=["a", "b"], structural_zeros="never")
    frame = small(np.full(300, 7.0))
    sums = dpt.tree_sums(frame, ["a", "b"], columns="v", bounds=bounds, domain=domain, epsilon=0.2, fit=fit,
                         confidence=0.9, rng=rng())  # fmt: skip
    row = sums[(sums["a"] == "x") & (sums["b"] == 2)].iloc[0]
    assert row[["v", "v_std_error", "v_lower", "v_upper"]].tolist() == [0, 0, 0, 0]
    exact = dpt.tree_sums(frame, ["a", "b"], columns="v", bounds=bounds, domain=domain, **NO_NOISE)
    assert exact["v"].tolist() == [1400, 700, 700, 0, 700, 0, 700, 0]


@given(
    low=st.sampled_from([-40, 0, 5]), granularity=st.sampled_from([0.01, 0.3, 7]),
    seed=st.integers(0, 2**32), fit=st.sampled_from(["totals", "joint"]),
)  # fmt: skip
def test_sums_are_multiples_that_add_up_exactly(low, granularity, seed, fit):
    frame = small(np.linspace(low - 5, 55, 30))
    sums = dpt.tree_sums(frame, ["a", "b"], columns="v", bounds=(low, 50), granularity=granularity,
                         domain=PLACES, epsilon=0.5, fit=fit, rng=rng(seed))  # fmt: skip
    unit = Fraction(str(granularity))
    units = [round(Fraction(value) / unit) for value in sums["v"]]
    assert [float(multiple * unit) for multiple in units] == sums["v"].tolist()
    assert units[0] == sum(units[1:4]) == sum(units[4:])
    assert units[1:4] == [units[4] + units[5], units[6], units[7]]
    assert low < 0 or min(units) >= 0


def test_sums_that_may_be_negative_stay_negative():
    sums = dpt.tree_sums(small(np.full(90, -9.0)), ["a", "b"], columns="v", bounds=(-9, 1), domain=PLACES,
                         epsilon=50.0, consistency="nonnegative", rng=rng())  # fmt: skip
    assert abs(sums["v"][0] + 810) < 20 and (sums.dp.level("b")["v"].iloc[:3] < -250).all()


# --- losses without end ----------------------------------------------------------------------------------


@each("epsilon", [1e7, 1e9, 1e100, 1e300])
@each("mechanism", ["laplace", "gaussian"])
def test_a_loss_without_end_needs_no_noise(epsilon, mechanism):
    for verb, expected in ((dpt.tree_sums, 6), (dpt.tree_means, 1)):
        table = verb(small(np.ones(6)), ["a", "b"], columns="v", bounds=(0, 1), granularity=1, domain=PLACES,
                     epsilon=epsilon, delta=1e-6, mechanism=mechanism)  # fmt: skip
        assert table["v"][0] == expected


# --- how accurate it is --------------------------------------------------------------------------------


@pytest.mark.tripwire
@pytest.mark.parametrize(("stated", "consistency"), [({"epsilon": 0.5}, "linear"), ({"rho": 0.05}, "none")])
def test_std_error_and_intervals_are_what_repeated_releases_show(stated, consistency):
    are_what_repeated_releases_show(stated, consistency, 300)


@pytest.mark.nightly
@pytest.mark.parametrize(("stated", "consistency"), [({"epsilon": 0.5}, "linear"), ({"rho": 0.05}, "none")])
def test_std_error_and_intervals_are_what_many_releases_show(stated, consistency):
    are_what_repeated_releases_show(stated, consistency, 1000)


def are_what_repeated_releases_show(stated, consistency, n_releases):
    domain = dpt.Domain.from_frame(PLACES, by=["a", "b"])
    leaves = np.array([4000, -300, 20, 0]) * 100
    plan = dpt.plan(domain, column="v", bounds=(-80, 20), granularity=0.01, consistency=consistency,
                    confidence=0.9, **stated)  # fmt: skip
    truth = np.concatenate(plan.tree.roll_up(leaves)) / 100
    source = rng(5)
    tables = [plan.release(leaves, rng=source) for _ in range(n_releases)]
    errors = np.array([table["v"] for table in tables]) - truth
    predicted = tables[0]["v_std_error"].to_numpy()
    seen = np.sqrt((errors**2).mean(axis=0))
    np.testing.assert_allclose(seen, predicted, rtol=0.13)  # 4 standard errors of one node
    assert np.mean((seen / predicted) ** 2) == pytest.approx(1, abs=0.1)
    assert (np.abs(errors.mean(axis=0)) < 4.5 * predicted / math.sqrt(n_releases)).all()
    held = [table["v_lower"].le(truth) & table["v_upper"].ge(truth) for table in tables]
    assert 0.885 < np.mean(held) < 0.92


def test_columns_of_very_different_bounds_have_equal_relative_errors(visits, clinics):
    sizes = {f"c{power}": 10.0**power for power in range(-15, 15, 3)}
    names = list(sizes)
    frame = visits.assign(**{name: visits["age"] * size for name, size in sizes.items()})
    bounds = {name: (0, 99 * size) for name, size in sizes.items()}
    for stated in ({"epsilon": 3.0}, {"rho": 0.2}, {"epsilon": 1.0, "delta": 1e-6}):
        sums = dpt.tree_sums(frame, ["region"], columns=names, bounds=bounds, **stated,
                             domain=clinics[["region"]].drop_duplicates())  # fmt: skip
        errors = np.array([sums[f"{name}_std_error"] / bounds[name][1] for name in names])
        np.testing.assert_allclose(errors, np.broadcast_to(errors[0], errors.shape), rtol=1e-6)
        parts = sums.attrs["dp"]["quantities"].values()
        for name, whole in stated.items():
            if name in next(iter(parts)):
                assert sum(exact(part[name]) for part in parts) <= exact(whole)


def shape_of(table):
    def keys(predicted):
        return {
            key: keys(value) if isinstance(value, dict) else type(value) for key, value in predicted.items()
        }

    return [*zip(table.columns, map(str, table.dtypes), strict=True)], len(table), keys(table.attrs["dp"])


# --- what the table looks like -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "several"), [(dpt.tree_sums, False), (dpt.tree_sums, True), (dpt.tree_means, True)]
)
@pytest.mark.parametrize("consistency", ["none", "linear", "nonnegative", "integer"])
def test_shape_types_and_provenance_do_not_depend_on_the_records(verb, consistency, several):
    columns = ["v", "w"] if several else "v"
    shapes = [
        shape_of(
            verb(small(values, w=values), ["a", "b"], columns=columns, bounds=(-5, 20), domain=PLACES,
                 epsilon=1.0, consistency=consistency, confidence=0.9, keep=["measurements"])
        )
        for values in ([1.0, 2.0, 3.0], [], [np.nan] * 4, ["text", "5"], np.full(4000, 1e9))
    ]  # fmt: skip
    assert all(shape == shapes[0] for shape in shapes)


@pytest.mark.parametrize("verb", ["tree_sums", "tree_means"])
@pytest.mark.parametrize("stated", [*LOSSES[:3]], ids=repr)
def test_the_provenance_is_json_and_states_the_whole_loss(verb, stated, visits, clinics):
    options = {"bounds": {"cost": (0, 500), "age": (0, 100)}, "domain": clinics, **stated}
    options["columns"] = ["cost", "age"]
    table = getattr(dpt, verb)(visits, BY, rng=rng(3), **options)
    same = getattr(visits.dp, verb)(BY, rng=rng(3), **options)
    pd.testing.assert_frame_equal(table, same)
    provenance = json.loads(json.dumps(table.attrs["dp"], allow_nan=False))
    assert {name: provenance[name] for name in stated} == stated
    assert ("rho" in provenance) == ("rho" in stated) and ("epsilon" in provenance) == ("epsilon" in stated)
    counted = verb == "tree_means" or provenance["mechanism"] == "gaussian"
    assert list(provenance["quantities"]) == ["cost", "age", *(["count"] if counted else [])]
    assert provenance["quantities"]["age"]["bounds"] == [0, 100]
    empty = getattr(dpt, verb)(visits.head(0), BY, rng=rng(3), **options)
    assert stated_in(empty) == stated_in(table)  # so nothing in it is a secret


@each("verb", [dpt.tree_sums, dpt.tree_means])
@each("columns", [5, ("v", 1), [5, ("v", 1)], "a b", [True]])
def test_a_column_may_have_any_name(verb, columns):
    names = columns if isinstance(columns, list) else [columns]
    frame = pd.DataFrame({**PLACES, **dict.fromkeys(names, 1.0)})
    table = verb(frame, ["a", "b"], columns=columns, bounds=(0, 2), domain=PLACES, confidence=0.9, **NO_NOISE)
    for name in names:
        assert table[name][0] == (4 if verb is dpt.tree_sums else 1)
        assert {f"{name}_std_error", f"{name}_lower", f"{name}_upper"} <= set(table.columns)


@each("verb", [dpt.tree_sums, dpt.tree_means])
@each(
    ("columns", "at_fault"),
    [
        ("a", ["a"]), ("level", ["level"]), ("count", ["count"]), ("std_error", ["std_error"]),
        (["v", "v_std_error"], ["v", "v_std_error"]), (["v_upper", "v", "w"], ["v_upper", "v"]),
        ([5, "5"], [5, "5"]), ([], None), (["v", "v"], ["v"]), (None, [None]), ([["v"]], [["v"]]),
        ([math.nan], [math.nan]),
    ],
)  # fmt: skip
def test_names_that_cannot_stand_in_the_table_are_refused(verb, columns, at_fault):
    frame = PLACES.assign(**dict.fromkeys(["v", "w", "v_upper", "v_std_error", "level", "count", "5"], 1.0))
    with pytest.raises(ArgumentError, match="Hint: ") as error:
        verb(frame, ["a", "b"], columns=columns, bounds=(0, 2), domain=PLACES, **NO_NOISE)
    assert error.value.argument == "columns"
    assert at_fault is None or [*map(repr, error.value.columns)] == [*map(repr, at_fault)]


BAD = [
    ({"bounds": None}, "bounds"), ({"bounds": (5, 1)}, "bounds"), ({"bounds": (math.nan, 1)}, "bounds"),
    ({"bounds": (0, math.inf)}, "bounds"), ({"bounds": (3, 3)}, "bounds"),
    ({"bounds": {"cost": (0, 1), "age": (0, 1)}}, "bounds"), ({"bounds": {}}, "bounds"),
    ({"bounds": {"cost": None}}, "bounds"), ({"granularity": 0}, "granularity"),
    ({"granularity": -1}, "granularity"), ({"granularity": 2000}, "granularity"),
    ({"granularity": 1e-9}, "granularity"), ({"granularity": {"age": 1}}, "granularity"),
    ({"columns": "date"}, "frame"), ({"columns": "nothing"}, "frame"),
    ({"columns": "person", "privacy_unit": "person", "max_contributions": 2}, "privacy_unit"),
    ({"privacy_unit": "region"}, "privacy_unit"), ({"max_contributions": 0}, "max_contributions"),
    ({"max_contributions": 2}, "max_contributions"), ({"mechanism": "gaussian"}, "mechanism"),
    ({"mechanism": "x"}, "mechanism"), ({"consistency": "x"}, "consistency"), ({"epsilon": None}, "epsilon"),
    ({"epsilon": 1e-9}, "epsilon"), ({"confidence": 1}, "confidence"), ({"rng": 1}, "rng"),
    ({"keep": 1}, "keep"), ({"domain": None}, "domain"),
]  # fmt: skip


@pytest.mark.parametrize("verb", [dpt.tree_sums, dpt.tree_means])
@each(("options", "argument"), BAD)
def test_bad_arguments_are_named_and_come_with_a_hint(verb, options, argument, visits, clinics):
    arguments = {"columns": "cost", "bounds": (0, 500), "domain": clinics, "epsilon": 1.0, **options}
    with pytest.raises(ArgumentError, match="Hint: ") as error:
        verb(visits, BY, **arguments)
    assert error.value.argument == argument


@each(("verb", "columns"), [(dpt.tree_sums, ["v", "w"]), (dpt.tree_means, ["v", "w"]), (dpt.tree_means, "v")])
def test_an_array_says_nothing_of_several_quantities(verb, columns):
    with pytest.raises(ArgumentError, match="Hint: ") as error:
        verb(
            np.ones(4, dtype=np.int64), ["a", "b"], columns=columns, bounds=(0, 1), domain=PLACES, epsilon=1.0
        )
    assert error.value.argument == "frame"


@each("options", [{"bounds": (0, 5)}, {"granularity": 0.5}])
def test_bounds_without_a_column_are_refused(options):
    with pytest.raises(ArgumentError, match="Hint: ") as error:
        dpt.plan(dpt.Domain.from_frame(PLACES, by=["a", "b"]), epsilon=1, **options)
    assert error.value.argument == "column"

"""Implicit trees, through the public functions: arguments, levels, files and released columns."""

import inspect
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError
from tests.helpers_cases import each
from tests.helpers_implicit import ADDRESSES, BOUNDS, LARGE, NUMBERS, TREES, ZIPS, records, released
from tests.helpers_privacy import LOSS
from tests.helpers_random import rng

# Methods and functions


OPTIONS = [
    {},
    {"neighbors": "replace", "split": "uniform"},
    {"privacy_unit": "person", "max_contributions": 2, "keep": ["measurements"]},
    {"mechanism": "truncated_laplace", "split": "doubling"},
    {"mechanism": "gaussian", "confidence": 0.9},
]


@pytest.mark.parametrize(
    ("tree", "options"), [(TREES[turn % 3], options) for turn, options in enumerate(OPTIONS)]
)
def test_the_method_the_function_and_the_plan_release_the_same(tree, options):
    release_the_same(tree, options)


@pytest.mark.slow
@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("options", OPTIONS)
def test_all_methods_functions_and_plans_release_the_same(tree, options):
    release_the_same(tree, options)


def release_the_same(tree, options):
    frame = records()
    table = frame.dp.tree_counts(tree, **LOSS, **options, rng=rng())
    pd.testing.assert_frame_equal(table, dpt.tree_counts(frame, tree, **LOSS, **options, rng=rng()))
    plan = dpt.plan(tree, **LOSS, **options)
    pd.testing.assert_frame_equal(table, plan.release(frame, rng=rng()))
    assert table.attrs == plan.release(frame, rng=rng()).attrs
    assert table["level"].cat.categories.tolist() == list(plan.level_names)


def test_shares_by_name_reach_the_plan():
    split = {"total": 0.1, "zip/1": 0.2, "zip/3": 0.7}
    table = released(ZIPS, split=split, mechanism="truncated_laplace")
    expected = {name: 1 / share for name, share in split.items()}
    assert table.attrs["dp"]["noise_scale"] == pytest.approx(expected)
    scales = released(ZIPS, split=split, mechanism="gaussian").attrs["dp"]["noise_scale"]
    parts = {name: (scales["total"] / scale) ** 2 * split["total"] for name, scale in scales.items()}
    assert parts == pytest.approx(split)


def test_the_names_of_the_package_are_the_public_ones():
    for name in ("prefixes", "binary", "ImplicitPlan", "detection_probability"):
        assert name in dpt.__all__ and inspect.getdoc(getattr(dpt, name))
    assert isinstance(dpt.plan(ZIPS, **LOSS), dpt.ImplicitPlan)
    assert dpt.binary("n", bits=2) == dpt.prefixes("n", bits=[1, 2], notation="number")


# Arguments that cannot be used


@pytest.mark.parametrize(
    "verb", [dpt.tree_counts, lambda frame, by, **options: frame.dp.tree_counts(by, **options)]
)
@each(
    ("argument", "options"),
    [
        ("delta", {"rho": 0.1}),
        ("rho", {**LOSS, "rho": 0.1}),
        ("domain", {**LOSS, "domain": pd.DataFrame({"zip": ["902"]})}),
        ("domain", {**LOSS, "domain": "observed"}),
        ("known", {**LOSS, "known": {"total": 950}}),
        ("known", {**LOSS, "known": pd.DataFrame({"zip": ["902"], "count": [400]})}),
        ("confidence", {**LOSS, "confidence": 1.0}),
        ("confidence", {**LOSS, "confidence": "high"}),
        ("consistency", {**LOSS, "consistency": "linear"}),
        ("consistency", {**LOSS, "consistency": "none"}),
        ("fit", {**LOSS, "fit": "joint"}),
        ("level_weights", {**LOSS, "level_weights": {"total": 1.0}}),
        ("objective", {**LOSS, "objective": "cells"}),
        ("mechanism", {**LOSS, "mechanism": "laplace"}),
        ("mechanism", {**LOSS, "mechanism": "gaussian_thresholds"}),
        ("mechanism", {"rho": 0.1, "delta": 1e-6, "mechanism": "truncated_laplace"}),
        ("mechanism", {**LOSS, "mechanism": dpt.Laplace()}),
        ("delta", {"epsilon": 1.0}),
        ("delta", {"epsilon": 1.0, "delta": 0.0}),
        ("epsilon", {"delta": 1e-6}),
        ("epsilon", {"epsilon": -1.0, "delta": 1e-6}),
        ("split", {**LOSS, "split": "geometric"}),
        ("split", {**LOSS, "split": {"zip/1": 1.0}}),
        ("max_contributions", {**LOSS, "max_contributions": 2}),
        ("privacy_unit", {**LOSS, "privacy_unit": "zip"}),
        ("keep", {**LOSS, "keep": "measurements"}),
        ("neighbors", {**LOSS, "neighbors": "swap"}),
        ("rng", {**LOSS, "rng": 7}),
    ],
)
def test_what_cannot_be_used_is_named_with_a_hint(verb, argument, options):
    with pytest.raises(ArgumentError) as error:
        verb(records(), ZIPS, **options)
    assert error.value.argument == argument
    assert error.value.hint and error.value.hint in str(error.value)


def test_defaults_may_be_given():
    written_out = {
        "rho": None, "domain": None, "level_weights": None, "objective": "levels", "consistency": "integer",
        "fit": "totals", "known": None, "confidence": None, "mechanism": "auto",
    }  # fmt: skip
    pd.testing.assert_frame_equal(released(ZIPS), released(ZIPS, **written_out))


def test_other_verbs_take_no_tree_of_prefixes():
    with pytest.raises(ArgumentError):
        records().dp.tree_sums(ZIPS, columns="person", bounds=(0, 10), **LOSS)


# The released columns


@cache
def planned(tree, mechanism):
    return dpt.plan(tree, **LOSS, mechanism=mechanism, confidence=1 - 1e-9)


@pytest.mark.parametrize(("mechanism", "bound"), BOUNDS.items())
@given(seed=st.integers(0, 2**32 - 1))
def test_large_nodes_are_there_and_lone_ones_are_not(mechanism, bound, seed):
    for tree, label in zip(TREES, ["10.0.0.1/32", LARGE, "902"], strict=True):
        column = tree.level_names[-1]
        table = planned(tree, mechanism).release(records(), rng=rng(seed))
        deepest = table[table["level"].eq(column) & ~table["other"]].set_index(column)
        assert len(deepest) == 3  # lone rows have a chance of delta
        assert abs(deepest.loc[label, "count"] - 400) <= deepest.loc[label, bound]


@pytest.mark.parametrize("loss", [LOSS, {"rho": 0.1, "delta": 1e-6}], ids=str)
@pytest.mark.parametrize("mechanism", ["auto", *BOUNDS])
def test_the_provenance_describes_the_plan(mechanism, loss):
    if "rho" in loss and mechanism == "truncated_laplace":
        return  # cannot be planned by a rho
    unit = {"privacy_unit": "person", "max_contributions": 1, "mechanism": mechanism}
    plan = dpt.plan(NUMBERS, **loss, **unit)
    table = records().dp.tree_counts(NUMBERS, **loss, **unit, rng=rng())
    provenance = table.attrs["dp"]
    assert {name: provenance[name] for name in loss} == loss
    assert (provenance["privacy_unit"], provenance["max_contributions"]) == ("person", 1)
    assert provenance["noise_scale"] == dict(zip(plan.level_names, plan.noise.noise_scales, strict=True))
    levels = plan.noise.levels[1:]
    if provenance["mechanism"] == "truncated_laplace":
        above = [noise.radius for noise in levels]
        assert provenance["largest_unseen"] == {"n/16": 2 * above[0], "n/64": 2 * above[1]}
        assert "confidence" not in provenance
    else:
        above = [noise.threshold for noise in levels]
        assert provenance["mechanism"] == "gaussian_thresholds" and provenance["confidence"] == 0.95
        assert "largest_unseen" not in provenance
    assert provenance["shown_above"] == dict(zip(["n/16", "n/64"], above, strict=True))
    assert "not private" in provenance["rng"]


# One level of the table


@each(("mechanism", "bound"), BOUNDS.items())
@each("tree", TREES)
def test_each_level_is_indexed_by_the_keys_down_to_it(tree, mechanism, bound):
    table = released(tree, mechanism=mechanism)
    for depth, name in enumerate(tree.level_names):
        level = table.dp.level(name)
        assert level["count"].tolist() == table.loc[table["level"] == name, "count"].tolist()
        assert list(level.columns) == ["count", "std_error", bound, "other"]
        assert list(level.index.names) == (list(tree.level_names[1 : depth + 1]) or [None])
    with pytest.raises(ArgumentError, match="not a level"):
        table.dp.level(tree.column)


def test_nodes_are_found_by_number_or_text():
    texts = released(ADDRESSES).dp.level("ip/32")
    assert abs(texts.loc[("10.0.0.0/8", "10.0.0.0/16", "10.0.0.2/32"), "count"] - 300) <= 66
    zips = released(ZIPS).dp.level("zip/3")
    assert abs(zips.loc[("1", "100"), "count"] - 250) <= 66
    numbers = released(NUMBERS)
    deepest = numbers.dp.level("n/64")
    assert abs(deepest.loc[(LARGE >> 48, LARGE), "count"] - 400) <= 66
    assert abs(deepest.loc[(LARGE >> 48, LARGE + 1), "count"] - 300) <= 66
    assert isinstance(deepest, pd.DataFrame) and deepest.index.nlevels == 2
    full = numbers[~numbers["other"]].dp.level("n/16")
    assert full.index.dtype == np.uint64


# Files


@pytest.mark.parametrize("tree", TREES)
def test_parquet_keeps_the_table(tree, tmp_path):
    pytest.importorskip("pyarrow")
    table = released(tree, keep=["measurements"])
    table.to_parquet(tmp_path / "counts.parquet")
    back = pd.read_parquet(tmp_path / "counts.parquet")
    pd.testing.assert_frame_equal(back, table)
    assert back.attrs == table.attrs
    pd.testing.assert_frame_equal(back.dp.level(tree.level_names[-1]), table.dp.level(tree.level_names[-1]))


@pytest.mark.parametrize("tree", TREES)
def test_csv_keeps_the_table_where_the_key_types_are_given(tree, tmp_path):
    table = released(tree)
    table.to_csv(tmp_path / "counts.csv", index=False)
    types = {key: str(table[key].dtype) for key in tree.level_names[1:]}
    back = pd.read_csv(tmp_path / "counts.csv", dtype=types)
    pd.testing.assert_frame_equal(back, table.astype({"level": back["level"].dtype}))
    for name in tree.level_names:
        pd.testing.assert_frame_equal(back.dp.level(name), table.dp.level(name))

"""Counts with bounded relative error of implicit trees: privacy, promise and table."""

from __future__ import annotations

import functools
import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.multiplicative.counts import (
    ClippedThresholds,
    sparse_clipped_counts,
    sparse_threshold_counts,
)
from pandas_dptree.mechanisms.multiplicative.thresholds import Thresholds, group_loss
from pandas_dptree.privacy.loss import PrivacyLoss
from tests.helpers_cases import each
from tests.helpers_implicit import ADDRESSES, HALF, LARGE, NUMBERS, TREES, ZIPS, listed, records_of_sizes
from tests.helpers_multiplicative import chain_of
from tests.helpers_output import stated_in
from tests.helpers_privacy import LOSS
from tests.helpers_random import rng
from tests.strategies import objects, zoo

# Privacy


@pytest.mark.parametrize("calibration", ["proof", "exact"])
@each("tau", [1.0, 40.0, None])
def test_no_empty_node_appears(calibration, tau):
    chain = chain_of(depth=4, calibration=calibration, **({} if tau is None else {"tau": tau}))
    tree, leaves = dpt.prefixes("x", bits=[2, 4, 6], notation="number"), np.zeros(64, dtype=np.int64)
    leaves[[0, 1, 17]] = 3000, 1, 10**6
    for seed in range(2):
        decided = sparse_threshold_counts(int(leaves.sum()), listed(tree, leaves), chain, rng=rng(seed))
        for (names, _), occupied in zip(decided[1:], [{0, 1}, {0, 4}, {0, 1, 17}], strict=True):
            assert set(names.tolist()) <= occupied


def test_clipping_gives_noise_to_decided_nodes_and_the_root_alone(monkeypatch):
    plan = ClippedThresholds(alpha=0.5, epsilon=1.0, delta=1e-6, depth=3)
    drawn = []
    sample = type(plan.window_noise).sample

    def recorded(noise, size, source):
        if noise == plan.window_noise:
            drawn.append(size)
        return sample(noise, size, source)

    monkeypatch.setattr(type(plan.window_noise), "sample", recorded)
    tree, leaves = dpt.prefixes("x", bits=[2, 4], notation="number"), np.ones(16, dtype=np.int64)
    leaves[5] = 10**6
    decided = sparse_clipped_counts(int(leaves.sum()), listed(tree, leaves), plan, rng=rng())
    assert [names.tolist() for names, _ in decided] == [[0], [1], [5]]
    assert drawn == [1, 1, 1]
    drawn.clear()
    ((_, root), *below) = sparse_clipped_counts(7, listed(tree, leaves * 0), plan, rng=rng())
    assert [len(names) for names, _ in below] == [0, 0] and drawn == [1, 0, 0]
    assert abs(root[0] - 7) <= 2 * plan.window_noise.radius


@functools.cache
def plan_of(tree, clip):
    return dpt.plan(tree, **LOSS, mechanism=dpt.Multiplicative(alpha=0.5, clip=clip))


@settings(max_examples=settings.default.max_examples // 3)  # each takes long
@given(st.lists(zoo(), max_size=8), st.sampled_from(TREES), st.booleans())
def test_bad_records_neither_raise_nor_change_columns(values, tree, clip):
    plan = plan_of(tree, clip)
    table = plan.release(pd.DataFrame({tree.column: objects(values)}))
    empty = plan.release(pd.DataFrame({tree.column: objects([])}))
    pd.testing.assert_frame_equal(table.drop(columns=["count", "error_bound"]),
                                  empty.drop(columns=["count", "error_bound"]))  # fmt: skip
    assert stated_in(table) == stated_in(empty) and len(table) == 1


# The promise


@pytest.mark.parametrize("wish", [
    dpt.Multiplicative(alpha=0.5, failure_probability=0.2),
    dpt.Multiplicative(alpha=0.25, failure_probability=0.2, calibration="proof"),
    dpt.Multiplicative(alpha=0.5, failure_probability=0.2, clip=True),
])  # fmt: skip
def test_each_node_is_as_close_as_promised_or_as_small(wish):
    """Copies of a tree with counts just around the thresholds, below a root that is decided at once."""
    copies, n = 256, 2
    tree = dpt.prefixes("x", bits=[8, 9, 11], notation="number")
    plan = dpt.plan(tree, **LOSS, mechanism=wish)
    chain = plan.thresholds
    near = [*chain.bounds[:3], *(chain.bounds[:3] + 1), *chain.thresholds[:2]]
    leaves = np.tile(np.array([near[3], 0, near[0], 7, near[6], near[4], 3 * near[1], near[2]]), copies)
    exact = Tree.from_branching([copies, 2, 4]).roll_up(leaves)
    found, estimates = ([np.zeros((n, len(level)), dtype=np.int64) for level in exact] for _ in range(2))
    decide = sparse_clipped_counts if wish.clip else sparse_threshold_counts
    source = rng(5)
    for run in range(n):
        for level, (names, counts) in enumerate(
            decide(int(leaves.sum()), listed(tree, leaves), plan.chain, rng=source)
        ):
            found[level][run, names.astype(np.int64)] = 1
            estimates[level][run, names.astype(np.int64)] = counts
    most = binom.ppf(1 - 1e-7, n * copies, wish.failure_probability)
    for truth, seen, counts in zip(exact[1:], found[1:], estimates[1:], strict=True):
        errors = abs(counts - truth)
        wrong = np.where(
            seen, errors > wish.alpha * np.maximum(truth, plan.threshold), truth > plan.largest_unseen
        )
        misled = seen & (errors > plan.error_bound(counts))
        for failed in (wrong, misled):
            assert (np.count_nonzero(failed.reshape(n * copies, -1), axis=0) <= most).all()
        if wish.clip:
            assert (errors[seen > 0] <= 2 * plan.chain.window_noise.radius).all()
            beyond = np.where(seen, np.maximum(errors - wish.alpha * truth, 0), 0).reshape(n * copies, -1)
            assert (np.sqrt((beyond**2.0).mean(axis=0)) <= plan.rmse_bound).all()
    assert 0 < found[3].mean() < 1


def records():
    """Few nodes hold many rows; the others are far below every threshold."""
    return records_of_sizes([40_000, 9_000, 20_000, 30, 1])


def released(tree, **options):
    options = {"mechanism": HALF, "rng": rng(), **LOSS, **options}
    return records().dp.tree_counts(tree, **options)


@pytest.mark.parametrize("clip", [False, True])
def test_the_table_holds_the_large_groups_within_their_bounds(clip):
    wish = dpt.Multiplicative(alpha=0.5, failure_probability=1e-9, clip=clip)
    frame = records()
    frame["n/16"], frame["n/64"] = frame["n"] // 2**48, frame["n"]
    for seed in range(5):
        table = released(NUMBERS, mechanism=wish, rng=rng(seed))
        plan = dpt.plan(NUMBERS, **LOSS, mechanism=wish)
        for keys in (["n/16"], ["n/16", "n/64"]):
            truth = frame.groupby(keys).size()
            level = table.dp.level(keys[-1])
            assert set(level.index) <= set(truth.index)
            assert (abs(level["count"] - truth.loc[level.index]) <= level["error_bound"]).all()
            assert truth.drop(level.index).le(plan.largest_unseen).all()
        root = table.iloc[0]
        assert abs(root["count"] - len(frame)) <= root["error_bound"]


@each("tree", TREES)
def test_the_columns_and_what_they_hold(tree):
    table = released(tree)
    keys = list(tree.level_names[1:])
    assert list(table.columns) == ["level", *keys, "count", "error_bound"]
    key_type = "UInt64" if tree is NUMBERS else str(pd.Series(dtype="str").dtype)
    assert [str(table[key].dtype) for key in keys] == [key_type] * len(keys)
    assert (table[["count", "error_bound"]].dtypes == np.int64).all()
    assert table["level"].cat.ordered and table["level"].is_monotonic_increasing
    assert table["level"].cat.categories.tolist() == list(tree.level_names)
    depth = table["level"].cat.codes.to_numpy()
    assert (table[keys].notna().to_numpy() == (np.arange(len(keys)) < depth[:, None])).all()
    assert not table.duplicated(["level", *keys]).any()
    for above in range(1, len(keys)):  # ancestors are there, too
        paths = set(table.loc[depth == above, keys[:above]].itertuples(index=False, name=None))
        assert set(table.loc[depth == above + 1, keys[:above]].itertuples(index=False, name=None)) <= paths
    assert {ADDRESSES: "10.0.0.1/32", NUMBERS: LARGE, ZIPS: "902"}[tree] in table[keys[-1]].dropna().tolist()


def test_without_records_the_root_has_the_value_of_small_counts():
    plan = dpt.plan(ZIPS, **LOSS, mechanism=HALF)
    table = plan.release(records().iloc[:0])
    assert table["level"].tolist() == ["total"]
    assert table["count"].tolist() == [plan.to_frame()["count"].iloc[0]]
    assert table["error_bound"].tolist() == plan.error_bound(table["count"]).tolist()


@each("tree", TREES)
def test_the_method_the_function_and_the_plan_release_the_same(tree):
    frame, options = records(), {**LOSS, "privacy_unit": "person", "max_contributions": 1, "mechanism": HALF}
    plan = dpt.plan(tree, **options)
    assert isinstance(plan, dpt.ImplicitMultiplicativePlan)
    table = plan.release(frame, rng=rng(3))
    pd.testing.assert_frame_equal(table, dpt.tree_counts(frame, tree, **options, rng=rng(3)))
    pd.testing.assert_frame_equal(table, frame.dp.tree_counts(tree, **options, rng=rng(3)))


@pytest.mark.parametrize("tree", TREES)
def test_records_of_every_library_give_the_same_counts(tree):
    polars = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    frame = polars.from_pandas(records())
    for other in (frame, frame.lazy(), frame.to_arrow()):
        table = dpt.tree_counts(other, tree, **LOSS, mechanism=HALF, rng=rng())
        pd.testing.assert_frame_equal(table, released(tree))


def test_short_texts_count_as_far_as_they_reach():
    frame = pd.DataFrame({"zip": ["9"] * 50_000 + ["1234"] * 30_000 + ["1"] * 3})
    table = dpt.tree_counts(frame, ZIPS, **LOSS, mechanism=HALF)
    assert table["zip/1"].dropna().tolist() == ["1", "9", "1"]
    assert table["zip/3"].dropna().tolist() == ["123"]


def test_the_provenance_describes_the_plan():
    whom = {"privacy_unit": "person", "max_contributions": 1}
    plan = dpt.plan(NUMBERS, **LOSS, **whom, mechanism=HALF)
    provenance = json.loads(json.dumps(released(NUMBERS, **whom, rng=None).attrs["dp"]))
    listed_plan = dpt.plan(Tree.from_branching([2, 2]), **LOSS, mechanism=HALF)
    assert set(provenance) == {*listed_plan.release(np.zeros(4, dtype=int)).attrs["dp"], "largest_unseen"}
    assert provenance["mechanism"] == "multiplicative" and provenance["rng"] == "operating system"
    assert (provenance["threshold"], provenance["largest_unseen"]) == (plan.threshold, plan.largest_unseen)
    assert "by prefixes of 'n'" in repr(plan) and "protecting each person" in repr(plan)
    assert "not private" in released(NUMBERS).attrs["dp"]["rng"]


@pytest.mark.parametrize("mechanism", ["truncated_laplace", HALF])
def test_numbers_of_numpy_become_plain_json(mechanism):
    options = {"privacy_unit": "person", "max_contributions": np.int64(2), "mechanism": mechanism}
    plan = dpt.plan(NUMBERS, **LOSS, **options)
    provenance = json.loads(json.dumps(plan.release(records()).attrs["dp"]))
    assert provenance["max_contributions"] == 2 and type(plan.max_contributions) is int
    for most in (2**61, 2**70):
        with pytest.raises(ArgumentError, match="`max_contributions` must be a whole number"):
            dpt.plan(NUMBERS, **LOSS, **{**options, "max_contributions": most}, neighbors="replace")


def test_the_options_that_apply_are_shown():
    plan = dpt.plan(NUMBERS, **LOSS, mechanism=dpt.Multiplicative(alpha=0.5, clip=True))
    assert (plan.epsilon, plan.delta, plan.failure_probability) == (1.0, 1e-6, 1 / 9)
    assert plan.max_error == 2 * plan.chain.window_noise.radius
    assert plan.release(records().iloc[:0]).attrs["dp"]["failure_probability"] == 1 / 9
    assert "but for a probability of 0.111111 each" in plan.headline
    assert plan.headline.endswith(f"count {plan.largest_unseen} at most, but for the same probability")
    assert "<table" in plan._repr_html_()


def test_the_plan_is_as_good_as_that_of_a_listed_tree():
    wish = dpt.Multiplicative(alpha=0.3, failure_probability=0.01, clip=True)
    implicit = dpt.plan(dpt.binary("x", bits=2), **LOSS, mechanism=wish)
    complete = dpt.plan(Tree.from_branching([2, 2]), **LOSS, mechanism=wish)
    assert (implicit.threshold, implicit.rmse_bound) == (complete.threshold, complete.rmse_bound)
    pd.testing.assert_frame_equal(implicit.to_frame(), complete.to_frame())


def test_parquet_keeps_the_table(tmp_path):
    pytest.importorskip("pyarrow")
    table = released(ADDRESSES)
    table.to_parquet(tmp_path / "counts.parquet")
    back = pd.read_parquet(tmp_path / "counts.parquet")
    pd.testing.assert_frame_equal(back, table)
    pd.testing.assert_frame_equal(back.dp.level("ip/16"), table.dp.level("ip/16"))


@each("neighbors, rows", [("add_remove", 3), ("replace", 6)])
def test_the_loss_of_a_unit_is_divided_among_its_rows(neighbors, rows):
    each = group_loss(PrivacyLoss(**LOSS), rows)
    options = {"neighbors": neighbors, "privacy_unit": "who", "max_contributions": 3, "mechanism": HALF}
    plan = dpt.plan(ZIPS, **LOSS, **options)
    assert (plan.chain.epsilon, plan.chain.delta) == (each.epsilon, each.delta)
    lone = pd.DataFrame({"zip": ["123"] * 90_000, "who": 7})
    assert len(plan.release(lone)) == 1  # three rows are few, with certainty
    many = lone.assign(who=np.arange(90_000) // 3)
    assert plan.release(many)["zip/3"].dropna().tolist() == ["123"]


@given(st.lists(st.integers(0, 63), max_size=40), st.integers(-1, 12))
def test_nodes_are_listed_with_their_parents(values, least):
    tree = dpt.prefixes("x", bits=[1, 3, 6], notation="number")
    leaves = np.bincount(values, minlength=64) if values else np.zeros(64, dtype=np.int64)
    exact = Tree.from_branching([2, 4, 8]).roll_up(leaves)
    found = listed(tree, leaves)(least)
    for nodes, counts in zip(found, exact[1:], strict=True):
        names = nodes.names.astype(np.int64)
        assert names.tolist() == np.flatnonzero(counts > max(least, 0)).tolist()
        assert (nodes.counts == counts[names]).all()
    assert (found[0].parent == 0).all()
    for above, nodes, n_children in zip(found, found[1:], [4, 8], strict=False):
        assert (above.names[nodes.parent] == nodes.names // n_children).all()


# Which mechanism finds what


def test_compare_is_of_the_same_unit():
    unit = {"privacy_unit": "person", "max_contributions": 2, "neighbors": "replace"}
    table = dpt.plan(ZIPS, **LOSS, **unit).compare()
    wish = dpt.Multiplicative(alpha=0.25)
    plan = dpt.plan(ZIPS, **LOSS, **unit, mechanism=wish)
    assert (table.loc[("multiplicative", "exact"), "largest_unseen"] == plan.largest_unseen).all()
    assert (table > dpt.plan(ZIPS, **LOSS).compare()).dropna().all(axis=None)
    for name, value in {"alpha": 1.0, "failure_probability": 0.5}.items():
        with pytest.raises(ArgumentError, match=f"`{name}`"):
            dpt.plan(ZIPS, **LOSS).compare(**{name: value})


# Arguments


@each(
    "argument, options",
    [
        ("delta", {"delta": 0.0}),
        ("epsilon", {"epsilon": -1.0}),
        ("split", {"split": "uniform"}),
        ("split", {"split": {"total": 0.5, "zip/1": 0.25, "zip/3": 0.25}}),
        ("keep", {"keep": ["measurements"]}),
        ("max_contributions", {"max_contributions": 2}),
        ("max_contributions", {"max_contributions": 0}),
        ("privacy_unit", {"privacy_unit": "zip"}),
        ("privacy_unit", {"privacy_unit": ["person"]}),
        ("neighbors", {"neighbors": "swap"}),
        ("threshold", {"mechanism": dpt.Multiplicative(alpha=0.5, threshold=100)}),
        ("mechanism", {"mechanism": "laplace"}),
    ],
)
def test_what_cannot_be_used_is_named_with_a_hint(argument, options):
    for verb in (partial(dpt.plan, ZIPS), partial(dpt.tree_counts, records(), ZIPS)):
        with pytest.raises(ArgumentError) as error:
            verb(**{**LOSS, "mechanism": HALF, **options})
        assert error.value.argument == argument and error.value.hint


@each("name", ["rho", "known", "confidence", "level_weights"])
def test_what_prefixes_have_no_use_for_is_refused(name):
    with pytest.raises(ArgumentError, match=f"`{name}` has no meaning"):
        dpt.tree_counts(records(), ZIPS, **LOSS, mechanism=HALF, **{name: 0.5})


def test_other_errors():
    with pytest.raises(ArgumentError, match=r"must be a numpy\.random\.Generator"):
        dpt.plan(ZIPS, **LOSS, mechanism=HALF).release(records(), rng=0)
    chain = Thresholds(alpha=0.5, eta=0.05, **LOSS, depth=2)
    with pytest.raises(ArgumentError, match="has 3 levels, the root included, but the thresholds are for 2"):
        sparse_threshold_counts(
            16, listed(dpt.prefixes("x", bits=[2, 4], notation="number"), np.ones(16, dtype=int)), chain
        )

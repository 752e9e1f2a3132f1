"""Counts with bounded relative error, through the public face: the guarantee, the table, the arguments."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError, ColumnsError
from pandas_dptree.hierarchy.domain import level_names
from pandas_dptree.mechanisms.multiplicative.counts import ClippedThresholds
from pandas_dptree.mechanisms.multiplicative.thresholds import group_loss
from pandas_dptree.privacy.loss import PrivacyLoss
from tests.helpers_cases import each
from tests.helpers_output import stated_in
from tests.helpers_privacy import LOSS
from tests.helpers_random import rng
from tests.strategies import domains_and_rows

BY = ["region", "district", "clinic"]
QUARTER = dpt.Multiplicative(alpha=0.25)


# The guarantee


@pytest.mark.parametrize(
    "wish", [QUARTER, dpt.Multiplicative(alpha=0.25, failure_probability=0.3, clip=True)]
)
def test_each_node_is_as_close_as_promised_and_within_its_bound(wish):
    copies, n = 150, 2  # once the root is decided, the copies below it are separate trees
    tree = dpt.Tree.from_branching([copies, 3, 4])
    plan = dpt.plan(tree, **LOSS, mechanism=wish)
    sizes = plan.threshold * np.array([0, 0, 0.01, 0.3, 0.4, 0.6, 0.9, 1, 1.1, 2, 30, 1000])
    leaves = np.tile(sizes.astype(np.int64), copies)
    exact = np.concatenate(tree.roll_up(leaves))
    source = rng(1)
    tables = [plan.release(leaves, rng=source) for _ in range(n)]
    counts = np.stack([table["count"] for table in tables])
    errors = abs(counts - exact)

    def of_each_node(values):
        return [
            level.reshape(n * copies, -1)
            for level in np.split(values, np.cumsum([1, copies, 3 * copies]), 1)[1:]
        ]

    most = binom.ppf(1 - 1e-9, n * copies, plan.failure_probability)
    for bound in (
        wish.alpha * np.maximum(exact, plan.threshold),
        np.stack([t["error_bound"] for t in tables]),
    ):
        for missed in of_each_node(errors > bound):
            assert (np.count_nonzero(missed, axis=0) <= most).all()
    assert (counts >= 0).all()
    if wish.clip:
        for excess in of_each_node(np.maximum(errors - wish.alpha * exact, 0)):
            assert (np.sqrt((excess**2).mean(axis=0)) <= plan.rmse_bound).all()
        assert (errors <= 2 * plan.chain.window_noise.radius).all()
    else:
        assert set(np.unique(counts)) <= set(plan.to_frame()["count"])
        assert len(np.unique(counts)) > 5  # so that the bounds are tried at several sizes


@given(
    alpha=st.floats(0.01, 0.99),
    true=st.integers(0, 2**40),
    part=st.floats(-1, 1),
    clip=st.booleans(),
)
def test_the_bound_covers_every_error_that_the_guarantee_allows(alpha, true, part, clip):
    plan = dpt.plan(
        dpt.Tree.from_branching([2]), **LOSS, mechanism=dpt.Multiplicative(alpha=alpha, clip=clip)
    )
    allowed = alpha * max(true, plan.threshold)
    if clip:
        allowed = min(allowed, 2 * plan.chain.window_noise.radius)
    released = max(true + math.floor(abs(part) * allowed) * (1 if part > 0 else -1), 0)
    assert abs(released - true) <= plan.error_bound(released)


def test_the_bound_is_reached_at_both_ends():
    plan = dpt.plan(
        dpt.Tree.from_branching([2]), **LOSS, mechanism=dpt.Multiplicative(alpha=0.5, threshold=10_000)
    )
    assert plan.error_bound([0, 5_000, 10_000]).tolist() == [5_000, 5_000, 10_000]
    table = plan.to_frame()
    assert table["count"].is_monotonic_increasing and table["count"].iloc[0] == 5_000
    assert table["error_bound"].tolist() == plan.error_bound(table["count"]).tolist()


def test_huge_thresholds_stay_whole_numbers():
    wish = dpt.Multiplicative(alpha=1 - 2**-50, threshold=1e300)
    table = dpt.plan(dpt.Tree.from_branching([2]), **LOSS, mechanism=wish).release(np.array([1, 2]))
    assert (table["error_bound"] > 2**40).all() and table["error_bound"].dtype == np.int64


@each(
    "counts",
    [[math.nan], pd.Series([1, None], dtype="Int64"), "many", ["1"], None, [-1], [1.5], [True], [2**70]],
)
def test_only_counts_have_a_bound(counts):
    plan = dpt.plan(dpt.Tree.from_branching([2]), **LOSS, mechanism=QUARTER)
    with pytest.raises(ArgumentError, match="`counts` must be whole numbers"):
        plan.error_bound(counts)
    for kind in ("Int64", "uint64", "int8"):
        assert plan.error_bound(pd.Series([0, 9], dtype=kind)).tolist() == plan.error_bound([0, 9]).tolist()


def test_a_plan_shows_the_options_that_apply():
    tree = dpt.Tree.from_branching([2, 3, 4])
    plan = dpt.plan(tree, **LOSS, mechanism=QUARTER)
    assert (plan.epsilon, plan.delta, plan.failure_probability, plan.max_error) == (1.0, 1e-6, 0.05, None)
    assert "but for a probability of 0.05 each:" in plan.headline
    clipped = dpt.plan(tree, **LOSS, mechanism=dpt.Multiplicative(alpha=0.25, clip=True))
    assert clipped.failure_probability == clipped.chain.eta == 1 / 16
    assert clipped.max_error == 2 * clipped.chain.window_noise.radius
    assert (
        f"but for a probability of 0.0625 each, and by {clipped.max_error} in any case:" in clipped.headline
    )
    provenance = clipped.release(np.zeros(24, dtype=int)).attrs["dp"]
    assert (provenance["failure_probability"], provenance["rmse_bound"]) == (1 / 16, clipped.rmse_bound)
    chosen = dpt.plan(
        tree, **LOSS, mechanism=dpt.Multiplicative(alpha=0.25, failure_probability=0.3, clip=True)
    )
    assert chosen.failure_probability == 0.3 and clipped.threshold > chosen.threshold
    rare = dpt.Multiplicative(alpha=0.25, failure_probability=1e-9, threshold=1e300)
    assert "1e+300, whichever is larger, but for a probability of 1e-09 each" in repr(
        dpt.plan(tree, **LOSS, mechanism=rare)
    )


def test_a_notebook_shows_the_plan():
    domain = dpt.Domain.from_frame(pd.DataFrame({"x": ["a", "b"]}), by=["x"])
    plan = dpt.plan(domain, **LOSS, privacy_unit="<who>", max_contributions=2, mechanism=QUARTER)
    shown = plan._repr_html_()
    assert shown.startswith("<p>Plan of counts") and "&lt;who&gt;" in shown and "<table" in shown
    assert "error_bound" in shown


# The table


def test_the_table_and_its_provenance(visits, clinics):
    wish = dpt.Multiplicative(alpha=0.25, failure_probability=0.01, calibration="proof")
    table = dpt.tree_counts(visits, BY, **LOSS, domain=clinics, mechanism=wish)
    assert list(table.columns) == ["level", *BY, "count", "error_bound"]
    provenance = json.loads(json.dumps(table.attrs["dp"]))
    plan = dpt.plan(dpt.Domain.from_frame(clinics, by=BY), **LOSS, mechanism=wish)
    expected = {
        "mechanism": "multiplicative",
        "alpha": 0.25,
        "failure_probability": 0.01,
        "calibration": "proof",
        "clip": False,
    }
    assert {name: provenance[name] for name in expected} == expected
    assert provenance["threshold"] == plan.threshold and provenance["rmse_bound"] is None
    assert (provenance["epsilon"], provenance["delta"], provenance["rng"]) == (1.0, 1e-6, "operating system")
    keys = clinics.groupby("region").size().index
    pd.testing.assert_index_equal(table.dp.level("region").index, keys)
    assert table.dp.level("total").columns.tolist() == ["count", "error_bound"]


def test_the_accessor_the_function_and_the_plan_agree(visits, clinics):
    options = {**LOSS, "domain": clinics, "mechanism": QUARTER}
    tables = [
        dpt.tree_counts(visits, BY, **options, rng=rng(3)),
        visits.dp.tree_counts(BY, **options, rng=rng(3)),
        visits.dp.plan(BY, **options).release(visits, rng=rng(3)),
    ]
    assert tables[0].attrs["dp"]["rng"].endswith("not private")
    for table in tables[1:]:
        pd.testing.assert_frame_equal(table, tables[0])


@settings(max_examples=settings.default.max_examples // 3)  # each takes long
@given(drawn=domains_and_rows(), neighbors=st.sampled_from(["add_remove", "replace"]), clip=st.booleans())
def test_shape_and_types_follow_from_the_plan_alone(drawn, neighbors, clip):
    domain, rows = drawn
    wish = dpt.Multiplicative(alpha=0.5, clip=clip)
    plan = dpt.plan(domain, **LOSS, neighbors=neighbors, mechanism=wish)
    values = ["count", "error_bound"]
    released, empty = plan.release(rows), plan.release(rows.iloc[:0])
    pd.testing.assert_frame_equal(released.drop(columns=values), empty.drop(columns=values))
    assert stated_in(released) == stated_in(empty)
    for table in (released, empty):
        assert (table[values].dtypes == np.int64).all() and (table[values] >= 0).all(axis=None)
        for depth, name in enumerate(level_names(domain)[1:], start=1):
            assert len(table.dp.level(name)) == len(domain.keys(depth))


def test_structural_zeros_stay_zero():
    wards = pd.DataFrame({"ward": ["eye", "labour", "moon", "moon"], "sex": ["m", "m", "m", "f"]})
    wards["never"] = [False, True, True, True]
    domain = dpt.Domain.from_frame(wards, by=["ward", "sex"], structural_zeros="never")
    rows = pd.DataFrame({"ward": ["labour"] * 50, "sex": ["m"] * 50})
    table = dpt.plan(domain, **LOSS, mechanism=QUARTER).release(rows)
    assert (table["count"] == 0).tolist() == (table["error_bound"] == 0).tolist()
    assert table.dp.level("ward")["count"].eq(0).to_dict() == {"eye": False, "labour": True, "moon": True}
    assert table.dp.level("sex")["count"].eq(0).tolist() == [False, True, True, True]


def test_a_bare_tree_takes_the_counts_of_its_leaves():
    plan = dpt.plan(dpt.Tree.from_branching([2, 2]), **LOSS, max_contributions=3, mechanism=QUARTER)
    table = plan.release(np.array([0, 10**6, -5, 0]), rng=rng(2))
    assert list(table.columns) == ["level", "level_1", "level_2", "count", "error_bound"]
    last = table.dp.level("level_2")
    assert abs(last["count"] - [0, 10**6, 0, 0]).le(last["error_bound"]).all()
    with pytest.raises(ArgumentError, match="must be an array of the 4 leaf counts"):
        plan.release(pd.DataFrame({"x": [1]}))
    with pytest.raises(ArgumentError, match="must be whole numbers of shape"):
        plan.release(np.zeros(3, dtype=int))
    with pytest.raises(ArgumentError, match=r"must be a numpy\.random\.Generator"):
        plan.release(np.zeros(4, dtype=int), rng=0)


# Units of several rows


@each("neighbors, rows", [("add_remove", 3), ("replace", 6)])
def test_the_loss_of_a_unit_is_divided_among_its_rows(neighbors, rows):
    domain = dpt.Domain.from_frame(pd.DataFrame({"x": ["a", "b"]}), by=["x"])
    options = {"neighbors": neighbors, "privacy_unit": "who", "max_contributions": 3}
    each = group_loss(PrivacyLoss(**LOSS), rows)
    plan = dpt.plan(domain, **LOSS, **options, mechanism=QUARTER)
    assert (plan.thresholds.epsilon, plan.thresholds.delta) == (each.epsilon, each.delta)
    clipped = dpt.plan(domain, **LOSS, **options, mechanism=dpt.Multiplicative(alpha=0.25, clip=True))
    assert isinstance(clipped.chain, ClippedThresholds)
    assert (clipped.chain.epsilon, clipped.chain.delta) == (each.epsilon, each.delta)
    assert clipped.rmse_bound == clipped.chain.rmse_bound
    frame = pd.DataFrame({"x": ["a"] * 50_000, "who": 7})
    assert plan.release(frame).equals(plan.release(frame.iloc[:3]))  # three rows are few, with certainty
    assert plan.release(frame).attrs["dp"]["privacy_unit"] == "who"
    assert f"protecting each who (up to 3 rows, {neighbors})" in repr(plan)
    with pytest.raises(ArgumentError, match="rows of one privacy unit cannot be identified"):
        plan.release(np.array([1, 2]))


# Arguments


@each(
    "options, fact",
    [
        ({"delta": 0.0}, "`delta` must be above 0"),
        ({"delta": 5e-324}, "`delta` is too small to be divided"),
        ({"delta": 1e-320}, "`delta` is too small to be divided"),
        ({"epsilon": 1e-12}, "`epsilon` is too small"),
        ({"epsilon": 1e-300}, "`epsilon` is too small"),
        ({"epsilon": 5e307}, "`epsilon` is too large"),
        ({"epsilon": 5e-11, "mechanism": dpt.Multiplicative(alpha=0.25, threshold=1e15)}, "`epsilon` is too"),
        ({"epsilon": None}, "`epsilon` must be given, with a delta"),
        ({"epsilon": None, "delta": 0.0, "rho": 0.1}, "`rho` has no meaning for counts with bounded"),
        ({"known": {"total": 5}}, "`known` has no meaning"),
        ({"confidence": 0.95}, "`confidence` has no meaning"),
        ({"consistency": "linear"}, "`consistency` has no meaning"),
        ({"split": {"total": 1.0}}, "`split` has no meaning"),
        ({"split": "uniform"}, "`split` has no meaning"),
        ({"level_weights": {"total": 1.0}}, "`level_weights` has no meaning"),
        ({"objective": "worst"}, "`objective` has no meaning"),
        ({"target": {"total": 1.0}}, "`target` has no meaning"),
        ({"fit": "joint"}, "`fit` has no meaning"),
        ({"keep": ["measurements"]}, "`keep` has no meaning"),
        ({"column": "cost", "bounds": (0, 5)}, "`column` has no meaning"),
        ({"neighbors": "x"}, "`neighbors` is unknown"),
        ({"max_contributions": 0}, "`max_contributions` must be"),
        ({"max_contributions": 2**70}, "`max_contributions` must be"),
        ({"max_contributions": 2**61, "neighbors": "replace"}, "`max_contributions` must be"),
        ({"mechanism": dpt.Multiplicative}, r"`mechanism` is unknown: the class(?s:.*)ative\(alpha=0.25"),
        ({"mechanism": "multiplicative"}, r"`mechanism` is unknown(?s:.*)dpt.Multiplicative\(alpha=0.25\)"),
        ({"privacy_unit": "x"}, "`privacy_unit` must name a column that is neither a key"),
        ({"mechanism": dpt.Multiplicative(alpha=0.25, threshold=100)}, "`threshold` is too small for the"),
    ],
)  # fmt: skip
def test_plans_that_make_no_sense_are_refused(options, fact):
    domain = dpt.Domain.from_frame(pd.DataFrame({"x": ["a", "b"]}), by=["x"])
    with pytest.raises(ArgumentError, match=fact):
        dpt.plan(domain, **{**LOSS, "mechanism": QUARTER, **options})


def test_a_plan_that_is_made_directly_checks_what_is_asked_for():
    loss, whom = PrivacyLoss(**LOSS), {"privacy_unit": None, "max_contributions": 1}
    with pytest.raises(ArgumentError, match="`mechanism` must be a Multiplicative"):
        dpt.MultiplicativePlan(
            tree=dpt.Tree.from_branching([2]), domain=None, loss=loss, mechanism="x", **whom
        )


def test_a_threshold_that_is_refused_comes_with_one_that_is_not():
    tree = dpt.Tree.from_branching([2, 2])
    smallest = math.ceil(dpt.plan(tree, **LOSS, mechanism=QUARTER).threshold)
    with pytest.raises(ArgumentError, match=f"pass at least {smallest}"):
        dpt.plan(tree, **LOSS, mechanism=dpt.Multiplicative(alpha=0.25, threshold=smallest - 5))
    plan = dpt.plan(tree, **LOSS, mechanism=dpt.Multiplicative(alpha=0.25, threshold=smallest))
    assert plan.threshold == smallest and plan.thresholds.guaranteed


def test_other_errors(visits, clinics):
    with pytest.raises(ArgumentError, match="must be a Domain or a Tree"):
        dpt.plan(visits, **LOSS, mechanism=QUARTER)
    with pytest.raises(ArgumentError, match="`domain` must be given"):
        dpt.tree_counts(visits, BY, **LOSS, mechanism=QUARTER)
    with pytest.raises(ArgumentError, match="needs a `privacy_unit`"):
        dpt.tree_counts(visits, BY, **LOSS, domain=clinics, max_contributions=2, mechanism=QUARTER)
    with pytest.raises(ArgumentError, match="`mechanism` is unknown"):
        dpt.tree_sums(visits, BY, columns="cost", bounds=(0, 5), **LOSS, domain=clinics, mechanism=QUARTER)
    with pytest.raises(ColumnsError, match="error_bound"):
        dpt.Domain.from_frame(pd.DataFrame({"error_bound": [1]}), by=["error_bound"])


def test_options_at_their_defaults_and_none_for_consistency_are_accepted():
    tree = dpt.Tree.from_branching([2])
    for consistency in ("integer", "none"):
        plan = dpt.plan(tree, **LOSS, consistency=consistency, split="optimal", known=None, mechanism=QUARTER)
        assert plan.release(np.array([1, 2])).attrs["dp"]["consistency"] == "none"

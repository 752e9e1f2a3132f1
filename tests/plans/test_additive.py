"""Plans of additive noise: releases keep what they promise, and JSON keeps the plans."""

import json

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from tests.helpers_cases import each
from tests.helpers_json import replaced, without
from tests.helpers_plans import by_node, copies

BY = ["region", "district", "clinic"]
UNIFORM = dpt.Tree.from_branching([2, 3, 4])
TREES = {
    "uniform": UNIFORM,
    "flat": dpt.Tree.from_branching([12]),
    "chain": dpt.Tree.from_branching([1, 1, 3]),
    "ragged": dpt.Tree((np.array([3]), np.array([1, 2, 5]), np.array([4, 1, 1, 2, 2, 3, 1, 1]))),
    "short paths": dpt.Tree.from_paths(
        [[0, 0, 0], [0, 0, 1], [0, 1, -1], [1, 0, 0], [2, -1, -1], [3, -1, -1]]
    ),
}


def largest_path(tree, precisions):
    """Sum precisions along every path from the root to a leaf, and give the largest sum."""
    spent = np.zeros(1)
    for level, precision in enumerate(precisions):
        above = np.broadcast_to(tree.spread(level - 1, spent) if level else spent, tree.level_sizes[level])
        spent = above + precision
    return spent.max()


@each("tree", TREES.values())
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("objective", ["levels", "cells", "worst"])
def test_releases_are_as_accurate_as_the_plan_promises(tree, mechanism, objective):
    loss = {  # of every kind, each with every noise
        "levels": {"epsilon": 0.8, "delta": 1e-5},
        "cells": {"rho": 0.03, "max_contributions": 2},
        "worst": {"rho": 0.1, "neighbors": "replace"},
    }[objective]
    plan = dpt.plan(
        copies(tree, 4000), mechanism=mechanism, objective=objective, consistency="linear", **loss
    )
    rng = np.random.default_rng([ord(letter) for letter in mechanism + objective])
    errors, _ = errors_of_copies(plan, tree, rng)
    sizes = [tree.n_listed(level) for level in range(tree.depth + 1)]
    squares = np.split((errors**2).mean(axis=0), np.cumsum(sizes)[:-1])
    seen = np.sqrt([level.mean() if len(level) else np.nan for level in squares])
    shown = ~np.isnan(plan.std_errors[1:])
    np.testing.assert_allclose(seen[shown], plan.std_errors[1:][shown], rtol=0.04)


def errors_of_copies(plan, tree, rng):
    """Release many copies of a tree at once: give their errors, and those that the table states."""
    leaves = rng.poisson(40, tree.n_leaves)
    exact = np.concatenate([level[tree.listed(i)] for i, level in enumerate(tree.roll_up(leaves))])
    table = plan.release(np.tile(leaves, plan.tree.n_leaves // tree.n_leaves), rng=rng)
    return by_node(table, "count", tree) - exact, by_node(table, "std_error", tree)


@each("tree", TREES.values())
def test_a_split_keeps_its_promise_and_its_budget(tree):
    plan = dpt.plan(tree, rho=0.02, objective="cells", consistency="linear")
    assert (plan.unit_noise_scales**-2.0 / 2).sum() <= 0.02 * (1 + 1e-15)
    rng, many = np.random.default_rng(3), copies(tree, 1500)
    plan = dpt.plan(many, rho=0.02, objective="cells", consistency="linear")
    errors, stated = errors_of_copies(plan, tree, rng)
    z = errors / stated
    assert np.sqrt((z**2).mean()) == pytest.approx(1, abs=0.04)
    assert np.abs(z.mean(axis=0)).max() < 5 / np.sqrt(len(z))
    leaves = rng.poisson(40, tree.n_leaves)
    whole = dpt.plan(tree, rho=0.02).release(leaves, rng=rng)
    assert (whole["count"] >= 0).all() and whole["count"].dtype == np.int64


@each("objective", ["levels", "cells", "worst"])
def test_on_uniform_trees_nothing_is_left_to_gain(objective):
    for tree in (UNIFORM, TREES["flat"], dpt.Tree.from_branching([100] * 4)):
        plan = dpt.plan(tree, rho=0.01, objective=objective)
        assert 1 - 1e-9 <= plan.gap <= 1.0001
        assert "1.0000 times the least" in plan.gap_reason


def test_the_gap_is_shown_where_it_is_known():
    ragged = TREES["ragged"]
    assert 1 <= dpt.plan(ragged, rho=0.01).gap < dpt.plan(ragged, rho=0.01, split="uniform").gap
    for options, reason in [
        ({"epsilon": 1.0}, "laplace"),
        ({"rho": 0.01, "neighbors": "replace"}, "replaced"),
        ({"rho": 50.0}, "1.5 and more"),
    ]:
        plan = dpt.plan(ragged, **options)
        assert plan.gap is None and reason in plan.gap_reason
        assert "Gap" not in repr(plan) and "Gap" not in plan._repr_html_()


def test_levels_that_are_not_measured_are_said():
    tree = dpt.Tree.from_branching([3, 4])
    plan = dpt.plan(tree, epsilon=1.0, split={"level_2": 1.0})
    for text in (repr(plan), plan._repr_html_()):
        assert "Not measured; from the levels below: total, level_1." in text
        assert "inf" not in text and "0.000" not in text
    assert plan.to_frame()["noise_scale"].tolist()[:2] == [np.inf] * 2
    known = dpt.plan(tree, epsilon=1.0, known={"total": 9}, split="uniform")
    assert "Not measured" not in repr(known) and "inf" not in repr(known)
    domain = dpt.Domain.from_frame(pd.DataFrame({"a": [1, 2]}), by=["a"])
    joint = dpt.plan_agg(
        domain, {"n": "count", "x": dpt.sum("x", bounds=(0, 1))}, epsilon=1.0, split={"a": 1.0}
    )
    assert "Not measured; from the levels below: total of n, total of x." in repr(joint)


def test_with_confidence_a_plan_shows_half_widths():
    tree = dpt.Tree.from_branching([2, 3])
    plan = dpt.plan(tree, epsilon=1.0, confidence=0.95)
    table = plan.to_frame()
    assert list(table)[-2:] == ["std_error", "half_width"] and "half_width" in repr(plan)
    assert (1.9 * table["std_error"] < table["half_width"]).all()
    assert "half_width" not in dpt.plan(tree, epsilon=1.0).to_frame()
    counts = plan.release(np.full(6, 10**6))
    widths = ((counts["upper"] - counts["lower"]) / 2).groupby(counts["level"], observed=True).max()
    assert np.allclose(widths, table["half_width"], atol=1.01)  # the ends are whole numbers


def test_the_gap_does_not_depend_on_the_loss():
    gaps = [
        dpt.plan(TREES["ragged"], mechanism="gaussian", **loss).gap
        for loss in ({"rho": 0.01}, {"rho": 1e-6}, {"epsilon": 0.1, "delta": 1e-6})
    ]
    assert gaps == pytest.approx([gaps[0]] * 3, rel=1e-4)


def test_a_better_gap_is_a_smaller_error():
    table = dpt.plan(TREES["ragged"], epsilon=0.5, delta=1e-6, mechanism="gaussian").compare()
    gaussian = table.loc["gaussian"]
    np.testing.assert_allclose(
        gaussian["gap"] / gaussian["objective"] ** 2,
        gaussian["gap"].iloc[0] / gaussian["objective"].iloc[0] ** 2,
        rtol=1e-3,
    )


@each("split", ["optimal", "uniform"])
def test_a_plan_goes_through_json(domain, split):
    options = {"privacy_unit": "person", "max_contributions": 2, "consistency": "linear"}
    plan = dpt.plan(domain, rho=0.1, split=split, mechanism="gaussian", **options)
    back = dpt.Plan.from_dict(json.loads(json.dumps(plan.to_dict())), domain)
    assert repr(back) == repr(plan)
    visits = dpt.datasets.clinic_visits(500)
    tables = [p.release(visits, rng=np.random.default_rng(2)) for p in (plan, back)]
    pd.testing.assert_frame_equal(*tables)


def test_a_plan_read_from_json_refuses_another_domain(domain):
    written = dpt.plan(domain, epsilon=1.0).to_dict()
    closed = dpt.datasets.clinics().iloc[1:]
    with pytest.raises(dpt.DomainError, match="the one that this plan was made for"):
        dpt.Plan.from_dict(written, dpt.Domain.from_frame(closed, by=BY))
    renamed = dpt.datasets.clinics().replace({"Aldmark": "Aldmarsh"})
    with pytest.raises(dpt.DomainError):
        dpt.Plan.from_dict(written, dpt.Domain.from_frame(renamed, by=BY))
    with pytest.raises(dpt.ArgumentError, match="not a plan"):
        dpt.Plan.from_dict({"format": "something"}, domain)


def test_a_plan_that_was_tampered_with_spends_no_more(domain):
    plain = dpt.plan(domain, epsilon=1.0).to_dict()
    with pytest.raises(dpt.ArgumentError, match="`unit_noise_scales` do not follow from the shares"):
        dpt.Plan.from_dict(replaced(plain, ("shares", 0), [0.5]), domain)
    for key, value in [
        ("mechanism", "none"),
        ("consistency", "magic"),
        ("shares", [[1.0]]),
        ("loss", {}),
        ("objective", "foo"),
        ("level_weights", [-1, 1, 1, 1]),
        ("level_weights", None),
        ("privacy_unit", "region"),
        ("privacy_unit", ["person"]),
        ("neighbors", "swap"),
        ("max_contributions", 0),
        ("shares", [[0.25], [0.25], [0.25] * 5, [0.25]]),
    ]:
        with pytest.raises(dpt.ArgumentError):
            dpt.Plan.from_dict(replaced(plain, (key,), value), domain)
    for key in set(plain) - {"version", "digest"}:
        with pytest.raises(dpt.ArgumentError):
            dpt.Plan.from_dict(without(plain, key), domain)
    with pytest.raises(dpt.DomainError):
        dpt.Plan.from_dict(plain, dpt.datasets.clinics())


def test_a_privacy_unit_that_json_cannot_hold_is_refused(domain):
    with pytest.raises(dpt.ArgumentError, match="cannot be serialized"):
        dpt.plan(domain, epsilon=1.0, privacy_unit=("a", "b"), max_contributions=2).to_dict()


def test_a_plan_is_a_table_in_a_notebook_and_a_picture(domain):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    plan = dpt.plan(domain, rho=0.1)
    html = plan._repr_html_()
    assert html.count("<tr") == 5 and "noise_scale" in html and "Gap" in html
    axes = plan.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["total", *BY]
    drawn = {line.get_label(): line.get_xdata() for line in axes.get_lines()}
    np.testing.assert_allclose(drawn["this plan"], plan.std_errors)
    assert set(drawn) == {"this plan", "even split"}
    matplotlib.pyplot.close("all")


def test_plotting_without_matplotlib_names_it(domain, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)
    with pytest.raises(dpt.MissingExtraError, match="pip install matplotlib"):
        dpt.plan(domain, rho=0.1).plot()


def domain_with_closed_clinics(n_closed):
    places = dpt.datasets.clinics()
    places["closed"] = np.arange(len(places)) < n_closed
    return dpt.Domain.from_frame(places, by=BY, structural_zeros="closed")


def totals_of(domain, depth, size=20):
    keys = domain.keys(depth)
    return pd.Series(size, index=pd.MultiIndex.from_frame(keys) if depth > 1 else pd.Index(keys[BY[0]]))


# What is known, what is added up, and what the table shows besides.


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@each("split", ["optimal", "uniform", "geometric"])
@each("consistency", ["linear", "none"])
def test_a_known_level_costs_nothing_and_helps_the_others(domain, mechanism, split, consistency):
    options = {"rho": 0.1, "mechanism": mechanism, "split": split, "consistency": consistency}
    before = dpt.plan(domain, **options)
    after = dpt.plan(domain, known={"region": totals_of(domain, 1, 250)}, **options)
    assert after.budget_shares[:2].tolist() == [0, 0] and np.isinf(after.noise_scales[:2]).all()
    assert after.std_errors[:2].tolist() == [0, 0]
    assert (
        after.budget_shares.sum() == pytest.approx(1) and (after.std_errors[2:] < before.std_errors[2:]).all()
    )
    few = dpt.plan(domain, known={"region": totals_of(domain, 1, 250).iloc[:1]}, **options)
    assert 0 < few.std_errors[1] and (few.noise_scales[1] < np.inf or few.budget_shares[1] == 0)


FULL = [
    {"known": {"total": 400, "region": {"North": 100}}, "rho": 0.1, "split": "geometric"},
    {"known": pd.DataFrame({"region": ["North"], "at_least": [30]}), "epsilon": 1.0, "consistency": "none"},
    {"column": "cost", "bounds": (-5, 500), "granularity": 0.25, "epsilon": 1.0, "delta": 1e-6},
]


def full(domain, options):
    region = domain.keys(1)["region"].iloc[0]
    known = options.get("known")
    if isinstance(known, pd.DataFrame):
        known = known.assign(region=region)
    elif known is not None:
        known = {**known, "region": {region: 100}}
    return dpt.plan(domain, confidence=0.9, keep=["measurements"], **{**options, "known": known})


@pytest.mark.parametrize("options", FULL, ids=["known", "at_least", "column"])
def test_a_full_plan_can_be_shown_compared_and_serialized(options):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    domain = domain_with_closed_clinics(3)
    plan = full(domain, options)
    table = plan.compare()
    assert table.index[0] == (plan.noise.name, plan.split) and np.isfinite(table["objective"]).all()
    assert plan.headline in repr(plan) and plan._repr_html_().count("<tr") == 5
    label = plan.plot().get_xlabel()
    assert label == f"expected standard error ({options.get('column', 'counts')})"
    matplotlib.pyplot.close("all")
    back = dpt.Plan.from_dict(json.loads(json.dumps(plan.to_dict())), domain)
    assert back.to_dict() == plan.to_dict() and repr(back) == repr(plan)
    visits = dpt.datasets.clinic_visits(300)
    tables = [each.release(visits, rng=np.random.default_rng(2)) for each in (plan, back)]
    pd.testing.assert_frame_equal(*tables)
    assert tables[0].attrs == tables[1].attrs
    for other in (domain_with_closed_clinics(2), domain_with_closed_clinics(0)):
        with pytest.raises(dpt.DomainError, match="the one that this plan was made for"):
            dpt.Plan.from_dict(plan.to_dict(), other)


NO_NUMBERS = [None, "1", -1, 2, 10**400, float("nan"), float("inf"), [], {}, [[1]], True]
TAMPERED = [
    *((("confidence",), value) for value in NO_NUMBERS[1:]),
    *((("keep_measurements",), value) for value in [None, 1, "yes", []]),
    *((("quantity", "unit"), value) for value in [[0, 1], [1, 0], [-1, 2], [10**400, 1], [1, 10**400],
                                                  [1, 2, 3], [0.5, 1], "1/2", None, 1, [], [[1], [2]]]),
    *((("quantity", "low"), value) for value in [3000, 0.5, None, "1", -(2**40), True]),
    *((("quantity", "high"), value) for value in [-21, 2**40, None, [1]]),
    *((("quantity", "shift"), value) for value in [2**40, 0.5, None]),
    *((("quantity", "column"), value) for value in [None, ["cost"], {}, "region", "level", "count"]),
    *((("quantity",), value) for value in [None, [], {}, "cost", {"column": "cost"}]),
    *((("known",), value) for value in [None, [], {}, "all", {"exact": []}]),
    *((("known", "exact"), value) for value in [
        None, [[]], [[[0, 5]], [[0, 6]], [], []], [[[0, -1]], [], [], []], [[[1, 5]], [], [], []],
        [[[0, 0.5]], [], [], []], [[[0, 2**62]], [], [], []], [[[0]], [], [], []], [["0"], [], [], []],
    ]),
    (("known", "at_least"), [[[0, 7]], [], [], [[0, -7]]]),
    *((("shares",), value) for value in [None, 1, [], [[10**400], [1], [1], [1]], [[1]] * 3, [[1]] * 5]),
    *((("level_weights",), value) for value in [[10**400, 1, 1, 1], "1", [[1, 1, 1, 1]], {}]),
    *((("loss",), value) for value in [None, [], {"epsilon": 10**400}, {"epsilon": "1"}, {"gamma": 1}]),
    *((("max_contributions",), value) for value in [None, 0, 0.5, "1", [1], 2**70]),
    *((("mechanism",), value) for value in [None, ["laplace"], {}, "staircase"]),
    *((("neighbors",), value) for value in [None, ["replace"], {}, "swap"]),
    *((("consistency",), value) for value in [None, ["none"], "whole"]),
    *((("fit",), value) for value in [None, ["totals"], "both"]),
    *((("objective",), value) for value in [None, ["levels"], "mean"]),
]  # fmt: skip


@pytest.fixture(scope="module")
def written_sums(domain):
    return dpt.plan(domain, epsilon=1.0, column="cost", bounds=(-5, 500), granularity=0.25).to_dict()


@each("place, value", TAMPERED)
def test_whatever_is_tampered_with_is_an_argument_error(domain, written_sums, place, value):
    with pytest.raises(dpt.ArgumentError) as caught:
        dpt.Plan.from_dict(replaced(written_sums, place, value), domain)
    assert caught.value.hint


def test_whatever_is_missing_is_an_argument_error(domain):
    written = full(domain, FULL[0]).to_dict()
    for key in set(written) - {"version", "digest"}:
        with pytest.raises(dpt.ArgumentError):
            dpt.Plan.from_dict(without(written, key), domain)
        for inner in written[key] if isinstance(written[key], dict) else []:
            with pytest.raises(dpt.ArgumentError):
                dpt.Plan.from_dict(without(written, key, inner), domain)


def test_known_counts_that_json_contradicts_are_named(domain):
    written = dpt.plan(domain, epsilon=1.0, known={"total": 5}).to_dict()
    contradicted = replaced(written, ("known", "at_least", 1), [[0, 3], [1, 3]])
    with pytest.raises(dpt.ArgumentError, match=r"the total holds 5, but .* together hold at least 6"):
        dpt.Plan.from_dict(contradicted, domain)


# What cannot be planned.


@each("ending", ["std_error", "lower", "upper", "measurement", "noise_scale"])
def test_a_key_may_not_be_named_as_a_column_of_errors(ending):
    domain = dpt.Domain.from_frame(pd.DataFrame({f"cost_{ending}": ["a", "b"]}), by=[f"cost_{ending}"])
    with pytest.raises(dpt.ColumnsError, match="two columns of the released table the same name"):
        dpt.plan(domain, epsilon=1.0, column="cost", bounds=(0, 1))


def test_a_plan_that_was_tampered_with_keeps_to_the_domain_and_to_sums():
    domain = domain_with_closed_clinics(3)
    written = dpt.plan(domain, epsilon=1.0, column="cost", bounds=(0, 5)).to_dict()
    nothing = {"exact": [[], [], [], []], "at_least": [[], [], [], []]}
    with pytest.raises(dpt.ArgumentError, match=r"do not follow from the others: .'known'"):
        dpt.Plan.from_dict(replaced(written, ("known",), nothing), domain)
    for kind in ("exact", "at_least"):
        with pytest.raises(dpt.ArgumentError, match="holds counts, not sums"):
            dpt.Plan.from_dict(replaced(written, ("known", kind, 0), [[0, 5]]), domain)
    counts = dpt.plan(domain, epsilon=1.0).to_dict()
    with pytest.raises(dpt.ArgumentError, match=r"two counts, [04] and [04]"):
        dpt.Plan.from_dict(replaced(counts, ("known", "exact", 3, 0, 1), 4), domain)


@each("shift", [5, -5])
def test_a_file_cannot_shift_the_values_of_a_sum(domain, shift):
    """The table would show sums of differences under the name of the column."""
    written = dpt.plan(domain, column="cost", bounds=(0, 10), epsilon=1.0).to_dict()
    with pytest.raises(dpt.ArgumentError, match="values of a sum are shifted"):
        dpt.Plan.from_dict(replaced(written, ("quantity", "shift"), shift), domain)

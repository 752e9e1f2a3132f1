"""The best plan that the options allow: comparisons, targets, and what cannot be planned."""

import itertools

import numpy as np
import pytest

import pandas_dptree as dpt
from pandas_dptree.verbs.domains import domain_of
from tests.helpers_cases import each

BY = ["region", "district", "clinic"]
RAGGED = dpt.Tree.from_paths([[0, 0], [1, 0], [1, 1], [2, 0], [2, 1], [2, 2], [2, 3]])


@each("loss", [{"epsilon": 1.0, "delta": delta} for delta in (1e-6, 1e-3, 0.1)] + [{"rho": 0.05}])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("branching", [[2] * 10, [3] * 7, [5, 6, 10], [40]], ids=str)
def test_optimal_is_never_worse_than_the_simple_splits(branching, mechanism, loss):
    tree = dpt.Tree.from_branching(branching)
    errors = {
        split: dpt.plan(tree, mechanism=mechanism, split=split, **loss).expected_error
        for split in ("optimal", "uniform", "geometric")
    }
    assert errors["optimal"] <= min(errors.values()) * (1 + 1e-6)


def test_compare_puts_the_chosen_plan_first_and_the_others_in_order(domain):
    plan = dpt.plan(domain, epsilon=1.0, delta=1e-6)
    table = plan.compare()
    assert table.index[0] == (plan.noise.name, "optimal")
    assert table["objective"].iloc[1:].is_monotonic_increasing
    assert table["objective"].iloc[0] == pytest.approx(table["objective"].min())
    assert set(table.index.get_level_values("mechanism")) == {"laplace", "gaussian"}
    assert list(table.columns) == ["total", *BY, "objective", "gap"]
    assert set(dpt.plan(domain, epsilon=1.0).compare().index.get_level_values("mechanism")) == {"laplace"}


def test_auto_takes_the_better_noise():
    few = dpt.plan(dpt.Tree.from_branching([10]), epsilon=1.0, delta=1e-3)
    many = dpt.plan(dpt.Tree.from_branching([2] * 12), epsilon=1.0, delta=1e-3)
    assert (few.noise.name, many.noise.name) == ("laplace", "gaussian")
    for plan in (few, many):
        forced = [
            dpt.plan(plan.tree, epsilon=1.0, delta=1e-3, mechanism=m).expected_error
            for m in ("laplace", "gaussian")
        ]
        assert plan.expected_error == min(forced)


@each("target", [{"district": 25.0}, {"region": 6.0, "clinic": dpt.relative(0.05, of=200)}])
@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({}, "epsilon"),
        ({"delta": 1e-6}, "epsilon"),
        ({"mechanism": "gaussian"}, "rho"),
        ({"split": "uniform"}, "epsilon"),
    ],
    ids=str,
)
def test_a_target_is_met_and_hardly_more(domain, target, options, kind):
    plan = dpt.plan(domain, target=target, **options)
    names = list(plan.level_names)
    reached = {name: plan.std_errors[names.index(name)] / wanted for name, wanted in target.items()}
    assert max(reached.values()) == pytest.approx(1, abs=2e-5) and max(reached.values()) <= 1 + 1e-12
    size = getattr(plan, kind)
    less = dpt.plan(
        domain, **{kind: size * 0.99}, objective="worst", mechanism=plan.noise,
        delta=options.get("delta", 0.0), split=options.get("split", "optimal"),
        level_weights={name: target.get(name, np.inf) ** -2.0 for name in names},
    )  # fmt: skip
    assert max(less.std_errors[names.index(name)] / wanted for name, wanted in target.items()) > 1


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, marks=pytest.mark.slow),
        pytest.param({"delta": 1e-6, "neighbors": "replace"}, marks=pytest.mark.slow),
        pytest.param({"mechanism": "gaussian", "known": {"total": 60_000}}, marks=pytest.mark.slow),
        {"split": "uniform", "column": "cost", "bounds": (0, 500)},
    ],
    ids=str,
)
def test_a_half_width_is_that_of_the_widest_interval_and_hardly_less(options):
    confidence = 0.9
    unit = 500 if "column" in options else 1
    wanted = {"level_1": 50.0 * unit, "level_2": 40.0 * unit}
    target = {name: dpt.within(width, confidence=confidence) for name, width in wanted.items()}
    plan = dpt.plan(RAGGED, target=target, confidence=confidence, **options)
    reached = dict(zip(plan.level_names, plan.to_frame()["half_width"], strict=True))
    ratios = [reached[name] / width for name, width in wanted.items()]
    assert 1 - 2e-3 < max(ratios) <= 1


def test_half_widths_of_noisy_counts_are_within_a_count():
    plan = dpt.plan(RAGGED, target={"level_2": dpt.within(50, confidence=0.95)}, consistency="none")
    q = np.exp(-1 / plan.unit_noise_scales[-1])
    outside = 2 * q ** np.arange(49, 53) / (1 + q)  # the probability of at least so much
    assert outside[2] <= 0.05 < outside[0]  # ± 50 holds, ± 48 does not
    assert plan.std_errors[-1] < 25.6  # that of normal errors, which is too much here


def test_a_half_width_beside_a_standard_error_and_a_stated_loss():
    tree = dpt.Tree.from_branching([4, 9])
    target = {"level_1": dpt.within(50, confidence=0.95), "level_2": 25.0}
    plan = dpt.plan(tree, target=target)
    assert plan.std_errors[2] == pytest.approx(25, rel=1e-3)
    assert 49 < plan.largest_half_widths(0.95)[1] <= 50
    enough = dpt.plan(tree, target=target, epsilon=2 * plan.epsilon)
    assert enough.epsilon == 2 * plan.epsilon and enough.largest_half_widths(0.95)[1] < 26
    with pytest.raises(dpt.ArgumentError, match=f"needs epsilon={plan.epsilon:.4g}") as caught:
        dpt.plan(tree, target=target, epsilon=plan.epsilon / 2)
    assert "would give about {'level_1': within(100, confidence=0.95), 'level_2': 50.0" in caught.value.hint


@each(
    "width, confidence", [(0, 0.9), (float("inf"), 0.9), ("50", 0.9), (50, 0), (50, 1), (50, 95), (50, True)]
)
def test_bad_half_widths(width, confidence):
    with pytest.raises(dpt.ArgumentError, match=r"within\(50, confidence=0\.95\)"):
        dpt.within(width, confidence=confidence)


def test_targets_that_cannot_be_met_name_one_that_can(domain):
    with pytest.raises(dpt.ArgumentError, match=r"needs epsilon=0\.28.*more than 0\.1") as caught:
        dpt.plan(domain, target={"district": 5.0}, epsilon=0.1)
    assert "epsilon=0.1 would give standard errors of {'district': 14.1" in caught.value.hint
    assert dpt.plan(domain, target={"district": 5.0}, epsilon=1.0).epsilon == 1.0
    with pytest.raises(dpt.ArgumentError, match="more than 1000"):
        dpt.plan(domain, target=dict.fromkeys(["total", *BY], 1e-6), max_contributions=100)


@each(
    "options",
    [
        {"target": {"town": 5.0}},
        {"target": {}},
        {"target": {"clinic": 0.0}},
        {"target": {"clinic": float("nan")}},
        {"target": 5.0},
        {"target": {"clinic": 5.0}, "level_weights": {"clinic": 1.0}},
        {"target": {"clinic": 5.0}, "objective": "cells"},
        {"target": {"clinic": 1e6}},
        {"target": {"total": 5000.0}, "delta": 1e-3},
        {"target": {"clinic": 50.0}, "delta": 0.1, "mechanism": "gaussian"},
    ],
)
def test_bad_targets(domain, options):
    with pytest.raises(dpt.ArgumentError) as caught:
        dpt.plan(domain, **options)
    assert caught.value.argument == "target" and caught.value.hint


def test_a_plan_sees_no_records(domain):
    class Unreadable:
        def __getattr__(self, name):
            raise AssertionError(f"looked at {name}")

    assert domain_of(Unreadable(), BY, domain) is domain
    made = domain_of(Unreadable(), BY, dpt.datasets.clinics())
    assert dpt.plan(made, rho=0.1).to_dict() == dpt.plan(domain, rho=0.1).to_dict()


COST = {"column": "cost", "bounds": (0, 500), "granularity": 0.25}


# Targets in the measure of a column.


@pytest.mark.parametrize(
    ("options", "units", "targets"),
    [
        ({}, (0.001, 100), (2000.0, 90_000.0)),
        ({"mechanism": "gaussian"}, (0.001, 0.25, 100), (2000.0, 90_000.0)),
        ({"delta": 1e-6}, (0.25,), (2000.0,)),
        pytest.param({}, (0.25,), (2000.0, 90_000.0), marks=pytest.mark.slow),
        pytest.param({"delta": 1e-6}, (0.001, 100), (2000.0, 90_000.0), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_a_target_for_a_column_is_in_its_own_measure(domain, options, units, targets):
    for unit, wanted in itertools.product(units, targets):
        summed = {"column": "cost", "bounds": (0, 500), "granularity": unit}
        plan = dpt.plan(domain, target={"district": wanted}, **summed, **options)
        assert plan.std_errors[2] == pytest.approx(wanted, rel=1e-4) and plan.std_errors[2] <= wanted * (
            1 + 1e-12
        )
        counts = dpt.plan(domain, target={"district": wanted / 500}, **options)
        size = "rho" if options.get("mechanism") else "epsilon"
        assert getattr(plan, size) == pytest.approx(getattr(counts, size), rel=0.02)


@each(
    "target, options, said",
    [
        ({"district": 5.0}, {"epsilon": 0.1}, r"'district': 7[0-9]{3}\.\d*}"),
        ({"district": 1e-9}, {}, r"from 2\.5e-07 to 5e\+07, not \[1e-09\]"),
        ({"district": 1e9, "clinic": 0.3}, {}, r"from 2\.5e-07 to 5e\+07, not \[1000000000.0, 0.3\]"),
        ({"total": 1e7}, {"delta": 1e-3}, r"\[10000000\.0, inf, inf, inf\] is met by delta alone"),
    ],
)
def test_messages_about_targets_are_in_the_measure_of_the_column(domain, target, options, said):
    with pytest.raises(dpt.ArgumentError, match=said) as caught:
        dpt.plan(domain, target=target, **options, **COST)
    assert caught.value.argument == "target" and caught.value.hint


# What cannot be planned.


@each(
    "options, argument, said",
    [
        ({"known": {"total": 5, "region": "NORTH:9"}}, "known", "the total holds 5, but"),
        ({"known": {"town": 5}}, "known", "'town'"),
        ({"known": {"total": -1}}, "known", "is not a count"),
        ({"known": {"total": 0.5}}, "known", "is not a count"),
        ({"known": {"region": {"Atlantis": 5}}}, "known", "region='Atlantis'"),
        ({"known": 5}, "known", "not an int"),
        ({"known": {"clinic": "all"}}, "known", "covers all leaves"),
        ({"known": {"total": 0}}, "known", "covers all leaves"),
        ({"known": {"total": 5}, "column": "cost", "bounds": (0, 1)}, "known", "sums of a column"),
        ({"known": {"total": 5}, "split": {"total": 0.5, "clinic": 0.5}}, "split", r"all known: \['total'\]"),
        ({"known": {"total": 5}, "target": {"total": 5.0}, "epsilon": None}, "target", "all known"),
        ({"confidence": 95}, "confidence", "between 0 and 1, not 95"),
        ({"confidence": 0}, "confidence", "between 0 and 1"),
        ({"confidence": 1.0}, "confidence", "between 0 and 1"),
        ({"confidence": float("nan")}, "confidence", "between 0 and 1"),
        ({"confidence": True}, "confidence", "between 0 and 1"),
        ({"confidence": "0.9"}, "confidence", "between 0 and 1"),
        ({"keep": "measurements"}, "keep", "must be a list"),
        ({"column": "cost"}, "bounds", "must be given"),
        ({"column": "cost", "bounds": (5, 0)}, "bounds", "the lower one first"),
        ({"column": "cost", "bounds": 5}, "bounds", "the lower one first"),
        ({"column": "cost", "bounds": (0, 1), "granularity": 0}, "granularity", "positive number"),
        ({"column": "region", "bounds": (0, 1)}, "column", "'region'"),
        ({"column": "level", "bounds": (0, 1)}, "column", "'level'"),
        ({"column": "count", "bounds": (0, 1)}, "column", "'count'"),
        ({"column": ["a", "b"], "bounds": (0, 1)}, "column", "must name a column"),
    ],
)
def test_what_cannot_be_planned(domain, options, argument, said):
    known = options.get("known")
    if isinstance(known, dict) and known.get("region") == "NORTH:9":
        options = {"known": {**known, "region": {domain.keys(1)["region"].iloc[0]: 9}}}
    if known == {"clinic": "all"}:
        options = {"known": {"clinic": np.zeros(domain.tree.n_leaves)}}
    with pytest.raises(dpt.ArgumentError, match=said) as caught:
        dpt.plan(domain, **{"epsilon": 1.0, **options})
    assert caught.value.argument == argument and caught.value.hint

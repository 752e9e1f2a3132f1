"""Plans of every kind in JSON: read back unchanged, or refused."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pandas_dptree as dpt
from pandas_dptree.mechanisms.multiplicative.thresholds import group_loss
from pandas_dptree.mechanisms.private_levels.gated import GatedLevels
from pandas_dptree.plans import serialize
from pandas_dptree.privacy.gated import gated_delta
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import count_sensitivity
from tests.helpers_cases import each
from tests.helpers_json import json_values, places_in_json, replaced, without
from tests.helpers_plans import (
    BY,
    DOMAIN,
    PLACES,
    quantiles_spend_no_more,
    spends_no_more,
    spends_no_more_than_stated,
)
from tests.helpers_privacy import LOSS
from tests.strategies import domains_and_rows

KINDS = {kind.__name__: kind for kind in dpt.Plan._kinds.values()}
PREFIXES = dpt.prefixes("ip", bits=[8, 16], notation="number")
REGIONS = dpt.Domain.from_frame(PLACES[["region"]].drop_duplicates(), by=["region"])


def planned(
    domain=DOMAIN,
    *,
    alpha=0.25,
    threshold=None,
    failure_probability=None,
    calibration="exact",
    clip=False,
    **options,
):
    wish = dpt.Multiplicative(
        alpha=alpha,
        threshold=threshold,
        failure_probability=failure_probability,
        calibration=calibration,
        clip=clip,
    )
    return dpt.plan(domain, **LOSS, mechanism=wish, **options)


CROSSED = dpt.cross(place=DOMAIN, other=dpt.Tree.from_branching([2]))
PLANS = [
    dpt.plan(DOMAIN, **LOSS, known={"total": 500}, confidence=0.9),
    planned(privacy_unit="person", max_contributions=2),
    dpt.plan_agg(
        DOMAIN, {"n": "count", "cost": dpt.mean("cost", bounds=(0, 500))}, **LOSS, mechanism="gaussian",
        privacy_unit="person", max_contributions=2,
    ),
    dpt.plan(
        PREFIXES, **LOSS, split={"total": 0.25, "ip/8": 0.25, "ip/16": 0.5}, mechanism="truncated_laplace"
    ),
    dpt.plan(PREFIXES, **LOSS, mechanism=dpt.Multiplicative(alpha=0.25, clip=True)),
    dpt.plan_distribution("cost", bounds=(0, 500), bins=8, domain=DOMAIN, **LOSS),
    dpt.plan_quantiles("cost", [0.25, 0.5], bounds=(0, 500), bins=8, domain=DOMAIN, mechanism="exponential",
    **LOSS),
    dpt.plan_units(DOMAIN, **LOSS, privacy_unit="person", max_nodes={"region": 1, "district": 3}),
    dpt.plan(CROSSED, **LOSS, margins=["region", "other"]),
]  # fmt: skip
GATED = {
    "Gaussian thresholds": dpt.plan(PREFIXES, **LOSS, mechanism="gaussian", split="doubling"),
    "private keys": dpt.plan(
        REGIONS, private_keys=["district"], **LOSS, mechanism="gaussian", privacy_unit="person",
        max_contributions=2,
    ),
    "private keys alone": dpt.plan(None, private_keys=BY, **LOSS, privacy_unit=dpt.ROWS),
}  # fmt: skip
PEOPLE = {"privacy_unit": "person", "max_nodes": 3}
UNITS = {
    "units with Gaussian noise": dpt.plan_units(DOMAIN, rho=0.1, **PEOPLE, known={"total": 500}),
    "units with an epsilon": dpt.plan_units(DOMAIN, epsilon=1.0, **PEOPLE, neighbors="replace"),
    "units beside rows": dpt.plan_agg(
        DOMAIN, {"n": "count", "people": "units"}, rho=0.1, **PEOPLE, max_contributions=4
    ),
}
WRITTEN = {type(plan).__name__: plan.to_dict() for plan in PLANS}
HIERARCHY = {type(plan).__name__: plan.hierarchy for plan in PLANS}
EACH = {type(plan).__name__: plan for plan in PLANS} | GATED | UNITS


def through_json(plan, domain=DOMAIN):
    return type(plan).from_dict(json.loads(json.dumps(plan.to_dict(), allow_nan=False)), domain)


def spends_what_it_states(plan):
    """Tell whether the mechanism is laid out for the loss that the plan states, or for less."""
    loss = plan.loss
    if isinstance(plan, dpt.JointPlan) and plan.units is not None and plan.rho is not None:
        return spends_no_more_beside_rows(plan)
    if isinstance(plan, dpt.JointPlan):
        return spends_no_more([each for each in plan.plans.values() if each.budget_shares.any()], loss)
    if isinstance(plan, dpt.DistributionPlan):
        return spends_no_more_than_stated(plan)
    if isinstance(plan, dpt.QuantilePlan):
        return quantiles_spend_no_more(plan)
    if isinstance(plan, dpt.ImplicitPlan):
        unit = {"neighbors": plan.neighbors, "max_contributions": plan.max_contributions}
        if isinstance(plan.noise, GatedLevels):
            return (
                gated_delta(loss.epsilon, plan.noise.noise_scales, plan.noise.thresholds, **unit)
                <= loss.delta
            )
        assert {each.sensitivity for each in plan.noise.levels} == {count_sensitivity(**unit).l1}
        epsilon, delta = (
            sum(Fraction(getattr(each, name)) for each in plan.noise.levels) for name in ("epsilon", "delta")
        )
        return epsilon <= loss.epsilon and delta <= loss.delta
    if isinstance(plan, dpt.MultiplicativePlan | dpt.ImplicitMultiplicativePlan):
        sensitivity = count_sensitivity(neighbors=plan.neighbors, max_contributions=plan.max_contributions)
        each = group_loss(loss, sensitivity.l1)
        return (plan.chain.epsilon, plan.chain.delta) == (each.epsilon, each.delta)
    scales = plan.unit_noise_scales
    if loss.kind == "approximate":
        return plan.noise.delta(loss.epsilon, scales, plan.sensitivity) <= loss.delta
    return plan.noise.spent(loss, plan.sensitivity, scales) <= plan.noise.budget(loss)


def spends_no_more_beside_rows(plan):
    """Add up what counts of rows, counts of units and excesses cost a unit of any shape, with a rho."""
    rows, units = plan.plans["n"], plan.plans["people"]
    precisions = [1 / np.square(each.unit_noise_scales) for each in (rows, units)]
    most = plan.max_contributions
    costs = [
        sum(precisions[0] * [(most - nodes + 1) ** 2 + nodes - 1 for nodes in shape])
        + sum(precisions[1] * [*shape, *np.diff(shape) ** 2])
        for shape in itertools.product(*(range(1, each + 1) for each in units.max_nodes))
        if list(shape) == sorted(shape)
    ]
    return max(costs) / 2 <= plan.rho * (1 + 1e-12)


@settings(max_examples=settings.default.max_examples // 4)  # each takes long
@given(
    drawn=domains_and_rows(),
    alpha=st.floats(0.01, 0.99),
    failure_probability=st.none() | st.floats(1e-9, 0.49),
    shape=st.sampled_from([{}, {"threshold": 1e9}, {"clip": True}, {"calibration": "proof"}]),
    neighbors=st.sampled_from(["add_remove", "replace"]),
)
def test_a_plan_of_factors_goes_through_json(drawn, alpha, failure_probability, shape, neighbors):
    domain, rows = drawn
    plan = planned(domain, alpha=alpha, failure_probability=failure_probability, neighbors=neighbors, **shape)
    back = through_json(plan, domain)
    assert back.to_dict() == plan.to_dict() and repr(back) == repr(plan) and back.mechanism == plan.mechanism
    assert (back.chain.epsilon, back.chain.delta) == (plan.chain.epsilon, plan.chain.delta)
    tables = [each.release(rows, rng=np.random.default_rng(5)) for each in (plan, back)]
    pd.testing.assert_frame_equal(*tables)
    assert tables[0].attrs == tables[1].attrs


def test_units_and_bare_trees_go_through_json():
    tree = dpt.Tree.from_branching([2, 3])
    for domain, unit in ((tree, None), (DOMAIN, "person"), (DOMAIN, 7)):
        plan = planned(domain, privacy_unit=unit, max_contributions=3)
        back = through_json(plan, domain)
        assert (back.privacy_unit, back.max_contributions, repr(back)) == (unit, 3, repr(plan))
    with pytest.raises(dpt.ArgumentError, match="`privacy_unit` cannot be serialized"):
        planned(privacy_unit=("a", "b"), max_contributions=2).to_dict()


def test_numbers_of_numpy_become_plain():
    numbers = {
        "alpha": np.float64(0.25),
        "failure_probability": np.float64(0.1),
        "threshold": np.int64(10**6),
    }
    plan = planned(**numbers, max_contributions=np.int64(2))
    assert repr(through_json(plan)) == repr(plan)
    single = planned(
        alpha=np.float32(0.25), failure_probability=np.float16(0.125), threshold=np.longdouble(2.0**20)
    )
    assert through_json(single).mechanism == dpt.Multiplicative(
        alpha=0.25, failure_probability=0.125, threshold=2.0**20
    )


@each("clip, in_force", [(False, 0.05), (True, 1 / 9)])
def test_a_failure_that_was_left_open_stays_open(clip, in_force):
    plan = planned(clip=clip)
    assert plan.to_dict()["guarantee"]["failure_probability"] is None
    back = through_json(plan)
    assert (
        back.mechanism.failure_probability is None
        and back.failure_probability == plan.failure_probability == pytest.approx(in_force)
    )


def test_another_domain_is_refused():
    renamed = dpt.Domain.from_frame(PLACES.replace({"Aldmark": "Aldmarsh"}), by=BY)
    never = dpt.Domain.from_frame(PLACES.assign(never=PLACES.index == 0), by=BY, structural_zeros="never")
    for kind, written in WRITTEN.items():
        for other in (renamed, never, DOMAIN.tree, dpt.Tree.from_branching([2]), PLACES, None):
            with pytest.raises(dpt.DomainError, match="the one that this plan was made for"):
                KINDS[kind].from_dict(written, other)


def test_each_class_reads_its_own_kind_and_names_the_other():
    for kind, written in WRITTEN.items():
        plan = dpt.Plan.from_dict(written, HIERARCHY[kind])
        assert type(plan) is KINDS[kind] and plan.to_dict() == written
        for other in KINDS.keys() - {kind}:
            with pytest.raises(dpt.ArgumentError, match=f"`data` is of kind {kind}, not {other}") as caught:
                KINDS[other].from_dict(written, HIERARCHY[kind])
            assert f"{kind}.from_dict" in caught.value.hint


def test_every_kind_is_tried_here():
    assert WRITTEN.keys() == KINDS.keys()


def test_both_kinds_describe_what_all_plans_have_in_the_same_way():
    shared = {
        "format",
        "kind",
        "version",
        "domain",
        "domain_source",
        "levels",
        "nodes",
        "loss",
        "neighbors",
        "privacy_unit",
        "max_contributions",
        "digest",
    }
    assert set.intersection(*map(set, WRITTEN.values())) == {*shared, "mechanism"}


# What is no plan


@each("kind", KINDS)
@each("data", [None, [], "plan", 1, {}, {"format": "other"}, {"format": ["x"]}, math.nan])
def test_what_is_no_plan_is_refused_with_a_hint(kind, data):
    with pytest.raises(dpt.ArgumentError, match="`data` is not a plan of this version"):
        KINDS[kind].from_dict(data, DOMAIN)


NO_NUMBERS = [None, "1", True, -1, 10**400, math.nan, math.inf, -math.inf, [], {}, [0.25]]
TAMPERED = [
    *((("mechanism",), value) for value in [None, [], {}, 1, True, "none", "staircase", "gaussian"]),
    *((("guarantee", "alpha"), value) for value in [*NO_NUMBERS, 0, 1, 1e-9]),
    *((("guarantee", "failure_probability"), value) for value in [*NO_NUMBERS[1:], 0, 0.5, 1e-300]),
    *((("guarantee", "threshold"), value) for value in [*NO_NUMBERS[1:], 0, 0.5, 100]),
    *((("guarantee", "calibration"), value) for value in [None, ["exact"], {}, 1, True, "rough"]),
    *((("guarantee", "clip"), value) for value in [None, 0, 1, "yes", [], {}]),
    *((("guarantee",), value) for value in [None, [], {}, "alpha", 1, [["alpha", 0.25]], {"alpha": 0.25}]),
    *((("loss", "epsilon"), value) for value in [*NO_NUMBERS, 0]),
    *((("loss", "delta"), value) for value in [*NO_NUMBERS, 0, 1]),
    *((("loss",), value) for value in [None, [], {}, "epsilon", 1, {"rho": 1.0}, {"epsilon": 1.0}, {"x": 1}]),
    *((("max_contributions",), value) for value in [*NO_NUMBERS, 0, 0.5, 2.0, 2**70]),
    *((("neighbors",), value) for value in [None, ["replace"], {}, 1, True, "swap"]),
    *((("privacy_unit",), value) for value in [["person"], {}, 0.5, math.nan, "region", "district"]),
]  # fmt: skip


@each("place, value", TAMPERED)
def test_whatever_is_tampered_with_names_the_data(place, value):
    with pytest.raises(dpt.ArgumentError) as caught:
        dpt.MultiplicativePlan.from_dict(replaced(WRITTEN["MultiplicativePlan"], place, value), DOMAIN)
    assert caught.value.argument == "data" and caught.value.hint


def test_whatever_is_missing_names_the_data_or_the_domain():
    written = WRITTEN["MultiplicativePlan"]
    for key in set(written) - {"version", "digest"}:
        with pytest.raises(dpt.ArgumentError) as caught:
            dpt.MultiplicativePlan.from_dict(without(written, key), DOMAIN)
        assert caught.value.argument == ("domain" if key == "domain" else "data")
    for outer in ("guarantee", "loss", "thresholds"):
        for key in written[outer]:
            with pytest.raises(dpt.ArgumentError, match="`data`"):
                dpt.MultiplicativePlan.from_dict(without(written, outer, key), DOMAIN)


def test_the_thresholds_follow_from_what_is_stated():
    written = WRITTEN["MultiplicativePlan"]
    approved = dpt.MultiplicativePlan.from_dict(written, DOMAIN)
    assert spends_what_it_states(approved)
    for place, value in (
        (("loss", "epsilon"), 4.0),
        (("max_contributions",), 1),
        (("thresholds", "tau"), 9.0),
    ):
        with pytest.raises(dpt.ArgumentError, match=r"do not follow from the others: .'thresholds'"):
            dpt.MultiplicativePlan.from_dict(replaced(written, place, value), DOMAIN)
    with pytest.raises(
        dpt.ArgumentError, match="`data` is not a valid plan: `threshold` is too small for the"
    ):
        dpt.MultiplicativePlan.from_dict(
            replaced(written, ("guarantee", "threshold"), approved.threshold - 10), DOMAIN
        )


@given(data=st.data(), name=st.sampled_from(sorted(EACH)))
def test_anything_is_a_plan_within_its_loss_or_an_argument_error(data, name):
    written = EACH[name].to_dict()
    for place in data.draw(st.lists(st.sampled_from(places_in_json(written)), max_size=2, unique=True)):
        if len(place) == 1 or isinstance(written[place[0]], dict):
            written = replaced(written, place, data.draw(json_values))
    for make in (dpt.Plan, *KINDS.values()):
        try:
            plan = make.from_dict(written, EACH[name].hierarchy)
        except dpt.ArgumentError as error:
            assert error.argument in ("data", "domain") and error.hint
        else:
            assert isinstance(plan, make) and written["kind"] == plan.kind and spends_what_it_states(plan)
            assert plan.loss == PrivacyLoss(**written["loss"]) and plan.neighbors == written["neighbors"]
            assert plan.max_contributions == written["max_contributions"]


@pytest.mark.parametrize(
    "entry", [{"nodes": math.nan}, {"level_weights": np.ones(4)}, {1: 1, "x": 1}, {"shares": {1}}], ids=str
)
def test_what_json_cannot_hold_has_no_digest_not_even_an_empty_one(entry):
    written = {**dpt.plan(DOMAIN, epsilon=1.0).to_dict(), **entry, "digest": ""}
    for approved in (None, ""):
        with pytest.raises(dpt.ArgumentError, match="`data` has changed"):
            dpt.Plan.from_dict(written, DOMAIN, digest=approved)


def test_a_plan_without_its_own_digest_is_refused():
    """Nothing is read that does not state its digest: none, empty, null, cut short, of another type."""
    for name, plan in EACH.items():
        written = plan.to_dict()
        assert dpt.Plan.from_dict(written, plan.hierarchy).digest == plan.digest, name
        missing = {key: value for key, value in written.items() if key != "digest"}
        others = ["", " ", None, 0, False, [], plan.digest[:-1], plan.digest.upper(), [plan.digest], "0" * 64]
        for stored in (missing, *({**written, "digest": other} for other in others)):
            for approved in (None, plan.digest):
                with pytest.raises(dpt.ArgumentError, match="`data` has changed") as caught:
                    dpt.Plan.from_dict(stored, plan.hierarchy, digest=approved)
                assert caught.value.argument == "data"
        for approved in ("", " ", 0, False, [plan.digest], plan.digest[:-1], "0" * 64):
            with pytest.raises(dpt.ArgumentError, match="`digest` is not that of this plan"):
                dpt.Plan.from_dict(written, plan.hierarchy, digest=approved)


def test_a_plan_of_another_processor_is_released_as_it_was_written():
    """Its numbers may differ in the last place, and its digest was approved."""
    domain = dpt.Domain.from_frame(pd.DataFrame({"a": [1, 2]}), by=["a"])
    plan = dpt.plan(domain, epsilon=1.0, delta=1e-6, mechanism=dpt.Multiplicative(alpha=0.5))
    written = plan.to_dict()
    loss = written["thresholds"]["rounds"][0]["loss"]
    loss["epsilon"] = math.nextafter(loss["epsilon"], 0)
    written["digest"] = serialize.digest_of(written)
    assert written["digest"] != plan.digest
    read = dpt.Plan.from_dict(written, domain, digest=written["digest"])
    assert read.digest == written["digest"]
    assert read.to_dict() == written
    loss["epsilon"] *= 1 + 1e-12
    written["digest"] = serialize.digest_of(written)
    with pytest.raises(dpt.ArgumentError, match=r"do not follow from the others: .'thresholds'"):
        dpt.Plan.from_dict(written, domain)

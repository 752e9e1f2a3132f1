"""Warnings of a privacy loss that protects nobody."""

import warnings
from functools import partial

import pytest
import xarray as xr

import pandas_dptree as dpt
from pandas_dptree import DPTreeWarning, arrays
from pandas_dptree.arrays import several
from pandas_dptree.privacy.loss import PrivacyLoss
from tests.helpers_cases import each
from tests.helpers_warnings import CELLS, DOMAIN, FACTOR, STATES, records, seeded

LOSSES = [
    ({"epsilon": 20.5}, "`epsilon` is 20.5, which protects nobody"),
    ({"epsilon": 1e6}, r"`epsilon` is 1e\+06, which protects nobody"),
    ({"rho": 10.5}, "`rho` is 10.5, which protects nobody: at a delta of 1e-6 that is an epsilon of 33"),
    ({"epsilon": 1.0, "delta": 0.01}, "`delta` is 0.01, which protects nobody"),
]
PLANNERS = {
    "plan": lambda **loss: dpt.plan(DOMAIN, **loss),
    "frame.dp.plan": lambda **loss: records().dp.plan("state", domain=STATES, **loss),
    "tree_counts": lambda **loss: records().dp.tree_counts("state", domain=STATES, **seeded(), **loss),
    "tree_sums": lambda **loss: dpt.tree_sums(
        records(fare=300.0),
        "state",
        columns=["cost", "fare"],
        bounds=(0, 500),
        granularity=1,
        domain=STATES,
        **seeded(),
        **loss,
    ),
    "tree_means": lambda **loss: dpt.tree_means(
        records(), "state", columns="cost", bounds=(0, 500), granularity=1, domain=STATES, **seeded(), **loss
    ),
    "tree_units": lambda **loss: dpt.tree_units(
        records(), "state", domain=STATES, privacy_unit="person", max_nodes=1, **seeded(), **loss
    ),
    "plan_distribution": lambda **loss: dpt.plan_distribution("cost", bounds=(0, 9), bins=3, **loss),
    "plan_quantiles": lambda **loss: dpt.plan_quantiles("cost", 0.5, bounds=(0, 500), **loss),
    "quantiles": lambda **loss: dpt.quantiles(records(), "cost", 0.5, bounds=(0, 500), **seeded(), **loss),
    "arrays.plan": lambda **loss: arrays.plan(CELLS, "city", **loss),
    "arrays.tree_counts": lambda **loss: CELLS.dp.tree_counts("city", **seeded(), **loss),
    "arrays.cdf": lambda **loss: CELLS.dp.cdf("age", edges=range(6), **seeded(), **loss),
    "several.plan": lambda **loss: several.plan(xr.Dataset({"u": CELLS, "v": CELLS}), "city", **loss),
}


AT_THE_LIMITS = [{"epsilon": 20.0}, {"rho": 10.0}, {"epsilon": 1.0, "delta": 1e-3}]


def in_turn(losses):
    """List all losses for one planner, and for each other one a loss, in turn."""
    first, *others = PLANNERS
    return [(first, loss) for loss in losses] + [
        (planner, losses[turn % len(losses)]) for turn, planner in enumerate(others)
    ]


@each("planner, loss", in_turn(LOSSES))
def test_a_loss_that_protects_nobody_gives_one_warning(planner, loss):
    gives_one_warning(planner, *loss)


@pytest.mark.nightly
@pytest.mark.parametrize("planner", PLANNERS)
def test_every_loss_that_protects_nobody_gives_one_warning(planner):
    each("loss, match", LOSSES)(partial(gives_one_warning, planner))()


def gives_one_warning(planner, loss, match):
    with pytest.warns(DPTreeWarning, match=match) as caught:
        PLANNERS[planner](**loss)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert caught[0].message.released is None


def test_prefixes_and_factors_give_the_same_warning():
    tree = dpt.prefixes("zip", chars=[2, 5])
    for mechanism in ("truncated_laplace", FACTOR):
        with pytest.warns(DPTreeWarning, match="`delta` is 0.01, which protects nobody") as caught:
            dpt.plan(tree, epsilon=1.0, delta=0.01, mechanism=mechanism)
        assert len(caught) == 1
    with pytest.warns(DPTreeWarning, match="`epsilon` is 30, which protects nobody") as caught:
        records().dp.tree_counts(tree, epsilon=30.0, delta=1e-6)
    assert len(caught) == 1
    with pytest.warns(DPTreeWarning, match="`epsilon` is 30, which protects nobody") as caught:
        dpt.plan(DOMAIN, epsilon=30.0, delta=1e-6, mechanism=FACTOR)
    assert len(caught) == 1


@each("planner, loss", in_turn(AT_THE_LIMITS))
def test_a_loss_at_the_limits_gives_no_warning(planner, loss):
    with warnings.catch_warnings(action="error"):
        PLANNERS[planner](**loss)


@pytest.mark.nightly
@each("planner", PLANNERS)
@each("loss", AT_THE_LIMITS)
def test_no_loss_at_the_limits_gives_a_warning(planner, loss):
    with warnings.catch_warnings(action="error"):
        PLANNERS[planner](**loss)


def test_a_target_that_needs_a_large_loss_gives_a_warning():
    with pytest.warns(DPTreeWarning, match="protects nobody"):
        dpt.plan(DOMAIN, target={"total": 1e-5})


def test_a_plan_warns_when_it_is_made_and_not_again():
    with pytest.warns(DPTreeWarning):
        plan = dpt.plan(DOMAIN, epsilon=50.0)
    with warnings.catch_warnings(action="error"):
        plan.release(records(), **seeded())
        plan.compare()
        assert "(protects nobody)" in dpt.Plan.from_dict(plan.to_dict(), DOMAIN).headline


@pytest.mark.filterwarnings("ignore::pandas_dptree.DPTreeWarning")
def test_every_headline_says_that_it_protects_nobody():
    tree = dpt.prefixes("zip", chars=[2, 5])
    useless = {"epsilon": 50.0, "delta": 1e-6}
    for plan in [
        dpt.plan(DOMAIN, epsilon=50.0),
        dpt.plan(DOMAIN, **useless, mechanism=FACTOR),
        dpt.plan(tree, **useless),
        dpt.plan(tree, **useless, mechanism=FACTOR),
        dpt.plan_distribution("cost", bounds=(0, 9), bins=3, **useless),
        dpt.plan_quantiles("cost", 0.5, bounds=(0, 500), **useless),
        several.plan(xr.Dataset({"u": CELLS}), "city", epsilon=50.0),
    ]:
        assert "epsilon=50" in plan.headline
        assert "(protects nobody)" in plan.headline
        assert "(protects nobody)" in repr(plan)
    assert "protects nobody" not in dpt.plan(DOMAIN, epsilon=1.0).headline


def test_why_a_loss_protects_nobody():
    assert not PrivacyLoss(epsilon=20.0, delta=1e-3).objection
    assert PrivacyLoss(epsilon=20.0, delta=1e-3).in_words == "epsilon=20, delta=0.001"
    assert "factor of e**21" in PrivacyLoss(epsilon=21.0).objection
    assert PrivacyLoss(rho=11.0).in_words == "rho=11 (protects nobody)"

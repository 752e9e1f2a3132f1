"""Which mechanism finds quantiles, on which grid, with which parts of the loss; and what users get wrong."""

import datetime
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.plans import quantile_search
from tests.helpers_cases import each

EPSILON = {"epsilon": 1.0}
BOUNDS = {"bounds": (0, 500)}
PLACES = pd.DataFrame({"state": ["a", "a", "b"], "county": ["x", "y", "z"]})
DOMAIN = dpt.Domain.from_frame(PLACES, by=["state", "county"])
FEW = {"bins": 8, "strategy": [2, 4]}
"""Trees that are planned fast."""
TREES = {"mechanism": "exponential", **FEW}


def plan(q=0.5, **options):
    return dpt.plan_quantiles("v", q, **{**EPSILON, **BOUNDS, **options})


# The mechanism


DRAWN = [0.5, [0.5], 0.25, 0.3, 1 / 3, 0.501, [0.25, 0.5], [0.75, 0.5, 0.25], (1 / 3, 2 / 3), np.array([0.5]),
         [0.25, 0.625]]  # fmt: skip


@each("q", DRAWN)
def test_few_quantiles_far_apart_are_drawn(q):
    found = plan(q)
    assert found.trees is None and found.mechanism_name == "permute_and_flip"
    assert list(found.q) == sorted(np.atleast_1d(q).tolist())


NOT_DRAWN = [0, 1, 0.1, 0.2499, 0.9, 0.30001, [0.25, 0.49], [0.2, 0.5], [0.5, 0.5], [0, 0.5], [0.5, 1],
             [0.2, 0.4, 0.6, 0.8], [0.3, 0.5, 0.7], [1 / 3, 0.5]]  # fmt: skip


@each("q", NOT_DRAWN)
def test_others_are_read_from_a_tree(q, monkeypatch):
    monkeypatch.setattr(quantile_search, "_N_BINS", 4)  # whose tree is found fast
    found = plan(q)
    assert found.draws is None and found.mechanism_name == "laplace"


def test_auto_reads_from_a_tree_of_a_thousand_bins():
    found = plan([0.1, 0.5, 0.9])
    assert found.draws is None and found.trees.bins.n_bins == 1000 and found.loss == found.trees.loss


def test_a_caller_chooses():
    for options in ({"bins": 8}, {"bins": [0, 100, 500], "bounds": None}, {"strategy": [10, 10, 10]}, FEW):
        assert plan(**options).draws is None
    for mechanism in ("laplace", "gaussian"):
        loss = EPSILON if mechanism == "laplace" else {"epsilon": None, "rho": 0.1}
        assert plan(mechanism=mechanism, **loss, **FEW).mechanism_name == mechanism
    deciles = plan(np.arange(1, 10) / 10, mechanism="exponential")
    assert deciles.trees is None and len(deciles.q) == 9
    assert plan(0.001, mechanism="exponential").mechanism_name == "permute_and_flip"


@pytest.mark.filterwarnings("ignore::pandas_dptree.DPTreeWarning")
def test_where_a_loss_is_too_small_to_draw():
    tiny = {"epsilon": 1e-6}
    assert plan(0.501, **tiny).draws is None
    with pytest.raises(dpt.ArgumentError, match="cannot be drawn with so small a privacy loss") as caught:
        plan(0.501, **tiny, mechanism="exponential")
    assert caught.value.argument == "q" and 'mechanism="laplace"' in caught.value.hint


@each(
    "loss, name, epsilon",
    [
        ({"epsilon": 0.7}, "permute_and_flip", 0.7),
        ({"epsilon": 0.7, "delta": 1e-6}, "permute_and_flip", 0.7),
        ({"rho": 0.02}, "exponential", 0.4),
    ],
)
def test_the_selection_is_what_the_loss_allows(loss, name, epsilon):
    found = plan(**{"epsilon": None, **loss}).draws
    assert found.name == name and found.epsilon == pytest.approx(epsilon, rel=1e-12)
    assert plan(**{"epsilon": None, **loss}, domain=DOMAIN, **TREES).draws.name == "exponential"


def test_many_depths_are_composed_as_the_concentrated_guarantee_allows():
    q = np.arange(1, 100) / 100
    pure, approximate = (plan(q, mechanism="exponential", delta=delta).draws for delta in (0.0, 1e-3))
    assert pure.permutes and pure.epsilon == pytest.approx(1 / 7)
    assert not approximate.permutes and approximate.epsilon > 0.19


# The parts


@each("loss", [{"epsilon": 0.7}, {"epsilon": None, "rho": 0.1}, {"epsilon": 0.7, "delta": 1e-6}])
@each("n", [1, 3])
def test_each_level_and_the_draws_have_equal_shares(loss, n):
    q = (np.arange(n) + 1) / (n + 1)
    for options, n_trees in (
        ({}, 0),
        ({"confidence": 0.9}, 1),
        ({"domain": DOMAIN}, 2),
        ({"domain": DOMAIN, "confidence": 0.9}, 3),
    ):
        found = plan(q, **loss, **options, **(TREES if n_trees else {}))
        parts = [found.draws.loss.exact, *([found.trees.loss.exact] if n_trees else [])]
        whole = found.loss.exact
        for name in ("epsilon", "delta", "rho"):
            stated = getattr(whole, name) or Fraction(0)
            spent = [getattr(part, name) or Fraction(0) for part in parts]
            assert stated * (1 - Fraction(1, 10**15)) <= sum(spent) <= stated
            assert float(spent[0] * (n_trees + 1)) == pytest.approx(float(stated), rel=1e-14)
        assert found.to_frame()["share"].tolist() == pytest.approx([1 / (n_trees + 1)] * (n_trees + 1))


def test_rows_of_units_and_replaced_rows_make_draws_less_exact():
    unit = {"privacy_unit": "who", "max_contributions": 3}
    exponents = [
        found.drawing.exponent(Fraction(1, 4))
        for found in (plan(0.25), plan(0.25, **unit), plan(0.25, neighbors="replace"),
                      plan([0.25, 0.5], neighbors="replace"))
    ]  # fmt: skip
    assert exponents[:3] == [Fraction(1, 6), Fraction(1, 18), Fraction(1, 8)]
    assert exponents[3] == Fraction(1, 2) / 12  # two depths, and two moves of three


# The grid


DAY, LEAP = datetime.date(2024, 1, 1), datetime.date(2025, 1, 1)
GRIDS = [
    ((0, 500), {}, 1, 501),
    ((-3, 97), {}, 1, 101),
    ((np.int32(0), np.int64(100)), {}, 1, 101),
    ((0, 2**31), {}, None, None),
    ((0.0, 500.0), {}, Fraction(1, 1000), 500_001),
    ((0, 500.0), {}, Fraction(1, 1000), 500_001),
    ((0.0, 1.0), {}, Fraction(1, 10**5), 10**5 + 1),
    ((2 * 10**9, 3 * 10**9), {}, 1, 10**9 + 1),
    ((16 * 10**11, 17 * 10**11), {"granularity": 1000}, 1000, 10**8 + 1),
    ((0.5, 2.5), {"granularity": 0.25}, Fraction(1, 4), 9),
    ((0, 1), {"granularity": 0.01}, Fraction(1, 100), 101),
    ((0, 500), {"granularity": 0.5}, Fraction(1, 2), 1001),
    ((0, 10**6), {"granularity": 100}, 100, 10**4 + 1),
    ((DAY, LEAP), {}, 86_400 * 10**9, 367),
    ((pd.Timestamp(DAY), pd.Timestamp(LEAP)), {}, 60 * 10**9, 366 * 1440 + 1),
    ((pd.Timestamp(DAY, tz="Europe/Berlin"), pd.Timestamp(LEAP, tz="Europe/Berlin")), {"granularity": "1D"},
     86_400 * 10**9, 367),
    ((pd.Timedelta(0), pd.Timedelta("1D")), {}, 10**6, 86_400_001),
    ((pd.Timedelta(0), pd.Timedelta("1D")), {"granularity": datetime.timedelta(minutes=15)}, 900 * 10**9, 97),
    ((pd.Timedelta(0), pd.Timedelta("5us")), {}, 1, 5001),
]  # fmt: skip


@each("bounds, options, unit, size", GRIDS)
def test_points_of_the_grid(bounds, options, unit, size):
    grid = plan(bounds=bounds, **options).draws.grid
    if unit is None:
        assert 10**5 <= grid.size - 1 <= 10**6
        return
    assert (grid.unit, grid.size) == (unit, size)


# Mistakes


MISTAKES = {
    "q": [50, "median", None, [], [0.5, "0.9"], [[0.5]], math.nan, True],
    "bounds": [None, 500, (500, 0), (0, math.inf), "0-500", (0, 0), (0, "x"), (DAY, 5)],
    "granularity": [0, -1, "fine", math.nan, 1e-9, 1000, [1], True],
    "mechanism": ["exp", None, 3, dpt.Laplace(), ["exponential"]],
    "confidence": [95, 0, 1, "high", True, [0.9], -0.5],
    "neighbors": ["swap", None, 2],
    "epsilon": [0, -1, "one", math.inf],
    "max_contributions": [0, 1.5, "three"],
    "domain": [PLACES, ["a", "b"], "observed"],
    "column": [None, ["v"], PLACES],
    "strategy": ["best", 7.5, {"a": 1}],
    "bins": [0, "many", -3],
    "known": [5, {"nation": 3}, {"total": -1}],
}
BESIDE = {
    "max_contributions": {"privacy_unit": "who"},
    "strategy": {"mechanism": "laplace"}, "bins": {"mechanism": "laplace"}, "known": {"mechanism": "laplace"},
}  # fmt: skip


@each("name, value", [(name, value) for name, values in MISTAKES.items() for value in values])
def test_a_mistake_is_named_and_met_with_a_hint(name, value):
    given = {"column": "v", "q": 0.5, **EPSILON, **BOUNDS, **BESIDE.get(name, {}), name: value}
    with pytest.raises(dpt.ArgumentError) as caught:
        dpt.plan_quantiles(**given)
    assert caught.value.argument == name and len(caught.value.hint) > 10


TIMES = {"bounds": (pd.Timestamp(DAY), pd.Timestamp(LEAP))}


@each(
    "options, name, words",
    [
        ({"bounds": (0, 50)}, "granularity", "only 51 whole numbers"),
        ({"bounds": (0, 1)}, "granularity", "only 2 whole numbers"),
        ({**TIMES, "granularity": 0.5}, "granularity", "must be a positive duration"),
        ({**TIMES, "granularity": 1}, "granularity", "must be a positive duration"),
        ({**TIMES, "granularity": "weekly"}, "granularity", "must be a positive duration"),
        ({**TIMES, "granularity": np.timedelta64("NaT")}, "granularity", "must be a positive duration"),
        ({**TIMES, "granularity": "NaT"}, "granularity", "must be a positive duration"),
        ({**TIMES, "granularity": "800D"}, "granularity", "at least 2"),
        ({"granularity": "1D"}, "granularity", "must be a positive number"),
        ({"mechanism": "laplace", "granularity": 1}, "granularity", "no meaning for quantiles that are read"),
        ({"q": [0.1, 0.9], "granularity": 1}, "granularity", "no meaning for quantiles that are read"),
        ({"bins": 9, "granularity": 1}, "granularity", "no meaning for quantiles that are read"),
        ({"mechanism": "exponential", "bins": 9}, "bins", "no meaning for quantiles that are drawn"),
        (
            {"mechanism": "exponential", "strategy": [4]},
            "strategy",
            "no meaning for quantiles that are drawn",
        ),
        ({"mechanism": "exponential", "bins": [0, 9, 500], "domain": DOMAIN}, "bins", "must be a number"),
        ({"mechanism": "exponential", "q": [0, 0.5]}, "q", "to be drawn"),
        ({"mechanism": "exponential", "q": [0.5, 0.5]}, "q", "to be drawn"),
        ({"mechanism": "exponential", "q": 0.30001}, "q", "to be drawn"),
        ({"mechanism": "gaussian"}, "mechanism", "never gives pure"),
        ({"rho": 0.1}, "rho", "only one of the two"),
        ({"privacy_unit": "v", "max_contributions": 1}, "privacy_unit", "neither a key nor counted"),
        ({"privacy_unit": "who"}, "max_contributions", "must be given"),
    ],
)
def test_arguments_that_do_not_go_together(options, name, words):
    with pytest.raises(dpt.ArgumentError, match="Hint: ") as caught:
        plan(**options)
    assert caught.value.argument == name and words in str(caught.value)


def test_groups_and_points_can_be_numbered():
    domain = dpt.Domain.from_frame(pd.DataFrame({"n": range(2**11)}), by=["n"])
    plan(bounds=(0, 2**31 - 2), granularity=1, domain=domain, **TREES)

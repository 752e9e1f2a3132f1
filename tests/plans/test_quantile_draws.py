"""What drawn quantiles spend: all of their loss and no more, and no more after a plan was edited."""

import copy
import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.hierarchy.bins import Bins
from pandas_dptree.hierarchy.grid import BinMiddles, Grid
from pandas_dptree.mechanisms.quantiles import Drawing, draw_quantiles, row_moves
from pandas_dptree.plans.quantile_draws import Draws, drawable, fraction_of, steps_of
from pandas_dptree.privacy.conversions import zcdp_delta
from pandas_dptree.privacy.loss import PrivacyLoss
from tests.helpers_cases import each
from tests.helpers_json import resealed
from tests.helpers_random import seeded_bytes

F = Fraction
GRID = Grid(Bins.of("v", bounds=(0, 100), bins=1), F(1))
KEYS = pd.DataFrame({"s": list("aabb"), "c": list("wxyz")})
DOMAIN = dpt.Domain.from_frame(KEYS, by=["s", "c"])
QUARTILES = [0.25, 0.5, 0.75]


def depths_of(n_quantiles):
    """How often the longest chain of halves is cut."""
    return 0 if n_quantiles == 0 else 1 + depths_of(n_quantiles // 2)


# What draws spend ----------------------------------------------------------------------------------------


def typed_losses(n):
    """Losses of all kinds as somebody types them, with the exact numbers that may be spent."""
    rng = np.random.default_rng(0)
    for _ in range(n):
        digits, exponent = int(rng.integers(1, 10**6)), int(rng.integers(-8, -3))
        text = f"{digits}e{exponent}"
        number, delta = float(text), float(f"{rng.integers(1, 100)}e-{rng.integers(3, 12)}")
        most = min(F(text), F(number))
        yield {"epsilon": number}, most
        yield {"rho": number}, most
        yield {"epsilon": number, "delta": delta}, most


def spent_by(draws, loss, most, n_quantiles, epsilon):
    """Whether draws of this epsilon at each depth keep to a loss."""
    depths, kind = depths_of(n_quantiles), loss.kind
    rho = depths * F(epsilon) ** 2 / 8
    if kind == "zcdp":
        return not draws.permutes and rho <= most
    if depths * F(epsilon) <= most:
        return True
    return kind == "approximate" and not draws.permutes and zcdp_delta(float(rho), float(most)) <= loss.delta


@each("permutes", [False, True])
@each("n_quantiles", [1, 2, 3, 7, 99, 999])
def test_draws_spend_all_of_their_loss_and_no_more(n_quantiles, permutes):
    for stated, most in typed_losses(12):
        loss = PrivacyLoss(**stated)
        draws = Draws.within(GRID, loss, n_quantiles, permutes=permutes)
        assert spent_by(draws, loss, most, n_quantiles, draws.epsilon)
        assert not spent_by(draws, loss, most, n_quantiles, draws.epsilon * (1 + 1e-5))
        assert draws.keeps_to_loss(n_quantiles)
        for more in (math.nextafter(draws.epsilon, math.inf), draws.epsilon * 1.01):
            larger = Draws(grid=GRID, loss=loss, epsilon=more, permutes=draws.permutes)
            assert not larger.keeps_to_loss(n_quantiles)
        assert not draws.permutes or (permutes and loss.kind != "zcdp")


def test_permute_and_flip_has_no_rho_of_its_own():
    pure, flip = (
        Draws(grid=GRID, loss=PrivacyLoss(rho=0.1), epsilon=0.8, permutes=permutes)
        for permutes in (False, True)
    )
    assert pure.keeps_to_loss(1) and not flip.keeps_to_loss(1)
    assert pure.level_loss.rho == F(0.8) ** 2 / 8
    assert flip.level_loss.rho > 3 * pure.level_loss.rho
    assert pure.level_loss.epsilon == flip.level_loss.epsilon == F(0.8)


@each("several", [False, True])
def test_groups_of_an_array_are_several(several):
    """A plan for counts in bins does not know how many groups the array has."""
    for grid, expected in ((GRID, several), (BinMiddles(GRID.bounds), True)):
        draws = Draws.within(grid, PrivacyLoss(epsilon=1.0), 1, permutes=True)
        drawing = draws.drawing("replace", 3, several=several)
        assert (drawing.several, drawing.max_contributions, drawing.neighbors) == (expected, 3, "replace")
        assert drawing.permutes and drawing.epsilon == 1


# Which quantiles can be drawn ----------------------------------------------------------------------------


@each(
    "q, expected",
    [
        ([1 / 3, 0.5], [F(1, 3), F(1, 2)]), ([0.001], [F(1, 1000)]), ([0.29], [F(29, 100)]),
        ([0.0, 0.5], None), ([0.5, 1.0], None), ([0.5, 0.25], None), ([0.5, 0.5], None), ([0.50004], None),
        ([0.0001], None), ([1.5], None), ([-0.5], None), ([], None),
    ],
)  # fmt: skip
def test_quantiles_that_can_be_drawn(q, expected):
    assert drawable(q) == expected


@each("n", [1, 2, 3, 8, 20])
def test_each_quantile_is_drawn_from_a_part(n):
    fractions = [fraction_of((i + 1) / (n + 1)) for i in range(n)]
    steps = steps_of(fractions, F(0), F(1))
    assert len(steps) == n and all(0 < step < 1 for step in steps)
    if n == 3:
        assert steps == [F(1, 2), F(1, 2), F(1, 2)]
    drawn = []

    class Recording(Drawing):
        def exponent(self, fraction):
            drawn.append(fraction)
            return super().exponent(fraction)

    draw_quantiles(
        np.arange(50), np.ones(50, dtype=np.int64), n_groups=1, size=60, quantiles=fractions, measures=None,
        drawing=Recording(
            epsilon=F(9), neighbors="replace", max_contributions=1, several=True, permutes=False
        ),
        source=seeded_bytes(1),
    )  # fmt: skip
    assert sorted(drawn) == sorted(steps)


# Whole plans ---------------------------------------------------------------------------------------------

LOSSES = {"epsilon": {"epsilon": 1.0}, "rho": {"rho": 0.1}, "delta": {"epsilon": 1.0, "delta": 1e-6}}
WITH_TREES = {"granularity": 1, "bins": 8, "mechanism": "exponential"}
SHAPES = {
    "one": (0.5, {"granularity": 1}),
    "quartiles": (QUARTILES, {"granularity": 1, "neighbors": "replace"}),
    "intervals": ([0.25, 0.5], {**WITH_TREES, "confidence": 0.9}),
    "groups": (0.75, {**WITH_TREES, "domain": DOMAIN, "neighbors": "replace"}),
    "both": (
        QUARTILES,
        {**WITH_TREES, "domain": DOMAIN, "confidence": 0.9, "privacy_unit": "u", "max_contributions": 3},
    ),
}
PLANS = {
    f"{shape}, {loss}": dpt.plan_quantiles("v", q, bounds=(0, 100), **options, **LOSSES[loss])
    for shape, (q, options) in SHAPES.items()
    for loss in LOSSES
}


@each("name", PLANS)
def test_trees_and_draws_spend_no_more_than_the_plan_states(name):
    plan = PLANS[name]
    parts = [each.loss.exact for each in (plan.draws, plan.trees) if each is not None]
    for kind in ("epsilon", "delta", "rho"):
        assert sum(getattr(part, kind) or 0 for part in parts) <= (getattr(plan.loss.exact, kind) or 0)
    items = plan.losses.items
    assert len(items) - (0 if plan.trees is None else len(plan.trees.losses.items)) == depths_of(len(plan.q))
    if plan.loss.kind != "approximate":
        kind = "rho" if plan.loss.kind == "zcdp" else "epsilon"
        assert sum(getattr(item.loss, kind) for item in items) <= getattr(plan.loss.exact, kind)


@each("name", PLANS)
def test_the_exponent_of_each_draw_is_that_of_the_proof(name):
    plan = PLANS[name]
    several = plan.domain is not None or len(plan.q) > 1
    for step in steps_of(list(map(fraction_of, plan.q)), F(0), F(1)):
        moves = row_moves(step, plan.neighbors, several=several)
        expected = F(plan.draws.epsilon) / (2 * plan.max_contributions * moves)
        assert plan.drawing.exponent(step) == expected


# Edited plans --------------------------------------------------------------------------------------------


def entry(*place, to):
    """Edit one entry; `to` is the new value, or makes it of the old one."""

    def edit(data):
        for name in place[:-1]:
            data = data[name]
        data[place[-1]] = to(data[place[-1]]) if callable(to) else to

    return edit


def loss(factor, *place):
    def scaled(stated):
        return {name: each * (1 if name == "delta" else factor) for name, each in stated.items()}

    return entry(*place, "loss", to=scaled)


def epsilon(to):
    return entry("draws", "epsilon", to=to)


def both(*edits):
    return lambda data: [edit(data) for edit in edits]


NO_EPSILON = [math.nan, math.inf, -1.0, 0, 0.0, 1e-9, "0.1", True, None, 10**400, [1]]
NO_Q = [
    [],
    [0.5, 0.5],
    [0.5, 0.25],
    [0.0],
    [1.0],
    [1.5],
    [-0.5],
    [0.50004],
    ["0.5"],
    [True],
    [math.nan],
    None,
    "1",
]
REFUSED = {
    "more epsilon": epsilon(lambda old: 1.01 * old),
    "hardly more epsilon": epsilon(lambda old: math.nextafter(old, math.inf)),
    "more epsilon of a larger part": both(loss(1.01, "draws"), epsilon(lambda old: 1.01 * old)),
    "a larger part": loss(1.001, "draws"),
    "a smaller loss": loss(0.99),
    **{f"an epsilon of {value!r:.9}": epsilon(value) for value in NO_EPSILON},
    "no selection": entry("draws", "selection", to=None),
    "no draws": entry("draws", to=None),
    "another mechanism": entry("mechanism", to="gaussian"),
    "too many quantiles": entry("q", to=[n / 10 for n in range(1, 10)]),
    **{f"q={value!r}": entry("q", to=value) for value in NO_Q},
    "another column of the grid": entry("draws", "grid", "bounds", "column", to="w"),
    "another column": entry("column", to="w"),
    "a granularity in words": entry("draws", "grid", "granularity", to="1"),
    "too fine a grid": entry("draws", "grid", "granularity", to=[1, 10**12]),
    "a grid of one point": entry("draws", "grid", "granularity", to=[1000, 1]),
    "something else": entry("draws", to=lambda old: {**old, "x": 1}),
}  # fmt: skip
OF_TREES = {
    "a larger part of the trees": loss(1.001, "trees"),
    "no trees": entry("trees", to=None),
    "fewer levels of trees": entry("trees", "levels", to=lambda old: old - 1),
    "more levels of trees": entry("trees", "levels", to=lambda old: old + 1),
    "trees of another column": entry("trees", "bins", "column", to="w"),
    "another grid": entry("draws", "grid", "granularity", to=[2, 1]),
    "other bounds": entry("draws", "grid", "bounds", "edges", to=[0.0, 200.0]),
    "middles of bins": entry("draws", "grid", to=lambda old: {"middles": old["bounds"]}),
}
FLIP = {"permute-and-flip": entry("draws", "selection", to="permute_and_flip")}
NO_CONFIDENCE = [0, 1.0, 2, 0.9999, True, "0.9", math.nan, -0.5]
INTERVALS = {f"a confidence of {value!r}": entry("confidence", to=value) for value in [None, *NO_CONFIDENCE]}
NO_INTERVALS = {"a confidence": entry("confidence", to=0.9)}


def read(plan, edit=lambda data: None):
    data = copy.deepcopy(plan.to_dict())
    edit(data)
    return dpt.Plan.from_dict(resealed(data), *([] if plan.domain is None else [DOMAIN]))


@each("name", PLANS)
def test_plans_survive_json(name):
    plan = PLANS[name]
    assert read(plan).to_dict() == plan.to_dict()
    text = json.dumps(plan.to_dict())
    assert (
        dpt.Plan.from_dict(json.loads(text), *([] if plan.domain is None else [DOMAIN])).digest == plan.digest
    )


FEW = ["one, epsilon", "quartiles, rho", "groups, delta"]
OTHERS = pytest.param([name for name in PLANS if name not in FEW], marks=pytest.mark.slow)


@pytest.mark.parametrize("names", [FEW, OTHERS], ids=["few", "others"])
def test_plans_that_were_edited_to_spend_more_are_refused(names):
    def refused(name, how):
        with pytest.raises(dpt.ArgumentError) as caught:
            read(PLANS[name], edits_of(PLANS[name])[how])
        assert caught.value.argument in ("data", "domain") and caught.value.hint

    each("name, how", [(name, how) for name in names for how in edits_of(PLANS[name])])(refused)()


def edits_of(plan):
    edits = REFUSED | (NO_INTERVALS if plan.confidence is None else INTERVALS)
    if plan.trees is not None:
        edits |= OF_TREES
    if plan.loss.kind == "zcdp" or plan.domain is not None:
        edits |= FLIP
    return edits


@each("name", ["one, epsilon", "quartiles, rho", "one, delta"])
def test_exponents_that_other_neighbors_or_rows_do_not_have_are_refused(name):
    plan = PLANS[name]
    other = {"add_remove": "replace", "replace": "add_remove"}[plan.neighbors]
    smaller = entry("draws", "exponents", to=lambda old: [each / 2 for each in old])
    for edit in (entry("max_contributions", to=5), entry("neighbors", to=other), smaller):
        with pytest.raises(dpt.ArgumentError):
            read(plan, edit)


@each("mechanism", ["exponential", "laplace"])
@each("confidence", NO_CONFIDENCE)
def test_a_confidence_is_checked_before_anything_is_read_or_charged(confidence, mechanism):
    with pytest.raises(dpt.ArgumentError, match="confidence"):
        dpt.plan_quantiles(
            "v", 0.5, bounds=(0, 1000), bins=4, epsilon=1, confidence=confidence, mechanism=mechanism
        )

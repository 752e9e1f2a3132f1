"""Plans of distributions in JSON: read back unchanged, or refused."""

import dataclasses
import json
import math

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import pandas_dptree as dpt
from pandas_dptree.privacy.loss import PrivacyLoss
from tests.helpers_cases import each
from tests.helpers_json import json_values, places_in_json, replaced, without
from tests.helpers_output import stated_in
from tests.helpers_plans import BY, DOMAIN, PLACES, spends_no_more_than_stated

EDGES = {
    "numbers": {"bounds": (0, 500), "bins": 7},
    "edges": {"bins": [-0.1, 1 / 3, 2, 1e300]},
    "times": {"bounds": (pd.Timestamp(0), pd.Timestamp(1709251200000000007)), "bins": 7},
    "zone": {"bins": pd.date_range("2024-03-30", periods=5, tz="Europe/Berlin")},
    "offset": {"bins": pd.date_range("2024-03-30", periods=5, tz="UTC+02:00")},
    "durations": {"bounds": (pd.Timedelta(0), pd.Timedelta(1, "h")), "bins": 7},
}  # fmt: skip
STRATEGIES = {
    "laplace": {"epsilon": 1.0},
    "laplace given": {"epsilon": 1.0, "strategy": [2, 4]},
    "gaussian": {"rho": 0.3, "strategy": "tree"},
    "factorization": {"rho": 0.3, "strategy": "factorization"},
    "approximate": {"epsilon": 0.7, "delta": 1e-6, "strategy": "tree", "neighbors": "replace"},
    "approximate factorization": {"epsilon": 0.7, "delta": 1e-6, "strategy": "factorization"},
    "units": {"epsilon": 1.0, "privacy_unit": "person", "max_contributions": 3},
    "counts": {"epsilon": 1.0, "max_contributions": 3},
}
GROUPS = {
    "none": {},
    "none but a total": {"known": {"total": 900}},
    "groups": {"domain": DOMAIN},
    "known groups": {"domain": DOMAIN, "known": {"total": 900, "region": {"Aldmark": 40, "Brenvale": 0}}},
}
SHAPE = dpt.plan_distribution("cost", **EDGES["numbers"], **STRATEGIES["laplace"], **GROUPS["known groups"])
ALONE = dpt.plan_distribution("cost", **EDGES["zone"], **STRATEGIES["approximate"], known={"total": 900})


def rewritten(plan):
    """Read the plan of a distribution back from JSON."""
    return dpt.DistributionPlan.from_dict(
        json.loads(json.dumps(plan.to_dict(), allow_nan=False)), plan.domain
    )


@pytest.mark.parametrize(
    ("edges", "strategy", "groups"),
    [
        *(("numbers", strategy, groups) for strategy in STRATEGIES for groups in GROUPS),
        *((edges, "laplace", "groups") for edges in EDGES),
    ],
)
def test_a_plan_of_a_distribution_goes_through_json(edges, strategy, groups):
    plan = dpt.plan_distribution("cost", **EDGES[edges], **STRATEGIES[strategy], **GROUPS[groups])
    back = rewritten(plan)
    assert back.to_dict() == plan.to_dict() and repr(back) == repr(plan)
    assert back.strategy == plan.strategy and str(back.bins.timezone) == str(plan.bins.timezone)
    assert back.bins.edges.dtype == plan.bins.edges.dtype
    for name in ("level_names", "neighbors", "privacy_unit", "max_contributions", "domain_source"):
        assert getattr(back, name) == getattr(plan, name)
    assert [one.tolist() for one in back.totals] == [one.tolist() for one in plan.totals]
    unbounded = dataclasses.replace(plan, privacy_unit=None), dataclasses.replace(back, privacy_unit=None)
    counts = np.random.default_rng(3).integers(0, 99, (len(plan.totals[-1]), plan.bins.n_bins))
    one, other = (each.release(counts, rng=np.random.default_rng(5)) for each in unbounded)
    assert one.estimates.tobytes() == other.estimates.tobytes() and one.provenance == other.provenance
    pd.testing.assert_frame_equal(one.cdf(), other.cdf())


def test_where_bins_come_from_goes_through_json():
    bands = xr.DataArray(np.full(4, 30), {"age": pd.IntervalIndex.from_breaks([0, 18, 40, 65, 120])}, "age")
    for options, source in (({}, "observed"), ({"edges": [0, 18, 40, 65, 120]}, "given")):
        plan = bands.dp.plan_distribution("age", epsilon=1.0, **options)
        assert (
            plan.domain_source == rewritten(plan).domain_source == plan.to_dict()["domain_source"] == source
        )
    observed = dpt.Domain.observed(PLACES, by=BY)
    plan = dpt.plan_distribution("cost", bins=[0, 1, 2], epsilon=1.0, domain=observed)
    assert dpt.DistributionPlan.from_dict(plan.to_dict(), DOMAIN).domain_source == "observed"


def test_what_cannot_be_serialized_is_named():
    dateutil = pytest.importorskip("dateutil.tz")
    zone = pd.date_range("2024-03-30", periods=3, tz=dateutil.gettz("Europe/Berlin"))
    plain = dpt.plan_distribution("cost", bins=[0, 1, 2], epsilon=1.0)
    given = dataclasses.replace(plain.strategy, shares=())
    for plan, argument in (
        (dpt.plan_distribution("cost", bins=zone, epsilon=1.0), "bins"),
        (dpt.plan_distribution(("a", "b"), bins=[0, 1, 2], epsilon=1.0), "column"),
        (dataclasses.replace(plain, strategy=given), "strategy"),
        (dataclasses.replace(plain, totals=(np.full(3, -1),)), "totals"),
    ):
        with pytest.raises(dpt.ArgumentError, match="cannot be serialized") as caught:
            plan.to_dict()
        assert caught.value.argument == argument and caught.value.hint


def test_a_distribution_for_other_groups_is_refused():
    other = dpt.Domain.from_frame(PLACES.replace({"Aldmark": "Aldmarsh"}), by=BY)
    for plan, domains in ((SHAPE, (other, DOMAIN.tree, None)), (ALONE, (DOMAIN, DOMAIN.tree))):
        for domain in domains:
            with pytest.raises(dpt.DomainError, match="the one that this plan was made for"):
                dpt.DistributionPlan.from_dict(plan.to_dict(), domain)
    assert repr(dpt.Plan.from_dict(SHAPE.to_dict(), DOMAIN)) == repr(SHAPE)
    other = dpt.plan(DOMAIN, epsilon=1.0)
    for make, written in ((type(other), SHAPE.to_dict()), (dpt.DistributionPlan, other.to_dict())):
        with pytest.raises(dpt.ArgumentError, match="`data` is of kind"):
            make.from_dict(written, DOMAIN)


TAMPERED_SHAPES = [
    *((("bins", "edges"), value) for value in [None, [], [1], [0, 0], [1, 0], ["0", "1"], [0, math.nan],
        [0, math.inf], [0, True], {}, "01", [[0], [1]], [0, 10**400]]),
    *((("bins", "type"), value) for value in [None, "text", [], 1, "duration", "timestamp"]),
    *((("bins", "unit"), value) for value in ["ns", "s", 1, []]),
    *((("bins", "timezone"), value) for value in ["UTC", 1, ["UTC"]]),
    *((("bins", "column"), value) for value in [None, [], {}, "region", "level"]),
    *((("bins",), value) for value in [None, [], {}, 5]),
    *((("known",), value) for value in [None, [], {}, {"total": 900}, {"exact": [], "at_least": []}]),
    *((("known", "exact"), value) for value in [None, [[[0, -1]], [], []], [[[0, 2**62]], [], []],
        [[[0, 1.5]], [], []], [[[9, 1]], [], []], [[[0, 1]], [[0, 2]], []], [[], []]]),
    *((("strategy",), value) for value in [None, {}, "tree", {"kind": "tree"}, {"kind": "factorization"}]),
    *((("strategy", "kind"), value) for value in [None, "oak", [], {}]),
    *((("strategy", "noise"), value) for value in [None, "none", "gaussian", [], 1]),
    *((("strategy", "branching"), value) for value in [None, [], [2], [-7], [7.0], [True, 7], ["7"], [2**31],
        [7, 1, 1, 1], 7, {}]),
    *((("strategy", "shares"), value) for value in [None, [], [1.0], [math.nan] * 2, [0.5, 0.0], [-1, 1],
        [0, math.inf], [1e-300, 1], {}, "11", 1, [1, [1]]]),
    *((("loss",), value) for value in [None, [], {}, {"rho": -1.0}, {"epsilon": 1.0, "rho": 1.0}]),
    *((("loss", "epsilon"), value) for value in [None, "1", True, -1, 0, math.nan, math.inf, 10**400, []]),
    *((("max_contributions",), value) for value in [None, "1", True, 0, -1, 0.5, 2.0, 2**70, [], {}]),
    *((("neighbors",), value) for value in [None, ["replace"], {}, 1, "swap"]),
    *((("privacy_unit",), value) for value in [["person"], {}, 0.5, "region", "cost"]),
]  # fmt: skip


@each("place, value", TAMPERED_SHAPES)
def test_whatever_is_tampered_with_in_a_distribution_names_the_data(place, value):
    with pytest.raises(dpt.ArgumentError) as caught:
        dpt.DistributionPlan.from_dict(replaced(SHAPE.to_dict(), place, value), DOMAIN)
    assert caught.value.argument == "data" and caught.value.hint


def test_whatever_is_missing_in_a_distribution_names_the_data_or_the_domain():
    for plan in (SHAPE, ALONE):
        written = plan.to_dict()
        for place in [(key,) for key in set(written) - {"version", "digest"}] + [
            (outer, key) for outer in ("bins", "strategy") for key in written[outer]
        ]:
            with pytest.raises(dpt.ArgumentError) as caught:
                dpt.DistributionPlan.from_dict(without(written, *place), plan.domain)
            assert caught.value.argument == ("domain" if place == ("domain",) else "data")


def test_the_noise_of_a_distribution_is_that_of_the_file_and_keeps_to_the_loss():
    written = SHAPE.to_dict()
    scales = written["strategy"]["noise_scales"]
    dearer = dpt.DistributionPlan.from_dict(replaced(written, ("loss", "epsilon"), 4.0), DOMAIN)
    assert "epsilon=4" in dearer.headline and dearer.errors.tolist() == SHAPE.errors.tolist()
    larger = [scale and 1.5 * scale for scale in scales]
    noisier = dpt.DistributionPlan.from_dict(replaced(written, ("strategy", "noise_scales"), larger), DOMAIN)
    assert noisier.strategy.noise_scales == tuple(math.inf if scale is None else scale for scale in larger)
    for place, value in (
        (("strategy", "noise_scales"), [scale and 0.999 * scale for scale in scales]),
        (("max_contributions",), 5),
        (("neighbors",), "replace"),
        (("loss", "epsilon"), 0.999),
    ):
        with pytest.raises(dpt.ArgumentError, match="less noise than the privacy loss demands"):
            dpt.DistributionPlan.from_dict(replaced(written, place, value), DOMAIN)
    deep = dpt.plan_distribution("cost", **EDGES["numbers"], epsilon=1.0, strategy=[2, 4]).to_dict()
    for share in (0.0, 0.9):
        with pytest.raises(dpt.ArgumentError, match="the noise scales do not follow from the shares"):
            dpt.DistributionPlan.from_dict(replaced(deep, ("strategy", "shares", -1), share))
    scaled = [2**40 * share for share in written["strategy"]["shares"]]
    same = dpt.DistributionPlan.from_dict(replaced(written, ("strategy", "shares"), scaled), DOMAIN)
    assert same.errors.tolist() == SHAPE.errors.tolist()
    assert all(map(spends_no_more_than_stated, (SHAPE, ALONE, dearer, noisier, same)))


@given(data=st.data(), plan=st.sampled_from([SHAPE, ALONE]))
def test_anything_is_a_distribution_within_its_loss_or_an_argument_error(data, plan):
    written = plan.to_dict()
    for place in data.draw(st.lists(st.sampled_from(places_in_json(written)), max_size=2, unique=True)):
        if len(place) == 1 or isinstance(written[place[0]], dict):
            written = replaced(written, place, data.draw(json_values))
    try:
        back = dpt.DistributionPlan.from_dict(written, plan.domain)
    except dpt.ArgumentError as error:
        assert error.argument in ("data", "domain") and error.hint
    else:
        assert spends_no_more_than_stated(back) and back.loss == PrivacyLoss(**written["loss"])
        assert (back.neighbors, back.max_contributions) == (
            written["neighbors"],
            written["max_contributions"],
        )


def test_a_plan_of_a_distribution_is_a_plan_like_others():
    assert isinstance(SHAPE, dpt.Plan) and SHAPE.headline in SHAPE._repr_html_().replace("&#x27;", "'")
    assert SHAPE.provenance() == stated_in(SHAPE.release(pd.DataFrame(columns=["cost", *BY], dtype=float)))
    for options in STRATEGIES.values():
        options = {name: value for name, value in options.items() if name != "strategy"}
        plan = dpt.plan_distribution("cost", **EDGES["numbers"], domain=DOMAIN, **options)
        table = plan.compare()
        errors = table[["total", *BY]].to_numpy()
        assert (np.diff(errors[:, 0]) >= 0).all() and errors[0, 0] <= plan.errors[0] * 1.005
        assert ("factorization" in set(table["strategy"])) == (plan.loss.kind != "pure")
        names = set(zip(table["mechanism"], table["strategy"], strict=True))
        assert (plan.mechanism_name, plan.strategy.description) in names


@each("scale", [2e12, 1e308])
def test_noise_beyond_the_sampler_is_refused_before_records_are_read(scale):
    """A larger scale spends less than the loss, but no release could draw it."""
    written = dpt.plan_distribution(
        "fare", bounds=(0, 500), bins=7, rho=0.3, strategy="factorization"
    ).to_dict()
    with pytest.raises(dpt.ArgumentError, match="the noise scale is out of range"):
        dpt.Plan.from_dict(replaced(written, ("strategy", "noise_scale"), scale))

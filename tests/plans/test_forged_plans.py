"""Plans of private keys whose JSON was edited, with a new digest: refused if they would spend more."""

import copy
import math

import pandas as pd
import pytest

import pandas_dptree as dpt
from tests.helpers_cases import each
from tests.helpers_json import resealed
from tests.helpers_privacy import LOSS

DOMAIN = dpt.Domain.from_frame(pd.DataFrame({"s": ["a", "b"]}), by=["s"])
PLANS = {
    f"{name}, {neighbors}, {rows} rows": dpt.plan(
        DOMAIN, private_keys=["p", "q"], privacy_unit="unit", max_contributions=rows, neighbors=neighbors,
        **options,
    )
    for name, options in {
        "gaussian": {**LOSS, "mechanism": "gaussian"},
        "rho": {"rho": 0.05, "delta": 1e-6},
        "laplace": {**LOSS, "mechanism": "truncated_laplace"},
    }.items()
    for neighbors in ("add_remove", "replace")
    for rows in (1, 3)
}  # fmt: skip


def forged(plan, edit):
    """Edit a plan as a forger would; `edit` changes the description in place."""
    data = copy.deepcopy(plan.to_dict())
    edit(data)
    return resealed(data)


def scaled(name, factor, place=slice(None)):
    def edit(data):
        for level in data["noise"][place]:
            if level.get(name) is not None:
                level[name] *= factor

    return edit


def noise_entry(name, value, place=-1):
    return lambda data: data["noise"][place].__setitem__(name, value)


def entry(name, value):
    return lambda data: data.__setitem__(name, value)


def loss(name, factor):
    return lambda data: data["loss"].__setitem__(name, data["loss"][name] * factor)


def lowered(place):
    return lambda data: noise_entry("threshold", data["noise"][place]["threshold"] - 1, place)(data)


def swapped(data):
    data["noise"][0], data["noise"][-1] = data["noise"][-1], data["noise"][0]


FORGERIES = {
    "a smaller delta": loss("delta", 0.5),
    "more rows": lambda data: data.update(max_contributions=data["max_contributions"] + 1),
    "fewer levels": lambda data: data["noise"].pop(),
    "more levels": lambda data: data["noise"].append(data["noise"][-1]),
    "no levels": entry("noise", []),
    "other shares": entry("shares", [1.0, 1.0, 1.0, 5.0]),
    "shares of zero": entry("shares", [0.0, 1.0, 1.0, 1.0]),
    "shares without end": entry("shares", [math.inf] * 4),
    "fewer shares": lambda data: data["shares"].pop(),
    "a key less": lambda data: data["private_keys"].pop(),
    "a key more": lambda data: data["private_keys"].append("r"),
    "no private keys": entry("private_keys", None),
    "public keys as private ones": entry("private_keys", ["s", "p", "q"]),
    "a text as private keys": entry("private_keys", "pq"),
    "levels exchanged": swapped,
    "another mechanism": lambda data: data.update(
        mechanism={"truncated_laplace": "gaussian_thresholds"}.get(data["mechanism"], "truncated_laplace")
    ),
    "no mechanism": entry("mechanism", None),
    "a confidence of 1": entry("confidence", 1.0),
    "a confidence in words": entry("confidence", "high"),
}
ADD_REMOVE = {"replaced units": entry("neighbors", "replace")}
GAUSSIAN = {
    "less noise": scaled("noise_scale", 0.99),
    "less noise on one level": scaled("noise_scale", 0.99, slice(0, 1)),
    "hardly any noise": scaled("noise_scale", 1e-6),
    "noise that cannot be drawn": scaled("noise_scale", 1e13),
    "noise without end": scaled("noise_scale", math.inf),
    "negative noise": scaled("noise_scale", -1.0),
    "noise in words": noise_entry("noise_scale", "7.5"),
    "lower thresholds": scaled("threshold", 0.5),
    "a lower threshold": noise_entry("threshold", 1),
    "a negative threshold": noise_entry("threshold", -1),
    "no threshold": noise_entry("threshold", None),
    "a true threshold": noise_entry("threshold", True),
    "half a threshold": noise_entry("threshold", 500.5),
    "a threshold of a public level": noise_entry("threshold", 500, 1),
    "a threshold by one too low": lowered(-1),
    "a threshold of the level above by one too low": lowered(-2),
}
LAPLACE = {
    "more epsilon on one level": scaled("epsilon", 1.01, slice(0, 1)),
    "more epsilon": scaled("epsilon", 1.01),
    "hardly more epsilon": scaled("epsilon", 1 + 1e-12),
    "more delta": scaled("delta", 1.01),
    "a smaller sensitivity": lambda data: [
        each.update(sensitivity=each["sensitivity"] - 1) for each in data["noise"]
    ],
    "a smaller radius": scaled("radius", 0.5),
    "less noise": scaled("noise_scale", 0.5),
}
CASES = [
    pytest.param(PLANS[name], edit, id=f"{name}: {how}")
    for name in PLANS
    for how, edit in {
        **FORGERIES,
        **({"less loss": loss("rho" if name.startswith("rho") else "epsilon", 0.99)}),
        **(ADD_REMOVE if "add_remove" in name else {}),
        **(LAPLACE if name.startswith("laplace") else GAUSSIAN),
    }.items()
]  # fmt: skip


UNIT_DOMAIN = dpt.Domain.from_frame(pd.DataFrame({"r": list("aaabbb"), "d": list("xyzxyz")}), by=["r", "d"])
PEOPLE = {"privacy_unit": "unit", "max_nodes": {"r": 2, "d": 3}}
UNIT_PLANS = {
    f"{name}, {neighbors}": dpt.plan_units(UNIT_DOMAIN, **PEOPLE, **loss, neighbors=neighbors)
    for name, loss in {"epsilon": {"epsilon": 1.0}, "rho": {"rho": 0.1}, "delta": LOSS}.items()
    for neighbors in ("add_remove", "replace")
}


def all_scaled(factor):
    def edit(data):
        data["noise_scales"] = [[one and one * factor for one in level] for level in data["noise_scales"]]

    return edit


OF_UNITS = {
    "more nodes": entry("max_nodes", [1, 2, 4]),
    "more nodes and rows": lambda data: data.update(max_nodes=[1, 2, 4], max_contributions=4),
    "more rows": entry("max_contributions", 4),
    "fewer rows": entry("max_contributions", 1),
    "more nodes than a level has": entry("max_nodes", [1, 3, 3]),
    "several roots": entry("max_nodes", [2, 2, 3]),
    "fewer nodes below": entry("max_nodes", [1, 2, 1]),
    "bounds of fewer levels": entry("max_nodes", [1, 2]),
    "bounds in words": entry("max_nodes", [1, "2", 3]),
    "true bounds": entry("max_nodes", [True, 2, 3]),
    "half a node": entry("max_nodes", [1, 2.0, 3]),
    "one bound": entry("max_nodes", 3),
    "no bounds": entry("max_nodes", None),
    "a smaller loss": lambda data: data["loss"].update(
        {name: 0.5 * each for name, each in data["loss"].items() if name != "delta"}
    ),
    "each row": entry("privacy_unit", None),
    "less noise": all_scaled(0.9),
    "hardly less noise": all_scaled(1 - 1e-4),
    "no noise": all_scaled(0.0),
    "negative noise": all_scaled(-1.0),
    "noise of fewer levels": lambda data: data["noise_scales"].pop(),
    "noise of more levels": lambda data: data["noise_scales"].append(data["noise_scales"][-1]),
    "fewer shares": lambda data: data["shares"].pop(),
    "shares below 0": entry("shares", [-1.0, 1.0, 1.0, 0.0, 0.0]),
    "noise of unknown shape": entry("mechanism", "staircase"),
}


@each("name", UNIT_PLANS)
def test_counts_of_units_that_were_edited_are_refused(name):
    plan = UNIT_PLANS[name]
    assert dpt.Plan.from_dict(forged(plan, lambda data: None), UNIT_DOMAIN).to_dict() == plan.to_dict()
    edits = OF_UNITS | ({} if "replace" in name else ADD_REMOVE)

    def refused(how):
        with pytest.raises(dpt.ArgumentError) as caught:
            dpt.Plan.from_dict(forged(plan, edits[how]), UNIT_DOMAIN)
        assert caught.value.argument in ("data", "domain") and caught.value.hint

    each("how", edits)(refused)()


@each("name", PLANS)
def test_what_was_not_edited_is_read(name):
    plan = PLANS[name]
    assert dpt.Plan.from_dict(forged(plan, lambda data: None), DOMAIN).to_dict() == plan.to_dict()


@each("plan, edit", CASES)
def test_what_spends_more_is_refused(plan, edit):
    with pytest.raises(dpt.ArgumentError) as caught:
        dpt.Plan.from_dict(forged(plan, edit), DOMAIN)
    assert caught.value.argument in ("data", "domain") and caught.value.hint


@pytest.mark.parametrize("name", PLANS)
def test_what_spends_less_may_be_read(name):
    """Higher thresholds, or a larger delta than is spent."""
    plan = PLANS[name]
    data = forged(plan, loss("delta", 1.001))
    if name.startswith("laplace"):  # each level's delta would not follow from the shares
        with pytest.raises(dpt.ArgumentError):
            dpt.Plan.from_dict(data, DOMAIN)
        return
    assert dpt.Plan.from_dict(data, DOMAIN).loss.delta > plan.loss.delta
    higher = dpt.Plan.from_dict(forged(plan, noise_entry("threshold", 10**6)), DOMAIN)
    assert higher.to_frame()["shown_above"].iloc[-1] == 10**6


@each(
    "argument, options",
    [
        ("rho", {"rho": 1e-25, "delta": 1e-6}),
        ("rho", {"rho": 1e-300, "delta": 1e-6}),
        ("rho", {"rho": 1e9, "delta": 1e-6}),
        ("epsilon", {"epsilon": 1e-13, "delta": 1e-13, "mechanism": "gaussian"}),
        ("epsilon", {"epsilon": 1e-300, "delta": 1e-200, "mechanism": "gaussian"}),
        ("epsilon", {"epsilon": 1e9, "delta": 0.5, "mechanism": "gaussian"}),
    ],
)
@pytest.mark.filterwarnings("ignore::pandas_dptree.DPTreeWarning")  # losses that protect nobody
def test_noise_that_cannot_be_drawn_is_not_planned(argument, options):
    """An error at the release would come when the records have been read."""
    with pytest.raises(dpt.ArgumentError, match="noise of a scale") as caught:
        dpt.plan(None, private_keys=["p"], privacy_unit=dpt.ROWS, **options)
    assert caught.value.argument == argument

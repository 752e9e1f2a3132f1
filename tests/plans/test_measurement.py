"""Noise scales that are given, as from a file: they keep to the loss, or are refused."""

import dataclasses
import functools
import json

import numpy as np
import pytest

import pandas_dptree as dpt
from pandas_dptree.mechanisms.private_levels.gated import GatedLevels
from pandas_dptree.mechanisms.private_levels.gaussian_thresholds import GaussianThreshold
from pandas_dptree.mechanisms.private_levels.independent import IndependentLevels
from pandas_dptree.mechanisms.truncated import TruncatedLaplace
from tests.helpers_cases import each
from tests.helpers_json import replaced

TREE = dpt.Tree((np.array([3]), np.array([1, 4, 2])))
LOSSES = {
    "pure": {"epsilon": 1.0},
    "zcdp": {"rho": 0.2, "mechanism": "gaussian"},
    "zcdp laplace": {"rho": 0.2, "mechanism": "laplace"},
    "approximate": {"epsilon": 1.0, "delta": 1e-6, "mechanism": "gaussian"},
    "approximate laplace": {"epsilon": 1.0, "delta": 1e-6, "mechanism": "laplace"},
}


def read(written):
    return dpt.Plan.from_dict(json.loads(json.dumps(written)), TREE)


@each("loss", LOSSES)
def test_scales_of_a_file_are_released_unless_one_spends_more(loss):
    plan = dpt.plan(TREE, **LOSSES[loss], max_contributions=2, neighbors="replace")
    written = plan.to_dict()
    factors = {1.0: True, 1.001: True, 2.0: True, 1 - 1e-4: False, 0.9: False}
    for factor, accepted in factors.items():
        scales = [[scale and scale * factor for scale in level] for level in written["noise_scales"]]
        edited = replaced(written, ("noise_scales",), scales)
        if accepted:
            assert read(edited).to_dict()["noise_scales"] == scales
            continue
        with pytest.raises(dpt.ArgumentError, match=r"`data` is not a valid plan.*spend more than the"):
            read(edited)
    for level, scales in enumerate(written["noise_scales"]):
        for node, scale in enumerate(scales):
            if scale is not None:
                with pytest.raises(dpt.ArgumentError, match="do not follow from the shares, or spend more"):
                    read(replaced(written, ("noise_scales", level, node), 0.9 * scale))


@each("loss", LOSSES)
@each("place, value", [(("max_contributions",), 3), (("neighbors",), "replace")])
def test_scales_that_pay_for_fewer_rows_are_refused(loss, place, value):
    plan = dpt.plan(TREE, **LOSSES[loss], max_contributions=2)
    with pytest.raises(dpt.ArgumentError, match="spend more than the privacy loss"):
        read(replaced(plan.to_dict(), place, value))


def test_a_later_version_with_better_accounting_does_not_change_an_approved_plan(monkeypatch):
    """Better accounting needs less noise. Scales that an older version found are larger, and stay."""
    plan = dpt.plan(TREE, epsilon=1.0, delta=1e-6)
    older = 1.05 * plan.unit_noise_scales
    approved = dataclasses.replace(plan, unit_noise_scales=older).to_dict()
    back = read(approved)
    assert back.digest == approved["digest"] != plan.digest
    assert back.unit_noise_scales.tolist() == older.tolist()
    table = back.release(np.full(7, 5), rng=np.random.default_rng(1))
    assert table.attrs["dp"]["digest"] == back.digest == json.loads(table.attrs["dp_plan"])["digest"]


@each("value", [0.0, 1e-4, -1.0, 1e13, True, "5"])
def test_scales_out_of_range_are_refused(value):
    written = dpt.plan(TREE, epsilon=1.0, split="uniform").to_dict()
    with pytest.raises(dpt.ArgumentError, match="`data`"):
        read(replaced(written, ("noise_scales", 2, 0), value))


@each("level, share", [(0, 0.0), (1, 0.4), (2, 1.0)])
def test_a_share_that_does_not_follow_from_the_scale_is_refused(level, share):
    written = dpt.plan(TREE, epsilon=1.0, split="uniform").to_dict()
    with pytest.raises(dpt.ArgumentError, match="do not follow from the shares"):
        read(replaced(written, ("shares", level, 0), share))
    halved = [[share / 2 for share in level] for level in written["shares"]]
    with pytest.raises(dpt.ArgumentError, match="do not follow from the shares"):
        read(replaced(written, ("shares",), halved))


def test_the_digest_covers_all_but_the_version():
    written = dpt.plan(TREE, epsilon=1.0, known={"total": 20}, confidence=0.9).to_dict()
    assert read({**written, "version": "99"}).digest == written["digest"]
    other = {
        "format": "x", "kind": "joint", "domain": "0" * 64, "domain_source": "observed",
        "levels": ["a", "b", "c"], "nodes": [1, 3, 8], "loss": {"epsilon": 2.0, "delta": 0.0},
        "neighbors": "replace", "privacy_unit": "p", "max_contributions": 2, "mechanism": "gaussian",
        "consistency": "linear", "fit": "joint", "confidence": 0.8, "keep_measurements": True,
        "quantity": None, "known": None, "split": "uniform", "objective": "cells",
        "level_weights": [1.0, 1.0, 2.0], "shares": [[0.0]], "noise_scales": [[1.0]],
    }  # fmt: skip
    assert set(other) == set(written) - {"version", "digest"}
    digests = {replaced(written, (key,), value)["digest"] for key, value in other.items()}
    assert len(digests) == len(other) and written["digest"] not in digests
    for key, value in other.items():
        with pytest.raises(dpt.ArgumentError):  # without the digest of the change
            read({**written, key: value})


def test_plans_that_json_cannot_hold_have_no_digest():
    plan = dpt.plan(TREE, epsilon=1.0, privacy_unit=("a", "b"), max_contributions=1)
    assert plan.digest is None and "Digest" not in repr(plan) and plan.provenance()["digest"] is None
    assert plan._attrs().keys() == {"dp"}


def test_shares_that_are_exchanged_are_refused():
    written = dpt.plan(TREE, epsilon=1.0, split={"total": 0.2, "level_1": 0.3, "level_2": 0.5}).to_dict()
    exchanged = [written["shares"][level] for level in (1, 0, 2)]  # their sum is still 1
    with pytest.raises(dpt.ArgumentError, match="do not follow from the shares"):
        read(replaced(written, ("shares",), exchanged))


def test_noise_by_node_is_refused_by_its_name():
    written = {**dpt.plan(TREE, rho=0.2).to_dict(), "split": "nodes"}
    with pytest.raises(dpt.ArgumentError, match="differs from node to node"):
        read(replaced(written, ("shares",), [[0.3], [0.3, 0.2, 0.3], [0.4]]))


@each("place, value", [(("noise_scales", 1, 0), None), (("shares", 1, 0), 0.0)])
def test_what_has_a_share_and_nothing_else_is_measured(place, value):
    shares = {"total": 1e-9, "level_1": 1e-9, "level_2": 1 - 2e-9}  # too small to show in the sum
    written = dpt.plan(TREE, epsilon=1.0, split=shares).to_dict()
    with pytest.raises(dpt.ArgumentError, match="do not follow from the shares"):
        read(replaced(written, place, value))


def test_scales_below_the_smallest_are_refused_although_the_loss_allows_them():
    with pytest.warns(dpt.DPTreeWarning, match="protects nobody"):
        written = dpt.plan(TREE, epsilon=1e7, split="uniform").to_dict()
    assert written["noise_scales"] == [[1e-3]] * 3
    with pytest.raises(dpt.ArgumentError, match="do not follow from the shares"):
        read(replaced(written, ("noise_scales",), [[9e-4]] * 3))


@each(
    "changes",
    [
        [("epsilon", 1.01), ("delta", 1.0)],  # more than the loss
        [("epsilon", 1.0), ("delta", 1.01)],
        [("epsilon", 1 + 1e-10), ("delta", 1.0)],
        [("epsilon", 0.99), ("delta", 1.0)],  # less than the shares of it
    ],
)
def test_noise_of_an_implicit_tree_keeps_to_the_loss_and_follows_from_the_shares(changes):
    tree = dpt.binary("user", bits=8)
    plan = dpt.plan(tree, epsilon=1.0, delta=1e-6, mechanism="truncated_laplace")
    factors = dict(changes)
    levels = tuple(
        TruncatedLaplace(factors["epsilon"] * each.epsilon, factors["delta"] * each.delta)
        for each in plan.noise.levels
    )
    with pytest.raises(dpt.ArgumentError, match="`noise` does not follow from the shares"):
        dataclasses.replace(plan, noise=IndependentLevels(n_public=1, levels=levels))


@pytest.mark.parametrize("mechanism", ["truncated_laplace", "gaussian"])
def test_noise_for_one_row_is_refused_for_more(mechanism):
    tree, options = dpt.binary("user", bits=3), {"epsilon": 1.0, "delta": 1e-6, "mechanism": mechanism}
    one_row = dpt.plan(tree, **options).to_dict()["noise"]
    for rows in ({"privacy_unit": "person", "max_contributions": 2}, {"neighbors": "replace"}):
        other = dpt.plan(tree, **options, **rows).to_dict()
        with pytest.raises(dpt.ArgumentError, match="`noise` does not follow from the shares"):
            dpt.Plan.from_dict(replaced(other, ("noise",), one_row), tree)


@functools.cache
def gated_plan(kind):
    """Make a plan of few levels: the proof of its loss takes long."""
    loss = {"epsilon": {"epsilon": 1.0, "delta": 1e-6}, "rho": {"rho": 0.1, "delta": 1e-6}}[kind]
    return dpt.plan(dpt.binary("user", bits=3), **loss, mechanism="gaussian")


@pytest.mark.parametrize("kind", ["epsilon", "rho"])
@each(
    "scale, threshold, fits",
    [(1.0, 0, True), (1.0, 1, True), (0.999, 0, False), (1.001, 0, False), (1.0, -1, False)],
)
def test_gaussian_noise_of_an_implicit_tree_keeps_to_the_loss(kind, scale, threshold, fits):
    """A larger threshold costs nothing; a smaller one, or noise of another split, is refused."""
    plan = gated_plan(kind)
    *levels, last = plan.noise.levels
    changed = GaussianThreshold(scale * last.noise_scale, last.threshold + threshold)
    noise = GatedLevels(n_public=1, levels=(*levels, changed))
    if fits:
        assert dataclasses.replace(plan, noise=noise).noise == noise
    else:
        with pytest.raises(dpt.ArgumentError, match="`noise` does not follow from the shares"):
            dataclasses.replace(plan, noise=noise)

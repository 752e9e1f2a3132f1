"""What an attacker gains by a release of each kind of plan."""

import math
import re
from pathlib import Path

import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.privacy.risk import found_at_most, suspicion_after
from tests.helpers_kinds import PLANS

TREE = dpt.Tree.from_branching([3, 4])


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_every_kind_has_a_risk_that_is_at_most_that_of_its_loss(plan):
    risk = plan.risk()
    by_loss = found_at_most(risk.falsely_accused, plan.loss)
    assert all(
        share < found <= most
        for share, found, most in zip(risk.falsely_accused, risk.found, by_loss, strict=True)
    )
    assert list(risk.to_frame()) == ["falsely_accused", "found_at_most"] and "suspicion" not in repr(risk)


def test_pure_epsilon_in_words():
    risk = dpt.plan(TREE, epsilon=1.0).risk([0.05])
    assert "falsely accusing 5 of 100, they find at most 14 of 100" in risk.sentence
    assert "a suspicion of 1 % becomes at most 2.7 %" in risk.sentence
    assert "whether one of those protected is in the data" in risk.sentence
    assert risk.to_frame().round(3).to_numpy().tolist() == [[0.05, 0.136, 0.05, 0.125]]
    assert risk.sentence in repr(risk) and risk.sentence in risk._repr_html_()
    little = dpt.plan(TREE, epsilon=0.01).risk().sentence
    assert "find at most 5.1 of 100; a suspicion of 1 % becomes at most 1.1 %" in little
    other = dpt.plan(TREE, epsilon=1.0, neighbors="replace").risk().sentence
    assert "which records one of those protected has" in other


def test_more_is_known_of_the_noise_than_of_the_loss():
    known = dpt.plan(TREE, rho=0.5).risk([0.05]).found[0]
    assert 0.259 < known < 0.263 and found_at_most([0.05], dpt.PrivacyLoss(rho=0.5))[0] > 0.35
    joint = dpt.plan_agg(
        dpt.Domain.from_frame(pd.DataFrame({"a": [1, 2]}), by=["a"]),
        {"n": "count", "x": dpt.sum("x", bounds=(0, 9))},
        rho=0.5,
    )
    assert 0.259 < joint.risk([0.05]).found[0] < 0.31


def test_the_tables_of_the_documentation():
    text = (Path(__file__).parents[2] / "docs" / "protection.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([ερ]) = ([0-9.]+) \| (.*) \|$", text, re.MULTILINE)
    assert len(rows) >= 11
    for symbol, size, cells in rows:
        loss = dpt.PrivacyLoss(**{"ε": {"epsilon": float(size)}, "ρ": {"rho": float(size)}}[symbol])
        shares = found_at_most([0.01, 0.05], loss)
        if loss.epsilon is None:
            shares += dpt.plan(dpt.Tree.from_branching([20, 30]), rho=loss.rho).risk([0.01, 0.05]).found
        else:
            shares += [suspicion_after(before, loss.epsilon) for before in (0.01, 0.1)]
        for stated, share in zip(cells.replace(" %", "").split(" | "), shares, strict=True):
            assert 100 * share <= float(stated) <= max(100 * share + 0.1, math.ceil(100 * share))

"""How a budget is split: named and given splits, and what is refused."""

import numpy as np
import pytest

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.planning.split import level_shares
from tests.helpers_cases import each
from tests.helpers_planning import EPSILON, RHO, flags_of
from tests.helpers_privacy import ONE_ROW


def budget(**changes):
    tree = Tree.from_branching([2, 3])
    arguments = {"noise": Gaussian(), "loss": RHO, "sensitivity": ONE_ROW, "known": flags_of(tree, 1)}
    return level_shares(tree, **{**arguments, **changes})


@each("split", ["uniform", "geometric", "optimal", np.array([0.0, 0.0, 1.0])])
def test_if_all_is_known_there_is_nothing_to_measure(split):
    tree = Tree.from_branching([2, 3])
    with pytest.raises(ArgumentError, match=r"nothing to measure[^$]*Hint: ") as error:
        budget(split=split, known=flags_of(tree, 2))
    assert error.value.argument == "known"


def test_given_shares_spend_nothing_on_a_known_level():
    assert budget(split=np.array([0.25, 0.0, 0.75])).tolist() == [0.25, 0.0, 0.75]
    given_shares = np.array([0.25, 0.0, 0.75])
    assert budget(split=given_shares, least_squares=False)[1] == 0.0
    for shares, least_squares, fact in (
        ([0.25, 0.25, 0.5], True, "known"),
        ([0.0, 0.0, 1.0], False, "no share"),
    ):
        with pytest.raises(ArgumentError, match=rf"{fact}[^$]*Hint: ") as error:
            budget(split=np.array(shares), least_squares=least_squares)
        assert error.value.argument == "split"


@each("least_squares", [True, False])
@each("split", ["uniform", "geometric", "optimal"])
def test_a_single_level_gets_everything(split, least_squares):
    shares = level_shares(
        Tree(()), noise=Laplace(), loss=EPSILON, sensitivity=ONE_ROW, split=split, least_squares=least_squares
    )
    assert shares.tolist() == [1.0]


def budget_split(**changes):
    arguments = {"noise": Laplace(), "loss": EPSILON, "sensitivity": ONE_ROW, **changes}
    return level_shares(Tree.from_branching([2, 3]), **arguments)


def test_named_and_given_splits():
    assert budget_split(split="uniform").tolist() == [1 / 3] * 3
    np.testing.assert_allclose(
        budget_split(split="geometric"), np.cbrt([1, 2, 6]) / np.cbrt([1, 2, 6]).sum(), rtol=1e-14
    )
    np.testing.assert_allclose(budget_split(split=np.array([0.5, 0, 0.5])), [0.5, 0, 0.5], rtol=1e-15)
    thirds = np.array([0.3333333, 0.3333333, 0.3333333])
    assert budget_split(split=thirds).sum() == pytest.approx(1, abs=1e-15)


@each(
    "changes, argument",
    [
        ({"split": "fair"}, "split"),
        ({"split": np.array([0.5, 0.5])}, "split"),
        ({"split": np.array([0.5, 0.5, 0.5])}, "split"),
        ({"split": np.array([1.5, -1.0, 0.5])}, "split"),
        ({"split": np.array([np.nan, 0.5, 0.5])}, "split"),
        ({"split": np.array([0.5, 0.5, 0.0])}, "split"),
        ({"split": np.array([0.0, 0.5, 0.5]), "least_squares": False}, "split"),
        ({"objective": "cell"}, "objective"),
        ({"level_weights": np.array([1.0, 1.0])}, "level_weights"),
        ({"level_weights": np.array([1.0, -1.0, 1.0])}, "level_weights"),
        ({"level_weights": np.array([1.0, np.inf, 1.0])}, "level_weights"),
        ({"level_weights": np.zeros(3)}, "level_weights"),
        ({"noise": Gaussian()}, "mechanism"),
    ],
)
def test_what_cannot_be_split_is_refused(changes, argument):
    with pytest.raises(ArgumentError, match="Hint: ") as error:
        budget_split(**changes)
    assert error.value.argument == argument

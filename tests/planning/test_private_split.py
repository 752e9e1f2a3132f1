"""Budgets of hierarchies whose keys are not all public: the smallest nodes are found."""

import functools

import pytest

from pandas_dptree.errors import ArgumentError
from pandas_dptree.mechanisms.private_levels import LEVEL_NOISES
from pandas_dptree.mechanisms.private_levels.gated import GatedLevels
from pandas_dptree.mechanisms.private_levels.gaussian_thresholds import found_from
from pandas_dptree.mechanisms.private_levels.independent import IndependentLevels
from pandas_dptree.planning.private_split import best_noise, deepest_found_from
from pandas_dptree.privacy.loss import PrivacyLoss
from tests.helpers_cases import each

LOSS = PrivacyLoss(epsilon=1.0, delta=1e-6)
RHO = PrivacyLoss(rho=0.05, delta=1e-6)
ONE_ROW = {"neighbors": "add_remove", "max_contributions": 1}


@functools.cache
def best(mechanism, split, n_private, loss=LOSS, n_public=1, **unit):
    return best_noise(mechanism, split, loss, n_private + n_public, n_public, **{**ONE_ROW, **unit})


# The smallest count that is found with probability 0.95 at epsilon 1, delta 1e-6, below a measured total


@each("n, found", [(1, 33), (2, 48), (3, 63), (4, 78), (16, 264), (64, 1004)])
def test_even_shares_of_truncated_noise_find_the_same_on_all_levels(n, found):
    noise, shares = best("truncated_laplace", "uniform", n)
    assert shares == (1.0,) * (n + 1)
    assert noise.found_from(0.05)[1:] == pytest.approx([found] * n, abs=1)


@each("n, found", [(1, 24), (2, 28), (3, 30), (4, 31)])
def test_shares_that_double_find_small_nodes_on_the_deepest_level(n, found):
    noise, shares = best("truncated_laplace", "doubling", n)
    assert shares == tuple(2.0**level for level in range(n + 1))
    assert noise.found_from(0.05)[-1] == pytest.approx(found, abs=1)


@each("n, found", [(1, 21), (2, 22), (3, 23), (4, 24)])
def test_twice_as_much_for_the_deepest_level_finds_smaller_nodes_there(n, found):
    noise, shares = best("truncated_laplace", "optimal", n)
    assert shares == (*(2.0**level for level in range(n)), 2.0 ** (n + 1))
    assert deepest_found_from(noise) == noise.found_from(0.05)[-1] == pytest.approx(found, abs=1)


@pytest.mark.parametrize(
    ("n", "own", "chain"),
    [
        *[(1, 39, 39), (2, 48, 50), (3, 55, 59), (4, 62, 67), (16, 115, 132)],
        pytest.param(64, 233, 275, marks=pytest.mark.nightly),
    ],
)
def test_gaussian_noise_finds_small_nodes_on_all_of_many_levels(n, own, chain):
    """Below parents that are certain to be shown, and in chains of only children.

    The continuous optimum finds 229 at its own on the deepest of 64 levels, where thresholds are alike here.
    """
    noise, _ = best("gaussian", "uniform", n)
    off = 2 if n == 64 else 1
    assert found_from(noise.levels[-1:]) == pytest.approx(own, abs=off)
    assert noise.found_from(0.05)[-1] == pytest.approx(chain, abs=off)


# What is chosen


@pytest.mark.parametrize(
    "n", [1, 3, pytest.param(5, marks=pytest.mark.slow), pytest.param(12, marks=pytest.mark.nightly)]
)
@each("split", ["optimal", "doubling", "uniform"])
def test_auto_takes_the_mechanism_that_finds_smaller_nodes(split, n):
    chosen, shares = best("auto", split, n)
    both = {name: best(name, split, n) for name in LEVEL_NOISES}
    assert (chosen, shares) == min(both.values(), key=lambda one: deepest_found_from(one[0]))
    if split == "optimal":
        for name in LEVEL_NOISES:
            even, doubling = (best(name, other, n)[0] for other in ("uniform", "doubling"))
            most = even if name == "truncated_laplace" and n > 4 else doubling
            assert deepest_found_from(both[name][0]) <= deepest_found_from(most)
            if name == "gaussian":
                assert deepest_found_from(both[name][0]) <= deepest_found_from(even)


def former_choice(loss, n_private, n_public, **unit):
    """What "auto" took when the mean over the private levels decided, and shares doubled to the last."""

    def mean_found_from(one):
        found = one[0].found_from(0.05)[n_public:]
        return sum(found) / len(found)

    names = ["gaussian"] if loss.rho else list(LEVEL_NOISES)
    splits = [(name, split) for name in names for split in ("doubling", "uniform")]
    if n_private <= 4:
        splits = [one for one in splits if one != ("truncated_laplace", "uniform")]
    return min((best(*one, n_private, loss, n_public, **unit) for one in splits), key=mean_found_from)


@pytest.mark.parametrize(
    ("loss", "n_private", "n_public", "k", "least"),
    [
        (LOSS, 3, 1, 1, 2.5), (LOSS, 3, 2, 3, 2.5), (LOSS, 3, 4, 12, 1.3),
        (RHO, 3, 1, 1, 1), (RHO, 3, 3, 12, 1), (RHO, 4, 1, 3, 1), (RHO, 2, 3, 3, 1), (RHO, 1, 1, 3, 1.05),
        *[
            pytest.param(*shape, marks=pytest.mark.slow)
            for shape in [
                (LOSS, 4, 1, 3, 2.9), (LOSS, 5, 1, 1, 1), (LOSS, 4, 3, 12, 3.4),
                (PrivacyLoss(epsilon=4.0, delta=1e-8), 3, 1, 12, 2.5),
            ]
        ],
    ],
)  # fmt: skip
def test_auto_finds_nothing_less_on_the_deepest_level_than_it_did(loss, n_private, n_public, k, least):
    unit = {"max_contributions": k}
    before, _ = former_choice(loss, n_private, n_public, **unit)
    after, _ = best("auto", "optimal", n_private, loss, n_public, **unit)
    assert deepest_found_from(before) >= least * deepest_found_from(after)


def test_both_mechanisms_are_chosen_somewhere():
    assert isinstance(best("auto", "optimal", 1)[0], IndependentLevels)
    assert isinstance(best("auto", "optimal", 5)[0], GatedLevels)


def test_many_levels_are_not_doubled():
    """The root would have a share below any precision."""
    assert best("truncated_laplace", "optimal", 40)[1] == (1.0,) * 41


def test_given_shares_are_kept():
    for mechanism in ("auto", *LEVEL_NOISES):
        noise, shares = best(mechanism, (0.2, 0.3, 0.5), 2)
        assert shares == (0.2, 0.3, 0.5)
        assert noise.keeps_to(LOSS, shares, **ONE_ROW)


def test_public_levels_are_not_searched_for_nodes():
    noise, _ = best("auto", "uniform", 2, n_public=3)
    found = noise.found_from(0.05)
    assert noise.n_public == 3 and found[:3] == [None] * 3
    assert deepest_found_from(noise) == found[-1]


def test_more_rows_of_a_unit_need_more_records():
    for mechanism in LEVEL_NOISES:
        one, three = (
            deepest_found_from(best(mechanism, "uniform", 2, max_contributions=k)[0]) for k in (1, 3)
        )
        assert three > 2 * one


def test_a_rho_is_for_gaussian_noise_alone():
    assert isinstance(best("auto", "optimal", 1, RHO)[0], GatedLevels)
    with pytest.raises(ArgumentError, match="`mechanism`") as error:
        best("truncated_laplace", "optimal", 1, RHO)
    assert error.value.hint


def test_a_loss_that_one_mechanism_cannot_have_leaves_the_other():
    tiny = PrivacyLoss(epsilon=1e-14, delta=1e-6)
    with pytest.raises(ArgumentError, match="`epsilon`"):
        best("truncated_laplace", "uniform", 2, tiny)
    assert best("auto", "uniform", 2, tiny) == best("gaussian", "uniform", 2, tiny)


def test_a_loss_that_no_mechanism_can_have_is_refused():
    with pytest.raises(ArgumentError, match="`epsilon`") as error:
        best("auto", "uniform", 2, PrivacyLoss(epsilon=1e-14, delta=1e-15))
    assert error.value.hint

"""Plans of distributions: all that is measured keeps to the privacy loss."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from scipy.special import ndtr

import pandas_dptree as dpt
from pandas_dptree.distribution import tree_strategy
from pandas_dptree.distribution.factorization import FactorizationStrategy
from pandas_dptree.distribution.tree_strategy import TreeStrategy
from pandas_dptree.errors import ArgumentError
from pandas_dptree.mechanisms import weighted_sums
from pandas_dptree.mechanisms.sampling import byte_source
from pandas_dptree.output.progress import nothing
from pandas_dptree.plans.running import Origin, Resources
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import count_sensitivity
from tests.helpers_cases import each
from tests.helpers_distribution import DOMAIN, GOOD, PLACES, plan, small
from tests.helpers_random import rng
from tests.reference import listed_delta

NO_NOISE = {"epsilon": 1e6}


# --- what is planned -----------------------------------------------------------------------------------


def test_a_plan_describes_what_it_does():
    planned = plan(8, rho=0.1, domain=DOMAIN, privacy_unit="who", max_contributions=3)
    frame = planned.to_frame()
    assert frame["level"].tolist() == ["total", "a", "b"] and frame["groups"].tolist() == [1, 2, 2]
    assert frame["std_error"].tolist() == planned.errors.tolist()
    assert repr(planned).startswith("Plan of the distribution of 'x' in 8 bins: gaussian noise, rho=0.1, ")
    assert "each who (up to 3 rows, add_remove)" in repr(planned)


def test_a_level_is_as_accurate_as_known_only_if_all_its_groups_are():
    free = plan(8, epsilon=1.0, domain=DOMAIN)
    part = plan(8, epsilon=1.0, domain=DOMAIN, known={"a": {"s": 4}})
    whole = plan(8, epsilon=1.0, domain=DOMAIN, known={"a": {"s": 4, "t": 3}})
    assert free.strategy.noise_scales == part.strategy.noise_scales
    assert part.totals[1].tolist() == [4, -1] and (part.errors < free.errors).all()
    assert part.errors[1] > 0.9 * free.errors[1] and whole.totals[1].tolist() == [4, 3]
    assert (whole.errors[:2] < 0.9 * free.errors[:2]).all()


def test_a_comparison_begins_with_the_plan_where_the_total_alone_is_known():
    """The tree is chosen for totals that are not known, on all levels alike: with known ones it is flat."""
    planned = plan(12, domain=DOMAIN, epsilon=1.0, known={"total": 9})
    (row,) = planned.compare().to_dict("records")
    assert row["strategy"] == planned.strategy.description == "tree 2x8"
    assert [row[name] for name in planned.level_names] == planned.errors.tolist()
    assert plan(12, epsilon=1.0, known={"total": 9}).strategy.description == "tree 12"


LEVELS = dpt.Domain.from_frame(
    pd.DataFrame(
        {"a": ["s", "s", "s", "t", "u"], "b": ["u", "v", "w", None, "x"], "never": [False] * 4 + [True]}
    ),
    by=["a", "b"],
    structural_zeros="never",
)
KNOWN = {"nothing": None, "total": {"total": 30}, "some": {"a": {"s": 12}}, "all": {"b": pd.Series(
    [4, 0, 8, 18], pd.MultiIndex.from_tuples([("s", "u"), ("s", "v"), ("s", "w"), ("t", None)],
    names=["a", "b"]))}}  # fmt: skip


COUNTS_OF_LEVELS = np.array(
    [[0, 3, 0, 1, 0, 0], [0] * 6, [0, 0, 8, 0, 0, 0], [9, 0, 0, 0, 0, 9], [0] * 6], dtype=np.int64
)


@pytest.mark.parametrize("n", [3, pytest.param(400, marks=pytest.mark.slow)])
@each("known", KNOWN)
@each("options", [{"epsilon": 1.0}, {"rho": 0.3, "strategy": "factorization"}])
def test_levels_are_consistent_and_as_accurate_as_predicted(known, options, n):
    """Chains, groups that cannot have records, and any totals that are known."""
    planned = plan(6, (0, 6), **options, domain=LEVELS, known=KNOWN[known])
    counts = COUNTS_OF_LEVELS
    groups = [counts.sum(axis=0), counts[:3].sum(axis=0), counts[3], counts[4], *counts[[0, 1, 2, 4]]]
    source, errors = rng(3), []
    for _ in range(n):
        released = planned.release(counts, rng=source)
        errors.append(released.estimates - np.cumsum(groups, axis=1))
        by_level = np.split(released.estimates, [1, 4])
        np.testing.assert_allclose(by_level[1].sum(axis=0), by_level[0][0], atol=1e-6)
        np.testing.assert_allclose(by_level[2][:3].sum(axis=0), by_level[1][0], atol=1e-6)
    variances = released.std_errors**2
    levels = [slice(0, 1), slice(1, 4), slice(4, 8)]
    typical = [
        variances[level][released.totals[level] < 0 if (released.totals[level] < 0).any()
                         else released.totals[level] > 0]
        for level in levels
    ]  # fmt: skip
    np.testing.assert_allclose(planned.errors, [np.sqrt(each.mean()) for each in typical], rtol=1e-9)
    assert (variances[3] == 0).all() and (released.cumulative[3] == 0).all()
    if n > 3:
        starts, stops = np.triu_indices(7, 1)
        sums = np.insert(np.array(errors), 0, 0, axis=2)
        expected = released._range_errors(starts, stops) ** 2
        squares = ((sums[:, :, stops] - sums[:, :, starts]) ** 2).mean(axis=0)
        assert (np.abs(squares - expected) <= 5 * np.sqrt(6 / n) * expected + 1e-9).all()
        assert squares.sum() == pytest.approx(expected.sum(), rel=0.1)
        np.testing.assert_allclose(expected[:, starts == 0], variances, rtol=1e-6, atol=1e-9)


STRATEGIES = {
    "laplace": ({"epsilon": 0.7}, {"strategy": "tree"}),
    "laplace-given": ({"epsilon": 1.3}, {"strategy": [2, 2]}),
    "laplace-rho": ({"rho": 0.3}, {"strategy": "tree", "mechanism": "laplace"}),
    "gaussian": ({"rho": 0.3}, {"strategy": [2, 2], "mechanism": "gaussian"}),
    "factorization": ({"rho": 0.3}, {"strategy": "factorization"}),
    "approximate": ({"epsilon": 1.1, "delta": 1e-5}, {"strategy": [2, 2], "mechanism": "gaussian"}),
    "approximate-factorization": ({"epsilon": 1.1, "delta": 1e-5}, {"strategy": "factorization"}),
    "approximate-laplace": ({"epsilon": 1.1, "delta": 1e-3}, {"strategy": [4], "mechanism": "laplace"}),
}


class Recorder:
    """Takes the place of the one function that adds noise: notes what is measured and adds none."""

    def __init__(self, monkeypatch):
        self.noted = []
        monkeypatch.setattr(tree_strategy, "measure", self)
        monkeypatch.setattr(weighted_sums, "measure", self)

    def __call__(self, noise, levels, noise_scales, source):
        self.noted += [
            (value, float(scale))
            for exact, scale in zip(levels, noise_scales, strict=True)
            if math.isfinite(scale)
            for value in exact.tolist()
        ]
        return tuple(
            exact if math.isfinite(scale) else None for exact, scale in zip(levels, noise_scales, strict=True)
        )

    def of(self, planned, frame):
        """Give everything that is measured of a frame, and the scale of the noise of each."""
        self.noted = []
        origin = Origin(rng())
        planned._prepared(frame).read(Resources(origin.source))(origin, nothing)
        return np.array([value for value, _ in self.noted]), np.array([scale for _, scale in self.noted])


# --- what is spent -------------------------------------------------------------------------------------

ALL = (0, 1, 3)
"""Values of which each lies elsewhere in the trees."""


@pytest.mark.parametrize("strategy", STRATEGIES)
@each("neighbors, domain, k, values", [
    ("add_remove", None, 2, ALL), ("add_remove", DOMAIN, 1, ALL), ("add_remove", DOMAIN, 2, (3,)),
    ("replace", None, 1, ALL), ("replace", None, 2, (0, 3)), ("replace", DOMAIN, 1, ALL),
])  # fmt: skip
def test_all_that_is_measured_keeps_to_the_loss(strategy, neighbors, domain, k, values, monkeypatch):
    check_what_is_measured(strategy, neighbors, domain, k, values, monkeypatch)


@pytest.mark.parametrize("strategy", ["laplace", "gaussian", "factorization", "approximate"])
def test_all_that_is_measured_of_two_replaced_rows_keeps_to_the_loss(strategy, monkeypatch):
    check_what_is_measured(strategy, "replace", DOMAIN, 2, (0, 3), monkeypatch)


@pytest.mark.nightly
@pytest.mark.parametrize("strategy", STRATEGIES)
@each("neighbors", ["add_remove", "replace"])
def test_all_that_is_measured_of_two_rows_keeps_to_the_loss(strategy, neighbors, monkeypatch):
    check_what_is_measured(strategy, neighbors, DOMAIN, 2, ALL, monkeypatch)


def check_what_is_measured(strategy, neighbors, domain, k, values, monkeypatch):
    """Stack all measured numbers of all levels of groups; try every way to place the rows of a unit."""
    stated, options = STRATEGIES[strategy]
    unit = {} if k == 1 else {"privacy_unit": "who", "max_contributions": k}
    planned = plan(4, **stated, **options, domain=domain, neighbors=neighbors, **unit)
    recorder = Recorder(monkeypatch)
    places = [(leaf, value) for leaf in (range(3) if domain is not None else [0]) for value in values]
    base = [(0, 1), (1, 3), (2, 0)]
    measured = []
    for own in itertools.combinations_with_replacement([(-1, math.nan), *places], k):
        frame = small([*base, *own]).assign(who=[*range(3), *["me"] * k])
        vector, scales = recorder.of(planned, frame)
        measured.append(vector)
    n_levels = 1 if domain is None else 3
    nothing, *others = measured
    pairs = [(nothing, other) for other in others]
    if neighbors == "replace":
        pairs = list(itertools.combinations(measured, 2))
    moves = np.abs(np.array([here - there for here, there in pairs]))

    def exactly(power):
        """Find the most that any move costs, in fractions, with the noise scales that were drawn from."""
        costs = {scale: (moves[:, scales == scale] ** power).sum(axis=1) for scale in set(scales.tolist())}
        totals = {tuple(total) for total in np.stack(list(costs.values()), axis=1).tolist()}
        return max(_cost(total, costs, power) for total in totals)

    if strategy.startswith("laplace") and "epsilon" in stated:
        assert 0.99 < exactly(1) / Fraction(stated["epsilon"]) <= 1
        return
    spent = exactly(2) / 2
    if "rho" in stated:
        listed = isinstance(options["strategy"], list)
        tight = 0.99 if neighbors == "add_remove" or listed else 0.5  # roots stay
        assert tight < spent / Fraction(stated["rho"]) <= 1
        return
    epsilon, delta = stated["epsilon"], stated["delta"]
    if strategy == "approximate-laplace":
        number = (moves > 0).sum(axis=1)
        most = 3 if values == ALL else min(number[number > 0])  # of more there are too many to list
        few = moves[(number > 0) & (number <= most)]
        worst = few[np.argmax((few / scales).sum(axis=1))]
        assert listed_delta(
            "laplace", epsilon, [(scale, move) for scale, move in zip(scales, worst, strict=True) if move]
        ) <= delta * (1 + 1e-6)
        return
    mu = math.sqrt(2 * spent)  # many levels of noise far above 1: as if it were continuous
    found = ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
    assert found <= delta * (1 + 1e-6)
    assert min(scales) > 2 and len(scales) >= n_levels


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@each("groups, k, cells", [
    ("one", 1, range(4)), ("one", 2, range(4)), ("side by side", 2, (0, 2, 3, 7)), ("levels", 1, range(12)),
    ("levels", 2, (0, 3, 6, 11)),
])  # fmt: skip
def test_all_that_is_measured_of_counts_keeps_to_the_loss(strategy, neighbors, groups, k, cells, monkeypatch):
    check_what_is_measured_of_counts(strategy, neighbors, groups, k, cells, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
@each("neighbors", ["add_remove", "replace"])
@each("groups, cells", [("side by side", range(8)), ("levels", range(12))])
def test_all_that_is_measured_of_any_two_counts_keeps_to_the_loss(
    strategy, neighbors, groups, cells, monkeypatch
):
    check_what_is_measured_of_counts(strategy, neighbors, groups, 2, cells, monkeypatch)


def check_what_is_measured_of_counts(strategy, neighbors, groups, k, cells, monkeypatch):
    """Add every k records to counts in these cells, some at the ends of what is clipped."""
    stated, options = STRATEGIES[strategy]
    domain = DOMAIN if groups == "levels" else None
    planned = plan(4, **stated, **options, domain=domain, neighbors=neighbors, max_contributions=k)
    if groups == "side by side":
        planned = replace(planned, totals=(np.full(2, -1),))
    n_groups = len(planned.totals[-1])
    top = 2**61 // (4 * n_groups)
    if strategy.endswith("factorization"):
        top = weighted_sums.LARGEST_BIN
    base = np.zeros((n_groups, 4), dtype=np.int64)
    base[0, :3], base[-1, 3] = (-1, 0, 5), top - 1
    recorder = Recorder(monkeypatch)
    measured = [recorder.of(planned, base)]
    for own in itertools.combinations_with_replacement(cells, k):
        more = base.copy()
        np.add.at(more.reshape(-1), list(own), 1)
        measured.append(recorder.of(planned, more))
    scales = measured[0][1]
    moves = np.stack([vector.astype(object) - measured[0][0].astype(object) for vector, _ in measured])
    moves = moves.astype(np.int64)  # all are small, of numbers that no float holds
    pairs = moves[1:]
    if neighbors == "replace":
        here, there = np.triu_indices(len(moves), 1)
        pairs = moves[here] - moves[there]
    noise, loss = planned.strategy.noise, PrivacyLoss(**stated)
    power = 1 if noise.name == "laplace" and loss.kind != "zcdp" else 2
    costs = {scale: (abs(pairs[:, scales == scale]) ** power).sum(axis=1) for scale in set(scales.tolist())}
    totals = {tuple(total) for total in np.stack(list(costs.values()), axis=1).tolist()}
    most = max(_cost(total, costs, power) for total in totals) / power
    sensitivity = planned.strategy.sensitivity(neighbors=neighbors, max_contributions=k)
    spent = noise.spent(loss, sensitivity, np.tile(planned.strategy.noise_scales, len(planned.totals)))
    assert spent / 2 < most <= spent


def _cost(moves, scales, power):
    """Add up exactly what the moves on the levels of each noise scale cost together."""
    return sum(move / Fraction(scale) ** power for move, scale in zip(moves, scales, strict=True))


COUNTS = np.array([[3, 0, 5, 1], [0, 0, 0, 0], [7, 7, 0, 2]])


@pytest.mark.parametrize("strategy", STRATEGIES)
@each("domain", [None, DOMAIN])
def test_counts_are_released_as_their_records_are(strategy, domain):
    stated, options = STRATEGIES[strategy]
    planned = plan(4, **stated, **options, domain=domain, known={"total": 25 if domain else 9})
    counts = COUNTS if domain else COUNTS[0]
    rows = [(leaf, place) for (leaf, place), n in np.ndenumerate(COUNTS[: len(planned.totals[-1])])
            for _ in range(n)]  # fmt: skip
    released = planned.release(counts, rng=rng(7)), planned.release(small(rows), rng=rng(7))
    assert released[0].estimates.tobytes() == released[1].estimates.tobytes()
    assert released[0].provenance == released[1].provenance
    pd.testing.assert_frame_equal(*(each.cdf(confidence=0.9) for each in released))
    if domain is None:
        again = planned.release(counts[None].astype(np.uint8), rng=rng(7))
        assert again.estimates.tobytes() == released[0].estimates.tobytes()


def test_counts_at_structural_zeros_and_negative_ones_are_ignored():
    never = dpt.Domain.from_frame(
        PLACES.assign(never=[False, True, False]), by=["a", "b"], structural_zeros="never"
    )
    released = plan(2, (0, 2), **NO_NOISE, domain=never).release(np.array([[5, -7], [9, 9], [1, 2]]))
    assert released.histogram()["count"].tolist() == [6, 2, 5, 0, 1, 2, 5, 0, 0, 0]
    large = plan(2, (0, 2), **NO_NOISE, strategy=[2]).release(
        np.array([2**63 - 1, 2**64 - 1], dtype=np.uint64)
    )
    assert large.histogram()["count"].tolist() == [2**60, 2**60]


@each(
    "data, message",
    [
        (np.zeros(5, dtype=int), r"of shape \(3, 4\), not int64 of shape \(5,\)"),
        (np.zeros(4, dtype=int), r"not int64 of shape \(4,\)"),
        (np.zeros((4, 3), dtype=int), r"not int64 of shape \(4, 3\)"),
        (np.zeros((1, 3, 4), dtype=int), r"of shape \(1, 3, 4\)"),
        (np.zeros((3, 4)), "not float64 of shape"),
        (np.zeros((3, 4), dtype=bool), "not bool of shape"),
        (np.full((3, 4), "secret"), "not <U6 of shape"),
        (np.full((3, 4), 5, dtype=object), "not object of shape"),
    ],
)
def test_counts_that_do_not_fit_are_refused(data, message):
    with pytest.raises(ArgumentError, match=f"`data` must be whole numbers .*{message}.*\nHint: ") as error:
        plan(4, epsilon=1.0, domain=DOMAIN).release(data)
    assert error.value.argument == "data" and "secret" not in str(error.value)


def test_counts_cannot_protect_units_and_records_cannot_be_bounded_without():
    unit = plan(4, epsilon=1.0, privacy_unit="who", max_contributions=3)
    with pytest.raises(ArgumentError, match="rows of one privacy unit cannot be identified") as error:
        unit.release(COUNTS[0])
    assert error.value.argument == "data"
    bounded = plan(4, epsilon=1.0, max_contributions=3)
    assert bounded.strategy == unit.strategy
    assert bounded.release(COUNTS[0]).provenance["max_contributions"] == 3
    for refused in (bounded.release, lambda frame: dpt.cdf(frame, "x", **GOOD, max_contributions=3)):
        with pytest.raises(ArgumentError, match="needs a `privacy_unit`") as error:
            refused(small([(0, 1)]))
        assert error.value.argument == "max_contributions"


def test_groups_without_names_are_side_by_side():
    """At the noise of one, each as if it were released alone; their records have no names to be found by."""
    one = plan(4, epsilon=1.0)
    several = replace(one, totals=(np.full(3, -1),))
    assert several.errors.tolist() == one.errors.tolist()
    released = several.release(COUNTS, rng=rng(2))
    assert (released.std_errors == one.release(COUNTS[0]).std_errors[0]).all()
    exact = replace(plan(4, **NO_NOISE), totals=(np.full(3, -1),)).release(COUNTS)
    assert exact.cumulative.tolist() == COUNTS.cumsum(axis=1).tolist()
    assert exact.cdf().columns.tolist() == ["level", "group", "x", "count", "cdf", "std_error"]
    with pytest.raises(ArgumentError, match="must be an array of counts: the 3 groups"):
        several.release(small([(0, 1)]))


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_plan_with_less_noise_than_its_loss_demands_is_refused(name):
    stated, options = STRATEGIES[name]
    planned = plan(4, **stated, **options)
    strategy = planned.strategy
    if isinstance(strategy, TreeStrategy):

        def scaled(factor):
            return replace(strategy, noise_scales=tuple(factor * scale for scale in strategy.noise_scales))
    else:

        def scaled(factor):
            return replace(strategy, noise_scale=factor * strategy.noise_scale)

    smaller = PrivacyLoss(**{name: 0.99 * value for name, value in stated.items()})
    for change in (
        {"strategy": scaled(0.999)},
        {"strategy": scaled(0)},
        {"strategy": scaled(-1)},
        {"strategy": scaled(np.nan)},
        {"loss": smaller},
        {"max_contributions": 2},
        {"neighbors": "replace"},
        {"totals": planned.totals * 2, "domain": None},
    ):
        with pytest.raises(ArgumentError, match="has less noise than the privacy loss demands"):
            replace(planned, **change)


@given(
    n_bins=st.integers(1, 40), neighbors=st.sampled_from(["add_remove", "replace"]), k=st.integers(1, 4),
    loss=st.sampled_from([{"epsilon": 0.7}, {"rho": 0.13}, {"epsilon": 1.1, "delta": 1e-6}, {"epsilon": 30,
    "delta": 1e-3}]),
    mechanism=st.sampled_from(["auto", "laplace", "gaussian"]), grouped=st.booleans(),
    strategy=st.sampled_from(["auto", "tree", "factorization", [7, 8]]), known=st.sampled_from([None,
    {"total": 9}]),
)  # fmt: skip
@settings(max_examples=settings.default.max_examples // 5)  # each takes long
def test_noise_keeps_to_the_loss(n_bins, neighbors, k, loss, mechanism, grouped, strategy, known):
    """What the scales of all levels cost together, exactly, is not above the loss."""
    stated = PrivacyLoss(**loss)
    try:
        planned = plan(
            n_bins, **loss, mechanism=mechanism, strategy=strategy, neighbors=neighbors, known=known,
            domain=DOMAIN if grouped else None, privacy_unit="who", max_contributions=k,
        )  # fmt: skip
    except ArgumentError as error:
        assert error.argument in ("mechanism", "strategy")
        assert stated.kind == "pure" or (mechanism == "laplace" and strategy == "factorization")
        return
    n_levels = 3 if grouped else 1
    assert len(planned.errors) == n_levels
    first = planned.strategy
    noise, sensitivity = first.noise, count_sensitivity(neighbors=neighbors, max_contributions=k)
    if isinstance(first, FactorizationStrategy):
        sensitivity = first.sums.sensitivity(neighbors=neighbors, max_contributions=k)
        scales = [first.noise_scale] * n_levels
    else:
        scales = [*first.noise_scales] * n_levels
    spent = noise.spent(stated, sensitivity, scales)
    within = spent <= noise.budget(stated)
    if stated.kind == "approximate" and not within:
        within = noise.delta(stated.epsilon, scales, sensitivity) <= stated.delta
    assert within
    if stated.kind != "approximate":
        assert spent >= noise.budget(stated) * Fraction(999_999, 1_000_000)


def test_an_audit_of_the_whole():
    """The likelihood of what shows of one group, under neighbours, by counting."""
    planned = plan(2, bounds=(0, 2), epsilon=1.0, strategy=[2])
    runs = 20_000
    frames = [pd.DataFrame({"x": [0.5] * n}) for n in (3, 4)]
    counts = []
    for seed, frame in enumerate(frames):
        source = byte_source(rng(seed))
        exact = np.tile(np.histogram(frame["x"], 2, (0, 2))[0], (runs, 1))
        estimates = planned.strategy.estimates(exact, np.full(runs, -1), source)
        counts.append(np.array([(estimates[:, 0] <= t).mean() for t in range(-2, 9)]))
    here, there = counts
    ratio = np.log(here / there)
    assert 0.9 < ratio[:5].max() < 1.1  # it is 1 in the tail, and never more

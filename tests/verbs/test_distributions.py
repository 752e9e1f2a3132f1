"""Distributions of a column: what is spent, how accurate they are, and the tables made of them."""

import inspect
import itertools
import json
import math
import pickle
from dataclasses import replace
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from scipy.special import ndtr

import pandas_dptree as dpt
from pandas_dptree.distribution import strategy as strategy_module
from pandas_dptree.distribution.strategy import FactorizedPrefixes, TreePrefixes
from pandas_dptree.errors import ArgumentError, ColumnsError
from pandas_dptree.mechanisms import prefix_sums
from pandas_dptree.mechanisms.additive import Gaussian, Laplace
from pandas_dptree.mechanisms.prefix_sums import PrefixStrategy
from pandas_dptree.mechanisms.sampling import byte_source
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import count_sensitivity
from tests.privacy.test_composition import listed_delta

PLACES = pd.DataFrame({"a": ["s", "s", "t"], "b": ["u", "v", None]})
DOMAIN = dpt.Domain.from_frame(PLACES, by=["a", "b"])
NO_NOISE = {"epsilon": 1e6}
VERBS = {
    "cdf": dpt.cdf,
    "histogram": dpt.histogram,
    "quantiles": lambda frame, column, **options: dpt.quantiles(frame, column, [0.25, 0.5], **options),
    "range_counts": lambda frame, column, **options: dpt.range_counts(frame, column, [(0, 4)], **options),
}


def rng(seed=0):
    return np.random.default_rng(seed)


def plan(bins=4, bounds=(0, 4), **options):
    return dpt.plan_distribution("x", bounds=bounds, bins=bins, **options)


def small(rows):
    """Make records of pairs: a leaf of the domain, or -1 for none, and a value."""
    keys = pd.DataFrame([*PLACES.itertuples(index=False), ("z", "z")], columns=["a", "b"], dtype=object)
    frame = keys.iloc[[leaf if leaf >= 0 else 3 for leaf, _ in rows]].reset_index(drop=True)
    return frame.assign(x=pd.Series([value for _, value in rows], dtype="float64"))


# --- what is planned -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "most"),
    [
        ({"bins": 256, "epsilon": 1}, 8.42),
        ({"bins": 1024, "epsilon": 1}, 10.92),
        ({"bins": 256, "rho": 0.5}, 2.68),
        ({"bins": 256, "epsilon": 1, "known": {"total": 100}}, 6.26),
    ],
    ids=repr,
)
def test_errors_are_as_small_as_promised(options, most):
    assert plan(**options).errors <= most


@pytest.mark.parametrize("loss", [{"epsilon": 1}, {"rho": 0.5}, {"epsilon": 1, "delta": 1e-6}], ids=repr)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
def test_the_best_is_taken_and_a_known_total_helps(loss, neighbors):
    options = {"bins": 32, "neighbors": neighbors, **loss}
    best = plan(**options)
    trees = [plan(**options, tree=tree) for tree in ("tree", [4, 8], [32])]
    others = [*trees, plan(**options, tree="tree", mechanism="laplace")]
    if "epsilon" not in loss or "delta" in loss:
        others += [plan(**options, tree="factorization"), plan(**options, mechanism="gaussian")]
    assert best.errors in [other.errors for other in others if other.strategy != trees[1].strategy]
    assert all(best.errors <= other.errors * 1.005 for other in others)
    assert plan(**options, known={"total": 5}).errors < best.errors
    assert trees[1].strategy.branching == (4, 8) and trees[1].strategy.noise_scales[0] == math.inf


@pytest.mark.parametrize("rho", [0.1, 0.5, 2, 50])
def test_no_way_is_better_than_the_one_taken_however_large_the_loss(rho):
    for n_bins in (1, 2, 3, 32, 100):
        best = plan(n_bins, rho=rho)
        for tree in ("tree", "factorization"):
            for mechanism in ("gaussian", "laplace")[: 1 + (tree == "tree")]:
                other = plan(n_bins, rho=rho, tree=tree, mechanism=mechanism)
                assert best.errors <= other.errors * 1.005


@pytest.mark.parametrize("tree", [[16, 16], (np.int64(16), 16), np.array([16, 16])], ids=repr)
def test_a_given_tree_is_measured_evenly(tree):
    measured = plan(256, epsilon=1, tree=tree).strategy
    assert measured.branching == (16, 16) and measured.noise_scales == (math.inf, 2, 2)
    assert plan(200, epsilon=1, tree=tree).strategy.n_bins == 200


def test_many_bins_and_few():
    assert plan(2**20 + 1, rho=1, tree=[1024, 1025]).errors > 0
    assert isinstance(plan(1, epsilon=1, rho=None).strategy, TreePrefixes)
    assert plan(1, epsilon=1, known={"total": 3}).errors == 0
    for tiny in ({"epsilon": 1e-9, "delta": 1e-6}, {"rho": 1e-16}):  # too little for a factorization
        assert isinstance(plan(5, **tiny).strategy, TreePrefixes)
    with pytest.raises(ArgumentError, match="n_bins"):
        plan(2**20 + 1, rho=1, tree="factorization")


def test_a_plan_tells_what_it_does():
    planned = plan(8, rho=0.1, domain=DOMAIN, privacy_unit="who", max_contributions=3)
    frame = planned.to_frame()
    assert frame["level"].tolist() == ["total", "a", "b"] and frame["groups"].tolist() == [1, 2, 2]
    assert frame["std_error"].tolist() == planned.errors.tolist()
    assert repr(planned).startswith("Plan of the distribution of 'x' in 8 bins: gaussian noise, rho=0.1, ")
    assert "each who (up to 3 rows, add_remove)" in repr(planned)


# --- what is spent -------------------------------------------------------------------------------------

WAYS = {
    "laplace": ({"epsilon": 0.7}, {"tree": "tree"}),
    "laplace-given": ({"epsilon": 1.3}, {"tree": [2, 2]}),
    "laplace-rho": ({"rho": 0.3}, {"tree": "tree", "mechanism": "laplace"}),
    "gaussian": ({"rho": 0.3}, {"tree": [2, 2], "mechanism": "gaussian"}),
    "factorization": ({"rho": 0.3}, {"tree": "factorization"}),
    "approximate": ({"epsilon": 1.1, "delta": 1e-5}, {"tree": [2, 2], "mechanism": "gaussian"}),
    "approximate-factorization": ({"epsilon": 1.1, "delta": 1e-5}, {"tree": "factorization"}),
    "approximate-laplace": ({"epsilon": 1.1, "delta": 1e-3}, {"tree": [4], "mechanism": "laplace"}),
}


class Recorder:
    """Takes the place of the one function that adds noise: notes what is measured and adds none."""

    def __init__(self, monkeypatch):
        self.noted = []
        monkeypatch.setattr(strategy_module, "measure", self)
        monkeypatch.setattr(prefix_sums, "measure", self)

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
        planned._estimates(frame, byte_source(rng()))
        return np.array([value for value, _ in self.noted]), np.array([scale for _, scale in self.noted])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize(("domain", "k"), [(None, 1), (None, 2), (DOMAIN, 1), (DOMAIN, 2)], ids=str)
def test_all_that_is_measured_keeps_to_the_loss(way, neighbors, domain, k, monkeypatch):
    """Stack all measured numbers of all levels of groups; try every way to place the rows of a unit."""
    stated, options = WAYS[way]
    unit = {} if k == 1 else {"privacy_unit": "who", "max_contributions": k}
    planned = plan(4, **stated, **options, domain=domain, neighbors=neighbors, **unit)
    recorder = Recorder(monkeypatch)
    places = [(leaf, value) for leaf in (range(3) if domain is not None else [0]) for value in (0, 1, 3)]
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
        return max(
            sum(each / Fraction(scale) ** power for each, scale in zip(total, costs, strict=True))
            for total in totals
        )

    if way.startswith("laplace") and "epsilon" in stated:
        assert 0.99 < exactly(1) / Fraction(stated["epsilon"]) <= 1
        return
    spent = exactly(2) / 2
    if "rho" in stated:
        tight = 0.99 if neighbors == "add_remove" or isinstance(options["tree"], list) else 0.5  # roots stay
        assert tight < spent / Fraction(stated["rho"]) <= 1
        return
    epsilon, delta = stated["epsilon"], stated["delta"]
    if way == "approximate-laplace":
        few = moves[np.isin((moves > 0).sum(axis=1), [1, 2, 3])]  # of more there are too many to list
        worst = few[np.argmax((few / scales).sum(axis=1))]
        assert listed_delta(
            "laplace", epsilon, [(scale, move) for scale, move in zip(scales, worst, strict=True) if move]
        ) <= delta * (1 + 1e-6)
        return
    mu = math.sqrt(2 * spent)  # many levels of noise far above 1: as if it were continuous
    found = ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
    assert found <= delta * (1 + 1e-6)
    assert min(scales) > 2 and len(scales) >= n_levels


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace"])
@pytest.mark.parametrize(("groups", "k"), [("one", 1), ("one", 2), ("side by side", 2), ("levels", 1),
    ("levels", 2)])  # fmt: skip
def test_all_that_is_measured_of_counts_keeps_to_the_loss(way, neighbors, groups, k, monkeypatch):
    """Add every k records to counts, some at the ends of what is clipped, in one group or in several."""
    stated, options = WAYS[way]
    domain = DOMAIN if groups == "levels" else None
    planned = plan(4, **stated, **options, domain=domain, neighbors=neighbors, max_contributions=k)
    if groups == "side by side":
        planned = replace(planned, totals=(np.full(2, -1),))
    n_groups = len(planned.totals[-1])
    top = 2**61 // (4 * n_groups)
    if way.endswith("factorization"):
        top = prefix_sums.LARGEST_BIN
    base = np.zeros((n_groups, 4), dtype=np.int64)
    base[0, :3], base[-1, 3] = (-1, 0, 5), top - 1
    recorder = Recorder(monkeypatch)
    measured = [recorder.of(planned, base)]
    for own in itertools.combinations_with_replacement(range(base.size), k):
        more = base.copy()
        np.add.at(more.reshape(-1), list(own), 1)
        measured.append(recorder.of(planned, more))
    scales = measured[0][1]
    nothing, *others = [vector.astype(object) for vector, _ in measured]
    pairs = [(nothing, other) for other in others]
    if neighbors == "replace":
        pairs += itertools.combinations(others, 2)
    noise, loss = planned.strategy.noise, PrivacyLoss(**stated)
    power = 1 if noise.name == "laplace" and loss.kind != "zcdp" else 2
    costs = [(abs(here - there) ** power / _fractions(scales) ** power).sum() for here, there in pairs]
    most = max(costs) / power
    sensitivity = planned.strategy.sensitivity(neighbors=neighbors, max_contributions=k)
    spent = noise.spent(loss, sensitivity, np.tile(planned.strategy.noise_scales, len(planned.totals)))
    assert spent / 2 < most <= spent


def _fractions(scales):
    return np.array([Fraction(scale) for scale in scales], dtype=object)


COUNTS = np.array([[3, 0, 5, 1], [0, 0, 0, 0], [7, 7, 0, 2]])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("domain", [None, DOMAIN], ids=["one", "groups"])
def test_counts_are_released_as_their_records_are(way, domain):
    stated, options = WAYS[way]
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


def test_counts_where_nobody_can_be_are_none_and_so_are_negative_ones():
    never = dpt.Domain.from_frame(
        PLACES.assign(never=[False, True, False]), by=["a", "b"], structural_zeros="never"
    )
    released = plan(2, (0, 2), **NO_NOISE, domain=never).release(np.array([[5, -7], [9, 9], [1, 2]]))
    assert released.histogram()["count"].tolist() == [6, 2, 5, 0, 1, 2, 5, 0, 0, 0]
    large = plan(2, (0, 2), **NO_NOISE, tree=[2]).release(np.array([2**63 - 1, 2**64 - 1], dtype=np.uint64))
    assert large.histogram()["count"].tolist() == [2**60, 2**60]


@pytest.mark.parametrize(
    ("data", "told"),
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
    ids=repr,
)
def test_counts_that_do_not_fit_are_refused(data, told):
    with pytest.raises(ArgumentError, match=f"`data` must be whole numbers .*{told}.*\nHint: ") as error:
        plan(4, epsilon=1.0, domain=DOMAIN).release(data)
    assert error.value.argument == "data" and "secret" not in str(error.value)


def test_counts_cannot_protect_units_and_records_cannot_be_bounded_without():
    unit = plan(4, epsilon=1.0, privacy_unit="who", max_contributions=3)
    with pytest.raises(ArgumentError, match="nobody can tell the rows of one privacy unit") as error:
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


@pytest.mark.parametrize("way", WAYS)
def test_a_plan_with_less_noise_than_its_loss_demands_is_refused(way):
    stated, options = WAYS[way]
    planned = plan(4, **stated, **options)
    strategy = planned.strategy
    if isinstance(strategy, TreePrefixes):

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
    tree=st.sampled_from(["auto", "tree", "factorization", [7, 8]]), known=st.sampled_from([None,
    {"total": 9}]),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_noise_keeps_to_the_loss(n_bins, neighbors, k, loss, mechanism, grouped, tree, known):
    """What the scales of all levels cost together, exactly, is not above the loss."""
    stated = PrivacyLoss(**loss)
    try:
        planned = plan(
            n_bins, **loss, mechanism=mechanism, tree=tree, neighbors=neighbors, known=known,
            domain=DOMAIN if grouped else None, privacy_unit="who", max_contributions=k,
        )  # fmt: skip
    except ArgumentError as error:
        assert error.argument in ("mechanism", "tree")
        assert stated.kind == "pure" or (mechanism == "laplace" and tree == "factorization")
        return
    n_levels = 3 if grouped else 1
    assert len(planned.errors) == n_levels
    first = planned.strategy
    noise, sensitivity = first.noise, count_sensitivity(neighbors=neighbors, max_contributions=k)
    if isinstance(first, FactorizedPrefixes):
        sensitivity = first.strategy.sensitivity(neighbors=neighbors, max_contributions=k)
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
    planned = plan(2, bounds=(0, 2), epsilon=1.0, tree=[2])
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


# --- how accurate it is --------------------------------------------------------------------------------

SCALES = {
    "laplace": TreePrefixes(16, Laplace(), (4, 4), (math.inf, 3.0, 2.0)),
    "laplace-root": TreePrefixes(8, Laplace(), (2, 4), (4.0, 3.0, 2.0)),
    "laplace-13": TreePrefixes(13, Laplace(), (4, 4), (5.0, 3.0, 2.0)),
    "gaussian-13": TreePrefixes(13, Gaussian(), (3, 5), (math.inf, 3.0, 4.0)),
    "gaussian-100": TreePrefixes(100, Gaussian(), (3, 6, 6), (9.0, 7.0, 5.0, 6.0)),
    "little": TreePrefixes(6, Laplace(), (2, 3), (math.inf, 0.4, 0.3)),
    "one": TreePrefixes(1, Laplace(), (1,), (math.inf, 3.0)),
    "factorization-13": FactorizedPrefixes(PrefixStrategy(13), 2e6),
    "factorization-100": FactorizedPrefixes(PrefixStrategy(100), 9e6),
}


@pytest.mark.parametrize("way", SCALES)
def test_errors_told_are_errors_seen(way):
    """Of prefixes and ranges, where some totals are known: seeded, within five standard errors."""
    each = SCALES[way]
    n_bins, n = each.n_bins, 1500 if way.startswith("factorization") else 6000
    counts = np.tile(rng(1).integers(0, 9, n_bins), (n, 1))
    exact = counts[0].cumsum()
    known = np.arange(n) % 2 == 0
    estimates = each.estimates(counts, np.where(known, exact[-1], -1), byte_source(rng(2)))
    assert estimates.shape == (n, n_bins)
    np.testing.assert_allclose(estimates[known, -1], exact[-1], atol=1e-6)
    starts, stops = np.triu_indices(n_bins + 1, 1)
    if n_bins > 20:
        chosen = rng(3).choice(len(starts), 200, replace=False)
        starts, stops = starts[chosen], stops[chosen]
    for is_known in (False, True):
        errors = (estimates - exact)[known == is_known]
        variances = each.variances(known_total=is_known)
        ranges = np.diff(np.insert(errors, 0, 0, axis=1)[:, np.stack([starts, stops])], axis=1)[:, 0]
        told = each.range_variances(starts, stops, known_total=is_known)
        singles = each.range_variances(np.arange(n_bins), np.arange(n_bins) + 1, known_total=is_known)
        np.testing.assert_allclose(told[starts == 0], variances[stops[starts == 0] - 1], rtol=1e-6, atol=1e-9)
        bins = np.diff(errors, axis=1, prepend=0)
        for seen, expected in ((errors, variances), (ranges, told), (bins, singles)):
            kurtosis = 6 if way != "little" else 40
            assert (np.abs(seen.mean(axis=0)) <= 5 * np.sqrt(expected / len(seen)) + 1e-6).all()
            spread = (seen**2).mean(axis=0)
            np.testing.assert_allclose(spread, expected, rtol=5 * math.sqrt(kurtosis / len(seen)), atol=1e-9)
            assert spread.mean() == pytest.approx(expected.mean(), rel=0.06, abs=1e-9)


@pytest.mark.parametrize("way", SCALES)
def test_drawn_errors_are_those_of_the_estimates(way):
    each = SCALES[way]
    for known in (False, True):
        drawn = each.errors(2000, byte_source(rng(4)), known_total=known)
        np.testing.assert_allclose(
            (drawn**2).mean(axis=0), each.variances(known_total=known), rtol=0.5, atol=1e-9
        )
        narrow, wide = (each.half_widths(confidence, known_total=known) for confidence in (0.5, 0.99))
        assert (wide >= narrow).all() and (narrow >= 0).all()
        inside = (np.abs(drawn) <= narrow + 1e-9).all(axis=1).mean()
        assert inside >= 0.48


def test_a_surer_band_holds_rarer_errors():
    each = SCALES["laplace-13"]
    drawn = np.abs(each.errors(40_000, byte_source(rng(5)), known_total=False))
    outside = (drawn > each.half_widths(0.999, known_total=False)).any(axis=1).mean()
    assert outside < 0.0013


@pytest.mark.parametrize("known", [None, "some"])
@pytest.mark.parametrize("loss", [{"epsilon": 1.0}, {"rho": 0.2}], ids=repr)
def test_tables_tell_the_errors_of_their_groups(loss, known):
    keys = pd.DataFrame({"g": [f"{i:03}" for i in range(400)]})
    domain = dpt.Domain.from_frame(keys, by=["g"])
    frame = keys.loc[keys.index.repeat(5)].assign(x=np.tile([0.5, 1.5, 1.5, 4.5, 5.5], 400))
    exact = np.array([1, 3, 3, 3, 4, 5])
    some = {"g": {f"{i:03}": 5 for i in range(0, 400, 2)}} if known else None
    released = plan(6, (0, 6), **loss, domain=domain, known=some).release(frame, rng=rng(6))
    assert (released.totals >= 0).sum() == (200 if known else 0)
    told = released.std_errors
    for rows in (released.totals >= 0, released.totals < 0):
        if rows[1:].any():
            seen = (released.estimates - exact)[rows & (np.arange(401) > 0)]
            np.testing.assert_allclose((seen**2).mean(axis=0), told[rows][-1] ** 2, rtol=0.5, atol=1e-9)
            assert (told[rows & (np.arange(401) > 0)] == told[rows][-1]).all()
    table = released.cdf()
    assert table["std_error"].tolist() == told.ravel().tolist()
    bins = released.histogram()["std_error"].to_numpy().reshape(401, 6)
    np.testing.assert_allclose(bins[:, 0], told[:, 0], rtol=1e-9)
    ranges = released.range_counts([(0, 2), (1, 6)])["std_error"].to_numpy().reshape(401, 2)
    np.testing.assert_allclose(ranges[:, 0], told[:, 1], rtol=1e-9)


SHAPES = {
    "empty": [],
    "one": [7.5],
    "ties": [3.5] * 40,
    "ends": [0.0] * 10 + [16.0] * 10,
    "even": list(np.arange(16) + 0.5) * 3,
    "slope": list(np.repeat(np.arange(16) + 0.5, np.arange(16))),
}
GROUPS = pd.DataFrame({"g": range(1000)})
QS = [0.0, 0.01, 0.25, 0.5, 0.9, 1.0]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "options",
    [{"epsilon": 2.0}, {"epsilon": 2.0, "known": "all"}, {"epsilon": 3.0, "tree": [16]}, {"rho": 0.3,
    "tree": "tree"}],
    ids=repr,
)  # fmt: skip
def test_intervals_hold_the_truth_as_often_as_promised(options, shape):
    """Each of 1000 groups is a release of its own of the same values."""
    values = SHAPES[shape]
    domain = dpt.Domain.from_frame(GROUPS, by=["g"])
    frame = GROUPS.loc[GROUPS.index.repeat(len(values))].assign(x=np.tile(values, len(GROUPS)))
    if options.get("known"):
        options = {**options, "known": {"g": dict.fromkeys(range(len(GROUPS)), len(values))}}
    released = plan(16, (0, 16), **options, domain=domain).release(frame, rng=rng(7))
    exact = np.histogram(values, 16, (0, 16))[0].cumsum()
    for confidence in (0.9, 0.95):
        table = released.cdf(confidence=confidence)
        lower, upper, count = (
            table[name].to_numpy().reshape(-1, 16)[1:] for name in ("lower", "upper", "count")
        )
        assert (lower <= count).all() and (count <= upper).all()
        assert (np.diff(lower, axis=1) >= 0).all() and (np.diff(upper, axis=1) >= 0).all()
        held = ((lower <= exact) & (exact <= upper)).all(axis=1).mean()
        assert held >= confidence - 0.015
        told = released.quantiles(QS, confidence=confidence)
        low, high, value = (
            told[name].to_numpy().reshape(-1, len(QS))[1:] for name in ("lower", "upper", "value")
        )
        seen = ~np.isnan(value)
        assert (low < high).all() and (low[seen] <= value[seen]).all() and (value[seen] <= high[seen]).all()
        assert (np.diff(low, axis=1) >= 0).all() and (np.diff(high, axis=1) >= 0).all()
        if values:
            wanted = np.array([np.quantile(values, q, method="inverted_cdf") for q in QS])
            place = np.minimum(wanted.astype(int), 15)
            held = ((low <= place) & (place + 1 <= high)).all(axis=1).mean()
            assert held >= confidence - 0.015


def test_intervals_of_a_factorization_hold_the_truth():
    values = SHAPES["slope"]
    exact = np.histogram(values, 16, (0, 16))[0]
    each = plan(16, (0, 16), rho=0.1, tree="factorization").strategy
    errors = np.abs(
        each.estimates(np.tile(exact, (600, 1)), np.full(600, -1), byte_source(rng(8))) - exact.cumsum()
    )
    for confidence in (0.9, 0.95):
        held = (errors <= each.half_widths(confidence, known_total=False)).all(axis=1).mean()
        assert confidence - 0.015 <= held <= confidence + 0.05


# --- tables --------------------------------------------------------------------------------------------

VALUES = st.one_of(st.floats(), st.integers(-3, 9), st.sampled_from([0, 1, 2, 3, 4, 5]))


@given(
    rows=st.lists(st.tuples(st.integers(-1, 2), VALUES), max_size=30), n_bins=st.integers(1, 12),
    loss=st.sampled_from([{"epsilon": 0.3}, {"epsilon": 3}, {"rho": 0.5}, {"epsilon": 1, "delta": 1e-5}]),
    known=st.sampled_from([None, {"total": 0}, {"total": 17}]), grouped=st.booleans(), seed=st.integers(0,
    99),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_tables_are_whole_and_belong_together(rows, n_bins, loss, known, grouped, seed):
    planned = plan(n_bins, (0, 6), **loss, known=known, domain=DOMAIN if grouped else None)
    released = planned.release(small(rows), rng=rng(seed))
    n_groups = 5 if grouped else 1
    table = released.cdf(confidence=0.9)
    count = table["count"].to_numpy().reshape(n_groups, n_bins)
    assert count.dtype == np.int64 and (count >= 0).all() and (np.diff(count, axis=1) >= 0).all()
    if known:
        assert count[0, -1] == known["total"]
        assert table["lower"].iloc[n_bins - 1] == table["upper"].iloc[n_bins - 1] == known["total"]
    share = table["cdf"].to_numpy().reshape(n_groups, n_bins)
    empty = count[:, -1] == 0
    assert np.isnan(share[empty]).all() and (share[~empty, -1] == 1).all()
    assert (share[~empty] == count[~empty] / count[~empty, -1:]).all()
    bins = released.histogram()["count"].to_numpy().reshape(n_groups, n_bins)
    assert (bins.cumsum(axis=1) == count).all() and (bins >= 0).all()
    edges = planned.bins.edges
    places = list(itertools.combinations(range(n_bins + 1), 2))
    ranges = released.range_counts([(edges[i], edges[j]) for i, j in places])
    sums = np.insert(count, 0, 0, axis=1)
    expected = np.stack([sums[:, j] - sums[:, i] for i, j in places], axis=1)
    assert (ranges["count"].to_numpy().reshape(n_groups, -1) == expected).all()
    told = released.quantiles([0, 0.3, 1], confidence=0.9)
    value = told["value"].to_numpy().reshape(n_groups, 3)
    assert (np.isnan(value).all(axis=1) == empty).all()
    assert (told["lower"] >= 0).all() and (told["upper"] <= 6).all() and (told["lower"] < told["upper"]).all()
    place = np.array([np.flatnonzero(row)[[0, -1]] for row in bins[~empty]], dtype=int).reshape(-1, 2)
    np.testing.assert_allclose(value[~empty, 0], edges[place[:, 0]])
    np.testing.assert_allclose(value[~empty, 2], edges[place[:, 1] + 1])
    for each in (table, ranges, told, released.histogram()):
        assert json.loads(json.dumps(each.attrs["dp"])) == each.attrs["dp"]


RANGES = [(0, 2), (2, 4)]
FRAMES = [
    pd.DataFrame({"x": [], "a": [], "b": [], "u": []}).astype({"a": object, "b": object}),
    pd.DataFrame({"x": [math.nan] * 3, "a": "s", "b": "u", "u": 1.0}),
    pd.DataFrame({"x": [1e300, -math.inf, 2] * 30, "a": "s", "b": "v", "u": 2.0}),
    pd.DataFrame({"x": [1, 2, 3] * 30, "a": "nowhere", "b": None, "u": 3.0}),
]


@pytest.mark.parametrize("by", [None, ["a", "b"]])
@pytest.mark.parametrize("kind", ["numbers", "times", "zoned", "durations"])
def test_rows_columns_and_types_do_not_depend_on_the_records(kind, by):
    start, day = pd.Timestamp("2024-03-30"), pd.Timedelta(days=1)
    low = {"numbers": 0, "times": start, "zoned": start.tz_localize("Europe/Paris"), "durations": 0 * day}[
        kind
    ]
    step = 1 if kind == "numbers" else day
    looks = set()
    for frame in FRAMES:
        if kind != "numbers":
            frame = frame.assign(x=low + pd.to_timedelta(frame["x"].clip(0, 9), unit="D"))
        released = dpt.release_distribution(
            frame, "x", bounds=(low, low + 4 * step), bins=4, epsilon=1, by=by,
            domain=None if by is None else PLACES, privacy_unit="u", max_contributions=2, rng=rng(),
        )  # fmt: skip
        tables = [
            released.cdf(), released.cdf(confidence=0.9), released.histogram(), released.quantiles([0, 0.5,
            1]),
            released.range_counts([(low, low + 2 * step), (low + step, low + 4 * step)]),
        ]  # fmt: skip
        looks.add(
            tuple(
                (
                    table.shape, tuple(table.columns), tuple(map(str, table.dtypes)), str(table.index.dtype),
                    table.index.name, json.dumps(table.attrs["dp"]), str(table.index.tolist()),
                )
                for table in tables
            )
        )  # fmt: skip
    assert len(looks) == 1
    (look,) = looks
    keys = () if by is None else ("level", "a", "b", "x")
    assert look[0][1] == (*keys, "count", "cdf", "std_error") and look[1][1][-2:] == ("lower", "upper")
    assert look[0][0][0] == (4 if by is None else 20) and look[3][0][0] == (3 if by is None else 15)
    if by is None:
        assert look[0][3].startswith("interval[") and look[0][4] == look[4][4] == "x" and look[3][4] == "q"
    else:
        assert look[3][1] == ("level", "a", "b", "q", "value", "lower", "upper")


def test_groups_stand_in_the_table_with_their_keys():
    frame = small([(0, 0.5), (0, 2.5), (1, 3.5), (2, 1.5), (-1, 1.5), (0, math.nan)])
    table = dpt.histogram(frame, "x", bounds=(0, 4), bins=4, by=["a", "b"], domain=PLACES, **NO_NOISE)
    assert table.columns.tolist() == ["level", "a", "b", "x", "count", "std_error"]
    assert table["level"].tolist() == np.repeat(["total", "a", "a", "b", "b"], 4).tolist()
    assert table["a"].fillna("-").tolist() == np.repeat(["-", "s", "t", "s", "s"], 4).tolist()
    assert table["b"].fillna("-").tolist() == np.repeat(["-", "-", "-", "u", "v"], 4).tolist()
    assert table["x"].array[:4].tolist() == pd.interval_range(0.0, 4.0, closed="left").tolist()
    assert table["count"].tolist() == [
        *[1, 1, 1, 1],
        *[1, 0, 1, 1],
        *[0, 1, 0, 0],
        *[1, 0, 1, 0],
        *[0, 0, 0, 1],
    ]


@given(
    rows=st.lists(st.tuples(st.integers(-1, 2), st.one_of(st.floats(-1, 7), st.integers(0, 6))), max_size=30),
    n_bins=st.integers(1, 9), tree=st.sampled_from(["auto", "tree", "factorization"]),
)  # fmt: skip
@settings(max_examples=50, deadline=None)
def test_with_hardly_any_noise_tables_are_those_of_the_records(rows, n_bins, tree):
    frame = small(rows)
    loss = {"rho": 1e6} if tree == "factorization" else NO_NOISE
    released = dpt.release_distribution(
        frame, "x", bounds=(0, 6), bins=n_bins, by=["a", "b"], domain=PLACES, tree=tree, **loss
    )
    qs = [0, 0.1, 0.5, 1 / 3, 0.9, 1]
    groups = [[0, 1, 2], [0, 1], [2], [0], [1]]
    tables = [released.cdf(), released.histogram(), released.quantiles(qs)]
    for at, leaves in enumerate(groups):
        values = np.clip([value for leaf, value in rows if leaf in leaves], 0, 6)
        bins, edges = np.histogram(values, n_bins, (0, 6))
        cumulative, histogram, quantiles = (
            table.iloc[at * size : (at + 1) * size]
            for table, size in zip(tables, (n_bins, n_bins, 6), strict=True)
        )
        assert cumulative["count"].tolist() == bins.cumsum().tolist()
        assert histogram["count"].tolist() == bins.tolist()
        if not len(values):
            assert (
                quantiles["value"].isna().all()
                and (quantiles["lower"] == 0).all()
                and (quantiles["upper"] == 6).all()
            )
            continue
        for q, row in zip(qs, quantiles.itertuples(), strict=True):
            true = np.quantile(values, q, method="inverted_cdf")
            place = min(np.searchsorted(edges, true, side="right") - 1, n_bins - 1)
            assert edges[place] <= row.value <= edges[place + 1]
            assert row.lower == edges[place] and row.upper == edges[place + 1]


def test_quantiles_of_many_values_are_those_of_numpy():
    values = rng(9).lognormal(3, 0.5, 50_000)
    released = dpt.release_distribution(
        pd.DataFrame({"x": values}), "x", bounds=(0, 200), bins=1000, epsilon=5
    )
    qs = np.linspace(0.01, 0.99, 99)
    table = released.quantiles(qs)
    assert table.index.tolist() == qs.tolist() and table.index.name == "q"
    true = np.quantile(values, qs)
    assert np.abs(table["value"] - true).max() < 0.4
    assert ((table["lower"] <= true) & (true <= table["upper"])).all()
    assert released.quantiles(0.5)["value"].item() == table["value"].iloc[49]


def test_known_groups_without_records():
    known = {"b": pd.Series([0, 4], pd.MultiIndex.from_tuples([("s", "u"), ("s", "v")], names=["a", "b"]))}
    table = dpt.cdf(small([]), "x", bounds=(0, 4), bins=4, by=["a", "b"], domain=PLACES, epsilon=0.5,
    known=known,
                    confidence=0.9, rng=rng())  # fmt: skip
    nobody = table[(table["b"] == "u")]
    assert (nobody[["count", "std_error", "lower", "upper"]] == 0).all(axis=None)
    assert table[table["b"] == "v"]["count"].iloc[-1] == 4
    quantiles = dpt.quantiles(small([]), "x", 0.5, bounds=(0, 4), bins=4, epsilon=1, known={"total": 0})
    assert np.isnan(quantiles["value"].item()) and quantiles[["lower", "upper"]].values.tolist() == [[0, 4]]


@pytest.mark.parametrize(
    "options", [{"epsilon": 1e6}, {"epsilon": 1e300}, {"rho": 1e6, "tree": "factorization"}], ids=repr
)
@pytest.mark.parametrize("total", [0, 3, 10, 2**40])
def test_known_counts_are_never_compared_with_the_records(options, total):
    table = dpt.cdf(small([(0, 0.5)] * 3), "x", bounds=(0, 4), bins=4, known={"total": total}, confidence=0.9,
                    **options)  # fmt: skip
    assert table[["count", "lower", "upper"]].iloc[-1].tolist() == [total] * 3
    assert total != 3 or table["count"].tolist() == [3] * 4


def test_a_release_with_the_same_seed_is_the_same_and_others_differ():
    frame = small([(0, 1)] * 9)
    options = {"bounds": (0, 4), "bins": 4, "epsilon": 0.1}
    one, again, other = (dpt.cdf(frame, "x", **options, rng=rng(seed)) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(one, again)
    assert not one.equals(other)
    assert one.attrs["dp"]["rng"].endswith("not private")
    private = dpt.release_distribution(frame, "x", **options)
    assert private.provenance["rng"] == "operating system"
    assert (private.estimates != dpt.release_distribution(frame, "x", **options).estimates).any()


# --- how it is called ----------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", VERBS)
def test_accessors_are_the_verbs(verb):
    frame = small([(0, 1), (1, 2), (2, 3)])
    options = {"bounds": (0, 4), "bins": 4, "epsilon": 1.0, "rng": None}
    own = {"quantiles": ([0.25, 0.5],), "range_counts": ([(0, 4)],)}.get(verb, ())

    def call(method, *first):
        return method(*first, **{**options, "rng": rng(3)})

    expected = call(getattr(dpt, verb), frame, "x", *own)
    pd.testing.assert_frame_equal(call(getattr(frame.dp, verb), "x", *own), expected)
    pd.testing.assert_frame_equal(call(getattr(frame["x"].dp, verb), *own), expected)
    nameless = call(getattr(frame["x"].rename(None).dp, verb), *own)
    pd.testing.assert_frame_equal(nameless, expected, check_names=False)
    with pytest.raises(TypeError, match="epsilom"):
        getattr(frame.dp, verb)("x", *own, **options, epsilom=1)


@pytest.mark.parametrize("verb", [*VERBS, "release_distribution"])
def test_signatures_list_the_options(verb):
    options = set(inspect.signature(dpt.release_distribution).parameters) - {"frame", "column"}
    of_frames = {"by", "domain", "privacy_unit", "max_contributions"}
    assert options <= set(inspect.signature(getattr(dpt, verb)).parameters)
    assert options <= set(inspect.signature(getattr(pd.DataFrame.dp, verb)).parameters)
    of_series = set(inspect.signature(getattr(pd.Series.dp, verb)).parameters)
    assert options - of_frames <= of_series and not of_frames & of_series
    assert "options" not in of_series and "epsilon" in of_series


def test_a_release_by_a_plan_is_that_of_the_verb():
    frame = small([(0, 1), (1, 2)])
    planned = plan(4, epsilon=1.0, domain=DOMAIN)
    by_plan = planned.release(frame, rng=rng(4)).cdf()
    by_verb = dpt.cdf(
        frame, "x", bounds=(0, 4), bins=4, epsilon=1.0, by=["a", "b"], domain=DOMAIN, rng=rng(4)
    )
    pd.testing.assert_frame_equal(by_plan, by_verb)
    assert repr(planned.release(frame)) == "Distribution of 5 groups of 'x' in 4 bins"


def test_a_frame_plans_what_the_verb_releases():
    frame, options = small([(0, 1), (1, 2)]), {"bounds": (0, 4), "bins": 4, "epsilon": 1.0}
    groups = {"by": ["a", "b"], "domain": PLACES}
    for where in ({}, groups, {"by": [dpt.cut("x", [0, 2, 4])]}):
        planned = frame.drop(columns="a").dp if not where else frame.dp
        planned = planned.plan_distribution("x", **options, **where)
        by_verb = dpt.cdf(frame, "x", **options, **where, rng=rng(4))
        pd.testing.assert_frame_equal(frame.dp.release(planned, rng=rng(4)).cdf(), by_verb)
    assert repr(frame.dp.plan_distribution("x", **options)) == repr(plan(4, epsilon=1.0))
    assert repr(frame.iloc[:0].dp.plan_distribution("x", **options, **groups)) == repr(
        plan(4, epsilon=1.0, domain=DOMAIN)
    )
    assert len(frame.dp.plan_distribution("x", **options, by=["a"], domain="observed").domain.keys(1)) == 1
    for wrong in ({"domain": PLACES}, {"by": ["a", "b"]}):
        with pytest.raises(ArgumentError, match="Hint: ") as error:
            frame.dp.plan_distribution("x", **options, **wrong)
        assert error.value.argument == "domain"


GOOD = {"bounds": (0, 4), "bins": 4, "epsilon": 1.0}
MISTAKES = [
    ({"bounds": None}, "bounds"),
    ({"bounds": (4, 0)}, "bounds"),
    ({"bins": 0}, "bins"),
    ({"bins": [0, 1, 2]}, "bounds"),
    ({"bins": 5 * 10**7, "by": ["a", "b"], "domain": PLACES}, "bins"),
    ({"epsilon": None}, "epsilon"),
    ({"epsilon": -1}, "epsilon"),
    ({"epsilon": 1e-13}, "epsilon"),
    ({"epsilon": "1"}, "epsilon"),
    ({"rho": 0.1}, "rho"),
    ({"delta": 2}, "delta"),
    ({"neighbors": "none"}, "neighbors"),
    ({"mechanism": "cauchy"}, "mechanism"),
    ({"mechanism": ["laplace"]}, "mechanism"),
    ({"mechanism": "gaussian"}, "mechanism"),
    ({"tree": "best"}, "tree"),
    ({"tree": "factorization"}, "tree"),
    ({"tree": "factorization", "epsilon": None, "rho": 1, "mechanism": "laplace"}, "tree"),
    ({"tree": None}, "tree"),
    ({"tree": []}, "tree"),
    ({"tree": [2]}, "tree"),
    ({"tree": [2.0, 2]}, "tree"),
    ({"tree": [True, 4]}, "tree"),
    ({"tree": [0, 4]}, "tree"),
    ({"tree": [2] * 64}, "tree"),
    ({"tree": np.ones((2, 2), dtype=int)}, "tree"),
    ({"domain": PLACES}, "domain"),
    ({"by": ["a", "b"]}, "domain"),
    ({"by": {"a"}, "domain": PLACES}, "by"),
    ({"by": ["a", "x"], "domain": PLACES.assign(x=[1, 2, 3])}, "by"),
    ({"by": ["a", "q"], "domain": PLACES.assign(q=[1, 2, 3])}, "by"),
    ({"by": ["c"], "domain": PLACES}, "domain"),
    ({"privacy_unit": "x"}, "privacy_unit"),
    ({"privacy_unit": ["a"]}, "privacy_unit"),
    ({"privacy_unit": "nobody", "max_contributions": 1}, "frame"),
    ({"privacy_unit": "nobody"}, "max_contributions"),
    ({"max_contributions": "2"}, "max_contributions"),
    ({"max_contributions": 2}, "max_contributions"),
    ({"max_contributions": 0, "privacy_unit": "a"}, "max_contributions"),
    ({"known": 5}, "known"),
    ({"known": {}}, "known"),
    ({"known": {"total": -1}}, "known"),
    ({"known": {"total": 1.5}}, "known"),
    ({"known": {"total": True}}, "known"),
    ({"known": {"total": 2**50}}, "known"),
    ({"known": {"a": {"s": 3}}}, "known"),
    ({"known": {"nobody": 5}, "by": ["a", "b"], "domain": PLACES}, "known"),
    ({"known": {"total": -1}, "by": ["a", "b"], "domain": PLACES}, "known"),
    ({"rng": 0}, "rng"),
    ({"column": "y"}, "frame"),
    ({"column": "t"}, "frame"),
    ({"column": None}, "column"),
    ({"column": ["x"]}, "column"),
    ({"column": "level", "by": ["a", "b"], "domain": PLACES}, "column"),
    ({"column": "count", "by": ["a", "b"], "domain": PLACES}, "column"),
    ({"frame": [1, 2]}, "frame"),
    ({"column": "level", "bounds": (pd.Timestamp(0), pd.Timestamp(9))}, "frame"),
]


@pytest.mark.parametrize(("mistake", "argument"), MISTAKES, ids=repr)
@pytest.mark.parametrize("verb", VERBS)
def test_mistakes_are_named(verb, mistake, argument):
    frame = small([(0, 1), (1, 2)]).assign(t=pd.Timestamp(0), level=1, count=2)
    options = {"frame": frame, "column": "x", **GOOD, **mistake}
    with pytest.raises(ArgumentError, match="Hint: ") as error:
        VERBS[verb](options.pop("frame"), options.pop("column"), **options)
    assert error.value.argument == argument
    assert len(error.value.hint) > 10


@pytest.mark.parametrize(
    "q", [-0.1, 1.1, math.nan, True, np.True_, "0.5", None, [], [[0.5]], [[0.5], [0.1, 0.2]], {0.5}, [0.5,
    None], [0.5, True],
          50, np.array([[0.5]]), pd.Timedelta(0), np.timedelta64(1)],
    ids=repr,
)  # fmt: skip
def test_parts_that_are_none(q):
    with pytest.raises(ArgumentError, match="numbers from 0 to 1") as error:
        dpt.quantiles(small([(0, 1)]), "x", q, **GOOD)
    assert error.value.argument == "q"


@pytest.mark.parametrize(
    "q", [0.5, 0, 1, np.float32(0.5), [0.5, 1], (0, 0.5), np.array([0.1]), pd.Series([0.5, 0.1])], ids=repr
)
def test_parts_of_any_row(q):
    table = dpt.quantiles(small([(0, 1)]), "x", q, **GOOD)
    assert table.index.tolist() == np.atleast_1d(np.array(q, dtype=float)).tolist()


@pytest.mark.parametrize("confidence", [0, 1, -1, 95, True, "0.9", math.nan, [0.9], 0.9999])
def test_confidences_that_are_none(confidence):
    for verb in ("cdf", "quantiles"):
        with pytest.raises(ArgumentError, match="Hint: for example") as error:
            VERBS[verb](small([(0, 1)]), "x", **GOOD, confidence=confidence)
        assert error.value.argument == "confidence"


@pytest.mark.parametrize(
    "ranges", [[], None, 5, "ab", (0, 4), [5], [(1, 2, 3)], [(2, 1)], [(1, 1)], [(0, 2.5)], [(-1, 4)], [(0,
    5)], [("0", "4")],
               ["04"], [(0, math.nan)], [(0, math.inf)], [(0, None)], [(pd.Timestamp(0), pd.Timestamp(4))],
               [(0, 1), 2],
               np.array(3), [pd.Interval(0, 1)]],
    ids=repr,
)  # fmt: skip
def test_ranges_that_are_none(ranges):
    with pytest.raises(ArgumentError, match="Hint: ") as error:
        dpt.range_counts(small([(0, 1)]), "x", ranges, **GOOD)
    assert error.value.argument == "ranges"


def test_ranges_of_any_row():
    for ranges in (
        [(0, 2), (1, 4)],
        ([0, 2], [1, 4]),
        np.array([[0, 2], [1, 4]]),
        zip((0, 1), (2, 4), strict=True),
    ):
        table = dpt.range_counts(small([(0, 1), (0, 3)]), "x", ranges, bounds=(0, 4), bins=4, **NO_NOISE)
        assert table["count"].tolist() == [1, 2]
        assert table.index.tolist() == [pd.Interval(0, 2, closed="left"), pd.Interval(1, 4, closed="left")]


def test_errors_of_columns_are_errors_of_arguments():
    with pytest.raises(ColumnsError, match=r"lacks the columns: 'y'\."):
        dpt.cdf(small([]), "y", **GOOD)
    with pytest.raises(ArgumentError, match="must be a Domain, not a DataFrame"):
        plan(4, epsilon=1, domain=PLACES)


def test_a_release_can_be_kept():
    """The budget is spent once: what came of it can be stored, and more tables be made another day."""
    released = plan(20, epsilon=1, domain=DOMAIN).release(
        PLACES.assign(x=1.5, who=1), rng=np.random.default_rng(3)
    )
    kept = pickle.loads(pickle.dumps(released))
    for table in ("cdf", "histogram"):
        pd.testing.assert_frame_equal(getattr(kept, table)(), getattr(released, table)())
    pd.testing.assert_frame_equal(kept.quantiles([0.1, 0.5]), released.quantiles([0.1, 0.5]))


def test_padding_is_empty_on_levels_that_are_not_measured():
    way = TreePrefixes(3, Laplace(), (2, 2, 2), (1.0, 2.0, math.inf, 0.001))
    counts = np.array([[5, 0, 7], [1, 2, 3]])
    estimates = way.estimates(counts, np.full(2, -1), byte_source(np.random.default_rng(0)))
    np.testing.assert_allclose(estimates, np.cumsum(counts, axis=1), atol=0.1)


GROUPED = plan(4, epsilon=1, domain=DOMAIN).release(PLACES.assign(x=1.5, who=1), rng=np.random.default_rng(3))
TABLES = {
    "x": [
        GROUPED.cdf(confidence=0.9), GROUPED.histogram(), GROUPED.range_counts([(0, 2), (1, 4)]),
        GROUPED.range_counts([(0, 2)]),
    ],
    "q": [GROUPED.quantiles([0.1, 0.5]), GROUPED.quantiles(0.5)],
}  # fmt: skip


@pytest.mark.parametrize(
    ("part", "table"), [(part, table) for part, each in TABLES.items() for table in each]
)
def test_a_level_of_groups(part, table, tmp_path):
    """As the table itself has it, indexed by the keys and by what it has several rows of a group for."""
    keys = list(DOMAIN.by)
    for depth, name in enumerate(["total", *keys]):
        rows = table[table["level"] == name].drop(columns=["level", *keys[depth:]])
        expected = rows.set_index([*keys[:depth], part])
        pd.testing.assert_frame_equal(table.dp.level(name), expected, check_index_type=False)
    with pytest.raises(ArgumentError, match=r"is not a level: 'x'\.\nHint: the levels are"):
        table.dp.level("x")
    told = rf"of a distribution: it has rows by '{part}' .*\nHint: .*table\.to_html\(\).*Distribution\.plot"
    for call in (table.dp.to_html, table.dp.plot.levels, table.dp.plot.icicle):
        with pytest.raises(ArgumentError, match=told):
            call()
    if part == "q" or table.duplicated(["level", *keys]).any():
        table.to_csv(tmp_path / "table.csv", index=False)
        level = pd.read_csv(tmp_path / "table.csv").dp.level(keys[0])
        assert list(level.index.names) == [keys[0], part] and list(level) == list(table.dp.level(keys[0]))


def test_a_distribution_of_all_records_has_no_levels():
    with pytest.raises(
        ArgumentError, match=r"That of a distribution of all records has no levels: .*to_html"
    ):
        dpt.histogram(small([(0, 1)]), "x", **GOOD).dp.to_html()


def test_groups_are_drawn_by_their_keys_as_they_are():
    plt = pytest.importorskip("matplotlib.pyplot")
    places = pd.DataFrame({"a": ["s", "s", "t"], "b": pd.Series([1, True, 1], dtype=object)})
    frame = pd.DataFrame(
        {"a": ["s"] * 3, "b": pd.Series([1, True, True], dtype=object), "x": [1.0, 2.0, 3.0]}
    )
    released = dpt.release_distribution(
        frame, "x", bounds=(0, 4), bins=4, by=["a", "b"], domain=places, epsilon=1e6
    )
    for group, count in [(None, 3), ("s", 3), (("s", 1), 1), (("s", True), 2), (("t", 1.0), 0)]:
        ax = released.plot(group, confidence=None)
        assert ax.lines[0].get_ydata().max() == count
        plt.close(ax.figure)
    for group in ("z", ("s", "1"), ("t", True), ("s", 1, 2), (("s", 1),)):
        with pytest.raises(ArgumentError, match="not in the distribution"):
            released.plot(group)

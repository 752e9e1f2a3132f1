"""Error measures: the definitions spelt out, exact laws, Monte Carlo, and tables of every shape."""

import io
import math

import hypothesis.strategies as st
import mpmath
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

import pandas_dptree as dpt
from pandas_dptree import ArgumentError, ColumnsError, Gaussian, Laplace, Tree, metrics
from pandas_dptree.estimation.least_squares import least_squares
from pandas_dptree.mechanisms.sampling import byte_source
from tests.helpers_statistics import gaussian_cdf, laplace_cdf
from tests.strategies import domains_and_rows

NOISES = [Laplace(), Gaussian()]
ALPHAS = [0.0, 0.05, 0.3, 1.0]
TRUTHS = np.array([0, 1, 3, 10, 40, 333, 2000])


def laws():
    """Draw estimates with probabilities, and a truth."""
    numbers = st.floats(-1e4, 1e4, allow_subnormal=False)
    values = st.lists(st.tuples(numbers, st.integers(1, 9)), min_size=1, max_size=8)
    return st.tuples(values, st.floats(0, 1e4, allow_subnormal=False))


def repeated(law):
    """Repeat each estimate as often as its weight says: the mean over these is the expectation."""
    values, truth = law
    return np.repeat([value for value, _ in values], [weight for _, weight in values])[:, None], [truth]


# What is measured


@given(laws(), st.floats(0, 2), st.floats(0.01, 100), st.floats(0, 100))
def test_measures_are_their_definitions(law, alpha, kappa, tau):
    estimates, truth = repeated(law)
    [z] = truth
    errors = [abs(float(estimate) - z) for [estimate] in estimates]
    rmse = math.sqrt(sum(max(error - alpha * z, 0) ** 2 for error in errors) / len(errors))
    assert metrics.alpha_rmse(estimates, truth, alpha) == pytest.approx([rmse])
    assert metrics.max_alpha_rmse(estimates, truth, alpha) == pytest.approx(rmse)
    relative = sum(errors) / len(errors) / max(z, kappa)
    assert metrics.smoothed_relative_error(estimates, truth, kappa) == pytest.approx([relative])
    share = sum(error <= alpha * max(z, tau) * (1 + 1e-12) for error in errors) / len(errors)
    assert metrics.accuracy(estimates, truth, alpha, thresholds=tau) == pytest.approx([share])
    assert metrics.is_accurate(estimates, truth, alpha, eta=1 - share, thresholds=tau)
    if share < 1:
        assert not metrics.is_accurate(estimates, truth, alpha, eta=(1 - share) * 0.99, thresholds=tau)


@given(laws(), st.floats(0, 2), st.floats(0.01, 100))
def test_alpha_rmse_bounds_the_relative_error(law, alpha, kappa):
    estimates, truth = repeated(law)
    rmse = metrics.alpha_rmse(estimates, truth, alpha)
    bound = metrics.relative_error_from_rmse(rmse, alpha, kappa)
    relative = metrics.smoothed_relative_error(estimates, truth, kappa)
    assert relative <= bound * (1 + 1e-9) + 1e-12
    assert bound <= math.sqrt(2) * (rmse / kappa + alpha) + 1e-12  # as Lemma B.1 has it


@given(laws(), st.floats(0, 1), st.floats(0.01, 1), st.floats(0.01, 1e4))
def test_alpha_rmse_bounds_the_chance_of_missing_a_tolerance(law, alpha, more, tau):
    estimates, truth = repeated(law)
    rmse = metrics.alpha_rmse(estimates, truth, alpha)
    missed = metrics.accuracy_from_rmse(rmse, alpha, alpha + more, tau)
    assert 1 - metrics.accuracy(estimates, truth, alpha + more, thresholds=tau) <= missed + 1e-9


def test_bounds_are_attained():
    sure = np.array([[8.0], [12.0]])  # an error of 2 on 10, always
    rmse = metrics.alpha_rmse(sure, [10], 0.1)
    assert metrics.relative_error_from_rmse(rmse, 0.1, 10.0) == pytest.approx(
        metrics.smoothed_relative_error(sure, [10], 10.0)
    )
    rare = np.array([[0.0]] * 99 + [[10.0]])  # Chebyshev's own example
    rmse = metrics.alpha_rmse(rare, [0], 0.0)
    assert metrics.accuracy_from_rmse(rmse, 0.0, 0.1, 100.0) == pytest.approx([0.01])


def test_norms_and_shapes():
    released = np.random.default_rng(0).normal(size=(5, 2, 3))
    truth = np.arange(6).reshape(2, 3)
    errors = [np.abs(each - truth) for each in released]
    assert metrics.l2_error(released, truth) == pytest.approx(math.sqrt(np.mean(np.square(errors))))
    assert metrics.linf_error(released, truth) == pytest.approx(np.mean([each.max() for each in errors]))
    assert metrics.alpha_rmse(released, truth).shape == (2, 3)
    assert metrics.alpha_rmse(released[0], truth, 0.0) == pytest.approx(errors[0])
    assert metrics.linf_error(np.array([3.0, 5.0]), np.array([3.0, 3.0])) == 2.0
    assert metrics.alpha_rmse(np.array([3.0, 5.0]), 3, 0.0) == pytest.approx(math.sqrt(2))


def test_a_bound_that_is_met_exactly_is_met_in_floats():
    assert 0.29 * 100 < 29
    assert metrics.accuracy(np.array([129]), [100], 0.29).tolist() == [1.0]
    assert metrics.is_accurate(np.array([[129]] * 7 + [[130]] * 3), [100], 0.29, eta=0.3)


# What is predicted


def exact_excess(noise, scale, t):
    """Mean squared excess of the discrete law over t, in 50 digits, by summation by parts."""
    cdf = laplace_cdf(scale) if noise == Laplace() else gaussian_cdf(scale)
    first, reach = math.floor(t) + 1, math.ceil(130 * scale) + 5
    beyond = [1 - cdf(k - 1) for k in range(first, first + reach)]
    t = mpmath.mpf(t)
    gains = [(k - t) ** 2 - (max(k - 1 - t, 0)) ** 2 for k in range(first, first + reach)]
    return float(2 * sum(gain * tail for gain, tail in zip(gains, beyond, strict=True)))


@pytest.mark.parametrize("scale", [0.05, 0.6, 1.0, 4.3, 9.9, 10.0, 30.0])
@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_prediction_is_the_exact_sum(noise, scale):
    for t in [0.0, 0.4, 1.0, 2.5, 3 * scale, 5.3 * scale]:
        exact = exact_excess(noise, scale, t)
        predicted = float(metrics.predicted_alpha_rmse(noise, scale, t, 1.0)) ** 2
        absolute = 2e-8 * scale**2 if noise == Gaussian() and scale >= 10 else 0
        assert predicted == pytest.approx(exact, rel=1e-9, abs=max(absolute, 1e-25))


@pytest.mark.parametrize("continuous", [False, True])
@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_prediction_is_what_draws_show(noise, continuous):
    n, scale, rng = 400_000, 7.3, np.random.default_rng(5)
    if continuous:
        draws = rng.laplace(scale=scale, size=n) if noise == Laplace() else rng.normal(scale=scale, size=n)
    else:
        draws = noise.sample(scale, n, byte_source(rng))
    truth = np.array([0, 20, 100, 150])
    excess = np.maximum(np.abs(draws[:, None]) - 0.1 * truth, 0) ** 2
    error = excess.std(axis=0) / math.sqrt(n)
    predicted = metrics.predicted_alpha_rmse(noise, scale, truth, 0.1, continuous=continuous)
    assert (np.abs(predicted**2 - excess.mean(axis=0)) < 4.5 * error).all()
    assert (error < 0.02 * predicted**2).all()  # so that the line above says something


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_no_tolerance_helps_where_the_count_is_zero(noise):
    scales = np.array([0.01, 0.5, 3.0, 12.0, 1e6, 1e12])[:, None]
    std_errors = np.sqrt(noise.variance(scales))
    for alpha in ALPHAS:
        for continuous in (False, True):
            rmse = metrics.predicted_alpha_rmse(noise, scales, TRUTHS, alpha, continuous=continuous)
            assert (np.diff(rmse, axis=1) <= 1e-12 * rmse[:, :-1]).all()  # the larger, the better
            if not continuous:
                assert rmse[:, :1] == pytest.approx(std_errors, rel=1e-8)
        estimate = metrics.estimate_alpha_rmse(std_errors**2, noise.fourth_cumulant(scales), TRUTHS, alpha)
        assert (np.diff(estimate, axis=1) <= 1e-12 * estimate[:, :-1]).all()
        assert estimate[:, :1] == pytest.approx(std_errors, rel=1e-8)


def test_scales_are_told_apart_and_inf_is_no_measurement():
    scales = np.array([[3.0, math.inf, 12.0], [1.0, 3.0, 1e12]])
    truth = np.array([5.0, 50.0, 500.0])
    for noise in NOISES:
        rmse = metrics.predicted_alpha_rmse(noise, scales, truth, 0.2)
        assert rmse.shape == (2, 3)
        assert math.isinf(rmse[0, 1])
        for place in np.ndindex(2, 3):
            alone = metrics.predicted_alpha_rmse(noise, scales[place], -truth[place[1]], 0.2)
            assert alone == rmse[place]
    assert metrics.predicted_alpha_rmse(Gaussian(), np.zeros(0), np.zeros(0), 0.1).shape == (0,)


def test_estimates_of_known_and_unmeasured_counts():
    rmse = metrics.estimate_alpha_rmse([0.0, math.inf, 2.0, 1e-300], [0.0, 0.0, -1e-9, 1.0], 3.0, 0.1)
    assert rmse[0] == 0
    assert math.isinf(rmse[1])
    normal = metrics.predicted_alpha_rmse(Gaussian(), math.sqrt(2), 3.0, 0.1, continuous=True)
    assert rmse[2] == pytest.approx(normal, rel=1e-12)
    assert 0 <= rmse[3] < 1e-100


@pytest.mark.parametrize("alpha", ALPHAS)
def test_estimate_of_a_single_continuous_noise_is_exact(alpha):
    laplace = metrics.estimate_alpha_rmse(2 * 81.0, 12 * 9.0**4, TRUTHS, alpha)
    expected = metrics.predicted_alpha_rmse(Laplace(), 9.0, TRUTHS, alpha, continuous=True)
    assert laplace == pytest.approx(expected, rel=1e-6, abs=1e-9)
    normal = metrics.estimate_alpha_rmse(81.0, 0.0, TRUTHS, alpha)
    expected = metrics.predicted_alpha_rmse(Gaussian(), 9.0, TRUTHS, alpha, continuous=True)
    assert normal == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("weights", [[1, 1], [1, 1, 1], [1] * 5, [1, 0.5], [1, 0.7, 0.2], [1] + [0.1] * 20])
@pytest.mark.parametrize("normal", [0.0, 0.5, 2.0])
def test_estimates_from_several_laplace_variables(weights, normal):
    # The law on a fine grid, from its characteristic function.
    n, span = 2**16, 300.0
    x = (np.arange(n) - n // 2) * (span / n)
    frequency = 2 * np.pi * np.fft.fftfreq(n, span / n)
    transform = np.exp(-((frequency * normal) ** 2) / 2)
    for weight in weights:
        transform = transform / (1 + (weight * frequency) ** 2)
    mass = np.fft.fftshift(np.fft.ifft(transform).real)
    variance = 2 * sum(w**2 for w in weights) + normal**2
    tolerance = np.linspace(0, 8, 30) * math.sqrt(variance)
    excess = (mass[:, None] * np.maximum(np.abs(x)[:, None] - tolerance, 0) ** 2).sum(axis=0)
    rmse = metrics.estimate_alpha_rmse(variance, 12 * sum(w**4 for w in weights), tolerance, 1.0)
    exact = np.sqrt(np.maximum(excess, 0))
    assert np.abs(rmse - exact).max() < 0.006 * math.sqrt(variance)
    single = metrics.predicted_alpha_rmse(Laplace(), math.sqrt(variance / 2), tolerance, 1.0, continuous=True)
    if normal or len(weights) > 2:
        assert np.abs(rmse - exact).max() < np.abs(single - exact).max() / 3  # the cumulant matters


def test_a_plan_can_tell_the_alpha_rmse_of_its_estimates():
    tree = Tree(tuple(map(np.array, ([3], [1, 2, 4]))))
    plan = dpt.plan(tree, epsilon=0.3, consistency="linear")
    truth = tree.roll_up(np.array([0, 3, 200, 40, 0, 1000, 7]))
    predicted = [
        metrics.estimate_alpha_rmse(variance, fourth, z, 0.02)
        for variance, fourth, z in zip(plan.variances.final, plan.error_cumulants, truth, strict=True)
    ]
    rng, n = np.random.default_rng(1), 4000
    noise = [
        plan.noise.sample(scale, n * size, byte_source(rng)).reshape(n, size)
        if math.isfinite(scale)
        else np.zeros((n, size))
        for scale, size in zip(plan.noise_scales, tree.level_sizes, strict=True)
    ]
    errors = [
        least_squares(tree, [level[release] for level in noise], plan.variances) for release in range(n)
    ]
    for level, z in enumerate(truth):
        estimates = np.array([error[level] for error in errors]) + z
        squares = np.maximum(np.abs(estimates - z) - 0.02 * z, 0) ** 2
        spread = squares.std(axis=0) / math.sqrt(n) + 0.01 * squares.mean(axis=0)
        assert (np.abs(predicted[level] ** 2 - squares.mean(axis=0)) < 4.5 * spread).all()
        assert (squares.mean(axis=0) > 0).all()


# Tables


def truth_by_hand(records, table, by):
    """Count the records of each row, one by one."""
    names = ["total", *by]
    counts = []
    for row in table.to_dict("records"):
        keys = by[: names.index(row["level"])]
        counts.append(sum(all(record[key] == row[key] for key in keys) for record in records))
    return np.array(counts)


@settings(max_examples=25, deadline=None)
@given(domains_and_rows(), st.integers(0, 2**32), st.booleans())
def test_tables_join_on_level_and_keys(domain_and_rows, seed, as_frame):
    domain, rows = domain_and_rows
    by, rng = list(domain.by), np.random.default_rng(seed)
    exact = dpt.plan(domain, epsilon=1e4, consistency="linear").release(rows, rng=rng)
    inside = rows[np.array([leaf >= 0 for leaf in leaves_of(domain, rows)], dtype=bool)]
    counts = truth_by_hand(inside.to_dict("records"), exact, by)
    assert exact["count"].round().tolist() == counts.tolist()

    plan = dpt.plan(domain, epsilon=1.0)
    tables = [plan.release(rows, rng=each) for each in rng.spawn(3)]
    estimates = np.array([table["count"] for table in tables])
    expected = metrics.alpha_rmse(estimates, counts, 0.1)
    order = rng.permutation(len(counts))
    shuffled = [tables[0].iloc[order], *(table.sample(frac=1, random_state=7) for table in tables[1:])]
    grouped = inside.groupby(by, dropna=False, sort=False).size()
    truths = [
        grouped.sample(frac=1, random_state=3),
        pd.concat([grouped, grouped * 0]),  # keys twice
        exact.assign(count=counts).sample(frac=1, random_state=5),
        exact.assign(count=counts)[counts > 0],
        counts[order],
    ]
    if as_frame:
        truths[0] = grouped.rename("count").reset_index()
        truths[1] = inside[by].assign(count=1)[[*by[::-1], "count"]]
    for truth in truths:
        got = metrics.alpha_rmse(shuffled, truth, 0.1)
        assert got.columns.tolist() == ["level", *by, "alpha_rmse"]
        assert got.index.tolist() == order.tolist()
        assert got["alpha_rmse"].to_numpy() == pytest.approx(expected[order])
        assert "dp" not in got.attrs


def leaves_of(domain, rows):
    """The leaf of each record, -1 outside the domain, by looking each path up."""
    tree = domain.tree
    paths = domain.path_codes(tree.depth)
    known = {
        tuple(
            None if codes[leaf] < 0 else labels[codes[leaf]]
            for labels, codes in zip(domain.labels, paths, strict=True)
        ): leaf
        for leaf in range(tree.n_leaves)
    }
    cleaned = rows.astype(object).where(rows.notna(), None)
    return [known.get(path, -1) for path in cleaned.itertuples(index=False, name=None)]


@pytest.fixture
def places():
    return pd.DataFrame(
        {"state": ["CA", "CA", "NY", "WA"], "county": [1, 2, 1, None]}, columns=["state", "county"]
    ).convert_dtypes()


@pytest.fixture
def table(places):
    records = pd.DataFrame({"state": ["CA"] * 9 + ["NY"], "county": [1] * 4 + [2] * 5 + [1]})
    return dpt.tree_counts(
        records, ["state", "county"], domain=places, epsilon=1.0, rng=np.random.default_rng(0)
    )


@pytest.fixture
def truth():
    index = pd.MultiIndex.from_tuples([("NY", 1), ("CA", 2), ("CA", 1)], names=["state", "county"])
    return pd.Series([1, 5, 4], index=index)


COUNTS = [10, 9, 1, 0, 4, 5, 1]  # total; CA, NY, WA; counties


def test_every_measure_takes_tables(table, truth):
    estimates = table["count"].to_numpy()
    assert table["state"].tolist()[1:4] == ["CA", "NY", "WA"]
    frames, arrays = (table, truth), (estimates, np.array(COUNTS))
    for measure in (metrics.max_alpha_rmse, metrics.l2_error, metrics.linf_error):
        assert measure(*frames) == measure(*arrays)
    per_level = {"total": 3, "state": 2, "county": 1}
    each = [3, 2, 2, 2, 1, 1, 1]
    for thresholds in (per_level, each):
        accuracy = metrics.accuracy(*frames, 0.5, thresholds=thresholds)["accuracy"]
        assert accuracy.tolist() == metrics.accuracy(*arrays, 0.5, thresholds=each).tolist()
        assert metrics.is_accurate(*frames, 0.5, thresholds=thresholds) == bool(accuracy.all())
    relative = metrics.smoothed_relative_error(*frames, 2)["smoothed_relative_error"]
    assert relative.tolist() == metrics.smoothed_relative_error(*arrays, 2).tolist()


def test_rows_of_a_table(table, truth):
    whole = metrics.alpha_rmse(table, truth)
    states = table[table["level"] == "state"]
    expected = whole.loc[states.index]
    pd.testing.assert_frame_equal(metrics.alpha_rmse(states, truth), expected)
    assert len(expected) == 3
    coarse = pd.Series([9, 1], index=pd.Index(["CA", "NY"], name="state"))
    pd.testing.assert_frame_equal(metrics.alpha_rmse(states, coarse), expected)
    pd.testing.assert_frame_equal(metrics.alpha_rmse(states, coarse.rename_axis(None)), expected)
    pd.testing.assert_frame_equal(metrics.alpha_rmse(states, table.assign(count=COUNTS)), expected)
    total = metrics.alpha_rmse(table.iloc[:1], truth)
    assert total["alpha_rmse"].tolist() == whole["alpha_rmse"].tolist()[:1]
    selected = table[table["state"] == "CA"]
    assert len(metrics.alpha_rmse(selected, truth[["CA"]])) == 3


def test_tables_and_truths_from_elsewhere(table, truth):
    expected = metrics.alpha_rmse(table, truth)["alpha_rmse"].tolist()
    read = pd.read_csv(io.StringIO(table.to_csv(index=False)), keep_default_na=False, na_values=[""])
    assert metrics.alpha_rmse(read, truth)["alpha_rmse"].tolist() == expected
    assert metrics.alpha_rmse([read, table], truth)["alpha_rmse"].tolist() == pytest.approx(expected)
    categories = pd.DataFrame({"state": pd.Categorical(["CA"] * 9 + ["NY"], ["CA", "NV", "NY"])})
    grouped = categories.assign(county=[1] * 4 + [2] * 5 + [1]).groupby(["state", "county"], observed=False)
    assert 0 in grouped.size().to_numpy()  # Nevada is nowhere
    assert metrics.alpha_rmse(table, grouped.size())["alpha_rmse"].tolist() == expected
    assert metrics.alpha_rmse(table, grouped.size().to_frame("count"))["alpha_rmse"].tolist() == expected
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"county": [1, 2, 1], "state": ["CA", "CA", "NY"], "count": [4, 5, 1]})
    assert metrics.alpha_rmse(table, frame)["alpha_rmse"].tolist() == expected


def test_sums_are_compared_by_their_column(places):
    records = pd.DataFrame({"state": ["CA", "NY"], "county": [1, 1], "cost": [3.0, -4.0]})
    table = dpt.tree_sums(
        records, "cost", ["state", "county"], bounds=(-5, 5), domain=places, epsilon=1.0,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    truth = records.groupby(["state", "county"])["cost"].sum()
    got = metrics.alpha_rmse(table, truth, 0.5, column="cost")["alpha_rmse"].to_numpy()
    expected = np.array([-1.0, 3, -4, 0, 3, 0, -4])
    assert got == pytest.approx(np.maximum(np.abs(table["cost"] - expected) - np.abs(expected) / 2, 0))
    read = pd.read_csv(io.StringIO(table.to_csv(index=False)))
    assert metrics.alpha_rmse(read, truth, 0.5, column="cost")["alpha_rmse"].to_numpy() == pytest.approx(got)
    with pytest.raises(ColumnsError, match="column"):
        metrics.alpha_rmse(table, truth)


@pytest.mark.parametrize(
    "key", [("TX", 1), ("CA", 3), ("CA", None), ("WA", 1), (None, 1), (None, None)], ids=str
)
def test_records_that_no_row_counts_are_refused_and_not_named(table, truth, key):
    names = ["state", "county"]
    more = pd.DataFrame([*truth.index, key], columns=names).assign(count=[*truth, 2])
    for grouped in (more, more.set_index(names)["count"]):
        with pytest.raises(ArgumentError, match=r"(?s)does not list.*Hint: leave out") as caught:
            metrics.alpha_rmse(table, grouped)
        assert caught.value.argument == "truth"
        assert not any(isinstance(each, str) and each in str(caught.value) for each in key)
    told = pd.DataFrame({"level": ["county"], "state": [key[0]], "county": [key[1]], "count": [1]})
    with pytest.raises(ArgumentError, match="does not list"):
        metrics.alpha_rmse(table, told)
    with pytest.raises(ArgumentError, match="does not list"):
        metrics.alpha_rmse(table, told.assign(level="galaxy"))


def test_a_record_of_a_short_path_counts_there(table, truth):
    more = pd.concat([truth.rename("count").reset_index(), pd.DataFrame({"state": ["WA"], "count": [2]})])
    got = metrics.alpha_rmse(table, more, 0.0)["alpha_rmse"]
    counts = np.array([12, 9, 1, 2, 4, 5, 1])
    assert got.tolist() == np.abs(table["count"] - counts).tolist()


def test_what_does_not_fit_is_refused(table, truth):
    array = np.ones((2, 3))
    refused = [
        ("released", lambda: metrics.l2_error(array, np.ones(2))),
        ("released", lambda: metrics.l2_error(np.ones((0, 3)), np.ones(3))),
        ("released", lambda: metrics.l2_error(np.array([np.nan]), [1.0])),
        ("released", lambda: metrics.l2_error([], truth)),
        ("released", lambda: metrics.l2_error(table.iloc[:0], truth)),
        ("released", lambda: metrics.l2_error(pd.concat([table, table]), truth)),
        ("released", lambda: metrics.l2_error([table, table.iloc[1:]], truth)),
        ("released", lambda: metrics.l2_error(table.assign(county=1), truth)),
        ("released", lambda: metrics.l2_error(table.drop(columns="level"), truth)),
        ("released", lambda: metrics.l2_error(table.drop(columns="state"), truth)),
        ("truth", lambda: metrics.l2_error(table, np.ones(3))),
        ("truth", lambda: metrics.l2_error(table, 7)),
        ("truth", lambda: metrics.l2_error(table, truth.droplevel("state"))),
        ("truth", lambda: metrics.l2_error(table, truth.rename("n").reset_index())),
        ("truth", lambda: metrics.l2_error(table, truth.astype(float).replace(5.0, np.nan))),
        ("truth", lambda: metrics.l2_error(table, pd.concat([table, table]))),
        ("truth", lambda: metrics.l2_error(array, ["a", "b", "c"])),
        ("alpha", lambda: metrics.alpha_rmse(array, np.ones(3), -0.1)),
        ("alpha", lambda: metrics.accuracy(array, np.ones(3), math.nan)),
        ("alpha", lambda: metrics.predicted_alpha_rmse(Laplace(), 1.0, 1.0, math.inf)),
        ("alpha", lambda: metrics.estimate_alpha_rmse(1.0, 0.0, 1.0, "much")),
        ("kappa", lambda: metrics.smoothed_relative_error(array, np.ones(3), 0)),
        ("kappa", lambda: metrics.relative_error_from_rmse(1.0, 0.1, 0)),
        ("eta", lambda: metrics.is_accurate(array, np.ones(3), eta=1.5)),
        ("eta", lambda: metrics.is_accurate(array, np.ones(3), eta=-1)),
        ("thresholds", lambda: metrics.accuracy(array, np.ones(3), thresholds=-1)),
        ("thresholds", lambda: metrics.accuracy(array, np.ones(3), thresholds=[1, 2])),
        ("thresholds", lambda: metrics.accuracy(table, truth, thresholds={"total": 3})),
        ("thresholds", lambda: metrics.accuracy(array, np.ones(3), thresholds={"total": 3})),
        ("thresholds", lambda: metrics.accuracy_from_rmse(1.0, 0.1, 0.2, 0.0)),
        ("wider_alpha", lambda: metrics.accuracy_from_rmse(1.0, 0.1, 0.1, 1.0)),
        ("noise", lambda: metrics.predicted_alpha_rmse("laplace", 1.0, 1.0, 0.1)),
    ]
    for argument, call in refused:
        with pytest.raises(ArgumentError, match="Hint: ") as caught:
            call()
        assert caught.value.argument == argument


def test_truths_of_other_nodes_are_ignored_where_they_hold_nothing(table, truth):
    nowhere = pd.Series([0], index=pd.MultiIndex.from_tuples([("TX", 7)], names=["state", "county"]))
    more = metrics.alpha_rmse(table, pd.concat([truth, nowhere]))
    pd.testing.assert_frame_equal(more, metrics.alpha_rmse(table, truth))

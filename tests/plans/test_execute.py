"""From records to the released table: known counts, wholeness, sums, intervals and measurements."""

import itertools
from dataclasses import replace
from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given

import pandas_dptree as dpt
from pandas_dptree.hierarchy.domain import level_names
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.mechanisms.arguments import noise_source
from pandas_dptree.plans.execute import measured
from tests.helpers_cases import each
from tests.helpers_estimation import FITS
from tests.helpers_output import KEYS, KNOWN, LOSSES, people, stated_in, us
from tests.helpers_plans import by_node, copies, even_split
from tests.helpers_random import rng
from tests.reference import dense_least_squares
from tests.strategies import frame_of, names, paths, trees

MODES = ["none", "linear", "nonnegative", "integer"]
MODES_AND_FITS = [("none", "totals"), ("linear", "totals"), *itertools.product(MODES[2:], FITS)]
"""The others have no use for a fit."""


def paths_of(table, by):
    """Give the path of each row: its keys, those that are missing left out."""
    rows = table[list(by)].astype(object).itertuples(index=False, name=None)
    return [tuple(key for key in row if key is not None and not pd.isna(key)) for row in rows]


def assert_adds_up(counts, tolerance=0.0):
    """Every node that has others below it holds what these hold together."""
    below = {}
    for path, count in counts.items():
        if path:
            below.setdefault(path[:-1], []).append(count)
    for path, parts in below.items():
        assert abs(sum(parts) - counts[path]) <= tolerance * (1 + abs(counts[path]))


@st.composite
def published(draw):
    """Draw a hierarchy, the data of a truth, that truth by path, and public facts that agree with it.

    Returns
    -------
    hierarchy, data, truth, facts
        `facts` has a row per node of which something is known, with the keys, ``count`` and ``at_least``.
    """
    random = rng(draw(st.integers(0, 2**32 - 1)))
    if draw(st.booleans()):
        hierarchy = draw(trees(max_depth=4, max_leaves=20))
        by = list(level_names(hierarchy)[1:])
        leaves = paths_of(dpt.Domain.from_tree(hierarchy).keys(len(by)), by)
        data = random.integers(0, 9, len(leaves)) * (random.random(len(leaves)) < random.random())
        sizes = dict(zip(leaves, data.tolist(), strict=True))
    else:
        rows = draw(paths())
        by = names(len(rows[0]))
        held = random.integers(0, 9, len(rows)) * (random.random(len(rows)) < random.random())
        places = frame_of(rows, by)
        places["nobody"] = (held == 0) & (random.random(len(rows)) < 0.5)
        hierarchy = dpt.Domain.from_frame(places, by=by, structural_zeros="nobody")
        data = frame_of([row for row, size in zip(rows, held, strict=True) for _ in range(size)], by)
        sizes = dict(zip(paths_of(places, by), held.tolist(), strict=True))
    truth = {}
    for leaf, size in sizes.items():
        for end in range(len(leaf) + 1):
            truth[leaf[:end]] = truth.get(leaf[:end], 0) + size
    part_exact, part_bounded = random.random(2) ** 2
    facts = [
        {
            **dict(zip(by, [*path, *[None] * (len(by) - len(path))], strict=True)),
            "count": count if random.random() < part_exact else None,
            "at_least": random.integers(0, count + 1) if random.random() < part_bounded else None,
        }
        for path, count in truth.items()
    ]
    known = pd.DataFrame(facts, dtype=object).dropna(subset=["count", "at_least"], how="all")
    if Known.read(hierarchy, known).exact[-1].all():  # then nothing would be left to measure
        known = known.iloc[:0]
        if Known.read(hierarchy, known).exact[-1].all():
            hierarchy = dpt.Domain.from_frame(places, by=by)
    return hierarchy, data, truth, known


def release_of(drawn, consistency, fit, mechanism, split, seed, **options):
    hierarchy, data, truth, facts = drawn
    plan = dpt.plan(
        hierarchy, consistency=consistency, fit=fit, mechanism=mechanism, split=split, known=facts,
        **LOSSES[mechanism], **options,
    )  # fmt: skip
    table = plan.release(data, rng=rng(seed))
    by = level_names(hierarchy)[1:]
    shown = paths_of(table, by)
    assert set(shown) == set(truth) and len(shown) == len(truth)
    said = dict(zip(paths_of(facts, by), facts[["count", "at_least"]].to_numpy().tolist(), strict=True))
    return plan, table, dict(zip(shown, table["count"].tolist(), strict=True)), said


ANY = {
    "drawn": published(),
    "fit": st.sampled_from(FITS),
    "mechanism": st.sampled_from(["laplace", "gaussian"]),
    "split": st.sampled_from(["uniform", "uniform", "uniform", "geometric", "optimal"]),
    "seed": st.integers(0, 2**32 - 1),
}


# Every table that may be published, by hypothesis.


@pytest.mark.slow
@given(**ANY)
def test_a_whole_table_adds_up_and_keeps_what_is_known(drawn, fit, mechanism, split, seed):
    plan, table, counts, said = release_of(drawn, "integer", fit, mechanism, split, seed)
    assert table["count"].dtype == np.int64 and (table["count"] >= 0).all()
    assert_adds_up(counts)
    for path, (exact, at_least) in said.items():
        assert exact is None or counts[path] == exact
        assert at_least is None or counts[path] >= at_least
    hierarchy = plan.domain or dpt.Domain.from_tree(plan.tree)
    exact = np.concatenate(
        [
            np.broadcast_to(flags, plan.tree.level_sizes[level])[hierarchy.tree.listed(level)]
            for level, flags in enumerate(plan.known.exact)
        ]
    )
    settled = table["std_error"].to_numpy() == 0
    assert (settled == exact).all()  # and what follows from the facts is the truth, with which they agree
    for path, sure in zip(counts, settled, strict=True):
        assert not sure or counts[path] == drawn[2][path]


@pytest.mark.slow
@given(consistency=st.sampled_from(MODES[:3]), **ANY)
def test_other_tables_keep_what_is_known(drawn, consistency, fit, mechanism, split, seed):
    plan, table, counts, said = release_of(drawn, consistency, fit, mechanism, split, seed)
    errors = dict(zip(counts, table["std_error"].tolist(), strict=True))
    for path, (exact, at_least) in said.items():
        assert exact is None or (counts[path] == exact and errors[path] == 0)
        if at_least is not None and consistency == "nonnegative":
            assert counts[path] >= at_least - 1e-9
    for path, count in counts.items():
        assert errors[path] > 0 or count == pytest.approx(drawn[2][path], abs=1e-9)
    if consistency != "none":
        assert_adds_up(counts, tolerance=1e-9)
    if consistency == "nonnegative":
        assert (table["count"] >= 0).all()
    assert table["count"].dtype == (np.int64 if consistency == "none" else np.float64)
    empty = plan.release(drawn[1][:0] if plan.domain else drawn[1] * 0, rng=rng(seed))
    pd.testing.assert_series_equal(empty["std_error"], table["std_error"])


# Known counts come from the caller alone.


@pytest.mark.parametrize("consistency", MODES)
@each("fit", FITS)
def test_known_counts_are_never_compared_with_the_records(consistency, fit):
    domain = us()
    plan = dpt.plan(
        domain, epsilon=1.0, consistency=consistency, fit=fit, known=KNOWN, confidence=0.9,
        keep=["measurements"],
    )  # fmt: skip
    tables = [
        plan.release(data, rng=rng(1))
        for data in (
            people(3, 2, 0, 1, 4, 0),  # as is known
            people(0, 0, 0, 0, 0, 0),
            people(200, 100, 300, 0, 400, 0),
            pd.DataFrame({"state": [None, 3.5, ("x",)], "county": ["Marin", [1], {"a": 1}]}),
        )
    ]
    for table in tables:
        fixed = ["level", *KEYS, "std_error", "noise_scale"]
        pd.testing.assert_frame_equal(table[fixed], tables[0][fixed])
        assert stated_in(table) == stated_in(tables[0]) and (table.dtypes == tables[0].dtypes).all()
        assert (table["measurement"].isna() == tables[0]["measurement"].isna()).all()
        assert table.dp.level("total")[["count", "lower", "upper", "std_error"]].values.tolist() == [
            [10, 10, 10, 0]
        ]
        marin = table.dp.level("county").loc[("CA", "Marin")]
        assert marin[["count", "lower", "upper", "std_error"]].tolist() == [0, 0, 0, 0]


def test_structural_zeros_are_zero():
    counts = people(5, 5, 900, 5, 5, 5).dp.tree_counts(
        KEYS, epsilon=3000.0, domain=us(structural_zeros="empty"), known={"state": {"DC": 5}}
    )
    assert counts.dp.level("county")["count"].tolist() == [5, 5, 0, 5, 5]
    assert counts.dp.level("state")["count"].to_dict() == {"CA": 10, "DC": 5, "WA": 10}
    assert counts.dp.level("total")["count"].item() == 25
    assert counts.attrs["dp"]["known"] == {"state": 1, "county": 1}


@each("options", [{}, {"column": "cost", "bounds": (-9, 9), "granularity": 1}])
def test_given_counts_of_structural_zeros_count_nowhere(options):
    """Otherwise the levels above would hold records that the leaves do not."""
    plan = dpt.plan(us(structural_zeros="empty"), epsilon=1e5, consistency="none", **options)
    table = plan.release(np.array([5, 4, 900, 3, 2, 1]), rng=rng(1))
    values = table[plan.quantity.name]
    assert values[table["level"] == "total"].tolist() == [15]
    assert values[table["level"] == "state"].tolist() == [9, 3, 3]


@each("fit", FITS)
@each("consistency", MODES[1:])
def test_a_level_that_is_known_in_part_need_not_be_measured(consistency, fit):
    tree, leaves = dpt.Tree.from_branching([16, 16]), np.full(256, 3)
    some = np.where(np.arange(16) < 5, 48, np.nan)
    plan = dpt.plan(
        tree, epsilon=1.0, objective="cells", consistency=consistency, fit=fit, known={"level_1": some},
        confidence=0.9, keep=["measurements"],
    )  # fmt: skip
    assert (
        plan.budget_shares[1] == 0 and plan.budget_shares[[0, 2]].all()
    )  # Laplace noise leaves the level out
    states = plan.release(leaves, rng=rng()).dp.level("level_1")
    assert (states[["count", "lower", "upper"]].iloc[:5] == 48).all(axis=None)
    assert (states["std_error"].iloc[:5] == 0).all() and (states["std_error"].iloc[5:] > 0).all()
    assert states["count"].iloc[5:].between(10, 90).all()  # their sums, not the 0 of what is not measured
    assert states[["measurement", "noise_scale"]].isna().all(axis=None)


# Intervals and measurements in the table.


@pytest.mark.parametrize("mechanism", LOSSES)
@pytest.mark.parametrize(("consistency", "fit"), MODES_AND_FITS)
def test_intervals_are_whole_and_hold_what_is_shown(consistency, fit, mechanism):
    check_intervals(consistency, fit, mechanism, range(1))


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", LOSSES)
@each("consistency, fit", MODES_AND_FITS)
def test_many_intervals_are_whole_and_hold_what_is_shown(consistency, fit, mechanism):
    check_intervals(consistency, fit, mechanism, range(1, 2))


def check_intervals(consistency, fit, mechanism, seeds):
    tree = dpt.Tree((np.array([4]), np.array([1, 1, 5, 2])))
    leaves = np.array([900, 0, 0, 1, 2, 0, 0, 40, 3])
    known = {"total": leaves.sum(), "level_1": [900, np.nan, np.nan, np.nan]}
    for loss in (0.05, 1.0, 30.0):
        for confidence in (0.5, 0.95, 1 - 2**-53):
            plan = dpt.plan(
                tree, **{next(iter(LOSSES[mechanism])): loss}, consistency=consistency, fit=fit,
                known=known, confidence=confidence,
            )  # fmt: skip
            for seed in seeds:
                table = plan.release(leaves, rng=rng(seed))
                assert list(table)[-4:] == ["count", "std_error", "lower", "upper"]
                assert table["lower"].dtype == table["upper"].dtype == np.int64
                assert (table["lower"] <= table["count"] + 1e-9).all()
                assert (table["count"] <= table["upper"] + 1e-9).all()
                settled = table["std_error"] == 0
                assert (table["lower"] == table["upper"])[settled].all() and settled.sum() == 3
                if consistency in MODES[2:]:
                    assert (table["lower"] >= 0).all()
                    assert (table["upper"] <= np.where(table["level"] == "total", 946, 900)).all()
                    assert (table["upper"][~settled] <= 46).all()


@each("fit", FITS)
@pytest.mark.parametrize("consistency", MODES)
def test_intervals_of_huge_counts_hold_what_is_shown(consistency, fit):
    """Nearly all children are empty, so what is shown of the full one is far below the linear estimate."""
    for full in (10**13, 10**14, 10**15):
        leaves = np.zeros(300, dtype=np.int64)
        leaves[0] = full
        plan = dpt.plan(
            dpt.Tree.from_branching([300]), epsilon=1.0, known={"total": full}, confidence=0.5,
            consistency=consistency, fit=fit,
        )  # fmt: skip
        table = plan.release(leaves, rng=rng())
        assert table.dp.level("total")[["count", "lower", "upper"]].values.tolist() == [[full] * 3]
        missed = np.maximum(table["lower"] - table["count"], table["count"] - table["upper"])
        # Fractions may be off by a quarter, as much as is rounded away: whole numbers are held exactly.
        assert missed.max() <= (0 if consistency in ("none", "integer") else 0.25)
        assert (table["upper"] - table["lower"]).max() <= 10


def test_a_surer_interval_is_wider():
    tree, leaves = dpt.Tree.from_branching([3, 4]), np.full(12, 500)
    widths = []
    for confidence in (0.5, 0.9, 0.95, 0.99):
        table = dpt.plan(tree, rho=0.01, confidence=confidence).release(leaves, rng=rng(3))
        widths.append(table["upper"] - table["lower"])
    assert all((wider > narrower).all() for narrower, wider in pairwise(widths))


def lopsided(mechanism, **options):
    tree = dpt.Tree((np.array([3]), np.array([1, 2, 5]), np.array([4, 1, 1, 2, 2, 3, 1, 1])))
    leaves = np.array([9, 0, 30, 2, 5, 0, 7, 8, 60, 1, 0, 3, 4, 250, 0])
    above = tree.roll_up(leaves)
    known = {"level_1": [above[1][0], np.nan, np.nan], "level_3": np.where(leaves == 60, 60, np.nan)}
    split = {"total": 0.2, "level_1": 0.3, "level_3": 0.5}
    plan = dpt.plan(
        tree, mechanism=mechanism, known=known, keep=["measurements"],
        **{"split": split, **LOSSES[mechanism], **options},
    )  # fmt: skip
    return plan, leaves


@pytest.mark.parametrize("mechanism", LOSSES)
@pytest.mark.parametrize("consistency", MODES)
def test_measurements_are_what_the_noise_left(mechanism, consistency, tmp_path):
    plan, leaves = lopsided(mechanism, consistency=consistency, split="uniform")
    raw = replace(plan, consistency="none").release(leaves, rng=rng(9))
    table = plan.release(leaves, rng=rng(9))
    sizes = plan.tree.level_sizes
    known = np.concatenate([np.broadcast_to(f, n) for f, n in zip(plan.known.exact, sizes, strict=True)])
    assert known.sum() == 3  # the first node of level 1, the only one below it, and a leaf
    assert list(table)[-2:] == ["measurement", "noise_scale"]
    assert table["measurement"].dtype == "Int64" and table["noise_scale"].dtype == np.float64
    assert (table["measurement"].isna() == known).all() and (table["noise_scale"].isna() == known).all()
    assert (table["measurement"] == raw["count"])[~known].all()
    scales = dict(zip(plan.level_names, plan.noise_scales, strict=True))
    assert (table["noise_scale"] == table["level"].astype(object).map(scales))[~known].all()
    table.to_parquet(tmp_path / "table.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "table.parquet"), table)
    table.to_csv(tmp_path / "table.csv", index=False)
    text = pd.read_csv(tmp_path / "table.csv", dtype={"measurement": "Int64"})
    pd.testing.assert_series_equal(text["measurement"], table["measurement"])
    np.testing.assert_allclose(text["noise_scale"], table["noise_scale"], rtol=1e-15)


@pytest.mark.parametrize("mechanism", LOSSES)
def test_the_estimates_follow_from_the_measurements(mechanism):
    plan, leaves = lopsided(mechanism, consistency="linear")
    table = plan.release(leaves, rng=rng(4))
    measured = table["measurement"].to_numpy(dtype=float, na_value=np.nan)
    scale = table["noise_scale"].to_numpy()
    settled = (table["std_error"] == 0).to_numpy()
    assert np.isnan(measured).sum() == 3 + 7  # those that are known, and level_2, which has no share
    assert (np.isnan(measured) == np.isnan(scale)).all()
    variance = np.where(np.isnan(scale), np.inf, plan.noise.variance(np.where(np.isnan(scale), 1.0, scale)))
    variance[settled] = 1e-6  # all but certain
    values = np.where(settled, table["count"], np.nan_to_num(measured))
    ends = np.cumsum(plan.tree.level_sizes)[:-1]
    estimates, variances = dense_least_squares(plan.tree, np.split(values, ends), np.split(variance, ends))
    np.testing.assert_allclose(np.concatenate(estimates), table["count"], atol=5e-3)
    np.testing.assert_allclose(np.sqrt(np.concatenate(variances)), table["std_error"], atol=5e-3)


# Statistics of many releases: of many copies of a tree, under a total that tells nothing about them.


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", LOSSES)
@pytest.mark.parametrize("consistency", ["linear", "none"])
def test_errors_with_known_counts_are_as_predicted(mechanism, consistency):
    few, leaves = lopsided(mechanism)
    one, times = few.tree, 20_000
    plan = dpt.plan(
        copies(one, times), mechanism=mechanism, consistency=consistency, **LOSSES[mechanism],
        split=even_split(range(1, one.depth + 2), consistency),
        known={
            "level_2": np.tile([46 - 5, np.nan, np.nan], times),
            "level_4": np.tile(np.where(leaves == 60, 60.0, np.nan), times),
        },
    )  # fmt: skip
    table = plan.release(np.tile(leaves, times), rng=rng(list(map(ord, mechanism + consistency))))
    errors = by_node(table, "count", one) - np.concatenate(one.roll_up(leaves))
    expected = by_node(table, "std_error", one)[0]
    noisy = expected > 0
    assert (errors[:, ~noisy] == 0).all() and (~noisy).sum() == 3
    seen = np.sqrt((errors**2).mean(axis=0))
    np.testing.assert_allclose(seen[noisy], expected[noisy], rtol=0.03)  # four standard errors
    level = np.repeat(np.arange(one.depth + 1), one.level_sizes)
    mean = np.bincount(level, seen**2) / one.level_sizes
    np.testing.assert_allclose(np.sqrt(mean), plan.std_errors[1:], rtol=0.02)


@pytest.mark.nightly
@pytest.mark.parametrize("mechanism", LOSSES)
def test_linear_counts_have_no_bias_and_others_have(mechanism):
    one, times = dpt.Tree.from_branching([4, 5]), 10_000
    sparse = np.zeros(20, dtype=np.int64)
    sparse[[3, 17]] = 12, 1
    for leaves in (sparse, np.arange(200, 400, 10)):
        exact = np.concatenate(one.roll_up(leaves))
        random, z = rng([int(leaves[0]), len(mechanism)]), {}
        for consistency in MODES:
            split = even_split(range(1, 4), consistency)
            plan = dpt.plan(
                copies(one, times), mechanism=mechanism, consistency=consistency, split=split,
                **LOSSES[mechanism],
            )  # fmt: skip
            counts = by_node(plan.release(np.tile(leaves, times), rng=random), "count", one)
            z[consistency] = (counts.mean(axis=0) - exact) / counts.std(axis=0) * np.sqrt(times)
        assert np.abs(z["linear"]).max() < 4 and np.abs(z["none"]).max() < 4
        if leaves is sparse:
            empty = np.flatnonzero(exact == 0)
            assert z["nonnegative"][empty].min() > 10 and z["integer"][empty].min() > 10


SHAPES = {
    "flat": [[6]],
    "uniform": [[3], [4]],
    "one by one": [[1], [2], [1]],
    "binary": [[2], [2], [2]],
    "wide": [[25]],
    "narrow above": [[2], [10]],
    "ragged": [[3], [1, 2, 5]],
    "ragged below": [[2], [2, 1], [4, 1, 2]],
    "chains": [[4], [1, 1, 1, 6]],
    "known": [[3], [2, 3, 2]],
}


@pytest.mark.nightly
@pytest.mark.parametrize("mechanism", LOSSES)
@pytest.mark.parametrize("shape", SHAPES)
def test_published_intervals_hold_the_truth_as_often_as_promised(shape, mechanism):
    """Half of the leaves are empty.

    Half a percentage point is allowed, of which chance takes a third (one standard error) at 90 %.
    """
    one, times = dpt.Tree(tuple(map(np.array, SHAPES[shape]))), 30_000
    tree = copies(one, times)
    random = rng(list(map(ord, shape + mechanism)))
    leaves = random.integers(0, 30, tree.n_leaves) * (random.random(tree.n_leaves) < 0.5)
    truth = tree.roll_up(leaves)
    levels, known = range(1, tree.depth + 1), None
    if shape == "known":  # and so is all that is above it
        levels, known = [3], {"level_2": truth[2]}
    truth = np.concatenate(truth)
    for consistency in MODES:
        for fit in FITS if consistency in MODES[2:] else FITS[:1]:
            plan = dpt.plan(
                tree, mechanism=mechanism, consistency=consistency, fit=fit, known=known, confidence=0.9,
                split=even_split(levels, consistency), **LOSSES[mechanism],
            )  # fmt: skip
            for confidence in (0.9, 0.95, 0.99):
                table = replace(plan, confidence=confidence).release(leaves, rng=random)
                held = (table["lower"] <= truth) & (truth <= table["upper"])
                share = held.groupby(table["level"], observed=True).mean()
                assert share.iloc[1:].min() > confidence - 0.005, (consistency, fit, confidence)


def test_a_plan_that_is_measured_twice_has_noise_of_its_own_each_time():
    plan = dpt.plan(dpt.Tree.from_branching([40]), rho=0.01)
    leaves = np.full(40, 100)
    one, other = measured([plan, plan], [leaves, leaves + 10**6], noise_source(np.random.default_rng(1)))
    assert other.shown[0][0] - one.shown[0][0] == pytest.approx(40 * 10**6, rel=1e-3)
    assert not np.array_equal(other.noisy[-1] - 10**6, one.noisy[-1])

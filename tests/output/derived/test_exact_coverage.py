"""The exact coverage of ratios in the smallest worlds, two leaves and a total: all outcomes of the noise."""

import numpy as np
import pandas as pd
import pytest

from pandas_dptree.estimation.intervals import error_half_widths
from pandas_dptree.estimation.ratios import independent, ratio_intervals
from pandas_dptree.output.derived.estimates import Estimates
from tests.helpers_cases import each
from tests.helpers_random import rng

LOSSES = [{"epsilon": 1.0}, {"epsilon": 2.0}, {"epsilon": 3.0}, {"epsilon": 5.0}, {"rho": 1.5}]


def release(truth, seed=0, **options):
    records = pd.DataFrame({"k": ["a"] * truth[0] + ["b"] * truth[1]})
    return records.dp.tree_counts("k", domain=["a", "b"], keep=["linear"], rng=rng(seed), **options)


def law(mechanism, scale):
    """The outcomes of one noise, all but 1e-8 of the probability, and how likely they are."""
    if scale is None:
        return np.zeros(1), np.ones(1)
    k = np.arange(-int(60 * scale) - 9, int(60 * scale) + 10)
    p = np.exp(-np.abs(k) / scale) if mechanism == "laplace" else np.exp(-(k**2) / (2 * scale**2))
    kept = p > 1e-9 * p.max()
    return k[kept].astype(float), p[kept] / p.sum()


def outcomes(estimates, truth):
    """The estimates of the total and of the first leaf in every outcome, and its probability."""
    total, leaf = (law(estimates.quantity.mechanism, scale) for scale in estimates.quantity.scales)
    noise = np.meshgrid(total[0], leaf[0], leaf[0], indexing="ij")
    likely = total[1][:, None, None] * leaf[1][:, None] * leaf[1]
    measured = sum(truth) + noise[0], truth[0] + noise[1], truth[1] + noise[2]
    if not estimates.combined:
        return measured[0].ravel(), measured[1].ravel(), likely.ravel()
    below, own = measured[1] + measured[2], estimates.noises[0].variances.own[0][0]
    root = own * measured[0] + (1 - own) * below
    return root.ravel(), (measured[1] + (root - below) / 2).ravel(), likely.ravel()


def of_row(moments, row):
    return [np.atleast_1d(each)[row % len(np.atleast_1d(each))][None] for each in moments]


def share_intervals(estimates, leaf, total):
    steps = estimates.moments[2]
    return ratio_intervals(
        leaf, total, joint_cumulants=of_row(estimates.joint_moments(None), 1), bounds=(0, 1),
        confidence=0.95, steps=(steps[1:2], steps[:1]),
    )  # fmt: skip


def percent_intervals(now, before, leaf, earlier):
    mine, theirs = of_row(now.moments, 1), of_row(before.moments, 1)
    return ratio_intervals(
        leaf, earlier, joint_cumulants=independent((mine[0], theirs[0]), (mine[1], theirs[1])),
        bounds=(0, np.inf), confidence=0.95, steps=(mine[2], theirs[2]),
    )  # fmt: skip


def change_half_width(now, before):
    mine, theirs = of_row(now.moments, 1), of_row(before.moments, 1)
    return error_half_widths(mine[0] + theirs[0], mine[1] + theirs[1], np.fmax(mine[2], theirs[2]), 0.95)


def held(ends, true, likely):
    return float(likely[(ends[0] <= true + 1e-9) & (true - 1e-9 <= ends[1])].sum())


@each("consistency", ["linear", "none"])
@each("loss", LOSSES)
def test_shares_hold_the_truth_as_often_as_stated(loss, consistency):
    for truth in ((100, 100), (3, 197)):
        estimates = Estimates.of(release(truth, consistency=consistency, **loss), None)
        root, leaf, likely = outcomes(estimates, truth)
        assert likely.sum() == pytest.approx(1, abs=1e-7)
        assert held(share_intervals(estimates, leaf, root), truth[0] / sum(truth), likely) > 0.949


@each("split", ["optimal", "uniform"])
@each("loss", LOSSES)
def test_changes_per_cent_hold_the_truth_as_often_as_stated(loss, split):
    for now, before in ((60, 60), (45, 30)):
        laws = []
        for truth in (now, before):
            consistency = "none" if "rho" in loss else "linear"
            table = release((truth, 90), split=split, consistency=consistency, **loss)
            estimates = Estimates.of(table, None)
            _, leaf, likely = outcomes(estimates, (truth, 90))
            values, place = np.unique(leaf.round(6), return_inverse=True)
            laws.append((values, np.bincount(place, weights=likely), estimates))
        (x, p, mine), (y, q, theirs) = laws
        x, y = np.meshgrid(x[p > 1e-9], y[q > 1e-9], indexing="ij")
        likely = p[p > 1e-9][:, None] * q[q > 1e-9]
        ends = percent_intervals(mine, theirs, x.ravel(), y.ravel())
        assert held(ends, now / before, likely.ravel()) > 0.949
        half = change_half_width(mine, theirs)
        assert held((x - y - half, x - y + half), now - before, likely) > 0.949


@each("loss", [LOSSES[1], LOSSES[-1]])
@each("consistency", ["none", "linear"])
def test_the_verbs_show_these_intervals(consistency, loss):
    now, before = (release((12, 20), seed, consistency=consistency, **loss) for seed in (0, 1))
    mine, theirs = (Estimates.of(table, None) for table in (now, before))
    shares, changes = now.dp.proportions(), now.dp.change_from(before)
    expected = np.ravel(share_intervals(mine, mine.linear[1:2], mine.linear[:1]))
    np.testing.assert_allclose(shares.loc[1, ["lower", "upper"]].tolist(), expected, atol=1e-12)
    ends = np.ravel(percent_intervals(mine, theirs, mine.linear[1:2], theirs.linear[1:2]))
    shown = changes.loc[1, ["percent_lower", "percent_upper"]].tolist()
    np.testing.assert_allclose(shown, 100 * (ends - 1), atol=1e-9)
    half, change = change_half_width(mine, theirs), mine.linear[1] - theirs.linear[1]
    ends = np.ravel([np.ceil(change - half), np.floor(change + half)])
    np.testing.assert_array_equal(changes.loc[1, ["lower", "upper"]].tolist(), ends)
    for other in ("nonnegative", "integer") if consistency == "linear" else ():
        wide = release((12, 20), 0, consistency=other, **loss).dp.proportions()
        assert (wide["lower"][1:] <= shares["lower"][1:] + 1e-12).all()
        assert (wide["upper"][1:] >= shares["upper"][1:] - 1e-12).all()

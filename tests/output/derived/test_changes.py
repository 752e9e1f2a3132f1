"""Changes between releases: of which nodes, how many by chance, and what is refused."""

import math

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.output.derived.changes import holm
from pandas_dptree.output.derived.numbers import Numbers
from tests.helpers_derived import DOMAIN, KEYS, PLACES, RECORDS, counts
from tests.helpers_random import rng


def test_changes_of_the_shown_numbers_node_by_node():
    now, before = counts(1), counts(2)
    changes = now.dp.change_from(before)
    assert changes["change"].tolist() == (now["count"] - before["count"]).tolist()
    error = np.hypot(now["std_error"], before["std_error"])
    np.testing.assert_allclose(changes["std_error"], error)
    large = before["count"] > 4 * before["std_error"]
    percent = 100 * (now["count"] / before["count"] - 1)
    np.testing.assert_allclose(changes["percent"], percent.where(large))
    assert (changes["percent_lower"] >= -100).all()
    assert ((changes["lower"] > 0) | (changes["upper"] < 0)).tolist() == changes["beyond_noise"].tolist()
    facts = changes.attrs["dp_derived"]
    assert (facts["changes"], facts["by_chance"]) == (27, 1.35)
    assert facts["beyond_noise"] == changes["beyond_noise"].sum()


def test_a_real_change_is_found_among_many_by_holm():
    grown = pd.concat([RECORDS, RECORDS[RECORDS["town"] == "c3"]])
    options = {"domain": DOMAIN, "epsilon": 1.0, "split": "uniform", "keep": ["linear"]}
    now = grown.dp.tree_counts(KEYS, rng=rng(5), **options)
    changes = now.dp.change_from(counts(2))
    assert changes.loc[changes["town"] == "c3", "beyond_noise"].all()
    assert 4 <= changes.attrs["dp_derived"]["beyond_noise_holm"] <= changes["beyond_noise"].sum()


def test_holm_counts_as_with_p_values():
    erfc = np.vectorize(math.erfc)
    for seed in range(8):
        errors = rng(seed).normal(size=30) * np.where(np.arange(30) < 8, 3.5, 1)
        p = np.sort(erfc(np.abs(errors) / np.sqrt(2)))
        fails = p > 0.05 / (30 - np.arange(30))
        expected = int(np.argmax(fails)) if fails.any() else 30
        assert holm(errors, (np.ones(30), np.zeros(30), np.zeros(30)), 30, 0.95) == expected


def test_holm_counts_among_all_changes_that_have_an_error():
    """As many as with all 27 given, although only those beyond the noise can be found."""
    grown = pd.concat([RECORDS, RECORDS[::12]])
    options = {"domain": DOMAIN, "epsilon": 0.6, "split": "uniform", "keep": ["linear"]}
    for seed in range(3):
        now = grown.dp.tree_counts(KEYS, rng=rng(seed), **options)
        before = RECORDS.dp.tree_counts(KEYS, rng=rng(100 + seed), **options)
        mine, theirs = Numbers.of(now, None), Numbers.of(before, None)
        moments = mine.variance + theirs.variance, mine.fourth + theirs.fourth, mine.steps
        facts = now.dp.change_from(before).attrs["dp_derived"]
        assert facts["beyond_noise_holm"] == holm(mine.linear - theirs.linear, moments, 27, 0.95)


def test_nodes_of_one_table_only_have_no_change():
    more = pd.concat([PLACES, pd.DataFrame([("WA", "q", "q0")], columns=KEYS)])
    wider = dpt.Domain.from_frame(more, by=KEYS)
    now = RECORDS.dp.tree_counts(
        KEYS, domain=wider, epsilon=1.0, split="uniform", rng=rng(8), keep=["linear"]
    )
    before = counts(1)
    changes = now.dp.change_from(before)
    new = changes["state"] == "WA"
    assert new.sum() == 3
    assert changes.loc[new, ["change", "lower", "percent_upper"]].isna().all().all()
    assert not changes.loc[new, "beyond_noise"].any()
    assert changes.loc[~new, "change"].notna().all()
    assert changes.attrs["dp_derived"]["changes"] == 27
    assert before.dp.change_from(now).attrs["dp_derived"]["only_before"] == 3


def test_means_change_with_the_errors_of_the_table():
    options = {"columns": "cost", "bounds": (0, 10), "domain": DOMAIN, "epsilon": 5.0}
    now, before = (RECORDS.dp.tree_means(KEYS, **options, rng=rng(seed)) for seed in (1, 2))
    changes = now.dp.change_from(before)
    np.testing.assert_allclose(changes["change"], now["cost"] - before["cost"])
    np.testing.assert_allclose(
        changes["std_error"], np.hypot(now["cost_std_error"], before["cost_std_error"])
    )


def test_one_release_is_not_compared_with_itself(tmp_path):
    ledger = dpt.Ledger.create(tmp_path / "b.sqlite", account="a", epsilon=9.0, privacy_unit=dpt.ROWS)
    options = {"domain": DOMAIN, "epsilon": 1.0, "keep": ["linear"], "ledger": ledger["a"]}
    first = RECORDS.dp.tree_counts(KEYS, note="first", **options)
    for same in (first, first.copy(), ledger.table(first.attrs["dp"]["ledger"]["charge"])):
        with pytest.raises(dpt.ArgumentError, match="same release"):
            first.dp.change_from(same)
    second = RECORDS.dp.tree_counts(KEYS, note="second", **options)
    assert (second.dp.change_from(first)["std_error"] > 0).all()


def test_releases_that_happen_to_be_equal_are_two():
    """To leave them out would be to leave out cases of no change."""
    changes = counts(1).dp.change_from(counts(1))
    assert (changes["change"] == 0).all() and not changes["beyond_noise"].any()
    assert (changes["std_error"] > 0).all()


@pytest.mark.parametrize(
    ("before", "message"),
    [
        (lambda: counts(2)[1:], "`before` is not the whole"),
        (lambda: counts(2, keep=None), "`before` lacks the unbiased"),
        (
            lambda: RECORDS.dp.tree_counts(
                KEYS[:2], domain=dpt.Domain.from_frame(DOMAIN.keys(2), by=KEYS[:2]),
                epsilon=1.0, rng=rng(), keep=["linear"],
            ),
            "other levels",
        ),
        (
            lambda: RECORDS.dp.tree_sums(
                KEYS, columns="cost", bounds=(0, 9), domain=DOMAIN, epsilon=1.0, rng=rng(), keep=["linear"]
            ),
            "not the same in both",
        ),
    ],
)  # fmt: skip
def test_tables_that_cannot_be_compared_are_refused(before, message):
    with pytest.raises(dpt.ArgumentError, match=message):
        counts(1).dp.change_from(before())

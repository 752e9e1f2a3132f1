"""Proportions of crossed tables have the errors that dense covariances give."""

import numpy as np
import pytest

from pandas_dptree.errors import ArgumentError
from tests.helpers_cases import each
from tests.helpers_crossed_derived import LEAVES, OPTIONS, covariance_of_rows, plan_of, release

BASES = ["total", {"sex": "total"}, {"place": "total"}, {"place": "state"}]


def keys_above(row, of):
    """What the cell of a base has in the place of the keys of a row; None if there is no such cell."""
    row = row.copy()
    for axis, levels in {"place": ["total", "state", "county"], "sex": ["total", "sex"]}.items():
        level = "total" if of == "total" else of.get(axis)
        if level is None:
            continue
        if levels.index(row[f"{axis}_level"]) < levels.index(level):
            return None
        row[f"{axis}_level"] = level
        for key in levels[levels.index(level) + 1 :]:
            row[key] = None
    return tuple(None if value != value else value for value in row)


@each("place", range(len(OPTIONS)))
def test_errors_are_those_of_the_dense_covariance(place):
    compare(OPTIONS[place], BASES[(place + 1) % len(BASES)])


@pytest.mark.slow
@each("options", OPTIONS)
@each("of", BASES)
def test_errors_of_all_bases_are_those_of_the_dense_covariance(options, of):
    compare(options, of)


def compare(options, of):
    """Compare proportions and their errors with dense ones."""
    plan = plan_of(options)
    table = release(plan)
    found = table.dp.proportions(of=of)
    covariance = covariance_of_rows(plan)
    keys = table[["place_level", "sex_level", "state", "county", "sex"]].astype(object)
    place = {keys_above(row, {}): n for n, (_, row) in enumerate(keys.iterrows())}
    shown = table["count"].to_numpy(dtype=float)
    seen = 0
    for row, (_, own) in enumerate(keys.iterrows()):
        base = place.get(keys_above(own, of), -1)
        got = found.iloc[row]
        if base < 0:
            assert got[["proportion", "std_error", "lower", "upper"]].isna().all()
            continue
        if shown[base] < 4 * max(covariance[base, base], 0) ** 0.5 or shown[base] <= 0:
            assert np.isnan(got["proportion"])
            continue
        seen += 1
        share = shown[row] / shown[base]
        variance = np.array([1, -share]) @ covariance[np.ix_([row, base], [row, base])] @ [1, -share]
        assert got["proportion"] == pytest.approx(share)
        expected = max(variance, 0) ** 0.5 / shown[base]
        assert got["std_error"] == pytest.approx(expected, rel=1e-6, abs=1e-9), (row, base)
        assert got["lower"] <= share <= got["upper"]
    assert seen > 2


@each("of", ["parent", {"town": "total"}, {"sex": "age"}, {"sex": "total", "place": "total"}, {}, 3, ["sex"]])
def test_bases_that_are_none_are_refused(of):
    with pytest.raises(ArgumentError, match=r"(?s)`of`.*Hint: "):
        release(plan_of({})).dp.proportions(of=of)


def test_a_base_that_the_table_does_not_show_is_refused():
    table = release(plan_of({"margins": [{"place": "county", "sex": "sex"}]}))
    with pytest.raises(ArgumentError, match="`of` is not in the table"):
        table.dp.proportions(of="total")


@pytest.mark.slow
@each("options", [{}, {"mechanism": "laplace"}])
def test_intervals_hold_as_often_as_stated(options):
    plan, held = plan_of(options), []
    leaves = LEAVES / LEAVES.sum(axis=1, keepdims=True)
    for seed in range(60):
        found = release(plan, seed).dp.proportions(of={"sex": "total"}, confidence=0.9)
        own = found.dp.margin(place="county", sex="sex").loc[("CA", ["Kern", "Marin"], ["F", "M"]), :]
        truth = leaves[:2, :2].reshape(-1)
        held.append((own["lower"] <= truth) & (truth <= own["upper"]))
    assert 0.85 < np.mean(held) <= 1

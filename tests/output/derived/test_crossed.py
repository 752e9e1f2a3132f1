"""Numbers derived from crossed tables: changes, the largest cells, classes; and what is refused."""

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError
from tests.helpers_cases import each

PLACES = pd.DataFrame({"state": ["CA", "CA", "DC"], "county": ["Kern", "Marin", None]})
DOMAIN = dpt.cross(
    place=dpt.Domain.from_frame(PLACES, by=["state", "county"]),
    sex=dpt.Domain.from_frame(["F", "M"], by=["sex"]),
)
LEAVES = np.array([[500, 400], [300, 30], [20, 10]])


def table_of(leaves=LEAVES, seed=0, **options):
    plan = dpt.plan(DOMAIN, **{"rho": 0.5, "keep": ["linear"], **options})
    return plan.release(leaves, rng=np.random.default_rng(seed))


@each("options", [{}, {"mechanism": "laplace"}, {"consistency": "linear", "keep": None}])
def test_changes_of_cells_have_the_error_of_both_releases(options):
    now, then = table_of(LEAVES + 50, 1, **options), table_of(LEAVES, 2, **options)
    change = now.dp.change_from(then)
    assert list(change.columns[:5]) == ["place_level", "sex_level", "state", "county", "sex"]
    np.testing.assert_allclose(change["change"], now["count"] - then["count"])
    np.testing.assert_allclose(change["std_error"], np.hypot(now["std_error"], then["std_error"]))
    assert (change["lower"] <= change["change"]).all() and (change["change"] <= change["upper"]).all()
    assert change.dp.margin(sex="sex")["beyond_noise"].all()
    assert change.attrs["dp_derived"]["changes"] == len(now)


def test_intervals_of_changes_hold_as_often_as_stated():
    covered = []
    for seed in range(12):
        change = table_of(LEAVES, 2 * seed).dp.change_from(table_of(LEAVES, 2 * seed + 1), confidence=0.9)
        covered.append(((change["lower"] <= 0) & (change["upper"] >= 0)).mean())
    assert 0.82 < np.mean(covered) <= 1


def test_rows_are_matched_by_their_keys():
    now, then = table_of(LEAVES + 50, 1), table_of(LEAVES, 2)
    other = dpt.plan(
        dpt.cross(
            place=dpt.Domain.from_frame(PLACES[1:], by=["state", "county"]),
            sex=dpt.Domain.from_frame(["F", "M"], by=["sex"]),
        ),
        rho=0.5,
        keep=["linear"],
    ).release(LEAVES[1:], rng=np.random.default_rng(0))
    change = now.dp.change_from(other)
    missing = change[change["change"].isna()]
    assert set(missing["county"].dropna()) == {"Kern"}
    assert len(missing) == 3
    assert now.dp.change_from(then)["change"].notna().all()


def test_the_largest_cells_of_a_margin():
    largest = table_of().dp.top(2, level={"place": "county", "sex": "sex"})
    assert largest[["county", "sex", "rank"]].to_numpy().tolist() == [["Kern", "F", 1], ["Kern", "M", 2]]
    assert largest.attrs["dp_derived"]["competed"] == 4
    assert table_of().dp.top(1)["county"].tolist() == ["Kern"]
    with pytest.raises(ArgumentError, match="level"):
        table_of().dp.top(1, level={"place": "town"})


def test_cells_have_classes_of_reliability():
    table = table_of()
    grades = table.dp.reliability()
    assert grades.dp.margin()["count"].tolist() == ["A"]
    assert len(grades) == len(table)


def test_changes_need_tables_of_the_same_axes():
    nested = dpt.plan(DOMAIN.axes["place"], rho=0.5, keep=["linear"]).release(LEAVES.sum(axis=1))
    with pytest.raises(ArgumentError, match="before"):
        table_of().dp.change_from(nested)
    whole = table_of(keep=None)
    with pytest.raises(ArgumentError, match="unbiased"):
        whole.dp.change_from(whole.copy())

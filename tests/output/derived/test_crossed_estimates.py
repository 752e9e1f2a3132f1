"""Crossed tables as they are read for derived numbers: their variances, and what is refused."""

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError
from pandas_dptree.output.derived.crossed_estimates import CrossedEstimates
from tests.helpers_cases import each
from tests.helpers_crossed_derived import LEAVES, OPTIONS, PLACES, covariance_of_rows, plan_of, release


@each("options", OPTIONS)
def test_variances_are_those_of_the_rows(options):
    plan = plan_of(options)
    table = release(plan)
    estimates = CrossedEstimates.of(table, None)
    np.testing.assert_allclose(estimates.variance, np.diag(covariance_of_rows(plan)), rtol=1e-6, atol=1e-8)
    shown = {margin: rows for margin, rows in estimates.released.margins}
    assert sorted(shown) == sorted(plan.tree.shown)
    for margin, rows in shown.items():
        listed = plan.tree.listed(plan.tree.level_of(margin))
        assert estimates.cells[rows].tolist() == np.flatnonzero(listed).tolist()


def test_sums_from_the_middle_of_their_bounds_have_the_noise_of_the_count_too():
    rng = np.random.default_rng(0)
    records = pd.DataFrame(
        {
            "state": rng.choice(["CA", "NY"], 400),
            "sex": rng.choice(["F", "M", "M"], 400),
            "cost": rng.integers(0, 9, 400),
        }
    )
    table = records.dp.tree_agg(
        {"place": "state", "sex": "sex"},
        {"n": "count", "costs": dpt.sum("cost", bounds=(0, 9)), "mean": dpt.mean("cost", bounds=(0, 9))},
        domain={"place": ["CA", "NY"], "sex": ["F", "M"]}, rho=1.0, keep=["linear"],
    )  # fmt: skip
    both = table.dp.combine({"all": {"sex": ["F", "M"]}}, column="costs")
    total = table.dp.margin()
    np.testing.assert_allclose(both["costs_std_error"], total["costs_std_error"], rtol=1e-6)
    shares = table.dp.proportions(of={"sex": "total"}, column="costs").dp.margin(place="state", sex="sex")
    errors = shares["std_error"].to_numpy().reshape(2, 2)  # of two shares that add up to 1
    np.testing.assert_allclose(errors[:, 0], errors[:, 1], rtol=1e-6)
    with pytest.raises(ArgumentError, match=r"means.*\n?Hint: "):
        table.dp.proportions(of="total", column="mean")


def test_tables_that_were_changed_are_refused():
    table = release(plan_of({}))
    with pytest.raises(ArgumentError, match="whole table"):
        table.iloc[1:].dp.proportions(of="total")
    loud = table.copy()
    stated = table.attrs["dp"]
    loud.attrs = {**table.attrs, "dp": {**stated, "noise_scale": dict.fromkeys(stated["noise_scale"], 3.0)}}
    with pytest.raises(ArgumentError, match="standard errors"):
        loud.dp.proportions(of="total")
    loud.attrs["dp"]["noise_scale"] = {"town": 1.0}
    with pytest.raises(ArgumentError, match="does not show all levels"):
        loud.dp.proportions(of="total")
    known = release(plan_of(OPTIONS[4]))
    del known.attrs["dp_plan"]
    with pytest.raises(ArgumentError, match="lacks its plan"):
        known.dp.proportions(of="total")
    rows = table[table["sex_level"].eq("total") | (table["county"] != "Kern")]
    rows.attrs = {
        **table.attrs,
        "dp": {key: own for key, own in table.attrs["dp"].items() if key != "table_digest"},
    }
    with pytest.raises(ArgumentError, match="lacks rows"):
        rows.dp.proportions(of="total")


def test_tables_of_files_are_read(tmp_path):
    table = release(plan_of({}))
    table.dp.to_file(tmp_path / "counts.csv")
    again = dpt.read_file(tmp_path / "counts.csv").dp.proportions(of={"sex": "total"})
    pd.testing.assert_frame_equal(again, table.dp.proportions(of={"sex": "total"}))


def test_paths_that_end_early_may_come_last_in_a_table():
    """Rows of counties come before those of states, of which DC has no county."""
    axes = {
        "sex": dpt.Domain.from_frame(["F", "M"], by=["sex"]),
        "place": dpt.Domain.from_frame(PLACES, by=["state", "county"]),
    }
    margins = [{"place": "county"}, {"sex": "sex", "place": "state"}]
    plan = dpt.plan(dpt.cross(axes), rho=0.5, margins=margins, keep=["linear"])
    table = plan.release(LEAVES[:, :2].T, rng=np.random.default_rng(0))
    estimates = CrossedEstimates.of(table, None)
    np.testing.assert_allclose(estimates.variance, table["std_error"] ** 2, rtol=1e-6)
    assert estimates.axes[1].tree == plan.tree.axes[1]


def test_what_several_columns_know_is_read_from_the_plan_of_each():
    sexes = pd.DataFrame({"sex": ["F", "M", "X"], "none": [False, False, True]})
    domain = dpt.cross(
        place=dpt.Domain.from_frame(["CA", "NY"], by=["state"]),
        sex=dpt.Domain.from_frame(sexes, by=["sex"], structural_zeros="none"),
    )
    aggregations = {"n": "count", "costs": dpt.sum("cost", bounds=(0, 9))}
    plan = dpt.plan_agg(domain, aggregations, rho=1.0, keep=["linear"])
    records = pd.DataFrame({"state": ["CA", "NY"] * 50, "sex": ["F", "F", "M", "M"] * 25, "cost": 3})
    table = plan.release(records)
    for column in ("n", "costs"):
        shares = table.dp.proportions(of={"sex": "total"}, column=column).dp.margin(sex="sex")
        assert (shares.loc["X", ["proportion", "std_error"]] == 0).all()


def test_intervals_of_laplace_noise_are_wider():
    table = release(plan_of({"mechanism": "laplace", "consistency": "linear", "rho": 0.01}))
    shares = (
        table.dp.proportions(of="total").dp.margin(place="county", sex="sex").loc["CA", "Kern", ["F", "M"]]
    )
    halves = (shares["upper"] - shares["lower"]) / 2 / shares["std_error"]
    assert (halves > 2.05).all()

"""The whole chain: the files of releases of every kind are verified."""

import json
from functools import partial

import pytest

import pandas_dptree as dpt
from pandas_dptree import verify
from tests.helpers_verify import BY, PLACES, records

DOMAIN = dpt.Domain.from_frame(PLACES, by=BY)
PLANS = {
    "counts": (partial(dpt.plan, DOMAIN, epsilon=1.0, confidence=0.9, keep=["measurements"]), 0),
    "a sum": (partial(dpt.plan, DOMAIN, column="cost", bounds=(0, 50), epsilon=1.0), 0),
    "sums": (
        partial(dpt.plan_sums, DOMAIN, columns=["cost", "age"], 
                bounds={"cost": (0, 50), "age": (0, 1)}, rho=0.1), 0
    ),
    "means": (
        partial(
            dpt.plan_means, DOMAIN, columns="cost", bounds=(0, 50), epsilon=1.0, delta=1e-6,
            keep=["measurements"],
        ),
        0,
    ),
    "several": (
        partial(
            dpt.plan_agg, DOMAIN,
            {"n": "count", "cost": dpt.mean("cost", bounds=(0, 50)), "age": dpt.sum("age", bounds=(0, 1))},
            epsilon=1.0, delta=1e-6, mechanism="gaussian",
        ),
        0,
    ),
    "relative error": (
        partial(dpt.plan, DOMAIN, epsilon=1.0, delta=1e-6, mechanism=dpt.Multiplicative(alpha=0.5)), 3
    ),
    "quantiles": (
        partial(dpt.plan_quantiles, "cost", [0.25, 0.5], bounds=(0, 50), granularity=1, domain=DOMAIN, bins=5,
            mechanism="exponential", confidence=0.9, epsilon=1.0),
        0,
    ),
    "distribution": (
        partial(dpt.plan_distribution, "cost", bins=[0, 10, 50], domain=DOMAIN, epsilon=1.0), 3
    ),
    "implicit": (partial(dpt.plan, dpt.binary("person", bits=8), epsilon=1.0, delta=1e-6), 3),
    "private keys": (
        partial(dpt.plan, None, private_keys=BY, epsilon=1.0, delta=1e-6, privacy_unit=dpt.ROWS), 3
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", PLANS)
def test_files_of_every_kind_are_verified_and_state_the_digest(tmp_path, kind, capsys):
    make, status = PLANS[kind]
    plan = make()
    table = plan.release(records())
    table = table.cdf() if kind == "distribution" else table
    assert table.attrs["dp"]["digest"] == json.loads(table.attrs["dp_plan"])["digest"] == plan.digest
    (tmp_path / "plan.json").write_text(json.dumps(plan.to_dict()))
    dpt.to_file(table, tmp_path / "counts.csv")
    for stated in ("plan.json", "counts.csv.json"):
        paths = [str(tmp_path / stated), str(tmp_path / "counts.csv")]
        assert verify.main([*paths, "--digest", plan.digest]) == status
        assert "0 failed" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["counts", "means"])
def test_a_noise_scale_in_the_table_that_is_not_the_planned_one_is_found(tmp_path, kind, capsys):
    plan = PLANS[kind][0]()
    table = plan.release(records())
    column = "noise_scale" if kind == "counts" else "cost_noise_scale"
    assert table[column].notna().iloc[-1]
    table.loc[table.index[-1], column] *= 0.9
    (tmp_path / "plan.json").write_text(json.dumps(plan.to_dict()))
    table.to_csv(tmp_path / "counts.csv", index=False)
    assert verify.main([str(tmp_path / "plan.json"), str(tmp_path / "counts.csv")]) == 1
    assert "FAIL        noise scales of" in capsys.readouterr().out

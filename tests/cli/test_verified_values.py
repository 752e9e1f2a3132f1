"""The verifier sees whether the values of a file are those that were released."""

import contextlib
import io
import json

import pytest

import pandas_dptree as dpt
from pandas_dptree import verify
from pandas_dptree.cli import main
from pandas_dptree.output.table_digest import table_digest
from tests.helpers_cases import each
from tests.helpers_kinds import PLANS, RECORDS
from tests.helpers_ledger import create

NAMES = ["AdditivePlan", "JointPlan", "DistributionPlan", "ImplicitPlan", "private keys"]


def report_of(path, *options, plan=None):
    """Run the verifier on a file and its description."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = verify.main([str(plan or path.with_name(f"{path.name}.json")), str(path), *options])
    return code, printed.getvalue()


@pytest.fixture
def counts():
    return PLANS["AdditivePlan"].release(RECORDS)


@pytest.mark.parametrize("name", NAMES)
def test_values_as_released_pass(tmp_path, name):
    released, path = PLANS[name].release(RECORDS), tmp_path / "table.csv"
    table = released.histogram() if isinstance(released, dpt.Distribution) else released
    dpt.to_file(table, path)
    code, printed = report_of(path)
    assert (
        code == (0 if name in NAMES[:2] else 3)
        and f"PASS        values as released: {table_digest(table)}" in printed
    )
    assert "no plan shows: pass the digest of the table that whoever saw the ledger noted" in printed
    dpt.to_file(table.assign(count=table["count"] * 3) if "count" in table else table.iloc[::-1], path)
    code, printed = report_of(path)
    assert (
        code == 1
        and "FAIL        values as released" in printed
        and "or values changed, after the release" in printed
    )
    assert "FAIL        bytes of the table" not in printed  # nobody changed the file


@each(
    "edit",
    [
        lambda counts: counts.assign(count=counts["count"] * 3, std_error=counts["std_error"] * 3),
        lambda counts: counts.dp.level("district"),
        lambda counts: counts.iloc[[0, *range(len(counts) - 1, 0, -1)]],
        lambda counts: counts.iloc[:-1],
    ],
)
def test_edited_tables_fail(tmp_path, counts, edit):
    dpt.to_file(edit(counts), tmp_path / "counts.csv")
    code, printed = report_of(tmp_path / "counts.csv")
    assert code == 1 and "FAIL        values as released" in printed


def test_tripled_counts_fail_by_their_values_alone(tmp_path):
    plan = dpt.plan(PLANS["AdditivePlan"].hierarchy, epsilon=1.0, consistency="none")
    counts = plan.release(RECORDS)
    dpt.to_file(counts.assign(count=counts["count"] * 3), tmp_path / "counts.csv")
    code, printed = report_of(tmp_path / "counts.csv")
    assert code == 1 and " 1 failed" in printed and "FAIL        values as released" in printed


def test_digests_noted_by_whoever_saw_the_ledger(tmp_path):
    path, plan = tmp_path / "counts.csv", tmp_path / "plan.json"
    plan.write_text(json.dumps(PLANS["AdditivePlan"].to_dict()))
    with create(tmp_path, rho=1.0, delta=1e-6, privacy_unit=dpt.ROWS) as ledger:
        counts = PLANS["AdditivePlan"].release(RECORDS, ledger=ledger["patients"], note="one")
        [noted] = ledger.to_frame()["table"]
        charge = counts.attrs["dp"]["ledger"]["digest"]
    counts.dp.to_file(path)
    code, printed = report_of(path, "--ledger-digest", noted.upper())
    assert (
        code == 0
        and "PASS        values as noted in the ledger" in printed
        and "saw the ledger" not in printed
    )
    code, printed = report_of(path, "--ledger-digest", charge)
    assert code == 0 and "PASS        noted digest of the charge" in printed
    assert "that the values are those of this charge" in printed
    assert main(["verify", f"{path}.json", str(path), "--ledger-digest", noted]) == 0
    assert main(["verify", f"{path}.json", str(path), "--ledger-digest", noted[::-1]]) == 1
    code, printed = report_of(path, "--ledger-digest", "0" * 64)
    assert code == 1 and "FAIL        values as noted in the ledger" in printed
    edited = counts.assign(count=counts["count"] * 3)
    edited.attrs["dp"]["table_digest"] = table_digest(edited)  # a forger would
    edited.dp.to_file(path)
    code, printed = report_of(path, "--ledger-digest", noted)
    assert (
        code == 1 and "PASS        values as released" in printed and "FAIL        values as noted" in printed
    )
    counts.dp.to_file(path)
    path.with_name("counts.csv.json").unlink()
    code, printed = report_of(path, "--ledger-digest", noted, plan=plan)
    assert code == 0 and "PASS        values as noted in the ledger" in printed
    code, printed = report_of(path, plan=plan)
    assert code == 0 and "NOT CHECKED values as released" in printed


@each(
    "change",
    [
        lambda data: data.update(columns=[]),
        lambda data: data.update(columns=None),
        lambda data: data["columns"].reverse(),
        lambda data: data["columns"].__setitem__(1, 5),
        lambda data: data["columns"][1].update(type="float64"),
        lambda data: data["attrs"].update(table_digest=5),
        lambda data: data["attrs"].update(ledger="x"),
    ],
)
def test_odd_descriptions(tmp_path, counts, change):
    path, beside = tmp_path / "counts.csv", tmp_path / "counts.csv.json"
    counts.dp.to_file(path)
    data = json.loads(beside.read_text())
    change(data)
    beside.write_text(json.dumps(data))
    for options in ([], ["--ledger-digest", "0" * 64]):
        code, printed = report_of(path, *options)
        assert "values as released" in printed and code in (0, 1)

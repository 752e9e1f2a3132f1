"""Plans in files: the command releases what was planned, and refuses files that hold no plan."""

import json

import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.cli.commands import main
from tests.helpers_cases import each
from tests.helpers_cli import BY, FACTOR, remove, run
from tests.helpers_json import resealed


def test_a_serialized_plan_is_released(files, capsys):
    domain = ["--domain", str(files / "places.csv")]
    plan = ["plan", *BY, *domain, "--out", str(files / "plan.json")]
    assert main([*plan, "--epsilon", "1", "--privacy-unit", "person", "--max-contributions", "2"]) == 0
    assert "noise_scale" in capsys.readouterr().out
    release = ["release", str(files / "visits.csv"), "--plan", str(files / "plan.json")]
    assert main([*release, *domain, "--out", str(files / "out.csv")]) == 0
    table = pd.read_csv(files / "out.csv")
    assert list(table.columns) == ["level", "region", "district", "count", "std_error"]
    assert table.dp.level("region")["count"].sum() == table.dp.level("total")["count"].item()

    pd.read_csv(files / "places.csv").iloc[1:].to_csv(files / "other.csv", index=False)
    assert main([*release, "--domain", str(files / "other.csv")]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and "domain" in printed.err and "Hint: " in printed.err
    (files / "plan.json").write_text("[]")
    assert main([*release, *domain]) == 2
    assert "`--plan` cannot be read" in capsys.readouterr().err


def test_each_option_reaches_the_plan(files):
    """And makes a difference: a flag that is ignored would release another table than was asked for."""
    domain = dpt.Domain.from_frame(pd.read_csv(files / "places.csv", dtype=str), by=["region", "district"])
    loss, shell = {"epsilon": 1.0, "delta": 1e-6}, ["--epsilon", "1", "--delta", "1e-6"]
    plain = dpt.plan(domain, **loss).to_dict()
    options = {
        "neighbors": "replace", "split": "uniform", "consistency": "nonnegative", "confidence": 0.9,
        "mechanism": "gaussian", "max_contributions": 3,
    }  # fmt: skip
    for place, (option, value) in enumerate(options.items()):
        out = files / f"{place}.json"
        assert run(files, "plan", *shell, f"--{option.replace('_', '-')}", str(value), "--out", str(out)) == 0
        expected = dpt.plan(domain, **loss, **{option: value}).to_dict()
        assert json.loads(out.read_text()) == expected != plain


def test_a_plan_for_a_target(files, capsys):
    plan = ["plan", *BY, "--domain", str(files / "places.csv")]
    assert main([*plan, "--target", "district=25", "--out", str(files / "plan.json")]) == 0
    domain = dpt.Domain.from_frame(pd.read_csv(files / "places.csv", dtype=str), by=["region", "district"])
    planned = dpt.Plan.from_dict(json.loads((files / "plan.json").read_text()), domain)
    assert 20 < planned.to_frame()["std_error"].iloc[-1] <= 25
    for stated in ("district=50@95%", "district=50@0.95"):
        capsys.readouterr()
        assert main([*plan, "--target", stated, "--confidence", "0.95"]) == 0
        found = dpt.plan(domain, target={"district": dpt.within(50, confidence=0.95)}, confidence=0.95)
        assert capsys.readouterr().out == f"{found}\n"
    for wrong in ("district", "district=50@", "district=50@95", "district=-5@95%", "district=50@0.95%%"):
        assert main([*plan, "--target", wrong]) == 2
        printed = capsys.readouterr().err
        assert "`--target` must be LEVEL=NUMBER" in printed and "county=50@95%" in printed


# What is known, what is added up, and what the table shows besides.


def test_a_plan_for_a_column_is_released(files, public, capsys):
    plan = ["--out", str(files / "plan.json"), "--column", "cost", "--bounds", "0", "500", "--epsilon", "1",
            "--confidence", "0.95", "--keep", "measurements", "--structural-zeros", "closed"]  # fmt: skip
    assert run(files, "plan", *plan, domain="flagged.csv") == 0
    assert "for sums of 'cost'" in capsys.readouterr().out
    release = ["release", str(files / "visits.csv"), "--plan", str(files / "plan.json"), "--out",
               str(files / "out.csv"), "--domain"]  # fmt: skip
    assert main([*release, str(files / "flagged.csv"), "--structural-zeros", "closed"]) == 0
    ends = ["cost_std_error", "cost_lower", "cost_upper", "cost_measurement", "cost_noise_scale"]
    assert list(pd.read_csv(files / "out.csv"))[3:] == ["cost", *ends]
    remove(files / "out.csv")
    assert main([*release, str(files / "flagged.csv")]) == 2
    assert "not the one that this plan was made for" in capsys.readouterr().err
    records = pd.read_csv(files / "visits.csv", dtype=str).drop(columns="cost")
    records.to_csv(files / "visits.csv", index=False)
    assert main([*release, str(files / "flagged.csv"), "--structural-zeros", "closed"]) == 2
    assert "`records` lacks the columns: 'cost'" in capsys.readouterr().err
    assert not (files / "out.csv").exists()


def test_a_plan_with_known_counts_is_released(files, public, capsys):
    known = ["--known", str(files / "known.csv"), "--target", "district=9"]
    assert run(files, "plan", "--out", str(files / "plan.json"), *known) == 0
    release = ["release", str(files / "visits.csv"), "--plan", str(files / "plan.json")]
    assert main([*release, "--domain", str(files / "places.csv")]) == 0
    assert "total,,,500,0.0" in capsys.readouterr().out.splitlines()


# Counts with bounded relative error.


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_a_plan_of_factors_is_released(files, public, capsys, name):
    options = ["--privacy-unit", "person"]
    more = ["--max-contributions", "2", "--structural-zeros", "closed", "--out", str(files / "plan.json")]
    assert run(files, "plan", *FACTOR, *options, *more, domain="flagged.csv") == 0
    printed = capsys.readouterr().out
    domain = dpt.Domain.from_frame(
        pd.read_parquet(files / "flagged.parquet"), by=["region", "district"], structural_zeros="closed"
    )
    plan = dpt.MultiplicativePlan.from_dict(json.loads((files / "plan.json").read_text()), domain)
    assert printed == f"{plan}\n"
    assert plan.mechanism == dpt.Multiplicative(alpha=0.25)
    assert (plan.privacy_unit, plan.max_contributions) == ("person", 2)

    out = files / name
    release = ["release", str(files / "visits.csv"), "--plan", str(files / "plan.json"), "--out", str(out)]
    where = ["--domain", str(files / "flagged.csv")]
    assert main([*release, *where, "--structural-zeros", "closed"]) == 0
    assert capsys.readouterr().err.startswith(f"{plan.headline}\n")
    table = pd.read_csv(out) if name.endswith("csv") else pd.read_parquet(out)
    assert list(table) == ["level", "region", "district", "count", "error_bound"]
    assert table.dp.level("district").iloc[0].tolist() == [0, 0]
    remove(out)
    assert main([*release, *where]) == 2
    assert "not the one that this plan was made for" in capsys.readouterr().err and not out.exists()


@each("more", [["--target", "region=5"], ["--column", "cost", "--bounds", "0", "5"]])
def test_plans_of_factors_have_no_target_and_no_column(files, capsys, more):
    assert run(files, "plan", *FACTOR, *more, "--out", str(files / "plan.json")) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and "has no meaning for counts with bounded relative error" in printed.err
    assert not (files / "plan.json").exists()


CHANGES = [
    {"format": "other"}, {"mechanism": "none"}, {"mechanism": "laplace"}, {"guarantee": {"alpha": 0.25}},
    {"loss": {"epsilon": float("nan"), "delta": 1e-6}}, {"loss": {"rho": 0.1, "delta": 1e-6}},
    {"levels": None}, {"levels": ["total", ["x"]]},
    {"levels": [1, 2, 3]}, {"neighbors": "swap"}, {"max_contributions": True}, {"privacy_unit": 0.5},
]  # fmt: skip


def test_files_that_hold_no_plan(files, capsys):
    assert run(files, "plan", *FACTOR, "--out", str(files / "plan.json")) == 0
    release = ["release", str(files / "visits.csv"), "--plan", str(files / "plan.json")]
    release += ["--domain", str(files / "places.csv"), "--out", str(files / "out.csv")]
    assert main(release) == 0
    remove(files / "out.csv")
    capsys.readouterr()
    written = json.loads((files / "plan.json").read_text())
    changed = [{**written, **change} for change in CHANGES]
    twice = json.dumps(written).replace('"epsilon": 1.0', '"epsilon": 9.0, "epsilon": 1.0')
    texts = [twice, "", "{", "[" * 10**5, "null", '{"format": 5}']
    texts += [json.dumps(plan) for one in changed for plan in (one, resealed(one))]

    def holds_no_plan(text):
        (files / "plan.json").write_text(text)
        assert main(release) == 2
        printed = capsys.readouterr()
        assert printed.out == "" and printed.err.startswith("dptree: `--plan` cannot be read from")
        assert printed.err.count("Hint: ") == 1 and not (files / "out.csv").exists()

    each("text", texts)(holds_no_plan)()


def test_only_the_plan_that_was_approved_is_released(files, capsys):
    for name, epsilon in (("plan.json", "1"), ("other.json", "5")):
        assert run(files, "plan", "--epsilon", epsilon, "--out", str(files / name)) == 0
    stored = {name: json.loads((files / name).read_text()) for name in ("plan.json", "other.json")}
    approved = stored["plan.json"]["digest"]
    assert f"Digest: {approved}\n" in capsys.readouterr().out  # what the approver notes
    release = ["release", str(files / "visits.csv"), "--domain", str(files / "places.csv"), "--plan"]
    assert main([*release, str(files / "plan.json"), "--digest", approved]) == 0
    assert main([*release, str(files / "plan.json"), "--digest", approved.upper()]) == 0
    capsys.readouterr()
    edited = {**stored["plan.json"], "loss": {"epsilon": 5.0, "delta": 0.0}}
    for text, digest, why in (
        (stored["other.json"], approved, "`--digest` is not that of this plan"),
        (stored["plan.json"], approved[:16], "pass all 64 digits"),
        (resealed(edited), approved, "`--digest` is not that of this plan"),
        (edited, approved, "has changed since the plan was written"),
        (edited, None, "has changed since the plan was written"),
        ({**stored["plan.json"], "approved_by": "me"}, None, "has changed since the plan was written"),
        (resealed({**stored["plan.json"], "approved_by": "me"}), None, "unknown entries: ['approved_by']"),
        ({**stored["plan.json"], "format": "pandas_dptree plan, version 2"}, None, "make the plan again"),
    ):
        (files / "plan.json").write_text(json.dumps(text))
        more = [] if digest is None else ["--digest", digest]
        assert main([*release, str(files / "plan.json"), *more]) == 2
        printed = capsys.readouterr()
        assert printed.out == "" and why in printed.err and printed.err.count("Hint: ") == 1

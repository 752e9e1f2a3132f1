"""Private keys in the shell: counts, plans, files, and what is refused."""

import json
from pathlib import Path

import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree import verify
from pandas_dptree.cli.commands import main
from pandas_dptree.plans.implicit import ImplicitPlan
from tests.helpers_cases import each

BY = ["region", "district", "clinic"]
LEVELS = [part for name in BY for part in ("--by", name)]
LOSS = ["--epsilon", "1", "--delta", "1e-6"]
LAPLACE = ["--mechanism", "truncated_laplace"]
PERSON = ["--privacy-unit", "person", "--max-contributions", "2"]


def private(*names):
    return [part for name in names for part in ("--private-key", name)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("private")
    visits = dpt.datasets.clinic_visits(5_000)
    visits.to_csv(path / "visits.csv", index=False)
    visits.to_parquet(path / "visits.parquet")
    dpt.datasets.clinics()[["region"]].drop_duplicates().to_csv(path / "regions.csv", index=False)
    return path


@pytest.fixture
def shell(folder, tmp_path, monkeypatch, capsys):
    """Run commands in a folder of their own, and return the exit status and what was printed."""
    for name in ("visits.csv", "visits.parquet", "regions.csv"):
        (tmp_path / name).symlink_to(folder / name)
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        status = main([*arguments])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


def regions():
    return dpt.Domain.from_frame(pd.read_csv("regions.csv", dtype=str), by=["region"])


@pytest.mark.parametrize(
    ("records", "domain"), [("visits.csv", "observed"), ("visits.parquet", "regions.csv")]
)
def test_the_last_keys_need_no_list(shell, domain, records):
    keys = [*LEVELS, *private("district", "clinic"), "--domain", domain, *LAPLACE]
    for out in ("out.csv", "out.parquet"):
        assert shell("counts", records, *keys, *LOSS, *PERSON, "--out", out)[0] == 0
        table = dpt.read_file(out)
        assert list(table) == ["level", *BY, "count", "std_error", "max_error", "other"]
        assert table["level"].cat.categories.tolist() == ["total", *BY]
        assert table["max_error"].dtype.kind == "i" and table["other"].dtype == bool
        provenance = table.attrs["dp"]
        assert provenance["private_keys"] == ["district", "clinic"]
        assert (provenance["privacy_unit"], provenance["max_contributions"]) == ("person", 2)
        assert ("observed" in json.dumps(provenance)) == (domain == "observed")
        districts = table[table["level"].eq("district") & ~table["other"]].set_index(BY[:2])["count"]
        clinics = table[table["level"].eq("clinic")].groupby(BY[:2])["count"].sum()
        assert clinics.to_dict() == districts.to_dict() and len(clinics) > 10
        below = table.dp.domain()
        assert below.by == tuple(BY) and below.source == "released"


def test_all_keys_may_be_private(shell):
    status, printed, _ = shell("counts", "visits.csv", *LEVELS, *private(*BY), *LOSS, "--each-row", *LAPLACE)
    assert status == 0 and printed.startswith(
        "level,region,district,clinic,count,std_error,max_error,other\n"
    )
    assert "region,,,," in printed  # the remainder of the regions


@pytest.mark.parametrize(
    ("more", "options"),
    [
        ([], {}),
        (["--mechanism", "truncated_laplace", "--split", "doubling"],
         {"mechanism": "truncated_laplace", "split": "doubling"}),
        (["--mechanism", "gaussian", "--split", "uniform", "--confidence", "0.9"],
         {"mechanism": "gaussian", "split": "uniform", "confidence": 0.9}),
        (["--neighbors", "replace", "--keep", "measurements"],
         {"neighbors": "replace", "keep": ["measurements"]}),
        (["--each-row"], {"privacy_unit": dpt.ROWS, "max_contributions": None}),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)  # fmt: skip
def test_each_option_reaches_the_plan_and_its_file_is_released(shell, more, options):
    loss = {"epsilon": 1.0, "delta": 1e-6, "privacy_unit": "person", "max_contributions": 2}
    expected = dpt.plan(regions(), private_keys=["district", "clinic"], **{**loss, **options})
    keys = [*LEVELS, *private("district", "clinic"), "--domain", "regions.csv", *LOSS]
    unit = [] if "--each-row" in more else PERSON
    status, printed, _ = shell("plan", *keys, *unit, *more, "--out", "plan.json")
    assert status == 0 and printed == f"{expected}\n"
    assert json.loads(Path("plan.json").read_text()) == expected.to_dict()

    release = ["release", "visits.csv", "--plan", "plan.json", "--domain", "regions.csv", "--out", "out.csv"]
    assert shell(*release, "--digest", "0" * 64)[0] == 2
    assert shell(*release, "--digest", expected.digest) == (0, "", f"{expected.headline}\n")
    table = dpt.read_file("out.csv")
    assert table.attrs["dp"]["digest"] == expected.digest
    assert ("error_bound" in table) == (expected.noise.name == "gaussian_thresholds")
    assert ("measurement" in table) == ("--keep" in more)
    restored = dpt.Plan.from_dict(json.loads(table.attrs["dp_plan"]), regions())
    assert isinstance(restored, ImplicitPlan) and restored.to_dict() == expected.to_dict()


def test_a_rho_with_a_delta_and_no_public_key(shell):
    keys = [*LEVELS, *private(*BY), "--each-row", "--rho", "0.1", "--delta", "1e-6"]
    assert shell("plan", *keys, "--out", "plan.json")[0] == 0
    release = ["release", "visits.parquet", "--plan", "plan.json"]
    assert shell(*release)[1].startswith("level,region,district,clinic,count,std_error,error_bound,other\n")
    status, printed, error = shell(*release, "--domain", "regions.csv")
    assert (status, printed) == (2, "")
    assert "`--domain` cannot be given if all keys are private" in error


def test_the_plan_is_released_with_its_own_public_keys(shell):
    keys = [*LEVELS, *private("district", "clinic"), "--domain", "regions.csv", *LOSS, *PERSON]
    assert shell("plan", *keys, "--out", "plan.json")[0] == 0
    release = ["release", "visits.csv", "--plan", "plan.json", "--out", "out.csv"]
    for more, said in (
        ([], "`--domain` must be given for the public keys ['region']"),
        (["--domain", "other.csv"], "not the one that this plan was made for"),
    ):
        pd.read_csv("regions.csv").iloc[1:].to_csv("other.csv", index=False)
        status, printed, error = shell(*release, *more)
        assert (status, printed) == (2, "") and said in error and error.count("Hint: ") == 1
    written = json.loads(Path("plan.json").read_text())
    for forged in (["clinic", "district"], ["clinic", "x"], 5, "clinic", [["clinic"]]):
        Path("plan.json").write_text(json.dumps({**written, "private_keys": forged}))
        status, printed, error = shell(*release, "--domain", "regions.csv")
        assert (status, printed) == (2, "") and error.count("Hint: ") == 1


def test_that_the_table_is_not_checked_is_said(shell, capsys):
    keys = [*LEVELS, *private(*BY), "--each-row", *LOSS]
    assert shell("plan", *keys, "--out", "plan.json")[0] == 0
    assert shell("release", "visits.csv", "--plan", "plan.json", "--out", "out.csv")[0] == 0
    digest = json.loads(Path("plan.json").read_text())["digest"]
    for stated in ("plan.json", "out.csv.json"):
        assert verify.main([stated, "out.csv", "--digest", digest]) == 3
        printed = capsys.readouterr().out
        assert "NOT CHECKED budget and table: the kind of plan is implicit (private keys" in printed
        assert "which this program cannot check" in printed and "0 failed" in printed


@pytest.mark.parametrize("verb", ["counts", "plan"])
@each(
    ("more", "said"),
    [
        ([*LOSS], "`--domain` must be given for the public keys ['region', 'district', 'clinic']"),
        ([*LOSS, *private("clinic")], "`--domain` must be given for the public keys ['region', 'district']"),
        ([*LOSS, *private("district")], "`--private-key` must be the last keys of `--by`"),
        ([*LOSS, *private("clinic", "district")], "`--private-key` must be the last keys of `--by`"),
        ([*LOSS, *private(*BY), "--domain", "regions.csv"], "`--domain` cannot be given if all"),
        ([*LOSS, *private(*BY), "--structural-zeros", "x"], "`--structural-zeros` cannot be given if all"),
        ([*LOSS, *private(*BY)], "`--privacy-unit` must be given with private keys"),
        ([*private(*BY), "--each-row", "--epsilon", "1"], "`--delta` must be above 0"),
        ([*private(*BY), "--each-row", "--rho", "1"], "`--delta` must be above 0"),
        ([*LOSS, *private(*BY), "--each-row", "--mechanism", "laplace"], "`--mechanism` is unknown"),
        ([*LOSS, *private(*BY), "--each-row", "--split", "geometric"], "`--split` must be"),
        ([*LOSS, *private(*BY), "--each-row", "--consistency", "linear"], "`--consistency` has no meaning"),
        ([*LOSS, *private(*BY), "--each-row", "--known", "regions.csv"], "`--known` has no meaning"),
        ([*LOSS, "--domain", "x.csv", *LAPLACE], "`--mechanism` is for private keys"),
        ([*LOSS, "--domain", "x.csv", "--split", "doubling"], "`--split` is for private keys"),
    ],
)  # fmt: skip
def test_mistakes_name_the_option_and_nothing_is_written(shell, verb, more, said, tmp_path):
    records, out = ([], "out.json") if verb == "plan" else (["visits.csv"], "out.csv")
    status, printed, error = shell(verb, *records, *LEVELS, *more, "--out", out)
    assert (status, printed) == (2, "") and error.startswith(f"dptree: {said}") and error.count("Hint: ") == 1
    assert not (tmp_path / out).exists()


@each("columns", [["cost"], ["cost", "age"]])
def test_only_records_can_be_counted(shell, columns):
    values = [part for name in columns for part in ("--column", name)]
    keys = [*LEVELS, *private(*BY), "--each-row", *LOSS]
    status, printed, error = shell("plan", *keys, *values, "--bounds", "0", "5")
    assert (status, printed) == (2, "") and "`--column` has no meaning with private keys" in error
    assert "`--target` has no meaning" in shell("plan", *keys, "--target", "region=5")[2]


@each("verb", ["sums", "means"])
@each("more", [private("clinic"), ["--mechanism", "truncated_laplace"], ["--split", "doubling"]])
def test_sums_and_means_have_no_private_keys(shell, capsys, verb, more):
    values = ["--column", "cost", "--bounds", "0", "5", "--domain", "regions.csv", *LOSS]
    with pytest.raises(SystemExit) as caught:
        shell(verb, "visits.csv", "--by", "region", *values, *more)
    assert caught.value.code == 2 and capsys.readouterr().out == ""

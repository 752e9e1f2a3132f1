"""The shell command."""

import os
import shlex
import sqlite3
import subprocess
import sys

import pandas as pd
import pytest

from pandas_dptree.cli.commands import main
from pandas_dptree.cli.parser import IN_PROGRAMMES
from pandas_dptree.output import empty_tables
from pandas_dptree.plans.options import OPTIONS
from tests.helpers_cases import each
from tests.helpers_cli import BY, FACTOR, counts, run

BOTH = ["--rho", "1", "--delta", "1e-6"]


def test_csv_to_csv_and_parquet(files, capsys):
    assert counts(files, "--epsilon", "1") == 0
    printed = capsys.readouterr().out
    assert printed.startswith("level,region,district,count,std_error\ntotal,,,")
    assert counts(files, "--epsilon", "1", "--out", str(files / "out.csv")) == 0
    assert counts(files, "--rho", "0.5", "--out", str(files / "out.parquet"), records="visits.parquet") == 0
    table = pd.read_parquet(files / "out.parquet")
    assert table.dp.level("region")["count"].sum() == table.dp.level("total")["count"].item()
    assert len(pd.read_csv(files / "out.csv")) == len(table)
    assert not list(files.glob(".dptree-*"))


@pytest.mark.filterwarnings("always::pandas_dptree.DPTreeWarning")
def test_warnings_are_printed_in_one_piece(files, capsys, monkeypatch):
    monkeypatch.setattr(empty_tables, "FEWEST", 30)  # whatever the noise is, as it has no seed here
    visits = pd.read_csv(files / "visits.csv", dtype=str)
    visits.assign(region=visits["region"].str.upper()).to_csv(files / "shouted.csv", index=False)
    assert counts(files, "--epsilon", "1", records="shouted.csv") == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("level,region,district,count,std_error\ntotal,,,")
    assert printed.err.startswith("dptree: The released table is nearly empty: the total of 'count' is ")
    assert printed.err.count("\n") == 2
    assert "\nHint: " in printed.err
    assert counts(files, "--epsilon", "50") == 0
    assert capsys.readouterr().err.startswith("dptree: `--epsilon` is 50, which protects nobody")


@each("flag", [[flag] for flag in IN_PROGRAMMES])
@each("verb", ["counts", "plan"])
def test_options_of_programmes_name_the_key(files, capsys, verb, flag):
    """What tunes a release is stated in a programme; the old option says by which key."""
    with pytest.raises(SystemExit) as caught:
        run(files, verb, "--epsilon", "1", *flag, "x=1")
    printed = capsys.readouterr().err
    assert caught.value.code == 2 and f"Hint: {flag[0]} is stated in a programme, as" in printed
    key = IN_PROGRAMMES[flag[0]].split(" = ")[0]
    assert key in (*OPTIONS, "by", "granularity")


def test_keys_from_a_csv_are_text(tmp_path, capsys):
    (tmp_path / "rows.csv").write_text("zip,who\n00501,1\n00501,2\nNA,3\n,4\n")
    (tmp_path / "zips.csv").write_text("zip\n00501\nNA\n")
    arguments = ["counts", str(tmp_path / "rows.csv"), "--by", "zip", "--domain", str(tmp_path / "zips.csv")]
    assert main([*arguments, "--epsilon", "9000", "--privacy-unit", "who", "--max-contributions", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.rsplit(",", 1)[0] for line in lines[1:]] == ["total,,3", "zip,00501,2", "zip,NA,1"]


def test_demo_needs_no_file(capsys):
    assert main(["demo"]) == 0
    printed = capsys.readouterr().out
    assert "simulated" in printed and "noise_scale" in printed and "std_error" in printed


@each(
    ("more", "records", "message"),
    [
        ([], "visits.csv", "`--epsilon` or `--rho` must be given"),
        (["--epsilon", "-1"], "visits.csv", "`--epsilon` must be positive"),
        (["--epsilon", "1"], "nothing.csv", "`records` cannot be read"),
        (["--epsilon", "1"], "visits.xlsx", "`records` is a file of unknown type"),
        (["--epsilon", "1", "--out", "nowhere/out.csv"], "visits.csv", "`--out` is in a folder"),
        (["--epsilon", "1", "--out", "out.ods"], "visits.csv", "`--out` is a file of unknown type"),
        (
            ["--epsilon", "1", "--privacy-unit", "nobody", "--max-contributions", "2"],
            "visits.csv",
            "lacks the columns: 'nobody'",
        ),
        (["--epsilon", "1", "--by", "town"], "visits.csv", "lacks the columns: 'town'"),
    ],
)
def test_errors_are_printed_in_one_piece(files, capsys, more, records, message):
    assert counts(files, *more, records=records) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and message in printed.err and "Hint: " in printed.err
    assert "Traceback" not in printed.err


def test_parquet_without_pyarrow_is_refused_before_anything_is_spent(files, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    assert counts(files, "--epsilon", "1", "--out", str(files / "out.parquet")) == 1
    assert "pip install pyarrow" in capsys.readouterr().err


@each(
    ("given", "said"),
    [
        (["--eplison", "1"], "did you mean '--epsilon'?"),
        (["--eps", "1"], "did you mean '--epsilon'?"),
        (["--epsilon", "1", "--privacy_unit=person"], "did you mean '--privacy-unit'?"),
        (["--epsilon", "1", "--verbose"], "unrecognized arguments: --verbose\n"),
    ],
)
def test_options_that_are_not_known(files, capsys, given, said):
    with pytest.raises(SystemExit) as caught:
        counts(files, *given)
    printed = capsys.readouterr()
    assert caught.value.code == 2 and printed.out == "" and said in printed.err


@each(
    ("verb", "more", "said"),
    [
        ("counts", ["--epsilon", "1", "--by", "Town"], "`--domain` lacks the columns: 'Town'"),
        ("counts", [], "`--epsilon` or `--rho` must be given"),
        ("counts", BOTH, "`--delta` cannot be given together with `--rho`"),
        (
            "sums",
            [*BOTH, "--column", "cost", "--bounds", "0", "9"],
            "`--delta` cannot be given together with `--rho`",
        ),
        ("plan", BOTH, "`--delta` cannot be given together with `--rho`"),
        ("plan", [*BOTH, "--target", "region=9"], "`--delta` cannot be given together with `--rho`"),
        (
            "sums",
            ["--epsilon", "1", "--column", "day", "--bounds", "0", "9"],
            "`records` has values of a type",
        ),
        ("sums", ["--epsilon", "1", "--column", "cost"], "`--bounds` must be given once"),
    ],
)
def test_arguments_are_named_as_the_shell_spells_them(files, capsys, verb, more, said):
    pd.read_parquet(files / "visits.parquet").assign(day=pd.Timestamp("2024-02-29")).to_parquet(
        files / "dated.parquet"
    )
    assert run(files, verb, *more, records="dated.parquet") == 2
    printed = capsys.readouterr()
    assert (
        printed.out == "" and printed.err.startswith(f"dptree: {said}") and printed.err.count("Hint: ") == 1
    )


def test_capitals_do_not_change_the_format(files):
    assert counts(files, "--epsilon", "1", "--out", str(files / "out.PARQUET")) == 0
    assert pd.read_parquet(files / "out.PARQUET").dp.level("region")["count"].sum() >= 0


def test_a_reader_that_stops_is_no_error(monkeypatch, capfd):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert main(["demo"]) == 0
        monkeypatch.undo()  # the file is flushed and closed, as at the end of a process
    assert capfd.readouterr().err == ""


@pytest.mark.slow
@pytest.mark.parametrize("reader", ["head -1", "true"])
def test_a_program_that_stops_reading_is_no_error(reader):
    program = 'import sys; from pandas_dptree.cli import main; sys.exit(main(["demo"]))'
    command = f"{sys.executable} -c {shlex.quote(program)}"
    ended = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} | {reader}"], capture_output=True, text=True, timeout=60
    )
    assert ended.stderr == "" and ended.returncode == 0


def test_a_missing_column_is_looked_for_where_it_is_missing(files, capsys):
    arguments = ["--by", "region", "--by", "clinic", "--epsilon", "1", "--domain", str(files / "places.csv")]
    assert main(["counts", str(files / "visits.csv"), *arguments]) == 2
    assert "`--domain` lacks the columns: 'clinic'" in capsys.readouterr().err
    assert main(["plan", *arguments]) == 2
    assert "`--domain` lacks the columns: 'clinic'" in capsys.readouterr().err


def test_the_table_survives_a_database(files):
    visits, by = pd.read_parquet(files / "visits.parquet"), ["region", "district"]
    released = visits.dp.tree_counts(by, epsilon=1.0, domain=pd.read_csv(files / "places.csv"))
    connection = sqlite3.connect(":memory:")
    released.to_sql("released", connection, index=False)
    back = pd.read_sql("select * from released", connection)
    connection.close()
    for level in ("total", *by):
        expected, found = released.dp.level(level), back.dp.level(level)
        assert found.index.tolist() == expected.index.tolist()
        assert found.to_numpy().tolist() == expected.to_numpy().tolist()


# What is known, what is added up, and what the table shows besides.


@pytest.mark.parametrize("name", ["known.csv", "known.parquet"])
@pytest.mark.parametrize("domain", ["flagged.csv", "flagged.parquet"])
def test_known_counts_intervals_and_measurements(files, public, name, domain):
    out = files / "out.parquet"
    known = ["--known", str(files / name), "--structural-zeros", "closed"]
    more = ["--confidence", "0.9", "--keep", "measurements", "--out", str(out)]
    assert run(files, "counts", "--epsilon", "1", *known, *more, domain=domain) == 0
    table = pd.read_parquet(out)
    values = ["count", "std_error", "lower", "upper", "measurement", "noise_scale"]
    assert list(table) == ["level", "region", "district", *values]
    assert table.dp.level("total")[["count", "lower", "upper", "std_error"]].values.tolist() == [
        [500, 500, 500, 0]
    ]
    assert table.dp.level("region").loc[public, "count"] == 100
    closed = table.dp.level("district").iloc[0]
    assert closed[["count", "std_error"]].tolist() == [0, 0] and pd.isna(closed["measurement"])


def test_sums_and_means(files, public, capsys):
    out = files / "out.csv"
    assert run(files, "sums", "--column", "cost", "--bounds", "0", "500", "--epsilon", "9000",
               "--out", str(out), records="visits.parquet") == 0  # fmt: skip
    visits = pd.read_csv(files / "visits.csv", dtype={"region": str, "district": str})
    inside = visits.dropna(subset=["cost"]).merge(pd.read_csv(files / "places.csv", dtype=str))
    table = pd.read_csv(out)
    assert list(table) == ["level", "region", "district", "cost", "cost_std_error"]
    total = inside["cost"].clip(0, 500).sum()
    assert table.dp.level("total")["cost"].item() == pytest.approx(total, rel=1e-3)
    more = ["--bounds", "-5", "500", "--epsilon", "9000", "--confidence", "0.9"]
    assert run(files, "means", "--column", "cost", *more) == 0
    head = capsys.readouterr().out.splitlines()[:2]
    assert head[0].startswith("level,region,district,cost,cost_std_error,cost_lower,cost_upper,count,")
    assert float(head[1].split(",")[3]) == pytest.approx(total / len(inside), rel=1e-3)
    assert run(files, "means", "--column", "cost", *more, "--known", str(files / "known.csv")) == 0
    assert ",500,0.0,500,500" in capsys.readouterr().out.splitlines()[1]


def test_several_columns(files, capsys):
    visits = pd.read_csv(files / "visits.csv", dtype=str).assign(days="2")
    visits.to_csv(files / "more.csv", index=False)
    columns = ["--column", "cost", "--column", "days", "--epsilon", "1"]
    for bounds in (["--bounds", "0", "500"], ["--bounds", "0", "500", "--bounds", "0", "30"]):
        for verb in ("sums", "means"):
            assert run(files, verb, *columns, *bounds, records="more.csv") == 0
            assert "days_std_error" in capsys.readouterr().out
    file = str(files / "sums.json")
    assert run(files, "plan", *columns, "--bounds", "0", "500", "--out", file) == 0
    assert "Plan for cost (epsilon=0.5), days (epsilon=0.5) together" in capsys.readouterr().out
    release = ["release", str(files / "more.csv"), "--plan", file, "--domain", str(files / "places.csv")]
    assert main(release) == 0
    assert "days_std_error" in capsys.readouterr().out
    assert run(files, "plan", *columns, "--bounds", "0", "500", "--target", "region=9") == 2
    assert "`--target` has no meaning for a plan for sums of several columns" in capsys.readouterr().err


def test_a_key_called_at_least_stays_text(tmp_path, capsys):
    (tmp_path / "rows.csv").write_text("at_least\n007\n007\n")
    (tmp_path / "keys.csv").write_text("at_least\n007\n008\n")
    (tmp_path / "known.csv").write_text("at_least,count\n008,5\n")
    arguments = ["--by", "at_least", "--domain", str(tmp_path / "keys.csv"), "--epsilon", "9000"]
    assert (
        main(["counts", str(tmp_path / "rows.csv"), *arguments, "--known", str(tmp_path / "known.csv")]) == 0
    )
    assert capsys.readouterr().out.splitlines()[-1] == "at_least,008,5,0.0"


KNOWN_FILES = {
    "misspelt": ("regoin,count\nNorth,5\n", "columns of unknown meaning: 'regoin'"),
    "text": ("region,count\nNORTH,many\n", "has a count that is not a number"),
    "bound that is text": ("region,at_least\nNORTH,>5\n", "has a at_least that is not a number"),
    "no count": ("region\nNORTH\n", "lacks the columns: 'count', 'at_least'"),
    "no region": ("district,count\nAldmark,5\n", "lacks the columns: 'region'"),
    "elsewhere": ("region,count\nAtlantis,5\n", "region='Atlantis'"),
    "negative": ("region,count\nNORTH,-5\n", "holds -5, which is not a count"),
    "half": ("region,count\nNORTH,2.5\n", "holds 2.5, which is not a count"),
    "contradiction": ("region,count,at_least\n,5,\nNORTH,,9\n", "the total holds 5, but"),
    "two counts": ("region,count\nNORTH,5\nNORTH,6\n", "two counts, "),
    "twice": ("region,count,count\nNORTH,5,6\n", "count"),
    "empty": ("", "cannot be read"),
}


@each("case", KNOWN_FILES)
@pytest.mark.parametrize("verb", ["counts", "means", "plan"])
def test_bad_files_of_known_counts(files, public, capsys, case, verb):
    text, said = KNOWN_FILES[case]
    (files / "bad.csv").write_text(text.replace("NORTH", public))
    out = files / ("out.json" if verb == "plan" else "out.csv")
    columns = ["--column", "cost", "--bounds", "0", "9"] if verb == "means" else []
    more = [*columns, "--epsilon", "1", "--known", str(files / "bad.csv"), "--out", str(out)]
    assert run(files, verb, *more) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and said in printed.err and printed.err.count("Hint: ") == 1
    assert printed.err.startswith("dptree: `--known`") and not out.exists()


@each("more", [["--known", "nothing.csv"], ["--structural-zeros", "nothing"]])
def test_public_files_are_read_before_records(files, capsys, more):
    assert run(files, "counts", "--epsilon", "1", *more, records="nothing.csv") == 2
    assert "`records`" not in capsys.readouterr().err


@each(
    ("verb", "more", "said"),
    [
        ("sums", [], "`--column` must be given"),
        ("means", ["--bounds", "0", "5"], "`--column` must be given"),
        ("plan", ["--bounds", "0", "5"], "`--column` must be given"),
        ("sums", ["--column", "cost"], "`--bounds` must be given once, or once for each column"),
        ("plan", ["--column", "cost"], "`--bounds` must be given once, or once for each column"),
        ("sums", ["--column", "cost", *["--bounds", "0", "5"] * 2], "`--bounds` must be given once, or once"),
        ("sums", ["--column", "cost", "--bounds", "5", "0"], "the lower one first, not (5.0, 0.0)"),
        ("sums", ["--column", "cost", "--bounds", "0", "nan"], "`--bounds` must be two finite numbers"),
        ("sums", ["--column", "region", "--bounds", "0", "5"], "the same name: 'region'"),
        ("sums", [*["--column", "cost"] * 2, "--bounds", "0", "5"], "'cost'"),
        ("means", ["--column", "costs", "--bounds", "0", "5"], "`records` lacks the columns: 'costs'"),
        ("counts", ["--confidence", "95"], "`--confidence` must be a number between 0 and 1, not 95.0"),
        ("counts", ["--known", "nothing.csv"], "`--known` cannot be read"),
        ("counts", ["--known", "nothing.xlsx"], "`--known` is a file of unknown type"),
        ("plan", ["--by", "region, district"], "['region', 'district'], each by itself?"),
        ("counts", ["--structural-zeros", "closed"], "`--domain` lacks the columns: 'closed'"),
        ("counts", ["--structural-zeros", "region"], "`--structural-zeros` must be true or false"),
        ("plan", ["--column", "cost", "--bounds", "0", "5", "--known", "known.csv"], "`--known` holds"),
    ],
)
def test_mistakes_are_reported_and_nothing_is_written(files, public, capsys, monkeypatch, verb, more, said):
    monkeypatch.chdir(files)
    out = "out.json" if verb == "plan" else "out.csv"
    assert run(files, verb, "--epsilon", "1", "--out", out, *more) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and said in printed.err and printed.err.count("Hint: ") == 1
    assert "Traceback" not in printed.err and not (files / out).exists()


@each("flags", [[0, 1], ["yes", "no"], [True, None], [0.0, 1.0], [["x"], ["y"]]])
def test_flags_that_are_not_true_or_false(tmp_path, capsys, flags):
    pd.DataFrame({"k": ["a", "b"], "flag": flags}).to_parquet(tmp_path / "keys.parquet")
    (tmp_path / "rows.csv").write_text("k\na\n")
    arguments = ["--by", "k", "--domain", str(tmp_path / "keys.parquet"), "--structural-zeros", "flag"]
    assert main(["counts", str(tmp_path / "rows.csv"), *arguments, "--epsilon", "1"]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and "`--structural-zeros` must be true or false" in printed.err


@each("more", [["--bounds", "0"], ["--bounds", "a", "b"], ["--confidence", "high"]])
def test_what_the_shell_itself_refuses(files, capsys, more):
    with pytest.raises(SystemExit) as caught:
        run(files, "sums", "--column", "cost", "--epsilon", "1", *more)
    assert caught.value.code == 2 and capsys.readouterr().out == ""


def test_structural_zeros_need_a_file_of_keys(files, capsys):
    arguments = ["counts", str(files / "visits.csv"), *BY, "--domain", "observed", "--structural-zeros", "z"]
    assert main([*arguments, "--epsilon", "1", "--out", str(files / "out.csv")]) == 2
    printed = capsys.readouterr()
    assert (
        printed.out == ""
        and printed.err.startswith("dptree: `--structural-zeros`")
        and "Hint: " in printed.err
    )
    assert not (files / "out.csv").exists()


# Counts with bounded relative error.


def test_counts_with_bounded_relative_error(files, capsys):
    assert run(files, "counts", *FACTOR) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "level,region,district,count,error_bound" and lines[1].startswith("total,,,")
    assert all(int(line.rsplit(",", 1)[1]) > 0 for line in lines[1:])


@pytest.mark.parametrize("verb", ["counts", "plan"])
@each(
    ("more", "said"),
    [
        (["--mechanism", "multiplicative"], "`--alpha` must be given with --mechanism multiplicative"),
        (["--alpha", "0.25"], "`--alpha` has no meaning with"),
        ([*FACTOR[:2], "--alpha", "0.25"], "`--delta` must be above 0"),
        ([*FACTOR, "--alpha", "1"], "`--alpha` must be at least 0.001 and below 1"),
        ([*FACTOR, "--alpha", "nan"], "`--alpha` must be at least 0.001 and below 1"),
        ([*FACTOR, "--confidence", "0.9"], "`--confidence` has no meaning for counts with bounded"),
        ([*FACTOR, "--keep", "measurements"], "`--keep` has no meaning"),
        ([*FACTOR, "--known", "known.csv"], "`--known` has no meaning"),
        ([*FACTOR, "--consistency", "linear"], "`--consistency` has no meaning"),
        ([*FACTOR, "--split", "uniform"], "`--split` has no meaning"),
        ([*FACTOR, "--rho", "1"], "`--rho` has no meaning"),
    ],
)
def test_options_that_have_no_meaning_together(files, public, capsys, monkeypatch, verb, more, said):
    monkeypatch.chdir(files)
    before = sorted(files.iterdir())
    out = "out.json" if verb == "plan" else "out.csv"
    assert run(files, verb, "--epsilon", "1", "--out", out, *more) == 2
    printed = capsys.readouterr()
    assert (
        printed.out == "" and printed.err.startswith(f"dptree: {said}") and printed.err.count("Hint: ") == 1
    )
    assert sorted(files.iterdir()) == before


@each("more", [["--mechanism", "multiplicative"], ["--alpha", "0.25"]])
@each("verb", ["sums", "means"])
def test_sums_and_means_have_no_bounded_relative_error(files, capsys, verb, more):
    with pytest.raises(SystemExit) as caught:
        run(files, verb, "--column", "cost", "--bounds", "0", "5", "--epsilon", "1", *more)
    assert caught.value.code == 2 and capsys.readouterr().out == ""


def test_tables_are_exact_for_programs_and_escaped_on_a_terminal(tmp_path, capsys, monkeypatch):
    from tests.helpers_cli import CONTROLS, is_safe

    labels = [f"a{odd}b" for odd in CONTROLS if odd < "\ud800" and odd not in "\r\x00"]
    labels += ['quoted\n"total,,9"\x1b[2J']
    pd.DataFrame({"pl\x1bace": labels}).to_parquet(tmp_path / "places.parquet")
    places = str(tmp_path / "places.parquet")
    arguments = ["counts", places, "--by", "pl\x1bace", "--domain", places, "--epsilon", "1e9"]
    assert main(arguments) == 0
    printed = capsys.readouterr()
    assert is_safe(printed.err)
    for label in labels[:-1]:
        assert f"\npl\x1bace,{label},1," in printed.out
    assert '\npl\x1bace,"quoted\n""total,,9""\x1b[2J",1,' in printed.out
    out = str(tmp_path / "out.csv")
    assert main([*arguments, "--out", out]) == 0
    with open(out, encoding="utf-8", newline="") as file:
        assert file.read() == printed.out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert is_safe("".join(lines)) and len(lines) == 2 + len(labels)
    assert lines[0] == "level,pl\\x1bace,count,std_error" and lines[1].startswith(f"total,,{len(labels)},")
    assert any(line.startswith("pl\\x1bace,a\\x1b[2Jb,1,") for line in lines)
    assert lines[-1].startswith('pl\\x1bace,"quoted\\n""total,,9""\\x1b[2J",1,')
    monkeypatch.setattr("pandas_dptree.output.files.encode", None)  # a table that no file can describe
    assert main(arguments) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines() == lines and is_safe(printed.err)


def test_no_message_holds_what_a_terminal_would_obey(files, capsys):
    """Names of columns, files and levels, in plans, headlines and errors; nor in errors of the parser."""
    from tests.helpers_cli import CONTROLS, is_safe

    plan_file, records = str(files / "plan.json"), str(files / "odd.parquet")
    given = [each for each in CONTROLS if each not in "\x00\ud800"]  # which no argument holds
    for odd in ("".join(given[:-1]), given[-1]):
        name = f"a{odd}b"
        domain = ["--domain", str(files / "places.csv")]
        for wrong in (
            ["--by", name, *domain],
            [*BY, "--domain", name],
            [*BY, *domain, "--privacy-unit", name, "--max-contributions", "1", "--structural-zeros", name],
            [*BY, *domain, "--out", f"nowhere/{name}.csv"],
        ):
            assert main(["counts", str(files / "visits.csv"), *wrong, "--epsilon", "1"]) == 2
        assert main(["counts", f"{name}.csv", *BY, *domain, "--epsilon", "1"]) == 2
        assert main(["release", f"{name}.csv", "--plan", name]) == 2
        for wrong in (["--epsilon", name], [name, "--unknown", name], ["--mechanism", name]):
            with pytest.raises(SystemExit):
                main(["plan", *BY, *domain, *wrong])
        with pytest.raises(SystemExit):
            main(["verify", name, name, name])
        printed = capsys.readouterr()
        assert is_safe(printed.out) and is_safe(printed.err), odd
        assert printed.err.count("dptree: ") >= 7
    odd = "".join(each for each in CONTROLS if each < "\ud800" and each != "\x00")
    pd.DataFrame({f"key{odd}": ["a", "b"], f"unit{odd}": ["1", "2"]}).to_parquet(records)
    keys = ["--by", f"key{odd}", "--domain", records]
    unit = ["--privacy-unit", f"unit{odd}", "--max-contributions", "1", "--epsilon", "1"]
    assert main(["plan", *keys, *unit, "--out", plan_file]) == 0
    printed = capsys.readouterr()
    assert r"protecting each unit\x1b[2J" in printed.out and is_safe(printed.out + printed.err)
    assert main(["release", records, "--plan", plan_file, *keys[2:], "--progress"]) == 0
    printed = capsys.readouterr().err
    assert printed.startswith("Plan: ") and r"each unit\x1b[2J" in printed.splitlines()[0]
    assert is_safe(printed.splitlines()[0])

"""The bar for long work: public steps, on standard error, and no effect on what is released."""

import inspect
import io
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import pandas_dptree as dpt
from pandas_dptree.cli import commands as cli
from pandas_dptree.output.progress import progress_bar
from tests.helpers_cases import each
from tests.helpers_random import rng

PLACES = pd.DataFrame({"state": list("aabbb"), "city": list("vwxyz")})
BY = ["state", "city"]
DOMAIN = dpt.Domain.from_frame(PLACES, by=BY)
TREE = dpt.Tree.from_branching([3, 4])
NOBODY = PLACES.assign(ip=1, pay=2.0).iloc[:0]
APPROXIMATE = {"epsilon": 1.0, "delta": 1e-6}
VALUES = {"bounds": (0, 9), "domain": PLACES, "epsilon": 1.0}


def people(n, seed=0):
    """Records of people, and where they are."""
    at = rng(seed).integers(len(PLACES), size=n)
    return PLACES.iloc[at].reset_index(drop=True).assign(ip=at * 1000, pay=at.astype(float))


def cells(frame):
    """The same people, counted in two halves."""
    halves = [frame.iloc[::2], frame.iloc[1::2]]
    counts = [half.groupby("city").size().reindex(PLACES["city"], fill_value=0) for half in halves]
    coords = {"city": PLACES["city"].to_list(), "state": ("city", PLACES["state"].to_list())}
    return xr.DataArray(np.array(counts), dims=["half", "city"], coords=coords, name="people")


def plans():
    """Plans of all kinds, each of which releases the records of `people`."""
    factor = dpt.Multiplicative(alpha=0.25)
    prefixes = dpt.prefixes("ip", bits=[8, 32], notation="ipv4")
    options = {"bounds": (0, 9), "bins": 3, "epsilon": 1.0, "domain": DOMAIN}
    return {
        "counts": dpt.plan(DOMAIN, epsilon=1.0),
        "noisy": dpt.plan(DOMAIN, rho=1.0, consistency="none"),
        "joint fit": dpt.plan(DOMAIN, rho=1.0, fit="joint"),
        "known": dpt.plan(DOMAIN, epsilon=1.0, known={"total": 3, "state": {"a": 1, "b": 2}}),
        "sums": dpt.plan(DOMAIN, rho=1.0, column="pay", bounds=(0, 9), consistency="linear"),
        "factor": dpt.plan(DOMAIN, **APPROXIMATE, mechanism=factor),
        "prefixes": dpt.plan(prefixes, **APPROXIMATE),
        "prefix factors": dpt.plan(prefixes, **APPROXIMATE, mechanism=factor),
        "distribution": dpt.plan_distribution("pay", **options),
        "drawn": dpt.plan_quantiles("pay", 0.5, mechanism="exponential", granularity=1, **options),
        "drawn, with intervals": dpt.plan_quantiles(
            "pay", [0.25, 0.5], mechanism="exponential", granularity=1, confidence=0.9, **options
        ),
    }


RELEASES = {name: lambda frame, p=p, **k: p.release(frame, **k) for name, p in plans().items()} | {
    "tree_counts": lambda frame, **k: dpt.tree_counts(frame, BY, domain=PLACES, epsilon=1.0, **k),
    "tree_sums": lambda frame, **k: dpt.tree_sums(frame, BY, columns=["pay", "ip"], **VALUES, **k),
    "tree_means": lambda frame, **k: frame.dp.tree_means(BY, columns="pay", confidence=0.9, **VALUES, **k),
    "quantiles": lambda frame, **k: frame.dp.quantiles(
        "pay", 0.5, bounds=(0, 9), granularity=1, epsilon=1.0, **k
    ),
    "array counts": lambda frame, **k: cells(frame).dp.tree_counts(BY, epsilon=1.0, **k),
    "array sums": lambda frame, **k: cells(frame).chunk().dp.tree_sums(BY, bounds=(0, 9), rho=1.0, **k),
    "dataset": lambda frame, **k: cells(frame).to_dataset().dp.tree_counts(BY, epsilon=1.0, **k),
    "numbers": lambda frame, **k: dpt.plan(TREE, rho=1.0).release(np.full(12, len(frame)), **k),
}
"""Everything that takes a bar and records."""


@pytest.fixture
def bars(monkeypatch):
    """Every bar that is shown, with the text of each step."""
    from tqdm import auto

    shown = []

    class Watched(auto.tqdm):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs, ascii=True, ncols=100)
            self.steps = [(self.desc, self.n)]
            shown.append(self)

        def update(self, n=1):
            answer = super().update(n)
            self.steps.append((self.desc, self.n))
            return answer

        @property
        def open(self):
            return self in type(self)._instances

    monkeypatch.setattr(auto, "tqdm", Watched)
    return shown


def without_time(text):
    return re.sub(r"\d\d:\d\d", "", text)


# --- what it shows -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RELEASES)
def test_steps_follow_from_the_plan_alone(name, bars, capsys):
    texts = []
    for frame in (people(2000), people(3, seed=1), NOBODY):
        RELEASES[name](frame, progress=True)
        out, err = capsys.readouterr()
        assert not out
        texts.append(without_time(err))
    assert texts[0] == texts[1] == texts[2]
    first, second, third = bars
    assert first.steps == second.steps == third.steps and first.total == second.total == third.total
    # It begins at nothing, moves at each step and ends full.
    done = [n for _, n in first.steps]
    assert done[0] == 0 and done[-1] == first.total and (np.diff(done) > 0).all()


def test_steps_of_a_release(bars):
    RELEASES["counts"](people(5), progress=True)
    (bar,) = bars
    # 5 leaves of 8 nodes, over which "integer" goes four times, and the table as often.
    assert bar.steps == [
        ("reading the records", 0),
        ("adding noise to count", 5),
        ("estimating count", 13),
        ("laying out the table", 45),
        ("laying out the table", 77),
    ]


def test_several_quantities_are_on_one_bar(bars):
    RELEASES["tree_sums"](people(5), progress=True)
    (bar,) = bars
    named = [name for name, _ in bar.steps if name.startswith("estimating")]
    assert named == ["estimating pay", "estimating ip"]


def test_text_is_a_name_a_percentage_and_the_time(capsys):
    RELEASES["counts"](people(777), progress=True)
    (*_, last) = capsys.readouterr().err.rstrip().split("\r")
    assert re.fullmatch(r"laying out the table: 100%\|.*\| \d\d:\d\d", last)


# --- what it leaves alone ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RELEASES)
def test_numbers_are_the_same(name, capsys):
    frame = people(50)
    quiet, loud = (RELEASES[name](frame, rng=rng(1), progress=shown) for shown in (False, True))
    if isinstance(quiet, dpt.Distribution):
        quiet, loud = quiet.histogram(), loud.histogram()
    if isinstance(quiet, xr.DataTree):
        assert quiet.identical(loud)
    else:
        pd.testing.assert_frame_equal(quiet, loud)
    assert quiet.attrs == loud.attrs


@pytest.mark.parametrize("name", RELEASES)
def test_nothing_is_shown_unless_asked_for(name, bars, capsys):
    RELEASES[name](people(50))
    assert not bars and capsys.readouterr() == ("", "")


def test_tqdm_is_imported_only_for_a_bar():
    code = (
        "import sys, numpy as np, pandas_dptree as dpt\n"
        "plan = dpt.plan(dpt.Tree.from_branching([2]), epsilon=1.0)\n"
        "plan.release(np.ones(2, int))\n"
        "assert 'tqdm' not in sys.modules\n"
        "plan.release(np.ones(2, int), progress=True)\n"
        "assert 'tqdm' in sys.modules\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, run.stderr
    assert not run.stdout and "100%" in run.stderr


# --- when something is wrong ---------------------------------------------------------------------------


def test_a_bar_is_closed_after_an_error(bars, capsys):
    with pytest.raises(dpt.ColumnsError):
        RELEASES["counts"](people(5).drop(columns="city"), progress=True)
    (bar,) = bars
    assert not bar.open and bar.n == 0
    with pytest.raises(KeyboardInterrupt), progress_bar(True, [("one", 1), ("two", 2)]) as done:
        done()
        assert bars[1].open
        raise KeyboardInterrupt
    assert not bars[1].open and bars[1].n == 1


@pytest.mark.parametrize("name", RELEASES)
def test_without_tqdm(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    RELEASES[name](people(5))
    with pytest.raises(dpt.MissingExtraError, match="pip install tqdm") as error:
        RELEASES[name](people(5), progress=True)
    assert error.value.package == "tqdm"


@each("progress", [None, 1, "yes"])
def test_progress_is_true_or_false(progress):
    with pytest.raises(dpt.ArgumentError, match="`progress` must be True or False"):
        RELEASES["counts"](people(5), progress=progress)


# --- where it is ---------------------------------------------------------------------------------------


@each(
    "function",
    [
        *(getattr(dpt, name) for name in ("tree_counts", "tree_sums", "tree_means", "cdf", "quantiles")),
        *(getattr(pd.DataFrame.dp, name) for name in ("tree_counts", "tree_sums", "tree_means", "cdf")),
        pd.Series.dp.quantiles,
        *(getattr(xr.DataArray.dp, name) for name in ("tree_counts", "tree_sums", "release")),
        *(getattr(xr.Dataset.dp, name) for name in ("tree_counts", "tree_sums", "release")),
        *(type(plan).release for plan in plans().values()),
    ],
)
def test_signatures_name_it(function):
    parameter = inspect.signature(function).parameters["progress"]
    assert parameter.kind is parameter.KEYWORD_ONLY and parameter.default is False


def test_shell_command(tmp_path, capsys):
    records, domain, plan = tmp_path / "records.csv", tmp_path / "domain.csv", tmp_path / "plan.json"
    people(50).to_csv(records, index=False)
    PLACES.to_csv(domain, index=False)
    keys = ["--by", "state", "--by", "city", "--domain", str(domain), "--epsilon", "1"]
    values = ["--column", "pay", "--bounds", "0", "9"]
    assert cli.main(["plan", *keys, "--out", str(plan)]) == 0
    capsys.readouterr()
    for command in (
        ["counts", str(records), *keys],
        ["sums", str(records), *keys, *values],
        ["means", str(records), *keys, *values],
        ["release", str(records), "--plan", str(plan), "--domain", str(domain)],
    ):
        assert cli.main(command) == 0
        quiet = capsys.readouterr()
        assert "%" not in quiet.err
        assert cli.main([*command, "--progress"]) == 0
        printed = capsys.readouterr()
        assert "laying out the table: 100%" in printed.err
        assert len(pd.read_csv(io.StringIO(printed.out))) == len(pd.read_csv(io.StringIO(quiet.out))) == 8

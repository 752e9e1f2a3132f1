"""What holds of every verb: it draws fresh noise, in forked processes as well, and as much as is stated.

The verbs are found in the package, not listed here: one that is added and not tried fails a test.
"""

import ast
import hashlib
import inspect
import json
import os
import subprocess
import sys
from functools import partial
from itertools import chain
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import pandas_dptree as dpt
from pandas_dptree.arrays import several

# Which verbs there are


def public(module=dpt, path=""):
    """List what modules show: functions, and the methods of classes."""
    for name in module.__all__:
        shown = getattr(module, name)
        if isinstance(shown, ModuleType):
            yield from public(shown, f"{path}{name}.")
        elif inspect.isclass(shown):
            yield from methods(shown, f"{path}{name}")
        else:
            yield f"{path}{name}", shown


def methods(cls, path):
    """List the methods of a class; its own name stands for the constructor."""
    for name, method in inspect.getmembers(cls):
        if name == "__init__" or not name.startswith("_"):
            yield path if name == "__init__" else f"{path}.{name}", method


def draws_noise(shown):
    """Tell whether it is called with a Generator, or without."""
    if getattr(shown, "__isabstractmethod__", False):
        return False
    try:
        parameters = inspect.signature(shown).parameters
    except (TypeError, ValueError):  # it is not called, or built into Python
        return False
    return "rng" in parameters and parameters["rng"].default is None


HOLDERS = (pd.DataFrame, pd.Series, xr.DataArray, xr.Dataset)
SHOWN = chain(public(), *(methods(holder.dp, f"{holder.__name__}.dp") for holder in HOLDERS))
VERBS = sorted(name for name, shown in SHOWN if draws_noise(shown))


# How they are tried

N = 2000
RECORDS = pd.DataFrame(
    {"a": np.arange(N) % 3, "b": np.arange(N) % 6, "v": np.arange(N) * 8 / N, "who": np.arange(N)}
)
NUMBERS = pd.DataFrame({"x": np.repeat(np.arange(64), 133)})
CELLS = xr.DataArray(
    np.arange(24).reshape(6, 4), dims=["b", "t"], coords={"a": ("b", np.arange(6) % 3)}, name="n"
)
SET = xr.Dataset({"n": CELLS, "m": CELLS + 1})
AGES = xr.DataArray(np.full(256, 8), dims=["age"])

BY, BOUNDS, PREFIXES = (
    ["a", "b"],
    {"bounds": (0, 8)},
    dpt.prefixes("x", bits=[3, 6], width=6, notation="number"),
)
NOISY = {"epsilon": 1e-5, "consistency": "linear"}  # so much noise that no number appears twice
CROSSED = {"first": "a", "second": "b"}
KEYS = {"domain": RECORDS[BY].drop_duplicates()}
PEOPLE = {"privacy_unit": "who", "max_nodes": 1}
VALUES = {"columns": "v", **BOUNDS, **KEYS}
BINS = {"bins": 64, **BOUNDS, "epsilon": 0.05, "strategy": [8, 8]}
FINE = {**BINS, "bins": 256, "strategy": [16, 16], "confidence": 0.95}  # much finer than intervals
DRAWN = {**BOUNDS, "granularity": 1e-6, "epsilon": 0.05}
EDGES = {"edges": range(257), "epsilon": 0.05, "strategy": [16, 16]}
PARTS, RANGES = [0.2, 0.4, 0.6, 0.8], [(i, i + 1) for i in range(8)]
LARGE = {"epsilon": 0.5, "delta": 0.01}
FACTOR = {"epsilon": 20.0, "delta": 1e-3, "mechanism": dpt.Multiplicative(alpha=0.9, failure_probability=0.4)}

OF_COLUMNS = {
    "release_distribution": ((), BINS),
    "cdf": ((), BINS),
    "histogram": ((), BINS),
    "range_counts": ((RANGES,), BINS),
    "quantiles": ((PARTS,), FINE),
}
OF_FRAMES = {
    "tree_counts": ((BY,), KEYS | NOISY),
    "tree_sums": ((BY,), VALUES | NOISY),
    "tree_means": ((BY,), VALUES | {"epsilon": 1.0}),
    "tree_agg": ((BY, {"n": "count"}), KEYS | NOISY),
    "tree_units": ((BY,), KEYS | NOISY | PEOPLE),
    **{name: (("v", *arguments), options) for name, (arguments, options) in OF_COLUMNS.items()},
}
OF_CELLS = {"tree_counts": ((BY,), NOISY), "tree_sums": ((BY,), BOUNDS | NOISY)}
OF_AGES = {"cdf": (("age",), EDGES), "quantiles": (("age", PARTS), EDGES | {"confidence": 0.95})}
PLAN = RECORDS.dp.plan(BY, **KEYS, **NOISY)
CELLS_PLAN, SET_PLAN = (data.dp.plan(BY, **NOISY) for data in (CELLS, SET))


def calls(owner, path, table, *data):
    return {
        f"{path}{name}": partial(getattr(owner, name), *data, *arguments, **options)
        for name, (arguments, options) in table.items()
    }


def answers(**options):
    """Ask a hundred times whether what is at the threshold is above it."""
    asked = dpt.SparseVector(threshold=50, cutoff=100, epsilon=1.0, **options)
    return np.array([asked.ask(50) for _ in range(100)])


def factors(**options):
    """Release counts that are at a threshold."""
    plan = dpt.plan(dpt.Tree.from_branching([200]), **FACTOR)
    return plan.release(np.full(200, plan.thresholds.thresholds[2]), **options)


FUNCTIONS = {
    **calls(dpt, "", OF_FRAMES, RECORDS),
    **calls(dpt.arrays, "arrays.", OF_CELLS, CELLS),
    **calls(dpt.arrays, "arrays.", OF_AGES, AGES),
    **calls(several, "arrays.several.", OF_CELLS, SET),
    "arrays.release": partial(dpt.arrays.release, CELLS_PLAN, CELLS),
    "arrays.several.release": partial(several.release, SET_PLAN, SET),
    "Plan.release": partial(dpt.Plan.release, PLAN, RECORDS),
    "AdditivePlan.release": partial(PLAN.release, RECORDS),
    "JointPlan.release": partial(
        RECORDS.dp.plan_sums(BY, columns="v", **KEYS, **BOUNDS, **NOISY).release, RECORDS
    ),
    "DistributionPlan.release": partial(dpt.plan_distribution("v", **BINS).release, RECORDS),
    "QuantilePlan.release": partial(dpt.plan_quantiles("v", 0.5, **DRAWN).release, RECORDS),
    "ImplicitPlan.release": partial(dpt.plan(PREFIXES, **LARGE).release, NUMBERS),
    "ImplicitMultiplicativePlan.release": partial(dpt.plan(PREFIXES, **FACTOR).release, NUMBERS),
    "MultiplicativePlan.release": factors,
    "CrossedPlan.release": partial(
        RECORDS.dp.plan(CROSSED, domain={"first": range(3), "second": range(6)}, **NOISY).release, RECORDS
    ),
    "UnitPlan.release": partial(RECORDS.dp.plan_units(BY, **KEYS, **NOISY, **PEOPLE).release, RECORDS),
    "SparseVector": answers,
    "TruncatedLaplace.release": partial(dpt.TruncatedLaplace(1e-5, 1e-6).release, [1, 2]),
}
METHODS = {
    **calls(RECORDS.dp, "DataFrame.dp.", OF_FRAMES | {"release": ((PLAN,), {})}),
    **calls(RECORDS["v"].dp, "Series.dp.", OF_COLUMNS),
    **calls(CELLS.dp, "DataArray.dp.", OF_CELLS | {"release": ((CELLS_PLAN,), {})}),
    **calls(AGES.dp, "DataArray.dp.", OF_AGES),
    **calls(SET.dp, "Dataset.dp.", OF_CELLS | {"release": ((SET_PLAN,), {})}),
}
OTHER_WAYS = {
    "tree_counts of large nodes": partial(dpt.tree_counts, NUMBERS, PREFIXES, **LARGE),
    "tree_counts with Gaussian noise": partial(
        dpt.tree_counts, RECORDS, BY, **KEYS, rho=1e-12, consistency="none"
    ),
    "quantiles from a grid": partial(dpt.quantiles, RECORDS, "v", [0.25, 0.5, 0.75], **DRAWN, delta=1e-9),
    "tree_counts of whole numbers": partial(dpt.tree_counts, RECORDS, BY, **KEYS, epsilon=0.01),
    "Plan.release of leaf counts": partial(PLAN.release, np.arange(6)),
}


def noisy(answer):
    """Give the noisy numbers of an answer, column by column."""
    if isinstance(answer, np.ndarray):
        return [answer]
    if isinstance(answer, xr.DataTree):
        return [numbers for group in answer.children.values() for numbers in noisy(group.to_dataset())]
    if isinstance(answer, dpt.Distribution):
        answer = answer.histogram()
    return [answer[name].to_numpy() for name in ("count", "v", "n", "m", "cdf", "value") if name in answer]


def errors(answer):
    """Give the errors that an answer tells, or the widths of its intervals where it tells none."""
    if isinstance(answer, xr.DataTree):
        return np.concatenate([errors(group.to_dataset()) for group in answer.children.values()])
    if isinstance(answer, dpt.Distribution):
        return np.concatenate(answer.std_errors)
    stated = [np.ravel(answer[name]) for name in answer if name.endswith("std_error")]
    return np.concatenate(stated or [np.ravel(answer["upper"] - answer["lower"])])


def options_of(call):
    return {*inspect.signature(call.func).parameters} if isinstance(call, partial) else set()


# What is tried

ALL = FUNCTIONS | METHODS


def test_every_verb_is_tried():
    assert sorted(ALL) == VERBS


@pytest.mark.parametrize("verb", [verb for verb, call in ALL.items() if "neighbors" in options_of(call)])
def test_the_noise_covers_what_is_stated(verb):
    call = partial(ALL[verb], epsilon=0.4, rng=np.random.default_rng(0))
    least = errors(call())
    stated = [({"neighbors": "replace"}, 2), ({"max_contributions": 3}, 3), ({"epsilon": 0.2}, 2)]
    for options, factor in stated:
        if not {*options} <= options_of(call):
            continue
        if "max_contributions" in options and "privacy_unit" in options_of(call):
            options = {**options, "privacy_unit": "who"}
        assert np.median(errors(call(**options)) / least) == pytest.approx(factor, rel=0.25)


@pytest.mark.parametrize("verb", ALL | OTHER_WAYS)
def test_no_release_is_like_another_but_with_a_generator(verb):
    call = (ALL | OTHER_WAYS)[verb]
    one, other = noisy(call()), noisy(call())
    assert one and all(np.isfinite(numbers.astype(float)).all() for numbers in one)
    assert not any(map(np.array_equal, one, other))
    again = [noisy(call(rng=np.random.default_rng(1))) for _ in range(2)]
    assert all(map(np.array_equal, *again))


FORKED = [
    "tree_counts", "JointPlan.release", "DistributionPlan.release", "ImplicitPlan.release",
    "MultiplicativePlan.release", "QuantilePlan.release", "SparseVector", "TruncatedLaplace.release",
]  # fmt: skip
"""A verb of each kind of noise."""


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_no_forked_process_repeats_the_noise_of_another():
    reading, writing = os.pipe()
    with os.fdopen(reading) as reader:
        release_in_forks(FORKED, writing)
        os.close(writing)
        all_differ(FORKED, reader.read())


@pytest.mark.slow
def test_no_forked_process_repeats_any_noise_of_another():
    # In a fresh interpreter: forking one that runs threads (pytest-xdist does) is deprecated.
    script = "from tests.verbs import test_every_verb as tests; tests.release_in_forks(tests.FUNCTIONS, 1)"
    here = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, timeout=300, text=True,
        env={**os.environ, "PYTHONPATH": here},
    )  # fmt: skip
    all_differ(FUNCTIONS, done.stdout)


def all_differ(verbs, printed):
    released = list(map(json.loads, printed.splitlines()))
    assert len(released) == 4
    assert {verb: len({each[verb] for each in released}) for verb in verbs} == dict.fromkeys(verbs, 4)


def release_in_forks(verbs, file):
    """Print what a process, two children of it, and it again release: a digest for each verb."""

    def release():
        numbers = {verb: map(np.ascontiguousarray, noisy(FUNCTIONS[verb]())) for verb in verbs}
        digests = {
            verb: hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()
            for verb, parts in numbers.items()
        }
        os.write(file, (json.dumps(digests) + "\n").encode())

    release()  # whatever state there is exists before the forks
    for _ in range(2):
        if os.fork() == 0:
            try:
                release()
            finally:
                os._exit(0)
        os.wait()
    release()


def test_randomness_comes_from_one_place():
    """Elsewhere are fixed seeds for plans, samples, examples and simulations, names of tasks, and hashes.

    None of these sees records, or decides a result.
    """
    package, found = Path(dpt.__file__).parent, set()
    for path in package.rglob("*.py"):
        text = path.read_text()
        if "random" not in text and "secrets" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Attribute(value=ast.Attribute(attr="random"), attr=name) if name != "Generator":
                    pass
                case ast.Attribute(attr="urandom") | ast.Import(names=[ast.alias(name="random" | "secrets")]):
                    pass
                case ast.ImportFrom(module="random" | "secrets" | "numpy.random"):
                    pass
                case _:
                    continue
            found.add(path.relative_to(package).as_posix())
    assert found == {
        "datasets.py", "distribution/strategy.py", "mechanisms/sampling.py", "planning/crossed_star.py",
        "planning/equal_subtrees.py",
        "ingest/workers/on_dask.py", "ingest/workers/replies.py", "hierarchy/hash_tables.py",
        "programmes/rehearsing.py",
    }  # fmt: skip

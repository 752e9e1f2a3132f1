"""Options: each is stated once, and every public function that takes it says the same of it."""

import inspect
import re
import subprocess
import sys
import typing

import pandas as pd
import pytest
import xarray as xr

import pandas_dptree as dpt
from pandas_dptree.plans import options
from pandas_dptree.plans.options import (
    IMPLICIT,
    OPTIONS,
    RELATIVE_ERROR,
    require_supported,
    unsupported_options,
    with_defaults,
)
from pandas_dptree.signatures import options_of
from tests.helpers_cases import each

HOLDERS = [pd.DataFrame, pd.Series, xr.DataArray, xr.Dataset]
VERBS = {
    **{name: getattr(dpt, name) for name in dpt.__all__ if inspect.isfunction(getattr(dpt, name))},
    **{f"arrays.{name}": getattr(dpt.arrays, name) for name in ("tree_counts", "tree_sums", "plan", "cdf")},
    **{f"several.{name}": getattr(dpt.arrays.several, name) for name in dpt.arrays.several.__all__},
    **{
        f"{holder.__name__}.dp.{name}": method
        for holder in HOLDERS
        for name, method in inspect.getmembers(holder.dp, inspect.isfunction)
        if not name.startswith("_")
    },
}


def keywords(verb):
    parameters = inspect.signature(verb).parameters.values()
    return {each.name: each for each in parameters if each.kind is each.KEYWORD_ONLY}


# Stated once


def test_every_option_is_a_sentence_or_more_and_has_values():
    for name, option in OPTIONS.items():
        assert option.values and option.summary.endswith("."), name
        assert option.details.endswith(".") or not option.details, name
        if option.with_private_keys is not None:
            values, details = option.with_private_keys
            assert values != option.values and details.endswith("."), name


def test_only_values_that_a_function_takes_are_documented():
    for name, verb in VERBS.items():
        document, taken = inspect.getdoc(verb) or "", keywords(verb)
        for option, value in {"mechanism": "truncated_laplace", "split": "doubling"}.items():
            if option in taken and "." not in name:
                assert (value in document) == ("private_keys" in taken), (name, value)


def test_each_option_stands_once():
    kinds = [kind for kind in vars(options).values() if typing.is_typeddict(kind)]
    assert len(kinds) < 10
    for kind in kinds:
        assert options_of(kind) == {name: OPTIONS[name] for name in kind.__annotations__}


@each("name", VERBS)
def test_defaults_are_those_of_the_options(name):
    own = {"confidence", "name"}  # of quantiles, which always have an interval; of derived levels
    for option, parameter in keywords(VERBS[name]).items():
        if option in OPTIONS and option not in own and parameter.default is not parameter.empty:
            assert parameter.default == OPTIONS[option].default


@each("name", [name for name in VERBS if "." not in name])
def test_every_option_is_documented_with_the_same_text(name):
    verb = VERBS[name]
    document = inspect.getdoc(verb) or ""
    assert "**options" not in document
    said = " ".join(document.split())
    for option in keywords(verb):
        assert f" {option} :" in said or f" {option}, " in said or f", {option} " in said, option
    if "fit" in keywords(verb):
        assert " ".join(OPTIONS["fit"].details.split()) in said


@pytest.mark.slow
def test_nothing_is_documented_without_docstrings():
    code = "import pandas_dptree as dpt; assert dpt.tree_sums.__doc__ is None"
    subprocess.run([sys.executable, "-OO", "-c", code], check=True, timeout=60)


# What type checkers see


GOOD = """
import pandas as pd
import pandas_dptree as dpt
from pandas_dptree.accessors.arrays import DataArrayAccessor, DatasetAccessor
from pandas_dptree.accessors.frames import DataFrameAccessor, SeriesAccessor
import xarray as xr

frame, array, dataset = pd.DataFrame(), xr.DataArray(), xr.Dataset()
domain, tree = dpt.Domain.from_frame(frame, by=["a"]), dpt.binary("a", bits=4)
"""
CALLS = [
    'dpt.tree_counts(frame, ["a"], epsilon=1)',
    'dpt.tree_sums(frame, ["a"], columns="v", bounds=(0, 1), epsilon=1)',
    'dpt.tree_means(frame, ["a"], columns="v", bounds=(0, 1), epsilon=1)',
    'dpt.tree_agg(frame, ["a"], {"n": "count"}, epsilon=1)',
    'dpt.tree_units(frame, ["a"], privacy_unit="u", max_nodes=2, epsilon=1)',
    'dpt.release_distribution(frame, "v", bins=9, epsilon=1)',
    'dpt.cdf(frame, "v", bins=9, epsilon=1)',
    'dpt.histogram(frame, "v", bins=9, epsilon=1)',
    'dpt.range_counts(frame, "v", [(0, 1)], bins=9, epsilon=1)',
    'dpt.quantiles(frame, "v", 0.5, epsilon=1)',
    "dpt.plan(domain, epsilon=1)",
    'dpt.plan_sums(domain, columns="v", bounds=(0, 1), epsilon=1)',
    'dpt.plan_means(domain, columns="v", bounds=(0, 1), epsilon=1)',
    'dpt.plan_agg(domain, {"n": "count"}, epsilon=1)',
    'dpt.plan_units(domain, privacy_unit="u", max_nodes=2, epsilon=1)',
    'dpt.plan_distribution("v", bins=9, epsilon=1)',
    'dpt.plan_quantiles("v", 0.5, epsilon=1)',
    'dpt.arrays.tree_counts(array, ["a"], epsilon=1)',
    'dpt.arrays.tree_sums(array, ["a"], bounds=(0, 1), epsilon=1)',
    'dpt.arrays.plan(array, ["a"], epsilon=1)',
    'dpt.arrays.cdf(array, "a", epsilon=1)',
    'dpt.arrays.quantiles(array, "a", 0.5, epsilon=1)',
    'dpt.arrays.plan_distribution(array, "a", epsilon=1)',
    'dpt.arrays.several.tree_counts(dataset, ["a"], epsilon=1)',
    'dpt.arrays.several.tree_sums(dataset, ["a"], bounds=(0, 1), epsilon=1)',
    'dpt.arrays.several.plan(dataset, ["a"], epsilon=1)',
    'DataFrameAccessor(frame).tree_counts(["a"], epsilon=1)',
    'DataFrameAccessor(frame).tree_sums(["a"], columns="v", bounds=(0, 1), epsilon=1)',
    'DataFrameAccessor(frame).tree_means(["a"], columns="v", bounds=(0, 1), epsilon=1)',
    'DataFrameAccessor(frame).tree_agg(["a"], {"n": "count"}, epsilon=1)',
    'DataFrameAccessor(frame).tree_units(["a"], privacy_unit="u", max_nodes=2, epsilon=1)',
    'DataFrameAccessor(frame).plan_units(["a"], privacy_unit="u", max_nodes=2, epsilon=1)',
    'DataFrameAccessor(frame).plan(["a"], epsilon=1)',
    'DataFrameAccessor(frame).plan_sums(["a"], columns="v", bounds=(0, 1), epsilon=1)',
    'DataFrameAccessor(frame).plan_means(["a"], columns="v", bounds=(0, 1), epsilon=1)',
    'DataFrameAccessor(frame).plan_agg(["a"], {"n": "count"}, epsilon=1)',
    'DataFrameAccessor(frame).plan_distribution("v", bins=9, epsilon=1)',
    'DataFrameAccessor(frame).plan_quantiles("v", 0.5, epsilon=1)',
    'DataFrameAccessor(frame).release_distribution("v", bins=9, epsilon=1)',
    'DataFrameAccessor(frame).cdf("v", bins=9, epsilon=1)',
    'DataFrameAccessor(frame).histogram("v", bins=9, epsilon=1)',
    'DataFrameAccessor(frame).range_counts("v", [(0, 1)], bins=9, epsilon=1)',
    'DataFrameAccessor(frame).quantiles("v", 0.5, epsilon=1)',
    "SeriesAccessor(frame['v']).release_distribution(bins=9, epsilon=1)",
    "SeriesAccessor(frame['v']).cdf(bins=9, epsilon=1)",
    "SeriesAccessor(frame['v']).histogram(bins=9, epsilon=1)",
    "SeriesAccessor(frame['v']).range_counts([(0, 1)], bins=9, epsilon=1)",
    "SeriesAccessor(frame['v']).quantiles(0.5, epsilon=1)",
    'DataArrayAccessor(array).tree_counts(["a"], epsilon=1)',
    'DataArrayAccessor(array).tree_sums(["a"], bounds=(0, 1), epsilon=1)',
    'DataArrayAccessor(array).plan(["a"], epsilon=1)',
    'DataArrayAccessor(array).plan_distribution("a", epsilon=1)',
    'DataArrayAccessor(array).cdf("a", epsilon=1)',
    'DataArrayAccessor(array).quantiles("a", 0.5, epsilon=1)',
    'DatasetAccessor(dataset).tree_counts(["a"], epsilon=1)',
    'DatasetAccessor(dataset).tree_sums(["a"], bounds=(0, 1), epsilon=1)',
    'DatasetAccessor(dataset).plan(["a"], epsilon=1)',
]


def test_calls_of_every_verb_are_checked():
    """The list above leaves nothing out that takes an epsilon."""
    taking = {name.rpartition(".")[2] for name, verb in VERBS.items() if "epsilon" in keywords(verb)}
    assert taking <= {name for call in CALLS for name in re.findall(r"\.(\w+)\(", call)}
    for holder in HOLDERS:
        own = {
            name
            for name, method in inspect.getmembers(holder.dp, inspect.isfunction)
            if "epsilon" in inspect.signature(method).parameters
        }
        calls = [call for call in CALLS if call.startswith(f"{holder.__name__}Accessor(")]
        assert own == {re.findall(r"\.(\w+)\(", call)[-1] for call in calls}


REVEALED = {
    'dpt.tree_counts(frame, ["a"], epsilon=1)': "pandas.core.frame.DataFrame",
    'dpt.release_distribution(frame, "v", bins=9, epsilon=1)': "Distribution",
    "dpt.plan(domain, epsilon=1)": "AdditivePlan",
    "dpt.plan(domain, epsilon=1, mechanism=dpt.Multiplicative(alpha=0.1))": "MultiplicativePlan",
    'dpt.plan(domain, epsilon=1, delta=1e-6, private_keys=["b"])': "ImplicitPlan",
    "dpt.plan(tree, epsilon=1, delta=1e-6)": "ImplicitPlan",
    "dpt.plan(tree, epsilon=1, delta=1e-6, mechanism=dpt.Multiplicative(alpha=0.1))": (
        "ImplicitMultiplicativePlan"
    ),
    'dpt.plan_sums(domain, columns="v", bounds=(0, 1), epsilon=1)': "JointPlan",
    'dpt.plan_units(domain, privacy_unit="u", max_nodes=2, epsilon=1)': "UnitPlan",
    'dpt.plan_distribution("v", bins=9, epsilon=1)': "DistributionPlan",
    'dpt.plan_quantiles("v", 0.5, epsilon=1)': "QuantilePlan",
    'dpt.arrays.tree_counts(array, ["a"], epsilon=1)': "DataTree",
}
"""Calls, and the types that a type checker infers."""


@pytest.mark.nightly
def test_type_checkers_infer_what_is_returned(tmp_path):
    pytest.importorskip("mypy")
    script = tmp_path / "script.py"
    script.write_text(GOOD + "\n".join(f"reveal_type({call})" for call in REVEALED) + "\n")
    command = [sys.executable, "-m", "mypy", "--ignore-missing-imports", "--follow-imports=silent"]
    printed = subprocess.run(
        [*command, f"--cache-dir={tmp_path / 'cache'}", script], capture_output=True, text=True, timeout=600
    ).stdout
    found = re.findall(r'Revealed type is "(.*)"', printed)
    assert len(found) == len(REVEALED), printed
    for call, given, expected in zip(REVEALED, found, REVEALED.values(), strict=True):
        assert given.split(".")[-1] == expected.split(".")[-1], call


@pytest.mark.nightly
def test_type_checkers_refuse_misspelled_options(tmp_path):
    pytest.importorskip("mypy")
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(GOOD + "\n".join(CALLS) + "\n")
    bad.write_text(GOOD + "\n".join(call.replace("epsilon=1", "epsilom=1") for call in CALLS) + "\n")
    answers = {}
    for file in (good, bad):
        command = [sys.executable, "-m", "mypy", "--ignore-missing-imports", "--follow-imports=silent"]
        answers[file] = subprocess.run(
            [*command, f"--cache-dir={tmp_path / 'cache'}", file], capture_output=True, text=True, timeout=600
        ).stdout
    assert answers[good].startswith("Success"), answers[good]
    first = len(GOOD.splitlines()) + 1
    refused = {int(line) for line in re.findall(r"bad\.py:(\d+): error: ", answers[bad])}
    assert refused == set(range(first, first + len(CALLS))), answers[bad]


# What a kind of plan takes


def test_what_is_left_at_its_default_is_not_set():
    left = {"split": "optimal", "known": None, "keep": None, "confidence": None}
    assert unsupported_options(RELATIVE_ERROR, left) == []
    assert unsupported_options(RELATIVE_ERROR, {**left, "fit": "joint"}) == ["fit"]
    assert unsupported_options(RELATIVE_ERROR, {"consistency": "none"}, {"consistency": "none"}) == []
    assert unsupported_options(IMPLICIT, {"split": "uniform", "objective": "cells"}) == ["objective"]
    odd = pd.DataFrame({"count": [1]})
    assert unsupported_options(RELATIVE_ERROR, {"known": odd}) == ["known"]


def test_options_of_a_kind_are_picked_or_refused():
    given = {"epsilon": 1.0, "split": "optimal"}
    found = require_supported(RELATIVE_ERROR, given, what="this", hint="leave it out.")
    assert found == {"epsilon": 1.0}
    with pytest.raises(dpt.ArgumentError, match=r"^`split` has no meaning for this\.\nHint: leave it out\.$"):
        require_supported(RELATIVE_ERROR, given | {"split": "uniform"}, what="this", hint="leave it out.")
    whole = with_defaults(RELATIVE_ERROR, found)
    others = {"delta": 0.0, "neighbors": "add_remove", "privacy_unit": None, "max_contributions": None}
    assert whole == {"epsilon": 1.0, **others}

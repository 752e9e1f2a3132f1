"""No message shows a record, even if an argument holds all by mistake: frame["person"] for "person"."""

import inspect
import traceback
import warnings
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import pandas_dptree as dpt
from pandas_dptree import ArgumentError, arrays, theory
from pandas_dptree.arrays import several
from tests.helpers_cases import each
from tests.helpers_messages import NUMBER, SECRET, N, Printing, Unprintable, shows_secret


def mistaken_values():
    texts = [f"{SECRET} {i}" for i in range(N)]
    numbers = np.arange(N) + NUMBER * 10_000
    given = {
        "series": pd.Series(texts),
        "numbers": pd.Series(numbers, dtype=np.float64),
        "sizes": pd.Series(numbers, index=texts),
        "frame": pd.DataFrame({"who": texts, "number": numbers}),
        "index": pd.Index(texts),
        "list": texts,
        "list of numbers": numbers.tolist(),
        "tuple": tuple(texts),
        "repeated": [f"{SECRET} {i % 2}" for i in range(N)],
        "array": np.array(texts),
        "array of numbers": numbers,
        "data array": xr.DataArray(numbers, {"x": texts}, "x"),
        "dict": dict(zip(texts, numbers.tolist(), strict=True)),
        "set": set(texts),
        "printing": Printing(),
        "unprintable": Unprintable(),
    }
    try:
        import polars as pl
    except ImportError:
        return given
    return {
        **given,
        "polars": pl.Series(texts),
        "expression": pl.lit(SECRET),
        "lazy": pl.LazyFrame({"who": texts}),
    }


MISTAKEN_VALUES = mistaken_values()
FRAME = pd.DataFrame(
    {
        "state": ["CA", "CA", "OR"],
        "city": ["A", "B", "C"],
        "age": [10, 20, 30],
        "person": [1, 2, 2],
        "date": pd.to_datetime(["2024-01-05", "2024-02-06", "2025-03-07"]),
    }
)
BY = ["state", "city"]
PLACES = FRAME[BY]
DOMAIN = dpt.Domain.from_frame(PLACES, by=BY)
TREE = dpt.Tree.from_branching([2, 2])
PLAN = dpt.plan(DOMAIN, epsilon=1.0)
PERSON = {"privacy_unit": "person", "max_nodes": {"state": 1, "city": 2}}
PEOPLE = dpt.plan_units(DOMAIN, epsilon=1.0, **PERSON)
FACTOR = dpt.plan(DOMAIN, epsilon=1.0, delta=1e-6, mechanism=dpt.Multiplicative(alpha=0.5))
TRUTH = FRAME.groupby(BY, as_index=False).size().rename(columns={"size": "count"})
RELEASED = PLAN.release(FRAME, rng=np.random.default_rng(0))
QUICK = {"mechanism": "truncated_laplace"}
"""Its noise is found faster."""
LARGE = dpt.plan(dpt.binary("age", bits=8), epsilon=1.0, delta=1e-6, **QUICK)
BINS = dpt.plan_distribution("age", bounds=(0, 100), bins=4, epsilon=1.0)
GRID = dpt.plan_quantiles("age", 0.5, bounds=(0, 100), epsilon=1.0)
SHAPE = BINS.release(FRAME, rng=np.random.default_rng(0))
ARRAY = xr.DataArray(np.arange(6).reshape(2, 3), {"y": [10, 20], "x": ["a", "b", "c"]}, ("y", "x"))
DATASET = xr.Dataset({"trips": ARRAY, "fares": ARRAY})
VARIABLES = several.plan(DATASET, ["y", "x"], epsilon=1.0)
STREAM = dpt.SparseVector(threshold=5, cutoff=1, epsilon=1.0)
RNG = np.random.default_rng(0)
RECORDS = {"frame": FRAME, "epsilon": 1.0, "rng": RNG}
TABLE = {**RECORDS, "by": BY, "domain": PLACES}
ASKED = {"n": "count", "age": dpt.mean("age", bounds=(0, 100))}
SUMS = {**TABLE, "columns": "age", "bounds": (0, 100)}
COLUMN = {**RECORDS, "column": "age", "bounds": (0, 100), "bins": 4}
CELLS = {"array": ARRAY, "by": ["y", "x"], "epsilon": 1.0, "rng": RNG}
ALONG = {"array": ARRAY, "dim": "y", "edges": [5, 15, 25], "epsilon": 1.0}
VARIED = {"dataset": DATASET, "by": ["y", "x"], "epsilon": 1.0, "rng": RNG}
PRIVATE = {"private_keys": ["city"], "privacy_unit": dpt.ROWS, "delta": 1e-6, **QUICK}
STATES = dpt.Domain.from_frame(PLACES[["state"]].drop_duplicates(), by=["state"])
NOISE = {"rmse": 1.0, "alpha": 0.1}
PAIR = {"released": RELEASED, "truth": TRUTH}
CALLS = {
    "tree_counts": (dpt.tree_counts, TABLE),
    "tree_counts of prefixes": (
        dpt.tree_counts, {**RECORDS, "by": dpt.binary("age", bits=8), "delta": 1e-6, **QUICK},
    ),
    "tree_counts of private keys": (dpt.tree_counts, {**TABLE, **PRIVATE, "domain": STATES}),
    "tree_sums": (dpt.tree_sums, SUMS),
    "tree_means": (dpt.tree_means, SUMS),
    "tree_agg": (dpt.tree_agg, {**TABLE, "aggregations": ASKED}),
    "tree_agg of units": (
        dpt.tree_agg,
        {**TABLE, "aggregations": {"n": "count", "people": "units"}, **PERSON, "max_contributions": 2},
    ),
    "tree_units": (dpt.tree_units, {**TABLE, **PERSON}),
    "plan_units": (dpt.plan_units, {"domain": DOMAIN, "epsilon": 1.0, **PERSON}),
    "sum": (dpt.sum, {"column": "age", "bounds": (0, 9)}),
    "mean": (dpt.mean, {"column": "age", "bounds": (0, 9), "granularity": 0.5}),
    "plan_agg": (dpt.plan_agg, {"domain": DOMAIN, "aggregations": ASKED, "epsilon": 1.0}),
    "plan_sums": (dpt.plan_sums, {"domain": DOMAIN, "columns": "age", "bounds": (0, 9), "epsilon": 1.0}),
    "plan_means": (dpt.plan_means, {"domain": DOMAIN, "columns": "age", "bounds": (0, 9), "epsilon": 1.0}),
    "plan": (dpt.plan, {"domain": DOMAIN, "epsilon": 1.0}),
    "plan of sums": (dpt.plan, {"domain": DOMAIN, "epsilon": 1.0, "column": "age", "bounds": (0, 9)}),
    "plan of prefixes": (
        dpt.plan, {"domain": dpt.binary("age", bits=8), "epsilon": 1.0, "delta": 1e-6, **QUICK},
    ),
    "plan of private keys": (dpt.plan, {"domain": None, "epsilon": 1.0, **PRIVATE}),
    "plan_distribution": (
        dpt.plan_distribution,
        {"column": "age", "bounds": (0, 9), "bins": 4, "epsilon": 1.0},
    ),
    "plan_quantiles": (
        dpt.plan_quantiles, {"column": "age", "q": 0.5, "bounds": (0, 100), "epsilon": 1.0, "confidence": 0.9}
    ),
    "release_distribution": (dpt.release_distribution, COLUMN),
    "cdf": (dpt.cdf, COLUMN),
    "histogram": (dpt.histogram, COLUMN),
    "quantiles": (dpt.quantiles, {**COLUMN, "q": 0.5}),
    "quantiles by groups": (
        dpt.quantiles,
        {**COLUMN, "q": 0.5, "mechanism": "exponential", "granularity": 1, "by": BY, "domain": PLACES},
    ),
    "range_counts": (dpt.range_counts, {**COLUMN, "ranges": [(0, 50)]}),
    "histogram by groups": (dpt.histogram, {**COLUMN, "by": BY, "domain": PLACES}),
    "prefixes": (dpt.prefixes, {"column": "zip", "chars": [1, 2]}),
    "prefixes of bits": (dpt.prefixes, {"column": "ip", "bits": [8, 16], "width": 32, "notation": "ipv4"}),
    "binary": (dpt.binary, {"column": "ip", "bits": 8}),
    "calendar": (
        dpt.calendar,
        {"column": "date", "units": ["year", "month"], "start": "2024-01-01", "end": "2025-12-31"},
    ),
    "cut": (dpt.cut, {"column": "age", "width": 10, "bounds": (0, 100)}),
    "cut at ends": (dpt.cut, {"column": "age", "bins": [0, 18, 65]}),
    "cut into levels": (dpt.cut, {"column": "age", "levels": {"group": 50, "year": 10}, "bounds": (0, 100)}),
    "mapping": (dpt.mapping, {"table": PLACES, "by": BY}),
    "quadtree": (dpt.quadtree, {"y": "lat", "x": "lon", "depth": 2, "bounds": ((0, 1), (0, 1))}),
    "derived_domain": (dpt.derived_domain, {"by": BY, "places": PLACES}),
    "relative": (dpt.relative, {"share": 0.1, "of": 100}),
    "detection_probability": (dpt.detection_probability, {"plan": LARGE, "counts": [0, 10]}),
    "Domain.from_frame": (dpt.Domain.from_frame, {"places": PLACES, "by": BY}),
    "Domain.observed": (dpt.Domain.observed, {"keys": PLACES, "by": BY}),
    "Tree": (dpt.Tree, {"child_counts": [np.array([2])]}),
    "Tree.from_branching": (dpt.Tree.from_branching, {"branching": [2, 2]}),
    "Tree.from_paths": (dpt.Tree.from_paths, {"paths": [[0], [1]]}),
    "Multiplicative": (dpt.Multiplicative, {"alpha": 0.5}),
    "SparseVector": (dpt.SparseVector, {"threshold": 5, "cutoff": 1, "epsilon": 1.0}),
    "SparseVector.ask": (STREAM.ask, {"values": 1}),
    "SparseVector.error_bound": (STREAM.error_bound, {"n_queries": 1, "failure_probability": 0.1}),
    "TruncatedLaplace": (dpt.TruncatedLaplace, {"epsilon": 1.0, "delta": 1e-6}),
    "TruncatedLaplace.release": (dpt.TruncatedLaplace(epsilon=1.0, delta=1e-6).release, {"values": 1}),
    "Plan.release": (PLAN.release, {"data": FRAME}),
    "Plan.compare": (PLAN.compare, {}),
    "Plan.alpha_rmse": (PLAN.alpha_rmse, {"alpha": 0.1, "counts": {"state": 100}}),
    "Plan.plot": (PLAN.plot, {}),
    "Plan.from_dict": (dpt.Plan.from_dict, {"data": PLAN.to_dict(), "domain": DOMAIN}),
    "JointPlan.release": (dpt.plan_agg(DOMAIN, ASKED, epsilon=1.0).release, {"data": FRAME}),
    "UnitPlan.release": (PEOPLE.release, {"data": FRAME}),
    "UnitPlan.compare": (PEOPLE.compare, {"max_nodes": [1, 2]}),
    "MultiplicativePlan.release": (FACTOR.release, {"data": FRAME}),
    "MultiplicativePlan.error_bound": (FACTOR.error_bound, {"counts": 5}),
    "ImplicitPlan.release": (LARGE.release, {"data": FRAME}),
    "ImplicitPlan.compare": (LARGE.compare, {"alpha": 0.5}),
    "DistributionPlan.release": (BINS.release, {"data": FRAME}),
    "QuantilePlan.release": (GRID.release, {"data": FRAME}),
    "Distribution.cdf": (SHAPE.cdf, {}),
    "Distribution.quantiles": (SHAPE.quantiles, {"q": 0.5}),
    "Distribution.range_counts": (SHAPE.range_counts, {"ranges": [(0, 25)]}),
    "Distribution.plot": (SHAPE.plot, {}),
    "dp.release": (FRAME.dp.release, {"plan": PLAN}),
    "dp.level": (RELEASED.dp.level, {"name": "state"}),
    "dp.to_html": (RELEASED.dp.to_html, {}),
    "dp.plot.levels": (RELEASED.dp.plot.levels, {}),
    "dp.plot.icicle": (RELEASED.dp.plot.icicle, {}),
    "arrays.tree_counts": (arrays.tree_counts, CELLS),
    "arrays.tree_sums": (arrays.tree_sums, {**CELLS, "bounds": (0, 9)}),
    "arrays.plan": (arrays.plan, {"array": ARRAY, "by": ["y"], "epsilon": 1.0}),
    "arrays.release": (arrays.release, {"plan": arrays.plan(ARRAY, ["y"], epsilon=1.0), "array": ARRAY}),
    "arrays.cdf": (arrays.cdf, ALONG),
    "arrays.quantiles": (arrays.quantiles, {**ALONG, "q": 0.5}),
    "several.tree_counts": (several.tree_counts, VARIED),
    "several.tree_sums": (several.tree_sums, {**VARIED, "bounds": (0, 9)}),
    "several.plan": (several.plan, {"dataset": DATASET, "by": ["y"], "epsilon": 1.0}),
    "several.release": (several.release, {"plan": VARIABLES, "dataset": DATASET}),
    "clinic_visits": (dpt.datasets.clinic_visits, {"n_people": 5}),
    "taxi_trips": (dpt.datasets.taxi_trips, {"n_trips": 5, "n_cells": 4}),
    "accuracy": (theory.accuracy, {**PAIR, "alpha": 0.1, "thresholds": 5}),
    "accuracy_from_rmse": (theory.accuracy_from_rmse, {**NOISE, "wider_alpha": 0.2, "thresholds": 5}),
    "alpha_rmse": (theory.alpha_rmse, {**PAIR, "alpha": 0.1}),
    "estimate_alpha_rmse": (
        theory.estimate_alpha_rmse,
        {"variances": 1.0, "fourth_cumulants": 0.0, "truth": 5, "alpha": 0.1},
    ),
    "is_accurate": (theory.is_accurate, {**PAIR, "alpha": 0.1, "eta": 0.1, "thresholds": 5}),
    "l2_error": (theory.l2_error, PAIR),
    "linf_error": (theory.linf_error, PAIR),
    "max_alpha_rmse": (theory.max_alpha_rmse, {**PAIR, "alpha": 0.1}),
    "predicted_alpha_rmse": (
        theory.predicted_alpha_rmse,
        {"noise": dpt.Laplace(), "noise_scales": 1.0, "truth": 5, "alpha": 0.1},
    ),
    "relative_error_from_rmse": (theory.relative_error_from_rmse, {**NOISE, "kappa": 1.0}),
    "smoothed_relative_error": (theory.smoothed_relative_error, {**PAIR, "kappa": 1.0}),
    "decode": (
        theory.decode,
        {"estimates": list(TREE.roll_up(np.arange(4))), "tree": TREE, "threshold": 5, "eta": 0.1, "rng": RNG},
    ),
    "factorization_error": (theory.factorization_error, {"tree": TREE, "epsilon": 1.0, "delta": 1e-6}),
    "factorization_norm": (theory.factorization_norm, {"tree": TREE}),
    "from_thresholds": (theory.from_thresholds, {"tree": TREE, "cumulative_sums": [1, 2, 3, 4]}),
    "gaussian_lower_bound": (theory.gaussian_lower_bound, {"tree": TREE}),
    "noise_floor": (theory.noise_floor, {"epsilon": 1.0, "delta": 1e-6}),
    "packing_error": (theory.packing_error, {"tree": TREE, "epsilon": 1.0, "alpha": 0.1}),
    "packing_threshold": (
        theory.packing_threshold,
        {"tree": TREE, "epsilon": 1.0, "delta": 1e-6, "alpha": 0.1, "eta": 0.1},
    ),
    "single_count_error": (theory.single_count_error, {"epsilon": 1.0}),
    "step_loss": (theory.step_loss, {"n_children": [2], "eta": 0.1}),
    "error_bounds": (theory.error_bounds, {"tree": TREE, "epsilon": 1.0, "delta": 1e-6, "alpha": 0.1}),
    "witness": (theory.witness, {"tree": TREE}),
    "worst_node_shares": (theory.worst_node_shares, {"tree": TREE}),
    "best_tree": (
        theory.best_tree,
        {"n_bins": 16, "noise": dpt.Laplace(), "loss": PLAN.loss, "sensitivity": PLAN.sensitivity.levels[0]},
    ),
    "consistent_cdf": (theory.consistent_cdf, {"noisy": [1, 2, 3], "total": 3}),
    "cover": (theory.cover, {"tree": TREE, "start": 0, "stop": 3}),
    "optimal_branching": (theory.optimal_branching, {"budgets": [0.5, 0.5], "n_bins": 16}),
    "optimal_tree": (theory.optimal_tree, {"n_bins": 16}),
    "optimal_budgets": (theory.optimal_budgets, {"branching": [4, 4], "epsilon": 1.0}),
    "tree_error": (theory.tree_error, {"branching": [4, 4], "variances": [1, 1]}),
    "refined_error": (theory.refined_error, {"branching": [4, 4], "variances": [1, 1]}),
    "threshold_error": (theory.threshold_error, {"n_bins": 16, "variance": 1.0}),
    "cumulative_lower_bound": (theory.cumulative_lower_bound, {"n_bins": 16}),
}  # fmt: skip
MATHEMATICS = {call for call in list(CALLS)[list(CALLS).index("clinic_visits") :]} | {
    "Tree", "SparseVector.error_bound", "Plan.plot", "Distribution.plot", "detection_probability",
}  # fmt: skip
"""Of these, a TypeError of Python or numpy will do as well."""
ODD = {"lazy", "unprintable"}
"""A list to Python, until it is iterated; and what raises by itself where a column is named."""
SIBLINGS = {
    "tree_sums", "tree_means", "plan_sums", "plan_means", "plan of sums", "cdf", "histogram", "quantiles",
    "range_counts", "histogram by groups", "tree_agg of units", "arrays.tree_sums", "several.tree_sums",
}  # fmt: skip
"""Functions whose arguments go the way of those of `tree_counts`, `tree_agg` or `release_distribution`."""


def arguments_of(call):
    parameters = inspect.signature(CALLS[call][0]).parameters.items()
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [argument for argument, parameter in parameters if parameter.kind not in kinds]


def shown(error):
    """Give all that a reader sees below the traceback's lines of code, of the error and what led to it."""
    texts = []
    while error is not None:
        texts.append("".join(traceback.format_exception_only(error)))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n".join(texts)


@pytest.mark.parametrize("part", range(6))
def test_the_calls_are_right_but_for_the_argument_that_is_tried(part):
    each("function, valid", list(CALLS.values())[part::6])(lambda function, valid: function(**valid))()
    plt.close("all")


N_TURNS = 9
"""By default every ninth mistake is tried, another ninth for each argument."""


@pytest.mark.parametrize("call", [call for call in CALLS if call not in SIBLINGS])
def test_no_message_shows_what_an_argument_holds(call):
    each("argument", arguments_of(call))(partial(shows_no_secret, call=call, turns=[0]))()


@pytest.mark.slow
@pytest.mark.parametrize("call", sorted(SIBLINGS))
def test_no_message_of_siblings_shows_what_an_argument_holds(call):
    each("argument", arguments_of(call))(partial(shows_no_secret, call=call, turns=[0]))()


@pytest.mark.nightly
@pytest.mark.parametrize("call", CALLS)
def test_no_message_shows_any_mistake(call):
    each("argument", arguments_of(call))(partial(shows_no_secret, call=call, turns=range(N_TURNS)))()


def shows_no_secret(argument, *, call, turns):
    function, valid = CALLS[call]
    offset = len(call) + len(argument)
    for place, (mistake, given) in enumerate(MISTAKEN_VALUES.items(), start=offset):
        if place % N_TURNS not in turns:
            continue
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                function(**{**valid, argument: given})
            except Exception as error:
                text = shown(error)
                assert len(text) < 1000, (mistake, text[:1000])
                assert not shows_secret(text), (mistake, text)
                assert isinstance(error, dpt.DPTreeError) or (call in MATHEMATICS or mistake in ODD), (
                    mistake,
                    text,
                )
        assert not any(shows_secret(str(warning.message)) for warning in warned), mistake
    plt.close("all")


@each(
    "call",
    [
        lambda: dpt.tree_counts(**TABLE | {"privacy_unit": FRAME["person"]}),
        lambda: dpt.cdf(**COLUMN | {"privacy_unit": FRAME["person"]}),
        lambda: dpt.plan(dpt.binary("age", bits=8), epsilon=1, delta=1e-6, privacy_unit=FRAME["person"]),
    ],
)
def test_a_column_passed_for_its_name_gets_a_hint(call):
    with pytest.raises(ArgumentError, match=r'not frame\["person') as caught:
        call()
    assert caught.value.argument == "privacy_unit"

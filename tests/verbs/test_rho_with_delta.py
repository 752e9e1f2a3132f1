"""A rho with a delta is for gated releases alone: every other function refuses it before it reads anything.

The functions are found by their parameters, not listed here.
"""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import pandas_dptree as dpt
from pandas_dptree import ArgumentError
from tests.helpers_cases import each
from tests.helpers_verbs import CELLS, PUBLIC, VALUES, VISITS, call, takes

BOTH = {"rho": 0.02, "delta": 1e-6}


class Unread:
    """Cells that can be described, but not read."""

    shape, dtype, ndim = CELLS.shape, CELLS.dtype, CELLS.ndim

    def _read(self, *args, **options):
        raise AssertionError("a cell was read")

    __array__ = __array_function__ = __array_ufunc__ = __getitem__ = _read


NO_CELLS = CELLS.copy(data=Unread())
UNREAD = {"frame": VISITS[[]], "array": NO_CELLS, "dataset": xr.Dataset({"u": NO_CELLS, "v": NO_CELLS})}
HOLDERS = {**UNREAD, "series": pd.Series(["unread"], name="cost")}
METHODS = {
    f"{holder}.dp.{name}": getattr(data.dp, name)
    for holder, data in HOLDERS.items()
    for name in dir(data.dp)
    if not name.startswith("_")
}
FUNCTIONS = {
    name: function
    for name, function in (PUBLIC | METHODS).items()
    if not isinstance(function, type) and takes("delta", of=function)
}
TAKE_BOTH = {name: function for name, function in FUNCTIONS.items() if takes("rho", of=function)}


def refused(function, **options):
    unread = {name: data for name, data in UNREAD.items() if takes(name, of=function)}
    with pytest.raises(ArgumentError) as caught:
        call(function, **unread, **options)
    return caught.value


def test_all_functions_are_found():
    """Should the search fail, the tests below would pass without a call."""
    verbs = {"tree_counts", "tree_sums", "tree_means", "tree_agg", "cdf", "histogram", "quantiles"}
    plans = {"plan", "plan_agg", "plan_sums", "plan_means", "plan_distribution", "plan_quantiles"}
    assert {*verbs, *plans, *(f"frame.dp.{name}" for name in verbs | plans)} <= TAKE_BOTH.keys()
    of_arrays = {"tree_counts", "tree_sums", "plan"}
    for place in ("array.dp", "dataset.dp", "arrays", "arrays.several"):
        assert {f"{place}.{name}" for name in of_arrays} <= TAKE_BOTH.keys()
    assert {"array.dp.cdf", "series.dp.cdf", "release_distribution"} <= TAKE_BOTH.keys()
    assert FUNCTIONS.keys() == TAKE_BOTH.keys()


@each("name", sorted(TAKE_BOTH))
def test_every_function_refuses_both(name):
    function = TAKE_BOTH[name]
    options = [{}, {"mechanism": "laplace"}, {"mechanism": "gaussian"}]
    units = (
        {"privacy_unit": "u", "max_nodes": 2} if takes("max_nodes", of=function) and "units" in name else {}
    )
    options += [{"split": "uniform", "mechanism": "gaussian"}] if takes("split", of=function) else []
    options += [{"alpha": 0.1}] if takes("alpha", of=function) else []
    options += [{"target": {"total": 9.0}}] if takes("target", of=function) else []
    for more in options:
        error = refused(function, **BOTH, **units, **more)
        assert str(error).startswith("`delta` cannot be given together with `rho`.")
        assert error.argument == "delta"
        assert error.hint.startswith("leave `delta` out: a rho needs none. For an epsilon, dpt.plan(")


@pytest.mark.parametrize("hierarchy", [{"domain": VALUES["tree"]}, {"domain": None, "private_keys": ["a"]}])
def test_gated_releases_take_both(hierarchy):
    unit = {"privacy_unit": dpt.ROWS}
    for mechanism in ("auto", "gaussian"):
        plan = dpt.plan(**hierarchy, **unit, **BOTH, mechanism=mechanism)
        assert plan.loss.kind == "approximate_zcdp" and plan.mechanism_name == "gaussian_thresholds"
        assert dpt.Plan.from_dict(plan.to_dict(), plan.hierarchy).digest == plan.digest
    with pytest.raises(ArgumentError, match="truncated_laplace"):
        dpt.plan(**hierarchy, **unit, **BOTH, mechanism="truncated_laplace")


@pytest.mark.parametrize("mechanism", ["auto", "gaussian"])
def test_tables_of_gated_releases_state_both(mechanism):
    private = {"by": "region", "private_keys": ["region"], "privacy_unit": dpt.ROWS}
    for options in ({"by": VALUES["tree"]}, private):
        table = dpt.tree_counts(VISITS, **options, mechanism=mechanism, **BOTH, rng=np.random.default_rng(0))
        provenance = table.attrs["dp"]
        assert {name: provenance[name] for name in BOTH} == BOTH and "epsilon" not in provenance


def test_counts_of_prefixes_with_bounded_relative_error_take_no_rho():
    error = refused(
        dpt.tree_counts, by=VALUES["tree"], domain=None, mechanism=dpt.Multiplicative(alpha=0.25), **BOTH
    )
    assert error.argument == "rho"


def test_a_rho_with_a_delta_of_zero_is_a_rho():
    plan = call(dpt.plan, rho=0.02, delta=0.0)
    assert plan.loss.kind == "zcdp" and plan.delta == 0
    table = call(dpt.tree_counts, rho=0.02, delta=0.0, rng=np.random.default_rng(0))
    assert table.attrs["dp"]["rho"] == 0.02 and "delta" not in table.attrs["dp"]

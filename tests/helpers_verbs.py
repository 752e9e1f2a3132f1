"""Every public function and method that spends a budget or plans to, found by its parameters."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import pandas_dptree as dpt

REGIONS = dpt.datasets.clinics()[["region"]].drop_duplicates()
VISITS = dpt.datasets.clinic_visits().iloc[:400]
VISITS["region"] = pd.Categorical(VISITS["region"], categories=sorted(REGIONS["region"]))
DOMAIN = dpt.Domain.from_frame(REGIONS, by=["region"])

CELLS = xr.DataArray(np.full((4, 2), 9), dims=["region", "month"], coords={"region": range(4)})

VALUES: dict[str, Any] = {
    "frame": VISITS,
    "array": CELLS,
    "dataset": xr.Dataset({"u": CELLS, "v": CELLS}),
    "dim": "region",
    "edges": range(5),
    "by": ["region"],
    "domain": DOMAIN,
    "column": "cost",
    "columns": "cost",
    "aggregations": {"visits": "count"},
    "bounds": (0, 500),
    "bins": [0, 100, 500],
    "ranges": [(0, 100)],
    "q": [0.25, 0.5],
    "tree": dpt.prefixes("person", bits=[8, 16], notation="number"),
    "epsilon": 1.0,
    "delta": 1e-6,
}
"""What is passed for a parameter that must be given. A new verb may need a line here."""

PUBLIC = {
    **{name: getattr(dpt, name) for name in dpt.__all__},
    **{f"arrays.{name}": getattr(dpt.arrays, name) for name in dpt.arrays.__all__},
    **{f"arrays.several.{name}": getattr(dpt.arrays.several, name) for name in dpt.arrays.several.__all__},
    **{f"frame.dp.{name}": getattr(VISITS.dp, name) for name in dir(VISITS.dp) if not name.startswith("_")},
}


def takes(*names: str, of: Callable[..., Any]) -> bool:
    """Whether a function or class has all these parameters."""
    try:
        return {*names} <= {*inspect.signature(of).parameters}
    except (TypeError, ValueError):  # it cannot be called, or not be looked into
        return False


FUNCTIONS = {
    name: public
    for name, public in PUBLIC.items()
    if not isinstance(public, type) and takes("privacy_unit", "max_contributions", of=public)
}
"""Those with `privacy_unit` and `max_contributions`."""

CLASSES = {
    name: public
    for name, public in PUBLIC.items()
    if isinstance(public, type)
    and not inspect.isabstract(public)
    and takes("privacy_unit", "max_contributions", of=public)
}
"""The plans that they make."""


def call(function: Callable[..., Any], **options: Any) -> Any:
    """Call a function with what it must be given, and some options."""
    parameters = inspect.signature(function).parameters
    given = {each for each, parameter in parameters.items() if parameter.default is inspect.Parameter.empty}
    given |= {"bins", "edges", *({"domain"} if "by" in given else ())} & set(parameters)
    if (
        next(iter(parameters)) == "tree"
    ):  # of a plan, which may do without a listed tree, but not without both
        given |= {"tree", "delta"}
    values = {
        each: VALUES[each] for each in given if parameters[each].kind is not inspect.Parameter.VAR_KEYWORD
    }
    return function(**values | options)


def called(name: str, **options: Any) -> Any:
    """Call a function by its name, with what it must be given, an epsilon, and some options."""
    return call(FUNCTIONS[name], **{"epsilon": VALUES["epsilon"]} | options)


def tables(name: str, **options: Any) -> list[pd.DataFrame]:
    """Release by a function, and give what can be seen of the answer; nothing of a plan."""
    answer = called(name, **options)
    return [answer.cdf(), answer.histogram()] if isinstance(answer, dpt.Distribution) else [answer]


SPENDING = [name for name, public in FUNCTIONS.items() if takes("rng", of=public)]
"""Those that release, by their names; the others plan."""

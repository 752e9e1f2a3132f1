"""Variables of a dataset: names and types that cannot be used, and what is made of the others."""

import numpy as np
import pytest
import xarray as xr

from pandas_dptree import ArgumentError, ColumnsError
from pandas_dptree.arrays import several
from tests.helpers_arrays import LEVELS, MIXED, NO_NOISE, level
from tests.helpers_cases import each
from tests.helpers_output import stated_in

BY = ["state", "city"]


def test_types_never_depend_on_the_cells(hospitals: xr.Dataset) -> None:
    def shape(dataset):
        tree = dataset.dp.tree_sums(BY, bounds=MIXED, epsilon=1.0, confidence=0.9, keep=["measurements"])
        return stated_in(tree), {
            key: {
                name: (each.dims, each.dtype, each.shape) for name, each in level(tree, key).variables.items()
            }
            for key in LEVELS
        }

    expected = shape(hospitals)
    for value in (0, -7, np.nan, np.inf, 1e30):
        assert shape(xr.full_like(hospitals, value, dtype=float)) == expected


def test_some_of_the_variables(hospitals: xr.Dataset) -> None:
    hospitals["note"] = ("city", ["a", "b", "c", "d"])
    tree = hospitals.dp.tree_counts(BY, variables=["deaths", "visits"], **NO_NOISE)
    assert [name for name in level(tree, "city") if "std_error" not in name] == ["deaths", "visits"]
    assert hospitals.dp.plan(BY, bounds={"cost": (0, 1)}, epsilon=1.0).plans.keys() == {"cost"}
    alone = hospitals.dp.plan(BY, variables=["visits"], epsilon=1.0).plans["visits"]
    assert repr(alone) == repr(hospitals["visits"].dp.plan(BY, epsilon=1.0))


@each(
    "change, options, argument, match",
    [
        ({}, {"by": ["nowhere"]}, "by", "neither dimensions nor coordinates"),
        ({}, {"by": ["state", "deaths"]}, "by", r"set_coords\(\['deaths'\]\)"),
        ({}, {"by": []}, "by", "names no column"),
        ({}, {"by": ["season"]}, "variables", "lack some of the dimensions.*'deaths', 'cost'"),
        ({}, {"variables": []}, "variables", "names no variable"),
        ({}, {"variables": "visits"}, "variables", "must be a list"),
        ({}, {"variables": ["visits", "city", "x"]}, "variables", "not data variables.*'city', 'x'"),
        ({}, {"variables": [["visits"]]}, "variables", "not data variables"),
        ({}, {"variables": ["visits", "visits"]}, "variables", "twice"),
        ({"note": ("city", list("abcd"))}, {}, "variables", "do not hold numbers: 'note'"),
        ({"z": ("city", [1j] * 4), "t": ("city", [None] * 4)}, {}, "variables", "'z', 't'"),
        ({"visits_lower": ("city", [0] * 4)}, {}, "variables", "the same name: 'visits', 'visits_lower'"),
        ({}, {"max_contributions": {"visits": 2}}, "max_contributions", "'deaths', 'cost'"),
        ({}, {"max_contributions": 0}, "max_contributions", "at least 1"),
        ({}, {"max_contributions": [1, 2, 3]}, "max_contributions", "at least 1"),
        ({}, {"max_contributions": dict.fromkeys([*MIXED, "x"], 1)}, "max_contributions", "'x'"),
        ({}, {"epsilon": None}, "epsilon", "must be given"),
        ({}, {"mechanism": "x"}, "mechanism", "unknown"),
        ({}, {"rng": 3}, "rng", "Generator"),
        ({}, {"bounds": {}}, "variables", "names no variable"),
        ({}, {"bounds": (5, 1)}, "bounds", "lower one first"),
        ({}, {"bounds": {"cost": (0, 1)}, "variables": ["cost", "visits"]}, "bounds", "each variable"),
        ({}, {"bounds": {"cost": (0, 1), "x": (0, 1)}}, "variables", "not data variables.*'x'"),
        ({}, {"bounds": MIXED, "granularity": {"visits": 1}}, "granularity", "'cost', 'visits'"),
        ({}, {"bounds": dict.fromkeys(MIXED), "granularity": 1}, "granularity", "no meaning"),
        ({}, {"bounds": None}, "bounds", "must be given"),
    ],
)  # fmt: skip
def test_arguments_that_cannot_be_used(
    hospitals: xr.Dataset, change: dict, options: dict, argument: str, match: str
) -> None:
    arguments = {"by": BY, "epsilon": 1.0, **options}
    verb = several.tree_sums if "bounds" in options else several.tree_counts
    with pytest.raises(ArgumentError, match=match) as raised:
        verb(hospitals.assign(change), arguments.pop("by"), **arguments)
    assert raised.value.argument == argument and "Hint:" in str(raised.value)


def test_names_that_clash_with_coordinates(hospitals: xr.Dataset) -> None:
    with pytest.raises(ColumnsError, match="the same name: 'visits'"):
        hospitals.rename(season="visits_std_error").dp.tree_counts(BY, epsilon=1.0)
    with pytest.raises(ColumnsError, match="with names of variables of the result"):
        hospitals.rename(month="std_error").dp.tree_counts(BY, epsilon=1.0)
    tree = hospitals.rename(visits="count", deaths="lower").dp.tree_counts(BY, epsilon=1.0, confidence=0.9)
    assert {"count", "count_lower", "lower", "lower_lower"} <= set(level(tree, "city"))


def test_names_with_slashes(hospitals: xr.Dataset) -> None:
    with pytest.raises(ColumnsError, match=r"`variables` has names with slashes.*'by car/foot'"):
        hospitals.rename(visits="by car/foot").dp.plan(BY, epsilon=1.0)


def test_datasets_that_cannot_be_released(hospitals: xr.Dataset) -> None:
    with pytest.raises(ArgumentError, match="no data variables to release"):
        hospitals[[]].dp.tree_counts(BY, epsilon=1.0)
    with pytest.raises(ArgumentError, match=r"must be an xarray\.Dataset"):
        several.tree_counts(hospitals["visits"], BY, epsilon=1.0)  # type: ignore[arg-type]
    planned = hospitals.dp.plan(BY, epsilon=1.0)
    with pytest.raises(ColumnsError, match="not data variables of the dataset: 'deaths'"):
        hospitals.drop_vars("deaths").dp.release(planned)
    with pytest.raises(ColumnsError, match="do not hold numbers: 'deaths'"):
        hospitals.assign(deaths=hospitals["deaths"].astype(str)).dp.release(planned)
    with pytest.raises(ColumnsError, match="neither dimensions nor coordinates"):
        hospitals.drop_vars("state").dp.release(planned)
    with pytest.raises(ArgumentError, match="must be one for several variables"):
        hospitals.dp.release(planned.plans["visits"])
    with pytest.raises(ArgumentError, match="must have a domain"):
        hospitals["visits"].dp.release(planned)

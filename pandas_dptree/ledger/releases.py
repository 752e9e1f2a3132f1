"""Several plans and their data, as releases that are carried out together."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeVar

import xarray as xr

from pandas_dptree.arrays.releases import of_array, of_dataset
from pandas_dptree.errors import ArgumentError, kind_of_object, listed
from pandas_dptree.plans.base import Plan
from pandas_dptree.plans.running import Release

__all__ = ["by_name", "check_plans", "prepared_releases"]

Name = TypeVar("Name", bound=Hashable)


def prepared_releases(plans: Any, data: Any) -> dict[Hashable, Release]:
    """Check that data can be released by plans, as far as public arguments tell; read no records."""
    for plan in check_plans(plans).values():
        if not isinstance(plan, Plan):
            raise ArgumentError(
                "plans",
                f"must have plans, not {kind_of_object(plan)}.",
                hint="make each with df.dp.plan(...), dpt.plan(...) or one of their siblings.",
            )
    return {name: _prepared(plans[name], each) for name, each in by_name(data, list(plans)).items()}


def check_plans(plans: Any) -> Mapping[Any, Any]:
    """Check that there are plans, by names."""
    if not isinstance(plans, Mapping) or not plans:
        raise ArgumentError(
            "plans",
            f"must be a mapping of names to plans, not {kind_of_object(plans)}."
            if not isinstance(plans, Mapping)
            else "must not be empty.",
            hint='name the plans, as in {"counts": plan}.',
        )
    return plans


def by_name(data: Any, names: Sequence[Name]) -> dict[Name, Any]:
    """Return the data for each name: those that a mapping has for it, or the same for all."""
    if not isinstance(data, Mapping) or isinstance(data, xr.Dataset):  # a Dataset is a mapping too
        return dict.fromkeys(names, data)
    if set(data) != set(names):
        raise ArgumentError(
            "data",
            f"must have data for {listed(names)}, and for nothing else.",
            hint="pass one dataframe for all plans, or a mapping with the same names as the plans.",
        )
    return {name: data[name] for name in names}


def _prepared(plan: Any, data: Any) -> Release:
    if isinstance(data, xr.Dataset):
        return of_dataset(plan, data)
    if isinstance(data, xr.DataArray):
        return of_array(plan, data)
    release: Release = plan._prepared(data)
    return release

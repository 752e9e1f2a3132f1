"""The public part of a dataset: the names and types of its variables, and the keys that they share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import xarray as xr

from pandas_dptree.arrays.coordinates import check_lengths, dims_of, domain_of
from pandas_dptree.arrays.crossed import CrossedBy, crossed_domain_of
from pandas_dptree.errors import ArgumentError, ColumnsError, did_you_mean, kind_of_object, listed, quote
from pandas_dptree.hierarchy.crossed_domain import CrossedDomain
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.levels.combine import By, named
from pandas_dptree.output.datatree import check_held, companions_of, is_hash
from pandas_dptree.output.frames import COMPANIONS
from pandas_dptree.privacy.quantity import COUNT, Quantity

__all__ = ["check_variables", "keys_of", "names_of", "per_variable", "quantities_of"]


def names_of(dataset: xr.Dataset, variables: Sequence[Hashable] | None) -> list[Hashable]:
    """List the variables to release, after a check that the dataset has them."""
    if not isinstance(dataset, xr.Dataset):
        raise ArgumentError(
            "dataset",
            f"must be an xarray.Dataset, not {kind_of_object(dataset)}.",
            hint="for a single DataArray, call dpt.arrays.tree_counts.",
        )
    if variables is not None and not isinstance(variables, (list, tuple)):
        raise ArgumentError(
            "variables",
            f"must be a list of names, not {quote(variables)}.",
            hint='for example variables=["visits"]; leave it out for all.',
        )
    names = list(dataset.data_vars) if variables is None else list(variables)
    if not names:
        raise ArgumentError(
            "dataset" if variables is None else "variables",
            "has no data variables to release." if variables is None else "names no variable.",
            hint='for example variables=["visits", "deaths"], which the dataset has.',
        )
    absent = [name for name in names if not isinstance(name, Hashable) or name not in dataset.data_vars]
    if absent:
        raise ColumnsError(
            "variables", "has names that are not data variables of the dataset", columns=absent,
            hint=f"{did_you_mean(absent, dataset.data_vars)}the dataset has {listed(dataset.data_vars)}.",
        )  # fmt: skip
    repeated = [name for place, name in enumerate(names) if name in names[:place]]
    if repeated:
        raise ColumnsError(
            "variables", "names variables twice", columns=repeated, hint="name each variable once."
        )
    return names


def keys_of(dataset: xr.Dataset, by: By | CrossedBy) -> Domain | CrossedDomain:
    """Make the domain of a dataset from its coordinates."""
    check_lengths(dataset.sizes, argument="dataset")
    axes = [named(levels) for levels in (by.values() if isinstance(by, Mapping) else [by])]
    names, derived = (
        (list(chain.from_iterable(each)) for each in zip(*axes, strict=True)) if axes else ([], [])
    )
    made = {name for levels in derived for name in levels.names}
    sources = [
        *(name for name in names if name not in made),
        *chain.from_iterable(levels.columns for levels in derived),
    ]
    secret = [name for name in sources if name in dataset.data_vars]
    if secret:
        raise ColumnsError(
            "by", "names data variables, which are secret", columns=secret,
            hint=f"if they are public labels, make them coordinates: dataset.set_coords({listed(secret)}).",
        )  # fmt: skip
    empty = _empty(dataset, sources)
    return crossed_domain_of(empty, by) if isinstance(by, Mapping) else domain_of(empty, by)


def _empty(dataset: xr.Dataset, sources: Sequence[Hashable]) -> xr.DataArray:
    """Make an array with the dimensions and coordinates of a dataset, but without data.

    Dimensions without a source of the keys are cut to length 0.
    """
    has = [name for name in sources if name in dataset.dims or name in dataset.coords]
    needed = {dim for name in has for dim in dataset[name].dims}
    cut = {dim: slice(0) for dim in dataset.dims if dim not in needed}
    sizes = {dim: 0 if dim in cut else size for dim, size in dataset.sizes.items()}
    coordinates = dataset.coords.to_dataset().isel(cut, missing_dims="ignore").coords
    return xr.DataArray(np.zeros([*sizes.values()], np.int8), coords=coordinates, dims=[*sizes])


def check_variables(dataset: xr.Dataset, names: Sequence[Hashable], domain: Domain | CrossedDomain) -> None:
    """Check by names, types and dimensions that all variables can be released together."""
    if any(map(is_hash, names)):
        raise ArgumentError(
            "variables",
            "have names that dask made, which end in a hash of their cells and are secret.",
            hint="rename them with dataset.rename(...), or name arrays before they are put into a dataset.",
        )
    not_numeric = [name for name in names if not _is_numeric(dataset[name].dtype)]
    if not_numeric:
        raise ColumnsError(
            "variables", "names variables that do not hold numbers", columns=not_numeric,
            hint="convert them, or leave them out: variables=[...].",
        )  # fmt: skip
    needed = dims_of(_empty(dataset, domain.sources), domain.sources)
    incomplete = [name for name in names if not set(needed) <= set(dataset[name].dims)]
    if incomplete:
        raise ColumnsError(
            "variables", f"names variables that lack some of the dimensions {listed(needed)} of `by`",
            columns=incomplete, hint="leave them out: variables=[...].",
        )  # fmt: skip
    check_held(names, argument="variables")
    named = {name: companions_of(name) for name in names}
    others = dict.fromkeys([*dataset.dims, *dataset.coords, *domain.by])
    taken = Counter(chain(others, *named.values()))
    clashing = [name for name, each in named.items() if any(taken[one] > 1 for one in each)]
    if clashing:
        raise ColumnsError(
            "variables", "would give two variables of the result the same name", columns=clashing,
            hint=f"rename them; for each variable, the result uses its name, and its name followed by "
            f"{', '.join(f'_{what}' for what in COMPANIONS)}.",
        )  # fmt: skip


def _is_numeric(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in "biuf"


def per_variable(argument: str, given: Any, names: Sequence[Hashable]) -> dict[Hashable, Any]:
    """Return the value of each variable, from a mapping or one value for all."""
    if not isinstance(given, Mapping):
        return dict.fromkeys(names, given)
    unlike = [name for name in dict.fromkeys([*names, *given]) if name not in names or name not in given]
    if unlike:
        raise ColumnsError(
            argument, "must have an entry for each variable and no other", columns=unlike,
            hint="pass a mapping from the variables, or one value for all of them.",
        )  # fmt: skip
    return dict(given)


def quantities_of(names: Sequence[Hashable], bounds: Any, granularity: Any) -> list[Quantity]:
    """Describe what is summed in each variable: values between bounds, or records."""
    limits = per_variable("bounds", bounds, names)
    summed = [name for name in names if limits[name] is not None]
    if granularity is not None and not summed:
        raise ArgumentError(
            "granularity",
            "has no meaning without bounds: counts are whole numbers.",
            hint="leave it out, or pass the bounds of the values.",
        )
    steps = per_variable("granularity", granularity, summed)
    return [Quantity.of(name, limits[name], steps[name]) if name in steps else COUNT for name in names]

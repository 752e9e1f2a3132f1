"""Several variables of a dataset under one privacy loss."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Unpack

import xarray as xr

from pandas_dptree.arrays.coordinates import dims_of
from pandas_dptree.arrays.crossed import CrossedBy, dims_of_axes
from pandas_dptree.arrays.releases import of_dataset
from pandas_dptree.arrays.variables import check_variables, keys_of, names_of, per_variable, quantities_of
from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.crossed_domain import CrossedDomain
from pandas_dptree.hierarchy.levels.combine import By
from pandas_dptree.plans.joint import JointPlan
from pandas_dptree.plans.joint_search import plan_jointly, scale_of_sum
from pandas_dptree.plans.options import CELLS, RUNNING, NoisyOptions, Options, Running, taken_from, takes
from pandas_dptree.plans.running import carry_out

__all__ = ["plan", "release", "tree_counts", "tree_sums"]


def __dir__() -> list[str]:
    """List only the public names, for completion."""
    return __all__


@takes(*CELLS, *RUNNING)
def tree_counts(
    dataset: xr.Dataset,
    by: By | CrossedBy,
    *,
    variables: Sequence[Hashable] | None = None,
    **options: Unpack[Options],
) -> xr.DataTree:
    r"""Count the records of several variables over every node of a hierarchy, under one privacy loss.

    Parameters
    ----------
    dataset : xarray.Dataset
        Each variable holds counts, each of its records in exactly one cell, such as visits, admissions and
        deaths. One person may have records in every variable.
    by : sequence of hashable, or mapping
        As for `pandas_dptree.arrays.tree_counts`, which raises the same errors: the same keys for all
        variables. Each variable needs the dimensions of the keys; unless hierarchies are crossed, it may have
        others.
    variables : list of hashable, optional
        The variables to release; all by default.
    max_contributions : int, or mapping from variables to int, optional
        The largest number of records of one privacy unit in a variable, in all cells together, by default 1.
        The caller is responsible for it.
    **options

    Returns
    -------
    xarray.DataTree
        As for one array: a group per level. A variable named ``visits`` gives ``visits`` and
        ``visits_std_error``, and similar names for other requested columns. ``attrs["dp"]`` states the whole
        loss, and the part of each variable.

    Notes
    -----
    The loss is divided to minimise the sum of the squared errors, each relative to the most that a record can
    add: for counts into equal parts, unless `max_contributions` differs.

    **Privacy.** Shapes and coordinates are public, as for one array. Let a unit have at most :math:`k_v`
    records in variable v. Within a variable, the stated part of the loss covers all indices of its other
    dimensions together (proven for `pandas_dptree.arrays.tree_counts`). A unit may change every variable at
    once, so the losses of the variables add up (sequential composition): neighbouring datasets are neighbours
    in each variable, the noise of the variables is independent, and everything that is shown of one is made
    from its own measurements. The parts are rounded such that they add up to no more than the stated loss,
    exactly. With Gaussian noise under an epsilon and a delta, all measurements are one Gaussian mechanism,
    whose neighbours are apart by :math:`\mu^2 = \sum_v \Delta_v^2 \sum_l \sigma_{vl}^{-2}`, where
    :math:`\Delta_v` is the 2-norm by which a unit changes a level of variable v: the noise is such that this
    needs no more than the stated delta.

    If each record is in one variable only, as in counts by kind of visit, do not add up losses: stack the
    variables with ``dataset.to_dataarray("kind")``. `max_contributions` then applies to all of them together,
    and they cost no more than one.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> wards = xr.Dataset(
    ...     {"visits": ("ward", [90, 40, 75]), "deaths": ("ward", [2, 0, 1])},
    ...     coords={"hospital": ("ward", ["A", "A", "B"])})
    >>> tree = dpt.arrays.several.tree_counts(wards, ["hospital"], epsilon=1.0)
    >>> list(tree["hospital"].data_vars)
    ['visits', 'visits_std_error', 'deaths', 'deaths_std_error']
    """
    own = taken_from(CELLS, options)
    prepared = plan(dataset, by, variables=variables, **own)
    return release(prepared, dataset, **taken_from(RUNNING, options))


@takes(*CELLS, *RUNNING)
def tree_sums(
    dataset: xr.Dataset,
    by: By | CrossedBy,
    *,
    bounds: Any,
    granularity: Any = None,
    variables: Sequence[Hashable] | None = None,
    **options: Unpack[Options],
) -> xr.DataTree:
    """Sum several variables over every node of a hierarchy, under one privacy loss.

    **Privacy**: as for `tree_counts`.

    Parameters
    ----------
    dataset : xarray.Dataset
        Each variable holds values, each cell being one record: see `pandas_dptree.arrays.tree_sums`.
    by, max_contributions
        As for `tree_counts`, which raises the same errors and returns the same kind of table.
    bounds : (float, float), or mapping from variables to such pairs or None
        The least and the greatest value of a cell. A mapping has an entry for each variable; None for one
        that holds counts, whose records are counted beside the sums.
    granularity : float, or mapping from variables to float, optional
        As for `pandas_dptree.tree_sums`.
    variables : list of hashable, optional
        The variables to release; by default those that `bounds` lists, or all.
    **options

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> homes = xr.Dataset(
    ...     {"kwh": ("home", [3.5, 1.25, 4.0]), "people": ("home", [2, 1, 5])},
    ...     coords={"street": ("home", ["Elm", "Elm", "Oak"])})
    >>> tree = dpt.arrays.several.tree_sums(
    ...     homes, ["street"], bounds={"kwh": (0, 5), "people": (0, 8)}, epsilon=1.0)
    >>> list(tree["street"].data_vars)
    ['kwh', 'kwh_std_error', 'people', 'people_std_error']
    """
    if bounds is None:
        raise ArgumentError(
            "bounds",
            "must be given: they limit how much one cell can change a sum.",
            hint='for example bounds={"kwh": (0, 5)}, known without looking at the cells.',
        )
    prepared = plan(
        dataset,
        by,
        variables=variables,
        bounds=bounds,
        granularity=granularity,
        **taken_from(CELLS, options),
    )
    return release(prepared, dataset, **taken_from(RUNNING, options))


@takes(*CELLS)
def plan(
    dataset: xr.Dataset,
    by: By | CrossedBy,
    *,
    variables: Sequence[Hashable] | None = None,
    bounds: Any = None,
    granularity: Any = None,
    **options: Unpack[NoisyOptions],
) -> JointPlan:
    """Plan a release of several variables. Spends nothing, and reads only names, types and coordinates.

    Parameters
    ----------
    dataset, by, variables, max_contributions
        As for `tree_counts`, which raises the same errors.
    bounds, granularity
        As for `tree_sums`: values are summed, instead of counts.
    **options

    Returns
    -------
    JointPlan
        With a plan for each variable.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas_dptree as dpt
    >>> zeros = xr.DataArray(np.zeros(50, int), dims=["state"])
    >>> planned = dpt.arrays.several.plan(
    ...     xr.Dataset({"visits": zeros, "deaths": zeros}), ["state"], epsilon=1.0,
    ...     max_contributions={"visits": 8, "deaths": 1})
    >>> {name: round(each.epsilon, 9) for name, each in planned.plans.items()}
    {'visits': 0.8, 'deaths': 0.2}
    """
    names = names_of(
        dataset, list(bounds) if variables is None and isinstance(bounds, Mapping) else variables
    )
    domain = keys_of(dataset, by)
    check_variables(dataset, names, domain)
    most = per_variable("max_contributions", options.pop("max_contributions", None), names)
    quantities = dict(zip(names, quantities_of(names, bounds, granularity), strict=True))
    scales = [scale_of_sum(each) for each in quantities.values()]
    if isinstance(domain, CrossedDomain):
        for name in names:
            dims_of_axes(dataset[name], domain)
    forest = any(len(dims_of(dataset[name], domain.sources)) < dataset[name].ndim for name in names)
    return plan_jointly(domain, quantities, scales, contributions=most, in_forest=forest, **options)


@takes(*RUNNING)
def release(plan: JointPlan, dataset: xr.Dataset, **options: Unpack[Running]) -> xr.DataTree:
    """Spend the budget of a plan on the variables of a dataset that it names: see `tree_counts`.

    **Privacy**: each call spends the plan's whole privacy loss again.
    """
    tree: xr.DataTree = carry_out({None: of_dataset(plan, dataset)}, options)[None]
    return tree

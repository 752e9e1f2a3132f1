"""Hierarchies over the cells of an array."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import xarray as xr

from pandas_dptree.arrays.coordinates import dims_of, domain_of
from pandas_dptree.arrays.crossed import CrossedBy, crossed_domain_of, dims_of_axes
from pandas_dptree.arrays.releases import check_array_names, of_array
from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.crossed_domain import CrossedDomain
from pandas_dptree.hierarchy.levels.combine import By
from pandas_dptree.output.datatree import is_hash
from pandas_dptree.plans.additive import AdditivePlan
from pandas_dptree.plans.crossed import CrossedPlan
from pandas_dptree.plans.crossed_search import find_crossed_plan
from pandas_dptree.plans.doubtful_arguments import known_total, warn_of_arguments
from pandas_dptree.plans.options import (
    ADDITIVE,
    CELLS,
    RUNNING,
    NoisyOptions,
    Options,
    Running,
    taken_from,
    takes,
)
from pandas_dptree.plans.running import carry_out
from pandas_dptree.plans.search import find_plan
from pandas_dptree.privacy.quantity import COUNT, Quantity

__all__ = ["plan", "release", "tree_counts", "tree_sums"]


@takes(*CELLS, "known", *RUNNING)
def tree_counts(
    array: xr.DataArray,
    by: By | CrossedBy,
    **options: Unpack[Options],
) -> xr.DataTree:
    r"""Count the records of every node of a hierarchy, from an array of counts, under differential privacy.

    Parameters
    ----------
    array : xarray.DataArray
        Counts, each record in exactly one cell. In memory, in a file, or of dask, which then sums the cells
        of each leaf before anything is loaded.
    by : sequence, mapping, or derived levels alone
        The keys, from the coarsest to the finest: names of dimensions and of coordinates along one dimension,
        and levels derived from these by `calendar`, `cut`, `mapping` or `quadtree`. Cells with the same keys
        are added up. A mapping crosses several hierarchies, by name: ``{"place": ["state", "city"], "when":
        "month"}``; each dimension must belong to one of them.
    **options

    Returns
    -------
    xarray.DataTree
        One group per level: ``"/total"``, then one for each key, named like it, with ``count``, ``std_error``
        and other requested columns along a dimension of the level's name. The keys of the level and those
        above are indexed coordinates: ``tree["city"].sel(state="CA")``. (Files keep no indexes:
        ``set_xindex("state")`` restores one, and ``drop_indexes("state")`` before ``to_dataframe()`` makes a
        column of it.) If `by` is only a quadtree, levels are grids: ``"/quad_3"`` is 8 by 8, with the centres
        of its squares as coordinates (without bounds, the mean of the coordinates of their cells, if they are
        numbers). Dimensions that `by` does not use are kept, with a tree for each of their indices.
        Of crossed hierarchies there is a group for each margin, called like its levels, as in
        ``tree["city,month"]``, with a dimension for each axis; it is also
        ``tree.dp.margin(place="city", when="month")``.
        ``attrs["dp"]`` has the provenance, as JSON text.

    Raises
    ------
    ArgumentError
        If an argument cannot be used; `DomainError` and `ColumnsError` are special cases. Bad counts never
        raise: negative or missing ones count as 0, fractions are rounded, and floats are clipped where their
        type begins to skip integers (2**24 for 32 bits, 2**53 for 64).

    Notes
    -----
    **Privacy**: the shape and the coordinates of the array are public, since a dense array has a cell
    whether or not anybody is in it. If they were made from the records, as
    ``groupby(...).size().to_xarray()`` does, bring the array to the public list with ``reindex`` first. As in
    ``tree_counts(frame, by, domain="observed")``, keys that are missing from some level on belong to the leaf
    of the shorter path; cells without a first key, with a gap, on a path that others continue, or outside of
    derived levels are left out because of their coordinates alone. If all cells are, that is an error.

    With ``fit="adaptive"`` the sparsity of a level is estimated from all trees together: a tree much sparser
    than most others may be less accurate than with ``fit="totals"``.

    **Several trees.** With :math:`s` indices along the other dimensions, the counts of one level in all trees
    are a vector with an entry for each pair of an index and a node. A record adds one to a single entry, and
    a unit with at most k records adds k such unit vectors, wherever they are, in one tree or in many. By the
    triangle inequality the vector moves by at most k in the 1-norm and in the 2-norm when the unit is added
    or removed; when its records are replaced, by k differences of two unit vectors, of 1-norm 2 and 2-norm
    :math:`\sqrt 2`, so by at most 2k and :math:`\sqrt 2\,k`. These are the sensitivities of a level of a
    single tree, so the noise is the same for any number of trees, and the stated loss covers all of them. A
    replaced record may have been in another tree: the total of each is secret, and is measured. `known` is
    refused if there are several trees.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> visits = xr.DataArray(
    ...     [[30, 5], [20, 9], [70, 2]], dims=["city", "month"],
    ...     coords={"city": ["Fresno", "Oakland", "Seattle"], "state": ("city", ["CA", "CA", "WA"])})
    >>> tree = dpt.arrays.tree_counts(visits, ["state", "city"], epsilon=1.0)
    >>> list(tree.children), dict(tree["state"].sizes)
    (['total', 'state', 'city'], {'month': 2, 'state': 2})
    """
    prepared = plan(array, by, **taken_from(ADDITIVE, options))
    return release(prepared, array, **taken_from(RUNNING, options))


@takes(*CELLS, *RUNNING)
def tree_sums(
    array: xr.DataArray,
    by: By | CrossedBy,
    *,
    bounds: Any,
    granularity: Any = None,
    **options: Unpack[Options],
) -> xr.DataTree:
    """Sum an array of values over every node of a hierarchy, under differential privacy.

    Parameters
    ----------
    array : xarray.DataArray
        Values, each cell being one record, such as the reading of a household's meter in an hour. Not sums
        over several people: each of them could change the cell by as much as the bounds allow.
    by : sequence, mapping, or derived levels alone
        As for `tree_counts`, which raises the same errors.
    bounds : (float, float)
        The least and the greatest value of a cell; values outside are clipped. Missing ones add nothing.
    granularity : float, optional
        As for `pandas_dptree.tree_sums`.
    **options

    Returns
    -------
    xarray.DataTree
        As for `tree_counts`. For an array named ``kwh`` the sums are called ``kwh`` and their errors
        ``kwh_std_error``; without a name, ``sum`` and ``sum_std_error``. A name that dask made, which ends in
        a hash of the cells, is ignored.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas_dptree as dpt
    >>> kwh = xr.DataArray(np.ones((4, 24)), dims=["meter", "hour"], name="kwh",
    ...                    coords={"street": ("meter", ["Elm", "Elm", "Oak", "Oak"])})
    >>> sums = dpt.arrays.tree_sums(kwh, ["street"], bounds=(0, 5), epsilon=1.0, max_contributions=24)
    >>> dict(sums["street"].sizes), list(sums["street"].data_vars)
    ({'hour': 24, 'street': 2}, ['kwh', 'kwh_std_error'])
    """
    if bounds is None:
        raise ArgumentError(
            "bounds",
            "must be given: they limit how much one cell can change a sum.",
            hint="for example bounds=(0, 500), known without looking at the cells.",
        )
    own = taken_from(ADDITIVE, options)
    prepared = plan(array, by, bounds=bounds, granularity=granularity, **own)
    return release(prepared, array, **taken_from(RUNNING, options))


@takes(*CELLS, "known", "target")
def plan(
    array: xr.DataArray,
    by: By | CrossedBy,
    *,
    bounds: Any = None,
    granularity: Any = None,
    **options: Unpack[NoisyOptions],
) -> AdditivePlan | CrossedPlan:
    """Plan a release of an array. Spends nothing, and reads only coordinates.

    Parameters
    ----------
    array, by
        As for `tree_counts`, which raises the same errors.
    bounds, granularity
        As for `tree_sums`: values are summed, instead of counts.
    **options

    Returns
    -------
    AdditivePlan or CrossedPlan
        For one tree. With further dimensions it covers all trees together: see `tree_counts`. Of crossed
        hierarchies a `CrossedPlan`.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas_dptree as dpt
    >>> array = xr.DataArray(np.zeros((50, 12), int), dims=["state", "month"])
    >>> dpt.arrays.plan(array, ["state"], rho=0.5, split="uniform").noise_scales.round(3).tolist()
    [1.414, 1.414]
    """
    if bounds is None and granularity is not None:
        raise ArgumentError(
            "granularity",
            "has no meaning without bounds: counts are whole numbers.",
            hint="leave it out, or pass the bounds of the values.",
        )
    domain = crossed_domain_of(array, by) if isinstance(by, Mapping) else domain_of(array, by)
    name = "sum" if array.name is None or is_hash(array.name) else array.name
    quantity = COUNT if bounds is None else Quantity.of(name, bounds, granularity)
    check_array_names(array, quantity)
    if isinstance(domain, CrossedDomain):
        dims_of_axes(array, domain)
        return find_crossed_plan(domain, quantity, **options)
    several = len(dims_of(array, domain.sources)) < array.ndim
    if options.get("known") is not None and several:
        raise ArgumentError(
            "known",
            "cannot be used with several trees: it does not say which tree it is for.",
            hint="leave it out, or name all dimensions in `by`.",
        )
    found = find_plan(domain, quantity, in_forest=several, **options)
    warn_of_arguments(found.loss, domain, known_total(found.known))
    return found


@takes(*RUNNING)
def release(plan: AdditivePlan | CrossedPlan, array: xr.DataArray, **options: Unpack[Running]) -> xr.DataTree:
    """Spend the budget of a plan on an array: see `tree_counts`, or `tree_sums` for a plan for sums.

    The plan is from `plan`, or any other with a domain and without a privacy unit. Its keys, and the columns
    of derived levels, are looked up by name among the dimensions and coordinates of the array; cells whose
    keys its domain lacks are left out. A quadtree without bounds needs arrays of the same shape.

    **Privacy**: each call spends the plan's whole privacy loss again, for all trees together.
    """
    tree: xr.DataTree = carry_out({None: of_array(plan, array)}, options)[None]
    return tree

"""Plans together with their arrays or datasets, ready to be released.

Cells are read only by `Release.read`; everything before depends on names, types and coordinates.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import xarray as xr

from pandas_dptree.arrays.coordinates import check_array, check_domain, leaves_of
from pandas_dptree.arrays.crossed import of_crossed
from pandas_dptree.arrays.layout import lay_out_forest
from pandas_dptree.arrays.variables import check_variables, names_of
from pandas_dptree.errors import ArgumentError, kind_of_object
from pandas_dptree.hierarchy.crossed_domain import CrossedDomain
from pandas_dptree.hierarchy.domain import SOURCES, Domain
from pandas_dptree.hierarchy.known_counts import Known
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.ingest.cells import check_cells, sum_cells
from pandas_dptree.ingest.frames import warn_if_released
from pandas_dptree.output.datatree import check_free, check_held, companions_of
from pandas_dptree.output.empty_tables import totals_of, usual_causes
from pandas_dptree.output.frames import COMPANIONS
from pandas_dptree.output.progress import Done
from pandas_dptree.plans.additive import AdditivePlan
from pandas_dptree.plans.crossed import CrossedPlan
from pandas_dptree.plans.doubts import doubts_of
from pandas_dptree.plans.execute import (
    columns_of,
    exact_leaves,
    finishing_steps,
    linear_estimates,
    measured,
)
from pandas_dptree.plans.joint import JointPlan
from pandas_dptree.plans.running import Finish, Origin, Outcome, Release, Resources
from pandas_dptree.privacy.quantity import COUNT, Quantity

__all__ = ["check_array_names", "of_array", "of_dataset"]


def of_array(plan: AdditivePlan | CrossedPlan, array: xr.DataArray) -> Release:
    """Check that an array can be released by a plan, also as one variable of several, and read no cells."""
    known = isinstance(plan, AdditivePlan | CrossedPlan)
    if not known or plan.domain is None or plan.privacy_unit is not None:
        raise ArgumentError(
            "plan",
            "must have a domain and no privacy unit: cells do not show whose records they hold.",
            hint="make one with array.dp.plan(by, ...), and state max_contributions; a plan for a dataset "
            "is released by dataset.dp.release(plan), and a plan for a distribution by "
            "array.dp.cdf(dim, plan=plan).",
        )
    check_array(array)
    check_cells(array)
    warn_if_released(array)
    check_array_names(array, plan.quantity)
    if isinstance(plan, CrossedPlan):
        return of_crossed(plan, array)
    dims = check_domain(array, plan.domain)
    others = [dim for dim in array.dims if dim not in dims]
    if others and any(least.any() for least in plan.known.least):
        raise ArgumentError(
            "plan",
            "has known counts, but does not say which tree they are for.",
            hint="plan without `known`, or name all dimensions in `by`.",
        )
    n_trees = math.prod(array.sizes[dim] for dim in others)
    if n_trees > 1 and plan.neighbors == "replace" and not plan.in_forest:
        raise ArgumentError(
            "plan",
            f"is for one tree, and the array has {n_trees:,}: rows that are replaced may move between them.",
            hint="make the plan for the array, with array.dp.plan(...), or name all dimensions in `by`.",
        )
    leaf, forest = leaves_of(array, dims, plan.domain), _forest(plan, max(1, n_trees))
    quantities = {plan.quantity.name: plan.quantity}

    def read(resources: Resources) -> Finish:
        sums = sum_cells(array, dims, leaf, plan.tree.n_leaves, plan.quantity)
        if not n_trees:  # zeros are measured, but not shown
            sums = np.zeros(plan.tree.n_leaves, dtype=np.int64)
        return partial(finish, exact_leaves(forest, [plan.quantity], sums.ravel(), resources))

    def finish(leaves: Sequence[IntArray], origin: Origin, done: Done) -> Outcome:
        (values,) = measured([forest], leaves, origin.source, done)
        done()
        provenance = plan.provenance(origin)
        if others:  # the result also has their indices, which come from the array
            provenance["domain_source"] = "observed"
        columns = columns_of(plan.quantity.name, forest, values)
        linear = linear_estimates({plan.quantity.name: forest}, [values], origin)
        tree = lay_out_forest(plan, array, others, columns, provenance)
        doubts = doubts_of({plan.quantity.name: (forest, values)}, plan.domain)
        totals = totals_of(tree["total"].to_dataset(), quantities)
        return Outcome(tree, totals, usual_causes(), doubts, linear)

    steps = finishing_steps({plan.quantity.name: plan})
    returns = partial(_is_of, {plan.quantity.name: array}, plan.domain)
    return Release(plan=plan, read=read, effort=plan.tree.n_leaves, steps=steps, returns=returns)


def check_array_names(array: xr.DataArray, quantity: Quantity) -> None:
    """Check that the variables of the result can have names of their own."""
    check_held([quantity.name], argument="array")
    check_free(array, companions_of(quantity.column))


def of_dataset(plan: JointPlan, dataset: xr.Dataset) -> Release:
    """Check that a dataset can be released by a plan, and read no cells."""
    if not isinstance(plan, JointPlan):
        raise ArgumentError(
            "plan",
            f"must be one for several variables, not {kind_of_object(plan)}.",
            hint='make one with dataset.dp.plan(by, ...); release one variable with dataset["visits"].dp.',
        )
    others = [name for name, each in plan.plans.items() if each.quantity.column not in (None, name)]
    shared = [name for name, each in plan.plans.items() if each.count is not None or each is plan.units]
    if plan.means or others or shared:
        raise ArgumentError(
            "plan",
            "has means, distinct units, sums under other names, or sums with the noise of a count, which are "
            "only possible for tables of records.",
            hint="make one for the variables with dataset.dp.plan(by, ...).",
        )
    names = names_of(dataset, list(plan.plans))
    check_variables(dataset, names, plan.hierarchy)
    warn_if_released(dataset)
    variables = {
        name: of_array(each, dataset[name])
        for name, each in plan.plans.items()
        if isinstance(each, AdditivePlan | CrossedPlan)
    }

    def read(resources: Resources) -> Finish:
        return partial(finish, {name: each.read(resources) for name, each in variables.items()})

    def finish(unfinished: Mapping[Hashable, Finish], origin: Origin, done: Done) -> Outcome:
        parts: dict[Hashable, Outcome] = {}
        for name, finish_variable in unfinished.items():
            if parts:
                done()
            parts[name] = finish_variable(origin, done)
        together = _merged(plan, {name: part.table for name, part in parts.items()}, origin)
        totals = {name: total for name, part in parts.items() for total in part.totals.values()}
        doubts = [doubt for part in parts.values() for doubt in part.doubts]
        linear = {str(name): each for name, part in parts.items() for each in part.linear.values()}
        return Outcome(together, totals, usual_causes(), doubts, linear)

    return Release(
        plan=plan,
        read=read,
        effort=sum(each.effort for each in variables.values()),
        steps=[step for each in variables.values() for step in each.steps],
        returns=partial(_is_of, {name: dataset[name] for name in plan.plans}, plan.hierarchy),
    )


def _is_of(arrays: Mapping[Hashable, xr.DataArray], domain: Domain | CrossedDomain, kept: object) -> bool:
    """Whether a kept table is a tree with the other dimensions and coordinates of these arrays, by name."""
    if not isinstance(kept, xr.DataTree):
        return False
    total = next(iter(kept.children.values())).to_dataset()
    if isinstance(domain, CrossedDomain):
        return set(arrays) <= set(total)
    for name, array in arrays.items():
        dims = check_domain(array, domain)
        others = {dim: array.sizes[dim] for dim in array.dims if dim not in dims}
        if name not in total or dict(total[name].sizes) != others:
            return False
        labelled = [dim for dim in others if dim in array.indexes]
        if not all(array.indexes[dim].equals(total.indexes.get(dim)) for dim in labelled):
            return False
    return True


def _merged(plan: JointPlan, trees: Mapping[Hashable, xr.DataTree], origin: Origin) -> xr.DataTree:
    """Merge the released trees of several variables."""
    renamed = []
    for name, tree in trees.items():
        own = (
            {}
            if plan.plans[name].quantity != COUNT
            else {"count": name} | {what: f"{name}_{what}" for what in COMPANIONS}
        )
        renamed.append({key: _renamed(group.to_dataset(), own) for key, group in tree.children.items()})
    together = xr.DataTree.from_dict(
        {
            # Shared variables come from the same coordinates and the same domain.
            f"/{key}": xr.merge([tree[key] for tree in renamed], compat="override", join="override")
            for key in renamed[0]
        }
    )
    sources = [json.loads(tree.attrs["dp"])["domain_source"] for tree in trees.values()]
    source = max(sources, key=SOURCES.index)
    together.attrs["dp"] = json.dumps(plan.provenance(origin) | {"domain_source": source})
    return together


def _renamed(group: xr.Dataset, names: Mapping[str, Hashable]) -> xr.Dataset:
    return group.rename({old: new for old, new in names.items() if old in group.data_vars})


def _forest(plan: AdditivePlan, n: int) -> AdditivePlan:
    """Plan n parallel trees, each like the plan's: their noise is that of one."""
    if n == 1:
        return plan
    tree = plan.tree
    known = Known(
        *(tuple(tree.tile(nodes, n) for nodes in each) for each in (plan.known.exact, plan.known.least))
    )
    return replace(
        plan,
        tree=tree.copies(n),
        domain=None,
        known=known,
    )

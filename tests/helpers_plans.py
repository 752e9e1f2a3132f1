"""Checks that plans spend no more than they state, and trees that are many copies of one."""

import math
from fractions import Fraction

import numpy as np

import pandas_dptree as dpt
from pandas_dptree.mechanisms.additive import Gaussian
from pandas_dptree.privacy.composition import joint_gaussian_delta
from pandas_dptree.privacy.conversions import zcdp_delta, zcdp_rho
from pandas_dptree.privacy.level_losses import float_above

BY = ["region", "district"]
PLACES = dpt.datasets.clinics()[BY].drop_duplicates()
DOMAIN = dpt.Domain.from_frame(PLACES, by=BY)


def spends_no_more_than_stated(plan):
    """Add up, exactly, what the noise of all levels costs together."""
    measured = plan.strategy
    scales = np.tile(measured.noise_scales, len(plan.totals))
    sensitivity = measured.sensitivity(neighbors=plan.neighbors, max_contributions=plan.max_contributions)
    if measured.noise.spent(plan.loss, sensitivity, scales) <= measured.noise.budget(plan.loss):
        return True
    return measured.noise.delta(plan.loss.epsilon, scales, sensitivity) <= plan.loss.delta


def quantiles_spend_no_more(plan):
    """Add up, exactly, what draws and trees cost together."""
    stated = plan.loss.exact
    parts = [each.loss.exact for each in (plan.trees, plan.draws) if each is not None]
    for name in ("epsilon", "delta", "rho"):
        if sum(getattr(part, name) or 0 for part in parts) > (getattr(stated, name) or 0):
            return False
    if plan.trees is not None and not spends_no_more_than_stated(plan.trees):
        return False
    return plan.draws is None or draws_spend_no_more(plan.draws, len(plan.q))


def draws_spend_no_more(draws, n_quantiles):
    """Add up what the depths of draws cost: each an epsilon, or an eighth of its square."""
    depths, epsilon, most = math.ceil(math.log2(n_quantiles + 1)), Fraction(draws.epsilon), draws.loss.exact
    if most.epsilon is not None and depths * epsilon <= most.epsilon:
        return True
    rho = depths * epsilon**2 / 8
    if draws.permutes:
        return False
    if most.rho is not None:
        return rho <= most.rho
    least = draws.loss.rounded_down
    return zcdp_delta(float_above(rho), least.epsilon) <= least.delta


OPTIONS = {
    "split": "optimal", "neighbors": "add_remove", "max_contributions": 1, "level_weights": None,
    "objective": "levels", "consistency": "integer",
}  # fmt: skip
LOSSES = [
    {"epsilon": 0.7}, {"rho": 0.13}, {"epsilon": 1.1, "delta": 1e-6}, {"epsilon": 40.0, "delta": 1e-3},
]  # fmt: skip


def spends_no_more(plans, loss):
    """Tell, in exact fractions, whether the noise that is drawn keeps to the loss."""
    noise, scales = plans[0].noise, [plan.unit_noise_scales for plan in plans]
    spent, budgets, deltas = [], [], []
    for plan, scale in zip(plans, scales, strict=True):
        spent.append(noise.spent(plan.loss, plan.sensitivity, scale))
        budgets.append(noise.budget(plan.loss))
        deltas.append(Fraction(plan.loss.delta))
    if loss.kind != "approximate":
        within = all(own <= budget for own, budget in zip(spent, budgets, strict=True))
        return within and sum(budgets) <= noise.budget(loss)
    if isinstance(noise, Gaussian):
        pairs = [(scale, plan.sensitivity) for plan, scale in zip(plans, scales, strict=True)]
        implied = sum(spent) <= Fraction(zcdp_rho(loss.epsilon, loss.delta))
        return implied or joint_gaussian_delta(loss.epsilon, pairs) <= loss.delta
    within = all(
        own <= budget or noise.delta(plan.loss.epsilon, scale, plan.sensitivity) <= plan.loss.delta
        for own, budget, plan, scale in zip(spent, budgets, plans, scales, strict=True)
    )
    return within and sum(budgets) <= Fraction(loss.epsilon) and sum(deltas) <= Fraction(loss.delta)


def copies(one, times):
    """Put copies of a tree below one root, so that a release of it is many releases of the tree."""
    counts = [np.broadcast_to(c, n) for c, n in zip(one.child_counts, one.level_sizes, strict=False)]
    ends = np.tile(np.broadcast_to(one.leaf_levels, one.n_leaves), times) + 1
    return dpt.Tree((np.array([times]), *(np.tile(count, times) for count in counts)), ends)


def even_split(levels, consistency):
    """Split evenly over levels; the total gets nothing, or next to nothing where it has to be measured."""
    total = 1e-3 if consistency == "none" and 1 in levels else 0.0
    return {"total": total, **{f"level_{level}": (1 - total) / len(levels) for level in levels}}


def by_node(table, column, one):
    """Give the values of each copy, shape (copies, listed nodes of the tree)."""
    values = table[column].to_numpy()[1:]
    sizes = np.array([one.n_listed(level) for level in range(one.depth + 1)])
    times = len(values) // sizes.sum()
    return np.hstack([level.reshape(times, -1) for level in np.split(values, sizes.cumsum()[:-1] * times)])

"""What several plans for the same records spend together."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from pandas_dptree.mechanisms.additive import Gaussian
from pandas_dptree.mechanisms.sampling import SMALLEST_SCALE
from pandas_dptree.plans.measurement import Measurement
from pandas_dptree.plans.units import UnitPlan
from pandas_dptree.privacy.composition import joint_gaussian_delta
from pandas_dptree.privacy.level_losses import LevelLoss, together
from pandas_dptree.privacy.loss import PrivacyLoss, exact
from pandas_dptree.privacy.sensitivity import TreeSensitivity

__all__ = ["joint_delta", "loss_together", "spent_together", "within_loss"]

FloatArray = npt.NDArray[np.float64]


def _moved_together(plans: Sequence[Measurement]) -> list[tuple[FloatArray, TreeSensitivity]]:
    """Return the noise scales of plans and how far a unit moves them, each in one of its patterns.

    Counts of distinct units and those of their rows are one entry: a unit in many nodes has few rows in each
    of them. All others may be in any of their patterns, whatever the others are in.
    """
    rows = next((plan for plan in plans if plan.statistic == "count"), None)
    entries = []
    for plan in plans:
        if isinstance(plan, UnitPlan) and rows is not None:
            scales = np.concatenate([rows.unit_noise_scales, plan.unit_noise_scales])
            entries.append((scales, plan.sensitivity_with(rows.max_contributions)))
        elif plan is not rows or not any(isinstance(each, UnitPlan) for each in plans):
            entries.append((plan.unit_noise_scales, plan.sensitivity))
    return entries


def loss_together(plans: Sequence[Measurement]) -> LevelLoss:
    """Return what plans of the same noise spend together at most, as an epsilon and as a rho."""
    return together(plans[0].noise.loss_together(scales, moves) for scales, moves in _moved_together(plans))


def spent_together(loss: PrivacyLoss, plans: Sequence[Measurement]) -> Fraction:
    """Return exactly what plans of the same noise cost together, in the currency of its budget."""
    noise = plans[0].noise
    return sum((noise.spent(loss, moves, scales) for scales, moves in _moved_together(plans)), Fraction())


def within_loss(loss: PrivacyLoss, plans: Sequence[Measurement]) -> bool:
    """Check whether plans for the same records together keep to a loss.

    Losses of one kind add up. Gaussian noise is one Gaussian mechanism, charged for all plans jointly.
    """
    spending = [plan for plan in plans if plan._spends]
    if all((plan.loss.rho is None) == (loss.rho is None) for plan in spending):
        parts = [plan.loss.to_dict() for plan in spending]
        if all(
            sum((exact(part.get(name, 0.0)) for part in parts), Fraction()) <= exact(most)
            for name, most in loss.to_dict().items()
        ):
            return True
    gaussian = all(plan.noise.euclidean for plan in spending)
    if any(plan.loss.rho is None for plan in spending) or loss.kind == "pure":
        return False
    if loss.kind == "zcdp":
        return gaussian and spent_together(loss, spending) <= Gaussian().budget(loss)
    stated = sum((exact(plan.loss.rho or 0.0) for plan in spending), Fraction())
    spent = spent_together(loss, spending) if gaussian else stated
    if min(spent, stated) <= Gaussian().accepted_budget(loss):
        return True
    least = loss.rounded_down
    return least.epsilon is not None and joint_delta(least.epsilon, spending) <= least.delta


def joint_delta(epsilon: float, plans: Sequence[Measurement]) -> float:
    """Return a delta of the plans together: 1 unless their noise composes as Gaussian noise does."""
    if not all(plan.noise.euclidean for plan in plans):
        return 1.0
    moved = _moved_together(plans)
    # At the smallest scale, more budget changes nothing.
    at_the_end = min(scales.min() for scales, _ in moved) <= SMALLEST_SCALE
    return 1.0 if at_the_end else joint_gaussian_delta(epsilon, moved)

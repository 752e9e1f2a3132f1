"""Budgets of Laplace noise, and the delta that a peer or a list of all sums finds."""

import math

import numpy as np

from pandas_dptree.privacy.composition import laplace_delta, largest_budget
from pandas_dptree.privacy.simulated_gaussian import simulation

TARGETS = [(1.0, 1e-6), (0.1, 1e-8), (3.0, 1e-5)]


def compose(parts):
    first, *others = parts
    for other in others:
        first = first.compose(other)
    return first


def shares_of(kind, levels):
    shares = {
        "equal": np.ones(levels),
        "doubling": 2.0 ** np.arange(levels),
        "one": np.eye(1, levels)[0] + 1e-3,
    }
    return shares[kind] / shares[kind].sum()


def laplace_budget(epsilon, delta, sensitivity, shares):
    def delta_at(total):
        return laplace_delta(epsilon, sensitivity.l1 / (total * shares), sensitivity)

    total = largest_budget(delta_at, delta, at_least=epsilon)
    return total, delta_at(total)


def listed_profile(epsilon, moves):
    """Compute the delta of discrete Gaussian noise on counts with known moves, from all sums of losses."""
    loss, mass = np.zeros(1), np.ones(1)
    for scale, shift in moves:
        x = np.arange(-math.ceil(10 * scale), math.ceil(10 * scale) + 1)
        terms = np.exp(-((x / scale) ** 2) / 2)
        loss = np.add.outer(loss, shift * (shift + 2 * x) / (2 * scale**2)).ravel()
        mass = np.multiply.outer(mass, terms / terms.sum()).ravel()
    return float(mass @ np.maximum(1 - np.exp(epsilon - loss), 0))


def smoothing_of(scales, moves, l2_squared, width):
    """The simulation of levels that all move alike."""
    return simulation(
        scales**2, lambda kernels: math.fsum(1 / (scales**2 - kernels)), moves, l2_squared, width
    )

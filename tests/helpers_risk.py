"""The best guess between two distributions of a release, whose outcomes are listed."""

import itertools

import numpy as np


def power(p, q, falsely_accused):
    """Return what the most powerful test finds under p that accuses under q (Neyman and Pearson)."""
    p, q = p[p > 0], q[p > 0]
    order = np.argsort(q / p, kind="stable")
    accused, found = (np.concatenate([[0.0], np.cumsum(each[order])]) for each in (q, p))
    return np.interp(falsely_accused, accused, found)


def laplace(scale):
    x = np.arange(np.ceil(30 * scale))
    return x, np.exp(-x / scale) * np.tanh(1 / (2 * scale))


def gaussian(scale):
    x = np.arange(np.ceil(9 * scale))
    mass = np.exp(-((x / scale) ** 2) / 2)
    return x, mass / (2 * mass.sum() - 1)


def moved(noise, scale, shift):
    """Return the masses of a count with noise, before and after it moves, by the ratio of the two."""
    x, mass = noise(scale)
    before, after = np.zeros((2, 2 * len(x) - 1 + shift))
    before[: len(before) - shift] = after[shift:] = np.concatenate([mass[:0:-1], mass])
    with np.errstate(divide="ignore"):
        _, group = np.unique((np.log(after) - np.log(before)).round(9), return_inverse=True)
    return np.bincount(group, before), np.bincount(group, after)


def product(pairs):
    """Return the masses of independent counts together, in either data set."""
    p = q = np.ones(1)
    for before, after in pairs:
        p, q = np.multiply.outer(p, before).ravel(), np.multiply.outer(q, after).ravel()
    return p, q


def moves_of_a_flat_tree(rows, neighbors):
    """List how far the root and two leaves move if one unit of up to so many rows is another."""
    units = [
        (first, second) for first in range(rows + 1) for second in range(rows + 1) if first + second <= rows
    ]
    before = [(0, 0)] if neighbors == "add_remove" else units
    for old, new in itertools.product(before, units):
        leaves = np.subtract(new, old)
        yield tuple(np.abs([leaves.sum(), *leaves]).tolist())

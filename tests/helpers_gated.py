"""All outputs of gated releases of small worlds, listed one by one."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import mpmath
import numpy as np

Path = tuple[int, ...]
MOST_CELLS = 1_000_000
"""Worlds with more outcomes are left out."""


class TooManyError(Exception):
    """The outcomes are too many to be listed."""


@dataclass(frozen=True)
class Release:
    """A gated release, or one with a defect that the enumeration has to find."""

    scales: tuple[float, ...]
    thresholds: tuple[int | None, ...]
    gated: bool = True
    noise_on_empty: bool = True  # on public nodes

    @property
    def depth(self) -> int:
        return len(self.scales) - 1


class Node(NamedTuple):
    parent: int | None
    level: int
    counts: tuple[int, int]  # in either data set


def world(base: dict[Path, int], without: Sequence[Path], rows: Sequence[Path]) -> list[Node]:
    """List the nodes above the rows of the unit, from the root down.

    All other nodes are shown, given their parents, with the same probabilities in both data sets.
    """
    touched = sorted(
        {leaf[:n] for leaf in (*without, *rows) for n in range(len(leaf) + 1)}, key=lambda p: (len(p), p)
    )
    common = {path: sum(n for leaf, n in base.items() if leaf[: len(path)] == path) for path in touched}
    place = {path: i for i, path in enumerate(touched)}
    return [
        Node(
            place[path[:-1]] if path else None,
            len(path),
            tuple(common[path] + sum(leaf[: len(path)] == path for leaf in unit) for unit in (without, rows)),
        )
        for path in touched
    ]  # fmt: skip


@functools.cache
def masses(scale: float, numbers: Any = float) -> tuple[int, Any]:
    """Return the reach and the masses of the noise, up to a tail of less than 1e-18 (or 1e-45)."""
    if numbers is float:
        reach = math.ceil(9 * scale)
        terms = np.exp(-((np.arange(-4 * reach, 4 * reach + 1) / scale) ** 2) / 2)
        return reach, terms[3 * reach : -3 * reach] / terms.sum()
    reach = math.ceil(14.5 * scale)
    terms = [mpmath.exp(-((mpmath.mpf(x) / scale) ** 2) / 2) for x in range(-2 * reach, 2 * reach + 1)]
    whole = mpmath.fsum(terms)
    return reach, np.array([term / whole for term in terms[reach:-reach]], dtype=object)


def outcomes(node: Node, release: Release, numbers: Any) -> tuple[Any, Any]:
    """Return, for both data sets, the masses of the shown values and of being hidden by its own count."""
    scale, threshold = release.scales[node.level], release.thresholds[node.level]
    if math.isinf(scale):
        return np.ones((2, 1)), np.zeros(2)
    reach, mass = masses(scale, numbers)
    if threshold is None:
        lowest = min(node.counts) - reach
    else:
        lowest = threshold + 1
    highest = max(max(node.counts) + reach, lowest)
    shown = np.zeros((2, highest - lowest + 1), dtype=mass.dtype)
    for side, count in enumerate(node.counts):
        if not count and (threshold is not None or not release.noise_on_empty):
            continue
        values = count + np.arange(-reach, reach + 1)
        seen = values >= lowest
        shown[side, values[seen] - lowest] = mass[seen]
    hidden = 1 - shown.sum(axis=1)
    if threshold is None and release.noise_on_empty:
        hidden = hidden * 0  # only tails are missing
    if node.counts[0] == node.counts[1] or not shown[0].any() or not shown[1].any():
        shown = shown.sum(axis=1, keepdims=True)  # the values tell nothing more
    return shown[:, (shown != 0).any(axis=0)], hidden


def joint_masses(
    nodes: Sequence[Node], release: Release, numbers: Any = float
) -> Iterator[tuple[tuple[bool, ...], list[Any]]]:
    """List which nodes are shown, and for either data set the masses of all their values."""
    each = [outcomes(node, release, numbers) for node in nodes]
    if math.prod(shown.shape[1] + 1 for shown, _ in each) > MOST_CELLS:
        raise TooManyError
    gated = [release.gated or release.thresholds[node.level] is None for node in nodes]

    def listed(seen: tuple[bool, ...], joint: list[Any]) -> Iterator[tuple[tuple[bool, ...], list[Any]]]:
        if len(seen) == len(nodes):
            yield seen, joint
            return
        place = len(seen)
        parent, (shown, hidden) = nodes[place].parent, each[place]
        if parent is None or seen[parent] or not gated[place]:
            yield from listed(
                (*seen, True),
                [np.multiply.outer(joint[side], shown[side]).ravel() for side in (0, 1)],
            )
            joint = [joint[side] * hidden[side] for side in (0, 1)]
        yield from listed((*seen, False), joint)

    yield from listed((), [np.ones(1), np.ones(1)])


def true_deltas(
    nodes: Sequence[Node], release: Release, epsilon: float, numbers: Any = float
) -> tuple[Any, Any]:
    """Return delta for either order of the data sets, up to the mass of omitted tails."""
    factor = math.exp(epsilon) if numbers is float else mpmath.exp(epsilon)
    first, second = numbers(0), numbers(0)
    for _, (p, q) in joint_masses(nodes, release, numbers):
        first += np.maximum(p - factor * q, 0).sum()
        second += np.maximum(q - factor * p, 0).sum()
    return first, second


def all_worlds(
    release: Release,
    rows: int,
    neighbors: str,
    counts: Sequence[int],
    caps: Sequence[int | None] = (),
    children: int = 2,
) -> Iterator[list[Node]]:
    """List worlds with each choice of counts of leaves, and of the rows of a unit that the caps permit."""
    leaves = list(itertools.product(range(children), repeat=release.depth))
    units = [unit for unit in itertools.combinations_with_replacement(leaves, rows) if permitted(unit, caps)]
    others = [()] if neighbors == "add_remove" else units
    for filled in itertools.product(counts, repeat=len(leaves)):
        base = dict(zip(leaves, filled, strict=True))
        for unit in units:
            for other in others:
                if other <= unit:
                    yield world(base, other, unit)


def permitted(unit: Sequence[Path], caps: Sequence[int | None]) -> bool:
    """Whether no node of a level holds more rows than its cap."""
    nodes = [
        (cap, Counter(leaf[:level] for leaf in unit if len(leaf) >= level))
        for level, cap in enumerate(caps)
        if cap is not None
    ]
    return all(rows <= cap for cap, held in nodes for rows in held.values())


def largest_delta(
    release: Release,
    rows: int,
    neighbors: str,
    counts: Sequence[int],
    epsilon: float,
    caps: Sequence[int | None] = (),
    children: int = 2,
) -> float:
    """Return the largest delta of all worlds that can be listed."""
    largest = 0.0
    worlds = all_worlds(release, rows, neighbors, counts, caps, children)
    for nodes in {tuple(without_shift(node, release) for node in nodes) for nodes in worlds}:
        with suppress(TooManyError):
            largest = max(largest, *true_deltas(nodes, release, epsilon))
    return largest


def without_shift(node: Node, release: Release) -> Node:
    """Return a node with the same outcomes: how many records it has matters only near its threshold."""
    scale, threshold = release.scales[node.level], release.thresholds[node.level]
    if math.isinf(scale):
        return node._replace(counts=(0, 0))
    certain = 0 if release.noise_on_empty else 1
    if threshold is not None:
        certain = threshold + 1 + masses(scale)[0]
    shift = max(min(node.counts) - certain, 0)
    return node._replace(counts=(node.counts[0] - shift, node.counts[1] - shift))

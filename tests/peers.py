"""Other people's ways to the same table, from their papers: what ours is held against."""

from __future__ import annotations

import bisect

import numpy as np

from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.sampling import byte_source, discrete_gaussian


def chebyshev_top_down(
    tree: Tree,
    leaf_counts: np.ndarray,
    *,
    noise_scale: float,
    knows_total: bool = False,
    rng: np.random.Generator,
) -> list[np.ndarray]:
    """Release whole counts that add up as InfTDA does: measure the levels alike, then project from the top.

    Of Boninsegna and Silvestri, "Differentially private release of hierarchical origin/destination data with
    a TopDown approach", 2025, with discrete Gaussian noise of one scale. There the total is public
    (`knows_total`). Where it is not, it is measured like the rest, and counts as 0 where it is negative.
    """
    source = byte_source(rng)
    exact = tree.roll_up(leaf_counts)
    noisy = [level + discrete_gaussian(noise_scale, len(level), source) for level in exact]
    released = [exact[0] if knows_total else np.maximum(noisy[0], 0)]
    for level in range(tree.depth):
        counts = np.broadcast_to(tree.child_counts[level], tree.level_sizes[level])
        families = np.split(noisy[level + 1], np.cumsum(counts)[:-1])
        pairs = zip(families, released[-1].tolist(), strict=True)
        released.append(np.concatenate([chebyshev_family(family, total) for family, total in pairs]))
    return released


def chebyshev_family(noisy: np.ndarray, total: int) -> np.ndarray:
    """Find whole non-negative members that add up to a total, the largest change being least.

    Many tables change no member by more. This is theirs: all members are moved alike, those that would fall
    below 0 up to 0, and what is then too much is taken off the smallest first, which empties them.
    """
    if total == 0:
        return np.zeros_like(noisy)
    alike = -((noisy.sum() - total) // len(noisy))  # (total - sum) / n, rounded up
    least = max(abs(alike), -noisy.min())
    furthest = max(
        least,
        bisect.bisect_left(
            range(int(noisy.max()) + 1), True, key=lambda t: bool(np.maximum(noisy - t, 0).sum() <= total)
        ),
    )
    start = alike if furthest == least else 1 - furthest
    members = np.maximum(noisy + start, 0)
    order = np.argsort(noisy)
    spare = (members - np.maximum(noisy - furthest, 0))[order]
    taken_before = np.cumsum(spare) - spare
    members[order] -= np.clip(members.sum() - total - taken_before, 0, spare)
    return members

"""Other people's ways to the same table, from their papers: what ours is held against."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

import numpy as np
import opendp.prelude as dp

from pandas_dptree.distribution.tree_strategy import TreeStrategy
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.mechanisms.additive import Laplace
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


def opendp_prefixes(
    n_bins: int, branching_factor: int, epsilon: float
) -> tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]]:
    """Estimate cumulative counts as OpenDP does: a b-ary tree, Laplace noise on all levels, consistency.

    After Hay, Rastogi, Miklau and Suciu, "Boosting the accuracy of differentially private histograms through
    consistency", 2010. A row is added or removed. The noise has the smallest scale for which OpenDP certifies
    epsilon. Cumulative counts are what its `make_cdf` divides by the last of them.

    Returns
    -------
    measure : callable
        From the counts of the bins to the noisy nodes of the tree.
    solve : callable
        From noisy nodes to cumulative counts.
    """
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    tree = dp.t.make_b_ary_tree(*space, leaf_count=n_bins, branching_factor=branching_factor)
    noisy = dp.binary_search_chain(
        lambda scale: tree >> dp.m.then_laplace(scale=scale), d_in=1, d_out=epsilon, bounds=(0.01, 1e6)
    )
    consistent = dp.t.make_consistent_b_ary_tree(branching_factor=branching_factor)
    return (
        lambda counts: np.array(noisy(counts.tolist())),
        lambda nodes: np.cumsum(consistent(nodes.tolist())[:n_bins]),
    )


def opendp_branching_factor(size: int) -> int:
    """Give the branching factor that OpenDP recommends for data of a size.

    By Qardaji, Yang and Li, "Understanding hierarchical methods for differentially private histograms", 2013.
    """
    dp.enable_features("contrib")
    return int(dp.t.choose_branching_factor(size))


def even_tree(n_bins: int, branching_factor: int, epsilon: float) -> TreeStrategy:
    """Describe the same measurements as ours: a tree with equal noise on all levels, the root among them."""
    depth = 1
    while branching_factor**depth < n_bins:
        depth += 1
    scales = ((depth + 1) / epsilon,) * (depth + 1)
    return TreeStrategy(n_bins, Laplace(), (branching_factor,) * depth, scales)


class StableKeys(NamedTuple):
    """A release of the keys of one column, none of which is public."""

    release: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    """From the exact counts of all keys to the places of those that are shown, and their noisy counts."""
    noise_scale: float
    shown_from: int
    """The smallest noisy count that is shown."""


def opendp_stable_keys(kind: Literal["laplace", "gaussian"], epsilon: float, delta: float) -> StableKeys:
    """Release large counts as OpenDP does: noise on each key that occurs, shown from a threshold on.

    A row is added or removed. The noise has the smallest scale for which OpenDP certifies epsilon, and the
    threshold is the smallest for which it certifies delta, plus one: version 0.16.0 shows keys whose noisy
    count is the threshold itself, and its delta leaves them out (opendp/opendp#2922). With Gaussian noise a
    part of delta is for the noise, that with which the smallest count is found with probability 0.95.
    """
    dp.enable_features("contrib")
    keys = dp.map_domain(dp.atom_domain(T="i64"), dp.atom_domain(T="i64"))
    size = dp.absolute_distance(T="i64")
    one_row: Any = (1, 1, 1)

    def noisy(scale: float, threshold: int) -> Any:
        if kind == "laplace":
            return dp.m.make_laplace_threshold(keys, dp.l01inf_distance(size), scale, threshold)
        return dp.m.make_gaussian_threshold(keys, dp.l02inf_distance(size), scale, threshold)

    def smallest_scale(rest: float) -> float:
        if kind == "laplace":
            return dp.binary_search(lambda s: noisy(s, 10**6).map(one_row)[0] <= epsilon, bounds=(0.1, 1e4))

        def spends(scale: float) -> float:
            profile, _ = dp.c.make_zCDP_to_approxDP(noisy(scale, 10**6)).map(one_row)
            return profile.epsilon(rest)

        return dp.binary_search(lambda s: spends(s) <= epsilon, bounds=(0.1, 1e4))

    found = []
    for part in [1.0] if kind == "laplace" else np.arange(0.1, 1, 0.1).tolist():
        scale = smallest_scale((1 - part) * delta)
        certified = dp.binary_search(
            lambda t, s=scale, d=part * delta: noisy(s, t).map(one_row)[1] <= d, bounds=(1, 10**5)
        )
        found.append((certified + 1.645 * scale, scale, certified + 1))
    _, scale, shown_from = min(found)
    measurement = noisy(scale, shown_from)

    def release(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        shown = measurement(dict(enumerate(counts.tolist())))
        return np.array(list(shown), dtype=np.int64), np.array(list(shown.values()), dtype=np.int64)

    return StableKeys(release, float(scale), shown_from)


def opendp_gaussian_scale(rho: float) -> Callable[[float], float]:
    """Find the smallest Gaussian noise on counts for which OpenDP certifies rho, by what a unit moves.

    What it moves is the root of the sum of its squares: of k rows, at most one in a cell, the root of k.
    """
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    return lambda moves: float(
        dp.binary_search(lambda s: dp.m.make_gaussian(*space, scale=s).map(moves) <= rho, bounds=(0.1, 1e5))
    )


def opendp_gaussian_counts(scale: float, counts: np.ndarray) -> np.ndarray:
    """Release counts with OpenDP's Gaussian noise."""
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    return np.array(dp.m.make_gaussian(*space, scale=scale)(counts.astype(int).tolist()))


def opendp_laplace_scale(epsilon: float) -> Callable[[float], float]:
    """Find the smallest Laplace noise on counts for which OpenDP certifies epsilon, by what a unit moves."""
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="f64")
    return lambda moves: float(
        dp.binary_search(
            lambda s: dp.m.make_laplace(*space, scale=s).map(moves) <= epsilon, bounds=(0.1, 1e5)
        )
    )


def opendp_laplace_counts(scale: float, counts: np.ndarray) -> np.ndarray:
    """Release counts with OpenDP's Laplace noise."""
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="f64")
    return np.array(dp.m.make_laplace(*space, scale=scale)(counts.astype(int).tolist()))


def pipeline_dp_noise(epsilon: float, delta: float) -> Callable[[float], float]:
    """Ask PipelineDP for the standard deviation of Gaussian noise on counts, by what a unit moves."""
    import pipeline_dp.dp_computations as computations

    create = computations.GaussianMechanism.create_from_epsilon_delta
    return lambda moves: float(create(epsilon, delta, moves).std)


def pipeline_dp_people(
    people: Iterable[int], nodes: Iterable[str], public: list[str], most: int, epsilon: float
) -> np.ndarray:
    """Count the people of each public node with PipelineDP: each person in `most` of them, Laplace noise."""
    import pipeline_dp

    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=0)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    counts = engine.aggregate(
        list(zip(people, nodes, strict=True)),
        pipeline_dp.AggregateParams(
            metrics=[pipeline_dp.Metrics.PRIVACY_ID_COUNT],
            noise_kind=pipeline_dp.NoiseKind.LAPLACE,
            max_partitions_contributed=most,
            max_contributions_per_partition=1,
        ),
        pipeline_dp.DataExtractors(
            privacy_id_extractor=lambda row: row[0],
            partition_extractor=lambda row: row[1],
            value_extractor=lambda row: 0,
        ),
        public_partitions=public,
    )
    accountant.compute_budgets()
    found = dict(counts)
    return np.array([found[node].privacy_id_count for node in public])


def opendp_quantile(
    bounds: tuple[float, float], candidates: int, q: float, epsilon: float
) -> Callable[[np.ndarray], float]:
    """Release a quantile as OpenDP does: one of equally spaced candidates, the ends of the bounds included.

    After Smith, "Privacy-preserving statistical estimation with optimal convergence rates", 2011, by
    exponential noise on scores, which is permute-and-flip: McKenna and Sheldon, "Permute-and-flip: a new
    mechanism for differentially private selection", 2020. A row is added or removed. The noise has the
    smallest scale for which OpenDP certifies epsilon.
    """
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    metric, measure = dp.symmetric_distance(), dp.max_divergence()

    def noisy(scale: float, public: list[float]) -> Any:
        return dp.m.make_private_quantile(domain, metric, measure, public, alpha=q, scale=scale)

    scale = dp.binary_search(lambda s: noisy(s, [*bounds]).map(1) <= epsilon, bounds=(1e-3, 1e6))
    measurement = noisy(scale, np.linspace(*bounds, candidates).tolist())
    return lambda values: float(measurement(values.tolist()))

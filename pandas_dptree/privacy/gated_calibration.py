r"""Noise scales and thresholds of a gated release that keep to a privacy loss.

**Privacy**: everything here is public and depends on no record. What is returned has been checked by
`gated_delta` or `gated_zcdp`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.privacy.composition import GaussianProfile, largest_budget
from pandas_dptree.privacy.conversions import zcdp_rho
from pandas_dptree.privacy.gated import (
    bounded_together,
    gated_delta,
    gated_zcdp,
    largest_exposure,
    old_nodes,
    worse_order,
)
from pandas_dptree.privacy.sensitivity import Neighbors
from pandas_dptree.privacy.tree_sensitivity import (
    LevelCapacities,
    uncounted_levels,
    uncounted_sensitivity,
)
from pandas_dptree.privacy.whole_numbers import smallest

__all__ = ["GatedNoise", "gated_noise", "gated_noise_zcdp", "gated_thresholds"]

_FOUND = 1.6449  # a node is found with probability 0.95 if it is so many scales above the threshold
_FARTHEST = 40.0  # beyond so many scales and the rows of a unit, noise is as good as bounded
_PARTS_KEPT = 1 - np.geomspace(1e-4, 0.2, 12)  # parts of the largest rho that are tried: the optimum is flat


class GatedNoise(NamedTuple):
    """The noise of each level of a gated release, from the root down."""

    noise_scales: tuple[float, ...]  # inf for a public level that is not measured
    thresholds: tuple[int | None, ...]  # None for a public level


def gated_noise(
    epsilon: float,
    delta: float,
    shares: Sequence[float],
    private: Sequence[bool],
    *,
    neighbors: Neighbors,
    max_contributions: int = 1,
    caps: Sequence[int | None] = (),
) -> GatedNoise:
    r"""Find noise scales and thresholds for which a gated release is (epsilon, delta)-DP.

    The shares fix the proportions of :math:`S_l/\sigma_l^2`, where :math:`S_l` is the largest squared
    distance of the counts of a level, the same for all levels without `caps`. They are at least 0 on public
    levels, above 0 on private ones. The other arguments are those of `gated_delta`. More noise leaves more of
    delta to the thresholds. Of twelve sizes of the noise, the one with the smallest mean of :math:`\tau_l +
    1.645\,\sigma_l` over private levels is chosen. That is about the count of a node that is found with
    probability 0.95.

    >>> noise = gated_noise(1.0, 1e-6, [1, 1, 1], [False, True, True], neighbors="add_remove")
    >>> [round(scale, 2) for scale in noise.noise_scales], noise.thresholds
    ([7.32, 7.32, 7.32], (None, 36, 36))
    """
    parts = _checked(shares, private)
    unit: Any = {"neighbors": neighbors, "max_contributions": max_contributions, "caps": caps}
    moved = [level.l2_squared for level in uncounted_sensitivity(len(parts), **unit)]
    levels = uncounted_levels(len(parts), max_contributions, caps)
    together = bounded_together(max_contributions, sum(private), neighbors)
    everything = [[max_contributions] * len(parts)] * (1 if neighbors == "add_remove" else 2)

    def scales_of(rho: float) -> list[float]:
        return [
            math.sqrt(squares / (2 * rho * part)) if part else math.inf
            for squares, part in zip(moved, parts.tolist(), strict=True)
        ]

    def delta_of(rho: float) -> float:
        return old_nodes(scales_of(rho), levels, everything, together=together).delta(epsilon)

    largest = largest_budget(delta_of, delta, at_least=zcdp_rho(epsilon, delta))
    found = {}
    for rho in largest * _PARTS_KEPT:
        scales = scales_of(float(rho))
        thresholds = _extreme_thresholds(epsilon, delta, scales, private, **unit)
        if thresholds is not None:
            found[_found_from(scales, thresholds)] = scales
    for _, scales in sorted(found.items()):
        thresholds = gated_thresholds(epsilon, delta, scales, private, **unit)
        if thresholds is not None:
            return GatedNoise(tuple(scales), thresholds)
    raise ArgumentError(
        "epsilon",
        f"is too small for thresholds: {quote(epsilon)}, with a delta of {quote(delta)}.",
        hint="allow a larger privacy loss.",
    )


def gated_noise_zcdp(
    rho: float,
    delta: float,
    shares: Sequence[float],
    private: Sequence[bool],
    *,
    neighbors: Neighbors,
    max_contributions: int = 1,
    caps: Sequence[int | None] = (),
) -> GatedNoise:
    """Find noise scales and thresholds for which a gated release is delta-approximately rho-zCDP.

    Rho fixes the scales, and delta the thresholds. The other arguments are those of `gated_noise`.
    """
    parts = _checked(shares, private)
    unit: Any = {"neighbors": neighbors, "max_contributions": max_contributions, "caps": caps}
    levels = uncounted_levels(len(parts), max_contributions, caps)
    scales = tuple(
        math.sqrt(level.l2_squared / (2 * rho) * (1 + 2**-40) / part) if part else math.inf
        for level, part in zip(uncounted_sensitivity(len(parts), **unit), parts.tolist(), strict=True)
    )
    most = -math.log1p(-delta) * (1 - 2**-40)
    thresholds = tuple(
        _threshold(scale, max_contributions, level, most) if is_private else None
        for scale, level, is_private in zip(scales, levels, private, strict=True)
    )
    noise = GatedNoise(scales, thresholds)
    spent = gated_zcdp(*noise, **unit)
    assert spent[0] <= rho and spent[1] <= delta
    return noise


def gated_thresholds(
    epsilon: float,
    delta: float,
    noise_scales: Sequence[float],
    private: Sequence[bool],
    *,
    neighbors: Neighbors,
    max_contributions: int = 1,
    caps: Sequence[int | None] = (),
) -> tuple[int | None, ...] | None:
    """Find small thresholds for which noise of these scales is (epsilon, delta)-DP; None if none are.

    The threshold of level l is the smallest for which delta is kept to if all k rows of a unit are in top
    nodes of that level (see `pandas_dptree.privacy.gated`). If another unit exceeds delta, all thresholds
    rise by a 256th of the noise scale, at least by one, until none does.
    """
    unit: Any = {"neighbors": neighbors, "max_contributions": max_contributions, "caps": caps}
    thresholds = _extreme_thresholds(epsilon, delta, noise_scales, private, **unit)
    while thresholds is not None:
        if gated_delta(epsilon, noise_scales, thresholds, **unit) <= delta:
            return thresholds
        levels = list(zip(noise_scales, thresholds, strict=True))
        if all(
            threshold is None or threshold > max_contributions + _FARTHEST * scale
            for scale, threshold in levels
        ):
            return None  # delta is exceeded for another reason
        thresholds = tuple(
            None if threshold is None else threshold + math.ceil(scale / 256) for scale, threshold in levels
        )
    return None


def _extreme_thresholds(
    epsilon: float,
    delta: float,
    noise_scales: Sequence[float],
    private: Sequence[bool],
    *,
    neighbors: Neighbors,
    max_contributions: int,
    caps: Sequence[int | None],
) -> tuple[int | None, ...] | None:
    """Find the smallest thresholds that keep to delta if the rows are all in top nodes of one level."""
    n, rows = len(noise_scales), max_contributions
    levels = uncounted_levels(n, rows, caps)
    stays = [] if neighbors == "add_remove" else [[rows] * n]  # in the other data set, nothing is new
    together = bounded_together(rows, sum(private), neighbors)
    if old_nodes(noise_scales, levels, [*stays, [rows] * n], together=together).delta(epsilon) > delta:
        return None
    thresholds: list[int | None] = []
    for place, (scale, level, is_private) in enumerate(zip(noise_scales, levels, private, strict=True)):
        most = 0.0
        if is_private:
            above = [rows] * place + [0] * (n - place)
            profile = old_nodes(noise_scales, levels, [*stays, above], together=together)
            most = _most_exposed(epsilon, delta, profile)
            if not most > 0:
                return None
        thresholds.append(_threshold(scale, rows, level, most) if is_private else None)
    return tuple(thresholds)


def _most_exposed(epsilon: float, delta: float, profile: GaussianProfile) -> float:
    r"""Return about the largest `exposure` of new nodes beside old nodes with this profile.

    Each step solves :math:`(1 - q) + q\,\delta'(\epsilon - \log q) = \delta` for the first q, with the second
    one as it was. :math:`\delta'` decreases, so that the steps approach the solution from below. The other
    order of neighbours is checked last.
    """
    most = 0.0
    for _ in range(3):
        most = math.log1p(-profile.delta(epsilon + most)) - math.log1p(-delta)
        if most <= 0:
            return 0.0
    while worse_order(epsilon, profile, most) > delta:
        most *= 1 - 2.0**-10
    return most


def _threshold(scale: float, rows: int, level: LevelCapacities, most: float) -> int:
    """Return the smallest threshold whose largest exposure is at most `most`."""
    return smallest(
        lambda threshold: largest_exposure(scale, threshold, rows, level) <= most, start=level.capacity
    )


def _found_from(scales: Sequence[float], thresholds: Sequence[int | None]) -> float:
    """Return the mean over private levels of about the smallest count that is found with probability 0.95."""
    found = [t + _FOUND * scale for scale, t in zip(scales, thresholds, strict=True) if t is not None]
    return math.fsum(found) / len(found)


def _checked(shares: Sequence[float], private: Sequence[bool]) -> npt.NDArray[np.float64]:
    """Check the shares, and return them as parts of one."""
    parts = np.asarray(shares, dtype=np.float64)
    fits = parts.ndim == 1 and len(parts) == len(private) and np.isfinite(parts).all() and (parts >= 0).all()
    if not fits or not (parts[np.asarray(private, dtype=bool)] > 0).all():
        raise ArgumentError(
            "shares",
            "must be one number of at least 0 for each level, above 0 for private ones, "
            f"not {quote(shares)}.",
            hint="for example equal shares.",
        )
    if not any(private):
        raise ArgumentError(
            "private", "names no level.", hint="without private levels, use noise without thresholds."
        )
    return np.asarray(parts / parts.sum())

r"""How the privacy budget is divided among the levels of a hierarchy whose keys are not all public.

Even shares find the same sizes on all levels; doubling ones find small nodes on the deepest, since the
parents of large nodes are larger still, so that upper levels need shares for accuracy alone. Plans are judged
by the deepest level, because it decides how many records of a table have a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, get_args

from pandas_dptree.errors import ArgumentError
from pandas_dptree.mechanisms.private_levels import LEVEL_NOISES, LevelNoise, PrivateMechanism
from pandas_dptree.mechanisms.private_levels.independent import IndependentLevels
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Neighbors, Sensitivity
from pandas_dptree.privacy.tree_sensitivity import uncounted_sensitivity

__all__ = [
    "FOUND_WITH",
    "PRIVATE_SPLITS",
    "PrivateSplit",
    "best_noise",
    "deepest_found_from",
]

PrivateSplit = Literal["optimal", "doubling", "uniform"]

PRIVATE_SPLITS: Final[tuple[PrivateSplit, ...]] = get_args(PrivateSplit)

FOUND_WITH: Final = 0.95
"""Plans are compared by the smallest count of a node that is shown with this probability."""

_DOUBLING_UP_TO: Final = 4
"""Up to so many private levels, truncated Laplace noise has shares that double.

With more, upper levels would find large nodes alone, and the total would have a large error.
"""


def deepest_found_from(noise: LevelNoise) -> int:
    """Return the smallest count of a node of the deepest level that is shown with probability 0.95."""
    found = noise.found_from(1 - FOUND_WITH)[-1]
    assert found is not None  # the deepest level is private
    return found


def best_noise(
    mechanism: PrivateMechanism,
    split: PrivateSplit | Sequence[float],
    loss: PrivacyLoss,
    n_levels: int,
    n_public: int,
    *,
    neighbors: Neighbors,
    max_contributions: int,
    caps: Sequence[int | None] = (),
) -> tuple[LevelNoise, tuple[float, ...]]:
    """Find the noise and the shares with the smallest `deepest_found_from`.

    The mechanism "auto" tries all that can have the loss. The split "optimal" gives the deepest level twice
    what doubling does. These are the shares of truncated Laplace noise on up to four private levels, which
    has even ones on more. Gaussian noise has these, even or doubling shares: a node is shown below shown ones
    alone, so the private level with the most noise decides, and it is to have as little as possible.
    """
    kinds = [noise for name, noise in LEVEL_NOISES.items() if mechanism in ("auto", name)]
    possible = [noise for noise in kinds if loss.rho is None or noise is not IndependentLevels]
    if not possible:
        raise ArgumentError(
            "mechanism",
            "cannot be 'truncated_laplace' with a rho: this noise is planned by an epsilon and a delta.",
            hint="leave `mechanism` out for Gaussian noise, or pass an epsilon in place of the rho.",
        )
    unit: Any = {"neighbors": neighbors, "max_contributions": max_contributions, "caps": caps}
    found: list[tuple[LevelNoise, tuple[float, ...]]] = []
    failure: ArgumentError | None = None
    for noise in possible:
        shares = _shares(noise, split, n_public, uncounted_sensitivity(n_levels, **unit))
        try:
            found.append((noise.calibrate(loss, shares, n_public, **unit), shares))
        except ArgumentError as error:  # the loss is too small for this noise or these shares
            failure = failure or error
    if not found:
        assert failure is not None
        raise failure
    return min(found, key=lambda each: deepest_found_from(each[0])) if len(found) > 1 else found[0]


def _shares(
    noise: type[LevelNoise],
    split: PrivateSplit | Sequence[float],
    n_public: int,
    moved: Sequence[Sensitivity],
) -> tuple[float, ...]:
    """Return the share of each level, of which it is known how far a unit can move it."""
    if not isinstance(split, str):
        return tuple(split)
    n_levels = len(moved)
    even, doubling = (1.0,) * n_levels, tuple(2.0**level for level in range(n_levels))
    if split != "optimal":
        return doubling if split == "doubling" else even
    deepest = (*doubling[:-1], 2 * doubling[-1])
    if noise is IndependentLevels:
        return deepest if n_levels - n_public <= _DOUBLING_UP_TO else even

    def largest_variance(shares: Sequence[float]) -> float:
        levels = zip(moved[n_public:], shares[n_public:], strict=True)
        return max(level.l2_squared / share for level, share in levels) * sum(shares)

    return min((even, doubling, deepest), key=largest_variance)

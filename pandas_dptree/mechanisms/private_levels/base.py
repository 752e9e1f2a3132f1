"""What mechanisms for hierarchies whose keys are not all public have in common.

All nodes of a public level are released. Of a private level, only nodes that hold a record are looked at, and
only those with a large noisy count are released.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt

from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.sampling import ByteSource
from pandas_dptree.privacy.level_losses import NOTHING, LevelLoss
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Neighbors

__all__ = ["Keys", "LevelNoise", "NonemptyNodes", "ReleasedLevel"]

Keys = npt.NDArray[Any]
"""Nodes of one level, increasing and without repetition. What identifies a node depends on the hierarchy."""

ReleasedLevel = tuple[Keys, IntArray]
"""The released nodes of a level, and their noisy counts."""


class NonemptyNodes(Protocol):
    """The nodes that hold a record, with their exact counts."""

    def public_counts(self) -> list[IntArray]:
        """Count the records of all nodes of each public level, from the root down."""

    def upward(self) -> Iterator[tuple[Keys, IntArray]]:
        """Yield the nodes that hold a record, and their counts, of each private level from the deepest."""

    def below(self, level: int, shown: Keys) -> tuple[Keys, IntArray]:
        """Return the nodes of a private level that hold a record and whose parents are in `shown`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelNoise(ABC):
    """The noise and the thresholds of all levels of a hierarchy, the first `n_public` of them public."""

    name: ClassVar[str]
    """The name of the mechanism, in ``attrs`` and JSON."""
    in_words: ClassVar[str]
    """The noise, in a headline."""
    bound_name: ClassVar[str]
    """The column of a table that says how far counts can be from the truth."""

    n_public: int

    @classmethod
    @abstractmethod
    def calibrate(
        cls,
        loss: PrivacyLoss,
        shares: Sequence[float],
        n_public: int,
        *,
        neighbors: Neighbors,
        max_contributions: int,
        caps: Sequence[int | None] = (),
    ) -> Self:
        """Find the noise that spends a loss, divided among the levels in proportion to the shares.

        Of one unit at most `max_contributions` rows are kept, and in one node of a level at most its cap, if
        there are `caps` and it has one.
        """

    @abstractmethod
    def keeps_to(
        self,
        loss: PrivacyLoss,
        shares: Sequence[float],
        *,
        neighbors: Neighbors,
        max_contributions: int,
        caps: Sequence[int | None] = (),
    ) -> bool:
        """Whether the noise follows from the shares and spends at most the loss."""

    @abstractmethod
    def level_losses(
        self, *, neighbors: Neighbors, max_contributions: int, caps: Sequence[int | None] = ()
    ) -> list[LevelLoss]:
        """Return what the noise of each level spends, as an epsilon and as a rho."""

    def delta(
        self,
        epsilon: float,
        *,
        neighbors: Neighbors,
        max_contributions: int,
        caps: Sequence[int | None] = (),
    ) -> float:
        """Return a delta of the release at an epsilon, rounded up; 1 if only its loss is known."""
        return 1.0

    def selection_loss(
        self, *, neighbors: Neighbors, max_contributions: int, caps: Sequence[int | None] = ()
    ) -> LevelLoss:
        """Return what the choice of nodes spends in addition; nothing by default."""
        return NOTHING

    @property
    @abstractmethod
    def noise_scales(self) -> list[float]:
        """The noise scale of each level, in counts."""

    @property
    @abstractmethod
    def variances(self) -> list[float]:
        """The variance of the noise of each level, in squared counts."""

    @property
    @abstractmethod
    def thresholds(self) -> list[int | None]:
        """What the noisy count of a released node exceeds, on each level; None for public ones."""

    @property
    def largest_unseen(self) -> list[int | None]:
        """The most records in a node that is not shown, with certainty; None if there is no such bound."""
        return [None] * len(self.noise_scales)

    @abstractmethod
    def measure(
        self, nodes: NonemptyNodes, source: ByteSource, done: Callable[[], None]
    ) -> list[ReleasedLevel]:
        """Measure all levels from the root down: exact counts become noisy ones.

        The result holds all nodes of public levels, and those of private ones that are released. `done` is
        called after each level.
        """

    @abstractmethod
    def radii(self, released: Sequence[ReleasedLevel], confidence: float) -> list[int]:
        """Bound the magnitudes of all noise of each level together, with the probability `confidence`."""

    @abstractmethod
    def detection_probability(self, counts: IntArray) -> list[npt.NDArray[np.float64]]:
        """Return for each level the probability that nodes with these counts are shown, whatever is below."""

    @abstractmethod
    def found_from(self, failure_probability: float) -> list[int | None]:
        """Return for each private level the smallest count that is shown but for at most a probability."""

    @abstractmethod
    def to_list(self) -> list[dict[str, Any]]:
        """Serialize the noise of each level as plain JSON."""

    @classmethod
    @abstractmethod
    def from_list(cls, levels: Sequence[Mapping[str, Any]], n_public: int) -> Self:
        """Restore what `to_list` serialized."""

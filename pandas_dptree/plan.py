"""The release, described before it happens."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from pandas_dptree._version import __version__
from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.consistency import Consistency, estimate
from pandas_dptree.estimation.least_squares import FloatArray, Variances, propagate
from pandas_dptree.hierarchy.domain import Domain, level_names
from pandas_dptree.hierarchy.tree import IntArray, Tree
from pandas_dptree.ingest.arrays import leaf_counts
from pandas_dptree.ingest.bounding import count_leaves
from pandas_dptree.ingest.frames import contributions, discreetly
from pandas_dptree.mechanisms.additive import AdditiveNoise, measure
from pandas_dptree.mechanisms.sampling import ByteSource, byte_source, random_words
from pandas_dptree.output.frames import release_frame
from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.privacy.sensitivity import Neighbors, count_sensitivity

__all__ = ["Plan"]

_LEAST_VARIANCE = 1e-30
"""Stands in for noise so small that its variance is 0 in floating point, so that averages are defined."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Plan:
    """What a release will measure, with how much noise, and how accurate it will be.

    Made by `pandas_dptree.plan`. A plan is a function of the domain and the privacy parameters alone:
    it can be printed and discussed before anything is spent.

    Attributes
    ----------
    tree : Tree
        The shape of the hierarchy.
    domain : Domain or None
        Its labels; None for a plan of numbers alone.
    loss : PrivacyLoss
        The privacy loss of one release.
    noise : AdditiveNoise
        The kind of noise.
    neighbors : {"add_remove", "replace"}
        What may differ between neighbouring data sets.
    privacy_unit : hashable or None
        The column that names whom to protect; None where each row is protected by itself.
    max_contributions : int
        How many rows of a unit are counted.
    consistency : {"none", "linear", "nonnegative", "integer"}
        How the noisy nodes become estimates.
    shares : numpy.ndarray, shape (n_levels,)
        Each level's part of the budget; they sum to one.

    Examples
    --------
    >>> import pandas_dptree as dpt
    >>> plan = dpt.plan(dpt.Tree.from_branching([2, 3]), epsilon=1.0, split="uniform")
    >>> plan.noise_scales.round(3).tolist()
    [3.0, 3.0, 3.0]
    """

    tree: Tree
    domain: Domain | None
    loss: PrivacyLoss
    noise: AdditiveNoise
    neighbors: Neighbors
    privacy_unit: Hashable | None
    max_contributions: int
    consistency: Consistency
    shares: FloatArray

    @property
    def level_names(self) -> tuple[Hashable, ...]:
        """Names of the levels, from the root to the leaves."""
        return level_names(self.domain or self.tree)

    @property
    def noise_scales(self) -> FloatArray:
        """Noise scale of each level, in counts; inf where nothing is measured."""
        sensitivity = count_sensitivity(neighbors=self.neighbors, max_contributions=self.max_contributions)
        return self.noise.noise_scales(self.loss, sensitivity, self.shares)

    @property
    def std_errors(self) -> FloatArray:
        """Expected standard error of each level, in counts: the root mean square over its nodes."""
        errors = self._node_std_errors(self._variances())
        return np.sqrt([self.tree.mean_listed(level, error**2) for level, error in enumerate(errors)])

    def to_frame(self) -> pd.DataFrame:
        """Lay the plan out as a frame.

        Returns
        -------
        pandas.DataFrame
            One row per level: ``level``, ``nodes``, ``share``, ``noise_scale``, ``std_error``.
        """
        return pd.DataFrame(
            {
                "level": list(self.level_names),
                "nodes": [self.tree.n_listed(level) for level in range(self.tree.depth + 1)],
                "share": self.shares,
                "noise_scale": self.noise_scales,
                "std_error": self.std_errors,
            }
        )

    def release(self, data: Any, *, rng: np.random.Generator | None = None) -> pd.DataFrame:
        """Spend the budget: measure the records, and return the table.

        Parameters
        ----------
        data : dataframe or numpy.ndarray
            The records, one row each; or whole numbers, the exact counts of the leaves in the order of
            the tree, shape ``(n_leaves,)``. Negative counts count as 0. Of exact counts the caller
            answers for `max_contributions`.
        rng : numpy.random.Generator, optional
            Makes the release repeatable, for tests and simulation: it is then not private. By default
            all randomness comes from the operating system's cryptographic source.

        Returns
        -------
        pandas.DataFrame
            One row per node: ``level``, the keys, ``count`` and ``std_error``. The standard error is
            that of the unbiased linear estimate (of the noise, with ``consistency="none"``).
            ``attrs["dp"]`` tells how it was made; it is for display and proves nothing.

        Raises
        ------
        ArgumentError
            If `data` is neither, or does not fit the plan.
        ColumnsError
            If a column is missing or repeated, or is of a type that cannot equal the domain's labels.

        Notes
        -----
        **Privacy**: each call spends the plan's whole privacy loss anew. The answer's rows, columns and
        types follow from the plan alone. Records outside the domain are dropped, and nothing tells how many.
        """
        if rng is not None and not isinstance(rng, np.random.Generator):
            raise ArgumentError(
                "rng",
                f"must be a numpy.random.Generator, not {type(rng).__name__}.",
                hint="leave it out for a private release; numpy.random.default_rng(0) for a repeatable test.",
            )
        source = byte_source(rng)
        counts = self.tree.roll_up(self._leaf_counts(data, source))
        noisy = measure(self.noise, counts, self.noise_scales, source)
        variances = self._variances()
        return release_frame(
            Domain.from_tree(self.tree) if self.domain is None else self.domain,
            estimate(self.tree, noisy, variances, self.consistency, partial(random_words, source)),
            self._node_std_errors(variances),
            self._account(rng),
        )

    def _leaf_counts(self, data: Any, source: ByteSource) -> IntArray:
        """Count the records of each leaf, exactly. The answer is secret."""
        if isinstance(data, np.ndarray):
            if self.privacy_unit is not None:
                raise ArgumentError(
                    "data",
                    "holds counts, in which nobody can tell the rows of one privacy unit.",
                    hint="plan with max_contributions alone, and answer for it; or release the records.",
                )
            return leaf_counts(data, self.tree)
        if self.domain is None:
            raise ArgumentError(
                "data",
                f"must be an array of the {self.tree.n_leaves} leaf counts, for a plan made from a Tree.",
                hint="plan with a Domain to release a frame of records.",
            )
        if self.privacy_unit is None and self.max_contributions > 1:
            raise ArgumentError(
                "max_contributions",
                "needs a `privacy_unit`: rows of a frame cannot be bounded without knowing whose they are.",
                hint='name the column, for example privacy_unit="person_id".',
            )
        given = contributions(data, self.domain, privacy_unit=self.privacy_unit)
        count = partial(
            count_leaves,
            given,
            self.tree.n_leaves,
            max_contributions=self.max_contributions,
            random_words=partial(random_words, source),
        )
        return discreetly(self.domain.by, count)

    def _variances(self) -> Variances:
        noise = np.maximum(self.noise.variance(self.noise_scales), _LEAST_VARIANCE)
        return propagate(self.tree, list(noise))

    def _node_std_errors(self, variances: Variances) -> list[FloatArray]:
        """Standard error of every node, one array per level, folded where all nodes agree."""
        if self.consistency == "none":
            return [np.sqrt(v)[None] for v in self.noise.variance(self.noise_scales)]
        return [np.sqrt(v) for v in variances.final]

    def _account(self, rng: np.random.Generator | None) -> dict[str, Any]:
        """Tell how the release was made, in plain JSON."""
        scales = zip(self.level_names, self.noise_scales.tolist(), strict=True)
        return {
            "mechanism": self.noise.name,
            **self.loss.to_dict(),
            "neighbors": self.neighbors,
            "privacy_unit": None if self.privacy_unit is None else str(self.privacy_unit),
            "max_contributions": self.max_contributions,
            "consistency": self.consistency,
            "noise_scale": {str(name): scale if np.isfinite(scale) else None for name, scale in scales},
            "rng": "operating system" if rng is None else "numpy.random.Generator: not private",
            "version": __version__,
        }

    def __repr__(self) -> str:
        """Print the plan as a table."""
        loss = ", ".join(f"{name}={value:g}" for name, value in self.loss.to_dict().items() if value)
        unit = "each row" if self.privacy_unit is None else f"each {self.privacy_unit}"
        head = (
            f"Plan: {self.noise.name} noise, {loss}, protecting {unit} "
            f"(up to {self.max_contributions} row(s), {self.neighbors}), consistency {self.consistency!r}"
        )
        formats = {"share": "{:.3f}".format, "noise_scale": "{:.4g}".format, "std_error": "{:.4g}".format}
        return f"{head}\n{self.to_frame().to_string(index=False, formatters=formats)}"

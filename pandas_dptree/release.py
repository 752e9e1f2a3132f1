"""The way of the data: records → exact counts → noisy counts → estimates → the released table.

Everything secret lives between the first line of `release` and the call of `measure`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pandas_dptree._version import __version__
from pandas_dptree.errors import ArgumentError
from pandas_dptree.estimation.consistency import estimate
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.ingest.arrays import leaf_counts
from pandas_dptree.ingest.bounding import count_leaves
from pandas_dptree.ingest.frames import contributions, discreetly
from pandas_dptree.mechanisms.additive import measure
from pandas_dptree.mechanisms.sampling import ByteSource, byte_source, random_words
from pandas_dptree.output.frames import release_frame

if TYPE_CHECKING:
    from pandas_dptree.plan import Plan

__all__ = ["release"]


def release(plan: Plan, data: Any, *, rng: np.random.Generator | None = None) -> pd.DataFrame:
    """Measure records by a plan, and lay out the table: see `Plan.release`."""
    if rng is not None and not isinstance(rng, np.random.Generator):
        raise ArgumentError(
            "rng",
            f"must be a numpy.random.Generator, not {type(rng).__name__}.",
            hint="leave it out for a private release; numpy.random.default_rng(0) for a repeatable test.",
        )
    source = byte_source(rng)
    counts = plan.tree.roll_up(_leaf_counts(plan, data, source))
    noisy = measure(plan.noise, counts, plan.node_noise_scales, source)
    words = partial(random_words, source)
    return release_frame(
        plan.labelled,
        estimate(plan.tree, noisy, plan.variances, plan.consistency, plan.fit, words),
        plan.node_std_errors,
        _account(plan, rng),
    )


def _leaf_counts(plan: Plan, data: Any, source: ByteSource) -> IntArray:
    """Count the records of each leaf, exactly. The answer is secret."""
    if isinstance(data, np.ndarray):
        if plan.privacy_unit is not None:
            raise ArgumentError(
                "data",
                "holds counts, in which nobody can tell the rows of one privacy unit.",
                hint="plan with max_contributions alone, and answer for it; or release the records.",
            )
        return leaf_counts(data, plan.tree)
    if plan.domain is None:
        raise ArgumentError(
            "data",
            f"must be an array of the {plan.tree.n_leaves} leaf counts, for a plan made from a Tree.",
            hint="plan with a Domain to release a frame of records.",
        )
    if plan.privacy_unit is None and plan.max_contributions > 1:
        raise ArgumentError(
            "max_contributions",
            "needs a `privacy_unit`: rows of a frame cannot be bounded without knowing whose they are.",
            hint='name the column, for example privacy_unit="person_id".',
        )
    given = contributions(data, plan.domain, privacy_unit=plan.privacy_unit)
    count = partial(
        count_leaves,
        given,
        plan.tree.n_leaves,
        max_contributions=plan.max_contributions,
        random_words=partial(random_words, source),
    )
    return discreetly(plan.domain.by, count)


def _account(plan: Plan, rng: np.random.Generator | None) -> dict[str, Any]:
    """Tell how the release was made, in plain JSON."""
    scales = zip(plan.level_names, plan.noise_scales.tolist(), strict=True)
    return {
        "mechanism": plan.noise.name,
        **plan.loss.to_dict(),
        "neighbors": plan.neighbors,
        "privacy_unit": None if plan.privacy_unit is None else str(plan.privacy_unit),
        "max_contributions": plan.max_contributions,
        "consistency": plan.consistency,
        "fit": plan.fit,
        "noise_scale": {str(name): scale if np.isfinite(scale) else None for name, scale in scales},
        "rng": "operating system" if rng is None else "numpy.random.Generator: not private",
        "version": __version__,
    }

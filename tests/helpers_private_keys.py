"""The distribution of what private keys release, through the real code, one noise after another."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.hierarchy.private_keys import PrivateKeys
from pandas_dptree.ingest.private_keys import KeyNodes, nodes_of_private_keys
from pandas_dptree.mechanisms import truncated
from pandas_dptree.mechanisms.private_levels import gaussian_thresholds
from pandas_dptree.mechanisms.private_levels.base import LevelNoise, ReleasedLevel
from pandas_dptree.mechanisms.private_levels.independent import IndependentLevels
from pandas_dptree.plans import implicit, running

Row = tuple[Hashable, ...]
Distribution = dict[Hashable, float]


@dataclass
class ListedNoise:
    """Noise that takes one combination of values after another, in place of the samplers."""

    chosen: list[list[int]] = field(default_factory=list)  # position and number of values, for each draw
    place: int = 0
    probability: float = 1.0

    def draw(self, values: Any, masses: Any, size: int) -> Any:
        """Give the next values of the current combination."""
        drawn = []
        for _ in range(size):
            if self.place == len(self.chosen):
                self.chosen.append([0, len(values)])
            position = self.chosen[self.place][0]
            self.place += 1
            self.probability *= masses[position]
            drawn.append(values[position])
        return np.array(drawn, dtype=np.int64)

    def gaussian(self, noise_scale: float, size: int, source: Any) -> Any:
        """Draw discrete Gaussian noise, without values of a mass below 1e-11."""
        reach = math.floor(noise_scale * math.sqrt(2 * 11 * math.log(10)))
        values = np.arange(-reach, reach + 1)
        masses = np.exp(-((values / noise_scale) ** 2) / 2)
        return self.draw(values, masses / masses.sum(), size)

    def laplace(self, noise_scale: float, radius: int, size: int, source: Any) -> Any:
        """Draw truncated discrete Laplace noise."""
        values = np.arange(-radius, radius + 1)
        masses = np.exp(-abs(values) / noise_scale)
        return self.draw(values, masses / masses.sum(), size)

    def distribution(self, run: Callable[[], Hashable]) -> Distribution:
        """Give the probability of each result of `run`."""
        found: Distribution = {}
        while True:
            self.place, self.probability = 0, 1.0
            seen = run()
            found[seen] = found.get(seen, 0.0) + self.probability
            while self.chosen and self.chosen[-1][0] + 1 == self.chosen[-1][1]:
                self.chosen.pop()
            if not self.chosen:
                return found
            self.chosen[-1][0] += 1


@contextmanager
def listed_noise() -> Iterator[ListedNoise]:
    """Replace the samplers, and draw the key 0."""
    noise = ListedNoise()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gaussian_thresholds, "discrete_gaussian", noise.gaussian)
        patch.setattr(truncated, "truncated_discrete_laplace", noise.laplace)
        for module in (implicit, running):
            patch.setattr(module, "random_words", lambda source, n: np.zeros(n, dtype=np.uint64))
        yield noise


def frame_of(columns: Sequence[str], rows: Sequence[Row]) -> pd.DataFrame:
    """Make records of objects, each with its unit in the last column."""
    frame = pd.DataFrame(index=range(len(rows)))
    for place, name in enumerate([*columns, "unit"]):
        frame[name] = pd.Series([row[place] for row in rows], dtype=object)
    return frame


def paths(nodes: KeyNodes) -> list[list[Row]]:
    """Name the nodes of each level."""
    named: list[list[Row]] = []
    for level, parents in enumerate(nodes.parents):
        if level < nodes.n_public:
            named.append([(node,) for node in range(len(nodes.counts[level]))])
            continue
        place = level - nodes.n_public
        forms = [nodes.forms[place][code] for code in nodes.codes[place].tolist()]
        above = [named[-1][parent] for parent in parents.tolist()]
        named.append([(*path, form) for path, form in zip(above, forms, strict=True)])
    return named


def named_counts(named: list[list[Row]], released: Sequence[ReleasedLevel]) -> Hashable:
    """Give the names of the released nodes with their noisy counts."""
    return tuple(
        frozenset((names[key], count) for key, count in zip(keys.tolist(), noisy.tolist(), strict=True))
        for names, (keys, noisy) in zip(named, released, strict=True)
    )


def released_counts(tree: PrivateKeys, levels: LevelNoise, rows: Sequence[Row], k: int) -> Distribution:
    """Give the distribution of all released nodes and their noisy counts."""
    columns = [*tree.public_names, *tree.columns]
    with listed_noise() as noise:
        nodes = nodes_of_private_keys(
            frame_of(columns, rows), tree, privacy_unit="unit", max_contributions=k,
            random_words=lambda n: np.zeros(n, dtype=np.uint64),
        )  # fmt: skip
        named = paths(nodes)

        def run() -> Hashable:
            return named_counts(named, levels.measure(nodes, None, lambda: None))  # type: ignore[arg-type]

        return noise.distribution(run)


def tables_of_counts(
    tree: PrivateKeys, levels: LevelNoise, rows: Sequence[Row], k: int
) -> dict[Hashable, set[str]]:
    """List, for all released nodes and noisy counts, the tables made of them: values, order, types, attrs."""
    plan = dpt.plan(
        tree.domain, private_keys=tree.columns, epsilon=1.0, delta=1e-3, privacy_unit="unit",
        max_contributions=k, keep=["measurements"],
        mechanism="truncated_laplace" if isinstance(levels, IndependentLevels) else "gaussian",
    )  # fmt: skip
    object.__setattr__(plan, "noise", levels)
    frame, measure = frame_of([*tree.public_names, *tree.columns], rows), type(levels).measure
    tables: dict[Hashable, set[str]] = {}

    def run() -> Hashable:
        seen: list[Hashable] = []

        def measure_and_name(self: LevelNoise, nodes: KeyNodes, *others: Any) -> list[ReleasedLevel]:
            released = measure(self, nodes, *others)
            seen.append(named_counts(paths(nodes), released))
            return released

        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(action="ignore"):
            patch.setattr(type(levels), "measure", measure_and_name)
            table = plan.release(frame)
        shown = repr((table.to_dict("list"), table.dtypes.to_dict(), table.attrs))
        tables.setdefault(seen[0], set()).add(shown)
        return None

    with listed_noise() as noise:
        noise.distribution(run)
    return tables


def divergence(one: Distribution, other: Distribution, epsilon: float) -> float:
    """Give the hockey-stick divergence of both orders, the larger one."""
    factor = math.exp(epsilon)
    return max(
        math.fsum(max(p - factor * there.get(seen, 0.0), 0.0) for seen, p in here.items())
        for here, there in ((one, other), (other, one))
    )

"""How often the intervals of derived numbers hold the truth: the figures of docs/derived_numbers.md.

``python -m tests.output.derived.test_coverage 2000`` prints them.
"""

import sys

import numpy as np
import pytest

from tests.helpers_derived import KEYS, counts, truth

NOISES = {"Laplace, epsilon = 0.3": {"epsilon": 0.3}, "Gaussian, rho = 0.02": {"rho": 0.02}}

AREAS = {
    "coast": [("CA", "a"), ("CA", "b", "b2"), "TX"],
    "odd towns": [("CA", county, f"{county}{town}") for county in "abc" for town in (1, 3)],
    "without NY": ["AZ", "NV", "TX", "CA"],
}


def inside(frame, true, lower="lower", upper="upper"):
    """Whether each interval holds the truth, of rows that have both."""
    kept = frame[lower].notna().to_numpy() & ~np.isnan(true)
    ends = frame.loc[kept, lower].to_numpy() - 1e-9, frame.loc[kept, upper].to_numpy() + 1e-9
    return (ends[0] <= true[kept]) & (true[kept] <= ends[1])


def paths_of(frame):
    return [tuple(key for key in path if isinstance(key, str)) for path in frame[KEYS].to_numpy().tolist()]


def coverage(runs, seed=0, **noise):
    """Simulate the shares of intervals that hold the truth, in a ragged tree with an empty leaf."""
    true = truth().astype(float)
    row = {path: n for n, path in enumerate(paths_of(counts()))}
    parent = np.array([row[path[:-1]] for path in row])
    with np.errstate(invalid="ignore", divide="ignore"):
        of_parent = np.where(np.arange(len(true)) > 0, true / true[parent], np.nan)
        of_total = true / true[0]
    paths = [[path if isinstance(path, tuple) else (path,) for path in each] for each in AREAS.values()]
    sums = np.array([sum(true[row[path]] for path in each) for each in paths])
    found = {name: [] for name in ("of parent", "of total", "change", "percent", "combine", "top")}
    false = []
    for run in range(seed, seed + runs):
        now, before = counts(2 * run, **noise), counts(2 * run + 1, **noise)
        found["of parent"].append(inside(now.dp.proportions(), of_parent).mean())
        found["of total"].append(inside(now.dp.proportions(of="total"), of_total)[1:].mean())
        change = now.dp.change_from(before)
        found["change"].append(inside(change, np.zeros(len(true))).mean())
        held = inside(change, np.zeros(len(true)), "percent_lower", "percent_upper")
        found["percent"].append(held.mean())
        false.append(change.attrs["dp_derived"]["beyond_noise_holm"] > 0)
        found["combine"].append(inside(now.dp.combine(AREAS), sums).mean())
        largest = now.dp.top(5)
        places = [row[path] for path in paths_of(largest)]
        found["top"].append(inside(largest, true[places]).all())
    return {name: 100 * float(np.mean(each)) for name, each in found.items()} | {
        "Holm, a false change": 100 * float(np.mean(false))
    }


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("consistency", ["linear", "integer", "none"])
def test_intervals_hold_the_truth_as_often_as_stated(noise, consistency):
    shares = coverage(300, consistency=consistency, **NOISES[noise])
    false = shares.pop("Holm, a false change")
    assert false < 9
    assert min(shares.values()) > 93.5, shares


def test_a_few_releases():
    shares = coverage(3, epsilon=0.3)
    assert min(share for name, share in shares.items() if name != "Holm, a false change") > 60, shares


if __name__ == "__main__":
    for consistency in ("linear", "integer", "none"):
        for name, noise in NOISES.items():
            shares = coverage(int(sys.argv[1]), consistency=consistency, **noise)
            print(consistency, name, {each: round(share, 1) for each, share in shares.items()}, flush=True)

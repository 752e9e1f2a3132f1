"""How often the intervals of derived numbers hold the truth: the figures of docs/derived_numbers.md.

``python -m tests.output.derived.test_coverage 600`` prints them, as the mean and the least over the rows.
"""

import sys
import warnings

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from tests.helpers_derived import DOMAIN, KEYS, PLACES, SIZES
from tests.helpers_random import rng

AREAS = {
    "coast": [("CA", "a"), ("CA", "b", "b2"), "TX"],
    "odd towns": [("CA", county, f"{county}{town}") for county in "abc" for town in (1, 3)],
    "without NY": ["AZ", "NV", "TX", "CA"],
}

MANY = pd.DataFrame([(f"s{n // 20}", f"k{n // 5}", f"t{n}") for n in range(300)], columns=KEYS)


def records_of(places, sizes):
    """Records with a cost of 0 to 9 and a balance of -4 to 5, the same numbers in each place in turn."""
    at = np.repeat(np.arange(len(places)), sizes)
    cost = (np.arange(len(at)) * 7 % 10).astype(float)
    return places.loc[at].assign(cost=cost, balance=cost - 4).reset_index(drop=True)


def world(column="count", value=None, verb="tree_counts", asked=(), sparse=False, known=False, **options):
    """A table to release again and again, of the column `column` that adds up `value` of the records."""
    places = MANY if sparse else PLACES
    sizes = np.where(np.arange(len(places)) % 97 == 3, 400, 0) if sparse else SIZES
    grown = np.where(np.arange(len(sizes)) % 3 == 1, 3 * sizes // 2, sizes)
    domain = dpt.Domain.from_frame(places, by=KEYS) if sparse else DOMAIN
    now, before = records_of(places, grown), records_of(places, sizes)

    def release(records, seed):
        given = {"split": "uniform", **options, "domain": domain, "rng": rng(seed)}
        if known:
            given["known"] = {"total": len(records)}
        if column != "mean":
            given["keep"] = ["linear"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return getattr(records.dp, verb)(KEYS, *asked, **given)

    return release, now, before, column, value


SMALL, LARGE = {"epsilon": 0.3}, {"rho": 0.02}
MONEY = {"verb": "tree_sums", "value": "cost", "column": "cost", "columns": "cost", "bounds": (0, 9)}
BALANCE = {"verb": "tree_sums", "value": "balance", "column": "balance", "columns": "balance"}
SEVERAL = {
    "verb": "tree_agg", "value": "cost", "column": "paid",
    "asked": ({"n": "count", "paid": dpt.sum("cost", bounds=(0, 9))},),
}  # fmt: skip
UNEVEN = {"split": {"total": 0.05, "state": 0.15, "county": 0.5, "town": 0.3}}

WORLDS = {
    "least squares, Laplace, epsilon 0.1": world(epsilon=0.1, consistency="linear"),
    "least squares, Laplace, epsilon 0.3": world(**SMALL, consistency="linear"),
    "least squares, Laplace, epsilon 1": world(epsilon=1.0, consistency="linear"),
    "least squares, Laplace, epsilon 5": world(epsilon=5.0, consistency="linear"),
    "least squares, Gaussian, rho 0.02": world(**LARGE, consistency="linear"),
    "least squares, Gaussian, rho 4": world(rho=4.0, consistency="linear"),
    "none, Laplace, epsilon 0.3": world(**SMALL, consistency="none"),
    "none, Gaussian, rho 0.02": world(**LARGE, consistency="none"),
    "nonnegative, Laplace, epsilon 0.3": world(**SMALL, consistency="nonnegative"),
    "integer, Laplace, epsilon 1": world(epsilon=1.0),
    "uneven levels, Laplace, epsilon 1": world(epsilon=1.0, **UNEVEN),
    "known total, Laplace, epsilon 0.3": world(**SMALL, known=True),
    "mostly empty, Laplace, epsilon 0.3": world(**SMALL, sparse=True),
    "mostly empty, Gaussian, rho 0.02": world(**LARGE, sparse=True),
    "sums, Laplace, epsilon 0.3": world(**SMALL, **MONEY),
    "sums of both signs, Laplace, epsilon 0.3": world(**SMALL, **BALANCE, bounds=(-4, 5)),
    "several quantities, Laplace, epsilon 1": world(epsilon=1.0, **SEVERAL),
    "means, Laplace, epsilon 5": world(
        epsilon=5.0, verb="tree_means", value="cost", column="mean", columns="cost", bounds=(0, 9)
    ),
}


def paths_of(frame):
    """The keys of each row from the coarsest down."""
    return [tuple(key for key in path if isinstance(key, str)) for path in frame[KEYS].to_numpy().tolist()]


def truth_of(paths, records, column, value):
    """The exact count, sum or mean of each path."""
    numbers = np.ones(len(records)) if value is None else records[value].to_numpy()
    sums, sizes = {}, {}
    for path, number in zip(paths_of(records), numbers.tolist(), strict=True):
        for depth in range(len(path) + 1):
            sums[path[:depth]] = sums.get(path[:depth], 0.0) + number
            sizes[path[:depth]] = sizes.get(path[:depth], 0) + 1
    if column == "mean":
        return np.array([sums[path] / sizes[path] if path in sums else np.nan for path in paths])
    return np.array([sums.get(path, 0.0) for path in paths])


def inside(frame, true, lower="lower", upper="upper"):
    """Whether each interval holds the truth; missing where there is no interval, no truth or no error."""
    low, high = frame[lower].to_numpy(dtype=float), frame[upper].to_numpy(dtype=float)
    margin = 1e-9 * (1 + np.abs(true))
    held = ((low <= true + margin) & (true <= high + margin)).astype(float)
    return np.where(np.isnan(low) | np.isnan(true) | ((frame["std_error"] == 0).to_numpy()), np.nan, held)


def coverage(place, runs, seed=0):
    """Simulate a world of `WORLDS`: by verb, the share of intervals of each row that hold the truth.

    Three releases each time: two of the same records for Holm's count, and one of other records.
    """
    release, now, before, column, value = place
    shown = {"count": "count", "mean": "cost"}.get(column, column)
    paths = paths_of(release(now, 0))
    true, old = (truth_of(paths, records, column, value) for records in (now, before))
    row = {path: n for n, path in enumerate(paths)}
    parent = np.array([row[path[:-1]] for path in row])
    with np.errstate(invalid="ignore", divide="ignore"):
        of_parent = np.where(np.arange(len(true)) > 0, true / true[parent], np.nan)
        of_total = np.where(np.arange(len(true)) > 0, true / true[0], np.nan)
        percent = np.where(old > 0, 100 * (true / old - 1), np.nan)
    areas = AREAS if ("TX",) in row else {"odd": paths[-21::2], "wide": [("s0",), ("s1",), ("s2", "k8")]}
    sums = [
        sum(true[row[path if isinstance(path, tuple) else (path,)]] for path in each)
        for each in areas.values()
    ]
    prefix = "" if shown == "count" else f"{shown}_"
    plain = {f"{prefix}{name}": name for name in ("std_error", "lower", "upper")}
    found = {}

    def note(name, held):
        found.setdefault(name, []).append(np.atleast_1d(held))

    for run in range(seed, seed + runs):
        first, again, other = (release(records, 3 * run + n) for n, records in enumerate((now, now, before)))
        if column not in ("mean", "balance"):
            note("of parent", inside(first.dp.proportions(column=shown), of_parent))
            note("of total", inside(first.dp.proportions(of="total", column=shown), of_total))
        change = first.dp.change_from(other, column=shown)
        note("change", inside(change, true - old))
        note("per cent", inside(change, percent, "percent_lower", "percent_upper"))
        if column != "mean":
            note(
                "combine", inside(first.dp.combine(areas, column=shown).rename(columns=plain), np.array(sums))
            )
        largest = first.dp.top(5, column=shown).rename(columns=plain)
        held = inside(largest, true[[row[path] for path in paths_of(largest)]])
        note("top", (held != 0).all())
        same = first.dp.change_from(again, column=shown)
        note("Holm", same.attrs["dp_derived"]["beyond_noise_holm"] > 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows without any interval
        return {name: 100 * np.nanmean(np.array(each, dtype=float), axis=0) for name, each in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_intervals_hold_the_truth_as_often_as_stated(name):
    shares = coverage(WORLDS[name], 200)
    assert shares.pop("Holm")[0] < 9.5, "three standard errors above 5 %"
    assert shares.pop("top")[0] > 90.3, "as far below 95 %"
    of_areas = shares.pop("combine", np.array([95.0]))  # three rows: four standard errors below 95 %
    assert np.nanmean(of_areas) > 91.4 and np.nanmin(of_areas) > 88.0, of_areas
    assert min(np.nanmean(each) for each in shares.values()) > 93.5, shares
    if not name.startswith("means"):  # whose errors are those of the table, of the first order
        assert min(np.nanmin(each) for each in shares.values()) > 88.0, shares


@pytest.mark.parametrize("name", ["integer, Laplace, epsilon 1", "sums of both signs, Laplace, epsilon 0.3"])
def test_a_few_releases(name):
    shares = coverage(WORLDS[name], 3)
    assert all(np.nanmean(share) > 60 for verb, share in shares.items() if verb != "Holm"), shares


if __name__ == "__main__":
    for name in [name for name in WORLDS if all(word in name for word in sys.argv[2:])]:
        shares = coverage(WORLDS[name], int(sys.argv[1]))
        row = {verb: f"{np.nanmean(each):.1f} ({np.nanmin(each):.1f})" for verb, each in shares.items()}
        print(name, row, flush=True)

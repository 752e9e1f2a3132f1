"""Errors of derived numbers beside the dense covariance of all rows, in random small trees."""

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.mechanisms.additive import NOISES
from tests.helpers_random import each_seed

KEYS = ["x", "y", "z"]


def random_release(seed):
    """A plan of a ragged tree with chains, empty nodes, ties, perhaps known nodes and unmeasured levels."""
    rng = np.random.default_rng(seed)
    paths = []
    for x in range(3):
        for y in range(rng.integers(0, 3)):
            paths += [(f"x{x}", f"y{y}", f"z{z}") for z in range(rng.integers(1, 4))]
            if rng.random() < 0.3:
                paths[-1] = (f"x{x}", f"v{y}", None)
        if not any(path[0] == f"x{x}" for path in paths):
            paths.append((f"x{x}", None, None))
    places = pd.DataFrame(paths, columns=KEYS).astype(object)
    sizes = rng.integers(0, 4, len(places)) * rng.choice([0, 0, 50, 200], len(places))
    sizes[-1] = 400
    records = places.loc[np.repeat(np.arange(len(places)), sizes)]
    known = seed % 3 == 0
    names = KEYS if known else ["total", *KEYS]
    shares = rng.dirichlet(np.ones(len(names)))
    shares = dict(zip(names, 0.8 * shares + 0.2 / len(names), strict=True))
    given = [
        {"epsilon": 1.0, "split": "uniform"}, {"epsilon": 0.5}, {"rho": 0.1, "split": shares},
        {"epsilon": 1.0, "delta": 1e-6, "neighbors": "replace"},
    ][seed % 4]  # fmt: skip
    if known:
        given["known"] = {"total": len(records)}
        if seed % 2:
            given["known"]["x"] = {"x0": int((records["x"] == "x0").sum())}
    if "split" in given and seed % 5 == 1 and not known:
        given["consistency"] = "none"
    domain = dpt.Domain.from_frame(places, by=KEYS)
    return dpt.plan(domain, keep=["linear"], **given), records, rng


def dense_covariance(table):
    """The covariance of all rows: each level measures its nodes, and paths that ended above it once more."""
    paths = [tuple(key for key in path if isinstance(key, str)) for path in table[KEYS].to_numpy().tolist()]
    stated = table.attrs["dp"]
    leaves = [path for path in paths if not any(path == other[:-1] for other in paths if other)]
    holds = np.array([[float(leaf[: len(path)] == path) for leaf in leaves] for path in paths])
    known = table["std_error"].to_numpy() == 0
    information, own = np.zeros((len(leaves), len(leaves))), np.zeros(len(paths))
    for level, scale in enumerate(stated["noise_scale"].values()):
        for row, path in enumerate(paths):
            measured = len(path) == level or (path in leaves and len(path) < level)
            if measured and (scale is not None or known[row]):
                noise = 1e-7 if known[row] else float(NOISES[stated["mechanism"]].variance(scale))
                information += np.outer(holds[row], holds[row]) / noise
                own[row] = own[row] or noise
    if stated["consistency"] == "none":
        return paths, np.diag(np.where(known, 0.0, own))
    return paths, holds @ np.linalg.inv(information) @ holds.T


@each_seed(8, 60)
def test_errors_of_sums_and_proportions_are_those_of_the_dense_covariance(seed):
    plan, records, rng = random_release(seed)
    table = plan.release(records, rng=rng)
    paths, dense = dense_covariance(table)
    apart = [path for path in paths if len(path) == 1][:1] + [paths[-1]] * (paths[-1][0] != "x0")
    area = np.array([float(path in apart) for path in paths])
    assert plan.area_std_error(dpt.combine(apart)) == pytest.approx(
        np.sqrt(area @ dense @ area), rel=1e-5, abs=2e-3
    )
    rows = rng.integers(0, len(paths), 6)  # overlapping, repeated
    weights = rng.choice([-2.0, -1.0, 0.5, 1.0, 3.0], 6)
    sums = table.dp.combine({"s": [paths[row] for row in rows]}, weights={"s": weights.tolist()})
    each = np.zeros(len(paths))
    np.add.at(each, rows, weights)
    assert sums["std_error"][0] == pytest.approx(np.sqrt(each @ dense @ each), rel=1e-5, abs=2e-3)
    assert sums["count"][0] == pytest.approx(each @ table["count"].to_numpy())
    shown, place = table["count"].to_numpy(), {path: row for row, path in enumerate(paths)}
    for of, depth in (("parent", None), ("total", 0), ("x", 1), ("y", 2)):
        found = table.dp.proportions(of=of)
        for row, path in enumerate(paths):
            if depth is None and path:
                base = place[path[:-1]]
            elif depth is not None and len(path) >= depth:
                base = place[path[:depth]]
            else:
                assert found.loc[row, ["proportion", "std_error", "lower", "upper"]].isna().all()
                continue
            if shown[base] <= 0 or shown[base] < 4 * np.sqrt(dense[base, base]) - 1e-3:
                assert np.isnan(found["proportion"][row]) and found["lower"][row] >= 0
                continue
            share = shown[row] / shown[base]
            variance = dense[row, row] - 2 * share * dense[row, base] + share**2 * dense[base, base]
            assert found["proportion"][row] == pytest.approx(share)
            expected = np.sqrt(max(variance, 0)) / shown[base]
            assert found["std_error"][row] == pytest.approx(expected, rel=1e-4, abs=3e-3 / shown[base])

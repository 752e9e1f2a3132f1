"""Plans of implicit trees: privacy, what is found, and tables that add up."""

import functools
import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError, ColumnsError
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.levels.prefixes import PrefixTree, binary, prefixes
from pandas_dptree.hierarchy.private_keys import PrivateKeys
from pandas_dptree.ingest.prefixes import PrefixNodes, nonempty_levels, sorted_keys
from pandas_dptree.mechanisms import truncated
from pandas_dptree.mechanisms.private_levels import gaussian_thresholds
from pandas_dptree.mechanisms.private_levels.gated import GatedLevels
from pandas_dptree.mechanisms.private_levels.gaussian_thresholds import GaussianThreshold
from pandas_dptree.mechanisms.private_levels.independent import IndependentLevels
from pandas_dptree.mechanisms.private_levels.sparse_counts import large_counts
from pandas_dptree.mechanisms.sampling import byte_source
from pandas_dptree.mechanisms.truncated import TruncatedLaplace
from pandas_dptree.output.frames import select_level
from pandas_dptree.output.progress import nothing
from pandas_dptree.plans.detection import detection_probability
from pandas_dptree.plans.running import Resources
from pandas_dptree.privacy.gated import gated_delta
from pandas_dptree.privacy.unit import ROWS
from tests.helpers_cases import each
from tests.helpers_implicit import exact
from tests.helpers_statistics import edges, fit, gaussian_cdf, truncated_laplace_cdf
from tests.strategies import objects

ADDRESSES = prefixes("ip", bits=[8, 16, 24, 32], notation="ipv4")
ZIPS = prefixes("zip", chars=[1, 3, 5], alphabet="0123456789")


PREFIXES = binary("x", bits=2)
KEYS = PrivateKeys(columns=("a", "b"))
BELOW = PrivateKeys(columns=("a", "b"), domain=Domain.from_frame(pd.DataFrame({"k": ["p", "q"]}), by=["k"]))
NEIGHBORS = [
    *[(PREFIXES, rows) for rows in [([], [1]), ([1], [1, 1]), ([0], [0, 3]), ([2], [2, 3]), ([1, 1], [1])]],
    *[(KEYS, rows) for rows in [([], ["xy"]), (["xy"], ["xy", "xz"]), (["xy"], ["xy", "zy"])]],
    *[(BELOW, rows) for rows in [([], ["pxy"]), (["px-"], ["px-", "qx-"]), (["pxy"], ["pxy", "pxy"])]],
]


def frame_of(tree, rows):
    """Make records of values, or of one letter for each key; - for a missing one."""
    if isinstance(tree, PrefixTree):
        return pd.DataFrame({tree.column: pd.Series(rows, dtype=np.int64)})
    return pd.DataFrame([list(row) for row in rows], columns=tree.level_names[1:]).replace("-", None)


def named(nodes, place, keys):
    """Give each node by its path: numbers of nodes mean something else in another data set."""
    if isinstance(nodes, PrefixNodes) or place < nodes.n_public:
        return keys.tolist()
    above = named(nodes, place - 1, nodes.parents_of(place, keys))
    return list(zip(above, nodes.labels(place, keys)[0].tolist(), strict=True))


def released_with(tree, noise):
    """Make a plan with noise that no loss is stated for."""
    options = {} if isinstance(tree, PrefixTree) else {"private_keys": tree.columns, "privacy_unit": ROWS}
    plan = dpt.plan(tree.domain if options else tree, epsilon=1.0, delta=0.1, **options)
    object.__setattr__(plan, "noise", noise)
    return plan


def outcomes(plan, frame, support, mass, monkeypatch):
    """Give the distribution of what is released, through the real code, noise vector by noise vector."""
    source = byte_source(np.random.default_rng(0))
    nodes = plan._read(frame, Resources(source).bounding(plan))
    n_draws = sum(map(len, nodes.public_counts())) + sum(len(keys) for keys, _ in nodes.upward())
    distribution: dict = {}
    for draws in itertools.product(range(len(support)), repeat=n_draws):
        fixed = iter(support[list(draws)])

        def drawn(*arguments, fixed=fixed):
            return np.array([next(fixed) for _ in range(arguments[-2])], dtype=np.int64)

        monkeypatch.setattr(truncated, "truncated_discrete_laplace", drawn)
        monkeypatch.setattr(gaussian_thresholds, "discrete_gaussian", drawn)
        seen = tuple(
            (tuple(named(nodes, place, keys)), tuple(noisy.tolist()))
            for place, (keys, noisy) in enumerate(plan.noise.measure(nodes, source, nothing))
        )
        distribution[seen] = distribution.get(seen, 0.0) + mass[list(draws)].prod()
    return distribution


# Privacy


def divergence(here, there, epsilon):
    """Give the larger hockey-stick divergence of two distributions."""
    return max(
        sum(max(p - math.exp(epsilon) * other.get(seen, 0.0), 0.0) for seen, p in one.items())
        for one, other in ((here, there), (there, here))
    )


@each("tree, neighbors", NEIGHBORS[:8])
def test_what_is_released_of_neighbors_is_as_close_as_promised(tree, neighbors, monkeypatch):
    check_what_is_released(tree, neighbors, monkeypatch)


@pytest.mark.slow
@each("tree, neighbors", NEIGHBORS[8:])
def test_what_is_released_below_public_keys_is_as_close_as_promised(tree, neighbors, monkeypatch):
    check_what_is_released(tree, neighbors, monkeypatch)


def check_what_is_released(tree, neighbors, monkeypatch):
    """Exactly, by brute force over all noise."""
    noise = TruncatedLaplace(2.0, 0.12)
    assert noise.radius == 1
    support = np.arange(-1, 2)
    mass = np.exp(-abs(support) / noise.noise_scale)
    mass /= mass.sum()
    levels = (noise,) * len(tree.level_names)
    plan = released_with(tree, IndependentLevels(n_public=tree.n_public, levels=levels))
    here, there = (outcomes(plan, frame_of(tree, rows), support, mass, monkeypatch) for rows in neighbors)
    assert sum(here.values()) == pytest.approx(1) and sum(there.values()) == pytest.approx(1)
    epsilon, delta = len(levels) * noise.epsilon, len(levels) * noise.delta_spent
    assert divergence(here, there, epsilon) <= delta + 1e-12


@each("tree, neighbors", NEIGHBORS[:6])
def test_what_is_shown_of_neighbors_is_as_close_as_promised(tree, neighbors, monkeypatch):
    check_what_is_shown(tree, neighbors, monkeypatch)


@pytest.mark.nightly
@each("tree, neighbors", NEIGHBORS[6:])
def test_what_is_shown_of_more_private_keys_is_as_close_as_promised(tree, neighbors, monkeypatch):
    check_what_is_shown(tree, neighbors, monkeypatch)


def check_what_is_shown(tree, neighbors, monkeypatch):
    """Exactly, with Gaussian noise, of which all but 2e-8 of each draw lies within 2."""
    scale, support = 0.5, np.arange(-2, 3)
    mass = np.exp(-(np.arange(-9.0, 10) ** 2) / (2 * scale**2))
    mass = mass[7:12] / mass.sum()
    thresholds = [None if place < tree.n_public else 1 for place in range(len(tree.level_names))]
    levels = tuple(GaussianThreshold(scale, threshold) for threshold in thresholds)
    plan = released_with(tree, GatedLevels(n_public=tree.n_public, levels=levels))
    here, there = (outcomes(plan, frame_of(tree, rows), support, mass, monkeypatch) for rows in neighbors)
    for epsilon in (2.0, 5.0, 8.0, 11.0):
        delta = gated_delta(epsilon, [scale] * len(levels), thresholds, neighbors="add_remove")
        missing = 6 * (1 - mass.sum()) * math.exp(epsilon)  # of six draws at most
        assert divergence(here, there, epsilon) <= delta + missing and missing < 1e-2


@each("moved", [(1, 0, 0), (1, 1, 0), (2, 0, 0)])
@each("base", [(0, 0, 0), (1, 0, 1), (2, 1, 0)])
def test_one_level_is_as_private_as_its_noise_is_on_all_nodes(base, moved):
    """The exact distribution of one level over its three nodes; two rows of a unit need the sensitivity 2."""
    noise = TruncatedLaplace(1.5, 0.2, sensitivity=sum(moved))
    scale, radius = noise.noise_scale, noise.radius
    support = np.arange(-radius, radius + 1)
    mass = np.exp(-abs(support) / scale)
    mass /= mass.sum()

    def distribution(counts):
        nodes = []
        for count in counts:
            seen = {}
            for x, p in zip(support, mass, strict=True):
                value = int(count + x) if count and count + x > radius else None
                seen[value] = seen.get(value, 0.0) + p
            nodes.append(seen)
        return {
            key: math.prod(node[value] for node, value in zip(nodes, key, strict=True))
            for key in itertools.product(*nodes)
        }

    here, there = distribution(base), distribution(np.add(base, moved).tolist())
    for one, other in ((here, there), (there, here)):
        loss = sum(max(p - math.exp(noise.epsilon) * other.get(key, 0.0), 0.0) for key, p in one.items())
        assert loss <= noise.delta_spent + 1e-12


def test_the_budget_is_kept_and_follows_the_split():
    tree = binary("u", bits=64)
    unit = {"neighbors": "replace", "max_contributions": 3}
    for epsilon, delta in ((1.0, 1e-6), (0.1, 1e-9), (3.7, 1e-3)):
        plan = dpt.plan(tree, epsilon=epsilon, delta=delta, privacy_unit="p", **unit,
                             mechanism="truncated_laplace")  # fmt: skip
        assert math.fsum(noise.epsilon for noise in plan.noise.levels) <= epsilon
        assert math.fsum(noise.delta_spent for noise in plan.noise.levels) <= delta
        assert {noise.sensitivity for noise in plan.noise.levels} == {6}
    split = {"total": 0.1, "zip/1": 0.1, "zip/3": 0.3, "zip/5": 0.5}
    plan = dpt.plan(ZIPS, epsilon=1.0, delta=1e-6, split=split, mechanism="truncated_laplace")
    assert [noise.epsilon for noise in plan.noise.levels] == pytest.approx(list(split.values()))
    for epsilon, delta in ((1.0, 1e-6), (0.1, 1e-9), (3.7, 1e-3)):
        plan = dpt.plan(ZIPS, epsilon=epsilon, delta=delta, split=split, privacy_unit="p", **unit,
                             mechanism="gaussian")  # fmt: skip
        spent = gated_delta(epsilon, plan.noise.noise_scales, plan.noise.thresholds, **unit)
        assert 0.5 * delta < spent <= delta
        parts = [noise.noise_scale**-2 for noise in plan.noise.levels]
        assert np.divide(parts, sum(parts)) == pytest.approx(list(split.values()))


@pytest.mark.parametrize(("mechanism", "times"), [("truncated_laplace", 50), ("gaussian", 100)])
def test_the_noise_of_each_level_is_that_of_the_plan(mechanism, times):
    """Of an uneven split, in nodes that are so large that they are released whatever the noise."""
    split = {"total": 0.05, "x/2": 0.7, "x/4": 0.25}
    tree = prefixes("x", bits=[2, 4], width=4, notation="number")
    plan = dpt.plan(tree, epsilon=1.5, delta=0.03, split=split, keep=["measurements"], mechanism=mechanism)
    each = 2 * plan.noise.thresholds[-1] + 1 + math.ceil(10 * plan.noise.noise_scales[-1])
    frame = pd.DataFrame({"x": np.repeat(np.arange(16), each)})
    rng = np.random.default_rng(4)
    tables = [plan.release(frame, rng=rng) for _ in range(times)]
    if mechanism == "gaussian":
        distributions = [gaussian_cdf(noise.noise_scale) for noise in plan.noise.levels]
    else:
        distributions = [
            truncated_laplace_cdf(noise.noise_scale, noise.radius) for noise in plan.noise.levels
        ]
    for place, (name, n_nodes) in enumerate(zip(plan.level_names, (1, 4, 16), strict=True)):
        nodes = [table[(table["level"] == name) & ~table["other"]] for table in tables]
        noise = np.concatenate([rows["measurement"].to_numpy() for rows in nodes]) - 16 // n_nodes * each
        assert len(noise) == times * n_nodes
        for other, distribution in enumerate(distributions):
            p_value = fit(noise.astype(np.int64), distribution, edges(plan.noise.noise_scales[other]))
            assert p_value > 1e-3 if other == place else p_value < 1e-6


# What is found


def test_the_detection_probability_predicts_how_often_nodes_are_released():
    plan = dpt.plan(
        prefixes("x", bits=[4], notation="number"), epsilon=1.0, delta=1e-3, mechanism="truncated_laplace"
    )
    noise = plan.noise.levels[1]
    counts = np.arange(0, 2 * noise.radius + 3)
    expected = detection_probability(plan, counts)["x/4"].to_numpy()
    assert expected[0] == 0 and expected[2 * noise.radius + 1] == 1 and (np.diff(expected) >= 0).all()
    support = np.arange(-noise.radius, noise.radius + 1)
    mass = np.exp(-abs(support) / noise.noise_scale)
    exactly = [mass[support > noise.radius - count].sum() / mass.sum() for count in counts]
    np.testing.assert_allclose(expected, exactly, rtol=1e-9, atol=1e-15)
    source, n = byte_source(np.random.default_rng(2)), 20_000
    for count in (noise.radius - 3, noise.radius, noise.radius + 2):
        kept, _ = large_counts(noise, np.full(n, count), source)
        assert len(kept) / n == pytest.approx(expected[count], abs=5 * math.sqrt(0.25 / n))


def test_nodes_are_shown_with_gaussian_noise_as_often_as_chains_of_only_children_at_least():
    """A leaf alone below its ancestors, and one whose ancestors hold more."""
    plan = dpt.plan(
        prefixes("x", bits=[3, 6], notation="number"), epsilon=1.0, delta=1e-3, mechanism="gaussian"
    )
    top, bottom = plan.noise.levels[1:]
    size, n = top.threshold + 1, 400
    source, shown = byte_source(np.random.default_rng(6)), np.zeros(3)
    frame = pd.DataFrame({"x": np.repeat([0, 8, 9], [size, size, 900])})
    nodes = plan._read(frame, Resources(source).bounding(plan))
    for _ in range(n):
        keys, _ = plan.noise.measure(nodes, source, nothing)[-1]
        shown += np.isin([0, 8, 9], keys)
    alone = detection_probability(plan, [size])["x/6"].item()
    own = bottom.detection_probability(np.array([size])).item()
    assert alone == pytest.approx(own * top.detection_probability(np.array([size])).item())
    assert (
        shown / n == pytest.approx([alone, own, 1.0], abs=5 * math.sqrt(0.25 / n)) and alone < 0.6 * own + 0.1
    )


def test_mechanisms_are_compared_level_by_level():
    plan = dpt.plan(
        ADDRESSES, epsilon=1.0, delta=1e-6, mechanism="truncated_laplace",
        split={"total": 0.3, "ip/8": 0.3, "ip/16": 0.05, "ip/24": 0.1, "ip/32": 0.25},
    )  # fmt: skip
    table = plan.compare(failure_probability=0.05).loc["truncated_laplace", ""]
    for level, found in table["found_from"].items():
        enough, too_few = detection_probability(plan, [found, found - 1])[level]
        assert enough >= 0.95 > too_few
    assert table["found_from"].idxmax() == table["largest_unseen"].idxmax() == "ip/16"
    assert table["largest_unseen"].tolist() == plan.to_frame()["largest_unseen"].tolist()[1:]
    assert table.loc["ip/16", "largest_unseen"] == 2 * plan.noise.levels[2].radius


@functools.cache
def plan_with_little_noise(tree, epsilon, delta, mechanism):
    return dpt.plan(
        tree, epsilon=epsilon, delta=delta, mechanism=mechanism, confidence=1 - 1e-9, keep=["measurements"]
    )


TREES = [
    binary("x", bits=5),
    prefixes("x", bits=[2, 3, 9], width=11, notation="number"),
    prefixes("x", chars=[1, 2, 4], alphabet="ab"),
]


@st.composite
def records(draw):
    """Draw records with a few heavy values, and a plan with little noise."""
    tree = draw(st.sampled_from(TREES))
    leaves = st.text("ab", max_size=5) if hasattr(tree, "alphabet") else st.integers(0, 2**tree.width - 1)
    heavy = draw(st.lists(st.tuples(leaves, st.integers(1, 60)), max_size=8))
    rows = [leaf for leaf, count in heavy for _ in range(count)]
    loss = draw(st.sampled_from([(2.0, 0.3), (20.0, 1e-4), (1e4, 0.3)]))
    plan = plan_with_little_noise(tree, *loss, draw(st.sampled_from(["truncated_laplace", "gaussian"])))
    return plan, pd.DataFrame({"x": objects(rows)}), draw(st.integers(0, 2**32))


@settings(max_examples=settings.default.max_examples // 2)  # each takes long
@given(records())
def test_tables_add_up_and_are_right_within_their_bounds(drawn):
    plan, frame, seed = drawn
    table = plan.release(frame, rng=np.random.default_rng(seed))
    names, tree, bound = list(plan.level_names), plan.tree, plan.noise.bound_name
    true = [{(): len(frame)}]
    for place, level in enumerate(exact(frame, tree)):
        lengths = tree.lengths[: place + 1]
        true.append({})
        keys, rows = sorted_keys(frame, tree)
        prefix, counts = list(nonempty_levels(keys, rows, tree))[::-1][place]
        path = [tree.labels(tree.shorten(prefix, lengths[-1], n), n).tolist() for n in lengths]
        true[-1] = dict(zip(zip(*path, strict=True), counts.tolist(), strict=True))
        assert len(true[-1]) == len(level)
    assert (table["count"] >= 0).all() and table["count"].dtype == np.int64
    shown = []
    for place, name in enumerate(names):
        rows = table[table["level"] == name]
        shown.append({})
        for row in rows.to_dict("records"):
            path = tuple(row[key] for key in names[1 : place + 1])
            if row["other"]:
                assert pd.isna(path[-1]) and pd.isna(row["measurement"])
                shown[-1][(*path[:-1], "other")] = row
            else:
                assert not any(map(pd.isna, path))
                shown[-1][path] = row
    for place, rows in enumerate(shown):
        for path, row in rows.items():
            if not row["other"]:
                assert abs(true[place].get(path, 0) - row["count"]) <= row[bound]
                assert place == 0 or true[place][path] >= 1
                if place + 1 < len(names):
                    below = [r for p, r in shown[place + 1].items() if p[:-1] == path]
                    assert sum(r["count"] for r in below) == row["count"]
                    assert sum(r["other"] for r in below) <= 1
            else:
                seen = sum(true[place][p] for p in rows if p[:-1] == path[:-1] and p[-1] != "other")
                remains = true[place - 1].get(path[:-1], 0) - seen
                assert abs(remains - row["count"]) <= row[bound]
        unseen = [count for path, count in true[place].items() if path not in rows]
        most = plan.noise.largest_unseen[place]
        assert most is None or max(unseen, default=0) <= most
        released = [row["measurement"] for row in rows.values() if not pd.isna(row["measurement"])]
        assert place == 0 or all(noisy > plan.noise.thresholds[place] for noisy in released)


@pytest.mark.parametrize("mechanism", ["truncated_laplace", "gaussian"])
def test_shape_and_types_do_not_depend_on_the_records_beyond_the_nodes(mechanism):
    for tree, column in ((ADDRESSES, ["1.2.3.4"]), (ZIPS, ["12345"]), (binary("u", bits=3), [5])):
        plan = dpt.plan(tree, epsilon=1.0, delta=1e-6, mechanism=mechanism, confidence=1 - 1e-9)
        full = plan.release(pd.DataFrame({tree.column: column * 5000}), rng=np.random.default_rng(0))
        none = plan.release(pd.DataFrame({tree.column: objects([])}), rng=np.random.default_rng(0))
        assert full.dtypes.astype(str).tolist() == none.dtypes.astype(str).tolist()
        assert none["level"].tolist() == ["total", tree.level_names[1]]
        assert none["other"].tolist() == [False, True]
        deepest = full[(full["level"] == tree.level_names[-1]) & ~full["other"]]
        assert (
            len(deepest) == 1 and abs(deepest["count"].item() - 5000) <= deepest[plan.noise.bound_name].item()
        )
        assert json.loads(json.dumps(full.attrs["dp"])) == full.attrs["dp"]


def test_a_level_is_selected_like_any_other():
    frame = pd.DataFrame({"zip": ["12345"] * 3000 + ["12999"] * 2000})
    table = dpt.plan(ZIPS, epsilon=1.0, delta=1e-6).release(frame, rng=np.random.default_rng(0))
    level = select_level(table, "zip/3")
    assert list(level.index.names) == ["zip/1", "zip/3"]
    assert level.loc[("1", "123"), "count"] == pytest.approx(3000, abs=200)


def test_releases_are_repeatable_only_with_a_generator():
    plan = dpt.plan(ZIPS, epsilon=1.0, delta=1e-6)
    frame = pd.DataFrame({"zip": ["12345"] * 3000})
    one, other = (plan.release(frame, rng=np.random.default_rng(3)) for _ in range(2))
    pd.testing.assert_frame_equal(one, other)
    assert "not private" in one.attrs["dp"]["rng"]
    assert plan.release(frame).attrs["dp"]["rng"] == "operating system"


# Arguments


@each(
    "make, fact",
    [
        (lambda: prefixes("ip"), "or `chars` must be given"),
        (lambda: prefixes("ip", bits=[8], chars=[1]), "or `chars` must be given"),
        (lambda: prefixes("ip", bits=[8, 16, 24, 32]), "`notation` must be given with `bits`"),
        (lambda: prefixes("ip", bits=[8], alphabet="ab"), "does not apply to this kind of prefixes"),
        (lambda: prefixes("ip", chars=[8], width=9), "does not apply to this kind of prefixes"),
        (lambda: prefixes("ip", bits=[], notation="number"), "list increasing whole numbers from 1 to 64"),
        (lambda: prefixes("ip", bits=[8, 8], notation="number"), "must list increasing"),
        (lambda: prefixes("ip", bits=[0, 8], notation="number"), "must list increasing"),
        (lambda: prefixes("ip", bits=[8, 65], notation="number"), "must list increasing"),
        (lambda: prefixes("ip", bits=[True], notation="number"), "must list increasing"),
        (lambda: prefixes("ip", bits=8, notation="number"), "must list increasing"),
        (lambda: prefixes("ip", chars=[1.5]), "must list increasing"),
        (lambda: prefixes("ip", chars=3), "must list increasing"),
        (lambda: prefixes("ip", bits=[8], width=7, notation="number"), "must be a whole number from 8 to 64"),
        (lambda: prefixes("ip", bits=[8], width=65, notation="number"), "be a whole number from 8 to 64"),
        (lambda: prefixes("ip", bits=[8], notation="ipv6"), "is unknown: 'ipv6'"),
        (lambda: prefixes("ip", bits=[8], width=16, notation="ipv4"), "cannot be 'ipv4' for numbers of 16"),
        (lambda: prefixes("z", chars=[1], alphabet=""), "must be a string of 1 to 255"),
        (lambda: prefixes("z", chars=[1], alphabet="aa"), "must be a string of 1 to 255"),
        (lambda: prefixes("z", chars=[1], alphabet="a\0"), "must be a string of 1 to 255"),
        (lambda: prefixes(["z"], chars=[1]), "must name a column"),
        (lambda: binary("u", bits=65), "must be a whole number from 1 to 64"),
        (lambda: binary("u", bits=True), "must be a whole number from 1 to 64"),
        (lambda: dpt.plan(ZIPS, epsilon=1.0, delta=0.0), "must be above 0, and given with an epsilon"),
        (lambda: dpt.plan(ZIPS, epsilon=1.0, delta=1e-6, privacy_unit="zip"), "neither a key nor"),
        (lambda: dpt.plan(ZIPS, epsilon=1.0, delta=1e-6, max_contributions=2), "needs a `privacy_unit`"),
        (lambda: dpt.plan(ZIPS, epsilon=1.0, delta=1e-6, neighbors="x"), "is unknown"),
        (lambda: dpt.plan(ZIPS, epsilon=1.0, delta=1e-6, split="cells"), "'doubling', 'uniform' or"),
        (lambda: dpt.plan(ZIPS, epsilon=1.0, delta=1e-6, split={"total": 1.0}), "above 0 for each"),
        (lambda: dpt.plan(ZIPS, epsilon=1.0, delta=1e-6, keep=["linear"]), "names unbiased estimates"),
        (lambda: dpt.plan(ZIPS, epsilon=1.0, delta=1e-6, keep=["noise"]), "must be a list"),
    ],
)  # fmt: skip
def test_arguments_that_cannot_be_used_are_refused(make, fact):
    with pytest.raises(ArgumentError, match=fact):
        make()


@each(
    "frame, tree, fact",
    [
        (pd.DataFrame({"zap": ["1"]}), ZIPS, "lacks the columns: 'zip'"),
        (pd.DataFrame({"zip": [12345]}), ZIPS, "numbers, not text"),
        (pd.DataFrame({"x": ["1"]}, dtype="str"), PREFIXES, "text, not numbers"),
        (pd.DataFrame({"ip": pd.to_datetime(["2024-01-01"])}), ADDRESSES, "times, not numbers or text"),
    ],
)
def test_frames_that_cannot_fit_are_refused(frame, tree, fact):
    if "text, not" in fact:
        frame = frame.astype("string")
    with pytest.raises(ColumnsError, match=fact):
        dpt.plan(tree, epsilon=1.0, delta=1e-6).release(frame)

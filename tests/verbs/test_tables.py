"""The main job, end to end: plans and releases through the public face."""

import json

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given

import pandas_dptree as dpt
from pandas_dptree.hierarchy.domain import level_names
from pandas_dptree.privacy.loss import exact
from tests.helpers_cases import each
from tests.helpers_random import rng
from tests.strategies import domains_and_rows

BY = ["region", "district", "clinic"]
MODES = ["none", "linear", "nonnegative", "integer"]


def test_the_released_frame(visits, clinics):
    counts = visits.dp.tree_counts(BY, epsilon=1.0, domain=clinics)
    assert list(counts.columns) == ["level", *BY, "count", "std_error"]
    assert counts["level"].cat.ordered and list(counts["level"].cat.categories) == ["total", *BY]
    assert counts["count"].dtype == np.int64 and (counts["count"] >= 0).all()
    assert counts["std_error"].dtype == np.float64 and (counts["std_error"] > 0).all()
    assert counts["level"].is_monotonic_increasing
    total = counts.dp.level("total")["count"].item()
    for name in BY[:1]:
        assert counts.dp.level(name)["count"].sum() == total
    json.dumps(counts.attrs["dp"])
    assert counts.attrs["dp"]["epsilon"] == 1.0 and counts.attrs["dp"]["rng"] == "operating system"


def test_a_level_is_indexed_as_groupby_indexes_it(visits, clinics):
    full = visits.dropna(subset=BY).astype({"district": str})
    counts = full.dp.tree_counts(BY, epsilon=1.0, domain="observed")
    for depth in (1, 2, 3):
        expected = full.groupby(BY[:depth]).size().index
        pd.testing.assert_index_equal(counts.dp.level(BY[depth - 1]).index, expected)


def test_with_hardly_any_noise_the_table_is_the_truth(visits, clinics):
    counts = visits.dp.tree_counts(BY, epsilon=4000.0, domain=clinics)
    exact = visits.groupby(BY).size()
    released = counts.dp.level("clinic")["count"]
    assert released.reindex(exact.index).tolist() == exact.tolist()
    assert released.drop(exact.index).eq(0).all()
    assert counts.dp.level("total")["count"].item() == len(visits)


def test_the_accessor_is_the_function(visits, clinics):
    options = {"epsilon": 1.0, "domain": clinics, "rng": rng(5)}
    by_accessor = visits.dp.tree_counts(BY, **options)
    options["rng"] = rng(5)
    pd.testing.assert_frame_equal(by_accessor, dpt.tree_counts(visits, BY, **options))
    plan = visits.dp.plan(BY, epsilon=1.0, domain=clinics)
    same = dpt.plan(dpt.Domain.from_frame(clinics, by=BY), epsilon=1.0)
    pd.testing.assert_frame_equal(plan.to_frame(), same.to_frame())
    pd.testing.assert_frame_equal(plan.release(visits, rng=rng(5)), by_accessor)


def test_every_library_gives_the_same_table(visits, clinics):
    polars = pytest.importorskip("polars")
    frame = polars.from_pandas(visits)
    tables = [
        dpt.tree_counts(
            records, BY, epsilon=1.0, domain=clinics, privacy_unit="person", max_contributions=2, rng=rng(1)
        )
        for records in (visits, frame, frame.lazy(), frame.to_arrow())
    ]
    for table in tables[1:]:
        pd.testing.assert_frame_equal(table, tables[0])


@given(
    drawn=domains_and_rows(),
    consistency=st.sampled_from(MODES),
    loss=st.sampled_from([{"epsilon": 0.5}, {"epsilon": 1.0, "delta": 1e-6}, {"rho": 0.1}]),
    neighbors=st.sampled_from(["add_remove", "replace"]),
    split=st.sampled_from(["optimal", "uniform", "geometric"]),
)
def test_shape_types_and_spending_follow_from_the_plan_alone(drawn, consistency, loss, neighbors, split):
    domain, rows = drawn
    plan = dpt.plan(domain, consistency=consistency, neighbors=neighbors, split=split, **loss)
    moves = plan.sensitivity
    spent, budget = plan.noise.spent(plan.loss, moves, plan.noise_scales), plan.noise.budget(plan.loss)
    if "delta" in loss:
        proven = plan.noise.delta(loss["epsilon"], plan.noise_scales, moves)
        assert spent <= budget or proven <= loss["delta"]
    else:
        assert spent <= budget == exact(loss.get("rho", loss.get("epsilon")))
    released, empty = plan.release(rows), plan.release(rows.iloc[:0])
    pd.testing.assert_frame_equal(released.drop(columns="count"), empty.drop(columns="count"))
    assert released["count"].dtype == empty["count"].dtype
    assert released["count"].dtype == (np.int64 if consistency in {"none", "integer"} else np.float64)
    for depth, name in enumerate(level_names(domain)[1:], start=1):
        assert len(released.dp.level(name)) == len(domain.keys(depth))


def test_short_paths_are_counted_and_their_chains_not_shown():
    places = pd.DataFrame({"state": ["CA", "CA", "DC"], "county": ["Alameda", "Marin", None]})
    rows = pd.DataFrame({"state": ["CA", "DC", "DC", "CA"], "county": ["Marin", None, "Marin", None]})
    counts = rows.dp.tree_counts(["state", "county"], epsilon=5000.0, domain=places)
    assert counts["state"].isna().tolist() == [True, False, False, False, False]
    assert counts.dp.level("state")["count"].to_dict() == {"CA": 1, "DC": 1}
    assert counts.dp.level("county")["count"].to_dict() == {("CA", "Alameda"): 0, ("CA", "Marin"): 1}


def test_keys_keep_their_values_and_can_be_missing():
    keys = pd.DataFrame(
        {
            "int": [2, 2, 10],
            "flag": [True, False, True],
            "when": pd.to_datetime(["2024-01-01", "2024-02-29", "2024-01-01"]),
            "kind": pd.Categorical(["x", "y", "x"], categories=["y", "x", "unused"]),
            "real": [0.5, 1.5, 0.5],
            "text": ["total", "All", "é"],
        }
    )
    counts = keys.dp.tree_counts(list(keys), epsilon=1.0, domain="observed")
    types = counts.dtypes
    assert types["int"] == "Int64" and types["flag"] == "boolean" and types["real"] == "float64"
    assert types["when"] == keys["when"].dtype
    assert list(counts["kind"].cat.categories) == ["y", "x"]  # a category that no key bears is not released
    assert counts.dp.level("flag").index.get_level_values("flag").dtype == bool
    assert counts.dp.level("int").index.dtype == np.int64
    leaves = counts.dp.level("text").index.to_frame(index=False)
    used = keys.assign(kind=keys["kind"].cat.remove_unused_categories())
    expected = used.groupby(list(keys), observed=True).size().index.to_frame(index=False)
    pd.testing.assert_frame_equal(leaves, expected, check_dtype=False)


@pytest.mark.filterwarnings("ignore:Mismatched null-like values:FutureWarning")  # pandas 2 has several
def test_the_table_survives_files(tmp_path, visits, clinics):
    pytest.importorskip("pyarrow")
    counts = visits.dp.tree_counts(BY, epsilon=1.0, domain=clinics)
    counts.to_parquet(tmp_path / "counts.parquet")
    back = pd.read_parquet(tmp_path / "counts.parquet")
    pd.testing.assert_frame_equal(back, counts)
    counts.to_csv(tmp_path / "counts.csv", index=False)
    text = pd.read_csv(tmp_path / "counts.csv")
    assert text.dp.level("district")["count"].tolist() == counts.dp.level("district")["count"].tolist()


def test_numbers_alone():
    tree = dpt.Tree.from_branching([2, 3])
    plan = dpt.plan(tree, rho=0.5)
    released = plan.release(np.array([5, 0, 0, 9, 1, 4]), rng=rng())
    assert list(released.columns) == ["level", "level_1", "level_2", "count", "std_error"]
    assert released.dp.level("level_1").index.tolist() == [0, 1]
    exact = dpt.plan(tree, epsilon=6000.0).release(np.array([5, 0, -7, 9, 1, 4]))
    assert exact["count"].tolist() == [19, 5, 14, 5, 0, 0, 9, 1, 4]


def test_a_generator_repeats_and_the_operating_system_does_not(visits, clinics):
    plan = visits.dp.plan(BY, epsilon=0.1, domain=clinics)
    pd.testing.assert_frame_equal(plan.release(visits, rng=rng(3)), plan.release(visits, rng=rng(3)))
    assert not plan.release(visits)["count"].equals(plan.release(visits)["count"])
    assert "not private" in plan.release(visits, rng=rng(3)).attrs["dp"]["rng"]


def test_the_joint_fit_is_another_table_that_adds_up(visits, clinics):
    tables = {
        fit: visits.dp.tree_counts(BY, epsilon=0.2, domain=clinics, fit=fit, rng=rng(4))
        for fit in ("totals", "joint")
    }
    assert not tables["totals"]["count"].equals(tables["joint"]["count"])
    joint = tables["joint"]
    assert joint["count"].dtype == np.int64 and (joint["count"] >= 0).all()
    assert joint.dp.level("region")["count"].sum() == joint.dp.level("total")["count"].item()
    assert joint.attrs["dp"]["fit"] == "joint"


def test_a_level_can_be_left_out(visits, clinics):
    plan = visits.dp.plan(BY, epsilon=1.0, domain=clinics, split={"district": 0.4, "clinic": 0.6})
    assert np.isinf(plan.noise_scales[:2]).all()
    counts = plan.release(visits)
    assert counts.attrs["dp"]["noise_scale"]["total"] is None
    assert counts["std_error"].notna().all()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("mechanism", "consistency"), [("laplace", "linear"), ("gaussian", "linear"), ("laplace", "none")]
)
def test_std_error_is_what_repeated_releases_show(mechanism, consistency):
    tree = dpt.Tree.from_paths(
        [[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 0, 1], [1, 0, 2], [2, -1, -1]]
    )
    leaves = np.array([50, 0, 7, 3, 0, 0, 900])
    plan = dpt.plan(tree, rho=0.05, mechanism=mechanism, consistency=consistency)
    exact = np.concatenate([level[tree.listed(i)] for i, level in enumerate(tree.roll_up(leaves))])
    generator = rng(11)
    errors = np.array([plan.release(leaves, rng=generator)["count"] - exact for _ in range(5000)])
    first = plan.release(leaves, rng=generator)
    squared = pd.Series((errors**2).mean(axis=0)).groupby(first["level"], observed=True).mean() ** 0.5
    expected = (first["std_error"] ** 2).groupby(first["level"], observed=True).mean() ** 0.5
    np.testing.assert_allclose(squared, expected, rtol=0.04)
    np.testing.assert_allclose(plan.std_errors, expected, rtol=1e-12)
    bias = errors.mean(axis=0) / (first["std_error"].to_numpy() / np.sqrt(len(errors)))
    assert np.abs(bias).max() < 4.5


def test_a_plan_reads_as_a_table(clinics):
    plan = dpt.plan(
        dpt.Domain.from_frame(clinics, by=BY), epsilon=1.0, privacy_unit="person", max_contributions=2
    )
    text = repr(plan)
    assert "laplace" in text and "epsilon=1" in text and "district" in text
    frame = plan.to_frame()
    assert list(frame.columns) == ["level", "nodes", "share", "noise_scale", "std_error"]
    assert frame["share"].sum() == pytest.approx(1)
    assert frame["nodes"].iloc[-1] == clinics["clinic"].notna().sum()


def test_real_records_of_bird_strikes(real_data):
    strikes = pd.read_csv(real_data / "birdstrikes.csv")
    by = ["Origin State", "Airport Name"]
    places = strikes[by].drop_duplicates().dropna()
    counts = strikes.dp.tree_counts(by, epsilon=1.0, domain=places)
    states = counts.dp.level("Origin State")["count"]
    exact = strikes.groupby(by[0]).size()
    assert (states - exact.reindex(states.index)).abs().max() < 100
    assert states.sum() == counts.dp.level("total")["count"].item()
    airports = counts.dp.level("Airport Name")["count"]
    assert airports.groupby(level=0).sum().equals(states)


@pytest.mark.nightly
def test_two_million_people_in_thirty_thousand_cities(real_data):
    by = ["state", "county", "city"]
    places = pd.read_csv(real_data / "zipcodes.csv", dtype=str, keep_default_na=False)[by].drop_duplicates()
    assert len(places) == 30_212
    generator = rng(1)
    sizes = generator.pareto(1.1, len(places)) + 0.05
    people = places.iloc[generator.choice(len(places), 2_000_000, p=sizes / sizes.sum())]
    counts = people.dp.tree_counts(by, epsilon=1.0, domain=places, rng=generator)
    assert len(counts) == 1 + 59 + 3_227 + 30_212
    for depth in (1, 2, 3):
        level = counts.dp.level(by[depth - 1])["count"]
        above = counts.dp.level("total" if depth == 1 else by[depth - 2])["count"]
        rolled = level.groupby(level=list(range(depth - 1))).sum() if depth > 1 else level.sum()
        assert (rolled == above.to_numpy()).all()
        exact = people.groupby(by[:depth]).size().reindex(level.index, fill_value=0)
        error = np.sqrt(((level - exact) ** 2).mean())
        expected = np.sqrt((counts.dp.level(by[depth - 1])["std_error"] ** 2).mean())
        assert error < expected * (1 + 4 / np.sqrt(len(level)))


BAD = [
    ({}, "epsilon"),
    ({"epsilon": 0}, "epsilon"),
    ({"epsilon": -1.0}, "epsilon"),
    ({"epsilon": float("nan")}, "epsilon"),
    ({"epsilon": float("inf")}, "epsilon"),
    ({"epsilon": "1"}, "epsilon"),
    ({"epsilon": 1e-13}, "epsilon"),
    ({"epsilon": 1.0, "delta": 1.0}, "delta"),
    ({"epsilon": 1.0, "delta": -0.1}, "delta"),
    ({"epsilon": 1.0, "rho": 0.1}, "rho"),
    ({"rho": 0.0}, "rho"),
    ({"rho": 0.1, "delta": 0.1}, "delta"),
    ({"epsilon": 1.0, "neighbors": "swap"}, "neighbors"),
    ({"epsilon": 1.0, "max_contributions": 0}, "max_contributions"),
    ({"epsilon": 1.0, "max_contributions": 1.5}, "max_contributions"),
    ({"epsilon": 1.0, "max_contributions": 2}, "max_contributions"),
    ({"epsilon": 1.0, "privacy_unit": "clinic"}, "privacy_unit"),
    ({"epsilon": 1.0, "privacy_unit": "nobody", "max_contributions": 2}, "frame"),
    ({"epsilon": 1.0, "privacy_unit": "person"}, "max_contributions"),
    ({"epsilon": 1.0, "mechanism": "exponential"}, "mechanism"),
    ({"epsilon": 1.0, "mechanism": "gaussian"}, "mechanism"),
    ({"epsilon": 1.0, "mechanism": 3}, "mechanism"),
    ({"epsilon": 1.0, "split": "even"}, "split"),
    ({"epsilon": 1.0, "split": {"clinic": 0.5}}, "split"),
    ({"epsilon": 1.0, "split": {"clinics": 1.0}}, "split"),
    ({"epsilon": 1.0, "split": {"clinic": -0.5, "total": 1.5}}, "split"),
    ({"epsilon": 1.0, "split": {"region": 1.0}}, "split"),
    ({"epsilon": 1.0, "split": {"clinic": 1.0}, "consistency": "none"}, "split"),
    ({"epsilon": 1.0, "level_weights": {"clinics": 1.0}}, "level_weights"),
    ({"epsilon": 1.0, "level_weights": {"clinic": float("nan")}}, "level_weights"),
    ({"epsilon": 1.0, "level_weights": dict.fromkeys(["total", *BY], 0)}, "level_weights"),
    ({"epsilon": 1.0, "level_weights": [1, 2]}, "level_weights"),
    ({"epsilon": 1.0, "objective": "mean"}, "objective"),
    ({"epsilon": 1.0, "consistency": "whole"}, "consistency"),
    ({"epsilon": 1.0, "fit": "both"}, "fit"),
    ({"epsilon": 1.0, "rng": 0}, "rng"),
    ({"epsilon": 1.0, "domain": None}, "domain"),
    ({"epsilon": 1.0, "domain": "seen"}, "domain"),
    ({"epsilon": 1.0, "domain": "categories"}, "domain"),
    ({"epsilon": 1.0, "domain": dpt.datasets.clinics()[["region"]]}, "domain"),
    ({"epsilon": 1.0, "by": {"region"}}, "by"),
    ({"epsilon": 1.0, "by": []}, "by"),
    ({"epsilon": 1.0, "by": ["region", "region"]}, "by"),
    ({"epsilon": 1.0, "by": ["region", "count"]}, "by"),
    ({"epsilon": 1.0, "by": ["region", "town"]}, "domain"),
    ({"epsilon": 1.0, "by": ["region", "lower"]}, "by"),
    ({"epsilon": 1.0, "confidence": 95}, "confidence"),
    ({"epsilon": 1.0, "keep": "measurements"}, "keep"),
    ({"epsilon": 1.0, "known": {"town": 5}}, "known"),
    ({"epsilon": 1.0, "known": {"region": {"Atlantis": 5}}}, "known"),
    ({"epsilon": 1.0, "known": {"total": 5, "region": {"Aldmark": 6}}}, "known"),
    ({"epsilon": 1.0, "known": {"total": 5}, "split": {"total": 0.5, "clinic": 0.5}}, "split"),
    ({"epsilon": 1.0, "known": {"total": 0}}, "known"),
]


@each(("options", "argument"), BAD)
def test_bad_arguments_are_named_and_come_with_a_hint(visits, clinics, options, argument):
    options = {"by": BY, "domain": clinics, **options}
    with pytest.raises(dpt.ArgumentError) as caught:
        dpt.tree_counts(visits, **options)
    assert caught.value.argument == argument
    assert str(caught.value).startswith(f"`{argument}`")
    assert "\nHint: " in str(caught.value)


def test_more_bad_arguments(visits, clinics):
    domain = dpt.Domain.from_frame(clinics, by=BY)
    with pytest.raises(dpt.ArgumentError, match="keys"):
        visits.dp.tree_counts(BY[:2], epsilon=1.0, domain=domain)
    with pytest.raises(dpt.ArgumentError, match="never sees records"):
        dpt.plan(clinics, epsilon=1.0)
    with pytest.raises(dpt.ArgumentError, match="leaf counts"):
        dpt.plan(dpt.Tree.from_branching([2]), epsilon=1.0).release(visits)
    with pytest.raises(dpt.ArgumentError, match="cannot be identified"):
        plan = dpt.plan(domain, epsilon=1.0, privacy_unit="person", max_contributions=2)
        plan.release(np.zeros(domain.tree.n_leaves, int))
    with pytest.raises(dpt.ArgumentError, match="not a released table"):
        visits.dp.level("region")
    trips = dpt.datasets.taxi_trips(n_trips=0, n_cells=2)
    for mistaken in (
        dpt.tree_counts,
        lambda array, by, epsilon: array.dp.plan(by, epsilon=epsilon).release(array),
    ):
        with pytest.raises(
            dpt.ArgumentError, match=r"not a DataArray\.\nHint: for arrays, use their own methods"
        ):
            mistaken(trips, ["y"], epsilon=1.0)
    with pytest.raises(dpt.ArgumentError, match="is not a level"):
        visits.dp.tree_counts(BY, epsilon=1.0, domain=domain).dp.level("town")


def test_bad_data_give_the_full_table(visits, clinics):
    weird = visits.head(9).astype({name: object for name in BY})
    weird["region"] = [None, np.nan, pd.NaT, pd.NA, [1], {"a": 1}, 3.5, "nowhere", ("x",)]
    for records in (weird, weird.iloc[:0]):
        counts = records.dp.tree_counts(BY, epsilon=1.0, domain=clinics, consistency="linear")
        expected = visits.dp.tree_counts(BY, epsilon=1.0, domain=clinics, consistency="linear")
        pd.testing.assert_frame_equal(counts.drop(columns="count"), expected.drop(columns="count"))


def test_a_level_that_is_not_measured_may_be_known_in_part(visits, clinics):
    split = {"total": 0.2, "district": 0.4, "clinic": 0.4}
    for consistency in MODES[1:]:
        counts = visits.dp.tree_counts(
            BY, epsilon=1.0, domain=clinics, split=split, known={"region": {"Aldmark": 250}},
            consistency=consistency, confidence=0.9, keep=["measurements"],
        )  # fmt: skip
        regions = counts.dp.level("region")
        assert regions.loc["Aldmark", ["count", "std_error", "lower", "upper"]].tolist() == [250, 0, 250, 250]
        assert (regions["std_error"] > 0).sum() == len(regions) - 1 and regions["measurement"].isna().all()
        assert counts.dp.level("district").loc["Aldmark", "count"].sum() == pytest.approx(250)


def test_the_provenance_states_what_was_known_and_added_up(visits, clinics):
    counts = visits.dp.tree_counts(BY, epsilon=1.0, domain=clinics, known={"total": 4000}, confidence=0.9)
    provenance = counts.attrs["dp"]
    assert (
        provenance["known"] == {"total": 1} and provenance["confidence"] == 0.9 and "column" not in provenance
    )
    assert provenance["noise_scale"]["total"] is None
    plan = dpt.plan(
        dpt.Domain.from_frame(clinics, by=BY), epsilon=1.0, column="cost", bounds=(-5, 500), granularity=0.25
    )
    provenance = plan.release(visits).attrs["dp"]
    assert (provenance["column"], provenance["bounds"], provenance["granularity"]) == (
        "cost",
        [-5.0, 500.0],
        0.25,
    )
    json.dumps(provenance)


@pytest.mark.parametrize("consistency", MODES)
def test_what_the_table_shows_besides_changes_nothing_else(visits, clinics, consistency):
    options = {"epsilon": 0.5, "domain": clinics, "consistency": consistency, "known": {"total": 4000}}
    plain = visits.dp.tree_counts(BY, rng=rng(8), **options)
    more = visits.dp.tree_counts(BY, rng=rng(8), confidence=0.9, keep=["measurements"], **options)
    assert list(more)[len(plain.columns) :] == ["lower", "upper", "measurement", "noise_scale"]
    pd.testing.assert_frame_equal(more[list(plain)], plain)
    assert (more["lower"] <= more["count"] + 1e-9).all() and (more["count"] <= more["upper"] + 1e-9).all()


def test_sums_of_a_column_by_a_plan_are_the_truth_with_hardly_any_noise(visits, clinics):
    domain = dpt.Domain.from_frame(clinics, by=BY)
    inside = visits.dropna(subset=["cost"])
    exact = inside.assign(cost=inside["cost"].clip(-5, 500)).groupby(BY, observed=True)["cost"].sum()
    for consistency in MODES:
        plan = dpt.plan(
            domain, epsilon=1e5, column="cost", bounds=(-5, 500), granularity=0.01, consistency=consistency,
            confidence=0.9, keep=["measurements"],
        )  # fmt: skip
        table = plan.release(visits)
        sums = table.dp.level("clinic")
        exact = exact[exact.index.isin(sums.index)]
        np.testing.assert_allclose(sums["cost"].reindex(exact.index), exact, atol=1.0)
        assert (sums["cost_lower"] <= sums["cost"] + 1e-9).all()
        assert (sums["cost"] <= sums["cost_upper"] + 1e-9).all()
        measured = table["cost_measurement"] / 0.01
        np.testing.assert_allclose(measured, measured.round(), atol=1e-6)
        assert plan.std_errors[-1] < 0.3


def test_codes_that_were_read_as_numbers_get_a_hint_about_their_zeros():
    zips = pd.DataFrame({"zip": ["00501", "94601"], "day": ["2024-01-01", "2024-01-02"]}, dtype="string")
    read = pd.DataFrame({"zip": [501, 94601], "day": pd.to_datetime(zips["day"])})
    hint = r"""\("00501" as 501\) need read_csv\(\.\.\., dtype=\{'zip': str\}\)\.$"""
    for records, public in ((read, zips), (zips, read)):
        for by in (["zip"], ["zip", "day"]):
            with pytest.raises(dpt.ColumnsError, match=hint):
                records.dp.tree_counts(by, epsilon=1.0, domain=public)
    prefixes = dpt.prefixes("zip", chars=[1])
    for by, delta in ((prefixes, 1e-6), ([prefixes], 0.0)):
        with pytest.raises(dpt.ColumnsError, match=hint):
            read.dp.tree_counts(by, epsilon=1.0, delta=delta)
    with pytest.raises(dpt.ColumnsError) as caught:
        zips.dp.tree_counts(["day"], epsilon=1.0, domain=read)
    assert caught.value.hint == "convert one of the two, text to dates with pd.to_datetime."


@each(
    ("call", "message"),
    [
        (
            lambda visits, options: visits.dp.tree_counts(["region"], delta="1e-6", **options),
            r"`delta` must be a number, not '1e-6'\.\nHint: .*delta=1e-6\.",
        ),
        (
            lambda visits, options: visits.dp.tree_counts(
                ["region"], known=pd.DataFrame({"region": ["Norland"], "n": [3]}), **options
            ),
            r"'n'\.\nHint: .*the numbers must be named `count` or `at_least`",
        ),
        (
            lambda visits, options: visits.dp.tree_counts(BY[:2], split={"region": 0.5}, **options),
            r"sum to 1, not to 0\.5\.\nHint: for example \{'total': 0\.5, 'district': 0\.5\}",
        ),
    ],
)
def test_mistakes_get_a_hint_that_works(visits, call, message):
    visits = visits.astype({"region": "string"})  # pandas 2 holds text as objects, which may be numbers
    with pytest.raises(dpt.ArgumentError, match=message):
        call(visits, {"epsilon": 1.0, "domain": "observed"})


def test_records_take_plans_of_every_kind(visits, clinics):
    domain = dpt.Domain.from_frame(clinics[["region"]].drop_duplicates(), by=["region"])
    plans = [
        dpt.plan(domain, epsilon=1.0),
        dpt.plan(domain, epsilon=1.0, delta=1e-6, mechanism=dpt.Multiplicative(alpha=0.5)),
        dpt.plan(dpt.prefixes("clinic", chars=[1]), epsilon=1.0, delta=1e-6),
    ]
    for plan in plans:
        pd.testing.assert_frame_equal(visits.dp.release(plan, rng=rng(3)), plan.release(visits, rng=rng(3)))
    costs = dpt.plan_distribution("cost", bounds=(0, 500), bins=9, epsilon=1.0, domain=domain)
    pd.testing.assert_frame_equal(
        visits.dp.release(costs, rng=rng(3)).cdf(), costs.release(visits, rng=rng(3)).cdf()
    )

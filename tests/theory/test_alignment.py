"""Released tables beside the truth: the same nodes, in tables of every shape."""

import io

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

import pandas_dptree as dpt
from pandas_dptree import ArgumentError, ColumnsError, theory
from tests.strategies import domains_and_rows


def truth_by_hand(records, table, by):
    """Count the records of each row, one by one."""
    names = ["total", *by]
    counts = []
    for row in table.to_dict("records"):
        keys = by[: names.index(row["level"])]
        counts.append(sum(all(record[key] == row[key] for key in keys) for record in records))
    return np.array(counts)


@pytest.mark.tripwire
@settings(max_examples=8)
@given(domains_and_rows(), st.integers(0, 2**32), st.booleans())
def test_tables_join_on_level_and_keys(domain_and_rows, seed, as_frame):
    domain, rows = domain_and_rows
    by, rng = list(domain.by), np.random.default_rng(seed)
    exact = dpt.plan(domain, epsilon=1e4, consistency="linear").release(rows, rng=rng)
    inside = rows[np.array([leaf >= 0 for leaf in leaves_of(domain, rows)], dtype=bool)]
    counts = truth_by_hand(inside.to_dict("records"), exact, by)
    assert exact["count"].round().tolist() == counts.tolist()

    plan = dpt.plan(domain, epsilon=1.0)
    tables = [plan.release(rows, rng=each) for each in rng.spawn(3)]
    estimates = np.array([table["count"] for table in tables])
    expected = theory.alpha_rmse(estimates, counts, 0.1)
    order = rng.permutation(len(counts))
    shuffled = [tables[0].iloc[order], *(table.sample(frac=1, random_state=7) for table in tables[1:])]
    grouped = inside.groupby(by, dropna=False, sort=False).size()
    truths = [
        grouped.sample(frac=1, random_state=3),
        pd.concat([grouped, grouped * 0]),  # keys twice
        exact.assign(count=counts).sample(frac=1, random_state=5),
        exact.assign(count=counts)[counts > 0],
        counts[order],
    ]
    if as_frame:
        truths[0] = grouped.rename("count").reset_index()
        truths[1] = inside[by].assign(count=1)[[*by[::-1], "count"]]
    for truth in truths:
        got = theory.alpha_rmse(shuffled, truth, 0.1)
        assert got.columns.tolist() == ["level", *by, "alpha_rmse"]
        assert got.index.tolist() == order.tolist()
        assert got["alpha_rmse"].to_numpy() == pytest.approx(expected[order])
        assert "dp" not in got.attrs


def leaves_of(domain, rows):
    """The leaf of each record, -1 outside the domain, by looking each path up."""
    tree = domain.tree
    paths = domain.path_codes(tree.depth)
    known = {
        tuple(
            None if codes[leaf] < 0 else labels[codes[leaf]]
            for labels, codes in zip(domain.labels, paths, strict=True)
        ): leaf
        for leaf in range(tree.n_leaves)
    }
    cleaned = rows.astype(object).where(rows.notna(), None)
    return [known.get(path, -1) for path in cleaned.itertuples(index=False, name=None)]


COUNTS = [10, 9, 1, 0, 4, 5, 1]  # total; CA, NY, WA; counties


def test_every_measure_takes_tables(table, truth):
    estimates = table["count"].to_numpy()
    assert table["state"].tolist()[1:4] == ["CA", "NY", "WA"]
    frames, arrays = (table, truth), (estimates, np.array(COUNTS))
    for measure in (theory.max_alpha_rmse, theory.l2_error, theory.linf_error):
        assert measure(*frames) == measure(*arrays)
    per_level = {"total": 3, "state": 2, "county": 1}
    each = [3, 2, 2, 2, 1, 1, 1]
    for thresholds in (per_level, each):
        accuracy = theory.accuracy(*frames, 0.5, thresholds=thresholds)["accuracy"]
        assert accuracy.tolist() == theory.accuracy(*arrays, 0.5, thresholds=each).tolist()
        assert theory.is_accurate(*frames, 0.5, thresholds=thresholds) == bool(accuracy.all())
    relative = theory.smoothed_relative_error(*frames, 2)["smoothed_relative_error"]
    assert relative.tolist() == theory.smoothed_relative_error(*arrays, 2).tolist()


def test_rows_of_a_table(table, truth):
    whole = theory.alpha_rmse(table, truth)
    states = table[table["level"] == "state"]
    expected = whole.loc[states.index]
    pd.testing.assert_frame_equal(theory.alpha_rmse(states, truth), expected)
    assert len(expected) == 3
    coarse = pd.Series([9, 1], index=pd.Index(["CA", "NY"], name="state"))
    pd.testing.assert_frame_equal(theory.alpha_rmse(states, coarse), expected)
    pd.testing.assert_frame_equal(theory.alpha_rmse(states, coarse.rename_axis(None)), expected)
    pd.testing.assert_frame_equal(theory.alpha_rmse(states, table.assign(count=COUNTS)), expected)
    total = theory.alpha_rmse(table.iloc[:1], truth)
    assert total["alpha_rmse"].tolist() == whole["alpha_rmse"].tolist()[:1]
    selected = table[table["state"] == "CA"]
    assert len(theory.alpha_rmse(selected, truth[["CA"]])) == 3


def test_tables_and_truths_from_elsewhere(table, truth):
    expected = theory.alpha_rmse(table, truth)["alpha_rmse"].tolist()
    read = pd.read_csv(io.StringIO(table.to_csv(index=False)), keep_default_na=False, na_values=[""])
    assert theory.alpha_rmse(read, truth)["alpha_rmse"].tolist() == expected
    assert theory.alpha_rmse([read, table], truth)["alpha_rmse"].tolist() == pytest.approx(expected)
    categories = pd.DataFrame({"state": pd.Categorical(["CA"] * 9 + ["NY"], ["CA", "NV", "NY"])})
    grouped = categories.assign(county=[1] * 4 + [2] * 5 + [1]).groupby(["state", "county"], observed=False)
    assert 0 in grouped.size().to_numpy()  # Nevada is nowhere
    assert theory.alpha_rmse(table, grouped.size())["alpha_rmse"].tolist() == expected
    assert theory.alpha_rmse(table, grouped.size().to_frame("count"))["alpha_rmse"].tolist() == expected
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"county": [1, 2, 1], "state": ["CA", "CA", "NY"], "count": [4, 5, 1]})
    assert theory.alpha_rmse(table, frame)["alpha_rmse"].tolist() == expected


def test_sums_are_compared_by_their_column(places):
    records = pd.DataFrame({"state": ["CA", "NY"], "county": [1, 1], "cost": [3.0, -4.0]})
    table = dpt.tree_sums(
        records, ["state", "county"], columns="cost", bounds=(-5, 5), domain=places, epsilon=1.0,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    truth = records.groupby(["state", "county"])["cost"].sum()
    got = theory.alpha_rmse(table, truth, 0.5, column="cost")["alpha_rmse"].to_numpy()
    expected = np.array([-1.0, 3, -4, 0, 3, 0, -4])
    assert got == pytest.approx(np.maximum(np.abs(table["cost"] - expected) - np.abs(expected) / 2, 0))
    read = pd.read_csv(io.StringIO(table.to_csv(index=False)))
    assert theory.alpha_rmse(read, truth, 0.5, column="cost")["alpha_rmse"].to_numpy() == pytest.approx(got)
    with pytest.raises(ColumnsError, match="column"):
        theory.alpha_rmse(table, truth)


@pytest.mark.parametrize(
    "key", [("TX", 1), ("CA", 3), ("CA", None), ("WA", 1), (None, 1), (None, None)], ids=str
)
def test_records_that_no_row_counts_are_refused_and_not_named(table, truth, key):
    names = ["state", "county"]
    more = pd.DataFrame([*truth.index, key], columns=names).assign(count=[*truth, 2])
    for grouped in (more, more.set_index(names)["count"]):
        with pytest.raises(ArgumentError, match=r"(?s)does not list.*Hint: leave out") as caught:
            theory.alpha_rmse(table, grouped)
        assert caught.value.argument == "truth"
        assert not any(isinstance(each, str) and each in str(caught.value) for each in key)
    stated = pd.DataFrame({"level": ["county"], "state": [key[0]], "county": [key[1]], "count": [1]})
    with pytest.raises(ArgumentError, match="does not list"):
        theory.alpha_rmse(table, stated)
    with pytest.raises(ArgumentError, match="does not list"):
        theory.alpha_rmse(table, stated.assign(level="galaxy"))


def test_a_record_of_a_short_path_counts_there(table, truth):
    more = pd.concat([truth.rename("count").reset_index(), pd.DataFrame({"state": ["WA"], "count": [2]})])
    got = theory.alpha_rmse(table, more, 0.0)["alpha_rmse"]
    counts = np.array([12, 9, 1, 2, 4, 5, 1])
    assert got.tolist() == np.abs(table["count"] - counts).tolist()


def test_truths_of_other_nodes_are_ignored_where_they_hold_nothing(table, truth):
    nowhere = pd.Series([0], index=pd.MultiIndex.from_tuples([("TX", 7)], names=["state", "county"]))
    more = theory.alpha_rmse(table, pd.concat([truth, nowhere]))
    pd.testing.assert_frame_equal(more, theory.alpha_rmse(table, truth))

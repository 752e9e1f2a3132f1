"""The domain of a release of records: keys that are passed, observed, public by their type, or released."""

import datetime
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pandas_dptree
from pandas_dptree.errors import ArgumentError, ColumnsError, DomainError
from pandas_dptree.hierarchy.domain import Domain, fingerprint
from tests.helpers_cases import each
from tests.helpers_implicit import ADDRESSES, HALF, NUMBERS, TREES, records, records_of_sizes, released
from tests.helpers_output import KEYS, people, us
from tests.helpers_privacy import LOSS
from tests.helpers_random import rng
from tests.strategies import frame_of, names, paths


def test_only_verbs_on_records_offer_what_stands_in_them():
    for call in (
        lambda: Domain.from_frame("observed", by=["state"]),
        lambda: pandas_dptree.derived_domain(["state"], "categories"),
        lambda: pandas_dptree.derived_domain(["state"]),
    ):
        with pytest.raises(DomainError) as caught:
            call()
        assert "observed" not in caught.value.hint and "categories" not in caught.value.hint


@pytest.mark.parametrize("lazy", [False, True])
def test_the_categories_of_an_enum_are_public_by_its_type(lazy):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(
        {"size": ["S", "S", None, "L"], "state": ["CA", "WA", "CA", "CA"]},
        schema={"size": polars.Enum(["S", "M", "L"]), "state": polars.Categorical},
    )
    records = frame.lazy() if lazy else frame
    counts = pandas_dptree.tree_counts(records, ["size"], epsilon=1e5, domain="categories")
    assert counts["size"].tolist()[1:] == ["S", "M", "L"] and counts["count"].tolist() == [3, 2, 0, 1]
    assert Domain.from_categories(records, by=["size"]).labels[0].tolist() == ["S", "M", "L"]
    with pytest.raises(ColumnsError, match=r"not categorical: 'state'\.\nHint: .*polars\.Enum"):
        pandas_dptree.tree_counts(records, ["size", "state"], epsilon=1.0, domain="categories")


# Keys of a released table


def table_of(domain, **options):
    """Release a table, which shows every key of the domain whatever the records are."""
    nobody = pd.DataFrame({key: [] for key in domain.sources}, dtype=object)
    plan = pandas_dptree.plan(domain, **(options or {"epsilon": 1.0, "split": "uniform"}))
    with warnings.catch_warnings(action="ignore"):  # the table is nearly empty
        return plan.release(nobody)


def shown_leaves(table, keys):
    """The longest paths that rows show, found one by one; a missing key ends a path."""
    found = set()
    for level, *path in table[["level", *keys]].astype(object).itertuples(index=False, name=None):
        path = path[: ["total", *keys].index(level)]
        found.add(tuple(path[:-1] if path and pd.isna(path[-1]) else path))
    return {
        path for path in found if path and not any(path == other[: len(path)] != other for other in found)
    }


def leaves_of(domain):
    rows = domain.keys(len(domain.by)).astype(object).itertuples(index=False, name=None)
    shorter = (domain.keys(level).astype(object) for level in range(1, len(domain.by)))
    tuples = {*rows, *(row for keys in shorter for row in keys.itertuples(index=False, name=None))}
    return {path for path in tuples if not any(path == other[: len(path)] != other for other in tuples)}


def is_released(found, expected):
    """Whether a domain has the leaves and the names of another, and states that they were released."""
    return fingerprint(found) == fingerprint(expected) and found.source == "released"


def test_a_released_table_has_a_domain():
    table = table_of(us())
    assert is_released(table.dp.domain(), us())


@given(paths(), st.randoms(use_true_random=False))
def test_a_table_has_the_domain_of_its_release(leaves, random):
    depth = max(len(path) - path.count(None) for path in leaves)  # no key is shown on the levels below
    by = names(len(leaves[0]))
    table = table_of(Domain.from_frame(frame_of(leaves, by), by=by))
    expected = Domain.from_frame(frame_of([path[:depth] for path in leaves], by[:depth]), by=by[:depth])
    order = random.sample(range(len(table)), len(table))
    for rows in (table, table.iloc[order], table[table["level"] != "total"]):
        assert is_released(rows.dp.domain(), expected)


@given(paths(), st.data())
def test_a_filtered_table_has_the_paths_of_its_rows(leaves, data):
    by = names(len(leaves[0]))
    table = table_of(Domain.from_frame(frame_of(leaves, by), by=by))
    table = table.iloc[data.draw(st.lists(st.integers(1, len(table) - 1), min_size=1, unique=True))]
    domain = table.dp.domain()
    assert leaves_of(domain) == shown_leaves(table, by) and domain.by == tuple(by[: len(domain.by)])


def test_coarser_levels_are_a_domain_of_their_own():
    table = table_of(us())
    states = Domain.from_frame(pd.DataFrame({"state": ["CA", "DC", "WA"]}), by=["state"])
    assert is_released(table[table["level"].isin(["total", "state"])].dp.domain(), states)
    assert is_released(table[table["level"] == "county"].dp.domain(), Domain.from_frame(
        people(1, 1, 1, 0, 1, 1), by=KEYS))  # fmt: skip


@each(
    "keys",
    [
        [2**53 + 1, 2**53, -1],
        np.array([2**64 - 1, 2**63], dtype=np.uint64),
        [True, False],
        [0.5, 1.0],
        pd.Categorical(["b", "a"], categories=["c", "b", "a"], ordered=True),
        pd.to_datetime(["2024-02-29", "2023-01-01"]),
        pd.to_datetime(["2024-02-29", "2023-01-01"]).tz_localize("Asia/Tokyo"),
        pd.interval_range(0, 3),
        pd.period_range("2024-01", periods=2, freq="M"),
        [datetime.date(2024, 2, 29), "text", 1],
        pd.Series(["", "None", "nan", "\ud800"], dtype=object),
        pd.array(["a", "b"], dtype="string"),
    ],
)  # fmt: skip
def test_keys_keep_their_values_and_types(keys):
    places = pd.DataFrame({"first": keys}).merge(pd.DataFrame({"second": [1, 2]}), how="cross")
    domain = Domain.from_frame(places, by=["first", "second"])
    table = table_of(domain)
    found = table.dp.domain()
    assert is_released(found, domain)
    assert [label.dtype for label in found.labels] == [table[key].dtype for key in found.by]
    assert [label.tolist() for label in found.labels] == [label.tolist() for label in domain.labels]
    assert list(table_of(found).columns) == list(table.columns)
    pd.testing.assert_frame_equal(table_of(found)[["level", *found.by]], table[["level", *found.by]])


@each("by", [[("a",)], [("a", 1), ("b", 2)], [0, 2.5], ["other", "count of"]])
def test_names_of_keys_may_be_anything(by):
    leaf = pd.DataFrame([[True, False][: len(by)]], columns=pd.Index(by, tupleize_cols=False))
    domain = Domain.from_frame(leaf, by=by)
    assert is_released(table_of(domain).dp.domain(), domain)


def test_categories_that_are_not_shown_are_not_kept():
    places = pd.DataFrame({"size": pd.Categorical(["S", "M", "L"], categories=["S", "M", "L"])})
    table = table_of(Domain.from_categories(places, by=["size"]))
    assert table[table["size"] != "M"].dp.domain().labels[0].categories.tolist() == ["S", "L"]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_table_from_a_file_has_the_same_domain(suffix, tmp_path):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    for name, table in {"us": table_of(us()), "numbers": released(NUMBERS)}.items():
        path = tmp_path / f"{name}{suffix}"
        table.dp.to_file(path)
        assert is_released(pandas_dptree.read_file(path).dp.domain(), table.dp.domain())


def test_a_table_from_a_plain_csv_file_has_the_same_keys(tmp_path):
    for table in (table_of(us()), released(ADDRESSES)):
        table.to_csv(tmp_path / "table.csv", index=False)
        for options in ({}, {"keep_default_na": False}):  # the latter keeps missing keys as empty texts
            back = pd.read_csv(tmp_path / "table.csv", **options)
            for column in ("count", "std_error"):
                back[column] = pd.to_numeric(back[column])
            assert is_released(back.dp.domain(), table.dp.domain())


@pytest.mark.parametrize("mechanism", [pandas_dptree.Multiplicative(alpha=0.25), "gaussian"])
def test_every_mechanism_and_verb_shows_the_domain(mechanism):
    assert is_released(table_of(us(), **LOSS, mechanism=mechanism).dp.domain(), us())
    frame = people(30, 20, 10, 5, 5, 5).assign(age=40)
    options = {"epsilon": 1.0, "domain": us()}
    for table in (
        frame.dp.tree_sums(KEYS, columns="age", bounds=(0, 99), **options),
        frame.dp.tree_means(KEYS, columns="age", bounds=(0, 99), **options),
        frame.dp.tree_agg(
            KEYS, {"people": "count", "age": pandas_dptree.mean("age", bounds=(0, 99))}, **options
        ),
    ):
        assert is_released(table.dp.domain(), us())


def test_structural_zeros_and_derived_levels_become_plain_keys():
    assert is_released(table_of(us(structural_zeros="empty")).dp.domain(), us())
    years = pandas_dptree.calendar("date", ["year"], start="2024-01-01", end="2025-12-31")
    derived = pandas_dptree.derived_domain(["state", years], pd.DataFrame({"state": ["CA", "WA"]}))
    found = table_of(derived).dp.domain()
    assert found.by == derived.by and not found.derived and found.plain == ("state", "date_year")
    assert is_released(found, Domain.from_frame(derived.keys(2), by=derived.by))


# Keys of a table with remainders


@pytest.mark.parametrize("mechanism", ["truncated_laplace", HALF])
@pytest.mark.parametrize("tree", TREES, ids=lambda tree: tree.level_names[1])
def test_an_implicit_tree_shows_its_nodes_without_remainders(tree, mechanism):
    large = records_of_sizes([40_000, 30_000, 25_000, 1, 1])
    table = large.dp.tree_counts(tree, **LOSS, mechanism=mechanism, rng=rng())
    keys = [*tree.level_names[1:]]
    domain = table.dp.domain()
    assert leaves_of(domain) == shown_leaves(table, keys)
    assert [label.dtype for label in domain.labels] == [table[key].dtype for key in domain.by]
    for level in range(1, len(domain.by) + 1):
        shown = table["level"].eq(keys[level - 1]) & table[keys[level - 1]].notna()
        assert len(domain.keys(level)) == shown.sum()
    if "other" in table:
        assert table["other"].any()
        assert is_released(table[~table["other"]].dp.domain(), domain)


def test_addresses_of_an_implicit_tree():
    domain = released(ADDRESSES).dp.domain()
    assert domain.by == ("ip/8", "ip/16", "ip/32")
    assert domain.keys(3).values.tolist() == [
        ["10.0.0.0/8", "10.0.0.0/16", "10.0.0.1/32"],
        ["10.0.0.0/8", "10.0.0.0/16", "10.0.0.2/32"],
        ["10.0.0.0/8", "10.7.0.0/16", "10.7.0.1/32"],
    ]


def test_a_node_whose_children_are_all_hidden_is_the_leaf_of_a_shorter_path():
    frame = pd.DataFrame({"zip": np.repeat(["90210", *(f"8{i:04}" for i in range(999))], [999, *[1] * 999])})
    tree = pandas_dptree.prefixes("zip", chars=[1, 5], alphabet="0123456789")
    table = frame.dp.tree_counts(tree, **LOSS, rng=rng())
    domain = table.dp.domain()
    assert leaves_of(domain) == {("8",), ("9", "90210")}
    frame = frame.assign(**{"zip/1": frame["zip"].str[0], "zip/5": frame["zip"]})
    again = frame.dp.tree_counts(["zip/1", "zip/5"], epsilon=1e5, domain=domain)
    assert again["count"].tolist() == [999, 0, 999, 999]  # those with further keys below a leaf are dropped
    coarse = table[table["level"] != "zip/5"].dp.domain()
    again = frame.dp.tree_counts("zip/1", epsilon=1e5, domain=coarse)
    assert again["count"].tolist() == [1998, 999, 999]


def test_a_remainder_that_was_given_a_name_is_no_key():
    table = released(ADDRESSES)
    named = table.assign(**{key: table[key].astype(object).fillna("(other)") for key in table.columns[1:4]})
    assert is_released(named.dp.domain(), table.dp.domain())


# What is made with them


def test_sums_means_and_quantiles_of_the_released_keys():
    frame = records()
    frame["cost"] = np.arange(len(frame)) % 100
    counts = frame.dp.tree_counts(ADDRESSES, **LOSS, rng=rng())
    frame["ip/32"] = frame["ip"] + "/32"
    frame["ip/8"] = frame["ip"].str.split(".").str[0] + ".0.0.0/8"
    frame["ip/16"] = frame["ip"].str.split(".").str[:2].str.join(".") + ".0.0/16"
    domain = counts.dp.domain()
    options = {"bounds": (0, 99), "domain": domain, "epsilon": 1e5}
    sums = frame.dp.tree_sums(list(domain.by), columns="cost", **options)
    assert sums.attrs["dp"]["domain_source"] == "released"
    kept = frame[frame["ip/32"].isin(domain.labels[-1])]
    assert len(kept) < len(frame)  # of the others, nobody is shown
    assert sums.loc[0, "cost"] == pytest.approx(kept["cost"].sum())
    expected = kept.groupby("ip/32")["cost"].sum()
    shown = sums.dp.level("ip/32")["cost"].droplevel([0, 1])
    assert shown.to_dict() == pytest.approx(expected.to_dict())
    means = frame.dp.tree_means(list(domain.by), columns="cost", **options)
    quantiles = frame.dp.quantiles("cost", 0.5, by=list(domain.by), bins=100, **options)
    for table in (means, quantiles):
        assert table.attrs["dp"]["domain_source"] == "released"
        assert set(table["ip/32"].dropna()) == set(expected.index)
    assert is_released(means.dp.domain(), domain)


# What has no domain


def no_tables():
    table = table_of(us())
    frame = people(30, 20, 10, 5, 5, 5).assign(age=40)
    by_state = {"by": ["state"], "domain": ["CA", "DC", "WA"], "bins": [0, 50, 100], "epsilon": 1.0}
    yield "records", frame, "is not a released table: it lacks the column `level`"
    yield "records with counts", frame.assign(count=1), "is not a released table"
    claimed = frame.assign(count=1)
    claimed.attrs = table.attrs
    yield "records with attrs", claimed, "is not a released table"
    yield "records with levels", frame.assign(level=1, total=2, count=3, std_error=4), "without a known level"
    yield "exact counts", table.drop(columns="std_error"), "lacks the errors of its values"
    yield "a level", table.dp.level("county"), "is not a released table"
    yield "a distribution", frame.dp.cdf("age", bins=[0, 50, 100], epsilon=1.0), "is not a released table"
    yield "distributions", frame.dp.cdf("age", **by_state), "is a table of a distribution"
    yield "quantiles", frame.dp.quantiles("age", 0.5, **by_state), "is a table of a distribution"
    yield "no rows", table.head(0), "has no rows"
    yield "two tables", pd.concat([table, table]), "several rows for one node"
    yield "side by side", pd.concat([table, table], axis="columns"), "several columns of one name"
    yield "without keys", table.drop(columns="state"), "lacks keys: 'state'"
    yield "in the index", table.set_index(KEYS), "lacks keys: 'state', 'county'"
    gaps = table.assign(state=table["state"].where(table["level"] != "county"))
    yield "with gaps", gaps, "lack a key above their level, in the column 'state'"
    yield "texts", table.assign(count="many"), "values that are not numbers"


@each(("table", "fact"), [pytest.param(*each, id=name) for name, *each in no_tables()])
def test_what_is_no_released_table_has_no_domain(table, fact):
    with pytest.raises(ArgumentError, match=rf"`released` .*{fact}.*\nHint: "):
        table.dp.domain()


def test_a_table_without_keys_has_no_domain():
    few = records().iloc[:3].dp.tree_counts(ADDRESSES, **LOSS, rng=rng())
    for table in (table_of(us()).head(1), few):
        with pytest.raises(DomainError, match=r"would have no leaves: the table shows no key\.\nHint: "):
            table.dp.domain()

"""From records to exact leaf counts, in every library, and how far one unit can move them."""

import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandas_dptree.errors import ArgumentError, ColumnsError
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.ingest.arrays import leaf_counts
from pandas_dptree.ingest.bounding import bound_contributions, count_leaves
from pandas_dptree.ingest.frames import contributions
from pandas_dptree.privacy.sensitivity import count_sensitivity
from tests import reference
from tests.strategies import domains_and_rows, frame_of, paths

polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")

BACKENDS = {
    "pandas-object": lambda frame: frame,
    "pandas-str": lambda frame: frame.astype("string"),
    "pandas-arrow": lambda frame: frame.astype("string[pyarrow]"),
    "pandas-category": lambda frame: frame.astype("category"),
    "polars": lambda frame: polars.DataFrame(
        frame.to_dict("list"), schema=dict.fromkeys(frame, polars.String)
    ),
    "polars-lazy": lambda frame: BACKENDS["polars"](frame).lazy(),
    "polars-categorical": lambda frame: BACKENDS["polars"](frame).cast(polars.Categorical),
    "pyarrow": lambda frame: BACKENDS["polars"](frame).to_arrow(),
}


def words(seed=0):
    rng = np.random.default_rng(seed)
    return lambda n: rng.integers(2**64, size=n, dtype=np.uint64)


def counted(frame, domain, **options):
    given = contributions(frame, domain, privacy_unit=options.pop("privacy_unit", None))
    return count_leaves(
        given, domain.tree.n_leaves, max_contributions=options.pop("k", 1), random_words=words()
    )


def listed_leaves(domain):
    codes = domain.path_codes(domain.tree.depth)
    return [
        tuple(None if code < 0 else label[code] for label, code in zip(domain.labels, leaf, strict=True))
        for leaf in zip(*codes, strict=True)
    ]


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=60, deadline=None)
@given(drawn=domains_and_rows())
def test_every_library_counts_alike(backend, drawn):
    domain, rows = drawn
    expected = reference.count_leaves(rows, domain.by, listed_leaves(domain))
    assert counted(BACKENDS[backend](rows), domain).tolist() == expected.tolist()


@settings(max_examples=300, deadline=None)
@given(
    drawn=domains_and_rows(),
    leaves=paths(),
    k=st.integers(1, 4),
    unit=st.integers(0, 3),
    replace=st.booleans(),
    seed=st.integers(0, 2**32),
    data=st.data(),
)
def test_one_unit_moves_no_level_by_more_than_the_sensitivity(drawn, leaves, k, unit, replace, seed, data):
    """Neighbours through the real way of the data, the priorities of all other units carried over."""
    domain, rows = drawn
    rng = np.random.default_rng(seed)
    frame = rows.assign(unit=rng.integers(0, 4, len(rows)))
    own = data.draw(st.lists(st.sampled_from(listed_leaves(domain)), max_size=6))
    others = frame[frame["unit"] != unit]
    neighbor = others
    if replace:
        new = frame_of(own, list(domain.by)).assign(unit=unit)
        neighbor = pd.concat([others, new]).sample(frac=1, random_state=1)
    counts, kept = [], None
    for records in (frame, neighbor):
        given = contributions(records, domain, privacy_unit="unit")
        numbers = np.sort(records["unit"].unique())
        whose = np.repeat(numbers[given.unit], given.rows) if len(numbers) else np.zeros(0)
        priorities = rng.integers(2**64, size=len(whose), dtype=np.uint64)
        if kept is None:
            kept = priorities[whose != unit]
        priorities[whose != unit] = kept
        counts.append(
            count_leaves(
                given,
                domain.tree.n_leaves,
                max_contributions=k,
                random_words=lambda n, priorities=priorities: priorities,
            )
        )
    sensitivity = count_sensitivity(neighbors="replace" if replace else "add_remove", max_contributions=k)
    for here, there in zip(*map(domain.tree.roll_up, counts), strict=True):
        assert np.abs(here - there).sum() <= sensitivity.l1
        assert ((here - there) ** 2).sum() <= sensitivity.l2_squared


@settings(max_examples=100, deadline=None)
@given(drawn=domains_and_rows(), row=st.integers(0, 24), replace=st.booleans(), seed=st.integers(0, 2**32))
def test_one_row_moves_no_level_by_more_than_the_sensitivity(drawn, row, replace, seed):
    domain, rows = drawn
    if row >= len(rows):
        return
    neighbor = rows.drop(index=row)
    if replace:
        neighbor = pd.concat([neighbor, rows.sample(1, random_state=seed)])
    sensitivity = count_sensitivity(neighbors="replace" if replace else "add_remove")
    levels = [domain.tree.roll_up(counted(frame, domain)) for frame in (rows, neighbor)]
    for here, there in zip(*levels, strict=True):
        assert np.abs(here - there).sum() <= sensitivity.l1
        assert ((here - there) ** 2).sum() <= sensitivity.l2_squared


def test_rows_outside_the_domain_are_dropped_before_the_bound():
    domain = Domain.from_frame(pd.DataFrame({"k": ["in"]}), by=["k"])
    frame = pd.DataFrame({"k": ["out"] * 99 + ["in"], "unit": 1})
    assert counted(frame, domain, privacy_unit="unit").tolist() == [1]


def test_rows_without_a_unit_are_dropped():
    domain = Domain.from_frame(pd.DataFrame({"k": ["a"]}), by=["k"])
    frame = pd.DataFrame({"k": ["a"] * 4, "unit": ["x", None, np.nan, [1]]})
    assert counted(frame, domain, privacy_unit="unit", k=9).tolist() == [1]


def test_which_rows_stay_is_uniform():
    unit = np.array([0] * 5 + [1] * 2)
    draw, rounds = words(1), 6000
    kept = sum(bound_contributions(unit, draw(7), 2).astype(int) for _ in range(rounds))
    assert kept[5:].tolist() == [rounds] * 2
    np.testing.assert_allclose(kept[:5] / rounds, 0.4, atol=4 * np.sqrt(0.24 / rounds))


def test_the_order_of_the_records_does_not_matter():
    domain = Domain.from_frame(pd.DataFrame({"k": list("abc")}), by=["k"])
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"k": rng.choice(list("abc"), 200), "unit": rng.integers(0, 30, 200)})
    results = [
        counted(shuffled, domain, privacy_unit="unit", k=2).tolist()
        for shuffled in (frame, frame.sample(frac=1, random_state=0), polars.from_pandas(frame))
    ]
    assert results[0] == results[1] == results[2]


MOMENTS = pd.to_datetime(["2024-02-29 00:00", "2024-03-31 02:30"])


@pytest.mark.parametrize(
    ("public", "recorded"),
    [
        (pd.Series([1, 2]), pd.Series([1.0, np.nan])),
        (pd.Series([2**53, 2**53 + 1]), pd.Series([2**53 + 1, 7], dtype="uint64")),
        (pd.Series([2**53, 2**53 + 1]), pd.Series([2.0**53, 7.0])),
        (pd.Series([1, 2], dtype="Int64"), pd.Series([1, 9], dtype="int8")),
        (pd.Series([1, 2]), pd.Series([1, "x"], dtype=object)),
        (pd.Series(["a", "b"]), pd.Series(["a", "zz"], dtype="category")),
        (pd.Series(["a", "b"], dtype="category"), pd.Series(["a", None], dtype=object)),
        (pd.Series([True, False]), pd.Series([True, None], dtype="boolean")),
        (pd.Series(MOMENTS), pd.Series([MOMENTS[0], pd.NaT])),
        (pd.Series(MOMENTS), pd.Series([MOMENTS[0], pd.NaT]).astype("datetime64[s]")),
        (pd.Series(MOMENTS[:1]), pd.Series([datetime.date(2024, 2, 29), None], dtype=object)),
        (pd.Series(MOMENTS[:1]), polars.Series([datetime.date(2024, 2, 29), None])),
        (
            pd.Series(MOMENTS[:1].tz_localize("Asia/Tokyo")),
            pd.Series(MOMENTS[:1].tz_localize("Asia/Tokyo").tz_convert("UTC")),
        ),
        (pd.Series([1.5, 2.5]), polars.Series([1.5, float("nan")])),
        (pd.Series([(1, 2), (3, 4)]), pd.Series([(1, 2), [3, 4]], dtype=object)),
    ],
    ids=str,
)
def test_keys_match_by_value_across_types(public, recorded):
    domain = Domain.from_frame(public.to_frame("k"), by=["k"])
    frame = recorded.to_frame("k") if isinstance(recorded, pd.Series) else polars.DataFrame({"k": recorded})
    assert counted(frame, domain).sum() == 1


@pytest.mark.parametrize(
    ("public", "recorded"),
    [
        ([1, 2], ["1", "2"]),
        (["1"], [1]),
        ([True], [1]),
        (MOMENTS, ["2024-02-29"]),
        (MOMENTS, MOMENTS.tz_localize("UTC")),
    ],
)
def test_types_that_can_never_be_equal_are_refused(public, recorded):
    domain = Domain.from_frame(pd.DataFrame({"k": public}), by=["k"])
    for frame in (pd.DataFrame({"k": recorded}), polars.DataFrame({"k": recorded})):
        with pytest.raises(ColumnsError, match="another type than the domain"):
            contributions(frame, domain)


@pytest.mark.parametrize(
    "empty", [pd.DataFrame({"a": [], "b": []}, dtype=object), polars.DataFrame({"a": [], "b": []})]
)
def test_nobody_is_an_answer_too(empty):
    domain = Domain.from_frame(pd.DataFrame({"a": ["x"], "b": ["y"]}), by=["a", "b"])
    assert counted(empty, domain).tolist() == [0]
    assert counted(
        empty, Domain.from_frame(pd.DataFrame({"a": ["x"]}), by=["a"]), privacy_unit="b"
    ).tolist() == [0]


def test_odd_frames():
    domain = Domain.from_frame(pd.DataFrame({"k": ["a"]}), by=["k"])
    frame = pd.DataFrame([["a", 1, 2], ["a", 3, 4]], columns=["k", "twice", "twice"], index=[7, 7])
    assert counted(frame, domain).tolist() == [2]
    numbered = pd.DataFrame({0: ["a", "a"], 1: ["x", "y"]})
    assert counted(numbered, Domain.from_frame(numbered[:1], by=[0])).tolist() == [2]
    rows_and_keys = polars.DataFrame({"rows": ["a"], "key0": ["b"]})
    assert counted(
        rows_and_keys, Domain.from_frame(rows_and_keys.to_pandas(), by=["rows", "key0"])
    ).tolist() == [1]


def test_many_wide_keys_do_not_overflow():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"k{i}": rng.permutation(5000) for i in range(8)})
    assert counted(frame, Domain.from_frame(frame, by=list(frame))).tolist() == [1] * 5000


@pytest.mark.parametrize(
    ("frame", "error", "message"),
    [
        (pd.DataFrame({"b": [1]}), ColumnsError, "lacks the columns: 'a'"),
        (polars.DataFrame({"b": [1]}), ColumnsError, "lacks the columns: 'a'"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ColumnsError, "several columns named: 'a'"),
        ([1, 2, 3], ArgumentError, "must be a dataframe, not list"),
        (None, ArgumentError, "must be a dataframe, not NoneType"),
    ],
)
def test_bad_frames(frame, error, message):
    domain = Domain.from_frame(pd.DataFrame({"a": [1]}), by=["a"])
    with pytest.raises(error, match=message):
        contributions(frame, domain)


def test_what_other_libraries_say_of_the_records_is_not_repeated(monkeypatch):
    domain = Domain.from_frame(pd.DataFrame({"a": ["x"]}), by=["a"])

    def fail(*args, **kwargs):
        raise RuntimeError("secret-value")

    monkeypatch.setattr(pd, "factorize", fail)
    with pytest.raises(ArgumentError) as caught:
        contributions(pd.DataFrame({"a": ["secret-value"]}), domain)
    assert "secret-value" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None


def test_odd_units_warn_of_nothing():
    domain = Domain.from_frame(pd.DataFrame({"k": ["a"]}), by=["k"])
    frame = pd.DataFrame({"k": ["a"] * 4, "unit": [(1, 2), "b", (0,), 7]})
    assert counted(frame, domain, privacy_unit="unit").tolist() == [4]


def test_exact_counts_are_clipped_never_refused():
    tree = Tree.from_branching([4])
    counts = leaf_counts(np.array([-5, 0, 3, 2**63 - 1]), tree)
    assert counts.tolist() == [0, 0, 3, 2**59]
    assert leaf_counts(np.array([0, 1, 2, 2**64 - 1], dtype=np.uint64), tree)[3] == 2**59


@pytest.mark.parametrize("data", [np.zeros(3, dtype=int), np.zeros(4), np.zeros((4, 1), dtype=int)])
def test_exact_counts_must_be_whole_and_fit(data):
    with pytest.raises(ArgumentError, match=r"whole numbers of shape \(4,\)"):
        leaf_counts(data, Tree.from_branching([4]))

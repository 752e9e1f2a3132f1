"""From records to exact leaf counts, in every library, and how far one unit can move them."""

import datetime
import math
import traceback
import uuid
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandas_dptree.errors import ArgumentError, ColumnsError
from pandas_dptree.hierarchy import columns as columns_module
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.tree import Tree
from pandas_dptree.hierarchy.values import UNKNOWN, canonical_codes
from pandas_dptree.ingest.arrays import leaf_counts, leaf_sums
from pandas_dptree.ingest.contribution_bounding import bound_contributions, count_leaves, sum_leaves
from pandas_dptree.ingest.contributions import Contributions, contributions, key_frame
from pandas_dptree.ingest.numbers import numbers
from pandas_dptree.privacy.quantity import COUNT, Quantity
from pandas_dptree.privacy.sensitivity import count_sensitivity
from tests import reference
from tests.strategies import ODD_VALUES, Hostile, domains_and_rows, frame_of, objects, paths, zoo

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


def as_categories(frame):
    """Make a frame categorical by hand: ``astype`` would compare the texts."""
    made = {}
    for name in frame:
        texts = list(dict.fromkeys(frame[name]))
        codes = list(map(texts.index, frame[name]))
        made[name] = pd.Categorical.from_codes(codes, categories=pd.Index(texts, dtype=object))
    return pd.DataFrame(made)


@pytest.fixture
def without_arrow(monkeypatch):
    def missing(*name):
        raise ImportError

    monkeypatch.setattr(columns_module, "_arrow", missing)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_record_whose_text_has_a_nul_is_counted_by_itself(backend):
    """One row in front took fifty others with it: texts were C strings in pandas up to 3.0.0."""
    build = {**BACKENDS, "pandas-category": as_categories}[backend]
    check_nul(build)
    check_nul(lambda rows: build(rows.astype("string[python]")))


@pytest.mark.parametrize("backend", [name for name in BACKENDS if "arrow" not in name])
def test_a_nul_needs_no_arrow(without_arrow, backend):
    check_nul({**BACKENDS, "pandas-category": as_categories}[backend])


def check_nul(build):
    """Check that keys and units that differ after a NUL alone are two, whichever comes first."""
    rows = frame_of(
        [(key, f"{key}\0{row % 2}") for key in ("a\0", "a", "b") for row in range(6)], ["k", "unit"]
    )
    for frame in (build(rows[5:]), build(rows[5:][::-1]), build(rows[5:].sample(frac=1, random_state=0))):
        for places, expected in ((["a", "b"], [6, 6]), (["a", "a\0", "b"], [6, 1, 6])):
            domain = Domain.from_frame(pd.DataFrame({"k": places}, dtype=object), by=["k"])
            assert counted(frame, domain).tolist() == expected
            assert counted(frame, domain, privacy_unit="unit", k=3).tolist() == expected
            bounded = [min(count, 4) for count in expected]
            assert counted(frame, domain, privacy_unit="unit", k=2).tolist() == bounded


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
    unit_of = rng.integers(0, 4, len(rows))
    frame = rows.assign(unit=unit_of, priority=rng.integers(2**64, size=len(rows), dtype=np.uint64))
    own = data.draw(st.lists(st.sampled_from(listed_leaves(domain)), max_size=6))
    others = frame[frame["unit"] != unit]
    neighbor = others
    if replace:
        drawn_anew = rng.integers(2**64, size=len(own), dtype=np.uint64)
        new = frame_of(own, list(domain.by)).assign(unit=unit, priority=drawn_anew)
        neighbor = pd.concat([others, new]).sample(frac=1, random_state=1)
    counts = []
    for records in (frame, neighbor):
        given = contributions(records, domain, privacy_unit="unit")
        inside = contributions(records.assign(row=range(len(records))), domain, privacy_unit="row").unit
        assert (records["unit"].unique()[given.unit] == records["unit"].to_numpy()[inside]).all()
        priorities = records["priority"].to_numpy()[inside]
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


def test_which_rows_stay_is_each_units_own_affair():
    """Against the rule, unit by unit; few distinct priorities, so that many are tied."""
    rng = np.random.default_rng(2)
    for _ in range(300):
        n, k, distinct = rng.integers(0, 30), int(rng.integers(1, 5)), rng.choice([3, 2**32])
        unit = rng.integers(0, rng.integers(1, 12), n)
        priorities = rng.integers(distinct, size=n, dtype=np.uint64) << np.uint64(32)
        expected = np.zeros(n, dtype=bool)
        for one in set(unit):
            own = np.flatnonzero(unit == one)
            first_out = sorted(priorities[own].tolist())[k:][:1] or [2**64]
            expected[own] = [priority < first_out[0] for priority in priorities[own].tolist()]
            assert expected[own].sum() <= k
        assert bound_contributions(unit, priorities, k).tolist() == expected.tolist()
    assert bound_contributions(unit, priorities, 2**70).all()


def test_units_are_bounded_alike_in_every_library():
    domain = Domain.from_frame(pd.DataFrame({"k": list("abc")}), by=["k"])
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"k": rng.choice(list("abc"), 200), "unit": rng.integers(0, 30, 200)})
    frame["name"] = frame["unit"].map("person {}".format)
    libraries = (
        lambda frame: frame,
        lambda frame: frame.astype({"k": object, "name": object}),
        lambda frame: frame.astype("category"),
        polars.from_pandas,
        lambda frame: polars.from_pandas(frame).lazy(),
        lambda frame: polars.from_pandas(frame).to_arrow(),
    )
    results = [
        counted(library(frame), domain, privacy_unit=unit, k=2).tolist()
        for library in libraries
        for unit in ("unit", "name")
    ]
    assert all(result == results[0] for result in results) and 30 < sum(results[0]) <= 60


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
    places = pd.DataFrame({"k": public}).convert_dtypes()  # objects, as pandas 2 holds text, may be anything
    domain = Domain.from_frame(places, by=["k"])
    for frame in (pd.DataFrame({"k": recorded}).convert_dtypes(), polars.DataFrame({"k": recorded})):
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


def test_combinations_that_differ_in_any_key_are_told_apart():
    """Five keys of 2**16 codes each, two of which mean nothing: the first would count for 2**64."""
    n, names = 2**16 - 2, list("abcde")
    domain = Domain.from_frame(pd.DataFrame(dict.fromkeys(names, np.arange(n))), by=names)
    for at in range(5):
        records = pd.DataFrame(np.zeros((51, 5), dtype=int), columns=names)
        records.loc[50, names[at]] = 1  # this one is nowhere, and the others are where they were
        assert counted(records, domain)[:2].tolist() == [50, 0]


@pytest.mark.parametrize(
    ("frame", "error", "message"),
    [
        (pd.DataFrame({"b": [1]}), ColumnsError, "lacks the columns: 'a'"),
        (polars.DataFrame({"b": [1]}), ColumnsError, "lacks the columns: 'a'"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ColumnsError, "several columns named: 'a'"),
        ([1, 2, 3], ArgumentError, "must be a dataframe, not a list"),
        (None, ArgumentError, "must be a dataframe, not None"),
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


# Neighbours among odd records: what one of them holds is nobody else's business.


def forms_of(column):
    """Give the canonical form of each value of a column, None where it is missing."""
    codes, keys = canonical_codes(column)
    return [None if code < 0 else keys[code] for code in codes]


def leaf_of_each(build, places, domain):
    """Tell which leaf each record is counted in, by making each a unit of its own."""
    given = contributions(build(places), domain, privacy_unit="row")
    assert (given.rows == 1).all()
    return {places[unit]: leaf for unit, leaf in zip(given.unit, given.leaf, strict=True)}


def check_neighbors(build, units, domain, leave_out, k, seed):
    """Check that a record, and a unit, changes no more than its own counts.

    ``build(places)`` makes the frame of the records at these places; ``units`` has the canonical form of
    the unit of each.
    """
    everyone = list(range(len(units)))
    rest = [row for row in everyone if row != leave_out]
    whole = leaf_of_each(build, everyone, domain)
    assert leaf_of_each(build, rest, domain) == {row: leaf for row, leaf in whole.items() if row != leave_out}
    alone = {}
    for row in everyone:
        alone |= leaf_of_each(build, [row], domain)
    assert alone == whole

    one, rng = count_sensitivity(neighbors="add_remove"), np.random.default_rng(seed)
    levels = [domain.tree.roll_up(counted(build(places), domain)) for places in (everyone, rest)]
    for here, there in zip(*levels, strict=True):
        assert np.abs(here - there).sum() <= one.l1

    unit, bound = units[leave_out], count_sensitivity(neighbors="add_remove", max_contributions=k)
    priority = rng.integers(2**64, size=len(units), dtype=np.uint64)
    levels = []
    for places in (everyone, [row for row in everyone if units[row] is None or units[row] != unit]):
        given = contributions(build(places), domain, privacy_unit="unit")
        rows = [row for row in leaf_of_each(build, places, domain) if units[row] not in (None, UNKNOWN)]
        whose = {(number, units[row]) for number, row in zip(given.unit, rows, strict=True)}
        assert len(whose) == len({number for number, _ in whose}) == len({form for _, form in whose})
        priorities = priority[rows]
        counts = count_leaves(
            given,
            domain.tree.n_leaves,
            max_contributions=k,
            random_words=lambda n, priorities=priorities: priorities,
        )
        levels.append(domain.tree.roll_up(counts))
    for here, there in zip(*levels, strict=True):
        assert np.abs(here - there).sum() <= bound.l1


PUBLIC = {
    "text": ["1", "a", "a\0", "", "None", "nan", "2024-02-29", "é"],
    "int": [0, 1, 2**53, 2**53 + 1],
    "float": [0.0, 1.0, 0.1, np.inf, 2.0**53],
    "bool": [True, False],
    "time": [pd.Timestamp("2024-02-29"), pd.Timestamp(1)],
    "zoned": list(pd.to_datetime(["2024-02-29", "1970-01-01"], utc=True)),
    "duration": list(pd.to_timedelta([1, 86_400 * 10**9], unit="ns")),
    "interval": [pd.Interval(0, 1), pd.Interval(1, 2)],
    "period": [pd.Period("2024-02", "M")],
    "objects": [
        1, "1", True, (1,), (1, None), b"1", 0.5, Decimal("0.1"), pd.Interval(0, 1), pd.Timestamp(1), "a",
        pd.Timedelta(1), pd.Period("2024-02", "M"), uuid.UUID(int=1), datetime.time(9), "\ud800",
    ],
}  # fmt: skip


@pytest.mark.parametrize("public", PUBLIC)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(data=st.data(), k=st.integers(1, 3), seed=st.integers(0, 99))
def test_odd_records_have_no_part_in_the_counts_of_others(public, data, k, seed):
    labels = PUBLIC[public]
    column = objects(labels) if public == "objects" else pd.Series(labels)
    places = pd.DataFrame({"k": column}).merge(pd.DataFrame({"l": ["a", 1]}, dtype=object), how="cross")
    domain = Domain.from_frame(places, by=["k", "l"])
    value = st.one_of(st.sampled_from(labels) if public != "objects" else zoo(), zoo())
    n = data.draw(st.integers(1, 5))
    keys = objects(data.draw(st.lists(value, min_size=n, max_size=n)))
    second = objects(data.draw(st.lists(st.one_of(st.sampled_from(["a", 1]), zoo()), min_size=n, max_size=n)))
    unit = objects(data.draw(st.lists(st.one_of(st.sampled_from([1, "a"]), zoo()), min_size=n, max_size=n)))
    frame = pd.DataFrame({"k": keys, "l": second, "unit": unit, "row": range(n)})
    check_neighbors(frame.iloc.__getitem__, forms_of(unit), domain, data.draw(st.integers(0, n - 1)), k, seed)


DAY = 86_400_000
ARROW = {
    pyarrow.string(): ["a", "a\0", "", None, "é", "None"],
    pyarrow.int64(): [1, 2**53, 2**53 + 1, None, -(2**63)],
    pyarrow.uint64(): [1, 2**64 - 1, None],
    pyarrow.float64(): [0.5, -0.0, 0.0, float("nan"), None, float("inf"), 2.0**53],
    pyarrow.float32(): [0.5, 0.1, float("nan"), None],
    pyarrow.bool_(): [True, False, None],
    pyarrow.date32(): [1, 2**31 - 1, -(2**31), None],
    pyarrow.date64(): [DAY, 2**55 // DAY * DAY, None],
    pyarrow.timestamp("s"): [1, 2**61, -(2**61), None],
    pyarrow.timestamp("ns"): [1, 2, 2**62 + 1, None],
    pyarrow.timestamp("us", "Asia/Tokyo"): [1, 2**62, None],
    pyarrow.duration("ms"): [1, 2**61, None],
    pyarrow.time64("us"): [1, DAY * 1000 - 1, None],
    pyarrow.decimal128(9, 2): [Decimal("0.50"), Decimal("1"), None],
    pyarrow.binary(): [b"a", b"", None],
    pyarrow.dictionary(pyarrow.int32(), pyarrow.string()): ["a", "b", None],
}
PANDAS = {
    pyarrow.string(): "string", pyarrow.int64(): "Int64", pyarrow.uint64(): "UInt64",
    pyarrow.bool_(): "boolean",
    pyarrow.float64(): "float64", pyarrow.float32(): "float32",
    pyarrow.dictionary(pyarrow.int32(), pyarrow.string()): "category",
}  # fmt: skip


def pandas_of(array):
    """Bring an array of Arrow into a type of pandas' own."""
    if array.type in PANDAS:
        return pd.Series(array.to_pylist(), dtype=PANDAS[array.type])
    whole = array.cast(pyarrow.int64()).fill_null(np.iinfo(np.int64).min).to_numpy()
    series = pd.Series(
        whole.view(f"{'m' if pyarrow.types.is_duration(array.type) else 'M'}8[{array.type.unit}]")
    )
    zone = getattr(array.type, "tz", None)
    return series if zone is None else series.dt.tz_localize("UTC").dt.tz_convert(zone)


def in_categories(array):
    """Bring an array of Arrow into categories; pandas up to 3.0.0 would merge texts at a NUL."""
    text = array.type == pyarrow.string()
    return array.dictionary_encode().to_pandas() if text else pandas_of(array).astype("category")


LIBRARIES = {
    "pyarrow": lambda table: table,
    "pandas-arrow": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas": lambda table: pd.DataFrame({name: pandas_of(table[name]) for name in table.column_names}),
    "pandas-category": lambda table: LIBRARIES["pandas"](table).assign(k=in_categories(table["k"])),
    "polars": polars.from_arrow,
    "polars-lazy": lambda table: polars.from_arrow(table).lazy(),
}


def types_in(library):
    """List the types whose values all have a place in a library."""
    if library.startswith("polars"):  # has no seconds: it would multiply them, and overflow
        return [kind for kind in ARROW if kind not in (pyarrow.date64(), pyarrow.timestamp("s"))]
    if library in ("pandas", "pandas-category"):
        return [kind for kind in ARROW if kind in PANDAS or str(kind).startswith(("timestamp", "duration"))]
    return list(ARROW)


@pytest.mark.parametrize("library", LIBRARIES)
@settings(max_examples=80, deadline=None, derandomize=True)
@given(data=st.data(), k=st.integers(1, 3), seed=st.integers(0, 99))
def test_typed_records_have_no_part_in_the_counts_of_others(library, data, k, seed):
    types = st.sampled_from(types_in(library))
    kind, whose = data.draw(types), data.draw(types)
    public = pyarrow.array(
        [value for value in ARROW[kind] if value is not None and value == value], type=kind
    )
    domain = Domain.from_frame(
        pd.DataFrame({"k": pd.array(public, dtype=pd.ArrowDtype(kind))}).drop_duplicates(), by=["k"]
    )
    n = data.draw(st.integers(1, 6))
    keys = data.draw(st.lists(st.sampled_from(ARROW[kind]), min_size=n, max_size=n))
    units = data.draw(st.lists(st.sampled_from(ARROW[whose]), min_size=n, max_size=n))
    table = pyarrow.table(
        {
            "k": pyarrow.array(keys, type=kind),
            "unit": pyarrow.array(units, type=whose),
            "row": pyarrow.array(range(n), type=pyarrow.int64()),
        }
    )

    def build(places):
        return LIBRARIES[library](table.take(pyarrow.array(places, type=pyarrow.int64())))

    forms = forms_of(pd.Series(pd.array(table["unit"], dtype=pd.ArrowDtype(whose))))
    check_neighbors(build, forms, domain, data.draw(st.integers(0, n - 1)), k, seed)


def typed_domain(kind, values):
    array = pd.array(pyarrow.array(values, type=kind), dtype=pd.ArrowDtype(kind))
    return Domain.from_frame(pd.DataFrame({"k": array}), by=["k"])


@pytest.mark.parametrize("library", LIBRARIES)
def test_times_beyond_those_of_python_are_counted(library):
    for kind in filter(pyarrow.types.is_temporal, types_in(library)):
        values = [value for value in ARROW[kind] if value is not None]
        table = pyarrow.table({"k": pyarrow.array([*values, values[-1], None], type=kind)})
        found = counted(LIBRARIES[library](table), typed_domain(kind, values))
        assert sorted(found) == [1] * (len(values) - 1) + [2], kind


def test_polars_keeps_the_last_nanosecond():
    moments = polars.Series([1, 2, 2, 2**62, 2**62 + 1]).cast(polars.Datetime("ns"))
    domain = Domain.from_frame(pd.DataFrame({"k": pd.to_datetime([1, 2, 2**62 + 1])}), by=["k"])
    assert counted(polars.DataFrame({"k": moments}), domain).tolist() == [1, 2, 1]


@pytest.mark.parametrize("library", ["pyarrow", "pandas-arrow", "pandas", "polars"])
def test_a_float_that_is_no_number_is_missing(library):
    floats = pyarrow.array([float("nan"), None, 0.5, 0.5])
    table = pyarrow.table({"k": floats, "unit": pyarrow.array([1.0, 2.0, float("nan"), 3.0])})
    domain = Domain.from_frame(pd.DataFrame({"k": [0.5]}), by=["k"])
    frame = LIBRARIES[library](table)
    assert counted(frame, domain).tolist() == [2]
    assert counted(frame, domain, privacy_unit="unit", k=9).tolist() == [1]
    short = pd.DataFrame({"k": [0.5, 1.5], "l": [1.0, None]})
    paths_ = LIBRARIES[library](
        pyarrow.table({"k": [1.5, 1.5, 0.5], "l": [float("nan"), None, float("nan")]})
    )
    assert counted(paths_, Domain.from_frame(short, by=["k", "l"])).tolist() == [0, 2]


HELD = [[1], {"a": 1}, Hostile(), "a", None]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"k": objects(HELD)}),
        polars.DataFrame({"k": polars.Series(HELD, dtype=polars.Object)}),
        polars.DataFrame({"k": polars.Series(HELD, dtype=polars.Object)}).lazy(),
    ],
    ids=["pandas", "polars", "polars-lazy"],
)
def test_objects_that_cannot_be_hashed_are_dropped(frame):
    domain = Domain.from_frame(pd.DataFrame({"k": ["a"]}), by=["k"])
    assert counted(frame, domain).tolist() == [1]
    assert Domain.observed(key_frame(frame, ["k"]), by=["k"]).keys(1)["k"].tolist() == ["a"]


@pytest.mark.parametrize("library", ["pyarrow", "pandas-arrow", "polars"])
def test_lists_and_records_are_nobodys_key(library):
    held = pyarrow.table({"k": [[1], None, []], "l": [{"a": 1}, None, {"a": None}], "m": ["a", "a", "b"]})
    frame = LIBRARIES[library](held)
    for name in "kl":
        domain = Domain.from_frame(pd.DataFrame({name: objects(["a", 1])}), by=[name])
        assert counted(frame, domain).tolist() == [0, 0]
    domain = Domain.from_frame(pd.DataFrame({"m": ["a"]}), by=["m"])
    assert counted(frame, domain, privacy_unit="k").tolist() == [0]


def test_contributions_do_not_show_the_records():
    domain = Domain.from_frame(pd.DataFrame({"k": ["a"]}), by=["k"])
    given = contributions(pd.DataFrame({"k": ["a"] * 12345, "unit": 1}), domain, privacy_unit="unit")
    for text in (repr(given), str(given), f"{given}"):
        assert "12345" not in text and "array" not in text


class Panic(BaseException):
    """What polars raises when it panics is no Exception."""


@pytest.mark.parametrize("raised", [RuntimeError, Panic, Warning, MemoryError])
def test_nothing_that_is_raised_holds_the_records(monkeypatch, raised):
    domain = Domain.from_frame(pd.DataFrame({"a": ["x"]}), by=["a"])

    def fail(*args, **kwargs):
        try:
            raise ValueError("secret-value")
        except ValueError as cause:
            raise raised("secret-value") from cause

    monkeypatch.setattr(pd, "factorize", fail)
    for count in (lambda frame: contributions(frame, domain), lambda frame: key_frame(frame, ["a"])):
        with pytest.raises(ArgumentError) as caught:
            count(pd.DataFrame({"a": ["secret-value"]}))
        assert caught.value.__cause__ is None and caught.value.__context__ is None
        assert "secret-value" not in "".join(traceback.format_exception_only(caught.value))


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_whoever_interrupts_is_heard(monkeypatch, stop):
    domain = Domain.from_frame(pd.DataFrame({"a": ["x"]}), by=["a"])

    def fail(*args, **kwargs):
        raise stop

    monkeypatch.setattr(pd, "factorize", fail)
    with pytest.raises(stop):
        contributions(pd.DataFrame({"a": ["x"]}), domain)


def test_a_categorical_column_without_values_is_of_any_type():
    nobody = pd.DataFrame({"k": pd.Series([None], dtype="category")})
    for labels in PUBLIC.values():
        domain = Domain.from_frame(pd.DataFrame({"k": labels}), by=["k"])
        assert counted(nobody, domain).sum() == 0


# Sums: what each record adds, and how far one unit can move the sums.


def summed(frame, domain, values, **options):
    given = contributions(frame, domain, privacy_unit=options.pop("privacy_unit", None), values=values)
    return sum_leaves(
        given, domain.tree.n_leaves, max_contributions=options.pop("k", 1), random_words=words()
    )


READ = [
    (1, 1.0), (-2.5, -2.5), (True, 1.0), (np.bool_(False), 0.0), (np.float32(0.5), 0.5), (np.int8(3), 3.0),
    (Decimal("1.5"), 1.5), (Fraction(1, 4), 0.25), (2**53 + 1, 2.0**53), (10**400, math.inf),
    (-(10**400), -math.inf), (Fraction(-(10**400)), -math.inf), (Decimal("1e999999"), math.inf),
    (np.uint64(2**64 - 1), 2.0**64), (math.inf, math.inf), ("3", 3.0), (" -4e0\n", -4.0), ("1_000", 1000.0),
    ("-inf", -math.inf), ("1" * 5000, math.inf),
    *[(nothing, None) for nothing in (
        math.nan, np.float64("nan"), None, pd.NA, pd.NaT, Decimal("nan"), Decimal("sNaN"), "nan", "", "x",
        "0x1", "1,5", b"1", 1j, [1], (1,), {"a": 1}, np.array([1]), pd.Series([1]), pd.Timestamp(0),
        Hostile(), np.timedelta64(5, "s"), pd.Timedelta(1), datetime.date(2024, 1, 1), uuid.UUID(int=1),
        object(),
    )],
]  # fmt: skip


def same(found, expected):
    return [None if math.isnan(number) else number for number in found] == expected


def test_each_object_is_read_by_itself():
    values, expected = map(list, zip(*READ, strict=True))
    assert same(numbers(objects(values)), expected)
    for value, number in READ:
        assert same(numbers(objects([value])), [number])


@settings(max_examples=150, deadline=None)
@given(values=st.lists(zoo(), min_size=1, max_size=5))
def test_no_object_has_a_say_in_how_another_is_read(values):
    together = numbers(objects(values))
    alone = [numbers(objects([value])) for value in values]
    np.testing.assert_array_equal(together, np.concatenate(alone))


NUMERIC = {
    pyarrow.int64(): [1, 2**53 + 1, None, -(2**63)],
    pyarrow.uint64(): [1, 2**64 - 1, None],
    pyarrow.int8(): [1, -128, None],
    pyarrow.float64(): [0.5, -0.0, float("nan"), None, float("inf"), 1e308],
    pyarrow.float32(): [0.5, 0.1, float("nan"), None, float("-inf")],
    pyarrow.bool_(): [True, False, None],
    pyarrow.decimal128(9, 2): [Decimal("0.50"), Decimal("-1"), None],
    pyarrow.string(): ["a", "a\0", "", None, "1.5", " 7", "nan", "-inf", "1.5"],
    pyarrow.dictionary(pyarrow.int32(), pyarrow.string()): ["a", "2", None, "2"],
    pyarrow.dictionary(pyarrow.int32(), pyarrow.bool_()): [True, None, False, True],
    pyarrow.float16(): [np.float16(0.5), None, np.float16("inf")],
    pyarrow.null(): [None, None],
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("kind", NUMERIC, ids=str)
def test_every_library_reads_the_same_numbers(library, kind):
    if library.startswith("pandas") and library != "pandas-arrow" and kind not in PANDAS:
        pytest.skip("no such type in pandas")
    values = NUMERIC[kind]
    table = pyarrow.table(
        {
            "k": pyarrow.array(range(len(values))),
            "x": encoded(values, kind),
            "u": ["me"] * len(values),
        }
    )
    domain = Domain.from_frame(pd.DataFrame({"k": range(len(values))}), by=["k"])
    quantity = Quantity.of("x", (-100, 100), 0.01)
    expected = [0] * len(values)
    for place, value in enumerate(values):
        try:
            number = float(value)
        except (TypeError, ValueError):
            continue
        if not math.isnan(number):
            expected[place] = round(min(max(number, -100.0), 100.0) * 100)
    frame = LIBRARIES[library](table)
    assert summed(frame, domain, [quantity])[0].tolist() == expected
    (sums,) = summed(frame, domain, [quantity], privacy_unit="u", k=len(values))
    assert sums.tolist() == expected


def test_objects_of_polars_are_read_too():
    values = ["3", 4, None, [1], Hostile()]
    frame = polars.DataFrame({"k": ["a"] * 5, "x": polars.Series(values, dtype=polars.Object)})
    domain = Domain.from_frame(pd.DataFrame({"k": ["a"]}), by=["k"])
    assert [s.tolist() for s in summed(frame, domain, [Quantity.of("x", (0, 9), 1), COUNT])] == [[7], [2]]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(pd.to_datetime(["2024-01-01"])),
        pd.Series(pd.to_datetime(["2024-01-01"], utc=True)),
        pd.Series(pd.to_timedelta([1])),
        pd.Series([1j]),
        pd.Series(pd.period_range("2024", periods=1)),
        pd.Series(pd.interval_range(0, 1)),
        pd.Series(pd.to_datetime(["2024-01-01"])).astype("category"),
        pd.Series([[1]], dtype=pd.ArrowDtype(pyarrow.list_(pyarrow.int64()))),
        pd.Series([b"1"], dtype=pd.ArrowDtype(pyarrow.binary())),
        polars.Series([datetime.date(2024, 1, 1)]),
        polars.Series([datetime.timedelta(1)]),
        polars.Series([datetime.time(1)]),
        polars.Series([b"1"]),
        polars.Series([[1]]),
        polars.Series([{"a": 1}]),
    ],
    ids=lambda column: f"{type(column).__module__.split('.')[0]}-{column.dtype}",
)
def test_types_that_hold_no_numbers_are_refused(column):
    make = pd.DataFrame if isinstance(column, pd.Series) else polars.DataFrame
    domain = Domain.from_frame(pd.DataFrame({"k": ["a"]}), by=["k"])
    for frame in (make({"k": ["a"], "x": column}), make({"k": ["a"], "x": column})[:0]):
        with pytest.raises(ColumnsError, match="cannot be added up in the columns: 'x'") as error:
            contributions(frame, domain, values=[Quantity.of("x", (0, 1))])
        assert error.value.hint.startswith("convert")


def test_columns_may_be_used_twice_but_no_unit_is_added_up():
    frame = pd.DataFrame({"k": [1, 2, 2, 3], "u": [1, 2, 3, 4], "x": [1.0, 2.0, np.nan, 9.0]})
    domain = Domain.from_frame(pd.DataFrame({"k": [1, 2]}), by=["k"])
    key, x = Quantity.of("k", (0, 9), 1), Quantity.of("x", (0, 10), 1)
    for made in (frame, polars.from_pandas(frame, nan_to_null=True).lazy()):
        sums = summed(made, domain, [key, x, x.centred(), COUNT])
        assert [s.tolist() for s in sums] == [[1, 2], [1, 2], [-4, -3], [1, 1]]
        with pytest.raises(ArgumentError, match="also a column to be added up: 'x'") as error:
            contributions(made, domain, privacy_unit="x", values=[x])
        assert error.value.argument == "privacy_unit"
        with pytest.raises(ColumnsError, match=r"lacks the columns: 'y'\."):
            contributions(made, domain, values=[COUNT, Quantity.of("y", (0, 1)), Quantity.of("y", (0, 2))])


def test_a_key_may_be_the_privacy_unit():
    frame = pd.DataFrame({"k": ["a", "a", "b", "c"], "x": [1, 1, 2, 3]})
    domain = Domain.from_frame(pd.DataFrame({"k": ["a", "b"]}), by=["k"])
    for made in (frame, polars.from_pandas(frame)):
        assert counted(made, domain, privacy_unit="k").tolist() == [1, 1]
        sums = summed(made, domain, [COUNT, Quantity.of("x", (0, 9), 1)], privacy_unit="k")
        assert [s.tolist() for s in sums] == [[1, 1], [1, 2]]


def test_a_lazy_frame_is_collected_once_and_only_where_needed():
    calls = []

    def heard(column):
        calls.append(len(column))
        return column

    def never(column):
        raise AssertionError

    frame = polars.LazyFrame({"k": ["a", "b"], "u": [1, 1], "x": [1, 2]}).with_columns(
        polars.col("k").map_batches(heard, return_dtype=polars.String),
        y=polars.col("k").map_batches(never, return_dtype=polars.String),
    )
    domain = Domain.from_frame(pd.DataFrame({"k": ["a", "b"]}), by=["k"])
    values = [Quantity.of("x", (0, 5), 1), COUNT]
    assert [s.tolist() for s in summed(frame, domain, values, privacy_unit="u", k=2)] == [[1, 2], [1, 1]]
    assert calls == [2]


@pytest.mark.parametrize("library", LIBRARIES)
def test_records_are_found_alike_whether_counted_or_summed(library):
    """In the order of the records or grouped: keys and units of every type are the same ones."""
    for kind in types_in(library):
        held = pyarrow.array(ARROW[kind] * 2, type=kind)
        other = pyarrow.array((["a", "b", None] * len(held))[: len(held)])
        frame = LIBRARIES[library](pyarrow.table({"k": held, "l": other}))
        values = [value for value in ARROW[kind] if value is not None and value == value]
        domain = typed_domain(kind, list(dict.fromkeys(values))[:2])
        text = Domain.from_frame(pd.DataFrame({"l": ["a", "b"]}), by=["l"])
        for where, unit in ((domain, None), (text, None), (domain, "l"), (text, "k")):
            expected = counted(frame, where, privacy_unit=unit, k=99)
            assert summed(frame, where, [COUNT], privacy_unit=unit, k=99)[0].tolist() == expected.tolist()
            one_each = counted(frame, where, privacy_unit=unit).sum()
            assert summed(frame, where, [COUNT], privacy_unit=unit)[0].sum() == one_each


@pytest.mark.parametrize(
    "make",
    [
        lambda held: pd.DataFrame({name: objects(values) for name, values in held.items()}),
        lambda held: polars.DataFrame(
            {name: polars.Series(values, dtype=polars.Object) for name, values in held.items()}
        ),
    ],
    ids=["pandas", "polars"],
)
def test_odd_records_are_found_alike_whether_counted_or_summed(make):
    frame = make({"k": ODD_VALUES * 2, "u": [*ODD_VALUES, *ODD_VALUES[::-1]]})
    domain = Domain.from_frame(pd.DataFrame({"k": objects(PUBLIC["objects"])}), by=["k"])
    for unit in (None, "u"):
        expected = counted(frame, domain, privacy_unit=unit, k=999)
        assert expected.sum() > 20
        assert summed(frame, domain, [COUNT], privacy_unit=unit, k=999)[0].tolist() == expected.tolist()


def test_records_that_lack_a_value_are_dropped_before_the_bound():
    domain = Domain.from_frame(pd.DataFrame({"k": ["in"]}), by=["k"])
    frame = pd.DataFrame({"k": ["in"] * 99, "x": [None] * 98 + [5], "y": ["2"] * 99, "unit": 1})
    values = [Quantity.of("y", (0, 9), 1), Quantity.of("x", (0, 9), 1), COUNT]
    assert [s.tolist() for s in summed(frame, domain, values, privacy_unit="unit")] == [[2], [5], [1]]


def test_all_sums_are_of_the_same_rows():
    rng = np.random.default_rng(0)
    domain = Domain.from_frame(pd.DataFrame({"k": list("abc")}), by=["k"])
    frame = pd.DataFrame({"k": rng.choice(list("abcd"), 300), "unit": rng.integers(0, 30, 300)})
    frame["x"] = frame["y"] = rng.choice([1, 10, 100, 1000, np.nan], 300)
    x, y = Quantity.of("x", (0, 1000), 1), Quantity.of("y", (0, 1000), 1)
    for library in (lambda frame: frame, polars.from_pandas):
        by_x, by_y, centred, count = summed(
            library(frame), domain, [x, y, x.centred(), COUNT], privacy_unit="unit", k=2
        )
        assert by_x.tolist() == by_y.tolist() == (centred + 500 * count).tolist()
        assert 0 < count.sum() < len(frame)


def test_rows_stay_with_the_same_chance_whatever_their_values():
    domain = Domain.from_frame(pd.DataFrame({"k": ["a"]}), by=["k"])
    frame = pd.DataFrame({"k": ["a"] * 5, "x": [1, 10, 100, 1000, 10_000], "unit": 1})
    given = contributions(frame, domain, privacy_unit="unit", values=[Quantity.of("x", (0, 10_000), 1)])
    draw, rounds = words(3), 4000
    sums = [sum_leaves(given, 1, max_contributions=2, random_words=draw)[0][0] for _ in range(rounds)]
    pairs, times = np.unique(sums, return_counts=True)
    assert len(pairs) == 10
    np.testing.assert_allclose(times / rounds, 0.1, atol=4 * np.sqrt(0.09 / rounds))


def test_sums_are_exact_and_clipped_at_both_ends():
    n = 4000
    leaf = np.array([0, 1, 2, 3] * n)
    value = np.array([2**31, -(2**31), 2**31 - 1, -(2**20) - 1] * n)
    given = Contributions(leaf, None, np.ones_like(leaf), (value,))
    assert sum_leaves(given, 4, max_contributions=1, random_words=words())[0].tolist() == [
        n * 2**31, -n * 2**31, n * (2**31 - 1), -n * (2**20 + 1),
    ]  # fmt: skip
    largest = 2**61 // 10**6
    (sums,) = sum_leaves(given, 10**6, max_contributions=1, random_words=words())
    assert sums[:5].tolist() == [largest, -largest, largest, -n * (2**20 + 1), 0]


def test_leaf_sums_may_be_negative():
    tree = Tree.from_branching([4])
    assert leaf_sums(np.array([-5, 0, 2**63 - 1, -(2**63)]), tree).tolist() == [-5, 0, 2**59, -(2**59)]
    assert leaf_sums(np.array([-128, 0, 1, 127], dtype=np.int8), tree).tolist() == [-128, 0, 1, 127]
    assert leaf_sums(np.array([0, 1, 2, 2**64 - 1], dtype=np.uint64), tree).tolist() == [0, 1, 2, 2**59]
    with pytest.raises(ArgumentError, match=r"whole numbers of shape \(4,\), not float64"):
        leaf_sums(np.zeros(4), tree)


SUMMED = [
    Quantity.of("x", (-3, 5), 1),
    Quantity.of("y", (0, 2), 0.5),
    Quantity.of("x", (2, 4), 1),
    Quantity.of("x", (-3, 5), 1).centred(),
    COUNT,
]
OBJECTS = st.sampled_from(
    [
        -3,
        5,
        0,
        2.4,
        99,
        -99,
        math.inf,
        -math.inf,
        math.nan,
        None,
        "4",
        "x",
        Decimal("1.5"),
        True,
        [1],
        10**400,
    ]
)
FLOATS = st.sampled_from([-3.0, 5.0, 0.0, 2.4, 99.0, -99.0, math.inf, -math.inf, math.nan, None])
HOLDERS = {
    "pandas-objects": (OBJECTS, lambda rows, x, y: rows.assign(x=objects(x), y=objects(y))),
    "pandas": (FLOATS, lambda rows, x, y: rows.assign(x=np.array(x, float), y=np.array(y, float))),
    "polars": (
        FLOATS,
        lambda rows, x, y: polars.DataFrame(
            {**rows.to_dict("list"), "x": x, "y": y},
            schema={
                **dict.fromkeys(rows, polars.String),
                "unit": polars.Int64, "x": polars.Float64, "y": polars.Float64,
            },
        ),
    ),
}  # fmt: skip


def check_moves(domain, here, there, neighbors, k):
    """Check every level of every quantity in exact integers, and give the largest moves at the leaves."""
    for quantity, before, after in zip(SUMMED, here, there, strict=True):
        most = quantity.sensitivity(neighbors=neighbors, max_contributions=k)
        for level in zip(domain.tree.roll_up(before), domain.tree.roll_up(after), strict=True):
            moves = [int(a) - int(b) for a, b in zip(*level, strict=True)]
            assert sum(map(abs, moves)) <= most.l1
            assert sum(move**2 for move in moves) <= most.l2_squared


@pytest.mark.parametrize("holder", HOLDERS)
@settings(max_examples=150, deadline=None)
@given(drawn=domains_and_rows(max_rows=15), k=st.integers(1, 3), seed=st.integers(0, 2**32), data=st.data())
def test_one_unit_moves_no_sum_by_more_than_the_sensitivity(holder, drawn, k, seed, data):
    """Neighbours through the real way of the data, the priorities of all other units carried over."""
    values, build = HOLDERS[holder]
    domain, rows = drawn
    unit, replace = data.draw(st.integers(0, 3)), data.draw(st.booleans())
    rng = np.random.default_rng(seed)
    everyone = rows.assign(unit=rng.integers(0, 4, len(rows)))
    others = everyone[everyone["unit"] != unit]
    new = data.draw(st.lists(st.sampled_from(listed_leaves(domain)), max_size=5)) if replace else []
    newcomers = frame_of(new, list(domain.by)).assign(unit=unit)
    drawn_values = st.lists(values, min_size=len(rows) + len(new), max_size=len(rows) + len(new))
    x, y = data.draw(drawn_values), data.draw(drawn_values)
    frames = []
    for part, places in (
        (everyone, list(range(len(rows)))),
        (pd.concat([newcomers, others]), [*range(len(rows), len(rows) + len(new)), *others.index]),
    ):
        part = part.reset_index(drop=True).astype({"unit": np.int64})
        frames.append((part, build(part, [x[i] for i in places], [y[i] for i in places])))
    sums, kept = [], None
    for part, frame in frames:
        given = contributions(frame, domain, privacy_unit="unit", values=SUMMED)
        present = part["unit"].unique()
        whose = present[given.unit] if len(present) else np.zeros(0)
        priorities = rng.integers(2**64, size=len(whose), dtype=np.uint64)
        kept = priorities[whose != unit] if kept is None else kept
        priorities[whose != unit] = kept
        sums.append(
            sum_leaves(
                given,
                domain.tree.n_leaves,
                max_contributions=k,
                random_words=lambda n, priorities=priorities: priorities,
            )
        )
    check_moves(domain, *sums, "replace" if replace else "add_remove", k)


@pytest.mark.parametrize("holder", HOLDERS)
@settings(max_examples=80, deadline=None)
@given(drawn=domains_and_rows(max_rows=12), data=st.data())
def test_one_row_moves_no_sum_by_more_than_the_sensitivity(holder, drawn, data):
    values, build = HOLDERS[holder]
    domain, rows = drawn
    if rows.empty:
        return
    rows = rows.assign(unit=0)
    n = len(rows)
    row, other = data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, n - 1))
    replace = data.draw(st.booleans())
    x, y = (data.draw(st.lists(values, min_size=n + 1, max_size=n + 1)) for _ in "xy")
    left = [i for i in range(n) if i != row]
    here = summed(build(rows, x[:n], y[:n]), domain, SUMMED)
    places = [*left, other] if replace else left  # at the key of another row, with values of its own
    there = summed(
        build(
            rows.iloc[places].reset_index(drop=True),
            [x[i] for i in left] + [x[n]] * replace,
            [y[i] for i in left] + [y[n]] * replace,
        ),
        domain,
        SUMMED,
    )
    check_moves(domain, here, there, "replace" if replace else "add_remove", 1)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("bounds", [(-3, 5), (-4, 4), (0, 2), (2, 4), (-7, -1)])
def test_the_worst_records_reach_the_sensitivity(bounds, k):
    domain = Domain.from_frame(pd.DataFrame({"k": ["a", "b"]}), by=["k"])
    quantity = Quantity.of("x", bounds, 1)
    beyond = {min(bounds): -math.inf, max(bounds): math.inf}
    largest = max(bounds, key=abs)

    def leaves(key, value):
        frame = pd.DataFrame({"k": [key] * 5, "x": beyond[value], "unit": 1})
        return summed(frame, domain, [quantity], privacy_unit="unit", k=k)[0]

    added, moved = leaves("a", largest), leaves("a", largest) - leaves("b", largest)
    changed = leaves("a", max(bounds)) - leaves("a", min(bounds))
    one = quantity.sensitivity(neighbors="add_remove", max_contributions=k)
    assert (np.abs(added).sum(), (added**2).sum()) == (one.l1, one.l2_squared)
    other = quantity.sensitivity(neighbors="replace", max_contributions=k)
    assert np.abs(moved).sum() == other.l1
    assert max((moved**2).sum(), (changed**2).sum()) == other.l2_squared


# Whether records can be counted at all: this shows, so it may depend on the types of columns alone.


class Marked(pyarrow.ExtensionType):
    """Days under another name."""

    def __init__(self):
        super().__init__(pyarrow.date32(), "marked")

    def __hash__(self):
        return hash(type(self))

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type, serialized):
        return cls()


INSTANT, WORD = datetime.date(2020, 1, 1), "9" * 5000
VALUES = {
    pyarrow.int8(): [1, -128, 127],
    pyarrow.uint64(): [1, 2**64 - 1],
    pyarrow.int64(): [1, -(2**63)],
    pyarrow.float16(): [np.float16(1), np.float16("nan"), np.float16("inf")],
    pyarrow.float32(): [1.0, math.nan, math.inf],
    pyarrow.float64(): [1.0, 5e-324, 1e308, math.nan, -math.inf, -0.0],
    pyarrow.bool_(): [True, False],
    pyarrow.string(): ["1", "", "x", "\x00", "1e5", WORD, "nan"],
    pyarrow.large_string(): ["1", "x"],
    pyarrow.string_view(): ["1", "x", "é", WORD],
    pyarrow.decimal128(38, 0): [Decimal(1), Decimal(10**37)],
    pyarrow.decimal256(76, 0): [Decimal(1), Decimal(10**75)],
    pyarrow.binary(): [b"1", b"\xff"],
    pyarrow.large_binary(): [b"1", b"\xff"],
    pyarrow.binary(2): [b"12", b"\xff1"],
    pyarrow.binary_view(): [b"12", b"\xff1" * 99],
    pyarrow.date32(): [INSTANT, -(2**31), 2**31 - 1],
    pyarrow.date64(): [INSTANT, 2**55 // DAY * DAY],
    pyarrow.time32("s"): [datetime.time(1), datetime.time(23)],
    pyarrow.time64("ns"): [1, 2**40],
    pyarrow.timestamp("s"): [0, 2**55, -(2**55)],
    pyarrow.timestamp("ns"): [0, 2**62],
    pyarrow.timestamp("us", "Europe/Paris"): [0, 2**60, -(2**60)],
    pyarrow.duration("s"): [0, 2**61],
    Marked(): [1, 2**31 - 1],
    pyarrow.month_day_nano_interval(): [(1, 1, 1)],
    pyarrow.null(): [None],
    pyarrow.list_(pyarrow.timestamp("s")): [[1], [], [2**55]],
    pyarrow.map_(pyarrow.string(), pyarrow.date32()): [[("a", 1)], [], [("a", 2**31 - 1)]],
    pyarrow.struct([("a", pyarrow.int64())]): [{"a": 1}, {"a": None}],
}
BARE = [
    pyarrow.int64(), pyarrow.float16(), pyarrow.bool_(), pyarrow.string(), pyarrow.string_view(),
    pyarrow.decimal128(38, 0), pyarrow.binary(), pyarrow.binary_view(), pyarrow.timestamp("s"),
]  # fmt: skip
ENCODED = {pyarrow.dictionary(pyarrow.int8(), kind): kind for kind in BARE}
ENCODED |= {pyarrow.run_end_encoded(pyarrow.int32(), kind): kind for kind in BARE}
VALUES |= {kind: VALUES[bare] for kind, bare in ENCODED.items()}
NOT_IN_POLARS = ("month", "decimal256", "map", "run_end", "extension")

TYPED = {
    "object": [1, *ODD_VALUES, pd.Series([1, 2]), np.longdouble("1e4000")],
    "string[python]": ["1", "x", "\ud800"],
    "string[pyarrow]": ["1", "x"],
    "str": ["1", "x"],
    "category": ["1", "x", 1],
    "Int64": [1, 2**62],
    "uint64": [1, 2**64 - 1],
    "boolean": [True, False],
    "Float32": [1.0, math.inf],
    "float16": [1.0, math.inf],
    "longdouble": [1.0, np.longdouble("1e4000")],
    "complex128": [1, 1j, math.nan],
    "Sparse[float64]": [1.0, math.inf],
    "Sparse[object]": ["1", "x", 1, (1,)],
    "datetime64[ns]": [0, 2**62],
    "datetime64[s]": [0, 2**55],
    "datetime64[us, UTC]": [0, 2**60],
    "timedelta64[s]": [0, 2**55],
    "period[D]": ["2020-01-01", "1900-01-01"],
}  # fmt: skip


def variants(values):
    """List columns of the first value, and of odd ones and none beside it."""
    first = values[0]
    yield from (
        [first, first],
        [first],
        [],
        [first, None],
        [None, first],
        [None, None],
        [None, *values, None],
    )
    yield from ([first, value] for value in values[1:])


def encoded(values, kind):
    """Make a column of Arrow of two chunks, each with a dictionary or with runs of its own."""
    chunks = []
    for part in (values[:1], values[1:]):
        if pyarrow.types.is_dictionary(kind):
            held = pyarrow.array(part, type=kind.value_type)
            place = pyarrow.array(range(len(part)), type=kind.index_type)
            chunks.append(pyarrow.DictionaryArray.from_arrays(place, held))
        elif pyarrow.types.is_run_end_encoded(kind):
            held = pyarrow.array(part, type=kind.value_type)
            ends = pyarrow.array(range(1, len(part) + 1), type=kind.run_end_type)
            chunks.append(pyarrow.RunEndEncodedArray.from_arrays(ends, held))
        else:
            chunks.append(pyarrow.array(part, type=kind))
    return pyarrow.chunked_array(chunks if values else [], type=kind)


def in_arrow(kind, values, role):
    n = len(values)
    columns = {"k": ["a"] * n, "u": range(n), "x": [1.0] * n}
    types = {"k": pyarrow.string(), "u": pyarrow.int64(), "x": pyarrow.float64()}
    held = {name: pyarrow.array(column, type=types[name]) for name, column in columns.items()}
    return pyarrow.table(held | {role: encoded(values, kind)})


def in_pandas(dtype, values, role):
    """Make a frame of pandas; None if the type cannot hold the values."""
    n = len(values)
    try:
        column = objects(values).astype(dtype)
    except (TypeError, ValueError, OverflowError):
        return None
    held = {"k": ["a"] * n, "u": range(n), "x": [1.0] * n}
    return pd.DataFrame(held).astype({"k": object}).assign(**{role: column})


OUTCOME_LIBRARIES = {
    "pyarrow": lambda table: table,
    "pandas-arrow": lambda table: pd.DataFrame(
        {name: pd.Series(pd.arrays.ArrowExtensionArray(table[name])) for name in table.column_names}
    ),
    "polars": polars.from_arrow,
}


def outcome(frame, domain, **options):
    """Tell what shows of an answer, or the refusal, and then the answer itself."""
    try:
        given = contributions(frame, domain, **options)
    except ColumnsError as refused:
        return str(refused), None
    unit = None if given.unit is None else given.unit.tolist()
    shape = (unit is None, len(given.values))
    return shape, (given.leaf.tolist(), unit, given.rows.tolist(), [value.tolist() for value in given.values])


OUTCOMES = {
    f"{library}-{kind}": (lambda values, role, kind=kind, make=make: make(in_arrow(kind, values, role)), held)
    for kind, held in VALUES.items()
    for library, make in OUTCOME_LIBRARIES.items()
    if not (library == "polars" and any(name in str(kind) for name in NOT_IN_POLARS))
} | {f"pandas-{dtype}": (partial(in_pandas, dtype), held) for dtype, held in TYPED.items()}


@pytest.mark.parametrize(("build", "values"), OUTCOMES.values(), ids=OUTCOMES)
def test_no_value_decides_whether_records_can_be_counted(build, values):
    text = Domain.from_frame(pd.DataFrame({"k": ["a", "b"]}), by=["k"])
    mixed = Domain.from_frame(pd.DataFrame({"k": objects(["a", 1])}), by=["k"])
    amount = Quantity.of("x", (0, 5), 1)
    ways = {
        "x": [(text, {"values": [amount]})],
        "u": [(text, {"privacy_unit": "u"})],
        "k": [(text, {}), (mixed, {}), (mixed, {"values": [COUNT]})],
    }
    for role, questions in ways.items():
        frames = [build(column, role) for column in variants(values)]
        for where, options in questions:
            outcomes = {outcome(frame, where, **options)[0] for frame in frames if frame is not None}
            assert len(outcomes) == 1, role


@pytest.mark.parametrize("library", OUTCOME_LIBRARIES)
def test_how_values_are_encoded_makes_no_difference(library):
    domain = Domain.from_frame(pd.DataFrame({"k": objects(["a", 1, "1", "x", b"1"])}), by=["k"])
    amount = Quantity.of("x", (-5, 5), 1)
    for kind, bare in ENCODED.items():
        if library == "polars" and any(name in str(kind) for name in NOT_IN_POLARS):
            continue
        for role, options in (
            ("x", {"values": [amount]}),
            ("u", {"privacy_unit": "u"}),
            ("k", {"values": [COUNT]}),
        ):
            for values in variants([*VALUES[kind], VALUES[kind][0]]):
                make = OUTCOME_LIBRARIES[library]
                plain, other = (make(in_arrow(one, values, role)) for one in (bare, kind))
                assert outcome(other, domain, **options) == outcome(plain, domain, **options), (kind, role)


@pytest.mark.parametrize("state", ["raise", "print", "warn", "call"])
def test_no_value_is_told_by_the_arithmetic_of_numpy(state, capfd):
    domain = Domain.from_frame(pd.DataFrame({"k": ["a"]}), by=["k"])
    extremes = [1.0, 5e-324, 1e308, math.inf, -math.inf, math.nan, -0.0]
    frame = pd.DataFrame({"k": "a", "e": extremes, "x": extremes})
    wide = frame.assign(x=np.array([1, "1e-4930", "1e4900"] + [0] * 4, dtype=np.longdouble))
    frames = (
        frame,
        frame.astype(object),
        frame.astype({"x": "Sparse[float64]"}),
        wide,
        polars.from_pandas(frame),
    )
    public = Domain.from_frame(pd.DataFrame({"e": extremes[:5]}), by=["e"])
    values = [Quantity.of("x", (low, 1e6), 0.01) for low in (-1, 0)]
    told = []
    with np.errstate(all=state, call=lambda *error: told.append(error)):
        for made in frames:
            given = contributions(made, domain, privacy_unit="e", values=values)
            sum_leaves(given, 1, max_contributions=1, random_words=words())
            count_leaves(contributions(made, public), 6, max_contributions=1, random_words=words())
    assert capfd.readouterr() == ("", "") and not told

"""Labels of released keys show nothing but these keys."""

import datetime
import itertools
import math
import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandas_dptree.hierarchy.rebuilt_labels import rebuilt_labels
from pandas_dptree.hierarchy.values import UNKNOWN, canonical_codes, sort_key
from tests.helpers_cases import each
from tests.strategies import ODD_VALUES, objects, zoo

TEXT = pd.Series([], dtype="str").dtype
OBJECT = np.dtype(object)
SECRET = "hush-hush"


def forms_of(column):
    """List the keys of a column that can be released."""
    return [form for form in canonical_codes(column)[1] if form != UNKNOWN]


def made_column(labels):
    """Make a column of labels, as of any array whose type pandas must not change."""
    return pd.Series(labels, dtype=labels.dtype)


def check(forms):
    """Check what holds of all labels, and return them."""
    labels, position = rebuilt_labels(forms)
    assert isinstance(labels, pd.api.extensions.ExtensionArray)
    assert position.dtype == np.int64 and sorted(position.tolist()) == [*range(len(forms))]
    codes, again = canonical_codes(made_column(labels))
    assert codes.tolist() == [*range(len(forms))]
    assert again == sorted(forms, key=sort_key) and [again[place] for place in position] == forms
    assert len(labels) == len(again) and not labels.isna().any()

    taken = labels.take(np.array([-1, *position]), allow_fill=True)
    assert taken.isna().tolist() == [True] + [False] * len(forms)
    assert canonical_codes(made_column(taken))[1] == forms

    restored = pickle.loads(pickle.dumps(pd.DataFrame({"key": made_column(taken)})))["key"]
    assert restored.dtype == made_column(taken).dtype and canonical_codes(restored)[1] == forms
    return labels


@settings(derandomize=True)
@given(values=st.lists(zoo(), max_size=8), order=st.randoms(use_true_random=False))
def test_labels_have_the_forms_they_are_made_of(values, order):
    forms = forms_of(objects(values))
    labels = check(forms)
    order.shuffle(forms)
    assert pickle.dumps(check(forms)) == pickle.dumps(labels)


KINDS = [
    st.text(max_size=3), st.integers(), st.integers(0, 2**64 - 1), st.floats(allow_nan=False),
    st.booleans(), st.dates(), st.datetimes(),
    st.datetimes(timezones=st.just(datetime.UTC)), st.timedeltas(),
    st.integers(-(10**5), 10**5).map(lambda ordinal: pd.Period(ordinal=ordinal, freq="M")),
    st.lists(st.floats(allow_nan=False), min_size=2, max_size=2).map(lambda ends: pd.Interval(*sorted(ends))),
    st.lists(st.integers(), min_size=2, max_size=2).map(lambda ends: pd.Interval(*sorted(ends))),
]  # fmt: skip


@settings(derandomize=True)
@given(values=st.sampled_from(KINDS).flatmap(lambda kind: st.lists(kind, max_size=6)))
def test_labels_of_one_kind_have_the_forms_they_are_made_of(values):
    check(forms_of(objects(values)))


@pytest.mark.parametrize(
    "step", [pytest.param(6, id="some"), pytest.param(1, id="all", marks=pytest.mark.slow)]
)
def test_every_pair_of_odd_values_can_be_released(step):
    forms = forms_of(objects(ODD_VALUES))
    for one in forms:
        check([one])
    for pair in [*itertools.combinations(forms, 2)][::step]:
        check(list(pair))


def naive(*texts, unit="ns"):
    return pd.Series(np.array(texts, dtype=f"M8[{unit}]"))


@each(
    "values, dtype",
    [
        (["b", "a", ""], TEXT),
        (["a\x00", "a"], TEXT),
        ([3, 1.0, 2], "Int64"),
        ([-(2**63), 2**63 - 1], "Int64"),
        ([0, 2**64 - 1], "UInt64"),
        ([-1, 2**63], object),
        ([2**64], object),
        ([10**400], object),
        ([1e300], object),  # whole
        ([0.5, 1], "Float64"),
        ([math.inf, -math.inf, 1], "Float64"),
        ([5e-324, 2**53, 1e308], "Float64"),
        ([0.5, 2**53 + 1], object),
        ([0.5, 10**400], object),
        ([True, False], "boolean"),
        ([True, 1], object),
        ([datetime.date(2024, 2, 29)], "datetime64[ns]"),
        ([datetime.datetime.max], "datetime64[us]"),
        ([np.datetime64(10**17, "ms")], "datetime64[ms]"),
        ([np.datetime64(2**62, "s"), datetime.date(1, 1, 1)], "datetime64[s]"),
        ([np.datetime64(2**62, "s"), np.datetime64(1, "ns")], object),
        ([pd.Timestamp(1, tz="Asia/Tokyo")], "datetime64[ns, UTC]"),
        ([datetime.datetime.max.replace(tzinfo=datetime.UTC)], "datetime64[us, UTC]"),
        ([pd.Timestamp(1, tz="UTC"), pd.Timestamp(1)], object),
        ([datetime.timedelta(1)], "timedelta64[ns]"),
        ([datetime.timedelta(days=10**8), datetime.timedelta(microseconds=1)], "timedelta64[us]"),
        ([datetime.timedelta.max], object),
        ([np.timedelta64(2**62, "s")], "timedelta64[s]"),
        ([pd.Period("2024-02", "M"), pd.Period("2024-01", "M")], "period[M]"),
        ([pd.Period("2024", "2D")], "period[2D]"),
        ([pd.Period("2024-02", "M"), pd.Period("2024", "Y")], object),
        ([pd.Interval(0.0, 1.0), pd.Interval(1, 2**53)], "interval[int64, right]"),
        ([pd.Interval(0, 1, closed="both"), pd.Interval(-math.inf, 0.5, closed="both")],
         "interval[float64, both]"),
        ([pd.Interval(0, 1), pd.Interval(0, 1, closed="left")], object),
        ([pd.Interval(0, 2**53 + 1)], object),
        ([pd.Interval(0, 2**63)], object),
        ([pd.Interval(pd.Timestamp(0), pd.Timestamp(1))], "interval[datetime64[ns], right]"),
        ([pd.Interval(pd.Timestamp(0, tz="Asia/Tokyo"), pd.Timestamp(1, tz="Asia/Tokyo"))],
         "interval[datetime64[ns, UTC], right]"),
        ([pd.Interval(pd.Timedelta(0), pd.Timedelta(1))], "interval[timedelta64[ns], right]"),
        ([pd.Interval(pd.Timedelta(0), pd.Timedelta(1)), pd.Interval(0, 1)], object),
        (["a", 1], object),
    ],
)  # fmt: skip
def test_the_type_of_the_labels(values, dtype):
    labels = check(forms_of(objects(values)))
    assert made_column(labels).dtype == dtype


def test_text_that_arrow_cannot_hold():
    """Without Arrow, pandas holds it as any other text."""
    labels = check(["a", "\ud800"])
    assert labels.tolist() == ["a", "\ud800"]
    assert made_column(labels).dtype in (OBJECT, TEXT)


@each(
    "values, labels",
    [
        (["a", 1.0, 0.5, -math.inf, True], [-math.inf, 0.5, 1, "a", True]),
        ([datetime.date(2024, 1, 1), datetime.timedelta(1), pd.Period("2024", "Y"), pd.Interval(0.0, 0.5)],
         [pd.Timedelta(days=1), pd.Interval(0, 0.5), pd.Period("2024", "Y"), pd.Timestamp("2024-01-01")]),
        ([pd.Timestamp("2024-01-01 09:00", tz="Asia/Tokyo"), 1], [1, pd.Timestamp("2024-01-01", tz="UTC")]),
    ],
)  # fmt: skip
def test_objects_are_plain_values(values, labels):
    rebuilt = check(forms_of(objects(values))).tolist()
    assert rebuilt == labels
    assert list(map(repr, rebuilt)) == list(map(repr, labels))


@each("others", [[], [0.5], [0.5, 2**53 + 1], ["a"]])
@each(
    "within",
    [
        lambda number: number,
        lambda number: ("interval", number, 9, "right"),
    ],
)
def test_equal_forms_have_the_same_labels(within, others):
    same = [[0, 1], [-0.0, 1.0], [0.0, 1], [0, 1.0]]
    assert len({tuple(map(within, each)) for each in same}) == 1
    pickles = {pickle.dumps(rebuilt_labels([*map(within, each), *others])[0]) for each in same}
    assert len(pickles) == 1


def columns_of_numbers():
    """The keys 1 and 2, among others, in columns of many types."""
    yield pd.Series([1, 2, 77])
    yield pd.Series([77, 2, 1], dtype=np.uint8)
    yield pd.Series([1, 2, np.nan, 77.5])
    yield pd.Series([2, 1], dtype=np.float32)
    yield pd.Series([1, None, 2, 77], dtype="Int64")
    yield pd.Series([1, 2, 77.5], dtype="Float64")
    yield pd.Series([2, 1, 77], dtype="category")
    yield pd.Series(pd.Categorical([2.0, 1.0], categories=[77.5, 2.0, 1.0]))
    yield objects([1.0, 2, Decimal(77), "77", None])
    yield objects([2.0, 1, 77])
    yield pd.Series(pd.arrays.SparseArray([1, 0, 2]))
    pyarrow = pytest.importorskip("pyarrow")
    for kind in (pyarrow.int8(), pyarrow.float32()):
        plain = pyarrow.array([1, 2, 77], type=kind)
        yield pd.Series(pd.arrays.ArrowExtensionArray(pyarrow.chunked_array([plain])))
    encoded = pyarrow.array([77, 2, 1]).dictionary_encode()
    yield pd.Series(pd.arrays.ArrowExtensionArray(pyarrow.chunked_array([encoded])))


def columns_of_texts():
    """The keys a and b, and one that is not released, in columns of many types."""
    texts = ["b", "a", SECRET]
    yield pd.Series(np.array(texts))  # <U9
    yield pd.Series(texts, dtype="str")
    yield pd.Series(texts[::-1], dtype=object)
    yield pd.Series(texts, dtype="string[python]")
    yield pd.Series(pd.Categorical(["b", "a"], categories=[SECRET, "b", "a"]))
    yield objects([np.str_("a"), "b", SECRET, 1, None])
    pyarrow = pytest.importorskip("pyarrow")
    for array in (pyarrow.array(texts), pyarrow.array(texts).dictionary_encode()):
        yield pd.Series(pd.arrays.ArrowExtensionArray(pyarrow.chunked_array([array])))


def columns_of_times():
    """The keys 1990 and 2024, in columns of many types."""
    days = ["1990-01-01", "2024-01-01"]
    yield from (naive(*days, unit=unit) for unit in ("s", "ms", "us", "ns"))
    yield naive(*days, "2024-01-01 00:00:00.000000001")
    yield naive(*days[::-1]).astype("category")
    yield objects([datetime.date(1990, 1, 1), datetime.datetime(2024, 1, 1)])


@each(
    "columns, released",
    [
        (columns_of_numbers, [2, 1]),
        (columns_of_texts, ["a", "b"]),
        (columns_of_times, forms_of(naive("2024-01-01", "1990-01-01"))),
    ],
)
def test_nothing_of_the_column_remains(columns, released):
    expected = rebuilt_labels(released)[0]
    for column in columns():
        forms = [form for form in canonical_codes(column)[1] if form in released]
        assert len(forms) == 2
        labels = rebuilt_labels(forms)[0]
        assert pickle.dumps(labels) == pickle.dumps(expected), column.dtype
        assert SECRET.encode() not in pickle.dumps(labels)


def test_a_pickle_does_not_show_which_texts_were_the_same_object():
    """Nor does one of several columns."""
    text, copy = "Georgia", "".join(["Geor", "gia"])
    assert text is not copy
    first, second = (
        pd.DataFrame({place: made_column(rebuilt_labels([form])[0]) for place, form in enumerate(forms)})
        for forms in ([text, text, text], [text, copy, copy])
    )
    assert pickle.dumps(first) == pickle.dumps(second)


def test_without_keys_the_type_is_always_the_same():
    """That of the column may depend on a single record: booleans with one that is missing are objects."""
    labels, position = rebuilt_labels([])
    assert len(labels) == len(position) == 0 and position.dtype == np.int64
    assert made_column(labels).dtype == object
    assert labels.take([-1, -1], allow_fill=True).isna().all()


@each(
    "values",
    [
        ["b", "a"], [1, 2], [2**63], [0.5, math.inf], [True], [datetime.date(2024, 2, 29)],
        [pd.Timestamp(1, tz="UTC")], [datetime.timedelta(1)], [pd.Period("2024", "M")], [pd.Interval(0, 1)],
        [datetime.datetime.max], [],
    ],
)  # fmt: skip
def test_parquet_files_restore_the_keys(values, tmp_path):
    pytest.importorskip("pyarrow")
    forms = forms_of(objects(values))
    labels, position = rebuilt_labels(forms)
    column = made_column(labels.take(np.array([-1, *position]), allow_fill=True))
    pd.DataFrame({"key": column}).to_parquet(tmp_path / "table.parquet")
    restored = pd.read_parquet(tmp_path / "table.parquet")["key"]
    codes, keys = canonical_codes(restored)
    assert codes.tolist() == [-1, *range(len(forms))] and keys == forms


@each("others", [[], [1]])
def test_deprecated_frequencies_are_rebuilt_in_silence(others):
    labels = rebuilt_labels([*others, ("period", "B", 14000)])[0]
    assert (labels[-1].freqstr, labels[-1].ordinal) == ("B", 14000)

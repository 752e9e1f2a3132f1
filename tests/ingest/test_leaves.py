"""Where records lie in a domain: keys match by value, and no record has a part in where others lie."""

import datetime
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.errors import ColumnsError
from pandas_dptree.hierarchy.columns import NO_KEYS, kind_of
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.ingest.contributions import leaf_totals
from pandas_dptree.ingest.observed_keys import key_frame
from pandas_dptree.ingest.units import unit_form
from pandas_dptree.privacy.sensitivity import count_sensitivity
from tests.helpers_cases import each
from tests.helpers_ingest import ARROW, LIBRARIES, PUBLIC, counted, typed_domain, types_in
from tests.helpers_random import fixed_words
from tests.helpers_reading import divided, forms_of, leaves_read
from tests.strategies import Hostile, fewer, objects, zoo

polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")
MOMENTS = pd.to_datetime(["2024-02-29 00:00", "2024-03-31 02:30"])


@each(
    "public, recorded",
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
    ],
)
def test_keys_match_by_value_across_types(public, recorded):
    domain = Domain.from_frame(public.to_frame("k"), by=["k"])
    frame = recorded.to_frame("k") if isinstance(recorded, pd.Series) else polars.DataFrame({"k": recorded})
    assert counted(frame, domain).sum() == 1


@each(
    "public, recorded",
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
        with pytest.raises(ColumnsError, match="a different type than the domain"):
            leaf_totals(frame, domain)


@each("empty", [pd.DataFrame({"a": [], "b": []}, dtype=object), polars.DataFrame({"a": [], "b": []})])
def test_no_records_give_zeros(empty):
    domain = Domain.from_frame(pd.DataFrame({"a": ["x"], "b": ["y"]}), by=["a", "b"])
    assert counted(empty, domain).tolist() == [0]
    assert counted(
        empty, Domain.from_frame(pd.DataFrame({"a": ["x"]}), by=["a"]), privacy_unit="b"
    ).tolist() == [0]


def test_many_wide_keys_do_not_overflow():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"k{i}": rng.permutation(5000) for i in range(8)})
    assert counted(frame, Domain.from_frame(frame, by=list(frame))).tolist() == [1] * 5000


def test_combinations_that_differ_in_any_key_are_different():
    """Five keys of 2**16 codes each, two of which mean nothing: the first would count for 2**64."""
    n, names = 2**16 - 2, list("abcde")
    domain = Domain.from_frame(pd.DataFrame(dict.fromkeys(names, np.arange(n))), by=names)
    for at in range(5):
        records = pd.DataFrame(np.zeros((51, 5), dtype=int), columns=names)
        records.loc[50, names[at]] = 1  # this one is nowhere, and the others are where they were
        assert counted(records, domain)[:2].tolist() == [50, 0]


def leaf_of_each(build, places, domain):
    """Tell which leaf each record is counted in."""
    found = zip(places, leaves_read(build(places), domain).tolist(), strict=True)
    return {row: leaf for row, leaf in found if leaf >= 0}


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
    levels = []
    for places in (everyone, [row for row in everyone if units[row] is None or units[row] != unit]):
        shuffled = rng.permutation(places).tolist()
        with divided(batch=int(rng.integers(1, 7)), buckets=int(rng.integers(1, 5))):
            found = counted(build(shuffled), domain, privacy_unit="unit", k=k, draw=fixed_words(seed))
        kept = Counter(units[row] for row in leaf_of_each(build, places, domain))
        kept = {unit: min(n, k) for unit, n in kept.items() if unit is not None}
        assert found.sum() == sum(kept.values())
        levels.append(domain.tree.roll_up(found))
    for here, there in zip(*levels, strict=True):
        assert np.abs(here - there).sum() <= bound.l1


# Neighbours among odd records: what one of them holds is nobody else's business.


@pytest.mark.parametrize("public", PUBLIC)
@fewer(4, derandomize=True)
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
    forms = forms_of(unit, unit_form)
    check_neighbors(frame.iloc.__getitem__, forms, domain, data.draw(st.integers(0, n - 1)), k, seed)


@pytest.mark.parametrize("library", LIBRARIES)
@fewer(4, derandomize=True)
@given(data=st.data(), k=st.integers(1, 3), seed=st.integers(0, 99))
def test_typed_records_have_no_part_in_the_counts_of_others(library, data, k, seed):
    types = st.sampled_from(types_in(library))
    kind = data.draw(types.filter(lambda each: kind_of(pd.ArrowDtype(each)) not in NO_KEYS))
    whose = data.draw(types)
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

    forms = forms_of(pd.Series(pd.array(table["unit"], dtype=pd.ArrowDtype(whose))), unit_form)
    check_neighbors(build, forms, domain, data.draw(st.integers(0, n - 1)), k, seed)


@pytest.mark.parametrize("library", LIBRARIES)
def test_times_beyond_those_of_python_are_counted(library):
    for kind in filter(pyarrow.types.is_temporal, types_in(library)):
        if pyarrow.types.is_time(kind):
            continue  # times of day are no keys
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


@each(
    "frame",
    [
        pd.DataFrame({"k": objects(HELD)}),
        polars.DataFrame({"k": polars.Series(HELD, dtype=polars.Object)}),
        polars.DataFrame({"k": polars.Series(HELD, dtype=polars.Object)}).lazy(),
    ],
)
def test_objects_that_cannot_be_hashed_are_dropped(frame):
    domain = Domain.from_frame(pd.DataFrame({"k": ["a"]}), by=["k"])
    assert counted(frame, domain).tolist() == [1]
    assert Domain.observed(key_frame(frame, ["k"]), by=["k"]).keys(1)["k"].tolist() == ["a"]


@pytest.mark.parametrize("library", ["pyarrow", "pandas-arrow", "polars"])
def test_lists_and_records_are_no_keys(library):
    held = pyarrow.table({"k": [[1], None, []], "l": [{"a": 1}, None, {"a": None}], "m": ["a", "a", "b"]})
    frame = LIBRARIES[library](held)
    for name in "kl":
        domain = Domain.from_frame(pd.DataFrame({name: objects(["a", 1])}), by=[name])
        assert counted(frame, domain).tolist() == [0, 0]
    domain = Domain.from_frame(pd.DataFrame({"m": ["a"]}), by=["m"])
    assert counted(frame, domain, privacy_unit="k").tolist() == [0]


def test_a_categorical_column_without_values_is_of_any_type():
    nobody = pd.DataFrame({"k": pd.Series([None], dtype="category")})
    for labels in PUBLIC.values():
        domain = Domain.from_frame(pd.DataFrame({"k": labels}), by=["k"])
        assert counted(nobody, domain).sum() == 0

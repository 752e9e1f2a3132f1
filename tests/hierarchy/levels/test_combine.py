"""Derived levels together: domains, releases and plans of several of them, and mistakes."""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError, ColumnsError, DomainError
from pandas_dptree.hierarchy.domain import fingerprint
from pandas_dptree.ingest.contributions import leaf_totals
from pandas_dptree.verbs.domains import domain_of
from tests.helpers_cases import each
from tests.helpers_levels import LIBRARIES, ODD_TIMES, PRODUCTS, rng
from tests.strategies import Hostile, objects

VISITS = dpt.datasets.clinic_visits(2_000)
CLINICS = dpt.datasets.clinics()
REGIONS = CLINICS[["region"]].drop_duplicates()
MONTHS = dpt.calendar("date", ["year", "month"], start="2024-01-01", end="2025-06-30")
AGES = dpt.cut("age", [0, 18, 65, 120])
KINDS = dpt.mapping(
    pd.DataFrame({"part": ["north", "north", "south"], "region": ["Aldmark", "Corrow", "Estholm"]}),
    by=["part", "region"],
)
WITH_KEYS = VISITS.assign(
    **{
        "date_year": VISITS["date"].dt.year,
        "date_month": VISITS["date"].dt.strftime("%Y-%m"),
        "age_bin": pd.cut(VISITS["age"], [0, 18, 65, 120], right=False).map(
            lambda each: f"[{each.left}, {each.right}{']' if each.right == 120 else ')'}"
        ).astype(AGES.domain.labels[0].dtype),
        "age/3": VISITS["age"] // 16,
        "age/7": VISITS["age"],
        "region/1": VISITS["region"].str[:1],
        "region/2": VISITS["region"].str[:2],
        "part": VISITS["region"].map({"Aldmark": "north", "Corrow": "north", "Estholm": "south"}),
    }
)  # fmt: skip
AGE_BITS = dpt.prefixes("age", bits=[3, 7], notation="number")
INITIALS = dpt.prefixes("region", chars=[1, 2], alphabet="ABCDElorsu")
DAYS = (pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-05"))
SEXES = pd.DataFrame({"sex": ["f", "m"]})
COMPOSED = {
    "alone": (MONTHS, None),
    "listed": ([MONTHS], None),
    "below": (["region", MONTHS], REGIONS),
    "above": ([MONTHS, "region"], REGIONS),
    "between": (["region", AGES, "sex"], REGIONS.merge(SEXES, how="cross")),
    "several": ([KINDS, AGES, MONTHS], None),
    "observed": ([AGES, "region"], "observed"),
    "prefixes": (["region", AGE_BITS, "sex"], REGIONS.merge(SEXES, how="cross")),
    "several prefixes": ([INITIALS, AGE_BITS], None),
    "prefixes below": (["sex", MONTHS, INITIALS], SEXES),
    "early ends": ([AGES, "region", "district", "clinic"], dpt.datasets.clinics()),
}


RECORDS = WITH_KEYS.assign(sex=np.where(WITH_KEYS["person"] % 2, "f", "m"))
BOUNDING = [
    {"epsilon": 0.5, "privacy_unit": unit, "max_contributions": k} for unit, k in ((None, 1), ("person", 2))
]


@cache
def released_beforehand(how):
    """Release counts by keys that are columns, for each way to bound units."""
    by, domain = COMPOSED[how]
    full = domain_of(RECORDS, by, domain)
    places = pd.DataFrame(
        {
            name: label.to_series().reset_index(drop=True).reindex(codes).array
            for name, label, codes in zip(full.by, full.labels, full.path_codes(len(full.by)), strict=True)
        }
    )
    made = dpt.Domain.from_frame(places, by=full.by)
    return [
        dpt.tree_counts(RECORDS, list(full.by), domain=made, **options, rng=rng()) for options in BOUNDING
    ]


@pytest.mark.parametrize(
    ("how", "library"),
    [
        pytest.param(how, library, marks=[] if number in (0, 1 + place % 3) else pytest.mark.slow)
        for place, how in enumerate(COMPOSED)
        for number, library in enumerate(LIBRARIES)
    ],
)
@pytest.mark.filterwarnings("ignore:Mismatched null-like values:FutureWarning")  # pandas 2 has several
def test_the_release_is_that_of_keys_made_beforehand(how, library):
    """The same noise on the same counts: also where polars counts, and where units are bounded.

    By default in pandas and in one other library.
    """
    by, domain = COMPOSED[how]
    columns = ["person", "region", "district", "clinic", "date", "age", "cost", "sex"]
    native = LIBRARIES[library](RECORDS[columns])
    for options, plain in zip(BOUNDING, released_beforehand(how), strict=True):
        derived = dpt.tree_counts(native, by, domain=domain, **options, rng=rng())
        pd.testing.assert_frame_equal(derived, plain, check_dtype=False)


def test_all_verbs_take_derived_levels():
    by = ["region", MONTHS]
    counts = VISITS.dp.tree_counts(by, domain=REGIONS, epsilon=1e7, rng=rng())
    months = VISITS["date"].dt.strftime("%Y-%m").rename("date_month")
    years = VISITS["date"].dt.year.rename("date_year")
    inside = VISITS["date"] < "2025-07-01"
    exact = VISITS[inside].groupby(["region", years, months]).size()
    level = counts.dp.level("date_month")["count"]
    assert level.sum() == inside.sum()
    assert level[exact.index].tolist() == exact.tolist()
    sums = VISITS.dp.tree_sums(by, columns="cost", bounds=(0, 500), domain=REGIONS, epsilon=1e9, rng=rng())
    exact_sums = VISITS[inside].assign(cost=VISITS["cost"].clip(0, 500)).groupby("region")["cost"].sum()
    assert np.allclose(sums.dp.level("region")["cost"], exact_sums, atol=0.01)
    means = VISITS.dp.tree_means(AGES, columns="age", bounds=(0, 120), epsilon=1e9, rng=rng())
    ages = pd.cut(VISITS["age"], [0, 18, 65, 120], right=False)
    exact_means = VISITS.groupby(ages, observed=True)["age"].mean()
    assert np.allclose(means.dp.level("age_bin")["age"], exact_means, atol=0.01)
    cut = VISITS.dp.histogram("cost", bins=4, bounds=(0, 400), by=[AGES], epsilon=1e7, rng=rng())
    assert cut["count"].sum() == pytest.approx(2 * VISITS["cost"].notna().sum(), abs=5)
    plan = VISITS.dp.plan(by, domain=REGIONS, epsilon=1.0)
    pd.testing.assert_frame_equal(
        plan.release(VISITS, rng=rng()),
        VISITS.dp.tree_counts(by, domain=REGIONS, epsilon=1.0, rng=rng()),
    )
    factors = VISITS.dp.tree_counts(
        AGES, epsilon=1.0, delta=1e-6, mechanism=dpt.Multiplicative(alpha=0.5), rng=rng()
    )
    assert factors["level"].tolist() == ["total", "age_bin", "age_bin", "age_bin"]


def test_known_counts_are_named_by_the_derived_levels():
    known = {"date_year": pd.Series({2024: 1000, 2025: 700}).rename_axis("date_year")}
    counts = VISITS.dp.tree_counts(MONTHS, epsilon=1.0, known=known)
    assert counts.dp.level("date_year")["count"].tolist() == [1000, 700]
    assert counts["count"].iloc[0] == 1700


def test_a_serialized_plan_belongs_to_one_derivation():
    berlin, tokyo = (
        dpt.derived_domain(dpt.calendar("t", ["day"], start="2024-01-01", end="2024-01-31", timezone=zone))
        for zone in ("Europe/Berlin", "Asia/Tokyo")
    )
    assert fingerprint(berlin) != fingerprint(tokyo)
    written = dpt.plan(berlin, epsilon=1.0).to_dict()
    assert dpt.Plan.from_dict(written, berlin).level_names == ("total", "t_day")
    with pytest.raises(ArgumentError):
        dpt.Plan.from_dict(written, tokyo)


def test_sizes_of_domains():
    days = dpt.calendar("t", ["year", "month", "day"], start="1990-01-01", end="2000-12-31")
    assert dpt.derived_domain(days).tree.level_sizes == (1, 11, 132, 4018)
    squares = dpt.quadtree("y", "x", depth=6, bounds=((0, 1), (0, 1)))
    assert dpt.derived_domain(squares).tree.level_sizes == tuple(4**level for level in range(7))
    assert dpt.derived_domain([AGES, KINDS]).tree.level_sizes == (1, 3, 6, 9)
    order = dpt.derived_domain([KINDS, AGES])
    assert order.by == ("part", "region", "age_bin") and order.tree.level_sizes == (1, 2, 3, 9)


def test_impossible_leaves_stay_impossible():
    wards = pd.DataFrame({"ward": ["eye", "labour"], "closed": [False, True]})
    domain = dpt.Domain.from_frame(wards, by=["ward"], structural_zeros="closed")
    crossed = dpt.derived_domain([AGES, "ward"], domain)
    assert crossed.keys(2).iloc[crossed.structural_zeros]["ward"].tolist() == ["labour"] * 3
    frame = pd.DataFrame({"ward": ["eye", "labour"], "age": [20, 30]})
    assert leaf_totals(frame, crossed)[0].sum() == 1


def test_a_column_that_bears_the_name_of_a_key_is_not_read():
    frame = VISITS.assign(**{"date_month": "1990-01"})
    counts = frame.dp.tree_counts(MONTHS, epsilon=1e7, rng=rng())
    assert counts["count"].iloc[0] == (VISITS["date"] < "2025-07-01").sum()


def test_records_outside_are_dropped_before_the_bound():
    frame = pd.DataFrame({"t": pd.to_datetime(["1999-01-01"] * 50 + ["2000-06-01"]), "who": 1})
    year = dpt.calendar("t", ["year"], start="2000-01-01", end="2000-12-31")
    counts = frame.dp.tree_counts(year, epsilon=1e7, privacy_unit="who", max_contributions=1, rng=rng())
    assert counts["count"].tolist() == [1, 1]


TIMES = [value for value, _, _ in ODD_TIMES]
AGES_READ = [5, "17", 18.0, math.inf, None, "x", Hostile(), 10**400, True]
PLACES = st.tuples(st.integers(0, len(TIMES) - 1), st.integers(0, len(AGES_READ) - 1))


@given(places=st.lists(PLACES, min_size=1, max_size=8), drop=st.integers(0, 7))
def test_one_record_moves_one_leaf_by_one(places, drop):
    """Brute-force neighbours: without a record, each leaf has what it had, but for that record's own."""
    months = dpt.calendar("t", ["month"], start="2000-01-01", end="2000-12-31")
    domain = dpt.derived_domain(
        [months, dpt.cut("age", [0, 18, 65]), dpt.prefixes("id", bits=[4], width=5, notation="number")]
    )
    rows = [(TIMES[time], AGES_READ[age]) for time, age in places]
    drop %= len(rows)

    def counted(kept):
        times, ages = (objects(list(column)) for column in (list(zip(*kept, strict=True)) or [[], []]))
        frame = pd.DataFrame({"t": times, "age": ages, "id": ages})
        return leaf_totals(frame, domain)[0]

    moved = counted(rows) - counted(rows[:drop] + rows[drop + 1 :])
    assert moved.tolist() == counted([rows[drop]]).tolist()
    assert 0 <= moved.sum() <= 1


ZONED = pd.Series(pd.to_datetime(["2000-01-01T00:00Z"]))
DATES = {"start": "2000-01-01", "end": "2000-12-31"}
MISTAKES = [
    (lambda: dpt.calendar("t", ["year", "iso_week"], **DATES), "must be nested"),
    (lambda: dpt.calendar("t", ["month", "iso_week"], **DATES), "must be nested"),
    (lambda: dpt.calendar("t", ["month", "year"], **DATES), "must be nested"),
    (lambda: dpt.calendar("t", ["month", "month"], **DATES), "must be nested"),
    (lambda: dpt.calendar("t", ["minute"], **DATES), "must list units of time, not 'minute'"),
    (lambda: dpt.calendar("t", ["week"], **DATES), r"'week'\.\n.* mean weekday or iso_week\?$"),
    (lambda: dpt.calendar("t", 5, **DATES), "must list units of time, not 5"),
    (lambda: dpt.calendar("t", [], **DATES), "must list units"),
    (lambda: dpt.calendar(None, ["year"], **DATES), "must name a column"),
    (lambda: dpt.calendar("t", ["year"], start="2000-01-01", end="1999-01-01"), "must not be before"),
    (lambda: dpt.calendar("t", ["year"], start="1/1/2000", end="2000-12-31"), "must be a date"),
    (lambda: dpt.calendar("t", ["year"], start=2000, end="2000-12-31"), "must be a date"),
    (lambda: dpt.calendar("t", ["year"], start=pd.NaT, end="2000-12-31"), "must be a date"),
    (lambda: dpt.calendar("t", ["year"], start="2000-01-01", end=pd.Timestamp("2000-12-31T12")), "be a date"),
    (lambda: dpt.calendar("t", ["year"], start=ZONED[0], end="2000-12-31"), "must be a date"),
    (lambda: dpt.calendar("t", ["year"], **DATES, timezone="Mars/Olympus"), "`timezone` is unknown"),
    (lambda: dpt.calendar("t", ["year"], **DATES, timezone=1), "`timezone` is unknown"),
    (lambda: dpt.calendar("t", ["year"], **DATES, format="%d.%m."), "must contain the year"),
    (lambda: dpt.calendar("t", ["year"], **DATES, format="%Q"), "must contain the year"),
    (lambda: dpt.calendar("t", ["year"], **DATES, format="%Y %Y"), "must contain the year"),
    (lambda: dpt.calendar("t", ["year"], **DATES, format="%Y-%-m"), "must contain the year"),
    (lambda: dpt.calendar("t", ["year"], **DATES, format=5), "must contain the year"),
    (lambda: dpt.calendar("t", ["year"], **DATES, format="%Y%z"), "has a time zone, which does not fit"),
    (lambda: dpt.calendar("t", ["year"], **DATES, timezone="UTC", format="%Y"), "has no time zone"),
    (lambda: dpt.cut("x"), "only one"),
    (lambda: dpt.cut("x", [-math.inf, 0, math.inf]), "must be finite"),
    (lambda: dpt.cut("x", width=10**400, bounds=(0, 120)), "into equal parts"),
    (lambda: dpt.cut("x", width=Fraction(1, 10**400), bounds=(0, 120)), "into equal parts"),
    (lambda: dpt.cut("x", levels={"a": [0, 1, 1 + 1e-12, 2], "b": [0, 1, 2]}), "is not an end there"),
    (lambda: dpt.mapping(5, ["kind"]), "`table` must be a table that can be read, not an int"),
    (lambda: dpt.mapping(pd.DataFrame({"kind": [object()]}), ["kind"]), "`table` has labels of a type"),
    (lambda: dpt.cut("x", [0, 1], width=1), "only one"),
    (lambda: dpt.cut(["x"], [0, 1]), "must name a column"),
    (lambda: dpt.cut("x", [0, 2, 1]), "edges in increasing order"),
    (lambda: dpt.cut("x", [0, 2], bounds=(0, 2)), "cannot be combined with a list of ends"),
    (lambda: dpt.cut("x", width=5), "must be given if no ends are listed"),
    (lambda: dpt.cut("x", width=7, bounds=(0, 120)), "must cut 0 to 120 into equal parts"),
    (lambda: dpt.cut("x", width=0, bounds=(0, 120)), "into equal parts"),
    (lambda: dpt.cut("x", width="5", bounds=(0, 120)), "into equal parts"),
    (lambda: dpt.cut("x", levels=[0, 1]), "must map names"),
    (lambda: dpt.cut("x", levels={}), "must map names"),
    (lambda: dpt.cut("x", levels={"a": [0, 5, 9], "b": [0, 4, 9]}), "5 is not an end there"),
    (lambda: dpt.cut("x", levels={"a": [0, 5, 9], "b": [0, 5, 10]}), "9 is not an end there"),
    (lambda: dpt.cut("x", levels={"a": [0, 5], "b": [-1, 0, 5]}), "their first or last ends differ"),
    (lambda: dpt.cut("x", pd.to_datetime(["2000-01-01", "2001-01-01"])), "must be numbers"),
    (lambda: dpt.mapping(PRODUCTS, ["kind", "colour"]), "lacks the columns: 'colour'"),
    (lambda: dpt.mapping(PRODUCTS, ["shelf", "kind"]), "`table` lists the same leaf more than once"),
    (lambda: dpt.mapping(PRODUCTS.assign(kind=["a", "b", None, "c"]), ["kind", "product"]), "first key"),
    (lambda: dpt.mapping(PRODUCTS.assign(product=["a", "b", "b", "c"]), ["kind", "product"]), "t' twice"),
    (lambda: dpt.mapping(PRODUCTS.assign(product=["a", "b", None, "c"]), ["kind", "product"]), "inner node"),
    (lambda: dpt.quadtree("y", "y", depth=2, bounds=((0, 1), (0, 1))), "the same column as `y`"),
    (lambda: dpt.quadtree("y", "x", depth=14, bounds=((0, 1), (0, 1))), "from 1 to 13, not 14"),
    (lambda: dpt.quadtree("y", "x", depth=2, bounds=(0, 1)), "pair of values"),
    (lambda: dpt.quadtree("y", "x", depth=2, bounds=0), "pair of pairs"),
    (lambda: dpt.quadtree("y", "x", depth=2, bounds=((1, 0), (0, 1))), "lower one first"),
    (lambda: dpt.quadtree("y", "x", depth=2, bounds=((0, 1), (0, 1)), name=1), "must be text"),
    (lambda: dpt.quadtree("y", "x", depth=2, bounds=(DAYS, (0, 1))), "`bounds` must be numbers"),
    (lambda: dpt.quadtree("y", "x", depth=2, bounds=((0, 1), DAYS)), "`bounds` must be numbers"),
    (lambda: dpt.quadtree("y", "x", depth=2, bounds=((0, 1), (0, 1))).square("012"), "1 to 2 digits"),
    (lambda: dpt.derived_domain([MONTHS, MONTHS]), "names columns twice: 'date_year', 'date_month'"),
    (
        lambda: dpt.derived_domain([dpt.calendar("t", [unit], **DATES) for unit in ("quarter", "month")]),
        r"derives levels more than once.*: 't'\.\nHint: .*make them in one call, such as calendar\(",
    ),
    (
        lambda: VISITS.dp.tree_counts(
            ["region", dpt.cut("age", [0, 18, 99]), dpt.cut("age", levels={"band": [0, 9, 99]})],
            domain=REGIONS, epsilon=1.0,
        ),
        "derives levels more than once.*: 'age'",
    ),
    (
        lambda: dpt.derived_domain(
            [dpt.prefixes("product", bits=[2], notation="number"), dpt.mapping(PRODUCTS, ["kind", "product"])]
        ),
        "derives levels more than once.*: 'product'",
    ),
    (lambda: dpt.derived_domain(dpt.binary("id", bits=4)), "an implicit tree of prefixes"),
    (lambda: VISITS.dp.tree_sums(AGE_BITS, columns="cost", bounds=(0, 9), epsilon=1.0), "an implicit tree"),
    (lambda: dpt.prefixes("id", bits=[32], notation="ipv4").paths(), "leaves, all prefixes of 'id'"),
    (lambda: dpt.derived_domain([AGES, dpt.prefixes("id", bits=[64], notation="number")]), "about 10"),
    (
        lambda: dpt.derived_domain(["region", dpt.binary("id", bits=30)], REGIONS),
        "all combinations of 6 and 1,073,741,824",
    ),
    (lambda: dpt.derived_domain(["region", MONTHS]), r"keys \['region'\]; derived levels define their own"),
    (lambda: dpt.derived_domain(MONTHS, REGIONS), "cannot be given if all levels are derived"),
    (lambda: dpt.derived_domain(["region", "district", "clinic", AGES], CLINICS), "above a derived level"),
    (lambda: dpt.derived_domain(["region", MONTHS], dpt.derived_domain(AGES)), "has the keys"),
    (lambda: dpt.derived_domain(["age_bin", MONTHS], dpt.derived_domain(AGES)), "has the keys"),
    (
        lambda: VISITS.dp.tree_counts(["region", MONTHS], epsilon=1.0),
        r"`domain` must be given for the keys \['region'\]; derived levels define their own keys",
    ),
    (lambda: VISITS.dp.tree_counts([MONTHS], epsilon=1.0, domain="observed"), "cannot be given if all"),
    (lambda: VISITS.dp.tree_counts([MONTHS], epsilon=1.0, domain=dpt.derived_domain(AGES)), "given if all"),
    (lambda: VISITS.drop(columns="date").dp.tree_counts(MONTHS, epsilon=1.0), "lacks the columns: 'date'"),
    (
        lambda: VISITS.dp.tree_counts(
            dpt.calendar("date", ["year", "month"], start="2024-01-01", end="2025-06-30", timezone="UTC"),
            domain=dpt.derived_domain(MONTHS), epsilon=1.0,
        ),
        "different derived levels",
    ),
]  # fmt: skip


# --- mistakes --------------------------------------------------------------------------------------------


@each("call, message", MISTAKES)
def test_mistakes_are_refused_with_a_hint(call, message):
    with pytest.raises(ArgumentError, match=message) as raised:
        call()
    assert raised.value.hint


def test_too_many_leaves_are_refused():
    hours = dpt.calendar("t", ["hour"], start="2000-01-01", end="2000-12-31")
    squares = dpt.quadtree("y", "x", depth=7, bounds=((0, 1), (0, 1)))
    with pytest.raises(DomainError, match="143,917,056 leaves"):
        dpt.derived_domain([hours, squares])


@pytest.mark.parametrize("library", LIBRARIES)
@each(
    "levels, column, message",
    [
        (dpt.calendar("v", ["year"], **DATES), pd.Series([1, 2]), "holds numbers, not times"),
        (dpt.calendar("v", ["year"], **DATES), pd.Series([True]), "holds booleans, not times"),
        (dpt.calendar("v", ["year"], **DATES), ZONED, "pass a time zone to `calendar`"),
        (
            dpt.calendar("v", ["year"], **DATES, timezone="UTC"),
            ZONED.dt.tz_localize(None),
            "leave `timezone`",
        ),
        (dpt.cut("v", [0, 1]), ZONED, "no numbers in the columns"),
        (
            [dpt.prefixes("v", bits=[4], notation="number")],
            pd.Series(["5"], dtype="string"),
            "a different type than the tree",
        ),
        ([dpt.prefixes("v", chars=[1])], pd.Series([5]), "a different type than the tree"),
        (dpt.quadtree("v", "w", depth=1, bounds=((0, 1), (0, 1))), ZONED, "no numbers in the columns"),
        (
            dpt.mapping(PRODUCTS.rename(columns={"product": "v"}).astype({"v": "string"}), ["kind", "v"]),
            pd.Series([1]),
            "a different type",
        ),
    ],
)
def test_types_that_cannot_be_read_are_refused(library, levels, column, message):
    frame = LIBRARIES[library](pd.DataFrame({"v": column, "w": 0.5}))
    with pytest.raises(ColumnsError, match=message):
        dpt.tree_counts(frame, levels, epsilon=1.0)

"""What becomes of records of crossed hierarchies, axis by axis, against brute force."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pandas_dptree as dpt
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.values import UNKNOWN, key_form
from pandas_dptree.ingest.contributions import LeafTally, leaf_totals
from pandas_dptree.ingest.frames import Records
from pandas_dptree.plans.secret_check import checked
from pandas_dptree.privacy.quantity import COUNT, Quantity
from tests.helpers_crossed_records import crossed
from tests.helpers_random import fixed_words
from tests.helpers_reading import divided
from tests.strategies import fewer

X = Quantity.of("x", (0, 5), 1)


def check_of(frame, domain, quantities=(COUNT,), **bounding):
    """Check records as a plan for the domain does."""
    tally = LeafTally(domain, tuple(quantities))
    columns = [*tally.columns, *([bounding["privacy_unit"]] if "privacy_unit" in bounding else [])]
    usual = {"max_contributions": 1, "random_words": fixed_words()}
    return checked(Records(frame, columns), tally, usual | bounding, domain.level_names)


def brute(rows, axes):
    """What becomes of rows, dicts by column, one after the other."""
    found = Counter()
    found["read"], found["level", "total"] = len(rows), len(rows)
    counted = [True] * len(rows)
    for axis in axes:
        listed = {tuple(map(key_form, path)) for path in axis.paths}
        zeros = {tuple(map(key_form, path)) for path in axis.zeros}
        labels = [{path[level] for path in listed} - {None} for level in range(len(axis.by))]
        for place, row in enumerate(rows):
            path = tuple(key_form(row[name]) for name in axis.by)
            depth = max(n for n in range(len(path) + 1) if any(path[:n] == each[:n] for each in listed))
            for name in axis.by[:depth]:
                found["level", name] += 1
            if not counted[place]:
                continue
            counted[place] = path in listed - zeros
            gone = [name for name, form in zip(axis.by, path[: depth + 1], strict=False) if form is None]
            if path in zeros:
                found["the keys are a structural zero", axis.by[-1]] += 1
            elif depth < len(path) and gone:
                found["the key is missing", gone[0]] += 1
            elif depth < len(path) and (path[depth] == UNKNOWN or path[depth] not in labels[depth]):
                found["the key is not in the domain", axis.by[depth]] += 1
                found["key", axis.by[depth], path[depth]] += 1
            elif depth < len(path):
                found["the key is in the domain, but not below its parent", axis.by[depth]] += 1
    found["counted"] = sum(counted)
    return +found


def numbers_of(check):
    """What a check says, in the words of `brute`."""
    found = Counter({"read": check.read, "counted": check.counted})
    found.update({(reason, column): rows for reason, column, rows in check.dropped.itertuples(index=False)})
    found.update({("level", level): rows for level, rows in check.levels.itertuples(index=False)})
    for column, value, rows, *_ in check.keys.itertuples(index=False):
        found["key", column, key_form(value)] += rows
    return +found


@fewer(3)
@given(drawn=crossed(), batch=st.integers(1, 9))
def test_numbers_are_those_of_brute_force(drawn, batch):
    axes, domain, frame = drawn
    with divided(batch=batch):
        check = check_of(frame, domain)
        counts = leaf_totals(frame, domain, max_contributions=1)[0]
    assert numbers_of(check) == brute(frame.to_dict("records"), axes)
    assert check.levels["level"].tolist() == ["total", *domain.by]
    assert check.counted == counts.sum() and check.counted + check.dropped["rows"].sum() == check.read


PLACES = Domain.from_frame(
    pd.DataFrame({"state": ["CA", "WA"], "county": ["Kern", "King"]}), by=["state", "county"]
)
DAYS = dpt.calendar("date", ["year", "month"], start="2024-01-01", end="2024-12-31")
WARDS = Domain.from_frame(
    pd.DataFrame({"ward": ["eye", "ear"], "never": [False, True]}), by=["ward"], structural_zeros="never"
)
DOMAIN = dpt.cross(place=PLACES, when=DAYS, ward=WARDS)
RECORDS = pd.DataFrame(
    [
        ("CA", "Kern", "2024-02-03", "eye", 1, "a"),
        ("CA", "Kern", "2024-02-03", "eye", 9, "a"),
        ("CA", "Kern", "2024-03-03", "eye", None, "a"),
        ("ca", "Kern", "2023-02-03", "eye", None, "a"),  # the first axis is the reason
        ("CA", "King", "2024-02-03", "eye", 1, "a"),
        ("WA", "King", "2023-02-03", None, 1, "a"),
        ("WA", "King", None, "ear", 1, "a"),
        ("WA", "King", "2024-02-03", "ear", 1, "a"),
        ("WA", "King", "2024-02-03", "Eye ", 1, "a"),
        ("WA", "King", "2024-02-03", "eye", 1, None),
    ],
    columns=["state", "county", "date", "ward", "x", "person"],
).assign(date=lambda frame: pd.to_datetime(frame["date"]))  # fmt: skip


def test_reasons_name_columns_of_the_first_axis_without_a_leaf():
    check = check_of(RECORDS, DOMAIN, [COUNT, X], privacy_unit="person", max_contributions=3)
    assert [*check.dropped.itertuples(index=False, name=None)] == [
        ("the key is missing", "date", 1),
        ("the key is not in the domain", "state", 1),
        ("the key is not in the domain", "date", 1),
        ("the key is not in the domain", "ward", 1),
        ("the key is in the domain, but not below its parent", "county", 1),
        ("the keys are a structural zero", "ward", 1),
        ("the value is missing", "x", 1),
        ("the privacy unit is missing, or cannot be one", "person", 1),
    ]
    assert check.counted == 2 and check.clipped[["below", "above", "missing"]].values.tolist() == [[0, 1, 1]]
    keys = check.keys[check.keys["column"] != "date"].drop(columns="rows")
    assert keys.values.tolist() == [
        ["state", "ca", "CA", "case"], ["ward", "Eye ", "eye", "blanks, case"]
    ]  # fmt: skip
    levels = dict(check.levels.itertuples(index=False, name=None))
    assert levels == {"total": 10, "state": 9, "county": 8, "date_year": 7, "date_month": 7, "ward": 8}


@pytest.mark.parametrize("most", [1, 2])
def test_rows_that_units_keep_in_leaf_cells(most):
    rows = pd.concat([RECORDS[:3]] * 2).assign(x=1.0, person=list("aabbaa"))
    caps = (*[None] * DOMAIN.tree.depth, most)
    check = check_of(rows, DOMAIN, privacy_unit="person", max_contributions=3, caps=caps)
    kept = check.kept_per_leaf[check.kept_per_leaf["max_per_leaf"] == most]
    assert kept["rows"].tolist() == check.kept["rows"].tolist()
    for k, rows_kept in check.kept.itertuples(index=False):
        bounding = {
            "privacy_unit": "person",
            "max_contributions": k,
            "caps": caps,
            "random_words": fixed_words(),
        }
        assert rows_kept == leaf_totals(rows, DOMAIN, **bounding)[0].sum()
    assert np.isin(3, check.kept["max_contributions"]) and check.counted == 6

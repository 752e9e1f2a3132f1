"""Classes of reliability: their limits, known numbers, zeros and missing ones."""

import pandas as pd
import pytest

import pandas_dptree as dpt
from tests.helpers_derived import DOMAIN, KEYS, RECORDS, counts
from tests.helpers_random import rng


def table(*numbers):
    values, errors = zip(*numbers, strict=True)
    places = [None, *"abcdefgh"[: len(numbers) - 1]]
    levels = ["total" if place is None else "place" for place in places]
    return pd.DataFrame({"level": levels, "place": places, "count": values, "std_error": errors})


def letters(graded):
    return graded["count"].where(graded["count"].notna(), "missing").tolist()


GRADED = [(100, 4.9), (100, 5), (100, 14.9), (100, 15), (-100, 25), (100, 50), (0, 1), (7, 0), (None, 1)]


def test_the_limits_of_the_classes():
    of_canada = table(*GRADED).dp.reliability()
    assert letters(of_canada) == ["A", "B", "C", "D", "E", "F", "F", "=", "missing"]
    stars = table(*GRADED).dp.reliability(classes="abs")
    assert letters(stars) == ["", "", "", "", "*", "**", "**", "=", "missing"]
    own = table(*GRADED).dp.reliability(classes={"good": 0.1, "poor": 9.0})
    assert letters(own) == ["good", "good", *["poor"] * 5, "=", "missing"]


def test_some_rows_are_graded_like_all():
    whole = counts()
    some = whole[whole["level"] == "state"]
    assert some.dp.reliability()["count"].tolist() == whole.dp.reliability()["count"][some.index].tolist()


@pytest.mark.parametrize(
    "classes", ["ons", {}, {"a": "b", "c": 1}, {"a": 0.2, "b": 0.1, "c": 1}, {1: 1}, None]
)
def test_other_classes_are_refused(classes):
    with pytest.raises(dpt.ArgumentError, match="classes"):
        counts().dp.reliability(classes=classes)


def test_error_bounds_have_no_classes():
    relative = dpt.Multiplicative(alpha=0.25)
    counted = RECORDS.dp.tree_counts(
        KEYS, domain=DOMAIN, epsilon=1.0, delta=1e-6, mechanism=relative, rng=rng()
    )
    with pytest.raises(dpt.ArgumentError, match="error bounds"):
        counted.dp.reliability()

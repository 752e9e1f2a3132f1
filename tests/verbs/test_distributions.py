"""The verbs on distributions: how they are called, and mistakes."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError, ColumnsError
from tests.helpers_cases import each
from tests.helpers_distribution import DOMAIN, GOOD, PLACES, VERBS, plan, small
from tests.helpers_random import rng

NO_NOISE = {"epsilon": 1e6}


def test_a_release_by_a_plan_is_that_of_the_verb():
    frame = small([(0, 1), (1, 2)])
    planned = plan(4, epsilon=1.0, domain=DOMAIN)
    by_plan = planned.release(frame, rng=rng(4)).cdf()
    by_verb = dpt.cdf(
        frame, "x", bounds=(0, 4), bins=4, epsilon=1.0, by=["a", "b"], domain=DOMAIN, rng=rng(4)
    )
    pd.testing.assert_frame_equal(by_plan, by_verb)
    assert repr(planned.release(frame)) == "Distribution of 5 groups of 'x' in 4 bins"


def test_a_frame_plans_what_the_verb_releases():
    frame, options = small([(0, 1), (1, 2)]), {"bounds": (0, 4), "bins": 4, "epsilon": 1.0}
    groups = {"by": ["a", "b"], "domain": PLACES}
    for where in ({}, groups, {"by": [dpt.cut("x", [0, 2, 4])]}):
        planned = frame.drop(columns="a").dp if not where else frame.dp
        planned = planned.plan_distribution("x", **options, **where)
        by_verb = dpt.cdf(frame, "x", **options, **where, rng=rng(4))
        pd.testing.assert_frame_equal(frame.dp.release(planned, rng=rng(4)).cdf(), by_verb)
    assert repr(frame.dp.plan_distribution("x", **options)) == repr(plan(4, epsilon=1.0))
    assert repr(frame.iloc[:0].dp.plan_distribution("x", **options, **groups)) == repr(
        plan(4, epsilon=1.0, domain=DOMAIN)
    )
    assert len(frame.dp.plan_distribution("x", **options, by=["a"], domain="observed").domain.keys(1)) == 1
    for wrong in ({"domain": PLACES}, {"by": ["a", "b"]}):
        with pytest.raises(ArgumentError, match="Hint: ") as error:
            frame.dp.plan_distribution("x", **options, **wrong)
        assert error.value.argument == "domain"


MISTAKES = [
    ({"bounds": None}, "bounds"),
    ({"bounds": (4, 0)}, "bounds"),
    ({"bins": 0}, "bins"),
    ({"bins": [0, 1, 2]}, "bounds"),
    ({"bins": 34 * 10**6, "by": ["a", "b"], "domain": PLACES}, "bins"),
    ({"epsilon": None}, "epsilon"),
    ({"epsilon": -1}, "epsilon"),
    ({"epsilon": 1e-13}, "epsilon"),
    ({"epsilon": "1"}, "epsilon"),
    ({"rho": 0.1}, "rho"),
    ({"delta": 2}, "delta"),
    ({"neighbors": "none"}, "neighbors"),
    ({"mechanism": "cauchy"}, "mechanism"),
    ({"mechanism": ["laplace"]}, "mechanism"),
    ({"mechanism": "gaussian"}, "mechanism"),
    ({"strategy": "best"}, "strategy"),
    ({"strategy": "factorization"}, "strategy"),
    ({"strategy": "factorization", "epsilon": None, "rho": 1, "mechanism": "laplace"}, "strategy"),
    ({"strategy": None}, "strategy"),
    ({"strategy": []}, "strategy"),
    ({"strategy": [2]}, "strategy"),
    ({"strategy": [2.0, 2]}, "strategy"),
    ({"strategy": [True, 4]}, "strategy"),
    ({"strategy": [0, 4]}, "strategy"),
    ({"strategy": [2] * 64}, "strategy"),
    ({"strategy": np.ones((2, 2), dtype=int)}, "strategy"),
    ({"domain": PLACES}, "domain"),
    ({"by": ["a", "b"]}, "domain"),
    ({"by": {"a"}, "domain": PLACES}, "by"),
    ({"by": ["a", "x"], "domain": PLACES.assign(x=[1, 2, 3])}, "by"),
    ({"by": ["a", "q"], "domain": PLACES.assign(q=[1, 2, 3])}, "by"),
    ({"by": ["c"], "domain": PLACES}, "domain"),
    ({"privacy_unit": "x"}, "privacy_unit"),
    ({"privacy_unit": ["a"]}, "privacy_unit"),
    ({"privacy_unit": "nobody", "max_contributions": 1}, "frame"),
    ({"privacy_unit": "nobody"}, "max_contributions"),
    ({"max_contributions": "2"}, "max_contributions"),
    ({"max_contributions": 2}, "max_contributions"),
    ({"max_contributions": 0, "privacy_unit": "a"}, "max_contributions"),
    ({"known": 5}, "known"),
    ({"known": {}}, "known"),
    ({"known": {"total": -1}}, "known"),
    ({"known": {"total": 1.5}}, "known"),
    ({"known": {"total": True}}, "known"),
    ({"known": {"total": 2**50}}, "known"),
    ({"known": {"a": {"s": 3}}}, "known"),
    ({"known": {"nobody": 5}, "by": ["a", "b"], "domain": PLACES}, "known"),
    ({"known": {"total": -1}, "by": ["a", "b"], "domain": PLACES}, "known"),
    ({"rng": 0}, "rng"),
    ({"column": "y"}, "frame"),
    ({"column": "t"}, "frame"),
    ({"column": None}, "column"),
    ({"column": ["x"]}, "column"),
    ({"column": "level", "by": ["a", "b"], "domain": PLACES}, "column"),
    ({"column": "count", "by": ["a", "b"], "domain": PLACES}, "column"),
    ({"frame": [1, 2]}, "frame"),
    ({"column": "level", "bounds": (pd.Timestamp(0), pd.Timestamp(9))}, "frame"),
]


@each(("mistake", "argument"), MISTAKES)
@pytest.mark.parametrize("verb", VERBS)
def test_mistakes_are_named(verb, mistake, argument):
    frame = small([(0, 1), (1, 2)]).assign(t=pd.Timestamp(0), level=1, count=2)
    options = {"frame": frame, "column": "x", **GOOD, **mistake}
    with pytest.raises(ArgumentError, match="Hint: ") as error:
        VERBS[verb](options.pop("frame"), options.pop("column"), **options)
    if (
        verb == "range_counts"
        and isinstance(options["bounds"], tuple)
        and options["bounds"][1] == pd.Timestamp(9)
    ):
        argument = "ranges"  # numbers, which no bins of times have: refused before the records are read
    assert error.value.argument == argument
    assert len(error.value.hint) > 10


@each(
    "q", [-0.1, 1.1, math.nan, True, np.True_, "0.5", None, [], [[0.5]], [[0.5], [0.1, 0.2]], {0.5}, [0.5,
    None], [0.5, True],
          50, np.array([[0.5]]), pd.Timedelta(0), np.array([1]).view("m8")[0]],
)  # fmt: skip
def test_invalid_parts(q):
    with pytest.raises(ArgumentError, match="numbers from 0 to 1") as error:
        dpt.quantiles(small([(0, 1)]), "x", q, **GOOD)
    assert error.value.argument == "q"


@each("q", [0.5, 0, 1, np.float32(0.5), [0.5, 1], (0, 0.5), np.array([0.1]), pd.Series([0.5, 0.1])])
def test_parts_of_any_row(q):
    table = dpt.quantiles(small([(0, 1)]), "x", q, **GOOD)
    assert table.index.tolist() == sorted(np.atleast_1d(np.array(q, dtype=float)).tolist())


@each("confidence", [0, 1, -1, 95, True, "0.9", math.nan, [0.9], 0.9999])
def test_invalid_confidences(confidence):
    for verb in ("cdf", "quantiles"):
        with pytest.raises(ArgumentError, match="Hint: for example") as error:
            VERBS[verb](small([(0, 1)]), "x", **GOOD, confidence=confidence)
        assert error.value.argument == "confidence"


@each(
    "ranges", [[], None, 5, "ab", (0, 4), [5], [(1, 2, 3)], [(2, 1)], [(1, 1)], [(0, 2.5)], [(-1, 4)], [(0,
    5)], [("0", "4")],
               ["04"], [(0, math.nan)], [(0, math.inf)], [(0, None)], [(pd.Timestamp(0), pd.Timestamp(4))],
               [(0, 1), 2],
               np.array(3), [pd.Interval(0, 1)]],
)  # fmt: skip
def test_invalid_ranges(ranges):
    with pytest.raises(ArgumentError, match="Hint: ") as error:
        dpt.range_counts(small([(0, 1)]), "x", ranges, **GOOD)
    assert error.value.argument == "ranges"


def test_ranges_of_any_row():
    for ranges in (
        [(0, 2), (1, 4)],
        ([0, 2], [1, 4]),
        np.array([[0, 2], [1, 4]]),
        zip((0, 1), (2, 4), strict=True),
    ):
        table = dpt.range_counts(small([(0, 1), (0, 3)]), "x", ranges, bounds=(0, 4), bins=4, **NO_NOISE)
        assert table["count"].tolist() == [1, 2]
        assert table.index.tolist() == [pd.Interval(0, 2, closed="left"), pd.Interval(1, 4, closed="left")]


def test_errors_of_columns_are_errors_of_arguments():
    with pytest.raises(ColumnsError, match=r"lacks the columns: 'y'\."):
        dpt.cdf(small([]), "y", **GOOD)
    with pytest.raises(ArgumentError, match="must be a Domain, not a DataFrame"):
        plan(4, epsilon=1, domain=PLACES)


def test_a_release_can_be_kept():
    """The budget is spent once: what came of it can be stored, and more tables be made another day."""
    released = plan(20, epsilon=1, domain=DOMAIN).release(
        PLACES.assign(x=1.5, who=1), rng=np.random.default_rng(3)
    )
    kept = pickle.loads(pickle.dumps(released))
    for table in ("cdf", "histogram"):
        pd.testing.assert_frame_equal(getattr(kept, table)(), getattr(released, table)())
    pd.testing.assert_frame_equal(kept.quantiles([0.1, 0.5]), released.quantiles([0.1, 0.5]))

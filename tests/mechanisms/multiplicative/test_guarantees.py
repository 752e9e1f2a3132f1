"""Guarantees that make no sense are refused."""

import json
import math

import numpy as np
import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError
from tests.helpers_cases import each
from tests.helpers_privacy import LOSS


@each(
    "options, argument",
    [
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": 1.0}, "alpha"),
        ({"alpha": math.nan}, "alpha"),
        ({"alpha": "a"}, "alpha"),
        ({"threshold": 0.5}, "threshold"),
        ({"threshold": math.inf}, "threshold"),
        ({"threshold": True}, "threshold"),
        ({"threshold": 10**400}, "threshold"),
        ({"alpha": None}, "alpha"),
        ({"failure_probability": 0.0}, "failure_probability"),
        ({"failure_probability": 0.5}, "failure_probability"),
        ({"calibration": "rough"}, "calibration"),
        ({"calibration": np.array(["exact"])}, "calibration"),
        ({"clip": 1}, "clip"),
        ({"clip": True, "threshold": 1e6}, "threshold"),
    ],
)
def test_guarantees_that_make_no_sense_are_refused(options, argument):
    with pytest.raises(ArgumentError, match=f"`{argument}`"):
        dpt.Multiplicative(**{"alpha": 0.25, **options})


@each("number", [np.float16, np.float32, np.float64, np.longdouble])
def test_numbers_of_any_precision_are_taken_for_floats(number):
    wish = dpt.Multiplicative(
        alpha=number(0.25), failure_probability=number(0.125), threshold=number(2.0**15)
    )
    assert wish == dpt.Multiplicative(alpha=0.25, failure_probability=0.125, threshold=2**15)
    assert {type(wish.alpha), type(wish.failure_probability), type(wish.threshold)} == {float}
    plan = dpt.plan(dpt.Tree.from_branching([2]), **LOSS, max_contributions=np.int64(2), mechanism=wish)
    table = plan.release(np.array([1, 2]))
    assert json.loads(json.dumps(table.attrs["dp"]))["max_contributions"] == 2

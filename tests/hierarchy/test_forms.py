"""Canonical forms in arrays."""

import pickle

import numpy as np
import pytest

from pandas_dptree.hierarchy.forms import ArrayForms, blocks
from tests.helpers_cases import each


def texts(*values):
    return pytest.importorskip("pyarrow").array(values, type="large_string")


CASES = {
    "whole": (lambda: np.array([3, 5, -8]), (3, 5, -8)),
    "unsigned": (lambda: np.array([0, 2**64 - 1], dtype=np.uint64), (0, 2**64 - 1)),
    "float": (lambda: np.array([0.5, np.inf], dtype=np.float32), (0.5, np.inf)),
    "text": (lambda: texts("", "a\0b", "Zürich"), ("", "a\0b", "Zürich")),
    "none": (lambda: np.array([], dtype=np.int64), ()),
}


@pytest.mark.parametrize("make, expected", CASES.values(), ids=list(CASES))
def test_they_are_a_sequence_like_a_tuple(make, expected):
    forms = ArrayForms(make())
    assert len(forms) == len(expected)
    assert tuple(forms) == expected and list(map(type, forms)) == list(map(type, expected))
    assert [forms[place] for place in range(-len(forms), len(forms))] == [*expected, *expected]
    assert forms == expected and forms == list(expected) and not forms == (*expected, "more")
    assert forms[1:] == expected[1:] and forms[::-1] == expected[::-1]
    assert all(form in forms for form in expected)
    assert ("unknown",) not in forms and "nowhere" not in forms and None not in forms
    assert pickle.loads(pickle.dumps(forms)) == forms
    with pytest.raises(IndexError):
        forms[len(forms)]


def test_forms_differ_from_other_forms_and_other_objects():
    forms = ArrayForms(np.array([1, 2]))
    assert forms != (1, 3) and forms != ArrayForms(np.array([2, 1])) and forms != 1
    assert repr(forms) == "ArrayForms(array([1, 2]))"


@each("n", [0, 1, 2**16, 2**16 + 1, 3 * 2**16])
def test_blocks_and_iteration_cover_all_forms(n):
    forms = ArrayForms(np.arange(n))
    assert [form for block in blocks(forms) for form in block] == list(forms) == list(range(n))
    assert [form for block in blocks(tuple(range(n))) for form in block] == list(range(n))

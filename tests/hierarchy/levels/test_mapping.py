"""Levels from a public table: a mapping is a merge."""

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError
from pandas_dptree.ingest.contributions import leaf_totals
from pandas_dptree.verbs.domains import domain_of
from tests.helpers_levels import LIBRARIES, PRODUCTS, leaf_keys, rng
from tests.strategies import Hostile, objects


def test_a_mapping_is_a_merge():
    frame = pd.DataFrame(
        {"product": rng().choice(["pear", "kiwi", "saw", "axe", "gun", None], 200), "kind": "?"}
    )
    by = ["kind", "shelf", "product"]
    found = leaf_keys(frame, dpt.mapping(PRODUCTS, by))
    expected = frame[["product"]].dropna().merge(PRODUCTS, on="product")[by]
    assert found.values.tolist() == expected.values.tolist()


def test_another_table_is_another_mapping():
    tables = [pd.DataFrame({"kind": kinds, "code": [10, 20]}) for kinds in (["a", "b"], ["b", "a"])]
    first, second = (dpt.mapping(table, ["kind", "code"]) for table in tables)
    assert (
        first.definition
        == dpt.mapping(tables[0].iloc[::-1], ["kind", "code"]).definition
        != second.definition
    )
    with pytest.raises(ArgumentError, match="different derived levels"):
        domain_of(None, first, dpt.derived_domain(second))


def test_a_mapping_takes_values_of_any_type():
    table = pd.DataFrame({"kind": ["a", "b"], "code": [10, 20]})
    frame = pd.DataFrame({"code": objects([10, 20.0, "10", True, None, Hostile(), np.int8(20)])})
    assert leaf_keys(frame, dpt.mapping(table, ["kind", "code"]))["kind"].tolist() == ["a", "b", "b"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_text_with_a_nul_is_looked_up_separately(library):
    """One row in front took all others with it: texts were C strings in pandas up to 3.0.0."""
    table = pd.DataFrame({"kind": ["x", "x", "y"], "code": objects(["a", "b", "a\0b"])})
    frame = pd.DataFrame({"code": objects(["a\0", "a", "a", "a\0b", "a\0bc", "b", "12\0", "12"])})
    domain = dpt.derived_domain([dpt.mapping(table, ["kind", "code"])])
    assert leaf_totals(LIBRARIES[library](frame), domain)[0].tolist() == [2, 1, 1]
    domain = dpt.derived_domain([dpt.prefixes("code", chars=[1, 2], alphabet="12")])
    counts = leaf_totals(LIBRARIES[library](frame), domain)[0].tolist()
    assert dict(zip(domain.keys(2)["code/2"], counts, strict=True)) == {"11": 0, "12": 2, "21": 0, "22": 0}

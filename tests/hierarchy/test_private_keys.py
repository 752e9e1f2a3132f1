"""Hierarchies with private keys: which columns they have, and which are public."""

import pandas as pd
import pytest

from pandas_dptree.errors import ArgumentError, DomainError
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.levels.calendar import calendar
from pandas_dptree.hierarchy.private_keys import PrivateKeys, split_by
from tests.helpers_cases import each

STATES = Domain.from_frame(pd.DataFrame({"state": ["CA", "NY"]}), by=["state"])


def test_levels_are_the_root_the_public_and_the_private_ones():
    below = PrivateKeys(columns=("city", "product"), domain=STATES)
    assert below.level_names == ("total", "state", "city", "product")
    assert below.public_names == ("state",) and below.n_public == 2
    alone = PrivateKeys(columns=["city", 3])
    assert alone.columns == ("city", 3) and alone.level_names == ("total", "city", 3)
    assert alone.public_names == () and alone.n_public == 1


def test_a_single_name_needs_no_list():
    assert PrivateKeys(columns="city").columns == ("city",)
    assert split_by(["state", "city"], "city") == (["state"], ("city",))


def test_derived_levels_are_public():
    month = calendar("date", "month", start="2024-01-01", end="2024-12-31")
    assert split_by([month, "product"], ["product"]) == ([month], ("product",))
    for private in (["month"], ["date"]):
        with pytest.raises(ArgumentError, match="Derived levels are public"):
            split_by(["state", month], private)


@each("name", ["level", "count", "std_error", "error_bound", "max_error", "other", "total"])
def test_columns_of_the_table_cannot_be_keys(name):
    with pytest.raises(ArgumentError, match="`private_keys`") as error:
        PrivateKeys(columns=("city", name))
    assert name in str(error.value) and error.value.hint


@each("name", ["max_error", "other"])
def test_nor_can_those_of_public_ones(name):
    domain = Domain.from_frame(pd.DataFrame({name: ["x"]}), by=[name])
    with pytest.raises(ArgumentError, match=name):
        PrivateKeys(columns=("city",), domain=domain)


@each("columns", [(), ("city", "city"), None, (["city"],), (float("nan"),), ("state",), range(65)])
def test_what_names_no_columns_is_refused(columns):
    with pytest.raises(ArgumentError, match="`private_keys`"):
        PrivateKeys(columns=columns, domain=STATES)


@each(
    "domain",
    [
        pd.DataFrame({"state": ["CA"]}),
        STATES.tree,
        Domain.from_frame(
            pd.DataFrame({"state": ["CA", "NY"], "never": [False, True]}),
            by=["state"],
            structural_zeros="never",
        ),
    ],
)
def test_other_domains_are_refused(domain):
    with pytest.raises(DomainError) as error:
        PrivateKeys(columns=("city",), domain=domain)
    assert error.value.hint


@each("private", [["state"], ["product", "city"], ["state", "product"], ["city"], ["town"], []])
def test_private_keys_are_the_last_ones(private):
    with pytest.raises(ArgumentError, match="`private_keys`") as error:
        split_by(["state", "city", "product"], private)
    assert error.value.hint
    assert split_by(["state", "city", "product"], ["city", "product"]) == (["state"], ("city", "product"))
    assert split_by(["city", "product"], ["city", "product"]) == ([], ("city", "product"))

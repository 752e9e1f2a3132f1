"""Names that changed: each old one raises an error that gives the new one, and the changelog lists it."""

from pathlib import Path

import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree.old_names import OLD_ARGUMENTS, OLD_NAMES, new_argument, with_old_names
from pandas_dptree.signatures import public

CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"


def test_the_changelog_lists_every_old_name():
    table = CHANGELOG.read_text().split("### Names that changed before 0.1")[1].split("\n#")[0]
    old = "".join(row.split(" | ")[0] for row in table.splitlines() if row.startswith("| "))
    missing = [name for name in OLD_NAMES if f"`{name}" not in old]
    missing += [name for name in OLD_ARGUMENTS if f"`{name}=" not in old]
    assert not missing


def test_old_functions_of_the_package_are_gone_and_named():
    for name in OLD_NAMES:
        owner, _, attribute = name.partition(".")
        if owner == "dpt" and "." not in attribute and attribute not in dpt.__all__:
            with pytest.raises(AttributeError, match=f"`{name}` no longer exists.\nHint: use "):
                getattr(dpt, attribute)
    with pytest.raises(AttributeError, match="module 'pandas_dptree' has no attribute 'tree_count'"):
        dpt.tree_count  # noqa: B018


def test_instances_of_a_class_name_what_replaces_an_old_method():
    @with_old_names("frame.dp")
    class Accessor:
        plan = 1

    with pytest.raises(
        AttributeError, match=r"`frame.dp.plan_implicit` no longer exists.\nHint: use frame.dp."
    ):
        Accessor().plan_implicit  # noqa: B018
    with pytest.raises(AttributeError, match="'Accessor' object has no attribute 'plam'") as caught:
        Accessor().plam  # noqa: B018
    assert caught.value.name == "plam"
    assert not hasattr(pd.DataFrame().dp, "no_such_method")


def test_an_old_argument_is_replaced_only_where_the_new_one_is_taken():
    assert new_argument("keep_measurements", ["keep"]) == 'keep=["measurements"]'
    assert new_argument("keep_measurements", ["epsilon"]) is None
    assert new_argument("epsilon", ["epsilon"]) is None

    @public
    def release(frame: object, *, strategy: str = "auto") -> None:
        return None

    with pytest.raises(
        dpt.CallError, match="`tree` is no longer an argument of release.\nHint: use strategy="
    ):
        release(0, tree="auto")
    with pytest.raises(dpt.CallError, match="`alpha` is not an argument of release.\nHint: it takes frame, "):
        release(0, alpha=0.1)

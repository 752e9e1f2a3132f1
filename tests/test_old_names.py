"""Names that changed: each old one raises an error that gives the new one, and the changelog lists it."""

from pathlib import Path

import pandas as pd
import pytest

import pandas_dptree as dpt
from pandas_dptree import old_names
from pandas_dptree.old_names import OLD_ARGUMENTS, OLD_NAMES, new_argument, with_old_names
from pandas_dptree.signatures import public

CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"


def test_the_changelog_lists_every_old_name():
    table = CHANGELOG.read_text().split("### Names that changed before 0.1")[1].split("\n#")[0]
    old = "".join(row.split(" | ")[0] for row in table.splitlines() if row.startswith("| "))
    missing = [name for name in OLD_NAMES if f"`{name}" not in old]
    missing += [name for name in OLD_ARGUMENTS if f"`{name}=" not in old]
    assert not missing


def test_old_names_of_the_package_are_gone_and_named():
    for name in OLD_NAMES:
        owner, _, attribute = name.partition(".")
        if owner == "dpt":
            with pytest.raises(AttributeError, match=f"`{name}` no longer exists.\nHint: use "):
                getattr(dpt, attribute)
    with pytest.raises(AttributeError, match="module 'pandas_dptree' has no attribute 'tree_count'"):
        dpt.tree_count  # noqa: B018


def test_instances_of_a_class_name_what_replaces_an_old_method(monkeypatch):
    monkeypatch.setattr(old_names, "OLD_NAMES", {"frame.dp.counts": "frame.dp.tree_counts(by, ...)"})

    @with_old_names("frame.dp")
    class Accessor:
        pass

    with pytest.raises(AttributeError, match=r"`frame.dp.counts` no longer exists.\nHint: use frame.dp.tree"):
        Accessor().counts  # noqa: B018
    with pytest.raises(AttributeError, match="'Accessor' object has no attribute 'plam'") as caught:
        Accessor().plam  # noqa: B018
    assert caught.value.name == "plam"
    assert not hasattr(pd.DataFrame().dp, "no_such_method")


def test_an_old_argument_is_replaced_only_where_the_new_one_is_taken(monkeypatch):
    monkeypatch.setattr(old_names, "OLD_ARGUMENTS", {"bin_count": "bins="})
    assert new_argument("bin_count", ["bins"]) == "bins="
    assert new_argument("bin_count", ["epsilon"]) is None
    assert new_argument("bins", ["bins"]) is None

    @public
    def release(frame: object, *, bins: int = 10) -> None:
        return None

    with pytest.raises(
        dpt.CallError, match=r"`bin_count` is no longer an argument of release.\nHint: use bins="
    ):
        release(0, bin_count=5)
    with pytest.raises(
        dpt.CallError, match=r"`alpha` is not an argument of release.\nHint: it takes frame, "
    ):
        release(0, alpha=0.1)

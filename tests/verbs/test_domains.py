"""The domain of a release of records: keys that are passed, observed or public by their type."""

import pytest

import pandas_dptree
from pandas_dptree.errors import ColumnsError, DomainError
from pandas_dptree.hierarchy.domain import Domain


def test_only_verbs_on_records_offer_what_stands_in_them():
    for call in (
        lambda: Domain.from_frame("observed", by=["state"]),
        lambda: pandas_dptree.derived_domain(["state"], "categories"),
        lambda: pandas_dptree.derived_domain(["state"]),
    ):
        with pytest.raises(DomainError) as caught:
            call()
        assert "observed" not in caught.value.hint and "categories" not in caught.value.hint


@pytest.mark.parametrize("lazy", [False, True])
def test_the_categories_of_an_enum_are_public_by_its_type(lazy):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(
        {"size": ["S", "S", None, "L"], "state": ["CA", "WA", "CA", "CA"]},
        schema={"size": polars.Enum(["S", "M", "L"]), "state": polars.Categorical},
    )
    records = frame.lazy() if lazy else frame
    counts = pandas_dptree.tree_counts(records, ["size"], epsilon=1e5, domain="categories")
    assert counts["size"].tolist()[1:] == ["S", "M", "L"] and counts["count"].tolist() == [3, 2, 0, 1]
    assert Domain.from_categories(records, by=["size"]).labels[0].tolist() == ["S", "M", "L"]
    with pytest.raises(ColumnsError, match=r"not categorical: 'state'\.\nHint: .*polars\.Enum"):
        pandas_dptree.tree_counts(records, ["size", "state"], epsilon=1.0, domain="categories")

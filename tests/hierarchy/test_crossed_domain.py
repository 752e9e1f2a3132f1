"""The public keys of crossed hierarchies."""

import numpy as np
import pandas as pd

import pandas_dptree as dpt
from pandas_dptree.ingest.contributions import leaf_totals
from pandas_dptree.verbs.domains import crossed_domain_of

PLACES = pd.DataFrame({"state": ["CA", "CA", "WA"], "county": ["Kern", "Napa", "King"]})
YEAR = dpt.calendar("date", ["year", "month"], start="2024-01-01", end="2024-12-31")
BY = {"place": ["state", "county"], "when": YEAR, "sex": "sex"}
DOMAIN = crossed_domain_of(None, BY, {"place": PLACES, "sex": ["F", "M"]})


def test_records_are_counted_in_the_cells_of_all_axes():
    frame = pd.DataFrame(
        {
            "state": ["CA", "CA", "WA", "WA"], "county": ["Kern", "Napa", "King", "Kern"],
            "date": pd.to_datetime(["2024-03-05"] * 4), "sex": ["F", "M", "F", "F"],
        }
    )  # fmt: skip
    counts = leaf_totals(frame, DOMAIN)[0].reshape(DOMAIN.tree.leaf_shape)
    assert np.argwhere(counts).tolist() == [[0, 2, 0], [1, 2, 1], [2, 2, 0]]


def test_margins_are_named_by_axes_and_by_levels():
    for given in ({"place": "county", "sex": "sex"}, ("sex", "county"), "county × sex"):
        assert DOMAIN.margin_of(given) == (2, 0, 1)
    assert DOMAIN.margin_of("total") == DOMAIN.margin_of({}) == (0, 0, 0)
    assert [*map(DOMAIN.margin_of, DOMAIN.level_names)] == [*DOMAIN.tree.margins]

"""Tables of the few nodes that were released of an implicit tree."""

import numpy as np
import pandas as pd

import pandas_dptree as dpt
from tests.helpers_privacy import LOSS
from tests.helpers_random import rng

ZIPS = dpt.prefixes("zip", chars=[1, 3], alphabet="0123456789")


def test_variances_of_a_remainder_are_those_of_the_node_and_of_what_is_shown_of_it():
    frame = pd.DataFrame({"zip": ["902", "903", "1002"]}).loc[np.repeat(range(3), [400, 300, 250])]
    table = frame.dp.tree_counts(ZIPS, **LOSS, rng=rng())
    nodes, rests = table[~table["other"]], table[table["other"]]
    assert nodes["zip/3"].dropna().tolist() == ["100", "902", "903"] and len(rests) == 3
    for parent, children, rest in (
        (nodes["level"] == "total", nodes["level"] == "zip/1", rests["level"] == "zip/1"),
        *((nodes["zip/1"].eq(first) & (nodes["level"] == "zip/1"),
           nodes["zip/1"].eq(first) & (nodes["level"] == "zip/3"), rests["zip/1"].eq(first))
          for first in ("1", "9")),
    ):  # fmt: skip
        variances = nodes["std_error"] ** 2
        assert parent.sum() == rest.sum() == 1 and children.sum() in (1, 2)
        expected = variances[parent].sum() + variances[children].sum()
        np.testing.assert_allclose(rests.loc[rest, "std_error"] ** 2, expected)

"""One level of a released table, also after files."""

import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from tests.helpers_output import KEYS, KNOWN, LOSSES, people, us
from tests.helpers_random import rng

SUMMED = {"column": "cost", "bounds": (-5, 20), "granularity": 0.5}


@pytest.mark.parametrize(
    "options",
    [
        {"known": KNOWN},
        {"confidence": 0.9},
        {"keep": ["measurements"]},
        {"known": KNOWN, "confidence": 0.9, "keep": ["measurements"], "consistency": "linear"},
        {**SUMMED, "confidence": 0.9, "keep": ["measurements"]},
        {**SUMMED, "consistency": "none"},
    ],
    ids=str,
)
@pytest.mark.parametrize("mechanism", LOSSES)
def test_a_level_of_any_table_also_after_files(options, mechanism, tmp_path):
    plan = dpt.plan(us(structural_zeros="empty"), mechanism=mechanism, **options, **LOSSES[mechanism])
    records = people(9, 5, 3, 0, 2, 7).assign(cost=2.25)
    table = plan.release(records, rng=rng(7))
    table.to_parquet(tmp_path / "table.parquet")
    table.to_csv(tmp_path / "table.csv", index=False)
    values = [name for name in table if name not in ("level", *KEYS)]
    expected = {
        "total": None,
        "state": ["CA", "DC", "WA"],
        "county": [("CA", "Alameda"), ("CA", "Fresno"), ("CA", "Marin"), ("WA", "King"), ("WA", "Pierce")],
    }
    for back in (table, pd.read_parquet(tmp_path / "table.parquet"), pd.read_csv(tmp_path / "table.csv")):
        for level, index in expected.items():
            rows = back.dp.level(level)
            assert list(rows) == values and len(rows) == (1 if index is None else len(index))
            assert index is None or rows.index.tolist() == index
            np.testing.assert_allclose(
                rows.to_numpy(dtype=float, na_value=np.nan),
                table.loc[table["level"] == level, values].to_numpy(dtype=float, na_value=np.nan),
                rtol=1e-15,
            )
    with pytest.raises(dpt.ArgumentError, match="is not a level"):
        table.dp.level("cost")

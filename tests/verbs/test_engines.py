"""Every verb releases the same table, whatever engine holds the records."""

import narwhals as nw
import numpy as np
import pandas as pd
import pytest

import pandas_dptree as dpt
from tests.helpers_engine_verbs import UNITS, VERBS, assert_same, seeded
from tests.helpers_engines import ENGINES, in_pandas, odd_records
from tests.helpers_reading import divided


class Frames:
    """The same records in each engine; what is read once is made anew."""

    def __init__(self, table, folder):
        self.table, self.folder, self.made = table, folder, {}

    def __call__(self, engine):
        if engine in ("pyarrow reader", "stream") or engine not in self.made:
            self.made[engine] = ALL[engine](self.table, self.folder / engine)
        return self.made[engine]


ALL = {
    **ENGINES,
    "narwhals of polars": lambda table, folder: nw.from_native(ENGINES["polars lazy"](table, folder)),
    "narwhals of duckdb": lambda table, folder: nw.from_native(ENGINES["duckdb"](table, folder)),
}


@pytest.fixture(scope="module")
def frames(tmp_path_factory):
    table = odd_records().drop_columns("never")
    return Frames(table, tmp_path_factory.mktemp("engines"))


@pytest.fixture(scope="module")
def expected(frames):
    """What is released of a frame of pandas; each table is made once."""
    made = {}

    def answer(verb, unit):
        if (verb, unit) not in made:
            made[verb, unit] = VERBS[verb](frames("pandas"), **UNITS[unit], **seeded())
        return made[verb, unit]

    return answer


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("engine", ALL)
def test_every_verb_on_every_engine(engine, verb, frames, expected):
    unit = "some of each unit"
    with divided(batch=5000, buckets=16):
        assert_same(VERBS[verb](frames(engine), **UNITS[unit], **seeded()), expected(verb, unit))

"""For each way to read a column there is a reader."""

from pandas_dptree.hierarchy.levels.read_as import ReadAs
from pandas_dptree.ingest.readers import READERS


def test_every_kind_of_column_has_a_reader():
    assert set(READERS) == set(ReadAs.__subclasses__())

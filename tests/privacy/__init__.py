"""Tests of `pandas_dptree.privacy`."""

"""Tests of `pandas_dptree.hierarchy`."""

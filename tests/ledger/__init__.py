"""Tests of `pandas_dptree.output`."""

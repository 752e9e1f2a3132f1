"""Tests of `pandas_dptree.bounds`."""

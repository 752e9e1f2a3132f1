"""Tests of `pandas_dptree.planning`."""

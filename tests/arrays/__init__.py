"""Tests of `pandas_dptree.arrays`."""

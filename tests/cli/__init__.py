"""Tests of `pandas_dptree.cli`."""

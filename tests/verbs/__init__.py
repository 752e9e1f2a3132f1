"""Tests of `pandas_dptree.verbs`."""

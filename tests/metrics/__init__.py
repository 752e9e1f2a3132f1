"""Tests of `pandas_dptree.metrics`."""

"""Tests of `pandas_dptree.estimation`."""

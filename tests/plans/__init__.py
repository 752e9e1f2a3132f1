"""Tests of `pandas_dptree.plans`."""

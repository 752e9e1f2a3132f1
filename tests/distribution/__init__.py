"""Tests of `pandas_dptree.distribution`."""

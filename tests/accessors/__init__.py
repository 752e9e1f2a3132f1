"""Tests of `pandas_dptree.accessors`."""

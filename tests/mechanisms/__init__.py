"""Tests of `pandas_dptree.mechanisms`."""

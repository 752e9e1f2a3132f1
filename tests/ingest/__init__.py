"""Tests of `pandas_dptree.ingest`."""

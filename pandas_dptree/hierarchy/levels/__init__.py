"""Levels of a hierarchy that are derived from columns of the records.

`base` defines the interface of every kind, and `read_as` the ways to read columns. To add a kind, add a
module with a class and a function that makes it, a line in ``pandas_dptree/__init__.py``, and tests.
"""

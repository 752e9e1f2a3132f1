"""Levels of a hierarchy that are made from columns of the records.

`base` states what every kind has, and `read_as` how its columns can be read. A new kind is a module here,
with a class and a function that makes it, a line in ``pandas_dptree/__init__.py``, and tests.
"""

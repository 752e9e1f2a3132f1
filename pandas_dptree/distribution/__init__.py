"""Strategies for the bins of a column: what is measured, estimates and their errors; no record is read."""

"""Estimates → frames."""

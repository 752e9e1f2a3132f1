"""Counts with bounded relative error, a guarantee in place of a kind of noise."""

"""Noise: the only package in which exact counts become released ones."""

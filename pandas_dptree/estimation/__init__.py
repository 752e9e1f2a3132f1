"""Noisy → consistent: post-processing, free of privacy cost."""

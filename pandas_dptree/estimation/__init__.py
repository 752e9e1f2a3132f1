"""From noisy values to consistent ones: post-processing, free of privacy cost."""

from pandas_dptree.estimation.certificate import Certificate, certify

__all__ = ["Certificate", "certify"]

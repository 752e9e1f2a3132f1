"""Privacy losses and sensitivities that many tests use."""

from pandas_dptree.privacy.sensitivity import Sensitivity

LOSS = {"epsilon": 1.0, "delta": 1e-6}

ONE_ROW = Sensitivity(l1=1, l2_squared=1)

r"""Lower bounds on the error of a single private count.

By group privacy, a private estimate distinguishes data sets that differ by m rows with
:math:`\epsilon_m = m \epsilon` and :math:`\delta_m = \delta (e^{m\epsilon} - 1) / (e^\epsilon - 1)`. So it is
a random function of one of four symbols: with probability :math:`\delta_m` the symbol identifies the data
set, and otherwise it is an answer that is right with the odds :math:`e^{\epsilon_m}` to 1 (Kairouz, Oh and
Viswanath, "The composition theorem for differential privacy", 2015). The best function of such symbols is
easily found.

**Privacy**: everything here is a function of parameters, which are public.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pandas_dptree.privacy.loss import PrivacyLoss
from pandas_dptree.theory.checks import checked_alpha

__all__ = ["noise_floor", "single_count_error"]

FloatArray = npt.NDArray[np.float64]


def single_count_error(*, epsilon: float, delta: float = 0.0, alpha: float = 0.0) -> float:
    r"""Bound the worst-case error of any private estimate of a single count from below.

    Parameters
    ----------
    epsilon, delta, alpha : float
        The privacy of one row, and the allowed relative error: at least 0 and below 1.

    Returns
    -------
    float
        In counts: no estimate of a count has a smaller :math:`\alpha`-RMSE for all counts.

    Notes
    -----
    An estimate must distinguish m rows from none, with errors beyond :math:`\alpha m` in the one
    case and 0 in the other. The best answer to the symbols of the module has the mean square

    .. math:: (1 - \delta_m) \left(\frac{(1 - \alpha)\,m}{2 \cosh (m \epsilon / 2)}\right)^2,

    which is maximised over m.

    Examples
    --------
    >>> round(single_count_error(epsilon=0.01, alpha=0.5), 2)
    33.14
    """
    loss, alpha = PrivacyLoss(epsilon=epsilon, delta=delta), checked_alpha(alpha)
    rows, delta_of, half = _row_numbers(loss)
    return float((1 - alpha) * (np.sqrt(1 - delta_of) * rows / 2 * _sech(half)).max())


def noise_floor(*, epsilon: float, delta: float = 0.0) -> float:
    r"""Compute a lower bound C on the standard error of any private unbiased estimate of a count.

    Parameters
    ----------
    epsilon, delta : float
        As for `single_count_error`, with the same errors.

    Returns
    -------
    float
        In counts; for estimates with an error of the same variance for all counts.

    Notes
    -----
    By the Cauchy-Schwarz inequality, means that are m apart need functions of the symbols of the
    module with a variance of at least

    .. math:: \frac{m^2}{4}\,\frac{(1 - \delta_m)(1 - t^2)}{\delta_m + (1 - \delta_m)\,t^2}, \qquad
              t = \tanh \frac{m \epsilon}{2},

    which is maximised over m. Without delta, m = 1 is best, and :math:`C = 1 / (2 \sinh (\epsilon / 2))`, the
    bound of Hammersley, Chapman and Robbins.

    Examples
    --------
    >>> round(noise_floor(epsilon=1.0), 4), round(noise_floor(epsilon=0.1, delta=1e-3), 4)
    (0.9595, 9.4238)
    """
    rows, delta_of, half = _row_numbers(PrivacyLoss(epsilon=epsilon, delta=delta))
    separation = delta_of + (1 - delta_of) * np.tanh(half) ** 2
    square = rows**2 / 4 * (1 - delta_of) * _sech(half) ** 2 / separation
    return float(np.sqrt(square).max())


def _row_numbers(loss: PrivacyLoss) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return numbers of rows that include a near-optimal one, with their delta and half their epsilon.

    These are all small numbers and some up to 10 / epsilon. Each gives a valid bound.
    """
    assert loss.epsilon is not None
    rows = np.unique(np.rint(np.geomspace(1, max(10 / loss.epsilon, 10.0), 2000)))
    if not loss.delta:
        return rows, np.zeros_like(rows), rows * loss.epsilon / 2
    growth = np.expm1(-rows * loss.epsilon) / math.expm1(-loss.epsilon)
    log_delta = math.log(loss.delta) + (rows - 1) * loss.epsilon + np.log(growth)
    return rows, np.exp(np.minimum(log_delta, 0.0)), rows * loss.epsilon / 2


def _sech(x: FloatArray) -> FloatArray:
    """Compute 1 / cosh(x) for x above 0, without overflow."""
    return np.asarray(2 * np.exp(-x) / (1 + np.exp(-2 * x)))

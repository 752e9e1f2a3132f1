r"""Closed forms of the error measures, from the distribution of the noise.

All are based on the *mean squared excess* of an error X over a tolerance t,
:math:`\mathrm{E}\max(|X| - t, 0)^2`. The alpha-RMSE at a true count z is its square root, with
:math:`t = \alpha z`. The excess falls as t grows, so the alpha-RMSE is largest at a count of 0, where it is
the standard error for every alpha. So if the noise does not depend on the count (Laplace, Gaussian, and least
squares after either), a tolerance of relative errors does not reduce the largest alpha-RMSE. It reduces only
that of large counts.

"Ghazi et al., 2023" is the paper in the docstring of `pandas_dptree.theory`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.mechanisms.additive import AdditiveNoise, FloatArray, Gaussian
from pandas_dptree.mechanisms.arguments import real_numbers

__all__ = [
    "accuracy_from_rmse",
    "check_at_least",
    "estimate_alpha_rmse",
    "predicted_alpha_rmse",
    "relative_error_from_rmse",
]

_HINT = "pass a number, or an array of them."


def predicted_alpha_rmse(
    noise: AdditiveNoise,
    noise_scales: npt.ArrayLike,
    truth: npt.ArrayLike,
    alpha: float,
    *,
    continuous: bool = False,
) -> FloatArray:
    r"""Compute the alpha-RMSE of noisy counts at given true counts, from the noise's `squared_excess`.

    **Privacy**: a function of public parameters and of the given counts.

    Parameters
    ----------
    noise : AdditiveNoise
        `Laplace()` or `Gaussian()`.
    noise_scales, truth : array_like of float
        Scales from 1e-3 to 1e12, or inf where nothing is measured; and true counts. Both are broadcast.
    alpha : float
        The tolerated relative error, at least 0.
    continuous : bool
        Whether to use the continuous distribution of that scale, which is close from scale 10 on.

    Returns
    -------
    numpy.ndarray
        In counts; inf where nothing is measured.

    Raises
    ------
    ArgumentError
        If alpha is below 0, or the noise is not additive noise.

    Notes
    -----
    Exact to 10 digits except for discrete Gaussian noise from scale 10 on, where the sum is replaced by an
    integral with two corrections (Euler and Maclaurin): its square is then accurate to within
    :math:`2 \cdot 10^{-8}\sigma^2`. **Source**: Ghazi et al., 2023, Definition 1.4.

    Examples
    --------
    >>> from pandas_dptree import Laplace
    >>> predicted_alpha_rmse(Laplace(), 10.0, [0, 100, 1000], alpha=0.05).round(3).tolist()
    [14.136, 11.009, 1.16]
    """
    check_at_least("alpha", alpha, 0.0)
    if not isinstance(noise, AdditiveNoise):
        raise ArgumentError(
            "noise", f"must be additive noise, not {quote(noise)}.", hint="pass Laplace() or Gaussian()."
        )
    scales, tolerance = np.broadcast_arrays(
        real_numbers("noise_scales", noise_scales, hint=_HINT),
        alpha * np.abs(real_numbers("truth", truth, hint=_HINT)),
    )
    measured = np.isfinite(scales)
    squares = noise.squared_excess(np.where(measured, scales, 1.0), tolerance, continuous=bool(continuous))
    return np.asarray(np.where(measured, np.sqrt(squares), np.inf))


def estimate_alpha_rmse(
    variances: npt.ArrayLike, fourth_cumulants: npt.ArrayLike, truth: npt.ArrayLike, alpha: float
) -> FloatArray:
    r"""Approximate the alpha-RMSE of unbiased estimates, from the moments of their errors.

    An error is modelled as the sum Y of a normal variable N and a Laplace variable of scale b, with the
    error's variance V and fourth cumulant :math:`\kappa_4 = 12 b^4`. The Laplace distribution has the
    characteristic function :math:`1/(1 + b^2 s^2)`. So every function g of t that is linear in the
    distribution of the error satisfies :math:`g_Y - b^2 g_Y'' = g_N`. The mean squared excess over t also
    satisfies :math:`g'' = 2 P(|Y| > t)`, so it is

    .. math:: \mathrm{E}\max(|Y| - t, 0)^2 = \mathrm{E}\max(|N| - t, 0)^2 + 2 b^2 P(|Y| > t).

    **Privacy**: a function of public parameters and of the given counts.

    Parameters
    ----------
    variances, fourth_cumulants, truth : array_like
        Moments of the errors, and true counts; all three are broadcast. Cumulants are clipped to between 0
        and those of Laplace variables of the same variance.
    alpha : float
        The tolerated relative error, at least 0.

    Returns
    -------
    numpy.ndarray
        In the unit of the errors.

    Raises
    ------
    ArgumentError
        If alpha is below 0.

    Notes
    -----
    Exact for a single continuous Laplace or normal variable, and for the sum of both. For sums of
    several Laplace variables, equal or not, the error is less than 0.6 % of the standard error. Noise of a
    scale near one count or below adds the error of treating it as continuous. Estimates that are kept from
    being negative are not covered: they are better at small counts.

    Examples
    --------
    The average of two measurements with Laplace noise of scale 10:

    >>> estimate_alpha_rmse(2 * 200 / 4, 2 * 12e4 / 16, [0, 100, 1000], alpha=0.05).round(3).tolist()
    [10.0, 6.739, 0.154]
    """
    check_at_least("alpha", alpha, 0.0)
    variance, fourth, tolerance = np.broadcast_arrays(
        real_numbers("variances", variances, hint=_HINT),
        real_numbers("fourth_cumulants", fourth_cumulants, hint=_HINT),
        alpha * np.abs(real_numbers("truth", truth, hint=_HINT)),
    )
    regular = (variance > 0) & np.isfinite(variance)
    spread = np.sqrt(np.where(regular, variance, 1.0))
    with np.errstate(over="ignore"):
        kurtosis = np.where(regular, np.maximum(fourth, 0.0), 0.0) / spread**2 / spread**2
    laplace = np.minimum(kurtosis / 12, 1 / 4) ** (1 / 4)
    normal = np.sqrt(np.maximum(1 - 2 * laplace**2, 0.0))
    u = np.minimum(tolerance / spread, 1e6)  # beyond this, all is 0
    normal_excess = Gaussian().squared_excess(normal, u, continuous=True)
    excess = normal_excess + 4 * laplace**2 * _tail_probability(normal, laplace, u)
    return np.asarray(np.where(regular, spread * np.sqrt(excess), np.sqrt(variance)))


def accuracy_from_rmse(
    rmse: npt.ArrayLike, alpha: float, wider_alpha: float, thresholds: npt.ArrayLike
) -> FloatArray:
    r"""Bound the probability that an estimate misses a tolerance, from its alpha-RMSE.

    For :math:`\alpha' > \alpha`, by Chebyshev's inequality (Ghazi et al., 2023, Lemma 3.2),

    .. math:: P\bigl(|\tilde w - w| > \alpha' \max(w, \tau)\bigr)
              \le \Bigl(\frac{\mathrm{RMSE}_\alpha}{(\alpha' - \alpha)\,\tau}\Bigr)^2 = \eta,

    so the release is :math:`(\alpha', \eta)`-accurate with the largest :math:`\eta` of all nodes.

    Parameters
    ----------
    rmse, thresholds : array_like
        The alpha-RMSE and the :math:`\tau > 0` of each node, or the largest and the least; broadcast.
    alpha, wider_alpha : float
        The alpha of that RMSE, and the larger :math:`\alpha'` of the tolerance.

    Returns
    -------
    numpy.ndarray
        The probability :math:`\eta`, at most 1.

    Raises
    ------
    ArgumentError
        If alpha is below 0, the wider alpha not above it, or a threshold not above 0.

    Examples
    --------
    >>> accuracy_from_rmse(5.0, alpha=0.05, wider_alpha=0.15, thresholds=[100, 500]).round(4).tolist()
    [0.25, 0.01]
    """
    check_at_least("alpha", alpha, 0.0)
    check_at_least("wider_alpha", wider_alpha, alpha, above=True)
    check_at_least("thresholds", thresholds, 0.0, above=True, many=True)
    reach = (wider_alpha - alpha) * np.asarray(thresholds, dtype=np.float64)
    return np.minimum((real_numbers("rmse", rmse, hint=_HINT) / reach) ** 2, 1.0)


def relative_error_from_rmse(rmse: npt.ArrayLike, alpha: float, kappa: float) -> FloatArray:
    r"""Bound the smoothed relative error of an estimate from its alpha-RMSE.

    Since :math:`|\tilde z - z| \le \max(|\tilde z - z| - \alpha z, 0) + \alpha z`, and a mean is at most the
    root of the mean square,

    .. math:: \frac{\mathrm{E}\,|\tilde z - z|}{\max(z, \kappa)}
              \le \frac{\mathrm{RMSE}_\alpha}{\kappa} + \alpha.

    In Ghazi et al., 2023, Lemma B.1, the bound is the square root of 2 times this one.

    Parameters
    ----------
    rmse : array_like
        The alpha-RMSE of each node.
    alpha, kappa : float
        The alpha of that RMSE, and the smoothing factor, above 0.

    Returns
    -------
    numpy.ndarray
        The bound for each node.

    Raises
    ------
    ArgumentError
        If alpha is below 0, or kappa not above 0.

    Examples
    --------
    >>> relative_error_from_rmse([5.0, 1.0], alpha=0.05, kappa=100).tolist()
    [0.1, 0.060000000000000005]
    """
    check_at_least("alpha", alpha, 0.0)
    check_at_least("kappa", kappa, 0.0, above=True)
    return real_numbers("rmse", rmse, hint=_HINT) / kappa + alpha


def check_at_least(
    argument: str, value: npt.ArrayLike, least: float, *, above: bool = False, many: bool = False
) -> None:
    """Check that a number, or each of `many`, is finite and at least (or above) a bound."""
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.array(np.nan)
    if (numbers.ndim and not many) or not (
        np.isfinite(numbers) & ((numbers > least) if above else (numbers >= least))
    ).all():
        bound = f"{'above' if above else 'at least'} {least:g}"
        raise ArgumentError(argument, f"must be {bound}, not {quote(value)}.", hint="pass a finite number.")


def _tail_probability(normal: FloatArray, laplace: FloatArray, t: FloatArray) -> FloatArray:
    r"""Compute P(Y > t) for the sum Y of a normal variable of scale s and a Laplace variable of scale b.

    It is :math:`\Phi(-u) + \frac12 (A(r - u) - A(r + u))` with :math:`u = t/s`, :math:`r = s/b` and

    .. math:: A(x) = e^{(x^2 - u^2)/2}\,\Phi(-x) = \tfrac12 e^{-u^2/2}\,\mathrm{erfcx}(x/\sqrt2).
    """
    from scipy.special import erfcx, ndtr  # costs a tenth of a second to import

    s = np.maximum(normal, 1e-9)  # below this, the normal part is negligible
    u, r = t / s, s / np.maximum(laplace, 1e-150)
    x = r - u
    # For x below 0 the scaled function overflows, and the exponent of the other form is negative.
    falling = np.exp(np.minimum(r * (r / 2 - u), 0.0)) * ndtr(-x)
    density = np.exp(-(u**2) / 2) / 2
    near = np.where(x < 0, falling, density * erfcx(np.maximum(x, 0.0) / np.sqrt(2)))
    return np.asarray(ndtr(-u) + (near - density * erfcx((r + u) / np.sqrt(2))) / 2)

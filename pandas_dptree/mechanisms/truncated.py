"""Laplace noise truncated at a radius."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal, localcontext

import numpy as np
import numpy.typing as npt

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.tree import IntArray
from pandas_dptree.mechanisms.arguments import exact_values, laplace_scale, noise_source, whole_number
from pandas_dptree.mechanisms.sampling import ByteSource, truncated_discrete_laplace
from pandas_dptree.privacy.loss import PrivacyLoss

__all__ = ["TruncatedLaplace"]

# Each sum of `_power_sums` is a difference divided by 1 - q, which is at least 1e-12. Five of these in
# succession lose 60 digits at most, and 40 are left.
_DIGITS = Context(prec=100, rounding=ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
_ROUNDING = Decimal("1e-40")  # far above the rounding error of a radius, which is below 1e16


@dataclass(frozen=True, slots=True)
class TruncatedLaplace:
    r"""Discrete Laplace noise on the whole numbers from -R to R, for (epsilon, delta)-DP.

    .. math:: P(x) \propto q^{|x|}, \quad |x| \le R, \qquad q = e^{-1/b}

    Every answer is within R of the truth, with certainty. The noise scale is :math:`b = k/\epsilon` for the
    sensitivity k, and R is the smallest whole number, k or more, for which

    .. math:: \delta(R) = \frac{q^{R+1-k}\,(1 - q^k)}{1 + q - 2q^{R+1}} \le \delta.

    Parameters
    ----------
    epsilon : float
        Above 0.
    delta : float
        Above 0 and below 1.
    sensitivity : int, default 1
        The most k by which one privacy unit moves all values of one release together: the largest sum of
        absolute differences.

    Attributes
    ----------
    noise_scale : float
        b, in counts, rounded up.
    radius : int
        R, in counts.

    Raises
    ------
    ArgumentError
        If an argument is out of range, or `epsilon` so small that the noise scale would be above 1e12.

    Notes
    -----
    **Privacy**: (epsilon, `delta_spent`)-DP, `delta_spent` being at most `delta`. Both are exact values
    of typed numbers (`pandas_dptree.privacy.loss.exact`).

    *Proof.* Let one value move by d, from v to :math:`v' = v + d`, :math:`0 < d \le k \le R` (the other
    direction is the mirror image).
    Answers that are possible for both are at most :math:`q^{-d} \le e^{\epsilon}` times as likely under one
    as under the other. The others, seen from v, are the lowest d, which have the probability

    .. math:: T(d) = \frac{q^R + q^{R-1} + \dots + q^{R-d+1}}{1 + 2(q + \dots + q^R)}
              = \frac{q^{R+1-d}\,(1 - q^d)}{1 + q - 2q^{R+1}}.

    So the mechanism is :math:`(\epsilon, T(k))`-DP, as T rises; and for no smaller delta, as v' never gives
    these answers. Let several values move by :math:`d_1, d_2, \dots`, together by k at most. Answers that are
    possible for both are at most :math:`q^{-\sum d_i} \le e^{\epsilon}` times as likely, and the others have
    the probability :math:`\sum T(d_i) \le T(k)` at most: the terms of T(d) rise up to d = R, so
    :math:`T(c) + T(d) \le T(c + d)` where :math:`c + d \le R`.

    Solved for R,

    .. math:: R = k - 1 + \left\lceil b \ln\frac{1 - q^k + 2\delta q^k}{\delta(1 + q)} \right\rceil.

    Lemma 2.8 of Ghazi, Kamath, Kumar, Manurangsi and Wu has real-valued noise on [-R, R], for k = 1 and with
    :math:`R = b \ln\bigl(1 + (e^{k/b} - 1)/2\delta\bigr)`. The argument of the logarithm above is
    :math:`2q^k/(1 + q)` times that one. So the discrete R is the continuous one less
    :math:`1 - b\ln\frac{2}{1 + q}`, rounded up; and as :math:`0 < b\ln\frac{2}{1 + q} < \frac12`, it is never
    above the continuous one rounded to the nearest whole number.

    References
    ----------
    Geng, Ding, Guo and Kumar, *Tight analysis of privacy and utility tradeoff in approximate differential
    privacy*, 2020. Ghazi, Kamath, Kumar, Manurangsi and Wu, *On differentially private counting on trees*,
    2023.

    Examples
    --------
    >>> noise = TruncatedLaplace(1.0, 1e-6)
    >>> noise.radius, noise.noise_scale, noise.delta_spent <= 1e-6
    (14, 1.0, True)
    """

    epsilon: float
    delta: float
    sensitivity: int = 1
    noise_scale: float = field(init=False)
    radius: int = field(init=False)

    def __post_init__(self) -> None:
        """Check the arguments and calibrate the noise."""
        loss = PrivacyLoss(epsilon=self.epsilon, delta=self.delta)
        assert loss.epsilon is not None
        if not loss.delta:
            raise ArgumentError(
                "delta",
                "must be above 0: bounded noise never gives pure differential privacy.",
                hint="for example delta=1e-6.",
            )
        k = whole_number("sensitivity", self.sensitivity, at_least=1, hint="1 where a unit is one row.")
        scale = laplace_scale(loss.epsilon, k)
        with localcontext(_DIGITS):
            q, delta = _ratio(scale), Decimal(loss.rounded_down.delta)
            steps = Decimal(scale) * ((1 - q**k + 2 * delta * q**k) / (delta * (1 + q))).ln()
            radius = k - 1 + max(1, int((steps + _ROUNDING).to_integral_value(ROUND_CEILING)))
        for name, value in {
            "epsilon": loss.epsilon,
            "delta": loss.delta,
            "sensitivity": k,
            "noise_scale": scale,
            "radius": radius,
        }.items():
            object.__setattr__(self, name, value)

    def to_dict(self) -> dict[str, float]:
        """Return the parameters, and what follows from them, as plain JSON."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def delta_spent(self) -> float:
        """The exact delta of the noise at `epsilon`, rounded up to a float."""
        with localcontext(_DIGITS):
            spent = _lowest(self.sensitivity, _ratio(self.noise_scale), self.radius)
            nearest = float(spent)
            return nearest if Decimal(nearest) >= spent else math.nextafter(nearest, 1.0)

    @property
    def variance(self) -> float:
        """The variance of the noise, in squared counts, to machine precision."""
        with localcontext(_DIGITS):
            zeroth, _, second, _, _ = _power_sums(_ratio(self.noise_scale), self.radius)
            return float(2 * second / (1 + 2 * zeroth))

    @property
    def fourth_cumulant(self) -> float:
        """The fourth cumulant of the noise, in counts to the fourth power, to machine precision.

        It is the fourth moment less three squared variances: negative where the noise is nearly uniform.
        """
        with localcontext(_DIGITS):
            zeroth, _, second, _, fourth = _power_sums(_ratio(self.noise_scale), self.radius)
            total = 1 + 2 * zeroth
            return float(2 * fourth / total - 3 * (2 * second / total) ** 2)

    def sample(self, size: int, source: ByteSource) -> IntArray:
        """Draw noise in counts from -R to R, an array of int64 of shape (size,).

        ``source(n)`` returns n random bytes, such as `os.urandom`.
        """
        return truncated_discrete_laplace(self.noise_scale, self.radius, size, source)

    def release(self, values: npt.ArrayLike, *, rng: np.random.Generator | None = None) -> IntArray:
        """Add noise to exact values.

        `values` are counts or sums of an integer type; those beyond ±2**61 are clipped. Each result is within
        `radius` of its value. An `rng` is for repeatable tests only. Other types raise an `ArgumentError`.

        Notes
        -----
        **Privacy**: (epsilon, delta_spent)-DP for all values together, if neighbouring data sets move them by
        `sensitivity` at most in all: for example the counts of disjoint groups, where a unit is `sensitivity`
        rows. Each call is a separate release, and the losses add up.

        Examples
        --------
        >>> noise = TruncatedLaplace(0.5, 1e-6)
        >>> noisy = noise.release([120, 0, 7])
        >>> bool((abs(noisy - [120, 0, 7]) <= noise.radius).all())
        True
        """
        exact = exact_values(values)
        return np.asarray(exact + self.sample(exact.size, noise_source(rng)).reshape(exact.shape))

    def interval(self, values: npt.ArrayLike) -> tuple[IntArray, IntArray]:
        """Return the least and the greatest exact values that are possible for released ones.

        Examples
        --------
        >>> low, high = TruncatedLaplace(1.0, 1e-6).interval([100, 3])
        >>> low.tolist(), high.tolist()
        ([86, -11], [114, 17])
        """
        noisy = exact_values(values)
        return noisy - self.radius, noisy + self.radius


def _ratio(noise_scale: float) -> Decimal:
    """Return q."""
    return (-1 / Decimal(noise_scale)).exp()


def _lowest(shift: int, q: Decimal, radius: int) -> Decimal:
    """Return T(shift), the probability of the lowest `shift` numbers."""
    return q ** (radius + 1 - shift) * (1 - q**shift) / (1 + q - 2 * q ** (radius + 1))


def _power_sums(q: Decimal, radius: int) -> list[Decimal]:
    r"""Return :math:`S_m = \sum_{x=1}^R x^m q^x` for m from 0 to 4.

    Summation by parts turns :math:`(1 - q) S_m` into the sum of :math:`(x^m - (x-1)^m) q^x`, less
    :math:`R^m q^{R+1}`; and :math:`x^m - (x-1)^m` consists of lower powers of x.
    """
    end = q ** (radius + 1)
    sums = [(q - end) / (1 - q)]
    for m in range(1, 5):
        differences = sum(math.comb(m, j) * (-1) ** (m - j + 1) * sums[j] for j in range(m))
        sums.append((differences - radius**m * end) / (1 - q))
    return sums

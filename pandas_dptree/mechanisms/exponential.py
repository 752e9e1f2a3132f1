r"""The exponential mechanism and permute-and-flip, exact in whole numbers.

A candidate c has a distance D(c), a whole number from 0, and a weight that is about :math:`e^{-g D(c)}`. The
weights are whole numbers: :math:`w_0 = 2^{96}` and :math:`w_{i+1} = \lceil w_i r \rceil` with a rational
:math:`r \ge e^{-g}`, up to the first that does not fall, which is that of all larger distances, too. So

.. math:: w_i \ge w_{i+1} \ge e^{-g} w_i. \quad (1)

Candidates of the same distance form one entry; in an entry they may have masses, whole and public, by which
their weights are multiplied.

**The exponential mechanism** chooses c with a probability proportional to its weight. Let D move by at most s
between two neighbours. By (1) no weight changes by a factor outside of :math:`e^{-gs}` and :math:`e^{gs}`,
and their sum is a factor in between. So the logarithms of the ratios of probabilities lie in an interval of
length :math:`2gs = \epsilon`, of which 0 is a part: the mechanism has an :math:`\epsilon`-bounded range. So
it is :math:`\epsilon`-DP, and :math:`\epsilon^2/8`-zCDP (Cesar and Rogers, "Bounding, concentrating, and
truncating", 2021, Lemma 3.4 and Theorem 2; Dong, Durfee and Rogers, "Optimal differential privacy composition
for exponential mechanisms", 2020).

**Permute-and-flip** (McKenna and Sheldon, "Permute-and-flip: a new mechanism for differentially private
selection", 2020) visits the candidates in random order, and takes the first whose coin shows heads, which it
does with probability :math:`w_c / \max w`. It is no less accurate in expectation, and :math:`\epsilon`-DP
with the same weights. *Proof.* If each candidate is visited at a uniform time in [0, 1], it is taken if it is
the first of which a clock :math:`T_c`, uniform on :math:`[0, 1/w_c]`, strikes:

.. math:: P(c) = w_c \int_0^{1/\max w} \prod_{j \ne c} (1 - x w_j)\,dx. \quad (2)

It does not change if all weights are multiplied by one number. Multiply those of the neighbour so that
:math:`w \le w' \le e^\epsilon w`, which (1) allows. Then every factor and the range of the integral are at
most as large for w' as for w, so :math:`P'(c) \le e^\epsilon P(c)`. The other direction is the same with
:math:`e^\epsilon w \ge w'`. ∎ (It has no bounded range, hence no :math:`\epsilon^2/8`.)

**How it is drawn.** Not by visiting candidates, of which a grid has millions, but by (2). Let time run in
slots, in units of :math:`1/\max w`; let y be what is left of the unit, and :math:`y/M` the length of the next
slot, with a whole number M > S, where S is the sum of all weights, divided by the largest. A clock that has
not struck before does so in the slot with odds

.. math:: o_c = \frac{w_c\,y/M}{\max w - w_c (1 - y')}, \qquad y' = y (1 - 1/M).

To draw the set of those that do, draw a number k with probability proportional to :math:`\Lambda^k / k!`,
:math:`\Lambda = S/(M - 1) \le 1`, and k candidates by their weights; start afresh if two are the same, or,
with a probability of 1 minus :math:`\max w\,y' / (\max w - w_c (1 - y'))` for each, otherwise. The k! orders
of a set A make it as probable as :math:`\prod_{c \in A} o_c`, as it must be. The first to strike is any of A
with the same probability. If A is empty, go on with the next slot: the expected number of slots is at most 3.

Everything is decided by whole numbers from uniform random bytes; no exponential is computed but for r, which
is rounded up. How long a draw takes depends on the weights, and so on the records.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from pandas_dptree.mechanisms.rejection_sampling import ByteSource

__all__ = ["SMALLEST_EXPONENT", "Entries", "choose", "permute_and_flip", "uniform_below", "weight_table"]

SMALLEST_EXPONENT = Fraction(1, 20_000)
"""The table of the weights has about 66/g entries: with a smaller g it would be too long."""

_BITS = 96
"""Bits of the largest weight."""

_RATIO_BITS = 128
"""Bits of the ratio of weights."""


class Entries(NamedTuple):
    """The candidates, in entries of equal weight.

    `totals` has the sum of the weights of each entry and all before it; `weights` the weight of a candidate,
    and `masses` the number of candidates, or their mass.
    """

    totals: Sequence[int]
    weights: Sequence[int]
    masses: Sequence[int]


@lru_cache(maxsize=4)
def weight_table(exponent: Fraction) -> tuple[int, ...]:
    """Return the weight of each distance, for an exponent g; the last one is that of all larger distances."""
    ratio, weights = _ratio_above(exponent), [1 << _BITS]
    while True:
        weight = -((-weights[-1] * ratio) >> _RATIO_BITS)
        if weight == weights[-1]:
            return tuple(weights)
        weights.append(weight)


def _ratio_above(exponent: Fraction) -> int:
    """Return a whole number r with ``r / 2**128 >= exp(-exponent)``, and hardly larger.

    Every operation names its context: an operator, even a minus, rounds as the caller's thread does.
    """
    down, even, up = (_context(rounding) for rounding in (ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_CEILING))
    lowered = down.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
    rounded = even.exp(lowered.copy_negate())  # within half a unit of the last digit
    return math.ceil(up.multiply(even.next_plus(rounded), Decimal(1 << _RATIO_BITS)))


def _context(rounding: str) -> Context:
    """Return a context of 60 digits that does not depend on the default one, which callers may change."""
    return Context(prec=60, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX, capitals=1, clamp=0, traps=[])


def uniform_below(limit: int, source: ByteSource) -> int:
    """Draw a whole number from 0 to ``limit - 1``, uniformly."""
    n_bits = (limit - 1).bit_length()
    n_bytes, excess = -(-n_bits // 8), -n_bits % 8
    while True:
        drawn = int.from_bytes(source(n_bytes)) >> excess
        if drawn < limit:
            return drawn


def choose(entries: Entries, source: ByteSource) -> tuple[int, int]:
    """Draw a candidate by the exponential mechanism: return its entry, and its place in the entry's mass."""
    drawn = uniform_below(entries.totals[-1], source)
    entry = bisect_right(entries.totals, drawn)
    before = entries.totals[entry - 1] if entry else 0
    return entry, (drawn - before) // entries.weights[entry]


def permute_and_flip(entries: Entries, source: ByteSource) -> tuple[int, int]:
    """Draw a candidate by permute-and-flip, like `choose`; all candidates have the mass 1."""
    total = entries.totals[-1]
    best = max(weight for weight, mass in zip(entries.weights, entries.masses, strict=True) if mass)
    n_slots = total // best + 2  # M, above S
    left = Fraction(1)
    while True:
        left *= Fraction(n_slots - 1, n_slots)
        struck = _strikes(entries, best, n_slots, left, source)
        if struck:
            return struck[uniform_below(len(struck), source)]


def _strikes(
    entries: Entries, best: int, n_slots: int, left: Fraction, source: ByteSource
) -> list[tuple[int, int]]:
    r"""Draw which of the clocks that have not struck do so in a slot, after which `left` of the time is left.

    A number k is proposed with probability :math:`2^{-k-1}`, and accepted with :math:`(2\Lambda)^k / 2k!`,
    which is at most 1 because :math:`\Lambda` is.
    """
    total, (rest, whole) = entries.totals[-1], left.as_integer_ratio()
    while True:
        k = 0
        while uniform_below(2, source):
            k += 1
        if uniform_below(2 * math.factorial(k) * (best * (n_slots - 1)) ** k, source) >= (2 * total) ** k:
            continue
        drawn = [choose(entries, source) for _ in range(k)]
        if len(set(drawn)) < k:
            continue
        weights = [entries.weights[entry] for entry, _ in drawn]
        if all(
            uniform_below(best * whole - weight * (whole - rest), source) < best * rest for weight in weights
        ):
            return drawn

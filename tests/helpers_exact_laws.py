"""Exact distributions of code that draws at random, by running it once for each outcome of what it draws."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction


def exact_law(run):
    """Return the probability of each value of ``run(pick)``, as fractions.

    ``pick(weights)`` returns a place, with a probability proportional to its weight.
    """
    found, pending = defaultdict(Fraction), [()]
    while pending:
        path, taken, weight, total = pending.pop(), [], 1, 1

        def pick(weights, path=path, taken=taken):
            nonlocal weight, total
            if len(taken) < len(path):
                place = path[len(taken)]
            else:
                place, *others = [i for i, each in enumerate(weights) if each]
                pending.extend((*taken, other) for other in others)
            taken.append(place)
            weight, total = weight * weights[place], total * sum(weights)
            return place

        found[run(pick)] += Fraction(weight, total)
    return dict(found)


class Uniform:
    """A whole number, uniform from `low` to before `high`, which is decided no further than is asked."""

    def __init__(self, low, high, pick, asked=lambda _: None):
        self.low, self.high, self.pick, self.asked = low, high, pick, asked

    def __ge__(self, other):
        self.asked("order")
        cut = min(max(other, self.low), self.high)
        if self.pick([cut - self.low, self.high - cut]):
            self.low = cut
            return True
        self.high = cut
        return False

    def __lt__(self, other):
        return not self >= other

    def __bool__(self):
        self.asked("coin")
        return bool(self.pick([1 if self.low == 0 else 0, self.high - max(self.low, 1)]))

    def __index__(self):
        return self.low + self.pick([1] * (self.high - self.low))

    def __sub__(self, other):
        return Uniform(self.low - other, self.high - other, self.pick, self.asked)

    def __floordiv__(self, divisor):
        first, last = self.low // divisor, (self.high - 1) // divisor
        parts = [
            min(self.high, (i + 1) * divisor) - max(self.low, i * divisor) for i in range(first, last + 1)
        ]
        return first + self.pick(parts)


def first_to_strike(weights, start=Fraction(0), end=Fraction(1)):
    """Integrate the formula of permute-and-flip from `start` to `end`, in units of 1/max w; exact."""
    shares = [Fraction(weight, max(weights)) for weight in weights]
    law = []
    for chosen, share in enumerate(shares):
        product = [share]
        for other, factor in enumerate(shares):
            if other != chosen:  # times 1 - factor * x
                product = [a - factor * b for a, b in zip([*product, 0], [0, *product], strict=True)]
        law.append(sum(a * (end ** (i + 1) - start ** (i + 1)) / (i + 1) for i, a in enumerate(product)))
    return law


def logarithm(ratio):
    """Return the logarithm of a fraction, of numbers of any size, to within 1e-13 or so."""
    return math.log(ratio.numerator) - math.log(ratio.denominator)


def log_ratios(law, other):
    """Return the logarithms of the ratios of two distributions, which have the same support."""
    assert set(law) == set(other)
    return [logarithm(law[each] / other[each]) for each in law]


def renyi(law, other, order):
    """Return the Renyi divergence of a distribution from another one."""
    mean = sum(float(other[each]) * (float(law[each] / other[each])) ** order for each in law)
    return math.log(mean) / (order - 1)

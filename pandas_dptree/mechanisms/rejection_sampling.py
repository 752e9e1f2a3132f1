r"""Exact integer noise from a cryptographic source, by rejection sampling.

Every distribution here has weights :math:`w(x) = \exp(-|x/t|^p / p)` on whole numbers, ``t`` being the noise
scale: ``p = 1`` is the discrete Laplace distribution, ``p = 2`` the discrete Gaussian. Proposals come from a
step function that covers the weights:

1. The integers are cut into *blocks* of ``m`` neighbours, ``m`` a power of two, and each block owns enough of
   the 65536 *slots* to cover ``height * w(x)`` for each of its ``x``.
2. A 16-bit word chooses a slot, further bits choose an ``x`` of its block, both uniformly.
3. Slot number ``i`` of the block, with a uniform ``u`` in [0, 1), stands for the point ``i + u``, and ``x``
   is accepted if ``i + u < height * w(x)``; otherwise that draw starts afresh.

So the probability of each ``x`` is exactly proportional to ``w(x)``: no normalising constant is needed, and
zero is an integer like any other. In nineteen of twenty slots ``x`` is accepted whatever ``x`` and ``u`` are,
and no weight is computed. The others compare floating-point numbers. Where these are within rounding error of
each other, the comparison is decided in decimal arithmetic, with as many more bits of ``u`` as it takes. Two
slots stand for the tails beyond the last block.

Floating point thus decides how fast a draw is, never its value. The duration of a call depends on the
distribution, the size and the random bits, never on records.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["LARGEST_VALUE", "ByteSource", "NoiseDistribution", "draw", "uniform_words"]

ByteSource = Callable[[int], bytes]
"""``source(n)`` returns ``n`` independent, uniformly random bytes."""

LARGEST_VALUE = 2**62

# Tests reduce these two, so that tails and exact comparisons occur all the time.
_SLOT_BITS = 16  # 8 or 16: one whole machine word picks a slot
_FRACTION_BITS = 32  # 1 to 32: bits of u drawn before they are known to be needed

# Draws made at a time: few enough to stay in the processor's cache.
_CHUNK = 2**16

# The largest possible error of a computed height * w(x). Both x (below 2**53) and t are exact as floats,
# so the exponent f has a relative error below 4 * 2**-53, which moves exp(-f) by less than f exp(-f) times
# that, at most 2 * 2**-53. With height <= 2**16 the margin leaves numpy's exp an absolute error of 2**-37,
# thousands of times that of any implementation we know of. An underflow to zero is well within it.
_MARGIN = 2.0**-20


def draw(distribution: NoiseDistribution, size: int, source: ByteSource) -> NDArray[np.int64]:
    """Draw `size` independent integers from a distribution, a chunk at a time."""
    draws = np.empty(size, dtype=np.int64)
    sampler = _sampler(distribution, _SLOT_BITS)
    for start in range(0, size, _CHUNK):
        sampler.fill(draws[start : start + _CHUNK], source)
    return draws


def uniform_words(source: ByteSource, size: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Draw uniform machine words of an unsigned type; the array is read-only."""
    return np.frombuffer(source(size * dtype.itemsize), dtype=dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseDistribution:
    """The weights w(x) = exp(-f(x)), f(x) = |x/scale|^power / power, where |x| <= bound, and 0 elsewhere."""

    scale: float
    power: int
    bound: float = math.inf

    def weights(self, x: NDArray[np.int64]) -> NDArray[np.float64]:
        """Compute w(x) to within rounding, for magnitudes below 2**53."""
        magnitude = np.abs(x)
        with np.errstate(under="ignore"):
            weights = np.exp(-((magnitude / self.scale) ** self.power) / self.power)
        return np.where(magnitude <= self.bound, weights, 0.0)

    def is_below(self, prefix: int, bits: int, height: int, x: int, source: ByteSource) -> bool:
        """Decide exactly whether U < height * w(x), where U is uniform on [prefix, prefix + 1) / 2**bits.

        The bits of U are drawn as they are needed, and the precision grows with them.
        """
        if abs(x) > self.bound:
            return False
        exponent = abs(x / Fraction(self.scale)) ** self.power / self.power
        while True:
            # A unit is one in the last digit. The quotient, exp (correctly rounded) and the product are each
            # within half a unit; the quotient's error is that of an exponent and moves exp by `exponent`
            # units at most. That makes exponent + 1 units; the rest is for the bounds' own rounding.
            digits = 30 + (bits + height.bit_length() + int(exponent).bit_length()) // 3
            with localcontext(
                Context(prec=digits, rounding=ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
            ):
                units = (int(exponent) + 5) * Decimal(10) ** (1 - digits)
                target = (Decimal(-exponent.numerator) / exponent.denominator).exp() * (height << bits)
                if prefix + 1 <= target * (1 - units):
                    return True
                if prefix >= target * (1 + units):
                    return False
            prefix, bits = (prefix << 32) | int.from_bytes(source(4)), bits + 32


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RejectionSampler:
    """Slots that cover a distribution's weights; see the module's description.

    The slots come in this order: those below ``height * w(x)`` for all ``x`` of their block (accepted), those
    that may not be, those without an owner, and last the right and the left tail. `height` slots cover a
    weight of 1. A block of `block_size` integers (a power of two) begins at the `first` of each slot that it
    owns. Of the slots beyond the first `n_accepted`, `position` is the number within their block; it is above
    every weight for a slot without an owner. The right tail is cut into blocks of `tail_size` integers (a
    power of two) from `tail_start` on; the left tail is its image under ``x -> -1 - x``.
    """

    distribution: NoiseDistribution
    height: int
    block_size: int
    first: NDArray[np.int64]
    n_accepted: int
    position: NDArray[np.float64]
    tail_start: int
    tail_size: int

    def fill(self, out: NDArray[np.int64], source: ByteSource) -> None:
        """Fill `out` with independent draws."""
        slot = uniform_words(source, len(out), np.min_scalar_type(len(self.first) - 1))
        np.take(self.first, slot, out=out, mode="clip")  # every slot exists; "clip" spares the check
        if self.block_size > 1:
            last = self.block_size - 1
            out += (uniform_words(source, len(out), np.min_scalar_type(last)) & last).astype(np.int64)
        undecided = np.flatnonzero(slot >= self.n_accepted)
        if len(undecided):
            out[undecided], kept = self._decide(slot[undecided], out[undecided], source)
            again = np.empty(len(undecided) - np.count_nonzero(kept), dtype=np.int64)
            self.fill(again, source)
            out[undecided[~kept]] = again

    def _decide(
        self, slot: NDArray[np.integer], x: NDArray[np.int64], source: ByteSource
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Decide which draws from undecided slots are accepted, after replacing those from the tails."""
        bits = _FRACTION_BITS
        fraction = uniform_words(source, len(x), np.dtype(np.uint32)) >> (32 - bits)
        position = self.position[slot - self.n_accepted]
        lower = position + fraction * 2.0**-bits  # exact: 16 bits before the point, 32 after
        target = self.height * self.distribution.weights(x)
        kept = lower + 2.0**-bits <= target - _MARGIN
        for i in np.flatnonzero(~kept & (lower < target + _MARGIN)):
            prefix = (int(position[i]) << bits) | int(fraction[i])
            kept[i] = self.distribution.is_below(prefix, bits, self.height, int(x[i]), source)
        for i in np.flatnonzero(slot >= len(self.first) - 2):
            x[i], kept[i] = self._draw_tail(bool(slot[i] % 2), source)
        return x, kept

    def _draw_tail(self, left: bool, source: ByteSource) -> tuple[int, bool]:
        """Propose an integer beyond the blocks, and decide whether it is accepted.

        The tail's one slot belongs to its blocks 0, 1, 2, … by 1/2, 1/4, 1/8, …
        """
        block = 0
        while source(1)[0] % 2:
            block += 1
        within = int.from_bytes(source(8)) % self.tail_size
        magnitude = self.tail_start + block * self.tail_size + within
        x = ~magnitude if left else magnitude
        height = self.height * (self.tail_size // self.block_size) << (block + 1)
        kept = self.distribution.is_below(int.from_bytes(source(4)), 32, height, x, source)
        return max(-LARGEST_VALUE, min(x, LARGEST_VALUE)), kept


@lru_cache(maxsize=32)
def _sampler(distribution: NoiseDistribution, slot_bits: int) -> RejectionSampler:
    """Assign the slots, erring towards more comparisons.

    The tails begin where f >= (slot_bits + 2) ln 2, hence w <= 2**-(slot_bits + 2). Their blocks are at least
    as long as the scale, and f rises by 1/scale or more per integer there, so that w falls to less than a
    half from each block to the next. One slot is then enough for a tail if half of it is enough for the first
    block: height * w * tail_size / block_size <= 1/2. If tail_size = block_size, this holds since w(0) = 1
    lets height be at most 2**slot_bits. Otherwise tail_size < 2 * scale, and the weights of the right-hand
    blocks sum up to scale / block_size or more, but for a relative 2**-(slot_bits + 2) beyond them; hence
    height < 2**slot_bits * block_size / scale, as 3 slots left free make up for that and for all rounding.
    With a bound nearer than that, nothing in the tails has any weight.
    """
    n_slots = 2**slot_bits
    reach = distribution.scale * (distribution.power * (slot_bits + 2) * math.log(2)) ** (
        1 / distribution.power
    )
    length = int(min(math.ceil(reach), distribution.bound + 1))  # x from -length to length - 1 have blocks
    most_blocks = n_slots // 64  # on each side: few, to waste few slots, yet enough for them to be flat
    block_size = 2 ** ((length - 1) // most_blocks).bit_length()
    n_blocks = -(-length // block_size)

    first = np.arange(-n_blocks, n_blocks, dtype=np.int64) * block_size
    last = first + block_size - 1
    highest = distribution.weights(np.maximum(first, -last))
    lowest = distribution.weights(np.maximum(last, -first))
    height = int((n_slots - 3 - 2 * n_blocks) / highest.sum())  # a block owns at most one slot too many
    owned = np.floor(height * highest + _MARGIN).astype(np.int64) + 1
    accepted = np.maximum(np.floor(height * lowest - _MARGIN), 0).astype(np.int64)
    undecided = owned - accepted

    free = n_slots - int(owned.sum())
    unowned = np.zeros(free, dtype=np.int64)
    number = np.arange(undecided.sum()) + np.repeat(accepted - (np.cumsum(undecided) - undecided), undecided)
    return RejectionSampler(
        distribution=distribution,
        height=height,
        block_size=block_size,
        first=np.concatenate([np.repeat(first, accepted), np.repeat(first, undecided), unowned]),
        n_accepted=int(accepted.sum()),
        position=np.concatenate([number, unowned + height + 1]).astype(np.float64),
        tail_start=n_blocks * block_size,
        tail_size=max(block_size, 2 ** (math.ceil(distribution.scale) - 1).bit_length()),
    )

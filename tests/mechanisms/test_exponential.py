"""The exponential mechanism and permute-and-flip: exact distributions, and what neighbours may learn."""

import math
from decimal import Context, Decimal, DefaultContext, Inexact, getcontext, localcontext
from fractions import Fraction
from itertools import accumulate, combinations, pairwise, product

import pytest

from pandas_dptree.mechanisms import exponential
from pandas_dptree.mechanisms.exponential import (
    SMALLEST_EXPONENT,
    Entries,
    choose,
    permute_and_flip,
    uniform_below,
    weight_table,
)
from tests.helpers_cases import each
from tests.helpers_exact_laws import Uniform, exact_law, first_to_strike, log_ratios, renyi
from tests.helpers_random import seeded_bytes

F = Fraction


def entries_of(weights, masses):
    totals = accumulate(weight * mass for weight, mass in zip(weights, masses, strict=True))
    return Entries(list(totals), list(weights), list(masses))


def candidates(entries):
    return [(entry, place) for entry, mass in enumerate(entries.masses) for place in range(mass)]


def weights_of(entries):
    return [entries.weights[entry] for entry, _ in candidates(entries)]


# Uniform numbers and weights -----------------------------------------------------------------------------


@each("limit", [1, 2, 3, 5, 7, 8, 9, 127, 128, 129, 255, 256, 257, 1000])
def test_numbers_below_a_limit_are_equally_likely(limit):
    class RejectedError(Exception):
        pass

    n_bytes = -(-(limit - 1).bit_length() // 8)
    counts = [0] * limit
    step = 1 if limit < 1000 else 2**6  # of 10 bits, the last 6 of two bytes are not used
    for number in range(0, 256**n_bytes, step):
        drawn = iter([number.to_bytes(n_bytes)])

        def source(n, drawn=drawn):
            assert n == n_bytes
            for each_bytes in drawn:
                return each_bytes
            raise RejectedError

        try:
            counts[uniform_below(limit, source)] += 1
        except RejectedError:
            pass
    assert len(set(counts)) == 1
    assert counts[0] * limit * 2 > 256**n_bytes // step  # less than half are rejected


EXPONENTS = [F(1, 2), F(2, 3), F(1, 7), F(2, 7), F(355, 113), F(1, 97), F(40), F(10**9), F(10**40, 3)]


@each("digits", [28, 3])
@each("exponent", EXPONENTS)
def test_weights_fall_by_no_more_than_the_exponent_whatever_the_decimal_context(exponent, digits):
    with localcontext(Context(prec=digits)):
        weights = weight_table.__wrapped__(exponent)
    exact = Context(prec=100)
    least = exact.exp(exact.divide(Decimal(-exponent.numerator), Decimal(exponent.denominator)))
    assert weights[0] == 2**96
    for weight, after in zip(weights, (*weights[1:], weights[-1]), strict=True):
        assert after <= weight
        assert after >= exact.multiply(least, Decimal(weight))
        assert after <= exact.add(Decimal("1.000001"), exact.multiply(least, Decimal(weight)))
    assert len(set(weights)) == len(weights)


def test_weights_do_not_depend_on_the_default_context():
    saved, current = DefaultContext.copy(), getcontext().copy()
    expected = weight_table.__wrapped__(F(2, 7))
    try:
        for context in (DefaultContext, getcontext()):
            context.traps[Inexact], context.Emin, context.Emax, context.prec = True, -2, 2, 2
        assert weight_table.__wrapped__(F(2, 7)) == expected
    finally:
        for context, old in ((DefaultContext, saved), (getcontext(), current)):
            context.traps[Inexact], context.Emin, context.Emax = old.traps[Inexact], old.Emin, old.Emax
            context.prec = old.prec


def test_the_weights_of_an_exponent_are_whole_numbers_of_a_stated_length():
    weights = weight_table(F(1, 300))
    assert all(type(weight) is int for weight in weights)
    assert abs(len(weights) - (96 * math.log(2) - math.log(300)) * 300) < 400


@pytest.mark.slow
def test_the_smallest_exponent_has_a_table():
    weights = weight_table.__wrapped__(SMALLEST_EXPONENT)
    assert len(weights) < 66 / SMALLEST_EXPONENT
    with localcontext(Context(prec=100)):
        least = (-Decimal(SMALLEST_EXPONENT.numerator) / SMALLEST_EXPONENT.denominator).exp()
        assert all(after >= weight * least for weight, after in pairwise(weights))


# Distributions -------------------------------------------------------------------------------------------

WORLDS = [
    ((5,), (1,)),
    ((7, 3, 1), (1, 1, 1)),
    ((3, 9, 9, 2), (2, 0, 1, 0)),
    ((1, 6, 4), (0, 2, 1)),
    ((5, 5), (1, 1)),
]  # weights and masses: empty entries, first and last; the heaviest weight has no mass


@each("weights, masses", [*WORLDS, ((4, 9, 2), (3, 0, 5))])
def test_each_number_below_the_total_chooses_one_candidate(weights, masses, monkeypatch):
    entries = entries_of(weights, masses)
    counts = dict.fromkeys(candidates(entries), 0)
    for number in range(entries.totals[-1]):
        monkeypatch.setattr(exponential, "uniform_below", lambda limit, source, number=number: number)
        counts[choose(entries, None)] += 1
    assert list(counts.values()) == weights_of(entries)
    monkeypatch.setattr(exponential, "uniform_below", lambda limit, source: Uniform(0, limit, source))
    law = exact_law(lambda pick: choose(entries, pick))
    assert law == {each: F(count, entries.totals[-1]) for each, count in counts.items()}


class RejectedError(Exception):
    """An attempt failed, and another one begins."""


def strikes_law(monkeypatch, entries, best, n_slots, left):
    """Return the exact distribution of the set of clocks that strike in a slot.

    Attempts are independent, so it is that of one attempt that is accepted. An attempt begins with coins; of
    more candidates than there are two must be the same, so it is rejected.
    """
    n_candidates = len(candidates(entries))

    def run(pick):
        asked = []

        def ask(what):
            asked.append(what)
            if what == "coin" and ("order" in asked or len(asked) > n_candidates + 1):
                raise RejectedError

        monkeypatch.setattr(exponential, "uniform_below", lambda limit, _: Uniform(0, limit, pick, ask))
        try:
            return frozenset(exponential._strikes(entries, best, n_slots, left, None))
        except RejectedError:
            return None

    law = exact_law(run)
    accepted = 1 - law.pop(None, F(0))
    return {struck: probability / accepted for struck, probability in law.items()}


@each("weights, masses", WORLDS)
def test_clocks_strike_in_a_slot_independently_as_their_odds_say(weights, masses, monkeypatch):
    """The law of the accepted sets is a product of the odds, and the first to strike follows formula (2)."""
    entries = entries_of(weights, masses)
    clocks, weight = candidates(entries), weights_of(entries)
    best, n_slots = max(weight), entries.totals[-1] // max(weight) + 2
    start = F(0)
    for slot in range(2):
        left = F(n_slots - 1, n_slots) ** (slot + 1)
        end = 1 - left
        law = strikes_law(monkeypatch, entries, best, n_slots, left)
        strikes = [(end - start) * F(w, best) / (1 - start * F(w, best)) for w in weight]
        expected = {}
        for size in range(len(clocks) + 1):
            for chosen in combinations(range(len(clocks)), size):
                factors = [p if i in chosen else 1 - p for i, p in enumerate(strikes)]
                expected[frozenset(clocks[i] for i in chosen)] = math.prod(factors)
        assert law == expected
        silent = math.prod(1 - start * F(w, best) for w in weight)
        first = [silent * sum(p / len(A) for A, p in law.items() if clock in A) for clock in clocks]
        assert first == first_to_strike(weight, start, end)
        start = end


@each("weights, masses", WORLDS)
def test_permute_and_flip_goes_through_the_slots_until_a_clock_strikes(weights, masses, monkeypatch):
    entries = entries_of(weights, masses)
    clocks, weight = candidates(entries), weights_of(entries)
    n_slots, n_tried = entries.totals[-1] // max(weight) + 2, 3

    def run(pick):
        slots = []

        def strikes(given, best, number, left, source):
            """As the test before has proven of the true one."""
            assert (given, best, number) == (entries, max(weight), n_slots)
            slots.append(left)
            if len(slots) > n_tried:
                raise RejectedError
            start, end = 1 - ([F(1), *slots][-2]), 1 - left
            assert left == F(n_slots - 1, n_slots) ** len(slots)
            struck = []
            for clock, w in zip(clocks, weight, strict=True):
                odds = F((end - start) * w, best - start * w)
                if pick([odds.denominator - odds.numerator, odds.numerator]):
                    struck.append(clock)
            return struck

        monkeypatch.setattr(exponential, "_strikes", strikes)
        monkeypatch.setattr(exponential, "uniform_below", lambda limit, _: Uniform(0, limit, pick))
        try:
            return permute_and_flip(entries, None)
        except RejectedError:
            return None

    law = exact_law(run)
    end = 1 - F(n_slots - 1, n_slots) ** n_tried
    assert [law[clock] for clock in clocks] == first_to_strike(weight, F(0), end)


def test_the_clocks_are_the_coins_of_a_random_permutation():
    """Formula (2) is what McKenna and Sheldon define: visit in random order, and take the first head."""
    weight = [7, 3, 1]
    heads = [F(each, 7) for each in weight]

    def law(unvisited, passed):
        found = [F(0)] * len(weight)
        for place in unvisited:
            chance = passed / len(unvisited)
            found[place] += chance * heads[place]
            rest = law([other for other in unvisited if other != place], chance * (1 - heads[place]))
            found = [a + b for a, b in zip(found, rest, strict=True)]
        return found

    assert law([0, 1, 2], F(1)) == first_to_strike(weight)


@pytest.mark.slow
@each("weights, masses", [((40, 13, 5), (1, 3, 20)), ((1,), (50,)), ((1 << 96, 3), (1, 10**9))])
def test_draws_of_permute_and_flip_follow_the_formula(weights, masses):
    entries, source, n = entries_of(weights, masses), seeded_bytes(5), 5_000
    drawn = [permute_and_flip(entries, source) for _ in range(n)]
    if sum(masses) < 100:
        law = dict(zip(candidates(entries), first_to_strike(weights_of(entries)), strict=True))
        for clock, probability in law.items():
            expected = n * float(probability)
            assert abs(drawn.count(clock) - expected) < 4.5 * math.sqrt(expected)
    else:
        assert set(drawn) == {(0, 0)}


# Privacy -------------------------------------------------------------------------------------------------

EPSILON = F(3, 2)
TABLE = weight_table(EPSILON / 2)


def exponential_law(distances):
    weights = [TABLE[min(each, len(TABLE) - 1)] for each in distances]
    return {place: F(weight, sum(weights)) for place, weight in enumerate(weights)}


def permute_and_flip_law(distances):
    weights = [TABLE[min(each, len(TABLE) - 1)] for each in distances]
    return dict(enumerate(first_to_strike(weights)))


def neighbors_of(distances):
    return [
        moved
        for moves in product((-1, 0, 1), repeat=len(distances))
        if min(moved := tuple(a + b for a, b in zip(distances, moves, strict=True))) >= 0
    ]


BASE = [(0, 0, 1), (0, 1, 2), (0, 1, 90), (2, 1, 0), (1, 1, 1), (1, 2, 2), (98, 99, 100)]
"""Distances of three candidates; the last ones are where the table ends."""


def compared(law):
    """List the logarithms of ratios for each pair of neighbours, and their laws."""
    laws = {}
    for distances in BASE:
        for moved in neighbors_of(distances):
            pair = [laws.setdefault(each, law(each)) for each in (distances, moved)]
            yield log_ratios(*pair), *pair


def test_the_exponential_mechanism_has_a_bounded_range_and_attains_it():
    spans, orders = [], (1.01, 2, 7, 60)
    for ratios, law, other in compared(exponential_law):
        spans.append(max(ratios) - min(ratios))
        assert min(ratios) <= 0 <= max(ratios)
        for order in orders:
            assert renyi(law, other, order) <= order * float(EPSILON) ** 2 / 8 + 1e-12
    assert float(EPSILON) - 1e-9 < max(spans) <= float(EPSILON) + 1e-12


def test_permute_and_flip_is_private_without_a_bounded_range():
    """Its ratios stay within epsilon, but reach it in both directions at once: it has no epsilon**2/8."""
    spans, largest, above = [], [], []
    for ratios, law, other in compared(permute_and_flip_law):
        largest.append(max(map(abs, ratios)))
        spans.append(max(ratios) - min(ratios))
        above.append(max(renyi(law, other, order) / order for order in (1.01, 2, 7)))
    assert max(largest) <= float(EPSILON) + 1e-12
    assert max(spans) > 1.5 * float(EPSILON)
    assert max(above) > 2 * float(EPSILON) ** 2 / 8

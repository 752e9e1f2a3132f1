"""Exact amounts, and how they are rounded for display."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from pandas_dptree.ledger.amounts import Amount, Balance, cap_of, exact_cap
from pandas_dptree.privacy.loss import PrivacyLoss, exact, float_within
from tests.helpers_cases import each

FRACTIONS = st.fractions(min_value=0, max_value=30, max_denominator=10**9)


def charged(number):
    """What a typed number costs."""
    return min(Fraction(number), Fraction(repr(number)))


def balance(loss, state="left", delta=0, cap=None):
    return Balance(
        amount=Amount(Fraction(loss), Fraction(delta)), cap=cap or PrivacyLoss(rho=0.02), state=state
    )


@given(st.floats(min_value=1e-300, max_value=10), st.floats(min_value=0, max_value=1e-4))
def test_caps_survive_the_file(loss, delta):
    for cap in (PrivacyLoss(rho=loss, delta=delta), PrivacyLoss(epsilon=loss, delta=delta)):
        assert cap_of("epsilon" if cap.rho is None else "rho", exact_cap(cap)) == cap


def test_a_cap_is_what_was_typed():
    assert exact_cap(PrivacyLoss(epsilon=0.3, delta=1e-6)) == Amount(Fraction(3, 10), Fraction(1, 10**6))
    assert Fraction(0.3) < Fraction(3, 10)  # the float would not hold three times 0.1


@given(FRACTIONS)
def test_the_largest_number_that_fits(most):
    number = float_within(most)
    assert 0 <= charged(number) <= most
    above = float(Fraction(number) + Fraction(2, 10**15) * (1 + most))
    assert charged(above) > most


def test_nothing_fits_in_nothing():
    assert float_within(Fraction()) == float_within(Fraction(-1, 10)) == 0.0
    assert float_within(Fraction(1, 10**400)) == 0.0


def test_what_rounding_leaves_over_is_nothing():
    cap = PrivacyLoss(rho=1.0, delta=1e-6)
    rest = exact_cap(cap) - Amount(Fraction(1), exact(1e-6))
    left = Balance(amount=rest, cap=cap, state="left")
    assert rest.delta > 0 and left.amount == rest and left.usable == Amount()
    assert not left and left.delta == 0.0 and left.to_dict() == {"rho": 0.0, "delta": 0.0}


@given(FRACTIONS, FRACTIONS)
def test_floats_are_on_the_safe_side(loss, delta):
    left, spent = balance(loss, "left", delta), balance(loss, "spent", delta)
    assert charged(left.rho) <= loss and charged(left.delta) <= delta
    assert max(Fraction(spent.rho), Fraction(repr(spent.rho))) >= loss
    assert left.epsilon is None and spent.epsilon is None


@each(
    ("shown", "expected"),
    [
        (balance("15/1000"), "0.015 of rho=0.02 left"),
        (balance(0), "nothing of rho=0.02 left"),
        (balance(Fraction(1, 10**16)), "nothing of rho=0.02 left"),
        (balance(Fraction(1, 10**13)), "1e-13 of rho=0.02 left"),
        (balance(Fraction(1, 10**16), "requested"), "1e-16 of rho=0.02 requested"),
        (balance("1/3"), "0.333333 of rho=0.02 left"),
        (balance("1/3", "spent"), "0.333334 of rho=0.02 spent"),
        (balance("1/100", "requested"), "0.01 of rho=0.02 requested"),
        (
            balance("1/2", delta="5/10000000", cap=PrivacyLoss(epsilon=1.0, delta=5e-7)),
            "0.5 of epsilon=1 and 5e-07 of delta=5e-07 left",
        ),
    ],
)
def test_balances_are_printed_on_the_safe_side(shown, expected):
    assert repr(shown) == str(shown) == expected


def test_a_balance_is_what_a_verb_takes():
    assert balance("15/1000").to_dict() == {"rho": 0.015}
    cap = PrivacyLoss(epsilon=1.0, delta=1e-6)
    assert balance("1/2", delta="1/1000000", cap=cap).to_dict() == {"epsilon": 0.5, "delta": 1e-6}
    assert balance("1/2") and not balance(0) and not balance(Fraction(1, 10**400))


@given(st.lists(st.tuples(FRACTIONS, FRACTIONS), max_size=5))
def test_amounts_add_up_and_have_a_maximum(pairs):
    amounts = [Amount(*pair) for pair in pairs]
    total = sum(amounts, Amount())
    assert total == Amount(sum(loss for loss, _ in pairs), sum(delta for _, delta in pairs))
    largest = Amount.largest(amounts)
    assert all(each.fits(largest) and each.fits(total) for each in amounts)
    assert largest == Amount(max([0, *(loss for loss, _ in pairs)]), max([0, *(delta for _, delta in pairs)]))
    assert total - total == Amount()


def test_both_components_must_fit():
    cap = Amount(Fraction(1), Fraction(1, 10))
    assert cap.fits(cap)
    assert not Amount(Fraction(11, 10)).fits(cap)
    assert not Amount(Fraction(), Fraction(2, 10)).fits(cap)


def test_what_exceeds_a_cap_by_the_slightest_amount_does_not_fit():
    """As floats, the amounts are equal."""
    crumb, nothing = Fraction(1, 10**30), Fraction()
    for loss, delta in [(Fraction(1), Fraction(1, 10**6)), (Fraction(3, 10), nothing), (nothing, nothing)]:
        cap = Amount(loss, delta)
        assert cap.fits(cap) and (cap - Amount(min(loss, crumb), min(delta, crumb))).fits(cap)
        for more in (Amount(crumb), Amount(nothing, crumb), Amount(crumb, crumb)):
            assert not (cap + more).fits(cap)
            assert (cap + more - more).fits(cap) and not cap.fits(cap - more)
            assert Amount.largest([cap, cap + more, cap]) == cap + more
    assert not Amount(nothing, crumb).fits(Amount(Fraction(5)))  # more of one is not less of the other
    assert not Amount(crumb).fits(Amount(nothing, Fraction(1, 2)))
    for amount in (Amount(nothing - crumb), Amount(nothing, nothing - crumb)):
        assert not Amount().fits(amount)
        left = Balance(amount=amount, cap=PrivacyLoss(rho=1.0, delta=1e-6), state="left")
        assert left.rho == left.delta == 0.0

"""What accounts take, and what they refuse."""

import os
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError, InsufficientBudgetError, LedgerError, RepeatedReleaseError
from pandas_dptree.ledger.amounts import Amount
from pandas_dptree.ledger.store import WHOLE
from pandas_dptree.ledger.transactions import left_of
from tests.helpers_cases import each
from tests.helpers_ledger import NOW, StandIn, charge, create

LARGE = StandIn("9/10", "9/10000000")


def state(ledger):
    """Everything that a charge changes."""
    return ledger.head, [(ledger[name].spent, ledger[name].n_charges) for name in ledger]


def test_ten_times_a_tenth_fits_into_one(ledger, patients):
    for month in range(10):
        charge(patients, note=f"2026-{month}")
    assert not patients.remaining and patients.remaining.rho == 0
    assert patients.spent.rho == 1.0 and patients.n_charges == 10
    before = state(ledger)
    with pytest.raises(InsufficientBudgetError, match=r"has nothing of rho=1 and .* left"):
        charge(patients, StandIn(Fraction(1, 10**300)), note="2026-11")
    assert state(ledger) == before


def test_three_times_a_tenth_fits_into_three_tenths(tmp_path):
    account = create(tmp_path, epsilon=0.3)["patients"]
    for month in range(3):
        charge(account, note=str(month))
    assert account.remaining.amount == Amount()


@given(st.lists(st.decimals("0.0001", "0.3", places=4), min_size=1, max_size=8))
def test_typed_decimals_add_up_as_decimals(tmp_path_factory, typed):
    total = sum(map(Fraction, typed))
    account = create(tmp_path_factory.mktemp("ledger"), epsilon=float(total))["patients"]
    for number, loss in enumerate(typed):
        charge(account, StandIn(min(Fraction(float(loss)), Fraction(loss))), note=str(number))
    assert account.remaining.amount.loss >= 0
    with pytest.raises(InsufficientBudgetError):
        charge(account, StandIn("1/1000"), note="more")


def test_the_error_says_what_is_left(patients):
    charge(patients, LARGE)
    with pytest.raises(InsufficientBudgetError) as error:
        charge(patients, StandIn("2/10"), note="next")
    found = error.value
    assert (found.account, found.remaining.rho, found.requested.rho) == ("patients", 0.1, 0.2)
    assert "'patients' has 0.1 of rho=1 and 1e-07 of delta=1e-06 left" in str(found)
    assert "0.2 of rho=1" in str(found) and "Nothing was charged" in str(found)
    assert found.hint.startswith("plan with a smaller loss: account.divide(n)")


def test_delta_has_a_cap_of_its_own(tmp_path, patients):
    charge(patients, LARGE)
    with pytest.raises(InsufficientBudgetError, match="1e-07 of delta=1e-06 left"):
        charge(patients, StandIn("1/1000", "2/10000000"), note="next")
    pure = create(tmp_path, "pure.sqlite", epsilon=1.0)["patients"]
    with pytest.raises(InsufficientBudgetError, match="'patients' has no delta") as error:
        charge(pure, StandIn("1/10", Fraction(1, 10**300)))
    assert "plan without delta" in error.value.hint


def test_a_release_of_nothing_costs_nothing(patients):
    charge(patients, StandIn("0"))
    assert patients.n_charges == 1 and not patients.spent


@each(
    ("plan", "fact", "hint"),
    [
        (StandIn(privacy_unit=None), "protects each 'person', and the plan each row", "add_account"),
        (StandIn(privacy_unit="clinic"), "and the plan each 'clinic'", "privacy_unit='person'"),
        (StandIn(neighbors="replace"), "is for neighbors=.add_remove., and the plan for", "plan with"),
        (StandIn(currency="epsilon", in_both=False), "adds up rho, .* only in epsilon", "plan with rho=..."),
    ],
)  # fmt: skip
def test_plans_for_others_are_refused(ledger, patients, plan, fact, hint):
    before = state(ledger)
    for attempt in (charge, lambda *a: patients.check({None: a[1]}, "note", allow_repeat=False)):
        with pytest.raises(LedgerError, match=fact) as error:
            attempt(patients, plan)
        assert hint in error.value.hint
    assert state(ledger) == before


def test_an_account_of_rows_takes_plans_of_rows(tmp_path):
    account = create(tmp_path, privacy_unit=dpt.ROWS)["patients"]
    charge(account, StandIn(privacy_unit=None))
    with pytest.raises(LedgerError, match="protects each row, and the plan each 'person'") as error:
        charge(account, StandIn())
    assert "leave privacy_unit out" in error.value.hint


def test_a_plan_without_digest_is_refused(patients):
    plan = StandIn()
    object.__setattr__(plan, "digest", None)
    with pytest.raises(LedgerError, match="has no digest"):
        charge(patients, plan)


def test_repeats_are_refused(ledger, patients):
    first = charge(patients, note="2026-03")
    before = state(ledger)
    with pytest.raises(RepeatedReleaseError) as error:
        charge(patients, note=" 2026-03 ")
    found = error.value
    assert (found.account, found.number, found.requested, found.released) == (
        "patients", first.number, "2026-03-01T12:30:15Z", False,
    )  # fmt: skip
    assert f"charge {first.number}, requested at 2026-03-01T12:30:15Z, but no table was kept" in str(found)
    assert "may still be running" in str(found) and found.hint.startswith("wait until it has ended")
    assert state(ledger) == before
    patients.mark_released([first])
    with pytest.raises(RepeatedReleaseError, match="and was released") as error:
        charge(patients, note="2026-03")
    assert error.value.released and "use the table" in error.value.hint
    assert isinstance(error.value, LedgerError)


def test_repeats_can_be_insisted_on(patients):
    first = charge(patients)
    second = charge(patients, allow_repeat=True)
    assert (second.number, patients.n_charges, patients.spent.rho) == (first.number + 1, 2, 0.2)
    with pytest.raises(RepeatedReleaseError) as error:
        charge(patients)
    assert error.value.number == second.number


def test_other_plans_notes_accounts_and_parts_are_no_repeats(tmp_path):
    ledger = create(tmp_path, epsilon=3.0, parts=["a", "b"])
    other = ledger.add_account("others", epsilon=3.0, privacy_unit="person")
    account = ledger["patients"]
    charge(account)
    charge(account, note="other")
    charge(account, StandIn(name="other"))
    charge(account.part("a"))
    charge(account.part("b"))
    charge(other)
    for again in (account, account.part("a"), account.part("b"), other):
        with pytest.raises(RepeatedReleaseError):
            charge(again)


def test_all_or_none(ledger, patients):
    before = state(ledger)
    with pytest.raises(
        InsufficientBudgetError, match="the release 'third', after 2 others in the same call, needs"
    ):
        charge(
            patients,
            first=StandIn("4/10", name="1"),
            second=StandIn("4/10", name="2"),
            third=StandIn("4/10", name="3"),
        )
    assert state(ledger) == before
    charged = charge(patients, first=StandIn("4/10", name="1"), second=StandIn("6/10", name="2"))
    assert [each.number for each in charged.values()] == [3, 4]
    assert charged["second"].digest == ledger.head.digest
    assert not patients.remaining


def test_the_repeated_one_of_several_is_named(patients):
    charge(patients, costs=StandIn(name="costs"))
    with pytest.raises(RepeatedReleaseError, match=r"^The plan 'costs' was charged"):
        charge(patients, counts=StandIn(name="counts"), costs=StandIn(name="costs"))


def test_names_that_are_stored_alike(ledger, patients):
    plans, before = {1: StandIn(), "1": StandIn("2/10", name="other")}, state(ledger)
    for options in ({"allow_repeat": False}, {"allow_repeat": True}):
        for call in (patients.check, lambda *a, **o: patients.charge(*a, **o, requested=NOW)):
            with pytest.raises(ArgumentError, match="`plans` have two names that a ledger stores alike: '1'"):
                call(plans, "note", **options)
    with pytest.raises(ArgumentError, match="stores alike"):
        patients.kept(plans, "note")
    assert state(ledger) == before
    charge(patients, a=StandIn(), b=StandIn())  # one plan for two tables
    assert patients.n_charges == 2


def test_a_check_takes_nothing(ledger, patients):
    before = state(ledger)
    patients.check({None: StandIn()}, "note", allow_repeat=False)
    assert state(ledger) == before
    charge(patients, LARGE)
    with pytest.raises(InsufficientBudgetError):
        patients.check({None: StandIn("2/10")}, "other", allow_repeat=False)
    with pytest.raises(RepeatedReleaseError):
        patients.check({None: LARGE}, "note", allow_repeat=False)
    with pytest.raises(dpt.ArgumentError, match="`note`"):
        patients.check({None: StandIn()}, "", allow_repeat=False)


def test_the_charge_says_where_it_is(ledger, patients):
    charged = charge(patients, note="2026-03")
    assert (charged.account, charged.part, charged.note) == ("patients", None, "2026-03")
    assert (charged.number, charged.digest) == ledger.head


def test_what_is_left_of_parts():
    cap = Amount(Fraction(10), Fraction(5))
    spent = {
        WHOLE: Amount(Fraction(1), Fraction(1)),
        "a": Amount(Fraction(4), Fraction()),
        "b": Amount(Fraction(2), Fraction(3)),
    }
    assert left_of(cap, spent, "a") == Amount(Fraction(5), Fraction(4))
    assert left_of(cap, spent, "b") == Amount(Fraction(7), Fraction(1))
    assert left_of(cap, spent, "c") == Amount(Fraction(9), Fraction(4))
    assert left_of(cap, spent, None) == Amount(Fraction(5), Fraction(1))
    assert left_of(cap, {}, None) == cap


def test_parts_are_parallel_and_the_whole_is_not(tmp_path):
    account = create(tmp_path, epsilon=1.0, parts=["a", "b"])["patients"]
    a, b = account.part("a"), account.part("b")
    charge(a, StandIn("7/10"))
    charge(b, StandIn("6/10"))
    assert (account.remaining.epsilon, a.remaining.epsilon, b.remaining.epsilon) == (0.3, 0.3, 0.4)
    with pytest.raises(InsufficientBudgetError):
        charge(account, StandIn("4/10"))
    charge(account, StandIn("3/10"))
    assert (account.remaining.epsilon, a.remaining.epsilon, b.remaining.epsilon) == (0.0, 0.0, 0.1)
    with pytest.raises(InsufficientBudgetError, match="in the part 'a'"):
        charge(a, StandIn("1/10"), note="more")
    charge(b, StandIn("1/10"), note="more")
    assert [each.n_charges for each in (account, a, b)] == [4, 1, 2]


def test_times_are_as_requested(ledger, patients):
    charge(patients)
    with ledger._store.reading() as connection:
        [[time]] = connection.execute(
            "SELECT json_extract(content, '$.time') FROM entry WHERE number = 3"
        ).fetchall()
    assert time == NOW.strftime("%Y-%m-%dT%H:%M:%SZ")


def test_another_plan_for_a_table_is_refused(patients, ledger):
    charge(patients, StandIn("1/10"), note="2026-03")
    charge(patients, sums=StandIn("1/10"), note="2026-03")
    other, before = StandIn("2/10"), state(ledger)
    attempts = {None: 3, "sums": 4}
    for name, number in attempts.items():
        for call in (patients.check, lambda *a, **o: patients.charge(*a, **o, requested=NOW)):
            with pytest.raises(RepeatedReleaseError, match=f"by another plan: charge {number}") as error:
                call({name: other}, "2026-03", allow_repeat=False)
            assert "name it: name=..." in error.value.hint and error.value.number == number
    assert state(ledger) == before
    patients.check({None: other}, "2026-04", allow_repeat=False)
    patients.check({None: other}, "2026-03", allow_repeat=True)
    patients.check({"ages": other}, "2026-03", allow_repeat=False)  # a table of its own name
    patients.check({None: replace(other, subject="sums of cost")}, "2026-03", allow_repeat=False)


def test_a_part_must_be_one_of_the_account_that_is_charged(tmp_path):
    """An account may have been opened on a file that was replaced since."""
    with create(tmp_path, parts=["north", "south"], epsilon=1.0) as earlier:
        north = earlier["patients"].part("north")
    os.unlink(earlier.path)
    with create(tmp_path, epsilon=1.0) as ledger:
        with pytest.raises(ArgumentError, match="was opened without parts"):
            charge(north)
        assert ledger["patients"].n_charges == 0


@pytest.mark.parametrize(
    "loss", [(Fraction(-1, 10), Fraction()), (Fraction(1, 10), Fraction(-1)), (0.1, 0.0), (Decimal("0.1"), 0)]
)
def test_losses_are_exact_and_not_negative(patients, monkeypatch, loss):
    """A negative one would be a refund, and a float would round the sum."""
    charge(patients)
    monkeypatch.setattr(StandIn, "losses", SimpleNamespace(in_rho=loss))
    with pytest.raises(LedgerError, match="states a loss that cannot be charged"):
        charge(patients, note="next")
    assert patients.spent.amount.loss == Fraction(1, 10)


def test_the_slightest_amount_above_a_cap_is_refused(tmp_path):
    """Of the loss or of delta, for the whole account or a part, alone or after others in one call."""
    crumb, cap, delta = Fraction(1, 10**30), Fraction(1, 10), Fraction(1, 10**6)
    options = {"delta": 1e-6, "parts": ["a", "b"], "fixed_records": True}
    half, rest = StandIn(cap / 2, delta / 2, name="half"), StandIn(cap / 2, delta / 2, name="rest")
    more = [
        StandIn(cap / 2 + crumb, delta / 2),
        StandIn(cap / 2, delta / 2 + crumb),
        StandIn(cap / 2 + crumb, "0"),
    ]
    with create(tmp_path, epsilon=0.1, **options) as ledger:
        whole = ledger["patients"]
        part, other = whole.part("a"), whole.part("b")
        for account in (whole, part):
            for plan in more:
                with pytest.raises(InsufficientBudgetError, match="Nothing was charged"):
                    charge(account, half=half, more=plan, allow_repeat=True)
        charge(part, half, allow_repeat=True)
        for account in (whole, part):  # what is left for the whole is what is left for its worst part
            for plan in more:
                with pytest.raises(InsufficientBudgetError, match="Nothing was charged"):
                    charge(account, plan, allow_repeat=True)
        charge(other, more[0], allow_repeat=True)
        with pytest.raises(InsufficientBudgetError, match="Nothing was charged"):
            charge(whole, rest, allow_repeat=True)
        charge(whole, StandIn(cap / 2 - crumb, delta / 2), allow_repeat=True)
        for account, left in ((whole, 0), (part, crumb), (other, 0)):
            assert account.remaining.amount == Amount(Fraction(left))
            for plan in (StandIn(left + crumb, "0"), StandIn("0", crumb)):
                with pytest.raises(InsufficientBudgetError, match="Nothing was charged"):
                    charge(account, plan, allow_repeat=True)
        charge(part, StandIn(crumb, "0"), allow_repeat=True)
        for plan in (StandIn(0 - crumb, "0"), StandIn("0", 0 - crumb)):
            with pytest.raises(LedgerError, match="cannot be charged"):
                charge(part, plan, allow_repeat=True)
        assert ledger.verify().number == 6 and part.remaining.amount == Amount()
        ledger.close()
        assert dpt.Ledger.open(ledger.path)["patients"].part("a").remaining.amount == Amount()
    spent = {"a": Amount(half.loss, Fraction()), "b": Amount(crumb, half.delta), WHOLE: Amount(crumb)}
    left = left_of(Amount(cap, delta), spent, None)  # one part has spent most of the loss, the other of delta
    assert left == Amount(cap / 2 - crumb, delta / 2)

"""Accounts: parts, division, display, pickles, marks."""

import pickle
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError, InsufficientBudgetError, RepeatedReleaseError
from tests.helpers_cases import each
from tests.helpers_ledger import StandIn, charge, create


def typed(number):
    return min(Fraction(number), Fraction(repr(number)))


def test_terms_are_attributes(tmp_path):
    account = create(
        tmp_path, rho=0.5, delta=1e-6, parts=["a", "b"], fixed_records=True, privacy_unit="person"
    )["patients"]
    assert account.name == "patients"
    assert account.cap == dpt.plans.base.PrivacyLoss(rho=0.5, delta=1e-6)
    assert (account.privacy_unit, account.neighbors, account.parts) == ("person", "add_remove", ("a", "b"))
    assert account.fixed_records and account.selected is None


def test_parts_are_chosen_once(tmp_path, patients):
    account = create(tmp_path, "parts.sqlite", epsilon=1.0, parts=["2026-01", "2026-02"])["patients"]
    assert account.part("2026-01").selected == "2026-01"
    with pytest.raises(ArgumentError, match=r"did you mean '2026-0.'"):
        account.part("2026-03")
    with pytest.raises(ArgumentError, match="is chosen already: '2026-01'"):
        account.part("2026-01").part("2026-02")
    with pytest.raises(ArgumentError, match="was opened without parts"):
        patients.part("2026-01")
    with pytest.raises(ArgumentError, match="`part` is unknown"):
        account.part(3)


@given(
    st.integers(1, 10**12), st.integers(0, 10**9),
    st.one_of(st.integers(1, 40), st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=9)),
)  # fmt: skip
def test_all_shares_fit_together(tmp_path_factory, loss, delta, shares):
    folder = tmp_path_factory.mktemp("ledger")
    with create(folder, epsilon=loss / 10**12, delta=delta / 10**12) as ledger:
        account = ledger["patients"]
        parts = account.divide(shares)
        for number, part in enumerate(parts):
            charge(account, StandIn(typed(part.epsilon), typed(part.delta)), note=str(number))
        assert account.remaining.amount.loss < account._terms.exact_cap.loss / 10**9
    sizes = [1] * shares if isinstance(shares, int) else shares
    assert len(parts) == len(sizes)
    assert parts[0].epsilon == pytest.approx(loss / 10**12 * sizes[0] / sum(sizes))


def test_shares_are_of_what_is_left(patients):
    charge(patients, StandIn("1/2", "1/2000000"))
    assert [part.to_dict() for part in patients.divide([3, 1])] == [
        {"rho": 0.375, "delta": 3.75e-07},
        {"rho": 0.125, "delta": 1.25e-07},
    ]
    charge(patients, StandIn("1/2", "0"), note="rest")
    with pytest.raises(InsufficientBudgetError, match=r"nothing of rho=1 .* cannot be divided"):
        patients.divide(2)


@each("shares", [0, -1, True, 2.5, "ab", [], [1, 0], [1, -1], [1, float("nan")], ["a"], None, {1: 2}])
def test_other_shares_are_refused(patients, shares):
    with pytest.raises(ArgumentError, match="`shares`"):
        patients.divide(shares)


def test_a_script_that_divides_the_cap_is_refused_the_second_time(patients):
    def script():
        loss = patients.cap.divide(12)[0]
        return charge(patients, StandIn(typed(loss.rho)), note="2026-01")

    script()
    with pytest.raises(RepeatedReleaseError):
        script()


def test_display(tmp_path):
    account = create(tmp_path, epsilon=1.0, parts=["<b>"], account="<i>")["<i>"]
    assert (
        repr(account) == "Account '<i>' (protects each 'person', add_remove): 1 of epsilon=1 left, 0 charges"
    )
    charge(account.part("<b>"), StandIn("1/4"))
    assert repr(account.part("<b>")) == (
        "Account '<i>', part '<b>' (protects each 'person', add_remove): 0.75 of epsilon=1 left, 1 charge"
    )
    html = account.part("<b>")._repr_html_()
    assert "&lt;i&gt;" in html and "&lt;b&gt;" in html and "<i>" not in html and "<b>" not in html
    assert "0.25 of epsilon=1 spent" in html and "0.75 of epsilon=1 left" in html


def test_pickled_accounts_charge_the_same_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    account = dpt.Ledger.create("budget.sqlite", account="patients", rho=1.0, privacy_unit="person")[
        "patients"
    ]
    stored = pickle.dumps(account)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    copy = pickle.loads(stored)
    charge(copy)
    assert account.n_charges == copy.n_charges == 1
    assert repr(copy) == repr(account)


def test_marks(patients, ledger):
    first, second = charge(patients), charge(patients, note="second")
    patients.mark_released([first])
    patients.mark_released([first, second])
    with ledger._store.reading() as connection:
        assert connection.execute("SELECT charge FROM released").fetchall() == [(3,), (4,)]


def test_a_mark_that_fails(patients):
    charged = charge(patients)
    patients._store.close()
    patients._store.path.unlink()
    with pytest.raises(dpt.LedgerError, match="does not exist"):
        patients.mark_released([charged])

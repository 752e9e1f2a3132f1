from fractions import Fraction
from types import SimpleNamespace

import pytest

from pandas_dptree.plans.base import Plan
from tests.helpers_ledger import create


@pytest.fixture
def ledger(tmp_path):
    """A ledger with the account "patients": rho 1, delta 1e-6."""
    with create(tmp_path, rho=1.0, delta=1e-6) as made:
        yield made


@pytest.fixture
def patients(ledger):
    return ledger["patients"]


@pytest.fixture(autouse=True)
def losses(monkeypatch):
    """Stand in for the losses of plans: what they state, in their own currency."""
    if hasattr(Plan, "losses"):
        return

    def stated(plan):
        loss = Fraction(repr(plan.loss.rho or plan.loss.epsilon)), Fraction(repr(plan.loss.delta))
        return SimpleNamespace(
            in_epsilon=loss if plan.loss.rho is None else None, in_rho=None if plan.loss.rho is None else loss
        )

    monkeypatch.setattr(Plan, "losses", property(stated), raising=False)

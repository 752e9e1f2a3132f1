"""Ledgers against an exact model of accounts, under any order of calls."""

import pickle
import tempfile
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError, InsufficientBudgetError, RepeatedReleaseError
from pandas_dptree.ledger.accounts import Several
from tests.helpers_ledger import NOW, StandIn

PARTS = ("a", "b")
AMOUNTS = st.sampled_from(["0", "1/10", "1/5", "3/10", "1/3", "123456789/1000000000"]).map(Fraction)
DELTAS = st.sampled_from(["0", "0", "1/1000000", "1/3000000"]).map(Fraction)
PLANS = st.builds(StandIn, AMOUNTS, DELTAS, name=st.sampled_from("pq"))
NOTES = st.sampled_from(["one", "two", "three"])
WHERE = st.sampled_from([None, *PARTS])


@dataclass
class Model:
    """An account as a plain list of charges."""

    cap: Fraction
    delta: Fraction
    parts: bool
    charges: list = field(default_factory=list)

    def spent(self, component):
        """The most that any unit has lost: by the whole, and by its part."""
        by_part = [
            sum((each[component] for each in self.charges if each[2] in (None, part)), Fraction())
            for part in (PARTS if self.parts else [None])
        ]
        return max(by_part)

    def keeps_to_its_cap(self):
        return self.spent(0) <= self.cap and self.spent(1) <= self.delta


class Ledgers(RuleBasedStateMachine):
    names = Bundle("names")

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "budget.sqlite"
        self.models, self.numbers, self.marked, self.heads = {}, {}, set(), []

    @initialize(target=names)
    def create(self):
        self.ledger = dpt.Ledger.create(
            self.path,
            account="first",
            rho=1.0,
            delta=2e-6,
            privacy_unit="person",
            parts=PARTS,
            fixed_records=True,
        )
        self.models["first"] = Model(Fraction(1), Fraction(2, 10**6), True)
        self.number = 2
        return "first"

    @rule(
        target=names, name=st.sampled_from("xyz"), cap=st.sampled_from([0.3, 0.1, 2.0]), parts=st.booleans()
    )
    def add_account(self, name, cap, parts):
        parts = {"parts": PARTS, "fixed_records": True} if parts else {}
        arguments = {"rho": cap, "delta": 1e-6, "privacy_unit": "person", **parts}
        if name in self.models:
            with pytest.raises(ArgumentError, match="exists already"):
                self.ledger.add_account(name, **arguments)
        else:
            self.ledger.add_account(name, **arguments)
            self.models[name] = Model(Fraction(str(cap)), Fraction(1, 10**6), bool(parts))
            self.number += 1
        return name

    @rule(
        requests=st.lists(st.tuples(names, WHERE, PLANS), min_size=1, max_size=3), note=NOTES,
        insist=st.booleans(), only_check=st.booleans(),
    )  # fmt: skip
    def charge(self, requests, note, insist, only_check):
        """Charge one or several accounts: all that the model expects, or none."""
        requests = [(name, part if self.models[name].parts else None, plan) for name, part, plan in requests]
        expected = self.expected(requests, note, insist)
        chosen = {
            str(i): self.ledger[name] if part is None else self.ledger[name].part(part)
            for i, (name, part, _) in enumerate(requests)
        }
        account = Several(self.ledger._store, chosen)
        plans = {(str(i), f"table {i}"): plan for i, (_, _, plan) in enumerate(requests)}
        call = account.check if only_check else account.charge
        options = {"allow_repeat": insist, **({} if only_check else {"requested": NOW})}
        if expected is not None:
            with pytest.raises(expected):
                call(plans, note, **options)
            return
        charges = call(plans, note, **options)
        if only_check:
            return
        for i, ((name, part, plan), charge) in enumerate(zip(requests, charges.values(), strict=True)):
            self.number += 1
            assert (charge.number, charge.account, charge.part) == (self.number, name, part)
            self.models[name].charges.append((plan.loss, plan.delta, part, plan.subject, note, i))
            self.numbers[charge.number] = charge
            self.heads.append(charge.digest)

    def expected(self, requests, note, insist):
        """The error of the first request that cannot be charged after those before it, or None."""
        kept = {name: list(model.charges) for name, model in self.models.items()}
        try:
            for i, (name, part, plan) in enumerate(requests):
                model = self.models[name]
                repeated = any(each[2:] == (part, plan.subject, note, i) for each in model.charges)
                model.charges.append((plan.loss, plan.delta, part, plan.subject, note, i))
                if repeated and not insist:
                    return RepeatedReleaseError
                if not model.keeps_to_its_cap():
                    return InsufficientBudgetError
        finally:
            for name, charges in kept.items():
                self.models[name].charges = charges

    @rule(data=st.data())
    def mark(self, data):
        if self.numbers:
            numbers = data.draw(st.lists(st.sampled_from(sorted(self.numbers)), max_size=3))
            self.ledger["first"].mark_released([self.numbers[number] for number in numbers])
            self.marked.update(numbers)

    @rule()
    def close(self):
        self.ledger.close()

    @rule()
    def open_again(self):
        self.ledger = dpt.Ledger.open(self.path)

    @rule()
    def pickle(self):
        self.ledger = pickle.loads(pickle.dumps(self.ledger))

    @invariant()
    def is_as_expected(self):
        if not self.models:
            return
        assert list(self.ledger) == list(self.models)
        for name, model in self.models.items():
            account = self.ledger[name]
            assert model.keeps_to_its_cap()
            assert account.spent.amount.loss == model.spent(0) and account.spent.amount.delta == model.spent(
                1
            )
            assert account.remaining.amount.loss == model.cap - model.spent(0)
            assert account.n_charges == len(model.charges)
            for part in PARTS if model.parts else ():
                of_part = Model(
                    model.cap, model.delta, False, [c for c in model.charges if c[2] in (None, part)]
                )
                of_part.charges = [(loss, delta, None, *rest) for loss, delta, _, *rest in of_part.charges]
                assert account.part(part).remaining.amount.loss == model.cap - of_part.spent(0)
        with self.ledger._store.reading() as connection:
            assert {number for (number,) in connection.execute("SELECT charge FROM released")} == self.marked
        assert self.ledger.verify(self.heads[-1] if self.heads else None).number == self.number

    def teardown(self):
        if hasattr(self, "ledger"):
            for head in self.heads:
                self.ledger.verify(head)
            self.ledger.close()
        self.folder.cleanup()


# A note that is used again, with another plan, is mentioned.
TestLedgers = pytest.mark.filterwarnings("ignore:The account:pandas_dptree.DPTreeWarning")(Ledgers.TestCase)
TestLedgers.settings = settings(stateful_step_count=15)

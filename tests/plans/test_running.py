"""Releases read the records, charge the account, and then draw noise, in this order."""

import os
import re
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import pandas_dptree as dpt
from pandas_dptree.output.table_digest import table_digest
from pandas_dptree.plans.charging import Charge, Chargeable
from pandas_dptree.plans.running import Release, carry_out
from tests.helpers_cases import each
from tests.helpers_kinds import DOMAIN, PLANS, RECORDS
from tests.helpers_output import stated_in
from tests.helpers_privacy import LOSS

NOTE = "2026-03"
every_kind = pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)


class Account(Chargeable):
    """Notes what it is asked, and refuses or fails if it is to."""

    def __init__(self, events=None, *, refuses=False, fails=False):
        self.events = [] if events is None else events
        self.refuses, self.fails = refuses, fails

    def kept(self, plans, note):
        return {}

    def check(self, plans, note, *, allow_repeat):
        self.events.append("check")
        self.asked = (dict(plans), note, allow_repeat)
        if self.refuses:
            raise dpt.DPTreeError("Nothing is left.", hint="wait.")

    def charge(self, plans, note, *, allow_repeat, requested):
        assert (dict(plans), note, allow_repeat) == self.asked
        self.requested = requested
        self.events.append("charge")
        if self.fails:
            raise dpt.DPTreeError("The disk is full.", hint="make room.")
        return {
            name: Charge(account="patients", part=None, number=number, digest="ab" * 32, note=note)
            for number, name in enumerate(plans, start=7)
        }

    def keep(self, outputs):
        self.released = list(outputs)
        self.events.append("released")


class Records(pd.DataFrame):
    """Records that note when they are read."""

    events = None

    def __getitem__(self, key):
        if Records.events is not None and Records.events[-1:] != ["read"]:
            Records.events.append("read")
        return super().__getitem__(key)


@pytest.fixture
def events(monkeypatch):
    """List what happens: checks, charges, marks, and every use of the operating system's randomness."""
    found = []
    drawn = os.urandom

    def urandom(size):
        if found[-1:] != ["noise"]:
            found.append("noise")
        return drawn(size)

    monkeypatch.setattr(os, "urandom", urandom)
    return found


@every_kind
def test_the_charge_is_made_before_noise_is_drawn(plan, events):
    account = Account(events)
    plan.release(RECORDS, ledger=account, note=NOTE)
    if plan.privacy_unit is not None:  # randomness chooses what is kept of a unit
        assert events.pop(1) == "noise"
    assert events[:3] == ["check", "charge", "noise"]
    assert events[-1] == "released" and set(events[2:-1]) == {"noise"}
    assert account.asked == ({None: plan}, NOTE, False) and [each.number for each in account.released] == [7]


def test_records_are_read_between_the_question_and_the_charge(events, monkeypatch):
    monkeypatch.setattr(Records, "events", events)
    PLANS["AdditivePlan"].release(Records(RECORDS), ledger=Account(events), note=NOTE)
    assert [each for each in events if each != "noise"] == ["check", "read", "charge", "released"]


def test_rows_are_chosen_at_random_before_the_charge_and_noise_is_drawn_after_it(events):
    plan = dpt.plan(DOMAIN, **LOSS, privacy_unit="person", max_contributions=1)
    plan.release(RECORDS, ledger=Account(events), note=NOTE)
    assert events == ["check", "noise", "charge", "noise", "released"]


@every_kind
def test_a_refusal_costs_no_reading_and_no_noise(plan, events):
    with pytest.raises(dpt.DPTreeError, match="Nothing is left"):
        plan.release("never read", ledger=Account(events, refuses=True), note=NOTE)
    assert events == ["check"]


@every_kind
@each("folder", ["no such folder", b".", 3, os.devnull])
def test_a_folder_that_cannot_be_written_to_costs_nothing(plan, folder, events):
    account = Account(events)
    with pytest.raises(dpt.ArgumentError, match="`temp_folder` must be a folder") as caught:
        plan.release(RECORDS, ledger=account, note=NOTE, temp_folder=folder)
    assert "Hint: " in str(caught.value) and events == []


@every_kind
def test_without_a_charge_on_disk_no_noise_is_drawn(plan, events):
    with pytest.raises(dpt.DPTreeError, match="The disk is full"):
        plan.release(RECORDS, ledger=Account(events, fails=True), note=NOTE)
    chosen = [] if plan.privacy_unit is None else ["noise"]  # at random, what is kept of a unit
    assert events == ["check", *chosen, "charge"]


@every_kind
def test_records_that_cannot_be_read_cost_nothing(plan, events):
    with pytest.raises(dpt.ArgumentError):
        plan.release("records.csv", ledger=Account(events), note=NOTE)
    assert events == ["check"]


def test_what_fails_after_the_charge_is_not_marked_as_released(events, monkeypatch):
    def fail(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("pandas_dptree.plans.measurement.release_frame", fail)
    with pytest.raises(KeyboardInterrupt):
        PLANS["AdditivePlan"].release(RECORDS, ledger=Account(events), note=NOTE)
    assert events == ["check", "charge", "noise"]


def test_the_time_of_a_charge_is_that_of_the_request(monkeypatch):
    account = Account()
    plan, noted = PLANS["AdditivePlan"], []
    prepared = plan._prepared(RECORDS)

    def read(source):
        noted.append(datetime.now(UTC))
        return prepared.read(source)

    before = datetime.now(UTC)
    carry_out({None: Release(plan=plan, read=read, steps=prepared.steps)}, {"ledger": account, "note": NOTE})
    assert before <= account.requested <= noted[0] < before + timedelta(minutes=5)
    assert account.requested.tzinfo is UTC


@every_kind
def test_the_table_names_its_charge(plan):
    released = plan.release(RECORDS, ledger=Account(), note=NOTE)
    table = released.histogram() if isinstance(released, dpt.Distribution) else released
    ledger = {"account": "patients", "charge": 7, "digest": "ab" * 32}
    assert stated_in(table) == {**plan.provenance(), "ledger": ledger}
    assert table.attrs["dp"]["table_digest"] == table_digest(table)
    assert NOTE not in repr(table.attrs)  # a note may be internal


def test_several_releases_are_read_before_any_is_charged(events):
    kinds = ["AdditivePlan", "JointPlan", "DistributionPlan", "ImplicitPlan"]
    account = Account(events)
    log = []

    def noting(plan):
        prepared = plan._prepared(RECORDS)

        def read(source):
            log.append(("read", list(events)))
            return prepared.read(source)

        return Release(plan=plan, read=read, effort=prepared.effort, steps=prepared.steps)

    releases = {kind: noting(PLANS[kind]) for kind in kinds}
    tables = carry_out(releases, {"ledger": account, "note": NOTE, "progress": False})
    assert log == [("read", ["check"])] * 4 and events[:3] == ["check", "charge", "noise"]
    assert list(tables) == kinds and list(account.asked[0]) == kinds
    assert [each.number for each in account.released] == [7, 8, 9, 10]
    assert tables["JointPlan"].attrs["dp"]["ledger"]["charge"] == 8


def test_an_error_in_reading_the_last_of_several_costs_nothing(events):
    plan = PLANS["AdditivePlan"]
    releases = {"good": plan._prepared(RECORDS), "bad": plan._prepared(RECORDS.drop(columns="district"))}
    with pytest.raises(dpt.ColumnsError):
        carry_out(releases, {"ledger": Account(events), "note": NOTE})
    assert events == ["check"]


def test_warnings_come_after_the_mark_and_hold_all_tables(events, monkeypatch):
    seen, named = [], []

    def warn_if_empty(released, totals, causes, table):
        events.append("warning")
        named.append(table)
        seen.append(released)

    monkeypatch.setattr("pandas_dptree.plans.running.warn_if_empty", warn_if_empty)
    plan = PLANS["AdditivePlan"]
    releases = {name: plan._prepared(RECORDS) for name in ("one", "two")}
    tables = carry_out(releases, {"ledger": Account(events), "note": NOTE})
    assert events[-3:] == ["released", "warning", "warning"] and seen == [tables, tables]
    assert named == ["The released table 'one'", "The released table 'two'"]
    (alone,) = carry_out({"one": releases["one"]}, {}).values()
    assert seen[2] is alone


def test_a_mark_that_cannot_be_written_loses_no_table(events, monkeypatch):
    def fail(charges):
        raise dpt.LedgerError("The disk is full.", hint="make room.")

    account = Account(events)
    monkeypatch.setattr(account, "keep", fail)
    with pytest.raises(dpt.DPTreeWarning, match=r"charge 7, note '2026-03'.*, but its table could") as caught:
        PLANS["AdditivePlan"].release(RECORDS, ledger=account, note=NOTE)
    assert caught.value.released.attrs["dp"]["ledger"]["charge"] == 7


VERBS = {
    "counts": lambda **options: RECORDS.dp.tree_counts(["region"], domain="observed", epsilon=1.0, **options),
    "sums": lambda **options: RECORDS.dp.tree_sums(
        ["region"], columns="cost", bounds=(0, 500), domain="observed", epsilon=1.0, **options
    ),
    "means": lambda **options: RECORDS.dp.tree_means(
        ["region"], columns="cost", bounds=(0, 500), domain="observed", epsilon=1.0, **options
    ),
    "agg": lambda **options: RECORDS.dp.tree_agg(
        ["region"], {"n": "count"}, domain="observed", epsilon=1.0, **options
    ),
    "units": lambda **options: RECORDS.dp.tree_units(
        ["region"], domain="observed", epsilon=1.0, privacy_unit="person", max_nodes=2, **options
    ),
    "cdf": lambda **options: RECORDS.dp.cdf("cost", bounds=(0, 500), bins=4, epsilon=1.0, **options),
    "histogram": lambda **options: RECORDS.dp.histogram(
        "cost", bounds=(0, 500), bins=4, epsilon=1.0, **options
    ),
    "quantiles": lambda **options: RECORDS.dp.quantiles(
        "cost", [0.5], bounds=(0, 500), bins=4, epsilon=1.0, **options
    ),
    "ranges": lambda **options: RECORDS.dp.range_counts(
        "cost", [(0, 250)], bounds=(0, 500), bins=4, epsilon=1.0, **options
    ),
    "series": lambda **options: RECORDS["cost"].dp.quantiles(
        [0.5], bounds=(0, 500), bins=4, epsilon=1.0, **options
    ),
    "frame, plan": lambda **options: RECORDS.dp.release(PLANS["AdditivePlan"], **options),
    "array": lambda **options: CELLS["visits"].dp.tree_counts(["city"], epsilon=1.0, **options),
    "array of sums": lambda **options: CELLS["visits"].dp.tree_sums(
        ["city"], bounds=(0, 90), epsilon=1.0, **options
    ),
    "array, plan": lambda **options: CELLS["visits"].dp.release(
        CELLS["visits"].dp.plan(["city"], epsilon=1.0), **options
    ),
    "array, cdf": lambda **options: CELLS["visits"].dp.cdf(
        "age", edges=[0, 18, 40, 65], epsilon=1, **options
    ),
    "array, quantiles": lambda **options: CELLS["visits"].dp.quantiles(
        "age", 0.5, edges=[0, 18, 40, 65], epsilon=1, **options
    ),
    "dataset": lambda **options: CELLS.dp.tree_counts(["city"], epsilon=1.0, **options),
    "dataset of sums": lambda **options: CELLS.dp.tree_sums(["city"], bounds=(0, 90), epsilon=1.0, **options),
    "dataset, plan": lambda **options: CELLS.dp.release(CELLS.dp.plan(["city"], epsilon=1.0), **options),
}
CELLS = xr.Dataset(
    {name: (["city", "age"], np.full((3, 3), 900)) for name in ("visits", "deaths")},
    coords={"city": ["Fresno", "Oakland", "Seattle"]},
)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_charges_once(verb, events):
    account = Account(events)
    released = VERBS[verb](ledger=account, note=NOTE)
    if verb == "units":  # randomness chooses what is kept of a unit
        assert events.pop(1) == "noise"
    assert events[:3] == ["check", "charge", "noise"] and events.count("charge") == 1
    assert events[-1] == "released"
    assert "ab" * 32 in repr(released.attrs["dp"])


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_needs_a_note(verb, events):
    with pytest.raises(dpt.ArgumentError, match="`note` must be given"):
        VERBS[verb](ledger=Account(events))
    assert not events


@each(
    "options, argument, fact",
    [
        ({"note": NOTE}, "note", "has no meaning without `ledger`"),
        ({"allow_repeat": True}, "allow_repeat", "has no meaning without `ledger`"),
        ({"allow_repeat": 1, "note": NOTE}, "allow_repeat", "must be True or False, not 1"),
        ({"ledger": "budget.sqlite", "note": NOTE}, "ledger", "must be an account of a ledger, not a str"),
        ({"ledger": object, "note": NOTE}, "ledger", "must be an account of a ledger"),
        (
            {"ledger": Account(), "note": NOTE, "rng": np.random.default_rng(1)},
            "rng",
            "cannot be given together with `ledger`",
        ),
    ],
)
def test_options_that_do_not_fit_together(options, argument, fact):
    with pytest.raises(dpt.ArgumentError, match=re.escape(fact)) as caught:
        PLANS["AdditivePlan"].release(RECORDS, **options)
    assert caught.value.argument == argument and caught.value.hint

"""Ledgers that were changed by hand, with all triggers removed."""

import json
import shutil
import sqlite3
from contextlib import closing

import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError, LedgerIntegrityError
from pandas_dptree.ledger.entries import digest_after
from tests.helpers_cases import each
from tests.helpers_ledger import TRIGGERS, StandIn, change, charge, copied, create, edited, problems


@pytest.fixture
def original(tmp_path):
    """A ledger with two accounts, one of them with parts; charges 4 to 9, of which the last has no output."""
    ledger = create(tmp_path, rho=1.0, delta=1e-6)
    parts = ledger.add_account("clinics", epsilon=2.0, privacy_unit="clinic", parts=["a", "b"])
    of_clinic = StandIn(privacy_unit="clinic")
    charged = [
        charge(ledger["patients"], note="one"),
        charge(ledger["patients"], StandIn("1/7", "1/10000000"), note="two"),
        charge(parts, of_clinic, note="three"),
        charge(parts.part("a"), of_clinic, note="three"),
        charge(ledger["patients"], note="one", allow_repeat=True),
        charge(parts.part("b"), StandIn("1", privacy_unit="clinic"), note="last"),
    ]
    ledger["patients"].mark_released(charged[:-1])
    ledger.close()
    return ledger


def chained(connection):
    """Compute all numbers and digests anew, as somebody would who hides a change."""
    rows = connection.execute("SELECT content FROM entry ORDER BY number").fetchall()
    connection.execute("DELETE FROM released")
    connection.execute("DELETE FROM entry")
    digest = ""
    for number, (text,) in enumerate(rows, start=1):
        digest = digest_after(digest, text)
        connection.execute("INSERT INTO entry VALUES (?, ?, ?)", (number, text, digest))


def swap(one, other):
    """Swap two entries with their digests."""

    def apply(connection):
        connection.execute(f"UPDATE entry SET number = -1 WHERE number = {one}")
        connection.execute(f"UPDATE entry SET number = {one} WHERE number = {other}")
        connection.execute(f"UPDATE entry SET number = {other} WHERE number = -1")

    return apply


def test_a_ledger_as_it_was_written(original, tmp_path):
    assert original.verify() == original.head
    assert original.head.number == 9
    assert original.verify(original.head.digest) == original.head
    with original._store.reading() as connection:
        digests = [digest for (digest,) in connection.execute("SELECT digest FROM entry")]
    for digest in digests:
        original.verify(f" {digest.upper()}\n")
    assert edited(original, tmp_path).verify() == original.head


FOLLOWS = "entry {} does not have the digest that follows"
ALIEN = "entry {} is not one that a ledger writes"


@each(
    ("statements", "expected"),
    [
        # a charge removed in the middle
        (["DELETE FROM released WHERE charge = 5", "DELETE FROM entry WHERE number = 5"],
         ["entry 5 is missing", FOLLOWS.format(6), "sum of the account 'patients'"]),
        (["DELETE FROM released WHERE charge IN (5, 6)", "DELETE FROM entry WHERE number IN (5, 6)"],
         ["entries 5 to 6 are missing", FOLLOWS.format(7)]),
        # a number changed
        ([change(5, loss="1/8")], [FOLLOWS.format(5), "sum of the account 'patients'"]),
        ([change(4, note="other")], [FOLLOWS.format(4)]),
        ([change(2, loss="2")], [FOLLOWS.format(2)]),
        (["UPDATE entry SET digest = 'x' WHERE number = 6"], [FOLLOWS.format(6), FOLLOWS.format(7)]),
        # rows swapped
        ([swap(4, 5)], [FOLLOWS.format(4), FOLLOWS.format(5), FOLLOWS.format(6)]),
        # the cache
        (["UPDATE spent SET loss = '0' WHERE account = 'patients'"], ["the account 'patients' is not that"]),
        (["UPDATE spent SET charges = 2 WHERE part = 'a'"], ["'clinics', part 'a', is not"]),
        (["UPDATE spent SET loss = 'x' WHERE part = 'a'"], ["'clinics', part 'a', is not"]),
        (["DELETE FROM spent WHERE part = 'b'"], ["sum of the account 'clinics', part 'b', is not"]),
        (["INSERT INTO spent VALUES ('others', '', '1', '0', 1)"], ["sum of the account 'others' is not"]),
        # marks
        (["INSERT INTO released VALUES (2)"], ["entry 2 is marked as released, but is not a charge"]),
        (["INSERT INTO released VALUES (99)"], ["refers to an entry that does not exist: 99"]),
        # all digests computed anew: what is left is what contradicts itself
        ([change(4, loss="19/20"), chained],
         ["entry 5 charges more than is left of the account 'patients': 0.05 of rho=1"]),
        ([change(9, loss="2"), chained],
         ["entry 9 charges more than is left of the account 'clinics': 1.9 of epsilon=2"]),
        ([change(5, delta="1/100000"), chained], ["entry 5 charges more than is left"]),
        ([change(4, loss="-1/10"), chained], ["entry 4 charges less than nothing"]),
        ([change(4, loss="2/20"), chained], [ALIEN.format(4)]),
        ([change(4, loss="1e-1"), chained], [ALIEN.format(4)]),
        ([change(4, loss="x"), chained], [ALIEN.format(4)]),
        ([change(4, loss=0.1), chained], [ALIEN.format(4)]),
        ([change(4, extra=1), chained], [ALIEN.format(4)]),
        ([change(4, kind="note"), chained], [ALIEN.format(4)]),
        ([change(4, time="yesterday"), chained], [ALIEN.format(4)]),
        ([change(4, note="a\nb"), chained], [ALIEN.format(4)]),
        ([change(4, account="others"), chained], ["entry 4 charges the account 'others', which"]),
        ([change(4, part="a"), chained], ["entry 4 charges the part 'a', which the account"]),
        ([change(8, repeats=None), chained], ["entry 8 does not say that it repeats entry 4"]),
        ([change(5, repeats=4), chained], ["entry 5 repeats no earlier entry"]),
        ([change(5, note="one", plan="digest of plan 1/10 0"), chained], ["entry 5 does not say"]),
        ([swap(2, 4), chained], ["entry 2 charges the account 'patients', which"]),
        ([change(3, fixed_records=False, delta="1/10"), chained], ["entry 3 opens an account with parts"]),
        ([change(3, neighbors="replace"), chained], ["entry 3 opens an account with parts"]),
        ([change(3, neighbors="both"), chained], [ALIEN.format(3)]),
        ([change(1, format=1), chained], [ALIEN.format(1)]),
        ([change(1, format=3), chained], [ALIEN.format(1)]),
        ([change(1, keep_tables=1), chained], [ALIEN.format(1)]),
        (["DELETE FROM entry WHERE number = 1", chained], ["entry 1 does not state the format"]),
        (["INSERT INTO entry SELECT 10, content, digest FROM entry WHERE number = 1", chained],
         ["entry 10 states the format again"]),
        (["UPDATE entry SET content = replace(content, ',', ', ') WHERE number = 4", chained],
         [ALIEN.format(4)]),
        (["UPDATE entry SET content = '[]' WHERE number = 4", chained], [ALIEN.format(4)]),
        (["DELETE FROM released", "DELETE FROM entry"], ["there are no entries"]),
        # the schema
        (["PRAGMA user_version = 0"], ["the header of the file states the format 0"]),
        (["DROP INDEX account_by_name",
          "INSERT INTO entry SELECT 10, content, digest FROM entry WHERE number = 2", chained],
         ["entry 10 opens the account 'patients' again", "the index account_by_name is missing"]),
        (["DROP TABLE spent", "CREATE TABLE spent (account, part, loss, delta, charges)"],
         ["the table spent is missing or was changed"]),
        (["DROP TABLE spent"], ["SQLite cannot read it: no such table: spent", "the table spent is missing"]),
        (["CREATE TABLE more (x)"], ["the table more does not belong to a ledger"]),
        (["CREATE TRIGGER quiet AFTER INSERT ON entry BEGIN DELETE FROM spent; END"],
         ["the trigger quiet does not belong to a ledger"]),
    ],
)  # fmt: skip
def test_changes_are_found(original, tmp_path, statements, expected):
    found = problems(edited(original, tmp_path, *statements))
    for problem in expected:
        assert problem in found


@each("name", TRIGGERS)
def test_missing_triggers_are_found(original, tmp_path, name):
    path = copied(original, tmp_path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"DROP TRIGGER {name}")
    found = problems(dpt.Ledger.open(path))
    assert found == f"the trigger {name} is missing or was changed"


def remove_last(connection):
    """Remove the last charge, and set the sums right."""
    connection.execute("DELETE FROM entry WHERE number = 9")
    connection.execute("DELETE FROM spent WHERE part = 'b'")


def test_a_removed_tail_is_found_by_a_noted_head(original, tmp_path):
    copy = edited(original, tmp_path, remove_last)
    assert copy.verify().number == 8
    found = problems(copy, original.head.digest)
    assert found.startswith(
        f"no entry has the digest {original.head.digest[:16]}...: entries were removed from"
    )


def cheaper(connection):
    """Pretend that charge 5 was cheaper."""
    change(5, loss="1/70")(connection)
    chained(connection)
    connection.execute("UPDATE spent SET loss = '3/14' WHERE account = 'patients'")


def test_a_chain_computed_anew_is_found_by_a_noted_head(original, tmp_path):
    copy = edited(original, tmp_path, cheaper)
    assert copy.verify().number == 9
    assert "all digests were computed anew" in problems(copy, original.head.digest)


def test_the_head_of_another_ledger(original, tmp_path):
    with pytest.raises(LedgerIntegrityError, match="or this is another ledger"):
        original.verify(create(tmp_path, "other.sqlite").head.digest)


@each("head", ["", "abc", 3, "x" * 64, b"0" * 64])
def test_heads_are_digests(original, head):
    with pytest.raises(ArgumentError, match="`head` must be a digest of 64"):
        original.verify(head)


def test_damaged_pages_are_found(original, tmp_path):
    shutil.copy(original.path, tmp_path / "copy.sqlite")
    with closing(sqlite3.connect(tmp_path / "copy.sqlite")) as connection:
        [page] = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'charge_by_request'"
        ).fetchone()
        [size] = connection.execute("PRAGMA page_size").fetchone()
    with open(tmp_path / "copy.sqlite", "r+b") as file:
        file.seek(page * size - 200)
        file.write(b"\x00" * 150)
    assert "SQLite" in problems(dpt.Ledger.open(tmp_path / "copy.sqlite"))


def test_many_problems_are_cut_in_the_message(original, tmp_path):
    with pytest.raises(LedgerIntegrityError) as error:
        edited(original, tmp_path, "UPDATE entry SET digest = 'x'").verify()
    assert len(error.value.problems) == 9
    assert str(error.value).count("\n- ") == 9 and "\n- ...\nHint: " in str(error.value)


def test_the_head_itself_can_be_passed(ledger, patients):
    noted = ledger.head
    charge(patients)
    assert ledger.verify(noted) == ledger.verify(noted.digest) == ledger.head


def test_the_slightest_amount_above_a_cap_is_found(tmp_path):
    """All digests and sums are computed anew, so nothing but the cap itself contradicts the entries."""
    from fractions import Fraction

    from pandas_dptree.ledger.store import WHOLE, Store

    with create(tmp_path, epsilon=1.0, delta=1e-6, parts=["a", "b"], fixed_records=True) as ledger:
        head = [entry["content"] for entry in json.loads(ledger.to_json())["entries"]]
    common = {"kind": "charge", "account": "patients", "name": None, "what": "counts", "repeats": None}
    common |= {"user": "somebody", "time": head[0]["time"], "note": "note"}
    names = iter(range(100))

    def found(*charges, cached=()):
        """Write a ledger with charges of (part, loss, delta), and return what is wrong with it."""
        sums, entries = {}, list(head)
        for part, loss, delta in charges:
            own = {"part": part, "loss": str(loss), "delta": str(delta), "plan": f"plan {len(entries)}"}
            entries.append(common | own)
            spent, failure, n = sums.get(part or WHOLE, (0, 0, 0))
            sums[part or WHOLE] = (spent + loss, failure + delta, n + 1)
        store = Store.create(tmp_path / f"{next(names)}.sqlite", entries)
        with store.writing() as connection:
            for part, (loss, delta, n) in (sums | dict(cached)).items():
                values = ("patients", part, str(loss), str(delta), n)
                connection.execute("INSERT INTO spent VALUES (?, ?, ?, ?, ?)", values)
        store.close()
        try:
            dpt.Ledger.open(store.path).verify()
        except LedgerIntegrityError as error:
            return "\n".join(error.problems)
        return ""

    crumb, none, half, delta = Fraction(1, 10**30), Fraction(), Fraction(1, 2), Fraction(1, 10**6)
    assert found((None, half, delta), ("a", half, none), ("b", half, none)) == ""
    for charges in (
        [(None, 2 * half + crumb, none)],
        [(None, half, delta + crumb)],
        [(None, half, delta), (None, half + crumb, none)],
        [("a", half, delta), (None, half, none), ("a", crumb, none)],
        [("a", half, none), ("b", half + crumb, none), (None, half, none)],
        [("a", half, crumb), ("b", crumb, none), (None, crumb, delta)],
    ):
        assert found(*charges).startswith(
            f"entry {2 + len(charges)} charges more than is left of the account"
        )
    for charge_ in ((None, -crumb, delta), (None, half, -crumb)):
        assert found(charge_).startswith("entry 3 charges less than nothing")
    for wrong in ((half - crumb, delta, 1), (half, delta - crumb, 1)):
        problem = found((None, half, delta), cached=[(WHOLE, wrong)])
        assert problem == "the sum of the account 'patients' is not that of its charges"

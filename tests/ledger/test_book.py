"""Ledgers: how they are made, opened and read."""

import os
import pickle
import sqlite3
from contextlib import closing

import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError, CallError, LedgerError
from tests.helpers_cases import each
from tests.helpers_ledger import StandIn, charge, create


def test_accounts_are_found_by_name(ledger, patients):
    clinics = ledger.add_account(
        "clinics", epsilon=1.0, delta=1e-6, privacy_unit="clinic", neighbors="replace"
    )
    assert list(ledger) == ["patients", "clinics"] and len(ledger) == 2
    assert "clinics" in ledger and "doctors" not in ledger and 3 not in ledger
    assert (clinics.cap.epsilon, clinics.privacy_unit, clinics.neighbors) == (1.0, "clinic", "replace")
    with pytest.raises(
        ArgumentError, match=r"did you mean 'clinics'\? this ledger has \['patients', 'clinics'\]"
    ):
        ledger["Clinic"]
    with pytest.raises(ArgumentError, match="is unknown: 3"):
        ledger[3]


def test_names_are_found_by_the_text_that_they_were_made_with(ledger):
    decomposed = " cafe\u0301 "
    made = ledger.add_account(decomposed, epsilon=1.0, privacy_unit="guest", parts=[decomposed])
    assert ledger[decomposed] == ledger["caf\xe9"] == made and decomposed in ledger
    assert made.part(decomposed).selected == "caf\xe9"


def test_terms_are_those_of_the_file(ledger, tmp_path):
    assert ledger["patients"].cap.rho == 1.0
    ledger.close()
    os.unlink(ledger.path)
    create(tmp_path, rho=0.5).close()
    assert ledger["patients"].cap.rho == 0.5


def test_names_are_not_taken_twice(ledger):
    head = ledger.head
    with pytest.raises(ArgumentError, match="exists already: 'patients'"):
        ledger.add_account("patients ", epsilon=2.0, privacy_unit="person")
    assert ledger.head == head
    assert ledger["patients"].cap.rho == 1.0


def test_a_ledger_is_opened_again(tmp_path):
    with create(tmp_path, rho=0.5) as ledger:
        charge(ledger["patients"])
        head = ledger.head
    again = dpt.Ledger.open(tmp_path / "budget.sqlite")
    assert again.head == head and again["patients"].spent.rho == 0.1
    assert charge(again["patients"], note="next").number == 4
    assert again.path == str(tmp_path / "budget.sqlite")


def test_a_closed_ledger_opens_when_it_is_used(ledger, patients):
    ledger.close()
    ledger.close()
    assert charge(patients).number == 3
    assert not [*dpt.Ledger.open(ledger.path)._store.path.parent.glob("*.journal")]


def test_each_ledger_has_digests_of_its_own(tmp_path):
    assert create(tmp_path, "a").head.digest != create(tmp_path, "b").head.digest


def test_pickled_ledgers(ledger):
    assert pickle.loads(pickle.dumps(ledger)).head == ledger.head


def test_display(ledger, patients):
    charge(patients)
    assert repr(ledger).splitlines() == ["Ledger 'budget.sqlite', 3 entries", f"  {patients!r}"]


def test_an_existing_file_is_kept(tmp_path):
    create(tmp_path).close()
    content = (tmp_path / "budget.sqlite").read_bytes()
    with pytest.raises(LedgerError, match=r"exists already.\nHint: open it with dpt.Ledger.open"):
        create(tmp_path)
    assert (tmp_path / "budget.sqlite").read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["budget.sqlite"]


@pytest.mark.parametrize("end", ["-wal", "-journal", "-shm"])
def test_files_of_an_earlier_database_are_not_taken_over(tmp_path, end):
    (tmp_path / f"budget.sqlite{end}").write_bytes(b"old")
    with pytest.raises(LedgerError, match=f"which end in {end}"):
        create(tmp_path)
    assert not (tmp_path / "budget.sqlite").exists()


@each(
    "arguments",
    [
        {"epsilon": 0.0},
        {"privacy_unit": None},
        {"neighbors": "x"},
        {"account": ""},
        {"parts": []},
    ],
)
def test_no_file_is_left_by_wrong_arguments(tmp_path, arguments):
    with pytest.raises(ArgumentError):
        create(tmp_path, **arguments)
    assert not list(tmp_path.iterdir())


def test_no_file_is_left_in_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(LedgerError, match="cannot be created: No such file or directory"):
        create(tmp_path / "missing")
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="cannot be created: Not a directory"):
        create(tmp_path / "file")


def test_calls_that_do_not_match(tmp_path, ledger):
    with pytest.raises(CallError, match=r"`privacy_unit` must be given to create.\nHint: .*dpt.ROWS"):
        dpt.Ledger.create(tmp_path / "a", account="a", epsilon=1.0)
    with pytest.raises(CallError, match="did you mean 'privacy_unit'"):
        ledger.add_account("a", epsilon=1.0, privacyunit="person")
    with pytest.raises(ArgumentError, match=r"dpt.Ledger.open\(path\)"):
        dpt.Ledger("budget.sqlite")
    for path in (None, 3, ""):
        with pytest.raises(ArgumentError, match="`path`"):
            dpt.Ledger.open(path)


def test_a_missing_file_is_not_made(tmp_path):
    with pytest.raises(LedgerError, match=r"'budget.sqlite' does not exist.\nHint: create it with"):
        dpt.Ledger.open(tmp_path / "budget.sqlite")
    assert not list(tmp_path.iterdir())


def other_database(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE entry (number, content, digest)")
        connection.commit()


def later_format(path):
    create(path.parent, path.name).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version=3")
    connection.close()


@pytest.mark.parametrize(
    ("make", "fact"),
    [
        (lambda path: path.write_text("level,count\n"), "is not a ledger"),
        (
            lambda path: path.write_text("level,count\n" * 1000),
            "is not a ledger: it is not an SQLite database",
        ),
        (lambda path: path.write_bytes(b""), "is not a ledger"),
        (lambda path: path.mkdir(), "is a folder"),
        (other_database, "is not a ledger"),
        (later_format, "later version of pandas_dptree: it has format 3"),
    ],
)
def test_other_files_are_refused_and_kept(tmp_path, make, fact):
    make(tmp_path / "other")
    before = {path: path.is_file() and path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(LedgerError, match=f"'other' .*{fact}"):
        dpt.Ledger.open(tmp_path / "other")
    assert {path: path.is_file() and path.read_bytes() for path in tmp_path.iterdir()} == before


def test_odd_paths_and_names(tmp_path):
    name = "bud get?mode=ro&x#y%20é.sqlite"
    account = create(tmp_path, name, account='Patient\'s "é" 患者 %s')
    with dpt.Ledger.open(tmp_path / name) as ledger:
        assert list(ledger) == ['Patient\'s "é" 患者 %s']
        charge(ledger[next(iter(ledger))], StandIn(), note="Robert'); DROP TABLE entry;--")
    assert account.head.number == 3
    assert {path.name.removesuffix("-wal").removesuffix("-shm") for path in tmp_path.iterdir()} == {name}


def test_links_are_followed(tmp_path):
    (tmp_path / "folder").mkdir()
    create(tmp_path / "folder").close()
    (tmp_path / "link").symlink_to(tmp_path / "folder" / "budget.sqlite")
    one, other = dpt.Ledger.open(tmp_path / "link"), dpt.Ledger.open(tmp_path / "folder" / "budget.sqlite")
    charge(one["patients"])
    assert other["patients"].n_charges == 1 and one.path == other.path

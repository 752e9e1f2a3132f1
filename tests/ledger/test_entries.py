"""What entries say: names, notes and terms of accounts."""

import hashlib
import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

import pandas_dptree as dpt
from pandas_dptree.errors import ArgumentError
from pandas_dptree.ledger import entries
from pandas_dptree.ledger.entries import Terms, canonical, checked_note, digest_after, readable
from tests.helpers_cases import each
from tests.helpers_ledger import NOW
from tests.helpers_messages import SECRET, Printing, shows_secret


def terms(name="patients", **changed):
    given = {
        "epsilon": 1.0, "delta": 0.0, "rho": None, "privacy_unit": "person", "neighbors": "add_remove",
        "parts": None, "fixed_records": None,
    }  # fmt: skip
    return Terms.checked(name, **{**given, **changed})


def test_digests_are_plain_sha256():
    text = canonical({"b": 1, "a": "é"})
    assert text == '{"a":"\\u00e9","b":1}'
    first = hashlib.sha256(b'\n{"a":"\\u00e9","b":1}').hexdigest()
    assert digest_after("", text) == first
    assert digest_after(first, text) == hashlib.sha256(f"{first}\n{text}".encode()).hexdigest() != first


def test_notes_have_one_form():
    assert checked_note(" 2026-03 ") == "2026-03"
    assert checked_note("cafe\u0301") == "caf\u00e9"
    assert checked_note("März 📊 報告") == "März 📊 報告"
    assert checked_note("x" * 200) == "x" * 200


@each(
    "note",
    [
        None,
        "",
        "  ",
        3,
        "a\nb",
        "a\x00b",
        "\u202eabc",
        "x" * 201,
        "\ud800",
        "a\u2028b",
        b"x",
        ["x"],
        Printing(),
    ],
)
def test_other_notes_are_refused(note):
    with pytest.raises(ArgumentError, match=r"^`note` .*\nHint: ") as error:
        checked_note(note)
    assert error.value.argument == "note"
    assert not shows_secret(str(error.value))


def test_long_arguments_are_not_quoted():
    with pytest.raises(ArgumentError) as error:
        checked_note([SECRET] * 100)
    assert not shows_secret(str(error.value))


@each(
    ("changed", "argument"),
    [
        ({"name": ""}, "account"),
        ({"name": None}, "account"),
        ({"name": "a\nb"}, "account"),
        ({"privacy_unit": None}, "privacy_unit"),
        ({"privacy_unit": ["person"]}, "privacy_unit"),
        ({"privacy_unit": ("person", "clinic")}, "privacy_unit"),
        ({"neighbors": "both"}, "neighbors"),
        ({"epsilon": None}, "epsilon"),
        ({"rho": 1.0}, "rho"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": float("inf")}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"parts": "2026"}, "parts"),
        ({"parts": []}, "parts"),
        ({"parts": ["a", "a"]}, "parts"),
        ({"parts": ["a", ""]}, "parts"),
        ({"parts": ["a", 3]}, "parts"),
        ({"parts": map(str, range(10_001))}, "parts"),
        ({"parts": ["a"], "neighbors": "replace"}, "parts"),
        ({"fixed_records": True}, "fixed_records"),
        ({"parts": ["a"], "fixed_records": "yes"}, "fixed_records"),
        ({"parts": ["a"], "delta": 1e-6}, "fixed_records"),
        ({"parts": ["a"], "epsilon": None, "rho": 0.1}, "fixed_records"),
        ({"parts": ["a"], "epsilon": None, "rho": 0.1, "fixed_records": False}, "fixed_records"),
    ],
)
def test_terms_are_checked(changed, argument):
    with pytest.raises(ArgumentError, match="\nHint: ") as error:
        terms(**changed)
    assert error.value.argument == argument


@each(
    "accepted",
    [
        {"parts": ["b", "a"]},
        {"parts": ["a"], "delta": 1e-6, "fixed_records": True},
        {"parts": (each for each in "ab"), "epsilon": None, "rho": 0.1, "fixed_records": True},
        {"parts": ["a"], "fixed_records": False},
        {"epsilon": None, "rho": 0.1, "delta": 1e-6},
        {"privacy_unit": dpt.ROWS, "neighbors": "replace"},
        {"privacy_unit": 3},
    ],
)
def test_terms_survive_the_file(accepted):
    checked = terms(**accepted)
    assert Terms.of(json.loads(canonical(checked.to_content(NOW)))) == checked


def test_useless_caps_are_pointed_out():
    with pytest.warns(dpt.DPTreeWarning, match="protects nobody"):
        terms(epsilon=50.0)


def test_times_are_in_utc_and_seconds():
    east = datetime(2026, 3, 1, 1, 30, 15, 999_999, tzinfo=timezone(timedelta(hours=2)))
    assert entries.text_of_time(east) == "2026-02-28T23:30:15Z"
    assert entries.text_of_time(datetime(26, 3, 1, tzinfo=UTC)) == "0026-03-01T00:00:00Z"


@each("error", [OSError, KeyError, ImportError])
def test_a_user_without_a_name(monkeypatch, error):
    def fail():
        raise error

    monkeypatch.setattr(entries.getpass, "getuser", fail)
    assert entries.user_name.__wrapped__() == "unknown"


def test_text_is_cut_and_made_printable():
    assert readable("a\x00b\udcffc\n") == "abc"
    assert readable("x" * 300) == "x" * 197 + "..."

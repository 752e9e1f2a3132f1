"""Nothing that is raised or warned holds the records."""

import errno
import traceback

import pandas as pd
import pytest

from pandas_dptree.errors import ArgumentError, MissingExtraError
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.ingest.contributions import leaf_totals
from pandas_dptree.ingest.frames import Records
from pandas_dptree.ingest.observed_keys import key_frame
from pandas_dptree.ingest.safe_errors import ReadingError, discreetly
from tests.helpers_cases import each


def test_what_other_libraries_say_of_the_records_is_not_repeated(monkeypatch):
    domain = Domain.from_frame(pd.DataFrame({"a": ["x"]}), by=["a"])

    def fail(*args, **kwargs):
        raise RuntimeError("secret-value")

    monkeypatch.setattr(Records, "batches", fail)
    with pytest.raises(ArgumentError) as caught:
        leaf_totals(pd.DataFrame({"a": ["secret-value"]}), domain)
    assert "secret-value" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None


class Panic(BaseException):
    """What polars raises when it panics is no Exception."""


@each("raised", [RuntimeError, Panic, Warning, MemoryError])
def test_nothing_that_is_raised_holds_the_records(monkeypatch, raised):
    domain = Domain.from_frame(pd.DataFrame({"a": ["x"]}), by=["a"])

    def fail(*args, **kwargs):
        try:
            raise ValueError("secret-value")
        except ValueError as cause:
            raise raised("secret-value") from cause

    monkeypatch.setattr(Records, "batches", fail)
    for count in (lambda frame: leaf_totals(frame, domain), lambda frame: key_frame(frame, ["a"])):
        with pytest.raises(ArgumentError) as caught:
            count(pd.DataFrame({"a": ["secret-value"]}))
        assert caught.value.__cause__ is None and caught.value.__context__ is None
        assert "secret-value" not in "".join(traceback.format_exception_only(caught.value))


@each("stop", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_is_not_swallowed(monkeypatch, stop):
    domain = Domain.from_frame(pd.DataFrame({"a": ["x"]}), by=["a"])

    def fail(*args, **kwargs):
        try:
            raise ValueError("secret-value")
        finally:
            raise stop

    monkeypatch.setattr(Records, "batches", fail)
    with pytest.raises(stop) as caught:
        leaf_totals(pd.DataFrame({"a": ["x"]}), domain)
    assert caught.value.__cause__ is None and caught.value.__context__ is None


@each("raised", [RuntimeError, Panic])
def test_an_error_about_a_schema_holds_no_records(raised):
    """An engine may have to read some records to find their types."""

    class Frame(pd.DataFrame):
        def __getitem__(self, name):
            raise raised("secret-value")

    domain = Domain.from_frame(pd.DataFrame({"a": ["x"]}), by=["a"])
    with pytest.raises(ArgumentError, match="cannot be read") as caught:
        leaf_totals(Frame({"a": ["x"]}), domain)
    assert caught.value.__cause__ is None and caught.value.__context__ is None


OutOfMemory = type("OutOfMemoryException", (Exception,), {"__doc__": "As duckdb calls it."})


def chained(inner):
    """An error that another one caused."""
    try:
        try:
            raise inner
        except Exception as error:
            raise ValueError("secret-value") from error
    except ValueError as error:
        return error


MEMORY = "needs more memory than there is"
DISK = "needs more disk space for temporary files than there is"
OTHER = "cannot be counted by its columns"
RAN_OUT = {
    "memory": (MemoryError("secret-value"), MEMORY),
    "memory of duckdb": (OutOfMemory("secret-value"), MEMORY),
    "memory of something inside": (chained(MemoryError()), MEMORY),
    "disk": (OSError(errno.ENOSPC, "secret-value"), DISK),
    "disk of something inside": (chained(OSError(errno.ENOSPC, "secret-value")), DISK),
    "something else": (OSError(errno.ENOENT, "secret-value"), OTHER),
    "a text that says so": (ValueError("out of memory"), OTHER),
}


@each("what", RAN_OUT)
def test_what_ran_out_is_said(what):
    raised, message = RAN_OUT[what]

    def fail():
        raise raised

    with pytest.raises(ArgumentError, match=message) as caught:
        discreetly(["a"], fail)
    assert caught.value.argument == "frame"
    assert "secret-value" not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__cause__ is None and caught.value.__context__ is None


@each(
    "error",
    [
        ReadingError("frame", "is a stream.", hint="make another."),
        MissingExtraError("reading it", package="pyarrow"),
    ],
)
def test_errors_that_hold_nothing_of_the_records_are_passed_on(error):
    def fail():
        try:
            raise ValueError("secret-value")
        except ValueError as cause:
            raise error from cause

    with pytest.raises(type(error)) as caught:
        discreetly(["a"], fail)
    assert caught.value is error
    assert "secret-value" not in "".join(traceback.format_exception(error))

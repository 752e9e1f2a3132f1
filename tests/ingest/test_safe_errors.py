"""Nothing that is raised or warned holds the records."""

import traceback

import pandas as pd
import pytest

from pandas_dptree.errors import ArgumentError
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.ingest.contributions import leaf_totals
from pandas_dptree.ingest.observed_keys import key_frame


def test_what_other_libraries_say_of_the_records_is_not_repeated(monkeypatch):
    domain = Domain.from_frame(pd.DataFrame({"a": ["x"]}), by=["a"])

    def fail(*args, **kwargs):
        raise RuntimeError("secret-value")

    monkeypatch.setattr(pd, "factorize", fail)
    with pytest.raises(ArgumentError) as caught:
        leaf_totals(pd.DataFrame({"a": ["secret-value"]}), domain)
    assert "secret-value" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None


class Panic(BaseException):
    """What polars raises when it panics is no Exception."""


@pytest.mark.parametrize("raised", [RuntimeError, Panic, Warning, MemoryError])
def test_nothing_that_is_raised_holds_the_records(monkeypatch, raised):
    domain = Domain.from_frame(pd.DataFrame({"a": ["x"]}), by=["a"])

    def fail(*args, **kwargs):
        try:
            raise ValueError("secret-value")
        except ValueError as cause:
            raise raised("secret-value") from cause

    monkeypatch.setattr(pd, "factorize", fail)
    for count in (lambda frame: leaf_totals(frame, domain), lambda frame: key_frame(frame, ["a"])):
        with pytest.raises(ArgumentError) as caught:
            count(pd.DataFrame({"a": ["secret-value"]}))
        assert caught.value.__cause__ is None and caught.value.__context__ is None
        assert "secret-value" not in "".join(traceback.format_exception_only(caught.value))


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_is_not_swallowed(monkeypatch, stop):
    domain = Domain.from_frame(pd.DataFrame({"a": ["x"]}), by=["a"])

    def fail(*args, **kwargs):
        raise stop

    monkeypatch.setattr(pd, "factorize", fail)
    with pytest.raises(stop):
        leaf_totals(pd.DataFrame({"a": ["x"]}), domain)

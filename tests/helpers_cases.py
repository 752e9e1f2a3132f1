"""Many cases in one test, for cases that need no line each in a report: seeds, messages, forgeries."""

import functools
import inspect

import pytest


def each(names, cases):
    """Run a test on each case, and report every case that fails.

    It takes what `pytest.mark.parametrize` takes: names of parameters, and values for them. Cases share the
    fixtures of the test. A decorator above another one is the outer loop.
    """
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    rows = [_values(case, len(keys)) for case in cases]
    assert rows, f"no cases of {names}"

    def decorate(test):
        parameters = inspect.signature(test).parameters
        unknown = set(keys) - set(parameters)
        assert not unknown, f"{test.__name__} has no parameters {sorted(unknown)}"

        @functools.wraps(test)
        def looped(**fixtures):
            failures = []
            for name, values in rows:
                arguments = dict(zip(keys, values, strict=True))
                try:
                    test(**fixtures, **arguments)
                except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
                    failures.append(_failure(error, name or arguments))
            if failures:
                raise ExceptionGroup(f"{len(failures)} of {len(rows)} cases failed", failures)

        kept = [each for name, each in parameters.items() if name not in keys]
        looped.__signature__ = inspect.Signature(kept)
        return looped

    return decorate


def _values(case, n):
    """Return the name of a case, if it has one, and its values."""
    if hasattr(case, "marks"):  # of pytest.param
        assert not case.marks, "marks apply to whole tests"
        return case.id, case.values
    return None, [case] if n == 1 else case


def _failure(error, case):
    """Return an error that names its case; pytest's own are no exceptions that a group may hold."""
    if not isinstance(error, Exception):
        error = AssertionError(f"{type(error).__name__}: {error}").with_traceback(error.__traceback__)
    error.add_note(f"in the case {case}")
    return error

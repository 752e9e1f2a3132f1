"""The exit statuses of ``dptree``, for scripts."""

from __future__ import annotations

from enum import IntEnum

from pandas_dptree.errors import ArgumentError, ChargedError, DPTreeError, RefusedReleaseError
from pandas_dptree.ingest.safe_errors import ReadingError

__all__ = ["EXPLANATION", "Status", "status_of"]


class Status(IntEnum):
    """What became of a command."""

    DONE = 0
    FAILED = 1
    ARGUMENTS = 2
    REFUSED = 3
    CHARGED = 4
    STOPPED = 130


EXPLANATION = """Exit status: 0 if all was done, or had been done before; 1 if it failed, and nothing was
charged; 2 for wrong arguments; 3 if the account refused the release; 4 if the release was charged, and its
file was not written; 130 if Ctrl-C stopped it. `dptree verify` and `dptree ledger verify` return 1 if a check
failed."""


def status_of(error: DPTreeError) -> Status:
    """Return the exit status after an error."""
    if isinstance(error, ChargedError):
        return Status.CHARGED
    if isinstance(error, RefusedReleaseError):
        return Status.REFUSED
    if isinstance(error, ArgumentError) and not isinstance(error, ReadingError):
        return Status.ARGUMENTS
    return Status.FAILED

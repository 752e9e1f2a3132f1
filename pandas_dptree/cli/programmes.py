"""The command ``dptree run``: a report from one file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pandas_dptree.cli.charging import SHELL_PHRASES
from pandas_dptree.cli.statuses import Status, status_of
from pandas_dptree.errors import ArgumentError, visible
from pandas_dptree.programmes.describing import described, refusal_of
from pandas_dptree.programmes.document import Programme
from pandas_dptree.programmes.problems import ProgrammeError
from pandas_dptree.programmes.programme import Checked, Period
from pandas_dptree.programmes.running import run_period

__all__ = ["add_options", "run"]


def add_options(command: Any) -> None:
    """Add the options of ``dptree run``."""
    command.add_argument("programme", type=Path, metavar="FILE", help="a programme, such as report.toml")
    period = command.add_mutually_exclusive_group()
    period.add_argument(
        "--for", dest="period", metavar="PERIOD",
        help="the period, such as 2025-03, 2025-W14 or 2025-Q1; or several, as in 2025-01..2025-03",
    )  # fmt: skip
    period.add_argument(
        "--due", action="store_true", help="all periods that are over and not yet released, the oldest first"
    )
    command.add_argument(
        "--dry-run",
        action="store_true",
        help="print what a run would do; nothing is read, charged or written",
    )
    command.add_argument(
        "--allow-repeat", action="append", default=[], metavar="TABLE",
        help="release this table again, though the same period of it was released or charged before; repeat "
        "for others",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Run a programme for all periods that are asked for, or describe it.

    All that are named are checked before the first is run. Of those that are due, the first that fails is
    the last.
    """
    act = _describe if arguments.dry_run else partial(_run, allow_repeat=arguments.allow_repeat)
    try:
        programme = Programme.from_file(arguments.programme)
        periods = _periods(programme, arguments)
        checked: Iterable[Checked] = map(programme.check, periods)
        statuses = [act(each) for each in (checked if arguments.due else list(checked))]
    except ProgrammeError as error:
        text = str(error)
        for phrase, in_shell in SHELL_PHRASES.items():
            text = text.replace(phrase.replace("dpt.", ""), in_shell)
        print(visible(text, lines=True), file=sys.stderr)
        return Status.ARGUMENTS
    except ArgumentError as error:
        if error.argument not in ("period", "first"):
            raise
        flag = "--for" if arguments.period is not None else "--for or --due"
        print(f"dptree: {visible(str(error).replace('`period`', flag), lines=True)}", file=sys.stderr)
        return Status.ARGUMENTS
    if not periods:
        print("Nothing is due.")
    return max(statuses, default=Status.DONE)


def _run(checked: Checked, *, allow_repeat: Sequence[str]) -> int:
    print(visible(run_period(checked, allow_repeat=allow_repeat), lines=True))
    return Status.DONE


def _describe(checked: Checked) -> int:
    """Print what a run would do; the status is that of a run that the account would refuse."""
    print(described(checked), end="\n\n")
    refusal = refusal_of(checked)
    return Status.DONE if refusal is None else status_of(refusal)


def _periods(programme: Programme, arguments: argparse.Namespace) -> Sequence[Period | str | None]:
    """Return the periods that are asked for; what a programme without periods is asked for is its error."""
    if arguments.due:
        return programme.due()
    if arguments.period is None or programme.each is None:
        return [arguments.period]
    return programme.periods(arguments.period)

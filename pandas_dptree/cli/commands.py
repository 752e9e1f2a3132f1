"""The commands of ``dptree``."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from pandas_dptree import verify
from pandas_dptree.cli import demo, programmes
from pandas_dptree.cli.arguments import options_of, values_of
from pandas_dptree.cli.charging import print_charge, running_options, was_charged
from pandas_dptree.cli.files import already_exists, check_out, holds, write, write_table
from pandas_dptree.cli.parser import IN_PROGRAMMES, Run, parser_of
from pandas_dptree.cli.shell_words import flags_of, in_shell_words
from pandas_dptree.cli.statuses import Status, status_of
from pandas_dptree.errors import (
    ArgumentError,
    DomainError,
    DPTreeError,
    DPTreeWarning,
    LedgerError,
    did_you_mean,
    listed,
    visible,
)
from pandas_dptree.hierarchy.domain import Domain
from pandas_dptree.hierarchy.private_keys import split_by
from pandas_dptree.ingest.files.public_tables import read_places
from pandas_dptree.ingest.files.records import open_records, reported
from pandas_dptree.plans.additive import AdditivePlan
from pandas_dptree.plans.base import Plan
from pandas_dptree.plans.joint import JointPlan
from pandas_dptree.plans.options import (
    COUNTS,
    JOINT,
    PLAN,
    SUMS,
    UNIT_PLAN,
    UNITS,
    Running,
    require_supported,
)
from pandas_dptree.verbs import plans, tables

__all__ = ["main"]

_LOGGER = logging.getLogger(__name__)


_AFTER_STOP = "\nHint: `dptree ledger show` tells whether it was charged. Run again, it finds a kept table."


def main(argv: Sequence[str] | None = None) -> int:
    """Run the shell command, with the arguments of the process by default.

    Returns a `Status`; ``dptree verify`` has its own (`pandas_dptree.verify.main`). Errors and
    warnings go to standard error, each in one piece.
    """
    parser = parser_of(_COMMANDS)
    arguments, unknown = parser.parse_known_args(argv)
    if unknown:
        given = visible(" ".join(unknown))
        parser.error(f"unrecognized arguments: {given}{_suggestion(unknown, arguments)}")
    if arguments.log_level is not None:
        logging.basicConfig(
            level=arguments.log_level.upper(), format="%(levelname)s %(name)s: %(message)s", force=True
        )
    try:
        with warnings.catch_warnings():
            # A release that has spent its budget is written, even if warnings are errors.
            warnings.simplefilter("always", DPTreeWarning)
            warnings.showwarning = partial(_print_warning, arguments, warnings.showwarning)
            failed = arguments.run(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
    except DPTreeError as error:
        _print_message(error, arguments)
        return status_of(error)
    except KeyboardInterrupt:
        hint = "" if getattr(arguments, "ledger", None) is None else _AFTER_STOP
        print(f"dptree: Stopped by Ctrl-C.{hint}", file=sys.stderr)
        return Status.STOPPED
    except BrokenPipeError:  # the reader has closed the pipe, as in `dptree demo | head`
        _discard_output()
        failed = None
    except OSError as error:
        _print_message(
            LedgerError(
                f"The system refuses to read or write: {error.strerror}.", hint="nothing was released."
            ),
            arguments,
        )
        if sys.stdout is not None:
            _discard_output()
        return Status.FAILED
    return failed or 0


def _discard_output() -> None:
    """Let what is left for standard output vanish, which would fail again when the process ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_warning(
    arguments: argparse.Namespace, otherwise: Callable[..., None], message: Warning | str, *where: Any
) -> None:
    """Print a warning of this package without the line of code that it points at."""
    if isinstance(message, DPTreeWarning):
        _print_message(message, arguments)
    else:
        otherwise(message, *where)


def _print_message(message: Exception, arguments: argparse.Namespace) -> None:
    """Print an error or a warning of this package."""
    text = visible(in_shell_words(str(message), arguments), lines=True)
    with suppress(OSError):  # standard error is closed
        print(f"dptree: {text}", file=sys.stderr)


def _suggestion(unknown: list[str], arguments: argparse.Namespace) -> str:
    """Return a hint at the options that may have been meant, or an empty string."""
    given = [each.partition("=")[0] for each in unknown if each.startswith("-")]
    for flag in given:
        if flag in IN_PROGRAMMES:
            return (
                f"\nHint: {flag} is stated in a programme, as {IN_PROGRAMMES[flag]} in its table; "
                "`dptree run --help` explains, and in Python the verbs take it."
            )
    hint = did_you_mean(given, flags_of(arguments).values())
    return f"\nHint: {hint.rstrip()}" if hint else ""


def _counts(arguments: argparse.Namespace) -> int:
    return _release_table(arguments, tables.tree_counts, COUNTS)


def _units(arguments: argparse.Namespace) -> int:
    return _release_table(arguments, tables.tree_units, UNITS)


def _sums(arguments: argparse.Namespace) -> int:
    return _release_table(arguments, tables.tree_sums, SUMS, **values_of(arguments))


def _means(arguments: argparse.Namespace) -> int:
    return _release_table(arguments, tables.tree_means, JOINT, **values_of(arguments))


def _release_table(
    arguments: argparse.Namespace, verb: Callable[..., pd.DataFrame], names: Sequence[str], **values: Any
) -> int:
    """Release a table of records by a verb that takes the named options, and print or write it.

    All that is public is read before the records are opened.
    """
    running = _running(arguments)
    options = {**values, **options_of(arguments, names), **running}
    options["domain"] = _domain(arguments, _public_levels(arguments))
    units = [arguments.privacy_unit] if isinstance(arguments.privacy_unit, str) else []
    columns = list(dict.fromkeys([*arguments.by, *units, *values.get("columns", ())]))
    records = open_records(arguments.records, columns, arguments.table)
    with reported(records):
        released = verb(records, by=arguments.by, **options)
    return _deliver(released, running, arguments)


def _running(arguments: argparse.Namespace) -> Running:
    """Return how a command releases. If its output exists, only a table that was kept is returned."""
    if arguments.out is None and sys.stdout is None:
        raise ArgumentError("out", "must be given: standard output is closed.", hint="add --out FILE.")
    check_out(
        arguments.out, ".csv", ".parquet", ".xlsx", force=arguments.force or arguments.ledger is not None
    )
    refusal = None if arguments.force else already_exists(arguments.out)
    return running_options(arguments, refusal)


def _deliver(released: pd.DataFrame, running: Running, arguments: argparse.Namespace) -> int:
    """Write or print a released table, and say what was charged."""
    try:
        status = _write_or_print(released, running, arguments)
    except BrokenPipeError:
        raise
    except OSError as error:  # of standard output, such as a full disk
        _discard_output()
        hint = "run again, the command returns the table, if the ledger keeps tables."
        if "ledger" not in running:
            hint = "the table is lost, and its budget spent: name a file by --out."
        fact = f"Standard output cannot be written: {error.strerror}."
        _print_message(LedgerError(fact, hint=hint), arguments)
        status = Status.CHARGED if was_charged(running) else Status.FAILED
    with suppress(OSError):
        print_charge(running)
    return status


def _write_or_print(released: pd.DataFrame, running: Running, arguments: argparse.Namespace) -> Status:
    """Write a table, or print it if it was charged and cannot be written."""
    out: Path | None = arguments.out
    try:
        if out is not None and not arguments.force and already_exists(out) and holds(out, released):
            print(visible(f"dptree: {str(out)!r} holds this table already."), file=sys.stderr)
        else:
            write_table(released, out, force=arguments.force)
            _LOGGER.info("wrote %s", visible("standard output" if out is None else repr(str(out))))
        status = Status.DONE
    except ArgumentError as error:
        if not was_charged(running):
            raise
        _print_message(error, arguments)
        print("dptree: the table, whose budget is spent, follows on standard output.", file=sys.stderr)
        write_table(released, None, force=False)
        status = Status.CHARGED
    if sys.stdout is not None:
        sys.stdout.flush()
    return status


def _public_levels(arguments: argparse.Namespace) -> list[Any]:
    """List the key columns whose keys are public."""
    private = getattr(arguments, "private_keys", None)
    return list(arguments.by) if private is None else split_by(arguments.by, private)[0]


def _domain(arguments: argparse.Namespace, by: list[str]) -> Domain | str | None:
    """Read the public keys of the columns `by`, and the structural zeros.

    It is ``"observed"`` if the arguments say so, and None if all keys are private.
    """
    if not by:
        for argument in ("domain", "structural_zeros"):
            if getattr(arguments, argument) is not None:
                fact = "cannot be given if all keys are private."
                raise ArgumentError(argument, fact, hint="leave it out.")
        return None
    if arguments.domain is None:
        raise DomainError(
            f"must be given for the public keys {listed(by)}.",
            hint="pass a .csv or .parquet file of these keys. Keys that nobody can list are private: see "
            "`dptree counts --help`.",
        )
    flags = [] if arguments.structural_zeros is None else [arguments.structural_zeros]
    if arguments.domain == "observed":  # the domain of a plan is a path
        if flags:
            raise ArgumentError(
                "structural_zeros",
                "names a column of the domain, but the domain is observed.",
                hint="pass a file of keys as --domain.",
            )
        return "observed"
    _LOGGER.info("reading the public keys in %s", visible(repr(str(arguments.domain))))
    places = read_places(Path(arguments.domain), by, arguments.structural_zeros)
    return Domain.from_frame(places, by=by, structural_zeros=arguments.structural_zeros)


def _plan(arguments: argparse.Namespace) -> None:
    check_out(arguments.out, ".json", force=arguments.force)
    values: dict[str, Any] = {"columns": []}
    if arguments.column is not None or arguments.bounds is not None:
        values = values_of(arguments)
    options = options_of(arguments, (*PLAN, "private_keys", "max_nodes"))
    if arguments.units:
        options = _options_of_units(options, values)
    elif options.pop("max_nodes") is not None:
        fact = "bounds the nodes of distinct units, which are not counted."
        raise ArgumentError("max_nodes", fact, hint="add --units to count them, or leave it out.")
    domain: Any = _domain(arguments, _public_levels(arguments))
    plan: Plan[Any]
    if arguments.units:
        plan = plans.plan_units(domain, **options)
    elif len(values["columns"]) > 1 and arguments.private_keys is None:
        hint = "leave it out, or plan each column separately with its part of the loss."
        of_plan = {name: given for name, given in options.items() if name != "private_keys"}
        own = require_supported(SUMS, of_plan, what="a plan for sums of several columns", hint=hint)
        plan = plans.plan_sums(domain, **values, **own)
    elif values["columns"]:
        column = values["columns"][0]  # the only one; with private keys, any of them is refused
        plan = plans.plan(domain, column=column, bounds=values["bounds"][column], **options)
    else:
        plan = plans.plan(domain, **options)
    if arguments.out is not None:
        text = json.dumps(plan.to_dict())
        write(arguments.out, lambda path: path.write_text(text, encoding="utf-8"), force=arguments.force)
    print(visible(plan, lines=True))


def _options_of_units(options: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a plan that counts distinct units; raise ArgumentError if others are given."""
    what = "a plan for distinct units"
    if values["columns"]:
        raise ArgumentError("column", f"has no meaning for {what}.", hint="leave it out.")
    hint = "leave it out; max_nodes bounds in how many nodes a unit is counted."
    return require_supported(UNIT_PLAN, options, what=what, hint=hint)


def _release(arguments: argparse.Namespace) -> int:
    running, plan = _running(arguments), _read_plan(arguments)
    print(visible(plan.headline), file=sys.stderr)
    records = _records_of(plan, arguments)
    with reported(records):
        released = plan.release(records, **running)
    return _deliver(released, running, arguments)


def _secret_check(arguments: argparse.Namespace) -> None:
    """Print exact numbers of the records, or write them to a file of the user alone."""
    check_out(arguments.out, ".txt", force=arguments.force)
    plan = _read_plan(arguments)
    records = _records_of(plan, arguments)
    with reported(records):
        text = plan.secret_check(records, temp_folder=arguments.temp_folder).to_text() + "\n"

    def fill(path: Path) -> None:
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")

    if arguments.out is not None:
        write(arguments.out, fill, force=arguments.force)
    else:  # an error about the encoding would quote the text
        encoding = sys.stdout.encoding or "utf-8"
        sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


def _records_of(plan: Plan[Any], arguments: argparse.Namespace) -> Any:
    """Open the records for a plan."""
    others = [name for name in (plan.privacy_unit, *_summed(plan)) if name is not None]
    columns = list(dict.fromkeys(map(str, [*plan.level_names[1:], *others])))
    return open_records(arguments.records, columns, arguments.table)


def _verify(arguments: argparse.Namespace) -> int:
    given = {"--digest": arguments.digest, "--ledger-digest": arguments.ledger_digest}
    noted = [part for flag, digest in given.items() if digest is not None for part in (flag, digest)]
    return verify.main([*noted, "--", arguments.plan, arguments.table])


def _summed(plan: Plan[Any]) -> list[Hashable | None]:
    """List the columns whose values a plan reads, with None for the records."""
    parts = plan.plans.values() if isinstance(plan, JointPlan) else [plan]
    return [part.quantity.column for part in parts if isinstance(part, AdditivePlan)]


def _read_plan(arguments: argparse.Namespace) -> Plan[Any]:
    """Read a plan of any kind, with the domain that it was made for."""
    unreadable = f"cannot be read from {str(arguments.plan)!r}"
    hint = "write it with `dptree plan --out`."
    try:
        stored = json.loads(arguments.plan.read_text(encoding="utf-8"), object_pairs_hook=_without_duplicates)
        by, private = list(stored["levels"][1:]), stored.get("private_keys") or []
        if not all(isinstance(name, str) for name in by) or by[len(by) - len(private) :] != private:
            raise TypeError
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        raise ArgumentError("plan", f"{unreadable}.", hint=hint) from None
    domain: Any = _domain(arguments, by[: len(by) - len(private)])
    try:
        return Plan.from_dict(stored, domain, digest=arguments.digest)
    except DomainError:
        raise
    except ArgumentError as error:
        if error.argument == "digest":
            raise
        raise ArgumentError("plan", f"{unreadable}: {error.fact}", hint=error.hint) from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dict of the entries of a JSON object, or raise ValueError if two have the same name."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError("an entry is given twice")
    return entries


_COMMANDS: Mapping[str, Run] = {
    "counts": _counts,
    "units": _units,
    "sums": _sums,
    "means": _means,
    "plan": _plan,
    "release": _release,
    "secret-check": _secret_check,
    "verify": _verify,
    "demo": demo.run,
    "run": programmes.run,
}

"""What a run of a programme would do, in words."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from pandas_dptree.errors import LedgerError, visible
from pandas_dptree.ledger.accounts import Account
from pandas_dptree.plans.base import Plan
from pandas_dptree.plans.crossed import CrossedPlan
from pandas_dptree.plans.distribution import DistributionPlan
from pandas_dptree.plans.implicit import ImplicitPlan
from pandas_dptree.plans.joint import JointPlan
from pandas_dptree.plans.means import blank_below, mean_error
from pandas_dptree.plans.measurement import Measurement
from pandas_dptree.plans.quantiles import QuantilePlan
from pandas_dptree.plans.units import UnitPlan
from pandas_dptree.programmes.keeping import shelf_of, taken
from pandas_dptree.programmes.problems import Problem
from pandas_dptree.programmes.programme import Checked, Source, Table
from pandas_dptree.programmes.tables import spent_by

__all__ = ["described", "refusal_of"]

_INDENT: Final = " " * 9
_MOST_LISTED = 12
"""The levels, or margins, whose errors are listed one by one."""

_ROWS: Final = 500
"""The size of the group for which errors of means are stated."""
_CLASSES: Final = {"E": 0.5, "A": 0.05}
"""The largest relative errors of the classes of Statistics Canada that a note names."""


def described(checked: Checked) -> str:
    """Return what a run would do: plans with their errors, the account, what would be written, and notes."""
    notes = [*checked.notes, *_class_notes(checked)]
    pages = _page_line(checked)
    count = f"{len(notes)} note{'s' * (len(notes) > 1)}:" if notes else ""
    lines = [
        _head(checked),
        "",
        *_table_lines(checked),
        _together(checked),
        "",
        *_account_lines(checked),
        *_files(checked),
        *filter(None, [" ".join(filter(None, [pages, count]))]),
        *map(str, notes),
        "Dry run: nothing was read, charged or written.",
    ]
    return visible("\n".join(lines), lines=True)


def _head(checked: Checked) -> str:
    """Say which programme this is, and what is read."""
    name = "The programme" if checked.path is None else checked.path.name
    period = "" if checked.period is None else f" for {checked.period.unit} {checked.period.text}"
    stated = [source for source in checked.sources.values() if source.types is not None]
    opened = [source for source in checked.sources.values() if source.types is None]
    said = (
        f" Nothing is read from {_places(opened, checked.folder)} but column names and types."
        if opened
        else ""
    )
    said += f" {_places(stated, checked.folder)} is not opened." if stated else ""
    return f"{name}{period}.{said}"


def _places(sources: Sequence[Source], folder: Path) -> str:
    return ", ".join(os.path.relpath(file, folder) for source in sources for file in source.files)


# Tables ---------------------------------------------------------------------------------------------------


def _table_lines(checked: Checked) -> Iterator[str]:
    """Describe each table in two lines."""
    tables = list(checked.tables.values())
    width = max([8, *(len(table.name) for table in tables)])
    subjects = [_subject(table) for table in tables]
    for table, subject in zip(tables, subjects, strict=True):
        digest = "" if table.plan.digest is None else f"    plan {table.plan.digest[:8]}…"
        yield f"{table.name:<{width}} {subject:<{max(map(len, subjects))}}    {_loss(table)}{digest}"
        for line in _errors(table):
            yield f"{' ' * width} {line}"


def _loss(table: Table) -> str:
    return ", ".join(f"{name} {number:.6g}" for name, number in table.plan.loss.to_dict().items())


def _subject(table: Table) -> str:
    """Say what a table holds: its verb, columns, levels and rows."""
    plan = table.plan
    by = f" by {', '.join(map(str, plan.level_names[1:]))}" if plan.level_names[1:] else ""
    if isinstance(plan, DistributionPlan):
        bins, edges = plan.bins, plan.bins.edges
        return f"distribution of {bins.column}, {bins.n_bins} bins from {edges[0]:g} to {edges[-1]:g}{by}"
    if isinstance(plan, JointPlan) and table.verb != "agg":
        columns = [
            str(part.quantity.column) for part in plan.plans.values() if part.quantity.column is not None
        ]
        return f"{table.verb} of {_joined(columns)}{by} ({_rows(next(iter(plan.plans.values())))} rows)"
    first = next(iter(plan.plans.values())) if isinstance(plan, JointPlan) else plan
    rows = f" ({_rows(first)} rows)" if isinstance(first, Measurement) else ""
    return f"{plan.subject}{rows}"


def _rows(plan: Measurement) -> str:
    return f"{sum(plan._n_listed):,}"


def _joined(names: Sequence[str]) -> str:
    """Join names: a, b and c."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _errors(table: Table) -> Iterator[str]:
    """Say how accurate a table will be."""
    plan = table.plan
    if isinstance(plan, Measurement):
        gap = "" if plan.gap is None else f" Gap to the best possible: {plan.gap:.4f}."
        yield f"standard error: {_by_level(plan)}.{gap}"
        if isinstance(plan, UnitPlan):
            yield f"{_counted_once(plan)}; max_contributions, which bounds rows, has no part in it."
    elif isinstance(plan, JointPlan):
        yield from _errors_of_several(plan, counts=table.verb != "means")
    elif isinstance(plan, DistributionPlan):
        levels = zip(plan.level_names, plan.errors, strict=True)
        several = len(plan.level_names) > 1
        shown = ", ".join(f"{level} {_short(error)}" if several else _short(error) for level, error in levels)
        yield f"standard error of the number below a value: {shown}."
    elif isinstance(plan, QuantilePlan):
        measured = "; ".join(dict.fromkeys(plan.to_frame()["measured"]))
        yield f"q = {', '.join(f'{q:g}' for q in plan.q)}: {measured}. Errors depend on the records."
    elif isinstance(plan, ImplicitPlan):
        frame = plan.to_frame()
        private = frame[frame["found_from"].notna()]
        found = zip(private["level"], private["found_from"], strict=True)
        shown = ", ".join(f"{level} from {least:,} rows" for level, least in found)
        yield f"shown with probability 0.95: {shown}. What is not shown is pooled, and is not zero."
    else:
        yield plan.headline.partition(":")[2].strip() + "."


def _errors_of_several(plan: JointPlan, *, counts: bool) -> Iterator[str]:
    """Say how accurate counts and sums are on each level, and means of the finest."""
    means = {name: plan.plans[name] for name in plan.means}
    for name, part in plan.plans.items():
        if name not in means and name in plan._asked and (counts or part.quantity.column is not None):
            yield f"standard error of {name}: {_by_level(part)}."
    if plan.units is not None:
        yield f"{_counted_once(plan.units)}."
    if means:
        count = next(part for part in plan.plans.values() if part.statistic == "count")
        errors = ", ".join(f"{name} {_short(mean_error(part, _ROWS))}" for name, part in means.items())
        least = max(blank_below(part, count) for part in means.values())
        yield (
            f"standard error in {_one(plan.level_names[-1])} with {_ROWS} rows: {errors}. Means of fewer "
            f"than about {math.ceil(least):,} rows are left blank."
        )


def _counted_once(plan: UnitPlan) -> str:
    """Say how often a unit is counted."""
    return f"counts each {plan.privacy_unit} once in a node, {plan._rows_in_words}"


def _one(level: Hashable) -> str:
    """Name one node of a level: a clinic, an area."""
    return f"{'an' if str(level)[:1].lower() in 'aeio' else 'a'} {level}"


def _short(error: float) -> str:
    """Format an error with one decimal, or a small one with two digits."""
    return f"{error:,.1f}" if error >= 1 else f"{error:.2g}"


def _by_level(plan: Measurement) -> str:
    shown = _shown(plan)
    if len(shown) <= _MOST_LISTED:
        return ", ".join(f"{level} {_short(error)}" for level, error in shown)
    (least, smallest), *_, (most, largest) = sorted(shown, key=lambda each: each[1])
    return (
        f"from {_short(smallest)} ({least}) to {_short(largest)} ({most}) in {len(shown)} margins; "
        "print the plan for all"
    )


def _shown(plan: Measurement) -> list[tuple[str, float]]:
    """Return the names of the levels, or margins, of the table, with their standard errors."""
    levels = zip(plan.level_names, plan.std_errors.tolist(), plan._n_listed, strict=True)
    return [(str(name), error) for name, error, n in levels if n]


# The account ----------------------------------------------------------------------------------------------


def _together(checked: Checked) -> str:
    """Say what all tables spend, and whom the sources protect."""
    budget = checked.budget.loss
    parts = [spent_by(table, budget) for table in checked.tables.values()]
    spent, delta = (sum(each, Fraction(0)) for each in zip(*parts, strict=True))
    name, whole = ("rho", budget.rho) if budget.rho is not None else ("epsilon", budget.epsilon)
    assert whole is not None
    pairs = ((spent, whole), (delta, budget.delta))
    is_all = all(math.isclose(float(part), limit, rel_tol=1e-9) for part, limit in pairs)
    share = "exactly the budget" if is_all else f"of a budget of {budget.in_words}"
    with_delta = f" and delta {float(delta):.6g}" if delta else ""
    units = "; ".join(dict.fromkeys(_protects(each, checked) for each in checked.sources.values()))
    return f"Together {name} {float(spent):.6g}{with_delta} ({share}), protecting {units}."


def _protects(source: Source, checked: Checked) -> str:
    if source.privacy_unit is None:
        return f"each row, {source.neighbors}"
    own = [table.plan for table in checked.tables.values() if table.source == source.name]
    if own and all(isinstance(plan, UnitPlan) for plan in own):
        return f"each {source.privacy_unit}, {source.neighbors}"
    most = source.max_contributions or 1
    return f"each {source.privacy_unit} with at most {most} row{'s' * (most > 1)}, {source.neighbors}"


def _account_lines(checked: Checked) -> Iterator[str]:
    """Say what is left of the account, before and after, or that nobody keeps the sum."""
    account, budget = checked.account, checked.budget
    if account is None or budget.ledger is None or budget.note is None:
        yield "No ledger: nobody keeps the sum of what several runs spend."
        yield from (f"{_INDENT}Taken: {each}" for each in _taken(checked))
        return
    kept = [f"{_INDENT}Taken: {each}" for each in _taken(checked)]
    start = f"Account {account.name} of {os.path.relpath(budget.ledger, checked.folder)}, note {budget.note}:"
    new = _unreleased(checked, account, budget.note)
    if not new:
        yield f"{start} released. A run makes the outputs again, and charges nothing."
        yield from kept
        return
    if error := refusal_of(checked):
        yield f"{start} a run would be refused. {error.fact}"
        yield f"{_INDENT}Hint: {error.hint}"
        return
    n_kept, n_tables = len(checked.tables) - len(new), len(checked.tables)
    yield f"{start} {f'{n_kept} of {n_tables} tables are released' if n_kept else 'not yet charged'}."
    yield from kept
    yield f"{_INDENT}{_balance(checked, account, new)}"


def _taken(checked: Checked) -> list[str]:
    """Say which releases a run would take."""
    plans = {name: table.plan for name, table in checked.tables.items()}
    with shelf_of(checked, frozenset()) as shelf:
        return taken(shelf, {name: plans[name] for name in shelf.kept(plans)})


def _unreleased(checked: Checked, account: Account, note: str) -> dict[Hashable, Plan[Any]]:
    """Return the plans whose tables the ledger has not kept."""
    plans: dict[Hashable, Plan[Any]] = {table.name: table.plan for table in checked.tables.values()}
    kept = account.kept(plans, note)
    return {name: plan for name, plan in plans.items() if name not in kept}


def refusal_of(checked: Checked) -> LedgerError | None:
    """Return the error with which the account would refuse a run; None if it would not."""
    account, note = checked.account, checked.budget.note
    try:
        if account is not None and note is not None and (new := _unreleased(checked, account, note)):
            account.check(new, note, allow_repeat=False)
    except LedgerError as error:
        return error
    return None


def _balance(checked: Checked, account: Account, plans: Mapping[Hashable, object]) -> str:
    """Say what is left now and after a run, and how many more runs fit."""
    name, cap = next(iter(account.cap.to_dict().items()))
    left = account.remaining.amount
    spent = sum((spent_by(checked.tables[str(each)], account.cap)[0] for each in plans), Fraction(0))
    after = left.loss - spent
    text = f"now left {float(left.loss):.6g} of {name} {cap:g}    after this run {float(after):.6g}"
    if not spent or len(plans) < len(checked.tables):
        return f"{text}."
    more = int(after / spent)
    return f"{text}, which is {more:,} more run{'s' * (more != 1)} of this kind."


# Outputs and notes ----------------------------------------------------------------------------------------


def _files(checked: Checked) -> Iterator[str]:
    """List the files that a run writes."""
    kinds = [kind for kind in checked.outputs.write if kind != "html"]
    suffix = kinds[0] if len(kinds) == 1 else f"{{{','.join(kinds)}}}"
    names = [f"{name}.{suffix}" for name in checked.tables] if kinds else []
    names += ["index.html"] if "html" in checked.outputs.write else []
    folder = os.path.relpath(checked.outputs.folder, checked.folder)
    yield f"Would write  {folder}/{'  '.join(names)}" if names else "Would write nothing."


def _page_line(checked: Checked) -> str:
    """Say with what a change compares."""
    before = checked.outputs.before
    changes = [
        each for each in checked.page.show or () if each.get("as") == "change" and "before" not in each
    ]
    if not changes or before is None or "html" not in checked.outputs.write:
        return ""
    found = "found" if before.is_dir() else "not found: left out"
    names = ", ".join(f"{each.get('table')}.change" for each in changes)
    return f"Page: {names} compares with {os.path.relpath(before, checked.folder)} ({found})."


def _class_notes(checked: Checked) -> Iterator[Problem]:
    """Say how large the nodes of the finest level must be to be reliable."""
    for table in checked.tables.values():
        plan = table.plan
        counted = {"counts": "rows", "units": "units"}.get(table.verb)
        if not isinstance(plan, Measurement) or counted is None or len(plan.level_names) < 2:
            continue
        (level, error), above = _shown(plan)[-1], plan.level_names[-2]
        least = {name: math.ceil(error / most) for name, most in _CLASSES.items()}
        nested = not isinstance(plan, CrossedPlan) and len(plan.level_names) > 2
        coarser = f'down_to = "{above}", or ' if nested else ""
        yield Problem(
            (), table.line,
            f"at a standard error of {error:.3g}, {_one(level)} needs {least['E']:,} {counted} to be of "
            f"class E or better and {least['A']:,} to be of class A.",
            f"{coarser}a larger share.",
        )  # fmt: skip

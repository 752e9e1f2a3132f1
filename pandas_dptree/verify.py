"""Check a released table against its plan, from outside: ``python verify.py plan.json counts.csv``.

This file needs Python 3.11 or later and nothing else. It shares no code with the library that made the
release, so it can find the library's errors too. Budgets are added up in exact fractions, and deltas are
computed in 60 decimal digits. The documentation page *Verification of a release* explains every check.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import math
import re
import struct
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact, localcontext
from fractions import Fraction
from functools import cache, partial
from itertools import compress, pairwise, product
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

PLAN, TABLE = "pandas_dptree plan, version 3", "pandas_dptree table, version 1"
OTHER_KINDS = {
    "distribution": "a distribution",
    "joint": "distinct units beside other quantities, or several quantities of crossed hierarchies",
    "implicit": "private keys, or a tree of prefixes",
    "multiplicative": "counts with bounded relative error",
    "implicit_multiplicative": "counts of prefixes with bounded relative error",
}
EXCESS = ["excess_measurement", "excess_noise_scale"]
SMALLEST = 1e-3  # noise scales are never below this, however large the stated loss
DIGITS = 60  # masses are whole multiples of 10**-60
SLOT = 128  # digits for each sum of products of two masses
CUT = Decimal("1e-36")  # tails of losses with less than this are cut off, and added to delta
MOST_SUMS = 2048  # bins of which weighted sums are computed again
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")
ALWAYS_UNCHECKED = (
    "that the noise was drawn from a secret source, with these scales",
    "that the records were counted properly, and at most max_contributions or max_nodes of each unit",
    "that the keys are public, and that they are those of the fingerprint `domain`",
    "that this is the only release, and not one chosen among several",
    "that known counts and bounds on values are public",
)


class UnreadableError(Exception):
    """Input cannot be read. The message says why, and ends in a hint."""


def visible(printed: str) -> str:
    """Escape what a terminal would obey or reorder, and line breaks: a label could hide or forge a line."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in printed)


class Parser(argparse.ArgumentParser):
    """Reads the arguments, which may be names of files that others have chosen."""

    def error(self, message: str) -> NoReturn:
        """Print an error, and exit."""
        super().error(visible(message))


class Report:
    """Prints the lines of the report, and counts the checks that passed and failed."""

    def __init__(self) -> None:
        self.failed, self.passed, self.unchecked = 0, 0, list(ALWAYS_UNCHECKED)
        self.status = 0  # the exit status if nothing fails

    def check(self, what: str, holds: bool, figures: str) -> bool:
        """Print one check."""
        self.failed, self.passed = self.failed + (not holds), self.passed + holds
        print(visible(f"{'PASS' if holds else 'FAIL':<12}{what}: {figures}"))
        return holds

    def each(self, what: str, wrong: Sequence[str], n: int) -> bool:
        """Print one check of `n` items, of which some are wrong."""
        return self.check(what, not wrong, f"{len(wrong)} wrong; first {wrong[0]}" if wrong else f"all {n}")

    def skip(self, what: str, why: str) -> None:
        """Print what cannot be checked."""
        print(visible(f"{'NOT CHECKED':<12}{what}: {why}"))
        self.unchecked.append(f"{what} ({why})")


# Files ------------------------------------------------------------------------------------------------------


def read(path: Path) -> bytes:
    """Read a file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UnreadableError(f"{path} cannot be read: {error}. Hint: check its name.") from None


def read_json(path: Path) -> Any:
    """Read a JSON file; NaN, infinite numbers and repeated keys are refused."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a key occurs twice in one object")
        return dict(pairs)

    def finite(text: str) -> float:
        if not math.isfinite(float(text)):
            raise ValueError(f"{text} is not a finite number")
        return float(text)

    try:
        return json.loads(read(path), object_pairs_hook=once, parse_float=finite, parse_constant=finite)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(
            f"{path} is not plain JSON: {error}. Hint: name the plan first, then the table, as published."
        ) from None


def read_cells(raw: bytes) -> tuple[list[str], list[list[str | None]]]:
    """Split a CSV file into the names and the cells of its columns, None where a field is empty, not ""."""
    text = raw.decode("utf-8")
    names, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows = [row or [""] for row in rows]
    if any(len(row) != len(names) for row in rows):
        raise ValueError
    empty_texts = set[int]()  # the places of the fields that are ""
    if '""' in text:
        fields = re.finditer(r'("(?:[^"]|"")*"|[^,\n"]*)(?:,|\n)', text)
        empty_texts = {place - len(names) for place, field in enumerate(fields) if field[1] == '""'}
    return names, [
        [
            row[column] or ("" if line * len(names) + column in empty_texts else None)
            for line, row in enumerate(rows)
        ]
        for column in range(len(names))
    ]


def is_float(kind: Any) -> bool:
    """Whether the description of a table gives a column a type of floating-point numbers."""
    if isinstance(kind, dict):
        return is_float(kind.get("category", kind.get("of")))
    return isinstance(kind, str) and kind.lower().startswith("float")


def digest_of_values(names: list[str], columns: list[list[str | None]], floats: list[bool]) -> str:
    """Return the SHA-256 of the columns in order.

    Each column adds a line of JSON with its name, its kind and its number of rows, and then its values: each
    number in 8 bytes, the lowest first, and for whole ones a byte each that is 1 where one is missing; or the
    place of each text among the distinct ones in 4 bytes, -1 if missing, and these with their lengths.
    """
    digest = hashlib.sha256()
    for name, cells, fractions in zip(names, columns, floats, strict=True):
        kind, parts = values_of(cells, fractions)
        digest.update(f"{json.dumps([name, kind, len(cells)])}\n".encode())
        for part in parts:
            digest.update(part)
    return digest.hexdigest()


def values_of(cells: list[str | None], fractions: bool) -> tuple[str, list[bytes]]:
    """Return the kind of a column, and its values as bytes."""
    numbers: list[float] | list[int]
    if fractions:
        numbers = [math.nan if cell is None else float(cell) + 0.0 for cell in cells]
        if not all(value != value or (abs(value) < 2**63 and value == int(value)) for value in numbers):
            return "number", [struct.pack(f"<{len(cells)}d", *numbers)]
        numbers = [0 if value != value else int(value) for value in numbers]
    else:
        texts = dict.fromkeys(cell for cell in cells if cell is not None)
        whole = all(re.fullmatch("0|-?[1-9][0-9]{0,18}", each) and abs(int(each)) < 2**63 for each in texts)
        if not whole:
            place: dict[str | None, int] = {None: -1} | {each: number for number, each in enumerate(texts)}
            encoded = [each.encode() for each in texts]
            return "text", [
                struct.pack(f"<{len(cells)}i", *map(place.__getitem__, cells)),
                *(part for each in encoded for part in (struct.pack("<q", len(each)), each)),
            ]
        numbers = [int(cell or 0) for cell in cells]
    return "whole", [struct.pack(f"<{len(cells)}q", *numbers), bytes(cell is None for cell in cells)]


def digest_of(plan: dict[str, Any]) -> str:
    """Return the SHA-256 of the plan's text in sorted order, without its keys "digest" and "version"."""
    rest = {key: value for key, value in plan.items() if key not in ("digest", "version")}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


# Format -----------------------------------------------------------------------------------------------------

Rule = Callable[[Any], bool]


def number(value: Any) -> bool:
    """Whether a value is a number; true and false are not."""
    return type(value) in (int, float)


def whole(least: float = -math.inf) -> Rule:
    """Match whole numbers that are written without a point."""
    return lambda value: type(value) is int and value >= least


def one_of(*choices: Any) -> Rule:
    """Match these values, but not equal ones of another type, such as 1 for true."""
    return lambda value: any(type(value) is type(choice) and value == choice for choice in choices)


def many(rule: Rule, least: int = 0) -> Rule:
    """Match lists of at least this many values for which the rule holds."""
    return lambda value: isinstance(value, list) and len(value) >= least and all(map(rule, value))


def alone(rule: Rule) -> Rule:
    """Match lists of a single value for which the rule holds."""
    return lambda value: many(rule)(value) and len(value) == 1


def either(*rules: Rule) -> Rule:
    """Match values for which one of the rules holds."""
    return lambda value: any(rule(value) for rule in rules)


def named(rules: dict[str, Rule]) -> Rule:
    """Match objects with exactly these keys."""
    return lambda value: not list(faults(value, rules, ""))


def text(value: Any) -> bool:
    """Whether a value is a text."""
    return isinstance(value, str)


def hexadecimal(value: Any) -> bool:
    """Whether a value is a SHA-256 in lower case."""
    return isinstance(value, str) and len(value) == 64 and set(value) <= set("0123456789abcdef")


def faults(value: Any, rules: dict[str, Rule], where: str) -> Iterator[str]:
    """List unknown, missing and malformed entries of an object."""
    if not isinstance(value, dict):
        yield f"{where} is not an object"
        return
    yield from (f"{where} has the unknown key {key!r}" for key in value.keys() - rules.keys())
    yield from (f"{where} lacks {key!r}" for key in rules.keys() - value.keys() - OPTIONAL)
    both = rules.keys() & value.keys()
    yield from (f"{where} has a malformed {key!r}" for key in both if not rules[key](value[key]))


# fmt: off
NULL, NAME = one_of(None), either(text, whole())
FRACTION: Rule = lambda value: number(value) and 0 <= value <= 1  # noqa: E731
POSITIVE: Rule = lambda value: number(value) and value > 0  # noqa: E731
FACTS = many(many(lambda pair: many(whole(0))(pair) and len(pair) == 2))
IS_LOSS = either(
        named({"rho": POSITIVE}),
    named({"epsilon": POSITIVE, "delta": lambda value: FRACTION(value) and value < 1}),
)
QUANTITY: dict[str, Rule] = {
    "column": either(NULL, NAME), "low": whole(), "high": whole(), "shift": whole(),
    "unit": lambda value: many(whole(1))(value) and len(value) == 2,
}
COMMON: dict[str, Rule] = {
    "format": one_of(PLAN), "kind": text, "version": text, "digest": hexadecimal,
    "domain": hexadecimal, "domain_source": one_of("given", "released", "categories", "observed"),
    "levels": many(text, 1), "nodes": many(whole(0), 1), "loss": IS_LOSS,
    "neighbors": one_of("add_remove", "replace"), "privacy_unit": either(NULL, NAME),
    "max_contributions": whole(1), "mechanism": one_of("laplace", "gaussian"),
    "max_per_leaf": whole(1),
    "max_per_node": lambda value: isinstance(value, dict) and many(whole(1), 1)([*value.values()]),
}
OPTIONAL = {"keep_linear", "in_forest", "max_per_leaf", "max_per_node"}
PART: dict[str, Rule] = {
    "consistency": one_of("none", "linear", "nonnegative", "integer"),
    "fit": text,
    "confidence": either(NULL, lambda value: number(value) and 0 < value < 1),
    "keep_measurements": one_of(True, False), "keep_linear": one_of(True), "in_forest": one_of(True),
    "quantity": named(QUANTITY),
    "known": named({"exact": FACTS, "at_least": FACTS}),
    "split": one_of("optimal", "uniform", "geometric", "given"),
    "objective": one_of("levels", "cells", "worst"),
    "level_weights": many(lambda value: number(value) and value >= 0), "shares": many(alone(FRACTION), 1),
    "noise_scales": many(alone(either(NULL, lambda value: number(value) and value >= SMALLEST)), 1),
}
JOINT: dict[str, Rule] = {
    "plans": many(lambda pair: isinstance(pair, list) and len(pair) == 2 and NAME(pair[0]), 1),
    "means": many(NAME), "count": either(NULL, NAME), "shows_count": one_of(True, False),
}
COUNT = {"column": None, "low": 1, "high": 1, "unit": [1, 1], "shift": 0}
NOT_OF_UNITS = ("fit", "quantity", "in_forest", "max_per_leaf", "max_per_node")
UNITS: dict[str, Rule] = {key: rule for key, rule in (COMMON | PART).items() if key not in NOT_OF_UNITS} | {
    "max_nodes": many(whole(1), 1), "privacy_unit": NAME, "keep_linear": one_of(True, False),
}
NOT_OF_CROSSED = ("fit", "confidence", "in_forest", "max_per_node")
CROSSED: dict[str, Rule] = {
    key: rule for key, rule in (COMMON | PART).items() if key not in NOT_OF_CROSSED
} | {
    "axes": lambda value: isinstance(value, dict) and bool(value) and all(map(many(NAME, 1), value.values())),
    "margins": either(NULL, many(many(whole(0), 1), 1)), "keep_linear": one_of(True, False),
    "known": many(named({"exact": FACTS, "at_least": FACTS}), 1),
}
BINS: dict[str, Rule] = {
    "column": NAME, "type": one_of("number", "timestamp", "duration"), "unit": one_of(None, "ns"),
    "timezone": either(NULL, text),
    "edges": lambda value: many(number, 2)(value) and all(a < b for a, b in pairwise(value)),
}
DRAWS: dict[str, Rule] = {
    "grid": either(
        named({"bounds": named(BINS), "granularity": QUANTITY["unit"]}), named({"middles": named(BINS)})
    ),
    "loss": IS_LOSS, "epsilon": POSITIVE, "selection": one_of("exponential", "permute_and_flip"),
    "exponents": many(POSITIVE, 1),
}
TREES: dict[str, Rule] = {
    "loss": IS_LOSS, "levels": whole(1), "bins": named(BINS),
    "known": either(NULL, named({"total": whole(0)}), named({"exact": FACTS, "at_least": FACTS})),
    "strategy": either(
        named({
            "kind": one_of("tree"), "noise": one_of("laplace", "gaussian"), "branching": many(whole(1), 1),
            "shares": many(FRACTION, 1),
            "noise_scales": many(either(NULL, lambda value: number(value) and value >= SMALLEST), 1),
        }),
        named({"kind": one_of("factorization"), "bits": one_of(*range(8, 17)), "noise_scale": POSITIVE}),
    ),
}
QUANTILES: dict[str, Rule] = {key: rule for key, rule in COMMON.items() if key not in NOT_OF_UNITS} | {
    "domain": either(NULL, hexadecimal), "nodes": either(NULL, many(whole(0), 1)),
    "mechanism": one_of("laplace", "gaussian", "exponential", "permute_and_flip"), "column": NAME,
    "q": many(FRACTION, 1), "confidence": PART["confidence"],
    "draws": either(NULL, named(DRAWS)), "trees": either(NULL, named(TREES)),
}
RULES = {
    "additive": COMMON | PART, "joint": COMMON | JOINT, "units": UNITS, "crossed": CROSSED,
    "quantiles": QUANTILES,
}
# fmt: on


def check_format(plan: dict[str, Any], report: Report) -> bool:
    """Check keys and types, and that each list has one entry for each level."""
    if plan.get("format") != PLAN:
        stated = f"the plan states {plan.get('format')!r}, this verifier reads {PLAN!r}"
        return report.check("format", False, stated)
    joint, units = plan["kind"] == "joint", plan["kind"] == "units"
    found = list(faults(plan, RULES[plan["kind"]], "the plan"))
    parts = [("the plan", {"quantity": COUNT} | plan)]
    if joint and not found:
        parts = [(f"the plan of {name!r}", part) for name, part in plan["plans"]]
        own = {"loss": IS_LOSS, "max_contributions": whole(1), **PART}
        found = [fault for where, part in parts for fault in faults(part, own, where)]
        found = found or list(faults_of_names(plan))
    # Differences from the middle of the bounds: of means, and of sums that are shown with the count.
    counted = joint and not found and plan["count"] is not None
    for where, part in parts if not found else []:
        quantity, known = part["quantity"], part["known"]
        n, lists = len(plan["levels"]), [plan["nodes"], part["level_weights"], *known.values()]
        measured = {len(part["shares"]), len(part["noise_scales"])}
        if {len(set(plan["levels"])), *map(len, lists)} != {n} or measured != {2 * n - 1 if units else n}:
            found.append(f"{where} does not have one entry for each level")
        elif quantity["low"] > quantity["high"] or quantity["low"] == quantity["high"] == 0:
            found.append(f"{where} has bounds that are both 0, or in the wrong order")
        elif quantity["column"] is None and quantity != COUNT:
            found.append(f"{where} does not add 1 for each record")
        elif quantity["shift"] and not counted:
            found.append(f"{where} shifts the values of a sum, without a count of the records")
        elif quantity["column"] is not None and any(
            count for levels in known.values() for level in levels for _, count in level
        ):
            found.append(f"{where} adds up a column, but states known counts")
    found += [] if found or not units else faults_of_units(plan)
    if not found and plan["max_contributions"] != max(part["max_contributions"] for _, part in parts):
        found.append("max_contributions is not the largest of the plans")
    if not found and not plan.get("max_per_node", {}).keys() <= set(plan["levels"][1:-1]):
        found.append("max_per_node names the first or the last level, or none of the plan")
    figures = f"{plan['kind']}, version 3, all keys and types"
    return report.check("format", not found, "; ".join(found) or figures)


def faults_of_names(plan: dict[str, Any]) -> Iterator[str]:
    """List the names of a joint plan that occur twice, or that none of its quantities has."""
    parts = dict(plan["plans"])
    if len(parts) < len(plan["plans"]):
        yield "a name of `plans` occurs twice"
    if not set(plan["means"]) <= parts.keys():
        yield "`means` names unknown quantities"
    counts = [name for name, part in parts.items() if part["quantity"] == COUNT]
    if plan["count"] not in (counts if plan["means"] else [None, *counts]):
        yield "`count` does not name a count of records"


def faults_of_units(plan: dict[str, Any]) -> Iterator[str]:
    """List what contradicts itself in a plan for distinct units."""
    bounds, (root, *below) = plan["max_nodes"], plan["known"]["exact"]
    first = bounds[:1] == [1] and len(bounds) == len(plan["levels"])
    if not first or bounds != sorted(bounds) or bounds[-1] != plan["max_contributions"]:
        yield "`max_nodes` is not 1 for the root and never less below, up to `max_contributions`"
    total = {0, *(count for _, count in root)}
    of_excess = plan["noise_scales"][len(bounds) :]
    if any(most == 1 and scale for most, (scale,) in zip(bounds[1:], of_excess, strict=False)):
        yield "an excess is measured where no unit is in two nodes"
    if any(plan["known"]["at_least"][1:]) or any(count not in total for level in below for _, count in level):
        yield "more is known than the total, and where nobody is"


class Move(NamedTuple):
    """How far one unit can move the values of a level."""

    l1: int
    l2: int  # squared
    linf: int


class Quantity(NamedTuple):
    """One column of counts, sums or means: its own plan, and how far one unit can move it.

    Any two neighbours keep to one of the patterns, each with a move for every level that is measured; or, if
    `between`, to what lies between two consecutive ones. Distinct units move no level further, in the levels'
    order and then in that of their excesses, but not all of them so far if `between`.
    """

    name: str
    part: dict[str, Any]
    shown: str  # "values", "means" or "nothing"
    moved: int  # the number of nodes of a level that one unit can change
    patterns: Sequence[Sequence[Move]] = ()
    between: bool = False
    replace: bool = False

    def most(self, weights: Sequence[Any], power: int) -> Any:
        """Return the most that a unit moves what is measured, in L1 or L2 squared, times these weights."""
        if "max_nodes" not in self.part:
            return largest(self.patterns, weights, power)
        given = iter(weights)
        each = [0 if scale is None else next(given) for (scale,) in self.part["noise_scales"]]
        return largest_of_shapes(self.part["max_nodes"], each, power, self.replace)

    @property
    def unit(self) -> Fraction:
        """The value of a unit in the column."""
        return Fraction(*self.part["quantity"]["unit"])

    @property
    def prefix(self) -> str:
        """How the names of the columns about its accuracy begin."""
        return "" if self.name == "count" else f"{self.name}_"

    @property
    def scales(self) -> list[float]:
        """All noise scales."""
        return [scale for level in self.part["noise_scales"] for scale in level if scale is not None]


def quantities_of(plan: dict[str, Any]) -> list[Quantity]:
    """List the quantities of a plan, which `moving` completes."""
    if plan["kind"] != "joint":
        part = {"quantity": COUNT} | plan
        column = part["quantity"]["column"]
        named = [("count" if column is None else str(column), part, "values")]
    else:
        hidden = None if plan["shows_count"] else plan["count"]
        named = [
            (str(name), part, "means" if name in plan["means"] else "nothing" if name == hidden else "values")
            for name, part in plan["plans"]
        ]
    found = []
    for name, part, shown in named:
        replace = plan["neighbors"] == "replace"
        moved = part["max_contributions"] * (2 if replace else 1)
        found.append(Quantity(name, part, shown, moved, replace=replace))
    return found


# The tree of the table --------------------------------------------------------------------------------------


class Tree(NamedTuple):
    """The nodes of each level in order.

    A leaf above the deepest level continues as a chain of single children, which repeat its row.
    """

    rows: list[list[int]]  # the row of each node
    parents: list[list[int]]  # the position of each node's parent on the level above

    def sums(self, level: int, values: Sequence[Any]) -> list[Any]:
        """Add up the values of the nodes of a level over their parents."""
        total = [0] * len(self.rows[level - 1])
        for parent, value in zip(self.parents[level], values, strict=True):
            total[parent] += value
        return total


def read_table(path: Path) -> tuple[list[str], list[list[str]]]:
    """Split a CSV file into the names of its columns and its rows."""
    try:
        names, *rows = csv.reader(io.StringIO(read(path).decode("utf-8"), newline=""), strict=True)
        return names, rows
    except (ValueError, csv.Error) as error:
        hint = "pass the table as CSV in UTF-8; pandas_dptree.read_file and to_file convert Parquet."
        raise UnreadableError(f"{path} is not a CSV file: {error}. Hint: {hint}") from None


def columns_of(plan: dict[str, Any], quantities: Sequence[Quantity]) -> list[str]:
    """Return the columns that the table should have."""
    names = ["level", *plan["levels"][1:]]
    for each in quantities:
        companions = ["std_error"] + ["lower", "upper"] * (each.part["confidence"] is not None)
        companions += ["measurement", "noise_scale"] * each.part["keep_measurements"]
        companions += EXCESS * (each.part["keep_measurements"] and "max_nodes" in each.part)
        companions += ["linear"] * (each.part.get("keep_linear", False) and each.shown == "values")
        if each.shown != "nothing":
            names += [each.name, *(each.prefix + companion for companion in companions)]
    return names


def check_rows(plan: dict[str, Any], rows: list[list[str]], report: Report, lines: int = 1) -> Tree | None:
    """Check levels, keys and the order of the rows, and return the tree that they form.

    Each of them is the first of so many lines.
    """
    levels, depth = plan["levels"], {name: level for level, name in enumerate(plan["levels"])}
    wrong: list[str] = []
    nodes: set[tuple[str, ...]] = set()
    children: dict[tuple[int, tuple[str, ...]], list[int]] = {}  # by level and the keys of the parent
    found = [0] * len(levels)
    for place, row in enumerate(rows):
        level = depth.get(row[0], -1)
        keys = tuple(row[1 : level + 1])
        if level < 0 or any(row[level + 1 : len(levels)]):
            wrong.append(
                f"{line(place * lines)} has a level that the plan does not have, or keys below its level"
            )
        elif keys in nodes:
            wrong.append(f"{line(place * lines)} repeats the node {keys}")
        elif level and keys[:-1] not in nodes:
            wrong.append(f"{line(place * lines)}, node {keys}, has no parent above it")
        else:
            nodes.add(keys)
            found[level] += 1
            children.setdefault((level, keys[:-1]), []).append(place)
    complete = found == plan["nodes"] and found[0] == 1
    report.check("rows by level", complete, f"{found}; planned {plan['nodes']}")
    if not report.each("keys, parents and repeated nodes", wrong, len(rows)) or not complete:
        return None
    tree = Tree([children[0, ()]], [[]])
    for level in range(1, len(levels)):
        tree.rows.append([])
        tree.parents.append([])
        for parent, place in enumerate(tree.rows[level - 1]):
            ends = depth[rows[place][0]] < level - 1  # in a chain
            own = [place] if ends else children.get((level, tuple(rows[place][1:level])), [place])
            tree.rows[level] += own
            tree.parents[level] += [parent] * len(own)
    order = list(dict.fromkeys(place for level in tree.rows for place in level))
    ordered = order == list(range(len(rows)))
    report.check("order of the rows", ordered, "level by level, children in the order of their parents")
    return tree if ordered else None


def line(row: int) -> str:
    """Name the line of a row: the first line has the names of the columns."""
    return f"line {row + 2}"


# Privacy: how far one unit can move all levels --------------------------------------------------------------

Nodes = Sequence[tuple[int, int]]  # numbers of rows, the largest first, and how many nodes have so many


def moving(quantity: Quantity, plan: dict[str, Any], tree: Tree) -> Quantity:
    """Return a quantity with its patterns: one for each number of rows that may replace those of a unit."""
    part, replace = quantity.part, quantity.replace
    measured = [scale is not None for (scale,) in part["noise_scales"]]
    if "max_nodes" in part:
        bounds = part["max_nodes"]
        patterns = [list(compress(moves, measured)) for moves in moves_of_units(bounds, replace)]
        of_excess = zip(bounds, measured[len(bounds) :], strict=False)
        between = any(own and (above > 1 or (replace and not s)) for s, (above, own) in enumerate(of_excess))
        return quantity._replace(patterns=patterns, between=between)
    k = part["max_contributions"]
    trees, most = 2 * k if "in_forest" in part else 1, capacities(plan, k, tree)
    levels: list[Nodes] = []
    for held, known in zip(most, part["known"]["exact"], strict=True):
        public = dict(known)
        numbers = Counter(rows for place, rows in enumerate(held) if place not in public)
        levels.append([(rows, n * trees) for rows, n in sorted(numbers.items(), reverse=True)])
    single = [len(held) * trees == 1 for held in most]  # all rows share its node, even if it is public
    return with_patterns(quantity, levels, single, min(k, most[0][0] * trees))


def with_patterns(quantity: Quantity, levels: Sequence[Nodes], single: Sequence[bool], k: int) -> Quantity:
    """Return a quantity with the patterns of k rows of a unit in these nodes of each level."""
    part, replace = quantity.part, quantity.replace
    measured = [scale is not None for (scale,) in part["noise_scales"]]
    low, high = part["quantity"]["low"], part["quantity"]["high"]
    m, steps = max(abs(low), abs(high)), []
    if not replace:
        patterns = [[move_of(fill(nodes, k), m) for nodes in levels]]
    elif low < 0 < high:
        patterns = [[both_signs(nodes, k, low, high) for nodes in levels]]
    else:
        steps = steps_of(k, capped=any(rows < k for nodes in levels for rows, _ in nodes))
        patterns = [
            [replaced(*level, k, *step, m) for level in zip(levels, single, strict=True)] for step in steps
        ]
    between = (m, len(steps)) != (1, k + 1) and all(fewer == more for fewer, more in steps)
    patterns = [list(compress(pattern, measured)) for pattern in patterns]
    return quantity._replace(patterns=patterns, between=between and len(patterns) > 1)


def moves_of_units(max_nodes: Sequence[int], replace: bool) -> list[list[Move]]:
    """Return how far counts of units of all levels, and then excesses, move if one comes, or is replaced.

    It adds 1 to so many nodes of a level. Of an excess, a single node can have all that it adds. If it is
    replaced, the total stays, and the excess of the total moves by a difference.
    """
    counts = [Move(m, m, 1) for m in max_nodes]
    excesses = [Move(m - 1, (m - 1) ** 2, m - 1) for m in max_nodes[1:]]
    _, *below = [Move(2 * each.l1, 2 * each.l2, each.linf) for each in (*counts, *excesses)]
    below[len(counts) - 1 : len(counts)] = excesses[:1]
    return [[*counts, *excesses], [Move(0, 0, 0), *below]][: 1 + replace]


def largest_of_shapes(max_nodes: Sequence[int], weights: Sequence[Any], power: int, replace: bool) -> Any:
    """Return the largest weighted sum of the moves of all counts of distinct units, and of all excesses.

    A unit in t nodes of a level and u >= t of the next moves the counts by t and u, and the excesses between
    by (u - t)**power at most, if one node has it all. This is convex in its shape, the numbers t of all
    levels. So it is largest where each t is 1 or the bound of some level: at a vertex of all possible shapes.
    If a unit is replaced by another, both shapes add up, except in the root.
    """
    ends, n = sorted({*max_nodes}), len(max_nodes)
    below: dict[int, Any] = {}  # the largest sum from a level down, by the number of its nodes
    for level in reversed(range(1, n)):
        below = {
            t: weights[level] * t
            + max(
                (weights[n + level] * (u - t) ** power + rest for u, rest in below.items() if u >= t),
                default=0,
            )
            for t in ends
            if t <= max_nodes[level]
        }
    excess = weights[n] if below else 0
    sums = [weights[0] + max((excess * (t - 1) ** power + rest for t, rest in below.items()), default=0)]
    if replace:
        pairs = product(below.items(), repeat=2)
        sums += [excess * abs(t - u) ** power + one + other for (t, one), (u, other) in pairs]
    return max(sums)


def capacities(plan: dict[str, Any], k: int, tree: Tree) -> list[list[int]]:
    """Return the most rows of a unit in each node: its cap, and what its children and its parent can hold."""
    caps = [plan.get("max_per_node", {}).get(name, k) for name in plan["levels"]]
    caps[-1] = plan.get("max_per_leaf", k)
    most = [[min(k, caps[-1])] * len(tree.rows[-1])]
    for level in reversed(range(len(caps) - 1)):
        most.insert(0, [min(k, caps[level], held) for held in tree.sums(level + 1, most[0])])
    for level, parents in enumerate(tree.parents[1:], 1):
        most[level] = [min(own, most[level - 1][p]) for own, p in zip(most[level], parents, strict=True)]
    return most


def fill(nodes: Nodes, k: int) -> Nodes:
    """Put k rows into nodes that can hold so many, as many as fit into the largest first."""
    filled = []
    for rows, n in nodes:
        full = min(n, k // rows)
        k -= full * rows
        filled += [(rows, full), (k, int(full < n))]
        k = k if full == n else 0
    return [(rows, n) for rows, n in filled if rows and n]


def move_of(nodes: Nodes, m: int) -> Move:
    """Return the move of a level in which each row of these nodes adds or takes m units."""
    l1, l2 = (sum((m * rows) ** power * n for rows, n in nodes) for power in (1, 2))
    return Move(l1, l2, m * max((rows for rows, _ in nodes), default=0))


def replaced(nodes: Nodes, single: bool, k: int, fewer: int, more: int, m: int) -> Move:
    """Return the move of a level if `fewer` to `more` rows replace k: of one sign, so that they cancel."""
    if single:
        return move_of(fill(nodes, k - fewer), m)
    left, both = sum(n for _, n in nodes), []
    for rows, n in sorted([*fill(nodes, k), *fill(nodes, more)], reverse=True):
        both += [(rows, min(n, left))] if left else []
        left -= min(n, left)
    return move_of(both, m)


def both_signs(nodes: Nodes, k: int, low: int, high: int) -> Move:
    """Return the move of a level if rows that add up to low < 0 < high units are replaced.

    A node of c rows before and d after moves by at most m max(c, d) + a min(c, d), with the ends a <= m. So
    the 2-norm is at most that of c and d times sqrt(2) m + (2 - sqrt(2)) a; and k times that of one row.
    """
    (a, m), n = sorted((-low, high)), sum(n for _, n in nodes)
    l1, s, most = move_of(fill(nodes, k), 1)
    most *= high - low
    root = 32 * (s * a * (m - a)) ** 2
    l2 = s * (2 * m**2 - 4 * m * a + 6 * a**2) + (math.isqrt(root - 1) + 1 if root else 0)
    one_row = max((high - low) ** 2, 2 * m**2)
    return Move(min(2 * m * l1, n * most), min(l2, k**2 * one_row, n * most**2), most)


def steps_of(k: int, *, capped: bool) -> list[tuple[int, int]]:
    """Return the first and the last number of new rows of each pattern: each number, up to 32.

    Costs are convex in the rows that one node takes: without caps the first and the last number suffice. With
    caps and many rows each of 32 patterns covers a range of numbers.
    """
    if k <= 32 or not capped:
        return [(b, b) for b in (range(k + 1) if k <= 32 else (0, k))]
    return [(0, 0), *pairwise(k * step // 32 for step in range(33)), (k, k)]


def cover(patterns: Sequence[Sequence[Move]]) -> list[Move]:
    """Return the pattern in which each level moves as far as in any of some patterns."""
    return [Move(*map(max, zip(*moves, strict=True))) for moves in zip(*patterns, strict=True)]


def covered(quantity: Quantity) -> list[Sequence[Move]]:
    """Return at most 8 patterns, to one of which any two neighbours keep."""
    patterns = list(quantity.patterns)
    if quantity.between and len(patterns) > 1:
        patterns = [cover(pair) for pair in pairwise(patterns)]
    if len(patterns) <= 8:
        return patterns
    first, *middle, last = patterns
    size = math.ceil(len(middle) / 6)
    return [first, *(cover(middle[i : i + size]) for i in range(0, len(middle), size)), last]


# Privacy: exact budgets -------------------------------------------------------------------------------------


def exact(stated: float) -> Fraction:
    """Return what a stated number allows: the float or its shortest decimal, whichever is smaller."""
    return min(Fraction(stated), Fraction(repr(stated)))


def cost(move: Move, laplace_epsilon: bool) -> Fraction:
    """Return what noise of scale 1 costs a level: an epsilon of L1, or a rho of L2**2/2."""
    return Fraction(move.l1) if laplace_epsilon else Fraction(move.l2, 2)


def spent(quantity: Quantity, laplace_epsilon: bool) -> Fraction:
    """Return what the noise of all levels costs in the worst pattern, in proportion to 1/b or 1/b**2."""
    power = 1 if laplace_epsilon else 2
    return Fraction(quantity.most([1 / Fraction(scale) ** power for scale in quantity.scales], power)) / power


def largest(patterns: Sequence[Sequence[Move]], weights: Sequence[Any], power: int) -> Any:
    """Return the largest sum of moves, in L1 or L2 squared, times these weights."""
    return max(
        sum(move[power - 1] * weight for move, weight in zip(pattern, weights, strict=True))
        for pattern in patterns
    )


# Privacy: the delta of a composition ------------------------------------------------------------------------

Loss = list[tuple[Decimal, Decimal]]  # values of a privacy loss, and their probabilities


class Continuous(NamedTuple):
    """Continuous Gaussian noise that simulates discrete noise up to factors of the probabilities."""

    mu: Decimal  # the distance of neighbours in standard deviations
    log_upper: Decimal  # the discrete probabilities are at most exp(log_upper) times the simulated ones,
    log_ratio: Decimal  # and at least exp(log_upper - log_ratio) times


def concentrated_delta(rho: Fraction, epsilon: Fraction) -> Decimal:
    """Return the delta that rho implies: Canonne, Kamath and Steinke (2020), Proposition 12.

    The formula holds for every alpha = 1 + a; floating point only chooses one.
    """
    low, high = -80.0, 300.0
    for _ in range(100):
        a = math.exp((low + high) / 2)
        low, high = (
            (low, math.log(a))
            if (2 * a + 1) * float(rho) > float(epsilon) + math.log1p(1 / a)
            else (math.log(a), high)
        )
    r, e, alpha = decimal(rho), decimal(epsilon), 1 + Decimal(a)
    exponent = (alpha - 1) * (alpha * r - e) + alpha * (1 - 1 / alpha).ln() - (alpha - 1).ln()
    return min(Decimal(1), exponent.exp())


def decimal(value: Fraction | float) -> Decimal:
    """Convert a number, rounded to 60 digits."""
    return Decimal(Fraction(value).numerator) / Decimal(Fraction(value).denominator)


def parts_of(move: Move, most: int) -> list[int]:
    """Split L1 between nodes that move by `most` each, and one by the rest; not between 64 or more."""
    if not most or move.l1 >= 64 * most:
        return [move.l1] if move.l1 else []
    return [min(most, move.l1 - taken) for taken in range(0, move.l1, most)]


def worst_moves(move: Move) -> list[int]:
    """Return moves that dominate every move of a level with Gaussian noise; none if they are not known.

    One node can take it all if L1 = L2, and n nodes take 1 or 2 each if these exhaust both norms.
    """
    n, rest = divmod(move.l1**2, move.l2)
    each = move.l2 // move.l1
    exhausted = not rest and n * each == move.l1
    return [each] * n if exhausted and (n == 1 or move.linf <= each <= 2) else []


def laplace_loss(scale: float, move: int) -> Loss:
    """Return the loss of one node that moves under discrete Laplace noise.

    The loss is the same for all noise of at most 0, and for all noise of at least `move`.
    """
    if move > 512:  # randomized response with the same epsilon dominates it
        scale, move = scale / move, 1
    b = Decimal(scale)
    q = (-1 / b).exp()
    inner = [(q**x * (1 - q) / (1 + q), x) for x in range(1, move)]
    masses = [(1 / (1 + q), 0), *inner, (q**move / (1 + q), move)]
    return [((move - 2 * x) / b, mass) for mass, x in masses]


def gaussian_loss(scale: float, move: int) -> Loss:
    """Return the loss of one node that moves, under discrete Gaussian noise up to 13 sigma.

    Both tails together have less than CUT. Dividing by the sum without them raises the other probabilities.
    """
    two_variances = 2 * Decimal(scale) ** 2
    reach = math.ceil(13 * scale)
    masses = {x: (-(x * x) / two_variances).exp() for x in range(-reach, reach + 1)}
    total = sum(masses.values(), Decimal(0))
    return [(move * (move + 2 * x) / two_variances, mass / total) for x, mass in masses.items()]


Noise = tuple[Sequence[Decimal], Callable[[Sequence[Any], int], Any]]  # variances of levels, and their moves


def distance(noise: Sequence[Noise]) -> Decimal:
    """Return the largest distance in standard deviations, with each quantity in its worst pattern."""
    return sum((most([1 / v for v in variances], 2) for variances, most in noise), Decimal(0)).sqrt()


def simulate(noise: Sequence[Noise], moved: int, width: Decimal) -> Continuous | None:
    """Split each noise into continuous noise and a kernel.

    Every variance t2 of the kernel is valid. This choice balances how much noise the kernels take away with
    the factors of the probabilities that they cost.
    """
    pi2 = PI**2
    upper = ratio = Decimal(0)
    left: list[Noise] = []
    for variances, most in noise:
        kernels = [max(16 * pi2 * moved * v / width, Decimal(20)).ln() / (4 * pi2) for v in variances]
        left.append(([v - t2 for v, t2 in zip(variances, kernels, strict=True)], most))
        for v, t2 in zip(variances, kernels, strict=True):
            if t2 > v * 9 / 10:  # little would be left
                return None
            t, u = theta(2 * pi2 * t2), theta(2 * pi2 * t2 * (2 - t2 / v))
            upper -= moved * (1 - u).ln()
            ratio += moved * ((1 + u + t**2 / (1 - t)) / (1 - u)).ln()
    return Continuous(distance(left), upper, ratio)


def theta(exponent: Decimal) -> Decimal:
    """Return at least 2 (q + q**4 + q**9 + ...) with q = exp(-exponent)."""
    q = (-exponent).exp()
    return 2 * (q + q**4 / (1 - q**5))


def tail(z: Decimal) -> Decimal:
    """Return the probability that a standard normal variable exceeds z."""
    if z < 0:
        return 1 - tail(-z)
    density = (-z * z / 2).exp() / (2 * PI).sqrt()
    if z < 6:  # 1/2 - phi(z) (z + z**3/3 + z**5/15 + ...)
        term, total, n = z, z, 1
        while term > Decimal("1e-58"):
            n += 2
            term *= z * z / n
            total += term
        return Decimal("0.5") - density * total
    fraction = z  # phi(z) / (z + 1/(z + 2/(z + 3/(z + ...)))), of which 120 terms are right to 40 digits
    for n in range(120, 0, -1):
        fraction = z + n / fraction
    return density / fraction


def continuous_delta(epsilon: Decimal, mu: Decimal) -> Decimal:
    """Return the delta of continuous Gaussian noise: Balle and Wang (2018), Theorem 8."""
    if not mu:
        return 1 - epsilon.exp() if epsilon < 0 else Decimal(0)
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    return tail(near) - epsilon.exp() * tail(far) if near < 50 else tail(Decimal(50))


def composed_delta(
    epsilon: Fraction, losses: Sequence[Loss], simulated: Continuous, step: Decimal, failed: Decimal
) -> Decimal:
    """Return a delta of independent losses together with simulated noise: the mean of delta(epsilon - loss).

    `failed` is the probability of the noise that the losses leave out. If the losses have at most 8192 sums,
    these are listed. Otherwise the losses are moved to a grid.
    """
    if math.prod(map(len, losses)) <= 8192:
        total = [(Decimal(0), Decimal(1))]
        for loss in losses:
            total = [(v + w, p * q) for (v, p), (w, q) in product(total, loss)]
    else:
        total, beyond = grid_sum(losses, step)
        failed += beyond
    left = decimal(epsilon) - simulated.log_ratio
    mean = sum((p * continuous_delta(left - v, simulated.mu) for v, p in total), Decimal(0))
    bound = mean * simulated.log_upper.exp() * (1 + Decimal("1e-35"))  # tails are right to 40 digits
    return min(Decimal(1), bound + failed + Decimal("1e-50"))


def grid_sum(losses: Sequence[Loss], step: Decimal) -> tuple[Loss, Decimal]:
    """Return the sum of losses on the multiples of a step, and the probability of what was cut off.

    The mass at v is divided between the neighbouring multiples so that the mean of exp(-v) stays the same.
    So delta cannot fall, since it is the mean of a convex function of exp(-v). All masses are rounded up to
    multiples of 10**-60.
    """
    one, first, total, failed = Decimal(10) ** DIGITS, 0, [10**DIGITS], Decimal(0)
    whole_step = 1 - (-step).exp()
    for loss in losses:
        masses: dict[int, int] = {}
        for value, mass in loss:
            cell = math.floor(value / step)
            upper = (1 - (cell * step - value).exp()) / whole_step
            for place, part in ((cell, 1 - upper), (cell + 1, upper)):
                masses[place] = masses.get(place, 0) + math.ceil(max(part, Decimal(0)) * mass * one)
        start, size = min(masses), max(masses) - min(masses) + 1
        first, total = first + start, convolve(total, [masses.get(start + i, 0) for i in range(size)])
        low, high, below, above = 0, len(total), 0, 0
        while below + total[low] < CUT * one:
            below, low = below + total[low], low + 1
        while above + total[high - 1] < CUT * one:
            above, high = above + total[high - 1], high - 1
        first, total, failed = first + low, total[low:high], failed + above / one
        total[0] += below  # moved up, which is safe
    return [((first + i) * step, mass / one) for i, mass in enumerate(total)], failed


def convolve(a: list[int], b: list[int]) -> list[int]:
    """Convolve masses by multiplying two long numbers in which each mass has a slot of its own."""
    length = len(a) + len(b) - 1
    with localcontext(Context(prec=SLOT * (length + 1), Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact])):
        long_a, long_b = (Decimal("".join(f"{mass:0{SLOT}d}" for mass in masses)) for masses in (a, b))
        digits = f"{long_a * long_b:f}".zfill(SLOT * length)
    return [-(-int(digits[i : i + SLOT]) // 10**DIGITS) for i in range(0, SLOT * length, SLOT)]


def quantity_delta(
    quantity: Quantity, laplace: bool, epsilon: Fraction, shrink: float, fineness: float, limit: Decimal
) -> Decimal:
    """Return a delta of noise that is the same on all nodes of a level, with all scales times `shrink`.

    It is no closer than needed to be within the limit. `fineness` is the step of the grid, relative to the
    standard deviation of one of the losses.
    """
    scales = [scale * shrink for scale in quantity.scales]
    simulated = Decimal(1)
    if not laplace and (quantity.between or len(quantity.patterns) > 1):
        simulated = joint_delta([quantity], epsilon, shrink)
        if simulated <= limit or min(scales) >= 16:
            return simulated
    moved = [pattern for pattern in covered(quantity) if any(move.l1 for move in pattern)]
    delta = laplace_delta if laplace else gaussian_delta
    return min(simulated, max(delta(pattern, epsilon, scales, fineness) for pattern in moved))


def gaussian_delta(
    pattern: Sequence[Move], epsilon: Fraction, scales: Sequence[float], fineness: float
) -> Decimal:
    """Return a delta of Gaussian noise if the levels move in one pattern."""
    levels = [(b, move, worst_moves(move)) for b, move in zip(scales, pattern, strict=True) if move.l1]
    losses = [gaussian_loss(b, each) for b, _, worst in levels if b < 16 for each in worst]
    rest = [(Decimal(b) ** 2, move) for b, move, worst in levels if b >= 16 or not worst]
    width = distance([([Decimal(b) ** 2 for b in scales], partial(largest, [pattern]))])
    nodes = max(len(worst) or min(move.l1, move.l2) for _, move, worst in levels)
    moves = partial(largest, [[move for _, move in rest]])
    simulated = simulate([([v for v, _ in rest], moves)], nodes, width)
    if simulated is None:
        return Decimal(1)
    return composed_delta(epsilon, losses, simulated, step_of(losses, width, fineness), CUT * len(losses))


def laplace_delta(
    pattern: Sequence[Move], epsilon: Fraction, scales: Sequence[float], fineness: float
) -> Decimal:
    """Return a delta of Laplace noise if the levels move in one pattern.

    It is largest if each node moves as much as it can until L1 is used up; one that takes all is a bound too.
    """
    levels = list(zip(scales, pattern, strict=True))
    found, none = [], Continuous(Decimal(0), Decimal(0), Decimal(0))
    for moves in {
        tuple((b, part) for b, move in levels for part in parts_of(move, move.linf if spread else move.l1))
        for spread in (False, True)
    }:
        losses = [laplace_loss(*each) for each in moves]
        width = sum((loss[0][0] ** 2 for loss in losses), Decimal(0)).sqrt()
        found.append(composed_delta(epsilon, losses, none, step_of(losses, width, fineness), Decimal(0)))
    return min(found)


def step_of(losses: Sequence[Loss], width: Decimal, fineness: float) -> Decimal:
    """Return the step of the grid on which losses are added up: a power of two."""
    return Decimal(2) ** math.floor(math.log2(fineness * float(width) / math.sqrt(len(losses) or 1)))


def joint_delta(quantities: Sequence[Quantity], epsilon: Fraction, shrink: float) -> Decimal:
    """Return a delta of Gaussian noise on several quantities, each with its own scale by level."""
    noise = [([Decimal(b * shrink) ** 2 for b in each.scales], each.most) for each in quantities]
    width = distance(noise)
    simulated = simulate(noise, max(each.moved for each in quantities), width)
    return Decimal(1) if simulated is None else composed_delta(epsilon, [], simulated, width, Decimal(0))


# Privacy: the checks ----------------------------------------------------------------------------------------


def check_budget(quantity: Quantity, laplace: bool, tree: Tree, report: Report) -> None:
    """Check that the noise scales of a quantity keep to its loss, and are not larger than that requires."""
    loss = quantity.part["loss"]
    what, scales = f"budget of {quantity.name!r}", quantity.scales
    if not scales:
        public = len(dict(quantity.part["known"]["exact"][-1])) == len(tree.rows[-1])
        report.check(what, public, f"nothing is measured, {'all' if public else 'not all'} leaves are known")
        return
    if not laplace and loss.get("delta") == 0:
        report.check(what, False, "Gaussian noise does not keep to an epsilon without a delta")
        return
    pure = laplace and "epsilon" in loss
    used = spent(quantity, pure)
    unused = f"noise of {quantity.name!r} is not larger than loss, max_contributions and neighbors require"
    if not loss.get("delta"):
        name = "epsilon" if pure else "rho"
        stated = exact(loss[name])
        report.check(what, used <= stated, f"{name} {float(used):.12g} of {float(stated):.12g}")
        many_shapes = len({*quantity.part.get("max_nodes", ())}) > 6  # some are charged more than they cost
        all_used = used >= stated * (1 - Fraction(1, 50 if many_shapes else 10**6))
        figures = f"{float(used / stated):.6%} of {name} are spent"
    else:
        epsilon, delta = exact(loss["epsilon"]), decimal(exact(loss["delta"]))

        def bound(shrink: float, fineness: float) -> tuple[Decimal, str]:
            """Return a delta for the scales times `shrink`: by the simple bound if it suffices."""
            times = used / Fraction(shrink) ** (1 if pure else 2)
            simple = Decimal(times > epsilon) if pure else concentrated_delta(times, epsilon)
            if simple <= delta:
                return simple, "sum of epsilons" if pure else "concentrated privacy"
            return quantity_delta(quantity, laplace, epsilon, shrink, fineness, delta), "composition"

        most, how = bound(1.0, 0.0175)
        figures = f"delta {float(most):.8g} of {float(delta):.8g} at epsilon {loss['epsilon']} ({how})"
        report.check(what, most <= delta, figures)
        less, _ = bound(0.98, 0.07)
        all_used, figures = less > delta, f"with 2 % less noise delta would be {float(less):.4g}"
    if min(scales) <= SMALLEST:
        report.skip(unused, "some noise has the smallest possible scale")
    else:
        report.check(unused, all_used, figures)


def check_sums(losses: Sequence[dict[str, float]], loss: dict[str, float], report: Report) -> bool:
    """Check that losses keep to a stated one together, and use it; return whether they add up."""
    if not all(each.keys() == loss.keys() for each in losses):
        return False
    for name, stated in loss.items():
        used = sum((exact(each[name]) for each in losses), Fraction(0))
        figures = f"{name} {float(used):.12g} of {float(stated):.12g}"
        report.check(f"{name} of all together", used <= exact(stated), figures)
        all_used = used >= exact(stated) * (1 - Fraction(1, 10**6))
        report.check(f"{name} of all together is used", all_used, figures)
    return True


def check_joint_budget(
    plan: dict[str, Any], quantities: Sequence[Quantity], laplace: bool, report: Report
) -> None:
    """Check that the quantities keep to the stated loss together, and use it."""
    loss, spending = plan["loss"], [each for each in quantities if each.scales]
    losses = [each.part["loss"] for each in spending]
    if check_sums(losses, loss, report):
        return
    if laplace or not loss.get("delta") or any("rho" not in each for each in losses):
        report.check("budget of all together", False, "the parts state losses that cannot be added up")
        return
    epsilon, delta = exact(loss["epsilon"]), decimal(exact(loss["delta"]))
    rho = sum((exact(each["rho"]) for each in losses), Fraction(0))

    def bound(shrink: float) -> Decimal:
        simple = concentrated_delta(rho / Fraction(shrink) ** 2, epsilon)
        return simple if simple <= delta else joint_delta(spending, epsilon, shrink)

    most, less = bound(1.0), bound(0.98)
    figures = f"delta {float(most):.8g} of {float(delta):.8g} at epsilon {loss['epsilon']}"
    report.check("budget of all together", most <= delta, figures)
    if min(scale for each in spending for scale in each.scales) <= SMALLEST:
        report.skip("whether all of the budget is used", "some noise has the smallest possible scale")
    else:
        figures = f"with 2 % less noise delta would be {float(less):.4g}"
        report.check("all of the budget is used", less > delta, figures)


def check_shares(quantity: Quantity, pure: bool, report: Report) -> None:
    """Check that the levels' shares add up to one, and that the noise follows from them."""
    what = f"shares of {quantity.name!r}"
    shares, scales = quantity.part["shares"], quantity.part["noise_scales"]
    if not quantity.scales:
        report.check(what, not any(map(any, shares)) and not any(map(any, scales)), "all 0")
        return
    total = math.fsum(share for (share,) in shares)
    report.check(what, abs(total - 1) <= 1e-6, f"they sum to {total:.12g}")
    pairs = [(share, scale) for (share,), (scale,) in zip(shares, scales, strict=True) if share or scale]
    agree = all(share and scale for share, scale in pairs)
    products = [
        Fraction(scale) ** (1 if pure else 2) * Fraction(share) / cost(move, pure)
        for (share, scale), move in (zip(pairs, cover(quantity.patterns), strict=True) if agree else ())
        if scale > SMALLEST
    ]
    ratio = float(max(products) / min(products) - 1) if products else 0.0
    figures = f"within {ratio:.2g} of what its levels cost" if agree else "other levels are measured"
    report.check(f"noise of {quantity.name!r} follows its shares", agree and ratio <= 1e-9, figures)


# The table: values ------------------------------------------------------------------------------------------


def check_values(quantity: Quantity, texts: list[str], tree: Tree, report: Report) -> None:
    """Check that values are whole and not negative, add up, and agree with known counts."""
    part, name, n = quantity.part, repr(quantity.name), len(texts)
    unit, consistency = quantity.unit, part["consistency"]
    in_digits = part["quantity"] == COUNT and consistency in ("none", "integer")
    read_one: Callable[[str], float] = int if in_digits else float
    try:
        values = [Fraction(read_one(plain(text))) / unit for text in texts]
    except (ValueError, OverflowError):
        report.check(f"values of {name}", False, "one of them is missing, or is not a number")
        return
    largest = max(map(abs, values))
    slack = Fraction(1, 10**9) * (largest + 1)
    if consistency in ("none", "integer"):  # a multiple of the unit is shown as the nearest float
        units = [Fraction(round(value)) for value in values]
        nearest = Fraction(0 if part["quantity"] == COUNT else 1, 10**15)
        pairs = enumerate(zip(values, units, strict=True))
        wrong = [
            f"{texts[row]} in {line(row)}"
            for row, (value, near) in pairs
            if abs(value - near) > nearest * abs(value)
        ]
        whole_units = report.each(f"values of {name} are whole multiples of {unit}", wrong, n)
        if whole_units and (in_digits or largest * unit.numerator < 2**53):
            values, slack = units, Fraction(0)
    least = part["quantity"]["low"] + part["quantity"]["shift"]
    bounded = consistency in ("nonnegative", "integer") and least >= 0
    if bounded:
        wrong = [line(row) for row, value in enumerate(values) if value < -slack]
        report.each(f"values of {name} are not negative", wrong, n)
    unlike = "max_nodes" in part
    what = f"{name}, not additive: largest child <= node <= their sum" if unlike else f"sums of {name}"
    if consistency in (("none", "linear") if unlike else ("none",)):
        report.skip(what, f'with consistency "{consistency}" this need not hold: changes cannot be seen')
    else:
        wrong = [
            f"{line(row)} shows {texts[row]}, its children "
            f"{'sum to' if least == most else f'allow {float(least * unit)!r} to'} {float(most * unit)!r}"
            for level in range(1, len(tree.rows))
            for row, least, most in families(part, tree, level, [values[row] for row in tree.rows[level]])
            if not least - slack <= values[row] <= most + slack
        ]
        report.each(what, wrong, n)
    wrong, known = [], part["known"]
    for nodes, exact, least in zip(tree.rows, known["exact"], known["at_least"], strict=True):
        wrong += [
            f"{line(nodes[place])} is not {count}"
            for place, count in exact
            if abs(values[nodes[place]] - count) > slack
        ]
        wrong += [
            f"{line(nodes[place])} is below {count}"
            for place, count in least
            if bounded and values[nodes[place]] < count - slack
        ]
    if n_known := sum(map(len, known["exact"] + known["at_least"])):
        report.each(f"known values of {name}", wrong, n_known)


def families(
    part: dict[str, Any], tree: Tree, level: int, values: Sequence[Fraction]
) -> Iterator[tuple[int, Fraction, Fraction]]:
    """Return the row of each parent of a level, and the least and the most that its children allow.

    Each of a node's distinct units is in one of its children at least, and in at most `max_nodes` of them.
    """
    sums = tree.sums(level, values)
    if "max_nodes" not in part:
        yield from zip(tree.rows[level - 1], sums, sums, strict=True)
        return
    least = [total / part["max_nodes"][level] for total in sums]
    for parent, value in zip(tree.parents[level], values, strict=True):
        least[parent] = max(least[parent], value)
    yield from zip(tree.rows[level - 1], least, sums, strict=True)


# The table: errors ------------------------------------------------------------------------------------------


@cache
def variance(laplace: bool, scale: float | None) -> float:
    """Return the exact variance of discrete noise; infinite where nothing is measured."""
    if scale is None:
        return math.inf
    if laplace:
        q = math.exp(-1 / scale)
        return 2 * q / math.expm1(-1 / scale) ** 2
    if scale > 10:  # the variance is scale**2 up to exp(-1000)
        return scale**2
    masses = [math.exp(-((k / scale) ** 2) / 2) for k in range(400)]
    return 2 * math.fsum(k * k * mass for k, mass in enumerate(masses)) / (2 * math.fsum(masses) - 1)


Levels = list[list[float]]  # a number for each node of each level


def least_squares(tree: Tree, noise: Levels, excess: Levels) -> tuple[Levels, Levels, Levels]:
    """Return variances of each node's best estimates, from its subtree and from all measurements, and of S.

    From the leaves up, V = 1/(1/v + 1/S), with a node's own variance v and the sum S of its children's V.
    From the root down, a child's final variance is V (1 - V/S) + (V/S)**2 (that of its parent). The measured
    `excess` of the children's sum over the node, negated, is one more child.
    """
    subtree, below = [noise[-1]], []
    for level in reversed(range(len(noise) - 1)):
        sums = zip(tree.sums(level + 1, subtree[-1]), excess[level], strict=True)
        below.append([children + v for children, v in sums])
        own = zip(noise[level], below[-1], strict=True)
        subtree.append([v * s / (v + s) if v and s and v + s < math.inf else min(v, s) for v, s in own])
    subtree, below = subtree[::-1], below[::-1]
    final = [subtree[0]]
    for level in range(1, len(noise)):
        nodes = zip(subtree[level], tree.parents[level], strict=True)
        family, parents = below[level - 1], final[-1]
        final.append([v * (1 - (r := ratio(v, family[p]))) + r * r * parents[p] for v, p in nodes])
    return subtree, final, below


def ratio(part: float, whole: float) -> float:
    """Return the share of a family's variance; 0 if all is known, or something is not."""
    return part / whole if 0 < whole < math.inf else 0.0


def average(own: float, below: float, v: float, s: float) -> float:
    """Average a measurement of variance v, and what follows from the children, of variance s."""
    if not v or s == math.inf:
        return own
    return below if v == math.inf else (own * s + below * v) / (v + s)


def estimates(tree: Tree, noise: Levels, excess: Levels, measured: Levels, beyond: Levels) -> Levels:
    """Return each node's best estimate from all measurements, and from those of the excess.

    From the leaves up, z averages a node's own measurement and the sum of its children's z, less the excess,
    by their variances v and S. From the root down, a child's estimate is z + (V/S) (its parent's - that sum).
    """
    subtree, _, below = least_squares(tree, noise, excess)
    z, sums = [measured[-1]], []
    for level in reversed(range(len(noise) - 1)):
        total = tree.sums(level + 1, z[-1])
        more = zip(total, beyond[level], excess[level], strict=True)
        sums.append([y - (e if 0 < v < math.inf else 0.0) for y, e, v in more])
        own = zip(measured[level], sums[-1], noise[level], below[level], strict=True)
        z.append([average(*each) for each in own])
    z, sums = z[::-1], sums[::-1]
    found = [z[0]]
    for level in range(1, len(noise)):
        nodes = zip(z[level], subtree[level], tree.parents[level], strict=True)
        family, parents, total = below[level - 1], found[-1], sums[level - 1]
        found.append([y + ratio(v, family[p]) * (parents[p] - total[p]) for y, v, p in nodes])
    return found


def noise_of(part: dict[str, Any], laplace: bool, tree: Tree) -> tuple[Levels, Levels]:
    """Return the variance of each node's measurement, and of its excess, which is 0 in chains."""
    least = 0.0 if part["consistency"] == "none" else 1e-30  # stands for a variance of noise that underflows
    each = [max(variance(laplace, scale), least) for (scale,) in part["noise_scales"]]
    noise = []
    for v, exact, nodes in zip(each, part["known"]["exact"], tree.rows, strict=False):
        known = dict(exact)
        noise.append([0.0 if place in known else v for place in range(len(nodes))])
    bounds, of_excess = part.get("max_nodes", [1] * len(noise)), []
    for level, v in enumerate(each[len(noise) :] or [0.0] * (len(noise) - 1), 1):
        sizes = tree.sums(level, [1] * len(tree.rows[level]))
        of_excess.append([v if min(size, bounds[level]) > 1 else 0.0 for size in sizes])
    return noise, of_excess


def variances(part: dict[str, Any], laplace: bool, tree: Tree) -> tuple[Levels, Levels]:
    """Return the variances of each node's best estimates, from its subtree and from all measurements."""
    noise, excess = noise_of(part, laplace, tree)
    return (noise, noise) if part["consistency"] == "none" else least_squares(tree, noise, excess)[:2]


def count_of(plan: dict[str, Any], quantity: Quantity) -> dict[str, Any] | None:
    """Return the plan of the count, of which a shifted sum shows `shift` times as much; None for others."""
    if plan["kind"] == "joint" and quantity.shown == "values" and quantity.part["quantity"]["shift"]:
        count: dict[str, Any] = dict(plan["plans"])[plan["count"]]
        return count
    return None


def check_errors(
    quantity: Quantity,
    count: dict[str, Any] | None,
    laplace: bool,
    texts: list[str],
    tree: Tree,
    report: Report,
) -> None:
    """Check each standard error against the one that follows from the noise scales."""
    unit = float(quantity.unit)
    subtree, final = variances(quantity.part, laplace, tree)
    if count is not None:
        factor = quantity.part["quantity"]["shift"] ** 2
        subtree, final = (
            [[v + factor * w for v, w in zip(*each, strict=True)] for each in zip(*levels, strict=True)]
            for levels in zip((subtree, final), variances(count, laplace, tree), strict=True)
        )
    expected: dict[int, tuple[float, float]] = {}
    for level in zip(tree.rows, subtree, final, strict=True):
        for row, v, total in zip(*level, strict=True):
            expected.setdefault(row, (v, total))  # that of the leaf, not of its chain
    wrong = []
    for row, stated in enumerate(texts):
        (v, total), error = expected[row], parse(stated) / unit
        if not abs(error**2 - total) <= 2e-6 * abs(total) + 1e-12 * v < math.inf or error < 0:
            wrong.append(
                f"{line(row)} shows {stated or 'nothing'}, not {math.sqrt(max(total, 0)) * unit:.9g}"
            )
    report.each(f"standard errors of {quantity.name!r}", wrong, len(texts))


def plain(stated: str) -> str:
    """Return the text of a number; raise ValueError for what only Python reads as one, such as 1_000."""
    if not set(stated) <= set("+-.0123456789eE"):
        raise ValueError
    return stated


def parse(stated: str) -> float:
    """Read a number of the table; nan if there is none."""
    try:
        return float(plain(stated))
    except ValueError:
        return math.nan


def check_intervals(quantity: Quantity, columns: dict[str, list[str]], report: Report) -> None:
    """Check that each interval contains the value."""
    values, start = columns[quantity.name], quantity.prefix
    ends = zip(columns[f"{start}lower"], values, columns[f"{start}upper"], strict=True)
    wrong = [line(row) for row, texts in enumerate(ends) if not in_order(*map(parse, texts))]
    report.each(f"intervals of {quantity.name!r} contain the value", wrong, len(values))
    report.skip(f"width of the intervals of {quantity.name!r}", "quantiles are not computed again")


def check_noise_scales(quantity: Quantity, columns: dict[str, list[str]], tree: Tree, report: Report) -> None:
    """Check that the noise scales of the table are those of the plan, of the nodes and of excesses."""
    part, unit, n = quantity.part, float(quantity.unit), len(tree.rows)
    kinds: list[tuple[str, list[Any], list[Any]]] = [
        ("", part["noise_scales"][:n], part["known"]["exact"]),
        ("excess_", [*part["noise_scales"][n:], [None]], [[]] * n),
    ]
    for what, levels, known in kinds[: 1 + ("max_nodes" in part)]:
        planned: dict[int, float | None] = {}
        for nodes, exact, (scale,) in zip(tree.rows, known, levels, strict=True):
            public = dict(exact)
            for place, row in enumerate(nodes):
                planned.setdefault(row, None if scale is None or place in public else scale * unit)
        wrong, start = [], f"{quantity.prefix}{what}"
        for row, scale in sorted(planned.items()):
            stated, measured = columns[f"{start}noise_scale"][row], columns[f"{start}measurement"][row]
            as_planned = stated == measured == "" if scale is None else abs(parse(stated) / scale - 1) <= 1e-9
            if not as_planned:
                wrong.append(f"{line(row)} shows {stated or 'nothing'}, not {scale}")
        report.each(f"{what.replace('_', ' ')}noise scales of {quantity.name!r}", wrong, len(planned))


def check_estimates(
    quantity: Quantity, laplace: bool, columns: dict[str, list[str]], tree: Tree, report: Report
) -> None:
    """Check that unbiased estimates are those that follow from the measurements."""
    part, unit, start = quantity.part, float(quantity.unit), quantity.prefix
    what = f"estimates of {quantity.name!r} from its measurements"
    shown = [quantity.name] * (part["consistency"] in ("none", "linear"))
    shown += [f"{start}linear"] * part.get("keep_linear", False)
    chains = sum(map(len, tree.rows)) > len(columns["level"])
    if chains or not shown or quantity.shown != "values" or part["quantity"]["shift"]:
        why = "none are shown below short paths" if chains else "the table shows none that follow from them"
        report.skip(what, why)
        return

    def read_levels(name: str, rows: list[list[int]]) -> Levels:
        return [[parse(columns[name][row]) / unit for row in level] for level in rows]

    noise, excess = noise_of(part, laplace, tree)
    found = read_levels(f"{start}measurement", tree.rows)
    for values, exact in zip(found, part["known"]["exact"], strict=True):
        for place, count in exact:
            values[place] = count
    if part["consistency"] != "none":
        beyond = read_levels(EXCESS[0], tree.rows[:-1]) if "max_nodes" in part else excess
        found = estimates(tree, noise, excess, found, beyond)
    expected = [each for level in found for each in level]
    slack = 1e-9 * (max(map(abs, expected)) + 1)
    wrong = [
        f"{line(row)} shows {columns[name][row] or 'nothing'} as {name}, not {each * unit:.9g}"
        for name in shown
        for row, each in enumerate(expected)
        if not abs(parse(columns[name][row]) / unit - each) <= slack
    ]
    report.each(what, wrong, len(expected))


def in_order(low: float, value: float, high: float) -> bool:
    """Whether an interval contains a value, up to rounding."""
    slack = 1e-9 * max(abs(low), abs(high), 1)
    return low - slack <= value <= high + slack


# The whole --------------------------------------------------------------------------------------------------


def verify(
    plan: dict[str, Any], table: Path, digest: str | None, ledger_digest: str | None, report: Report
) -> None:
    """Check a plan and a table."""
    raw = read(table)
    computed = digest_of(plan)
    report.check("digest", plan.get("digest") == computed, f"{computed}, stated {plan.get('digest')}")
    if digest is None:
        report.unchecked.append("that this digest was approved: pass the noted one with --digest")
    else:
        noted = digest.strip().lower() == computed
        report.check(
            "noted digest",
            noted,
            digest if noted else f"{digest}; the plan has {computed} (all 64 digits count)",
        )
    sidecar = Path(f"{table}.json")
    described: dict[str, Any] = {}
    if sidecar.exists():
        beside = read_json(sidecar)
        attrs = beside.get("attrs") if isinstance(beside, dict) else None
        if not isinstance(attrs, dict) or beside.get("format") != TABLE:
            report.check("description beside the table", False, f"{sidecar.name} is not a {TABLE!r}")
        else:
            described = beside
            found = hashlib.sha256(raw).hexdigest()
            stated = beside.get("sha256")
            changed = "" if stated == found else ": the table was changed after it was written"
            report.check("bytes of the table", stated == found, f"{found}, stated {stated}{changed}")
            same = attrs.get("digest") == computed and beside.get("plan") in (None, plan)
            other = "" if same else ": the table states another plan"
            report.check("plan beside the table", same, f"digest {attrs.get('digest')}{other}")
    else:
        report.skip("bytes of the table", f"there is no {sidecar.name}")
    check_release(plan, raw, described, ledger_digest, report)
    kind, parts = plan.get("kind"), json.dumps(plan.get("plans"))
    unchecked = kind == "joint" and any(f'"{key}": ' in parts for key in ("max_nodes", "axes"))
    if not isinstance(kind, str) or kind not in RULES or unchecked:
        known = plan.get("format") == PLAN and isinstance(kind, str) and kind in OTHER_KINDS
        report.check("format", known, f"{plan.get('format')}, {kind}")
        what = f" ({OTHER_KINDS[str(kind)]})" if known else ""
        report.skip("budget and table", f"the kind of plan is {kind}{what}, which this program cannot check")
        report.status = 3
        return
    if kind in ("crossed", "quantiles"):
        (verify_crossed if kind == "crossed" else verify_quantiles)(plan, table, report)
        return
    if not check_format(plan, report):
        return
    if kind == "units" and described:
        bounds = dict(zip(plan["levels"][1:], plan["max_nodes"][1:], strict=True))
        told = described["attrs"].get("additive") is False and described["attrs"].get("max_nodes") == bounds
        report.check("description says that counts do not add up", told, f"a unit is in up to {bounds}")
    quantities, laplace = quantities_of(plan), plan["mechanism"] == "laplace"
    names, rows = read_table(table)
    planned = columns_of(plan, quantities)
    filled = len(set(names)) == len(names) and all(len(row) == len(names) for row in rows)
    figures = f"{names}" if names == planned else f"{names}; planned {planned}"
    figures += "" if filled else "; not every line has one field for each"
    fitting = report.check("columns", names == planned and filled, figures)
    tree = check_rows(plan, rows, report) if fitting else None
    if tree is None:
        why = "columns or rows are not as planned: was the table filtered, sorted, renamed?"
        report.skip("budget, values and errors", why)
        return
    for place, each in enumerate(quantities):
        if not fits(each, tree, report):
            return
        each = quantities[place] = moving(each, plan, tree)
        check_budget(each, laplace, tree, report)
        check_shares(each, laplace and "epsilon" in each.part["loss"], report)
        columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
        if each.shown != "nothing" and each.part["keep_measurements"]:
            check_noise_scales(each, columns, tree, report)
            check_estimates(each, laplace, columns, tree, report)
        if each.shown != "values":
            report.skip(f"values and errors of {each.name!r}", f"the table shows {each.shown}")
            continue
        check_values(each, columns[each.name], tree, report)
        check_errors(each, count_of(plan, each), laplace, columns[f"{each.prefix}std_error"], tree, report)
        if each.part["confidence"] is not None:
            check_intervals(each, columns, report)
    if plan["kind"] == "joint":
        check_joint_budget(plan, quantities, laplace, report)


# Crossed hierarchies ----------------------------------------------------------------------------------------

Margin = tuple[int, ...]  # the level of each axis
Cells = dict[tuple[tuple[str, ...], ...], int]  # by the path on each axis, the row


def verify_crossed(plan: dict[str, Any], table: Path, report: Report) -> None:
    """Check a plan for crossed hierarchies: its budget, and that all margins of its table agree."""
    lattice = check_crossed_format(plan, report)
    if not lattice:
        return
    quantity = quantities_of(plan)[0]
    names, rows = read_table(table)
    planned = columns_of_crossed(plan, quantity)
    fitting = names == planned and all(len(row) == len(names) for row in rows)
    report.check("columns", fitting, f"{names}" if fitting else f"{names}; planned {planned}")
    margins = check_cells(plan, lattice, rows, report) if fitting else None
    if margins is None:
        report.skip("budget, values and errors", "columns or rows are not as planned")
        return
    laplace = plan["mechanism"] == "laplace"
    if "max_per_leaf" in plan and plan["max_per_leaf"] < plan["max_contributions"]:
        report.skip("budget", "rows of a unit are limited by leaf cell, whose joint charge is not computed")
    else:
        k, single = plan["max_contributions"], single_cells(plan, lattice, margins)
        nodes: list[Nodes] = [[(k, 1 if alone else 2)] for alone in single]
        quantity = with_patterns(quantity, nodes, single, k)
        check_budget(quantity, laplace, Tree([[0]], [[]]), report)
        check_shares(quantity, laplace and "epsilon" in plan["loss"], report)
    values = check_numbers(quantity, [row[len(planned) - n_values(plan)] for row in rows], report)
    if values is not None and plan["consistency"] != "none":
        check_margins(lattice, margins, values, rows, report)
    report.skip(f"standard errors of {quantity.name!r}", "least squares of margins are not computed again")
    if any(map(any, (levels for axis in plan["known"] for levels in axis.values()))):
        report.skip("known counts", "only that all margins agree is checked where counts are public")


def check_crossed_format(plan: dict[str, Any], report: Report) -> list[Margin]:
    """Check keys, types and names of margins; return all margins of the levels that are needed."""
    if plan.get("format") != PLAN:
        report.check("format", False, f"the plan states {plan.get('format')!r}, not {PLAN!r}")
        return []
    found = list(faults(plan, CROSSED, "the plan"))
    lattice: list[Margin] = []
    if not found:
        depths = [len(keys) for keys in plan["axes"].values()]
        shown = plan["margins"]
        if shown and any(
            len(margin) != len(depths) or any(map(int.__gt__, margin, depths)) for margin in shown
        ):
            found.append("a margin has a level that its axis does not have")
        else:
            ground = depths if shown is None else [max(each) for each in zip(*shown, strict=True)]
            lattice = list(product(*(range(depth + 1) for depth in ground)))
            if [name_of_margin(plan, each) for each in lattice] != plan["levels"]:
                found.append("`levels` does not name the margins of its axes")
            lists = [plan[key] for key in ("nodes", "level_weights", "shares", "noise_scales")]
            if {*map(len, lists)} != {len(lattice)}:
                found.append("the plan does not have one entry for each margin")
            quantity = plan["quantity"]
            if quantity["column"] is None and quantity != COUNT:
                found.append("the plan does not add 1 for each record")
            if quantity["low"] > quantity["high"] or quantity["low"] == quantity["high"] == 0:
                found.append("the plan has bounds that are both 0, or in the wrong order")
    report.check("format", not found, "; ".join(found) or "crossed, version 3, all keys and types")
    return [] if found else lattice


def name_of_margin(plan: dict[str, Any], margin: Margin) -> str:
    """Return the name of a margin: those of its levels."""
    levels = zip(plan["axes"].values(), margin, strict=True)
    return " × ".join(str(keys[level - 1]) for keys, level in levels if level) or "total"


def columns_of_crossed(plan: dict[str, Any], quantity: Quantity) -> list[str]:
    """Return the columns that the table should have."""
    keys = [str(key) for keys in plan["axes"].values() for key in keys]
    own = [quantity.name, f"{quantity.prefix}std_error"]
    own += [f"{quantity.prefix}{each}" for each in ("measurement", "noise_scale")] * plan["keep_measurements"]
    own += [f"{quantity.prefix}linear"] * plan["keep_linear"]
    return [*(f"{axis}_level" for axis in plan["axes"]), *keys, *own]


def n_values(plan: dict[str, Any]) -> int:
    """Return how many columns hold numbers."""
    return 2 + 2 * bool(plan["keep_measurements"]) + bool(plan["keep_linear"])


def check_cells(
    plan: dict[str, Any], lattice: Sequence[Margin], rows: list[list[str]], report: Report
) -> dict[Margin, Cells] | None:
    """Check that each margin that is shown has all combinations of its nodes, in order, once each."""
    names = (["total", *map(str, keys)] for keys in plan["axes"].values())
    depths = [{name: level for level, name in enumerate(each)} for each in names]
    shown = sorted(map(tuple, plan["margins"])) if plan["margins"] else list(lattice)
    margins: dict[Margin, Cells] = {margin: {} for margin in shown}
    wrong, order = [], []
    for place, row in enumerate(rows):
        margin = tuple(each.get(name, -1) for each, name in zip(depths, row, strict=False))
        keys, paths, blank = iter(row[len(depths) :]), [], True
        for each, level in zip(depths, margin, strict=True):
            own = [next(keys) for _ in range(len(each) - 1)]
            paths.append(tuple(own[: max(level, 0)]))
            blank = blank and not any(own[max(level, 0) :])
        cell = tuple(paths)
        if margin not in margins or not blank:
            wrong.append(f"{line(place)} has a margin that the plan does not show, or keys below its levels")
        elif cell in margins[margin]:
            wrong.append(f"{line(place)} repeats a cell")
        else:
            margins[margin][cell] = place
            order.append(margin)
    for margin, cells in margins.items():
        combinations = math.prod(len({cell[axis] for cell in cells}) for axis in range(len(depths)))
        if not cells or not plan["nodes"][lattice.index(margin)] == len(cells) == combinations:
            wrong.append(f"the margin {margin} has {len(cells)} cells, not all combinations of its nodes")
    ordered = order == sorted(order)
    complete = report.each("cells of each margin", wrong, len(rows))
    report.check("order of the rows", ordered, "margin by margin, the coarsest first")
    return margins if complete and ordered else None


def single_cells(plan: dict[str, Any], lattice: Sequence[Margin], margins: dict[Margin, Cells]) -> list[bool]:
    """Whether each margin certainly has one cell: on each axis one node on its level, and on all above."""
    alone: list[set[int]] = []
    for axis, keys in enumerate(plan["axes"].values()):
        nodes: dict[int, set[Any]] = {0: {()}}
        for margin, cells in margins.items():
            nodes.setdefault(margin[axis], set()).update(cell[axis] for cell in cells)
        n_alone = 0
        while n_alone <= len(keys) and len(nodes.get(n_alone, ())) == 1:
            n_alone += 1
        alone.append(set(range(n_alone)))
    return [all(level in own for level, own in zip(margin, alone, strict=True)) for margin in lattice]


def check_numbers(quantity: Quantity, texts: list[str], report: Report) -> list[Fraction] | None:
    """Check that values are numbers, whole and not negative where they should be; return them in units."""
    part, name = quantity.part, repr(quantity.name)
    try:
        values = [Fraction(float(plain(text))) / quantity.unit for text in texts]
    except (ValueError, OverflowError):
        report.check(f"values of {name}", False, "one of them is missing, or is not a number")
        return None
    if part["quantity"] == COUNT and part["consistency"] in ("none", "integer"):
        wrong = [line(row) for row, text in enumerate(texts) if not text.lstrip("-").isdigit()]
        if not report.each(f"values of {name} are whole", wrong, len(texts)):
            return None
        values = [Fraction(int(text)) for text in texts]
    if part["consistency"] in ("nonnegative", "integer"):
        wrong = [line(row) for row, value in enumerate(values) if value < 0]
        report.each(f"values of {name} are not negative", wrong, len(texts))
    return values


def check_margins(
    lattice: Sequence[Margin],
    margins: dict[Margin, Cells],
    values: Sequence[Fraction],
    rows: Sequence[list[str]],
    report: Report,
) -> None:
    """Check that cells are the sums of those at most one level below on each axis, where there are any."""
    slack = min(Fraction(1, 10**9) * (max(map(abs, values), default=Fraction(0)) + 1), Fraction(1, 2))
    wrong, n = [], 0
    for margin, cells in margins.items():
        for finer in next_margins(margin, margins):
            sums: dict[Any, Fraction] = {}
            for cell, row in margins[finer].items():
                above = tuple(path[:level] for path, level in zip(cell, margin, strict=True))
                sums[above] = sums.get(above, Fraction(0)) + values[row]
            for cell, total in sums.items():
                n += 1
                if cell not in cells:
                    wrong.append(f"{cell} has no row in the margin above {finer}")
                elif abs(values[cells[cell]] - total) > slack:
                    wrong.append(
                        f"{line(cells[cell])} is not the sum of the cells below it: {float(total)!r}"
                    )
    if n:
        report.each("margins agree", wrong, n)
    else:
        report.skip("margins agree", "no margin is at most one level above another one on each axis")


def next_margins(margin: Margin, margins: Iterable[Margin]) -> list[Margin]:
    """Return the margins at most one level below on each axis, without those that are below another one."""
    below = [
        finer
        for finer in margins
        if finer != margin and all(0 <= b - a <= 1 for a, b in zip(margin, finer, strict=True))
    ]
    return [finer for finer in below if not any(o != finer and all(map(int.__le__, o, finer)) for o in below)]


# Quantiles --------------------------------------------------------------------------------------------------


def verify_quantiles(plan: dict[str, Any], table: Path, report: Report) -> None:
    """Check a plan for quantiles: what it spends, and that its table has values that it can release."""
    found = list(faults(plan, QUANTILES, "the plan"))
    found = found or list(faults_of_quantiles(plan))
    if not report.check("format", not found, "; ".join(found) or "quantiles, version 3, all keys and types"):
        return
    if plan["draws"]:
        check_draws(plan, report)
    if plan["trees"]:
        check_trees(plan, report)
    parts = [part["loss"] for part in (plan["draws"], plan["trees"]) if part]
    if not check_sums(parts, plan["loss"], report):
        report.check("budget of all together", False, "the parts state losses that cannot be added up")
    check_quantiles(plan, *read_table(table), report)
    if plan["draws"]:
        report.skip("values that were drawn", "any point of the grid may be drawn, though not as likely")
    if plan["trees"]:
        report.skip("values and intervals of trees", "the table does not have the counts they are read from")


def fractions_of(plan: dict[str, Any]) -> list[Fraction]:
    """Return the fractions that the quantiles of a plan mean: 1/3 for the nearest float."""
    return [Fraction(q).limit_denominator(1000) for q in plan["q"]]


def faults_of_quantiles(plan: dict[str, Any]) -> Iterator[str]:
    """List what contradicts itself in a plan for quantiles."""
    draws, trees, n = plan["draws"] or {}, plan["trees"] or {}, len(plan["levels"])
    if (plan["nodes"] is None) != (plan["domain"] is None) or len(plan["nodes"] or [1]) != n:
        yield "`nodes` does not have one entry for each level of groups"
    of_trees = n - 1 if draws and plan["confidence"] is None else n
    if trees.get("levels", 0) != of_trees:
        yield "`trees` are not those of the levels that need them"
    strategy = trees.get("strategy", {})
    if plan["mechanism"] != draws.get("selection", strategy.get("noise", "gaussian")):
        yield "`mechanism` is not that of the draws, nor the noise of trees"
    if trees and strategy["kind"] == "tree":
        lengths = {len(strategy[name]) for name in ("shares", "noise_scales")}
        leaves = math.prod(strategy["branching"])
        if lengths != {len(strategy["branching"]) + 1} or leaves < len(trees["bins"]["edges"]) - 1:
            yield "the trees do not have one entry for each level of bins, or too few bins"
    if plan["q"] != sorted(plan["q"]):
        yield "`q` is not in order"
    points = draws.get("grid", {})
    if any(each["column"] != plan["column"] for each in (points.get("bounds"), trees.get("bins")) if each):
        yield "the column of the draws, or of the trees, is another one"
    if draws:
        yield from faults_of_draws(plan, points)


def faults_of_draws(plan: dict[str, Any], points: dict[str, Any]) -> Iterator[str]:
    """List what contradicts itself in how quantiles are drawn from points."""
    fractions = [Fraction(0), *fractions_of(plan), Fraction(1)]
    near = all(abs(float(each) - q) < 1e-9 for each, q in zip(fractions[1:-1], plan["q"], strict=True))
    if not near or any(before >= after for before, after in pairwise(fractions)):
        yield "`q` are not different fractions between 0 and 1 with denominators up to 1000"
    if len(plan["draws"]["exponents"]) != len(plan["q"]):
        yield "there is not one exponent for each quantile"
    if plan["draws"]["selection"] == "permute_and_flip" and len(plan["levels"]) > 1:
        yield "permute-and-flip has no base measure, which draws of groups have"
    if "middles" in points:
        if plan["trees"] or len(plan["q"]) > 1:
            yield "the middles of bins are for a single quantile without trees"
    elif len(points["bounds"]["edges"]) != 2 or Grid.of(points).size < 2:
        yield "the grid does not have two bounds, with points between them"
    elif plan["trees"] and Grid.of(points).edges(len(plan["trees"]["bins"]["edges"]) - 1) != [
        Fraction(edge) for edge in plan["trees"]["bins"]["edges"]
    ]:
        yield "the bins of the trees are not cells of the grid"


class Grid(NamedTuple):
    """The points from which quantiles are drawn: multiples of their granularity from 0, or from `start`."""

    unit: Fraction
    low: int
    size: int
    start: int  # of times, in nanoseconds
    is_time: bool

    @classmethod
    def of(cls, points: dict[str, Any]) -> Grid:
        """Read a grid: of numbers the multiples of the granularity, of times those from the first bound."""
        unit, is_time = Fraction(*points["granularity"]), points["bounds"]["type"] != "number"
        first, last = points["bounds"]["edges"]
        if is_time:
            return cls(unit, 0, (last - first) // unit + 1, first, is_time)
        low, high = (round(Fraction(repr(float(end))) / unit) for end in (first, last))
        return cls(unit, low, high - low + 1, 0, is_time)

    def has(self, value: Fraction) -> bool:
        """Whether a value is a point; numbers are floats, computed from whole multiples."""
        point = round((value - self.start) / self.unit)
        exact = self.start + point * self.unit
        numerator, denominator = map(float, self.unit.as_integer_ratio())
        same = value == exact if self.is_time else float(value) == point * numerator / denominator
        return same and self.low <= point < self.low + self.size

    def edges(self, n: int) -> list[Fraction]:
        """Return the edges of n cells, halfway between points: floats, or whole nanoseconds."""
        firsts, half = [i * self.size // n for i in range(n + 1)], self.unit / 2
        if self.is_time:
            return [self.start + first * self.unit - int(half) for first in firsts]
        return [Fraction(float((self.low + first) * self.unit - half)) for first in firsts]


def check_draws(plan: dict[str, Any], report: Report) -> None:
    """Check what the draws spend, and that a record counts in them as much as that allows, and no more.

    Half of the quantiles are drawn at the last depth, half of the others at the one before, and so on. The
    draws of one depth spend epsilon together; or epsilon**2/8 of a rho, unless they permute and flip.
    """
    draws, loss = plan["draws"], plan["draws"]["loss"]
    depths, epsilon = len(plan["q"]).bit_length(), Fraction(draws["epsilon"])
    permutes = draws["selection"] == "permute_and_flip"

    def keeps(epsilon: Fraction) -> bool:
        rho = depths * epsilon**2 / 8
        if "rho" in loss:
            return not permutes and rho <= exact(loss["rho"])
        stated, delta = exact(loss["epsilon"]), decimal(exact(loss["delta"]))
        if depths * epsilon <= stated:
            return True
        return not permutes and delta > 0 and concentrated_delta(rho, stated) <= delta

    figures = f"{depths} x {float(epsilon):.12g} by {draws['selection']}, allowed {loss}"
    report.check("budget of the draws", keeps(epsilon), figures)
    more = epsilon * (1 + Fraction(1, 10**6))
    report.check("draws spend all of their loss", not keeps(more), f"{float(more):.12g} would be too much")
    several = len(plan["q"]) > 1 or len(plan["levels"]) > 1 or "middles" in draws["grid"]
    expected = [
        epsilon / (2 * plan["max_contributions"] * rank_moves(fraction, plan["neighbors"], several))
        for fraction in parts_drawn(fractions_of(plan), Fraction(0), Fraction(1))
    ]
    wrong = [
        f"{q} has {stated!r}, not {float(planned)!r}"
        for q, stated, planned in zip(plan["q"], draws["exponents"], expected, strict=True)
        if abs(Fraction(stated) / planned - 1) > Fraction(1, 10**12)
    ]
    report.each("exponents of the draws", wrong, len(expected))


def parts_drawn(quantiles: list[Fraction], below: Fraction, above: Fraction) -> list[Fraction]:
    """Return what each quantile is of its part: of the records between those that were drawn before.

    The middle one is drawn first, of all records; then those on both sides of it in the same way.
    """
    if not quantiles:
        return []
    middle = len(quantiles) // 2
    own = quantiles[middle]
    first, last = (
        parts_drawn(quantiles[:middle], below, own),
        parts_drawn(quantiles[middle + 1 :], own, above),
    )
    return [*first, (own - below) / (above - below), *last]


def rank_moves(fraction: Fraction, neighbors: str, several: bool) -> int:
    """Return how far one record moves the distances of a quantile a/b, of b times the ranks.

    It is max(a, b - a) if it is added or removed. If it is replaced it is twice that, since it may leave one
    of several groups or parts for another; but b if all distances are of the same records.
    """
    a, b = fraction.as_integer_ratio()
    if neighbors == "add_remove":
        return max(a, b - a)
    return 2 * max(a, b - a) if several else b


def check_trees(plan: dict[str, Any], report: Report) -> None:
    """Check the noise of the trees over bins, or weighted sums of bins, on all levels of groups together."""
    trees, k, replace = plan["trees"], plan["max_contributions"], plan["neighbors"] == "replace"
    strategy, n_bins = trees["strategy"], len(trees["bins"]["edges"]) - 1
    rows, move, shares, scales = 2 * k if replace else k, Move(1, 1, 1), [1.0], []
    if strategy["kind"] == "tree":
        total = math.fsum(strategy["shares"]) or 1.0
        shares, scales = [share / total for share in strategy["shares"]], strategy["noise_scales"]
    elif n_bins <= MOST_SUMS:
        move, scales = move_of_sums(n_bins, strategy["bits"]), [strategy["noise_scale"]]
    else:
        report.skip("budget of the trees", f"weighted sums of more than {MOST_SUMS} bins take too long")
        return
    move = Move(rows * move.l1, rows * k * move.l2, k * move.linf)
    part = {"loss": trees["loss"], "known": {"exact": [[]]}, "shares": [[share] for share in shares]}
    laplace, quantities = strategy.get("noise") == "laplace", []
    for n in (1, trees["levels"]):
        own = part | {"noise_scales": [[scale] for scale in scales] * n}
        measured = n * sum(scale is not None for scale in scales)
        quantities.append(Quantity("the trees", own, "nothing", rows, [[move] * measured], replace=replace))
    check_budget(quantities[1], laplace, Tree([[0]], [[]]), report)
    check_shares(quantities[0], laplace and "epsilon" in trees["loss"], report)


def move_of_sums(n: int, bits: int) -> Move:
    """Return how far one record moves weighted sums of n bins.

    The record of bin j adds (h(i - j) + h(i + j + 1)) d(j) to the sum i. Here h is even, h(x) = -h(2n - x),
    and it is the cosine transform of 1/sqrt(2 sin); d is inverse to the length of its column. Both are
    rounded to whole numbers.
    """
    cosines = [math.cos(math.pi * m / (2 * n)) for m in range(4 * n)]
    x = [1 / math.sqrt(2 * math.sin((2 * k + 1) * math.pi / (4 * n))) for k in range(n)]
    h, least = [], math.inf
    for m in range(n):
        transformed = math.fsum(each * cosines[m * (2 * k + 1) % (4 * n)] for k, each in enumerate(x)) / n
        least = min(least, max(0, round(2**bits * transformed)))
        h.append(least)
    h = [*h, 0, *(-each for each in reversed(h[1:]))]
    columns = [[h[abs(i - j)] + h[i + j + 1] for i in range(n)] for j in range(n)]
    squares = [sum(each * each for each in column) for column in columns]
    d = [math.floor(2.0**bits * math.sqrt(min(squares) / square)) for square in squares]
    l1 = max(weight * sum(column) for weight, column in zip(d, columns, strict=True))
    return Move(l1, max(w * w * s for w, s in zip(d, squares, strict=True)), l1)


def check_quantiles(plan: dict[str, Any], names: list[str], rows: list[list[str]], report: Report) -> None:
    """Check columns, groups and quantiles of the table, and then its values."""
    q, levels = plan["q"], plan["levels"]
    keys = ["level", *levels[1:]] if len(levels) > 1 else []
    planned = [*keys, "q", "value", *["lower", "upper"] * (plan["confidence"] is not None)]
    fitting = names == planned and all(len(row) == len(names) for row in rows)
    report.check("columns", fitting, f"{names}" if fitting else f"{names}; planned {planned}")
    firsts = rows[:: len(q)]
    if not fitting or (keys and check_rows(plan, firsts, report, len(q)) is None):
        report.skip("values", "columns or rows are not as planned: was the table filtered, sorted, renamed?")
        return
    n = len(q) * (len(firsts) if keys else 1)
    wrong = [
        line(place)
        for place, row in enumerate(rows)
        if parse(row[len(keys)]) != q[place % len(q)]
        or row[: len(keys)] != firsts[place // len(q)][: len(keys)]
    ]
    whole_groups = report.check("rows", len(rows) == n, f"{len(rows)} of {n // len(q)} x {len(q)}")
    if report.each("quantiles of each group", wrong, n) and whole_groups:
        check_quantile_values(plan, [row[len(keys) + 1 :] for row in rows], report)


def check_quantile_values(plan: dict[str, Any], rows: list[list[str]], report: Report) -> None:
    """Check that values are points, or within the bounds, and in order in their groups and intervals."""
    points = (plan["draws"] or {}).get("grid", {})
    bins = plan["trees"]["bins"] if plan["trees"] else points.get("middles") or points["bounds"]
    values: list[list[Any]] = [[value_of(text, bins) for text in row] for row in rows]
    unread = [
        line(place)
        for place, (row, (value, *ends)) in enumerate(zip(rows, values, strict=True))
        if None in ends or (value is None and row[0])
    ]
    if not report.each(f"values are {bins['type']}s", unread, len(rows)):
        return
    size, wrong, order, empty = len(plan["q"]), [], [], 0
    allowed = (size,) if points and len(plan["levels"]) == 1 else (0, size)  # a draw has a value
    for start in range(0, len(rows), size):
        found = [value for value, *_ in values[start : start + size] if value is not None]
        wrong += [line(start)] * (len(found) not in allowed)
        order += [line(start)] * (found != sorted(found))
        empty += not found
    report.each("groups have all quantiles or none", wrong, len(rows) // size)
    report.each("quantiles of a group are in order", order, len(rows) // size)
    if empty:
        report.skip(f"groups without values, {empty}", "whether nobody can be in them is not in the plan")
    wrong = [
        f"{rows[place][0]} in {line(place)}"
        for place, (value, *_) in enumerate(values)
        if value is not None and not can_be_released(value, points, bins)
    ]
    report.each(
        "values are points of the grid" if points else "values are within the bounds", wrong, len(rows)
    )
    if plan["confidence"] is not None:
        first, *_, last = bins["edges"]
        wrong = [
            line(place)
            for place, (value, low, high) in enumerate(values)
            if not first <= low <= (low if value is None else value) <= high <= last
        ]
        report.each("intervals contain the value, within the bounds", wrong, len(rows))


def can_be_released(value: Fraction, points: dict[str, Any], bins: dict[str, Any]) -> bool:
    """Whether a value is one of the points, or if there are none, within the bounds."""
    if "bounds" in points:
        return Grid.of(points).has(value)
    first, *_, last = map(Fraction, bins["edges"])
    if not points:
        return first <= value <= last
    slack = (last - first) / 10**9
    return any(
        abs(2 * value - Fraction(low) - Fraction(high)) <= slack for low, high in pairwise(bins["edges"])
    )


TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?: (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?)?(?:([+-])(\d\d):(\d\d))?", re.ASCII
)
DURATION = re.compile(r"(-?\d{1,6}) days?(?: \+?(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?)?", re.ASCII)


def value_of(text: str, bins: dict[str, Any]) -> Fraction | None:
    """Read a number, or a time in nanoseconds (since 1970 in UTC, if it is no duration); None for others."""
    try:
        if bins["type"] == "number":
            return Fraction(float(plain(text)))
        found = (DURATION if bins["type"] == "duration" else TIME).fullmatch(text)
        if found is None:
            return None
        if bins["type"] == "duration":
            days, *clock = found.groups()
            return Fraction(nanoseconds(int(days), *clock))
        year, month, day, *clock, sign, hours, minutes = found.groups()
        if (sign is None) != (bins["timezone"] is None):
            return None
        ahead = int(f"{sign or ''}1") * nanoseconds(0, hours, minutes)
        return Fraction(
            nanoseconds((date(int(year), int(month), int(day)) - date(1970, 1, 1)).days, *clock) - ahead
        )
    except (ValueError, OverflowError):
        return None


def nanoseconds(
    days: int, hours: str | None, minutes: str | None, seconds: str | None = None, rest: str | None = None
) -> int:
    """Return a time in nanoseconds."""
    whole_seconds = ((days * 24 + int(hours or 0)) * 60 + int(minutes or 0)) * 60 + int(seconds or 0)
    return whole_seconds * 10**9 + int((rest or "").ljust(9, "0"))


def check_release(
    plan: dict[str, Any], raw: bytes, described: dict[str, Any], noted: str | None, report: Report
) -> None:
    """Check that the values are those of the release, by their digest in the description and a noted one."""
    attrs, columns = described.get("attrs", {}), described.get("columns")
    stated, charge = attrs.get("table_digest"), attrs.get("ledger")
    if noted is None:
        report.unchecked.append(
            "that the values are those that were released, which no plan shows: pass the digest of the table "
            "that whoever saw the ledger noted with --ledger-digest"
        )
    if stated is None and noted is None:
        report.skip("values as released", "no description states their digest")
        return
    try:
        names, cells = read_cells(raw)
        if isinstance(columns, list) and len(columns) == len(names):
            floats = [is_float(each.get("type")) for each in columns]
        else:
            floats = [name not in ("level", *plan.get("levels", ())) for name in names]
        found = digest_of_values(names, cells, floats)
    except (AttributeError, TypeError, ValueError, OverflowError, csv.Error):
        found = "none, for the table is not as described"
    other = ": rows were selected or moved, or values changed, after the release"
    if stated is not None:
        report.check(
            "values as released",
            found == stated,
            f"{found}, stated {stated}{'' if found == stated else other}",
        )
    if noted is None:
        return
    noted = noted.strip().lower()
    if isinstance(charge, dict) and noted == charge.get("digest"):
        report.check("noted digest of the charge", True, f"{noted}, of charge {charge.get('charge')}")
        report.unchecked.append("that the values are those of this charge: note the digest of its table")
    else:
        same = noted == found
        report.check(
            "values as noted in the ledger", same, noted if same else f"{found}, noted {noted}{other}"
        )


def fits(quantity: Quantity, tree: Tree, report: Report) -> bool:
    """Check that known nodes exist, and as many nodes as one unit may be in."""
    sizes, known = list(map(len, tree.rows)), quantity.part["known"]
    bounds = quantity.part.get("max_nodes", ())
    fit = all(map(int.__le__, bounds, sizes)) and all(
        place < size
        for levels in (known["exact"], known["at_least"])
        for level, size in zip(levels, sizes, strict=True)
        for place, _ in level
    )
    figures = f"its known counts, or bounds, do not fit levels of {sizes} nodes"
    return fit or report.check(f"plan of {quantity.name!r}", False, figures)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the report, and return the exit status.

    It is 0 if all checks passed, 1 if one failed, 2 if the input cannot be read, and 3 if nothing failed but
    the budget and the table could not be checked.
    """
    parser = Parser(prog="verify.py", description="Check a released table against its plan.")
    parser.add_argument("plan", type=Path, help="plan.json, or counts.csv.json, which holds the plan")
    parser.add_argument("table", type=Path, help="counts.csv; counts.csv.json is read too if it is beside it")
    parser.add_argument("--digest", metavar="HEX", help="the noted digest of the approved plan, 64 digits")
    parser.add_argument(
        "--ledger-digest",
        metavar="HEX",
        help="the digest of the table, or of its charge, that whoever saw the ledger noted",
    )
    arguments = parser.parse_args(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # keys may have any letters
    report = Report()
    try:
        plan = read_json(arguments.plan)
        if isinstance(plan, dict) and plan.get("format") == TABLE:
            plan = plan.get("plan")
        if not isinstance(plan, dict):
            raise UnreadableError(
                f"{arguments.plan} holds no plan. Hint: pass plan.json, or counts.csv.json."
            )
        with localcontext(Context(prec=60)):
            verify(plan, arguments.table, arguments.digest, arguments.ledger_digest, report)
    except (UnreadableError, ArithmeticError) as error:
        hint = "" if isinstance(error, UnreadableError) else ". Hint: a number of the plan is out of range."
        print(visible(f"verify: {error}{hint}"), file=sys.stderr)
        return 2
    print(f"\n{report.passed} checks passed, {report.failed} failed. Not checked:")
    print("\n".join(visible(f"- {each}") for each in report.unchecked))
    return 1 if report.failed else report.status


if __name__ == "__main__":
    sys.exit(main())

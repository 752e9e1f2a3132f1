"""How tests call the command."""

from pandas_dptree.cli.commands import main

FACTOR = ["--mechanism", "multiplicative", "--epsilon", "1", "--delta", "1e-6", "--alpha", "0.25"]

BY = ["--by", "region", "--by", "district"]


def counts(files, *more, records="visits.csv"):
    return main(["counts", str(files / records), *BY, "--domain", str(files / "places.csv"), *more])


def remove(table):
    """Remove a table and, if it is a CSV file, its description."""
    table.unlink()
    table.with_name(f"{table.name}.json").unlink(missing_ok=True)


def run(files, verb, *more, records="visits.csv", domain="places.csv"):
    where = ["--domain", str(files / domain)]
    return main([verb, *([] if verb == "plan" else [str(files / records)]), *BY, *where, *more])


CONTROLS = [
    "\x1b[2J", "\x1b]0;title\x07", "\x9b31m", "\x85", "\x00", "\r", "\b", "\t", "\x7f", "\u200f", "\u202e",
    "\u2069", "\u2028", "\u2029", "\ud800", "\udcff",
]  # fmt: skip
"""What a terminal would obey or reorder, and what it cannot show."""


def is_safe(printed):
    """Whether a text of several lines holds nothing else that a terminal would obey."""
    return printed.replace("\n", "").isprintable()

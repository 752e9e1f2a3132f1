"""Messages of the library in the words of the shell: ``--epsilon 1`` for ``epsilon=1``."""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Mapping

from pandas_dptree.cli.charging import SHELL_PHRASES
from pandas_dptree.cli.parser import flag_of
from pandas_dptree.plans.options import OPTIONS

__all__ = ["flags_of", "in_shell_words"]

_ASSIGNMENT = re.compile(
    r"\b(?P<name>\w+)=(?P<value>\[[^\]]*\]|\([^)]*\)|\{[^}]*\}|\"[^\"]*\"|'[^']*'|\.\.\.|-?\w+(?:[.-]\w+)*)"
)
"""An argument in Python, as hints write it."""


def in_shell_words(message: str, arguments: argparse.Namespace) -> str:
    """Replace Python arguments by options of the shell: their names everywhere, and their values in hints."""
    names = {name: flag for name, option in OPTIONS.items() if (flag := option.flag)}
    names |= flags_of(arguments) | {"columns": "--column", "frame": "records", "parts": "--part"}
    names |= {
        "by": "--by",
        "column": "--column",
        "domain": "--domain",
        "bounds": "--bounds",
        "charge": "ENTRY",
    }
    for phrase, in_shell in SHELL_PHRASES.items():
        message = message.replace(phrase, in_shell)
    message = re.sub(r"`(\w+)`", lambda name: f"`{names.get(name[1], name[1])}`", message)
    fact, separator, hint = message.rpartition("\nHint: ")
    hint = _ASSIGNMENT.sub(lambda found: _with_flag(found, names), hint)
    return fact + separator + re.sub(r"\b[a-z]+(_[a-z]+)+\b", lambda name: names.get(name[0], name[0]), hint)


def flags_of(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the shell's names of a command's options, by their names in Python."""
    return {name: flag_of(name) for name in vars(arguments) if name not in ("run", "records")}


def _with_flag(found: re.Match[str], names: Mapping[str, str]) -> str:
    """Write an argument as an option: each entry of a list with the flag, all of a tuple after one flag."""
    flag, text = names.get(found["name"]), found["value"]
    if flag is None:
        return found[0]
    if text == "True":
        return flag
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return f"{flag} {text}"
    if value is Ellipsis:
        return f"{flag} ..."
    if isinstance(value, tuple):
        return f"{flag} {' '.join(map(str, value))}"
    if isinstance(value, dict):
        value = [f"{name}={each}" for name, each in value.items()]
    return " ".join(f"{flag} {each}" for each in value) if isinstance(value, list) else f"{flag} {value}"

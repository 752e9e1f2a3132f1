"""What is wrong with a programme: everything at once, with lines and hints; and the reading of its keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, time
from typing import Any, Final

from pandas_dptree.errors import ArgumentError, DPTreeError, did_you_mean, quote
from pandas_dptree.programmes.lines import Path

__all__ = ["EXAMPLES", "NONE", "Problem", "Problems", "ProgrammeError", "Section"]

NONE: Final = "there is none."
"""What is wrong with a table of tables that is not there."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A fact that is wrong or worth knowing, the keys that lead to it, and what would work."""

    path: Path
    line: int | None
    fact: str
    hint: str

    def __str__(self) -> str:
        """Format the problem as two lines."""
        line = "" if self.line is None else f"line {self.line}"
        where = ", ".join(filter(None, [line, ".".join(self.path)]))
        return f"  {where}{': ' * bool(where)}{self.fact}\n           Hint: {self.hint}"


class ProgrammeError(ArgumentError):
    """A programme that cannot be run; nothing was read, charged or written.

    Attributes
    ----------
    problems : tuple of Problem
        Everything that is wrong, in the order of the lines.
    """

    def __init__(self, name: str, problems: Sequence[Problem]) -> None:
        number = "1 error" if len(problems) == 1 else f"{len(problems)} errors"
        self.problems = tuple(problems)
        self.heading = f"{name} has {number}. Nothing was read, charged or written."
        super().__init__("programme", f"{self.heading}\n", hint="correct the file.")

    def __str__(self) -> str:
        """List all problems."""
        return "\n".join([self.heading, "", *map(str, self.problems)])


@dataclass(frozen=True, slots=True)
class Problems:
    """Collects what is wrong with a document: `lines` has its keys, and its paths are below `folder`."""

    lines: Mapping[Path, int]
    folder: str = ""
    found: list[Problem] = field(default_factory=list)

    def line(self, path: Path) -> int | None:
        """Return the line of a key, or of the innermost table or key around it that has one."""
        ends = range(len(path), 0, -1)
        around = next((self.lines[path[:end]] for end in ends if path[:end] in self.lines), None)
        below = [line for key, line in self.lines.items() if path and key[: len(path)] == path]
        return min(below) if below else around

    def add(self, path: Path, fact: str, hint: str, entry: int | None = None) -> None:
        """Note what is wrong with a key, or with an entry of its list, counted from 1."""
        line = self.line(path if entry is None else (*path, str(entry)))
        self.found.append(Problem(path, line, fact if entry is None else f"entry {entry}: {fact}", hint))

    def catching(self, path: Path, arguments: Mapping[str, str] | None = None) -> _Catching:
        """Note an error of this package that the block raises, and go on after the block.

        It is noted at the key of its argument, if `arguments` has one below `path`, or else at `path` itself.
        """
        return _Catching(self, path, {} if arguments is None else arguments)

    def note(self, path: Path, *texts: str, entry: int | None = None) -> None:
        """Note a message of a call, without what only calls have, and with paths as they are written."""
        fact, hint = (each.replace("`", "").replace("dpt.", "").replace(self.folder, "") for each in texts)
        self.add(path, fact, hint, entry)


@dataclass(frozen=True, slots=True)
class _Catching:
    """Notes the errors of a block: see `Problems.catching`."""

    problems: Problems
    path: Path
    arguments: Mapping[str, str]

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        """Note an error of this package."""
        if isinstance(error, DPTreeError):
            argument = error.argument if isinstance(error, ArgumentError) else None
            key = self.arguments.get(argument) if argument is not None else None
            own = argument is not None and argument == (key or self.path[-1])
            fact = error.fact.partition("` ")[2] if own else error.fact
            self.problems.note(self.path if key is None else (*self.path, key), fact, error.hint)
        return isinstance(error, DPTreeError)


_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "a text": (str,),
    "true or false": (bool,),
    "a whole number": (int,),
    "a whole number or a table": (int, dict),
    "a number": (int, float),
    "a table": (dict,),
    "a list": (list,),
    "a list of tables": (list,),
    "a text or a list of texts": (str, list),
    "a list of texts": (list,),
    "a text, a list or a table": (str, list, dict),
    "a text or a table": (str, dict),
    "a text, a list of texts or a table": (str, list, dict),
    "a number or a text": (int, float, str),
    "a number or a list": (int, float, list),
    "a date": (date,),
}


class Section:
    """A table of a programme, which is read key by key; what is wrong with it is noted.

    Keys that nobody has asked for are unknown: `finish` says so, and `meant` are those that are misspelled.
    Values of a wrong type become None.
    """

    def __init__(self, problems: Problems, path: Path, values: Any) -> None:
        self.problems, self.path = problems, path
        self.entries: dict[str, Any] = dict(values) if isinstance(values, dict) else {}
        self._known: list[str] = []
        self.meant: list[str] = []
        if values is not None and not isinstance(values, dict):
            self.add(
                None, f"must be a table, not {_named(values)}.", f"write [{'.'.join(path)}] above its keys."
            )

    def add(self, key: str | None, fact: str, hint: str, entry: int | None = None) -> None:
        """Note what is wrong with a key, an entry of its list, or the whole table."""
        self.problems.add(self.path if key is None else (*self.path, key), fact, hint, entry)

    def take(self, key: str, kind: str, default: Any = None) -> Any:
        """Return the value of a key, if it is of this kind; else `default`."""
        self._known.append(key)
        if key not in self.entries:
            return default
        value = self.entries[key]
        if value is None or _is(value, kind):
            return default if value is None else value
        self.add(key, f"must be {kind}, not {_named(value)}.", EXAMPLES.get(key, f"write {kind}."))
        self.entries[key] = None  # stated, but of no use
        return default

    def need(self, key: str, kind: str, why: str) -> Any:
        """Return the value of a key that must be there; `why` is the hint if it is not."""
        if key not in self.entries:
            self._known.append(key)
            self.add(None, f"lacks {key}.", why)
            return None
        return self.take(key, kind)

    def choose(self, key: str, choices: Sequence[str], default: str | None = None) -> str | None:
        """Return one of several texts."""
        value: str | None = self.take(key, "a text", default)
        if value is not None and value not in choices:
            meant = did_you_mean([value], choices)
            self.add(key, f"{quote(value)} is unknown.", f"{meant}choose one of {', '.join(choices)}.")
            return default
        return value

    def sections(self, key: str) -> Iterator[tuple[str, Section]]:
        """Yield the tables within a table, by their names."""
        tables = self.take(key, "a table", {})
        for name, values in tables.items():
            yield name, Section(self.problems, (*self.path, key, name), values)

    def rest(self, known: Sequence[str]) -> dict[str, Any]:
        """Return the values of all these keys that are given, whatever they are."""
        self._known += known
        return {key: self.entries[key] for key in known if key in self.entries}

    def finish(self, explained: Mapping[str, tuple[str, str]] | None = None) -> None:
        """Note the keys that are unknown; some are `explained` by a fact and a hint."""
        for key in self.entries:
            if key in self._known:
                continue
            if explained is not None and key in explained:
                self.add(key, *explained[key])
                continue
            hint = did_you_mean([key], self._known).strip().replace("'", "")
            meant = hint.removeprefix("did you mean ").removesuffix("?")
            if meant and meant not in self.entries:
                self.meant.append(meant)
                self.problems.found[:] = [
                    each for each in self.problems.found if not self._is_lack(each, meant)
                ]
            self.add(key, "unknown key.", hint or f"its keys are {', '.join(dict.fromkeys(self._known))}.")

    def _is_lack(self, problem: Problem, key: str) -> bool:
        """Whether a problem is that a key is not there."""
        here = problem.path == self.path and problem.fact.startswith(f"lacks {key}")
        return here or (problem.path == (*self.path, key) and problem.fact == NONE)


EXAMPLES: Final = {
    "by": 'for example by = ["region", "district"].',
    "columns": "for example columns = { cost = { bounds = [0, 500] } }.",
    "files": 'for example files = "visits/*.parquet".',
    "max_nodes": "for example max_nodes = 4, or max_nodes = { region = 1, clinic = 4 }.",
    "share": "for example share = 0.5.",
    "write": 'for example write = ["parquet", "html"].',
}
"""Hints at what a key may hold."""


def _is(value: Any, kind: str) -> bool:
    """Whether a value of TOML is of a kind; true is no number."""
    if isinstance(value, bool):
        return kind == "true or false"
    if not isinstance(value, _KINDS[kind]) or (
        isinstance(value, str) and "\0" in value
    ):  # no file has such a name
        return False
    if isinstance(value, list) and kind.endswith(("of texts", "texts or a table")):
        return all(isinstance(each, str) for each in value)
    return (
        not isinstance(value, list) or kind != "a list of tables" or all(isinstance(e, dict) for e in value)
    )


def _named(value: Any) -> str:
    """Say of which type a value is, in the words of TOML."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"the text {quote(value)}"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, date | time):
        return f"the time {value}"
    return "a table" if isinstance(value, dict) else "a list" if isinstance(value, list) else quote(value)

"""The lines of the keys of a TOML document: ``tomllib`` itself keeps none."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

__all__ = ["Path", "lines_of"]

Path = tuple[str, ...]
"""The keys that lead to a value, from the outermost."""

_KEY: Final = r"(?:[A-Za-z0-9_-]+|\"(?:[^\"\\]|\\.)*\"|'[^']*')"
_DOTTED: Final = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_HEAD: Final = re.compile(rf"\s*\[\[?\s*({_DOTTED})\s*\]")
_PAIR: Final = re.compile(rf"\s*({_DOTTED})\s*=")
_TEXT: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*', re.DOTALL
)


def lines_of(document: str) -> Mapping[Path, int]:
    """Return the line of each table and key of a document that ``tomllib`` has accepted, counted from 1.

    Keys within an inline table have the line of the key whose value this is, and lists or tables within a
    list, the n-th of which has the key "n", the line on which they begin.
    """
    raw = document.split("\n")
    plain = _TEXT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), document).split("\n")
    found: dict[Path, int] = {}
    table: Path = ()
    key: Path = ()
    depth = entries = 0
    repeated: Counter[Path] = Counter()
    for number, (line, structure) in enumerate(zip(raw, plain, strict=True), start=1):
        if depth == 0:
            if (head := _HEAD.match(line)) and structure[head.end() - 1] == "]":
                table = _parts(head[1])
                found.setdefault(table, number)
                if "[[" in head[0]:
                    repeated[table] += 1
                    found[(*table, str(repeated[table]))] = number
                continue
            if (pair := _PAIR.match(line)) and structure[pair.end() - 1] == "=":
                key, entries = table + _parts(pair[1]), 0
                found.setdefault(key, number)
        for bracket in re.findall(r"[\[\]{}]", structure):
            if bracket in "[{" and depth == 1:
                entries += 1
                found[(*key, str(entries))] = number
            depth += 1 if bracket in "[{" else -1
    return found


def _parts(dotted: str) -> Path:
    return tuple(key[1:-1] if key[0] in "\"'" else key for key in re.findall(_KEY, dotted))

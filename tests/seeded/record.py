"""Record what the package computes, or compare it with what was recorded.

``python -m tests.seeded.record`` writes everything anew, and ``... NAME NAME`` these cases alone;
``--check`` writes nothing and prints each difference; ``--list`` names the cases.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

from tests.seeded.cases import CASES
from tests.seeded.described import described, differences, laid_out

mpl.use("agg")
STORED = Path(__file__).with_name("stored")


def replayed(name: str) -> Any:
    """Run a case, and describe what it returns as a file would hold it."""
    try:
        with warnings.catch_warnings(action="ignore"):  # warnings may be added
            return json.loads(json.dumps(described(CASES[name]())))
    finally:
        plt.close("all")


def changes(name: str) -> list[str]:
    """Run a case, and tell where it differs from what was recorded."""
    file = STORED / f"{name}.json"
    if not file.is_file():
        return ["it was not recorded"]
    try:
        found = replayed(name)
    except Exception as error:
        return [f"it raises {type(error).__name__}: {error}"]
    return differences(json.loads(file.read_text(encoding="utf-8")), found)


def left_over() -> list[str]:
    """List what was recorded and is no case any more."""
    return sorted({file.stem for file in STORED.glob("*.json")} - set(CASES))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.seeded.record", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which cases; all by default")
    parser.add_argument("--check", action="store_true", help="compares, and writes nothing")
    parser.add_argument("--list", action="store_true", help="names the cases")
    arguments = parser.parse_args(argv)
    names = arguments.names or list(CASES)
    if unknown := sorted(set(names) - set(CASES)):
        parser.error(f"no such cases: {', '.join(unknown)}")
    if arguments.list:
        print("\n".join(names))
        return 0
    if arguments.check:
        found = {name: changes(name) for name in names}
        if not arguments.names:
            found |= {name: ["it is no case any more"] for name in left_over()}
        for name, told in found.items():
            print(*(f"{name}: {line}" for line in told), sep="\n", end="\n" * bool(told))
        n = sum(map(bool, found.values()))
        print(f"{len(found) - n} cases of {len(found)} are as recorded.")
        return int(n > 0)
    STORED.mkdir(exist_ok=True)
    for name in names:
        text = laid_out(replayed(name))
        (STORED / f"{name}.json").write_text(f"{text}\n", encoding="utf-8", newline="\n")
    if not arguments.names:
        for name in left_over():
            (STORED / f"{name}.json").unlink()
    print(f"{len(names)} cases recorded.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

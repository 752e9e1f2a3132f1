"""Record what the package computes, or compare it with what was recorded.

``python -m tests.seeded.record`` writes everything anew and prints what changed, ``... NAME NAME`` these
cases alone. ``--check`` writes nothing and prints each difference; ``--show NAME`` prints what was recorded;
``--list`` names the cases, and ``--times`` their CPU seconds. Each module of cases has one compressed file of
JSON, which names the versions it was recorded with.

Processors round logarithms and sums differently in the last place, and a search for the best split passes
that on to the eighth. So some cases were recorded on two kinds of processors, and either recording will do:
`other_processor.json.xz` holds what numpy computes without AVX-512. ``--other-processor`` records the named
cases there.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import lzma
import platform
import sys
import time
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

from tests.seeded.cases import CASES, module_of
from tests.seeded.described import described, differences

mpl.use("agg")
STORED = Path(__file__).with_name("stored")
OTHER = "other_processor"
_PACKAGES = ("numpy", "pandas", "scipy", "xarray", "narwhals", "polars", "pyarrow", "duckdb", "dask")


def replayed(name: str) -> Any:
    """Run a case, and describe what it returns as a file would hold it."""
    try:
        with warnings.catch_warnings(action="ignore"):  # warnings may be added
            return json.loads(json.dumps(described(CASES[name]())))
    finally:
        plt.close("all")


@cache
def stored(module: str) -> dict[str, Any]:
    """Read what was recorded of the cases of a module."""
    file = STORED / f"{module}.json.xz"
    return json.loads(lzma.decompress(file.read_bytes()))["cases"] if file.is_file() else {}


def changes(name: str) -> list[str]:
    """Run a case, and list where it differs from what was recorded."""
    recorded = [stored(file)[name] for file in (module_of(name), OTHER) if name in stored(file)]
    if not recorded:
        return ["it was not recorded"]
    try:
        found = replayed(name)
    except Exception as error:
        return [f"it raises {type(error).__name__}: {error}"]
    return min((differences(each, found) for each in recorded), key=len)


def left_over() -> list[str]:
    """List what was recorded and is no case any more."""
    recorded = {file.name.partition(".")[0] for file in STORED.glob("*.json.xz")}
    return sorted({name for module in recorded for name in stored(module)} - set(CASES))


def write(names: list[str], *, other_processor: bool = False) -> None:
    """Record cases anew, and forget those that are none any more."""
    versions = {"python": platform.python_version()}
    versions |= {each: importlib.metadata.version(each) for each in _PACKAGES}
    found = {name: replayed(name) for name in names}
    STORED.mkdir(exist_ok=True)
    modules = {file.name.partition(".")[0] for file in STORED.glob("*.json.xz")} | set(map(module_of, CASES))
    for module in [OTHER] if other_processor else sorted(modules - {OTHER}):
        before = stored(module)
        own = [name for name in CASES if module in (module_of(name), OTHER)]
        after = {name: found.get(name, before.get(name)) for name in own if name in found or name in before}
        if after == before:
            continue
        for name in after:
            lines = differences(before[name], after[name]) if name in before else ["recorded"]
            print(*(f"{name}: {line}" for line in lines), sep="\n", end="\n" * bool(lines))
        file = STORED / f"{module}.json.xz"
        if after:
            text = json.dumps({"recorded with": versions, "cases": after})
            file.write_bytes(lzma.compress(text.encode(), preset=9))
        else:
            file.unlink()


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.seeded.record", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which cases; all by default")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--check", action="store_true", help="compares, and writes nothing")
    action.add_argument("--show", action="store_true", help="prints what was recorded")
    action.add_argument("--list", action="store_true", help="names the cases")
    action.add_argument("--other-processor", action="store_true", help="records a processor of another kind")
    action.add_argument("--times", action="store_true", help="prints the CPU seconds of each case")
    arguments = parser.parse_args(argv)
    names = arguments.names or list(CASES)
    if unknown := sorted(set(names) - set(CASES)):
        parser.error(f"no such cases: {', '.join(unknown)}")
    if arguments.list:
        print("\n".join(names))
    elif arguments.show:
        shown = {name: stored(module_of(name)).get(name) for name in names}
        print(json.dumps(shown, indent=1, ensure_ascii=False))
    elif arguments.times:
        for name in names:
            start = time.process_time()
            replayed(name)
            print(f"{time.process_time() - start:.3f} {name}")
    elif arguments.check:
        found = {name: changes(name) for name in names}
        if not arguments.names:
            found |= {name: ["it is no case any more"] for name in left_over()}
        for name, lines in found.items():
            print(*(f"{name}: {line}" for line in lines), sep="\n", end="\n" * bool(lines))
        n = sum(map(bool, found.values()))
        print(f"{len(found) - n} cases of {len(found)} are as recorded.")
        return int(n > 0)
    else:
        write(names, other_processor=arguments.other_processor)
        print(f"{len(names)} cases recorded.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

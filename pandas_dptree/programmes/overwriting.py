"""Whether a run would write over what it reads, or among records, where a later run would read it."""

from __future__ import annotations

import glob
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pandas_dptree.errors import DPTreeError, quote
from pandas_dptree.ingest.files.record_paths import record_files
from pandas_dptree.programmes.placeholders import Placeholder
from pandas_dptree.programmes.programme import Outputs, Source

__all__ = ["PAGE", "is_zarr", "overwritten"]

PAGE = "index.html"


def overwritten(
    document: Mapping[str, Any],
    outputs: Outputs,
    *,
    names: Collection[str],
    sources: Collection[Source],
    placeholder: Placeholder,
    folder: Path,
    path: Path | None,
) -> str | None:
    """Say what a run would write over or beside, in words that follow "would"; None if it is nothing.

    Whatever text of the document is the path of a file that exists counts as a file that is read.
    """
    read = {each.resolve() for each in [path] if each is not None}
    texts = [
        placeholder.fill(each) for key, part in document.items() if key != "outputs" for each in _texts(part)
    ]
    for text in texts:
        with suppress(OSError, ValueError):  # most texts are no paths
            if (folder / text).is_file():
                read.add((folder / text).resolve())
    for source in sources:
        with suppress(DPTreeError, OSError, ValueError):  # files that cannot be found are noted elsewhere
            read |= {each.path.resolve() for each in record_files(source.files)}
    for target in _targets(outputs, names):
        shown = quote(target.name)
        if target.resolve() in read:
            return f"write {shown} over a file that the programme reads."
        if any(_is_among(target, given) for source in sources for given in source.files):
            return f"write {shown} among the records of a source, where the next run would read it."
        if target.is_dir() and not (target.suffix == ".zarr" and is_zarr(target)):
            return f"write {shown} in place of a folder that no run has made."
    return None


def is_zarr(folder: Path) -> bool:
    """Whether a folder holds a tree of Zarr, as a run writes it."""
    return any((folder / name).is_file() for name in ("zarr.json", ".zgroup"))


def _texts(part: Any) -> Iterator[str]:
    """Return all texts within a part of a document."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, Mapping | list | tuple):
        for each in part.values() if isinstance(part, Mapping) else part:
            yield from _texts(each)


def _targets(outputs: Outputs, names: Collection[str]) -> Iterator[Path]:
    """Return all paths that a run may write."""
    yield outputs.folder / ".lock"
    for kind in outputs.write:
        if kind == "html":
            yield outputs.folder / PAGE
            continue
        for name in names:
            yield outputs.folder / f"{name}.{kind}"
            if kind == "csv":
                yield outputs.folder / f"{name}.csv.json"


def _is_among(target: Path, given: str) -> bool:
    """Whether a source that names a folder or a pattern would read a file; see `record_files`."""
    parts = Path(given).parts
    if not Path(given).is_dir() and not glob.has_magic(given):
        return False
    literal = next((place for place, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    base = Path(*parts[:literal]).resolve()
    found = target.resolve()
    return found.is_relative_to(base) and _covers(parts[literal:], found.relative_to(base).parts)


def _covers(pattern: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    """Whether a pattern matches a path, or a folder around it, all of which is then read."""
    if not pattern or not parts:
        return not pattern
    if pattern[0] == "**":
        return _covers(pattern[1:], parts) or _covers(pattern, parts[1:])
    return fnmatchcase(parts[0], pattern[0]) and _covers(pattern[1:], parts[1:])

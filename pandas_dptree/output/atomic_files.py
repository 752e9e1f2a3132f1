"""Files that are written completely or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

__all__ = ["check_writable", "write_whole"]


def check_writable(path: Path) -> None:
    """Check whether `write_whole` could write a file, without writing it.

    Raises
    ------
    OSError
        If the path is a folder, or nothing can be written beside it.
    """
    if path.is_dir():
        raise IsADirectoryError
    _temporary_folder(path.resolve()).cleanup()


def write_whole(path: Path, fill: Callable[[Path], object], *, replace: bool = True) -> None:
    """Write a file completely or not at all. A link is followed.

    `fill` writes to the temporary path that it is given, which is then moved to `path`.

    Raises
    ------
    FileExistsError
        If not `replace` and the file exists, even if it appeared only just now. It is not changed.
    OSError
        If the file cannot be written.
    """
    path = path.resolve()  # a link's target may be on another file system
    with _temporary_folder(path) as scratch:
        whole = Path(scratch) / path.name
        fill(whole)
        if replace:
            os.replace(whole, path)
        else:
            _move_without_replacing(whole, path)


def _temporary_folder(path: Path) -> tempfile.TemporaryDirectory[str]:
    """Make a temporary folder on the same file system, so that a file can be moved in one step."""
    return tempfile.TemporaryDirectory(dir=path.parent, prefix=".dptree-")


def _move_without_replacing(whole: Path, path: Path) -> None:
    """Rename a file, unless one with the new name exists."""
    try:
        os.link(whole, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        path.touch(exist_ok=False)
        try:
            os.replace(whole, path)
        except OSError:
            path.unlink()
            raise

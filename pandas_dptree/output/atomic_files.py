"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

__all__ = ["check_writable", "write_whole"]


def check_writable(path: Path) -> None:
    """Find out whether `write_whole` could write a file, without writing it.

    Raises
    ------
    OSError
        If the path is a folder, or nothing can be written beside it.
    """
    if path.is_dir():
        raise IsADirectoryError
    _beside(path.resolve()).cleanup()


def write_whole(path: Path, fill: Callable[[Path], object], *, replace: bool = True) -> None:
    """Write the whole file or nothing.

    Parameters
    ----------
    path : pathlib.Path
        Where a link stands, what it leads to is written.
    fill : callable
        Writes the file to the path that it is given: beside the final one, which it then becomes.
    replace : bool, default True
        Whether a file that is there already is replaced, or stays.

    Raises
    ------
    FileExistsError
        If the file is there already, and stays. One that has only just appeared stays too.
    OSError
        If the file cannot be written.
    """
    path = path.resolve()  # what a link leads to may be on another file system
    with _beside(path) as scratch:
        whole = Path(scratch) / path.name
        fill(whole)
        if replace:
            os.replace(whole, path)
        else:
            _move_where_nothing_is(whole, path)


def _beside(path: Path) -> tempfile.TemporaryDirectory[str]:
    """Make a folder on the same file system, so that a file can be moved to its place in one step."""
    return tempfile.TemporaryDirectory(dir=path.parent, prefix=".dptree-")


def _move_where_nothing_is(whole: Path, path: Path) -> None:
    """Rename a file, unless there is one of the new name."""
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

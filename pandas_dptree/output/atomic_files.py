"""Files that are written completely or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

__all__ = ["check_writable", "write_together", "write_whole"]


def check_writable(path: Path) -> None:
    """Check whether `write_whole` could write a file, without writing it."""
    if path.is_dir():
        raise IsADirectoryError
    _temporary_folder(path.resolve()).cleanup()


def write_whole(path: Path, fill: Callable[[Path], object], *, replace: bool = True) -> None:
    """Write a file completely or not at all. A link is followed.

    `fill` writes to the temporary path that it is given, which is then moved to `path`. If not `replace`, a
    file that appeared only just now is not changed either.
    """
    write_together({path: fill}, replace=replace)


def write_together(files: Mapping[Path, Callable[[Path], object]], *, replace: bool = True) -> None:
    """Write several files that belong together, as by `write_whole`: all of them, or none.

    They are moved into place in order, the one that gives the others a meaning last. If a move fails, those
    before it are removed again; what they replaced is lost.
    """
    with contextlib.ExitStack() as scratch, contextlib.ExitStack() as undo:
        moves = []
        for path, fill in files.items():
            path = path.resolve()  # a link's target may be on another file system
            whole = Path(scratch.enter_context(_temporary_folder(path))) / path.name
            fill(whole)
            moves.append((whole, path))
        for whole, path in moves:
            is_new = not path.exists()
            if replace:
                os.replace(whole, path)
            else:
                _move_without_replacing(whole, path)
            if is_new:
                undo.callback(path.unlink)
        undo.pop_all()


def _temporary_folder(path: Path) -> tempfile.TemporaryDirectory[str]:
    """Make a temporary folder on the same file system, so that a file can be moved in one step."""
    return tempfile.TemporaryDirectory(dir=path.parent, prefix=".dptree-")


def _move_without_replacing(whole: Path, path: Path) -> None:
    """Rename a file, unless one with the new name exists."""
    try:
        os.link(whole, path)
    except FileExistsError as error:
        raise FileExistsError(error.errno, error.strerror, str(path)) from None
    except OSError:  # a file system without links
        path.touch(exist_ok=False)
        try:
            os.replace(whole, path)
        except OSError:
            path.unlink()
            raise

"""What pages have in common: titles, and how they are written to a file."""

from __future__ import annotations

from functools import partial
from os import PathLike
from pathlib import Path

from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.output.atomic_files import write_whole

__all__ = ["check_title", "returned_or_saved", "write_page"]


def check_title(title: object) -> None:
    """Check that a title is text, or None."""
    if title is not None and not isinstance(title, str):
        raise ArgumentError("title", f"must be text, not {quote(title)}.", hint='for example title="Visits".')


def write_page(page: str, path: str | PathLike[str]) -> None:
    """Write a page to a file, completely or not at all; raise an `ArgumentError` if that is impossible."""
    # errors="replace" is for lone surrogates, which UTF-8 cannot encode
    fill = partial(Path.write_text, data=page, encoding="utf-8", errors="replace", newline="\n")
    try:
        write_whole(Path(path), fill)
    except (OSError, TypeError, ValueError):
        raise ArgumentError(
            "path",
            f"cannot be written: {path if isinstance(path, PathLike) else quote(path)}.",
            hint="name a file in a folder that exists, and that you may write to.",
        ) from None


def returned_or_saved(page: str, path: str | PathLike[str] | None) -> str | None:
    """Return a page, or write it to the path if there is one."""
    if path is None:
        return page
    write_page(page, path)
    return None

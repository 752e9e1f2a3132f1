"""The frame that all printable pages share, and how they are written to a file."""

from __future__ import annotations

from functools import partial
from html import escape
from os import PathLike
from pathlib import Path

from pandas_dptree._version import __version__
from pandas_dptree.errors import ArgumentError, quote
from pandas_dptree.output.atomic_files import write_whole

__all__ = ["check_title", "html_page", "write_page"]


def check_title(title: object) -> None:
    """Check that a title is text, or None."""
    if title is not None and not isinstance(title, str):
        raise ArgumentError("title", f"must be text, not {quote(title)}.", hint='for example title="Visits".')


def html_page(title: str, body: str, *, style: str, origin: str) -> str:
    """Return a self-contained page, without scripts or network.

    `title` is plain text, `body` HTML, and `origin` a plain sentence for the footer: what the page repeats.
    """
    return _PAGE.format(
        title=escape(title), style=f"{_STYLE}\n{style}", body=body, origin=escape(origin), version=__version__
    )


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


_STYLE = "\n".join(
    [
        "body { font-family: system-ui, sans-serif; color: #222; }",
        "body { max-width: 70em; margin: 2em auto; padding: 0 1em; }",
        "h1 { font-size: 1.5em; } h2 { font-size: 1.1em; margin-top: 2em; }",
        ".warning { border: 2px solid #b00020; padding: 0.5em 1em; font-weight: bold; }",
        ".notes, footer { color: #555; font-size: 0.9em; }",
        "@media print { body { margin: 0; max-width: none; } tr { break-inside: avoid; } }",
    ]
)

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
<h1>{title}</h1>
{body}
<footer><p>Page made with pandas_dptree {version}. {origin}</p></footer>
</body>
</html>
"""
